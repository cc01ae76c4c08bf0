//! Posteriors: variances, full covariances, samples.

use crate::problem::{Draw, KERNELS, draws, points, problem};
use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use sparsegp::engine::Cpu;
use sparsegp::linalg::Mat;

const METHODS: [&str; 4] = ["exact", "titsias2009", "spherical", "titsias2025"];

proptest! {
    #![proptest_config(crate::config())]

    /// Variances are never negative, not more than the prior's, and the diagonal of the full
    /// covariance. The two forms subtract the same numbers in another order: what differs is a few
    /// ε times the prior variance (10⁻¹¹ of it leaves room for M terms and K(X) by another path).
    /// predict_f clamps what rounding makes negative; the full covariance does not.
    #[test]
    fn variances_are_the_diagonal_and_not_negative(draw in draws(KERNELS)) {
        let mut problem = problem(&draw);
        // new points, training inputs and inducing points
        let new = points(7, draw.d, 0.3, &mut problem.rng);
        let z = problem.model.inducing_points().unwrap();
        for name in METHODS {
            let posterior = problem.with(name).posterior(&Cpu::default(), &problem.data).unwrap();
            for at in [&new, &problem.data.x, &z] {
                let (mean, variance) = posterior.predict_f(at.as_ref()).unwrap();
                let (full_mean, full) = posterior.predict_f_full(at.as_ref()).unwrap();
                let mut prior = vec![0.0; at.nrows()];
                problem.model.kernel().diag(at.as_ref(), &mut prior);
                let noisy = posterior.predict_y(at.as_ref(), &[]).unwrap().1;
                let noise = problem.model.noise();
                prop_assert!((&mean - &full_mean).norm_max() <= 1e-11 * (1.0 + mean.norm_max()));
                prop_assert_eq!(&mean, &posterior.predict_mean(at.as_ref()).unwrap());
                for i in 0..at.nrows() {
                    let room = 1e-11 * (1.0 + prior[i]);
                    prop_assert!(variance[(i, 0)] >= 0.0 && variance[(i, 0)] <= prior[i] + room);
                    prop_assert!((full[0][(i, i)] - variance[(i, 0)]).abs() <= room, "{name} {draw:?}");
                    prop_assert!((noisy[(i, 0)] - variance[(i, 0)] - noise).abs() <= room);
                }
            }
        }
    }
}

/// Mean and covariance of 20 000 joint draws lie within five standard errors of predict_f_full's:
/// of a mean √(cᵢᵢ/S), of a covariance √((cᵢᵢcⱼⱼ + cᵢⱼ²)/S). With 54 numbers compared and a
/// fixed seed that is far outside chance.
#[test]
fn samples_have_the_moments_of_the_posterior() {
    const DRAWS: usize = 20_000;
    let draw = Draw { n: 30, m: 6, d: 2, p: 2, kernel: "rbf + linear", mean: "linear", seed: 11 };
    let mut problem = problem(&draw);
    let at = points(4, 2, 0.3, &mut problem.rng);
    for name in ["exact", "titsias2025"] {
        let posterior = problem.with(name).posterior(&Cpu::default(), &problem.data).unwrap();
        let (mean, covariance) = posterior.predict_f_full(at.as_ref()).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(2009);
        let samples = posterior.sample_f(at.as_ref(), DRAWS, &mut rng).unwrap();
        assert_eq!(samples.len(), DRAWS);
        let count = DRAWS as f64;
        // all points and target columns as one vector: columns are independent
        let flat = |s: &Mat<f64>| -> Vec<f64> {
            (0..2).flat_map(|p| (0..4).map(move |i| (i, p))).map(|k| s[k]).collect()
        };
        let expected = flat(&mean);
        let of = |a: usize, b: usize| {
            if a / 4 == b / 4 { covariance[a / 4][(a % 4, b % 4)] } else { 0.0 }
        };
        let centred: Vec<Vec<f64>> = samples
            .iter()
            .map(|s| flat(s).iter().zip(&expected).map(|(v, m)| v - m).collect())
            .collect();
        for a in 0..8 {
            let average = centred.iter().map(|v| v[a]).sum::<f64>() / count;
            let error = (of(a, a) / count).sqrt();
            assert!(average.abs() < 5.0 * error, "{name}: mean {a} off by {average}, {error}");
            for b in 0..=a {
                let second = centred.iter().map(|v| v[a] * v[b]).sum::<f64>() / count;
                let error = ((of(a, a) * of(b, b) + of(a, b).powi(2)) / count).sqrt();
                let off = (second - of(a, b)).abs();
                assert!(off < 5.0 * error, "{name}: covariance {a} {b} off by {off}, {error}");
            }
        }
    }
}

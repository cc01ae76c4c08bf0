//! Posteriors: variances, full covariances, samples.

use crate::problem::{Draw, KERNELS, draws, points, problem};
use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use sparsegp::data::InMemory;
use sparsegp::engine::Cpu;
use sparsegp::kernels::Tape;
use sparsegp::linalg::{Mat, Par, solve_lower};
use sparsegp::methods::HighCost;
use sparsegp::model::Model;

const METHODS: [&str; 6] = ["exact", "titsias2009", "spherical", "titsias2025", "fitc", "pep"];

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

proptest! {
    #![proptest_config(crate::config())]

    /// By q(f | u): variances from 0 to those of the posterior, equal where v = 1, and at a training row
    /// that is [K̃^{½}VK̃^{½}]ᵢᵢ + φᵀSφ, so that their trace is Σ vᵢrᵢ + Σφᵀ Sφ. K̃ has rounding of the size
    /// ε tr K; its smallest eigenvalues (10⁻¹² of the largest) are known to 10⁻³ of themselves, and what they
    /// contribute to the trace is as small as they.
    #[test]
    fn predictions_by_the_conditional_are_less_uncertain(draw in draws(KERNELS)) {
        let mut problem = problem(&draw);
        let new = points(7, draw.d, 0.3, &mut problem.rng);
        let x = problem.data.x.as_ref();
        for name in ["titsias2009", "spherical", "titsias2025"] {
            let model = problem.with(name);
            let costly = HighCost::new(&model, &Cpu::default(), &problem.data).unwrap();
            let (mean, plain) = costly.posterior().predict_f(new.as_ref()).unwrap();
            let (same, less) = costly.predict_f(new.as_ref()).unwrap();
            prop_assert_eq!(&mean, &same);
            for i in 0..7 {
                prop_assert!(less[(i, 0)] >= 0.0 && less[(i, 0)] <= plain[(i, 0)]);
                // v is 1 but for its last bit
                let equal = plain[(i, 0)] - less[(i, 0)] <= 1e-12 * (1.0 + plain[(i, 0)]);
                prop_assert!(equal || name != "titsias2009", "{} {}", less[(i, 0)], plain[(i, 0)]);
            }
            // K(X, X) of white noise is not K(X)
            if draw.kernel.contains("white") {
                continue;
            }
            let mut prior = vec![0.0; draw.n];
            model.kernel().diag(x, &mut prior);
            let sum = |a: &Mat<f64>| (0..draw.n).map(|i| a[(i, 0)]).sum::<f64>();
            let (_, plain) = costly.posterior().predict_f(x).unwrap();
            let (_, less) = costly.predict_f(x).unwrap();
            let r = unexplained(&model, &problem.data);
            let expected = sum(&plain)
                - r.iter().zip(costly.factors()).map(|(r, v)| (1.0 - v) * r).sum::<f64>();
            let room = 1e-8 * prior.iter().sum::<f64>();
            prop_assert!((sum(&less) - expected).abs() <= room, "{name} {} {expected}", sum(&less));
        }
    }
}

/// r of every row, from the formula.
fn unexplained(model: &Model, data: &InMemory) -> Vec<f64> {
    let posterior = model.posterior(&Cpu::default(), data).unwrap();
    let (n, z) = (data.x.nrows(), posterior.points());
    let mut phi = Mat::zeros(n, z.nrows());
    model.kernel().evaluate(data.x.as_ref(), Some(z), phi.as_mut(), &mut Tape::off());
    solve_lower(posterior.factor().l.as_ref(), phi.as_mut().transpose_mut(), Par::Seq);
    let mut r = vec![0.0; n];
    model.kernel().diag(data.x.as_ref(), &mut r);
    (0..n).map(|i| r[i] - (0..z.nrows()).map(|j| phi[(i, j)].powi(2)).sum::<f64>()).collect()
}

#[test]
fn predictions_by_the_conditional_are_refused_where_there_is_none() {
    let draw = Draw { n: 30, m: 6, d: 2, p: 1, kernel: "rbf", mean: "zero", seed: 3 };
    let problem = problem(&draw);
    let refused = |model: &Model, data: &InMemory, parts: [&str; 2]| {
        let error = HighCost::new(model, &Cpu::default(), data).expect_err("refused").to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    };
    for name in ["exact", "fitc"] {
        refused(&problem.with(name), &problem.data, [name, "titsias2025"]);
    }
    let many = InMemory::new(Mat::zeros(5000, 2), Mat::zeros(5000, 1)).unwrap();
    refused(&problem.with("titsias2025"), &many, ["5000 rows", "at most 4096"]);
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

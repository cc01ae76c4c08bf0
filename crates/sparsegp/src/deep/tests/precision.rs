//! Mixed precision beside double precision.

use super::*;
use crate::linalg::Precision;

/// The part of a number by which it is off in single precision.
const UNIT: f64 = 6e-8;

impl Problem {
    fn in_precision(&self, precision: Precision, noise: &Noise<'_>, want: Want) -> Evaluation {
        let mut work = Work::in_precision(precision);
        self.model.evaluate(&self.batch(), noise, want, &mut work).unwrap()
    }

    /// Bounds and gradients of both precisions at the same samples.
    fn both(&self) -> [Evaluation; 2] {
        let noise = Noise::Given(&self.draws);
        [Precision::Double, Precision::Single].map(|own| self.in_precision(own, &noise, ALL))
    }
}

fn layers(kind: Kind, sampling: Sampling) -> Vec<Layer> {
    let mut first = recipe(kind, "rbf + linear", "projection", (2, 3));
    first.sampling = sampling;
    let mut last = recipe(kind, "matern52", "constant", (5, 1));
    last.skip = true;
    vec![first, last]
}

/// Bounds are as far apart as rounding makes them: covariances are off by a unit of the kernels' variances (which are below
/// 3), features and variances by that over the jitter of 10⁻², which is what the other points leave at least, and a row by
/// its variances over 2σ². Slopes are off by no more of the largest one.
#[test]
fn bounds_and_gradients_keep_their_digits_at_every_noise() {
    for (kind, sampling) in [
        (Kind::W, Sampling::Rows),
        (Kind::W, Sampling::Functions),
        (Kind::M, Sampling::Rows),
        (Kind::L, Sampling::Rows),
    ] {
        for noise in [0.7, 0.03, 0.0013] {
            let name = format!("{kind:?} {sampling:?} {noise}");
            let likelihood = format!("gaussian(variance={noise})");
            let problem = Problem::new(layers(kind, sampling), &likelihood, 300, 2);
            let [double, single] = problem.both();
            let apart = (double.value - single.value).abs();
            let rows = 3.7 * 300.0;
            let most = rows * 3.0 * UNIT / 1e-2 / (2.0 * noise);
            assert!(apart > 0.0 && apart < most, "{name}: {apart:e} of {most:e}");
            assert_eq!(double.kl, single.kl, "{name}: q is not in double precision");
            let bounds = [
                (&double.gradient, &single.gradient),
                (&columns(double.x.as_ref().unwrap()), &columns(single.x.as_ref().unwrap())),
            ];
            for (own, other) in bounds {
                let most = size(own);
                let pairs = own.iter().zip(other).map(|(a, b)| (a - b).abs());
                let apart = pairs.fold(0.0, f64::max);
                assert!(apart < 100.0 * UNIT / 1e-2 * most, "{name}: {apart:e} of {most:e}");
            }
        }
    }
}

/// What images are made of goes through the same features; R layers stay in double precision.
#[test]
fn layers_of_images_are_rounded_and_relaxed_ones_are_not() {
    let [double, single] = images::problem(Sampling::Functions).both();
    let apart = (double.value - single.value).abs();
    assert!(apart > 0.0 && apart < 1e-5 * double.value.abs(), "{apart:e}");
    let [double, single] = deep(Kind::R, Sampling::Rows).both();
    assert_eq!(double.value.to_bits(), single.value.to_bits());
    assert_eq!(double.gradient, single.gradient);
}

#[test]
fn threads_leave_the_bits_of_mixed_precision_unchanged() {
    for kind in [Kind::W, Kind::L] {
        let problem = deep(kind, Sampling::Rows);
        let run = |threads: usize| -> Vec<u64> {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let noise = Noise::Streams { seed: 4, step: 9 };
            let found = pool.install(|| problem.in_precision(Precision::Single, &noise, ALL));
            let x = columns(found.x.as_ref().unwrap());
            let all = std::iter::once(found.value).chain(found.gradient).chain(x);
            all.map(f64::to_bits).collect()
        };
        let one = run(1);
        assert!(run(2) == one && run(3) == one, "{kind:?}");
    }
}

/// A natural-gradient step by rounded statistics ends where that of double precision does.
#[test]
fn natural_steps_keep_their_digits() {
    let problem = Problem::new(layers(Kind::W, Sampling::Rows), "gaussian(variance=0.2)", 300, 1);
    let [double, single] = [Precision::Double, Precision::Single].map(|precision| {
        let mut model = problem.model.clone();
        let mut work = Work::in_precision(precision);
        let noise = Noise::Given(&problem.draws);
        model.natural_step(1, 0.5, &problem.batch(), &noise, &mut work).unwrap();
        columns(&model.layers[1].groups[0].q.mean())
    });
    assert_ne!(double, single, "nothing is rounded");
    let most = size(&double);
    for (a, b) in double.iter().zip(&single) {
        assert!((a - b).abs() < 100.0 * UNIT / 1e-2 * most, "{a} {b}");
    }
}

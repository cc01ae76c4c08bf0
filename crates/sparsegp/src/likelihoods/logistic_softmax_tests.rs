//! Local variables of classes whose weights differ.

use super::augmented_tests::{bound, close, difference};
use super::logistic_softmax::LogisticSoftmax;
use super::multi::uniform;
use super::{Likelihood, Target, parse};
use crate::kernels::spec;
use crate::rng;

#[test]
fn of_two_classes_one_without_a_latent_function_is_a_ratio() {
    let l = parse("logistic-softmax(classes=2, constant=0.3, scales=[0.7, 1.9])").unwrap();
    assert_eq!((l.classes(), l.latents()), (Some(2), 1));
    for f in [-3.0_f64, 0.4, 2.0] {
        let score = 0.7 / (1.0 + (-f).exp());
        let p = score / (score + 1.9 * 0.3);
        for (y, p) in [(0.0, p), (1.0, 1.0 - p)] {
            let t = Target { y, extra: 1.0 };
            close(l.log_prob(t, &[f]), p.ln(), 1e-14, "log p");
            // without variance the bound is log p, and its slope that of log p
            let found = bound(&*l, t, &[f], &[0.0]);
            close(found.value, p.ln(), 1e-14, "bound");
            let slope = difference(1e-3, |d| l.log_prob(t, &[f + d]));
            close(found.mean[0], slope, 1e-10, "slope");
        }
    }
}

/// Keeping λ costs up to a nat for every row, and never gains.
#[test]
fn with_lambda_kept_the_bound_is_lower() {
    let mut rng = rng::stream(3, "moments of many classes");
    let mut uniform = || uniform(&mut rng);
    let mut gaps = Vec::new();
    for classes in [2, 3, 7, 50] {
        for options in ["", ", constant=0.4"] {
            for y in [0, classes - 1] {
                let spec = format!("logistic-softmax(classes={classes}, scales=0.8{options}");
                let marginal = parse(&format!("{spec})")).unwrap();
                let kept = parse(&format!("{spec}, augmentation=mean-field)")).unwrap();
                let k = marginal.latents();
                let m: Vec<f64> = (0..k).map(|_| 6.0 * uniform() - 3.0).collect();
                let v: Vec<f64> = (0..k).map(|_| 2.0 * uniform()).collect();
                let t = Target { y: y as f64, extra: 1.0 };
                let (a, b) = (bound(&*marginal, t, &m, &v), bound(&*kept, t, &m, &v));
                gaps.push(a.value - b.value);
            }
        }
    }
    assert!(gaps.iter().all(|gap| *gap > 0.0 && *gap < 1.0), "{gaps:?}");
}

/// Σ ℓ over rows at fixed q(f), as θ moves by its own steps and then by a multiple.
#[test]
fn steps_of_the_scales_never_lower_the_bound() {
    for options in ["", ", constant=0.4"] {
        let text = format!("logistic-softmax(classes=4, scales=[1.0, 3.0, 0.2, 0.6]{options})");
        let spec = spec::read_as(&text, "a likelihood").unwrap();
        let mut l = LogisticSoftmax::from_json(&spec).unwrap();
        let mut rng = rng::stream(5, "rows of four classes");
        let mut uniform = || uniform(&mut rng);
        let rows: Vec<(usize, [f64; 4], [f64; 4])> = (0..40)
            .map(|i| {
                let mut draws = |low: f64| [(); 4].map(|()| low + 2.0 * uniform());
                (if i < 4 { i } else { i % 3 }, draws(-1.0), draws(0.0))
            })
            .collect();
        let k = l.latents();
        let rows = || rows.iter().map(|(y, m, v)| (*y, &m[..k], &v[..k]));
        let sum = |l: &LogisticSoftmax| -> f64 {
            let of = |(y, m, v): (usize, &[f64], &[f64])| {
                bound(l, Target { y: y as f64, extra: 1.0 }, m, v).value
            };
            rows().map(of).sum()
        };
        let mut values = vec![sum(&l)];
        for _ in 0..200 {
            let next = l.next_scales(rows());
            l.score.weights.scales.set("scales", &next).unwrap();
            values.push(sum(&l));
        }
        let rounding = 1e-13 * values[0].abs();
        assert!(values.windows(2).all(|pair| pair[1] >= pair[0] - rounding), "{values:?}");
        assert!(values[1] > values[0] + 1.0, "{values:?}");
        // it ends where the slopes are 0
        let mut slopes = vec![0.0; 4];
        for (y, m, v) in rows() {
            let found = bound(&l, Target { y: y as f64, extra: 1.0 }, m, v);
            slopes.iter_mut().zip(&found.params).for_each(|(sum, by)| *sum += by);
        }
        assert!(slopes.iter().all(|slope| slope.abs() < 1e-9), "{slopes:?}");
        // a multiple of all weights says nothing new
        let many: Vec<f64> = l.score.weights.scales.value().iter().map(|s| 2.7 * s).collect();
        let last = sum(&l);
        l.score.weights.scales.set("scales", &many).unwrap();
        close(sum(&l), last, 1e-13, "multiple");
    }
}

//! Local variables of classes whose weights differ.

use super::augmented_tests::{bound, close, difference};
use super::logistic_softmax::LogisticSoftmax;
use super::multi::uniform;
use super::{Target, parse};
use crate::rng;
use crate::spec;

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

/// A multiple of all weights says nothing new where all classes have latent functions' weights.
#[test]
fn weights_matter_up_to_a_factor() {
    let text = "logistic-softmax(classes=3, scales=[1.3, 2.1, 0.4])";
    let mut l = LogisticSoftmax::from_json(&spec::read_as(text, "a likelihood").unwrap()).unwrap();
    let (t, m, v) = (Target { y: 1.0, extra: 1.0 }, [0.3, -0.6, 0.9], [0.4, 0.25, 0.9]);
    let before = bound(&l, t, &m, &v).value;
    let many: Vec<f64> = l.score.weights.scales.value().iter().map(|s| 2.7 * s).collect();
    l.score.weights.scales.set("scales", &many).unwrap();
    close(bound(&l, t, &m, &v).value, before, 1e-13, "multiple");
}

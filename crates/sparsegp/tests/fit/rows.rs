//! What rows may bring beside inputs and targets: weights, further numbers, nothing to learn.

use crate::stochastic::{dataset, draws, stochastic};
use crate::support::{fit, prepare};
use sparsegp::data::InMemory;
use sparsegp::engine::Cpu;
use sparsegp::fit::Of;
use sparsegp::linalg::Mat;
use sparsegp::methods::Evaluation;
use sparsegp::model::Model;

/// A model away from its start, with too few inducing points for factors v near 1.
fn model(likelihood: &str, method: &str, rows: &InMemory) -> Model {
    let mut options = stochastic(likelihood, method, 20, 5);
    options.inducing = Some(3);
    options.pilot = 0;
    options.set = vec![("kernel.lengthscales".into(), vec![0.4])];
    fit(&dataset(rows.clone(), false), &options).expect("a fit").model
}

const CASES: [(&str, &str, f64); 6] = [
    ("gaussian(variance=0.3)", "svgp", 0.0),
    ("gaussian(variance=0.3)", "svgp2025", 0.0),
    ("gaussian(variance=0.3)", "svgp-spherical", 0.0),
    ("poisson", "svgp", 1.0),
    ("poisson", "svgp-spherical", 1.0),
    ("student-t(df=4, scale=0.3)", "svgp-spherical", 1.0),
];

fn bound(model: &Model, rows: &InMemory) -> Evaluation {
    model.evaluate(&Cpu::default(), rows).expect("a bound")
}

/// Values and gradients agree to rounding.
fn same(model: &Model, a: &InMemory, b: &InMemory) {
    let (a, b) = (bound(model, a), bound(model, b));
    assert!((a.value - b.value).abs() < 1e-11 * a.value.abs(), "{} {}", a.value, b.value);
    let largest = a.gradient.iter().fold(0.0_f64, |m, g| m.max(g.abs()));
    for (i, (a, b)) in a.gradient.iter().zip(&b.gradient).enumerate() {
        assert!((a - b).abs() < 1e-10 * largest, "{i}: {a} {b} of {largest}");
    }
}

/// For Hensman's bound to rounding. The tighter bounds have a factor v for every value of f, and two
/// rows have two: a weight says that there is one, and the bound is the higher for it.
#[test]
fn weight_two_is_the_row_twice() {
    for (likelihood, method, extra) in CASES {
        let rows = draws(40, likelihood, extra, |x| vec![x.sin()]);
        let model = model(likelihood, method, &rows);
        let weights = (0..40).map(|i| f64::from(u8::from(i % 3 == 0)) + 1.0).collect();
        let order: Vec<usize> =
            (0..40).flat_map(|i| std::iter::repeat_n(i, 1 + usize::from(i % 3 == 0))).collect();
        let pick = |a: &Mat<f64>| Mat::from_fn(order.len(), 1, |i, j| a[(order[i], j)]);
        let twice = InMemory::new(pick(&rows.x), pick(&rows.y)).expect("as many");
        let weighted = InMemory { weights, ..rows };
        if method == "svgp" {
            same(&model, &weighted, &twice);
        } else {
            let gain = bound(&model, &weighted).value - bound(&model, &twice).value;
            assert!(gain > 0.01, "{likelihood} {method}: {gain}");
        }
    }
}

#[test]
fn missing_targets_say_nothing() {
    for (likelihood, method, extra) in CASES {
        let mut rows = draws(40, likelihood, extra, |x| vec![x.sin()]);
        let model = model(likelihood, method, &rows);
        let known: Vec<usize> = (0..40).filter(|i| i % 4 != 1).collect();
        let pick = |a: &Mat<f64>| Mat::from_fn(known.len(), 1, |i, j| a[(known[i], j)]);
        let without = InMemory::new(pick(&rows.x), pick(&rows.y)).expect("as many");
        (0..40).filter(|i| i % 4 == 1).for_each(|i| rows.y[(i, 0)] = f64::NAN);
        same(&model, &rows, &without);
        // and they can be learnt from, in minibatches of which some know nothing
        let fitted = fit(&dataset(rows, false), &stochastic(likelihood, method, 2, 3));
        assert!(fitted.expect("a fit").report.expect("trained").objective.is_finite());
    }
}

#[test]
fn weight_zero_is_no_row() {
    for (likelihood, method, extra) in CASES {
        let rows = draws(40, likelihood, extra, |x| vec![x.sin()]);
        let model = model(likelihood, method, &rows);
        let mut missing = rows.clone();
        (0..40).step_by(5).for_each(|i| missing.y[(i, 0)] = f64::NAN);
        let weights = (0..40).map(|i| f64::from(u8::from(i % 5 != 0))).collect();
        same(&model, &InMemory { weights, ..rows }, &missing);
    }
}

#[test]
fn twice_the_exposure_is_half_the_rate() {
    for likelihood in ["poisson", "negative-binomial"] {
        let rows = draws(150, likelihood, 1.0, |x| vec![2.0 + x.sin()]);
        let fits = [1.0, 2.0].map(|exposure| {
            let own = InMemory { extra: vec![exposure; 150], ..rows.clone() };
            fit(&dataset(own, false), &stochastic(likelihood, "svgp", 50, 30)).expect("a fit")
        });
        let x = Mat::from_fn(9, 1, |i, _| -2.0 + 0.5 * i as f64);
        let rates = |at: usize, exposure: f64| {
            let extra = vec![exposure; 9];
            fits[at].predict_with(x.as_ref(), &extra, Of::Observations).expect("rates").0
        };
        let (one, two, same) = (rates(0, 1.0), rates(1, 1.0), rates(1, 2.0));
        for i in 0..9 {
            let (one, two, same) = (one[(i, 0)], two[(i, 0)], same[(i, 0)]);
            assert!((one / two - 2.0).abs() < 0.05, "{likelihood}: {one} {two}");
            assert!((same / two - 2.0).abs() < 1e-9, "{likelihood}: {same} {two}");
        }
    }
}

#[test]
fn what_does_not_fit_the_likelihood_is_refused() {
    let mut rows = draws(40, "poisson", 1.0, |_| vec![1.0]);
    rows.y[(7, 0)] = -3.0;
    let error = prepare(&dataset(rows, false), &stochastic("poisson", "svgp", 10, 1));
    let text = error.expect_err("a negative count").to_string();
    assert!(text.contains("row 8") && text.contains("-3"), "{text}");
}

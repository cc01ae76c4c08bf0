//! Targets that all lie at an end of what they can be.

use crate::support::fit;
use sparsegp::data::InMemory;
use sparsegp::fit::{Dataset, FitOptions, Fitted, Of};
use sparsegp::linalg::Mat;

/// 40 rows at 0, 1/8, … of these targets, each with the further number `extra` (none if 0), by the method that is the default.
fn learnt(likelihood: &str, y: impl Fn(usize) -> f64, extra: f64) -> Fitted {
    learnt_by("auto", likelihood, y, extra)
}

fn learnt_by(method: &str, likelihood: &str, y: impl Fn(usize) -> f64, extra: f64) -> Fitted {
    let x = Mat::from_fn(40, 1, |i, _| i as f64 / 8.0);
    let mut rows = InMemory::new(x, Mat::from_fn(40, 1, |i, _| y(i))).expect("as many targets");
    if extra != 0.0 {
        rows.extra = vec![extra; 40];
    }
    let dataset = Dataset::from_rows(rows, false).expect("a table");
    let options = FitOptions {
        likelihood: Some(likelihood.into()),
        method: method.into(),
        ..FitOptions::default()
    };
    fit(&dataset, &options).expect("a fit")
}

fn warned(fitted: &Fitted) -> bool {
    fitted.warnings.iter().any(|w| w.starts_with("all targets are"))
}

/// The rule of three: after no event in the exposure E the rate is about 1/E, and 95 % of it lie below 3/E.
#[test]
fn counts_that_are_all_zero_bound_the_rate_by_their_exposure() {
    for (method, likelihood, exposure) in [
        ("auto", "poisson", 1.0),
        ("auto", "poisson", 17.0),
        ("auto", "poisson(link=softplus, unit=1)", 17.0),
        ("auto", "negative-binomial", 2.5),
        ("auto", "zero-inflated-poisson", 2.5),
        // the trials of which move the mean without end
        ("tvgp", "poisson", 17.0),
        ("tvgp", "negative-binomial", 2.5),
    ] {
        let fitted = learnt_by(method, likelihood, |_| 0.0, exposure);
        assert!(warned(&fitted), "{likelihood}: {:?}", fitted.warnings);
        // of zeros that are not counts, most are
        let params = fitted.model.params();
        let zero = params.iter().find(|(path, _)| path == "likelihood.zero");
        let counted = zero.map_or(1.0, |(_, param)| 1.0 - param.value()[0]);
        let total = 40.0 * exposure * counted;
        let at = Mat::from_fn(2, 1, |i, _| 2.3 + 40.0 * i as f64);
        let (mean, variance) = fitted.predict(at.as_ref(), Of::Latent).expect("one input");
        for i in 0..2 {
            let rate = |sd: f64| (mean[(i, 0)] + sd * variance[(i, 0)].sqrt()).exp() * total;
            // 95 % of a normal lie below 1.645 deviations
            assert!((0.3..3.0).contains(&rate(0.0)), "{likelihood}: median {}", rate(0.0));
            assert!((1.5..6.5).contains(&rate(1.645)), "{likelihood}: 95 % {}", rate(1.645));
        }
    }
}

#[test]
fn trials_without_a_failure_are_not_certain() {
    for (likelihood, y, trials) in [
        ("bernoulli", 1.0, 0.0),
        ("bernoulli", 0.0, 0.0),
        ("binomial", 6.0, 6.0),
        ("binomial", 0.0, 6.0),
    ] {
        let fitted = learnt(likelihood, |_| y, trials);
        assert!(warned(&fitted), "{likelihood} {y}: {:?}", fitted.warnings);
        let at = Mat::from_fn(1, 1, |_, _| 2.3);
        let (mean, variance) = fitted.predict(at.as_ref(), Of::Latent).expect("one input");
        let own = fitted.model.likelihood.predict(1.0, &[mean[(0, 0)]], &[variance[(0, 0)]]).0;
        let rare = if y == 0.0 { own } else { 1.0 - own };
        let all = 40.0 * trials.max(1.0);
        assert!((0.02..5.0).contains(&(rare * all)), "{likelihood} {y}: {rare}");
    }
}

#[test]
fn one_event_is_learnt_from_as_ever() {
    let fitted = learnt("poisson", |i| f64::from(u8::from(i == 7)), 3.0);
    assert!(!warned(&fitted), "{:?}", fitted.warnings);
    let params = fitted.model.params();
    let held = params.iter().any(|(path, param)| path == "mean.constant" && param.frozen);
    assert!(!held);
}

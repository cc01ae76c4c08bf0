//! What the rows say against a likelihood is named, and nothing where it is right.

use crate::support::{fit, options};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Gamma, Poisson, StandardNormal, StudentT};
use sparsegp::data::InMemory;
use sparsegp::fit::{Dataset, FitOptions, Standardise};
use sparsegp::linalg::Mat;
use sparsegp::rng::{stream, uniform};
use sparsegp::train::Finding;

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(rng)
}

/// Findings of a fit of n rows of two inputs, of which the first counts: `target` is given it and draws.
fn findings(
    likelihood: &str,
    method: &str,
    n: usize,
    seed: u64,
    target: impl Fn(f64, &mut ChaCha8Rng) -> f64,
) -> Vec<Finding> {
    let mut rng = stream(seed, "findings");
    let x = Mat::from_fn(n, 2, |_, _| 6.0 * uniform(&mut rng) - 3.0);
    let y = Mat::from_fn(n, 1, |i, _| target(x[(i, 0)], &mut rng));
    let scaling = Standardise {
        inputs: true,
        targets: likelihood == "gaussian",
        robust: false,
        constants: true,
    };
    let data = Dataset::from_arrays(x, y, scaling).expect("a table");
    let own = FitOptions {
        likelihood: Some(likelihood.into()),
        kernel: "rbf".into(),
        inducing: (method == "titsias2025").then_some(40),
        ..options(method, 60)
    };
    let fitted = fit(&data, &own).expect("a fit");
    let found = fitted.report.as_ref().expect("a report").findings.clone();
    // what is found is a warning too
    assert!(found.iter().all(|own| fitted.warnings.contains(&own.text)));
    found
}

fn names(found: &[Finding]) -> Vec<&str> {
    found.iter().map(|own| own.name.as_str()).collect()
}

#[test]
fn heavy_tails_are_named() {
    let t = StudentT::new(2.5).unwrap();
    for method in ["exact", "titsias2025", "svgp"] {
        let found = findings("gaussian", method, 400, 1, |x, rng| x.sin() + 0.2 * t.sample(rng));
        assert_eq!(names(&found), ["tails"], "{method}: {found:?}");
        assert_eq!(found[0].remedies, ["student-t"]);
        assert!(found[0].gain.is_some_and(|gain| gain > 0.05));
    }
}

#[test]
fn noise_that_varies_is_named() {
    for method in ["exact", "titsias2025"] {
        let found = findings("gaussian", method, 400, 2, |x, rng| {
            x.sin() + 0.1 * (0.6 * x).exp() * normal(rng)
        });
        assert!(names(&found).contains(&"spread"), "{method}: {found:?}");
        let spread = found.iter().find(|own| own.name == "spread").expect("a spread");
        assert_eq!(spread.remedies, ["heteroscedastic"]);
        // a mixture of normals has heavy tails, which is not named as a second finding
        assert!(!names(&found).contains(&"tails"), "{found:?}");
    }
}

#[test]
fn positive_numbers_with_a_long_tail_are_named() {
    let found = findings("gaussian", "exact", 400, 3, |x, rng| (0.5 * x + 0.8 * normal(rng)).exp());
    assert!(names(&found).contains(&"skew"), "{found:?}");
}

#[test]
fn shares_are_named() {
    let share = |x: f64, rng: &mut ChaCha8Rng| {
        let a = 3.0 / (1.0 + (-2.0 * x).exp()) + 0.05;
        let (a, b) = (Gamma::new(a, 1.0).unwrap(), Gamma::new(3.1 - a, 1.0).unwrap());
        let (a, b) = (a.sample(rng), b.sample(rng));
        (a / (a + b)).clamp(1e-6, 1.0 - 1e-6)
    };
    let found = findings("gaussian", "exact", 400, 4, share);
    assert!(names(&found).contains(&"shares"), "{found:?}");
}

fn counts(x: f64, factor: f64, rng: &mut ChaCha8Rng) -> f64 {
    let rate = 6.0 * (0.8 * x).sin().exp() * factor;
    if rate > 0.0 { Poisson::new(rate).unwrap().sample(rng) } else { 0.0 }
}

#[test]
fn dispersed_counts_are_named() {
    let gamma = Gamma::new(1.5, 1.0 / 1.5).unwrap();
    let found = findings("poisson", "auto", 300, 8, |x, rng| counts(x, gamma.sample(rng), rng));
    assert_eq!(found[0].name, "dispersion", "{found:?}");
    assert_eq!(found[0].remedies, ["negative-binomial"]);
}

#[test]
fn too_many_zeros_are_named() {
    let found = findings("poisson", "auto", 300, 8, |x, rng| {
        counts(x, if uniform(rng) < 0.3 { 0.0 } else { 1.0 }, rng)
    });
    assert!(names(&found).contains(&"zeros"), "{found:?}");
}

#[test]
fn rows_of_next_to_no_weight_say_nothing() {
    let t = StudentT::new(1.5).unwrap();
    let mut rng = stream(31, "light");
    let x = Mat::from_fn(400, 2, |_, _| 6.0 * uniform(&mut rng) - 3.0);
    let light = |i: usize| i.is_multiple_of(4);
    let y = Mat::from_fn(400, 1, |i, _| {
        let noise = if light(i) { 20.0 * t.sample(&mut rng) } else { 0.2 * normal(&mut rng) };
        x[(i, 0)].sin() + noise
    });
    let mut rows = InMemory::new(x, y).expect("rows");
    let own = FitOptions { kernel: "rbf".into(), ..options("exact", 60) };
    let mut named = Vec::new();
    for weighted in [false, true] {
        if weighted {
            rows.weights = (0..400).map(|i| if light(i) { 1e-6 } else { 1.0 }).collect();
        }
        let data = Dataset::from_rows(rows.clone(), true).expect("a table");
        let fitted = fit(&data, &own).expect("a fit");
        named.push(names(&fitted.report.as_ref().expect("a report").findings).join(","));
        let said = fitted.warnings.iter().any(|text| text.contains("left out"));
        assert_eq!(said, !weighted, "{:?}", fitted.warnings);
    }
    assert_eq!(named, ["tails", ""]);
}

/// What a fit of 400 rows finds by itself, and the warning of two values, where no likelihood was chosen.
fn unchosen(target: impl Fn(f64, &mut ChaCha8Rng) -> f64) -> (Vec<Finding>, bool) {
    let mut rng = stream(21, "unchosen");
    let x = Mat::from_fn(400, 2, |_, _| 6.0 * uniform(&mut rng) - 3.0);
    let y = Mat::from_fn(400, 1, |i, _| target(x[(i, 0)], &mut rng));
    let data = Dataset::from_arrays(x, y, true).expect("a table");
    let named = |likelihood: Option<&str>| {
        let likelihood = likelihood.map(str::to_owned);
        let own = FitOptions { likelihood, kernel: "rbf".into(), ..options("exact", 60) };
        let fitted = fit(&data, &own).expect("a fit");
        let two = fitted.warnings.iter().any(|text| text.contains("has two values"));
        (fitted.report.expect("a report").findings, two)
    };
    // nothing is said against a choice
    let (chosen, two) = named(Some("gaussian"));
    assert!(!names(&chosen).contains(&"counts") && !two, "{chosen:?}");
    named(None)
}

#[test]
fn counts_that_are_learnt_as_numbers_are_named() {
    let gamma = Gamma::new(0.5, 2.0).unwrap();
    let rate = |x: f64| (0.8 * x).sin().exp();
    let draw = |rate: f64, rng: &mut ChaCha8Rng| {
        if rate > 0.0 { Poisson::new(rate).unwrap().sample(rng) } else { 0.0 }
    };
    let (found, two) = unchosen(|x, rng| draw(rate(x), rng));
    assert_eq!((names(&found), two), (vec!["counts"], false), "{found:?}");
    assert_eq!(found[0].remedies, ["poisson", "negative-binomial"]);
    let (found, _) = unchosen(|x, rng| draw(2.0 * rate(x) * gamma.sample(rng), rng));
    assert_eq!(names(&found), ["counts"], "{found:?}");
    assert_eq!(found[0].remedies, ["negative-binomial", "poisson"]);
    // grades vary less than counts
    let (found, _) = unchosen(|x, rng| (5.0 + 2.0 * x.sin() + 0.5 * normal(rng)).round());
    assert!(!names(&found).contains(&"counts"), "{found:?}");
}

#[test]
fn two_values_that_are_learnt_as_numbers_are_named() {
    let (found, two) = unchosen(|x, rng| f64::from(u8::from(uniform(rng) < 0.5 + 0.45 * x.sin())));
    assert!(found.is_empty() && two, "{found:?}");
}

/// A hundred fits of data that are as the likelihood says, of several sizes and methods.
#[test]
fn right_likelihoods_are_quiet() {
    let gamma = Gamma::new(1.5, 1.0 / 1.5).unwrap();
    for seed in 0..20 {
        let n = [60, 150, 300][seed as usize % 3];
        // without Gaussian noise a fit takes ten times as long
        let few = n.min(100);
        let all = [
            findings("gaussian", "exact", n, seed, |x, rng| x.sin() + 0.3 * normal(rng)),
            // positive, and as far from 0 as Gaussian noise has to be
            findings("gaussian", "exact", n, seed, |x, rng| 6.0 + x.sin() + 0.5 * normal(rng)),
            findings("gaussian", "titsias2025", n, seed, |x, rng| x.sin() + 0.1 * normal(rng)),
            // nothing to predict, and nothing but a function
            findings("gaussian", "exact", n, seed, |_, rng| normal(rng)),
            findings("gaussian", "exact", n, seed, |x, _| (1.7 * x).sin() + 0.3 * x),
            findings("poisson", "auto", few, seed, |x, rng| counts(x, 1.0, rng)),
            findings("negative-binomial", "auto", few, seed, |x, rng| {
                counts(x, gamma.sample(rng), rng)
            }),
        ];
        assert!(all.iter().all(Vec::is_empty), "{seed}: {all:?}");
    }
}

/// Successes of trials whose chance varies from row to row, and of one chance at each place.
#[test]
fn dispersed_shares_of_trials_are_named() {
    for (spread, named) in [(1.5, true), (0.0, false)] {
        let mut rng = stream(5, "trials");
        let x = Mat::from_fn(200, 1, |i, _| 0.3 * (i % 20) as f64 - 3.0);
        let y = Mat::from_fn(200, 1, |i, _| {
            let chance = 1.0 / (1.0 + (-x[(i, 0)].sin() - spread * normal(&mut rng)).exp());
            (0..20).filter(|_| uniform(&mut rng) < chance).count() as f64
        });
        let rows = InMemory { x, y, weights: Vec::new(), extra: vec![20.0; 200] };
        let scaling = Standardise { inputs: true, targets: false, robust: false, constants: true };
        let data = Dataset::from_rows(rows, scaling).expect("a table");
        let own = FitOptions { likelihood: Some("binomial".into()), ..options("auto", 40) };
        let found = fit(&data, &own).expect("a fit").report.expect("a report").findings;
        assert_eq!(names(&found) == ["dispersion"], named, "{spread}: {found:?}");
    }
}

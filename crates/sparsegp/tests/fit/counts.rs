//! Counts that vary more than the likelihood `poisson` allows are named.

use crate::support::{fit, options};
use rand_distr::{Distribution, Gamma, Poisson};
use sparsegp::fit::{Dataset, FitOptions, Standardise};
use sparsegp::linalg::Mat;
use sparsegp::rng::{stream, uniform};

/// Warnings of a fit of counts of mean 6 exp(sin), whose rates are multiplied by what `factor` draws.
fn warnings(likelihood: &str, factor: impl Fn(&mut rand_chacha::ChaCha8Rng) -> f64) -> Vec<String> {
    // at twenty places: a function that follows every row would make up for the dispersion
    let x = Mat::from_fn(300, 1, |i, _| 0.3 * (i % 20) as f64 - 3.0);
    let mut rng = stream(8, "counts");
    let y = Mat::from_fn(300, 1, |i, _| {
        let rate = 6.0 * (0.8 * x[(i, 0)]).sin().exp() * factor(&mut rng);
        if rate > 0.0 { Poisson::new(rate).unwrap().sample(&mut rng) } else { 0.0 }
    });
    let scaling = Standardise { inputs: true, targets: false, robust: false, constants: true };
    let data = Dataset::from_arrays(x, y, scaling).expect("a table");
    let own = FitOptions { likelihood: Some(likelihood.into()), ..options("auto", 60) };
    fit(&data, &own).expect("a fit").warnings
}

fn said(warnings: &[String], word: &str) -> bool {
    warnings.iter().any(|own| own.contains("`poisson` says") && own.contains(word))
}

#[test]
fn dispersed_counts_are_named() {
    let gamma = Gamma::new(1.5, 1.0 / 1.5).unwrap();
    let found = warnings("poisson", |rng| gamma.sample(rng));
    assert!(said(&found, "times as much") && said(&found, "negative-binomial"), "{found:?}");
}

#[test]
fn too_many_zeros_are_named() {
    let found = warnings("poisson", |rng| if uniform(rng) < 0.3 { 0.0 } else { 1.0 });
    assert!(said(&found, "zero-inflated-poisson"), "{found:?}");
}

#[test]
fn poisson_counts_and_other_likelihoods_are_quiet() {
    let gamma = Gamma::new(1.5, 1.0 / 1.5).unwrap();
    let quiet =
        [warnings("poisson", |_| 1.0), warnings("negative-binomial", |rng| gamma.sample(rng))];
    assert!(quiet.iter().all(|own| !said(own, "")), "{quiet:?}");
}

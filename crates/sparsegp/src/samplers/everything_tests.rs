//! Whitened variables and hyperparameters together: slopes by differences, and simulation-based calibration (Talts et al. 2018).

use super::everything::{Everything, sample};
use super::hmc::{HmcOptions, Path};
use super::joint::LogDensity;
use super::slice::{Hyperparameters, assume_priors};
use super::test_models::model;
use crate::data::InMemory;
use crate::kernels::Tape;
use crate::likelihoods;
use crate::linalg::{Cholesky, Mat};
use crate::methods::find;
use crate::model::Model;
use crate::model::{hyperparameters, set_hyperparameters};
use crate::params::Prior;
use crate::rng::stream;
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;
use std::ops::ControlFlow;

fn prior(model: &mut Model, path: &str, prior: Prior) {
    model.for_group(path, |p| p.prior = Some(prior)).unwrap();
}

fn data(y: &[f64], extra: f64) -> InMemory {
    let n = y.len();
    let x = Mat::from_fn(n, 1, |i, _| [0.2, 1.1, -0.7, 2.0, 1.6, -1.4][i]);
    let mut rows = InMemory::new(x, Mat::from_fn(n, 1, |i, _| y[i])).unwrap();
    rows.extra = vec![extra; n];
    rows
}

/// With every kind of prior and range.
fn with_priors(spec: &str) -> Model {
    with_priors_at(spec, None)
}

/// With inducing points, if they are given.
fn with_priors_at(spec: &str, points: Option<&Mat<f64>>) -> Model {
    let mut model = model(likelihoods::parse(spec).unwrap(), points);
    model.method = find("nuts").unwrap().method;
    model.visit_mut(&mut |path, param| match path.to_string() {
        path if path.starts_with("kernel") && path.ends_with(".variance") => {
            param.prior = Some(Prior::Gamma { concentration: 2.3, rate: 1.7 });
        }
        path if path == "mean.constant" => {
            param.prior = Some(Prior::Normal { loc: 0.6, scale: 0.9 });
        }
        _ => {}
    });
    assume_priors(&mut model);
    model
}

#[test]
fn slopes_are_those_of_the_density() {
    for spec in [
        ("gaussian(variance=0.3)", [0.3, -0.8, 1.2, 0.1, f64::NAN, -1.0]),
        ("student-t(df=4.6, scale=0.4)", [0.3, -0.8, 1.2, 0.1, 2.0, -1.0]),
        ("poisson", [0.0, 2.0, 1.0, 4.0, 0.0, 3.0]),
        ("bernoulli(link=logit)", [0.0, 1.0, 1.0, 0.0, 0.0, 1.0]),
        ("beta(scale=3.1)", [0.2, 0.7, 0.4, 0.9, 0.5, 0.1]),
        ("softmax(classes=3)", [0.0, 2.0, 1.0, 0.0, 2.0, 1.0]),
        ("heteroscedastic", [0.3, -0.8, 1.2, 0.1, 0.4, -1.0]),
    ]
    .into_iter()
    .flat_map(|case| [(case, false), (case, true)])
    {
        let ((spec, y), sparse) = spec;
        let points = Mat::from_fn(3, 1, |i, _| [-1.1, 0.4, 1.7][i]);
        let model = with_priors_at(spec, sparse.then_some(&points));
        let rows = data(&y, 1.3);
        let latents = model.likelihood.latents();
        let sampled = Hyperparameters::new(&model, latents).unwrap();
        let mut all = Everything::new(&model, &rows, &sampled);
        let mut rng = stream(1, spec);
        let whitened = if sparse { 3 } else { 6 } * latents;
        let mut at: Vec<f64> = StandardNormal.sample_iter(&mut rng).take(whitened).collect();
        for own in &sampled.coordinates {
            let noise: f64 = StandardNormal.sample(&mut rng);
            at.push(own.to_free(own.read(&model)) + 0.4 * noise);
        }
        assert!(sampled.coordinates.len() >= 3);
        let mut gradient = vec![0.0; at.len()];
        let value = all.evaluate(&at, &mut gradient);
        assert!((value - all.value(&at)).abs() < 1e-12 * value.abs().max(1.0), "{spec}");
        for i in 0..at.len() {
            let mut by = |step: f64| {
                let mut moved = at.clone();
                moved[i] += step;
                all.value(&moved)
            };
            let expected = (by(1e-5) - by(-1e-5)) / 2e-5;
            let own = gradient[i];
            assert!(
                (own - expected).abs() < 2e-6 * (1.0 + expected.abs()),
                "{spec}, {i}: {own} {expected}"
            );
        }
    }
}

/// Hyperparameters, latent values and targets by their law.
fn simulated(model: &Model, rng: &mut impl Rng) -> (Model, Mat<f64>, InMemory) {
    let mut own = model.clone();
    own.visit_mut(&mut |_, param| {
        if let (Some(prior), false) = (param.prior, param.frozen) {
            param.value_mut().iter_mut().for_each(|v| *v = prior.sample(rng));
        }
    });
    let mut rows = data(&[0.0; 6], 1.0);
    let mut k = Mat::zeros(6, 6);
    own.kernels[0].evaluate(rows.x.as_ref(), None, k.as_mut(), &mut Tape::off());
    let factor = Cholesky::new(k.as_ref(), own.jitter, "K").unwrap();
    let v: Mat<f64> = Mat::from_fn(6, 1, |_, _| StandardNormal.sample(rng));
    let mut f = Mat::zeros(6, 1);
    own.mean.evaluate(rows.x.as_ref(), f.as_mut());
    f += &factor.l * &v;
    for i in 0..6 {
        rows.y[(i, 0)] = own.likelihood.sample(1.0, &[f[(i, 0)]], rng);
    }
    (own, f, rows)
}

/// Where the truth is drawn from the prior, its rank among draws from the posterior is uniform.
#[test]
fn ranks_of_the_truth_are_uniform() {
    const REPEATS: u64 = 80;
    const DRAWS: usize = 31;
    const BINS: usize = 8;
    for spec in ["gaussian(variance=0.3)", "poisson", "bernoulli(link=logit)"] {
        let mut model = with_priors(spec);
        // of laws that are not far wider than what six rows can tell
        prior(&mut model, "kernel.lengthscales", Prior::LogNormal { loc: 0.1, scale: 0.5 });
        if spec.starts_with("gaussian") {
            prior(&mut model, "likelihood", Prior::LogNormal { loc: -1.0, scale: 0.4 });
        }
        let ranks: Vec<Vec<usize>> = (0..REPEATS)
            .into_par_iter()
            .map(|repeat| {
                let mut rng = stream(repeat, "calibration");
                let (own, f, rows) = simulated(&model, &mut rng);
                let options = HmcOptions {
                    chains: 1,
                    burn_in: 120,
                    draws: DRAWS,
                    thin: 4,
                    seed: repeat,
                    path: Path::NoUTurn { depth: 7 },
                    acceptance: 0.9,
                    ..HmcOptions::default()
                };
                let mut watch = |_, _| ControlFlow::Continue(());
                let found = sample(&model, &rows, &options, &mut watch).unwrap().draws;
                let truth = hyperparameters(&own);
                let below = |of: &dyn Fn(usize) -> bool| (0..DRAWS).filter(|d| of(*d)).count();
                let mut ranks: Vec<usize> = found
                    .sampled
                    .iter()
                    .map(|(_, place)| {
                        below(&|d| found.hyperparameters[0][d][*place] < truth[*place])
                    })
                    .collect();
                ranks.extend([0, 3].map(|i| below(&|d| found.f[0][d][(i, 0)] < f[(i, 0)])));
                ranks
            })
            .collect();
        for j in 0..ranks[0].len() {
            let mut counts = [0.0; BINS];
            ranks.iter().for_each(|own| counts[own[j] * BINS / (DRAWS + 1)] += 1.0);
            let expected = REPEATS as f64 / BINS as f64;
            let statistic: f64 =
                counts.iter().map(|c| (c - expected) * (c - expected) / expected).sum();
            // χ² with 7 degrees of freedom: one in ten thousand
            assert!(statistic < 29.9, "{spec}, {j}: {counts:?}");
        }
    }
}

/// Chains of only hyperparameters, with f integrated out and drawn, and chains of both have one
/// law.
#[test]
fn evidence_and_everything_agree() {
    let mut model = with_priors("gaussian(variance=0.3)");
    prior(&mut model, "kernel.lengthscales", Prior::LogNormal { loc: 0.1, scale: 0.5 });
    let rows = data(&[0.3, -0.8, 1.2, 0.1, 0.7, -1.0], 0.15);
    let mut watch = |_, _| ControlFlow::Continue(());
    let options = HmcOptions {
        burn_in: 400,
        draws: 900,
        path: Path::NoUTurn { depth: 7 },
        acceptance: 0.9,
        ..HmcOptions::default()
    };
    let both = sample(&model, &rows, &options, &mut watch).unwrap();
    let alone = super::evidence::sample(&model, &rows, &options, &mut watch).unwrap();
    let (a, b) = (both.draws.mixing(1.0).unwrap(), alone.draws.mixing(1.0).unwrap());
    for (a, b) in a.hyperparameters.iter().zip(&b.hyperparameters) {
        assert!(a.split_rhat < 1.03 && b.split_rhat < 1.03, "{a:?} {b:?}");
        let error = (a.deviation.powi(2) / a.effective + b.deviation.powi(2) / b.effective).sqrt();
        assert!((a.mean - b.mean).abs() < 4.5 * error, "{a:?} {b:?}");
    }
    // and so have f and what it is whitened to
    for (of, name) in [(0, "f"), (1, "z")] {
        for i in 0..6 {
            let moments = |draws: &super::Draws| {
                let chains: Vec<Vec<f64>> = [&draws.f, &draws.z][of]
                    .iter()
                    .map(|chain| chain.iter().map(|f| f[(i, 0)]).collect())
                    .collect();
                let n = chains.iter().map(Vec::len).sum::<usize>() as f64;
                let mean = chains.iter().flatten().sum::<f64>() / n;
                let spread = chains.iter().flatten().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
                let size = super::diagnostics::effective_sample_size(&chains).unwrap();
                (mean, spread, spread / size)
            };
            let (a, b) = (moments(&both.draws), moments(&alone.draws));
            assert!((a.0 - b.0).abs() < 4.5 * (a.2 + b.2).sqrt(), "{name} {i}: {a:?} {b:?}");
            assert!((a.1 / b.1 - 1.0).abs() < 0.25, "{name} {i}: {a:?} {b:?}");
        }
    }
}

/// Chains of hyperparameters by slices of [`super::gibbs`] and by paths have one law.
#[test]
fn paths_and_gibbs_agree() {
    let mut model = with_priors("bernoulli(link=logit)");
    let rows = data(&[0.0, 1.0, 1.0, 0.0, 1.0, 1.0], 1.0);
    let mut watch = |_, _| ControlFlow::Continue(());
    let options = HmcOptions {
        burn_in: 500,
        draws: 1500,
        path: Path::NoUTurn { depth: 7 },
        acceptance: 0.9,
        ..HmcOptions::default()
    };
    let paths = sample(&model, &rows, &options, &mut watch).unwrap();
    assert!(paths.divergences < 60, "{}", paths.divergences);
    model.method = find("gibbs").unwrap().method;
    let own = super::gibbs::GibbsOptions {
        draws: 2000,
        hyperparameters: true,
        ..super::gibbs::GibbsOptions::default()
    };
    let gibbs = super::gibbs::sample(&model, &rows, &own, &mut watch).unwrap();
    let (a, b) = (paths.draws.mixing(1.0).unwrap(), gibbs.mixing(1.0).unwrap());
    for (a, b) in a.hyperparameters.iter().zip(&b.hyperparameters) {
        assert!(a.split_rhat < 1.03 && b.split_rhat < 1.03, "{a:?} {b:?}");
        let error = (a.deviation.powi(2) / a.effective + b.deviation.powi(2) / b.effective).sqrt();
        assert!((a.mean - b.mean).abs() < 4.5 * error, "{a:?} {b:?}");
    }
}

#[test]
fn what_cannot_be_sampled_is_refused() {
    let model = with_priors("poisson");
    let rows = data(&[0.0, 2.0, 1.0, 4.0, 0.0, 3.0], 1.0);
    let mut watch = |_, _| ControlFlow::Continue(());
    let options = HmcOptions::default();
    let fails = |model: &Model, rows: &InMemory, words: &str| {
        let mut watch = |_, _| ControlFlow::Continue(());
        let error = sample(model, rows, &options, &mut watch).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    let mut bare = model.clone();
    bare.for_group("kernel.lengthscales", |p| p.prior = None).unwrap();
    fails(&bare, &rows, "has no prior");
    let points = Mat::from_fn(3, 1, |i, _| i as f64);
    let mut sparse =
        super::test_models::model(likelihoods::parse("poisson").unwrap(), Some(&points));
    let set = sparse.inducing[0].clone();
    sparse.inducing.push(set);
    fails(&sparse, &rows, "one set of inducing points");
    let mut weighted = rows.clone();
    weighted.weights = vec![2.0; 6];
    fails(&model, &weighted, "no weights");
    let mut frozen = model.clone();
    frozen.freeze("kernel", true).unwrap();
    frozen.freeze("mean", true).unwrap();
    fails(&frozen, &rows, "all are frozen");
    // hyperparameters that are frozen stay
    let mut some = model.clone();
    some.freeze("kernel.variance", true).unwrap();
    let few = HmcOptions { chains: 1, burn_in: 20, draws: 8, ..HmcOptions::default() };
    let draws = sample(&some, &rows, &few, &mut watch).unwrap().draws;
    let mut then = some.clone();
    set_hyperparameters(&mut then, &draws.hyperparameters[0][7]).unwrap();
    let value = |m: &Model, path: &str| {
        m.params().into_iter().find(|(p, _)| p == path).map(|(_, p)| p.value()[0])
    };
    assert_eq!(value(&then, "kernel.variance"), value(&some, "kernel.variance"));
    assert_ne!(value(&then, "kernel.lengthscales"), value(&some, "kernel.lengthscales"));
}

//! Gibbs chains of a series: joint-distribution tests, the law of chains with a full covariance, equal bits.

use super::diagnostics::effective_sample_size;
use super::gibbs::{self, GibbsOptions};
use super::gibbs_tests::LAWS;
use super::resume::Going;
use super::series::{Chain, Series, sample_from};
use super::test_models::rows;
use crate::data::InMemory;
use crate::kernels::{Inputs, parse};
use crate::likelihoods;
use crate::linalg::{Jitter, Mat};
use crate::means;
use crate::methods::{Sampler, find};
use crate::model::Model;
use crate::rng;
use std::ops::ControlFlow;

/// With a kernel and a mean for every latent function, away from unit parameters.
fn model(method: &str, spec: &str) -> Model {
    let likelihood = likelihoods::parse(spec).unwrap();
    let latents = likelihood.latents();
    let kernel = |l: usize| {
        let name = ["matern52", "matern32", "matern12"][l];
        let spec = format!("{name}(lengthscales={}, variance=1.3)", 0.8 + 0.4 * l as f64);
        parse(&spec, Inputs::unnamed(1)).unwrap()
    };
    let constants: Vec<f64> = (0..latents).map(|l| 0.3 - 0.4 * l as f64).collect();
    let mean = serde_json::json!({"type": "constant", "constant": constants});
    Model {
        kernels: (0..latents).map(kernel).collect(),
        mean: means::from_json(&mean, 1, latents).unwrap(),
        likelihood,
        inducing: Vec::new(),
        q: None,
        method: find(method).unwrap().method,
        jitter: Jitter::Absolute(1e-8),
        hidden: Vec::new(),
    }
}

/// A mean of numbers with its standard error, for chains.
fn mean_of(chains: &[Vec<f64>]) -> [f64; 2] {
    let all = || chains.iter().flatten();
    let n = all().count() as f64;
    let mean = all().sum::<f64>() / n;
    let spread = all().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n;
    [mean, (spread / effective_sample_size(chains).unwrap()).sqrt()]
}

/// Geweke 2004, as for chains with a full covariance.
#[test]
fn sweeps_leave_the_joint_law() {
    for (spec, extra) in LAWS {
        let model = model("gibbs-markov", spec);
        let each = model.likelihood.latents();
        let mut rng = rng::stream(11, spec);
        // places in disorder
        let mut data = rows(&[0.0, 0.0, 0.0], extra);
        let mut chain = Chain::new(&Series::new(&model, &data).unwrap(), 5, 0).unwrap();
        let steps = 20_000;
        let mut values = vec![Vec::with_capacity(steps); 3 * each];
        // of the first row and of the second, which are 0.9 apart
        let mut covariances = vec![0.0; each];
        for (l, kernel) in model.kernels.iter().enumerate() {
            let k = crate::kernels::covariances(&**kernel, data.x.as_ref(), None);
            covariances[l] = k[(0, 1)];
        }
        for _ in 0..steps {
            for i in 0..3 {
                let own: Vec<f64> = (0..each).map(|l| chain.latent_values()[(i, l)]).collect();
                data.y[(i, 0)] = model.likelihood.sample(extra, &own, &mut rng);
            }
            chain.sweep(&Series::new(&model, &data).unwrap()).unwrap();
            for l in 0..each {
                let d = |i: usize| chain.latent_values()[(i, l)] - (0.3 - 0.4 * l as f64);
                values[3 * l].push(d(0));
                values[3 * l + 1].push(d(1) * d(1) - 1.3);
                values[3 * l + 2].push(d(0) * d(1) - covariances[l]);
            }
        }
        for (at, values) in values.into_iter().enumerate() {
            let [mean, error] = mean_of(&[values]);
            let what = ["mean", "variance", "covariance"][at % 3];
            assert!(
                mean.abs() < 4.5 * error,
                "{spec}: the {what} of latent function {} is off by {mean} ± {error}",
                at / 3
            );
        }
    }
}

/// Rows in disorder, two of them at one place and one without a target.
fn series(spec: &str) -> InMemory {
    let likelihood = likelihoods::parse(spec).unwrap();
    let mut rng = rng::stream(3, spec);
    let place = |i: usize| 0.15 * ((i * 17) % 60) as f64 + if i == 9 { 0.15 } else { 0.0 };
    let x = Mat::from_fn(60, 1, |i, _| place(i));
    let y = Mat::from_fn(60, 1, |i, _| {
        let f = [(1.1 * x[(i, 0)]).sin(), 0.4 * (0.7 * x[(i, 0)]).cos()];
        if i == 20 {
            f64::NAN
        } else {
            likelihood.sample(1.0, &f[..likelihood.latents()], &mut rng)
        }
    });
    InMemory::new(x, y).unwrap()
}

#[test]
fn chains_have_the_law_of_those_with_a_full_covariance() {
    for spec in [
        "student-t(df=4.6, scale=0.4)",
        "bernoulli(link=logit)",
        "heteroscedastic(scale=logistic, precision=2.6)",
    ] {
        let data = series(spec);
        let options = GibbsOptions { chains: 2, draws: 3000, ..GibbsOptions::default() };
        let mut watch = |_: usize, _: usize| ControlFlow::Continue(());
        let own = model("gibbs-markov", spec);
        let found = sample_from(&own, &data, &options, Going::default(), &mut watch).unwrap();
        let right = gibbs::sample(&model("gibbs", spec), &data, &options, &mut watch).unwrap();
        let mixing = found.mixing(1.0).unwrap();
        assert!(mixing.split_rhat < 1.02 && mixing.chains == 2, "{spec}: {mixing:?}");
        for l in 0..own.likelihood.latents() {
            for i in (0..60).step_by(5) {
                for square in [false, true] {
                    let of = |draws: &super::Draws| {
                        let chain = |chain: &Vec<Mat<f64>>| {
                            let value = |f: &Mat<f64>| {
                                // the second moment with a neighbour
                                if square { f[(i, l)] * f[((i + 53) % 60, l)] } else { f[(i, l)] }
                            };
                            chain.iter().map(value).collect::<Vec<f64>>()
                        };
                        mean_of(&draws.f.iter().map(chain).collect::<Vec<_>>())
                    };
                    let ([a, s], [b, t]) = (of(&found), of(&right));
                    let error = (s * s + t * t).sqrt();
                    assert!((a - b).abs() < 4.5 * error, "{spec} {l} {i}: {a} and {b} ± {error}");
                    assert!(error < 0.06, "{spec}: ± {error}");
                }
            }
        }
    }
}

#[test]
fn draws_depend_only_on_the_seed() {
    let (model, data) =
        (model("gibbs-markov", "bernoulli(link=logit)"), rows(&[1.0, 0.0, 1.0], 1.0));
    let options =
        GibbsOptions { chains: 3, draws: 20, burn_in: 5, thin: 2, ..GibbsOptions::default() };
    let run = |threads: usize, options: &GibbsOptions| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut watch = |_: usize, _: usize| ControlFlow::Continue(());
        pool.install(|| sample_from(&model, &data, options, Going::default(), &mut watch).unwrap())
    };
    let (one, two) = (run(1, &options), run(2, &options));
    assert_eq!((&one.f, &one.z), (&two.f, &two.z));
    assert_ne!(one.f[0], one.f[1]);
    assert_ne!(one.f, run(1, &GibbsOptions { seed: 1, ..options }).f);
}

#[test]
fn more_draws_than_memory_takes_are_refused_with_how_many_there_may_be() {
    let model = model("gibbs-markov", "laplace(scale=0.6)");
    let data = InMemory::new(Mat::zeros(200_000, 1), Mat::zeros(200_000, 1)).unwrap();
    let check = |draws: usize| {
        let options = GibbsOptions { draws, ..GibbsOptions::default() };
        super::check_rows(Sampler::GibbsSeries, &model, &data, &options)
    };
    check(167).unwrap();
    let error = check(500).unwrap_err().to_string();
    assert!(error.contains("draws") && error.contains("at most 167"), "{error}");
}

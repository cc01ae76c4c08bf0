//! Draws with inducing points: paths without U-turns, and the Gaussian of a particle flow.

use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Fitted, Of, fit};
use sparsegp::linalg::Mat;

fn counts() -> Dataset {
    let x = Mat::from_fn(80, 1, |i, _| 0.075 * i as f64);
    let y = Mat::from_fn(80, 1, |i, _| {
        let rate = (1.0 + (1.3 * x[(i, 0)]).sin()).exp();
        (rate + 1.5 * ((i * i) as f64 * 0.618).fract()).floor()
    });
    Dataset::from_arrays(x, y, false).expect("a data set")
}

fn options(method: &str, likelihood: &str) -> FitOptions {
    let mut options = FitOptions {
        method: method.into(),
        likelihood: Some(likelihood.into()),
        kernel: "rbf(variance=1.4, lengthscales=[0.9])".into(),
        // the poisson likelihood has no parameters
        freeze: match likelihood {
            "poisson" => vec!["kernel".into(), "inducing".into()],
            _ => vec!["kernel".into(), "inducing".into(), "likelihood".into()],
        },
        mean: Some("zero".into()),
        inducing: Some(9),
        batches: None,
        seed: 4,
        ..FitOptions::default()
    };
    (options.gibbs.draws, options.gibbs.burn_in) = (500, 300);
    options
}

fn fitted(method: &str, likelihood: &str) -> Fitted {
    fit(&counts(), &options(method, likelihood), &Cpu::default(), &mut ()).expect("a fit")
}

/// Means and standard deviations of f at some places.
fn moments(model: &Fitted) -> Vec<(f64, f64)> {
    let x = Mat::from_fn(13, 1, |i, _| 0.1 + 0.49 * i as f64);
    let (mean, variance) = model.predict(x.as_ref(), Of::Latent).expect("predictions");
    (0..13).map(|i| (mean[(i, 0)], variance[(i, 0)].sqrt())).collect()
}

#[test]
fn paths_and_gibbs_chains_have_one_law() {
    let nuts = moments(&fitted("nuts-sparse", "poisson-logistic(rate=20)"));
    let gibbs = moments(&fitted("gibbs-sparse", "poisson-logistic(rate=20)"));
    for ((a, s), (b, t)) in nuts.iter().zip(&gibbs) {
        // of four chains of 500 draws
        assert!((a - b).abs() < 0.15 * t && (s / t - 1.0).abs() < 0.12, "{nuts:?} {gibbs:?}");
    }
}

#[test]
fn the_flow_finds_the_best_gaussian() {
    for likelihood in ["poisson", "student-t(df=5, scale=0.8)"] {
        let flow = moments(&fitted("gpf", likelihood));
        let q = moments(&fitted("tsvgp", likelihood));
        for ((a, s), (b, t)) in flow.iter().zip(&q) {
            assert!((a - b).abs() < 0.12 * t && (s / t - 1.0).abs() < 0.1, "{flow:?} {q:?}");
        }
    }
}

#[test]
fn hyperparameters_are_sampled_with_inducing_points() {
    let mut options = options("nuts-sparse", "poisson");
    options.freeze = vec!["inducing".into()];
    options.kernel = "rbf".into();
    options.gibbs.hyperparameters = true;
    (options.gibbs.draws, options.gibbs.chains) = (150, 2);
    let model = fit(&counts(), &options, &Cpu::default(), &mut ()).expect("a fit");
    assert_eq!(model.posterior.draws().len(), 300);
    let mixing = model.report.as_ref().and_then(|r| r.mixing.clone()).expect("chains");
    assert!(mixing.hyperparameters.len() >= 2, "{mixing:?}");
    let lengths: Vec<f64> = model.posterior.hyperparameters().iter().map(|h| h[1]).collect();
    let mean = lengths.iter().sum::<f64>() / 300.0;
    let sd = (lengths.iter().map(|l| (l - mean).powi(2)).sum::<f64>() / 300.0).sqrt();
    assert!(mean > 0.2 && mean < 4.0 && sd > 0.02, "{mean} {sd}");
    // the file has all of it
    let bytes = sparsegp::io::to_bytes(&model).expect("bytes");
    let again = sparsegp::io::from_bytes(&bytes).expect("a model");
    assert_eq!(moments(&again), moments(&model));
}

#[test]
fn what_cannot_be_is_said() {
    let refused = |change: &dyn Fn(&mut FitOptions), word: &str| {
        let mut own = options("gpf", "poisson");
        change(&mut own);
        let error = fit(&counts(), &own, &Cpu::default(), &mut ()).expect_err(word).to_string();
        assert!(error.contains(word), "{error}");
    };
    refused(&|o| o.gibbs.hyperparameters = true, "no hyperparameters");
    refused(&|o| o.gibbs.thin = 2, "independent draws");
    refused(&|o| o.gibbs.target = sparsegp::samplers::Target::Fitc, "`fitc`");
}

#[test]
fn what_a_sampler_cannot_take_is_refused_before_the_training() {
    use sparsegp::data::InMemory;
    use sparsegp::train::{Event, Observer};
    use std::ops::ControlFlow;
    struct Trained(usize);
    impl Observer for Trained {
        fn event(&mut self, event: Event<'_>) -> ControlFlow<()> {
            self.0 += usize::from(matches!(event, Event::Iteration(_) | Event::Batch { .. }));
            ControlFlow::Continue(())
        }
    }
    let refused = |dataset: &Dataset, own: &FitOptions, words: &str| {
        let mut seen = Trained(0);
        let error = fit(dataset, own, &Cpu::default(), &mut seen).expect_err("a refusal");
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(seen.0, 0, "{}: {error}", own.method);
    };
    let mut weighted = counts();
    let rows = sparsegp::fit::sample_rows(&*weighted.source, 80, 0).expect("rows");
    let weights = (0..80).map(|i| 0.5 + (i % 3) as f64).collect();
    weighted.source = Box::new(InMemory { weights, ..rows });
    for method in ["nuts-sparse", "gibbs-sparse", "nuts", "ess"] {
        let likelihood =
            if method.starts_with("gibbs") { "poisson-logistic(rate=20)" } else { "poisson" };
        let own = FitOptions { freeze: Vec::new(), ..options(method, likelihood) };
        let inducing = method.contains("sparse").then_some(9);
        refused(&weighted, &FitOptions { inducing, ..own }, "weights");
    }
    let few = |particles| {
        let mut own = FitOptions { freeze: Vec::new(), ..options("gpf", "poisson") };
        own.gibbs.particles = Some(particles);
        own
    };
    refused(&counts(), &few(9), "more than the 9 whitened variables");
}

//! Default starts end where a start at the truth ends: no function is lost, no noise is taken for one.

use crate::stochastic::{dataset, draws};
use crate::support::{fit, predict, prepare, value};
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};
use sparsegp::data::InMemory;
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Fitted, Hyperparameters};
use sparsegp::likelihoods;
use sparsegp::linalg::Mat;
use sparsegp::params::Prior;
use sparsegp::rng::{stream, uniform};

fn with(likelihood: &str) -> FitOptions {
    FitOptions {
        kernel: "rbf".into(),
        likelihood: Some(likelihood.into()),
        ..FitOptions::default()
    }
}

fn normal(rng: &mut impl Rng) -> f64 {
    StandardNormal.sample(rng)
}

fn objective(fitted: &Fitted) -> f64 {
    fitted.objective().expect("it was trained")
}

/// The default fit is no more than one nat below the best of starts at these lengthscales (standard deviations), of
/// which one is near the truth.
fn no_worse(name: &str, rows: &InMemory, likelihood: &str, starts: &[&[f64]]) -> Fitted {
    let data = || dataset(rows.clone(), false);
    let default = fit(&data(), &with(likelihood)).expect("a fit");
    for lengths in starts {
        let path = |l: usize| match lengths.len() {
            1 => "kernel.lengthscales".to_owned(),
            _ => format!("kernels[{l}].lengthscales"),
        };
        let set = lengths.iter().enumerate().map(|(l, v)| (path(l), vec![*v])).collect();
        let own = FitOptions { set, pilot: 0, ..with(likelihood) };
        let other = fit(&data(), &own).expect("a fit");
        let behind = objective(&other) - objective(&default);
        assert!(behind < 1.0, "{name} from {lengths:?}: {behind} nats behind");
    }
    default
}

#[test]
fn wavy_levels_are_not_a_constant() {
    let likelihood = "ordinal(classes=3)";
    let rows = draws(150, likelihood, 1.0, |x| vec![2.5 * (3.0 * x).sin()]);
    let fitted = no_worse("ordinal", &rows, likelihood, &[&[0.3], &[1.7]]);
    assert!(value(&fitted.model, "kernel.lengthscales")[0] < 1.0);
    let judged = &fitted.report.as_ref().expect("trained").judged;
    assert!(judged.len() > 1 && judged.iter().all(|one| one.objective.is_finite()), "{judged:?}");
}

/// A mean that is a constant, and a wavy noise: the second function has its own start.
#[test]
fn noise_that_waves_about_a_flat_mean_is_found() {
    let rows = draws(150, "heteroscedastic", 1.0, |x| vec![0.3, -0.7 + 1.4 * (3.0 * x).sin()]);
    no_worse("flat mean", &rows, "heteroscedastic", &[&[1.7, 0.3], &[1.7, 1.7], &[0.3, 0.3]]);
}

/// Exposures over six decades: rows that saw nobody are guesses of nothing.
#[test]
fn counts_with_uneven_exposures_are_not_a_constant() {
    let likelihood = likelihoods::parse("poisson").expect("a likelihood");
    let mut rng = stream(11, "counts");
    let x = Mat::from_fn(150, 1, |_, _| 6.0 * uniform(&mut rng) - 3.0);
    let exposure: Vec<f64> = (0..150).map(|_| 10_f64.powf(6.0 * uniform(&mut rng) - 1.0)).collect();
    let y = Mat::from_fn(150, 1, |i, _| {
        likelihood.sample(exposure[i], &[-7.0 + 1.2 * (3.0 * x[(i, 0)]).sin()], &mut rng)
    });
    let rows = InMemory { extra: exposure, ..InMemory::new(x, y).expect("as many") };
    let fitted = no_worse("poisson", &rows, "poisson", &[&[0.3], &[1.7]]);
    assert!(value(&fitted.model, "kernel.variance")[0] > 0.1);
}

/// Rows of next to no weight, and of a large known noise, say as little to the start as to the objective.
#[test]
fn rows_that_count_little_do_not_choose_the_start() {
    let mut rng = stream(12, "weights");
    let x = Mat::from_fn(60, 1, |_, _| 6.0 * uniform(&mut rng) - 3.0);
    let wild: Vec<bool> = (0..60).map(|i| i % 4 == 0).collect();
    let y = Mat::from_fn(60, 1, |i, _| {
        let own = (3.0 * x[(i, 0)]).sin() + 0.05 * normal(&mut rng);
        own + if wild[i] { 30.0 * normal(&mut rng) } else { 0.0 }
    });
    let of = |small: f64, large: f64| wild.iter().map(move |w| if *w { small } else { large });
    let rows = InMemory::new(x, y).expect("as many");
    let weighted = InMemory { weights: of(1e-6, 1.0).collect(), ..rows.clone() };
    let noisy = InMemory { extra: of(900.0, 0.0).collect(), ..rows };
    for (name, rows) in [("weights", weighted), ("noise", noisy)] {
        let fitted = no_worse(name, &rows, "gaussian", &[&[0.3], &[1.7]]);
        let at = Mat::from_fn(20, 1, |i, _| -2.5 + 0.25 * i as f64);
        let (mean, _) = predict(&fitted, &at);
        let square = (0..20).map(|i| (mean[i] - (3.0 * at[(i, 0)]).sin()).powi(2)).sum::<f64>();
        assert!((square / 20.0).sqrt() < 0.1, "{name}: {}", (square / 20.0).sqrt());
    }
}

/// A function that may not move is a constant whatever the start: that is said, with a trend that it misses
/// and without one.
#[test]
fn a_constant_beside_a_trend_is_said() {
    for (slope, warned) in [(0.5, true), (0.0, false)] {
        let rows = draws(400, "poisson", 1.0, |x| vec![0.7 + slope * x]);
        let own = FitOptions {
            set: vec![("kernel.variance".into(), vec![1e-9])],
            freeze: vec!["kernel.variance".into()],
            ..with("poisson")
        };
        let fitted = fit(&dataset(rows, false), &own).expect("a fit");
        let said = |words: &str| fitted.warnings.iter().filter(|own| own.contains(words)).count();
        let trend = said("the model is a constant, although the targets have a trend");
        assert_eq!(trend, usize::from(warned), "{slope}: {:?}", fitted.warnings);
        assert_eq!(said("the model is a constant"), 1, "{slope}: {:?}", fitted.warnings);
    }
}

/// Targets that have nothing to do with the inputs make a model that says so; others do not.
#[test]
fn a_default_fit_that_explains_nothing_is_said() {
    for (part, warned) in [(0.0, true), (1.0, false)] {
        let mut rng = stream(21, "rows");
        let x = Mat::from_fn(40, 2, |_, _| 30.0 + 4.0 * normal(&mut rng));
        let y = Mat::from_fn(40, 1, |i, _| 7.0 + part * x[(i, 1)] + 2.0 * normal(&mut rng));
        let rows = InMemory::new(x, y).expect("as many");
        let fitted = fit(&dataset(rows, true), &FitOptions::default()).expect("a fit");
        let said = fitted.warnings.iter().any(|own| own.contains("found nothing in the inputs"));
        assert_eq!(said, warned, "{part}: {:?}", fitted.warnings);
    }
}

/// 30 inputs, and rows of a linear function.
fn many_inputs(n: usize) -> (Mat<f64>, Mat<f64>) {
    let mut rng = stream(13, "inputs");
    let x = Mat::from_fn(n, 30, |_, _| normal(&mut rng));
    let y = Mat::from_fn(n, 1, |i, _| {
        (0..30).map(|q| x[(i, q)]).sum::<f64>() / 30_f64.sqrt() + 0.2 * normal(&mut rng)
    });
    (x, y)
}

/// Intervals of 95 % hold: without the prior of lengthscales they do not.
#[test]
fn lengthscales_of_many_inputs_have_a_weak_prior() {
    let (x, y) = many_inputs(490);
    let (rows, new) = (90, 400);
    let part =
        |a: &Mat<f64>, from: usize, n: usize| Mat::from_fn(n, a.ncols(), |i, j| a[(from + i, j)]);
    let data =
        || Dataset::from_arrays(part(&x, 0, rows), part(&y, 0, rows), true).expect("a table");
    let at = part(&x, rows, new);
    let inside = |fitted: &Fitted| {
        let (mean, variance) = predict(fitted, &at);
        let hit = |i: &usize| (mean[*i] - y[(rows + i, 0)]).abs() < 1.96 * variance[*i].sqrt();
        (0..new).filter(hit).count() as f64 / new as f64
    };
    let hyperparameters = Hyperparameters::PlugIn;
    let usual = FitOptions { hyperparameters, kernel: "rbf".into(), ..FitOptions::default() };
    let default = fit(&data(), &usual).expect("a fit");
    let without = FitOptions { lengthscale_prior: false, ..usual };
    let without = fit(&data(), &without).expect("a fit");
    assert!((0.85..=0.99).contains(&inside(&default)), "{}", inside(&default));
    assert!(inside(&without) < inside(&default) - 0.05, "{}", inside(&without));
    // what is reported is only the log evidence, so that kernels can be compared
    let report = default.report.as_ref().expect("trained");
    let evidence = default.model.evaluate(&Cpu::default(), &*data().source).expect("a value").value;
    assert!(
        (report.objective - evidence).abs() < 1e-9 * evidence.abs(),
        "{} {evidence}",
        report.objective
    );
    let last = report.trace.last().expect("iterations").objective;
    assert!((last - evidence).abs() < 1e-9 * evidence.abs(), "{last} {evidence}");
    assert!(default.model.assumed_log_prior() < 0.0 && without.model.assumed_log_prior() == 0.0);
}

/// One lengthscale has no default prior, nor have given ones, nor inputs on different scales, which
/// a warning states.
#[test]
fn the_default_prior_is_of_several_free_lengthscales() {
    let (x, y) = many_inputs(40);
    let of = |kernel: &str, standardise: bool| {
        let mut x = x.clone();
        x.col_as_slice_mut(3).iter_mut().for_each(|v| *v *= 40.0);
        let data = Dataset::from_arrays(x, y.clone(), standardise).expect("a table");
        let own = FitOptions { kernel: kernel.into(), pilot: 0, ..FitOptions::default() };
        let (model, _, warnings) = prepare(&data, &own).expect("a model");
        let found = model.params().into_iter().find(|(path, _)| path.ends_with("lengthscales"));
        (found.expect("lengthscales").1.prior, warnings)
    };
    let (prior, warnings) = of("rbf", true);
    // the mode is at √30
    let Some(Prior::LogNormal { loc, scale }) = prior else { panic!("{prior:?}") };
    assert!(((loc - scale * scale).exp() - 30_f64.sqrt()).abs() < 1e-9 && warnings.is_empty());
    for kernel in ["rbf(ard=false)", "rbf(active_dims=[3])"] {
        assert_eq!(of(kernel, true), (None, Vec::new()), "{kernel}");
    }
    let given = format!("matern52(lengthscales={:?})", [0.7; 30]);
    assert_eq!(of(&given, true).0, None);
    let own = "rbf(lengthscales={prior: {type: gamma, concentration: 2, rate: 0.7}})";
    assert!(matches!(of(own, true).0, Some(Prior::Gamma { .. })));
    let (prior, warnings) = of("rbf", false);
    assert!(prior.is_none() && warnings[0].contains("standardise the inputs"), "{warnings:?}");
}

/// Where all hyperparameters are known nothing is tried out first, and the fit is the one without trials.
#[test]
fn nothing_is_tried_where_every_hyperparameter_is_known() {
    let rows = dataset(draws(120, "poisson", 1.0, |x| vec![0.4 + 1.1 * (2.0 * x).sin()]), false);
    let known: Vec<(String, Vec<f64>)> = [("variance", 1.3), ("lengthscales", 0.7)]
        .map(|(name, value)| (format!("kernel.{name}"), vec![value]))
        .to_vec();
    let options = |set: &[(String, Vec<f64>)], pilot: usize| FitOptions {
        method: "tsvgp".into(),
        inducing: Some(15),
        set: set.to_vec(),
        freeze: vec!["mean".into()],
        pilot,
        ..with("poisson")
    };
    let judged = |fitted: &Fitted| fitted.report.as_ref().expect("trained").judged.len();
    let fitted = fit(&rows, &options(&known, 1000)).expect("a fit");
    assert_eq!(judged(&fitted), 0);
    let plain = fit(&rows, &options(&known, 0)).expect("a fit");
    assert_eq!(objective(&fitted).to_bits(), objective(&plain).to_bits());
    // one that is not known is reason enough
    let some = fit(&rows, &options(&known[..1], 1000)).expect("a fit");
    assert!(judged(&some) > 1);
}

/// Without a pilot starts are not judged, but what has ended as a constant is said all the same.
#[test]
fn constants_are_said_without_a_pilot() {
    let mut rng = stream(8, "a trend");
    let x = Mat::from_fn(60, 1, |_, _| 6.0 * uniform(&mut rng));
    let y = Mat::from_fn(60, 1, |i, _| 4.0 + 2.5 * x[(i, 0)] + 0.3 * normal(&mut rng));
    let rows = InMemory::new(x, y).expect("rows");
    let dataset = Dataset::from_rows(rows, true).expect("a table");
    for (kernel, constant) in [
        (
            r#"{"type": "rbf", "lengthscales": {"value": 1e5, "frozen": true}, "variance": {"value": 1.0, "frozen": true}}"#,
            true,
        ),
        ("rbf(lengthscales=1.3)", false),
        // asked for by name
        ("constant", false),
    ] {
        let options = FitOptions { kernel: kernel.into(), pilot: 0, ..FitOptions::default() };
        let fitted = fit(&dataset, &options).expect("a fit");
        let said = fitted.warnings.iter().any(|text| text.contains("the model is a constant"));
        assert_eq!(said, constant, "{kernel}: {:?}", fitted.warnings);
    }
}

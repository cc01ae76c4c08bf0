//! Deep models like any others: fitted, predicted with, saved.

use crate::support::{After, fit, value};
use sparsegp::data::InMemory;
use sparsegp::deep::{Deep, LastBound, Paths, StepOptions};
use sparsegp::engine::Cpu;
use sparsegp::fit::{BatchOptions, Dataset, FitOptions, Fitted, Of};
use sparsegp::linalg::{Jitter, Mat, column};
use sparsegp::rng::{stream, uniform};
use sparsegp::train::{StochasticOptions, Surroundings, TrainingState, train_layers};
use sparsegp::{io, methods};

/// Rows of two inputs on different scales, and targets that jump: what a deep model is for.
fn rows(n: usize, seed: u64) -> InMemory {
    let mut rng = stream(seed, "rows of a deep model");
    let x = Mat::from_fn(
        n,
        2,
        |_, q| if q == 0 { 20.0 * uniform(&mut rng) } else { uniform(&mut rng) },
    );
    let y = Mat::from_fn(n, 1, |i, _| {
        let jump = if x[(i, 0)] > 9.0 { 400.0 } else { 100.0 };
        jump + 30.0 * x[(i, 1)] + 4.0 * (uniform(&mut rng) - 0.5)
    });
    InMemory::new(x, y).expect("rows")
}

fn options(method: &str, epochs: usize) -> FitOptions {
    let entry = methods::find(method).expect("a method");
    let mut batches = BatchOptions { size: 50, ..BatchOptions::of(entry.method) };
    batches.training.epochs = Some(epochs);
    FitOptions {
        method: method.into(),
        inducing: Some(15),
        seed: 4,
        batches: Some(batches),
        ..FitOptions::default()
    }
}

fn fitted(method: &str, epochs: usize) -> Fitted {
    let dataset = Dataset::from_rows(rows(200, 1), true).expect("a table");
    fit(&dataset, &options(method, epochs)).expect("a deep model")
}

/// All that is predicted, in the data's units.
fn answers(fitted: &Fitted) -> Vec<f64> {
    let new = rows(30, 2);
    let x = new.x.as_ref();
    let (mean, variance) = fitted.predict(x, Of::Observations).expect("predictions");
    let (f, s) = fitted.predict(x, Of::Latent).expect("functions");
    let quantiles = fitted.quantiles(x, &[], &[0.1, 0.8], Of::Observations).expect("quantiles");
    let density = fitted.log_density(x, new.y.as_ref(), &[]).expect("densities");
    let draws = fitted.sample_y(x.subrows(0, 5), &[], 2, 7).expect("draws");
    let all = [mean, variance, f, s].into_iter().chain(quantiles).chain(draws);
    let mut numbers: Vec<f64> = all.flat_map(|a| column(a.as_ref(), 0).to_vec()).collect();
    numbers.extend(density);
    numbers
}

#[test]
fn every_kind_predicts_as_its_layers_do_and_is_read_back_to_the_bit() {
    for method in [
        "deep",
        "deep(layers=3, kind=w)",
        "deep(kind=m, functions=true, samples=2)",
        "deep(layers=3, width=1, kind=r)",
        "deep(layers=1)",
        "deep(layers=3, kind=w, skip=true)",
        "deep(layers=3, kernels=own)",
        "deep(layers=3, kind=m, skip=true, kernels=own)",
    ] {
        let fitted = fitted(method, 10);
        assert_eq!(fitted.model.method.name(), methods::find(method).unwrap().name);
        let report = fitted.report.as_ref().unwrap();
        assert_eq!(report.iterations, 40);
        assert!(report.objective.is_finite() && report.trace.len() == 10, "{method}");
        // the layers by themselves
        let deep = fitted.model.to_deep(LastBound::Expectation).expect("layers");
        assert_eq!(deep.layers.len(), fitted.model.method.architecture().unwrap().layers);
        let new = rows(30, 2);
        let mut x = new.x.clone();
        fitted.scaler.scale_x(x.as_mut()).unwrap();
        let predictor = deep.predictor().expect("a predictor");
        let mixture =
            predictor.predict(x.as_ref(), 100, &Paths::Streams { seed: 0 }).expect("paths");
        let (mean, variance) = mixture.observations(&[]).expect("moments");
        let (own, spread) = fitted.predict(new.x.as_ref(), Of::Observations).unwrap();
        let scale = fitted.scaler.y_scale[0];
        for i in 0..30 {
            let apart = (own[(i, 0)] - fitted.scaler.y_mean[0]) / scale - mean[(i, 0)];
            assert!(apart.abs() < 1e-8, "{method}: {apart}");
            let (a, b) = (spread[(i, 0)] / (scale * scale), variance[(i, 0)]);
            assert!((a - b).abs() < 1e-8 * (1.0 + b), "{method}: {a} {b}");
        }
        let again = io::from_bytes(&io::to_bytes(&fitted).expect("bytes")).expect("a model");
        let bits =
            |fitted: &Fitted| answers(fitted).into_iter().map(f64::to_bits).collect::<Vec<_>>();
        assert_eq!(bits(&fitted), bits(&again), "{method}");
    }
}

/// Layers after the first see the inputs where that is asked for, functions have separate kernels,
/// and hidden layers can be looked at: the first is its posterior, the second a mixture over paths.
#[test]
fn layers_that_see_the_inputs_and_kernels_for_every_function() {
    let fitted = fitted("deep(layers=3, width=3, kind=w, skip=true, kernels=own)", 20);
    let hidden = &fitted.model.hidden;
    assert_eq!(hidden.iter().map(|l| l.groups.len()).collect::<Vec<_>>(), [3, 3]);
    assert_eq!(hidden.iter().map(sparsegp::deep::Layer::inputs).collect::<Vec<_>>(), [2, 5]);
    assert_eq!(fitted.model.inducing_points().unwrap().ncols(), 5);
    let lengthscales = |path: &str| value(&fitted.model, path);
    let (a, b) = (
        lengthscales("layers[1].kernels[0].lengthscales"),
        lengthscales("layers[1].kernels[2].lengthscales"),
    );
    assert!(a.len() == 5 && a != b, "{a:?} {b:?}");
    // parameters of the first layer's kernels in the data's units
    let rows = fitted.parameters();
    let first = rows.iter().find(|row| row.path == "layers[0].kernels[1].lengthscales").unwrap();
    let units = first.data_units.as_ref().unwrap();
    assert!((units[0] / first.value[0] - fitted.scaler.x_scale[0]).abs() < 1e-9);

    let new = rows_of(7);
    let layers = fitted.hidden_layers(new.as_ref()).expect("layers");
    let mut x = new.clone();
    fitted.scaler.scale_x(x.as_mut()).unwrap();
    let deep = fitted.model.to_deep(LastBound::Expectation).expect("a deep model");
    let own = deep.layers[0].forward(x.as_ref()).expect("marginals");
    assert_eq!(layers.len(), 2);
    for (i, p) in (0..7).flat_map(|i| (0..3).map(move |p| (i, p))) {
        assert!((layers[0].0[(i, p)] - own.mean[(i, p)]).abs() < 1e-9);
        let variance = own.s[(i, p)] + own.r[(i, p)];
        assert!((layers[0].1[(i, p)] - variance).abs() < 1e-9 * (1.0 + variance));
        assert!(layers[1].1[(i, p)] > 0.0);
    }
    let wide = Mat::zeros(2, 3);
    assert!(fitted.hidden_layers(wide.as_ref()).is_err());
    for (wrong, part) in [("kernels=all", "shared"), ("skip=1", "true or false")] {
        let error = methods::find(&format!("deep({wrong})")).err().map(|e| e.to_string());
        assert!(error.as_ref().is_some_and(|e| e.contains(part)), "{error:?}");
    }
}

fn rows_of(n: usize) -> Mat<f64> {
    rows(n, 9).x
}

/// A jump, which a stationary kernel smooths over.
#[test]
fn two_layers_learn_a_jump() {
    let (deep, shallow) = (fitted("deep(kind=w)", 400), fitted("deep(layers=1, kind=w)", 400));
    let new = rows(200, 3);
    let density = |fitted: &Fitted| {
        let all = fitted.log_density(new.x.as_ref(), new.y.as_ref(), &[]).unwrap();
        all.iter().sum::<f64>() / 200.0
    };
    let (deep, shallow) = (density(&deep), density(&shallow));
    assert!(deep > shallow + 0.3, "{deep} {shallow}");
}

/// Draws of all layers jointly have, row by row, the moments of many paths.
#[test]
fn draws_and_paths_agree() {
    let fitted = fitted("deep(kind=w)", 30);
    let new = rows(3, 5);
    let mut x = new.x.clone();
    fitted.scaler.scale_x(x.as_mut()).unwrap();
    let deep = fitted.model.to_deep(LastBound::Expectation).unwrap();
    let (count, paths) = (8000, Paths::Streams { seed: 1 });
    let mixture = deep.predictor().unwrap().predict(x.as_ref(), count, &paths).unwrap();
    let (mean, variance) = mixture.observations(&[]).unwrap();
    let draws = fitted.sample_y(new.x.as_ref(), &[], count, 11).unwrap();
    for i in 0..3 {
        let at = |d: &Mat<f64>| (d[(i, 0)] - fitted.scaler.y_mean[0]) / fitted.scaler.y_scale[0];
        let own = draws.iter().map(|d| (at(d) - mean[(i, 0)]) / variance[(i, 0)].sqrt());
        let (sum, square) = own.fold((0.0, 0.0), |(s, q), z| (s + z, q + z * z));
        let (m, v) = (sum / count as f64, square / count as f64);
        // five errors of means of 8000 draws and paths; squares have heavier tails than a normal's
        let error = 5.0 * (2.0 / count as f64).sqrt();
        assert!(m.abs() < error && (v - 1.0).abs() < 3.0 * error, "{i}: {m} {v}");
    }
}

#[test]
fn what_a_deep_model_cannot_be_or_do_is_said() {
    for (method, part) in [
        ("deep(layer=3)", "nearest: layers"),
        ("deep(layers=0)", "from 1 to"),
        ("deep(kind=q)", "kind=q"),
        ("deep(functions=true)", "kind=w"),
        ("deep(3)", "option=value"),
        ("svgp(layers=2)", "deep(layers=3)"),
    ] {
        let error = methods::find(method).map(|entry| entry.name).unwrap_err().to_string();
        assert!(error.contains(part), "{method}: {error}");
    }
    assert_eq!(methods::find("DEEP( layers = 3 ,kind=L)").unwrap().name, "deep(layers=3)");
    let dataset = Dataset::from_rows(rows(60, 1), true).unwrap();
    let freeze = ["layers[0].kernel", "layers[0].inducing.points", "layers[0].q", "kernel", "mean"];
    let freeze = freeze.into_iter().chain(["likelihood", "inducing.points", "q"]);
    let freeze = freeze.map(String::from).collect();
    let labels = "coregion(output_dim=2, rank=1, active_dims=[0]) * rbf(active_dims=[1])";
    for (changed, part) in [
        (FitOptions { kernel: labels.into(), ..options("deep", 1) }, "labels"),
        (FitOptions { freeze, ..options("deep", 1) }, "frozen"),
        (FitOptions { jitter: Jitter::Relative(1e-3), ..options("deep", 1) }, "jitter"),
        (FitOptions { restarts: 2, ..options("deep", 1) }, "restarts"),
        (FitOptions { mean: Some("linear".into()), ..options("deep", 1) }, "mean"),
        (FitOptions { batches: None, ..options("deep", 1) }, "at once"),
        (FitOptions { kernel: "rbf; rbf".into(), ..options("deep", 1) }, "kernel"),
        (
            FitOptions {
                likelihood: Some("coregionalised(outputs=1, latents=1)".into()),
                ..options("deep", 1)
            },
            "mixes",
        ),
    ] {
        let error = fit(&dataset, &changed).unwrap_err().to_string();
        assert!(error.contains(part), "{part}: {error}");
    }
    let fitted = fitted("deep", 1);
    let x = rows(4, 9).x;
    let same = Dataset::from_rows(rows(60, 1), fitted.scaler.clone()).unwrap();
    let said = [
        fitted.predict_covariance(x.as_ref(), &[], Of::Latent).map(|_| ()),
        fitted.predict_gradients(x.as_ref()).map(|_| ()),
        fitted.sample_functions(1, 10, 0).map(|_| ()),
        fitted.inducing_quality(&same, &Cpu::default(), &Default::default()).map(|_| ()),
        sparsegp::fit::update(&fitted, &same, &Default::default(), &mut |_, _| Ok(())).map(|_| ()),
    ];
    for error in said {
        let error = error.unwrap_err().to_string();
        assert!(error.contains("one layer"), "{error}");
    }
}

#[test]
fn a_training_is_watched_and_ends_by_the_clock() {
    let dataset = Dataset::from_rows(rows(200, 1), true).unwrap();
    let long = FitOptions { time_limit: Some(0.5), ..options("deep", 100_000) };
    let report = fit(&dataset, &long).expect("what there is").report.unwrap();
    assert!(report.iterations > 0 && report.iterations < 100_000, "{}", report.iterations);
    assert!(report.stopped.contains("time limit"), "{}", report.stopped);
}

#[test]
fn a_training_that_was_ended_resumes_to_the_same_bits() {
    let dataset = Dataset::from_rows(rows(200, 1), true).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (method, natural) in [
        ("deep(layers=3)", None),
        ("deep(kind=r)", None),
        ("deep(kind=w)", Some(0.05)),
        ("deep(kind=m, functions=true)", None),
    ] {
        let mut whole = options(method, 8);
        whole.freeze = vec!["inducing.points".into()];
        whole.batches.as_mut().unwrap().training.natural = natural;
        let straight = fit(&dataset, &whole).expect("a fit");
        let path = folder.path().join(format!("{method}.safetensors"));
        let kept = FitOptions { checkpoint: Some(path.clone()), ..whole.clone() };
        let ended = sparsegp::fit::fit(&dataset, &kept, &Cpu::default(), &mut After(13)).unwrap();
        assert_eq!(ended.report.as_ref().unwrap().iterations, 13, "{method}");
        // the file is a model like any other
        assert_eq!(io::load(&path).unwrap().model.hidden.len(), straight.model.hidden.len());
        let resumed = fit(&dataset, &kept).expect("the rest");
        let (a, b) = (straight.report.as_ref().unwrap(), resumed.report.as_ref().unwrap());
        assert_eq!(a.objective.to_bits(), b.objective.to_bits(), "{method}");
        assert_eq!((a.iterations, a.trace.len()), (b.iterations, b.trace.len()), "{method}");
        let bits = |fitted: &Fitted| -> Vec<(u64, bool)> {
            let params = fitted.model.params();
            let own = params.iter();
            own.flat_map(|(_, p)| p.value().iter().map(|v| (v.to_bits(), p.frozen))).collect()
        };
        assert!(bits(&straight) == bits(&resumed), "{method}");
        // what is complete stays as it is
        let again = fit(&dataset, &kept).expect("the same");
        assert!(bits(&again) == bits(&resumed), "{method}: again");
        // another training is not gone on with
        let other = FitOptions { kernel: "matern52".into(), ..kept.clone() };
        let error = fit(&dataset, &other).unwrap_err().to_string();
        assert!(error.contains("matern52") && error.contains("checkpoint"), "{error}");
    }
}

/// Targets of a row share its path: their density is that of the layers themselves.
#[test]
fn several_targets_and_more_epochs() {
    let one = rows(120, 1);
    let y = Mat::from_fn(120, 2, |i, p| one.y[(i, 0)] * if p == 0 { 1.0 } else { -3.0 });
    let both = InMemory::new(one.x.clone(), y).unwrap();
    let dataset = Dataset::from_rows(both.clone(), true).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.safetensors");
    let at = |epochs: usize, checkpoint: bool| {
        let own = options("deep(kind=w)", epochs);
        let checkpoint = checkpoint.then(|| path.clone());
        fit(&dataset, &FitOptions { checkpoint, ..own }).expect("a fit")
    };
    let fitted = at(12, true);
    let own = fitted.log_density(both.x.as_ref(), both.y.as_ref(), &[]).unwrap();
    let deep = fitted.model.to_deep(LastBound::Expectation).unwrap();
    let (mut x, mut y) = (both.x.clone(), both.y.clone());
    fitted.scaler.scale_x(x.as_mut()).unwrap();
    fitted.scaler.scale_y(y.as_mut()).unwrap();
    let predictor = deep.predictor().unwrap();
    let paths = predictor.predict(x.as_ref(), 100, &Paths::Streams { seed: 0 }).unwrap();
    let scale: f64 = fitted.scaler.y_scale.iter().map(|s| s.ln()).sum();
    let theirs = paths.log_density(y.as_ref(), &[]).unwrap();
    for (a, b) in own.iter().zip(theirs) {
        assert!((a - (b - scale)).abs() < 1e-8, "{a} {}", b - scale);
    }
    let more = at(36, true);
    assert_eq!(more.report.as_ref().unwrap().trace.len(), 36);
    // more steps continue with the whole rate: what the last third had is not an end
    let source = &*dataset.source;
    let from_to = |deep: &mut Deep, resume: Option<TrainingState>, epochs: usize| {
        let training = StochasticOptions {
            epochs: Some(epochs),
            checkpoint_seconds: 0.0,
            ..StochasticOptions::default()
        };
        let mut states = Vec::new();
        let mut batches = source.batches(60, 0).unwrap();
        let mut keep = |_: &_, state: &TrainingState| {
            states.push(state.clone());
            Ok(())
        };
        let surroundings =
            Surroundings { resume, checkpoint: Some(&mut keep), ..Surroundings::default() };
        let how = (&StepOptions::default(), &training);
        train_layers(deep, fitted.model.method, &mut *batches, how, surroundings, &mut ())
            .expect("a training");
        let rates: Vec<f64> = states.iter().map(|s| s.adam.options.learning_rate).collect();
        (rates, states.pop())
    };
    let mut layers = deep.clone();
    // two steps an epoch; the last state is seen twice
    let (rates, state) = from_to(&mut layers, None, 3);
    assert_eq!(rates, [0.01, 0.01, 0.01, 0.01, 0.003, 0.003, 0.003]);
    let (rates, _) = from_to(&mut layers, state, 9);
    assert_eq!((rates.len(), rates[0], rates[5], rates[6]), (13, 0.01, 0.01, 0.003));
}

#[test]
fn rows_put_aside_end_the_training_and_the_best_state_is_kept() {
    let mut dataset = Dataset::from_rows(rows(200, 1), true).expect("a table");
    let mut aside = rows(60, 3);
    dataset.scaler.scale_x(aside.x.as_mut()).expect("inputs");
    dataset.scaler.scale_y(aside.y.as_mut()).expect("targets");
    dataset.held_out = Some(Box::new(aside.clone()));
    let mut options = options("deep(layers=2)", 400);
    if let Some(batches) = &mut options.batches {
        (batches.training.patience, batches.training.adam.learning_rate) = (2, 0.3);
    }
    let fitted = fit(&dataset, &options).expect("a deep model");
    let report = fitted.report.as_ref().expect("a report");
    let seen: Vec<f64> = report.trace.iter().map(|p| p.held_out.expect("held out")).collect();
    let best = seen.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    assert!(report.stopped.contains("no better for 2 epochs") && seen.len() < 400);
    assert!(*seen.last().expect("epochs") < best, "{seen:?}");
    let own = fitted.posterior.predict_log_density(aside.x.as_ref(), aside.y.as_ref(), &[]);
    let own = own.expect("densities").iter().sum::<f64>() / 60.0;
    assert!((own - best).abs() < 1e-10 * (1.0 + best.abs()), "{own} {best}");
}

/// What every fit says of rows is said of layers too, such as an input over powers of ten.
#[test]
fn what_rows_show_is_said_of_layers_too() {
    let mut odd = rows(200, 1);
    for i in 0..200 {
        odd.x[(i, 0)] = (0.6 * odd.x[(i, 0)]).exp();
    }
    for (rows, expected) in [(odd, 1), (rows(200, 1), 0)] {
        let dataset = Dataset::from_rows(rows, true).expect("a table");
        let fitted = fit(&dataset, &options("deep", 2)).expect("a deep model");
        let said = fitted.warnings.iter().filter(|text| text.contains("powers of ten")).count();
        assert_eq!(said, expected, "{:?}", fitted.warnings);
    }
}

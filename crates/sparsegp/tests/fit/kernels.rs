//! Kernels of every kind in whole fits: methods, files, units, starting values, labels.

use crate::support::{arrays, fit, options, prepare, value};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use sparsegp::engine::Cpu;
use sparsegp::fit::{BatchOptions, Dataset, FitOptions, Fitted, Of, ParameterRow, Standardise};
use sparsegp::inducing::select::Selection;
use sparsegp::io;
use sparsegp::kernels::{REGISTRY, parse};
use sparsegp::linalg::Mat;
use sparsegp::methods;
use sparsegp::rng::{stream, uniform};
use sparsegp::samplers::gibbs::GibbsOptions;
use std::f64::consts::TAU;

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(rng)
}

/// A specification with every kernel that the registry has, in sums and products, on two inputs of which
/// the second is a label.
const ALL: [&str; 9] = [
    "rbf * coregion(output_dim=3, rank=2, active_dims=[1]) + white + constant",
    "matern12(active_dims=[0]) + exponential(active_dims=[0]) * linear + sum(kernels=[rbf, linear])",
    "product(kernels=[matern32, gamma_exponential(active_dims=[0])]) + polynomial(degree=2, active_dims=[0]) \
     + additive(base=matern32)",
    "periodic(base=matern52(active_dims=[0])) * rational_quadratic(active_dims=[0]) + arccosine",
    "changepoints(kernels=[cosine(active_dims=[0]), arccosine(order=1) + rbf], active_dims=[0])",
    "matern52 * periodic(base=rbf(active_dims=[0]), period=0.7, form=gpflow)",
    "convolutional(image=[1, 2, 1], patch=[1, 1], weighted=true)",
    "rbf + rbf * categorical(similarity=0.4, active_dims=[1])",
    "warped(base=matern32(active_dims=[0]), active_dims=[0])",
];

/// A smooth function of the first input for each of three labels.
fn labelled(n: usize) -> (Mat<f64>, Mat<f64>) {
    let (mut x, mut y) = arrays(n, 2);
    for i in 0..n {
        x[(i, 1)] = (i * 7 % 3) as f64;
        y[(i, 0)] += [0.4, -1.3, 2.0][i * 7 % 3];
    }
    (x, y)
}

fn scaled(x: &Mat<f64>, y: &Mat<f64>, kernel: &str) -> Dataset {
    let scaling = Standardise { inputs: true, targets: true, robust: false, constants: false }
        .for_kernel(kernel);
    Dataset::from_arrays(x.clone(), y.clone(), scaling).expect("a table")
}

fn with(kernel: &str, own: FitOptions) -> FitOptions {
    FitOptions { kernel: kernel.into(), ..own }
}

#[test]
fn every_kernel_is_among_those_that_are_fitted() {
    let json: Vec<String> = ALL
        .iter()
        .map(|spec| {
            parse(spec, sparsegp::kernels::Inputs::unnamed(2)).unwrap().to_json().to_string()
        })
        .collect();
    for entry in REGISTRY {
        let found = json.iter().any(|json| json.contains(&format!("\"type\":\"{}\"", entry.name)));
        assert!(found, "{} is missing", entry.name);
    }
}

/// A few iterations improve the objective, and a saved model predicts the same bits.
#[test]
fn every_kernel_works_with_every_method_and_in_files() {
    let (x, y) = labelled(40);
    let folder = tempfile::tempdir().expect("a folder");
    for spec in ALL {
        let data = scaled(&x, &y, spec);
        for entry in methods::REGISTRY {
            let mut own = FitOptions { pilot: 0, ..with(spec, options(entry.name, 4)) };
            own.gibbs = GibbsOptions { chains: 2, burn_in: 20, draws: 25, ..own.gibbs };
            let what = format!("{spec} {}", entry.name);
            if entry.name.ends_with("-augmented") {
                // Gaussian noise needs no local variables
                own.likelihood = Some("laplace".into());
            }
            let deep = entry.method.architecture().is_some();
            if deep {
                let mut batches = BatchOptions::of(entry.method);
                batches.training.epochs = Some(10);
                own.batches = Some(batches);
            }
            let fitted = match fit(&data, &own) {
                // what a hidden layer gives are not labels
                Err(error)
                    if deep && ["coregion", "categorical"].iter().any(|own| spec.contains(own)) =>
                {
                    assert!(error.to_string().contains("labels"), "{what}: {error}");
                    continue;
                }
                // it is for one input, and there are two
                Err(error) if entry.method.is_of_series() => {
                    assert!(error.to_string().contains("state-space form"), "{what}: {error}");
                    continue;
                }
                outcome => outcome.unwrap_or_else(|e| panic!("{what}: {e}")),
            };
            if !deep {
                let start = prepare(&data, &own).expect("a start").0;
                let before =
                    start.evaluate(&Cpu::default(), &*data.source).expect("an objective").value;
                let after =
                    fitted.model.evaluate(&Cpu::default(), &*data.source).expect("an objective");
                assert!(after.value > before, "{what}: {} {before}", after.value);
            }
            let path = folder.path().join("m.safetensors");
            io::save(&fitted, &path).expect("a file");
            let again = io::load(&path).expect("the model");
            for of in [Of::Latent, Of::Observations] {
                let (a, b) = (fitted.predict(x.as_ref(), of), again.predict(x.as_ref(), of));
                let ((mean, variance), (m, v)) =
                    (a.expect("a prediction"), b.expect("a prediction"));
                for i in 0..x.nrows() {
                    assert_eq!(mean[(i, 0)].to_bits(), m[(i, 0)].to_bits(), "{what}");
                    assert_eq!(variance[(i, 0)].to_bits(), v[(i, 0)].to_bits(), "{what}");
                    assert!(mean[(i, 0)].is_finite() && variance[(i, 0)] >= 0.0, "{what}");
                }
            }
        }
    }
}

fn row<'a>(rows: &'a [ParameterRow], path: &str) -> &'a ParameterRow {
    rows.iter().find(|row| row.path == path).unwrap_or_else(|| panic!("no {path}"))
}

fn in_data_units(fitted: &Fitted, path: &str) -> Vec<f64> {
    let rows = fitted.parameters();
    row(&rows, path).data_units.clone().unwrap_or_else(|| panic!("{path} has no unit"))
}

/// The period of a wave with overtones on a trend, in the input's own unit, where it is far from any
/// spread of the data.
#[test]
fn a_period_is_found() {
    let mut rng = stream(5, "waves");
    let x = Mat::from_fn(300, 1, |_, _| 1990.0 + 20.0 * uniform(&mut rng));
    let y = Mat::from_fn(300, 1, |i, _| {
        let t = x[(i, 0)];
        let wave = (TAU * t / 0.83).sin() + 0.4 * (2.0 * TAU * t / 0.83 + 1.0).cos();
        350.0 + 30.0 * wave + 4.0 * (t - 2000.0) + 6.0 * normal(&mut rng)
    });
    let spec = "periodic * rbf + linear";
    for method in ["exact", "titsias2025"] {
        let own = FitOptions { inducing: Some(60), ..with(spec, options(method, 60)) };
        let own = if method == "exact" { FitOptions { inducing: None, ..own } } else { own };
        let fitted = fit(&scaled(&x, &y, spec), &own).expect("a fit");
        let period = in_data_units(&fitted, "kernel.kernels[0].kernels[0].period")[0];
        assert!((period / 0.83 - 1.0).abs() < 2e-3, "{method}: {period}");
        // half a period beyond the data, the wave continues
        let beyond = Mat::full(1, 1, 2010.4);
        let t = 2010.4;
        let wave = (TAU * t / 0.83).sin() + 0.4 * (2.0 * TAU * t / 0.83 + 1.0).cos();
        let (mean, _) = fitted.predict(beyond.as_ref(), Of::Latent).expect("a prediction");
        let truth = 350.0 + 30.0 * wave + 4.0 * (t - 2000.0);
        assert!((mean[(0, 0)] - truth).abs() < 6.0, "{method}: {} {truth}", mean[(0, 0)]);
    }
}

/// Days of which most are missing, and three weeks of hours within a year: a fit ends as high as one that starts at the true
/// period.
#[test]
fn a_period_shorter_than_the_mean_gap_is_found() {
    let mut rng = stream(8, "days");
    let days: Vec<f64> = (0..365).map(f64::from).filter(|_| uniform(&mut rng) < 0.27).collect();
    let hours = [0, 3500, 8000].into_iter().flat_map(|from| (from..from + 60).map(f64::from));
    for (times, period) in [(days, 7.0), (hours.collect(), 24.0)] {
        let x = Mat::from_fn(times.len(), 1, |i, _| times[i]);
        let y = Mat::from_fn(times.len(), 1, |i, _| {
            let phase = TAU * times[i] / period;
            phase.sin() + 0.3 * (2.0 * phase).cos() + 0.2 * normal(&mut rng)
        });
        let objective = |fitted: &Fitted| fitted.report.as_ref().expect("a report").objective;
        let data = scaled(&x, &y, "periodic");
        let own = FitOptions { inducing: None, ..with("periodic", options("exact", 200)) };
        let found = fit(&data, &own).expect("a fit");
        let truth = format!("periodic(period={})", period / data.scaler.x_scale[0]);
        let known = fit(&data, &FitOptions { kernel: truth, ..own }).expect("a fit");
        let (own, best) = (objective(&found), objective(&known));
        assert!(own > best - 0.05, "{period}: {own}, from the truth {best}");
        let own = in_data_units(&found, "kernel.period")[0];
        assert!((own / period - 1.0).abs() < 2e-3, "{own} for {period}");
    }
}

/// From smooth to rough at a place far from the middle, where the search starts.
#[test]
fn a_change_point_is_found_in_the_input_s_own_unit() {
    let mut rng = stream(6, "change");
    let x = Mat::from_fn(160, 1, |i, _| 1990.0 + 20.0 * (i as f64 + uniform(&mut rng)) / 160.0);
    let y = Mat::from_fn(160, 1, |i, _| {
        let t = x[(i, 0)];
        let wave = if t < 2003.0 { 0.0 } else { 2.0 * (3.0 * (t - 2003.0)).sin() };
        0.1 * (t - 2000.0) + wave + 0.1 * normal(&mut rng)
    });
    let spec = "changepoints(kernels=[linear + constant, rbf])";
    let fitted = fit(&scaled(&x, &y, spec), &with(spec, options("exact", 200))).expect("a fit");
    let place = in_data_units(&fitted, "kernel.locations")[0];
    assert!((place - 2003.0).abs() < 0.7, "{place}");
    let (rows, scale) = (fitted.parameters(), fitted.scaler.x_scale[0]);
    let steepness = row(&rows, "kernel.steepness");
    assert!(
        (steepness.data_units.as_ref().unwrap()[0] * scale / steepness.value[0] - 1.0).abs()
            < 1e-12
    );
}

/// Two sites that mirror each other and one by itself: a site with few rows is learnt from the others.
#[test]
fn sites_learn_from_each_other() {
    let truth = |t: f64, site: usize| match site {
        0 => (2.0 * t).sin() + 5.0,
        1 => -0.7 * (2.0 * t).sin() + 5.0,
        _ => 0.5 * t + 5.0,
    };
    let mut rng = stream(7, "sites");
    let n = 150;
    let x = Mat::from_fn(n, 2, |i, q| match q {
        0 => 6.0 * uniform(&mut rng) - 3.0,
        // ten rows of site 1
        _ => {
            if i % 15 == 4 {
                1.0
            } else {
                2.0 * (i % 2) as f64
            }
        }
    });
    let y =
        Mat::from_fn(n, 1, |i, _| truth(x[(i, 0)], x[(i, 1)] as usize) + 0.05 * normal(&mut rng));
    let together =
        "rbf(active_dims=[0]) * coregion(output_dim=3, rank=2, active_dims=[1]) + constant";
    let apart = "rbf(active_dims=[0]) * coregion(output_dim=3, W={\"value\": 0.0, \"frozen\": true}, active_dims=[1]) + constant";
    let error = |spec: &str, method: &str| {
        let own = FitOptions {
            inducing: (method != "exact").then_some(40),
            ..with(spec, options(method, 150))
        };
        let fitted = fit(&scaled(&x, &y, spec), &own).expect("a fit");
        assert_eq!((fitted.scaler.x_mean[1], fitted.scaler.x_scale[1]), (0.0, 1.0));
        let new = Mat::from_fn(61, 2, |i, q| if q == 0 { 0.1 * i as f64 - 3.0 } else { 1.0 });
        let (mean, _) = fitted.predict(new.as_ref(), Of::Latent).expect("a prediction");
        let square = |i: usize| (mean[(i, 0)] - truth(new[(i, 0)], 1)).powi(2);
        if method != "exact" {
            // clusters of each site by itself: 70, 10 and 70 rows, whose labels stay
            let z = fitted.inducing_points().expect("points").expect("points");
            let count = |site: f64| z.col_as_slice(1).iter().filter(|v| **v == site).count();
            assert_eq!([count(0.0), count(1.0), count(2.0)].iter().sum::<usize>(), z.nrows());
            assert!(count(1.0) >= 2 && count(0.0) > 10 && count(2.0) > 10, "{}", count(1.0));
        }
        (0..61).map(square).sum::<f64>() / 61.0
    };
    for method in ["exact", "titsias2025"] {
        let (own, alone) = (error(together, method).sqrt(), error(apart, method).sqrt());
        assert!(own < 0.15 && alone > 2.0 * own, "{method}: {own} {alone}");
    }
}

#[test]
fn labels_that_are_none_are_refused() {
    let (mut x, y) = labelled(40);
    let spec = "rbf(active_dims=[0]) * coregion(output_dim=3, active_dims=[1])";
    let own = with(spec, options("titsias2009", 2));
    let refusal = |data: &Dataset| fit(data, &own).unwrap_err().to_string();
    let standardised = Dataset::from_arrays(x.clone(), y.clone(), true).expect("a table");
    let message = refusal(&standardised);
    assert!(
        message.contains("`x1` as labels") && message.contains("Standardise::for_kernel"),
        "{message}"
    );
    let fitted = fit(&scaled(&x, &y, spec), &own).expect("a fit");
    x[(17, 1)] = 3.0;
    let message = refusal(&scaled(&x, &y, spec));
    assert!(message.contains("3 in input column 1 is none of the labels 0, …, 2"), "{message}");
    for error in [
        fitted.predict(x.as_ref(), Of::Latent).unwrap_err(),
        fitted.predict_mean(x.as_ref()).unwrap_err(),
        fitted.sample_y(x.as_ref(), &[], 1, 2).unwrap_err(),
    ] {
        assert!(error.to_string().contains("3 in input column 1"), "{error}");
    }
}

#[test]
fn more_labels_than_points_take_rows_that_are_there() {
    let (x, y) = labelled(40);
    let spec = "rbf(active_dims=[0]) * coregion(output_dim=3, active_dims=[1])";
    for (count, selection) in [
        (2, Selection::KMeans),
        (3, Selection::KMeans),
        (5, Selection::Random),
        (5, Selection::GreedyVariance),
    ] {
        let own = FitOptions {
            inducing: Some(count),
            selection,
            ..with(spec, options("titsias2009", 2))
        };
        let model = prepare(&scaled(&x, &y, spec), &own).expect("a start").0;
        let labels = value(&model, "inducing.points")[count..].to_vec();
        assert_eq!(labels.len(), count);
        assert!(labels.iter().all(|v| [0.0, 1.0, 2.0].contains(v)), "{labels:?}");
    }
}

#[test]
fn a_pixel_that_is_always_dark_is_nothing_to_warn_of() {
    let x = Mat::from_fn(40, 4, |i, d| if d == 2 { 0.0 } else { ((i * 7 + d * 3) % 11) as f64 });
    let y = Mat::from_fn(40, 1, |i, _| x[(i, 0)] - x[(i, 3)]);
    let constants = |kernel: &str| {
        let dataset = scaled(&x, &y, kernel);
        dataset.warnings.iter().filter(|text| text.contains("`x2` is constant")).count()
    };
    assert_eq!(constants("rbf"), 1);
    assert_eq!(constants("convolutional(image=[2, 2, 1], patch=[1, 2])"), 0);
}

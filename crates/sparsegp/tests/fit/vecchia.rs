//! Rows given their nearest neighbours.

use crate::support::{bits, fit, predict, value};
use sparsegp::data::InMemory;
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Fitted, Hyperparameters, Of};
use sparsegp::io;
use sparsegp::linalg::Mat;
use sparsegp::methods;
use sparsegp::model::Model;
use sparsegp::rng::{stream, uniform};

/// A rough field over a plane, three times as rough along one input as along the other, with noise of variance 0.04.
pub fn field(n: usize, seed: &str) -> InMemory {
    let mut rng = stream(11, seed);
    let mut of_waves = stream(12, "waves");
    let waves: Vec<[f64; 3]> = (0..300)
        .map(|_| {
            // of the heavy tails of a Matérn kernel
            let far = 1.0 / (0.05 + uniform(&mut of_waves)).sqrt();
            let angle = 6.3 * uniform(&mut of_waves);
            [0.9 * far * angle.cos(), 0.3 * far * angle.sin(), 6.3 * uniform(&mut of_waves)]
        })
        .collect();
    let x = Mat::from_fn(n, 2, |_, _| 20.0 * uniform(&mut rng));
    let y = Mat::from_fn(n, 1, |i, _| {
        let value = |[a, b, c]: &[f64; 3]| (a * x[(i, 0)] + b * x[(i, 1)] + c).sin();
        let normal: f64 = (0..12).map(|_| uniform(&mut rng)).sum::<f64>() - 6.0;
        3.0 + waves.iter().map(value).sum::<f64>() / 300_f64.sqrt() + 0.2 * normal
    });
    InMemory::new(x, y).expect("rows")
}

pub fn options(method: &str) -> FitOptions {
    FitOptions {
        method: method.into(),
        kernel: "matern32".into(),
        hyperparameters: Hyperparameters::PlugIn,
        seed: 3,
        ..FitOptions::default()
    }
}

pub fn fitted(rows: &InMemory, method: &str) -> Fitted {
    let dataset = Dataset::from_rows(rows.clone(), true).expect("a table");
    fit(&dataset, &options(method)).expect("a fit")
}

pub fn at(model: &Model, method: &str) -> Model {
    Model { method: methods::find(method).expect("a method").method, ..model.clone() }
}

#[test]
fn with_all_rows_for_neighbours_it_is_exact_inference() {
    let mut rows = field(120, "few rows");
    rows.weights = (0..120).map(|i| [0.5, 1.0, 2.0, 0.0][i % 4]).collect();
    rows.extra = (0..120).map(|i| 0.01 * (i % 5) as f64).collect();
    let exact = fitted(&rows, "exact");
    let vecchia = fitted(&rows, "vecchia(neighbours=150)");
    let reports = [&exact, &vecchia].map(|own| own.report.as_ref().expect("a report"));
    let [a, b] = reports.map(|report| report.objective);
    assert!((a - b).abs() < 1e-3, "{a} {b}");
    // at the same parameters
    let other = at(&exact.model, "vecchia(neighbours=150)");
    let dataset = Dataset::from_rows(rows.clone(), true).expect("a table");
    let engine = Cpu::default();
    let [own, its] = [&exact.model, &other]
        .map(|model| model.evaluate(&engine, &*dataset.source).expect("a value"));
    assert!((own.value - its.value).abs() < 1e-9 * own.value.abs(), "{} {}", own.value, its.value);
    let largest = own.gradient.iter().fold(1.0_f64, |m, g| m.max(g.abs()));
    for (a, b) in own.gradient.iter().zip(&its.gradient) {
        assert!((a - b).abs() < 1e-8 * largest, "{:?} {:?}", own.gradient, its.gradient);
    }
    let new = field(50, "new");
    let [own, its] = [&exact.model, &other].map(|model| {
        let posterior = model.posterior(&engine, &*dataset.source).expect("a posterior");
        posterior.predict_f_joint(new.x.as_ref()).expect("predictions")
    });
    assert!((&own.0 - &its.0).norm_max() < 1e-8);
    assert!((&own.1 - &its.1).norm_max() < 1e-8);
}

#[test]
fn a_field_is_learnt_as_by_exact_inference() {
    let (rows, new) = (field(900, "rows"), field(400, "new"));
    let (exact, vecchia) = (fitted(&rows, "exact"), fitted(&rows, "vecchia"));
    let report = vecchia.report.as_ref().expect("a report");
    assert!(report.converged, "{}", report.stopped);
    // neighbours were chosen again: the objective is that of the parameters, whatever was held
    let dataset = Dataset::from_rows(rows.clone(), true).expect("a table");
    let own = vecchia.model.evaluate(&Cpu::default(), &*dataset.source).expect("a value");
    // but for the priors that nobody gave
    assert!((report.objective - own.value).abs() < 1e-9 * own.value.abs());
    let apart = exact.report.as_ref().expect("a report").objective - own.value;
    assert!(apart.abs() < 2.0, "{apart}");
    for path in ["kernel.variance", "kernel.lengthscales", "likelihood.variance"] {
        for (a, b) in value(&exact.model, path).iter().zip(value(&vecchia.model, path)) {
            assert!((a / b).ln().abs() < 0.1, "{path}: {a} {b}");
        }
    }
    let scales = value(&vecchia.model, "kernel.lengthscales");
    assert!(scales[1] > 1.5 * scales[0], "{scales:?}");
    let density = |fitted: &Fitted| {
        let all = fitted.log_density(new.x.as_ref(), new.y.as_ref(), &[]).expect("densities");
        all.iter().sum::<f64>() / 400.0
    };
    let (a, b) = (density(&exact), density(&vecchia));
    assert!((a - b).abs() < 0.01, "{a} {b}");
    let (mean, variance) = predict(&vecchia, &new.x);
    let within =
        (0..400).filter(|i| (mean[*i] - new.y[(*i, 0)]).abs() < 1.645 * variance[*i].sqrt());
    let covered = within.count() as f64 / 400.0;
    assert!((covered - 0.9).abs() < 0.05, "{covered}");
}

/// The objective that is reported, and predictions, are of all rows.
#[test]
fn hyperparameters_of_a_sample_are_near_those_of_all_rows() {
    let (rows, new) = (field(4000, "rows"), field(200, "new"));
    let [all, own] = ["vecchia", "vecchia(training_rows=1500)"].map(|method| fitted(&rows, method));
    assert_eq!(own.model.method.training_rows(&own.model, 4000), 1500);
    assert_eq!(all.model.method.training_rows(&all.model, 4000), 4000);
    assert_eq!(all.model.method.training_rows(&all.model, 400_000), 50_000);
    let [best, value_of] =
        [&all, &own].map(|fitted| fitted.report.as_ref().expect("a report").objective);
    assert!(value_of < best && value_of > best - 6.0, "{value_of} and {best}");
    for path in ["kernel.variance", "kernel.lengthscales", "likelihood.variance"] {
        for (a, b) in value(&all.model, path).iter().zip(value(&own.model, path)) {
            assert!((a / b).ln().abs() < 0.15, "{path}: {a} {b}");
            assert!(*a != b, "{path}: all rows were seen");
        }
    }
    let dataset = Dataset::from_rows(rows, true).expect("a table");
    let again = own.model.evaluate(&Cpu::default(), &*dataset.source).expect("a value");
    assert!((again.value - value_of).abs() < 1e-9 * value_of.abs());
    let [a, b] = [&all, &own].map(|fitted| {
        let all = fitted.log_density(new.x.as_ref(), new.y.as_ref(), &[]).expect("densities");
        all.iter().sum::<f64>() / 200.0
    });
    assert!((a - b).abs() < 0.02, "{a} {b}");
}

/// Stations that were read many times: copies are not each other's neighbours.
#[test]
fn many_rows_at_few_places_are_what_they_are_to_exact_inference() {
    let (places, mut rows) = (field(40, "places"), field(400, "rows"));
    rows.x = Mat::from_fn(400, 2, |i, j| places.x[(i % 40, j)]);
    rows.weights = (0..400).map(|i| [0.5, 1.0, 2.0][i % 3]).collect();
    let own = fitted(&rows, "vecchia(neighbours=39)");
    let dataset = Dataset::from_rows(rows, true).expect("a table");
    let engine = Cpu::default();
    let exact = at(&own.model, "exact");
    let [a, b] = [&own.model, &exact]
        .map(|model| model.evaluate(&engine, &*dataset.source).expect("a value"));
    assert!((a.value - b.value).abs() < 1e-9 * b.value.abs(), "{} {}", a.value, b.value);
    let largest = b.gradient.iter().fold(1.0_f64, |m, g| m.max(g.abs()));
    for (a, b) in a.gradient.iter().zip(&b.gradient) {
        assert!((a - b).abs() < 1e-8 * largest, "{a} {b}");
    }
    let [a, b] = [&own.model, &exact].map(|model| {
        let posterior = model.posterior(&engine, &*dataset.source).expect("a posterior");
        posterior.leave_one_out(model, &*dataset.source).expect("rows left out")
    });
    assert!((&a.f_mean - &b.f_mean).norm_max() < 1e-8);
    assert!((&a.f_variance - &b.f_variance).norm_max() < 1e-8);
}

#[test]
fn a_second_fit_with_the_same_engine_has_the_same_bits() {
    let rows = field(300, "rows");
    let dataset = Dataset::from_rows(rows, true).expect("a table");
    let engine = Cpu::default();
    let once = || {
        sparsegp::fit::fit(&dataset, &options("vecchia(neighbours=8)"), &engine, &mut ())
            .expect("a fit")
    };
    let (first, second) = (once(), once());
    assert_eq!(bits(&first.model), bits(&second.model));
    let fresh = fit(&dataset, &options("vecchia(neighbours=8)")).expect("a fit");
    assert_eq!(bits(&first.model), bits(&fresh.model));
}

#[test]
fn files_predict_the_same_and_rows_are_left_out() {
    let rows = field(250, "rows");
    let own = fitted(&rows, "vecchia(neighbours=12)");
    let path = std::env::temp_dir().join(format!("sparsegp-vecchia-{}", std::process::id()));
    io::save(&own, &path).expect("a file");
    let loaded = io::load(&path).expect("the model");
    let _ = std::fs::remove_file(&path);
    assert_eq!(loaded.model.method.name(), "vecchia(neighbours=12)");
    let new = field(30, "new");
    assert_eq!(predict(&own, &new.x), predict(&loaded, &new.x));
    let x = new.x.as_ref();
    assert_eq!(
        own.sample_y(x, &[], 2, 5).expect("draws"),
        loaded.sample_y(x, &[], 2, 5).expect("draws")
    );
    // the same hyperparameters without the row
    let dataset = Dataset::from_rows(rows.clone(), true).expect("a table");
    let left_out = own.leave_one_out(&dataset).expect("rows left out");
    let engine = Cpu::default();
    for row in [0, 17, 249] {
        let others: Vec<usize> = (0..250).filter(|i| *i != row).collect();
        let data = &dataset.source;
        let mut all = Mat::zeros(250, 2);
        let mut y = Mat::zeros(250, 1);
        data.for_each_chunk(usize::MAX, &mut |rows| {
            all.copy_from(rows.x);
            y.copy_from(rows.y);
            Ok(())
        })
        .expect("rows");
        let of = |a: &Mat<f64>| Mat::from_fn(249, a.ncols(), |i, j| a[(others[i], j)]);
        let without = InMemory::new(of(&all), of(&y)).expect("rows");
        let posterior = own.model.posterior(&engine, &without).expect("a posterior");
        let (mean, variance) =
            posterior.predict_f(all.as_ref().subrows(row, 1)).expect("predictions");
        let scale = dataset.scaler.y_scale[0];
        let (m, v) =
            (dataset.scaler.y_mean[0] + scale * mean[(0, 0)], scale * scale * variance[(0, 0)]);
        assert!((left_out.f_mean[(row, 0)] - m).abs() < 1e-9, "{row}");
        assert!((left_out.f_variance[(row, 0)] - v).abs() < 1e-9, "{row}");
    }
}

#[test]
fn new_rows_are_taken_up_as_if_they_had_been_there() {
    let (rows, more) = (field(200, "rows"), field(60, "more"));
    let unscaled = |rows: InMemory| Dataset::from_rows(rows, false).expect("a table");
    let own = fit(&unscaled(rows.clone()), &options("vecchia(neighbours=12)")).expect("a fit");
    let new = unscaled(more.clone());
    let plain = sparsegp::fit::UpdateOptions::default();
    let (updated, report) =
        sparsegp::fit::update(&own, &new, &plain, &mut |_, _| Ok(())).expect("an update");
    assert_eq!((report.rows, updated.rows), (60, 260));
    let both = |a: &Mat<f64>, b: &Mat<f64>| {
        Mat::from_fn(260, a.ncols(), |i, j| if i < 200 { a[(i, j)] } else { b[(i - 200, j)] })
    };
    let all = InMemory::new(both(&rows.x, &more.x), both(&rows.y, &more.y)).expect("rows");
    let all = unscaled(all);
    let posterior = own.model.posterior(&Cpu::default(), &*all.source).expect("a posterior");
    let x = field(20, "new").x;
    let [a, b] =
        [&updated.posterior, &posterior].map(|own| own.predict_f(x.as_ref()).expect("predictions"));
    assert!((&a.0 - &b.0).norm_max() < 1e-12 && (&a.1 - &b.1).norm_max() < 1e-12);
    let before = own.model.evaluate(&Cpu::default(), &*unscaled(rows).source);
    let after = own.model.evaluate(&Cpu::default(), &*all.source);
    let gained = after.expect("a value").value - before.expect("a value").value;
    let reported = updated.report.as_ref().expect("a report").objective
        - own.report.as_ref().expect("a report").objective;
    assert!((gained - reported).abs() < 1e-8 * gained.abs(), "{gained} {reported}");
}

/// A map of thousands of places is drawn at the cost of its neighbours.
#[test]
fn draws_at_many_places_have_the_moments_of_predictions() {
    let own = fitted(&field(300, "rows"), "vecchia(neighbours=12)");
    let x = field(3000, "places").x;
    let (mean, variance) = own.predict(x.as_ref(), Of::Observations).expect("predictions");
    let draws = own.sample_y(x.as_ref(), &[], 40, 5).expect("draws");
    let mut square = 0.0;
    for draw in &draws {
        let each = (0..3000).map(|i| (draw[(i, 0)] - mean[(i, 0)]).powi(2) / variance[(i, 0)]);
        square += each.sum::<f64>() / 3000.0 / 40.0;
    }
    assert!((square - 1.0).abs() < 0.05, "{square}");
}

#[test]
fn what_it_cannot_do_is_refused_by_name() {
    let rows = field(60, "rows");
    let refused = |rows: &InMemory, options: &FitOptions, words: &[&str]| {
        let dataset = Dataset::from_rows(rows.clone(), true).expect("a table");
        let error = fit(&dataset, options).expect_err("a refusal").to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    };
    let counts = FitOptions { likelihood: Some("student-t".into()), ..options("full-scale") };
    refused(&rows, &counts, &["full-scale", "student-t", "svgp"]);
    for (method, word) in [
        ("vecchia(neighbours=0)", "from 1 to 500"),
        ("vecchia(neighbours=many)", "from 1 to 500"),
        ("vecchia(m=3)", "known: neighbours, latent, solver"),
        ("vecchia(solver=lu)", "auto, cholesky or iterative"),
        ("vecchia(solver=iterative)", "with latent=true; leave it out"),
        ("vecchia(latent=perhaps)", "true or false"),
        ("vecchia(training_rows=10)", "`all`, or a whole number from 1000"),
        ("vecchia(training_rows=all, latent=true)", "targets are conditioned on targets"),
        ("full-scale(training_rows=all)", "known: neighbours, moving"),
        ("full-scale(latent=true)", "known: neighbours, moving"),
        ("svgp(neighbours=3)", "vecchia(neighbours=50)"),
        ("vecchia(points=200)", "`full-scale` has inducing points"),
    ] {
        refused(&rows, &options(method), &[method.split('(').next().unwrap_or(method), word]);
    }
    let mut rng = stream(1, "wide");
    let wide = Mat::from_fn(60, 12, |_, _| uniform(&mut rng));
    let wide = InMemory::new(wide, rows.y.clone()).expect("rows");
    refused(&wide, &options("vecchia"), &["vecchia", "12 columns", "titsias2025"]);
    // of a kernel of fewer
    let few = FitOptions { kernel: "rbf(active_dims=[0, 3])".into(), ..options("vecchia") };
    let dataset = Dataset::from_rows(wide, true).expect("a table");
    fit(&dataset, &few).expect("a fit");
    let own = fitted(&rows, "vecchia");
    let slopes =
        own.posterior.predict_gradients(rows.x.as_ref()).expect_err("a refusal").to_string();
    assert!(slopes.contains("slope"), "{slopes}");
    assert!(own.predict(rows.x.as_ref(), Of::Latent).is_ok());
}

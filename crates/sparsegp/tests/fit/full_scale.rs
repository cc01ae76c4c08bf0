//! Inducing points for what is far, neighbours for the rest.

use crate::support::{fit, predict, value};
use crate::vecchia::{at, field, fitted, options};
use sparsegp::data::InMemory;
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Fitted, UpdateOptions};
use sparsegp::io;
use sparsegp::linalg::{Mat, MatRef};
use sparsegp::model::{Model, inducing_param};

fn sized(method: &str, points: usize) -> FitOptions {
    FitOptions { inducing: Some(points), ..options(method) }
}

fn with_points(rows: &InMemory, method: &str, points: usize) -> Fitted {
    let dataset = Dataset::from_rows(rows.clone(), true).expect("a table");
    fit(&dataset, &sized(method, points)).expect("a fit")
}

/// A model with some of the rows for points.
fn of_rows(model: &Model, method: &str, x: MatRef<f64>, points: usize) -> Model {
    let inducing = vec![inducing_param(x.subrows(0, points))];
    Model { inducing, ..at(model, method) }
}

fn close(a: &[f64], b: &[f64], size: f64) {
    let largest = b.iter().fold(1.0_f64, |m, v| m.max(v.abs()));
    let apart = a.iter().zip(b).fold(0.0_f64, |m, (a, b)| m.max((a - b).abs()));
    assert!(a.len() == b.len() && apart < size * largest, "{apart}: {a:?} {b:?}");
}

/// Weights and known noise are as for the others; rows at the same place are one.
#[test]
fn with_all_rows_for_neighbours_it_is_exact_inference() {
    let mut rows = field(120, "few rows");
    rows.weights = (0..120).map(|i| [0.5, 1.0, 2.0, 0.0][i % 4]).collect();
    rows.extra = (0..120).map(|i| 0.01 * (i % 5) as f64).collect();
    rows.x = Mat::from_fn(120, 2, |i, j| rows.x[(i - i % 7 / 6, j)]);
    let exact = fitted(&rows, "exact");
    let dataset = Dataset::from_rows(rows, true).expect("a table");
    let engine = Cpu::default();
    let new = field(50, "new").x;
    let other = of_rows(&exact.model, "full-scale(neighbours=150)", new.as_ref(), 20);
    let [own, its] = [&exact.model, &other]
        .map(|model| model.evaluate(&engine, &*dataset.source).expect("a value"));
    close(&[its.value], &[own.value], 1e-8);
    let points = its.gradient.len() - own.gradient.len();
    let (hyper, z) = its.gradient.split_at(own.gradient.len());
    close(hyper, &own.gradient, 1e-5);
    assert_eq!(points, 40);
    close(z, &[0.0; 40], 1e-4);
    assert!(its.diagnostics.unexplained > 0.0 && its.diagnostics.negative == 0);
    let [own, its] = [&exact.model, &other].map(|model| {
        let posterior = model.posterior(&engine, &*dataset.source).expect("a posterior");
        let left = posterior.leave_one_out(model, &*dataset.source).expect("rows left out");
        (posterior.predict_f_joint(new.as_ref()).expect("predictions"), left)
    });
    assert!((&own.0.0 - &its.0.0).norm_max() < 1e-6);
    assert!((&own.0.1 - &its.0.1).norm_max() < 1e-6);
    assert!((&own.1.f_mean - &its.1.f_mean).norm_max() < 1e-6);
    assert!((&own.1.f_variance - &its.1.f_variance).norm_max() < 1e-6);
}

/// A smooth function with much noise, which few neighbours cannot average, and a rough one, which few points cannot hold.
#[test]
fn it_is_nearer_to_exact_inference_than_either_part() {
    for (kernel, noise) in [("rbf(lengthscales=[0.7, 0.9])", 0.5), ("matern32", 0.04)] {
        let rows = field(700, "rows");
        let dataset = Dataset::from_rows(rows, true).expect("a table");
        let own = FitOptions {
            kernel: kernel.into(),
            set: vec![("likelihood.variance".into(), vec![noise])],
            freeze: vec!["kernel".into(), "likelihood".into()],
            ..options("exact")
        };
        let exact = fit(&dataset, &own).expect("a fit").model;
        let mut x = Mat::zeros(700, 2);
        dataset
            .source
            .for_each_chunk(usize::MAX, &mut |rows| {
                x.copy_from(rows.x);
                Ok(())
            })
            .expect("rows");
        let engine = Cpu::default();
        let value =
            |model: &Model| model.evaluate(&engine, &*dataset.source).expect("a value").value;
        let parts = [
            at(&exact, "vecchia(neighbours=8)"),
            of_rows(&exact, "titsias2025", x.as_ref(), 40),
            of_rows(&exact, "full-scale(neighbours=8)", x.as_ref(), 40),
        ];
        let apart = parts.map(|own| (value(&exact) - value(&own)).abs());
        assert!(apart[2] < 0.7 * apart[0].min(apart[1]), "{kernel}: {apart:?}");
    }
}

#[test]
fn a_field_is_learnt_as_by_exact_inference() {
    let (rows, new) = (field(900, "rows"), field(400, "new"));
    let (exact, own) = (fitted(&rows, "exact"), with_points(&rows, "full-scale", 50));
    assert_eq!(own.model.inducing_points().expect("points").nrows(), 50);
    for path in ["kernel.variance", "kernel.lengthscales", "likelihood.variance"] {
        for (a, b) in value(&exact.model, path).iter().zip(value(&own.model, path)) {
            assert!((a / b).ln().abs() < 0.1, "{path}: {a} {b}");
        }
    }
    let density = |fitted: &Fitted| {
        let all = fitted.log_density(new.x.as_ref(), new.y.as_ref(), &[]).expect("densities");
        all.iter().sum::<f64>() / 400.0
    };
    let (a, b) = (density(&exact), density(&own));
    assert!((a - b).abs() < 0.01, "{a} {b}");
    // as many points as are asked for, and as many as is usual here
    let usual = FitOptions { inducing: None, ..sized("full-scale", 0) };
    let dataset = Dataset::from_rows(rows, true).expect("a table");
    let start = sparsegp::fit::prepare(&dataset, &usual, &Cpu::default(), &mut ());
    let model = start.expect("a start").model;
    assert_eq!(model.inducing_points().expect("points").nrows(), 200);
}

/// Points stay where they start, unless they are asked to move.
#[test]
fn points_move_where_that_is_asked_for() {
    let rows = field(200, "rows");
    let dataset = Dataset::from_rows(rows.clone(), true).expect("a table");
    let [(fixed, stayed), (moving, moved)] =
        ["full-scale(neighbours=8)", "full-scale(neighbours=8, moving=true)"].map(|method| {
            let own = FitOptions { pilot: 0, ..sized(method, 12) };
            let start = sparsegp::fit::prepare(&dataset, &own, &Cpu::default(), &mut ());
            let start = start.expect("a start").model.inducing_points().expect("points");
            let own = fit(&dataset, &own).expect("a fit");
            let apart = own.model.inducing_points().expect("points") - start;
            (own.objective(), apart.norm_max())
        });
    assert!(
        stayed == 0.0 && moved > 0.0 && moving > fixed,
        "{stayed} {moved} {fixed:?} {moving:?}"
    );
}

#[test]
fn files_predict_the_same_and_new_rows_are_taken_up() {
    let (rows, more) = (field(200, "rows"), field(60, "more"));
    let unscaled = |rows: InMemory| Dataset::from_rows(rows, false).expect("a table");
    let own = fit(&unscaled(rows.clone()), &sized("full-scale(neighbours=12)", 15));
    let own = own.expect("a fit");
    let path = std::env::temp_dir().join(format!("sparsegp-full-scale-{}", std::process::id()));
    io::save(&own, &path).expect("a file");
    let loaded = io::load(&path).expect("the model");
    let _ = std::fs::remove_file(&path);
    assert_eq!(loaded.model.method.name(), "full-scale(neighbours=12)");
    let new = field(30, "new").x;
    assert_eq!(predict(&own, &new), predict(&loaded, &new));
    let draws = |own: &Fitted| own.sample_y(new.as_ref(), &[], 2, 5).expect("draws");
    assert_eq!(draws(&own), draws(&loaded));
    let quality =
        own.inducing_quality(&unscaled(rows.clone()), &Cpu::default(), &Default::default());
    assert_eq!(quality.expect("a quality").processes[0].points, 15);

    let (updated, report) = sparsegp::fit::update(
        &own,
        &unscaled(more.clone()),
        &UpdateOptions::default(),
        &mut |_, _| Ok(()),
    )
    .expect("an update");
    assert_eq!((report.rows, updated.rows), (60, 260));
    let both = |a: &Mat<f64>, b: &Mat<f64>| {
        Mat::from_fn(260, a.ncols(), |i, j| if i < 200 { a[(i, j)] } else { b[(i - 200, j)] })
    };
    let all = InMemory::new(both(&rows.x, &more.x), both(&rows.y, &more.y)).expect("rows");
    let posterior = own.model.posterior(&Cpu::default(), &*unscaled(all).source);
    let posterior = posterior.expect("a posterior");
    let [a, b] = [&updated.posterior, &posterior]
        .map(|own| own.predict_f(new.as_ref()).expect("predictions"));
    assert!((&a.0 - &b.0).norm_max() < 1e-12 && (&a.1 - &b.1).norm_max() < 1e-12);
}

#[test]
fn draws_at_many_places_have_the_moments_of_predictions() {
    let own = with_points(&field(300, "rows"), "full-scale(neighbours=12)", 30);
    let x = field(1000, "places").x;
    let (mean, variance) = predict(&own, &x);
    let draws = own.sample_y(x.as_ref(), &[], 60, 5).expect("draws");
    let mut square = 0.0;
    for draw in &draws {
        let each = (0..1000).map(|i| (draw[(i, 0)] - mean[i]).powi(2) / variance[i]);
        square += each.sum::<f64>() / 1000.0 / 60.0;
    }
    assert!((square - 1.0).abs() < 0.05, "{square}");
}

#[test]
fn what_it_cannot_do_is_refused_by_name() {
    let rows = field(60, "rows");
    let dataset = Dataset::from_rows(rows.clone(), true).expect("a table");
    let refused = |options: FitOptions, words: &[&str]| {
        let error = fit(&dataset, &options).expect_err("a refusal").to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    };
    let counts = FitOptions { likelihood: Some("student-t".into()), ..sized("full-scale", 9) };
    refused(counts, &["full-scale", "student-t", "svgp"]);
    refused(sized("full-scale(neighbours=0)", 9), &["full-scale", "from 1 to 500"]);
    refused(sized("full-scale(inducing=9)", 9), &["--inducing 9", "n_inducing=9"]);
    refused(sized("full-scale(moving=3)", 9), &["true or false"]);
    refused(sized("full-scale(m=3)", 9), &["known: neighbours, moving"]);
    let own = with_points(&rows, "full-scale", 9);
    let slopes = own.posterior.predict_gradients(rows.x.as_ref()).expect_err("a refusal");
    assert!(slopes.to_string().contains("full-scale"), "{slopes}");
}

//! Inputs that are learnt from by their logarithms.

use crate::support::{fit, options};
use sparsegp::fit::{Dataset, FitOptions, Fitted, LogInputs, Of};
use sparsegp::io;
use sparsegp::linalg::Mat;
use sparsegp::rng::{stream, uniform};

/// Rows with an input over five powers of ten, whose logarithm matters, and one in (0, 10).
fn rows(n: usize, by_logarithm: bool) -> (Mat<f64>, Mat<f64>) {
    let mut rng = stream(4, "rows");
    let x = Mat::from_fn(n, 2, |_, q| match q {
        0 => 3.0 * 10f64.powf(5.0 * uniform(&mut rng)),
        _ => 10.0 * uniform(&mut rng),
    });
    let y = Mat::from_fn(n, 1, |i, _| {
        let own = if by_logarithm { x[(i, 0)].ln() } else { x[(i, 0)] / 2e4 };
        80.0 + 20.0 * ((0.9 * own).sin() + 0.2 * x[(i, 1)] + 0.2 * (uniform(&mut rng) - 0.5))
    });
    (x, y)
}

fn dataset(x: &Mat<f64>, y: &Mat<f64>) -> Dataset {
    Dataset::from_arrays(x.clone(), y.clone(), true).expect("a table")
}

fn with(log_inputs: LogInputs) -> FitOptions {
    FitOptions { log_inputs, ..options("exact", 200) }
}

fn error(fitted: &Fitted, x: &Mat<f64>, y: &Mat<f64>) -> f64 {
    let (mean, _) = fitted.predict(x.as_ref(), Of::Observations).expect("predictions");
    let square = |i: usize| (mean[(i, 0)] - y[(i, 0)]).powi(2);
    (0..x.nrows()).map(square).sum::<f64>() / x.nrows() as f64
}

#[test]
fn an_input_over_powers_of_ten_is_learnt_from_by_its_logarithm() {
    let (x, y) = rows(150, true);
    let (new_x, new_y) = rows(400, true);
    let found = fit(&dataset(&x, &y), &with(LogInputs::Auto)).expect("a fit");
    let logs: Vec<bool> = found.scaler.x_log.iter().map(Option::is_some).collect();
    assert_eq!(logs, [true, false]);
    assert!(
        found.warnings.iter().all(|text| !text.contains("powers of ten")),
        "{:?}",
        found.warnings
    );
    let without = fit(&dataset(&x, &y), &with(LogInputs::None)).expect("a fit");
    let said = without.warnings.iter().any(|text| text.contains("--log-inputs x0"));
    assert!(without.scaler.x_log.is_empty() && said, "{:?}", without.warnings);
    let (own, other) = (error(&found, &new_x, &new_y), error(&without, &new_x, &new_y));
    assert!(own < 0.2 * other, "{own}, {other} without");
    // and is what a table of logarithms gives, far above the unit of the logarithm
    let taken = |x: &Mat<f64>| {
        Mat::from_fn(x.nrows(), 2, |i, q| {
            let c = found.scaler.x_log[0].expect("a unit");
            if q == 0 { (x[(i, 0)] / c).asinh() } else { x[(i, 1)] }
        })
    };
    let by_hand = fit(&dataset(&taken(&x), &y), &with(LogInputs::None)).expect("a fit");
    let (a, _) = found.predict(new_x.as_ref(), Of::Observations).expect("predictions");
    let (b, _) = by_hand.predict(taken(&new_x).as_ref(), Of::Observations).expect("predictions");
    for i in 0..new_x.nrows() {
        assert!((a[(i, 0)] - b[(i, 0)]).abs() < 1e-4, "{i}: {} {}", a[(i, 0)], b[(i, 0)]);
    }
}

#[test]
fn an_input_that_matters_as_it_is_stays() {
    let (x, y) = rows(150, false);
    let found = fit(&dataset(&x, &y), &with(LogInputs::Auto)).expect("a fit");
    assert!(found.scaler.x_log.is_empty(), "{:?}", found.scaler.x_log);
    assert!(
        found.warnings.iter().all(|text| !text.contains("powers of ten")),
        "{:?}",
        found.warnings
    );
}

#[test]
fn predictions_are_finite_everywhere_and_slopes_are_differences() {
    let (x, y) = rows(120, true);
    let found = fit(&dataset(&x, &y), &with(LogInputs::Named(vec!["x0".into()]))).expect("a fit");
    let places =
        Mat::from_fn(5, 2, |i, q| if q == 0 { [-1e3, 0.0, 4.0, 5e3, 1e9][i] } else { 3.0 });
    let (mean, variance) = found.predict(places.as_ref(), Of::Latent).expect("predictions");
    let slopes = found.predict_gradients(places.as_ref()).expect("slopes");
    for i in 0..5 {
        assert!(mean[(i, 0)].is_finite() && variance[(i, 0)] > 0.0);
        for q in 0..2 {
            let step = 1e-5 * (0.5 + places[(i, q)].abs());
            let beside = |h: f64| {
                let own = Mat::from_fn(1, 2, |_, j| places[(i, j)] + if j == q { h } else { 0.0 });
                found.predict(own.as_ref(), Of::Latent).expect("predictions").0[(0, 0)]
            };
            let slope = (beside(step) - beside(-step)) / (2.0 * step);
            let own = slopes.mean[0][(i, q)];
            assert!(
                (own - slope).abs() < 1e-4 * (slope.abs() + 1e-9 / step),
                "{i} {q}: {own} {slope}"
            );
        }
    }
}

#[test]
fn a_saved_model_keeps_its_logarithms() {
    let (x, y) = rows(80, true);
    let folder = tempfile::tempdir().expect("a folder");
    for method in ["exact", "titsias2025", "tsvgp"] {
        let own = FitOptions { log_inputs: LogInputs::Auto, ..options(method, 20) };
        let found = fit(&dataset(&x, &y), &own).expect("a fit");
        assert!(found.scaler.x_log.iter().any(Option::is_some), "{method}");
        let path = folder.path().join("m");
        io::save(&found, &path).expect("saved");
        let again = io::load(&path).expect("loaded");
        let predict =
            |own: &Fitted| own.predict(x.as_ref(), Of::Observations).expect("predictions");
        assert_eq!(predict(&found), predict(&again), "{method}");
        // points are places in the units of the table
        if let Some(points) = found.inducing_points().expect("points") {
            let largest = points.col_as_slice(0).iter().fold(0.0, |m: f64, v| m.max(*v));
            assert!(largest > 1e3, "{method}: {largest}");
        }
        // a length of a logarithm has no unit of the input
        let lengths = found.parameters().into_iter().find(|row| row.path == "kernel.lengthscales");
        assert_eq!(lengths.expect("lengthscales").data_units, None);
    }
}

#[test]
fn logarithms_that_cannot_be_had_are_refused() {
    let (x, y) = rows(40, true);
    let negative = Mat::from_fn(40, 2, |i, q| x[(i, q)] - if q == 1 { 5.0 } else { 0.0 });
    for (table, name, part) in [(&x, "x7", "`x7`"), (&negative, "x1", "`x1`")] {
        let own = with(LogInputs::Named(vec![name.into()]));
        let text = fit(&dataset(table, &y), &own).expect_err("a refusal").to_string();
        assert!(text.contains(part), "{text}");
    }
    // values on the scale of the inputs as they are
    let own = FitOptions { kernel: "rbf(lengthscales=[0.3, 1.7])".into(), ..with(LogInputs::Auto) };
    assert!(fit(&dataset(&x, &y), &own).expect("a fit").scaler.x_log.is_empty());
}

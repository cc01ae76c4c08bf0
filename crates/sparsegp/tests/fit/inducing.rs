//! How inducing points are found.

use crate::support::{arrays, bits, fit, options, predict, prepare, table, value};
use sparsegp::Error;
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions};
use sparsegp::inducing::select::Selection;
use sparsegp::linalg::Mat;

#[test]
fn more_points_than_rows_warn_and_work() {
    let dataset = table(20, 2);
    for method in ["titsias2009", "spherical", "titsias2025"] {
        for selection in [Selection::KMeans, Selection::Random, Selection::GreedyVariance] {
            let own = FitOptions { inducing: Some(50), selection, ..options(method, 30) };
            let fitted = fit(&dataset, &own).expect("a fit");
            assert_eq!(fitted.model.inducing_points().expect("sparse").nrows(), 20);
            let warned = |w: &String| w.contains("20 training rows") && w.contains("50");
            assert_eq!(fitted.warnings.iter().filter(|w| warned(w)).count(), 1, "{method}");
        }
        // every row is a point: at the same parameters the bound is the evidence, but for the jitter
        // ε = 10⁻¹⁰ v of Kuu, which leaves rᵢ ≤ ε: N ε/2σ² = 10⁻⁸ with v = 1, σ² = 0.1
        let jitter = sparsegp::linalg::Jitter::Absolute(1e-10);
        let own = FitOptions { inducing: Some(50), jitter, ..options(method, 0) };
        let value = |own: &FitOptions| {
            let (model, ..) = prepare(&dataset, own).expect("a model");
            model.evaluate(&Cpu::default(), &*dataset.source).expect("well posed").value
        };
        let (bound, exact) = (value(&own), value(&options("exact", 0)));
        assert!((bound - exact).abs() < 1e-6, "{method}: {bound} {exact}");
    }
    // nobody asked for a number
    let own = FitOptions { inducing: None, ..options("titsias2025", 0) };
    let (model, _, warnings) = prepare(&dataset, &own).expect("a model");
    assert_eq!(model.inducing_points().expect("sparse").nrows(), 20);
    assert!(warnings.is_empty(), "{warnings:?}");
}

#[test]
fn given_points_are_taken_as_they_are() {
    let dataset = table(40, 2);
    let points = Mat::from_fn(5, 2, |i, q| (i as f64 - 2.0) * 0.6 + 0.3 * q as f64);
    let flat: Vec<f64> = (0..2).flat_map(|q| points.col_as_slice(q).to_vec()).collect();
    for method in ["auto", "titsias2009"] {
        let mut own = options(method, 8);
        own.selection = Selection::Given(points.clone());
        own.inducing = None;
        let (start, reason, warnings) = prepare(&dataset, &own).expect("a model");
        assert_eq!(value(&start, "inducing.points"), flat, "{method}: {reason}");
        assert!(warnings.is_empty() && !reason.contains("512"), "{warnings:?} {reason}");
        own.freeze = vec!["inducing".into()];
        let fitted = fit(&dataset, &own).expect("a fit");
        assert_eq!(value(&fitted.model, "inducing.points"), flat, "{method}");
        // in the data's units
        let z = fitted.inducing_points().expect("columns that fit").expect("a sparse model");
        for (i, q) in [(0, 0), (4, 1)] {
            let s = &fitted.scaler;
            assert_eq!(z[(i, q)], points[(i, q)] * s.x_scale[q] + s.x_mean[q]);
        }
        own.selection = Selection::Given(Mat::zeros(3, 1));
        let error = fit(&dataset, &own).expect_err("too few columns");
        assert!(matches!(error, Error::Shape { .. }), "{error}");
        own.selection = Selection::Given(Mat::from_fn(3, 2, |_, _| f64::NAN));
        assert!(fit(&dataset, &own).is_err());
    }
}

/// Greedy selection by hand: the row whose variance given the rows before is greatest.
#[test]
fn greedy_selection_takes_rows_of_greatest_variance() {
    let (mut x, y) = arrays(40, 2);
    // a linear part, so that variances differ from row to row
    let dataset = Dataset::from_arrays(x.clone(), y, true).expect("a table");
    dataset.scaler.scale_x(x.as_mut()).expect("two columns");
    let mut own = options("titsias2025", 0);
    own.kernel = "rbf(variance=0.7, lengthscales=[0.8, 1.6]) + linear(variance=0.45)".into();
    own.selection = Selection::GreedyVariance;
    own.inducing = Some(8);
    let (model, ..) = prepare(&dataset, &own).expect("a model");
    let k = |i: usize, j: usize| {
        let square = |q: usize, l: f64| ((x[(i, q)] - x[(j, q)]) / l).powi(2);
        let dot = x[(i, 0)] * x[(j, 0)] + x[(i, 1)] * x[(j, 1)];
        0.7 * (-0.5 * (square(0, 0.8) + square(1, 1.6))).exp() + 0.45 * dot
    };
    // conditioning on one row at a time: k ← k − k(·, p) k(p, ·)/k(p, p)
    let mut left = Mat::from_fn(40, 40, k);
    let z = model.inducing_points().expect("sparse");
    for step in 0..8 {
        let best = (0..40).max_by(|a, b| left[(*a, *a)].total_cmp(&left[(*b, *b)])).expect("rows");
        assert_eq!((z[(step, 0)], z[(step, 1)]), (x[(best, 0)], x[(best, 1)]), "step {step}");
        let column = left.col_as_slice(best).to_vec();
        left = Mat::from_fn(40, 40, |i, j| left[(i, j)] - column[i] * column[j] / column[best]);
    }
    let fitted = fit(&dataset, &FitOptions { train: options("exact", 10).train, ..own.clone() });
    assert!(predict(&fitted.expect("a fit"), &arrays(40, 2).0).0.iter().all(|v| v.is_finite()));
    let (again, ..) = prepare(&dataset, &FitOptions { seed: 99, ..own }).expect("a model");
    assert_eq!(bits(&again), bits(&model), "no chance in it");
}

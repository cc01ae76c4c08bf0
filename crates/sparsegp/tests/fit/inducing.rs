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
        for selection in [
            Selection::KMeans,
            Selection::Random,
            Selection::GreedyVariance,
            Selection::GreedyElbo,
            Selection::KDpp,
        ] {
            let own = FitOptions { inducing: Some(50), selection, ..options(method, 30) };
            let fitted = fit(&dataset, &own).expect("a fit");
            assert_eq!(fitted.model.inducing_points().expect("sparse").nrows(), 20);
            let warned = |w: &String| w.contains("20 training rows") && w.contains("50");
            assert_eq!(fitted.warnings.iter().filter(|w| warned(w)).count(), 1, "{method}");
        }
        // every row is a point: at the same parameters the bound is the evidence, but for the jitter
        // ε = 10⁻¹⁰ v of Kuu, which leaves rᵢ ≤ ε: N ε/2σ² = 10⁻⁸ with v = 1, σ² = 0.1
        let jitter = sparsegp::linalg::Jitter::Absolute(1e-10);
        let own = FitOptions { inducing: Some(50), jitter, pilot: 0, ..options(method, 0) };
        let value = |own: &FitOptions| {
            let (model, ..) = prepare(&dataset, own).expect("a model");
            model.evaluate(&Cpu::default(), &*dataset.source).expect("well posed").value
        };
        let exact = value(&FitOptions { pilot: 0, ..options("exact", 0) });
        let bound = value(&own);
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

/// By the bound of the training, from rows: at the start it is higher than that of random rows, mean function
/// included, and the same bits come again.
#[test]
fn greedy_selection_by_the_bound_starts_higher_than_random_rows() {
    let dataset = table(200, 2);
    let start = |selection: Selection, seed: u64| {
        let mut own = options("titsias2009", 0);
        own.mean = Some("linear".into());
        own.set = vec![("mean.weights".into(), vec![0.4, -0.3])];
        own.selection = selection;
        own.inducing = Some(8);
        own.seed = seed;
        own.pilot = 0;
        prepare(&dataset, &own).expect("a model").0
    };
    let value = |model: &sparsegp::model::Model| {
        model.evaluate(&Cpu::default(), &*dataset.source).expect("well posed").value
    };
    let greedy = start(Selection::GreedyElbo, 3);
    let random: Vec<f64> = (0..10).map(|seed| value(&start(Selection::Random, seed))).collect();
    let best = random.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    assert!(value(&greedy) > best, "{} {random:?}", value(&greedy));
    assert_eq!(bits(&greedy), bits(&start(Selection::GreedyElbo, 3)));
}

/// What a selection cannot do is reported before the training.
#[test]
fn selections_that_do_not_fit_are_refused() {
    let wide = table(80, 9);
    let own =
        FitOptions { inducing: Some(60), selection: Selection::Grid, ..options("titsias2009", 3) };
    let error = fit(&wide, &own).expect_err("too many inputs").to_string();
    assert!(error.contains("grid") && error.contains("2^9"), "{error}");
    let mut own = options("svgp", 3);
    own.selection = Selection::GreedyElbo;
    own.likelihood = Some("student-t".into());
    let (x, y) = arrays(60, 2);
    let mild = Dataset::from_arrays(x, y, true).expect("a table");
    let error = fit(&mild, &own).expect_err("no Gaussian noise").to_string();
    assert!(error.contains("`greedy-elbo`") && error.contains("`greedy-variance`"), "{error}");
}

/// A grid stands on the data's own scale, from edge to edge of every column; with labels every label has its own.
#[test]
fn a_grid_spans_the_rows() {
    let dataset = table(90, 2);
    let mut own = options("titsias2009", 0);
    own.selection = Selection::Grid;
    own.inducing = Some(30);
    own.pilot = 0;
    let (model, _, warnings) = prepare(&dataset, &own).expect("a model");
    let z = model.inducing_points().expect("sparse");
    assert!(z.nrows() <= 30 && z.nrows() >= 20, "{}", z.nrows());
    assert_eq!(warnings.iter().any(|w| w.contains("largest even grid")), z.nrows() < 30);
    let (mut x, _) = arrays(90, 2);
    dataset.scaler.scale_x(x.as_mut()).expect("two columns");
    for q in 0..2 {
        let edges = |a: &Mat<f64>| {
            let all = a.col_as_slice(q).iter().copied();
            (all.clone().fold(f64::INFINITY, f64::min), all.fold(f64::NEG_INFINITY, f64::max))
        };
        let (found, expected) = (edges(&z), edges(&x));
        assert!((found.0 - expected.0).abs() < 1e-12 && (found.1 - expected.1).abs() < 1e-12);
    }
}

/// In the data's units the gap holds the objective of the training.
#[test]
fn quality_of_a_fit_is_in_the_datas_units() {
    let dataset = table(150, 2);
    let own = FitOptions { inducing: Some(12), ..options("titsias2025", 15) };
    let fitted = fit(&dataset, &own).expect("a fit");
    let usual = sparsegp::fit::quality::QualityOptions::default();
    let found =
        fitted.inducing_quality(&dataset, &Cpu::default(), &usual).expect("inducing points");
    let (gap, objective) = (found.gap.expect("Gaussian"), fitted.objective().expect("a report"));
    assert!((gap.lower - objective).abs() < 1e-8 * objective.abs(), "{gap:?} {objective}");
    assert!(gap.upper > gap.lower && gap.width() > 0.0);
    let own = &found.processes[0];
    assert_eq!((own.points, own.rows), (12, 150));
    assert!((0.0..1.0).contains(&own.trace_residual()) && own.suggestion.reached);
    // other columns are refused
    let error = fitted.inducing_quality(&table(30, 3), &Cpu::default(), &usual);
    assert!(error.expect_err("three inputs").to_string().contains("inputs"));
}

//! What rows may bring beside inputs and targets: weights, further numbers, nothing to learn.

use crate::stochastic::{dataset, draws, stochastic};
use crate::support::{arrays, bits, fit, options, prepare};
use sparsegp::data::{InMemory, Minibatch, Selection, Table};
use sparsegp::engine::Cpu;
use sparsegp::fit::{BatchOptions, Dataset, FitOptions, Fitted, Of};
use sparsegp::linalg::Mat;
use sparsegp::methods::Evaluation;
use sparsegp::model::Model;

/// A model away from its start, with too few inducing points for factors v near 1.
fn model(likelihood: &str, method: &str, rows: &InMemory) -> Model {
    let mut options = stochastic(likelihood, method, 20, 5);
    options.inducing = Some(3);
    options.pilot = 0;
    options.set = vec![("kernel.lengthscales".into(), vec![0.4])];
    fit(&dataset(rows.clone(), false), &options).expect("a fit").model
}

const CASES: [(&str, &str, f64); 6] = [
    ("gaussian(variance=0.3)", "svgp", 0.0),
    ("gaussian(variance=0.3)", "svgp2025", 0.0),
    ("gaussian(variance=0.3)", "svgp-spherical", 0.0),
    ("poisson", "svgp", 1.0),
    ("poisson", "svgp-spherical", 1.0),
    ("student-t(df=4, scale=0.3)", "svgp-spherical", 1.0),
];

fn bound(model: &Model, rows: &InMemory) -> Evaluation {
    model.evaluate(&Cpu::default(), rows).expect("a bound")
}

/// Values and gradients agree to rounding.
fn same(model: &Model, a: &InMemory, b: &InMemory) {
    let (a, b) = (bound(model, a), bound(model, b));
    assert!((a.value - b.value).abs() < 1e-11 * a.value.abs(), "{} {}", a.value, b.value);
    let largest = a.gradient.iter().fold(0.0_f64, |m, g| m.max(g.abs()));
    for (i, (a, b)) in a.gradient.iter().zip(&b.gradient).enumerate() {
        assert!((a - b).abs() < 1e-10 * largest, "{i}: {a} {b} of {largest}");
    }
}

/// For Hensman's bound to rounding. The tighter bounds have a factor v for every value of f, and two
/// rows have two: a weight says that there is one, and the bound is the higher for it.
#[test]
fn weight_two_is_the_row_twice() {
    for (likelihood, method, extra) in CASES {
        let rows = draws(40, likelihood, extra, |x| vec![x.sin()]);
        let model = model(likelihood, method, &rows);
        let weights = (0..40).map(|i| f64::from(u8::from(i % 3 == 0)) + 1.0).collect();
        let order: Vec<usize> =
            (0..40).flat_map(|i| std::iter::repeat_n(i, 1 + usize::from(i % 3 == 0))).collect();
        let pick = |a: &Mat<f64>| Mat::from_fn(order.len(), 1, |i, j| a[(order[i], j)]);
        let twice = InMemory::new(pick(&rows.x), pick(&rows.y)).expect("as many");
        let weighted = InMemory { weights, ..rows };
        if method == "svgp" {
            same(&model, &weighted, &twice);
        } else {
            let gain = bound(&model, &weighted).value - bound(&model, &twice).value;
            assert!(gain > 0.01, "{likelihood} {method}: {gain}");
        }
    }
}

#[test]
fn missing_targets_say_nothing() {
    for (likelihood, method, extra) in CASES {
        let mut rows = draws(40, likelihood, extra, |x| vec![x.sin()]);
        let model = model(likelihood, method, &rows);
        let known: Vec<usize> = (0..40).filter(|i| i % 4 != 1).collect();
        let pick = |a: &Mat<f64>| Mat::from_fn(known.len(), 1, |i, j| a[(known[i], j)]);
        let without = InMemory::new(pick(&rows.x), pick(&rows.y)).expect("as many");
        (0..40).filter(|i| i % 4 == 1).for_each(|i| rows.y[(i, 0)] = f64::NAN);
        same(&model, &rows, &without);
        // and they can be learnt from, in minibatches of which some know nothing
        let fitted = fit(&dataset(rows, false), &stochastic(likelihood, method, 2, 3));
        assert!(fitted.expect("a fit").report.expect("trained").objective.is_finite());
    }
}

#[test]
fn weight_zero_is_not_a_row() {
    for (likelihood, method, extra) in CASES {
        let rows = draws(40, likelihood, extra, |x| vec![x.sin()]);
        let model = model(likelihood, method, &rows);
        let mut missing = rows.clone();
        (0..40).step_by(5).for_each(|i| missing.y[(i, 0)] = f64::NAN);
        let weights = (0..40).map(|i| f64::from(u8::from(i % 5 != 0))).collect();
        same(&model, &InMemory { weights, ..rows }, &missing);
    }
}

#[test]
fn twice_the_exposure_is_half_the_rate() {
    for likelihood in ["poisson", "negative-binomial"] {
        let rows = draws(150, likelihood, 1.0, |x| vec![2.0 + x.sin()]);
        let fits = [1.0, 2.0].map(|exposure| {
            let own = InMemory { extra: vec![exposure; 150], ..rows.clone() };
            fit(&dataset(own, false), &stochastic(likelihood, "svgp", 50, 30)).expect("a fit")
        });
        let x = Mat::from_fn(9, 1, |i, _| -2.0 + 0.5 * i as f64);
        let rates = |at: usize, exposure: f64| {
            let extra = vec![exposure; 9];
            fits[at].predict_with(x.as_ref(), &extra, Of::Observations).expect("rates").0
        };
        let (one, two, same) = (rates(0, 1.0), rates(1, 1.0), rates(1, 2.0));
        for i in 0..9 {
            let (one, two, same) = (one[(i, 0)], two[(i, 0)], same[(i, 0)]);
            assert!((one / two - 2.0).abs() < 0.05, "{likelihood}: {one} {two}");
            assert!((same / two - 2.0).abs() < 1e-9, "{likelihood}: {same} {two}");
        }
    }
}

/// Known noise variances are in the units of the targets, in memory and from a file: targets ten times
/// as large with variances a hundred times as large are the same rows.
#[test]
fn known_noise_variances_have_the_units_of_the_targets() {
    let rows = draws(120, "gaussian(variance=0.05)", 0.0, |x| vec![3.0 * x.sin()]);
    let variances: Vec<f64> = (0..120).map(|i| if i % 3 == 0 { 4.0 } else { 0.02 }).collect();
    let large = InMemory {
        y: Mat::from_fn(120, 1, |i, _| 10.0 * rows.y[(i, 0)] + 7.0),
        extra: variances.iter().map(|v| 100.0 * v).collect(),
        ..rows.clone()
    };
    let small = InMemory { extra: variances, ..rows };
    // iterations of the start would make more of what units do to the last digits
    let options = FitOptions { pilot: 0, ..stochastic("gaussian", "svgp", 40, 12) };
    let path = std::env::temp_dir().join(format!("sparsegp-rows-{}.csv", std::process::id()));
    let line =
        |i: usize| format!("{:?},{:?},{:?}\n", large.x[(i, 0)], large.y[(i, 0)], large.extra[i]);
    let text: String = std::iter::once("x,y,v\n".into()).chain((0..120).map(line)).collect();
    std::fs::write(&path, text).expect("a file");
    let selection = Selection::targets(["y"]).extra("v");
    let selected = Table::open(&path).and_then(|t| t.select(&selection)).expect("its columns");
    let loaded = Dataset::from_loaded(selected.read_all().expect("rows"), true).expect("usable");
    let streamed = Dataset::from_table(selected.stream().expect("rows"), true).expect("usable");
    // the bound of the rows at the same parameters, however they come
    let model = prepare(&dataset(small.clone(), true), &options).expect("a model").0;
    let value =
        |data: &Dataset| model.evaluate(&Cpu::default(), &*data.source).expect("a bound").value;
    let expected = value(&dataset(small.clone(), true));
    for data in [&dataset(large.clone(), true), &loaded, &streamed] {
        assert!((value(data) - expected).abs() < 1e-9 * expected.abs(), "{}", value(data));
        // and of minibatches
        let mut batches = data.source.batches(17, 1).expect("minibatches");
        let mut batch = Minibatch::new();
        for _ in 0..batches.per_epoch() {
            batches.next(&mut batch).expect("a minibatch");
            assert!(batch.rows.extra.iter().all(|v| *v < 1.0), "{:?}", batch.rows.extra);
        }
    }
    let _ = std::fs::remove_file(&path);
    let fits = [small, large].map(|rows| fit(&dataset(rows, true), &options).expect("a fit"));
    let x = Mat::from_fn(9, 1, |i, _| -2.0 + 0.5 * i as f64);
    let at = |fitted: &Fitted, v: f64| {
        let of = Of::Observations;
        fitted.predict_with(x.as_ref(), &[v; 9], of).expect("predictions")
    };
    let ((mean, spread), (large_mean, large_spread)) = (at(&fits[0], 0.5), at(&fits[1], 50.0));
    for i in 0..9 {
        let (m, v) = (10.0 * mean[(i, 0)] + 7.0, 100.0 * spread[(i, 0)]);
        assert!((large_mean[(i, 0)] - m).abs() < 1e-6, "{} {m}", large_mean[(i, 0)]);
        assert!((large_spread[(i, 0)] - v).abs() < 1e-6 * v, "{} {v}", large_spread[(i, 0)]);
    }
}

/// `auto` chooses what can do without; what cannot says so.
#[test]
fn missing_targets_are_for_the_methods_that_train_q() {
    let mut rows = draws(60, "gaussian(variance=0.1)", 0.0, |x| vec![x.sin()]);
    rows.y[(11, 0)] = f64::NAN;
    let data = dataset(rows, false);
    let auto = prepare(&data, &FitOptions::default()).expect("a model").0;
    assert!(auto.method.with_q().is_some_and(|q| q.is_of_points()), "{}", auto.method.name());
    for method in ["exact", "titsias2025"] {
        let options = FitOptions { method: method.into(), ..FitOptions::default() };
        let text = prepare(&data, &options).expect_err("a target is missing").to_string();
        assert!(text.contains(method) && text.contains("missing"), "{text}");
    }
}

#[test]
fn what_does_not_fit_the_likelihood_is_refused() {
    let mut rows = draws(40, "poisson", 1.0, |_| vec![1.0]);
    rows.y[(7, 0)] = -3.0;
    let error = prepare(&dataset(rows, false), &stochastic("poisson", "svgp", 10, 1));
    let text = error.expect_err("a negative count").to_string();
    assert!(text.contains("row 8") && text.contains("-3"), "{text}");
}

/// Weights that sum to 1 make of a table one row, unless they are relative: then their size is of no matter.
#[test]
fn relative_weights_have_no_size() {
    let (x, y) = arrays(40, 1);
    let with = |size: f64, relative: bool, batches: Option<BatchOptions>| {
        let mut rows = InMemory::new(x.clone(), y.clone()).expect("rows");
        rows.weights = (0..40).map(|i| size * f64::from(i % 4)).collect();
        let mut dataset = Dataset::from_rows(rows, true).expect("a table");
        let warned = dataset.warnings.iter().any(|text| text.contains("the weights of 30 rows"));
        let mut own = FitOptions { pilot: 0, batches, ..options("svgp", 5) };
        if relative {
            own.relative_weights = true;
            let error = fit(&dataset, &own).err().map(|error| error.to_string());
            assert!(
                size == 0.5 || error.is_some_and(|text| text.contains("make_weights_relative"))
            );
            dataset.make_weights_relative().expect("weights");
            assert!(dataset.warnings.iter().all(|text| !text.contains("the weights of")));
            assert_eq!(dataset.total_weight, Some(30.0));
        }
        (fit(&dataset, &own).expect("a fit"), warned)
    };
    // their mean over the rows that count is 2
    let stochastic = BatchOptions { size: 10, ..BatchOptions::default() };
    for batches in [None, Some(stochastic)] {
        let (plain, quiet) = with(0.5, false, batches.clone());
        assert!(!quiet);
        for size in [0.5, 2.0_f64.powi(-12), 2.0_f64.powi(12)] {
            let (own, warned) = with(size, true, batches.clone());
            assert_eq!(bits(&own.model), bits(&plain.model), "{size}");
            assert_eq!(own.objective(), plain.objective());
            // whole numbers may be numbers of repeated rows
            assert_eq!(warned, size < 0.1);
        }
    }
}

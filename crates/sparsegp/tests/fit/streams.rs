//! Streams: what old rows said holds against new ones, and what the model promised is held against it.

use crate::support::{fit, options};
use sparsegp::data::InMemory;
use sparsegp::fit::{Dataset, FitOptions, Fitted, Of, UpdateOptions, update};
use sparsegp::linalg::Mat;
use sparsegp::rng::{stream, uniform};

/// Rows of a function of two inputs in (−3, 3), on the scales of `like`.
fn rows(like: &Dataset, seed: u64, n: usize, y: impl Fn(&[f64], f64) -> f64) -> Dataset {
    let mut rng = stream(seed, "stream");
    let mut noise = || (0..12).map(|_| uniform(&mut rng)).sum::<f64>() - 6.0;
    let drawn: Vec<[f64; 3]> =
        (0..n).map(|_| [noise().clamp(-3.0, 3.0), noise().clamp(-3.0, 3.0), noise()]).collect();
    let x = Mat::from_fn(n, 2, |i, q| drawn[i][q]);
    let y = Mat::from_fn(n, 1, |i, _| y(&drawn[i][..2], drawn[i][2]));
    let some = (Mat::from_fn(4, 2, |i, q| (i + q) as f64), Mat::from_fn(4, 1, |i, _| i as f64));
    let mut own = Dataset::from_arrays(some.0, some.1, false).expect("a table");
    own.rows = n;
    own.scaler = like.scaler.clone();
    let (mut x, mut y) = (x, y);
    own.scaler.scale_x(x.as_mut()).expect("inputs");
    own.scaler.scale_y(y.as_mut()).expect("targets");
    own.source = Box::new(InMemory { x, y, weights: Vec::new(), extra: Vec::new() });
    own
}

fn begun(likelihood: Option<&str>, y: impl Fn(&[f64], f64) -> f64, n: usize) -> (Dataset, Fitted) {
    let (x, none) = (Mat::from_fn(4, 2, |i, q| (i * 2 + q) as f64 - 3.5), Mat::zeros(4, 1));
    let plain = Dataset::from_arrays(x, none, false).expect("a table");
    let first = rows(&plain, 1, n, y);
    let own = FitOptions {
        inducing: Some(40),
        likelihood: likelihood.map(Into::into),
        ..options(if likelihood.is_some() { "tsvgp" } else { "titsias2025" }, 60)
    };
    let fitted = fit(&first, &own).expect("a fit");
    (plain, fitted)
}

fn take(fitted: &Fitted, rows: &Dataset) -> (Fitted, Vec<String>) {
    let (updated, report) =
        update(fitted, rows, &UpdateOptions::default(), &mut |_, _| Ok(())).expect("an update");
    (updated, report.warnings)
}

fn label(x: &[f64], _: f64) -> f64 {
    f64::from(u8::from(x[0] > 0.0))
}

/// Share of a grid on which the classes are right.
fn accuracy(fitted: &Fitted) -> f64 {
    let x = Mat::from_fn(200, 2, |i, q| if q == 0 { (i as f64 - 99.5) / 40.0 } else { 0.3 });
    let (mean, _) = fitted.predict(x.as_ref(), Of::Latent).expect("predictions");
    let right = (0..200).filter(|&i| (mean[(i, 0)] > 0.0) == (x[(i, 0)] > 0.0)).count();
    right as f64 / 200.0
}

/// A few wrong labels do not turn classes over that hundreds of rows have shown, and they are reported.
#[test]
fn a_few_wrong_labels_are_outvoted() {
    let (plain, mut fitted) = begun(Some("bernoulli"), label, 80);
    for seed in 2..8 {
        let (updated, warnings) = take(&fitted, &rows(&plain, seed, 50, label));
        assert_eq!(warnings, Vec::<String>::new());
        fitted = updated;
    }
    assert!(accuracy(&fitted) > 0.98);
    assert_eq!(fitted.kept_rows.count(), 300);
    let wrong = rows(&plain, 9, 10, |x, e| 1.0 - label(x, e));
    let (after, warnings) = take(&fitted, &wrong);
    assert!(accuracy(&after) > 0.93, "{}", accuracy(&after));
    assert!(warnings.iter().any(|w| w.contains("the model gave their labels")), "{warnings:?}");
    // without the rows that are kept there is nothing to outvote them with
    let mut bare = fitted.clone();
    bare.kept_rows = Default::default();
    bare.carried = Vec::new();
    let (turned, _) = take(&bare, &wrong);
    assert!(accuracy(&turned) < accuracy(&after) - 0.1, "{}", accuracy(&turned));
    // rows that are kept go through a file, to the bit
    let bytes = sparsegp::io::to_bytes(&fitted).expect("a file");
    let again = sparsegp::io::from_bytes(&bytes).expect("a model");
    let (resumed, _) = take(&again, &wrong);
    assert_eq!(resumed.posterior.q_mu(), after.posterior.q_mu());
    // of many rows a sample is kept
    let (many, _) = take(&fitted, &rows(&plain, 10, 400, label));
    assert_eq!(many.kept_rows.count(), 512);
    assert!(accuracy(&many) > 0.98);
}

/// What a stream is not, compared with what the model promises, is said from the first batch on; what it is, is not.
#[test]
fn streams_are_judged_by_what_the_model_promises() {
    let f = |x: &[f64]| (1.5 * x[0]).sin() + 0.3 * x[1];
    let (plain, first) = begun(None, |x, e| f(x) + 0.1 * e, 200);
    let missed = |warnings: &[String]| warnings.iter().any(|w| w.contains("promised"));
    let mut own = first.clone();
    for seed in 20..60 {
        let (updated, warnings) = take(&own, &rows(&plain, seed, 25, |x, e| f(x) + 0.1 * e));
        assert_eq!(warnings, Vec::<String>::new(), "{seed}");
        own = updated;
    }
    // noise and shifts from the first row on
    assert!(missed(&take(&first, &rows(&plain, 3, 50, |x, e| f(x) + 0.5 * e)).1));
    assert!(missed(&take(&first, &rows(&plain, 3, 50, |x, e| f(x) + 0.1 * e + 0.3)).1));
    // row by row: what was seen goes along with the model
    let (mut slow, mut at) = (first.clone(), None);
    for t in 0..300 {
        let one = rows(&plain, 100 + t, 1, |x, e| f(x) + 0.1 * e + 0.003 * t as f64);
        let (updated, warnings) = take(&slow, &one);
        slow = updated;
        at = at.or(missed(&warnings).then_some(t));
    }
    assert!(at.is_some_and(|t| t > 20), "{at:?}");
    // few rows that are all but impossible
    let odd = rows(&plain, 4, 40, |x, e| f(x) + 0.1 * e + if e > 2.0 { 1e6 } else { 0.0 });
    let (_, warnings) = take(&first, &odd);
    assert!(warnings.iter().any(|w| w.contains("predicted standard deviations")), "{warnings:?}");
}

/// Counts are judged too, and rows that are wrong together count once.
#[test]
fn counts_and_rows_beyond_the_old_ones_are_judged() {
    let rate = |x: &[f64]| (1.5 + x[0].sin()).exp();
    let count = move |x: &[f64], e: f64| (rate(x) + rate(x).sqrt() * e).round().max(0.0);
    let (plain, first) = begun(Some("poisson"), count, 150);
    let (_, warnings) = take(&first, &rows(&plain, 5, 60, count));
    assert_eq!(warnings, Vec::<String>::new());
    let (_, warnings) = take(&first, &rows(&plain, 5, 60, move |x, e| 3.0 * count(x, e)));
    assert!(warnings.iter().any(|w| w.contains("promised")), "{warnings:?}");
    // beyond the old rows all new ones are off by one amount, which the model knew that it did not know
    let f = |x: &[f64]| (1.5 * x[0]).sin();
    let (plain, first) = begun(None, |x, e| f(x) + 0.1 * e, 150);
    let mut beyond = rows(&plain, 6, 40, |_, e| 1.2 + 0.1 * e);
    let mut own = sparsegp::fit::sample_rows(&*beyond.source, 40, 0).expect("rows");
    own.x = Mat::from_fn(40, 2, |i, q| own.x[(i, q)] * 0.01 + 8.0);
    beyond.source = Box::new(own);
    let (_, warnings) = take(&first, &beyond);
    assert!(!warnings.iter().any(|w| w.contains("promised")), "{warnings:?}");
}

/// Where an input moves on without end, points behind give way: rows that were just learnt are
/// predicted as well as at first.
#[test]
fn points_behind_give_way() {
    let x = Mat::from_fn(60, 1, |i, _| 0.1 * i as f64);
    let wave = |t: f64, i: usize| (1.3 * t).sin() + 0.1 * (((i * i) as f64 * 0.618).fract() - 0.5);
    let y = Mat::from_fn(60, 1, |i, _| wave(x[(i, 0)], i));
    let first = Dataset::from_arrays(x.clone(), y, false).expect("a table");
    let own = FitOptions { inducing: Some(12), ..options("titsias2025", 60) };
    let mut fitted = fit(&first, &own).expect("a fit");
    let few = UpdateOptions { most_points: Some(20), ..UpdateOptions::default() };
    let (mut worst, mut given_up) = (0.0_f64, 0);
    for t in 1..40 {
        let from = 60 * t;
        let x = Mat::from_fn(60, 1, |i, _| 0.1 * (from + i) as f64);
        let y = Mat::from_fn(60, 1, |i, _| wave(x[(i, 0)], from + i));
        let mut part = Dataset::from_arrays(x.clone(), y.clone(), false).expect("a table");
        part.scaler = fitted.scaler.clone();
        let report;
        (fitted, report) = update(&fitted, &part, &few, &mut |_, _| Ok(())).expect("an update");
        assert!(report.points <= 20);
        given_up += report.given_up;
        let warned = report.warnings.iter().any(|w| w.contains("were given up"));
        assert_eq!(warned, report.given_up > 0);
        let (mean, _) = fitted.predict(x.as_ref(), Of::Latent).expect("predictions");
        let square: f64 = (0..60).map(|i| (mean[(i, 0)] - y[(i, 0)]).powi(2)).sum();
        worst = worst.max((square / 60.0).sqrt());
    }
    assert!(given_up > 50 && worst < 0.1, "{given_up} points given up, off by {worst}");
}

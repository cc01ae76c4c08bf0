//! Several outputs of a series, by coregionalisation: rows have a time and a label.

use crate::support::{fit, options};
use sparsegp::data::InMemory;
use sparsegp::fit::{Dataset, FitOptions, Fitted, Of, Standardise, UpdateOptions, update};
use sparsegp::io;
use sparsegp::linalg::Mat;
use sparsegp::rng::{stream, uniform};

const KERNEL: &str = "matern32(active_dims=[0]) * coregion(output_dim=3, rank=2, active_dims=[1]) + \
                      matern12(active_dims=[0])";

/// Times and labels: three rows at most times, far from zero. One output is seen seldom.
fn inputs(n: usize) -> Mat<f64> {
    Mat::from_fn(n, 2, |i, q| match q {
        0 => 900.0 + 5.0 * (i / 3) as f64,
        _ if i % 3 == 1 && i % 5 != 0 => 2.0,
        _ => (i % 3) as f64,
    })
}

fn value(x: &Mat<f64>, i: usize) -> f64 {
    let size = [1.0, -0.8, 0.6][x[(i, 1)] as usize];
    size * (x[(i, 0)] / 40.0).sin()
}

fn dataset(x: &Mat<f64>, y: &Mat<f64>) -> Dataset {
    let scaling = Standardise { inputs: true, targets: true, robust: false, constants: false };
    Dataset::from_arrays(x.clone(), y.clone(), scaling.for_kernel(KERNEL)).expect("a table")
}

fn numbers(n: usize) -> (Mat<f64>, Mat<f64>) {
    let (x, mut rng) = (inputs(n), stream(5, "outputs of a series"));
    let noise = Mat::from_fn(n, 1, |_, _| uniform(&mut rng) - 0.5);
    let y = Mat::from_fn(n, 1, |i, _| -70.0 + 30.0 * (value(&x, i) + 0.5 * noise[(i, 0)]));
    (x, y)
}

fn how(method: &str) -> FitOptions {
    let mut own = FitOptions {
        kernel: KERNEL.into(),
        mean: Some("constant".into()),
        inducing: None,
        ..options(method, 40)
    };
    (own.gibbs.chains, own.gibbs.draws) = (2, 1500);
    own
}

/// At the same hyperparameters.
fn with_values(mut options: FitOptions, like: &Fitted) -> FitOptions {
    options.train.max_iterations = 0;
    options.pilot = 0;
    let params = like.model.params().into_iter().filter(|(path, _)| !path.starts_with("q."));
    options.set = params.map(|(path, p)| (path, p.value().to_vec())).collect();
    options
}

/// Every output before, between, at and after rows.
fn places() -> Mat<f64> {
    Mat::from_fn(60, 2, |i, q| if q == 0 { 870.0 + 13.0 * (i / 3) as f64 } else { (i % 3) as f64 })
}

fn predicted(of: &Fitted) -> (Mat<f64>, Mat<f64>) {
    of.predict(places().as_ref(), Of::Latent).expect("predictions")
}

fn close(a: &Mat<f64>, b: &Mat<f64>, tolerance: f64, what: &str) {
    for i in 0..a.nrows() {
        let (a, b) = (a[(i, 0)], b[(i, 0)]);
        assert!((a - b).abs() < tolerance * (1.0 + b.abs()), "{what} {i}: {a} and {b}");
    }
}

fn objective(of: &Fitted) -> f64 {
    of.report.as_ref().expect("a report").objective
}

#[test]
fn a_fit_is_that_of_exact_inference() {
    let (x, y) = numbers(240);
    let data = dataset(&x, &y);
    let found = fit(&data, &how("markov")).expect("a fit");
    assert_eq!(found.model.method.name(), "markov");
    let mut exact = with_values(how("exact"), &found);
    exact.mean = Some("constant".into());
    let exact = fit(&data, &exact).expect("a fit");
    let (a, b) = (objective(&found), objective(&exact));
    assert!((a - b).abs() < 1e-8 * b.abs(), "{a} and {b}");
    close(&predicted(&found).0, &predicted(&exact).0, 1e-8, "means");
    let (left, right) = (found.leave_one_out(&data).unwrap(), exact.leave_one_out(&data).unwrap());
    close(&left.mean, &right.mean, 1e-8, "left out");
    close(&left.log_density, &right.log_density, 1e-8, "left out");
    // what the outputs have in common is learnt
    let at = places();
    let right: f64 =
        (0..60).map(|i| (value(&at, i) * 30.0 - 70.0 - predicted(&found).0[(i, 0)]).abs()).sum();
    assert!(right / 60.0 < 12.0, "{}", right / 60.0);
    let terms = found.predict_terms(at.as_ref(), false).expect("terms");
    assert_eq!(terms.len(), 3);
    // a file predicts the same bits
    let again = io::from_bytes(&io::to_bytes(&found).expect("a file")).expect("a model");
    assert_eq!(predicted(&again), predicted(&found));
    let unknown = Mat::from_fn(1, 2, |_, q| if q == 0 { 950.0 } else { 3.0 });
    let error = again.predict(unknown.as_ref(), Of::Latent).expect_err("a label").to_string();
    assert!(error.contains("3 in input column 1 is none of the labels 0, …, 2"), "{error}");
}

#[test]
fn counts_are_those_of_sites_of_all_rows() {
    let x = inputs(180);
    let y =
        Mat::from_fn(180, 1, |i, _| ((1.2 * value(&x, i)).exp() + (i % 7) as f64 / 4.0).floor());
    let scaling = Standardise { inputs: true, targets: false, robust: false, constants: false };
    let data = Dataset::from_arrays(x, y, scaling.for_kernel(KERNEL)).expect("a table");
    let counts =
        |method: &str| FitOptions { likelihood: Some("poisson".into()), pilot: 0, ..how(method) };
    let found = fit(&data, &counts("markov")).expect("a fit");
    let mut dense = with_values(counts("tvgp"), &found);
    // q takes its steps, and all else stays
    dense.train.max_iterations = 30;
    dense.freeze = found.model.params().into_iter().map(|(path, _)| path).collect();
    let dense = fit(&data, &dense).expect("a fit");
    let (a, b) = (objective(&found), objective(&dense));
    assert!((a - b).abs() < 1e-5 * b.abs(), "{a} and {b}");
    for (a, b) in [predicted(&found).0, predicted(&found).1]
        .iter()
        .zip([predicted(&dense).0, predicted(&dense).1].iter())
    {
        close(a, b, 1e-3, "moments");
    }
}

/// Rows behind others are filtered on, and those that leave stay known by the state of all outputs.
#[test]
fn rows_come_and_go() {
    let (x, y) = numbers(900);
    let all = dataset(&x, &y);
    let rows = sparsegp::fit::sample_rows(&*all.source, 900, 0).expect("rows");
    let part = |from: usize, to: usize| {
        let cut = |a: &Mat<f64>| a.as_ref().subrows(from, to - from).to_owned();
        let mut own = dataset(&cut(&x), &cut(&y));
        own.scaler = all.scaler.clone();
        own.source =
            Box::new(InMemory { x: cut(&rows.x), y: cut(&rows.y), weights: vec![], extra: vec![] });
        own
    };
    let first = fit(&part(0, 400), &how("markov")).expect("a fit");
    let whole = fit(&all, &with_values(how("markov"), &first)).expect("a fit");
    let keep = UpdateOptions { keep_rows: Some(150), ..UpdateOptions::default() };
    let (updated, report) =
        update(&first, &part(400, 900), &keep, &mut |_, _| Ok(())).expect("an update");
    assert_eq!(report.rows, 500);
    let from: f64 = updated.kept_from().expect("a time").parse().expect("a number");
    assert!(from > 900.0 + 5.0 * 200.0 && from < 900.0 + 5.0 * 260.0, "{from}");
    let again = io::from_bytes(&io::to_bytes(&updated).expect("a file")).expect("a model");
    let at = Mat::from_fn(
        60,
        2,
        |i, q| if q == 0 { from + 9.0 * (i / 3) as f64 } else { (i % 3) as f64 },
    );
    let [(mean, variance), (kept, spread), (loaded, _)] = [&whole, &updated, &again]
        .map(|of| of.predict(at.as_ref(), Of::Latent).expect("predictions"));
    close(&kept, &mean, 1e-8, "means");
    close(&spread, &variance, 1e-8, "variances");
    assert_eq!(kept, loaded);
    let early = Mat::from_fn(1, 2, |_, q| if q == 0 { 1000.0 } else { 1.0 });
    assert_eq!(updated.lie_before_kept(early.as_ref()).expect("rows"), [true]);
    let error = updated.predict(early.as_ref(), Of::Latent).expect_err("left").to_string();
    assert!(error.contains("`x0` is 1000") && error.contains("have left the model"), "{error}");
}

#[test]
fn chains_sample_all_outputs() {
    let (x, mut y) = numbers(60);
    (0..60).filter(|i| i % 17 == 3).for_each(|i| y[(i, 0)] += 90.0);
    let data = dataset(&x, &y);
    let heavy = |method: &str| FitOptions {
        likelihood: Some("student-t(df=5)".into()),
        pilot: 0,
        ..how(method)
    };
    let own = fit(&data, &heavy("gibbs-markov")).expect("a fit");
    let full = fit(&data, &with_values(heavy("gibbs"), &own)).expect("a fit");
    let ((mean, variance), (right, spread)) = (predicted(&own), predicted(&full));
    for i in 0..60 {
        let sd = spread[(i, 0)].sqrt();
        let off = (mean[(i, 0)] - right[(i, 0)]).abs() / sd;
        assert!(off < 0.25, "{i}: {off}");
        let ratio = variance[(i, 0)].sqrt() / sd;
        assert!((ratio - 1.0).abs() < 0.2, "{i}: {ratio}");
    }
    let again = io::from_bytes(&io::to_bytes(&own).expect("a file")).expect("a model");
    assert_eq!(predicted(&again), predicted(&own));
    let best = fit(&data, &with_values(heavy("cavi-markov"), &own)).expect("a fit");
    let dense = with_values(heavy("cavi-full"), &own);
    assert_eq!(best.model.method.name(), "cavi-markov");
    let mut dense =
        FitOptions { freeze: own.model.params().into_iter().map(|p| p.0).collect(), ..dense };
    dense.train.max_iterations = 100;
    let dense = fit(&data, &dense).expect("a fit");
    let (a, b) = (objective(&best), objective(&dense));
    assert!((a - b).abs() < 1e-4 * b.abs(), "{a} and {b}");
    close(&predicted(&best).0, &predicted(&dense).0, 2e-3, "means");
}

//! What the table itself does to a fit: equal rows, constant targets, codes for missing values, outliers, rounding.

use crate::support::{arrays, fit, options, predict, value};
use sparsegp::data::{InMemory, Loaded};
use sparsegp::fit::{Dataset, FitOptions, Fitted, Purpose, Standardise};
use sparsegp::likelihoods;
use sparsegp::linalg::Mat;
use sparsegp::rng::{stream, uniform};

fn close(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{a} is not {b}");
}

fn loaded(x: Mat<f64>, y: Mat<f64>, weights: Vec<f64>) -> Loaded {
    let names = |prefix: &str, n| (0..n).map(|i| format!("{prefix}{i}")).collect();
    Loaded {
        input_names: names("x", x.ncols()),
        columns: Vec::new(),
        target_names: names("y", y.ncols()),
        weight_name: (!weights.is_empty()).then(|| "w".into()),
        extra_name: None,
        weights,
        extra: Vec::new(),
        classes: None,
        id_names: Vec::new(),
        ids: Vec::new(),
        rows: (0..x.nrows()).collect(),
        deviations: Vec::new(),
        dropped: 0,
        remarks: Vec::new(),
        x,
        y,
    }
}

/// For a method and a likelihood, as the command line and the Python package make it.
fn for_purpose(loaded: Loaded, method: &str, likelihood: &str) -> sparsegp::Result<Dataset> {
    let likelihood = likelihoods::parse(likelihood)?;
    let purpose = Purpose { method, likelihood: &*likelihood, inducing: false };
    Dataset::for_purpose(loaded, Standardise::all_that(&*likelihood), purpose)
}

/// Rows of which some are there several times, off scale.
fn repeated() -> (Mat<f64>, Mat<f64>, Vec<usize>) {
    let (x, y) = arrays(30, 2);
    let times: Vec<usize> = (0..30).map(|i| [1, 3, 0, 2, 1][i % 5]).collect();
    let rows: Vec<usize> = (0..30).flat_map(|i| std::iter::repeat_n(i, times[i])).collect();
    let many =
        |a: &Mat<f64>| Mat::from_fn(rows.len(), a.ncols(), |i, j| (0.7 * a[(rows[i], j)]).exp());
    (many(&x), many(&y), times)
}

#[test]
fn equal_rows_are_counted_whether_they_are_merged_or_not() {
    let (x, y, times) = repeated();
    let n = x.nrows();
    for (method, likelihood) in
        [("exact", "gaussian"), ("auto", "gaussian"), ("tsvgp", "student-t")]
    {
        let apart = Dataset::from_loaded(loaded(x.clone(), y.clone(), vec![]), true).expect("rows");
        let merged =
            for_purpose(loaded(x.clone(), y.clone(), vec![]), method, likelihood).expect("rows");
        assert_eq!((merged.rows, merged.source.rows(), apart.source.rows()), (n, 24, n));
        assert_eq!((merged.repeated, merged.weight_name.is_none()), (n - 24, true));
        for (a, b) in [
            (&merged.scaler.x_mean, &apart.scaler.x_mean),
            (&merged.scaler.y_scale, &apart.scaler.y_scale),
        ] {
            a.iter().zip(b).for_each(|(a, b)| close(*a, *b, 1e-14));
        }
        // at one set of parameters
        let mut own = options(method, 0);
        own.likelihood = Some(likelihood.into());
        own.pilot = 0;
        own.set = vec![
            ("kernel.lengthscales".into(), vec![0.8, 1.3]),
            ("kernel.variance".into(), vec![1.7]),
            ("likelihood.variance".into(), vec![0.2]),
        ];
        if method != "tsvgp" {
            own.inducing = None;
            let (a, b) = (fit(&merged, &own).expect("a fit"), fit(&apart, &own).expect("a fit"));
            close(a.objective().expect("one"), b.objective().expect("one"), 1e-9);
            assert_eq!((a.rows, b.rows), (n, n));
            let (mean_a, variance_a) = predict(&a, &x);
            let (mean_b, variance_b) = predict(&b, &x);
            mean_a.iter().zip(&mean_b).for_each(|(a, b)| close(*a, *b, 1e-8));
            variance_a.iter().zip(&variance_b).for_each(|(a, b)| close(*a, *b, 1e-8));
        }
        // weights say the same
        let rows: Vec<usize> = (0..30).map(|i| times[..i].iter().sum()).collect();
        let one = |a: &Mat<f64>| Mat::from_fn(30, a.ncols(), |i, j| a[(rows[i].min(n - 1), j)]);
        let weights = times.iter().map(|t| *t as f64).collect();
        let weighted =
            for_purpose(loaded(one(&x), one(&y), weights), method, likelihood).expect("rows");
        assert_eq!(weighted.scaler, merged.scaler);
        assert_eq!((weighted.rows, weighted.total_weight), (30, Some(n as f64)));
    }
}

#[test]
fn one_row_many_times_is_many_rows_and_rows_of_weight_0_are_none() {
    let same = |n| loaded(Mat::from_fn(n, 2, |_, _| 1.5), Mat::from_fn(n, 1, |_, _| 3.0), vec![]);
    for n in [2, 50] {
        let dataset = for_purpose(same(n), "auto", "gaussian").expect("rows");
        let fitted = fit(&dataset, &FitOptions::default()).expect("a fit");
        let (mean, _) = predict(&fitted, &Mat::from_fn(1, 2, |_, _| 1.5));
        close(mean[0], 3.0, 1e-9);
        assert_eq!(fitted.rows, n);
    }
    let weighted = |weights| {
        loaded(Mat::from_fn(3, 1, |i, _| i as f64), Mat::from_fn(3, 1, |i, _| i as f64), weights)
    };
    let error =
        for_purpose(weighted(vec![0.0, 1.0, 0.0]), "auto", "gaussian").err().expect("refused");
    let text = error.to_string();
    assert!(text.contains("1 training row(s) of a weight above 0, of 3"), "{text}");
}

#[test]
fn a_constant_target_takes_nothing_from_the_others() {
    let (x, y) = arrays(70, 1);
    let second =
        Mat::from_fn(70, 2, |i, p| if p == 0 { y[(i, 0)] } else { 40.0 - 7.0 * x[(i, 0)] });
    let wide = Mat::from_fn(70, 4, |i, p| [second[(i, 0)], 2.0, second[(i, 1)], 0.0][p]);
    for method in ["exact", "titsias2025", "fitc", "svgp", "tsvgp"] {
        let mut own = options(method, 25);
        own.batches = None;
        let alone = Dataset::from_arrays(x.clone(), second.clone(), true).expect("rows");
        let beside = Dataset::from_arrays(x.clone(), wide.clone(), true).expect("rows");
        for (p, text) in [(1, "`y1` is 2 in all rows"), (3, "`y3` is 0 in all rows")] {
            assert!(beside.warnings.iter().any(|w| w.contains(text)), "{p} {:?}", beside.warnings);
        }
        let (alone, beside) =
            (fit(&alone, &own).expect("a fit"), fit(&beside, &own).expect("a fit"));
        // missing targets of trained q have their own KL, 0 at its optimum
        let tolerance = if method == "svgp" { 0.05 } else { 1e-6 };
        close(beside.objective().expect("one"), alone.objective().expect("one"), tolerance);
        close(
            value(&beside.model, "likelihood.variance")[0],
            value(&alone.model, "likelihood.variance")[0],
            tolerance,
        );
        let of = sparsegp::fit::Of::Observations;
        let (mean, variance) = beside.predict(x.as_ref(), of).expect("one column");
        let (expected, spread) = alone.predict(x.as_ref(), of).expect("one column");
        for i in 0..70 {
            for (p, q) in [(0, 0), (2, 1)] {
                close(mean[(i, p)], expected[(i, q)], 10.0 * tolerance);
                close(variance[(i, p)], spread[(i, q)], 10.0 * tolerance);
            }
            assert!((mean[(i, 1)] - 2.0).abs() < 1e-9 && mean[(i, 3)].abs() < 1e-9);
            assert!(variance[(i, 1)] < 1e-18 && variance[(i, 3)] < 1e-18);
        }
        // densities are of what varies
        let density = beside.log_density(x.as_ref(), wide.as_ref(), &[]).expect("as many");
        let known = alone.log_density(x.as_ref(), second.as_ref(), &[]).expect("as many");
        density.iter().zip(&known).for_each(|(a, b)| close(*a, *b, 10.0 * tolerance));
    }
}

#[test]
fn a_constant_target_goes_with_a_trained_mean_and_leave_one_out() {
    let (x, y) = arrays(40, 1);
    let wide = Mat::from_fn(40, 2, |i, p| if p == 0 { 5.0 } else { y[(i, 0)] + 3.0 * x[(i, 0)] });
    let mut own = options("exact", 20);
    own.mean = Some("linear".into());
    let beside = Dataset::from_arrays(x.clone(), wide.clone(), true).expect("rows");
    let one = Mat::from_fn(40, 1, |i, _| wide[(i, 1)]);
    let alone = Dataset::from_arrays(x.clone(), one, true).expect("rows");
    let (a, b) = (fit(&beside, &own).expect("a fit"), fit(&alone, &own).expect("a fit"));
    let (mean, _) = a.predict(x.as_ref(), sparsegp::fit::Of::Observations).expect("one column");
    let (expected, _) = predict(&b, &x);
    (0..40).for_each(|i| close(mean[(i, 1)], expected[i], 1e-6));
    (0..40).for_each(|i| close(mean[(i, 0)], 5.0, 1e-9));
    let (left, other) =
        (a.leave_one_out(&beside).expect("rows"), b.leave_one_out(&alone).expect("rows"));
    for i in 0..40 {
        close(left.mean[(i, 1)], other.mean[(i, 0)], 1e-6);
        close(left.mean[(i, 0)], 5.0, 1e-9);
        close(left.log_density[(i, 1)], other.log_density[(i, 0)], 1e-6);
    }
}

/// y = sin(x₀/2) + x₁/10 + noise at places in (0, 30)⁴.
fn waves(n: usize) -> (Mat<f64>, Mat<f64>) {
    let mut rng = stream(5, "waves");
    let x = Mat::from_fn(n, 4, |_, _| 30.0 * uniform(&mut rng));
    let y = Mat::from_fn(n, 1, |i, _| truth(&x, i) + 0.3 * (uniform(&mut rng) - 0.5));
    (x, y)
}

fn truth(x: &Mat<f64>, i: usize) -> f64 {
    (x[(i, 0)] / 2.0).sin() + x[(i, 1)] / 10.0
}

fn rmse(fitted: &Fitted, x: &Mat<f64>, truth: impl Fn(usize) -> f64) -> f64 {
    let (mean, _) = predict(fitted, x);
    let sum: f64 = (0..x.nrows()).map(|i| (mean[i] - truth(i)).powi(2)).sum();
    (sum / x.nrows() as f64).sqrt()
}

#[test]
fn codes_for_missing_inputs_are_said_and_cost_no_resolution() {
    let (mut x, y) = waves(200);
    let clean = Dataset::from_arrays(x.clone(), y.clone(), true).expect("rows").scaler;
    (0..3).for_each(|i| x[(50 * i, 0)] = -999.0);
    let dataset = Dataset::from_arrays(x.clone(), y, true).expect("rows");
    close(dataset.scaler.x_scale[0], clean.x_scale[0], 0.02);
    let fitted = fit(&dataset, &FitOptions::default()).expect("a fit");
    let said =
        |w: &&String| w.contains("`x0` holds -999 in 3 of 200 rows") && w.contains("missing");
    assert_eq!(fitted.warnings.iter().filter(said).count(), 1, "{:?}", fitted.warnings);
    let places =
        Mat::from_fn(150, 4, |i, q| if i % 50 == 0 { 3.0 + i as f64 / 10.0 } else { x[(i, q)] });
    let error = rmse(&fitted, &places, |i| truth(&places, i));
    assert!(error < 0.06, "{error}");
}

#[test]
fn outliers_among_targets_are_said_and_harm_no_robust_likelihood() {
    let mut rng = stream(6, "outlier");
    let x = Mat::from_fn(150, 1, |_, _| 10.0 * uniform(&mut rng));
    let sine = |i: usize| 2.0 * x[(i, 0)].sin();
    let y =
        Mat::from_fn(
            150,
            1,
            |i, _| if i == 70 { 1e6 } else { sine(i) + 0.3 * (uniform(&mut rng) - 0.5) },
        );
    let likelihood = likelihoods::parse("student-t").expect("known");
    let data = || InMemory::new(x.clone(), y.clone()).expect("as many");
    let dataset = Dataset::from_rows(data(), Standardise::all_that(&*likelihood)).expect("rows");
    assert!(dataset.scaler.y_scale[0] < 3.0);
    let own = FitOptions { likelihood: Some("student-t".into()), ..FitOptions::default() };
    let fitted = fit(&dataset, &own).expect("a fit");
    let error = rmse(&fitted, &x, sine);
    assert!(error < 0.06, "{error}");
    let text = "`y0` holds 1000000 in 1 of 150 rows";
    assert!(fitted.warnings.iter().any(|w| w.contains(text)), "{:?}", fitted.warnings);
    let plain = Dataset::from_rows(data(), true).expect("rows");
    assert!(plain.scaler.y_scale[0] > 1e4);
    let own = FitOptions { train: options("exact", 2).train, ..FitOptions::default() };
    let fitted = fit(&plain, &own).expect("a fit");
    let remark = |w: &String| w.contains(text) && w.contains("`student-t`");
    assert!(fitted.warnings.iter().any(remark), "{:?}", fitted.warnings);
}

#[test]
fn columns_that_vary_only_by_rounding_have_no_effect() {
    let (x, y) = arrays(60, 1);
    let mut rng = stream(7, "rounding");
    let wide = Mat::from_fn(60, 2, |i, q| {
        if q == 0 { x[(i, 0)] } else { 1e6 + 1e-9 * (uniform(&mut rng) - 0.5) }
    });
    assert!(wide.col_as_slice(1).iter().any(|v| *v != wide[(0, 1)]));
    let dataset = Dataset::from_arrays(wide.clone(), y.clone(), true).expect("rows");
    assert!(dataset.warnings.iter().any(|w| w.contains("`x1` varies by no more than rounding")));
    let fitted = fit(&dataset, &FitOptions::default()).expect("a fit");
    let lengths = fitted.parameters().into_iter().find(|row| row.path.ends_with("lengthscales"));
    assert!(lengths.expect("two").data_units.expect("units")[1] > 0.1);
    let narrow =
        fit(&Dataset::from_arrays(x.clone(), y, true).expect("rows"), &FitOptions::default());
    let (expected, _) = predict(&narrow.expect("a fit"), &x);
    let (mean, _) = predict(&fitted, &wide);
    mean.iter().zip(&expected).for_each(|(a, b)| close(*a, *b, 0.02));
}

/// Chains sample a latent value of every row: equal rows stay apart, as they know no weights.
#[test]
fn equal_rows_stay_apart_for_chains() {
    let x = Mat::from_fn(60, 1, |i, _| 0.3 * (i / 3) as f64);
    let y = Mat::from_fn(60, 1, |i, _| f64::from(u8::from((i / 3) % 4 > 1)));
    for (method, rows) in
        [("gibbs", 60), ("gibbs-sparse", 60), ("nuts-augmented", 60), ("cavi-full", 20)]
    {
        let own = loaded(x.clone(), y.clone(), vec![]);
        let dataset = for_purpose(own, method, "bernoulli(link=logit)").expect("rows");
        assert_eq!(dataset.source.rows(), rows, "{method}");
    }
}

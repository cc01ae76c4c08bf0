//! Predictions in mixed precision: those of double precision within a stated bound, or these themselves with a reason.

use crate::support::{arrays, fit, options, table};
use sparsegp::data::InMemory;
use sparsegp::fit::{BatchOptions, Dataset, FitOptions, Fitted, Of};
use sparsegp::linalg::{Mat, Precision};
use sparsegp::train::{TrainOptions, TrainReport};

/// Sparse methods with their likelihood.
const METHODS: [(&str, Option<&str>); 13] = [
    ("titsias2009", None),
    ("spherical", None),
    ("titsias2025", None),
    ("fitc", None),
    ("pep(alpha=0.4)", None),
    ("svgp", Some("student-t")),
    ("svgp2025", None),
    ("svgp-spherical", Some("laplace")),
    ("tsvgp", Some("student-t")),
    ("lsvgp", None),
    ("rsvgp", None),
    ("cavi", Some("student-t")),
    ("svgp", Some("heteroscedastic")),
];

fn of(method: &str, likelihood: Option<&str>) -> FitOptions {
    let mut own = FitOptions {
        inducing: Some(30),
        likelihood: likelihood.map(Into::into),
        pilot: 0,
        ..options(method, 6)
    };
    // what counts comes after the training
    own.batches.iter_mut().for_each(|batches| batches.training.epochs = Some(4));
    // noise that leaves variances of some size
    let gaussian = likelihood.is_none();
    let set = gaussian.then(|| ("likelihood.variance".to_owned(), vec![0.07]));
    FitOptions {
        freeze: set.iter().map(|(path, _)| path.clone()).collect(),
        set: set.into_iter().collect(),
        ..own
    }
}

/// The same model in mixed precision, which has to have enough digits.
fn mixed(fitted: &Fitted, x: &Mat<f64>, what: &str) -> Fitted {
    let (own, reason) = fitted.clone().in_mixed_precision(x.as_ref()).expect(what);
    assert_eq!(reason, None, "{what}");
    own
}

/// Means and variances of the latent functions.
fn latent(fitted: &Fitted, x: &Mat<f64>) -> (Mat<f64>, Mat<f64>) {
    fitted.predict(x.as_ref(), Of::Latent).expect("predictions")
}

/// The largest differences of means and of deviations, as shares of the deviation.
fn apart(a: &(Mat<f64>, Mat<f64>), b: &(Mat<f64>, Mat<f64>)) -> (f64, f64) {
    let (mut means, mut deviations) = (0.0_f64, 0.0_f64);
    for l in 0..a.0.ncols() {
        for i in 0..a.0.nrows() {
            let spread = a.1[(i, l)].sqrt();
            means = means.max((a.0[(i, l)] - b.0[(i, l)]).abs() / spread);
            deviations = deviations.max((b.1[(i, l)].sqrt() / spread - 1.0).abs());
        }
    }
    (means, deviations)
}

#[test]
fn methods_agree_with_double_precision() {
    let rows = table(300, 2);
    let x = arrays(700, 2).0;
    for (method, likelihood) in METHODS {
        let what = format!("{method} {likelihood:?}");
        let double = fit(&rows, &of(method, likelihood)).expect(&what);
        let single = mixed(&double, &x, &what);
        let (own, other) = (latent(&double, &x), latent(&single, &x));
        let (means, deviations) = apart(&own, &other);
        assert!(means < 1e-9, "{what}: {means:e}");
        assert!(deviations < 1e-2, "{what}: {deviations:e}");
        assert!(deviations > 0.0, "{what}: nothing is rounded");
        // what is made of them follows
        let observed = |of: &Fitted| of.predict(x.as_ref(), Of::Observations).expect(&what);
        let (means, deviations) = apart(&observed(&double), &observed(&single));
        assert!(means < 1e-2 && deviations < 1e-2, "{what}: {means:e} {deviations:e}");
        assert!(means.max(deviations) > 0.0, "{what}");
    }
}

#[test]
fn kernels_agree_with_double_precision() {
    let rows = table(300, 3);
    let x = arrays(520, 3).0;
    for kernel in ["rbf", "matern12", "matern52 + linear", "rational-quadratic", "rbf * matern32"] {
        let own = FitOptions { kernel: kernel.into(), ..of("titsias2025", None) };
        let double = fit(&rows, &own).expect(kernel);
        let single = mixed(&double, &x, kernel);
        let (means, deviations) = apart(&latent(&double, &x), &latent(&single, &x));
        assert!(means < 1e-9 && deviations < 1e-2, "{kernel}: {means:e} {deviations:e}");
        assert!(deviations > 0.0, "{kernel}: nothing is rounded");
    }
}

/// Two targets, and latent functions with inducing points each.
#[test]
fn several_functions_agree_with_double_precision() {
    let (x, y) = arrays(250, 2);
    let both = Mat::from_fn(250, 2, |i, p| if p == 0 { y[(i, 0)] } else { x[(i, 0)].cos() });
    let rows = Dataset::from_arrays(x, both, true).expect("a table");
    let new = arrays(300, 2).0;
    let double = fit(&rows, &of("titsias2025", None)).expect("a fit");
    let single = mixed(&double, &new, "two targets");
    let (own, other) = (latent(&double, &new), latent(&single, &new));
    assert!(apart(&own, &other).1 < 1e-2);
    // one product for both
    let scales = &double.scaler.y_scale;
    for i in 0..300 {
        let ratio = other.1[(i, 0)].sqrt() / scales[0] / (other.1[(i, 1)].sqrt() / scales[1]);
        assert!((ratio - 1.0).abs() < 1e-12, "{i}: {ratio}");
    }
}

#[test]
fn bits_depend_neither_on_threads_nor_on_the_rows_beside() {
    let rows = table(300, 2);
    let x = arrays(600, 2).0;
    for (method, inducing) in [("titsias2025", 30), ("lsvgp", 30), ("rsvgp", 30), ("svgp", 290)] {
        let own = FitOptions { inducing: Some(inducing), ..of(method, None) };
        let own = FitOptions { set: vec![("likelihood.variance".into(), vec![0.3])], ..own };
        let single = mixed(&fit(&rows, &own).expect(method), &x, method);
        let whole = latent(&single, &x);
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let again = pool.install(|| latent(&single, &x));
            assert_eq!((&again.0, &again.1), (&whole.0, &whole.1), "{method} on {threads}");
        }
        let mut start = 0;
        for count in [1, 7, 255, 33, 257, 47] {
            let part = x.as_ref().subrows(start, count).to_owned();
            let own = latent(&single, &part);
            for i in 0..count {
                let at = start + i;
                assert_eq!(own.0[(i, 0)].to_bits(), whole.0[(at, 0)].to_bits(), "{method} {at}");
                assert_eq!(own.1[(i, 0)].to_bits(), whole.1[(at, 0)].to_bits(), "{method} {at}");
            }
            start += count;
        }
        assert_eq!(start, 600);
    }
}

/// Noise of a hundred-millionth, rows that are nearly equal to inducing points, and lengthscales beyond the span.
#[test]
fn what_needs_more_digits_gets_them_and_says_so() {
    let n = 240;
    let line = Mat::from_fn(n, 1, |i, _| i as f64 / 40.0);
    let near = Mat::from_fn(n, 1, |i, _| (i / 6) as f64 / 7.0 + 1e-7 * (i % 6) as f64);
    let wave = |x: &Mat<f64>| Mat::from_fn(n, 1, |i, _| (2.3 * x[(i, 0)]).sin());
    let long = ("kernel.lengthscales", 60.0);
    for (what, x, values) in [
        ("little noise", line.clone(), vec![("likelihood.variance", 1e-8)]),
        ("rows that are nearly equal", near, vec![("likelihood.variance", 1e-6)]),
        ("long", line, vec![("likelihood.variance", 1e-4), ("kernel.variance", 90.0), long]),
    ] {
        let rows = Dataset::from_arrays(x.clone(), wave(&x), true).expect(what);
        let own = FitOptions {
            inducing: Some(40),
            set: values.iter().map(|(path, v)| ((*path).to_owned(), vec![*v])).collect(),
            freeze: values.iter().map(|(path, _)| (*path).to_owned()).collect(),
            ..of("titsias2025", None)
        };
        let double = fit(&rows, &own).expect(what);
        let (single, reason) = double.clone().in_mixed_precision(x.as_ref()).expect(what);
        let reason = reason.expect(what);
        assert!(reason.contains("predictions are in double precision"), "{what}: {reason}");
        assert!(reason.contains('%'), "{what}: {reason}");
        let (a, b) = (latent(&double, &x), latent(&single, &x));
        assert_eq!((a.0, a.1), (b.0, b.1), "{what}");
    }
}

/// The guard looks at all parts of the table: one dense part at the end is enough.
#[test]
fn the_guard_looks_at_the_whole_table() {
    let (x, y) = arrays(300, 1);
    let rows = Dataset::from_arrays(x, y, true).expect("a table");
    let set = vec![("likelihood.variance".to_owned(), vec![1e-5])];
    let freeze = vec!["likelihood.variance".to_owned()];
    let own = FitOptions { set, freeze, ..of("titsias2025", None) };
    let fitted = fit(&rows, &own).expect("a fit");
    // far from all rows there is nothing to round
    let far = Mat::from_fn(2000, 1, |i, _| 1e3 + i as f64);
    let (_, reason) = fitted.clone().in_mixed_precision(far.as_ref()).expect("rows");
    assert_eq!(reason, None);
    let end =
        Mat::from_fn(2000, 1, |i, _| if i < 1900 { far[(i, 0)] } else { 0.01 * i as f64 - 19.5 });
    let (_, reason) = fitted.clone().in_mixed_precision(end.as_ref()).expect("rows");
    assert!(reason.is_some());
    let (_, reason) = fitted.in_mixed_precision(Mat::zeros(0, 1).as_ref()).expect("no rows");
    assert!(reason.expect("a reason").contains("no rows"));
}

#[test]
fn covariances_draws_slopes_and_terms_stay_in_double_precision() {
    let rows = table(200, 2);
    let x = arrays(40, 2).0;
    let own = FitOptions { kernel: "matern52 + linear".into(), ..of("titsias2025", None) };
    let double = fit(&rows, &own).expect("a fit");
    let single = mixed(&double, &x, "a sum");
    let of = |fitted: &Fitted| {
        let slopes = fitted.posterior.predict_gradients(x.as_ref()).expect("slopes");
        let terms = fitted.predict_terms(x.as_ref(), false).expect("terms");
        (
            fitted.predict_covariance(x.as_ref(), &[], Of::Latent).expect("covariances").1,
            fitted.sample_y(x.as_ref(), &[], 2, 5).expect("draws"),
            slopes.variance,
            terms.into_iter().map(|term| term.variance).collect::<Vec<_>>(),
            fitted.predict_mean(x.as_ref()).expect("means"),
        )
    };
    assert_eq!(of(&double), of(&single));
    assert_ne!(latent(&double, &x).1, latent(&single, &x).1);
}

#[test]
fn posteriors_without_such_products_refuse_by_name() {
    let rows = table(40, 1);
    let x = arrays(10, 1).0;
    for method in ["exact", "tvgp", "markov", "vecchia", "full-scale", "gibbs-sparse", "deep"] {
        let sparse = ["full-scale", "gibbs-sparse", "deep"].contains(&method);
        let kernel = if method == "markov" { "matern32" } else { "rbf" };
        let entry = sparsegp::methods::find(method).expect("a method").method;
        let batches = (method == "deep").then(|| {
            let mut own = BatchOptions::of(entry);
            own.training.epochs = Some(2);
            own
        });
        let mut own = FitOptions {
            inducing: sparse.then_some(8),
            kernel: kernel.into(),
            likelihood: (method == "gibbs-sparse").then(|| "student-t".into()),
            batches,
            ..options(method, 2)
        };
        (own.gibbs.draws, own.gibbs.burn_in) = (5, 5);
        let fitted = fit(&rows, &own).expect(method);
        let error = fitted.in_mixed_precision(x.as_ref()).expect_err(method).to_string();
        assert!(error.contains(method) && error.contains("no mixed precision"), "{error}");
    }
    let fitted = fit(&rows, &of("titsias2025", None)).expect("a fit");
    let wrong = fitted.clone().in_mixed_precision(Mat::zeros(3, 2).as_ref());
    assert!(wrong.is_err());
    let pairs = [(fitted.input_names[0].clone(), "sd".to_owned())];
    let noisy = fitted.clone().with_input_deviations_of(&pairs).expect("an input");
    let error = noisy.in_mixed_precision(Mat::zeros(3, 2).as_ref()).expect_err("errors");
    assert!(error.to_string().contains("standard deviations"), "{error}");
    let single = mixed(&fitted, &x, "titsias2025");
    let error = single.with_input_deviations_of(&pairs).expect_err("errors").to_string();
    assert!(error.contains("double precision"), "{error}");
}

#[test]
fn files_name_the_precision_of_the_training_and_predict_in_double() {
    let rows = table(200, 2);
    let x = arrays(50, 2).0;
    for precision in [Precision::Double, Precision::Single] {
        let fitted =
            fit(&rows, &FitOptions { precision, ..of("titsias2025", None) }).expect("a fit");
        let kept = |fitted: &Fitted| fitted.report.as_ref().expect("a report").precision;
        assert_eq!(kept(&fitted), precision);
        let single = mixed(&fitted, &x, "titsias2025");
        let bytes = sparsegp::io::to_bytes(&single).expect("a file");
        let again = sparsegp::io::from_bytes(&bytes).expect("a model");
        assert_eq!(kept(&again), precision);
        assert_eq!(latent(&again, &x), latent(&fitted, &x));
        // files of before say nothing
        let mut report = serde_json::to_value(fitted.report.as_ref()).expect("a report");
        report.as_object_mut().expect("an object").remove("precision").expect("named");
        let old: TrainReport = serde_json::from_value(report).expect("a report");
        assert_eq!(old.precision, Precision::Double);
    }
    // where digits ran out it is what the training ended in
    let x = Mat::from_fn(300, 1, |i, _| i as f64 / 50.0);
    let y = Mat::from_fn(300, 1, |i, _| (1.3 * x[(i, 0)]).sin());
    let rows = InMemory::new(x, y).expect("rows");
    let rows = Dataset::from_rows(rows, true).expect("a table");
    let own = FitOptions { inducing: Some(40), pilot: 0, ..options("titsias2025", 200) };
    let own = FitOptions { precision: Precision::Single, ..own };
    let own = FitOptions { set: vec![("likelihood.variance".into(), vec![0.1])], ..own };
    let fitted = fit(&rows, &own).expect("a fit");
    let warned = |of: &Fitted| of.warnings.iter().any(|text| text.contains("double precision"));
    assert!(warned(&fitted), "{:?}", fitted.warnings);
    let report = fitted.report.expect("a report");
    assert_eq!(report.precision, Precision::Double);
    // as many as mixed precision takes by itself: none is left
    for most in 1..report.iterations {
        let train = TrainOptions { max_iterations: most, ..own.train.clone() };
        let fitted = fit(&rows, &FitOptions { train, ..own.clone() }).expect("a fit");
        if warned(&fitted) {
            let report = fitted.report.expect("a report");
            assert_eq!((report.iterations, report.precision), (most, Precision::Single));
            return;
        }
    }
    panic!("the guard never spoke at the end of a training that was cut off");
}

/// Under a kernel that grows, rows far away have covariances that single precision does not hold.
#[test]
fn far_rows_under_a_growing_kernel_are_in_double_precision() {
    let rows = table(300, 2);
    let near = arrays(500, 2).0;
    for kernel in ["polynomial(degree=4)", "matern52 + linear"] {
        let own = FitOptions { kernel: kernel.into(), ..of("titsias2025", None) };
        let double = fit(&rows, &own).expect(kernel);
        let single = mixed(&double, &near, kernel);
        let alone = latent(&single, &near);
        let at = |far: f64| Mat::from_fn(500, 2, |i, q| if i == 77 { far } else { near[(i, q)] });
        for far in [1e5, -1e9, 1e12] {
            let (x, what) = (at(far), format!("{kernel} at {far:e}"));
            let (own, other) = (latent(&double, &x), latent(&single, &x));
            assert_eq!(other.1[(77, 0)].to_bits(), own.1[(77, 0)].to_bits(), "{what}");
            for i in (0..500).filter(|i| *i != 77) {
                assert_eq!(other.1[(i, 0)].to_bits(), alone.1[(i, 0)].to_bits(), "{what}: row {i}");
            }
        }
    }
}

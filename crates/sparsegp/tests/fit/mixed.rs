//! Mixed precision: what is fitted agrees with double precision, or is fitted in double precision and says so.

use crate::support::{arrays, bits, fit, options, predict, prepare, table, value};
use sparsegp::data::InMemory;
use sparsegp::engine::{Cpu, Engine, Mixed};
use sparsegp::fit::{Dataset, FitOptions, Fitted};
use sparsegp::linalg::{Mat, Precision};
use sparsegp::methods::Evaluation;

/// Every method that takes it.
const METHODS: [&str; 12] = [
    "titsias2009",
    "spherical",
    "titsias2025",
    "fitc",
    "pep(alpha=0.4)",
    "svgp",
    "svgp2025",
    "svgp-spherical",
    "tsvgp",
    "lsvgp",
    "cavi",
    "svi",
];

fn mixed(own: FitOptions) -> FitOptions {
    FitOptions { precision: Precision::Single, ..own }
}

fn of(method: &str) -> FitOptions {
    let augmented = ["cavi", "svi"].contains(&method);
    FitOptions {
        inducing: Some(30),
        likelihood: augmented.then(|| "student-t".into()),
        pilot: 0,
        ..options(method, 6)
    }
}

/// Whether the guard has spoken.
fn warned(fitted: &Fitted) -> bool {
    fitted.warnings.iter().any(|text| text.contains("double precision"))
}

fn objective(fitted: &Fitted) -> f64 {
    fitted.report.as_ref().expect("a report").objective
}

/// What models say at their starts: bound and gradient as far apart as rounding to 24 bits makes them.
#[test]
fn bounds_and_gradients_keep_their_digits() {
    // two rounds of blocks, the last one a part
    let rows = table(600, 3);
    let data = &*rows.source;
    for method in METHODS {
        let own = FitOptions { kernel: "matern52 + linear".into(), ..of(method) };
        let (mut model, ..) = prepare(&rows, &own).expect(method);
        // a q that is not the prior
        if model.params().iter().any(|(path, _)| path == "q.mu") {
            let means = value(&model, "q.mu").into_iter().enumerate();
            let means: Vec<f64> = means.map(|(at, v)| v + 0.1 * (at as f64).sin()).collect();
            model.set("q.mu", &means).expect("as many");
        }
        let cpu = Cpu::default();
        let [double, single]: [Evaluation; 2] = [&cpu as &dyn Engine, &Mixed(&cpu)]
            .map(|engine| model.evaluate(engine, data).expect(method));
        let apart = (double.value - single.value).abs();
        // r + s of a q at the prior is the kernel's variance
        assert!(apart > 0.0 || double.gradient != single.gradient, "{method}: it is not rounded");
        assert!(apart < 1e-5 * double.value.abs(), "{method}: {} {}", double.value, single.value);
        let size = double.gradient.iter().fold(0.0, |most: f64, g| most.max(g.abs()));
        for (at, (a, b)) in double.gradient.iter().zip(&single.gradient).enumerate() {
            assert!((a - b).abs() < 1e-4 * size, "{method}, number {at}: {a} and {b} of {size}");
        }
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let again = pool.install(|| model.evaluate(&Mixed(&cpu), data).expect(method));
            assert_eq!(again.value.to_bits(), single.value.to_bits(), "{method} on {threads}");
            assert_eq!(again.gradient, single.gradient, "{method} on {threads} threads");
        }
    }
}

#[test]
fn ordinary_tables_are_fitted_without_a_word() {
    let rows = table(300, 2);
    let new = arrays(40, 2).0;
    for method in METHODS {
        let [double, single] =
            [of(method), mixed(of(method))].map(|own| fit(&rows, &own).expect(method));
        assert_eq!(double.warnings, single.warnings, "{method}");
        assert_ne!(bits(&double.model), bits(&single.model), "{method}: nothing is rounded");
        let (own, other) = (objective(&double), objective(&single));
        assert!((own - other).abs() < 3e-3 * 300.0, "{method}: {own} {other}");
        let ((means, variances), (others, wide)) = (predict(&double, &new), predict(&single, &new));
        // minibatches end somewhere near
        let near = if double.model.method.has_q() { 0.1 } else { 0.02 };
        for i in 0..40 {
            let spread = variances[i].sqrt();
            assert!((means[i] - others[i]).abs() < near * spread, "{method}: {i}");
            assert!((spread - wide[i].sqrt()).abs() < near * spread, "{method}: {i}");
        }
    }
}

/// A table with options whose digits may be too few.
fn hard(name: &str) -> (Dataset, FitOptions) {
    let n = 240;
    let wave = |i: usize| (0.11 * i as f64).sin() + 0.3 * (0.037 * i as f64).cos();
    let line = Mat::from_fn(n, 1, |i, _| i as f64 / 40.0);
    let noisy =
        |size: f64| Mat::from_fn(n, 1, |i, _| wave(i) + size * (7.7 * (i * i) as f64).sin());
    let fixed = |own: FitOptions, values: &[(&str, f64)]| FitOptions {
        set: values.iter().map(|(path, v)| ((*path).to_owned(), vec![*v])).collect(),
        freeze: values.iter().map(|(path, _)| (*path).to_owned()).collect(),
        ..own
    };
    let dataset = |x: Mat<f64>, y: Mat<f64>, scaled: bool| {
        Dataset::from_arrays(x, y, scaled).expect("a table")
    };
    let own = FitOptions { inducing: Some(60), ..of("titsias2025") };
    let noise = |v: f64| [("likelihood.variance", v)];
    match name {
        "little noise" => (dataset(line, noisy(0.0), true), fixed(own, &noise(1e-6))),
        "rows that are nearly equal" => {
            let x = Mat::from_fn(n, 1, |i, _| (i / 6) as f64 / 7.0 + 1e-7 * (i % 6) as f64);
            (dataset(x, noisy(1e-4), true), fixed(own, &noise(1e-6)))
        }
        "dates in seconds" => {
            let x = Mat::from_fn(n, 1, |i, _| 1.7e9 + 3600.0 * i as f64);
            let own = FitOptions { mean: Some("constant".into()), ..own };
            (dataset(x, noisy(0.1), false), own)
        }
        "lengthscales beyond the span" => {
            let values =
                [("kernel.lengthscales", 80.0), ("kernel.variance", 400.0), noise(1e-4)[0]];
            (dataset(line, noisy(0.1), true), fixed(own, &values))
        }
        "a kernel of high degree" => {
            let own = FitOptions { kernel: "polynomial(degree=7)".into(), ..own };
            let y = Mat::from_fn(n, 1, |i, _| (i as f64 / 40.0 - 3.0).powi(7));
            (dataset(line, y, true), fixed(own, &noise(1e-5)))
        }
        "weights that are tiny beside others" => {
            let own = FitOptions { inducing: Some(60), batches: None, ..of("svgp") };
            let weights: Vec<f64> = (0..n).map(|i| if i % 9 == 0 { 1e5 } else { 1e-6 }).collect();
            let rows = InMemory { x: line, y: noisy(0.0), weights, extra: Vec::new() };
            let rows = Dataset::from_rows(rows, true).expect("rows");
            (rows, fixed(own, &noise(0.1)))
        }
        other => panic!("{other}"),
    }
}

#[test]
fn tables_that_need_more_digits_get_them() {
    let mut spoken = Vec::new();
    for name in [
        "little noise",
        "rows that are nearly equal",
        "dates in seconds",
        "lengthscales beyond the span",
        "a kernel of high degree",
        "weights that are tiny beside others",
    ] {
        let (rows, own) = hard(name);
        let [double, single] = [own.clone(), mixed(own)].map(|own| fit(&rows, &own).expect(name));
        if warned(&single) {
            spoken.push(name);
            continue;
        }
        let (own, other) = (objective(&double), objective(&single));
        // with weights of 10⁵ these are millions of rows: a bound is right to 10⁻⁵ of its size
        let close = (2e-3 * 240.0_f64).max(1e-5 * own.abs());
        assert!((own - other).abs() < close, "{name}: {own} {other}, and not a word");
    }
    let silent = ["dates in seconds"];
    assert!(spoken.len() >= 4, "{spoken:?}");
    assert!(silent.iter().all(|name| !spoken.contains(name)), "{spoken:?}");
}

#[test]
fn a_fit_that_is_not_mixed_has_the_bits_of_double_precision() {
    let (rows, own) = hard("little noise");
    let double = fit(&rows, &own).expect("a fit");
    let single = fit(&rows, &mixed(own)).expect("a fit");
    assert!(warned(&single), "{:?}", single.warnings);
    assert_eq!(bits(&double.model), bits(&single.model));
    assert_eq!(objective(&double), objective(&single));
}

/// Where noise falls in training, the end is found by the other precision.
#[test]
fn a_training_continues_in_double_precision_where_digits_run_out() {
    let x = Mat::from_fn(300, 1, |i, _| i as f64 / 50.0);
    let y = Mat::from_fn(300, 1, |i, _| (1.3 * x[(i, 0)]).sin());
    let rows = Dataset::from_arrays(x, y, true).expect("a table");
    let own = FitOptions { inducing: Some(40), pilot: 0, ..options("titsias2025", 200) };
    let own = FitOptions { set: vec![("likelihood.variance".into(), vec![0.1])], ..own };
    let single = fit(&rows, &mixed(own.clone())).expect("a fit");
    let text = single.warnings.iter().find(|text| text.contains("continued in double precision"));
    assert!(text.is_some(), "{:?}", single.warnings);
    let double = fit(&rows, &own).expect("a fit");
    let (a, b) = (objective(&double), objective(&single));
    assert!((a - b).abs() < 0.02 * a.abs(), "{a} {b}");
    let report = single.report.expect("a report");
    let iterations: Vec<usize> = report.trace.iter().map(|point| point.iteration).collect();
    assert!(iterations.is_sorted(), "{iterations:?}");
    assert_eq!(iterations.last(), Some(&report.iterations));
}

#[test]
fn methods_without_such_sums_refuse_by_name() {
    let rows = table(40, 1);
    let methods = [
        "exact",
        "tvgp",
        "markov",
        "vecchia",
        "full-scale",
        "gibbs",
        "gibbs-markov",
        "gibbs-sparse",
    ];
    for method in methods.into_iter().chain(["nuts", "deep(kind=r)"]) {
        let own = FitOptions { inducing: None, ..mixed(options(method, 3)) };
        let error = fit(&rows, &own).expect_err(method).to_string();
        assert!(error.contains(method) && error.contains("mixed precision"), "{error}");
    }
    let fitted = fit(&rows, &mixed(options("auto", 3))).expect("a fit");
    assert_eq!(fitted.model.method.name(), "exact");
    assert!(warned(&fitted), "{:?}", fitted.warnings);
}

/// `--single` of `rsvgp` is the same by another name.
#[test]
fn single_products_of_rsvgp_are_mixed_precision() {
    let rows = table(120, 1);
    let own = FitOptions { likelihood: None, ..options("rsvgp", 3) };
    let mut single = own.clone();
    let mut batches = sparsegp::fit::BatchOptions::of(own_method());
    batches.training.epochs = Some(2);
    single.batches = Some(batches.clone());
    let mixed = mixed(single.clone());
    batches.training.following.solver.products = Precision::Single;
    single.batches = Some(batches);
    let [a, b] = [single, mixed].map(|own| fit(&rows, &own).expect("a fit"));
    assert_eq!(bits(&a.model), bits(&b.model));
}

fn own_method() -> &'static dyn sparsegp::methods::Method {
    sparsegp::methods::find("rsvgp").expect("a method").method
}

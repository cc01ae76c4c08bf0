//! Deep models in mixed precision: as by double precision, or in double precision by name.

use crate::support::{After, bits, fit, options, predict, table, value};
use sparsegp::engine::Cpu;
use sparsegp::fit::{BatchOptions, Dataset, FitOptions, Fitted};
use sparsegp::linalg::{Mat, Precision};
use sparsegp::{io, methods};

/// One of every kind that takes it.
const METHODS: [&str; 3] =
    ["deep", "deep(layers=3, kind=w, skip=true)", "deep(kind=m, functions=true, kernels=own)"];

fn of(method: &str, epochs: usize) -> FitOptions {
    let entry = methods::find(method).expect("a method");
    let mut batches = BatchOptions { size: 100, ..BatchOptions::of(entry.method) };
    batches.training.epochs = Some(epochs);
    FitOptions { batches: Some(batches), inducing: Some(20), ..options(method, 0) }
}

fn mixed(own: FitOptions) -> FitOptions {
    FitOptions { precision: Precision::Single, ..own }
}

fn fixed(own: FitOptions, values: &[(&str, f64)]) -> FitOptions {
    FitOptions {
        set: values.iter().map(|(path, v)| ((*path).to_owned(), vec![*v])).collect(),
        freeze: values.iter().map(|(path, _)| (*path).to_owned()).collect(),
        ..own
    }
}

fn precision(fitted: &Fitted) -> Precision {
    fitted.report.as_ref().expect("a report").precision
}

fn warned(fitted: &Fitted, part: &str) -> bool {
    fitted.warnings.iter().any(|text| text.contains(part))
}

#[test]
fn ordinary_tables_are_fitted_without_a_word() {
    let rows = table(300, 2);
    let new = crate::support::arrays(40, 2).0;
    for method in METHODS {
        let [double, single] =
            [of(method, 10), mixed(of(method, 10))].map(|own| fit(&rows, &own).expect(method));
        assert_eq!(double.warnings, single.warnings, "{method}");
        assert_eq!(
            (precision(&double), precision(&single)),
            (Precision::Double, Precision::Single),
            "{method}"
        );
        assert_ne!(bits(&double.model), bits(&single.model), "{method}: nothing is rounded");
        // the steps of both see the same rows and noise
        let objective = |fitted: &Fitted| fitted.report.as_ref().expect("a report").objective;
        let (own, other) = (objective(&double), objective(&single));
        assert!((own - other).abs() < 1e-2 * 300.0, "{method}: {own} {other}");
        let ((means, variances), (others, wide)) = (predict(&double, &new), predict(&single, &new));
        for i in 0..40 {
            let spread = variances[i].sqrt();
            assert!((means[i] - others[i]).abs() < 0.1 * spread, "{method}: {i}");
            assert!((spread - wide[i].sqrt()).abs() < 0.1 * spread, "{method}: {i}");
        }
        let again = io::from_bytes(&io::to_bytes(&single).expect("bytes")).expect("a model");
        assert_eq!(precision(&again), Precision::Single, "{method}");
        let error = single.in_mixed_precision(new.as_ref()).expect_err("layers").to_string();
        assert!(error.contains("`deep") && error.contains("one layer"), "{error}");
    }
}

/// Tables whose digits are too few.
fn hard(name: &str, method: &str) -> (Dataset, FitOptions) {
    let n = 240;
    let wave = |i: usize| (0.11 * i as f64).sin() + 0.3 * (0.037 * i as f64).cos();
    let line = Mat::from_fn(n, 1, |i, _| i as f64 / 40.0);
    let y = |size: f64| Mat::from_fn(n, 1, |i, _| wave(i) + size * (7.7 * (i * i) as f64).sin());
    let dataset = |x: Mat<f64>, y: Mat<f64>| Dataset::from_arrays(x, y, true).expect("a table");
    let own = of(method, 3);
    match name {
        "little noise" => (dataset(line, y(0.0)), fixed(own, &[("likelihood.variance", 1e-7)])),
        "rows that are nearly equal" => {
            let x = Mat::from_fn(n, 1, |i, _| (i / 6) as f64 / 7.0 + 1e-7 * (i % 6) as f64);
            let values = [("likelihood.variance", 1e-5), ("kernel.variance", 30.0)];
            (dataset(x, y(1e-4)), fixed(own, &values))
        }
        "a kernel far above its noise" => {
            let values = [("kernel.variance", 1e6), ("likelihood.variance", 1e-2)];
            (dataset(line, y(0.1)), fixed(own, &values))
        }
        other => panic!("{other}"),
    }
}

#[test]
fn layers_that_need_more_digits_get_them_to_the_bits_of_double_precision() {
    for method in ["deep(kind=l)", "deep(kind=w)"] {
        let method = methods::find(method).expect("a method").name;
        for name in ["little noise", "rows that are nearly equal", "a kernel far above its noise"] {
            let (rows, own) = hard(name, method);
            let double = fit(&rows, &own).expect(name);
            let single = fit(&rows, &mixed(own)).expect(name);
            assert!(
                warned(&single, "in double precision, not in mixed"),
                "{method}, {name}: {:?}",
                single.warnings
            );
            assert_eq!(precision(&single), Precision::Double, "{method}, {name}");
            assert_eq!(bits(&double.model), bits(&single.model), "{method}, {name}");
        }
    }
}

#[test]
fn a_training_that_was_ended_resumes_in_its_precision() {
    let folder = tempfile::tempdir().expect("a folder");
    let ordinary = |method: &str| (table(300, 2), of(method, 6));
    for (name, method, (rows, own), expected) in [
        ("l", "deep", ordinary("deep"), Precision::Single),
        ("w", "deep(kind=w)", ordinary("deep(kind=w)"), Precision::Single),
        ("hard", "deep", hard("little noise", "deep"), Precision::Double),
    ] {
        let own = mixed(own);
        let straight = fit(&rows, &own).expect(method);
        let checkpoint = Some(folder.path().join(format!("{name}.safetensors")));
        let kept = FitOptions { checkpoint, ..own };
        let ended = sparsegp::fit::fit(&rows, &kept, &Cpu::default(), &mut After(4)).expect(method);
        assert_eq!(ended.report.as_ref().expect("a report").iterations, 4, "{name}");
        let resumed = fit(&rows, &kept).expect(method);
        assert_eq!(bits(&straight.model), bits(&resumed.model), "{name}");
        assert_eq!((precision(&straight), precision(&resumed)), (expected, expected), "{name}");
        assert_eq!(straight.warnings, resumed.warnings, "{name}");
        // a checkpoint of the one precision is not gone on with in the other
        let double = FitOptions { precision: Precision::Double, ..kept };
        match (expected, fit(&rows, &double)) {
            (Precision::Single, outcome) => {
                let error = outcome.expect_err("another precision").to_string();
                assert!(error.contains("precision"), "{error}");
            }
            (Precision::Double, outcome) => {
                assert_eq!(bits(&outcome.expect("complete").model), bits(&resumed.model));
            }
        }
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let rows = table(300, 2);
    let [one, three] = [1, 3].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| bits(&fit(&rows, &mixed(of("deep(kind=w)", 2))).expect("a fit").model))
    });
    assert_eq!(one, three);
}

/// Where noise falls in training, the end is found by the other precision.
#[test]
fn a_training_continues_in_double_precision_where_digits_run_out() {
    let x = Mat::from_fn(300, 1, |i, _| i as f64 / 50.0);
    let y = Mat::from_fn(300, 1, |i, _| (1.3 * x[(i, 0)]).sin());
    let rows = Dataset::from_arrays(x, y, true).expect("a table");
    let mut own = of("deep(layers=1, kind=w)", 60);
    if let Some(batches) = &mut own.batches {
        batches.training.adam.learning_rate = 0.1;
        batches.training.natural = Some(0.5);
    }
    let single = fit(&rows, &mixed(own)).expect("a fit");
    assert!(value(&single.model, "likelihood.variance")[0] < 1e-3);
    assert!(warned(&single, "continued in double precision"), "{:?}", single.warnings);
    assert_eq!(precision(&single), Precision::Double);
    let report = single.report.expect("a report");
    let iterations: Vec<usize> = report.trace.iter().map(|point| point.iteration).collect();
    assert!(iterations.is_sorted(), "{iterations:?}");
    assert_eq!(report.iterations, 360);
    assert_eq!(iterations.last(), Some(&120));
}

#[test]
fn relaxed_layers_refuse_it_by_name() {
    let error = fit(&table(40, 1), &mixed(of("deep(kind=r)", 2))).expect_err("R").to_string();
    assert!(error.contains("deep(kind=r)") && error.contains("mixed precision"), "{error}");
}

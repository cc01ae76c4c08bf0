//! Data that are odd, but data.

use crate::support::{METHODS, arrays, bits, fit, options, predict, prepare, table, value};
use sparsegp::fit::{Dataset, FitOptions, Fitted};
use sparsegp::linalg::Mat;

fn sane(fitted: &Fitted, x: &Mat<f64>) {
    let (mean, variance) = predict(fitted, x);
    assert!(mean.iter().all(|v| v.is_finite()));
    assert!(variance.iter().all(|v| v.is_finite() && *v > 0.0), "{variance:?}");
    assert!(fitted.objective().is_some_and(f64::is_finite));
}

#[test]
fn few_rows_and_columns_work() {
    for method in METHODS {
        for (n, d) in [(2, 1), (2, 3), (3, 1), (5, 7), (40, 1)] {
            let fitted = fit(&table(n, d), &options(method, 30)).expect("a fit");
            sane(&fitted, &arrays(n, d).0);
            // far from all data: the prior, at the targets' mean
            let far = Mat::from_fn(1, d, |_, _| 1e9);
            let (mean, _) = predict(&fitted, &far);
            let (target, spread) = (fitted.scaler.y_mean[0], fitted.scaler.y_scale[0]);
            assert!((mean[0] - target).abs() < 1e-12 * (target.abs() + spread), "{method} {n}×{d}");
        }
    }
}

/// Three rows at the same place are one with their mean and a third of the noise.
#[test]
fn duplicate_rows_are_repeated_observations() {
    let (x, y) = arrays(60, 2);
    let repeated = Mat::from_fn(60, 2, |i, q| x[(i % 20, q)]);
    let dataset = Dataset::from_arrays(repeated, y.clone(), true).expect("a table");
    let scaler = dataset.scaler.clone();
    assert_eq!(dataset.repeated, 40);
    for method in METHODS {
        let fitted = fit(&dataset, &options(method, 40)).expect("a fit");
        sane(&fitted, &x);
    }
    let (model, ..) = prepare(&dataset, &options("exact", 0)).expect("a model");
    let mut once = model.clone();
    let noise = model.noise();
    once.set("likelihood.variance", &[noise / 3.0]).expect("in range");
    let mean_of = |i: usize| (y[(i, 0)] + y[(i + 20, 0)] + y[(i + 40, 0)]) / 3.0;
    let (mut distinct, mut means) =
        (x.as_ref().subrows(0, 20).to_owned(), Mat::from_fn(20, 1, |i, _| mean_of(i)));
    scaler.scale_x(distinct.as_mut()).expect("two columns");
    scaler.scale_y(means.as_mut()).expect("one column");
    let means = sparsegp::data::InMemory::new(distinct, means).expect("as many rows");
    let engine = sparsegp::engine::Cpu::default();
    let a = model.posterior(&engine, &*dataset.source).expect("well posed");
    let b = once.posterior(&engine, &means).expect("well posed");
    let places = Mat::from_fn(9, 2, |i, q| (i as f64 - 4.0) * 0.4 + 0.2 * q as f64);
    let (mean_a, variance_a) = a.predict_f(places.as_ref()).expect("two columns");
    let (mean_b, variance_b) = b.predict_f(places.as_ref()).expect("two columns");
    // K + σ²I has a condition below 60/0.1: rounding of 10⁻¹³
    for i in 0..9 {
        assert!((mean_a[(i, 0)] - mean_b[(i, 0)]).abs() < 1e-11);
        assert!((variance_a[(i, 0)] - variance_b[(i, 0)]).abs() < 1e-11);
    }
}

#[test]
fn a_single_place_works() {
    let (_, y) = arrays(15, 1);
    let dataset = Dataset::from_arrays(Mat::from_fn(15, 2, |_, _| 4.2), y, true).expect("a table");
    for method in METHODS {
        let fitted = fit(&dataset, &options(method, 20)).expect("a fit");
        assert_eq!(fitted.warnings.iter().filter(|w| w.contains("is constant")).count(), 2);
        sane(&fitted, &Mat::from_fn(3, 2, |i, _| 4.2 + i as f64));
        if method != "exact" {
            assert_eq!(fitted.model.inducing_points().expect("sparse").nrows(), 1);
        }
    }
}

/// A constant input changes nothing: neither the objective nor predictions.
#[test]
fn constant_inputs_have_no_effect() {
    let (x, y) = arrays(50, 2);
    let wider = Mat::from_fn(50, 3, |i, q| if q == 1 { -7e5 } else { x[(i, q / 2)] });
    let narrow = Dataset::from_arrays(x.clone(), y.clone(), true).expect("a table");
    let wide = Dataset::from_arrays(wider.clone(), y, true).expect("a table");
    assert!(wide.warnings.iter().any(|w| w.contains("`x1` is constant")), "{:?}", wide.warnings);
    for method in METHODS {
        for kernel in ["rbf", "matern12 + linear"] {
            // a start is another with another number of columns
            let mut own = FitOptions { pilot: 0, ..options(method, 0) };
            own.kernel = kernel.into();
            let path = if kernel == "rbf" { "kernel" } else { "kernel.kernels[0]" };
            own.set = vec![(format!("{path}.lengthscales"), vec![0.9])];
            if kernel != "rbf" {
                // its starting value depends on the number of columns
                own.set.push(("kernel.kernels[1].variance".into(), vec![0.31]));
            }
            let (a, b) = (fit(&narrow, &own).expect("a fit"), fit(&wide, &own).expect("a fit"));
            // a prior that nobody asked for is added and taken away again
            let (of_a, of_b) = (a.objective().unwrap(), b.objective().unwrap());
            assert!((of_a - of_b).abs() < 1e-14 * of_a.abs(), "{method} {kernel}: {of_a}, {of_b}");
            assert_eq!(predict(&a, &x), predict(&b, &wider), "{method} {kernel}");
            own.train.max_iterations = 25;
            sane(&fit(&wide, &own).expect("a fit"), &wider);
        }
    }
}

#[test]
fn constant_targets_are_predicted() {
    let (x, y) = arrays(30, 1);
    let alone = Mat::from_fn(30, 1, |_, _| -41.5);
    let beside = Mat::from_fn(30, 2, |i, p| if p == 0 { -41.5 } else { y[(i, 0)] });
    for method in METHODS {
        for y in [&alone, &beside] {
            let dataset = Dataset::from_arrays(x.clone(), y.clone(), true).expect("a table");
            assert!(
                dataset
                    .warnings
                    .iter()
                    .any(|w| w.contains("`y0` is constant")
                        || w.contains("`y0` is -41.5 in all rows"))
            );
            let fitted = fit(&dataset, &options(method, 20)).expect("a fit");
            sane(&fitted, &x);
            let (mean, _) = predict(&fitted, &x);
            assert!(mean[..30].iter().all(|v| (v + 41.5).abs() < 1e-9), "{method}");
        }
    }
}

/// Not a number anywhere: an error, before or at the first evaluation.
#[test]
fn numbers_that_are_none_are_errors() {
    for method in METHODS {
        for in_x in [true, false] {
            for frozen in [true, false] {
                let (mut x, mut y) = arrays(30, 2);
                if in_x {
                    x[(7, 1)] = f64::NAN
                } else {
                    y[(7, 0)] = f64::NAN
                }
                let Ok(dataset) = Dataset::from_arrays(x, y, false) else { continue };
                for iterations in [0, 3] {
                    let mut own = options(method, iterations);
                    if frozen {
                        own.freeze = vec!["kernel".into(), "likelihood".into(), "mean".into()];
                    }
                    let outcome = fit(&dataset, &own);
                    assert!(outcome.is_err(), "{method} x {in_x} frozen {frozen} {iterations}");
                }
            }
        }
    }
}

/// Unscaled targets around 10⁴ with a spread near 1: the constant mean starts there.
#[test]
fn unstandardised_targets_far_away_are_learnt() {
    let (x, _) = arrays(120, 1);
    let truth = |x: f64| 1e4 + 1.8 * (1.3 * x).sin();
    let y = Mat::from_fn(120, 1, |i, _| truth(x[(i, 0)]) + 0.05 * (i as f64 * 2.7).sin());
    let dataset = Dataset::from_arrays(x.clone(), y, false).expect("a table");
    assert_eq!(dataset.scaler, sparsegp::data::Scaler::identity(1, 1));
    for method in METHODS {
        let fitted = fit(&dataset, &options(method, 200)).expect("a fit");
        assert_eq!(fitted.model.mean.name(), "constant");
        assert!((value(&fitted.model, "mean.constant")[0] - 1e4).abs() < 5.0, "{method}");
        // 0.035 is the noise's deviation; averaged over neighbours it is less
        let (mean, variance) = predict(&fitted, &x);
        for (i, (mean, variance)) in mean.iter().zip(&variance).enumerate() {
            assert!((mean - truth(x[(i, 0)])).abs() < 0.05, "{method} row {i}: {mean}");
            assert!(*variance > 1e-4 && *variance < 0.01, "{method} row {i}: {variance}");
        }
    }
}

/// Targets of very different scales share a kernel on the standardised scale.
#[test]
fn targets_of_different_scales_are_alike() {
    let (x, y) = arrays(50, 2);
    // powers of two: scaling them is exact
    let (small, large) = (2.0_f64.powi(-30), 2.0_f64.powi(30));
    let both = |a: f64, b: f64| {
        let second = |i: usize| (x[(i, 0)] * 0.8).cos() + 0.3 * y[(i, 0)];
        Mat::from_fn(50, 2, |i, p| if p == 0 { a * y[(i, 0)] } else { b * second(i) })
    };
    for method in METHODS {
        let on = |y: Mat<f64>| {
            let dataset = Dataset::from_arrays(x.clone(), y, true).expect("a table");
            fit(&dataset, &options(method, 25)).expect("a fit")
        };
        let (a, b) = (on(both(1.0, 1.0)), on(both(small, large)));
        assert_eq!(bits(&a.model), bits(&b.model), "{method}");
        let ((mean_a, variance_a), (mean_b, variance_b)) = (predict(&a, &x), predict(&b, &x));
        for i in 0..100 {
            let scale = if i < 50 { small } else { large };
            assert_eq!(mean_b[i], scale * mean_a[i], "{method}");
            assert_eq!(variance_b[i], scale * scale * variance_a[i], "{method}");
        }
    }
}

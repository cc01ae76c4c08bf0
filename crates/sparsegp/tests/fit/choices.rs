//! What options ask for is what happens.

use crate::support::{arrays, fit, options, prepare, table, value};
use sparsegp::Error;
use sparsegp::engine::Cpu;
use sparsegp::fit::{AUTO_EXACT, BatchOptions, Dataset, FitOptions};
use sparsegp::train::{Event, Observer};
use std::ops::ControlFlow;

#[test]
fn auto_is_exact_while_that_is_affordable() {
    // 20 evaluations of ½N³ multiplications cost no more than 120 of 6NM²
    let costs = |n: f64| [20.0 * 0.5 * n.powi(3), 120.0 * 6.0 * n * 512.0_f64.powi(2)];
    let [exact, sparse] = costs(AUTO_EXACT as f64);
    let [later, other] = costs(AUTO_EXACT as f64 + 100.0);
    assert!(exact <= sparse && later > other, "{exact} {sparse} {later} {other}");
    for (n, inducing, method, count) in [
        (1999, None, "exact", 0),
        (AUTO_EXACT, None, "exact", 0),
        (AUTO_EXACT + 1, None, "titsias2025", 512),
        (AUTO_EXACT + 1, Some(7), "titsias2025", 7),
        (300, Some(7), "titsias2025", 7),
    ] {
        let options = FitOptions { inducing, pilot: 0, ..options("auto", 0) };
        let (model, reason, warnings) = prepare(&table(n, 1), &options).expect("a model");
        assert_eq!(model.method.name(), method, "{n}: {reason}");
        assert_eq!(model.inducing_points().map_or(0, |z| z.nrows()), count, "{n}");
        assert!(reason.contains(&count.to_string()) || count == 0, "{reason}");
        assert!(reason.contains(&n.to_string()) || n == 300, "{reason}");
        assert!(warnings.is_empty(), "{warnings:?}");
    }
}

#[test]
fn exact_inference_on_too_many_rows_is_refused() {
    let n = 32_769;
    let error = fit(&table(n, 1), &options("exact", 1)).expect_err("8 GiB for one matrix");
    let text = error.to_string();
    assert!(matches!(error, Error::Invalid(_)), "{text}");
    assert!(text.contains("32769") && text.contains("titsias2025"), "{text}");
}

#[test]
fn values_that_are_set_and_frozen_stay() {
    let dataset = table(60, 2);
    for method in ["exact", "titsias2025"] {
        let mut own = options(method, 15);
        own.kernel = "rbf + linear".into();
        own.set = vec![
            ("kernel.kernels[0].lengthscales".into(), vec![0.83, 2.7]),
            ("likelihood.variance".into(), vec![0.037]),
            ("kernel.kernels[1].variance".into(), vec![0.61]),
        ];
        own.freeze = vec!["kernel.kernels[0].lengthscales".into(), "likelihood".into()];
        let fitted = fit(&dataset, &own).expect("a fit");
        let at = |path: &str| value(&fitted.model, path);
        assert_eq!(at("kernel.kernels[0].lengthscales"), [0.83, 2.7], "{method}");
        assert_eq!(at("likelihood.variance"), [0.037], "{method}");
        // not frozen: where it starts, and not where it ends
        assert_ne!(at("kernel.kernels[1].variance"), [0.61], "{method}");
        let (start, ..) = prepare(&dataset, &own).expect("a model");
        assert_eq!(value(&start, "kernel.kernels[1].variance"), [0.61], "{method}");
        let frozen = |path: &str| fitted.parameters().iter().any(|r| r.path == path && r.frozen);
        assert!(frozen("likelihood.variance") && !frozen("kernel.kernels[0].variance"));
        // a whole group, at its starting values
        let own = FitOptions { freeze: vec!["kernel".into()], ..options(method, 15) };
        let (start, ..) = prepare(&dataset, &own).expect("a model");
        let fitted = fit(&dataset, &own).expect("a fit");
        for path in ["kernel.variance", "kernel.lengthscales"] {
            assert_eq!(value(&fitted.model, path), value(&start, path), "{method}");
        }
        assert_ne!(value(&fitted.model, "likelihood.variance"), [0.1], "{method}");
    }
    // one number for all of a vector, and inducing points too
    let mut own = options("titsias2009", 10);
    let points: Vec<f64> = (0..24).map(|i| (i as f64 * 0.9).sin()).collect();
    own.set = vec![
        ("kernel.lengthscales".into(), vec![1.25]),
        ("inducing.points".into(), points.clone()),
    ];
    own.freeze = vec!["inducing.points".into(), "kernel.lengthscales".into()];
    let fitted = fit(&dataset, &own).expect("a fit");
    assert_eq!(value(&fitted.model, "inducing.points"), points);
    assert_eq!(value(&fitted.model, "kernel.lengthscales"), [1.25, 1.25]);
}

#[test]
fn paths_that_do_not_exist_name_the_nearest() {
    let dataset = table(30, 2);
    let asks = |method: &str, set: &[(&str, &[f64])], freeze: &[&str]| {
        let mut own = options(method, 1);
        own.set = set.iter().map(|(path, v)| (path.to_string(), v.to_vec())).collect();
        own.freeze = freeze.iter().map(|path| path.to_string()).collect();
        fit(&dataset, &own).expect_err("a mistake")
    };
    for method in ["exact", "titsias2025"] {
        for (error, asked, wanted) in [
            (
                asks(method, &[("kernel.lengthscale", &[1.0])], &[]),
                "kernel.lengthscale",
                "kernel.lengthscales",
            ),
            (asks(method, &[], &["kernel.varience"]), "kernel.varience", "kernel.variance"),
            (asks(method, &[], &["likelihod"]), "likelihod", "likelihood.variance"),
        ] {
            let text = error.to_string();
            let Error::UnknownParameter { path, nearest } = error else { panic!("{text}") };
            assert_eq!((path.as_str(), nearest[0].as_str()), (asked, wanted));
            assert!(text.contains(&format!("nearest: `{wanted}`")), "{text}");
        }
    }
    let error = asks("titsias2009", &[("inducing.point", &[1.0])], &[]);
    assert!(error.to_string().contains("`inducing.points`"), "{error}");
    let error = asks("exact", &[("inducing.points", &[1.0])], &[]);
    assert!(matches!(error, Error::UnknownParameter { .. }), "{error}");
    let many: &[f64] = &[1.0, 2.0, 3.0];
    for (path, values) in [("kernel.lengthscales", many), ("kernel.variance", &[-0.5])] {
        let error = asks("exact", &[(path, values)], &[]);
        assert!(matches!(&error, Error::InvalidParameter { path: own, .. } if own == path));
    }
}

#[test]
fn the_pilot_does_not_change_given_values() {
    let dataset = table(300, 2);
    let mut own = options("titsias2025", 0);
    own.kernel = "rbf(lengthscales=[0.41, 0.9]) + matern32".into();
    own.set = vec![("kernel.kernels[1].variance".into(), vec![0.27])];
    own.freeze = vec!["kernel.kernels[0].variance".into()];
    let at =
        |pilot: usize| prepare(&dataset, &FitOptions { pilot, ..own.clone() }).expect("a model");
    let ((with, ..), (without, ..)) = (at(80), at(0));
    for path in [
        "kernel.kernels[0].lengthscales",
        "kernel.kernels[1].variance",
        "kernel.kernels[0].variance",
    ] {
        assert_eq!(value(&with, path), value(&without, path), "{path}");
    }
    assert_eq!(value(&with, "kernel.kernels[0].lengthscales"), [0.41, 0.9]);
    assert_eq!(value(&with, "kernel.kernels[1].variance"), [0.27]);
    for path in ["likelihood.variance", "kernel.kernels[1].lengthscales"] {
        assert_ne!(value(&with, path), value(&without, path), "{path}");
    }
    // given is not frozen: the model's own training may move them
    let frozen = |path: &str| with.params().iter().any(|(own, p)| own == path && p.frozen);
    assert!(!frozen("kernel.kernels[1].variance") && frozen("kernel.kernels[0].variance"));
    let trained = fit(&dataset, &FitOptions { pilot: 80, train: options("exact", 5).train, ..own });
    let trained = trained.expect("a fit").model;
    assert_ne!(value(&trained, "kernel.kernels[1].variance"), [0.27]);
    // without inducing points training starts where the trial of at least half of the rows has ended; from fewer rows
    // lengthscales are taken
    for (rows, values) in [(300, true), (500, false)] {
        let dataset = table(rows, 2);
        let model = |pilot| prepare(&dataset, &FitOptions { pilot, ..options("exact", 0) });
        let (judged, plain) = (model(300).expect("a model").0, model(0).expect("a model").0);
        let noise = [&judged, &plain].map(|model| value(model, "likelihood.variance"));
        assert_eq!(noise[0] != noise[1], values, "{noise:?}");
        let lengths = [&judged, &plain].map(|model| value(model, "kernel.lengthscales"));
        let shorter = lengths[0].iter().zip(&lengths[1]).all(|(own, plain)| own <= plain);
        assert!(values || shorter, "{lengths:?}");
    }
}

/// All rows at once while that costs less than minibatches.
#[test]
fn auto_counts_operations() {
    let of = |n: usize, likelihood: &str, batches: bool| {
        let (x, mut y) = arrays(n, 1);
        let counts = likelihood == "poisson";
        y.col_as_slice_mut(0)
            .iter_mut()
            .for_each(|v| *v = if counts { v.abs().round() } else { *v });
        let own = FitOptions {
            likelihood: Some(likelihood.into()),
            inducing: Some(60),
            pilot: 0,
            batches: batches.then(Default::default),
            ..FitOptions::default()
        };
        let data = Dataset::from_arrays(x, y, !counts).expect("a table");
        let (model, reason, _) = prepare(&data, &own).expect("a model");
        (model.method.name(), reason)
    };
    let name = |n, likelihood, batches| of(n, likelihood, batches).0;
    assert_eq!(name(5000, "gaussian", true), "titsias2025");
    let (method, reason) = of(100_000, "gaussian", true);
    assert_eq!(method, "svgp2025");
    assert!(
        reason.contains("Tflop") && reason.contains("the collapsed bound at the end"),
        "{reason}"
    );
    // nobody is trained by minibatches who wants none
    assert_eq!(name(100_000, "gaussian", false), "titsias2025");
    assert_eq!(name(2400, "poisson", true), "tsvgp");
    assert_eq!(name(60_000, "poisson", true), "svgp");
}

/// Minibatches that `auto` chose end as the collapsed bound: its best q at the hyperparameters, and no lower than svgp2025.
#[test]
fn minibatches_of_auto_end_with_the_collapsed_bound() {
    let data = table(2600, 1);
    let own = FitOptions {
        inducing: Some(20),
        batches: Some(BatchOptions { size: 100, ..BatchOptions::default() }),
        ..FitOptions::default()
    };
    let fitted = fit(&data, &own).expect("a fit");
    assert_eq!(fitted.model.method.name(), "titsias2025");
    assert!(fitted.reason.contains("svgp2025"), "{}", fitted.reason);
    assert!(fitted.model.q.is_none());
    let report = fitted.report.as_ref().expect("trained");
    assert!(report.stopped.contains("iterations of the collapsed bound"), "{}", report.stopped);
    let bound = fitted.model.evaluate(&Cpu::default(), &*data.source).expect("a bound").value;
    assert!((report.objective - bound).abs() < 1e-9 * bound.abs(), "{} {bound}", report.objective);
    let asked = FitOptions { method: "svgp2025".into(), ..own };
    let batches = fit(&data, &asked).expect("a fit");
    assert_eq!(batches.model.method.name(), "svgp2025");
    let behind = batches.report.expect("trained").objective - report.objective;
    assert!(behind < 1.0, "{behind} nats behind only minibatches");
}

/// A quarter of the rows, then their square root: no cliff in cost.
#[test]
fn methods_that_train_q_have_fewer_points_than_rows() {
    for (n, count) in [(100, 50), (300, 75), (800, 200), (2400, 346), (8000, 512)] {
        let own = FitOptions { pilot: 0, inducing: None, ..options("tsvgp", 0) };
        let (model, ..) = prepare(&table(n, 1), &own).expect("a model");
        assert_eq!(model.inducing_points().expect("points").nrows(), count, "{n}");
    }
}

#[test]
fn what_cannot_be_learnt_from_is_refused() {
    let (x, y) = arrays(4, 2);
    let rows = |n: usize, d: usize| {
        let (x, y) = (x.as_ref().subrows(0, n), y.as_ref().subrows(0, n));
        Dataset::from_arrays(x.subcols(0, d).to_owned(), y.to_owned(), true)
    };
    assert!(rows(0, 1).is_err() && rows(1, 1).is_err());
    assert!(fit(&rows(4, 0).expect("a table"), &options("exact", 1)).is_err());
    let dataset = rows(4, 2).expect("a table");
    let none = FitOptions { inducing: Some(0), ..options("titsias2009", 1) };
    assert!(fit(&dataset, &none).expect_err("no points").to_string().contains("at least one"));
    for change in [
        |o: &mut FitOptions| o.kernel = "rbg".into(),
        |o: &mut FitOptions| o.mean = Some("quadratic".into()),
        |o: &mut FitOptions| o.method = "titsias2024".into(),
    ] {
        let mut own = options("exact", 1);
        change(&mut own);
        let text = fit(&dataset, &own).expect_err("a name that is not known").to_string();
        assert!(text.contains("nearest"), "{text}");
    }
}

/// `auto` leaves inducing points that move after 120 iterations, and says so; who names the method or a number gets what was asked.
#[test]
fn auto_leaves_moving_points_after_some_iterations() {
    let data = table(300, 2);
    let ends = |method: &str, most: usize| {
        let mut own = FitOptions { inducing: Some(9), pilot: 0, ..options(method, most) };
        own.train.optimiser = sparsegp::train::OptimiserKind::Lbfgs(Default::default());
        let report = fit(&data, &own).expect("a fit").report.expect("trained");
        (report.iterations, report.stopped.contains("`auto`"))
    };
    let usual = FitOptions::default().train.max_iterations;
    assert_eq!(ends("auto", usual), (120, true));
    let (named, said) = ends("titsias2025", usual);
    assert!(named > 120 && !said, "{named}");
    assert_eq!(ends("auto", 130), (130, false));
}

/// The rows of the pilots of a fit.
#[derive(Default)]
struct Pilots(Vec<usize>);

impl Observer for Pilots {
    fn event(&mut self, event: Event<'_>) -> ControlFlow<()> {
        if let Event::Pilot { rows } = event {
            self.0.push(rows);
        }
        ControlFlow::Continue(())
    }
}

#[test]
fn exact_inference_starts_from_a_pilot_on_half_of_the_rows() {
    for (n, expected) in [(999, vec![]), (1100, vec![550])] {
        let mut seen = Pilots::default();
        let own = FitOptions { inducing: None, ..options("auto", 1) };
        let fitted =
            sparsegp::fit::fit(&table(n, 1), &own, &Cpu::default(), &mut seen).expect("a fit");
        assert_eq!(fitted.model.method.name(), "exact");
        assert_eq!(seen.0, expected, "{n}");
    }
}

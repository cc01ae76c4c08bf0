//! Bounds of hyperparameters, with every way to train.

use crate::support::{METHODS, arrays, fit, options, prepare, table, value};
use sparsegp::fit::{Dataset, FitOptions, Fitted};
use sparsegp::io;
use sparsegp::optim::{AdamOptions, LbfgsOptions};
use sparsegp::train::OptimiserKind;

fn with(kernel: &str, own: FitOptions) -> FitOptions {
    FitOptions { kernel: kernel.into(), ..own }
}

fn objective(fitted: &Fitted) -> f64 {
    fitted.report.as_ref().expect("a report").objective
}

/// The warnings of values at bounds.
fn at_bounds(fitted: &Fitted) -> Vec<&String> {
    fitted.warnings.iter().filter(|text| text.contains("ended at its bound")).collect()
}

/// Where the optimum lies beyond a bound, training ends at the bound, as high as one whose value is frozen there; and says
/// so. From whichever side, and wherever it starts.
#[test]
fn a_training_ends_at_the_bound_that_the_optimum_lies_beyond() {
    let data = table(60, 1);
    for method in METHODS.into_iter().chain(["svgp", "tsvgp"]) {
        // L-BFGS moves the q of `svgp` too
        // objectives are compared, which leave an assumed prior out
        let own = FitOptions { batches: None, lengthscale_prior: false, ..options(method, 3000) };
        let free = fit(&data, &with("rbf", own.clone())).expect("a fit");
        let best = value(&free.model, "kernel.lengthscales")[0];
        assert!(at_bounds(&free).is_empty());
        for (bounds, bound) in [
            (format!("max: {}", 0.5 * best), 0.5 * best),
            (format!("min: {}, max: {}", 0.01 * best, 0.5 * best), 0.5 * best),
            (format!("min: {}", 2.0 * best), 2.0 * best),
            (format!("min: {}, max: {}", 2.0 * best, 2.2 * best), 2.0 * best),
            (
                format!("value: {}, min: {}, max: {}", 2.5 * best, 2.0 * best, 10.0 * best),
                2.0 * best,
            ),
        ] {
            // from lengthscales too long a pilot, which keeps those that are given, and a q that knows nothing yet take
            // all for noise
            if (method == "svgp" && bound > best) || (bounds.contains("value") && method != "exact")
            {
                continue;
            }
            let spec = format!("rbf(lengthscales={{{bounds}}})");
            let bounded = fit(&data, &with(&spec, own.clone())).expect("a fit");
            let found = value(&bounded.model, "kernel.lengthscales")[0];
            let what = format!("{method} {spec}: {found}, best {best}");
            assert!((found / bound - 1.0).abs() < 1e-3, "{what}");
            let said = at_bounds(&bounded);
            assert_eq!(said.len(), 1, "{what}: {:?}", bounded.warnings);
            let which = if bound > best { "min" } else { "max" };
            assert!(said[0].contains("kernel.lengthscales") && said[0].contains(which), "{said:?}");
            let mut frozen = with("rbf", own.clone());
            frozen.set = vec![("kernel.lengthscales".into(), vec![bound])];
            frozen.freeze = vec!["kernel.lengthscales".into()];
            let frozen = fit(&data, &frozen).expect("a fit");
            let (own, best) = (objective(&bounded), objective(&frozen));
            assert!((own - best).abs() < 2e-2, "{what}: {own}, frozen {best}");
        }
    }
}

/// Bounds that hold change nothing, from a start next to either of them.
#[test]
fn an_optimum_within_the_bounds_is_found_from_next_to_them() {
    let data = table(60, 1);
    for method in ["exact", "titsias2025"] {
        let own = options(method, 300);
        let free = fit(&data, &with("rbf", own.clone())).expect("a fit");
        for (low, high) in [(0.02, 50.0), (0.2, 8.0)] {
            for start in ["", "value: 0.2001, ", "value: 7.9, "] {
                let spec = format!(
                    "rbf(lengthscales={{{start}min: {low}, max: {high}}}, variance={{min: 1e-3, max: 1e3}})"
                );
                let own = FitOptions {
                    likelihood: Some("gaussian(variance={min: 1e-6, max: 10})".into()),
                    ..with(&spec, own.clone())
                };
                let bounded = fit(&data, &own).expect("a fit");
                let (own, best) = (objective(&bounded), objective(&free));
                assert!((own - best).abs() < 1e-2, "{method} {spec}: {own}, free {best}");
                assert!(at_bounds(&bounded).is_empty(), "{:?}", bounded.warnings);
            }
        }
    }
}

/// The way that people train: it ends earlier, and at the bound all the same.
#[test]
fn the_default_training_ends_at_bounds_of_every_kind_of_parameter() {
    let data = table(80, 2);
    let mut own = options("auto", 1000);
    own.train.optimiser = OptimiserKind::Lbfgs(LbfgsOptions::fitting());
    own.kernel = "rbf(lengthscales={min: 0.05, max: 0.4})".into();
    own.likelihood = Some("gaussian(variance={min: 0.3})".into());
    own.mean = Some(r#"{"type": "constant", "constant": {"min": 0.7, "max": 0.9}}"#.into());
    let fitted = fit(&data, &own).expect("a fit");
    let said = at_bounds(&fitted);
    for path in
        ["kernel.lengthscales[0]", "kernel.lengthscales[1]", "likelihood.variance", "mean.constant"]
    {
        assert!(said.iter().any(|text| text.starts_with(path)), "{path}: {said:?}");
    }
    let mean = value(&fitted.model, "mean.constant")[0];
    assert!(mean > 0.7 && mean < 0.9, "{mean}");
}

/// Adam, on all rows and by minibatches, closed forms, further starts: no value leaves its bounds.
#[test]
fn no_way_to_train_leaves_the_bounds() {
    let data = table(90, 1);
    let kernel = "matern52(lengthscales={min: 1.5, max: 3}, variance={max: 0.2})";
    let mut adam = with(kernel, FitOptions { restarts: 3, ..options("titsias2025", 60) });
    adam.train.optimiser =
        OptimiserKind::Adam(AdamOptions { learning_rate: 0.1, ..AdamOptions::default() });
    let mut batches = with(kernel, options("svgp", 1));
    let own = batches.batches.as_mut().expect("minibatches");
    (own.size, own.training.epochs) = (30, Some(40));
    let mut rounds = with(kernel, FitOptions { batches: None, ..options("tsvgp", 40) });
    rounds.likelihood = Some("student-t(scale={min: 0.4, max: 0.5}, df={max: 5})".into());
    let mut closed = with(kernel, FitOptions { batches: None, ..options("cavi", 40) });
    closed.likelihood = Some("laplace(scale={min: 0.4, max: 0.5})".into());
    let restarts = with(kernel, FitOptions { restarts: 4, ..options("exact", 60) });
    for own in [adam, batches, rounds, closed, restarts] {
        let fitted = fit(&data, &own).unwrap_or_else(|e| panic!("{}: {e}", own.method));
        let lengthscale = value(&fitted.model, "kernel.lengthscales")[0];
        let variance = value(&fitted.model, "kernel.variance")[0];
        assert!(lengthscale > 1.5 && lengthscale < 3.0, "{}: {lengthscale}", own.method);
        assert!(variance < 0.2, "{}: {variance}", own.method);
        if own.likelihood.is_some() {
            let scale = value(&fitted.model, "likelihood.scale")[0];
            assert!(scale > 0.4 && scale < 0.5, "{}: {scale}", own.method);
        }
    }
}

#[test]
fn starts_are_within_bounds_and_files_keep_them() {
    let data = table(60, 2);
    let mut own = with("rbf(lengthscales={min: 5, max: 20})", options("titsias2025", 0));
    own.likelihood = Some(
        "gaussian(variance={min: 0.6, prior: {type: gamma, concentration: 2, rate: 3}})".into(),
    );
    let (model, _, _) = prepare(&data, &own).expect("a start");
    for lengthscale in value(&model, "kernel.lengthscales") {
        // near the bound that the start from the data is beyond
        assert!(lengthscale > 5.0 && lengthscale < 6.0, "{lengthscale}");
    }
    assert!(value(&model, "likelihood.variance")[0] > 0.6);
    let params = model.params();
    let noise = params.iter().find(|(path, _)| path == "likelihood.variance").expect("noise").1;
    assert!(noise.prior.is_some(), "its prior went with the start");
    let fitted = fit(&data, &own).expect("a fit");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bounded.safetensors");
    io::save(&fitted, &path).expect("saved");
    let loaded = io::load(&path).expect("loaded");
    let of = |fitted: &Fitted| -> Vec<_> {
        fitted.model.params().into_iter().map(|(path, p)| (path, p.clone())).collect()
    };
    for ((path, own), (_, other)) in of(&fitted).into_iter().zip(of(&loaded)) {
        assert_eq!(
            (own.bounds(), own.transform(), own.value()),
            (other.bounds(), other.transform(), other.value()),
            "{path}"
        );
    }
}

#[test]
fn impossible_bounds_are_refused_by_the_parameter_s_name() {
    let (x, y) = arrays(30, 1);
    let data = Dataset::from_arrays(x, y, true).expect("a table");
    let refused = |own: FitOptions| fit(&data, &own).expect_err("refused").to_string();
    let error = refused(with("rbf(lengthscales={min: 3, max: 2})", options("exact", 5)));
    assert!(
        error.contains("lengthscales") && error.contains("`min` is 3 and `max` is 2"),
        "{error}"
    );
    let error = refused(with("rbf(variance={min: 0})", options("exact", 5)));
    assert!(error.contains("variance") && error.contains("positive"), "{error}");
    let mut own = with("rbf(lengthscales={min: 0.1, max: 2})", options("exact", 5));
    own.set = vec![("kernel.lengthscales".into(), vec![2.5])];
    let error = refused(own);
    assert!(error.contains("kernel.lengthscales") && error.contains("(0.1, 2)"), "{error}");
    let own = FitOptions {
        likelihood: Some("gaussian(variance={value: 2, max: 1})".into()),
        ..options("exact", 5)
    };
    let error = refused(own);
    assert!(error.contains("likelihood.variance") && error.contains('2'), "{error}");
}

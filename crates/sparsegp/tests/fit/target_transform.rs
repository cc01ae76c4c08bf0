//! Functions of targets: what is predicted, scored, drawn and saved is of the targets.

use crate::support::{fit, options};
use rand_distr::{Distribution, StandardNormal};
use sparsegp::data::TargetTransform;
use sparsegp::fit::{Dataset, FitOptions, Fitted, Of, Standardise, TransformTargets};
use sparsegp::linalg::{Mat, MatRef};
use sparsegp::rng::{stream, uniform};
use sparsegp::samplers::gibbs::GibbsOptions;

/// Rows whose targets are `of` a function with noise.
fn rows(n: usize, of: impl Fn(f64) -> f64) -> (Mat<f64>, Mat<f64>) {
    let mut rng = stream(11, "transforms");
    let x = Mat::from_fn(n, 1, |_, _| 6.0 * uniform(&mut rng) - 3.0);
    let y = Mat::from_fn(n, 1, |i, _| {
        let noise: f64 = StandardNormal.sample(&mut rng);
        of(x[(i, 0)].sin() + 0.4 * noise)
    });
    (x, y)
}

fn dataset(x: &Mat<f64>, y: &Mat<f64>) -> Dataset {
    Dataset::from_arrays(x.clone(), y.clone(), true).expect("a table")
}

fn learnt(x: &Mat<f64>, y: &Mat<f64>, transform: TransformTargets, method: &str) -> Fitted {
    // as few draws as quantiles are of all of them
    let gibbs = GibbsOptions { chains: 1, draws: 60, burn_in: 60, ..GibbsOptions::default() };
    let own = FitOptions { target_transform: transform, gibbs, ..options(method, 100) };
    fit(&dataset(x, y), &own).expect("a fit")
}

/// log p at targets, each at the same input.
fn densities(fitted: &Fitted, at: f64, y: &[f64]) -> Vec<f64> {
    let x = Mat::from_fn(y.len(), 1, |_, _| at);
    let y = Mat::from_fn(y.len(), 1, |i, _| y[i]);
    fitted.log_density(x.as_ref(), y.as_ref(), &[]).expect("densities")
}

/// Densities integrate to 1, and their moments and quantiles are those that are predicted.
#[test]
fn densities_moments_and_quantiles_are_of_one_distribution() {
    let (x, y) = rows(150, |f| (1.5 * f).exp() + 0.1);
    for (transform, method) in [
        (TransformTargets::Log, "exact"),
        (TransformTargets::Log, "titsias2025"),
        (TransformTargets::YeoJohnson, "exact"),
        (TransformTargets::YeoJohnson, "nuts"),
    ] {
        let fitted = learnt(&x, &y, transform, method);
        let at = Mat::from_fn(1, 1, |_, _| 0.7);
        let levels = [1e-9, 0.05, 0.5, 0.95, 1.0 - 1e-9];
        let all =
            fitted.predict_with_quantiles(at.as_ref(), &[], &levels, Of::Observations).unwrap();
        let q = |level: usize| all.quantiles[level][(0, 0)];
        // Simpson's rule in the logarithm of the distance from the lowest quantile
        let (low, high, parts) = (1e-6_f64.ln(), (q(4) - q(0)).ln(), 40_000);
        let step = (high - low) / parts as f64;
        let places: Vec<f64> = (0..=parts).map(|k| q(0) + (low + step * k as f64).exp()).collect();
        let density: Vec<f64> =
            densities(&fitted, 0.7, &places).iter().map(|log| log.exp()).collect();
        let integral = |f: &dyn Fn(f64) -> f64| -> f64 {
            let weight = |k: usize| match (k == 0 || k == parts, k % 2) {
                (true, _) => 1.0,
                (_, 1) => 4.0,
                _ => 2.0,
            };
            let own = |k: usize| weight(k) * f(places[k]) * density[k] * (places[k] - q(0));
            (0..=parts).map(own).sum::<f64>() * step / 3.0
        };
        let whole = integral(&|_| 1.0);
        assert!((whole - 1.0).abs() < 1e-4, "{transform:?} {method}: {whole}");
        let mean = integral(&|y| y);
        let variance = integral(&|y| (y - mean).powi(2));
        let (own, spread) = (all.mean[(0, 0)], all.variance[(0, 0)]);
        assert!((own / mean - 1.0).abs() < 2e-3, "{transform:?} {method}: {own} {mean}");
        assert!(
            (spread / variance - 1.0).abs() < 2e-2,
            "{transform:?} {method}: {spread} {variance}"
        );
        for (level, quantile) in [(0.05, q(1)), (0.5, q(2)), (0.95, q(3))] {
            let below = integral(&|y| f64::from(u8::from(y <= quantile)));
            assert!((below - level).abs() < 2e-3, "{transform:?} {method} {level}: {below}");
        }
        // what is judged and drawn is the same
        let judged =
            fitted.judge(at.as_ref(), Mat::from_fn(1, 1, |_, _| q(2)).as_ref(), &[]).unwrap();
        assert!((judged.mean[(0, 0)] / own - 1.0).abs() < 1e-9);
        assert!((judged.log_density[(0, 0)] - densities(&fitted, 0.7, &[q(2)])[0]).abs() < 1e-9);
        let draws = fitted.sample_y(at.as_ref(), &[], 4000, 1).unwrap();
        let below = draws.iter().filter(|draw| draw[(0, 0)] < q(3)).count() as f64 / 4000.0;
        assert!((below - 0.95).abs() < 0.02, "{transform:?} {method}: {below}");
    }
}

/// A model of logarithms is the model of a table of logarithms: densities have the Jacobian, and so has the evidence.
#[test]
fn a_logarithm_is_that_of_a_column() {
    let (x, y) = rows(80, |f| (1.2 * f).exp());
    let log = Mat::from_fn(80, 1, |i, _| y[(i, 0)].ln());
    let own = learnt(&x, &y, TransformTargets::Log, "exact");
    let other = learnt(&x, &log, TransformTargets::None, "exact");
    let sum: f64 = (0..80).map(|i| log[(i, 0)]).sum();
    let difference = own.objective().unwrap() - (other.objective().unwrap() - sum);
    assert!(difference.abs() < 1e-6, "{difference}");
    let (a, b) = (
        own.log_density(x.as_ref(), y.as_ref(), &[]).unwrap(),
        other.log_density(x.as_ref(), log.as_ref(), &[]).unwrap(),
    );
    for i in 0..80 {
        assert!((a[i] - (b[i] - log[(i, 0)])).abs() < 1e-9);
    }
    let data = |y: &Mat<f64>, of: &Fitted| {
        Dataset::from_arrays(x.clone(), y.clone(), of.scaler.clone()).expect("rows")
    };
    let (a, b) = (
        own.leave_one_out(&data(&y, &own)).unwrap(),
        other.leave_one_out(&data(&log, &other)).unwrap(),
    );
    for i in 0..80 {
        let expected = b.log_density[(i, 0)] - log[(i, 0)];
        assert!((a.log_density[(i, 0)] - expected).abs() < 1e-7);
        let mean = (b.mean[(i, 0)] + 0.5 * b.variance[(i, 0)]).exp();
        assert!((a.mean[(i, 0)] / mean - 1.0).abs() < 1e-7);
    }
    // below 0 there is nothing
    assert_eq!(densities(&own, 0.0, &[-1.0, 0.0]), [f64::NEG_INFINITY; 2]);
}

/// What the rows ask for is taken: the logarithm, next to nothing, a power.
#[test]
fn the_function_is_the_one_that_the_rows_ask_for() {
    let of = |y: &dyn Fn(f64) -> f64, asked| {
        let (x, y) = rows(200, y);
        learnt(&x, &y, asked, "exact").scaler.transform(0).copied()
    };
    assert_eq!(of(&|f| (1.5 * f).exp(), TransformTargets::Auto), Some(TargetTransform::Log));
    assert_eq!(of(&|f| 7.0 + f, TransformTargets::Auto), None);
    let Some(TargetTransform::YeoJohnson { lambda, .. }) =
        of(&|f| (1.5 * f).sinh().min(30.0) + f.exp(), TransformTargets::YeoJohnson)
    else {
        panic!("no power")
    };
    assert!(lambda < 0.8, "{lambda}");
}

/// Saved and read back, and gone on with, it is the same.
#[test]
fn files_and_further_training_keep_it() {
    let (x, y) = rows(60, |f| (1.2 * f).exp());
    let fitted = learnt(&x, &y, TransformTargets::Log, "titsias2025");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("m.safetensors");
    sparsegp::fit::files::save(&fitted, &path).expect("a file");
    let back = sparsegp::fit::files::load(&path).expect("a model");
    assert_eq!(back.scaler, fitted.scaler);
    assert_eq!(back.objective(), fitted.objective());
    let at = |x: MatRef<'_, f64>, fitted: &Fitted| fitted.predict(x, Of::Observations).unwrap();
    assert_eq!(at(x.as_ref(), &back), at(x.as_ref(), &fitted));
    let data = Dataset::from_arrays(x.clone(), y.clone(), back.scaler.clone()).expect("rows");
    let further = sparsegp::fit::go_on(
        back,
        &data,
        &options("titsias2025", 5),
        &sparsegp::engine::Cpu::default(),
        &mut (),
    );
    let further = further.expect("a training");
    assert!(further.objective().unwrap() >= fitted.objective().unwrap() - 1e-6);
}

#[test]
fn what_is_not_transformed_is_refused_by_name() {
    let (x, y) = rows(40, f64::exp);
    let refused = |options: FitOptions, y: &Mat<f64>, targets: bool, word: &str| {
        let scaling = Standardise { inputs: true, targets, robust: false, constants: true };
        let data = Dataset::from_arrays(x.clone(), y.clone(), scaling).expect("a table");
        let text = fit(&data, &options).expect_err("a refusal").to_string();
        assert!(text.contains(word), "{text}");
    };
    let log = FitOptions { target_transform: TransformTargets::Log, ..options("exact", 5) };
    let counts = Mat::from_fn(40, 1, |i, _| (i % 4) as f64);
    let poisson = FitOptions { likelihood: Some("poisson".into()), ..log.clone() };
    refused(FitOptions { method: "auto".into(), ..poisson }, &counts, false, "`poisson`");
    refused(log.clone(), &counts, true, "has no logarithm");
    // what is left out says so
    let fitted = learnt(&x, &y, TransformTargets::Log, "exact");
    let error = fitted.predict_covariance(x.as_ref(), &[], Of::Observations).unwrap_err();
    assert!(error.to_string().contains("--target-transform"), "{error}");
}

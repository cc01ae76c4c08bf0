//! Models to export, and what they predict.

use sparsegp::data::InMemory;
use sparsegp::engine::Cpu;
use sparsegp::export::Export;
use sparsegp::fit::{
    BatchOptions, Dataset, FitOptions, Fitted, Hyperparameters, LogInputs, Of, Standardise,
    TransformTargets, fit,
};
use sparsegp::linalg::Mat;
use std::sync::LazyLock;

/// Rows of inputs with different units, the last of which is a whole number from 0 to 2.
pub fn inputs(n: usize) -> Mat<f64> {
    Mat::from_fn(n, 3, |i, d| match d {
        0 => 1000.0 + 7.0 * (0.37 * i as f64).sin() + 0.01 * i as f64,
        1 => 0.002 * (1.3 * i as f64).cos() + 1e-5 * i as f64,
        _ => (i * 7 % 3) as f64,
    })
}

pub fn target(x: &Mat<f64>, i: usize) -> f64 {
    let group = [0.5, -0.7, 1.0][x[(i, 2)] as usize];
    let noise = 0.1 * (12.9898 * i as f64).sin();
    30.0 * ((x[(i, 0)] - 1000.0) / 4.0).sin()
        + 4000.0 * x[(i, 1)]
        + 9.0 * group
        + 20.0 * noise
        + 500.0
}

pub fn options(kernel: &str, method: &str) -> FitOptions {
    let mut options = FitOptions {
        kernel: kernel.into(),
        method: method.into(),
        inducing: (method != "exact").then_some(14),
        pilot: 0,
        restarts: 0,
        log_inputs: LogInputs::None,
        target_transform: TransformTargets::None,
        hyperparameters: Hyperparameters::PlugIn,
        ..FitOptions::default()
    };
    options.train.max_iterations = 12;
    options
}

/// A model of numbers.
pub fn regression(options: &FitOptions) -> Fitted {
    let x = inputs(70);
    let y = Mat::from_fn(70, 1, |i, _| target(&x, i));
    learnt(x, y, options)
}

pub fn learnt(x: Mat<f64>, y: Mat<f64>, options: &FitOptions) -> Fitted {
    let likelihood =
        sparsegp::likelihoods::parse(options.likelihood.as_deref().unwrap_or("gaussian")).unwrap();
    let scaling = Standardise::all_that(&*likelihood).for_kernel(&options.kernel);
    let data = Dataset::from_arrays(x, y, scaling).unwrap();
    fit(&data, options, &Cpu::default(), &mut ()).unwrap()
}

/// Rows inside and far outside of the data, with labels that are known.
pub fn rows() -> Mat<f64> {
    Mat::from_fn(11, 3, |i, d| match d {
        0 => [1000.0, 1003.3, 992.0, 1050.0, 0.0, -1e5, 1e7, 1001.0, 999.25, 1006.0, 1000.0][i],
        1 => [0.0, 0.001, -0.0017, 0.1, 30.0, -4.0, 1.0, 0.0023, 5e-5, -0.002, 0.0][i],
        _ => (i % 3) as f64,
    })
}

pub fn outputs(export: &Export<'_>, x: &Mat<f64>, name: &str) -> Vec<Vec<f64>> {
    let at = export.outputs().iter().position(|own| own.name == name).unwrap();
    export.evaluate(x.as_ref()).unwrap().swap_remove(at)
}

/// Compares means and deviations with those of predictions, relative to the deviation of the target.
pub fn assert_same(
    fitted: &Fitted,
    x: &Mat<f64>,
    [mean, sd]: [&[Vec<f64>]; 2],
    of: Of,
    tolerance: f64,
    case: &str,
) {
    let (expected, variance) = fitted.predict(x.as_ref(), of).unwrap();
    let unit = fitted.target_variance[0].sqrt().max(1e-3);
    for i in 0..x.nrows() {
        for p in 0..expected.ncols() {
            let (m, s) = (expected[(i, p)], variance[(i, p)].sqrt());
            let size = m.abs() + s;
            assert!(
                (mean[i][p] - m).abs() <= tolerance * (size + unit),
                "{case}: mean of row {i}: {} and {m}",
                mean[i][p]
            );
            assert!(
                (sd[i][p] - s).abs() <= tolerance * s,
                "{case}: deviation of row {i}: {} and {s}",
                sd[i][p]
            );
        }
    }
}

/// A model whose q is wider than the prior, with other means and widths for every function.
fn widened(mut fitted: Fitted) -> Fitted {
    for (path, param) in fitted.model.params_mut() {
        let value = |(i, v): (usize, &f64)| match path.as_str() {
            "q.mu" => (0.7 * i as f64).sin(),
            _ => v * (1.3 + 0.1 * (0.3 * i as f64).cos()),
        };
        if path == "q.mu" || path == "q.sqrt" {
            let values: Vec<f64> = param.value().iter().enumerate().map(value).collect();
            param.set(&path, &values).unwrap();
        }
    }
    let rows = InMemory::new(inputs(2), Mat::zeros(2, 1)).unwrap();
    fitted.posterior = fitted.model.posterior(&Cpu::default(), &rows).unwrap();
    fitted
}

/// All models whose formulas are compared, with what they are.
pub static ALL: LazyLock<Vec<(String, Fitted)>> = LazyLock::new(all);

fn all() -> Vec<(String, Fitted)> {
    let kernels = [
        "rbf",
        "constant",
        "matern12 + linear(active_dims=[0])",
        "matern32(ard=false) * constant + white",
        "matern52 + exponential(active_dims=[1])",
        "rational_quadratic + polynomial(degree=2, active_dims=[0])",
        "gamma_exponential(gamma=1.3)",
        "additive(base=matern52, order=2)",
        "periodic(base=matern32(active_dims=[0])) * rbf + cosine(active_dims=[1])",
        "periodic(base=matern52(active_dims=[0, 1]), form=gpflow) + rbf",
        "rbf(active_dims=[0, 1]) * coregion(output_dim=3, rank=2, active_dims=[2])",
        "rbf + rbf * categorical(similarity=0.4, active_dims=[2])",
        "changepoints(kernels=[rbf, matern32], active_dims=[0])",
    ];
    let mut all = Vec::new();
    for kernel in kernels {
        for method in ["exact", "titsias2025"] {
            all.push((format!("{kernel} by {method}"), regression(&options(kernel, method))));
        }
    }
    for (likelihood, y) in [
        ("bernoulli", 0),
        ("bernoulli(link=logit)", 0),
        ("bernoulli(floor=0.01)", 0),
        ("poisson", 1),
        ("student-t", 2),
        ("negative-binomial", 1),
        ("heteroscedastic", 2),
    ] {
        let x = inputs(70);
        let y = Mat::from_fn(70, 1, |i, _| match y {
            0 => f64::from(u8::from(target(&x, i) > 500.0)),
            1 => (target(&x, i) / 100.0).round(),
            _ => target(&x, i),
        });
        let own = FitOptions { likelihood: Some(likelihood.into()), ..options("rbf", "svgp") };
        all.push((likelihood.into(), learnt(x, y, &own)));
    }
    let (one, average) = (Hyperparameters::PlugIn, Hyperparameters::Laplace);
    let plain = TransformTargets::None;
    for (case, mean, method, hyperparameters, target_transform) in [
        ("linear mean, exact", "linear", "exact", one, plain),
        ("linear mean", "linear", "titsias2009", one, plain),
        ("svgp", "constant", "svgp", one, plain),
        ("average", "constant", "exact", average, plain),
        ("logarithms", "constant", "exact", one, TransformTargets::Log),
        ("powers", "constant", "titsias2025", one, TransformTargets::YeoJohnson),
        ("average of powers", "zero", "exact", average, TransformTargets::YeoJohnson),
    ] {
        let x = inputs(60);
        let y = Mat::from_fn(60, 2, |i, p| (target(&x, i) / 500.0).powi(1 + 9 * p as i32));
        let mean = Some(mean.into());
        let own =
            FitOptions { mean, hyperparameters, target_transform, ..options("matern52", method) };
        all.push((case.into(), learnt(x, y, &own)));
    }
    let x = inputs(70);
    let y = Mat::from_fn(70, 3, |i, p| target(&x, i) * [1.0, -0.2, 3.0][p] + 70.0 * x[(i, 1)]);
    let likelihood = Some("coregionalised(outputs=3, latents=2)".into());
    let mixed = FitOptions { likelihood, ..options("rbf", "svgp") };
    all.push(("mixed functions".into(), learnt(x, y, &mixed)));
    let mut batches = BatchOptions { size: 20, ..BatchOptions::default() };
    batches.training.epochs = Some(3);
    batches.training.natural = None;
    let diagonal =
        FitOptions { diagonal: true, batches: Some(batches), ..options("rbf + linear", "svgp") };
    all.push(("a diagonal covariance of q".into(), regression(&diagonal)));
    // two functions with variances above those of the prior
    let mut prior = FitOptions {
        likelihood: Some("heteroscedastic".into()),
        batches: None,
        ..options("rbf", "svgp")
    };
    prior.train.max_iterations = 0;
    all.push(("wide variances of two functions".into(), widened(regression(&prior))));
    // two functions with a q each
    let mut batches = BatchOptions { size: 20, ..BatchOptions::default() };
    batches.training.epochs = Some(2);
    batches.training.natural = None;
    let several = FitOptions {
        likelihood: Some("heteroscedastic".into()),
        diagonal: true,
        batches: Some(batches),
        ..options("rbf", "svgp")
    };
    all.push(("a diagonal covariance of two functions".into(), regression(&several)));
    for method in ["fitc", "svgp2025", "tsvgp", "tvgp", "lsvgp"] {
        all.push((method.into(), regression(&options("matern32", method))));
    }
    let x = Mat::from_fn(60, 2, |i, d| [(0.2 * i as f64).exp(), i as f64 % 7.0][d]);
    let y = Mat::from_fn(60, 1, |i, _| (0.15 * i as f64).sin() + 0.1 * x[(i, 1)]);
    let logarithms =
        FitOptions { log_inputs: LogInputs::Named(vec!["x0".into()]), ..options("rbf", "exact") };
    all.push(("a logarithm of an input".into(), learnt(x, y, &logarithms)));
    all
}

//! Data and shorthands.

use sparsegp::Result;
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Fitted, Hyperparameters, Of};
use sparsegp::linalg::Mat;
use sparsegp::model::Model;
use sparsegp::rng::{stream, uniform};
use sparsegp::train::{Event, Observer, TrainOptions};
use std::ops::ControlFlow;

pub const METHODS: [&str; 4] = ["exact", "titsias2009", "spherical", "titsias2025"];

/// `n` rows of `d` inputs in (−3, 3) and a smooth function of them plus noise, off zero.
pub fn arrays(n: usize, d: usize) -> (Mat<f64>, Mat<f64>) {
    let mut rng = stream(17, "rows");
    let x = Mat::from_fn(n, d, |_, _| 6.0 * uniform(&mut rng) - 3.0);
    let y = Mat::from_fn(n, 1, |i, _| {
        let t: f64 = (0..d).map(|q| x[(i, q)] / (1.0 + q as f64)).sum();
        2.5 + 1.8 * (1.3 * t).sin() + 0.6 * (uniform(&mut rng) - 0.5)
    });
    (x, y)
}

pub fn table(n: usize, d: usize) -> Dataset {
    let (x, y) = arrays(n, d);
    Dataset::from_arrays(x, y, true).expect("a table")
}

pub fn options(method: &str, iterations: usize) -> FitOptions {
    FitOptions {
        method: method.into(),
        inducing: (method != "exact" && method != "auto").then_some(12),
        kernel: "rbf".into(),
        // formulas are those of one setting
        hyperparameters: Hyperparameters::PlugIn,
        seed: 3,
        train: TrainOptions { max_iterations: iterations, ..TrainOptions::default() },
        ..FitOptions::default()
    }
}

pub fn fit(dataset: &Dataset, options: &FitOptions) -> Result<Fitted> {
    sparsegp::fit::fit(dataset, options, &Cpu::default(), &mut ())
}

/// The model ready to be trained, why its method, and warnings.
pub fn prepare(dataset: &Dataset, options: &FitOptions) -> Result<(Model, String, Vec<String>)> {
    let start = sparsegp::fit::prepare(dataset, options, &Cpu::default(), &mut ())?;
    Ok((start.model, start.reason, start.warnings))
}

/// The values of the parameter at `path`.
pub fn value(model: &Model, path: &str) -> Vec<f64> {
    let params = model.params();
    let found = params.iter().find(|(own, _)| own == path);
    found.unwrap_or_else(|| panic!("no {path}")).1.value().to_vec()
}

/// All values, to the bit.
pub fn bits(model: &Model) -> Vec<u64> {
    let params = model.params();
    params.iter().flat_map(|(_, p)| p.value().iter().map(|v| v.to_bits())).collect()
}

/// Predictions of observations at inputs in the data's units: means and variances, column by column.
pub fn predict(fitted: &Fitted, x: &Mat<f64>) -> (Vec<f64>, Vec<f64>) {
    let (mean, variance) = fitted.predict(x.as_ref(), Of::Observations).expect("as many columns");
    let flat = |a: &Mat<f64>| (0..a.ncols()).flat_map(|p| a.col_as_slice(p).to_vec()).collect();
    (flat(&mean), flat(&variance))
}

/// Ends a training after so many minibatches.
pub struct After(pub usize);

impl Observer for After {
    fn event(&mut self, event: Event<'_>) -> ControlFlow<()> {
        if let Event::Batch { .. } = event {
            self.0 -= 1;
        }
        if self.0 == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

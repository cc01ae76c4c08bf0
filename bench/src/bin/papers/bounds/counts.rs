//! Fits to counts, which Figures 3 and 5 and Table 5 share.

use sparsegp::data::Loaded;
use sparsegp::engine::Cpu;
use sparsegp::fit::{BatchOptions, Dataset, FitOptions, Fitted, Standardise, fit};
use sparsegp::train::TrainOptions;

/// The two bounds and the Gaussian process without inducing points, with their names in the paper.
pub const METHODS: [(&str, &str); 3] =
    [("svgp", "SVGP"), ("svgp-spherical", "SVGP-new"), ("tvgp", "Full GP")];

/// Trains a method on rows of counts with M inducing points by k-means: q by natural gradients and the rest by Adam on all rows
/// at once, or EM where there is a site for every row.
pub fn fitted(
    rows: &Loaded,
    method: &str,
    inducing: usize,
    iterations: usize,
    seed: u64,
) -> sparsegp::Result<Fitted> {
    let scaling = Standardise { inputs: true, targets: false, robust: false, constants: true };
    let dataset = Dataset::from_loaded(rows.clone(), scaling)?;
    let mut batches = BatchOptions { size: rows.x.nrows(), ..BatchOptions::default() };
    batches.training.epochs = Some(iterations);
    let options = FitOptions {
        likelihood: Some("poisson".into()),
        kernel: "rbf".into(),
        method: method.into(),
        inducing: Some(inducing),
        batches: Some(batches),
        seed,
        train: TrainOptions { max_iterations: iterations, ..TrainOptions::default() },
        ..FitOptions::default()
    };
    fit(&dataset, &options, &Cpu::default(), &mut ())
}

/// Returns v of a trained q.
pub fn factor(fitted: &Fitted) -> f64 {
    fitted.model.q.as_ref().map_or(1.0, |q| q.factor_of(0))
}

/// Returns the objective by iteration.
pub fn curve(fitted: &Fitted) -> Vec<(f64, f64)> {
    let trace = fitted.report.iter().flat_map(|report| &report.trace);
    trace.map(|point| (point.iteration as f64, point.objective)).collect()
}

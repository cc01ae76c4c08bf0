//! Fits to 40 of Snelson's rows, which Figure 1 and Table 3 share.

use sparsegp::data::InMemory;
use sparsegp::engine::Cpu;
use sparsegp::kernels::{Inputs, parse};
use sparsegp::likelihoods::Gaussian;
use sparsegp::linalg::{Jitter, Mat};
use sparsegp::methods;
use sparsegp::model::Model;
use sparsegp::train::{TrainOptions, TrainReport, train};
use sparsegp_bench::load;

/// Where the inducing points start: a random subset of the 40 inputs, those of the paper's run.
pub const START: [f64; 7] =
    [1.2544164, 3.4977501, 5.8270696, 0.35034783, 1.1645869, 4.2214395, 4.1059939];

/// Methods and their names in the paper.
pub const METHODS: [(&str, &str); 3] =
    [("exact", "Exact GP"), ("titsias2009", "SGPR"), ("titsias2025", "SGPR-new")];

/// Returns every fifth row.
pub fn rows() -> sparsegp::Result<InMemory> {
    let all = load("snelson", false);
    InMemory::new(
        Mat::from_fn(40, 1, |i, _| all.x[(5 * i, 0)]),
        Mat::from_fn(40, 1, |i, _| all.y[(5 * i, 0)]),
    )
}

/// Trains a method from the paper's start (σ = 0.51, σ_f = 0.69, ℓ = 1).
pub fn fitted(
    method: &str,
    data: &InMemory,
    options: &TrainOptions,
) -> sparsegp::Result<(Model, TrainReport)> {
    let entry = methods::find(method)?;
    let kernel = format!("rbf(variance={}, lengthscales=1.0)", 0.69 * 0.69);
    let mut model = Model::builder(parse(&kernel, Inputs::unnamed(1))?, entry.method)
        .likelihood(Box::new(Gaussian::new(0.51 * 0.51)))
        .jitter(Jitter::Absolute(1e-8));
    if entry.method.is_sparse() {
        model = model.inducing(Mat::from_fn(7, 1, |i, _| START[i]).as_ref());
    }
    let mut model = model.build(1, 1)?;
    let report = train(&mut model, &Cpu::default(), data, options, &mut ())?;
    Ok((model, report))
}

/// Returns a hyperparameter, which is one number.
pub fn value(model: &Model, path: &str) -> f64 {
    let params = model.params();
    params.iter().find(|(name, _)| name == path).map_or(f64::NAN, |(_, param)| param.scalar())
}

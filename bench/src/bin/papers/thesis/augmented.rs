//! Models on bundled data at fixed hyperparameters.

use sparsegp::data::{InMemory, Loaded, Mask, Scaler};
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Standardise, prepare};
use sparsegp::likelihoods;
use sparsegp::linalg::{Jitter, Mat};
use sparsegp::model::Model;
use sparsegp::rng::{permutation, stream};

/// Returns rows in memory, inputs standardised and targets too where the likelihood allows it, and a model of them that is
/// not trained; with what scaled them.
pub fn problem(
    rows: &Loaded,
    likelihood: &str,
    kernel: &str,
    method: &str,
) -> sparsegp::Result<(Model, InMemory, Scaler)> {
    let scaling = Standardise::all_that(&*likelihoods::parse(likelihood)?);
    let dataset = Dataset::from_loaded(rows.clone(), scaling)?;
    let options = FitOptions {
        kernel: kernel.into(),
        likelihood: Some(likelihood.into()),
        mean: Some("zero".into()),
        method: method.into(),
        pilot: 0,
        jitter: Jitter::Relative(1e-4),
        ..FitOptions::default()
    };
    let model = prepare(&dataset, &options, &Cpu::default(), &mut ())?.model;
    let (n, d) = (dataset.source.rows(), dataset.source.inputs());
    let (mut x, mut y) = (Mat::zeros(n, d), Mat::zeros(n, 1));
    dataset.source.for_each_chunk(usize::MAX, &mut |chunk| {
        let count = chunk.x.nrows();
        x.as_mut().subrows_mut(chunk.start, count).copy_from(chunk.x);
        y.as_mut().subrows_mut(chunk.start, count).copy_from(chunk.y);
        Ok(())
    })?;
    Ok((model, InMemory::new(x, y)?, dataset.scaler))
}

/// Returns the squared exponential kernel with these values.
pub fn kernel(lengthscale: f64, variance: f64) -> String {
    format!("rbf(ard=false, lengthscales={lengthscale}, variance={variance})")
}

/// Returns training and test rows of every fold.
pub fn folds(all: &Loaded, count: usize, seed: u64) -> sparsegp::Result<Vec<(Loaded, Loaded)>> {
    let n = all.x.nrows();
    let mut fold = vec![0; n];
    let order = permutation(&mut stream(seed, "folds"), n, n);
    order.iter().enumerate().for_each(|(at, row)| fold[*row] = at % count);
    let part = |k| {
        let mask = Mask::new("fold", fold.iter().map(|f| *f == k));
        Ok((all.rows_where(&mask, false)?, all.rows_where(&mask, true)?))
    };
    (0..count).map(part).collect()
}

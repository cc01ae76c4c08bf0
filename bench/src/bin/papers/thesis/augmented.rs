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
    folds_of(all, usize::MAX, count, seed)
}

/// Returns training and test rows of every fold of at most so many rows, which are drawn at random.
pub fn folds_of(
    all: &Loaded,
    most: usize,
    count: usize,
    seed: u64,
) -> sparsegp::Result<Vec<(Loaded, Loaded)>> {
    let n = all.x.nrows();
    let mut fold = vec![None; n];
    let order = permutation(&mut stream(seed, "folds"), n, n);
    order.iter().take(most).enumerate().for_each(|(at, row)| fold[*row] = Some(at % count));
    let part = |k| {
        let training = Mask::new("fold", fold.iter().map(|f| f.is_some_and(|f| f != k)));
        let test = Mask::new("fold", fold.iter().map(|f| *f == Some(k)));
        Ok((all.rows_where(&training, true)?, all.rows_where(&test, true)?))
    };
    (0..count).map(part).collect()
}

/// Returns the rows with one of two classes for a target: whether it is above its median.
pub fn above_the_median(mut all: Loaded) -> Loaded {
    let mut sorted = all.y.col_as_slice(0).to_vec();
    sorted.sort_by(f64::total_cmp);
    let median = sorted[sorted.len() / 2];
    all.y = Mat::from_fn(all.y.nrows(), 1, |i, _| f64::from(u8::from(all.y[(i, 0)] > median)));
    all
}

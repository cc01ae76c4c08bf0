//! Posteriors that keep their rows: these are written, and what predicts from them is found again.

use super::foreign;
use super::read::Reader;
use crate::engine::Cpu;
use crate::error::Result;
use crate::linalg::{MatRef, column};
use crate::model::{ConditioningRows, Model, Posterior};

/// Tensors of the inputs, of the targets less the mean function, and of the variances of the noise.
const INPUTS: &str = "posterior.inputs";
pub(super) const TARGETS: &str = "posterior.targets";
const NOISE: &str = "posterior.noise";

/// Calls `put` with the name of every tensor and what it holds.
pub(super) fn write(rows: &ConditioningRows, put: &mut dyn FnMut(&str, MatRef<'_, f64>)) {
    put(INPUTS, rows.x.as_ref());
    put(TARGETS, rows.y.as_ref());
    put(NOISE, MatRef::from_column_major_slice(&rows.noise, rows.noise.len(), 1));
}

/// The posterior from the rows that it keeps.
pub(super) fn read(
    model: &Model,
    tensors: &Reader<'_>,
    inputs: usize,
    outputs: usize,
) -> Result<Posterior> {
    let matrix = |name: &str| tensors.matrix(name);
    let (x, y, noise) = (matrix(INPUTS)?, matrix(TARGETS)?, matrix(NOISE)?);
    let rows = x.nrows();
    let fits = rows > 0
        && (x.ncols(), y.ncols(), noise.ncols()) == (inputs, outputs, 1)
        && (y.nrows(), noise.nrows()) == (rows, rows)
        && column(noise.as_ref(), 0).iter().all(|v| *v >= 0.0);
    if !fits {
        return Err(foreign("tensors of the posterior do not fit together"));
    }
    let rows = ConditioningRows { x, y, noise: column(noise.as_ref(), 0).to_vec() };
    model.method.conditioned(model, &Cpu::default(), rows)
}

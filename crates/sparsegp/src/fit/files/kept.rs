//! Posteriors that keep their rows: these are written, and what predicts from them is found again.

use super::foreign;
use super::read::Reader;
use crate::data::InMemory;
use crate::engine::Cpu;
use crate::error::Result;
use crate::linalg::{MatRef, column};
use crate::model::{Model, Posterior};

/// Tensors of the rows; the last two where rows bring them.
const INPUTS: &str = "posterior.inputs";
pub(super) const TARGETS: &str = "posterior.targets";
const WEIGHTS: &str = "posterior.weights";
const EXTRA: &str = "posterior.extra";

/// Calls `put` with the name of every tensor and what it holds.
pub(super) fn write(rows: &InMemory, put: &mut dyn FnMut(&str, MatRef<'_, f64>)) {
    put(INPUTS, rows.x.as_ref());
    put(TARGETS, rows.y.as_ref());
    for (name, own) in [(WEIGHTS, &rows.weights), (EXTRA, &rows.extra)] {
        if !own.is_empty() {
            put(name, MatRef::from_column_major_slice(own, own.len(), 1));
        }
    }
}

/// The posterior from the rows that it keeps.
pub(super) fn read(
    model: &Model,
    tensors: &Reader<'_>,
    inputs: usize,
    outputs: usize,
) -> Result<Posterior> {
    let (x, y) = (tensors.matrix(INPUTS)?, tensors.matrix(TARGETS)?);
    let rows = x.nrows();
    let fits = rows > 0 && (x.ncols(), y.ncols(), y.nrows()) == (inputs, outputs, rows);
    let numbers = |name: &str, least: f64| {
        if !tensors.has(name) {
            return Ok(Vec::new());
        }
        let own = tensors.matrix(name)?;
        let own = if own.ncols() == 1 { column(own.as_ref(), 0).to_vec() } else { Vec::new() };
        match fits && own.len() == rows && own.iter().all(|v| *v >= least) {
            true => Ok(own),
            false => Err(foreign(format!("tensor `{name}` does not fit the rows"))),
        }
    };
    let (weights, extra) = (numbers(WEIGHTS, 0.0)?, numbers(EXTRA, f64::NEG_INFINITY)?);
    if !fits {
        return Err(foreign("tensors of the posterior do not fit together"));
    }
    model.method.conditioned(model, &Cpu::default(), InMemory { x, y, weights, extra })
}

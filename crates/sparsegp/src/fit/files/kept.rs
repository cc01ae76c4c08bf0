//! Posteriors that keep their rows: these are written, and what predicts from them is found again. Of a series that has let rows go
//! the targets have another name: programs that do not know what such rows say would predict from
//! only the rest.

use super::foreign;
use super::read::Reader;
use crate::data::InMemory;
use crate::engine::Cpu;
use crate::error::Result;
use crate::linalg::{Mat, MatRef, column};
use crate::markov::{Past, Start};
use crate::model::{Model, Posterior};

/// Tensors of the rows; the last two where rows bring them.
const INPUTS: &str = "posterior.inputs";
pub(super) const TARGETS: &str = "posterior.targets";
const WEIGHTS: &str = "posterior.weights";
const EXTRA: &str = "posterior.extra";
/// Targets of the latest rows, after others that have left: their last place, their number and what they add to the objective; and
/// of each state the means (S×C) beside the covariance (S×S).
pub(super) const LATEST: &str = "posterior.latest";
const PAST: &str = "past.numbers";
fn state(l: usize) -> String {
    format!("past.states[{l}]")
}

/// Calls `put` with the name of every tensor and what it holds.
pub(super) fn write(
    rows: &InMemory,
    past: Option<&Past>,
    put: &mut dyn FnMut(&str, MatRef<'_, f64>),
) {
    put(INPUTS, rows.x.as_ref());
    put(if past.is_some() { LATEST } else { TARGETS }, rows.y.as_ref());
    if let Some(past) = past {
        let numbers = [past.t(), past.rows as f64, past.objective];
        put(PAST, MatRef::from_column_major_slice(&numbers, 1, 3));
        for (l, Start { mean, covariance, .. }) in past.starts.iter().enumerate() {
            let columns = mean.ncols();
            let both =
                Mat::from_fn(mean.nrows(), columns + mean.nrows(), |i, j| match j < columns {
                    true => mean[(i, j)],
                    false => covariance[(i, j - columns)],
                });
            put(&state(l), both.as_ref());
        }
    }
    for (name, own) in [(WEIGHTS, &rows.weights), (EXTRA, &rows.extra)] {
        if !own.is_empty() {
            put(name, MatRef::from_column_major_slice(own, own.len(), 1));
        }
    }
}

/// Reads what rows say that have left; none where none have.
fn read_past(tensors: &Reader<'_>) -> Result<Option<Past>> {
    if !tensors.has(LATEST) {
        return Ok(None);
    }
    let numbers = tensors.matrix(PAST)?;
    let rows = match (numbers.nrows(), numbers.ncols()) {
        (1, 3) => numbers[(0, 1)],
        _ => 0.0,
    };
    if !(1.0..=9e15).contains(&rows) || rows.fract() != 0.0 {
        return Err(foreign(format!("tensor `{PAST}` does not say which rows have left")));
    }
    let mut starts = Vec::new();
    while tensors.has(&state(starts.len())) {
        let both = tensors.matrix(&state(starts.len()))?;
        let n = both.nrows();
        let Some(columns) = both.ncols().checked_sub(n).filter(|columns| *columns > 0) else {
            return Err(foreign(format!("tensor `{}` is not a state", state(starts.len()))));
        };
        starts.push(Start {
            t: numbers[(0, 0)],
            mean: both.subcols(0, columns).to_owned(),
            covariance: both.subcols(columns, n).to_owned(),
        });
    }
    Ok(Some(Past { rows: rows as usize, objective: numbers[(0, 2)], starts }))
}

/// Reads the posterior from the rows that it keeps.
pub(super) fn read(
    model: &Model,
    tensors: &Reader<'_>,
    inputs: usize,
    outputs: usize,
) -> Result<Posterior> {
    let past = read_past(tensors)?;
    let targets = if past.is_some() { LATEST } else { TARGETS };
    let (x, y) = (tensors.matrix(INPUTS)?, tensors.matrix(targets)?);
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
    let rows = InMemory { x, y, weights, extra };
    match past {
        Some(past) => model.method.conditioned_after(model, &Cpu::default(), rows, past),
        None => model.method.conditioned(model, &Cpu::default(), rows),
    }
}

//! Rows for a model by hand: of its columns, finite, with targets that its likelihood knows.

use crate::arrays::{owned, vector};
use crate::errors::exception;
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use sparsegp::Error;
use sparsegp::data::{InMemory, Sample, Source};
use sparsegp::likelihoods::Target;
use sparsegp::linalg::MatRef;

/// Numbers of input and target columns.
#[derive(Clone, Copy)]
pub struct Columns {
    /// D.
    pub inputs: usize,
    /// P.
    pub outputs: usize,
}

/// Copies of arrays, checked; their sums are scaled to the `population`, if that is more than they are.
pub fn rows(
    (model, columns): (&sparsegp::model::Model, Columns),
    x: &PyReadonlyArray2<'_, f64>,
    y: &PyReadonlyArray2<'_, f64>,
    weights: Option<&PyReadonlyArray1<'_, f64>>,
    extra: Option<&PyReadonlyArray1<'_, f64>>,
    population: Option<usize>,
) -> PyResult<Sample> {
    let mut rows = InMemory::new(owned(x), owned(y)).map_err(exception)?;
    let n = rows.rows();
    (rows.weights, rows.extra) = (vector(weights), vector(extra));
    for (what, found) in [("weights", rows.weights.len()), ("further numbers", rows.extra.len())] {
        if found != 0 && found != n {
            return Err(exception(Error::Shape {
                what: what.into(),
                expected: format!("{n} rows"),
                found: format!("{found} rows"),
            }));
        }
    }
    check(model, columns, &rows)?;
    if population == Some(0) {
        return Err(exception(Error::Invalid("num_data is 0; it must be at least 1".into())));
    }
    let population = population.unwrap_or(rows.rows());
    Ok(Sample { rows: Box::new(rows), population })
}

/// Refuses what the library takes for granted.
fn check(model: &sparsegp::model::Model, columns: Columns, rows: &InMemory) -> PyResult<()> {
    let invalid = |text: String| Err(exception(Error::Invalid(text)));
    for (name, expected, found) in
        [("X", columns.inputs, rows.x.ncols()), ("Y", columns.outputs, rows.y.ncols())]
    {
        if expected != found {
            return Err(exception(Error::Shape {
                what: name.into(),
                expected: format!("{expected} columns"),
                found: format!("{found} columns"),
            }));
        }
    }
    for q in 0..rows.x.ncols() {
        if let Some(i) = rows.x.col(q).iter().position(|v| !v.is_finite()) {
            return invalid(format!("X[{i}, {q}] is {}: inputs must be finite", rows.x[(i, q)]));
        }
    }
    if let Some(i) = rows.weights.iter().position(|w| !(*w >= 0.0 && w.is_finite())) {
        return invalid(format!("weights[{i}] is {}; it must be a number from 0", rows.weights[i]));
    }
    check_targets(model, rows)
}

/// Refuses targets and further numbers that the likelihood cannot have.
pub fn check_targets(model: &sparsegp::model::Model, rows: &InMemory) -> PyResult<()> {
    let invalid = |text: String| Err(exception(Error::Invalid(text)));
    let own = model.likelihood.extra();
    let name = model.likelihood.name();
    match own {
        None if !rows.extra.is_empty() => {
            return invalid(format!("the likelihood `{name}` takes no further number of a row"));
        }
        Some(extra) if extra.default.is_none() && rows.extra.is_empty() => {
            return invalid(format!(
                "the likelihood `{name}` needs the {} of every row",
                extra.name
            ));
        }
        _ => {}
    }
    let default = own.and_then(|e| e.default).unwrap_or(1.0);
    for p in 0..rows.y.ncols() {
        for (i, y) in rows.y.col(p).iter().enumerate() {
            if y.is_nan() && model.method.has_q() {
                continue; // a missing target
            }
            let target = Target { y: *y, extra: rows.extra.get(i).copied().unwrap_or(default) };
            if let Err(reason) = model.likelihood.check(target) {
                return invalid(format!("Y[{i}, {p}]: {y} {reason}"));
            }
        }
    }
    Ok(())
}

/// Refuses inputs that are not finite.
pub fn finite(x: MatRef<'_, f64>) -> PyResult<()> {
    for q in 0..x.ncols() {
        if let Some(i) = x.col(q).iter().position(|v| !v.is_finite()) {
            let text = format!("Xnew[{i}, {q}] is {}: inputs must be finite", x[(i, q)]);
            return Err(exception(Error::Invalid(text)));
        }
    }
    Ok(())
}

//! The inputs that cells of a frame become, as a model reads them.

use crate::errors::in_python;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sparsegp::data::{InputColumn, Unknown};
use sparsegp::fit::Fitted;
use sparsegp::linalg::MatRef;

/// Returns the inputs that cells become, row by row.
pub fn numbers(column: &InputColumn, cells: &[String]) -> PyResult<Vec<Vec<f64>>> {
    let numbers = |(row, cell): (usize, &String)| {
        column.numbers(cell).map_err(|reason| {
            let why = in_python(&reason);
            PyValueError::new_err(format!("row {row}, column `{}`: {why}", column.name))
        })
    };
    cells.iter().enumerate().map(numbers).collect()
}

/// Returns the same for a column of a model by name, to learn from, or, where `new` is given, to
/// predict at: with categories that no training row had or without them.
pub fn encoded(
    fitted: &Fitted,
    column: &str,
    cells: &[String],
    new: Option<bool>,
) -> PyResult<Vec<Vec<f64>>> {
    let at = fitted.columns.iter().position(|own| own.name == column);
    let at = at.ok_or_else(|| PyValueError::new_err(format!("no column `{column}`")))?;
    match new {
        None => numbers(&fitted.columns[at], cells),
        Some(false) => numbers(&fitted.column_of_new(at), cells),
        Some(true) => numbers(&fitted.column_of_new(at).with_unknown(Unknown::Ignore), cells),
    }
}

/// Returns whether there may be something to say of rows.
pub fn may_remark(fitted: &Fitted) -> bool {
    let encodings = || fitted.columns.iter().map(|own| &own.encoding);
    encodings().any(|own| own.holidays().is_some() || own.categories().is_some())
}

/// Returns what to say of rows after the last holiday that a model knows, and of categories that no
/// training row had.
pub fn remarks(fitted: &Fitted, x: MatRef<'_, f64>) -> Vec<String> {
    let mut cells = Vec::new();
    fitted.count_unknown(x, &mut cells);
    fitted.calendar_remark(x).into_iter().chain(fitted.unknown_remark(&cells)).collect()
}

//! Rows of a matrix in parts, on all threads.

use super::{Mat, MatRef};
use crate::error::Result;
use rayon::prelude::*;

/// Rows that are predicted for at once.
const PART: usize = 256;

/// Calls `predict` with parts of the rows of `x` (of any layout) and their first index, on all threads. The
/// parts are column-major, and of a
/// fixed size, so that nothing depends on the number of threads.
///
/// # Errors
/// Those of `predict`.
pub fn in_parts<T: Send>(
    x: MatRef<'_, f64>,
    predict: impl Fn(usize, MatRef<'_, f64>) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let n = x.nrows();
    (0..n.div_ceil(PART))
        .into_par_iter()
        .map(|part| {
            let rows = x.subrows(part * PART, PART.min(n - part * PART));
            match rows.row_stride() {
                1 => predict(part * PART, rows),
                // kernels want the rows of a column side by side
                _ => predict(part * PART, rows.to_owned().as_ref()),
            }
        })
        .collect()
}

/// Returns what [`in_parts`] gave for so many rows, one part under the other.
pub fn stacked(parts: &[Mat<f64>], rows: usize, columns: usize) -> Mat<f64> {
    let mut all = Mat::zeros(rows, columns);
    for (part, values) in parts.iter().enumerate() {
        all.as_mut().subrows_mut(part * PART, values.nrows()).copy_from(values);
    }
    all
}

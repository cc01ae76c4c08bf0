//! Work in parts, on all threads of the current pool.
//!
//! What divides the work among threads is some thousand instructions for every closure that it is compiled for, a
//! tenth of the crate. Here it is compiled once, and closures are called through a pointer.

use super::{Mat, MatRef};
use crate::error::Result;
use rayon::prelude::*;
use std::sync::Mutex;

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
    let part = |part: usize| {
        let rows = x.subrows(part * PART, PART.min(n - part * PART));
        match rows.row_stride() {
            1 => predict(part * PART, rows),
            // kernels want the rows of a column side by side
            _ => predict(part * PART, rows.to_owned().as_ref()),
        }
    };
    each(n.div_ceil(PART), part).into_iter().collect()
}

/// Returns what `one` gives for 0, 1, … up to `count` − 1, each by itself.
pub fn each<T: Send>(count: usize, one: impl Fn(usize) -> T + Sync) -> Vec<T> {
    fn run(count: usize, work: &(dyn Fn(usize) + Sync)) {
        (0..count).into_par_iter().for_each(work);
    }
    let results: Vec<Mutex<Option<T>>> = (0..count).map(|_| Mutex::new(None)).collect();
    run(count, &|at| {
        let result = one(at);
        *results[at].lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(result);
    });
    let all = results.into_iter().map(|own| own.into_inner());
    // a panic in `one` does not come here
    all.filter_map(|own| own.unwrap_or_else(|poisoned| poisoned.into_inner())).collect()
}

/// Runs both, the second on another thread if one is idle.
pub fn join(first: impl FnOnce() + Send, second: impl FnOnce() + Send) {
    type Work<'a> = &'a mut (dyn FnMut() + Send);
    fn run(first: Work<'_>, second: Work<'_>) {
        rayon::join(first, second);
    }
    let (mut first, mut second) = (Some(first), Some(second));
    run(
        &mut || {
            if let Some(first) = first.take() {
                first();
            }
        },
        &mut || {
            if let Some(second) = second.take() {
                second();
            }
        },
    );
}

/// Returns what [`in_parts`] gave for so many rows, one part under the other.
pub fn stacked(parts: &[Mat<f64>], rows: usize, columns: usize) -> Mat<f64> {
    let mut all = Mat::zeros(rows, columns);
    for (part, values) in parts.iter().enumerate() {
        all.as_mut().subrows_mut(part * PART, values.nrows()).copy_from(values);
    }
    all
}

//! Greedy conditional variance.

use super::{Selected, check, gather};
use crate::error::{Error, Result};
use faer::MatRef;
use rayon::prelude::*;

/// Share of the largest prior variance below which conditional variances count as zero.
pub const DEFAULT_TOLERANCE: f64 = 1e-10;

/// Rows per block of work.
const BLOCK: usize = 1024;

/// Up to `m` rows of `x` (N×D), each the one whose function value is most uncertain given the rows
/// before it: a partial Cholesky factorisation of Kff with pivoting (Burt, Rasmussen & van der Wilk
/// 2020, Alg. 1). Of equal rows the first is taken.
///
/// `diag` has the N prior variances, `column(i)` gives the N values k(X, xᵢ). Ends early, with a
/// note, when no conditional variance exceeds `tolerance` times the largest prior variance. The
/// trace that is left, tr(Kff − Qff), is reported. O(N M²) time and O(N M) memory, on the current
/// rayon pool; the result does not depend on its size.
///
/// # Errors
/// [`Error::Invalid`] without rows, columns or points, for a negative variance, if all variances
/// are zero, or for a tolerance that is not a number ≥ 0; [`Error::Shape`] for a wrong number of
/// variances or covariances; [`Error::NonFinite`] for a NaN or an infinity; errors of `column`.
pub fn greedy_variance(
    x: MatRef<'_, f64>,
    m: usize,
    diag: &[f64],
    column: &mut dyn FnMut(usize) -> Result<Vec<f64>>,
    tolerance: f64,
) -> Result<Selected> {
    check(x, m, "inputs")?;
    if !(tolerance >= 0.0 && tolerance.is_finite()) {
        return Err(Error::Invalid(format!(
            "greedy-variance: the tolerance must be a number ≥ 0, found {tolerance}"
        )));
    }
    let n = x.nrows();
    check_length(diag, n, "prior variances")?;
    if let Some(row) = diag.iter().position(|&variance| variance < 0.0) {
        return Err(Error::Invalid(format!(
            "greedy-variance: the prior variance of row {} is negative ({})",
            row + 1,
            diag[row]
        )));
    }
    let largest = diag[argmax(diag)];
    if largest == 0.0 {
        return Err(Error::Invalid(
            "greedy-variance: the prior variance is zero at every row".into(),
        ));
    }
    let mut left = diag.to_vec();
    let mut factor: Vec<Vec<f64>> = Vec::new();
    let mut indices = Vec::new();
    // Rounding leaves about this much of a variance that is zero.
    let threshold = largest * tolerance.max(8.0 * f64::EPSILON);
    while indices.len() < m {
        let pivot = argmax(&left);
        if left[pivot] <= threshold {
            break;
        }
        let mut next = column(pivot)?;
        check_length(&next, n, "covariances with one row")?;
        let root = left[pivot].sqrt();
        let weights: Vec<f64> = factor.iter().map(|column| column[pivot]).collect();
        next.par_chunks_mut(BLOCK).zip(left.par_chunks_mut(BLOCK)).enumerate().for_each(
            |(block, (next, left))| {
                for (column, weight) in factor.iter().zip(&weights) {
                    let column = &column[block * BLOCK..][..next.len()];
                    next.iter_mut().zip(column).for_each(|(next, value)| *next -= weight * value);
                }
                for (next, left) in next.iter_mut().zip(left) {
                    *next /= root;
                    *left -= *next * *next;
                }
            },
        );
        left[pivot] = 0.0;
        factor.push(next);
        indices.push(pivot);
    }
    let note = (indices.len() < m).then(|| {
        format!(
            "{m} inducing points were asked for, but {} explain the prior variance of all {n} rows",
            indices.len()
        )
    });
    // Negative remainders are rounding errors around zero.
    let trace_left = Some(left.iter().map(|variance| variance.max(0.0)).sum());
    Ok(Selected { points: gather(x, &indices), requested: m, note, trace_left })
}

fn check_length(values: &[f64], n: usize, what: &str) -> Result<()> {
    if values.len() != n {
        return Err(Error::Shape {
            what: what.into(),
            expected: format!("{n} values, one per row"),
            found: format!("{} values", values.len()),
        });
    }
    match values.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(row) => {
            Err(Error::NonFinite { what: format!("{what}, row {},", row + 1), value: values[row] })
        }
    }
}

/// Index of the largest value, the first of equals.
fn argmax(values: &[f64]) -> usize {
    values
        .iter()
        .enumerate()
        .fold(0, |best, (i, value)| if *value > values[best] { i } else { best })
}

#[cfg(test)]
#[path = "greedy_variance_tests.rs"]
mod tests;

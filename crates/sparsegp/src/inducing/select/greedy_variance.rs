//! Greedy conditional variance.

use super::pivoted::{Pivoted, check_length, check_variances};
use super::{Selected, check, gather};
use crate::error::{Error, Result};
use faer::MatRef;

/// Share of the largest prior variance below which conditional variances count as zero.
pub const DEFAULT_TOLERANCE: f64 = 1e-10;

/// Selects up to `m` rows of `x` (N×D), each the one whose function value is most uncertain given
/// the rows before it: a partial Cholesky factorisation of Kff with pivoting (Burt, Rasmussen & van
/// der Wilk 2020, Alg. 1). Of equal rows the first is taken.
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
    let largest = check_variances(diag, n, "greedy-variance")?;
    let mut indices = Vec::new();
    let left = pivots(m, diag, column, largest * tolerance, &mut |pivot, _| {
        indices.push(pivot);
        true
    })?;
    let note = (indices.len() < m).then(|| {
        format!(
            "{m} inducing points were asked for, but {} explain the prior variance of all {n} rows",
            indices.len()
        )
    });
    Ok(Selected { points: gather(x, &indices), requested: m, note, trace_left: Some(left.trace()) })
}

/// Returns tr(Kff − Qff) with 0, 1, 2, … of the N rows of [`greedy_variance`] as inducing points:
/// how fast the prior variance can be explained. Ends where it is at most `enough`, after `most`
/// rows, or where nothing is left. Arguments, cost and errors as for that.
///
/// # Errors
/// As for [`greedy_variance`].
pub fn greedy_traces(
    most: usize,
    diag: &[f64],
    column: &mut dyn FnMut(usize) -> Result<Vec<f64>>,
    enough: f64,
) -> Result<Vec<f64>> {
    let largest = check_variances(diag, diag.len(), "greedy-variance")?;
    let mut traces = vec![diag.iter().sum()];
    if traces[0] > enough {
        let threshold = largest * DEFAULT_TOLERANCE;
        pivots(most.min(diag.len()), diag, column, threshold, &mut |_, trace| {
            traces.push(trace());
            traces[traces.len() - 1] > enough
        })?;
    }
    Ok(traces)
}

/// Chooses rows until `each`, which gets the row and can ask for the trace, has enough.
fn pivots(
    m: usize,
    diag: &[f64],
    column: &mut dyn FnMut(usize) -> Result<Vec<f64>>,
    threshold: f64,
    each: &mut dyn FnMut(usize, &dyn Fn() -> f64) -> bool,
) -> Result<Pivoted> {
    let n = diag.len();
    let mut chosen = Pivoted::new(diag, m.min(n));
    // Rounding leaves about this much of a variance that is zero.
    let threshold = threshold.max(diag[argmax(diag)] * 8.0 * f64::EPSILON);
    for _ in 0..m.min(n) {
        let pivot = argmax(&chosen.left);
        if chosen.left[pivot] <= threshold {
            break;
        }
        let covariances = column(pivot)?;
        check_length(&covariances, n, "covariances with one row")?;
        chosen.choose(pivot, &covariances);
        if !each(pivot, &|| chosen.trace()) {
            break;
        }
    }
    Ok(chosen)
}

/// Returns the index of the largest value, the first of equals.
fn argmax(values: &[f64]) -> usize {
    values
        .iter()
        .enumerate()
        .fold(0, |best, (i, value)| if *value > values[best] { i } else { best })
}

#[cfg(test)]
#[path = "greedy_variance_tests.rs"]
mod tests;

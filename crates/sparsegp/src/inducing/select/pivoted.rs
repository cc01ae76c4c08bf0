//! Partial Cholesky factorisation of Kff by rows that are chosen one after the other.

use crate::error::{Error, Result};
use crate::linalg::{Mat, MatRef};
use rayon::prelude::*;

/// Rows per block of work.
const BLOCK: usize = 1024;

/// Φᵀ of the rows chosen so far, where Kuu = LLᵀ, Φ = L⁻¹Kuf: a column for each of them, and what they leave
/// unexplained of every row.
pub(super) struct Pivoted {
    /// kᵢᵢ − qᵢᵢ, N; exactly 0 at the rows chosen.
    pub left: Vec<f64>,
    factor: Mat<f64>,
    rank: usize,
}

impl Pivoted {
    /// Creates the factorisation of no rows yet; there is room for `most`.
    pub fn new(diag: &[f64], most: usize) -> Self {
        Self { left: diag.to_vec(), factor: Mat::zeros(diag.len(), most), rank: 0 }
    }

    /// Returns Φᵀ, N×(rows chosen).
    pub fn features(&self) -> MatRef<'_, f64> {
        self.factor.as_ref().subcols(0, self.rank)
    }

    /// Chooses a row, of which `covariances` are k(X, x), N.
    pub fn choose(&mut self, pivot: usize, covariances: &[f64]) {
        let root = self.left[pivot].sqrt();
        let (before, mut after) = self.factor.as_mut().split_at_col_mut(self.rank);
        let before: Vec<&[f64]> =
            (0..self.rank).map(|j| crate::linalg::column(before.as_ref(), j)).collect();
        let next = crate::linalg::column_mut(after.as_mut().subcols_mut(0, 1), 0);
        next.copy_from_slice(covariances);
        let weights: Vec<f64> = before.iter().map(|column| column[pivot]).collect();
        next.par_chunks_mut(BLOCK).zip(self.left.par_chunks_mut(BLOCK)).enumerate().for_each(
            |(block, (next, left))| {
                for (column, weight) in before.iter().zip(&weights) {
                    let column = &column[block * BLOCK..][..next.len()];
                    next.iter_mut().zip(column).for_each(|(next, value)| *next -= weight * value);
                }
                for (next, left) in next.iter_mut().zip(left) {
                    *next /= root;
                    *left -= *next * *next;
                }
            },
        );
        self.left[pivot] = 0.0;
        self.rank += 1;
    }

    /// Chooses a row of which the column of Φᵀ is known.
    pub fn choose_features(&mut self, pivot: usize, features: &[f64]) {
        self.factor.col_as_slice_mut(self.rank).copy_from_slice(features);
        self.left.iter_mut().zip(features).for_each(|(left, value)| *left -= value * value);
        self.left[pivot] = 0.0;
        self.rank += 1;
    }

    /// Returns tr(Kff − Qff); negative remainders are rounding errors around zero.
    pub fn trace(&self) -> f64 {
        self.left.iter().map(|variance| variance.max(0.0)).sum()
    }
}

/// Refuses numbers of the rows that are too few or too many, or not finite.
pub(super) fn check_length(values: &[f64], n: usize, what: &str) -> Result<()> {
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

/// Refuses prior variances that are none; gives the largest.
pub(super) fn check_variances(diag: &[f64], n: usize, selector: &str) -> Result<f64> {
    check_length(diag, n, "prior variances")?;
    if let Some(row) = diag.iter().position(|&variance| variance < 0.0) {
        return Err(Error::Invalid(format!(
            "{selector}: the prior variance of row {} is negative ({})",
            row + 1,
            diag[row]
        )));
    }
    let largest = diag.iter().fold(0.0_f64, |largest, v| largest.max(*v));
    if largest == 0.0 {
        return Err(Error::Invalid(format!("{selector}: the prior variance is zero at every row")));
    }
    Ok(largest)
}

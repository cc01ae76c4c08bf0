//! The free energy of particles, also where their covariance is singular.
//!
//! With N ≤ D particles C has at most N − 1 eigenvalues above 0; the others count as 1 (Galy-Fajou, Perrone & Opper
//! 2021, eq. 14):
//!
//! ```text
//! F̃ = (1/N) Σ φ(xᵢ) − ½ Σ_{λᵢ>0} log λᵢ      Σ log λᵢ = log|R|,   R = (ZᵀZ + 11ᵀ)/N
//! ```
//! 11ᵀ/N has eigenvalue 1 on the constant vector, on which ZᵀZ is 0. For N > D + 1 R is singular, and log|C| is
//! taken. F̃ never rises along the flow, but bounds no evidence, and values for different N do not compare.

use super::blocks::Blocks;
use super::target::check_some;
use crate::error::{Error, Result};
use crate::linalg::{Accum, Cholesky, Jitter, Mat, MatRef, column, gemm, par_for};
use std::f64::consts::TAU;

/// Returns R = (ZᵀZ + c 11ᵀ)/N, N×N, of deviations Z (D×N); with c = 1 it is that of the formula, and any other c
/// adds log c to log|R|.
pub fn regularised_gram(z: MatRef<'_, f64>, c: f64) -> Mat<f64> {
    let n = z.ncols();
    let mut r = Mat::full(n, n, c / n as f64);
    gemm(r.as_mut(), Accum::Add, z.transpose(), z, 1.0 / n as f64, par_for(n));
    r
}

/// Returns the rows of a block, as a separate matrix.
pub(super) fn rows_of(a: MatRef<'_, f64>, rows: &[usize]) -> Mat<f64> {
    Mat::from_fn(rows.len(), a.ncols(), |i, n| a[(rows[i], n)])
}

/// Calls `work` with the rows of every block, one block after the other.
pub(super) fn by_blocks<T>(
    a: MatRef<'_, f64>,
    blocks: &Blocks,
    mut work: impl FnMut(MatRef<'_, f64>) -> Result<T>,
) -> Result<Vec<T>> {
    match blocks {
        Blocks::Whole => Ok(vec![work(a)?]),
        blocks => {
            let all = blocks.indices(a.nrows());
            all.iter().map(|rows| work(rows_of(a, rows).as_ref())).collect()
        }
    }
}

/// Returns the log-determinant of the covariance in every block, of deviations Z (D×N): over the eigenvalues above 0.
///
/// # Errors
/// [`Error::NotPositiveDefinite`] for particles that are affinely dependent, [`Error::NonFinite`], and
/// [`Error::Invalid`] for no particles and for blocks that do not fit.
pub fn log_determinants(z: MatRef<'_, f64>, blocks: &Blocks) -> Result<Vec<f64>> {
    check_some("particles", z.ncols())?;
    blocks.check(z.nrows())?;
    if *blocks == Blocks::Diagonal {
        return log_variances(z);
    }
    by_blocks(z, blocks, |z| Ok(factored(z)?.1))
}

/// Returns the same coordinate by coordinate: there is one eigenvalue.
fn log_variances(z: MatRef<'_, f64>) -> Result<Vec<f64>> {
    let mut sums = vec![0.0; z.nrows()];
    for n in 0..z.ncols() {
        sums.iter_mut().zip(column(z, n)).for_each(|(s, z)| *s += z * z);
    }
    let log = |(pivot, sum): (usize, f64)| {
        let variance = sum / z.ncols() as f64;
        if variance > 0.0 && variance.is_finite() {
            return Ok(variance.ln());
        }
        if variance == 0.0 {
            let size = z.nrows();
            let (matrix, jitter, hint) = ("C", 0.0, DEPENDENT);
            return Err(Error::NotPositiveDefinite { matrix, size, pivot, jitter, hint });
        }
        Err(Error::NonFinite {
            what: format!("the variance of coordinate {pivot}"),
            value: variance,
        })
    };
    sums.into_iter().enumerate().map(log).collect()
}

/// Returns the factor of R or C of one block, and the log-determinant.
fn factored(z: MatRef<'_, f64>) -> Result<(Cholesky, f64)> {
    let (d, n) = (z.nrows(), z.ncols());
    let dependent = |e: Error| e.with_hint(DEPENDENT);
    if n > d + 1 {
        let mut c = Mat::zeros(d, d);
        gemm(c.as_mut(), Accum::Replace, z, z.transpose(), 1.0 / n as f64, par_for(d));
        let factor = Cholesky::new(c.as_ref(), Jitter::Absolute(0.0), "C").map_err(dependent)?;
        let log = factor.log_det();
        return Ok((factor, log));
    }
    // the constant vector gets the mean of the other eigenvalues, so that a small spread keeps its digits
    let square: f64 = (0..n).flat_map(|n| column(z, n)).map(|z| z * z).sum();
    let mean = square / (n * (n - 1)) as f64;
    let c = if mean > 0.0 { mean } else { 1.0 };
    let r = regularised_gram(z, c);
    let factor = Cholesky::new(r.as_ref(), Jitter::Absolute(0.0), "R").map_err(dependent)?;
    let log = factor.log_det() - c.ln();
    Ok((factor, log))
}

const DEPENDENT: &str = "the particles are affinely dependent and stay so: start from distinct draws, or from \
                         fewer particles than the rank of the starting covariance plus one";

/// Serves [`super::Particles::check_independent`].
pub(super) fn check_independent(z: MatRef<'_, f64>, blocks: &Blocks) -> Result<()> {
    if *blocks == Blocks::Diagonal {
        return log_variances(z).map(|_| ());
    }
    by_blocks(z, blocks, |z| {
        let (factor, _) = factored(z)?;
        let l = factor.l.as_ref();
        for i in 0..factor.size() {
            // what is left of a diagonal entry after all rows before it
            let whole: f64 = (0..=i).map(|j| l[(i, j)] * l[(i, j)]).sum();
            if l[(i, i)] * l[(i, i)] <= 4.0 * factor.size() as f64 * f64::EPSILON * whole {
                return Err(Error::NotPositiveDefinite {
                    matrix: if z.ncols() > z.nrows() + 1 { "C" } else { "R" },
                    size: factor.size(),
                    pivot: i,
                    jitter: 0.0,
                    hint: DEPENDENT,
                });
            }
        }
        Ok(())
    })?;
    Ok(())
}

/// Returns F̃ = φ̄ − ½ Σ_b log|C_b| without its constant, see [`evidence_bound`].
pub fn free_energy(mean_phi: f64, log_determinants: &[f64]) -> f64 {
    mean_phi - 0.5 * log_determinants.iter().sum::<f64>()
}

/// Returns the evidence lower bound −F + ½ r(1 + log 2π) of a free energy F whose covariance has rank r. It bounds
/// log ∫e^{−φ} only for r = D.
pub fn evidence_bound(free_energy: f64, rank: usize) -> f64 {
    -free_energy + 0.5 * rank as f64 * (1.0 + TAU.ln())
}

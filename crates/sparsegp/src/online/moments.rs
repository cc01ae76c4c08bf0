//! A Gaussian of whitened inducing values.

use super::site::{threads, times};
use crate::error::Result;
use crate::linalg::{
    Accum, Cholesky, Jitter, Mat, MatRef, Par, column, dot, gemm, product, solve_lower,
    sum_of_products,
};

/// q(v) = N(m, S) of v = L⁻¹b, whose prior is N(0, I).
#[derive(Clone, Debug)]
pub struct Moments {
    /// m, M numbers.
    pub mean: Vec<f64>,
    /// S, M×M.
    pub covariance: Mat<f64>,
    /// log|S|.
    pub log_det: f64,
}

impl Moments {
    /// Whitens N(`mean`, `covariance`) of the values themselves (M numbers, M×M) by the factor L of their prior.
    ///
    /// # Errors
    /// [`crate::Error::NotPositiveDefinite`] if the covariance is none.
    pub fn whitened(factor: &Cholesky, mean: &[f64], covariance: MatRef<f64>) -> Result<Self> {
        let l = factor.l.as_ref();
        let mut white = Mat::from_fn(mean.len(), 1, |i, _| mean[i]);
        solve_lower(l, white.as_mut(), Par::Seq);
        let mut s = covariance.to_owned();
        solve_lower(l, s.as_mut(), Par::Seq);
        solve_lower(l, s.as_mut().transpose_mut(), Par::Seq);
        crate::linalg::symmetrise(s.as_mut());
        let log_det = Cholesky::new(s.as_ref(), Jitter::Absolute(0.0), "S")?.log_det();
        Ok(Self { mean: column(white.as_ref(), 0).to_vec(), covariance: s, log_det })
    }

    /// Returns KL(q(v) ‖ N(0, I)) = KL(q(b) ‖ p(b)).
    pub fn kl(&self) -> f64 {
        let m = self.mean.len();
        let trace: f64 = (0..m).map(|i| self.covariance[(i, i)]).sum();
        let square = sum_of_products(&self.mean, &self.mean);
        0.5 * (trace + square - m as f64 - self.log_det)
    }

    /// Returns the means and variances of f at rows with W = L⁻¹K_bf (M×B) and prior variances
    /// `diag` (B numbers).
    pub fn marginals(&self, w: MatRef<f64>, diag: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let means = times(w.transpose(), &self.mean);
        let mut sw = Mat::zeros(w.nrows(), w.ncols());
        let par = threads(w.nrows(), w.ncols());
        gemm(sw.as_mut(), Accum::Replace, self.covariance.as_ref(), w, 1.0, par);
        let variance = |i: usize| {
            let (w, sw) = (column(w, i), column(sw.as_ref(), i));
            // a sum of parts that are none below 0, but for rounding
            (diag[i] - sum_of_products(w, w)).max(0.0) + sum_of_products(w, sw)
        };
        (means, (0..w.ncols()).map(variance).collect())
    }

    /// Returns the mean and covariance of the values themselves, b = Lv.
    pub fn of_values(&self, factor: &Cholesky) -> (Vec<f64>, Mat<f64>) {
        let l = factor.l.as_ref();
        let covariance = product(product(l, self.covariance.as_ref()).as_ref(), l.transpose());
        (times(l, &self.mean), covariance)
    }

    /// Returns ⟨A, S + mmᵀ⟩ of a symmetric A.
    pub(super) fn second(&self, a: MatRef<f64>) -> f64 {
        dot(a, self.covariance.as_ref()) + sum_of_products(&times(a, &self.mean), &self.mean)
    }
}

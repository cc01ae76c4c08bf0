//! One latent function at its sites: its posterior, KL divergence and the adjoint of its covariance.

use crate::error::Result;
use crate::linalg::{
    Accum, Cholesky, Jitter, Mat, gemm, par_for, product, scale_rows, solve_lower, symmetrise,
};

/// Precision of a site, in prior variances, up to which nine digits of 1 − w²v are left.
const PRECISE: f64 = 1e6;

/// One latent function at its sites.
pub(super) struct Sited {
    pub(super) w: Vec<f64>,
    /// Of B.
    pub(super) factor: Cholesky,
    pub(super) d: Mat<f64>,
    pub(super) m: Mat<f64>,
    pub(super) v: Vec<f64>,
}

/// Multiplies row i by `w[i]`.
pub(super) fn weighted(a: &Mat<f64>, w: &[f64]) -> Mat<f64> {
    let mut out = Mat::zeros(a.nrows(), a.ncols());
    scale_rows(out.as_mut(), a.as_ref(), w);
    out
}

impl Sited {
    pub(super) fn new(k: &Mat<f64>, first: &[f64], second: &[f64]) -> Result<Self> {
        let n = k.nrows();
        let w: Vec<f64> = second.iter().map(|s| s.max(0.0).sqrt()).collect();
        let b = Mat::from_fn(n, n, |i, j| w[i] * k[(i, j)] * w[j] + if i == j { 1.0 } else { 0.0 });
        let factor = Cholesky::new(b.as_ref(), Jitter::Absolute(0.0), "I + diag(w) K diag(w)")?;
        // (I + ΛK)⁻¹λ₁ = diag(w) B⁻¹ diag(1/w) λ₁, where λ₁ − TKλ₁ would lose the digits that large precisions leave; rows
        // without a precision keep λ₁, and bring it to the others through K
        let alone = Mat::from_fn(n, 1, |i, _| if w[i] > 0.0 { 0.0 } else { first[i] });
        let brought = product(k.as_ref(), alone.as_ref());
        let right = Mat::from_fn(n, 1, |i, _| {
            if w[i] > 0.0 { first[i] / w[i] - w[i] * brought[(i, 0)] } else { 0.0 }
        });
        let d = weighted(&factor.solve(right.as_ref()), &w) + &alone;
        let m = product(k.as_ref(), d.as_ref());
        let mut a = weighted(k, &w);
        solve_lower(factor.l.as_ref(), a.as_mut(), par_for(n));
        let v = (0..n)
            .map(|j| k[(j, j)] - a.col_as_slice(j).iter().map(|x| x * x).sum::<f64>())
            .collect();
        Ok(Self { w, factor, d, m, v })
    }

    /// Returns the diagonal of B⁻¹, 1 − wᵢ²vᵢ, which costs nothing; but where a site is so precise
    /// that w²v has lost the digits of v = kᵢᵢ − …, it is that of the inverse.
    pub(super) fn rest(&self, k: &Mat<f64>) -> Vec<f64> {
        let precise = self.w.iter().enumerate().any(|(i, w)| w * w * k[(i, i)] > PRECISE);
        match precise {
            false => self.w.iter().zip(&self.v).map(|(w, v)| 1.0 - w * w * v).collect(),
            true => {
                let inverse = self.factor.inverse();
                (0..self.w.len()).map(|i| inverse[(i, i)]).collect()
            }
        }
    }

    pub(super) fn kl(&self, k: &Mat<f64>) -> f64 {
        let trace: f64 = self.rest(k).iter().map(|rest| rest - 1.0).sum();
        let fit: f64 =
            self.d.col_as_slice(0).iter().zip(self.m.col_as_slice(0)).map(|(a, b)| a * b).sum();
        0.5 * (trace + fit + self.factor.log_det())
    }

    /// Returns K̄ from ∂ℓ/∂m and ∂ℓ/∂v.
    pub(super) fn adjoint(&self, k: &Mat<f64>, a: &[f64], b: &[f64]) -> Mat<f64> {
        let n = k.nrows();
        let par = par_for(n);
        let inverse = self.factor.inverse();
        let t = Mat::from_fn(n, n, |i, j| self.w[i] * inverse[(i, j)] * self.w[j]);
        let mut j = Mat::<f64>::identity(n, n);
        gemm(j.as_mut(), Accum::Add, t.as_ref(), k.as_ref(), -1.0, par);
        // J diag(h) Jᵀ with h = ∂ℓ/∂v + ½λ₂
        let h: Vec<f64> = b.iter().zip(&self.w).map(|(b, w)| b + 0.5 * w * w).collect();
        let scaled = weighted(&j.transpose().to_owned(), &h);
        let mut bar = Mat::from_fn(n, n, |p, q| -0.5 * t[(p, q)]);
        gemm(bar.as_mut(), Accum::Add, j.as_ref(), scaled.as_ref(), 1.0, par);
        // ½ddᵀ + J(α − d) dᵀ, of which the symmetric part is taken
        let apart = Mat::from_fn(n, 1, |i, _| a[i] - self.d[(i, 0)]);
        let through = product(j.as_ref(), apart.as_ref());
        let left = Mat::from_fn(n, 1, |i, _| 0.5 * self.d[(i, 0)] + through[(i, 0)]);
        gemm(bar.as_mut(), Accum::Add, left.as_ref(), self.d.transpose(), 1.0, par);
        symmetrise(bar.as_mut());
        bar
    }
}

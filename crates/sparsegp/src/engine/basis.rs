//! From inducing covariances to features and back.

use crate::error::Result;
use crate::linalg::{
    Cholesky, Jitter, Mat, MatMut, MatRef, Par, by_columns, par_for, sandwich_inverse, sized,
    solve_lower, solve_lower_transpose, transpose_lower,
};

/// The matrix that leads from inducing covariances to features.
#[derive(Clone, Copy, Debug)]
pub enum Projection<'a> {
    /// φ = L⁻¹k, with L twice: as it lies best on the way to features, and back.
    Solve(MatRef<'a, f64>, MatRef<'a, f64>),
    /// φ = Lᵀk.
    Product(MatRef<'a, f64>),
}

/// How features Φ come from inducing covariances. Blocks are B×M, one row per observation.
pub trait Basis: Send + Sync {
    /// Computes the features of a block of inducing covariances k(xᵢ, Z), in place.
    fn project(&self, k: MatMut<f64>);
    /// Applies the adjoint of [`Basis::project`]: K̄uf from Φ̄, in place.
    fn pull(&self, phi_bar: MatMut<f64>);
    /// Returns W with K̄uf = W Kuf where Φ̄ = A Φ for one symmetric A.
    fn pull_through(&self, a: Mat<f64>) -> Mat<f64>;
    /// Returns weights w with φᵀm = k(x, Z) w, M×P.
    fn weights(&self, m: MatRef<f64>) -> Mat<f64>;
    /// Returns L itself.
    fn projection(&self) -> Projection<'_>;
    /// Returns L, where features are L⁻¹k of the factor of Kuu.
    fn lower_factor(&self) -> Option<MatRef<'_, f64>> {
        None
    }
}

/// Sizes from which on a factor is kept by rows too.
const BY_ROWS: usize = 256;

/// Φ = L⁻¹Kuf with Kuu + jitter = L Lᵀ.
#[derive(Clone, Debug)]
pub struct CholeskyBasis {
    factor: Cholesky,
    /// Lᵀ of a large factor, else empty: blocks of rows are solved up to a quarter faster where what they are multiplied by lies by rows
    /// (`--bin products` of the benchmarks).
    by_rows: Mat<f64>,
}

impl CholeskyBasis {
    /// Factorises Kuu.
    ///
    /// # Errors
    /// As for [`Cholesky::new`].
    pub fn new(kuu: MatRef<f64>, jitter: Jitter) -> Result<Self> {
        let mut basis = Self::default();
        basis.renew(kuu, jitter, "Kuu")?;
        Ok(basis)
    }

    /// Renews the factor in its memory.
    ///
    /// # Errors
    /// As for [`Cholesky::renew`].
    pub fn renew(&mut self, kuu: MatRef<f64>, jitter: Jitter, name: &'static str) -> Result<()> {
        self.factor.renew(kuu, jitter, name)?;
        self.lay_by_rows();
        Ok(())
    }

    /// Creates the basis of a factor that is known.
    pub fn of_factor(factor: Cholesky) -> Self {
        let mut basis = Self { factor, by_rows: Mat::new() };
        basis.lay_by_rows();
        basis
    }

    fn lay_by_rows(&mut self) {
        let m = self.factor.l.nrows();
        let m = if m < BY_ROWS { 0 } else { m };
        sized(&mut self.by_rows, m, m);
        if m > 0 {
            transpose_lower(self.by_rows.as_mut(), self.factor.l.as_ref());
        }
    }

    /// Returns the factor of Kuu.
    pub fn factor(&self) -> &Cholesky {
        &self.factor
    }

    /// Returns only the factor.
    pub fn into_factor(self) -> Cholesky {
        self.factor
    }

    /// Returns the adjoint of Kuu from Ψ = Φ̄Φᵀ (lower triangle read): K̄uu = −½ L⁻ᵀ (Ψ, lower
    /// triangle mirrored) L⁻¹, and what the jitter adds. It is sym(L⁻ᵀ P(LᵀL̄) L⁻¹) with L̄ =
    /// −tril(L⁻ᵀΨ): the part of L⁻ᵀΨ above the diagonal, which tril drops, contributes to LᵀL̄ only
    /// above the diagonal, where P drops it; so P(LᵀL̄) = −P(Ψ).
    pub fn kuu_bar(&self, mut psi: Mat<f64>) -> Mat<f64> {
        let m = psi.ncols();
        by_columns(psi.as_mut(), &mut vec![(); m], &|j, column, ()| {
            column[j..].iter_mut().for_each(|v| *v *= -0.5);
        });
        let mut bar = self.pull_through(psi);
        self.factor.pull_jitter(&mut bar);
        bar
    }
}

impl Default for CholeskyBasis {
    /// Creates the basis of no points.
    fn default() -> Self {
        Self { factor: Cholesky::of_factor(Mat::new()), by_rows: Mat::new() }
    }
}

impl Basis for CholeskyBasis {
    fn lower_factor(&self) -> Option<MatRef<'_, f64>> {
        Some(self.factor.l.as_ref())
    }

    fn projection(&self) -> Projection<'_> {
        let own = self.factor.l.as_ref();
        let by_rows = self.by_rows.nrows() > 0;
        Projection::Solve(if by_rows { self.by_rows.transpose() } else { own }, own)
    }

    fn project(&self, k: MatMut<f64>) {
        let Projection::Solve(l, _) = self.projection() else { return };
        solve_lower(l, k.transpose_mut(), Par::Seq);
    }

    fn pull(&self, phi_bar: MatMut<f64>) {
        solve_lower_transpose(self.factor.l.as_ref(), phi_bar.transpose_mut(), Par::Seq);
    }

    fn pull_through(&self, a: Mat<f64>) -> Mat<f64> {
        let par = par_for(a.nrows());
        sandwich_inverse(self.factor.l.as_ref(), a, par)
    }

    fn weights(&self, m: MatRef<f64>) -> Mat<f64> {
        let mut w = m.to_owned();
        solve_lower_transpose(self.factor.l.as_ref(), w.as_mut(), par_for(m.nrows()));
        w
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_solve_for_covariances_after_any_size() {
        let wave = |i: usize, j: usize| ((i * 37 + j * 101) as f64 * 0.37).sin();
        let mut basis = CholeskyBasis::default();
        for m in [40, 301, 256, 12, 700, 301] {
            let kuu = Mat::from_fn(m, m, |i, j| {
                0.6 * (-((i as f64 - j as f64) / 2.3).powi(2)).exp() + 0.2 * f64::from(i == j)
            });
            basis.renew(kuu.as_ref(), Jitter::Relative(1e-6), "Kuu").expect("positive definite");
            let k = Mat::from_fn(17, m, wave);
            let mut phi = k.clone();
            basis.project(phi.as_mut());
            let error = &phi * basis.factor().l.transpose() - &k;
            assert!(error.norm_max() < 1e-12, "{m}: {}", error.norm_max());
            basis.pull(phi.as_mut());
            let error = &phi * (&basis.factor().l * basis.factor().l.transpose()) - &k;
            assert!(error.norm_max() < 1e-12, "{m}: {}", error.norm_max());
        }
    }
}

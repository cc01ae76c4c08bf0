//! From inducing covariances to features and back.

use crate::error::Result;
use crate::linalg::{
    Cholesky, Jitter, Mat, MatMut, MatRef, Par, mirror_lower, par_for, sandwich_inverse,
    solve_lower, solve_lower_transpose,
};

/// How features Φ come from inducing covariances. Blocks are B×M, one row per observation.
pub trait Basis: Send + Sync {
    /// Features of a block of inducing covariances k(xᵢ, Z), in place.
    fn project(&self, k: MatMut<f64>);
    /// The adjoint of [`Basis::project`]: K̄uf from Φ̄, in place.
    fn pull(&self, phi_bar: MatMut<f64>);
    /// W with K̄uf = W Kuf where Φ̄ = A Φ for one symmetric A.
    fn pull_through(&self, a: Mat<f64>) -> Mat<f64>;
    /// Weights w with φᵀm = k(x, Z) w, M×P.
    fn weights(&self, m: MatRef<f64>) -> Mat<f64>;
}

/// Φ = L⁻¹Kuf with Kuu + jitter = L Lᵀ.
#[derive(Clone, Debug)]
pub struct CholeskyBasis {
    /// The factor of Kuu.
    pub factor: Cholesky,
}

impl CholeskyBasis {
    /// Factorises Kuu.
    ///
    /// # Errors
    /// As for [`Cholesky::new`].
    pub fn new(kuu: MatRef<f64>, jitter: Jitter) -> Result<Self> {
        Ok(Self { factor: Cholesky::new(kuu, jitter, "Kuu")? })
    }

    /// Adjoint of Kuu from Ψ = Φ̄Φᵀ (lower triangle read): K̄uu = −½ L⁻ᵀ (Ψ, lower triangle
    /// mirrored) L⁻¹, and what the jitter adds. It is sym(L⁻ᵀ P(LᵀL̄) L⁻¹) with
    /// L̄ = −tril(L⁻ᵀΨ): the part of L⁻ᵀΨ above the diagonal, which tril drops, contributes to LᵀL̄
    /// only above the diagonal, where P drops it; so P(LᵀL̄) = −P(Ψ).
    pub fn kuu_bar(&self, mut psi: Mat<f64>) -> Mat<f64> {
        mirror_lower(psi.as_mut());
        let mut bar = self.pull_through(psi);
        for j in 0..bar.ncols() {
            for v in bar.col_as_slice_mut(j) {
                *v *= -0.5;
            }
        }
        self.factor.pull_jitter(&mut bar);
        bar
    }
}

impl Basis for CholeskyBasis {
    fn project(&self, k: MatMut<f64>) {
        solve_lower(self.factor.l.as_ref(), k.transpose_mut(), Par::Seq);
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

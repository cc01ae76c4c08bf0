//! Features of rows by inducing points, and the way back from them.

use crate::engine::{Basis, CholeskyBasis};
use crate::error::Result;
use crate::kernels::inducing::{AtPoints, Inducing};
use crate::kernels::{Kernel, Tape};
use crate::linalg::{Accum, Jitter, Mat, MatRef, gram_lower, in_parts, par_for};

/// Inducing points Z with the factor of Kuu + jitter = LLᵀ: rows have the features φ(x) = L⁻¹k(Z, x).
#[derive(Clone, Debug)]
pub struct Features {
    z: Mat<f64>,
    basis: CholeskyBasis,
}

impl Features {
    /// Factorises Kuu of points (M×D).
    ///
    /// # Errors
    /// [`crate::Error::NotPositiveDefinite`].
    pub fn new(kernel: &dyn Kernel, z: Mat<f64>, jitter: Jitter) -> Result<Self> {
        let mut kuu = Mat::zeros(z.nrows(), z.nrows());
        AtPoints { kernel, z: z.as_ref() }.kuu(kuu.as_mut(), &mut Tape::off());
        let basis = CholeskyBasis::new(kuu.as_ref(), jitter)?;
        Ok(Self { z, basis })
    }

    /// Returns the number of points M.
    pub fn points(&self) -> usize {
        self.z.nrows()
    }

    /// Returns what was added to the diagonal of Kuu.
    pub fn jitter(&self) -> f64 {
        self.basis.factor().jitter
    }

    /// Returns the features of rows (B×D), M×B.
    pub fn of(&self, kernel: &dyn Kernel, x: MatRef<f64>) -> Mat<f64> {
        let (m, at) = (self.points(), AtPoints { kernel, z: self.z.as_ref() });
        let mut phi = Mat::zeros(m, x.nrows());
        let parts = in_parts(x, |start, x| {
            let mut k = Mat::zeros(x.nrows(), m);
            at.kuf(x, k.as_mut(), &mut Tape::off());
            self.basis.project(k.as_mut());
            Ok((start, k))
        });
        for (start, own) in parts.into_iter().flatten() {
            phi.as_mut().subcols_mut(start, own.nrows()).copy_from(own.transpose());
        }
        phi
    }

    /// Returns slopes in the kernel's parameters and in Z, column by column, from those in the features `phi` of rows (M×N each):
    /// K̄uf = L⁻ᵀΦ̄, and K̄uu as of every bound ([`CholeskyBasis::kuu_bar`]).
    pub fn pull(
        &self,
        kernel: &dyn Kernel,
        x: MatRef<f64>,
        phi: &Mat<f64>,
        phi_bar: &Mat<f64>,
    ) -> (Vec<f64>, Vec<f64>) {
        let (m, at) = (self.points(), AtPoints { kernel, z: self.z.as_ref() });
        let parts = in_parts(x, |start, x| {
            let mut bar = phi_bar.as_ref().subcols(start, x.nrows()).transpose().to_owned();
            self.basis.pull(bar.as_mut());
            let (mut k, mut tape) = (Mat::zeros(x.nrows(), m), Tape::recording());
            at.kuf(x, k.as_mut(), &mut tape);
            let mut own = vec![0.0; at.num_params()];
            at.pull_kuf(x, (k.as_ref(), bar.as_mut()), &mut tape, &mut own, None);
            Ok(own)
        });
        let mut gradient = vec![0.0; at.num_params()];
        for own in parts.into_iter().flatten() {
            gradient.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
        }
        let mut psi = Mat::zeros(m, m);
        let (a, b) = (phi_bar.transpose(), phi.transpose());
        gram_lower(psi.as_mut(), Accum::Replace, a, b, 1.0, par_for(m));
        let mut bar = self.basis.kuu_bar(psi);
        let (mut kuu, mut tape) = (Mat::zeros(m, m), Tape::recording());
        at.kuu(kuu.as_mut(), &mut tape);
        at.pull_kuu(kuu.as_ref(), bar.as_mut(), &mut tape, &mut gradient);
        let points = gradient.split_off(kernel.num_params());
        (gradient, points)
    }
}

//! q(u) as it is stored, for what goes on from it.

use super::Posterior;
use crate::linalg::{Cholesky, Mat, MatRef, column};

/// q(v) = N(mean, root·rootᵀ) of v = L⁻¹u of one latent function at its M inducing points.
#[derive(Clone, Copy, Debug)]
pub struct Whitened<'a> {
    /// Inducing points, M×D.
    pub points: MatRef<'a, f64>,
    /// L of Kuu.
    pub factor: &'a Cholesky,
    /// M numbers.
    pub mean: &'a [f64],
    /// M×M, lower triangular.
    pub root: &'a Mat<f64>,
}

impl Posterior {
    /// Shows the whitened q of latent function `l`; none for exact inference, pseudo-observations and draws.
    pub fn whitened(&self, l: usize) -> Option<Whitened<'_>> {
        if self.before.is_some() {
            return None;
        }
        let process = self.processes.iter().find(|p| p.latents.contains(&l))?;
        if process.pseudo.is_some() || !self.draws.is_empty() {
            return None;
        }
        Some(Whitened {
            points: process.points.as_ref(),
            factor: &process.factor,
            mean: column(self.q_mu.as_ref(), l),
            root: process.root(l - process.latents.start)?,
        })
    }
}

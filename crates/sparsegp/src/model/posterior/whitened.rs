//! q(u) as it is stored, for updates by new rows.

use crate::linalg::{Cholesky, Mat, MatRef};

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

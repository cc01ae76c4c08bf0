//! Whole blocks of covariances where no gradient follows, and what they make.

use super::{Kernel, Tape};
use crate::error::Result;
use crate::linalg::{Cholesky, Jitter, Mat, MatRef, Par, sized, solve_lower};

/// Returns the place of a latent function in a list with one entry that all share, or with one for
/// each.
pub fn place_of(entries: usize, latent: usize) -> usize {
    if entries == 1 { 0 } else { latent }
}

/// Picks the entry of a latent function from such a list.
pub fn of_latent<T>(all: &[T], latent: usize) -> &T {
    &all[place_of(all.len(), latent)]
}

/// Returns K(X, Z), B×M, or K(X) without `z`: see [`Kernel::evaluate`] for the difference.
pub fn covariances(kernel: &dyn Kernel, x: MatRef<f64>, z: Option<MatRef<f64>>) -> Mat<f64> {
    let mut k = Mat::zeros(x.nrows(), z.map_or(x.nrows(), |z| z.nrows()));
    kernel.evaluate(x, z, k.as_mut(), &mut Tape::off());
    k
}

/// Factorises the covariance of points (M×D) with jitter; `name` is what errors call the matrix.
///
/// # Errors
/// [`crate::Error::NotPositiveDefinite`].
pub fn factor(
    kernel: &dyn Kernel,
    points: MatRef<f64>,
    jitter: Jitter,
    name: &'static str,
) -> Result<Cholesky> {
    Cholesky::new(covariances(kernel, points, None).as_ref(), jitter, name)
}

/// Returns Φᵀ (B×M), with rows φ = L⁻¹k(Z, x), sequentially. `factor` is that of the points (M×D).
pub fn features(
    kernel: &dyn Kernel,
    points: MatRef<f64>,
    factor: &Cholesky,
    x: MatRef<f64>,
) -> Mat<f64> {
    let mut phi = Mat::new();
    read_features(kernel, points, factor, x, &mut phi);
    phi
}

/// Computes the same into `out`, which keeps its memory.
pub fn read_features(
    kernel: &dyn Kernel,
    points: MatRef<f64>,
    factor: &Cholesky,
    x: MatRef<f64>,
    out: &mut Mat<f64>,
) {
    sized(out, x.nrows(), points.nrows());
    out.fill(0.0);
    kernel.evaluate(x, Some(points), out.as_mut(), &mut Tape::off());
    solve_lower(factor.l.as_ref(), out.as_mut().transpose_mut(), Par::Seq);
}

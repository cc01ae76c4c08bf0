//! Inducing points: where to place them ([`select`]). How well they stand for the rows tells [`crate::fit::quality`].

pub mod select;

pub use select::{Prior, Selected, Selection};

use crate::error::Result;
use crate::kernels::{Kernel, covariances};
use crate::linalg::{Mat, MatRef, in_parts, stacked};

/// Returns k(X, xᵢ) for these rows i of `x` (N×D): N×(their number). On all threads.
///
/// # Errors
/// None; its users have some.
pub(crate) fn columns(
    kernel: &dyn Kernel,
    x: MatRef<'_, f64>,
    indices: &[usize],
) -> Result<Mat<f64>> {
    let z = Mat::from_fn(indices.len(), x.ncols(), |i, q| x[(indices[i], q)]);
    let parts = in_parts(x, |_, x| Ok(covariances(kernel, x, Some(z.as_ref()))))?;
    Ok(stacked(&parts, x.nrows(), z.nrows()))
}

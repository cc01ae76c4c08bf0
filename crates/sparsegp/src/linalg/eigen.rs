//! Eigenvalues and eigenvectors of symmetric matrices.

use super::{Mat, MatRef, Par, scale_rows};
use crate::error::{Error, Result};
use faer::diag::Diag;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::{ComputeEigenvectors, self_adjoint_evd, self_adjoint_evd_scratch};
use faer::linalg::svd::{ComputeSvdVectors, svd, svd_scratch};

/// Returns eigenvalues in rising order, and eigenvectors as the columns of a matrix, of a symmetric
/// matrix, of which the lower triangle is read. O(N³), on one thread, so that the result does not
/// depend on how many there are.
///
/// # Errors
/// [`Error::NonFinite`] if the decomposition fails, as it does for matrices with NaN.
pub fn symmetric_eigen(a: MatRef<'_, f64>) -> Result<(Vec<f64>, Mat<f64>)> {
    let n = a.nrows();
    let mut values = Diag::<f64>::zeros(n);
    let mut vectors = Mat::zeros(n, n);
    let scratch =
        self_adjoint_evd_scratch::<f64>(n, ComputeEigenvectors::Yes, Par::Seq, Default::default());
    let mut memory = MemBuffer::new(scratch);
    let (to, stack) = (Some(vectors.as_mut()), MemStack::new(&mut memory));
    self_adjoint_evd(a, values.as_mut(), to, Par::Seq, stack, Default::default()).map_err(
        |_| Error::NonFinite {
            what: "an eigenvalue of a symmetric matrix".into(),
            value: f64::NAN,
        },
    )?;
    Ok(((0..n).map(|i| values.column_vector()[i]).collect(), vectors))
}

/// Returns the singular values in falling order, and left singular vectors as the columns of a
/// matrix, of a square matrix. O(N³).
///
/// # Errors
/// [`Error::NonFinite`] if the decomposition fails, as it does for matrices with NaN.
pub fn left_singular(a: MatRef<'_, f64>) -> Result<(Vec<f64>, Mat<f64>)> {
    let n = a.nrows();
    let (mut values, mut u) = (Diag::<f64>::zeros(n), Mat::zeros(n, n));
    let (left, none) = (ComputeSvdVectors::Thin, ComputeSvdVectors::No);
    let mut memory =
        MemBuffer::new(svd_scratch::<f64>(n, n, left, none, Par::Seq, Default::default()));
    let (to, stack) = (Some(u.as_mut()), MemStack::new(&mut memory));
    svd(a, values.as_mut(), to, None, Par::Seq, stack, Default::default())
        .map_err(|_| Error::NonFinite { what: "a singular value".into(), value: f64::NAN })?;
    Ok(((0..n).map(|i| values.column_vector()[i]).collect(), u))
}

/// Returns A^{−½}, the symmetric one, of a symmetric positive semidefinite matrix, of which the
/// lower triangle is read; eigenvalues below `least` times the largest count as 0, and so do their
/// inverses. O(N³).
///
/// # Errors
/// As for [`symmetric_eigen`].
pub fn inverse_square_root(a: MatRef<'_, f64>, least: f64) -> Result<Mat<f64>> {
    let n = a.nrows();
    let (values, vectors) = symmetric_eigen(a)?;
    let largest = values.iter().fold(0.0_f64, |m, v| m.max(*v));
    let inverse = |v: f64| if v > least * largest { v.sqrt().recip() } else { 0.0 };
    let weights: Vec<f64> = values.into_iter().map(inverse).collect();
    let mut scaled = Mat::zeros(n, n);
    scale_rows(scaled.as_mut(), vectors.transpose().to_owned().as_ref(), &weights);
    let mut root = Mat::zeros(n, n);
    super::gemm(
        root.as_mut(),
        faer::Accum::Replace,
        vectors.as_ref(),
        scaled.as_ref(),
        1.0,
        super::par_for(n),
    );
    Ok(root)
}

//! Products of rectangular matrices on one thread, by the faster of two libraries.

use super::{Accum, MatMut, MatRef, Par, Real};
use faer::linalg::matmul;

/// Multiplications from which on `gemm` is the faster one. It packs both factors, which small products are not worth. `faer` 0.24 reads a right factor where
/// it lies, at 0.65 to 0.85 of its rate where a large one is stored by rows, and the left one from
/// the second cache for every four columns, which a neighbour there slows down (`--bin products` of
/// the benchmarks).
const LARGE: usize = 1 << 22;

/// Computes `dst = alpha·a·b`, or `dst += …`.
pub(super) fn multiply<T: Real>(
    dst: MatMut<'_, T>,
    accum: Accum,
    a: MatRef<'_, T>,
    b: MatRef<'_, T>,
    alpha: T,
) {
    let (rows, columns, terms) = (dst.nrows(), dst.ncols(), a.ncols());
    if rows == 1 || columns == 1 || rows * columns * terms < LARGE {
        return matmul::matmul(dst, accum, a, b, alpha, Par::Seq);
    }
    packed(dst, accum, a, b, alpha);
}

/// Computes the same by `gemm`, which takes pointers.
#[allow(unsafe_code)]
fn packed<T: Real>(dst: MatMut<'_, T>, accum: Accum, a: MatRef<'_, T>, b: MatRef<'_, T>, alpha: T) {
    let (rows, columns, terms) = (dst.nrows(), dst.ncols(), a.ncols());
    assert!((a.nrows(), b.nrows(), b.ncols()) == (rows, terms, columns), "shapes that fit");
    // SAFETY: dst, a and b are views of rows × columns, rows × terms and terms × columns numbers of type `T` at these
    // strides, and nothing else refers to what dst does. Without `Accum::Add` dst is not read.
    unsafe {
        gemm::gemm(
            rows,
            columns,
            terms,
            dst.as_ptr_mut(),
            dst.col_stride(),
            dst.row_stride(),
            matches!(accum, Accum::Add),
            a.as_ptr(),
            a.col_stride(),
            a.row_stride(),
            b.as_ptr(),
            b.col_stride(),
            b.row_stride(),
            T::of(1.0),
            alpha,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

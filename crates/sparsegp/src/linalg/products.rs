//! Products in which some factor or the result is triangular.

use super::{Accum, MatMut, MatRef, Par, column, column_mut, gemm, unless_vector};
use faer::linalg::matmul::triangular;
pub use faer::linalg::matmul::triangular::BlockStructure as Structure;
use faer::reborrow::{Reborrow, ReborrowMut};

/// `dst = alpha·a·b` (or `dst += …`) where each of the three is read, or written, within its structure
/// alone.
pub fn structured(
    (dst, of_dst): (MatMut<'_, f64>, Structure),
    accum: Accum,
    (a, of_a): (MatRef<'_, f64>, Structure),
    (b, of_b): (MatRef<'_, f64>, Structure),
    alpha: f64,
    par: Par,
) {
    let par = unless_vector(dst.nrows(), dst.ncols(), par);
    triangular::matmul(dst, of_dst, accum, a, of_a, b, of_b, alpha, par);
}

/// Columns below which a product in place goes column by column.
const SMALL: usize = 32;

/// `x = x·L` for a lower-triangular L, or `x = x·Lᵀ` where `transposed`, in place: M²B operations for a
/// block of B×M. Halves of the columns are multiplied for themselves, and what passes between them is an
/// ordinary product.
pub fn multiply_lower(x: MatMut<'_, f64>, l: MatRef<'_, f64>, transposed: bool) {
    let m = l.nrows();
    if m <= SMALL {
        return multiply_small(x, l, transposed);
    }
    let half = (m / 2).next_multiple_of(16);
    let (mut first, mut second) = x.split_at_col_mut(half);
    let (head, rest) = (l.submatrix(0, 0, half, half), m - half);
    let (below, tail) = (l.submatrix(half, 0, rest, half), l.submatrix(half, half, rest, rest));
    if transposed {
        multiply_lower(second.rb_mut(), tail, true);
        gemm(second, Accum::Add, first.rb(), below.transpose(), 1.0, Par::Seq);
        multiply_lower(first, head, true);
    } else {
        multiply_lower(first.rb_mut(), head, false);
        gemm(first, Accum::Add, second.rb(), below, 1.0, Par::Seq);
        multiply_lower(second, tail, false);
    }
}

/// The same, column by column.
fn multiply_small(mut x: MatMut<'_, f64>, l: MatRef<'_, f64>, transposed: bool) {
    let m = l.nrows();
    for step in 0..m {
        // a column is made of itself and of those that are still as they were
        let j = if transposed { m - 1 - step } else { step };
        let others = if transposed { 0..j } else { j + 1..m };
        let (before, rest) = x.rb_mut().split_at_col_mut(j);
        let (own, after) = rest.split_at_col_mut(1);
        let own = column_mut(own, 0);
        own.iter_mut().for_each(|v| *v *= l[(j, j)]);
        for i in others {
            let factor = if transposed { l[(j, i)] } else { l[(i, j)] };
            let source =
                if transposed { column(before.rb(), i) } else { column(after.rb(), i - j - 1) };
            own.iter_mut().zip(source).for_each(|(v, s)| *v += factor * s);
        }
    }
}

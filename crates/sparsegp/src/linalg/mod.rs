//! Linear algebra: the only module that names the matrix library's routines.
//!
//! Conventions: M×M matrices and blocks of rows (B×M) are column-major. A block of rows holds one
//! observation per row, so that the observations of one column are contiguous; Φ of the formulas
//! (M×B) is the transpose of what is stored.
//!
//! Every routine takes its degree of parallelism ([`Par`]) explicitly: blocks of rows are worked on
//! sequentially, one block per thread; M×M work may use the threads of the current pool
//! ([`par_for`]). Results do not depend on the number of threads.

mod cholesky;
mod eigen;
pub mod exp;
mod multiply;
mod parts;
mod products;
mod single;
mod sparse;
#[cfg(test)]
mod sparse_tests;
mod sums;
mod transposes;
mod triangles;

pub use cholesky::{Cholesky, InverseRoot, Jitter};
pub use eigen::{inverse_square_root, left_singular, symmetric_eigen};
pub use faer::{Accum, Mat, MatMut, MatRef, Par, RowRef};
pub use parts::{each, in_parts, join, stacked};
pub(crate) use products::shared;
pub use products::{Structure, multiply_lower, structured};
pub use single::{Precision, Real, SINGLE_ROUNDING, structured_in};
pub use sparse::{Pattern, SelectedInverse, SparseCholesky};
pub use sums::{add_row_dots, add_scaled_rows, dot, scale_rows, sum, sum_of_products};
pub(crate) use transposes::by_columns;
pub use transposes::{mirror_lower, symmetrise, transpose_lower};
pub(crate) use triangles::sandwich;
pub use triangles::{
    counts, inner_root, invert_lower, sandwich_inverse, solve_lower, solve_lower_transpose,
};

use faer::reborrow::ReborrowMut;
use triangles::LEAF;

const WHOLE: Structure = Structure::Rectangular;
const LOWER: Structure = Structure::TriangularLower;
const UPPER: Structure = Structure::TriangularUpper;

/// Returns the parallelism for work on an n×n matrix: sequential below the size where threads pay.
///
/// It does not depend on how many there are, nor do the bits of what is computed: no sum is divided by their number.
pub fn par_for(n: usize) -> Par {
    if n >= 384 { Par::rayon(0) } else { Par::Seq }
}

/// Columns that begin at a multiple of so many bytes share few places of the caches: rows of 1024 numbers were solved with
/// and packed at two thirds of the rate of 1000.
const ALIASED: usize = 1024;
/// Bytes that move the next column to another place.
const LINE: usize = 64;

/// Returns the rows of memory for a matrix with so many rows: whole lines, as `faer` has them.
fn stride<T>(rows: usize) -> usize {
    let line = LINE / size_of::<T>();
    let whole = rows.next_multiple_of(line);
    if rows > 0 && (whole * size_of::<T>()).is_multiple_of(ALIASED) { whole + line } else { whole }
}

/// Gives a matrix a shape: new memory only if what it has is too small. The contents are arbitrary.
pub fn sized<T: Real>(a: &mut Mat<T>, rows: usize, cols: usize) {
    if (a.nrows(), a.ncols()) != (rows, cols) {
        // first what goes, or a wide matrix would get the rows of the tall one before it too
        a.truncate(rows.min(a.nrows()), cols.min(a.ncols()));
        a.reserve(stride::<T>(rows), cols);
        a.resize_with(rows, cols, |_, _| T::of(0.0));
    }
}

/// Gives a list so many zeros, in the memory that it has.
pub(crate) fn zeroed(values: &mut Vec<f64>, len: usize) {
    values.clear();
    values.resize(len, 0.0);
}

/// Returns the column `j` of a column-major matrix.
pub fn column<'a, T>(a: MatRef<'a, T>, j: usize) -> &'a [T] {
    a.try_as_col_major().expect("matrices here are column-major").col(j).as_slice()
}

/// Returns the column `j` of a column-major matrix, to write.
pub fn column_mut<T>(a: MatMut<'_, T>, j: usize) -> &mut [T] {
    a.try_as_col_major_mut().expect("matrices here are column-major").col_mut(j).as_slice_mut()
}

/// Returns the numbers of a matrix of any layout, row by row.
pub fn by_rows(a: MatRef<'_, f64>) -> Vec<f64> {
    if a.ncols() == 1 && a.row_stride() == 1 {
        return column(a, 0).to_vec();
    }
    let mut values = Vec::with_capacity(a.nrows() * a.ncols());
    (0..a.nrows()).for_each(|i| values.extend((0..a.ncols()).map(|j| a[(i, j)])));
    values
}

/// Returns a copy of a matrix of any layout, column by column.
pub fn copied(a: MatRef<'_, f64>) -> Mat<f64> {
    a.to_owned()
}

/// Returns the same parallelism unless the result is one column or row: products of a matrix with a
/// vector are split by threads along their sums, which would make the result depend on how many
/// there are.
fn unless_vector(rows: usize, columns: usize, par: Par) -> Par {
    if rows == 1 || columns == 1 { Par::Seq } else { par }
}

/// Returns a variance or a square that rounding may have taken below 0 as at least 0. NaN stays NaN, where `max` would make
/// it a 0 that looks certain.
pub fn not_below_0(value: f64) -> f64 {
    if value < 0.0 { 0.0 } else { value }
}

/// Computes `dst = alpha·a·b` (or `dst += …`), in double or single precision.
pub fn gemm<T: Real>(
    dst: MatMut<'_, T>,
    accum: Accum,
    a: MatRef<'_, T>,
    b: MatRef<'_, T>,
    alpha: T,
    par: Par,
) {
    products::shared((dst, WHOLE), accum, (a, WHOLE), (b, WHOLE), alpha, par);
}

/// Returns a·b, on the threads of the current pool.
pub fn product(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> Mat<f64> {
    let mut product = Mat::zeros(a.nrows(), b.ncols());
    gemm(product.as_mut(), Accum::Replace, a, b, 1.0, par_for(a.nrows()));
    product
}

/// Computes the lower triangle of `dst = alpha·aᵀ·b` (or `dst += …`); a and b are B×M. With `a` =
/// `b` this is the symmetric rank-B update.
pub fn gram_lower(
    dst: MatMut<'_, f64>,
    accum: Accum,
    a: MatRef<'_, f64>,
    b: MatRef<'_, f64>,
    alpha: f64,
    par: Par,
) {
    structured((dst, LOWER), accum, (a.transpose(), WHOLE), (b, WHOLE), alpha, par);
}

/// Computes `dst = a·L` (or `dst += …`) for a lower-triangular L, or `a·Lᵀ` where `transposed`.
pub fn times_triangular<T: Real>(
    dst: MatMut<'_, T>,
    accum: Accum,
    a: MatRef<'_, T>,
    l: MatRef<'_, T>,
    transposed: bool,
    par: Par,
) {
    let right = match transposed {
        false => (l, LOWER),
        true => (l.transpose(), UPPER),
    };
    products::shared((dst, WHOLE), accum, (a, WHOLE), right, T::of(1.0), par);
}

/// Computes the lower triangle of `dst = alpha·L·B` (or `dst += …`) for a lower-triangular L, where
/// the product is known to be symmetric (or its upper triangle is of no interest).
pub fn lower_product(
    dst: MatMut<'_, f64>,
    accum: Accum,
    l: MatRef<'_, f64>,
    b: MatRef<'_, f64>,
    alpha: f64,
    par: Par,
) {
    structured((dst, LOWER), accum, (l, LOWER), (b, WHOLE), alpha, par);
}

/// Computes the lower triangle of `dst = LᵀL` for a lower-triangular L.
pub fn inner_gram(dst: MatMut<'_, f64>, l: MatRef<'_, f64>, par: Par) {
    structured((dst, LOWER), Accum::Replace, (l.transpose(), UPPER), (l, LOWER), 1.0, par);
}

/// Computes the lower triangle of `dst = LLᵀ` for a lower-triangular L.
pub fn outer_gram(dst: MatMut<'_, f64>, l: MatRef<'_, f64>, par: Par) {
    structured((dst, LOWER), Accum::Replace, (l, LOWER), (l.transpose(), UPPER), 1.0, par);
}

/// Sets what is above the diagonal to zero.
pub fn clear_upper(mut a: MatMut<'_, f64>) {
    for j in 1..a.ncols() {
        let rows = a.nrows().min(j);
        column_mut(a.rb_mut(), j)[..rows].fill(0.0);
    }
}

#[cfg(test)]
mod tests;

//! Dense linear algebra: the only module that names the matrix library's routines.
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
mod products;
mod single;

pub use cholesky::{Cholesky, InverseRoot, Jitter};
pub use eigen::inverse_square_root;
pub use faer::{Accum, Mat, MatMut, MatRef, Par};
pub use products::{Structure, multiply_lower, structured};
pub use single::{Precision, SINGLE_ROUNDING, structured_in};

use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::linalg::{matmul, triangular_inverse, triangular_solve};
use std::sync::atomic::{AtomicU64, Ordering};

static FACTORISATIONS: AtomicU64 = AtomicU64::new(0);
static SOLVES: AtomicU64 = AtomicU64::new(0);

/// How many matrices have been factorised, and how many triangular systems solved (inverses of triangular
/// matrices count as such), since the program began: what a method without either is held to.
pub fn counts() -> (u64, u64) {
    (FACTORISATIONS.load(Ordering::Relaxed), SOLVES.load(Ordering::Relaxed))
}

/// Parallelism for work on an n×n matrix: sequential below the size where threads pay.
pub fn par_for(n: usize) -> Par {
    if n >= 768 && rayon::current_num_threads() > 1 { Par::rayon(0) } else { Par::Seq }
}

/// Gives a matrix a shape: new memory only if what it has is too small. The contents are arbitrary.
pub fn sized(a: &mut Mat<f64>, rows: usize, cols: usize) {
    a.resize_with(rows, cols, |_, _| 0.0);
}

/// Column `j` of a column-major matrix.
pub fn column<'a>(a: MatRef<'a, f64>, j: usize) -> &'a [f64] {
    a.try_as_col_major().expect("matrices here are column-major").col(j).as_slice()
}

/// Column `j` of a column-major matrix, to write.
pub fn column_mut(a: MatMut<'_, f64>, j: usize) -> &mut [f64] {
    a.try_as_col_major_mut().expect("matrices here are column-major").col_mut(j).as_slice_mut()
}

/// The same parallelism unless the result is one column or row: products of a matrix with a vector
/// are split by threads along their sums, which would make the result depend on how many there are.
fn unless_vector(rows: usize, columns: usize, par: Par) -> Par {
    if rows == 1 || columns == 1 { Par::Seq } else { par }
}

/// `dst = alpha·a·b` (or `dst += …`).
pub fn gemm(
    dst: MatMut<'_, f64>,
    accum: Accum,
    a: MatRef<'_, f64>,
    b: MatRef<'_, f64>,
    alpha: f64,
    par: Par,
) {
    let par = unless_vector(dst.nrows(), dst.ncols(), par);
    matmul::matmul(dst, accum, a, b, alpha, par);
}

/// a·b, on the threads of the current pool.
pub fn product(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> Mat<f64> {
    let mut product = Mat::zeros(a.nrows(), b.ncols());
    gemm(product.as_mut(), Accum::Replace, a, b, 1.0, par_for(a.nrows()));
    product
}

/// Lower triangle of `dst = alpha·aᵀ·b` (or `dst += …`) where the product is known to be symmetric;
/// a and b are B×M. With `a` = `b` this is the symmetric rank-B update.
pub fn gram_lower(
    dst: MatMut<'_, f64>,
    accum: Accum,
    a: MatRef<'_, f64>,
    b: MatRef<'_, f64>,
    alpha: f64,
    par: Par,
) {
    triangular::matmul(
        dst,
        BlockStructure::TriangularLower,
        accum,
        a.transpose(),
        BlockStructure::Rectangular,
        b,
        BlockStructure::Rectangular,
        alpha,
        par,
    );
}

/// `dst = a·L` (or `dst += …`) for a lower-triangular L, or `a·Lᵀ` where `transposed`.
pub fn times_triangular(
    dst: MatMut<'_, f64>,
    accum: Accum,
    a: MatRef<'_, f64>,
    l: MatRef<'_, f64>,
    transposed: bool,
    par: Par,
) {
    let (b, structure) = match transposed {
        false => (l, BlockStructure::TriangularLower),
        true => (l.transpose(), BlockStructure::TriangularUpper),
    };
    let whole = BlockStructure::Rectangular;
    let par = unless_vector(dst.nrows(), dst.ncols(), par);
    triangular::matmul(dst, whole, accum, a, whole, b, structure, 1.0, par);
}

/// Lower triangle of `dst = alpha·L·B` (or `dst += …`) for a lower-triangular L, where the product is
/// known to be symmetric (or its upper triangle is of no interest).
pub fn lower_product(
    dst: MatMut<'_, f64>,
    accum: Accum,
    l: MatRef<'_, f64>,
    b: MatRef<'_, f64>,
    alpha: f64,
    par: Par,
) {
    let (lower, whole) = (BlockStructure::TriangularLower, BlockStructure::Rectangular);
    triangular::matmul(dst, lower, accum, l, lower, b, whole, alpha, par);
}

/// Lower triangle of `dst = LᵀL` for a lower-triangular L.
pub fn inner_gram(dst: MatMut<'_, f64>, l: MatRef<'_, f64>, par: Par) {
    let (lower, upper) = (BlockStructure::TriangularLower, BlockStructure::TriangularUpper);
    triangular::matmul(dst, lower, Accum::Replace, l.transpose(), upper, l, lower, 1.0, par);
}

/// Solves `L X = B` in place.
pub fn solve_lower(l: MatRef<'_, f64>, b: MatMut<'_, f64>, par: Par) {
    SOLVES.fetch_add(1, Ordering::Relaxed);
    let par = unless_vector(b.nrows(), b.ncols(), par);
    triangular_solve::solve_lower_triangular_in_place(l, b, par);
}

/// Solves `Lᵀ X = B` in place.
pub fn solve_lower_transpose(l: MatRef<'_, f64>, b: MatMut<'_, f64>, par: Par) {
    SOLVES.fetch_add(1, Ordering::Relaxed);
    let par = unless_vector(b.nrows(), b.ncols(), par);
    triangular_solve::solve_upper_triangular_in_place(l.transpose(), b, par);
}

/// Lower triangle of `dst = L⁻¹` for a lower-triangular L.
pub fn invert_lower(dst: MatMut<'_, f64>, l: MatRef<'_, f64>, par: Par) {
    SOLVES.fetch_add(1, Ordering::Relaxed);
    triangular_inverse::invert_lower_triangular(dst, l, par);
}

/// Sets what is above the diagonal to zero.
pub fn clear_upper(mut a: MatMut<'_, f64>) {
    for j in 1..a.ncols() {
        let rows = a.nrows().min(j);
        column_mut(a.rb_mut(), j)[..rows].fill(0.0);
    }
}

/// Calls `f` with every (i, j), i > j, in tiles, so that both (i, j) and (j, i) stay in cache.
fn below_diagonal(n: usize, mut f: impl FnMut(usize, usize)) {
    const TILE: usize = 32;
    for j0 in (0..n).step_by(TILE) {
        for i0 in (j0..n).step_by(TILE) {
            for j in j0..(j0 + TILE).min(n) {
                for i in i0.max(j + 1)..(i0 + TILE).min(n) {
                    f(i, j);
                }
            }
        }
    }
}

/// Copies the lower triangle over the upper one.
pub fn mirror_lower(mut a: MatMut<'_, f64>) {
    below_diagonal(a.ncols(), |i, j| a[(j, i)] = a[(i, j)]);
}

/// `L⁻ᵀ S L⁻¹` for a symmetric S, symmetric again to the last bit.
pub fn sandwich_inverse(l: MatRef<'_, f64>, mut s: Mat<f64>, par: Par) -> Mat<f64> {
    solve_lower_transpose(l, s.as_mut(), par);
    // now L⁻ᵀS; its transpose is S L⁻¹, and Lᵀ X = S L⁻¹ … from the left
    solve_lower_transpose(l, s.as_mut().transpose_mut(), par);
    symmetrise(s.as_mut());
    s
}

/// `a = ½(a + aᵀ)`.
pub fn symmetrise(mut a: MatMut<'_, f64>) {
    below_diagonal(a.ncols(), |i, j| {
        let mean = 0.5 * (a[(i, j)] + a[(j, i)]);
        a[(i, j)] = mean;
        a[(j, i)] = mean;
    });
}

/// Σᵢⱼ aᵢⱼ bᵢⱼ.
pub fn dot(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> f64 {
    (0..a.ncols())
        .map(|j| column(a, j).iter().zip(column(b, j)).map(|(x, y)| x * y).sum::<f64>())
        .sum()
}

/// Adds Σⱼ aᵢⱼ bᵢⱼ to `out[i]`.
pub fn add_row_dots(a: MatRef<'_, f64>, b: MatRef<'_, f64>, out: &mut [f64]) {
    struct Loop<'a>(&'a [f64], &'a [f64], &'a mut [f64]);
    impl exp::Vectorised for Loop<'_> {
        type Output = ();
        #[inline(always)]
        fn run<const FMA: bool>(self) {
            for ((o, x), y) in self.2.iter_mut().zip(self.0).zip(self.1) {
                *o = exp::mul_add::<FMA>(*x, *y, *o);
            }
        }
    }
    for j in 0..a.ncols() {
        exp::dispatch(Loop(column(a, j), column(b, j), out));
    }
}

/// `dst[i, j] += factor·weights[i]·src[i, j]`.
pub fn add_scaled_rows(
    mut dst: MatMut<'_, f64>,
    src: MatRef<'_, f64>,
    weights: &[f64],
    factor: f64,
) {
    struct Loop<'a>(&'a mut [f64], &'a [f64], &'a [f64], f64);
    impl exp::Vectorised for Loop<'_> {
        type Output = ();
        #[inline(always)]
        fn run<const FMA: bool>(self) {
            for ((t, s), w) in self.0.iter_mut().zip(self.1).zip(self.2) {
                *t = exp::mul_add::<FMA>(self.3 * w, *s, *t);
            }
        }
    }
    for j in 0..src.ncols() {
        exp::dispatch(Loop(column_mut(dst.rb_mut(), j), column(src, j), weights, factor));
    }
}

/// Copies `src` into `dst` with row i multiplied by `weights[i]`.
pub fn scale_rows(mut dst: MatMut<'_, f64>, src: MatRef<'_, f64>, weights: &[f64]) {
    for j in 0..src.ncols() {
        let target = column_mut(dst.rb_mut(), j);
        for ((t, s), w) in target.iter_mut().zip(column(src, j)).zip(weights) {
            *t = s * w;
        }
    }
}

use faer::reborrow::ReborrowMut;

#[cfg(test)]
mod tests;

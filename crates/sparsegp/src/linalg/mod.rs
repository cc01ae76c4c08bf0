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
mod multiply;
mod parts;
mod products;
mod single;

pub use cholesky::{Cholesky, InverseRoot, Jitter};
pub use eigen::{inverse_square_root, left_singular, symmetric_eigen};
pub use faer::{Accum, Mat, MatMut, MatRef, Par};
pub use parts::{in_parts, stacked};
pub(crate) use products::shared;
pub use products::{Structure, multiply_lower, structured};
pub use single::{Precision, Real, SINGLE_ROUNDING, structured_in};

use faer::linalg::{triangular_inverse, triangular_solve};
use std::sync::atomic::{AtomicU64, Ordering};

const WHOLE: Structure = Structure::Rectangular;
const LOWER: Structure = Structure::TriangularLower;
const UPPER: Structure = Structure::TriangularUpper;

static FACTORISATIONS: AtomicU64 = AtomicU64::new(0);
static SOLVES: AtomicU64 = AtomicU64::new(0);

/// How many matrices have been factorised, and how many triangular systems solved (inverses of triangular
/// matrices count as such), since the program began: what a method without either is held to.
pub fn counts() -> (u64, u64) {
    (FACTORISATIONS.load(Ordering::Relaxed), SOLVES.load(Ordering::Relaxed))
}

/// Parallelism for work on an n×n matrix: sequential below the size where threads pay.
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

/// Rows of memory for a matrix with so many rows: whole lines, as `faer` has them.
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

/// Column `j` of a column-major matrix.
pub fn column<'a, T>(a: MatRef<'a, T>, j: usize) -> &'a [T] {
    a.try_as_col_major().expect("matrices here are column-major").col(j).as_slice()
}

/// Column `j` of a column-major matrix, to write.
pub fn column_mut<T>(a: MatMut<'_, T>, j: usize) -> &mut [T] {
    a.try_as_col_major_mut().expect("matrices here are column-major").col_mut(j).as_slice_mut()
}

/// The same parallelism unless the result is one column or row: products of a matrix with a vector
/// are split by threads along their sums, which would make the result depend on how many there are.
fn unless_vector(rows: usize, columns: usize, par: Par) -> Par {
    if rows == 1 || columns == 1 { Par::Seq } else { par }
}

/// Returns a variance or a square that rounding may have taken below 0 as at least 0. NaN stays NaN, where `max` would make
/// it a 0 that looks certain.
pub fn not_below_0(value: f64) -> f64 {
    if value < 0.0 { 0.0 } else { value }
}

/// `dst = alpha·a·b` (or `dst += …`), in double or single precision.
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

/// a·b, on the threads of the current pool.
pub fn product(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> Mat<f64> {
    let mut product = Mat::zeros(a.nrows(), b.ncols());
    gemm(product.as_mut(), Accum::Replace, a, b, 1.0, par_for(a.nrows()));
    product
}

/// Lower triangle of `dst = alpha·aᵀ·b` (or `dst += …`); a and b are B×M. With `a` = `b` this is the symmetric rank-B update.
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

/// `dst = a·L` (or `dst += …`) for a lower-triangular L, or `a·Lᵀ` where `transposed`.
pub fn times_triangular(
    dst: MatMut<'_, f64>,
    accum: Accum,
    a: MatRef<'_, f64>,
    l: MatRef<'_, f64>,
    transposed: bool,
    par: Par,
) {
    let right = match transposed {
        false => (l, LOWER),
        true => (l.transpose(), UPPER),
    };
    structured((dst, WHOLE), accum, (a, WHOLE), right, 1.0, par);
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
    structured((dst, LOWER), accum, (l, LOWER), (b, WHOLE), alpha, par);
}

/// Lower triangle of `dst = LᵀL` for a lower-triangular L.
pub fn inner_gram(dst: MatMut<'_, f64>, l: MatRef<'_, f64>, par: Par) {
    structured((dst, LOWER), Accum::Replace, (l.transpose(), UPPER), (l, LOWER), 1.0, par);
}

/// Lower triangle of `dst = LLᵀ` for a lower-triangular L.
pub fn outer_gram(dst: MatMut<'_, f64>, l: MatRef<'_, f64>, par: Par) {
    structured((dst, LOWER), Accum::Replace, (l, LOWER), (l.transpose(), UPPER), 1.0, par);
}

/// Solves `L X = B` in place, for L of M×M and B of M×k.
pub fn solve_lower(l: MatRef<'_, f64>, b: MatMut<'_, f64>, par: Par) {
    SOLVES.fetch_add(1, Ordering::Relaxed);
    solve(l, false, b, par);
}

/// Solves `Lᵀ X = B` in place, for L of M×M and B of M×k.
pub fn solve_lower_transpose(l: MatRef<'_, f64>, b: MatMut<'_, f64>, par: Par) {
    SOLVES.fetch_add(1, Ordering::Relaxed);
    solve(l.transpose(), true, b, par);
}

/// Triangles up to this size are left to `faer`; larger ones are halved, and what is between the halves is a product.
const LEAF: usize = 128;
/// Triangles with more rows are halved before the columns of a right-hand side are shared by threads.
const ROWS: usize = 1024;
/// Right-hand sides with as many columns are halved for threads.
const COLUMNS: usize = 384;

/// Solves `T X = B` in place for a lower or an upper triangle. Threads share what needs nothing from each other, not `faer`'s solve itself,
/// whose threads wait for each other at many small parts: with rows along the columns of B, two were no faster than one.
fn solve(t: MatRef<'_, f64>, upper: bool, b: MatMut<'_, f64>, par: Par) {
    let (rows, columns) = (b.nrows(), b.ncols());
    let par = unless_vector(rows, columns, par);
    if matches!(par, Par::Rayon(_)) && rows <= ROWS && columns >= COLUMNS {
        let (left, right) = b.split_at_col_mut((columns / 2).next_multiple_of(TILE));
        rayon::join(|| solve(t, upper, left, par), || solve(t, upper, right, par));
    } else if rows > LEAF {
        let half = (rows / 2).next_multiple_of(TILE);
        let (first, above, below, second) = t.split_at(half, half);
        let (mut top, mut bottom) = b.split_at_row_mut(half);
        if upper {
            solve(second, true, bottom.rb_mut(), par);
            gemm(top.rb_mut(), Accum::Add, above, bottom.rb(), -1.0, par);
            solve(first, true, top, par);
        } else {
            solve(first, false, top.rb_mut(), par);
            gemm(bottom.rb_mut(), Accum::Add, below, top.rb(), -1.0, par);
            solve(second, false, bottom, par);
        }
    } else if upper {
        triangular_solve::solve_upper_triangular_in_place(t, b, Par::Seq);
    } else {
        triangular_solve::solve_lower_triangular_in_place(t, b, Par::Seq);
    }
}

/// One after the other, or at the same time.
fn both(par: Par, one: impl FnOnce() + Send, other: impl FnOnce() + Send) {
    match par {
        Par::Seq => {
            one();
            other();
        }
        Par::Rayon(_) => {
            rayon::join(one, other);
        }
    }
}

/// Lower triangle of `dst = L⁻¹` for a lower-triangular L.
pub fn invert_lower(dst: MatMut<'_, f64>, l: MatRef<'_, f64>, par: Par) {
    SOLVES.fetch_add(1, Ordering::Relaxed);
    invert(dst, l, par);
}

/// By halves (Higham 2002, §14.2): the inverses of L₁₁ and L₂₂ on the diagonal, and −L₂₂⁻¹(L₂₁L₁₁⁻¹) below.
fn invert(dst: MatMut<'_, f64>, l: MatRef<'_, f64>, par: Par) {
    let n = l.nrows();
    if n <= LEAF {
        return triangular_inverse::invert_lower_triangular(dst, l, Par::Seq);
    }
    let half = (n / 2).next_multiple_of(TILE);
    let (l11, _, l21, l22) = l.split_at(half, half);
    let (mut first, _, mut below, second) = dst.split_at_mut(half, half);
    both(par, || invert(first.rb_mut(), l11, par), || invert(second, l22, par));
    let (x, factor) = ((first.rb(), LOWER), (l21, WHOLE));
    structured((below.rb_mut(), WHOLE), Accum::Replace, factor, x, -1.0, par);
    solve(l22, false, below, par);
}

/// Sets what is above the diagonal to zero.
pub fn clear_upper(mut a: MatMut<'_, f64>) {
    for j in 1..a.ncols() {
        let rows = a.nrows().min(j);
        column_mut(a.rb_mut(), j)[..rows].fill(0.0);
    }
}

/// Side of the tiles in which a matrix meets its own transpose.
const TILE: usize = 32;
/// Matrices with more entries than this are halved for the threads of the current pool.
const SHARED: usize = 256 * 256;

/// Replaces every aᵢⱼ and aⱼᵢ (i > j) by `f` of both, which is symmetric from then on.
fn with_transpose<T: Real>(a: MatMut<'_, T>, f: &(impl Fn(T, T) -> T + Sync)) {
    let n = a.nrows();
    if n <= TILE {
        return tile_with_itself(a, f);
    }
    let half = (n / 2).next_multiple_of(TILE);
    let (first, above, below, second) = a.split_at_mut(half, half);
    let own = || {
        with_transpose(first, f);
        with_transpose(second, f);
    };
    let both = |a, b| {
        let value = f(a, b);
        (value, value)
    };
    if n * n > SHARED {
        rayon::join(own, || with_other(below, above, &both));
    } else {
        own();
        with_other(below, above, &both);
    }
}

fn tile_with_itself<T: Real>(mut a: MatMut<'_, T>, f: &impl Fn(T, T) -> T) {
    for j in 0..a.ncols() {
        for i in j + 1..a.nrows() {
            let value = f(a[(i, j)], a[(j, i)]);
            a[(i, j)] = value;
            a[(j, i)] = value;
        }
    }
}

/// The same for a block and the one across the diagonal, each with a value of its own. Entries of a row are a column apart, where the caches
/// of large powers of two hold a few alone: what lies across is gathered in a tile, and written by columns.
fn with_other<T: Real>(
    mut below: MatMut<'_, T>,
    mut above: MatMut<'_, T>,
    f: &(impl Fn(T, T) -> (T, T) + Sync),
) {
    let (rows, columns) = (below.nrows(), below.ncols());
    if rows.max(columns) > TILE {
        let (pair, other) = if rows >= columns {
            let half = (rows / 2).next_multiple_of(TILE);
            let (b, a) = (below.split_at_row_mut(half), above.split_at_col_mut(half));
            ((b.0, a.0), (b.1, a.1))
        } else {
            let half = (columns / 2).next_multiple_of(TILE);
            let (b, a) = (below.split_at_col_mut(half), above.split_at_row_mut(half));
            ((b.0, a.0), (b.1, a.1))
        };
        let (first, second) =
            (|| with_other(pair.0, pair.1, f), || with_other(other.0, other.1, f));
        if rows * columns > SHARED {
            rayon::join(first, second);
        } else {
            first();
            second();
        }
        return;
    }
    let mut tile = [[T::of(0.0); TILE]; TILE];
    for (i, own) in tile.iter_mut().enumerate().take(rows) {
        own[..columns].copy_from_slice(column(above.rb(), i));
    }
    for j in 0..columns {
        for (value, row) in column_mut(below.rb_mut(), j).iter_mut().zip(tile.iter_mut()) {
            (*value, row[j]) = f(*value, row[j]);
        }
    }
    for (i, own) in tile.iter().enumerate().take(rows) {
        column_mut(above.rb_mut(), i).copy_from_slice(&own[..columns]);
    }
}

/// Calls `f` with every column of a matrix, its index and its part of `out`, on the threads of the current pool
/// if the matrix is large.
pub(crate) fn by_columns<T: Real, S: Send>(
    a: MatMut<'_, T>,
    out: &mut [S],
    f: &(impl Fn(usize, &mut [T], &mut S) + Sync),
) {
    fn part<T: Real, S: Send>(
        mut a: MatMut<'_, T>,
        out: &mut [S],
        first: usize,
        f: &(impl Fn(usize, &mut [T], &mut S) + Sync),
    ) {
        if a.nrows() * a.ncols() > SHARED {
            let half = a.ncols() / 2;
            let (left, right) = a.split_at_col_mut(half);
            let (before, after) = out.split_at_mut(half);
            rayon::join(|| part(left, before, first, f), || part(right, after, first + half, f));
            return;
        }
        for (j, own) in out.iter_mut().enumerate() {
            f(first + j, column_mut(a.rb_mut(), j), own);
        }
    }
    assert_eq!(a.ncols(), out.len());
    part(a, out, 0, f);
}

/// `dst = Lᵀ` for a lower-triangular L; what is below the diagonal of `dst` becomes 0. Gathered in tiles.
pub fn transpose_lower<T: Real>(mut dst: MatMut<'_, T>, l: MatRef<'_, T>) {
    let n = l.nrows();
    let mut tile = [[T::of(0.0); TILE]; TILE];
    for first in (0..n).step_by(TILE) {
        let rows = first..n.min(first + TILE);
        for left in (0..=first).step_by(TILE) {
            let columns = left..n.min(left + TILE);
            for (own, j) in tile.iter_mut().zip(columns.clone()) {
                own[..rows.len()].copy_from_slice(&column(l, j)[rows.clone()]);
            }
            for (at, i) in rows.clone().enumerate() {
                let column = &mut column_mut(dst.rb_mut(), i)[columns.clone()];
                column.iter_mut().zip(&tile).for_each(|(t, own)| *t = own[at]);
            }
        }
        for i in rows.clone() {
            column_mut(dst.rb_mut(), i)[i + 1..].fill(T::of(0.0));
        }
    }
}

/// Copies the lower triangle over the upper one.
pub fn mirror_lower<T: Real>(a: MatMut<'_, T>) {
    with_transpose(a, &|lower, _| lower);
}

/// `L⁻ᵀ S L⁻¹` for a symmetric S, of which the lower triangle is read; symmetric again to the last bit. M³
/// operations, where the solves from both sides have 2M³.
pub fn sandwich_inverse(l: MatRef<'_, f64>, mut s: Mat<f64>, par: Par) -> Mat<f64> {
    sandwich(l, s.as_mut(), par);
    s
}

/// Side of the blocks of [`sandwich_inverse`] that are solved from both sides.
const SANDWICH: usize = 96;

/// The same in place, by halves as in a reduction of a generalised symmetric eigenproblem: of T = L⁻ᵀSL⁻¹ with L₂₁ below the halves
/// L₁₁ and L₂₂ of the diagonal,
///
/// ```text
/// T₂₂ = L₂₂⁻ᵀ S₂₂ L₂₂⁻¹       W = L₂₂⁻ᵀ S₂₁       H = ½ T₂₂ L₂₁       X = W − H
/// T₂₁ = (X − H) L₁₁⁻¹         T₁₁ = L₁₁⁻ᵀ (S₁₁ − L₂₁ᵀX − XᵀL₂₁) L₁₁⁻¹
/// ```
pub(crate) fn sandwich(l: MatRef<'_, f64>, mut s: MatMut<'_, f64>, par: Par) {
    let n = l.nrows();
    if n <= SANDWICH {
        mirror_lower(s.rb_mut());
        solve_lower_transpose(l, s.rb_mut(), par);
        // now L⁻ᵀS; its transpose is S L⁻¹, and Lᵀ X = S L⁻¹ … from the left
        solve_lower_transpose(l, s.rb_mut().transpose_mut(), par);
        return symmetrise(s);
    }
    let half = (n / 2).next_multiple_of(TILE);
    let (mut first, mut above, mut below, mut second) = s.split_at_mut(half, half);
    let (l11, _, l21, l22) = l.split_at(half, half);
    // what is in different quarters goes on at the same time: there is little to share in a product of small halves
    both(
        par,
        || sandwich(l22, second.rb_mut(), par),
        || solve_lower_transpose(l22, below.rb_mut(), par),
    );
    // Hᵀ has its place above the diagonal, and then Xᵀ
    gemm(above.rb_mut(), Accum::Replace, l21.transpose(), second.rb(), 0.5, par);
    with_other(below.rb_mut(), above.rb_mut(), &|w: f64, h| (w - 2.0 * h, w - h));
    let x = above.rb();
    both(
        par,
        || solve_lower_transpose(l11, below.rb_mut().transpose_mut(), par),
        || {
            for (a, b) in [(l21.transpose(), x.transpose()), (x, l21)] {
                structured((first.rb_mut(), LOWER), Accum::Add, (a, WHOLE), (b, WHOLE), -1.0, par);
            }
            sandwich(l11, first.rb_mut(), par);
        },
    );
    with_other(below, above, &|t: f64, _| (t, t));
}

/// `a = ½(a + aᵀ)`.
pub fn symmetrise(a: MatMut<'_, f64>) {
    with_transpose(a, &|lower: f64, upper| 0.5 * (lower + upper));
}

/// Σᵢⱼ aᵢⱼ bᵢⱼ.
pub fn dot(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> f64 {
    (0..a.ncols()).map(|j| sum_of_products(column(a, j), column(b, j))).sum()
}

/// Sums are kept in so many parts, which the machine adds to at the same time.
const PARTS: usize = 8;

/// Σᵢ f(aᵢ).
pub fn sum<T: Real>(a: &[T], f: impl Fn(f64) -> f64) -> f64 {
    let (whole, rest) = a.as_chunks::<PARTS>();
    let mut parts = [0.0; PARTS];
    for chunk in whole {
        parts.iter_mut().zip(chunk).for_each(|(t, v)| *t += f((*v).into()));
    }
    parts.iter().sum::<f64>() + rest.iter().map(|v| f((*v).into())).sum::<f64>()
}

/// Σᵢ aᵢbᵢ.
pub fn sum_of_products<T: Real>(a: &[T], b: &[T]) -> f64 {
    struct Loop<'a, T>(&'a [T], &'a [T]);
    impl<T: Real> exp::Vectorised for Loop<'_, T> {
        type Output = f64;
        #[inline(always)]
        fn run<const FMA: bool>(self) -> f64 {
            let ((whole, rest), (other, last)) =
                (self.0.as_chunks::<PARTS>(), self.1.as_chunks::<PARTS>());
            let mut parts = [0.0; PARTS];
            for (x, y) in whole.iter().zip(other) {
                let pairs = parts.iter_mut().zip(x.iter().zip(y));
                pairs.for_each(|(t, (x, y))| *t += (*x).into() * (*y).into());
            }
            let rest = rest.iter().zip(last).map(|(x, y)| (*x).into() * (*y).into());
            parts.iter().sum::<f64>() + rest.sum::<f64>()
        }
    }
    exp::dispatch(Loop(a, b))
}

/// Adds Σⱼ aᵢⱼ bᵢⱼ to `out[i]`.
pub fn add_row_dots<T: Real>(a: MatRef<'_, T>, b: MatRef<'_, T>, out: &mut [f64]) {
    struct Loop<'a, T>(&'a [T], &'a [T], &'a mut [f64]);
    impl<T: Real> exp::Vectorised for Loop<'_, T> {
        type Output = ();
        #[inline(always)]
        fn run<const FMA: bool>(self) {
            for ((o, x), y) in self.2.iter_mut().zip(self.0).zip(self.1) {
                *o = exp::mul_add::<FMA>((*x).into(), (*y).into(), *o);
            }
        }
    }
    for j in 0..a.ncols() {
        exp::dispatch(Loop(column(a, j), column(b, j), out));
    }
}

/// `dst[i, j] += factor·weights[i]·src[i, j]`.
pub fn add_scaled_rows<T: Real>(
    mut dst: MatMut<'_, T>,
    src: MatRef<'_, T>,
    weights: &[f64],
    factor: f64,
) {
    struct Loop<'a, T>(&'a mut [T], &'a [T], &'a [f64], f64);
    impl<T: Real> exp::Vectorised for Loop<'_, T> {
        type Output = ();
        #[inline(always)]
        fn run<const FMA: bool>(self) {
            for ((t, s), w) in self.0.iter_mut().zip(self.1).zip(self.2) {
                *t = T::of(exp::mul_add::<FMA>(self.3 * w, (*s).into(), (*t).into()));
            }
        }
    }
    for j in 0..src.ncols() {
        exp::dispatch(Loop(column_mut(dst.rb_mut(), j), column(src, j), weights, factor));
    }
}

/// Copies `src` into `dst` with row i multiplied by `weights[i]`.
pub fn scale_rows<T: Real>(mut dst: MatMut<'_, T>, src: MatRef<'_, T>, weights: &[f64]) {
    struct Loop<'a, T>(&'a mut [T], &'a [T], &'a [f64]);
    impl<T: Real> exp::Vectorised for Loop<'_, T> {
        type Output = ();
        #[inline(always)]
        fn run<const FMA: bool>(self) {
            for ((t, s), w) in self.0.iter_mut().zip(self.1).zip(self.2) {
                *t = T::of((*s).into() * w);
            }
        }
    }
    for j in 0..src.ncols() {
        exp::dispatch(Loop(column_mut(dst.rb_mut(), j), column(src, j), weights));
    }
}

use faer::reborrow::{Reborrow, ReborrowMut};

#[cfg(test)]
mod tests;

//! Products in which some factor or the result is triangular, and how large ones are shared among threads.

use super::multiply::multiply;
use super::{Accum, LEAF, Mat, MatMut, MatRef, Par, Real, sized, unless_vector};
use faer::linalg::matmul::triangular;
pub use faer::linalg::matmul::triangular::BlockStructure as Structure;
use faer::reborrow::{Reborrow, ReborrowMut};
use std::cell::Cell;

const WHOLE: Structure = Structure::Rectangular;

/// Computes `dst = alpha·a·b` (or `dst += …`) where each of the three is read, or written, only
/// within its structure.
pub fn structured(
    dst: (MatMut<'_, f64>, Structure),
    accum: Accum,
    a: (MatRef<'_, f64>, Structure),
    b: (MatRef<'_, f64>, Structure),
    alpha: f64,
    par: Par,
) {
    shared(dst, accum, a, b, alpha, par);
}

/// On one thread (`Par::Seq`) triangles up to this size are left to `faer`: it multiplies them faster whole than halved.
const LEAF_ALONE: usize = 256;
/// Products of rectangular matrices with no more multiplications than this are not divided.
const WORK: usize = 256 * 256 * 256;
/// Parts for every thread: more than one, for threads that have other things to do, but few, since the factors of each are packed.
const PARTS: usize = 4;

/// Computes a product on one thread, or divided among the threads of the current pool. How
/// triangles are divided depends only on their size; rectangles are divided for as many threads as
/// there are, but nowhere along a sum: the bits of the result are the same.
pub(crate) fn shared<T: Real>(
    (dst, of_dst): (MatMut<'_, T>, Structure),
    accum: Accum,
    (a, of_a): (MatRef<'_, T>, Structure),
    (b, of_b): (MatRef<'_, T>, Structure),
    alpha: T,
    par: Par,
) {
    let alone = matches!(unless_vector(dst.nrows(), dst.ncols(), par), Par::Seq);
    Halves { of_dst, of_a, of_b, alpha, alone }.product(dst, accum, a, b);
}

fn is_whole(structure: Structure) -> bool {
    matches!(structure, Structure::Rectangular)
}

/// Returns the number of multiplications in the largest part of a product of so many: there are
/// parts for everyone. What is divided at all is large enough that [`multiply`] has the same
/// library for the whole and for its parts.
fn largest_part(multiplications: usize) -> usize {
    match rayon::current_num_threads() {
        1 => multiplications,
        threads => WORK.max(multiplications / (PARTS * threads)),
    }
}

/// Computes a product of rectangular matrices, the longer side of the result halved until no part
/// has more than `most` multiplications.
fn divided<T: Real>(
    dst: MatMut<'_, T>,
    accum: Accum,
    (a, b): (MatRef<'_, T>, MatRef<'_, T>),
    alpha: T,
    most: usize,
) {
    let (rows, columns) = (dst.nrows(), dst.ncols());
    if rows * columns * a.ncols() <= most || rows.max(columns) < 2 * T::TILE {
        return multiply(dst, accum, a, b, alpha);
    }
    if rows > columns {
        let half = half::<T>(rows);
        let ((a1, a2), (d1, d2)) = (a.split_at_row(half), dst.split_at_row_mut(half));
        rayon::join(
            || divided(d1, accum, (a1, b), alpha, most),
            || divided(d2, accum, (a2, b), alpha, most),
        );
    } else {
        let half = half::<T>(columns);
        let ((b1, b2), (d1, d2)) = (b.split_at_col(half), dst.split_at_col_mut(half));
        rayon::join(
            || divided(d1, accum, (a, b1), alpha, most),
            || divided(d2, accum, (a, b2), alpha, most),
        );
    }
}

/// Returns the size of a half: halves are multiples of the tiles of the machine.
fn half<T: Real>(size: usize) -> usize {
    (size / 2).next_multiple_of(T::TILE)
}

/// Returns the part of a matrix of some structure in one of its four quarters; none if it is empty.
fn quarter(structure: Structure, row: usize, column: usize) -> Option<Structure> {
    let inside = match structure {
        Structure::Rectangular => return Some(WHOLE),
        Structure::TriangularUpper => row < column,
        _ => row > column,
    };
    if row == column { Some(structure) } else { inside.then_some(WHOLE) }
}

/// A product with a triangle somewhere: what is triangular is quartered, the rest is halved along with it.
#[derive(Clone, Copy)]
struct Halves<T> {
    of_dst: Structure,
    of_a: Structure,
    of_b: Structure,
    alpha: T,
    /// On this thread only.
    alone: bool,
}

impl<T: Real> Halves<T> {
    fn product(self, dst: MatMut<'_, T>, accum: Accum, a: MatRef<'_, T>, b: MatRef<'_, T>) {
        let Self { of_dst, of_a, of_b, alpha, alone } = self;
        if is_whole(of_dst) && is_whole(of_a) && is_whole(of_b) {
            if alone {
                return multiply(dst, accum, a, b, alpha);
            }
            let most = largest_part(dst.nrows() * dst.ncols() * a.ncols());
            return divided(dst, accum, (a, b), alpha, most);
        }
        let (rows, columns) = self.cuts();
        let size = if rows { dst.nrows() } else { dst.ncols() };
        if size <= if alone { LEAF_ALONE } else { LEAF } {
            return triangular::matmul(dst, of_dst, accum, a, of_a, b, of_b, alpha, Par::Seq);
        }
        let cut = half::<T>(size);
        if columns {
            let (left, right) = dst.split_at_col_mut(cut);
            self.join(
                || self.column(left, accum, (a, b), cut, 0),
                || self.column(right, accum, (a, b), cut, 1),
            );
        } else {
            self.column(dst, accum, (a, b), cut, 0);
        }
    }

    fn join(self, first: impl FnOnce() + Send, second: impl FnOnce() + Send) {
        if self.alone {
            first();
            second();
        } else {
            rayon::join(first, second);
        }
    }

    /// Returns whether rows and whether columns of the result are halved.
    fn cuts(self) -> (bool, bool) {
        let (dst, a, b) = (is_whole(self.of_dst), is_whole(self.of_a), is_whole(self.of_b));
        (!dst || !a, !dst || !b)
    }

    /// Computes all of the result, or the left or the right half of it.
    fn column(
        self,
        dst: MatMut<'_, T>,
        accum: Accum,
        factors: (MatRef<'_, T>, MatRef<'_, T>),
        cut: usize,
        column: usize,
    ) {
        if self.cuts().0 {
            let (upper, lower) = dst.split_at_row_mut(cut);
            self.join(
                || self.block(upper, accum, factors, cut, (0, column)),
                || self.block(lower, accum, factors, cut, (1, column)),
            );
        } else {
            self.block(dst, accum, factors, cut, (0, column));
        }
    }

    /// Computes one block of the result: the sum over one or two blocks of either factor.
    fn block(
        self,
        mut dst: MatMut<'_, T>,
        mut accum: Accum,
        (a, b): (MatRef<'_, T>, MatRef<'_, T>),
        cut: usize,
        (row, column): (usize, usize),
    ) {
        let (rows, columns) = self.cuts();
        let Some(of_dst) = quarter(self.of_dst, row, column) else { return };
        let inner = !is_whole(self.of_a) || !is_whole(self.of_b);
        for at in 0..1 + usize::from(inner) {
            let (of_a, of_b) = (quarter(self.of_a, row, at), quarter(self.of_b, at, column));
            let (Some(of_a), Some(of_b)) = (of_a, of_b) else { continue };
            let a = part(part(a, rows, cut, row).transpose(), inner, cut, at).transpose();
            let b = part(part(b, inner, cut, at).transpose(), columns, cut, column).transpose();
            Self { of_dst, of_a, of_b, ..self }.product(dst.rb_mut(), accum, a, b);
            accum = Accum::Add;
        }
        // an upper times an upper triangle has nothing below
        if matches!(accum, Accum::Replace) {
            dst.fill(T::of(0.0));
        }
    }
}

/// Returns the first or the second half of the rows, or all where they are not cut.
fn part<T>(a: MatRef<'_, T>, is_cut: bool, cut: usize, at: usize) -> MatRef<'_, T> {
    match (is_cut, at) {
        (false, _) => a,
        (true, 0) => a.split_at_row(cut).0,
        (true, _) => a.split_at_row(cut).1,
    }
}

/// Columns below which a product in place goes by a copy.
const SMALL: usize = 128;

thread_local! {
    /// A copy of a few columns.
    static COPY: Cell<Option<Mat<f64>>> = const { Cell::new(None) };
}

/// Computes `x = x·L` for a lower-triangular L, or `x = x·Lᵀ` where `transposed`, in place: M²B
/// operations for a block of B×M. Halves of the columns are multiplied for themselves, and what
/// passes between them is an ordinary product.
pub fn multiply_lower(x: MatMut<'_, f64>, l: MatRef<'_, f64>, transposed: bool) {
    let m = l.nrows();
    if m <= SMALL {
        let mut copy = COPY.take().unwrap_or_else(Mat::new);
        sized(&mut copy, x.nrows(), m);
        copy.copy_from(x.rb());
        super::times_triangular(x, Accum::Replace, copy.as_ref(), l, transposed, Par::Seq);
        COPY.set(Some(copy));
        return;
    }
    let half = (m / 2).next_multiple_of(16);
    let (mut first, mut second) = x.split_at_col_mut(half);
    let (head, rest) = (l.submatrix(0, 0, half, half), m - half);
    let (below, tail) = (l.submatrix(half, 0, rest, half), l.submatrix(half, half, rest, rest));
    if transposed {
        multiply_lower(second.rb_mut(), tail, true);
        super::gemm(second, Accum::Add, first.rb(), below.transpose(), 1.0, Par::Seq);
        multiply_lower(first, head, true);
    } else {
        multiply_lower(first.rb_mut(), head, false);
        super::gemm(first, Accum::Add, second.rb(), below, 1.0, Par::Seq);
        multiply_lower(second, tail, false);
    }
}

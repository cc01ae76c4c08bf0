//! Matrices beside their transposes, in tiles.

use super::{MatMut, MatRef, Real, column, column_mut, join};
use faer::reborrow::{Reborrow, ReborrowMut};

/// Side of the tiles in which a matrix meets its own transpose.
pub(super) const TILE: usize = 32;
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
        join(own, || with_other(below, above, &both));
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

/// Does the same for a block and the one across the diagonal, each with its own value. Entries of a
/// row are a column apart, where the caches of large powers of two hold only a few: what lies
/// across is gathered in a tile, and written by columns.
pub(super) fn with_other<T: Real>(
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
            join(first, second);
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
            join(|| part(left, before, first, f), || part(right, after, first + half, f));
            return;
        }
        for (j, own) in out.iter_mut().enumerate() {
            f(first + j, column_mut(a.rb_mut(), j), own);
        }
    }
    assert_eq!(a.ncols(), out.len());
    part(a, out, 0, f);
}

/// Computes `dst = Lᵀ` for a lower-triangular L; what is below the diagonal of `dst` becomes 0.
/// Gathered in tiles.
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

/// Computes `a = ½(a + aᵀ)`.
pub fn symmetrise(a: MatMut<'_, f64>) {
    with_transpose(a, &|lower: f64, upper| 0.5 * (lower + upper));
}

//! The inner loops of radial kernels, column by column.

use super::Correlation;
use crate::linalg::exp::{Vectorised, dispatch};
use crate::linalg::{MatMut, MatRef, column, column_mut, join, sum, sum_of_products};
use faer::reborrow::ReborrowMut;

/// No correlation is below this. It is far below the rounding of any sum it enters, and it anchors
/// what triangular solves make of it: without a floor, products of tiny correlations die away into
/// subnormal numbers, on which processors are a hundred times slower.
pub(in crate::kernels) const FLOOR: f64 = 1e-30;

/// No squared distance is above this: products of its correlation, which is 0 for all but the heaviest tails, with powers of
/// it stay numbers, and 0·∞ is none.
const FARTHEST: f64 = 1e280;

pub(super) fn squared_norms(x: MatRef<f64>, norms: &mut [f64]) {
    norms.fill(0.0);
    for q in 0..x.ncols() {
        for (n, v) in norms.iter_mut().zip(column(x, q)) {
            *n += v * v;
        }
    }
}

/// One column of squared distances becomes one of covariances, and what their pull-back needs is put
/// aside.
pub(super) struct Values<'a, C> {
    /// ϱ² on entry, σ²κ afterwards.
    pub(super) out: &'a mut [f64],
    /// Where σ²κ′ goes.
    pub(super) slopes: Option<&'a mut [f64]>,
    /// Where the slopes in the shape parameters go, one column for each.
    pub(super) shapes: Option<MatMut<'a, f64>>,
    pub(super) variance: f64,
    pub(super) correlation: C,
}

impl<C: Correlation> Vectorised for Values<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { out, slopes, shapes, variance, correlation } = self;
        out.iter_mut().for_each(|d2| *d2 = if *d2 > FARTHEST { FARTHEST } else { *d2 });
        if let Some(mut shapes) = shapes {
            for s in 0..shapes.ncols() {
                let targets = column_mut(shapes.rb_mut(), s);
                for (t, d2) in targets.iter_mut().zip(out.iter()) {
                    let (value, _) = correlation.value_and_slope::<FMA>(*d2);
                    let slope = correlation.shape_slope::<FMA>(s, *d2);
                    *t = if value < FLOOR { 0.0 } else { variance * slope };
                }
            }
        }
        match slopes {
            None => {
                for o in out.iter_mut() {
                    let (value, _) = correlation.value_and_slope::<FMA>(*o);
                    *o = variance * if value < FLOOR { FLOOR } else { value };
                }
            }
            Some(slopes) => {
                for (o, s) in out.iter_mut().zip(slopes) {
                    let (value, slope) = correlation.value_and_slope::<FMA>(*o);
                    *o = variance * if value < FLOOR { FLOOR } else { value };
                    *s = if value < FLOOR { 0.0 } else { variance * slope };
                }
            }
        }
    }
}

/// What a pull-back needs of one column, if there will be one: slopes in ϱ², and in the shape parameters.
pub(super) struct Of<'a> {
    pub(super) slopes: Option<&'a mut [f64]>,
    pub(super) shapes: Option<MatMut<'a, f64>>,
}

impl Of<'_> {
    pub(super) fn rb_mut(&mut self) -> Of<'_> {
        Of {
            slopes: self.slopes.as_deref_mut(),
            shapes: self.shapes.as_mut().map(|shapes| shapes.rb_mut()),
        }
    }
}

/// Returns the number of columns before the half that is nearest to whole chunks.
fn half(columns: usize, chunk: usize) -> usize {
    (columns / 2).next_multiple_of(chunk)
}

/// Calls `f` with every column, its index from `first` on and what is recorded of it; the threads of the current pool share chunks
/// of columns. (Of `linalg::by_columns` a list of what belongs to every column would have to be made each time, and blocks of rows,
/// which are one thread's work, would be shared too.)
pub(super) fn fill_columns(
    mut out: MatMut<'_, f64>,
    [mut slopes, mut shapes]: [Option<MatMut<'_, f64>>; 2],
    first: usize,
    chunk: usize,
    f: &(impl Fn(usize, &mut [f64], Of<'_>) + Sync),
) {
    let columns = out.ncols();
    // those of a column stand side by side
    let count = shapes.as_ref().map_or(0, |shapes| shapes.ncols() / columns.max(1));
    if columns > chunk {
        let half = half(columns, chunk);
        let (left, right) = out.split_at_col_mut(half);
        let (mut before, mut after) = ([None, None], [None, None]);
        for (at, (record, width)) in
            [(slopes, half), (shapes, half * count)].into_iter().enumerate()
        {
            (before[at], after[at]) = record.map(|r| r.split_at_col_mut(width)).unzip();
        }
        join(
            || fill_columns(left, before, first, chunk, f),
            || fill_columns(right, after, first + half, chunk, f),
        );
        return;
    }
    for j in 0..columns {
        let own = Of {
            slopes: slopes.as_mut().map(|slopes| column_mut(slopes.rb_mut(), j)),
            shapes: shapes.as_mut().map(|shapes| shapes.rb_mut().subcols_mut(j * count, count)),
        };
        f(first + j, column_mut(out.rb_mut(), j), own);
    }
}

/// All columns of H = K̄ ∘ slope in place, with column sums and, for every chunk of columns, row sums.
pub(super) struct Weighing<'a> {
    pub(super) k: MatRef<'a, f64>,
    pub(super) k_bar: MatMut<'a, f64>,
    pub(super) slopes: Option<MatRef<'a, f64>>,
    pub(super) factor: f64,
    pub(super) row_sums: MatMut<'a, f64>,
    pub(super) column_sums: &'a mut [f64],
}

impl Weighing<'_> {
    /// Returns Σ K̄∘K. The threads of the current pool share chunks of so many columns; the sums
    /// depend only on their number.
    pub(super) fn run(self, chunk: usize) -> f64 {
        let Self { k, mut k_bar, slopes, factor, mut row_sums, column_sums } = self;
        if k.ncols() > chunk {
            let half = half(k.ncols(), chunk);
            let (k, k_bar) = (k.split_at_col(half), k_bar.split_at_col_mut(half));
            let slopes = slopes.map(|slopes| slopes.split_at_col(half)).unzip();
            let row_sums = row_sums.split_at_col_mut(half / chunk);
            let column_sums = column_sums.split_at_mut(half);
            let part = |k, k_bar, slopes, row_sums, column_sums| Weighing {
                k,
                k_bar,
                slopes,
                factor,
                row_sums,
                column_sums,
            };
            let left = part(k.0, k_bar.0, slopes.0, row_sums.0, column_sums.0);
            let right = part(k.1, k_bar.1, slopes.1, row_sums.1, column_sums.1);
            let (mut before, mut after) = (0.0, 0.0);
            join(|| before = left.run(chunk), || after = right.run(chunk));
            return before + after;
        }
        row_sums.fill(0.0);
        let mut weighted = 0.0;
        for (j, column_sum) in column_sums.iter_mut().enumerate() {
            let (k_bar, k) = (column_mut(k_bar.rb_mut(), j), column(k, j));
            weighted += sum_of_products(k_bar, k);
            let slopes = slopes.map_or(k, |slopes| column(slopes, j));
            let row_sums = column_mut(row_sums.rb_mut(), 0);
            dispatch(Weigh { k_bar: &mut *k_bar, slopes, factor, row_sums });
            *column_sum = sum(k_bar, |h| h);
        }
        weighted
    }
}

/// Squared distances of one column, then [`Values`].
pub(super) struct Column<'a, C> {
    /// Holds −2 xᵢᵀz on entry unless `direct`.
    pub(super) values: Values<'a, C>,
    pub(super) x: MatRef<'a, f64>,
    pub(super) z: MatRef<'a, f64>,
    pub(super) j: usize,
    pub(super) x_norms: &'a [f64],
    pub(super) z_norm: f64,
    pub(super) direct: bool,
}

impl<C: Correlation> Vectorised for Column<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { values, x, z, j, x_norms, z_norm, direct } = self;
        if direct {
            values.out.fill(0.0);
            for q in 0..x.ncols() {
                let zq = z[(j, q)];
                for (o, v) in values.out.iter_mut().zip(column(x, q)) {
                    let difference = v - zq;
                    *o = crate::linalg::exp::mul_add::<FMA>(difference, difference, *o);
                }
            }
        } else {
            for (o, n) in values.out.iter_mut().zip(x_norms) {
                let d2 = *o + (n + z_norm);
                *o = if d2 < 0.0 { 0.0 } else { d2 };
            }
        }
        values.run::<FMA>();
    }
}

/// One column of H = K̄ ∘ slope in place, added to the row sums. Nothing else at the same time: with sums in the same loop it became vectors of
/// two numbers.
struct Weigh<'a> {
    k_bar: &'a mut [f64],
    slopes: &'a [f64],
    factor: f64,
    row_sums: &'a mut [f64],
}

impl Vectorised for Weigh<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { k_bar, slopes, factor, row_sums } = self;
        for ((b, slope), row) in k_bar.iter_mut().zip(slopes).zip(row_sums) {
            let h = *b * slope * factor;
            *b = h;
            *row += h;
        }
    }
}

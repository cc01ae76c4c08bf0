//! The inner loops of radial kernels, column by column.

use super::Correlation;
use crate::linalg::exp::Vectorised;
use crate::linalg::{MatMut, MatRef, column, column_mut};
use faer::reborrow::ReborrowMut;

/// No correlation is below this. It is far below the rounding of any sum it enters, and it anchors
/// what triangular solves make of it: without a floor, products of tiny correlations die away into
/// subnormal numbers, on which processors are a hundred times slower.
const FLOOR: f64 = 1e-30;

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

/// One column of H = K̄ ∘ slope in place; returns its sum and Σ K̄∘K, adds to the row sums.
pub(super) struct Weigh<'a> {
    pub(super) k_bar: &'a mut [f64],
    pub(super) k: &'a [f64],
    pub(super) slopes: Option<&'a [f64]>,
    pub(super) factor: f64,
    pub(super) row_sums: &'a mut [f64],
}

impl Vectorised for Weigh<'_> {
    type Output = (f64, f64);

    #[inline(always)]
    fn run<const FMA: bool>(self) -> (f64, f64) {
        // one thing at a time: all of it in one loop over eight numbers becomes vectors of two
        let Self { k_bar, k, slopes, factor, row_sums } = self;
        let dot = sum_in_parts(k_bar.as_chunks(), k.as_chunks(), |b, k| b * k);
        let slopes = slopes.unwrap_or(k);
        for ((b, slope), row) in k_bar.iter_mut().zip(slopes).zip(row_sums) {
            let h = *b * slope * factor;
            *b = h;
            *row += h;
        }
        let h = k_bar.as_chunks();
        (sum_in_parts(h, h, |h, _| h), dot)
    }
}

/// Eight numbers at a time, and those that are left.
type Chunks<'a> = (&'a [[f64; 8]], &'a [f64]);

/// Σ f(aᵢ, bᵢ) in eight partial sums, so that it may run in vectors in a fixed order.
#[inline(always)]
fn sum_in_parts(a: Chunks<'_>, b: Chunks<'_>, f: impl Fn(f64, f64) -> f64) -> f64 {
    let mut parts = [0.0; 8];
    for (a, b) in a.0.iter().zip(b.0) {
        parts.iter_mut().zip(a.iter().zip(b)).for_each(|(part, (a, b))| *part += f(*a, *b));
    }
    let left: f64 = a.1.iter().zip(b.1).map(|(a, b)| f(*a, *b)).sum();
    parts.iter().sum::<f64>() + left
}

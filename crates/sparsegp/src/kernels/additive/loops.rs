//! The inner loops of additive kernels: columns of covariances, in strips of rows that stay in the cache.

use crate::kernels::radial::{FLOOR, Profile};
use crate::linalg::exp::{Vectorised, dispatch, mul_add};
use crate::linalg::{Mat, MatMut, MatRef, column, column_mut, join, sum, sum_of_products};
use faer::reborrow::ReborrowMut;
use std::marker::PhantomData;
use std::ops::Range;

/// Rows of a strip.
const STRIP: usize = 256;
/// Columns of K(X) that one thread works on.
const CHUNK: usize = 64;
/// No scaled difference is above this, so that its square is a number.
const FARTHEST: f64 = 1e140;

/// Rows against rows, with what weighs them.
pub(super) struct Task<'a> {
    pub(super) x: MatRef<'a, f64>,
    pub(super) z: MatRef<'a, f64>,
    /// The active columns of both.
    pub(super) dims: &'a [usize],
    /// 1/ℓ of each.
    pub(super) inverse: Vec<f64>,
    /// v_d/C(D, d).
    pub(super) weights: Vec<f64>,
    /// Whether z is x: then only what is on and below the diagonal is looked at.
    pub(super) same: bool,
}

/// Sums of slopes.
pub(super) struct Slopes {
    /// Σ k̄ e_d.
    pub(super) polynomials: Vec<f64>,
    /// By −log ℓ_q.
    pub(super) lengths: Vec<f64>,
    /// By the active columns of x, if asked for.
    pub(super) x: Mat<f64>,
    /// And of z.
    pub(super) z: Mat<f64>,
}

impl Slopes {
    fn add(mut self, other: &Self) -> Self {
        let add = |own: &mut [f64], other: &[f64]| {
            own.iter_mut().zip(other).for_each(|(t, v)| *t += v);
        };
        add(&mut self.polynomials, &other.polynomials);
        add(&mut self.lengths, &other.lengths);
        self.x += &other.x;
        self.z += &other.z;
        self
    }
}

/// Memory for one strip: of every quantity the values of the rows, input by input or order by order.
struct Memory {
    /// (x − z)/ℓ.
    differences: Vec<f64>,
    /// z_q.
    correlations: Vec<f64>,
    /// ∂z_q/∂ϱ².
    slopes: Vec<f64>,
    /// e₁ … e_R; where slopes follow, of no input, of the first, of the first two, ….
    polynomials: Vec<f64>,
    /// Cotangents of e₁ … e_R.
    bars: Vec<f64>,
    /// Cotangent of k.
    bar: Vec<f64>,
    /// Cotangent of the differences of one input.
    along: Vec<f64>,
}

impl Memory {
    fn for_values(order: usize) -> Self {
        let of = |count: usize| vec![0.0; count * STRIP];
        Self {
            differences: Vec::new(),
            correlations: of(1),
            slopes: Vec::new(),
            polynomials: of(order),
            bars: Vec::new(),
            bar: Vec::new(),
            along: Vec::new(),
        }
    }

    fn for_slopes(inputs: usize, order: usize) -> Self {
        let of = |count: usize| vec![0.0; count * STRIP];
        Self {
            differences: of(inputs),
            correlations: of(inputs),
            slopes: of(inputs),
            polynomials: of((inputs + 1) * order),
            bars: of(order),
            bar: of(1),
            along: of(1),
        }
    }
}

/// Returns (x − z)/ℓ as a number whose square is one.
#[inline(always)]
fn difference(x: f64, z: f64, inverse: f64) -> f64 {
    let difference = (x - z) * inverse;
    let difference = if difference > FARTHEST { FARTHEST } else { difference };
    if difference < -FARTHEST { -FARTHEST } else { difference }
}

/// Updates e_d ← e_d + z e_{d−1}, the highest first.
#[inline(always)]
fn add_input<const FMA: bool>(e: &mut [f64], correlations: &[f64]) {
    let n = correlations.len();
    for d in (1..e.len() / n).rev() {
        let (below, own) = e.split_at_mut(d * n);
        let below = &below[(d - 1) * n..];
        for ((own, below), z) in own[..n].iter_mut().zip(below).zip(correlations) {
            *own = mul_add::<FMA>(*z, *below, *own);
        }
    }
    e[..n].iter_mut().zip(correlations).for_each(|(own, z)| *own += z);
}

/// A strip of rows with row j of z.
struct Strip<'a, P> {
    task: &'a Task<'a>,
    rows: Range<usize>,
    j: usize,
    memory: &'a mut Memory,
    base: PhantomData<P>,
}

/// Covariances of a strip.
struct Values<'a, P> {
    strip: Strip<'a, P>,
    out: &'a mut [f64],
}

impl<P: Profile> Vectorised for Values<'_, P> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { strip: Strip { task, rows, j, memory, .. }, out } = self;
        let n = rows.len();
        let e = &mut memory.polynomials[..n * task.weights.len()];
        e.fill(0.0);
        let correlations = &mut memory.correlations[..n];
        for (&d, inverse) in task.dims.iter().zip(&task.inverse) {
            let (x, z) = (&column(task.x, d)[rows.clone()], task.z[(j, d)]);
            for (own, x) in correlations.iter_mut().zip(x) {
                let difference = difference(*x, z, *inverse);
                let (value, _) = P::value_and_slope::<FMA>(difference * difference);
                *own = if value < FLOOR { FLOOR } else { value };
            }
            add_input::<FMA>(e, correlations);
        }
        out.fill(0.0);
        for (e, weight) in e.chunks_exact(n).zip(&task.weights) {
            for (o, e) in out.iter_mut().zip(e) {
                *o = mul_add::<FMA>(*weight, *e, *o);
            }
        }
    }
}

/// What the pull-back of a strip needs: differences, correlations, their slopes, and polynomials.
struct Forward<'a, P>(Strip<'a, P>);

impl<P: Profile> Vectorised for Forward<'_, P> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Strip { task, rows, j, memory, .. } = self.0;
        let n = rows.len();
        let all = n * task.weights.len();
        memory.polynomials[..all].fill(0.0);
        for (q, (&d, inverse)) in task.dims.iter().zip(&task.inverse).enumerate() {
            let own = q * n..(q + 1) * n;
            let (x, z) = (&column(task.x, d)[rows.clone()], task.z[(j, d)]);
            let differences = &mut memory.differences[own.clone()];
            differences.iter_mut().zip(x).for_each(|(own, x)| *own = difference(*x, z, *inverse));
            // in place, as two results at once are vectors only so
            let correlations = &mut memory.correlations[own.clone()];
            let squares = correlations.iter_mut().zip(differences.iter());
            squares.for_each(|(own, difference)| *own = difference * difference);
            for (own, slope) in correlations.iter_mut().zip(&mut memory.slopes[own]) {
                let (value, by_square) = P::value_and_slope::<FMA>(*own);
                *own = if value < FLOOR { FLOOR } else { value };
                *slope = if value < FLOOR { 0.0 } else { by_square };
            }
            let (before, after) = memory.polynomials.split_at_mut((q + 1) * all);
            let after = &mut after[..all];
            after.copy_from_slice(&before[q * all..]);
            add_input::<FMA>(after, correlations);
        }
    }
}

/// The cotangent of the differences of input q from those of the polynomials, which become those of the
/// polynomials without it.
struct Backward<'a> {
    memory: &'a mut Memory,
    q: usize,
    n: usize,
    order: usize,
}

impl Vectorised for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { memory, q, n, order } = self;
        let (before, own) = (&memory.polynomials[q * order * n..], q * n..(q + 1) * n);
        let correlations = &memory.correlations[own.clone()];
        // z̄ = ē₁ + Σ ē_d e_{d−1}
        let along = &mut memory.along[..n];
        along.copy_from_slice(&memory.bars[..n]);
        for d in 1..order {
            let (before, bars) = (&before[(d - 1) * n..], &memory.bars[d * n..]);
            for ((own, e), bar) in along.iter_mut().zip(before).zip(bars) {
                *own = mul_add::<FMA>(*bar, *e, *own);
            }
        }
        // ē_d ← ē_d + z ē_{d+1}, the lowest first
        for d in 1..order {
            let (below, bars) = memory.bars.split_at_mut(d * n);
            let below = &mut below[(d - 1) * n..];
            for ((own, bar), z) in below.iter_mut().zip(bars).zip(correlations) {
                *own = mul_add::<FMA>(*z, *bar, *own);
            }
        }
        let slopes = memory.slopes[own.clone()].iter().zip(&memory.differences[own]);
        for (own, (slope, difference)) in along.iter_mut().zip(slopes) {
            *own *= 2.0 * slope * difference;
        }
    }
}

impl Task<'_> {
    /// Strips of the rows of column j.
    fn strips(&self, j: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let (first, count) = (if self.same { j } else { 0 }, self.x.nrows());
        (first..count).step_by(STRIP).map(move |from| from..count.min(from + STRIP))
    }

    /// Computes covariances with rows of z from `first` on; of K(X) the lower triangle, shared by
    /// threads.
    pub(super) fn fill<P: Profile>(&self, mut out: MatMut<'_, f64>, first: usize) {
        if self.same && out.ncols() > CHUNK {
            let half = out.ncols() / 2;
            let (left, right) = out.split_at_col_mut(half);
            join(|| self.fill::<P>(left, first), || self.fill::<P>(right, first + half));
            return;
        }
        let mut memory = Memory::for_values(self.weights.len());
        for at in 0..out.ncols() {
            let out = column_mut(out.rb_mut(), at);
            for rows in self.strips(first + at) {
                let out = &mut out[rows.clone()];
                let (j, memory) = (first + at, &mut memory);
                let strip = Strip { task: self, rows, j, memory, base: PhantomData::<P> };
                dispatch(Values { strip, out });
            }
        }
    }

    /// Returns the slopes of Σ k̄ k over some columns, those of x if asked for; of K(X) the sums
    /// are shared by threads and depend on the number of rows only.
    pub(super) fn pull<P: Profile>(
        &self,
        k_bar: MatRef<'_, f64>,
        columns: Range<usize>,
        to_x: bool,
    ) -> Slopes {
        if self.same && columns.len() > CHUNK {
            let half = columns.start + columns.len() / 2;
            let (left, right) = rayon::join(
                || self.pull::<P>(k_bar, columns.start..half, to_x),
                || self.pull::<P>(k_bar, half..columns.end, to_x),
            );
            return left.add(&right);
        }
        let (inputs, order) = (self.dims.len(), self.weights.len());
        let mut slopes = Slopes {
            polynomials: vec![0.0; order],
            lengths: vec![0.0; inputs],
            x: Mat::zeros(if to_x { self.x.nrows() } else { 0 }, inputs),
            z: Mat::zeros(self.z.nrows(), inputs),
        };
        let mut memory = Memory::for_slopes(inputs, order);
        for j in columns {
            for rows in self.strips(j) {
                self.gather(k_bar, &rows, j, &mut memory.bar);
                let (own, memory) = (rows.clone(), &mut memory);
                dispatch(Forward(Strip {
                    task: self,
                    rows: own,
                    j,
                    memory,
                    base: PhantomData::<P>,
                }));
                self.pull_strip(&rows, j, memory, &mut slopes);
            }
        }
        slopes
    }

    /// Gathers cotangents of a strip; of K(X) both entries of a pair.
    fn gather(&self, k_bar: MatRef<'_, f64>, rows: &Range<usize>, j: usize, bar: &mut [f64]) {
        bar[..rows.len()].copy_from_slice(&column(k_bar, j)[rows.clone()]);
        if self.same {
            let pairs = bar.iter_mut().zip(rows.clone()).filter(|(_, i)| *i != j);
            pairs.for_each(|(bar, i)| *bar += k_bar[(j, i)]);
        }
    }

    /// Adds what a strip whose [`Forward`] is in memory contributes.
    fn pull_strip(&self, rows: &Range<usize>, j: usize, memory: &mut Memory, slopes: &mut Slopes) {
        let (inputs, order, n) = (self.dims.len(), self.weights.len(), rows.len());
        let all = &memory.polynomials[inputs * order * n..];
        let sums = slopes.polynomials.iter_mut().zip(&self.weights);
        for (d, (sum, weight)) in sums.enumerate() {
            *sum += sum_of_products(&memory.bar[..n], &all[d * n..(d + 1) * n]);
            let bars = &mut memory.bars[d * n..(d + 1) * n];
            bars.iter_mut().zip(&memory.bar).for_each(|(own, bar)| *own = weight * bar);
        }
        for q in (0..inputs).rev() {
            dispatch(Backward { memory, q, n, order });
            let along = &memory.along[..n];
            let differences = &memory.differences[q * n..(q + 1) * n];
            slopes.lengths[q] += sum_of_products(along, differences);
            let inverse = self.inverse[q];
            slopes.z[(j, q)] -= inverse * sum(along, |v| v);
            if slopes.x.nrows() > 0 {
                let to = &mut slopes.x.col_as_slice_mut(q)[rows.clone()];
                to.iter_mut().zip(along).for_each(|(t, v)| *t += inverse * v);
            }
        }
    }
}

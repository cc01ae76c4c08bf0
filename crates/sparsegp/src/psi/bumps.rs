//! ψ₁ and ψ₂ of squared exponentials: all inducing points, and all pairs of them, for one block of rows.

use super::cloud::{Cloud, CloudSlopes, Rows, products};
use super::parts::{Bump, PartSlopes, Parts};
use crate::linalg::exp::{Vectorised, dispatch, mul_add};
use crate::linalg::{Accum, Mat, MatRef, Par, gemm};
use faer::reborrow::ReborrowMut;

/// Inducing points by rows, and how many there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Points<'a> {
    pub count: usize,
    pub inputs: usize,
    /// M rows of Q numbers.
    pub rows: &'a [f64],
}

impl<'a> Points<'a> {
    fn row(&self, m: usize) -> &'a [f64] {
        &self.rows[m * self.inputs..(m + 1) * self.inputs]
    }
}

/// Where ψ₂ is summed to, and what every row's is multiplied with.
#[derive(Debug)]
pub(super) struct Totals<'a> {
    /// C columns of weights.
    pub weights: &'a [f64],
    /// C matrices of M×M, of which the lower triangle gets Σᵢ wᵢψ₂ᵢ.
    pub sums: &'a mut [f64],
    /// T symmetric matrices A of M×M.
    pub against: &'a [f64],
    /// T columns of tr Aψ₂ᵢ.
    pub traces: &'a mut [f64],
}

/// The cotangent of every row's ψ₂: Σ_c w_ic G_c.
#[derive(Debug)]
pub(super) struct Cotangent<'a> {
    /// C columns of weights.
    pub weights: &'a [f64],
    /// C symmetric matrices of M×M.
    pub matrices: &'a [f64],
    /// The column of weights with which Σᵢ wᵢψ₂ᵢ is wanted, and where (lower triangle).
    pub kept: Option<(usize, &'a mut [f64])>,
}

/// Slopes by rows (Q columns each) and points (M rows of Q numbers).
#[derive(Debug)]
pub(super) struct PointSlopes<'a> {
    pub mean: &'a mut [f64],
    pub variance: &'a mut [f64],
    pub points: &'a mut [f64],
}

/// Returns ψ₁ of one squared exponential: M columns.
pub(super) fn psi1(block: &Rows<'_>, points: Points<'_>, bump: &Bump) -> Vec<f64> {
    struct Loop<'a>(Cloud, Points<'a>, Vec<f64>);
    impl Vectorised for Loop<'_> {
        type Output = Vec<f64>;
        #[inline(always)]
        fn run<const FMA: bool>(self) -> Vec<f64> {
            let Loop(cloud, points, mut out) = self;
            let rows = out.len() / points.count.max(1);
            let mut centre = vec![0.0; cloud.dims.len()];
            for (m, out) in out.chunks_exact_mut(rows.max(1)).enumerate() {
                gather(points.row(m), &cloud.dims, &mut centre);
                cloud.values::<FMA>(&centre, 0.0, out);
            }
            out
        }
    }
    let cloud = Cloud::new(block, &bump.omega, bump.log_amplitude);
    dispatch(Loop(cloud, points, vec![0.0; block.count * points.count]))
}

/// Pulls t, the values of ψ₁ times their cotangents (M columns, scratch afterwards), of squared exponential `index` back.
pub(super) fn pull_psi1(
    (block, points): (&Rows<'_>, Points<'_>),
    (parts, index): (&Parts, usize),
    t: &[f64],
    to: &mut PointSlopes<'_>,
    by_part: &mut PartSlopes,
) {
    struct Loop<'a, 'b> {
        cloud: &'a Cloud,
        points: Points<'a>,
        t: &'a [f64],
        slopes: &'a mut CloudSlopes,
        to: &'a mut PointSlopes<'b>,
    }
    impl Vectorised for Loop<'_, '_> {
        type Output = f64;
        #[inline(always)]
        fn run<const FMA: bool>(self) -> f64 {
            let Loop { cloud, points, t, slopes, to } = self;
            let rows = t.len() / points.count.max(1);
            let (mut centre, mut first) =
                (vec![0.0; cloud.dims.len()], vec![0.0; cloud.dims.len()]);
            let mut sum = 0.0;
            for (m, t) in t.chunks_exact(rows.max(1)).enumerate() {
                gather(points.row(m), &cloud.dims, &mut centre);
                sum += cloud.pull::<FMA>(&centre, t, slopes, &mut first);
                for (q, first) in cloud.dims.iter().zip(&first) {
                    to.points[m * points.inputs + q] += 2.0 * first;
                }
            }
            sum
        }
    }
    let bump = &parts.bumps[index];
    let cloud = Cloud::new(block, &bump.omega, bump.log_amplitude);
    let mut slopes = cloud.slopes();
    by_part.log_amplitude[index] +=
        dispatch(Loop { cloud: &cloud, points, t, slopes: &mut slopes, to: &mut *to });
    let by_omega = cloud.finish(&slopes, to.mean, to.variance);
    for (q, own) in cloud.dims.iter().zip(by_omega) {
        by_part.omega[index][*q] += own;
    }
}

#[inline(always)]
fn gather(row: &[f64], dims: &[usize], out: &mut [f64]) {
    out.iter_mut().zip(dims).for_each(|(o, q)| *o = row[*q]);
}

/// What a pair of squared exponentials makes of a pair of points, for every active input.
struct Pair<'a> {
    cloud: Cloud,
    left: &'a Bump,
    right: &'a Bump,
    /// Whether both are the same: then half of the pairs of points is enough.
    same: bool,
}

impl<'a> Pair<'a> {
    fn new(block: &Rows<'_>, parts: &'a Parts, (left, right): (usize, usize)) -> Self {
        let same = left == right;
        let (left, right) = (&parts.bumps[left], &parts.bumps[right]);
        Self { cloud: Cloud::of_pair(block, left, right), left, right, same }
    }

    /// Returns the second points that go with a first one.
    fn seconds(&self, m: usize, count: usize) -> usize {
        if self.same { m + 1 } else { count }
    }

    /// Returns how often a pair of points stands in Σ over both triangles, and in an entry of the
    /// lower one.
    fn counts(&self, m: usize, other: usize) -> (f64, f64) {
        let whole = if self.same && m == other { 1.0 } else { 2.0 };
        (whole, if m == other { whole } else { 0.5 * whole })
    }

    /// Writes the centre; returns −½ Σ ηδ².
    #[inline(always)]
    fn centre(&self, z: &[f64], other: &[f64], centre: &mut [f64]) -> f64 {
        let mut constant = 0.0;
        for (k, q) in self.cloud.dims.iter().enumerate() {
            let (a, b) = (self.left.omega[*q], self.right.omega[*q]);
            let inverse = 1.0 / self.cloud.omega[k];
            centre[k] = (a * z[*q] + b * other[*q]) * inverse;
            constant -= 0.5 * a * b * inverse * (z[*q] - other[*q]).powi(2);
        }
        constant
    }
}

/// Adds the part of a pair of squared exponentials to all sums of ψ₂.
pub(super) fn add_psi2(
    block: &Rows<'_>,
    points: Points<'_>,
    parts: &Parts,
    which: (usize, usize),
    totals: &mut Totals<'_>,
) {
    struct Loop<'a, 'b> {
        pair: Pair<'a>,
        points: Points<'a>,
        rows: usize,
        totals: &'a mut Totals<'b>,
    }
    impl Vectorised for Loop<'_, '_> {
        type Output = ();
        #[inline(always)]
        fn run<const FMA: bool>(self) {
            let Loop { pair, points, rows, totals } = self;
            let count = points.count;
            let (mut centre, mut value) = (vec![0.0; pair.cloud.dims.len()], vec![0.0; rows]);
            for m in 0..count {
                for other in 0..pair.seconds(m, count) {
                    let constant = pair.centre(points.row(m), points.row(other), &mut centre);
                    pair.cloud.values::<FMA>(&centre, constant, &mut value);
                    let (whole, lower) = pair.counts(m, other);
                    let at = m.max(other) + m.min(other) * count;
                    let sums = totals.sums.iter_mut().skip(at).step_by(count * count);
                    for (sum, weights) in sums.zip(totals.weights.chunks_exact(rows)) {
                        *sum += lower * products::<FMA>(weights, &value);
                    }
                    let against = totals.against.iter().skip(at).step_by(count * count);
                    for (a, traces) in against.zip(totals.traces.chunks_exact_mut(rows)) {
                        let a = whole * a;
                        for (t, value) in traces.iter_mut().zip(&value) {
                            *t = mul_add::<FMA>(a, *value, *t);
                        }
                    }
                }
            }
        }
    }
    let pair = Pair::new(block, parts, which);
    dispatch(Loop { pair, points, rows: block.count, totals });
}

/// Pulls the cotangent of ψ₂ back through a pair of squared exponentials.
///
/// For every first point z the values times cotangents t of all second ones are a matrix, and all slopes are sums of it with powers of the
/// centres' distances from z: two products of matrices. Where t is more than rounding, μ and the centres are near z as measured by the
/// kernel, the sharper one of two, so that the powers do not cancel.
pub(super) fn pull_psi2(
    (block, points): (&Rows<'_>, Points<'_>),
    (parts, which): (&Parts, (usize, usize)),
    cotangent: &mut Cotangent<'_>,
    to: &mut PointSlopes<'_>,
    by_part: &mut PartSlopes,
) {
    let sharpness = |index: usize| parts.bumps[index].omega.iter().sum::<f64>();
    let swapped = sharpness(which.0) < sharpness(which.1);
    let which = if swapped { (which.1, which.0) } else { which };
    let pair = Pair::new(block, parts, which);
    let (rows, count, inputs) = (block.count, points.count, points.inputs);
    let cloud = &pair.cloud;
    let dims = cloud.dims.len();
    let mut slopes = cloud.slopes();
    let mut by_omega = [vec![0.0; dims], vec![0.0; dims]];
    let mut total = 0.0;
    let mut weighted = vec![0.0; rows * count];
    // 1, δ and δ² of every centre's distance δ from z; 1, a and a(μ − z) of every row
    let (mut centres, mut of_rows) =
        (Mat::zeros(count, 1 + 2 * dims), Mat::from_fn(rows, 1 + 2 * dims, |_, _| 1.0));
    let (mut by_row, mut by_pair) =
        (Mat::zeros(rows, 1 + 2 * dims), Mat::zeros(count, 1 + 2 * dims));
    for m in 0..count {
        let (z, seconds) = (points.row(m), pair.seconds(m, count));
        let weighted = &mut weighted[..rows * seconds];
        dispatch(Weigh { pair: &pair, points, m, cotangent, out: &mut *weighted });
        let t = MatRef::from_column_major_slice(weighted, rows, seconds);
        for other in 0..seconds {
            centres[(other, 0)] = 1.0;
            for (k, q) in cloud.dims.iter().enumerate() {
                let share = pair.right.omega[*q] / cloud.omega[k];
                let delta = share * (points.row(other)[*q] - z[*q]);
                (centres[(other, 1 + k)], centres[(other, 1 + dims + k)]) = (delta, delta * delta);
            }
        }
        cloud.around(z, &mut of_rows);
        let centres = centres.as_ref().subrows(0, seconds);
        gemm(by_row.as_mut(), Accum::Replace, t, centres, 1.0, Par::Seq);
        let mut by_pair = by_pair.as_mut().subrows_mut(0, seconds);
        gemm(by_pair.rb_mut(), Accum::Replace, t.transpose(), of_rows.as_ref(), 1.0, Par::Seq);
        cloud.add_sums(z, by_row.as_ref(), &mut slopes);
        for other in 0..seconds {
            let (y, sum) = (points.row(other), by_pair[(other, 0)]);
            total += sum;
            for (k, q) in cloud.dims.iter().enumerate() {
                let (a, b) = (pair.left.omega[*q], pair.right.omega[*q]);
                let (inverse, shift) = (1.0 / cloud.omega[k], centres[(other, 1 + k)]);
                // 2 Σ t a(μ − c)
                let by_centre =
                    2.0 * (by_pair[(other, 1 + dims + k)] - shift * by_pair[(other, 1 + k)]);
                let delta = z[*q] - y[*q];
                let apart = a * b * inverse * delta * sum;
                to.points[m * inputs + q] += a * inverse * by_centre - apart;
                to.points[other * inputs + q] += b * inverse * by_centre + apart;
                // ∂c/∂ω = (z − c)/Ω, ∂η/∂ω = (ω′/Ω)²
                let square = 0.5 * delta * delta * sum;
                by_omega[0][k] -= shift * inverse * by_centre + (b * inverse).powi(2) * square;
                by_omega[1][k] -=
                    (shift + delta) * inverse * by_centre + (a * inverse).powi(2) * square;
            }
        }
    }
    let at_centre = cloud.finish(&slopes, to.mean, to.variance);
    for (index, own) in [(which.0, &by_omega[0]), (which.1, &by_omega[1])] {
        by_part.log_amplitude[index] += total;
        for (k, q) in cloud.dims.iter().enumerate() {
            by_part.omega[index][*q] += own[k] + at_centre[k];
        }
    }
}

/// Values times cotangents for all second points of one first: columns of `out`.
struct Weigh<'a, 'b> {
    pair: &'a Pair<'a>,
    points: Points<'a>,
    m: usize,
    cotangent: &'a mut Cotangent<'b>,
    out: &'a mut [f64],
}

impl Vectorised for Weigh<'_, '_> {
    type Output = ();
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Weigh { pair, points, m, cotangent, out } = self;
        let (count, seconds) = (points.count, pair.seconds(m, points.count));
        let rows = out.len() / seconds;
        let (mut centre, mut bar) = (vec![0.0; pair.cloud.dims.len()], vec![0.0; rows]);
        for (other, value) in out.chunks_exact_mut(rows).enumerate() {
            let constant = pair.centre(points.row(m), points.row(other), &mut centre);
            pair.cloud.values::<FMA>(&centre, constant, value);
            let (whole, lower) = pair.counts(m, other);
            let at = m.max(other) + m.min(other) * count;
            if let Some((column, kept)) = &mut cotangent.kept {
                let weights = &cotangent.weights[*column * rows..(*column + 1) * rows];
                kept[at] += lower * products::<FMA>(weights, value);
            }
            bar.fill(0.0);
            let matrices = cotangent.matrices.iter().skip(at).step_by(count * count);
            for (g, weights) in matrices.zip(cotangent.weights.chunks_exact(rows)) {
                let g = whole * g;
                for (bar, weight) in bar.iter_mut().zip(weights) {
                    *bar = mul_add::<FMA>(g, *weight, *bar);
                }
            }
            value.iter_mut().zip(&bar).for_each(|(value, bar)| *value *= bar);
        }
    }
}

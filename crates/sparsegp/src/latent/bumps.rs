//! ψ₁ and ψ₂ of squared exponentials: all inducing points, and all pairs of them, for one block of rows.

use super::cloud::{Cloud, CloudSlopes, Rows, products};
use super::parts::{Bump, PartSlopes, Parts};
use crate::linalg::exp::{Vectorised, dispatch, mul_add};

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

/// ψ₁ of one squared exponential: M columns.
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

    /// The second points that go with a first one.
    fn seconds(&self, m: usize, count: usize) -> usize {
        if self.same { m + 1 } else { count }
    }

    /// How often a pair of points stands in Σ over both triangles, and in an entry of the lower one.
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
pub(super) fn pull_psi2(
    (block, points): (&Rows<'_>, Points<'_>),
    (parts, which): (&Parts, (usize, usize)),
    cotangent: &mut Cotangent<'_>,
    to: &mut PointSlopes<'_>,
    by_part: &mut PartSlopes,
) {
    let pair = Pair::new(block, parts, which);
    let mut slopes = pair.cloud.slopes();
    let dims = pair.cloud.dims.len();
    let mut by_omega = [vec![0.0; dims], vec![0.0; dims]];
    let total = dispatch(Pull {
        pair: &pair,
        points,
        rows: block.count,
        cotangent,
        slopes: &mut slopes,
        by_point: &mut *to.points,
        by_omega: &mut by_omega,
    });
    let at_centre = pair.cloud.finish(&slopes, to.mean, to.variance);
    for (index, own) in [(which.0, &by_omega[0]), (which.1, &by_omega[1])] {
        by_part.log_amplitude[index] += total;
        for (k, q) in pair.cloud.dims.iter().enumerate() {
            by_part.omega[index][*q] += own[k] + at_centre[k];
        }
    }
}

struct Pull<'a, 'b> {
    pair: &'a Pair<'a>,
    points: Points<'a>,
    rows: usize,
    cotangent: &'a mut Cotangent<'b>,
    slopes: &'a mut CloudSlopes,
    by_point: &'a mut [f64],
    by_omega: &'a mut [Vec<f64>; 2],
}

impl Vectorised for Pull<'_, '_> {
    type Output = f64;
    #[inline(always)]
    fn run<const FMA: bool>(self) -> f64 {
        let Pull { pair, points, rows, cotangent, slopes, by_point, by_omega } = self;
        let (count, inputs) = (points.count, points.inputs);
        let (cloud, dims) = (&pair.cloud, pair.cloud.dims.len());
        let (mut centre, mut first) = (vec![0.0; dims], vec![0.0; dims]);
        let (mut value, mut bar) = (vec![0.0; rows], vec![0.0; rows]);
        let mut sum = 0.0;
        for m in 0..count {
            for other in 0..pair.seconds(m, count) {
                let (z, y) = (points.row(m), points.row(other));
                let constant = pair.centre(z, y, &mut centre);
                cloud.values::<FMA>(&centre, constant, &mut value);
                let (whole, lower) = pair.counts(m, other);
                let at = m.max(other) + m.min(other) * count;
                if let Some((column, kept)) = &mut cotangent.kept {
                    let weights = &cotangent.weights[*column * rows..(*column + 1) * rows];
                    kept[at] += lower * products::<FMA>(weights, &value);
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
                let total = cloud.pull::<FMA>(&centre, &value, slopes, &mut first);
                sum += total;
                for (k, q) in cloud.dims.iter().enumerate() {
                    let (a, b) = (pair.left.omega[*q], pair.right.omega[*q]);
                    let inverse = 1.0 / cloud.omega[k];
                    let (by_centre, delta) = (2.0 * first[k], z[*q] - y[*q]);
                    let apart = a * b * inverse * delta * total;
                    by_point[m * inputs + q] += a * inverse * by_centre - apart;
                    by_point[other * inputs + q] += b * inverse * by_centre + apart;
                    // ∂c/∂ω = (z − c)/Ω, ∂η/∂ω = (ω′/Ω)²
                    let square = 0.5 * delta * delta * total;
                    by_omega[0][k] +=
                        (z[*q] - centre[k]) * inverse * by_centre - (b * inverse).powi(2) * square;
                    by_omega[1][k] +=
                        (y[*q] - centre[k]) * inverse * by_centre - (a * inverse).powi(2) * square;
                }
            }
        }
        sum
    }
}

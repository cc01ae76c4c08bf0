//! ψ-statistics of a kernel at inducing points: sums over rows in blocks, and pull-backs.

use super::bumps::{self, Cotangent, PointSlopes, Points, Totals};
use super::cloud::{Rows, WIDTH};
use super::line::{Extended, Line, Moments, RowSlopes, Seen};
use super::parts::{PartSlopes, Parts};
use crate::error::{Error, Result};
use crate::kernels::Kernel;
use crate::linalg::{Accum, Mat, MatRef, Par, gemm, mirror_lower};
use rayon::prelude::*;

/// Gaussian inputs N(μᵢ, diag Sᵢ) of N rows.
#[derive(Clone, Copy, Debug)]
pub struct Uncertain<'a> {
    /// Means, N×Q.
    pub mean: MatRef<'a, f64>,
    /// Variances, N×Q, 0 for inputs that are known.
    pub variance: MatRef<'a, f64>,
}

impl<'a> Uncertain<'a> {
    /// Makes it of means and variances (N×Q).
    ///
    /// # Errors
    /// [`Error::Shape`] if they are not alike; [`Error::NonFinite`] and [`Error::Invalid`] for numbers that are none, or variances
    /// below 0.
    pub fn new(mean: MatRef<'a, f64>, variance: MatRef<'a, f64>) -> Result<Self> {
        if (mean.nrows(), mean.ncols()) != (variance.nrows(), variance.ncols()) {
            return Err(Error::Shape {
                what: "variances of uncertain inputs".into(),
                expected: format!("{}×{}", mean.nrows(), mean.ncols()),
                found: format!("{}×{}", variance.nrows(), variance.ncols()),
            });
        }
        for q in 0..mean.ncols() {
            for i in 0..mean.nrows() {
                let at = format!("row {}, latent dimension {}", i + 1, q + 1);
                for (what, value) in [("mean", mean[(i, q)]), ("variance", variance[(i, q)])] {
                    if !value.is_finite() {
                        let what = format!("the {what} of an uncertain input ({at})");
                        return Err(Error::NonFinite { what, value });
                    }
                }
                if variance[(i, q)] < 0.0 {
                    return Err(Error::Invalid(format!(
                        "the variance {} of an uncertain input ({at}) is below 0; give 0 for an input that is known",
                        variance[(i, q)]
                    )));
                }
            }
        }
        Ok(Self { mean, variance })
    }

    fn rows(&self, from: usize, count: usize) -> Self {
        Self { mean: self.mean.subrows(from, count), variance: self.variance.subrows(from, count) }
    }
}

/// Cotangents of the ψ-statistics of N rows: that of ψ₁ is left·rightᵀ, that of row i's ψ₂ is Σ_c w_ic G_c.
#[derive(Clone, Copy, Debug)]
pub struct Bars<'a> {
    /// Of ψ₀, N numbers.
    pub psi0: &'a [f64],
    /// Factors of that of Ψ₁: N×P and M×P.
    pub psi1: (MatRef<'a, f64>, MatRef<'a, f64>),
    /// w, N×C.
    pub weights: MatRef<'a, f64>,
    /// C symmetric matrices G, M×M.
    pub psi2: &'a [Mat<f64>],
    /// A column of w with which Σᵢ wᵢψ₂ᵢ is wanted too.
    pub kept: Option<usize>,
}

/// Sums of ψ-statistics over rows.
#[derive(Clone, Debug)]
pub struct Folded {
    /// Ψ₁ᵀY, M×P.
    pub psi1_y: Mat<f64>,
    /// Σᵢ w_ic ψ₂ᵢ, C matrices of M×M, symmetric.
    pub psi2: Vec<Mat<f64>>,
    /// tr Aψ₂ᵢ for every row and every A, N×T.
    pub traces: Mat<f64>,
}

/// What cotangents of ψ-statistics say of everything these depend on.
#[derive(Clone, Debug)]
pub struct Slopes {
    /// By the kernel's constrained parameters.
    pub kernel: Vec<f64>,
    /// By the inducing points, M×Q.
    pub points: Mat<f64>,
    /// By μ, N×Q.
    pub mean: Mat<f64>,
    /// By S, N×Q.
    pub variance: Mat<f64>,
    /// Σᵢ wᵢψ₂ᵢ, if it was asked for, symmetric.
    pub kept: Option<Mat<f64>>,
}

/// ψ₀ᵢ = ⟨k(xᵢ, xᵢ)⟩, ψ₁ᵢ = ⟨k(xᵢ, Z)⟩ and ψ₂ᵢ = ⟨k(Z, xᵢ)k(xᵢ, Z)⟩ of a kernel under Gaussian inputs (Titsias & Lawrence 2010,
/// §3.2). White noise is a part of ψ₀ alone: no row is an inducing point.
///
/// Rows are worked on in blocks, and nothing of N×M² is ever kept.
#[derive(Clone, Debug)]
pub struct Psi {
    parts: Parts,
    params: usize,
    z: Mat<f64>,
    /// The points row by row.
    flat: Vec<f64>,
    line: Line,
    block: usize,
}

/// Rows of a block, unless told otherwise.
const BLOCK: usize = 128;
/// Most sums that are made side by side.
const LANES: usize = 8;
/// Most numbers in the matrices of all of them.
const LARGEST: usize = 1 << 25;

/// One block of rows with padding.
struct Block {
    rows: usize,
    mean: Mat<f64>,
    variance: Mat<f64>,
    weights: Mat<f64>,
}

/// The numbers of a matrix column by column.
fn flat(a: MatRef<f64>) -> Vec<f64> {
    (0..a.ncols()).flat_map(|j| (0..a.nrows()).map(move |i| a[(i, j)])).collect()
}

fn from_flat(values: &[f64], rows: usize) -> Mat<f64> {
    Mat::from_fn(rows, values.len() / rows.max(1), |i, j| values[i + j * rows])
}

/// A symmetric matrix of which the lower triangle was summed.
fn mirrored(values: &[f64], rows: usize) -> Mat<f64> {
    let mut out = from_flat(values, rows);
    mirror_lower(out.as_mut());
    out
}

impl Block {
    fn new(x: Uncertain<'_>, weights: MatRef<f64>) -> Self {
        let rows = x.mean.nrows();
        let padded = |a: MatRef<f64>| {
            Mat::from_fn(rows.next_multiple_of(WIDTH), a.ncols(), |i, j| {
                if i < rows { a[(i, j)] } else { 0.0 }
            })
        };
        let (mean, variance) = (padded(x.mean), padded(x.variance));
        Self { rows, mean, variance, weights: padded(weights) }
    }

    fn padded(&self) -> usize {
        self.mean.nrows()
    }
}

impl Psi {
    /// Prepares a kernel at inducing points `z` (M×Q).
    ///
    /// # Errors
    /// [`Error::Invalid`] that names a kernel without expectations in closed form, and for no points; [`Error::Shape`] if the kernel
    /// looks at other inputs.
    pub fn new(kernel: &dyn Kernel, z: MatRef<f64>) -> Result<Self> {
        if z.nrows() == 0 || z.ncols() == 0 {
            return Err(Error::Invalid(format!(
                "uncertain inputs need inducing points of at least one dimension, found {}×{}",
                z.nrows(),
                z.ncols()
            )));
        }
        let parts = Parts::new(kernel, z.ncols())?;
        let line = Line::new(&parts, z);
        let flat = flat(z.transpose());
        let params = kernel.num_params();
        Ok(Self { parts, params, z: z.to_owned(), flat, line, block: BLOCK })
    }

    /// The same with so many rows in a block (at least 1): sums change by rounding only.
    #[must_use]
    pub fn with_block(mut self, rows: usize) -> Self {
        self.block = rows.max(1);
        self
    }

    /// The inducing points, M×Q.
    pub fn points(&self) -> MatRef<'_, f64> {
        self.z.as_ref()
    }

    /// Prior variance of the slope of a function along every latent dimension, Q numbers, at the origin: what automatic relevance
    /// determination leaves of each.
    pub fn slope_variances(&self) -> Vec<f64> {
        self.parts.slope_variances()
    }

    fn all_points(&self) -> Points<'_> {
        Points { count: self.z.nrows(), inputs: self.z.ncols(), rows: &self.flat }
    }

    fn check(&self, x: Uncertain<'_>) -> Result<()> {
        if x.mean.ncols() == self.z.ncols() {
            return Ok(());
        }
        Err(Error::Shape {
            what: "uncertain inputs".into(),
            expected: format!("{} latent dimensions, as the inducing points have", self.z.ncols()),
            found: format!("{}", x.mean.ncols()),
        })
    }

    /// Pairs of squared exponentials.
    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let count = self.parts.bumps.len();
        (0..count).flat_map(move |a| (a..count).map(move |b| (a, b)))
    }

    fn bump_psi1(&self, block: &Block) -> Vec<Vec<f64>> {
        let (mean, variance) = (flat(block.mean.as_ref()), flat(block.variance.as_ref()));
        let rows = Rows { count: block.padded(), mean: &mean, variance: &variance };
        let bumps = self.parts.bumps.iter();
        bumps.map(|bump| bumps::psi1(&rows, self.all_points(), bump)).collect()
    }

    /// ψ₀, N numbers.
    ///
    /// # Errors
    /// [`Error::Shape`] if the inputs have other dimensions than the points.
    pub fn psi0(&self, x: Uncertain<'_>) -> Result<Vec<f64>> {
        self.check(x)?;
        let bumps = self.parts.bumps.iter().map(|bump| bump.log_amplitude.exp());
        let mut out = vec![self.parts.white + bumps.sum::<f64>(); x.mean.nrows()];
        self.line.add_psi0(x.mean, x.variance, &mut out);
        Ok(out)
    }

    /// Ψ₁, N×M.
    ///
    /// # Errors
    /// As for [`Psi::psi0`].
    pub fn psi1(&self, x: Uncertain<'_>) -> Result<Mat<f64>> {
        self.check(x)?;
        let n = x.mean.nrows();
        let parts: Vec<Mat<f64>> = (0..n.div_ceil(self.block))
            .into_par_iter()
            .map(|at| {
                let rows = x.rows(at * self.block, self.block.min(n - at * self.block));
                let none = Mat::zeros(rows.mean.nrows(), 0);
                self.block_psi1(&Block::new(rows, none.as_ref())).1
            })
            .collect();
        Ok(Mat::from_fn(n, self.z.nrows(), |i, m| parts[i / self.block][(i % self.block, m)]))
    }

    /// ψ₁ of every squared exponential, and of the kernel (with padding).
    fn block_psi1(&self, block: &Block) -> (Vec<Vec<f64>>, Mat<f64>) {
        let bumps = self.bump_psi1(block);
        let mut whole = Mat::zeros(block.padded(), self.z.nrows());
        for values in &bumps {
            for (m, own) in values.chunks_exact(block.padded()).enumerate() {
                let target = whole.col_as_slice_mut(m).iter_mut().zip(own);
                target.for_each(|(t, v)| *t += v);
            }
        }
        if self.parts.is_linear {
            self.line.add_psi1(&self.extended(block), &mut whole);
        }
        (bumps, whole)
    }

    fn extended(&self, block: &Block) -> Extended {
        Extended::new(block.mean.as_ref(), block.variance.as_ref(), &self.parts)
    }

    /// Rows of all blocks shared among lanes, which work at the same time and are added in order: the sums do not depend on the number of
    /// threads.
    fn in_lanes<T: Send>(
        &self,
        rows: usize,
        matrices: usize,
        lane: impl Fn(&mut dyn Iterator<Item = (usize, usize)>) -> T + Sync,
    ) -> Vec<T> {
        let blocks = rows.div_ceil(self.block);
        let most = LARGEST / (matrices.max(1) * self.z.nrows().pow(2)).max(1);
        let lanes = LANES.min(most).min(blocks).max(1);
        (0..lanes)
            .into_par_iter()
            .map(|own| {
                let starts = (own..blocks).step_by(lanes).map(|block| block * self.block);
                lane(&mut starts.map(|from| (from, self.block.min(rows - from))))
            })
            .collect()
    }

    /// Sums over rows: Ψ₁ᵀY for targets `y` (N×P, 0 where missing), Σᵢ w_ic ψ₂ᵢ for every column of `weights` (N×C), and tr Aψ₂ᵢ of every
    /// row with every symmetric matrix of `against` (T of M×M). O(N M² (Q + C + T)).
    ///
    /// # Errors
    /// [`Error::Shape`] for sizes that do not fit.
    pub fn fold(
        &self,
        x: Uncertain<'_>,
        y: MatRef<f64>,
        weights: MatRef<f64>,
        against: &[Mat<f64>],
    ) -> Result<Folded> {
        self.check(x)?;
        let (n, m) = (x.mean.nrows(), self.z.nrows());
        for (what, rows) in [("targets", y.nrows()), ("weights of rows", weights.nrows())] {
            if rows != n {
                let (expected, found) = (format!("{n} rows"), format!("{rows}"));
                return Err(Error::Shape { what: what.into(), expected, found });
            }
        }
        let matrices: Vec<f64> = against.iter().flat_map(|a| flat(a.as_ref())).collect();
        let seen: Vec<Seen> = against.iter().map(|a| self.line.see(a.as_ref())).collect();
        let count = weights.ncols();
        let lanes = self.in_lanes(n, count, |blocks| {
            let mut sums = vec![0.0; count * m * m];
            let mut moments = vec![Moments::zeros(&self.line); count];
            let mut psi1_y = Mat::zeros(m, y.ncols());
            let mut traces = Vec::new();
            for (from, rows) in blocks {
                let block = Block::new(x.rows(from, rows), weights.subrows(from, rows));
                let (psi1, whole) = self.block_psi1(&block);
                let own = whole.as_ref().subrows(0, rows).transpose();
                let targets = y.subrows(from, rows);
                gemm(psi1_y.as_mut(), Accum::Add, own, targets, 1.0, Par::Seq);
                let mut own = vec![0.0; against.len() * block.padded()];
                self.add_block(&block, &matrices, &mut sums, &mut own);
                if self.parts.is_linear {
                    let extended = self.extended(&block);
                    self.line.add(&extended, block.weights.as_ref(), &psi1, &mut moments);
                    for (seen, out) in seen.iter().zip(own.chunks_exact_mut(block.padded())) {
                        self.line.add_traces(&extended, seen, &psi1, out);
                    }
                }
                traces.push((from, rows, own));
            }
            (sums, moments, psi1_y, traces)
        });
        let mut psi1_y = Mat::zeros(m, y.ncols());
        let mut sums = vec![0.0; count * m * m];
        let mut moments = vec![Moments::zeros(&self.line); count];
        let mut traces = Mat::zeros(n, against.len());
        for (own_sums, own_moments, own_y, own_traces) in lanes {
            psi1_y += &own_y;
            sums.iter_mut().zip(&own_sums).for_each(|(a, b)| *a += b);
            moments.iter_mut().zip(&own_moments).for_each(|(a, b)| a.add(b));
            for (from, rows, own) in own_traces {
                let padded = rows.next_multiple_of(WIDTH);
                for t in 0..against.len() {
                    (0..rows).for_each(|i| traces[(from + i, t)] = own[t * padded + i]);
                }
            }
        }
        let with_line = |(sum, moments): (&[f64], &Moments)| {
            let mut own = mirrored(sum, m);
            if self.parts.is_linear {
                own += self.line.psi2(moments);
            }
            own
        };
        let psi2 = sums.chunks_exact(m * m).zip(&moments).map(with_line).collect();
        Ok(Folded { psi1_y, psi2, traces })
    }

    fn add_block(&self, block: &Block, against: &[f64], sums: &mut [f64], traces: &mut [f64]) {
        let (mean, variance) = (flat(block.mean.as_ref()), flat(block.variance.as_ref()));
        let rows = Rows { count: block.padded(), mean: &mean, variance: &variance };
        let weights = flat(block.weights.as_ref());
        let mut totals = Totals { weights: &weights, sums, against, traces };
        for which in self.pairs() {
            bumps::add_psi2(&rows, self.all_points(), &self.parts, which, &mut totals);
        }
    }
}

/// Sums of slopes of one lane.
struct Lane {
    parts: PartSlopes,
    points: Vec<f64>,
    moments: Vec<Moments>,
    by_v: Mat<f64>,
    by_weight: Vec<f64>,
    kept: Vec<f64>,
    rows: Vec<(usize, usize, Vec<f64>, Vec<f64>)>,
}

impl Psi {
    /// Pulls cotangents of the ψ-statistics of rows `x` back to kernel, points, means and variances. O(N M² (Q + C)).
    ///
    /// # Errors
    /// [`Error::Shape`] for sizes that do not fit.
    pub fn pull(&self, x: Uncertain<'_>, bars: &Bars<'_>) -> Result<Slopes> {
        self.check(x)?;
        let (n, m, q) = (x.mean.nrows(), self.z.nrows(), self.z.ncols());
        let (left, right) = bars.psi1;
        let fits = [
            ("cotangents of ψ₀", bars.psi0.len(), n),
            ("the left factor of the cotangent of ψ₁", left.nrows(), n),
            ("the right factor of the cotangent of ψ₁", right.nrows(), m),
            ("columns of the factors of the cotangent of ψ₁", right.ncols(), left.ncols()),
            ("weights of rows", bars.weights.nrows(), n),
            ("matrices of the cotangent of ψ₂", bars.psi2.len(), bars.weights.ncols()),
        ];
        if let Some((what, found, expected)) = fits.into_iter().find(|(_, a, b)| a != b) {
            let (expected, found) = (format!("{expected}"), format!("{found}"));
            return Err(Error::Shape { what: what.into(), expected, found });
        }
        let matrices: Vec<f64> = bars.psi2.iter().flat_map(|a| flat(a.as_ref())).collect();
        let seen: Vec<Seen> = bars.psi2.iter().map(|a| self.line.see(a.as_ref())).collect();
        let lanes = self.in_lanes(n, 1, |blocks| {
            let mut lane = self.lane(bars);
            blocks.for_each(|(from, rows)| {
                self.pull_block(x, bars, (&matrices, &seen), (from, rows), &mut lane);
            });
            lane
        });
        let mut total = self.lane(bars);
        let (mut mean, mut variance) = (Mat::zeros(n, q), Mat::zeros(n, q));
        for lane in lanes {
            let add = |a: &mut [f64], b: &[f64]| a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
            total.parts.add(&lane.parts);
            add(&mut total.points, &lane.points);
            add(&mut total.by_weight, &lane.by_weight);
            add(&mut total.kept, &lane.kept);
            total.by_v += &lane.by_v;
            total.moments.iter_mut().zip(&lane.moments).for_each(|(a, b)| a.add(b));
            for (from, rows, by_mean, by_variance) in lane.rows {
                let padded = rows.next_multiple_of(WIDTH);
                for q in 0..q {
                    for i in 0..rows {
                        mean[(from + i, q)] = by_mean[q * padded + i];
                        variance[(from + i, q)] = by_variance[q * padded + i];
                    }
                }
            }
        }
        let mut points = Mat::from_fn(m, q, |i, k| total.points[i * q + k]);
        if self.parts.is_linear {
            let matrices = (bars.psi2, seen.as_slice());
            let by_weight = &mut total.parts.linear;
            by_weight.iter_mut().zip(&total.by_weight).for_each(|(a, b)| *a += b);
            let moments = &total.moments;
            self.line.pull_points(matrices, moments, total.by_v, &mut points, by_weight);
        }
        let kept = bars.kept.map(|column| {
            let mut own = mirrored(&total.kept, m);
            if self.parts.is_linear {
                own += self.line.psi2(&total.moments[column]);
            }
            own
        });
        let mut kernel = vec![0.0; self.params];
        self.parts.pull(&total.parts, &mut kernel);
        Ok(Slopes { kernel, points, mean, variance, kept })
    }

    fn lane(&self, bars: &Bars<'_>) -> Lane {
        let (m, q) = (self.z.nrows(), self.z.ncols());
        Lane {
            parts: self.parts.slopes(),
            points: vec![0.0; m * q],
            moments: vec![Moments::zeros(&self.line); bars.psi2.len()],
            by_v: Mat::zeros(m, q + 1),
            by_weight: vec![0.0; q + 1],
            kept: vec![0.0; if bars.kept.is_some() { m * m } else { 0 }],
            rows: Vec::new(),
        }
    }

    fn pull_block(
        &self,
        x: Uncertain<'_>,
        bars: &Bars<'_>,
        (matrices, seen): (&[f64], &[Seen]),
        (from, rows): (usize, usize),
        lane: &mut Lane,
    ) {
        let block = Block::new(x.rows(from, rows), bars.weights.subrows(from, rows));
        let (padded, q) = (block.padded(), self.z.ncols());
        let (means, variances) = (flat(block.mean.as_ref()), flat(block.variance.as_ref()));
        let own_rows = Rows { count: padded, mean: &means, variance: &variances };
        let (mut by_mean, mut by_variance) = (vec![0.0; padded * q], vec![0.0; padded * q]);
        let mut psi0: Vec<f64> = bars.psi0[from..from + rows].to_vec();
        psi0.resize(padded, 0.0);
        let total = psi0.iter().sum::<f64>();
        lane.parts.white += total;
        for (bump, slope) in self.parts.bumps.iter().zip(&mut lane.parts.log_amplitude) {
            *slope += bump.log_amplitude.exp() * total;
        }
        let mut psi1_bar = Mat::zeros(padded, self.z.nrows());
        let (left, right) = (bars.psi1.0.subrows(from, rows), bars.psi1.1.transpose());
        let target = psi1_bar.as_mut().subrows_mut(0, rows);
        gemm(target, Accum::Replace, left, right, 1.0, Par::Seq);
        let mut bump_bars = vec![flat(psi1_bar.as_ref()); self.parts.bumps.len()];
        let psi1 = self.bump_psi1(&block);
        if self.parts.is_linear {
            let extended = self.extended(&block);
            let sinks = (by_mean.as_mut_slice(), by_variance.as_mut_slice());
            let own = (psi0.as_slice(), psi1_bar.as_ref());
            let totals = (&mut lane.by_v, lane.by_weight.as_mut_slice());
            self.line.pull_linear(&extended, own, sinks, totals);
            self.line.add(&extended, block.weights.as_ref(), &psi1, &mut lane.moments);
            let mut slopes = RowSlopes {
                mean: &mut by_mean,
                variance: &mut by_variance,
                psi1: &mut bump_bars,
                omega: &mut lane.parts.omega,
            };
            self.line.pull_rows(&extended, block.weights.as_ref(), seen, &psi1, &mut slopes);
        }
        let mut sinks = PointSlopes {
            mean: &mut by_mean,
            variance: &mut by_variance,
            points: &mut lane.points,
        };
        let points = self.all_points();
        for (index, (bar, values)) in bump_bars.iter_mut().zip(&psi1).enumerate() {
            bar.iter_mut().zip(values).for_each(|(t, v)| *t *= v);
            let of = (&self.parts, index);
            bumps::pull_psi1((&own_rows, points), of, bar, &mut sinks, &mut lane.parts);
        }
        let weights = flat(block.weights.as_ref());
        for which in self.pairs() {
            let kept = bars.kept.map(|column| (column, lane.kept.as_mut_slice()));
            let mut cotangent = Cotangent { weights: &weights, matrices, kept };
            let of = (&self.parts, which);
            bumps::pull_psi2((&own_rows, points), of, &mut cotangent, &mut sinks, &mut lane.parts);
        }
        lane.rows.push((from, block.rows, by_mean, by_variance));
    }
}

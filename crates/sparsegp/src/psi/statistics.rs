//! ψ-statistics of a kernel at inducing points: sums over rows in blocks, and pull-backs.

use super::bumps::{self, Points, Totals};
use super::cloud::{Rows, WIDTH};
use super::line::{Extended, Line, Moments, Seen};
use super::parts::Parts;
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
                let (m, s) = (mean[(i, q)], variance[(i, q)]);
                // words are for the cell that is wrong: this runs for every evaluation of a bound
                if !(m.is_finite() && s.is_finite() && s >= 0.0) {
                    return Err(unusable(
                        m,
                        s,
                        &format!("row {}, latent dimension {}", i + 1, q + 1),
                    ));
                }
            }
        }
        Ok(Self { mean, variance })
    }

    pub(super) fn rows(&self, from: usize, count: usize) -> Self {
        Self { mean: self.mean.subrows(from, count), variance: self.variance.subrows(from, count) }
    }
}

/// Returns what is wrong with the input N(mean, variance).
fn unusable(mean: f64, variance: f64, at: &str) -> Error {
    for (what, value) in [("mean", mean), ("variance", variance)] {
        if !value.is_finite() {
            return Error::NonFinite {
                what: format!("the {what} of an uncertain input ({at})"),
                value,
            };
        }
    }
    Error::Invalid(format!(
        "the variance {variance} of an uncertain input ({at}) is below 0; give 0 for an input that is known"
    ))
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

/// ψ₀ᵢ = ⟨k(xᵢ, xᵢ)⟩, ψ₁ᵢ = ⟨k(xᵢ, Z)⟩ and ψ₂ᵢ = ⟨k(Z, xᵢ)k(xᵢ, Z)⟩ of a kernel under Gaussian inputs (Titsias & Lawrence 2010,
/// §3.2). White noise is a part of only ψ₀: no row is an inducing point.
///
/// Rows are worked on in blocks, and nothing of N×M² is ever kept.
#[derive(Clone, Debug)]
pub struct Psi {
    pub(super) parts: Parts,
    pub(super) params: usize,
    pub(super) z: Mat<f64>,
    /// The points row by row.
    flat: Vec<f64>,
    pub(super) line: Line,
    block: usize,
}

/// Rows of a block by default.
const BLOCK: usize = 128;
/// Most sums that are made side by side.
const LANES: usize = 8;
/// Most numbers in the matrices of all of them.
const LARGEST: usize = 1 << 25;

/// One block of rows with padding.
pub(super) struct Block {
    pub(super) rows: usize,
    pub(super) mean: Mat<f64>,
    pub(super) variance: Mat<f64>,
    pub(super) weights: Mat<f64>,
}

/// Returns the numbers of a matrix column by column.
pub(super) fn flat(a: MatRef<f64>) -> Vec<f64> {
    (0..a.ncols()).flat_map(|j| (0..a.nrows()).map(move |i| a[(i, j)])).collect()
}

fn from_flat(values: &[f64], rows: usize) -> Mat<f64> {
    Mat::from_fn(rows, values.len() / rows.max(1), |i, j| values[i + j * rows])
}

/// Returns a symmetric matrix of which the lower triangle was summed.
pub(super) fn mirrored(values: &[f64], rows: usize) -> Mat<f64> {
    let mut out = from_flat(values, rows);
    mirror_lower(out.as_mut());
    out
}

impl Block {
    pub(super) fn new(x: Uncertain<'_>, weights: MatRef<f64>) -> Self {
        let rows = x.mean.nrows();
        let padded = |a: MatRef<f64>| {
            Mat::from_fn(rows.next_multiple_of(WIDTH), a.ncols(), |i, j| {
                if i < rows { a[(i, j)] } else { 0.0 }
            })
        };
        let (mean, variance) = (padded(x.mean), padded(x.variance));
        Self { rows, mean, variance, weights: padded(weights) }
    }

    pub(super) fn padded(&self) -> usize {
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

    /// Returns the same with so many rows in a block (at least 1): sums change by rounding only.
    #[must_use]
    pub fn with_block(mut self, rows: usize) -> Self {
        self.block = rows.max(1);
        self
    }

    /// Returns the inducing points, M×Q.
    pub fn points(&self) -> MatRef<'_, f64> {
        self.z.as_ref()
    }

    /// Returns the prior variance of the slope of a function along every latent dimension, Q
    /// numbers, at the origin: what automatic relevance determination leaves of each.
    pub fn slope_variances(&self) -> Vec<f64> {
        self.parts.slope_variances()
    }

    pub(super) fn all_points(&self) -> Points<'_> {
        Points { count: self.z.nrows(), inputs: self.z.ncols(), rows: &self.flat }
    }

    pub(super) fn check(&self, x: Uncertain<'_>) -> Result<()> {
        if x.mean.ncols() == self.z.ncols() {
            return Ok(());
        }
        Err(Error::Shape {
            what: "uncertain inputs".into(),
            expected: format!("{} latent dimensions, as the inducing points have", self.z.ncols()),
            found: format!("{}", x.mean.ncols()),
        })
    }

    /// Checks that matrices are M×M.
    pub(super) fn check_matrices(&self, what: &str, all: &[Mat<f64>]) -> Result<()> {
        let m = self.z.nrows();
        match all.iter().find(|a| (a.nrows(), a.ncols()) != (m, m)) {
            None => Ok(()),
            Some(a) => Err(Error::Shape {
                what: what.into(),
                expected: format!("{m}×{m} each, by the inducing points"),
                found: format!("{}×{}", a.nrows(), a.ncols()),
            }),
        }
    }

    /// Returns the pairs of squared exponentials.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let count = self.parts.bumps.len();
        (0..count).flat_map(move |a| (a..count).map(move |b| (a, b)))
    }

    pub(super) fn bump_psi1(&self, block: &Block) -> Vec<Vec<f64>> {
        let (mean, variance) = (flat(block.mean.as_ref()), flat(block.variance.as_ref()));
        let rows = Rows { count: block.padded(), mean: &mean, variance: &variance };
        let bumps = self.parts.bumps.iter();
        bumps.map(|bump| bumps::psi1(&rows, self.all_points(), bump)).collect()
    }

    /// Returns ψ₀, N numbers.
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

    /// Returns Ψ₁, N×M.
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

    /// Returns ψ₁ of every squared exponential, and of the kernel (with padding).
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

    pub(super) fn extended(&self, block: &Block) -> Extended {
        Extended::new(block.mean.as_ref(), block.variance.as_ref(), &self.parts)
    }

    /// Shares the rows of all blocks among lanes, which work at the same time and are added in
    /// order: the sums do not depend on the number of threads.
    pub(super) fn in_lanes<T: Send>(
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

    /// Returns sums over rows: Ψ₁ᵀY for targets `y` (N×P, 0 where missing), Σᵢ w_ic ψ₂ᵢ for every
    /// column of `weights` (N×C), and tr Aψ₂ᵢ of every row with every symmetric matrix of `against`
    /// (T of M×M). O(N M² (Q + C + T)).
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
        self.check_matrices("matrices of traces", against)?;
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

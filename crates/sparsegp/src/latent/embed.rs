//! New rows of a trained model: where they lie, from the cells they have.

use super::predict::Posterior;
use crate::error::{Error, Result};
use crate::linalg::{Mat, MatRef, dot};
use crate::optim::{Lbfgs, LbfgsOptions, Objective, Optimiser, Stall, Status};
use crate::psi::Bars;
use crate::psi::Uncertain;
use rayon::prelude::*;
use std::f64::consts::TAU;

/// How new rows are placed.
#[derive(Clone, Debug)]
pub struct EmbedOptions {
    /// Starts for every row, nearest candidates first; at least 1.
    pub starts: usize,
    /// Most iterations from each.
    pub iterations: usize,
    /// The optimiser's.
    pub lbfgs: LbfgsOptions,
}

impl Default for EmbedOptions {
    fn default() -> Self {
        Self { starts: 3, iterations: 200, lbfgs: LbfgsOptions::default() }
    }
}

/// Where new rows lie.
#[derive(Clone, Debug)]
pub struct Embedding {
    /// Means of q(x), N×Q.
    pub mean: Mat<f64>,
    /// Variances of q(x), N×Q.
    pub variance: Mat<f64>,
    /// A lower bound of the log density of the cells that a row has, given the trained q(u): N numbers.
    pub bounds: Vec<f64>,
    /// Whether the best start of a row has met a criterion of convergence, or stalled where rounding hides what is left: no
    /// slope of its bound is above 10⁻⁴ nats for every cell there.
    pub converged: Vec<bool>,
}

/// Largest slope for every cell of a search that stalled and has settled all the same: q(x) is as wide as its bound is
/// curved, and no wider than 1, so that its mean is off by some 10⁻⁴ of its width.
const FLAT: f64 = 1e-4;
/// Candidates for starts that are looked at.
const CANDIDATES: usize = 256;

/// One row: its bound as a function of μ and log S.
///
/// ```text
/// Σ_p {−½ log 2πσ² − (y² − 2y ψ₁b + tr (bbᵀ + R⁻¹)ψ₂)/2σ² − ρ(d)} − KL(q(x) ‖ N(0, I))
/// ```
///
/// over the columns p that the row has: the collapsed bound before q(u) is maximised out (Titsias & Lawrence 2010).
pub(super) struct Row<'a> {
    posterior: &'a Posterior,
    /// Number of cells.
    cells: f64,
    /// Σ y².
    squares: f64,
    /// Σ y b, M×1.
    right: Mat<f64>,
    /// K⁻¹, and Σ (bbᵀ + R⁻¹ − K⁻¹).
    against: [Mat<f64>; 2],
}

impl<'a> Row<'a> {
    pub(super) fn new(posterior: &'a Posterior, y: &[(usize, f64)]) -> Self {
        let m = posterior.b.nrows();
        let mut gram = Mat::zeros(m, m);
        for known in &posterior.known {
            let count = y.iter().filter(|(p, _)| known.columns.contains(p)).count();
            gram -= &known.told * faer::Scale(count as f64);
        }
        let mut right = Mat::zeros(m, 1);
        for (p, y) in y {
            let b = posterior.b.col_as_slice(*p);
            for i in 0..m {
                right[(i, 0)] += y * b[i];
                (0..m).for_each(|j| gram[(i, j)] += b[i] * b[j]);
            }
        }
        Self {
            posterior,
            cells: y.len() as f64,
            squares: y.iter().map(|(_, y)| y * y).sum(),
            right,
            against: [posterior.inverse.clone(), gram],
        }
    }
}

impl Objective for Row<'_> {
    fn dim(&self) -> usize {
        2 * self.posterior.dimensions()
    }

    fn evaluate(&mut self, at: &[f64], gradient: &mut [f64]) -> Result<f64> {
        let (psi, noise) = (&self.posterior.psi, self.posterior.noise);
        let q = at.len() / 2;
        let mean = Mat::from_fn(1, q, |_, j| at[j]);
        let variance = Mat::from_fn(1, q, |_, j| at[q + j].exp());
        let x = Uncertain::new(mean.as_ref(), variance.as_ref())?;
        let (one, none) = (Mat::from_fn(1, 1, |_, _| 1.0), Mat::zeros(1, 0));
        let folded = psi.fold(x, one.as_ref(), none.as_ref(), &self.against)?;
        let unexplained = psi.psi0(x)?[0] - folded.traces[(0, 0)];
        let penalty = self.posterior.term.penalty(unexplained, 1.0, noise);
        let fit = self.squares - 2.0 * dot(folded.psi1_y.as_ref(), self.right.as_ref())
            + folded.traces[(0, 1)]
            + self.cells * folded.traces[(0, 0)];
        let value = -0.5 * (self.cells * (TAU * noise).ln() + fit / noise)
            - self.cells * penalty.value
            - super::divergence(x);
        if !value.is_finite() {
            return Err(Error::NonFinite { what: "the bound of a new row".into(), value });
        }
        let slope = -self.cells * penalty.by_r;
        let left = Mat::from_fn(1, 1, |_, _| 1.0 / noise);
        let weights = Mat::from_fn(1, 2, |_, c| {
            if c == 0 { -slope - 0.5 * self.cells / noise } else { -0.5 / noise }
        });
        let bars = Bars {
            psi0: &[slope],
            psi1: (left.as_ref(), self.right.as_ref()),
            weights: weights.as_ref(),
            psi2: &self.against,
            kept: None,
        };
        let slopes = psi.pull(x, &bars)?;
        for j in 0..q {
            let s = variance[(0, j)];
            gradient[j] = mean[(0, j)] - slopes.mean[(0, j)];
            gradient[q + j] = 0.5 * (s - 1.0) - s * slopes.variance[(0, j)];
        }
        Ok(-value)
    }

    fn terms(&self) -> Option<f64> {
        Some(self.cells)
    }
}

impl Posterior {
    /// Finds q(x) = N(μ, diag S) of new rows from the cells they have: `y` is N×P with NaN where missing, on the scale of
    /// the targets that the posterior is of. q(u) stays as it is. `candidates` are where rows may lie, such as the training
    /// rows' q(X): those whose predictions are nearest are starts. A row without cells keeps the prior N(0, I).
    ///
    /// # Errors
    /// [`Error::Shape`] for other numbers of columns; [`Error::NonFinite`] for an infinity; [`Error::Invalid`] without candidates.
    pub fn embed(
        &self,
        y: MatRef<f64>,
        candidates: Uncertain<'_>,
        options: &EmbedOptions,
    ) -> Result<Embedding> {
        if y.ncols() != self.columns() {
            return Err(Error::Shape {
                what: "new rows".into(),
                expected: format!("{} columns, as the targets had", self.columns()),
                found: format!("{}", y.ncols()),
            });
        }
        if candidates.mean.nrows() == 0 || options.starts == 0 {
            return Err(Error::Invalid(
                "new rows need at least one start and one candidate for it, such as a training row"
                    .into(),
            ));
        }
        let (all, q) = (candidates.mean.nrows(), self.dimensions());
        let count = all.min(CANDIDATES);
        let pick = |a: MatRef<f64>| Mat::from_fn(count, q, |i, j| a[(i * all / count, j)]);
        let (mean, variance) = (pick(candidates.mean), pick(candidates.variance));
        let near = Uncertain::new(mean.as_ref(), variance.as_ref())?;
        let predicted = self.predict_f(near)?;
        let rows: Vec<(Vec<f64>, f64, bool)> = (0..y.nrows())
            .into_par_iter()
            .map(|i| {
                let mut own = Vec::new();
                for p in (0..y.ncols()).filter(|p| !y[(i, *p)].is_nan()) {
                    if y[(i, p)].is_infinite() {
                        let what = format!("the target in row {}, column {}", i + 1, p + 1);
                        return Err(Error::NonFinite { what, value: y[(i, p)] });
                    }
                    own.push((p, y[(i, p)]));
                }
                if own.is_empty() {
                    return Ok((vec![0.0; 2 * q], 0.0, true));
                }
                let starts = self.starts(&own, near, &predicted, options.starts);
                self.place(&own, starts, options)
            })
            .collect::<Result<_>>()?;
        Ok(Embedding {
            mean: Mat::from_fn(rows.len(), q, |i, j| rows[i].0[j]),
            variance: Mat::from_fn(rows.len(), q, |i, j| rows[i].0[q + j].exp()),
            bounds: rows.iter().map(|row| row.1).collect(),
            converged: rows.iter().map(|row| row.2).collect(),
        })
    }

    /// The candidates under which the cells are most probable, best first.
    fn starts(
        &self,
        y: &[(usize, f64)],
        near: Uncertain<'_>,
        (mean, variance): &(Mat<f64>, Mat<f64>),
        count: usize,
    ) -> Vec<Vec<f64>> {
        let score = |i: usize| -> f64 {
            let of = |(p, y): &(usize, f64)| {
                let spread = variance[(i, *p)] + self.noise;
                (y - mean[(i, *p)]).powi(2) / spread + spread.ln()
            };
            y.iter().map(of).sum()
        };
        let mut order: Vec<(f64, usize)> = (0..mean.nrows()).map(|i| (score(i), i)).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        let start = |(_, i): (f64, usize)| {
            let q = near.mean.ncols();
            // a known place has no logarithm
            let log = |j: usize| near.variance[(i, j)].max(1e-6).ln();
            (0..q).map(|j| near.mean[(i, j)]).chain((0..q).map(log)).collect()
        };
        order.into_iter().take(count).map(start).collect()
    }

    /// The best place that the starts lead to, its bound, and whether it has converged.
    fn place(
        &self,
        y: &[(usize, f64)],
        starts: Vec<Vec<f64>>,
        options: &EmbedOptions,
    ) -> Result<(Vec<f64>, f64, bool)> {
        let mut row = Row::new(self, y);
        let mut best: Option<(Vec<f64>, f64, bool)> = None;
        for start in starts {
            let mut lbfgs = Lbfgs::new(start, options.lbfgs.clone());
            let mut slope = f64::INFINITY;
            for _ in 0..options.iterations.max(1) {
                let step = lbfgs.step(&mut row)?;
                slope = step.gradient_norm;
                if step.status.is_final() {
                    break;
                }
            }
            let (x, value) = lbfgs.best().map_or((lbfgs.x(), f64::INFINITY), |best| best);
            if best.as_ref().is_none_or(|(_, least, _)| -value > *least) {
                let converged = match lbfgs.status() {
                    Status::Converged(_) => true,
                    // rounding hides lower values before the tolerance of the slopes is met
                    Status::Stalled(Stall::LineSearch { .. }) => slope <= FLAT * row.cells,
                    Status::Stalled(_) | Status::Running => false,
                };
                best = Some((x.to_vec(), -value, converged));
            }
        }
        best.ok_or_else(|| Error::Invalid("new rows need at least one start".into()))
    }
}

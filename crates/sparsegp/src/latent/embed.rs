//! New rows of a trained model: where they lie, from the cells they have.

use super::predict::Posterior;
use super::targets::Targets;
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

/// Where a start has led.
pub(super) struct Optimum {
    /// μ, then log S.
    pub at: Vec<f64>,
    bound: f64,
    converged: bool,
}

/// Where rows may lie, and what is predicted there.
pub(super) struct Candidates {
    pub mean: Mat<f64>,
    pub variance: Mat<f64>,
    predicted: (Mat<f64>, Mat<f64>),
}

/// The cells that a row has: columns with their values.
pub(super) type Cells = [(usize, f64)];

/// Largest slope for every cell of a search that stalled and has settled all the same: q(x) is as wide as its bound is
/// curved, and no wider than 1, so that its mean is off by some 10⁻⁴ of its width.
const FLAT: f64 = 1e-4;
/// Candidates for starts that are looked at.
const CANDIDATES: usize = 256;

/// Rows: their bound as a function of all μ and all log S, given q(u).
///
/// ```text
/// Σ_p {−½ log 2πσ² − (y² − 2y ψ₁b + tr (bbᵀ + R⁻¹)ψ₂)/2σ² − ρ(d)} − KL(q(x) ‖ N(0, I))
/// ```
///
/// summed over the rows and the columns p that a row has: the collapsed bound before q(u) is maximised out (Titsias & Lawrence
/// 2010).
pub(super) struct Places<'a> {
    posterior: &'a Posterior,
    /// Cells of every row.
    cells: Vec<f64>,
    /// Σ y² of all.
    squares: f64,
    /// Weights of ψ₁ (N×C) and what they are of: Σ_c wᵢ_c rᵀ_c ψ₁ᵢ is Σ_p y ψ₁b.
    left: Mat<f64>,
    right: Mat<f64>,
    /// Which rows have the columns of a group, N×G.
    has: Mat<f64>,
    /// K⁻¹, and Σ (bbᵀ + R⁻¹ − K⁻¹) over the columns of every group.
    against: Vec<Mat<f64>>,
}

impl<'a> Places<'a> {
    /// Creates places of one row with these cells.
    pub(super) fn of_row(posterior: &'a Posterior, y: &[(usize, f64)]) -> Self {
        let m = posterior.b.nrows();
        let mut gram = Mat::zeros(m, m);
        for known in &posterior.known {
            let count = y.iter().filter(|(p, _)| known.columns.contains(p)).count();
            gram -= &known.reduction * faer::Scale(count as f64);
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
            cells: vec![y.len() as f64],
            squares: y.iter().map(|(_, y)| y * y).sum(),
            left: Mat::from_fn(1, 1, |_, _| 1.0),
            right,
            has: Mat::from_fn(1, 1, |_, _| 1.0),
            against: vec![posterior.inverse.clone(), gram],
        }
    }

    /// Creates the rows of targets in the groups of the posterior, with what [`Posterior::grams`]
    /// says of these.
    pub(super) fn of_targets(
        posterior: &'a Posterior,
        targets: &Targets,
        grams: &[Mat<f64>],
    ) -> Self {
        Self {
            posterior,
            cells: targets.cells.clone(),
            squares: dot(targets.y.as_ref(), targets.y.as_ref()),
            left: targets.y.clone(),
            right: posterior.b.clone(),
            has: targets.has.clone(),
            against: [std::slice::from_ref(&posterior.inverse), grams].concat(),
        }
    }
}

impl Objective for Places<'_> {
    fn dim(&self) -> usize {
        2 * self.cells.len() * self.posterior.dimensions()
    }

    fn evaluate(&mut self, at: &[f64], gradient: &mut [f64]) -> Result<f64> {
        let (psi, noise) = (&self.posterior.psi, self.posterior.noise);
        let (n, groups) = (self.cells.len(), self.has.ncols());
        let half = at.len() / 2;
        let q = half / n;
        let mean = MatRef::from_column_major_slice(&at[..half], n, q);
        let variance = Mat::from_fn(n, q, |i, j| at[half + j * n + i].exp());
        let x = Uncertain::new(mean, variance.as_ref())?;
        let none = Mat::zeros(n, 0);
        let folded = psi.fold(x, self.left.as_ref(), none.as_ref(), &self.against)?;
        let psi0 = psi.psi0(x)?;
        let mut value = -super::divergence(x)
            - 0.5 * (self.squares - 2.0 * dot(folded.psi1_y.as_ref(), self.right.as_ref())) / noise;
        let mut slopes = vec![0.0; n];
        let mut weights = Mat::zeros(n, 1 + groups);
        for (i, cells) in self.cells.iter().enumerate() {
            let projected = folded.traces[(i, 0)];
            let penalty = self.posterior.term.penalty(psi0[i] - projected, 1.0, noise);
            let mut second = cells * projected;
            for c in 0..groups {
                second += self.has[(i, c)] * folded.traces[(i, 1 + c)];
                weights[(i, 1 + c)] = -0.5 * self.has[(i, c)] / noise;
            }
            value -= cells * (0.5 * (TAU * noise).ln() + penalty.value) + 0.5 * second / noise;
            slopes[i] = -cells * penalty.by_r;
            weights[(i, 0)] = -slopes[i] - 0.5 * cells / noise;
        }
        if !value.is_finite() {
            return Err(Error::NonFinite { what: "the bound of a row".into(), value });
        }
        let left = &self.left * faer::Scale(1.0 / noise);
        let bars = Bars {
            psi0: &slopes,
            psi1: (left.as_ref(), self.right.as_ref()),
            weights: weights.as_ref(),
            psi2: &self.against,
            kept: None,
        };
        let slopes = psi.pull(x, &bars)?;
        for j in 0..q {
            for i in 0..n {
                let s = variance[(i, j)];
                gradient[j * n + i] = mean[(i, j)] - slopes.mean[(i, j)];
                gradient[half + j * n + i] = 0.5 * (s - 1.0) - s * slopes.variance[(i, j)];
            }
        }
        Ok(-value)
    }

    fn terms(&self) -> Option<f64> {
        Some(self.cells.iter().sum())
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
        let (q, near) = (self.dimensions(), self.candidates(y, candidates, options)?);
        let rows: Vec<Optimum> = (0..y.nrows())
            .into_par_iter()
            .map(|i| {
                let own = cells(y, i)?;
                if own.is_empty() {
                    return Ok(Optimum { at: vec![0.0; 2 * q], bound: 0.0, converged: true });
                }
                let found = self.optima(&own, &near, options)?;
                let best = found.into_iter().reduce(|a, b| if b.bound > a.bound { b } else { a });
                best.ok_or_else(|| Error::Invalid("new rows need at least one start".into()))
            })
            .collect::<Result<_>>()?;
        Ok(Embedding {
            mean: Mat::from_fn(rows.len(), q, |i, j| rows[i].at[j]),
            variance: Mat::from_fn(rows.len(), q, |i, j| rows[i].at[q + j].exp()),
            bounds: rows.iter().map(|row| row.bound).collect(),
            converged: rows.iter().map(|row| row.converged).collect(),
        })
    }

    /// Looks at candidates for the places of these rows.
    ///
    /// # Errors
    /// As for [`Posterior::embed`].
    pub(super) fn candidates(
        &self,
        y: MatRef<f64>,
        candidates: Uncertain<'_>,
        options: &EmbedOptions,
    ) -> Result<Candidates> {
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
        let predicted = self.predict_f(Uncertain::new(mean.as_ref(), variance.as_ref())?)?;
        Ok(Candidates { mean, variance, predicted })
    }

    /// Returns for every candidate −2 log of the density that cells have there, but for a constant.
    pub(super) fn misfits(&self, y: &Cells, near: &Candidates) -> Vec<f64> {
        let (mean, variance) = &near.predicted;
        let of = |i: usize, (p, y): &(usize, f64)| {
            let spread = variance[(i, *p)] + self.noise;
            (y - mean[(i, *p)]).powi(2) / spread + spread.ln()
        };
        (0..mean.nrows()).map(|i| y.iter().map(|cell| of(i, cell)).sum()).collect()
    }

    /// Returns where the candidates lead under which the cells are most probable.
    pub(super) fn optima(
        &self,
        y: &Cells,
        near: &Candidates,
        options: &EmbedOptions,
    ) -> Result<Vec<Optimum>> {
        let misfits = self.misfits(y, near);
        let mut order: Vec<usize> = (0..misfits.len()).collect();
        order.sort_by(|a, b| misfits[*a].total_cmp(&misfits[*b]));
        let mut row = Places::of_row(self, y);
        let from = |i: usize| {
            let q = self.dimensions();
            // a known place has no logarithm
            let log = |j: usize| near.variance[(i, j)].max(1e-6).ln();
            let start = (0..q).map(|j| near.mean[(i, j)]).chain((0..q).map(log)).collect();
            self.climb(&mut row, start, y.len(), options)
        };
        order.into_iter().take(options.starts).map(from).collect()
    }

    /// Returns where a start leads.
    fn climb(
        &self,
        row: &mut Places<'_>,
        start: Vec<f64>,
        cells: usize,
        options: &EmbedOptions,
    ) -> Result<Optimum> {
        let mut lbfgs = Lbfgs::new(start, options.lbfgs.clone());
        let mut slope = f64::INFINITY;
        for _ in 0..options.iterations.max(1) {
            let step = lbfgs.step(row)?;
            slope = step.gradient_norm;
            if step.status.is_final() {
                break;
            }
        }
        let (x, value) = lbfgs.best().map_or((lbfgs.x(), f64::INFINITY), |best| best);
        let converged = match lbfgs.status() {
            Status::Converged(_) => true,
            // rounding hides lower values before the tolerance of the slopes is met
            Status::Stalled(Stall::LineSearch { .. }) => slope <= FLAT * cells as f64,
            Status::Stalled(_) | Status::Running => false,
        };
        Ok(Optimum { at: x.to_vec(), bound: -value, converged })
    }
}

/// Returns the cells that a row has.
///
/// # Errors
/// [`Error::NonFinite`] for an infinity.
pub(super) fn cells(y: MatRef<f64>, i: usize) -> Result<Vec<(usize, f64)>> {
    let mut own = Vec::new();
    for p in (0..y.ncols()).filter(|p| !y[(i, *p)].is_nan()) {
        if y[(i, p)].is_infinite() {
            let what = format!("the target in row {}, column {}", i + 1, p + 1);
            return Err(Error::NonFinite { what, value: y[(i, p)] });
        }
        own.push((p, y[(i, p)]));
    }
    Ok(own)
}

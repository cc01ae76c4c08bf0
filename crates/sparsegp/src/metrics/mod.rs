//! Scores of predictions, gathered block by block.
//!
//! Here: Gaussian predictions ([`Metrics`]). [`classes`]: probabilities of classes; [`counts`]: counts;
//! [`density`]: any prediction that has a density or intervals. All states can be merged.
//!
//! For a target `y` and its predictive distribution `N(μ, σ²)` (σ² with the observation noise), in the
//! targets' own units, with `z = (y − μ)/σ`:
//!
//! | score | per value | source |
//! | --- | --- | --- |
//! | RMSE, MAE | root of the mean of `(y − μ)²`, mean of `\|y − μ\|` | |
//! | R² | `1 − Σ(y − μ)² / Σ(y − ȳ)²`, `ȳ` the mean of the scored targets | |
//! | NLPD | `½ log 2πσ² + ½ z²` | Rasmussen & Williams 2006, §2.5 |
//! | MSLL | NLPD minus that of `N(y; ȳ₀, s₀²)` with mean and variance of the *training* targets | ibid., eq. 2.34 |
//! | CRPS | `σ [z (2Φ(z) − 1) + 2φ(z) − 1/√π]` | Gneiting & Raftery 2007, eq. 21, sign changed |
//! | coverage | whether `\|z\| ≤ Φ⁻¹((1 + q)/2)` | |
//!
//! RMSE, MAE, NLPD, MSLL and CRPS are better the smaller they are; MSLL is below 0 where the model beats
//! the trivial one. A coverage should be near its level.

pub mod classes;
pub mod counts;
pub mod density;
#[cfg(test)]
mod density_tests;
mod mixing;
#[cfg(test)]
mod tests;

pub use mixing::{Mixing, Sampled};

use crate::data::moments::Moments;
use crate::error::{Error, Result};
use faer::MatRef;
use serde::{Deserialize, Serialize};
use statrs::function::erf::{erf, erf_inv, erfc_inv};
use std::f64::consts::{PI, SQRT_2, TAU};

/// The levels of the central intervals whose coverage is counted.
const LEVELS: [f64; 3] = [0.5, 0.9, 0.95];

/// Mean scores; see the [module](self) for the formulas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// Number of rows.
    pub rows: u64,
    /// Root mean squared error.
    pub rmse: f64,
    /// Mean absolute error.
    pub mae: f64,
    /// Share of the variance that the means explain; `None` where the targets do not vary, as in a
    /// single row.
    pub r2: Option<f64>,
    /// Mean negative log predictive density, in nats.
    pub nlpd: f64,
    /// Mean standardised log loss, in nats; `None` without training statistics, or where the training
    /// targets do not vary.
    pub msll: Option<f64>,
    /// Mean continuous ranked probability score, in the targets' units.
    pub crps: f64,
    /// Share of the targets in the central 50 % intervals.
    pub coverage_50: f64,
    /// Share of the targets in the central 90 % intervals.
    pub coverage_90: f64,
    /// Share of the targets in the central 95 % intervals.
    pub coverage_95: f64,
}

/// The sums for one target column.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sums {
    y: Moments,
    squared: f64,
    absolute: f64,
    nlpd: f64,
    trivial: f64,
    crps: f64,
    inside: [u64; LEVELS.len()],
}

impl Sums {
    fn merge(&mut self, other: &Self) {
        self.y.merge(&other.y);
        self.squared += other.squared;
        self.absolute += other.absolute;
        self.nlpd += other.nlpd;
        self.trivial += other.trivial;
        self.crps += other.crps;
        self.inside.iter_mut().zip(other.inside).for_each(|(a, b)| *a += b);
    }
}

/// Running scores of predictions; states of different blocks can be merged.
#[derive(Clone, Debug, PartialEq)]
pub struct Metrics {
    columns: Vec<Sums>,
    /// Mean and variance of the training targets.
    trivial: Option<Vec<(f64, f64)>>,
    /// Half widths of the central intervals of a standard normal.
    widths: [f64; LEVELS.len()],
}

/// Returns −log N(y | μ, σ²) = ½ log 2πσ² + (y − μ)²/2σ².
pub fn negative_log_density(y: f64, mean: f64, variance: f64) -> f64 {
    // The square is of the standardised error: the error's own square may overflow.
    0.5 * (TAU.ln() + variance.ln() + ((y - mean) / variance.sqrt()).powi(2))
}

/// Returns the quantile of a standard normal: Φ⁻¹(p) for p between 0 and 1.
pub fn standard_normal_quantile(p: f64) -> f64 {
    -SQRT_2 * erfc_inv(2.0 * p)
}

/// Returns the continuous ranked probability score of `N(μ, σ²)` at `y`.
fn crps(y: f64, mean: f64, deviation: f64) -> f64 {
    let z = (y - mean) / deviation;
    let density = (-0.5 * z * z).exp() / TAU.sqrt();
    deviation * (z * erf(z / SQRT_2) + 2.0 * density - 1.0 / PI.sqrt())
}

impl Metrics {
    /// Creates metrics of `outputs` target columns, without MSLL.
    pub fn new(outputs: usize) -> Self {
        Self {
            columns: vec![Sums::default(); outputs],
            trivial: None,
            widths: LEVELS.map(|level| SQRT_2 * erf_inv(level)),
        }
    }

    /// Creates metrics with MSLL, which compares with a Gaussian of these means and variances, one
    /// of each per target column: those of the *training* targets in their own units. Where a
    /// variance is 0 there is no MSLL.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there are as many variances as means.
    pub fn against_trivial(mean: &[f64], variance: &[f64]) -> Result<Self> {
        if mean.len() != variance.len() {
            return Err(shape("variances of the training targets", mean.len(), variance.len()));
        }
        let pairs: Vec<_> = mean.iter().copied().zip(variance.iter().copied()).collect();
        let usable = pairs.iter().all(|(mean, v)| mean.is_finite() && *v > 0.0 && v.is_finite());
        Ok(Self { trivial: usable.then_some(pairs), ..Self::new(mean.len()) })
    }

    /// Adds a block of rows: targets, predictive means and predictive variances (with the observation
    /// noise), all B×P in the targets' own units. Nothing is added if there is an error.
    ///
    /// # Errors
    /// [`Error::Shape`]; [`Error::NonFinite`] for a target, mean or variance that is not finite;
    /// [`Error::Invalid`] for a variance that is not positive.
    pub fn add(
        &mut self,
        y: MatRef<'_, f64>,
        mean: MatRef<'_, f64>,
        variance: MatRef<'_, f64>,
    ) -> Result<()> {
        for (what, found) in [
            ("targets", y.shape()),
            ("predicted means", mean.shape()),
            ("predicted variances", variance.shape()),
        ] {
            if found != (y.nrows(), self.columns.len()) {
                let expected = format!("{}×{}", y.nrows(), self.columns.len());
                let found = format!("{}×{}", found.0, found.1);
                return Err(Error::Shape { what: what.into(), expected, found });
            }
        }
        let mut columns = self.columns.clone();
        for (j, sums) in columns.iter_mut().enumerate() {
            for i in 0..y.nrows() {
                self.add_value(sums, j, i, y[(i, j)], mean[(i, j)], variance[(i, j)])?;
            }
        }
        self.columns = columns;
        Ok(())
    }

    fn add_value(
        &self,
        sums: &mut Sums,
        j: usize,
        i: usize,
        y: f64,
        mean: f64,
        variance: f64,
    ) -> Result<()> {
        let row = || format!("row {} of the block, target column {}", i + 1, j + 1);
        for (what, value) in
            [("target", y), ("predicted mean", mean), ("predicted variance", variance)]
        {
            if !value.is_finite() {
                return Err(Error::NonFinite { what: format!("{what} ({})", row()), value });
            }
        }
        if variance <= 0.0 {
            return Err(Error::Invalid(format!(
                "the predicted variance {variance:e} ({}) must be positive: add the observation noise",
                row()
            )));
        }
        let (error, deviation) = (y - mean, variance.sqrt());
        sums.y.push(y);
        sums.squared += error * error;
        sums.absolute += error.abs();
        sums.nlpd += negative_log_density(y, mean, variance);
        if let Some((mean, variance)) = self.trivial.as_ref().map(|pairs| pairs[j]) {
            sums.trivial += negative_log_density(y, mean, variance);
        }
        sums.crps += crps(y, mean, deviation);
        for (count, width) in sums.inside.iter_mut().zip(self.widths) {
            *count += u64::from((error / deviation).abs() <= width);
        }
        Ok(())
    }

    /// Adds what another state has seen.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of columns; [`Error::Invalid`] if the two do not compare with
    /// the same trivial model.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        if self.columns.len() != other.columns.len() {
            return Err(shape("target columns", self.columns.len(), other.columns.len()));
        }
        if self.trivial != other.trivial {
            return Err(Error::Invalid(
                "scores against different training statistics cannot be merged".into(),
            ));
        }
        self.columns.iter_mut().zip(&other.columns).for_each(|(a, b)| a.merge(b));
        Ok(())
    }

    /// Returns the scores of all target columns together: means over rows and columns. R² has the
    /// sums over all columns in numerator and denominator, each column about its own mean.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is nothing to score.
    pub fn finish(&self) -> Result<Scores> {
        self.scores(&self.columns)
    }

    /// Returns the scores of each target column.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is nothing to score.
    pub fn finish_each(&self) -> Result<Vec<Scores>> {
        self.columns.iter().map(|sums| self.scores(std::slice::from_ref(sums))).collect()
    }

    fn scores(&self, columns: &[Sums]) -> Result<Scores> {
        let rows = columns.first().map_or(0, |sums| sums.y.count());
        if rows == 0 {
            return Err(Error::Invalid("there are no predictions to score: add some rows".into()));
        }
        let count = rows as f64 * columns.len() as f64;
        let total = |f: fn(&Sums) -> f64| columns.iter().map(f).sum::<f64>();
        let covered = |level: usize| {
            columns.iter().map(|sums| sums.inside[level]).sum::<u64>() as f64 / count
        };
        let (squared, spread) = (total(|s| s.squared), total(|s| s.y.squares()));
        let varies = columns.iter().any(|sums| !sums.y.is_constant()) && spread > 0.0;
        Ok(Scores {
            rows,
            rmse: (squared / count).sqrt(),
            mae: total(|s| s.absolute) / count,
            r2: varies.then(|| 1.0 - squared / spread),
            nlpd: total(|s| s.nlpd) / count,
            msll: self
                .trivial
                .is_some()
                .then(|| (total(|s| s.nlpd) - total(|s| s.trivial)) / count),
            crps: total(|s| s.crps) / count,
            coverage_50: covered(0),
            coverage_90: covered(1),
            coverage_95: covered(2),
        })
    }
}

fn shape(what: &str, expected: usize, found: usize) -> Error {
    Error::Shape { what: what.into(), expected: expected.to_string(), found: found.to_string() }
}

/// Returns the weight of every row of a block: 1 where none are given.
fn weights_of<'a>(weights: Option<&'a [f64]>, rows: usize) -> Result<impl Fn(usize) -> f64 + 'a> {
    if let Some(weights) = weights {
        if weights.len() != rows {
            return Err(shape("weights", rows, weights.len()));
        }
        if let Some(i) = weights.iter().position(|w| !(0.0..f64::INFINITY).contains(w)) {
            return Err(Error::Invalid(format!(
                "the weight {} (row {} of the block) must be finite and at least 0",
                weights[i],
                i + 1
            )));
        }
    }
    Ok(move |i| weights.map_or(1.0, |weights: &[f64]| weights[i]))
}

/// Checks that there is something to take means of.
fn check_total(rows: u64, weight: f64) -> Result<()> {
    match rows {
        0 => Err(Error::Invalid("there are no predictions to score: add some rows".into())),
        _ if weight > 0.0 => Ok(()),
        _ => Err(Error::Invalid(format!(
            "the weights of all {rows} rows to score are 0: give some of them weight"
        ))),
    }
}

//! Scores of predictions under any likelihood, gathered block by block.
//!
//! For targets `y` with weights `w` (1 unless given), predictive means `μ`, predictive densities `p` and
//! central intervals `[l, h]` between quantiles, and with the mean over rows `⟨s⟩ = Σ wᵢ sᵢ / Σ wᵢ`:
//!
//! | score | formula | source |
//! | --- | --- | --- |
//! | RMSE, MAE | `⟨(y − μ)²⟩^½`, `⟨\|y − μ\|⟩` | |
//! | NLPD | `−⟨log p(y)⟩`, with `p(y) = E[p(y \| f)]` | Gneiting & Raftery 2007, §4.1, sign changed |
//! | coverage | `⟨1{l ≤ y ≤ h}⟩` | |
//!
//! All but coverage are better the smaller they are. A coverage should be near its level; above it
//! where the targets are discrete, as an interval that holds at least its level often holds more.

use super::{check_total, shape, weights_of};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// Predictions of a block of B rows with their targets: slices of length B.
#[derive(Clone, Copy, Debug, Default)]
pub struct Predictions<'a> {
    /// The targets.
    pub y: &'a [f64],
    /// Predictive means, if they are to be scored.
    pub mean: Option<&'a [f64]>,
    /// Log predictive densities (or probabilities) of the targets, in nats, if they are to be scored.
    /// −∞ is one: of a target that the prediction rules out.
    pub log_density: Option<&'a [f64]>,
    /// Predictive probabilities P(Y < y) and P(Y ≤ y) of less than the targets and of no more than them, which are the same
    /// but for whole numbers; needed for coverages.
    pub cdf: Option<(&'a [f64], &'a [f64])>,
    /// Weights ≥ 0 of the rows; 1 where there are none.
    pub weights: Option<&'a [f64]>,
}

/// How often targets were within central intervals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Coverage {
    /// The level of the intervals.
    pub level: f64,
    /// Share of the targets within them.
    pub share: f64,
}

/// Mean scores; see the [module](self) for the formulas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DensityScores {
    /// Number of rows.
    pub rows: u64,
    /// Sum of their weights.
    pub weight: f64,
    /// Root mean squared error of the means; `None` if no means were given.
    pub rmse: Option<f64>,
    /// Mean absolute error of the means; `None` if no means were given.
    pub mae: Option<f64>,
    /// Mean negative log predictive density, in nats; `None` if no densities were given, +∞ if a target
    /// of positive weight was ruled out.
    pub nlpd: Option<f64>,
    /// Number of targets of positive weight that were ruled out: log density −∞.
    pub ruled_out: u64,
    /// Coverage at every level.
    pub coverage: Vec<Coverage>,
}

/// Running scores of predictions under any likelihood; states of different blocks can be merged.
#[derive(Clone, Debug, PartialEq)]
pub struct DensityMetrics {
    levels: Vec<f64>,
    rows: u64,
    weight: f64,
    rows_with_mean: u64,
    squared: f64,
    absolute: f64,
    rows_with_density: u64,
    log_density: f64,
    ruled_out: u64,
    inside: Vec<f64>,
}

impl DensityMetrics {
    /// Creates metrics with central intervals of these levels, such as `[0.5, 0.95]`; none are
    /// needed.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a level that is not between 0 and 1.
    pub fn new(levels: &[f64]) -> Result<Self> {
        if let Some(level) = levels.iter().find(|level| !(**level > 0.0 && **level < 1.0)) {
            return Err(Error::Invalid(format!(
                "the level {level} of a central interval must be between 0 and 1"
            )));
        }
        Ok(Self {
            levels: levels.to_vec(),
            rows: 0,
            weight: 0.0,
            rows_with_mean: 0,
            squared: 0.0,
            absolute: 0.0,
            rows_with_density: 0,
            log_density: 0.0,
            ruled_out: 0,
            inside: vec![0.0; levels.len()],
        })
    }

    /// Adds a block of rows. Either all blocks bring means or none; likewise densities. Nothing is added
    /// if there is an error.
    ///
    /// # Errors
    /// [`Error::Shape`]; [`Error::NonFinite`] for a target or mean that is not finite and for a log
    /// density that is NaN or +∞; [`Error::Invalid`] for weights that are negative or not finite,
    /// intervals that end before they begin, and blocks of which only some bring means (densities).
    pub fn add(&mut self, block: &Predictions<'_>) -> Result<()> {
        let mut next = self.clone();
        next.add_rows(block)?;
        next.check_whole()?;
        *self = next;
        Ok(())
    }

    fn add_rows(&mut self, block: &Predictions<'_>) -> Result<()> {
        let rows = block.y.len();
        let weight = weights_of(block.weights, rows)?;
        let lengths = [("predicted means", block.mean), ("log densities", block.log_density)];
        for (what, values) in lengths.into_iter().filter_map(|(what, v)| Some((what, v?))) {
            if values.len() != rows {
                return Err(shape(what, rows, values.len()));
            }
        }
        if block.cdf.is_none() && !self.levels.is_empty() {
            let what = "coverages need the predictive probabilities P(Y < y) and P(Y ≤ y)";
            return Err(Error::Invalid(what.into()));
        }
        for (i, y) in block.y.iter().copied().enumerate() {
            let not_finite = |what: &str, value: f64| {
                Err(Error::NonFinite {
                    what: format!("{what} (row {} of the block)", i + 1),
                    value,
                })
            };
            if !y.is_finite() {
                return not_finite("target", y);
            }
            if let Some(mean) = block.mean.map(|mean| mean[i]) {
                if !mean.is_finite() {
                    return not_finite("predicted mean", mean);
                }
                self.squared += weight(i) * (y - mean).powi(2);
                self.absolute += weight(i) * (y - mean).abs();
            }
            if let Some(log) = block.log_density.map(|log| log[i]) {
                if log.is_nan() || log == f64::INFINITY {
                    return not_finite("log density", log);
                }
                // 0·∞ would be NaN.
                if weight(i) > 0.0 {
                    self.log_density += weight(i) * log;
                    self.ruled_out += u64::from(log == f64::NEG_INFINITY);
                }
            }
            self.weight += weight(i);
        }
        if let Some((below, up_to)) = block.cdf {
            for probabilities in [below, up_to] {
                if probabilities.len() != rows {
                    return Err(shape("predictive probabilities", rows, probabilities.len()));
                }
            }
            for (i, (below, up_to)) in below.iter().zip(up_to).enumerate() {
                if !(0.0..=*up_to).contains(below) || *up_to > 1.0 {
                    return Err(Error::Invalid(format!(
                        "the probabilities {below} of less than the target and {up_to} of no more (row {} of the \
                         block) must be from 0 to 1 and in order",
                        i + 1
                    )));
                }
                // l ≤ y where P(Y ≤ y) is at least (1 − level)/2, whose quantile is l; y ≤ h where less than y has
                // not the probability that belongs to h yet
                for (inside, level) in self.inside.iter_mut().zip(&self.levels) {
                    let (from, to) = (0.5 - 0.5 * level, 0.5 + 0.5 * level);
                    let within = *up_to >= from && *below < to;
                    *inside += weight(i) * f64::from(u8::from(within));
                }
            }
        }
        self.rows += rows as u64;
        self.rows_with_mean += block.mean.map_or(0, |mean| mean.len() as u64);
        self.rows_with_density += block.log_density.map_or(0, |log| log.len() as u64);
        Ok(())
    }

    /// Refuses means over some of the rows, which would look like means over all of them.
    fn check_whole(&self) -> Result<()> {
        for (what, rows) in
            [("predicted means", self.rows_with_mean), ("log densities", self.rows_with_density)]
        {
            if rows > 0 && rows < self.rows {
                return Err(Error::Invalid(format!(
                    "only {rows} of {} rows have {what}: give them for all rows or for none",
                    self.rows
                )));
            }
        }
        Ok(())
    }

    /// Adds what another state has seen; nothing if there is an error.
    ///
    /// # Errors
    /// [`Error::Invalid`] for other levels, or if only one of the two has means (densities).
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        if self.levels != other.levels {
            return Err(Error::Invalid(format!(
                "coverages at the levels {:?} and {:?} cannot be merged",
                self.levels, other.levels
            )));
        }
        let mut next = self.clone();
        next.rows += other.rows;
        next.weight += other.weight;
        next.rows_with_mean += other.rows_with_mean;
        next.squared += other.squared;
        next.absolute += other.absolute;
        next.rows_with_density += other.rows_with_density;
        next.log_density += other.log_density;
        next.ruled_out += other.ruled_out;
        next.inside.iter_mut().zip(&other.inside).for_each(|(a, b)| *a += b);
        next.check_whole()?;
        *self = next;
        Ok(())
    }

    /// Returns the scores.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is nothing to score, or only rows of weight 0.
    pub fn finish(&self) -> Result<DensityScores> {
        check_total(self.rows, self.weight)?;
        let mean = |sum: f64| sum / self.weight;
        let of_means = |score: f64| (self.rows_with_mean > 0).then_some(score);
        Ok(DensityScores {
            rows: self.rows,
            weight: self.weight,
            rmse: of_means(mean(self.squared).sqrt()),
            mae: of_means(mean(self.absolute)),
            nlpd: (self.rows_with_density > 0).then(|| -mean(self.log_density)),
            ruled_out: self.ruled_out,
            coverage: self
                .levels
                .iter()
                .zip(&self.inside)
                .map(|(level, inside)| Coverage { level: *level, share: mean(*inside) })
                .collect(),
        })
    }
}

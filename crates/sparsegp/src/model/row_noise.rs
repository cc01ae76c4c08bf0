//! Gaussian noise of rows with weights and known variances.
//!
//! A row of weight w and known noise variance e has the term N(y; f, s)ʷ, s = σ² + e, which is N(y; f, s/w)
//! times (2πs)^{(1−w)/2} w^{−½}. A row of weight 0 does not count.

use crate::data::{InMemory, Source};
use std::f64::consts::TAU;

/// Returns the rows whose weight is not 0.
pub(crate) fn weighty(rows: InMemory) -> InMemory {
    if rows.weights.iter().all(|w| *w != 0.0) {
        return rows;
    }
    let kept: Vec<usize> = (0..rows.weights.len()).filter(|i| rows.weights[*i] != 0.0).collect();
    rows.picked(&kept)
}

/// Variances of the noise of the rows.
#[derive(Clone, Debug)]
pub(crate) enum RowNoise {
    /// σ² for all of them.
    Common(f64),
    /// s and w of every row.
    Rows(Vec<(f64, f64)>),
}

impl RowNoise {
    /// Creates the noise of rows under a Gaussian noise of this variance.
    pub(crate) fn new(variance: f64, rows: &InMemory) -> Self {
        if rows.is_plain() {
            return Self::Common(variance);
        }
        let weight = |i: usize| rows.weights.get(i).copied().unwrap_or(1.0);
        let known = |i: usize| rows.extra.get(i).copied().unwrap_or(0.0);
        Self::Rows((0..rows.x.nrows()).map(|i| (variance + known(i), weight(i))).collect())
    }

    /// Returns s/w of a row.
    pub(crate) fn of(&self, row: usize) -> f64 {
        match self {
            Self::Common(variance) => *variance,
            Self::Rows(rows) => rows[row].0 / rows[row].1,
        }
    }

    /// Returns the log of the factors beside the Gaussian densities of one target column, and its
    /// slope in σ².
    pub(crate) fn factors(&self) -> (f64, f64) {
        self.factors_where(|_| true)
    }

    /// Returns [`RowNoise::factors`] of some rows only.
    pub(crate) fn factors_where(&self, counts: impl Fn(usize) -> bool) -> (f64, f64) {
        let Self::Rows(rows) = self else { return (0.0, 0.0) };
        let rows = || rows.iter().enumerate().filter(|(i, _)| counts(*i)).map(|(_, row)| row);
        let value = |(s, w): &(f64, f64)| 0.5 * (1.0 - w) * (TAU * s).ln() - 0.5 * w.ln();
        let slope = |(s, w): &(f64, f64)| 0.5 * (1.0 - w) / s;
        (rows().map(value).sum(), rows().map(slope).sum())
    }

    /// Returns ∂F/∂σ² from the slopes on the diagonal.
    pub(crate) fn pull(&self, diagonal: impl Iterator<Item = f64>) -> f64 {
        match self {
            Self::Common(_) => diagonal.sum(),
            Self::Rows(rows) => diagonal.zip(rows).map(|(slope, (_, w))| slope / w).sum(),
        }
    }

    /// Returns what the posterior must know of the rows beside σ².
    pub(crate) fn of_rows(&self) -> Vec<f64> {
        match self {
            Self::Common(_) => Vec::new(),
            Self::Rows(rows) => rows.iter().map(|(s, w)| s / w).collect(),
        }
    }
}

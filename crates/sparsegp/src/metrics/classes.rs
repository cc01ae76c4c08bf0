//! Scores of predicted class probabilities, gathered block by block.
//!
//! For classes `y` from 0 to C − 1, predicted probabilities `p_c`, the predicted class
//! `ŷ = argmax p_c` (the first of equals), and with the weighted mean over rows
//! `⟨s⟩ = Σ wᵢ sᵢ / Σ wᵢ`, weights 1 unless given:
//!
//! | score | formula | source |
//! | --- | --- | --- |
//! | accuracy, error | `⟨1{ŷ = y}⟩`, 1 minus that | |
//! | log loss | `−⟨log max(p_y, 2⁻⁵²)⟩` ([`FLOOR`]) | Gneiting & Raftery 2007, §3, sign changed |
//! | Brier score | `⟨Σ_c (p_c − 1{y = c})²⟩`, from 0 to 2 | Brier 1950, Mon. Weather Rev. 78:1 |
//! | AUC, C = 2 | `P(p₁ > p₁′) + ½P(p₁ = p₁′)`, row of class 1 against row′ of class 0 | Hanley & McNeil 1982, Radiology 143:29 |
//! | AUC, C > 2 | mean over classes of the AUC of `p_c` for `y = c` against `y ≠ c` | Fawcett 2006, §9.2, classes alike in weight |
//! | ECE | `Σ_b (w_b/Σw) \|accuracy_b − confidence_b\|` | Guo et al. 2017, eq. 3 |
//! | confusion | weight of the rows of class `a` predicted as `b` | |
//!
//! Log loss, Brier score and ECE are better the smaller they are, accuracy and AUC the larger.
//!
//! - Two classes are two columns like any other: their Brier score is twice the `⟨(p₁ − y)²⟩` of some
//!   texts, and their ECE is of the confidence in the predicted class, from ½ to 1.
//! - Bin `b` of `n` (15) holds the confidences `max p_c` in `((b − 1)/n, b/n]`.
//! - The AUC of more than two classes is over those that occur; fewer than two occurring: none.
//! - The AUC is exact and therefore keeps, for every row, its class, weight and probabilities (of two
//!   classes only `p₁`): 20 bytes for two classes, 12 + 8C for more.
//!   [`ClassOptions::auc`] turns that off; all else is O(C² + n).

mod ranking;

use super::{check_total, shape, weights_of};
use crate::error::{Error, Result};
use faer::MatRef;
use ranking::Ranking;
use serde::{Deserialize, Serialize};

/// The log loss takes no probability to be smaller than this, 2⁻⁵²: no row costs more than 36.04 nats.
pub const FLOOR: f64 = f64::EPSILON;

/// How far probabilities may be from [0, 1], and their sum from 1.
const TOLERANCE: f64 = 1e-6;

/// What is to be scored, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassOptions {
    /// Bins of the reliability table, at least 1.
    pub bins: usize,
    /// Whether to compute the AUC, for which every row has to be kept.
    pub auc: bool,
}

impl Default for ClassOptions {
    fn default() -> Self {
        Self { bins: 15, auc: true }
    }
}

/// A bin of the reliability table: the rows whose confidence is in (`low`, `high`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReliabilityBin {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Number of rows.
    pub rows: u64,
    /// Sum of their weights.
    pub weight: f64,
    /// Mean confidence; `None` without weight.
    pub confidence: Option<f64>,
    /// Accuracy; `None` without weight.
    pub accuracy: Option<f64>,
}

/// Mean scores; see the [module](self) for the formulas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassScores {
    /// Number of rows.
    pub rows: u64,
    /// Sum of their weights.
    pub weight: f64,
    /// Share of the rows whose class is the most probable one.
    pub accuracy: f64,
    /// The others.
    pub error: f64,
    /// Mean negative log probability of the class, in nats.
    pub log_loss: f64,
    /// Number of rows of positive weight whose class had a probability below [`FLOOR`].
    pub floored: u64,
    /// Brier score, from 0 to 2.
    pub brier: f64,
    /// Area under the receiver operating characteristic; `None` if fewer than two classes occur or it
    /// was not asked for.
    pub auc: Option<f64>,
    /// Expected calibration error.
    pub ece: f64,
    /// Confidence and accuracy by bins of the confidence, in ascending order.
    pub reliability: Vec<ReliabilityBin>,
    /// Weight of the rows of each class (C outer) by predicted class (C inner): of weight 1, numbers of
    /// rows.
    pub confusion: Vec<Vec<f64>>,
}

impl ClassScores {
    /// Returns the maximum calibration error: the greatest |accuracy − confidence| of the bins that
    /// have weight (Naeini, Cooper & Hauskrecht 2015).
    pub fn mce(&self) -> f64 {
        let gap = |bin: &ReliabilityBin| Some((bin.accuracy? - bin.confidence?).abs());
        self.reliability.iter().filter_map(gap).fold(0.0, f64::max)
    }
}

/// The sums of one bin.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Bin {
    rows: u64,
    weight: f64,
    confidence: f64,
    correct: f64,
}

/// Running scores of predicted class probabilities; states of different blocks can be merged.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassMetrics {
    classes: usize,
    rows: u64,
    log_loss: f64,
    floored: u64,
    brier: f64,
    bins: Vec<Bin>,
    /// C×C, true class by predicted class, row after row.
    confusion: Vec<f64>,
    ranking: Option<Ranking>,
}

/// A row that has been checked: class, weight, probabilities within [0, 1].
struct Row<'a> {
    class: usize,
    weight: f64,
    probabilities: &'a [f64],
}

impl ClassMetrics {
    /// Creates metrics of C `classes`.
    ///
    /// # Errors
    /// [`Error::Invalid`] for fewer than two classes or no bins.
    pub fn new(classes: usize, options: ClassOptions) -> Result<Self> {
        if classes < 2 {
            return Err(Error::Invalid(format!(
                "there must be two classes or more, not {classes}"
            )));
        }
        if options.bins == 0 {
            return Err(Error::Invalid("a reliability table needs at least 1 bin, not 0".into()));
        }
        Ok(Self {
            classes,
            rows: 0,
            log_loss: 0.0,
            floored: 0,
            brier: 0.0,
            bins: vec![Bin::default(); options.bins],
            confusion: vec![0.0; classes * classes],
            ranking: options.auc.then(|| Ranking::new(classes)),
        })
    }

    /// Adds a block of B rows: classes `y` (0, 1, …, as in [`crate::likelihoods::Target`]), predicted
    /// probabilities (B×C), and weights ≥ 0 if the rows do not all have weight 1. Nothing is added if
    /// there is an error.
    ///
    /// # Errors
    /// [`Error::Shape`]; [`Error::Invalid`] for a `y` that is not a class, probabilities out of [0,
    /// 1] or not of sum 1 by more than 10⁻⁶, and weights that are negative or not finite.
    pub fn add(
        &mut self,
        y: &[f64],
        probabilities: MatRef<'_, f64>,
        weights: Option<&[f64]>,
    ) -> Result<()> {
        if probabilities.shape() != (y.len(), self.classes) {
            return Err(Error::Shape {
                what: "class probabilities".into(),
                expected: format!("{}×{}", y.len(), self.classes),
                found: format!("{}×{}", probabilities.nrows(), probabilities.ncols()),
            });
        }
        let weight = weights_of(weights, y.len())?;
        let mut row = vec![0.0; self.classes];
        for (i, y) in y.iter().enumerate() {
            self.check(*y, probabilities, i)?;
        }
        for (i, y) in y.iter().enumerate() {
            for (c, p) in row.iter_mut().enumerate() {
                *p = probabilities[(i, c)].clamp(0.0, 1.0);
            }
            self.add_row(&Row { class: *y as usize, weight: weight(i), probabilities: &row });
        }
        Ok(())
    }

    fn check(&self, y: f64, probabilities: MatRef<'_, f64>, i: usize) -> Result<()> {
        let at = || format!("(row {} of the block)", i + 1);
        if !(y >= 0.0 && y < self.classes as f64 && y.fract() == 0.0) {
            let last = self.classes - 1;
            return Err(Error::Invalid(format!(
                "the target {y} {} is not a class from 0 to {last}",
                at()
            )));
        }
        let mut sum = 0.0;
        for c in 0..self.classes {
            let p = probabilities[(i, c)];
            if !(-TOLERANCE..=1.0 + TOLERANCE).contains(&p) {
                return Err(Error::Invalid(format!(
                    "the probability {p} of class {c} {} must be from 0 to 1",
                    at()
                )));
            }
            sum += p;
        }
        if (sum - 1.0).abs() > TOLERANCE {
            return Err(Error::Invalid(format!(
                "the probabilities {} have the sum {sum}: it must be 1",
                at()
            )));
        }
        Ok(())
    }

    fn add_row(&mut self, row: &Row<'_>) {
        let Row { class, weight, probabilities } = *row;
        let first_largest = |best: usize, c: usize| {
            if probabilities[c] > probabilities[best] { c } else { best }
        };
        let predicted = (0..self.classes).fold(0, first_largest);
        let confidence = probabilities[predicted];
        self.rows += 1;
        self.floored += u64::from(weight > 0.0 && probabilities[class] < FLOOR);
        self.log_loss -= weight * probabilities[class].max(FLOOR).ln();
        let term = |(c, p): (usize, &f64)| (p - f64::from(u8::from(c == class))).powi(2);
        self.brier += weight * probabilities.iter().enumerate().map(term).sum::<f64>();
        self.confusion[class * self.classes + predicted] += weight;
        let upper = (confidence * self.bins.len() as f64).ceil() as usize;
        let bin = &mut self.bins[upper.max(1) - 1];
        bin.rows += 1;
        bin.weight += weight;
        bin.confidence += weight * confidence;
        bin.correct += if predicted == class { weight } else { 0.0 };
        if let Some(ranking) = &mut self.ranking {
            ranking.push(class, weight, probabilities);
        }
    }

    /// Adds what another state has seen.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of classes or bins; [`Error::Invalid`] if only one of the two
    /// is to have an AUC.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        if self.classes != other.classes {
            return Err(shape("classes", self.classes, other.classes));
        }
        if self.bins.len() != other.bins.len() {
            return Err(shape("bins of the reliability table", self.bins.len(), other.bins.len()));
        }
        match (&mut self.ranking, &other.ranking) {
            (Some(own), Some(other)) => own.merge(other),
            (None, None) => {}
            _ => {
                return Err(Error::Invalid(
                    "scores with and without AUC cannot be merged: ask for both with it".into(),
                ));
            }
        }
        self.rows += other.rows;
        self.log_loss += other.log_loss;
        self.floored += other.floored;
        self.brier += other.brier;
        self.confusion.iter_mut().zip(&other.confusion).for_each(|(a, b)| *a += b);
        for (bin, other) in self.bins.iter_mut().zip(&other.bins) {
            bin.rows += other.rows;
            bin.weight += other.weight;
            bin.confidence += other.confidence;
            bin.correct += other.correct;
        }
        Ok(())
    }

    /// Returns the scores.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is nothing to score, or only rows of weight 0.
    pub fn finish(&self) -> Result<ClassScores> {
        let weight: f64 = self.confusion.iter().sum();
        check_total(self.rows, weight)?;
        let rows = self.confusion.chunks(self.classes);
        let error: f64 = rows
            .clone()
            .enumerate()
            .flat_map(|(y, row)| row.iter().enumerate().filter(move |(c, _)| *c != y))
            .map(|(_, weight)| weight)
            .sum();
        let bins = self.bins.len() as f64;
        let gap = |bin: &Bin| (bin.correct - bin.confidence).abs();
        let table = self.bins.iter().enumerate().map(|(b, bin)| {
            let mean = |sum: f64| (bin.weight > 0.0).then(|| sum / bin.weight);
            ReliabilityBin {
                low: b as f64 / bins,
                high: (b + 1) as f64 / bins,
                rows: bin.rows,
                weight: bin.weight,
                confidence: mean(bin.confidence),
                accuracy: mean(bin.correct),
            }
        });
        Ok(ClassScores {
            rows: self.rows,
            weight,
            accuracy: 1.0 - error / weight,
            error: error / weight,
            log_loss: self.log_loss / weight,
            floored: self.floored,
            brier: self.brier / weight,
            auc: self.ranking.as_ref().and_then(Ranking::auc),
            ece: self.bins.iter().map(gap).sum::<f64>() / weight,
            reliability: table.collect(),
            confusion: rows.map(<[f64]>::to_vec).collect(),
        })
    }
}

#[cfg(test)]
mod tests;

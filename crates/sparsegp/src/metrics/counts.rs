//! Scores of predicted counts, gathered block by block: those of [`density`](super::density) and the
//! Poisson deviance.
//!
//! For targets `y ≥ 0` and predictive means `μ ≥ 0`, with `⟨·⟩` the weighted mean over rows:
//!
//! | score | formula | source |
//! | --- | --- | --- |
//! | deviance | `2⟨y log(y/μ) − (y − μ)⟩`, with `0 log 0 = 0` | McCullagh & Nelder 1989, §2.3 |
//!
//! It is 0 where every mean is its target, and better the smaller it is. Targets need not be whole.

use super::density::{DensityMetrics, DensityScores, Predictions};
use super::{shape, weights_of};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// Mean scores; see the [module](self) for the formulas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CountScores {
    /// Mean Poisson deviance; +∞ if a mean of 0 met a target above it.
    pub deviance: f64,
    /// RMSE and MAE of the means, NLPD, coverage.
    #[serde(flatten)]
    pub general: DensityScores,
}

/// Running scores of predicted counts; states of different blocks can be merged.
#[derive(Clone, Debug, PartialEq)]
pub struct CountMetrics {
    general: DensityMetrics,
    deviance: f64,
}

/// Returns `2[y log(y/μ) − (y − μ)]`.
fn poisson_deviance(y: f64, mean: f64) -> f64 {
    if y == 0.0 {
        return 2.0 * mean;
    }
    if mean == 0.0 {
        return f64::INFINITY;
    }
    let (difference, sum) = (y - mean, y + mean);
    if difference.abs() >= 0.1 * sum {
        // A ratio may overflow, its logarithm does not.
        return 2.0 * (y * (y.ln() - mean.ln()) - difference);
    }
    // The two parts nearly cancel. With v = (y − μ)/(y + μ), log(y/μ) = 2 artanh v, and the half of the
    // deviance is (y − μ)v + 2y Σ_{j≥1} v^{2j+1}/(2j + 1): Loader 2000, "Fast and accurate computation
    // of binomial probabilities". |v| < 0.1: 9 terms reach 1e-20 of the first.
    let v = difference / sum;
    let series: f64 = (1..10).map(|j| v.powi(2 * j + 1) / f64::from(2 * j + 1)).sum();
    2.0 * (difference * v + 2.0 * y * series)
}

impl CountMetrics {
    /// Creates metrics with central intervals of these levels, such as `[0.5, 0.95]`; none are
    /// needed.
    ///
    /// # Errors
    /// Those of [`DensityMetrics::new`].
    pub fn new(levels: &[f64]) -> Result<Self> {
        Ok(Self { general: DensityMetrics::new(levels)?, deviance: 0.0 })
    }

    /// Adds a block of rows, which must bring means. Nothing is added if there is an error.
    ///
    /// # Errors
    /// Those of [`DensityMetrics::add`]; [`Error::Invalid`] without means, and for a target or a mean
    /// below 0.
    pub fn add(&mut self, block: &Predictions<'_>) -> Result<()> {
        let Some(mean) = block.mean else {
            return Err(Error::Invalid("scores of counts need the predicted means".into()));
        };
        if mean.len() != block.y.len() {
            return Err(shape("predicted means", block.y.len(), mean.len()));
        }
        for (what, values) in [("target", block.y), ("predicted mean", mean)] {
            if let Some(i) = values.iter().position(|value| *value < 0.0) {
                return Err(Error::Invalid(format!(
                    "the {what} {} (row {} of the block) must be at least 0 to be scored as a count",
                    values[i],
                    i + 1
                )));
            }
        }
        self.general.add(block)?;
        let weight = weights_of(block.weights, mean.len())?;
        for (i, (y, mean)) in block.y.iter().zip(mean).enumerate().filter(|(i, _)| weight(*i) > 0.0)
        {
            self.deviance += weight(i) * poisson_deviance(*y, *mean);
        }
        Ok(())
    }

    /// Adds what another state has seen; nothing if there is an error.
    ///
    /// # Errors
    /// Those of [`DensityMetrics::merge`].
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        self.general.merge(&other.general)?;
        self.deviance += other.deviance;
        Ok(())
    }

    /// Returns the scores.
    ///
    /// # Errors
    /// Those of [`DensityMetrics::finish`].
    pub fn finish(&self) -> Result<CountScores> {
        let general = self.general.finish()?;
        Ok(CountScores { deviance: self.deviance / general.weight, general })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use statrs::distribution::{Discrete, Poisson};

    const Y: [f64; 5] = [2.0, 0.0, 1.0, 4.0, 250.0];
    const MEAN: [f64; 5] = [0.5, 0.7, 2.0, 2.0, 231.5];

    fn scored(range: std::ops::Range<usize>, weights: Option<&[f64]>) -> CountMetrics {
        let mut metrics = CountMetrics::new(&[]).unwrap();
        let (y, mean) = (&Y[range.clone()], Some(&MEAN[range]));
        metrics.add(&Predictions { y, mean, weights, ..Predictions::default() }).unwrap();
        metrics
    }

    fn close(a: f64, b: f64, tolerance: f64) {
        assert!((a - b).abs() <= tolerance * b.abs(), "{a} is not {b}");
    }

    #[test]
    fn deviance_by_hand() {
        // The example of scikit-learn's `mean_poisson_deviance`, whose documentation says 1.4260…:
        // 2(2 log 4 − 1.5), 2·0.5, 2(1 − log 2), 2(4 log 2 − 2).
        let mut metrics = CountMetrics::new(&[]).unwrap();
        let (y, mean) = ([2.0, 0.0, 1.0, 4.0], [0.5, 0.5, 2.0, 2.0]);
        let block = Predictions { y: &y, mean: Some(&mean), ..Predictions::default() };
        metrics.add(&block).unwrap();
        let expected = (14.0 * 2f64.ln() - 4.0) / 4.0;
        let scores = metrics.finish().unwrap();
        close(scores.deviance, expected, 1e-15);
        close(scores.deviance, 1.426_015, 1e-6);
        close(scores.general.rmse.unwrap(), (7.5f64 / 4.0).sqrt(), 1e-15);
        close(scores.general.mae.unwrap(), 1.25, 1e-15);
        assert_eq!((scores.general.nlpd, scores.general.rows), (None, 4));
    }

    /// 2[log p(y | y) − log p(y | μ)], the definition.
    #[test]
    fn deviance_is_twice_the_log_likelihood_ratio_to_the_saturated_model() {
        for (y, mean) in [(3u64, 1.7), (1, 40.0), (57, 55.2), (57, 50.0), (400, 399.0)] {
            let log = |mean: f64| Poisson::new(mean).unwrap().ln_pmf(y);
            let expected = 2.0 * (log(y as f64) - log(mean));
            // The logarithms themselves are of size y log y and round.
            let rounding = 1e-14 * (y as f64) * (y as f64 + 1.0).ln();
            let found = poisson_deviance(y as f64, mean);
            assert!((found - expected).abs() <= rounding, "{found} is not {expected}");
        }
    }

    #[test]
    fn deviance_near_and_far_from_its_mean() {
        // y = μ(1 + ε): μ(ε² − ε³/3 + ε⁴/6 − …).
        let series = |mean: f64, e: f64| mean * (e * e - e.powi(3) / 3.0 + e.powi(4) / 6.0);
        close(poisson_deviance(1e9 + 1.0, 1e9), series(1e9, 1e-9), 1e-15);
        close(poisson_deviance(1e15 + 1.0, 1e15), series(1e15, 1e-15), 1e-15);
        close(
            poisson_deviance(1024.0, 1024.0 / (1.0 + 0.0009765625)),
            {
                let e = 0.0009765625f64;
                let mean = 1024.0 / (1.0 + e);
                series(mean, e) - mean * e.powi(5) / 10.0
            },
            1e-12,
        );
        assert_eq!(poisson_deviance(7.0, 7.0), 0.0);
        assert_eq!(poisson_deviance(0.0, 0.0), 0.0);
        assert_eq!(poisson_deviance(0.0, 3.5), 7.0);
        assert_eq!(poisson_deviance(2.0, 0.0), f64::INFINITY);
        assert!(poisson_deviance(1e300, 1e-300).is_finite());
        // Either side of the change of formula: |y − μ| = 0.1 (y + μ) at y = 11μ/9.
        let direct = |y: f64, mean: f64| 2.0 * (y * (y / mean).ln() - (y - mean));
        for mean in [0.9, 9.0, 9000.0] {
            for y in [mean * 11.0 / 9.0 * (1.0 - 1e-12), mean * 11.0 / 9.0 * (1.0 + 1e-12)] {
                close(poisson_deviance(y, mean), direct(y, mean), 1e-13);
            }
        }
    }

    #[test]
    fn weights_are_repetitions_and_merges_are_one_pass() {
        let weights = [2.0, 0.0, 1.0, 3.0, 1.0];
        let weighted = scored(0..5, Some(&weights)).finish().unwrap();
        let mut repeated = CountMetrics::new(&[]).unwrap();
        for (i, times) in weights.iter().enumerate() {
            (0..*times as usize).for_each(|_| repeated.merge(&scored(i..i + 1, None)).unwrap());
        }
        let repeated = repeated.finish().unwrap();
        close(weighted.deviance, repeated.deviance, 1e-14);
        close(weighted.general.rmse.unwrap(), repeated.general.rmse.unwrap(), 1e-14);
        assert_eq!((weighted.general.weight, weighted.general.rows), (7.0, 5));
        assert_eq!((repeated.general.weight, repeated.general.rows), (7.0, 7));

        let whole = scored(0..5, None).finish().unwrap();
        let mut merged = scored(0..3, None);
        merged.merge(&CountMetrics::new(&[]).unwrap()).unwrap();
        merged.merge(&scored(3..5, None)).unwrap();
        close(merged.finish().unwrap().deviance, whole.deviance, 1e-14);
        assert!(merged.merge(&CountMetrics::new(&[0.5]).unwrap()).is_err());
    }

    #[test]
    fn refusals_leave_the_state_as_it_was() {
        let mut metrics = scored(0..5, None);
        let before = metrics.clone();
        let mut fails = |y: &[f64], mean: Option<&[f64]>, part: &str| {
            let block = Predictions { y, mean, ..Predictions::default() };
            let error = metrics.add(&block).unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
            assert_eq!(metrics, before);
        };
        fails(&[1.0], None, "need the predicted means");
        fails(&[1.0, -2.0], Some(&[1.0, 1.0]), "target -2 (row 2 of the block) must be at least 0");
        fails(&[1.0], Some(&[-0.5]), "predicted mean -0.5 (row 1");
        fails(&[1.0], Some(&[f64::NAN]), "predicted mean (row 1 of the block) is not finite");
        fails(&[1.0], Some(&[1.0, 1.0]), "predicted means: expected 1, found 2");
        assert!(CountMetrics::new(&[]).unwrap().finish().is_err());
        let json = serde_json::to_value(before.finish().unwrap()).unwrap();
        assert!(json["deviance"].is_number() && json["rmse"].is_number() && json["rows"] == 5);
    }
}

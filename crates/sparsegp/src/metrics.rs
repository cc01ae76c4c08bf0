//! Scores of Gaussian predictions, gathered block by block.
//!
//! For a target `y` and its predictive distribution `N(μ, σ²)` (σ² with the observation noise), in the
//! targets' own units, with `z = (y − μ)/σ`:
//!
//! | score | per value | source |
//! | --- | --- | --- |
//! | RMSE, MAE | root of the mean of `(y − μ)²`, mean of `|y − μ|` | |
//! | R² | `1 − Σ(y − μ)² / Σ(y − ȳ)²`, `ȳ` the mean of the scored targets | |
//! | NLPD | `½ log 2πσ² + ½ z²` | Rasmussen & Williams 2006, §2.5 |
//! | MSLL | NLPD minus that of `N(y; ȳ₀, s₀²)` with mean and variance of the *training* targets | ibid., eq. 2.34 |
//! | CRPS | `σ [z (2Φ(z) − 1) + 2φ(z) − 1/√π]` | Gneiting & Raftery 2007, eq. 21, sign changed |
//! | coverage | whether `|z| ≤ Φ⁻¹((1 + q)/2)` | |
//!
//! RMSE, MAE, NLPD, MSLL and CRPS are better the smaller they are; MSLL is below 0 where the model beats
//! the trivial one. A coverage should be near its level.

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

/// `½ log 2πσ² + (y − μ)²/2σ²`.
fn negative_log_density(y: f64, mean: f64, variance: f64) -> f64 {
    // The square is of the standardised error: the error's own square may overflow.
    0.5 * (TAU.ln() + variance.ln() + ((y - mean) / variance.sqrt()).powi(2))
}

/// Quantile of a standard normal: Φ⁻¹(p) for p between 0 and 1.
pub fn standard_normal_quantile(p: f64) -> f64 {
    -SQRT_2 * erfc_inv(2.0 * p)
}

/// The continuous ranked probability score of `N(μ, σ²)` at `y`.
fn crps(y: f64, mean: f64, deviation: f64) -> f64 {
    let z = (y - mean) / deviation;
    let density = (-0.5 * z * z).exp() / TAU.sqrt();
    deviation * (z * erf(z / SQRT_2) + 2.0 * density - 1.0 / PI.sqrt())
}

impl Metrics {
    /// Of `outputs` target columns, without MSLL.
    pub fn new(outputs: usize) -> Self {
        Self {
            columns: vec![Sums::default(); outputs],
            trivial: None,
            widths: LEVELS.map(|level| SQRT_2 * erf_inv(level)),
        }
    }

    /// With MSLL, which compares with a Gaussian of these means and variances, one of each per target
    /// column: those of the *training* targets in their own units. Where a variance is 0 there is no
    /// MSLL.
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

    /// Scores of all target columns together: means over rows and columns. R² has the sums over all
    /// columns in numerator and denominator, each column about its own mean.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is nothing to score.
    pub fn finish(&self) -> Result<Scores> {
        self.scores(&self.columns)
    }

    /// Scores of each target column.
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

#[cfg(test)]
mod tests {
    use super::*;
    use faer::Mat;
    use statrs::distribution::{Continuous, Normal};

    const Y: [f64; 5] = [1.3, -0.4, 7.25, 3.0, 12.5];
    const MEAN: [f64; 5] = [1.0, 0.5, 6.0, 3.3, 9.0];
    const VARIANCE: [f64; 5] = [0.3, 2.0, 0.7, 5.5, 1.9];

    fn column(values: &[f64]) -> Mat<f64> {
        Mat::from_fn(values.len(), 1, |i, _| values[i])
    }

    fn scored(mut metrics: Metrics, y: &[f64], mean: &[f64], variance: &[f64]) -> Metrics {
        let (y, mean, variance) = (column(y), column(mean), column(variance));
        metrics.add(y.as_ref(), mean.as_ref(), variance.as_ref()).unwrap();
        metrics
    }

    fn close(a: f64, b: f64, tolerance: f64) {
        assert!((a - b).abs() <= tolerance * b.abs().max(1e-300), "{a} is not {b}");
    }

    /// ∫ (F(x) − 1{x ≥ y})² dx with F by the trapezoid rule too: nothing in common with `erf`.
    fn crps_by_integration(y: f64, mean: f64, deviation: f64) -> f64 {
        let density =
            |x: f64| (-0.5 * ((x - mean) / deviation).powi(2)).exp() / (deviation * TAU.sqrt());
        let (mut integral, mut cumulative) = (0.0, 0.0);
        let mut section = |from: f64, to: f64, step: f64| {
            let n = 200_000;
            let h = (to - from) / f64::from(n);
            for k in 0..n {
                let x = from + h * f64::from(k);
                let next = cumulative + 0.5 * h * (density(x) + density(x + h));
                integral += 0.5 * h * ((cumulative - step).powi(2) + (next - step).powi(2));
                cumulative = next;
            }
        };
        let (low, high) = (y.min(mean) - 12.0 * deviation, y.max(mean) + 12.0 * deviation);
        section(low, y, 0.0);
        section(y, high, 1.0);
        integral
    }

    #[test]
    fn crps_is_the_integral_of_the_squared_distance_of_distribution_functions() {
        for (y, mean, deviation) in
            [(1.3, 1.0, 0.3), (-4.0, 2.0, 1.7), (0.0, 0.0, 25.0), (1e4, 9.9e3, 40.0)]
        {
            close(crps(y, mean, deviation), crps_by_integration(y, mean, deviation), 1e-7);
        }
        // At the mean: σ (√2 − 1)/√π.
        close(crps(5.0, 5.0, 3.0), 3.0 * (SQRT_2 - 1.0) / PI.sqrt(), 1e-14);
        // Far from the mean it tends to the absolute error less σ/√π.
        close(crps(1e6, 0.0, 2.0), 1e6 - 2.0 / PI.sqrt(), 1e-14);
    }

    #[test]
    fn point_scores_by_hand() {
        let scores = scored(Metrics::new(1), &[1.0, 2.0, 6.0], &[2.0, 2.0, 4.0], &[1.0; 3])
            .finish()
            .unwrap();
        assert_eq!(scores.rows, 3);
        close(scores.rmse, (5.0f64 / 3.0).sqrt(), 1e-15);
        close(scores.mae, 1.0, 1e-15);
        // Σ(y − 3)² = 4 + 1 + 9.
        close(scores.r2.unwrap(), 1.0 - 5.0 / 14.0, 1e-15);
        assert_eq!(scores.msll, None);
    }

    #[test]
    fn densities_against_another_implementation() {
        let metrics = Metrics::against_trivial(&[2.5], &[9.0]).unwrap();
        let scores = scored(metrics, &Y, &MEAN, &VARIANCE).finish().unwrap();
        let mean_log = |mean: &[f64], variance: &[f64]| {
            let log = |i: usize| Normal::new(mean[i], variance[i].sqrt()).unwrap().ln_pdf(Y[i]);
            (0..5).map(log).sum::<f64>() / 5.0
        };
        close(scores.nlpd, -mean_log(&MEAN, &VARIANCE), 1e-14);
        let trivial = -mean_log(&[2.5; 5], &[9.0; 5]);
        close(scores.msll.unwrap(), scores.nlpd - trivial, 1e-13);
        let crps_sum: f64 = (0..5).map(|i| crps(Y[i], MEAN[i], VARIANCE[i].sqrt())).sum();
        close(scores.crps, crps_sum / 5.0, 1e-14);
    }

    #[test]
    fn the_trivial_model_has_msll_zero() {
        let metrics = Metrics::against_trivial(&[4.0], &[2.5]).unwrap();
        let scores = scored(metrics, &Y, &[4.0; 5], &[2.5; 5]).finish().unwrap();
        assert_eq!(scores.msll, Some(0.0));
    }

    #[test]
    fn coverage_changes_at_the_quantiles() {
        let quantiles = [0.674_489_750_196_081_7, 1.644_853_626_951_472_2, 1.959_963_984_540_054];
        for (width, expected) in Metrics::new(1).widths.iter().zip(quantiles) {
            close(*width, expected, 1e-12);
        }
        // With σ = 3 and mean 10: just inside and just outside of each interval, on either side.
        for (i, quantile) in quantiles.into_iter().enumerate() {
            for sign in [-3.0, 3.0] {
                let y = [10.0 + sign * (quantile - 1e-9), 10.0 + sign * (quantile + 1e-9)];
                let scores = scored(Metrics::new(1), &y, &[10.0; 2], &[9.0; 2]).finish().unwrap();
                let found = [scores.coverage_50, scores.coverage_90, scores.coverage_95];
                let expected: Vec<f64> = (0..3)
                    .map(|level| [0.0, 0.5, 1.0][(level + 1usize).saturating_sub(i).min(2)])
                    .collect();
                assert_eq!(found.to_vec(), expected);
            }
        }
    }

    #[test]
    fn blocks_and_merges_give_the_scores_of_the_whole() {
        let new = || Metrics::against_trivial(&[2.5], &[9.0]).unwrap();
        let whole = scored(new(), &Y, &MEAN, &VARIANCE).finish().unwrap();
        let blocks = scored(
            scored(new(), &Y[..2], &MEAN[..2], &VARIANCE[..2]),
            &Y[2..],
            &MEAN[2..],
            &VARIANCE[2..],
        );
        // The same additions in the same order: the same bits.
        assert_eq!(blocks.finish().unwrap(), whole);
        let mut merged = scored(new(), &Y[..2], &MEAN[..2], &VARIANCE[..2]);
        merged.merge(&new()).unwrap();
        merged.merge(&scored(new(), &Y[2..], &MEAN[2..], &VARIANCE[2..])).unwrap();
        let merged = merged.finish().unwrap();
        close(merged.nlpd, whole.nlpd, 1e-14);
        close(merged.r2.unwrap(), whole.r2.unwrap(), 1e-14);
        close(merged.crps, whole.crps, 1e-14);
        assert_eq!(merged.rows, 5);
        assert_eq!(merged.coverage_90, whole.coverage_90);
        let other = Metrics::new(1);
        assert!(new().merge(&other).unwrap_err().to_string().contains("training statistics"));
        assert!(Metrics::new(2).merge(&other).is_err());
    }

    #[test]
    fn columns_together_and_each() {
        let mut metrics = Metrics::against_trivial(&[0.0, 100.0], &[4.0, 2500.0]).unwrap();
        let y = Mat::from_fn(5, 2, |i, j| if j == 0 { Y[i] } else { 100.0 + 10.0 * Y[i] });
        let mean = Mat::from_fn(5, 2, |i, j| if j == 0 { MEAN[i] } else { 100.0 + 10.0 * MEAN[i] });
        let variance = Mat::from_fn(5, 2, |i, j| VARIANCE[i] * if j == 0 { 1.0 } else { 100.0 });
        metrics.add(y.as_ref(), mean.as_ref(), variance.as_ref()).unwrap();
        let (all, each) = (metrics.finish().unwrap(), metrics.finish_each().unwrap());
        let single = Metrics::against_trivial(&[0.0], &[4.0]).unwrap();
        assert_eq!(each[0], scored(single, &Y, &MEAN, &VARIANCE).finish().unwrap());
        // A change of units scales errors and CRPS, shifts NLPD, and leaves the rest.
        close(each[1].rmse, 10.0 * each[0].rmse, 1e-13);
        close(each[1].crps, 10.0 * each[0].crps, 1e-13);
        close(each[1].nlpd, each[0].nlpd + 10f64.ln(), 1e-13);
        close(each[1].r2.unwrap(), each[0].r2.unwrap(), 1e-12);
        close(all.nlpd, 0.5 * (each[0].nlpd + each[1].nlpd), 1e-14);
        close(all.msll.unwrap(), 0.5 * (each[0].msll.unwrap() + each[1].msll.unwrap()), 1e-13);
        close(all.rmse.powi(2), 0.5 * (each[0].rmse.powi(2) + each[1].rmse.powi(2)), 1e-14);
        assert_eq!(all.rows, 5);
    }

    #[test]
    fn no_r2_without_variation_and_no_msll_without_variance() {
        let one = scored(Metrics::new(1), &[3.0], &[2.0], &[4.0]).finish().unwrap();
        assert_eq!((one.r2, one.rows, one.rmse), (None, 1, 1.0));
        let constant = scored(Metrics::new(1), &[0.1; 7], &[2.0; 7], &[4.0; 7]).finish().unwrap();
        assert_eq!(constant.r2, None);
        let metrics = Metrics::against_trivial(&[0.1], &[0.0]).unwrap();
        assert_eq!(scored(metrics, &[1.0], &[1.0], &[1.0]).finish().unwrap().msll, None);
        let json = serde_json::to_value(&one).unwrap();
        assert!(json["r2"].is_null() && json["coverage_95"] == 1.0);
    }

    #[test]
    fn r2_survives_a_large_offset_and_densities_survive_extremes() {
        let y: Vec<f64> = Y.iter().map(|y| 1e9 + y).collect();
        let mean: Vec<f64> = MEAN.iter().map(|m| 1e9 + m).collect();
        let far = scored(Metrics::new(1), &y, &mean, &VARIANCE).finish().unwrap();
        let near = scored(Metrics::new(1), &Y, &MEAN, &VARIANCE).finish().unwrap();
        close(far.r2.unwrap(), near.r2.unwrap(), 1e-6);
        let tiny = scored(Metrics::new(1), &[2e-160], &[1e-160], &[1e-320]).finish().unwrap();
        assert!(tiny.nlpd.is_finite() && tiny.crps > 0.0);
    }

    #[test]
    fn refusals_leave_the_state_as_it_was() {
        let mut metrics = scored(Metrics::new(1), &Y, &MEAN, &VARIANCE);
        let before = metrics.clone();
        let good = column(&[1.0, 2.0]);
        let mut fails = |y: &Mat<f64>, mean: &Mat<f64>, variance: &Mat<f64>, part: &str| {
            let error = metrics.add(y.as_ref(), mean.as_ref(), variance.as_ref()).unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
            assert_eq!(metrics, before);
        };
        fails(&good, &good, &column(&[1.0, 0.0]), "variance 0e0 (row 2 of the block");
        fails(&good, &good, &column(&[1.0, -2.0]), "must be positive: add the observation noise");
        fails(&good, &column(&[1.0, f64::NAN]), &good, "predicted mean (row 2");
        fails(&column(&[1.0, f64::INFINITY]), &good, &good, "target (row 2");
        fails(&good, &column(&[1.0]), &good, "predicted means: expected 2×1, found 1×1");
        let wide = Mat::zeros(2, 2);
        fails(&wide, &wide, &wide, "targets: expected 2×1, found 2×2");
        assert!(Metrics::new(1).finish().unwrap_err().to_string().contains("no predictions"));
        assert!(Metrics::against_trivial(&[0.0], &[]).is_err());
    }
}

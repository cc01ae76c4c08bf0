//! Tests of the scores of Gaussian predictions.

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
    let scores =
        scored(Metrics::new(1), &[1.0, 2.0, 6.0], &[2.0, 2.0, 4.0], &[1.0; 3]).finish().unwrap();
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

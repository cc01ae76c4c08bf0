//! Tests of the scores under any likelihood.

use super::Metrics;
use super::density::*;
use crate::special::normal_cdf;
use faer::Mat;
use statrs::distribution::{Continuous, ContinuousCDF, StudentsT};

const Y: [f64; 6] = [1.3, -0.4, 7.25, 3.0, 12.5, -30.0];
const LOCATION: [f64; 6] = [1.0, 0.5, 6.0, 3.3, 9.0, -2.0];
const SCALE: [f64; 6] = [0.3, 2.0, 0.7, 5.5, 1.9, 4.0];
const WEIGHTS: [f64; 6] = [2.0, 0.0, 1.0, 3.0, 1.0, 2.0];
const LEVELS: [f64; 2] = [0.5, 0.9];

/// Student-t predictions with 2.5 degrees of freedom of rows of `Y`.
fn scored(rows: &[usize], weights: Option<&[f64]>) -> DensityMetrics {
    let of = |i: usize| StudentsT::new(LOCATION[i], SCALE[i], 2.5).unwrap();
    let pick = |f: &dyn Fn(usize) -> f64| rows.iter().map(|i| f(*i)).collect::<Vec<f64>>();
    let (y, mean) = (pick(&|i| Y[i]), pick(&|i| LOCATION[i]));
    let log_density = pick(&|i| of(i).ln_pdf(Y[i]));
    let cdf = pick(&|i| of(i).cdf(Y[i]));
    let mut metrics = DensityMetrics::new(&LEVELS).unwrap();
    metrics
        .add(&Predictions {
            y: &y,
            mean: Some(&mean),
            log_density: Some(&log_density),
            cdf: Some((&cdf, &cdf)),
            weights,
        })
        .unwrap();
    metrics
}

fn close(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance * b.abs(), "{a} is not {b}");
}

fn same(a: &DensityScores, b: &DensityScores) {
    close(a.rmse.unwrap(), b.rmse.unwrap(), 1e-14);
    close(a.mae.unwrap(), b.mae.unwrap(), 1e-14);
    close(a.nlpd.unwrap(), b.nlpd.unwrap(), 1e-14);
    assert_eq!((a.weight, &a.coverage, a.ruled_out), (b.weight, &b.coverage, b.ruled_out));
}

#[test]
fn student_predictions_by_hand() {
    let scores = scored(&[0, 1, 2, 3, 4, 5], None).finish().unwrap();
    // |t| = 1, 0.45, 1.79, 0.05, 1.84, 7 against the quantiles 0.7876… and 2.5582… of 2.5 degrees.
    let share = |level, inside: f64| Coverage { level, share: inside / 6.0 };
    assert_eq!(scores.coverage, [share(0.5, 2.0), share(0.9, 5.0)]);
    // The density of Student's t, written out: Γ(1.75) and Γ(1.25) from tables (Abramowitz & Stegun
    // 6.1, Table 6.1).
    let constant = 0.919_062_526_848_883_2_f64.ln()
        - 0.906_402_477_055_477_f64.ln()
        - 0.5 * (2.5 * std::f64::consts::PI).ln();
    let log = |i: usize| {
        let t = (Y[i] - LOCATION[i]) / SCALE[i];
        constant - SCALE[i].ln() - 1.75 * (t * t / 2.5).ln_1p()
    };
    close(scores.nlpd.unwrap(), -(0..6).map(log).sum::<f64>() / 6.0, 1e-12);
    let squared = 0.09 + 0.81 + 1.5625 + 0.09 + 12.25 + 784.0;
    close(scores.rmse.unwrap(), (squared / 6.0f64).sqrt(), 1e-14);
    close(scores.mae.unwrap(), (0.3 + 0.9 + 1.25 + 0.3 + 3.5 + 28.0) / 6.0, 1e-14);
}

#[test]
fn gaussian_predictions_have_the_scores_of_gaussian_predictions() {
    let column = |values: &[f64]| Mat::from_fn(6, 1, |i, _| values[i]);
    let variance = SCALE.map(|s| s * s);
    let mut gaussian = Metrics::new(1);
    let (y, mean, spread) = (column(&Y), column(&LOCATION), column(&variance));
    gaussian.add(y.as_ref(), mean.as_ref(), spread.as_ref()).unwrap();
    let gaussian = gaussian.finish().unwrap();

    let log = |i: usize| {
        -0.5 * (std::f64::consts::TAU * variance[i]).ln()
            - 0.5 * (Y[i] - LOCATION[i]).powi(2) / variance[i]
    };
    let log_density: Vec<f64> = (0..6).map(log).collect();
    let cdf: Vec<f64> = (0..6).map(|i| normal_cdf((Y[i] - LOCATION[i]) / SCALE[i])).collect();
    let mut metrics = DensityMetrics::new(&[0.5]).unwrap();
    let block = Predictions {
        y: &Y,
        mean: Some(&LOCATION),
        log_density: Some(&log_density),
        cdf: Some((&cdf, &cdf)),
        weights: None,
    };
    metrics.add(&block).unwrap();
    let scores = metrics.finish().unwrap();
    close(scores.rmse.unwrap(), gaussian.rmse, 1e-15);
    close(scores.mae.unwrap(), gaussian.mae, 1e-15);
    close(scores.nlpd.unwrap(), gaussian.nlpd, 1e-14);
    assert_eq!(scores.coverage[0].share, gaussian.coverage_50);
}

#[test]
fn weights_are_repetitions() {
    let weighted = scored(&[0, 1, 2, 3, 4, 5], Some(&WEIGHTS)).finish().unwrap();
    let repeated = scored(&[0, 0, 2, 3, 3, 3, 4, 5, 5], None).finish().unwrap();
    same(&weighted, &repeated);
    assert_eq!((weighted.rows, repeated.rows), (6, 9));
}

#[test]
fn merges_are_one_pass() {
    let whole = scored(&[0, 1, 2, 3, 4, 5], Some(&WEIGHTS));
    for cut in 0..=6 {
        let rows: Vec<usize> = (0..6).collect();
        let mut merged = DensityMetrics::new(&LEVELS).unwrap();
        merged.merge(&scored(&rows[..cut], Some(&WEIGHTS[..cut]))).unwrap();
        merged.merge(&scored(&rows[cut..], Some(&WEIGHTS[cut..]))).unwrap();
        same(&merged.finish().unwrap(), &whole.finish().unwrap());
    }
}

/// Of four equally probable whole numbers 1, 2, 3, 4 the central interval is that between two quantiles, ends included: of
/// level 0.8 from 1 to 4, of level 0.4 from 2 to 3, and of level 0.5 from the quantile 0.25, which is 1, to that of 0.75, 3.
#[test]
fn intervals_of_whole_numbers_hold_their_ends() {
    let y = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
    let up_to = y.map(|y: f64| (0.25 * y).clamp(0.0, 1.0));
    let below = y.map(|y: f64| (0.25 * (y - 1.0)).clamp(0.0, 1.0));
    let mut metrics = DensityMetrics::new(&[0.8, 0.4, 0.5]).unwrap();
    let cdf = Some((&below[..], &up_to[..]));
    metrics.add(&Predictions { y: &y, cdf, ..Predictions::default() }).unwrap();
    let scores = metrics.finish().unwrap();
    let inside = scores.coverage.iter().map(|c| (6.0 * c.share).round()).collect::<Vec<_>>();
    assert_eq!(inside, [4.0, 2.0, 3.0]);
    assert_eq!((scores.rmse, scores.mae, scores.nlpd), (None, None, None));
}

#[test]
fn a_target_that_is_ruled_out_makes_the_score_infinite_unless_it_has_no_weight() {
    let log = [-1.0, f64::NEG_INFINITY, -3.0];
    let score = |weights: &[f64]| {
        let mut metrics = DensityMetrics::new(&[]).unwrap();
        let (log_density, weights) = (Some(&log[..]), Some(weights));
        let y = &[0.0; 3];
        metrics.add(&Predictions { y, log_density, weights, ..Predictions::default() }).unwrap();
        let scores = metrics.finish().unwrap();
        (scores.nlpd.unwrap(), scores.ruled_out)
    };
    assert_eq!(score(&[1.0, 0.5, 1.0]), (f64::INFINITY, 1));
    assert_eq!(score(&[1.0, 0.0, 3.0]), (2.5, 0));
}

#[test]
fn refusals_leave_the_state_as_it_was() {
    let mut metrics = scored(&[0, 1, 2], None);
    let before = metrics.clone();
    let (one, two) = ([1.0], [1.0, 2.0]);
    let good = Predictions {
        y: &one,
        mean: Some(&one),
        log_density: Some(&one),
        cdf: Some((&one, &one)),
        weights: None,
    };
    let mut fails = |block: Predictions<'_>, part: &str| {
        let error = metrics.add(&block).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
        assert_eq!(metrics, before);
    };
    let nan = [f64::NAN];
    let infinite = [f64::INFINITY];
    fails(Predictions { y: &nan, ..good }, "target (row 1 of the block) is not finite");
    fails(Predictions { mean: Some(&infinite), ..good }, "predicted mean (row 1");
    fails(Predictions { log_density: Some(&infinite), ..good }, "log density (row 1");
    fails(Predictions { mean: Some(&two), ..good }, "predicted means: expected 1, found 2");
    fails(Predictions { cdf: None, ..good }, "coverages need the predictive probabilities");
    fails(Predictions { cdf: Some((&one, &two)), ..good }, "probabilities: expected 1, found 2");
    fails(Predictions { cdf: Some((&one, &[0.5])), ..good }, "1 of less than the target and 0.5");
    fails(Predictions { cdf: Some((&[-0.1], &one)), ..good }, "-0.1 of less than the target");
    fails(
        Predictions { cdf: Some((&one, &two[1..])), ..good },
        "2 of no more (row 1 of the block)",
    );
    fails(Predictions { cdf: Some((&nan, &one)), ..good }, "NaN of less than the target");
    fails(Predictions { mean: None, ..good }, "only 3 of 4 rows have predicted means");
    fails(Predictions { log_density: None, ..good }, "only 3 of 4 rows have log densities");
    fails(Predictions { weights: Some(&[-1.0]), ..good }, "weight -1 (row 1 of the block)");
    fails(Predictions { weights: Some(&nan), ..good }, "weight NaN (row 1");
    fails(Predictions { weights: Some(&two), ..good }, "weights: expected 1, found 2");

    let other = DensityMetrics::new(&[0.5]).unwrap();
    assert!(metrics.merge(&other).unwrap_err().to_string().contains("[0.5, 0.9] and [0.5]"));
    assert_eq!(metrics, before);
    for level in [0.0, 1.0, 95.0, f64::NAN] {
        let error = DensityMetrics::new(&[0.5, level]).unwrap_err().to_string();
        assert!(error.contains(&format!("level {level}")), "{error}");
    }
    assert!(other.finish().unwrap_err().to_string().contains("no predictions"));
    let weightless = scored(&[0, 1], Some(&[0.0; 2]));
    assert!(weightless.finish().unwrap_err().to_string().contains("weights of all 2 rows"));
}

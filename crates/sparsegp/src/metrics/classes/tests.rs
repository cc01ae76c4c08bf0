//! Tests of the scores of class probabilities.

use super::*;
use faer::Mat;

fn close(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance * b.abs(), "{a} is not {b}");
}

fn new(classes: usize) -> ClassMetrics {
    ClassMetrics::new(classes, ClassOptions::default()).unwrap()
}

fn matrix(rows: &[Vec<f64>]) -> Mat<f64> {
    Mat::from_fn(rows.len(), rows.first().map_or(0, Vec::len), |i, j| rows[i][j])
}

/// Scores of probabilities of class 1.
fn binary(y: &[f64], p: &[f64], weights: Option<&[f64]>) -> ClassScores {
    let mut metrics = new(2);
    let p = Mat::from_fn(p.len(), 2, |i, c| if c == 1 { p[i] } else { 1.0 - p[i] });
    metrics.add(y, p.as_ref(), weights).unwrap();
    metrics.finish().unwrap()
}

/// Deterministic numbers in [0, 1).
fn uniform(seed: u64) -> impl FnMut() -> f64 {
    let mut n = seed as f64;
    move || {
        n += 1.0;
        (n * 0.618_033_988_749_895 + (0.37 * n * n).sin()).rem_euclid(1.0)
    }
}

/// Classes, probabilities and weights (whole numbers from 0 to 3) of `n` rows. Probabilities are
/// multiples of 1/64: there are ties.
fn problem(n: usize, classes: usize) -> (Vec<f64>, Vec<Vec<f64>>, Vec<f64>) {
    let mut next = uniform(17);
    let mut y = Vec::new();
    let rows = (0..n).map(|_| {
        let class = (next() * classes as f64).floor();
        y.push(class);
        let mut left = 64.0;
        let mut row = vec![0.0; classes];
        for c in (0..classes).rev() {
            let share = if c == 0 { left } else { (left * next().powi(2)).floor() };
            row[c] = share / 64.0;
            left -= share;
        }
        if next() < 0.5 {
            let most = (0..classes).fold(0, |a, c| if row[c] > row[a] { c } else { a });
            row.swap(most, class as usize);
        }
        row
    });
    let rows: Vec<Vec<f64>> = rows.collect();
    let weights = (0..n).map(|_| (4.0 * next()).floor()).collect();
    (y, rows, weights)
}

/// The area over all pairs, as it is defined.
fn auc_of_pairs(y: &[f64], score: &[f64], w: &[f64], class: f64) -> f64 {
    let (mut wins, mut pairs) = (0.0, 0.0);
    for i in (0..y.len()).filter(|i| y[*i] == class) {
        for j in (0..y.len()).filter(|j| y[*j] != class) {
            let win = if score[i] > score[j] { 1.0 } else { 0.0 };
            wins += w[i] * w[j] * if score[i] == score[j] { 0.5 } else { win };
            pairs += w[i] * w[j];
        }
    }
    wins / pairs
}

#[test]
fn examples_of_scikit_learn() {
    // `roc_auc_score`: 0.75.
    let scores = binary(&[0.0, 0.0, 1.0, 1.0], &[0.1, 0.4, 0.35, 0.8], None);
    assert_eq!(scores.auc, Some(0.75));
    // `log_loss`: 0.21616 (ham 0, spam 1).
    let scores = binary(&[1.0, 0.0, 0.0, 1.0], &[0.9, 0.1, 0.2, 0.65], None);
    close(scores.log_loss, 0.216_162, 1e-5);
    // `brier_score_loss`: 0.0375, which is half of the sum over both classes.
    let scores = binary(&[0.0, 1.0, 1.0, 0.0], &[0.1, 0.9, 0.8, 0.3], None);
    close(scores.brier, 2.0 * 0.0375, 1e-14);
}

#[test]
fn three_classes_by_hand() {
    let y = [0.0, 1.0, 2.0, 2.0];
    let p = matrix(&[
        vec![0.5, 0.25, 0.25],
        vec![0.5, 0.375, 0.125],
        vec![0.25, 0.25, 0.5],
        vec![0.0, 0.5, 0.5],
    ]);
    let mut metrics = new(3);
    metrics.add(&y, p.as_ref(), None).unwrap();
    let scores = metrics.finish().unwrap();
    // The last row is a tie: the first class of it is predicted.
    assert_eq!((scores.accuracy, scores.error), (0.5, 0.5));
    assert_eq!(scores.confusion, [vec![1.0, 0.0, 0.0], vec![1.0, 0.0, 0.0], vec![0.0, 1.0, 1.0]]);
    close(scores.log_loss, -(0.5f64 * 0.375 * 0.5 * 0.5).ln() / 4.0, 1e-15);
    // Σ of 0.25 + 2/16; 0.25 + 0.390625 + 0.015625; 2/16 + 0.25; 0.25 + 0.25.
    assert_eq!(scores.brier, (0.375 + 0.65625 + 0.375 + 0.5) / 4.0);
    // Class 0: 0.5 against 0.5, 0.25, 0: 2½ of 3. Class 1: 0.375 against 0.25, 0.25, 0.5: 2 of 3.
    // Class 2: 0.5, 0.5 against 0.25, 0.125: 4 of 4.
    close(scores.auc.unwrap(), (2.5 / 3.0 + 2.0 / 3.0 + 1.0) / 3.0, 1e-15);
    assert_eq!((scores.rows, scores.weight, scores.floored), (4, 4.0, 0));
}

#[test]
fn auc_is_that_of_all_pairs() {
    for classes in [2, 3, 5] {
        let (y, rows, weights) = problem(137, classes);
        let p = matrix(&rows);
        for weights in [vec![1.0; y.len()], weights] {
            let mut metrics = new(classes);
            metrics.add(&y, p.as_ref(), Some(&weights)).unwrap();
            let column = |c: usize| rows.iter().map(|row| row[c]).collect::<Vec<_>>();
            let expected = match classes {
                2 => auc_of_pairs(&y, &column(1), &weights, 1.0),
                _ => {
                    let each = |c| auc_of_pairs(&y, &column(c), &weights, c as f64);
                    (0..classes).map(each).sum::<f64>() / classes as f64
                }
            };
            let found = metrics.finish().unwrap().auc.unwrap();
            close(found, expected, 1e-14);
            assert!(found > 0.6 && found < 0.95, "{found} tells nothing");
        }
    }
}

#[test]
fn auc_at_its_ends_and_where_there_is_none() {
    let y = [0.0, 0.0, 1.0, 1.0, 1.0];
    assert_eq!(binary(&y, &[0.1, 0.2, 0.3, 0.4, 0.5], None).auc, Some(1.0));
    assert_eq!(binary(&y, &[0.9, 0.8, 0.3, 0.4, 0.5], None).auc, Some(0.0));
    assert_eq!(binary(&y, &[0.3; 5], None).auc, Some(0.5));
    // 0 and −0 are one probability.
    assert_eq!(binary(&[0.0, 1.0], &[0.0, -0.0], None).auc, Some(0.5));
    assert_eq!(binary(&[1.0, 1.0], &[0.2, 0.7], None).auc, None);
    assert_eq!(binary(&[0.0, 1.0], &[0.2, 0.7], Some(&[1.0, 0.0])).auc, None);

    // Of four classes two occur: the mean is over these.
    let y = [0.0, 2.0, 2.0];
    let p = [vec![0.5, 0.0, 0.5, 0.0], vec![0.25, 0.25, 0.25, 0.25], vec![0.0, 0.0, 1.0, 0.0]];
    let mut metrics = new(4);
    metrics.add(&y, matrix(&p).as_ref(), None).unwrap();
    assert_eq!(metrics.finish().unwrap().auc, Some((1.0 + 0.5) / 2.0));
    let options = ClassOptions { auc: false, ..ClassOptions::default() };
    let mut without = ClassMetrics::new(4, options).unwrap();
    without.add(&y, matrix(&p).as_ref(), None).unwrap();
    let (with, without) = (metrics.finish().unwrap(), without.finish().unwrap());
    assert_eq!(ClassScores { auc: with.auc, ..without }, with);
}

#[test]
fn calibration_by_hand() {
    let options = ClassOptions { bins: 4, auc: true };
    let mut metrics = ClassMetrics::new(3, options).unwrap();
    // Confidences 0.5 (right), 0.375 (wrong), 0.75 (right), 1 (right), 0.875 (wrong), 0.625 (wrong).
    let p = matrix(&[
        vec![0.25, 0.5, 0.25],
        vec![0.375, 0.3125, 0.3125],
        vec![0.75, 0.125, 0.125],
        vec![0.0, 0.0, 1.0],
        vec![0.875, 0.125, 0.0],
        vec![0.125, 0.25, 0.625],
    ]);
    metrics.add(&[1.0, 2.0, 0.0, 2.0, 2.0, 0.0], p.as_ref(), None).unwrap();
    let scores = metrics.finish().unwrap();
    // A confidence on a border is in the bin below it.
    let bin = |b: usize, rows: u64, confidence, accuracy| ReliabilityBin {
        low: 0.25 * b as f64,
        high: 0.25 * (b + 1) as f64,
        rows,
        weight: rows as f64,
        confidence,
        accuracy,
    };
    assert_eq!(
        scores.reliability,
        [
            bin(0, 0, None, None),
            bin(1, 2, Some(0.4375), Some(0.5)),
            bin(2, 2, Some(0.6875), Some(0.5)),
            bin(3, 2, Some(0.9375), Some(0.5)),
        ]
    );
    close(scores.ece, (0.0625 + 0.1875 + 0.4375) / 3.0, 1e-15);
    // As many bins as there are by default, and only one bin.
    assert_eq!(new(2).bins.len(), 15);
    let mut one = ClassMetrics::new(3, ClassOptions { bins: 1, auc: false }).unwrap();
    one.add(&[1.0, 2.0, 0.0, 2.0, 2.0, 0.0], p.as_ref(), None).unwrap();
    close(one.finish().unwrap().ece, (4.125 - 3.0) / 6.0, 1e-15);
}

#[test]
fn impossible_classes_cost_the_floor_and_are_counted() {
    let scores = binary(&[1.0, 0.0, 1.0], &[0.0, 0.0, 1e-300], None);
    close(scores.log_loss, 2.0 * 52.0 * 2f64.ln() / 3.0, 1e-15);
    assert_eq!(scores.floored, 2);
    assert_eq!(binary(&[1.0], &[FLOOR], None).floored, 0);
    assert_eq!(binary(&[1.0, 1.0], &[0.0, 0.5], Some(&[0.0, 1.0])).floored, 0);
    // Rounding errors of whoever computed the probabilities.
    let mut metrics = new(2);
    metrics.add(&[0.0], matrix(&[vec![1.0 + 1e-9, -1e-9]]).as_ref(), None).unwrap();
    let scores = metrics.finish().unwrap();
    assert_eq!((scores.log_loss, scores.brier, scores.ece), (0.0, 0.0, 0.0));
    assert_eq!(scores.reliability[14].rows, 1);
}

#[test]
fn weights_are_repetitions() {
    for classes in [2, 4] {
        let (y, rows, weights) = problem(60, classes);
        let mut weighted = new(classes);
        weighted.add(&y, matrix(&rows).as_ref(), Some(&weights)).unwrap();
        let again: Vec<usize> =
            (0..60).flat_map(|i| std::iter::repeat_n(i, weights[i] as usize)).collect();
        let y_again: Vec<f64> = again.iter().map(|i| y[*i]).collect();
        let rows_again: Vec<Vec<f64>> = again.iter().map(|i| rows[*i].clone()).collect();
        let mut repeated = new(classes);
        repeated.add(&y_again, matrix(&rows_again).as_ref(), None).unwrap();
        let (a, b) = (weighted.finish().unwrap(), repeated.finish().unwrap());
        assert_eq!(
            (a.weight, b.weight, b.rows),
            (b.weight, again.len() as f64, again.len() as u64)
        );
        // Sums of whole numbers and 64ths are exact.
        assert_eq!(
            (a.accuracy, a.brier, a.auc, &a.confusion),
            (b.accuracy, b.brier, b.auc, &b.confusion)
        );
        close(a.ece, b.ece, 1e-15);
        close(a.log_loss, b.log_loss, 1e-14);
    }
}

#[test]
fn merges_are_one_pass() {
    let (y, rows, weights) = problem(90, 3);
    let part = |from: usize, to: usize| {
        let mut metrics = new(3);
        let p = matrix(&rows[from..to]);
        if from < to {
            metrics.add(&y[from..to], p.as_ref(), Some(&weights[from..to])).unwrap();
        }
        metrics
    };
    let whole = part(0, 90).finish().unwrap();
    for cut in [0, 1, 44, 90] {
        // Whichever is first.
        for (a, b) in [(part(0, cut), part(cut, 90)), (part(cut, 90), part(0, cut))] {
            let mut merged = a;
            merged.merge(&b).unwrap();
            let merged = merged.finish().unwrap();
            close(merged.log_loss, whole.log_loss, 1e-14);
            assert_eq!(ClassScores { log_loss: whole.log_loss, ..merged }, whole);
        }
    }
    let mut other = new(2);
    assert!(other.merge(&part(0, 1)).unwrap_err().to_string().contains("expected 2, found 3"));
    let mut bins = ClassMetrics::new(3, ClassOptions { bins: 10, auc: true }).unwrap();
    assert!(bins.merge(&part(0, 1)).unwrap_err().to_string().contains("bins"));
    let mut bare = ClassMetrics::new(3, ClassOptions { bins: 15, auc: false }).unwrap();
    assert!(bare.merge(&part(0, 1)).unwrap_err().to_string().contains("without AUC"));
}

#[test]
fn refusals_leave_the_state_as_it_was() {
    let mut metrics = new(3);
    let good = vec![0.25, 0.25, 0.5];
    metrics.add(&[2.0], matrix(std::slice::from_ref(&good)).as_ref(), None).unwrap();
    let before = metrics.clone();
    let mut fails = |y: f64, row: Vec<f64>, weights: Option<&[f64]>, part: &str| {
        let first = vec![0.25, 0.25, 0.5];
        let p = matrix(&if row.len() == 3 { vec![first, row] } else { vec![row] });
        let error = metrics.add(&[1.0, y], p.as_ref(), weights).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        assert_eq!(metrics, before);
    };
    for y in [3.0, -1.0, 0.5, f64::NAN, f64::INFINITY] {
        let text = format!("the target {y} (row 2 of the block) is not a class from 0 to 2");
        fails(y, good.clone(), None, &text);
    }
    fails(0.0, vec![0.5, 0.25, 0.125], None, "(row 2 of the block) have the sum 0.875");
    fails(0.0, vec![-0.5, 1.0, 0.5], None, "the probability -0.5 of class 0 (row 2");
    fails(0.0, vec![0.5, f64::NAN, 0.5], None, "the probability NaN of class 1");
    fails(0.0, vec![0.5, 0.5], None, "class probabilities: expected 2×3, found 1×2");
    fails(0.0, good.clone(), Some(&[1.0]), "weights: expected 2, found 1");
    fails(0.0, good, Some(&[1.0, f64::INFINITY]), "weight inf (row 2 of the block)");

    assert!(new(2).finish().unwrap_err().to_string().contains("no predictions"));
    for (classes, bins, part) in [(1, 15, "two classes or more, not 1"), (2, 0, "at least 1 bin")] {
        let error = ClassMetrics::new(classes, ClassOptions { bins, auc: true }).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn scores_read_back_from_json() {
    let scores = binary(&[0.0, 1.0], &[0.25, 0.5], None);
    let json = serde_json::to_value(&scores).unwrap();
    assert!(json["reliability"][0]["accuracy"].is_null() && json["confusion"][0][0] == 1.0);
    assert_eq!(serde_json::from_value::<ClassScores>(json).unwrap(), scores);
}

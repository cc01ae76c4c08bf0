//! Means, variances and spreads of columns, which starts are made of.

use crate::data::InMemory;
use crate::linalg::column;

/// Rounds of weighing rows by a variance that they then give.
const ROUNDS: usize = 20;

/// Returns the mean and variance of every target column, leaving out what is missing. Rows count by
/// their weights and, where their noise variances eᵢ are known, by how much these leave of them:
/// m = Σωy/Σω and v = Σω²((y − m)² − e)/Σω² with ω = w/(v + e), which is what the method of moments
/// makes of N(m, v + eᵢ) (Paule & Mandel 1982).
pub(super) fn moments(sample: &InMemory, known_noise: bool) -> Vec<(f64, f64)> {
    let weight = |i: usize| sample.weights.get(i).copied().unwrap_or(1.0);
    let noise = |i: usize| match known_noise {
        true => sample.extra.get(i).copied().unwrap_or(0.0),
        false => 0.0,
    };
    let of = |values: &[f64]| {
        let known: Vec<usize> = (0..values.len()).filter(|i| !values[*i].is_nan()).collect();
        // the mean over the rows with these weights
        let mean = |omega: &dyn Fn(usize) -> f64, of: &dyn Fn(usize) -> f64| {
            let total: f64 = known.iter().map(|i| omega(*i)).sum();
            known.iter().map(|i| omega(*i) * of(*i)).sum::<f64>() / total
        };
        let mut centre = mean(&weight, &|i| values[i]);
        let mut variance = mean(&weight, &|i| (values[i] - centre).powi(2));
        let least = 1e-10 * variance;
        if known.iter().any(|i| noise(*i) > 0.0) && least > 0.0 {
            for _ in 0..ROUNDS {
                let omega = |i: usize| weight(i) / (variance + noise(i));
                centre = mean(&omega, &|i| values[i]);
                let square = |i: usize| omega(i) * omega(i);
                let next = mean(&square, &|i| (values[i] - centre).powi(2) - noise(i));
                variance = next.max(least);
            }
        }
        (centre, variance)
    };
    (0..sample.y.ncols()).map(|j| of(column(sample.y.as_ref(), j))).collect()
}

/// Returns the mean variance of the columns; 1 where there is none.
pub(super) fn spread(moments: &[(f64, f64)]) -> f64 {
    let total: f64 = moments.iter().map(|(_, variance)| variance).sum();
    let variance = total / moments.len() as f64;
    if variance > 0.0 && variance.is_finite() { variance } else { 1.0 }
}

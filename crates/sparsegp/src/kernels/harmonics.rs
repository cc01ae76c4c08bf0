//! Waves with harmonics, by least squares.

use std::f64::consts::TAU;

/// Returns what is left of `r` by least squares on some columns; one that is nearly a combination
/// of those before it is left out.
pub(super) fn remaining(columns: impl Iterator<Item = Vec<f64>>, mut r: Vec<f64>) -> Vec<f64> {
    // Gram–Schmidt
    let mut basis: Vec<Vec<f64>> = Vec::new();
    for mut own in columns {
        for earlier in &basis {
            let part: f64 = own.iter().zip(earlier).map(|(a, b)| a * b).sum();
            own.iter_mut().zip(earlier).for_each(|(a, b)| *a -= part * b);
        }
        let norm = own.iter().map(|a| a * a).sum::<f64>().sqrt();
        if norm > 1e-6 * (r.len() as f64).sqrt() {
            own.iter_mut().for_each(|a| *a /= norm);
            let part: f64 = r.iter().zip(&own).map(|(a, b)| a * b).sum();
            r.iter_mut().zip(&own).for_each(|(a, b)| *a -= part * b);
            basis.push(own);
        }
    }
    r
}

/// Targets at places t ∈ [−½, ½], to be explained by a parabola and a wave with harmonics.
pub(super) struct Waves {
    t: Vec<f64>,
    r: Vec<f64>,
    total: f64,
    harmonics: usize,
}

/// The least part of the sum of squares that noise is thought to be.
const LEAST_NOISE: f64 = 1e-12;

impl Waves {
    /// Takes `r`, the residuals of a parabola.
    pub fn new(t: Vec<f64>, r: Vec<f64>, harmonics: usize) -> Self {
        let total = r.iter().map(|v| v * v).sum();
        Self { t, r, total, harmonics }
    }

    /// Returns nats by which so many cycles over the range explain the targets better than only a
    /// parabola, with Gaussian noise of the best variance: ½n log(RSS₀/RSS).
    pub fn explained(&self, cycles: f64) -> f64 {
        -0.5 * self.t.len() as f64 * (1.0 - self.part(cycles)).max(LEAST_NOISE).ln()
    }

    /// Returns the part of the sum of squares that they explain.
    pub fn part(&self, cycles: f64) -> f64 {
        let powers = (0..3).map(|power| self.t.iter().map(|v| v.powi(power)).collect());
        let waves = (1..=self.harmonics).flat_map(|k| {
            let angle = move |t: &f64| TAU * k as f64 * cycles * t;
            let of = |wave: fn(f64) -> f64| self.t.iter().map(|t| wave(angle(t))).collect();
            [of(f64::cos), of(f64::sin)]
        });
        let left = remaining(powers.chain(waves), self.r.clone());
        1.0 - left.iter().map(|v| v * v).sum::<f64>() / self.total
    }
}

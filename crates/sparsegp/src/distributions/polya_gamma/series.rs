//! The distribution function of PG(b, c) as an alternating series.

use crate::distributions::functions::log_cosh;
use crate::special::log_normal_cdf;
use std::f64::consts::LN_2;

/// How much larger than its sum the largest term may be: four digits of sixteen are lost then.
const CANCELLATION: f64 = 1e3;

/// P(ω ≤ w), or nothing where the terms cancel or are too many. With x = 4w, z = c/2 and Lₙ = 2n + b
/// (the integral of Σ (−1)ⁿaₙ(x) coshᵇ(z) e^{−z²x/2} term by term, each an inverse Gaussian)
///
/// F = (2 cosh z)ᵇ Σ (−1)ⁿ Γ(n + b)/(Γ(b) n!) [e^{−Lz}Φ(z√x − L/√x) + e^{Lz}Φ(−z√x − L/√x)].
pub(super) fn cdf(shape: f64, tilt: f64, w: f64) -> Option<f64> {
    let (root, z) = (2.0 * w.sqrt(), 0.5 * tilt);
    if root == 0.0 {
        return Some(0.0);
    }
    let scale = shape * (LN_2 + log_cosh(z));
    let (mut sum, mut largest, mut before, mut log_binomial) = (0.0, 0.0_f64, 0.0_f64, 0.0);
    for n in 0..60 {
        let l = 2.0 * f64::from(n) + shape;
        if n > 0 {
            let n = f64::from(n);
            log_binomial += ((n - 1.0 + shape) / n).ln();
        }
        let log = scale + log_binomial;
        let below = log - l * z + log_normal_cdf(z * root - l / root);
        let above = log + l * z + log_normal_cdf(-z * root - l / root);
        let term = below.exp() + above.exp();
        sum += if n % 2 == 0 { term } else { -term };
        largest = largest.max(term);
        let falls = term < before;
        before = term;
        if n > 0 && falls && term <= 1e-17 * largest {
            return (largest <= CANCELLATION * sum && sum <= 1.0 + 1e-12).then_some(sum.min(1.0));
        }
        if n == 0 && term == 0.0 {
            return Some(0.0);
        }
    }
    None
}

//! Distribution function and density of Pólya-Gamma variables as alternating series.

use crate::distributions::functions::log_cosh;
use crate::special::log_normal_cdf;
use std::f64::consts::{LN_2, PI};

/// How much larger than its sum the largest term may be: four digits of sixteen are lost then.
const CANCELLATION: f64 = 1e3;

/// Returns P(ω ≤ w), or nothing where the terms cancel or are too many. With x = 4w, z = c/2 and
/// Lₙ = 2n + b (the integral of Σ (−1)ⁿaₙ(x) coshᵇ(z) e^{−z²x/2} term by term, each an inverse
/// Gaussian)
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

/// Most terms of a series of the density.
const TERMS: i32 = 40;
/// Largest term of an alternating series over its sum, so that 12 digits are left.
const GROWTH: f64 = 1e3;
/// Where the dual series of shape 1 takes over.
const DUAL: f64 = 0.64;

/// Returns log f(x) and its slope for x = 4ω, ω ~ PG(b, 0), or nothing where a series would lose
/// digits (see [`super::PolyaGammaSampler`] for both series).
pub(in crate::distributions) fn log_density_of_four(shape: f64, x: f64) -> Option<[f64; 2]> {
    if !(x > 0.0 && x.is_finite()) {
        return None;
    }
    // f = e^{first} Σ terms, of which the first is 1, with their slopes
    let (mut sum, mut slope, mut largest) = (1.0, 0.0, 1.0_f64);
    let mut add = |term: f64, rate: f64| {
        sum += term;
        slope += term * rate;
        largest = largest.max(term.abs());
        term.abs() <= 1e-17 * largest
    };
    let (first, rate) = if shape == 1.0 && x > DUAL {
        let first = PI * PI / 8.0;
        (1..TERMS).find(|n| {
            let n = f64::from(*n);
            // (n + ½)² − ¼ = n(n + 1)
            let rate = -0.5 * n * (n + 1.0) * PI * PI;
            let sign = if n % 2.0 == 0.0 { 1.0 } else { -1.0 };
            add(sign * (2.0 * n + 1.0) * (rate * x).exp(), rate)
        })?;
        ((0.5 * PI).ln() - first * x, -first)
    } else {
        let mut log_binomial = 0.0;
        (1..TERMS).find(|n| {
            let n = f64::from(*n);
            log_binomial += ((n - 1.0 + shape) / n).ln();
            // ((2n + b)² − b²)/2 = 2n(n + b)
            let power = 2.0 * n * (n + shape);
            let sign = if n % 2.0 == 0.0 { 1.0 } else { -1.0 };
            let size = log_binomial + (1.0 + 2.0 * n / shape).ln() - power / x;
            add(sign * size.exp(), power / (x * x))
        })?;
        let square = 0.5 * shape * shape;
        let first = shape * LN_2 + shape.ln() - 0.5 * (2.0 * PI).ln() - 1.5 * x.ln() - square / x;
        (first, square / (x * x) - 1.5 / x)
    };
    let kept = sum > 0.0 && largest <= GROWTH * sum;
    kept.then(|| [first + sum.ln(), rate + slope / sum])
}

//! The normal distribution: its steps and orthants.

use sparsegp::linalg::exp::mills;
use std::f64::consts::TAU;

/// Intervals of Simpson's rule.
const INTERVALS: usize = 64;

/// Returns φ(z).
pub fn density(z: f64) -> f64 {
    (-0.5 * z * z).exp() / TAU.sqrt()
}

/// Returns Φ(z), by Mills' ratio R(t) = Φ(−t)/φ(t) of t ≥ 0.
pub fn cdf(z: f64) -> f64 {
    let tail = mills::<false>(z.abs()) * density(z);
    if z > 0.0 { 1.0 - tail } else { tail }
}

/// Returns log Φ(z) with its first and second derivative ρ = φ/Φ and −ρ(ρ + z).
pub fn log_cdf(z: f64) -> [f64; 3] {
    let ratio = mills::<false>(z.abs());
    let (log, rho) = if z > 0.0 {
        ((-ratio * density(z)).ln_1p(), density(z) / cdf(z))
    } else {
        (ratio.ln() - 0.5 * (z * z + TAU.ln()), 1.0 / ratio)
    };
    [log, rho, -rho * (rho + z)]
}

/// Returns P(u < h, v < k) of two standard normals with correlation r: Φ(h)Φ(k) plus the integral
/// of the density over the correlation from 0 to r (Plackett 1954), taken over its arcsine (Genz
/// 2004, (3)) by Simpson's rule.
pub fn below_both(h: f64, k: f64, r: f64) -> f64 {
    let end = r.clamp(-1.0 + 1e-9, 1.0 - 1e-9).asin();
    let along = |angle: f64| {
        let (sin, cos) = angle.sin_cos();
        (-(h * h + k * k - 2.0 * h * k * sin) / (2.0 * cos * cos)).exp()
    };
    let inner = (0..=INTERVALS).map(|i| {
        let weight = match i {
            0 | INTERVALS => 1.0,
            _ if i % 2 == 1 => 4.0,
            _ => 2.0,
        };
        weight * along(end * i as f64 / INTERVALS as f64)
    });
    let integral = inner.sum::<f64>() * end / (3 * INTERVALS) as f64;
    (cdf(h) * cdf(k) + integral / TAU).clamp(0.0, 1.0)
}

/// Returns for each of three jointly normal variables the probability that it is the largest.
pub fn largest(mean: [f64; 3], covariance: [[f64; 3]; 3]) -> [f64; 3] {
    let each = [0, 1, 2].map(|c| {
        let (a, b) = ((c + 1) % 3, (c + 2) % 3);
        // covariance of f_c − f_i and f_c − f_j
        let s = |i: usize, j: usize| {
            covariance[c][c] - covariance[c][i] - covariance[c][j] + covariance[i][j]
        };
        let (sa, sb) = (s(a, a).sqrt(), s(b, b).sqrt());
        below_both((mean[c] - mean[a]) / sa, (mean[c] - mean[b]) / sb, s(a, b) / (sa * sb))
    });
    let sum: f64 = each.iter().sum();
    each.map(|p| p / sum)
}

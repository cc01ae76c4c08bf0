//! Classes by logistic-softmax with λ kept: q(λ) = Ga(α, Z), q(nⱼ) = Po(γⱼ), Z = Θ₀ + Σ θⱼ (Galy-Fajou, Wenzel,
//! Donner & Opper 2020; weights and Θ₀ as in `logistic_classes`).
//!
//! ```text
//! γⱼ = e^{ψ(α)} θⱼσ̃(−μⱼ, vⱼ)/Z     α = 1 + Σ γⱼ = 1 + s e^{ψ(α)},  s = 1 − D/Z
//! ℓ = log θ_y σ̃(μ_y, v_y) − 1 + α − log Z + log Γ(α) + (1 − α) ψ(α)
//! ```
//! Derivation: E log Po(nⱼ | θⱼλ) and the entropies of q leave Σ γⱼ{log θⱼσ̃ⱼ + ψ(α) − log Z − log γⱼ + 1} − α for λ
//! and n, where the brackets are 1 and Σ γⱼ = α − 1, and the entropy of the gamma is α − log Z + log Γ(α) + (1 − α)ψ(α).
//!
//! α is near 1/(1 − s), as e^{ψ(α)} is near α − ½. With e(α) = e^{ψ(α)} − α + ½, the fixed point is the zero of
//! (1 − s)α − (1 − ½s) − s e(α), which loses no digits where s is almost 1.

use super::logistic_classes::Rate;
use crate::special::trigamma;
use statrs::function::gamma::{digamma, ln_gamma};
use std::f64::consts::TAU;

/// From here on α has its functions by asymptotic series.
const LARGE: f64 = 16.0;

/// Returns e(α) and its derivative. In x = α − ½ it is 1/24x − 37/5760x³ + … (the expansion of
/// e^{ψ(x + ½)}).
fn excess(alpha: f64) -> (f64, f64) {
    if alpha < LARGE {
        let e = digamma(alpha).exp();
        return (e - alpha + 0.5, e * trigamma(alpha) - 1.0);
    }
    let (mut value, mut slope) = (0.0, 0.0);
    let x = alpha - 0.5;
    for (power, c) in [
        (-1, 1.0 / 24.0),
        (-3, -37.0 / 5_760.0),
        (-5, 10_313.0 / 2_903_040.0),
        (-7, -5_509_121.0 / 1_393_459_200.0),
    ] {
        value += c * x.powi(power);
        slope += f64::from(power) * c * x.powi(power - 1);
    }
    (value, slope)
}

/// Returns α of a 1 − s in (0, 1].
fn shape(rest: f64) -> f64 {
    let s = 1.0 - rest;
    let mut alpha = (1.0 - 0.5 * s) / rest;
    // quadratic, from a start that is good to 4%; once a step is rounding it stays so
    for _ in 0..20 {
        let (e, by) = excess(alpha);
        let step = (rest * alpha - (1.0 - 0.5 * s) - s * e) / (rest - s * by);
        alpha = (alpha - step).max(1.0);
        if step.abs() <= 4.0 * f64::EPSILON * alpha {
            break;
        }
    }
    alpha
}

/// Returns α + log Γ(α) + (1 − α) ψ(α), by Stirling's series of both where terms of α log α would
/// cancel: ½ log 2πα + ½ − 1/2α + Σ B₂ₖ{1/(2k − 1)α^{2k−1} − 1/2kα^{2k}}.
fn entropy(alpha: f64) -> f64 {
    if alpha < LARGE {
        return alpha + ln_gamma(alpha) + (1.0 - alpha) * digamma(alpha);
    }
    let mut sum = 0.5 * (TAU * alpha).ln() + 0.5 - 0.5 / alpha;
    let bernoulli = [1.0 / 6.0, -1.0 / 30.0, 1.0 / 42.0, -1.0 / 30.0, 5.0 / 66.0];
    for (b, k) in bernoulli.into_iter().zip([2, 4, 6, 8, 10]) {
        let n = f64::from(k);
        sum += b * (alpha.powi(1 - k) / (n - 1.0) - alpha.powi(-k) / n);
    }
    sum
}

/// Returns λ at the optimum, by D and Z.
pub(super) fn rate(total: f64, sum: f64) -> Rate {
    let alpha = shape((total / sum).min(1.0));
    Rate {
        mean: alpha / sum,
        more: (excess(alpha).0 - 0.5) / sum,
        value: entropy(alpha) - 1.0 - sum.ln(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(own: f64, expected: f64, tolerance: f64, what: &str) {
        assert!((own - expected).abs() <= tolerance, "{what}: {own:e} for {expected:e}");
    }

    #[test]
    fn shapes_are_fixed_points() {
        for rest in [1.0, 0.99, 0.7, 0.3, 0.06, 0.03, 1e-3, 1e-8, 1e-300] {
            let alpha = shape(rest);
            let (s, psi) = (1.0 - rest, digamma(alpha));
            if rest > 1e-4 {
                close(1.0 + s * psi.exp(), alpha, 1e-13 * alpha, "the plain iteration");
            }
            // e^{ψ(α)} is between α − ½ and α − ½ + 1/24(α − ½)
            assert!(alpha >= 1.0 && (alpha * rest - 1.0).abs() <= 0.5, "{rest}: {alpha}");
        }
        assert_eq!(shape(1.0), 1.0);
    }

    #[test]
    fn series_agree_with_the_functions_where_they_meet() {
        for alpha in [LARGE, 40.0, 300.0] {
            let e = digamma(alpha).exp();
            // digamma and ln_gamma have relative errors of 1e-15
            let rounding = 1e-14 * alpha * alpha.ln();
            close(excess(alpha).0, e - alpha + 0.5, rounding, "e");
            close(excess(alpha).1, e * trigamma(alpha) - 1.0, rounding, "e'");
            let direct = alpha + ln_gamma(alpha) + (1.0 - alpha) * digamma(alpha);
            close(entropy(alpha), direct, rounding, "entropy");
        }
    }
}

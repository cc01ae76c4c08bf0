//! Local variables for classes with p(y = k | f) = θ_k σ(f_k)/{Θ₀ + Σⱼ θⱼσ(fⱼ)} (Galy-Fajou, Wenzel, Donner
//! & Opper 2020; Galy-Fajou 2022, §7.4). The class of weight Θ₀, if there is one, has no latent function.
//!
//! 1/z = ∫ e^{−λz} dλ takes the sum out of the denominator, e^{−λθⱼσ(fⱼ)} = Σₙ σ(−fⱼ)ⁿ Po(n | θⱼλ) makes counts of
//! it, and Pólya-Gamma variables take care of σ(fⱼ)^{Yⱼ}σ(−fⱼ)^{nⱼ}. With λ integrated out the counts are negative
//! multinomial, and all local variables are at their optimum together:
//!
//! ```text
//! D = Θ₀ + Σⱼ θⱼ{1 − σ̃(−μⱼ, vⱼ)}      n̄ⱼ = θⱼσ̃(−μⱼ, vⱼ)/D
//! ℓ = log θ_y σ̃(μ_y, v_y) − log D      aⱼ = (Yⱼ − n̄ⱼ)/2      λⱼ = (Yⱼ + n̄ⱼ) θ(cⱼ)
//! ∂ℓ/∂θⱼ = Yⱼ/θⱼ − {1 − σ̃(−μⱼ, vⱼ)}/D  ∂ℓ/∂Θ₀ = Y₀/Θ₀ − 1/D
//! ```
//! (σ̃ and θ(c) as in [`crate::distributions::functions`]; a class of weight Θ₀ has log Θ₀ − log D.) With λ kept
//! (`logistic_mean_field`) other numbers take the place of 1/D.

use super::Slopes;
use super::augmented::{Ratios, Site, polya_gamma};
use super::class_weights::Weights;
use crate::distributions::functions::{log_sigma_tilde, one_minus_sigma_tilde, pg_mean};
use rand_distr::{Distribution, Exp1};
use serde::{Deserialize, Serialize};

/// What the bound does with λ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Augmentation {
    /// Integrates it out.
    #[default]
    Marginal,
    /// Keeps it with its own factor, q(λ) q(n), as the paper of 2020 does. Always the looser bound.
    MeanField,
}

/// What local variables know of λ, and what it adds to ℓ.
pub(super) struct Rate {
    /// E λ; 1/D with λ integrated out.
    pub(super) mean: f64,
    /// What n̄ⱼ/θⱼσ̃(−μⱼ, vⱼ) is more than E λ.
    pub(super) more: f64,
    /// ℓ − log θ_y σ̃(μ_y, v_y).
    pub(super) value: f64,
}

/// Returns D.
fn denominator(weights: &Weights, mean: &[f64], variance: &[f64]) -> f64 {
    let each = mean.iter().zip(variance).enumerate();
    weights.rest()
        + each.map(|(j, (m, v))| weights.theta(j) * one_minus_sigma_tilde(-m, *v)).sum::<f64>()
}

/// Returns what local variables know of λ, by D.
fn rate(weights: &Weights, augmentation: Augmentation, total: f64) -> Rate {
    match augmentation {
        Augmentation::Marginal => Rate { mean: 1.0 / total, more: 0.0, value: -total.ln() },
        Augmentation::MeanField => {
            let thetas: f64 = (0..weights.latents()).map(|j| weights.theta(j)).sum();
            super::logistic_mean_field::rate(total, thetas + weights.rest())
        }
    }
}

/// Returns ℓ with its slopes, those of the parameters by the θ of all classes.
pub(super) fn expect(
    weights: &Weights,
    augmentation: Augmentation,
    y: usize,
    mean: &[f64],
    variance: &[f64],
    out: Slopes<'_>,
) -> f64 {
    let rate = rate(weights, augmentation, denominator(weights, mean, variance));
    for (j, (m, v)) in mean.iter().zip(variance).enumerate() {
        let hit = f64::from(u8::from(j == y));
        let (theta, miss) = (weights.theta(j), log_sigma_tilde(-m, *v).exp());
        let events = theta * miss * (rate.mean + rate.more);
        let precision = (hit + events) * pg_mean((m * m + v).sqrt());
        out.mean[j] = 0.5 * (hit - events) - precision * m;
        out.variance[j] = -0.5 * precision;
        // (Yⱼ + n̄ⱼ)/θⱼ − E λ
        out.params[j] = hit / theta + rate.more * miss - rate.mean * one_minus_sigma_tilde(-m, *v);
    }
    let last = mean.len();
    if let Some(by) = out.params.get_mut(last) {
        let hit = f64::from(u8::from(last == y));
        *by = hit / weights.theta(last) - weights.constant() * rate.mean;
    }
    let own = match mean.get(y) {
        Some(m) => weights.theta(y).ln() + log_sigma_tilde(*m, variance[y]),
        None => weights.rest().ln(),
    };
    own + rate.value
}

/// Adds what a row says of θ: the maximum of a bound that touches ℓ at the present θ, so that the
/// sum of ℓ never falls, is Σ over / Σ under with (Galy-Fajou 2022, §7.4.3)
///
/// ```text
/// λ integrated out   Y_k          {1 − σ̃(−μ_k, v_k)}/D   (D_C/D for a class without a latent function: Θ₀ = θ_C D_C)
/// λ kept             Y_k + n̄_k    E λ                    (D_C E λ)
/// ```
pub(super) fn add_ratios(
    weights: &Weights,
    augmentation: Augmentation,
    y: usize,
    (mean, variance): (&[f64], &[f64]),
    out: &mut Ratios<'_>,
) {
    let rate = rate(weights, augmentation, denominator(weights, mean, variance));
    out.add(y, 1.0, 0.0);
    for (k, (m, v)) in mean.iter().zip(variance).enumerate() {
        let miss = log_sigma_tilde(-m, *v).exp();
        match augmentation {
            Augmentation::Marginal => {
                out.add(k, 0.0, rate.mean * one_minus_sigma_tilde(-m, *v));
            }
            Augmentation::MeanField => {
                out.add(k, weights.theta(k) * miss * (rate.mean + rate.more), rate.mean);
            }
        }
    }
    // a class without a latent function
    if mean.len() < weights.classes() {
        out.add(mean.len(), 0.0, rate.mean * weights.constant());
    }
}

/// Draws λ, counts and Pólya-Gamma variables at latent values f (or at q(f) = N(f, variance)).
pub(super) fn draw(
    weights: &Weights,
    y: usize,
    f: &[f64],
    variance: &[f64],
    rng: &mut dyn rand::Rng,
    out: &mut [Site],
) {
    let exponential: f64 = Exp1.sample(rng);
    let lambda = exponential / denominator(weights, f, variance);
    for (j, (m, v)) in f.iter().zip(variance).enumerate() {
        let hit = f64::from(u8::from(j == y));
        let rate = lambda * weights.theta(j) * log_sigma_tilde(-m, *v).exp();
        let events = super::poisson::draw(rate, rng);
        let precision = polya_gamma(hit + events, (m * m + v).sqrt(), rng);
        out[j] = Site { potential: 0.5 * (hit - events), precision };
    }
}

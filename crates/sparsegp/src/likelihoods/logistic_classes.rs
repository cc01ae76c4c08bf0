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
//! ```
//! (σ̃ and θ(c) as in [`crate::distributions::functions`]; a class of weight Θ₀ has log Θ₀ − log D.)

use super::Slopes;
use super::augmented::{Site, polya_gamma};
use crate::distributions::functions::{log_sigma_tilde, one_minus_sigma_tilde, pg_mean};
use rand_distr::{Distribution, Exp1};

/// The weights of the classes.
#[derive(Clone, Copy, Debug)]
pub struct Scales<'a> {
    /// θ of the classes that have a latent function; empty for all 1.
    pub theta: &'a [f64],
    /// Θ₀.
    pub rest: f64,
}

impl Scales<'_> {
    /// θ = 1, Θ₀ = 0.
    pub const UNIT: Scales<'static> = Scales { theta: &[], rest: 0.0 };

    fn of(&self, class: usize) -> f64 {
        self.theta.get(class).copied().unwrap_or(1.0)
    }

    /// D.
    fn denominator(&self, mean: &[f64], variance: &[f64]) -> f64 {
        let each = mean.iter().zip(variance).enumerate();
        self.rest + each.map(|(j, (m, v))| self.of(j) * one_minus_sigma_tilde(-m, *v)).sum::<f64>()
    }
}

/// ℓ with its slopes in means and variances; D where it is asked for is `denominator` at the same.
/// Slopes of the parameters are the caller's: ∂ℓ/∂θ_k = Y_k/θ_k − (1 − σ̃(−μ_k, v_k))/D.
pub fn expect(
    scales: &Scales<'_>,
    y: usize,
    mean: &[f64],
    variance: &[f64],
    out: Slopes<'_>,
) -> f64 {
    let total = scales.denominator(mean, variance);
    for (j, (m, v)) in mean.iter().zip(variance).enumerate() {
        let hit = f64::from(u8::from(j == y));
        let events = scales.of(j) * log_sigma_tilde(-m, *v).exp() / total;
        let precision = (hit + events) * pg_mean((m * m + v).sqrt());
        out.mean[j] = 0.5 * (hit - events) - precision * m;
        out.variance[j] = -0.5 * precision;
    }
    let own = match mean.get(y) {
        Some(m) => scales.of(y).ln() + log_sigma_tilde(*m, variance[y]),
        None => scales.rest.ln(),
    };
    own - total.ln()
}

/// Slopes of ℓ with respect to θ of the classes that have a latent function, and to Θ₀.
#[allow(dead_code)]
pub fn by_scales(
    scales: &Scales<'_>,
    y: usize,
    mean: &[f64],
    variance: &[f64],
    out: &mut [f64],
) -> f64 {
    let total = scales.denominator(mean, variance);
    for (j, (m, v)) in mean.iter().zip(variance).enumerate() {
        let hit = f64::from(u8::from(j == y));
        out[j] = hit / scales.of(j) - one_minus_sigma_tilde(-m, *v) / total;
    }
    let hit = f64::from(u8::from(y == mean.len()));
    if scales.rest > 0.0 { hit / scales.rest - 1.0 / total } else { 0.0 }
}

/// Draws λ, counts and Pólya-Gamma variables at latent values f (or at q(f) = N(f, variance)).
pub fn draw(
    scales: &Scales<'_>,
    y: usize,
    f: &[f64],
    variance: &[f64],
    rng: &mut dyn rand::Rng,
    out: &mut [Site],
) {
    let exponential: f64 = Exp1.sample(rng);
    let lambda = exponential / scales.denominator(f, variance);
    for (j, (m, v)) in f.iter().zip(variance).enumerate() {
        let hit = f64::from(u8::from(j == y));
        let rate = lambda * scales.of(j) * log_sigma_tilde(-m, *v).exp();
        let events = super::poisson::draw(rate, rng);
        let precision = polya_gamma(hit + events, (m * m + v).sqrt(), rng);
        out[j] = Site { potential: 0.5 * (hit - events), precision };
    }
}

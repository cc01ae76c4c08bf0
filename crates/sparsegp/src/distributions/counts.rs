//! Counts.

use crate::error::{Error, Result};
use rand::Rng;
use rand_distr::{Distribution, Gamma, Poisson};

/// The negative binomial of real shape r > 0 and probability p in [0, 1):
/// P(k) = Γ(r + k)/(k! Γ(r)) pᵏ(1 − p)ʳ, mean rp/(1 − p).
///
/// Drawn as Poisson of a gamma variate of shape r and rate (1 − p)/p.
#[derive(Clone, Copy, Debug)]
pub struct NegativeBinomial {
    /// None at p = 0, where the count is 0.
    rate: Option<Gamma<f64>>,
}

/// The largest p/(1 − p), and mean, so that all rates are within reach of the Poisson sampler.
const LARGEST: f64 = 1e15;

impl NegativeBinomial {
    /// Creates the distribution with shape r > 0 and probability p in [0, 1), r finite.
    ///
    /// # Errors
    /// [`Error::Invalid`] for other numbers, or where p/(1 − p) or the mean is beyond 10¹⁵.
    pub fn new(shape: f64, probability: f64) -> Result<Self> {
        let odds = probability / (1.0 - probability);
        let gamma = Gamma::new(shape, odds).ok();
        if !(shape > 0.0 && (0.0..1.0).contains(&probability)) {
            return Err(Error::Invalid(format!(
                "a negative binomial needs a shape above 0 and a probability in [0, 1), not {shape} and {probability}"
            )));
        }
        if odds > LARGEST || shape * odds > LARGEST || !shape.is_finite() {
            return Err(Error::Invalid(format!(
                "the mean of a negative binomial of shape {shape} and probability {probability} is too large to draw counts"
            )));
        }
        Ok(Self { rate: gamma })
    }
}

impl Distribution<u64> for NegativeBinomial {
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> u64 {
        let rate = self.rate.map_or(0.0, |gamma| gamma.sample(rng));
        // the sampler refuses a rate of 0
        Poisson::new(rate).map_or(0, |poisson| poisson.sample(rng) as u64)
    }
}

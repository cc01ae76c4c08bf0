//! The Laplace likelihood and the Bayesian support-vector machine.

use super::{Complex64, Mixing, inverse_gamma, positive};
use crate::distributions::InverseGaussian;
use crate::error::Result;
use rand::Rng;
use rand_distr::Distribution;

/// φ(r) = e^{−√r/β}: the Laplace likelihood e^{−|y − f|/β} (Park & Casella 2008), and with β = 1 and
/// h = 1 − yf the pseudo-likelihood e^{−2 max(0, 1 − yf)} of the support-vector machine (Polson & Scott
/// 2011), as 2 max(0, x) = x + |x|.
///
/// The mean is infinite at r = 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Laplace {
    /// β.
    scale: f64,
}

impl Laplace {
    /// Creates the mixing distribution with β > 0.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for other numbers.
    pub fn new(scale: f64) -> Result<Self> {
        Ok(Self { scale: positive("the scale", scale)? })
    }
}

impl Mixing for Laplace {
    fn log_phi(&self, r: f64) -> f64 {
        -r.sqrt() / self.scale
    }

    fn log_phi_complex(&self, s: Complex64) -> Complex64 {
        -s.sqrt() / self.scale
    }

    fn mean(&self, r: f64) -> f64 {
        0.5 / (self.scale * r.sqrt())
    }

    fn variance(&self, r: f64) -> f64 {
        0.25 / (self.scale * r * r.sqrt())
    }

    fn log_density(&self, omega: f64) -> Option<[f64; 2]> {
        Some(inverse_gamma(omega, 0.5, 0.25 / (self.scale * self.scale)))
    }

    fn sample(&self, c: f64, rng: &mut dyn Rng) -> Option<f64> {
        // at c = 0 the mean is ∞: 1/ω ~ Ga(½, rate 1/4β²)
        let law = InverseGaussian::new(0.5 / (self.scale * c), 0.5 / (self.scale * self.scale));
        Some(law.ok()?.sample(rng))
    }
}

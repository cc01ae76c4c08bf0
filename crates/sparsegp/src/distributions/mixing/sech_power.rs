//! Powers of the hyperbolic secant: logistic links of classes and counts, and logistic noise.

use super::{Complex64, Mixing, ln_1p, positive};
use crate::distributions::functions::{
    log_cosh_of_square, pg_mean_of_square, pg_variance_of_square,
};
use crate::distributions::{PolyaGamma, polya_gamma};
use crate::error::Result;
use rand::Rng;
use rand_distr::Distribution;
use std::f64::consts::{LN_2, PI};

/// φ(r) = sech^b(√r/2s): ω ~ PG(b, c/s) / 2s² (Polson, Scott & Windle 2013).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SechPower {
    /// b.
    pub(crate) power: f64,
    /// s.
    pub(crate) scale: f64,
}

impl SechPower {
    /// Creates the mixing distribution with power b > 0, real, and scale s > 0.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for other numbers.
    pub fn new(power: f64, scale: f64) -> Result<Self> {
        Ok(Self { power: positive("the power", power)?, scale: positive("the scale", scale)? })
    }

    /// Returns c² of the Pólya-Gamma variable.
    fn square(&self, r: f64) -> f64 {
        r / (self.scale * self.scale)
    }
}

impl Mixing for SechPower {
    fn log_phi(&self, r: f64) -> f64 {
        -self.power * log_cosh_of_square(self.square(r))
    }

    fn log_phi_complex(&self, s: Complex64) -> Complex64 {
        let root = s.sqrt() / self.scale;
        // log cosh ½√s, of which no branch is crossed: |e^{−√s}| ≤ 1
        let log_cosh = if root.norm_sqr() < 1.0 {
            let quarter = (0.25 * root).sinh();
            ln_1p(2.0 * quarter * quarter)
        } else {
            0.5 * root + ln_1p((-root).exp()) - LN_2
        };
        -self.power * log_cosh
    }

    fn mean(&self, r: f64) -> f64 {
        0.5 * self.power * pg_mean_of_square(self.square(r)) / (self.scale * self.scale)
    }

    fn variance(&self, r: f64) -> f64 {
        0.25 * self.power * pg_variance_of_square(self.square(r)) / self.scale.powi(4)
    }

    fn r_min(&self) -> f64 {
        -(PI * self.scale).powi(2)
    }

    fn log_density(&self, omega: f64) -> Option<[f64; 2]> {
        // of x = 4 PG, and back to ω
        let scale = 8.0 * self.scale * self.scale;
        let [log, slope] = polya_gamma::log_density_of_four(self.power, scale * omega)?;
        Some([log + scale.ln(), scale * slope])
    }

    fn sample(&self, c: f64, rng: &mut dyn Rng) -> Option<f64> {
        let law = PolyaGamma::new(self.power, c / self.scale).ok()?;
        Some(0.5 * law.sample(rng) / (self.scale * self.scale))
    }
}

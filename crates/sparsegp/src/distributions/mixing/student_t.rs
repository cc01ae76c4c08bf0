//! Student's t.

use super::{Complex64, Mixing, ln_1p, positive};
use crate::error::Result;
use rand::Rng;
use rand_distr::{Distribution, Gamma};
use statrs::function::gamma::ln_gamma;

/// φ(r) = (1 + r/νσ²)^{−(ν+1)/2}.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StudentT {
    /// ½(ν + 1).
    power: f64,
    /// νσ².
    width: f64,
}

impl StudentT {
    /// Creates the mixing distribution with ν > 0 degrees of freedom and scale σ > 0.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for other numbers.
    pub fn new(df: f64, scale: f64) -> Result<Self> {
        let power = 0.5 * (positive("the degrees of freedom", df)? + 1.0);
        Ok(Self { power, width: positive("df·scale²", df * scale.abs() * scale)? })
    }
}

impl Mixing for StudentT {
    fn log_phi(&self, r: f64) -> f64 {
        -self.power * (r / self.width).ln_1p()
    }

    fn log_phi_complex(&self, s: Complex64) -> Complex64 {
        -self.power * ln_1p(s / self.width)
    }

    fn mean(&self, r: f64) -> f64 {
        self.power / (self.width + r)
    }

    fn variance(&self, r: f64) -> f64 {
        self.power / (self.width + r).powi(2)
    }

    fn r_min(&self) -> f64 {
        -self.width
    }

    fn log_density(&self, omega: f64) -> Option<[f64; 2]> {
        let (a, rate) = (self.power, self.width);
        let log = a * rate.ln() - ln_gamma(a) + (a - 1.0) * omega.ln() - rate * omega;
        Some([log, (a - 1.0) / omega - rate])
    }

    fn sample(&self, c: f64, rng: &mut dyn Rng) -> Option<f64> {
        Some(Gamma::new(self.power, 1.0 / (self.width + c * c)).ok()?.sample(rng))
    }
}

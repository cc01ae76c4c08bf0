//! The pseudo-Huber likelihood.

use super::{Complex64, Mixing, positive};
use crate::distributions::InverseGaussian;
use crate::error::Result;
use rand::Rng;
use rand_distr::Distribution;
use std::f64::consts::TAU;

/// φ(r) = exp(−A(√(1 + r/δ²) − 1)), A = δ²/s².
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PseudoHuber {
    /// δ².
    square: f64,
    /// A.
    power: f64,
}

impl PseudoHuber {
    /// Creates the mixing distribution with δ > 0, where the loss turns from quadratic to linear,
    /// and scale s > 0.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for other numbers.
    pub fn new(delta: f64, scale: f64) -> Result<Self> {
        let ratio = positive("δ", delta)? / positive("the scale", scale)?;
        Ok(Self { square: delta * delta, power: ratio * ratio })
    }
}

impl Mixing for PseudoHuber {
    fn log_phi(&self, r: f64) -> f64 {
        let q = r / self.square;
        // √(1 + q) − 1 without cancellation
        -self.power * (q / ((1.0 + q).sqrt() + 1.0))
    }

    fn log_phi_complex(&self, s: Complex64) -> Complex64 {
        let q = s / self.square;
        -self.power * (q / ((1.0 + q).sqrt() + 1.0))
    }

    fn mean(&self, r: f64) -> f64 {
        0.5 * self.power / (self.square * (1.0 + r / self.square).sqrt())
    }

    fn variance(&self, r: f64) -> f64 {
        let w = 1.0 + r / self.square;
        0.25 * self.power / (self.square * self.square * w * w.sqrt())
    }

    fn r_min(&self) -> f64 {
        -self.square
    }

    fn log_density(&self, omega: f64) -> Option<[f64; 2]> {
        // inverse Gaussian with mean A/2δ² and shape A²/2δ²
        let (mean, shape) =
            (0.5 * self.power / self.square, 0.5 * self.power * self.power / self.square);
        let ratio = mean / omega;
        let d = 1.0 - ratio;
        let log = 0.5 * (shape / (TAU * omega.powi(3))).ln()
            - 0.5 * shape * omega * d * d / (mean * mean);
        let slope = -1.5 / omega - 0.5 * shape * (1.0 - ratio * ratio) / (mean * mean);
        Some([log, slope])
    }

    fn sample(&self, c: f64, rng: &mut dyn Rng) -> Option<f64> {
        let shape = 0.5 * self.power * self.power / self.square;
        Some(InverseGaussian::new(self.mean(c * c), shape).ok()?.sample(rng))
    }
}

//! The Matérn-3/2 likelihood.

use super::{Complex64, Mixing, inverse_gamma, ln_1p, positive};
use crate::distributions::GeneralisedInverseGaussian;
use crate::error::Result;
use rand::Rng;
use rand_distr::Distribution;

/// φ(r) = (1 + u)e^{−u}, u = √(3r)/ρ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Matern32 {
    /// ρ/√3.
    scale: f64,
}

impl Matern32 {
    /// Creates the mixing distribution with ρ > 0.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for other numbers.
    pub fn new(rho: f64) -> Result<Self> {
        Ok(Self { scale: positive("ρ", rho)? / 3f64.sqrt() })
    }
}

/// Returns log(1 + u) − u for u ≥ 0, accurate for small u: with v = u/(2 + u), log(1 + u) is 2
/// artanh v = 2v + 2v³(1/3 + v²/5 + …), and 2v − u = −uv.
fn ln_1p_less(u: f64) -> f64 {
    if u > 0.5 {
        return u.ln_1p() - u;
    }
    let v = u / (2.0 + u);
    let square = v * v;
    let series = (1..=12).rev().fold(0.0, |sum, k| sum * square + 1.0 / f64::from(2 * k + 1));
    2.0 * v * square * series - u * v
}

/// Returns the same for complex u.
fn ln_1p_less_complex(u: Complex64) -> Complex64 {
    if u.norm_sqr() > 0.25 {
        return ln_1p(u) - u;
    }
    let v = u / (2.0 + u);
    let square = v * v;
    let zero = Complex64::new(0.0, 0.0);
    let series = (1..=14).rev().fold(zero, |sum, k| sum * square + 1.0 / f64::from(2 * k + 1));
    2.0 * v * square * series - u * v
}

impl Mixing for Matern32 {
    fn log_phi(&self, r: f64) -> f64 {
        ln_1p_less(r.sqrt() / self.scale)
    }

    fn log_phi_complex(&self, s: Complex64) -> Complex64 {
        ln_1p_less_complex(s.sqrt() / self.scale)
    }

    fn mean(&self, r: f64) -> f64 {
        let square = self.scale * self.scale;
        0.5 / (square * (1.0 + r.sqrt() / self.scale))
    }

    fn variance(&self, r: f64) -> f64 {
        let u = r.sqrt() / self.scale;
        0.25 / (self.scale.powi(4) * u * (1.0 + u) * (1.0 + u))
    }

    fn log_density(&self, omega: f64) -> Option<[f64; 2]> {
        Some(inverse_gamma(omega, 1.5, 0.25 / (self.scale * self.scale)))
    }

    fn sample(&self, c: f64, rng: &mut dyn Rng) -> Option<f64> {
        let b = 0.5 / (self.scale * self.scale);
        Some(GeneralisedInverseGaussian::new(-1.5, 2.0 * c * c, b).ok()?.sample(rng))
    }
}

//! Scale mixtures by their function φ, the Laplace transform of the mixing distribution.
//!
//! | likelihood | [`Mixing`] | log φ(r) | π_φ(ω ∣ c) |
//! | --- | --- | --- | --- |
//! | Student-t (ν, σ) | [`StudentT`] | −½(ν + 1) log(1 + r/νσ²) | Ga(½(ν + 1), rate νσ² + c²) |
//! | Laplace β; Bayesian SVM with β = 1 | [`Laplace`] | −√r/β | IG(1/2βc, 1/2β²) |
//! | Matérn-3/2 ρ | [`Matern32`] | log(1 + u) − u, u = √(3r)/ρ | GIG(−3/2, 2c², 3/2ρ²) |
//! | pseudo-Huber (δ, s), A = δ²/s² | [`PseudoHuber`] | −A(√(1 + r/δ²) − 1) | IG(ω̄, A²/2δ²) |
//! | logistic b = 1, binomial b = n, negative binomial b = y + r₀, all with s = 1; logistic noise s with b = 2 | [`SechPower`] | −b log cosh(√r/2s) | PG(b, c/s) / 2s² |
//!
//! The convention is that of the weight e^{−h²ω}: the ω of the Pólya-Gamma literature is twice as large.

mod admission;
mod laplace;
mod matern32;
mod pseudo_huber;
mod sech_power;
mod student_t;
#[cfg(test)]
mod tests;

pub use admission::check;
pub use laplace::Laplace;
pub use matern32::Matern32;
pub use num_complex::Complex64;
pub use pseudo_huber::PseudoHuber;
pub use sech_power::SechPower;
pub use student_t::StudentT;

use crate::error::{Error, Result};
use rand::Rng;
use statrs::function::gamma::ln_gamma;

/// A completely monotone φ with φ(0) = 1, by its logarithm: φ(r) = ∫ e^{−rω} π_φ(ω ∣ 0) dω.
///
/// The two forms of log φ are all that is needed; [`check`] tests whether they can be such a φ. Completely
/// monotone are e^{−B} and 1/(1 + B) with B = √r, r^p (p ≤ 1), log(1 + r), √(1 + r) − 1 and sums of these,
/// and products and convex mixtures of completely monotone functions.
///
/// ```
/// use sparsegp::distributions::mixing::{self, Complex64, Mixing};
///
/// /// φ(r) = exp(−(1 + r)^p + 1): a tempered stable law.
/// struct Tempered(f64);
///
/// impl Mixing for Tempered {
///     fn log_phi(&self, r: f64) -> f64 {
///         1.0 - (1.0 + r).powf(self.0)
///     }
///     fn log_phi_complex(&self, s: Complex64) -> Complex64 {
///         1.0 - (1.0 + s).powf(self.0)
///     }
/// }
///
/// assert!(mixing::check(&Tempered(0.4)).is_ok());
/// assert!(mixing::check(&Tempered(1.5)).is_err());
/// assert!((Tempered(0.4).mean(2.0) - 0.4 * 3f64.powf(-0.6)).abs() < 1e-12);
/// ```
pub trait Mixing {
    /// Returns log φ(r) for real r ≥ 0, and down to [`Mixing::r_min`] where that is below 0.
    fn log_phi(&self, r: f64) -> f64;

    /// Returns log φ(s) in the half plane Re s ≥ 0, continuous there: the logarithm must be written
    /// out, not be taken of φ, whose branch would wrap.
    /// [`Tilted::log_density`](super::Tilted::log_density) and [`Tilted::cdf`](super::Tilted::cdf)
    /// need it in the plane cut from r_min to −∞.
    fn log_phi_complex(&self, s: Complex64) -> Complex64;

    /// Returns ω̄(r) = −(log φ)′(r), the mean of π_φ(ω ∣ √r); possibly ∞ at r = 0.
    ///
    /// By default the complex step −Im log φ(r + ih)/h, which has no cancellation (Squire & Trapp 1998).
    fn mean(&self, r: f64) -> f64 {
        let r = interior(r, self.r_min());
        let h = 1e-20 * (r - self.r_min());
        -self.log_phi_complex(Complex64::new(r, h)).im / h
    }

    /// Returns κ₂(r) = (log φ)″(r), the variance of π_φ(ω ∣ √r); possibly ∞ at r = 0.
    ///
    /// By default a central difference of the mean, good to about 10⁻⁹.
    fn variance(&self, r: f64) -> f64 {
        let r = interior(r, self.r_min());
        let h = 1e-5 * (r - self.r_min());
        (self.mean(r - h) - self.mean(r + h)) / (2.0 * h)
    }

    /// Returns a number in (−∞, 0] above which log φ is analytic on the real axis: the lowest one
    /// known, 0 where nothing is.
    fn r_min(&self) -> f64 {
        0.0
    }

    /// Returns log π_φ(ω ∣ 0) and its slope in ω > 0 where there is a closed form; nothing
    /// otherwise, and [`Tilted::log_density`](super::Tilted::log_density) finds them.
    fn log_density(&self, omega: f64) -> Option<[f64; 2]> {
        let _ = omega;
        None
    }

    /// Draws from π_φ(ω ∣ c), c ≥ 0, where there is a direct way; nothing otherwise.
    fn sample(&self, c: f64, rng: &mut dyn Rng) -> Option<f64> {
        let _ = (c, rng);
        None
    }
}

/// Returns the logarithm of the inverse gamma density with this shape and scale, and its slope.
fn inverse_gamma(omega: f64, shape: f64, scale: f64) -> [f64; 2] {
    let log = shape * scale.ln() - ln_gamma(shape) - (shape + 1.0) * omega.ln() - scale / omega;
    [log, (scale / omega - (shape + 1.0)) / omega]
}

/// Returns a point to differentiate at: r, but not where the function ends.
fn interior(r: f64, r_min: f64) -> f64 {
    r.max(r_min + 1e-100 * r_min.abs().max(1.0)).max(r_min.next_up())
}

/// Returns a parameter that must be finite and above 0.
fn positive(what: &str, value: f64) -> Result<f64> {
    if value > 0.0 && value.is_finite() {
        Ok(value)
    } else {
        Err(Error::Invalid(format!("{what} must be a finite number above 0, not {value}")))
    }
}

/// Returns log(1 + z), accurate for small z.
fn ln_1p(z: Complex64) -> Complex64 {
    let real = 0.5 * (z.re * (2.0 + z.re) + z.im * z.im).ln_1p();
    Complex64::new(real, z.im.atan2(1.0 + z.re))
}

//! The Pólya-Gamma distribution (Polson, Scott & Windle 2013).

mod sampler;
mod series;
#[cfg(test)]
mod tests;

pub use sampler::PolyaGammaSampler;
pub use sampler::envelope_crossing;
pub(super) use series::log_density_of_four;

use super::functions::{pg_kl, pg_mean, pg_variance};
use super::laplace_inversion::Tilted;
use super::mixing::SechPower;
use crate::error::{Error, Result};
use rand::Rng;
use rand_distr::Distribution;

/// PG(b, c) for any real b ≥ 0, integer or not, and any real c, of which only |c| matters.
///
/// E e^{−tω} = (cosh ½c / cosh ½√(c² + 2t))ᵇ; PG(0, c) is a point mass at 0, and sums of independent
/// variates add their b. Draws are exact for every b, see [`PolyaGammaSampler`].
///
/// ```
/// use rand_distr::Distribution;
/// use sparsegp::distributions::PolyaGamma;
///
/// let law = PolyaGamma::new(2.5, 0.7)?;
/// let mut rng = sparsegp::rng::stream(1, "example");
/// let draws: Vec<f64> = law.sampler().sample_iter(&mut rng).take(1000).collect();
/// let mean = draws.iter().sum::<f64>() / 1000.0;
/// assert!((mean - law.mean()).abs() < 5.0 * (law.variance() / 1000.0).sqrt());
/// # Ok::<(), sparsegp::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolyaGamma {
    shape: f64,
    tilt: f64,
}

impl PolyaGamma {
    /// Creates PG(b, c) with b = `shape`, c = `tilt`.
    ///
    /// # Errors
    /// [`Error::Invalid`] unless b is finite and at least 0 and c is finite.
    pub fn new(shape: f64, tilt: f64) -> Result<Self> {
        if shape >= 0.0 && shape.is_finite() && tilt.is_finite() {
            Ok(Self { shape, tilt: tilt.abs() })
        } else {
            Err(Error::Invalid(format!(
                "a Pólya-Gamma distribution PG(b, c) needs a finite b of at least 0 and a finite c, not b = {shape} and c = {tilt}"
            )))
        }
    }

    /// Returns bθ(c).
    pub fn mean(&self) -> f64 {
        self.shape * pg_mean(self.tilt)
    }

    /// Returns bV(c).
    pub fn variance(&self) -> f64 {
        self.shape * pg_variance(self.tilt)
    }

    /// Returns KL(PG(b, c) ‖ PG(b, 0)) = b log cosh(c/2) − ½c²bθ(c).
    pub fn kl_to_untilted(&self) -> f64 {
        self.shape * pg_kl(self.tilt)
    }

    /// Returns log PG(x ∣ b, c), to full relative accuracy of the density in both tails (a contour
    /// integral, see [`Tilted::log_density`]); −∞ for x ≤ 0. A point mass (b = 0) has no density: ∞
    /// at 0, −∞ elsewhere.
    pub fn log_density(&self, x: f64) -> f64 {
        if self.shape == 0.0 {
            return if x == 0.0 { f64::INFINITY } else { f64::NEG_INFINITY };
        }
        // ω = 2·(ω of the convention e^{−rω})
        self.with_tilted(|tilted| tilted.log_density(0.5 * x)) - std::f64::consts::LN_2
    }

    /// Returns P(ω ≤ x), to full relative accuracy in the lower tail: the alternating series where
    /// it keeps its digits, else a contour integral ([`Tilted::cdf`]).
    pub fn cdf(&self, x: f64) -> f64 {
        if x < 0.0 {
            0.0
        } else if self.shape == 0.0 {
            1.0
        } else if let Some(sum) = series::cdf(self.shape, self.tilt, x) {
            sum
        } else {
            self.with_tilted(|tilted| tilted.cdf(0.5 * x))
        }
    }

    /// Returns P(ω > x), to full relative accuracy in the upper tail.
    pub fn survival(&self, x: f64) -> f64 {
        if x < 0.0 {
            1.0
        } else if self.shape == 0.0 {
            0.0
        } else {
            self.with_tilted(|tilted| tilted.survival(0.5 * x))
        }
    }

    /// Returns what many draws of the same law share.
    pub fn sampler(&self) -> PolyaGammaSampler {
        PolyaGammaSampler::new(self.shape, self.tilt)
    }

    fn with_tilted(&self, f: impl Fn(&Tilted<'_>) -> f64) -> f64 {
        let mixing = SechPower { power: self.shape, scale: 1.0 };
        f(&Tilted::of_valid(&mixing, self.tilt))
    }
}

impl Distribution<f64> for PolyaGamma {
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        sampler::draw(self.shape, self.tilt, rng)
    }
}

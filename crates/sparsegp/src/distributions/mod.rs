//! Distributions of the auxiliary variables that make likelihoods conjugate: exact samplers, moments and
//! densities.
//!
//! | what | how drawn | source |
//! | --- | --- | --- |
//! | [`PolyaGamma`] PG(b, c), any real b ≥ 0 | alternating series under two envelopes | Devroye 2009; Windle, Polson & Scott 2014 |
//! | [`InverseGaussian`] | a root of a quadratic | Michael, Schucany & Haas 1976 |
//! | [`TruncatedInverseGaussian`] | rejection | |
//! | [`GeneralisedInverseGaussian`] GIG(p, a, b), any real p | rejection from flat centre and tangents | Devroye 2014 |
//! | [`TruncatedGamma`] | rejection | |
//! | [`NegativeBinomial`], any real shape | Poisson given gamma | |
//! | [`Tilted`] π_φ(ω ∣ c) of any [`Mixing`] | closed form where there is one, else numerical inversion of the Laplace transform | Abate, Choudhury & Whitt 2000; Ridout 2009 |
//!
//! # Scale mixtures
//!
//! A likelihood whose dependence on a latent value is φ(h²), φ completely monotone with φ(0) = 1, is a
//! scale mixture of Gaussians by Bernstein's theorem, φ(r) = ∫ e^{−rω} π_φ(ω ∣ 0) dω, and
//! π_φ(ω ∣ c) = e^{−c²ω} π_φ(ω ∣ 0) / φ(c²). A [`Mixing`] is such a φ, by its logarithm; [`mixing`] has the
//! catalogue.

mod counts;
pub mod functions;
mod gamma;
mod generalised_inverse_gaussian;
mod inverse_gaussian;
#[cfg(test)]
mod kolmogorov;
mod laplace_inversion;
pub mod mixing;
mod polya_gamma;
#[cfg(test)]
mod tests;

pub use counts::NegativeBinomial;
pub use gamma::TruncatedGamma;
pub use generalised_inverse_gaussian::GeneralisedInverseGaussian;
pub use inverse_gaussian::{InverseGaussian, TruncatedInverseGaussian};
pub use laplace_inversion::{Euler, Inverted, Tilted};
pub use mixing::Mixing;
pub use polya_gamma::{PolyaGamma, PolyaGammaSampler, envelope_crossing};

/// Proposals after which a rejection sampler ends: with numbers that floating point can hold, every one
/// here accepts a tenth of them or more.
const MOST_PROPOSALS: usize = 10_000;

/// Proposes until something is accepted; NaN where nothing is, as parameters are then beyond the range of
/// floating point.
#[inline]
fn accepted(mut propose: impl FnMut() -> Option<f64>) -> f64 {
    (0..MOST_PROPOSALS).find_map(|_| propose()).unwrap_or(f64::NAN)
}

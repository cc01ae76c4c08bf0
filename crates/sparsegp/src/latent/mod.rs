//! Uncertain inputs: ψ-statistics of kernels under Gaussian inputs, and the Bayesian GP-LVM.
//!
//! Inputs xᵢ have a distribution q(xᵢ) = N(μᵢ, diag Sᵢ). All that a bound needs of a kernel then are its expectations
//! ([`Psi`], Titsias & Lawrence 2010):
//!
//! ```text
//! ψ₀ᵢ = ⟨k(xᵢ, xᵢ)⟩     ψ₁ᵢ = ⟨k(xᵢ, Z)⟩     ψ₂ᵢ = ⟨k(Z, xᵢ)k(xᵢ, Z)⟩
//! ```
//!
//! They are known for `rbf`, `linear` and `constant`, for sums of these and `white`, and for products with constants.

mod bound;
#[cfg(test)]
mod bound_tests;
mod bumps;
mod cloud;
mod embed;
mod fit;
#[cfg(test)]
mod fit_tests;
mod line;
mod model;
mod parts;
mod predict;
mod psi;
#[cfg(test)]
mod psi_tests;
mod pull;
mod start;
mod targets;

pub use bound::{Bound, LatentAdjoints, LatentGradient, Setting, divergence};
pub use embed::{EmbedOptions, Embedding};
pub use fit::{FittedGplvm, GplvmOptions, fit_gplvm};
pub use model::Gplvm;
pub use predict::Posterior;
pub use psi::{Folded, Psi, Uncertain};
pub use pull::{Bars, Slopes};
pub use start::LatentStart;
pub use targets::{Group, Targets};

//! ψ-statistics: expectations of kernels under Gaussian inputs.
//!
//! All that bounds and predictions need of a kernel at inputs xᵢ ~ N(μᵢ, diag Sᵢ) are (Titsias & Lawrence 2010)
//!
//! ```text
//! ψ₀ᵢ = ⟨k(xᵢ, xᵢ)⟩     ψ₁ᵢ = ⟨k(xᵢ, Z)⟩     ψ₂ᵢ = ⟨k(Z, xᵢ)k(xᵢ, Z)⟩
//! ```
//!
//! They are known for `rbf`, `linear` and `constant`, for sums of these and `white`, and for products with constants.

mod bumps;
mod cloud;
mod line;
mod parts;
mod pull;
mod statistics;
#[cfg(test)]
pub(crate) mod tests;

pub use pull::{Bars, Slopes};
pub use statistics::{Folded, Psi, Uncertain};

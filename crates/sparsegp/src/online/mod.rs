//! Streams: a sparse posterior that keeps what old rows said after they are gone.
//!
//! What past rows said of a latent function is one Gaussian site on its values a = f(Zₐ) at the old inducing points
//! ([`Site`]): exp(c + hᵀa − ½aᵀΛa), old posterior over old prior. A batch of new rows meets the prior at new points
//! Z_b times that site (Bui, Nguyen & Turner 2017, in the form of sites): [`Update`]. With K_bb = LLᵀ, W_f = L⁻¹K_bf,
//! W_a = L⁻¹K_ba and the rows' sites λᵢ, βᵢ (Gaussian noise: y/σ², 1/σ²),
//!
//! ```text
//! D = I + W_f diag(β) W_fᵀ + W_a Λ W_aᵀ     c = W_f λ + W_a h     q(b) = N(L D⁻¹c, L D⁻¹Lᵀ)
//! Λ_b = A diag(β) Aᵀ + A_aᵀ Λ A_a           h_b = Aλ + A_aᵀ h     c_b = ½ log|D| − ½ cᵀD⁻¹c
//! ```
//!
//! with A = L⁻ᵀW_f and A_aᵀ = L⁻ᵀW_a. Λ is carried and never inverted: S⁻¹ − K⁻¹ of close points has no digits left.
//! Where Z and the hyperparameters stay, batches add up, in any order, to the posterior of all their rows.
//!
//! Latent functions are independent, each with its own kernel and site; they share Z_b.

mod calibration;
mod drift;
mod gradient;
mod moments;
mod prior;
mod site;
#[cfg(test)]
mod tests;
mod update;

pub use calibration::{Calibration, Miss, Seen};
pub use drift::{Change, Drift};
pub use gradient::{Adjoints, Gradient};
pub use moments::Moments;
pub use prior::Prior;
pub use site::Site;
pub use update::{Batch, Bound, SolveOptions, Solved, Update};

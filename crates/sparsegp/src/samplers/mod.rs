//! Samplers of posteriors, and what tells how well their chains mix.
//!
//! | sampler | moves | needs |
//! | --- | --- | --- |
//! | [`gibbs`] | local variables given f, then f given them, as blocks | a likelihood with local variables |
//! | [`hmc`] | whitened variables, possibly with the local ones, along Hamiltonian paths (also without U-turns) | log p(y ∣ f) with slopes |
//! | [`mod@slice`] | hyperparameters within sweeps of [`gibbs`], one at a time | priors |
//! | [`metropolis`] | whitened variables by a random walk: the baseline | log p(y ∣ f) |

mod adaptation;
mod chains;
pub mod conditional;
pub mod diagnostics;
pub mod gibbs;
pub mod hmc;
pub mod joint;
pub mod metropolis;
mod nuts;
mod resume;
mod setting;
pub mod slice;

pub use chains::{Draws, Mixing, Sampled};
pub use resume::SamplingState;
pub use setting::{Setting, Target};

#[cfg(test)]
mod gibbs_tests;
#[cfg(test)]
mod hmc_tests;
#[cfg(test)]
mod slice_tests;
#[cfg(test)]
pub(crate) mod test_models;

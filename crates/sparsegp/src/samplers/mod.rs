//! Samplers of posteriors, and what tells how well their chains mix.
//!
//! | sampler | moves | needs |
//! | --- | --- | --- |
//! | [`gibbs`] | local variables given f, then f given them, as blocks | a likelihood with local variables |
//! | [`series`] | the same of one input, f along the states of Markov processes | the same, kernels with states |
//! | [`hmc`] | whitened variables, possibly with the local ones, along Hamiltonian paths (also without U-turns) | log p(y ∣ f) with slopes |
//! | [`mod@slice`] | hyperparameters within sweeps of [`gibbs`], one at a time | priors |
//! | [`everything`] | whitened variables and hyperparameters together, along Hamiltonian paths | the same with slopes by them, priors |
//! | [`evidence`] | hyperparameters under their log evidence, for Gaussian noise, with exact draws of f | slopes of the evidence, priors |
//! | [`laplace`] | no chain: weighted points about the mode of hyperparameters | the same |
//! | [`marginal`] | paths without U-turns of hyperparameters | the same, f integrated out |
//! | [`elliptical`] | whitened variables on ellipses through draws of the prior | log p(y ∣ f) |
//! | [`metropolis`] | whitened variables by a random walk: the baseline | log p(y ∣ f) |
//!
//! [`hmc`] and the last two also sample any [`density`] of the caller: [`hmc::sample_density`], [`elliptical::sample_density`],
//! [`metropolis::sample_density`].

mod adaptation;
mod chains;
pub mod conditional;
pub mod density;
pub mod diagnostics;
pub mod elliptical;
pub mod everything;
pub mod evidence;
mod flow;
pub mod gibbs;
pub mod hmc;
pub mod joint;
pub mod laplace;
pub mod marginal;
pub mod metropolis;
mod moves;
mod nuts;
mod of_model;
mod resume;
pub mod series;
mod setting;
pub mod slice;
mod target;
mod whitened;

pub use crate::metrics::{Mixing, Sampled};
pub use chains::Draws;
pub use of_model::{check, check_rows, sample};
pub use resume::{Checkpointer, Going, SamplingState};
pub use setting::{Setting, Target};
pub use target::{AsDensity, OfDensity};

#[cfg(test)]
mod density_tests;
#[cfg(test)]
mod everything_tests;
#[cfg(test)]
mod gibbs_tests;
#[cfg(test)]
mod hmc_tests;
#[cfg(test)]
mod laplace_sited_tests;
#[cfg(test)]
mod laplace_tests;
#[cfg(test)]
mod nuts_tests;
#[cfg(test)]
mod series_tests;
#[cfg(test)]
mod slice_tests;
#[cfg(test)]
pub(crate) mod test_models;

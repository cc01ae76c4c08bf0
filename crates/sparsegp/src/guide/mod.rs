#![doc = include_str!("README.md")]
//!
//! The pages are made of those in `docs/guide` of the repository, by `cargo run -p sparsegp-bench --bin guide`.

#[doc = include_str!("augmentation.md")]
pub mod augmentation {}
#[doc = include_str!("bayesopt.md")]
pub mod bayesopt {}
#[doc = include_str!("choosing.md")]
pub mod choosing {}
#[doc = include_str!("collapsed.md")]
pub mod collapsed {}
#[doc = include_str!("cookbook.md")]
pub mod cookbook {}
#[doc = include_str!("deep.md")]
pub mod deep {}
#[doc = include_str!("dual.md")]
pub mod dual {}
#[doc = include_str!("errata.md")]
pub mod errata {}
#[doc = include_str!("export.md")]
pub mod export {}
#[doc = include_str!("inducing.md")]
pub mod inducing {}
#[doc = include_str!("inverse_free.md")]
pub mod inverse_free {}
#[doc = include_str!("kernels.md")]
pub mod kernels {}
#[doc = include_str!("latent.md")]
pub mod latent {}
#[doc = include_str!("likelihoods.md")]
pub mod likelihoods {}
#[doc = include_str!("machines.md")]
pub mod machines {}
#[doc = include_str!("noisy_inputs.md")]
pub mod noisy_inputs {}
#[doc = include_str!("peers.md")]
pub mod peers {}
#[doc = include_str!("precision.md")]
pub mod precision {}
#[doc = include_str!("predictions.md")]
pub mod predictions {}
#[doc = include_str!("saving.md")]
pub mod saving {}
#[doc = include_str!("series.md")]
pub mod series {}
#[doc = include_str!("space.md")]
pub mod space {}
#[doc = include_str!("stochastic.md")]
pub mod stochastic {}
#[doc = include_str!("streams.md")]
pub mod streams {}

// Examples elsewhere that run too: of the crate's front page, and the recipes of the repository, which the published crate does not have.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
mod front_page {}
#[cfg(doctest)]
#[doc = include_str!("../../../../CONTRIBUTING.md")]
mod contributing {}

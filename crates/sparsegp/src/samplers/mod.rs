//! Samplers of posteriors, and what tells how well their chains mix.

pub mod conditional;
pub mod diagnostics;
pub mod gibbs;

#[cfg(test)]
mod gibbs_tests;

//! Markov chains: what their output tells.

pub mod diagnostics;

//! Observation models p(y | f).

mod gaussian;

pub use gaussian::Gaussian;

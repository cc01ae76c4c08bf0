//! Scalable Gaussian processes.
#![deny(missing_docs)]

pub mod data;
pub mod error;
pub mod inducing;
pub mod optim;
pub mod rng;
pub use error::{Error, Result};

//! Scalable Gaussian processes.
#![deny(missing_docs)]

pub mod data;
pub mod error;
pub mod metrics;
pub mod optim;
pub use error::{Error, Result};

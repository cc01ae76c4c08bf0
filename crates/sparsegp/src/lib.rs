//! Scalable Gaussian processes.

pub mod data;
pub mod error;
pub mod linalg;
pub mod optim;
pub mod params;
pub use error::{Error, Result};

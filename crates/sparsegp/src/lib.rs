//! Scalable Gaussian processes.

pub mod atomic;
pub mod bulk;
pub mod data;
pub mod engine;
pub mod error;
pub mod fit;
pub mod inducing;
pub mod io;
pub mod kernels;
pub mod likelihoods;
pub mod linalg;
pub mod means;
pub mod methods;
pub mod metrics;
pub mod model;
pub mod optim;
pub mod params;
pub mod rng;
pub mod terms;
pub mod train;

pub use error::{Error, Result};

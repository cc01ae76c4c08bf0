//! Densities to approximate, one a file.

mod banana;
mod funnel;
mod gaussian;

pub use banana::Banana;
pub use funnel::Funnel;
pub use gaussian::Gaussian;

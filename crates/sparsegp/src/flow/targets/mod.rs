//! Densities to approximate, one a file.

mod banana;
mod funnel;
mod gaussian;
mod logistic;
pub(in crate::flow) mod network;
mod whitened;
mod whitened_slopes;

pub use banana::Banana;
pub use funnel::Funnel;
pub use gaussian::Gaussian;
pub use logistic::Logistic;
pub use network::Network;
pub use whitened::{Whitened, WhitenedRows};
pub use whitened_slopes::WhitenedSlopes;

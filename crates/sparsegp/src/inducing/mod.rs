//! Inducing points: where to place them.

pub mod select;

pub use select::{Prior, Selected, Selection};

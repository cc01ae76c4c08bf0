//! What a fitted model has learnt of its inputs: how predictions change along each of them, and what share of their variation
//! each explains.
//!
//! | | |
//! | --- | --- |
//! | [`Explainer::partial`] | partial dependence: the average prediction were a column the same in all rows |
//! | [`Explainer::accumulated`] | accumulated local effects, for columns that depend on each other |
//! | [`Explainer::sensitivity`] | Sobol indices: shares of the variance of predictions |
//!
//! All are of E[y | f], the expected observation of a row, in the data's own units (of classes their probabilities), and have 95 %
//! intervals by joint draws of the posterior: what is not known of the function, not the noise of observations.

mod background;
mod curves;
mod document;
mod sensitivity;
#[cfg(test)]
mod tests;

pub use background::{Column, Explainer, Kind, Options};
pub use curves::Curve;
pub use sensitivity::{Sensitivity, Share};

//! Optimisers over a flat vector of free parameters.

use crate::error::Result;

/// A differentiable function to minimise.
pub trait Objective {
    /// Number of free parameters.
    fn dim(&self) -> usize;
    /// Value at `x`; writes the gradient. Both arguments have length [`Objective::dim`].
    ///
    /// # Errors
    /// An error for which [`crate::Error::is_recoverable`] holds means "no value here, try nearer";
    /// any other stops the optimisation.
    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> Result<f64>;
}

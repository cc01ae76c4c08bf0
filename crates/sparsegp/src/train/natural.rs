//! One natural-gradient step of q, which is taken back where there is no bound.

use crate::data::Source;
use crate::engine::Engine;
use crate::error::Result;
use crate::methods::q_steps;
use crate::model::Model;

/// Moves q by a natural-gradient step of size `rate`, 0 < ρ ≤ 1, and returns the bound before it.
///
/// # Errors
/// [`crate::Error::NotPositiveDefinite`] or [`crate::Error::NonFinite`] if the step leads to no covariance or to no finite bound: a shorter
/// one may not. [`crate::Error::Invalid`] for a method without a q of this kind. In every case q is what it was.
pub fn natural_step(
    model: &mut Model,
    engine: &dyn Engine,
    data: &dyn Source,
    rate: f64,
) -> Result<f64> {
    let before = model.q.clone();
    let moved = step(model, engine, data, rate);
    if moved.is_err() {
        model.q = before;
    }
    moved
}

fn step(model: &mut Model, engine: &dyn Engine, data: &dyn Source, rate: f64) -> Result<f64> {
    let mut steps = q_steps(model)?;
    let value = steps.look(model, engine, data)?;
    steps.step(model, engine, data, rate)?;
    steps.value(model, engine, data).map(|_| value)
}

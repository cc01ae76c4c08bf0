//! One natural-gradient step of q, which is taken back where there is no bound.

use crate::data::Source;
use crate::engine::{Engine, Want};
use crate::error::{Error, Result};
use crate::model::Model;

/// Moves q by a natural-gradient step of size `rate`, 0 < ρ ≤ 1, and returns the bound before it.
///
/// # Errors
/// [`Error::NotPositiveDefinite`] or [`Error::NonFinite`] if the step leads to no covariance or to no finite bound: a shorter
/// one may not. [`Error::Invalid`] for a method without a q of this kind. In every case q is what it was.
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
    if let Some(method) = model.method.full_sites() {
        let value = method.step(model, data, rate)?;
        return method.value(model, data).map(|_| value);
    }
    let method = model.method.uncollapsed().ok_or_else(|| {
        Error::Invalid(format!("method `{}` has no q to move", model.method.name()))
    })?;
    let mut step = method.step(model, engine, data, Want::Statistics)?;
    let value = step.value;
    step.natural(model, rate)?;
    method.renew(&mut step, model, engine, data, Want::Value).map(|()| value)
}

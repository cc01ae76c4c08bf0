//! One minibatch: its bound as Adam sees it, and the natural-gradient step of q.

use crate::data::Minibatch;
use crate::engine::{Engine, Want};
use crate::error::Result;
use crate::methods::{Step, Uncollapsed};
use crate::model::Model;
use crate::optim::Objective;
use crate::params::{free_gradient, log_prior};

/// The bound of one minibatch, negated, as Adam sees it.
pub(super) struct OneBatch<'a> {
    pub(super) model: &'a mut Model,
    pub(super) method: &'a Uncollapsed,
    pub(super) engine: &'a dyn Engine,
    pub(super) batch: &'a Minibatch,
    /// The last pass that succeeded.
    pub(super) step: Option<Step>,
    pub(super) failures: usize,
}

impl Objective for OneBatch<'_> {
    fn dim(&self) -> usize {
        self.model.params().iter().filter(|(_, p)| !p.frozen).map(|(_, p)| p.len()).sum()
    }

    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> Result<f64> {
        self.model.set_free_values(x);
        self.step = None;
        let pass = self.method.step(self.model, self.engine, self.batch, Want::Gradients);
        let mut step = pass.inspect_err(|e| self.failures += usize::from(e.is_recoverable()))?;
        let params = self.model.params();
        let mut slopes = step.gradient(self.model);
        let value = step.value + log_prior(&params, &mut slopes);
        for (target, slope) in gradient.iter_mut().zip(free_gradient(&params, &slopes)) {
            *target = -slope;
        }
        self.step = Some(step);
        Ok(-value)
    }
}

/// Halvings of a natural-gradient step before it is given up.
const HALVINGS: usize = 20;

/// Moves q by a natural-gradient step from what `step` saw. Returns how often the rate was halved;
/// `None` if no step was possible.
pub(super) fn move_q(
    model: &mut Model,
    method: &Uncollapsed,
    engine: &dyn Engine,
    batch: &Minibatch,
    step: &Step,
    rate: f64,
) -> Result<Option<usize>> {
    let before = model.q.clone();
    // with Gaussian noise the bound is a constant − KL(q‖q*), which falls all along the straight line
    // to q* in the natural parameters: no step up to 1 overshoots
    let certain = model.likelihood.as_gaussian().is_some();
    let mut rate = rate;
    for halvings in 0..=HALVINGS {
        match step.natural(model, rate) {
            Ok(()) if certain => return Ok(Some(halvings)),
            Ok(()) => match method.step(model, engine, batch, Want::Value) {
                Ok(moved) if moved.value >= step.value - 1e-10 * step.value.abs() => {
                    return Ok(Some(halvings));
                }
                Ok(_) => {}
                Err(error) if error.is_recoverable() => {}
                Err(error) => return Err(error),
            },
            Err(error) if error.is_recoverable() => {}
            Err(error) => return Err(error),
        }
        model.q.clone_from(&before);
        rate *= 0.5;
    }
    Ok(None)
}

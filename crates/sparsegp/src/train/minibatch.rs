//! One minibatch: its bound as Adam sees it, and the natural-gradient step of q.

use crate::data::{Minibatch, Source};
use crate::engine::{Engine, Want};
use crate::error::Result;
use crate::methods::{Diagnostics, Following, Step, Uncollapsed};
use crate::model::Model;
use crate::optim::Objective;
use crate::variational::Variational;

/// Memory that is kept from iteration to iteration.
#[derive(Default)]
pub(super) struct Workspace {
    /// The last pass.
    pub(super) step: Step,
    /// What the numerics had to do in it, if it succeeded.
    pub(super) passed: Option<Diagnostics>,
    /// The last pass that looked whether q had moved too far.
    probe: Step,
    /// Slopes of all constrained parameters.
    slopes: Vec<f64>,
    /// q before it moved.
    before: Option<Variational>,
}

/// The bound of one minibatch, negated, as Adam sees it.
pub(super) struct OneBatch<'a> {
    pub(super) model: &'a mut Model,
    pub(super) method: &'a Uncollapsed,
    pub(super) engine: &'a dyn Engine,
    pub(super) batch: &'a Minibatch,
    pub(super) memory: &'a mut Workspace,
    pub(super) following: Following,
    pub(super) failures: usize,
}

impl Objective for OneBatch<'_> {
    fn dim(&self) -> usize {
        self.model.free_count()
    }

    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> Result<f64> {
        self.model.set_free_values(x);
        // what Adam does not move is moved by natural-gradient steps, if at all
        let want = Want::Adjoints { statistics: self.model.q.as_ref().is_none_or(|q| q.stays()) };
        let step = &mut self.memory.step;
        let how = &self.following;
        let pass = self.method.follow(step, self.model, self.engine, self.batch, want, how);
        self.memory.passed = pass.is_ok().then_some(self.memory.step.diagnostics);
        pass.inspect_err(|e| self.failures += usize::from(e.is_recoverable()))?;
        let Workspace { step, slopes, .. } = &mut *self.memory;
        slopes.resize(self.model.num_params(), 0.0);
        step.gradient(self.model, slopes);
        let value = step.value + self.model.free_gradient(slopes, gradient);
        gradient.iter_mut().for_each(|slope| *slope = -*slope);
        Ok(-value)
    }
}

/// Halvings of a natural-gradient step before it is given up.
pub(super) const HALVINGS: usize = 20;

/// Moves q by a natural-gradient step from what the last pass saw. Returns how often the rate was
/// halved; `None` if no step was possible.
pub(super) fn move_q(
    model: &mut Model,
    method: &Uncollapsed,
    engine: &dyn Engine,
    data: &dyn Source,
    memory: &mut Workspace,
    mut rate: f64,
) -> Result<Option<usize>> {
    let Workspace { step, probe, before, .. } = memory;
    let certain = method.bound.never_falls(&*model.likelihood);
    let turns = method.bound.turns(&*model.likelihood);
    if !certain && let Some(q) = &model.q {
        before.get_or_insert_with(|| q.clone()).copy_from(q);
    }
    for halvings in 0..=HALVINGS {
        let moved = (0..turns).try_for_each(|turn| {
            if turn > 0 {
                method.renew(step, model, engine, data, Want::Statistics)?;
            }
            step.natural_turn(model, method.bound, turn, &|_| rate)
        });
        match moved {
            Ok(()) if certain => return Ok(Some(halvings)),
            Ok(()) => {
                match method.renew(probe, model, engine, data, Want::Value) {
                    Ok(()) if probe.value >= step.value - 1e-10 * step.value.abs() => {
                        return Ok(Some(halvings));
                    }
                    Ok(()) => {}
                    Err(error) if error.is_recoverable() => {}
                    Err(error) => return Err(error),
                }
                if let (Some(q), Some(before)) = (&mut model.q, &*before) {
                    q.copy_from(before);
                }
            }
            Err(error) if error.is_recoverable() => {}
            Err(error) => return Err(error),
        }
        rate *= 0.5;
    }
    Ok(None)
}

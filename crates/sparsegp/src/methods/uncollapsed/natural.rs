//! Natural-gradient steps of q from a pass with statistics.

use super::forms::{self, Stepping};
use super::prepared::statistics;
use super::step::{Step, moves};
use super::variational;
use crate::bounds::Bound;
use crate::error::{Error, Result};
use crate::linalg::column;
use crate::model::Model;
#[cfg(doc)]
use crate::variational::NaturalStep;
use std::sync::PoisonError;

impl Step {
    /// Moves sites so that the latent functions of a target have an average of 0, where only their differences matter
    /// ([`crate::likelihoods::Likelihood::shift_invariant`]) and they share their kernel: the likelihood's part of the bound stays, and
    /// KL(q‖p) is least so (derived in [`SiteWork::centre`](crate::variational::sites::SiteWork::centre)). Natural-gradient steps of each function by its own curvature come there but slowly.
    /// The pass is one at the moved sites afterwards.
    pub fn centre(&mut self, model: &mut Model) {
        let each = model.likelihood.latents();
        let ([own], None, true) =
            (&mut self.processes[..], &self.chosen, model.likelihood.shift_invariant())
        else {
            return;
        };
        let Some(q) = &mut model.q else { return };
        let seen = self.seen.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.value += forms::of(q).centre(own, q, seen, each);
    }

    /// Returns the natural gradient of every latent function that moves, with its index, of M + M²
    /// numbers ([`NaturalStep::gradient`]). Empty after a pass without statistics.
    pub fn natural_gradients(&mut self) -> Vec<(usize, Vec<f64>)> {
        let Self { processes, passed, natural, chosen, .. } = self;
        let mut all = Vec::new();
        let pairs = processes.iter().zip(&passed.processes);
        for (own, sums) in pairs.filter(|(_, sums)| !sums.grams.is_empty()) {
            for (at, l) in own.latents.clone().enumerate().filter(|(_, l)| moves(chosen, *l)) {
                let rows = statistics(sums);
                all.push((l, natural.gradient(&own.parts, rows, at)));
            }
        }
        all
    }

    /// Does [`Step::natural`] for the latent functions of one turn ([`Bound::turns`]) only, each
    /// with its size.
    ///
    /// # Errors
    /// As for [`Step::natural`].
    pub fn natural_turn(
        &mut self,
        model: &mut Model,
        bound: &dyn Bound,
        turn: usize,
        rate: &dyn Fn(usize) -> f64,
    ) -> Result<()> {
        let each = model.likelihood.latents();
        if bound.turns(&*model.likelihood) == 1 {
            return self.natural_each(model, rate);
        }
        let before = model.q.clone();
        self.natural_each(model, rate)?;
        if let (Some(q), Some(before)) = (&mut model.q, before) {
            let stays = (0..q.latents())
                .filter(|l| bound.turn(&*model.likelihood, l % each) != turn)
                .collect::<Vec<_>>();
            q.copy_latents(&before, &stays);
        }
        Ok(())
    }

    /// Moves the model's q by a natural-gradient step of size `rate` from what this pass saw.
    ///
    /// # Errors
    /// As for [`NaturalStep::make`]; [`Error::Invalid`] for diagonal covariances and
    /// pseudo-observations. The model is unchanged then.
    pub fn natural(&mut self, model: &mut Model, rate: f64) -> Result<()> {
        self.natural_each(model, &|_| rate)
    }

    /// Does the same with a size for every latent function; sites take the first.
    ///
    /// # Errors
    /// As for [`Step::natural`].
    pub fn natural_each(&mut self, model: &mut Model, rate: &dyn Fn(usize) -> f64) -> Result<()> {
        let form = forms::of(variational(model)?);
        form.check_steps()?;
        let Self { processes, passed, natural, seen, clipped, chosen, .. } = self;
        let rate = |l: usize| if moves(chosen, l) { rate(l) } else { 0.0 };
        let without = passed.processes.iter().any(|sums| sums.grams.is_empty());
        if passed.processes.len() != processes.len() || without {
            return Err(Error::Invalid("a step needs a pass with statistics".into()));
        }
        for (own, sums) in processes.iter_mut().zip(&passed.processes) {
            let rows = statistics(sums);
            // precisions stay precisions: there is no step too long
            let means = if form.clips() && *clipped {
                &sums.phi_a
            } else {
                let first = own.latents.start;
                natural.make(&own.parts, rows, |l| rate(first + l), &mut own.moved)?;
                &own.moved.mean
            };
            let mut all = (0..means.ncols()).flat_map(|l| column(means.as_ref(), l));
            if let Some(value) = all.find(|v| !v.is_finite()) {
                return Err(Error::NonFinite { what: "the new mean of q".into(), value: *value });
            }
        }
        let Some(q) = &mut model.q else { return variational(model).map(|_| ()) };
        let seen = seen.get_mut().unwrap_or_else(PoisonError::into_inner);
        form.step(q, Stepping { processes, sums: &passed.processes, seen, rate: rate(0) })
    }
}

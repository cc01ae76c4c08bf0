//! Steps of q by minibatches whose rate follows the noise of the natural gradients (Wenzel et al. 2019;
//! Ranganath et al. 2013), and the stop that goes with them.

use super::minibatch::Workspace;
use super::{AdaptiveRate, RelativeChange};
use crate::data::Source;
use crate::engine::{Engine, Want};
use crate::error::Result;
use crate::methods::Uncollapsed;
use crate::model::Model;
use crate::variational::Variational;
use serde::{Deserialize, Serialize};

/// Minibatches at the initial parameters that the means of the gradients start from (Ranganath et al. 2013;
/// the number is that of Wenzel et al. 2019).
const INITIAL: usize = 50;

/// One rate for each latent function, and how much q still changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Adapting {
    rates: Vec<AdaptiveRate>,
    change: RelativeChange,
    /// Minibatches looked at before the first step.
    initial: usize,
    /// How many that is to be.
    wanted: Option<usize>,
    /// Steps made.
    #[serde(default)]
    steps: usize,
}

impl Adapting {
    /// Returns whether the next minibatch is only looked at: nothing moves. `per_epoch` is how many
    /// there are of its size, of which the first call counts (the last minibatch of an epoch may be
    /// smaller).
    pub(super) fn looks_first(&mut self, per_epoch: usize) -> bool {
        self.initial < *self.wanted.get_or_insert(INITIAL.min(per_epoch))
    }

    /// Returns whether q has stopped changing.
    pub(super) fn settled(&self) -> bool {
        self.change.converged()
    }

    fn each(&mut self, model: &Model) -> &mut [AdaptiveRate] {
        let latents = model.q.as_ref().map_or(0, Variational::latents);
        self.rates.resize_with(latents, AdaptiveRate::default);
        &mut self.rates
    }

    /// Looks at the gradient of a minibatch at the initial parameters. Returns the bound there.
    pub(super) fn look(
        &mut self,
        model: &Model,
        method: &Uncollapsed,
        engine: &dyn Engine,
        batch: &dyn Source,
        memory: &mut Workspace,
    ) -> Result<f64> {
        method.renew(&mut memory.step, model, engine, batch, Want::Statistics)?;
        let rates = self.each(model);
        for (l, gradient) in memory.step.natural_gradients() {
            rates[l].initialise(gradient)?;
        }
        self.initial += 1;
        Ok(memory.step.value)
    }

    /// Moves q from what the last pass saw, in the bound's turns. Its changes are looked at every `round` steps.
    pub(super) fn step(
        &mut self,
        model: &mut Model,
        method: &Uncollapsed,
        engine: &dyn Engine,
        batch: &dyn Source,
        memory: &mut Workspace,
        round: usize,
    ) -> Result<()> {
        let each = model.likelihood.latents();
        for turn in 0..method.bound.turns(&*model.likelihood) {
            if turn > 0 {
                method.renew(&mut memory.step, model, engine, batch, Want::Statistics)?;
            }
            let rates = self.each(model);
            let mut sizes = vec![0.0; rates.len()];
            for (l, gradient) in memory.step.natural_gradients() {
                if method.bound.turn(&*model.likelihood, l % each) == turn {
                    sizes[l] = rates[l].update(gradient)?;
                }
            }
            memory.step.natural_turn(model, method.bound, turn, &|l| sizes[l])?;
        }
        // where some classes move at a time, once in a round of as many steps as move all on average
        self.steps += 1;
        if self.steps.is_multiple_of(round)
            && let Some(q) = &model.q
        {
            self.change.update(q.means_and_variances())?;
        }
        Ok(())
    }
}

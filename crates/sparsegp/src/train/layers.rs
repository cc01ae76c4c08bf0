//! Training of layers by minibatches ([`crate::deep`]; Salimbeni & Deisenroth 2017).

use super::epochs::{self, Learner, Surroundings, TrainingState};
use super::held_out::set_all_values;
use super::{Observer, PaceState, StochasticOptions, TrainReport};
use crate::data::{Batches, Minibatch};
use crate::deep::{Deep, StepOptions, Steps};
use crate::error::{Error, Result};
use crate::methods::Method;
use crate::model::{Model, Posterior};
use crate::optim::{Adam, Optimiser, Status};

/// Trains all parameters of layers that are not frozen by minibatches. `options` say how steps are
/// made, `training` how many epochs there are (`epochs`, `least`), its `patience` and the seconds
/// between checkpoints; its other fields have no effect. `method` is that of the model which the layers
/// are in checkpoints and for held-out rows. Layers that are not such a model, or of which none can
/// predict ([`Model::of_deep`], [`Posterior::of_q`]), have neither.
///
/// A step whose bound is not finite, or for which some matrix is not positive definite, is halved
/// until it is; where that does not help the training ends at the last point that had one, and says
/// so.
///
/// # Errors
/// [`Error::Invalid`] for options that are not possible and for a state of another model,
/// [`Error::Shape`] for rows that do not fit; a recoverable error only where the start itself has no
/// finite bound; those of the checkpointer. [`Error::Interrupted`] if nothing was done before the
/// interruption.
pub fn train_layers(
    layers: &mut Deep,
    method: &'static dyn Method,
    batches: &mut dyn Batches,
    (options, training): (&StepOptions, &StochasticOptions),
    surroundings: Surroundings<'_>,
    observer: &mut dyn Observer,
) -> Result<TrainReport> {
    let per_epoch = batches.per_epoch();
    let planned = training.epochs(per_epoch).saturating_mul(per_epoch);
    let mut steps = Steps::new(layers, options, planned)?;
    let of_another = |state: &TrainingState| state.adam.x().len() != steps.count();
    let outcome = if surroundings.resume.as_ref().is_some_and(of_another) {
        Err(Error::Invalid("the training to resume is of another model".into()))
    } else {
        let model = Model::of_deep(steps.layers(), method);
        let known = model.and_then(|model| Posterior::of_q(&model));
        let shown = known.map_or_else(|error| error.is_recoverable(), |_| true);
        let mut learner = Layers { steps: &mut steps, method, shown };
        epochs::run(&mut learner, batches, training, surroundings, observer)
    };
    steps.release();
    outcome
}

struct Layers<'a, 'b> {
    steps: &'a mut Steps<'b>,
    method: &'static dyn Method,
    /// Whether they are a model that can predict.
    shown: bool,
}

impl Learner for Layers<'_, '_> {
    fn start(&self) -> (Adam, PaceState) {
        (self.steps.adam(), PaceState::default())
    }

    fn iterate(&mut self, batch: &Minibatch, state: &mut TrainingState) -> Result<Option<f64>> {
        let (value, failures) = self.steps.step(state.iterations, batch, &mut state.adam)?;
        state.failures += failures;
        if let Status::Stalled(_) = state.adam.status() {
            return Ok(None);
        }
        state.iterations += 1;
        Ok(Some(value))
    }

    fn show(&mut self, _: &TrainingState, see: &mut dyn FnMut(&Model) -> Result<()>) -> Result<()> {
        if !self.shown {
            return Ok(());
        }
        see(&Model::of_deep(self.steps.layers(), self.method)?)
    }

    fn end(
        &mut self,
        state: &mut TrainingState,
        last: Option<&Minibatch>,
    ) -> Result<Option<String>> {
        let back = self.steps.end(&state.adam, last)?;
        state.failures += usize::from(back);
        Ok(back.then(|| "the last move had no finite bound".into()))
    }

    fn finish(&mut self, best: Option<&[f64]>) -> Result<()> {
        let Some(values) = best else { return Ok(()) };
        let layers = self.steps.layers();
        let bound = layers.bound;
        let mut model = Model::of_deep(layers, self.method)?;
        set_all_values(&mut model, values)?;
        self.steps.replace(model.to_deep(bound)?);
        Ok(())
    }
}

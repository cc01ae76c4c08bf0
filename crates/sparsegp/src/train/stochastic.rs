//! Training by minibatches: Adam on the hyperparameters, and on q by Adam or natural gradients.
//!
//! One iteration draws a minibatch, passes over it once at the present parameters, moves q by a
//! natural-gradient step (or by Adam) and the rest by Adam: both from the same pass. A natural step
//! is tried with its full rate and, where the likelihood is not Gaussian noise, kept only if the
//! bound of this minibatch did not fall: else the rate is halved, up to twenty times.

use super::epochs::{self, Learner, Surroundings, TrainingState};
use super::held_out::set_all_values;
use super::minibatch::{OneBatch, Workspace, move_q};
use super::{Observer, PaceState, StochasticOptions, TrainReport, ascent::settle, classes};
use crate::data::{Batches, Minibatch, Source};
use crate::engine::{Engine, Want};
use crate::error::{Error, Result};
use crate::methods::{Following, Keeps, Uncollapsed};
use crate::model::Model;
use crate::optim::{Adam, Objective, Optimiser};
use crate::variational::{Tying, Variational};

/// Trains a model whose method is uncollapsed ([`crate::methods::Method::with_q`]) by minibatches.
/// The model is left at the last parameters, or at the best ones for held-out rows.
///
/// # Errors
/// [`Error::Invalid`] for another method; errors that are not recoverable, and those of the
/// checkpointer. [`Error::Interrupted`] if nothing was done before the interruption.
pub fn train_batches(
    model: &mut Model,
    engine: &dyn Engine,
    batches: &mut dyn Batches,
    options: &StochasticOptions,
    surroundings: Surroundings<'_>,
    observer: &mut dyn Observer,
) -> Result<TrainReport> {
    let method = Uncollapsed::of(model.method).map_err(|_| {
        Error::Invalid(format!(
            "method `{}` sees all rows at once; for minibatches use `svgp`",
            model.method.name()
        ))
    })?;
    let sites = model.q.as_ref().is_some_and(|q| q.tying().is_some());
    if sites && options.natural.is_none() {
        return Err(Error::Invalid(
            "sites move by natural-gradient steps, and these were switched off".into(),
        ));
    }
    let moves = |q: &Variational| q.tying().is_some() || !q.first.frozen;
    let natural =
        options.natural.filter(|_| method.steps_naturally() && model.q.as_ref().is_some_and(moves));
    if model.q.as_ref().is_some_and(|q| q.tying() == Some(Tying::Untied)) {
        return Err(Error::Invalid(
            "untied sites are trained on all rows at once: without minibatches, or another tying"
                .into(),
        ));
    }
    options.following.solver.check()?;
    classes::check(model, &method, options, natural)?;
    let frozen = model.q.as_ref().map(|q| (q.first.frozen, q.second.frozen));
    // what natural gradients move is not for Adam
    if natural.is_some() {
        freeze(model, Some((true, true)));
    }
    let per_epoch = batches.per_epoch();
    let iterations = options.epochs(per_epoch) * per_epoch;
    let memory = Workspace::default();
    let mut run =
        Run { model, method: &method, natural, frozen, options, engine, iterations, memory };
    let outcome = epochs::run(&mut run, batches, options, surroundings, observer);
    freeze(model, frozen);
    outcome
}

/// Refuses options that [`train_batches`] would refuse for a model that has no q yet, before it takes
/// the time that a start takes.
///
/// # Errors
/// [`Error::Invalid`].
pub(crate) fn check_batches(model: &Model, options: &StochasticOptions) -> Result<()> {
    let Ok(method) = Uncollapsed::of(model.method) else { return Ok(()) };
    options.following.solver.check()?;
    let natural = options.natural.filter(|_| method.steps_naturally());
    classes::check(model, &method, options, natural)
}

/// Freezes mean and covariances of q, or frees them.
fn freeze(model: &mut Model, to: Option<(bool, bool)>) {
    if let (Some(q), Some((mu, sqrt))) = (&mut model.q, to) {
        (q.first.frozen, q.second.frozen) = (mu, sqrt);
    }
}

/// A model with a q in training.
struct Run<'a> {
    model: &'a mut Model,
    method: &'a Uncollapsed,
    natural: Option<f64>,
    /// Whether mean and covariances of q were frozen before the training.
    frozen: Option<(bool, bool)>,
    options: &'a StochasticOptions,
    engine: &'a dyn Engine,
    /// Planned ones.
    iterations: usize,
    memory: Workspace,
}

impl Learner for Run<'_> {
    fn start(&self) -> (Adam, PaceState) {
        let mut adam = self.options.adam(self.model, self.iterations);
        let free = self.model.free_values();
        let pace = self.options.pace.start(self.model, &mut adam, free.len());
        (Adam::new(free, adam), pace)
    }

    fn iterate(&mut self, batch: &Minibatch, state: &mut TrainingState) -> Result<Option<f64>> {
        let m_steps = self.options.m_steps();
        let Adam { options, progress, .. } = &state.adam;
        let factor = options.schedule.factor_within(state.iterations * m_steps, progress);
        self.memory.step.choose(
            self.options
                .classes_per_step
                .map(|count| classes::draw(self.model, count, self.options.seed, state.iterations)),
        );
        state.iterations += 1;
        let adaptive = self.options.adaptive.unwrap_or(self.method.bound.augments());
        if adaptive && self.natural.is_some() && self.method.keeps == Keeps::Moments {
            return self.adapt(batch, state).map(Some);
        }
        let natural = self.natural.map(|rate| rate * factor);
        let (Some(rate), Some((e_steps, _))) = (natural, self.options.em) else {
            let mut value = f64::NAN;
            for _ in 0..m_steps {
                value = self.ascend(batch, state)?;
            }
            if let (Some(rate), Some(_)) = (natural, self.memory.passed) {
                self.move_q(batch, state, rate)?;
            }
            return Ok(Some(value));
        };
        let mut value = f64::NAN;
        for _ in 0..e_steps {
            let want = Want::Statistics;
            match self.method.renew(&mut self.memory.step, self.model, self.engine, batch, want) {
                // Adam's evaluation fails too, and steps back
                Err(error) if error.is_recoverable() => break,
                outcome => outcome?,
            }
            value = self.memory.step.value;
            self.move_q(batch, state, rate)?;
        }
        for _ in 0..m_steps {
            value = self.ascend(batch, state)?;
            self.model.set_free_values(state.adam.x());
        }
        Ok(Some(value))
    }

    fn prepare(&mut self, state: &TrainingState) -> Result<()> {
        self.model.set_free_values(state.adam.x());
        if self.method.follows(self.model) {
            self.method.settle(self.model, &self.options.following.solver)?;
        }
        Ok(())
    }

    fn show(
        &mut self,
        state: &TrainingState,
        see: &mut dyn FnMut(&Model) -> Result<()>,
    ) -> Result<()> {
        self.model.set_free_values(state.adam.x());
        let meanwhile = self.model.q.as_ref().map(|q| (q.first.frozen, q.second.frozen));
        freeze(self.model, self.frozen);
        let outcome = see(self.model);
        freeze(self.model, meanwhile);
        outcome
    }

    fn end(&mut self, state: &mut TrainingState, _: Option<&Minibatch>) -> Result<Option<String>> {
        self.model.set_free_values(state.adam.x());
        Ok(None)
    }

    fn finish(&mut self, best: Option<&[f64]>) -> Result<()> {
        if let Some(values) = best {
            set_all_values(self.model, values)?;
        }
        settle(self.model)
    }
}

impl Run<'_> {
    /// Trains on one minibatch with a rate that adapts. Returns the bound before q moved.
    fn adapt(&mut self, batch: &Minibatch, state: &mut TrainingState) -> Result<f64> {
        let (method, engine) = (self.method, self.engine);
        let per_epoch = batch.population().div_ceil(batch.rows().max(1));
        if state.adapting.looks_first(per_epoch) {
            // every latent function needs a start of its rate
            self.memory.step.choose(None);
            return state.adapting.look(self.model, method, engine, batch, &mut self.memory);
        }
        let mut value = f64::NAN;
        for _ in 0..self.options.m_steps() {
            value = self.ascend(batch, state)?;
        }
        let Self { model, memory, .. } = self;
        if memory.passed.is_some() {
            let round = classes::round(model, self.options);
            state.adapting.step(model, method, engine, batch, memory, round)?;
        }
        Ok(value)
    }

    /// Makes a step of q from the last pass.
    fn move_q(&mut self, batch: &Minibatch, state: &mut TrainingState, rate: f64) -> Result<()> {
        let Self { model, method, engine, memory, .. } = self;
        let halvings = move_q(model, method, *engine, batch, memory, rate)?;
        state.shortened += usize::from(halvings != Some(0));
        Ok(())
    }

    /// Makes a pass with gradients and a step of Adam. Returns the bound of the pass.
    fn ascend(&mut self, batch: &Minibatch, state: &mut TrainingState) -> Result<f64> {
        let Self { model, method, engine, memory, options, .. } = self;
        let (method, engine, options) = (*method, *engine, *options);
        memory.passed = None;
        let iteration = state.iterations.saturating_sub(1);
        options.pace.apply(&state.pace, &mut state.adam.options, iteration);
        let following =
            Following { evaluation: state.adam.evaluations() as u64, ..options.following };
        let mut objective =
            OneBatch { model, method, engine, batch, memory, following, failures: 0 };
        let mut value = state.adam.step(&mut objective)?.value;
        if objective.memory.passed.is_none() && objective.failures == 0 {
            // without hyperparameters to train Adam has converged and does not look; q has not
            let x = state.adam.x().to_vec();
            value = objective.evaluate(&x, &mut vec![0.0; x.len()])?;
        }
        state.failures += objective.failures;
        if let Some(diagnostics) = memory.passed {
            state.diagnostics = diagnostics;
        }
        options.pace.see(&mut state.pace, -value, iteration);
        Ok(-value)
    }
}

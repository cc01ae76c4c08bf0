//! Training by minibatches: Adam on the hyperparameters, and on q by Adam or natural gradients.
//!
//! One iteration draws a minibatch, passes over it once at the present parameters, moves q by a
//! natural-gradient step (or by Adam) and the rest by Adam: both from the same pass. A natural step
//! is tried with its full rate and, where the likelihood is not Gaussian noise, kept only if the
//! bound of this minibatch did not fall: else the rate is halved, up to twenty times.

use super::classes;
use super::held_out::{Best, density, judge, set_all_values};
use super::minibatch::{OneBatch, Workspace, move_q};
use super::{
    Adapting, Event, Observer, PaceState, StochasticOptions, TracePoint, TrainReport,
    ascent::settle,
};
use crate::data::{Batches, Minibatch, Position, Source};
use crate::engine::{Engine, Want};
use crate::error::{Error, Result};
use crate::methods::{Diagnostics, Following, Keeps, Uncollapsed};
use crate::model::Model;
use crate::model::hyperparameters;
use crate::optim::{Adam, Objective, Optimiser, Progress, Reason, Status};
use crate::variational::{Tying, Variational};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Everything that training needs to go on beside the model: what a checkpoint holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainingState {
    /// What the training was asked to be ([`Surroundings::settings`]).
    pub settings: Vec<(String, String)>,
    /// The batch that comes next.
    pub position: Position,
    /// Adam with its moments.
    pub adam: Adam,
    /// Sum of the bound's estimates of this epoch, weighted by rows, and rows.
    pub epoch: (f64, f64),
    /// Steps of q that failed or were shortened.
    pub shortened: usize,
    /// Evaluations that failed.
    pub failures: usize,
    /// Iterations done.
    pub iterations: usize,
    /// Seconds spent, earlier runs included.
    pub seconds: f64,
    /// One point per epoch.
    pub trace: Vec<TracePoint>,
    /// What was best for held-out rows.
    pub best: Option<Best>,
    /// What the numerics had to do.
    pub diagnostics: Diagnostics,
    /// Rates of inducing points, and on plateaus.
    pub pace: PaceState,
    /// Rates of q, where they adapt.
    pub adapting: Adapting,
}

/// Takes a checkpoint of a model in training.
pub type Checkpointer<'a> = &'a mut dyn FnMut(&Model, &TrainingState) -> Result<()>;

/// What training by minibatches meets beside the model and the batches.
#[derive(Default)]
pub struct Surroundings<'a> {
    /// What the training was asked to be, by names: kept in its state, so that nobody goes on with a
    /// state of another one.
    pub settings: Vec<(String, String)>,
    /// Rows whose density decides when to stop.
    pub held_out: Option<&'a dyn Source>,
    /// A state to go on from, for the model that was saved with it.
    pub resume: Option<TrainingState>,
    /// Called now and then, and at the end of the training.
    pub checkpoint: Option<Checkpointer<'a>>,
}

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
    let frozen = model.q.as_ref().map(|q| (q.first.frozen, q.second.frozen));
    // what natural gradients move is not for Adam
    if natural.is_some() {
        freeze(model, Some((true, true)));
    }
    if model.q.as_ref().is_some_and(|q| q.tying() == Some(Tying::Untied)) {
        return Err(Error::Invalid(
            "untied sites are trained on all rows at once: without minibatches, or another tying"
                .into(),
        ));
    }
    options.following.solver.check()?;
    classes::check(model, &method, options, natural)?;
    let mut run = Run { method: &method, natural, frozen, options, engine };
    let outcome = run.go(model, batches, surroundings, observer);
    freeze(model, frozen);
    outcome
}

/// Freezes mean and covariances of q, or frees them.
fn freeze(model: &mut Model, to: Option<(bool, bool)>) {
    if let (Some(q), Some((mu, sqrt))) = (&mut model.q, to) {
        (q.first.frozen, q.second.frozen) = (mu, sqrt);
    }
}

struct Run<'a> {
    method: &'a Uncollapsed,
    natural: Option<f64>,
    /// Whether mean and covariances of q were frozen before the training.
    frozen: Option<(bool, bool)>,
    options: &'a StochasticOptions,
    engine: &'a dyn Engine,
}

impl Run<'_> {
    /// Takes a checkpoint of the model as it would be if the training ended here.
    fn keep(
        &self,
        model: &mut Model,
        state: &TrainingState,
        checkpoint: &mut Checkpointer<'_>,
    ) -> Result<()> {
        model.set_free_values(state.adam.x());
        let meanwhile = model.q.as_ref().map(|q| (q.first.frozen, q.second.frozen));
        freeze(model, self.frozen);
        let outcome = checkpoint(model, state);
        freeze(model, meanwhile);
        outcome
    }

    fn start(
        &self,
        model: &Model,
        iterations: usize,
        settings: Vec<(String, String)>,
    ) -> TrainingState {
        let mut adam = self.options.adam(model, iterations);
        let free = model.free_values();
        let pace = self.options.pace.start(model, &mut adam, free.len());
        TrainingState {
            settings,
            position: Position::default(),
            pace,
            adapting: Adapting::default(),
            adam: Adam::new(free, adam),
            epoch: (0.0, 0.0),
            shortened: 0,
            failures: 0,
            iterations: 0,
            seconds: 0.0,
            trace: Vec::new(),
            best: None,
            diagnostics: Diagnostics::default(),
        }
    }

    fn go(
        &mut self,
        model: &mut Model,
        batches: &mut dyn Batches,
        mut surroundings: Surroundings<'_>,
        observer: &mut dyn Observer,
    ) -> Result<TrainReport> {
        let epochs = self.options.epochs(batches.per_epoch());
        let mut state = match surroundings.resume.take() {
            Some(state) => {
                batches.seek(state.position)?;
                state
            }
            None => {
                let settings = std::mem::take(&mut surroundings.settings);
                self.start(model, epochs * batches.per_epoch(), settings)
            }
        };
        // a time limit is of this run, whatever another one had used
        state.adam.progress = Progress::default();
        let (clock, earlier) = (Instant::now(), state.seconds);
        let (mut batch, mut memory) = (Minibatch::default(), Workspace::default());
        let mut saved = Instant::now();
        let stopped = loop {
            if state.position.epoch as usize >= epochs {
                break format!("all {epochs} epochs done");
            }
            if observer.interrupted() {
                if state.iterations == 0 {
                    return Err(Error::Interrupted);
                }
                break "interrupted; what was learnt so far is kept".into();
            }
            state.adam.progress.see(observer.time_used());
            batches.next(&mut batch)?;
            let value = self.iterate(model, &batch, &mut memory, &mut state)?;
            let rows = batch.rows.rows() as f64;
            state.epoch.0 += value * rows;
            state.epoch.1 += rows;
            state.seconds = earlier + clock.elapsed().as_secs_f64();
            let at = state.position;
            state.position = batches.position();
            let event = Event::Batch {
                epoch: at.epoch as usize,
                batch: at.batch,
                per_epoch: batches.per_epoch(),
                epochs: self.options.epochs(batches.per_epoch()),
                objective: state.epoch.0 / state.epoch.1,
                seconds: state.seconds,
            };
            let mut flow = observer.event(event);
            if state.position.epoch > at.epoch {
                model.set_free_values(state.adam.x());
                if let Some(stop) = self.end_of_epoch(model, &mut state, surroundings.held_out)? {
                    break stop;
                }
                if let Some(point) = state.trace.last()
                    && observer.event(Event::Iteration(point)).is_break()
                {
                    flow = std::ops::ControlFlow::Break(());
                }
            }
            match state.adam.status() {
                Status::Running => {}
                Status::Converged(Reason::Gradient { .. } | Reason::NoParameters) => {
                    // a minibatch may say nothing of the hyperparameters, and q moves all the same
                    state.adam.restart();
                }
                status => break status.to_string(),
            }
            if state.adapting.settled() {
                break "converged: q no longer changes".into();
            }
            if flow.is_break() {
                break "stopped early; what was learnt so far is kept".into();
            }
            if let Some(checkpoint) = &mut surroundings.checkpoint
                && saved.elapsed().as_secs_f64() >= self.options.checkpoint_seconds
            {
                self.keep(model, &state, checkpoint)?;
                saved = Instant::now();
            }
        };
        model.set_free_values(state.adam.x());
        if let Some(checkpoint) = &mut surroundings.checkpoint {
            self.keep(model, &state, checkpoint)?;
        }
        if let Some((_, _, values)) = &state.best {
            set_all_values(model, values)?;
        }
        // what is left is to be as good as its parameters allow
        settle(model)?;
        let last = state.trace.last().map(|point| point.objective);
        let so_far = (state.epoch.1 > 0.0).then(|| state.epoch.0 / state.epoch.1);
        Ok(TrainReport {
            stopped,
            converged: state.adapting.settled(),
            iterations: state.iterations,
            evaluations: state.adam.evaluations(),
            failures: state.failures,
            objective: last.or(so_far).unwrap_or(f64::NAN),
            seconds: state.seconds,
            diagnostics: state.diagnostics,
            trace: state.trace,
            mixing: None,
            starts: Vec::new(),
            judged: Vec::new(),
        })
    }

    /// One minibatch. Returns the bound at the parameters of the last pass over it.
    fn iterate(
        &self,
        model: &mut Model,
        batch: &Minibatch,
        memory: &mut Workspace,
        state: &mut TrainingState,
    ) -> Result<f64> {
        let m_steps = self.options.m_steps();
        let Adam { options, progress, .. } = &state.adam;
        let factor = options.schedule.factor_within(state.iterations * m_steps, progress);
        memory.step.choose(
            self.options
                .classes_per_step
                .map(|count| classes::draw(model, count, self.options.seed, state.iterations)),
        );
        state.iterations += 1;
        let adaptive = self.options.adaptive.unwrap_or(self.method.bound.augments());
        if adaptive && self.natural.is_some() && self.method.keeps == Keeps::Moments {
            return self.adapt(model, batch, memory, state);
        }
        let natural = self.natural.map(|rate| rate * factor);
        let (Some(rate), Some((e_steps, _))) = (natural, self.options.em) else {
            let mut value = f64::NAN;
            for _ in 0..m_steps {
                value = self.ascend(model, batch, memory, state)?;
            }
            if let (Some(rate), Some(_)) = (natural, memory.passed) {
                self.move_q(model, batch, memory, state, rate)?;
            }
            return Ok(value);
        };
        let mut value = f64::NAN;
        for _ in 0..e_steps {
            let want = Want::Statistics;
            match self.method.renew(&mut memory.step, model, self.engine, batch, want) {
                // Adam's evaluation fails too, and steps back
                Err(error) if error.is_recoverable() => break,
                outcome => outcome?,
            }
            value = memory.step.value;
            self.move_q(model, batch, memory, state, rate)?;
        }
        for _ in 0..m_steps {
            value = self.ascend(model, batch, memory, state)?;
            model.set_free_values(state.adam.x());
        }
        Ok(value)
    }

    /// One minibatch with a rate that adapts. Returns the bound before q moved.
    fn adapt(
        &self,
        model: &mut Model,
        batch: &Minibatch,
        memory: &mut Workspace,
        state: &mut TrainingState,
    ) -> Result<f64> {
        let (method, engine) = (self.method, self.engine);
        let per_epoch = batch.population().div_ceil(batch.rows().max(1));
        if state.adapting.looks_first(per_epoch) {
            // every latent function needs a start of its rate
            memory.step.choose(None);
            return state.adapting.look(model, method, engine, batch, memory);
        }
        let mut value = f64::NAN;
        for _ in 0..self.options.m_steps() {
            value = self.ascend(model, batch, memory, state)?;
        }
        if memory.passed.is_some() {
            let round = classes::round(model, self.options);
            state.adapting.step(model, method, engine, batch, memory, round)?;
        }
        Ok(value)
    }

    /// A step of q from the last pass.
    fn move_q(
        &self,
        model: &mut Model,
        batch: &Minibatch,
        memory: &mut Workspace,
        state: &mut TrainingState,
        rate: f64,
    ) -> Result<()> {
        let halvings = move_q(model, self.method, self.engine, batch, memory, rate)?;
        state.shortened += usize::from(halvings != Some(0));
        Ok(())
    }

    /// A pass with gradients and a step of Adam. Returns the bound of the pass.
    fn ascend(
        &self,
        model: &mut Model,
        batch: &Minibatch,
        memory: &mut Workspace,
        state: &mut TrainingState,
    ) -> Result<f64> {
        let (method, engine) = (self.method, self.engine);
        memory.passed = None;
        let iteration = state.iterations.saturating_sub(1);
        self.options.pace.apply(&state.pace, &mut state.adam.options, iteration);
        let following =
            Following { evaluation: state.adam.evaluations() as u64, ..self.options.following };
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
        self.options.pace.see(&mut state.pace, -value, iteration);
        Ok(-value)
    }

    /// Writes the trace and looks at the held-out rows; a reason to stop, if there is one.
    fn end_of_epoch(
        &self,
        model: &mut Model,
        state: &mut TrainingState,
        held_out: Option<&dyn Source>,
    ) -> Result<Option<String>> {
        let epoch = state.trace.len() + 1;
        let (sum, rows) = std::mem::take(&mut state.epoch);
        let largest = state
            .adam
            .gradient()
            .map_or(0.0, |gradient| gradient.iter().fold(0.0_f64, |m, g| m.max(g.abs())));
        let mut point = TracePoint {
            iteration: epoch,
            evaluations: state.adam.evaluations(),
            objective: sum / rows,
            gradient_norm: largest,
            seconds: state.seconds,
            parameters: hyperparameters(model),
            held_out: None,
        };
        let mut stop = None;
        if let Some(data) = held_out {
            if self.method.follows(model) {
                self.method.settle(model, &self.options.following.solver)?;
            }
            let now = density(model, data)?;
            point.held_out = Some(now);
            stop = judge(model, now, epoch, self.options.patience, &mut state.best);
        }
        state.trace.push(point);
        Ok(stop)
    }
}

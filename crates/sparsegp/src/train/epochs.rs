//! The driver of trainings by minibatches, of models with q and of layers: epochs, history, rows kept
//! aside, checkpoints and limits of time. What moves in an iteration is a [`Learner`]'s matter.

use super::held_out::{Best, all_values, density, judge};
use super::{
    Adapting, Event, Judged, Observer, PaceState, StochasticOptions, TracePoint, TrainReport,
};
use crate::data::{Batches, Minibatch, Position, Source};
use crate::error::{Error, Result};
use crate::methods::Diagnostics;
use crate::model::{Model, hyperparameters};
use crate::optim::{Adam, Optimiser, Progress, Reason, Status};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::time::Instant;

/// Everything that training needs to resume beside the model: what a checkpoint holds.
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
    /// The starting values that were judged before the first iteration.
    pub judged: Vec<Judged>,
}

impl TrainingState {
    fn of(adam: Adam, pace: PaceState, surroundings: &Surroundings<'_>) -> Self {
        Self {
            settings: surroundings.settings.clone(),
            judged: surroundings.judged.clone(),
            position: Position::default(),
            pace,
            adapting: Adapting::default(),
            adam,
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
}

/// Takes a checkpoint of a model in training.
pub type Checkpointer<'a> = &'a mut dyn FnMut(&Model, &TrainingState) -> Result<()>;

/// Evaluates the objective on all rows.
pub type Bound<'a> = &'a mut dyn FnMut(&Model) -> Result<f64>;

/// What training by minibatches meets beside the model and the batches.
#[derive(Default)]
pub struct Surroundings<'a> {
    /// What the training was asked to be, by names: kept in its state, so that nobody resumes with
    /// a state of another one.
    pub settings: Vec<(String, String)>,
    /// The starting values that were judged, the one that was taken first.
    pub judged: Vec<Judged>,
    /// Rows whose density decides when to stop.
    pub held_out: Option<&'a dyn Source>,
    /// A bound on all rows that decides instead: at the start, after 1, 2, 4, … epochs and at the end.
    pub bound: Option<Bound<'a>>,
    /// A state to resume from, for the model that was saved with it.
    pub resume: Option<TrainingState>,
    /// Called now and then, and at the end of the training.
    pub checkpoint: Option<Checkpointer<'a>>,
}

/// What is trained.
pub(super) trait Learner {
    /// Returns Adam and its rates before the first iteration.
    fn start(&self) -> (Adam, PaceState);
    /// Moves by a minibatch. Returns its bound at the parameters of the last pass over it; none if
    /// Adam has stalled and there was no step.
    ///
    /// # Errors
    /// Those that are not recoverable, and any at the start.
    fn iterate(&mut self, batch: &Minibatch, state: &mut TrainingState) -> Result<Option<f64>>;
    /// Prepares what is shown for a look at held-out rows.
    ///
    /// # Errors
    /// Those that are not recoverable.
    fn prepare(&mut self, _state: &TrainingState) -> Result<()> {
        Ok(())
    }
    /// Shows the model where Adam is, or at the point of the last step, whose bound is known to be
    /// finite; with what was frozen before the training. Nothing where it can be no model.
    ///
    /// # Errors
    /// Those of `see`.
    fn show(
        &mut self,
        state: &TrainingState,
        see: &mut dyn FnMut(&Model) -> Result<()>,
    ) -> Result<()>;
    /// Goes to where the training ends, with the last minibatch of this run if there was one.
    /// Returns why it is another place than Adam's.
    ///
    /// # Errors
    /// Those that are not recoverable.
    fn end(
        &mut self,
        state: &mut TrainingState,
        last: Option<&Minibatch>,
    ) -> Result<Option<String>>;
    /// Takes these values of all parameters, if given, and brings what follows from them up to date.
    ///
    /// # Errors
    /// Those that are not recoverable.
    fn finish(&mut self, best: Option<&[f64]>) -> Result<()>;
}

/// Trains by minibatches until the epochs are over, or somebody or something ends it before.
///
/// # Errors
/// Those of the learner, the batches and the checkpointer. [`Error::Interrupted`] if nothing was done
/// before the interruption.
pub(super) fn run(
    learner: &mut dyn Learner,
    batches: &mut dyn Batches,
    options: &StochasticOptions,
    mut surroundings: Surroundings<'_>,
    observer: &mut dyn Observer,
) -> Result<TrainReport> {
    let epochs = options.epochs(batches.per_epoch());
    let mut state = match surroundings.resume.take() {
        Some(state) => {
            batches.seek(state.position)?;
            state
        }
        None => {
            if batches.position() != Position::default() {
                batches.seek(Position::default())?;
            }
            let (adam, pace) = learner.start();
            TrainingState::of(adam, pace, &surroundings)
        }
    };
    // a time limit is of this run, whatever another one had used
    state.adam.progress = Progress::default();
    let mut run = Run {
        learner,
        batches,
        options,
        surroundings,
        observer,
        epochs,
        earlier: state.seconds,
        state,
        clock: Instant::now(),
        judged_at: None,
        batch: Minibatch::default(),
        seen: false,
        saved: Instant::now(),
    };
    if run.state.iterations == 0 {
        run.judge_bound()?;
    }
    let stopped = loop {
        if let Some(why) = run.iterate()? {
            break why;
        }
    };
    run.end(stopped)
}

/// A training under way.
struct Run<'a, 's> {
    learner: &'a mut dyn Learner,
    batches: &'a mut dyn Batches,
    options: &'a StochasticOptions,
    surroundings: Surroundings<'s>,
    observer: &'a mut dyn Observer,
    epochs: usize,
    state: TrainingState,
    clock: Instant,
    /// Seconds of earlier runs.
    earlier: f64,
    /// Iterations after which the bound on all rows was last looked at.
    judged_at: Option<usize>,
    batch: Minibatch,
    /// Whether that has been filled.
    seen: bool,
    /// When the last checkpoint was written.
    saved: Instant,
}

impl Run<'_, '_> {
    /// Makes an iteration, unless the training has ended before. Returns why it ends there.
    fn iterate(&mut self) -> Result<Option<String>> {
        let state = &mut self.state;
        if state.position.epoch as usize >= self.epochs {
            return Ok(Some(format!("all {} epochs done", self.epochs)));
        }
        if let Status::Stalled(_) = state.adam.status() {
            return Ok(Some(state.adam.status().to_string()));
        }
        if self.observer.interrupted() {
            return match state.iterations {
                0 => Err(Error::Interrupted),
                _ => Ok(Some("interrupted; what was learnt so far is kept".into())),
            };
        }
        state.adam.progress.see(self.observer.time_used());
        self.batches.next(&mut self.batch)?;
        self.seen = true;
        let Some(value) = self.learner.iterate(&self.batch, state)? else { return Ok(None) };
        let epoch = state.position.epoch;
        let mut flow = self.count(value);
        if self.state.position.epoch > epoch {
            if let Some(why) = self.end_of_epoch()? {
                return Ok(Some(why));
            }
            if let Some(point) = self.state.trace.last()
                && self.observer.event(Event::Iteration(point)).is_break()
            {
                flow = ControlFlow::Break(());
            }
        }
        if let Some(why) = self.settled() {
            return Ok(Some(why));
        }
        if flow.is_break() {
            return Ok(Some("stopped early; what was learnt so far is kept".into()));
        }
        if self.saved.elapsed().as_secs_f64() >= self.options.checkpoint_seconds {
            self.save()?;
        }
        Ok(None)
    }

    /// Counts a minibatch with the estimate of its bound, and shows it.
    fn count(&mut self, value: f64) -> ControlFlow<()> {
        let state = &mut self.state;
        let rows = self.batch.rows.rows() as f64;
        state.epoch.0 += value * rows;
        state.epoch.1 += rows;
        state.seconds = self.earlier + self.clock.elapsed().as_secs_f64();
        let at = state.position;
        state.position = self.batches.position();
        self.observer.event(Event::Batch {
            epoch: at.epoch as usize,
            batch: at.batch,
            per_epoch: self.batches.per_epoch(),
            epochs: self.epochs,
            objective: state.epoch.0 / state.epoch.1,
            seconds: state.seconds,
        })
    }

    /// Looks at held-out rows, and after 1, 2, 4, … epochs at the bound on all rows. Returns why the training should end.
    fn end_of_epoch(&mut self) -> Result<Option<String>> {
        let Self { learner, state, surroundings, options, .. } = self;
        let stop = end_of_epoch(&mut **learner, state, surroundings.held_out, options.patience)?;
        if stop.is_none() && self.state.trace.len().is_power_of_two() {
            return self.judge_bound();
        }
        Ok(stop)
    }

    /// Returns why neither Adam nor q moves any further, if that is so.
    fn settled(&mut self) -> Option<String> {
        let state = &mut self.state;
        match state.adam.status() {
            Status::Running => {}
            Status::Converged(Reason::Gradient { .. } | Reason::NoParameters) => {
                // a minibatch may say nothing of the hyperparameters, and q moves all the same
                state.adam.restart();
            }
            status => return Some(status.to_string()),
        }
        state.adapting.settled().then(|| "converged: q no longer changes".into())
    }

    /// Writes a checkpoint, if they are asked for.
    fn save(&mut self) -> Result<()> {
        let Self { learner, state, surroundings, .. } = self;
        if let Some(checkpoint) = &mut surroundings.checkpoint {
            learner.show(state, &mut |model| checkpoint(model, state))?;
            self.saved = Instant::now();
        }
        Ok(())
    }

    /// Looks at the bound on all rows, if there is one. Returns why the training should end.
    fn judge_bound(&mut self) -> Result<Option<String>> {
        let Self { learner, state, surroundings, judged_at, .. } = self;
        judge_bound(&mut **learner, state, &mut surroundings.bound, judged_at)
    }

    /// Goes to where the training ends, and reports.
    fn end(mut self, mut stopped: String) -> Result<TrainReport> {
        // a later run resumes from here: it is saved before the end changes anything
        self.save()?;
        if self.judged_at != Some(self.state.iterations) {
            self.judge_bound()?;
        }
        let Self { learner, batches, surroundings, mut state, batch, seen, .. } = self;
        let elsewhere = learner.end(&mut state, seen.then_some(&batch))?;
        if let Some(why) = elsewhere.filter(|_| state.best.is_none()) {
            stopped = format!("{stopped}; {why}");
        }
        let population = batches.population().max(1) as f64;
        learner.finish(state.best.as_ref().map(|(_, _, values)| &values[..]))?;
        let last = state.trace.last().map(|point| point.objective);
        let so_far = (state.epoch.1 > 0.0).then(|| state.epoch.0 / state.epoch.1);
        let bound = surroundings.bound.and(state.best.as_ref()).map(|(bound, ..)| *bound);
        Ok(TrainReport {
            stopped,
            converged: state.adapting.settled(),
            iterations: state.iterations,
            evaluations: state.adam.evaluations(),
            failures: state.failures,
            objective: bound.or(last).or(so_far).unwrap_or(f64::NAN),
            seconds: state.seconds,
            diagnostics: state.diagnostics,
            rising: if state.best.is_none() { rising(&state.trace, population) } else { None },
            trace: state.trace,
            judged: state.judged,
            ..TrainReport::default()
        })
    }
}

/// What a bound on all rows must gain, as a part of its size, from one look to the next.
const GAIN: f64 = 1e-4;

/// Keeps the state where the bound on all rows is the largest so far. Returns why the training should end: two looks, of which
/// each is after twice as many epochs as the one before, have not raised it.
fn judge_bound(
    learner: &mut dyn Learner,
    state: &mut TrainingState,
    bound: &mut Option<Bound<'_>>,
    judged_at: &mut Option<usize>,
) -> Result<Option<String>> {
    let Some(bound) = bound else { return Ok(None) };
    *judged_at = Some(state.iterations);
    let (epoch, mut best) = (state.trace.len(), state.best.take());
    learner.show(state, &mut |model| {
        let now = match bound(model) {
            Err(error) if error.is_recoverable() || matches!(error, Error::Interrupted) => f64::NAN,
            outcome => outcome?,
        };
        let least = best.as_ref().map_or(f64::NEG_INFINITY, |(most, ..)| most + GAIN * most.abs());
        if now > least {
            best = Some((now, epoch, all_values(model)));
        }
        Ok(())
    })?;
    state.best = best;
    let Some((_, at, _)) = state.best else { return Ok(None) };
    Ok((epoch >= (4 * at).max(8)).then(|| {
        format!("the bound on all rows rose no more after epoch {at} of {epoch}, which is kept")
    }))
}

/// Epochs of a quarter of a run, at least, to see a rise in.
const LEAST_QUARTER: usize = 2;
/// Nats a row that a quarter of a run may still bring.
const STILL: f64 = 0.01;
/// Standard errors by which a rise must be beyond chance.
const CLEAR: f64 = 3.0;

/// Returns by how much a row the last quarter of the epochs is better than the one before, if it
/// clearly is.
fn rising(trace: &[TracePoint], rows: f64) -> Option<f64> {
    let quarter = trace.len() / 4;
    if quarter < LEAST_QUARTER {
        return None;
    }
    let own = &trace[trace.len() - 2 * quarter..];
    let mean = |part: &[TracePoint]| {
        part.iter().map(|point| point.objective).sum::<f64>() / part.len() as f64
    };
    let rise = mean(&own[quarter..]) - mean(&own[..quarter]);
    // what chance does to an epoch shows from one to the next, whatever the trend
    let steps = own.windows(2).map(|pair| pair[1].objective - pair[0].objective);
    let trend = rise / quarter as f64;
    let noise = steps.map(|step| (step - trend).powi(2)).sum::<f64>() / (own.len() - 1) as f64;
    let error = (noise / quarter as f64).sqrt();
    (rise > CLEAR * error && rise > STILL * rows).then_some(rise / rows)
}

/// Writes the trace and looks at the held-out rows; a reason to stop, if there is one.
fn end_of_epoch(
    learner: &mut dyn Learner,
    state: &mut TrainingState,
    held_out: Option<&dyn Source>,
    patience: usize,
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
        parameters: Vec::new(),
        held_out: None,
    };
    if held_out.is_some() {
        learner.prepare(state)?;
    }
    let (mut stop, mut best) = (None, state.best.take());
    learner.show(state, &mut |model| {
        point.parameters = hyperparameters(model);
        if let Some(data) = held_out {
            let now = match density(model, data) {
                // a model that predicts nothing here is not the best
                Err(error) if error.is_recoverable() => f64::NAN,
                outcome => outcome?,
            };
            point.held_out = Some(now).filter(|now| now.is_finite());
            stop = judge(model, now, epoch, patience, &mut best);
        }
        Ok(())
    })?;
    state.best = best;
    state.trace.push(point);
    Ok(stop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(of: impl Fn(f64) -> f64, noise: f64) -> Vec<TracePoint> {
        let point = |i: usize| TracePoint {
            iteration: i,
            evaluations: i,
            objective: of(i as f64) + noise * (((i * i) as f64 * 0.618).fract() - 0.5),
            gradient_norm: 0.0,
            seconds: 0.0,
            parameters: Vec::new(),
            held_out: None,
        };
        (1..=40).map(point).collect()
    }

    #[test]
    fn a_bound_that_still_rises_is_distinguished_from_one_that_has_settled() {
        let rows = 100.0;
        let rise = rising(&trace(|t| 5.0 * t, 3.0), rows).expect("a rise");
        assert!((rise - 0.5).abs() < 0.05, "{rise}");
        // settled, only noise, too little to matter, a fall, and too short to judge
        assert_eq!(rising(&trace(|t| -300.0 * (-0.5 * t).exp(), 3.0), rows), None);
        assert_eq!(rising(&trace(|_| -50.0, 40.0), rows), None);
        assert_eq!(rising(&trace(|t| 0.05 * t, 0.0), rows), None);
        assert_eq!(rising(&trace(|t| -5.0 * t, 0.0), rows), None);
        assert_eq!(rising(&trace(|t| 5.0 * t, 0.0)[..7], rows), None);
    }
}

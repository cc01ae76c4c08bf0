//! Deep models for tables: a start from some rows, Adam by minibatches, and the trained layers as a model like any other
//! ([`crate::deep`]; Salimbeni & Deisenroth 2017).

use super::checkpoint::{self, Held};
use super::checks::{check_levels, check_rows, check_targets, many_classes};
use super::fitted::{Fitted, Origin};
use super::keeping::{Failures, Telling};
use super::start::{apply, likelihood, sample_rows};
use super::{BatchOptions, Dataset, FitOptions, sizes};
use crate::data::{Classes, InMemory};
use crate::deep::{Deep, Kind, Standing, Start, TrainOptions, Trained};
use crate::error::{Error, Result};
use crate::inducing::select::Selection;
use crate::inverse_free::SolverOptions;
use crate::linalg::Jitter;
use crate::methods::{Diagnostics, Entry, finite};
use crate::model::hyperparameters;
use crate::model::{Model, Posterior};
use crate::params;
use crate::train::{
    Adapting, Best, Event, Observer, PaceState, StochasticOptions, TracePoint, TrainReport,
    TrainingState, density, judge, set_all_values,
};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

/// Rows that the start is found on.
const ROWS: usize = 10_000;
/// Inducing points of every layer, unless a number is given.
pub const POINTS: usize = 100;
/// Steps, about, unless a number of epochs is given.
pub const STEPS: usize = 5000;

impl BatchOptions {
    /// What a deep model is trained with unless somebody says so.
    pub(super) fn of_deep() -> Self {
        let mut own = Self::default();
        own.training.least = (1, STEPS);
        own.training.adam.learning_rate = TrainOptions::default().learning_rate;
        own.training.natural = None;
        own
    }
}

/// Refuses options that a deep model has nothing of.
fn refuse(options: &FitOptions) -> Result<()> {
    let training = options.batches.as_ref().map(|batches| &batches.training);
    let usual = StochasticOptions::default();
    let wrong = [
        ("a number of restarts", options.restarts > 0),
        ("a mean function", options.mean.is_some()),
        ("a jitter", options.jitter != Jitter::default()),
        (
            "E- and M-steps, or another rate for inducing points",
            training.is_some_and(|t| t.em.is_some() || t.inducing_rate != usual.inducing_rate),
        ),
        ("q with diagonals alone", options.diagonal),
        ("training on all rows at once", options.batches.is_none()),
        (
            "inducing points that are chosen otherwise than by k-means",
            options.selection != Selection::KMeans,
        ),
        ("a kernel for each latent function", options.kernel.contains(';')),
        (
            "a kernel with values in the data's units",
            options.kernel_in_data_units && options.kernel.contains(['=', '{']),
        ),
    ];
    match wrong.into_iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((what, _)) => Err(Error::Invalid(format!(
            "the method `deep` does not take {what}: leave it out, or choose another method"
        ))),
    }
}

/// Prepares and trains a deep model.
///
/// # Errors
/// As for [`super::fit`].
pub(super) fn fit(
    dataset: &Dataset,
    options: &FitOptions,
    entry: &'static Entry,
    observer: &mut dyn Observer,
) -> Result<Fitted> {
    let Some(deep) = entry.method.architecture() else {
        return Err(Error::Invalid(format!("the method `{}` has no hidden layers", entry.name)));
    };
    refuse(options)?;
    let source = &*dataset.source;
    let (n, d) = (source.rows(), source.inputs());
    if d == 0 {
        return Err(Error::Invalid("there is no input column to learn from".into()));
    }
    let classes = dataset.classes.as_ref().map(Classes::count);
    let likelihood = likelihood(options.likelihood.as_deref(), classes)?;
    if !likelihood.standardises() && dataset.scaler != dataset.scaler.clone().without_targets() {
        return Err(Error::Invalid(format!(
            "the likelihood `{}` needs its targets as they stand, and they are standardised; make the data set with \
             `Standardise::all_that(&*likelihood)`",
            likelihood.name()
        )));
    }
    check_levels(dataset, &*likelihood)?;
    let missing = check_targets(dataset, &*likelihood)?;
    let sample = sample_rows(source, ROWS, options.seed)?;
    check_rows(dataset, entry, missing, &sample)?;
    sizes::check(&*likelihood, dataset, &sample)?;
    let mut warnings = dataset.warnings.clone();
    warnings.extend(dataset.isolated_remarks(&*likelihood));
    warnings.extend(many_classes(dataset));
    let points = options.inducing.unwrap_or(POINTS);
    if observer.event(Event::Inducing { count: points.min(n) }).is_break() {
        return Err(Error::Interrupted);
    }
    let start = Start {
        hidden: deep.hidden(d),
        kind: deep.kind,
        kernel: options.kernel.clone(),
        points,
        sampling: deep.sampling(),
        skip: deep.skip,
        own_kernels: deep.own_kernels,
        seed: options.seed,
        ..Start::default()
    };
    let (x, y) = (sample.x.as_ref(), sample.y.as_ref());
    let begun = Deep::start(x, y, &sample.extra, likelihood, &start)?;
    let bound = begun.bound;
    let mut model = Model::of_deep(begun, entry.method)?;
    entry.method.check(&model)?;
    let inner = model.hidden.iter().flat_map(|layer| &layer.groups);
    let inner = inner.filter_map(|group| group.inducing.as_points()).map(|points| &points.kernel);
    if model.kernels.iter().chain(inner).any(|kernel| !kernel.labels().is_empty()) {
        return Err(Error::Invalid(format!(
            "the kernel `{}` reads a column as labels, and what a hidden layer gives has none: choose another kernel for \
             the method `deep`",
            options.kernel
        )));
    }
    apply(&mut model, options, |_| true)?;
    let mut layered = model.to_deep(bound)?;
    layered.settle(&SolverOptions::default())?;
    let batches = options.batches.clone().unwrap_or_else(BatchOptions::of_deep);
    let size = batches.size.clamp(1, n.max(1));
    let mut rows = source.batches(size, options.seed)?;
    warnings.extend(rows.remark());
    let per_epoch = rows.per_epoch().max(1);
    let epochs = batches.training.epochs(per_epoch);
    let steps = epochs.saturating_mul(per_epoch);
    let natural = batches.training.natural.filter(|_| matches!(deep.kind, Kind::W | Kind::M));
    let training = TrainOptions {
        steps,
        samples: deep.samples,
        learning_rate: batches.training.adam.learning_rate,
        natural,
        seed: options.seed,
        every: per_epoch,
        ..TrainOptions::default()
    };
    let layers = model.hidden.len() + 1;
    let reason =
        format!("`{}` was asked for: {layers} layers, {points} inducing points each", entry.name);
    let mut origin = Origin::new(dataset, options.seed, reason, warnings);
    let mut from = None;
    let mut trace = Vec::new();
    let mut earlier = 0.0;
    let mut aside = Aside::of(dataset, &batches.training, options.seed)?;
    if let Some(path) = options.checkpoint.as_deref().filter(|path| path.exists()) {
        let (fitted, held) = checkpoint::load(path, dataset, options)?;
        let Held::Training(state) = held else {
            return Err(checkpoint::of_another(options, "other ways"));
        };
        let (then, old) = fitted.into_parts();
        layered = then.to_deep(bound)?;
        origin = old;
        (trace, earlier) = (state.trace.clone(), state.seconds);
        if let Some(aside) = &mut aside {
            aside.best.clone_from(&state.best);
        }
        from = Some(standing(*state, per_epoch));
    }
    if observer.event(Event::Training).is_break() {
        return Err(Error::Interrupted);
    }
    let failures = Failures::default();
    let mut watcher = Watcher {
        entry,
        observer: &mut Telling { observer, failures: &failures },
        steps,
        per_epoch,
        epochs,
        begun: Instant::now(),
        earlier,
        trace,
        keeping: options.checkpoint.as_deref().map(|path| Keeping {
            path,
            failures: &failures,
            origin: &origin,
            settings: checkpoint::settings(options, dataset),
            every: batches.training.checkpoint_seconds,
            last: Instant::now(),
            frozen: frozen(&layered),
        }),
        over: false,
        failed: None,
        aside,
    };
    let outcome = layered.train_from(&mut *rows, &training, from, &mut |deep, standing| {
        watcher.see(deep, standing)
    })?;
    watcher.record(&layered, &outcome);
    let (failed, aside) = (watcher.failed.take(), watcher.aside.take());
    let (trace, seconds) = (watcher.trace, earlier + watcher.begun.elapsed().as_secs_f64());
    if let Some(error) = failed {
        return Err(error);
    }
    origin.warnings.extend(failures.warning());
    let mut model = Model::of_deep(layered, entry.method)?;
    if let Some((_, _, values)) = aside.as_ref().and_then(|aside| aside.best.as_ref()) {
        set_all_values(&mut model, values)?;
    }
    let posterior = Posterior::of_q(&model)?;
    let objective = outcome.trace.last().map_or(f64::NAN, |(_, bound)| *bound);
    let mut report = report(outcome, &training, objective, (trace, seconds));
    if let Some(stop) = aside.and_then(|aside| aside.stop) {
        report.stopped = stop;
    }
    origin.warnings.extend(params::remarks(&model.params()));
    if report.failures > 0 {
        origin.warnings.push(format!(
            "at {} of {} steps the bound was not finite, or a matrix not positive definite; these steps were made smaller",
            report.failures, report.iterations
        ));
    }
    if training.steps > 0 {
        finite(objective, "the bound at the end of the training")?;
    }
    Ok(origin.fitted(model, posterior, Some(report)))
}

/// Rows whose density decides when the training stops: a mixture over paths costs much, so that some have to do.
const LOOKED_AT: usize = 500;

/// Rows that were kept aside, and what was best for them.
struct Aside {
    rows: InMemory,
    patience: usize,
    best: Option<Best>,
    stop: Option<String>,
}

impl Aside {
    fn of(dataset: &Dataset, training: &StochasticOptions, seed: u64) -> Result<Option<Self>> {
        let Some(source) = &dataset.held_out else { return Ok(None) };
        let rows = sample_rows(&**source, LOOKED_AT, seed)?;
        Ok(Some(Self { rows, patience: training.patience, best: None, stop: None }))
    }

    /// The density of the rows after an epoch.
    fn look(&mut self, model: &Model, epoch: usize) -> Option<f64> {
        // where the layers have no posterior there is none
        let now = density(model, &self.rows).unwrap_or(f64::NAN);
        self.stop = judge(model, now, epoch, self.patience, &mut self.best);
        Some(now).filter(|now| now.is_finite())
    }
}

/// Where a training stood, from its checkpoint.
fn standing(state: TrainingState, per_epoch: usize) -> Standing {
    let trace = state.trace.iter().map(|point| (point.iteration * per_epoch, point.objective));
    let window = (state.epoch.0, state.epoch.1 as usize);
    let last = state.trace.last();
    let trained = Trained {
        bound: match window.1 {
            0 => last.map_or(f64::NAN, |point| point.objective),
            count => window.0 / count as f64,
        },
        slope: last.map_or(0.0, |point| point.gradient_norm),
        steps: state.iterations,
        trace: trace.collect(),
        failures: state.failures,
        ..Trained::default()
    };
    Standing { adam: state.adam, trained, window, position: state.position }
}

/// Whether somebody froze q of the last layer: natural-gradient steps do while they train.
fn frozen(deep: &Deep) -> Vec<(bool, bool)> {
    let last = deep.layers.last().map_or(&[][..], |layer| &layer.groups);
    last.iter().map(|group| (group.q.first.frozen, group.q.second.frozen)).collect()
}

/// Where checkpoints go, and what they have beside the state.
struct Keeping<'a> {
    path: &'a Path,
    failures: &'a Failures,
    origin: &'a Origin,
    settings: Vec<(String, String)>,
    every: f64,
    last: Instant,
    frozen: Vec<(bool, bool)>,
}

impl Keeping<'_> {
    fn write(&mut self, mut deep: Deep, entry: &Entry, state: TrainingState) -> Result<()> {
        self.last = Instant::now();
        if let Some(layer) = deep.layers.last_mut() {
            for (group, was) in layer.groups.iter_mut().zip(&self.frozen) {
                (group.q.first.frozen, group.q.second.frozen) = *was;
            }
        }
        let model = Model::of_deep(deep, entry.method)?;
        let posterior = match Posterior::of_q(&model) {
            Err(error) if error.is_recoverable() => {
                return self.failures.noted(self.path, Err(error));
            }
            outcome => outcome?,
        };
        let now = self.origin.clone().fitted(model, posterior, None);
        self.failures.noted(self.path, checkpoint::save_training(&now, &state, self.path))
    }
}

/// What is told of a training while it runs, and kept of it.
struct Watcher<'a> {
    entry: &'static Entry,
    observer: &'a mut dyn Observer,
    steps: usize,
    per_epoch: usize,
    epochs: usize,
    begun: Instant,
    /// Seconds of runs before this one.
    earlier: f64,
    trace: Vec<TracePoint>,
    keeping: Option<Keeping<'a>>,
    /// Rows that tell when to stop.
    aside: Option<Aside>,
    /// Whether somebody ended it.
    over: bool,
    failed: Option<Error>,
}

impl Watcher<'_> {
    fn seconds(&self) -> f64 {
        self.earlier + self.begun.elapsed().as_secs_f64()
    }

    /// Keeps what is new in the history.
    fn record(&mut self, deep: &Deep, trained: &Trained) {
        let Some(&(step, objective)) = trained.trace.get(self.trace.len()) else { return };
        let model = Model::of_deep(deep.clone(), self.entry.method).ok();
        let parameters = model.as_ref().map(hyperparameters).unwrap_or_default();
        let iteration = step.div_ceil(self.per_epoch);
        let held_out = match (&mut self.aside, &model) {
            (Some(aside), Some(model)) => aside.look(model, iteration),
            _ => None,
        };
        self.trace.push(TracePoint {
            iteration,
            evaluations: step + trained.failures,
            objective,
            gradient_norm: trained.slope,
            seconds: self.seconds(),
            parameters,
            held_out,
        });
    }

    fn see(&mut self, deep: &Deep, at: &Standing) -> ControlFlow<(), Option<f64>> {
        self.record(deep, &at.trained);
        self.over |= self.aside.as_ref().is_some_and(|aside| aside.stop.is_some());
        let seconds = self.seconds();
        let ended = self.over || at.trained.ended.is_some() || at.trained.steps == self.steps;
        if let Some(keeping) = &mut self.keeping
            && (ended || keeping.last.elapsed().as_secs_f64() > keeping.every)
        {
            let state = TrainingState {
                settings: keeping.settings.clone(),
                position: at.position,
                adam: at.adam.clone(),
                epoch: (at.window.0, at.window.1 as f64),
                shortened: 0,
                failures: at.trained.failures,
                iterations: at.trained.steps,
                seconds,
                trace: self.trace.clone(),
                best: self.aside.as_ref().and_then(|aside| aside.best.clone()),
                diagnostics: Diagnostics::default(),
                pace: PaceState::default(),
                adapting: Adapting::default(),
            };
            if let Err(error) = keeping.write(deep.clone(), self.entry, state) {
                self.failed = Some(error);
                return ControlFlow::Break(());
            }
        }
        if at.trained.steps > 0 && !self.over {
            let event = Event::Batch {
                epoch: (at.trained.steps - 1) / self.per_epoch,
                batch: (at.trained.steps - 1) % self.per_epoch,
                per_epoch: self.per_epoch,
                epochs: self.epochs,
                objective: at.trained.bound,
                seconds,
            };
            self.over = self.observer.event(event).is_break();
        }
        self.over |= self.observer.interrupted();
        match self.over {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(self.observer.time_used()),
        }
    }
}

fn report(
    outcome: Trained,
    training: &TrainOptions,
    objective: f64,
    (trace, seconds): (Vec<TracePoint>, f64),
) -> TrainReport {
    let stopped = match &outcome.ended {
        Some(why) => format!("ended {why}; the objective is an estimate by minibatches"),
        None => format!(
            "all epochs were made, {} steps; the objective is an estimate by minibatches",
            training.steps
        ),
    };
    TrainReport {
        stopped,
        converged: false,
        iterations: outcome.steps,
        evaluations: outcome.steps + outcome.failures,
        failures: outcome.failures,
        objective,
        seconds,
        diagnostics: Diagnostics::default(),
        trace,
        mixing: None,
        starts: Vec::new(),
        judged: Vec::new(),
    }
}

//! Training and conditioning of a model that is prepared, by minibatches or on all rows, with checkpoints.

use super::checkpoint::{self, Held};
use super::fitted::{Fitted, Origin};
use super::keeping::{Failures, Telling};
use super::start::tell;
use super::{BatchOptions, Dataset, FitOptions, KEPT_NUMBERS, averaging, choice, findings, series};
use crate::data::Source;
use crate::engine::{Engine, Want};
use crate::error::{Error, Result};
use crate::methods::{Method, Sampler, Uncollapsed, collect};
use crate::model::set_hyperparameters;
use crate::model::{Model, Posterior};
use crate::samplers::gibbs::GibbsOptions;
use crate::samplers::{self, Checkpointer, Going, SamplingState, slice};
use crate::train::{
    Event, GoingOn, Observer, Place, Standing, StochasticOptions, Surroundings, TrainOptions,
    TrainReport, TrainingState, train, train_batches, train_from,
};
use std::ops::ControlFlow;
use std::time::Instant;

/// A model after its training, before chains.
pub(super) struct Trained {
    pub(super) model: Model,
    pub(super) origin: Origin,
    pub(super) posterior: Posterior,
    pub(super) report: TrainReport,
    /// Where chains stood.
    pub(super) chains: Option<SamplingState>,
}

/// Training and conditioning.
pub(super) struct Learning<'a> {
    pub(super) dataset: &'a Dataset,
    pub(super) options: &'a FitOptions,
    pub(super) engine: &'a dyn Engine,
    /// Whether `auto` sees all rows at once.
    pub(super) whole: bool,
}

impl Learning<'_> {
    pub(super) fn run(
        &self,
        mut model: Model,
        mut origin: Origin,
        held: Option<Held>,
        observer: &mut dyn Observer,
    ) -> Result<Trained> {
        if let Some(sampler) = model.method.sampler() {
            // not after the whole training
            let rows = &*self.dataset.source;
            samplers::check_rows(sampler, &model, rows, &self.options.gibbs)?;
        }
        if observer.event(Event::Training).is_break() {
            return Err(Error::Interrupted);
        }
        averaging::check(self.options, &model, self.dataset.deviations.is_some())?;
        self.dataset.narrow_mean(&mut model)?;
        let report = self.in_precision(&mut model, &mut origin, held, observer)?;
        let learnt = self.dataset.trained_by(model.method);
        let data = &learnt;
        if let Ok(method) = Uncollapsed::of(model.method) {
            method.tie(&mut model, self.engine, data)?;
        }
        let report = without_assumed(report, &model);
        let data = &self.dataset.conditioning(&mut model)?;
        let posterior = match model.posterior(self.engine, data) {
            // it was meant to end the training, which had ended: what was learnt is not thrown away
            Err(Error::Interrupted) => model.posterior(self.engine, data)?,
            outcome => outcome?,
        };
        let (posterior, certain) = posterior.with_trend(&model, data)?;
        origin.warnings.extend(certain);
        Ok(Trained { model, origin, posterior, report, chains: None })
    }

    /// Trains a model by minibatches or on all rows at once, with checkpoints.
    pub(super) fn trained(
        &self,
        model: &mut Model,
        origin: &mut Origin,
        held: Option<Held>,
        observer: &mut dyn Observer,
    ) -> Result<TrainReport> {
        let learnt = self.dataset.trained_by(model.method);
        let data = &learnt;
        let whole = self.whole || !model.method.in_minibatches();
        let batches = choice::planned_batches(self.options, data.rows()).filter(|_| !whole);
        match (Uncollapsed::of(model.method), batches) {
            (Ok(method), Some(batches)) => {
                let state = match held {
                    Some(Held::Training(state)) => Some(*state),
                    Some(_) => {
                        return Err(checkpoint::of_another(self.options, "all rows at once"));
                    }
                    None => None,
                };
                let end = choice::end(self.options, model, data.rows());
                let judge = end.map(|(collapsed, _)| collapsed);
                if end.is_some() {
                    tell(observer, Event::Ahead { passes: PASSES })?;
                }
                let mut report =
                    self.in_batches(model, origin, (&batches, judge), state, observer)?;
                if let Some((collapsed, iterations)) = end {
                    self.collapse(model, collapsed, iterations, &mut report, observer)?;
                } else if !observer.interrupted() {
                    // the estimates of an epoch are of a q that moved; this is the bound at the end
                    let bound = method.step(model, self.engine, data, Want::Value)?.value;
                    report.objective = bound + model.log_prior();
                }
                Ok(report)
            }
            _ => {
                let resume = match held {
                    Some(Held::Whole(place)) => Some(place),
                    Some(_) => return Err(checkpoint::of_another(self.options, "minibatches")),
                    None => None,
                };
                self.check_spread(model)?;
                self.on_all_rows(model, origin, resume, observer)
            }
        }
    }

    /// Gives what chains sample its default priors, about the values of the start: before a checkpoint replaces these.
    pub(super) fn assume_priors(&self, model: &mut Model, warnings: &mut Vec<String>) {
        if model.method.sampler().is_some() && self.options.gibbs.hyperparameters {
            warnings.extend(assumption(&slice::assume_priors(model)));
        }
    }

    /// Refuses targets without any spread where the variance of the noise is a function without a least value: it would fall to 0, and
    /// slopes grow without bound. (A few minibatches do not get there, and the first part of a table may be like that.)
    fn check_spread(&self, model: &Model) -> Result<()> {
        let likelihood = &*model.likelihood;
        let of_noise = likelihood.separate_kernels()
            && likelihood.mixing().is_none()
            && likelihood.augmented().is_none();
        if of_noise
            && likelihood.standardises()
            && self.dataset.target_variance.iter().all(|v| *v == 0.0)
        {
            return Err(Error::Invalid(format!(
                "the targets are constant: there is no noise to learn for `{}`, and its variance would fall to 0; \
                 take the likelihood `gaussian`",
                likelihood.name()
            )));
        }
        Ok(())
    }

    /// Returns the objective on all rows, with the log priors.
    pub(super) fn on_all(&self, mut model: Model) -> Result<f64> {
        self.dataset.narrow_mean(&mut model)?;
        let data = self.dataset.trained_by(model.method);
        Ok(model.evaluate(self.engine, &data)?.value + model.log_prior())
    }

    /// Ends a training by minibatches: q at its best in closed form, and a few iterations on all
    /// rows.
    fn collapse(
        &self,
        model: &mut Model,
        collapsed: &'static dyn Method,
        max_iterations: usize,
        report: &mut TrainReport,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        model.method = collapsed;
        model.q = None;
        self.dataset.narrow_mean(model)?;
        let so_far = match self.dataset.held_out {
            Some(_) => "; the objective is an estimate by minibatches",
            None => "; the objective is the collapsed bound there",
        };
        if observer.interrupted() {
            report.stopped += so_far;
            return Ok(());
        }
        let options = TrainOptions { max_iterations, ..self.options.train.clone() };
        let data = &self.dataset.trained_by(collapsed);
        let end = match train(model, self.engine, data, &options, observer) {
            // what the minibatches have found is kept
            Err(error) if error.is_recoverable() || matches!(error, Error::Interrupted) => {
                report.stopped += so_far;
                return Ok(());
            }
            outcome => outcome?,
        };
        report.objective = end.objective;
        report.rising = None;
        report.diagnostics = end.diagnostics;
        report.failures += end.failures;
        report.evaluations += end.evaluations;
        report.seconds += end.seconds;
        let iterations = end.iterations;
        report.stopped =
            format!("{}; then {iterations} iterations of the collapsed bound", report.stopped);
        Ok(())
    }

    /// Trains on all rows at once, with checkpoints.
    fn on_all_rows(
        &self,
        model: &mut Model,
        origin: &mut Origin,
        resume: Option<Place>,
        observer: &mut dyn Observer,
    ) -> Result<TrainReport> {
        let failures = Failures::default();
        let mut write = |standing: &Standing| match &self.options.checkpoint {
            None => Ok(()),
            Some(path) => {
                let saved = checkpoint::save_whole(path, self.dataset, self.options, standing);
                failures.noted(path, saved)
            }
        };
        let observer = &mut Telling { observer, failures: &failures };
        let going = GoingOn {
            resume,
            checkpoint: if self.options.checkpoint.is_some() { Some(&mut write) } else { None },
        };
        let data = &self.dataset.trained_by(model.method);
        let mut training = self.options.train.clone();
        let most = choice::most_iterations(self.options, model);
        training.max_iterations = most.unwrap_or(training.max_iterations);
        let some = match model.method.name() {
            "exact" => self.dataset.distinct(&collect(data)?),
            _ => series::of_training(model, data, self.options.seed)?,
        };
        let learnt: &dyn Source = some.as_ref().map_or(data, |rows| rows);
        let mut report = train_from(model, self.engine, learnt, &training, going, observer)?;
        if some.is_some() {
            let all = model.evaluate(self.engine, data)?.value + model.log_prior();
            let others = all - report.objective;
            report.trace.iter_mut().for_each(|point| point.objective += others);
            report.objective = all;
        }
        if most.is_some_and(|most| !report.converged && report.iterations >= most) {
            report.stopped += ", which is where `auto` leaves moving inducing points";
        }
        origin.warnings.extend(failures.warning());
        Ok(TrainReport { judged: origin.judged.clone(), ..report })
    }

    /// Does what comes after training: chains, and what a person should know.
    pub(super) fn end(&self, trained: Trained, observer: &mut dyn Observer) -> Result<Fitted> {
        let Trained { model, mut origin, posterior, report, chains } = trained;
        let (posterior, mut report) = match model.method.sampler() {
            Some(sampler) if !observer.interrupted() => {
                let trained = (posterior, report);
                self.sampled(sampler, &model, &mut origin, trained, chains.as_ref(), observer)?
            }
            _ => (posterior, report),
        };
        let posterior = match observer.interrupted() {
            true => posterior,
            false => averaging::averaged(
                self.options,
                self.dataset,
                &model,
                posterior,
                &mut report,
                &mut origin.warnings,
                observer,
            )?,
        };
        if !observer.interrupted() && self.dataset.source.sharded().is_none() {
            // what cannot be predicted is for predictions to say
            let Self { dataset, options, engine, .. } = *self;
            let asked = findings::Asked { model: &model, dataset, options, engine, observer };
            report.findings = findings::of(&asked, &posterior).unwrap_or_default();
            origin.warnings.extend(report.findings.iter().map(|own| own.text.clone()));
        }
        Ok(origin.fitted(model, posterior, Some(report)))
    }

    /// Draws the posterior by chains from the hyperparameters found.
    fn sampled(
        &self,
        sampler: Sampler,
        model: &Model,
        origin: &mut Origin,
        (posterior, mut report): (Posterior, TrainReport),
        state: Option<&SamplingState>,
        observer: &mut dyn Observer,
    ) -> Result<(Posterior, TrainReport)> {
        let rows = collect(&*self.dataset.source)?;
        let now = origin.clone().fitted(model.clone(), posterior.clone(), Some(report.clone()));
        let settings = checkpoint::settings(self.options, self.dataset)?;
        let failures = Failures::default();
        let mut write = |mut state: SamplingState| {
            state.settings.clone_from(&settings);
            let path = self.options.checkpoint.as_deref();
            path.map_or(Ok(()), |path| {
                failures.noted(path, checkpoint::save_sampling(&now, &state, path))
            })
        };
        let observer = &mut Telling { observer, failures: &failures };
        let write: Option<Checkpointer<'_>> =
            if self.options.checkpoint.is_some() { Some(&mut write) } else { None };
        let from = state.map_or(0, |state| state.sweeps);
        let options = GibbsOptions { seed: self.options.seed, ..self.options.gibbs.clone() };
        let (clock, mut sweeps) = (Instant::now(), from);
        let seconds = options.checkpoint_seconds;
        let going = Going { state, checkpoint: write.map(|write| (write, seconds)) };
        let (draws, warning) =
            samplers::sample(sampler, model, &rows, &options, going, &mut |done, total| {
                sweeps = done;
                let seconds = clock.elapsed().as_secs_f64();
                let flow = observer.event(Event::Sampling { done, total, seconds });
                // what is complete is not interrupted
                let stop = done < total && observer.interrupted();
                if stop { ControlFlow::Break(()) } else { flow }
            })?;
        origin.warnings.extend(failures.warning());
        origin.warnings.extend(warning);
        origin.warnings.extend(draws.still());
        let seconds = clock.elapsed().as_secs_f64();
        report.seconds += seconds;
        let each = seconds / ((sweeps - from) * options.chains).max(1) as f64;
        report.mixing = draws.mixing(each);
        let x = (!model.method.is_sparse()).then_some(&rows.x);
        let points = if model.method.is_sparse() {
            model.inducing_points()?.nrows()
        } else {
            rows.x.nrows()
        };
        let each = match options.hyperparameters {
            false => draws.numbers(),
            true => points * points * model.kernels.len(),
        };
        let most = (KEPT_NUMBERS / each.max(1)).max(1);
        let (kept, hyperparameters) = draws.thinned(most);
        let posterior = match (kept.is_empty(), options.hyperparameters) {
            // interrupted before the first draw: what coordinate ascent knows is kept
            (true, _) => posterior,
            (_, true) => Posterior::of_sampled(model, x, kept, hyperparameters)?,
            (_, false) => Posterior::of_draws(model, x, kept)?,
        };
        Ok((posterior, report))
    }

    /// Trains by minibatches, with checkpoints.
    fn in_batches(
        &self,
        model: &mut Model,
        origin: &mut Origin,
        (batches, judge): (&BatchOptions, Option<&'static dyn Method>),
        state: Option<TrainingState>,
        observer: &mut dyn Observer,
    ) -> Result<TrainReport> {
        let mut bound = |model: &Model| {
            let own = Model { method: judge.unwrap_or(model.method), q: None, ..model.clone() };
            self.on_all(own)
        };
        let source = &*self.dataset.source;
        let size = batches.size.min(source.rows());
        let mut rows = source.batches(size, self.options.seed)?;
        origin.warnings.extend(rows.remark());
        let (failures, then) = (Failures::default(), origin.clone());
        let mut write = checkpoint::writer(self.options, &then, &failures);
        let observer = &mut Telling { observer, failures: &failures };
        let surroundings = Surroundings {
            settings: checkpoint::settings(self.options, self.dataset)?,
            judged: origin.judged.clone(),
            held_out: self.dataset.held_out.as_deref(),
            bound: match judge {
                Some(_) if self.dataset.held_out.is_none() => Some(&mut bound),
                _ => None,
            },
            resume: state,
            checkpoint: self.options.checkpoint.is_some().then_some(&mut write),
        };
        let training = StochasticOptions { seed: self.options.seed, ..batches.training.clone() };
        let report =
            train_batches(model, self.engine, &mut *rows, &training, surroundings, observer)?;
        origin.warnings.extend(failures.warning());
        Ok(report)
    }
}

/// Passes over all rows after minibatches that the collapsed bound ends: its value, and the posterior.
const PASSES: f64 = 2.0;

/// Returns a report whose objectives leave out the priors that were not asked for.
fn without_assumed(mut report: TrainReport, model: &Model) -> TrainReport {
    if !model.params().iter().any(|(_, param)| param.assumed) {
        return report;
    }
    report.objective -= model.assumed_log_prior();
    let mut then = model.clone();
    for point in &mut report.trace {
        // chains continue from a model whose trace they did not make
        if set_hyperparameters(&mut then, &point.parameters).is_ok() {
            point.objective -= then.assumed_log_prior();
        }
    }
    report
}

/// Says that priors were assumed.
fn assumption(paths: &[String]) -> Option<String> {
    (!paths.is_empty()).then(|| {
        format!(
            "no prior was given for {}: log-normal about the starting value with a standard deviation of 1 in the \
             logarithm was assumed for positive numbers, normal about it with a standard deviation of 1 on the \
             model's scale for others",
            paths.join(", ")
        )
    })
}

//! Defaults and starting values from the data.

use super::beginning;
use super::checks::long_periods;
use super::choice::{Choice, Known, choose, whole};
use super::guards::Checked;
use super::judge::{self, Flown};
use super::placing::{Placing, of_points};
use super::quiet::Quiet;
use super::select::takes_interdomain;
use super::trial::Trial;
use super::{
    Dataset, FitOptions, assumed, certain, enough, nearby, restarts, screen, series, sizes,
};
use crate::data::{InMemory, Source};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::likelihoods::{Likelihood, Target};
use crate::model::Model;
use crate::params::Param;
use crate::train::{Event, Judged, Observer, check_batches};

/// Rows that inducing points and starting values are chosen from.
const SAMPLE: usize = 20_000;
/// Rows from which a pilot finds where exact inference starts.
const PILOTED: usize = 1000;

/// A model ready to be trained.
#[derive(Clone, Debug)]
pub struct Start {
    /// The model.
    pub model: Model,
    /// Why its method, in a sentence.
    pub reason: String,
    /// What was odd and handled.
    pub warnings: Vec<String>,
    /// The starts that were judged, that of the model first; empty where none were.
    pub judged: Vec<Judged>,
}

/// Prepares a model ([`super::prepare`]); for a further start, from 1, with hyperparameters that are drawn
/// ([`restarts`](super::restarts)).
pub(super) fn prepare_start(
    dataset: &Dataset,
    options: &FitOptions,
    engine: &dyn Engine,
    observer: &mut dyn Observer,
    restart: usize,
) -> Result<Start> {
    let mut checked = Checked::new(dataset, options)?;
    let why = why_other(&*checked.likelihood, checked.missing);
    let known = known(dataset, options, &*checked.likelihood, checked.missing, &why);
    if restart > 0
        && known.nearby
        && let Some((own, reason)) = as_first(dataset, options, engine, observer)?
    {
        let start = prepare_start(dataset, &own, engine, observer, restart)?;
        return Ok(Start { reason, ..start });
    }
    let choice = choose(options, known)?;
    let method = choice.entry.method;
    if method.architecture().is_some() {
        return Err(Error::Invalid(
            "a deep model is started by its layers (`sparsegp::deep::Deep::start`), and fitted by `sparsegp::fit::fit`"
                .into(),
        ));
    }
    let data = &dataset.trained_by(method);
    let time = series::time(dataset, options, method);
    let sample = series::sample(data, SAMPLE, time, options.seed)?;
    checked.look(dataset, options, choice.entry, &sample)?;
    let Checked { mut likelihood, mut warnings, .. } = checked;
    let targets = beginning::targets_of(&sample, &*likelihood);
    let starts = beginning::latent_starts(&mut *likelihood, &targets, &sample)?;
    let latents =
        beginning::latent_functions(&*likelihood, starts.len(), dataset.source.outputs())?;
    let centred = beginning::is_centred(dataset, &*likelihood, &sample);
    let mean = beginning::mean(dataset, options, centred, &starts, &sample)?;
    // nothing but a mean function, and what mixes latent functions, knows how many columns there are
    let varying = dataset.varying();
    let narrow = mean.num_params() == 0 && likelihood.mixing().is_none();
    let rows: &dyn Source = if narrow { &varying } else { data };
    let sample = match narrow {
        true => series::sample(rows, SAMPLE, time, options.seed)?,
        false => sample,
    };
    let exact = choice.entry.name == "exact";
    let sample = if exact { dataset.distinct(&sample).unwrap_or(sample) } else { sample };
    let model = Model {
        kernels: Vec::new(),
        mean,
        likelihood,
        inducing: Vec::new(),
        q: None,
        method,
        jitter: options.jitter,
        hidden: Vec::new(),
    };
    let model = completed(model, dataset, options, (latents, &targets), &sample, &mut warnings)?;
    let begun = model.mean.clone();
    let search = Search { dataset, options, engine, restart, known, latents, sample, rows };
    let mut start = search.best(model, choice, warnings, observer)?;
    start.warnings.extend(certain::hold(&mut start.model, &*begun, dataset, &targets));
    if !start.model.method.is_sparse() {
        apply(&mut start.model, options, of_points)?;
    }
    Ok(start)
}

/// Returns the options of a further start where the first one has taken neighbours, with its
/// reason: all starts have one method.
fn as_first(
    dataset: &Dataset,
    options: &FitOptions,
    engine: &dyn Engine,
    observer: &dyn Observer,
) -> Result<Option<(FitOptions, String)>> {
    let first = prepare_start(dataset, options, engine, &mut Quiet(observer), 0)?;
    let method = first.model.method.name();
    let own = || (FitOptions { method: method.into(), ..options.clone() }, first.reason);
    Ok((method == nearby::METHOD).then(own))
}

/// Returns why the method is not one of plain Gaussian rows, where it is not.
fn why_other(likelihood: &dyn Likelihood, missing: usize) -> String {
    match likelihood.as_gaussian() {
        None => format!("the likelihood is not Gaussian ({})", likelihood.name()),
        Some(_) if missing > 0 => "some targets are missing".into(),
        Some(_) => "rows have weights or known noise variances".into(),
    }
}

/// Returns what `auto` goes by.
fn known<'a>(
    dataset: &Dataset,
    options: &FitOptions,
    likelihood: &dyn Likelihood,
    missing: usize,
    why: &'a str,
) -> Known<'a> {
    let data = &*dataset.source;
    let gaussian = likelihood.as_gaussian().is_some() && missing == 0;
    Known {
        rows: data.rows(),
        gaussian,
        plain: gaussian && data.is_plain(),
        why,
        whole: whole(dataset, options),
        sharded: data.sharded().is_some(),
        series: series::takes(likelihood) && series::possible(dataset, &options.kernel),
        nearby: gaussian && data.is_plain() && nearby::possible(dataset, options),
        near: nearby::inputs(dataset, options).filter(|_| likelihood.as_gaussian().is_none()),
        averaged: options.hyperparameters.is_asked(),
    }
}

/// Returns the model with its kernels, starting values and what was given, checked for what would
/// be refused later.
fn completed(
    mut model: Model,
    dataset: &Dataset,
    options: &FitOptions,
    (latents, targets): (usize, &[Vec<Target>]),
    sample: &InMemory,
    warnings: &mut Vec<String>,
) -> Result<Model> {
    let seen = dataset.for_starts(sample, &*model.likelihood);
    let likelihood = &*model.likelihood;
    let (mut kernels, variance) =
        beginning::started_kernels(dataset, options, likelihood, latents, targets, &seen)?;
    if options.lengthscale_prior {
        warnings.extend(assumed::assume(&mut kernels, seen.x.as_ref()));
    }
    model.kernels = kernels;
    if let Some(gaussian) = model.likelihood.as_gaussian_mut()
        && !gaussian.variance.given
    {
        gaussian.start(variance);
        if options.lengthscale_prior && sample.extra.is_empty() {
            assumed::assume_noise(gaussian);
        }
    }
    model.check_kernels(latents)?;
    model.method.check(&model)?;
    apply(&mut model, options, |path| !of_points(path))?;
    assumed::leave_frozen(&mut model);
    if model.method.is_of_series() {
        series::keep_states(&mut model)?;
    }
    model.check_noise()?;
    if dataset.scaler.x_scale.iter().any(|scale| *scale != 1.0) {
        warnings.extend(long_periods(&model.kernels, sample.x.as_ref(), options));
    }
    let in_minibatches = model.method.in_minibatches() && !whole(dataset, options);
    let by_batches = options.batches.as_ref().filter(|_| in_minibatches);
    by_batches.map_or(Ok(()), |batches| check_batches(&model, &batches.training))?;
    Ok(model)
}

/// The search for the best start of a model.
struct Search<'a> {
    dataset: &'a Dataset,
    options: &'a FitOptions,
    engine: &'a dyn Engine,
    restart: usize,
    known: Known<'a>,
    latents: usize,
    sample: InMemory,
    rows: &'a dyn Source,
}

impl Search<'_> {
    /// Returns what half of the rows, or a thousand, find for exact inference: an evaluation on
    /// them costs an eighth at most.
    fn piloted(
        &self,
        model: Model,
        first: Option<&Trial>,
        observer: &mut dyn Observer,
    ) -> Result<Model> {
        let rows = self.options.pilot.min(self.known.rows / 2);
        let options = FitOptions { pilot: rows, ..self.options.clone() };
        tell(observer, Event::Pilot { rows })?;
        Ok(match judge::pilot(&model, first, &self.sample, &options, self.engine, observer)? {
            Flown::Found(found) => *found,
            Flown::Nothing | Flown::Failed => model,
        })
    }

    /// Returns the best start, with its method, points and q.
    fn best(
        &self,
        mut model: Model,
        mut choice: Choice,
        mut warnings: Vec<String>,
        observer: &mut dyn Observer,
    ) -> Result<Start> {
        let Self { dataset, options, engine, .. } = *self;
        // covariances of whole inputs are far dearer than those with such variables: nothing is judged by them
        let other_domain = model.method.is_sparse() && takes_interdomain(&model, options);
        let learns = |param: &Param| !param.role().is_bulky() && !param.frozen && !param.given;
        let any = model.params().iter().any(|(_, param)| learns(param));
        // where every value is known, trials inform only `auto`: of what the bound misses
        let pilots = options.pilot > 0 && !other_domain && (any || options.method == "auto");
        let judges = pilots && self.restart == 0;
        // the same method for every start
        let mut first_start = model.clone();
        let screened = match pilots {
            true => screen::screen(&mut first_start, &self.sample, options, engine, observer)?,
            false => None,
        };
        if let Some((trial, _)) = &screened {
            let finer = enough::finer(trial, &self.sample, options, self.known, &choice)?;
            if let Some((finer, warning)) = finer {
                warnings.extend(warning);
                choice = finer;
            }
        }
        if judges {
            model = first_start;
        }
        model.method = choice.entry.method;
        if self.restart > 0 {
            restarts::draw(&mut model, options.seed, self.restart)?;
        }
        let screened = screened.filter(|_| judges);
        let direct = !model.method.is_sparse() && !model.method.has_q();
        if judges && direct && self.known.rows >= PILOTED {
            model = self.piloted(model, screened.as_ref().map(|(trial, _)| trial), observer)?;
        }
        let (first, mut judged) = screened.map_or((None, Vec::new()), |(t, v)| (Some(t), v));
        let method = model.method;
        if method.is_sparse() {
            let (wanted, latents) = (choice.inducing, self.latents);
            let (sample, rows) = (&self.sample, self.rows);
            let placing = Placing {
                dataset,
                options,
                engine,
                method,
                wanted,
                latents,
                sample,
                rows,
                pilots,
                judges,
                other_domain,
            };
            let (first, all) = (first.as_ref(), &mut judged);
            let direct;
            (model, direct) = placing.place(model, first, all, &mut warnings, observer)?;
            let both = (self.known, &choice);
            if judges
                && let Some(near) =
                    nearby::nearer(&model, direct, both, engine, self.rows, observer)?
            {
                (model, choice) = near;
                judged.clear();
            }
        }
        if let Some(q) = method.with_q().filter(|q| !q.is_of_points()) {
            let size = [self.known.rows, 0, self.latents];
            model.q = Some(q.start(size, options.tying, options.diagonal));
        }
        let reason = match dataset.rows > self.known.rows {
            true => format!("{}; equal rows counted, there are {}", choice.reason, dataset.rows),
            false => choice.reason,
        };
        Ok(Start { model, reason, warnings, judged })
    }
}

/// Tells the observer, who may end the preparation; there is nothing to keep yet.
pub(super) fn tell(observer: &mut dyn Observer, event: Event<'_>) -> Result<()> {
    if observer.event(event).is_break() { Err(Error::Interrupted) } else { Ok(()) }
}

/// Sets and freezes what the options say about the paths that `concerns` holds for.
pub(super) fn apply(
    model: &mut Model,
    options: &FitOptions,
    concerns: impl Fn(&str) -> bool,
) -> Result<()> {
    for (path, value) in options.set.iter().filter(|(path, _)| concerns(path)) {
        sizes::make_room(model, path, value);
        model.set(path, value)?;
        model.for_group(path, |param| param.given = true)?;
    }
    for pattern in options.freeze.iter().filter(|pattern| concerns(pattern)) {
        model.freeze(pattern, true)?;
    }
    Ok(())
}

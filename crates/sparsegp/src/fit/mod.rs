//! From data to a model that can be used: defaults, starting values, training, conditioning.

mod checkpoint;
mod dataset;
mod fitted;
mod pilot;
mod restarts;
mod select;
mod start;
mod time_limit;

use checkpoint::Held;
pub use dataset::{Dataset, Scaling, Standardise, encoded};
use fitted::Origin;
pub use fitted::{Fitted, Of, ParameterRow};
pub use start::{Start, likelihood, likelihood_for, prepare, sample_rows};

use crate::engine::{Engine, Want};
use crate::error::{Error, Result};
use crate::inducing::select::Selection;
use crate::io;
use crate::linalg::Jitter;
use crate::methods::{Keeps, Method, collect};
use crate::model::{Model, Posterior};
use crate::optim::LbfgsOptions;
use crate::params;
use crate::samplers::gibbs::{self, Checkpointer, GibbsOptions};
use crate::samplers::{SamplingState, slice};
use crate::train::{
    Event, GoingOn, Observer, OptimiserKind, Place, Standing, StochasticOptions, Surroundings,
    TrainOptions, TrainReport, TrainingState, train_batches, train_from,
};
use crate::variational::{Tying, Variational};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;
use time_limit::limited;

/// What to fit and how. [`FitOptions::default`] is a sensible start for any table.
#[derive(Clone, Debug)]
pub struct FitOptions {
    /// Kernel specification, such as `rbf` or `matern52 + linear`; separated by `;` one for each latent
    /// function.
    pub kernel: String,
    /// Likelihood specification, such as `poisson` or `bernoulli(link=logit)`; by default what fits
    /// the targets: `bernoulli` for two classes, `softmax` for more, else `gaussian`
    /// ([`likelihood_for`]).
    pub likelihood: Option<String>,
    /// Mean function by name or as JSON; by default `zero` for standardised targets, else `constant`.
    pub mean: Option<String>,
    /// Method by name, or `auto`.
    pub method: String,
    /// Number of inducing points; by default 512, or as many as there are rows, or for the methods that
    /// train q a quarter of that, but at least 50.
    pub inducing: Option<usize>,
    /// How inducing points are chosen. Given points are on the model's (standardised) scale, and
    /// their number is what counts.
    pub selection: Selection,
    /// Seed of everything random.
    pub seed: u64,
    /// Jitter of Kuu; exact inference needs none.
    pub jitter: Jitter,
    /// Values to set before training, by path; they count as starting values unless frozen too.
    pub set: Vec<(String, Vec<f64>)>,
    /// Paths or groups to keep as they are.
    pub freeze: Vec<String>,
    /// Rows of the pilot: before a sparse method starts, the hyperparameters are trained by exact
    /// inference on so many random rows, and inducing points are chosen on the lengthscales found.
    /// Of at most 200 of them whatever the method the first lengthscales are those that, all multiplied by one of a
    /// few numbers up to 1, have the largest log evidence. 0 for no pilot.
    pub pilot: usize,
    /// Trainings from further starts, besides that from the values that the data suggest. Each draws the
    /// hyperparameters that are not frozen: from their priors, or a positive number within a factor of ten of where it
    /// would start (its logarithm uniform), any other number a standard normal away. The best objective wins, so
    /// that the result is never worse than without.
    pub restarts: usize,
    /// Optimiser and budget where all rows are seen at once.
    pub train: TrainOptions,
    /// Minibatches, for the methods that can have them; none to see all rows at once. The method `auto`
    /// sees up to [`AUTO_EXACT`] rows all at once anyway, unless there are held-out rows.
    pub batches: Option<BatchOptions>,
    /// File to which a training, or chains, write their state now and then, and from which they go on if the
    /// file is there: for minibatches and chains a model file like any other. Every restart has a file of its own,
    /// with `.restart-1` and so on appended.
    pub checkpoint: Option<PathBuf>,
    /// Whether q keeps the diagonals of its covariances alone, for the methods that train q.
    pub diagonal: bool,
    /// What stays as it is when hyperparameters move, for the methods that keep q as sites.
    pub tying: Tying,
    /// Seconds after which everything ends, preparation included, with the best found so far
    /// ([`Deadline`](crate::train::Deadline)); none for no limit. A checkpoint goes on from there, and the limit counts for
    /// every run anew.
    pub time_limit: Option<f64>,
    /// Chains, for the methods that sample the posterior. Their seed is [`FitOptions::seed`].
    pub gibbs: GibbsOptions,
}

/// Training by minibatches.
#[derive(Clone, Debug)]
pub struct BatchOptions {
    /// Rows of a minibatch; all if there are fewer.
    pub size: usize,
    /// The rest.
    pub training: StochasticOptions,
}

impl BatchOptions {
    /// What a method trains with unless it is told otherwise: for `rsvgp` its paper's recipe
    /// ([`StochasticOptions::inverse_free`]), else [`BatchOptions::default`].
    pub fn of(method: &dyn Method) -> Self {
        match method.uncollapsed().map(|own| own.keeps) {
            Some(Keeps::Relaxed) => Self {
                size: StochasticOptions::inverse_free_batch(),
                training: StochasticOptions::inverse_free(),
            },
            _ => Self::default(),
        }
    }
}

impl Default for BatchOptions {
    fn default() -> Self {
        Self { size: 1024, training: StochasticOptions::default() }
    }
}

impl Default for FitOptions {
    fn default() -> Self {
        Self {
            kernel: "rbf".into(),
            likelihood: None,
            mean: None,
            method: "auto".into(),
            inducing: None,
            selection: Selection::KMeans,
            seed: 0,
            jitter: Jitter::default(),
            set: Vec::new(),
            freeze: Vec::new(),
            pilot: 1000,
            restarts: 0,
            train: TrainOptions {
                optimiser: OptimiserKind::Lbfgs(LbfgsOptions::fitting()),
                ..TrainOptions::default()
            },
            batches: Some(BatchOptions::default()),
            checkpoint: None,
            diagonal: false,
            tying: Tying::Natural,
            time_limit: None,
            gibbs: GibbsOptions::default(),
        }
    }
}

/// Draws that are kept with a model, at most: predictions average over them.
pub const KEPT_DRAWS: usize = 500;
/// Numbers that factors of draws with hyperparameters of their own may take, at most (512 MiB): there are fewer draws of
/// large models.
pub const KEPT_NUMBERS: usize = 1 << 26;
/// Rows up to which `auto` means exact inference.
pub const AUTO_EXACT: usize = 2000;
/// Inducing points unless a number is given.
pub const DEFAULT_INDUCING: usize = 512;

/// Prepares, trains and conditions a model; `&mut ()` observes nothing. If
/// [`FitOptions::checkpoint`] names a file that is there, the training that it holds goes on.
///
/// # Errors
/// As for [`prepare`] and [`crate::train::train()`]; [`crate::Error::File`] for a checkpoint that cannot be read or is of
/// another training.
pub fn fit(
    dataset: &Dataset,
    options: &FitOptions,
    engine: &dyn Engine,
    observer: &mut dyn Observer,
) -> Result<Fitted> {
    limited(options, observer, |observer| best_start(dataset, options, engine, observer))
}

/// The best of all starts.
fn best_start(
    dataset: &Dataset,
    options: &FitOptions,
    engine: &dyn Engine,
    observer: &mut dyn Observer,
) -> Result<Fitted> {
    let mut best: Option<(usize, Trained)> = None;
    let (mut starts, mut seconds, mut failures) = (Vec::new(), 0.0, Vec::new());
    for restart in 0..=options.restarts {
        if restart > 0 {
            let objective = best.as_ref().map(|(_, trained)| trained.report.objective);
            let event = Event::Restart { restart, of: options.restarts, best: objective };
            let stop = observer.event(event).is_break() || observer.interrupted();
            if stop && best.is_some() {
                break;
            }
        }
        match trained(dataset, &of_start(options, restart), engine, observer, restart) {
            Ok(trained) => {
                starts.push(trained.report.objective);
                seconds += trained.report.seconds;
                let so_far = best.as_ref().map_or(f64::NEG_INFINITY, |(_, b)| b.report.objective);
                // whatever the first ended at, there is something to keep
                if best.is_none() || trained.report.objective > so_far {
                    best = Some((restart, trained));
                }
            }
            Err(Error::Interrupted) if best.is_some() => break,
            Err(error) if error.is_recoverable() && options.restarts > 0 => failures.push(error),
            Err(error) => return Err(error),
        }
    }
    let Some((start, mut trained)) = best else {
        // without a model there was a failure
        return Err(failures.into_iter().next().unwrap_or(Error::Interrupted));
    };
    if options.restarts > 0 {
        trained.report.seconds = seconds;
        if let Some(first) = failures.first() {
            let count = failures.len();
            trained.origin.warnings.push(format!("{count} of the starts failed: {first}"));
        }
        trained.report.starts = starts;
    }
    let own = of_start(options, start);
    let learning = Learning { dataset, options: &own, engine, whole: start::whole(dataset, &own) };
    learning.end(trained, observer)
}

/// The options of a start: each has a checkpoint of its own.
fn of_start(options: &FitOptions, restart: usize) -> FitOptions {
    let mut own = options.clone();
    if let (Some(path), true) = (&mut own.checkpoint, restart > 0) {
        path.as_mut_os_string().push(format!(".restart-{restart}"));
    }
    own
}

/// A model after its training, before chains.
struct Trained {
    model: Model,
    origin: Origin,
    posterior: Posterior,
    report: TrainReport,
    /// Where chains stood.
    chains: Option<SamplingState>,
}

/// Prepares a model for a start and trains it, or goes on where its checkpoint was written.
fn trained(
    dataset: &Dataset,
    options: &FitOptions,
    engine: &dyn Engine,
    observer: &mut dyn Observer,
    restart: usize,
) -> Result<Trained> {
    let whole = start::whole(dataset, options);
    let learning = Learning { dataset, options, engine, whole };
    let there = options.checkpoint.as_deref().filter(|path| path.exists());
    let mut prepared = || start::prepare_start(dataset, options, engine, observer, restart);
    if let Some(path) = there
        && let Some(standing) = checkpoint::load_whole(path, dataset, options)?
    {
        // the start is a matter of the rows and the options alone: what has moved since are values
        let Start { mut model, reason, warnings } = prepared()?;
        checkpoint::set_values(&mut model, &standing.values, path)?;
        let origin = Origin::new(dataset, options.seed, reason, warnings);
        return learning.run(model, origin, Some(Held::Whole(standing.place)), observer);
    }
    if let Some(path) = there {
        let (mut fitted, held) = checkpoint::load(path, dataset, options)?;
        let report = fitted.report.take();
        let posterior = fitted.posterior.clone();
        let (model, origin) = fitted.into_parts();
        return match (held, report) {
            (held @ (Held::Training(_) | Held::Whole(_)), _) => {
                learning.run(model, origin, Some(held), observer)
            }
            (Held::Sampling(state), Some(report)) => {
                Ok(Trained { model, origin, posterior, report, chains: Some(state) })
            }
            (Held::Sampling(_), None) => Err(Error::File {
                path: path.into(),
                reason: "holds chains without a report of the training before them".into(),
            }),
        };
    }
    let Start { model, reason, warnings } = prepared()?;
    let origin = Origin::new(dataset, options.seed, reason, warnings);
    learning.run(model, origin, None, observer)
}

/// Trains a fitted model further, on these rows, which must be scaled as the model's were
/// ([`Scaling::Given`]). Kernel, likelihood, method and inducing points are the model's; of the
/// options only those of training count.
///
/// # Errors
/// [`crate::Error::Invalid`] if the columns or scales are not the model's; as for [`crate::train::train()`].
pub fn go_on(
    fitted: Fitted,
    dataset: &Dataset,
    options: &FitOptions,
    engine: &dyn Engine,
    observer: &mut dyn Observer,
) -> Result<Fitted> {
    checkpoint::same_columns(&fitted, dataset)?;
    let (mut model, mut origin) = fitted.into_parts();
    origin.rows = dataset.source.rows();
    origin.total_weight = dataset.total_weight;
    origin.warnings = dataset.warnings.clone();
    if model.method.full_sites().is_some() {
        // sites are of their rows
        let (rows, latents) = (dataset.source.rows(), model.latents(dataset.source.outputs()));
        model.q = Some(Variational::sites(rows, latents, Tying::Untied));
    }
    let learning = Learning { dataset, options, engine, whole: false };
    limited(options, observer, |observer| {
        let trained = learning.run(model, origin, None, observer)?;
        learning.end(trained, observer)
    })
}

/// Training and conditioning.
struct Learning<'a> {
    dataset: &'a Dataset,
    options: &'a FitOptions,
    engine: &'a dyn Engine,
    /// Whether `auto` sees all rows at once.
    whole: bool,
}

impl Learning<'_> {
    fn run(
        &self,
        mut model: Model,
        mut origin: Origin,
        held: Option<Held>,
        observer: &mut dyn Observer,
    ) -> Result<Trained> {
        if model.method.samples() && self.options.gibbs.hyperparameters {
            origin.warnings.extend(assumption(&slice::assume_priors(&mut model)));
        }
        let data = &*self.dataset.source;
        let whole = self.whole || !model.method.in_minibatches();
        let batches = self.options.batches.as_ref().filter(|_| !whole);
        let report = match (model.method.uncollapsed(), batches) {
            (Some(method), Some(batches)) => {
                let state = match held {
                    Some(Held::Training(state)) => Some(*state),
                    Some(_) => {
                        return Err(checkpoint::of_another(self.options, "all rows at once"));
                    }
                    None => None,
                };
                let mut report = self.in_batches(&mut model, &origin, batches, state, observer)?;
                if !observer.interrupted() {
                    // the estimates of an epoch are of a q that moved; this is the bound at the end
                    let bound = method.step(&model, self.engine, data, Want::Value)?.value;
                    report.objective = bound + model.log_prior();
                }
                report
            }
            _ => {
                let resume = match held {
                    Some(Held::Whole(place)) => Some(place),
                    Some(_) => return Err(checkpoint::of_another(self.options, "minibatches")),
                    None => None,
                };
                self.check_spread(&model)?;
                self.on_all_rows(&mut model, resume, observer)?
            }
        };
        if let Some(method) = model.method.uncollapsed() {
            method.tie(&mut model, self.engine, data)?;
        }
        let posterior = match model.posterior(self.engine, data) {
            // it was meant to end the training, which had ended: what was learnt is not thrown away
            Err(Error::Interrupted) => model.posterior(self.engine, data)?,
            outcome => outcome?,
        };
        Ok(Trained { model, origin, posterior, report, chains: None })
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

    /// Training on all rows at once, with checkpoints.
    fn on_all_rows(
        &self,
        model: &mut Model,
        resume: Option<Place>,
        observer: &mut dyn Observer,
    ) -> Result<TrainReport> {
        let mut write = |standing: &Standing| match &self.options.checkpoint {
            None => Ok(()),
            Some(path) => checkpoint::save_whole(path, self.dataset, self.options, standing),
        };
        let going = GoingOn {
            resume,
            checkpoint: if self.options.checkpoint.is_some() { Some(&mut write) } else { None },
        };
        let data = &*self.dataset.source;
        train_from(model, self.engine, data, &self.options.train, going, observer)
    }

    /// What comes after training: chains, and what a person should know.
    fn end(&self, trained: Trained, observer: &mut dyn Observer) -> Result<Fitted> {
        let Trained { model, mut origin, posterior, report, chains } = trained;
        let (posterior, report) = match model.method.samples() && !observer.interrupted() {
            true => {
                self.sampled(&model, &origin, (posterior, report), chains.as_ref(), observer)?
            }
            false => (posterior, report),
        };
        origin.warnings.extend(remarks(&model, &posterior, &report));
        Ok(origin.fitted(model, posterior, Some(report)))
    }

    /// The posterior by chains from the hyperparameters found.
    fn sampled(
        &self,
        model: &Model,
        origin: &Origin,
        (posterior, mut report): (Posterior, TrainReport),
        state: Option<&SamplingState>,
        observer: &mut dyn Observer,
    ) -> Result<(Posterior, TrainReport)> {
        let rows = collect(&*self.dataset.source)?;
        let now = origin.clone().fitted(model.clone(), posterior.clone(), Some(report.clone()));
        let settings = checkpoint::settings(self.options, self.dataset.source.rows());
        let mut write = |mut state: SamplingState| {
            state.settings.clone_from(&settings);
            let path = self.options.checkpoint.as_deref();
            path.map_or(Ok(()), |path| io::save_sampling(&now, &state, path))
        };
        let write: Option<Checkpointer<'_>> =
            if self.options.checkpoint.is_some() { Some(&mut write) } else { None };
        let from = state.map_or(0, |state| state.sweeps);
        let options = GibbsOptions { seed: self.options.seed, ..self.options.gibbs.clone() };
        let (clock, mut sweeps) = (Instant::now(), from);
        let draws =
            gibbs::sample_from(model, &rows, &options, state, write, &mut |done, total| {
                sweeps = done;
                let seconds = clock.elapsed().as_secs_f64();
                let flow = observer.event(Event::Sampling { done, total, seconds });
                // what is complete is not interrupted
                let stop = done < total && observer.interrupted();
                if stop { ControlFlow::Break(()) } else { flow }
            })?;
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
        let most = match options.hyperparameters {
            false => KEPT_DRAWS,
            true => {
                (KEPT_NUMBERS / (points * points * model.kernels.len()).max(1)).clamp(1, KEPT_DRAWS)
            }
        };
        let (kept, hyperparameters) = draws.thinned(most);
        let posterior = match (kept.is_empty(), options.hyperparameters) {
            // interrupted before the first draw: what coordinate ascent knows is kept
            (true, _) => posterior,
            (_, true) => Posterior::of_sampled(model, x, kept, hyperparameters)?,
            (_, false) => Posterior::of_draws(model, x, kept)?,
        };
        Ok((posterior, report))
    }

    /// Training by minibatches, with checkpoints.
    fn in_batches(
        &self,
        model: &mut Model,
        origin: &Origin,
        batches: &BatchOptions,
        state: Option<TrainingState>,
        observer: &mut dyn Observer,
    ) -> Result<TrainReport> {
        let source = &*self.dataset.source;
        let size = batches.size.min(source.rows());
        let mut rows = source.batches(size, self.options.seed)?;
        let mut write = |model: &Model, state: &TrainingState| match &self.options.checkpoint {
            None => Ok(()),
            Some(path) => {
                let posterior = Posterior::of_q(model)?;
                let now = origin.clone().fitted(model.clone(), posterior, None);
                io::save_checkpoint(&now, state, path)
            }
        };
        let surroundings = Surroundings {
            settings: checkpoint::settings(self.options, source.rows()),
            held_out: self.dataset.held_out.as_deref(),
            resume: state,
            checkpoint: self.options.checkpoint.is_some().then_some(&mut write),
        };
        let training = StochasticOptions { seed: self.options.seed, ..batches.training.clone() };
        train_batches(model, self.engine, &mut *rows, &training, surroundings, observer)
    }
}

/// That priors were assumed.
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

/// Nats by which a bound on the log evidence of classes may miss 0 before they count as certain.
const CERTAIN: f64 = 1e-2;

/// What a person should know about the numerics of a training.
fn remarks(model: &Model, posterior: &Posterior, report: &TrainReport) -> Vec<String> {
    let mut remarks = params::remarks(&model.params());
    // nothing but a mean that grows without bound gives all classes of training for certain
    if model.likelihood.classes().is_some() && report.objective > -CERTAIN {
        let weights = model.params().into_iter().find(|(path, _)| path == "mean.weights");
        if let Some((_, weights)) = weights.filter(|(_, weights)| !weights.frozen) {
            let largest = weights.value().iter().fold(0.0, |m: f64, w| m.max(w.abs()));
            remarks.push(format!(
                "the linear mean separates the classes, and its weights grow without bound (one is {largest:.3}): \
                 probabilities of new rows are too sure; the kernel `linear` instead, as in `rbf + linear`, has a \
                 prior for such weights"
            ));
        }
    }
    let worst = report.mixing.as_ref().map_or(0.0, |mixing| {
        mixing.hyperparameters.iter().fold(mixing.split_rhat, |m, h| m.max(h.split_rhat))
    });
    if worst > 1.05 {
        remarks.push(format!(
            "the chains have not mixed well (split R̂ up to {worst:.3}): more draws, or a longer burn-in"
        ));
    }
    if report.failures > 0 {
        remarks.push(format!(
            "{} of {} evaluations met a matrix that was not positive definite; the optimiser \
             stepped back",
            report.failures, report.evaluations
        ));
    }
    if report.diagnostics.negative > 0 {
        remarks.push(format!(
            "at {} rows the inducing points explain more variance than there is, by rounding: raise \
             the jitter",
            report.diagnostics.negative
        ));
    }
    if let Jitter::Relative(fraction) = model.jitter {
        let used = posterior.factor().relative;
        if model.method.is_sparse() && used > fraction * 1.5 {
            remarks.push(format!(
                "the jitter of Kuu was raised from {fraction:e} to {used:e} of its mean diagonal: \
                 inducing points lie very close together, or lengthscales are very long"
            ));
        }
    }
    remarks
}

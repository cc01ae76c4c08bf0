//! From data to a model that can be used: defaults, starting values, training, conditioning.

mod again;
mod assumed;
mod averaging;
mod beginning;
mod by_term;
mod calendar;
mod certain;
mod checkpoint;
pub(crate) mod checks;
mod choice;
mod collapse;
mod constants;
mod covering;
mod dataset;
mod deep;
mod derived;
mod distribution;
mod division;
mod enough;
#[cfg(feature = "files")]
pub mod files;
mod findings;
mod fitted;
mod guards;
mod hidden;
mod isolated;
mod judge;
mod judging;
mod keeping;
mod kernel_choice;
mod learning;
mod left_out;
mod likelihood;
mod log_inputs;
mod merging;
mod mixed;
mod moments;
mod near;
mod nearby;
mod noisy_inputs;
pub(crate) use crate::data::moments::spreads;
mod distinct;
mod pilot;
mod places;
mod placing;
mod predictions;
pub mod quality;
mod quiet;
mod responses;
mod restarts;
mod revive;
mod sample;
mod screen;
mod seasons;
mod select;
mod series;
pub mod settings;
mod sizes;
mod start;
#[cfg(feature = "tables")]
mod tables;
mod target_transform;
mod time_limit;
mod trial;
mod units;
mod update;
mod weights;
mod window;

use again::Again;
pub use averaging::{FEW, Hyperparameters};
use checkpoint::Held;
pub use choice::{auto_rule, planned_batches};
pub use dataset::{Dataset, Scaling, Standardise};
pub use division::{Division, Made};
use fitted::Origin;
pub use fitted::{Fitted, Of};
pub use kernel_choice::is_automatic;
use learning::{Learning, Trained};
pub use likelihood::{likelihood, likelihood_for};
pub use log_inputs::LogInputs;
pub use merging::Purpose;
pub use noisy_inputs::InputDeviations;
pub use predictions::ParameterRow;
pub use sample::sample_rows;
pub use start::Start;
#[cfg(feature = "tables")]
pub use tables::encoded;
pub use target_transform::TransformTargets;
pub use update::{KeptRows, UpdateOptions, UpdateReport, update};

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::inducing::select::Selection;
use crate::linalg::{Jitter, Precision};
use crate::methods::{self, Keeps, Method};
use crate::optim::LbfgsOptions;
use crate::samplers::gibbs::GibbsOptions;
use crate::train::{Event, Observer, OptimiserKind, StochasticOptions, TrainOptions};
use crate::variational::Tying;
use std::path::PathBuf;
use time_limit::limited;

/// What to fit and how. [`FitOptions::default`] is a sensible start for any table.
#[derive(Clone, Debug)]
pub struct FitOptions {
    /// Kernel specification, such as `rbf` or `matern52 + linear`; separated by `;` one for each latent
    /// function. `auto` judges a handful of them on a sample of the rows and takes the best ([`TrainReport::kernels`]).
    ///
    /// [`TrainReport::kernels`]: crate::train::TrainReport::kernels
    pub kernel: String,
    /// Whether the values in it, with their bounds and priors, are in the data's units, such as a period in days; else they
    /// are on the model's scale, that of the standardised columns.
    pub kernel_in_data_units: bool,
    /// Likelihood specification, such as `poisson` or `bernoulli(link=logit)`; by default what fits the targets: `bernoulli` for
    /// two classes, `softmax` for more, else `gaussian` ([`likelihood_for`]).
    pub likelihood: Option<String>,
    /// Mean function by name or as JSON; by default `zero` for standardised targets, else `constant`.
    pub mean: Option<String>,
    /// Which inputs are learnt from by their logarithms ([`Scaler::x_log`](crate::data::Scaler::x_log)).
    pub log_inputs: LogInputs,
    /// Seasons for which the kernel gets a periodic term: `1y` of dates, `24` in the units of the only input, `day=1y`.
    pub seasons: Vec<String>,
    /// Which function of the targets is learnt ([`Scaler::y_transform`](crate::data::Scaler::y_transform)); predictions, scores
    /// and draws are of the targets.
    pub target_transform: TransformTargets,
    /// Method by name, or `auto`.
    pub method: String,
    /// Number of inducing points; by default 512, or as many as there are rows. For the methods that train q a quarter of the
    /// rows up to 200 points, then about 7 times the square root of the rows, from 50 to 512.
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
    /// Most rows that starting values are judged by. On at most 200 of them the lengthscales that the spreads of the
    /// inputs suggest, and shorter ones, get a few iterations each; the best is kept. Before a sparse method starts on
    /// many rows, a *pilot* then trains the hyperparameters on this many random rows, without inducing points (on at most
    /// 300 if the noise is not Gaussian); the sparse objective compares its result with its start. Of a series, twice as
    /// many rows (or at most 300) in windows of neighbours are looked at. 0 to take the plain start unseen.
    pub pilot: usize,
    /// Whether lengthscales, where there is one for each of several inputs, have a weak log-normal prior with its mode at their
    /// plain start, √D standard deviations (after Hvarfner, Hellsten & Nardi 2024); not those with
    /// a given value or prior. Reported objectives exclude it, to compare kernels.
    pub lengthscale_prior: bool,
    /// What predictions do about hyperparameters that the rows leave open.
    pub hyperparameters: Hyperparameters,
    /// Whether weights say how much rows matter beside each other: then the data set has them divided by their mean
    /// ([`Dataset::make_weights_relative`]).
    pub relative_weights: bool,
    /// Trainings from further starts, besides that from the values that the data suggest. Each draws the
    /// hyperparameters that are not frozen: from their priors, lengthscales together from a hundredth to three times the
    /// spreads of the inputs, another positive number within a factor of ten of where it would start (its logarithm
    /// uniform), any other number a standard normal away. The best objective wins, so that the result is never worse
    /// than without.
    pub restarts: usize,
    /// Optimiser and budget where all rows are seen at once.
    pub train: TrainOptions,
    /// Minibatches, for the methods that can have them ([`BatchOptions::of`] has those that suit a method); none to see all
    /// rows at once. The method `auto`
    /// sees rows all at once anyway while that costs less, unless there are held-out rows.
    pub batches: Option<BatchOptions>,
    /// File to which a training, or chains, write their state now and then, and from which they
    /// resume if the file is there: for minibatches and chains a model file like any other. Every
    /// restart has its own file, with `.restart-1` and so on appended.
    pub checkpoint: Option<PathBuf>,
    /// Whether q keeps only the diagonals of its covariances, for the methods that train q.
    pub diagonal: bool,
    /// What stays as it is when hyperparameters move, for the methods that keep q as sites.
    pub tying: Tying,
    /// Seconds after which a fit ends, preparation included, with the best found so far
    /// ([`Deadline`](crate::train::Deadline)); none for no limit. Learning rates of minibatches fall by the time as they
    /// fall by the steps, so that such a training does not repeat to the bit. A checkpoint resumes
    /// from there, and every run has the whole limit again.
    pub time_limit: Option<f64>,
    /// What products of rows are made in while a method with inducing points is trained: in mixed precision
    /// ([`Precision::Single`]) as long as the bound keeps its digits.
    pub precision: Precision,
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
    /// Returns what a method trains with unless set otherwise: for `rsvgp` its paper's recipe
    /// ([`StochasticOptions::inverse_free`]), else [`BatchOptions::default`].
    pub fn of(method: &dyn Method) -> Self {
        if method.architecture().is_some() {
            return Self::of_deep();
        }
        match method.with_q().map(|q| q.keeps) {
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
            kernel: "auto".into(),
            kernel_in_data_units: false,
            likelihood: None,
            mean: None,
            log_inputs: LogInputs::Auto,
            seasons: Vec::new(),
            target_transform: TransformTargets::None,
            method: "auto".into(),
            inducing: None,
            selection: Selection::KMeans,
            seed: 0,
            jitter: Jitter::default(),
            set: Vec::new(),
            freeze: Vec::new(),
            pilot: 1000,
            lengthscale_prior: true,
            hyperparameters: Hyperparameters::Auto,
            relative_weights: false,
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
            precision: Precision::Double,
            gibbs: GibbsOptions::default(),
        }
    }
}

/// Most numbers that draws of a sampled posterior may take (512 MiB), factors of draws with their
/// own hyperparameters included: where all draws need more, fewer are averaged, with a warning.
pub const KEPT_NUMBERS: usize = 1 << 26;
/// Rows up to which `auto` means exact inference: its training costs no more than that of a sparse bound with
/// [`DEFAULT_INDUCING`] points then, by the counts of [`auto_rule`].
pub const AUTO_EXACT: usize = 4300;
/// Rows up to which `auto` sees all rows at once wherever it has inducing points or sites, whatever that costs.
pub const AUTO_WHOLE: usize = 2000;
/// Inducing points unless a number is given.
pub const DEFAULT_INDUCING: usize = 512;

/// Builds a model with starting values from the data: lengthscales √D standard deviations (then two random rows
/// have a correlation near e⁻¹ whatever D is) or a fraction of that, whichever explains at most 200 rows best; the
/// kernel's variance that of Gaussian targets (else 1); what the likelihood makes of the targets; inducing points as
/// asked for; q at the prior; then the values that were given.
///
/// # Errors
/// [`Error::Spec`], [`Error::Invalid`] or a parameter error for options that do not fit.
pub fn prepare(
    dataset: &Dataset,
    options: &FitOptions,
    engine: &dyn Engine,
    observer: &mut dyn Observer,
) -> Result<Start> {
    let (own, options) = log_inputs::resolved(dataset, options, engine, observer)?;
    let dataset = own.as_ref().unwrap_or(dataset);
    let own = target_transform::resolved(dataset, &options, engine, observer)?;
    let dataset = own.as_ref().unwrap_or(dataset);
    let (options, _) = kernel_choice::resolved(dataset, &options, engine, observer)?;
    start::prepare_start(dataset, &options, engine, observer, 0)
}

/// Prepares, trains and conditions a model; `&mut ()` observes nothing. If
/// [`FitOptions::checkpoint`] names a file that is there, the training that it holds is resumed.
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
    let _taken = checkpoint::take(options)?;
    let options = &*mixed::resolved(dataset, options)?;
    // not after the whole training
    guards::options(dataset, options)?;
    let method = methods::find(&options.method).ok();
    let deep = method.filter(|entry| entry.method.architecture().is_some());
    limited(options, observer, |observer| {
        let (own, options) = log_inputs::resolved(dataset, options, engine, observer)?;
        let dataset = own.as_ref().unwrap_or(dataset);
        let own = target_transform::resolved(dataset, &options, engine, observer)?;
        let dataset = own.as_ref().unwrap_or(dataset);
        let (options, kernels) = kernel_choice::resolved(dataset, &options, engine, observer)?;
        let mut fitted = match (deep, &dataset.deviations) {
            (None, Some(own)) => noisy_inputs::fit(dataset, own, &options, engine, observer),
            (Some(_), Some(_)) => Err(Error::Invalid(
                "a deep model does not learn from inputs with standard deviations: leave them out, or \
                 choose another method"
                    .into(),
            )),
            (Some(entry), None) => deep::fit(dataset, &options, entry, observer),
            (None, None) => best_start(dataset, &options, engine, observer),
        }?;
        if let Some(report) = &mut fitted.report {
            report.kernels = kernels;
        }
        let seen = deep.is_none() && dataset.deviations.is_none() && options.pilot > 0;
        fitted.warnings.extend(seasons::remarks(dataset, &options)?);
        guards::at_the_end(fitted, dataset, &options, seen)
    })
}

/// Returns the best of all starts.
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
        match trained_from(dataset, &of_start(options, restart), engine, observer, restart) {
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
    let again = Again { dataset, options, engine };
    let (trained, own) = again.improved(trained, start, observer)?;
    let learning = Learning { dataset, options: &own, engine, whole: choice::whole(dataset, &own) };
    learning.end(trained, observer)
}

/// Returns the options of a start: each has its own checkpoint.
fn of_start(options: &FitOptions, restart: usize) -> FitOptions {
    let mut own = options.clone();
    if let (Some(path), true) = (&mut own.checkpoint, restart > 0) {
        path.as_mut_os_string().push(format!(".restart-{restart}"));
    }
    own
}

/// Prepares a model for a start and trains it, or resumes where its checkpoint was written.
fn trained_from(
    dataset: &Dataset,
    options: &FitOptions,
    engine: &dyn Engine,
    observer: &mut dyn Observer,
    restart: usize,
) -> Result<Trained> {
    let whole = choice::whole(dataset, options);
    let learning = Learning { dataset, options, engine, whole };
    let there = options.checkpoint.as_deref().filter(|path| path.exists());
    let mut prepared = || -> Result<_> {
        let Start { mut model, reason, mut warnings, judged } =
            start::prepare_start(dataset, options, engine, observer, restart)?;
        learning.assume_priors(&mut model, &mut warnings);
        let mut origin = Origin::new(dataset, options.seed, reason, warnings);
        origin.judged = judged;
        Ok((model, origin))
    };
    if let Some(path) = there
        && let Some(standing) = checkpoint::load_whole(path, dataset, options)?
    {
        // the start depends only on the rows and the options: what has moved since are values
        let (mut model, origin) = prepared()?;
        checkpoint::set_values(&mut model, &standing.values, path)?;
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
    let (model, origin) = prepared()?;
    learning.run(model, origin, None, observer)
}

/// Trains a fitted model further, on these rows, which must be scaled as the model's were ([`Scaling::Given`]).
/// Kernel, likelihood, method and inducing points are the model's; of the options only those of training count.
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
    let _taken = checkpoint::take(options)?;
    fitted.check_certain("continuing the training")?;
    if options.target_transform != TransformTargets::None
        || matches!(&options.log_inputs, LogInputs::Named(names) if !names.is_empty())
        || !seasons::named(options).is_empty()
    {
        return Err(Error::Invalid(
            "continuing a training keeps its kernel and functions of targets and inputs: leave out `--target-transform`, \
             `--log-inputs` and `--season`, or fit a new model".into(),
        ));
    }
    if dataset.deviations.is_some() {
        return Err(Error::Invalid(
            "continuing a training takes no standard deviations of inputs: fit a new model".into(),
        ));
    }
    checks::same_columns(&fitted, dataset)?;
    fitted.model.check_shallow("continuing the training")?;
    let (mut model, mut origin) = fitted.into_parts();
    origin.rows = dataset.rows;
    origin.total_weight = dataset.total_weight;
    origin.absent.clone_from(&dataset.absent);
    origin.log_slope = dataset.log_slope;
    origin.warnings = dataset.warnings.clone();
    origin.warnings.extend(checks::beyond(dataset)?);
    if let Some(q) = model.method.with_q().filter(|q| !q.is_of_points()) {
        // sites are of their rows
        let (rows, latents) = (dataset.source.rows(), model.latents(dataset.source.outputs()));
        model.q = Some(q.start([rows, 0, latents], options.tying, options.diagonal));
    }
    // the method is the model's, whatever `auto` would choose for these rows
    let own = FitOptions { method: model.method.name().into(), ..options.clone() };
    let own = &*mixed::resolved(dataset, &own)?;
    let learning = Learning { dataset, options: own, engine, whole: false };
    learning.assume_priors(&mut model, &mut origin.warnings);
    limited(options, observer, |observer| {
        let mut trained = learning.run(model, origin, None, observer)?;
        // a part of a few rows, one after the other, is not learnt to its end
        if options.batches.as_ref().is_some_and(|own| dataset.source.rows() <= own.size) {
            trained.report.rising = None;
        }
        guards::at_the_end(learning.end(trained, observer)?, dataset, options, false)
    })
}

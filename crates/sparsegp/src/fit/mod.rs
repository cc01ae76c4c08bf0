//! From data to a model that can be used: defaults, starting values, training, conditioning.

mod dataset;
mod fitted;
mod pilot;
mod select;
mod start;

pub use dataset::{Dataset, Standardise};
pub use fitted::{Fitted, Of, ParameterRow};
pub use start::{Start, prepare, sample_rows};

use crate::engine::{Engine, Want};
use crate::error::Result;
use crate::inducing::select::Selection;
use crate::linalg::Jitter;
use crate::model::Model;
use crate::train::{
    Observer, StochasticOptions, Surroundings, TrainOptions, TrainReport, train, train_batches,
};

/// What to fit and how. [`FitOptions::default`] is a sensible start for any table.
#[derive(Clone, Debug)]
pub struct FitOptions {
    /// Kernel specification, such as `rbf` or `matern52 + linear`; separated by `;` one for each latent
    /// function.
    pub kernel: String,
    /// Likelihood specification, such as `poisson` or `bernoulli(link=logit)`; by default what fits
    /// the targets: `bernoulli` for two classes, `softmax` for more, else `gaussian`.
    pub likelihood: Option<String>,
    /// Mean function by name or as JSON; by default `zero` for standardised targets, else `constant`.
    pub mean: Option<String>,
    /// Method by name, or `auto`.
    pub method: String,
    /// Number of inducing points; by default 512, or fewer where there are fewer rows.
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
    /// 0 for no pilot.
    pub pilot: usize,
    /// Optimiser and budget where all rows are seen at once.
    pub train: TrainOptions,
    /// Minibatches, for the methods that can have them; none to see all rows at once.
    pub batches: Option<BatchOptions>,
    /// Whether q keeps the diagonals of its covariances alone, for the methods that train q.
    pub diagonal: bool,
}

/// Training by minibatches.
#[derive(Clone, Debug)]
pub struct BatchOptions {
    /// Rows of a minibatch; all if there are fewer.
    pub size: usize,
    /// The rest.
    pub training: StochasticOptions,
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
            train: TrainOptions::default(),
            batches: Some(BatchOptions::default()),
            diagonal: false,
        }
    }
}

/// Rows up to which `auto` means exact inference.
pub const AUTO_EXACT: usize = 2000;
/// Inducing points unless a number is given.
pub const DEFAULT_INDUCING: usize = 512;

/// Prepares, trains and conditions a model; `&mut ()` observes nothing.
///
/// # Errors
/// As for [`prepare`] and [`train()`].
pub fn fit(
    dataset: &Dataset,
    options: &FitOptions,
    engine: &dyn Engine,
    observer: &mut dyn Observer,
) -> Result<Fitted> {
    let Start { mut model, reason, mut warnings } = prepare(dataset, options, engine, observer)?;
    let data = &*dataset.source;
    let report = match (model.method.uncollapsed(), &options.batches) {
        (Some(method), Some(batches)) => {
            let mut report =
                in_batches(&mut model, dataset, batches, options.seed, engine, observer)?;
            if !observer.interrupted() {
                // the estimates of an epoch are of a q that moved; this is the bound at the end
                report.objective = method.step(&model, engine, data, Want::Value)?.value;
            }
            report
        }
        _ => train(&mut model, engine, data, &options.train, observer)?,
    };
    if report.failures > 0 {
        warnings.push(format!(
            "{} of {} evaluations met a matrix that was not positive definite; the optimiser \
             stepped back",
            report.failures, report.evaluations
        ));
    }
    if report.diagnostics.negative > 0 {
        warnings.push(format!(
            "at {} rows the inducing points explain more variance than there is, by rounding: raise \
             the jitter",
            report.diagnostics.negative
        ));
    }
    let posterior = model.posterior(engine, data)?;
    if let Jitter::Relative(fraction) = model.jitter {
        let used = posterior.factor().relative;
        if model.method.is_sparse() && used > fraction * 1.5 {
            warnings.push(format!(
                "the jitter of Kuu was raised from {fraction:e} to {used:e} of its mean diagonal: \
                 inducing points lie very close together, or lengthscales are very long"
            ));
        }
    }
    Ok(Fitted {
        model,
        posterior,
        scaler: dataset.scaler.clone(),
        input_names: dataset.input_names.clone(),
        target_names: dataset.target_names.clone(),
        weight_name: dataset.weight_name.clone(),
        extra_name: dataset.extra_name.clone(),
        classes: dataset.classes.clone(),
        target_mean: dataset.target_mean.clone(),
        target_variance: dataset.target_variance.clone(),
        rows: data.rows(),
        seed: options.seed,
        reason,
        report: Some(report),
        warnings,
    })
}

/// Trains by minibatches.
fn in_batches(
    model: &mut Model,
    dataset: &Dataset,
    options: &BatchOptions,
    seed: u64,
    engine: &dyn Engine,
    observer: &mut dyn Observer,
) -> Result<TrainReport> {
    let size = options.size.min(dataset.source.rows());
    let mut batches = dataset.source.batches(size, seed)?;
    let held_out = dataset.held_out.as_deref();
    let surroundings = Surroundings { held_out, ..Surroundings::default() };
    train_batches(model, engine, &mut *batches, &options.training, surroundings, observer)
}

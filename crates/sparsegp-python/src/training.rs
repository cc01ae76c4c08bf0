//! Options of a training as Python sends them.

use crate::errors::exception;
use pyo3::prelude::*;
use serde::Deserialize;
use sparsegp::Error;
use sparsegp::fit::{BatchOptions, FitOptions};
use sparsegp::inducing::select::Selection;
use sparsegp::linalg::Jitter;
use sparsegp::methods;
use sparsegp::optim::AdamOptions;
use sparsegp::samplers::Target;
use sparsegp::samplers::gibbs::GibbsOptions;
use sparsegp::train::{EmOptions, OptimiserKind, StochasticOptions, TrainOptions};
use sparsegp::variational::Tying;
use std::path::PathBuf;

/// Everything has the library's default where it is not given.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    kernel: Option<String>,
    kernel_in_data_units: bool,
    likelihood: Option<String>,
    mean: Option<String>,
    method: Option<String>,
    inducing: Option<usize>,
    selection: Option<String>,
    seed: u64,
    jitter: Option<f64>,
    set: Vec<(String, Vec<f64>)>,
    freeze: Vec<String>,
    pilot: Option<usize>,
    /// Whether lengthscales have their weak default prior.
    lengthscale_prior: Option<bool>,
    restarts: usize,
    optimiser: Option<String>,
    max_iterations: Option<usize>,
    /// [`TrainOptions::ending_at`]; without one training goes on to the optimum's last digits.
    tolerance: Option<f64>,
    /// Whether all rows are seen at once.
    full_batch: bool,
    batch_size: Option<usize>,
    epochs: Option<usize>,
    learning_rate: Option<f64>,
    last_rate: Option<f64>,
    inducing_rate: Option<f64>,
    /// 0 for Adam on q too.
    natural_rate: Option<f64>,
    patience: Option<usize>,
    checkpoint: Option<PathBuf>,
    /// Seconds.
    time_limit: Option<f64>,
    diagonal: bool,
    tying: Option<String>,
    e_steps: Option<usize>,
    m_steps: Option<usize>,
    /// Classes that move in a step of `svi`.
    classes_per_step: Option<usize>,
    chains: Option<usize>,
    draws: Option<usize>,
    burn_in: Option<usize>,
    thin: Option<usize>,
    /// `variational` or `fitc`.
    law: Option<String>,
    /// Whether chains sample hyperparameters too.
    hyperparameters: bool,
}

fn invalid(text: String) -> PyErr {
    exception(Error::Invalid(text))
}

fn positive(name: &str, value: Option<f64>) -> PyResult<()> {
    match value {
        Some(v) if !(v > 0.0 && v.is_finite()) => {
            Err(invalid(format!("{name} is {v}; it must be a positive number")))
        }
        _ => Ok(()),
    }
}

impl Options {
    /// Refuses numbers that the library takes for granted.
    fn check(&self) -> PyResult<()> {
        positive("learning_rate", self.learning_rate)?;
        positive("last_rate", self.last_rate)?;
        positive("inducing_rate", self.inducing_rate)?;
        positive("time_limit", self.time_limit)?;
        if let Some(rate) = self.natural_rate.filter(|rate| !(0.0..=1.0).contains(rate)) {
            return Err(invalid(format!("natural_rate is {rate}; it must be from 0 to 1")));
        }
        if let Some(jitter) = self.jitter.filter(|j| !(*j >= 0.0 && j.is_finite())) {
            return Err(invalid(format!("jitter is {jitter}; it must be a number from 0")));
        }
        let method = self.method.as_deref().map(methods::find);
        let svi = method.is_some_and(|found| found.is_ok_and(|entry| entry.name == "svi"));
        if self.classes_per_step.is_some() && (!svi || self.full_batch) {
            return Err(invalid(format!(
                "classes_per_step is for the method `svi` by minibatches; the method is `{}`{}",
                self.method.as_deref().unwrap_or("auto"),
                if self.full_batch { ", and full_batch is on" } else { "" }
            )));
        }
        let entry = self.method.as_deref().and_then(|name| methods::find(name).ok());
        let rootless = entry.filter(|e| e.method.architecture().is_some_and(|a| a.is_rootless()));
        if let (Some(deep), Some(_)) = (rootless, self.natural_rate.filter(|rate| *rate > 0.0)) {
            return Err(invalid(format!(
                "natural_rate is for layers of kind w and m; the method is `{}`",
                deep.name
            )));
        }
        if let Some(tolerance) = self.tolerance.filter(|t| !(*t >= 0.0 && t.is_finite())) {
            return Err(invalid(format!("tolerance is {tolerance}; it must be a number from 0")));
        }
        if self.batch_size == Some(0) {
            return Err(invalid("batch_size is 0; it must be at least 1".into()));
        }
        Ok(())
    }

    /// What the method trains with unless it is told otherwise.
    fn batches(&self) -> BatchOptions {
        let entry = self.method.as_deref().and_then(|name| methods::find(name).ok());
        entry.map_or_else(BatchOptions::default, |entry| BatchOptions::of(entry.method))
    }

    /// Training by minibatches.
    pub fn stochastic(&self) -> PyResult<StochasticOptions> {
        self.check()?;
        let mut default = self.batches().training;
        default.following.seed = self.seed;
        let learning_rate = self.learning_rate.unwrap_or(default.adam.learning_rate);
        Ok(StochasticOptions {
            epochs: self.epochs,
            adam: AdamOptions { learning_rate, ..default.adam },
            last_rate: self.last_rate.unwrap_or(default.last_rate),
            inducing_rate: self.inducing_rate.unwrap_or(default.inducing_rate),
            natural: self.natural_rate.map_or(default.natural, |rate| (rate > 0.0).then_some(rate)),
            em: match (self.e_steps, self.m_steps) {
                (None, None) => None,
                (e, m) => Some((e.unwrap_or(1), m.unwrap_or(1))),
            },
            classes_per_step: self.classes_per_step,
            seed: self.seed,
            patience: self.patience.unwrap_or(default.patience),
            ..default
        })
    }

    /// Training on all rows at once.
    pub fn whole(&self) -> PyResult<TrainOptions> {
        self.check()?;
        let default = self.tolerance.map_or_else(TrainOptions::default, TrainOptions::ending_at);
        let em = default.em;
        let optimiser = match self.optimiser.as_deref() {
            None | Some("lbfgs") => default.optimiser.clone(),
            Some("adam") => {
                let learning_rate =
                    self.learning_rate.unwrap_or(AdamOptions::default().learning_rate);
                OptimiserKind::Adam(AdamOptions { learning_rate, ..AdamOptions::default() })
            }
            Some(other) => {
                return Err(invalid(format!(
                    "optimiser is `{other}`; it must be `lbfgs` or `adam`"
                )));
            }
        };
        Ok(TrainOptions {
            optimiser,
            max_iterations: self.max_iterations.unwrap_or(default.max_iterations),
            em: EmOptions {
                e_steps: self.e_steps.unwrap_or(em.e_steps),
                m_steps: self.m_steps.unwrap_or(em.m_steps),
                rate: self.natural_rate.or(em.rate),
                // who says how to alternate wants that
                rounds: em.rounds.filter(|_| self.e_steps.or(self.m_steps).is_none()),
                ..em
            },
            ..default
        })
    }

    /// For [`sparsegp::fit`].
    pub fn fit_options(&self, points: Option<sparsegp::linalg::Mat<f64>>) -> PyResult<FitOptions> {
        let default = FitOptions::default();
        let selection = match (points, &self.selection) {
            (Some(points), _) => Selection::Given(points),
            (None, Some(name)) => name.parse().map_err(exception)?,
            (None, None) => default.selection,
        };
        let batches = match self.full_batch {
            true => None,
            false => Some(BatchOptions {
                size: self.batch_size.unwrap_or(self.batches().size),
                training: self.stochastic()?,
            }),
        };
        Ok(FitOptions {
            kernel: self.kernel.clone().unwrap_or(default.kernel),
            kernel_in_data_units: self.kernel_in_data_units,
            likelihood: self.likelihood.clone(),
            mean: self.mean.clone(),
            method: self.method.clone().unwrap_or(default.method),
            inducing: self.inducing,
            selection,
            seed: self.seed,
            jitter: self.jitter.map_or(default.jitter, Jitter::Relative),
            set: self.set.clone(),
            freeze: self.freeze.clone(),
            pilot: self.pilot.unwrap_or(default.pilot),
            lengthscale_prior: self.lengthscale_prior.unwrap_or(default.lengthscale_prior),
            restarts: self.restarts,
            train: self.whole()?,
            batches,
            checkpoint: self.checkpoint.clone(),
            time_limit: self.time_limit,
            diagonal: self.diagonal,
            tying: self.tying()?.unwrap_or(default.tying),
            gibbs: self.chains()?,
        })
    }

    /// For [`sparsegp::fit::go_on`] with `rows` that stand for `population`: unless a rate is given, no
    /// minibatch moves q by more than its share.
    pub fn part_options(&self, rows: usize, population: usize) -> PyResult<FitOptions> {
        let mut options = self.fit_options(None)?;
        if let (None, Some(batches)) = (self.natural_rate, &mut options.batches) {
            let share = batches.size.min(rows) as f64 / population as f64;
            let natural = &mut batches.training.natural;
            *natural = natural.map(|rate| rate.min(share));
        }
        Ok(options)
    }

    /// How chains run.
    fn chains(&self) -> PyResult<GibbsOptions> {
        let default = GibbsOptions::default();
        let target = match self.law.as_deref() {
            None | Some("variational") => Target::Variational,
            Some("fitc") => Target::Fitc,
            Some(other) => {
                return Err(invalid(format!(
                    "law is `{other}`; it must be `variational` or `fitc`"
                )));
            }
        };
        Ok(GibbsOptions {
            chains: self.chains.unwrap_or(default.chains),
            draws: self.draws.unwrap_or(default.draws),
            burn_in: self.burn_in.unwrap_or(default.burn_in),
            thin: self.thin.unwrap_or(default.thin),
            seed: self.seed,
            target,
            hyperparameters: self.hyperparameters,
            ..default
        })
    }

    /// How sites are tied.
    pub fn tying(&self) -> PyResult<Option<Tying>> {
        self.tying.as_deref().map(tying).transpose()
    }

    /// Rows of a minibatch, if there are to be minibatches.
    pub fn batch_size(&self) -> Option<usize> {
        self.batch_size
    }

    /// The kernel, empty if none is given.
    pub fn kernel(&self) -> &str {
        self.kernel.as_deref().unwrap_or_default()
    }

    /// The method.
    pub fn method(&self) -> &str {
        self.method.as_deref().unwrap_or("auto")
    }

    /// Whether a number of inducing points is given.
    pub fn asks_for_inducing(&self) -> bool {
        self.inducing.is_some()
    }

    /// The likelihood, if it is given.
    pub fn likelihood(&self) -> Option<&str> {
        self.likelihood.as_deref()
    }

    /// Seconds that there are, if they are limited.
    pub fn time_limit(&self) -> Option<f64> {
        self.time_limit
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }
}

/// A tying by its name.
pub fn tying(name: &str) -> PyResult<Tying> {
    let found = Tying::ALL.iter().find(|(known, _)| *known == name);
    found.map(|(_, tying)| *tying).ok_or_else(|| {
        let known: Vec<&str> = Tying::ALL.iter().map(|(known, _)| *known).collect();
        invalid(format!("tying is `{name}`; it must be one of {}", known.join(", ")))
    })
}

//! The model of a few rows, on which starting values are judged and the pilot is flown: the model's own likelihood, weights
//! and known noise, without inducing points.

use super::quiet::Quiet;
use super::{FitOptions, series};
use crate::data::InMemory;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::methods::{self, sites};
use crate::model::{Model, inducing_param};
use crate::optim::LbfgsOptions;
use crate::params::{Bounds, Param, Role, Shape, Transform};
use crate::rng;
use crate::train::{EmOptions, Observer, OptimiserKind, TrainOptions, train};
use crate::variational::{Tying, Variational};

/// Least noise variance, as a part of the starting one (a tenth of the variance): a thousand rows without noise would make
/// K + σ²I singular and tell nothing about lengthscales.
const LEAST_NOISE: f64 = 1e-2;

/// What is left of a variance where the function is to be a constant.
const NO_VARIANCE: f64 = 1e-8;

/// Most steps of q in a row: starts are compared, not finished.
const STEPS: usize = 6;

/// Rows from which a variational trial costs what exact inference on three times as many does.
pub(super) const SITES: usize = 300;

/// A model of few rows.
#[derive(Clone)]
pub(super) struct Trial {
    pub(super) model: Model,
    data: InMemory,
    latents: usize,
}

impl Trial {
    /// Creates the model on at most `rows` random rows that have all targets and count for
    /// something: by exact inference where the noise is Gaussian, else by sites of all rows; of a
    /// series on windows of rows, by its own method. None if there are fewer than two. Values that
    /// were given stay.
    pub(super) fn new(
        model: &Model,
        sample: &InMemory,
        rows: usize,
        options: &FitOptions,
    ) -> Result<Option<Self>> {
        let counts = |i: usize| sample.weights.get(i).is_none_or(|w| *w > 0.0);
        let known = |i: usize| (0..sample.y.ncols()).all(|p| !sample.y[(i, p)].is_nan());
        let usable: Vec<usize> =
            (0..sample.x.nrows()).filter(|i| counts(*i) && known(*i)).collect();
        let latents = model.latents(sample.y.ncols());
        let gaussian = model.likelihood.as_gaussian().is_some();
        // exact inference has one kernel for all targets
        let exact = gaussian && model.kernels.len() == 1;
        let rows = if exact { rows } else { affordable(rows, latents) };
        let of_series = model.method.is_of_series();
        let picked = match of_series {
            true => series::picked(model, &sample.picked(&usable), rows)?,
            false => {
                let mut generator = rng::stream(options.seed, "rows of the pilot");
                rng::permutation(&mut generator, usable.len(), rows.min(usable.len()))
            }
        };
        let picked: Vec<usize> = picked.into_iter().map(|i| usable[i]).collect();
        if picked.len() < 2 {
            return Ok(None);
        }
        let data = sample.picked(&picked);
        let mut own = model.clone();
        own.inducing = Vec::new();
        own.q = None;
        own.method = methods::find(match () {
            () if of_series => model.method.name(),
            () if exact => "exact",
            () if own.likelihood.mixing().is_some() => "tsvgp",
            () if own.method.augments() => "cavi-full",
            () => "tvgp",
        })?
        .method;
        if own.method.check(&own).is_err() {
            return Ok(None);
        }
        if own.method.is_sparse() {
            own.inducing = vec![inducing_param(data.x.as_ref())];
            own.freeze("inducing", true)?;
        }
        for (_, param) in own.params_mut() {
            param.frozen |= param.given && !param.role().is_bulky();
        }
        let mut trial = Self { model: own, data, latents };
        trial.limit_noise(LEAST_NOISE)?;
        trial.forget();
        Ok(Some(trial))
    }

    /// Bounds the noise variance from below, by a part of where it starts.
    pub(super) fn limit_noise(&mut self, part: f64) -> Result<()> {
        if let Some(gaussian) = self.model.likelihood.as_gaussian_mut()
            && !gaussian.variance.frozen
            && (gaussian.variance.prior.is_none() || gaussian.variance.assumed)
        {
            let start = gaussian.variance.scalar();
            let lower = part * start;
            let given = gaussian.variance.bounds();
            if given.any() {
                let min = Some(given.min.map_or(lower, |min| min.max(lower)));
                gaussian.variance.bound("likelihood.variance", Bounds { min, ..given })?;
            } else {
                let transform = Transform::Softplus { lower };
                let mut bounded = Param::with(vec![start], Shape::Scalar, transform);
                (bounded.prior, bounded.assumed) =
                    (gaussian.variance.prior, gaussian.variance.assumed);
                gaussian.variance = bounded;
            }
        }
        Ok(())
    }

    /// Returns the same rows with another model of the same structure.
    pub(super) fn with(&self, model: Model) -> Self {
        Self { model, ..self.clone() }
    }

    /// Returns its rows.
    pub(super) fn rows(&self) -> &InMemory {
        &self.data
    }

    /// Returns how many latent functions there are.
    pub(super) fn latents(&self) -> usize {
        self.latents
    }

    /// Returns the mean precision of the sites of every latent function; none where it has no site for each row.
    pub(super) fn precisions(&self) -> Option<Vec<f64>> {
        let q = self.model.q.as_ref().filter(|q| q.tying() == Some(Tying::Untied))?;
        let n = self.data.x.nrows();
        let mean = |own: &[f64]| own.iter().map(|v| v.max(0.0)).sum::<f64>() / n as f64;
        Some(q.second.value().chunks(n).map(mean).collect())
    }

    /// Restarts q.
    fn forget(&mut self) {
        let (n, latents) = (self.data.x.nrows(), self.latents);
        if self.model.method.has_q() {
            let tying = match self.model.method.is_sparse() {
                true => Tying::Natural,
                false => Tying::Untied,
            };
            self.model.q = Some(Variational::sites(n, latents, tying));
        }
    }

    /// Trains what is not frozen for so many iterations, from a q of nothing. Returns the objective (log evidence or bound,
    /// plus log prior); none where the numerics fail, or it is interrupted at once, and then the model is as before.
    pub(super) fn climb(
        &mut self,
        iterations: usize,
        engine: &dyn Engine,
        observer: &dyn Observer,
    ) -> Result<Option<f64>> {
        self.forget();
        let before = self.model.clone();
        let options = TrainOptions {
            optimiser: OptimiserKind::Lbfgs(LbfgsOptions::fitting()),
            max_iterations: iterations,
            em: EmOptions { e_steps: STEPS, ..EmOptions::default() },
            ..TrainOptions::default()
        };
        // a trial is never resumed
        let remembered = sites::remember(engine);
        let trained = train(&mut self.model, engine, &self.data, &options, &mut Quiet(observer));
        drop(remembered);
        match trained {
            Ok(report) if report.objective.is_finite() => Ok(Some(report.objective)),
            // what is interrupted is not judged; whether there will be a model is for the training to say
            Err(error) if !error.is_recoverable() && !matches!(error, Error::Interrupted) => {
                Err(error)
            }
            _ => {
                self.model = before;
                Ok(None)
            }
        }
    }

    /// Does [`Trial::climb`] with lengthscales and periods where they are.
    pub(super) fn settle(
        &mut self,
        iterations: usize,
        engine: &dyn Engine,
        observer: &dyn Observer,
    ) -> Result<Option<f64>> {
        let kept =
            self.freeze_where(|_, param| matches!(param.role(), Role::Lengthscales | Role::Period));
        let value = self.climb(iterations, engine, observer);
        self.thaw(&kept);
        value
    }

    /// Returns the objective of a function that is a constant, with the likelihood's parameters and
    /// the mean trained.
    pub(super) fn constant(
        &self,
        iterations: usize,
        engine: &dyn Engine,
        observer: &dyn Observer,
    ) -> Result<Option<f64>> {
        let mut own = self.clone();
        for kernel in &mut own.model.kernels {
            let units = kernel.units();
            let mut at = 0;
            for (path, param) in kernel.params_mut() {
                let of_output = units[at..at + param.len()].iter().flatten().any(|u| u.output != 0);
                at += param.len();
                if of_output {
                    let small: Vec<f64> = param.value().iter().map(|v| v * NO_VARIANCE).collect();
                    // one that may not be so small stays, and the function with it
                    let _ = param.set(&path, &small);
                }
                param.frozen = true;
            }
        }
        own.climb(iterations, engine, observer)
    }

    /// Freezes the hyperparameters for which this holds; returns the paths of those that were not frozen.
    fn freeze_where(&mut self, holds: impl Fn(&str, &Param) -> bool) -> Vec<String> {
        let mut kept = Vec::new();
        for (path, param) in self.model.params_mut() {
            if !param.frozen && holds(&path, param) {
                param.frozen = true;
                kept.push(path);
            }
        }
        kept
    }

    fn thaw(&mut self, paths: &[String]) {
        for (path, param) in self.model.params_mut() {
            if paths.contains(&path) {
                param.frozen = false;
            }
        }
    }
}

/// Returns at most [`SITES`] rows, and fewer for several latent functions, so that their matrices
/// cost what that of one does.
fn affordable(rows: usize, latents: usize) -> usize {
    (rows.min(SITES) as f64 / (latents.max(1) as f64).cbrt()) as usize
}

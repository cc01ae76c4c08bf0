//! Another likelihood on a sample of the rows beside the model's own.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::fit::quiet::Quiet;
use crate::fit::start::prepare_start;
use crate::fit::trial::Trial;
use crate::fit::{Dataset, FitOptions, Start, is_automatic, sample_rows};
use crate::model::Model;
use crate::train::Observer;

/// Rows of the sample, and iterations of both models.
const ROWS: usize = 200;
const TRAINED: usize = 25;
/// Least noise variance, as a part of the starting one.
const LEAST_NOISE: f64 = 1e-5;

/// A fitted model with what it was fitted by.
pub(in crate::fit) struct Asked<'a> {
    pub(in crate::fit) model: &'a Model,
    pub(in crate::fit) dataset: &'a Dataset,
    pub(in crate::fit) options: &'a FitOptions,
    pub(in crate::fit) engine: &'a dyn Engine,
    pub(in crate::fit) observer: &'a dyn Observer,
}

impl Asked<'_> {
    /// Returns nats by which the bound of another likelihood, for targets on the same scale, is
    /// above that of the model's own, and the rows that both are trained on, the model from where
    /// it is. None where that cannot be asked.
    pub(super) fn gain(&self, likelihood: &str) -> Result<Option<(f64, usize)>> {
        match self.judged(likelihood) {
            // the method may have no such likelihood
            Err(error) if error.is_recoverable() || matches!(error, Error::Invalid(_)) => Ok(None),
            outcome => outcome,
        }
    }

    fn judged(&self, likelihood: &str) -> Result<Option<(f64, usize)>> {
        if is_automatic(&self.options.kernel) {
            // the rows continue a model that was made from others
            return Ok(None);
        }
        let own = FitOptions {
            likelihood: Some(likelihood.into()),
            method: "auto".into(),
            set: Vec::new(),
            freeze: Vec::new(),
            checkpoint: None,
            restarts: 0,
            ..self.options.clone()
        };
        let sample = self.dataset.sampled(ROWS, self.options.seed)?;
        let quiet = &mut Quiet(self.observer);
        let Start { model, .. } = prepare_start(&sample, &own, self.engine, quiet, 0)?;
        let rows = sample_rows(&*sample.source, ROWS, self.options.seed)?;
        let Some(mut other) = Trial::new(&model, &rows, ROWS, &own)? else { return Ok(None) };
        let count = other.rows().y.nrows();
        let Some(mut usual) = Trial::new(self.model, other.rows(), count, self.options)? else {
            return Ok(None);
        };
        usual.limit_noise(LEAST_NOISE)?;
        let mut bounds = [0.0; 2];
        for (trial, bound) in [&mut usual, &mut other].into_iter().zip(&mut bounds) {
            let Some(objective) = trial.climb(TRAINED, self.engine, self.observer)? else {
                return Ok(None);
            };
            *bound = objective - trial.model.assumed_log_prior();
        }
        Ok(Some((bounds[1] - bounds[0], count)))
    }
}

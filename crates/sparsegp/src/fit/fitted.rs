//! A model that can be used.

use super::{Dataset, Division, KeptRows, Made};
use crate::data::{Classes, InputColumn, ReadOptions, Scaler, Unknown, input_title};
use crate::model::{Model, Posterior};
use crate::online::Site;
use crate::train::{Judged, TrainReport};
use std::collections::BTreeMap;

/// What a prediction is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Of {
    /// New observations: noise included.
    #[default]
    Observations,
    /// The latent function.
    Latent,
}

/// A trained and conditioned model with all that is needed to use it.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// The model, on the standardised scale.
    pub model: Model,
    /// Its posterior.
    pub posterior: Posterior,
    /// From the data's units to the model's.
    pub scaler: Scaler,
    /// Names of the inputs, in the model's order.
    pub input_names: Vec<String>,
    /// The columns of a table that they come from, with how those that hold no numbers become some.
    pub columns: Vec<InputColumn>,
    /// Names of the target columns.
    pub target_names: Vec<String>,
    /// Name of the column of weights that it was trained with.
    pub weight_name: Option<String>,
    /// Name of the column of further numbers (exposure, trials, known noise variance).
    pub extra_name: Option<String>,
    /// The labels whose codes the target holds, if it is a label.
    pub classes: Option<Classes>,
    /// Means of the training targets in their own units (for MSLL).
    pub target_mean: Vec<f64>,
    /// Variances of the training targets in their own units.
    pub target_variance: Vec<f64>,
    /// Training rows.
    pub rows: usize,
    /// Sum of the weights of the training rows, where they have weights.
    pub total_weight: Option<f64>,
    /// Of every target the sum of the weights of the training rows in which it was missing; empty where none was.
    pub absent: Vec<f64>,
    /// Sum of the logarithms of the slopes of transformed targets at those of the training rows; 0 without.
    pub log_slope: f64,
    /// The seed.
    pub seed: u64,
    /// Why this method, in a sentence.
    pub reason: String,
    /// How training went; none for a model that was only conditioned.
    pub report: Option<TrainReport>,
    /// What was odd and handled.
    pub warnings: Vec<String>,
    /// Texts that other programs keep with the model, by name: the library saves and loads them. Its
    /// own is `reading` ([`Fitted::read_options`]).
    pub annotations: BTreeMap<String, String>,
    /// By which program it was made, and when.
    pub made: Made,
    /// Which rows of its table it learnt from, if whoever read the table has noted it.
    pub division: Option<Division>,
    /// The inputs whose standard deviations the last columns of a row are, in their order; none for a model whose inputs are known
    /// exactly ([`Fitted::with_input_deviations_of`]).
    pub input_deviations: Vec<usize>,
    /// What all rows but those of `kept_rows` said of every latent function, where some were added by
    /// [`update`](super::update): further ones add to it without a detour by the posterior. Empty after a fit.
    pub carried: Vec<Site>,
    /// A sample of the rows that were added, with what each said: their sites are found again with
    /// every update. None for Gaussian noise.
    pub kept_rows: KeptRows,
    /// What becomes of categories that no training row had. Files do not keep it.
    pub unknown: Unknown,
}

/// What a fitted model knows beside the model: where it comes from.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    scaler: Scaler,
    input_names: Vec<String>,
    columns: Vec<InputColumn>,
    target_names: Vec<String>,
    weight_name: Option<String>,
    extra_name: Option<String>,
    classes: Option<Classes>,
    target_mean: Vec<f64>,
    target_variance: Vec<f64>,
    pub(super) rows: usize,
    pub(super) total_weight: Option<f64>,
    pub(super) absent: Vec<f64>,
    pub(super) log_slope: f64,
    seed: u64,
    pub(super) reason: String,
    pub(super) warnings: Vec<String>,
    /// The starting values that were judged.
    pub(super) judged: Vec<Judged>,
}

impl Origin {
    pub(super) fn new(dataset: &Dataset, seed: u64, reason: String, warnings: Vec<String>) -> Self {
        Self {
            scaler: dataset.scaler.clone(),
            input_names: dataset.input_names.clone(),
            columns: dataset.columns.clone(),
            target_names: dataset.target_names.clone(),
            weight_name: dataset.weight_name.clone(),
            extra_name: dataset.extra_name.clone(),
            classes: dataset.classes.clone(),
            target_mean: dataset.target_mean.clone(),
            target_variance: dataset.target_variance.clone(),
            rows: dataset.rows,
            total_weight: dataset.total_weight,
            absent: dataset.absent.clone(),
            log_slope: dataset.log_slope,
            seed,
            reason,
            warnings,
            judged: Vec::new(),
        }
    }

    pub(super) fn fitted(
        self,
        model: Model,
        posterior: Posterior,
        report: Option<TrainReport>,
    ) -> Fitted {
        Fitted {
            model,
            posterior,
            scaler: self.scaler,
            input_names: self.input_names,
            columns: self.columns,
            target_names: self.target_names,
            weight_name: self.weight_name,
            extra_name: self.extra_name,
            classes: self.classes,
            target_mean: self.target_mean,
            target_variance: self.target_variance,
            rows: self.rows,
            total_weight: self.total_weight,
            absent: self.absent,
            log_slope: self.log_slope,
            seed: self.seed,
            reason: self.reason,
            report,
            warnings: self.warnings,
            annotations: BTreeMap::new(),
            made: Made::now(),
            division: None,
            input_deviations: Vec::new(),
            carried: Vec::new(),
            kept_rows: KeptRows::default(),
            unknown: Unknown::default(),
        }
    }
}

/// Name of the annotation with [`Fitted::read_options`].
const READING: &str = "reading";

/// Spreads of a standardised input beyond which the shortest of its lengthscales leaves it without a part.
const UNUSED: f64 = 10.0;
/// How many times longer it must be than that of the most relevant input: along straight lines all are long.
const BEYOND: f64 = 3.0;

impl Fitted {
    /// Returns the names of standardised inputs that the model found irrelevant: those whose lengthscales are all longer than ten
    /// standard deviations, and three times as long as the shortest of any input. Empty for a single input, for inputs that no kernel with lengthscales reads, and for deep models.
    pub fn unused_inputs(&self) -> Vec<&str> {
        let names = self.measured_names();
        let mut relevance = vec![0.0; names.len()];
        if names.len() < 2
            || !self.model.hidden.is_empty()
            || relevance.len() != self.scaler.x_scale.len()
        {
            return Vec::new();
        }
        self.model.kernels.iter().for_each(|kernel| kernel.relevance(&mut relevance));
        let most = relevance.iter().copied().fold(0.0, f64::max);
        let least = UNUSED.recip().min(most / BEYOND);
        let unused = |q: &usize| {
            self.scaler.x_scale[*q] != 1.0 && relevance[*q] > 0.0 && relevance[*q] < least
        };
        // the coordinates of a place are one
        let mut found: Vec<&str> =
            (0..names.len()).filter(unused).map(|q| input_title(&names[q])).collect();
        found.dedup();
        found
    }

    /// Returns how the cells of the table were written that it learnt from, if whoever read the
    /// table has noted it.
    pub fn read_options(&self) -> ReadOptions {
        let kept = self.annotations.get(READING);
        kept.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    /// Notes how the cells of its table are written, as an annotation.
    pub fn remember_reading(&mut self, options: &ReadOptions) {
        match serde_json::to_string(options) {
            Ok(text) if *options != ReadOptions::default() => {
                self.annotations.insert(READING.into(), text);
            }
            _ => drop(self.annotations.remove(READING)),
        }
    }

    /// Returns the model, and where it comes from.
    pub(super) fn into_parts(self) -> (Model, Origin) {
        let origin = Origin {
            scaler: self.scaler,
            input_names: self.input_names,
            columns: self.columns,
            target_names: self.target_names,
            weight_name: self.weight_name,
            extra_name: self.extra_name,
            classes: self.classes,
            target_mean: self.target_mean,
            target_variance: self.target_variance,
            rows: self.rows,
            total_weight: self.total_weight,
            absent: self.absent,
            log_slope: self.log_slope,
            seed: self.seed,
            reason: self.reason,
            warnings: self.warnings,
            judged: Vec::new(),
        };
        (self.model, origin)
    }

    /// Returns what to add to the objective on the model's scale to have it in the data's units.
    pub fn log_jacobian(&self) -> f64 {
        let weight = self.total_weight.unwrap_or(self.rows as f64);
        self.scaler.log_jacobian_of(weight, &self.absent) + self.log_slope
    }

    /// Returns the log evidence or bound of the training data in their own units: the model's
    /// objective plus the Jacobian of standardisation. Log priors that were asked for are part of
    /// it; the weak one of lengthscales that was not asked for
    /// ([`super::FitOptions::lengthscale_prior`]) is not.
    pub fn objective(&self) -> Option<f64> {
        let report = self.report.as_ref()?;
        Some(report.objective + self.log_jacobian())
    }
}

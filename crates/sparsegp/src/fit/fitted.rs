//! A model that can be used.

use super::Dataset;
use crate::data::{Block, Classes, Scaler};
use crate::error::{Error, Result};
use crate::linalg::{Mat, MatRef};
use crate::metrics::Metrics;
use crate::model::{Model, Posterior};
use crate::params::{Prior, Shape};
use crate::train::TrainReport;
use rayon::prelude::*;

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
    /// Names of the input columns, in the model's order.
    pub input_names: Vec<String>,
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
    /// The seed.
    pub seed: u64,
    /// Why this method, in a sentence.
    pub reason: String,
    /// How training went; none for a model that was only conditioned.
    pub report: Option<TrainReport>,
    /// What was odd and handled.
    pub warnings: Vec<String>,
}

/// What a fitted model knows beside the model: where it comes from.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    scaler: Scaler,
    input_names: Vec<String>,
    target_names: Vec<String>,
    weight_name: Option<String>,
    extra_name: Option<String>,
    classes: Option<Classes>,
    target_mean: Vec<f64>,
    target_variance: Vec<f64>,
    pub(super) rows: usize,
    seed: u64,
    reason: String,
    pub(super) warnings: Vec<String>,
}

impl Origin {
    pub(super) fn new(dataset: &Dataset, seed: u64, reason: String, warnings: Vec<String>) -> Self {
        Self {
            scaler: dataset.scaler.clone(),
            input_names: dataset.input_names.clone(),
            target_names: dataset.target_names.clone(),
            weight_name: dataset.weight_name.clone(),
            extra_name: dataset.extra_name.clone(),
            classes: dataset.classes.clone(),
            target_mean: dataset.target_mean.clone(),
            target_variance: dataset.target_variance.clone(),
            rows: dataset.source.rows(),
            seed,
            reason,
            warnings,
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
            target_names: self.target_names,
            weight_name: self.weight_name,
            extra_name: self.extra_name,
            classes: self.classes,
            target_mean: self.target_mean,
            target_variance: self.target_variance,
            rows: self.rows,
            seed: self.seed,
            reason: self.reason,
            report,
            warnings: self.warnings,
        }
    }
}

impl Fitted {
    /// The model, and where it comes from.
    pub(super) fn into_parts(self) -> (Model, Origin) {
        let origin = Origin {
            scaler: self.scaler,
            input_names: self.input_names,
            target_names: self.target_names,
            weight_name: self.weight_name,
            extra_name: self.extra_name,
            classes: self.classes,
            target_mean: self.target_mean,
            target_variance: self.target_variance,
            rows: self.rows,
            seed: self.seed,
            reason: self.reason,
            warnings: self.warnings,
        };
        (self.model, origin)
    }

    /// Log evidence or bound of the training data in their own units: the model's objective plus the
    /// Jacobian of standardisation. Log priors, where there are any, are part of it.
    pub fn objective(&self) -> Option<f64> {
        let report = self.report.as_ref()?;
        Some(report.objective + self.rows as f64 * self.scaler.log_jacobian())
    }
}

/// One line of the table of parameters.
#[derive(Clone, Debug, serde::Serialize)]
pub struct ParameterRow {
    /// Path.
    pub path: String,
    /// Shape in words.
    pub shape: String,
    /// Values on the model's (standardised) scale; a matrix column by column.
    pub value: Vec<f64>,
    /// The same in the data's own units; `None` where a number has no unit of its own
    /// (one lengthscale for several columns, or several targets with different scales).
    pub data_units: Option<Vec<f64>>,
    /// Transform in words.
    pub transform: String,
    /// Prior, if any.
    pub prior: Option<Prior>,
    /// Whether it was kept as it was.
    pub frozen: bool,
}

/// Rows that are predicted for at once. They are worked on in parts of a fixed size, so that the result
/// does not depend on the number of threads.
const PART: usize = 256;

/// `parts`, one under the other.
fn stacked(parts: &[Mat<f64>], rows: usize) -> Mat<f64> {
    let mut all = Mat::zeros(rows, parts.first().map_or(0, Mat::ncols));
    for (part, values) in parts.iter().enumerate() {
        all.as_mut().subrows_mut(part * PART, values.nrows()).copy_from(values);
    }
    all
}

impl Fitted {
    /// Calls `predict` with standardised inputs and further numbers, part by part on all threads.
    fn in_parts<T: Send>(
        &self,
        x: MatRef<'_, f64>,
        extra: &[f64],
        predict: impl Fn(usize, MatRef<'_, f64>, &[f64]) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let n = x.nrows();
        if !extra.is_empty() && extra.len() != n {
            return Err(Error::Shape {
                what: "further numbers of the rows".into(),
                expected: format!("{n}, one per row, or none"),
                found: format!("{}", extra.len()),
            });
        }
        let extra = self.scaled_extra(extra);
        (0..n.div_ceil(PART))
            .into_par_iter()
            .map(|part| {
                let (start, len) = (part * PART, PART.min(n - part * PART));
                let mut rows = x.subrows(start, len).to_owned();
                self.scaler.scale_x(rows.as_mut())?;
                let own = if extra.is_empty() { &[] } else { &extra[start..start + len] };
                predict(start, rows.as_ref(), own)
            })
            .collect()
    }

    /// Further numbers on the model's scale.
    fn scaled_extra(&self, extra: &[f64]) -> Vec<f64> {
        let mut scaled = extra.to_vec();
        self.scaler.scale_extra(&mut scaled);
        scaled
    }

    /// Predictive means and variances from inputs B×D, in the data's own units; on all threads. Of
    /// observations they are B×P. Of latent functions they are B×L, and where a target column has
    /// several latent functions they are on the model's scale.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of columns differs.
    pub fn predict(&self, x: MatRef<'_, f64>, of: Of) -> Result<(Mat<f64>, Mat<f64>)> {
        self.predict_with(x, &[], of)
    }

    /// [`Fitted::predict`] with the further number of every row (exposure, trials, known noise
    /// variance).
    ///
    /// # Errors
    /// [`Error::Shape`] if numbers of rows or columns differ.
    pub fn predict_with(
        &self,
        x: MatRef<'_, f64>,
        extra: &[f64],
        of: Of,
    ) -> Result<(Mat<f64>, Mat<f64>)> {
        let parts = self.in_parts(x, extra, |_, x, extra| match of {
            Of::Observations => self.posterior.predict_y(x, extra),
            Of::Latent => self.posterior.predict_f(x),
        })?;
        let (means, variances): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        let (mut mean, mut spread) = (stacked(&means, x.nrows()), stacked(&variances, x.nrows()));
        let columns =
            if of == Of::Observations { self.target_names.len() } else { self.posterior.latents() };
        if x.nrows() == 0 {
            (mean, spread) = (Mat::zeros(0, columns), Mat::zeros(0, columns));
        }
        if of == Of::Observations || self.model.likelihood.latents() == 1 {
            self.scaler.unscale_mean(mean.as_mut())?;
            self.scaler.unscale_variance(spread.as_mut())?;
        }
        Ok((mean, spread))
    }

    /// Probabilities of the classes, B×C, from inputs B×D in the data's own units.
    ///
    /// # Errors
    /// [`Error::Invalid`] if targets are no classes, [`Error::Shape`] if the number of columns
    /// differs.
    pub fn predict_proba(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>> {
        let parts = self.in_parts(x, &[], |_, x, _| self.posterior.predict_proba(x))?;
        Ok(stacked(&parts, x.nrows()))
    }

    /// Quantiles of observations at these levels, one B×P matrix for each, in the data's own units.
    /// `extra` as for [`Fitted::predict_with`].
    ///
    /// # Errors
    /// [`Error::Shape`] if numbers of rows or columns differ.
    pub fn quantiles(
        &self,
        x: MatRef<'_, f64>,
        extra: &[f64],
        levels: &[f64],
    ) -> Result<Vec<Mat<f64>>> {
        levels
            .iter()
            .map(|level| {
                let parts = self.in_parts(x, extra, |_, x, extra| {
                    self.posterior.predict_quantile(x, extra, *level)
                })?;
                let mut all = stacked(&parts, x.nrows());
                self.scaler.unscale_mean(all.as_mut())?;
                Ok(all)
            })
            .collect()
    }

    /// Draws of observations, one B×P matrix each, in the data's own units: latent functions jointly
    /// over the rows, then y given them. O(B³). `extra` as for [`Fitted::predict_with`].
    ///
    /// # Errors
    /// [`Error::Shape`] if numbers of rows or columns differ; [`Error::NotPositiveDefinite`].
    pub fn sample_y(
        &self,
        x: MatRef<'_, f64>,
        extra: &[f64],
        samples: usize,
        seed: u64,
    ) -> Result<Vec<Mat<f64>>> {
        let mut rows = x.to_owned();
        self.scaler.scale_x(rows.as_mut())?;
        let mut rng = crate::rng::stream(seed, "samples of observations");
        let extra = self.scaled_extra(extra);
        let mut draws = self.posterior.sample_y(rows.as_ref(), &extra, samples, &mut rng)?;
        draws.iter_mut().try_for_each(|draw| self.scaler.unscale_mean(draw.as_mut()))?;
        Ok(draws)
    }

    /// log p(yᵢ | data) of every row of targets B×P, in the data's own units, summed over the target
    /// columns; NaN targets are left out. `extra` as for [`Fitted::predict_with`].
    ///
    /// # Errors
    /// [`Error::Shape`] if numbers of rows or columns differ.
    pub fn log_density(
        &self,
        x: MatRef<'_, f64>,
        y: MatRef<'_, f64>,
        extra: &[f64],
    ) -> Result<Vec<f64>> {
        if y.nrows() != x.nrows() || y.ncols() != self.target_names.len() {
            return Err(Error::Shape {
                what: "targets to score".into(),
                expected: format!("{}×{}", x.nrows(), self.target_names.len()),
                found: format!("{}×{}", y.nrows(), y.ncols()),
            });
        }
        let mut scaled = y.to_owned();
        self.scaler.scale_y(scaled.as_mut())?;
        let parts = self.in_parts(x, extra, |start, x, extra| {
            let y = scaled.as_ref().subrows(start, x.nrows());
            self.posterior.predict_log_density(x, y, extra)
        })?;
        let mut density = parts.concat();
        for (i, d) in density.iter_mut().enumerate() {
            let known = (0..y.ncols()).filter(|p| !y[(i, *p)].is_nan());
            *d -= known.map(|p| self.scaler.y_scale[p].ln()).sum::<f64>();
        }
        Ok(density)
    }

    /// Scores of the predictions for these blocks (in the data's own units, see
    /// [`crate::data::Selected::blocks`] without a scaler) against the trivial model of the training
    /// targets.
    ///
    /// # Errors
    /// What the blocks give; what [`Metrics::add`] refuses.
    pub fn score(&self, blocks: impl IntoIterator<Item = Result<Block>>) -> Result<Metrics> {
        let mut metrics = Metrics::against_trivial(&self.target_mean, &self.target_variance)?;
        for block in blocks {
            let block = block?;
            let (mean, variance) = self.predict(block.x.as_ref(), Of::Observations)?;
            metrics.add(block.y.as_ref(), mean.as_ref(), variance.as_ref())?;
        }
        Ok(metrics)
    }

    /// Inducing points in the data's units, M×D; none for exact inference.
    ///
    /// # Errors
    /// None that a fitted model can cause.
    pub fn inducing_points(&self) -> Result<Option<Mat<f64>>> {
        if self.model.inducing.is_empty() {
            return Ok(None);
        }
        let mut z = self.model.inducing_points()?;
        self.scaler.unscale_x(z.as_mut())?;
        Ok(Some(z))
    }

    /// Every parameter with its value on the model's scale and in the data's units.
    pub fn parameters(&self) -> Vec<ParameterRow> {
        let y_scale = self.scaler.y_scale[0];
        let one_scale = self.scaler.y_scale.iter().all(|s| *s == y_scale);
        // latent functions that differ in kind have units of their own
        let one_unit = one_scale && (y_scale == 1.0 || self.model.likelihood.latents() == 1);
        let mut kernel_units = self.model.kernels.iter().flat_map(|k| k.units());
        let mut likelihood_units = self.model.likelihood.units().into_iter();
        let (m, d) = match self.model.inducing.first().map(|z| z.shape()) {
            Some(Shape::Matrix(m, d)) => (m, d),
            _ => (0, 0),
        };
        let mut rows = Vec::new();
        for (path, param) in self.model.params() {
            let value = param.value().to_vec();
            let data_units = if path.starts_with("kernel") {
                let units: Vec<_> = kernel_units.by_ref().take(value.len()).collect();
                let units: Option<Vec<_>> = units.into_iter().collect();
                units.and_then(|units| {
                    units
                        .iter()
                        .zip(&value)
                        .map(|(unit, v)| {
                            let x = unit.input.map_or(1.0, |(q, p)| self.scaler.x_scale[q].powi(p));
                            let usable = unit.output == 0 || one_unit;
                            usable.then(|| v * x * y_scale.powi(unit.output))
                        })
                        .collect()
                })
            } else if path.starts_with("likelihood.") {
                let units: Vec<i32> = likelihood_units.by_ref().take(value.len()).collect();
                let unitless = units.iter().all(|u| *u == 0);
                (one_scale || unitless)
                    .then(|| value.iter().zip(units).map(|(v, u)| v * y_scale.powi(u)).collect())
            } else if path.starts_with("inducing.points") {
                let unscaled = (0..d).flat_map(|q| (0..m).map(move |i| (q, i)));
                let s = &self.scaler;
                Some(unscaled.map(|(q, i)| value[q * m + i] * s.x_scale[q] + s.x_mean[q]).collect())
            } else if path == "mean.constant"
                && self.model.mean.name() == "constant"
                && self.model.likelihood.latents() == 1
            {
                let s = &self.scaler;
                Some(
                    value.iter().enumerate().map(|(p, v)| v * s.y_scale[p] + s.y_mean[p]).collect(),
                )
            } else {
                None
            };
            rows.push(ParameterRow {
                path,
                shape: param.shape().to_string(),
                value,
                data_units,
                transform: param.transform().to_string(),
                prior: param.prior,
                frozen: param.frozen,
            });
        }
        rows
    }
}

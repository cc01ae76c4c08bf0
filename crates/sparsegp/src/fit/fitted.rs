//! A model that can be used.

use crate::data::{Block, Scaler};
use crate::error::Result;
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

impl Fitted {
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

impl Fitted {
    /// Predictive means and variances, both B×P, from inputs B×D, all in the data's own units; on all
    /// threads. Rows are worked on in parts of a fixed size, so that the result does not depend on the
    /// number of threads.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] if the number of columns differs.
    pub fn predict(&self, x: MatRef<'_, f64>, of: Of) -> Result<(Mat<f64>, Mat<f64>)> {
        const PART: usize = 256;
        let (n, p) = (x.nrows(), self.target_names.len());
        let parts: Vec<(Mat<f64>, Vec<f64>)> = (0..n.div_ceil(PART))
            .into_par_iter()
            .map(|part| {
                let start = part * PART;
                let mut rows = x.subrows(start, PART.min(n - start)).to_owned();
                self.scaler.scale_x(rows.as_mut())?;
                match of {
                    Of::Observations => self.posterior.predict_y(rows.as_ref()),
                    Of::Latent => self.posterior.predict_f(rows.as_ref()),
                }
            })
            .collect::<Result<_>>()?;
        let mut mean = Mat::zeros(n, p);
        let mut spread = Mat::zeros(n, p);
        for (part, (m, v)) in parts.iter().enumerate() {
            mean.as_mut().subrows_mut(part * PART, m.nrows()).copy_from(m);
            for j in 0..p {
                spread.col_as_slice_mut(j)[part * PART..][..v.len()].copy_from_slice(v);
            }
        }
        self.scaler.unscale_mean(mean.as_mut())?;
        self.scaler.unscale_variance(spread.as_mut())?;
        Ok((mean, spread))
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
        if self.model.inducing.is_none() {
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
        let mut kernel_units = self.model.kernel.units().into_iter();
        let (m, d) = match self.model.inducing.as_ref().map(|z| z.shape()) {
            Some(Shape::Matrix(m, d)) => (m, d),
            _ => (0, 0),
        };
        let mut rows = Vec::new();
        for (path, param) in self.model.params() {
            let value = param.value().to_vec();
            let data_units = if path.starts_with("kernel.") {
                let units: Vec<_> = kernel_units.by_ref().take(value.len()).collect();
                let units: Option<Vec<_>> = units.into_iter().collect();
                units.and_then(|units| {
                    units
                        .iter()
                        .zip(&value)
                        .map(|(unit, v)| {
                            let x = unit.input.map_or(1.0, |(q, p)| self.scaler.x_scale[q].powi(p));
                            let usable = unit.output == 0 || one_scale;
                            usable.then(|| v * x * y_scale.powi(unit.output))
                        })
                        .collect()
                })
            } else if path == "likelihood.variance" {
                one_scale.then(|| value.iter().map(|v| v * y_scale * y_scale).collect())
            } else if path == "inducing.points" {
                let unscaled = (0..d).flat_map(|q| (0..m).map(move |i| (q, i)));
                let s = &self.scaler;
                Some(unscaled.map(|(q, i)| value[q * m + i] * s.x_scale[q] + s.x_mean[q]).collect())
            } else if path == "mean.constant" && self.model.mean.name() == "constant" {
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

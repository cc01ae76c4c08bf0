//! Predictions, scores and parameters of a fitted model, in the data's units.

use super::fitted::{Fitted, Of};
use crate::data::Block;
use crate::error::{Error, Result};
#[cfg(doc)]
use crate::likelihoods::Likelihood;
use crate::likelihoods::default_extra;
use crate::linalg::{Mat, MatRef};
use crate::linalg::{in_parts, stacked};
use crate::metrics::Metrics;
#[cfg(doc)]
use crate::model::Posterior;
use crate::model::{Functions, InputGradients, Part};
use crate::params::{Prior, Role, Shape};

/// One line of the table of parameters.
#[derive(Clone, Debug, serde::Serialize)]
pub struct ParameterRow {
    /// Path.
    pub path: String,
    /// What its numbers are.
    pub role: Role,
    /// Shape in words.
    pub shape: String,
    /// Values on the model's (standardised) scale; a matrix column by column.
    pub value: Vec<f64>,
    /// The same in the data's own units; `None` where a number has no unit (one lengthscale for
    /// several columns, or several targets with different scales).
    pub data_units: Option<Vec<f64>>,
    /// Transform in words.
    pub transform: String,
    /// Prior, if any.
    pub prior: Option<Prior>,
    /// Whether it was kept as it was.
    pub frozen: bool,
    /// Places of numbers that are one, such as the lengthscales of the coordinates of a place on Earth.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tied: Vec<Vec<usize>>,
}

impl Fitted {
    /// Calls `predict` with standardised inputs and further numbers, part by part on all threads.
    pub(super) fn in_parts<T: Send>(
        &self,
        x: MatRef<'_, f64>,
        extra: &[f64],
        predict: impl Fn(usize, MatRef<'_, f64>, &[f64]) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        if !extra.is_empty() && extra.len() != x.nrows() {
            return Err(Error::Shape {
                what: "further numbers of the rows".into(),
                expected: format!("{}, one per row, or none", x.nrows()),
                found: format!("{}", extra.len()),
            });
        }
        self.check_rows(x)?;
        let extra = self.scaled_extra(extra);
        in_parts(x, |start, rows| {
            let mut rows = rows.to_owned();
            self.scaler.scale_x(rows.as_mut())?;
            let own = if extra.is_empty() { &[] } else { &extra[start..start + rows.nrows()] };
            predict(start, rows.as_ref(), own)
        })
    }

    /// Returns the further numbers on the model's scale.
    fn scaled_extra(&self, extra: &[f64]) -> Vec<f64> {
        let mut scaled = extra.to_vec();
        self.scaler.scale_extra(&mut scaled);
        scaled
    }

    /// Returns the predictive means and variances from inputs B×D, in the data's own units; on all
    /// threads. Of observations they are B×P. Of latent functions they are B×L, and where a target
    /// column has several latent functions they are on the model's scale.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of columns differs.
    pub fn predict(&self, x: MatRef<'_, f64>, of: Of) -> Result<(Mat<f64>, Mat<f64>)> {
        self.predict_with(x, &[], of)
    }

    /// Returns [`Fitted::predict`] with the further number of every row (exposure, trials, known
    /// noise variance).
    ///
    /// # Errors
    /// [`Error::Shape`] if numbers of rows or columns differ.
    pub fn predict_with(
        &self,
        x: MatRef<'_, f64>,
        extra: &[f64],
        of: Of,
    ) -> Result<(Mat<f64>, Mat<f64>)> {
        if self.is_mixed() {
            return self.moments_of_mixture(x, extra, of);
        }
        let parts = self.in_parts(x, extra, |_, x, extra| match of {
            Of::Observations => self.posterior.predict_y(x, extra),
            Of::Latent => self.posterior.predict_f(x),
        })?;
        self.moments_of(x.nrows(), parts, of)
    }

    /// Returns the means and variances of parts of the rows as those of all, in the data's units
    /// where there are some.
    pub(super) fn moments_of(
        &self,
        rows: usize,
        parts: Vec<(Mat<f64>, Mat<f64>)>,
        of: Of,
    ) -> Result<(Mat<f64>, Mat<f64>)> {
        let (means, variances): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        let all = |parts: &[Mat<f64>]| stacked(parts, rows, self.columns(of));
        let (mut mean, mut spread) = (all(&means), all(&variances));
        if self.own_units(of) {
            self.unscale_moments(&mut mean, &mut spread)?;
        }
        Ok((mean, spread))
    }

    /// Returns the number of columns of predictions.
    pub(super) fn columns(&self, of: Of) -> usize {
        if of == Of::Observations { self.target_names.len() } else { self.posterior.latents() }
    }

    /// Returns whether they are in the data's units: several latent functions of a target are on
    /// the model's scale.
    pub(super) fn own_units(&self, of: Of) -> bool {
        of == Of::Observations || self.model.likelihood.latents() == 1
    }

    /// Returns only predictive means, B×P, of latent functions or of observations, which are the
    /// same here, in the data's own units: much cheaper than [`Fitted::predict`].
    ///
    /// # Errors
    /// [`Error::Invalid`] unless [`Likelihood::standardises`]: with other noise the mean of observations
    /// is not that of the latent function. [`Error::Shape`] if the number of columns differs.
    pub fn predict_mean(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>> {
        let latents = self.of_location("its means are not those of the latent function")?;
        if self.scaler.is_transformed() {
            return Ok(self.predict(x, Of::Observations)?.0);
        }
        let parts = self.in_parts(x, &[], |_, x, _| {
            let f = self.posterior.predict_mean(x)?;
            Ok(Mat::from_fn(f.nrows(), f.ncols() / latents, |i, p| f[(i, p * latents)]))
        })?;
        let mut mean = stacked(&parts, x.nrows(), self.target_names.len());
        self.scaler.unscale_mean(mean.as_mut())?;
        Ok(mean)
    }

    /// Returns the slopes of means and variances of the latent functions in the inputs
    /// ([`Posterior::predict_gradients`]), B×D each, in the data's own units, those of the
    /// functions of targets that are transformed; where a target column has several latent
    /// functions, these are on the model's scale.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of columns differs.
    pub fn predict_gradients(&self, x: MatRef<'_, f64>) -> Result<InputGradients> {
        let parts = self.in_parts(x, &[], |_, x, _| self.posterior.predict_gradients(x))?;
        let own_units = self.model.likelihood.latents() == 1;
        let all = |l: usize, power: i32, of: &dyn Fn(&InputGradients) -> &Vec<Mat<f64>>| {
            let parts: Vec<Mat<f64>> = parts.iter().map(|part| of(part)[l].clone()).collect();
            let mut slopes = stacked(&parts, x.nrows(), x.ncols());
            let target = if own_units { self.scaler.y_scale[l].powi(power) } else { 1.0 };
            for q in 0..self.scaler.x_scale.len() {
                let own = slopes.col_as_slice_mut(q).iter_mut().enumerate();
                own.for_each(|(i, v)| *v *= target * self.scaler.input_slope(q, x[(i, q)]));
            }
            slopes
        };
        let latents = 0..self.posterior.latents();
        Ok(InputGradients {
            mean: latents.clone().map(|l| all(l, 1, &|part| &part.mean)).collect(),
            variance: latents.map(|l| all(l, 2, &|part| &part.variance)).collect(),
        })
    }

    /// Returns the predictive means, B×P, with the covariance of the rows for every target column,
    /// B×B each, in the data's own units. Observations have their noise on the diagonal. O(B²M).
    /// `extra` as for [`Fitted::predict_with`].
    ///
    /// # Errors
    /// [`Error::Invalid`] unless [`Likelihood::standardises`]; [`Error::Shape`] if numbers of rows or
    /// columns differ.
    pub fn predict_covariance(
        &self,
        x: MatRef<'_, f64>,
        extra: &[f64],
        of: Of,
    ) -> Result<(Mat<f64>, Vec<Mat<f64>>)> {
        let latents = self.of_location("its observations have no covariance of this form")?;
        self.check_untransformed("covariances of predictions")?;
        let rows = self.scaled_rows(x)?;
        let (f, mut all) = self.posterior.predict_f_full(rows.as_ref())?;
        let outputs = self.target_names.len();
        let mut mean = Mat::from_fn(x.nrows(), outputs, |i, p| f[(i, p * latents)]);
        let mut covariances: Vec<Mat<f64>> =
            (0..outputs).map(|p| std::mem::replace(&mut all[p * latents], Mat::new())).collect();
        self.scaler.unscale_mean(mean.as_mut())?;
        for (covariance, scale) in covariances.iter_mut().zip(&self.scaler.y_scale) {
            for j in 0..covariance.ncols() {
                covariance.col_as_slice_mut(j).iter_mut().for_each(|c| *c *= scale * scale);
            }
        }
        if of == Of::Observations {
            let (_, variance) = self.predict_with(x, extra, of)?;
            for (p, covariance) in covariances.iter_mut().enumerate() {
                (0..x.nrows()).for_each(|i| covariance[(i, i)] = variance[(i, p)]);
            }
        }
        Ok((mean, covariances))
    }

    /// Returns the number of latent functions of a target whose first is the mean of the
    /// observations.
    fn of_location(&self, otherwise: &str) -> Result<usize> {
        let likelihood = &self.model.likelihood;
        if likelihood.standardises() {
            return Ok(likelihood.latents());
        }
        Err(Error::Invalid(format!("the likelihood is `{}`: {otherwise}", likelihood.name())))
    }

    /// Returns the probabilities of the classes, B×C, from inputs B×D in the data's own units.
    ///
    /// # Errors
    /// [`Error::Invalid`] if targets are not classes, [`Error::Shape`] if the number of columns
    /// differs.
    pub fn predict_proba(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>> {
        let parts = self.in_parts(x, &[], |_, x, _| self.posterior.predict_proba(x))?;
        let classes = self.model.likelihood.classes().unwrap_or(0);
        Ok(stacked(&parts, x.nrows(), classes))
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
        let rows = self.scaled_rows(x)?;
        let mut rng = crate::rng::stream(seed, "samples of observations");
        let extra = self.scaled_extra(extra);
        let mut draws = self.posterior.sample_y(rows.as_ref(), &extra, samples, &mut rng)?;
        draws.iter_mut().try_for_each(|draw| self.scaler.unscale_values(draw.as_mut()))?;
        Ok(draws)
    }

    /// Returns the means of the latent functions given every draw of a sampled posterior
    /// ([`Posterior::predict_f_of_draws`]) at inputs B×D, B×L each: in the data's units, or on the
    /// model's scale where a target column has several latent functions.
    ///
    /// # Errors
    /// As for it.
    pub fn predict_of_draws(&self, x: MatRef<'_, f64>) -> Result<Vec<Mat<f64>>> {
        let rows = self.scaled_rows(x)?;
        let mut all = self.posterior.predict_f_of_draws(rows.as_ref())?;
        if self.model.likelihood.latents() == 1 {
            all.iter_mut().try_for_each(|f| self.scaler.unscale_values(f.as_mut()))?;
        }
        Ok(all)
    }

    /// Draws of the latent functions as functions ([`Posterior::sample_functions`]); [`Fitted::evaluate_functions`]
    /// gives their values.
    ///
    /// # Errors
    /// As for [`Posterior::sample_functions`].
    pub fn sample_functions(&self, samples: usize, waves: usize, seed: u64) -> Result<Functions> {
        let mut rng = crate::rng::stream(seed, "functions");
        self.posterior.sample_functions(samples, waves, &mut rng)
    }

    /// Returns the values of such functions at inputs B×D, B×L each: in the data's own units, or on
    /// the model's scale where a target column has several latent functions. O(waves + M) per
    /// value.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of columns differs.
    pub fn evaluate_functions(
        &self,
        functions: &Functions,
        x: MatRef<'_, f64>,
    ) -> Result<Vec<Mat<f64>>> {
        let mut all = self.scaled_functions(functions, x)?;
        if self.model.likelihood.latents() == 1 {
            all.iter_mut().try_for_each(|f| self.scaler.unscale_values(f.as_mut()))?;
        }
        Ok(all)
    }

    /// Returns their values on the model's scale.
    pub(super) fn scaled_functions(
        &self,
        functions: &Functions,
        x: MatRef<'_, f64>,
    ) -> Result<Vec<Mat<f64>>> {
        let parts = self.in_parts(x, &[], |_, x, _| functions.evaluate(x))?;
        let one = |s: usize| {
            let own: Vec<Mat<f64>> = parts.iter().map(|part| part[s].clone()).collect();
            stacked(&own, x.nrows(), self.posterior.latents())
        };
        Ok((0..functions.len()).map(one).collect())
    }

    /// Draws as [`Fitted::sample_y`] does, by drawn functions, for many rows: O(B(waves + M))
    /// instead of O(B³).
    ///
    /// # Errors
    /// As for [`Fitted::sample_functions`]; [`Error::Shape`] if numbers of rows or columns differ.
    pub fn sample_y_by_functions(
        &self,
        x: MatRef<'_, f64>,
        extra: &[f64],
        samples: usize,
        waves: usize,
        seed: u64,
    ) -> Result<Vec<Mat<f64>>> {
        default_extra(&*self.model.likelihood, extra, x.nrows())?;
        let functions = self.sample_functions(samples, waves, seed)?;
        let latent = self.scaled_functions(&functions, x)?;
        let mut rng = crate::rng::stream(seed, "samples of observations");
        let mut draws = self.posterior.observed(&latent, &self.scaled_extra(extra), &mut rng);
        draws.iter_mut().try_for_each(|draw| self.scaler.unscale_values(draw.as_mut()))?;
        Ok(draws)
    }

    /// Returns log p(yᵢ | data) of every row of targets B×P, in the data's own units, summed over
    /// the target columns; NaN targets are left out. `extra` as for [`Fitted::predict_with`].
    ///
    /// # Errors
    /// [`Error::Shape`] if numbers of rows or columns differ.
    pub fn log_density(
        &self,
        x: MatRef<'_, f64>,
        y: MatRef<'_, f64>,
        extra: &[f64],
    ) -> Result<Vec<f64>> {
        let scaled = self.scaled_targets(x, y)?;
        let parts = self.in_parts(x, extra, |start, x, extra| {
            let y = scaled.as_ref().subrows(start, x.nrows());
            self.posterior.predict_log_density(x, y, extra)
        })?;
        let mut density = parts.concat();
        for (i, d) in density.iter_mut().enumerate() {
            let known = (0..y.ncols()).filter(|p| !scaled[(i, *p)].is_nan());
            *d += known.map(|p| self.scaler.log_slope(p, y[(i, p)])).sum::<f64>();
        }
        Ok(density)
    }

    /// Returns the targets of as many rows on the model's scale.
    pub(super) fn scaled_targets(
        &self,
        x: MatRef<'_, f64>,
        y: MatRef<'_, f64>,
    ) -> Result<Mat<f64>> {
        if y.nrows() != x.nrows() || y.ncols() != self.target_names.len() {
            return Err(Error::Shape {
                what: "targets to score".into(),
                expected: format!("{}×{}", x.nrows(), self.target_names.len()),
                found: format!("{}×{}", y.nrows(), y.ncols()),
            });
        }
        let mut scaled = y.to_owned();
        self.scaler.scale_y(scaled.as_mut())?;
        Ok(scaled)
    }

    /// Returns the scores of the predictions for these blocks (in the data's own units, see
    /// [`crate::data::Selected::blocks`] without a scaler) against the trivial model of the
    /// training targets.
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

    /// Returns the inducing points in the data's units, M×D; none for exact inference. Of a deep
    /// model those of the first layer.
    ///
    /// # Errors
    /// None that a fitted model can cause.
    pub fn inducing_points(&self) -> Result<Option<Mat<f64>>> {
        let hidden = self.model.hidden.first().and_then(|layer| layer.groups.first());
        let mut z = match hidden.map(|group| group.inducing.as_points()) {
            Some(Some(points)) => points.z().to_owned(),
            Some(None) => return Ok(None),
            None if self.model.inducing.is_empty() => return Ok(None),
            None => self.model.inducing_points()?,
        };
        self.scaler.unscale_points(z.as_mut())?;
        Ok(Some(z))
    }

    /// Returns every parameter with its value on the model's scale and in the data's units.
    pub fn parameters(&self) -> Vec<ParameterRow> {
        let y_scale = self.scaler.first_scale();
        let mut scales = self.scaler.y_scale.iter().enumerate();
        let one_scale = scales.all(|(p, s)| *s == y_scale || self.scaler.is_constant(p));
        // latent functions that differ in kind have different units
        let one_unit = one_scale && (y_scale == 1.0 || self.model.likelihood.latents() == 1);
        let shallow = self.model.hidden.is_empty();
        let mut kernel_units = self.model.input_kernels().into_iter().flat_map(|k| k.units());
        let mut likelihood_units = self.model.likelihood.units().into_iter();
        let mut rows = Vec::new();
        self.model.visit_parts(&mut |part, path, param| {
            let (value, role) = (param.value().to_vec(), param.role());
            let of_mean = |role| matches!(role, Role::Constant | Role::Slopes);
            // only the first layer of a deep model sees inputs; its small parameters are kernels'
            let sees_inputs = match part {
                Part::Layer(l) => l == 0,
                Part::Kernel(_) | Part::Inducing(_) => shallow,
                _ => false,
            };
            let data_units = if sees_inputs && !role.is_bulky() && !of_mean(role) {
                let units: Vec<_> = kernel_units.by_ref().take(value.len()).collect();
                let units: Option<Vec<_>> = units.into_iter().collect();
                units.and_then(|units| {
                    units
                        .iter()
                        .zip(&value)
                        .map(|(unit, v)| {
                            // a length of a logarithm has no unit of the input
                            let logarithm = |(q, _)| self.scaler.log_unit(q).is_some();
                            if unit.input.is_some_and(logarithm) {
                                return None;
                            }
                            let x = unit.input.map_or(1.0, |(q, p)| self.scaler.x_scale[q].powi(p));
                            // what a hidden layer gives is on no scale of the targets
                            let usable = unit.output == 0 || (one_unit && shallow);
                            let origin = unit.input.filter(|_| unit.place);
                            let origin = origin.map_or(0.0, |(q, _)| self.scaler.x_mean[q]);
                            usable.then(|| v * x * y_scale.powi(unit.output) + origin)
                        })
                        .collect()
                })
            } else if part == Part::Likelihood {
                let units: Vec<i32> = likelihood_units.by_ref().take(value.len()).collect();
                let unitless = units.iter().all(|u| *u == 0);
                (one_scale || unitless)
                    .then(|| value.iter().zip(units).map(|(v, u)| v * y_scale.powi(u)).collect())
            } else if sees_inputs && role == Role::Points {
                let (m, d) = match param.shape() {
                    Shape::Matrix(m, d) => (m, d),
                    _ => (param.len(), 1),
                };
                let unscaled = (0..d).flat_map(|q| (0..m).map(move |i| (q, i)));
                let s = &self.scaler;
                Some(unscaled.map(|(q, i)| s.unscaled_input(q, value[q * m + i])).collect())
            } else if part == Part::Mean
                && role == Role::Constant
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
                path: path.to_string(),
                role,
                shape: param.shape().to_string(),
                value,
                data_units,
                transform: param.transform().to_string(),
                prior: param.prior,
                frozen: param.frozen,
                tied: param.tied().to_vec(),
            });
        });
        rows
    }
}

//! What a fitted model says of the rows that it was trained on.

use super::{Dataset, Fitted, Of};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::fit::quality::{Quality, QualityOptions, quality};
use crate::linalg::{Mat, MatRef, column, stacked};
#[cfg(doc)]
use crate::model::Posterior;
use crate::model::{Judgement, LeaveOneOut};

impl Fitted {
    /// Says whether predictions of observations are normal: under Gaussian noise, of a model of one layer whose inputs are known exactly
    /// and whose targets are learnt as they are.
    pub fn predicts_normal(&self) -> bool {
        self.model.likelihood.as_gaussian().is_some()
            && self.model.hidden.is_empty()
            && self.input_deviations.is_empty()
            && !self.scaler.is_transformed()
    }

    /// Computes everything that scores of targets B×P are made of, in the data's own units, by one
    /// pass ([`Posterior::judge`]). `extra` as for [`Fitted::predict_with`].
    ///
    /// # Errors
    /// [`Error::Shape`] if numbers of rows or columns differ.
    pub fn judge(
        &self,
        x: MatRef<'_, f64>,
        y: MatRef<'_, f64>,
        extra: &[f64],
    ) -> Result<Judgement> {
        let scaled = self.scaled_targets(x, y)?;
        let parts = self.in_parts(x, extra, |start, x, extra| {
            let y = scaled.as_ref().subrows(start, x.nrows());
            self.posterior.judge(x, y, extra)
        })?;
        let (n, columns) = (x.nrows(), y.ncols());
        let all = |of: &dyn Fn(&Judgement) -> &Mat<f64>| {
            let parts: Vec<Mat<f64>> = parts.iter().map(|part| of(part).clone()).collect();
            stacked(&parts, n, columns)
        };
        let mut own = Judgement {
            mean: all(&|part| &part.mean),
            variance: all(&|part| &part.variance),
            log_density: all(&|part| &part.log_density),
            below: all(&|part| &part.below),
            up_to: all(&|part| &part.up_to),
        };
        if self.is_mixed() {
            (own.mean, own.variance) = self.moments_of_mixture(x, extra, Of::Observations)?;
        } else {
            self.unscale_moments(&mut own.mean, &mut own.variance)?;
        }
        for p in 0..columns {
            let own = own.log_density.col_as_slice_mut(p);
            match self.scaler.is_constant(p) {
                // a constant has no density
                true => own.fill(0.0),
                false => own.iter_mut().enumerate().for_each(|(i, v)| {
                    *v += self.scaler.log_slope(p, y[(i, p)]);
                }),
            }
        }
        self.shares_of_constants(y, &mut own.below, &mut own.up_to);
        Ok(own)
    }

    /// Returns every training row as the others predict it, in the data's own units, at the
    /// hyperparameters, the mean function and the inducing points found
    /// ([`Posterior::leave_one_out`]; means and variances of latent functions stay on the model's
    /// scale where a target column has several). `dataset` has the rows of the training, on the
    /// model's scale ([`super::Scaling::Given`]).
    ///
    /// # Errors
    /// [`Error::Invalid`] if the rows or columns are not those of the training, as far as can be
    /// seen; as for [`Posterior::leave_one_out`].
    pub fn leave_one_out(&self, dataset: &Dataset) -> Result<LeaveOneOut> {
        self.check_certain("leaving one row out")?;
        super::checks::same_columns(self, dataset)?;
        let rows = |rows: usize, weight: Option<f64>| weight.unwrap_or(rows as f64);
        let count = rows(dataset.rows, dataset.total_weight);
        let trained = rows(self.rows, self.total_weight);
        if (count - trained).abs() > 1e-9 * trained {
            return Err(Error::Invalid(format!(
                "{count} rows were given, and the model was trained on {trained}: leaving one out needs \
                 the rows of the training"
            )));
        }
        let mut all = match self.model.method.has_q() {
            true => self.posterior.leave_one_out(&self.model, &*dataset.source)?,
            false => self.posterior.leave_one_out(&self.model, &dataset.filled())?,
        };
        self.unscale_moments(&mut all.mean, &mut all.variance)?;
        if self.model.likelihood.latents() == 1 {
            self.unscale_moments(&mut all.f_mean, &mut all.f_variance)?;
        }
        for p in (0..all.log_density.ncols()).filter(|p| self.scaler.is_constant(*p)) {
            // a constant has no density
            all.log_density.col_as_slice_mut(p).fill(0.0);
        }
        dataset.source.for_each_chunk(1 << 14, &mut |rows| {
            for p in (0..rows.y.ncols()).filter(|p| !self.scaler.is_constant(*p)) {
                for (i, y) in column(rows.y, p).iter().enumerate() {
                    let own = self.scaler.log_slope(p, self.scaler.unscaled(p, *y));
                    all.log_density[(rows.start + i, p)] += own;
                }
            }
            Ok(())
        })?;
        Ok(all)
    }

    /// Returns how well the inducing points stand for these rows, at the hyperparameters found:
    /// shares and variances are on the model's scale, the gap is in the data's units. `dataset` has
    /// the model's columns on its scale ([`super::Scaling::Given`]); the gap is of the evidence of
    /// its rows.
    ///
    /// # Errors
    /// [`Error::Invalid`] for other columns; as for [`quality`](fn@crate::fit::quality::quality).
    pub fn inducing_quality(
        &self,
        dataset: &Dataset,
        engine: &dyn Engine,
        options: &QualityOptions,
    ) -> Result<Quality> {
        super::checks::same_columns(self, dataset)?;
        let mut found = quality(&self.model, engine, &dataset.filled(), options)?;
        if self.weight_name.is_some()
            || self.extra_name.is_some()
            || self.scaler.y_constant.contains(&true)
        {
            // the rows may be without what they were weighed by
            found.gap = None;
        }
        if let Some(gap) = &mut found.gap {
            let rows = dataset.source.rows() as f64;
            let jacobian = self.scaler.log_jacobian_of(rows, &dataset.absent) + dataset.log_slope;
            gap.lower += jacobian;
            gap.upper += jacobian;
        }
        Ok(found)
    }
}

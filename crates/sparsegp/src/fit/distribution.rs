//! Quantiles and distribution functions of a fitted model's predictions, in the data's units.

use super::fitted::{Fitted, Of};
use crate::error::Result;
use crate::linalg::{Mat, MatRef, stacked};
#[cfg(doc)]
use crate::model::Posterior;
use crate::model::Predicted;

impl Fitted {
    /// Returns the quantiles at these levels, one matrix for each, of the shape and in the units of
    /// [`Fitted::predict`]; those of a posterior that was sampled are its mixture's. `extra` as for
    /// [`Fitted::predict_with`].
    ///
    /// # Errors
    /// [`crate::Error::Shape`] if numbers of rows or columns differ.
    pub fn quantiles(
        &self,
        x: MatRef<'_, f64>,
        extra: &[f64],
        levels: &[f64],
        of: Of,
    ) -> Result<Vec<Mat<f64>>> {
        let parts = self.in_parts(x, extra, |_, x, extra| match of {
            Of::Observations => self.posterior.predict_quantiles(x, extra, levels),
            Of::Latent => self.posterior.predict_f_quantiles(x, levels),
        })?;
        self.quantiles_of((x.nrows(), levels.len()), &parts, of)
    }

    /// Returns the means and variances ([`Fitted::predict_with`]) with quantiles at these levels
    /// ([`Fitted::quantiles`]): rows are predicted once.
    ///
    /// # Errors
    /// As for these.
    pub fn predict_with_quantiles(
        &self,
        x: MatRef<'_, f64>,
        extra: &[f64],
        levels: &[f64],
        of: Of,
    ) -> Result<Predicted> {
        if self.is_mixed() {
            let (mean, variance) = self.moments_of_mixture(x, extra, of)?;
            let quantiles = self.quantiles(x, extra, levels, of)?;
            return Ok(Predicted { mean, variance, quantiles });
        }
        let parts = self.in_parts(x, extra, |_, x, extra| match of {
            Of::Observations => self.posterior.predict_y_with_quantiles(x, extra, levels),
            Of::Latent => self.posterior.predict_f_with_quantiles(x, levels),
        })?;
        let (mut moments, mut quantiles) = (Vec::new(), Vec::new());
        for own in parts {
            moments.push((own.mean, own.variance));
            quantiles.push(own.quantiles);
        }
        let (mean, variance) = self.moments_of(x.nrows(), moments, of)?;
        let quantiles = self.quantiles_of((x.nrows(), levels.len()), &quantiles, of)?;
        Ok(Predicted { mean, variance, quantiles })
    }

    /// Returns the quantiles of parts of the rows as those of all, in the data's units where there
    /// are some.
    fn quantiles_of(
        &self,
        (rows, levels): (usize, usize),
        parts: &[Vec<Mat<f64>>],
        of: Of,
    ) -> Result<Vec<Mat<f64>>> {
        let one = |level: usize| {
            let own: Vec<Mat<f64>> = parts.iter().map(|part| part[level].clone()).collect();
            let mut all = stacked(&own, rows, self.columns(of));
            if self.own_units(of) {
                self.scaler.unscale_values(all.as_mut())?;
            }
            Ok(all)
        };
        (0..levels).map(one).collect()
    }

    /// Returns P(Y < y) and P(Y ≤ y) of observations at targets B×P in the data's own units
    /// ([`Posterior::predict_cdf`]). `extra` as for [`Fitted::predict_with`].
    ///
    /// # Errors
    /// [`crate::Error::Shape`] if numbers of rows or columns differ.
    pub fn cdf(
        &self,
        x: MatRef<'_, f64>,
        y: MatRef<'_, f64>,
        extra: &[f64],
    ) -> Result<(Mat<f64>, Mat<f64>)> {
        let scaled = self.scaled_targets(x, y)?;
        let parts = self.in_parts(x, extra, |start, x, extra| {
            let y = scaled.as_ref().subrows(start, x.nrows());
            self.posterior.predict_cdf(x, y, extra)
        })?;
        let (below, up_to): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        let (n, columns) = (x.nrows(), y.ncols());
        let (mut below, mut up_to) = (stacked(&below, n, columns), stacked(&up_to, n, columns));
        self.shares_of_constants(y, &mut below, &mut up_to);
        Ok((below, up_to))
    }

    /// Computes the shares below constants that nothing was learnt of.
    pub(super) fn shares_of_constants(
        &self,
        y: MatRef<'_, f64>,
        below: &mut Mat<f64>,
        up_to: &mut Mat<f64>,
    ) {
        for p in (0..y.ncols()).filter(|&p| self.scaler.is_constant(p)) {
            let constant = self.scaler.y_mean[p];
            for i in 0..y.nrows() {
                below[(i, p)] = f64::from(u8::from(y[(i, p)] > constant));
                up_to[(i, p)] = f64::from(u8::from(y[(i, p)] >= constant));
            }
        }
    }
}

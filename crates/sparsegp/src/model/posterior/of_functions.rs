//! Moments of functions of what is predicted.

use super::Posterior;
use super::law::pool;
use crate::error::Result;
use crate::likelihoods::default_extra;
use crate::linalg::{Mat, MatRef};

impl Posterior {
    /// Returns means and variances of a function of observations under Gaussian noise, or of their latent functions, B×P each:
    /// averages over what the predictions are a mixture of. `moments` gives those of the function from the target column, mean
    /// and variance of a Gaussian. `extra` as for [`Posterior::predict_y`].
    ///
    /// # Errors
    /// As for [`Posterior::predict_y`].
    pub fn predict_moments_of(
        &self,
        x: MatRef<f64>,
        extra: &[f64],
        latent: bool,
        moments: &dyn Fn(usize, f64, f64) -> (f64, f64),
    ) -> Result<(Mat<f64>, Mat<f64>)> {
        default_extra(&*self.likelihood, extra, x.nrows())?;
        self.law.check(x)?;
        let zeros = || Mat::zeros(x.nrows(), self.outputs());
        let (mut mean, mut variance, mut count) = (zeros(), zeros(), 0.0);
        self.components(x, |likelihood, known| {
            count += 1.0;
            self.each_target(likelihood, known, extra, |seen| {
                let (m, v) = match latent {
                    true => (seen.mean[0], seen.variance[0]),
                    false => likelihood.predict(seen.extra, seen.mean, seen.variance),
                };
                let own = moments(seen.at.1, m, v);
                pool(1.0 / count, (&mut mean[seen.at], &mut variance[seen.at]), own);
            });
        })?;
        Ok((mean, variance))
    }
}

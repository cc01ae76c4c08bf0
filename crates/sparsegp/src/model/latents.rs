//! What belongs to a latent function: its kernel, its points, and the factor of their covariance.

use super::Model;
use crate::error::Result;
use crate::kernels::{self, Kernel, of_latent};
use crate::linalg::{Cholesky, Mat};
use std::ops::Range;

impl Model {
    /// Returns the covariance function of a latent function.
    pub fn kernel_of(&self, latent: usize) -> &dyn Kernel {
        &**of_latent(&self.kernels, latent)
    }

    /// Returns whether all latent functions share covariance function and points.
    pub fn shares_points(&self) -> bool {
        self.kernels.len() == 1 && self.inducing.len() <= 1
    }

    /// Returns the latent functions that share covariance function and points: all together, or
    /// each by itself.
    pub(crate) fn processes(&self, latents: usize) -> Vec<Range<usize>> {
        match self.shares_points() {
            true => std::iter::once(0..latents).collect(),
            false => (0..latents).map(|l| l..l + 1).collect(),
        }
    }

    /// Returns the points of a latent function (M×D), which are the rows if there are some and else
    /// inducing points, and the factor of their covariance with the model's jitter.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] if there are neither; [`crate::Error::NotPositiveDefinite`].
    pub(crate) fn points_and_factor(
        &self,
        rows: Option<&Mat<f64>>,
        latent: usize,
    ) -> Result<(Mat<f64>, Cholesky)> {
        let (points, name) = match rows {
            Some(x) => (x.clone(), "the covariance of the points"),
            None => (self.inducing_set(latent)?, "Kuu"),
        };
        let factor = kernels::factor(self.kernel_of(latent), points.as_ref(), self.jitter, name)?;
        Ok((points, factor))
    }
}

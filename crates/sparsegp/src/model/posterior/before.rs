//! What rows go through before the latent functions that a posterior is of: the predictions are even mixtures then.

use super::Posterior;
use super::hidden::Hidden;
use super::noisy::Noisy;
use crate::error::{Error, Result};
use crate::likelihoods::Target;
use crate::linalg::{Mat, MatRef};
use crate::special::log_add_exp;

/// What rows go through first.
#[derive(Debug)]
pub(super) enum Before {
    /// Hidden layers.
    Layers(Hidden),
    /// Errors of the inputs.
    Noisy(Box<Noisy>),
}

impl Before {
    /// Number of input columns.
    pub(super) fn inputs(&self) -> usize {
        match self {
            Self::Layers(hidden) => hidden.inputs(),
            Self::Noisy(noisy) => noisy.inputs(),
        }
    }

    /// How many laws the predictions are an even mixture of.
    fn count(&self) -> usize {
        match self {
            Self::Layers(_) => super::hidden::PATHS,
            Self::Noisy(_) => Noisy::COUNT,
        }
    }

    /// Calls `work` with means and variances of the latent functions (B×L) of each of them.
    pub(super) fn paths(
        &self,
        x: MatRef<f64>,
        work: impl FnMut(MatRef<f64>, MatRef<f64>),
    ) -> Result<()> {
        match self {
            Self::Layers(hidden) => hidden.paths(x, work),
            Self::Noisy(noisy) => noisy.paths(x, work),
        }
    }

    /// A joint draw of the latent functions at the rows, B×L.
    pub(super) fn sample(&self, x: MatRef<f64>, rng: &mut impl rand::Rng) -> Result<Mat<f64>> {
        match self {
            Self::Layers(hidden) => hidden.sample(x, rng),
            Self::Noisy(noisy) => noisy.sample(x, rng),
        }
    }

    /// Means and variances of the latent functions (B×L each) where they are known without a mixture.
    pub(super) fn moments(&self, x: MatRef<f64>) -> Result<Option<(Mat<f64>, Mat<f64>)>> {
        match self {
            Self::Layers(_) => Ok(None),
            Self::Noisy(noisy) => noisy.moments(x),
        }
    }
}

impl Posterior {
    /// Refuses what is known at rows alone that go through nothing first.
    pub(super) fn check_shallow(&self, what: &str) -> Result<()> {
        let (of, others) = match self.before.as_deref() {
            None => return Ok(()),
            Some(Before::Layers(_)) => ("models of one layer", "of a deep one"),
            Some(Before::Noisy(_)) => {
                ("inputs without standard deviations", "at others, of single rows,")
            }
        };
        Err(Error::Invalid(format!(
            "{what} is for {of}; {others} there are means, variances, quantiles, densities and draws"
        )))
    }

    /// [`Posterior::predict_log_density`] of a mixture over paths, on each of which the targets of a row are together.
    pub(super) fn log_density_by_paths(
        &self,
        x: MatRef<f64>,
        y: MatRef<f64>,
        extra: &[f64],
    ) -> Result<Vec<f64>> {
        let mut all = vec![f64::NEG_INFINITY; x.nrows()];
        self.components(x, |likelihood, mean, variance| {
            let mut path = vec![0.0; x.nrows()];
            self.observations(mean, variance, |i, p, mean, variance| {
                let target = Target { y: y[(i, p)], extra: self.extra(extra, i) };
                if !target.y.is_nan() {
                    path[i] += likelihood.predict_log_density(target, mean, variance);
                }
            });
            all.iter_mut().zip(path).for_each(|(sum, own)| *sum = log_add_exp(*sum, own));
        })?;
        let count = (self.components_count() as f64).ln();
        Ok(all.into_iter().map(|sum| sum - count).collect())
    }

    /// How many laws the predictions are an even mixture of; 1 where they are no mixture.
    pub fn components_count(&self) -> usize {
        self.before.as_ref().map_or(self.draws.len().max(1), |before| before.count())
    }
}

//! Predictions of observations, of what is known of the latent functions.

use super::Posterior;
use super::sampled::pool;
use crate::error::{Error, Result};
use crate::likelihoods::{Likelihood, Target, default_extra};
use crate::linalg::{Mat, MatRef};
use crate::special::log_add_exp;

/// What a posterior says of targets that are there, B×P each; NaN where a target is missing, but for means and variances.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// Means of observations.
    pub mean: Mat<f64>,
    /// Variances of observations.
    pub variance: Mat<f64>,
    /// Log densities, target by target.
    pub log_density: Mat<f64>,
    /// P(Y < y).
    pub below: Mat<f64>,
    /// P(Y ≤ y).
    pub up_to: Mat<f64>,
}

impl Posterior {
    /// Means and variances of observations, B×P each. `extra` holds the further number of every row
    /// (exposure, trials, known noise variance); empty for its default.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of columns or of further numbers differs; [`Error::Invalid`] without further numbers
    /// where there is no default (trials).
    pub fn predict_y(&self, x: MatRef<f64>, extra: &[f64]) -> Result<(Mat<f64>, Mat<f64>)> {
        default_extra(&*self.likelihood, extra, x.nrows())?;
        let mut y_mean = Mat::zeros(x.nrows(), self.outputs());
        let mut y_variance = Mat::zeros(x.nrows(), self.outputs());
        if let Some((mean, variance)) = self.added_moments(x)? {
            self.observations(mean.as_ref(), variance.as_ref(), |i, p, mean, variance| {
                let own = self.likelihood.predict(self.extra(extra, i), mean, variance);
                (y_mean[(i, p)], y_variance[(i, p)]) = own;
            });
            return Ok((y_mean, y_variance));
        }
        let mut count = 0.0;
        self.components(x, |likelihood, mean, variance| {
            count += 1.0;
            self.observations(mean, variance, |i, p, mean, variance| {
                let own = likelihood.predict(self.extra(extra, i), mean, variance);
                pool(1.0 / count, (&mut y_mean[(i, p)], &mut y_variance[(i, p)]), own);
            });
        })?;
        Ok((y_mean, y_variance))
    }

    /// Probabilities of the classes, B×C, for one target column of classes.
    ///
    /// # Errors
    /// [`Error::Invalid`] if targets are no classes, [`Error::Shape`] if the number of columns
    /// differs.
    pub fn predict_proba(&self, x: MatRef<f64>) -> Result<Mat<f64>> {
        let (Some(classes), 1) = (self.likelihood.classes(), self.outputs()) else {
            return Err(Error::Invalid(format!(
                "the likelihood `{}` has no class probabilities",
                self.likelihood.name()
            )));
        };
        let share = 1.0 / self.components_count() as f64;
        let mut all = Mat::zeros(x.nrows(), classes);
        let mut own = vec![0.0; classes];
        self.components(x, |likelihood, mean, variance| {
            self.observations(mean, variance, |i, _, mean, variance| {
                likelihood.probabilities(mean, variance, &mut own);
                own.iter().enumerate().for_each(|(c, p)| all[(i, c)] += share * p);
            });
        })?;
        Ok(all)
    }

    /// log p(yᵢ | data) of every row, summed over the target columns that are not missing (which are
    /// independent but for deep models, whose targets share the paths). `extra` as for [`Posterior::predict_y`].
    ///
    /// # Errors
    /// [`Error::Shape`] if the shapes do not fit.
    pub fn predict_log_density(
        &self,
        x: MatRef<f64>,
        y: MatRef<f64>,
        extra: &[f64],
    ) -> Result<Vec<f64>> {
        self.check_targets(x, y)?;
        default_extra(&*self.likelihood, extra, x.nrows())?;
        if self.before.is_some() {
            return self.log_density_by_paths(x, y, extra);
        }
        let mut density = Mat::zeros(x.nrows(), self.outputs());
        let mut first = true;
        self.components(x, |likelihood, mean, variance| {
            self.observations(mean, variance, |i, p, mean, variance| {
                let target = Target { y: y[(i, p)], extra: self.extra(extra, i) };
                if !target.y.is_nan() {
                    let own = likelihood.predict_log_density(target, mean, variance);
                    let sum = &mut density[(i, p)];
                    *sum = if first { own } else { log_add_exp(*sum, own) };
                }
            });
            first = false;
        })?;
        let count = (self.components_count() as f64).ln();
        let observed = |i: usize, p: usize| !y[(i, p)].is_nan();
        let each = |i: usize| -> f64 {
            (0..self.outputs()).filter(|p| observed(i, *p)).map(|p| density[(i, p)] - count).sum()
        };
        Ok((0..x.nrows()).map(each).collect())
    }

    /// Everything that scores of targets B×P are made of, by one pass over the laws that the predictions are a mixture of: what
    /// [`Posterior::predict_y`], [`Posterior::predict_cdf`] and, target by target, [`Posterior::predict_log_density`] give.
    ///
    /// # Errors
    /// As for these.
    pub fn judge(&self, x: MatRef<f64>, y: MatRef<f64>, extra: &[f64]) -> Result<Judgement> {
        self.check_targets(x, y)?;
        default_extra(&*self.likelihood, extra, x.nrows())?;
        let (n, outputs) = (x.nrows(), self.outputs());
        let (mut mean, mut variance) = (Mat::zeros(n, outputs), Mat::zeros(n, outputs));
        let unknown = |i: usize, p: usize| if y[(i, p)].is_nan() { f64::NAN } else { 0.0 };
        let mut below = Mat::from_fn(n, outputs, unknown);
        let mut up_to = below.clone();
        let mut log_density = below.clone();
        let mut count = 0.0;
        self.components(x, |likelihood, mu, s| {
            count += 1.0;
            self.observations(mu, s, |i, p, mu, s| {
                let extra = self.extra(extra, i);
                let own = likelihood.predict(extra, mu, s);
                pool(1.0 / count, (&mut mean[(i, p)], &mut variance[(i, p)]), own);
                let target = Target { y: y[(i, p)], extra };
                if target.y.is_nan() {
                    return;
                }
                let own = likelihood.predict_log_density(target, mu, s);
                let sum = &mut log_density[(i, p)];
                *sum = if count == 1.0 { own } else { log_add_exp(*sum, own) };
                let (less, more) = shares(likelihood, target, mu, s);
                below[(i, p)] += less;
                up_to[(i, p)] += more;
            });
        })?;
        for p in 0..outputs {
            log_density.col_as_slice_mut(p).iter_mut().for_each(|v| *v -= count.ln());
        }
        averaged(&mut below, &mut up_to, count);
        if let Some((mu, s)) = self.added_moments(x)? {
            self.observations(mu.as_ref(), s.as_ref(), |i, p, mu, s| {
                let own = self.likelihood.predict(self.extra(extra, i), mu, s);
                (mean[(i, p)], variance[(i, p)]) = own;
            });
        }
        Ok(Judgement { mean, variance, log_density, below, up_to })
    }

    /// Exact moments of the latent functions, where noise that is added to them leaves moments what they are.
    fn added_moments(&self, x: MatRef<f64>) -> Result<Option<(Mat<f64>, Mat<f64>)>> {
        if self.likelihood.as_gaussian().is_some() { self.exact_moments(x) } else { Ok(None) }
    }

    pub(super) fn check_targets(&self, x: MatRef<f64>, y: MatRef<f64>) -> Result<()> {
        if y.nrows() == x.nrows() && y.ncols() == self.outputs() {
            return Ok(());
        }
        Err(Error::Shape {
            what: "targets to score".into(),
            expected: format!("{}×{}", x.nrows(), self.outputs()),
            found: format!("{}×{}", y.nrows(), y.ncols()),
        })
    }

    /// Draws of observations, B×P each: the latent functions jointly over the rows
    /// ([`Posterior::sample_f`]), then y given them. `extra` as for [`Posterior::predict_y`].
    ///
    /// # Errors
    /// As for [`Posterior::sample_f`].
    pub fn sample_y(
        &self,
        x: MatRef<f64>,
        extra: &[f64],
        samples: usize,
        rng: &mut impl rand::Rng,
    ) -> Result<Vec<Mat<f64>>> {
        default_extra(&*self.likelihood, extra, x.nrows())?;
        if self.each.is_empty() {
            let latent = self.sample_f(x, samples, rng)?;
            return Ok(self.observed(&latent, extra, rng));
        }
        let (of, latent) = self.sample_of_draws(x, samples, rng)?;
        let one = |(of, f): (usize, Mat<f64>)| self.each[of].observed(&[f], extra, rng);
        Ok(of.into_iter().zip(latent).flat_map(one).collect())
    }

    /// Draws of observations given draws of latent functions, B×P each. `extra` as for
    /// [`Posterior::predict_y`].
    pub fn observed(
        &self,
        latent: &[Mat<f64>],
        extra: &[f64],
        rng: &mut impl rand::Rng,
    ) -> Vec<Mat<f64>> {
        let k = self.likelihood.latents();
        let one = |f: &Mat<f64>| {
            Mat::from_fn(f.nrows(), self.outputs(), |i, p| {
                let own: Vec<f64> = (0..k).map(|l| f[(i, p * k + l)]).collect();
                self.likelihood.sample(self.extra(extra, i), &own, rng)
            })
        };
        latent.iter().map(one).collect()
    }
}

/// P(Y < y) and P(Y ≤ y) given moments of the latent functions: the same but for whole numbers.
pub(super) fn shares(
    likelihood: &dyn Likelihood,
    target: Target,
    mean: &[f64],
    variance: &[f64],
) -> (f64, f64) {
    let at = likelihood.cdf(target, mean, variance);
    let whole = likelihood.support(target.extra).largest().is_some();
    let below = match whole {
        true => likelihood.cdf(Target { y: target.y - 1.0, ..target }, mean, variance),
        false => at,
    };
    (below, at)
}

/// Sums of so many become averages. Integrals and means may be beyond 0 and 1 by their rounding, and out of order; NaN stays.
pub(super) fn averaged(below: &mut Mat<f64>, up_to: &mut Mat<f64>, count: f64) {
    let share = 1.0 / count;
    for p in 0..below.ncols() {
        let all = below.col_as_slice_mut(p).iter_mut().zip(up_to.col_as_slice_mut(p));
        for (below, up_to) in all {
            *up_to = (*up_to * share).clamp(0.0, 1.0);
            *below = (*below * share).clamp(0.0, if up_to.is_nan() { 1.0 } else { *up_to });
        }
    }
}

//! Predictions of observations, each written once: an average over what is known of the latent
//! functions.

use super::Posterior;
use super::law::{Marginals, pool};
use crate::error::{Error, Result};
use crate::likelihoods::{Likelihood, Target, default_extra};
use crate::linalg::{Mat, MatRef};
use crate::special::log_add_exp;
use rand::Rng;

/// What a posterior says of targets that are there, B×P each; NaN where a target is missing, but
/// for means and variances.
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

/// A target of a row with what one component knows of it.
pub(super) struct Seen<'s> {
    /// Row and target column.
    pub(super) at: (usize, usize),
    pub(super) likelihood: &'s dyn Likelihood,
    /// What the likelihood needs to know of the row.
    pub(super) extra: f64,
    /// Of its latent values.
    pub(super) mean: &'s [f64],
    pub(super) variance: &'s [f64],
}

/// Means and variances of observations.
pub(super) struct Moments {
    pub(super) mean: Mat<f64>,
    pub(super) variance: Mat<f64>,
    count: f64,
}

impl Moments {
    pub(super) fn new(rows: usize, outputs: usize) -> Self {
        let zeros = || Mat::zeros(rows, outputs);
        Self { mean: zeros(), variance: zeros(), count: 0.0 }
    }

    /// Begins a component.
    pub(super) fn begin(&mut self) {
        self.count += 1.0;
    }

    pub(super) fn add(&mut self, of: &Seen<'_>) {
        let own = of.likelihood.predict(of.extra, of.mean, of.variance);
        pool(1.0 / self.count, (&mut self.mean[of.at], &mut self.variance[of.at]), own);
    }

    /// Takes what a closed form says in the place of the average.
    fn set(&mut self, of: &Seen<'_>) {
        let own = of.likelihood.predict(of.extra, of.mean, of.variance);
        (self.mean[of.at], self.variance[of.at]) = own;
    }
}

/// Log densities: of every target separately, or of the targets of a row together.
struct Densities<'y> {
    y: MatRef<'y, f64>,
    together: bool,
    /// Of the component that is seen now, B×P or B×1.
    own: Mat<f64>,
    /// Of the sum of those before.
    sum: Mat<f64>,
    count: f64,
}

impl<'y> Densities<'y> {
    fn new(y: MatRef<'y, f64>, together: bool) -> Self {
        let columns = if together { 1 } else { y.ncols() };
        let zeros = || Mat::zeros(y.nrows(), columns);
        Self { y, together, own: zeros(), sum: zeros(), count: 0.0 }
    }

    fn add(&mut self, of: &Seen<'_>) {
        let target = Target { y: self.y[of.at], extra: of.extra };
        if target.y.is_nan() {
            return;
        }
        let (i, p) = of.at;
        let density = of.likelihood.predict_log_density(target, of.mean, of.variance);
        self.own[(i, if self.together { 0 } else { p })] += density;
    }

    /// Ends a component.
    fn end(&mut self) {
        self.count += 1.0;
        for p in 0..self.own.ncols() {
            let both = self.sum.col_as_slice_mut(p).iter_mut().zip(self.own.col_as_slice_mut(p));
            for (sum, own) in both {
                *sum = if self.count == 1.0 { *own } else { log_add_exp(*sum, *own) };
                *own = 0.0;
            }
        }
    }

    /// Returns the averages; those of missing targets are NaN.
    fn finish(self) -> Mat<f64> {
        let count = self.count.ln();
        let missing = |i: usize, p: usize| !self.together && self.y[(i, p)].is_nan();
        Mat::from_fn(self.sum.nrows(), self.sum.ncols(), |i, p| match missing(i, p) {
            true => f64::NAN,
            false => self.sum[(i, p)] - count,
        })
    }
}

/// P(Y < y) and P(Y ≤ y): the same but for whole numbers; NaN for missing targets.
struct Shares<'y> {
    y: MatRef<'y, f64>,
    below: Mat<f64>,
    up_to: Mat<f64>,
}

impl<'y> Shares<'y> {
    fn new(y: MatRef<'y, f64>) -> Self {
        let unknown = |i: usize, p: usize| if y[(i, p)].is_nan() { f64::NAN } else { 0.0 };
        let zeros = Mat::from_fn(y.nrows(), y.ncols(), unknown);
        Self { y, below: zeros.clone(), up_to: zeros }
    }

    fn add(&mut self, of: &Seen<'_>) {
        let target = Target { y: self.y[of.at], extra: of.extra };
        if target.y.is_nan() {
            return;
        }
        let at = of.likelihood.cdf(target, of.mean, of.variance);
        let whole = of.likelihood.support(target.extra).largest().is_some();
        let before = Target { y: target.y - 1.0, ..target };
        self.below[of.at] += match whole {
            true => of.likelihood.cdf(before, of.mean, of.variance),
            false => at,
        };
        self.up_to[of.at] += at;
    }

    /// Returns the averages. Integrals and means may be beyond 0 and 1 by their rounding, and out
    /// of order; NaN stays.
    fn finish(mut self, count: usize) -> (Mat<f64>, Mat<f64>) {
        let share = 1.0 / count as f64;
        for p in 0..self.below.ncols() {
            let below = self.below.col_as_slice_mut(p).iter_mut();
            for (below, up_to) in below.zip(self.up_to.col_as_slice_mut(p)) {
                *up_to = (*up_to * share).clamp(0.0, 1.0);
                *below = (*below * share).clamp(0.0, if up_to.is_nan() { 1.0 } else { *up_to });
            }
        }
        (self.below, self.up_to)
    }
}

impl Posterior {
    /// Returns what the likelihood needs to know of row i.
    pub(super) fn extra(&self, extra: &[f64], i: usize) -> f64 {
        let default = self.likelihood.extra().and_then(|e| e.default).unwrap_or(1.0);
        extra.get(i).copied().unwrap_or(default)
    }

    /// Calls `work` with every component: its likelihood and what is known of the latent functions.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of columns differs.
    pub(super) fn components<'a>(
        &'a self,
        x: MatRef<f64>,
        mut work: impl FnMut(&'a dyn Likelihood, &Marginals),
    ) -> Result<()> {
        self.law.check(x)?;
        self.law.components(x, &mut |own, at| work(own.unwrap_or(&*self.likelihood), at))
    }

    /// Calls `work` with every row and target column of a component.
    pub(super) fn each_target(
        &self,
        likelihood: &dyn Likelihood,
        known: &Marginals,
        extra: &[f64],
        mut work: impl FnMut(&Seen<'_>),
    ) {
        let k = self.likelihood.latents();
        let (mut mean, mut variance) = (vec![0.0; k], vec![0.0; k]);
        for p in 0..self.outputs() {
            for i in 0..known.mean.nrows() {
                for l in 0..k {
                    mean[l] = known.mean[(i, p * k + l)];
                    variance[l] = known.variance[(i, p * k + l)];
                }
                let extra = self.extra(extra, i);
                let at = (i, p);
                work(&Seen { at, likelihood, extra, mean: &mean, variance: &variance });
            }
        }
    }

    /// Returns the means and variances of observations, B×P each. `extra` holds what the likelihood
    /// needs to know of every row (exposure, trials, known noise variance); empty for its default.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of columns or of numbers in `extra` differs;
    /// [`Error::Invalid`] without them where there is no default (trials).
    pub fn predict_y(&self, x: MatRef<f64>, extra: &[f64]) -> Result<(Mat<f64>, Mat<f64>)> {
        default_extra(&*self.likelihood, extra, x.nrows())?;
        self.law.check(x)?;
        let mut moments = Moments::new(x.nrows(), self.outputs());
        if !self.set_exact(x, extra, &mut moments)? {
            self.components(x, |likelihood, known| {
                moments.begin();
                self.each_target(likelihood, known, extra, |seen| moments.add(seen));
            })?;
        }
        Ok((moments.mean, moments.variance))
    }

    /// Takes exact moments where there are some, and where noise that is added to the latent
    /// functions leaves them what they are. Returns whether it did.
    pub(super) fn set_exact(
        &self,
        x: MatRef<f64>,
        extra: &[f64],
        moments: &mut Moments,
    ) -> Result<bool> {
        if self.likelihood.as_gaussian().is_none() {
            return Ok(false);
        }
        let Some(exact) = self.law.exact(x)? else { return Ok(false) };
        self.each_target(&*self.likelihood, &exact, extra, |seen| moments.set(seen));
        Ok(true)
    }

    /// Returns the probabilities of the classes, B×C, for one target column of classes.
    ///
    /// # Errors
    /// [`Error::Invalid`] if targets are not classes, [`Error::Shape`] if the number of columns
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
        self.components(x, |likelihood, known| {
            self.each_target(likelihood, known, &[], |seen| {
                likelihood.probabilities(seen.mean, seen.variance, &mut own);
                own.iter().enumerate().for_each(|(c, p)| all[(seen.at.0, c)] += share * p);
            });
        })?;
        Ok(all)
    }

    /// Returns log p(yᵢ | data) of every row, summed over the target columns that are not missing
    /// (which are independent but for deep models, whose targets share the paths). `extra` as for
    /// [`Posterior::predict_y`].
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
        let together = self.law.joins_targets();
        let mut densities = Densities::new(y, together);
        self.components(x, |likelihood, known| {
            self.each_target(likelihood, known, extra, |seen| densities.add(seen));
            densities.end();
        })?;
        let all = densities.finish();
        let known = |i: usize, p: usize| together || !y[(i, p)].is_nan();
        let of = |i: usize| (0..all.ncols()).filter(|p| known(i, *p)).map(|p| all[(i, p)]).sum();
        Ok((0..x.nrows()).map(of).collect())
    }

    /// Computes everything that scores of targets B×P are made of, by one pass over the laws that
    /// the predictions are a mixture of: what [`Posterior::predict_y`], [`Posterior::predict_cdf`]
    /// and, target by target, [`Posterior::predict_log_density`] give.
    ///
    /// # Errors
    /// As for these.
    pub fn judge(&self, x: MatRef<f64>, y: MatRef<f64>, extra: &[f64]) -> Result<Judgement> {
        self.check_targets(x, y)?;
        default_extra(&*self.likelihood, extra, x.nrows())?;
        let mut moments = Moments::new(x.nrows(), self.outputs());
        let (mut densities, mut shares) = (Densities::new(y, false), Shares::new(y));
        self.components(x, |likelihood, known| {
            moments.begin();
            self.each_target(likelihood, known, extra, |seen| {
                moments.add(seen);
                densities.add(seen);
                shares.add(seen);
            });
            densities.end();
        })?;
        self.set_exact(x, extra, &mut moments)?;
        let (below, up_to) = shares.finish(self.components_count());
        let Moments { mean, variance, .. } = moments;
        Ok(Judgement { mean, variance, log_density: densities.finish(), below, up_to })
    }

    /// Returns P(Y < y) and P(Y ≤ y) of observations at targets B×P, B×P each: the same but for
    /// whole numbers; NaN where the target is. `extra` as for [`Posterior::predict_y`].
    ///
    /// # Errors
    /// [`Error::Shape`] if the shapes do not fit.
    pub fn predict_cdf(
        &self,
        x: MatRef<f64>,
        y: MatRef<f64>,
        extra: &[f64],
    ) -> Result<(Mat<f64>, Mat<f64>)> {
        self.check_targets(x, y)?;
        default_extra(&*self.likelihood, extra, x.nrows())?;
        let mut shares = Shares::new(y);
        self.components(x, |likelihood, known| {
            self.each_target(likelihood, known, extra, |seen| shares.add(seen));
        })?;
        Ok(shares.finish(self.components_count()))
    }

    fn check_targets(&self, x: MatRef<f64>, y: MatRef<f64>) -> Result<()> {
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
        rng: &mut impl Rng,
    ) -> Result<Vec<Mat<f64>>> {
        default_extra(&*self.likelihood, extra, x.nrows())?;
        self.law.check(x)?;
        let drawn = self.law.sample(x, samples, rng)?.into_iter();
        let likelihood = &*self.likelihood;
        let all = drawn
            .map(|own| self.observed_by(own.likelihood.unwrap_or(likelihood), &own.f, extra, rng));
        Ok(all.collect())
    }

    /// Draws of observations given draws of latent functions, B×P each. `extra` as for
    /// [`Posterior::predict_y`].
    pub fn observed(
        &self,
        latent: &[Mat<f64>],
        extra: &[f64],
        rng: &mut impl Rng,
    ) -> Vec<Mat<f64>> {
        latent.iter().map(|f| self.observed_by(&*self.likelihood, f, extra, rng)).collect()
    }

    fn observed_by(
        &self,
        likelihood: &dyn Likelihood,
        f: &Mat<f64>,
        extra: &[f64],
        rng: &mut dyn Rng,
    ) -> Mat<f64> {
        let k = self.likelihood.latents();
        Mat::from_fn(f.nrows(), self.outputs(), |i, p| {
            let own: Vec<f64> = (0..k).map(|l| f[(i, p * k + l)]).collect();
            likelihood.sample(self.extra(extra, i), &own, rng)
        })
    }
}

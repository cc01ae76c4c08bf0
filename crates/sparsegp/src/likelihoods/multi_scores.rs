//! Classes with p(y = k | f) = s(f_k) / Σⱼ s(fⱼ) for a positive, increasing score s: softmax and
//! logistic-softmax.
//!
//! With ℓ = log s, g = log p(y | f) has ∂g/∂f_k = (1[y = k] − p_k) ℓ′(f_k) and
//! ∂²g/∂f_k² = −p_k (1 − p_k) ℓ′(f_k)² + (1[y = k] − p_k) ℓ″(f_k).

use super::augmented::Augmented;
use super::multi::{
    LogSum, SMALL_VARIANCE, Spec, check_class, check_classes, frequencies, index_moments,
    index_quantile, scratch, uniform,
};
use super::multi_laplace;
use super::multi_points::{Integration, Points};
use super::quadrature::Slope;
use super::{Likelihood, Slopes, Target};
use crate::error::{Error, Result};
use serde_json::{Value, json};
use std::marker::PhantomData;
use std::sync::Arc;

/// A score by its logarithm ℓ.
pub trait Score: Clone + Copy + Send + Sync + std::fmt::Debug + 'static {
    /// Name of the likelihood.
    const NAME: &'static str;

    /// ℓ, ℓ′ > 0 and ℓ″ at f.
    fn log_score(f: f64) -> (f64, f64, f64);

    /// An f with s(f) = p, for 0 < p < 1.
    fn inverse(p: f64) -> f64;

    /// See [`Likelihood::augmented`].
    fn augmented(of: &Normalised<Self>) -> Option<&dyn Augmented> {
        let _ = of;
        None
    }
}

/// The likelihood of a score. K, the number of latent functions, is the number of classes.
#[derive(Clone, Debug)]
pub struct Normalised<S> {
    classes: usize,
    integration: Integration,
    slope: Slope,
    /// None for [`Integration::Laplace`].
    points: Option<Arc<Points>>,
    score: PhantomData<S>,
}

impl<S: Score> Normalised<S> {
    /// For `classes` classes, with 100 draws.
    ///
    /// # Errors
    /// [`Error::Invalid`] for fewer than two classes.
    pub fn new(classes: usize) -> Result<Self> {
        Self::with(classes, Integration::default(), Slope::default())
    }

    /// With the way of integration chosen, and of the slopes in the variances: [`Slope::Price`]
    /// averages ½ ∂²g/∂f_k², which for softmax is never positive and varies less between draws.
    ///
    /// # Errors
    /// [`Error::Invalid`] for fewer than two classes, no draws or a rule that is too large.
    pub fn with(classes: usize, integration: Integration, slope: Slope) -> Result<Self> {
        check_classes(S::NAME, classes)?;
        let points = match integration {
            Integration::Draws { count, seed } => Some(Points::draws(count, seed, classes)?),
            Integration::Tensor(points) => Some(Points::tensor(points, classes)?),
            Integration::Laplace => None,
        };
        let points = points.map(Arc::new);
        Ok(Self { classes, integration, slope, points, score: PhantomData })
    }

    /// Reads `{"type": NAME, "classes": C, "integration": …, "slope": …}`; the last two may be absent.
    ///
    /// # Errors
    /// [`Error::Invalid`] for anything else.
    pub fn from_json(json: &Value) -> Result<Self> {
        let spec = Spec::new(json, S::NAME, &["classes", "integration", "slope"])?;
        let Some(classes) = spec.option("classes")? else {
            return Err(Error::Invalid(format!(
                "likelihood {}: the number of `classes` is missing",
                S::NAME
            )));
        };
        let integration = spec.option("integration")?.unwrap_or_default();
        Self::with(classes, integration, spec.option("slope")?.unwrap_or_default())
    }

    /// p(y = k | f) into `out`.
    pub fn conditional(&self, f: &[f64], out: &mut [f64]) {
        let mut largest = f64::NEG_INFINITY;
        for (out, f) in out.iter_mut().zip(f) {
            *out = S::log_score(*f).0;
            largest = largest.max(*out);
        }
        out.iter_mut().for_each(|l| *l = (*l - largest).exp());
        let sum: f64 = out.iter().sum();
        out.iter_mut().for_each(|p| *p /= sum);
    }

    /// [`Likelihood::expect`] by given points; slopes in the variances as chosen.
    pub fn expect_with(
        &self,
        points: &Points,
        target: Target,
        mean: &[f64],
        variance: &[f64],
        out: Slopes<'_>,
    ) -> f64 {
        let (y, k) = (target.y as usize, self.classes);
        let Slopes { mean: by_mean, variance: by_variance, .. } = out;
        by_mean.fill(0.0);
        by_variance.fill(0.0);
        let price = |v: f64| self.slope == Slope::Price || v < SMALL_VARIANCE;
        scratch(4 * k, |memory| {
            let (sd, rest) = memory.split_at_mut(k);
            let (p, rest) = rest.split_at_mut(k);
            let (first, second) = rest.split_at_mut(k);
            sd.iter_mut().zip(variance).for_each(|(sd, v)| *sd = v.max(0.0).sqrt());
            let mut value = 0.0;
            for (x, w) in points.iter() {
                let mut largest = f64::NEG_INFINITY;
                for j in 0..k {
                    (p[j], first[j], second[j]) = S::log_score(mean[j] + sd[j] * x[j]);
                    largest = largest.max(p[j]);
                }
                let own = p[y] - largest;
                let mut sum = 0.0;
                for p in p.iter_mut() {
                    *p = (*p - largest).exp();
                    sum += *p;
                }
                value += w * (own - sum.ln());
                for j in 0..k {
                    let p = p[j] / sum;
                    let hit = if j == y { 1.0 } else { 0.0 };
                    let g = (hit - p) * first[j];
                    by_mean[j] += w * g;
                    by_variance[j] += if price(variance[j]) {
                        0.5 * w * ((hit - p) * second[j] - p * (1.0 - p) * first[j] * first[j])
                    } else {
                        0.5 * w * g * x[j] / sd[j]
                    };
                }
            }
            value
        })
    }

    /// [`Likelihood::probabilities`] by given points.
    pub fn probabilities_with(
        &self,
        points: &Points,
        mean: &[f64],
        variance: &[f64],
        out: &mut [f64],
    ) {
        let k = self.classes;
        out.fill(0.0);
        scratch(2 * k, |memory| {
            let (f, p) = memory.split_at_mut(k);
            for (x, w) in points.iter() {
                for j in 0..k {
                    f[j] = mean[j] + variance[j].max(0.0).sqrt() * x[j];
                }
                self.conditional(f, p);
                out.iter_mut().zip(&*p).for_each(|(out, p)| *out += w * p);
            }
        });
        let sum: f64 = out.iter().sum();
        out.iter_mut().for_each(|p| *p /= sum);
    }

    /// [`Likelihood::predict_log_density`] by given points.
    pub fn predict_log_density_with(
        &self,
        points: &Points,
        target: Target,
        mean: &[f64],
        variance: &[f64],
    ) -> f64 {
        let mut total = LogSum::EMPTY;
        scratch(self.classes, |f| {
            for (x, w) in points.iter() {
                for j in 0..self.classes {
                    f[j] = mean[j] + variance[j].max(0.0).sqrt() * x[j];
                }
                total.add(self.log_prob(target, f), w);
            }
        });
        total.ln()
    }
}

impl<S: Score> Likelihood for Normalised<S> {
    fn name(&self) -> &'static str {
        S::NAME
    }

    fn latents(&self) -> usize {
        self.classes
    }

    fn classes(&self) -> Option<usize> {
        Some(self.classes)
    }

    /// The latent functions start where the probabilities are the frequencies of the classes.
    fn initialise(&mut self, targets: &[Target]) -> Vec<f64> {
        frequencies(targets, self.classes).into_iter().map(S::inverse).collect()
    }

    fn check(&self, target: Target) -> std::result::Result<(), String> {
        check_class(target, self.classes)
    }

    fn log_prob(&self, target: Target, f: &[f64]) -> f64 {
        let mut total = LogSum::EMPTY;
        f.iter().for_each(|f| total.add(S::log_score(*f).0, 1.0));
        S::log_score(f[target.y as usize]).0 - total.ln()
    }

    fn expect(&self, target: Target, mean: &[f64], variance: &[f64], out: Slopes<'_>) -> f64 {
        match &self.points {
            Some(points) => self.expect_with(points, target, mean, variance, out),
            None => multi_laplace::expect::<S>(target.y as usize, mean, variance, self.slope, out),
        }
    }

    fn predict(&self, _: f64, mean: &[f64], variance: &[f64]) -> (f64, f64) {
        scratch(self.classes, |p| {
            self.probabilities(mean, variance, p);
            index_moments(p)
        })
    }

    fn predict_log_density(&self, target: Target, mean: &[f64], variance: &[f64]) -> f64 {
        match &self.points {
            Some(points) => self.predict_log_density_with(points, target, mean, variance),
            None => multi_laplace::log_probability::<S>(target.y as usize, mean, variance),
        }
    }

    fn quantile(&self, _: f64, mean: &[f64], variance: &[f64], level: f64) -> f64 {
        scratch(self.classes, |p| {
            self.probabilities(mean, variance, p);
            index_quantile(p, level)
        })
    }

    fn probabilities(&self, mean: &[f64], variance: &[f64], out: &mut [f64]) {
        match &self.points {
            Some(points) => self.probabilities_with(points, mean, variance, out),
            None => multi_laplace::probabilities::<S>(mean, variance, out),
        }
    }

    fn augmented(&self) -> Option<&dyn Augmented> {
        S::augmented(self)
    }

    fn sample(&self, _: f64, f: &[f64], rng: &mut dyn rand::Rng) -> f64 {
        scratch(self.classes, |p| {
            self.conditional(f, p);
            index_quantile(p, uniform(rng))
        })
    }

    fn to_json(&self) -> Value {
        json!({
            "type": S::NAME,
            "classes": self.classes,
            "integration": self.integration,
            "slope": self.slope,
        })
    }

    fn clone_box(&self) -> Box<dyn Likelihood> {
        Box::new(self.clone())
    }
}

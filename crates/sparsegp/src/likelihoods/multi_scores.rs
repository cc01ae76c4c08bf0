//! Classes with p(y = k | f) = s(f_k) / Σⱼ s(fⱼ) for a positive, increasing score s: softmax and
//! logistic-softmax; the latter perhaps with [`Weights`] θ.
//!
//! With ℓ = log s, g = log p(y | f) has ∂g/∂f_k = (1[y = k] − p_k) ℓ′(f_k) and
//! ∂²g/∂f_k² = −p_k (1 − p_k) ℓ′(f_k)² + (1[y = k] − p_k) ℓ″(f_k). A weight moves log s, so that
//! ∂g/∂ log θ_k = 1[y = k] − p_k; a class without a latent function has the constant log s = log θD.

use super::augmented::Augmented;
use super::class_weights::Weights;
use super::multi::{
    LogSum, SMALL_VARIANCE, Spec, check_class, check_classes, frequencies, index_cdf,
    index_moments, index_quantile, scratch, uniform,
};
use super::multi_laplace;
use super::multi_points::{Integration, Points};
use super::quadrature::Slope;
use super::{Likelihood, Slopes, Support, Target};
use crate::error::{Error, Result};
use crate::params::{Visitor, VisitorMut};
use serde_json::{Value, json};
use std::sync::Arc;

/// A score by its logarithm ℓ, and what is peculiar to its likelihood.
pub trait Score: Clone + Send + Sync + std::fmt::Debug + 'static {
    /// Name of the likelihood.
    const NAME: &'static str;

    /// Whether s(f + c) = s(f) s(c), so that c drops out of the quotients.
    const SHIFT_INVARIANT: bool = false;

    /// Whether s(f) is at most 1, and eᶠ where that is small; else it is eᶠ everywhere.
    const BOUNDED: bool = false;

    /// Creates the score for so many classes, without options.
    fn new(classes: usize) -> Self;

    /// Returns ℓ, ℓ′ > 0 and ℓ″ at f.
    fn log_score(f: f64) -> (f64, f64, f64);

    /// Returns an f with s(f) = p, for 0 < p < 1.
    fn inverse(p: f64) -> f64;

    /// Returns the entries of a specification that [`Score::read`] reads.
    fn entries() -> Vec<&'static str> {
        Vec::new()
    }

    /// Reads its options.
    ///
    /// # Errors
    /// [`Error::Invalid`] or [`Error::InvalidParameter`] that name the entry.
    fn read(&mut self, spec: &Spec<'_>) -> Result<()> {
        let _ = spec;
        Ok(())
    }

    /// Writes its options, where they are not those of [`Score::new`].
    fn write(&self, json: &mut Value) {
        let _ = json;
    }

    /// Returns the weights, if classes can have other ones than 1.
    fn weights(&self) -> Option<&Weights> {
        None
    }

    /// Returns the same, to change them.
    fn weights_mut(&mut self) -> Option<&mut Weights> {
        None
    }

    /// Serves [`Likelihood::augmented`].
    fn augmented(of: &Normalised<Self>) -> Option<&dyn Augmented> {
        let _ = of;
        None
    }
}

/// The likelihood of a score. K, the number of latent functions, is the number C of classes, or one less if the
/// last class has no latent function.
#[derive(Clone, Debug)]
pub struct Normalised<S> {
    classes: usize,
    integration: Integration,
    slope: Slope,
    /// None for [`Integration::Laplace`].
    points: Option<Arc<Points>>,
    /// What is peculiar to the score.
    pub score: S,
}

impl<S: Score> Normalised<S> {
    /// Creates the likelihood for `classes` classes, with 100 draws.
    ///
    /// # Errors
    /// [`Error::Invalid`] for fewer than two classes.
    pub fn new(classes: usize) -> Result<Self> {
        Self::with(classes, Integration::default(), Slope::default())
    }

    /// Creates the likelihood with the way of integration chosen, and of the slopes in the
    /// variances: [`Slope::Price`] averages ½ ∂²g/∂f_k², which for softmax is never positive and
    /// varies less between draws.
    ///
    /// # Errors
    /// [`Error::Invalid`] for fewer than two classes, no draws or a rule that is too large.
    pub fn with(classes: usize, integration: Integration, slope: Slope) -> Result<Self> {
        check_classes(S::NAME, classes)?;
        Self::of(S::new(classes), classes, integration, slope)
    }

    fn of(score: S, classes: usize, integration: Integration, slope: Slope) -> Result<Self> {
        let latents = score.weights().map_or(classes, Weights::latents);
        let points = match integration {
            Integration::Draws { count, seed } => Some(Points::draws(count, seed, latents)?),
            Integration::Tensor(points) => Some(Points::tensor(points, latents)?),
            Integration::Laplace => None,
        };
        let points = points.map(Arc::new);
        Ok(Self { classes, integration, slope, points, score })
    }

    /// Reads `{"type": NAME, "classes": C, "integration": …, "slope": …}` with the options of the score; all
    /// but the classes may be absent.
    ///
    /// # Errors
    /// [`Error::Invalid`] for anything else, [`Error::InvalidParameter`] for parameters out of range.
    pub fn from_json(json: &Value) -> Result<Self> {
        let known = [vec!["classes", "integration", "slope"], S::entries()].concat();
        let spec = Spec::new(json, S::NAME, &known)?;
        let Some(classes) = spec.option("classes")? else {
            return Err(Error::Invalid(format!(
                "likelihood {}: the number of `classes` is missing",
                S::NAME
            )));
        };
        check_classes(S::NAME, classes)?;
        let mut score = S::new(classes);
        score.read(&spec)?;
        let integration = spec.option("integration")?.unwrap_or_default();
        Self::of(score, classes, integration, spec.option("slope")?.unwrap_or_default())
    }

    /// Returns the points by which predictions are integrated, if not exactly. Draws are only for
    /// training: their error is the same in all rows, a per cent of a probability, and which
    /// classes it favours depends on their order.
    fn of_predictions(&self) -> Option<&Points> {
        self.points.as_deref().filter(|_| matches!(self.integration, Integration::Tensor(_)))
    }

    /// Computes log θ of all classes, see [`Weights::log`].
    fn log_weights(&self, out: &mut [f64]) {
        match self.score.weights() {
            Some(weights) => weights.log(out),
            None => out.fill(0.0),
        }
    }

    /// Computes log θₖs(fₖ) of all classes at K latent values.
    fn log_scores(&self, f: &[f64], out: &mut [f64]) {
        self.log_weights(out);
        out.iter_mut().zip(f).for_each(|(out, f)| *out += S::log_score(*f).0);
    }

    /// Computes p(y = k | f) of all classes into `out`.
    pub fn conditional(&self, f: &[f64], out: &mut [f64]) {
        self.log_scores(f, out);
        let largest = out.iter().fold(f64::NEG_INFINITY, |a, l| a.max(*l));
        out.iter_mut().for_each(|l| *l = (*l - largest).exp());
        let sum: f64 = out.iter().sum();
        out.iter_mut().for_each(|p| *p /= sum);
    }

    /// Returns [`Likelihood::expect`] by given points; slopes in the variances as chosen, in the
    /// logarithms of the weights.
    pub fn expect_with(
        &self,
        points: &Points,
        target: Target,
        mean: &[f64],
        variance: &[f64],
        out: Slopes<'_>,
    ) -> f64 {
        let (y, k, c) = (target.y as usize, self.latents(), self.classes);
        let Slopes { mean: by_mean, variance: by_variance, params: by_weights } = out;
        by_mean.fill(0.0);
        by_variance.fill(0.0);
        by_weights.fill(0.0);
        let price = |v: f64| self.slope == Slope::Price || v < SMALL_VARIANCE;
        scratch(2 * c + 3 * k, |memory| {
            let (weight, rest) = memory.split_at_mut(c);
            let (p, rest) = rest.split_at_mut(c);
            let (sd, rest) = rest.split_at_mut(k);
            let (first, second) = rest.split_at_mut(k);
            self.log_weights(weight);
            sd.iter_mut().zip(variance).for_each(|(sd, v)| *sd = v.max(0.0).sqrt());
            let mut value = 0.0;
            for (x, w) in points.iter() {
                p.copy_from_slice(weight);
                for j in 0..k {
                    let score;
                    (score, first[j], second[j]) = S::log_score(mean[j] + sd[j] * x[j]);
                    p[j] += score;
                }
                let largest = p.iter().fold(f64::NEG_INFINITY, |a, l| a.max(*l));
                let own = p[y] - largest;
                let mut sum = 0.0;
                for p in p.iter_mut() {
                    *p = (*p - largest).exp();
                    sum += *p;
                }
                value += w * (own - sum.ln());
                let hit = |j: usize| if j == y { 1.0 } else { 0.0 };
                for j in 0..k {
                    let p = p[j] / sum;
                    let g = (hit(j) - p) * first[j];
                    by_mean[j] += w * g;
                    by_variance[j] += if price(variance[j]) {
                        0.5 * w * ((hit(j) - p) * second[j] - p * (1.0 - p) * first[j] * first[j])
                    } else {
                        0.5 * w * g * x[j] / sd[j]
                    };
                }
                for (j, (by, p)) in by_weights.iter_mut().zip(&*p).enumerate() {
                    *by += w * (hit(j) - p / sum);
                }
            }
            value
        })
    }

    /// Computes [`Likelihood::probabilities`] by given points.
    pub fn probabilities_with(
        &self,
        points: &Points,
        mean: &[f64],
        variance: &[f64],
        out: &mut [f64],
    ) {
        let k = self.latents();
        out.fill(0.0);
        scratch(k + self.classes, |memory| {
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

    /// Returns [`Likelihood::predict_log_density`] by given points.
    pub fn predict_log_density_with(
        &self,
        points: &Points,
        target: Target,
        mean: &[f64],
        variance: &[f64],
    ) -> f64 {
        let mut total = LogSum::EMPTY;
        let k = self.latents();
        scratch(k, |f| {
            for (x, w) in points.iter() {
                for j in 0..k {
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
        self.score.weights().map_or(self.classes, Weights::latents)
    }

    fn shift_invariant(&self) -> bool {
        S::SHIFT_INVARIANT && self.latents() == self.classes
    }

    fn classes(&self) -> Option<usize> {
        Some(self.classes)
    }

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        if let Some(weights) = self.score.weights() {
            visitor(&"scales", &weights.scales);
        }
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        if let Some(weights) = self.score.weights_mut() {
            visitor(&"scales", &mut weights.scales);
        }
    }

    /// Starts the latent functions where the probabilities are the frequencies of the classes.
    fn initialise(&mut self, targets: &[Target]) -> Vec<f64> {
        let p = frequencies(targets, self.classes);
        let scores = match self.score.weights() {
            Some(weights) => weights.scores(&p),
            None => p,
        };
        scores.into_iter().map(S::inverse).collect()
    }

    fn check(&self, target: Target) -> std::result::Result<(), String> {
        check_class(target, self.classes)
    }

    fn log_prob(&self, target: Target, f: &[f64]) -> f64 {
        scratch(self.classes, |scores| {
            self.log_scores(f, scores);
            let mut total = LogSum::EMPTY;
            scores.iter().for_each(|l| total.add(*l, 1.0));
            scores[target.y as usize] - total.ln()
        })
    }

    fn expect(&self, target: Target, mean: &[f64], variance: &[f64], out: Slopes<'_>) -> f64 {
        let Slopes { mean: by_mean, variance: by_variance, params } = out;
        let out = Slopes { mean: by_mean, variance: by_variance, params: &mut *params };
        let value = match &self.points {
            Some(points) => self.expect_with(points, target, mean, variance, out),
            None => scratch(self.classes, |weights| {
                self.log_weights(weights);
                let y = target.y as usize;
                multi_laplace::expect::<S>(weights, y, mean, variance, self.slope, out)
            }),
        };
        if let Some(weights) = self.score.weights() {
            params.iter_mut().zip(weights.scales.value()).for_each(|(by, theta)| *by /= theta);
        }
        value
    }

    fn predict(&self, _: f64, mean: &[f64], variance: &[f64]) -> (f64, f64) {
        scratch(self.classes, |p| {
            self.probabilities(mean, variance, p);
            index_moments(p)
        })
    }

    fn predict_log_density(&self, target: Target, mean: &[f64], variance: &[f64]) -> f64 {
        match self.of_predictions() {
            Some(points) => self.predict_log_density_with(points, target, mean, variance),
            None => scratch(self.classes, |weights| {
                self.log_weights(weights);
                let y = target.y as usize;
                multi_laplace::log_probability::<S>(weights, y, mean, variance)
            }),
        }
    }

    fn support(&self, _: f64) -> Support {
        Support::Classes(self.classes)
    }

    fn cdf(&self, target: Target, mean: &[f64], variance: &[f64]) -> f64 {
        let certain = self.support(target.extra).certain(target.y);
        certain.unwrap_or_else(|| {
            scratch(self.classes, |p| {
                self.probabilities(mean, variance, p);
                index_cdf(p, target.y)
            })
        })
    }

    fn quantile(&self, _: f64, mean: &[f64], variance: &[f64], level: f64) -> f64 {
        scratch(self.classes, |p| {
            self.probabilities(mean, variance, p);
            index_quantile(p, level)
        })
    }

    fn probabilities(&self, mean: &[f64], variance: &[f64], out: &mut [f64]) {
        match self.of_predictions() {
            Some(points) => self.probabilities_with(points, mean, variance, out),
            None => scratch(self.classes, |weights| {
                self.log_weights(weights);
                multi_laplace::probabilities::<S>(weights, mean, variance, out);
            }),
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
        let mut json = json!({
            "type": S::NAME,
            "classes": self.classes,
            "integration": self.integration,
            "slope": self.slope,
        });
        self.score.write(&mut json);
        json
    }

    fn clone_box(&self) -> Box<dyn Likelihood> {
        Box::new(self.clone())
    }
}

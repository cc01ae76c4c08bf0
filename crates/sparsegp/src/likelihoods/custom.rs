//! Likelihoods that are given only by their log density.
//!
//! A type implements [`LogProb`]; [`Custom`] makes a likelihood of it: expectations by Gauss–Hermite,
//! derivatives by dual numbers, predictions by integrals over the support.
//!
//! ```
//! use sparsegp::likelihoods::custom::{Custom, LogProb, Parameter};
//! use sparsegp::likelihoods::dual::Real;
//! use sparsegp::likelihoods::{Likelihood, Slopes, Target};
//!
//! /// y = f + Cauchy noise of some width.
//! #[derive(Clone, Debug)]
//! struct Cauchy;
//!
//! impl LogProb for Cauchy {
//!     fn name(&self) -> &'static str {
//!         "cauchy"
//!     }
//!     fn parameters(&self) -> Vec<Parameter> {
//!         vec![Parameter::positive("width", 0.5)]
//!     }
//!     fn log_prob<T: Real>(&self, y: f64, _extra: f64, f: &[T], params: &[T]) -> T {
//!         let width = params[0];
//!         let z = (f[0] - y) / width;
//!         -(z * z).ln_1p() - width.ln() - std::f64::consts::PI.ln()
//!     }
//! }
//!
//! let likelihood = Custom::new(Cauchy)?;
//! let (mut mean, mut variance, mut params) = ([0.0], [0.0], [0.0]);
//! let slopes = Slopes { mean: &mut mean, variance: &mut variance, params: &mut params };
//! let target = Target { y: 1.3, extra: 0.0 };
//! let value = likelihood.expect(target, &[0.2], &[0.1], slopes);
//! assert!(value < likelihood.predict_log_density(target, &[0.2], &[0.1])); // Jensen
//! assert!(mean[0] > 0.0); // f is drawn towards y
//! let median = likelihood.quantile(0.0, &[0.2], &[0.1], 0.5);
//! assert!((median - 0.2).abs() < 1e-8);
//! # Ok::<(), sparsegp::Error>(())
//! ```

pub use super::Support;
use super::augmented::Augmented;
use super::custom_law::Law;
use super::dual::{Dual, Real};
use super::multi::{LogSum, SMALL_VARIANCE, Spec, index_quantile, uniform};
use super::multi_points::Points;
use super::quadrature::{Rule, Slope};
use super::{Extra, Likelihood, Slopes, Target};
use crate::error::{Error, Result};
use crate::params::{Param, Shape, Transform, Visitor, VisitorMut};
use serde_json::{Value, json};
use std::sync::Arc;

/// A parameter of a density.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// The value it starts from.
    pub start: f64,
    /// Its range.
    pub transform: Transform,
    /// Power of the target's unit.
    pub unit: i32,
}

impl Parameter {
    /// Creates a positive number without unit.
    pub fn positive(name: &'static str, start: f64) -> Self {
        Self { name, start, transform: Transform::POSITIVE, unit: 0 }
    }
}

/// A density of y given K latent values. Only `name` and `log_prob` must be given.
pub trait LogProb: Clone + Send + Sync + std::fmt::Debug + 'static {
    /// Returns the name in model files and messages.
    fn name(&self) -> &'static str;

    /// Returns log p(y | f), with its constants, which may depend on `params` (in the order of
    /// [`LogProb::parameters`]). Differentiable in `f` and `params`.
    fn log_prob<T: Real>(&self, y: f64, extra: f64, f: &[T], params: &[T]) -> T;

    /// Returns the local variables that make it Gaussian, if it has such: see
    /// [`augmented`](super::augmented#defining-a-likelihood).
    fn augmented(&self) -> Option<&dyn Augmented> {
        None
    }

    /// Returns K, the number of latent functions.
    fn latents(&self) -> usize {
        1
    }

    /// Returns the parameters.
    fn parameters(&self) -> Vec<Parameter> {
        Vec::new()
    }

    /// Returns where y can lie.
    fn support(&self) -> Support {
        Support::Real
    }

    /// Returns the further number that a row may bring.
    fn extra(&self) -> Option<Extra> {
        None
    }

    /// Returns whether targets may be shifted and scaled.
    fn standardises(&self) -> bool {
        false
    }

    /// Returns the mean and variance of y given f, if known: otherwise predictions integrate over
    /// the support (which finds some number even where there is no moment).
    fn moments(&self, _extra: f64, _f: &[f64], _params: &[f64]) -> Option<(f64, f64)> {
        None
    }

    /// Returns P(Y ≤ y) given f, if known: otherwise integrated over the support, for every y
    /// again. Worth giving where posteriors are sampled: quantiles of predictions average it over
    /// draws.
    fn cdf(&self, _y: f64, _extra: f64, _f: &[f64], _params: &[f64]) -> Option<f64> {
        None
    }

    /// Draws y given f, if that is easier than inverting the distribution function.
    fn sample(
        &self,
        _extra: f64,
        _f: &[f64],
        _params: &[f64],
        _rng: &mut dyn rand::Rng,
    ) -> Option<f64> {
        None
    }

    /// Returns where and how wide the density of y is given f, roughly: where integrals over the
    /// support begin to look. Needed only where a density is more than a hundred times narrower or
    /// farther away than 1.
    fn location_and_width(&self, _extra: f64, _f: &[f64], _params: &[f64]) -> (f64, f64) {
        match self.support() {
            Support::Interval(low, high) => (0.5 * (low + high), 0.5 * (high - low)),
            Support::Positive => (1.0, 1.0),
            _ => (0.0, 1.0),
        }
    }

    /// Finds starting values from targets (NaN where missing): of `params` in place, of the latent
    /// functions as the result (K numbers).
    fn initialise(&self, _targets: &[Target], _params: &mut [f64]) -> Vec<f64> {
        vec![0.0; self.latents()]
    }
}

/// Derivatives that are computed at once.
const AT_ONCE: usize = 4;

/// The likelihood of a [`LogProb`].
#[derive(Clone, Debug)]
pub struct Custom<M> {
    model: M,
    specs: Vec<Parameter>,
    params: Vec<Param>,
    rule: Rule,
    slope: Slope,
    points: Arc<Points>,
}

impl<M: LogProb> Custom<M> {
    /// Creates the likelihood with 20 points of Gauss–Hermite for every latent function.
    ///
    /// # Errors
    /// See [`Custom::with`].
    pub fn new(model: M) -> Result<Self> {
        Self::with(model, Rule::default(), Slope::default())
    }

    /// Creates the likelihood with a rule for every latent function ([`Rule::Trapezoid`]: steps of
    /// a twentieth of a standard deviation) and the kind of slopes in the variances.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a rule that is too large and for parameters that start outside their
    /// range.
    pub fn with(model: M, rule: Rule, slope: Slope) -> Result<Self> {
        let latents = model.latents();
        let points = Arc::new(match rule {
            Rule::GaussHermite(points) => Points::tensor(points, latents)?,
            Rule::Trapezoid => Points::trapezoid(0.05, latents)?,
        });
        let specs = model.parameters();
        if let Some(p) = specs.iter().find(|p| !p.transform.contains(p.start)) {
            return Err(Error::Invalid(format!(
                "likelihood {}: parameter {} starts at {}, which is outside {}",
                model.name(),
                p.name,
                p.start,
                p.transform.range()
            )));
        }
        let param = |p: &Parameter| Param::with(vec![p.start], Shape::Scalar, p.transform);
        let params = specs.iter().map(param).collect();
        Ok(Self { model, specs, params, rule, slope, points })
    }

    /// Reads what [`Likelihood::to_json`] writes. The density itself is code and comes with `model`.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::InvalidParameter`].
    pub fn from_json(model: M, json: &Value) -> Result<Self> {
        let specs = model.parameters();
        let known: Vec<&str> =
            ["rule", "slope"].into_iter().chain(specs.iter().map(|p| p.name)).collect();
        let spec = Spec::new(json, model.name(), &known)?;
        let rule = spec.option("rule")?.unwrap_or_default();
        let slope = spec.option("slope")?.unwrap_or_default();
        let mut own = Self::with(model, rule, slope)?;
        for (p, param) in specs.iter().zip(&mut own.params) {
            spec.param(p.name, param)?;
        }
        Ok(own)
    }

    /// Returns the density.
    pub fn model(&self) -> &M {
        &self.model
    }

    /// Returns ∫ p(y | f) dy over the support as the predictions see it: a value other than 1 means
    /// that `log_prob` lacks a constant, or that [`LogProb::location_and_width`] should be given.
    pub fn mass(&self, extra: f64, f: &[f64]) -> f64 {
        self.law(extra, f, &vec![0.0; f.len()]).mass()
    }

    fn values(&self) -> Vec<f64> {
        self.params.iter().map(Param::scalar).collect()
    }

    /// Calls `work` with the latent values and the weight of every node.
    fn each_point(
        &self,
        mean: &[f64],
        variance: &[f64],
        mut work: impl FnMut(&[f64], &[f64], f64),
    ) {
        let still = variance.iter().all(|v| *v <= 0.0);
        if still {
            return work(mean, &vec![0.0; mean.len()], 1.0);
        }
        let mut f = mean.to_vec();
        for (x, w) in self.points.iter() {
            for k in 0..f.len() {
                f[k] = mean[k] + variance[k].max(0.0).sqrt() * x[k];
            }
            work(&f, x, w);
        }
    }

    /// Returns the distribution of y.
    fn law(&self, extra: f64, mean: &[f64], variance: &[f64]) -> Law {
        let params = self.values();
        let (at, width) = self.model.location_and_width(extra, mean, &params);
        let log = |y: &f64| self.predict_log_density(Target { y: *y, extra }, mean, variance);
        Law::new(self.model.support(), at, width, |y| y.iter().map(log).collect())
    }
}

impl<M: LogProb> Likelihood for Custom<M> {
    fn augmented(&self) -> Option<&dyn Augmented> {
        self.model.augmented()
    }

    fn name(&self) -> &'static str {
        self.model.name()
    }

    fn latents(&self) -> usize {
        self.model.latents()
    }

    fn classes(&self) -> Option<usize> {
        match self.model.support() {
            Support::Classes(c) => Some(c),
            _ => None,
        }
    }

    fn standardises(&self) -> bool {
        self.model.standardises()
    }

    fn extra(&self) -> Option<Extra> {
        self.model.extra()
    }

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        for (spec, param) in self.specs.iter().zip(&self.params) {
            visitor(&spec.name, param);
        }
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        for (spec, param) in self.specs.iter().zip(&mut self.params) {
            visitor(&spec.name, param);
        }
    }

    fn units(&self) -> Vec<i32> {
        self.specs.iter().map(|p| p.unit).collect()
    }

    fn initialise(&mut self, targets: &[Target]) -> Vec<f64> {
        let mut values = self.values();
        let start = self.model.initialise(targets, &mut values);
        for ((param, spec), value) in self.params.iter_mut().zip(&self.specs).zip(values) {
            if !param.given && spec.transform.contains(value) {
                param.start(&[value]);
            }
        }
        start
    }

    fn check(&self, target: Target) -> std::result::Result<(), String> {
        if !self.model.support().contains(target.y) {
            return Err(self.model.support().words());
        }
        Ok(())
    }

    fn log_prob(&self, target: Target, f: &[f64]) -> f64 {
        if !self.model.support().contains(target.y) {
            return f64::NEG_INFINITY;
        }
        self.model.log_prob(target.y, target.extra, f, &self.values())
    }

    fn expect(&self, target: Target, mean: &[f64], variance: &[f64], out: Slopes<'_>) -> f64 {
        let (latents, values) = (mean.len(), self.values());
        let all = latents + values.len();
        out.mean.fill(0.0);
        out.variance.fill(0.0);
        out.params.fill(0.0);
        let mut total = 0.0;
        let constant = Dual::<AT_ONCE>::constant;
        let mut duals = vec![constant(0.0); all];
        self.each_point(mean, variance, |f, x, w| {
            for begin in (0..all.max(1)).step_by(AT_ONCE) {
                for (i, value) in f.iter().chain(&values).enumerate() {
                    // an index below `begin` wraps around to one that is none
                    duals[i] = Dual::variable(*value, i.wrapping_sub(begin));
                }
                let (latent, params) = duals.split_at(latents);
                let g = self.model.log_prob(target.y, target.extra, latent, params);
                if begin == 0 {
                    total += w * g.value;
                }
                for i in begin..all.min(begin + AT_ONCE) {
                    let (first, second) = (w * g.first[i - begin], w * g.second[i - begin]);
                    if i >= latents {
                        out.params[i - latents] += first;
                        continue;
                    }
                    out.mean[i] += first;
                    let price = self.slope == Slope::Price || variance[i] < SMALL_VARIANCE;
                    out.variance[i] +=
                        0.5 * if price { second } else { first * x[i] / variance[i].sqrt() };
                }
            }
        });
        total
    }

    fn predict(&self, extra: f64, mean: &[f64], variance: &[f64]) -> (f64, f64) {
        let values = self.values();
        if self.model.moments(extra, mean, &values).is_none() {
            return self.law(extra, mean, variance).moments();
        }
        let (mut first, mut second, mut within) = (0.0, 0.0, 0.0);
        let start = self.model.moments(extra, mean, &values).map_or(0.0, |m| m.0);
        self.each_point(mean, variance, |f, _, w| {
            if let Some((m, v)) = self.model.moments(extra, f, &values) {
                first += w * (m - start);
                second += w * (m - start) * (m - start);
                within += w * v;
            }
        });
        (start + first, within + second - first * first)
    }

    fn predict_log_density(&self, target: Target, mean: &[f64], variance: &[f64]) -> f64 {
        if !self.model.support().contains(target.y) {
            return f64::NEG_INFINITY;
        }
        let (values, mut total) = (self.values(), LogSum::EMPTY);
        self.each_point(mean, variance, |f, _, w| {
            total.add(self.model.log_prob(target.y, target.extra, f, &values), w);
        });
        total.ln()
    }

    fn support(&self, _: f64) -> Support {
        self.model.support()
    }

    fn cdf(&self, target: Target, mean: &[f64], variance: &[f64]) -> f64 {
        let Target { y, extra } = target;
        if let Some(certain) = self.model.support().certain(y) {
            return certain;
        }
        let values = self.values();
        if self.model.cdf(y, extra, mean, &values).is_none() {
            return self.law(extra, mean, variance).cdf(y);
        }
        let mut total = 0.0;
        self.each_point(mean, variance, |f, _, w| {
            total += w * self.model.cdf(y, extra, f, &values).unwrap_or(f64::NAN);
        });
        total
    }

    fn quantile(&self, extra: f64, mean: &[f64], variance: &[f64], level: f64) -> f64 {
        self.law(extra, mean, variance).quantile(level)
    }

    fn probabilities(&self, mean: &[f64], variance: &[f64], out: &mut [f64]) {
        let Support::Classes(_) = self.model.support() else { return };
        for (k, p) in out.iter_mut().enumerate() {
            let target = Target { y: k as f64, extra: 0.0 };
            *p = self.predict_log_density(target, mean, variance).exp();
        }
        let sum: f64 = out.iter().sum();
        out.iter_mut().for_each(|p| *p /= sum);
    }

    fn sample(&self, extra: f64, f: &[f64], rng: &mut dyn rand::Rng) -> f64 {
        if let Some(y) = self.model.sample(extra, f, &self.values(), rng) {
            return y;
        }
        let still = vec![0.0; f.len()];
        if let Support::Classes(c) = self.model.support() {
            let mut p = vec![0.0; c];
            self.probabilities(f, &still, &mut p);
            return index_quantile(&p, uniform(rng));
        }
        // never 0
        self.law(extra, f, &still).quantile(uniform(rng) + 0.5 / (1_u64 << 53) as f64)
    }

    fn to_json(&self) -> Value {
        let mut object = json!({ "type": self.name(), "rule": self.rule, "slope": self.slope });
        for (p, param) in self.specs.iter().zip(&self.params) {
            object[p.name] = param.to_json(p.transform);
        }
        object
    }

    fn clone_box(&self) -> Box<dyn Likelihood> {
        Box::new(self.clone())
    }
}

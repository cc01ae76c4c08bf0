//! Robust max: the class is that of the largest latent function, but for an error with probability ε,
//! when it is any other class: p(y = k | f) = 1 − ε if k = argmax f, else ε/(K − 1) (Hernández-Lobato,
//! Hernández-Lobato & Dupont 2011; Girolami & Rogers 2006 for the integral).
//!
//! With ϖ = P(f_y is largest) = E[Π_{k≠y} Φ((f_y − μ_k)/√v_k)] over f_y ~ N(μ_y, v_y),
//! E log p = ϖ log(1 − ε) + (1 − ϖ) log(ε/(K − 1)).

use super::largest::Largest;
use super::multi::{
    SMALL_VARIANCE, Spec, check_class, check_classes, check_points, index_cdf, index_moments,
    index_quantile, scratch, uniform,
};
use super::quadrature::{Nodes, Rule, Slope};
use super::registry::Entry;
use super::{Likelihood, Slopes, Support, Target};
use crate::error::{Error, Result};
use crate::params::{Param, Shape, Transform, Visitor, VisitorMut};
use crate::special::{hazard, normal_cdf};
use serde_json::{Value, json};
use std::f64::consts::TAU;
use std::sync::Arc;

/// Classes by the largest latent function, with errors.
#[derive(Clone, Debug)]
pub struct RobustMax {
    /// ε, between 0 and 1.
    pub epsilon: Param,
    classes: usize,
    rule: Rule,
    slope: Slope,
    squash: f64,
    /// Of the rule, if it has fixed nodes.
    nodes: Option<Arc<Nodes>>,
}

/// One node of the integral over f_y.
struct Node {
    /// Π Φ.
    product: f64,
    /// Derivatives of log Π Φ by f_y.
    first: f64,
    second: f64,
}

impl RobustMax {
    /// Transform of ε.
    pub const TRANSFORM: Transform = Transform::Interval { lower: 0.0, upper: 1.0 };
    /// Makes one for `classes` classes, with ε = 10⁻³ and exact integrals.
    ///
    /// # Errors
    /// [`Error::Invalid`] for fewer than two classes.
    pub fn new(classes: usize) -> Result<Self> {
        Self::with(classes, Rule::Trapezoid, Slope::default(), 0.0)
    }

    /// Chooses the rule of the integral over f_y in training, the kind of slope by v_y, and a `squash` δ, by which
    /// Φ becomes (1 − 2δ)Φ + δ: no use but to agree with programs that do that. The trapezoidal rule follows the widths of the steps
    /// and is exact to 10⁻¹⁰. Gauss–Hermite is bad where v_y is much larger than some v_k, for then Φ is a step. Predictions are
    /// exact with either, unless Φ is squashed.
    ///
    /// # Errors
    /// [`Error::Invalid`] for fewer than two classes, a bad number of points, a δ outside [0, ½), or one that is not 0 with the
    /// trapezoidal rule.
    pub fn with(classes: usize, rule: Rule, slope: Slope, squash: f64) -> Result<Self> {
        check_classes("robust-max", classes)?;
        if !(0.0..0.5).contains(&squash) {
            return Err(Error::Invalid(format!(
                "likelihood robust-max: squash is {squash}; it must be ≥ 0 and below 0.5"
            )));
        }
        if squash > 0.0 && rule == Rule::Trapezoid {
            return Err(Error::Invalid(
                "likelihood robust-max: `squash` goes with a number of Gauss–Hermite points as `rule`".into(),
            ));
        }
        let nodes = match rule {
            Rule::GaussHermite(points) => {
                check_points("robust-max", points, Rule::MOST)?;
                Some(Arc::new(Nodes::gauss_hermite(points)))
            }
            Rule::Trapezoid => None,
        };
        let epsilon = Param::with(vec![1e-3], Shape::Scalar, Self::TRANSFORM);
        Ok(Self { epsilon, classes, rule, slope, squash, nodes })
    }

    /// Reads `{"type": "robust-max", "classes": C, "epsilon": ε, "rule": …, "slope": …, "squash": δ}`;
    /// all but `classes` may be absent.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::InvalidParameter`].
    pub fn from_json(json: &Value) -> Result<Self> {
        let known = ["classes", "epsilon", "rule", "slope", "squash"];
        let spec = Spec::new(json, "robust-max", &known)?;
        let Some(classes) = spec.option("classes")? else {
            return Err(Error::Invalid(
                "likelihood robust-max: the number of `classes` is missing".into(),
            ));
        };
        let squash = spec.option("squash")?.unwrap_or(0.0);
        let rule = match json.get("rule") {
            None if squash > 0.0 => Rule::default(),
            None => Rule::Trapezoid,
            Some(given) => Rule::from_json(given).ok_or_else(|| {
                Error::Invalid(format!(
                    "likelihood robust-max: `rule` is a number of Gauss–Hermite points or trapezoid, \
                     not {given}"
                ))
            })?,
        };
        let slope = spec.option("slope")?.unwrap_or_default();
        let mut own = Self::with(classes, rule, slope, squash)?;
        spec.param("epsilon", &mut own.epsilon)?;
        Ok(own)
    }

    /// Returns log(1 − ε) and log(ε/(K − 1)).
    fn logs(&self) -> (f64, f64) {
        let epsilon = self.epsilon.scalar();
        ((-epsilon).ln_1p(), (epsilon / (self.classes - 1) as f64).ln())
    }

    /// Returns √v, not so small that Φ(·/√v) is no longer a function.
    fn deviation(v: f64) -> f64 {
        v.max(SMALL_VARIANCE).sqrt()
    }

    /// Returns Φ(d) squashed, and φ(d)/Φ(d) accordingly.
    fn step(&self, d: f64) -> (f64, f64) {
        let value = normal_cdf(d);
        if self.squash == 0.0 {
            return (value, hazard(d));
        }
        let share = 1.0 - 2.0 * self.squash;
        let squashed = share * value + self.squash;
        (squashed, share * (-0.5 * d * d).exp() / TAU.sqrt() / squashed)
    }

    fn node(&self, y: usize, f: f64, mean: &[f64], variance: &[f64]) -> Node {
        let mut node = Node { product: 1.0, first: 0.0, second: 0.0 };
        for k in (0..self.classes).filter(|k| *k != y) {
            let sd = Self::deviation(variance[k]);
            let d = (f - mean[k]) / sd;
            let (value, ratio) = self.step(d);
            let slope = ratio / sd;
            node.product *= value;
            node.first += slope;
            node.second -= slope * (d / sd + slope);
        }
        node
    }

    /// Lends all √v.
    fn with_deviations<R>(variance: &[f64], work: impl FnOnce(&[f64]) -> R) -> R {
        scratch(variance.len(), |deviation| {
            deviation.iter_mut().zip(variance).for_each(|(d, v)| *d = Self::deviation(*v));
            work(deviation)
        })
    }

    /// Returns ϖ of class `y`: the probability that f_y is largest, as predictions see it (to 10⁻¹⁰ unless Φ is squashed).
    pub fn largest(&self, y: usize, mean: &[f64], variance: &[f64]) -> f64 {
        match &self.nodes {
            Some(nodes) if self.squash > 0.0 => self.by_rule(nodes, y, mean, variance),
            _ => Self::with_deviations(variance, |deviation| {
                Largest { own: y, mean, deviation }.probability()
            }),
        }
    }

    /// Returns ϖ as Gauss–Hermite computes it, with Φ squashed.
    fn by_rule(&self, nodes: &Nodes, y: usize, mean: &[f64], variance: &[f64]) -> f64 {
        let sd = Self::deviation(variance[y]);
        let node = |(x, w): (&f64, &f64)| {
            let f = mean[y] + sd * x;
            let others = (0..self.classes).filter(|k| *k != y);
            let factor = |k: usize| self.step((f - mean[k]) / Self::deviation(variance[k])).0;
            w * others.map(factor).product::<f64>()
        };
        nodes.x.iter().zip(&nodes.w).map(node).sum()
    }

    /// Returns ϖ with its slopes by means and variances (overwritten), as training sees it: by the rule.
    pub fn largest_with_slopes(
        &self,
        y: usize,
        mean: &[f64],
        variance: &[f64],
        by_mean: &mut [f64],
        by_variance: &mut [f64],
    ) -> f64 {
        let value = match &self.nodes {
            Some(nodes) => self.rule_with_slopes(nodes, y, (mean, variance), by_mean, by_variance),
            None => Self::with_deviations(variance, |deviation| {
                Largest { own: y, mean, deviation }.with_slopes(by_mean, by_variance)
            }),
        };
        // below, the variance that is used does not move with the one that is given
        let still = |v: f64| v < SMALL_VARIANCE && self.slope != Slope::Price;
        let slopes = by_variance.iter_mut().zip(variance);
        slopes.filter(|(_, v)| still(**v)).for_each(|(d, _)| *d = 0.0);
        value
    }

    fn rule_with_slopes(
        &self,
        nodes: &Nodes,
        y: usize,
        (mean, variance): (&[f64], &[f64]),
        by_mean: &mut [f64],
        by_variance: &mut [f64],
    ) -> f64 {
        by_mean.fill(0.0);
        by_variance.fill(0.0);
        let sd_y = Self::deviation(variance[y]);
        let price = self.slope == Slope::Price;
        let mut total = 0.0;
        for (x, w) in nodes.x.iter().zip(&nodes.w) {
            let f = mean[y] + sd_y * x;
            let node = self.node(y, f, mean, variance);
            let h = w * node.product;
            total += h;
            if h == 0.0 {
                continue;
            }
            by_mean[y] += h * node.first;
            by_variance[y] += if price {
                0.5 * h * (node.first * node.first + node.second)
            } else {
                0.5 * h * node.first * x / sd_y
            };
            for k in (0..self.classes).filter(|k| *k != y) {
                let sd = Self::deviation(variance[k]);
                let d = (f - mean[k]) / sd;
                let slope = self.step(d).1 / sd;
                by_mean[k] -= h * slope;
                by_variance[k] -= 0.5 * h * slope * d / sd;
            }
        }
        total
    }
}

impl Likelihood for RobustMax {
    fn name(&self) -> &'static str {
        "robust-max"
    }

    fn latents(&self) -> usize {
        self.classes
    }

    fn shift_invariant(&self) -> bool {
        true
    }

    fn classes(&self) -> Option<usize> {
        Some(self.classes)
    }

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        visitor(&"epsilon", &self.epsilon);
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        visitor(&"epsilon", &mut self.epsilon);
    }

    /// Starts all latent functions at 0: which is largest says nothing about frequencies.
    fn initialise(&mut self, _: &[Target]) -> Vec<f64> {
        vec![0.0; self.classes]
    }

    fn check(&self, target: Target) -> std::result::Result<(), String> {
        check_class(target, self.classes)
    }

    fn log_prob(&self, target: Target, f: &[f64]) -> f64 {
        // of equal ones the first is the largest
        let largest = (1..f.len()).fold(0, |best, k| if f[k] > f[best] { k } else { best });
        let (hit, miss) = self.logs();
        if largest == target.y as usize { hit } else { miss }
    }

    fn expect(&self, target: Target, mean: &[f64], variance: &[f64], out: Slopes<'_>) -> f64 {
        let y = target.y as usize;
        let probability = self.largest_with_slopes(y, mean, variance, out.mean, out.variance);
        let (hit, miss) = self.logs();
        out.mean.iter_mut().chain(out.variance.iter_mut()).for_each(|d| *d *= hit - miss);
        let epsilon = self.epsilon.scalar();
        out.params[0] = (1.0 - probability) / epsilon - probability / (1.0 - epsilon);
        probability * hit + (1.0 - probability) * miss
    }

    fn predict(&self, _: f64, mean: &[f64], variance: &[f64]) -> (f64, f64) {
        scratch(self.classes, |p| {
            self.probabilities(mean, variance, p);
            index_moments(p)
        })
    }

    fn predict_log_density(&self, target: Target, mean: &[f64], variance: &[f64]) -> f64 {
        let probability = self.largest(target.y as usize, mean, variance);
        let epsilon = self.epsilon.scalar();
        let miss = epsilon / (self.classes - 1) as f64;
        (probability * (1.0 - epsilon) + (1.0 - probability) * miss).ln()
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
        for (y, out) in out.iter_mut().enumerate() {
            *out = self.largest(y, mean, variance);
        }
        let sum: f64 = out.iter().sum();
        let epsilon = self.epsilon.scalar();
        let miss = epsilon / (self.classes - 1) as f64;
        out.iter_mut().for_each(|p| *p = *p / sum * (1.0 - epsilon - miss) + miss);
    }

    fn sample(&self, _: f64, f: &[f64], rng: &mut dyn rand::Rng) -> f64 {
        let largest = (1..f.len()).fold(0, |best, k| if f[k] > f[best] { k } else { best });
        if uniform(rng) >= self.epsilon.scalar() {
            return largest as f64;
        }
        let other = (uniform(rng) * (self.classes - 1) as f64) as usize;
        (if other < largest { other } else { other + 1 }) as f64
    }

    fn to_json(&self) -> Value {
        json!({
            "type": "robust-max",
            "classes": self.classes,
            "epsilon": self.epsilon.to_json(Self::TRANSFORM),
            "rule": self.rule,
            "slope": self.slope,
            "squash": self.squash,
        })
    }

    fn clone_box(&self) -> Box<dyn Likelihood> {
        Box::new(self.clone())
    }
}
/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "robust-max",
    aliases: &["robustmax"],
    about: "the class of the largest latent value, with a small chance of any other",
    targets: "classes",
    latents: "one per class",
    augmented: false,
    build: |args| Ok(Box::new(RobustMax::from_json(&args.json())?)),
};

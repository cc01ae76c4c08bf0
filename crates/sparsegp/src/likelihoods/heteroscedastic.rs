//! Noise whose standard deviation is a function of the input: y = f₀ + σ(f₁) ε with ε standard
//! normal (Goldberg, Williams & Bishop 1998) or Student's t, and σ = exp or softplus, or σ⁻² logistic.
//!
//! In training the density of the residual is integrated over f₀ in closed form or by the trapezoidal rule, and over f₁ by
//! Gauss–Hermite, or in closed form too. Predictions are integrated over f₁ to 10⁻⁹ however large its variance is
//! (`hetero_scale`), unless the tensor rule is asked for.

use super::augmented::Augmented;
use super::hetero_noise::{Inner, Noise, Normal, StudentT};
use super::hetero_scale;
use super::multi::{LogSum, SMALL_VARIANCE, Spec, check_points, invert};
use super::quadrature::{Nodes, Rule, Slope};
use super::registry::Entry;
use super::single::start;
use super::{Likelihood, Slopes, Support, Target};
use crate::error::{Error, Result};
use crate::params::{Param, Shape, Transform, Visitor, VisitorMut, listed, listed_mut};
use crate::special::{inverse_softplus, sigmoid, softplus};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::f64::consts::TAU;
use std::sync::Arc;

/// Where λ of [`Scale::Logistic`] starts: the least variance of the noise as a share of that of the targets.
const LEAST_SHARE: f64 = 0.05;

/// How the second latent function becomes a standard deviation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// σ = e^{f₁}.
    #[default]
    Exp,
    /// σ = u log(1 + e^{f₁}), where the unit u is that of the targets ([`Options::unit`]).
    Softplus,
    /// σ⁻² = λ/(1 + e^{−f₁}) with the parameter `precision`, λ: the noise has at least the variance 1/λ, and
    /// there are local variables that make it Gaussian (Galy-Fajou 2022, §7.2).
    Logistic,
}

impl Scale {
    /// Returns σ, σ′ and σ″ at f₁, with λ = 1 for [`Scale::Logistic`]. Not below e⁻¹⁵⁰, whatever
    /// f₁.
    pub fn at(self, f: f64) -> (f64, f64, f64) {
        match self {
            Scale::Exp => {
                // fourth powers of residuals over σ are to be finite
                let s = f.clamp(-150.0, 150.0).exp();
                (s, s, s)
            }
            Scale::Softplus => {
                let f = f.max(-150.0);
                let (up, down) = (sigmoid(f), sigmoid(-f));
                (softplus(f), up, up * down)
            }
            Scale::Logistic => {
                // σ² = 1 + e^{−f₁}
                let s = (1.0 + (-f.max(-300.0)).exp()).sqrt();
                let first = -0.5 * (s - 1.0 / s);
                (s, first, -0.5 * first * (1.0 + 1.0 / (s * s)))
            }
        }
    }

    /// Returns the f₁ of a standard deviation (above 1 for [`Scale::Logistic`]).
    pub fn inverse(self, deviation: f64) -> f64 {
        match self {
            Scale::Exp => deviation.ln(),
            Scale::Softplus => inverse_softplus(deviation),
            Scale::Logistic => -(deviation * deviation - 1.0).ln(),
        }
    }
}

/// Options of the integrals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// σ(f₁).
    pub scale: Scale,
    /// Points of Gauss–Hermite for f₁ in training.
    pub points: usize,
    /// Gauss–Hermite with as many points for f₀ too, everywhere: points² nodes and no closed forms.
    /// Bad for Student's t; there to agree with programs that do this.
    pub tensor: bool,
    /// The slopes in the variances.
    pub slope: Slope,
    /// u of [`Scale::Softplus`]; 1 where it is neither given nor found in targets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<f64>,
}

impl Default for Options {
    fn default() -> Self {
        Self { scale: Scale::Exp, points: 20, tensor: false, slope: Slope::Rule, unit: None }
    }
}

/// Heteroscedastic noise of some shape.
#[derive(Clone, Debug)]
pub struct Heteroscedastic<N> {
    /// The shape.
    pub noise: N,
    /// λ of [`Scale::Logistic`]; else it has no part in anything.
    pub precision: Param,
    options: Options,
    nodes: Arc<Nodes>,
}

/// Normal noise of changing standard deviation.
pub type HeteroscedasticGaussian = Heteroscedastic<Normal>;
/// Student's t of changing scale.
pub type HeteroscedasticStudentT = Heteroscedastic<StudentT>;

impl HeteroscedasticGaussian {
    /// Creates the likelihood with σ = e^{f₁} and closed forms.
    pub fn new() -> Self {
        Self::of(Normal, Options::default()).expect("the default number of points is possible")
    }

    /// Creates the likelihood with options.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] for a bad number of points.
    pub fn with(options: Options) -> Result<Self> {
        Self::of(Normal, options)
    }
}

impl Default for HeteroscedasticGaussian {
    fn default() -> Self {
        Self::new()
    }
}

impl HeteroscedasticStudentT {
    /// Creates the likelihood with `df` degrees of freedom to start from (raised to the lower
    /// bound).
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] for a bad number of points.
    pub fn new(df: f64, options: Options) -> Result<Self> {
        Self::of(StudentT::new(df), options)
    }
}

impl<N: Noise> Heteroscedastic<N> {
    fn of(noise: N, options: Options) -> Result<Self> {
        check_points(N::NAME, options.points, Rule::MOST)?;
        let nodes = Arc::new(Nodes::gauss_hermite(options.points));
        let precision = Param::with(vec![1.0], Shape::Scalar, Transform::POSITIVE);
        Ok(Self { noise, precision, options, nodes })
    }

    /// Returns λ, if it has a part.
    pub(super) fn most_precise(&self) -> Option<f64> {
        (self.options.scale == Scale::Logistic).then(|| self.precision.scalar())
    }

    /// Returns σ, σ′ and σ″ at f₁.
    fn scale_at(&self, f: f64) -> (f64, f64, f64) {
        let ((s, first, second), unit) = (self.options.scale.at(f), self.unit());
        (unit * s, unit * first, unit * second)
    }

    /// Returns what σ is multiplied by.
    fn unit(&self) -> f64 {
        match self.most_precise() {
            Some(precision) => precision.sqrt().recip(),
            None => self.options.unit.unwrap_or(1.0),
        }
    }

    /// Reads `{"type": …, "scale": "exp" | "softplus", "points": n, "tensor": bool, "slope": …}`, for
    /// Student's t with `df`; all may be absent.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`], [`crate::Error::InvalidParameter`].
    pub fn from_json(json: &Value) -> Result<Self> {
        let mut noise = N::default();
        let mut known = vec!["scale", "points", "tensor", "slope", "unit", "precision"];
        known.extend(N::PARAMS);
        let spec = Spec::new(json, N::NAME, &known)?;
        for (path, param) in listed_mut(|v| noise.visit_mut(v)) {
            spec.param(&path, param)?;
        }
        let default = Options::default();
        let options = Options {
            scale: spec.option("scale")?.unwrap_or(default.scale),
            points: spec.option("points")?.unwrap_or(default.points),
            tensor: spec.option("tensor")?.unwrap_or(default.tensor),
            slope: spec.option("slope")?.unwrap_or(default.slope),
            unit: spec.option("unit")?,
        };
        if let Some(unit) = options.unit
            && !(options.scale == Scale::Softplus && unit > 0.0 && f64::is_finite(unit))
        {
            return Err(Error::Invalid(format!(
                "likelihood {}: `unit` is a positive number, and belongs to `scale=softplus`",
                N::NAME
            )));
        }
        let mut of = Self::of(noise, options)?;
        if of.most_precise().is_none() && json.get("precision").is_some() {
            return Err(Error::Invalid(format!(
                "likelihood {}: `precision` belongs to `scale=logistic`",
                N::NAME
            )));
        }
        spec.param("precision", &mut of.precision)?;
        Ok(of)
    }

    /// Calls `work` with σ, σ′, σ″ at every node of f₁, the node and its weight.
    fn each_scale(
        &self,
        mean: f64,
        variance: f64,
        mut work: impl FnMut((f64, f64, f64), f64, f64),
    ) {
        if variance <= 0.0 {
            return work(self.scale_at(mean), 0.0, 1.0);
        }
        let sd = variance.sqrt();
        for (x, w) in self.nodes.x.iter().zip(&self.nodes.w) {
            work(self.scale_at(mean + sd * x), *x, *w);
        }
    }

    /// Returns σ with weights at nodes of f₁ for predictions.
    fn scales(&self, mean: f64, variance: f64) -> Vec<(f64, f64)> {
        let mut all = Vec::new();
        if self.options.tensor {
            self.each_scale(mean, variance, |(s, ..), _, w| all.push((s, w)));
        } else {
            let nodes = hetero_scale::nodes(mean, variance);
            all.extend(nodes.into_iter().map(|(g, w)| (self.scale_at(g).0, w)));
        }
        all
    }

    fn tensor(&self) -> Option<&Nodes> {
        self.options.tensor.then_some(&*self.nodes)
    }

    /// Returns E log N(y; f₀, e^{2f₁}): all in closed form, as E e^{−2f₁} = e^{−2μ₁ + 2v₁}.
    fn closed(&self, target: Target, mean: &[f64], variance: &[f64], out: Slopes<'_>) -> f64 {
        let residual = target.y - mean[0];
        let precision = (-2.0 * mean[1] + 2.0 * variance[1]).exp();
        let square = (residual * residual + variance[0]) * precision;
        (out.mean[0], out.mean[1]) = (residual * precision, square - 1.0);
        (out.variance[0], out.variance[1]) = (-0.5 * precision, -square);
        -0.5 * (TAU.ln() + square) - mean[1]
    }
}

/// Returns the mean and variance of the known targets; a variance of 1 where they have none.
fn moments(targets: &[Target]) -> (f64, f64) {
    let known: Vec<f64> = targets.iter().map(|t| t.y).filter(|y| y.is_finite()).collect();
    let n = known.len().max(1) as f64;
    let mean = known.iter().sum::<f64>() / n;
    let variance = known.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / n;
    (mean, if variance > 0.0 && variance.is_finite() { variance } else { 1.0 })
}

impl<N: Noise> Likelihood for Heteroscedastic<N> {
    fn name(&self) -> &'static str {
        N::NAME
    }

    fn separate_kernels(&self) -> bool {
        true
    }

    fn latents(&self) -> usize {
        2
    }

    fn standardises(&self) -> bool {
        true
    }

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        self.noise.visit(visitor);
        if self.most_precise().is_some() {
            visitor(&"precision", &self.precision);
        }
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        self.noise.visit_mut(visitor);
        if self.options.scale == Scale::Logistic {
            visitor(&"precision", &mut self.precision);
        }
    }

    fn units(&self) -> Vec<i32> {
        // degrees of freedom have none
        let mut units = vec![0; self.num_params()];
        if self.most_precise().is_some() {
            *units.last_mut().expect("the precision") = -2;
        }
        units
    }

    fn adopt_unit(&mut self, targets: &[Target]) {
        if self.options.scale == Scale::Softplus && self.options.unit.is_none() {
            self.options.unit = Some(moments(targets).1.sqrt());
        }
    }

    /// Returns the mean, and the scale at which the noise by itself would have the variance of the
    /// targets.
    fn initialise(&mut self, targets: &[Target]) -> Vec<f64> {
        let (mean, variance) = moments(targets);
        let factor = self.noise.variance_factor();
        let factor = if factor.is_finite() { factor } else { 1.0 };
        if self.options.scale == Scale::Logistic {
            start(&mut self.precision, LEAST_SHARE.recip() * factor / variance);
        }
        let deviation = (variance / factor).sqrt() / self.unit();
        // a given precision may leave no room
        let least = if self.options.scale == Scale::Logistic { 1.1 } else { 0.0 };
        let deviation = deviation.max(least);
        vec![mean, self.options.scale.inverse(deviation)]
    }

    fn check(&self, target: Target) -> std::result::Result<(), String> {
        if target.y.is_finite() { Ok(()) } else { Err("is not a finite number".into()) }
    }

    fn log_prob(&self, target: Target, f: &[f64]) -> f64 {
        let scale = self.scale_at(f[1]).0;
        self.noise.constant().0 + self.noise.point(target.y - f[0], scale).value
    }

    fn expect(&self, target: Target, mean: &[f64], variance: &[f64], out: Slopes<'_>) -> f64 {
        let options = &self.options;
        if N::IS_NORMAL && options.scale == Scale::Exp && !options.tensor {
            return self.closed(target, mean, variance, out);
        }
        let (constant, constant_by_df) = self.noise.constant();
        let price = options.slope == Slope::Price;
        let mut total = Inner::default();
        let (mut by_mean, mut by_variance, mut by_log_scale) = (0.0, 0.0, 0.0);
        let residual = target.y - mean[0];
        self.each_scale(mean[1], variance[1], |(s, s1, s2), x, w| {
            let inner = self.noise.inner(residual, variance[0], s, w, self.tensor(), price);
            total.value += w * inner.value;
            total.by_mean += w * inner.by_mean;
            total.by_variance += w * inner.by_variance;
            total.by_df += w * inner.by_df;
            by_mean += w * inner.by_scale * s1;
            by_log_scale += w * inner.by_scale * s;
            by_variance += if price || variance[1] < SMALL_VARIANCE {
                0.5 * w * (inner.by_scale_twice * s1 * s1 + inner.by_scale * s2)
            } else {
                0.5 * w * inner.by_scale * s1 * x / variance[1].sqrt()
            };
        });
        (out.mean[0], out.mean[1]) = (total.by_mean, by_mean);
        (out.variance[0], out.variance[1]) = (total.by_variance, by_variance);
        let params = match self.most_precise() {
            Some(precision) => {
                let (last, rest) = out.params.split_last_mut().expect("the precision");
                *last = -0.5 * by_log_scale / precision;
                rest
            }
            None => out.params,
        };
        if let Some(df) = params.first_mut() {
            *df = total.by_df + constant_by_df;
        }
        total.value + constant
    }

    /// Returns mean and variance, which is infinite where that of the noise is (Student's t with df
    /// ≤ 2).
    fn predict(&self, _: f64, mean: &[f64], variance: &[f64]) -> (f64, f64) {
        let square;
        if self.options.scale == Scale::Exp && !self.options.tensor {
            square = (2.0 * (mean[1] + variance[1])).exp();
        } else if let (Some(precision), false) = (self.most_precise(), self.options.tensor) {
            square = (1.0 + (0.5 * variance[1] - mean[1]).exp()) / precision;
        } else {
            square = self.scales(mean[1], variance[1]).iter().map(|(s, w)| w * s * s).sum();
        }
        (mean[0], variance[0] + square * self.noise.variance_factor())
    }

    fn predict_log_density(&self, target: Target, mean: &[f64], variance: &[f64]) -> f64 {
        let residual = target.y - mean[0];
        let Some(tensor) = self.tensor() else {
            let (constant, variance_of_f) = (self.noise.constant().0, variance[0].max(0.0));
            return constant
                + hetero_scale::log_average(mean[1], variance[1], |g| {
                    self.noise.log_density(residual, variance_of_f, self.scale_at(g).0)
                });
        };
        let mut total = LogSum::EMPTY;
        self.each_scale(mean[1], variance[1], |(s, ..), _, w| {
            total.add(self.noise.log_density_by(residual, variance[0], s, tensor), w);
        });
        self.noise.constant().0 + total.ln()
    }

    fn support(&self, _: f64) -> Support {
        Support::Real
    }

    fn cdf(&self, target: Target, mean: &[f64], variance: &[f64]) -> f64 {
        if let Some(certain) = Support::Real.certain(target.y) {
            return certain;
        }
        let residual = target.y - mean[0];
        let scales = self.scales(mean[1], variance[1]);
        scales.iter().map(|(s, w)| w * self.noise.cdf(residual, variance[0], *s)).sum()
    }

    fn quantile(&self, _: f64, mean: &[f64], variance: &[f64], level: f64) -> f64 {
        let step = variance[0].max(0.0).sqrt() + self.scale_at(mean[1]).0;
        // near 1 the upper tail is what has digits
        let upper = level > 0.5;
        let side = if upper { 1.0 - level } else { level };
        let scales = self.scales(mean[1], variance[1]);
        let tail = |distance: f64| {
            scales.iter().map(|(s, w)| w * self.noise.cdf(distance, variance[0], *s)).sum()
        };
        let distance = invert(0.0, step, side, tail);
        if upper { mean[0] - distance } else { mean[0] + distance }
    }

    fn sample(&self, _: f64, f: &[f64], rng: &mut dyn rand::Rng) -> f64 {
        f[0] + self.scale_at(f[1]).0 * self.noise.sample(rng)
    }

    fn augmented(&self) -> Option<&dyn Augmented> {
        match self.options.scale {
            Scale::Logistic => N::augmented(self),
            Scale::Exp | Scale::Softplus => None,
        }
    }

    fn to_json(&self) -> Value {
        let mut object = json!(self.options);
        object["type"] = json!(N::NAME);
        for (path, param) in listed(|v| self.noise.visit(v)) {
            object[path] = param.to_json(StudentT::TRANSFORM);
        }
        if self.most_precise().is_some() {
            object["precision"] = self.precision.to_json(Transform::POSITIVE);
        }
        object
    }

    fn clone_box(&self) -> Box<dyn Likelihood> {
        Box::new(self.clone())
    }
}
/// Registry entry.
pub const GAUSSIAN: Entry = Entry {
    name: Normal::NAME,
    aliases: &["heteroscedastic", "hetero"],
    about: "normal noise whose standard deviation is a function of the inputs",
    targets: "numbers",
    latents: "2: mean, log standard deviation",
    augmented: true,
    build: |args| Ok(Box::new(HeteroscedasticGaussian::from_json(&args.json())?)),
};

/// Registry entry.
pub const STUDENT_T: Entry = Entry {
    name: StudentT::NAME,
    aliases: &["hetero-student-t"],
    about: "Student's t noise whose scale is a function of the inputs",
    targets: "numbers",
    latents: "2: location, log scale",
    augmented: true,
    build: |args| Ok(Box::new(HeteroscedasticStudentT::from_json(&args.json())?)),
};

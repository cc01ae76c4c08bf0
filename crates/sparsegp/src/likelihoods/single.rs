//! Likelihoods of one latent value: what each has to tell, and the rest by quadrature.

use super::augmented::Augmented;
use super::predict::{self, REACH};
use super::quadrature::{Nodes, Rule, Slope};
use super::registry::Args;
use super::{Extra, Likelihood, Slopes, Support, Target};
use crate::error::Result;
use crate::linalg::{exp, sum_of_products};
use crate::params::{Param, Visitor, VisitorMut};
use serde_json::{Value, json};
use std::f64::consts::TAU;
use std::sync::Arc;

/// p(y | f) of one latent value f, with log p(y | f) = [`Scalar::constant`] + [`Scalar::at`].
pub trait Scalar: Clone + std::fmt::Debug + Send + Sync + 'static {
    /// See [`Likelihood::name`].
    fn name(&self) -> &'static str;

    /// See [`Likelihood::standardises`].
    fn standardises(&self) -> bool {
        false
    }

    /// See [`Likelihood::extra`].
    fn extra(&self) -> Option<Extra> {
        None
    }

    /// See [`Likelihood::visit`].
    fn visit<'a>(&'a self, _: Visitor<'a, '_>) {}

    /// See [`Likelihood::visit_mut`].
    fn visit_mut<'a>(&'a mut self, _: VisitorMut<'a, '_>) {}

    /// See [`Likelihood::units`].
    fn units(&self) -> Vec<i32> {
        vec![0; crate::params::count(|v| self.visit(v))]
    }

    /// See [`Likelihood::initialise`]; `targets` are known and have passed [`Scalar::check`], and
    /// there is at least one.
    fn initialise(&mut self, targets: &[Target]) -> f64;

    /// See [`Likelihood::check`].
    ///
    /// # Errors
    /// The end of a sentence.
    fn check(&self, target: Target) -> std::result::Result<(), String>;

    /// Writes the entries of the specification.
    fn write(&self, json: &mut Value);

    /// The part of log p(y | f) that f has no part in.
    fn constant(&self, _: Target) -> f64 {
        0.0
    }

    /// The rest with its first and second derivative by f.
    fn at(&self, target: Target, f: f64) -> [f64; 3];

    /// [`Scalar::at`] at many f (at most [`TOGETHER`]) into zeros, for formulas that a compiler can turn into vectors
    /// ([`Many::add`]).
    fn at_all(&self, target: Target, f: &[f64], out: &mut Many) {
        for (j, f) in f.iter().enumerate() {
            [out.value[j], out.first[j], out.second[j]] = self.at(target, *f);
        }
    }

    /// Its slopes with respect to the parameters: overwrites `out`.
    fn constant_slopes(&self, _: Target, out: &mut [f64]) {
        out.fill(0.0);
    }

    /// Adds `weight` times the slopes of [`Scalar::at`]'s value with respect to the parameters.
    fn add_slopes(&self, _: Target, _f: f64, _weight: f64, _out: &mut [f64]) {}

    /// [`Scalar::add_slopes`] at as many f, with a weight each.
    fn add_all_slopes(&self, target: Target, f: &[f64], weights: &[f64], out: &mut [f64]) {
        for (f, weight) in f.iter().zip(weights) {
            self.add_slopes(target, *f, *weight, out);
        }
    }

    /// [`Likelihood::expect`] if there is a closed form.
    fn closed(&self, _: Target, _mean: f64, _variance: f64, _: &mut Slopes<'_>) -> Option<f64> {
        None
    }

    /// The rule where the specification names none.
    fn rule(&self) -> Rule {
        Rule::default()
    }

    /// Distance from the real line of the nearest singularity of log p(y | f) in f.
    fn pole(&self) -> f64 {
        f64::INFINITY
    }

    /// Where log p(y | f) is not analytic in f, ascending, if it is so at one or two places.
    fn kinks(&self, _: Target) -> [Option<f64>; 2] {
        [None, None]
    }

    /// See [`Likelihood::normalised`].
    fn normalised(&self) -> bool {
        true
    }

    /// Mean and variance of y given f.
    fn moments(&self, extra: f64, f: f64) -> (f64, f64);

    /// [`Likelihood::predict`] if there is a closed form.
    fn closed_moments(&self, _extra: f64, _mean: f64, _variance: f64) -> Option<(f64, f64)> {
        None
    }

    /// [`Likelihood::predict_log_density`] if there is a closed form.
    fn closed_log_density(&self, _: Target, _mean: f64, _variance: f64) -> Option<f64> {
        None
    }

    /// P(Y ≤ y | f).
    fn cdf(&self, extra: f64, y: f64, f: f64) -> f64;

    /// P(Y ≤ y) for f ~ N(mean, variance) if there is a closed form.
    fn closed_cdf(&self, _extra: f64, _y: f64, _mean: f64, _variance: f64) -> Option<f64> {
        None
    }

    /// Where y can lie.
    fn support(&self, extra: f64) -> Support;

    /// Number of classes, if targets are classes.
    fn classes(&self) -> Option<usize> {
        None
    }

    /// See [`Likelihood::augmented`].
    fn augmented(&self) -> Option<&dyn Augmented> {
        None
    }

    /// A draw of y given f.
    fn sample(&self, extra: f64, f: f64, rng: &mut dyn rand::Rng) -> f64;
}

/// Most nodes that are evaluated together.
pub const TOGETHER: usize = 32;
/// Nodes are evaluated in multiples of this: a vector of the widest machines.
const LANES: usize = 8;

/// Values at many f, with first and second derivatives.
#[derive(Clone, Debug)]
pub struct Many {
    /// Values.
    pub value: [f64; TOGETHER],
    /// First derivatives.
    pub first: [f64; TOGETHER],
    /// Second derivatives.
    pub second: [f64; TOGETHER],
}

impl Many {
    /// Zeros.
    pub const ZERO: Self =
        Self { value: [0.0; TOGETHER], first: [0.0; TOGETHER], second: [0.0; TOGETHER] };

    /// Adds a formula at these f, in vector instructions.
    pub fn add(&mut self, formula: impl Formula, f: &[f64]) {
        exp::dispatch(Each { formula, f, out: self });
    }
}

/// A value with its first and second derivative, without branches or calls: `#[inline(always)]`.
pub trait Formula {
    /// At f; `FMA` as for [`exp::Vectorised`].
    fn at<const FMA: bool>(&self, f: f64) -> [f64; 3];
}

struct Each<'a, F> {
    formula: F,
    f: &'a [f64],
    out: &'a mut Many,
}

impl<F: Formula> exp::Vectorised for Each<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { formula, f, out } = self;
        let outs = out.value.iter_mut().zip(&mut out.first).zip(&mut out.second);
        for (((value, first), second), f) in outs.zip(f) {
            let at = formula.at::<FMA>(*f);
            *value += at[0];
            *first += at[1];
            *second += at[2];
        }
    }
}

/// Nodes x and weights w that come one by one, and sums Σ w {g, g′, x g′, g″} at f = mean + deviation·x over them, made of
/// many at a time.
struct Sums<'a, S> {
    model: &'a S,
    target: Target,
    mean: f64,
    deviation: f64,
    params: &'a mut [f64],
    /// Whether weights lack the factor φ(x).
    density: bool,
    x: [f64; TOGETHER],
    w: [f64; TOGETHER],
    len: usize,
    sums: [f64; 4],
}

impl<S: Scalar> Sums<'_, S> {
    fn add(&mut self, x: f64, w: f64) {
        (self.x[self.len], self.w[self.len]) = (x, w);
        self.len += 1;
        if self.len == TOGETHER {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let n = std::mem::take(&mut self.len);
        let Some(last) = n.checked_sub(1) else { return };
        // what fills the last vector counts nothing
        let padded = n.next_multiple_of(LANES);
        let node = self.x[last];
        self.x[n..padded].fill(node);
        self.w[n..padded].fill(0.0);
        let (x, w) = (&self.x[..padded], &mut self.w[..padded]);
        if self.density {
            exp::dispatch(Densities { x, w });
        }
        let mut f = [0.0; TOGETHER];
        f.iter_mut().zip(x).for_each(|(f, x)| *f = self.mean + self.deviation * x);
        let f = &f[..padded];
        let mut many = Many::ZERO;
        self.model.at_all(self.target, f, &mut many);
        let mut wx = [0.0; TOGETHER];
        wx.iter_mut().zip(w.iter().zip(x)).for_each(|(wx, (w, x))| *wx = w * x);
        let Many { value, first, second } = &many;
        let pairs = [(&w[..], value), (w, first), (&wx[..padded], first), (w, second)];
        for (sum, (weights, g)) in self.sums.iter_mut().zip(pairs) {
            *sum += sum_of_products(weights, &g[..padded]);
        }
        if !self.params.is_empty() {
            self.model.add_all_slopes(self.target, f, w, self.params);
        }
    }
}

/// Multiplies w by φ(x).
struct Densities<'a> {
    x: &'a [f64],
    w: &'a mut [f64],
}

impl exp::Vectorised for Densities<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        for (w, x) in self.w.iter_mut().zip(self.x) {
            *w *= exp::exp::<FMA>(-0.5 * x * x) / TAU.sqrt();
        }
    }
}

/// A [`Scalar`] with its quadrature: the full likelihood.
#[derive(Clone, Debug)]
pub struct Single<S> {
    /// The model of y given f.
    pub model: S,
    /// The rule that was asked for; none leaves closed forms and defaults.
    rule: Option<Rule>,
    slope: Slope,
    /// Of Gauss–Hermite, shared among copies.
    nodes: Arc<Nodes>,
}

/// What the specification of every [`Single`] may hold.
pub const OPTIONS: [&str; 2] = ["rule", "slope"];

impl<S: Scalar> Single<S> {
    /// With a rule (none: closed form if there is one, else the likelihood's default rule) and a form
    /// of the derivative by the variance.
    pub fn with(model: S, rule: Option<Rule>, slope: Slope) -> Self {
        let nodes = match rule.unwrap_or(model.rule()) {
            Rule::GaussHermite(n) => Nodes::gauss_hermite(n),
            Rule::Trapezoid => Nodes { x: Vec::new(), w: Vec::new() },
        };
        Self { model, rule, slope, nodes: Arc::new(nodes) }
    }

    /// The likelihood with the options of its specification.
    ///
    /// # Errors
    /// [`crate::Error::Spec`] for options that cannot be read.
    pub fn boxed(model: S, args: &Args<'_>) -> Result<Box<dyn Likelihood>> {
        Ok(Box::new(Self::with(model, args.quadrature()?, args.slope()?)))
    }

    /// Σ wⱼ {g, g′, xⱼg′, g″} at f = mean + √variance xⱼ, adding the slopes with respect to the
    /// parameters.
    fn sums(&self, target: Target, mean: f64, variance: f64, params: &mut [f64]) -> [f64; 4] {
        let deviation = variance.sqrt();
        let mut sums = Sums {
            model: &self.model,
            target,
            mean,
            deviation,
            params,
            density: false,
            x: [0.0; TOGETHER],
            w: [0.0; TOGETHER],
            len: 0,
            sums: [0.0; 4],
        };
        let kinks = self.kinks(target, mean, deviation);
        if variance == 0.0 {
            sums.add(0.0, 1.0);
        } else if !matches!(self.rule, Some(Rule::GaussHermite(_))) && kinks[0].is_some() {
            sums.density = true;
            let width = self.model.pole() / deviation;
            predict::graded(-REACH, REACH, &kinks, width, |x, w| sums.add(x, w));
        } else if self.nodes.x.is_empty() {
            sums.density = true;
            predict::trapezoid(deviation, self.model.pole(), |x, w| sums.add(x, w));
        } else {
            self.nodes.x.iter().zip(&self.nodes.w).for_each(|(x, w)| sums.add(*x, *w));
        }
        sums.flush();
        sums.sums
    }
}

impl<S: Scalar> Single<S> {
    /// [`Scalar::kinks`] in deviations from the mean.
    fn kinks(&self, target: Target, mean: f64, deviation: f64) -> [Option<f64>; 2] {
        self.model.kinks(target).map(|kink| kink.map(|f| (f - mean) / deviation))
    }
}

impl<S: Scalar> Likelihood for Single<S> {
    fn name(&self) -> &'static str {
        self.model.name()
    }

    fn classes(&self) -> Option<usize> {
        self.model.classes()
    }

    fn standardises(&self) -> bool {
        self.model.standardises()
    }

    fn normalised(&self) -> bool {
        self.model.normalised()
    }

    fn extra(&self) -> Option<Extra> {
        self.model.extra()
    }

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        self.model.visit(visitor);
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        self.model.visit_mut(visitor);
    }

    fn units(&self) -> Vec<i32> {
        self.model.units()
    }

    fn initialise(&mut self, targets: &[Target]) -> Vec<f64> {
        let known: Vec<Target> =
            targets.iter().copied().filter(|t| self.model.check(*t).is_ok()).collect();
        vec![if known.is_empty() { 0.0 } else { self.model.initialise(&known) }]
    }

    fn check(&self, target: Target) -> std::result::Result<(), String> {
        self.model.check(target)
    }

    fn log_prob(&self, target: Target, f: &[f64]) -> f64 {
        self.model.constant(target) + self.model.at(target, f[0])[0]
    }

    fn log_prob_slope(&self, target: Target, f: &[f64], slope: &mut [f64]) -> f64 {
        let [value, first, _] = self.model.at(target, f[0]);
        slope[0] = first;
        self.model.constant(target) + value
    }

    fn expect(&self, target: Target, mean: &[f64], variance: &[f64], mut out: Slopes<'_>) -> f64 {
        let (mean, variance) = (mean[0], variance[0]);
        if self.rule.is_none()
            && let Some(value) = self.model.closed(target, mean, variance, &mut out)
        {
            return value;
        }
        self.model.constant_slopes(target, out.params);
        let [value, first, moment, second] = self.sums(target, mean, variance, out.params);
        out.mean[0] = first;
        // E[x g′(μ + √v x)]/2√v loses its digits as v → 0, where both forms agree
        out.variance[0] = match self.slope {
            Slope::Rule if variance > 1e-10 => 0.5 * moment / variance.sqrt(),
            _ => 0.5 * second,
        };
        self.model.constant(target) + value
    }

    fn predict(&self, extra: f64, mean: &[f64], variance: &[f64]) -> (f64, f64) {
        let (mean, variance) = (mean[0], variance[0]);
        if let Some(moments) = self.model.closed_moments(extra, mean, variance) {
            return moments;
        }
        // total variance, about the mean at the centre so that no digits cancel
        let (centre, _) = self.model.moments(extra, mean);
        let at = |f: f64| {
            let (own, within) = self.model.moments(extra, f);
            let shift = own - centre;
            [shift, within + shift * shift]
        };
        let [shift, square] =
            predict::expectation(mean, variance, self.model.pole(), &[None, None], at);
        (centre + shift, (square - shift * shift).max(0.0))
    }

    fn predict_log_density(&self, target: Target, mean: &[f64], variance: &[f64]) -> f64 {
        let (mean, variance) = (mean[0], variance[0]);
        self.model.closed_log_density(target, mean, variance).unwrap_or_else(|| {
            let at = |f: f64| self.model.at(target, f);
            let kinks = self.kinks(target, mean, variance.sqrt());
            self.model.constant(target)
                + predict::log_expectation(mean, variance, self.model.pole(), &kinks, at)
        })
    }

    fn support(&self, extra: f64) -> Support {
        self.model.support(extra)
    }

    fn cdf(&self, target: Target, mean: &[f64], variance: &[f64]) -> f64 {
        let Target { y, extra } = target;
        let (mean, variance) = (mean[0], variance[0]);
        let support = self.model.support(extra);
        if let Some(certain) = support.certain(y) {
            return certain;
        }
        let y = if support.largest().is_some() { y.floor() } else { y };
        self.model.closed_cdf(extra, y, mean, variance).unwrap_or_else(|| {
            let at = |f: f64| [self.model.cdf(extra, y, f)];
            let kinks = self.kinks(Target { y, extra }, mean, variance.sqrt());
            predict::expectation(mean, variance, self.model.pole(), &kinks, at)[0]
        })
    }

    fn probabilities(&self, mean: &[f64], variance: &[f64], out: &mut [f64]) {
        if self.model.classes().is_some() {
            for (class, p) in out.iter_mut().enumerate() {
                let target = Target { y: class as f64, extra: f64::NAN };
                *p = self.predict_log_density(target, mean, variance).exp();
            }
            let sum: f64 = out.iter().sum();
            out.iter_mut().for_each(|p| *p /= sum);
        }
    }

    fn augmented(&self) -> Option<&dyn Augmented> {
        self.model.augmented()
    }

    fn sample(&self, extra: f64, f: &[f64], rng: &mut dyn rand::Rng) -> f64 {
        self.model.sample(extra, f[0], rng)
    }

    fn to_json(&self) -> Value {
        let mut json = json!({ "type": self.model.name() });
        self.model.write(&mut json);
        if let Some(rule) = self.rule {
            json["rule"] = json!(rule);
        }
        if self.slope != Slope::default() {
            json["slope"] = json!(self.slope);
        }
        json
    }

    fn clone_box(&self) -> Box<dyn Likelihood> {
        Box::new(self.clone())
    }
}

/// A starting value from the data, unless the specification gave one or it is out of range.
pub fn start(param: &mut Param, value: f64) {
    if !param.given && param.natural().contains(value) {
        param.start(&[value]);
    }
}

/// Mean and variance of numbers.
pub fn spread(numbers: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let n = numbers.clone().count().max(1) as f64;
    let mean = numbers.clone().sum::<f64>() / n;
    (mean, numbers.map(|y| (y - mean) * (y - mean)).sum::<f64>() / n)
}

/// Median and median distance from it.
pub fn robust_spread(targets: &[Target]) -> (f64, f64) {
    let median = |mut numbers: Vec<f64>| {
        let middle = numbers.len() / 2;
        *numbers.select_nth_unstable_by(middle, f64::total_cmp).1
    };
    let centre = median(targets.iter().map(|t| t.y).collect());
    (centre, median(targets.iter().map(|t| (t.y - centre).abs()).collect()))
}

/// The check of a real number.
pub fn finite(target: Target) -> std::result::Result<(), String> {
    if target.y.is_finite() { Ok(()) } else { Err("is not a finite number".into()) }
}

/// The check of a positive number.
pub fn positive(target: Target) -> std::result::Result<(), String> {
    if target.y > 0.0 && target.y.is_finite() {
        Ok(())
    } else {
        Err("is not a positive finite number".into())
    }
}

/// The check of a count with an exposure.
pub fn count(target: Target) -> std::result::Result<(), String> {
    if !super::functions::is_count(target.y) {
        Err("is no count (0, 1, 2, …)".into())
    } else if !(target.extra > 0.0 && target.extra.is_finite()) {
        Err(format!("has the exposure {}, which must be positive and finite", target.extra))
    } else {
        Ok(())
    }
}

/// The exposure that a row may bring.
pub const EXPOSURE: Extra = Extra { name: "exposure", default: Some(1.0) };

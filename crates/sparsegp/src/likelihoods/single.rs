//! Likelihoods of one latent value: what each tells ([`Scalar`]), and the rest by quadrature.

use super::augmented::Augmented;
use super::predict::{self, REACH};
use super::quadrature::{Nodes, Rule, Slope};
use super::registry::Args;
use super::{Extra, Likelihood, Slopes, Support, Target};
use crate::error::Result;
use crate::linalg::{exp, sum_of_products};
use crate::params::{Visitor, VisitorMut};
use serde_json::{Value, json};
use std::f64::consts::TAU;
use std::sync::Arc;

pub use super::scalar::{Formula, Many, Scalar, TOGETHER};
pub use super::targets::{EXPOSURE, count, finite, positive, robust_spread, spread, start};

/// Nodes are evaluated in multiples of this: a vector of the widest machines.
const LANES: usize = 8;

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
    /// Creates the likelihood with a rule (none: closed form if there is one, else the likelihood's
    /// default rule) and a form of the derivative by the variance.
    pub fn with(model: S, rule: Option<Rule>, slope: Slope) -> Self {
        let nodes = match rule.unwrap_or(model.rule()) {
            Rule::GaussHermite(n) => Nodes::gauss_hermite(n),
            Rule::Trapezoid => Nodes { x: Vec::new(), w: Vec::new() },
        };
        Self { model, rule, slope, nodes: Arc::new(nodes) }
    }

    /// Returns the likelihood with the options of its specification.
    ///
    /// # Errors
    /// [`crate::Error::Spec`] for options that cannot be read.
    pub fn boxed(model: S, args: &Args<'_>) -> Result<Box<dyn Likelihood>> {
        Ok(Box::new(Self::with(model, args.quadrature()?, args.slope()?)))
    }

    /// Returns the targets that can be.
    fn known(&self, targets: &[Target]) -> Vec<Target> {
        targets.iter().copied().filter(|t| self.model.check(*t).is_ok()).collect()
    }

    /// Returns Σ wⱼ {g, g′, xⱼg′, g″} at f = mean + √variance xⱼ, adding the slopes with respect to
    /// the parameters.
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
    /// Returns [`Scalar::kinks`] in deviations from the mean.
    fn kinks(&self, target: Target, mean: f64, deviation: f64) -> [Option<f64>; 2] {
        self.model.kinks(target).map(|kink| kink.map(|f| (f - mean) / deviation))
    }

    /// Returns the values of f around which P(Y ≤ y | f) changes most, for a wide latent value:
    /// where y is likely, and 0, where links bend.
    fn peaks(&self, target: Target, mean: f64, deviation: f64) -> Vec<f64> {
        let reach = REACH * deviation;
        let slope = |f: f64| self.model.at(target, f)[1];
        let mut peaks = vec![0.0];
        peaks.extend(predict::turning(mean - reach, mean + reach, slope));
        peaks.extend(self.model.kinks(target).into_iter().flatten());
        peaks
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

    fn bears_outliers(&self) -> bool {
        self.model.bears_outliers()
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

    fn adopt_unit(&mut self, targets: &[Target]) {
        let known = self.known(targets);
        if !known.is_empty() {
            self.model.adopt_unit(&known);
        }
    }

    fn initialise(&mut self, targets: &[Target]) -> Vec<f64> {
        let known = self.known(targets);
        vec![if known.is_empty() { 0.0 } else { self.model.initialise(&known) }]
    }

    fn latent_variance(&self, targets: &[Target]) -> f64 {
        let known = self.known(targets);
        if known.is_empty() { 1.0 } else { self.model.latent_variance(&known) }
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
        let (pole, kinks) = (self.model.pole(), [None, None]);
        let [shift, square] = predict::expectation(mean, variance, pole, &kinks, || vec![0.0], at);
        (centre + shift, (square - shift * shift).max(0.0))
    }

    fn predict_log_density(&self, target: Target, mean: &[f64], variance: &[f64]) -> f64 {
        let (mean, variance) = (mean[0], variance[0]);
        self.model.closed_log_density(target, mean, variance).unwrap_or_else(|| {
            let at = |f: f64| self.model.at(target, f);
            let kinks = self.kinks(target, mean, variance.sqrt());
            self.model.constant(target)
                + predict::log_expectation(mean, variance, self.model.pole(), &kinks, &[0.0], at)
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
            let peaks = || self.peaks(Target { y, extra }, mean, variance.sqrt());
            predict::expectation(mean, variance, self.model.pole(), &kinks, peaks, at)[0]
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

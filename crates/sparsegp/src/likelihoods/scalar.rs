//! What a likelihood of one latent value has to tell.

#[cfg(doc)]
use super::Likelihood;
use super::augmented::Augmented;
use super::quadrature::Rule;
use super::{Extra, Slopes, Support, Target};
use crate::linalg::exp;
use crate::params::{Visitor, VisitorMut};
use serde_json::Value;

/// p(y | f) of one latent value f, with log p(y | f) = [`Scalar::constant`] + [`Scalar::at`].
pub trait Scalar: Clone + std::fmt::Debug + Send + Sync + 'static {
    /// Serves [`Likelihood::name`].
    fn name(&self) -> &'static str;

    /// Serves [`Likelihood::standardises`].
    fn standardises(&self) -> bool {
        false
    }

    /// Serves [`Likelihood::bears_outliers`].
    fn bears_outliers(&self) -> bool {
        false
    }

    /// Serves [`Likelihood::extra`].
    fn extra(&self) -> Option<Extra> {
        None
    }

    /// Serves [`Likelihood::visit`].
    fn visit<'a>(&'a self, _: Visitor<'a, '_>) {}

    /// Serves [`Likelihood::visit_mut`].
    fn visit_mut<'a>(&'a mut self, _: VisitorMut<'a, '_>) {}

    /// Serves [`Likelihood::units`].
    fn units(&self) -> Vec<i32> {
        vec![0; crate::params::count(|v| self.visit(v))]
    }

    /// Serves [`Likelihood::adopt_unit`]; `targets` as for [`Scalar::initialise`].
    fn adopt_unit(&mut self, _targets: &[Target]) {}

    /// Serves [`Likelihood::initialise`]; `targets` are known and have passed [`Scalar::check`],
    /// and there is at least one.
    fn initialise(&mut self, targets: &[Target]) -> f64;

    /// Serves [`Likelihood::latent_variance`]; `targets` as for [`Scalar::initialise`].
    fn latent_variance(&self, _targets: &[Target]) -> f64 {
        1.0
    }

    /// Serves [`Likelihood::check`].
    ///
    /// # Errors
    /// The end of a sentence.
    fn check(&self, target: Target) -> std::result::Result<(), String>;

    /// Writes the entries of the specification.
    fn write(&self, json: &mut Value);

    /// Returns the part of log p(y | f) that f has no part in.
    fn constant(&self, _: Target) -> f64 {
        0.0
    }

    /// Returns the rest with its first and second derivative by f.
    fn at(&self, target: Target, f: f64) -> [f64; 3];

    /// Computes [`Scalar::at`] at many f (at most [`TOGETHER`]) into zeros, for formulas that a
    /// compiler can turn into vectors ([`Many::add`]).
    fn at_all(&self, target: Target, f: &[f64], out: &mut Many) {
        for (j, f) in f.iter().enumerate() {
            [out.value[j], out.first[j], out.second[j]] = self.at(target, *f);
        }
    }

    /// Computes its slopes with respect to the parameters: overwrites `out`.
    fn constant_slopes(&self, _: Target, out: &mut [f64]) {
        out.fill(0.0);
    }

    /// Adds `weight` times the slopes of [`Scalar::at`]'s value with respect to the parameters.
    fn add_slopes(&self, _: Target, _f: f64, _weight: f64, _out: &mut [f64]) {}

    /// Does [`Scalar::add_slopes`] at as many f, with a weight each.
    fn add_all_slopes(&self, target: Target, f: &[f64], weights: &[f64], out: &mut [f64]) {
        for (f, weight) in f.iter().zip(weights) {
            self.add_slopes(target, *f, *weight, out);
        }
    }

    /// Returns [`Likelihood::expect`] if there is a closed form.
    fn closed(&self, _: Target, _mean: f64, _variance: f64, _: &mut Slopes<'_>) -> Option<f64> {
        None
    }

    /// Returns the rule where the specification names none.
    fn rule(&self) -> Rule {
        Rule::default()
    }

    /// Returns the distance from the real line of the nearest singularity of log p(y | f) in f.
    fn pole(&self) -> f64 {
        f64::INFINITY
    }

    /// Returns where log p(y | f) is not analytic in f, ascending, if it is so at one or two
    /// places.
    fn kinks(&self, _: Target) -> [Option<f64>; 2] {
        [None, None]
    }

    /// Serves [`Likelihood::normalised`].
    fn normalised(&self) -> bool {
        true
    }

    /// Returns the mean and variance of y given f.
    fn moments(&self, extra: f64, f: f64) -> (f64, f64);

    /// Returns [`Likelihood::predict`] if there is a closed form.
    fn closed_moments(&self, _extra: f64, _mean: f64, _variance: f64) -> Option<(f64, f64)> {
        None
    }

    /// Returns [`Likelihood::predict_log_density`] if there is a closed form.
    fn closed_log_density(&self, _: Target, _mean: f64, _variance: f64) -> Option<f64> {
        None
    }

    /// Returns P(Y ≤ y | f).
    fn cdf(&self, extra: f64, y: f64, f: f64) -> f64;

    /// Returns P(Y ≤ y) for f ~ N(mean, variance) if there is a closed form.
    fn closed_cdf(&self, _extra: f64, _y: f64, _mean: f64, _variance: f64) -> Option<f64> {
        None
    }

    /// Returns where y can lie.
    fn support(&self, extra: f64) -> Support;

    /// Returns the number of classes, if targets are classes.
    fn classes(&self) -> Option<usize> {
        None
    }

    /// Serves [`Likelihood::augmented`].
    fn augmented(&self) -> Option<&dyn Augmented> {
        None
    }

    /// Draws y given f.
    fn sample(&self, extra: f64, f: f64, rng: &mut dyn rand::Rng) -> f64;
}

/// Most nodes that are evaluated together.
pub const TOGETHER: usize = 32;

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
    /// Computes it at f; `FMA` as for [`exp::Vectorised`].
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

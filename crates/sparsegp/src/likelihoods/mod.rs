//! Observation models p(y | f).
//!
//! A [`Likelihood`] looks at one observation at a time: a [`Target`] y and the K latent values that it
//! depends on (one for most; two where the noise is a function of the input; one per class for
//! several classes). What inference asks of it is E[log p(y | f)] under independent Gaussians, with
//! slopes ([`Likelihood::expect`]); what prediction asks are moments, densities and draws of y.
//! Weights, missing targets, minibatches and several target columns are not its concern: whoever sums
//! over rows sees to them.
//!
//! To add one: one file and one line in the registry. One of a single latent value implements
//! `single::Scalar`, which is log p(y | f) with its derivatives, and has the rest by quadrature. For likelihoods of other crates there
//! are [`custom`] and [`general`] (on arrays); [`register`] gives them a name in specifications and model files.

pub mod augmented;
mod beta;
mod binomial;
pub mod class_weights;
pub mod coregionalised;
pub mod custom;
mod custom_law;
pub use crate::dual_numbers as dual;
mod extras;
mod gamma;
mod gaussian;
pub mod general;
mod hetero_augmented;
pub mod hetero_noise;
mod hetero_scale;
pub mod heteroscedastic;
mod laplace;
mod largest;
mod links;
mod log_normal;
mod logistic_classes;
mod logistic_mean_field;
mod logistic_noise;
pub mod logistic_softmax;
mod matern32;
pub mod multi;
pub mod multi_laplace;
pub mod multi_points;
pub mod multi_scores;
mod multi_wide;
mod negative_binomial;
mod ordinal;
mod panels;
mod peaks;
mod poisson;
mod poisson_logistic;
pub(crate) mod predict;
mod pseudo_huber;
pub mod quadrature;
mod registry;
pub mod robust_max;
mod scalar;
mod single;
pub mod softmax;
mod student_t;
mod svm;
mod targets;
pub(crate) mod together;
mod zero_inflated_poisson;

pub use coregionalised::shape as mixing_shape;
pub(crate) use extras::default_extra;
pub use gaussian::Gaussian;
pub use registry::{Args, Entry, REGISTRY, build, find, parse, register};

use crate::error::Result;
use crate::params::{Named, NamedMut, Param, Visitor, VisitorMut, count, listed, listed_mut};
use serde_json::Value;

/// One observation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// The target. Classes are 0, 1, …; two classes are 0 and 1.
    pub y: f64,
    /// What else is known of the row, see [`Likelihood::extra`]; that default where there is none.
    pub extra: f64,
}

/// A further number that may come with every row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extra {
    /// Its name: `exposure`, `trials`, `variance`.
    pub name: &'static str,
    /// What is assumed where the data have no such column; none if there must be one.
    pub default: Option<f64>,
}

/// Where y can lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Support {
    /// All numbers.
    Real,
    /// The positive numbers.
    Positive,
    /// Between two numbers.
    Interval(f64, f64),
    /// 0, 1, 2, …
    Counts,
    /// 0, 1, …, up to a number of trials.
    Trials(f64),
    /// 0, …, C − 1, as classes.
    Classes(usize),
}

impl Support {
    /// Returns whether y lies in it.
    pub fn contains(self, y: f64) -> bool {
        y.is_finite()
            && match (self, self.largest()) {
                (_, Some(largest)) => y >= 0.0 && y <= largest && y.fract() == 0.0,
                (Support::Positive, _) => y > 0.0,
                (Support::Interval(low, high), _) => y >= low && y <= high,
                _ => true,
            }
    }

    /// Returns the largest number of a support that has only whole numbers from 0; infinity for
    /// counts.
    pub fn largest(self) -> Option<f64> {
        match self {
            Support::Counts => Some(f64::INFINITY),
            Support::Trials(most) => Some(most),
            Support::Classes(c) => Some(c as f64 - 1.0),
            Support::Real | Support::Positive | Support::Interval(..) => None,
        }
    }

    /// Returns P(Y ≤ y) where it is 0 or 1 whatever the distribution.
    pub fn certain(self, y: f64) -> Option<f64> {
        let (low, high) = match (self, self.largest()) {
            // 0 itself has a probability
            (_, Some(largest)) => (-f64::MIN_POSITIVE, largest),
            (Support::Positive, _) => (0.0, f64::INFINITY),
            (Support::Interval(low, high), _) => (low, high),
            _ => (f64::NEG_INFINITY, f64::INFINITY),
        };
        (y <= low || y >= high).then(|| f64::from(u8::from(y >= high)))
    }

    /// Says in words what a number is that does not lie in it.
    pub fn words(self) -> String {
        match self {
            Support::Real => "is not a finite number".into(),
            Support::Positive => "is not a positive number".into(),
            Support::Interval(low, high) => format!("is not between {low} and {high}"),
            Support::Counts => "is not a count (0, 1, 2, …)".into(),
            Support::Trials(most) => format!("is not a count from 0 to {most}"),
            Support::Classes(c) => {
                format!("is not a class: there are {c} classes, 0, …, {}", c - 1)
            }
        }
    }
}

/// Where [`Likelihood::expect`] writes the slopes of its value. All are overwritten.
#[derive(Debug)]
pub struct Slopes<'a> {
    /// ∂/∂mean, K numbers.
    pub mean: &'a mut [f64],
    /// ∂/∂variance, K numbers.
    pub variance: &'a mut [f64],
    /// With respect to the constrained parameters, in the order of [`Likelihood::params`].
    pub params: &'a mut [f64],
}

/// Where [`Likelihood::expect_rows`] writes, row by row. All is overwritten.
#[derive(Debug)]
pub struct Many<'a> {
    /// E[log p(y | f)], N numbers.
    pub value: &'a mut [f64],
    /// ∂/∂mean, N×K.
    pub mean: &'a mut [f64],
    /// ∂/∂variance, N×K.
    pub variance: &'a mut [f64],
    /// With respect to the constrained parameters, N×P.
    pub params: &'a mut [f64],
}

/// An observation model. Slices of latent values, means and variances hold K numbers
/// ([`Likelihood::latents`]); variances are ≥ 0.
pub trait Likelihood: Send + Sync + std::fmt::Debug {
    /// Returns the name in specifications, model files and messages.
    fn name(&self) -> &'static str;

    /// Returns the number of latent functions K that one target depends on.
    fn latents(&self) -> usize {
        1
    }

    /// Returns the matrix W (P×Q, column by column) by which Q latent functions g that all target
    /// columns have in common become those of the targets, f = W g; then a target has one
    /// ([`coregionalised`]). None where every target column has its own latent functions.
    fn mixing(&self) -> Option<&Param> {
        None
    }

    /// Returns the same, to change it.
    fn mixing_mut(&mut self) -> Option<&mut Param> {
        None
    }

    /// Returns whether the latent functions of a target differ in kind, so that each should have
    /// its own kernel.
    fn separate_kernels(&self) -> bool {
        false
    }

    /// Returns whether only differences between the latent values of a target matter: log p(y | f)
    /// stays what it is where all of them move by the same amount, in expectation too.
    fn shift_invariant(&self) -> bool {
        false
    }

    /// Returns the number of classes, if targets are classes.
    fn classes(&self) -> Option<usize> {
        None
    }

    /// Returns whether targets may be shifted and scaled to mean 0 and variance 1: the family of
    /// densities is the same afterwards.
    fn standardises(&self) -> bool {
        false
    }

    /// Returns whether one target far from all others leaves what is learnt of them as it was: the
    /// tails of the density are not lighter than exponential.
    fn bears_outliers(&self) -> bool {
        false
    }

    /// Returns whether p(y | f) is a density of y. Not so for a pseudo-likelihood, such as the
    /// hinge loss: inference takes it as it stands, and predictions are of the normalised one.
    fn normalised(&self) -> bool {
        true
    }

    /// Returns the further number that a row may bring.
    fn extra(&self) -> Option<Extra> {
        None
    }

    /// Shows the parameters with their paths, in a fixed order.
    fn visit<'a>(&'a self, _: Visitor<'a, '_>) {}

    /// Shows the same, to change them.
    fn visit_mut<'a>(&'a mut self, _: VisitorMut<'a, '_>) {}

    /// Returns the list of what [`Likelihood::visit`] shows.
    fn params(&self) -> Vec<Named<'_>> {
        listed(|v| self.visit(v))
    }

    /// Returns the same, to change them.
    fn params_mut(&mut self) -> Vec<NamedMut<'_>> {
        listed_mut(|v| self.visit_mut(v))
    }

    /// Returns the number of numbers among the parameters.
    fn num_params(&self) -> usize {
        count(|v| self.visit(v))
    }

    /// Returns the power of the target's unit for every number among the parameters (2 for a
    /// variance).
    fn units(&self) -> Vec<i32> {
        vec![0; self.num_params()]
    }

    /// Takes the unit of the targets (NaN where missing), where a link has one and the specification did not give it: once,
    /// before [`Likelihood::initialise`].
    fn adopt_unit(&mut self, _targets: &[Target]) {}

    /// Gives the parameters starting values from targets (NaN where missing) with their further
    /// numbers; what the specification gave stays. Returns where the K latent functions should
    /// start: constants under which the targets are not surprising.
    fn initialise(&mut self, targets: &[Target]) -> Vec<f64>;

    /// Returns the variance of latent functions that kernels start with where targets are not standardised: 1, but where
    /// latent values have a unit of the targets.
    fn latent_variance(&self, _targets: &[Target]) -> f64 {
        1.0
    }

    /// Returns what is wrong with a target, as the end of a sentence that begins with its value,
    /// such as `is not a count (0, 1, 2, …)`.
    ///
    /// # Errors
    /// That text.
    fn check(&self, target: Target) -> std::result::Result<(), String>;

    /// Tries the likelihood at some of these targets before a fit, at its starting values: those of others may be no densities.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) that names the likelihood and says what is wrong.
    fn trial(&self, targets: &[Target]) -> Result<()> {
        let _ = targets;
        Ok(())
    }

    /// Returns log p(y | f).
    fn log_prob(&self, target: Target, f: &[f64]) -> f64;

    /// Writes log p(y | f) of N rows into `out`; latent values `f` are N×K, row by row.
    fn log_probs(&self, targets: &[Target], f: &[f64], out: &mut [f64]) {
        let rows = f.chunks_exact(self.latents()).zip(targets);
        out.iter_mut().zip(rows).for_each(|(log, (f, target))| *log = self.log_prob(*target, f));
    }

    /// Returns log p(y | f) with its slopes by f into `slope` (K numbers). By default
    /// [`Likelihood::expect`] where f is known.
    fn log_prob_slope(&self, target: Target, f: &[f64], slope: &mut [f64]) -> f64 {
        let k = f.len();
        multi::scratch(2 * k + self.num_params(), |work| {
            let (still, rest) = work.split_at_mut(k);
            let (variance, params) = rest.split_at_mut(k);
            self.expect(target, f, still, Slopes { mean: slope, variance, params })
        })
    }

    /// Writes log p(y | f) of N rows into `value`, and its slopes by `f` into `slopes` (both N×K, row by row).
    fn log_prob_slopes(
        &self,
        targets: &[Target],
        f: &[f64],
        value: &mut [f64],
        slopes: &mut [f64],
    ) {
        let k = self.latents();
        let rows = f.chunks_exact(k).zip(slopes.chunks_exact_mut(k)).zip(targets);
        let each = value.iter_mut().zip(rows);
        each.for_each(|(v, ((f, slope), target))| *v = self.log_prob_slope(*target, f, slope));
    }

    /// Returns E[log p(y | f)] under fₖ ~ N(meanₖ, varianceₖ), independent, with slopes.
    fn expect(&self, target: Target, mean: &[f64], variance: &[f64], out: Slopes<'_>) -> f64;

    /// Returns whether many rows at once cost less than one after the other: then training asks
    /// [`Likelihood::expect_rows`].
    fn in_blocks(&self) -> bool {
        false
    }

    /// Computes [`Likelihood::expect`] of several rows, with means and variances row by row (N×K).
    fn expect_rows(&self, targets: &[Target], mean: &[f64], variance: &[f64], out: Many<'_>) {
        let (k, p) = (self.latents(), self.num_params());
        for (i, target) in targets.iter().enumerate() {
            let (at, own) = (i * k..(i + 1) * k, i * p..(i + 1) * p);
            let slopes = Slopes {
                mean: &mut out.mean[at.clone()],
                variance: &mut out.variance[at.clone()],
                params: &mut out.params[own],
            };
            out.value[i] = self.expect(*target, &mean[at.clone()], &variance[at], slopes);
        }
    }

    /// Returns the mean and variance of y (for classes: of the class index as it stands, which has
    /// little meaning; ask for [`Likelihood::probabilities`]). `extra` as in [`Target`].
    fn predict(&self, extra: f64, mean: &[f64], variance: &[f64]) -> (f64, f64);

    /// Returns log E[p(y | f)].
    fn predict_log_density(&self, target: Target, mean: &[f64], variance: &[f64]) -> f64;

    /// Returns where y can lie; `extra` as in [`Target`].
    fn support(&self, extra: f64) -> Support;

    /// Returns P(Y ≤ y) under fₖ ~ N(meanₖ, varianceₖ), independent, for any y (of classes: of the
    /// class index).
    fn cdf(&self, target: Target, mean: &[f64], variance: &[f64]) -> f64;

    /// Returns the `level` quantile of y, 0 < level < 1: where [`Likelihood::cdf`] reaches it. Of
    /// whole numbers the smallest at which it is at least `level`.
    fn quantile(&self, extra: f64, mean: &[f64], variance: &[f64], level: f64) -> f64 {
        let cdf = |y: f64| self.cdf(Target { y, extra }, mean, variance);
        predict::quantile(cdf, self.support(extra), None, level)
    }

    /// Writes the probabilities of the classes into `out` ([`Likelihood::classes`] numbers, of sum
    /// 1).
    fn probabilities(&self, mean: &[f64], variance: &[f64], out: &mut [f64]) {
        let _ = (mean, variance, out);
    }

    /// Draws y given the latent values.
    fn sample(&self, extra: f64, f: &[f64], rng: &mut dyn rand::Rng) -> f64;

    /// Returns this likelihood if it is Gaussian noise, for the methods that need that.
    fn as_gaussian(&self) -> Option<&Gaussian> {
        None
    }

    /// Returns the same, to change it.
    fn as_gaussian_mut(&mut self) -> Option<&mut Gaussian> {
        None
    }

    /// Returns this likelihood with local variables that make it Gaussian, if it has such.
    fn augmented(&self) -> Option<&dyn augmented::Augmented> {
        None
    }

    /// Returns JSON that the registry reads.
    fn to_json(&self) -> Value;

    /// Returns a copy.
    fn clone_box(&self) -> Box<dyn Likelihood>;
}

impl Clone for Box<dyn Likelihood> {
    fn clone(&self) -> Self {
        self.clone_box()
    }
}

#[cfg(test)]
mod augmented_tests;
#[cfg(test)]
mod distribution_tests;
#[cfg(test)]
mod logistic_softmax_tests;
#[cfg(test)]
mod multi_tests;
#[cfg(test)]
mod prediction_tests;
#[cfg(test)]
mod tests;

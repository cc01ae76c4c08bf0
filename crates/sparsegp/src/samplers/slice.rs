//! Slice sampling of hyperparameters within Gibbs sweeps (Neal 2003, §4: stepping out and shrinkage, one number at a
//! time).
//!
//! Given the local variables f is integrated out, which is what makes chains of hyperparameters mix: for the parameters
//! θ of kernels and mean
//!
//! ```text
//! p(θ | ω, y) ∝ p(θ) E_α(θ)            log E_α in `conditional`, of the latent functions that θ is of
//! p(θ | f, y) ∝ p(θ) ∏ p(yᵢ | fᵢ, θ)   parameters of the likelihood: here ω is integrated out
//! ```
//! Both are blocks of a partially collapsed Gibbs sampler (van Dyk & Park 2008): likelihood | f; then ω | f; then θ | ω;
//! then f | ω, θ. Numbers move as logarithms above their lower bound, between two bounds as logits, else as they are, with
//! the Jacobians of these maps, as priors are densities of the values.

use crate::error::{Error, Result};
use crate::model::{Model, Part};
use crate::params::{Param, Prior, Transform};
use crate::rng::{below, uniform};
use rand::Rng;
use rand_distr::{Distribution, Exp1};

/// Width of the first interval, of a logarithm or a logit.
const WIDTH: f64 = 1.0;
/// Widths that an interval may step out over, both ways together.
const WIDEST: usize = 20;
/// An interval that has shrunk so often has shrunk to the point where it started.
const SHRINKAGES: usize = 200;

/// Which conditional a number is drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Block {
    /// Given f.
    Likelihood,
    /// Given the local variables, of a kernel.
    Kernel(usize),
    /// Given the local variables, of the mean function of one latent function.
    Mean(usize),
}

/// A number that is sampled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coordinate {
    pub block: Block,
    /// Place of its parameter in the order of [`Model::visit`], and its own in that.
    param: usize,
    entry: usize,
    /// Its place among the numbers of all parameters.
    place: usize,
    transform: Transform,
    prior: Option<Prior>,
}

impl Coordinate {
    /// Returns what moves, for a value.
    pub fn to_free(self, value: f64) -> f64 {
        as_logarithm(self.transform).to_free(value)
    }

    /// Returns the value of what moves.
    pub fn to_value(self, free: f64) -> f64 {
        as_logarithm(self.transform).to_constrained(free)
    }

    /// Returns the log density of what moves, by prior and Jacobian.
    pub fn log_prior(self, value: f64) -> f64 {
        self.log_jacobian(value) + self.prior.map_or(0.0, |prior| prior.log_density(value))
    }

    /// Returns log |∂ value / ∂ free|.
    pub fn log_jacobian(self, value: f64) -> f64 {
        as_logarithm(self.transform).slope_at(value).ln()
    }

    /// Returns the slope of [`Coordinate::log_prior`] plus what a function of the value with this
    /// slope adds, by what moves.
    pub fn slope(self, value: f64, by_value: f64) -> f64 {
        self.slope_of(value, by_value + self.prior.map_or(0.0, |prior| prior.slope(value)))
    }

    /// Returns the slope of [`Coordinate::log_jacobian`] plus a function of the value with this
    /// slope, by what moves.
    pub fn slope_of(self, value: f64, by_value: f64) -> f64 {
        let transform = as_logarithm(self.transform);
        let slope = transform.slope_at(value);
        // of log |∂ value / ∂ free|
        let jacobian = match transform {
            Transform::Identity => 0.0,
            Transform::Softplus { .. } => 1.0 - slope,
            Transform::Exp { .. } => 1.0,
            Transform::Interval { lower, upper } => (lower + upper - 2.0 * value) / (upper - lower),
            Transform::Below { .. } => slope - 1.0,
        };
        jacobian + slope * by_value
    }

    /// Reads the value in a model.
    pub fn read(self, model: &Model) -> f64 {
        let (mut at, mut found) = (0, f64::NAN);
        model.visit(&mut |_, param| {
            if at == self.param {
                found = param.value()[self.entry];
            }
            at += 1;
        });
        found
    }

    /// Returns the slope by its value, of the slopes by the numbers of all parameters.
    pub fn by_value(self, model: &Model, slopes: &[f64]) -> f64 {
        let (mut at, mut found) = (0, f64::NAN);
        model.visit(&mut |_, param| {
            if at == self.param {
                let first = self.place - self.entry;
                found = param.slope_of(self.entry, &slopes[first..first + param.len()]);
            }
            at += 1;
        });
        found
    }

    /// Sets it.
    pub fn write(self, model: &mut Model, value: f64) {
        let mut at = 0;
        model.visit_mut(&mut |_, param| {
            if at == self.param {
                param.set_one(self.entry, value);
            }
            at += 1;
        });
    }
}

/// Returns the logarithm for a softplus, which is linear where values are large; scales move by
/// factors.
fn as_logarithm(transform: Transform) -> Transform {
    match transform {
        Transform::Softplus { lower } => Transform::Exp { lower },
        other => other,
    }
}

/// Returns whether a parameter is one of those that are sampled.
fn is_sampled(param: &Param) -> bool {
    !param.frozen && !param.role().is_bulky()
}

/// Gives every parameter that would be sampled a prior, if it has none and its range is not bounded (there it is uniform):
/// without one the posterior need not exist. Positive numbers get a log-normal about their present values (the geometric
/// mean of several), with a standard deviation of 1 in the logarithm; others a normal about their present mean, with a
/// standard deviation of 1 on the model's scale. Returns their paths.
pub fn assume_priors(model: &mut Model) -> Vec<String> {
    let mut assumed = Vec::new();
    model.visit_mut(&mut |path, param| {
        let path = path.to_string();
        if !is_sampled(param) || param.prior.is_some() || param.is_empty() {
            return;
        }
        let n = param.len() as f64;
        let prior = match param.natural() {
            Transform::Softplus { .. } | Transform::Exp { .. } => {
                let loc = param.value().iter().map(|v| v.ln()).sum::<f64>() / n;
                // bounds below 0 leave values that have no logarithm
                if loc.is_finite() {
                    Prior::LogNormal { loc, scale: 1.0 }
                } else {
                    Prior::Normal { loc: param.value().iter().sum::<f64>() / n, scale: 1.0 }
                }
            }
            Transform::Identity | Transform::Below { .. } => {
                Prior::Normal { loc: param.value().iter().sum::<f64>() / n, scale: 1.0 }
            }
            Transform::Interval { .. } => return,
        };
        param.prior = Some(prior);
        assumed.push(path);
    });
    assumed
}

/// The numbers of a model that are sampled.
#[derive(Clone, Debug, Default)]
pub(super) struct Hyperparameters {
    pub coordinates: Vec<Coordinate>,
    /// Their names, and their places among [`crate::model::hyperparameters`].
    pub named: Vec<(String, usize)>,
}

impl Hyperparameters {
    /// Takes all that are neither frozen nor bulky.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there are none, for a parameter without a prior (see [`assume_priors`]), and for a kernel
    /// shared by latent functions that do not move together.
    pub fn new(model: &Model, latents: usize) -> Result<Self> {
        let (mut coordinates, mut named, mut at, mut offset) = (Vec::new(), Vec::new(), 0, 0);
        let (mut refused, mut all) = (None, 0);
        model.visit_parts(&mut |part, path, param| {
            let (path, index, start, first) = (path.to_string(), at, offset, all);
            at += 1;
            all += param.len();
            offset += if param.role().is_bulky() { 0 } else { param.len() };
            if !is_sampled(param) || refused.is_some() {
                return;
            }
            let bounded = matches!(param.natural(), Transform::Interval { .. });
            if param.prior.is_none() && !bounded {
                refused = Some(path.clone());
            }
            for entry in param.free_places() {
                let block = match part {
                    Part::Likelihood => Block::Likelihood,
                    // those of one output after those of another
                    Part::Mean => Block::Mean(entry * latents / param.len()),
                    Part::Kernel(kernel) => Block::Kernel(kernel),
                    // what is bulky is not sampled, and models with hidden layers are not
                    Part::Layer(_) | Part::Inducing(_) | Part::Q => Block::Kernel(0),
                };
                let (transform, prior) = (param.transform(), param.prior);
                let place = first + entry;
                coordinates.push(Coordinate {
                    block,
                    param: index,
                    entry,
                    place,
                    transform,
                    prior,
                });
                let one = param.len() == 1;
                let name = if one { path.clone() } else { format!("{path}[{entry}]") };
                named.push((name, start + entry));
            }
        });
        let invalid = |text: String| Err(Error::Invalid(text));
        if let Some(path) = refused {
            return invalid(format!(
                "`{path}` has no prior, and hyperparameters are to be sampled: give it one, or freeze it"
            ));
        }
        if coordinates.is_empty() {
            return invalid("no hyperparameters to sample: all are frozen".into());
        }
        let shared = model.kernels.len() == 1 && latents > 1;
        let turns = model.likelihood.augmented().map_or(1, |a| a.turns());
        if shared && turns > 1 && coordinates.iter().any(|c| matches!(c.block, Block::Kernel(_))) {
            return invalid(format!(
                "latent functions of `{}` that share a kernel cannot have its parameters sampled: give each its \
                 own kernel, as in `rbf; rbf`, or freeze it",
                model.likelihood.name()
            ));
        }
        Ok(Self { coordinates, named })
    }
}

/// Makes one update of a number by slice sampling. `at` sets the value and returns the log density
/// of what moves, prior and Jacobian included; it is left where the new value is. `now` are the
/// present value and its log density.
pub(super) fn update(
    coordinate: Coordinate,
    now: (f64, f64),
    rng: &mut impl Rng,
    mut at: impl FnMut(f64) -> Result<f64>,
) -> Result<()> {
    // parameters under which matrices cannot be factorised have no density
    let mut density = |free: f64| match at(coordinate.to_value(free)) {
        Ok(value) if value.is_nan() => Ok(f64::NEG_INFINITY),
        Err(error) if error.is_recoverable() => Ok(f64::NEG_INFINITY),
        other => other,
    };
    let start = coordinate.to_free(now.0);
    let exponential: f64 = Exp1.sample(rng);
    let level = now.1 - exponential;
    let mut left = start - WIDTH * uniform(rng);
    let mut right = left + WIDTH;
    let mut steps = below(rng, WIDEST);
    let mut others = WIDEST - 1 - steps;
    while steps > 0 && density(left)? > level {
        left -= WIDTH;
        steps -= 1;
    }
    while others > 0 && density(right)? > level {
        right += WIDTH;
        others -= 1;
    }
    for _ in 0..SHRINKAGES {
        let free = left + uniform(rng) * (right - left);
        if density(free)? > level {
            return Ok(());
        }
        if free < start {
            left = free;
        } else {
            right = free;
        }
    }
    at(now.0).map(|_| ())
}

//! Steps in which some of many classes move.

use super::StochasticOptions;
use crate::error::{Error, Result};
use crate::methods::{Keeps, Uncollapsed};
use crate::model::Model;
use crate::rng;

/// Refuses a number of classes for a step where there is no choice among them.
pub(super) fn check(
    model: &Model,
    method: &Uncollapsed,
    options: &StochasticOptions,
    natural: Option<f64>,
) -> Result<()> {
    let Some(count) = options.classes_per_step else { return Ok(()) };
    let refuse = |text: String| Err(Error::Invalid(text));
    let (likelihood, bound) = (&*model.likelihood, method.bound);
    if !bound.augments() || method.keeps != Keeps::Moments || natural.is_none() {
        return refuse(format!(
            "some of the classes at a time are for natural-gradient steps of `svi`; the method is `{}`{}",
            method.name,
            if natural.is_none() { " without them" } else { "" }
        ));
    }
    let latents = likelihood.latents();
    if likelihood.classes().is_none() || latents < 2 || bound.turns(likelihood) > 1 {
        return refuse(format!(
            "some of the classes at a time are for a likelihood with a latent function for each, such as \
             `logistic-softmax`; this is `{}`",
            likelihood.name()
        ));
    }
    if !(1..=latents).contains(&count) {
        return refuse(format!(
            "{count} classes for a step: there are {latents} with a latent function; give between 1 and {latents}"
        ));
    }
    if model.kernels.len() > 1 || model.inducing.len() > 1 {
        return refuse(
            "some of the classes at a time are for latent functions that share their kernel and inducing \
             points: give one kernel, and one set of points"
                .into(),
        );
    }
    Ok(())
}

/// Draws the classes of a step: every choice of so many is as probable, whatever the steps before.
pub(super) fn draw(model: &Model, count: usize, seed: u64, step: usize) -> Vec<bool> {
    let latents = model.likelihood.latents();
    let mut rng = rng::stream(seed, &format!("classes of step {step}"));
    let mut chosen = vec![false; latents];
    rng::permutation(&mut rng, latents, count).into_iter().for_each(|class| chosen[class] = true);
    chosen
}

/// Returns the number of steps in which every class moves once on average.
pub(super) fn round(model: &Model, options: &StochasticOptions) -> usize {
    options.classes_per_step.map_or(1, |count| model.likelihood.latents().div_ceil(count))
}

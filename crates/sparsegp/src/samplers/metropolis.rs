//! Random-walk Metropolis on the whitened variables (Metropolis et al. 1953): the baseline of other samplers.
//!
//! A proposal z′ = z + sε, ε ~ N(0, I), is accepted with probability min(1, π(z′)/π(z)). During burn-in log s moves by
//! Robbins–Monro steps to the acceptance 0.234 that is best in many dimensions (Roberts, Gelman & Gilks 1997).

use super::chains::Length;
use super::density::{self, BatchDensity, DensityDraws};
use super::hmc::{Point, Sampled};
use super::joint::{Joint, LogDensity, Variables};
use super::moves::{Moves, Swept, finite_or_nothing};
use super::resume::{Going, of_others};
use super::setting::{Setting, Target};
use super::whitened::{self, Chain};
use crate::data::InMemory;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::rng::{stream, uniform};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// How to sample.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct MetropolisOptions {
    /// Chains, each from its own start.
    pub chains: usize,
    /// Proposals of every chain that are dropped.
    pub burn_in: usize,
    /// Draws that are kept of every chain.
    pub draws: usize,
    /// Proposals for every draw that is kept.
    pub thin: usize,
    /// Seed.
    pub seed: u64,
    /// s; none to find it during burn-in.
    pub step: Option<f64>,
}

impl Default for MetropolisOptions {
    fn default() -> Self {
        Self { chains: 4, burn_in: 2000, draws: 500, thin: 1, seed: 0, step: None }
    }
}

/// Acceptance that s is sought for.
const WANTED: f64 = 0.234;

/// One chain.
#[derive(Debug)]
pub(super) struct RandomWalk {
    rng: ChaCha8Rng,
    position: Vec<f64>,
    proposal: Vec<f64>,
    value: f64,
    step: f64,
    adapts: bool,
    burn_in: usize,
    sweeps: usize,
}

impl RandomWalk {
    /// Creates a chain from a position with its log density.
    fn new(position: Vec<f64>, value: f64, rng: ChaCha8Rng, options: &MetropolisOptions) -> Self {
        Self {
            rng,
            proposal: position.clone(),
            value,
            // the best one for a normal law (ibid.)
            step: options.step.unwrap_or(2.38 / (position.len() as f64).sqrt()),
            adapts: options.step.is_none(),
            burn_in: options.burn_in,
            sweeps: 0,
            position,
        }
    }
}

/// What a chain needs to continue.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct State {
    /// Position of the generator in its stream.
    word: u128,
    position: Vec<f64>,
    value: f64,
    step: f64,
    sweeps: usize,
}

impl Moves for RandomWalk {
    type State = State;

    const GRADIENTS: bool = false;

    fn begin(&mut self) {
        for (to, from) in self.proposal.iter_mut().zip(&self.position) {
            let normal: f64 = StandardNormal.sample(&mut self.rng);
            *to = from + self.step * normal;
        }
    }

    fn wanted(&mut self) -> (&[f64], &mut [f64]) {
        (&self.proposal, &mut [])
    }

    fn take(&mut self, value: f64) -> Option<Swept> {
        let value = finite_or_nothing(value);
        let rise = value - self.value;
        let acceptance = if rise.is_nan() { 0.0 } else { rise.exp().min(1.0) };
        if uniform(&mut self.rng) < acceptance {
            std::mem::swap(&mut self.position, &mut self.proposal);
            self.value = value;
        }
        if self.sweeps < self.burn_in && self.adapts {
            let rate = 2.0 / ((self.sweeps + 1) as f64).powf(0.6);
            self.step *= (rate * (acceptance - WANTED)).exp();
        }
        self.sweeps += 1;
        Some(Swept { acceptance, evaluations: 1, diverging: false })
    }

    fn position(&self) -> &[f64] {
        &self.position
    }

    fn value(&self) -> f64 {
        self.value
    }

    fn step(&self) -> Option<f64> {
        Some(self.step)
    }

    fn state(&self) -> State {
        State {
            word: self.rng.get_word_pos(),
            position: self.position.clone(),
            value: self.value,
            step: self.step,
            sweeps: self.sweeps,
        }
    }

    fn restore(&mut self, state: State) -> Result<()> {
        if state.position.len() != self.position.len() {
            return Err(of_others());
        }
        self.rng.set_word_pos(state.word);
        (self.position, self.value) = (state.position, state.value);
        (self.step, self.sweeps) = (state.step, state.sweeps);
        Ok(())
    }
}

/// Refuses a step that is not positive.
fn check(options: &MetropolisOptions) -> Result<()> {
    if let Some(step) = options.step.filter(|step| !(*step > 0.0 && step.is_finite())) {
        return Err(Error::Invalid(format!(
            "the step of a random walk must be positive, not {step}"
        )));
    }
    Ok(())
}

/// Runs chains at fixed hyperparameters, in parallel; the draws depend only on the seed. `watch` as
/// for [`gibbs::sample`](super::gibbs::sample).
///
/// # Errors
/// As for [`Setting::new`]; [`Error::Invalid`] for no draws or a step that is not positive.
pub fn sample(
    model: &Model,
    rows: &InMemory,
    options: &MetropolisOptions,
    watch: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<Sampled> {
    sample_from(model, rows, options, Going::default(), watch)
}

/// Samples the same from a state, or with somebody who takes states.
///
/// # Errors
/// As for [`sample`]; [`Error::Invalid`] for a state of other chains; those of the checkpointer.
pub fn sample_from(
    model: &Model,
    rows: &InMemory,
    options: &MetropolisOptions,
    going: Going<'_>,
    watch: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<Sampled> {
    check(options)?;
    let setting = Setting::new(model, rows, Target::Variational)?;
    let &MetropolisOptions { burn_in, draws, thin, .. } = options;
    let length = Length { burn_in, draws, thin };
    whitened::sample(options.chains, length, going, watch, |chain| {
        let mut joint = Joint::new(&setting, Variables::Original)?;
        let mut rng = stream(options.seed, &format!("metropolis/{chain}"));
        let position = joint.start(&mut rng);
        let value = joint.value(&position);
        let density = |joint: &mut Joint<'_>, x: &[f64], _: &mut [f64]| joint.value(x);
        Ok(Chain::new(joint, RandomWalk::new(position, value, rng, options), density, burn_in))
    })
}

/// Samples any density, of whose gradient nothing is asked, in the way of [`hmc::sample_density`](super::hmc::sample_density).
/// Proposals have one scale for all variables.
///
/// # Errors
/// [`Error::NonFinite`] for a log density that is not finite at a start; [`Error::Invalid`] for no draws or a step that is not
/// positive; those of `starts` and of the density.
pub fn sample_density(
    density: &mut dyn BatchDensity,
    starts: Option<&[f64]>,
    options: &MetropolisOptions,
    watch: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<DensityDraws> {
    check(options)?;
    let &MetropolisOptions { burn_in, draws, thin, chains, seed, .. } = options;
    let streams = (0..chains).map(|chain| stream(seed, &format!("metropolis/{chain}"))).collect();
    let draw = density::normals(density.dim());
    let started = density::start::<RandomWalk>(density, starts, streams, &draw)?;
    let walk = |(at, rng): (Point, _)| RandomWalk::new(at.position, at.value, rng, options);
    let chains = started.into_iter().map(walk).collect();
    density::run(density, chains, Length { burn_in, draws, thin }, watch)
}

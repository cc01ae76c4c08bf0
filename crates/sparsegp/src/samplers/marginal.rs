//! Settings of the hyperparameters that stand for their posterior, by chains: what [`super::laplace`] approximates.
//!
//! Paths without U-turns (Hoffman & Gelman 2014) of the evidence times priors, f integrated out, from about its mode; of all
//! draws, evenly spaced ones become the components.

use super::density::{Parallel, Summary};
use super::evidence::{Posterior, moving};
use super::hmc::{HmcOptions, Path, sample_density};
use super::joint::LogDensity;
use super::laplace::{COMPONENTS, Integration};
use crate::data::InMemory;
use crate::error::Result;
use crate::model::{Model, hyperparameters};
use crate::rng::stream;
use rand_distr::{Distribution, StandardNormal};
use std::ops::ControlFlow;

/// Chains, each from a start about the model's hyperparameters.
const CHAINS: usize = 4;
/// Paths of each that are dropped.
const BURN_IN: usize = 250;
/// Draws of each chain.
const DRAWS: usize = 128;
/// All of them.
pub(crate) const ALL: usize = CHAINS * DRAWS;
/// Doublings of a path, at most.
const DEPTH: usize = 7;
/// Spread of the starts about the model's hyperparameters, in logarithms.
const SPREAD: f64 = 0.3;

/// Settings, and how well their chains mixed.
#[derive(Clone, Debug)]
pub struct Chains {
    /// Components, each of which counts once.
    pub settings: Integration,
    /// What all draws say of every hyperparameter, in the order and on the scale in which they move (logarithms).
    pub summaries: Vec<Summary>,
    /// Draws whose paths diverged.
    pub divergences: usize,
    /// Whether `watch` ended them early.
    pub stopped: bool,
}

/// Samples settings of the hyperparameters from their posterior under the priors of the model, and of those that
/// [`assume_priors`](super::slice::assume_priors) gives; chains start about the model's. None where all hyperparameters are frozen. `watch` gets
/// the number of sweeps that are done and that of all, and may end the chains.
///
/// # Errors
/// [`Error::Invalid`](crate::Error::Invalid) where the evidence is neither known in closed form nor bounded by sites of all rows; [`Error::NonFinite`](crate::Error::NonFinite) where it is not
/// finite at the model's hyperparameters.
pub fn sample(
    model: &Model,
    rows: &InMemory,
    seed: u64,
    watch: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<Option<Chains>> {
    let Some((model, sampled)) = moving(model, rows)? else { return Ok(None) };
    let mut density = Posterior::new(&model, rows, &sampled)?;
    let mode = density.position();
    let mut rng = stream(seed, "settings/starts");
    let mut starts = Vec::new();
    for _ in 0..CHAINS {
        let beside = |v: &f64, rng: &mut _| {
            let z: f64 = StandardNormal.sample(rng);
            v + SPREAD * z
        };
        let start: Vec<f64> = mode.iter().map(|v| beside(v, &mut rng)).collect();
        let mut slopes = vec![0.0; start.len()];
        let known = density.evaluate(&start, &mut slopes).is_finite();
        let known = known && slopes.iter().all(|slope| slope.is_finite());
        starts.extend(if known { start } else { mode.clone() });
    }
    let options = HmcOptions {
        chains: CHAINS,
        burn_in: BURN_IN,
        draws: DRAWS,
        seed,
        path: Path::NoUTurn { depth: DEPTH },
        ..HmcOptions::default()
    };
    let mut stopped = false;
    let mut progress = |done: usize, total: usize| {
        let flow = watch(done, total);
        stopped |= flow.is_break();
        flow
    };
    let mut all = Parallel::new(&density, CHAINS);
    let drawn = sample_density(&mut all, Some(&starts), &options, &mut progress)?;
    let summaries = drawn.summaries();
    let least = summaries.iter().map(|own| own.ess_bulk).fold(f64::INFINITY, f64::min);
    let dim = drawn.dim;
    let mut settings = Integration::default();
    for chain in &drawn.positions {
        let count = chain.len() / dim;
        let each = COMPONENTS / CHAINS;
        for k in 0..each.min(count) {
            let at = (2 * k + 1) * count / (2 * each.min(count));
            // finds sites too, where there are any
            density.at(&chain[at * dim..(at + 1) * dim], None)?;
            settings.hyperparameters.push(hyperparameters(&density.model));
            settings.times.push(1);
            settings.sites.extend(density.model.q.clone());
        }
    }
    settings.effective = (least / (CHAINS * drawn.draws()) as f64).min(1.0);
    Ok(Some(Chains { settings, divergences: drawn.divergences(), summaries, stopped }))
}

impl Chains {
    /// Returns the largest R̂ of a hyperparameter.
    pub fn rhat(&self) -> f64 {
        self.summaries.iter().map(|own| own.rhat).fold(0.0, f64::max)
    }
}

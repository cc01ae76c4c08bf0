//! Random-walk Metropolis on the whitened variables (Metropolis et al. 1953): the baseline of other samplers.
//!
//! A proposal z′ = z + sε, ε ~ N(0, I), is accepted with probability min(1, π(z′)/π(z)). During burn-in log s moves by
//! Robbins–Monro steps to the acceptance 0.234 that is best in many dimensions (Roberts, Gelman & Gilks 1997).

use super::chains::{Draws, Length, Runs, run};
use super::hmc::Sampled;
use super::joint::{Joint, LogDensity, Variables};
use super::setting::{Setting, Target};
use crate::data::InMemory;
use crate::error::{Error, Result};
use crate::linalg::Mat;
use crate::model::Model;
use crate::rng::{stream, uniform};
use rand_distr::{Distribution, StandardNormal};
use std::ops::ControlFlow;

/// How to sample.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct MetropolisOptions {
    /// Chains, each from a start of its own.
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
struct Chain<'a> {
    joint: Joint<'a>,
    rng: rand_chacha::ChaCha8Rng,
    position: Vec<f64>,
    proposal: Vec<f64>,
    value: f64,
    step: f64,
    adapts: bool,
    burn_in: usize,
    f: Mat<f64>,
    z: Mat<f64>,
    /// Sum of probabilities of acceptance after burn-in, and proposals.
    accepted: (f64, f64),
}

impl<'a> Chain<'a> {
    fn new(setting: &'a Setting<'a>, options: &MetropolisOptions, chain: usize) -> Result<Self> {
        let mut joint = Joint::new(setting, Variables::Original)?;
        let mut rng = stream(options.seed, &format!("metropolis/{chain}"));
        let position = joint.start(&mut rng);
        let value = joint.value(&position);
        Ok(Self {
            rng,
            proposal: position.clone(),
            value,
            // the best one for a normal law (ibid.)
            step: options.step.unwrap_or(2.38 / (joint.dim() as f64).sqrt()),
            adapts: options.step.is_none(),
            burn_in: options.burn_in,
            f: joint.latent_values().clone(),
            z: joint.whitened(&position),
            accepted: (0.0, 0.0),
            position,
            joint,
        })
    }
}

impl Runs for Chain<'_> {
    fn sweep(&mut self, sweep: usize) -> Result<()> {
        for (to, from) in self.proposal.iter_mut().zip(&self.position) {
            let normal: f64 = StandardNormal.sample(&mut self.rng);
            *to = from + self.step * normal;
        }
        let value = self.joint.value(&self.proposal);
        let rise = value - self.value;
        let probability = if rise.is_nan() { 0.0 } else { rise.exp().min(1.0) };
        if uniform(&mut self.rng) < probability {
            std::mem::swap(&mut self.position, &mut self.proposal);
            self.value = value;
            self.f.copy_from(self.joint.latent_values());
            self.z = self.joint.whitened(&self.position);
        }
        if sweep >= self.burn_in {
            self.accepted.0 += probability;
            self.accepted.1 += 1.0;
        } else if self.adapts {
            let rate = 2.0 / ((sweep + 1) as f64).powf(0.6);
            self.step *= (rate * (probability - WANTED)).exp();
        }
        Ok(())
    }

    fn latent_values(&self) -> &Mat<f64> {
        &self.f
    }

    fn whitened(&self) -> &Mat<f64> {
        &self.z
    }
}

/// Runs chains at fixed hyperparameters, in parallel; the draws depend on the seed alone. `watch` as for
/// [`gibbs::sample`](super::gibbs::sample).
///
/// # Errors
/// As for [`Setting::new`]; [`Error::Invalid`] for no draws or a step that is not positive.
pub fn sample(
    model: &Model,
    rows: &InMemory,
    options: &MetropolisOptions,
    watch: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<Sampled> {
    if let Some(step) = options.step.filter(|step| !(*step > 0.0 && step.is_finite())) {
        return Err(Error::Invalid(format!(
            "the step of a random walk must be positive, not {step}"
        )));
    }
    let setting = Setting::new(model, rows, Target::Variational)?;
    let chains = (0..options.chains)
        .map(|chain| Chain::new(&setting, options, chain))
        .collect::<Result<Vec<_>>>()?;
    let &MetropolisOptions { burn_in, draws, thin, .. } = options;
    let (draws, chains): (Draws, _) = run(chains, Length { burn_in, draws, thin }, watch)?;
    Ok(Sampled::new(draws, chains.iter().map(|c| (c.accepted.0 / c.accepted.1, c.step))))
}

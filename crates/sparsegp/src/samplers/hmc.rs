//! Hamiltonian Monte Carlo (Duane et al. 1987; Neal 2011) with a diagonal mass, on paths of a fixed number of leapfrog
//! steps or on paths that end where they turn back.
//!
//! With momenta p ~ N(0, M) and H = −log π(x) + ½ pᵀM⁻¹p a leapfrog step of size ε is
//!
//! ```text
//! p ← p + ½ε ∇log π(x)      x ← x + ε M⁻¹p      p ← p + ½ε ∇log π(x)
//! ```
//! It is reversible, keeps volumes, and changes H by O(ε³); the end of a path of fixed length is accepted with probability
//! min(1, e^{−ΔH}). Paths without U-turns (Hoffman & Gelman 2014) give a draw among all of their points instead.

use super::adaptation::Adaptation;
use super::chains::{Draws, Length, Runs, run};
use super::joint::{Joint, LogDensity, Variables};
use super::nuts;
use super::setting::{Setting, Target};
use crate::data::InMemory;
use crate::error::{Error, Result};
use crate::linalg::Mat;
use crate::model::Model;
use crate::rng::{stream, uniform};
use rand_distr::{Distribution, StandardNormal};
use std::ops::ControlFlow;

/// How far a path goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Path {
    /// So many leapfrog steps.
    Steps(usize),
    /// Until it turns back, or after 2^depth steps.
    NoUTurn {
        /// Doublings, at most.
        depth: usize,
    },
}

impl Path {
    /// The number that says how far, which must not be 0.
    fn length(self) -> usize {
        match self {
            Path::Steps(length) | Path::NoUTurn { depth: length } => length,
        }
    }
}

/// How to sample.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct HmcOptions {
    /// Chains, each from a start of its own.
    pub chains: usize,
    /// Paths of every chain that are dropped.
    pub burn_in: usize,
    /// Draws that are kept of every chain.
    pub draws: usize,
    /// Paths for every draw that is kept.
    pub thin: usize,
    /// Seed.
    pub seed: u64,
    /// The variables that move.
    pub variables: Variables,
    /// How far a path goes.
    pub path: Path,
    /// ε with a mass of 1; none to find ε and masses during burn-in.
    pub step: Option<f64>,
    /// The mean acceptance that ε is sought for.
    pub acceptance: f64,
}

impl Default for HmcOptions {
    fn default() -> Self {
        Self {
            chains: 4,
            burn_in: 500,
            draws: 500,
            thin: 1,
            seed: 0,
            variables: Variables::Original,
            path: Path::Steps(10),
            step: None,
            acceptance: 0.8,
        }
    }
}

/// Draws of gradient-based and random-walk samplers.
#[derive(Clone, Debug, Default)]
pub struct Sampled {
    /// What the chains gave.
    pub draws: Draws,
    /// Mean probability of acceptance after burn-in (of the points of a path, where the draw is one of them).
    pub acceptance: f64,
    /// Mean over chains of the step that was used after burn-in.
    pub step: f64,
}

impl Sampled {
    /// From every chain's acceptance and step.
    pub(super) fn new(draws: Draws, chains: impl Iterator<Item = (f64, f64)>) -> Self {
        let (mut acceptance, mut step, mut count) = (0.0, 0.0, 0.0);
        for (own, its) in chains {
            acceptance += own;
            step += its;
            count += 1.0;
        }
        Self { draws, acceptance: acceptance / count, step: step / count }
    }
}

/// A position with the log density and its gradient there.
#[derive(Clone, Debug)]
pub struct Point {
    /// x.
    pub position: Vec<f64>,
    /// log π(x).
    pub value: f64,
    /// ∇log π(x).
    pub gradient: Vec<f64>,
}

impl Point {
    /// At a position.
    pub fn new(density: &mut impl LogDensity, position: Vec<f64>) -> Self {
        let mut gradient = vec![0.0; position.len()];
        let value = density.evaluate(&position, &mut gradient);
        Self { position, value, gradient }
    }

    /// The energy H with these momenta.
    pub fn energy(&self, momentum: &[f64], inverse_mass: &[f64]) -> f64 {
        let kinetic: f64 = momentum.iter().zip(inverse_mass).map(|(p, m)| p * p * m).sum();
        0.5 * kinetic - self.value
    }

    /// So many leapfrog steps. `inverse_mass` is the diagonal of M⁻¹.
    pub fn leapfrog(
        &mut self,
        density: &mut impl LogDensity,
        momentum: &mut [f64],
        inverse_mass: &[f64],
        step: f64,
        count: usize,
    ) {
        for _ in 0..count {
            self.push(momentum, 0.5 * step);
            for ((x, p), m) in self.position.iter_mut().zip(&*momentum).zip(inverse_mass) {
                *x += step * m * p;
            }
            self.value = density.evaluate(&self.position, &mut self.gradient);
            self.push(momentum, 0.5 * step);
        }
    }

    fn push(&self, momentum: &mut [f64], step: f64) {
        momentum.iter_mut().zip(&self.gradient).for_each(|(p, g)| *p += step * g);
    }
}

/// One chain.
struct Chain<'a> {
    joint: Joint<'a>,
    rng: rand_chacha::ChaCha8Rng,
    point: Point,
    /// Where the path ends.
    end: Point,
    momentum: Vec<f64>,
    inverse_mass: Vec<f64>,
    step: f64,
    path: Path,
    adaptation: Option<Adaptation>,
    burn_in: usize,
    f: Mat<f64>,
    z: Mat<f64>,
    /// Sum of probabilities of acceptance after burn-in, and paths.
    accepted: (f64, f64),
}

impl<'a> Chain<'a> {
    fn new(setting: &'a Setting<'a>, options: &HmcOptions, chain: usize) -> Result<Self> {
        let mut joint = Joint::new(setting, options.variables)?;
        let mut rng = stream(options.seed, &format!("hmc/{chain}"));
        let position = joint.start(&mut rng);
        let point = Point::new(&mut joint, position);
        let (n, burn_in) = (joint.dim(), options.burn_in);
        // leapfrog errors add up over the dimensions
        let step = options.step.unwrap_or(0.5 * (n as f64).powf(-0.25));
        let adapts = options.step.is_none() && burn_in > 0;
        Ok(Self {
            rng,
            end: point.clone(),
            momentum: vec![0.0; n],
            inverse_mass: vec![1.0; n],
            step,
            path: options.path,
            adaptation: adapts.then(|| Adaptation::new(burn_in, n, step, options.acceptance)),
            burn_in,
            f: joint.latent_values().clone(),
            z: joint.whitened(&point.position),
            accepted: (0.0, 0.0),
            point,
            joint,
        })
    }
}

impl Chain<'_> {
    /// Goes to the end of a path of so many steps, if that is accepted. Returns the probability of that.
    fn go_to_the_end(&mut self, count: usize) -> f64 {
        let before = self.point.energy(&self.momentum, &self.inverse_mass);
        self.end.clone_from(&self.point);
        let (momentum, mass) = (&mut self.momentum, &self.inverse_mass);
        self.end.leapfrog(&mut self.joint, momentum, mass, self.step, count);
        let rise = self.end.energy(&self.momentum, &self.inverse_mass) - before;
        // a path that left the numbers is never accepted
        let probability = if rise.is_nan() { 0.0 } else { (-rise).exp().min(1.0) };
        if uniform(&mut self.rng) < probability {
            std::mem::swap(&mut self.point, &mut self.end);
        }
        probability
    }
}

impl Runs for Chain<'_> {
    fn sweep(&mut self, sweep: usize) -> Result<()> {
        for (p, inverse) in self.momentum.iter_mut().zip(&self.inverse_mass) {
            let normal: f64 = StandardNormal.sample(&mut self.rng);
            *p = normal / inverse.sqrt();
        }
        let probability = match self.path {
            Path::Steps(count) => self.go_to_the_end(count),
            Path::NoUTurn { depth } => {
                let (joint, point) = (&mut self.joint, &mut self.point);
                let metric = (&self.inverse_mass[..], self.step);
                nuts::transition(joint, point, &self.momentum, metric, depth, &mut self.rng)
            }
        };
        self.f.copy_from(self.joint.latent_values_at(&self.point.position));
        self.z = self.joint.whitened(&self.point.position);
        if sweep >= self.burn_in {
            self.accepted.0 += probability;
            self.accepted.1 += 1.0;
        } else if let Some(adaptation) = &mut self.adaptation {
            let (step, mass) = (&mut self.step, &mut self.inverse_mass);
            adaptation.update(sweep, probability, &self.point.position, step, mass);
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
/// As for [`Setting::new`] and [`Joint::new`]; [`Error::Invalid`] for no draws or numbers out of range.
pub fn sample(
    model: &Model,
    rows: &InMemory,
    options: &HmcOptions,
    watch: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<Sampled> {
    let positive = options.step.is_none_or(|step| step > 0.0 && step.is_finite());
    let inside = options.acceptance > 0.0 && options.acceptance < 1.0;
    if !positive || !inside || options.path.length() == 0 {
        return Err(Error::Invalid(format!(
            "Hamiltonian paths need at least one step, of positive size, and an acceptance between 0 and 1; \
             not {:?} of {:?} with {}",
            options.path, options.step, options.acceptance
        )));
    }
    let setting = Setting::new(model, rows, Target::Variational)?;
    let chains = (0..options.chains)
        .map(|chain| Chain::new(&setting, options, chain))
        .collect::<Result<Vec<_>>>()?;
    let &HmcOptions { burn_in, draws, thin, .. } = options;
    let (draws, chains) = run(chains, Length { burn_in, draws, thin }, watch)?;
    Ok(Sampled::new(draws, chains.iter().map(|c| (c.accepted.0 / c.accepted.1, c.step))))
}

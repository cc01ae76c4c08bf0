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
use super::chains::{Draws, Length};
use super::density::{self, BatchDensity, DensityDraws};
use super::joint::{Joint, LogDensity, Variables};
use super::moves::{Moves, Swept, Tally, finite_or_nothing};
use super::nuts::Trajectory;
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

/// A rise of H that the integrator cannot have made honestly.
pub(super) const DIVERGENT: f64 = 1000.0;

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
    /// Returns the number that says how far, which must not be 0.
    fn length(self) -> usize {
        match self {
            Path::Steps(length) | Path::NoUTurn { depth: length } => length,
        }
    }
}

/// How to sample.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct HmcOptions {
    /// Chains, each from its own start.
    pub chains: usize,
    /// Paths of every chain that are dropped.
    pub burn_in: usize,
    /// Draws that are kept of every chain.
    pub draws: usize,
    /// Paths for every draw that is kept.
    pub thin: usize,
    /// Seed.
    pub seed: u64,
    /// The variables of a model that move; a density of the caller has those that it has.
    pub variables: Variables,
    /// How far a path goes.
    pub path: Path,
    /// ε with a mass of 1; none to find ε and masses during burn-in.
    pub step: Option<f64>,
    /// The mean acceptance that ε is sought for.
    pub acceptance: f64,
    /// Each path of fixed length has steps of a size uniform on ε(1 ± jitter): paths of one length in a density close to a
    /// normal one come back to where they were, or to the other side of it, and hardly mix (Mackenzie 1989). From 0 to 1.
    #[serde(default)]
    pub jitter: f64,
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
            jitter: 0.0,
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
    /// Mean over chains of the step that was used after burn-in; NaN for samplers without one.
    pub step: f64,
    /// Paths after burn-in, of all chains, on which the integrator lost the energy (H rose by more than 1000, or to no
    /// number): where there are any, draws may miss regions of large curvature. Of paths of fixed length the end counts.
    pub divergences: usize,
}

impl Sampled {
    /// Creates it from what every chain did, and its step.
    pub(super) fn new(draws: Draws, chains: impl Iterator<Item = (Tally, f64)>) -> Self {
        let (mut acceptance, mut step, mut count, mut divergences) = (0.0, 0.0, 0.0, 0);
        for (own, its) in chains {
            acceptance += own.acceptance();
            divergences += own.divergences;
            step += its;
            count += 1.0;
        }
        Self { draws, acceptance: acceptance / count, step: step / count, divergences }
    }
}

/// A position with the log density and its gradient there.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Point {
    /// x.
    pub position: Vec<f64>,
    /// log π(x).
    pub value: f64,
    /// ∇log π(x).
    pub gradient: Vec<f64>,
}

impl Point {
    /// Creates the point at a position.
    pub fn new(density: &mut impl LogDensity, position: Vec<f64>) -> Self {
        let mut gradient = vec![0.0; position.len()];
        let value = density.evaluate(&position, &mut gradient);
        Self { position, value, gradient }
    }

    /// Returns the energy H with these momenta.
    pub fn energy(&self, momentum: &[f64], inverse_mass: &[f64]) -> f64 {
        let kinetic: f64 = momentum.iter().zip(inverse_mass).map(|(p, m)| p * p * m).sum();
        0.5 * kinetic - self.value
    }

    /// Makes so many leapfrog steps. `inverse_mass` is the diagonal of M⁻¹.
    pub fn leapfrog(
        &mut self,
        density: &mut impl LogDensity,
        momentum: &mut [f64],
        inverse_mass: &[f64],
        step: f64,
        count: usize,
    ) {
        for _ in 0..count {
            self.leave(momentum, inverse_mass, step);
            let value = density.evaluate(&self.position, &mut self.gradient);
            self.arrive(value, momentum, step);
        }
    }

    /// Makes a leapfrog step up to the new position, whose gradient is wanted then.
    pub(super) fn leave(&mut self, momentum: &mut [f64], inverse_mass: &[f64], step: f64) {
        self.push(momentum, 0.5 * step);
        for ((x, p), m) in self.position.iter_mut().zip(&*momentum).zip(inverse_mass) {
            *x += step * m * p;
        }
    }

    /// Does the rest of it, with the log density and the gradient of the new position.
    pub(super) fn arrive(&mut self, value: f64, momentum: &mut [f64], step: f64) {
        self.value = value;
        self.push(momentum, 0.5 * step);
    }

    fn push(&self, momentum: &mut [f64], step: f64) {
        momentum.iter_mut().zip(&self.gradient).for_each(|(p, g)| *p += step * g);
    }
}

/// One chain.
#[derive(Debug)]
pub(super) struct Hamiltonian {
    rng: ChaCha8Rng,
    point: Point,
    /// Where a path of fixed length has come to, the steps that are left, and H at its start.
    end: Point,
    left: usize,
    before: f64,
    /// A path without U-turns.
    trajectory: Option<Trajectory>,
    momentum: Vec<f64>,
    inverse_mass: Vec<f64>,
    step: f64,
    /// Of the present path of fixed length.
    own_step: f64,
    jitter: f64,
    path: Path,
    adaptation: Option<Adaptation>,
    burn_in: usize,
    sweeps: usize,
}

impl Hamiltonian {
    /// Creates a chain from a point.
    pub(super) fn new(point: Point, rng: ChaCha8Rng, options: &HmcOptions) -> Self {
        let (n, burn_in) = (point.position.len(), options.burn_in);
        // leapfrog errors add up over the dimensions
        let step = options.step.unwrap_or(0.5 * (n as f64).powf(-0.25));
        let adapts = options.step.is_none() && burn_in > 0;
        Self {
            rng,
            end: point.clone(),
            left: 0,
            before: 0.0,
            trajectory: None,
            point,
            momentum: vec![0.0; n],
            inverse_mass: vec![1.0; n],
            step,
            own_step: step,
            jitter: options.jitter,
            path: options.path,
            adaptation: adapts.then(|| Adaptation::new(burn_in, n, step, options.acceptance)),
            burn_in,
            sweeps: 0,
        }
    }

    /// Goes to the end of the path, if that is accepted.
    fn end(&mut self, count: usize) -> Swept {
        let rise = self.end.energy(&self.momentum, &self.inverse_mass) - self.before;
        // a path that left the numbers is never accepted
        let acceptance = if rise.is_nan() { 0.0 } else { (-rise).exp().min(1.0) };
        if uniform(&mut self.rng) < acceptance {
            std::mem::swap(&mut self.point, &mut self.end);
        }
        Swept { acceptance, evaluations: count, diverging: rise.is_nan() || rise > DIVERGENT }
    }
}

/// What a chain needs to continue: every sweep makes a new path.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct State {
    /// Position of the generator in its stream.
    word: u128,
    point: Point,
    inverse_mass: Vec<f64>,
    step: f64,
    adaptation: Option<Adaptation>,
    sweeps: usize,
}

impl Moves for Hamiltonian {
    type State = State;

    const GRADIENTS: bool = true;

    fn begin(&mut self) {
        for (p, inverse) in self.momentum.iter_mut().zip(&self.inverse_mass) {
            let normal: f64 = StandardNormal.sample(&mut self.rng);
            *p = normal / inverse.sqrt();
        }
        match self.path {
            Path::Steps(count) => {
                self.before = self.point.energy(&self.momentum, &self.inverse_mass);
                self.end.clone_from(&self.point);
                self.left = count;
                self.own_step = self.step;
                if self.jitter > 0.0 {
                    self.own_step *= 1.0 + self.jitter * (2.0 * uniform(&mut self.rng) - 1.0);
                }
                self.end.leave(&mut self.momentum, &self.inverse_mass, self.own_step);
            }
            Path::NoUTurn { depth } => {
                let (point, momentum, rng) = (&self.point, &self.momentum, &mut self.rng);
                let metric = (&self.inverse_mass[..], self.step);
                self.trajectory = Some(Trajectory::begin(point, momentum, metric, depth, rng));
            }
        }
    }

    fn wanted(&mut self) -> (&[f64], &mut [f64]) {
        if let Some(trajectory) = &mut self.trajectory {
            return trajectory.wanted();
        }
        (&self.end.position, &mut self.end.gradient)
    }

    fn take(&mut self, value: f64) -> Option<Swept> {
        let value = finite_or_nothing(value);
        let swept = match (self.path, &mut self.trajectory) {
            (_, Some(path)) => {
                let (point, rng) = (&mut self.point, &mut self.rng);
                let ended = path.take(value, point, &self.inverse_mass, rng)?;
                let (acceptance, evaluations) = (ended.acceptance, ended.points);
                Swept { acceptance, evaluations, diverging: ended.diverging }
            }
            (Path::Steps(count), None) | (Path::NoUTurn { depth: count }, None) => {
                self.end.arrive(value, &mut self.momentum, self.own_step);
                self.left -= 1;
                if self.left > 0 {
                    self.end.leave(&mut self.momentum, &self.inverse_mass, self.own_step);
                    return None;
                }
                self.end(count)
            }
        };
        let (at, burn_in) = (self.sweeps, self.burn_in);
        if let Some(adaptation) = self.adaptation.as_mut().filter(|_| at < burn_in) {
            let (step, mass) = (&mut self.step, &mut self.inverse_mass);
            adaptation.update(at, swept.acceptance, &self.point.position, step, mass);
        }
        self.sweeps += 1;
        Some(swept)
    }

    fn position(&self) -> &[f64] {
        &self.point.position
    }

    fn value(&self) -> f64 {
        self.point.value
    }

    fn step(&self) -> Option<f64> {
        Some(self.step)
    }

    fn state(&self) -> State {
        State {
            word: self.rng.get_word_pos(),
            point: self.point.clone(),
            inverse_mass: self.inverse_mass.clone(),
            step: self.step,
            adaptation: self.adaptation.clone(),
            sweeps: self.sweeps,
        }
    }

    fn restore(&mut self, state: State) -> Result<()> {
        let n = self.point.position.len();
        let own = [&state.point.position, &state.point.gradient, &state.inverse_mass];
        let adapts = state.adaptation.as_ref();
        if own.iter().any(|numbers| numbers.len() != n)
            || adapts.is_some() != self.adaptation.is_some()
            || adapts.is_some_and(|adaptation| !adaptation.is_of(n))
        {
            return Err(of_others());
        }
        self.rng.set_word_pos(state.word);
        self.end.clone_from(&state.point);
        (self.point, self.inverse_mass) = (state.point, state.inverse_mass);
        (self.step, self.adaptation, self.sweeps) = (state.step, state.adaptation, state.sweeps);
        Ok(())
    }
}

/// Refuses numbers out of range.
pub(super) fn check(options: &HmcOptions) -> Result<()> {
    let positive = options.step.is_none_or(|step| step > 0.0 && step.is_finite());
    let inside = options.acceptance > 0.0 && options.acceptance < 1.0;
    if !positive || !inside || options.path.length() == 0 {
        return Err(Error::Invalid(format!(
            "Hamiltonian paths need at least one step, of positive size, and an acceptance between 0 and 1; \
             not {:?} of {:?} with {}",
            options.path, options.step, options.acceptance
        )));
    }
    if !(0.0..1.0).contains(&options.jitter) {
        return Err(Error::Invalid(format!(
            "the jitter of Hamiltonian steps must be from 0 to below 1, not {}",
            options.jitter
        )));
    }
    Ok(())
}

/// Runs chains at fixed hyperparameters, in parallel; the draws depend only on the seed. `watch` as
/// for [`gibbs::sample`](super::gibbs::sample).
///
/// # Errors
/// As for [`Setting::new`] and [`Joint::new`]; [`Error::Invalid`] for no draws or numbers out of range.
pub fn sample(
    model: &Model,
    rows: &InMemory,
    options: &HmcOptions,
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
    options: &HmcOptions,
    going: Going<'_>,
    watch: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<Sampled> {
    check(options)?;
    let setting = Setting::new(model, rows, Target::Variational)?;
    let &HmcOptions { burn_in, draws, thin, .. } = options;
    whitened::sample(options.chains, Length { burn_in, draws, thin }, going, watch, |chain| {
        let mut joint = Joint::new(&setting, options.variables)?;
        let mut rng = stream(options.seed, &format!("hmc/{chain}"));
        let position = joint.start(&mut rng);
        let point = Point::new(&mut joint, position);
        let density =
            |joint: &mut Joint<'_>, x: &[f64], gradient: &mut [f64]| joint.evaluate(x, gradient);
        Ok(Chain::new(joint, Hamiltonian::new(point, rng, options), density, burn_in))
    })
}

/// Samples any density with a gradient. Chains start at `starts` (D numbers for all chains, or D for each, one
/// after the other), or at draws of N(0, I). They advance together, one position of every chain at
/// a time; the draws depend only on the seed and the density. A log density that is not finite
/// counts as −∞ after the start. `watch` receives how many sweeps every chain has made and of how
/// many, and may end the sampling, with the draws made so far.
///
/// # Errors
/// [`Error::NonFinite`] for a log density or gradient that is not finite at a start; [`Error::Invalid`] for no draws or
/// numbers out of range; those of `starts` and of the density.
///
/// # Examples
/// A normal law with mean 3 and standard deviation 0.02:
///
/// ```
/// use sparsegp::samplers::density::Parallel;
/// use sparsegp::samplers::hmc::{HmcOptions, Path, sample_density};
/// use sparsegp::samplers::joint::LogDensity;
/// use std::ops::ControlFlow;
///
/// #[derive(Clone)]
/// struct Normal;
///
/// impl LogDensity for Normal {
///     fn dim(&self) -> usize {
///         1
///     }
///     fn value(&mut self, x: &[f64]) -> f64 {
///         -0.5 * ((x[0] - 3.0) / 0.02).powi(2)
///     }
///     fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> f64 {
///         gradient[0] = -(x[0] - 3.0) / 0.02_f64.powi(2);
///         self.value(x)
///     }
/// }
///
/// let options = HmcOptions { path: Path::NoUTurn { depth: 10 }, ..HmcOptions::default() };
/// let mut density = Parallel::new(&Normal, options.chains);
/// let mut watch = |_, _| ControlFlow::Continue(());
/// let draws = sample_density(&mut density, Some(&[3.1]), &options, &mut watch)?;
/// let summary = &draws.summaries()[0];
/// assert!((summary.mean - 3.0).abs() < 5.0 * summary.error && summary.error < 1e-3);
/// assert!(summary.rhat < 1.01 && draws.divergences() == 0);
/// # Ok::<(), sparsegp::Error>(())
/// ```
pub fn sample_density(
    density: &mut dyn BatchDensity,
    starts: Option<&[f64]>,
    options: &HmcOptions,
    watch: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<DensityDraws> {
    check(options)?;
    let &HmcOptions { burn_in, draws, thin, chains, seed, .. } = options;
    let streams = (0..chains).map(|chain| stream(seed, &format!("hmc/{chain}"))).collect();
    let draw = density::normals(density.dim());
    let started = density::start::<Hamiltonian>(density, starts, streams, &draw)?;
    let chains = started.into_iter().map(|(at, rng)| Hamiltonian::new(at, rng, options)).collect();
    density::run(density, chains, Length { burn_in, draws, thin }, watch)
}

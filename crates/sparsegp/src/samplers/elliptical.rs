//! Elliptical slice sampling (Murray, Adams & MacKay 2010, Fig. 2) of x under π(x) ∝ N(x; m, LLᵀ) L(x).
//!
//! With ν ~ N(0, LLᵀ) the ellipse m + (x − m) cos θ + ν sin θ goes through x at θ = 0, and each of its points has the law of the
//! prior. A level log y = log L(x) − E, E ~ Exp(1), makes a slice; θ is uniform on a circle that shrinks towards 0 until
//! log L exceeds the level. There is no step to choose, and every sweep but one that meets a noisy likelihood moves.

use super::chains::Length;
use super::density::{self, BatchDensity, DensityDraws};
use super::hmc::{Point, Sampled};
use super::joint::{Joint, Variables};
use super::moves::{Moves, Swept, finite_or_nothing};
use super::resume::{Going, of_others};
use super::setting::{Setting, Target};
use super::whitened::{self, Chain};
use crate::data::InMemory;
use crate::error::{Error, Result};
use crate::linalg::Mat;
use crate::model::Model;
use crate::rng::{stream, uniform};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1, StandardNormal};
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;
use std::ops::ControlFlow;
use std::sync::Arc;

/// How to sample.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct EllipticalOptions {
    /// Chains, each from its own start.
    pub chains: usize,
    /// Sweeps of every chain that are dropped.
    pub burn_in: usize,
    /// Draws that are kept of every chain.
    pub draws: usize,
    /// Sweeps for every draw that is kept.
    pub thin: usize,
    /// Seed.
    pub seed: u64,
}

impl Default for EllipticalOptions {
    fn default() -> Self {
        Self { chains: 4, burn_in: 500, draws: 500, thin: 1, seed: 0 }
    }
}

/// A slice that has shrunk so often has shrunk to the point where it started: 2π/2²⁰⁰ on average. Only a likelihood that
/// differs from call to call comes to that.
const SHRINKAGES: usize = 200;

/// The Gaussian N(m, LLᵀ) of variables before a likelihood is known.
#[derive(Clone, Debug)]
pub struct GaussianPrior {
    mean: Vec<f64>,
    /// D×D, of which the lower triangle counts; none for the identity.
    factor: Option<Mat<f64>>,
}

impl GaussianPrior {
    /// Returns N(0, I) of D variables.
    pub fn standard(dim: usize) -> Self {
        Self { mean: vec![0.0; dim], factor: None }
    }

    /// Returns N(m, LLᵀ) of a mean (D numbers) and a lower-triangular factor (D×D, what is above the diagonal is not read).
    ///
    /// # Errors
    /// [`Error::Shape`] for a factor that is not D×D, [`Error::NonFinite`] for numbers that are not finite,
    /// [`Error::Invalid`] for a diagonal of the factor that is not positive.
    pub fn new(mean: Vec<f64>, factor: Mat<f64>) -> Result<Self> {
        let n = mean.len();
        if (factor.nrows(), factor.ncols()) != (n, n) {
            return Err(Error::Shape {
                what: "the factor of the prior's covariance".into(),
                expected: format!("{n}×{n}"),
                found: format!("{}×{}", factor.nrows(), factor.ncols()),
            });
        }
        let lower = (0..n).flat_map(|j| factor.col_as_slice(j)[j..].iter());
        if let Some(bad) = mean.iter().chain(lower).find(|v| !v.is_finite()) {
            return Err(Error::NonFinite { what: "a number of the prior".into(), value: *bad });
        }
        if let Some(i) = (0..n).find(|i| factor[(*i, *i)] <= 0.0) {
            return Err(Error::Invalid(format!(
                "the factor of the prior's covariance has {} on its diagonal (place {i}); it must be positive",
                factor[(i, i)]
            )));
        }
        Ok(Self { mean, factor: Some(factor) })
    }

    /// Returns the number of variables, D.
    pub fn dim(&self) -> usize {
        self.mean.len()
    }

    /// Draws from N(0, LLᵀ).
    fn deviation(&self, rng: &mut impl Rng, into: &mut [f64]) {
        into.iter_mut().for_each(|v| *v = StandardNormal.sample(rng));
        let Some(factor) = &self.factor else { return };
        // by columns from the last: what a column adds to is below what is still needed
        for j in (0..into.len()).rev() {
            let (normal, column) = (into[j], factor.col_as_slice(j));
            into[j] = column[j] * normal;
            for (v, l) in into[j + 1..].iter_mut().zip(&column[j + 1..]) {
                *v += l * normal;
            }
        }
    }

    /// Makes a draw.
    fn draw(&self, rng: &mut impl Rng) -> Vec<f64> {
        let mut drawn = vec![0.0; self.dim()];
        self.deviation(rng, &mut drawn);
        drawn.iter_mut().zip(&self.mean).for_each(|(v, m)| *v += m);
        drawn
    }
}

/// One chain.
#[derive(Debug)]
pub(super) struct Elliptical {
    rng: ChaCha8Rng,
    prior: Arc<GaussianPrior>,
    position: Vec<f64>,
    /// log L there.
    value: f64,
    proposal: Vec<f64>,
    /// ν.
    other: Vec<f64>,
    level: f64,
    /// θ, and the ends of what it is drawn from.
    angle: f64,
    bracket: [f64; 2],
    /// Proposals of the sweep.
    proposals: usize,
}

impl Elliptical {
    /// Creates a chain from a position with its log likelihood.
    fn new(position: Vec<f64>, value: f64, rng: ChaCha8Rng, prior: &Arc<GaussianPrior>) -> Self {
        let n = position.len();
        Self {
            rng,
            prior: prior.clone(),
            value,
            proposal: position.clone(),
            other: vec![0.0; n],
            position,
            level: 0.0,
            angle: 0.0,
            bracket: [0.0; 2],
            proposals: 0,
        }
    }

    /// Proposes the point of the ellipse at θ.
    fn propose(&mut self) {
        let (sin, cos) = self.angle.sin_cos();
        let each = self.position.iter().zip(&self.other).zip(&self.prior.mean);
        for (to, ((x, v), m)) in self.proposal.iter_mut().zip(each) {
            *to = m + (x - m) * cos + v * sin;
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
}

impl Moves for Elliptical {
    type State = State;

    const GRADIENTS: bool = false;

    fn begin(&mut self) {
        self.prior.deviation(&mut self.rng, &mut self.other);
        let fall: f64 = Exp1.sample(&mut self.rng);
        self.level = self.value - fall;
        self.angle = TAU * uniform(&mut self.rng);
        self.bracket = [self.angle - TAU, self.angle];
        self.proposals = 0;
        self.propose();
    }

    fn wanted(&mut self) -> (&[f64], &mut [f64]) {
        (&self.proposal, &mut [])
    }

    fn take(&mut self, value: f64) -> Option<Swept> {
        let value = finite_or_nothing(value);
        self.proposals += 1;
        let accepted = value > self.level;
        if accepted {
            std::mem::swap(&mut self.position, &mut self.proposal);
            self.value = value;
        } else if self.proposals < SHRINKAGES {
            self.bracket[usize::from(self.angle >= 0.0)] = self.angle;
            let [low, high] = self.bracket;
            self.angle = low + (high - low) * uniform(&mut self.rng);
            self.propose();
            return None;
        }
        let acceptance = f64::from(u8::from(accepted)) / self.proposals as f64;
        Some(Swept { acceptance, evaluations: self.proposals, diverging: false })
    }

    fn position(&self) -> &[f64] {
        &self.position
    }

    fn value(&self) -> f64 {
        self.value
    }

    fn step(&self) -> Option<f64> {
        None
    }

    fn state(&self) -> State {
        State { word: self.rng.get_word_pos(), position: self.position.clone(), value: self.value }
    }

    fn restore(&mut self, state: State) -> Result<()> {
        if state.position.len() != self.position.len() {
            return Err(of_others());
        }
        self.rng.set_word_pos(state.word);
        (self.position, self.value) = (state.position, state.value);
        Ok(())
    }
}

/// Runs chains of the whitened variables of a model at fixed hyperparameters, in parallel; the
/// draws depend only on the seed. The acceptance is the share of the proposals that were accepted;
/// there is no step. `watch` as for [`gibbs::sample`](super::gibbs::sample).
///
/// # Errors
/// As for [`Setting::new`]; [`Error::Invalid`] for no draws.
pub fn sample(
    model: &Model,
    rows: &InMemory,
    options: &EllipticalOptions,
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
    options: &EllipticalOptions,
    going: Going<'_>,
    watch: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<Sampled> {
    let setting = Setting::new(model, rows, Target::Variational)?;
    let &EllipticalOptions { burn_in, draws, thin, .. } = options;
    whitened::sample(options.chains, Length { burn_in, draws, thin }, going, watch, |chain| {
        let mut joint = Joint::new(&setting, Variables::Original)?;
        let mut rng = stream(options.seed, &format!("elliptical/{chain}"));
        let position = joint.start(&mut rng);
        let value = joint.log_likelihood(&position);
        let prior = Arc::new(GaussianPrior::standard(position.len()));
        let density = |joint: &mut Joint<'_>, z: &[f64], _: &mut [f64]| joint.log_likelihood(z);
        Ok(Chain::new(joint, Elliptical::new(position, value, rng, &prior), density, burn_in))
    })
}

/// Samples variables with a Gaussian prior and any log likelihood (which is what `likelihood` gives as its log density; of its
/// gradient nothing is asked), in the way of [`hmc::sample_density`](super::hmc::sample_density). Without `starts`, chains start
/// at draws of the prior. [`DensityDraws::log_density`] has log likelihoods then.
///
/// # Errors
/// [`Error::NonFinite`] for a log likelihood that is not finite at a start, [`Error::Shape`] for a prior of another number of
/// variables, [`Error::Invalid`] for no draws; those of `starts` and of the likelihood.
///
/// # Examples
/// An observation 1.2 of x ~ N(0, 1) with noise of variance ¼ has the posterior N(0.96, ⅕):
///
/// ```
/// use sparsegp::samplers::density::Values;
/// use sparsegp::samplers::elliptical::{EllipticalOptions, GaussianPrior, sample_density};
/// use std::ops::ControlFlow;
///
/// let mut likelihood = Values::new(1, |x: &[f64]| -0.5 * (1.2 - x[0]).powi(2) / 0.25);
/// let options = EllipticalOptions { draws: 2000, ..EllipticalOptions::default() };
/// let mut watch = |_, _| ControlFlow::Continue(());
/// let prior = GaussianPrior::standard(1);
/// let draws = sample_density(&mut likelihood, &prior, None, &options, &mut watch)?;
/// let summary = &draws.summaries()[0];
/// assert!((summary.mean - 0.96).abs() < 5.0 * summary.error && summary.error < 0.02);
/// # Ok::<(), sparsegp::Error>(())
/// ```
pub fn sample_density(
    likelihood: &mut dyn BatchDensity,
    prior: &GaussianPrior,
    starts: Option<&[f64]>,
    options: &EllipticalOptions,
    watch: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<DensityDraws> {
    if prior.dim() != likelihood.dim() {
        return Err(Error::Shape {
            what: "the prior".into(),
            expected: format!("{} variables, as the likelihood has", likelihood.dim()),
            found: prior.dim().to_string(),
        });
    }
    let prior = Arc::new(prior.clone());
    let &EllipticalOptions { burn_in, draws, thin, chains, seed } = options;
    let streams = (0..chains).map(|chain| stream(seed, &format!("elliptical/{chain}"))).collect();
    let draw = |rng: &mut ChaCha8Rng| prior.draw(rng);
    let started = density::start::<Elliptical>(likelihood, starts, streams, &draw)?;
    let chain = |(at, rng): (Point, _)| Elliptical::new(at.position, at.value, rng, &prior);
    let chains = started.into_iter().map(chain).collect();
    density::run(likelihood, chains, Length { burn_in, draws, thin }, watch)
}

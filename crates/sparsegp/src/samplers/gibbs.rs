//! Blocked Gibbs sampling of likelihoods that local variables make Gaussian (Galy-Fajou 2022, chapters 4, 5
//! and §7.5): the local variables of all rows given the latent values, then the latent functions given the local
//! variables, each as one block.
//!
//! Without inducing points the chain has the exact posterior as its law. With them there are two targets
//! ([`setting::Target`]); the scheme that the thesis prints draws the local variables at an f that ignores y, and has
//! no stated law.

use super::chains::{Draws, Length, Runs, run};
use super::conditional::Conditional;
use super::resume::{Going, Numbers};
use super::setting::{self, Setting};
use super::slice::{self, Block, Coordinate, Hyperparameters};
use crate::data::InMemory;
use crate::error::{Error, Result};
use crate::likelihoods::augmented::{Augmented, Site};
use crate::likelihoods::{self, Target};
use crate::linalg::{Mat, column};
use crate::model::Model;
use crate::model::{hyperparameters, set_hyperparameters};
use crate::rng;
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::ops::ControlFlow;

/// How to sample.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct GibbsOptions {
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
    /// The law, where there are inducing points.
    pub target: setting::Target,
    /// Whether hyperparameters that are not frozen are sampled too ([`mod@slice`]).
    pub hyperparameters: bool,
    /// Particles of a particle flow; none for ten times as many as there are whitened variables, as far as 2000 allow.
    pub particles: Option<usize>,
    /// Seconds between checkpoints, if somebody takes them.
    pub checkpoint_seconds: f64,
}

impl Default for GibbsOptions {
    fn default() -> Self {
        Self {
            chains: 4,
            burn_in: 200,
            draws: 500,
            thin: 1,
            seed: 0,
            target: setting::Target::default(),
            hyperparameters: false,
            particles: None,
            checkpoint_seconds: 60.0,
        }
    }
}

/// Refuses a likelihood without local variables.
///
/// # Errors
/// [`Error::Invalid`] that names those which have some.
pub(super) fn check_augmented(model: &Model) -> Result<()> {
    if model.likelihood.augmented().is_some() {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "`{}` has no local variables to draw; these have: {}",
        model.likelihood.to_json(),
        likelihoods::augmented::names().join(", ")
    )))
}

/// What is observed of a row and a target column, and the variance of a latent value that the law averages over.
pub(super) type Seen<'a> =
    (&'a dyn Fn(usize, usize) -> Option<Target>, &'a dyn Fn(usize, usize) -> f64);

/// Draws the local variables of a turn at latent values f, N×L, of so many latent values of a target and so many targets; sites of
/// missing targets say nothing.
pub(super) fn draw_sites(
    (augmented, turn): (&dyn Augmented, usize),
    (each, outputs): (usize, usize),
    (observed, averaged): Seen<'_>,
    values: &Mat<f64>,
    rng: &mut dyn Rng,
    sites: &mut [Vec<Site>],
) {
    let (mut f, mut variance) = (vec![0.0; each], vec![0.0; each]);
    let mut drawn = vec![Site::default(); each];
    let moves = |k: &usize| augmented.turn(*k) == turn;
    for p in 0..outputs {
        for i in 0..values.nrows() {
            let Some(target) = observed(i, p) else {
                let own = (0..each).filter(moves);
                own.for_each(|k| sites[p * each + k][i] = Site::default());
                continue;
            };
            for k in 0..each {
                f[k] = values[(i, p * each + k)];
                variance[k] = averaged(i, p * each + k);
            }
            augmented.draw(turn, target, &f, &variance, rng, &mut drawn);
            (0..each).filter(moves).for_each(|k| sites[p * each + k][i] = drawn[k]);
        }
    }
}

/// One chain.
#[derive(Debug)]
pub struct Chain {
    pub(super) rng: rand_chacha::ChaCha8Rng,
    /// Latent values where the local variables are drawn, N×L: of f, or of μ + Aᵀz for
    /// [`setting::Target::Variational`].
    pub(super) f: Mat<f64>,
    /// Whitened variables, M×L.
    pub(super) z: Mat<f64>,
    /// N of each latent function.
    sites: Vec<Vec<Site>>,
    conditional: Conditional,
}

impl Chain {
    /// Creates a chain that starts at a draw from the prior.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a likelihood without local variables.
    pub fn new(setting: &Setting<'_>, seed: u64, chain: usize) -> Result<Self> {
        check_augmented(&setting.model)?;
        let mut rng = rng::stream(seed, &format!("gibbs/{chain}"));
        let (n, latents) = (setting.mu.nrows(), setting.latents());
        let mut f = setting.mu.clone();
        let mut z = Mat::zeros(setting.widest(), latents);
        for l in 0..latents {
            let features = setting.features(l);
            let m = features.a.ncols();
            for v in &mut z.col_as_slice_mut(l)[..m] {
                *v = StandardNormal.sample(&mut rng);
            }
            for i in 0..n {
                let prior: f64 = (0..m).map(|j| features.a[(i, j)] * z[(j, l)]).sum();
                f[(i, l)] += prior;
            }
        }
        let sites = vec![vec![Site::default(); n]; latents];
        Ok(Self { rng, f, z, sites, conditional: Conditional::default() })
    }

    /// Returns the latent values, N×L ([`Chain`]'s law is that of them and of [`Chain::whitened`]).
    pub fn latent_values(&self) -> &Mat<f64> {
        &self.f
    }

    /// Returns the whitened variables z, M×L: f(x) = μ(x) + φ(x)ᵀz and what is left unexplained.
    pub fn whitened(&self) -> &Mat<f64> {
        &self.z
    }

    /// Sets the latent values, from which the next sweep starts.
    ///
    /// # Errors
    /// [`Error::Shape`] for another shape.
    pub fn start_at(&mut self, f: &Mat<f64>) -> Result<()> {
        if (f.nrows(), f.ncols()) != (self.f.nrows(), self.f.ncols()) {
            return Err(Error::Shape {
                what: "latent values".into(),
                expected: format!("{}×{}", self.f.nrows(), self.f.ncols()),
                found: format!("{}×{}", f.nrows(), f.ncols()),
            });
        }
        self.f.copy_from(f);
        Ok(())
    }

    /// Makes one sweep: every local variable and every latent function once.
    ///
    /// # Errors
    /// What factorising the precision gives, if sites are not finite.
    pub fn sweep(&mut self, setting: &Setting<'_>) -> Result<()> {
        for turn in 0..setting.turns() {
            self.draw_sites(setting, turn);
            self.draw_latents(setting, turn)?;
        }
        Ok(())
    }

    /// Makes one sweep with updates of hyperparameters: those of the likelihood given f, then in
    /// every turn those of kernels and mean given the local variables, before the latent functions
    /// that depend on them.
    pub(super) fn sweep_all(
        &mut self,
        setting: &mut Setting<'_>,
        hyperparameters: &[Coordinate],
    ) -> Result<()> {
        for own in hyperparameters.iter().filter(|c| c.block == Block::Likelihood) {
            self.update(setting, *own)?;
        }
        for turn in 0..setting.turns() {
            self.draw_sites(setting, turn);
            for own in hyperparameters {
                if setting.latents_of(own.block).any(|l| setting.turn(l) == turn) {
                    self.update(setting, *own)?;
                }
            }
            self.draw_latents(setting, turn)?;
        }
        Ok(())
    }

    /// Makes one update of a hyperparameter.
    fn update(&mut self, setting: &mut Setting<'_>, own: Coordinate) -> Result<()> {
        let now = own.read(&setting.model);
        let present = self.log_density(setting, own.block)? + own.log_prior(now);
        // the closure has all else of the chain
        let mut rng = self.rng.clone();
        let updated = slice::update(own, (now, present), &mut rng, |value| {
            own.write(&mut setting.model, value);
            match own.block {
                Block::Kernel(at) => setting.renew_kernel(at)?,
                Block::Mean(_) => setting.renew_mean(),
                Block::Likelihood => {}
            }
            Ok(self.log_density(setting, own.block)? + own.log_prior(value))
        });
        self.rng = rng;
        updated
    }

    /// Returns the log density that a block of hyperparameters is drawn from, without priors.
    fn log_density(&mut self, setting: &Setting<'_>, block: Block) -> Result<f64> {
        if block == Block::Likelihood {
            return Ok(setting.log_likelihood(&self.f));
        }
        let mut sum = 0.0;
        for l in setting.latents_of(block) {
            let (features, mu) = (setting.features(l), column(setting.mu.as_ref(), l));
            sum += self.conditional.renew(features, &self.sites[l], mu, setting.alpha())?;
        }
        Ok(sum)
    }

    fn draw_latents(&mut self, setting: &Setting<'_>, turn: usize) -> Result<()> {
        let own = (0..setting.latents()).filter(|l| setting.turn(*l) == turn);
        own.into_iter().try_for_each(|l| self.draw_latent(setting, l))
    }

    fn draw_sites(&mut self, setting: &Setting<'_>, turn: usize) {
        let Some(augmented) = setting.model.likelihood.augmented() else { return };
        let target = |i: usize, p: usize| setting.observed(i, p);
        let averaged = |i: usize, l: usize| setting.averaged(i, l);
        let shape = (setting.each, setting.rows.y.ncols());
        let Self { f, rng, sites, .. } = self;
        draw_sites((augmented, turn), shape, (&target, &averaged), f, rng, sites);
    }

    fn draw_latent(&mut self, setting: &Setting<'_>, l: usize) -> Result<()> {
        let (features, mu) = (setting.features(l), column(setting.mu.as_ref(), l));
        let sites = &self.sites[l];
        self.conditional.factorise(features, sites, mu, setting.alpha())?;
        self.conditional.draw(features, &mut self.rng);
        let m = features.a.ncols();
        self.z.col_as_slice_mut(l)[..m].copy_from_slice(self.conditional.z());
        let rows = self.conditional.rows();
        let f = self.f.col_as_slice_mut(l);
        for i in 0..f.len() {
            let r = features.unexplained[i];
            f[i] = mu[i] + rows[i];
            if setting.target == setting::Target::Fitc && r > 0.0 {
                // f | u, ω, of which only the part around μ + Aᵀz is left
                let grown = 1.0 + sites[i].precision * r;
                let pull = sites[i].potential - sites[i].precision * mu[i];
                let noise: f64 = StandardNormal.sample(&mut self.rng);
                f[i] = mu[i] + (rows[i] + r * pull) / grown + (r / grown).sqrt() * noise;
            }
        }
        Ok(())
    }
}

/// A chain where it samples. Chains share the setting as long as none of them changes it.
pub(super) struct Running<'s, 'a> {
    pub chain: Chain,
    setting: Cow<'s, Setting<'a>>,
    /// Those to sample.
    sampled: &'s [Coordinate],
}

impl Running<'_, '_> {
    /// Returns all hyperparameters, if some are sampled.
    pub fn own_hyperparameters(&self) -> Option<Vec<f64>> {
        (!self.sampled.is_empty()).then(|| hyperparameters(&self.setting.model))
    }

    /// Sets them.
    pub fn set_hyperparameters(&mut self, values: &[f64]) -> Result<()> {
        let setting = self.setting.to_mut();
        set_hyperparameters(&mut setting.model, values)?;
        setting.renew_mean();
        (0..setting.model.kernels.len()).try_for_each(|at| setting.renew_kernel(at))
    }
}

/// What a chain needs to continue: sites are drawn again in every sweep.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct State {
    /// Position of the generator in its stream.
    word: u128,
    f: Numbers,
    z: Numbers,
    /// Where they are sampled.
    hyperparameters: Option<Vec<f64>>,
}

impl Runs for Running<'_, '_> {
    type State = State;

    fn state(&self) -> State {
        State {
            word: self.chain.rng.get_word_pos(),
            f: Numbers::of(&self.chain.f),
            z: Numbers::of(&self.chain.z),
            hyperparameters: self.own_hyperparameters(),
        }
    }

    fn restore(&mut self, state: State) -> Result<()> {
        self.chain.f = state.f.like(&self.chain.f)?;
        self.chain.z = state.z.like(&self.chain.z)?;
        self.chain.rng.set_word_pos(state.word);
        state.hyperparameters.map_or(Ok(()), |own| self.set_hyperparameters(&own))
    }

    fn sweep(&mut self, _: usize) -> Result<()> {
        if self.sampled.is_empty() {
            self.chain.sweep(&self.setting)
        } else {
            self.chain.sweep_all(self.setting.to_mut(), self.sampled)
        }
    }

    fn latent_values(&self) -> &Mat<f64> {
        &self.chain.f
    }

    fn whitened(&self) -> &Mat<f64> {
        &self.chain.z
    }

    fn hyperparameters(&self) -> Option<Vec<f64>> {
        self.own_hyperparameters()
    }
}

/// Runs chains from the model's hyperparameters, in parallel; the draws depend only on the seed,
/// not on the number of threads. `watch` receives now and then how many sweeps of every chain are
/// done and of how many, and may end the sampling, with the draws made so far.
///
/// # Errors
/// As for [`Setting::new`], [`Chain::new`] and [`Chain::sweep`]; [`Error::Invalid`] for no draws, and where hyperparameters
/// are to be sampled that have no prior ([`assume_priors`](super::slice::assume_priors)).
pub fn sample(
    model: &Model,
    rows: &InMemory,
    options: &GibbsOptions,
    watch: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<Draws> {
    sample_from(model, rows, options, Going::default(), watch)
}

/// Samples the same from a state, or with somebody who takes states.
///
/// # Errors
/// As for [`sample`]; [`Error::Invalid`] for a state of other chains; those of the checkpointer.
pub fn sample_from(
    model: &Model,
    rows: &InMemory,
    options: &GibbsOptions,
    going: Going<'_>,
    watch: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<Draws> {
    let setting = Setting::new(model, rows, options.target)?;
    let sampled = match options.hyperparameters {
        true => Hyperparameters::new(model, setting.latents())?,
        false => Hyperparameters::default(),
    };
    let chains = (0..options.chains)
        .map(|chain| {
            Ok(Running {
                chain: Chain::new(&setting, options.seed, chain)?,
                setting: Cow::Borrowed(&setting),
                sampled: &sampled.coordinates,
            })
        })
        .collect::<Result<Vec<_>>>()?;
    let &GibbsOptions { burn_in, draws, thin, .. } = options;
    let (draws, _) = run(chains, Length { burn_in, draws, thin }, going, watch)?;
    Ok(Draws { sampled: sampled.named, ..draws })
}

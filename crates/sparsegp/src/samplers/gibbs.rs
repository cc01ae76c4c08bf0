//! Blocked Gibbs sampling of likelihoods that local variables make Gaussian (Galy-Fajou 2022, chapters 4, 5
//! and §7.5): the local variables of all rows given the latent values, then the latent functions given the local
//! variables, each as one block.
//!
//! Without inducing points the chain has the exact posterior as its law. With them there are two targets
//! ([`Target`]); the scheme that the thesis prints draws the local variables at an f that ignores y, and has
//! no stated law.

use super::chains::{Draws, Length, Runs, run};
use super::conditional::Conditional;
use super::setting::{Setting, Target};
use crate::data::InMemory;
use crate::error::{Error, Result};
use crate::likelihoods::{self, augmented::Site};
use crate::linalg::{Mat, column};
use crate::model::Model;
use crate::rng;
use rand_distr::{Distribution, StandardNormal};
use std::ops::ControlFlow;

/// How to sample.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct GibbsOptions {
    /// Chains, each from a start of its own.
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
    pub target: Target,
}

impl Default for GibbsOptions {
    fn default() -> Self {
        Self { chains: 4, burn_in: 200, draws: 500, thin: 1, seed: 0, target: Target::default() }
    }
}

/// One chain.
#[derive(Debug)]
pub struct Chain {
    rng: rand_chacha::ChaCha8Rng,
    /// Latent values where the local variables are drawn, N×L: of f, or of μ + Aᵀz for
    /// [`Target::Variational`].
    f: Mat<f64>,
    /// Whitened variables, M×L.
    z: Mat<f64>,
    /// N of each latent function.
    sites: Vec<Vec<Site>>,
    conditional: Conditional,
}

impl Chain {
    /// A chain that starts at a draw from the prior.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a likelihood without local variables.
    pub fn new(setting: &Setting<'_>, seed: u64, chain: usize) -> Result<Self> {
        let likelihood = &setting.model.likelihood;
        if likelihood.augmented().is_none() {
            return Err(Error::Invalid(format!(
                "`{}` has no local variables to draw; these have: {}",
                likelihood.to_json(),
                likelihoods::augmented::names().join(", ")
            )));
        }
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

    /// Latent values, N×L ([`Chain`]'s law is that of them and of [`Chain::whitened`]).
    pub fn latent_values(&self) -> &Mat<f64> {
        &self.f
    }

    /// Whitened variables z, M×L: f(x) = μ(x) + φ(x)ᵀz and what is left unexplained.
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

    /// One sweep: every local variable and every latent function once.
    ///
    /// # Errors
    /// What factorising the precision gives, if sites are not finite.
    pub fn sweep(&mut self, setting: &Setting<'_>) -> Result<()> {
        let turns = setting.model.likelihood.augmented().map_or(0, |a| a.turns());
        for turn in 0..turns {
            self.draw_sites(setting, turn);
            for l in 0..setting.latents() {
                let augmented = setting.model.likelihood.augmented();
                if augmented.is_some_and(|a| a.turn(l % setting.each) == turn) {
                    self.draw_latent(setting, l)?;
                }
            }
        }
        Ok(())
    }

    fn draw_sites(&mut self, setting: &Setting<'_>, turn: usize) {
        let Some(augmented) = setting.model.likelihood.augmented() else { return };
        let each = setting.each;
        let (mut f, mut variance) = (vec![0.0; each], vec![0.0; each]);
        let mut drawn = vec![Site::default(); each];
        let moves = |k: &usize| augmented.turn(*k) == turn;
        for p in 0..setting.rows.y.ncols() {
            for i in 0..setting.rows.y.nrows() {
                let Some(target) = setting.observed(i, p) else {
                    let own = (0..each).filter(moves);
                    own.for_each(|k| self.sites[p * each + k][i] = Site::default());
                    continue;
                };
                for k in 0..each {
                    f[k] = self.f[(i, p * each + k)];
                    variance[k] = setting.averaged(i, p * each + k);
                }
                augmented.draw(turn, target, &f, &variance, &mut self.rng, &mut drawn);
                let own = (0..each).filter(moves);
                own.for_each(|k| self.sites[p * each + k][i] = drawn[k]);
            }
        }
    }

    fn draw_latent(&mut self, setting: &Setting<'_>, l: usize) -> Result<()> {
        let (features, mu) = (setting.features(l), column(setting.mu.as_ref(), l));
        let sites = &self.sites[l];
        self.conditional.renew(features, sites, mu, setting.alpha())?;
        self.conditional.draw(features, &mut self.rng);
        let m = features.a.ncols();
        self.z.col_as_slice_mut(l)[..m].copy_from_slice(self.conditional.z());
        let rows = self.conditional.rows();
        let f = self.f.col_as_slice_mut(l);
        for i in 0..f.len() {
            let r = features.unexplained[i];
            f[i] = mu[i] + rows[i];
            if setting.target == Target::Fitc && r > 0.0 {
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

/// A chain where it samples.
struct Running<'s, 'a> {
    chain: Chain,
    setting: &'s Setting<'a>,
}

impl Runs for Running<'_, '_> {
    fn sweep(&mut self, _: usize) -> Result<()> {
        self.chain.sweep(self.setting)
    }

    fn latent_values(&self) -> &Mat<f64> {
        &self.chain.f
    }

    fn whitened(&self) -> &Mat<f64> {
        &self.chain.z
    }
}

/// Runs chains at fixed hyperparameters, in parallel; the draws depend on the seed alone, not on the number of
/// threads. `watch` is told now and then how many sweeps of every chain are done and of how many, and may end the
/// sampling, with the draws made so far.
///
/// # Errors
/// As for [`Setting::new`], [`Chain::new`] and [`Chain::sweep`]; [`Error::Invalid`] for no draws.
pub fn sample(
    model: &Model,
    rows: &InMemory,
    options: &GibbsOptions,
    watch: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<Draws> {
    let setting = Setting::new(model, rows, options.target)?;
    let chains = (0..options.chains)
        .map(|chain| {
            let chain = Chain::new(&setting, options.seed, chain)?;
            Ok(Running { chain, setting: &setting })
        })
        .collect::<Result<Vec<_>>>()?;
    let &GibbsOptions { burn_in, draws, thin, .. } = options;
    Ok(run(chains, Length { burn_in, draws, thin }, watch)?.0)
}

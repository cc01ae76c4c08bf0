//! Blocked Gibbs sampling of likelihoods that local variables make Gaussian (Galy-Fajou 2022, chapters 4, 5
//! and §7.5): the local variables of all rows given the latent values, then the latent functions given the local
//! variables, each as one block.
//!
//! Without inducing points the chain has the exact posterior as its law. With them there are two targets
//! ([`Target`]); the scheme that the thesis prints draws the local variables at an f that ignores y, and has
//! no stated law.

use super::conditional::{Conditional, Features};
use super::diagnostics;
use crate::data::InMemory;
use crate::error::{Error, Result};
use crate::kernels::Tape;
use crate::likelihoods::{self, augmented::Site};
use crate::linalg::{Cholesky, Mat, add_row_dots, column, solve_lower};
use crate::model::Model;
use crate::rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;
use std::ops::ControlFlow;
use std::time::Instant;

/// The law that a chain with inducing points has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// The optimal q(u, ω) ∏ p(fᵢ | u) of variational inference, q(u) of any shape: u has the density
    /// ∝ p(u) exp Σ ℓᵢ with the ℓ of [`crate::likelihoods::augmented`].
    #[default]
    Variational,
    /// The posterior of the model p(u) ∏ p(fᵢ | u) p(yᵢ | fᵢ): FITC.
    Fitc,
}

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

/// What does not change while hyperparameters stay: features of every kernel, prior means, targets.
#[derive(Debug)]
pub struct Setting<'a> {
    model: &'a Model,
    rows: &'a InMemory,
    /// One for each kernel.
    features: Vec<Features>,
    /// N×L.
    mu: Mat<f64>,
    /// Likelihood's latent values for one target column.
    each: usize,
    target: Target,
}

impl<'a> Setting<'a> {
    /// For a model whose likelihood has local variables.
    ///
    /// # Errors
    /// [`Error::Invalid`] for another likelihood; what factorising covariances gives.
    pub fn new(model: &'a Model, rows: &'a InMemory, target: Target) -> Result<Self> {
        if model.likelihood.augmented().is_none() {
            return Err(Error::Invalid(format!(
                "`{}` has no local variables to draw; these have: {}",
                model.likelihood.to_json(),
                likelihoods::augmented::names().join(", ")
            )));
        }
        let (n, latents) = (rows.x.nrows(), model.latents(rows.y.ncols()));
        let mut mu = Mat::zeros(n, latents);
        model.mean.evaluate(rows.x.as_ref(), mu.as_mut());
        let each = (0..model.kernels.len()).map(|at| features(model, rows, at));
        let features = each.collect::<Result<Vec<_>>>()?;
        let each = model.likelihood.latents();
        Ok(Self { model, rows, features, mu, each, target })
    }

    /// Number of latent functions.
    pub fn latents(&self) -> usize {
        self.mu.ncols()
    }

    fn features(&self, latent: usize) -> &Features {
        &self.features[if self.features.len() == 1 { 0 } else { latent }]
    }

    fn alpha(&self) -> f64 {
        match self.target {
            Target::Variational => 0.0,
            Target::Fitc => 1.0,
        }
    }
}

/// Features of one kernel.
fn features(model: &Model, rows: &InMemory, at: usize) -> Result<Features> {
    let (kernel, x) = (&model.kernels[at], rows.x.as_ref());
    let n = rows.x.nrows();
    let mut tape = Tape::off();
    if !model.method.is_sparse() {
        let mut k = Mat::zeros(n, n);
        kernel.evaluate(x, None, k.as_mut(), &mut tape);
        let factor = Cholesky::new(k.as_ref(), model.jitter, "K")?;
        (0..n).for_each(|i| k[(i, i)] += factor.jitter);
        return Ok(Features { a: factor.l, k, unexplained: vec![0.0; n] });
    }
    let z = model.inducing_set(at)?;
    let m = z.nrows();
    let mut kuu = Mat::zeros(m, m);
    kernel.evaluate(z.as_ref(), None, kuu.as_mut(), &mut tape);
    let factor = Cholesky::new(kuu.as_ref(), model.jitter, "Kuu")?;
    let mut a = Mat::zeros(n, m);
    kernel.evaluate(x, Some(z.as_ref()), a.as_mut(), &mut tape);
    solve_lower(factor.l.as_ref(), a.as_mut().transpose_mut(), crate::linalg::Par::Seq);
    let mut explained = vec![0.0; n];
    add_row_dots(a.as_ref(), a.as_ref(), &mut explained);
    let mut unexplained = vec![0.0; n];
    kernel.diag(x, &mut unexplained);
    unexplained.iter_mut().zip(&explained).for_each(|(r, e)| *r = (*r - e).max(0.0));
    Ok(Features { a, k: Mat::new(), unexplained })
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
    pub fn new(setting: &Setting<'_>, seed: u64, chain: usize) -> Self {
        let mut rng = rng::stream(seed, &format!("gibbs/{chain}"));
        let (n, latents) = (setting.mu.nrows(), setting.latents());
        let mut f = setting.mu.clone();
        let widest = setting.features.iter().map(|f| f.a.ncols()).max().unwrap_or(0);
        let mut z = Mat::zeros(widest, latents);
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
        Self { rng, f, z, sites, conditional: Conditional::default() }
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
        let rows = setting.rows;
        let each = setting.each;
        let default = setting.model.likelihood.extra().and_then(|e| e.default).unwrap_or(1.0);
        let (mut f, mut variance) = (vec![0.0; each], vec![0.0; each]);
        let mut drawn = vec![Site::default(); each];
        for p in 0..rows.y.ncols() {
            let y = column(rows.y.as_ref(), p);
            for (i, y) in y.iter().enumerate() {
                if y.is_nan() {
                    for k in (0..each).filter(|k| augmented.turn(*k) == turn) {
                        self.sites[p * each + k][i] = Site::default();
                    }
                    continue;
                }
                for k in 0..each {
                    let l = p * each + k;
                    f[k] = self.f[(i, l)];
                    variance[k] = match setting.target {
                        Target::Variational => setting.features(l).unexplained[i],
                        Target::Fitc => 0.0,
                    };
                }
                let extra = rows.extra.get(i).copied().unwrap_or(default);
                let target = likelihoods::Target { y: *y, extra };
                augmented.draw(turn, target, &f, &variance, &mut self.rng, &mut drawn);
                for k in (0..each).filter(|k| augmented.turn(*k) == turn) {
                    self.sites[p * each + k][i] = drawn[k];
                }
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

/// What chains gave.
#[derive(Clone, Debug, Default)]
pub struct Draws {
    /// Latent values at the rows, one N×L matrix for every draw, chain by chain.
    pub f: Vec<Vec<Mat<f64>>>,
    /// Whitened variables, M×L, likewise.
    pub z: Vec<Vec<Mat<f64>>>,
}

/// Shortest time between two looks at whoever watches, in seconds.
const LOOK: f64 = 0.1;

/// Runs chains at fixed hyperparameters, in parallel; the draws depend on the seed alone, not on the number of
/// threads. `watch` is told now and then how many sweeps of every chain are done and of how many, and may end the
/// sampling, with the draws made so far.
///
/// # Errors
/// As for [`Setting::new`] and [`Chain::sweep`]; [`Error::Invalid`] for no draws.
pub fn sample(
    model: &Model,
    rows: &InMemory,
    options: &GibbsOptions,
    watch: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<Draws> {
    if options.chains == 0 || options.draws == 0 || options.thin == 0 {
        return Err(Error::Invalid(
            "Gibbs sampling needs at least one chain, one draw and one sweep for a draw".into(),
        ));
    }
    if rows.weights.iter().any(|w| *w != 1.0) {
        return Err(Error::Invalid(
            "Gibbs sampling knows no weights of rows: repeat rows, or use `cavi`".into(),
        ));
    }
    let setting = Setting::new(model, rows, options.target)?;
    let mut chains: Vec<Kept> = (0..options.chains)
        .map(|chain| Kept {
            chain: Chain::new(&setting, options.seed, chain),
            f: Vec::with_capacity(options.draws),
            z: Vec::with_capacity(options.draws),
        })
        .collect();
    let total = options.burn_in + options.draws * options.thin;
    let (mut done, mut slice) = (0, 1);
    while done < total {
        let clock = Instant::now();
        let count = slice.min(total - done);
        chains.par_iter_mut().try_for_each(|kept| kept.go(&setting, options, done, count))?;
        done += count;
        if clock.elapsed().as_secs_f64() < LOOK {
            slice *= 2;
        }
        if watch(done, total).is_break() {
            break;
        }
    }
    let (f, z) = chains.into_iter().map(|kept| (kept.f, kept.z)).unzip();
    Ok(Draws { f, z })
}

/// A chain with its draws.
struct Kept {
    chain: Chain,
    f: Vec<Mat<f64>>,
    z: Vec<Mat<f64>>,
}

impl Kept {
    fn go(
        &mut self,
        setting: &Setting<'_>,
        options: &GibbsOptions,
        done: usize,
        count: usize,
    ) -> Result<()> {
        for sweep in done..done + count {
            self.chain.sweep(setting)?;
            let past = (sweep + 1).saturating_sub(options.burn_in);
            if past > 0 && past.is_multiple_of(options.thin) {
                self.f.push(self.chain.f.clone());
                self.z.push(self.chain.z.clone());
            }
        }
        Ok(())
    }
}

/// How well chains have mixed.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Mixing {
    /// Chains.
    pub chains: usize,
    /// Draws of every chain that were kept.
    pub draws: usize,
    /// Wall-clock seconds over the sweeps of all chains, which run side by side.
    pub seconds_per_sweep: f64,
    /// Mean autocorrelation of successive draws, over latent values.
    pub lag_one: f64,
    /// Smallest effective sample size among latent values, of all chains together.
    pub effective: f64,
    /// Largest split R̂ among latent values: near 1 for chains that agree.
    pub split_rhat: f64,
}

/// Latent values that [`Draws::mixing`] looks at, at most.
const LOOKED_AT: usize = 200;

impl Draws {
    /// Diagnostics over at most 200 latent values, evenly spread over the rows. None for fewer than 8 draws
    /// of a chain.
    pub fn mixing(&self, seconds_per_sweep: f64) -> Option<Mixing> {
        let first = self.f.first()?.first()?;
        let draws = self.f.iter().map(Vec::len).min()?;
        if draws < 8 {
            return None;
        }
        let (n, latents) = (first.nrows(), first.ncols());
        let step = n.div_ceil((LOOKED_AT / latents.max(1)).max(1)).max(1);
        let places: Vec<(usize, usize)> =
            (0..latents).flat_map(|l| (0..n).step_by(step).map(move |i| (i, l))).collect();
        let each: Vec<[f64; 3]> = places
            .par_iter()
            .map(|&(i, l)| {
                let chains: Vec<Vec<f64>> = self
                    .f
                    .iter()
                    .map(|chain| chain[..draws].iter().map(|f| f[(i, l)]).collect())
                    .collect();
                Ok([
                    diagnostics::lag_one(&chains),
                    diagnostics::effective_sample_size(&chains)?,
                    diagnostics::split_gelman_rubin(&chains)?,
                ])
            })
            .collect::<Result<_>>()
            .ok()?;
        Some(Mixing {
            chains: self.f.len(),
            draws,
            seconds_per_sweep,
            lag_one: each.iter().map(|e| e[0]).sum::<f64>() / each.len() as f64,
            effective: each.iter().fold(f64::INFINITY, |m, e| m.min(e[1])),
            split_rhat: each.iter().fold(0.0, |m, e| m.max(e[2])),
        })
    }

    /// At most so many whitened draws, evenly spread over the chains.
    pub fn thinned(&self, most: usize) -> Vec<Mat<f64>> {
        let all: Vec<&Mat<f64>> = self.z.iter().flatten().collect();
        let step = all.len().div_ceil(most.max(1)).max(1);
        all.into_iter().step_by(step).cloned().collect()
    }
}

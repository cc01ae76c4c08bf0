//! Gibbs sampling of a series in O(N) a sweep: as [`super::gibbs`], with the latent functions drawn along their states.
//!
//! Given the local variables, every row has the site exp(af − ½λf²), a normal factor with the target a/λ and the variance 1/λ, so that
//! a joint draw of a function is one of its states by a Kalman filter and smoother ([`crate::markov::draw`]; Carter & Kohn 1994 and
//! Frühwirth-Schnatter 1994 for the scheme, Durbin & Koopman 2002 for the draw). The chain has the exact posterior as its law.

use super::chains::{Draws, Length, Runs, run};
use super::gibbs::{GibbsOptions, draw_sites};
use super::resume::{Going, Numbers};
use super::setting::{WEIGHTS, observed};
use crate::data::InMemory;
use crate::error::{Error, Result};
use crate::kernels::{Kernel, StateSpace, of_latent};
use crate::likelihoods::augmented::Site;
use crate::linalg::Mat;
use crate::markov::{self, Sorted};
use crate::model::Model;
use crate::rng;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// Precisions of sites below this part of the prior's count as this much: a/λ keeps its digits.
const WEAKEST: f64 = 1e-12;
/// Most numbers of all draws, before some are left out of what predicts: 4 GiB.
const MOST_NUMBERS: usize = 1 << 29;

/// A model of one input beside labels, with its rows.
#[derive(Debug)]
pub struct Series<'a> {
    model: &'a Model,
    rows: &'a InMemory,
    /// Their inputs in the order of their times.
    sorted: Sorted,
    /// Of every kernel, with the variances of its function at these places.
    spaces: Vec<(Box<dyn StateSpace>, Vec<f64>)>,
    /// The mean function, N×L.
    mu: Mat<f64>,
}

impl<'a> Series<'a> {
    /// Creates it at the model's parameters.
    ///
    /// # Errors
    /// [`Error::Invalid`] for rows with weights, for several inputs, and for a kernel that is not a Markov process.
    pub fn new(model: &'a Model, rows: &'a InMemory) -> Result<Self> {
        if rows.weights.iter().any(|w| *w != 1.0) {
            return Err(Error::Invalid(WEIGHTS.into()));
        }
        let sorted = Sorted::new(rows.x.as_ref(), model.time(rows.x.ncols())?);
        let places = sorted.places();
        let space = |kernel: &dyn Kernel| {
            let mut prior = vec![0.0; places.len()];
            kernel.diag(places.inputs(), &mut prior);
            Ok((kernel.state_space()?, prior))
        };
        let spaces = model.kernels.iter().map(|kernel| space(&**kernel)).collect::<Result<_>>()?;
        let mut mu = Mat::zeros(places.len(), model.latents(rows.y.ncols()));
        model.mean.evaluate(rows.x.as_ref(), mu.as_mut());
        Ok(Self { model, rows, sorted, spaces, mu })
    }

    fn states(&self) -> usize {
        self.spaces.iter().map(|(space, _)| space.size()).max().unwrap_or(0)
    }
}

/// Refuses more draws than memory has room for.
///
/// # Errors
/// [`Error::InvalidParameter`] that says how many there may be.
pub(super) fn check(model: &Model, rows: (usize, usize), options: &GibbsOptions) -> Result<()> {
    let (count, outputs) = rows;
    let sizes = model.kernels.iter().filter_map(|kernel| kernel.state_space().ok());
    let states = sizes.map(|own| own.size()).max().unwrap_or(1);
    let each = count * model.latents(outputs) * (states + 1);
    let asked = options.chains.saturating_mul(options.draws);
    let (most, memory) = (MOST_NUMBERS / each.max(1), |draws: usize| {
        draws as f64 * each as f64 * 8.0 / (1u64 << 30) as f64
    });
    if asked <= most {
        return Ok(());
    }
    if most < options.chains.max(1) {
        return Err(Error::Invalid(format!(
            "a draw of {count} rows with {states} states takes {:.1} GiB, and one of each chain has to fit into 4 GiB: use `markov`,              which needs no draws",
            memory(1)
        )));
    }
    Err(Error::InvalidParameter {
        path: "draws".into(),
        reason: format!(
            "of {} chains over {count} rows with {states} states take {:.0} GiB: at most {} fit into 4 GiB; `markov` needs no draws",
            options.chains,
            memory(asked),
            most / options.chains.max(1)
        ),
    })
}

/// One chain.
#[derive(Debug)]
pub struct Chain {
    pub(super) rng: rand_chacha::ChaCha8Rng,
    /// Latent values, N×L.
    f: Mat<f64>,
    /// The states of every latent function at the rows as they came, NS×L.
    states: Mat<f64>,
    /// N of each latent function.
    sites: Vec<Vec<Site>>,
}

impl Chain {
    /// Creates a chain that starts at a draw from the prior.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a likelihood without local variables.
    pub fn new(series: &Series<'_>, seed: u64, chain: usize) -> Result<Self> {
        super::gibbs::check_augmented(series.model)?;
        let (n, latents) = (series.mu.nrows(), series.mu.ncols());
        let mut own = Self {
            rng: rng::stream(seed, &format!("gibbs-markov/{chain}")),
            f: series.mu.clone(),
            states: Mat::zeros(n * series.states(), latents),
            sites: vec![vec![Site::default(); n]; latents],
        };
        // sites that say nothing
        (0..latents).try_for_each(|l| own.draw_latent(series, l))?;
        Ok(own)
    }

    /// Returns the latent values, N×L.
    pub fn latent_values(&self) -> &Mat<f64> {
        &self.f
    }

    /// Makes one sweep: every local variable and every latent function once.
    ///
    /// # Errors
    /// What the filter gives, if sites are not finite.
    pub fn sweep(&mut self, series: &Series<'_>) -> Result<()> {
        let Some(augmented) = series.model.likelihood.augmented() else { return Ok(()) };
        let each = series.model.likelihood.latents();
        for turn in 0..augmented.turns() {
            let target = |i: usize, p: usize| observed(series.model, series.rows, i, p);
            let exactly = |_: usize, _: usize| 0.0;
            let shape = (each, series.rows.y.ncols());
            let Self { f, rng, sites, .. } = self;
            draw_sites((augmented, turn), shape, (&target, &exactly), f, rng, sites);
            for l in (0..series.mu.ncols()).filter(|l| augmented.turn(l % each) == turn) {
                self.draw_latent(series, l)?;
            }
        }
        Ok(())
    }

    fn draw_latent(&mut self, series: &Series<'_>, l: usize) -> Result<()> {
        let (space, prior) = of_latent(&series.spaces, l);
        let (places, size) = (series.sorted.places(), space.size());
        let n = places.len();
        let (mut y, mut noise) = (vec![0.0; n], vec![f64::INFINITY; n]);
        for (k, i) in series.sorted.order.iter().enumerate() {
            let site = self.sites[l][*i];
            // what is known before any row is learnt from none
            if site.precision > 0.0 && prior[k] > 0.0 {
                let precision = site.precision.max(WEAKEST / prior[k]);
                y[k] = (site.potential - site.precision * series.mu[(*i, l)]) / precision;
                noise[k] = 1.0 / precision;
            }
        }
        let states = markov::draw(&**space, (places, &y, &noise), &mut self.rng)?;
        let mut h = vec![0.0; size];
        for (k, i) in series.sorted.order.iter().enumerate() {
            let own = &states[k * size..][..size];
            space.output(places.row(k), &mut h);
            let f: f64 = h.iter().zip(own).map(|(h, s)| h * s).sum();
            self.f[(*i, l)] = series.mu[(*i, l)] + f;
            self.states.col_as_slice_mut(l)[i * size..][..size].copy_from_slice(own);
        }
        Ok(())
    }
}

/// A chain where it samples.
struct Running<'s, 'a> {
    chain: Chain,
    series: &'s Series<'a>,
}

/// What a chain needs to be resumed: sites are drawn again in every sweep.
#[derive(Debug, Serialize, Deserialize)]
struct State {
    /// Position of the generator in its stream.
    word: u128,
    f: Numbers,
    states: Numbers,
}

impl Runs for Running<'_, '_> {
    type State = State;

    fn state(&self) -> State {
        State {
            word: self.chain.rng.get_word_pos(),
            f: Numbers::of(&self.chain.f),
            states: Numbers::of(&self.chain.states),
        }
    }

    fn restore(&mut self, state: State) -> Result<()> {
        self.chain.f = state.f.like(&self.chain.f)?;
        self.chain.states = state.states.like(&self.chain.states)?;
        self.chain.rng.set_word_pos(state.word);
        Ok(())
    }

    fn sweep(&mut self, _: usize) -> Result<()> {
        self.chain.sweep(self.series)
    }

    fn latent_values(&self) -> &Mat<f64> {
        &self.chain.f
    }

    fn whitened(&self) -> &Mat<f64> {
        &self.chain.states
    }
}

/// Runs chains from a state, as [`super::gibbs::sample_from`]; in the place of whitened variables the draws have the states at the
/// rows, NS×L.
///
/// # Errors
/// As for [`Series::new`], [`Chain::new`] and [`Chain::sweep`]; [`Error::Invalid`] for no draws, and for a state of other chains;
/// those of the checkpointer.
pub fn sample_from(
    model: &Model,
    rows: &InMemory,
    options: &GibbsOptions,
    going: Going<'_>,
    watch: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<Draws> {
    let series = &Series::new(model, rows)?;
    // a kernel may have more states than where its training began
    check(model, (rows.x.nrows(), rows.y.ncols()), options)?;
    let chains = (0..options.chains)
        .map(|chain| Ok(Running { chain: Chain::new(series, options.seed, chain)?, series }))
        .collect::<Result<Vec<_>>>()?;
    let &GibbsOptions { burn_in, draws, thin, .. } = options;
    Ok(run(chains, Length { burn_in, draws, thin }, going, watch)?.0)
}

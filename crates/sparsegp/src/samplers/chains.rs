//! Running chains side by side, and how well they mixed.

use super::diagnostics;
use super::resume::{Going, SamplingState};
use crate::error::{Error, Result};
use crate::linalg::Mat;
use crate::metrics::{Mixing, Sampled};
use rayon::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ops::ControlFlow;
use std::time::Instant;

/// Sweeps of every chain: so many that are dropped, then draws, each after so many sweeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Length {
    pub burn_in: usize,
    pub draws: usize,
    pub thin: usize,
}

/// A chain that can be run.
pub(super) trait Runs: Send {
    /// What it needs, beside what it was made from, to continue.
    type State: Serialize + DeserializeOwned;
    /// Returns where it stands, between sweeps.
    fn state(&self) -> Self::State;
    /// Puts one that has just been made where it stood.
    fn restore(&mut self, state: Self::State) -> Result<()>;
    /// Makes one more sweep, which may adapt itself while it is below the burn-in.
    fn sweep(&mut self, sweep: usize) -> Result<()>;
    /// Returns the latent values, N×L.
    fn latent_values(&self) -> &Mat<f64>;
    /// Returns the whitened variables, M×L.
    fn whitened(&self) -> &Mat<f64>;
    /// Returns all hyperparameters, where they are sampled too ([`crate::model::hyperparameters`]).
    fn hyperparameters(&self) -> Option<Vec<f64>> {
        None
    }
}

/// What chains gave.
#[derive(Clone, Debug, Default)]
pub struct Draws {
    /// Latent values at the rows, one N×L matrix for every draw, chain by chain.
    pub f: Vec<Vec<Mat<f64>>>,
    /// Whitened variables, M×L, likewise.
    pub z: Vec<Vec<Mat<f64>>>,
    /// Hyperparameters of every draw, likewise, in the order of the parameters but for inducing points and q; no chains
    /// where they stayed.
    pub hyperparameters: Vec<Vec<Vec<f64>>>,
    /// Names of those that were sampled, and their places.
    pub sampled: Vec<(String, usize)>,
}

/// Shortest time between two looks at whoever watches, in seconds.
const LOOK: f64 = 0.1;

/// A chain with its draws.
pub(super) struct Kept<R> {
    pub chain: R,
    pub f: Vec<Mat<f64>>,
    pub z: Vec<Mat<f64>>,
    pub hyperparameters: Vec<Vec<f64>>,
}

/// Returns chains without draws.
fn fresh<R>(chains: Vec<R>) -> Vec<Kept<R>> {
    let kept = |chain| Kept { chain, f: vec![], z: vec![], hyperparameters: vec![] };
    chains.into_iter().map(kept).collect()
}

/// Returns what chains gave, and the chains.
fn gathered<R>(chains: Vec<Kept<R>>) -> (Draws, Vec<R>) {
    let mut draws = Draws::default();
    let ended = chains.into_iter().map(|kept| {
        draws.f.push(kept.f);
        draws.z.push(kept.z);
        if !kept.hyperparameters.is_empty() {
            draws.hyperparameters.push(kept.hyperparameters);
        }
        kept.chain
    });
    let ended = ended.collect();
    (draws, ended)
}

/// Runs chains that have just been made in parallel, from there or from a state. `watch` receives
/// now and then how many sweeps of every chain are done and of how many, and may end the sampling,
/// with the draws made so far.
///
/// # Errors
/// As for [`proceed`]; [`Error::Invalid`] for a state of other chains; those of the checkpointer.
pub(super) fn run<R: Runs>(
    chains: Vec<R>,
    length: Length,
    going: Going<'_>,
    watch: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<(Draws, Vec<R>)> {
    let Going { state, mut checkpoint } = going;
    let mut chains = fresh(chains);
    if let Some(state) = state {
        state.restore(&mut chains)?;
    }
    let mut saved = Instant::now();
    let from = state.map_or(0, |state| state.sweeps);
    proceed(&mut chains, from, length, &mut |chains, done, total| {
        let flow = watch(done, total);
        let ends = flow.is_break() || done == total;
        if let Some((checkpointer, seconds)) = &mut checkpoint
            && (ends || saved.elapsed().as_secs_f64() >= *seconds)
        {
            checkpointer(SamplingState::of(chains, done)?)?;
            saved = Instant::now();
        }
        Ok(flow)
    })?;
    Ok(gathered(chains))
}

/// What no chains, draws or sweeps are refused with.
pub(super) const TOO_FEW: &str =
    "sampling needs at least one chain, one draw and one sweep for a draw";

/// Runs chains that have made so many sweeps. `watch` sees them between sweeps.
///
/// # Errors
/// [`Error::Invalid`] for no chains or draws; those of the sweeps and of `watch`.
fn proceed<R: Runs>(
    chains: &mut [Kept<R>],
    from: usize,
    length: Length,
    watch: Watch<'_, R>,
) -> Result<()> {
    if chains.is_empty() || length.draws == 0 || length.thin == 0 {
        return Err(Error::Invalid(TOO_FEW.into()));
    }
    let total = length.burn_in + length.draws * length.thin;
    let (mut done, mut slice) = (from, 1);
    while done < total {
        let clock = Instant::now();
        let count = slice.min(total - done);
        chains.par_iter_mut().try_for_each(|kept| kept.go(length, done, count))?;
        done += count;
        if clock.elapsed().as_secs_f64() < LOOK {
            slice *= 2;
        }
        if watch(chains, done, total)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// Sees chains, sweeps of every chain that are done, and of how many.
type Watch<'a, R> = &'a mut dyn FnMut(&[Kept<R>], usize, usize) -> Result<ControlFlow<()>>;

impl<R: Runs> Kept<R> {
    fn go(&mut self, length: Length, done: usize, count: usize) -> Result<()> {
        for sweep in done..done + count {
            self.chain.sweep(sweep)?;
            let past = (sweep + 1).saturating_sub(length.burn_in);
            if past > 0 && past.is_multiple_of(length.thin) {
                self.f.push(self.chain.latent_values().clone());
                self.z.push(self.chain.whitened().clone());
                self.hyperparameters.extend(self.chain.hyperparameters());
            }
        }
        Ok(())
    }
}

/// Latent values that [`Draws::mixing`] looks at, at most.
const LOOKED_AT: usize = 200;

impl Draws {
    /// Returns diagnostics over at most 200 latent values, evenly spread over the rows. None for
    /// fewer than 8 draws of a chain.
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
            hyperparameters: self
                .sampled
                .iter()
                .filter_map(|s| self.sampled_one(s, draws))
                .collect(),
        })
    }

    /// Says that chains never moved, with the remedy: draws that are all the same say nothing of
    /// the posterior.
    pub fn still(&self) -> Option<String> {
        let same = |chain: &&Vec<Mat<f64>>| chain.len() > 1 && chain.iter().all(|z| *z == chain[0]);
        let count = self.z.iter().filter(same).count();
        (count > 0).then(|| {
            format!(
                "{count} of {} chains never moved, and their draws are all the same: more draws and a longer burn-in, which \
                 finds shorter steps",
                self.z.len()
            )
        })
    }

    /// Returns one of [`Draws::sampled`].
    fn sampled_one(&self, (path, place): &(String, usize), draws: usize) -> Option<Sampled> {
        let of = |chain: &Vec<Vec<f64>>| chain[..draws].iter().map(|h| h[*place]).collect();
        let chains: Vec<Vec<f64>> = self.hyperparameters.iter().map(of).collect();
        let n = chains.iter().map(Vec::len).sum::<usize>() as f64;
        let mean = chains.iter().flatten().sum::<f64>() / n;
        let square = chains.iter().flatten().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n;
        Some(Sampled {
            path: path.clone(),
            mean,
            deviation: square.sqrt(),
            effective: diagnostics::effective_sample_size(&chains).ok()?,
            split_rhat: diagnostics::split_gelman_rubin(&chains).ok()?,
        })
    }

    /// Returns how many whitened variables a draw has.
    pub fn numbers(&self) -> usize {
        let first = self.z.first().and_then(|chain| chain.first());
        first.map_or(0, |own| own.nrows() * own.ncols())
    }

    /// Returns at most so many draws, evenly spread over the chains: whitened variables, and
    /// hyperparameters where they were sampled.
    pub fn thinned(&self, most: usize) -> (Vec<Mat<f64>>, Vec<Vec<f64>>) {
        let count: usize = self.z.iter().map(Vec::len).sum();
        let step = count.div_ceil(most.max(1)).max(1);
        let z = self.z.iter().flatten().step_by(step).cloned().collect();
        (z, self.hyperparameters.iter().flatten().step_by(step).cloned().collect())
    }
}

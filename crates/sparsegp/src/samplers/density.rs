//! Densities of the caller as targets of samplers, and what chains on them give.
//!
//! Chains advance together: one position of every chain is evaluated at a time, which a density that works on arrays
//! ([`BatchDensity`]) does at once. [`Parallel`] makes such a density of a [`LogDensity`], [`Values`] of a function without a
//! gradient.

use super::chains::Length;
use super::diagnostics;
use super::hmc::Point;
use super::joint::LogDensity;
use super::moves::Moves;
use crate::error::{Error, Result};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;
use std::ops::ControlFlow;

/// A log density on ℝᴰ, up to a constant or with it, at several positions at once.
pub trait BatchDensity {
    /// Returns D, the number of variables.
    fn dim(&self) -> usize;

    /// Writes the log densities of K positions (K·D numbers, position after position) into `values` (K), and where gradients
    /// are wanted these into `gradients` (K·D, likewise).
    ///
    /// # Errors
    /// Those of the density; they end the sampling.
    fn evaluate(
        &mut self,
        positions: &[f64],
        values: &mut [f64],
        gradients: Option<&mut [f64]>,
    ) -> Result<()>;
}

/// Evaluates a [`LogDensity`] at the positions of several chains in parallel.
#[derive(Clone, Debug)]
pub struct Parallel<D>(Vec<D>);

impl<D: LogDensity + Clone + Send> Parallel<D> {
    /// Takes a density, which is cloned for each of the chains.
    pub fn new(density: &D, chains: usize) -> Self {
        Self(vec![density.clone(); chains.max(1)])
    }
}

impl<D: LogDensity + Clone + Send> BatchDensity for Parallel<D> {
    fn dim(&self) -> usize {
        self.0[0].dim()
    }

    fn evaluate(
        &mut self,
        positions: &[f64],
        values: &mut [f64],
        gradients: Option<&mut [f64]>,
    ) -> Result<()> {
        let (d, count) = (self.dim(), values.len());
        if count > self.0.len() {
            return Err(Error::Shape {
                what: "positions for a `Parallel` density".into(),
                expected: format!("at most {}, one for a chain", self.0.len()),
                found: count.to_string(),
            });
        }
        let each = self.0.par_iter_mut().zip(positions.par_chunks(d)).zip(values);
        match gradients {
            Some(gradients) => each
                .zip(gradients.par_chunks_mut(d))
                .for_each(|(((density, x), value), slope)| *value = density.evaluate(x, slope)),
            None => each.for_each(|((density, x), value)| *value = density.value(x)),
        }
        Ok(())
    }
}

/// A function as a log density without a gradient.
#[derive(Clone, Debug)]
pub struct Values<F> {
    dim: usize,
    function: F,
}

impl<F: Fn(&[f64]) -> f64 + Sync> Values<F> {
    /// Takes a function of `dim` numbers.
    pub fn new(dim: usize, function: F) -> Self {
        Self { dim, function }
    }
}

impl<F: Fn(&[f64]) -> f64 + Sync> BatchDensity for Values<F> {
    fn dim(&self) -> usize {
        self.dim
    }

    fn evaluate(
        &mut self,
        positions: &[f64],
        values: &mut [f64],
        gradients: Option<&mut [f64]>,
    ) -> Result<()> {
        if gradients.is_some() {
            return Err(Error::Invalid(
                "this density has no gradient: sample it by `elliptical` or `metropolis`".into(),
            ));
        }
        let each = values.par_iter_mut().zip(positions.par_chunks(self.dim));
        each.for_each(|(value, x)| *value = (self.function)(x));
        Ok(())
    }
}

/// What chains on a density gave: everything chain by chain, and within a chain draw by draw.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DensityDraws {
    /// D.
    pub dim: usize,
    /// Positions, D numbers for every draw.
    pub positions: Vec<Vec<f64>>,
    /// Log densities of the draws (log likelihoods for elliptical slice sampling).
    pub log_density: Vec<Vec<f64>>,
    /// Probability of acceptance in the sweep that ended with the draw (mean over the points of a path without U-turns; share
    /// of the proposals for elliptical slice sampling).
    pub acceptance: Vec<Vec<f64>>,
    /// Densities evaluated in that sweep.
    pub evaluations: Vec<Vec<usize>>,
    /// Whether a path diverged in that sweep, or in one that was dropped since the draw before: the energy rose by more than
    /// 1000, or to no number.
    pub diverging: Vec<Vec<bool>>,
    /// Step of every chain after burn-in; none for elliptical slice sampling.
    pub steps: Vec<Option<f64>>,
}

/// What draws say of one variable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Mean over all draws.
    pub mean: f64,
    /// Their standard deviation.
    pub deviation: f64,
    /// Standard error of the mean: deviation/√ESS, with the ESS of the variable as it is
    /// ([`diagnostics::effective_sample_size`] of the halves of the chains).
    pub error: f64,
    /// [`diagnostics::rank_rhat`].
    pub rhat: f64,
    /// [`diagnostics::bulk_size`].
    pub ess_bulk: f64,
    /// [`diagnostics::tail_size`].
    pub ess_tail: f64,
}

impl DensityDraws {
    /// Returns the number of draws of every chain.
    pub fn draws(&self) -> usize {
        self.log_density.first().map_or(0, Vec::len)
    }

    /// Returns the number of draws, of all chains, whose paths diverged.
    pub fn divergences(&self) -> usize {
        self.diverging.iter().flatten().filter(|d| **d).count()
    }

    /// Returns the draws of one variable, chain by chain.
    pub fn variable(&self, at: usize) -> Vec<Vec<f64>> {
        let of = |chain: &Vec<f64>| chain.iter().skip(at).step_by(self.dim).copied().collect();
        self.positions.iter().map(of).collect()
    }

    /// Returns a summary of every variable. R̂, error and effective sample sizes are NaN for fewer than 8 draws of a chain.
    pub fn summaries(&self) -> Vec<Summary> {
        (0..self.dim).into_par_iter().map(|at| Summary::of(&self.variable(at))).collect()
    }
}

impl Summary {
    /// Creates the summary of chains of one variable.
    pub fn of(chains: &[Vec<f64>]) -> Self {
        let n = chains.iter().map(Vec::len).sum::<usize>() as f64;
        let mean = chains.iter().flatten().sum::<f64>() / n;
        let squares = chains.iter().flatten().map(|v| (v - mean) * (v - mean)).sum::<f64>();
        let deviation = (squares / (n - 1.0)).sqrt();
        let known = |number: Result<f64>| number.unwrap_or(f64::NAN);
        let effective = known(diagnostics::split_size(chains));
        Self {
            mean,
            deviation,
            error: deviation / effective.sqrt(),
            rhat: known(diagnostics::rank_rhat(chains)),
            ess_bulk: known(diagnostics::bulk_size(chains)),
            ess_tail: known(diagnostics::tail_size(chains)),
        }
    }
}

/// Returns a draw of N(0, I).
pub(super) fn normals(dim: usize) -> impl Fn(&mut ChaCha8Rng) -> Vec<f64> {
    move |rng| StandardNormal.sample_iter(rng).take(dim).collect()
}

/// Evaluates where chains start: at positions (D numbers for all chains, or D for each), or where `draw` says.
///
/// # Errors
/// [`Error::Shape`] for other numbers of positions, [`Error::NonFinite`] where something is not finite there,
/// [`Error::Invalid`] for no variables; those of the density.
pub(super) fn start<M: Moves>(
    density: &mut dyn BatchDensity,
    starts: Option<&[f64]>,
    mut streams: Vec<ChaCha8Rng>,
    draw: &dyn Fn(&mut ChaCha8Rng) -> Vec<f64>,
) -> Result<Vec<(Point, ChaCha8Rng)>> {
    let (d, chains) = (density.dim(), streams.len());
    if d == 0 || chains == 0 {
        return Err(Error::Invalid(format!(
            "sampling needs variables and chains, not {d} variables and {chains} chains"
        )));
    }
    let positions: Vec<f64> = match starts {
        Some(one) if one.len() == d => one.repeat(chains),
        Some(each) if each.len() == d * chains => each.to_vec(),
        Some(other) => {
            return Err(Error::Shape {
                what: "starts".into(),
                expected: format!("{d} numbers, or {d} for each of {chains} chains"),
                found: other.len().to_string(),
            });
        }
        None => streams.iter_mut().flat_map(draw).collect(),
    };
    let mut values = vec![f64::NAN; chains];
    let mut gradients = vec![f64::NAN; if M::GRADIENTS { d * chains } else { 0 }];
    density.evaluate(&positions, &mut values, M::GRADIENTS.then_some(&mut gradients[..]))?;
    for c in 0..chains {
        let refused = |what: String, numbers: &[f64]| match numbers.iter().find(|v| !v.is_finite())
        {
            Some(bad) => Err(Error::NonFinite { what, value: *bad }),
            None => Ok(()),
        };
        refused(format!("the start of chain {c}"), &positions[c * d..(c + 1) * d])?;
        refused(format!("the log density at the start of chain {c}"), &values[c..=c])?;
        if M::GRADIENTS {
            let what = format!("the gradient of the log density at the start of chain {c}");
            refused(what, &gradients[c * d..(c + 1) * d])?;
        }
    }
    let each = streams.into_iter().enumerate().map(|(c, rng)| {
        let position = positions[c * d..(c + 1) * d].to_vec();
        let gradient = if M::GRADIENTS { gradients[c * d..(c + 1) * d].to_vec() } else { vec![] };
        (Point { position, value: values[c], gradient }, rng)
    });
    Ok(each.collect())
}

/// A chain under way.
struct Running<M> {
    moves: M,
    sweeps: usize,
    /// Whether a path diverged since the last draw.
    diverged: bool,
}

/// Runs chains from where they are.
///
/// # Errors
/// [`Error::Invalid`] for no draws; those of the density.
pub(super) fn run<M: Moves>(
    density: &mut dyn BatchDensity,
    chains: Vec<M>,
    length: Length,
    watch: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<DensityDraws> {
    if length.draws == 0 || length.thin == 0 {
        return Err(Error::Invalid(
            "sampling needs at least one draw, and one sweep for a draw".into(),
        ));
    }
    let (d, count) = (density.dim(), chains.len());
    let total = length.burn_in + length.draws * length.thin;
    let begun = |mut moves: M| {
        moves.begin();
        Running { moves, sweeps: 0, diverged: false }
    };
    let mut chains: Vec<Running<M>> = chains.into_iter().map(begun).collect();
    let mut found = DensityDraws::empty(d, count);
    let mut live: Vec<usize> = (0..count).collect();
    let (mut positions, mut values) = (Vec::new(), Vec::new());
    let mut gradients = Vec::new();
    while !live.is_empty() {
        positions.clear();
        live.iter().for_each(|c| positions.extend_from_slice(chains[*c].moves.wanted().0));
        // what a density leaves unwritten is not a value of another position
        values.clear();
        values.resize(live.len(), f64::NAN);
        gradients.clear();
        gradients.resize(if M::GRADIENTS { positions.len() } else { 0 }, f64::NAN);
        density.evaluate(&positions, &mut values, M::GRADIENTS.then_some(&mut gradients[..]))?;
        for (at, c) in live.iter().enumerate() {
            let chain = &mut chains[*c];
            if M::GRADIENTS {
                let (_, gradient) = chain.moves.wanted();
                gradient.copy_from_slice(&gradients[at * d..(at + 1) * d]);
            }
            let Some(swept) = chain.moves.take(values[at]) else { continue };
            chain.sweeps += 1;
            let past = chain.sweeps.saturating_sub(length.burn_in);
            chain.diverged |= past > 0 && swept.diverging;
            if past > 0 && past.is_multiple_of(length.thin) {
                found.positions[*c].extend_from_slice(chain.moves.position());
                found.log_density[*c].push(chain.moves.value());
                found.acceptance[*c].push(swept.acceptance);
                found.evaluations[*c].push(swept.evaluations);
                found.diverging[*c].push(std::mem::take(&mut chain.diverged));
            }
            if chain.sweeps < total {
                chain.moves.begin();
            }
        }
        live.retain(|c| chains[*c].sweeps < total);
        let done = chains.iter().map(|chain| chain.sweeps).min().unwrap_or(total);
        if watch(done, total).is_break() {
            break;
        }
    }
    found.cut();
    found.steps = chains.iter().map(|chain| chain.moves.step()).collect();
    Ok(found)
}

impl DensityDraws {
    fn empty(dim: usize, chains: usize) -> Self {
        Self {
            dim,
            positions: vec![Vec::new(); chains],
            log_density: vec![Vec::new(); chains],
            acceptance: vec![Vec::new(); chains],
            evaluations: vec![Vec::new(); chains],
            diverging: vec![Vec::new(); chains],
            steps: Vec::new(),
        }
    }

    /// Gives all chains the length of the shortest.
    fn cut(&mut self) {
        let shortest = self.log_density.iter().map(Vec::len).min().unwrap_or(0);
        self.positions.iter_mut().for_each(|chain| chain.truncate(shortest * self.dim));
        self.log_density.iter_mut().for_each(|chain| chain.truncate(shortest));
        self.acceptance.iter_mut().for_each(|chain| chain.truncate(shortest));
        self.evaluations.iter_mut().for_each(|chain| chain.truncate(shortest));
        self.diverging.iter_mut().for_each(|chain| chain.truncate(shortest));
    }
}

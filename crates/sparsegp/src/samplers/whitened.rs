//! Chains over the whitened variables of a model: one machine for all samplers that move these.

use super::chains::{Length, Runs, run};
use super::hmc::Sampled;
use super::joint::Joint;
use super::moves::{Moves, Tally, sweep};
use crate::error::Result;
use crate::linalg::Mat;
use std::ops::ControlFlow;

/// The log density that a sampler asks for at a position, and its gradient where there is room for one.
type Density = fn(&mut Joint<'_>, &[f64], &mut [f64]) -> f64;

/// A chain of moves in the whitened variables.
pub(super) struct Chain<'a, M> {
    joint: Joint<'a>,
    moves: M,
    density: Density,
    burn_in: usize,
    /// Where the latent values are of.
    position: Vec<f64>,
    f: Mat<f64>,
    z: Mat<f64>,
    tally: Tally,
}

impl<'a, M: Moves> Chain<'a, M> {
    /// Begins where the moves are.
    pub(super) fn new(mut joint: Joint<'a>, moves: M, density: Density, burn_in: usize) -> Self {
        let position = moves.position().to_vec();
        Self {
            f: joint.latent_values_at(&position).clone(),
            z: joint.whitened(&position),
            tally: Tally::default(),
            joint,
            moves,
            density,
            burn_in,
            position,
        }
    }
}

impl<M: Moves> Runs for Chain<'_, M> {
    fn sweep(&mut self, at: usize) -> Result<()> {
        let (joint, density) = (&mut self.joint, self.density);
        let swept = sweep(&mut self.moves, |x, gradient| density(joint, x, gradient));
        if self.position != self.moves.position() {
            self.position.copy_from_slice(self.moves.position());
            self.f.copy_from(self.joint.latent_values_at(&self.position));
            self.z = self.joint.whitened(&self.position);
        }
        if at >= self.burn_in {
            self.tally.add(swept);
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

/// Runs so many chains in parallel, each begun by its number.
pub(super) fn sample<'a, M: Moves>(
    chains: usize,
    length: Length,
    watch: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
    begin: impl Fn(usize) -> Result<Chain<'a, M>>,
) -> Result<Sampled> {
    let (draws, chains) = run((0..chains).map(begin).collect::<Result<_>>()?, length, watch)?;
    let step = |chain: &Chain<'_, M>| chain.moves.step().unwrap_or(f64::NAN);
    Ok(Sampled::new(draws, chains.iter().map(|chain| (chain.tally, step(chain)))))
}

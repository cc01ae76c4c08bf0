//! Chains over the whitened variables of a model, and over what else is unknown: one machine for all samplers that move
//! these.

use super::chains::{Length, Runs, run};
use super::hmc::Sampled;
use super::joint::{Joint, LogDensity};
use super::moves::{Moves, Tally, sweep};
use crate::error::Result;
use crate::linalg::Mat;
use std::ops::ControlFlow;

/// A density of what is unknown of a model.
pub(super) trait Unknowns: LogDensity + Send {
    /// Latent values at a position, N×L.
    fn latent_values_at(&mut self, position: &[f64]) -> &Mat<f64>;
    /// The whitened variables of a position, M×L.
    fn whitened(&self, position: &[f64]) -> Mat<f64>;
    /// All hyperparameters at the position that was asked for last, where they are among the unknowns.
    fn hyperparameters(&self) -> Option<Vec<f64>> {
        None
    }
}

impl Unknowns for Joint<'_> {
    fn latent_values_at(&mut self, position: &[f64]) -> &Mat<f64> {
        Joint::latent_values_at(self, position)
    }

    fn whitened(&self, position: &[f64]) -> Mat<f64> {
        Joint::whitened(self, position)
    }
}

/// The log density that a sampler asks for at a position, and its gradient where there is room for one.
type Density<U> = fn(&mut U, &[f64], &mut [f64]) -> f64;

/// A chain of moves in the unknowns.
pub(super) struct Chain<U, M> {
    joint: U,
    moves: M,
    density: Density<U>,
    burn_in: usize,
    /// Where the latent values are of.
    position: Vec<f64>,
    f: Mat<f64>,
    z: Mat<f64>,
    hyperparameters: Option<Vec<f64>>,
    tally: Tally,
}

impl<U: Unknowns, M: Moves> Chain<U, M> {
    /// Begins where the moves are.
    pub(super) fn new(mut joint: U, moves: M, density: Density<U>, burn_in: usize) -> Self {
        let position = moves.position().to_vec();
        Self {
            f: joint.latent_values_at(&position).clone(),
            z: joint.whitened(&position),
            hyperparameters: joint.hyperparameters(),
            tally: Tally::default(),
            joint,
            moves,
            density,
            burn_in,
            position,
        }
    }
}

impl<U: Unknowns, M: Moves> Runs for Chain<U, M> {
    fn sweep(&mut self, at: usize) -> Result<()> {
        let (joint, density) = (&mut self.joint, self.density);
        let swept = sweep(&mut self.moves, |x, gradient| density(joint, x, gradient));
        if self.position != self.moves.position() {
            self.position.copy_from_slice(self.moves.position());
            self.f.copy_from(self.joint.latent_values_at(&self.position));
            self.z = self.joint.whitened(&self.position);
            self.hyperparameters = self.joint.hyperparameters();
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

    fn hyperparameters(&self) -> Option<Vec<f64>> {
        self.hyperparameters.clone()
    }
}

/// Runs so many chains in parallel, each begun by its number.
pub(super) fn sample<U: Unknowns, M: Moves>(
    chains: usize,
    length: Length,
    watch: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
    begin: impl Fn(usize) -> Result<Chain<U, M>>,
) -> Result<Sampled> {
    let (draws, chains) = run((0..chains).map(begin).collect::<Result<_>>()?, length, watch)?;
    let step = |chain: &Chain<U, M>| chain.moves.step().unwrap_or(f64::NAN);
    Ok(Sampled::new(draws, chains.iter().map(|chain| (chain.tally, step(chain)))))
}

//! Chains over the whitened variables of a model, and over what else is unknown: one machine for all samplers that move
//! these.

use super::chains::{Length, Runs, run};
use super::hmc::Sampled;
use super::joint::{Joint, LogDensity};
use super::moves::{Moves, Tally, sweep};
use super::resume::{Going, Numbers, of_others};
use crate::error::Result;
use crate::linalg::Mat;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// A density of what is unknown of a model.
pub(super) trait Unknowns: LogDensity + Send {
    /// Returns the latent values at a position, N×L.
    fn latent_values_at(&mut self, position: &[f64]) -> &Mat<f64>;
    /// Returns the whitened variables of a position, M×L.
    fn whitened(&self, position: &[f64]) -> Mat<f64>;
    /// Returns all hyperparameters at the position that was asked for last, where they are among
    /// the unknowns.
    fn hyperparameters(&self) -> Option<Vec<f64>> {
        None
    }
    /// Returns the generator behind what is drawn given a position, where something is.
    fn generator(&self) -> Option<&ChaCha8Rng> {
        None
    }
    /// Returns the same, to be set.
    fn generator_mut(&mut self) -> Option<&mut ChaCha8Rng> {
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

/// What a chain needs to continue.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct State<S> {
    moves: S,
    /// Position of [`Unknowns::generator`] in its stream.
    word: Option<u128>,
    f: Numbers,
    z: Numbers,
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
    type State = State<M::State>;

    fn state(&self) -> Self::State {
        State {
            moves: self.moves.state(),
            word: self.joint.generator().map(|rng| rng.get_word_pos()),
            f: Numbers::of(&self.f),
            z: Numbers::of(&self.z),
            hyperparameters: self.hyperparameters.clone(),
            tally: self.tally,
        }
    }

    fn restore(&mut self, state: Self::State) -> Result<()> {
        let same = |a: &Option<Vec<f64>>, b: &Option<Vec<f64>>| {
            a.as_ref().map(Vec::len) == b.as_ref().map(Vec::len)
        };
        if !same(&state.hyperparameters, &self.hyperparameters) {
            return Err(of_others());
        }
        self.moves.restore(state.moves)?;
        self.position = self.moves.position().to_vec();
        if let (Some(rng), Some(word)) = (self.joint.generator_mut(), state.word) {
            rng.set_word_pos(word);
        }
        (self.f, self.z) = (state.f.like(&self.f)?, state.z.like(&self.z)?);
        (self.hyperparameters, self.tally) = (state.hyperparameters, state.tally);
        Ok(())
    }

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
    going: Going<'_>,
    watch: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
    begin: impl Fn(usize) -> Result<Chain<U, M>>,
) -> Result<Sampled> {
    let chains = (0..chains).map(begin).collect::<Result<_>>()?;
    let (draws, chains) = run(chains, length, going, watch)?;
    let step = |chain: &Chain<U, M>| chain.moves.step().unwrap_or(f64::NAN);
    Ok(Sampled::new(draws, chains.iter().map(|chain| (chain.tally, step(chain)))))
}

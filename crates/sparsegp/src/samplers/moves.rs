//! Samplers as machines that ask for a density at one position after another: so that one implementation serves a density
//! of this library, evaluated on the chain's thread, and one of the caller, evaluated for all chains together.

use crate::error::Result;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What a sweep came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Swept {
    /// Probability that what was proposed is accepted (mean over the points of a path, share of the proposals on an
    /// ellipse).
    pub acceptance: f64,
    /// Densities that were asked for.
    pub evaluations: usize,
    /// Whether the integrator lost the energy.
    pub diverging: bool,
}

/// A chain. A sweep begins, asks for densities, and ends with the answer that [`Moves::take`] turns into a [`Swept`].
pub(super) trait Moves: Send {
    /// What it needs, beside what it was made from, to continue.
    type State: Serialize + DeserializeOwned;
    /// Whether gradients are asked for, too.
    const GRADIENTS: bool;
    /// Begins a sweep.
    fn begin(&mut self);
    /// Returns the position whose density is wanted next, and where its gradient goes (nowhere without gradients).
    fn wanted(&mut self) -> (&[f64], &mut [f64]);
    /// Takes the log density there; one that is not finite counts as −∞.
    fn take(&mut self, value: f64) -> Option<Swept>;
    /// Returns where the chain is.
    fn position(&self) -> &[f64];
    /// Returns the log density there.
    fn value(&self) -> f64;
    /// Returns the length of a step, if steps have one.
    fn step(&self) -> Option<f64>;
    /// Returns where it stands, between sweeps.
    fn state(&self) -> Self::State;
    /// Puts one that has just been made where it stood.
    fn restore(&mut self, state: Self::State) -> Result<()>;
}

/// Makes a whole sweep. `density` takes a position and writes its gradient, if there is room for one.
pub(super) fn sweep(
    chain: &mut impl Moves,
    mut density: impl FnMut(&[f64], &mut [f64]) -> f64,
) -> Swept {
    chain.begin();
    loop {
        let (position, gradient) = chain.wanted();
        let value = density(position, gradient);
        if let Some(swept) = chain.take(value) {
            return swept;
        }
    }
}

/// Returns −∞ for what is not finite: no chain goes there.
pub(super) fn finite_or_nothing(value: f64) -> f64 {
    if value.is_finite() { value } else { f64::NEG_INFINITY }
}

/// Sums over the sweeps after burn-in.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Tally {
    acceptance: f64,
    sweeps: usize,
    /// Sweeps that diverged.
    pub divergences: usize,
}

impl Tally {
    /// Counts a sweep.
    pub fn add(&mut self, swept: Swept) {
        self.acceptance += swept.acceptance;
        self.sweeps += 1;
        self.divergences += usize::from(swept.diverging);
    }

    /// Returns the mean probability of acceptance.
    pub fn acceptance(&self) -> f64 {
        self.acceptance / self.sweeps as f64
    }
}

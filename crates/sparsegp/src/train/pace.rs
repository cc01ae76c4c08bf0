//! How fast the inducing points move, where their moves are to stay small.
//!
//! Whatever changes K̃ makes R-SVGP's T run after it, and nothing changes it like inducing points: kept still at
//! first, with smaller steps and more momentum, a step or two of L per iteration suffice (Cortinovis et al.,
//! §3.4).

use crate::model::Model;
use crate::optim::{AdamOptions, FallingRate, PlateauRate};
use crate::params::Role;
use serde::{Deserialize, Serialize};

/// Rates of the inducing points beside [`super::StochasticOptions::inducing_rate`], and of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// Iterations for which inducing points stay where they are.
    pub frozen: usize,
    /// β₁ of Adam for inducing points; none for that of all else.
    pub beta1: Option<f64>,
    /// How the rate of inducing points falls on plateaus of the minibatches' bound.
    pub inducing: Option<PlateauRate>,
    /// The same for the rate of all parameters.
    pub all: Option<PlateauRate>,
}

/// Where the rates are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PaceState {
    /// Where inducing points are among the free numbers, and their multiples of the learning rate at first.
    start: usize,
    multipliers: Vec<f64>,
    inducing: Option<FallingRate>,
    all: Option<FallingRate>,
}

/// Returns where the free numbers of inducing points begin and how many there are.
fn inducing(model: &Model) -> (usize, usize) {
    let (mut start, mut count, mut at) = (0, 0, 0);
    model.visit(&mut |_, param| {
        if param.frozen {
            return;
        }
        if param.role() == Role::Points {
            if count == 0 {
                start = at;
            }
            count += param.len();
        }
        at += param.free_len();
    });
    (start, count)
}

impl Pace {
    /// Sets Adam's momentum of inducing points, and notes where the rates start.
    pub(super) fn start(&self, model: &Model, adam: &mut AdamOptions, dim: usize) -> PaceState {
        let (start, count) = inducing(model);
        if let (Some(beta1), true) = (self.beta1, count > 0) {
            adam.momenta = vec![adam.beta1; dim];
            adam.momenta[start..start + count].fill(beta1);
        }
        if adam.multipliers.is_empty() && *self != Self::default() {
            adam.multipliers = vec![1.0; dim];
        }
        let multipliers = match adam.multipliers.get(start..start + count) {
            Some(own) if *self != Self::default() => own.to_vec(),
            _ => Vec::new(),
        };
        // the rate that a person gave, whatever lengthscales make of it
        let rate = multipliers.iter().copied().fold(0.0, f64::max) * adam.learning_rate;
        PaceState {
            start,
            multipliers,
            inducing: self.inducing.map(|rule| rule.start(rate)),
            all: self.all.map(|rule| rule.start(adam.learning_rate)),
        }
    }

    /// Sets the rates of iteration `iteration`, counted from 0.
    pub(super) fn apply(&self, state: &PaceState, adam: &mut AdamOptions, iteration: usize) {
        if let Some(all) = &state.all {
            adam.learning_rate = all.rate();
        }
        let largest = state.multipliers.iter().copied().fold(0.0, f64::max);
        let factor = match (&state.inducing, iteration < self.frozen) {
            (_, true) => 0.0,
            (Some(own), false) if largest > 0.0 => own.rate() / (largest * adam.learning_rate),
            _ => 1.0,
        };
        let own = adam.multipliers.iter_mut().skip(state.start);
        own.zip(&state.multipliers).for_each(|(t, base)| *t = base * factor);
    }

    /// Sees the bound of a minibatch; plateaus of inducing points count from when they move.
    pub(super) fn see(&self, state: &mut PaceState, bound: f64, iteration: usize) {
        if let (Some(rule), Some(own), true) =
            (&self.inducing, &mut state.inducing, iteration >= self.frozen)
        {
            own.see(rule, -bound);
        }
        if let (Some(rule), Some(own)) = (&self.all, &mut state.all) {
            own.see(rule, -bound);
        }
    }
}

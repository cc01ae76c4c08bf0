//! The training loop: optimiser steps on a model's objective, watched.

mod adapting;
mod adaptive_rate;
mod anderson;
mod ascent;
mod classes;
mod climb;
mod counting;
mod deadline;
mod em;
mod epochs;
mod findings;
mod frame;
mod going_on;
mod held_out;
mod holding;
mod kernels;
mod layers;
mod minibatch;
mod natural;
mod options;
mod pace;
mod start;
mod stochastic;
mod variables;

pub use adapting::Adapting;
pub use adaptive_rate::{AdaptiveRate, RelativeChange};
pub(crate) use counting::Counting;
pub use deadline::Deadline;
pub use em::EmOptions;
pub use epochs::{Checkpointer, Surroundings, TrainingState};
pub use findings::Finding;
pub use going_on::{Ascent, GoingOn, Notary, Place, Rounds, Standing};
pub use held_out::Best;
pub(crate) use held_out::set_all_values;
pub use kernels::{KernelChoice, KernelScore};
pub use layers::train_layers;
pub use natural::natural_step;
pub use options::{EPOCHS, LEAST_ITERATIONS, StochasticOptions};
pub use pace::{Pace, PaceState};
pub(crate) use stochastic::check_batches;
pub use stochastic::train_batches;

use crate::data::Source;
use crate::engine::Engine;
use crate::error::Result;
use crate::linalg::Precision;
use crate::methods::Diagnostics;
use crate::metrics::Mixing;
use crate::model::Model;
use crate::optim::{AdamOptions, LbfgsOptions};
use crate::variational::Variational;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// Which optimiser, and when to stop.
#[derive(Clone, Debug)]
pub struct TrainOptions {
    /// The optimiser.
    pub optimiser: OptimiserKind,
    /// Most iterations.
    pub max_iterations: usize,
    /// How steps of sites alternate with the optimiser, for the methods that keep q as sites.
    pub em: EmOptions,
    /// Seconds between checkpoints, if somebody takes them.
    pub checkpoint_seconds: f64,
}

/// An optimiser with its options.
#[derive(Clone, Debug)]
pub enum OptimiserKind {
    /// L-BFGS, for objectives that see all rows.
    Lbfgs(LbfgsOptions),
    /// Adam.
    Adam(AdamOptions),
}

impl Default for TrainOptions {
    fn default() -> Self {
        Self {
            optimiser: OptimiserKind::Lbfgs(LbfgsOptions::default()),
            max_iterations: 1000,
            em: EmOptions::default(),
            checkpoint_seconds: 60.0,
        }
    }
}

impl TrainOptions {
    /// Creates the default options, but ending where little happens any more: where ten iterations
    /// of L-BFGS raise the objective by no more than `tolerance` of its size or nats per target,
    /// whichever is less, and the gradient promises no more ([`LbfgsOptions::plateau`]); sites are
    /// settled to the same tolerance, or [`EmOptions::tolerance`] if that is less.
    pub fn ending_at(tolerance: f64) -> Self {
        let em = EmOptions::default();
        Self {
            optimiser: OptimiserKind::Lbfgs(LbfgsOptions::ending_at(tolerance)),
            em: EmOptions { tolerance: em.tolerance.min(tolerance), ..em },
            ..Self::default()
        }
    }
}

/// One line of the trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TracePoint {
    /// Iteration, from 0 for the start.
    pub iteration: usize,
    /// Evaluations so far.
    pub evaluations: usize,
    /// Objective (log evidence or bound, plus log prior) on the model's scale.
    pub objective: f64,
    /// Largest component of the gradient with respect to the free numbers.
    pub gradient_norm: f64,
    /// Seconds since the start.
    pub seconds: f64,
    /// The best hyperparameters so far (all but inducing points and q), constrained, in the order of
    /// the paths; for minibatches the present ones.
    pub parameters: Vec<f64>,
    /// Mean log density of held-out rows on the model's scale, where there are some.
    #[serde(default)]
    pub held_out: Option<f64>,
}

/// How training went.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TrainReport {
    /// Why it stopped, in a sentence.
    pub stopped: String,
    /// Whether a criterion of convergence was met.
    pub converged: bool,
    /// Iterations done.
    pub iterations: usize,
    /// Evaluations of objective and gradient.
    pub evaluations: usize,
    /// Evaluations that failed (a matrix was not positive definite) and from which it recovered.
    pub failures: usize,
    /// Best objective, on the model's scale.
    pub objective: f64,
    /// Wall-clock seconds.
    pub seconds: f64,
    /// Diagnostics of the last successful evaluation.
    pub diagnostics: Diagnostics,
    /// What products of rows were made in where it ended.
    #[serde(default)]
    pub precision: Precision,
    /// One point per iteration.
    pub trace: Vec<TracePoint>,
    /// Nats a row that the last quarter of the epochs was better than the one before, where a training by minibatches
    /// ended while its bound still rose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rising: Option<f64>,
    /// How well chains mixed, where the posterior was sampled.
    #[serde(default)]
    pub mixing: Option<Mixing>,
    /// The best objectives of all starts, where there were several, in their order; the largest is the model's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub starts: Vec<f64>,
    /// The starting values that were judged by a few iterations each, the one that was taken first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub judged: Vec<Judged>,
    /// The kernels that were considered, where one was to be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernels: Option<KernelChoice>,
    /// What predictions are averaged over, where that is not one setting of the hyperparameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub averaged: Option<Averaged>,
    /// What the rows say against the likelihood; empty if nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
}

/// Settings of the hyperparameters that stand for their posterior ([`crate::samplers::laplace`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Averaged {
    /// How many different ones.
    pub settings: usize,
    /// Components of the even mixture that they make, each some of them.
    pub components: usize,
    /// The effective share of the points that were given weights: near 1 where the posterior of the hyperparameters is near a
    /// normal one.
    pub effective: f64,
}

/// A start, and what a few iterations from it came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// Where it came from, in a few words.
    pub start: String,
    /// Objective on the rows and with the points that it was judged by, on the model's scale.
    pub objective: f64,
}

/// What happens while a model is fitted.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// Kernels are being judged on so many rows.
    Kernels {
        /// How many.
        rows: usize,
    },
    /// Functions of the targets are learnt in their place ([`crate::fit::FitOptions::target_transform`]).
    Targets {
        /// What to add to an objective on the model's scale to have it in the data's units.
        log_jacobian: f64,
    },
    /// Hyperparameters are being trained on at most so many rows, without inducing points.
    Pilot {
        /// How many.
        rows: usize,
    },
    /// Inducing points are being chosen.
    Inducing {
        /// How many.
        count: usize,
    },
    /// Inducing points are being compared with nearest neighbours on so many rows.
    Neighbours {
        /// How many.
        rows: usize,
    },
    /// The training of the model that was prepared begins.
    Training,
    /// Minibatches begin, after which as many passes over all rows as `passes` end the training.
    Ahead {
        /// How many.
        passes: f64,
    },
    /// A training from another start begins ([`crate::fit::FitOptions::restarts`]).
    Restart {
        /// Which, from 1.
        restart: usize,
        /// Of how many.
        of: usize,
        /// The best objective so far, on the model's scale.
        best: Option<f64>,
    },
    /// An iteration has been made; for minibatches an epoch.
    Iteration(&'a TracePoint),
    /// Chains have made so many sweeps.
    Sampling {
        /// Sweeps of every chain.
        done: usize,
        /// Of how many.
        total: usize,
        /// Seconds since the start of the sampling.
        seconds: f64,
    },
    /// A checkpoint could not be written; the training continues.
    CheckpointFailed {
        /// What happened, in a sentence.
        reason: &'a str,
    },
    /// A minibatch has been learnt from.
    Batch {
        /// Epoch, from 0.
        epoch: usize,
        /// Batch in the epoch, from 0.
        batch: usize,
        /// Batches in an epoch.
        per_epoch: usize,
        /// Most epochs.
        epochs: usize,
        /// Mean of this epoch's estimates of the bound, on the model's scale.
        objective: f64,
        /// Seconds since the start.
        seconds: f64,
    },
}

/// Somebody who watches the training and may end it. `()` watches nothing.
pub trait Observer {
    /// Receives everything that happens. After an iteration [`ControlFlow::Break`] ends the
    /// training, with the best parameters found.
    fn event(&mut self, event: Event<'_>) -> ControlFlow<()> {
        let _ = event;
        ControlFlow::Continue(())
    }

    /// Tells whether to stop, asked before every evaluation of the objective; `true` ends the
    /// training at once, with the best parameters found.
    fn interrupted(&self) -> bool {
        false
    }

    /// Returns the share of a time limit that is used, from 0 to 1, by which learning rates of minibatches fall where the
    /// time ends before the planned steps do ([`crate::optim::Progress`]). None, where there is no limit, changes nothing.
    fn time_used(&self) -> Option<f64> {
        None
    }
}

impl Observer for () {}

/// Maximises the model's objective plus log prior over the parameters that are not frozen. However it
/// ends, the model is left at the best parameters evaluated.
///
/// A mean function that is still 0 begins where ordinary least squares has it (with Gaussian noise; else at the constants of
/// [`crate::likelihoods::Likelihood::initialise`]). A q at which the bound is far below what guesses of the latent values
/// give, as under a wide prior where a link is exponential, begins with these.
///
/// # Errors
/// An error that is not recoverable, or any at the starting point. [`crate::Error::Interrupted`] only if
/// there was no evaluation at all; later interruptions end the training with its best state.
pub fn train(
    model: &mut Model,
    engine: &dyn Engine,
    data: &dyn Source,
    options: &TrainOptions,
    observer: &mut dyn Observer,
) -> Result<TrainReport> {
    train_from(model, engine, data, options, GoingOn::default(), observer)
}

/// Does the same with checkpoints, and from one: the model is then as [`Standing::values`] say.
///
/// # Errors
/// As for [`train`]; those of the checkpointer; [`crate::Error::Invalid`] for a checkpoint of another way to train.
pub fn train_from(
    model: &mut Model,
    engine: &dyn Engine,
    data: &dyn Source,
    options: &TrainOptions,
    going: GoingOn<'_>,
    observer: &mut dyn Observer,
) -> Result<TrainReport> {
    if going.resume.is_none() && options.max_iterations > 0 {
        start::improve(model, engine, data)?;
    }
    match model.q.as_ref().and_then(Variational::tying) {
        Some(_) => em::train_em(model, engine, data, options, going, observer),
        None => holding::climb(model, engine, data, options, going, observer),
    }
}

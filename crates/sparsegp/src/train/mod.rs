//! The training loop: optimiser steps on a model's objective, watched.

mod adapting;
mod adaptive_rate;
mod em;
mod minibatch;
mod options;
mod pace;
mod stochastic;
mod variables;

pub use adapting::Adapting;
pub use adaptive_rate::{AdaptiveRate, RelativeChange};
pub use em::EmOptions;
pub use options::{EPOCHS, LEAST_ITERATIONS, StochasticOptions};
pub use pace::{Pace, PaceState};
pub use stochastic::{Checkpointer, Surroundings, TrainingState, train_batches};

use crate::data::Source;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::inverse_free::SolverOptions;
use crate::methods::Diagnostics;
use crate::model::Model;
use crate::optim::{AdamOptions, AnyOptimiser, Lbfgs, LbfgsOptions, Objective, Optimiser, Status};
use crate::samplers::Mixing;
use crate::variational::Variational;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::time::Instant;
use variables::Variable;

/// Which optimiser, and when to stop.
#[derive(Clone, Debug)]
pub struct TrainOptions {
    /// The optimiser.
    pub optimiser: OptimiserKind,
    /// Most iterations.
    pub max_iterations: usize,
    /// How steps of sites alternate with the optimiser, for the methods that keep q as sites.
    pub em: EmOptions,
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
#[derive(Clone, Debug, Serialize, Deserialize)]
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
    /// One point per iteration.
    pub trace: Vec<TracePoint>,
    /// How well chains mixed, where the posterior was sampled.
    #[serde(default)]
    pub mixing: Option<Mixing>,
}

/// What happens while a model is fitted.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// Hyperparameters are being trained by exact inference on so many rows.
    Pilot {
        /// How many.
        rows: usize,
    },
    /// Inducing points are being chosen.
    Inducing {
        /// How many.
        count: usize,
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
    /// A minibatch has been learnt from.
    Batch {
        /// Epoch, from 0.
        epoch: usize,
        /// Batch in the epoch, from 0.
        batch: usize,
        /// Batches in an epoch.
        per_epoch: usize,
        /// Mean of this epoch's estimates of the bound, on the model's scale.
        objective: f64,
        /// Seconds since the start.
        seconds: f64,
    },
}

/// Somebody who watches the training and may end it. `()` watches nothing.
pub trait Observer {
    /// Told of everything that happens. After an iteration [`ControlFlow::Break`] ends the training,
    /// with the best parameters found.
    fn event(&mut self, event: Event<'_>) -> ControlFlow<()> {
        let _ = event;
        ControlFlow::Continue(())
    }

    /// Asked before every evaluation of the objective; `true` ends the training at once, with the
    /// best parameters found.
    fn interrupted(&self) -> bool {
        false
    }
}

impl Observer for () {}

struct Negated<'a> {
    variables: Vec<Variable>,
    model: &'a mut Model,
    engine: &'a dyn Engine,
    data: &'a dyn Source,
    observer: &'a mut dyn Observer,
    evaluations: usize,
    failures: usize,
    diagnostics: Diagnostics,
    /// The best point evaluated and its value, whether or not a step ended there.
    best: Option<(Vec<f64>, f64)>,
}

impl Negated<'_> {
    /// Moves the model to the optimiser's point.
    fn set(&mut self, x: &[f64]) {
        let free: Vec<f64> = x.iter().zip(&self.variables).map(|(x, v)| v.free(*x).0).collect();
        self.model.set_free_values(&free);
    }
}

impl Objective for Negated<'_> {
    fn dim(&self) -> usize {
        self.model.free_count()
    }

    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> Result<f64> {
        if self.observer.interrupted() {
            return Err(Error::Interrupted);
        }
        self.set(x);
        self.evaluations += 1;
        let settled = settle(self.model);
        match settled.and_then(|()| self.model.evaluate_free(self.engine, self.data)) {
            Ok((evaluation, free)) => {
                self.diagnostics = evaluation.diagnostics;
                let value = -evaluation.value;
                if value.is_finite() && self.best.as_ref().is_none_or(|(_, best)| value < *best) {
                    self.best = Some((x.to_vec(), value));
                }
                let slopes = x.iter().zip(&self.variables).map(|(x, v)| v.free(*x).1);
                let scaled = free.iter().zip(slopes).map(|(f, slope)| -f * slope);
                gradient.iter_mut().zip(scaled).for_each(|(g, f)| *g = f);
                Ok(value)
            }
            Err(error) => {
                self.failures += usize::from(error.is_recoverable());
                Err(error)
            }
        }
    }
}

/// Brings R-SVGP's T up to date where it follows, as near as rounding lets it come: the objective must be a function of the
/// parameters.
fn settle(model: &mut Model) -> Result<()> {
    match model.method.uncollapsed() {
        Some(method) if method.follows(model) => {
            method.settle(model, &SolverOptions::strict()).map(|_| ())
        }
        _ => Ok(()),
    }
}

/// Largest move of a variable of L-BFGS in one iteration: of a logarithm, or in units of
/// [`Variable::Scaled`]. A
/// longer one may end where a lengthscale is below every distance: all looks like noise there, and no
/// gradient leads back.
const LARGEST_MOVE: f64 = 1.0;

/// Whether a parameter is none of the few that describe a model: inducing points and q.
pub fn is_bulky(path: &str) -> bool {
    path.starts_with("inducing.points") || path.starts_with("q.")
}

/// All parameters of a model but its inducing points and q: constrained values, in their order.
pub fn hyperparameters(model: &Model) -> Vec<f64> {
    let params = model.params();
    let own = params.iter().filter(|(path, _)| !is_bulky(path));
    own.flat_map(|(_, p)| p.value().iter().copied()).collect()
}

/// Sets what [`hyperparameters`] gives.
///
/// # Errors
/// [`Error::Shape`] for another number of values, [`Error::InvalidParameter`] for one out of range.
pub fn set_hyperparameters(model: &mut Model, values: &[f64]) -> Result<()> {
    let own = |path: &str| !is_bulky(path);
    let expected: usize =
        model.params().iter().filter(|(path, _)| own(path)).map(|(_, p)| p.len()).sum();
    if values.len() != expected {
        return Err(Error::Shape {
            what: "hyperparameters".into(),
            expected: expected.to_string(),
            found: values.len().to_string(),
        });
    }
    let mut rest = values;
    for (path, param) in model.params_mut().into_iter().filter(|(path, _)| own(path)) {
        let (its, tail) = rest.split_at(param.len());
        rest = tail;
        // an empty parameter has nothing to be set to
        if !its.is_empty() {
            param.set(&path, its)?;
        }
    }
    Ok(())
}

/// Maximises the model's objective plus log prior over the parameters that are not frozen. However it
/// ends, the model is left at the best parameters evaluated.
///
/// # Errors
/// An error that is not recoverable, or any at the starting point. [`Error::Interrupted`] only if
/// there was no evaluation at all; later interruptions end the training with its best state.
pub fn train(
    model: &mut Model,
    engine: &dyn Engine,
    data: &dyn Source,
    options: &TrainOptions,
    observer: &mut dyn Observer,
) -> Result<TrainReport> {
    match model.q.as_ref().and_then(Variational::tying) {
        Some(_) => em::train_em(model, engine, data, options, observer),
        None => ascend(model, engine, data, options, observer),
    }
}

/// The same for what the optimiser sees alone: sites stay.
fn ascend(
    model: &mut Model,
    engine: &dyn Engine,
    data: &dyn Source,
    options: &TrainOptions,
    observer: &mut dyn Observer,
) -> Result<TrainReport> {
    let start = Instant::now();
    let free = model.free_values();
    let (variables, x0) = Variable::all(model, &options.optimiser);
    let mut optimiser = match &options.optimiser {
        OptimiserKind::Lbfgs(o) => {
            let largest_move = o.largest_move.or(Some(LARGEST_MOVE));
            AnyOptimiser::Lbfgs(Lbfgs::new(x0, LbfgsOptions { largest_move, ..o.clone() }))
        }
        OptimiserKind::Adam(o) => AnyOptimiser::Adam(crate::optim::Adam::new(x0, o.clone())),
    };
    let mut objective = Negated {
        variables,
        model,
        engine,
        data,
        observer,
        evaluations: 0,
        failures: 0,
        diagnostics: Diagnostics::default(),
        best: None,
    };
    let mut trace = Vec::new();
    let mut converged = false;
    let stopped = loop {
        if optimiser.iterations() >= options.max_iterations {
            break format!(
                "stopped after {} iterations, the most allowed; it may improve with more",
                options.max_iterations
            );
        }
        let step = match optimiser.step(&mut objective) {
            Ok(step) => step,
            Err(Error::Interrupted) if objective.best.is_some() => {
                break "interrupted; the best parameters found are kept".into();
            }
            Err(error) => {
                match objective.best.take() {
                    Some((best, _)) => objective.set(&best),
                    None => objective.model.set_free_values(&free),
                }
                return Err(error);
            }
        };
        if let Some((best, _)) = optimiser.best() {
            objective.set(best);
        }
        let point = TracePoint {
            iteration: optimiser.iterations(),
            evaluations: optimiser.evaluations(),
            objective: -step.value,
            gradient_norm: match (optimiser.best(), optimiser.gradient()) {
                (Some((x, _)), Some(gradient)) => {
                    let slopes = x.iter().zip(&objective.variables).map(|(x, v)| v.free(*x).1);
                    gradient.iter().zip(slopes).fold(0.0, |m, (g, s)| f64::max(m, (g / s).abs()))
                }
                _ => step.gradient_norm,
            },
            seconds: start.elapsed().as_secs_f64(),
            parameters: hyperparameters(objective.model),
            held_out: None,
        };
        let flow = objective.observer.event(Event::Iteration(&point));
        trace.push(point);
        match step.status {
            Status::Running => {}
            Status::Converged(_) => {
                converged = true;
                break step.status.to_string();
            }
            Status::Stalled(_) => break step.status.to_string(),
        }
        if flow.is_break() {
            break "stopped early; the best parameters found are kept".into();
        }
    };
    let objective_value = match objective.best.take() {
        Some((best, value)) => {
            objective.set(&best);
            settle(objective.model)?;
            -value
        }
        // no iteration was allowed: the parameters stay as they are, to the bit
        None => {
            if objective.observer.interrupted() {
                return Err(Error::Interrupted);
            }
            objective.evaluations += 1;
            let (evaluation, _) = objective.model.evaluate_free(engine, data)?;
            objective.diagnostics = evaluation.diagnostics;
            evaluation.value
        }
    };
    Ok(TrainReport {
        stopped,
        converged,
        iterations: optimiser.iterations(),
        evaluations: objective.evaluations,
        failures: objective.failures,
        objective: objective_value,
        seconds: start.elapsed().as_secs_f64(),
        diagnostics: objective.diagnostics,
        trace,
        mixing: None,
    })
}

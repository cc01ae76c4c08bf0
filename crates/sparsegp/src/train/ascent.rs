//! The optimiser's way up, all rows at once.

use super::climb::climb_sites;
use super::em::EmOptions;
use super::going_on::{self, Ascent, Clock, GoingOn, Keeper, Place};
use super::variables::Variables;
use super::{Event, Observer, OptimiserKind, TracePoint, TrainOptions, TrainReport};
use crate::data::Source;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::inverse_free::SolverOptions;
use crate::methods::{Diagnostics, QSteps, Uncollapsed};
use crate::model::Model;
use crate::model::hyperparameters;
use crate::optim::{AnyOptimiser, Lbfgs, LbfgsOptions, Objective, Optimiser, Status};
use crate::variational::Variational;

struct Negated<'a> {
    variables: Variables,
    /// Targets of all rows.
    terms: f64,
    model: &'a mut Model,
    engine: &'a dyn Engine,
    data: &'a dyn Source,
    observer: &'a mut dyn Observer,
    evaluations: usize,
    failures: usize,
    diagnostics: Diagnostics,
    /// The best point evaluated and its value, whether or not a step ended there.
    best: Option<(Vec<f64>, f64)>,
    /// The barrier in that value ([`crate::methods::Method::climb`]); none if the point is of a checkpoint.
    barrier: Option<f64>,
    /// What to do with sites at every point.
    profile: Option<Profile<'a>>,
}

/// The objective is the bound at the best sites for every point, not at sites that stay. Its gradient is that at
/// fixed sites, since the bound no longer rises in them (the envelope theorem).
pub(super) struct Profile<'a> {
    /// How sites move.
    pub(super) em: &'a EmOptions,
    pub(super) steps: &'a mut (dyn QSteps + 'static),
    /// q at the best point: from there its steps begin, wherever the search was last.
    q: Option<Variational>,
}

impl<'a> Profile<'a> {
    pub(super) fn new(em: &'a EmOptions, steps: &'a mut (dyn QSteps + 'static)) -> Self {
        Self { em, steps, q: None }
    }
}

impl Negated<'_> {
    /// Moves the model to the optimiser's point.
    fn set(&mut self, x: &[f64]) {
        self.model.set_free_values(&self.variables.free(x));
    }

    /// The same, with the q that goes with the best point.
    fn back_to(&mut self, best: &[f64]) {
        self.set(best);
        if let Some(q) = self.profile.as_ref().and_then(|profile| profile.q.as_ref()) {
            self.model.q = Some(q.clone());
        }
    }

    /// Where the training stands after an iteration.
    fn place(&self, optimiser: &AnyOptimiser, seconds: f64, trace: &[TracePoint]) -> Place {
        Place::Ascent(Box::new(Ascent {
            optimiser: optimiser.clone(),
            scales: self.variables.scales(),
            best: self.best.clone(),
            evaluations: self.evaluations,
            failures: self.failures,
            diagnostics: self.diagnostics,
            seconds,
            trace: trace.to_vec(),
            before: None,
        }))
    }

    /// Brings what is not a variable of the optimiser to its best at the present point.
    fn settle(&mut self) -> Result<()> {
        let Some(Profile { em, steps, q }) = &mut self.profile else { return settle(self.model) };
        match q {
            Some(q) => self.model.q = Some(q.clone()),
            None => q.clone_from(&self.model.q),
        }
        let observer = &*self.observer;
        // sites have no prior: bounds at the same hyperparameters differ as objectives do
        let best = self.best.as_ref().map_or(f64::NEG_INFINITY, |(_, value)| -value);
        let best = best - self.model.log_prior();
        let passes =
            climb_sites(self.model, self.engine, self.data, (em, best), &mut **steps, observer)?;
        self.evaluations += passes;
        Ok(())
    }
}

impl Objective for Negated<'_> {
    fn dim(&self) -> usize {
        self.model.free_count()
    }

    fn terms(&self) -> Option<f64> {
        Some(self.terms)
    }

    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> Result<f64> {
        if self.observer.interrupted() {
            return Err(Error::Interrupted);
        }
        self.set(x);
        self.evaluations += 1;
        let settled = self.settle();
        match settled.and_then(|()| self.model.climb_free(self.engine, self.data)) {
            Ok((evaluation, free, barrier)) => {
                self.diagnostics = evaluation.diagnostics;
                let value = -evaluation.value;
                if value.is_finite() && self.best.as_ref().is_none_or(|(_, best)| value < *best) {
                    self.best = Some((x.to_vec(), value));
                    self.barrier = Some(barrier);
                    if let Some(profile) = &mut self.profile {
                        profile.q.clone_from(&self.model.q);
                    }
                }
                gradient.iter_mut().zip(&free).for_each(|(g, f)| *g = -f);
                self.variables.pull(x, gradient);
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
pub(super) fn settle(model: &mut Model) -> Result<()> {
    match Uncollapsed::of(model.method) {
        Ok(method) if method.follows(model) => {
            method.settle(model, &SolverOptions::strict()).map(|_| ())
        }
        _ => Ok(()),
    }
}

/// How many targets all rows have: the scale of what counts as small in their objective, whatever the units.
pub(super) fn terms(data: &dyn Source) -> f64 {
    (data.population() * data.outputs()).max(1) as f64
}

/// Largest move of a variable of L-BFGS in one iteration: of a logarithm, or in units of
/// [`Variables`]. A
/// longer one may end where a lengthscale is below every distance: all looks like noise there, and no
/// gradient leads back.
const LARGEST_MOVE: f64 = 1.0;

/// [`super::train`] for only what the optimiser sees: sites stay, or follow as the profile says.
pub(super) fn ascend(
    model: &mut Model,
    engine: &dyn Engine,
    data: &dyn Source,
    options: &TrainOptions,
    profile: Option<Profile<'_>>,
    mut going: GoingOn<'_>,
    observer: &mut dyn Observer,
) -> Result<TrainReport> {
    let mut start = Clock::default();
    let free = model.free_values();
    let (variables, x0) = Variables::all(model, data, &options.optimiser)?;
    let mut optimiser = match &options.optimiser {
        OptimiserKind::Lbfgs(o) => {
            let largest_move = o.largest_move.or(Some(LARGEST_MOVE));
            AnyOptimiser::Lbfgs(Lbfgs::new(x0, LbfgsOptions { largest_move, ..o.clone() }))
        }
        OptimiserKind::Adam(o) => AnyOptimiser::Adam(crate::optim::Adam::new(x0, o.clone())),
    };
    let mut objective = Negated {
        variables,
        terms: terms(data),
        model,
        engine,
        data,
        observer,
        evaluations: 0,
        failures: 0,
        diagnostics: Diagnostics::default(),
        best: None,
        barrier: None,
        profile,
    };
    let mut trace = Vec::new();
    if let Some(place) = going.resume.take() {
        let Place::Ascent(place) = place else { return Err(going_on::another()) };
        let place = *place;
        if [place.optimiser.x().len(), place.scales.len()] != [optimiser.x().len(); 2] {
            return Err(going_on::another());
        }
        optimiser = place.optimiser;
        let variables = objective.variables.with_scales(place.scales);
        objective.variables = variables.ok_or_else(going_on::another)?;
        (objective.best, objective.evaluations) = (place.best, place.evaluations);
        (objective.failures, objective.diagnostics) = (place.failures, place.diagnostics);
        (trace, start) = (place.trace, Clock::after(place.seconds));
    }
    let mut keeper = Keeper::new(going, options.checkpoint_seconds);
    let mut converged = false;
    let stopped = loop {
        // of a training that had ended
        if optimiser.status().is_final() {
            converged = matches!(optimiser.status(), Status::Converged(_));
            break optimiser.status().to_string();
        }
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
                    Some((best, _)) => objective.back_to(&best),
                    None => objective.model.set_free_values(&free),
                }
                return Err(error);
            }
        };
        if let Some((best, _)) = optimiser.best() {
            objective.back_to(best);
        }
        let point = TracePoint {
            iteration: optimiser.iterations(),
            evaluations: objective.evaluations,
            objective: -step.value,
            gradient_norm: match (optimiser.best(), optimiser.gradient()) {
                (Some((x, _)), Some(gradient)) => {
                    let mut gradient = gradient.to_vec();
                    objective.variables.push(x, &mut gradient);
                    gradient.iter().fold(0.0, |m, g| f64::max(m, g.abs()))
                }
                _ => step.gradient_norm,
            },
            seconds: start.seconds(),
            parameters: hyperparameters(objective.model),
            held_out: None,
        };
        let flow = objective.observer.event(Event::Iteration(&point));
        trace.push(point);
        keeper.look(objective.model, || objective.place(&optimiser, start.seconds(), &trace))?;
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
    keeper.finish()?;
    let objective_value = match objective.best.take() {
        Some((best, value)) => {
            objective.back_to(&best);
            settle(objective.model)?;
            let barrier = match objective.barrier {
                Some(barrier) => barrier,
                // another run climbed there
                None => objective.model.climb_free(engine, data)?.2,
            };
            barrier - value
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
        seconds: start.seconds(),
        diagnostics: objective.diagnostics,
        trace,
        ..TrainReport::default()
    })
}

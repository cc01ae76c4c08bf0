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
use crate::optim::{Adam, AnyOptimiser, Lbfgs, LbfgsOptions, Objective, Optimiser, Status, Step};
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

    /// Does the same, with the q that goes with the best point.
    fn back_to(&mut self, best: &[f64]) {
        self.set(best);
        if let Some(q) = self.profile.as_ref().and_then(|profile| profile.q.as_ref()) {
            self.model.q = Some(q.clone());
        }
    }

    /// Returns where the training stands after an iteration.
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

impl Negated<'_> {
    /// Goes to the best point evaluated. Returns the objective there.
    fn end(&mut self) -> Result<f64> {
        let Some((best, value)) = self.best.take() else {
            // no iteration was allowed: the parameters stay as they are, to the bit
            if self.observer.interrupted() {
                return Err(Error::Interrupted);
            }
            self.evaluations += 1;
            let (evaluation, _) = self.model.evaluate_free(self.engine, self.data)?;
            self.diagnostics = evaluation.diagnostics;
            return Ok(evaluation.value);
        };
        self.back_to(&best);
        settle(self.model)?;
        let barrier = match self.barrier {
            Some(barrier) => barrier,
            // another run climbed there
            None => self.model.climb_free(self.engine, self.data)?.2,
        };
        Ok(barrier - value)
    }
}

impl Objective for Negated<'_> {
    fn dim(&self) -> usize {
        self.model.free_count()
    }

    fn terms(&self) -> Option<f64> {
        Some(self.terms)
    }

    fn noise(&self) -> f64 {
        self.diagnostics.noise
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
                // among values that differ by noise the last counts, to which slopes have led
                let noise = self.diagnostics.noise;
                let lower = self.best.as_ref().is_none_or(|(_, best)| value < *best + noise);
                if value.is_finite() && lower {
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

/// Returns how many targets all rows have: the scale of what counts as small in their objective,
/// whatever the units.
pub(super) fn terms(data: &dyn Source) -> f64 {
    (data.population() * data.outputs()).max(1) as f64
}

/// Largest move of a variable of L-BFGS in one iteration: of a logarithm, or in units of
/// [`Variables`]. A
/// longer one may end where a lengthscale is below every distance: all looks like noise there, and no
/// gradient leads back.
const LARGEST_MOVE: f64 = 1.0;

/// Does [`super::train`] for what the optimiser sees only: sites stay, or follow as the profile
/// says.
pub(super) fn ascend(
    model: &mut Model,
    engine: &dyn Engine,
    data: &dyn Source,
    options: &TrainOptions,
    profile: Option<Profile<'_>>,
    mut going: GoingOn<'_>,
    observer: &mut dyn Observer,
) -> Result<TrainReport> {
    let free = model.free_values();
    let (variables, x0) = Variables::all(model, data, &options.optimiser)?;
    let optimiser = match &options.optimiser {
        OptimiserKind::Lbfgs(o) => {
            let largest_move = o.largest_move.or(Some(LARGEST_MOVE));
            AnyOptimiser::Lbfgs(Lbfgs::new(x0, LbfgsOptions { largest_move, ..o.clone() }))
        }
        OptimiserKind::Adam(o) => AnyOptimiser::Adam(Adam::new(x0, o.clone())),
    };
    let objective = Negated {
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
    let resume = going.resume.take();
    let keeper = Keeper::new(going, options.checkpoint_seconds);
    let start = Clock::default();
    let mut way = Way { objective, optimiser, free, trace: Vec::new(), start, keeper };
    if let Some(place) = resume {
        way.resume(place)?;
    }
    let (stopped, converged) = loop {
        if let Some(end) = way.iterate(options.max_iterations)? {
            break end;
        }
    };
    way.end(stopped, converged)
}

/// Why a way ends, and whether it has converged.
type End = (String, bool);

/// The way of an optimiser.
struct Way<'a, 'k> {
    objective: Negated<'a>,
    optimiser: AnyOptimiser,
    /// Free values where it began.
    free: Vec<f64>,
    trace: Vec<TracePoint>,
    start: Clock,
    keeper: Keeper<'k>,
}

impl Way<'_, '_> {
    /// Continues from a checkpoint.
    fn resume(&mut self, place: Place) -> Result<()> {
        let Place::Ascent(place) = place else { return Err(going_on::another()) };
        let place = *place;
        if [place.optimiser.x().len(), place.scales.len()] != [self.optimiser.x().len(); 2] {
            return Err(going_on::another());
        }
        self.optimiser = place.optimiser;
        let variables = self.objective.variables.clone().with_scales(place.scales);
        self.objective.variables = variables.ok_or_else(going_on::another)?;
        (self.objective.best, self.objective.evaluations) = (place.best, place.evaluations);
        (self.objective.failures, self.objective.diagnostics) = (place.failures, place.diagnostics);
        (self.trace, self.start) = (place.trace, Clock::after(place.seconds));
        Ok(())
    }

    /// Makes an iteration, unless the way has ended before. Returns why it ends there.
    fn iterate(&mut self, most: usize) -> Result<Option<End>> {
        // of a training that had ended
        let status = self.optimiser.status();
        if status.is_final() {
            return Ok(Some((status.to_string(), matches!(status, Status::Converged(_)))));
        }
        if self.optimiser.iterations() >= most {
            let text = format!(
                "stopped after {most} iterations, the most allowed; it may improve with more"
            );
            return Ok(Some((text, false)));
        }
        let step = match self.optimiser.step(&mut self.objective) {
            Ok(step) => step,
            Err(Error::Interrupted) if self.objective.best.is_some() => {
                return Ok(Some(("interrupted; the best parameters found are kept".into(), false)));
            }
            Err(error) => {
                match self.objective.best.take() {
                    Some((best, _)) => self.objective.back_to(&best),
                    None => self.objective.model.set_free_values(&self.free),
                }
                return Err(error);
            }
        };
        if let Some((best, _)) = self.optimiser.best() {
            self.objective.back_to(best);
        }
        let point = self.point(&step);
        let flow = self.objective.observer.event(Event::Iteration(&point));
        self.trace.push(point);
        let Self { objective, optimiser, trace, start, keeper, .. } = self;
        keeper.look(objective.model, || objective.place(optimiser, start.seconds(), trace))?;
        Ok(match step.status {
            Status::Running if flow.is_break() => {
                Some(("stopped early; the best parameters found are kept".into(), false))
            }
            Status::Running => None,
            status => Some((status.to_string(), matches!(status, Status::Converged(_)))),
        })
    }

    /// Returns the point of the trace after a step.
    fn point(&self, step: &Step) -> TracePoint {
        let Self { objective, optimiser, .. } = self;
        TracePoint {
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
            seconds: self.start.seconds(),
            parameters: hyperparameters(objective.model),
            held_out: None,
        }
    }

    /// Goes to the best point, and reports.
    fn end(mut self, stopped: String, converged: bool) -> Result<TrainReport> {
        self.keeper.finish()?;
        let objective_value = self.objective.end()?;
        Ok(TrainReport {
            stopped,
            converged,
            iterations: self.optimiser.iterations(),
            evaluations: self.objective.evaluations,
            failures: self.objective.failures,
            objective: objective_value,
            seconds: self.start.seconds(),
            diagnostics: self.objective.diagnostics,
            trace: self.trace,
            ..TrainReport::default()
        })
    }
}

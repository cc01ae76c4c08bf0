//! Expectation maximisation on all rows: sites move by natural-gradient steps, hyperparameters by L-BFGS
//! (or Adam) at fixed sites (Adam, Chang, Khan & Solin 2021, Alg. 2).

use super::ascent::{Profile, ascend, terms};
use super::climb::settle_sites;
use super::counting::Counting;
use super::going_on::{self, Clock, GoingOn, Keeper, Place, Rounds};
use super::minibatch::HALVINGS;
use super::{Observer, OptimiserKind, TrainOptions, TrainReport};
use crate::data::Source;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::methods::{QSteps, q_steps};
use crate::model::Model;
use crate::optim::{LbfgsOptions, Plateau};
use crate::params::Param;

/// How to alternate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EmOptions {
    /// Most steps of q in a round. Between them the likelihood's parameters move too where their best values at
    /// that q are in closed form ([`crate::likelihoods::augmented::Augmented::powers`]).
    pub e_steps: usize,
    /// Their size, 0 < ρ ≤ 1; by default 1 wherever no step can overshoot (Gaussian noise, local variables),
    /// else [`EmOptions::CAREFUL`].
    pub rate: Option<f64>,
    /// Most iterations on hyperparameters and inducing points in a round.
    pub m_steps: usize,
    /// A phase ends where a step, and the training where two rounds in turn raise the bound by less than
    /// this fraction of it; where L-BFGS has a plateau ([`crate::optim::LbfgsOptions::plateau`]), the tolerance of that
    /// one ends the training. (Rounds may continue to rise by ever so little: a thousand rows of
    /// two classes gained 0.14 nats in all in 950 iterations after the first 50.)
    pub tolerance: f64,
    /// After so many rounds L-BFGS climbs the bound at the best sites for every point that it tries, until it
    /// converges: rounds crawl where sites and hyperparameters must move together. None for rounds to the end, as in
    /// the paper.
    pub rounds: Option<usize>,
}

impl EmOptions {
    /// Size of steps that may overshoot, unless one is given.
    pub const CAREFUL: f64 = 0.8;
}

impl Default for EmOptions {
    fn default() -> Self {
        Self { e_steps: 20, rate: None, m_steps: 10, tolerance: 1e-5, rounds: Some(2) }
    }
}

/// Nats per target that rounding leaves of the promise of a step of q.
const ROUNDING: f64 = 1e-12;

/// Most passes to settle q to the last digits at the end of a training.
const MOST_TO_SETTLE: usize = 100;

/// The same where steps of q raise the bound no more: what large precisions leave, and such as are cut at 0.
const SLIGHT: f64 = 1e-5;

/// Returns what a rise of the bound is compared with: its own size, or the number of targets if
/// that is less.
fn size(value: f64, data: &dyn Source) -> f64 {
    value.abs().min(terms(data)).max(1.0)
}

/// Makes steps of q until they raise the bound by little, or until somebody interrupts. Returns
/// bound and log prior there, and the passes made.
fn e_steps(
    model: &mut Model,
    engine: &dyn Engine,
    data: &dyn Source,
    options: &EmOptions,
    steps: &mut dyn QSteps,
    observer: &dyn Observer,
) -> Result<(f64, usize)> {
    // sites have no prior: it stays what it is
    let prior = model.log_prior();
    let (mut last, mut passes) = (f64::NEG_INFINITY, 0);
    for _ in 0..options.e_steps {
        if passes > 0 && observer.interrupted() {
            return Ok((last + prior, passes));
        }
        let (value, moved) = e_step(model, engine, data, options.rate, steps)?;
        passes += 1;
        if !moved || value - last <= options.tolerance * size(value, data) {
            return Ok((value + prior, passes));
        }
        last = value;
        passes += update_likelihood(model, engine, data, steps)?;
    }
    Ok((steps.value(model, engine, data)? + prior, passes + 1))
}

/// Makes one step of q that does not lower the bound. Returns the bound before it and whether there
/// was one.
fn e_step(
    model: &mut Model,
    engine: &dyn Engine,
    data: &dyn Source,
    rate: Option<f64>,
    steps: &mut dyn QSteps,
) -> Result<(f64, bool)> {
    let bound = steps.bound();
    let certain = bound.never_falls(&*model.likelihood);
    let in_turns = bound.turns(&*model.likelihood) > 1;
    let mut rate = rate.unwrap_or(if certain { 1.0 } else { EmOptions::CAREFUL });
    steps.look(model, engine, data)?;
    let value = steps.centre(model)?;
    let before = model.q.clone();
    for halvings in 0..=HALVINGS {
        if halvings > 0 {
            model.q.clone_from(&before);
            rate *= 0.5;
            if in_turns {
                // later turns have looked elsewhere
                steps.look(model, engine, data)?;
            }
        }
        let moved = match steps.step(model, engine, data, rate) {
            Ok(()) if certain => return Ok((value, true)),
            Ok(()) => steps.value(model, engine, data),
            Err(error) => Err(error),
        };
        match moved {
            Ok(moved) if moved >= value - 1e-10 * value.abs() => return Ok((value, true)),
            Ok(_) => {}
            Err(error) if error.is_recoverable() => {}
            Err(error) => return Err(error),
        }
    }
    model.q = before;
    Ok((value, false))
}

/// Gives the likelihood's parameters their best values at the present q, or better ones than they have, where that is in
/// closed form; those that are frozen or have a prior stay. Returns how many passes it took.
fn update_likelihood(
    model: &mut Model,
    engine: &dyn Engine,
    data: &dyn Source,
    steps: &mut dyn QSteps,
) -> Result<usize> {
    let bound = steps.bound();
    let free = |(_, param): &(String, &Param)| !param.frozen && param.prior.is_none();
    if bound.closed_form(&*model.likelihood).is_none()
        || !model.likelihood.params().iter().any(free)
    {
        return Ok(0);
    }
    let updated = steps.closed_form(model, engine, data)?;
    let mut rest = &updated[..];
    for (path, param) in model.likelihood.params_mut() {
        let (own, tail) = rest.split_at(param.len());
        rest = tail;
        if param.frozen || param.prior.is_some() {
            continue;
        }
        let value: Vec<f64> =
            param.value().iter().zip(own).map(|(old, new)| new.unwrap_or(*old)).collect();
        // the bound has one optimum in such a parameter: within bounds it is at the nearer one
        let near = |v: &f64| param.ruler().map_or(*v, |ruler| ruler.nearest(*v));
        let value: Vec<f64> = value.iter().map(near).collect();
        if value.iter().all(|v| param.transform().contains(*v)) {
            param.set(&path, &value)?;
        }
    }
    Ok(1)
}

/// Returns the optimiser for the bound at the best sites, where it is that bound's turn.
fn joint_optimiser(
    options: &TrainOptions,
    plateau: Plateau,
    state: &Rounds,
) -> Option<OptimiserKind> {
    match &options.optimiser {
        OptimiserKind::Lbfgs(o)
            if options.em.rounds.is_some_and(|n| state.rounds >= n && !state.stuck) =>
        {
            Some(OptimiserKind::Lbfgs(LbfgsOptions { plateau: Some(plateau), ..o.clone() }))
        }
        _ => None,
    }
}

/// Maximises over sites and all else in turn, then together; the last phase is one of sites.
///
/// # Errors
/// As for [`super::train`].
pub(super) fn train_em(
    model: &mut Model,
    engine: &dyn Engine,
    data: &dyn Source,
    options: &TrainOptions,
    mut going: GoingOn<'_>,
    observer: &mut dyn Observer,
) -> Result<TrainReport> {
    let start = Clock::default();
    let steps = q_steps(model)?;
    if observer.interrupted() {
        return Err(Error::Interrupted);
    }
    let resume = going.resume.take();
    let keeper = Keeper::new(going, options.checkpoint_seconds);
    let state = Rounds::default();
    let ends = Ends::of(options);
    let mut turns =
        Turns { model, engine, data, options, ends, steps, observer, state, start, keeper };
    match resume {
        None => {
            let (value, passes) = turns.e_steps()?;
            (turns.state.value, turns.state.evaluations) = (value, passes);
        }
        Some(Place::Rounds(rounds)) => {
            let within = rounds.ascent.as_ref().map_or(0.0, |ascent| ascent.seconds);
            turns.start = Clock::after(rounds.seconds + within);
            turns.state = rounds;
        }
        Some(_) => return Err(going_on::another()),
    }
    let (stopped, converged) = loop {
        if let Some(end) = turns.round()? {
            break end;
        }
    };
    turns.end(stopped, converged)
}

/// Why rounds end, and whether they have converged.
type End = (String, bool);

/// What counts as the end.
#[derive(Clone, Copy)]
struct Ends {
    plateau: Plateau,
    /// Nats per target that a step of q may promise.
    promised: f64,
    /// Most passes to settle q.
    to_settle: usize,
}

impl Ends {
    fn of(options: &TrainOptions) -> Self {
        let em = &options.em;
        let plateau = match &options.optimiser {
            OptimiserKind::Lbfgs(o) => o.plateau.unwrap_or(LbfgsOptions::plateau(em.tolerance)),
            OptimiserKind::Adam(_) => LbfgsOptions::plateau(em.tolerance),
        };
        let (promised, to_settle) = match &options.optimiser {
            OptimiserKind::Lbfgs(LbfgsOptions { plateau: None, objective_tolerance, .. }) => {
                (*objective_tolerance, MOST_TO_SETTLE)
            }
            _ => (plateau.tolerance, em.e_steps),
        };
        Self { plateau, promised: promised.max(ROUNDING), to_settle }
    }
}

/// Rounds of steps of q and iterations of the optimiser.
struct Turns<'a, 'k> {
    model: &'a mut Model,
    engine: &'a dyn Engine,
    data: &'a dyn Source,
    options: &'a TrainOptions,
    ends: Ends,
    steps: Box<dyn QSteps>,
    observer: &'a mut dyn Observer,
    state: Rounds,
    start: Clock,
    keeper: Keeper<'k>,
}

/// What the optimiser did in a round.
struct Climb {
    report: TrainReport,
    /// Whether it climbed the bound at the best sites.
    joint: bool,
    /// Whether somebody stopped it.
    stopped: bool,
    /// Iterations that were left before.
    left: usize,
}

impl Turns<'_, '_> {
    /// Makes a round, unless they have ended before. Returns why they end there.
    fn round(&mut self) -> Result<Option<End>> {
        if let Some(end) = self.ended()? {
            return Ok(Some(end));
        }
        let climb = match self.climb() {
            // before there was a first value: all is as it was after the last round
            Err(Error::Interrupted) => return Ok(Some(interrupted())),
            climb => climb?,
        };
        if self.observer.interrupted() {
            self.look_again()?;
            return Ok(Some(interrupted()));
        }
        let (now, passes) = self.e_steps()?;
        self.state.evaluations += passes;
        let rise = now - self.state.value;
        let small = rise <= self.slight(now);
        let was_small = std::mem::replace(&mut self.state.small, small);
        self.state.value = now;
        // a phase without an iteration has converged; q may still gain
        let stalled = climb.report.iterations == 0;
        let ended = if climb.joint && climb.report.converged {
            Some(climb.report.stopped.clone())
        } else {
            (stalled || (small && was_small))
                .then(|| format!("converged: a round raised the bound by {rise:.2e}"))
        };
        if let Some(text) = ended.filter(|_| !climb.stopped && !self.observer.interrupted()) {
            match self.settle(text) {
                Err(Error::Interrupted) => {
                    // q stands where it came last
                    self.look_again()?;
                    return Ok(None);
                }
                settled => settled?,
            }
        }
        if climb.stopped {
            // a round that was cut short is not a place to resume from
            return Ok(Some(("stopped early; the best parameters found are kept".into(), false)));
        }
        if self.observer.interrupted() {
            // nor is one whose steps of q were
            return Ok(None);
        }
        if climb.joint && !climb.report.converged {
            if climb.report.iterations >= climb.left {
                // the checkpoint within this climb is the one to resume from
                return Ok(None);
            }
            self.state.stuck = true;
        }
        self.state.seconds = self.start.seconds();
        let Self { model, state, keeper, .. } = self;
        keeper.look(model, || Place::Rounds(state.clone()))?;
        Ok(None)
    }

    /// Returns why the rounds have ended, if they have.
    fn ended(&mut self) -> Result<Option<End>> {
        // of a training that had ended
        if let Some(text) = self.state.converged.take() {
            return Ok(Some((text, true)));
        }
        if let Some(text) = self.state.failed.take() {
            return Ok(Some((text, false)));
        }
        if self.state.iterations >= self.options.max_iterations {
            let text = format!(
                "stopped after {} iterations, the most allowed; it may improve with more",
                self.state.iterations
            );
            return Ok(Some((text, false)));
        }
        if self.observer.interrupted() {
            if self.state.ascent.is_some() {
                // resumed from a checkpoint within a climb, which is higher than its round began
                self.look_again()?;
            }
            return Ok(Some(interrupted()));
        }
        Ok(None)
    }

    /// Climbs by the optimiser, at fixed sites or with them.
    fn climb(&mut self) -> Result<Climb> {
        let Self { model, engine, data, options, ends, steps, observer, state, start, keeper } =
            self;
        let left = options.max_iterations - state.iterations;
        let joint = joint_optimiser(options, ends.plateau, state);
        let mut counting = Counting {
            inner: &mut **observer,
            iterations: state.iterations,
            evaluations: state.evaluations,
            seconds: if state.ascent.is_some() { state.seconds } else { start.seconds() },
            stopped: false,
        };
        let is_joint = joint.is_some();
        let report = match joint {
            Some(optimiser) => {
                let inner = TrainOptions { optimiser, max_iterations: left, ..options.clone() };
                state.seconds = counting.seconds;
                let profile = Profile::new(&options.em, &mut **steps);
                let resume = state.ascent.take().map(Place::Ascent);
                keeper.within(state, resume, |going| {
                    ascend(model, *engine, *data, &inner, Some(profile), going, &mut counting)
                })
            }
            None => {
                let max_iterations = options.em.m_steps.min(left);
                let inner = TrainOptions { max_iterations, ..options.clone() };
                ascend(model, *engine, *data, &inner, None, GoingOn::default(), &mut counting)
            }
        }?;
        state.trace.extend(report.trace.iter().map(|point| counting.count(point)));
        state.iterations += report.iterations;
        state.evaluations += report.evaluations;
        state.failures += report.failures;
        state.rounds += 1;
        Ok(Climb { report, joint: is_joint, stopped: counting.stopped, left })
    }

    /// Makes steps of q until they raise the bound by little. Returns the bound with the log prior,
    /// and the passes made.
    fn e_steps(&mut self) -> Result<(f64, usize)> {
        let Self { model, engine, data, options, steps, observer, state, .. } = self;
        let reached = e_steps(model, *engine, *data, &options.em, &mut **steps, &**observer)?;
        state.diagnostics = steps.diagnostics();
        Ok(reached)
    }

    /// Looks at the bound where q stands.
    fn look_again(&mut self) -> Result<()> {
        let Self { model, engine, data, steps, state, .. } = self;
        state.value = steps.value(model, *engine, *data)? + model.log_prior();
        state.diagnostics = steps.diagnostics();
        Ok(())
    }

    /// Returns the rise of a bound that is too small to matter.
    fn slight(&self, value: f64) -> f64 {
        self.ends.plateau.tolerance * size(value, self.data)
    }

    /// Settles q to the last digits where rounds have ended for the reason of `text`, which stands if no step of q
    /// promises more.
    fn settle(&mut self, text: String) -> Result<()> {
        let Self { model, engine, data, options, ends, steps, observer, .. } = self;
        let targets = terms(*data);
        let now = self.state.value;
        let least = ends.promised * targets;
        let how = (&options.em, least, ends.to_settle);
        let settled = settle_sites(model, *engine, *data, how, &mut **steps, &**observer)?;
        self.state.evaluations += settled.passes;
        if settled.moved {
            self.look_again()?;
            self.state.evaluations += 1;
        }
        let more = self.state.value - now;
        // where no step raises the bound rounding may be all that is left of the gradient
        let least = if settled.stuck { least.max(SLIGHT * targets) } else { least };
        if more <= self.slight(now) {
            if settled.promise <= least {
                self.state.converged = Some(text);
            } else if settled.promise > least {
                self.state.failed = Some(format!(
                    "stopped: steps of q raise the bound no more, and this is not an optimum: the gradient in q promises \
                     {:.2e} nats, more than {least:.2e}",
                    settled.promise
                ));
            }
        }
        Ok(())
    }

    /// Writes the last checkpoint, and reports.
    fn end(mut self, stopped: String, converged: bool) -> Result<TrainReport> {
        self.keeper.finish()?;
        Ok(TrainReport {
            stopped,
            converged,
            iterations: self.state.iterations,
            evaluations: self.state.evaluations,
            failures: self.state.failures,
            objective: self.state.value,
            seconds: self.start.seconds(),
            diagnostics: self.state.diagnostics,
            trace: self.state.trace,
            ..TrainReport::default()
        })
    }
}

/// Returns the end by an interruption.
fn interrupted() -> End {
    ("interrupted; the best parameters found are kept".into(), false)
}

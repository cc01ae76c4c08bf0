//! Steps one after the other, with a trace and a guard.

use super::target::Target;
use crate::error::{Error, Result};
use crate::linalg::{MatMut, MatRef};
use std::ops::ControlFlow;

/// Whatever approximates a [`Target`] step by step.
pub trait Solver: Clone {
    /// Makes step `step` = 0, 1, …. Draws depend only on the solver's seed and the step.
    ///
    /// # Errors
    /// [`Error::NonFinite`] and [`Error::NotPositiveDefinite`] where the state has gone too far; after them the state
    /// is of no use. Others as they come.
    fn advance(&mut self, target: &mut dyn Target, step: usize) -> Result<Progress>;

    /// Makes step `step` where the step before was of the same target with the same data, so that values at the state
    /// may still be known.
    ///
    /// # Errors
    /// As for [`Solver::advance`].
    fn advance_on(&mut self, target: &mut dyn Target, step: usize) -> Result<Progress> {
        self.advance(target, step)
    }

    /// Tells whether every number of the state is finite.
    fn is_finite(&self) -> bool;

    /// Checks that the state, from which step `step` would continue, has a finite evaluation: the
    /// target sees the rows that it has.
    ///
    /// # Errors
    /// As for [`Solver::advance`].
    fn check(&self, target: &mut dyn Target, step: usize) -> Result<()> {
        let progress = self.clone().advance(&mut Held(target), step)?;
        check_energy(&progress)
    }
}

/// A target that keeps its rows.
struct Held<'a>(&'a mut dyn Target);

impl Target for Held<'_> {
    fn dim(&self) -> usize {
        self.0.dim()
    }

    fn evaluate(
        &mut self,
        x: MatRef<'_, f64>,
        phi: &mut [f64],
        gradient: MatMut<'_, f64>,
    ) -> Result<()> {
        self.0.evaluate(x, phi, gradient)
    }

    fn hessian_times(&mut self, x: &[f64], v: MatRef<'_, f64>, out: MatMut<'_, f64>) -> Result<()> {
        self.0.hessian_times(x, v, out)
    }

    fn is_noisy(&self) -> bool {
        self.0.is_noisy()
    }
}

/// What one step saw, at the state before it moved.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// The free energy, where the method has one; an estimate for noisy targets and drawn positions. Without the
    /// constant of [`evidence_bound`](super::evidence_bound).
    pub free_energy: Option<f64>,
    /// What vanishes at an optimum: ‖ḡ‖² + Σ_b ‖Ψ_bb − Π_b‖² for flows, the square of a gradient otherwise.
    pub stationarity: f64,
    /// What the step multiplied its rates by: below 1 where they were cut.
    pub scale: f64,
    /// Whether no move was found that lowers the free energy; the state stays.
    pub stalled: bool,
}

/// How far to go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunOptions {
    /// Steps, at most.
    pub steps: usize,
    /// Converged when [`Progress::stationarity`] is not above this; 0 to make all steps. Targets that are noisy, or are
    /// seen at random positions, hardly meet it.
    pub tolerance: f64,
    /// Every so many steps go into the trace.
    pub every: usize,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self { steps: 1000, tolerance: 0.0, every: 1 }
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    /// All steps were made.
    AllSteps,
    /// The tolerance is met.
    Converged,
    /// No move lowers the free energy any more.
    Stalled,
    /// A number was not finite, or the covariance lost its rank: the state is the last one at which all was well.
    Restored {
        /// The step that failed; after the last one, the step that would have been next.
        step: usize,
        /// What was wrong, and what to do.
        reason: String,
    },
    /// Whoever watches asked for it.
    Interrupted,
}

/// Report of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Steps with what they saw.
    pub trace: Vec<(usize, Progress)>,
    /// Steps that moved the state and were kept.
    pub steps: usize,
    /// How it ended.
    pub ended: Ended,
}

/// Advances a solver. Where a step meets a number that is not finite, or a covariance without its rank, the solver is
/// put back to its last state with a finite evaluation, and [`Ended::Restored`] says so. A step sees the state before it
/// moves; what the last move led to is evaluated once more at the end. `watch` sees every step.
///
/// # Errors
/// [`Error::Invalid`] for a trace of every 0 steps or a tolerance that is NaN, [`Error::Shape`] and others of the
/// solver's, [`Error::NonFinite`] and [`Error::NotPositiveDefinite`] where even the start has no finite evaluation.
pub fn run(
    solver: &mut impl Solver,
    target: &mut dyn Target,
    options: &RunOptions,
    watch: &mut dyn FnMut(usize, &Progress) -> ControlFlow<()>,
) -> Result<Run> {
    let mut own = Alone(target);
    guarded(solver, &mut own, options, watch)
}

/// How [`guarded`] moves a state and looks at it.
pub(super) trait Guarded<S> {
    /// Makes a step; all but the first continue from the one before.
    fn advance(&mut self, state: &mut S, step: usize) -> Result<Progress>;

    /// Tells whether every number of the state is finite.
    fn is_finite(&self, state: &S) -> bool;

    /// Checks that a state has a finite evaluation.
    fn check(&mut self, state: &S, step: usize) -> Result<()>;
}

/// A target that no one else has while a solver runs.
struct Alone<'a>(&'a mut dyn Target);

impl<S: Solver> Guarded<S> for Alone<'_> {
    fn advance(&mut self, state: &mut S, step: usize) -> Result<Progress> {
        match step {
            0 => state.advance(self.0, step),
            _ => state.advance_on(self.0, step),
        }
    }

    fn is_finite(&self, state: &S) -> bool {
        state.is_finite()
    }

    fn check(&mut self, state: &S, step: usize) -> Result<()> {
        state.check(self.0, step)
    }
}

fn check_energy(progress: &Progress) -> Result<()> {
    match progress.free_energy {
        Some(value) if !value.is_finite() => {
            Err(Error::NonFinite { what: "the free energy".into(), value })
        }
        _ => Ok(()),
    }
}

/// Does [`run`] for whatever advances and can tell whether it is finite.
pub(super) fn guarded<S: Clone>(
    solver: &mut S,
    own: &mut impl Guarded<S>,
    options: &RunOptions,
    watch: &mut dyn FnMut(usize, &Progress) -> ControlFlow<()>,
) -> Result<Run> {
    if options.every == 0 || options.tolerance.is_nan() || options.tolerance < 0.0 {
        return Err(Error::Invalid(format!(
            "a run needs a trace of every step or more and a tolerance from 0 on, not {options:?}"
        )));
    }
    let mut report = Run { trace: Vec::new(), steps: 0, ended: Ended::AllSteps };
    // a state that had a finite evaluation, and the one that is about to have one
    let (mut good, mut before) = (solver.clone(), solver.clone());
    for step in 0..options.steps {
        before.clone_from(solver);
        let outcome = own
            .advance(solver, step)
            .and_then(|progress| check_energy(&progress).map(|()| progress));
        let progress = match outcome {
            Ok(progress) => progress,
            Err(error) if error.is_recoverable() && step > 0 => {
                solver.clone_from(&good);
                report.steps = step - 1;
                report.ended = restored(step, &error.to_string());
                return Ok(report);
            }
            Err(error) => {
                solver.clone_from(&before);
                return Err(error);
            }
        };
        if step % options.every == 0 {
            report.trace.push((step, progress));
        }
        if !own.is_finite(solver) {
            solver.clone_from(&before);
            report.ended = restored(step, "the move is not finite");
            return Ok(report);
        }
        if progress.stalled {
            report.ended = Ended::Stalled;
            return Ok(report);
        }
        report.steps = step + 1;
        std::mem::swap(&mut good, &mut before);
        if watch(step, &progress).is_break() {
            report.ended = Ended::Interrupted;
            break;
        }
        if options.tolerance > 0.0 && progress.stationarity <= options.tolerance {
            report.ended = Ended::Converged;
            break;
        }
    }
    // no step has seen what the last move led to
    let step = report.steps;
    match if step > 0 { own.check(solver, step) } else { Ok(()) } {
        Err(error) if error.is_recoverable() => {
            solver.clone_from(&good);
            report.steps = step - 1;
            report.ended = restored(step, &error.to_string());
            Ok(report)
        }
        outcome => outcome.map(|()| report),
    }
}

fn restored(step: usize, what: &str) -> Ended {
    let reason = format!(
        "{what}; the last state without that is kept: take smaller rates, a start that is no wider than the target, or \
         `Control::Cap`"
    );
    Ended::Restored { step, reason }
}

//! Limited-memory BFGS (Nocedal & Wright 2006, Alg. 7.4 and 7.5).
//!
//! The maintained crates end the run at the first non-finite value or error inside a line search.
//! For a Gaussian process such points are part of life: a long step makes a kernel matrix lose its
//! positive definiteness. Here they count as infinitely high, the step is contracted and the search
//! continues. And the whole state can be stored between two iterations, so that an interrupted run
//! resumes bit for bit.

use super::lbfgs_options::{DECREASE, LbfgsOptions};
use super::line_search::{Found, Ray, Wolfe, search};
use super::vector::{add_scaled, all_finite, difference, dot, max_norm, norm};
use super::{
    Objective, Optimiser, Outcome, Plateau, Reason, Stall, Status, Step, check_start, evaluate,
};
use crate::error::Result;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Line searches in a row that may end downhill before the objective is called unbounded.
const ENDLESS_SEARCHES: usize = 3;

/// Line searches in a row that points without a value end before the run is at a wall, where it gains nothing.
const BLOCKED_SEARCHES: usize = 10;

/// How much more than [`LbfgsOptions::objective_tolerance`] a step may promise where the objective no longer changes.
const PROMISED: f64 = 1e3;

/// Share of the decrease of a line search that another trial of it must promise, once there were several.
const LITTLE: f64 = 0.05;
/// Pairs with sᵀy below this times ‖s‖‖y‖ carry rounding errors rather than curvature.
const LEAST_CURVATURE: f64 = 1e-10;

/// s, y and ρ = 1 / sᵀy of one iteration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Pair {
    s: Vec<f64>,
    y: Vec<f64>,
    rho: f64,
}

/// A point with value and gradient.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Known {
    value: f64,
    gradient: Vec<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct State {
    x: Vec<f64>,
    known: Option<Known>,
    best: Option<(Vec<f64>, f64)>,
    pairs: VecDeque<Pair>,
    /// Length of the last move, the guess for the next when no curvature is known.
    last_move: Option<f64>,
    small_changes: usize,
    /// The values before each of the last iterations, as many as the plateau's window asks for.
    #[serde(default)]
    recent: VecDeque<f64>,
    endless: usize,
    /// Line searches in a row that points without a value kept from longer steps.
    #[serde(default)]
    blocked: usize,
    iterations: usize,
    evaluations: usize,
    status: Status,
}

/// Limited-memory BFGS.
///
/// ```
/// use sparsegp::optim::{Lbfgs, LbfgsOptions, Objective, Optimiser};
/// struct Bowl;
/// impl Objective for Bowl {
///     fn dim(&self) -> usize {
///         1
///     }
///     fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> sparsegp::Result<f64> {
///         gradient[0] = 2.0 * (x[0] - 3.0);
///         Ok((x[0] - 3.0).powi(2))
///     }
/// }
/// let mut lbfgs = Lbfgs::new(vec![0.0], LbfgsOptions::default());
/// while !lbfgs.step(&mut Bowl)?.status.is_final() {}
/// assert!((lbfgs.x()[0] - 3.0).abs() < 1e-6);
/// # Ok::<(), sparsegp::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lbfgs {
    /// The options; they may be changed between steps.
    pub options: LbfgsOptions,
    state: State,
}

impl Lbfgs {
    /// Starts at `x0`. Nothing is evaluated before the first step.
    pub fn new(x0: Vec<f64>, options: LbfgsOptions) -> Self {
        let state = State {
            x: x0,
            known: None,
            best: None,
            pairs: VecDeque::new(),
            last_move: None,
            small_changes: 0,
            recent: VecDeque::new(),
            endless: 0,
            blocked: 0,
            iterations: 0,
            evaluations: 0,
            status: Status::Running,
        };
        Self { options, state }
    }

    fn report(&self, evaluations: usize, step_length: f64) -> Step {
        let known = self.state.known.as_ref();
        Step {
            value: known.map_or(0.0, |known| known.value),
            gradient_norm: known.map_or(0.0, |known| max_norm(&known.gradient)),
            evaluations,
            step_length,
            status: self.state.status.clone(),
        }
    }

    /// Returns the value and gradient at the starting point.
    fn start(&self, objective: &mut dyn Objective) -> Result<Known> {
        let mut gradient = vec![0.0; self.state.x.len()];
        match evaluate(objective, &self.state.x, &mut gradient)? {
            Outcome::Finite(value, _) => Ok(Known { value, gradient }),
            Outcome::Infeasible(error) => Err(error),
        }
    }

    fn gradient_reason(&self, known: &Known, terms: Option<f64>) -> Option<Reason> {
        let largest = max_norm(&known.gradient);
        let scale = terms.unwrap_or(known.value.abs()).max(1.0);
        let tolerance = self.options.gradient_tolerance * scale;
        (largest <= tolerance).then_some(Reason::Gradient { largest, tolerance })
    }

    /// Returns a reason if the last iterations together brought next to nothing; the last of them
    /// began at `before`.
    fn slow_reason(&mut self, before: f64, value: f64, terms: Option<f64>) -> Option<Reason> {
        let Plateau { window, tolerance } = self.options.plateau?;
        let recent = &mut self.state.recent;
        recent.push_back(before);
        while recent.len() > window {
            recent.pop_front();
        }
        let first = recent.front().filter(|_| recent.len() == window)?;
        let fall = (first - value) / value.abs().min(terms.unwrap_or(f64::INFINITY)).max(1.0);
        (fall <= tolerance).then_some(Reason::Slow { fall, tolerance, iterations: window })
    }

    /// Takes over the point that a line search has found; the objective is a sum of so many terms.
    fn accept(&mut self, from: Known, found: Found, terms: Option<f64>) -> Option<f64> {
        let state = &mut self.state;
        let point = found.point?;
        let s = difference(&point.x, &state.x);
        let y = difference(&point.gradient, &from.gradient);
        let length = norm(&s);
        let sy = dot(&s, &y);
        // Written so that an overflow skips the pair, too.
        if sy > LEAST_CURVATURE * length * norm(&y) && sy.is_finite() && (1.0 / sy).is_finite() {
            state.pairs.push_back(Pair { s, y, rho: 1.0 / sy });
        }
        while state.pairs.len() > self.options.memory {
            state.pairs.pop_front();
        }
        state.last_move = Some(length);
        state.x = point.x;
        if state.best.as_ref().is_none_or(|(_, best)| point.value < *best) {
            state.best = Some((state.x.clone(), point.value));
        }
        let size = from.value.abs().max(point.value.abs());
        let scale = terms.unwrap_or(size).max(1.0);
        let change = (from.value - point.value).abs() / scale;
        let tolerance = self.options.objective_tolerance;
        let is_small = tolerance > 0.0 && change <= tolerance && !found.endless;
        state.small_changes = if is_small { state.small_changes + 1 } else { 0 };
        state.endless = if found.endless { state.endless + 1 } else { 0 };
        state.blocked = if found.wall.is_some() { state.blocked + 1 } else { 0 };
        let blocked = state.blocked;
        let slow = self.slow_reason(from.value, point.value, terms).filter(|_| !found.endless);
        let known = Known { value: point.value, gradient: point.gradient };
        let iterations = self.options.patience;
        // Far down an endless slope the value is so large that any gradient looks small beside it.
        let flat = self.gradient_reason(&known, terms).filter(|_| !found.endless);
        // Steps that failed leave a plateau, too: it is an optimum only if the gradient promises no more.
        let promises_less = |than: f64| promise(&self.state.pairs, &known.gradient) <= than;
        let gains_nothing = slow.is_some() || self.state.small_changes >= iterations;
        let status = if let Some(reason) = flat {
            Status::Converged(reason)
        } else if self.state.small_changes >= iterations
            && promises_less(PROMISED * tolerance * scale)
        {
            Status::Converged(Reason::Objective { change, tolerance, iterations })
        } else if let Some(reason) = slow.filter(|reason| match reason {
            Reason::Slow { tolerance, .. } => promises_less(*tolerance * scale),
            _ => true,
        }) {
            Status::Converged(reason)
        } else if self.state.endless >= ENDLESS_SEARCHES {
            Status::Stalled(Stall::Unbounded { value: known.value })
        } else if let Some(cause) =
            found.wall.filter(|_| gains_nothing && blocked >= BLOCKED_SEARCHES)
        {
            Status::Stalled(Stall::Wall { iterations: blocked, cause })
        } else {
            Status::Running
        };
        self.state.status = status;
        self.state.known = Some(known);
        Some(length)
    }

    fn advance(&mut self, objective: &mut dyn Objective) -> Result<Step> {
        let (mut evaluations, terms) = (0, objective.terms());
        let known = match self.state.known.take() {
            Some(known) => known,
            None => {
                evaluations += 1;
                self.start(objective)?
            }
        };
        if self.state.best.is_none() {
            self.state.best = Some((self.state.x.clone(), known.value));
        }
        let mut length = 0.0;
        if let Some(reason) = self.gradient_reason(&known, terms).filter(|_| evaluations > 0) {
            self.state.status = Status::Converged(reason);
            self.state.known = Some(known);
        } else {
            let mut direction = quasi_newton(&self.state.pairs, &known.gradient)
                .unwrap_or_else(|| downhill(&known.gradient, self.state.last_move));
            let found = loop {
                let reach = direction.iter().fold(0.0, |largest: f64, d| largest.max(d.abs()));
                let wolfe = Wolfe {
                    decrease: DECREASE,
                    curvature: self.options.curvature,
                    evaluations: self.options.line_search_evaluations,
                    little: LITTLE,
                    noise: objective.noise(),
                    longest: match self.options.largest_move {
                        Some(most) if reach > 0.0 => most / reach,
                        _ => f64::INFINITY,
                    },
                };
                let ray = Ray {
                    x: &self.state.x,
                    value: known.value,
                    gradient: &known.gradient,
                    direction: &direction,
                };
                let found = search(objective, &ray, wolfe)?;
                evaluations += found.evaluations;
                if found.point.is_some() || self.state.is_fresh() {
                    break found;
                }
                // What the memory says may be wrong: once more, without it.
                self.state.pairs.clear();
                self.state.last_move = None;
                direction = downhill(&known.gradient, None);
            };
            match found.point {
                None => {
                    self.state.known = Some(known);
                    self.state.status = Status::Stalled(Stall::LineSearch { evaluations });
                }
                Some(_) => length = self.accept(known, found, terms).unwrap_or(0.0),
            }
        }
        self.state.iterations += 1;
        self.state.evaluations += evaluations;
        Ok(self.report(evaluations, length))
    }
}

impl State {
    /// Returns whether nothing is left that a reset could clear.
    fn is_fresh(&self) -> bool {
        self.pairs.is_empty() && self.last_move.is_none()
    }
}

impl Optimiser for Lbfgs {
    fn step(&mut self, objective: &mut dyn Objective) -> Result<Step> {
        if self.state.status.is_final() {
            return Ok(self.report(0, 0.0));
        }
        self.options.check()?;
        check_start(&self.state.x, objective)?;
        if self.state.x.is_empty() {
            // One evaluation, so that the value is known.
            let known = self.start(objective)?;
            self.state.best = Some((Vec::new(), known.value));
            self.state.known = Some(known);
            self.state.status = Status::Converged(Reason::NoParameters);
            self.state.iterations += 1;
            self.state.evaluations += 1;
            return Ok(self.report(1, 0.0));
        }
        // A copy costs little beside an evaluation, and an error must not leave half a step.
        let mut next = self.clone();
        let step = next.advance(objective)?;
        *self = next;
        Ok(step)
    }
    fn x(&self) -> &[f64] {
        &self.state.x
    }
    fn value(&self) -> Option<f64> {
        self.state.known.as_ref().map(|known| known.value)
    }
    fn gradient(&self) -> Option<&[f64]> {
        self.state.known.as_ref().map(|known| known.gradient.as_slice())
    }
    fn best(&self) -> Option<(&[f64], f64)> {
        self.state.best.as_ref().map(|(x, value)| (x.as_slice(), *value))
    }
    fn iterations(&self) -> usize {
        self.state.iterations
    }
    fn evaluations(&self) -> usize {
        self.state.evaluations
    }
    fn status(&self) -> &Status {
        &self.state.status
    }
    fn restart(&mut self) {
        let (iterations, evaluations) = (self.state.iterations, self.state.evaluations);
        *self = Self::new(std::mem::take(&mut self.state.x), self.options.clone());
        self.state.iterations = iterations;
        self.state.evaluations = evaluations;
    }
}

/// Returns −H∇f by the two-loop recursion, Alg. 7.4 with (7.20) for the initial matrix; none
/// without memory, or if the result is of no use as a direction of descent.
fn quasi_newton(pairs: &VecDeque<Pair>, gradient: &[f64]) -> Option<Vec<f64>> {
    let last = pairs.back()?;
    let mut q: Vec<f64> = gradient.iter().map(|slope| -slope).collect();
    let mut alphas = Vec::with_capacity(pairs.len());
    for pair in pairs.iter().rev() {
        let alpha = pair.rho * dot(&pair.s, &q);
        add_scaled(&mut q, -alpha, &pair.y);
        alphas.push(alpha);
    }
    // sᵀy / yᵀy, without the square that may overflow.
    let size = norm(&last.y);
    let gamma = 1.0 / (last.rho * size) / size;
    q.iter_mut().for_each(|value| *value *= gamma);
    for (pair, alpha) in pairs.iter().zip(alphas.into_iter().rev()) {
        let beta = pair.rho * dot(&pair.y, &q);
        add_scaled(&mut q, alpha - beta, &pair.s);
    }
    let slope = dot(&q, gradient);
    (slope < 0.0 && slope.is_finite() && all_finite(&q)).then_some(q)
}

/// Returns by how much a quasi-Newton step would lower the objective, ½ gᵀHg (the Newton decrement:
/// Boyd & Vandenberghe 2004, §9.5.1, with L-BFGS's H), which does not depend on the units of the
/// variables.
fn promise(pairs: &VecDeque<Pair>, gradient: &[f64]) -> f64 {
    let step = quasi_newton(pairs, gradient).unwrap_or_else(|| downhill(gradient, None));
    -0.5 * dot(&step, gradient)
}

/// Returns the steepest descent over the length of the last move, or over min(1, ‖∇f‖).
fn downhill(gradient: &[f64], last_move: Option<f64>) -> Vec<f64> {
    let size = norm(gradient);
    let length = last_move.filter(|&length| length > 0.0).unwrap_or(size.min(1.0));
    gradient.iter().map(|slope| -(slope / size) * length).collect()
}

#[cfg(test)]
#[path = "lbfgs_tests.rs"]
mod tests;

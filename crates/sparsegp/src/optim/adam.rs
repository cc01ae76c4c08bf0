//! Adam (Kingma & Ba 2015, Alg. 1) for noisy objectives.
//!
//! Each parameter may have its own multiple of the learning rate. Where the objective has no usable
//! value, the last move is halved, again and again, until it has one.

use super::adam_options::{AdamOptions, Plateau};
use super::progress::Progress;
use super::vector::{distance, first_wrong, max_norm};
use super::{Objective, Optimiser, Outcome, Reason, Stall, Status, Step, check_start, evaluate};
use crate::error::{Error, Result};
use crate::linalg::exp::{Vectorised, dispatch};
use serde::{Deserialize, Serialize};

/// Sums for [`Plateau`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Window {
    sum: f64,
    count: usize,
    before: Option<f64>,
}

impl Window {
    /// Adds a value; at the end of a window the reason to stop, if there is one.
    fn add(&mut self, value: f64, Plateau { window, tolerance }: Plateau) -> Option<Reason> {
        // Divided before they are summed, so that large values do not overflow.
        self.sum += value / window as f64;
        self.count += 1;
        if self.count < window {
            return None;
        }
        let mean = self.sum;
        let before = self.before.replace(mean);
        (self.sum, self.count) = (0.0, 0);
        let before = before?;
        let fall = (before - mean) / mean.abs().max(1.0);
        (fall <= tolerance).then_some(Reason::Plateau { fall, tolerance, window })
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct State {
    x: Vec<f64>,
    /// The last point that had a value; empty before the first step.
    previous: Vec<f64>,
    value: Option<f64>,
    gradient: Vec<f64>,
    first: Vec<f64>,
    second: Vec<f64>,
    /// β₁ᵗ and β₂ᵗ.
    powers: (f64, f64),
    /// Steps since the start or restart: t of the schedule.
    steps: usize,
    best: Option<(Vec<f64>, f64)>,
    window: Window,
    iterations: usize,
    evaluations: usize,
    status: Status,
}

/// Adam.
///
/// [`Optimiser::step`] evaluates at [`Optimiser::x`] and then moves, so `x` is one move ahead of
/// [`Optimiser::value`]; [`Optimiser::best`] has both for the same point.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Adam {
    /// The options; they may be changed between steps.
    pub options: AdamOptions,
    /// The time that a limit leaves to the schedule; it is of one run, and no part of what serialises or is compared.
    #[serde(skip)]
    pub progress: Progress,
    state: State,
    /// The gradient is written here first, so that a failure does not change the last one.
    #[serde(skip)]
    scratch: Vec<f64>,
}

impl PartialEq for Adam {
    fn eq(&self, other: &Self) -> bool {
        self.options == other.options && self.state == other.state
    }
}

/// Components of a gradient beyond this are cut: their squares would overflow, and the length of a
/// move hardly depends on them.
const LARGEST_SLOPE: f64 = 1e150;

impl Adam {
    /// Starts at `x0`. Nothing is evaluated before the first step.
    pub fn new(x0: Vec<f64>, options: AdamOptions) -> Self {
        let dim = x0.len();
        let state = State {
            x: x0,
            previous: Vec::new(),
            value: None,
            gradient: Vec::new(),
            first: vec![0.0; dim],
            second: vec![0.0; dim],
            powers: (1.0, 1.0),
            steps: 0,
            best: None,
            window: Window::default(),
            iterations: 0,
            evaluations: 0,
            status: Status::Running,
        };
        Self { options, progress: Progress::default(), state, scratch: Vec::new() }
    }

    fn report(&self, gradient_norm: f64, evaluations: usize, step_length: f64) -> Step {
        Step {
            value: self.state.value.unwrap_or(0.0),
            gradient_norm,
            evaluations,
            step_length,
            status: self.state.status.clone(),
        }
    }

    /// Updates the moments with the gradient, and moves. Returns how far.
    fn advance(&mut self) -> f64 {
        let State { x, previous, gradient, first, second, powers, steps, .. } = &mut self.state;
        let AdamOptions { beta1, beta2, epsilon, .. } = self.options;
        powers.0 *= beta1;
        powers.1 *= beta2;
        let rate = self.options.learning_rate
            * self.options.schedule.factor_within(*steps, &self.progress);
        *steps += 1;
        let (unbias1, unbias2) = (1.0 / (1.0 - powers.0), 1.0 / (1.0 - powers.1));
        previous.resize(x.len(), 0.0);
        // momenta and rates come in groups
        let AdamOptions { momenta, multipliers, .. } = &self.options;
        let own = |i: usize| {
            let momentum = momenta.get(i).copied().unwrap_or(beta1);
            (momentum, multipliers.get(i).copied().unwrap_or(1.0))
        };
        let count = x.len();
        let alike = |all: &[f64], from: usize| {
            let rest = all.get(from..).unwrap_or_default();
            rest.first().and_then(|first| first_wrong(rest, |v| v == *first)).unwrap_or(count)
        };
        let (mut from, mut squares) = (0, 0.0);
        while from < count {
            let to = count.min(from + alike(momenta, from).min(alike(multipliers, from)));
            let (momentum, multiplier) = own(from);
            let unbias1 = if momentum == beta1 {
                unbias1
            } else {
                1.0 / (1.0 - momentum.powi(i32::try_from(*steps).unwrap_or(i32::MAX)))
            };
            let with = Constants {
                beta1: momentum,
                beta2,
                unbias1,
                unbias2,
                epsilon,
                rate: rate * multiplier,
            };
            let group = from..to;
            let parts = (
                &mut x[group.clone()],
                &mut previous[group.clone()],
                &mut first[group.clone()],
                &mut second[group.clone()],
                &gradient[group],
            );
            squares += moved(parts, with);
            from = to;
        }
        // squares that have lost their digits or are too large
        let safe = (f64::MIN_POSITIVE / f64::EPSILON..f64::INFINITY).contains(&squares);
        if safe { squares.sqrt() } else { distance(x, previous) }
    }

    /// Halves the last move until the objective has a value. On return the state's point has one,
    /// or is the last good point and the state is stalled. Returns how often, and value and largest slope there.
    fn retreat(
        &mut self,
        objective: &mut dyn Objective,
        error: Error,
    ) -> Result<(usize, Option<(f64, f64)>)> {
        let State { x, previous, .. } = &self.state;
        if previous.is_empty() || x == previous {
            // Nothing to go back to at the start, and nowhere to go without a move.
            return Err(error);
        }
        let (mut trial, mut cause, mut momentum) = (x.clone(), error, 1.0);
        for halving in 1..=self.options.halvings {
            for (trial, good) in trial.iter_mut().zip(previous) {
                *trial = 0.5 * *trial + 0.5 * good;
            }
            // The momentum that led astray shrinks with the move.
            momentum *= 0.5;
            match evaluate(objective, &trial, &mut self.scratch)? {
                Outcome::Finite(value, largest) => {
                    self.state.x = trial;
                    self.state.first.iter_mut().for_each(|first| *first *= momentum);
                    return Ok((halving, Some((value, largest))));
                }
                Outcome::Infeasible(error) => cause = error,
            }
        }
        let halvings = self.options.halvings;
        self.state.x.clone_from(&self.state.previous);
        self.state.status =
            Status::Stalled(Stall::Infeasible { halvings, cause: cause.to_string() });
        Ok((halvings, None))
    }
}

/// What a move is made with, for parameters that share it.
#[derive(Clone, Copy)]
struct Constants {
    beta1: f64,
    beta2: f64,
    unbias1: f64,
    unbias2: f64,
    epsilon: f64,
    rate: f64,
}

impl Constants {
    /// Moves so many parameters, and their moments. By value: the compiler makes vectors of what cannot be the same memory.
    #[inline(always)]
    fn move_by<const N: usize>(
        self,
        slopes: &[f64; N],
        x: &mut [f64; N],
        first: &mut [f64; N],
        second: &mut [f64; N],
    ) {
        let Self { beta1, beta2, unbias1, unbias2, epsilon, rate } = self;
        let slopes = slopes.map(|slope| slope.clamp(-LARGEST_SLOPE, LARGEST_SLOPE));
        let (mut to, mut one, mut two) = (*x, *first, *second);
        for i in 0..N {
            one[i] = beta1 * one[i] + (1.0 - beta1) * slopes[i];
        }
        for i in 0..N {
            two[i] = beta2 * two[i] + (1.0 - beta2) * slopes[i] * slopes[i];
        }
        for i in 0..N {
            to[i] -= rate * (unbias1 * one[i] / ((unbias2 * two[i]).sqrt() + epsilon));
        }
        (*x, *first, *second) = (to, one, two);
    }
}

/// Parameters, what they are before the move, first and second moments, gradient.
type Parts<'a> = (&'a mut [f64], &'a mut [f64], &'a mut [f64], &'a mut [f64], &'a [f64]);

/// Parameters that are moved at once; the threads of the current pool share more.
const CHUNK: usize = 1 << 14;
/// Squares of moves are summed in so many parts.
const PARTS: usize = 8;

/// Updates moments and parameters; returns the sum of the squared moves.
fn moved(parts: Parts<'_>, with: Constants) -> f64 {
    struct Loop<'a>(Parts<'a>, Constants);
    impl Vectorised for Loop<'_> {
        type Output = f64;
        #[inline(always)]
        fn run<const FMA: bool>(self) -> f64 {
            let Loop((x, previous, first, second, gradient), with) = self;
            let mut squares = [0.0; PARTS];
            let (x, x_rest) = x.as_chunks_mut::<PARTS>();
            let (previous, previous_rest) = previous.as_chunks_mut::<PARTS>();
            let (first, first_rest) = first.as_chunks_mut::<PARTS>();
            let (second, second_rest) = second.as_chunks_mut::<PARTS>();
            let (gradient, gradient_rest) = gradient.as_chunks::<PARTS>();
            let chunks = x.iter_mut().zip(previous).zip(first.iter_mut().zip(second)).zip(gradient);
            for (((x, previous), (first, second)), gradient) in chunks {
                *previous = *x;
                with.move_by(gradient, x, first, second);
                for i in 0..PARTS {
                    squares[i] += (x[i] - previous[i]) * (x[i] - previous[i]);
                }
            }
            let mut sum: f64 = squares.iter().sum();
            for (i, slope) in gradient_rest.iter().enumerate() {
                let [mut x, mut first, mut second] =
                    [[x_rest[i]], [first_rest[i]], [second_rest[i]]];
                with.move_by(&[*slope], &mut x, &mut first, &mut second);
                sum += (x[0] - x_rest[i]) * (x[0] - x_rest[i]);
                previous_rest[i] = std::mem::replace(&mut x_rest[i], x[0]);
                (first_rest[i], second_rest[i]) = (first[0], second[0]);
            }
            sum
        }
    }
    let (x, previous, first, second, gradient) = parts;
    if x.len() <= CHUNK {
        return dispatch(Loop((x, previous, first, second, gradient), with));
    }
    // halves, and not an iterator's sum: its order is that of the threads
    let half = (x.len() / 2).next_multiple_of(CHUNK);
    let ((x, x2), (previous, previous2)) = (x.split_at_mut(half), previous.split_at_mut(half));
    let ((first, first2), (second, second2)) =
        (first.split_at_mut(half), second.split_at_mut(half));
    let (gradient, gradient2) = gradient.split_at(half);
    let (one, two) = rayon::join(
        || moved((x, previous, first, second, gradient), with),
        || moved((x2, previous2, first2, second2, gradient2), with),
    );
    one + two
}

impl Optimiser for Adam {
    fn step(&mut self, objective: &mut dyn Objective) -> Result<Step> {
        let known = |own: &Self| max_norm(&own.state.gradient);
        if self.state.status.is_final() {
            return Ok(self.report(known(self), 0, 0.0));
        }
        self.options.check(self.state.x.len())?;
        check_start(&self.state.x, objective)?;
        self.scratch.resize(self.state.x.len(), 0.0);
        let (evaluations, value) = match evaluate(objective, &self.state.x, &mut self.scratch)? {
            Outcome::Finite(value, largest) => (1, Some((value, largest))),
            Outcome::Infeasible(error) => {
                let (halvings, value) = self.retreat(objective, error)?;
                (1 + halvings, value)
            }
        };
        self.state.iterations += 1;
        self.state.evaluations += evaluations;
        let Some((value, largest)) = value else {
            return Ok(self.report(known(self), evaluations, 0.0));
        };
        self.state.value = Some(value);
        std::mem::swap(&mut self.state.gradient, &mut self.scratch);
        match &mut self.state.best {
            Some((_, best)) if *best <= value => {}
            Some((x, best)) => {
                x.clone_from(&self.state.x);
                *best = value;
            }
            none => *none = Some((self.state.x.clone(), value)),
        }
        let tolerance = self.options.gradient_tolerance * value.abs().max(1.0);
        let plateau =
            self.options.plateau.and_then(|plateau| self.state.window.add(value, plateau));
        let reason = if self.state.x.is_empty() {
            Some(Reason::NoParameters)
        } else if largest <= tolerance {
            Some(Reason::Gradient { largest, tolerance })
        } else {
            plateau
        };
        if let Some(reason) = reason {
            self.state.status = Status::Converged(reason);
            return Ok(self.report(largest, evaluations, 0.0));
        }
        let length = self.advance();
        Ok(self.report(largest, evaluations, length))
    }
    fn x(&self) -> &[f64] {
        &self.state.x
    }
    fn value(&self) -> Option<f64> {
        self.state.value
    }
    fn gradient(&self) -> Option<&[f64]> {
        self.state.value.map(|_| self.state.gradient.as_slice())
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
        let progress = self.progress;
        *self = Self::new(std::mem::take(&mut self.state.x), self.options.clone());
        self.progress = progress;
        self.state.iterations = iterations;
        self.state.evaluations = evaluations;
    }
}

#[cfg(test)]
#[path = "adam_tests.rs"]
mod tests;

//! What a step reports, in numbers and in sentences.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Report of one iteration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The value after the iteration (for Adam: at the point where the gradient was taken).
    pub value: f64,
    /// Largest absolute component of the gradient that goes with `value`.
    pub gradient_norm: f64,
    /// Evaluations of the objective in this iteration, failed ones included.
    pub evaluations: usize,
    /// Euclidean length of the move.
    pub step_length: f64,
    /// Whether to continue.
    pub status: Status,
}

/// Whether an optimiser continues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Status {
    /// More steps may help.
    Running,
    /// A criterion of convergence is met.
    Converged(Reason),
    /// No further progress is possible, though no criterion is met. The best point is kept.
    Stalled(Stall),
}

impl Status {
    /// Returns whether further steps are pointless.
    pub fn is_final(&self) -> bool {
        *self != Status::Running
    }
}

/// The criterion that was met.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Reason {
    /// There is nothing to optimise.
    NoParameters,
    /// The gradient is small.
    Gradient {
        /// Largest absolute component.
        largest: f64,
        /// The bound it is below: the relative tolerance times max(1, |value|).
        tolerance: f64,
    },
    /// The objective no longer changes.
    Objective {
        /// Last relative change |f − f₊| / max(|f|, |f₊|, 1).
        change: f64,
        /// The tolerance.
        tolerance: f64,
        /// Iterations in a row.
        iterations: usize,
    },
    /// The objective has hardly fallen in a number of iterations together.
    Slow {
        /// Relative fall |f − f₊| / max(|f₊|, 1) over these iterations.
        fall: f64,
        /// The tolerance.
        tolerance: f64,
        /// Iterations.
        iterations: usize,
    },
    /// The mean objective over a window of steps no longer falls.
    Plateau {
        /// Relative fall from the window before; negative if it rose.
        fall: f64,
        /// The tolerance.
        tolerance: f64,
        /// Steps per window.
        window: usize,
    },
}

/// Why there is no further progress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Stall {
    /// No lower value was found, not even in the direction of steepest descent.
    LineSearch {
        /// Evaluations in the last iteration.
        evaluations: usize,
    },
    /// The objective fell and fell as far as the line searches went.
    Unbounded {
        /// The last value.
        value: f64,
    },
    /// Every longer step that would lower the objective leads to points without a value, and shorter ones gain next to
    /// nothing: the optimum lies beyond what can be evaluated.
    Wall {
        /// Iterations in a row that ended so.
        iterations: usize,
        /// The last failure, as a sentence.
        cause: String,
    },
    /// No usable value near the last usable point.
    Infeasible {
        /// Times that the step was halved.
        halvings: usize,
        /// The last failure, as a sentence.
        cause: String,
    },
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Status::Running => write!(f, "running"),
            Status::Converged(reason) => write!(f, "converged: {reason}"),
            Status::Stalled(stall) => write!(f, "stopped: {stall}"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::NoParameters => write!(f, "there are no free parameters"),
            Reason::Gradient { largest, tolerance } if *largest == 0.0 => {
                write!(f, "the gradient is zero (tolerance {tolerance:.3e})")
            }
            Reason::Gradient { largest, tolerance } => {
                write!(f, "largest gradient component {largest:.3e} not above {tolerance:.3e}")
            }
            Reason::Objective { change, tolerance, iterations } => write!(
                f,
                "relative change of the objective {change:.3e} not above {tolerance:.3e} for {iterations} iteration{}",
                if *iterations == 1 { "" } else { "s" }
            ),
            Reason::Slow { fall, tolerance, iterations } => write!(
                f,
                "the last {iterations} iterations improved the objective by {fall:.3e} of its size, not above {tolerance:.3e}"
            ),
            Reason::Plateau { fall, tolerance, window } => write!(
                f,
                "mean objective of the last {window} steps improved by {fall:.3e} of its size, not above {tolerance:.3e}"
            ),
        }
    }
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stall::LineSearch { evaluations } => write!(
                f,
                "no better value in {evaluations} evaluations, not even along the steepest descent: as a rule an optimum \
                 to within rounding (of a kernel or likelihood of your own the gradient may be wrong)"
            ),
            Stall::Unbounded { value } => write!(
                f,
                "the objective falls without end (now {value:.3e}): it seems to be unbounded below"
            ),
            Stall::Wall { iterations, cause } => write!(
                f,
                "the objective still improves towards parameters that cannot be evaluated, and the last {iterations} iterations gained \
                 next to nothing: {cause}"
            ),
            Stall::Infeasible { halvings, cause } => write!(
                f,
                "no usable value near the last good point, after halving the step {halvings} times: {cause}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_is_a_sentence_and_reads_back() {
        let cases = [
            (Status::Running, "running"),
            (Status::Converged(Reason::NoParameters), "converged: there are no free parameters"),
            (
                Status::Converged(Reason::Gradient { largest: 2e-7, tolerance: 1e-6 }),
                "converged: largest gradient component 2.000e-7 not above 1.000e-6",
            ),
            (
                Status::Converged(Reason::Gradient { largest: 0.0, tolerance: 1e-6 }),
                "converged: the gradient is zero (tolerance 1.000e-6)",
            ),
            (
                Status::Converged(Reason::Slow { fall: 4e-5, tolerance: 1e-4, iterations: 10 }),
                "converged: the last 10 iterations improved the objective by 4.000e-5 of its size, not above 1.000e-4",
            ),
            (
                Status::Converged(Reason::Objective {
                    change: 3e-10,
                    tolerance: 1e-9,
                    iterations: 3,
                }),
                "converged: relative change of the objective 3.000e-10 not above 1.000e-9 for 3 iterations",
            ),
            (
                Status::Converged(Reason::Objective {
                    change: 3e-10,
                    tolerance: 1e-9,
                    iterations: 1,
                }),
                "converged: relative change of the objective 3.000e-10 not above 1.000e-9 for 1 iteration",
            ),
            (
                Status::Converged(Reason::Plateau { fall: -1e-3, tolerance: 1e-4, window: 50 }),
                "converged: mean objective of the last 50 steps improved by -1.000e-3 of its size, not above 1.000e-4",
            ),
            (
                Status::Stalled(Stall::Unbounded { value: -1e40 }),
                "stopped: the objective falls without end (now -1.000e40): it seems to be unbounded below",
            ),
            (
                Status::Stalled(Stall::Wall { iterations: 10, cause: "NaN".into() }),
                "stopped: the objective still improves towards parameters that cannot be evaluated, and the last 10 iterations gained \
                 next to nothing: NaN",
            ),
            (
                Status::Stalled(Stall::Infeasible {
                    halvings: 3,
                    cause: "x is not finite (NaN)".into(),
                }),
                "stopped: no usable value near the last good point, after halving the step 3 times: x is not finite (NaN)",
            ),
        ];
        for (status, sentence) in cases {
            assert_eq!(status.to_string(), sentence);
            let text = serde_json::to_string(&status).unwrap();
            assert_eq!(serde_json::from_str::<Status>(&text).unwrap(), status);
            assert_eq!(status.is_final(), status != Status::Running);
        }
        let stall = Stall::LineSearch { evaluations: 50 }.to_string();
        assert!(stall.contains("50 evaluations"), "{stall}");
    }
}

//! An end to a training after some time, whatever it is at.

use super::{Event, Observer, TrainReport};
use std::cell::Cell;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// An observer that hands everything on to another one, and ends the training at a time limit as an interruption does:
/// with the best found. The time runs from the making of this.
///
/// Whatever has begun gets an answer: the first evaluation after a pilot, a choice of inducing points or the start is
/// made however late it is, so that there always is a model.
pub struct Deadline<'a> {
    inner: &'a mut dyn Observer,
    start: Instant,
    limit: Duration,
    /// Whether something has begun that has not evaluated anything yet.
    fresh: Cell<bool>,
    ended: Cell<bool>,
}

impl<'a> Deadline<'a> {
    /// Ends what `inner` watches after so many seconds.
    pub fn new(seconds: f64, inner: &'a mut dyn Observer) -> Self {
        // a limit beyond all clocks is none
        let limit = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        let (fresh, ended) = (Cell::new(true), Cell::new(false));
        Self { inner, start: Instant::now(), limit, fresh, ended }
    }

    /// Returns whether the limit ended something.
    pub fn ended(&self) -> bool {
        self.ended.get()
    }

    /// Says so in a report, if it did.
    pub fn report(&self, report: &mut TrainReport) {
        // what had converged needed no more time
        if self.ended() && !report.converged {
            let limit = words(self.limit.as_secs_f64());
            report.stopped =
                format!("stopped at the time limit of {limit}; the best found so far is kept");
            report.converged = false;
        }
    }
}

impl Observer for Deadline<'_> {
    fn event(&mut self, event: Event<'_>) -> ControlFlow<()> {
        if matches!(event, Event::Pilot { .. } | Event::Inducing { .. } | Event::Training) {
            self.fresh.set(true);
        }
        let sampling = matches!(event, Event::Sampling { done, total, .. } if done < total);
        let flow = self.inner.event(event);
        // chains have something to keep after their first sweep
        if sampling && self.interrupted() { ControlFlow::Break(()) } else { flow }
    }

    fn interrupted(&self) -> bool {
        if self.inner.interrupted() {
            return true;
        }
        let over = !self.fresh.replace(false) && self.start.elapsed() >= self.limit;
        self.ended.set(self.ended.get() || over);
        over
    }

    fn time_used(&self) -> Option<f64> {
        let used = self.start.elapsed().as_secs_f64() / self.limit.as_secs_f64();
        // a limit of nothing is over; a limit within a limit ends first where it is shorter
        let used = if used.is_nan() { 1.0 } else { used.min(1.0) };
        Some(self.inner.time_used().map_or(used, |inner| inner.max(used)))
    }
}

impl std::fmt::Debug for Deadline<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Deadline").field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// Returns a time in the largest unit in which it is a number of at least 1.
fn words(seconds: f64) -> String {
    match seconds {
        s if s >= 3600.0 => format!("{} h", rounded(s / 3600.0)),
        s if s >= 60.0 => format!("{} min", rounded(s / 60.0)),
        s => format!("{} s", rounded(s)),
    }
}

/// Rounds to three decimals at most.
fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_is_over_leaves_one_evaluation_to_everything_that_begins() {
        let mut inner = ();
        let mut deadline = Deadline::new(0.0, &mut inner);
        assert!(!deadline.interrupted() && !deadline.ended());
        assert!(deadline.interrupted() && deadline.ended());
        assert!(deadline.event(Event::Pilot { rows: 7 }).is_continue());
        assert!(!deadline.interrupted());
        let restart = Event::Restart { restart: 1, of: 2, best: None };
        assert!(deadline.event(restart).is_continue());
        assert!(deadline.interrupted());
        let sampling = Event::Sampling { done: 1, total: 9, seconds: 0.1 };
        assert!(deadline.event(sampling).is_break());
        assert_eq!(deadline.time_used(), Some(1.0));
    }

    #[test]
    fn a_limit_that_is_not_over_says_nothing() {
        let mut inner = ();
        for seconds in [1e6, f64::MAX] {
            let deadline = Deadline::new(seconds, &mut inner);
            assert!(!deadline.interrupted() && !deadline.interrupted() && !deadline.ended());
            assert!(deadline.time_used().is_some_and(|used| used < 1e-3));
        }
    }

    #[test]
    fn limits_are_said_in_the_largest_unit() {
        let said: Vec<String> = [0.25, 59.0, 300.0, 5400.0].map(words).into();
        assert_eq!(said, ["0.25 s", "59 s", "5 min", "1.5 h"]);
    }
}

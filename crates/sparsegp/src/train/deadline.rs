//! An end to a training after some time, whatever it is at.

use super::{Event, Observer, TrainReport};
use std::cell::Cell;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// An observer that hands everything on to another one, and ends the training at a time limit as an interruption does:
/// with the best found. The time runs from the making of this.
///
/// Whatever has begun gets an answer: the first evaluation after a pilot, a choice of inducing points or the start is
/// made however late it is, so that there always is a model. Where minibatches end with passes over all rows
/// ([`Event::Ahead`]), these are left their time, as long as steps so far suggest.
pub struct Deadline<'a> {
    inner: &'a mut dyn Observer,
    start: Instant,
    limit: Duration,
    /// Whether something has begun that has not evaluated anything yet.
    fresh: Cell<bool>,
    ended: Cell<bool>,
    /// Passes over all rows that are to come, when that was said, and the minibatches since.
    ahead: Option<(f64, Instant)>,
    batches: usize,
    /// Time that is left to them.
    kept: Duration,
}

/// Time that a row takes in a pass over all rows, as a share of that in a step of a minibatch: 2M² operations of some 6M² and M³.
const OF_STEP: f64 = 0.4;
/// Largest part of a limit that is left to the end.
const MOST: f64 = 0.4;

/// Returns the time to leave to so many passes over all rows, after so many minibatches that took `spent`.
fn kept(
    passes: f64,
    per_epoch: usize,
    batches: usize,
    spent: Duration,
    limit: Duration,
) -> Duration {
    let epoch = spent.as_secs_f64() * per_epoch as f64 / batches.max(1) as f64;
    let most = MOST * limit.as_secs_f64();
    Duration::from_secs_f64((passes * OF_STEP * epoch).min(most).max(0.0))
}

impl<'a> Deadline<'a> {
    /// Ends what `inner` watches after so many seconds.
    pub fn new(seconds: f64, inner: &'a mut dyn Observer) -> Self {
        // a limit beyond all clocks is none
        let limit = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        let (fresh, ended) = (Cell::new(true), Cell::new(false));
        let (ahead, kept) = (None, Duration::ZERO);
        Self { inner, start: Instant::now(), limit, fresh, ended, ahead, batches: 0, kept }
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
        match (event, self.ahead) {
            (Event::Ahead { passes }, _) => {
                (self.ahead, self.batches) = (Some((passes, Instant::now())), 0);
                self.kept = Duration::ZERO;
            }
            (Event::Batch { per_epoch, .. }, Some((passes, since))) => {
                self.batches += 1;
                self.kept = kept(passes, per_epoch, self.batches, since.elapsed(), self.limit);
            }
            _ => {}
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
        let end = self.limit.saturating_sub(self.kept);
        let over = !self.fresh.replace(false) && self.start.elapsed() >= end;
        self.ended.set(self.ended.get() || over);
        over
    }

    fn time_used(&self) -> Option<f64> {
        let end = self.limit.saturating_sub(self.kept);
        let used = self.start.elapsed().as_secs_f64() / end.as_secs_f64();
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
    fn passes_at_the_end_are_left_their_time() {
        let seconds = Duration::from_secs_f64;
        // 4 of 80 minibatches in 2 s: an epoch takes 40 s, and two passes 0.8 of that
        assert_eq!(kept(2.0, 80, 4, seconds(2.0), seconds(600.0)), seconds(32.0));
        // no more than a part of the limit
        assert_eq!(kept(2.0, 80, 4, seconds(2.0), seconds(60.0)), seconds(24.0));
        let mut inner = ();
        // the time of the steps is not 0, and one of so many takes all that may be left
        let mut deadline = Deadline::new(1e6, &mut inner);
        let batch = |per_epoch| Event::Batch {
            epoch: 0,
            batch: 0,
            per_epoch,
            epochs: 9,
            objective: 0.0,
            seconds: 0.0,
        };
        assert!(deadline.event(batch(usize::MAX)).is_continue());
        assert_eq!(deadline.kept, Duration::ZERO);
        assert!(deadline.event(Event::Ahead { passes: 2.0 }).is_continue());
        std::thread::yield_now();
        assert!(deadline.event(batch(usize::MAX)).is_continue());
        assert_eq!(deadline.kept, seconds(4e5));
        assert!(!deadline.interrupted());
    }

    #[test]
    fn limits_are_said_in_the_largest_unit() {
        let said: Vec<String> = [0.25, 59.0, 300.0, 5400.0].map(words).into();
        assert_eq!(said, ["0.25 s", "59 s", "5 min", "1.5 h"]);
    }
}

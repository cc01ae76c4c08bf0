//! Several trainings in a row as one.

use super::{Event, Observer, TracePoint, TrainReport};
use std::ops::ControlFlow;

/// An observer of one of several trainings, to whom those before it count.
pub(crate) struct Counting<'a> {
    pub(super) inner: &'a mut dyn Observer,
    pub(super) iterations: usize,
    pub(super) evaluations: usize,
    pub(super) seconds: f64,
    /// Whether somebody ended it.
    pub(super) stopped: bool,
}

impl<'a> Counting<'a> {
    /// Creates an observer of what follows a training.
    pub(crate) fn after(first: &TrainReport, inner: &'a mut dyn Observer) -> Self {
        let TrainReport { evaluations, seconds, .. } = *first;
        // points of a trace by minibatches count epochs, and the report counts minibatches
        let iterations = first.trace.last().map_or(first.iterations, |point| point.iteration);
        Self { inner, iterations, evaluations, seconds, stopped: false }
    }

    /// Makes one report of the training before, and of the one that this observed.
    pub(crate) fn joined(self, first: TrainReport, mut then: TrainReport) -> TrainReport {
        let points = then.trace.iter().map(|point| self.count(point));
        then.trace = first.trace.iter().cloned().chain(points).collect();
        then.iterations += first.iterations;
        then.evaluations += first.evaluations;
        then.failures += first.failures;
        then.seconds += first.seconds;
        then
    }
    /// Returns a point of this training as one of all.
    pub(super) fn count(&self, point: &TracePoint) -> TracePoint {
        TracePoint {
            iteration: self.iterations + point.iteration,
            evaluations: self.evaluations + point.evaluations,
            seconds: self.seconds + point.seconds,
            ..point.clone()
        }
    }
}

impl Observer for Counting<'_> {
    fn event(&mut self, event: Event<'_>) -> ControlFlow<()> {
        let flow = match event {
            Event::Iteration(point) => {
                let point = self.count(point);
                self.inner.event(Event::Iteration(&point))
            }
            other => self.inner.event(other),
        };
        self.stopped |= flow.is_break();
        flow
    }

    fn interrupted(&self) -> bool {
        self.inner.interrupted()
    }

    fn time_used(&self) -> Option<f64> {
        self.inner.time_used()
    }
}

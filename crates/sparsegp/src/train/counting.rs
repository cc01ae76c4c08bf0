//! Several trainings in a row as one.

use super::{Event, Observer, TracePoint};
use std::ops::ControlFlow;

/// An observer of one of several trainings, to whom those before it count.
pub(super) struct Counting<'a> {
    pub(super) inner: &'a mut dyn Observer,
    pub(super) iterations: usize,
    pub(super) evaluations: usize,
    pub(super) seconds: f64,
    /// Whether somebody ended it.
    pub(super) stopped: bool,
}

impl Counting<'_> {
    /// A point of this training as one of all.
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

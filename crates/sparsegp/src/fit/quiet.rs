//! Trainings within a fit that only an interruption concerns.

use crate::train::Observer;

/// Passes on an interruption and shows nothing else.
pub(super) struct Quiet<'a>(pub(super) &'a dyn Observer);

impl Observer for Quiet<'_> {
    fn interrupted(&self) -> bool {
        self.0.interrupted()
    }

    fn time_used(&self) -> Option<f64> {
        self.0.time_used()
    }
}

//! Checkpoints that cannot be written: a warning, at once and in the end, while the training
//! continues.

use crate::error::{Error, Result};
use crate::train::{Event, Observer};
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::path::Path;

/// What became of checkpoints that could not be written.
#[derive(Debug, Default)]
pub(super) struct Failures(RefCell<Failed>);

#[derive(Debug, Default)]
struct Failed {
    last: Option<String>,
    reported: bool,
}

impl Failures {
    /// Keeps a failure to write for later; only an interruption ends the training.
    pub(super) fn noted(&self, path: &Path, outcome: Result<()>) -> Result<()> {
        let mut failed = self.0.borrow_mut();
        match outcome {
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(error) => {
                let text = error.to_string();
                let reason = text.strip_prefix(&format!("{}: ", path.display())).unwrap_or(&text);
                failed.last = Some(format!(
                    "the checkpoint {} could not be written ({reason}); the training continues without it",
                    path.display()
                ));
            }
            // there is one again
            Ok(()) => *failed = Failed::default(),
        }
        Ok(())
    }

    /// Returns the warning for the end, if the last checkpoint could not be written.
    pub(super) fn warning(&self) -> Option<String> {
        self.0.borrow().last.clone()
    }
}

/// Hands events on, and tells of the first checkpoint that could not be written as soon as there is somebody to tell.
pub(super) struct Telling<'a> {
    pub(super) observer: &'a mut dyn Observer,
    pub(super) failures: &'a Failures,
}

impl Observer for Telling<'_> {
    fn event(&mut self, event: Event<'_>) -> ControlFlow<()> {
        let news = {
            let mut failed = self.failures.0.borrow_mut();
            let now = failed.last.is_some();
            let reported = std::mem::replace(&mut failed.reported, now);
            failed.last.clone().filter(|_| !reported)
        };
        if let Some(reason) = news {
            self.observer.event(Event::CheckpointFailed { reason: &reason })?;
        }
        self.observer.event(event)
    }

    fn interrupted(&self) -> bool {
        self.observer.interrupted()
    }

    fn time_used(&self) -> Option<f64> {
        self.observer.time_used()
    }
}

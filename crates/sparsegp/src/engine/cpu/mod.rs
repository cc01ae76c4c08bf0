//! The engine for the processor's cores.

mod back;
mod buffers;
mod either;
mod features;
mod forward;
mod operands;
mod pass;
mod statistics;
mod timings;

pub(crate) use either::EitherFeatures;
pub(crate) use features::Right;
pub(crate) use operands::{Either, Rounded};
pub use timings::Timings;

use super::{Engine, Job, Passed, Shelf};
use crate::data::Source;
use crate::error::{Error, Result};
use crate::linalg::Precision;
use buffers::Scratch;
use pass::Lane;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Works on blocks of rows with the threads of the current rayon pool. Keeps its buffers from call
/// to call.
#[derive(Debug, Default)]
pub struct Cpu {
    scratch: Mutex<Vec<Scratch>>,
    lanes: Mutex<Vec<Lane>>,
    rounded: Mutex<Vec<Rounded>>,
    shelf: Shelf,
    stop: Option<Arc<AtomicBool>>,
}

impl Cpu {
    /// Creates an engine that can be asked to stop while it goes over rows: when the flag is set, a
    /// collapsed bound or exact inference ends within a block with [`Error::Interrupted`], and the
    /// flag is down again. (Jobs at a known q, which are of minibatches or of few rows, end by
    /// themselves.)
    pub fn stopped_by(stop: Arc<AtomicBool>) -> Self {
        Self { stop: Some(stop), ..Self::default() }
    }

    fn scratch(&self) -> MutexGuard<'_, Vec<Scratch>> {
        self.scratch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lanes(&self) -> MutexGuard<'_, Vec<Lane>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn rounded(&self) -> MutexGuard<'_, Vec<Rounded>> {
        self.rounded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns where the time on rows has gone since the last reset.
    pub fn timings(&self) -> Timings {
        let mut total = Timings::default();
        self.scratch().iter().for_each(|scratch| total.add(&scratch.timings));
        total
    }

    /// Restarts the clocks of [`Cpu::timings`].
    pub fn reset_timings(&self) {
        self.scratch().iter_mut().for_each(|scratch| scratch.timings = Timings::default());
    }
}

impl Engine for Cpu {
    fn shelf(&self) -> &Shelf {
        &self.shelf
    }

    fn go_on(&self) -> Result<()> {
        match &self.stop {
            Some(stop) if stop.swap(false, Ordering::Relaxed) => Err(Error::Interrupted),
            _ => Ok(()),
        }
    }

    fn pass_in(
        &self,
        precision: Precision,
        job: &Job<'_>,
        data: &dyn Source,
        out: &mut Passed,
    ) -> Result<()> {
        pass::run(self, precision, job, data, out)
    }
}

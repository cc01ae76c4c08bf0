//! Resuming a full-batch training from a checkpoint.

use super::TracePoint;
use super::holding::Climbed;
use crate::error::{Error, Result};
use crate::methods::Diagnostics;
use crate::model::Model;
use crate::optim::AnyOptimiser;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// A training after an iteration (or a round of steps of q and iterations): all that it needs to
/// resume to the same bits, but the model's structure, the rows and the options.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Standing {
    /// Values of all parameters of the model, in the order of their paths.
    pub values: Vec<f64>,
    /// Where it stands.
    pub place: Place,
}

/// Where a training stands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Place {
    /// On the optimiser's way.
    Ascent(Box<Ascent>),
    /// Between rounds of steps of q and iterations of the optimiser.
    Rounds(Rounds),
}

/// The optimiser's way so far.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ascent {
    pub(super) optimiser: AnyOptimiser,
    /// Multiples of what it moves: they depend on where the model started.
    pub(super) scales: Vec<Option<f64>>,
    /// The best point evaluated, and its value.
    pub(super) best: Option<(Vec<f64>, f64)>,
    pub(super) evaluations: usize,
    pub(super) failures: usize,
    pub(super) diagnostics: Diagnostics,
    pub(super) seconds: f64,
    pub(super) trace: Vec<TracePoint>,
    /// What came before, where a method holds something fixed while it climbs.
    #[serde(default)]
    pub(super) before: Option<Box<Climbed>>,
}

/// The rounds so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Rounds {
    /// The bound after the last round.
    pub(super) value: f64,
    /// Whether that round gained little.
    pub(super) small: bool,
    pub(super) iterations: usize,
    pub(super) evaluations: usize,
    pub(super) failures: usize,
    pub(super) diagnostics: Diagnostics,
    pub(super) seconds: f64,
    pub(super) trace: Vec<TracePoint>,
    /// Why it converged, if it has.
    pub(super) converged: Option<String>,
    /// Why it ended elsewhere, if it has.
    #[serde(default)]
    pub(super) failed: Option<String>,
    /// How many there were.
    #[serde(default)]
    pub(super) rounds: usize,
    /// Whether L-BFGS got stuck on the bound at the best sites.
    #[serde(default)]
    pub(super) stuck: bool,
    /// Its way up that bound, if it is under way.
    #[serde(default)]
    pub(super) ascent: Option<Box<Ascent>>,
}

/// Writes down where a training stands.
pub type Notary<'a> = &'a mut dyn FnMut(&Standing) -> Result<()>;

/// A training that resumes, or leaves checkpoints to resume from.
#[derive(Default)]
pub struct GoingOn<'a> {
    /// Where an earlier run stood; the model has its values already.
    pub resume: Option<Place>,
    /// Takes a checkpoint.
    pub checkpoint: Option<Notary<'a>>,
}

impl std::fmt::Debug for GoingOn<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let checkpoint = self.checkpoint.is_some();
        let mut shown = f.debug_struct("GoingOn");
        shown.field("resume", &self.resume).field("checkpoint", &checkpoint).finish()
    }
}

/// Returns the error for a place that is not of this way to train.
pub(super) fn another() -> Error {
    Error::Invalid("the checkpoint is of another way to train".into())
}

/// Seconds, those of earlier runs included.
#[derive(Debug)]
pub(super) struct Clock {
    start: Instant,
    before: f64,
}

impl Default for Clock {
    fn default() -> Self {
        Self::after(0.0)
    }
}

impl Clock {
    pub(super) fn after(seconds: f64) -> Self {
        Self { start: Instant::now(), before: seconds }
    }

    pub(super) fn seconds(&self) -> f64 {
        self.before + self.start.elapsed().as_secs_f64()
    }
}

/// Knows where the training last stood at the end of an iteration, and has that written now and then and at the
/// end: an interruption within an iteration loses no more than that iteration.
pub(super) struct Keeper<'a> {
    going: GoingOn<'a>,
    every: f64,
    written: Instant,
    last: Option<Standing>,
}

impl<'a> Keeper<'a> {
    pub(super) fn new(going: GoingOn<'a>, every: f64) -> Self {
        Self { going, every, written: Instant::now(), last: None }
    }

    /// Notes that an iteration has ended.
    pub(super) fn look(&mut self, model: &Model, place: impl FnOnce() -> Place) -> Result<()> {
        if self.going.checkpoint.is_none() {
            return Ok(());
        }
        let params = model.params();
        let values = params.iter().flat_map(|(_, p)| p.value().iter().copied()).collect();
        self.last = Some(Standing { values, place: place() });
        if self.written.elapsed().as_secs_f64() >= self.every {
            self.finish()?;
        }
        Ok(())
    }

    /// Runs the optimiser's way within rounds: its checkpoints become such of these rounds.
    pub(super) fn within<T>(
        &mut self,
        rounds: &Rounds,
        resume: Option<Place>,
        run: impl FnOnce(GoingOn<'_>) -> Result<T>,
    ) -> Result<T> {
        let Some(checkpoint) = &mut self.going.checkpoint else {
            return run(GoingOn { resume, checkpoint: None });
        };
        let last = &mut self.last;
        let mut hand_on = |standing: &Standing| {
            let Place::Ascent(ascent) = &standing.place else { return Err(another()) };
            *last = None;
            let place = Place::Rounds(Rounds { ascent: Some(ascent.clone()), ..rounds.clone() });
            checkpoint(&Standing { values: standing.values.clone(), place })
        };
        run(GoingOn { resume, checkpoint: Some(&mut hand_on) })
    }

    /// Writes where the training stands, if that has not been written.
    pub(super) fn finish(&mut self) -> Result<()> {
        if let (Some(checkpoint), Some(last)) = (&mut self.going.checkpoint, self.last.take()) {
            checkpoint(&last)?;
            self.written = Instant::now();
        }
        Ok(())
    }
}

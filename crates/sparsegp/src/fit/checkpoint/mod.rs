//! Resuming a training or chains from a checkpoint.

#[cfg(feature = "files")]
mod identity;
#[cfg(feature = "files")]
mod kept;
#[cfg(not(feature = "files"))]
#[path = "refused.rs"]
mod kept;

use kept::save_training;
pub(super) use kept::{load, load_whole, save_sampling, save_whole, setting, settings, take};

use super::FitOptions;
use super::fitted::Origin;
use super::keeping::Failures;
use crate::error::{Error, Result};
use crate::model::{Model, Posterior};
use crate::samplers::SamplingState;
use crate::train::{Place, TrainingState, set_all_values};
use std::path::Path;

/// What decides where a training goes: names with their values.
type Settings = Vec<(String, String)>;

/// What a checkpoint holds beside its model.
#[cfg_attr(not(feature = "files"), allow(dead_code))] // nothing is held that cannot be read
pub(super) enum Held {
    Training(Box<TrainingState>),
    Sampling(SamplingState),
    Whole(Place),
}

/// Writes checkpoints of a training by minibatches; what cannot be written or conditioned is noted.
pub(super) fn writer(
    options: &FitOptions,
    origin: &Origin,
    failures: &Failures,
) -> impl FnMut(&Model, &TrainingState) -> Result<()> {
    move |model, state| {
        let Some(path) = options.checkpoint.as_deref() else { return Ok(()) };
        let saved = match Posterior::of_q(model) {
            Err(error) if error.is_recoverable() => Err(error),
            outcome => {
                let now = origin.clone().fitted(model.clone(), outcome?, None);
                save_training(&now, state, path)
            }
        };
        failures.noted(path, saved)
    }
}

/// Gives a model that was prepared the values that it had.
///
/// # Errors
/// [`Error::File`] if they are of another model.
pub(super) fn set_values(model: &mut Model, values: &[f64], path: &Path) -> Result<()> {
    if values.len() != model.params().iter().map(|(_, p)| p.len()).sum::<usize>() {
        return Err(other(path, "it is of a model with other parameters"));
    }
    set_all_values(model, values)
}

/// Returns the error for a checkpoint of the other way to see rows.
pub(super) fn of_another(options: &FitOptions, way: &str) -> Error {
    let path = options.checkpoint.clone().unwrap_or_default();
    other(&path, &format!("it is of a training by {way}"))
}

fn other(path: &Path, reason: &str) -> Error {
    Error::File {
        path: path.into(),
        reason: format!(
            "is not a checkpoint of this training ({reason}); remove it or name another file"
        ),
    }
}

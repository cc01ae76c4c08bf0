//! Resuming a training or chains from a checkpoint.

#[cfg(feature = "files")]
mod identity;
#[cfg(feature = "files")]
mod kept;
#[cfg(not(feature = "files"))]
#[path = "refused.rs"]
mod kept;

pub(super) use kept::{
    check, load, load_whole, save_sampling, save_training, save_whole, settings,
};

use super::FitOptions;
use crate::error::{Error, Result};
use crate::model::Model;
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

/// The error for a checkpoint of the other way to see rows.
pub(super) fn of_another(options: &FitOptions, way: &str) -> Error {
    let path = options.checkpoint.clone().unwrap_or_default();
    other(&path, &format!("it is of a training by {way}"))
}

fn other(path: &Path, reason: &str) -> Error {
    Error::File {
        path: path.into(),
        reason: format!(
            "is no checkpoint of this training ({reason}); remove it or name another file"
        ),
    }
}

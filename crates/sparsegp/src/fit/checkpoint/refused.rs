//! What stands for checkpoints without the feature `files`: a file that is named for one is refused.

use super::{Held, Settings};
use crate::error::{Error, Result};
use crate::fit::{Dataset, FitOptions, Fitted};
use crate::samplers::SamplingState;
use crate::train::{Standing, TrainingState};
use std::convert::Infallible;
use std::path::Path;

fn refused<T>(path: &Path) -> Result<T> {
    Err(Error::File {
        path: path.into(),
        reason: "is named for a checkpoint, and this program was built without the feature `files` of sparsegp: build it \
                 with the feature, or name no checkpoint"
            .into(),
    })
}

/// Refuses every checkpoint.
///
/// # Errors
/// [`Error::File`].
pub(in crate::fit) fn take(options: &FitOptions) -> Result<Option<Infallible>> {
    options.checkpoint.as_deref().map_or(Ok(None), refused)
}

/// Returns none: there is no file to compare them with.
pub(in crate::fit) fn settings(_: &FitOptions, _: &Dataset) -> Result<Settings> {
    Ok(Settings::new())
}

/// Returns nothing, as there is no file.
pub(in crate::fit) fn setting(_: &FitOptions, _: &str) -> Option<String> {
    None
}

/// Refuses the file.
pub(in crate::fit) fn save_whole(
    path: &Path,
    _: &Dataset,
    _: &FitOptions,
    _: &Standing,
) -> Result<()> {
    refused(path)
}

/// Refuses the file.
pub(in crate::fit) fn load_whole(
    path: &Path,
    _: &Dataset,
    _: &FitOptions,
) -> Result<Option<Standing>> {
    refused(path)
}

/// Refuses the file.
pub(in crate::fit) fn load(path: &Path, _: &Dataset, _: &FitOptions) -> Result<(Fitted, Held)> {
    refused(path)
}

/// Refuses the file.
pub(in crate::fit) fn save_training(_: &Fitted, _: &TrainingState, path: &Path) -> Result<()> {
    refused(path)
}

/// Refuses the file.
pub(in crate::fit) fn save_sampling(_: &Fitted, _: &SamplingState, path: &Path) -> Result<()> {
    refused(path)
}

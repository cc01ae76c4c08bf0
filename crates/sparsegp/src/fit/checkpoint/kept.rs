//! Checkpoints in files.

pub(in crate::fit) use super::identity::settings;

use super::identity::{IN_DATA_UNITS, difference, whole_settings};
use super::{Held, Settings, other};
use crate::atomic::{Lock, check_writable, read_bounded, write_atomically};
use crate::data::Scaler;
use crate::error::{Error, Result};
use crate::fit::checks::same_columns;
use crate::fit::{Dataset, FitOptions, Fitted, files};
use crate::samplers::SamplingState;
use crate::train::{Standing, TrainingState};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Takes a checkpoint for this run, if there is one: refuses one that could not be written, before there is anything to lose, and
/// one that another run writes.
///
/// # Errors
/// [`Error::File`].
pub(in crate::fit) fn take(options: &FitOptions) -> Result<Option<Lock>> {
    let Some(path) = options.checkpoint.as_deref() else { return Ok(None) };
    check_writable(path)?;
    Lock::of(path).map(Some)
}

/// Returns a setting of the training that a checkpoint is of, if there is one that can be read. What is wrong with the file is
/// said where it is loaded.
pub(in crate::fit) fn setting(options: &FitOptions, wanted: &str) -> Option<String> {
    let path = options.checkpoint.as_deref().filter(|path| path.exists())?;
    let state = |content: &[u8]| -> Option<Settings> {
        let state = content.strip_prefix(WHOLE)?.get(4..)?;
        Some(postcard::from_bytes::<Whole>(state).ok()?.settings)
    };
    let whole = |first: &[u8]| first.starts_with(WHOLE).then_some(()).ok_or_else(String::new);
    let settings = read_bounded(path, whole).ok().and_then(|content| state(&content));
    let settings = match settings {
        Some(settings) => settings,
        None => match (files::load_sampling(path), files::load_checkpoint(path)) {
            (Ok((_, Some(state))), _) => state.settings,
            (_, Ok((_, Some(state)))) => state.settings,
            _ => return None,
        },
    };
    let (_, value) = settings.into_iter().find(|(name, _)| name == wanted)?;
    Some(value.strip_suffix(IN_DATA_UNITS).unwrap_or(&value).to_owned())
}

/// What a checkpoint of a training on all rows begins with. It is not a model file: what the
/// model's start has in common with every run on these rows with these options is made again.
const WHOLE: &[u8] = b"sparsegp: a training on all rows, 3\n";
/// What all of its versions begin with.
const ANY: &[u8] = b"sparsegp: a training on all rows, ";

/// What it holds.
#[derive(Serialize, Deserialize)]
struct Whole {
    inputs: Vec<String>,
    targets: Vec<String>,
    scaler: Scaler,
    rows: usize,
    seed: u64,
    settings: Settings,
    standing: Standing,
}

/// Writes a checkpoint of a training on all rows.
///
/// # Errors
/// [`Error::File`].
pub(in crate::fit) fn save_whole(
    path: &Path,
    dataset: &Dataset,
    options: &FitOptions,
    standing: &Standing,
) -> Result<()> {
    let rows = dataset.source.rows();
    let whole = Whole {
        inputs: dataset.input_names.clone(),
        targets: dataset.target_names.clone(),
        scaler: dataset.scaler.clone(),
        rows,
        seed: options.seed,
        settings: whole_settings(options, dataset)?,
        standing: standing.clone(),
    };
    let state = postcard::to_stdvec(&whole);
    let state = state.map_err(|e| Error::File { path: path.into(), reason: e.to_string() })?;
    write_atomically(path, &[WHOLE, &crc32fast::hash(&state).to_le_bytes(), &state].concat())
}

/// Reads where a training on all rows stands, if the file is a checkpoint of one.
///
/// # Errors
/// [`Error::File`] if it cannot be read, or is of another training.
pub(in crate::fit) fn load_whole(
    path: &Path,
    dataset: &Dataset,
    options: &FitOptions,
) -> Result<Option<Standing>> {
    // what is neither is refused where models are read
    let whole = |first: &[u8]| first.starts_with(ANY).then_some(()).ok_or_else(String::new);
    let content = match read_bounded(path, whole) {
        Err(Error::File { reason, .. }) if reason.is_empty() => return Ok(None),
        outcome => outcome?,
    };
    let Some(rest) = content.strip_prefix(WHOLE) else {
        return match content.starts_with(ANY) {
            true => Err(other(path, "another release of this program wrote it")),
            false => Ok(None),
        };
    };
    let state = match rest.split_first_chunk::<4>() {
        Some((sum, state)) if crc32fast::hash(state).to_le_bytes() == *sum => state,
        _ => return Err(other(path, "it is damaged: its checksum differs")),
    };
    let whole: Whole = postcard::from_bytes(state)
        .map_err(|e| other(path, &format!("its state cannot be read: {e}")))?;
    let rows = dataset.source.rows();
    let same = whole.inputs == dataset.input_names
        && whole.targets == dataset.target_names
        && whole.scaler == dataset.scaler
        && (whole.rows, whole.seed) == (rows, options.seed);
    if !same {
        return Err(other(path, "it is of other rows, columns or another seed"));
    }
    let of = |options: &FitOptions| whole_settings(options, dataset);
    match difference(&whole.settings, &of(options)?, &of(&FitOptions::default())?) {
        Some(text) => Err(other(path, &text)),
        None => Ok(Some(whole.standing)),
    }
}

/// Reads the model and the state of a checkpoint, if they are of this training.
pub(in crate::fit) fn load(
    path: &Path,
    dataset: &Dataset,
    options: &FitOptions,
) -> Result<(Fitted, Held)> {
    let other = |reason: String| other(path, &reason);
    let (fitted, sampling) = files::load_sampling(path)?;
    let held = match sampling {
        Some(state) => Held::Sampling(state),
        None => files::load_checkpoint(path)?
            .1
            .map(|state| Held::Training(Box::new(state)))
            .ok_or_else(|| other("it holds a model without a state of training".into()))?,
    };
    same_columns(&fitted, dataset).map_err(|e| other(e.to_string()))?;
    if (fitted.rows, fitted.seed) != (dataset.rows, options.seed) {
        return Err(other(format!(
            "it is of {} rows with seed {}, not of {} with {}",
            fitted.rows, fitted.seed, dataset.rows, options.seed
        )));
    }
    let own = match &held {
        Held::Training(state) => &state.settings,
        Held::Sampling(state) => &state.settings,
        Held::Whole(_) => &Vec::new(),
    };
    let of = |options: &FitOptions| settings(options, dataset);
    match difference(own, &of(options)?, &of(&FitOptions::default())?) {
        Some(text) => Err(other(text)),
        None => Ok((fitted, held)),
    }
}

/// Writes a checkpoint of a training by minibatches: a model file that also holds the state.
///
/// # Errors
/// [`Error::File`].
pub(in crate::fit) fn save_training(
    fitted: &Fitted,
    state: &TrainingState,
    path: &Path,
) -> Result<()> {
    files::save_checkpoint(fitted, state, path)
}

/// Saves the same of chains.
///
/// # Errors
/// [`Error::File`].
pub(in crate::fit) fn save_sampling(
    fitted: &Fitted,
    state: &SamplingState,
    path: &Path,
) -> Result<()> {
    files::save_sampling(fitted, state, path)
}

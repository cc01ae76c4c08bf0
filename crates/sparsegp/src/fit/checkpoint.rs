//! Resuming a training or chains from a checkpoint, and continuing to train a saved model.

use super::files;
use super::identity::{Settings, difference, settings, whole_settings};
use super::{Dataset, FitOptions, Fitted};
use crate::atomic::{check_writable, write_atomically};
use crate::data::Scaler;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::samplers::SamplingState;
use crate::train::{Place, Standing, TrainingState, set_all_values};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Refuses a model whose columns or scales are not those of the data.
pub(super) fn same_columns(fitted: &Fitted, dataset: &Dataset) -> Result<()> {
    let lists = [
        ("inputs", fitted.measured_names(), &dataset.input_names[..]),
        ("targets", &fitted.target_names[..], &dataset.target_names[..]),
    ];
    for (what, own, given) in lists {
        if own != given {
            return Err(Error::Invalid(format!(
                "the model's {what} are {}, those of the data {}",
                own.join(", "),
                given.join(", ")
            )));
        }
    }
    if fitted.classes != dataset.classes {
        return Err(Error::Invalid("the model knows other classes than the data have".into()));
    }
    let known = fitted.measured_names().len();
    if fitted.scaler.clone().first_inputs(known) != dataset.scaler {
        return Err(Error::Invalid(
            "the data are not scaled as the model's were: other rows, or give the model's scaler"
                .into(),
        ));
    }
    Ok(())
}

/// Refuses a checkpoint that could not be written, before there is anything to lose.
///
/// # Errors
/// [`Error::File`].
pub(super) fn check(options: &FitOptions) -> Result<()> {
    options.checkpoint.as_deref().map_or(Ok(()), check_writable)
}

/// What a checkpoint holds beside its model.
pub(super) enum Held {
    Training(Box<TrainingState>),
    Sampling(SamplingState),
    Whole(Place),
}

/// What a checkpoint of a training on all rows begins with. It is no model file: what the model's start has in
/// common with every run on these rows with these options is made anew.
const WHOLE: &[u8] = b"sparsegp: a training on all rows, 2\n";
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
pub(super) fn save_whole(
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
        settings: whole_settings(options, dataset),
        standing: standing.clone(),
    };
    let state = postcard::to_stdvec(&whole);
    let state = state.map_err(|e| Error::File { path: path.into(), reason: e.to_string() })?;
    write_atomically(path, &[WHOLE, &crc32fast::hash(&state).to_le_bytes(), &state].concat())
}

/// Where a training on all rows stands, if the file is a checkpoint of one.
///
/// # Errors
/// [`Error::File`] if it cannot be read, or is of another training.
pub(super) fn load_whole(
    path: &Path,
    dataset: &Dataset,
    options: &FitOptions,
) -> Result<Option<Standing>> {
    let content = std::fs::read(path).map_err(|e| Error::io(path, &e))?;
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
    match difference(&whole.settings, &of(options), &of(&FitOptions::default())) {
        Some(told) => Err(other(path, &told)),
        None => Ok(Some(whole.standing)),
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

/// The model and the state of a checkpoint, if they are of this training.
pub(super) fn load(path: &Path, dataset: &Dataset, options: &FitOptions) -> Result<(Fitted, Held)> {
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
    match difference(own, &of(options), &of(&FitOptions::default())) {
        Some(told) => Err(other(told)),
        None => Ok((fitted, held)),
    }
}

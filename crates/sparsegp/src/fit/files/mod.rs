//! Model files: one `.safetensors` file with a tensor per parameter, named by its path, and a JSON
//! header under the metadata key `sparsegp`. A file loads without the training data. Every tensor and the header have a
//! checksum: a file of which a bit has changed is refused with the name of the part that is damaged. The same fit writes the same
//! bytes, but for the clock (`written.clock`) and the checksums, which are the end of numbers and bytes.
//!
//! | tensor | shape | what |
//! | --- | --- | --- |
//! | `kernel.…`, `mean.…`, `likelihood.variance` | of the parameter | constrained values |
//! | `inducing.points` (`inducing.points[l]`) | M×D | inducing inputs on the model's scale |
//! | `layers[l].…` | as of the model's own | kernel, mean, inducing points and q of the hidden layers of a deep model, the first one's rows are the inputs |
//! | `q.mu` | M×L | mean of q, whitened unless the header says otherwise |
//! | `q.sqrt` | M×M, L×M×M or M×L | lower root of q's covariance (shared or of every latent function), or standard deviations |
//! | `q.lambda`, `q.t_sqrt` | M, 1×M×M | of L-SVGP and R-SVGP: noise variances of the pseudo-observations, lower root of the auxiliary T |
//! | `q.lambda1`, `q.lambda2` | M×L, L×M×M | of q kept as sites: first statistics, and second ones, which are symmetric, with zeros above the diagonal; N×L each for `tvgp` |
//! | `training.state` | bytes | of a checkpoint: what training by minibatches needs to resume |
//! | `sampling.chains` | bytes | of a checkpoint: what chains need to resume |
//! | `q.v` | L | factors of the conditional variance, for bounds that have them |
//! | `posterior.inputs` | N×D | training inputs, for the methods without inducing points only |
//! | `posterior.targets`, `posterior.weights`, `posterior.extra` | N×P, N×1, N×1 | the rest of these rows where methods keep them; the last two where rows bring them |
//! | `posterior.latest` | N×P | in the place of `posterior.targets` where earlier rows of a series have left |
//! | `past.numbers`, `past.states[l]` | 1×3, S×(C+S) | of the rows that have left: the place of the last, their number, what they add to the objective; means of the states of C latent functions, and their covariance |
//! | `trend.roots` | K×LK | roots of the covariances of a mean function's K coefficients, where they were learnt under Gaussian noise |
//! | `trend.weights` | M×LK | by what covariances with inducing points answer for them |
//! | `posterior.draws` | SL×M | draws of the whitened variables (of a series of the states at its rows, row by row), one after the other, where the posterior was sampled |
//! | `posterior.hyperparameters` | S×H | hyperparameters of every draw where they were sampled too, in the order of the parameters but for inducing points and q |
//! | `posterior.times` | S×1 | for an average over `posterior.hyperparameters`: how often each counts |
//! | `posterior.sites` | 2SL×N | for such an average by sites of all rows: λ₁ and then λ₂ of the latent functions, setting by setting |
//! | `posterior.noise` | N×1 | variances of the noise of these rows, where weights or the data make them differ |
//! | `training.trace` | T×6 | iteration, evaluations, objective, largest slope, log density of rows kept aside (NaN without), number of hyperparameters, of every point of the history |
//! | `training.parameters` | T×H | hyperparameters at these points |
//! | `carried.precision`, `carried.linear`, `carried.constant` | LM×M, L×M, L×1 | Λ, h and c of what all rows but the kept ones said of every latent function at the inducing points, where rows were added after the fit |
//! | `kept.rows`, `kept.sites` | K×(D+P+3), K×2L | a sample of the rows that were added, for noise that is not Gaussian: inputs, targets, weight, further number (NaN without) and rank; λ and β of their sites |
//! | `division.held_out`, `division.aside` | bytes | a bit for each row of the table, the lowest first: rows held out to test on, rows kept aside to tell when to stop |
//! | `model.header` | bytes | the JSON header, where it is longer than 64 KiB: the metadata then hold its version and the name of this tensor |
//! | `written.clock` | 3 + T | when the model was made (seconds since 1970), seconds of the training, of a sweep of chains, and at every point of the history; NaN where unknown |
//! | `written.sums` | bytes | CRC-32 of every other tensor in the order of the file, of the header with its length, of these sums, then `SPGPSUMS` |

mod averages;
mod carried;
mod gplvm;
mod header;
mod history;
mod kept;
mod layers;
mod read;
mod sums;
mod write;

use crate::atomic::{read_bounded, write_atomically};
use crate::error::{Error, Result};
use crate::fit::Fitted;
use crate::samplers::SamplingState;
use crate::train::TrainingState;
use safetensors::SafeTensors;
use std::path::Path;

pub use gplvm::{gplvm_from_bytes, gplvm_to_bytes, load_gplvm, save_gplvm};
pub use read::from_bytes;
pub use sums::reseal;
use write::content;

/// Version of the layout; a reader refuses later ones.
pub const VERSION: u32 = 3;
const KEY: &str = "sparsegp";
/// Tensor of bytes that holds a state of training.
const STATE: &str = "training.state";
/// Tensor of bytes that holds a state of sampling. (`sampling.state` was another layout.)
const SAMPLING: &str = "sampling.chains";
/// Tensor of bytes that holds a long header.
const HEADER: &str = "model.header";
/// Tensor of what differs between runs of the same fit.
const CLOCK: &str = "written.clock";
/// Tensors of bits that tell rows apart.
const HELD_OUT: &str = "division.held_out";
const ASIDE: &str = "division.aside";
/// Writes a model file; atomically, so that a failure leaves an older file as it was.
///
/// # Errors
/// [`Error::File`].
pub fn save(fitted: &Fitted, path: &Path) -> Result<()> {
    save_with(fitted, Holds::Nothing, path)
}

/// Writes a model file that also holds a state of training by minibatches, to resume from
/// ([`load_checkpoint`]); a model file like any other otherwise.
///
/// # Errors
/// [`Error::File`].
pub fn save_checkpoint(fitted: &Fitted, state: &TrainingState, path: &Path) -> Result<()> {
    save_with(fitted, Holds::Training(state), path)
}

/// Writes a model file that also holds a state of sampling, to resume from ([`load_sampling`]).
///
/// # Errors
/// [`Error::File`].
pub fn save_sampling(fitted: &Fitted, state: &SamplingState, path: &Path) -> Result<()> {
    save_with(fitted, Holds::Sampling(state), path)
}
/// What a file holds beside the model.
enum Holds<'a> {
    Nothing,
    Training(&'a TrainingState),
    Sampling(&'a SamplingState),
}
fn save_with(fitted: &Fitted, state: Holds<'_>, path: &Path) -> Result<()> {
    let content =
        content(fitted, state).map_err(|reason| Error::File { path: path.into(), reason })?;
    write_atomically(path, &content)
}
/// Returns the content of a model file.
///
/// # Errors
/// [`Error::Invalid`] if the model cannot be written.
pub fn to_bytes(fitted: &Fitted) -> Result<Vec<u8>> {
    content(fitted, Holds::Nothing).map_err(Error::Invalid)
}
/// Reads a model file.
///
/// # Errors
/// [`Error::File`] if it cannot be read, is truncated, or is not a model of this library.
pub fn load(path: &Path) -> Result<Fitted> {
    read_from(path, &read_bounded(path, is_model)?)
}

/// Most bytes of the header of a file of tensors.
const LONGEST_HEADER: u64 = 100_000_000;

/// Says what is wrong with the beginning of a file that cannot be a model: the length of a header, and its first brace, are missing.
fn is_model(beginning: &[u8]) -> std::result::Result<(), String> {
    let length = beginning.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes));
    let header = length.is_some_and(|length| (2..=LONGEST_HEADER).contains(&length));
    match header && beginning.get(8) == Some(&b'{') {
        true => Ok(()),
        false => Err(foreign("it does not begin as one").to_string()),
    }
}

/// Reads the content of this file.
fn read_from(path: &Path, content: &[u8]) -> Result<Fitted> {
    from_bytes(content).map_err(|error| {
        let reason = match error {
            Error::Invalid(reason) => reason,
            other => other.to_string(),
        };
        Error::File { path: path.into(), reason }
    })
}

/// Reads a model file with the state of training in it, if there is one.
///
/// # Errors
/// [`Error::File`] as for [`load`].
pub fn load_checkpoint(path: &Path) -> Result<(Fitted, Option<TrainingState>)> {
    load_with(path, STATE)
}

/// Reads a model file with the state of sampling in it, if there is one.
///
/// # Errors
/// [`Error::File`] as for [`load`].
pub fn load_sampling(path: &Path) -> Result<(Fitted, Option<SamplingState>)> {
    load_with(path, SAMPLING)
}
/// Reads a state beside a model.
fn load_with<S: serde::de::DeserializeOwned>(
    path: &Path,
    name: &str,
) -> Result<(Fitted, Option<S>)> {
    let content = read_bounded(path, is_model)?;
    let fitted = read_from(path, &content)?;
    let damaged = |e: &dyn std::fmt::Display| Error::File {
        path: path.into(),
        reason: format!("holds a state that cannot be read ({e})"),
    };
    let tensors = SafeTensors::deserialize(&content).map_err(|e| damaged(&e))?;
    let Ok(tensor) = tensors.tensor(name) else { return Ok((fitted, None)) };
    let state = postcard::from_bytes(tensor.data()).map_err(|e| damaged(&e))?;
    Ok((fitted, Some(state)))
}
fn foreign(detail: impl std::fmt::Display) -> Error {
    Error::Invalid(format!(
        "is not a complete sparsegp model file ({detail}); give a file that `sparsegp fit -o` wrote"
    ))
}

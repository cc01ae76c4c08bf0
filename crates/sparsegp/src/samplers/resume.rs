//! What chains need to resume, to the same bits.

use super::chains::{Kept, Runs};
use crate::error::{Error, Result};
use crate::linalg::Mat;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Where the sampling of a model stands, with the draws made: what a checkpoint holds beside the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SamplingState {
    /// What the sampling was asked to be; whoever takes checkpoints fills it in.
    pub settings: Vec<(String, String)>,
    /// Sweeps that every chain has made.
    pub sweeps: usize,
    chains: Vec<Standing>,
}

/// Takes a state of sampling.
pub type Checkpointer<'a> = &'a mut dyn FnMut(SamplingState) -> Result<()>;

/// Where chains begin, and who takes their states.
#[derive(Default)]
pub struct Going<'a> {
    /// They continue from here, as if there had been no interruption; none for the start. There may
    /// be more draws to make than when the sampling began.
    pub state: Option<&'a SamplingState>,
    /// Who takes states, and the seconds between them; there is one at the end, too.
    pub checkpoint: Option<(Checkpointer<'a>, f64)>,
}

impl std::fmt::Debug for Going<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let seconds = self.checkpoint.as_ref().map(|(_, seconds)| seconds);
        f.debug_struct("Going").field("state", &self.state).field("seconds", &seconds).finish()
    }
}

/// Of one chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Standing {
    /// Of what it moves by ([`Runs::State`]).
    state: Vec<u8>,
    draws: Vec<(Numbers, Numbers)>,
    drawn_hyperparameters: Vec<Vec<f64>>,
}

/// A matrix, column by column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Numbers {
    rows: usize,
    values: Vec<f64>,
}

impl Numbers {
    pub(super) fn of(a: &Mat<f64>) -> Self {
        let values = (0..a.ncols()).flat_map(|j| a.col_as_slice(j)).copied().collect();
        Self { rows: a.nrows(), values }
    }

    /// Returns the matrix, of the shape of another one.
    pub(super) fn like(&self, other: &Mat<f64>) -> Result<Mat<f64>> {
        let (rows, columns) = (other.nrows(), other.ncols());
        if self.rows != rows || self.values.len() != rows * columns {
            return Err(of_others());
        }
        Ok(Mat::from_fn(rows, columns, |i, j| self.values[j * rows + i]))
    }
}

/// Returns the error for a state of something else.
pub(super) fn of_others() -> Error {
    Error::Invalid("a state of sampling that is of other chains or rows".into())
}

fn damaged(error: postcard::Error) -> Error {
    Error::Invalid(format!("a state of sampling that cannot be read ({error})"))
}

/// Reads what [`written`] has made.
fn read<S: DeserializeOwned>(bytes: &[u8]) -> Result<S> {
    postcard::from_bytes(bytes).map_err(damaged)
}

fn written(state: &impl Serialize) -> Result<Vec<u8>> {
    postcard::to_stdvec(state).map_err(damaged)
}

impl SamplingState {
    pub(super) fn of<R: Runs>(chains: &[Kept<R>], sweeps: usize) -> Result<Self> {
        let each = chains.iter().map(|kept| {
            Ok(Standing {
                state: written(&kept.chain.state())?,
                draws: kept.f.iter().map(Numbers::of).zip(kept.z.iter().map(Numbers::of)).collect(),
                drawn_hyperparameters: kept.hyperparameters.clone(),
            })
        });
        Ok(Self { settings: Vec::new(), sweeps, chains: each.collect::<Result<_>>()? })
    }

    /// Puts chains that have just been made where these stood.
    pub(super) fn restore<R: Runs>(&self, chains: &mut [Kept<R>]) -> Result<()> {
        if self.chains.len() != chains.len() {
            return Err(of_others());
        }
        for (standing, kept) in self.chains.iter().zip(chains) {
            kept.chain.restore(read(&standing.state)?)?;
            let (f, z) = (kept.chain.latent_values(), kept.chain.whitened());
            let drawn = || standing.draws.iter();
            kept.f = drawn().map(|(own, _)| own.like(f)).collect::<Result<_>>()?;
            kept.z = drawn().map(|(_, own)| own.like(z)).collect::<Result<_>>()?;
            kept.hyperparameters.clone_from(&standing.drawn_hyperparameters);
        }
        Ok(())
    }
}

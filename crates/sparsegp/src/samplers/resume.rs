//! What a chain needs to go on, to the same bits.

use super::chains::Kept;
use super::gibbs::Running;
use crate::error::{Error, Result};
use crate::linalg::Mat;
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

/// Of one chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Standing {
    /// Position of the generator in its stream.
    word: u128,
    f: Numbers,
    z: Numbers,
    /// Where they are sampled.
    hyperparameters: Option<Vec<f64>>,
    draws: Vec<(Numbers, Numbers)>,
    drawn_hyperparameters: Vec<Vec<f64>>,
}

/// A matrix, column by column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Numbers {
    rows: usize,
    values: Vec<f64>,
}

impl Numbers {
    fn of(a: &Mat<f64>) -> Self {
        let values = (0..a.ncols()).flat_map(|j| a.col_as_slice(j)).copied().collect();
        Self { rows: a.nrows(), values }
    }

    fn matrix(&self) -> Mat<f64> {
        let rows = self.rows;
        Mat::from_fn(rows, self.values.len() / rows.max(1), |i, j| self.values[j * rows + i])
    }
}

impl SamplingState {
    pub(super) fn of(chains: &[Kept<Running<'_, '_>>], sweeps: usize) -> Self {
        let each = chains.iter().map(|kept| {
            let chain = &kept.chain.chain;
            Standing {
                word: chain.rng.get_word_pos(),
                f: Numbers::of(&chain.f),
                z: Numbers::of(&chain.z),
                hyperparameters: kept.chain.own_hyperparameters(),
                draws: kept.f.iter().map(Numbers::of).zip(kept.z.iter().map(Numbers::of)).collect(),
                drawn_hyperparameters: kept.hyperparameters.clone(),
            }
        });
        Self { settings: Vec::new(), sweeps, chains: each.collect() }
    }

    /// Puts chains that have just been made where these stood.
    pub(super) fn restore(&self, chains: &mut [Kept<Running<'_, '_>>]) -> Result<()> {
        let other = || Error::Invalid("a state of sampling that is of other chains or rows".into());
        if self.chains.len() != chains.len() {
            return Err(other());
        }
        for (standing, kept) in self.chains.iter().zip(chains) {
            let (f, z) = (standing.f.matrix(), standing.z.matrix());
            let chain = &mut kept.chain.chain;
            let same =
                |a: &Mat<f64>, b: &Mat<f64>| (a.nrows(), a.ncols()) == (b.nrows(), b.ncols());
            if !same(&f, &chain.f) || !same(&z, &chain.z) {
                return Err(other());
            }
            (chain.f, chain.z) = (f, z);
            chain.rng.set_word_pos(standing.word);
            if let Some(own) = &standing.hyperparameters {
                kept.chain.set_hyperparameters(own)?;
            }
            kept.f = standing.draws.iter().map(|(f, _)| f.matrix()).collect();
            kept.z = standing.draws.iter().map(|(_, z)| z.matrix()).collect();
            kept.hyperparameters.clone_from(&standing.drawn_hyperparameters);
        }
        Ok(())
    }
}

//! Predictions and scores of many rows, with all threads.

use crate::data::Block;
use crate::error::Result;
use crate::fit::Fitted;
use crate::linalg::{Mat, MatRef};
use crate::metrics::Metrics;
use rayon::prelude::*;

/// Rows per task: fixed, so that results do not depend on the number of threads.
const ROWS: usize = 256;

/// What a prediction is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Of {
    /// New observations: noise included.
    #[default]
    Observations,
    /// The latent function.
    Latent,
}

impl Fitted {
    /// Predictive means and variances, both B×P, in the data's units, from inputs on the model's
    /// scale; as [`Fitted::predict_y`] and [`Fitted::predict_f`] give them, with all threads.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] if the number of columns differs.
    pub fn predict_rows(&self, x: MatRef<'_, f64>, of: Of) -> Result<(Mat<f64>, Mat<f64>)> {
        let n = x.nrows();
        let parts: Vec<(Mat<f64>, Mat<f64>)> = (0..n.div_ceil(ROWS))
            .into_par_iter()
            .map(|part| {
                let start = part * ROWS;
                let rows = x.subrows(start, ROWS.min(n - start)).to_owned();
                match of {
                    Of::Observations => self.predict_y(rows.as_ref()),
                    Of::Latent => self.predict_f(rows.as_ref()),
                }
            })
            .collect::<Result<_>>()?;
        let mut mean = Mat::zeros(n, self.target_names.len());
        let mut variance = Mat::zeros(n, self.target_names.len());
        for (part, (m, v)) in parts.iter().enumerate() {
            mean.as_mut().subrows_mut(part * ROWS, m.nrows()).copy_from(m);
            variance.as_mut().subrows_mut(part * ROWS, v.nrows()).copy_from(v);
        }
        Ok((mean, variance))
    }

    /// Scores of the predictions for these blocks (inputs on the model's scale, targets in their own
    /// units), against the trivial model of the training targets.
    ///
    /// # Errors
    /// What the blocks give; what [`Metrics::add`] refuses.
    pub fn score(&self, blocks: impl IntoIterator<Item = Result<Block>>) -> Result<Metrics> {
        let mut metrics = Metrics::against_trivial(&self.target_mean, &self.target_variance)?;
        for block in blocks {
            let block = block?;
            let (mean, variance) = self.predict_rows(block.x.as_ref(), Of::Observations)?;
            metrics.add(block.y.as_ref(), mean.as_ref(), variance.as_ref())?;
        }
        Ok(metrics)
    }
}

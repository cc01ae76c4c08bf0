//! Weights of rows: whether they count repeated observations, or say how much rows matter beside each other.

use super::Dataset;
use crate::data::{Batches, InMemory, Minibatch, Position, Rows, Source};
use crate::error::{Error, Result};

/// Factor by which the sum of weights may differ from the number of rows without a word.
const USUAL: f64 = 10.0;
/// What a warning about weights begins with.
const BEGINNING: &str = "the weights of ";

/// Part of the mean weight from which on a row says something by itself.
const COUNTS: f64 = 0.01;

/// Returns the rows that count beside the others: all but those of next to no weight.
pub(super) fn counting(rows: &InMemory) -> Vec<usize> {
    let mean = rows.weights.iter().sum::<f64>() / rows.weights.len().max(1) as f64;
    // a row that stands for many does not take their part from others
    let least = COUNTS * mean.min(1.0);
    let counts = |i: &usize| rows.weights.get(*i).is_none_or(|weight| *weight > least);
    (0..rows.x.nrows()).filter(counts).collect()
}

/// Says that weights sum to far fewer rows than there are, or to far more where they are not
/// numbers of repeated rows.
pub(super) fn odd(total: f64, rows: usize) -> Option<String> {
    let mean = total / rows as f64;
    let repeats = total.fract() == 0.0;
    (mean * USUAL < 1.0 || (mean > USUAL && !repeats)).then(|| {
        format!(
            "{BEGINNING}{rows} rows sum to {total}: the table counts as so many rows. If they are relative weights, \
             `--relative-weights` (`relative_weights=True` in Python) divides them by their mean, {mean:e}"
        )
    })
}

impl Dataset {
    /// Divides the weights of the rows by their mean over rows of a weight above 0, so that they sum to the number of these:
    /// for [`FitOptions::relative_weights`](super::FitOptions::relative_weights).
    ///
    /// # Errors
    /// [`Error::Invalid`] for rows in other processes.
    pub fn make_weights_relative(&mut self) -> Result<()> {
        let Some(total) = self.total_weight else { return Ok(()) };
        if self.source.sharded().is_some() {
            return Err(Error::Invalid(
                "weights of rows in other processes are as they are: divide them by their mean, and leave `relative_weights` out"
                    .into(),
            ));
        }
        let factor = self.counted as f64 / total;
        let scaled = |of: Box<dyn Source>| Box::new(Reweighted { of, factor });
        let none: Box<dyn Source> = Box::new(crate::data::InMemory::new(
            crate::linalg::Mat::zeros(0, 0),
            crate::linalg::Mat::zeros(0, 0),
        )?);
        self.source = scaled(std::mem::replace(&mut self.source, none));
        self.total_weight = Some(self.counted as f64);
        self.absent.iter_mut().for_each(|weight| *weight *= factor);
        self.warnings.retain(|text| !text.starts_with(BEGINNING));
        Ok(())
    }

    /// Refuses weights that were to be relative and do not sum to the number of rows.
    pub(super) fn check_relative(&self) -> Result<()> {
        let rows = self.counted as f64;
        match self.total_weight.is_some_and(|total| (total - rows).abs() > 1e-9 * rows) {
            true => Err(Error::Invalid(
                "weights are to be relative: `Dataset::make_weights_relative` makes them so".into(),
            )),
            false => Ok(()),
        }
    }
}

/// Rows whose weights are multiplied.
struct Reweighted {
    of: Box<dyn Source>,
    factor: f64,
}

impl Source for Reweighted {
    fn rows(&self) -> usize {
        self.of.rows()
    }
    fn inputs(&self) -> usize {
        self.of.inputs()
    }
    fn outputs(&self) -> usize {
        self.of.outputs()
    }
    fn is_plain(&self) -> bool {
        self.of.is_plain()
    }
    fn is_resident(&self) -> bool {
        self.of.is_resident()
    }
    fn batches(&self, size: usize, seed: u64) -> Result<Box<dyn Batches + '_>> {
        Ok(Box::new(ReweightedBatches { of: self.of.batches(size, seed)?, factor: self.factor }))
    }
    fn for_each_chunk(
        &self,
        chunk_rows: usize,
        f: &mut dyn FnMut(Rows<'_>) -> Result<()>,
    ) -> Result<()> {
        self.of.for_each_chunk(chunk_rows, &mut |rows| {
            let weights: Vec<f64> = rows.weights.iter().map(|w| w * self.factor).collect();
            f(Rows { weights: &weights, ..rows })
        })
    }
}

/// Minibatches of such rows.
struct ReweightedBatches<'a> {
    of: Box<dyn Batches + 'a>,
    factor: f64,
}

impl Batches for ReweightedBatches<'_> {
    fn population(&self) -> usize {
        self.of.population()
    }
    fn inputs(&self) -> usize {
        self.of.inputs()
    }
    fn outputs(&self) -> usize {
        self.of.outputs()
    }
    fn per_epoch(&self) -> usize {
        self.of.per_epoch()
    }
    fn next(&mut self, out: &mut Minibatch) -> Result<()> {
        self.of.next(out)?;
        out.rows.weights.iter_mut().for_each(|weight| *weight *= self.factor);
        Ok(())
    }
    fn remark(&self) -> Option<String> {
        self.of.remark()
    }
    fn position(&self) -> Position {
        self.of.position()
    }
    fn seek(&mut self, to: Position) -> Result<()> {
        self.of.seek(to)
    }
}

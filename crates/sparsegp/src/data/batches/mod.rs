//! Minibatches in shuffled epochs.
//!
//! In every epoch each row of the data comes exactly once, in a newly drawn order. The T batches of
//! an epoch differ in size by one row at most (a last batch of a few rows would be scaled up by a
//! huge factor), and a batch of B rows stands for all N: Σ over its rows, times N/B, estimates the
//! sum over the data. For rows in memory a batch is a simple random sample, so the estimate has no
//! bias; the mean of an epoch's estimates, weighted by the sizes B, is the sum itself whatever the
//! order.
//!
//! A batch is a function only of the data, the size, the seed and its [`Position`]: a run that is
//! interrupted and resumes from a position sees what it would have seen.

mod memory;
mod shards;

pub use memory::ShuffledInMemory;
pub use shards::ShuffledShards;

#[cfg(feature = "tables")]
pub use super::tables::ShuffledTable;

use super::shards::Shape;
use super::source::{InMemory, Rows, Source};
use crate::error::{Error, Result};
use faer::Mat;
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Which batch comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Position {
    /// Epoch, from 0.
    pub epoch: u64,
    /// Batch in the epoch, from 0.
    pub batch: usize,
}

/// Rows of a data set in batches, without end.
pub trait Batches: Send {
    /// Returns the number of rows N of the data set.
    fn population(&self) -> usize;
    /// Returns the number of input columns D.
    fn inputs(&self) -> usize;
    /// Returns the number of target columns P.
    fn outputs(&self) -> usize;
    /// Returns the number of batches T in an epoch.
    fn per_epoch(&self) -> usize;
    /// Replaces the rows in `out` by those of the next batch. Give the same `out` again: its memory is
    /// reused.
    ///
    /// # Errors
    /// [`Error::File`], [`Error::Cell`] if a file cannot be read any more or has changed. The position
    /// stays, and the next call tries again.
    fn next(&mut self, out: &mut Minibatch) -> Result<()>;
    /// Returns what a person should know about the order in which rows come.
    fn remark(&self) -> Option<String> {
        None
    }
    /// Returns the batch that [`Batches::next`] would give now.
    fn position(&self) -> Position;
    /// Continues from there.
    ///
    /// # Errors
    /// [`Error::Invalid`] if an epoch has no such batch.
    fn seek(&mut self, to: Position) -> Result<()>;
}

/// Some rows that stand for all: a [`Source`] whose [`Source::population`] is that of the data set.
#[derive(Clone, Debug)]
pub struct Minibatch {
    /// The B rows.
    pub rows: InMemory,
    /// The number N of rows that they stand for.
    pub population: usize,
}

impl Default for Minibatch {
    fn default() -> Self {
        Self::new()
    }
}

impl Minibatch {
    /// Creates a minibatch of no rows yet.
    pub fn new() -> Self {
        let rows =
            InMemory { x: Mat::new(), y: Mat::new(), weights: Vec::new(), extra: Vec::new() };
        Self { rows, population: 0 }
    }

    /// Makes room for `rows` rows, with side columns where there are some. Allocates only to grow.
    pub(super) fn resize(&mut self, rows: usize, shape: Shape) {
        for (mat, columns) in [(&mut self.rows.x, shape.inputs), (&mut self.rows.y, shape.outputs)]
        {
            mat.resize_with(rows, columns, |_, _| 0.0);
        }
        self.rows.weights.resize(if shape.weights { rows } else { 0 }, 1.0);
        self.rows.extra.resize(if shape.extra { rows } else { 0 }, 0.0);
    }
}

impl Source for Minibatch {
    fn rows(&self) -> usize {
        self.rows.rows()
    }
    fn inputs(&self) -> usize {
        self.rows.inputs()
    }
    fn outputs(&self) -> usize {
        self.rows.outputs()
    }
    fn population(&self) -> usize {
        self.population
    }
    fn is_resident(&self) -> bool {
        true
    }
    fn for_each_chunk(
        &self,
        chunk_rows: usize,
        f: &mut dyn FnMut(Rows<'_>) -> Result<()>,
    ) -> Result<()> {
        self.rows.for_each_chunk(chunk_rows, f)
    }
}

/// How the N places of an epoch are divided into batches, and which comes next.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    pub(super) rows: usize,
    pub(super) per_epoch: usize,
    pub(super) next: Position,
}

impl Schedule {
    /// Creates batches of at most `size` of `rows` rows.
    pub(super) fn new(rows: usize, size: usize) -> Result<Self> {
        if size == 0 || rows == 0 {
            return Err(Error::Invalid(format!(
                "minibatches of {size} row(s) cannot be drawn from {rows} row(s): both numbers must \
                 be at least 1"
            )));
        }
        Ok(Self { rows, per_epoch: rows.div_ceil(size), next: Position::default() })
    }

    /// Returns the places of a batch: the first N mod T batches have one row more than the others.
    pub(super) fn places(&self, batch: usize) -> Range<usize> {
        let (least, more) = (self.rows / self.per_epoch, self.rows % self.per_epoch);
        let start = |batch: usize| batch * least + batch.min(more);
        start(batch)..start(batch + 1)
    }

    pub(super) fn advance(&mut self) {
        self.next.batch += 1;
        if self.next.batch == self.per_epoch {
            self.next = Position { epoch: self.next.epoch + 1, batch: 0 };
        }
    }

    pub(super) fn seek(&mut self, to: Position) -> Result<()> {
        if to.batch >= self.per_epoch {
            return Err(Error::Invalid(format!(
                "there is no batch {} (counted from 0) in an epoch of {} batches: the position \
                 belongs to other data or to another batch size",
                to.batch, self.per_epoch
            )));
        }
        self.next = to;
        Ok(())
    }
}

/// Returns the name of the stream of random numbers of an epoch, in memory that is reused.
pub(super) fn stream_name(name: &mut String, epoch: u64) -> &str {
    use std::fmt::Write;
    name.clear();
    // Writing to a string cannot fail.
    let _ = write!(name, "batches/{epoch}");
    name
}

/// Shuffles by Fisher–Yates in place: 0, 1, …, n − 1 become [`crate::rng::permutation`] of all n.
pub(super) fn shuffle(generator: &mut impl Rng, order: &mut [usize]) {
    order.iter_mut().enumerate().for_each(|(i, value)| *value = i);
    for i in 0..order.len() {
        order.swap(i, i + crate::rng::below(generator, order.len() - i));
    }
}

/// Copies the entries of `from` at `indices` to `to`.
pub(super) fn gather(from: &[f64], indices: &[usize], to: &mut [f64]) {
    for (to, &index) in to.iter_mut().zip(indices) {
        *to = from[index];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{permutation, stream};

    #[test]
    fn a_shuffle_is_the_permutation_of_the_stream() {
        for n in [0, 1, 2, 7, 1000] {
            let mut order = vec![99; n];
            shuffle(&mut stream(3, "batches/0"), &mut order);
            assert_eq!(order, permutation(&mut stream(3, "batches/0"), n, n));
        }
    }

    #[test]
    fn the_batches_of_an_epoch_differ_by_one_row_at_most() {
        for (rows, size) in [(1, 1), (1, 9), (10, 4), (10, 5), (10, 10), (11, 10), (10_001, 100)] {
            let schedule = Schedule::new(rows, size).unwrap();
            let mut end = 0;
            for batch in 0..schedule.per_epoch {
                let places = schedule.places(batch);
                assert_eq!(places.start, end);
                assert!(places.len() <= size && places.len() >= rows / schedule.per_epoch);
                // Memory that was large enough for the first is large enough for all.
                assert!(places.len() <= schedule.places(0).len());
                end = places.end;
            }
            assert_eq!(end, rows);
        }
    }
}

//! The seam between models and data: rows arrive in chunks, from memory or from a file.

use super::batches::{Batches, ShuffledInMemory};
use super::shards::ShardedRows;
use crate::error::{Error, Result};
use faer::{Mat, MatRef};

/// Consecutive rows of a data set. Matrices are column-major: the rows of one column are contiguous.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// Index of the first row in the whole data set.
    pub start: usize,
    /// Inputs, B×D.
    pub x: MatRef<'a, f64>,
    /// Targets, B×P.
    pub y: MatRef<'a, f64>,
    /// Weights of the rows, B; empty where all are 1.
    pub weights: &'a [f64],
    /// The further number of every row (exposure, trials, known noise variance), B; empty where there
    /// is none.
    pub extra: &'a [f64],
}

impl<'a> Rows<'a> {
    /// Creates rows with nothing but inputs and targets.
    pub fn plain(start: usize, x: MatRef<'a, f64>, y: MatRef<'a, f64>) -> Self {
        Self { start, x, y, weights: &[], extra: &[] }
    }

    /// Returns `len` of these rows from the row `first`.
    pub fn part(&self, first: usize, len: usize) -> Self {
        let part = |values: &'a [f64]| {
            if values.is_empty() { values } else { &values[first..first + len] }
        };
        Self {
            start: self.start + first,
            x: self.x.subrows(first, len),
            y: self.y.subrows(first, len),
            weights: part(self.weights),
            extra: part(self.extra),
        }
    }
}

/// A data set that can be read again and again, in order, in chunks.
pub trait Source: Send + Sync {
    /// Returns the number of rows N.
    fn rows(&self) -> usize;
    /// Returns the number of input columns D.
    fn inputs(&self) -> usize;
    /// Returns the number of target columns P.
    fn outputs(&self) -> usize;
    /// Returns whether rows bring neither weights nor a further number.
    fn is_plain(&self) -> bool {
        true
    }
    /// Returns the number of rows that these stand for: more than [`Source::rows`] for a minibatch.
    fn population(&self) -> usize {
        self.rows()
    }
    /// Returns how many rows each of these stands for, by which sums over them are multiplied: N/B for a minibatch. It need not be a
    /// whole number of rows in all.
    fn scale(&self) -> f64 {
        self.population() as f64 / self.rows().max(1) as f64
    }
    /// Returns these rows as those of other processes, if that is where they are: then sums over
    /// them are asked for there.
    fn sharded(&self) -> Option<&ShardedRows> {
        None
    }
    /// Returns whether all rows are in memory, so that a chunk of any size costs nothing.
    fn is_resident(&self) -> bool {
        false
    }
    /// Returns the shuffled minibatches of at most `size` rows: see [`Batches`].
    ///
    /// # Errors
    /// [`Error::Invalid`] if there are no rows, if `size` is 0, or if the source has no minibatches.
    fn batches(&self, size: usize, seed: u64) -> Result<Box<dyn Batches + '_>> {
        let _ = (size, seed);
        Err(Error::Invalid("these rows cannot be had in minibatches".into()))
    }
    /// Calls `f` with consecutive chunks of exactly `chunk_rows` rows (the last may be shorter), in
    /// order. Stops at the first error and returns it.
    fn for_each_chunk(
        &self,
        chunk_rows: usize,
        f: &mut dyn FnMut(Rows<'_>) -> Result<()>,
    ) -> Result<()>;
}

/// A data set held in memory.
#[derive(Clone, Debug)]
pub struct InMemory {
    /// Inputs, N×D.
    pub x: Mat<f64>,
    /// Targets, N×P.
    pub y: Mat<f64>,
    /// Weights of the rows, N; empty where all are 1.
    pub weights: Vec<f64>,
    /// The further number of every row, N; empty where there is none.
    pub extra: Vec<f64>,
}

impl InMemory {
    /// Takes inputs (N×D) with targets (N×P).
    ///
    /// # Errors
    /// [`Error::Shape`] if the numbers of rows differ.
    pub fn new(x: Mat<f64>, y: Mat<f64>) -> Result<Self> {
        if x.nrows() != y.nrows() {
            return Err(Error::Shape {
                what: "targets".into(),
                expected: format!("{} rows, as many as the inputs have", x.nrows()),
                found: format!("{} rows", y.nrows()),
            });
        }
        Ok(Self { x, y, weights: Vec::new(), extra: Vec::new() })
    }

    /// Returns the rows at these places, in this order.
    #[must_use]
    pub fn picked(&self, places: &[usize]) -> Self {
        let pick = |a: &Mat<f64>| Mat::from_fn(places.len(), a.ncols(), |i, j| a[(places[i], j)]);
        let part = |v: &[f64]| places.iter().filter_map(|i| v.get(*i)).copied().collect();
        Self {
            x: pick(&self.x),
            y: pick(&self.y),
            weights: part(&self.weights),
            extra: part(&self.extra),
        }
    }

    /// Returns all rows.
    pub fn all(&self) -> Rows<'_> {
        Rows {
            start: 0,
            x: self.x.as_ref(),
            y: self.y.as_ref(),
            weights: &self.weights,
            extra: &self.extra,
        }
    }
}

impl Source for InMemory {
    fn rows(&self) -> usize {
        self.x.nrows()
    }
    fn inputs(&self) -> usize {
        self.x.ncols()
    }
    fn outputs(&self) -> usize {
        self.y.ncols()
    }
    fn is_resident(&self) -> bool {
        true
    }
    fn is_plain(&self) -> bool {
        self.weights.is_empty() && self.extra.is_empty()
    }
    fn batches(&self, size: usize, seed: u64) -> Result<Box<dyn Batches + '_>> {
        Ok(Box::new(ShuffledInMemory::new(self, size, seed)?))
    }
    fn for_each_chunk(
        &self,
        chunk_rows: usize,
        f: &mut dyn FnMut(Rows<'_>) -> Result<()>,
    ) -> Result<()> {
        let n = self.rows();
        let mut start = 0;
        while start < n {
            let rows = chunk_rows.max(1).min(n - start);
            f(self.all().part(start, rows))?;
            start += rows;
        }
        Ok(())
    }
}

//! The rows of data that a target sees in a step.

use crate::error::{Error, Result};
use crate::rng::{permutation, stream};

/// All of N rows, or B of them in every step: in shuffled epochs, each row once in an epoch. Batches differ by one
/// row at most, and depend only on seed and step.
#[derive(Clone, Debug)]
pub struct Subsample {
    population: usize,
    /// Rows of a batch, at most, and the seed.
    batches: Option<(usize, u64)>,
    /// The rows in sight; all where there are none.
    rows: Option<Vec<usize>>,
    /// The epoch that was shuffled last, with its order.
    epoch: Option<(usize, Vec<usize>)>,
}

impl Subsample {
    /// Sees all of N rows.
    pub fn all(population: usize) -> Self {
        Self { population, batches: None, rows: None, epoch: None }
    }

    /// Sees at most B of N rows in a step.
    ///
    /// # Errors
    /// [`Error::Invalid`] for B = 0.
    pub fn batches(population: usize, size: usize, seed: u64) -> Result<Self> {
        if size == 0 {
            return Err(Error::Invalid("a minibatch has one row or more, not 0".into()));
        }
        let mut own = Self::all(population);
        if size < population {
            own.batches = Some((size, seed));
            own.renew(0);
        }
        Ok(own)
    }

    /// Sees these rows from now on.
    ///
    /// # Errors
    /// [`Error::Invalid`] for no rows, or one that does not exist.
    pub fn choose(&mut self, rows: Vec<usize>) -> Result<()> {
        if rows.is_empty() || rows.iter().any(|row| *row >= self.population) {
            return Err(Error::Invalid(format!(
                "rows in sight are some of {}, counted from 0: not {rows:?}",
                self.population
            )));
        }
        (self.batches, self.rows) = (None, Some(rows));
        Ok(())
    }

    /// Takes the rows of step `step`.
    pub fn renew(&mut self, step: usize) {
        let Some((size, seed)) = self.batches else { return };
        let n = self.population;
        let count = n.div_ceil(size);
        let (epoch, batch) = (step / count, step % count);
        if self.epoch.as_ref().is_none_or(|(own, _)| *own != epoch) {
            let mut rng = stream(seed, &format!("batches/{epoch}"));
            self.epoch = Some((epoch, permutation(&mut rng, n, n)));
        }
        if let Some((_, order)) = &self.epoch {
            // the first N mod T batches have one row more than the others
            let start = |batch: usize| batch * (n / count) + batch.min(n % count);
            let mut rows = order[start(batch)..start(batch + 1)].to_vec();
            rows.sort_unstable();
            self.rows = Some(rows);
        }
    }

    /// Returns the number of rows in sight, B.
    pub fn count(&self) -> usize {
        self.rows.as_ref().map_or(self.population, Vec::len)
    }

    /// Returns row `at` of those in sight.
    pub fn row(&self, at: usize) -> usize {
        self.rows.as_ref().map_or(at, |rows| rows[at])
    }

    /// Returns N/B, which the sum over the rows in sight is multiplied by.
    pub fn weight(&self) -> f64 {
        self.population as f64 / self.count() as f64
    }

    /// Tells whether the rows change from step to step.
    pub fn is_noisy(&self) -> bool {
        self.batches.is_some()
    }
}

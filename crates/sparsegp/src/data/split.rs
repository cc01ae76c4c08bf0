//! Training and test rows: a mask over the rows of a table.

use crate::error::{Error, Result};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// One bit per row of a file: which rows are test rows. It counts the rows as they stand in the file,
/// before any are left out for missing values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask {
    words: Vec<u64>,
    rows: usize,
    name: String,
}

impl Mask {
    /// Creates a mask from one flag per row. `name` is what an error calls this mask.
    pub fn new(name: impl Into<String>, flags: impl IntoIterator<Item = bool>) -> Self {
        let mut mask = Self { words: Vec::new(), rows: 0, name: name.into() };
        for flag in flags {
            mask.push(flag);
        }
        mask
    }

    /// Draws a random split: a mask that is true in `round(fraction · rows)` rows, at least one and
    /// at most all but one. The same seed gives the same rows on every machine and with any number
    /// of threads.
    ///
    /// Selection sampling (Knuth, TAOCP vol. 2, §3.4.2, algorithm S): every subset of that size is
    /// equally likely, and nothing is held in memory but the mask.
    ///
    /// # Errors
    /// [`Error::Invalid`] if `fraction` is not between 0 and 1 or there are fewer than two rows.
    pub fn random(rows: usize, fraction: f64, seed: u64) -> Result<Self> {
        if !(fraction > 0.0 && fraction < 1.0) {
            return Err(Error::Invalid(format!(
                "the test fraction {fraction} must lie strictly between 0 and 1, such as 0.1"
            )));
        }
        if rows < 2 {
            return Err(Error::Invalid(format!(
                "{rows} row(s) cannot be split into training and test rows; at least 2 are needed"
            )));
        }
        // Not `seed_from_u64`, whose expansion of the seed is not promised to stay as it is.
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        bytes[8..18].copy_from_slice(b"data/split");
        let mut rng = ChaCha8Rng::from_seed(bytes);
        let mut wanted = ((fraction * rows as f64).round() as usize).clamp(1, rows - 1);
        let mut mask = Self::new(format!("random split with seed {seed}"), []);
        for row in 0..rows {
            // An integer below the number of rows left, uniform to 2⁻⁶⁴ of it.
            let draw = (u128::from(rng.next_u64()) * (rows - row) as u128) >> 64;
            let test = draw < wanted as u128;
            wanted -= usize::from(test);
            mask.push(test);
        }
        Ok(mask)
    }

    pub(super) fn push(&mut self, flag: bool) {
        if self.rows.is_multiple_of(64) {
            self.words.push(0);
        }
        if let Some(word) = self.words.last_mut() {
            *word |= u64::from(flag) << (self.rows % 64);
        }
        self.rows += 1;
    }

    /// Returns the flag of a row, or `None` beyond the last.
    pub fn get(&self, row: usize) -> Option<bool> {
        (row < self.rows).then(|| self.words[row / 64] >> (row % 64) & 1 == 1)
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of rows with this flag.
    pub fn count(&self, flag: bool) -> usize {
        let ones = self.words.iter().map(|word| word.count_ones() as usize).sum();
        if flag { ones } else { self.rows - ones }
    }

    /// Returns the indices of the rows with this flag, in order.
    pub fn indices(&self, flag: bool) -> Vec<usize> {
        (0..self.rows).filter(|&row| self.get(row) == Some(flag)).collect()
    }

    /// Returns what errors call this mask: `FILE:COLUMN`, or the seed of a random split.
    pub fn name(&self) -> &str {
        &self.name
    }
}

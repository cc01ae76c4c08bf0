//! From files to rows: columns, splits, and whether a table is held in memory.

use crate::fail::{Fail, Result};
use clap::ValueEnum;
use sparsegp::Error;
use sparsegp::data::{Mask, Missing, Selected, Selection, Table};
use sparsegp::fit::Dataset;
use std::path::Path;
use std::sync::Arc;

/// Rows per block of predicting and scoring.
pub const BLOCK: usize = 1 << 13;

/// What to do with rows in which a number is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum MissingChoice {
    /// Refuse the file, naming the cell
    #[default]
    Refuse,
    /// Leave such rows out, and say how many
    Drop,
}

impl From<MissingChoice> for Missing {
    fn from(choice: MissingChoice) -> Self {
        match choice {
            MissingChoice::Refuse => Missing::Refuse,
            MissingChoice::Drop => Missing::Drop,
        }
    }
}

/// How rows are held out.
pub enum Split<'a> {
    /// Not at all.
    None,
    /// This fraction, drawn with this seed.
    Random(f64, u64),
    /// `FILE:COLUMN`.
    Mask(&'a str),
}

/// The columns and rows of a file to learn from.
pub struct Opened {
    /// The table.
    pub table: Table,
    /// Training rows.
    pub train: Selected,
    /// Held-out rows.
    pub test: Option<Selected>,
}

/// An error of the library that does not name the file itself.
fn in_file(path: &Path, error: Error) -> Fail {
    match error {
        Error::Invalid(reason) => Error::File { path: path.into(), reason }.into(),
        other => other.into(),
    }
}

/// Opens a file and divides its rows.
pub fn open(path: &Path, selection: &Selection, missing: Missing, split: &Split) -> Result<Opened> {
    let table = Table::open(path)?;
    let all = table.select(selection)?.missing(missing);
    let mask = match split {
        Split::None => return Ok(Opened { table, train: all, test: None }),
        Split::Random(fraction, seed) => {
            let rows = all.count_rows()?;
            Mask::random(rows, *fraction, *seed).map_err(|e| in_file(path, e))?
        }
        Split::Mask(spec) => Mask::open(spec)?,
    };
    let mask = Arc::new(mask);
    let test = all.clone().rows_where(mask.clone(), true);
    Ok(Opened { table, train: all.rows_where(mask, false), test: Some(test) })
}

impl Opened {
    /// Whether the numbers are too many to hold: more than 2 GB.
    pub fn is_large(&self) -> Result<bool> {
        const MOST_BYTES: usize = 2_000_000_000;
        // A file below this size cannot hold so many numbers, unless gzip is very lucky.
        const SMALL_FILE: u64 = 100_000_000;
        let rows = match self.table.rows() {
            Some(rows) => rows,
            None => {
                let path = self.table.path();
                let file = std::fs::metadata(path).map_err(|e| Error::io(path, &e))?;
                if file.len() < SMALL_FILE {
                    return Ok(false);
                }
                self.train.count_rows()?
            }
        };
        let columns = self.train.input_names().len() + self.train.target_names().len();
        Ok(rows.saturating_mul(columns) > MOST_BYTES / 8)
    }

    /// The training rows, and how many rows of the file were left out. The test rows are checked too:
    /// a bad cell should not be found after an hour of training.
    pub fn dataset(&self, standardise: bool, stream: bool) -> Result<(Dataset, usize)> {
        let path = self.table.path();
        let mut dropped = match &self.test {
            Some(test) => test.stream()?.dropped(),
            None => 0,
        };
        let dataset = if stream {
            let source = self.train.stream()?;
            dropped += source.dropped();
            Dataset::from_table(source, standardise)
        } else {
            let loaded = self.train.read_all()?;
            dropped += loaded.dropped;
            Dataset::from_loaded(loaded, standardise)
        };
        Ok((dataset.map_err(|e| in_file(path, e))?, dropped))
    }
}

//! Where a model comes from: program, time, and the rows of a table that it learnt from.

use crate::data::Mask;
use std::time::{SystemTime, UNIX_EPOCH};

/// By which program a model was made, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Name and version of the program.
    pub by: String,
    /// Seconds since the beginning of 1970 (UTC); none for files of the first layout, which did not keep it.
    pub at: Option<u64>,
}

impl Made {
    /// Names this program, and the present.
    pub fn now() -> Self {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).ok();
        Self {
            by: format!("sparsegp {}", env!("CARGO_PKG_VERSION")),
            at: at.map(|since| since.as_secs()),
        }
    }
}

/// Which rows of a table a model learnt from. The table is known again by a fingerprint of its first rows, so that rows may have
/// been added at its end; it holds no values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Division {
    /// Rows of the table, those that were left out included.
    pub rows: usize,
    /// Rows that were held out to test on, if some were.
    pub held_out: Option<Mask>,
    /// Rows that were kept aside to tell when to stop, if some were.
    pub aside: Option<Mask>,
    /// The fingerprint of the table's first rows.
    pub fingerprint: u64,
}

impl Division {
    /// Divides so many rows: a mask of those that were learnt from, and one of those that were not seen, which are the rows held out and
    /// the rows added since.
    pub fn masks(&self, rows: usize) -> (Mask, Mask) {
        let held = |row: usize| self.held_out.as_ref().is_some_and(|m| m.get(row) == Some(true));
        let aside = |row: usize| self.aside.as_ref().is_some_and(|m| m.get(row) == Some(true));
        let learnt = |row: usize| row < self.rows && !held(row) && !aside(row);
        let unseen = |row: usize| row >= self.rows || held(row);
        (
            Mask::new("the rows that the model learnt from", (0..rows).map(learnt)),
            Mask::new("the rows that the model has not seen", (0..rows).map(unseen)),
        )
    }
}

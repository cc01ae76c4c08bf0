//! Where a model comes from: program, time, and the rows of a table that it learnt from.

use crate::data::{Mask, Selected};
use crate::error::Result;
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

/// Rows of a table that its fingerprint covers.
const FIRST: usize = 4096;

impl Division {
    /// Computes the fingerprint of the first rows, at most `rows` of them, of a table that these sets make up together: of inputs and
    /// targets of every row without a missing one, and of its place. Reads no more of the file than these rows.
    ///
    /// # Errors
    /// What reading gives.
    pub fn fingerprint(sets: &[&Selected], rows: usize) -> Result<u64> {
        let end = rows.min(FIRST);
        let mut sum = 0_u64;
        for set in sets {
            for block in set.blocks(1 << 10, None)? {
                let block = block?;
                for (i, &row) in block.rows.iter().enumerate().take_while(|(_, row)| **row < end) {
                    let numbers = |a: &crate::linalg::Mat<f64>| {
                        (0..a.ncols()).map(|j| a[(i, j)]).collect::<Vec<f64>>()
                    };
                    let all = [numbers(&block.x), numbers(&block.y)].concat();
                    if all.iter().all(|value| !value.is_nan()) {
                        let own = all.iter().fold(mixed(row as u64), |hash, value| {
                            // 0 and −0 are the same cell
                            mixed(hash ^ (value + 0.0).to_bits())
                        });
                        sum = sum.wrapping_add(own);
                    }
                }
                if block.rows.last().is_some_and(|row| *row >= end) {
                    break;
                }
            }
        }
        Ok(sum)
    }

    /// Says how many rows a table has, if it is the one that this division is of: the same, or with more rows at its end.
    ///
    /// # Errors
    /// What reading gives.
    pub fn recognises(&self, table: &Selected) -> Result<Option<usize>> {
        let rows = table.count_rows()?;
        let same = rows >= self.rows && Self::fingerprint(&[table], self.rows)? == self.fingerprint;
        Ok(same.then_some(rows))
    }

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

/// Mixes the bits of a number (the last step of SplitMix64; Steele, Lea and Flood 2014).
fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

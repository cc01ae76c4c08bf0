//! Streams and tables that a model has learnt, recognised by their text: a run that was killed
//! resumes at its last save, `update` skips what was followed, and `follow` what `update` has
//! learnt.

use super::lines::{Lines, Waited};
use crate::fail::{Fail, Result};
use serde::{Deserialize, Serialize};
use sparsegp::fit::Fitted;
use std::path::Path;

/// Name of the annotation.
const FOLLOWED: &str = "followed";
/// Rows by which a stream is known again.
pub const HEAD: usize = 64;

/// A stream, as far as it was learnt. Sums are over the bytes of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Followed {
    /// Rows that were taken.
    pub rows: usize,
    /// Sum of all of them.
    pub sum: u64,
    /// Sums of the first 1, 2, 4, …, [`HEAD`] of them: most other streams are distinguished by
    /// their first row.
    heads: Vec<u64>,
    /// Bytes of predictions that were written.
    #[serde(default)]
    pub written: u64,
}

impl Followed {
    /// Adds a row.
    pub fn add(&mut self, row: &[u8]) {
        // FNV-1a (Fowler, Noll and Vo) over the cells, whatever ends the line
        let own = row.trim_ascii_end().iter().chain(b"\n");
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        self.sum = own.fold(self.sum ^ 0xcbf2_9ce4_8422_2325, step);
        self.rows += 1;
        if self.rows.is_power_of_two() && self.rows <= HEAD {
            self.heads.push(self.sum);
        }
    }

    /// Returns whether a stream of which these are the heads of the first rows may be this one.
    fn may_be(&self, first: &Self) -> bool {
        self.heads.iter().zip(&first.heads).all(|(own, other)| own == other)
    }
}

/// Returns streams that the model has learnt.
pub fn all(fitted: &Fitted) -> Vec<Followed> {
    let text = fitted.annotations.get(FOLLOWED);
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// Returns the streams that a new one may begin as, by its first rows; waits for as many of them as
/// it takes to tell.
///
/// # Errors
/// What reading gives; an interruption.
pub fn find(
    known: &[Followed],
    lines: &mut Lines,
    stopped: &dyn Fn() -> bool,
) -> Result<Vec<Followed>> {
    let mut left: Vec<&Followed> = known.iter().filter(|own| own.rows > 0).collect();
    let mut first = Followed::default();
    while !left.is_empty() && first.rows < HEAD {
        let wanted = (2 * first.rows).max(1);
        if lines.wait(wanted, None, None, stopped)? == Waited::Stopped {
            return Err(Fail::Interrupted);
        }
        if lines.pending.len() < wanted {
            // shorter than whatever it begins as
            left.retain(|own| own.heads.len() <= first.heads.len());
            break;
        }
        lines.pending.iter().take(wanted).skip(first.rows).for_each(|row| first.add(row));
        left.retain(|own| own.may_be(&first));
        if left.iter().all(|own| own.heads.len() <= first.heads.len()) {
            break;
        }
    }
    Ok(left.into_iter().cloned().collect())
}

/// Notes in the model that so much of a stream was learnt, in the place of what is known of it.
pub fn note(fitted: &mut Fitted, before: &[Followed], resumed: Option<&Followed>, now: &Followed) {
    let others = before.iter().filter(|own| Some(*own) != resumed).cloned();
    let list: Vec<Followed> = others.chain([now.clone()]).collect();
    let text = serde_json::to_string(&list).unwrap_or_default();
    fitted.annotations.insert(FOLLOWED.into(), text);
}

/// A table of text as a stream.
pub struct Recognised {
    /// All of it.
    pub whole: Followed,
    /// What the model has learnt of it.
    pub learnt: Option<Followed>,
}

/// Reads a table and returns how much of it the model has learnt as a stream; none for what is not
/// a stream of text.
///
/// # Errors
/// An interruption.
pub fn recognise(
    path: &Path,
    before: &[Followed],
    stopped: &dyn Fn() -> bool,
) -> Result<Option<Recognised>> {
    let mut lines = match Lines::open(path, stopped) {
        Ok(lines) => lines,
        Err(Fail::Interrupted) => return Err(Fail::Interrupted),
        // what is wrong with it, the table itself will tell
        Err(_) => return Ok(None),
    };
    let candidates = match find(before, &mut lines, stopped) {
        Ok(candidates) => candidates,
        Err(Fail::Interrupted) => return Err(Fail::Interrupted),
        Err(_) => return Ok(None),
    };
    let (mut whole, mut learnt) = (Followed::default(), None);
    loop {
        match lines.wait(1 << 12, None, None, stopped) {
            Ok(Waited::Stopped) | Err(Fail::Interrupted) => return Err(Fail::Interrupted),
            Ok(Waited::End) => return Ok(Some(Recognised { whole, learnt })),
            Ok(_) => {}
            Err(_) => return Ok(None),
        }
        for row in lines.take(1 << 12) {
            whole.add(&row);
            let same = |own: &&Followed| own.rows == whole.rows && own.sum == whole.sum;
            // the longest comes last
            learnt = candidates.iter().find(same).cloned().or(learnt);
        }
    }
}

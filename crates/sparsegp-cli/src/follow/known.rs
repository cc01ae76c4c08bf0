//! Streams that a model has followed before: a run that was killed goes on where its last save was.

use serde::{Deserialize, Serialize};
use sparsegp::fit::Fitted;

/// Name of the annotation.
const FOLLOWED: &str = "followed";
/// Rows by which a stream is known again.
pub const HEAD: usize = 64;

/// A stream, as far as it was learnt. Sums are over the bytes of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Followed {
    /// Rows that were taken.
    pub rows: usize,
    /// Sum of all of them.
    pub sum: u64,
    /// Sum of the first of them, at most [`HEAD`].
    pub head: u64,
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
        if self.rows <= HEAD {
            self.head = self.sum;
        }
    }

    /// Of these rows.
    pub fn of<'a>(rows: impl Iterator<Item = &'a Vec<u8>>) -> Self {
        let mut own = Self::default();
        rows.for_each(|row| own.add(row));
        own
    }
}

/// Streams that the model has followed.
pub fn all(fitted: &Fitted) -> Vec<Followed> {
    let text = fitted.annotations.get(FOLLOWED);
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// The longest of the streams that begins with these rows, the first of a stream.
pub fn find<'a>(known: &[Followed], first: impl Iterator<Item = &'a Vec<u8>>) -> Option<Followed> {
    let first: Vec<&Vec<u8>> = first.take(HEAD).collect();
    let begins = |own: &&Followed| {
        let head = own.rows.min(HEAD);
        head <= first.len()
            && Followed::of(first[..head].iter().copied()).head == own.head
            && own.rows > 0
    };
    known.iter().filter(begins).max_by_key(|own| own.rows).copied()
}

/// Notes in the model that so much of the present stream was learnt, in the place of what is known of it.
pub fn note(fitted: &mut Fitted, before: &[Followed], resumed: Option<Followed>, now: Followed) {
    let mut list: Vec<Followed> =
        before.iter().filter(|own| Some(**own) != resumed).copied().collect();
    list.push(now);
    let text = serde_json::to_string(&list).unwrap_or_default();
    fitted.annotations.insert(FOLLOWED.into(), text);
}

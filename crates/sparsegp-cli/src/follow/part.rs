//! Some rows of a stream as a table.

use super::FollowArgs;
use super::lines::Lines;
use crate::data::{self, Opened, Split};
use crate::fail::{Fail, Result};
use crate::update::selection_for;
use sparsegp::data::Missing;
use sparsegp::fit::Fitted;
use std::io::Write;
use std::path::PathBuf;
use tempfile::NamedTempFile;

/// A table of some rows of the stream.
pub struct Part {
    /// The table.
    pub file: NamedTempFile,
    /// Rows of the stream before it.
    pub from: usize,
    stream: PathBuf,
}

impl Part {
    /// Writes rows with the header of their stream to a temporary file.
    pub fn new(lines: &Lines, rows: &[Vec<u8>], from: usize) -> Result<Self> {
        let failed =
            |e: std::io::Error| Fail::Work(format!("{}: {e}", std::env::temp_dir().display()));
        let mut file = tempfile::Builder::new().suffix(".csv").tempfile().map_err(failed)?;
        let all = [lines.header.clone(), rows.concat()].concat();
        file.write_all(&all).and_then(|()| file.flush()).map_err(failed)?;
        Ok(Self { file, from, stream: lines.name() })
    }

    /// Opens the table for a model.
    pub fn open(&self, args: &FollowArgs, fitted: &Fitted, missing: Missing) -> Result<Opened> {
        let table = args.table.open_for(self.file.path(), fitted)?;
        let (mut selection, ids) = (selection_for(fitted), &args.id);
        if args.predictions.is_some() {
            selection = selection.ids([&fitted.target_names[..], &ids[..]].concat());
        }
        let mut opened = data::open(table, &selection, missing, &Split::None)?;
        opened.know(fitted.classes.as_ref());
        Ok(opened)
    }

    /// Returns the error as of the stream, not of a part of it.
    pub fn named(&self, fail: Fail) -> Fail {
        let own = self.file.path().display().to_string();
        match fail {
            Fail::Work(text) | Fail::Empty(text) => {
                let text = text.replace(&own, &self.stream.display().to_string());
                Fail::Work(shifted(&text, self.from))
            }
            Fail::Usage(text) => {
                Fail::Usage(text.replace(&own, &self.stream.display().to_string()))
            }
            other => other,
        }
    }
}

/// Adds to the number of the row that an error names.
fn shifted(text: &str, from: usize) -> String {
    let found =
        [": row ", " at row "].into_iter().find_map(|mark| Some((mark, text.split_once(mark)?)));
    let Some((mark, (before, after))) = found else { return text.to_owned() };
    let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
    match after[..digits].parse::<usize>() {
        Ok(row) => format!("{before}{mark}{}{}", row + from, &after[digits..]),
        Err(_) => text.to_owned(),
    }
}

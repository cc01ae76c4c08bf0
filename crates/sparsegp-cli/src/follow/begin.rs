//! Where a stream resumes whose beginning the model has learnt: by a run before this one, or by its
//! fit.

use super::FollowArgs;
use super::known::{self, Followed};
use super::lines::{Lines, Waited};
use super::part::Part;
use crate::context::Context;
use crate::fail::{Fail, Result};
use crate::format::count;
use sparsegp::data::Missing;
use sparsegp::fit::{Division, Fitted};
use std::time::Duration;

/// Rows that are read at a time.
const ROWS: usize = 1 << 12;

/// The beginning of a stream that was passed over.
#[derive(Default)]
pub struct Begun {
    /// Its rows.
    pub taken: Followed,
    /// The stream of an earlier run, which is resumed.
    pub resumed: Option<Followed>,
}

/// Passes over rows that were learnt before, and makes sure that they are the same.
///
/// # Errors
/// For a stream that begins as one that was learnt and then differs, or has nothing new; what reading gives; an
/// interruption.
pub fn begin(
    args: &FollowArgs,
    fitted: &Fitted,
    lines: &mut Lines,
    before: &[Followed],
    context: &Context,
) -> Result<Begun> {
    if args.again {
        return Ok(Begun::default());
    }
    let stopped = || context.interrupted();
    let candidates = known::find(before, lines, &stopped)?;
    let longest = candidates.iter().map(|own| own.rows).max().unwrap_or(0);
    let of_fit = rows_of_fit(args, fitted, lines, longest, &stopped)?;
    let begun = match of_fit {
        Some(rows) => pass_over(lines, &[], rows, &stopped)?,
        None => pass_over(lines, &candidates, longest, &stopped)?,
    };
    let rows = begun.taken.rows;
    if rows > 0 {
        let why = if begun.resumed.is_some() { "followed before" } else { "of the fit" };
        let name = lines.name();
        context.note(&format!(
            "{}: the first {} are those {why}",
            name.display(),
            count(rows, "row")
        ));
    }
    Ok(begun)
}

/// Returns how many rows the fit learnt, if the stream begins with them and they are more than
/// `others`.
fn rows_of_fit(
    args: &FollowArgs,
    fitted: &Fitted,
    lines: &mut Lines,
    others: usize,
    stopped: &dyn Fn() -> bool,
) -> Result<Option<usize>> {
    let Some(division) = fitted.division.as_ref().filter(|division| division.rows > others) else {
        return Ok(None);
    };
    // a file is there; the table of the fit in a pipe is known if it comes fast enough
    let file = std::fs::metadata(&args.data).is_ok_and(|data| data.is_file());
    let patience = (!file).then(|| Duration::from_secs_f64(args.patience));
    let head = division.rows.min(ROWS);
    if lines.wait(head, patience, None, stopped)? == Waited::Stopped {
        return Err(Fail::Interrupted);
    }
    if lines.pending.len() < head {
        return Ok(None);
    }
    let first: Vec<Vec<u8>> = lines.pending.iter().take(head).cloned().collect();
    let part = Part::new(lines, &first, 0)?;
    // a table that cannot be read says so when its rows are taken
    let same = part.open(args, fitted, Missing::Drop).and_then(|opened| {
        Ok(Division::fingerprint(&[&opened.train], division.rows)? == division.fingerprint)
    });
    Ok(same.unwrap_or(false).then_some(division.rows))
}

/// Takes so many rows, or as many as the longest of the streams has that these are. Rows behind that are given back.
fn pass_over(
    lines: &mut Lines,
    candidates: &[Followed],
    longest: usize,
    stopped: &dyn Fn() -> bool,
) -> Result<Begun> {
    let (mut begun, mut read) = (Begun::default(), Followed::default());
    let mut behind = Vec::new();
    let ends = candidates.iter().map(|own| own.rows).chain([longest]);
    let shortest = ends.clone().min().unwrap_or(0);
    while read.rows < longest {
        // the sum is known only at the end of a stream
        let next = ends.clone().filter(|rows| *rows > read.rows).min().unwrap_or(longest);
        let wanted = (next - read.rows).min(ROWS);
        if stopped() || lines.wait(wanted, None, None, stopped)? == Waited::Stopped {
            return Err(Fail::Interrupted);
        }
        let rows = lines.take(wanted);
        if rows.is_empty() {
            break;
        }
        rows.iter().for_each(|row| read.add(row));
        behind.extend(rows);
        let same = |own: &&Followed| own.rows == read.rows && own.sum == read.sum;
        let resumed = candidates.iter().find(same);
        if resumed.is_some() || (candidates.is_empty() && read.rows == longest) {
            behind.clear();
            begun = Begun { taken: read.clone(), resumed: resumed.cloned() };
            begun.taken.written = resumed.map_or(0, |own| own.written);
        }
    }
    if begun.taken.rows == 0 && longest > 0 {
        let (name, known) = (lines.name(), count(shortest, "row"));
        let name = name.display();
        return Err(Fail::usage(match read.rows < shortest {
            true => format!(
                "{name}: it has {}, and the model has learnt {known} of a stream that begins so: there is nothing new \
                 in it; --again takes all of it",
                count(read.rows, "row"),
            ),
            false => format!(
                "{name}: it begins as a stream of which the model has learnt {known}, and then differs: --again takes \
                 all of it",
            ),
        }));
    }
    lines.give_back(behind);
    Ok(begun)
}

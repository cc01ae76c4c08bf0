//! CSV, plain or gzip-compressed: one pass over the chosen columns, with errors that name the cell.

use super::cells::{Cell, cell, like, missing_text, shown};
use super::cursor::{Field, Plan, Progress, Raw, Reader};
use super::dates::no_date;
use super::inputs::Reading;
use super::labels::Encoder;
use super::places::Place;
use super::table::Missing;
use super::tally::Tally;
use super::text::{BUFFER, Dialect, END, Text};
use crate::error::{Error, Result, in_shell};
use crate::limits::ROW;
use csv::{ByteRecord, Position};
use std::io::ErrorKind;
use std::path::Path;

/// What is wrong with bytes that are not text.
const NOT_UTF8: &str = "is not UTF-8 text: pass `--encoding latin1` for a file of Windows or an old system, or save it as UTF-8";

type Records = csv::Reader<Text>;

/// Kept rows between two places to read from: fewer cost more jumps than they mix the rows better.
pub(super) const NEAR: usize = 64;

fn records(path: &Path, dialect: Dialect) -> Result<Records> {
    Ok(csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true) // so that a ragged row gets our own sentence
        .delimiter(dialect.delimiter)
        .buffer_capacity(BUFFER)
        .from_reader(Text::of(path, dialect)?))
}

/// Reads the next record; `rows` complete data rows came before it.
fn next(path: &Path, records: &mut Records, record: &mut ByteRecord, rows: usize) -> Result<bool> {
    records.get_mut().begin_record();
    let more = records.read_byte_record(record).map_err(|error| read_error(path, error, rows))?;
    let last = record.get(record.len().wrapping_sub(1)).unwrap_or_default();
    if !more || last.last() != END.last() {
        // the mark that old systems put at the end of a text
        return Ok(more && !(record.len() == 1 && last == b"\x1a"));
    }
    if record.len() == 1 && last == &END[1..] {
        return Ok(false);
    }
    if !last.ends_with(END) {
        return Ok(true);
    }
    let line = last.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = shown(&String::from_utf8_lossy(line));
    let place = if rows == 0 && records.position().record() <= 1 {
        "the header".into()
    } else {
        format!("row {}", rows + 1)
    };
    Err(Error::File {
        path: path.into(),
        reason: format!(
            "{place} has a quote that is never closed, before `{line}`: all that follows would be one cell; close it, or \
             double a quote that is part of a text"
        ),
    })
}

/// Returns the sentence for a failure in the middle of a file.
fn read_error(path: &Path, error: csv::Error, rows: usize) -> Error {
    let reason = match error.into_kind() {
        csv::ErrorKind::Io(error) => match error.kind() {
            ErrorKind::UnexpectedEof => format!(
                "the gzip data end too early, after {rows} complete rows: the file is truncated; \
                 copy or compress it again"
            ),
            ErrorKind::InvalidData | ErrorKind::InvalidInput => format!(
                "the gzip data are damaged after {rows} complete rows ({error}); copy or compress \
                 the file again"
            ),
            ErrorKind::FileTooLarge => ROW.exceeded(&format!(
                "after {rows} rows there is one (is a quote not closed, or has the file no line breaks?)"
            )),
            _ => format!("cannot be read after {rows} rows: {error}"),
        },
        kind => format!("cannot be read as CSV after {rows} rows: {kind:?}"),
    };
    Error::File { path: path.into(), reason }
}

/// Returns the column names of the file, or an error for an empty file and for one that starts with
/// data.
pub(super) fn header(path: &Path, dialect: Dialect) -> Result<Vec<String>> {
    let fail = |reason: String| Err(Error::File { path: path.into(), reason });
    let mut record = ByteRecord::new();
    if !next(path, &mut records(path, dialect)?, &mut record, 0)? {
        return fail("the file is empty: it has neither a header nor rows".into());
    }
    let mut names = Vec::with_capacity(record.len());
    for (i, bytes) in record.iter().enumerate() {
        let Ok(name) = std::str::from_utf8(bytes) else {
            return fail(format!(
                "the name of column {} in the header (`{}`) {NOT_UTF8}",
                i + 1,
                shown(&String::from_utf8_lossy(bytes))
            ));
        };
        let name = name.trim_start_matches('\u{feff}').trim();
        // a quote after a blank is left in the name
        let bare = name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
        names.push(bare.unwrap_or(name).to_owned());
    }
    let single = |name: &String| name.len() > 1 && name.starts_with('\'') && name.ends_with('\'');
    if names.iter().all(single) {
        names.iter_mut().for_each(|name| *name = name[1..name.len() - 1].to_owned());
    }
    // A file without a header would silently lose its first row. Names such as 0, 1, 2 are common
    // (pandas), names such as 0.25 are not.
    let numeric = names.iter().all(|name| name.parse::<f64>().is_ok());
    if numeric && names.iter().any(|name| name.parse::<u64>().is_err()) {
        return fail(format!(
            "the first line ({}) holds numbers, not column names; put a header line above it",
            shown(&names.join(","))
        ));
    }
    Ok(names)
}

/// One pass over a CSV file.
pub(super) struct CsvReader {
    records: Records,
    record: ByteRecord,
    in_order: bool,
    delimiter: u8,
}

impl CsvReader {
    pub fn open(plan: &Plan, dialect: Dialect) -> Result<Self> {
        let records = records(&plan.path, dialect)?;
        let (delimiter, in_order) = (dialect.delimiter, dialect.in_order());
        let mut this = Self { records, record: ByteRecord::new(), in_order, delimiter };
        let header = next(&plan.path, &mut this.records, &mut this.record, 0)?;
        if !header || this.record.len() != plan.width {
            return Err(plan.file_error("the file has changed since its header was read".into()));
        }
        Ok(this)
    }

    /// Appends the current record, or drops it; takes back a half-appended one.
    fn push(
        &self,
        plan: &Plan,
        row: usize,
        labels: &mut Encoder,
        tally: &mut Tally,
        out: &mut Raw,
    ) -> Result<bool> {
        let fields = || plan.numbers.iter().zip(0..);
        let is_label = |j| plan.label_index() == Some(j);
        let is_number = |field: &Field| field.reading.is_number();
        let mut label = None;
        let mut category = None;
        for (field, j) in fields() {
            let bytes = &self.record[field.index];
            let read = match is_number(field) && !is_label(j) {
                true => cell(bytes, &plan.options),
                false => of_text(plan, field, bytes),
            };
            match read {
                // Only rows that are kept tell which labels there are.
                Cell::Number(_) | Cell::Text(_) if is_label(j) => label = Some((field, j)),
                Cell::Number(_) | Cell::Text(_) if !is_number(field) => {
                    let value = encoded(plan, field, bytes, &mut category);
                    let fail = |reason| plan.cell_error(row, &field.name, reason);
                    out.numbers[j].push(value.map_err(fail)?);
                }
                Cell::Missing(_) if plan.keeps_missing(j) => out.numbers[j].push(f64::NAN),
                Cell::Missing(_) if field.filled.is_some() => out.numbers[j].extend(field.filled),
                Cell::Number(value) => out.numbers[j].push(field.reading.of_number(value)),
                Cell::Missing(_) if plan.missing == Missing::Drop => {
                    self.count_missing(plan, row, j, tally)?;
                    out.numbers[..j].iter_mut().for_each(|column| column.truncate(out.rows.len()));
                    return Ok(false);
                }
                Cell::Missing(what) => return Err(plan.missing_error(row, &field.name, &what)),
                Cell::Text(text) => return Err(text_error(plan, row, &field.name, &text)),
            }
        }
        if let Some((field, j)) = label {
            let code = match std::str::from_utf8(&self.record[field.index]) {
                Ok(text) => labels.encode(text),
                Err(_) => Err(NOT_UTF8.to_owned()),
            };
            let fail = |reason| plan.cell_error(row, &field.name, reason);
            out.numbers[j].push(code.map_err(fail)?);
        }
        for (field, column) in plan.texts.iter().zip(&mut out.texts) {
            let Ok(text) = std::str::from_utf8(&self.record[field.index]) else {
                let reason = NOT_UTF8.to_owned();
                return Err(plan.cell_error(row, &field.name, reason));
            };
            column.push(text.to_owned());
        }
        out.rows.push(row);
        Ok(true)
    }

    /// Counts what is missing in a row that is left out, from a column on. A text among numbers is refused even there.
    fn count_missing(&self, plan: &Plan, row: usize, from: usize, tally: &mut Tally) -> Result<()> {
        let mut last = None;
        for (j, field) in plan.numbers.iter().enumerate().skip(from) {
            let bytes = &self.record[field.index];
            let number = field.reading.is_number() && plan.label_index() != Some(j);
            let read = match number {
                true => cell(bytes, &plan.options),
                false => of_text(plan, field, bytes),
            };
            match read {
                Cell::Text(text) if number => {
                    return Err(text_error(plan, row, &field.name, &text));
                }
                Cell::Missing(_)
                    if last != Some(field.index)
                        && !plan.keeps_missing(j)
                        && field.filled.is_none() =>
                {
                    tally.add(&field.name, row, &String::from_utf8_lossy(bytes));
                }
                _ => {}
            }
            last = Some(field.index);
        }
        Ok(())
    }

    /// Refuses a cell of several lines that holds whole rows: a quote was closed by one that opens elsewhere.
    fn check_lines(&self, plan: &Plan, row: usize) -> Result<()> {
        let delimiter = self.delimiter;
        let number = |field: &&Field| field.reading.is_number();
        let is_row = |line: &[u8]| {
            let cells: Vec<&[u8]> = line.split(|&byte| byte == delimiter).collect();
            let readable =
                |field: &Field| !matches!(cell(cells[field.index], &plan.options), Cell::Text(_));
            cells.len() == plan.width && plan.numbers.iter().filter(number).all(readable)
        };
        let some = plan.numbers.iter().any(|field| number(&field)) && plan.width > 1;
        let lost = |cell: &[u8]| cell.split(|&byte| byte == b'\n').skip(1).any(is_row);
        match self.record.iter().position(|cell| some && lost(cell)) {
            None => Ok(()),
            Some(at) => {
                let first = self.record[at].split(|&byte| byte == b'\n').next().unwrap_or_default();
                Err(plan.file_error(format!(
                    "row {} has a quote that is not closed in its cell (before `{}`): the cell would hold the rows below \
                     it; close it, or double a quote that is part of a text",
                    row + 1,
                    shown(&String::from_utf8_lossy(first))
                )))
            }
        }
    }

    fn ragged(&self, plan: &Plan, row: usize) -> Error {
        let quote = match self.record.iter().any(|field| field.contains(&b'\n')) {
            true => " (one of them spans several lines: is a quote not closed?)",
            false => "",
        };
        let last = self.record.iter().next_back().unwrap_or_default();
        let more = self.record.len() == plan.width + 1;
        let why = match (more, last.is_empty()) {
            (true, true) => " (its line ends with a separator, and that of the header does not)",
            (true, false) if row == 0 => {
                " (does the header lack a name for the first column, such as row names?)"
            }
            _ => "",
        };
        plan.file_error(format!(
            "row {} has {} field{}{quote} where the header has {}{why}; mend the row or the header",
            row + 1,
            self.record.len(),
            if self.record.len() == 1 { "" } else { "s" },
            plan.width
        ))
    }
}

impl Reader for CsvReader {
    fn fill(
        &mut self,
        plan: &Plan,
        progress: &mut Progress,
        room: usize,
        out: &mut Raw,
    ) -> Result<bool> {
        let full = out.rows.len() + room;
        while out.rows.len() < full {
            let kept = progress.kept + out.rows.len();
            if let Some(places) = progress.places.as_mut().filter(|all| all.is_due(kept)) {
                let byte = self.records.position().byte();
                places.push(Place { byte, ..plan.place(progress.read, kept) });
            }
            let line = self.records.position().line();
            if !next(&plan.path, &mut self.records, &mut self.record, progress.read)? {
                return Ok(false);
            }
            let row = progress.read;
            if self.record.len() != plan.width {
                return Err(self.ragged(plan, row));
            }
            if self.records.position().line() > line + 1 {
                self.check_lines(plan, row)?;
            }
            progress.read += 1;
            let Progress { labels, tally, .. } = progress;
            if plan.keeps(row)? && !self.push(plan, row, labels, tally, out)? {
                progress.dropped += 1;
            }
        }
        Ok(true)
    }

    fn near(&self) -> Option<usize> {
        (!self.in_order).then_some(NEAR)
    }

    fn jump(&mut self, plan: &Plan, place: &Place) -> Result<()> {
        let mut position = Position::new();
        position.set_byte(place.byte);
        let outcome = self.records.seek(position);
        outcome.map_err(|error| read_error(&plan.path, error, place.row))
    }
}

/// Returns the number for a cell of dates or categories. `last`: the column whose category was
/// looked up last, and its code.
fn encoded(
    plan: &Plan,
    field: &Field,
    bytes: &[u8],
    last: &mut Option<(usize, usize)>,
) -> Result<f64, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| NOT_UTF8)?;
    match &field.reading {
        Reading::Category { .. } => {
            let code = match *last {
                Some((index, code)) if index == field.index => code,
                _ => field.reading.find(text)?,
            };
            *last = Some((field.index, code));
            Ok(field.reading.of_code(code))
        }
        own => {
            let days = plan.options.date(&field.name, text).ok_or_else(|| no_date(text))?;
            Ok(own.of_date(days))
        }
    }
}

/// Reads a cell of labels, categories or dates.
fn of_text(plan: &Plan, field: &Field, bytes: &[u8]) -> Cell {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Cell::Text(String::new());
    };
    match missing_text(text, &plan.options) {
        Some(what) if !plan.knows(field, text) => Cell::Missing(what),
        _ => Cell::Text(String::new()),
    }
}

/// Refuses a text where a number is needed.
pub(super) fn text_error(plan: &Plan, row: usize, column: &str, text: &str) -> Error {
    let remedy = plan.as_categories(column);
    if let Some(kind) = like(text, &plan.options) {
        let reason = kind.reason(text, remedy.as_deref());
        return plan.cell_error(row, column, format!("{reason} (a number is needed)"));
    }
    let units = match row {
        0 => "; if this row holds units, remove it",
        _ => "",
    };
    let word = shown(text);
    let remedy = match remedy {
        Some(remedy) => format!(
            "pass `--missing-words {}` if it means a missing value, or {remedy}",
            in_shell(&word)
        ),
        None => {
            format!("or pass `--missing-words {}` if it means a missing value", in_shell(&word))
        }
    };
    let reason =
        format!("`{word}` is text where a number is needed; correct the cell, {remedy}{units}");
    plan.cell_error(row, column, reason)
}

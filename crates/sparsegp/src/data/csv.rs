//! CSV, plain or gzip-compressed: one pass over the chosen columns, with errors that name the cell.

use super::classes::Encoder;
use super::cursor::{Field, Plan, Progress, Raw, Reader};
use super::encoding::{Reading, days, no_date};
use super::places::Place;
use super::table::Missing;
use crate::error::{Error, Result};
use csv::{ByteRecord, Position};
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

/// How a text file is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dialect {
    pub delimiter: u8,
    pub gzip: bool,
}

/// Cells that mean "no value" (with every spelling of NaN and infinity that parses as a number).
const MISSING: [&str; 6] = ["", "NA", "nan", "null", "None", "?"];

/// Small enough that reading from many places does not read much in vain.
const BUFFER: usize = 1 << 15;

/// The text of a file, decompressed.
pub(super) enum Text {
    Plain(File),
    Gzip(Box<MultiGzDecoder<BufReader<File>>>),
}

impl Read for Text {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.read(buffer),
            Self::Gzip(decoder) => decoder.read(buffer),
        }
    }
}

impl Seek for Text {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            Self::Plain(file) => file.seek(to),
            Self::Gzip(_) => Err(io::Error::new(ErrorKind::Unsupported, "gzip is read in order")),
        }
    }
}

/// The text of the file, decompressed.
pub(super) fn open_text(path: &Path, gzip: bool) -> Result<Text> {
    let file = File::open(path).map_err(|error| Error::io(path, &error))?;
    // The CSV reader has its own buffer; the decoder needs one below it.
    Ok(match gzip {
        true => Text::Gzip(Box::new(MultiGzDecoder::new(BufReader::with_capacity(BUFFER, file)))),
        false => Text::Plain(file),
    })
}

type Records = csv::Reader<Text>;

/// Kept rows between two places to read from: fewer cost more jumps than they mix the rows better.
const NEAR: usize = 64;

fn records(path: &Path, dialect: Dialect) -> Result<Records> {
    Ok(csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true) // so that a ragged row gets our own sentence
        .delimiter(dialect.delimiter)
        .buffer_capacity(BUFFER)
        .from_reader(open_text(path, dialect.gzip)?))
}

/// Reads the next record; `rows` complete data rows came before it.
fn next(path: &Path, records: &mut Records, record: &mut ByteRecord, rows: usize) -> Result<bool> {
    records.read_byte_record(record).map_err(|error| read_error(path, error, rows))
}

/// The sentence for a failure in the middle of a file.
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
            _ => format!("cannot be read after {rows} rows: {error}"),
        },
        kind => format!("cannot be read as CSV after {rows} rows: {kind:?}"),
    };
    Error::File { path: path.into(), reason }
}

/// Column names of the file, or an error for an empty file and for one that starts with data.
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
                "the name of column {} in the header is not UTF-8 text; save the file as UTF-8",
                i + 1
            ));
        };
        names.push(name.trim_start_matches('\u{feff}').trim().to_owned());
    }
    // A file without a header would silently lose its first row. Names such as 0, 1, 2 are common
    // (pandas), names such as 0.25 are not.
    let numeric = names.iter().all(|name| name.parse::<f64>().is_ok());
    if numeric && names.iter().any(|name| name.parse::<u64>().is_err()) {
        return fail(format!(
            "the first line ({}) holds numbers, not column names; put a header line above it",
            shorten(&names.join(","))
        ));
    }
    Ok(names)
}

/// One pass over a CSV file.
pub(super) struct CsvReader {
    records: Records,
    record: ByteRecord,
    gzip: bool,
}

impl CsvReader {
    pub fn open(plan: &Plan, dialect: Dialect) -> Result<Self> {
        let records = records(&plan.path, dialect)?;
        let mut this = Self { records, record: ByteRecord::new(), gzip: dialect.gzip };
        let header = next(&plan.path, &mut this.records, &mut this.record, 0)?;
        if !header || this.record.len() != plan.width {
            return Err(plan.file_error("the file has changed since its header was read".into()));
        }
        Ok(this)
    }

    /// Appends the current record, or drops it; takes back a half-appended one.
    fn push(&self, plan: &Plan, row: usize, labels: &mut Encoder, out: &mut Raw) -> Result<bool> {
        let fields = || plan.numbers.iter().zip(0..);
        let is_label = |j| plan.label_index() == Some(j);
        let is_number = |field: &Field| matches!(field.reading, Reading::Number);
        let mut label = None;
        let mut category = None;
        for (field, j) in fields() {
            match cell(&self.record[field.index]) {
                // Only rows that are kept tell which labels there are.
                Cell::Number(_) | Cell::Text(_) if is_label(j) => label = Some((field, j)),
                Cell::Number(_) | Cell::Text(_) if !is_number(field) => {
                    let value = encoded(field, &self.record[field.index], &mut category);
                    let fail = |reason| plan.cell_error(row, &field.name, reason);
                    out.numbers[j].push(value.map_err(fail)?);
                }
                Cell::Missing(_) if plan.keeps_missing(j) => out.numbers[j].push(f64::NAN),
                Cell::Number(value) => out.numbers[j].push(value),
                Cell::Missing(_) if plan.missing == Missing::Drop => {
                    // A text cell further on is refused even in a row that is dropped.
                    let further = fields().skip(j + 1);
                    for (field, _) in further.filter(|&(f, j)| !is_label(j) && is_number(f)) {
                        if let Cell::Text(text) = cell(&self.record[field.index]) {
                            return Err(text_error(plan, row, &field.name, &text));
                        }
                    }
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
                Err(_) => Err("is not UTF-8 text; save the file as UTF-8".to_owned()),
            };
            let fail = |reason| plan.cell_error(row, &field.name, reason);
            out.numbers[j].push(code.map_err(fail)?);
        }
        for (field, column) in plan.texts.iter().zip(&mut out.texts) {
            let Ok(text) = std::str::from_utf8(&self.record[field.index]) else {
                let reason = "is not UTF-8 text; save the file as UTF-8".to_owned();
                return Err(plan.cell_error(row, &field.name, reason));
            };
            column.push(text.to_owned());
        }
        out.rows.push(row);
        Ok(true)
    }

    fn ragged(&self, plan: &Plan, row: usize) -> Error {
        let quote = match self.record.iter().any(|field| field.contains(&b'\n')) {
            true => " (one of them spans several lines: is a quote not closed?)",
            false => "",
        };
        plan.file_error(format!(
            "row {} has {} field{}{quote} where the header has {}; mend the row or the header",
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
                places.push(Place { byte, row: progress.read, kept });
            }
            if !next(&plan.path, &mut self.records, &mut self.record, progress.read)? {
                return Ok(false);
            }
            let row = progress.read;
            if self.record.len() != plan.width {
                return Err(self.ragged(plan, row));
            }
            progress.read += 1;
            if plan.keeps(row)? && !self.push(plan, row, &mut progress.labels, out)? {
                progress.dropped += 1;
            }
        }
        Ok(true)
    }

    fn near(&self) -> Option<usize> {
        (!self.gzip).then_some(NEAR)
    }

    fn jump(&mut self, plan: &Plan, place: &Place) -> Result<()> {
        let mut position = Position::new();
        position.set_byte(place.byte);
        let outcome = self.records.seek(position);
        outcome.map_err(|error| read_error(&plan.path, error, place.row))
    }
}

/// Whether a label is missing.
pub(super) fn is_missing(text: &str) -> bool {
    matches!(cell(text.as_bytes()), Cell::Missing(_))
}

/// The number for a cell of dates or categories. `last`: the column whose category was looked up last, and its code.
fn encoded(field: &Field, bytes: &[u8], last: &mut Option<(usize, usize)>) -> Result<f64, String> {
    let text =
        std::str::from_utf8(bytes).map_err(|_| "is not UTF-8 text; save the file as UTF-8")?;
    match &field.reading {
        Reading::Category { all, .. } => {
            let code = match *last {
                Some((index, code)) if index == field.index => code,
                _ => all.find(text)?,
            };
            *last = Some((field.index, code));
            Ok(field.reading.of_code(code))
        }
        _ => days(text).ok_or_else(|| no_date(text)),
    }
}

enum Cell {
    Number(f64),
    /// How the value is missing.
    Missing(String),
    Text(String),
}

fn cell(bytes: &[u8]) -> Cell {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Cell::Text(String::from_utf8_lossy(bytes).into_owned());
    };
    let text = text.trim();
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Cell::Number(value),
        Ok(value) if value.is_nan() => Cell::Missing(format!("`{text}` is not a number")),
        Ok(_) => Cell::Missing(format!("`{}` is not finite", shorten(text))),
        Err(_) if text.is_empty() => Cell::Missing("the cell is empty".into()),
        Err(_) if MISSING.contains(&text) => Cell::Missing(format!("`{text}` is a missing value")),
        Err(_) => Cell::Text(text.to_owned()),
    }
}

fn text_error(plan: &Plan, row: usize, column: &str, text: &str) -> Error {
    let reason = "is text where a number is needed; mend the cell, say that the column holds categories \
                  (`--categorical`), or leave it out";
    plan.cell_error(row, column, format!("`{}` {reason}", shorten(text)))
}

/// At most forty characters of a text, for an error.
fn shorten(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

//! Parquet without Arrow: the chosen columns of flat schemas, read batch by batch with the typed
//! column readers, so that memory stays at a page per column however large the row groups are.

mod durations;
mod jump;
mod kind;
mod values;

use super::cells::{Cell, cell};
use super::csv::text_error;
use super::cursor::{Field, Plan, Progress, Raw, Reader};
use super::places::Place;
use super::table::Missing;
use crate::error::{Error, Result};
use jump::groups;
pub(super) use kind::Kind;
use parquet::column::reader::ColumnReader;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use values::{Batch, kind, read_encoded, read_labels, read_numbers, read_texts};

/// Rows that are decoded at a time.
const BATCH: usize = 1 << 14;

/// The definition level that stands for a text which means "no value".
const MISSING: i16 = -1;

/// Rows between two places to read from: to get to one costs the decoding of a page of every column.
pub(super) const NEAR: usize = 1 << 10;

/// A top-level column of the schema.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub name: String,
    /// Index among the leaves, which is how readers are asked for.
    leaf: usize,
    pub kind: Kind,
}

/// Returns what is wrong with a file that begins like Parquet.
fn file_error(path: &Path, error: &ParquetError) -> Error {
    let text = error.to_string();
    let remedy = match text.contains("Disabled feature") {
        true => "write it with another compression, such as snappy or zstd",
        false => "the file is truncated or damaged; copy or write it again",
    };
    Error::File {
        path: path.into(),
        reason: format!("cannot be read as Parquet ({text}): {remedy}"),
    }
}

fn open(path: &Path) -> Result<SerializedFileReader<File>> {
    let file = File::open(path).map_err(|error| Error::io(path, &error))?;
    guard(path, || SerializedFileReader::new(file))
}

/// Runs a call of the Parquet library, which panics at some kinds of damage instead of returning an
/// error. Whatever the call was working on is not used again after a failure.
fn guard<T>(path: &Path, call: impl FnOnce() -> Result<T, ParquetError>) -> Result<T> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(call))
        .unwrap_or_else(|_| Err(ParquetError::General("its pages contradict each other".into())))
        .map_err(|error| file_error(path, &error))
}

/// Returns the columns and number of rows, from the metadata only.
pub(super) fn schema(path: &Path) -> Result<(Vec<Column>, usize)> {
    let reader = open(path)?;
    let metadata = reader.metadata().file_metadata();
    let schema = metadata.schema_descr();
    let fields = schema.root_schema().get_fields();
    let durations = durations::named(metadata.key_value_metadata());
    let columns = fields.iter().enumerate().map(|(i, field)| {
        let leaf = (0..schema.num_columns()).find(|&leaf| schema.get_column_root_idx(leaf) == i);
        let kind = match leaf {
            _ if durations.contains(field.name()) => Kind::span("durations"),
            Some(leaf) if field.is_primitive() => kind(&schema.column(leaf)),
            _ => Kind::other("is nested"),
        };
        Column { name: field.name().to_owned(), leaf: leaf.unwrap_or(0), kind }
    });
    Ok((columns.collect(), rows_of(metadata.num_rows())))
}

/// Returns a number of rows; a negative one (in damaged metadata) is none.
fn rows_of(count: i64) -> usize {
    usize::try_from(count).unwrap_or(0)
}

/// One pass over a Parquet file.
pub(super) struct ParquetReader {
    file: SerializedFileReader<File>,
    columns: Arc<Vec<Column>>,
    /// The row groups yet to be read, the next one last: index and first row.
    groups: Vec<(usize, usize)>,
    /// The next row, and how many rows of its row group are left.
    row: usize,
    left: usize,
    numbers: Vec<ColumnReader>,
    texts: Vec<ColumnReader>,
}

/// Cells of the columns of numbers.
struct Decoded {
    /// Of every column the definition levels (where they matter) and the numbers.
    batches: Vec<Batch<f64>>,
    /// The cells of the target, where it holds labels.
    labels: Vec<Option<String>>,
    /// What is wrong with a cell of a row, counted from the first of these: of no matter unless the row is kept.
    bad: Vec<(usize, Error)>,
}

/// Opens a pass over a file.
pub(super) fn reader(plan: &Plan, columns: &Arc<Vec<Column>>) -> Result<Box<dyn Reader>> {
    Ok(Box::new(ParquetReader::open(plan, columns.clone())?))
}

impl ParquetReader {
    fn open(plan: &Plan, columns: Arc<Vec<Column>>) -> Result<Self> {
        let file = open(&plan.path)?;
        if file.metadata().file_metadata().schema_descr().root_schema().get_fields().len()
            != plan.width
        {
            return Err(plan.file_error("the file has changed since its schema was read".into()));
        }
        let groups = groups(&file);
        Ok(Self { file, columns, groups, row: 0, left: 0, numbers: Vec::new(), texts: Vec::new() })
    }

    /// Moves to the next row group; `false` after the last.
    fn next_group(&mut self, plan: &Plan) -> Result<bool> {
        let Some((group, first)) = self.groups.pop() else { return Ok(false) };
        let group = guard(&plan.path, || self.file.get_row_group(group))?;
        let readers = |fields: &[Field]| -> Result<Vec<_>> {
            let reader = |field: &Field| {
                let leaf = self.columns[field.index].leaf;
                guard(&plan.path, || group.get_column_reader(leaf))
            };
            fields.iter().map(reader).collect()
        };
        (self.numbers, self.texts) = (readers(&plan.numbers)?, readers(&plan.texts)?);
        (self.row, self.left) = (first, rows_of(group.metadata().num_rows()));
        Ok(true)
    }

    /// Reads the next `n` cells of every column of numbers or labels.
    fn decode(&mut self, plan: &Plan, n: usize) -> Result<Decoded> {
        let mut batches = Vec::with_capacity(self.numbers.len());
        let mut labels = Vec::new();
        let (mut category, mut bad) = (None, Vec::new());
        for (j, (field, reader)) in plan.numbers.iter().zip(&mut self.numbers).enumerate() {
            let kind = &self.columns[field.index].kind;
            if plan.label_index() == Some(j) {
                labels = read_labels(plan, field, kind, reader, self.row, n)?;
                let stand_in = |label: &Option<_>| if label.is_some() { 0.0 } else { f64::NAN };
                batches.push((Vec::new(), labels.iter().map(stand_in).collect()));
                continue;
            }
            if !field.reading.is_number() {
                let codes = read_encoded(plan, field, kind, reader, self.row, n, &mut category)?;
                let number = |(i, cell): (usize, Option<Result<f64, String>>)| match cell {
                    None => f64::NAN,
                    Some(Ok(value)) => value,
                    Some(Err(reason)) => {
                        bad.push((i, plan.cell_error(self.row + i, &field.name, reason)));
                        0.0
                    }
                };
                let values = codes.into_iter().enumerate().map(number).collect();
                batches.push((Vec::new(), values));
                continue;
            }
            if *kind == Kind::Text {
                let texts = read_texts(plan, field, kind, reader, self.row, n)?;
                let mut levels = vec![1; n];
                let number = |(i, text): (usize, String)| match cell(text.as_bytes(), &plan.options)
                {
                    Cell::Number(value) => value,
                    Cell::Missing(_) => {
                        levels[i] = MISSING;
                        f64::NAN
                    }
                    Cell::Text(text) => {
                        bad.push((i, text_error(plan, self.row + i, &field.name, &text)));
                        0.0
                    }
                };
                let values = texts.into_iter().enumerate().map(number).collect();
                batches.push((levels, values));
                continue;
            }
            let (levels, mut values) = read_numbers(plan, field, kind, reader, n)?;
            if plan.keeps_missing(j) {
                values.iter_mut().filter(|v| v.is_infinite()).for_each(|v| *v = f64::NAN);
            }
            batches.push((levels, values));
        }
        for (field, (_, values)) in plan.numbers.iter().zip(&mut batches) {
            field.fill(values);
        }
        Ok(Decoded { batches, labels, bad })
    }

    /// Reads the next `n` cells of the columns that are passed through as texts, and adds those of the kept rows.
    fn add_texts(
        &mut self,
        plan: &Plan,
        n: usize,
        kept: Option<&[usize]>,
        out: &mut Raw,
    ) -> Result<()> {
        for ((field, reader), column) in plan.texts.iter().zip(&mut self.texts).zip(&mut out.texts)
        {
            let kind = &self.columns[field.index].kind;
            let texts = read_texts(plan, field, kind, reader, self.row, n)?;
            match kept {
                None => column.extend(texts),
                Some(kept) => column.extend(kept.iter().map(|&i| texts[i].clone())),
            }
        }
        Ok(())
    }
}

impl Reader for ParquetReader {
    fn fill(
        &mut self,
        plan: &Plan,
        progress: &mut Progress,
        room: usize,
        out: &mut Raw,
    ) -> Result<bool> {
        if self.left == 0 {
            // An empty row group is not the end.
            return self.next_group(plan);
        }
        let kept = progress.kept + out.rows.len();
        let mut n = self.left.min(room).min(BATCH);
        if let Some(places) = &mut progress.places {
            n = n.min(NEAR);
            if places.is_due(kept) {
                places.push(plan.place(self.row, kept));
            }
        }
        let Decoded { mut batches, labels, bad } = self.decode(plan, n)?;
        let kept = choose_rows(plan, progress, self.row, n, &batches)?;
        let is_kept = |i| kept.as_ref().is_none_or(|kept| kept.binary_search(&i).is_ok());
        // the first in the order of the file
        if let Some((_, error)) = bad.into_iter().filter(|b| is_kept(b.0)).min_by_key(|b| b.0) {
            return Err(error);
        }
        if let Some(j) = plan.label_index() {
            // Only rows that are kept tell which labels there are.
            for i in kept.clone().unwrap_or_else(|| (0..n).collect()) {
                let Some(label) = &labels[i] else { continue };
                let fail = |reason| plan.cell_error(self.row + i, &plan.numbers[j].name, reason);
                batches[j].1[i] = progress.labels.encode(label).map_err(fail)?;
            }
        }
        for ((_, values), column) in batches.iter().zip(&mut out.numbers) {
            match &kept {
                None => column.extend_from_slice(values),
                Some(kept) => column.extend(kept.iter().map(|&i| values[i])),
            }
        }
        self.add_texts(plan, n, kept.as_deref(), out)?;
        match kept {
            None => out.rows.extend(self.row..self.row + n),
            Some(kept) => out.rows.extend(kept.into_iter().map(|i| self.row + i)),
        }
        progress.read += n;
        self.row += n;
        self.left -= n;
        Ok(true)
    }

    fn near(&self) -> Option<usize> {
        Some(NEAR)
    }

    fn jump(&mut self, plan: &Plan, place: &Place) -> Result<()> {
        jump::to(self, plan, place)
    }
}

/// Returns the rows of a batch that are kept (`None`: all of them): the mask keeps them, and no
/// cell is missing.
fn choose_rows(
    plan: &Plan,
    progress: &mut Progress,
    first_row: usize,
    n: usize,
    batches: &[Batch<f64>],
) -> Result<Option<Vec<usize>>> {
    let stays = |j: usize| plan.keeps_missing(j) || plan.numbers[j].filled.is_some();
    let needed = || batches.iter().enumerate().filter(|&(j, _)| !stays(j));
    let finite = needed().all(|(_, (_, values))| values.iter().all(|value| value.is_finite()));
    if finite && plan.keep.is_none() {
        return Ok(None);
    }
    let mut kept = Vec::with_capacity(n);
    for i in 0..n {
        let row = first_row + i;
        if !plan.keeps(row)? {
            continue;
        }
        match needed().find(|(_, (_, values))| !values[i].is_finite()) {
            None => kept.push(i),
            Some(_) if plan.missing == Missing::Drop => {
                progress.dropped += 1;
                let mut last = None;
                for (j, (_, values)) in needed() {
                    let field = &plan.numbers[j];
                    if !values[i].is_finite() && last != Some(field.index) {
                        progress.tally.add(&field.name, row, "");
                    }
                    last = Some(field.index);
                }
            }
            Some((j, (levels, values))) => {
                let what = match levels.get(i) {
                    Some(0) => "the cell is null".to_owned(),
                    Some(&MISSING) => "the value is missing".to_owned(),
                    _ if plan.label_index() == Some(j)
                        || !plan.numbers[j].reading.is_number() =>
                    {
                        "the value is missing (a category or class called `None`, `NA` or the like: `--kept-words WORD`)"
                            .to_owned()
                    }
                    _ if values[i].is_nan() => "`NaN` is not a number".to_owned(),
                    _ => format!("`{}` is not finite", values[i]),
                };
                return Err(plan.missing_error(row, &plan.numbers[j].name, &what));
            }
        }
    }
    Ok(Some(kept))
}

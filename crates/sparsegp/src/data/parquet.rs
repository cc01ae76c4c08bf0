//! Parquet without Arrow: the chosen columns of flat schemas, read batch by batch with the typed
//! column readers, so that memory stays at a page per column however large the row groups are.

mod jump;

use super::csv;
use super::cursor::{Field, Plan, Progress, Raw, Reader};
use super::encoding::{Reading, date_text, days, no_date};
use super::places::Place;
use super::table::Missing;
use crate::error::{Error, Result};
use jump::groups;
use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArrayType, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// Rows that are decoded at a time.
const BATCH: usize = 1 << 14;

/// Rows between two places to read from: to get to one costs the decoding of a page of every column.
const NEAR: usize = 1 << 10;

/// A top-level column of the schema.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub name: String,
    /// Index among the leaves, which is how readers are asked for.
    leaf: usize,
    pub kind: Kind,
}

/// What the values of a column are to us.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Number {
        /// INT32 and INT64 may hold unsigned numbers.
        unsigned: bool,
        /// 10^scale of a DECIMAL, units in a day of a TIMESTAMP, else 1.
        divisor: f64,
        /// Whether these are days since 1970-01-01.
        date: bool,
    },
    Text,
    /// Of no use; says what it is.
    Other(String),
}

/// What is wrong with a file that begins like Parquet.
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

/// Columns and number of rows, from the metadata alone.
pub(super) fn schema(path: &Path) -> Result<(Vec<Column>, usize)> {
    let reader = open(path)?;
    let metadata = reader.metadata().file_metadata();
    let schema = metadata.schema_descr();
    let fields = schema.root_schema().get_fields();
    let columns = fields.iter().enumerate().map(|(i, field)| {
        let leaf = (0..schema.num_columns()).find(|&leaf| schema.get_column_root_idx(leaf) == i);
        let kind = match leaf {
            Some(leaf) if field.is_primitive() => kind(&schema.column(leaf)),
            _ => Kind::Other("is nested".into()),
        };
        Column { name: field.name().to_owned(), leaf: leaf.unwrap_or(0), kind }
    });
    Ok((columns.collect(), rows_of(metadata.num_rows())))
}

/// A number of rows; a negative one (in damaged metadata) is none.
fn rows_of(count: i64) -> usize {
    usize::try_from(count).unwrap_or(0)
}

fn kind(column: &ColumnDescriptor) -> Kind {
    if column.max_rep_level() > 0 {
        return Kind::Other("is nested (a repeated field)".into());
    }
    let converted = column.converted_type();
    let logical = column.logical_type_ref();
    match column.physical_type() {
        Type::BOOLEAN | Type::FLOAT | Type::DOUBLE => {
            Kind::Number { unsigned: false, divisor: 1.0, date: false }
        }
        Type::INT32 | Type::INT64 => {
            let unsigned = matches!(
                converted,
                ConvertedType::UINT_8
                    | ConvertedType::UINT_16
                    | ConvertedType::UINT_32
                    | ConvertedType::UINT_64
            ) || matches!(logical, Some(LogicalType::Integer(int)) if !int.is_signed);
            const DAY: f64 = 86_400.0;
            let (divisor, date) = match logical {
                Some(LogicalType::Decimal(decimal)) => (10f64.powi(decimal.scale), false),
                Some(LogicalType::Date) => (1.0, true),
                Some(LogicalType::Timestamp(moment)) => match moment.unit {
                    TimeUnit::MILLIS => (1e3 * DAY, true),
                    TimeUnit::MICROS => (1e6 * DAY, true),
                    TimeUnit::NANOS => (1e9 * DAY, true),
                },
                _ => match converted {
                    ConvertedType::DECIMAL => (10f64.powi(column.type_scale()), false),
                    ConvertedType::DATE => (1.0, true),
                    ConvertedType::TIMESTAMP_MILLIS => (1e3 * DAY, true),
                    ConvertedType::TIMESTAMP_MICROS => (1e6 * DAY, true),
                    _ => (1.0, false),
                },
            };
            Kind::Number { unsigned, divisor, date }
        }
        // Some writers leave the annotation away; whether it is text shows when it is read.
        Type::BYTE_ARRAY if converted == ConvertedType::DECIMAL => {
            Kind::Other("holds DECIMAL numbers as BYTE_ARRAY".into())
        }
        Type::BYTE_ARRAY => Kind::Text,
        other => Kind::Other(format!("is of the type {other}")),
    }
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

/// A batch of one column: definition levels (1 present, 0 null; none if all are present), values.
type Batch<T> = (Vec<i16>, Vec<T>);

impl ParquetReader {
    pub fn open(plan: &Plan, columns: Arc<Vec<Column>>) -> Result<Self> {
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
                places.push(Place { byte: 0, row: self.row, kept });
            }
        }
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
            if !matches!(field.reading, Reading::Number) {
                let codes = read_encoded(plan, field, kind, reader, self.row, n, &mut category)?;
                let number = |(i, cell): (usize, Option<Result<f64, String>>)| match cell {
                    None => f64::NAN,
                    Some(Ok(value)) => value,
                    Some(Err(reason)) => {
                        // of no matter unless the row is kept
                        bad.push((i, j, reason));
                        0.0
                    }
                };
                let values = codes.into_iter().enumerate().map(number).collect();
                batches.push((Vec::new(), values));
                continue;
            }
            let (levels, mut values) = read_numbers(plan, field, kind, reader, n)?;
            if plan.keeps_missing(j) {
                values.iter_mut().filter(|v| v.is_infinite()).for_each(|v| *v = f64::NAN);
            }
            batches.push((levels, values));
        }
        let kept = choose_rows(plan, progress, self.row, n, &batches)?;
        let is_kept = |i| kept.as_ref().is_none_or(|kept| kept.binary_search(&i).is_ok());
        // the first in the order of the file
        if let Some((i, j, reason)) =
            bad.into_iter().filter(|(i, ..)| is_kept(*i)).min_by_key(|b| b.0)
        {
            return Err(plan.cell_error(self.row + i, &plan.numbers[j].name, reason));
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
        for ((field, reader), column) in plan.texts.iter().zip(&mut self.texts).zip(&mut out.texts)
        {
            let kind = &self.columns[field.index].kind;
            let texts = read_texts(plan, field, kind, reader, self.row, n)?;
            match &kept {
                None => column.extend(texts),
                Some(kept) => column.extend(kept.iter().map(|&i| texts[i].clone())),
            }
        }
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

/// The rows of a batch that are kept (`None`: all of them): the mask keeps them, and no cell is missing.
fn choose_rows(
    plan: &Plan,
    progress: &mut Progress,
    first_row: usize,
    n: usize,
    batches: &[Batch<f64>],
) -> Result<Option<Vec<usize>>> {
    let needed = || batches.iter().enumerate().filter(|&(j, _)| !plan.keeps_missing(j));
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
            Some(_) if plan.missing == Missing::Drop => progress.dropped += 1,
            Some((j, (levels, values))) => {
                let what = match levels.get(i) {
                    Some(0) => "the cell is null".to_owned(),
                    _ if plan.label_index() == Some(j) => "the label is missing".to_owned(),
                    _ if !matches!(plan.numbers[j].reading, Reading::Number) => {
                        "the value is missing".to_owned()
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

/// Exactly `n` records of a column, nulls left out of the values.
fn read_batch<T: DataType>(
    plan: &Plan,
    field: &Field,
    reader: &mut ColumnReaderImpl<T>,
    n: usize,
) -> Result<Batch<T::T>> {
    let (mut levels, mut values) = (Vec::new(), Vec::with_capacity(n));
    let (records, _, _) =
        guard(&plan.path, || reader.read_records(n, Some(&mut levels), None, &mut values))?;
    if records != n || (levels.is_empty() && values.len() != n) {
        let reason = "ends before the row group does: the file is damaged; write it again";
        return Err(super::columns::column(&plan.path, &field.name, reason));
    }
    Ok((levels, values))
}

/// Puts `null` where the definition level is 0.
fn spread<T: Clone>((levels, values): Batch<T>, null: T) -> Batch<T> {
    if levels.iter().all(|&level| level > 0) {
        return (levels, values);
    }
    let mut values = values.into_iter();
    let spread = levels
        .iter()
        .map(|&level| if level > 0 { values.next() } else { None }.unwrap_or_else(|| null.clone()))
        .collect();
    (levels, spread)
}

/// Exactly `n` numbers of a column, NaN where the cell is null.
fn read_numbers(
    plan: &Plan,
    field: &Field,
    kind: &Kind,
    reader: &mut ColumnReader,
    n: usize,
) -> Result<Batch<f64>> {
    let (unsigned, divisor) = match *kind {
        Kind::Number { unsigned, divisor, .. } => (unsigned, divisor),
        _ => (false, 1.0),
    };
    fn map<T>((levels, values): Batch<T>, f: impl Fn(T) -> f64) -> Batch<f64> {
        (levels, values.into_iter().map(f).collect())
    }
    let batch = match reader {
        ColumnReader::DoubleColumnReader(r) => read_batch(plan, field, r, n)?,
        ColumnReader::FloatColumnReader(r) => map(read_batch(plan, field, r, n)?, f64::from),
        ColumnReader::BoolColumnReader(r) => map(read_batch(plan, field, r, n)?, f64::from),
        ColumnReader::Int32ColumnReader(r) => map(read_batch(plan, field, r, n)?, |v| {
            (if unsigned { f64::from(v.cast_unsigned()) } else { f64::from(v) }) / divisor
        }),
        ColumnReader::Int64ColumnReader(r) => map(read_batch(plan, field, r, n)?, |v| {
            (if unsigned { v.cast_unsigned() as f64 } else { v as f64 }) / divisor
        }),
        _ => return Err(unreadable(plan, field)),
    };
    Ok(spread(batch, f64::NAN))
}

/// The category of every row of a column, none where it is missing; with the column.
type Codes = Option<(usize, Vec<Option<Result<usize, String>>>)>;

/// Exactly `n` cells of dates or categories as numbers, none where the cell is missing; or what is wrong with them.
/// `last`: the categories that were read last, as several inputs come from one column.
fn read_encoded(
    plan: &Plan,
    field: &Field,
    kind: &Kind,
    reader: &mut ColumnReader,
    first_row: usize,
    n: usize,
    last: &mut Codes,
) -> Result<Vec<Option<Result<f64, String>>>> {
    let Reading::Category { all, .. } = &field.reading else {
        if let Kind::Number { date: true, .. } = kind {
            let (_, values) = read_numbers(plan, field, kind, reader, n)?;
            return Ok(values.into_iter().map(|v| (!v.is_nan()).then_some(Ok(v))).collect());
        }
        let labels = read_labels(plan, field, kind, reader, first_row, n)?;
        let date = |text: String| days(&text).ok_or_else(|| no_date(&text));
        return Ok(labels.into_iter().map(|cell| cell.map(date)).collect());
    };
    if !matches!(last, Some((index, _)) if *index == field.index) {
        let labels = read_labels(plan, field, kind, reader, first_row, n)?;
        let code = |cell: Option<String>| cell.map(|text| all.find(&text));
        *last = Some((field.index, labels.into_iter().map(code).collect()));
    }
    let codes = last.as_ref().map_or(&[][..], |(_, codes)| codes);
    let number = |cell: &Option<Result<usize, String>>| {
        cell.as_ref().map(|code| match code {
            Ok(code) => Ok(field.reading.of_code(*code)),
            Err(reason) => Err(reason.clone()),
        })
    };
    Ok(codes.iter().map(number).collect())
}

/// Exactly `n` texts of a column, empty where the cell is null; numbers are written out, dates as such.
fn read_texts(
    plan: &Plan,
    field: &Field,
    kind: &Kind,
    reader: &mut ColumnReader,
    first_row: usize,
    n: usize,
) -> Result<Vec<String>> {
    if *kind != Kind::Text {
        let (levels, values) = read_numbers(plan, field, kind, reader, n)?;
        let date = matches!(kind, Kind::Number { date: true, .. });
        let text = |(i, value): (usize, f64)| match levels.get(i) {
            Some(0) => String::new(),
            _ if date => date_text(value),
            _ => value.to_string(),
        };
        return Ok(values.into_iter().enumerate().map(text).collect());
    }
    let ColumnReader::ByteArrayColumnReader(reader) = reader else {
        return Err(unreadable(plan, field));
    };
    let (_, values) =
        spread(read_batch::<ByteArrayType>(plan, field, reader, n)?, Vec::new().into());
    let text = |(i, bytes): (usize, parquet::data_type::ByteArray)| {
        String::from_utf8(bytes.data().to_vec()).map_err(|_| {
            let reason = "holds bytes that are not UTF-8 text; leave the column out".to_owned();
            plan.cell_error(first_row + i, &field.name, reason)
        })
    };
    values.into_iter().enumerate().map(text).collect()
}

/// Exactly `n` labels of a column; none where the cell is null or says that it is missing.
fn read_labels(
    plan: &Plan,
    field: &Field,
    kind: &Kind,
    reader: &mut ColumnReader,
    first_row: usize,
    n: usize,
) -> Result<Vec<Option<String>>> {
    if *kind == Kind::Text {
        let texts = read_texts(plan, field, kind, reader, first_row, n)?;
        return Ok(texts
            .into_iter()
            .map(|text| (!csv::is_missing(&text)).then_some(text))
            .collect());
    }
    let truth = matches!(reader, ColumnReader::BoolColumnReader(_));
    let (_, values) = read_numbers(plan, field, kind, reader, n)?;
    let label = |value: f64| match truth {
        true => (value != 0.0).to_string(),
        false => value.to_string(),
    };
    Ok(values.into_iter().map(|value| value.is_finite().then(|| label(value))).collect())
}

fn unreadable(plan: &Plan, field: &Field) -> Error {
    super::columns::column(&plan.path, &field.name, "has changed its type since it was opened")
}

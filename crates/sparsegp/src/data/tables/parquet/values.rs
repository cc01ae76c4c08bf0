//! The values of a column of a Parquet file: what they are, and how they become numbers and texts.

use super::guard;
use super::kind::{Form, Kind};
use crate::data::tables::cells::is_missing;
use crate::data::tables::columns;
use crate::data::tables::cursor::{Field, Plan};
use crate::data::tables::dates::{date_text, no_date};
use crate::data::tables::inputs::Reading;
use crate::error::{Error, Result};
use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArrayType, DataType, Int96};
use parquet::schema::types::ColumnDescriptor;
use std::fmt::Display;

/// Seconds of a day.
const DAY: f64 = 86_400.0;

/// A batch of one column: definition levels (1 present, 0 null; none if all are present), values.
pub(super) type Batch<T> = (Vec<i16>, Vec<T>);

impl Kind {
    /// Returns what a column is that cannot be read.
    pub(super) fn other(what: impl Display) -> Self {
        Self::Other(format!("{what}; encode it as a flat column of numbers or leave it out"))
    }

    /// Returns what a column of times without a date is.
    pub(super) fn span(what: &str) -> Self {
        Self::Other(format!(
            "holds {what}, whose numbers depend on the unit of the file: write them as numbers in a unit of your \
             choice, such as hours, or leave the column out"
        ))
    }
}

pub(super) fn kind(column: &ColumnDescriptor) -> Kind {
    if column.max_rep_level() > 0 {
        return Kind::other("is nested (a repeated field)");
    }
    let converted = column.converted_type();
    let logical = column.logical_type_ref();
    if matches!(logical, Some(LogicalType::Time(_)))
        || matches!(converted, ConvertedType::TIME_MILLIS | ConvertedType::TIME_MICROS)
    {
        return Kind::span("times of day");
    }
    let decimal = match logical {
        Some(LogicalType::Decimal(decimal)) => Some(decimal.scale),
        _ => (converted == ConvertedType::DECIMAL).then(|| column.type_scale()),
    };
    let of_form = |form| Kind::Number { form, unsigned: false, divisor: 1.0, date: false };
    match column.physical_type() {
        Type::BOOLEAN => Kind::Bool,
        Type::FLOAT | Type::DOUBLE => of_form(Form::Native),
        Type::INT96 => {
            Kind::Number { form: Form::Moment, unsigned: false, divisor: 1.0, date: true }
        }
        Type::INT32 | Type::INT64 => {
            let unsigned = matches!(
                converted,
                ConvertedType::UINT_8
                    | ConvertedType::UINT_16
                    | ConvertedType::UINT_32
                    | ConvertedType::UINT_64
            ) || matches!(logical, Some(LogicalType::Integer(int)) if !int.is_signed);
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
            Kind::Number { form: Form::Native, unsigned, divisor, date }
        }
        Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY if let Some(scale) = decimal => {
            of_form(Form::Decimal(scale))
        }
        Type::FIXED_LEN_BYTE_ARRAY if matches!(logical, Some(LogicalType::Float16)) => {
            of_form(Form::Half)
        }
        // Some writers leave the annotation away; whether it is text shows when it is read.
        Type::BYTE_ARRAY => Kind::Text,
        other => Kind::other(format!("is of the type {other}")),
    }
}

/// Reads exactly `n` records of a column, nulls left out of the values.
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
        return Err(columns::column(&plan.path, &field.name, reason));
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

/// Reads exactly `n` numbers of a column, NaN where the cell is null.
pub(super) fn read_numbers(
    plan: &Plan,
    field: &Field,
    kind: &Kind,
    reader: &mut ColumnReader,
    n: usize,
) -> Result<Batch<f64>> {
    let (form, unsigned, divisor) = match *kind {
        Kind::Number { form, unsigned, divisor, .. } => (form, unsigned, divisor),
        _ => (Form::Native, false, 1.0),
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
        ColumnReader::Int96ColumnReader(r) => map(read_batch(plan, field, r, n)?, |v| days_of(&v)),
        ColumnReader::ByteArrayColumnReader(r) if form != Form::Native => {
            map(read_batch(plan, field, r, n)?, |v| of_bytes(v.data(), form))
        }
        ColumnReader::FixedLenByteArrayColumnReader(r) if form != Form::Native => {
            map(read_batch(plan, field, r, n)?, |v| of_bytes(v.data(), form))
        }
        _ => return Err(unreadable(plan, field)),
    };
    Ok(spread(batch, f64::NAN))
}

/// Returns days since 1970-01-01 of a Julian day with nanoseconds.
fn days_of(moment: &Int96) -> f64 {
    const EPOCH: f64 = 2_440_588.0;
    let data = moment.data();
    let nanos = u64::from(data[0]) | u64::from(data[1]) << 32;
    f64::from(data[2].cast_signed()) - EPOCH + nanos as f64 / (1e9 * DAY)
}

/// Returns the number that some bytes are.
fn of_bytes(bytes: &[u8], form: Form) -> f64 {
    match (form, bytes) {
        (Form::Half, &[low, high]) => half(u16::from_le_bytes([low, high])),
        (Form::Decimal(scale), _) => decimal(bytes, scale),
        _ => f64::NAN,
    }
}

/// Returns the value of a number in half precision: a sign, five bits of exponent, ten of the
/// fraction.
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    sign * match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction > 0.0 => f64::NAN,
        31 => f64::INFINITY,
        _ => (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
    }
}

/// Returns the number nearest to a whole number (two's complement, highest byte first) times
/// 10^-scale.
fn decimal(bytes: &[u8], scale: i32) -> f64 {
    let negative = bytes.first().is_some_and(|byte| byte >> 7 == 1);
    // its size, lowest byte first
    let mut size: Vec<u8> = bytes.iter().rev().copied().collect();
    if negative {
        let mut carry = true;
        for byte in &mut size {
            let (sum, over) = (!*byte).overflowing_add(u8::from(carry));
            (*byte, carry) = (sum, over);
        }
    }
    let mut digits = Vec::new();
    while size.iter().any(|&byte| byte > 0) {
        let mut rest = 0_u32;
        for byte in size.iter_mut().rev() {
            let both = rest << 8 | u32::from(*byte);
            *byte = (both / 10) as u8;
            rest = both % 10;
        }
        digits.push(b'0' + rest as u8);
    }
    digits.reverse();
    let text = String::from_utf8(digits).unwrap_or_default();
    let sign = if negative { "-" } else { "" };
    format!("{sign}0{text}e{}", -scale).parse().unwrap_or(f64::NAN)
}

/// The category of every row of a column, none where it is missing; with the column.
pub(super) type Codes = Option<(usize, Vec<Option<Result<usize, String>>>)>;

/// Reads exactly `n` cells of dates or categories as numbers, none where the cell is missing; or what is wrong with them.
/// `last`: the categories that were read last, as several inputs come from one column.
pub(super) fn read_encoded(
    plan: &Plan,
    field: &Field,
    kind: &Kind,
    reader: &mut ColumnReader,
    first_row: usize,
    n: usize,
    last: &mut Codes,
) -> Result<Vec<Option<Result<f64, String>>>> {
    let Reading::Category { .. } = &field.reading else {
        if let Kind::Number { date: true, .. } = kind {
            let (_, values) = read_numbers(plan, field, kind, reader, n)?;
            let own = |v: f64| (!v.is_nan()).then(|| Ok(field.reading.of_date(v)));
            return Ok(values.into_iter().map(own).collect());
        }
        let labels = read_labels(plan, field, kind, reader, first_row, n)?;
        let date = |text: String| match plan.options.date(&field.name, &text) {
            Some(days) => Ok(field.reading.of_date(days)),
            None => Err(no_date(&text)),
        };
        return Ok(labels.into_iter().map(|cell| cell.map(date)).collect());
    };
    if !matches!(last, Some((index, _)) if *index == field.index) {
        let labels = read_labels(plan, field, kind, reader, first_row, n)?;
        let code = |cell: Option<String>| cell.map(|text| field.reading.find(&text));
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

/// Reads exactly `n` cells of a column as they are written, none where the cell is null: whole numbers with all digits,
/// dates and truth values as such.
fn written(
    plan: &Plan,
    field: &Field,
    kind: &Kind,
    reader: &mut ColumnReader,
    first_row: usize,
    n: usize,
) -> Result<Vec<Option<String>>> {
    fn map<T: Clone>((levels, values): Batch<T>, f: impl Fn(T) -> String) -> Vec<Option<String>> {
        let present = (levels, values.into_iter().map(|value| Some(f(value))).collect());
        spread(present, None).1
    }
    if *kind == Kind::Text {
        let ColumnReader::ByteArrayColumnReader(reader) = reader else {
            return Err(unreadable(plan, field));
        };
        let (_, values) =
            spread(map_some(read_batch::<ByteArrayType>(plan, field, reader, n)?), None);
        let text = |(i, bytes): (usize, Option<parquet::data_type::ByteArray>)| {
            let Some(bytes) = bytes else { return Ok(None) };
            String::from_utf8(bytes.data().to_vec()).map(Some).map_err(|_| {
                let reason = "holds bytes that are not UTF-8 text; leave the column out".to_owned();
                plan.cell_error(first_row + i, &field.name, reason)
            })
        };
        return values.into_iter().enumerate().map(text).collect();
    }
    if let Kind::Number { form: Form::Native, unsigned, divisor: 1.0, date: false } = *kind {
        match reader {
            ColumnReader::Int32ColumnReader(r) => {
                return Ok(map(read_batch(plan, field, r, n)?, |v| match unsigned {
                    true => v.cast_unsigned().to_string(),
                    false => v.to_string(),
                }));
            }
            ColumnReader::Int64ColumnReader(r) => {
                return Ok(map(read_batch(plan, field, r, n)?, |v| match unsigned {
                    true => v.cast_unsigned().to_string(),
                    false => v.to_string(),
                }));
            }
            // with the digits that single precision has
            ColumnReader::FloatColumnReader(r) => {
                return Ok(map(read_batch(plan, field, r, n)?, |v| v.to_string()));
            }
            _ => {}
        }
    }
    let (levels, values) = read_numbers(plan, field, kind, reader, n)?;
    let date = matches!(kind, Kind::Number { date: true, .. });
    let text = |(i, value): (usize, f64)| match levels.get(i) {
        Some(0) => None,
        _ if date => Some(date_text(value)),
        _ if *kind == Kind::Bool => Some((value != 0.0).to_string()),
        _ => Some(value.to_string()),
    };
    Ok(values.into_iter().enumerate().map(text).collect())
}

fn map_some<T>((levels, values): Batch<T>) -> Batch<Option<T>> {
    (levels, values.into_iter().map(Some).collect())
}

/// Reads exactly `n` texts of a column, empty where the cell is null.
pub(super) fn read_texts(
    plan: &Plan,
    field: &Field,
    kind: &Kind,
    reader: &mut ColumnReader,
    first_row: usize,
    n: usize,
) -> Result<Vec<String>> {
    let texts = written(plan, field, kind, reader, first_row, n)?;
    Ok(texts.into_iter().map(Option::unwrap_or_default).collect())
}

/// Reads exactly `n` labels of a column; none where the cell is null or says that it is missing.
pub(super) fn read_labels(
    plan: &Plan,
    field: &Field,
    kind: &Kind,
    reader: &mut ColumnReader,
    first_row: usize,
    n: usize,
) -> Result<Vec<Option<String>>> {
    let texts = written(plan, field, kind, reader, first_row, n)?;
    let there = |text: &String| !is_missing(text, &plan.options) || plan.knows(field, text);
    Ok(texts.into_iter().map(|text| text.filter(there)).collect())
}

fn unreadable(plan: &Plan, field: &Field) -> Error {
    columns::column(&plan.path, &field.name, "has changed its type since it was opened")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_of_any_width() {
        assert_eq!(decimal(&[0x30, 0x39], 2), 123.45);
        assert_eq!(decimal(&(-12345_i128).to_be_bytes(), 2), -123.45);
        assert_eq!(decimal(&[], 2), 0.0);
        assert_eq!(decimal(&[0xff; 32], 3), -0.001);
        assert_eq!(decimal(&[0x80], -1), -1280.0);
        let mut wide = [0_u8; 32];
        wide[16..].copy_from_slice(&123_456_789_012_345_678_901_234_567_890_i128.to_be_bytes());
        assert_eq!(decimal(&wide, 10), 12_345_678_901_234_567_890.123_456_789);
    }

    #[test]
    fn halves() {
        for (bits, expected) in [
            (0x3c00, 1.0),
            (0xc500, -5.0),
            (0x3555, 0.333_251_953_125),
            (0x0001, 2f64.powi(-24)),
            (0x7bff, 65_504.0),
            (0xfc00, f64::NEG_INFINITY),
        ] {
            assert_eq!(half(bits), expected, "{bits:x}");
        }
        assert!(half(0x7e00).is_nan());
    }
}

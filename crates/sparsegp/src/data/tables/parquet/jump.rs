//! Ways to a row in the middle of a file.

use super::{ParquetReader, guard, rows_of};
use crate::data::tables::cursor::Plan;
use crate::data::tables::places::Place;
use crate::error::Result;
use parquet::column::reader::ColumnReader;
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::fs::File;

/// Returns the row groups, the first one last: index and first row.
pub(super) fn groups(file: &SerializedFileReader<File>) -> Vec<(usize, usize)> {
    let mut first = 0;
    let mut groups = Vec::with_capacity(file.num_row_groups());
    for (group, metadata) in file.metadata().row_groups().iter().enumerate() {
        groups.push((group, first));
        first += rows_of(metadata.num_rows());
    }
    groups.reverse();
    groups
}

/// Leaves out the next `rows` rows of a column.
fn skip(plan: &Plan, reader: &mut ColumnReader, rows: usize) -> Result<()> {
    if rows == 0 {
        return Ok(());
    }
    guard(&plan.path, || match reader {
        ColumnReader::BoolColumnReader(r) => r.skip_records(rows),
        ColumnReader::Int32ColumnReader(r) => r.skip_records(rows),
        ColumnReader::Int64ColumnReader(r) => r.skip_records(rows),
        ColumnReader::Int96ColumnReader(r) => r.skip_records(rows),
        ColumnReader::FloatColumnReader(r) => r.skip_records(rows),
        ColumnReader::DoubleColumnReader(r) => r.skip_records(rows),
        ColumnReader::ByteArrayColumnReader(r) => r.skip_records(rows),
        ColumnReader::FixedLenByteArrayColumnReader(r) => r.skip_records(rows),
    })?;
    Ok(())
}

/// Goes to a row that was noted.
pub(super) fn to(reader: &mut ParquetReader, plan: &Plan, place: &Place) -> Result<()> {
    let target = place.row - place.first;
    // forward within a row group that is open, else in the one that has the row
    if reader.left == 0 || !(reader.row..reader.row + reader.left).contains(&target) {
        reader.groups = groups(&reader.file);
        let before = reader.groups.partition_point(|&(_, first)| first > target);
        reader.groups.truncate(before + 1);
        if !reader.next_group(plan)? {
            return Ok(());
        }
    }
    let rows = target - reader.row;
    for column in reader.numbers.iter_mut().chain(&mut reader.texts) {
        skip(plan, column, rows)?;
    }
    reader.row += rows;
    reader.left = reader.left.saturating_sub(rows);
    Ok(())
}

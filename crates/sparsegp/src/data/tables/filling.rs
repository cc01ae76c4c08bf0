//! What takes the place of missing cells of inputs.

use super::columns::{Selection, column};
use super::cursor::{Cursor, Field, Plan};
use super::inputs::Reading;
use super::table::{Missing, Table};
use crate::data::encoding::{Encoding, Filled, InputColumn};
use crate::error::Result;
use serde::Deserialize;
use std::sync::Arc;

/// Rows that are read at once.
const CHUNK: usize = 1 << 13;

/// How missing cells of inputs are filled. Only columns that have some are: a cell that is missing elsewhere, in rows to
/// predict, is refused, as nothing was learnt of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fill {
    /// A missing number or date becomes the mean of those that are there; a missing category is one more category.
    Mean,
    /// The same, and a column of numbers or dates gets an input `column=missing` beside it: 1 where its cell is missing.
    Indicator,
    /// A missing category is one more category; missing numbers and dates stay missing.
    Category,
}

impl Fill {
    /// Returns what becomes of rows in which something else is missing: with inputs filled that is
    /// a target or a weight, and they are left out; where numbers stay missing, they are refused.
    pub fn of_rows(self) -> Missing {
        match self {
            Self::Mean | Self::Indicator => Missing::Drop,
            Self::Category => Missing::Refuse,
        }
    }
}

/// What a pass has found of a column.
#[derive(Clone, Copy, Default)]
struct Found {
    missing: usize,
    there: usize,
    mean: f64,
}

impl Found {
    fn add(&mut self, value: f64) {
        if value.is_finite() {
            self.there += 1;
            self.mean += (value - self.mean) / self.there as f64;
        } else {
            self.missing += 1;
        }
    }
}

/// Why a column of dates with holidays cannot be filled.
const OF_HOLIDAYS: &str = "has missing dates, and dates with holidays are not filled; leave out such rows (`--missing drop`)";

/// Returns an encoding with missing cells filled, numbers and dates by a mean; none of dates with
/// holidays.
fn filled(own: &Encoding, mean: f64, how: Fill) -> Result<Option<Encoding>> {
    Ok(Some(match own {
        Encoding::Code(all) => Encoding::Code(all.with_missing()?),
        Encoding::OneHot(all) => Encoding::OneHot(all.with_missing()?),
        Encoding::Calendar(_) => return Ok(None),
        known => {
            let indicator = how == Fill::Indicator;
            Encoding::Filled(Filled { value: mean, date: known.is_date(), indicator })
        }
    }))
}

impl Table {
    /// Returns the same selection, of which [encoded](Table::encode) input columns with missing cells have them filled, and the
    /// names of these columns with how many cells are missing. All rows of the file are read.
    ///
    /// # Errors
    /// As for [`Table::select`]; [`Error::Column`](crate::Error::Column) for a column that is missing in all rows, and for
    /// missing dates of a column with holidays; [`Error::Cell`](crate::Error::Cell) for what cannot be read.
    pub fn filled(
        &self,
        selection: &Selection,
        how: Fill,
    ) -> Result<(Selection, Vec<(String, usize)>)> {
        let deviations: Vec<&str> = selection.deviations.iter().map(|(_, own)| &**own).collect();
        let mut columns: Vec<InputColumn> = self.select(selection)?.input_columns();
        let may = |own: &InputColumn| {
            let by_mean = own.encoding.categories().is_none();
            // a mean of places is none of them
            let place = matches!(own.encoding, Encoding::Place { .. });
            !(place || by_mean && how == Fill::Category || deviations.contains(&&*own.name))
        };
        let which: Vec<usize> = (0..columns.len()).filter(|&j| may(&columns[j])).collect();
        let fields: Vec<Field> = which.iter().filter_map(|&j| self.unfilled(&columns[j])).collect();
        if fields.is_empty() {
            return Ok((selection.clone(), Vec::new()));
        }
        let found = self.gaps(fields)?;
        let mut gaps = Vec::new();
        for (&j, found) in which.iter().zip(found).filter(|(_, found)| found.missing > 0) {
            let own = &mut columns[j];
            gaps.push((own.name.clone(), found.missing));
            if found.there == 0 {
                return Err(column(self.path(), &own.name, "is missing in all rows; leave it out"));
            }
            own.encoding = filled(&own.encoding, found.mean, how)?
                .ok_or_else(|| column(self.path(), &own.name, OF_HOLIDAYS))?;
        }
        Ok((selection.clone().columns(columns), gaps))
    }

    /// Returns a column as it is, with NaN where a cell is missing.
    fn unfilled(&self, own: &InputColumn) -> Option<Field> {
        let index = self.columns.iter().position(|name| *name == own.name)?;
        let (input, reading) = own.readings().into_iter().next()?;
        let reading = match reading {
            Reading::Category { all, .. } => Reading::Category { all, of: None },
            own => own,
        };
        Some(Field { index, name: own.name.clone(), input, reading, filled: Some(f64::NAN) })
    }

    /// Returns how often cells of these columns are missing, and the means of the others.
    fn gaps(&self, fields: Vec<Field>) -> Result<Vec<Found>> {
        let mut found = vec![Found::default(); fields.len()];
        let inputs = fields.len();
        let plan = Plan {
            numbers: fields,
            inputs,
            missing: Missing::Refuse,
            ..self.plan_of_texts(Vec::new())
        };
        let mut cursor = Cursor::open(Arc::new(plan))?;
        loop {
            let raw = cursor.read(CHUNK)?;
            if raw.rows.is_empty() {
                return Ok(found);
            }
            for (column, found) in raw.numbers.iter().zip(&mut found) {
                column.iter().for_each(|value| found.add(*value));
            }
        }
    }
}

impl InputColumn {
    /// Returns the column with its missing cells filled, where there are some among these of a frame, as [`Table::filled`]
    /// does.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for a cell that cannot be read, and for a column that is missing in all rows.
    pub fn filled(&self, cells: &[String], how: Fill) -> Result<Self> {
        let invalid =
            |reason: &str| crate::error::Error::Invalid(format!("column `{}` {reason}", self.name));
        let there = || cells.iter().filter(|cell| !cell.is_empty());
        let by_mean = self.encoding.categories().is_none();
        if there().count() == cells.len() || how == Fill::Category && by_mean {
            return Ok(self.clone());
        }
        if there().next().is_none() {
            return Err(invalid("is missing in all rows; leave it out"));
        }
        let mut found = Found::default();
        if by_mean {
            for cell in there() {
                found.add(self.numbers(cell).map_err(|reason| invalid(&reason))?[0]);
            }
        }
        let encoding = filled(&self.encoding, found.mean, how)?;
        let encoding = encoding.ok_or_else(|| invalid(OF_HOLIDAYS))?;
        Ok(Self { name: self.name.clone(), encoding })
    }
}

//! Holidays in a table: a row for each.

use super::cells::{is_missing, shown};
use super::columns::column;
use super::dates::no_date;
use super::table::Table;
use crate::data::encoding::Encoding;
use crate::data::{Holiday, Holidays, Selection};
use crate::error::{Error, Result};

impl Holidays {
    /// Reads the columns `date` and `name` of a table, and where there are such `before` and `after`: whole days before and after a
    /// holiday that have effects too. Dates are read as the table's options say.
    ///
    /// # Errors
    /// [`Error::Column`] for a column that is not there; [`Error::Cell`] for a cell that is not a
    /// date, name or whole number; as for [`Holidays::new`].
    pub fn of_table(table: &Table) -> Result<Self> {
        let (dates, names) = (table.texts("date")?, table.texts("name")?);
        let optional = |name: &str| match table.columns().iter().any(|own| own == name) {
            true => table.texts(name),
            false => Ok(vec![String::new(); dates.len()]),
        };
        let (before, after) = (optional("before")?, optional("after")?);
        let options = table.read_options();
        let cell = |row: usize, column: &str, reason: String| Error::Cell {
            path: table.path().into(),
            row: row + 1,
            column: column.into(),
            reason,
        };
        let days = |row: usize, name: &str, text: &str| match text.trim() {
            text if is_missing(text, options) => Ok(0),
            text => text.parse::<u32>().map_err(|_| {
                cell(row, name, format!("`{}` is not a number of days, such as 1", shown(text)))
            }),
        };
        let one = |row: usize| -> Result<Holiday> {
            let day = options
                .date("date", &dates[row])
                .ok_or_else(|| cell(row, "date", no_date(&dates[row])))?;
            let name = names[row].trim();
            if name.is_empty() {
                return Err(cell(row, "name", "a holiday has no name".into()));
            }
            Ok(Holiday {
                name: name.into(),
                day: day.floor() as i64,
                before: days(row, "before", &before[row])?,
                after: days(row, "after", &after[row])?,
            })
        };
        Self::new((0..dates.len()).map(one).collect::<Result<Vec<_>>>()?)
    }
}

impl Table {
    /// Returns a selection of this table whose only date has holidays.
    ///
    /// # Errors
    /// [`Error::Column`] if none of its inputs, or more than one, holds dates.
    pub fn with_holidays(
        &self,
        mut selection: Selection,
        holidays: &Holidays,
    ) -> Result<Selection> {
        let names = self.inputs_of(&selection)?;
        let dates: Vec<&String> = names
            .iter()
            .filter(|name| selection.encodings.get(*name).is_some_and(Encoding::is_date))
            .collect();
        match dates[..] {
            [one] => {
                selection.encodings.insert(one.clone(), Encoding::Calendar(holidays.clone()));
                Ok(selection)
            }
            [] => Err(column(
                self.path(),
                names.first().map_or("", String::as_str),
                "is not a date, nor is another input: holidays are days of an input that holds dates",
            )),
            [first, ..] => Err(column(
                self.path(),
                first,
                "is not the only input that holds dates, and holidays are days of one: leave out the others",
            )),
        }
    }
}

//! Which input columns of a file hold no numbers, and what they hold.

use super::classes::canonical;
use super::columns::{Selection, column};
use super::csv::is_missing;
use super::cursor::{Cursor, Field, Format};
use super::encoding::{Categories, Encoding, InputColumn, MOST_CODES, MOST_ONE_HOT, days};
use super::parquet::Kind;
use super::table::Table;
use crate::error::{Error, Result};
use std::collections::HashSet;
use std::sync::Arc;

/// Rows that are looked at to tell what a column holds.
const PEEK: usize = 1000;
/// Rows that are read at once to gather categories.
const CHUNK: usize = 1 << 13;

/// What is known of the columns before the file is looked at.
#[derive(Clone, Debug, Default)]
pub struct EncodeOptions {
    /// Columns that hold categories, whatever they look like.
    pub categorical: Vec<String>,
    /// Columns that become codes where they hold categories: those that a kernel reads as labels.
    pub codes: Vec<String>,
}

impl Table {
    /// Names of the input columns of a selection, in its order.
    ///
    /// # Errors
    /// As for [`Table::select`].
    pub fn inputs_of(&self, selection: &Selection) -> Result<Vec<String>> {
        let roles = selection.resolve(&self.path, &self.columns)?;
        Ok(roles.inputs.into_iter().map(|index| self.columns[index].clone()).collect())
    }

    /// The same selection with an encoding for every input column that holds no numbers, as its first value that is
    /// not missing tells (of the first 1000 rows): dates and moments ([`days`]) become days since 1970-01-01,
    /// other text becomes categories, which are gathered from all rows of the file. In Parquet the types tell
    /// dates from text.
    ///
    /// # Errors
    /// As for [`Table::select`]; [`Error::Column`] for a column of more than [`MOST_ONE_HOT`] categories ([`MOST_CODES`]
    /// where they become codes), and for a categorical column that is none of the inputs.
    pub fn encode(&self, selection: &Selection, options: &EncodeOptions) -> Result<Selection> {
        let names = self.inputs_of(selection)?;
        if let Some(stray) = options.categorical.iter().find(|name| !names.contains(name)) {
            let reason = "is said to be categorical and is no input; name an input column";
            return Err(column(&self.path, stray, reason));
        }
        let mut columns: Vec<InputColumn> = names.into_iter().map(InputColumn::number).collect();
        let holds = self.peek(&columns, options)?;
        let of_text: Vec<usize> =
            (0..columns.len()).filter(|&j| holds[j] == Holds::Categories).collect();
        let mut categories = self.categories(&columns, &of_text, options)?.into_iter();
        for (own, holds) in columns.iter_mut().zip(holds) {
            own.encoding = match holds {
                Holds::Numbers => Encoding::Number,
                Holds::Dates => Encoding::Date,
                Holds::Categories => match categories.next() {
                    Some(all) if options.codes.contains(&own.name) => Encoding::Code(all),
                    Some(all) => Encoding::OneHot(all),
                    None => Encoding::Number,
                },
            };
        }
        Ok(selection.clone().columns(columns))
    }

    fn field(&self, name: &str) -> Option<Field> {
        let index = self.columns.iter().position(|own| own == name)?;
        Some(Field::number(index, name))
    }

    /// What the input columns hold.
    fn peek(&self, columns: &[InputColumn], options: &EncodeOptions) -> Result<Vec<Holds>> {
        let mut holds = vec![Holds::Numbers; columns.len()];
        let mut unclear = Vec::new();
        for (j, own) in columns.iter().enumerate() {
            let Some(field) = self.field(&own.name) else { continue };
            let kind = match &self.format {
                Format::Csv(_) => None,
                Format::Parquet(all) => Some(&all[field.index].kind),
            };
            match kind {
                _ if options.categorical.contains(&own.name) => holds[j] = Holds::Categories,
                None | Some(Kind::Text) => unclear.push((j, field)),
                Some(Kind::Number { date: true, .. }) => holds[j] = Holds::Dates,
                Some(_) => {}
            }
        }
        if unclear.is_empty() {
            return Ok(holds);
        }
        let fields = unclear.iter().map(|(_, field)| field.clone()).collect();
        // what is wrong with the file, reading it will tell
        let Ok(mut cursor) = Cursor::open(Arc::new(self.plan_of_texts(fields))) else {
            return Ok(holds);
        };
        let Ok(raw) = cursor.read(PEEK) else { return Ok(holds) };
        for ((j, _), cells) in unclear.iter().zip(&raw.texts) {
            if let Some(first) = cells.iter().find(|cell| !is_missing(cell)) {
                holds[*j] = match days(first) {
                    Some(_) => Holds::Dates,
                    None if first.trim().parse::<f64>().is_ok() => Holds::Numbers,
                    None => Holds::Categories,
                };
            }
        }
        Ok(holds)
    }

    /// The categories of these columns, in all rows of the file.
    fn categories(
        &self,
        columns: &[InputColumn],
        which: &[usize],
        options: &EncodeOptions,
    ) -> Result<Vec<Categories>> {
        let fields: Vec<Field> =
            which.iter().filter_map(|&j| self.field(&columns[j].name)).collect();
        let mut found: Vec<HashSet<String>> = vec![HashSet::new(); fields.len()];
        if fields.is_empty() {
            return Ok(Vec::new());
        }
        let mut cursor = Cursor::open(Arc::new(self.plan_of_texts(fields.clone())))?;
        loop {
            let raw = cursor.read(CHUNK)?;
            if raw.rows.is_empty() {
                break;
            }
            for ((field, cells), found) in fields.iter().zip(&raw.texts).zip(&mut found) {
                found.extend(
                    cells.iter().filter(|cell| !is_missing(cell)).map(|cell| canonical(cell)),
                );
                let coded = options.codes.contains(&field.name);
                let most = if coded { MOST_CODES } else { MOST_ONE_HOT };
                if found.len() > most {
                    return Err(column(&self.path, &field.name, too_many(cells, most)));
                }
            }
        }
        let of = |(field, labels): (&Field, HashSet<String>)| {
            Categories::new(labels).map_err(|error: Error| {
                column(&self.path, &field.name, format!("is missing in all rows: {error}"))
            })
        };
        fields.iter().zip(found).map(of).collect()
    }
}

fn too_many(cells: &[String], most: usize) -> String {
    let shown: Vec<String> = cells
        .iter()
        .filter(|cell| !is_missing(cell))
        .take(3)
        .map(|cell| format!("`{}`", cell.trim()))
        .collect();
    format!(
        "holds more than {most} different texts ({}, …), too many for categories; leave it out (`--ignore`, \
         `Selection::ignore`), or write dates as `2024-12-31` and numbers without units",
        shown.join(", ")
    )
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Numbers,
    Dates,
    Categories,
}

//! Which input columns of a file hold no numbers, and what they hold.

use super::cells::{is_missing, shown};
use super::columns::{Selection, column};
use super::cursor::{Cursor, Field};
use super::kinds::{Holds, Role, judge};
use super::parquet::Kind;
use super::table::Table;
use crate::data::classes::canonical;
use crate::data::encoding::{Categories, Encoding, InputColumn, MOST_CODES, MOST_ONE_HOT};
use crate::data::options::ReadOptions;
use crate::error::{Error, Result};
use std::collections::HashSet;
use std::sync::Arc;

/// Rows that tell what a column of texts holds.
pub(super) const PEEK: usize = 1000;
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

impl InputColumn {
    /// Tells what a column of texts in memory holds, by the rules of [`Table::encode`], but that an empty text only is a missing
    /// category: where values have types, `None` and `NA` are words.
    ///
    /// # Errors
    /// [`Error::Invalid`] that names the row (from 0) or the column, for what [`Table::encode`] refuses.
    ///
    /// ```
    /// use sparsegp::data::{EncodeOptions, InputColumn};
    /// let cells = ["red", "blue", "red"].map(String::from);
    /// let column = InputColumn::of_texts("colour", &cells, &EncodeOptions::default())?;
    /// assert_eq!(column.input_names(), ["colour=red"]);
    /// # Ok::<(), sparsegp::Error>(())
    /// ```
    pub fn of_texts(name: &str, cells: &[String], options: &EncodeOptions) -> Result<Self> {
        let plain = ReadOptions { kept_words: vec!["*".into()], ..ReadOptions::default() };
        let is = |names: &[String]| names.iter().any(|own| own == name);
        let coded = is(&options.codes);
        let role = if coded { Role::Codes } else { Role::Input };
        let fail = |reason: String| Err(Error::Invalid(format!("column `{name}` {reason}")));
        let holds = match is(&options.categorical) {
            true => Holds::Categories,
            false => judge(&cells[..cells.len().min(PEEK)], name, role, &plain),
        };
        let encoding = match holds {
            Holds::Numbers => Encoding::Number,
            Holds::Dates => Encoding::Date,
            Holds::Unclear(Some(row), reason) => {
                return Err(Error::Invalid(format!("row {row}, column `{name}`: {reason}")));
            }
            Holds::Unclear(None, reason) => return fail(reason),
            Holds::Categories => {
                let there = cells.iter().filter(|cell| !is_missing(cell, &plain));
                let labels: HashSet<String> = there.map(|cell| canonical(cell)).collect();
                let most = if coded { MOST_CODES } else { MOST_ONE_HOT };
                if labels.len() > most {
                    return fail(too_many(cells, most, &plain));
                }
                if labels.is_empty() {
                    return fail("is missing in all rows; leave it out".into());
                }
                let all = Categories::new(labels)?;
                if coded { Encoding::Code(all) } else { Encoding::OneHot(all) }
            }
        };
        Ok(Self { name: name.to_owned(), encoding })
    }
}

impl Table {
    /// Returns the names of the input columns of a selection, in its order.
    ///
    /// # Errors
    /// As for [`Table::select`].
    pub fn inputs_of(&self, selection: &Selection) -> Result<Vec<String>> {
        let roles = selection.resolve(&self.path, &self.columns)?;
        Ok(roles.inputs.into_iter().map(|index| self.columns[index].clone()).collect())
    }

    /// Returns the same selection with an encoding for every input column that does not hold numbers, as the cells of
    /// the first 1000 rows tell: dates and moments ([`days`](super::days)) become days since 1970-01-01, other text and
    /// truth values become categories, which are gathered from all rows of the file. A few words among numbers do not make
    /// categories: reading counts them as missing ([`ReadOptions::missing_words`]) or refuses them. In Parquet the types
    /// tell dates from text.
    ///
    /// # Errors
    /// As for [`Table::select`]; [`Error::Column`] for a column of more than [`MOST_ONE_HOT`] categories ([`MOST_CODES`]
    /// where they become codes), and for a categorical column that is none of the inputs; it or [`Error::Cell`] for text that looks like numbers
    /// or dates in a way that was not given, and for text that differs in nearly every row.
    pub fn encode(&self, selection: &Selection, options: &EncodeOptions) -> Result<Selection> {
        let names = self.inputs_of(selection)?;
        if let Some(stray) = options.categorical.iter().find(|name| !names.contains(name)) {
            let reason =
                "is listed as categorical but is not an input column; name an input column";
            return Err(column(&self.path, stray, reason));
        }
        self.check_unnamed(selection)?;
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
                // refused by now
                Holds::Unclear(..) => Encoding::Number,
            };
        }
        Ok(selection.clone().columns(columns))
    }

    /// Refuses a column that would be left out because it has no name; the first one is an index.
    fn check_unnamed(&self, selection: &Selection) -> Result<()> {
        if selection.inputs.is_some() || selection.ignored.iter().any(String::is_empty) {
            return Ok(());
        }
        let unnamed = (1..self.columns.len()).filter(|&i| self.columns[i].is_empty());
        let fields: Vec<Field> = unnamed.map(|i| Field::number(i, "")).collect();
        if fields.is_empty() {
            return Ok(());
        }
        let texts = self.first_texts(fields.clone())?;
        let full = |cells: &&Vec<String>| cells.iter().any(|cell| !is_missing(cell, &self.options));
        match fields.iter().zip(&texts).find(|(_, cells)| full(cells)) {
            None => Ok(()),
            Some((field, _)) => Err(Error::File {
                path: self.path.clone(),
                reason: format!(
                    "column {} has no name in the header: give it one, or leave it out (`--ignore ''`)",
                    field.index + 1
                ),
            }),
        }
    }

    fn field(&self, name: &str) -> Option<Field> {
        let index = self.columns.iter().position(|own| own == name)?;
        Some(Field::number(index, name))
    }

    /// Returns what the input columns hold.
    fn peek(&self, columns: &[InputColumn], options: &EncodeOptions) -> Result<Vec<Holds>> {
        let mut holds = vec![Holds::Numbers; columns.len()];
        let mut unclear = Vec::new();
        for (j, own) in columns.iter().enumerate() {
            let Some(field) = self.field(&own.name) else { continue };
            let kind = self.kind(field.index);
            match kind {
                _ if options.categorical.contains(&own.name) => holds[j] = Holds::Categories,
                None | Some(Kind::Text) => unclear.push((j, field)),
                Some(Kind::Number { date: true, .. }) => holds[j] = Holds::Dates,
                Some(Kind::Bool) => holds[j] = Holds::Categories,
                Some(_) => {}
            }
        }
        let fields = unclear.iter().map(|(_, field)| field.clone()).collect();
        if unclear.is_empty() {
            return Ok(holds);
        }
        let texts = self.first_texts(fields)?;
        for ((j, field), cells) in unclear.iter().zip(&texts) {
            let codes = options.codes.contains(&field.name);
            let role = if codes { Role::Codes } else { Role::Input };
            holds[*j] = match judge(cells, &field.name, role, &self.options) {
                Holds::Unclear(row, reason) => return Err(self.unclear(&field.name, row, reason)),
                known => known,
            };
        }
        Ok(holds)
    }

    /// Returns the categories of these columns, in all rows of the file.
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
                    cells
                        .iter()
                        .filter(|cell| !is_missing(cell, &self.options))
                        .map(|cell| canonical(cell)),
                );
                let coded = options.codes.contains(&field.name);
                let most = if coded { MOST_CODES } else { MOST_ONE_HOT };
                if found.len() > most {
                    return Err(column(
                        &self.path,
                        &field.name,
                        too_many(cells, most, &self.options),
                    ));
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

fn too_many(cells: &[String], most: usize, options: &ReadOptions) -> String {
    let shown: Vec<String> = cells
        .iter()
        .filter(|cell| !is_missing(cell, options))
        .take(3)
        .map(|cell| format!("`{}`", shown(cell.trim())))
        .collect();
    format!(
        "holds more than {most} different texts ({}, …), too many for categories; leave it out (`--ignore`, \
         `Selection::ignore`), or write dates as `2024-12-31` and numbers without units",
        shown.join(", ")
    )
}

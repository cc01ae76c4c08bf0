//! Tables on disk: CSV, gzip-compressed CSV and Parquet behind one door.

use super::columns::{Selection, column, position};
use super::csv;
use super::cursor::{Cursor, Field, Format, Parts, Plan};
use super::detect::detect;
use super::kinds::{Holds, Role, judge};
use super::many;
use super::parquet::{self, Kind};
use super::stream::{Blocks, TableSource};
use crate::data::classes::Classes;
use crate::data::encoding::{Encoding, InputColumn};
use crate::data::loaded::Loaded;
use crate::data::options::ReadOptions;
use crate::data::scaler::Scaler;
use crate::data::split::Mask;
use crate::error::{Error, Result};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What to do with a row in which a chosen number is missing (an empty cell, `NA`, a null, NaN, an
/// infinity). Text where a number is needed is always refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Missing {
    /// An error that names the cell.
    #[default]
    Refuse,
    /// The row is left out, and counted.
    Drop,
    /// A target that is missing becomes NaN, and the row is kept; anything else that is missing is an
    /// error.
    Keep,
}

/// A CSV (`.csv`, `.tsv`, either with `.gz`) or Parquet file whose header has been read.
///
/// A folder, or a pattern such as `rows/*.parquet`, stands for all of its files as one table, in the order of their names;
/// folders called `year=2024` give their rows a column `year`.
///
/// The format follows from the first bytes of the file, not from its name. Columns are separated by the comma, tab,
/// semicolon or bar that the first rows agree on; text that is not UTF-8 has a byte order mark, or an
/// [encoding](ReadOptions::encoding) that is named. Lines above the header that begin with `#`, and a line `sep=;`, are left
/// out.
///
/// ```no_run
/// # use sparsegp::data::{Selection, Table};
/// let data = Table::open("airfoil.csv.gz")?.select(&Selection::targets(["y"]))?.read_all()?;
/// println!("{} rows of {:?}", data.x.nrows(), data.input_names);
/// # Ok::<(), sparsegp::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Table {
    pub(super) path: PathBuf,
    pub(super) format: Format,
    pub(super) columns: Vec<String>,
    pub(super) rows: Option<usize>,
    pub(super) options: Arc<ReadOptions>,
}

impl Table {
    /// Reads the header of a file.
    ///
    /// # Errors
    /// [`Error::File`] if the file cannot be read, is empty, or is of another format.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, &ReadOptions::default())
    }

    /// Reads the header of a file whose cells are written in this way.
    ///
    /// # Errors
    /// As for [`Table::open`]; [`Error::Invalid`] for [options](ReadOptions) that cannot be meant.
    pub fn open_with(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Self> {
        options.check()?;
        let path = path.as_ref();
        match many::files(path)? {
            Some((root, files)) => many::open(path, &root, &files, options),
            None => Self::open_file(path, options),
        }
    }

    /// Reads the header of a single file.
    pub(super) fn open_file(path: &Path, options: &ReadOptions) -> Result<Self> {
        let (format, columns, rows) = match detect(path, options)? {
            Some(dialect) => (Format::Csv(dialect), csv::header(path, dialect)?, None),
            None => {
                let (columns, rows) = parquet::schema(path)?;
                let names = columns.iter().map(|column| column.name.clone()).collect();
                (Format::Parquet(Arc::new(columns)), names, Some(rows))
            }
        };
        let options = Arc::new(options.clone());
        Ok(Self { path: path.into(), format, columns, rows, options })
    }

    /// Returns how its cells are written.
    pub fn read_options(&self) -> &ReadOptions {
        &self.options
    }

    /// Returns the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the names of all columns, in the order of the file.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Returns the number of rows where the format states it (Parquet); a CSV has to be read to
    /// know.
    pub fn rows(&self) -> Option<usize> {
        self.rows
    }

    /// Returns the cells of a column as they stand, one for each row of the file.
    ///
    /// # Errors
    /// [`Error::Column`] for a column that is absent, with the nearest names; [`Error::File`] if the file
    /// cannot be read.
    pub fn texts(&self, name: &str) -> Result<Vec<String>> {
        let index = position(&self.path, &self.columns, name)?;
        let plan = self.plan_of_texts(vec![Field::number(index, name)]);
        let raw = Cursor::open(Arc::new(plan.clone()))?.read(usize::MAX)?;
        Ok(raw.into_parts(&plan).texts.into_iter().next().unwrap_or_default())
    }

    /// Tells whether a column holds labels rather than numbers: texts or truth values, as the first 1000 rows tell. What
    /// else may be wrong with the column, reading it will tell.
    ///
    /// # Errors
    /// [`Error::Column`] for a column that is absent, with the nearest names; it or [`Error::Cell`] for one that holds
    /// dates, texts that look like numbers, or texts that differ in most rows.
    pub fn holds_labels(&self, name: &str) -> Result<bool> {
        let index = position(&self.path, &self.columns, name)?;
        let field = Field::number(index, name);
        match self.kind(index) {
            Some(Kind::Bool) => return Ok(true),
            Some(Kind::Text) | None => {}
            Some(Kind::Number { date: true, .. }) => return Err(self.dated(name)),
            Some(_) => return Ok(false),
        }
        let texts = self.first_texts(vec![field])?;
        match judge(&texts[0], name, Role::Target, &self.options) {
            Holds::Numbers => Ok(false),
            Holds::Categories => Ok(true),
            Holds::Dates => Err(self.dated(name)),
            Holds::Unclear(row, reason) => Err(self.unclear(name, row, reason)),
        }
    }

    /// Returns what a column holds by the types of its file; none for text files. Of several files text prevails.
    pub(super) fn kind(&self, index: usize) -> Option<&Kind> {
        let all = match &self.format {
            Format::Csv(_) => return None,
            Format::Parquet(columns) => return Some(&columns[index].kind),
            Format::Many(parts) => parts,
        };
        let mut found = None;
        for part in all.iter() {
            let own = match (&part.format, part.place(index)) {
                (Format::Parquet(columns), Some(place)) => &columns[place].kind,
                _ => return None,
            };
            let rank = |kind: &Kind| match kind {
                Kind::Other(_) => 2,
                Kind::Text => 1,
                _ => 0,
            };
            if found.is_none_or(|found| rank(own) > rank(found)) {
                found = Some(own);
            }
        }
        found
    }

    /// Returns the size of the file in bytes, or of all of several.
    ///
    /// # Errors
    /// [`Error::File`] if a file is not there any more.
    pub fn bytes(&self) -> Result<u64> {
        self.plan_of_texts(Vec::new()).bytes()
    }

    fn dated(&self, name: &str) -> Error {
        let reason = "holds dates, and a target is a number or a class: turn it into a number, such as days since a first one";
        column(&self.path, name, reason)
    }

    /// Names the cell or column that cannot be read without a word of the user.
    pub(super) fn unclear(&self, name: &str, row: Option<usize>, reason: String) -> Error {
        match row {
            Some(row) => self.plan_of_texts(Vec::new()).cell_error(row, name, reason),
            None => column(&self.path, name, reason),
        }
    }

    /// Reads the first rows of these columns as text.
    pub(super) fn first_texts(&self, fields: Vec<Field>) -> Result<Vec<Vec<String>>> {
        let mut cursor = Cursor::open(Arc::new(self.plan_of_texts(fields)))?;
        Ok(cursor.read(super::encode::PEEK)?.texts)
    }

    /// Chooses columns by name.
    ///
    /// # Errors
    /// [`Error::Column`] for a column that is absent (with the nearest names), given twice, both an
    /// input and a target, or not of numbers; [`Error::File`] if no input column is left.
    pub fn select(&self, selection: &Selection) -> Result<Selected> {
        let roles = selection.resolve(&self.path, &self.columns)?;
        selection.check_deviations(&self.path)?;
        let field = |&index: &usize| Field::number(index, &self.columns[index]);
        let fields = |indices: &[usize]| -> Vec<Field> { indices.iter().map(field).collect() };
        let mut numbers: Vec<Field> = roles
            .inputs
            .iter()
            .map(|&index| self.inputs_from(index, selection))
            .collect::<Result<Vec<_>>>()?
            .concat();
        let inputs = numbers.len();
        numbers.extend(fields(&roles.targets));
        numbers.extend(roles.weight.iter().chain(&roles.extra).map(field));
        let texts = fields(&roles.ids);
        let labels = if selection.labels { &roles.targets[..] } else { &[] };
        let is_number = |j: usize, field: &Field| {
            let read = field.reading.is_number() && !labels.contains(&field.index);
            read && j < numbers.len()
        };
        for (j, field) in numbers.iter().chain(&texts).enumerate() {
            let is_date = field.reading.is_date();
            let problem = match self.kind(field.index) {
                Some(Kind::Other(what)) => what,
                Some(Kind::Number { date: false, .. }) if is_date => {
                    "holds numbers where the model needs dates; write them as dates or leave the column out"
                }
                Some(Kind::Number { date: true, .. }) if is_number(j, field) => {
                    "holds dates where numbers are needed; write them as numbers or leave the column out"
                }
                _ => continue,
            };
            return Err(column(&self.path, &field.name, problem));
        }
        Ok(Selected {
            plan: Plan {
                numbers,
                inputs,
                columns: roles
                    .inputs
                    .iter()
                    .map(|&index| {
                        let name = self.columns[index].clone();
                        let encoding = selection.encodings.get(&name).cloned().unwrap_or_default();
                        InputColumn { name, encoding }
                    })
                    .collect(),
                outputs: roles.targets.len(),
                labels: selection.labels,
                weight: roles.weight.is_some(),
                extra: roles.extra.is_some(),
                deviations: selection.deviations.clone(),
                of_model: selection.of_model,
                missing: Missing::default(),
                ..self.plan_of_texts(texts)
            },
        })
    }
}

impl Table {
    /// Returns a plan that reads these columns as text and nothing else; others are made from it.
    pub(super) fn plan_of_texts(&self, texts: Vec<Field>) -> Plan {
        Plan {
            path: self.path.clone(),
            format: self.format.clone(),
            width: self.columns.len(),
            numbers: Vec::new(),
            inputs: 0,
            columns: Vec::new(),
            outputs: 0,
            labels: false,
            classes: None,
            weight: false,
            extra: false,
            deviations: Vec::new(),
            of_model: false,
            texts,
            missing: Missing::Drop,
            first_row: 0,
            part: 0,
            options: self.options.clone(),
            keep: None,
        }
    }

    /// Returns the numbers that an input column becomes.
    fn inputs_from(&self, index: usize, selection: &Selection) -> Result<Vec<Field>> {
        let name = self.columns[index].clone();
        let encoding = selection.encodings.get(&name).cloned().unwrap_or_default();
        let own = InputColumn { name: name.clone(), encoding };
        let field = |((input, reading), filled)| {
            let name = name.clone();
            Field { index, name, input, reading, filled }
        };
        let mut fields: Vec<Field> =
            own.readings().into_iter().zip(own.fillings()).map(field).collect();
        if let (Encoding::Place { longitude }, Some(last)) = (&own.encoding, fields.last_mut()) {
            // latitude, latitude, longitude: what is missing in a row is counted once
            last.index = position(&self.path, &self.columns, longitude)?;
            last.name.clone_from(longitude);
        }
        Ok(fields)
    }
}

/// Chosen columns of a [`Table`], with the rows to keep: ready to be read, as often as needed.
#[derive(Clone, Debug)]
pub struct Selected {
    pub(super) plan: Plan,
}

impl Selected {
    /// Sets what to do about missing numbers; [`Missing::Refuse`] unless said otherwise.
    #[must_use]
    pub fn missing(mut self, missing: Missing) -> Self {
        self.plan.missing = missing;
        self
    }

    /// Keeps only the rows whose flag in `mask` is `flag`: `false` for the training rows of a split,
    /// `true` for its test rows. The other rows are not parsed.
    #[must_use]
    pub fn rows_where(mut self, mask: Arc<Mask>, flag: bool) -> Self {
        self.plan.keep = Some((mask, flag));
        self
    }

    /// Returns the input columns with their encodings, in the order asked for.
    pub fn input_columns(&self) -> Vec<InputColumn> {
        self.plan.columns.clone()
    }

    /// Returns the names of the inputs, in the order asked for: of columns that hold categories one
    /// for each ([`InputColumn::input_names`]).
    pub fn input_names(&self) -> Vec<String> {
        self.names(0, self.plan.inputs)
    }

    /// Returns inputs with the columns of their standard deviations.
    pub fn deviations(&self) -> &[(String, String)] {
        &self.plan.deviations
    }

    /// Returns the names of the targets; empty if there are none, also where optional ones are not
    /// in the file.
    pub fn target_names(&self) -> Vec<String> {
        self.names(self.plan.inputs, self.plan.inputs + self.plan.outputs)
    }

    /// Returns the names of the columns that pass through as text.
    pub fn id_names(&self) -> Vec<String> {
        self.plan.texts.iter().map(|field| field.name.clone()).collect()
    }

    /// Returns the name of the column of weights.
    pub fn weight_name(&self) -> Option<String> {
        self.names(0, self.plan.numbers.len()).into_iter().nth(self.plan.weight_index()?)
    }

    /// Returns the name of the column of further numbers.
    pub fn extra_name(&self) -> Option<String> {
        self.plan.extra.then(|| self.plan.numbers.last().map(|field| field.name.clone()))?
    }

    fn names(&self, from: usize, to: usize) -> Vec<String> {
        self.plan.numbers[from..to].iter().map(|field| field.input.clone()).collect()
    }

    /// Sets the classes that the labels of a [categorical](Selection::categorical) target belong
    /// to, as a model knows them; without this, reading a table to learn from finds them in the
    /// rows first.
    #[must_use]
    pub fn classes(mut self, classes: Classes) -> Self {
        self.plan.classes = self.plan.labels.then_some(classes);
        self
    }

    /// Returns the same with the classes that the chosen rows have, if they are needed and not
    /// known yet.
    pub(super) fn with_classes_found(&self) -> Result<Self> {
        let mut this = self.clone();
        let Some(j) = this.plan.label_index().filter(|_| this.plan.classes.is_none()) else {
            return Ok(this);
        };
        let mut cursor = Cursor::open(Arc::new(Plan { texts: Vec::new(), ..this.plan.clone() }))?;
        while !cursor.read(1 << 13)?.rows.is_empty() {}
        let classes = Classes::new(cursor.progress().labels.labels()).map_err(|error| {
            column(&this.plan.path, &this.plan.numbers[j].name, error.to_string())
        })?;
        this.plan.classes = Some(classes);
        Ok(this)
    }

    /// Reads all rows into memory.
    ///
    /// # Errors
    /// [`Error::Cell`] for a cell that cannot be used, [`Error::File`] for a file that cannot be read
    /// or of which no row is left.
    pub fn read_all(&self) -> Result<Loaded> {
        let plan = self.with_classes_found()?.plan;
        let mut cursor = Cursor::open(Arc::new(plan))?;
        let raw = cursor.read(usize::MAX)?;
        let Parts { data, texts, rows } = raw.into_parts(&self.plan);
        Ok(Loaded {
            x: data.x,
            y: data.y,
            weights: data.weights,
            extra: data.extra,
            ids: texts,
            input_names: self.input_names(),
            columns: self.input_columns(),
            target_names: self.target_names(),
            weight_name: self.weight_name(),
            extra_name: self.extra_name(),
            classes: cursor.plan().classes.clone(),
            id_names: self.id_names(),
            rows,
            deviations: self.plan.deviations.clone(),
            dropped: cursor.progress().dropped,
            remarks: cursor.progress().tally.words(),
        })
    }

    /// Checks every chosen cell in one pass, counts the rows and gathers their statistics; the data can
    /// then be streamed to a model again and again in bounded memory.
    ///
    /// # Errors
    /// As [`Selected::read_all`].
    pub fn stream(&self) -> Result<TableSource> {
        TableSource::open(self, None)
    }

    #[cfg(test)]
    pub(in crate::data) fn stream_in_stretches(&self, rows: usize) -> Result<TableSource> {
        TableSource::open(self, Some(rows))
    }

    /// Begins one pass in blocks of `rows` rows, in bounded memory, with the inputs standardised by
    /// `scaler`: what prediction and scoring need.
    ///
    /// # Errors
    /// [`Error::Shape`] if the scaler is for another number of inputs; [`Error::Invalid`] for labels whose
    /// [classes](Selected::classes) were not said; the items fail as
    /// [`Selected::read_all`] does.
    pub fn blocks(&self, rows: usize, scaler: Option<&Scaler>) -> Result<Blocks> {
        Blocks::open(self, rows, scaler)
    }

    /// Counts the rows of the file, whatever the mask and missing cells; cheap for Parquet.
    ///
    /// # Errors
    /// [`Error::File`] if the file cannot be read.
    pub fn count_rows(&self) -> Result<usize> {
        let of = |format: &Format, path: &Path| match format {
            Format::Parquet(_) => Some(parquet::schema(path).map(|schema| schema.1)),
            _ => None,
        };
        if let Some(rows) = of(&self.plan.format, &self.plan.path) {
            return rows;
        }
        if let Format::Many(parts) = &self.plan.format
            && let Some(all) =
                parts.iter().map(|part| of(&part.format, &part.path)).collect::<Option<Vec<_>>>()
        {
            return all.into_iter().sum();
        }
        // Nothing is parsed when no column is chosen.
        let plan = Plan {
            numbers: Vec::new(),
            inputs: 0,
            columns: Vec::new(),
            outputs: 0,
            weight: false,
            extra: false,
            deviations: Vec::new(),
            texts: Vec::new(),
            keep: None,
            ..self.plan.clone()
        };
        let mut cursor = Cursor::open(Arc::new(plan))?;
        while !cursor.read(1 << 14)?.rows.is_empty() {}
        Ok(cursor.progress().read)
    }
}

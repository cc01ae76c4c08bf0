//! Tables on disk: CSV, gzip-compressed CSV and Parquet behind one door.

use super::classes::Classes;
use super::columns::{Selection, check_header, column, position};
use super::csv::{self, Dialect};
use super::cursor::{Cursor, Field, Format, Parts, Plan};
use super::encoding::{InputColumn, Reading};
use super::loaded::Loaded;
use super::parquet::{self, Kind};
use super::scaler::Scaler;
use super::split::Mask;
use super::stream::{Blocks, TableSource};
use crate::error::{Error, Result};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What to do with a row in which a chosen number is missing (an empty cell, `NA`, a null, NaN, an
/// infinity). Text where a number is needed is always refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
/// The format follows from the first bytes of the file, not from its name. The delimiter is a comma,
/// or a tab in a file named `.tsv`; where the header has no comma, a tab or a semicolon in it counts.
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
    rows: Option<usize>,
}

impl Table {
    /// Reads the header of a file.
    ///
    /// # Errors
    /// [`Error::File`] if the file cannot be read, is empty, or is of another format;
    /// [`Error::Column`] if a name stands twice in the header.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let (format, columns, rows) = match detect(path)? {
            Some(dialect) => (Format::Csv(dialect), csv::header(path, dialect)?, None),
            None => {
                let (columns, rows) = parquet::schema(path)?;
                let names = columns.iter().map(|column| column.name.clone()).collect();
                (Format::Parquet(Arc::new(columns)), names, Some(rows))
            }
        };
        check_header(path, &columns)?;
        Ok(Self { path: path.into(), format, columns, rows })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Names of all columns, in the order of the file.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Number of rows where the format states it (Parquet); a CSV has to be read to know.
    pub fn rows(&self) -> Option<usize> {
        self.rows
    }

    /// The cells of a column as they stand, one for each row of the file.
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

    /// Whether a column holds labels rather than numbers, as its first value that is not missing tells:
    /// text or a truth value. What else may be wrong with the column, reading it will tell.
    ///
    /// # Errors
    /// [`Error::Column`] for a column that is absent, with the nearest names.
    pub fn holds_labels(&self, name: &str) -> Result<bool> {
        let index = position(&self.path, &self.columns, name)?;
        let numbers = vec![Field::number(index, name)];
        let plan = Plan { numbers, outputs: 1, labels: true, ..self.plan_of_texts(Vec::new()) };
        let Ok(mut cursor) = Cursor::open(Arc::new(plan)) else { return Ok(false) };
        let read = cursor.read(1);
        let mut labels = cursor.progress().labels.labels();
        Ok(read.is_ok() && labels.next().is_some_and(|first| first.parse::<f64>().is_err()))
    }

    /// Chooses columns by name.
    ///
    /// # Errors
    /// [`Error::Column`] for a column that is absent (with the nearest names), given twice, both an
    /// input and a target, or not of numbers; [`Error::File`] if no input column is left.
    pub fn select(&self, selection: &Selection) -> Result<Selected> {
        let roles = selection.resolve(&self.path, &self.columns)?;
        let field = |&index: &usize| Field::number(index, &self.columns[index]);
        let fields = |indices: &[usize]| -> Vec<Field> { indices.iter().map(field).collect() };
        let mut numbers: Vec<Field> =
            roles.inputs.iter().flat_map(|&index| self.inputs_from(index, selection)).collect();
        let inputs = numbers.len();
        numbers.extend(fields(&roles.targets));
        numbers.extend(roles.weight.iter().chain(&roles.extra).map(field));
        let texts = fields(&roles.ids);
        if let Format::Parquet(columns) = &self.format {
            let kind = |field: &Field| &columns[field.index].kind;
            let labels = selection.labels.then_some(inputs);
            let number_needed = |(j, field)| (field, labels != Some(j) || roles.targets.is_empty());
            for (field, number) in numbers
                .iter()
                .enumerate()
                .map(number_needed)
                .chain(texts.iter().map(|f| (f, false)))
            {
                let problem = match kind(field) {
                    Kind::Other(what) => what,
                    Kind::Text if number && matches!(field.reading, Reading::Number) => {
                        "holds text where numbers are needed"
                    }
                    Kind::Number { date: false, .. } if matches!(field.reading, Reading::Date) => {
                        "holds numbers where the model needs dates"
                    }
                    _ => continue,
                };
                let remedy = "encode it as a flat column of numbers or leave it out";
                return Err(column(&self.path, &field.name, format!("{problem}; {remedy}")));
            }
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
                missing: Missing::default(),
                ..self.plan_of_texts(texts)
            },
        })
    }
}

impl Table {
    /// A plan that reads these columns as text and nothing else; others are made from it.
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
            texts,
            missing: Missing::Drop,
            keep: None,
        }
    }

    /// The numbers that an input column becomes.
    fn inputs_from(&self, index: usize, selection: &Selection) -> Vec<Field> {
        let name = self.columns[index].clone();
        let encoding = selection.encodings.get(&name).cloned().unwrap_or_default();
        let readings = InputColumn { name: name.clone(), encoding }.readings();
        let field = |(input, reading)| Field { index, name: name.clone(), input, reading };
        readings.into_iter().map(field).collect()
    }
}

/// Chosen columns of a [`Table`], with the rows to keep: ready to be read, as often as needed.
#[derive(Clone, Debug)]
pub struct Selected {
    pub(super) plan: Plan,
}

impl Selected {
    /// What to do about missing numbers; [`Missing::Refuse`] unless said otherwise.
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

    /// The input columns with their encodings, in the order asked for.
    pub fn input_columns(&self) -> Vec<InputColumn> {
        self.plan.columns.clone()
    }

    /// Names of the inputs, in the order asked for: of columns that hold categories one for each
    /// ([`InputColumn::input_names`]).
    pub fn input_names(&self) -> Vec<String> {
        self.names(0, self.plan.inputs)
    }

    /// Names of the targets; empty if there are none, also where optional ones are not in the file.
    pub fn target_names(&self) -> Vec<String> {
        self.names(self.plan.inputs, self.plan.inputs + self.plan.outputs)
    }

    /// Names of the columns that pass through as text.
    pub fn id_names(&self) -> Vec<String> {
        self.plan.texts.iter().map(|field| field.name.clone()).collect()
    }

    /// Name of the column of weights.
    pub fn weight_name(&self) -> Option<String> {
        self.names(0, self.plan.numbers.len()).into_iter().nth(self.plan.weight_index()?)
    }

    /// Name of the column of further numbers.
    pub fn extra_name(&self) -> Option<String> {
        self.plan.extra.then(|| self.plan.numbers.last().map(|field| field.name.clone()))?
    }

    fn names(&self, from: usize, to: usize) -> Vec<String> {
        self.plan.numbers[from..to].iter().map(|field| field.input.clone()).collect()
    }

    /// The classes that the labels of a [categorical](Selection::categorical) target belong to, as a
    /// model knows them; without this, reading a table to learn from finds them in the rows first.
    #[must_use]
    pub fn classes(mut self, classes: Classes) -> Self {
        self.plan.classes = self.plan.labels.then_some(classes);
        self
    }

    /// The same with the classes that the chosen rows have, if they are needed and not known yet.
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
            dropped: cursor.progress().dropped,
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
    pub(super) fn stream_in_stretches(&self, rows: usize) -> Result<TableSource> {
        TableSource::open(self, Some(rows))
    }

    /// One pass in blocks of `rows` rows, in bounded memory, with the inputs standardised by `scaler`:
    /// what prediction and scoring need.
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
        if let Format::Parquet(_) = self.plan.format {
            return Ok(parquet::schema(&self.plan.path)?.1);
        }
        // Nothing is parsed when no column is chosen.
        let plan = Plan {
            numbers: Vec::new(),
            inputs: 0,
            columns: Vec::new(),
            outputs: 0,
            weight: false,
            extra: false,
            texts: Vec::new(),
            keep: None,
            ..self.plan.clone()
        };
        let mut cursor = Cursor::open(Arc::new(plan))?;
        while !cursor.read(1 << 14)?.rows.is_empty() {}
        Ok(cursor.progress().read)
    }
}

/// Beginnings of files that are mistaken for tables, and what to do about them.
const FOREIGN: [(&[u8], &str); 6] = [
    (b"PK\x03\x04", "is a ZIP archive or a spreadsheet; unpack it or export it as CSV"),
    (b"\x28\xb5\x2f\xfd", "is compressed with Zstandard; decompress it or compress it with gzip"),
    (b"BZh", "is compressed with bzip2; decompress it or compress it with gzip"),
    (b"ARROW1", "is an Arrow (Feather) file; write it as Parquet or CSV"),
    (b"PARE", "is an encrypted Parquet file; write it without encryption"),
    (b"\xfd7zXZ", "is compressed with xz; decompress it or compress it with gzip"),
];

/// The dialect of a text file, or `None` for Parquet. Looks at the bytes first: a wrong extension is
/// common, a wrong magic number is not.
fn detect(path: &Path) -> Result<Option<Dialect>> {
    let fail = |reason: &str| Err(Error::File { path: path.into(), reason: reason.into() });
    let metadata = std::fs::metadata(path).map_err(|error| Error::io(path, &error))?;
    if !metadata.is_file() {
        return fail("is not a regular file; a table is read more than once and has to be a file");
    }
    let start = first_bytes(path, false)?;
    // A header may begin with a column called `PAR1`; then there is text after it.
    let is_text = start.len() > 8
        && start.iter().take(64).all(|byte| *byte >= b' ' || b"\t\r\n".contains(byte));
    if start.starts_with(b"PAR1") && !is_text {
        return Ok(None);
    }
    if let Some((_, what)) = FOREIGN.iter().find(|(magic, _)| start.starts_with(magic) && !is_text)
    {
        return fail(what);
    }
    let gzip = start.starts_with(b"\x1f\x8b");
    let text = if gzip { first_bytes(path, true)? } else { start };
    if gzip && text.starts_with(b"PAR1\x15") {
        return fail("is a Parquet file inside gzip; decompress it (Parquet compresses by itself)");
    }
    if text.starts_with(b"\xff\xfe") || text.starts_with(b"\xfe\xff") {
        return fail("is UTF-16 text; save it as UTF-8");
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    if text.contains(&0) {
        return fail(match name.ends_with(".parquet") {
            true => "does not begin with `PAR1`: it is damaged or not a Parquet file",
            false => "holds binary data: it is neither CSV (plain or gzip) nor Parquet",
        });
    }
    let header = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let has = |byte: u8| header.contains(&byte);
    let delimiter = match name.trim_end_matches(".gz") {
        name if name.ends_with(".tsv") => b'\t',
        _ if has(b',') => b',',
        _ if has(b'\t') => b'\t',
        _ if has(b';') => b';',
        _ => b',',
    };
    Ok(Some(Dialect { delimiter, gzip }))
}

/// As much of the beginning as it takes to tell what a file is. Failures that are the business of the
/// reader (a truncated gzip stream) end the text early here.
fn first_bytes(path: &Path, gzip: bool) -> Result<Vec<u8>> {
    let mut start = Vec::new();
    let mut text = csv::open_text(path, gzip)?.take(1 << 16);
    match text.read_to_end(&mut start) {
        Err(error) if !gzip => Err(Error::io(path, &error)),
        _ => Ok(start),
    }
}

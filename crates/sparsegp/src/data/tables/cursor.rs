//! One pass over the chosen columns of a file, whatever its format: rows that a mask leaves out are
//! skipped, rows with missing cells are refused or dropped, and an empty result is an error.

use super::cells::categorical;
use super::inputs::Reading;
use super::labels::Encoder;
use super::many::{ManyReader, Part};
use super::places::{Piece, Place, Places};
use super::table::Missing;
use super::tally::Tally;
use super::text::Dialect;
use super::{csv, parquet};
use crate::data::classes::Classes;
use crate::data::encoding::InputColumn;
use crate::data::options::ReadOptions;
use crate::data::source::InMemory;
use crate::data::sphere::{check_latitude, check_longitude, place_point, places_of};
use crate::data::split::Mask;
use crate::error::{Error, Result};
use faer::Mat;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// What to read from where; the same for every pass.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub path: PathBuf,
    pub format: Format,
    /// Number of columns in the file.
    pub width: usize,
    /// The numeric columns: inputs, targets, weight, further number.
    pub numbers: Vec<Field>,
    /// How many of them are inputs.
    pub inputs: usize,
    /// The columns that the inputs come from.
    pub columns: Vec<InputColumn>,
    /// How many of them are targets.
    pub outputs: usize,
    /// Whether the target (if there is one) is a label.
    pub labels: bool,
    /// The classes that labels belong to, once they are known.
    pub classes: Option<Classes>,
    /// Whether a column of weights follows the targets.
    pub weight: bool,
    /// Whether a column of further numbers is the last.
    pub extra: bool,
    /// Inputs with the columns of their standard deviations, which are the last of the inputs.
    pub deviations: Vec<(String, String)>,
    /// Whether a model has these columns already.
    pub of_model: bool,
    /// The text columns.
    pub texts: Vec<Field>,
    pub missing: Missing,
    /// Rows of the table before this file, and its place, where there are several.
    pub first_row: usize,
    pub part: usize,
    /// How cells are written.
    pub options: Arc<ReadOptions>,
    /// Rows to keep: those whose flag in the mask is this one.
    pub keep: Option<(Arc<Mask>, bool)>,
}

#[derive(Clone, Debug)]
pub(super) enum Format {
    Csv(Dialect),
    /// The columns of the schema, as many as the header has.
    Parquet(Arc<Vec<parquet::Column>>),
    /// Several files.
    Many(Arc<Vec<Part>>),
}

/// A chosen column.
#[derive(Clone, Debug)]
pub(super) struct Field {
    /// Place of the column in the file.
    pub index: usize,
    /// Name of the column in the file.
    pub name: String,
    /// Name of the number that it becomes, and how.
    pub input: String,
    pub reading: Reading,
    /// The number in the place of a missing cell, where such a row stays.
    pub filled: Option<f64>,
}

impl Field {
    /// Creates a column that is read as it is.
    pub fn number(index: usize, name: &str) -> Self {
        let reading = Reading::Number;
        Self { index, name: name.into(), input: name.into(), reading, filled: None }
    }

    /// Puts what fills missing cells in their places, and turns the others into what they say.
    #[cfg(feature = "parquet")]
    pub fn fill(&self, values: &mut [f64]) {
        let Some(filled) = self.filled else { return };
        let found = |value: f64| match value.is_finite() {
            true if self.reading.is_number() => self.reading.of_number(value),
            true => value,
            false => filled,
        };
        values.iter_mut().for_each(|value| *value = found(*value));
    }
}

/// Parsed rows, column by column.
#[derive(Debug, Default)]
pub(super) struct Raw {
    pub numbers: Vec<Vec<f64>>,
    pub texts: Vec<Vec<String>>,
    /// Index of each row in the file, from 0.
    pub rows: Vec<usize>,
}

impl Raw {
    /// Creates raw rows, none yet, with room for about this many.
    pub fn new(plan: &Plan, rows: usize) -> Self {
        // "All rows" is not a number to prepare for.
        const MOST: usize = 1 << 20;
        let room = if rows > MOST { 0 } else { rows };
        Self {
            numbers: plan.numbers.iter().map(|_| Vec::with_capacity(room)).collect(),
            texts: vec![Vec::new(); plan.texts.len()],
            rows: Vec::with_capacity(room),
        }
    }

    /// Returns the inputs and targets as column-major matrices. Columns are freed as they are
    /// copied.
    pub fn into_parts(self, plan: &Plan) -> Parts {
        let (n, inputs) = (self.rows.len(), plan.inputs);
        let mut x = Mat::zeros(n, inputs);
        let mut y = Mat::zeros(n, plan.outputs);
        let mut columns = self.numbers.into_iter();
        for j in 0..inputs + plan.outputs {
            let (mat, j) = if j < inputs { (&mut x, j) } else { (&mut y, j - inputs) };
            mat.col_as_slice_mut(j).copy_from_slice(&columns.next().unwrap_or_default());
        }
        let mut side = |there| if there { columns.next() } else { None }.unwrap_or_default();
        let (weights, extra) = (side(plan.weight), side(plan.extra));
        Parts { data: InMemory { x, y, weights, extra }, texts: self.texts, rows: self.rows }
    }
}

/// Parsed rows by the role of their columns.
#[derive(Debug)]
pub(super) struct Parts {
    pub data: InMemory,
    pub texts: Vec<Vec<String>>,
    pub rows: Vec<usize>,
}

/// How far a pass has come.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Rows of the file read so far.
    pub read: usize,
    /// Rows kept so far.
    pub kept: usize,
    /// Rows left out because a chosen cell is missing.
    pub dropped: usize,
    /// What was missing in them.
    pub tally: Tally,
    /// The labels and their codes.
    pub labels: Encoder,
    /// Where reading could start, if that is to be noted.
    pub places: Option<Places>,
}

/// A format's reader.
pub(super) trait Reader: Send {
    /// Appends at most `room` kept rows to `out`; `false` at the end of the file.
    fn fill(
        &mut self,
        plan: &Plan,
        progress: &mut Progress,
        room: usize,
        out: &mut Raw,
    ) -> Result<bool>;

    /// Returns the number of kept rows between two places that are worth noting; none where reading
    /// can start only at the first row.
    fn near(&self) -> Option<usize>;

    /// Goes to a place that was noted.
    fn jump(&mut self, plan: &Plan, place: &Place) -> Result<()>;
}

/// Size and time of the last change of every file of a table.
pub(super) type Stamp = Vec<(u64, Option<SystemTime>)>;

impl Plan {
    /// Returns which of the numeric columns holds labels.
    pub fn label_index(&self) -> Option<usize> {
        (self.labels && self.outputs == 1).then_some(self.inputs)
    }

    /// Returns whether NaN takes the place of what is missing in this numeric column.
    pub fn keeps_missing(&self, j: usize) -> bool {
        self.missing == Missing::Keep && (self.inputs..self.inputs + self.outputs).contains(&j)
    }

    /// Returns which of the numeric columns holds weights.
    pub fn weight_index(&self) -> Option<usize> {
        self.weight.then_some(self.inputs + self.outputs)
    }

    /// Returns which of the numeric columns hold standard deviations of inputs.
    fn deviation_indices(&self) -> std::ops::Range<usize> {
        self.inputs - self.deviations.len()..self.inputs
    }

    /// Refuses weights and standard deviations that are none; `from`: the first row of `raw` to look at.
    fn check_signs(&self, raw: &Raw, from: usize) -> Result<()> {
        let deviations = self.deviation_indices().map(|j| (j, "standard deviation"));
        for (j, what) in self.weight_index().map(|j| (j, "weight")).into_iter().chain(deviations) {
            if let Some(i) = (from..raw.rows.len()).find(|&i| raw.numbers[j][i] < 0.0) {
                return Err(self.cell_error(
                    raw.rows[i],
                    &self.numbers[j].name,
                    format!(
                        "the {what} `{}` is negative; a {what} must be 0 or more",
                        raw.numbers[j][i]
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Puts points of the sphere in the place of latitude, latitude and longitude; `from`: the first row of `raw` to look at.
    fn to_points(&self, raw: &mut Raw, from: usize) -> Result<()> {
        for first in places_of(&self.columns) {
            for i in from..raw.rows.len() {
                let fail =
                    |j: usize, reason| self.cell_error(raw.rows[i], &self.numbers[j].name, reason);
                let (latitude, longitude) = (raw.numbers[first][i], raw.numbers[first + 2][i]);
                check_latitude(latitude).map_err(|reason| fail(first, reason))?;
                check_longitude(longitude).map_err(|reason| fail(first + 2, reason))?;
                for (q, value) in place_point(latitude, longitude).into_iter().enumerate() {
                    raw.numbers[first + q][i] = value;
                }
            }
        }
        Ok(())
    }

    /// Returns whether the mask (if any) keeps this row.
    pub fn keeps(&self, row: usize) -> Result<bool> {
        let Some((mask, flag)) = &self.keep else { return Ok(true) };
        match mask.get(row + self.first_row) {
            Some(found) => Ok(found == *flag),
            None => Err(self.file_error(format!(
                "has more rows than the {} of the mask {}; a mask needs a row for each data row",
                mask.rows(),
                mask.name()
            ))),
        }
    }

    /// Returns the size of the file in bytes, or of all of several.
    pub fn bytes(&self) -> Result<u64> {
        Ok(self.stamp()?.iter().map(|(size, _)| size).sum())
    }

    /// Returns size and time of the last change of the file, or of each of several.
    pub fn stamp(&self) -> Result<Stamp> {
        let stamp = |path: &Path| match std::fs::metadata(path) {
            Ok(data) => Ok((data.len(), data.modified().ok())),
            Err(error) => Err(Error::io(path, &error)),
        };
        match &self.format {
            Format::Many(parts) => parts.iter().map(|part| stamp(&part.path)).collect(),
            _ => Ok(vec![stamp(&self.path)?]),
        }
    }

    /// Returns a place before a row of this file.
    pub fn place(&self, row: usize, kept: usize) -> Place {
        Place { byte: 0, row: row + self.first_row, kept, part: self.part, first: self.first_row }
    }

    pub fn file_error(&self, reason: String) -> Error {
        Error::File { path: self.path.clone(), reason }
    }

    /// Says whether a text is one of the categories or classes that a model has for this column.
    pub fn knows(&self, field: &Field, text: &str) -> bool {
        let is_label = self.label_index().is_some_and(|j| self.numbers[j].index == field.index);
        match &field.reading {
            Reading::Category { all, .. } => all.code(text).is_some(),
            _ => is_label && self.classes.as_ref().is_some_and(|all| all.code(text).is_some()),
        }
    }

    /// Returns an error about the cell of this row (from 0).
    pub fn cell_error(&self, row: usize, column: &str, reason: String) -> Error {
        Error::Cell { path: self.path.clone(), row: row + 1, column: column.into(), reason }
    }

    /// Returns the refusal of a missing cell; `what` says how it is missing.
    pub fn missing_error(&self, row: usize, column: &str, what: &str) -> Error {
        let inputs = &self.numbers[..self.inputs - self.deviations.len()];
        let input = inputs.iter().any(|field| field.name == column);
        let remedy = match (input, self.of_model) {
            (false, _) => "",
            (true, false) => {
                ", or `--missing mean` or `--missing indicator` to fill such inputs (`--missing category` fills those of categories \
                 only)"
            }
            (true, true) => {
                "; a model that is fitted with `--missing mean`, `--missing indicator` or `--missing category` fills the columns that \
                 had missing cells then"
            }
        };
        let reason = format!("{what}; pass `--missing drop` to leave such rows out{remedy}");
        self.cell_error(row, column, reason)
    }

    /// Returns how a column of texts is learnt from, where that is still to be decided.
    pub fn as_categories(&self, column: &str) -> Option<String> {
        let targets = &self.numbers[self.inputs..self.inputs + self.outputs];
        match targets.iter().any(|field| field.name == column) {
            _ if self.of_model => None,
            true => Some("`--classes` if the column holds classes".into()),
            false => Some(categorical(column, "the column holds categories")),
        }
    }
}

/// Opens the reader of a format.
pub(super) fn reader(plan: &Plan) -> Result<Box<dyn Reader>> {
    Ok(match &plan.format {
        Format::Csv(dialect) => Box::new(csv::CsvReader::open(plan, *dialect)?),
        Format::Parquet(columns) => parquet::reader(plan, columns)?,
        Format::Many(parts) => Box::new(ManyReader::new(parts.clone())),
    })
}

/// A pass over the file.
pub(super) struct Cursor {
    plan: Arc<Plan>,
    reader: Box<dyn Reader>,
    progress: Progress,
    more: bool,
}

impl Cursor {
    pub fn open(plan: Arc<Plan>) -> Result<Self> {
        let reader = reader(&plan)?;
        let labels = Encoder::new(plan.classes.as_ref());
        let progress = Progress { labels, ..Progress::default() };
        Ok(Self { plan, reader, progress, more: true })
    }

    /// Reads the next `rows` rows that are kept; fewer at the end of the file, none after it.
    pub fn read(&mut self, rows: usize) -> Result<Raw> {
        let mut out = Raw::new(&self.plan, rows);
        self.read_into(&mut out, rows)?;
        Ok(out)
    }

    /// Reads the same, appended to others.
    fn read_into(&mut self, out: &mut Raw, rows: usize) -> Result<()> {
        let before = out.rows.len();
        while self.more && out.rows.len() < before + rows {
            let from = out.rows.len();
            let room = before + rows - from;
            self.more = self.reader.fill(&self.plan, &mut self.progress, room, out)?;
            self.plan.check_signs(out, from)?;
            self.plan.to_points(out, from)?;
        }
        self.progress.kept += out.rows.len() - before;
        if !self.more {
            self.check_end()?;
        }
        Ok(())
    }

    /// Notes from now on where reading could start, if that is possible elsewhere than at the first row.
    pub fn note_places(&mut self) {
        self.progress.places = self.reader.near().map(Places::new);
    }

    /// Reads the kept rows of these pieces, in this order; fewer where the file has changed.
    pub fn read_pieces<'a>(&mut self, pieces: impl Iterator<Item = &'a Piece>) -> Result<Raw> {
        let mut out = Raw::new(&self.plan, 0);
        for piece in pieces {
            let Piece { from, skip, take } = piece;
            // pieces that follow one another are read as one
            if self.progress.kept != from.kept + skip {
                self.reader.jump(&self.plan, from)?;
                (self.progress.read, self.progress.kept, self.more) = (from.row, from.kept, true);
                if *skip > 0 {
                    self.read(*skip)?;
                }
            }
            self.read_into(&mut out, *take)?;
        }
        Ok(out)
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Returns the places that were noted.
    pub fn into_places(self) -> Option<Places> {
        self.progress.places
    }

    fn check_end(&self) -> Result<()> {
        let Progress { read, kept, dropped, .. } = self.progress;
        let fail = |reason: String| Err(self.plan.file_error(reason));
        if read == 0 {
            return fail("has a header but no rows; there is nothing to read".into());
        }
        if let Some((mask, flag)) = &self.plan.keep {
            if mask.rows() != read {
                return fail(format!(
                    "has {read} rows but the mask {} has {}; a mask needs a row for each data row",
                    mask.name(),
                    mask.rows()
                ));
            }
            if mask.count(*flag) == 0 {
                return fail(format!("the mask {} keeps none of the {read} rows", mask.name()));
            }
        }
        if kept == 0 {
            let columns = self.progress.tally.columns();
            return Err(Error::NoRows { path: self.plan.path.clone(), dropped, columns });
        }
        Ok(())
    }
}

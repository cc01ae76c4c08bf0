//! Several files as one table: a folder, or a pattern such as `rows/*.parquet`.

use super::columns::column;
use super::cursor::{Field, Format, Plan, Progress, Raw, Reader, reader};
use super::dates::no_date;
use super::inputs::Reading;
use super::places::Place;
use super::table::Table;
use crate::data::options::ReadOptions;
use crate::error::{Error, Result};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// A file of several.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub path: PathBuf,
    pub format: Format,
    /// Number of columns in this file.
    width: usize,
    /// For every column of the table its place in this file, or the value that the names of folders give it.
    columns: Vec<Source>,
}

#[derive(Clone, Debug)]
enum Source {
    Place(usize),
    Value(String),
}

impl Part {
    /// Returns the place of a column in this file; none where a folder's name gives its value.
    pub fn place(&self, column: usize) -> Option<usize> {
        match self.columns[column] {
            Source::Place(place) => Some(place),
            Source::Value(_) => None,
        }
    }

    /// Returns the value that a folder's name gives a column.
    pub fn value(&self, column: usize) -> Option<&str> {
        match &self.columns[column] {
            Source::Place(_) => None,
            Source::Value(value) => Some(value),
        }
    }
}

/// Returns files that a path stands for, with the folder that their names begin with; none where it
/// is a file itself.
pub(super) fn files(path: &Path) -> Result<Option<(PathBuf, Vec<PathBuf>)>> {
    let fail = |reason: String| Err(Error::File { path: path.into(), reason });
    let is_pattern = |part: &str| part.contains(['*', '?', '[']);
    let text = path.to_string_lossy();
    let (root, mut found) = if path.is_dir() {
        (path.to_owned(), walk(path)?)
    } else if !path.exists() && is_pattern(&text) {
        let Ok(matches) = glob::glob(&text) else {
            return fail(
                "is not a pattern of file names: `*`, `?` and `[abc]` stand for parts of names"
                    .into(),
            );
        };
        let mut found = Vec::new();
        for one in matches.flatten() {
            if one.is_dir() {
                found.extend(walk(&one)?);
            } else {
                found.push(one);
            }
        }
        let fixed = |part: &Component<'_>| !is_pattern(&part.as_os_str().to_string_lossy());
        (path.components().take_while(fixed).collect(), found)
    } else {
        return Ok(None);
    };
    if found.is_empty() {
        return fail("no table is there: a folder or pattern stands for its files `.csv`, `.tsv` (either with `.gz`) and `.parquet`".into());
    }
    found.sort();
    Ok(Some((root, found)))
}

/// Returns tables in a folder and the folders in it, but for hidden ones and those that begin with
/// `_`.
fn walk(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(folder).map_err(|error| Error::io(folder, &error))?;
    for entry in entries {
        let path = entry.map_err(|error| Error::io(folder, &error))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        if name.starts_with(['.', '_']) {
            continue;
        }
        let plain = name.strip_suffix(".gz").unwrap_or(&name);
        if path.is_dir() {
            found.extend(walk(&path)?);
        } else if plain.ends_with(".csv") || plain.ends_with(".tsv") || name.ends_with(".parquet") {
            found.push(path);
        }
    }
    Ok(found)
}

/// Returns the names and values that the folders of a file give its rows: `year=2024/`.
fn partition(root: &Path, file: &Path) -> Vec<(String, String)> {
    let below = file.parent().map(|folder| folder.strip_prefix(root).unwrap_or(folder));
    let parts = below.into_iter().flat_map(Path::components);
    parts
        .filter_map(|part| {
            let (name, value) = part.as_os_str().to_str()?.split_once('=')?;
            let value = if value == "__HIVE_DEFAULT_PARTITION__" { "" } else { value };
            Some((name.to_owned(), value.to_owned()))
        })
        .collect()
}

/// Opens several files as one table: the columns of the first, in any order, and those that folders name.
pub(super) fn open(
    path: &Path,
    root: &Path,
    files: &[PathBuf],
    options: &ReadOptions,
) -> Result<Table> {
    let mut columns: Vec<String> = Vec::new();
    let (mut own, mut parts) = (0, Vec::with_capacity(files.len()));
    let mut rows = Some(0);
    for file in files {
        let table = Table::open_file(file, options)?;
        let given = partition(root, file);
        if parts.is_empty() {
            own = table.columns.len();
            columns = table.columns.clone();
            let more = given.iter().map(|(name, _)| name.clone());
            columns.extend(more.filter(|name| !table.columns.contains(name)));
        }
        let first = files[0].display();
        let stray = table.columns.iter().chain(given.iter().map(|(name, _)| name));
        if let Some(stray) = stray.into_iter().find(|name| !columns.contains(name)) {
            let reason = format!("is not in {first}; the files of one table have the same columns");
            return Err(column(file, stray, reason));
        }
        let source = |(i, name): (usize, &String)| {
            let same = table.columns.get(i) == Some(name);
            let place =
                if same { Some(i) } else { table.columns.iter().position(|own| own == name) };
            let value =
                || given.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone());
            match place
                .filter(|_| i < own)
                .map(Source::Place)
                .or_else(|| value().map(Source::Value))
            {
                Some(source) => Ok(source),
                None => {
                    let reason = format!(
                        "is in {first} and not in this file; the files of one table have the same columns"
                    );
                    Err(column(file, name, reason))
                }
            }
        };
        let sources = columns.iter().enumerate().map(source).collect::<Result<_>>()?;
        rows = rows.zip(table.rows()).map(|(sum, rows)| sum + rows);
        parts.push(Part {
            path: file.clone(),
            width: table.columns.len(),
            format: table.format,
            columns: sources,
        });
    }
    Ok(Table {
        path: path.into(),
        format: Format::Many(Arc::new(parts)),
        columns,
        rows,
        options: Arc::new(options.clone()),
    })
}

/// One pass over several files.
pub(super) struct ManyReader {
    parts: Arc<Vec<Part>>,
    /// The file that is read, and how; none before it is opened.
    current: usize,
    open: Option<Open>,
}

struct Open {
    plan: Plan,
    reader: Box<dyn Reader>,
    /// What stands in the place of columns that are not in the file: of the numbers, and of the texts.
    numbers: Vec<Option<f64>>,
    texts: Vec<Option<String>>,
}

impl ManyReader {
    pub fn new(parts: Arc<Vec<Part>>) -> Self {
        Self { parts, current: 0, open: None }
    }

    /// Opens a file whose first row is this one of the table.
    fn open(&mut self, plan: &Plan, index: usize, first_row: usize) -> Result<()> {
        let part = &self.parts[index];
        let field =
            |field: &Field| part.place(field.index).map(|index| Field { index, ..field.clone() });
        let own = Plan {
            path: part.path.clone(),
            format: part.format.clone(),
            width: part.width,
            numbers: plan.numbers.iter().filter_map(field).collect(),
            inputs: plan.numbers[..plan.inputs].iter().filter_map(field).count(),
            texts: plan.texts.iter().filter_map(field).collect(),
            first_row,
            part: index,
            ..plan.clone()
        };
        let constant = |(j, field): (usize, &Field)| {
            let Some(value) = part.value(field.index) else { return Ok(None) };
            let fail = |reason: String| Err(column(&part.path, &field.name, reason));
            if j >= plan.inputs {
                return fail("comes from the names of folders, and only an input can".into());
            }
            let read = match &field.reading {
                Reading::Category { .. } => {
                    field.reading.find(value).map(|code| field.reading.of_code(code))
                }
                own if own.is_date() => {
                    let days = plan.options.date(&field.name, value).ok_or_else(|| no_date(value));
                    days.map(|days| own.of_date(days))
                }
                own => {
                    let number = plan.options.number(value).filter(|value| value.is_finite());
                    number.map(|value| own.of_number(value)).ok_or_else(|| {
                        let remedy =
                            plan.as_categories(&field.name).map(|own| format!("; or pass {own}"));
                        format!(
                            "is `{value}` by the name of a folder, and a number is needed{}",
                            remedy.unwrap_or_default()
                        )
                    })
                }
            };
            read.map(Some).or_else(fail)
        };
        let numbers = plan.numbers.iter().enumerate().map(constant).collect::<Result<_>>()?;
        let text = |field: &Field| part.value(field.index).map(str::to_owned);
        let texts = plan.texts.iter().map(text).collect();
        let reader = reader(&own)?;
        self.current = index;
        self.open = Some(Open { plan: own, reader, numbers, texts });
        Ok(())
    }
}

impl Reader for ManyReader {
    fn fill(
        &mut self,
        plan: &Plan,
        progress: &mut Progress,
        room: usize,
        out: &mut Raw,
    ) -> Result<bool> {
        if self.open.is_none() {
            self.open(plan, self.current, progress.read)?;
        }
        let Some(Open { plan: own, reader, numbers, texts }) = &mut self.open else {
            return Ok(false);
        };
        let mut local = std::mem::take(progress);
        let kept = local.kept;
        local.kept += out.rows.len();
        local.read -= own.first_row;
        let mut raw = Raw::new(own, 0);
        let more = reader.fill(own, &mut local, room, &mut raw);
        local.kept = kept;
        local.read += own.first_row;
        *progress = local;
        let more = more?;
        let rows = raw.rows.len();
        let mut columns = raw.numbers.into_iter();
        for (value, out) in numbers.iter().zip(&mut out.numbers) {
            match value {
                Some(value) => out.extend(std::iter::repeat_n(*value, rows)),
                None => out.extend(columns.next().unwrap_or_default()),
            }
        }
        let mut columns = raw.texts.into_iter();
        for (value, out) in texts.iter().zip(&mut out.texts) {
            match value {
                Some(value) => out.extend(std::iter::repeat_n(value.clone(), rows)),
                None => out.extend(columns.next().unwrap_or_default()),
            }
        }
        out.rows.extend(raw.rows.into_iter().map(|row| row + own.first_row));
        if !more {
            self.open = None;
            self.current += 1;
        }
        Ok(more || self.current < self.parts.len())
    }

    fn near(&self) -> Option<usize> {
        let gzip = |part: &Part| matches!(&part.format, Format::Csv(dialect) if dialect.in_order());
        let parquet = |part: &Part| matches!(part.format, Format::Parquet(_));
        if self.parts.iter().any(gzip) {
            return None;
        }
        let near =
            if self.parts.iter().any(parquet) { super::parquet::NEAR } else { super::csv::NEAR };
        Some(near)
    }

    fn jump(&mut self, plan: &Plan, place: &Place) -> Result<()> {
        if self.open.is_none() || self.current != place.part {
            self.open(plan, place.part, place.first)?;
        }
        match &mut self.open {
            Some(Open { plan, reader, .. }) => reader.jump(plan, place),
            None => Ok(()),
        }
    }
}

//! From a file to a fitted model.

use crate::arrays::owned;
use crate::errors::read_json;
use crate::fit::{MissingCells, likelihood, purpose, reply, scaling, yes};
use crate::fitted::Fitted;
use crate::training::Options;
use crate::watch::watched;
use numpy::PyReadonlyArray2;
use pyo3::prelude::*;
use serde::Deserialize;
use sparsegp::Error;
use sparsegp::data::{Classes, Holiday, Holidays, Mask, ReadOptions, Selected, Selection, Table};
use sparsegp::fit::{Dataset, Scaling, encoded};
use sparsegp::inducing::select::Selection as Chosen;
use std::sync::Arc;

fn point() -> char {
    '.'
}

/// Which columns of a file, and how they are read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileColumns {
    targets: Vec<String>,
    #[serde(default)]
    inputs: Option<Vec<String>>,
    #[serde(default)]
    ignore: Vec<String>,
    #[serde(default)]
    weight: Option<String>,
    #[serde(default)]
    extra: Option<String>,
    /// Inputs with the columns of their standard deviations.
    #[serde(default)]
    input_sd: Vec<(String, String)>,
    #[serde(default)]
    labels: bool,
    /// Whether the file is read again and again; by default where it is large.
    #[serde(default)]
    stream: Option<bool>,
    /// What becomes of missing cells.
    #[serde(default)]
    missing: MissingCells,
    #[serde(default = "yes")]
    standardise: bool,
    /// Input columns that hold categories, whatever they look like.
    #[serde(default)]
    categorical: Vec<String>,
    /// The part of the rows that training is watched by.
    #[serde(default)]
    aside: Option<f64>,
    /// Levels of an ordered target, lowest first.
    #[serde(default)]
    levels: Vec<String>,
    #[serde(default = "point")]
    decimal: char,
    #[serde(default)]
    thousands: Option<char>,
    #[serde(default)]
    missing_words: Vec<String>,
    kept_words: Vec<String>,
    #[serde(default)]
    date_formats: Vec<String>,
    #[serde(default)]
    holidays: Option<Vec<Holiday>>,
    /// Columns of latitudes and longitudes.
    #[serde(default)]
    places: Vec<(String, String)>,
    #[serde(default)]
    encoding: Option<String>,
}

impl FileColumns {
    fn selection(&self) -> Selection {
        let mut selection = Selection::targets(&self.targets).ignore(&self.ignore);
        if let Some(inputs) = &self.inputs {
            selection = selection.inputs(inputs);
        }
        if let Some(weight) = &self.weight {
            selection = selection.weight(weight);
        }
        if let Some(extra) = &self.extra {
            selection = selection.extra(extra);
        }
        if !self.input_sd.is_empty() {
            selection = selection.deviations(self.input_sd.iter().cloned());
        }
        if self.labels { selection.categorical() } else { selection }
    }

    fn reading(&self) -> ReadOptions {
        ReadOptions {
            decimal: self.decimal,
            thousands: self.thousands,
            missing_words: self.missing_words.clone(),
            kept_words: self.kept_words.clone(),
            date_formats: self.date_formats.clone(),
            encoding: self.encoding.clone(),
        }
    }
}

/// Sets a part of the rows aside, for the training to be watched by.
fn set_aside(
    all: Selected,
    fraction: Option<f64>,
    seed: u64,
) -> sparsegp::Result<(Selected, Option<Selected>)> {
    let Some(fraction) = fraction else { return Ok((all, None)) };
    let rows = all.count_rows()?;
    let mask = Mask::random(rows, fraction, seed)?;
    let count = mask.indices(true).len();
    if count < 2 {
        return Err(Error::Invalid(format!(
            "early_stopping = {fraction} keeps {count} of {rows} rows aside; at least two are needed"
        )));
    }
    let mask = Arc::new(mask);
    Ok((all.clone().rows_where(mask.clone(), false), Some(all.rows_where(mask, true))))
}

/// Fits a model to a CSV or Parquet file; with `stream` in bounded memory.
#[pyfunction]
#[pyo3(signature = (path, options, columns, *, points=None, callback=None))]
#[allow(clippy::type_complexity)]
pub fn fit_table(
    py: Python<'_>,
    path: &str,
    options: &str,
    columns: &str,
    points: Option<PyReadonlyArray2<'_, f64>>,
    callback: Option<Bound<'_, PyAny>>,
) -> PyResult<(Option<Fitted>, Option<Py<PyAny>>)> {
    let options: Options = read_json(options)?;
    let columns: FileColumns = read_json(columns)?;
    let (selection, written) = (columns.selection(), columns.reading());
    let by_points = points.is_some();
    let mut fit_options = options.fit_options(points.as_ref().map(owned))?;
    let outcome = watched(py, callback.as_ref(), |engine, observer| {
        let table = Table::open_with(path, &written)?;
        let stream = match columns.stream {
            Some(stream) => stream,
            None => table.bytes()? > 1 << 30,
        };
        let mut selection = encoded(&table, &selection, options.kernel(), &columns.categorical)?;
        if let Some(holidays) = columns.holidays.clone() {
            selection = table.with_holidays(selection, &Holidays::new(holidays)?)?;
        }
        selection = table.with_places(selection, &columns.places)?;
        if let Some(how) = columns.missing.fill() {
            selection = table.filled(&selection, how)?.0;
        }
        let mut all = table.select(&selection)?.missing(columns.missing.of_rows());
        if !columns.levels.is_empty() {
            all = all.classes(Classes::levels(&columns.levels)?);
        }
        let (learnt, aside) = set_aside(all, columns.aside, fit_options.seed)?;
        let mut dataset = if stream {
            let table = learnt.stream()?;
            let own = likelihood(&options, table.classes())?;
            Dataset::from_table(table, scaling(&options, &*own, columns.standardise, false))?
        } else {
            let data = learnt.read_all()?;
            let own = likelihood(&options, data.classes.as_ref())?;
            let purpose = purpose(&options, &*own, by_points);
            Dataset::for_purpose(
                data,
                scaling(&options, &*own, columns.standardise, false),
                purpose,
            )?
        };
        if let Some(aside) = aside {
            let aside = match &dataset.classes {
                Some(classes) => aside.classes(classes.clone()),
                None => aside,
            };
            let scaling = Scaling::Given(dataset.scaler.clone());
            let read = || match stream {
                true => Dataset::from_table(aside.stream()?, scaling),
                false => Dataset::from_loaded(aside.read_all()?, scaling),
            };
            dataset.held_out = Some(read()?.source);
        }
        if fit_options.relative_weights {
            dataset.make_weights_relative()?;
        }
        if let Chosen::Given(points) = &mut fit_options.selection {
            dataset.scaler.scale_points(points.as_mut())?;
        }
        let mut fitted = sparsegp::fit::fit(&dataset, &fit_options, engine, observer)?;
        fitted.remember_reading(&written);
        Ok(fitted)
    })?;
    Ok(reply(py, outcome))
}

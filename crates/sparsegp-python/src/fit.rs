//! From arrays to a fitted model.

use crate::arrays::{owned, vector};
use crate::errors::{exception, read_json};
use crate::fitted::Fitted;
use crate::training::Options;
use crate::watch::{Outcome, watched};
use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Deserialize;
use sparsegp::Error;
use sparsegp::data::{
    Classes, EncodeOptions, Encoding, Fill, Holiday, Holidays, InMemory, InputColumn, Loaded,
    Missing, Sample, Scaler,
};
use sparsegp::fit::{Dataset, Purpose, Scaling, Standardise, UpdateOptions};
use sparsegp::kernels::label_columns;
use sparsegp::likelihoods::Likelihood;
use sparsegp::linalg::Mat;

/// Columns of arrays, and what they mean.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Columns {
    inputs: Vec<String>,
    /// The columns of a frame that the inputs come from; empty where each is a column of numbers.
    #[serde(default)]
    columns: Vec<InputColumn>,
    targets: Vec<String>,
    #[serde(default)]
    weight: Option<String>,
    #[serde(default)]
    extra: Option<String>,
    /// The labels whose codes the targets are.
    #[serde(default)]
    classes: Option<Vec<String>>,
    #[serde(default = "yes")]
    standardise: bool,
    /// Whether these are the first rows of more.
    #[serde(default)]
    part: bool,
}

impl Columns {
    /// Returns whether columns are standardised.
    pub fn standardise(&self) -> bool {
        self.standardise
    }
}

/// Returns what is done unless it is declined.
pub fn yes() -> bool {
    true
}

/// Returns the labels as a model keeps them, so that the command line finds them in files: in one
/// way of writing, unless that would make two of them one.
fn classes(labels: Vec<String>) -> sparsegp::Result<Classes> {
    let mut canonical = Vec::with_capacity(labels.len());
    for label in &labels {
        let other = if label == "\u{0}" { "\u{1}" } else { "\u{0}" };
        let both = Classes::new([label.as_str(), other])?;
        let own = both.labels().iter().find(|l| *l != other);
        canonical.push(own.cloned().unwrap_or_else(|| label.clone()));
    }
    Classes::try_from(canonical).or_else(|_| Classes::try_from(labels))
}

/// Returns a table of these columns without rows.
pub fn head(columns: Columns) -> sparsegp::Result<Loaded> {
    Ok(Loaded {
        columns: columns.columns,
        weight_name: columns.weight,
        extra_name: columns.extra,
        classes: columns.classes.map(classes).transpose()?,
        ..Loaded::head(columns.inputs, columns.targets)
    })
}

/// Returns the likelihood that is asked for.
pub fn likelihood(
    options: &Options,
    classes: Option<&Classes>,
) -> sparsegp::Result<Box<dyn Likelihood>> {
    sparsegp::fit::likelihood(options.likelihood(), classes.map(Classes::count))
}

/// Returns which columns are standardised under a likelihood.
pub fn scaling(
    options: &Options,
    likelihood: &dyn Likelihood,
    standardise: bool,
    part: bool,
) -> Scaling {
    match standardise {
        true => Standardise { constants: !part, ..Standardise::all_that(likelihood) }
            .for_kernel(options.kernel()),
        false => Scaling::from(false),
    }
}

/// Returns what rows are to be learnt by.
pub fn purpose<'a>(
    options: &'a Options,
    likelihood: &'a dyn Likelihood,
    points: bool,
) -> Purpose<'a> {
    let inducing = points || options.asks_for_inducing();
    Purpose { method: options.method(), likelihood, inducing }
}

type Array1<'py> = PyReadonlyArray1<'py, f64>;
type Array2<'py> = PyReadonlyArray2<'py, f64>;

/// Returns times after the last of a series.
#[pyfunction]
pub fn future<'py>(
    times: Array1<'py>,
    dates: bool,
    horizon: &str,
    step: Option<&str>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let py = times.py();
    let known: Vec<f64> = times.as_array().to_vec();
    let found = sparsegp::data::future(&known, dates, horizon, step).map_err(exception)?;
    Ok(PyArray1::from_vec(py, found))
}

/// What becomes of missing cells, by the word for it.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged)]
pub enum MissingCells {
    Rows(Missing),
    Inputs(Fill),
}

impl Default for MissingCells {
    fn default() -> Self {
        Self::Rows(Missing::default())
    }
}

impl MissingCells {
    /// Returns how missing inputs are filled, if they are.
    pub fn fill(self) -> Option<Fill> {
        match self {
            Self::Rows(_) => None,
            Self::Inputs(how) => Some(how),
        }
    }

    /// Returns what becomes of rows in which something else is missing.
    pub fn of_rows(self) -> Missing {
        match self {
            Self::Rows(missing) => missing,
            Self::Inputs(how) => how.of_rows(),
        }
    }
}

/// Returns what columns of texts in a frame become: their encodings as JSON, and the numbers of
/// every row.
#[pyfunction]
#[pyo3(signature = (names, texts, categorical, kernel, holidays=None, fill=None))]
pub fn encode(
    names: Vec<String>,
    texts: Vec<(String, Vec<String>)>,
    categorical: Vec<String>,
    kernel: &str,
    holidays: Option<&str>,
    fill: Option<&str>,
) -> PyResult<(String, Vec<Vec<Vec<f64>>>)> {
    let invalid = |text: String| PyValueError::new_err(text);
    let labels = label_columns(kernel, &names);
    let codes = labels.into_iter().map(|index| names[index].clone()).collect();
    let options = EncodeOptions { categorical, codes };
    let holidays = match holidays {
        Some(text) => Some(Holidays::new(read_json::<Vec<Holiday>>(text)?).map_err(exception)?),
        None => None,
    };
    let fill: Option<Fill> = fill.map(|own| read_json(&format!("\"{own}\""))).transpose()?;
    let (mut columns, mut numbers) = (Vec::new(), Vec::new());
    for (name, cells) in &texts {
        let mut column = InputColumn::of_texts(name, cells, &options)
            .map_err(|error| invalid(error.to_string()))?;
        if let (Some(holidays), Encoding::Date) = (&holidays, &column.encoding) {
            column.encoding = Encoding::Calendar(holidays.clone());
        }
        if let Some(how) = fill {
            column = column.filled(cells, how).map_err(|error| invalid(error.to_string()))?;
        }
        let rows = cells.iter().enumerate().map(|(row, cell)| {
            let refuse = |reason| invalid(format!("row {row}, column `{name}`: {reason}"));
            column.numbers(cell).map_err(refuse)
        });
        numbers.push(rows.collect::<PyResult<_>>()?);
        columns.push(column);
    }
    let columns = serde_json::to_string(&columns).map_err(|error| invalid(error.to_string()))?;
    Ok((columns, numbers))
}

/// Places of inputs with the names of the columns of their standard deviations, and these, N×U.
type Deviations<'py> = (Vec<(usize, String)>, Array2<'py>);

/// Returns inputs by name, with the columns of their standard deviations.
pub fn named(pairs: &[(usize, String)], inputs: &[String]) -> PyResult<Vec<(String, String)>> {
    let one = |(place, name): &(usize, String)| match inputs.get(*place) {
        Some(input) => Ok((input.clone(), name.clone())),
        None => Err(PyValueError::new_err(format!("there is no input {place}"))),
    };
    pairs.iter().map(one).collect()
}

/// Returns rows in memory as the library loads them from files.
fn loaded(
    x: &Array2<'_>,
    y: &Array2<'_>,
    weights: Option<&Array1<'_>>,
    extra: Option<&Array1<'_>>,
    columns: Columns,
    deviations: Option<&Deviations<'_>>,
) -> PyResult<Loaded> {
    let (mut x, y) = (owned(x), owned(y));
    let rows = x.nrows();
    if y.nrows() != rows {
        return Err(exception(Error::Shape {
            what: "targets".into(),
            expected: format!("{rows} rows, as many as the inputs have"),
            found: format!("{} rows", y.nrows()),
        }));
    }
    let mut head = head(columns).map_err(exception)?;
    if let Some((pairs, values)) = deviations {
        let (d, values) = (x.ncols(), owned(values));
        x = Mat::from_fn(rows, d + values.ncols(), |i, j| {
            if j < d { x[(i, j)] } else { values[(i, j - d)] }
        });
        head.deviations = named(pairs, &head.input_names)?;
        let names: Vec<_> = pairs.iter().map(|(_, name)| name.clone()).collect();
        if !head.columns.is_empty() {
            head.columns.extend(names.iter().map(InputColumn::number));
        }
        head.input_names.extend(names);
    }
    Ok(Loaded {
        weights: vector(weights),
        extra: vector(extra),
        weight_name: weights.map(|_| head.weight_name.unwrap_or_else(|| "weight".into())),
        extra_name: extra.map(|_| head.extra_name.unwrap_or_else(|| "extra".into())),
        rows: (0..rows).collect(),
        x,
        y,
        ..head
    })
}

/// Returns what the interpreter gets of an outcome.
pub fn reply(
    py: Python<'_>,
    outcome: Outcome<sparsegp::fit::Fitted>,
) -> (Option<Fitted>, Option<Py<PyAny>>) {
    let exception = outcome.exception.map(|e| e.into_value(py).into_any());
    (outcome.result.map(Fitted::new), exception)
}

/// Fits a model to arrays. `options` and `columns` are JSON. Returns the model, if there is one, and the
/// exception that ended the training, if any: after an interruption there are both.
#[pyfunction]
#[pyo3(signature = (x, y, options, columns, *, weights=None, extra=None, points=None, held_out=None, deviations=None, callback=None))]
#[allow(clippy::too_many_arguments, clippy::type_complexity)] // the interpreter's calling convention
pub fn fit(
    py: Python<'_>,
    x: Array2<'_>,
    y: Array2<'_>,
    options: &str,
    columns: &str,
    weights: Option<Array1<'_>>,
    extra: Option<Array1<'_>>,
    points: Option<Array2<'_>>,
    held_out: Option<(Array2<'_>, Array2<'_>, Option<Array1<'_>>, Option<Array1<'_>>)>,
    deviations: Option<Deviations<'_>>,
    callback: Option<Bound<'_, PyAny>>,
) -> PyResult<(Option<Fitted>, Option<Py<PyAny>>)> {
    let options: Options = read_json(options)?;
    let columns: Columns = read_json(columns)?;
    let (standardise, part) = (columns.standardise, columns.part);
    let (weights, extra) = (weights.as_ref(), extra.as_ref());
    let data = loaded(&x, &y, weights, extra, columns, deviations.as_ref())?;
    let likelihood = likelihood(&options, data.classes.as_ref()).map_err(exception)?;
    let scaling = scaling(&options, &*likelihood, standardise, part);
    let purpose = purpose(&options, &*likelihood, points.is_some());
    let mut dataset = Dataset::for_purpose(data, scaling, purpose).map_err(exception)?;
    if let Some((x, y, weights, extra)) = &held_out {
        let mut aside = InMemory::new(owned(x), owned(y)).map_err(exception)?;
        aside.weights = vector(weights.as_ref());
        aside.extra = vector(extra.as_ref());
        dataset.scaler.scale_x(aside.x.as_mut()).map_err(exception)?;
        dataset.scaler.scale_y(aside.y.as_mut()).map_err(exception)?;
        dataset.scaler.scale_extra(&mut aside.extra);
        dataset.held_out = Some(Box::new(aside));
    }
    let points = points.as_ref().map(|z| scaled(owned(z), &dataset.scaler)).transpose()?;
    let options = options.fit_options(points)?;
    if options.relative_weights {
        dataset.make_weights_relative().map_err(exception)?;
    }
    let outcome = watched(py, callback.as_ref(), |engine, observer| {
        sparsegp::fit::fit(&dataset, &options, engine, observer)
    })?;
    Ok(reply(py, outcome))
}

/// Returns the inducing points on the model's scale.
pub fn scaled(mut points: Mat<f64>, scaler: &Scaler) -> PyResult<Mat<f64>> {
    scaler.scale_points(points.as_mut()).map_err(exception)?;
    Ok(points)
}

/// Returns rows for a model that is there: its columns and scales.
pub fn known(
    fitted: &sparsegp::fit::Fitted,
    x: &Array2<'_>,
    y: &Array2<'_>,
    weights: Option<&Array1<'_>>,
    extra: Option<&Array1<'_>>,
) -> PyResult<Dataset> {
    let columns = Columns {
        inputs: fitted.input_names.clone(),
        columns: fitted.columns.clone(),
        targets: fitted.target_names.clone(),
        weight: fitted.weight_name.clone(),
        extra: fitted.extra_name.clone(),
        classes: None,
        standardise: true,
        part: false,
    };
    let mut data = loaded(x, y, weights, extra, columns, None)?;
    data.classes.clone_from(&fitted.classes);
    Dataset::from_loaded(data, Scaling::Given(fitted.scaler.clone())).map_err(exception)
}

/// Trains a model further on new rows, which stand for `population` rows in all.
#[pyfunction]
#[pyo3(signature = (fitted, x, y, options, *, population, weights=None, extra=None, callback=None))]
#[allow(clippy::too_many_arguments, clippy::type_complexity)]
pub fn go_on(
    py: Python<'_>,
    fitted: &Fitted,
    x: Array2<'_>,
    y: Array2<'_>,
    options: &str,
    population: usize,
    weights: Option<Array1<'_>>,
    extra: Option<Array1<'_>>,
    callback: Option<Bound<'_, PyAny>>,
) -> PyResult<(Option<Fitted>, Option<Py<PyAny>>)> {
    let options: Options = read_json(options)?;
    let own = (*fitted.inner).clone();
    let mut dataset = known(&own, &x, &y, weights.as_ref(), extra.as_ref())?;
    let rows = dataset.source;
    let population = population.max(rows.rows());
    let options = options.part_options(rows.rows(), population)?;
    dataset.source = Box::new(Sample { population, rows });
    let annotations = own.annotations.clone();
    let outcome = watched(py, callback.as_ref(), |engine, observer| {
        let mut fitted = sparsegp::fit::go_on(own, &dataset, &options, engine, observer)?;
        fitted.annotations = annotations;
        Ok(fitted)
    })?;
    Ok(reply(py, outcome))
}

/// Takes up new rows without the old ones. Returns the model, what was done as JSON, and what ended it, if something did.
#[pyfunction]
#[pyo3(signature = (fitted, x, y, *, correlation, most_points, forget, train, train_points, keep_rows, weights=None, extra=None))]
#[allow(clippy::too_many_arguments, clippy::type_complexity)]
pub fn update(
    py: Python<'_>,
    fitted: &Fitted,
    x: Array2<'_>,
    y: Array2<'_>,
    correlation: f64,
    most_points: Option<usize>,
    forget: f64,
    train: usize,
    train_points: bool,
    keep_rows: Option<usize>,
    weights: Option<Array1<'_>>,
    extra: Option<Array1<'_>>,
) -> PyResult<(Option<Fitted>, String, Option<Py<PyAny>>)> {
    let own = fitted.inner.clone();
    let dataset = known(&own, &x, &y, weights.as_ref(), extra.as_ref())?;
    let options = UpdateOptions {
        correlation,
        most_points,
        forget,
        train,
        train_points,
        keep_rows,
        ..UpdateOptions::default()
    };
    let mut text = String::new();
    let outcome = watched(py, None, |_, observer| {
        let mut watch = |_: usize, _: usize| match observer.interrupted() {
            true => Err(sparsegp::Error::Interrupted),
            false => Ok(()),
        };
        let (updated, report) = sparsegp::fit::update(&own, &dataset, &options, &mut watch)?;
        text = serde_json::json!({
            "rows": report.rows,
            "points": report.points,
            "added_points": report.added,
            "uncovered": report.uncovered,
            "left": report.left,
            "bound": report.bound,
        })
        .to_string();
        Ok(updated)
    })?;
    let (updated, error) = reply(py, outcome);
    Ok((updated, text, error))
}

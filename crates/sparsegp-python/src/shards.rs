//! Rows in other processes: what a process with some of them does, and the fit that asks them.

use crate::arrays::{array, matrix, owned, vector};
use crate::columns;
use crate::errors::{exception, read_json};
use crate::fit::{Columns, head, likelihood, reply, scaled, scaling};
use crate::fitted::Fitted;
use crate::pool::unlocked;
use crate::training::Options;
use crate::watch::{Question, answered};
use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sparsegp::Error;
use sparsegp::data::{InMemory, InputColumn, Scaler, Source, Statistics, shards};
use sparsegp::engine::{Cpu, Remote};
use sparsegp::fit::Dataset;
use sparsegp::shards::Shard as Rows;
use std::sync::OnceLock;

/// What answers requests in this process.
static CPU: OnceLock<Cpu> = OnceLock::new();

type Array1<'py> = PyReadonlyArray1<'py, f64>;
type Array2<'py> = PyReadonlyArray2<'py, f64>;
/// Inputs, targets, weights, further numbers, the index of the partition and of its first row.
type Parts<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Vec<f64>, Vec<f64>, usize, usize);

/// Rows of one partition.
#[pyclass(frozen, module = "sparsegp._core")]
pub struct Shard(Rows);

fn bytes<'py>(py: Python<'py>, statistics: &Statistics) -> PyResult<Bound<'py, PyBytes>> {
    Ok(PyBytes::new(py, &statistics.to_bytes().map_err(exception)?))
}

fn read(statistics: &[u8]) -> PyResult<Statistics> {
    Statistics::from_bytes(statistics).map_err(exception)
}

fn read_all(all: &[Vec<u8>]) -> PyResult<Vec<Statistics>> {
    all.iter().map(|own| read(own)).collect()
}

fn read_scaler(preparation: &[u8]) -> PyResult<Scaler> {
    let text = std::str::from_utf8(preparation);
    read_json(text.map_err(|e| PyValueError::new_err(e.to_string()))?)
}

#[pymethods]
impl Shard {
    #[new]
    #[pyo3(signature = (x, y, weights=None, extra=None, index=0, first=0))]
    fn new(
        x: Array2<'_>,
        y: Array2<'_>,
        weights: Option<Array1<'_>>,
        extra: Option<Array1<'_>>,
        index: usize,
        first: usize,
    ) -> PyResult<Self> {
        let mut rows = InMemory::new(owned(&x), owned(&y)).map_err(exception)?;
        rows.weights = vector(weights.as_ref());
        rows.extra = vector(extra.as_ref());
        for (name, own) in [("weights", &rows.weights), ("extra", &rows.extra)] {
            if !own.is_empty() && own.len() != rows.x.nrows() {
                let text = format!("{name} has {} values for {} rows", own.len(), rows.x.nrows());
                return Err(PyValueError::new_err(text));
            }
        }
        Ok(Self(Rows::placed(rows, index, first)))
    }

    fn __len__(&self) -> usize {
        self.0.rows()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Parts<'py>)> {
        let (rows, index, first) = self.0.parts();
        let parts = (
            matrix(py, rows.x.as_ref())?,
            matrix(py, rows.y.as_ref())?,
            rows.weights.clone(),
            rows.extra.clone(),
            index,
            first,
        );
        Ok((py.import("sparsegp._core")?.getattr("_shard")?, parts))
    }

    /// Returns means, spreads and isolated values of the rows, in their own units.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        bytes(py, &unlocked(py, || Ok(self.0.statistics()))?)
    }

    /// Makes the second pass that `gathered` asks for.
    fn bodies<'py>(&self, py: Python<'py>, statistics: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let all = read(statistics)?;
        bytes(py, &unlocked(py, || Ok(self.0.bodies(&all)))?)
    }

    /// Returns the rows as a model sees them.
    fn scaled(
        &self,
        py: Python<'_>,
        preparation: &[u8],
        index: usize,
        first: usize,
    ) -> PyResult<Self> {
        let scaler = read_scaler(preparation)?;
        unlocked(py, || self.0.scaled(&scaler, index, first)).map(Self)
    }

    /// Returns what these rows contribute to a request.
    fn answer<'py>(&self, py: Python<'py>, request: &[u8]) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let cpu = CPU.get_or_init(Cpu::default);
        let sums = unlocked(py, || self.0.answer(request, cpu))?;
        Ok(PyArray1::from_vec(py, sums))
    }

    /// Returns the rows at these places.
    fn take<'py>(
        &self,
        py: Python<'py>,
        places: PyReadonlyArray1<'py, i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // a negative place is beyond the last row too
        let places: Vec<usize> = places.as_array().iter().map(|place| *place as usize).collect();
        let found = self.0.take(&places).map_err(exception)?;
        let each = if places.is_empty() { 0 } else { found.len() / places.len() };
        array(py, found, &[places.len(), each])
    }
}

/// Returns a shard from what `pickle` keeps of one.
#[pyfunction]
pub fn _shard(
    x: Array2<'_>,
    y: Array2<'_>,
    weights: Vec<f64>,
    extra: Vec<f64>,
    index: usize,
    first: usize,
) -> PyResult<Shard> {
    let mut rows = InMemory::new(owned(&x), owned(&y)).map_err(exception)?;
    (rows.weights, rows.extra) = (weights, extra);
    Ok(Shard(Rows::placed(rows, index, first)))
}

/// Returns the sum of answers along the binary tree over their indices.
#[pyfunction]
pub fn total<'py>(
    py: Python<'py>,
    answers: Vec<Array1<'py>>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let answers = answers.iter().map(|own| vector(Some(own))).collect();
    let sum = shards::total(answers).map_err(exception)?;
    Ok(PyArray1::from_vec(py, sum))
}

/// Returns the statistics of all rows from those of shards, and whether `Shard.bodies` is asked
/// for.
#[pyfunction]
pub fn gathered<'py>(
    py: Python<'py>,
    statistics: Vec<Vec<u8>>,
) -> PyResult<(Bound<'py, PyBytes>, bool)> {
    let all = Statistics::gathered(read_all(&statistics)?.into_iter()).map_err(exception)?;
    Ok((bytes(py, &all)?, !all.isolated().is_empty()))
}

/// Returns the statistics of all rows with what the second pass found.
#[pyfunction]
pub fn with_bodies<'py>(
    py: Python<'py>,
    statistics: &[u8],
    bodies: Vec<Vec<u8>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut all = read(statistics)?;
    let own = Statistics::merged(read_all(&bodies)?.into_iter()).map_err(exception)?;
    all.set_bodies(own);
    self::bytes(py, &all)
}

/// Returns the scales of the columns.
#[pyfunction]
pub fn preparation<'py>(
    py: Python<'py>,
    statistics: &[u8],
    options: &str,
    columns: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let (options, columns): (Options, Columns) = (read_json(options)?, read_json(columns)?);
    let standardise = columns.standardise();
    let head = head(columns).map_err(exception)?;
    let likelihood = likelihood(&options, head.classes.as_ref()).map_err(exception)?;
    let scaling = scaling(&options, &*likelihood, standardise, false);
    let scaler = scaling.scaler(&read(statistics)?, head.classes.as_ref(), &head.input_names);
    let text = serde_json::to_string(&scaler).map_err(|e| PyValueError::new_err(e.to_string()))?;
    Ok(PyBytes::new(py, text.as_bytes()))
}

/// Returns the numbers that texts of a column become, row by row; `column` as `encode` gives it.
#[pyfunction]
pub fn encoded(column: &str, cells: Vec<String>) -> PyResult<Vec<Vec<f64>>> {
    let own: InputColumn = read_json(column)?;
    columns::numbers(&own, &cells)
}

/// Fits a model to rows in shards of these sizes. `round` sends a request to all of them and returns the sum of their answers,
/// `take` returns rows at places in shards; both are called in this thread.
#[pyfunction]
#[pyo3(signature = (sizes, statistics, preparation, options, columns, *, round, take, points=None, callback=None))]
#[allow(clippy::too_many_arguments, clippy::type_complexity)] // the interpreter's calling convention
pub fn fit_elsewhere(
    py: Python<'_>,
    sizes: Vec<usize>,
    statistics: &[u8],
    preparation: &[u8],
    options: &str,
    columns: &str,
    round: Bound<'_, PyAny>,
    take: Bound<'_, PyAny>,
    points: Option<Array2<'_>>,
    callback: Option<Bound<'_, PyAny>>,
) -> PyResult<(Option<Fitted>, Option<Py<PyAny>>)> {
    let options: Options = read_json(options)?;
    let head = head(read_json(columns)?).map_err(exception)?;
    let (statistics, scaler) = (read(statistics)?, read_scaler(preparation)?);
    let points = points.as_ref().map(|z| scaled(owned(z), &scaler)).transpose()?;
    let options = options.fit_options(points)?;
    let numbers = |answer: Bound<'_, PyAny>| -> PyResult<Vec<f64>> {
        let flat = answer.call_method0("ravel")?;
        let own: Array1<'_> = flat.extract()?;
        Ok(vector(Some(&own)))
    };
    let answering = |question: Question| match question {
        Question::Round(request) => numbers(round.call1((PyBytes::new(py, &request),))?),
        Question::Take(wanted) => {
            let places = wanted.into_iter().map(|(shard, places)| {
                let places: Vec<i64> = places.into_iter().map(|place| place as i64).collect();
                (shard, PyArray1::from_vec(py, places))
            });
            numbers(take.call1((places.collect::<Vec<_>>(),))?)
        }
    };
    let outcome = answered(py, callback.as_ref(), &answering, |engine, observer, asking| {
        let shards = Box::new(asking);
        let dataset = Dataset::from_shards(head, shards, &sizes, &statistics, scaler)?;
        if dataset.source.rows() > i64::MAX as usize {
            return Err(Error::Invalid("there are too many rows".into()));
        }
        sparsegp::fit::fit(&dataset, &options, &Remote { cpu: engine }, observer)
    })?;
    Ok(reply(py, outcome))
}

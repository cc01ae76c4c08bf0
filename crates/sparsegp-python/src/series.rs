//! Divisions of a series by time.

use crate::errors::exception;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use sparsegp::data::{CutOff, CutOffOptions, cut_offs};
use sparsegp::linalg::Mat;
use sparsegp::metrics::Metrics;

/// Returns the mean continuous ranked probability score of normal predictions.
#[pyfunction]
pub fn normal_crps(
    y: PyReadonlyArray1<'_, f64>,
    mean: PyReadonlyArray1<'_, f64>,
    variance: PyReadonlyArray1<'_, f64>,
) -> PyResult<f64> {
    let column = |own: &PyReadonlyArray1<'_, f64>| {
        let own = own.as_array();
        Mat::from_fn(own.len(), 1, |i, _| own[i])
    };
    let (y, mean, variance) = (column(&y), column(&mean), column(&variance));
    let mut metrics = Metrics::new(1);
    metrics.add(y.as_ref(), mean.as_ref(), variance.as_ref()).map_err(exception)?;
    Ok(metrics.finish().map_err(exception)?.crps)
}

/// The cut-offs of a series.
#[pyclass(frozen, module = "sparsegp._core")]
pub struct CutOffs {
    own: sparsegp::data::CutOffs,
    times: Vec<f64>,
}

/// Training rows, test rows, and the part of the horizon that each of these is in.
type Divided<'py> =
    (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>);

impl CutOffs {
    fn cut(&self, index: usize) -> PyResult<&CutOff> {
        let count = self.own.cuts.len();
        let missing =
            || PyIndexError::new_err(format!("there is no cut-off {index}: there are {count}"));
        self.own.cuts.get(index).ok_or_else(missing)
    }
}

#[pymethods]
impl CutOffs {
    #[new]
    #[pyo3(signature = (times, dates, horizon, count, every, parts))]
    fn new(
        times: PyReadonlyArray1<'_, f64>,
        dates: bool,
        horizon: &str,
        count: usize,
        every: Option<&str>,
        parts: usize,
    ) -> PyResult<Self> {
        let times: Vec<f64> = times.as_array().to_vec();
        let options = CutOffOptions { horizon, count, every, parts };
        let own = cut_offs(&times, dates, &options).map_err(exception)?;
        Ok(Self { own, times })
    }

    /// Returns where the parts of the horizon end, in words.
    #[getter]
    fn parts(&self) -> Vec<String> {
        self.own.parts.clone()
    }

    /// Returns the times of the cut-offs.
    #[getter]
    fn times<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_iter(py, self.own.cuts.iter().map(|cut| cut.time))
    }

    /// Returns the training rows and test rows of a cut-off, and the parts of the horizon that the
    /// latter are in.
    fn rows<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Divided<'py>> {
        let cut = self.cut(index)?;
        let array = |rows: &[usize]| PyArray1::from_iter(py, rows.iter().map(|row| *row as i64));
        Ok((array(&cut.train), array(&cut.test), array(&cut.part)))
    }

    /// Returns what a simple rule predicts for the test rows of a cut-off.
    #[pyo3(signature = (index, y, season))]
    fn simple<'py>(
        &self,
        index: usize,
        y: PyReadonlyArray1<'py, f64>,
        season: Option<&str>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let py = y.py();
        let y: Vec<f64> = y.as_array().to_vec();
        let found =
            self.own.simple(self.cut(index)?, &self.times, &y, season).map_err(exception)?;
        Ok(PyArray1::from_vec(py, found))
    }
}

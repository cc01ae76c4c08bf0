//! Bayesian optimisation: points and outcomes as lists of numbers; names and categories are Python's.

use crate::arrays::array;
use crate::errors::exception;
use crate::pool::unlocked;
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sparsegp::bayesopt::{self, Outcome, Space};

/// A search by ask and tell.
#[pyclass(module = "sparsegp._core")]
pub struct Search {
    inner: bayesopt::Optimiser,
}

/// Trial, point, observed value, mean and standard deviation.
type Best = (usize, Vec<f64>, f64, f64, f64);
/// A point with its outcomes; none while it is under way.
type Trial = (Vec<f64>, Option<Vec<Option<f64>>>);

#[pymethods]
impl Search {
    /// Begins a search: a list of dimensions and options, as JSON.
    #[new]
    fn new(dimensions: &str, options: &str) -> PyResult<Self> {
        let wrong = |e: serde_json::Error| PyValueError::new_err(e.to_string());
        let space = Space::new(serde_json::from_str(dimensions).map_err(wrong)?);
        let options = serde_json::from_str(options).map_err(wrong)?;
        let inner = space.and_then(|space| bayesopt::Optimiser::new(space, options));
        Ok(Self { inner: inner.map_err(exception)? })
    }

    /// Reads a search.
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Self> {
        Ok(Self { inner: bayesopt::Optimiser::from_json(text).map_err(exception)? })
    }

    /// Writes it.
    fn to_json(&self) -> PyResult<String> {
        self.inner.to_json().map_err(exception)
    }

    /// Returns points to try.
    fn ask(&mut self, py: Python<'_>, count: usize) -> PyResult<Vec<Vec<f64>>> {
        let inner = &mut self.inner;
        unlocked(py, || inner.ask(count))
    }

    /// Takes outcomes, NaN for none.
    fn tell(&mut self, point: Vec<f64>, outcomes: Vec<f64>) -> PyResult<usize> {
        self.inner.tell(&point, &outcomes).map_err(exception)
    }

    /// Notes a point as under way.
    fn begin(&mut self, point: Vec<f64>) -> PyResult<usize> {
        self.inner.begin(&point).map_err(exception)
    }

    /// Gives up a point.
    fn forget(&mut self, point: Vec<f64>) -> bool {
        self.inner.forget(&point)
    }

    /// Returns the best trial.
    fn best(&mut self, py: Python<'_>) -> PyResult<Option<Best>> {
        let inner = &mut self.inner;
        let best = unlocked(py, || inner.best())?;
        Ok(best.map(|best| (best.trial, best.point, best.observed, best.mean, best.sd)))
    }

    /// Returns means, standard deviations and probabilities that a point is feasible.
    fn predict(
        &mut self,
        py: Python<'_>,
        points: Vec<Vec<f64>>,
    ) -> PyResult<(Vec<f64>, Vec<f64>, Vec<f64>)> {
        let inner = &mut self.inner;
        let found = unlocked(py, || inner.predict(&points))?;
        Ok((found.mean, found.sd, found.feasible))
    }

    /// Returns all trials.
    fn trials(&self) -> Vec<Trial> {
        let one = |own: &bayesopt::Trial| match &own.outcome {
            Outcome::Pending => (own.point.clone(), None),
            Outcome::Known(values) => (own.point.clone(), Some(values.clone())),
        };
        self.inner.trials().iter().map(one).collect()
    }

    /// Returns the number of trials before there are models.
    fn initial(&self) -> usize {
        self.inner.initial()
    }
}

/// Parses the name and the bound of a constraint, and whether it is a least value.
#[pyfunction]
pub fn parse_constraint(text: &str) -> PyResult<(String, f64, bool)> {
    let own: bayesopt::Constraint = text.parse().map_err(exception)?;
    Ok((own.name, own.bound, own.at_least))
}

/// Values with their slopes in mean and standard deviation.
type Values<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>);

/// Applies a function to every mean and standard deviation beside a number.
fn each<'py>(
    py: Python<'py>,
    mean: &PyReadonlyArray1<'py, f64>,
    sd: &PyReadonlyArray1<'py, f64>,
    other: f64,
    of: impl Fn(f64, f64, f64) -> bayesopt::Slopes,
) -> PyResult<Values<'py>> {
    let both = mean.as_array().into_iter().zip(sd.as_array());
    let all: Vec<bayesopt::Slopes> = both.map(|(mean, sd)| of(*mean, *sd, other)).collect();
    let part = |of: &dyn Fn(&bayesopt::Slopes) -> f64| {
        array(py, all.iter().map(of).collect(), &[all.len()])
    };
    Ok((part(&|own| own.value)?, part(&|own| own.mean)?, part(&|own| own.sd)?))
}

/// Returns the logarithms of expected improvements on `best`.
#[pyfunction]
pub fn log_expected_improvement<'py>(
    py: Python<'py>,
    mean: PyReadonlyArray1<'py, f64>,
    sd: PyReadonlyArray1<'py, f64>,
    best: f64,
) -> PyResult<Values<'py>> {
    each(py, &mean, &sd, best, bayesopt::log_expected_improvement)
}

/// Returns the log probabilities of values up to `bound`.
#[pyfunction]
pub fn log_probability_below<'py>(
    py: Python<'py>,
    mean: PyReadonlyArray1<'py, f64>,
    sd: PyReadonlyArray1<'py, f64>,
    bound: f64,
) -> PyResult<Values<'py>> {
    each(py, &mean, &sd, bound, bayesopt::log_probability_below)
}

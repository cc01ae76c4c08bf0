//! Mean functions that are classes of Python.

use crate::arrays::{Matrix, matrix, owned};
use crate::custom::{Object, numbers};
use crate::errors::{bug, exception, read_json};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyAssertionError;
use pyo3::prelude::*;
use serde_json::{Map, Value};
use sparsegp::error::Result;
use sparsegp::linalg::{MatMut, MatRef};
use sparsegp::means::general::{Function, General, Slopes};
use sparsegp::means::{self, Args, Entry, Mean};
use sparsegp::params::Param;

const ENTRY: Entry = Entry {
    name: "python",
    about: "a class of Python, by the path that it is imported from",
    build,
};

/// Makes the core know mean functions that are classes of Python.
pub fn register() -> PyResult<()> {
    means::register(ENTRY).map_err(|error| bug(&error.to_string()))
}

/// A function that an object of Python computes.
#[derive(Clone, Debug)]
struct OfObject {
    object: Object,
    has_pull_back: bool,
}

fn build(args: Args<'_>) -> Result<Box<dyn Mean>> {
    let object = Object::made("sparsegp.means", |name| args.get(name).cloned(), args.inputs)?;
    let has_pull_back = object.says("_has_gradients")?;
    Ok(Box::new(General::read(OfObject { object, has_pull_back }, &args)?))
}

impl Function for OfObject {
    fn name(&self) -> &'static str {
        self.object.name
    }

    fn parameters(&self, _: usize) -> Vec<(String, Param)> {
        self.object.parameters.clone()
    }

    fn values(&self, parameters: &[&[f64]], x: MatRef<'_, f64>, mut out: MatMut<'_, f64>) {
        self.object.with(|object| {
            let py = object.py();
            let asked = (matrix(py, x)?, out.ncols(), numbers(py, parameters));
            let found = object.call_method1("_values", asked)?;
            let found: PyReadonlyArray2<'_, f64> = found.extract()?;
            out.copy_from(Matrix::of(&found).as_ref());
            Ok(())
        });
    }

    fn has_pull_back(&self) -> bool {
        self.has_pull_back
    }

    fn pull_back(
        &self,
        parameters: &[&[f64]],
        x: MatRef<'_, f64>,
        weights: MatRef<'_, f64>,
        mut slopes: Slopes<'_>,
    ) {
        self.object.with(|object| {
            let py = object.py();
            let asked = (matrix(py, weights)?, matrix(py, x)?, numbers(py, parameters));
            let found = object.call_method1("_pulled", asked)?;
            let (own, of_x): (PyReadonlyArray1<'_, f64>, PyReadonlyArray2<'_, f64>) =
                found.extract()?;
            slopes.parameters.iter_mut().zip(own.as_array().iter()).for_each(|(s, v)| *s += *v);
            slopes.x += owned(&of_x);
            Ok(())
        });
    }

    fn entries(&self) -> Map<String, Value> {
        self.object.entries.clone()
    }
}

/// Checks a mean function at rows in full: values and every slope.
#[pyfunction]
pub fn check_mean(
    py: Python<'_>,
    json: &str,
    x: PyReadonlyArray2<'_, f64>,
    outputs: usize,
) -> PyResult<()> {
    let x = owned(&x);
    let json: Value = read_json(json)?;
    let mean = means::from_json(&json, x.ncols(), outputs).map_err(exception)?;
    let found = crate::pool::unlocked(py, || {
        mean.trial(x.as_ref(), outputs)?;
        Ok(sparsegp::testing::check_mean(&*mean, x.as_ref(), outputs))
    })?;
    found.map_err(PyAssertionError::new_err)
}

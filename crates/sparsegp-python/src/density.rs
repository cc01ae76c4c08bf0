//! Likelihoods that are classes of Python.

use crate::arrays::{Matrix, copy, matrix};
use crate::custom::{Object, numbers};
use crate::errors::bug;
use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use serde_json::{Map, Value};
use sparsegp::error::{Error, Result};
use sparsegp::likelihoods::general::{Density, General};
use sparsegp::likelihoods::{self, Args, Entry, Likelihood, Support};
use sparsegp::linalg::{Mat, MatRef};
use sparsegp::params::Param;

const ENTRY: Entry = Entry {
    name: "python",
    aliases: &[],
    about: "a class of Python, by the path that it is imported from",
    targets: "as the class says",
    latents: "as the class says",
    augmented: false,
    build,
};

/// Makes the core know likelihoods that are classes of Python.
pub fn register() -> PyResult<()> {
    likelihoods::register(ENTRY).map_err(|error| bug(&error.to_string()))
}

/// A density that an object of Python computes.
#[derive(Clone, Debug)]
struct OfObject {
    object: Object,
    about: About,
    support: Support,
}

/// What a class says of itself.
#[derive(Clone, Debug, serde::Deserialize)]
struct About {
    latents: usize,
    points: usize,
    support: String,
    ends: [f64; 2],
    standardises: bool,
    has_slopes: bool,
    has_moments: bool,
}

fn build(args: Args<'_>) -> Result<Box<dyn Likelihood>> {
    let object = Object::made("sparsegp.likelihoods._custom", |name| args.get(name).cloned(), 1)?;
    let about: String = object.says("_about")?;
    let about: About =
        serde_json::from_str(&about).map_err(|error| Error::Invalid(error.to_string()))?;
    let support = match about.support.as_str() {
        "positive" => Support::Positive,
        "counts" => Support::Counts,
        "interval" => Support::Interval(about.ends[0], about.ends[1]),
        "classes" => Support::Classes(about.ends[0] as usize),
        _ => Support::Real,
    };
    let own = OfObject { object, about, support };
    Ok(Box::new(General::read(own, &args)?))
}

type Read1<'py> = PyReadonlyArray1<'py, f64>;
type Read2<'py> = PyReadonlyArray2<'py, f64>;

impl Density for OfObject {
    fn name(&self) -> &'static str {
        self.object.name
    }

    fn parameters(&self) -> Vec<(String, Param)> {
        self.object.parameters.clone()
    }

    fn latents(&self) -> usize {
        self.about.latents
    }

    fn points(&self) -> usize {
        self.about.points
    }

    fn support(&self) -> Support {
        self.support
    }

    fn standardises(&self) -> bool {
        self.about.standardises
    }

    fn log_density(&self, parameters: &[&[f64]], y: &[f64], f: MatRef<'_, f64>, out: &mut [f64]) {
        self.object.with(|object| {
            let py = object.py();
            let asked = (PyArray1::from_slice(py, y), matrix(py, f)?, numbers(py, parameters));
            copy(&object.call_method1("_log_density", asked)?.extract()?, out);
            Ok(())
        });
    }

    fn has_slopes(&self) -> bool {
        self.about.has_slopes
    }

    fn slopes(
        &self,
        parameters: &[&[f64]],
        y: &[f64],
        f: MatRef<'_, f64>,
        by_f: &mut Mat<f64>,
        by_parameters: &mut Mat<f64>,
    ) {
        self.object.with(|object| {
            let py = object.py();
            let asked = (PyArray1::from_slice(py, y), matrix(py, f)?, numbers(py, parameters));
            let found = object.call_method1("_slopes", asked)?;
            let (of_f, of_parameters): (Read2<'_>, Read2<'_>) = found.extract()?;
            by_f.copy_from(Matrix::of(&of_f).as_ref());
            by_parameters.copy_from(Matrix::of(&of_parameters).as_ref());
            Ok(())
        });
    }

    fn has_moments(&self) -> bool {
        self.about.has_moments
    }

    fn moments(
        &self,
        parameters: &[&[f64]],
        f: MatRef<'_, f64>,
        mean: &mut [f64],
        variance: &mut [f64],
    ) {
        self.object.with(|object| {
            let py = object.py();
            let found =
                object.call_method1("_moments", (matrix(py, f)?, numbers(py, parameters)))?;
            let (of_mean, of_variance): (Read1<'_>, Read1<'_>) = found.extract()?;
            copy(&of_mean, mean);
            copy(&of_variance, variance);
            Ok(())
        });
    }

    fn start(&self, targets: &[f64]) -> Vec<f64> {
        self.object.with(|object| {
            let y = PyArray1::from_slice(object.py(), targets);
            object.call_method1("_start", (y,))?.extract()
        })
    }

    fn entries(&self) -> Map<String, Value> {
        self.object.entries.clone()
    }
}

/// Checks a likelihood at targets in full.
#[pyfunction]
pub fn check_likelihood(py: Python<'_>, json: &str, y: Read1<'_>) -> PyResult<()> {
    let likelihood = crate::registry::likelihood(json)?;
    let targets: Vec<likelihoods::Target> = crate::arrays::vector(Some(&y))
        .into_iter()
        .map(|y| likelihoods::Target { y, extra: 1.0 })
        .collect();
    let found = crate::pool::unlocked(py, || {
        likelihood.trial(&targets)?;
        Ok(sparsegp::testing::check_likelihood(&*likelihood, &targets))
    })?;
    found.map_err(pyo3::exceptions::PyAssertionError::new_err)
}

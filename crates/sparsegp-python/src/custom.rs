//! Kernels that are classes of Python; and what they have in common with likelihoods and mean functions that are
//! ([`crate::density`], [`crate::means`]).
//!
//! What they compute is asked of an object of `sparsegp.kernels.Custom`, by whichever thread needs it. An exception that it
//! raises unwinds to the door through which Python came in ([`crate::pool::unlocked`], [`crate::watch`]), and leaves by it.

use crate::arrays::{matrix, owned};
use crate::errors::{bug, raise};
use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyAssertionError;
use pyo3::prelude::*;
use serde_json::{Map, Value};
use sparsegp::error::{Error, Result};
use sparsegp::kernels::general::{Covariance, General, Slopes};
use sparsegp::kernels::{self, Args, Entry, Kernel};
use sparsegp::linalg::{MatMut, MatRef};
use sparsegp::params::{Param, Role, Shape, Transform};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

const NAME: &str = "python";
/// Entries that are not parameters.
const CLASS: &str = "class";
const OPTIONS: &str = "options";

const ENTRY: Entry = Entry {
    name: NAME,
    aliases: &[],
    about: "a class of Python, by the path that it is imported from",
    build,
};

/// Makes the core know kernels that are classes of Python.
pub fn register() -> PyResult<()> {
    kernels::register(ENTRY).map_err(|error| bug(&error.to_string()))
}

/// An object of Python that computes, with what it says of itself.
#[derive(Clone, Debug)]
pub struct Object {
    /// Of the class only, for messages.
    pub name: &'static str,
    /// `type`, `class` and `options`.
    pub entries: Map<String, Value>,
    /// Those that the class declares.
    pub parameters: Vec<(String, Param)>,
    object: Arc<Py<PyAny>>,
}

impl Object {
    /// Makes the object that a specification describes; `module` has a function `made` for it. Parameters that have a number for
    /// each column have so many.
    pub fn made(module: &str, get: impl Fn(&str) -> Option<Value>, columns: usize) -> Result<Self> {
        let class = get(CLASS);
        let class = class.as_ref().and_then(Value::as_str);
        let class =
            class.ok_or_else(|| Error::Invalid(format!("the entry `{CLASS}` is missing")))?;
        let mut entries =
            Map::from_iter([("type".to_owned(), NAME.into()), (CLASS.to_owned(), class.into())]);
        let options = get(OPTIONS);
        let text = options.as_ref().map_or_else(|| "{}".into(), Value::to_string);
        if let Some(options) = options {
            entries.insert(OPTIONS.into(), options);
        }
        let made = Python::attach(|py| -> PyResult<_> {
            let object = py.import(module)?.getattr("made")?.call1((class, text))?;
            let declared: String = object.call_method0("_declared")?.extract()?;
            Ok((object.unbind(), declared))
        });
        let (object, declared) = made.map_err(|error| {
            Error::Invalid(Python::attach(|py| match error.value(py).str() {
                Ok(text) => text.to_string(),
                Err(_) => error.to_string(),
            }))
        })?;
        let parameters = parameters(&declared, columns)?;
        let name = kept(class.rsplit([':', '.']).next().unwrap_or(class));
        Ok(Self { name, entries, parameters, object: Arc::new(object) })
    }

    /// Asks the object, by whichever thread this is; an exception leaves the library.
    pub fn with<T>(&self, work: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> T {
        Python::attach(|py| work(self.object.bind(py)).unwrap_or_else(|error| raise(error)))
    }

    /// Asks what the object says of itself.
    pub fn says<T>(&self, method: &str) -> Result<T>
    where
        T: for<'py> FromPyObject<'py, 'py>,
    {
        Python::attach(|py| {
            let found = self.object.bind(py).call_method0(method);
            let found = found.and_then(|own| own.extract::<T>().map_err(Into::into));
            found.map_err(|error: PyErr| Error::Invalid(error.to_string()))
        })
    }
}

/// A covariance function that an object of Python computes.
#[derive(Clone, Debug)]
struct OfObject {
    object: Object,
    has_variances: bool,
    has_pull_back: bool,
}

/// Returns a name that messages may keep: each is kept once.
fn kept(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let new: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(new);
    new
}

fn build(args: Args<'_>) -> Result<Box<dyn Kernel>> {
    let columns = args.active_dims()?.0.len();
    let object = Object::made("sparsegp.kernels._custom", |name| args.get(name).cloned(), columns)?;
    let (has_variances, has_pull_back) =
        (object.says("_has_variances")?, object.says("_has_gradients")?);
    Ok(Box::new(General::read(OfObject { object, has_variances, has_pull_back }, &args)?))
}

/// Returns parameters as the class declares them: name, range, whether there is one for each
/// column, where it starts.
fn parameters(declared: &str, columns: usize) -> Result<Vec<(String, Param)>> {
    let all: Vec<(String, String, bool, Value)> =
        serde_json::from_str(declared).map_err(|error| Error::Invalid(error.to_string()))?;
    let made = |(name, range, each, start): (String, String, bool, Value)| {
        let positive = range == "positive";
        let transform = if positive { Transform::POSITIVE } else { Transform::Identity };
        let first = if positive { 1.0 } else { 0.0 };
        let role = match name.as_str() {
            "variance" => Role::Variance,
            "lengthscale" | "lengthscales" => Role::Lengthscales,
            _ => Role::Other,
        };
        let mut param = match each {
            true => Param::with(vec![first; columns], Shape::Vector(columns), transform),
            false => Param::with(vec![first], Shape::Scalar, transform),
        }
        .of(role);
        if !start.is_null() {
            param.read_json(&name, &start)?;
            param.given = start.as_object().is_none_or(|entries| entries.contains_key("value"));
        }
        Ok((name, param))
    };
    all.into_iter().map(made).collect()
}

type Read2<'py> = PyReadonlyArray2<'py, f64>;

/// Returns both rows, once if they are the same.
fn both<'py>(py: Python<'py>, [x, z]: [MatRef<'_, f64>; 2]) -> PyResult<[Bound<'py, PyAny>; 2]> {
    let first = matrix(py, x)?;
    let same = x.as_ptr() == z.as_ptr() && x.nrows() == z.nrows();
    let second = if same { first.clone() } else { matrix(py, z)? };
    Ok([first, second])
}

/// Returns values by parameter, as arrays.
pub fn numbers<'py>(py: Python<'py>, parameters: &[&[f64]]) -> Vec<Bound<'py, PyArray1<f64>>> {
    parameters.iter().map(|own| PyArray1::from_slice(py, own)).collect()
}

impl Covariance for OfObject {
    fn name(&self) -> &'static str {
        self.object.name
    }

    fn parameters(&self, _: usize) -> Vec<(String, Param)> {
        self.object.parameters.clone()
    }

    fn values(
        &self,
        parameters: &[&[f64]],
        x: MatRef<'_, f64>,
        z: MatRef<'_, f64>,
        mut out: MatMut<'_, f64>,
    ) {
        self.object.with(|object| {
            let py = object.py();
            let [x, z] = both(py, [x, z])?;
            let found = object.call_method1("_values", (x, z, numbers(py, parameters)))?;
            let found: Read2<'_> = found.extract()?;
            out.copy_from(crate::arrays::Matrix::of(&found).as_ref());
            Ok(())
        });
    }

    fn variances(&self, parameters: &[&[f64]], x: MatRef<'_, f64>, out: &mut [f64]) {
        if !self.has_variances {
            return sparsegp::kernels::general::variances_of_values(self, parameters, x, out);
        }
        self.object.with(|object| {
            let py = object.py();
            let found = (matrix(py, x)?, numbers(py, parameters));
            let found = object.call_method1("_variances", found)?;
            let found: PyReadonlyArray1<'_, f64> = found.extract()?;
            crate::arrays::copy(&found, out);
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
        z: MatRef<'_, f64>,
        weights: MatRef<'_, f64>,
        mut slopes: Slopes<'_>,
    ) {
        self.object.with(|object| {
            let py = object.py();
            let [x, z] = both(py, [x, z])?;
            let asked = (matrix(py, weights)?, x, z, numbers(py, parameters));
            let found = object.call_method1("_pulled", asked)?;
            let (own, of_x, of_z): (PyReadonlyArray1<'_, f64>, Read2<'_>, Read2<'_>) =
                found.extract()?;
            slopes.parameters.iter_mut().zip(own.as_array().iter()).for_each(|(s, v)| *s += *v);
            slopes.x += owned(&of_x);
            slopes.z += owned(&of_z);
            Ok(())
        });
    }

    fn entries(&self) -> Map<String, Value> {
        self.object.entries.clone()
    }
}

/// Checks a kernel at rows in full: values, variances and every slope.
#[pyfunction]
pub fn check_kernel(py: Python<'_>, json: &str, x: Read2<'_>, z: Read2<'_>) -> PyResult<()> {
    let (x, z) = (owned(&x), owned(&z));
    let kernel = crate::registry::kernel(json, x.ncols())?;
    let found = crate::pool::unlocked(py, || {
        kernel.trial(x.as_ref())?;
        Ok(sparsegp::testing::check_kernel(&*kernel, x.as_ref(), z.as_ref()))
    })?;
    found.map_err(PyAssertionError::new_err)
}

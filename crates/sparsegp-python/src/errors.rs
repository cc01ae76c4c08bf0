//! Errors of the library as exceptions.

use pyo3::exceptions::{
    PyArithmeticError, PyFileNotFoundError, PyKeyboardInterrupt, PyRuntimeError, PyValueError,
};
use pyo3::prelude::*;
use sparsegp::Error;

pyo3::create_exception!(
    sparsegp,
    NumericalError,
    PyArithmeticError,
    "The numbers left the range in which a result exists: a matrix is not positive definite, or a value is not finite."
);

/// The exception of an error: what the arguments cause is a `ValueError`.
pub fn exception(error: Error) -> PyErr {
    // the remedy in the words of `fit_file`
    let drop = "`--missing drop` (`Missing::Drop`)";
    let text = error.to_string().replace(drop, "missing='drop'");
    match &error {
        Error::NotPositiveDefinite { .. } | Error::Imprecise { .. } | Error::NonFinite { .. } => {
            NumericalError::new_err(text)
        }
        Error::Interrupted => PyKeyboardInterrupt::new_err(()),
        Error::File { path, .. } if !path.exists() => PyFileNotFoundError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}

/// For what can only be a mistake in this library.
pub fn bug(what: &str) -> PyErr {
    PyRuntimeError::new_err(format!("{what}: this is a bug in sparsegp, please report it"))
}

/// What a panic says, for an exception: no mistake of the library ends a program that catches exceptions.
pub fn panicked(payload: &(dyn std::any::Any + Send)) -> PyErr {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    bug(&format!("sparsegp failed inside ({})", text.as_deref().unwrap_or("no message")))
}

/// JSON that Python sent.
pub fn read_json<T: serde::de::DeserializeOwned>(text: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|e| PyValueError::new_err(e.to_string()))
}

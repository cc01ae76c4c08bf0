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

/// Puts the options of the command line that a message names into the words of `fit_file`.
pub fn in_python(text: &str) -> String {
    const OPTIONS: [(&str, &str); 11] = [
        ("missing-words", "missing_words"),
        ("kept-words", "kept_words"),
        ("missing", "missing"),
        ("unknown", "unknown"),
        ("decimal", "decimal"),
        ("thousands", "thousands"),
        ("date-format", "date_format"),
        ("categorical", "categorical"),
        ("ignore", "ignore"),
        ("levels", "levels"),
        ("encoding", "encoding"),
    ];
    let option = |part: &str| -> Option<String> {
        let (name, value) = part.strip_prefix("--")?.split_once(' ')?;
        let (_, keyword) = OPTIONS.iter().find(|(option, _)| *option == name)?;
        let value = if value.len() > 2 { value.trim_matches('\'') } else { value };
        Some(match *keyword {
            "missing_words" | "kept_words" | "categorical" | "ignore" | "levels" => {
                let all: Vec<String> = value.split(',').map(|one| format!("'{one}'")).collect();
                format!("{keyword}=[{}]", all.join(", "))
            }
            _ => format!("{keyword}='{value}'"),
        })
    };
    // what stands between two backticks
    let parts = text.split('`').enumerate().map(|(i, part)| match i % 2 {
        0 => part.to_owned(),
        _ => {
            let both = part.split_once(" --").map(|(a, b)| (a.to_owned(), format!("--{b}")));
            let own = match both {
                Some((a, b)) => option(&a).zip(option(&b)).map(|(a, b)| format!("{a}, {b}")),
                None => option(part),
            };
            format!("`{}`", own.unwrap_or_else(|| part.to_owned()))
        }
    });
    parts.collect()
}

/// Returns the exception of an error: what the arguments cause is a `ValueError`.
pub fn exception(error: Error) -> PyErr {
    let text = in_python(&error.to_string());
    match &error {
        Error::NotPositiveDefinite { .. } | Error::Imprecise { .. } | Error::NonFinite { .. } => {
            NumericalError::new_err(text)
        }
        Error::Interrupted => PyKeyboardInterrupt::new_err(()),
        Error::File { path, .. } if !path.exists() => PyFileNotFoundError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}

/// Returns the exception for what can only be a mistake in this library.
pub fn bug(what: &str) -> PyErr {
    PyRuntimeError::new_err(format!("{what}: this is a bug in sparsegp, please report it"))
}

/// Leaves work inside of the library with an exception of Python, which [`panicked`] finds at its door.
pub fn raise(error: PyErr) -> ! {
    std::panic::resume_unwind(Box::new(error))
}

/// Returns what a panic says, for an exception: no mistake of the library ends a program that
/// catches exceptions. An exception that Python raised inside is that.
pub fn panicked(payload: &(dyn std::any::Any + Send)) -> PyErr {
    if let Some(error) = payload.downcast_ref::<PyErr>() {
        return Python::attach(|py| error.clone_ref(py));
    }
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    bug(&format!("sparsegp failed inside ({})", text.as_deref().unwrap_or("no message")))
}

/// Reads JSON that Python sent.
pub fn read_json<T: serde::de::DeserializeOwned>(text: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|e| PyValueError::new_err(e.to_string()))
}

//! Predictions as code for elsewhere.

use crate::fitted::Fitted;
use crate::pool::unlocked;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::json;
use sparsegp::atomic;
use sparsegp::export::{Export, Format, name_like};
use std::path::PathBuf;

/// Writes a file, and returns what is in it as JSON: `inputs` with `name` and `kind`, `outputs` with `name` and `columns`, the
/// `name` in C and a `remark`.
#[pyfunction]
#[pyo3(signature = (fitted, path, *, format, name))]
pub fn export(
    py: Python<'_>,
    fitted: &Fitted,
    path: PathBuf,
    format: &str,
    name: Option<String>,
) -> PyResult<String> {
    let Some(format) = Format::by_name(format) else {
        return Err(PyValueError::new_err(format!("there is no format {format}")));
    };
    let fitted = fitted.inner.clone();
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let name = name.unwrap_or_else(|| name_like(&stem));
    let found = unlocked(py, || {
        atomic::check_writable(&path)?;
        let export = Export::new(&fitted)?;
        let content = export.to_bytes(format, &name)?;
        atomic::write_atomically(&path, &content)?;
        Ok(json!({
            "inputs": export.inputs(), "outputs": export.outputs(), "name": name, "remark": export.remark(),
        }))
    });
    found.map(|found| found.to_string())
}

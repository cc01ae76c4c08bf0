//! Predictions as code for elsewhere.

use crate::fitted::Fitted;
use crate::pool::unlocked;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::json;
use sparsegp::atomic;
use sparsegp::export::{Export, Format, name_like};
use std::path::{Path, PathBuf};

/// Returns the format of a name, or that of the ending of a file.
fn found(format: Option<&str>, path: &Path) -> PyResult<Format> {
    let all = |of: &dyn Fn(Format) -> String| Format::ALL.map(of).join(", ");
    let (found, why) = match format {
        Some(name) => {
            let known = all(&|own| format!("{:?}", own.name()));
            (Format::by_name(name), format!("format must be one of {known}, not {name:?}"))
        }
        None => {
            let known = all(&|own| format!(".{}", own.ending()));
            let why = "says no format: name the file with one of";
            let why = format!("the ending of {path:?} {why} {known}, or give format");
            (Format::of_path(path), why)
        }
    };
    found.ok_or_else(|| PyValueError::new_err(why))
}

/// Writes a file, and returns what is in it as JSON: `inputs` with `name` and `kind`, `outputs` with `name` and `columns`, the
/// `format`, the `name` in C and a `remark`. Without a format the ending of the file says it.
#[pyfunction]
#[pyo3(signature = (fitted, path, *, format, name))]
pub fn export(
    py: Python<'_>,
    fitted: &Fitted,
    path: PathBuf,
    format: Option<&str>,
    name: Option<String>,
) -> PyResult<String> {
    let format = found(format, &path)?;
    let fitted = fitted.inner.clone();
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let name = name.unwrap_or_else(|| name_like(&stem));
    let found = unlocked(py, || {
        atomic::check_writable(&path)?;
        let export = Export::new(&fitted)?;
        let content = export.to_bytes(format, &name)?;
        atomic::write_atomically(&path, &content)?;
        Ok(json!({
            "inputs": export.inputs(), "outputs": export.outputs(), "format": format.name(), "name": name,
            "remark": export.remark(),
        }))
    });
    found.map(|found| found.to_string())
}

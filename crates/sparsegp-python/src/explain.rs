//! Effects of inputs and shares of variance.

use crate::arrays::Matrix;
use crate::errors::exception;
use crate::fitted::Fitted;
use crate::pool::unlocked;
use numpy::PyReadonlyArray2;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::json;
use sparsegp::explain::{Explainer, Options};

/// Returns what a model has learnt of its inputs, as JSON: see `Explainer::to_json`, with
/// `correlated` and `no_intervals`.
#[pyfunction]
#[pyo3(signature = (fitted, x, *, inputs, accumulated, points, rows, draws, samples, functions, seed))]
#[allow(clippy::too_many_arguments, reason = "the arguments of the Python function, by name")]
pub fn explain(
    py: Python<'_>,
    fitted: &Fitted,
    x: PyReadonlyArray2<'_, f64>,
    inputs: Option<Vec<String>>,
    accumulated: bool,
    points: usize,
    rows: usize,
    draws: usize,
    samples: usize,
    functions: usize,
    seed: u64,
) -> PyResult<String> {
    let x = Matrix::of(&x);
    let options = Options { points, rows, draws, samples, functions, seed };
    let explainer = Explainer::new(&fitted.inner, x.as_ref(), options).map_err(exception)?;
    let columns = explainer.columns();
    let mut chosen: Vec<usize> = (0..columns.len()).collect();
    if let Some(names) = inputs {
        chosen.clear();
        for name in names {
            match columns.iter().position(|own| own.name == name) {
                Some(at) => chosen.push(at),
                None => {
                    let all: Vec<&str> = columns.iter().map(|own| own.name.as_str()).collect();
                    let all = all.join(", ");
                    let text = format!(
                        "inputs has {name:?}, which is not an input of the model; it has {all}"
                    );
                    return Err(PyValueError::new_err(text));
                }
            }
        }
    }
    let correlated = explainer.most_correlated().map(|(one, other, how)| json!([one, other, how]));
    let mut document = unlocked(py, || {
        let (shares, why) = explainer.sensitivity(&|| Ok(()))?;
        let curve = |column: &usize| match accumulated {
            true => explainer.accumulated(*column),
            false => explainer.partial(*column),
        };
        let curves = chosen.iter().map(curve).collect::<sparsegp::Result<Vec<_>>>()?;
        let mut document = explainer.to_json(&shares, &curves);
        document["no_intervals"] = json!(why);
        Ok(document)
    })?;
    document["correlated"] = json!(correlated);
    Ok(document.to_string())
}

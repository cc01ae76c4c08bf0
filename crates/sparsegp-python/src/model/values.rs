//! Values of parameters between the library's order and NumPy's.

use crate::arrays::array;
use crate::errors::exception;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sparsegp::Error;
use sparsegp::model::Model;
use sparsegp::params::Shape;

/// Returns the values of a parameter in the order and the shape of NumPy.
pub fn values<'py>(py: Python<'py>, shape: Shape, value: &[f64]) -> PyResult<Bound<'py, PyAny>> {
    match shape {
        Shape::Scalar => array(py, value.to_vec(), &[]),
        Shape::Vector(n) => array(py, value.to_vec(), &[n]),
        Shape::Matrix(n, m) => {
            let rows = (0..n).flat_map(|i| (0..m).map(move |j| value[j * n + i])).collect();
            array(py, rows, &[n, m])
        }
        Shape::Lower(count, size) => {
            let mut full = vec![0.0; count * size * size];
            let mut values = value.iter();
            for one in full.chunks_exact_mut((size * size).max(1)) {
                for j in 0..size {
                    (j..size).zip(values.by_ref()).for_each(|(i, v)| one[i * size + j] = *v);
                }
            }
            array(py, full, &[count, size, size])
        }
    }
}

/// Returns the stored order of values that came flat, in NumPy's order, for a parameter.
pub fn stored(path: &str, shape: Shape, given: Vec<f64>) -> PyResult<Vec<f64>> {
    let len = match shape {
        Shape::Scalar => 1,
        Shape::Vector(n) => n,
        Shape::Matrix(n, m) => n * m,
        Shape::Lower(count, size) => count * size * size,
    };
    if given.len() != len {
        // one number for all, or an error that the parameter words
        return match given.len() {
            1 => Ok(given),
            found => Err(exception(Error::InvalidParameter {
                path: path.into(),
                reason: format!(
                    "has {len} values, {found} were given; give all of them or one for all"
                ),
            })),
        };
    }
    Ok(match shape {
        Shape::Scalar | Shape::Vector(_) => given,
        Shape::Matrix(n, m) => {
            (0..m).flat_map(|j| (0..n).map(move |i| i * m + j)).map(|at| given[at]).collect()
        }
        Shape::Lower(count, size) => (0..count)
            .flat_map(|l| {
                (0..size).flat_map(move |j| (j..size).map(move |i| (l * size + i) * size + j))
            })
            .map(|at| given[at])
            .collect(),
    })
}

/// Returns the parts of a gradient by the paths of the parameters.
pub fn by_path<'py>(
    py: Python<'py>,
    model: &Model,
    gradient: &[f64],
) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    let mut rest = gradient;
    for (path, param) in model.params() {
        let (own, tail) = rest.split_at(param.len());
        rest = tail;
        all.set_item(path, values(py, param.shape(), own)?)?;
    }
    Ok(all)
}

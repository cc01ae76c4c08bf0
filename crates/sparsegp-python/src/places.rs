//! Places on Earth: points of the sphere for latitudes and longitudes.

use numpy::{PyArray2, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sparsegp::data::{Encoding, InputColumn};

/// Returns the points of the sphere in kilometres, N×3, for latitudes and longitudes in degrees of
/// columns of these names.
#[pyfunction]
pub fn place_points<'py>(
    latitude: PyReadonlyArray1<'py, f64>,
    longitude: PyReadonlyArray1<'py, f64>,
    latitudes: String,
    longitudes: String,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let py = latitude.py();
    let encoding = Encoding::Place { longitude: longitudes };
    let column = InputColumn { name: latitudes, encoding };
    let pairs = latitude.as_array().to_vec().into_iter().zip(longitude.as_array().to_vec());
    let one = |(row, (first, second)): (usize, (f64, f64))| {
        let point = column.of_numbers(&[first, second]);
        point.map_err(|reason| PyValueError::new_err(format!("row {row}, {reason}")))
    };
    let rows = pairs.enumerate().map(one).collect::<PyResult<Vec<_>>>()?;
    PyArray2::from_vec2(py, &rows).map_err(|error| PyValueError::new_err(error.to_string()))
}

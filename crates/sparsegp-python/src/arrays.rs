//! NumPy arrays in and out.

use numpy::{
    PyArray1, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyReadonlyArray3,
    PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use sparsegp::linalg::{Mat, MatRef, by_rows, copied};

/// A matrix of the interpreter, or a copy of one whose numbers do not lie in order.
pub enum Matrix<'a> {
    /// Rows one after the other, or columns.
    View(MatRef<'a, f64>),
    /// In another order.
    Copy(Mat<f64>),
}

impl<'a> Matrix<'a> {
    /// Takes an array, without a copy where rows or columns lie one after the other.
    pub fn of(array: &'a PyReadonlyArray2<'_, f64>) -> Self {
        let [n, m] = [array.shape()[0], array.shape()[1]];
        match array.as_slice() {
            Ok(slice) if array.is_c_contiguous() => {
                Self::View(MatRef::from_row_major_slice(slice, n, m))
            }
            Ok(slice) if array.is_fortran_contiguous() => {
                Self::View(MatRef::from_column_major_slice(slice, n, m))
            }
            _ => {
                let view = array.as_array();
                Self::Copy(Mat::from_fn(n, m, |i, j| view[[i, j]]))
            }
        }
    }

    /// Returns the matrix.
    pub fn as_ref(&self) -> MatRef<'_, f64> {
        match self {
            Self::View(view) => *view,
            Self::Copy(copy) => copy.as_ref(),
        }
    }

    /// Returns a copy, column by column.
    pub fn to_owned(&self) -> Mat<f64> {
        copied(self.as_ref())
    }
}

/// Returns a copy of a matrix of the interpreter.
pub fn owned(array: &PyReadonlyArray2<'_, f64>) -> Mat<f64> {
    Matrix::of(array).to_owned()
}

/// Returns a copy of a vector of the interpreter; none is an empty one.
pub fn vector(array: Option<&PyReadonlyArray1<'_, f64>>) -> Vec<f64> {
    array.map_or_else(Vec::new, |a| match a.as_slice() {
        Ok(slice) => slice.to_vec(),
        Err(_) => a.as_array().iter().copied().collect(),
    })
}

/// Copies a vector of the interpreter.
pub fn copy(from: &PyReadonlyArray1<'_, f64>, to: &mut [f64]) {
    match from.as_slice() {
        Ok(slice) if slice.len() == to.len() => to.copy_from_slice(slice),
        _ => to.iter_mut().zip(from.as_array().iter()).for_each(|(to, v)| *to = *v),
    }
}

/// Returns a copy of L×M×M numbers.
pub fn matrices(array: &PyReadonlyArray3<'_, f64>) -> Vec<Mat<f64>> {
    let view = array.as_array();
    let [l, n, m] = [array.shape()[0], array.shape()[1], array.shape()[2]];
    (0..l).map(|k| Mat::from_fn(n, m, |i, j| view[[k, i, j]])).collect()
}

/// Returns an array of some shape from its numbers, the last index fastest.
pub fn array<'py>(
    py: Python<'py>,
    values: Vec<f64>,
    shape: &[usize],
) -> PyResult<Bound<'py, PyAny>> {
    Ok(PyArray1::from_vec(py, values).reshape(shape.to_vec())?.into_any())
}

/// Returns an array of a matrix.
pub fn matrix<'py>(py: Python<'py>, a: MatRef<'_, f64>) -> PyResult<Bound<'py, PyAny>> {
    array(py, by_rows(a), &[a.nrows(), a.ncols()])
}

/// Returns an array of matrices of one shape.
pub fn stack<'py>(py: Python<'py>, all: &[MatRef<'_, f64>]) -> PyResult<Bound<'py, PyAny>> {
    let (n, m) = all.first().map_or((0, 0), |a| (a.nrows(), a.ncols()));
    let values = all.iter().flat_map(|a| by_rows(*a)).collect();
    array(py, values, &[all.len(), n, m])
}

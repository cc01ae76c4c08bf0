//! Covariance functions.

use crate::arrays::{Matrix, array, matrix, owned};
use crate::errors::exception;
use crate::fitted::FEWER;
use crate::pool::unlocked;
use crate::registry;
use crate::room::room;
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sparsegp::Error;
use sparsegp::kernels::{self, Cotangents, Tape};
use sparsegp::linalg::{Mat, MatRef};
use sparsegp::params::Shape;

/// A kernel of so many inputs.
#[pyclass(frozen, module = "sparsegp._core")]
pub struct Kernel {
    inner: Box<dyn kernels::Kernel>,
    inputs: usize,
}

impl Kernel {
    fn check(&self, x: MatRef<'_, f64>) -> PyResult<()> {
        if x.ncols() == self.inputs {
            return self.inner.check(x).map_err(exception);
        }
        Err(exception(Error::Shape {
            what: "inputs of the kernel".into(),
            expected: format!("{} columns", self.inputs),
            found: format!("{} columns", x.ncols()),
        }))
    }

    /// Returns gradients with respect to the hyperparameters, by path.
    fn by_path<'py>(&self, py: Python<'py>, gradient: &[f64]) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        let mut rest = gradient;
        for (path, param) in self.inner.params() {
            let (own, tail) = rest.split_at(param.len());
            rest = tail;
            let own = match param.shape() {
                Shape::Scalar => array(py, own.to_vec(), &[])?,
                Shape::Matrix(rows, cols) => {
                    matrix(py, Mat::from_fn(rows, cols, |i, j| own[j * rows + i]).as_ref())?
                }
                _ => array(py, own.to_vec(), &[own.len()])?,
            };
            all.set_item(path, own)?;
        }
        Ok(all)
    }
}

#[pymethods]
impl Kernel {
    #[new]
    fn new(json: &str, inputs: usize) -> PyResult<Self> {
        Ok(Self { inner: registry::kernel(json, inputs)?, inputs })
    }

    /// Returns the kernel with its present values, as JSON.
    fn json(&self) -> String {
        self.inner.to_json().to_string()
    }

    /// Returns k(X, X2), or k(X, X) without the second.
    #[pyo3(signature = (x, x2=None))]
    fn covariances<'py>(
        &self,
        py: Python<'py>,
        x: PyReadonlyArray2<'py, f64>,
        x2: Option<PyReadonlyArray2<'py, f64>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (x, x2) = (owned(&x), x2.as_ref().map(owned));
        self.check(x.as_ref())?;
        x2.as_ref().map_or(Ok(()), |x2| self.check(x2.as_ref()))?;
        let (n, m) = (x.nrows(), x2.as_ref().unwrap_or(&x).nrows());
        room(&format!("covariances of {n} with {m} rows"), &[&[n, m, 2]], FEWER)?;
        let k = unlocked(py, || {
            let mut k = Mat::zeros(x.nrows(), x2.as_ref().unwrap_or(&x).nrows());
            let second = x2.as_ref().map(Mat::as_ref);
            self.inner.evaluate(x.as_ref(), second, k.as_mut(), &mut Tape::off());
            Ok(k)
        })?;
        matrix(py, k.as_ref())
    }

    /// Returns k(xᵢ, xᵢ).
    fn diagonal<'py>(
        &self,
        py: Python<'py>,
        x: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let x = owned(&x);
        self.check(x.as_ref())?;
        let diagonal = unlocked(py, || {
            let mut diagonal = vec![0.0; x.nrows()];
            self.inner.diag(x.as_ref(), &mut diagonal);
            Ok(diagonal)
        })?;
        array(py, diagonal, &[x.nrows()])
    }

    /// Returns the gradients of Σᵢⱼ k_barᵢⱼ kᵢⱼ: of the hyperparameters by path, of X, and of X2 if
    /// it is given.
    #[pyo3(signature = (k_bar, x, x2=None))]
    #[allow(clippy::type_complexity)] // the interpreter's calling convention
    fn gradients<'py>(
        &self,
        py: Python<'py>,
        k_bar: PyReadonlyArray2<'py, f64>,
        x: PyReadonlyArray2<'py, f64>,
        x2: Option<PyReadonlyArray2<'py, f64>>,
    ) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyAny>, Option<Bound<'py, PyAny>>)> {
        let (x, x2) = (owned(&x), x2.as_ref().map(owned));
        let mut k_bar = owned(&k_bar);
        self.check(x.as_ref())?;
        x2.as_ref().map_or(Ok(()), |x2| self.check(x2.as_ref()))?;
        let (n, m) = (x.nrows(), x2.as_ref().unwrap_or(&x).nrows());
        if k_bar.nrows() != n || k_bar.ncols() != m {
            return Err(exception(Error::Shape {
                what: "weights of the covariances".into(),
                expected: format!("{n}×{m}"),
                found: format!("{}×{}", k_bar.nrows(), k_bar.ncols()),
            }));
        }
        let (params, x_bar, x2_bar) = unlocked(py, || {
            let mut k = Mat::zeros(n, m);
            let mut tape = Tape::recording();
            let second = x2.as_ref().map(Mat::as_ref);
            self.inner.evaluate(x.as_ref(), second, k.as_mut(), &mut tape);
            let mut params = vec![0.0; self.inner.num_params()];
            let mut x_bar = Mat::zeros(n, x.ncols());
            let mut x2_bar = x2.as_ref().map(|x2| Mat::zeros(m, x2.ncols()));
            let mut sinks = Cotangents {
                params: &mut params,
                x: Some(x_bar.as_mut()),
                z: x2_bar.as_mut().map(Mat::as_mut),
            };
            self.inner.vjp(x.as_ref(), second, k.as_ref(), k_bar.as_mut(), &mut tape, &mut sinks);
            Ok((params, x_bar, x2_bar))
        })?;
        let x2_bar = x2_bar.map(|z| matrix(py, z.as_ref())).transpose()?;
        Ok((self.by_path(py, &params)?, matrix(py, x_bar.as_ref())?, x2_bar))
    }

    /// Returns the gradients of Σᵢ weightᵢ k(xᵢ, xᵢ): of the hyperparameters by path, and of X.
    fn diagonal_gradients<'py>(
        &self,
        py: Python<'py>,
        weights: PyReadonlyArray1<'py, f64>,
        x: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyAny>)> {
        let x = Matrix::of(&x).to_owned();
        self.check(x.as_ref())?;
        let weights = crate::arrays::vector(Some(&weights));
        if weights.len() != x.nrows() {
            return Err(exception(Error::Shape {
                what: "weights of the variances".into(),
                expected: format!("{}", x.nrows()),
                found: format!("{}", weights.len()),
            }));
        }
        let (params, x_bar) = unlocked(py, || {
            let mut params = vec![0.0; self.inner.num_params()];
            let mut x_bar = Mat::zeros(x.nrows(), x.ncols());
            let mut sinks = Cotangents { params: &mut params, x: Some(x_bar.as_mut()), z: None };
            self.inner.diag_vjp(x.as_ref(), &weights, &mut sinks);
            Ok((params, x_bar))
        })?;
        Ok((self.by_path(py, &params)?, matrix(py, x_bar.as_ref())?))
    }
}

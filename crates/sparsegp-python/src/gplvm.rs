//! GP-LVMs.

use crate::arrays::{matrix, owned};
use crate::pool::unlocked;
use crate::watch::watched;
use numpy::PyReadonlyArray2;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Deserialize;
use serde_json::json;
use sparsegp::io;
use sparsegp::kernels::{self, Inputs};
use sparsegp::latent::{
    EmbedOptions, FittedGplvm, Gplvm as Model, GplvmBatches, GplvmOptions, LatentStart, Targets,
    Trainable, fit_gplvm_watched,
};
use sparsegp::linalg::{Jitter, Mat};
use sparsegp::params::{Param, Transform, listed};
use sparsegp::psi::Uncertain;
use sparsegp::terms;
use sparsegp::train::{Event, TracePoint};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

type Array2<'py> = PyReadonlyArray2<'py, f64>;
type Pair<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

/// What the interpreter asks for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    dimensions: usize,
    inducing: usize,
    kernel: String,
    method: String,
    random_start: bool,
    restarts: usize,
    iterations: usize,
    batch_size: Option<usize>,
    epochs: usize,
    standardise: bool,
    seed: u64,
}

/// A trained GP-LVM.
#[pyclass(frozen, module = "sparsegp._core")]
pub struct Gplvm {
    inner: Arc<FittedGplvm>,
}

fn made(fitted: FittedGplvm) -> Gplvm {
    Gplvm { inner: Arc::new(fitted) }
}

/// Trains a GP-LVM on a matrix, NaN where cells are missing. Returns it and the exception that ended the training, if any:
/// after an interruption there are both.
#[pyfunction]
#[pyo3(signature = (y, options, *, callback=None))]
#[allow(clippy::type_complexity)] // the interpreter's calling convention
pub fn fit_gplvm(
    py: Python<'_>,
    y: Array2<'_>,
    options: &str,
    callback: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Option<Gplvm>, Option<Py<PyAny>>)> {
    let asked: Asked =
        serde_json::from_str(options).map_err(|e| PyValueError::new_err(e.to_string()))?;
    let options = GplvmOptions {
        dimensions: asked.dimensions,
        inducing: asked.inducing,
        kernel: asked.kernel,
        method: asked.method,
        start: if asked.random_start { LatentStart::Random } else { LatentStart::Pca },
        restarts: asked.restarts,
        iterations: asked.iterations,
        batches: asked.batch_size.map(|rows| GplvmBatches {
            rows,
            epochs: asked.epochs,
            ..GplvmBatches::default()
        }),
        standardise: asked.standardise,
        seed: asked.seed,
        ..GplvmOptions::default()
    };
    let y = owned(&y);
    let outcome = watched(py, callback, |_, observer| {
        let begun = Instant::now();
        fit_gplvm_watched(y.as_ref(), &options, &mut |at| {
            let point = TracePoint {
                iteration: at.iteration,
                objective: at.bound,
                gradient_norm: at.gradient,
                seconds: begun.elapsed().as_secs_f64(),
                evaluations: at.iteration,
                parameters: Vec::new(),
                held_out: None,
            };
            observer.event(Event::Iteration(&point)).is_continue()
        })
    })?;
    let exception = outcome.exception.map(|e| e.into_value(py).into_any());
    Ok((outcome.result.map(made), exception))
}

/// Returns the bound of a GP-LVM at these parameters (kernel as JSON), and its gradients by the
/// constrained ones, by path.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // the interpreter's calling convention
pub fn gplvm_bound(
    py: Python<'_>,
    y: Array2<'_>,
    mean: Array2<'_>,
    variance: Array2<'_>,
    points: Array2<'_>,
    kernel: &str,
    noise: f64,
    bound: &str,
) -> PyResult<(f64, BTreeMap<String, Vec<f64>>)> {
    let (y, mean, variance, points) = (owned(&y), owned(&mean), owned(&variance), owned(&points));
    unlocked(py, || {
        let kernel = kernels::parse(kernel, Inputs::unnamed(mean.ncols()))?;
        let of = |a: &Mat<f64>, transform| Param::of_matrix(a.as_ref(), transform);
        let model = Model {
            kernel,
            noise: Param::positive(noise),
            points: of(&points, Transform::Identity),
            mean: of(&mean, Transform::Identity),
            variance: of(&variance, Transform::Exp { lower: 0.0 }),
            term: terms::find(bound)?,
            jitter: Jitter::default(),
            block: None,
        };
        let (value, slopes) = model.evaluate(&Targets::new(y.as_ref())?)?;
        let mut rest = &slopes[..];
        let mut all = BTreeMap::new();
        for (path, param) in listed(|v| model.visit(v)) {
            let (own, later) = rest.split_at(param.len());
            all.insert(path, own.to_vec());
            rest = later;
        }
        Ok((value, all))
    })
}

/// Reads the file of a GP-LVM.
#[pyfunction]
pub fn load_gplvm(py: Python<'_>, path: &str) -> PyResult<Gplvm> {
    Ok(made(unlocked(py, || io::load_gplvm(Path::new(path)))?))
}

/// Reads a GP-LVM from the content of a file.
#[pyfunction]
pub fn gplvm_from_bytes(py: Python<'_>, content: &[u8]) -> PyResult<Gplvm> {
    Ok(made(unlocked(py, || io::gplvm_from_bytes(content))?))
}

#[pymethods]
impl Gplvm {
    /// Returns everything that is known about it, as JSON.
    fn describe(&self) -> String {
        let f = &*self.inner;
        json!({
            "bound": f.bound,
            "status": match f.status.is_final() {
                true => f.status.to_string(),
                false => "stopped after the most iterations allowed, or by hand".to_owned(),
            },
            "converged": matches!(f.status, sparsegp::optim::Status::Converged(_)),
            "emptiness": f.emptiness(),
            "restarts": f.restarts.iter().map(|r| r.is_finite().then_some(*r)).collect::<Vec<_>>(),
            "negative": f.negative,
            "relevance": f.relevance(),
            "noise": f.noise(),
            "kernel": f.model.kernel.to_json(),
            "method": f.model.term.name(),
            "names": f.names,
            "annotations": f.annotations,
        })
        .to_string()
    }

    /// Returns the means and variances of q(X) of the rows of the training.
    fn latent<'py>(&self, py: Python<'py>) -> PyResult<Pair<'py>> {
        let (mean, variance) = unlocked(py, || self.inner.latent())?;
        Ok((matrix(py, mean.as_ref())?, matrix(py, variance.as_ref())?))
    }

    /// Returns the inducing points.
    fn points<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        matrix(py, self.inner.model.points())
    }

    /// Returns means, variances, bounds of log densities and whether they have converged, of new
    /// rows.
    #[allow(clippy::type_complexity)] // the interpreter's calling convention
    fn embed<'py>(
        &self,
        py: Python<'py>,
        y: Array2<'_>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>, Vec<f64>, Vec<bool>)> {
        let y = owned(&y);
        let own = unlocked(py, || self.inner.embed(y.as_ref(), &EmbedOptions::default()))?;
        let (mean, variance) = (matrix(py, own.mean.as_ref())?, matrix(py, own.variance.as_ref())?);
        Ok((mean, variance, own.bounds, own.converged))
    }

    /// Returns the means and variances of the columns' functions at places with variances.
    fn predict<'py>(
        &self,
        py: Python<'py>,
        mean: Array2<'_>,
        variance: Array2<'_>,
    ) -> PyResult<Pair<'py>> {
        let (mean, variance) = (owned(&mean), owned(&variance));
        let (mean, variance) = unlocked(py, || {
            self.inner.predict_f(Uncertain::new(mean.as_ref(), variance.as_ref())?)
        })?;
        Ok((matrix(py, mean.as_ref())?, matrix(py, variance.as_ref())?))
    }

    /// Returns rows with missing cells filled in, and variances of what was.
    fn impute<'py>(&self, py: Python<'py>, y: Array2<'_>) -> PyResult<Pair<'py>> {
        let y = owned(&y);
        let (filled, variance) =
            unlocked(py, || self.inner.impute(y.as_ref(), &EmbedOptions::default()))?;
        Ok((matrix(py, filled.as_ref())?, matrix(py, variance.as_ref())?))
    }

    /// Returns the same with names of the columns, and a text that is kept with it.
    fn named(&self, py: Python<'_>, names: Vec<String>, estimator: String) -> PyResult<Gplvm> {
        let bytes = unlocked(py, || io::gplvm_to_bytes(&self.inner))?;
        let mut copy = unlocked(py, || io::gplvm_from_bytes(&bytes))?;
        copy.names = names;
        copy.annotations.insert("estimator".into(), estimator);
        Ok(made(copy))
    }

    /// Writes it to a file.
    fn save(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        unlocked(py, || io::save_gplvm(&self.inner, Path::new(path)))
    }

    /// Returns the content of its file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = unlocked(py, || io::gplvm_to_bytes(&self.inner))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Returns how pickle makes it again.
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let read = py.import("sparsegp._core")?.getattr("gplvm_from_bytes")?;
        Ok((read, (self.to_bytes(py)?,)))
    }
}

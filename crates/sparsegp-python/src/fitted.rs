//! A fitted model.

use crate::arrays::{Matrix, matrix, owned, stack, vector};
use crate::columns;
use crate::errors::exception;
use crate::pool::unlocked;
use crate::room::room;
use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::json;
use sparsegp::engine::Cpu;
use sparsegp::fit::Of;
use sparsegp::fit::quality::QualityOptions;
use sparsegp::io;
use std::path::Path;
use std::sync::Arc;

type Array1<'py> = PyReadonlyArray1<'py, f64>;
type Array2<'py> = PyReadonlyArray2<'py, f64>;
type Pair<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);
type Term<'py> = (String, usize, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

/// What to do about results that are too large.
pub const FEWER: &str = "ask for fewer rows at a time";
pub const FEWER_DRAWS: &str = "ask for fewer draws, or for fewer rows at a time";
pub const JOINT: &str = "ask for fewer draws or rows; draws at many rows that need no exact joint law are made by functions \
                         (sample_functions), which take no matrix of rows by rows";

/// Refuses functions that there is no memory for.
pub fn room_of_functions(
    posterior: &sparsegp::model::Posterior,
    samples: usize,
    waves: usize,
) -> PyResult<()> {
    let each = waves.saturating_add(posterior.points().nrows());
    let what = format!("{samples} functions of {waves} waves");
    let inputs = posterior.points().ncols() + 2;
    let room_for: [&[usize]; 2] =
        [&[samples, each, posterior.latents()], &[waves, inputs, posterior.latents()]];
    room(&what, &room_for, "ask for fewer functions or fewer waves")
}

fn of(latent: bool) -> Of {
    if latent { Of::Latent } else { Of::Observations }
}

/// A trained and conditioned model.
#[pyclass(frozen, module = "sparsegp._core")]
pub struct Fitted {
    pub inner: Arc<sparsegp::fit::Fitted>,
}

impl Fitted {
    pub fn new(fitted: sparsegp::fit::Fitted) -> Self {
        Self { inner: Arc::new(fitted) }
    }
}

#[pymethods]
impl Fitted {
    /// Returns everything that is known about it, as JSON.
    fn describe(&self) -> String {
        let f = &*self.inner;
        let kernels: Vec<_> = f.model.kernels.iter().map(|k| k.to_json()).collect();
        let mut relevance = vec![0.0; f.measured_names().len()];
        f.model.input_kernels().into_iter().for_each(|kernel| kernel.relevance(&mut relevance));
        json!({
            "method": f.model.method.name(),
            "reason": f.reason,
            "kernels": kernels,
            "likelihood": f.model.likelihood.to_json(),
            "kind": f.model.likelihood.name(),
            "mean": f.model.mean.name(),
            "latents": f.model.likelihood.latents(),
            "normal": f.predicts_normal(),
            "standardises": f.model.likelihood.standardises(),
            "inducing": f.model.inducing_set(0).map_or(0, |points| points.nrows()),
            "inputs": f.measured_names(),
            "input_sd": f.deviation_columns(),
            "columns": f.columns,
            "targets": f.target_names,
            "extra": f.model.likelihood.extra().map(|e| e.name),
            "classes": f.classes.as_ref().map(|c| c.labels()),
            "class_count": f.model.likelihood.classes(),
            "rows": f.rows,
            "seed": f.seed,
            "objective": f.objective(),
            "scaler": f.scaler,
            "report": f.report,
            "warnings": f.warnings,
            "annotations": f.annotations,
            "parameters": f.parameters(),
            "relevance": relevance,
        })
        .to_string()
    }

    /// Returns the inputs that cells of a column of the file become, row by row; `new` to predict at, where kernels may
    /// know groups of no training row, and with `ignore` other categories are taken for one more.
    #[pyo3(signature = (column, cells, new, ignore=false))]
    fn encoded(
        &self,
        column: &str,
        cells: Vec<String>,
        new: bool,
        ignore: bool,
    ) -> PyResult<Vec<Vec<f64>>> {
        columns::encoded(&self.inner, column, &cells, new.then_some(ignore))
    }

    /// Returns the model for rows with the standard deviations of inputs after them, given by place with a name.
    fn with_input_sd(&self, pairs: Vec<(usize, String)>) -> PyResult<Self> {
        let pairs = crate::fit::named(&pairs, self.inner.measured_names())?;
        let fitted = (*self.inner).clone().with_input_deviations_of(&pairs);
        fitted.map(Self::new).map_err(exception)
    }

    /// Returns remarks on rows after the last holiday that the model knows, and on categories of no training row.
    fn remarks(&self, x: PyReadonlyArray2<'_, f64>) -> Vec<String> {
        // the rows are copied for those who may have something to say only
        match columns::may_remark(&self.inner) {
            true => columns::remarks(&self.inner, owned(&x).as_ref()),
            false => Vec::new(),
        }
    }

    /// Refuses a model without predictions in mixed precision.
    fn check_mixed_precision(&self) -> PyResult<()> {
        self.inner.check_mixed_precision().map_err(exception)
    }

    /// Returns the model that predicts in mixed precision where these rows allow it; else itself, and why.
    fn in_mixed_precision(
        &self,
        py: Python<'_>,
        x: Array2<'_>,
    ) -> PyResult<(Self, Option<String>)> {
        let x = Matrix::of(&x);
        let fitted = (*self.inner).clone();
        let (fitted, reason) = unlocked(py, || fitted.in_mixed_precision(x.as_ref()))?;
        Ok((Self::new(fitted), reason))
    }

    /// Returns the model for inputs that are known exactly.
    fn without_input_sd(&self) -> Self {
        match self.inner.input_deviations.is_empty() {
            true => Self { inner: self.inner.clone() },
            false => Self::new((*self.inner).clone().without_input_deviations()),
        }
    }

    /// Returns the same model with other annotations.
    fn annotated(&self, annotations: std::collections::BTreeMap<String, String>) -> Self {
        let mut fitted = (*self.inner).clone();
        fitted.annotations.extend(annotations);
        Self::new(fitted)
    }

    /// Returns the means and variances.
    #[pyo3(signature = (x, *, extra=None, latent=false))]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        x: Array2<'py>,
        extra: Option<Array1<'py>>,
        latent: bool,
    ) -> PyResult<Pair<'py>> {
        let (x, extra) = (Matrix::of(&x), vector(extra.as_ref()));
        let (mean, variance) =
            unlocked(py, || self.inner.predict_with(x.as_ref(), &extra, of(latent)))?;
        Ok((matrix(py, mean.as_ref())?, matrix(py, variance.as_ref())?))
    }

    /// Returns only means, where they are those of the latent function.
    fn predict_mean<'py>(&self, py: Python<'py>, x: Array2<'py>) -> PyResult<Bound<'py, PyAny>> {
        let x = Matrix::of(&x);
        let mean = unlocked(py, || self.inner.predict_mean(x.as_ref()))?;
        matrix(py, mean.as_ref())
    }

    /// Returns the means, and the covariance of the rows for every target.
    #[pyo3(signature = (x, *, extra=None, latent=false))]
    fn predict_covariance<'py>(
        &self,
        py: Python<'py>,
        x: Array2<'py>,
        extra: Option<Array1<'py>>,
        latent: bool,
    ) -> PyResult<Pair<'py>> {
        let (x, extra) = (Matrix::of(&x), vector(extra.as_ref()));
        let n = x.as_ref().nrows();
        let copies = self.inner.posterior.latents() + 2 * self.inner.target_names.len();
        room(&format!("the covariance of {n} rows"), &[&[n, n, copies]], FEWER)?;
        let (mean, all) =
            unlocked(py, || self.inner.predict_covariance(x.as_ref(), &extra, of(latent)))?;
        let all: Vec<_> = all.iter().map(|c| c.as_ref()).collect();
        Ok((matrix(py, mean.as_ref())?, stack(py, &all)?))
    }

    /// Returns the probabilities of the classes.
    fn predict_proba<'py>(&self, py: Python<'py>, x: Array2<'py>) -> PyResult<Bound<'py, PyAny>> {
        let x = Matrix::of(&x);
        let all = unlocked(py, || self.inner.predict_proba(x.as_ref()))?;
        matrix(py, all.as_ref())
    }

    /// Returns the quantiles of observations, one matrix for each level.
    #[pyo3(signature = (x, levels, *, extra=None))]
    fn quantiles<'py>(
        &self,
        py: Python<'py>,
        x: Array2<'py>,
        levels: Vec<f64>,
        extra: Option<Array1<'py>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (x, extra) = (Matrix::of(&x), vector(extra.as_ref()));
        let (n, outputs) = (x.as_ref().nrows(), self.inner.target_names.len());
        let what = format!("{} quantiles of {n} rows", levels.len());
        room(&what, &[&[n, levels.len(), outputs, 2]], FEWER)?;
        let all =
            unlocked(py, || self.inner.quantiles(x.as_ref(), &extra, &levels, Of::Observations))?;
        let all: Vec<_> = all.iter().map(|c| c.as_ref()).collect();
        stack(py, &all)
    }

    /// Draws, one matrix each: of observations, or of latent functions on the model's scale.
    #[pyo3(signature = (x, samples, seed, *, extra=None))]
    fn sample_y<'py>(
        &self,
        py: Python<'py>,
        x: Array2<'py>,
        samples: usize,
        seed: u64,
        extra: Option<Array1<'py>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (x, extra) = (Matrix::of(&x), vector(extra.as_ref()));
        let (n, outputs) = (x.as_ref().nrows(), self.inner.target_names.len());
        let latents = self.inner.posterior.latents();
        let joint = format!("joint draws ({samples}) at {n} rows");
        // covariances with their roots; draws of functions, of observations, and these in order
        room(&joint, &[&[n, n, latents + 1], &[n, samples, latents + 2 * outputs]], JOINT)?;
        let all = unlocked(py, || self.inner.sample_y(x.as_ref(), &extra, samples, seed))?;
        let all: Vec<_> = all.iter().map(|c| c.as_ref()).collect();
        stack(py, &all)
    }

    /// Returns the hyperparameters of every draw, S×H, with their names; no rows where they were not sampled.
    fn hyperparameter_draws<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Vec<String>, Bound<'py, PyAny>)> {
        let names = sparsegp::model::hyperparameter_names(&self.inner.model);
        let all = self.inner.posterior.hyperparameters();
        let rows = sparsegp::linalg::Mat::from_fn(all.len(), names.len(), |s, h| all[s][h]);
        Ok((names, matrix(py, rows.as_ref())?))
    }

    /// Returns how many draws the posterior has; 0 where it was not sampled.
    fn draw_count(&self) -> usize {
        self.inner.posterior.draws().len()
    }

    /// Returns the means of the latent functions given every draw, S×N×L.
    fn predict_of_draws<'py>(
        &self,
        py: Python<'py>,
        x: Array2<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let x = owned(&x);
        let (latents, count) = (self.inner.posterior.latents(), self.draw_count());
        let what = format!("latent functions of {count} draws at {} rows", x.nrows());
        room(&what, &[&[x.nrows(), count, latents, 3]], FEWER)?;
        let all = unlocked(py, || self.inner.predict_of_draws(x.as_ref()))?;
        let all: Vec<_> = all.iter().map(|c| c.as_ref()).collect();
        stack(py, &all)
    }

    /// Draws the same by functions of so many waves each.
    #[pyo3(signature = (x, samples, waves, seed, *, extra=None))]
    fn sample_y_by_functions<'py>(
        &self,
        py: Python<'py>,
        x: Array2<'py>,
        samples: usize,
        waves: usize,
        seed: u64,
        extra: Option<Array1<'py>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (x, extra) = (Matrix::of(&x), vector(extra.as_ref()));
        let (n, outputs) = (x.as_ref().nrows(), self.inner.target_names.len());
        let latents = self.inner.posterior.latents();
        let draws = format!("draws ({samples}) at {n} rows");
        let of_functions: &[usize] =
            &[samples, waves + self.inner.posterior.points().nrows(), latents];
        room(&draws, &[&[n, samples, 2 * latents + 2 * outputs], of_functions], FEWER_DRAWS)?;
        let all = unlocked(py, || {
            self.inner.sample_y_by_functions(x.as_ref(), &extra, samples, waves, seed)
        })?;
        let all: Vec<_> = all.iter().map(|c| c.as_ref()).collect();
        stack(py, &all)
    }

    /// Draws of the latent functions, as functions.
    fn sample_functions(
        &self,
        py: Python<'_>,
        samples: usize,
        waves: usize,
        seed: u64,
    ) -> PyResult<Functions> {
        room_of_functions(&self.inner.posterior, samples, waves)?;
        let functions = unlocked(py, || self.inner.sample_functions(samples, waves, seed))?;
        Ok(Functions { functions, fitted: Some(self.inner.clone()) })
    }

    /// Returns the log densities of targets.
    #[pyo3(signature = (x, y, *, extra=None))]
    fn log_density<'py>(
        &self,
        py: Python<'py>,
        x: Array2<'py>,
        y: Array2<'py>,
        extra: Option<Array1<'py>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (x, y, extra) = (Matrix::of(&x), Matrix::of(&y), vector(extra.as_ref()));
        let density = unlocked(py, || self.inner.log_density(x.as_ref(), y.as_ref(), &extra))?;
        let rows = density.len();
        crate::arrays::array(py, density, &[rows])
    }

    /// Returns every training row as the others predict it: means, variances and log densities, N×P
    /// each.
    #[pyo3(signature = (x, y, *, weights=None, extra=None))]
    fn leave_one_out<'py>(
        &self,
        py: Python<'py>,
        x: Array2<'py>,
        y: Array2<'py>,
        weights: Option<Array1<'py>>,
        extra: Option<Array1<'py>>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let data = crate::fit::known(&self.inner, &x, &y, weights.as_ref(), extra.as_ref())?;
        let found = unlocked(py, || self.inner.leave_one_out(&data))?;
        let part = |a: &sparsegp::linalg::Mat<f64>| matrix(py, a.as_ref());
        Ok((part(&found.mean)?, part(&found.variance)?, part(&found.log_density)?))
    }

    /// Returns the means and variances of what every hidden layer gives.
    fn hidden_layers<'py>(&self, py: Python<'py>, x: Array2<'py>) -> PyResult<Vec<Pair<'py>>> {
        let x = owned(&x);
        let found = unlocked(py, || self.inner.hidden_layers(x.as_ref()))?;
        found.iter().map(|(m, v)| Ok((matrix(py, m.as_ref())?, matrix(py, v.as_ref())?))).collect()
    }

    /// Returns how well the inducing points stand for rows, as JSON.
    fn inducing_quality(
        &self,
        py: Python<'_>,
        x: Array2<'_>,
        y: Array2<'_>,
        fraction: f64,
    ) -> PyResult<String> {
        let data = crate::fit::known(&self.inner, &x, &y, None, None)?;
        let options = QualityOptions { fraction, ..QualityOptions::default() };
        let engine = Cpu::default();
        let found = unlocked(py, || self.inner.inducing_quality(&data, &engine, &options))?;
        Ok(found.to_json().to_string())
    }

    /// Returns the slopes of means and variances of the latent functions in the inputs, L×N×D each.
    fn predict_gradients<'py>(&self, py: Python<'py>, x: Array2<'py>) -> PyResult<Pair<'py>> {
        let x = Matrix::of(&x);
        let found = unlocked(py, || self.inner.predict_gradients(x.as_ref()))?;
        slopes(py, &found)
    }

    /// Returns the name, latent function, means and variances of every term.
    fn predict_terms<'py>(
        &self,
        py: Python<'py>,
        x: Array2<'py>,
        centred: bool,
    ) -> PyResult<Vec<Term<'py>>> {
        let x = Matrix::of(&x);
        let all = unlocked(py, || self.inner.predict_terms(x.as_ref(), centred))?;
        let one = |term: sparsegp::model::PredictedTerm| {
            let [mean, variance] =
                [term.mean, term.variance].map(|own| PyArray1::from_vec(py, own));
            (term.name, term.latent, mean, variance)
        };
        Ok(all.into_iter().map(one).collect())
    }

    /// Returns the inducing points in the data's units, if there are any.
    fn inducing_points<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let points = self.inner.inducing_points().map_err(exception)?;
        points.map(|z| matrix(py, z.as_ref())).transpose()
    }

    /// Writes a model file.
    fn save(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        unlocked(py, || io::save(&self.inner, Path::new(path)))
    }

    /// Returns the content of a model file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = unlocked(py, || io::to_bytes(&self.inner))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Returns how pickle makes it again.
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let read = py.import("sparsegp._core")?.getattr("from_bytes")?;
        Ok((read, (self.to_bytes(py)?,)))
    }

    /// Returns the model for closer work, on its own (standardised) scale.
    fn model(&self) -> crate::model::Model {
        crate::model::Model::fitted(&self.inner)
    }

    /// Returns inputs on the model's scale.
    fn scale_x<'py>(&self, py: Python<'py>, x: Array2<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut x = owned(&x);
        self.inner.scaler.scale_x(x.as_mut()).map_err(exception)?;
        matrix(py, x.as_ref())
    }
}

/// Draws of latent functions.
#[pyclass(frozen, module = "sparsegp._core")]
pub struct Functions {
    functions: sparsegp::model::Functions,
    /// Whose units they have; else they are on the model's scale.
    fitted: Option<Arc<sparsegp::fit::Fitted>>,
}

impl Functions {
    /// Wraps functions on the model's scale.
    pub fn of_model(functions: sparsegp::model::Functions) -> Self {
        Self { functions, fitted: None }
    }
}

#[pymethods]
impl Functions {
    /// Returns the number of draws.
    fn __len__(&self) -> usize {
        self.functions.len()
    }

    /// Returns the values at inputs, S×N×L.
    fn evaluate<'py>(&self, py: Python<'py>, x: Array2<'py>) -> PyResult<Bound<'py, PyAny>> {
        let x = owned(&x);
        let latents = self.functions.posterior().latents();
        let what = format!("values of {} functions at {} rows", self.functions.len(), x.nrows());
        room(&what, &[&[x.nrows(), self.functions.len(), latents, 3]], FEWER)?;
        let values = unlocked(py, || {
            if let Some(fitted) = &self.fitted {
                return fitted.evaluate_functions(&self.functions, x.as_ref());
            }
            let parts = sparsegp::linalg::in_parts(x.as_ref(), |_, x| self.functions.evaluate(x))?;
            let latents = self.functions.posterior().latents();
            let one = |s: usize| {
                let own: Vec<_> = parts.iter().map(|part| part[s].clone()).collect();
                sparsegp::linalg::stacked(&own, x.nrows(), latents)
            };
            Ok((0..self.functions.len()).map(one).collect())
        })?;
        let values: Vec<_> = values.iter().map(|v| v.as_ref()).collect();
        stack(py, &values)
    }
}

/// Returns slopes as arrays.
pub fn slopes<'py>(
    py: Python<'py>,
    found: &sparsegp::model::InputGradients,
) -> PyResult<Pair<'py>> {
    let part = |all: &[sparsegp::linalg::Mat<f64>]| {
        stack(py, &all.iter().map(|a| a.as_ref()).collect::<Vec<_>>())
    };
    Ok((part(&found.mean)?, part(&found.variance)?))
}

/// Reads a model file.
#[pyfunction]
pub fn load(py: Python<'_>, path: &str) -> PyResult<Fitted> {
    unlocked(py, || io::load(Path::new(path))).map(Fitted::new)
}

/// Reads a model from the content of its file.
#[pyfunction]
pub fn from_bytes(py: Python<'_>, content: &[u8]) -> PyResult<Fitted> {
    unlocked(py, || io::from_bytes(content)).map(Fitted::new)
}

//! Models for people who know Gaussian processes: every part by hand, on the scale of the data given.

mod rows;
mod values;

use crate::arrays::{Matrix, array, matrices, matrix, owned, stack, vector};
use crate::errors::{bug, exception, read_json};
use crate::fitted::{FEWER, JOINT};
use crate::pool::unlocked;
use crate::registry;
use crate::room::room;
use crate::training::{Options, tying};
use crate::watch::watched;
use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyReadonlyArray3};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rows::{Columns, check_targets, finite};
use serde::Deserialize;
use serde_json::json;
use sparsegp::data::{InMemory, Source};
use sparsegp::engine::{Cpu, Want};
use sparsegp::fit::quality::{QualityOptions, quality};
use sparsegp::linalg::{Jitter, Mat, MatRef};
use sparsegp::linalg::{in_parts, stacked};
use sparsegp::methods::{self, Keeps, Uncollapsed};
use sparsegp::model::{Posterior, inducing_param};
use sparsegp::params::{Param, Prior, remarks};
use sparsegp::train::{Deadline, Surroundings, natural_step, train, train_batches};
use sparsegp::variational::Variational;
use sparsegp::{Error, means};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use values::{stored, values};

type Array1<'py> = PyReadonlyArray1<'py, f64>;
type Array2<'py> = PyReadonlyArray2<'py, f64>;
type Pair<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

/// What a model is made of.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    method: String,
    /// One for all latent functions, or one for each.
    kernels: Vec<String>,
    likelihood: String,
    mean: serde_json::Value,
    inputs: usize,
    outputs: usize,
    /// Rows, for the methods that keep something of each.
    rows: usize,
    whiten: bool,
    diagonal: bool,
    tying: Option<String>,
    /// An absolute number, added once; else a relative one that is raised where needed.
    jitter: Option<f64>,
}

/// The model, and its posterior as long as nothing changes.
struct Held {
    model: sparsegp::model::Model,
    posterior: Option<Arc<Posterior>>,
}

/// A Gaussian-process model.
#[pyclass(frozen, module = "sparsegp._core")]
pub struct Model {
    held: Mutex<Held>,
    columns: Columns,
    /// With its memory, for the next evaluation.
    engine: Cpu,
}

impl Model {
    /// The model in a fitted one.
    pub fn fitted(fitted: &sparsegp::fit::Fitted) -> Self {
        let columns =
            Columns { inputs: fitted.input_names.len(), outputs: fitted.target_names.len() };
        let posterior = Some(Arc::new(fitted.posterior.clone()));
        let held = Mutex::new(Held { model: fitted.model.clone(), posterior });
        Self { held, columns, engine: Cpu::default() }
    }

    /// The lock is never held while waiting for the interpreter.
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A copy of the model, and its posterior if that is known.
    fn copied(&self) -> (sparsegp::model::Model, Option<Arc<Posterior>>) {
        let held = self.held();
        (held.model.clone(), held.posterior.clone())
    }

    /// Puts a changed model in place.
    fn replace(&self, model: sparsegp::model::Model) {
        *self.held() = Held { model, posterior: None };
    }

    fn known(&self) -> PyResult<Arc<Posterior>> {
        self.held().posterior.clone().ok_or_else(|| {
            exception(Error::Invalid("the model is not conditioned: call `condition` first".into()))
        })
    }

    /// Means and such of every row, made in parts.
    fn by_parts<'py>(
        &self,
        py: Python<'py>,
        x: &Array2<'py>,
        extra: Option<&Array1<'py>>,
        predict: impl Fn(&Posterior, MatRef<'_, f64>, &[f64]) -> sparsegp::Result<(Mat<f64>, Mat<f64>)>
        + Sync
        + Send,
        columns: impl Fn(&Posterior) -> usize,
    ) -> PyResult<Pair<'py>> {
        let posterior = self.known()?;
        let (x, extra) = (Matrix::of(x), vector(extra));
        let rows = x.as_ref().nrows();
        finite(x.as_ref())?;
        if !extra.is_empty() && extra.len() != rows {
            let text = format!("{} further numbers for {rows} rows", extra.len());
            return Err(exception(Error::Invalid(text)));
        }
        let columns = columns(&posterior);
        let (mean, variance) = unlocked(py, || {
            let parts = in_parts(x.as_ref(), |start, rows| {
                let own = if extra.is_empty() { &[] } else { &extra[start..start + rows.nrows()] };
                predict(&posterior, rows, own)
            })?;
            let (means, variances): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
            Ok((stacked(&means, rows, columns), stacked(&variances, rows, columns)))
        })?;
        Ok((matrix(py, mean.as_ref())?, matrix(py, variance.as_ref())?))
    }
}

/// Where a parameter of this path is.
fn find<'a>(model: &'a mut sparsegp::model::Model, path: &str) -> PyResult<&'a mut Param> {
    let names: Vec<String> = model.params().into_iter().map(|(name, _)| name).collect();
    let Some((_, param)) = model.params_mut().into_iter().find(|(name, _)| name == path) else {
        let nearest = sparsegp::error::nearest(path, names.iter().map(String::as_str));
        let error = Error::UnknownParameter { path: path.into(), nearest };
        return Err(PyKeyError::new_err(error.to_string()));
    };
    Ok(param)
}

#[pymethods]
impl Model {
    #[new]
    #[pyo3(signature = (spec, points=None, q_mu=None, q_sqrt=None))]
    fn new(
        spec: &str,
        points: Option<Vec<Array2<'_>>>,
        q_mu: Option<Array2<'_>>,
        q_sqrt: Option<PyReadonlyArray3<'_, f64>>,
    ) -> PyResult<Self> {
        let spec: Spec = read_json(spec)?;
        let likelihood = registry::likelihood(&spec.likelihood)?;
        if spec.outputs == 0 {
            return Err(exception(Error::Invalid(
                "num_outputs is 0; it must be at least 1".into(),
            )));
        }
        let kernels = spec
            .kernels
            .iter()
            .map(|json| registry::kernel(json, spec.inputs))
            .collect::<PyResult<Vec<_>>>()?;
        let entry = methods::find(&spec.method).map_err(exception)?;
        let points: Vec<Mat<f64>> = points.unwrap_or_default().iter().map(owned).collect();
        if let Some(jitter) = spec.jitter.filter(|j| !(*j >= 0.0 && j.is_finite())) {
            let text = format!("jitter is {jitter}; it must be a number from 0");
            return Err(exception(Error::Invalid(text)));
        }
        if entry.method.architecture().is_some() {
            let text =
                "a deep model is fitted by an estimator, such as GPRegressor(method=\"deep\")";
            return Err(exception(Error::Invalid(text.into())));
        }
        let seen = likelihood.latents() * spec.outputs;
        let mut model = sparsegp::model::Model {
            kernels,
            mean: means::from_json(&spec.mean, spec.inputs, seen).map_err(exception)?,
            likelihood,
            inducing: points.iter().map(|z| inducing_param(z.as_ref())).collect(),
            q: None,
            method: entry.method,
            jitter: spec.jitter.map_or_else(Jitter::default, Jitter::Absolute),
            hidden: Vec::new(),
        };
        let (m, latents) = (points.first().map_or(0, Mat::nrows), model.latents(spec.outputs));
        let tying = spec.tying.as_deref().map(tying).transpose()?.unwrap_or(FULL);
        if let Some(method) = entry.method.with_q() {
            let start = method.start([spec.rows, m, latents], tying, spec.diagonal);
            let q = match (method.keeps, &q_mu, &q_sqrt) {
                (Keeps::Pseudo | Keeps::Relaxed, Some(mu), _) => {
                    let (mu, mut q) = (owned(mu), start);
                    let all = (0..mu.ncols()).flat_map(|j| (0..mu.nrows()).map(move |i| (i, j)));
                    let all: Vec<f64> = all.map(|(i, j)| mu[(i, j)]).collect();
                    q.first.set("q.mu", &all).map_err(exception)?;
                    q
                }
                (Keeps::Moments, mu, root) if mu.is_some() || root.is_some() || !spec.whiten => {
                    let mu = mu.as_ref().map_or_else(|| Mat::zeros(m, latents), owned);
                    let roots = match root {
                        Some(root) => matrices(root),
                        None => identities(m, latents, spec.diagonal),
                    };
                    let q = Variational::new(mu.as_ref(), &roots, spec.diagonal, spec.whiten);
                    let q = q.map_err(exception)?;
                    if method.bound.has_factors() { q.with_factors() } else { q }
                }
                _ => start,
            };
            model.q = Some(q);
        }
        model.check(spec.inputs, spec.outputs).map_err(exception)?;
        let columns = Columns { inputs: spec.inputs, outputs: spec.outputs };
        let held = Mutex::new(Held { model, posterior: None });
        Ok(Self { held, columns, engine: Cpu::default() })
    }

    /// Paths with what is to be told of each parameter, as JSON.
    fn describe(&self) -> String {
        let held = self.held();
        let params: Vec<_> = held
            .model
            .params()
            .into_iter()
            .map(|(path, p)| {
                json!({
                    "path": path,
                    "shape": p.shape().to_string(),
                    "transform": p.transform().to_string(),
                    "prior": p.prior,
                    "frozen": p.frozen,
                })
            })
            .collect();
        json!({
            "method": held.model.method.name(),
            "likelihood": held.model.likelihood.name(),
            "specification": held.model.likelihood.to_json(),
            "latents": held.model.likelihood.latents(),
            "outputs": self.columns.outputs,
            "parameters": params,
        })
        .to_string()
    }

    /// A copy.
    fn copy(&self) -> Self {
        let (model, posterior) = self.copied();
        let held = Mutex::new(Held { model, posterior });
        Self { held, columns: self.columns, engine: Cpu::default() }
    }

    /// Value of a parameter.
    fn get<'py>(&self, py: Python<'py>, path: &str) -> PyResult<Bound<'py, PyAny>> {
        let (shape, value) = {
            let mut held = self.held();
            let param = find(&mut held.model, path)?;
            (param.shape(), param.value().to_vec())
        };
        values(py, shape, &value)
    }

    /// Sets a parameter; the values are flat.
    fn set(&self, path: &str, value: Array1<'_>) -> PyResult<()> {
        let given = vector(Some(&value));
        let mut held = self.held();
        let param = find(&mut held.model, path)?;
        let given = stored(path, param.shape(), given)?;
        param.set(path, &given).map_err(exception)?;
        held.posterior = None;
        Ok(())
    }

    /// Freezes or frees all parameters of a group.
    fn freeze(&self, pattern: &str, frozen: bool) -> PyResult<()> {
        self.held().model.freeze(pattern, frozen).map_err(exception)
    }

    /// Gives a parameter a prior, as JSON, or takes it away.
    #[pyo3(signature = (path, prior))]
    fn set_prior(&self, path: &str, prior: Option<&str>) -> PyResult<()> {
        let prior: Option<Prior> = prior.map(read_json).transpose()?;
        if let Some(prior) = &prior {
            let wrong = |reason| exception(Error::InvalidParameter { path: path.into(), reason });
            prior.check().map_err(wrong)?;
        }
        find(&mut self.held().model, path)?.prior = prior;
        Ok(())
    }

    /// Sum of the log densities of the priors.
    fn log_prior(&self) -> f64 {
        self.held().model.log_prior()
    }

    /// The objective at the present parameters, without priors, and, if `gradients`, its gradient with
    /// respect to every constrained parameter, by path.
    #[pyo3(signature = (x, y, *, weights=None, extra=None, population=None, gradients=true))]
    #[allow(clippy::too_many_arguments, clippy::type_complexity)]
    fn evaluate<'py>(
        &self,
        py: Python<'py>,
        x: Array2<'py>,
        y: Array2<'py>,
        weights: Option<Array1<'py>>,
        extra: Option<Array1<'py>>,
        population: Option<usize>,
        gradients: bool,
    ) -> PyResult<(f64, Option<Bound<'py, PyDict>>)> {
        let (model, _) = self.copied();
        let data = rows::rows(
            (&model, self.columns),
            &x,
            &y,
            weights.as_ref(),
            extra.as_ref(),
            population,
        )?;
        if let (Ok(method), false) = (Uncollapsed::of(model.method), gradients) {
            let value =
                unlocked(py, || Ok(method.step(&model, &self.engine, &data, Want::Value)?.value))?;
            return Ok((value, None));
        }
        let evaluation = unlocked(py, || model.evaluate(&self.engine, &data))?;
        if !gradients {
            return Ok((evaluation.value, None));
        }
        let all = PyDict::new(py);
        let mut rest = &evaluation.gradient[..];
        for (path, param) in model.params() {
            let (own, tail) = rest.split_at(param.len());
            rest = tail;
            all.set_item(path, values(py, param.shape(), own)?)?;
        }
        Ok((evaluation.value, Some(all)))
    }

    /// An upper bound on the log evidence, of models with a collapsed bound.
    fn upper_bound(&self, py: Python<'_>, x: Array2<'_>, y: Array2<'_>) -> PyResult<f64> {
        let (model, _) = self.copied();
        let data = rows::rows((&model, self.columns), &x, &y, None, None, None)?;
        let engine = &self.engine;
        unlocked(py, || Ok(methods::upper_bound(&model, engine, &data)?.value))
    }

    /// How well the inducing points stand for rows, as JSON.
    #[pyo3(signature = (x, y, fraction, *, weights=None, extra=None))]
    fn inducing_quality(
        &self,
        py: Python<'_>,
        x: Array2<'_>,
        y: Array2<'_>,
        fraction: f64,
        weights: Option<Array1<'_>>,
        extra: Option<Array1<'_>>,
    ) -> PyResult<String> {
        let (model, _) = self.copied();
        let data =
            rows::rows((&model, self.columns), &x, &y, weights.as_ref(), extra.as_ref(), None)?;
        let options = QualityOptions { fraction, ..QualityOptions::default() };
        let engine = &self.engine;
        let found = unlocked(py, || quality(&model, engine, &data, &options))?;
        Ok(found.to_json().to_string())
    }

    /// Moves q by a natural-gradient step.
    #[pyo3(signature = (x, y, rate, *, weights=None, extra=None, population=None))]
    #[allow(clippy::too_many_arguments)]
    fn natural_gradient_step(
        &self,
        py: Python<'_>,
        x: Array2<'_>,
        y: Array2<'_>,
        rate: f64,
        weights: Option<Array1<'_>>,
        extra: Option<Array1<'_>>,
        population: Option<usize>,
    ) -> PyResult<f64> {
        if !(rate > 0.0 && rate <= 1.0) {
            let text = format!("the step of q is {rate}; it must be above 0 and at most 1");
            return Err(exception(Error::Invalid(text)));
        }
        let (mut model, _) = self.copied();
        let frozen = |q: &Variational| q.tying().is_none() && (q.first.frozen || q.second.frozen);
        if model.q.as_ref().is_some_and(frozen) {
            let text = "q is frozen: unfreeze(\"q\") before it is moved";
            return Err(exception(Error::Invalid(text.into())));
        }
        let data = rows::rows(
            (&model, self.columns),
            &x,
            &y,
            weights.as_ref(),
            extra.as_ref(),
            population,
        )?;
        let value = unlocked(py, || natural_step(&mut model, &self.engine, &data, rate))?;
        self.replace(model);
        Ok(value)
    }

    /// Trains; `options` and the report are JSON. With a size of minibatches by Adam, else on all rows.
    #[pyo3(signature = (x, y, options, *, weights=None, extra=None, population=None, callback=None))]
    #[allow(clippy::too_many_arguments)]
    fn optimise(
        &self,
        py: Python<'_>,
        x: Array2<'_>,
        y: Array2<'_>,
        options: &str,
        weights: Option<Array1<'_>>,
        extra: Option<Array1<'_>>,
        population: Option<usize>,
        callback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<(String, Option<Py<PyAny>>)> {
        let options: Options = read_json(options)?;
        let (model, _) = self.copied();
        let data = rows::rows(
            (&model, self.columns),
            &x,
            &y,
            weights.as_ref(),
            extra.as_ref(),
            population,
        )?;
        let (whole, stochastic) = (options.whole()?, options.stochastic()?);
        let size = options.batch_size();
        let seed = options.seed();
        let limit = options.time_limit().unwrap_or(f64::INFINITY);
        let outcome = watched(py, callback.as_ref(), |engine, observer| {
            let mut model = model;
            let mut deadline = Deadline::new(limit, observer);
            let observer = &mut deadline;
            let mut report = match size {
                Some(size) => {
                    let mut batches = data.batches(size.min(data.rows()), seed)?;
                    let around = Surroundings::default();
                    train_batches(&mut model, engine, &mut *batches, &stochastic, around, observer)?
                }
                None => train(&mut model, engine, &data, &whole, observer)?,
            };
            deadline.report(&mut report);
            Ok((model, report))
        })?;
        let raised = outcome.exception.map(|e| e.into_value(py).into_any());
        let Some((model, report)) = outcome.result else { return Ok(("null".into(), raised)) };
        self.replace(model);
        let report = serde_json::to_string(&report).map_err(|e| bug(&e.to_string()))?;
        Ok((report, raised))
    }

    /// What to say of parameters that are at bounds that they were given.
    fn at_bounds(&self) -> Vec<String> {
        remarks(&self.held().model.params())
    }

    /// Whether the posterior is known.
    #[getter]
    fn is_conditioned(&self) -> bool {
        self.held().posterior.is_some()
    }

    /// Finds the posterior at the present parameters; a q that is a parameter needs no data.
    #[pyo3(signature = (x=None, y=None, *, weights=None, extra=None))]
    fn condition(
        &self,
        py: Python<'_>,
        x: Option<Array2<'_>>,
        y: Option<Array2<'_>>,
        weights: Option<Array1<'_>>,
        extra: Option<Array1<'_>>,
    ) -> PyResult<()> {
        let (model, known) = self.copied();
        if known.is_some() {
            return Ok(());
        }
        let posterior = match (x, y) {
            (Some(x), Some(y)) => {
                let data = rows::rows(
                    (&model, self.columns),
                    &x,
                    &y,
                    weights.as_ref(),
                    extra.as_ref(),
                    None,
                )?;
                let engine = &self.engine;
                unlocked(py, || {
                    let mut model = model;
                    if let Ok(method) = Uncollapsed::of(model.method) {
                        method.tie(&mut model, engine, &data)?;
                    }
                    model.posterior(engine, &data)
                })?
            }
            _ => unlocked(py, || Posterior::of_q(&model))?,
        };
        self.held().posterior = Some(Arc::new(posterior));
        Ok(())
    }

    /// Means and variances of the latent functions.
    fn predict_f<'py>(&self, py: Python<'py>, x: Array2<'py>) -> PyResult<Pair<'py>> {
        self.by_parts(py, &x, None, |p, x, _| p.predict_f(x), Posterior::latents)
    }

    /// Means N×L, and covariances L×N×N.
    fn predict_f_full<'py>(&self, py: Python<'py>, x: Array2<'py>) -> PyResult<Pair<'py>> {
        let posterior = self.known()?;
        let x = owned(&x);
        let (n, latents) = (x.nrows(), posterior.latents());
        room(&format!("the covariance of {n} rows"), &[&[n, n, 2 * latents + 1]], FEWER)?;
        let (mean, all) = unlocked(py, || posterior.predict_f_full(x.as_ref()))?;
        let all: Vec<_> = all.iter().map(|c| c.as_ref()).collect();
        Ok((matrix(py, mean.as_ref())?, stack(py, &all)?))
    }

    /// Means and variances of the latent functions by q(f | u), which takes the rows (x, y).
    fn predict_high_cost<'py>(
        &self,
        py: Python<'py>,
        x: Array2<'py>,
        y: Array2<'py>,
        new: Array2<'py>,
    ) -> PyResult<Pair<'py>> {
        let (model, _) = self.copied();
        let data = rows::rows((&model, self.columns), &x, &y, None, None, None)?;
        let new = owned(&new);
        finite(new.as_ref())?;
        let engine = &self.engine;
        let (mean, variance) = unlocked(py, || {
            let costly = methods::HighCost::new(&model, engine, &data)?;
            let parts = in_parts(new.as_ref(), |_, x| costly.predict_f(x))?;
            let (means, variances): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
            let latents = costly.posterior().latents();
            let whole = |parts: &[Mat<f64>]| stacked(parts, new.nrows(), latents);
            Ok((whole(&means), whole(&variances)))
        })?;
        Ok((matrix(py, mean.as_ref())?, matrix(py, variance.as_ref())?))
    }

    /// Slopes of means and variances of the latent functions in the inputs, L×N×D each.
    fn predict_gradients<'py>(&self, py: Python<'py>, x: Array2<'py>) -> PyResult<Pair<'py>> {
        let posterior = self.known()?;
        let x = owned(&x);
        finite(x.as_ref())?;
        let found = unlocked(py, || posterior.predict_gradients(x.as_ref()))?;
        crate::fitted::slopes(py, &found)
    }

    /// Every row as the others predict it.
    #[pyo3(signature = (x, y, *, weights=None, extra=None))]
    fn leave_one_out<'py>(
        &self,
        py: Python<'py>,
        x: Array2<'py>,
        y: Array2<'py>,
        weights: Option<Array1<'py>>,
        extra: Option<Array1<'py>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let posterior = self.known()?;
        let (model, _) = self.copied();
        let data =
            rows::rows((&model, self.columns), &x, &y, weights.as_ref(), extra.as_ref(), None)?;
        let found = unlocked(py, || posterior.leave_one_out(&model, &data))?;
        let all = PyDict::new(py);
        for (name, part) in [
            ("f_mean", &found.f_mean),
            ("f_variance", &found.f_variance),
            ("mean", &found.mean),
            ("variance", &found.variance),
            ("log_density", &found.log_density),
        ] {
            all.set_item(name, matrix(py, part.as_ref())?)?;
        }
        Ok(all)
    }

    /// Means and variances of observations.
    #[pyo3(signature = (x, *, extra=None))]
    fn predict_y<'py>(
        &self,
        py: Python<'py>,
        x: Array2<'py>,
        extra: Option<Array1<'py>>,
    ) -> PyResult<Pair<'py>> {
        self.by_parts(py, &x, extra.as_ref(), |p, x, e| p.predict_y(x, e), Posterior::outputs)
    }

    /// Log densities of the rows of targets.
    #[pyo3(signature = (x, y, *, extra=None))]
    fn predict_log_density<'py>(
        &self,
        py: Python<'py>,
        x: Array2<'py>,
        y: Array2<'py>,
        extra: Option<Array1<'py>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let posterior = self.known()?;
        let (x, y, extra) = (Matrix::of(&x), Matrix::of(&y), vector(extra.as_ref()));
        let rows = x.as_ref().nrows();
        if y.as_ref().nrows() != rows || !extra.is_empty() && extra.len() != rows {
            let text = format!("{} targets for {rows} rows", y.as_ref().nrows());
            return Err(exception(Error::Invalid(text)));
        }
        finite(x.as_ref())?;
        {
            let held = self.held();
            let rows = InMemory {
                x: Mat::zeros(rows, 0),
                y: y.to_owned(),
                weights: Vec::new(),
                extra: extra.clone(),
            };
            check_targets(&held.model, &rows)?;
        }
        let parts = unlocked(py, || {
            in_parts(x.as_ref(), |start, x| {
                let y = y.as_ref().subrows(start, x.nrows());
                let own = if extra.is_empty() { &[] } else { &extra[start..start + x.nrows()] };
                posterior.predict_log_density(x, y, own)
            })
        })?;
        array(py, parts.concat(), &[rows])
    }

    /// Probabilities of the classes, N×C, of one target column.
    fn predict_proba<'py>(&self, py: Python<'py>, x: Array2<'py>) -> PyResult<Bound<'py, PyAny>> {
        let posterior = self.known()?;
        let x = Matrix::of(&x);
        finite(x.as_ref())?;
        let x = x.as_ref();
        let parts = unlocked(py, || in_parts(x, |_, x| posterior.predict_proba(x)))?;
        // none of no rows
        let classes = match parts.first() {
            Some(part) => part.ncols(),
            None => posterior
                .predict_proba(Mat::zeros(0, x.ncols()).as_ref())
                .map_err(exception)?
                .ncols(),
        };
        matrix(py, stacked(&parts, x.nrows(), classes).as_ref())
    }

    /// Joint draws of the latent functions, S×N×L.
    fn predict_f_samples<'py>(
        &self,
        py: Python<'py>,
        x: Array2<'py>,
        samples: usize,
        seed: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let posterior = self.known()?;
        let x = owned(&x);
        let (n, latents) = (x.nrows(), posterior.latents());
        let joint = format!("joint draws ({samples}) at {n} rows");
        room(&joint, &[&[n, n, latents + 1], &[n, samples, 2 * latents]], JOINT)?;
        let draws = unlocked(py, || {
            let mut rng = sparsegp::rng::stream(seed, "samples of latent functions");
            posterior.sample_f(x.as_ref(), samples, &mut rng)
        })?;
        let draws: Vec<_> = draws.iter().map(|d| d.as_ref()).collect();
        stack(py, &draws)
    }

    /// Draws of the latent functions, as functions of so many waves each.
    fn sample_functions(
        &self,
        py: Python<'_>,
        samples: usize,
        waves: usize,
        seed: u64,
    ) -> PyResult<crate::fitted::Functions> {
        let posterior = self.known()?;
        crate::fitted::room_of_functions(&posterior, samples, waves)?;
        let functions = unlocked(py, || {
            let mut rng = sparsegp::rng::stream(seed, "functions");
            posterior.sample_functions(samples, waves, &mut rng)
        })?;
        Ok(crate::fitted::Functions::of_model(functions))
    }

    /// Whitened mean of q, M×L, and the lower roots of its whitened covariances, L×M×M (one where the
    /// latent functions share it; none for exact inference).
    fn q<'py>(&self, py: Python<'py>) -> PyResult<Pair<'py>> {
        let posterior = self.known()?;
        Ok((matrix(py, posterior.q_mu())?, stack(py, &posterior.q_sqrt())?))
    }

    /// Mean and covariances of the inducing variables u; none for exact inference.
    fn q_u<'py>(&self, py: Python<'py>) -> PyResult<Option<Pair<'py>>> {
        let posterior = self.known()?;
        let Some((mean, all)) = unlocked(py, || Ok(posterior.q_u()))? else { return Ok(None) };
        let all: Vec<_> = all.iter().map(|c| c.as_ref()).collect();
        Ok(Some((matrix(py, mean.as_ref())?, stack(py, &all)?)))
    }
}

/// How sites are tied unless something else is asked for.
const FULL: sparsegp::variational::Tying = sparsegp::variational::Tying::Natural;

/// Identity roots.
fn identities(m: usize, latents: usize, diagonal: bool) -> Vec<Mat<f64>> {
    match diagonal {
        true => vec![Mat::from_fn(m, latents, |_, _| 1.0)],
        false => vec![Mat::identity(m, m); latents],
    }
}

//! Models for people who know Gaussian processes: every part by hand, on the scale of the data given.

mod build;
mod predictions;
mod rows;
mod values;

use crate::arrays::{matrix, owned, stack, vector};
use crate::errors::{bug, exception, read_json};
use crate::pool::unlocked;
use crate::training::Options;
use crate::watch::watched;
use build::built;
use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyReadonlyArray3};
use predictions::{
    by_parts, high_cost, joint_draws, left_out, log_density, probabilities, with_covariances,
};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rows::{Columns, check_targets, finite};
use serde_json::json;
use sparsegp::Error;
use sparsegp::data::{InMemory, Sample, Source};
use sparsegp::engine::{Cpu, Want};
use sparsegp::fit::quality::{QualityOptions, quality};
use sparsegp::linalg::MatRef;
use sparsegp::methods::{self, Uncollapsed};
use sparsegp::model::Posterior;
use sparsegp::params::{Param, Prior, remarks};
use sparsegp::train::{Deadline, Surroundings, natural_step, train, train_batches};
use sparsegp::variational::Variational;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use values::{by_path, stored, values};

type Array1<'py> = PyReadonlyArray1<'py, f64>;
type Array2<'py> = PyReadonlyArray2<'py, f64>;
type Pair<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

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
    /// Creates the model in a fitted one.
    pub fn fitted(fitted: &sparsegp::fit::Fitted) -> Self {
        let columns =
            Columns { inputs: fitted.input_names.len(), outputs: fitted.target_names.len() };
        let posterior = Some(Arc::new(fitted.posterior.clone()));
        let held = Mutex::new(Held { model: fitted.model.clone(), posterior });
        Self { held, columns, engine: Cpu::default() }
    }

    /// Returns the lock, which is never held while waiting for the interpreter.
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a copy of the model, and its posterior if that is known.
    fn copied(&self) -> (sparsegp::model::Model, Option<Arc<Posterior>>) {
        let held = self.held();
        (held.model.clone(), held.posterior.clone())
    }

    /// Puts a changed model in place.
    fn replace(&self, model: sparsegp::model::Model) {
        *self.held() = Held { model, posterior: None };
    }

    /// Returns rows with their weights and further numbers.
    fn rows(
        &self,
        model: &sparsegp::model::Model,
        [x, y]: [&Array2<'_>; 2],
        [weights, extra]: [Option<&Array1<'_>>; 2],
        population: Option<usize>,
    ) -> PyResult<Sample> {
        rows::rows((model, self.columns), x, y, weights, extra, population)
    }

    fn known(&self) -> PyResult<Arc<Posterior>> {
        self.held().posterior.clone().ok_or_else(|| {
            exception(Error::Invalid("the model is not conditioned: call `condition` first".into()))
        })
    }
}

/// Returns the parameter of this path.
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
        let (model, columns) = built(spec, points, q_mu, q_sqrt)?;
        let held = Mutex::new(Held { model, posterior: None });
        Ok(Self { held, columns, engine: Cpu::default() })
    }

    /// Returns paths with what is to be reported of each parameter, as JSON.
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

    /// Returns a copy.
    fn copy(&self) -> Self {
        let (model, posterior) = self.copied();
        let held = Mutex::new(Held { model, posterior });
        Self { held, columns: self.columns, engine: Cpu::default() }
    }

    /// Returns the value of a parameter.
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
        find(&mut self.held().model, path)?.set_prior(path, prior).map_err(exception)?;
        Ok(())
    }

    /// Returns the sum of the log densities of the priors.
    fn log_prior(&self) -> f64 {
        self.held().model.log_prior()
    }

    /// Returns the objective at the present parameters, without priors, and, if `gradients`, its
    /// gradient with respect to every constrained parameter, by path.
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
        let data = self.rows(&model, [&x, &y], [weights.as_ref(), extra.as_ref()], population)?;
        if let (Ok(method), false) = (Uncollapsed::of(model.method), gradients) {
            let value =
                unlocked(py, || Ok(method.step(&model, &self.engine, &data, Want::Value)?.value))?;
            return Ok((value, None));
        }
        let evaluation = unlocked(py, || model.evaluate(&self.engine, &data))?;
        if !gradients {
            return Ok((evaluation.value, None));
        }
        Ok((evaluation.value, Some(by_path(py, &model, &evaluation.gradient)?)))
    }

    /// Returns an upper bound on the log evidence, of models with a collapsed bound.
    fn upper_bound(&self, py: Python<'_>, x: Array2<'_>, y: Array2<'_>) -> PyResult<f64> {
        let (model, _) = self.copied();
        let data = self.rows(&model, [&x, &y], [None, None], None)?;
        let engine = &self.engine;
        unlocked(py, || Ok(methods::upper_bound(&model, engine, &data)?.value))
    }

    /// Returns how well the inducing points stand for rows, as JSON.
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
        let data = self.rows(&model, [&x, &y], [weights.as_ref(), extra.as_ref()], None)?;
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
        let data = self.rows(&model, [&x, &y], [weights.as_ref(), extra.as_ref()], population)?;
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
        let data = self.rows(&model, [&x, &y], [weights.as_ref(), extra.as_ref()], population)?;
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

    /// Returns what to say of parameters that are at bounds that they were given.
    fn at_bounds(&self) -> Vec<String> {
        remarks(&self.held().model.params())
    }

    /// Returns whether the posterior is known.
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
                let data = self.rows(&model, [&x, &y], [weights.as_ref(), extra.as_ref()], None)?;
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

    /// Returns the means and variances of the latent functions.
    fn predict_f<'py>(&self, py: Python<'py>, x: Array2<'py>) -> PyResult<Pair<'py>> {
        let predict = |p: &Posterior, x: MatRef<'_, f64>, _: &[f64]| p.predict_f(x);
        by_parts(py, &*self.known()?, (&x, None), predict, Posterior::latents)
    }

    /// Returns means N×L, and covariances L×N×N.
    fn predict_f_full<'py>(&self, py: Python<'py>, x: Array2<'py>) -> PyResult<Pair<'py>> {
        with_covariances(py, &*self.known()?, &x)
    }

    /// Returns the means and variances of the latent functions by q(f | u), which takes the rows
    /// (x, y).
    fn predict_high_cost<'py>(
        &self,
        py: Python<'py>,
        x: Array2<'py>,
        y: Array2<'py>,
        new: Array2<'py>,
    ) -> PyResult<Pair<'py>> {
        let (model, _) = self.copied();
        let data = self.rows(&model, [&x, &y], [None, None], None)?;
        high_cost(py, (&model, &self.engine), &data, &owned(&new))
    }

    /// Returns the slopes of means and variances of the latent functions in the inputs, L×N×D each.
    fn predict_gradients<'py>(&self, py: Python<'py>, x: Array2<'py>) -> PyResult<Pair<'py>> {
        let posterior = self.known()?;
        let x = owned(&x);
        finite(x.as_ref())?;
        let found = unlocked(py, || posterior.predict_gradients(x.as_ref()))?;
        crate::fitted::slopes(py, &found)
    }

    /// Returns every row as the others predict it.
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
        let data = self.rows(&model, [&x, &y], [weights.as_ref(), extra.as_ref()], None)?;
        let found = unlocked(py, || posterior.leave_one_out(&model, &data))?;
        left_out(py, &found)
    }

    /// Returns the means and variances of observations.
    #[pyo3(signature = (x, *, extra=None))]
    fn predict_y<'py>(
        &self,
        py: Python<'py>,
        x: Array2<'py>,
        extra: Option<Array1<'py>>,
    ) -> PyResult<Pair<'py>> {
        let predict = |p: &Posterior, x: MatRef<'_, f64>, e: &[f64]| p.predict_y(x, e);
        by_parts(py, &*self.known()?, (&x, extra.as_ref()), predict, Posterior::outputs)
    }

    /// Returns the log densities of the rows of targets.
    #[pyo3(signature = (x, y, *, extra=None))]
    fn predict_log_density<'py>(
        &self,
        py: Python<'py>,
        x: Array2<'py>,
        y: Array2<'py>,
        extra: Option<Array1<'py>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let check = |rows: &InMemory| check_targets(&self.held().model, rows);
        log_density(py, &*self.known()?, check, [&x, &y], extra.as_ref())
    }

    /// Returns the probabilities of the classes, N×C, of one target column.
    fn predict_proba<'py>(&self, py: Python<'py>, x: Array2<'py>) -> PyResult<Bound<'py, PyAny>> {
        probabilities(py, &*self.known()?, &x)
    }

    /// Returns joint draws of the latent functions, S×N×L.
    fn predict_f_samples<'py>(
        &self,
        py: Python<'py>,
        x: Array2<'py>,
        samples: usize,
        seed: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        joint_draws(py, &*self.known()?, &x, samples, seed)
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

    /// Returns the whitened mean of q, M×L, and the lower roots of its whitened covariances, L×M×M
    /// (one where the latent functions share it; none for exact inference).
    fn q<'py>(&self, py: Python<'py>) -> PyResult<Pair<'py>> {
        let posterior = self.known()?;
        Ok((matrix(py, posterior.q_mu())?, stack(py, &posterior.q_sqrt())?))
    }

    /// Returns the mean and covariances of the inducing variables u; none for exact inference.
    fn q_u<'py>(&self, py: Python<'py>) -> PyResult<Option<Pair<'py>>> {
        let posterior = self.known()?;
        let Some((mean, all)) = unlocked(py, || Ok(posterior.q_u()))? else { return Ok(None) };
        let all: Vec<_> = all.iter().map(|c| c.as_ref()).collect();
        Ok(Some((matrix(py, mean.as_ref())?, stack(py, &all)?)))
    }
}

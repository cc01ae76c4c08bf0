//! A model of its parts, as the interpreter gives them.

use super::rows::Columns;
use crate::arrays::{matrices, owned};
use crate::errors::{exception, read_json};
use crate::registry;
use numpy::{PyReadonlyArray2, PyReadonlyArray3};
use pyo3::prelude::*;
use serde::Deserialize;
use sparsegp::linalg::{Jitter, Mat};
use sparsegp::methods::{self, Keeps};
use sparsegp::model::{Model, inducing_param};
use sparsegp::variational::{Tying, Variational};
use sparsegp::{Error, means};

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

/// How sites are tied unless something else is asked for.
const FULL: Tying = Tying::Natural;

/// Makes the model of a specification (JSON), and says of how many columns it is.
pub fn built(
    spec: &str,
    points: Option<Vec<PyReadonlyArray2<'_, f64>>>,
    q_mu: Option<PyReadonlyArray2<'_, f64>>,
    q_sqrt: Option<PyReadonlyArray3<'_, f64>>,
) -> PyResult<(Model, Columns)> {
    let spec: Spec = read_json(spec)?;
    let likelihood = registry::likelihood(&spec.likelihood)?;
    if spec.outputs == 0 {
        return Err(exception(Error::Invalid("num_outputs is 0; it must be at least 1".into())));
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
        let text = "a deep model is fitted by an estimator, such as GPRegressor(method=\"deep\")";
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
    Ok((model, columns))
}

/// Returns identity roots.
fn identities(m: usize, latents: usize, diagonal: bool) -> Vec<Mat<f64>> {
    match diagonal {
        true => vec![Mat::from_fn(m, latents, |_, _| 1.0)],
        false => vec![Mat::identity(m, m); latents],
    }
}

/// Returns a tying by its name.
fn tying(name: &str) -> PyResult<Tying> {
    let found = Tying::ALL.iter().find(|(known, _)| *known == name);
    found.map(|(_, tying)| *tying).ok_or_else(|| {
        let known: Vec<&str> = Tying::ALL.iter().map(|(known, _)| *known).collect();
        let text = format!("tying is `{name}`; it must be one of {}", known.join(", "));
        exception(Error::Invalid(text))
    })
}

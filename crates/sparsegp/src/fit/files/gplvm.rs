//! Files of GP-LVMs: like those of models, with `"kind": "gp-lvm"` in the header, and without the training data.
//!
//! | tensor | shape | what |
//! | --- | --- | --- |
//! | `kernel.…`, `likelihood.variance` | of the parameter | constrained values |
//! | `inducing.points` | M×Q | inducing points |
//! | `latent.mean`, `latent.variance` | N×Q | q(X) of the rows of the training |
//! | `posterior.b` | M×P | weights of the means |
//! | `posterior.factors` | CM×M | for C groups of columns that were missing in the same rows, lower factors of I + L⁻¹Ψ₂L⁻ᵀ/σ², one below the other |

use super::write::{matrix_bytes, param_bytes, sealed, shape_of};
use super::{KEY, VERSION, foreign, read::Reader, sums};
use crate::atomic::{read_bounded, write_atomically};
use crate::error::{Error, Result};
use crate::kernels::{self, Inputs};
use crate::latent::{FittedGplvm, Gplvm, Posterior, Trainable};
use crate::linalg::{Jitter, Mat};
use crate::optim::Status;
use crate::params::{Param, Shape, Transform, listed, listed_mut};
use crate::terms;
use safetensors::SafeTensors;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// What the header calls such a file.
pub(super) const KIND: &str = "gp-lvm";

#[derive(Serialize, Deserialize)]
struct Header {
    version: u32,
    kind: String,
    written_by: String,
    kernel: serde_json::Value,
    noise: Transform,
    method: String,
    jitter: Jitter,
    /// The absolute jitter in the factor of Kuu.
    jitter_used: f64,
    names: Vec<String>,
    centre: Vec<f64>,
    scale: Vec<f64>,
    /// Columns that were missing in the same rows.
    groups: Vec<Vec<usize>>,
    bound: f64,
    status: Status,
    restarts: Vec<Option<f64>>,
    negative: usize,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

fn params(model: &Gplvm) -> Vec<(String, &Param)> {
    listed(|v| model.visit(v))
}

/// Makes the content of a file.
///
/// # Errors
/// [`Error::Invalid`] if the model cannot be written.
pub fn gplvm_to_bytes(fitted: &FittedGplvm) -> Result<Vec<u8>> {
    let model = &fitted.model;
    let (b, known) = fitted.posterior.kept();
    let header = Header {
        version: VERSION,
        kind: KIND.into(),
        written_by: format!("sparsegp {}", env!("CARGO_PKG_VERSION")),
        kernel: model.kernel.to_json(),
        noise: model.noise.transform(),
        method: model.term.name().into(),
        jitter: model.jitter,
        jitter_used: fitted.posterior.jitter(),
        names: fitted.names.clone(),
        centre: fitted.centre.clone(),
        scale: fitted.scale.clone(),
        groups: known.iter().map(|(columns, _)| columns.to_vec()).collect(),
        bound: fitted.bound,
        status: fitted.status.clone(),
        // JSON has no infinities
        restarts: fitted.restarts.iter().map(|r| r.is_finite().then_some(*r)).collect(),
        negative: fitted.negative,
        annotations: fitted.annotations.clone(),
    };
    let mut tensors: Vec<(String, Vec<usize>, Vec<u8>)> = params(model)
        .into_iter()
        .map(|(path, param)| (path, shape_of(param), param_bytes(param)))
        .collect();
    let m = b.nrows();
    let factors = Mat::from_fn(known.len() * m, m, |row, j| known[row / m].1[(row % m, j)]);
    for (name, a) in [("posterior.b", b), ("posterior.factors", factors.as_ref())] {
        tensors.push((name.into(), vec![a.nrows(), a.ncols()], matrix_bytes(a)));
    }
    let header = serde_json::to_string(&header).map_err(|e| Error::Invalid(e.to_string()))?;
    sealed(header, &tensors, Vec::new()).map_err(Error::Invalid)
}

/// Writes a GP-LVM; atomically, so that a failure leaves an older file as it was.
///
/// # Errors
/// [`Error::File`].
pub fn save_gplvm(fitted: &FittedGplvm, path: &Path) -> Result<()> {
    let file = |error: Error| Error::File { path: path.into(), reason: error.to_string() };
    write_atomically(path, &gplvm_to_bytes(fitted).map_err(file)?)
}

/// Reads a GP-LVM from the content of its file.
///
/// # Errors
/// [`Error::Invalid`] if that is truncated or damaged, or is not a GP-LVM of this library.
pub fn gplvm_from_bytes(content: &[u8]) -> Result<FittedGplvm> {
    sums::check_header(content)?;
    let (_, metadata) =
        SafeTensors::read_metadata(content).map_err(|e| foreign(format!("its header: {e}")))?;
    let text = metadata.metadata().as_ref().and_then(|m| m.get(KEY));
    let text = text.ok_or_else(|| foreign("its header names no model"))?;
    let mut json: serde_json::Value = serde_json::from_str(text).map_err(foreign)?;
    let tensors =
        Reader(SafeTensors::deserialize(content).map_err(|e| foreign(format!("its header: {e}")))?);
    if let Some(name) = json.get("header").and_then(serde_json::Value::as_str) {
        // a long one
        let named = tensors.0.tensor(name).map_err(foreign)?;
        json = serde_json::from_slice(named.data())
            .map_err(|e| foreign(format!("tensor `{name}`: {e}")))?;
    }
    if json.get("kind").and_then(serde_json::Value::as_str) != Some(KIND) {
        return Err(Error::Invalid(
            "holds no GP-LVM: `sparsegp embed -o` writes such files, and `sparsegp predict` uses the model that is here".into(),
        ));
    }
    let version = json.get("version").and_then(serde_json::Value::as_u64).unwrap_or(0);
    if version > u64::from(VERSION) {
        return Err(Error::Invalid(format!(
            "has layout version {version}; this program reads up to {VERSION}: use a newer one"
        )));
    }
    let header: Header =
        serde_json::from_value(json).map_err(|e| foreign(format!("its header: {e}")))?;
    sums::check(content, &metadata, version)?;
    let points = tensors.matrix("inducing.points")?;
    let mean = tensors.matrix("latent.mean")?;
    let (m, n, q, p) = (points.nrows(), mean.nrows(), points.ncols(), header.names.len());
    let lengths = [header.centre.len(), header.scale.len()] == [p; 2];
    let mut columns: Vec<usize> = header.groups.concat();
    columns.sort_unstable();
    let b = tensors.matrix("posterior.b")?;
    let factors = tensors.matrix("posterior.factors")?;
    let fits = lengths
        && mean.ncols() == q
        && m > 0
        && q > 0
        && columns.iter().copied().eq(0..p)
        && (b.nrows(), b.ncols()) == (m, p)
        && (factors.nrows(), factors.ncols()) == (header.groups.len() * m, m);
    if !fits {
        return Err(foreign("its tensors and its header do not fit together"));
    }
    let term = terms::REGISTRY.iter().find(|term| term.name() == header.method);
    let empty = |rows: usize, columns: usize, transform: Transform, start: f64| {
        Param::with(vec![start; rows * columns], Shape::Matrix(rows, columns), transform)
    };
    let mut model = Gplvm {
        kernel: kernels::build(&header.kernel, Inputs::unnamed(q))?,
        noise: Param::with(vec![1.0], Shape::Scalar, header.noise),
        points: empty(m, q, Transform::Identity, 0.0),
        mean: empty(n, q, Transform::Identity, 0.0),
        variance: empty(n, q, Transform::Exp { lower: 0.0 }, 1.0),
        term: *term.ok_or_else(|| foreign(format!("the bound `{}` is unknown", header.method)))?,
        jitter: header.jitter,
        block: None,
    };
    for (path, param) in listed_mut(|v| model.visit_mut(v)) {
        tensors.fill(&path, param)?;
    }
    let part = |c: usize| factors.as_ref().subrows(c * m, m).to_owned();
    let known = header.groups.into_iter().enumerate().map(|(c, columns)| (columns, part(c)));
    let posterior = Posterior::of_parts(&model, header.jitter_used, b, known.collect())?;
    Ok(FittedGplvm {
        model,
        posterior,
        bound: header.bound,
        status: header.status,
        restarts: header.restarts.into_iter().map(|r| r.unwrap_or(f64::NEG_INFINITY)).collect(),
        negative: header.negative,
        centre: header.centre,
        scale: header.scale,
        names: header.names,
        annotations: header.annotations,
    })
}

/// Reads the file of a GP-LVM.
///
/// # Errors
/// [`Error::File`] if it cannot be read, is truncated or damaged, or is not a GP-LVM of this
/// library.
pub fn load_gplvm(path: &Path) -> Result<FittedGplvm> {
    let content = read_bounded(path, super::is_model)?;
    gplvm_from_bytes(&content).map_err(|error| {
        let reason = match error {
            Error::Invalid(reason) => reason,
            other => other.to_string(),
        };
        Error::File { path: path.into(), reason }
    })
}

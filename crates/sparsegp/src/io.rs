//! Model files: one `.safetensors` file with a tensor per parameter, named by its path, and a JSON
//! header under the metadata key `sparsegp`. A file loads without the training data.
//!
//! | tensor | shape | what |
//! | --- | --- | --- |
//! | `kernel.…`, `mean.…`, `likelihood.variance` | of the parameter | constrained values |
//! | `inducing.points` (`inducing.points[l]`) | M×D | inducing inputs on the model's scale |
//! | `q.mu` | M×L | mean of q, whitened unless the header says otherwise |
//! | `q.sqrt` | M×M, L×M×M or M×L | lower root of q's covariance (shared or of every latent function), or standard deviations |
//! | `q.lambda`, `q.t_sqrt` | M, 1×M×M | of L-SVGP and R-SVGP: noise variances of the pseudo-observations, lower root of the auxiliary T |
//! | `q.lambda1`, `q.lambda2` | M×L, L×M×M | of q kept as sites: first statistics, and second ones, which are symmetric, with zeros above the diagonal; N×L each for `tvgp` |
//! | `training.state` | bytes | of a checkpoint: what training by minibatches needs to go on |
//! | `sampling.state` | bytes | of a checkpoint: what chains need to go on |
//! | `q.v` | L | factors of the conditional variance, for bounds that have them |
//! | `posterior.inputs` | N×D | training inputs, for the methods without inducing points only |
//! | `posterior.draws` | SL×M | draws of the whitened variables, one after the other, where the posterior was sampled |
//! | `posterior.hyperparameters` | S×H | hyperparameters of every draw where they were sampled too, in the order of the parameters but for inducing points and q |
//! | `posterior.noise` | N×1 | variances of the noise of these rows, where weights or the data make them differ |

use crate::atomic::write_atomically;
use crate::data::{Classes, Encoding, InputColumn, Scaler};
use crate::error::{Error, Result};
use crate::fit::Fitted;
use crate::kernels::{self, Inputs, Tape};
use crate::likelihoods;
use crate::linalg::{Cholesky, Jitter, Mat, MatRef, column};
use crate::means;
use crate::methods;
use crate::model::{Model, Posterior, inducing_param};
use crate::params::{Param, Prior, Shape, listed, listed_mut};
use crate::samplers::SamplingState;
use crate::train::{TrainReport, TrainingState};
use crate::variational::{Form, Variational};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Version of the layout; a reader refuses later ones.
pub const VERSION: u32 = 1;
const KEY: &str = "sparsegp";
/// Tensor of bytes that holds a state of training.
const STATE: &str = "training.state";
/// Tensor of bytes that holds a state of sampling.
const SAMPLING: &str = "sampling.state";

#[derive(Serialize, Deserialize)]
struct Header {
    version: u32,
    written_by: String,
    /// A list where every latent function has its own.
    kernel: serde_json::Value,
    mean: serde_json::Value,
    likelihood: serde_json::Value,
    /// One for each set of inducing points.
    inducing: Vec<Kept>,
    /// For methods that train q.
    #[serde(default)]
    q: Option<QHeader>,
    method: String,
    reason: String,
    jitter: Jitter,
    /// The absolute jitter in the posterior's factor.
    jitter_used: f64,
    inputs: Vec<String>,
    /// The columns of a table that the inputs come from, where some hold no numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    columns: Vec<InputColumn>,
    targets: Vec<String>,
    #[serde(default)]
    weight: Option<String>,
    #[serde(default)]
    extra: Option<String>,
    #[serde(default)]
    classes: Option<Classes>,
    scaler: Scaler,
    target_mean: Vec<f64>,
    target_variance: Vec<f64>,
    rows: usize,
    /// Sum of the weights of the rows, where they have weights.
    #[serde(default)]
    total_weight: Option<f64>,
    seed: u64,
    report: Option<TrainReport>,
    warnings: Vec<String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

/// What a tensor does not say about its parameter.
#[derive(Serialize, Deserialize)]
struct Kept {
    frozen: bool,
    #[serde(default)]
    prior: Option<Prior>,
}

impl Kept {
    fn of(param: &Param) -> Self {
        Self { frozen: param.frozen, prior: param.prior }
    }

    fn apply(self, param: &mut Param) {
        param.frozen = self.frozen;
        param.prior = self.prior;
    }
}

#[derive(Serialize, Deserialize)]
struct QHeader {
    form: Form,
    diagonal: bool,
    /// Whether there are factors v.
    factors: bool,
    /// In the order of the parameters.
    params: Vec<Kept>,
    #[serde(default)]
    floor: f64,
}

fn shape_of(param: &Param) -> Vec<usize> {
    match param.shape() {
        Shape::Scalar => vec![],
        Shape::Vector(n) => vec![n],
        Shape::Matrix(n, m) => vec![n, m],
        Shape::Lower(count, size) => vec![count, size, size],
    }
}

/// Little-endian bytes, matrices row by row as readers of the format expect.
fn bytes(values: impl Iterator<Item = f64>) -> Vec<u8> {
    values.flat_map(f64::to_le_bytes).collect()
}

fn matrix_bytes(a: MatRef<f64>) -> Vec<u8> {
    bytes((0..a.nrows()).flat_map(|i| (0..a.ncols()).map(move |j| a[(i, j)])))
}

fn param_bytes(param: &Param) -> Vec<u8> {
    match param.shape() {
        Shape::Lower(count, size) => {
            let mut full = vec![0.0; count * size * size];
            let mut values = param.value().iter();
            for matrix in full.chunks_exact_mut((size * size).max(1)) {
                for j in 0..size {
                    (j..size).zip(values.by_ref()).for_each(|(i, v)| matrix[i * size + j] = *v);
                }
            }
            bytes(full.into_iter())
        }
        Shape::Matrix(n, m) => {
            let value = param.value();
            bytes((0..n).flat_map(|i| (0..m).map(move |j| value[j * n + i])))
        }
        _ => bytes(param.value().iter().copied()),
    }
}

/// Writes a model file; atomically, so that a failure leaves an older file as it was.
///
/// # Errors
/// [`Error::File`].
pub fn save(fitted: &Fitted, path: &Path) -> Result<()> {
    save_with(fitted, Holds::Nothing, path)
}

/// Writes a model file that also holds a state of training by minibatches, to go on from
/// ([`load_checkpoint`]); a model file like any other otherwise.
///
/// # Errors
/// [`Error::File`].
pub fn save_checkpoint(fitted: &Fitted, state: &TrainingState, path: &Path) -> Result<()> {
    save_with(fitted, Holds::Training(state), path)
}

/// Writes a model file that also holds a state of sampling, to go on from ([`load_sampling`]).
///
/// # Errors
/// [`Error::File`].
pub fn save_sampling(fitted: &Fitted, state: &SamplingState, path: &Path) -> Result<()> {
    save_with(fitted, Holds::Sampling(state), path)
}

/// What a file holds beside the model.
enum Holds<'a> {
    Nothing,
    Training(&'a TrainingState),
    Sampling(&'a SamplingState),
}

fn save_with(fitted: &Fitted, state: Holds<'_>, path: &Path) -> Result<()> {
    let content =
        content(fitted, state).map_err(|reason| Error::File { path: path.into(), reason })?;
    write_atomically(path, &content)
}

/// The content of a model file.
///
/// # Errors
/// [`Error::Invalid`] if the model cannot be written.
pub fn to_bytes(fitted: &Fitted) -> Result<Vec<u8>> {
    content(fitted, Holds::Nothing).map_err(Error::Invalid)
}

fn content(fitted: &Fitted, state: Holds<'_>) -> std::result::Result<Vec<u8>, String> {
    let model = &fitted.model;
    let header = Header {
        version: VERSION,
        written_by: format!("sparsegp {}", env!("CARGO_PKG_VERSION")),
        kernel: match &model.kernels[..] {
            [one] => one.to_json(),
            several => several.iter().map(|k| k.to_json()).collect(),
        },
        mean: means::to_json(&*model.mean),
        likelihood: model.likelihood.to_json(),
        inducing: model.inducing.iter().map(Kept::of).collect(),
        q: model.q.as_ref().map(|q| QHeader {
            form: q.form,
            floor: q.floor,
            diagonal: q.is_diagonal(),
            factors: q.v.is_some(),
            params: listed(|v| q.visit(v)).into_iter().map(|(_, param)| Kept::of(param)).collect(),
        }),
        method: model.method.name().into(),
        reason: fitted.reason.clone(),
        jitter: model.jitter,
        jitter_used: fitted.posterior.factor().jitter,
        inputs: fitted.input_names.clone(),
        columns: match fitted.columns.iter().all(|c| c.encoding == Encoding::Number) {
            true => Vec::new(),
            false => fitted.columns.clone(),
        },
        targets: fitted.target_names.clone(),
        weight: fitted.weight_name.clone(),
        extra: fitted.extra_name.clone(),
        classes: fitted.classes.clone(),
        scaler: fitted.scaler.clone(),
        target_mean: fitted.target_mean.clone(),
        target_variance: fitted.target_variance.clone(),
        rows: fitted.rows,
        total_weight: fitted.total_weight,
        seed: fitted.seed,
        report: fitted.report.clone(),
        warnings: fitted.warnings.clone(),
        annotations: fitted.annotations.clone(),
    };
    let header = serde_json::to_string(&header).map_err(|e| e.to_string())?;
    let mut tensors: Vec<(String, Vec<usize>, Vec<u8>)> = model
        .params()
        .into_iter()
        .map(|(path, param)| (path, shape_of(param), param_bytes(param)))
        .collect();
    let mut matrix = |name: &str, a: MatRef<f64>| {
        tensors.push((name.into(), vec![a.nrows(), a.ncols()], matrix_bytes(a)));
    };
    if model.method.full_sites().is_some() {
        matrix("posterior.inputs", fitted.posterior.points());
    } else if model.q.is_none() {
        matrix("q.mu", fitted.posterior.q_mu());
        match fitted.posterior.q_sqrt().first() {
            Some(root) => matrix("q.sqrt", *root),
            None => matrix("posterior.inputs", fitted.posterior.points()),
        }
        let noise = fitted.posterior.row_noise();
        if !noise.is_empty() {
            matrix("posterior.noise", MatRef::from_column_major_slice(noise, noise.len(), 1));
        }
    }
    let draws = fitted.posterior.draws();
    if let Some(first) = draws.first() {
        let latents = first.ncols();
        let all = Mat::from_fn(draws.len() * latents, first.nrows(), |r, i| {
            draws[r / latents][(i, r % latents)]
        });
        matrix("posterior.draws", all.as_ref());
    }
    let hyper = fitted.posterior.hyperparameters();
    if let Some(first) = hyper.first() {
        let all = Mat::from_fn(hyper.len(), first.len(), |s, i| hyper[s][i]);
        matrix("posterior.hyperparameters", all.as_ref());
    }
    let mut views = tensors
        .iter()
        .map(|(name, shape, data)| {
            TensorView::new(Dtype::F64, shape.clone(), data).map(|view| (name.as_str(), view))
        })
        .collect::<std::result::Result<Vec<_>, _>>()
        .map_err(|e| e.to_string())?;
    let state = match state {
        Holds::Nothing => None,
        Holds::Training(state) => Some((STATE, postcard::to_stdvec(state))),
        Holds::Sampling(state) => Some((SAMPLING, postcard::to_stdvec(state))),
    };
    let bytes = state.map(|(name, bytes)| Ok((name, bytes?))).transpose();
    let bytes = bytes.map_err(|e: postcard::Error| e.to_string())?;
    if let Some((name, bytes)) = &bytes {
        let view = TensorView::new(Dtype::U8, vec![bytes.len()], bytes);
        views.push((name, view.map_err(|e| e.to_string())?));
    }
    let metadata = HashMap::from([(KEY.to_owned(), header)]);
    safetensors::serialize(views, Some(metadata)).map_err(|e| e.to_string())
}

/// Reads a model file.
///
/// # Errors
/// [`Error::File`] if it cannot be read, is truncated, or is not a model of this library.
pub fn load(path: &Path) -> Result<Fitted> {
    let content = std::fs::read(path).map_err(|e| Error::io(path, &e))?;
    from_bytes(&content).map_err(|error| {
        let reason = match error {
            Error::Invalid(reason) => reason,
            other => other.to_string(),
        };
        Error::File { path: path.into(), reason }
    })
}

/// Reads a model file with the state of training in it, if there is one.
///
/// # Errors
/// [`Error::File`] as for [`load`].
pub fn load_checkpoint(path: &Path) -> Result<(Fitted, Option<TrainingState>)> {
    load_with(path, STATE)
}

/// Reads a model file with the state of sampling in it, if there is one.
///
/// # Errors
/// [`Error::File`] as for [`load`].
pub fn load_sampling(path: &Path) -> Result<(Fitted, Option<SamplingState>)> {
    load_with(path, SAMPLING)
}

fn load_with<S: serde::de::DeserializeOwned>(
    path: &Path,
    name: &str,
) -> Result<(Fitted, Option<S>)> {
    let fitted = load(path)?;
    let content = std::fs::read(path).map_err(|e| Error::io(path, &e))?;
    let damaged = |e: &dyn std::fmt::Display| Error::File {
        path: path.into(),
        reason: format!("holds a state that cannot be read ({e})"),
    };
    let tensors = SafeTensors::deserialize(&content).map_err(|e| damaged(&e))?;
    let Ok(tensor) = tensors.tensor(name) else { return Ok((fitted, None)) };
    let state = postcard::from_bytes(tensor.data()).map_err(|e| damaged(&e))?;
    Ok((fitted, Some(state)))
}

fn foreign(detail: impl std::fmt::Display) -> Error {
    Error::Invalid(format!(
        "is not a complete sparsegp model file ({detail}); give a file that `sparsegp fit -o` wrote"
    ))
}

struct Reader<'a>(SafeTensors<'a>);

impl Reader<'_> {
    fn values(&self, name: &str) -> Result<(Vec<usize>, Vec<f64>)> {
        let tensor = self.0.tensor(name).map_err(|e| foreign(format!("tensor `{name}`: {e}")))?;
        if tensor.dtype() != Dtype::F64 {
            return Err(foreign(format!("tensor `{name}` does not hold 64-bit numbers")));
        }
        let chunks = tensor.data().chunks_exact(8);
        let values: Vec<f64> =
            chunks.map(|c| f64::from_le_bytes(c.try_into().expect("eight bytes"))).collect();
        if let Some(bad) = values.iter().find(|v| !v.is_finite()) {
            return Err(foreign(format!("tensor `{name}` holds {bad}")));
        }
        Ok((tensor.shape().to_vec(), values))
    }

    fn matrix(&self, name: &str) -> Result<Mat<f64>> {
        let (shape, values) = self.values(name)?;
        let [n, m] = shape[..] else {
            return Err(foreign(format!("tensor `{name}` is no matrix")));
        };
        Ok(Mat::from_fn(n, m, |i, j| values[i * m + j]))
    }

    fn fill(&self, path: &str, param: &mut Param) -> Result<()> {
        let (shape, values) = self.values(path)?;
        if shape != shape_of(param) {
            return Err(foreign(format!("tensor `{path}` has shape {shape:?}")));
        }
        let by_columns: Vec<f64> = match param.shape() {
            Shape::Matrix(n, m) => (0..m)
                .flat_map(|j| (0..n).map(move |i| (i, j)))
                .map(|(i, j)| values[i * m + j])
                .collect(),
            Shape::Lower(count, size) => (0..count)
                .flat_map(|l| (0..size).flat_map(move |j| (j..size).map(move |i| (l, i, j))))
                .map(|(l, i, j)| values[(l * size + i) * size + j])
                .collect(),
            _ => values,
        };
        param.set(path, &by_columns)
    }
}

/// A model from the content of its file.
///
/// # Errors
/// [`Error::Invalid`] if that is truncated, or is not a model of this library.
pub fn from_bytes(content: &[u8]) -> Result<Fitted> {
    let (_, metadata) = SafeTensors::read_metadata(content).map_err(foreign)?;
    let header = metadata
        .metadata()
        .as_ref()
        .and_then(|m| m.get(KEY))
        .ok_or_else(|| foreign("its header names no model"))?;
    let version: serde_json::Value = serde_json::from_str(header).map_err(foreign)?;
    let version = version.get("version").and_then(serde_json::Value::as_u64).unwrap_or(0);
    if version > u64::from(VERSION) {
        return Err(Error::Invalid(format!(
            "has layout version {version}; this program reads up to {VERSION}: use a newer one"
        )));
    }
    let header: Header = serde_json::from_str(header).map_err(foreign)?;
    let tensors = Reader(SafeTensors::deserialize(content).map_err(foreign)?);
    let (d, p) = (header.inputs.len(), header.targets.len());
    check(&header)?;
    let likelihood = likelihoods::build(&header.likelihood)?;
    let method = methods::find(&header.method)?.method;
    let sets = header.inducing.len();
    if method.is_sparse() == header.inducing.is_empty() {
        return Err(foreign(format!("its header lists {sets} sets of inducing points")));
    }
    let read_set = |(l, kept): (usize, Kept)| {
        let name =
            if sets == 1 { "inducing.points".into() } else { format!("inducing.points[{l}]") };
        let mut param = inducing_param(tensors.matrix(&name)?.as_ref());
        kept.apply(&mut param);
        Ok(param)
    };
    let inducing: Vec<Param> =
        header.inducing.into_iter().enumerate().map(read_set).collect::<Result<_>>()?;
    let q = header.q.map(|q| read_q(q, &tensors)).transpose()?;
    if method.has_q() != q.is_some() {
        return Err(foreign("its header and its method do not agree on q"));
    }
    let inputs = Inputs::named(&header.inputs);
    let kernels = match &header.kernel {
        serde_json::Value::Array(several) => {
            several.iter().map(|json| kernels::build(json, inputs)).collect::<Result<Vec<_>>>()?
        }
        one => vec![kernels::build(one, inputs)?],
    };
    // of the mean function, and of kernels and q
    let seen = likelihood.latents() * p;
    let latents = likelihood.mixing().map_or(seen, |w| methods::uncollapsed::mixed_shape(w).1);
    let fits = |count: usize| count == 1 || count == latents;
    if !fits(kernels.len()) || !(fits(sets) || sets == 0) {
        return Err(foreign(format!(
            "its header has {} kernels and {sets} sets of inducing points for {latents} latent \
             functions",
            kernels.len()
        )));
    }
    let mut model = Model {
        kernels,
        mean: means::from_json(&header.mean, d, seen)?,
        likelihood,
        inducing,
        q,
        method,
        jitter: header.jitter,
    };
    for (path, param) in model.params_mut() {
        tensors.fill(&path, param)?;
    }
    let posterior = posterior(&model, &tensors, header.jitter_used, d, p)?;
    Ok(Fitted {
        model,
        posterior,
        scaler: header.scaler,
        columns: match header.columns {
            none if none.is_empty() => header.inputs.iter().map(InputColumn::number).collect(),
            columns => columns,
        },
        input_names: header.inputs,
        target_names: header.targets,
        weight_name: header.weight,
        extra_name: header.extra,
        classes: header.classes,
        target_mean: header.target_mean,
        target_variance: header.target_variance,
        rows: header.rows,
        total_weight: header.total_weight,
        seed: header.seed,
        reason: header.reason,
        report: header.report,
        warnings: header.warnings,
        annotations: header.annotations,
    })
}

/// Refuses a header whose parts do not fit together.
fn check(header: &Header) -> Result<()> {
    let (d, p) = (header.inputs.len(), header.targets.len());
    if d == 0 || p == 0 {
        return Err(foreign("its header names no inputs or no targets"));
    }
    let names = || header.columns.iter().flat_map(InputColumn::input_names);
    if !header.columns.is_empty() && !names().eq(header.inputs.iter().cloned()) {
        return Err(foreign("its header names other inputs than its columns become"));
    }
    header.scaler.check(d, p)?;
    let scales = header.scaler.x_scale.iter().chain(&header.scaler.y_scale);
    if let Some(bad) = scales.into_iter().find(|s| !(**s > 0.0 && s.is_finite())) {
        return Err(foreign(format!("its header has a scale of {bad}")));
    }
    if header.target_mean.len() != p || header.target_variance.len() != p {
        return Err(foreign("its header does not have one mean and one variance for each target"));
    }
    Ok(())
}

/// A q of the shape that the tensors have; its values are read with the other parameters.
fn read_q(header: QHeader, tensors: &Reader<'_>) -> Result<Variational> {
    let mut q = match header.form {
        Form::Sites(tying) => {
            let first = tensors.matrix("q.lambda1")?;
            Variational::sites(first.nrows(), first.ncols(), tying)
        }
        Form::Likelihood(preconditioner) | Form::Relaxed(preconditioner) => {
            let mu = tensors.matrix("q.mu")?;
            let relaxed = matches!(header.form, Form::Relaxed(_));
            Variational::pseudo_observations(mu.nrows(), mu.ncols(), preconditioner, relaxed)
        }
        form => {
            let mu = tensors.matrix("q.mu")?;
            let q = Variational::prior(mu.nrows(), mu.ncols(), header.diagonal);
            Variational { form, ..q }
        }
    };
    q.floor = header.floor;
    if header.factors {
        q = q.with_factors();
    }
    let params = listed_mut(|v| q.visit_mut(v));
    if params.len() != header.params.len() {
        return Err(foreign("its header does not describe every parameter of q"));
    }
    params.into_iter().zip(header.params).for_each(|((_, param), kept)| kept.apply(param));
    Ok(q)
}

/// The posterior from its draws.
fn sampled(
    model: &Model,
    tensors: &Reader<'_>,
    inputs: usize,
    outputs: usize,
) -> Result<Posterior> {
    let all = tensors.matrix("posterior.draws")?;
    let latents = model.latents(outputs);
    if latents == 0 || all.nrows() == 0 || !all.nrows().is_multiple_of(latents) {
        return Err(foreign("tensor `posterior.draws` does not fit the latent functions"));
    }
    let points = match model.method.is_sparse() {
        true => None,
        false => Some(tensors.matrix("posterior.inputs")?),
    };
    let columns = match &points {
        Some(points) => points.ncols(),
        None => model.inducing_points()?.ncols(),
    };
    if columns != inputs {
        return Err(foreign("tensors of the posterior do not fit together"));
    }
    let draws = (0..all.nrows() / latents)
        .map(|s| Mat::from_fn(all.ncols(), latents, |i, l| all[(s * latents + l, i)]))
        .collect();
    let posterior = match tensors.0.names().contains(&"posterior.hyperparameters") {
        false => Posterior::of_draws(model, points.as_ref(), draws),
        true => {
            let all = tensors.matrix("posterior.hyperparameters")?;
            let own = |s: usize| (0..all.ncols()).map(|i| all[(s, i)]).collect();
            let own = (0..all.nrows()).map(own).collect();
            Posterior::of_sampled(model, points.as_ref(), draws, own)
        }
    };
    posterior.map_err(|error| foreign(format!("posterior.draws: {error}")))
}

/// The posterior from its tensors; the factor is computed again with the jitter that was used.
fn posterior(
    model: &Model,
    tensors: &Reader<'_>,
    jitter: f64,
    inputs: usize,
    outputs: usize,
) -> Result<Posterior> {
    if tensors.0.names().contains(&"posterior.draws") {
        return sampled(model, tensors, inputs, outputs);
    }
    if let Some(method) = model.method.full_sites() {
        let points = tensors.matrix("posterior.inputs")?;
        let latents = model.q.as_ref().map_or(0, |q| q.latents());
        if points.ncols() != inputs || latents != model.latents(outputs) {
            return Err(foreign("tensors of the posterior do not fit together"));
        }
        return method.posterior_at(model, &points);
    }
    if let Some(q) = &model.q {
        let set = model.inducing_points()?;
        let fits = set.ncols() == inputs && q.points() == set.nrows();
        if !fits || q.latents() != model.latents(outputs) {
            return Err(foreign("tensors of the posterior do not fit together"));
        }
        // by the same ladder: kernels of several latent functions need not have the same jitter
        return Posterior::of_q(model);
    }
    let q_mu = tensors.matrix("q.mu")?;
    let sparse = model.method.is_sparse();
    let points =
        if sparse { model.inducing_points()? } else { tensors.matrix("posterior.inputs")? };
    let m = points.nrows();
    if points.ncols() != inputs || q_mu.nrows() != m || q_mu.ncols() != outputs {
        return Err(foreign("tensors of the posterior do not fit together"));
    }
    let mut k = Mat::zeros(m, m);
    model.kernel().evaluate(points.as_ref(), None, k.as_mut(), &mut Tape::off());
    let mut row_noise = Vec::new();
    let root = if sparse {
        let root = tensors.matrix("q.sqrt")?;
        if root.nrows() != m || root.ncols() != m {
            return Err(foreign("tensor `q.sqrt` does not fit the inducing points"));
        }
        Some(root)
    } else {
        if tensors.0.names().contains(&"posterior.noise") {
            let noise = tensors.matrix("posterior.noise")?;
            let fits = noise.nrows() == m && noise.ncols() == 1;
            if !fits || column(noise.as_ref(), 0).iter().any(|v| *v <= 0.0) {
                return Err(foreign("tensor `posterior.noise` does not fit the inputs"));
            }
            row_noise = column(noise.as_ref(), 0).to_vec();
        }
        let common = model.gaussian()?.variance.scalar();
        for i in 0..m {
            k[(i, i)] += row_noise.get(i).copied().unwrap_or(common);
        }
        None
    };
    let factor = Cholesky::new(k.as_ref(), Jitter::Absolute(jitter), "Kuu")?;
    Ok(Posterior::new(model, points, factor, q_mu, root).with_row_noise(row_noise))
}

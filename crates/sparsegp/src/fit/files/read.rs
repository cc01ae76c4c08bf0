//! From the content of a file to a model.

use super::header::{Elsewhere, Header, Kept, QHeader};
use super::write::shape_of;
use super::{
    ASIDE, CLOCK, HEADER, HELD_OUT, KEY, VERSION, averages, carried, foreign, gplvm, history, kept,
    sums,
};
use crate::data::{InputColumn, Mask, Unknown};
use crate::deep::LastBound;
use crate::error::{Error, Result};
use crate::fit::{Division, Fitted, Made};
use crate::kernels::{self, Inputs, covariances, points_fit};
use crate::likelihoods;
use crate::linalg::{Cholesky, Jitter, Mat, column};
use crate::means;
use crate::methods;
use crate::model::{Model, Posterior, SavedTrend, inducing_param};
use crate::params::{Param, Shape, listed_mut};
use crate::variational::{Form, Variational};
use safetensors::{Dtype, SafeTensors};

/// The tensors of a file.
pub(super) struct Reader<'a>(pub(super) SafeTensors<'a>);

impl Reader<'_> {
    /// Returns whether there is a tensor of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.names().contains(&name)
    }

    /// Returns the shape and numbers of a tensor, whatever they are.
    pub(super) fn raw(&self, name: &str) -> Result<(Vec<usize>, Vec<f64>)> {
        let tensor = self.0.tensor(name).map_err(|e| foreign(format!("tensor `{name}`: {e}")))?;
        if tensor.dtype() != Dtype::F64 {
            return Err(foreign(format!("tensor `{name}` does not hold 64-bit numbers")));
        }
        let chunks = tensor.data().chunks_exact(8);
        let values =
            chunks.map(|c| f64::from_le_bytes(c.try_into().expect("eight bytes"))).collect();
        Ok((tensor.shape().to_vec(), values))
    }

    /// Returns the shape and numbers of a tensor, which are finite.
    fn values(&self, name: &str) -> Result<(Vec<usize>, Vec<f64>)> {
        let (shape, values) = self.raw(name)?;
        if let Some(bad) = values.iter().find(|v| !v.is_finite()) {
            return Err(foreign(format!("tensor `{name}` holds {bad}")));
        }
        Ok((shape, values))
    }

    /// Returns a mask of so many rows.
    fn mask(&self, name: &str, rows: usize) -> Result<Option<Mask>> {
        let Ok(tensor) = self.0.tensor(name) else { return Ok(None) };
        let (bytes, called) = (tensor.data(), name.replace("division.", "rows "));
        if bytes.len() != rows.div_ceil(8) {
            return Err(foreign(format!("tensor `{name}` does not have a bit for each row")));
        }
        let flags = (0..rows).map(|row| bytes[row / 8] >> (row % 8) & 1 == 1);
        Ok(Some(Mask::new(called.replace('_', " "), flags)))
    }

    pub(super) fn matrix(&self, name: &str) -> Result<Mat<f64>> {
        let (shape, values) = self.values(name)?;
        let [n, m] = shape[..] else {
            return Err(foreign(format!("tensor `{name}` is not a matrix")));
        };
        Ok(Mat::from_fn(n, m, |i, j| values[i * m + j]))
    }

    pub(super) fn fill(&self, path: &str, param: &mut Param) -> Result<()> {
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
/// Reads a model from the content of its file.
///
/// # Errors
/// [`Error::Invalid`] if that is truncated, or is not a model of this library.
pub fn from_bytes(content: &[u8]) -> Result<Fitted> {
    let (tensors, mut header) = opened(content)?;
    check(&header)?;
    // standard deviations of inputs are none to the model
    let known = header.inputs[..header.inputs.len() - header.deviations.len()].to_vec();
    let (d, p) = (known.len(), header.targets.len());
    let model = read_model(&mut header, &tensors, &known, p)?;
    let posterior = read_posterior(&header, &tensors, &model, d, p)?;
    let carried = carried::read(&tensors, &model, model.latents(p))?;
    let kept_rows = carried::read_rows(&tensors, d, carried.len())?;
    let mut report = header.report;
    let at = match tensors.has(CLOCK) {
        true => history::read(&tensors, report.as_mut())?,
        false => None,
    };
    let division = header.division.map(|divided| -> Result<Division> {
        let fingerprint = u64::from_str_radix(&divided.fingerprint, 16).map_err(foreign)?;
        Ok(Division {
            rows: divided.rows,
            held_out: tensors.mask(HELD_OUT, divided.rows)?,
            aside: tensors.mask(ASIDE, divided.rows)?,
            fingerprint,
        })
    });
    Ok(Fitted {
        model,
        posterior,
        made: Made { by: header.written_by, at },
        division: division.transpose()?,
        carried,
        kept_rows,
        input_deviations: header.deviations,
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
        absent: header.absent,
        log_slope: header.log_slope,
        seed: header.seed,
        reason: header.reason,
        report,
        warnings: header.warnings,
        annotations: header.annotations,
        unknown: Unknown::default(),
    })
}

/// Returns the tensors and the header of a file.
fn opened(content: &[u8]) -> Result<(Reader<'_>, Header)> {
    sums::check_header(content)?;
    let (_, metadata) =
        SafeTensors::read_metadata(content).map_err(|e| foreign(format!("its header: {e}")))?;
    let text = metadata
        .metadata()
        .as_ref()
        .and_then(|m| m.get(KEY))
        .ok_or_else(|| foreign("its header names no model"))?;
    let version: serde_json::Value =
        serde_json::from_str(text).map_err(|e| foreign(format!("its header: {e}")))?;
    let moved = version.get("header").is_some();
    let version = version.get("version").and_then(serde_json::Value::as_u64).unwrap_or(0);
    if version > u64::from(VERSION) {
        return Err(Error::Invalid(format!(
            "has layout version {version}; this program reads up to {VERSION}: use a newer one"
        )));
    }
    let tensors =
        Reader(SafeTensors::deserialize(content).map_err(|e| foreign(format!("its header: {e}")))?);
    sums::check(content, &metadata, version)?;
    let header: serde_json::Value = if moved {
        let elsewhere: Elsewhere = serde_json::from_str(text).map_err(foreign)?;
        let named = tensors.0.tensor(&elsewhere.header).map_err(foreign)?;
        serde_json::from_slice(named.data())
            .map_err(|e| foreign(format!("tensor `{HEADER}`: {e}")))?
    } else {
        serde_json::from_str(text).map_err(|e| foreign(format!("its header: {e}")))?
    };
    if header.get("kind").and_then(serde_json::Value::as_str) == Some(gplvm::KIND) {
        return Err(Error::Invalid(
            "holds a GP-LVM, which has no inputs to predict from: `sparsegp embed` uses it".into(),
        ));
    }
    let header = serde_json::from_value(header).map_err(|e| foreign(format!("its header: {e}")))?;
    Ok((tensors, header))
}

/// Reads the model, of these inputs and so many targets.
fn read_model(
    header: &mut Header,
    tensors: &Reader<'_>,
    known: &[String],
    p: usize,
) -> Result<Model> {
    let likelihood = likelihoods::build(&header.likelihood)?;
    let method = methods::find(&header.method)?.method;
    let d = known.len();
    let sets = header.inducing.len();
    let read_set = |(l, kept): (usize, Kept)| {
        let name =
            if sets == 1 { "inducing.points".into() } else { format!("inducing.points[{l}]") };
        let mut param = inducing_param(tensors.matrix(&name)?.as_ref());
        kept.apply(&mut param);
        Ok(param)
    };
    let inducing: Vec<Param> = std::mem::take(&mut header.inducing)
        .into_iter()
        .enumerate()
        .map(read_set)
        .collect::<Result<_>>()?;
    let q = header.q.take().map(|q| read_q(q, tensors, "q")).transpose()?;
    if header.layers.len() + 1 != method.architecture().map_or(1, |own| own.layers) {
        return Err(foreign("its header and its method do not agree on layers"));
    }
    if header.layers.first().is_some_and(|layer| layer.inputs() != d) {
        return Err(foreign("its first layer does not see the inputs"));
    }
    let layers = std::mem::take(&mut header.layers).into_iter().enumerate();
    let hidden = layers.map(|(l, own)| own.read(l, tensors)).collect::<Result<Vec<_>>>()?;
    // the last of several layers sees what the one before gives
    let (inputs, columns) = match (hidden.is_empty(), inducing.first().map(Param::shape)) {
        (false, Some(Shape::Matrix(_, columns))) => (Inputs::unnamed(columns), columns),
        _ => (Inputs::named(known), d),
    };
    let kernels = match &header.kernel {
        serde_json::Value::Array(several) => {
            several.iter().map(|json| kernels::build(json, inputs)).collect::<Result<Vec<_>>>()?
        }
        one => vec![kernels::build(one, inputs)?],
    };
    let seen = likelihood.latents() * p;
    let mut model = Model {
        kernels,
        mean: means::from_json(&header.mean, columns, seen)?,
        likelihood,
        inducing,
        q,
        method,
        jitter: header.jitter,
        hidden,
    };
    for (path, param) in model.params_mut() {
        tensors.fill(&path, param)?;
    }
    model.check(d, p).map_err(|e| foreign(e.to_string()))?;
    Ok(model)
}

/// Reads the posterior of a model, of d inputs and p targets.
fn read_posterior(
    header: &Header,
    tensors: &Reader<'_>,
    model: &Model,
    d: usize,
    p: usize,
) -> Result<Posterior> {
    let posterior = posterior(model, tensors, header.jitter_used, d, p)?;
    // files of before took the mean function for certain, and still do
    let posterior = match header.trend {
        Some(basis) => {
            let exact = posterior.q_sqrt().is_empty();
            let weights = (!exact).then(|| tensors.matrix("trend.weights")).transpose()?;
            let trend = SavedTrend { basis, weights, roots: tensors.matrix("trend.roots")? };
            posterior.with_saved_trend(trend).map_err(|error| foreign(error.to_string()))?
        }
        None => posterior,
    };
    // one without the other is damage
    let averages = tensors.has("posterior.hyperparameters") && !tensors.has("posterior.draws");
    let posterior = match averages || tensors.has("posterior.times") {
        true => averages::read(posterior, tensors, model, header.extra.is_none())?,
        false => posterior,
    };
    match header.deviations.is_empty() {
        true => Ok(posterior),
        false => posterior.with_input_deviations(header.deviations.clone()),
    }
}

/// Refuses a header whose parts do not fit together.
fn check(header: &Header) -> Result<()> {
    let (d, p) = (header.inputs.len(), header.targets.len());
    if d == 0 || p == 0 {
        return Err(foreign("its header names no inputs or no targets"));
    }
    let known = d.saturating_sub(header.deviations.len());
    if header.deviations.iter().any(|q| *q >= known) {
        return Err(foreign("its header gives standard deviations to inputs that are not there"));
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
    if !header.absent.is_empty() && header.absent.len() != p {
        return Err(foreign("its header does not say of each target how many rows lack it"));
    }
    if header.target_mean.len() != p || header.target_variance.len() != p {
        return Err(foreign("its header does not have one mean and one variance for each target"));
    }
    Ok(())
}

/// Reads a q of the shape that the tensors have, whose names begin with `prefix`; its values are
/// read with the other parameters.
pub(super) fn read_q(header: QHeader, tensors: &Reader<'_>, prefix: &str) -> Result<Variational> {
    let matrix = |name: &str| {
        let own = tensors.matrix(&format!("{prefix}.{name}"))?;
        match own.nrows() == 0 || own.ncols() == 0 {
            true => Err(foreign(format!("tensor `{prefix}.{name}` is empty"))),
            false => Ok(own),
        }
    };
    let mut q = match header.form {
        Form::Sites(tying) => {
            let first = matrix("lambda1")?;
            Variational::sites(first.nrows(), first.ncols(), tying)
        }
        Form::Likelihood(preconditioner) | Form::Relaxed(preconditioner) => {
            let mu = matrix("mu")?;
            let relaxed = matches!(header.form, Form::Relaxed(_));
            Variational::pseudo_observations(mu.nrows(), mu.ncols(), preconditioner, relaxed)
        }
        form => {
            let mu = matrix("mu")?;
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

/// Returns the posterior from its draws.
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
    if !points_fit(model.kernel(), columns, inputs) {
        return Err(foreign("tensors of the posterior do not fit together"));
    }
    let draws = (0..all.nrows() / latents)
        .map(|s| Mat::from_fn(all.ncols(), latents, |i, l| all[(s * latents + l, i)]))
        .collect();
    let posterior = match tensors.has("posterior.hyperparameters") {
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

/// Returns the posterior from its tensors; the factor is computed again with the jitter that was
/// used.
fn posterior(
    model: &Model,
    tensors: &Reader<'_>,
    jitter: f64,
    inputs: usize,
    outputs: usize,
) -> Result<Posterior> {
    if tensors.has("posterior.draws") && model.hidden.is_empty() {
        return sampled(model, tensors, inputs, outputs);
    }
    if let Ok(method) = methods::Tvgp::of(model.method) {
        let points = tensors.matrix("posterior.inputs")?;
        let latents = model.q.as_ref().map_or(0, |q| q.latents());
        if points.ncols() != inputs || latents != model.latents(outputs) {
            return Err(foreign("tensors of the posterior do not fit together"));
        }
        return method.posterior_at(model, &points);
    }
    if tensors.has(kept::TARGETS) || tensors.has(kept::LATEST) {
        return kept::read(model, tensors, inputs, outputs);
    }
    if !model.hidden.is_empty() {
        let deep = model.to_deep(LastBound::Expectation).map_err(|e| foreign(e.to_string()))?;
        if deep.targets() != outputs {
            return Err(foreign("its last layer does not fit the targets"));
        }
        return Posterior::of_q(model);
    }
    if let Some(q) = &model.q {
        let set = model.inducing_points()?;
        let fits = points_fit(model.kernel(), set.ncols(), inputs) && q.points() == set.nrows();
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
    let fits = points_fit(model.kernel(), points.ncols(), inputs);
    if !fits || q_mu.nrows() != m || q_mu.ncols() != outputs {
        return Err(foreign("tensors of the posterior do not fit together"));
    }
    let mut k = covariances(model.kernel(), points.as_ref(), None);
    let mut row_noise = Vec::new();
    let root = if sparse {
        let root = tensors.matrix("q.sqrt")?;
        if root.nrows() != m || root.ncols() != m {
            return Err(foreign("tensor `q.sqrt` does not fit the inducing points"));
        }
        Some(root)
    } else {
        if tensors.has("posterior.noise") {
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

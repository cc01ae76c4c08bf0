//! From a model to the content of a file.

use super::header::{Divided, Elsewhere, Header, Kept, QHeader};
use super::layers::LayerHeader;
use super::{
    ASIDE, CLOCK, HEADER, HELD_OUT, Holds, KEY, SAMPLING, STATE, VERSION, averages, carried,
    history, kept, sums,
};
use crate::data::{Encoding, Mask};
use crate::fit::Fitted;
use crate::kernels::{self, Inputs};
use crate::likelihoods;
use crate::linalg::{Mat, MatRef};
use crate::means;
use crate::model::SavedTrend;
use crate::params::{Param, Shape};
use crate::train::TrainReport;
use safetensors::{Dtype, tensor::TensorView};
use std::collections::HashMap;

/// Bytes of a header up to which it stays where other programs see it. The file's own header has an end, at 100 MB, and some
/// lists grow with columns, classes and chains.
const LONG: usize = 64 << 10;

pub(super) fn shape_of(param: &Param) -> Vec<usize> {
    match param.shape() {
        Shape::Scalar => vec![],
        Shape::Vector(n) => vec![n],
        Shape::Matrix(n, m) => vec![n, m],
        Shape::Lower(count, size) => vec![count, size, size],
    }
}

/// Returns the little-endian bytes, matrices row by row as readers of the format expect.
pub(super) fn bytes(values: impl Iterator<Item = f64>) -> Vec<u8> {
    values.flat_map(f64::to_le_bytes).collect()
}

pub(super) fn matrix_bytes(a: MatRef<f64>) -> Vec<u8> {
    bytes((0..a.nrows()).flat_map(|i| (0..a.ncols()).map(move |j| a[(i, j)])))
}

pub(super) fn param_bytes(param: &Param) -> Vec<u8> {
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
/// Makes the content of a file.
pub(super) fn content(fitted: &Fitted, state: Holds<'_>) -> std::result::Result<Vec<u8>, String> {
    let model = &fitted.model;
    let mut report = fitted.report.clone();
    let (history, clock) = history::taken(report.as_mut(), &fitted.made);
    let trend = fitted.posterior.trend();
    let header = header_of(fitted, report, trend.as_ref())?;
    // the last of several layers sees what the one before gives
    let columns = model.inducing_points().ok().filter(|_| !model.hidden.is_empty());
    let header = readable(header, columns.map(|z| z.ncols()))?;
    let mut tensors = tensors_of(fitted, trend.as_ref());
    tensors.extend(history);
    tensors.push((CLOCK.into(), vec![clock.len()], bytes(clock.into_iter())));
    let mut raw: Vec<(&str, Vec<u8>)> = Vec::new();
    if let Some(division) = &fitted.division {
        let masks = [(HELD_OUT, &division.held_out), (ASIDE, &division.aside)];
        raw.extend(masks.into_iter().filter_map(|(name, mask)| Some((name, bits(mask.as_ref()?)))));
    }
    let state = match state {
        Holds::Nothing => None,
        Holds::Training(state) => Some((STATE, postcard::to_stdvec(state))),
        Holds::Sampling(state) => Some((SAMPLING, postcard::to_stdvec(state))),
    };
    if let Some((name, bytes)) = state {
        raw.push((name, bytes.map_err(|e| e.to_string())?));
    }
    sealed(header, &tensors, raw)
}

/// Name, shape and content.
type Tensor = (String, Vec<usize>, Vec<u8>);

/// Returns the header of a model with this report.
fn header_of(
    fitted: &Fitted,
    report: Option<TrainReport>,
    trend: Option<&SavedTrend>,
) -> std::result::Result<Header, String> {
    let model = &fitted.model;
    Ok(Header {
        version: VERSION,
        written_by: fitted.made.by.clone(),
        kernel: match &model.kernels[..] {
            [one] => one.to_json(),
            several => several.iter().map(|k| k.to_json()).collect(),
        },
        mean: means::to_json(&*model.mean),
        likelihood: model.likelihood.to_json(),
        inducing: model.inducing.iter().map(Kept::of).collect(),
        q: model.q.as_ref().map(QHeader::of),
        layers: model.hidden.iter().map(LayerHeader::of).collect::<std::result::Result<_, _>>()?,
        method: model.method.name().into(),
        reason: fitted.reason.clone(),
        jitter: model.jitter,
        jitter_used: fitted.posterior.factor().jitter,
        inputs: fitted.input_names.clone(),
        columns: match fitted.columns.iter().all(|c| c.encoding == Encoding::Number) {
            true => Vec::new(),
            false => fitted.columns.clone(),
        },
        deviations: fitted.input_deviations.clone(),
        targets: fitted.target_names.clone(),
        weight: fitted.weight_name.clone(),
        extra: fitted.extra_name.clone(),
        classes: fitted.classes.clone(),
        scaler: fitted.scaler.clone(),
        target_mean: fitted.target_mean.clone(),
        target_variance: fitted.target_variance.clone(),
        rows: fitted.rows,
        total_weight: fitted.total_weight,
        absent: fitted.absent.clone(),
        log_slope: fitted.log_slope,
        trend: trend.map(|trend| trend.basis),
        seed: fitted.seed,
        report,
        warnings: fitted.warnings.clone(),
        annotations: fitted.annotations.clone(),
        division: fitted.division.as_ref().map(|division| Divided {
            rows: division.rows,
            fingerprint: format!("{:016x}", division.fingerprint),
        }),
    })
}

/// Returns the tensors of a model: parameters, posterior and what it carries.
fn tensors_of(fitted: &Fitted, trend: Option<&SavedTrend>) -> Vec<Tensor> {
    let model = &fitted.model;
    let mut tensors: Vec<Tensor> = model
        .params()
        .into_iter()
        .map(|(path, param)| (path, shape_of(param), param_bytes(param)))
        .collect();
    let mut matrix = |name: &str, a: MatRef<f64>| {
        tensors.push((name.into(), vec![a.nrows(), a.ncols()], matrix_bytes(a)));
    };
    let of_rows = model.method.with_q().is_some_and(|q| !q.is_of_points());
    let of_states = model.method.is_of_series() && !fitted.posterior.draws().is_empty();
    if of_rows || of_states {
        matrix("posterior.inputs", fitted.posterior.points());
    } else if let Some(rows) = fitted.posterior.kept_rows() {
        kept::write(rows, fitted.posterior.past(), &mut matrix);
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
    if let Some(SavedTrend { weights, roots, .. }) = trend {
        matrix("trend.roots", roots.as_ref());
        if let Some(weights) = weights {
            matrix("trend.weights", weights.as_ref());
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
    let others = averages::matrices(&fitted.posterior).into_iter().chain(carried::matrices(fitted));
    for (name, own) in others {
        tensors.push((name.into(), vec![own.nrows(), own.ncols()], matrix_bytes(own.as_ref())));
    }
    tensors
}

/// Returns a file of tensors of numbers and of bytes with a header, which is a tensor too where it
/// is long, and checksums.
pub(super) fn sealed(
    header: String,
    tensors: &[(String, Vec<usize>, Vec<u8>)],
    mut raw: Vec<(&str, Vec<u8>)>,
) -> std::result::Result<Vec<u8>, String> {
    let header = if header.len() <= LONG {
        header
    } else {
        raw.push((HEADER, header.into_bytes()));
        let elsewhere = Elsewhere {
            version: VERSION,
            written_by: format!("sparsegp {}", env!("CARGO_PKG_VERSION")),
            header: HEADER.into(),
        };
        serde_json::to_string(&elsewhere).map_err(|e| e.to_string())?
    };
    // of every tensor, of the header, of the sums
    raw.push((sums::NAME, vec![0; sums::length(tensors.len() + raw.len())]));
    let numbers = tensors.iter().map(|(name, shape, data)| {
        TensorView::new(Dtype::F64, shape.clone(), data).map(|view| (name.as_str(), view))
    });
    let bytes = raw.iter().map(|(name, data)| {
        TensorView::new(Dtype::U8, vec![data.len()], data).map(|view| (*name, view))
    });
    let views = numbers.chain(bytes).collect::<std::result::Result<Vec<_>, _>>();
    let metadata = HashMap::from([(KEY.to_owned(), header)]);
    let content = safetensors::serialize(views.map_err(|e| e.to_string())?, Some(metadata));
    let mut content = content.map_err(|e| e.to_string())?;
    sums::reseal(&mut content);
    Ok(content)
}

/// Returns a bit for each row, the lowest of a byte first.
fn bits(mask: &Mask) -> Vec<u8> {
    let mut bytes = vec![0; mask.rows().div_ceil(8)];
    mask.indices(true).into_iter().for_each(|row| bytes[row / 8] |= 1 << (row % 8));
    bytes
}

/// Returns the header as text, which the reader understands: what could not be loaded is not saved.
/// `columns` are those that the kernel sees, where they are not the inputs.
fn readable(mut header: Header, columns: Option<usize>) -> std::result::Result<String, String> {
    let unknown = |what: &str, why: &dyn std::fmt::Display| {
        format!(
            "cannot be written: its {what} could not be loaded again ({why}). A kernel of your own has a place in model \
             files once `sparsegp::kernels::register` has given it a name; else keep the program that makes the {what}, and \
             fit again where the model is used"
        )
    };
    let known = &header.inputs[..header.inputs.len() - header.deviations.len()];
    let inputs = columns.map_or(Inputs::named(known), Inputs::unnamed);
    let kernels = match &header.kernel {
        serde_json::Value::Array(several) => several.iter().collect(),
        one => vec![one],
    };
    for json in kernels {
        kernels::build(json, inputs).map_err(|e| unknown("kernel", &e))?;
    }
    likelihoods::build(&header.likelihood).map_err(|e| unknown("likelihood", &e))?;
    let text = |header: &Header| serde_json::to_string(header).map_err(|e| e.to_string());
    let own = text(&header)?;
    let Err(error) = serde_json::from_str::<Header>(&own) else { return Ok(own) };
    // JSON has no word for what is not finite
    if header.report.take().is_none() {
        return Err(format!("cannot be written: its header could not be read again ({error})"));
    }
    header.warnings.push(
        "the report of the training is not kept: it holds numbers that are not finite".into(),
    );
    let own = text(&header)?;
    match serde_json::from_str::<Header>(&own) {
        Ok(_) => Ok(own),
        Err(error) => {
            Err(format!("cannot be written: its header could not be read again ({error})"))
        }
    }
}

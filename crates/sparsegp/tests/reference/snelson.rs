//! Snelson's one-dimensional data: starts and local optima of the published experiment.

use crate::problem::{self, gradient_by_path};
use crate::support::{Outcome, Report, get, items, matrix, number, numbers, own, text};
use serde_json::{Value, json};
use sparsegp::data::InMemory;
use sparsegp::engine::Cpu;
use sparsegp::linalg::Mat;
use std::path::Path;

/// Values are compared to this (so the files' convention); gradients to the file's `rtol`.
const VALUE: f64 = 1e-6;

/// The number that follows `words` in the file's description, where the file states its jitter and
/// its start; `a^2` is a square.
fn stated(about: &str, words: &str) -> Outcome<f64> {
    let missing = || format!("the description does not state `{words}`");
    let (_, rest) = about.split_once(words).ok_or_else(missing)?;
    let word = rest.trim_start().split([' ', ',', ';']).next().unwrap_or_default();
    let (base, squared) = match word.strip_suffix("^2") {
        Some(base) => (base, true),
        None => (word, false),
    };
    let value: f64 = base.trim_end_matches('.').parse().map_err(|_| missing())?;
    Ok(if squared { value * value } else { value })
}

/// A point in the space of parameters.
struct Point {
    noise: f64,
    variance: f64,
    lengthscale: f64,
    z: Option<Mat<f64>>,
}

/// Value, and the gradient with respect to (log noise, log variance, log lengthscale, Z).
fn evaluate(kind: &str, point: &Point, jitter: f64, data: &InMemory) -> Outcome<(f64, Vec<f64>)> {
    let spec =
        json!({ "type": "rbf", "variance": point.variance, "lengthscales": point.lengthscale });
    let kernel = problem::kernel(&spec, data.x.ncols())?;
    let z = point.z.as_ref().map(|z| z.as_ref());
    let model = problem::plain(kernel, point.noise, z, kind, jitter)?;
    let evaluation = own(model.evaluate(&Cpu::default(), data))?;
    let by_path = gradient_by_path(&model, &evaluation.gradient);
    let mut gradient = Vec::new();
    for (path, factor) in [
        ("likelihood.variance", point.noise),
        ("kernel.variance", point.variance),
        ("kernel.lengthscales", point.lengthscale),
        ("inducing.points", 1.0),
    ] {
        let part = by_path.iter().find(|(p, _)| p == path);
        gradient.extend(part.iter().flat_map(|(_, values)| values.iter().map(|g| g * factor)));
    }
    Ok((evaluation.value, gradient))
}

/// The file `snelson`.
pub fn check(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    report.read_tolerance(json)?;
    let data = own(InMemory::new(matrix(get(json, "x")?)?, matrix(get(json, "y")?)?))?;
    let about = text(get(json, "about")?)?;
    let jitter = stated(about, "jitter ")?;
    for (index, result) in items(get(json, "results")?)?.iter().enumerate() {
        let kind = text(get(result, "kind")?)?;
        report.case = format!("{index} {kind}");
        let start = Point {
            noise: stated(about, "start noise ")?,
            variance: stated(about, "signal ")?,
            lengthscale: stated(about, "lengthscale ")?,
            z: result.get("Z_init").map(matrix).transpose()?,
        };
        let (value, gradient) = evaluate(kind, &start, jitter, &data)?;
        let reference = number(get(result, "start_value")?)?;
        report.close_to("start_value", &[value], &[reference], VALUE);
        let reference = numbers(get(result, "start_grad_log_and_Z")?)?;
        report.close("start_grad_log_and_Z", &gradient, &reference);
        let optimum = Point {
            noise: number(get(result, "noise_variance")?)?,
            variance: number(get(result, "signal_variance")?)?,
            lengthscale: number(get(result, "lengthscale")?)?,
            z: result.get("Z").map(matrix).transpose()?,
        };
        let (value, gradient) = evaluate(kind, &optimum, jitter, &data)?;
        report.close_to("value", &[value], &[number(get(result, "value")?)?], VALUE);
        let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
        report.close("grad_norm", &[norm], &[number(get(result, "grad_norm")?)?]);
    }
    Ok(())
}

//! The collapsed family: value, split, adjoints, hyperparameter gradients and q(u).

use crate::probe::{Prepared, Rows, SlopeInR, Spy};
use crate::problem::{self, gradient_by_path};
use crate::support::{Outcome, Report, by_rows, entries, get, items, number, numbers, own, text};
use serde_json::Value;
use sparsegp::data::InMemory;
use sparsegp::engine::{CholeskyBasis, Cpu};
use sparsegp::kernels::Tape;
use sparsegp::linalg::Mat;
use sparsegp::model::Model;
use sparsegp::terms::{self, Pooling};
use std::path::Path;

/// Approximations that are not built yet.
pub const KINDS_NOT_BUILT: &[&str] = &["dtc"];

/// The method of a kind: its name, with its α where it has one.
pub fn method(result: &Value) -> Outcome<String> {
    let name = text(get(result, "kind")?)?;
    Ok(match result.get("alpha") {
        Some(alpha) => format!("{name}(alpha={})", number(alpha)?),
        None => name.to_owned(),
    })
}

/// α of a kind that changes the noise of a row: s = σ² + αr.
pub fn power(result: &Value) -> Outcome<Option<f64>> {
    Ok(match text(get(result, "kind")?)? {
        "fitc" => Some(1.0),
        "pep" => Some(number(get(result, "alpha")?)?),
        _ => None,
    })
}

/// Unexplained variances r of all rows.
fn unexplained(model: &Model, data: &InMemory) -> Outcome<Vec<f64>> {
    let z = own(model.inducing_points())?;
    let mut kuu = Mat::zeros(z.nrows(), z.nrows());
    model.kernel().evaluate(z.as_ref(), None, kuu.as_mut(), &mut Tape::off());
    let basis = own(CholeskyBasis::new(kuu.as_ref(), model.jitter))?;
    let prepared = Prepared { model, z: z.as_ref(), basis: &basis };
    let rows = Rows::new(model.noise(), SlopeInR::PerRow);
    own(prepared.fold(&rows, data))?;
    let r = rows.unexplained.into_inner().map_err(|e| e.to_string())?;
    if r.len() != data.x.nrows() {
        return Err("the engine did not show every row once".into());
    }
    Ok(r)
}

/// P Σ ρ of a bound, or of power expectation propagation with this α.
fn penalty(name: &str, alpha: Option<f64>, r: &[f64], outputs: usize, noise: f64) -> Outcome<f64> {
    if let Some(alpha) = alpha {
        let each = r.iter().map(|r| (alpha * r / noise).ln_1p());
        return Ok(outputs as f64 * (1.0 - alpha) / (2.0 * alpha) * each.sum::<f64>());
    }
    let term = terms::REGISTRY.iter().find(|term| term.name() == name);
    let term = term.ok_or_else(|| format!("no term is called {name}"))?;
    let each = match term.pooling() {
        Pooling::Total => term.penalty(r.iter().sum(), r.len() as f64, noise).value,
        Pooling::Rows => r.iter().map(|r| term.penalty(*r, 1.0, noise).value).sum(),
    };
    Ok(outputs as f64 * each)
}

/// The only entry of a list of cotangents.
pub fn only<T>(list: &[T]) -> Outcome<&T> {
    match list {
        [one] => Ok(one),
        _ => Err(format!("{} cotangents where one was expected", list.len())),
    }
}

/// Compares gradients listed as `variance`, `lengthscales` and `Z`.
pub fn hyper(
    field: &str,
    gradients: &[(String, Vec<f64>)],
    json: &Value,
    report: &mut Report,
) -> Outcome {
    for (name, reference) in entries(json)? {
        let path =
            if name == "Z" { "inducing.points".to_owned() } else { format!("kernel.{name}") };
        match gradients.iter().find(|(p, _)| *p == path) {
            Some((_, values)) => {
                report.close(&format!("{field} {name}"), values, &numbers(reference)?);
            }
            None => report.fail(field, &format!("gradient of the unknown `{name}`")),
        }
    }
    Ok(())
}

/// One kind of one case.
fn kind(case: &Value, result: &Value, r: &[f64], report: &mut Report) -> Outcome {
    let (mut model, data) = problem::bounds(case, &method(result)?)?;
    let spy = Spy::new(model.kernels[0].clone());
    let log = spy.log.clone();
    model.kernels = vec![Box::new(spy)];
    let noise = model.noise();
    let evaluation = own(model.evaluate(&Cpu::default(), &data))?;
    let log = log.lock().map_err(|e| e.to_string())?;
    let gradients = gradient_by_path(&model, &evaluation.gradient);
    let q = own(model.posterior(&Cpu::default(), &data))?.q_u();
    let alpha = power(result)?;
    let charged = || penalty(model.method.name(), alpha, r, data.y.ncols(), noise);
    for (field, reference) in entries(result)? {
        let values = match field.as_str() {
            "kind" | "alpha" => continue,
            "hyper" => {
                hyper(field, &gradients, reference, report)?;
                continue;
            }
            "value" => vec![evaluation.value],
            "data_term" => vec![evaluation.value + charged()?],
            "reg" => vec![charged()?],
            "Kuu_bar" | "Kff_bar" => by_rows(only(&log.own)?.as_ref()),
            "Kuf_bar" => by_rows(only(&log.cross)?.transpose()),
            "kff_bar" => only(&log.diag)?.clone(),
            "noise_bar" => {
                let noise = gradients.iter().find(|(path, _)| path == "likelihood.variance");
                noise.ok_or("no gradient of the noise")?.1.clone()
            }
            "qu_mean" => by_rows(q.as_ref().ok_or("no q(u)")?.0.as_ref()),
            "qu_cov" => by_rows(q.as_ref().ok_or("no q(u)")?.1[0].as_ref()),
            _ => {
                report.fail(field, "an output that the check does not know");
                continue;
            }
        };
        report.close(field, &values, &numbers(reference)?);
    }
    Ok(())
}

/// The file `collapsed`.
pub fn check(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    report.read_tolerance(json)?;
    for (index, case) in items(get(json, "cases")?)?.iter().enumerate() {
        report.case = format!("case {index}");
        let (model, data) = problem::bounds(case, "titsias2009")?;
        let noise = model.noise();
        let r = unexplained(&model, &data)?;
        let mean = r.iter().sum::<f64>() / r.len() as f64;
        report.close("d", &r, &numbers(get(case, "d")?)?);
        let factors: Vec<f64> = r.iter().map(|r| 1.0 / (1.0 + r / noise)).collect();
        report.close("v", &factors, &numbers(get(case, "v")?)?);
        let spherical = number(get(case, "v_spherical")?)?;
        report.close("v_spherical", &[1.0 / (1.0 + mean / noise)], &[spherical]);
        for result in items(get(case, "results")?)? {
            let name = text(get(result, "kind")?)?;
            if !KINDS_NOT_BUILT.contains(&name) {
                report.case = format!("case {index} {}", method(result)?);
                kind(case, result, &r, report)?;
            }
        }
    }
    Ok(())
}

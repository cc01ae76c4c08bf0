//! Statistics of chunks of rows, their sums, and the gradients of chunks, through the engine's public
//! interface; the M×M work in between is written out here from the formulas.

use crate::collapsed::{KINDS_NOT_BUILT, hyper, method, power};
use crate::probe::{Given, Prepared, Rows, SlopeInR};
use crate::problem::{self, gradient_by_path};
use crate::streaming_power;
use crate::support::{Outcome, Report, by_rows, entries, get, items, number, numbers, own, text};
use serde_json::Value;
use sparsegp::data::InMemory;
use sparsegp::engine::{CholeskyBasis, Cpu, Want};
use sparsegp::kernels::{Cotangents, Tape};
use sparsegp::linalg::{Cholesky, Jitter, Mat, dot};
use sparsegp::model::Model;
use std::path::Path;

/// Names of a kernel's gradients and of Z's, as [`hyper`] wants them.
pub fn named(model: &Model, kernel: &[f64], z: &Mat<f64>) -> Vec<(String, Vec<f64>)> {
    let mut gradient = vec![0.0; model.num_params()];
    let parts = model.parts_of(&mut gradient);
    parts.kernel.copy_from_slice(kernel);
    for (target, q) in parts.inducing.chunks_exact_mut(z.nrows()).zip(0..) {
        target.copy_from_slice(z.col_as_slice(q));
    }
    gradient_by_path(model, &gradient)
}

/// Rows `cuts[k]..cuts[k + 1]`.
pub fn chunks(data: &InMemory, cuts: &[f64]) -> Outcome<Vec<InMemory>> {
    let cut = |pair: &[f64]| {
        let (from, len) = (pair[0] as usize, (pair[1] - pair[0]) as usize);
        let x = data.x.as_ref().subrows(from, len).to_owned();
        own(InMemory::new(x, data.y.as_ref().subrows(from, len).to_owned()))
    };
    cuts.windows(2).map(cut).collect()
}

/// The sum of the statistics of all chunks.
pub fn total(parts: Vec<Given>) -> Outcome<Given> {
    let mut parts = parts.into_iter();
    let mut sum = parts.next().ok_or("no chunks")?;
    for part in parts {
        sum.sums.iter_mut().zip(&part.sums).for_each(|(t, v)| *t += v);
        sum.phi_a += &part.phi_a;
        sum.gram += &part.gram;
        if let (Some(sum), Some(part)) = (&mut sum.gram_c, &part.gram_c) {
            *sum += part;
        }
    }
    Ok(sum)
}

/// Compares what one fold gave with a chunk's (or the total's) statistics.
fn statistics(
    folded: &Given,
    outputs: f64,
    noise: f64,
    json: &Value,
    report: &mut Report,
) -> Outcome {
    let scaled = |a: &Mat<f64>, factor: f64| -> Vec<f64> {
        by_rows(a.as_ref()).iter().map(|v| v * factor).collect()
    };
    for (field, reference) in entries(json)? {
        let values = match field.as_str() {
            "n" => vec![folded.sums[0]],
            "yy" => vec![folded.sums[1] / noise],
            "Cy" => scaled(&folded.phi_a, 1.0),
            "CC" => scaled(&folded.gram, 1.0 / noise),
            "logs" => vec![folded.sums[0] * noise.ln()],
            "sum_d" => vec![folded.sums[2]],
            "reg" => vec![folded.sums[3]],
            "reg_s2" => vec![folded.sums[4]],
            // per target column
            "CWC" => {
                scaled(folded.gram_c.as_ref().ok_or("no weighted Gram matrix")?, 1.0 / outputs)
            }
            _ => {
                report.fail(field, "a statistic that the check does not know");
                continue;
            }
        };
        report.close(field, &values, &numbers(reference)?);
    }
    Ok(())
}

/// Everything about one kind.
fn kind(json: &Value, result: &Value, name: &str, report: &mut Report) -> Outcome {
    let engine = Cpu::default();
    let (model, data) = problem::bounds(json, name)?;
    let (noise, p) = (model.noise(), data.y.ncols());
    let outputs = p as f64;
    let z = own(model.inducing_points())?;
    let m = z.nrows();
    let mut tape = Tape::recording();
    let mut kuu = Mat::zeros(m, m);
    model.kernel().evaluate(z.as_ref(), None, kuu.as_mut(), &mut tape);
    let basis = own(CholeskyBasis::new(kuu.as_ref(), model.jitter))?;
    let prepared = Prepared { model: &model, z: z.as_ref(), basis: &basis };
    let parts = chunks(&data, &numbers(get(json, "cuts")?)?)?;

    // pass 1: at μ = m(x) the slopes in r, where they differ, are known already
    let per_row = name == "new";
    let c = if per_row { SlopeInR::PerRow } else { SlopeInR::Constant(0.0) };
    let mut folded = Vec::new();
    for part in &parts {
        folded.push(own(prepared.fold(&Rows::new(noise, c), part))?);
    }
    let case = report.case.clone();
    for (index, (part, reference)) in folded.iter().zip(items(get(result, "chunks")?)?).enumerate()
    {
        report.case = format!("{case} chunk {index}");
        statistics(part, outputs, noise, reference, report)?;
    }
    report.case = format!("{case} total");
    let sum = total(folded)?;
    statistics(&sum, outputs, noise, get(result, "total")?, report)?;

    // between the passes: B = I + ΦΦᵀ/σ², e = B⁻¹Φy/σ², the regulariser and its slopes
    report.case = case.clone();
    let (n, t) = (sum.sums[0], sum.sums[2]);
    let b = Mat::from_fn(m, m, |i, j| sum.gram[(i, j)] / noise + f64::from(u8::from(i == j)));
    let factor = own(Cholesky::new(b.as_ref(), Jitter::Absolute(0.0), "B"))?;
    let e = factor.solve(sum.phi_a.as_ref());
    let covariance = factor.inverse();
    let (penalty, by_noise, c) = match name {
        "sgpr" => (0.5 * t / noise, -0.5 * t / (noise * noise), -0.5 / noise),
        "artemev" => {
            let mean = t / n;
            let by_noise = -0.5 * t / (noise * (noise + mean));
            (0.5 * n * (mean / noise).ln_1p(), by_noise, -0.5 / (noise + mean))
        }
        "new" => (sum.sums[3], sum.sums[4], f64::NAN),
        other => return Err(format!("the unknown kind {other}")),
    };
    let value = -0.5
        * (outputs * n * (2.0 * std::f64::consts::PI * noise).ln()
            + outputs * factor.log_det()
            + sum.sums[1] / noise
            - dot(sum.phi_a.as_ref(), e.as_ref()))
        - outputs * penalty;
    report.close("value", &[value], &[number(get(result, "value")?)?]);

    // pass 2
    let q = (&e, Some(&covariance));
    let c = if per_row { SlopeInR::PerRow } else { SlopeInR::Constant(c) };
    let mut kernel = vec![0.0; model.kernel().num_params()];
    let mut z_bar = Mat::zeros(m, z.ncols());
    let mut squares = 0.0;
    for (index, (part, reference)) in
        parts.iter().zip(items(get(result, "chunk_hyper")?)?).enumerate()
    {
        let rows = Rows::new(noise, c);
        let unfolded = own(prepared.at(q, &rows, part, Want::GradientsAlone))?;
        let gradients = named(&model, &unfolded.kernel, &unfolded.z);
        hyper(&format!("chunk_hyper[{index}]"), &gradients, reference, report)?;
        kernel.iter_mut().zip(&unfolded.kernel).for_each(|(t, v)| *t += v);
        z_bar += &unfolded.z;
        squares += unfolded.sums[1];
    }

    // the part through Kuu: Φ̄Φᵀ = e(Φa)ᵀ + 2bSΦΦᵀ − 2Φ diag(c) Φᵀ, with Φa = e at the optimum
    let gram_c = match (&sum.gram_c, c) {
        (Some(gram_c), _) => gram_c.clone(),
        (None, SlopeInR::Constant(c)) => Mat::from_fn(m, m, |i, j| outputs * c * sum.gram[(i, j)]),
        (None, SlopeInR::PerRow) => return Err("no weighted Gram matrix".into()),
    };
    let through = &covariance * &sum.gram;
    let outer = &e * e.transpose();
    let psi = Mat::from_fn(m, m, |i, j| {
        outer[(i, j)] - outputs / noise * through[(i, j)] - 2.0 * gram_c[(i, j)]
    });
    let mut kuu_bar = basis.kuu_bar(psi);
    let mut own_kernel = vec![0.0; kernel.len()];
    let mut own_z = Mat::zeros(m, z.ncols());
    let mut sinks = Cotangents { params: &mut own_kernel, x: Some(own_z.as_mut()), z: None };
    let kuu = kuu.as_ref();
    model.kernel().vjp(z.as_ref(), None, kuu, kuu_bar.as_mut(), &mut tape, &mut sinks);
    hyper("Kuu_hyper", &named(&model, &own_kernel, &own_z), get(result, "Kuu_hyper")?, report)?;
    kernel.iter_mut().zip(&own_kernel).for_each(|(t, v)| *t += v);
    z_bar += &own_z;
    let reference = get(result, "total_hyper")?;
    hyper("total_hyper", &named(&model, &kernel, &z_bar), reference, report)?;
    let trace: f64 = (0..m).map(|i| covariance[(i, i)]).sum();
    let noise_bar = 0.5 * squares / (noise * noise)
        - 0.5 * outputs * (n - m as f64 + trace) / noise
        - outputs * by_noise;
    let reference = number(get(result, "noise_bar")?)?;
    report.close("noise_bar", &[noise_bar], &[reference]);

    // the method does the same
    report.case = format!("{case} method");
    let evaluation = own(model.evaluate(&engine, &data))?;
    let gradients = gradient_by_path(&model, &evaluation.gradient);
    report.close("value", &[evaluation.value], &[number(get(result, "value")?)?]);
    hyper("total_hyper", &gradients, get(result, "total_hyper")?, report)?;
    let own_noise = gradients.iter().find(|(path, _)| path == "likelihood.variance");
    report.close("noise_bar", &own_noise.ok_or("no noise")?.1, &[reference]);
    Ok(())
}

/// The file `streaming`.
pub fn check(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    report.read_tolerance(json)?;
    for result in items(get(json, "results")?)? {
        let name = text(get(result, "kind")?)?;
        if KINDS_NOT_BUILT.contains(&name) {
            continue;
        }
        report.case = method(result)?;
        match power(result)? {
            Some(alpha) => streaming_power::kind(json, result, alpha, report)?,
            None => kind(json, result, name, report)?,
        }
    }
    Ok(())
}

//! The file `streaming` for FITC and power expectation propagation: statistics of chunks, their sums, and the
//! gradients of chunks, through the engine's public interface with rows written out here from the formulas.

use crate::collapsed::{hyper, method};
use crate::probe::{Given, Prepared};
use crate::problem::{self, gradient_by_path};
use crate::streaming::{chunks, named, total};
use crate::support::{Outcome, Report, by_rows, entries, get, items, number, numbers, own};
use serde_json::Value;
use sparsegp::engine::{Block, CholeskyBasis, Cpu, Plan, Pointwise, Slope, Slopes, Want};
use sparsegp::kernels::{Cotangents, Tape};
use sparsegp::linalg::{Cholesky, Jitter, Mat, dot};

/// Rows with the noise s = σ² + αr.
#[derive(Clone, Copy)]
struct Rows {
    noise: f64,
    alpha: f64,
}

/// Without a q. Sums are n, Σ‖y‖²/s, Σ log s, Σr, Σρ and its slope in σ².
struct First(Rows);

/// At q. The sum is Σδ.
struct Second(Rows);

impl Pointwise for First {
    fn plan(&self) -> Plan<'_> {
        let c = Some(Slope::Constant(0.0));
        Plan { variances: false, c, ..Plan::by_rows(6) }
    }

    fn rows(&self, block: Block<'_>, mut out: Slopes<'_>) {
        let (s2, alpha, y) = (self.0.noise, self.0.alpha, block.rows.y);
        for i in 0..y.nrows() {
            let r = block.r[(i, 0)];
            let s = s2 + alpha * r;
            out.sums[0] += 1.0;
            out.sums[2] += s.ln();
            out.sums[3] += r;
            out.sums[4] += (1.0 - alpha) / (2.0 * alpha) * (alpha * r / s2).ln_1p();
            out.sums[5] -= 0.5 * (1.0 - alpha) * r / (s2 * s);
            for p in 0..y.ncols() {
                let residual = y[(i, p)] - block.mu[(i, p)];
                out.a[(i, p)] = residual / s;
                // of all targets together
                out.b[(i, p)] = 1.0 / (s * y.ncols() as f64);
                out.sums[1] += residual * residual / s;
            }
        }
    }
}

impl Pointwise for Second {
    fn plan(&self) -> Plan<'_> {
        Plan::by_rows(1)
    }

    fn rows(&self, block: Block<'_>, mut out: Slopes<'_>) {
        let Rows { noise, alpha } = self.0;
        for i in 0..block.mu.nrows() {
            for p in 0..block.mu.ncols() {
                let s = noise + alpha * block.r[(i, p)];
                let gamma = (block.rows.y[(i, p)] - block.mu[(i, p)]) / s;
                let delta = 0.5 * (gamma * gamma - 1.0 / s + block.s[(i, p)] / (s * s));
                out.sums[0] += delta;
                out.a[(i, p)] = gamma;
                out.b[(i, p)] = -0.5 / s;
                out.c[(i, p)] = alpha * delta - 0.5 * (1.0 - alpha) / s;
            }
        }
    }
}

fn statistics(folded: &Given, json: &Value, report: &mut Report) -> Outcome {
    for (field, reference) in entries(json)? {
        let values = match field.as_str() {
            "n" => vec![folded.sums[0]],
            "yy" => vec![folded.sums[1]],
            "logs" => vec![folded.sums[2]],
            "sum_d" => vec![folded.sums[3]],
            "reg" => vec![folded.sums[4]],
            "reg_s2" => vec![folded.sums[5]],
            "Cy" => by_rows(folded.phi_a.as_ref()),
            "CC" => by_rows(folded.gram.as_ref()),
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
pub fn kind(json: &Value, result: &Value, alpha: f64, report: &mut Report) -> Outcome {
    let engine = Cpu::default();
    let (model, data) = problem::bounds(json, &method(result)?)?;
    let rows = Rows { noise: model.noise(), alpha };
    let p = data.y.ncols() as f64;
    let z = own(model.inducing_points())?;
    let m = z.nrows();
    let mut tape = Tape::recording();
    let mut kuu = Mat::zeros(m, m);
    model.kernel().evaluate(z.as_ref(), None, kuu.as_mut(), &mut tape);
    let basis = own(CholeskyBasis::new(kuu.as_ref(), model.jitter))?;
    let prepared = Prepared { model: &model, z: z.as_ref(), basis: &basis };
    let parts = chunks(&data, &numbers(get(json, "cuts")?)?)?;
    let case = report.case.clone();

    // pass 1
    let mut folded = Vec::new();
    for part in &parts {
        folded.push(own(prepared.fold(&First(rows), part))?);
    }
    for (index, (part, reference)) in folded.iter().zip(items(get(result, "chunks")?)?).enumerate()
    {
        report.case = format!("{case} chunk {index}");
        statistics(part, reference, report)?;
    }
    report.case = format!("{case} total");
    let sum = total(folded)?;
    statistics(&sum, get(result, "total")?, report)?;

    // B = I + Φ diag(1/s) Φᵀ, e = B⁻¹Φ diag(1/s) y
    report.case = case.clone();
    let b = Mat::from_fn(m, m, |i, j| sum.gram[(i, j)] + f64::from(u8::from(i == j)));
    let factor = own(Cholesky::new(b.as_ref(), Jitter::Absolute(0.0), "B"))?;
    let e = factor.solve(sum.phi_a.as_ref());
    let covariance = factor.inverse();
    let value = -0.5
        * (p * sum.sums[0] * (2.0 * std::f64::consts::PI).ln()
            + p * (sum.sums[2] + factor.log_det())
            + sum.sums[1]
            - dot(sum.phi_a.as_ref(), e.as_ref()))
        - p * sum.sums[4];
    report.close("value", &[value], &[number(get(result, "value")?)?]);

    // pass 2
    let mut kernel = vec![0.0; model.kernel().num_params()];
    let mut z_bar = Mat::zeros(m, z.ncols());
    let mut gram_c = Mat::zeros(m, m);
    let mut delta = 0.0;
    for (index, (part, reference)) in
        parts.iter().zip(items(get(result, "chunk_hyper")?)?).enumerate()
    {
        let of = own(prepared.at((&e, Some(&covariance)), &Second(rows), part, Want::Gradients))?;
        let field = format!("chunk_hyper[{index}]");
        hyper(&field, &named(&model, &of.kernel, &of.z), reference, report)?;
        kernel.iter_mut().zip(&of.kernel).for_each(|(t, v)| *t += v);
        z_bar += &of.z;
        gram_c += of.gram_c.as_ref().ok_or("no weighted Gram matrix")?;
        delta += of.sums[0];
    }

    // the part through Kuu: ½(P(I − B⁻¹) − eeᵀ) + Φ diag(w) Φᵀ between L⁻ᵀ and L⁻¹
    let outer = &e * e.transpose();
    let identity = |i, j| f64::from(u8::from(i == j));
    let psi = Mat::from_fn(m, m, |i, j| {
        outer[(i, j)] + p * (covariance[(i, j)] - identity(i, j)) - 2.0 * gram_c[(i, j)]
    });
    let mut kuu_bar = basis.kuu_bar(psi);
    let mut own_kernel = vec![0.0; kernel.len()];
    let mut own_z = Mat::zeros(m, z.ncols());
    let mut sinks = Cotangents { params: &mut own_kernel, x: Some(own_z.as_mut()), z: None };
    model.kernel().vjp(z.as_ref(), None, kuu.as_ref(), kuu_bar.as_mut(), &mut tape, &mut sinks);
    hyper("Kuu_hyper", &named(&model, &own_kernel, &own_z), get(result, "Kuu_hyper")?, report)?;
    kernel.iter_mut().zip(&own_kernel).for_each(|(t, v)| *t += v);
    z_bar += &own_z;
    let whole = get(result, "total_hyper")?;
    hyper("total_hyper", &named(&model, &kernel, &z_bar), whole, report)?;
    let noise = number(get(result, "noise_bar")?)?;
    report.close("noise_bar", &[delta - p * sum.sums[5]], &[noise]);

    // the method does the same
    report.case = format!("{case} method");
    let evaluation = own(model.evaluate(&engine, &data))?;
    let gradients = gradient_by_path(&model, &evaluation.gradient);
    report.close("value", &[evaluation.value], &[number(get(result, "value")?)?]);
    hyper("total_hyper", &gradients, whole, report)?;
    let own_noise = gradients.iter().find(|(path, _)| path == "likelihood.variance");
    report.close("noise_bar", &own_noise.ok_or("no noise")?.1, &[noise]);
    Ok(())
}

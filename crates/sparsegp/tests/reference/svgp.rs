//! Uncollapsed bounds of GPflow and their counterparts in other libraries: any likelihood, several
//! latent functions, minibatches.

use crate::batch::Batch;
use crate::gpflow::{self, NOT_COMPARED};
use crate::problem::gradient_by_path;
use crate::support::{Outcome, Report, by_rows, entries, get, number, numbers, own, text};
use crate::trained::{Problem, check_known, marginals, prior_kl};
use serde_json::Value;
use sparsegp::engine::{Cpu, Want};
use sparsegp::likelihoods::Target;
use sparsegp::likelihoods::quadrature::Nodes;
use sparsegp::linalg::Mat;
use sparsegp::methods::{Evaluation, Uncollapsed};
use sparsegp::model::Posterior;
use std::f64::consts::FRAC_1_SQRT_2;
use std::path::Path;

/// What a file may have among its inputs.
pub const INPUTS: &[&str] = &[
    "kernel",
    "mean_function",
    "likelihood",
    "whiten",
    "q_diag",
    "num_data",
    "X",
    "Y",
    "Z",
    "Zs",
    "q_mu",
    "q_sqrt",
    "Xnew",
    "Ynew",
    "minibatch_indices",
    "eps",
];

/// Covariances between latent functions at `Xnew`: N×L×L, or N×L×N×L.
fn between_outputs(field: &str, posterior: &Posterior, x: &Mat<f64>) -> Outcome<Option<Vec<f64>>> {
    let (l, n) = (posterior.latents(), x.nrows());
    let every_row = match field {
        "predict_f_full_output_cov" => false,
        "predict_f_full_cov_full_output_cov" => true,
        _ => return Ok(None),
    };
    let joint = own(posterior.predict_f_joint(x.as_ref()))?.1;
    let mut all = Vec::new();
    for i in 0..n {
        for p in 0..l {
            for j in if every_row { 0..n } else { i..i + 1 } {
                all.extend((0..l).map(|q| joint[(p * n + i, q * n + j)]));
            }
        }
    }
    Ok(Some(all))
}

/// Compares a prediction, of the latent functions or of observations, if `field` is one.
pub fn prediction(
    field: &str,
    posterior: &Posterior,
    problem: &Problem,
    inputs: &Value,
    reference: &Value,
    report: &mut Report,
) -> Outcome<bool> {
    if problem.observed.prediction(field, posterior, inputs, reference, report)? {
        return Ok(true);
    }
    let x = crate::support::matrix(get(inputs, "Xnew")?)?;
    let found = match between_outputs(field, posterior, &x)? {
        Some(values) => Some(values),
        None => gpflow::prediction(field, posterior, inputs)?,
    };
    if let Some(values) = &found {
        report.close(field, values, &numbers(reference)?);
    }
    Ok(found.is_some())
}

/// GPyTorch's log Φ. Below −1 it is a rational function that was made for arguments below −8√2 (of
/// erfc, Hart et al. 1968): at −1 it is 1.9·10⁻³ too small.
fn gpytorch_log_cdf(z: f64, exact: f64) -> f64 {
    const ABOVE: [f64; 6] = [
        0.564_189_583_547_755_1,
        1.275_366_644_729_966,
        5.019_049_726_784_267,
        6.160_209_853_109_63,
        7.409_740_605_964_742,
        2.978_865_626_393_993,
    ];
    const BELOW: [f64; 7] = [
        1.0,
        2.260_528_520_767_327,
        9.396_034_016_235_054,
        12.048_951_927_855_13,
        17.081_440_747_466,
        9.608_965_327_192_788,
        3.369_075_206_982_753,
    ];
    if z >= -1.0 {
        return exact;
    }
    let horner = |c: &[f64]| c.iter().fold(0.0, |sum, c| c - z * FRAC_1_SQRT_2 * sum);
    (0.5 * horner(&ABOVE) / horner(&BELOW)).ln() - 0.5 * z * z
}

/// What that is worth in GPyTorch's bound for two classes by an exact probit, whose expectations are by
/// 20 points of Gauss–Hermite.
fn gpytorch_excess(problem: &Problem, rows: &Batch) -> Outcome<f64> {
    let nodes = Nodes::gauss_hermite(crate::likelihood::POINTS);
    let marginals = marginals(&problem.model, rows)?;
    let mut sum = 0.0;
    for p in 0..rows.rows.y.ncols() {
        for i in 0..rows.rows.y.nrows() {
            let target = Target { y: rows.rows.y[(i, p)], extra: 1.0 };
            let deviation = (marginals.s[(i, p)] + marginals.r[(i, p)]).max(0.0).sqrt();
            for (x, w) in nodes.x.iter().zip(&nodes.w) {
                let f = marginals.mu[(i, p)] + deviation * x;
                let exact = problem.model.likelihood.log_prob(target, &[f]);
                let z = if target.y == 1.0 { f } else { -f };
                sum += w * (gpytorch_log_cdf(z, exact) - exact);
            }
        }
    }
    Ok(sum * rows.scale)
}

/// The files `svgp_*`, `multioutput_*` and their counterparts in other libraries.
pub fn check(json: &Value, folder: &Path, report: &mut Report) -> Outcome {
    let Some(inputs) = gpflow::inputs(json, folder)? else {
        report.skipped = true;
        return Ok(());
    };
    check_known(&inputs, INPUTS)?;
    let gpytorch = text(get(json, "library")?)? == "gpytorch";
    // its probit has no floor
    let problem = Problem::read(&inputs, number(get(json, "jitter")?)?, !gpytorch)?;
    let model = &problem.model;
    let engine = Cpu::default();
    let evaluate = |rows: &Batch| -> Outcome<Evaluation> {
        let mut evaluation = own(model.evaluate(&engine, rows))?;
        if gpytorch && model.likelihood.name() == "bernoulli" {
            evaluation.value += gpytorch_excess(&problem, rows)?;
        }
        Ok(evaluation)
    };
    let full = evaluate(&problem.data)?;
    let posterior = own(model.posterior(&engine, &problem.data))?;
    for (field, reference) in entries(get(json, "outputs")?)? {
        let (of_batch, name) = match field.strip_suffix("_minibatch") {
            Some(name) => (true, name),
            None => (false, field.as_str()),
        };
        let evaluation = match of_batch {
            true => evaluate(&problem.minibatch(&inputs)?)?,
            false => full.clone(),
        };
        match name {
            "elbo" => report.close(field, &[evaluation.value], &[number(reference)?]),
            "grad_elbo" => {
                let gradient = gradient_by_path(model, &evaluation.gradient);
                gpflow::gradient(field, gradient, reference, report)?;
            }
            _ if of_batch => report.fail(field, "an output that the check does not know"),
            "prior_kl" => report.close(field, &[prior_kl(model)?], &[number(reference)?]),
            other if NOT_COMPARED.contains(&other) => {}
            _ => {
                if !prediction(field, &posterior, &problem, &inputs, reference, report)? {
                    report.fail(field, "an output that the check does not know");
                }
            }
        }
    }
    Ok(())
}

/// Rate, number of steps, and whether they are of the minibatch, from `gamma_RATE_HOW`.
fn schedule(field: &str) -> Option<(f64, usize, bool)> {
    let (rate, how) = field.strip_prefix("gamma_")?.split_once('_')?;
    let (steps, of_batch) = match how {
        "one_step" => (1, false),
        "five_steps" => (5, false),
        "minibatch" => (1, true),
        _ => return None,
    };
    Some((rate.parse().ok()?, steps, of_batch))
}

/// The files `natgrad_*`: q after natural-gradient steps.
pub fn natural(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    let inputs = get(json, "inputs")?;
    check_known(inputs, INPUTS)?;
    let problem = Problem::read(inputs, number(get(json, "jitter")?)?, true)?;
    let engine = Cpu::default();
    for (field, reference) in entries(get(json, "outputs")?)? {
        if field == "elbo_before" {
            let value = own(problem.model.evaluate(&engine, &problem.data))?.value;
            report.close(field, &[value], &[number(reference)?]);
            continue;
        }
        let Some((rate, steps, of_batch)) = schedule(field) else {
            report.fail(field, "an output that the check does not know");
            continue;
        };
        let rows = if of_batch { problem.minibatch(inputs)? } else { problem.data.clone() };
        let mut model = problem.model.clone();
        let method = Uncollapsed::of(model.method).map_err(|_| "the method has no q")?;
        for _ in 0..steps {
            let mut step = own(method.step(&model, &engine, &rows, Want::Statistics))?;
            own(step.natural(&mut model, rate))?;
        }
        let q = model.q.as_ref().ok_or("no q")?;
        let roots: Vec<Mat<f64>> = (0..q.latents()).map(|l| q.root(l)).collect();
        for (name, reference) in entries(reference)? {
            let values = match name.as_str() {
                "q_mu" => by_rows(q.mean().as_ref()),
                "q_sqrt" => roots.iter().flat_map(|r| by_rows(r.as_ref())).collect(),
                "q_cov" => {
                    roots.iter().flat_map(|r| by_rows((r * r.transpose()).as_ref())).collect()
                }
                "elbo_after" => vec![own(model.evaluate(&engine, &problem.data))?.value],
                _ => {
                    report.fail(field, &format!("the unknown output `{name}`"));
                    continue;
                }
            };
            report.close(&format!("{field} {name}"), &values, &numbers(reference)?);
        }
    }
    Ok(())
}

//! Uncollapsed bounds of GPflow and their counterparts in other libraries: any likelihood, several
//! latent functions, minibatches.

use crate::gpflow::{self, NOT_COMPARED};
use crate::problem::gradient_by_path;
use crate::support::{Outcome, Report, by_rows, entries, get, number, numbers, own, text};
use crate::trained::{Problem, check_known, prior_kl};
use serde_json::Value;
use sparsegp::engine::Cpu;
use sparsegp::linalg::Mat;
use sparsegp::model::Posterior;
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

/// Covariances between latent functions at `Xnew`, which are independent here: N×L×L, or N×L×N×L from
/// the full covariances over the rows.
fn between_outputs(field: &str, posterior: &Posterior, x: &Mat<f64>) -> Outcome<Option<Vec<f64>>> {
    let l = posterior.latents();
    let n = x.nrows();
    let mut all = Vec::new();
    match field {
        "predict_f_full_output_cov" => {
            let variance = own(posterior.predict_f(x.as_ref()))?.1;
            for i in 0..n {
                let entry = |p: usize, q: usize| if p == q { variance[(i, p)] } else { 0.0 };
                all.extend((0..l).flat_map(|p| (0..l).map(move |q| entry(p, q))));
            }
        }
        "predict_f_full_cov_full_output_cov" => {
            let full = own(posterior.predict_f_full(x.as_ref()))?.1;
            for i in 0..n {
                for p in 0..l {
                    for j in 0..n {
                        all.extend((0..l).map(|q| if p == q { full[p][(i, j)] } else { 0.0 }));
                    }
                }
            }
        }
        _ => return Ok(None),
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

/// The files `svgp_*`, `multioutput_*` and their counterparts in other libraries.
pub fn check(json: &Value, folder: &Path, report: &mut Report) -> Outcome {
    let Some(inputs) = gpflow::inputs(json, folder)? else {
        report.skipped = true;
        return Ok(());
    };
    check_known(&inputs, INPUTS)?;
    // GPyTorch's probit is exact
    let squashed = text(get(json, "library")?)? != "gpytorch";
    let problem = Problem::read(&inputs, number(get(json, "jitter")?)?, squashed)?;
    let model = &problem.model;
    let engine = Cpu::default();
    let full = own(model.evaluate(&engine, &problem.data))?;
    let posterior = own(model.posterior(&engine, &problem.data))?;
    for (field, reference) in entries(get(json, "outputs")?)? {
        let (of_batch, name) = match field.strip_suffix("_minibatch") {
            Some(name) => (true, name),
            None => (false, field.as_str()),
        };
        let evaluation = match of_batch {
            true => own(model.evaluate(&engine, &problem.minibatch(&inputs)?))?,
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
        let method = model.method.uncollapsed().ok_or("the method has no q")?;
        for _ in 0..steps {
            let step =
                own(method.step(&model, &engine, &rows, sparsegp::engine::Want::Statistics))?;
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

//! Exact and collapsed regression as GPflow, GPyTorch, scikit-learn and GPJax compute it.

use crate::problem::{self, gradient_by_path};
use crate::support::{Outcome, Report, by_rows, entries, get, matrix, number, numbers, own, text};
use serde_json::{Map, Value};
use sparsegp::data::InMemory;
use sparsegp::engine::Cpu;
use sparsegp::linalg::MatRef;
use sparsegp::methods::{Evaluation, upper_bound};
use sparsegp::model::{Model, Posterior};
use sparsegp::params::log_prior;
use std::path::Path;

/// Outputs that nothing here can be compared with: a condition number and other programs' differences are
/// not outputs of a model.
pub const NOT_COMPARED: &[&str] = &["cond_Kuu", "max_abs_diff", "max_abs_diff_to_gpflow"];

/// A file's inputs; what `same_as_case` names fills in what is missing. `None` where that file is
/// not there.
pub fn inputs(json: &Value, folder: &Path) -> Outcome<Option<Value>> {
    let given = entries(get(json, "inputs")?)?;
    let Some(other) = given.get("same_as_case") else {
        return Ok(Some(Value::Object(given.clone())));
    };
    let path = folder.join(format!("{}.json", text(other)?));
    let mut all = Map::new();
    if path.exists() {
        let text = std::fs::read_to_string(&path).map_err(|e| e.to_string())?;
        let json: Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
        all = entries(get(&json, "inputs")?)?.clone();
    } else if !given.contains_key("X") {
        println!("skipped: it takes its inputs from {}, which is not there", path.display());
        return Ok(None);
    }
    all.extend(
        given.iter().filter(|(key, _)| *key != "same_as_case").map(|(k, v)| (k.clone(), v.clone())),
    );
    Ok(Some(Value::Object(all)))
}

/// What GPflow does not train where we do, so that its files list no gradient: the degrees of freedom
/// of Student's t and the edges of ordered classes are plain numbers there, and the error rate of the
/// robust maximum is fixed unless asked otherwise.
const NOT_TRAINED_THERE: &[&str] =
    &["likelihood.df", "likelihood.first_edge", "likelihood.widths", "likelihood.epsilon"];

/// GPflow's path of a parameter in our words, `separate` where every latent function has its own
/// kernel (a kernel that is a sum has `kernel.kernels[i]` too).
pub fn our_path(path: &str, separate: bool) -> String {
    // the base of a periodic kernel
    if path.contains("base_kernel.") {
        return our_path(&path.replace("base_kernel.", "base."), separate);
    }
    if let (true, Some(rest)) = (separate, path.strip_prefix("kernel.kernels[")) {
        return format!("kernels[{rest}");
    }
    // one kernel for several latent functions
    if let Some(rest) = path.strip_prefix("kernel.kernel.") {
        return format!("kernel.{rest}");
    }
    let list = path.strip_prefix("inducing_variable.inducing_variable_list");
    if let Some(index) = list.and_then(|rest| rest.strip_suffix(".Z")) {
        return format!("inducing.points{index}");
    }
    match path {
        "mean_function.c" | "mean_function.b" => "mean.constant".into(),
        "mean_function.A" => "mean.weights".into(),
        "inducing_variable.Z" | "inducing_variable.inducing_variable.Z" => "inducing.points".into(),
        "kernel.W" => "likelihood.mixing".into(),
        "q_mu" => "q.mu".into(),
        "q_sqrt" => "q.sqrt".into(),
        other => other.into(),
    }
}

/// Compares gradients by paths; what the file does not list is 0.
pub fn gradient(
    field: &str,
    mut own: Vec<(String, Vec<f64>)>,
    json: &Value,
    report: &mut Report,
) -> Outcome {
    let separate = own.iter().any(|(path, _)| path.starts_with("kernels["));
    for (path, reference) in entries(json)? {
        let ours = our_path(path, separate);
        match own.iter().position(|(p, _)| *p == ours) {
            Some(at) => {
                let (_, values) = own.swap_remove(at);
                report.close(&format!("{field} {path}"), &values, &numbers(reference)?);
            }
            None => report.fail(field, &format!("gradient of the unknown `{path}`")),
        }
    }
    for (path, values) in own {
        if !NOT_TRAINED_THERE.contains(&path.as_str()) {
            let zeros = vec![0.0; values.len()];
            report.close(&format!("{field} {path} (not listed)"), &values, &zeros);
        }
    }
    Ok(())
}

/// A prediction at `Xnew`, or `None` if `field` is none.
pub fn prediction(field: &str, posterior: &Posterior, inputs: &Value) -> Outcome<Option<Vec<f64>>> {
    let at = || matrix(get(inputs, "Xnew")?);
    Ok(Some(match field {
        "predict_f_mean" => by_rows(own(posterior.predict_f(at()?.as_ref()))?.0.as_ref()),
        "predict_f_var" => by_rows(own(posterior.predict_f(at()?.as_ref()))?.1.as_ref()),
        "predict_y_mean" => by_rows(own(posterior.predict_y(at()?.as_ref(), &[]))?.0.as_ref()),
        "predict_y_var" => by_rows(own(posterior.predict_y(at()?.as_ref(), &[]))?.1.as_ref()),
        "predict_f_full_cov" => {
            let full = own(posterior.predict_f_full(at()?.as_ref()))?.1;
            full.iter().flat_map(|c| by_rows(c.as_ref())).collect()
        }
        "predict_log_density" => {
            let y = matrix(get(inputs, "Ynew")?)?;
            own(posterior.predict_log_density(at()?.as_ref(), y.as_ref(), &[]))?
        }
        _ => return Ok(None),
    }))
}

fn evaluate(model: &Model, data: &InMemory) -> Outcome<Evaluation> {
    own(model.evaluate(&Cpu::default(), data))
}

/// The files `gpr_*` and their counterparts in other libraries.
pub fn exact(json: &Value, folder: &Path, report: &mut Report) -> Outcome {
    let Some(inputs) = inputs(json, folder)? else {
        report.skipped = true;
        return Ok(());
    };
    let (model, data) = problem::gpflow(&inputs, "exact", number(get(json, "jitter")?)?)?;
    let evaluation = evaluate(&model, &data)?;
    let posterior = own(model.posterior(&Cpu::default(), &data))?;
    let mut penalised = evaluation.gradient.clone();
    let prior = log_prior(|v| model.visit(v), &mut penalised);
    for (field, reference) in entries(get(json, "outputs")?)? {
        if NOT_COMPARED.contains(&field.as_str()) {
            continue;
        }
        let value = match field.as_str() {
            "log_marginal_likelihood" => vec![evaluation.value],
            "log_prior_density" => vec![prior],
            "log_posterior_density" => {
                let (free, _) = own(model.evaluate_free(&Cpu::default(), &data))?;
                vec![free.value]
            }
            "grad_log_marginal_likelihood" => {
                gradient(field, gradient_by_path(&model, &evaluation.gradient), reference, report)?;
                continue;
            }
            "grad_log_posterior_density" => {
                gradient(field, gradient_by_path(&model, &penalised), reference, report)?;
                continue;
            }
            // the order of our flat gradient where the mean has no parameters
            "grad_variance_lengthscales_noise" => evaluation.gradient.clone(),
            _ => match prediction(field, &posterior, &inputs)? {
                Some(values) => values,
                None => {
                    report.fail(field, "an output that the check does not know");
                    continue;
                }
            },
        };
        report.close(field, &value, &numbers(reference)?);
    }
    Ok(())
}

/// GPflow's upper bound. For P target columns the bound on Σ log p(y_p) has P times the constant and
/// the log-determinant; GPflow's `SGPR.upper_bound` counts them once and sums the quadratic form
/// over the columns. Both parts that it leaves out are the bound of a single column without
/// residual, so that its value is ours less P − 1 of those (its gradient likewise).
fn gpflow_upper_bound(model: &Model, data: &InMemory) -> Outcome<Evaluation> {
    let mut upper = own(upper_bound(model, &Cpu::default(), data))?;
    let missing = data.y.ncols() as f64 - 1.0;
    if missing > 0.0 {
        // Y = m(X) leaves no residual; P such columns give P times what is left out once
        let mut silent = data.clone();
        model.mean.evaluate(data.x.as_ref(), silent.y.as_mut());
        let all = own(upper_bound(model, &Cpu::default(), &silent))?;
        let share = missing / data.y.ncols() as f64;
        upper.value -= share * all.value;
        upper.gradient.iter_mut().zip(&all.gradient).for_each(|(g, a)| *g -= share * a);
    }
    Ok(upper)
}

/// The files `sgpr_*` and their counterparts in other libraries.
pub fn sparse(json: &Value, folder: &Path, report: &mut Report) -> Outcome {
    let Some(inputs) = inputs(json, folder)? else {
        report.skipped = true;
        return Ok(());
    };
    let jitter = number(get(json, "jitter")?)?;
    let (model, data) = problem::gpflow(&inputs, "titsias2009", jitter)?;
    let evaluation = evaluate(&model, &data)?;
    let posterior = own(model.posterior(&Cpu::default(), &data))?;
    let upper = gpflow_upper_bound(&model, &data)?;
    let (mean, covariance) = posterior.q_u().ok_or("no q(u)")?;
    for (field, reference) in entries(get(json, "outputs")?)? {
        if NOT_COMPARED.contains(&field.as_str()) {
            continue;
        }
        let value = match field.as_str() {
            "elbo" => vec![evaluation.value],
            "upper_bound" => vec![upper.value],
            "exact_log_marginal_likelihood" => {
                let (model, data) = problem::gpflow(&inputs, "exact", jitter)?;
                vec![evaluate(&model, &data)?.value]
            }
            "compute_qu_mean" => by_rows(mean.as_ref()),
            "compute_qu_cov" => per_output(covariance[0].as_ref(), reference, data.y.ncols())?,
            "fitc" => {
                fitc(&inputs, jitter, reference, report)?;
                continue;
            }
            "grad_elbo" => {
                gradient(field, gradient_by_path(&model, &evaluation.gradient), reference, report)?;
                continue;
            }
            "grad_upper_bound" => {
                gradient(field, gradient_by_path(&model, &upper.gradient), reference, report)?;
                continue;
            }
            _ => match prediction(field, &posterior, &inputs)? {
                Some(values) => values,
                None => {
                    report.fail(field, "an output that the check does not know");
                    continue;
                }
            },
        };
        report.close(field, &value, &numbers(reference)?);
    }
    Ok(())
}

/// What a file of `sgpr_*` says about FITC.
fn fitc(inputs: &Value, jitter: f64, outputs: &Value, report: &mut Report) -> Outcome {
    let (model, data) = problem::gpflow(inputs, "fitc", jitter)?;
    let evaluation = evaluate(&model, &data)?;
    let posterior = own(model.posterior(&Cpu::default(), &data))?;
    for (field, reference) in entries(outputs)? {
        let name = format!("fitc {field}");
        let value = match field.as_str() {
            "log_marginal_likelihood" => vec![evaluation.value],
            "grad_log_marginal_likelihood" => {
                gradient(&name, gradient_by_path(&model, &evaluation.gradient), reference, report)?;
                continue;
            }
            _ => match prediction(field, &posterior, inputs)? {
                Some(values) => values,
                None => {
                    report.fail(&name, "an output that the check does not know");
                    continue;
                }
            },
        };
        report.close(&name, &value, &numbers(reference)?);
    }
    Ok(())
}

/// A covariance that the target columns share, once or once per column as the file has it.
fn per_output(covariance: MatRef<f64>, reference: &Value, outputs: usize) -> Outcome<Vec<f64>> {
    let once = by_rows(covariance);
    let several = numbers(reference)?.len() == once.len() * outputs;
    Ok(if several { once.repeat(outputs) } else { once })
}

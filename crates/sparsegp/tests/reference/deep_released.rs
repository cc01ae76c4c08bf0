//! Deep and convolutional models of the family `inverse_free`, in the words of its files.

use crate::convolutional;
use crate::deep::parts;
use crate::deep_problem::{Problem, layer};
use crate::inverse_free::Rule;
use crate::support::{
    Outcome, Report, by_rows, check_known, entries, get, items, matrix, named, number, own, paired,
};
use serde_json::{Value, json};
use sparsegp::deep::Paths;
use sparsegp::linalg::Mat;
use std::path::Path;

/// A layer as the files of `deep` have it.
fn renamed(json: &Value, report: &mut Report) -> Outcome<Value> {
    check_known(json, &["kind", "Z", "var", "ls", "jitter", "params", "Wmean"], report)?;
    let params = get(json, "params")?;
    check_known(params, &["m", "lam", "L", "LS"], report)?;
    let mut q = json!({});
    for (key, value) in entries(params)? {
        let ours = match key.as_str() {
            "L" => "T_sqrt",
            "LS" => "sqrt",
            other => other,
        };
        q[ours] = value.clone();
    }
    let mean = match json.get("Wmean") {
        Some(weights) => json!({ "type": "linear", "weights": weights }),
        None => json!({ "type": "zero" }),
    };
    Ok(json!({
        "kind": get(json, "kind")?,
        "Z": get(json, "Z")?,
        "jitter": get(json, "jitter")?,
        "kernel": { "type": "se_ard", "variance": get(json, "var")?, "lengthscales": get(json, "ls")? },
        "mean": mean,
        "q": q,
    }))
}

/// The file `deep_gp`.
pub fn deep(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    let rule = Rule::read(json)?;
    let inputs = get(json, "inputs")?;
    check_known(inputs, &["X", "y", "num_data", "S", "noise_variance", "models"], report)?;
    for (name, case) in entries(get(inputs, "models")?)? {
        report.case = name.clone();
        check_known(case, &["layers", "eps"], report)?;
        let noise = get(inputs, "noise_variance")?;
        let ours = json!({ "eps": get(case, "eps")?,
                           "likelihood": { "type": "gaussian", "variance": noise } });
        let mut layers = Vec::new();
        for json in items(get(case, "layers")?)? {
            layers.push(layer(&renamed(json, report)?, None, report)?);
        }
        let problem = Problem::with(layers, inputs, &ours)?;
        let found = problem.evaluate()?;
        let last = &found.layers[found.layers.len() - 1];
        let samples = number(get(inputs, "S")?)? as usize;
        let predictor = own(problem.model.predictor())?;
        let paths = Paths::Given(&problem.draws);
        let mixture = own(predictor.predict(problem.x.as_ref(), samples, &paths))?;
        let (mean, variance) = own(mixture.observations(&[]))?;
        for (field, reference) in entries(get(get(json, "outputs")?, name)?)? {
            let own_value = match field.as_str() {
                "elbo" => vec![found.value],
                "kl" => vec![found.kl.iter().sum()],
                "f_mean" => by_rows(last.mean.as_ref()),
                "f_var" => by_rows(last.variance.as_ref()),
                "X_adjoint" => by_rows(found.x.as_ref().ok_or("no gradient")?.as_ref()),
                "log_predictive_density_mixture" => {
                    own(mixture.log_density(problem.y.as_ref(), &[]))?
                }
                "predictive_mean" => by_rows(mean.as_ref()),
                "predictive_y_var" => by_rows(variance.as_ref()),
                "grads" => {
                    let all = parts(&problem.model.params(), &found.gradient);
                    let layers = paired(&problem.model.layers, reference)?;
                    for (l, (_, reference)) in layers.into_iter().enumerate() {
                        gradients(&all, l, reference, &rule, report)?;
                    }
                    continue;
                }
                other => {
                    report.fail(other, "an output that the check does not know");
                    continue;
                }
            };
            rule.close(field, &own_value, reference, report)?;
        }
    }
    Ok(())
}

fn gradients(
    all: &[(String, Vec<f64>)],
    l: usize,
    reference: &Value,
    rule: &Rule,
    report: &mut Report,
) -> Outcome {
    for (group, values) in entries(reference)? {
        // some are one level deeper
        let values = if group == "Z" { json!({ "Z": values }) } else { values.clone() };
        for (key, value) in entries(&values)? {
            let path = match key.as_str() {
                "var" => "kernel.variance",
                "ls" => "kernel.lengthscales",
                "Z" => "inducing.points",
                "m" => "q.mu",
                "lam" => "q.lambda",
                "L" => "q.t_sqrt",
                "LS" => "q.sqrt",
                "Wmean" => "mean.weights",
                other => return Err(format!("a gradient of the unknown `{other}`")),
            };
            let path = format!("layers[{l}].{path}");
            rule.close(&path, named(all, &path)?, value, report)?;
        }
    }
    Ok(())
}

/// The file `conv_kernel`.
pub fn conv(json: &Value, folder: &Path, report: &mut Report) -> Outcome {
    let inputs = get(json, "inputs")?;
    const KNOWN: &[&str] =
        &["image", "patch", "X", "Z", "weights", "variance", "lengthscales", "adjoints"];
    check_known(inputs, KNOWN, report)?;
    let base = json!({ "type": "se_ard", "variance": get(inputs, "variance")?,
                       "lengthscales": get(inputs, "lengthscales")? });
    let conv = json!({ "image": get(inputs, "image")?, "patch": get(inputs, "patch")?,
                       "weights": get(inputs, "weights")?, "base": base });
    let x = matrix(get(inputs, "X")?)?;
    // nothing is compared with other images
    let none = |rows: usize, columns: usize| {
        let zero = Mat::<f64>::zeros(rows, columns);
        let row = |i: usize| (0..columns).map(|j| zero[(i, j)]).collect::<Vec<f64>>();
        json!((0..rows).map(row).collect::<Vec<_>>())
    };
    let mut cotangents = get(inputs, "adjoints")?.clone();
    cotangents["K"] = none(x.nrows(), 1);
    let case = json!({ "conv": conv, "X": get(inputs, "X")?, "X2": none(1, x.ncols()),
                       "Z": get(inputs, "Z")?, "cotangents": cotangents });
    let mut outputs = get(json, "outputs")?.clone();
    let theirs = get(&outputs, "gradients")?.clone();
    check_known(&theirs, &["variance", "lengthscales", "Z", "weights"], report)?;
    outputs["gradients"] = json!({
        "conv": { "base": { "variance": theirs["variance"], "lengthscales": theirs["lengthscales"] },
                  "weights": theirs["weights"] },
        "Z": theirs["Z"],
    });
    let whole = json!({ "rtol": get(json, "rtol")?, "atol": get(json, "atol")?,
                        "inputs": { "cases": { "all": case } }, "outputs": { "all": outputs } });
    convolutional::kernels(&whole, folder, report)
}

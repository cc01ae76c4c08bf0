//! Log densities of whitened and local variables with their gradients.

use crate::augmentation::Own;
use crate::support::{
    Outcome, Report, check_known, entries, get, items, matrix, number, numbers, own, text,
};
use crate::tabulated::Tabulated;
use serde_json::{Value, json};
use sparsegp::data::InMemory;
use sparsegp::linalg::{Jitter, Mat};
use sparsegp::means;
use sparsegp::methods::find;
use sparsegp::model::Model;
use sparsegp::samplers::joint::{Joint, LogDensity, Variables};
use sparsegp::samplers::{Setting, Target};
use std::path::Path;

/// The file `hmc`.
pub fn check(file: &Value, _: &Path, report: &mut Report) -> Outcome {
    check_known(file, &["description", "K", "y", "z", "log_omega", "cases"], report)?;
    let k = matrix(get(file, "K")?)?;
    for case in items(get(file, "cases")?)? {
        let name = text(get(case, "likelihood")?)?;
        report.case = name.into();
        // classes have their own targets
        let y = numbers(case.get("y").map_or_else(|| get(file, "y"), Ok)?)?;
        let of = Own::read(name, case.get("parameters").unwrap_or(&json!({})))?;
        let n = y.len();
        let mut rows =
            own(InMemory::new(Tabulated::indices(n), Mat::from_fn(n, 1, |i, _| of.y(y[i]))))?;
        rows.extra = vec![of.extra; n];
        let mean = json!({"type": "constant", "constant": [0.0]});
        let model = Model {
            kernels: vec![Box::new(Tabulated::full(k.clone()))],
            mean: own(means::from_json(&mean, 1, 1))?,
            likelihood: of.likelihood.clone_box(),
            inducing: Vec::new(),
            q: None,
            method: own(find("gibbs"))?.method,
            jitter: Jitter::Absolute(0.0),
            hidden: Vec::new(),
        };
        let setting = own(Setting::new(&model, &rows, Target::Variational))?;
        for (field, entry) in entries(case)? {
            let variables = match field.as_str() {
                "likelihood" | "parameters" | "y" => continue,
                "original" => Variables::Original,
                "augmented" => Variables::Augmented,
                _ => {
                    report.fail(field, "an entry that the check does not know");
                    continue;
                }
            };
            let mut position = numbers(get(file, "z")?)?;
            if variables == Variables::Augmented {
                let log_omega = numbers(get(file, "log_omega")?)?;
                // the file's variable of Student's t is the precision, twice the library's
                let shift = if name == "studentt" { 2_f64.ln() } else { 0.0 };
                position.extend(log_omega.iter().map(|t| t - shift));
            }
            let mut joint = own(Joint::new(&setting, variables))?;
            let mut gradient = vec![f64::NAN; joint.dim()];
            let value = joint.evaluate(&position, &mut gradient);
            let what = |output: &str| format!("{field}.{output}");
            for (output, stated) in entries(entry)? {
                match output.as_str() {
                    "log_density" => {
                        report.close(&what(output), &[value], &[number(stated)?]);
                        let alone = joint.value(&position);
                        report.close(&what("value"), &[alone], &[number(stated)?]);
                    }
                    "grad_z" => report.close(&what(output), &gradient[..n], &numbers(stated)?),
                    "grad_log_omega" => {
                        report.close(&what(output), &gradient[n..], &numbers(stated)?);
                    }
                    _ => report.fail(&what(output), "an output that the check does not know"),
                }
            }
        }
    }
    Ok(())
}

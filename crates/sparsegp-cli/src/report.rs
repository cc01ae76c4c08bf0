//! What a person reads about a model: parameters, training, scores.

use crate::format::{Align, Table, moment, number};
use crate::kind::labels;
use serde_json::{Value, json};
use sparsegp::data::input_title;
use sparsegp::fit::{Fitted, ParameterRow};
use sparsegp::linalg::Precision;
use sparsegp::params::{Param, Prior, Role};
use sparsegp::train::TrainReport;
use std::fmt::Write;

/// Vectors up to this length get a line per number.
const LINES: usize = 12;

/// Returns the names of the latent functions: the target's where it has one, else with the class or
/// the number.
pub fn latent_names(fitted: &Fitted) -> Vec<String> {
    let k = fitted.model.likelihood.latents();
    if k == 1 {
        return fitted.target_names.clone();
    }
    let labels = labels(fitted);
    let own = |l: usize| if labels.len() == k { labels[l].clone() } else { l.to_string() };
    let several = fitted.target_names.len() > 1;
    let targets = fitted.target_names.iter();
    targets
        .flat_map(|target| {
            let prefix = if several { format!("{target}_") } else { String::new() };
            (0..k).map(move |l| format!("{prefix}f_{}", own(l))).collect::<Vec<_>>()
        })
        .collect()
}

/// Returns what each number of a parameter belongs to: an input column or a latent function.
fn owners(fitted: &Fitted) -> Vec<Vec<Option<String>>> {
    // of a deep model only the first layer sees the inputs
    let first = if fitted.model.hidden.is_empty() { "kernel" } else { "layers[0].kernel" };
    let mut units = fitted.model.input_kernels().into_iter().flat_map(|kernel| kernel.units());
    let latents = latent_names(fitted);
    let owner = |path: &str, i: usize| match path {
        "mean.constant" => latents.get(i).cloned(),
        _ => None,
    };
    fitted
        .model
        .params()
        .iter()
        .map(|(path, param)| {
            (0..param.len())
                .map(|i| match path.starts_with(first) {
                    true => units
                        .next()
                        .flatten()
                        .and_then(|unit| unit.input)
                        .and_then(|(q, _)| fitted.input_names.get(q).cloned()),
                    false => owner(path, i),
                })
                .collect()
        })
        .collect()
}

/// Returns the table of parameters: values on the model's scale and in the data's units.
pub fn parameters_table(fitted: &Fitted, full: bool) -> String {
    let mut table = Table::new(&[
        ("parameter", Align::Left),
        ("of", Align::Left),
        ("model's scale", Align::Right),
        ("data's units", Align::Right),
        ("transform", Align::Left),
        ("notes", Align::Left),
    ]);
    for (row, owners) in fitted.parameters().iter().zip(owners(fitted)) {
        let notes = notes(row);
        if row.role.is_bulky() && row.role != Role::Factors {
            let in_data = if row.data_units.is_some() { &row.shape } else { "–" };
            let cells = [&row.path, "", &row.shape, in_data, &row.transform, &notes];
            table.row(cells.map(String::from).to_vec());
            continue;
        }
        let in_data = |values: &dyn Fn(&[f64]) -> String| match &row.data_units {
            Some(all) => values(all),
            None => "–".into(),
        };
        if row.value.len() > LINES && !full {
            table.row(vec![
                row.path.clone(),
                String::new(),
                range(&row.value),
                in_data(&range),
                row.transform.clone(),
                format!("{} values {notes}", row.value.len()),
            ]);
            continue;
        }
        let later = |i: &usize| row.tied.iter().any(|group| group[1..].contains(i));
        for (i, value) in row.value.iter().enumerate().filter(|(i, _)| !later(i)) {
            let path = match row.value.len() {
                1 => row.path.clone(),
                _ => format!("{}[{i}]", row.path),
            };
            table.row(vec![
                path,
                match (&owners[i], row.tied.is_empty()) {
                    (Some(own), false) => input_title(own).to_owned(),
                    (own, _) => own.clone().unwrap_or_default(),
                },
                number(*value, 4),
                in_data(&|all| number(all[i], 4)),
                row.transform.clone(),
                notes.clone(),
            ]);
        }
    }
    table.render(2)
}

fn range(values: &[f64]) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{} … {}", number(least, 4), number(most, 4))
}

fn notes(row: &ParameterRow) -> String {
    // sites and T are moved by their own steps, whatever the optimiser sees
    let own = ["q.lambda1", "q.lambda2", "q.t_sqrt"];
    let frozen = row.frozen && !own.contains(&row.path.as_str());
    let frozen = frozen.then(|| "frozen".to_owned());
    let prior = row.prior.map(prior_text);
    frozen.into_iter().chain(prior).collect::<Vec<_>>().join(", ")
}

/// Returns a prior in words: its name, and the values of what it has.
fn prior_text(prior: Prior) -> String {
    let json = serde_json::to_value(prior).unwrap_or_default();
    let entries = json.as_object().into_iter().flatten().filter(|(name, _)| *name != "type");
    let values: Vec<String> = entries
        .filter_map(|(name, value)| Some(format!("{name} {}", number(value.as_f64()?, 4))))
        .collect();
    let name = json["type"].as_str().unwrap_or("?").replace('_', "-");
    format!("prior {name} ({})", values.join(", "))
}

/// Returns the inducing points in the data's units, a line each.
pub fn inducing_table(fitted: &Fitted) -> Option<String> {
    let points = fitted.inducing_points().ok().flatten()?;
    let mut header = vec![("#", Align::Right)];
    header.extend(fitted.measured_names().iter().map(|name| (name.as_str(), Align::Right)));
    let mut table = Table::new(&header);
    for i in 0..points.nrows() {
        let mut cells = vec![i.to_string()];
        cells.extend((0..points.ncols()).map(|q| number(points[(i, q)], 5)));
        table.row(cells);
    }
    Some(table.render(2))
}

/// Returns what the objective of a model is.
pub fn objective_name(fitted: &Fitted) -> &'static str {
    let asked = |param: &Param| param.prior.is_some() && !param.assumed;
    let priors = fitted.model.params().iter().any(|(_, param)| asked(param));
    let method = fitted.model.method;
    if !method.is_bound() {
        return match priors {
            false => "approximate log evidence (not a bound)",
            true => "approximate log evidence (not a bound) + log prior",
        };
    }
    let exact =
        !method.is_sparse() && !method.has_q() && fitted.model.likelihood.as_gaussian().is_some();
    match (!exact, priors) {
        (false, false) => "log evidence",
        (false, true) => "log evidence + log prior",
        (true, false) => "lower bound on the log evidence",
        (true, true) => "lower bound on the log evidence + log prior",
    }
}

/// Returns facts with their names, one line each.
pub fn aligned(facts: &[(String, String)]) -> String {
    let mut text = String::new();
    let width = facts.iter().map(|(name, _)| name.len()).fold(10, usize::max);
    for (name, value) in facts {
        // Writing to a string cannot fail.
        let value = value.replace('\n', "\\n");
        let _ = writeln!(text, "{name:<width$} {value}");
    }
    text
}

/// Says by which program a model was made, when, and from which seed.
pub fn origin(fitted: &Fitted) -> [(String, String); 2] {
    let at = fitted.made.at.map_or_else(|| "at a time that is not known".into(), moment);
    [
        ("made".into(), format!("by {}, {at}", fitted.made.by)),
        ("seed".into(), fitted.seed.to_string()),
    ]
}

/// Returns the epochs, if it was a training by minibatches: its trace has a point per epoch.
pub fn epochs(report: &TrainReport) -> Option<usize> {
    let last = report.trace.last()?;
    (last.iteration < report.iterations || report.stopped.contains("epoch"))
        .then_some(last.iteration)
}

/// Returns a likelihood's name with what was chosen about it by words, such as its link.
pub fn likelihood_name(json: &Value) -> String {
    let entries = json.as_object().into_iter().flatten().filter(|(name, _)| *name != "type");
    let chosen = entries.filter_map(|(name, value)| Some(format!("{name}={}", value.as_str()?)));
    let chosen = chosen.collect::<Vec<_>>().join(", ");
    let name = json["type"].as_str().unwrap_or("?");
    if chosen.is_empty() { name.to_owned() } else { format!("{name}({chosen})") }
}

/// Returns the kernel of all latent functions, or those of each; of a deep model that of its
/// layers.
pub fn kernel_names(fitted: &Fitted) -> String {
    let kernels = fitted.model.input_kernels().into_iter();
    let names: Vec<String> = kernels.map(|kernel| kernel_name(&kernel.to_json())).collect();
    match &names[..] {
        [first, rest @ ..] if !rest.is_empty() && rest.iter().all(|name| name == first) => {
            format!("{first}, one for each of {} latent functions", names.len())
        }
        _ => names.join("; "),
    }
}

/// Returns a kernel's structure as a specification without its values.
pub fn kernel_name(json: &Value) -> String {
    let name = json["type"].as_str().unwrap_or("?").to_owned();
    let join = |sign: &str, brackets: bool| {
        let children = json["kernels"].as_array().map_or(&[][..], Vec::as_slice);
        let parts: Vec<String> = children
            .iter()
            .map(|child| match brackets && child["type"] == "sum" {
                true => format!("({})", kernel_name(child)),
                false => kernel_name(child),
            })
            .collect();
        parts.join(sign)
    };
    match name.as_str() {
        "sum" => join(" + ", false),
        "product" => join(" * ", true),
        _ => match json.get("active_dims") {
            Some(dims) => format!("{name}(active_dims={dims})"),
            None => name,
        },
    }
}

/// Returns a model for machines.
pub fn model_json(fitted: &Fitted) -> Value {
    let training = fitted.report.as_ref().map(|r| {
        json!({
            "stopped": r.stopped, "converged": r.converged, "iterations": r.iterations,
            "evaluations": r.evaluations, "failures": r.failures, "seconds": r.seconds,
            "precision": if r.precision == Precision::Single { "mixed" } else { "double" },
            "starts": r.starts, "kernels": r.kernels, "findings": r.findings, "averaged": r.averaged, "diagnostics": r.diagnostics, "epochs": epochs(r), "mixing": r.mixing,
        })
    });
    let parameters = fitted.parameters().into_iter().map(|row| {
        let shown = matches!(row.role, Role::Points | Role::Factors);
        match row.role.is_bulky() && !shown {
            true => json!({ "path": row.path, "shape": row.shape, "frozen": row.frozen }),
            false => json!(row),
        }
    });
    let kernels = fitted.model.kernels.iter().map(|kernel| kernel.to_json());
    json!({
        "method": fitted.model.method.name(),
        "reason": fitted.reason,
        "kernel": fitted.model.kernel().to_json(),
        "kernels": kernels.collect::<Vec<_>>(),
        "layers": fitted.model.hidden.len() + 1,
        "mean": fitted.model.mean.name(),
        "likelihood": fitted.model.likelihood.to_json(),
        "classes": fitted.classes.as_ref().map(|classes| classes.labels()),
        "weight": fitted.weight_name,
        "extra": fitted.extra_name,
        "inputs": fitted.measured_names(),
        "input_sd": fitted.deviation_columns().into_iter().collect::<std::collections::BTreeMap<_, _>>(),
        "columns": fitted.columns,
        "targets": fitted.target_names,
        "rows": fitted.rows,
        "inducing_points": fitted.model.inducing_points().map(|z| z.nrows()).unwrap_or(0),
        "objective": fitted.objective(),
        "objective_is": objective_name(fitted),
        "parameters": parameters.collect::<Vec<_>>(),
        "scaler": fitted.scaler,
        "training": training,
        "seed": fitted.seed,
        "warnings": fitted.warnings,
    })
}

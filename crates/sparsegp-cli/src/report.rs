//! What a person reads about a model: parameters, training, scores.

use crate::format::{Align, Table, count, moment, number, numbers, seconds};
use crate::kind::{labels, option_of};
use serde_json::{Value, json};
use sparsegp::data::{Encoding, InputColumn};
use sparsegp::fit::{Fitted, ParameterRow};
use sparsegp::params::{Param, Prior, Role};
use sparsegp::train::TrainReport;
use std::fmt::Write;

/// Classes whose labels are listed.
const CLASSES: usize = 12;
/// Vectors up to this length get a line per number.
const LINES: usize = 12;

/// Names of the latent functions: the target's where it has one, else with the class or the number.
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

/// What each number of a parameter belongs to: an input column or a latent function.
fn owners(fitted: &Fitted) -> Vec<Vec<Option<String>>> {
    // of a deep model the first layer alone sees the inputs
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

/// The table of parameters: values on the model's scale and in the data's units.
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
        for (i, value) in row.value.iter().enumerate() {
            let path = match row.value.len() {
                1 => row.path.clone(),
                _ => format!("{}[{i}]", row.path),
            };
            table.row(vec![
                path,
                owners[i].clone().unwrap_or_default(),
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
    // sites and T are moved by steps of their own, whatever the optimiser sees
    let own = ["q.lambda1", "q.lambda2", "q.t_sqrt"];
    let frozen = row.frozen && !own.contains(&row.path.as_str());
    let frozen = frozen.then(|| "frozen".to_owned());
    let prior = row.prior.map(prior_text);
    frozen.into_iter().chain(prior).collect::<Vec<_>>().join(", ")
}

/// A prior in words: its name, and the values of what it has.
fn prior_text(prior: Prior) -> String {
    let json = serde_json::to_value(prior).unwrap_or_default();
    let entries = json.as_object().into_iter().flatten().filter(|(name, _)| *name != "type");
    let values: Vec<String> = entries
        .filter_map(|(name, value)| Some(format!("{name} {}", number(value.as_f64()?, 4))))
        .collect();
    let name = json["type"].as_str().unwrap_or("?").replace('_', "-");
    format!("prior {name} ({})", values.join(", "))
}

/// The inducing points in the data's units, a line each.
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

/// What the objective of a model is.
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
    match (method.is_sparse() || method.has_q(), priors) {
        (false, false) => "log evidence",
        (false, true) => "log evidence + log prior",
        (true, false) => "lower bound on the log evidence",
        (true, true) => "lower bound on the log evidence + log prior",
    }
}

/// The prior of lengthscales that nobody asked for, if there is one. (That of the noise is so weak that its note is enough.)
fn assumed_prior(fitted: &Fitted) -> Option<String> {
    let params = fitted.model.params();
    let of_lengths = |param: &Param| param.assumed && param.role() == Role::Lengthscales;
    let (path, param) = params.into_iter().find(|(_, param)| of_lengths(param))?;
    let Some(Prior::LogNormal { loc, scale }) = param.prior else { return None };
    Some(format!(
        "{path} are log-normal about {}, with a standard deviation of {} in the logarithm (by default, for training \
         alone: no part of the objective; --no-lengthscale-prior leaves it out)",
        number((loc - scale * scale).exp(), 4),
        number(scale, 3)
    ))
}

/// Method, columns, rows, training: one line each.
pub fn summary(fitted: &Fitted) -> String {
    aligned(&facts(fitted))
}

/// Facts with their names, one line each.
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

/// By which program a model was made, when, and from which seed.
pub fn origin(fitted: &Fitted) -> [(String, String); 2] {
    let at = fitted.made.at.map_or_else(|| "at a time that is not known".into(), moment);
    [
        ("made".into(), format!("by {}, {at}", fitted.made.by)),
        ("seed".into(), fitted.seed.to_string()),
    ]
}

/// What is worth knowing about a model: names and values.
pub fn facts(fitted: &Fitted) -> Vec<(String, String)> {
    let model = &fitted.model;
    let name = model.method.name();
    let reason = match fitted.reason.starts_with('`') && fitted.reason.ends_with("was asked for") {
        true => "as asked for",
        false => &fitted.reason,
    };
    let mut lines = vec![("method", format!("{name}, {reason}"))];
    if !model.hidden.is_empty() {
        lines.push(("layers", layers(fitted)));
    }
    lines.push(("kernel", kernel_names(fitted)));
    lines.push(("mean", model.mean.name().to_owned()));
    let gaussian = model.likelihood.as_gaussian().is_some();
    if !gaussian {
        lines.push(("likelihood", likelihood_name(&model.likelihood.to_json())));
    }
    let measured = &fitted.columns[..fitted.columns.len() - fitted.input_deviations.len()];
    lines.push(("inputs", columns_text(measured)));
    if !fitted.input_deviations.is_empty() {
        let pairs = fitted.deviation_columns().into_iter();
        let all: Vec<String> = pairs.map(|(input, name)| format!("{name} of {input}")).collect();
        lines.push(("standard deviations", all.join(", ")));
    }
    lines.push(("targets", targets_text(fitted)));
    if fitted.classes.is_some() {
        let labels = labels(fitted);
        lines.push(("classes", format!("{}: {}", labels.len(), listed(&labels))));
    }
    if let Some(column) = &fitted.weight_name {
        lines.push(("weights", column.clone()));
    }
    if let (Some(column), Some(extra)) = (&fitted.extra_name, model.likelihood.extra()) {
        lines.push((option_of(extra.name).trim_start_matches("--"), column.clone()));
    }
    let inducing = model.inducing_points().map(|z| z.nrows()).ok();
    lines.push((
        "rows",
        match inducing {
            Some(m) => format!("{} to learn from, {}", fitted.rows, count(m, "inducing point")),
            None => format!("{} to learn from", fitted.rows),
        },
    ));
    if let (Some(report), Some(objective)) = (&fitted.report, fitted.objective()) {
        let value = number(objective, 7);
        lines.push(("objective", format!("{value} nats ({})", objective_name(fitted))));
        lines.push((
            "training",
            format!(
                "{}, {}, {}; {}",
                match epochs(report) {
                    Some(epochs) => count(epochs, "epoch"),
                    None => count(report.iterations, "iteration"),
                },
                match epochs(report) {
                    Some(_) => match report.iterations {
                        1 => "1 minibatch".into(),
                        n => format!("{}es", count(n, "minibatch").trim_end_matches('s')),
                    },
                    None => count(report.evaluations, "evaluation"),
                },
                seconds(report.seconds),
                report.stopped
            ),
        ));
        if report.starts.len() > 1 {
            let jacobian = fitted.log_jacobian();
            let ends: Vec<f64> = report.starts.iter().map(|value| value + jacobian).collect();
            let best = ends.iter().copied().enumerate();
            let best = best.fold((0, f64::NEG_INFINITY), |a, b| if b.1 > a.1 { b } else { a }).0;
            let text = format!("number {} of {} is the best", best + 1, ends.len());
            lines.push(("starts", format!("{text}; they end at {}", numbers(&ends, false))));
        }
        if let Some(choice) = &report.kernels {
            lines.push(("choice", format!("`{}`: {}", choice.kernel, choice.reason)));
        }
        let logs: Vec<String> = (0..fitted.scaler.x_log.len())
            .filter(|q| fitted.scaler.log_unit(*q).is_some())
            .map(|q| format!("`{}`", fitted.input_names[q]))
            .collect();
        if !logs.is_empty() {
            lines.push(("logarithms", format!("of {} are learnt from", listed(&logs))));
        }
        if let Some(own) = &report.averaged {
            let text = format!(
                "predictions average over {} settings of the hyperparameters, as few rows leave them open",
                own.settings
            );
            lines.push(("average", text));
        }
        if let [first, rest @ ..] = &report.judged[..]
            && !rest.is_empty()
        {
            let text = format!("{}, the best of {} that were tried", first.start, rest.len() + 1);
            lines.push(("start", text));
        }
        let unused = fitted.unused_inputs();
        if !unused.is_empty() {
            let names: Vec<String> = unused.iter().map(|name| format!("`{name}`")).collect();
            lines.push(("irrelevant", format!("{} (lengthscales are very long)", listed(&names))));
        }
        if let Some(text) = assumed_prior(fitted) {
            lines.push(("prior", text));
        }
        if let Some(mixing) = &report.mixing {
            lines.push((
                "chains",
                format!(
                    "{} of {}, {} a sweep; lag-1 autocorrelation {}, effective draws ≥ {}, split R̂ ≤ {}",
                    mixing.chains,
                    count(mixing.draws, "draw"),
                    seconds(mixing.seconds_per_sweep),
                    number(mixing.lag_one, 2),
                    number(mixing.effective, 3),
                    number(mixing.split_rhat, 4),
                ),
            ));
            lines.extend(mixing.hyperparameters.iter().map(|own| {
                let text = format!(
                    "{} ± {}, {} effective draws, split R̂ {}",
                    number(own.mean, 4),
                    number(own.deviation, 2),
                    number(own.effective, 3),
                    number(own.split_rhat, 4),
                );
                (own.path.as_str(), text)
            }));
        }
        let aside = report.trace.iter().filter_map(|p| p.held_out).reduce(f64::max);
        if let Some(best) = aside {
            let best = number(best + fitted.scaler.log_jacobian(), 5);
            lines.push(("rows aside", format!("best mean log density {best}")));
        }
    }
    if gaussian {
        let noise = model.noise().sqrt();
        let noises: Vec<f64> = fitted.scaler.y_scale.iter().map(|s| s * noise).collect();
        lines.push((
            "noise",
            format!(
                "standard deviation {} in the {} units",
                numbers(&noises, false),
                if fitted.scaler.is_transformed() { "transformed target's" } else { "target's" }
            ),
        ));
    }
    lines.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The target columns, with the functions of them that are learnt.
fn targets_text(fitted: &Fitted) -> String {
    let one = |(p, name): (usize, &String)| match fitted.scaler.transform(p) {
        Some(transform) => format!("{name} ({transform})"),
        None => name.clone(),
    };
    fitted.target_names.iter().enumerate().map(one).collect::<Vec<_>>().join(", ")
}

/// The input columns, with what those are that hold no numbers.
fn columns_text(columns: &[InputColumn]) -> String {
    let one = |column: &InputColumn| match &column.encoding {
        Encoding::Number => column.name.clone(),
        Encoding::Date => format!("{} (days since 1970-01-01)", column.name),
        Encoding::OneHot(all) => {
            format!("{} (one of {})", column.name, listed(all.labels()))
        }
        Encoding::Code(all) => format!("{} (codes of {})", column.name, listed(all.labels())),
    };
    columns.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The first of some labels.
fn listed(labels: &[String]) -> String {
    let shown = labels.iter().take(CLASSES).cloned().collect::<Vec<_>>().join(", ");
    let more = labels.len().saturating_sub(CLASSES);
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

/// Epochs, if it was a training by minibatches: its trace has a point per epoch.
fn epochs(report: &TrainReport) -> Option<usize> {
    let last = report.trace.last()?;
    (last.iteration < report.iterations || report.stopped.contains("epoch"))
        .then_some(last.iteration)
}

/// A likelihood's name with what was chosen about it by words, such as its link.
fn likelihood_name(json: &Value) -> String {
    let entries = json.as_object().into_iter().flatten().filter(|(name, _)| *name != "type");
    let chosen = entries.filter_map(|(name, value)| Some(format!("{name}={}", value.as_str()?)));
    let chosen = chosen.collect::<Vec<_>>().join(", ");
    let name = json["type"].as_str().unwrap_or("?");
    if chosen.is_empty() { name.to_owned() } else { format!("{name}({chosen})") }
}

/// Widths of the layers of a deep model.
fn layers(fitted: &Fitted) -> String {
    let hidden = &fitted.model.hidden;
    let mut widths = vec![count(fitted.input_names.len(), "input")];
    widths.extend(hidden.iter().map(|layer| layer.outputs().to_string()));
    widths.push(count(fitted.posterior.latents(), "latent function"));
    format!("{}: {}", hidden.len() + 1, widths.join(" → "))
}

/// The kernel of all latent functions, or those of each; of a deep model that of its layers.
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

/// A kernel's structure as a specification without its values.
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

/// A model for machines.
pub fn model_json(fitted: &Fitted) -> Value {
    let training = fitted.report.as_ref().map(|r| {
        json!({
            "stopped": r.stopped, "converged": r.converged, "iterations": r.iterations,
            "evaluations": r.evaluations, "failures": r.failures, "seconds": r.seconds,
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

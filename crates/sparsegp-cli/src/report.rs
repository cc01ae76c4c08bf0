//! What a person reads about a model: parameters, training, scores.

use crate::format::{Align, Table, count, number, numbers, seconds};
use crate::score::AllScores;
use serde_json::{Value, json};
use sparsegp::fit::{Fitted, ParameterRow};
use sparsegp::metrics::Scores;
use std::fmt::Write;

/// Vectors up to this length get a line per number.
const LINES: usize = 12;

/// What each number of a parameter belongs to: an input or target column.
fn owners(fitted: &Fitted) -> Vec<Vec<Option<String>>> {
    let mut units = fitted.model.kernel().units().into_iter();
    let owner = |path: &str, i: usize| match path {
        "mean.constant" => fitted.target_names.get(i).cloned(),
        _ => None,
    };
    fitted
        .model
        .params()
        .iter()
        .map(|(path, param)| {
            (0..param.len())
                .map(|i| match path.starts_with("kernel.") {
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
        if row.path == "inducing.points" {
            let cells = [&row.path, "", &row.shape, &row.shape, &row.transform, &notes];
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
    let frozen = row.frozen.then(|| "frozen".to_owned());
    let prior = row.prior.map(|prior| {
        let text = serde_json::to_string(&prior).unwrap_or_default();
        format!("prior {text}")
    });
    frozen.into_iter().chain(prior).collect::<Vec<_>>().join(", ")
}

/// The inducing points in the data's units, a line each.
pub fn inducing_table(fitted: &Fitted) -> Option<String> {
    let points = fitted.inducing_points().ok().flatten()?;
    let mut header = vec![("#", Align::Right)];
    header.extend(fitted.input_names.iter().map(|name| (name.as_str(), Align::Right)));
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
    let priors = fitted.model.params().iter().any(|(_, p)| p.prior.is_some());
    match (fitted.model.method.is_sparse(), priors) {
        (false, false) => "log evidence",
        (false, true) => "log evidence + log prior",
        (true, false) => "lower bound on the log evidence",
        (true, true) => "lower bound on the log evidence + log prior",
    }
}

/// Method, columns, rows, training: one line each.
pub fn summary(fitted: &Fitted) -> String {
    let model = &fitted.model;
    let name = model.method.name();
    let reason = match fitted.reason.ends_with("was asked for") {
        true => "as asked for",
        false => &fitted.reason,
    };
    let mut lines = vec![("method", format!("{name}, {reason}"))];
    lines.push(("kernel", kernel_name(&model.kernel().to_json())));
    lines.push(("mean", model.mean.name().to_owned()));
    lines.push(("inputs", fitted.input_names.join(", ")));
    lines.push(("targets", fitted.target_names.join(", ")));
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
                count(report.iterations, "iteration"),
                count(report.evaluations, "evaluation"),
                seconds(report.seconds),
                report.stopped
            ),
        ));
    }
    let noise = model.noise().sqrt();
    let noises: Vec<f64> = fitted.scaler.y_scale.iter().map(|s| s * noise).collect();
    lines.push((
        "noise",
        format!("standard deviation {} in the target's units", numbers(&noises, false)),
    ));
    let mut text = String::new();
    for (name, value) in lines {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<10} {value}");
    }
    text
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

/// A table of scores, a line per set of rows and target.
pub fn scores_table(sets: &[(&str, &AllScores)]) -> String {
    let names =
        ["rows", "RMSE", "MAE", "R²", "NLPD", "MSLL", "CRPS", "in 50 %", "in 90 %", "in 95 %"];
    let mut header = vec![("scores", Align::Left)];
    header.extend(names.map(|name| (name, Align::Right)));
    let mut table = Table::new(&header);
    let mut add = |label: String, s: &Scores| {
        let maybe = |v: Option<f64>| v.map_or("–".into(), |v| format!("{v:.4}"));
        let share = |v: f64| format!("{:.1}", 100.0 * v);
        table.row(vec![
            label,
            s.rows.to_string(),
            number(s.rmse, 4),
            number(s.mae, 4),
            maybe(s.r2),
            number(s.nlpd, 4),
            maybe(s.msll),
            number(s.crps, 4),
            share(s.coverage_50),
            share(s.coverage_90),
            share(s.coverage_95),
        ]);
    };
    for (label, scores) in sets {
        add((*label).to_owned(), &scores.overall);
        if scores.targets.len() > 1 {
            scores.targets.iter().for_each(|(name, s)| add(format!("  {name}"), s));
        }
    }
    table.render(2)
}

/// Scores for machines.
pub fn scores_json(scores: &AllScores) -> serde_json::Result<Value> {
    let mut targets = serde_json::Map::new();
    for (name, s) in &scores.targets {
        targets.insert(name.clone(), serde_json::to_value(s)?);
    }
    Ok(json!({ "overall": scores.overall, "targets": targets }))
}

/// A model for machines.
pub fn model_json(fitted: &Fitted) -> Value {
    let training = fitted.report.as_ref().map(|r| {
        json!({
            "stopped": r.stopped, "converged": r.converged, "iterations": r.iterations,
            "evaluations": r.evaluations, "failures": r.failures, "seconds": r.seconds,
            "diagnostics": r.diagnostics,
        })
    });
    json!({
        "method": fitted.model.method.name(),
        "reason": fitted.reason,
        "kernel": fitted.model.kernel().to_json(),
        "mean": fitted.model.mean.name(),
        "inputs": fitted.input_names,
        "targets": fitted.target_names,
        "rows": fitted.rows,
        "inducing_points": fitted.model.inducing_points().map(|z| z.nrows()).unwrap_or(0),
        "objective": fitted.objective(),
        "objective_is": objective_name(fitted),
        "parameters": fitted.parameters(),
        "scaler": fitted.scaler,
        "training": training,
        "seed": fitted.seed,
        "warnings": fitted.warnings,
    })
}

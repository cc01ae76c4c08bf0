//! What is worth knowing about a model, as names and values.

use crate::format::{count, number, numbers, seconds};
use crate::kind::{labels, option_of};
use crate::report::{aligned, epochs, kernel_names, likelihood_name, objective_name};
use sparsegp::data::{Categories, Encoding, InputColumn, date_text};
use sparsegp::fit::Fitted;
use sparsegp::linalg::Precision;
use sparsegp::metrics::Mixing;
use sparsegp::params::{Param, Prior, Role};
use sparsegp::train::TrainReport;

/// Classes whose labels are listed.
const CLASSES: usize = 12;

/// Returns the method, columns, rows, training: one line each.
pub fn summary(fitted: &Fitted) -> String {
    aligned(&facts(fitted))
}

/// A name and what stands behind it.
type Fact<'a> = (&'a str, String);

/// Returns what is worth knowing about a model: names and values.
pub fn facts(fitted: &Fitted) -> Vec<(String, String)> {
    let mut lines = of_model(fitted);
    if let (Some(report), Some(objective)) = (&fitted.report, fitted.objective()) {
        lines.extend(of_training(fitted, report, objective));
    }
    let model = &fitted.model;
    if model.likelihood.as_gaussian().is_some() {
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

/// Returns what was fitted to what.
fn of_model(fitted: &Fitted) -> Vec<Fact<'_>> {
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
    if model.likelihood.as_gaussian().is_none() {
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
    lines.push(("rows", rows_text(fitted)));
    if let (Some(kept), Some(from)) = (fitted.posterior.kept_rows(), fitted.kept_from()) {
        let kept = count(kept.x.nrows(), "row");
        lines.push(("kept", format!("the latest {kept}; predictions are known from {from} on")));
    }
    lines
}

/// Returns what a model has learnt from.
fn rows_text(fitted: &Fitted) -> String {
    let (model, rows) = (&fitted.model, fitted.rows);
    let mut text = format!("{rows} to learn from");
    if let Ok(points) = model.inducing_points() {
        text += &format!(", {}", count(points.nrows(), "inducing point"));
    }
    let sampled = model.method.training_rows(model, rows);
    if sampled < rows {
        let given = if model.method.is_of_series() { "" } else { ", given their neighbours" };
        text += &format!("; hyperparameters from about {sampled} of them{given}");
    }
    text
}

/// Returns how the training went, and what it decided.
fn of_training<'a>(fitted: &Fitted, report: &'a TrainReport, objective: f64) -> Vec<Fact<'a>> {
    let mut lines: Vec<Fact<'a>> = Vec::new();
    let value = number(objective, 7);
    lines.push(("objective", format!("{value} nats ({})", objective_name(fitted))));
    lines.push(("training", training_text(report)));
    if report.precision == Precision::Single {
        let more = if fitted.check_mixed_precision().is_ok() { " unless asked" } else { "" };
        let text = format!("trained in mixed precision; predicts in double precision{more}");
        lines.push(("precision", text));
    }
    if report.starts.len() > 1 {
        let jacobian = fitted.log_jacobian();
        let ends: Vec<f64> = report.starts.iter().map(|value| value + jacobian).collect();
        let best = ends.iter().copied().enumerate();
        let best = best.fold((0, f64::NEG_INFINITY), |a, b| if b.1 > a.1 { b } else { a }).0;
        let text = format!("number {} of {} is the best", best + 1, ends.len());
        lines.push(("starts", format!("{text}; they end at {}", numbers(&ends, false))));
    }
    lines.extend(of_decisions(fitted, report));
    let unused = fitted.unused_inputs();
    if !unused.is_empty() {
        let names: Vec<String> = unused.iter().map(|name| format!("`{name}`")).collect();
        lines.push(("irrelevant", format!("{} (lengthscales are very long)", listed(&names))));
    }
    if let Some(text) = assumed_prior(fitted) {
        lines.push(("prior", text));
    }
    lines.extend(report.mixing.iter().flat_map(of_chains));
    let aside = report.trace.iter().filter_map(|p| p.held_out).reduce(f64::max);
    if let Some(best) = aside {
        let best = number(best + fitted.scaler.log_jacobian(), 5);
        lines.push(("rows aside", format!("best mean log density {best}")));
    }
    lines
}

/// Returns how long a training was, and why it ended.
fn training_text(report: &TrainReport) -> String {
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
    )
}

/// Returns a text in which kernels have the periods of seasons in the data's units, as `periodic(period=365.2425)`.
fn with_seasons(fitted: &Fitted, text: &str) -> String {
    let (head, tail) = ("period={value: ", ", frozen: true}");
    let seasons =
        fitted.parameters().into_iter().filter(|own| own.role == Role::Period && own.frozen);
    let lengths: Vec<(f64, f64)> =
        seasons.filter_map(|own| Some((*own.value.first()?, *own.data_units?.first()?))).collect();
    let mut parts = text.split(head);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let season = part.split_once(tail).and_then(|(value, rest)| {
            let value: f64 = value.parse().ok()?;
            // specifications have ten digits, in the data's units where values of kernels are
            let is_it = |own: f64| (own - value).abs() <= 1e-8 * value.abs();
            let (_, length) = lengths.iter().find(|(own, data)| is_it(*own) || is_it(*data))?;
            let length: f64 = format!("{length:.8e}").parse().ok()?;
            Some(format!("period={length}{rest}"))
        });
        out += &season.unwrap_or_else(|| format!("{head}{part}"));
    }
    out
}

/// Returns what was chosen about the model on the way.
fn of_decisions(fitted: &Fitted, report: &TrainReport) -> Vec<Fact<'static>> {
    let mut lines = Vec::new();
    if let Some(choice) = &report.kernels {
        let text = format!("`{}`: {}", choice.kernel, choice.reason);
        lines.push(("choice", with_seasons(fitted, &text)));
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
    lines
}

/// Returns what chains say of themselves and of the hyperparameters.
fn of_chains(mixing: &Mixing) -> Vec<Fact<'_>> {
    let mut lines = Vec::new();
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
    lines
}

/// Returns the assumed prior of lengthscales, if there is one. (That of the noise is so weak that
/// its note is enough.)
fn assumed_prior(fitted: &Fitted) -> Option<String> {
    let params = fitted.model.params();
    let of_lengths = |param: &Param| param.assumed && param.role() == Role::Lengthscales;
    let (path, param) = params.into_iter().find(|(_, param)| of_lengths(param))?;
    let Some(Prior::LogNormal { loc, scale }) = param.prior else { return None };
    Some(format!(
        "{path} are log-normal about {}, with a standard deviation of {} in the logarithm (by default, only for \
         training: not part of the objective; --no-lengthscale-prior leaves it out)",
        number((loc - scale * scale).exp(), 4),
        number(scale, 3)
    ))
}

/// Returns the target columns, with the functions of them that are learnt.
fn targets_text(fitted: &Fitted) -> String {
    let one = |(p, name): (usize, &String)| match fitted.scaler.transform(p) {
        Some(transform) => format!("{name} ({transform})"),
        None => name.clone(),
    };
    fitted.target_names.iter().enumerate().map(one).collect::<Vec<_>>().join(", ")
}

/// Returns the input columns, with what those are that hold no numbers.
fn columns_text(columns: &[InputColumn]) -> String {
    let one = |column: &InputColumn| match &column.encoding {
        Encoding::Number => column.name.clone(),
        Encoding::Date => format!("{} (days since 1970-01-01)", column.name),
        Encoding::Calendar(all) => {
            let names: Vec<String> = all.names().map(String::from).collect();
            format!("{} (days since 1970-01-01, with the holidays {})", column.name, listed(&names))
        }
        Encoding::Place { .. } => {
            format!("{} (points of the sphere, in kilometres)", column.title())
        }
        Encoding::OneHot(all) => format!("{} (one of {})", column.name, listed(&shown(all))),
        Encoding::Code(all) => format!("{} (codes of {})", column.name, listed(&shown(all))),
        Encoding::Filled(own) => {
            let value = match own.date {
                true => date_text(own.value),
                false => number(own.value, 4),
            };
            format!("{} ({value} where it is missing)", column.name)
        }
    };
    columns.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Returns categories as a person reads them.
fn shown(all: &Categories) -> Vec<String> {
    (0..all.labels().len()).map(|code| all.shown(code).to_owned()).collect()
}

/// Returns the first of some labels.
fn listed(labels: &[String]) -> String {
    let shown = labels.iter().take(CLASSES).cloned().collect::<Vec<_>>().join(", ");
    let more = labels.len().saturating_sub(CLASSES);
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

/// Returns the widths of the layers of a deep model.
fn layers(fitted: &Fitted) -> String {
    let hidden = &fitted.model.hidden;
    let mut widths = vec![count(fitted.input_names.len(), "input")];
    widths.extend(hidden.iter().map(|layer| layer.outputs().to_string()));
    widths.push(count(fitted.posterior.latents(), "latent function"));
    format!("{}: {}", hidden.len() + 1, widths.join(" → "))
}

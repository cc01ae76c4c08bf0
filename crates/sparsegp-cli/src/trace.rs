//! The history of a training as a file.

use crate::fail::{Fail, Result};
use crate::outputs::has_extension;
use serde_json::json;
use sparsegp::fit::Fitted;
use std::fmt::Write;
use std::path::Path;

/// Returns the names of the numbers in a trace point: hyperparameters in the order of the paths.
fn names(fitted: &Fitted) -> Vec<String> {
    let mut names = Vec::new();
    for (path, param) in fitted.model.params() {
        if param.role().is_bulky() {
            continue;
        }
        if param.len() == 1 {
            names.push(path);
        } else {
            names.extend((0..param.len()).map(|i| format!("{path}[{i}]")));
        }
    }
    names
}

/// Returns the mean log densities of rows kept aside, in the data's units.
fn held_out(fitted: &Fitted, value: Option<f64>) -> Option<f64> {
    value.map(|density| density + fitted.scaler.log_jacobian())
}

/// Writes objective (in the data's units) and hyperparameters (on the model's scale) of every
/// iteration.
pub fn write(path: &Path, fitted: &Fitted) -> Result<()> {
    let offset = fitted.log_jacobian();
    let points = fitted.report.as_ref().map_or(&[][..], |report| &report.trace);
    let names = names(fitted);
    let is_json = has_extension(path, "json");
    let text = if is_json {
        let points: Vec<_> = points
            .iter()
            .map(|p| {
                let values = names.iter().cloned().zip(p.parameters.iter().map(|v| json!(v)));
                json!({
                    "iteration": p.iteration,
                    "evaluations": p.evaluations,
                    "objective": p.objective + offset,
                    "gradient_norm": p.gradient_norm,
                    "seconds": p.seconds,
                    "held_out": held_out(fitted, p.held_out),
                    "parameters": values.collect::<serde_json::Map<_, _>>(),
                })
            })
            .collect();
        serde_json::to_string_pretty(&points).map_err(|e| Fail::Work(e.to_string()))? + "\n"
    } else {
        let mut text = String::from("iteration,evaluations,objective,gradient_norm,seconds");
        let aside = points.iter().any(|p| p.held_out.is_some());
        if aside {
            text.push_str(",held_out");
        }
        names.iter().for_each(|name| text.extend([",", name.as_str()]));
        text.push('\n');
        for p in points {
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "{},{},{},{},{}",
                p.iteration,
                p.evaluations,
                p.objective + offset,
                p.gradient_norm,
                p.seconds
            );
            if aside {
                let density = held_out(fitted, p.held_out);
                text.push_str(&density.map_or(",".into(), |d| format!(",{d}")));
            }
            p.parameters.iter().for_each(|v| text.push_str(&format!(",{v}")));
            text.push('\n');
        }
        text
    };
    Ok(sparsegp::atomic::write_atomically(path, text.as_bytes())?)
}

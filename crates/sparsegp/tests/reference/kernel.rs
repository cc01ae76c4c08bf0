//! Kernels: values, and weighted sums of them with every gradient.

use crate::support::{Outcome, Report, by_rows, entries, get, matrix, number, numbers};
use crate::{gpflow, problem};
use serde_json::Value;
use sparsegp::kernels::{Cotangents, Kernel, Tape};
use sparsegp::linalg::{Mat, MatRef, dot};
use std::collections::BTreeMap;
use std::path::Path;

/// A weighted sum of covariances with its gradients.
pub struct Sum {
    value: f64,
    /// By the kernel's parameters.
    pub params: Vec<f64>,
    x: Mat<f64>,
    x2: Option<Mat<f64>>,
}

fn covariances(k: &dyn Kernel, x: MatRef<f64>, x2: Option<MatRef<f64>>) -> Mat<f64> {
    let mut out = Mat::zeros(x.nrows(), x2.map_or(x.nrows(), |z| z.nrows()));
    k.evaluate(x, x2, out.as_mut(), &mut Tape::off());
    out
}

fn diagonal(k: &dyn Kernel, x: MatRef<f64>) -> Vec<f64> {
    let mut out = vec![0.0; x.nrows()];
    k.diag(x, &mut out);
    out
}

/// Σ W ∘ K(x, x2), or K(x), with its gradients.
pub fn weighted(k: &dyn Kernel, x: MatRef<f64>, x2: Option<MatRef<f64>>, w: Mat<f64>) -> Sum {
    let mut tape = Tape::recording();
    let mut out = Mat::zeros(w.nrows(), w.ncols());
    k.evaluate(x, x2, out.as_mut(), &mut tape);
    let value = dot(out.as_ref(), w.as_ref());
    let mut params = vec![0.0; k.num_params()];
    let mut x_bar = Mat::zeros(x.nrows(), x.ncols());
    let mut x2_bar = x2.map(|z| Mat::zeros(z.nrows(), z.ncols()));
    let mut bar = w;
    let mut sinks = Cotangents {
        params: &mut params,
        x: Some(x_bar.as_mut()),
        z: x2_bar.as_mut().map(|z| z.as_mut()),
    };
    k.vjp(x, x2, out.as_ref(), bar.as_mut(), &mut tape, &mut sinks);
    Sum { value, params, x: x_bar, x2: x2_bar }
}

fn weighted_diagonal(k: &dyn Kernel, x: MatRef<f64>, w: &[f64]) -> Sum {
    let value = diagonal(k, x).iter().zip(w).map(|(k, w)| k * w).sum();
    let mut params = vec![0.0; k.num_params()];
    let mut x_bar = Mat::zeros(x.nrows(), x.ncols());
    let mut sinks = Cotangents { params: &mut params, x: Some(x_bar.as_mut()), z: None };
    k.diag_vjp(x, w, &mut sinks);
    Sum { value, params, x: x_bar, x2: None }
}

/// Compares a sum and its gradients. A gradient that the file does not list is 0: the sum does not
/// depend on that input.
fn compare(k: &dyn Kernel, field: &str, own: &Sum, json: &Value, report: &mut Report) -> Outcome {
    report.close(field, &[own.value], &[number(get(json, "value")?)?]);
    let mut all: Vec<(String, Vec<f64>)> = Vec::new();
    let mut rest = own.params.as_slice();
    for (path, param) in k.params() {
        let (part, tail) = rest.split_at(param.len());
        rest = tail;
        all.push((path, problem::part(param, part)));
    }
    all.push(("X".into(), by_rows(own.x.as_ref())));
    all.extend(own.x2.iter().map(|x2| ("X2".to_owned(), by_rows(x2.as_ref()))));
    let listed = entries(get(json, "grad")?)?.iter();
    let listed: BTreeMap<String, &Value> =
        listed.map(|(path, values)| (gpflow::our_path(path, false), values)).collect();
    if let Some(unknown) = listed.keys().find(|key| !all.iter().any(|(path, _)| path == *key)) {
        report.fail(field, &format!("gradient of the unknown `{unknown}`"));
    }
    for (path, values) in &all {
        let reference = match listed.get(path) {
            Some(json) => numbers(json)?,
            None => vec![0.0; values.len()],
        };
        report.close(&format!("{field} grad {path}"), values, &reference);
    }
    Ok(())
}

/// The files `kernel_*`.
pub fn check(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    let inputs = get(json, "inputs")?;
    let x = matrix(get(inputs, "X")?)?;
    let x2 = matrix(get(inputs, "X2")?)?;
    let k = problem::kernel(get(inputs, "kernel")?, x.ncols())?;
    let (x, x2) = (x.as_ref(), x2.as_ref());
    for (field, reference) in entries(get(json, "outputs")?)? {
        match field.as_str() {
            "K_X_X2" => {
                let own = covariances(&*k, x, Some(x2));
                report.close(field, &by_rows(own.as_ref()), &numbers(reference)?);
            }
            "K_X_X" => {
                let own = covariances(&*k, x, None);
                report.close(field, &by_rows(own.as_ref()), &numbers(reference)?);
            }
            "K_diag" => report.close(field, &diagonal(&*k, x), &numbers(reference)?),
            "sum_K_X_X2_W" => {
                let own = weighted(&*k, x, Some(x2), matrix(get(inputs, "W")?)?);
                compare(&*k, field, &own, reference, report)?;
            }
            "sum_K_X_X_Ws" => {
                // the cotangent of a symmetric matrix is symmetric; the sum is the same
                let w = matrix(get(inputs, "Ws")?)?;
                let w = Mat::from_fn(w.nrows(), w.ncols(), |i, j| 0.5 * (w[(i, j)] + w[(j, i)]));
                let own = weighted(&*k, x, None, w);
                compare(&*k, field, &own, reference, report)?;
            }
            "sum_K_diag_w" => {
                let own = weighted_diagonal(&*k, x, &numbers(get(inputs, "w")?)?);
                compare(&*k, field, &own, reference, report)?;
            }
            _ => report.fail(field, "an output that the check does not know"),
        }
    }
    Ok(())
}

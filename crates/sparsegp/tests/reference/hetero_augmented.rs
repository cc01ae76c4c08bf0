//! Heteroscedastic noise with local variables: sweeps over both latent functions.

use crate::support::{
    Outcome, Report, by_rows, check_known, entries, get, items, matrix, number, numbers, own,
};
use crate::tabulated::Tabulated;
use serde_json::{Value, json};
use sparsegp::data::InMemory;
use sparsegp::engine::Cpu;
use sparsegp::likelihoods::{self, Likelihood, Slopes, Target};
use sparsegp::linalg::{Cholesky, Jitter, Mat, product};
use sparsegp::means;
use sparsegp::methods::{Tvgp, find};
use sparsegp::model::Model;
use sparsegp::variational::{Tying, Variational};
use std::path::Path;

fn likelihood(nu: &Value, precision: f64) -> Outcome<Box<dyn Likelihood>> {
    let mut spec = json!({"scale": "logistic", "precision": precision});
    spec["type"] = json!(if nu.is_null() { "heteroscedastic" } else { "hetero-student-t" });
    if !nu.is_null() {
        spec["df"] = nu.clone();
    }
    own(likelihoods::build(&spec))
}

/// What the local variables of one row are, read off the bound's slopes.
struct Local {
    ell: f64,
    psi: f64,
    nbar: f64,
    /// Precision of the site of g.
    theta: f64,
    weight: f64,
}

fn local(l: &dyn Likelihood, y: f64, m: [f64; 2], v: [f64; 2], lambda: f64) -> Outcome<Local> {
    let (mut a, mut b) = ([0.0; 2], [0.0; 2]);
    let mut params = vec![0.0; l.num_params()];
    let out = Slopes { mean: &mut a, variance: &mut b, params: &mut params };
    let augmented = l.augmented().ok_or("no local variables")?;
    let ell = augmented.expect(Target { y, extra: 1.0 }, &m, &v, out);
    let precision = b.map(|b| -2.0 * b);
    let potential = [a[0] + precision[0] * m[0], a[1] + precision[1] * m[1]];
    let square = (y - m[0]).powi(2) + v[0];
    // ½(½ − n̄), (½ + n̄)θ(c), and λ(1 − ψ)ξ̄ with n̄ = ½λRψξ̄
    let nbar = 0.5 - 2.0 * potential[1];
    let psi = nbar / (nbar + 0.5 * square * precision[0]);
    Ok(Local { ell, psi, nbar, theta: precision[1], weight: precision[0] / (lambda * (1.0 - psi)) })
}

/// Moments of a latent function whose residual has sites.
fn moments(
    k: &Mat<f64>,
    first: &[f64],
    second: &[f64],
    mean: f64,
) -> Outcome<(Vec<f64>, Mat<f64>)> {
    let n = k.nrows();
    let none = Jitter::Absolute(0.0);
    let mut precision = own(Cholesky::new(k.as_ref(), none, "K"))?.inverse();
    (0..n).for_each(|i| precision[(i, i)] += second[i]);
    let s = own(Cholesky::new(precision.as_ref(), none, "S⁻¹"))?.inverse();
    let lambda = Mat::from_fn(n, 1, |i, _| first[i]);
    let m = product(s.as_ref(), lambda.as_ref());
    Ok(((0..n).map(|i| m[(i, 0)] + mean).collect(), s))
}

/// The file `heteroscedastic`.
pub fn check(file: &Value, _: &Path, report: &mut Report) -> Outcome {
    let (kf, kg) = (matrix(get(file, "Kf")?)?, matrix(get(file, "Kg")?)?);
    let y = numbers(get(file, "y")?)?;
    let n = y.len();
    let means = [number(get(file, "mean_f")?)?, number(get(file, "mean_g")?)?];
    let start = number(get(file, "lam0")?)?;
    let data = own(InMemory::new(Tabulated::indices(n), Mat::from_fn(n, 1, |i, _| y[i])))?;
    for (name, entry) in entries(file)? {
        match name.as_str() {
            "description" | "X" | "Kf" | "Kg" | "y" | "mean_f" | "mean_g" | "lam0" => continue,
            "point" => {
                points(items(entry)?, report)?;
                continue;
            }
            _ => {}
        }
        check_known(entry, &["nu", "elbo_trace", "lambda_trace", "after"], report)?;
        let expected = numbers(get(entry, "elbo_trace")?)?;
        let precisions = numbers(get(entry, "lambda_trace")?)?;
        let learns = precisions.iter().any(|p| *p != precisions[0]);
        let method = own(find("cavi-full"))?.method;
        let constant = json!({"type": "constant", "constant": means});
        let mut model = Model {
            kernels: vec![
                Box::new(Tabulated::full(kf.clone())),
                Box::new(Tabulated::full(kg.clone())),
            ],
            mean: own(means::from_json(&constant, 1, 2))?,
            likelihood: likelihood(get(entry, "nu")?, start)?,
            inducing: Vec::new(),
            q: Some(Variational::sites(n, 2, Tying::Untied)),
            method,
            jitter: Jitter::Absolute(0.0),
            hidden: Vec::new(),
        };
        let full = Tvgp::of(method).map_err(|_| "a method with sites of all rows")?;
        let after = entries(get(entry, "after")?)?;
        let (mut trace, mut lambdas) = (Vec::new(), Vec::new());
        for sweep in 0..expected.len() {
            report.case = format!("{name} after {sweep}");
            let lambda = precision(&model)?;
            trace.push(own(full.value(&model, &data))?);
            lambdas.push(lambda);
            if let Some(stated) = after.get(&sweep.to_string()) {
                let q = model.q.as_ref().ok_or("no q")?;
                let (first, second) = (q.first.value(), q.second.value());
                let (mf, sf) = moments(&kf, &first[..n], &second[..n], means[0])?;
                let (mg, sg) = moments(&kg, &first[n..], &second[n..], means[1])?;
                let rows = (0..n)
                    .map(|i| {
                        let (m, v) = ([mf[i], mg[i]], [sf[(i, i)], sg[(i, i)]]);
                        local(&*model.likelihood, y[i], m, v, lambda)
                    })
                    .collect::<Outcome<Vec<_>>>()?;
                for (field, reference) in entries(stated)? {
                    let found: Vec<f64> = match field.as_str() {
                        "mf" => mf.clone(),
                        "Sf" => by_rows(sf.as_ref()),
                        "mg" => mg.clone(),
                        "Sg" => by_rows(sg.as_ref()),
                        "psi" => rows.iter().map(|row| row.psi).collect(),
                        "nbar" => rows.iter().map(|row| row.nbar).collect(),
                        "theta" => rows.iter().map(|row| row.theta).collect(),
                        "elbo" => vec![trace[sweep]],
                        "lam" => vec![lambda],
                        _ => {
                            report.fail(field, "an output that the check does not know");
                            continue;
                        }
                    };
                    report.close(field, &found, &numbers(reference)?);
                }
            }
            own(full.step(&mut model, &data, 1.0))?;
            if learns {
                // λ* = N/Σ ξ̄(1 − ψ)R, from Σ ∂ℓ/∂λ = ½{N/λ − Σ ξ̄(1 − ψ)R}
                let evaluation = own(model.evaluate(&Cpu::default(), &data))?;
                let by_path = crate::problem::gradient_by_path(&model, &evaluation.gradient);
                let slope = by_path.iter().find(|(path, _)| path == "likelihood.precision");
                let slope = slope.ok_or("no gradient of the precision")?.1[0];
                let moved = n as f64 / (n as f64 / lambda - 2.0 * slope);
                own(model.set("likelihood.precision", &[moved]))?;
            }
        }
        report.case.clone_from(name);
        report.close("elbo_trace", &trace, &expected);
        report.close("lambda_trace", &lambdas, &precisions);
        let falls = trace.windows(2).any(|pair| pair[1] < pair[0] - 1e-10);
        report.require("elbo_trace", !falls, "a sweep lowers the bound");
    }
    Ok(())
}

fn precision(model: &Model) -> Outcome<f64> {
    let params = model.params();
    let found = params.iter().find(|(path, _)| path == "likelihood.precision");
    Ok(found.ok_or("no precision")?.1.value()[0])
}

fn points(cases: &[Value], report: &mut Report) -> Outcome {
    for (index, case) in cases.iter().enumerate() {
        let value = |key: &str| number(get(case, key)?);
        let (square, lambda) = (value("R")?, value("lam")?);
        let (m, v) = ([0.0, value("mg")?], [0.0, value("vg")?]);
        for (nu, stated) in [(&Value::Null, case), (get(case, "student")?, get(case, "student")?)] {
            report.case = format!("point {index}");
            let nu = nu.get("nu").unwrap_or(&Value::Null);
            let l = likelihood(nu, lambda)?;
            let found = local(&*l, square.sqrt(), m, v, lambda)?;
            for (field, reference) in entries(stated)? {
                let found = match field.as_str() {
                    "R" | "mg" | "vg" | "lam" | "student" | "nu" => continue,
                    "psi" => found.psi,
                    "nbar" => found.nbar,
                    "theta" => found.theta,
                    "ell" => found.ell,
                    "gammabar" => found.weight,
                    _ => {
                        report.fail(field, "an output that the check does not know");
                        continue;
                    }
                };
                report.close(field, &[found], &[number(reference)?]);
            }
        }
    }
    Ok(())
}

//! Likelihoods: log probabilities, expectations with slopes, predictions.

use crate::likelihood_multi;
use crate::support::{Outcome, Report, entries, get, number, numbers, own, text};
use serde_json::{Value, json};
use sparsegp::likelihoods::quadrature::Nodes;
use sparsegp::likelihoods::{self, Likelihood, Slopes, Target};
use std::path::Path;

/// Points of the rule behind the files' expectations.
pub const POINTS: usize = 20;
/// How far a rule of that many points may be from the integral, for predictions that the library
/// integrates to the end.
pub const RULE: f64 = 2e-2;
/// Sum of the squashed probabilities by which an ordinal file has its moments.
pub const ORDINAL_MASS: f64 = 1.0 - 2e-3;

/// A likelihood from the other program's description of it, with the exposure of its rows.
pub fn read(description: &Value, squashed: bool) -> Outcome<(Box<dyn Likelihood>, f64)> {
    let (mut spec, mut extra) = (json!({}), 1.0);
    let kind = text(get(description, "type")?)?;
    let link = description.get("link").map(text).transpose()?;
    spec["type"] = json!(match kind {
        "StudentT" => "student-t",
        other => other,
    });
    for (key, value) in entries(description)? {
        match (kind, key.as_str()) {
            (_, "type") => {}
            (_, "link") => {
                spec["link"] = json!(if link == Some("sigmoid") { "logit" } else { text(value)? })
            }
            ("Poisson", "binsize") => extra = number(value)?,
            ("Gaussian", "variance")
            | ("StudentT", "scale" | "df")
            | ("Gamma", "shape")
            | ("Beta", "scale")
            | ("Ordinal", "bin_edges" | "sigma") => spec[key] = value.clone(),
            _ => return Err(format!("`{key}` of {kind} is not known")),
        }
    }
    // the squashing of probits
    if squashed && (link == Some("probit") || kind == "Ordinal") {
        spec["floor"] = json!(1e-3);
    }
    if kind == "Gaussian" {
        extra = 0.0;
    } else if !closed(kind, link) {
        spec["rule"] = json!(POINTS);
    }
    Ok((own(likelihoods::build(&spec))?, extra))
}

/// Whether the expectations of the other program are closed forms.
fn closed(kind: &str, link: Option<&str>) -> bool {
    kind == "Gaussian"
        || (["Poisson", "Gamma", "Exponential"].contains(&kind) && link == Some("exp"))
}

/// Value and slopes by mean, variance and parameters.
struct Expectation {
    value: f64,
    mean: f64,
    variance: f64,
    params: Vec<f64>,
}

fn expectation(l: &dyn Likelihood, target: Target, mean: f64, variance: f64) -> Expectation {
    let (mut by_mean, mut by_variance) = ([0.0], [0.0]);
    let mut params = vec![0.0; l.units().len()];
    let out = Slopes { mean: &mut by_mean, variance: &mut by_variance, params: &mut params };
    let value = l.expect(target, &[mean], &[variance], out);
    Expectation { value, mean: by_mean[0], variance: by_variance[0], params }
}

/// The rows of a file.
struct Rows {
    targets: Vec<Target>,
    f: Vec<f64>,
    mean: Vec<f64>,
    variance: Vec<f64>,
}

impl Rows {
    fn moments(&self) -> impl Iterator<Item = (f64, f64)> {
        self.mean.iter().copied().zip(self.variance.iter().copied())
    }

    fn expectations(&self, l: &dyn Likelihood) -> Vec<Expectation> {
        let rows = self.targets.iter().zip(self.moments());
        rows.map(|(target, (mean, variance))| expectation(l, *target, mean, variance)).collect()
    }
}

/// By the other program's rule from what holds given f: Σ wⱼ g(μ + √v xⱼ).
fn by_rule(nodes: &Nodes, (mean, variance): (f64, f64), g: impl Fn(f64) -> f64) -> f64 {
    let s = variance.sqrt();
    nodes.x.iter().zip(&nodes.w).map(|(x, w)| w * g(mean + s * x)).sum()
}

/// The files `likelihood_*` of one latent value.
pub fn check(file: &Value, _: &Path, report: &mut Report) -> Outcome {
    let inputs = get(file, "inputs")?;
    let description = get(inputs, "likelihood")?;
    let kind = text(get(description, "type")?)?;
    let link = description.get("link").map(text).transpose()?;
    let (likelihood, extra) = read(description, true)?;
    let l = &*likelihood;
    let row = |key: &str| numbers(get(inputs, key)?);
    let targets: Vec<Target> = row("Y")?.into_iter().map(|y| Target { y, extra }).collect();
    let rows = Rows { targets, f: row("F")?, mean: row("Fmu")?, variance: row("Fvar")? };
    for target in &rows.targets {
        report.require("Y", l.check(*target).is_ok(), "a target is refused");
    }
    let nodes = Nodes::gauss_hermite(POINTS);
    // an ordinal file squashes the moments too, which then are those of a sum of 1 − 2·10⁻³
    let mass = if kind == "Ordinal" { ORDINAL_MASS } else { 1.0 };
    let moments = |f: f64| {
        let (mean, variance) = l.predict(extra, &[f], &[0.0]);
        let square = mass * (variance + mean * mean);
        (mass * mean, square - (mass * mean).powi(2))
    };
    for (field, reference) in entries(get(file, "outputs")?)? {
        match field.as_str() {
            "log_prob_F" => {
                let all = rows.targets.iter().zip(&rows.f);
                let found: Vec<f64> = all.map(|(t, f)| l.log_prob(*t, &[*f])).collect();
                report.close(field, &found, &numbers(reference)?);
            }
            "conditional_mean_F" => {
                let found: Vec<f64> = rows.f.iter().map(|f| moments(*f).0).collect();
                report.close(field, &found, &numbers(reference)?);
            }
            "conditional_variance_F" => {
                let found: Vec<f64> = rows.f.iter().map(|f| moments(*f).1).collect();
                report.close(field, &found, &numbers(reference)?);
            }
            "variational_expectations" => {
                let found: Vec<f64> = rows.expectations(l).iter().map(|e| e.value).collect();
                report.close(field, &found, &numbers(reference)?);
            }
            "predict_mean" | "predict_var" => {
                let pick = |(mean, variance)| if field == "predict_mean" { mean } else { variance };
                let exact: Vec<f64> = rows
                    .moments()
                    .map(|(m, v)| {
                        let (mean, variance) = l.predict(extra, &[m], &[v]);
                        let square = mass * (variance + mean * mean);
                        pick((mass * mean, square - (mass * mean).powi(2)))
                    })
                    .collect();
                let reference = numbers(reference)?;
                if kind == "Gaussian" || (kind == "Bernoulli" && link == Some("probit")) {
                    report.close(field, &exact, &reference);
                    continue;
                }
                // the file has the rule's value: that of the conditional moments by that rule, which
                // the library's own integral must be near
                let ruled: Vec<f64> = rows
                    .moments()
                    .map(|at| {
                        let mean = by_rule(&nodes, at, |f| moments(f).0);
                        let square = by_rule(&nodes, at, |f| moments(f).1 + moments(f).0.powi(2));
                        pick((mean, square - mean * mean))
                    })
                    .collect();
                report.close(field, &ruled, &reference);
                report.close_to(&format!("{field}, exact"), &exact, &reference, RULE);
            }
            "predict_log_density" => {
                let all = || rows.targets.iter().zip(rows.moments());
                let exact: Vec<f64> =
                    all().map(|(t, (m, v))| l.predict_log_density(*t, &[m], &[v])).collect();
                let reference = numbers(reference)?;
                if kind == "Gaussian" || (kind == "Bernoulli" && link == Some("probit")) {
                    report.close(field, &exact, &reference);
                    continue;
                }
                let ruled: Vec<f64> = all()
                    .map(|(t, at)| by_rule(&nodes, at, |f| l.log_prob(*t, &[f]).exp()).ln())
                    .collect();
                report.close(field, &ruled, &reference);
                // poles near the real line defeat that rule for a density of Student's
                if kind != "StudentT" {
                    report.close_to(&format!("{field}, exact"), &exact, &reference, RULE);
                }
            }
            "grad_sum_variational_expectations" => {
                let all = rows.expectations(l);
                let names: Vec<String> =
                    l.params().iter().flat_map(|(path, p)| vec![path.clone(); p.len()]).collect();
                for (key, reference) in entries(reference)? {
                    let found: Vec<f64> = match key.as_str() {
                        "Fmu" => all.iter().map(|e| e.mean).collect(),
                        "Fvar" => all.iter().map(|e| e.variance).collect(),
                        name => match names.iter().position(|n| n == name) {
                            Some(at) => vec![all.iter().map(|e| e.params[at]).sum()],
                            None => return Err(format!("a slope in the unknown `{name}`")),
                        },
                    };
                    report.close(&format!("{field} {key}"), &found, &numbers(reference)?);
                }
            }
            _ => report.fail(field, "an output that the check does not know"),
        }
    }
    Ok(())
}

/// The file `inverse_free/likelihoods`: expectations by 20 points with both forms of the slope.
pub fn expectations(file: &Value, _: &Path, report: &mut Report) -> Outcome {
    report.tolerance = number(get(file, "rtol")?)?;
    let inputs = get(file, "inputs")?;
    let outputs = get(file, "outputs")?;
    let (mean, variance) = (numbers(get(inputs, "mu")?)?, numbers(get(inputs, "v")?)?);
    for (case, reference) in entries(outputs)? {
        report.case = case.clone();
        // the closed form of the gamma is given for the inputs of its quadrature
        let given = inputs.get(case.strip_suffix("_closed").unwrap_or(case));
        let param = |key: &str| get(given.unwrap_or(&Value::Null), key).cloned();
        let spec = match case.as_str() {
            "nodes" | "weights" => {
                // of ∫ e^{−t²}: t = x/√2
                let nodes = Nodes::gauss_hermite(numbers(reference)?.len());
                let x: Vec<f64> = nodes.x.iter().map(|x| x / 2_f64.sqrt()).collect();
                let found = if case == "nodes" { x } else { nodes.w };
                report.close(case, &found, &numbers(reference)?);
                continue;
            }
            "bernoulli_logit" => json!({ "type": "bernoulli", "link": "logit", "rule": POINTS }),
            "bernoulli_probit" => {
                json!({ "type": "bernoulli", "link": "probit", "rule": POINTS })
            }
            "student_t" => json!({ "type": "student-t", "df": param("nu")?,
                                   "scale": param("scale")?, "rule": POINTS }),
            "gamma_exp" => json!({ "type": "gamma", "shape": param("shape")?,
                                   "rule": POINTS }),
            "gamma_exp_closed" => json!({ "type": "gamma", "shape": param("shape")? }),
            "poisson_exp_gh" => json!({ "type": "poisson", "rule": POINTS }),
            "poisson_exp" => json!({ "type": "poisson" }),
            "gaussian" => json!({ "type": "gaussian", "variance": param("variance")? }),
            "robustmax" => {
                likelihood_multi::robust_max(given.unwrap_or(&Value::Null), reference, report)?;
                continue;
            }
            _ => {
                report.fail(case, "a case that the check does not know");
                continue;
            }
        };
        let extra = if case == "gaussian" { 0.0 } else { 1.0 };
        let targets: Vec<Target> =
            numbers(&param("y")?)?.into_iter().map(|y| Target { y, extra }).collect();
        let rows = Rows { targets, f: Vec::new(), mean: mean.clone(), variance: variance.clone() };
        compare(case, spec, &rows, reference, report)?;
    }
    let unused: Vec<&String> = entries(inputs)?
        .keys()
        .filter(|key| *key != "mu" && *key != "v" && outputs.get(key.as_str()).is_none())
        .collect();
    report.require("inputs", unused.is_empty(), &format!("nothing uses {unused:?}"));
    Ok(())
}

/// One case of [`expectations`].
fn compare(
    case: &str,
    spec: Value,
    rows: &Rows,
    reference: &Value,
    report: &mut Report,
) -> Outcome {
    let ruled = own(likelihoods::build(&spec))?;
    let all = rows.expectations(&*ruled);
    for (field, reference) in entries(reference)? {
        let found: Vec<f64> = match field.as_str() {
            "ve" => all.iter().map(|e| e.value).collect(),
            "dmu" => all.iter().map(|e| e.mean).collect(),
            "dv_rule" | "dv" => all.iter().map(|e| e.variance).collect(),
            "dv_price" => {
                let mut spec = spec.clone();
                if case != "gaussian" {
                    spec["slope"] = json!("price");
                }
                let price = own(likelihoods::build(&spec))?;
                rows.expectations(&*price).iter().map(|e| e.variance).collect()
            }
            name => match ruled.params().iter().position(|(path, _)| name == format!("d{path}")) {
                Some(at) => all.iter().map(|e| e.params[at]).collect(),
                None => {
                    report.fail(field, "an output that the check does not know");
                    continue;
                }
            },
        };
        report.close(field, &found, &numbers(reference)?);
    }
    Ok(())
}

//! Orders of the bounds, predictions, and an ill-conditioned Kuu.

use crate::collapsed::KINDS_NOT_BUILT;
use crate::problem::{self, gradient_by_path};
use crate::support::{Outcome, Report, by_rows, entries, get, items, matrix, number, numbers, own};
use serde_json::Value;
use sparsegp::engine::Cpu;
use sparsegp::methods::{HighCost, upper_bound};
use std::path::Path;

/// The file `identities`: values, and log p(y) ≥ new ≥ artemev ≥ sgpr with equality where Z = X.
pub fn identities(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    report.read_tolerance(json)?;
    for (index, case) in items(get(json, "cases")?)?.iter().enumerate() {
        report.case = format!("case {index}");
        let mut own_values = Vec::new();
        for (name, reference) in entries(get(case, "values")?)? {
            if KINDS_NOT_BUILT.contains(&name.as_str()) {
                continue;
            }
            let (model, data) = problem::bounds(case, name)?;
            let value = own(model.evaluate(&Cpu::default(), &data))?.value;
            report.close(name, &[value], &[number(reference)?]);
            own_values.push((name.as_str(), value));
        }
        let find = |name: &str| own_values.iter().find(|(n, _)| *n == name).map(|(_, v)| *v);
        let equal = get(case, "Z_equals_X")?.as_bool().ok_or("Z_equals_X is true or false")?;
        let (model, data) = problem::bounds(case, "sgpr")?;
        let upper = own(upper_bound(&model, &Cpu::default(), &data))?.value;
        let ladder = [
            ("upper", Some(upper)),
            ("exact", find("exact")),
            ("new", find("new")),
            ("artemev", find("artemev")),
            ("sgpr", find("sgpr")),
        ];
        let present: Vec<_> = ladder.iter().filter_map(|(n, v)| v.map(|v| (n, v))).collect();
        for pair in present.windows(2) {
            let ((high, a), (low, b)) = (pair[0], pair[1]);
            if equal {
                report.close(&format!("{high} = {low}"), &[a], &[b]);
            } else {
                let message = format!("{a} is not above {b}");
                report.require(&format!("{high} > {low}"), a > b, &message);
            }
        }
    }
    Ok(())
}

/// The file `predict`: every bound of the family has the same q(u), hence the same predictions; by its own
/// q(f | u) each has others.
pub fn predict(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    report.read_tolerance(json)?;
    for (index, case) in items(get(json, "cases")?)?.iter().enumerate() {
        for method in ["sgpr", "artemev", "new"] {
            report.case = format!("case {index} {method}");
            let (model, data) = problem::bounds(case, method)?;
            let posterior = own(model.posterior(&Cpu::default(), &data))?;
            let at = matrix(get(case, "X_new")?)?;
            let (mean, variance) = own(posterior.predict_f(at.as_ref()))?;
            let costly = own(HighCost::new(&model, &Cpu::default(), &data))?;
            let (costly_mean, costly) = own(costly.predict_f(at.as_ref()))?;
            for (field, reference) in entries(case)? {
                let values = match field.as_str() {
                    "mean" => {
                        report.close(field, &by_rows(costly_mean.as_ref()), &numbers(reference)?);
                        by_rows(mean.as_ref())
                    }
                    "var_cheap" => {
                        if method == "sgpr" {
                            report.close(field, &by_rows(costly.as_ref()), &numbers(reference)?);
                        }
                        by_rows(variance.as_ref())
                    }
                    "var_high_cost_new" if method == "new" => by_rows(costly.as_ref()),
                    "var_high_cost_spherical" if method == "artemev" => by_rows(costly.as_ref()),
                    "var_high_cost_new" | "var_high_cost_spherical" => continue,
                    "kernel" | "noise_variance" | "X" | "Z" | "y" | "X_new" => continue,
                    _ => {
                        report.fail(field, "an output that the check does not know");
                        continue;
                    }
                };
                report.close(field, &values, &numbers(reference)?);
            }
        }
    }
    Ok(())
}

/// The file `ill_conditioned`: values to `rtol`, gradients to `gradient_rtol`.
pub fn ill_conditioned(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    report.read_tolerance(json)?;
    let gradient_tolerance = number(get(json, "gradient_rtol")?)?;
    for (name, outputs) in entries(get(json, "outputs")?)? {
        if KINDS_NOT_BUILT.contains(&name.as_str()) {
            continue;
        }
        report.case = name.clone();
        let (model, data) = problem::bounds(json, name)?;
        let evaluation = own(model.evaluate(&Cpu::default(), &data))?;
        let gradients = gradient_by_path(&model, &evaluation.gradient);
        for (field, reference) in entries(outputs)? {
            match field.as_str() {
                "value" => report.close(field, &[evaluation.value], &[number(reference)?]),
                "gradient" => {
                    for (path, reference) in entries(reference)? {
                        let own = gradients.iter().find(|(p, _)| p == path);
                        let own = own.ok_or_else(|| format!("the unknown parameter {path}"))?;
                        let reference = numbers(reference)?;
                        report.close_to(path, &own.1, &reference, gradient_tolerance);
                    }
                }
                _ => report.fail(field, "an output that the check does not know"),
            }
        }
    }
    Ok(())
}

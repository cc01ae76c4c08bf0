//! Uncertain inputs: ψ-statistics with pull-backs, and bounds of the GP-LVM.

use crate::problem;
use crate::support::{
    Outcome, Report, by_rows, check_known, entries, get, items, matrix, number, numbers, own, text,
};
use serde_json::Value;
use sparsegp::kernels::Kernel;
use sparsegp::latent::{Bound, Setting, Targets, divergence};
use sparsegp::linalg::{Jitter, Mat, MatRef, product};
use sparsegp::psi::{Bars, Psi, Uncertain};
use sparsegp::terms::{Spherical, Term, Titsias2009, Titsias2025};
use std::path::Path;

/// Compares ψ₀, ψ₁ and ψ₂ of every row.
fn statistics(psi: &Psi, x: Uncertain<'_>, json: &Value, report: &mut Report) -> Outcome {
    let n = x.mean.nrows();
    report.close("psi0", &own(psi.psi0(x))?, &numbers(get(json, "psi0")?)?);
    report.close("psi1", &by_rows(own(psi.psi1(x))?.as_ref()), &numbers(get(json, "psi1")?)?);
    let all = Mat::identity(n, n);
    let none = Mat::zeros(n, 0);
    let each = own(psi.fold(x, none.as_ref(), all.as_ref(), &[]))?.psi2;
    let each: Vec<f64> = each.iter().flat_map(|row| by_rows(row.as_ref())).collect();
    report.close("psi2", &each, &numbers(get(json, "psi2")?)?);
    Ok(())
}

/// Gradients by name: those of the kernel by path.
fn named(
    kernel: &dyn Kernel,
    mut rest: &[f64],
    [z, mean, variance]: [MatRef<f64>; 3],
) -> Vec<(String, Vec<f64>)> {
    let mut all: Vec<(String, Vec<f64>)> = Vec::new();
    for (path, param) in kernel.params() {
        let (part, tail) = rest.split_at(param.len());
        rest = tail;
        all.push((path, part.to_vec()));
    }
    all.push(("Z".into(), by_rows(z)));
    all.push(("X_mean".into(), by_rows(mean)));
    all.push(("X_var".into(), by_rows(variance)));
    all
}

/// Compares every gradient of a file with that of its name.
fn compare(all: &[(String, Vec<f64>)], json: &Value, report: &mut Report) -> Outcome {
    for (name, reference) in entries(json)? {
        let own = all.iter().find(|(path, _)| path == name);
        let (_, own) = own.ok_or_else(|| format!("the gradient by `{name}` is unknown here"))?;
        report.close(&format!("gradient {name}"), own, &numbers(reference)?);
    }
    Ok(())
}

/// The files `psi_*`: statistics, and their vector–Jacobian products.
pub fn psi(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    report.read_tolerance(json)?;
    check_known(
        json,
        &[
            "case",
            "name",
            "about",
            "rtol",
            "atol",
            "kernel",
            "Z",
            "X_mean",
            "X_var",
            "psi0",
            "psi1",
            "psi2",
            "cotangents",
            "vjp",
        ],
        report,
    )?;
    let z = matrix(get(json, "Z")?)?;
    let (mean, variance) = (matrix(get(json, "X_mean")?)?, matrix(get(json, "X_var")?)?);
    let kernel = problem::kernel(get(json, "kernel")?, z.ncols())?;
    let psi = own(Psi::new(&*kernel, z.as_ref()))?;
    let x = own(Uncertain::new(mean.as_ref(), variance.as_ref()))?;
    statistics(&psi, x, json, report)?;
    let bars = get(json, "cotangents")?;
    let n = mean.nrows();
    let rows = items(get(bars, "psi2")?)?.iter().map(|row| {
        let bar = matrix(row)?;
        // ψ₂ is symmetric: so may its cotangent be
        Ok(Mat::from_fn(bar.nrows(), bar.ncols(), |i, j| 0.5 * (bar[(i, j)] + bar[(j, i)])))
    });
    let psi2 = rows.collect::<Outcome<Vec<Mat<f64>>>>()?;
    let (all, each) = (Mat::identity(n, n), Mat::identity(z.nrows(), z.nrows()));
    let psi1 = matrix(get(bars, "psi1")?)?;
    let bars = Bars {
        psi0: &numbers(get(bars, "psi0")?)?,
        psi1: (psi1.as_ref(), each.as_ref()),
        weights: all.as_ref(),
        psi2: &psi2,
        kept: None,
    };
    let slopes = own(psi.pull(x, &bars))?;
    let by = [slopes.points.as_ref(), slopes.mean.as_ref(), slopes.variance.as_ref()];
    compare(&named(&*kernel, &slopes.kernel, by), get(json, "vjp")?, report)
}

/// One bound of one case.
fn evaluation(
    bound: &Bound<'_>,
    json: &Value,
    kernel: &dyn Kernel,
    report: &mut Report,
) -> Outcome {
    let adjoints = own(bound.adjoints())?;
    let (weights, matrices) = &adjoints.psi2;
    let (mean, covariances) = bound.q_u();
    for (field, reference) in entries(json)? {
        let values = match field.as_str() {
            "kind" => continue,
            "bound" => vec![bound.value()],
            "data_part" => vec![bound.data()],
            "d" => bound.unexplained().to_vec(),
            "Kuu_bar" => by_rows(adjoints.kuu.as_ref()),
            "psi0_bar" => adjoints.psi0.clone(),
            "psi1_bar" => {
                let (left, right) = &adjoints.psi1;
                by_rows(product(left.as_ref(), right.transpose()).as_ref())
            }
            "psi2_bar" => (0..weights.nrows())
                .flat_map(|i| {
                    let m = matrices[0].nrows();
                    let each = matrices.iter().enumerate();
                    let parts =
                        each.map(|(c, g)| Mat::from_fn(m, m, |a, b| weights[(i, c)] * g[(a, b)]));
                    by_rows(parts.fold(Mat::zeros(m, m), |sum, own| sum + own).as_ref())
                })
                .collect(),
            "qu_mean" => by_rows(mean.as_ref()),
            "qu_cov" => by_rows(covariances[0].as_ref()),
            "grad" => {
                let slopes = own(bound.gradient())?;
                let by = [slopes.points.as_ref(), slopes.mean.as_ref(), slopes.variance.as_ref()];
                let mut all = named(kernel, &slopes.kernel, by);
                all.push(("noise".into(), vec![slopes.noise]));
                compare(&all, reference, report)?;
                continue;
            }
            _ => {
                report.fail(field, "an output that the check does not know");
                continue;
            }
        };
        report.close(field, &values, &numbers(reference)?);
    }
    Ok(())
}

/// The file `gplvm`: both bounds with every cotangent and slope.
pub fn gplvm(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    report.read_tolerance(json)?;
    for (index, case) in items(get(json, "cases")?)?.iter().enumerate() {
        report.case = format!("case {index}");
        check_known(
            case,
            &[
                "kernel",
                "jitter",
                "noise_variance",
                "Z",
                "X_mean",
                "X_var",
                "Y",
                "kl",
                "psi0",
                "psi1",
                "psi2",
                "evaluations",
            ],
            report,
        )?;
        let z = matrix(get(case, "Z")?)?;
        let (mean, variance) = (matrix(get(case, "X_mean")?)?, matrix(get(case, "X_var")?)?);
        let spec = get(case, "kernel")?;
        let kernel = problem::kernel(spec, z.ncols())?;
        let jitter = number(spec.get("jitter").map_or_else(|| get(case, "jitter"), Ok)?)?;
        let targets = own(Targets::new(matrix(get(case, "Y")?)?.as_ref()))?;
        let x = own(Uncertain::new(mean.as_ref(), variance.as_ref()))?;
        report.close("kl", &[divergence(x)], &[number(get(case, "kl")?)?]);
        statistics(&own(Psi::new(&*kernel, z.as_ref()))?, x, case, report)?;
        for json in items(get(case, "evaluations")?)? {
            let kind = text(get(json, "kind")?)?;
            report.case = format!("case {index} {kind}");
            let term: &'static dyn Term = match kind {
                "standard" => &Titsias2009,
                "new" => &Titsias2025,
                "artemev" => &Spherical,
                other => return Err(format!("the unknown bound {other}")),
            };
            let setting = Setting {
                kernel: &*kernel,
                points: z.as_ref(),
                noise: number(get(case, "noise_variance")?)?,
                term,
                jitter: Jitter::Absolute(jitter),
                block: None,
            };
            let bound = own(Bound::new(setting, x, &targets))?;
            evaluation(&bound, json, &*kernel, report)?;
        }
    }
    report.case.clear();
    Ok(())
}

//! Methods that flows are compared with.

use crate::flow::{columns, listed, particles};
use crate::flow_targets::regression;
use crate::support::{
    Outcome, Report, by_rows, check_known, entries, get, items, matrix, number, numbers, own,
};
use serde_json::Value;
use sparsegp::flow::Evaluation;
use sparsegp::flow::compared::{
    Curvature, DescentOptions, Dsvi, ElrgviLayer, Entropy, Fcs, Iblr, IblrOptions, Precision, Root,
    SvgdKernel, SwagMoments,
};
use sparsegp::linalg::{Cholesky, Jitter, MatRef, product};
use std::path::Path;

/// Compares all that a file tells with all that was found: what only one of them has is a failure.
fn compare(report: &mut Report, stated: &Value, found: &[(&str, Vec<f64>)]) -> Outcome {
    let known: Vec<&str> = found.iter().map(|(name, _)| *name).collect();
    for (field, stated) in entries(stated)? {
        match found.iter().find(|(name, _)| name == field) {
            Some((_, found)) => report.close(field, found, &numbers(stated)?),
            // a remark
            None if stated.is_string() => {}
            None => {
                report.fail(field, &format!("an output that the check does not know: {known:?}"));
            }
        }
    }
    let stated = entries(stated)?;
    for name in known.iter().filter(|name| !stated.contains_key(**name)) {
        report.fail(name, "an output that the file does not have");
    }
    Ok(())
}

/// An object without some of its entries.
fn without(json: &Value, inputs: &[&str]) -> Outcome<Value> {
    let mut rest = entries(json)?.clone();
    rest.retain(|name, _| !inputs.contains(&name.as_str()));
    Ok(Value::Object(rest))
}

/// DSVI, FCS and the Bayesian learning rule, one step each.
pub fn baselines(file: &Value, _: &Path, report: &mut Report) -> Outcome {
    let known = [
        "target",
        "design",
        "labels",
        "prior_variance",
        "mu",
        "eps",
        "dsvi",
        "dsvi_diag",
        "fcs",
        "iblr",
        "iblr_diag",
        "note",
        "file",
    ];
    check_known(file, &known, report)?;
    let mut target = regression(file)?;
    let (mu, e) = (numbers(get(file, "mu")?)?, columns(get(file, "eps")?)?);
    let options = DescentOptions::default;

    report.case = "dsvi".into();
    let case = get(file, "dsvi")?;
    let root = Root::Lower(matrix(get(case, "L")?)?);
    let dsvi = own(Dsvi::new(mu.clone(), root, options()))?;
    let gradient = own(dsvi.gradient(&mut target, e.as_ref()))?;
    let Root::Lower(by_root) = gradient.root else { return Err("another shape".into()) };
    let found = [("grad_mu", gradient.mean), ("grad_L", by_rows(by_root.as_ref()))];
    compare(report, &without(case, &["L"])?, &found)?;

    report.case = "dsvi_diag".into();
    let case = get(file, "dsvi_diag")?;
    let root = Root::Diagonal(numbers(get(case, "sigma")?)?);
    let dsvi = own(Dsvi::new(mu.clone(), root, options()))?;
    let gradient = own(dsvi.gradient(&mut target, e.as_ref()))?;
    let Root::Diagonal(by_root) = gradient.root else { return Err("another shape".into()) };
    let found = [("grad_mu", gradient.mean), ("grad_sigma", by_root)];
    compare(report, &without(case, &["sigma"])?, &found)?;

    let case = get(file, "fcs")?;
    check_known(case, &["B", "d", "z", "closed", "sampled"], report)?;
    for (name, entropy) in [("closed", Entropy::Closed), ("sampled", Entropy::Sampled)] {
        report.case = format!("fcs {name}");
        let (b, d) = (matrix(get(case, "B")?)?, numbers(get(case, "d")?)?);
        let fcs = own(Fcs::new(mu.clone(), b, d, entropy, options()))?;
        let z = columns(get(case, "z")?)?;
        let gradient = own(fcs.gradient(&mut target, z.as_ref(), e.as_ref()))?;
        let found = [
            ("grad_mu", gradient.mean),
            ("grad_B", by_rows(gradient.b.as_ref())),
            ("grad_d", gradient.d),
        ];
        compare(report, get(case, name)?, &found)?;
    }

    for whole in [true, false] {
        let name = if whole { "iblr" } else { "iblr_diag" };
        let case = get(file, name)?;
        check_known(case, &["S", "s", "beta", "hess", "rep"], report)?;
        for (kind, curvature) in [("hess", Curvature::Hessian), ("rep", Curvature::Reparameterised)]
        {
            report.case = format!("{name} {kind}");
            let precision = if whole { precision(case)? } else { precisions(case)? };
            let options = IblrOptions {
                rate: number(get(case, "beta")?)?,
                curvature,
                ..IblrOptions::default()
            };
            let mut iblr = own(Iblr::new(mu.clone(), precision, options))?;
            own(iblr.step_with(&mut target, e.as_ref()))?;
            let found = [
                ("mu1", iblr.mean().to_vec()),
                (if whole { "S1" } else { "s1" }, of_precision(iblr.precision())?),
            ];
            compare(report, get(case, kind)?, &found)?;
        }
    }
    report.case.clear();
    Ok(())
}

fn precision(case: &Value) -> Outcome<Precision> {
    Ok(Precision::Whole(matrix(get(case, "S")?)?))
}

fn precisions(case: &Value) -> Outcome<Precision> {
    Ok(Precision::Diagonal(numbers(get(case, "s")?)?))
}

fn of_precision(precision: &Precision) -> Outcome<Vec<f64>> {
    Ok(match precision {
        Precision::Whole(p) => by_rows(p.as_ref()),
        Precision::Diagonal(p) => p.clone(),
    })
}

/// Stein flows.
pub fn svgd(file: &Value, _: &Path, report: &mut Report) -> Outcome {
    let known = [
        "design",
        "labels",
        "prior_variance",
        "particles",
        "grad",
        "linear",
        "linear_centred",
        "se",
        "se_median",
        "file",
    ];
    check_known(file, &known, report)?;
    let mut target = regression(file)?;
    let particles = particles(get(file, "particles")?)?;
    let x = particles.x();
    let g = own(Evaluation::of(&mut target, x))?.gradient;
    report.close("grad", &listed(g.as_ref()), &numbers(get(file, "grad")?)?);
    for (name, kernel) in
        [("linear", SvgdKernel::Linear), ("linear_centred", SvgdKernel::CentredLinear)]
    {
        let flow = own(kernel.flow(x, g.as_ref()))?;
        report.close(name, &listed(flow.as_ref()), &numbers(get(file, name)?)?);
    }
    for name in ["se", "se_median"] {
        report.case = name.into();
        let case = get(file, name)?;
        check_known(case, &["ell", "flow"], report)?;
        let stated = number(get(case, "ell")?)?;
        let length = (name == "se").then_some(stated);
        let kernel = SvgdKernel::SquaredExponential { length };
        let length = own(kernel.length(x))?.ok_or("no length")?;
        report.close("ell", &[length], &[stated]);
        let flow = own(kernel.flow(x, g.as_ref()))?;
        report.close("flow", &listed(flow.as_ref()), &numbers(get(case, "flow")?)?);
    }
    report.case.clear();
    Ok(())
}

/// Moments of a path, and a draw.
pub fn swag(file: &Value, _: &Path, report: &mut Report) -> Outcome {
    let known = [
        "iterates",
        "K",
        "mean",
        "diag_variance",
        "deviations",
        "z1",
        "z2",
        "sample",
        "note",
        "file",
    ];
    check_known(file, &known, report)?;
    let keep = number(get(file, "K")?)? as usize;
    let mut moments = own(SwagMoments::new(numbers(get(file, "mean")?)?.len(), keep))?;
    for position in items(get(file, "iterates")?)? {
        own(moments.collect(&numbers(position)?))?;
    }
    report.close("mean", moments.mean(), &numbers(get(file, "mean")?)?);
    let variances = numbers(get(file, "diag_variance")?)?;
    report.close("diag_variance", &moments.variances(), &variances);
    let deviations = by_rows(moments.deviations().as_ref());
    report.close("deviations", &deviations, &numbers(get(file, "deviations")?)?);
    let (z1, z2) = (numbers(get(file, "z1")?)?, numbers(get(file, "z2")?)?);
    let draw = own(moments.combined(&z1, &z2))?;
    report.close("sample", &draw, &numbers(get(file, "sample")?)?);
    Ok(())
}

/// KL(N(μ, diag(σ²) + αVVᵀ) ‖ N(0, γI)) from the whole covariance.
fn dense_divergence(
    mu: &[f64],
    sigma: &[f64],
    v: MatRef<'_, f64>,
    alpha: f64,
    gamma: f64,
) -> Outcome<f64> {
    let d = mu.len();
    let mut c = product(v, v.transpose());
    for j in 0..d {
        (0..d).for_each(|i| c[(i, j)] *= alpha);
        c[(j, j)] += sigma[j] * sigma[j];
    }
    let trace: f64 = (0..d).map(|i| c[(i, i)] + mu[i] * mu[i]).sum();
    let log = own(Cholesky::new(c.as_ref(), Jitter::Absolute(0.0), "C"))?.log_det();
    Ok(0.5 * (trace / gamma + d as f64 * (gamma.ln() - 1.0) - log))
}

/// One layer of low rank.
pub fn elrgvi(file: &Value, _: &Path, report: &mut Report) -> Outcome {
    let known = [
        "n_in",
        "n_out",
        "K",
        "alpha",
        "prior_variance",
        "mu",
        "sigma",
        "V",
        "kl",
        "x",
        "eps_v",
        "eps",
        "preactivation",
        "note",
        "file",
    ];
    check_known(file, &known, report)?;
    let v = matrix(get(file, "V")?)?;
    let count = number(get(file, "K")?)?;
    report.close("K", &[v.ncols() as f64], &[count]);
    let alpha = number(get(file, "alpha")?)?;
    let inputs = number(get(file, "n_in")?)? as usize;
    let (mu, sigma) = (numbers(get(file, "mu")?)?, numbers(get(file, "sigma")?)?);
    let gamma = number(get(file, "prior_variance")?)?;
    let dense = dense_divergence(&mu, &sigma, v.as_ref(), alpha, gamma)?;
    let layer = own(ElrgviLayer::new(inputs, mu, sigma, v))?;
    let kl = own(layer.kl(gamma))?;
    report.close("kl", &[kl], &[number(get(file, "kl")?)?]);
    report.close("alpha", &[kl], &[dense]);
    let of = |name: &str| matrix(get(file, name)?);
    let (x, e, e_v) = (of("x")?, of("eps")?, of("eps_v")?);
    let found = own(layer.preactivation(x.as_ref(), e.as_ref(), e_v.as_ref()))?;
    let stated = numbers(get(file, "preactivation")?)?;
    report.close("preactivation", &by_rows(found.as_ref()), &stated);
    Ok(())
}

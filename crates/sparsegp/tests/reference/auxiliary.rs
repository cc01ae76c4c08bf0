//! Auxiliary variables of augmented inference: the Pólya-Gamma distribution, inversion of Laplace
//! transforms, and what tells whether chains and steps have settled.

use crate::support::{
    Outcome, Report, check_known, entries, get, items, number, numbers, own, text,
};
use serde_json::{Value, json};
use sparsegp::distributions::mixing::{
    Laplace, Matern32, PseudoHuber, SechPower, StudentT, check as admit,
};
use sparsegp::distributions::{Euler, Mixing, PolyaGamma, Tilted, envelope_crossing};
use sparsegp::linalg::Mat;
use sparsegp::metrics::classes::{ClassMetrics, ClassOptions};
use sparsegp::samplers::diagnostics;
use sparsegp::train::{AdaptiveRate, RelativeChange};
use std::path::Path;

/// The accuracy that the files of inverted transforms state of their numbers.
const EULER: f64 = 1e-10;

fn at(case: &Value, key: &str) -> Outcome<f64> {
    number(get(case, key)?)
}

/// As a part of the number itself, where that is far below 1.
fn relative(report: &mut Report, field: &str, own: f64, reference: f64, tolerance: f64) {
    if reference == 0.0 {
        report.close_to(field, &[own], &[reference], tolerance);
    } else {
        report.close_to(field, &[own / reference], &[1.0], tolerance);
    }
}

/// The file `polyagamma`.
pub fn polya_gamma(file: &Value, _: &Path, report: &mut Report) -> Outcome {
    let known = ["description", "moments", "density", "exponential_mass", "envelope_crossing"];
    check_known(file, &known, report)?;
    let tolerance = report.tolerance;
    let law = |case: &Value| own(PolyaGamma::new(at(case, "b")?, at(case, "c")?));
    for (i, case) in items(get(file, "moments")?)?.iter().enumerate() {
        report.case = format!("moments {i}");
        check_known(case, &["b", "c", "mean", "var", "kl_to_c0"], report)?;
        let law = law(case)?;
        relative(report, "mean", law.mean(), at(case, "mean")?, tolerance);
        relative(report, "var", law.variance(), at(case, "var")?, tolerance);
        relative(report, "kl_to_c0", law.kl_to_untilted(), at(case, "kl_to_c0")?, tolerance);
    }
    for (i, case) in items(get(file, "density")?)?.iter().enumerate() {
        report.case = format!("density {i}");
        check_known(case, &["b", "c", "x", "log_pdf", "cdf"], report)?;
        let (law, x) = (law(case)?, at(case, "x")?);
        report.close("log_pdf", &[law.log_density(x)], &[at(case, "log_pdf")?]);
        let cdf = at(case, "cdf")?;
        relative(report, "cdf", law.cdf(x), cdf, tolerance);
        report.close("survival", &[law.survival(x)], &[1.0 - cdf]);
    }
    for (i, case) in items(get(file, "exponential_mass")?)?.iter().enumerate() {
        report.case = format!("exponential_mass {i}");
        check_known(case, &["c", "z", "K", "prob_exponential"], report)?;
        let (c, z) = (at(case, "c")?, at(case, "z")?);
        let k = std::f64::consts::PI.powi(2) / 8.0 + 0.5 * z * z;
        report.close("z", &[0.5 * c.abs()], &[z]);
        report.close("K", &[k], &[at(case, "K")?]);
        let mass = own(PolyaGamma::new(1.0, c))?.sampler().exponential_mass();
        relative(report, "prob_exponential", mass, at(case, "prob_exponential")?, tolerance);
    }
    for (i, case) in items(get(file, "envelope_crossing")?)?.iter().enumerate() {
        report.case = format!("envelope_crossing {i}");
        check_known(case, &["b", "t"], report)?;
        report.close("t", &[envelope_crossing(at(case, "b")?)], &[at(case, "t")?]);
    }
    Ok(())
}

/// A φ by the name of its likelihood, with the target where that is a part of it.
fn mixing(name: &str, parameters: &Value, y: f64) -> Outcome<Box<dyn Mixing>> {
    let of = |key: &str| at(parameters, key);
    let known: &[&str] = match name {
        "logistic" | "bsvm" => &[],
        "binomial" => &["n"],
        "negbin" => &["r"],
        "studentt" => &["nu", "sig"],
        "laplace" => &["beta"],
        "matern32" => &["rho"],
        "logistic_noise" => &["s"],
        "pseudo_huber" => &["d", "sc"],
        _ => return Err(format!("the likelihood `{name}` is not known")),
    };
    if let Some(key) = entries(parameters)?.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(format!("`{key}` of {name} is not known"));
    }
    Ok(match name {
        "logistic" => Box::new(own(SechPower::new(1.0, 1.0))?),
        "binomial" => Box::new(own(SechPower::new(of("n")?, 1.0))?),
        "negbin" => Box::new(own(SechPower::new(y + of("r")?, 1.0))?),
        "studentt" => Box::new(own(StudentT::new(of("nu")?, of("sig")?))?),
        "laplace" => Box::new(own(Laplace::new(of("beta")?))?),
        "bsvm" => Box::new(own(Laplace::new(1.0))?),
        "matern32" => Box::new(own(Matern32::new(of("rho")?))?),
        "logistic_noise" => Box::new(own(SechPower::new(2.0, of("s")?))?),
        _ => Box::new(own(PseudoHuber::new(of("d")?, of("sc")?))?),
    })
}

/// A, l, n, m of `cdf_euler_A_l_n_m`.
fn settings(key: &str) -> Option<Euler> {
    let mut parts = key.split('_').skip(2);
    let aliasing = parts.next()?.parse().ok()?;
    let mut whole = || parts.next()?.parse().ok();
    Some(Euler { aliasing, damping: whole()?, terms: whole()?, averaged: whole()? })
}

/// The file `laplace_inversion`.
pub fn laplace_inversion(file: &Value, _: &Path, report: &mut Report) -> Outcome {
    check_known(file, &["description", "cases"], report)?;
    for case in items(get(file, "cases")?)? {
        let known = ["likelihood", "y", "parameters", "c", "mean", "var", "points", "quantiles"];
        check_known(case, &known, report)?;
        let (name, c) = (text(get(case, "likelihood")?)?, at(case, "c")?);
        report.case = format!("{name}, c = {c}");
        let mixing = mixing(name, get(case, "parameters")?, at(case, "y")?)?;
        own(admit(&*mixing))?;
        let tilted = own(Tilted::new(&*mixing, c))?;
        report.close("mean", &[tilted.mean()], &[at(case, "mean")?]);
        report.close("var", &[tilted.variance()], &[at(case, "var")?]);
        for point in items(get(case, "points")?)? {
            let x = at(point, "x")?;
            for (key, value) in entries(point)? {
                let expected = number(value)?;
                match key.as_str() {
                    "x" => {}
                    "cdf" => {
                        relative(report, key, tilted.cdf(x), expected, report.tolerance);
                        report.close(key, &[1.0 - tilted.survival(x)], &[expected]);
                    }
                    _ => match settings(key) {
                        Some(settings) if key.starts_with("cdf_euler_") => {
                            let at = tilted.euler(x, &settings);
                            report.close_to(key, &[at.cdf], &[expected], EULER);
                            // the two tails have the aliasing of a 1 between them
                            let alias = 1.0 / settings.aliasing.exp_m1();
                            report.close_to(key, &[at.cdf + at.survival - alias], &[1.0], EULER);
                        }
                        Some(settings) if key.starts_with("pdf_euler_") => {
                            let at = tilted.euler(x, &settings);
                            report.close_to(key, &[at.density], &[expected], EULER);
                            // the contour, within the error of the inversion
                            let density = tilted.log_density(x).exp();
                            report.close(key, &[density], &[expected]);
                        }
                        _ => report.fail(key, "an entry that the check does not know"),
                    },
                }
            }
        }
        for point in items(get(case, "quantiles")?)? {
            check_known(point, &["u", "x"], report)?;
            let quantile = own(tilted.quantile(at(point, "u")?))?;
            relative(report, "quantile", quantile, at(point, "x")?, report.tolerance);
        }
    }
    Ok(())
}

/// The file `diagnostics`.
pub fn settled(file: &Value, _: &Path, report: &mut Report) -> Outcome {
    let known = [
        "description",
        "chains",
        "autocorr_chain0",
        "ess_geyer_chain0",
        "ess_geyer_all",
        "rhat",
        "split_rhat",
        "calibration",
        "adaptive_rate",
        "convergence",
    ];
    check_known(file, &known, report)?;
    let chains = items(get(file, "chains")?)?.iter().map(numbers).collect::<Outcome<Vec<_>>>()?;
    let correlations = numbers(get(file, "autocorr_chain0")?)?;
    let lags = correlations.len().saturating_sub(1);
    let first = chains.first().ok_or("no chains")?;
    report.close("autocorr_chain0", &diagnostics::autocorrelation(first, lags), &correlations);
    let one = own(diagnostics::effective_sample_size(&chains[..1]))?;
    report.close("ess_geyer_chain0", &[one], &[at(file, "ess_geyer_chain0")?]);
    let all = own(diagnostics::effective_sample_size(&chains))?;
    report.close("ess_geyer_all", &[all], &[at(file, "ess_geyer_all")?]);
    report.close("rhat", &[own(diagnostics::gelman_rubin(&chains))?], &[at(file, "rhat")?]);
    let split = own(diagnostics::split_gelman_rubin(&chains))?;
    report.close("split_rhat", &[split], &[at(file, "split_rhat")?]);
    calibration(get(file, "calibration")?, report)?;
    adaptive_rate(get(file, "adaptive_rate")?, report)?;
    convergence(get(file, "convergence")?, report)
}

fn calibration(case: &Value, report: &mut Report) -> Outcome {
    report.case = "calibration".into();
    let known = ["probs", "labels", "bins", "nll", "ece", "mce", "count", "conf", "acc", "brier"];
    check_known(case, &known, report)?;
    let rows = items(get(case, "probs")?)?.iter().map(numbers).collect::<Outcome<Vec<_>>>()?;
    let classes = rows.first().map_or(0, Vec::len);
    if rows.iter().any(|row| row.len() != classes) {
        return Err("rows of probabilities of different lengths".into());
    }
    let probabilities = Mat::from_fn(rows.len(), classes, |i, c| rows[i][c]);
    let labels = numbers(get(case, "labels")?)?;
    let options = ClassOptions { bins: at(case, "bins")? as usize, auc: false };
    let mut metrics = own(ClassMetrics::new(classes, options))?;
    own(metrics.add(&labels, probabilities.as_ref(), None))?;
    let scores = own(metrics.finish())?;
    report.close("nll", &[scores.log_loss], &[at(case, "nll")?]);
    report.close("ece", &[scores.ece], &[at(case, "ece")?]);
    report.close("mce", &[scores.mce()], &[at(case, "mce")?]);
    report.close("brier", &[scores.brier], &[at(case, "brier")?]);
    let counts: Vec<f64> = scores.reliability.iter().map(|bin| bin.rows as f64).collect();
    report.close("count", &counts, &numbers(get(case, "count")?)?);
    for (key, values) in [
        ("conf", scores.reliability.iter().map(|bin| bin.confidence).collect::<Vec<_>>()),
        ("acc", scores.reliability.iter().map(|bin| bin.accuracy).collect()),
    ] {
        let expected = items(get(case, key)?)?;
        let empty = |bins: &[Value]| bins.iter().map(Value::is_null).collect::<Vec<_>>();
        report.require(key, empty(&json_of(&values)) == empty(expected), "other bins are empty");
        let filled = expected.iter().filter(|value| !value.is_null());
        let filled = filled.map(number).collect::<Outcome<Vec<_>>>()?;
        let values: Vec<f64> = values.into_iter().flatten().collect();
        report.close(key, &values, &filled);
    }
    Ok(())
}

fn json_of(values: &[Option<f64>]) -> Vec<Value> {
    values.iter().map(|value| json!(value)).collect()
}

fn adaptive_rate(case: &Value, report: &mut Report) -> Outcome {
    report.case = "adaptive_rate".into();
    check_known(case, &["initial_gradients", "gradients", "steps"], report)?;
    // without a floor, which the file has none of
    let mut rate = own(AdaptiveRate::with_floor(0.0))?;
    for gradient in items(get(case, "initial_gradients")?)? {
        own(rate.initialise(numbers(gradient)?))?;
    }
    let (gradients, steps) = (items(get(case, "gradients")?)?, items(get(case, "steps")?)?);
    report.require("steps", gradients.len() == steps.len(), "one step for each gradient");
    for (gradient, step) in gradients.iter().zip(steps) {
        check_known(step, &["rho", "tau", "h"], report)?;
        let rho = own(rate.update(numbers(gradient)?))?;
        report.close("rho", &[rho], &[at(step, "rho")?]);
        report.close("tau", &[rate.memory()], &[at(step, "tau")?]);
        report.close("h", &[rate.mean_square()], &[at(step, "h")?]);
    }
    Ok(())
}

fn convergence(case: &Value, report: &mut Report) -> Outcome {
    report.case = "convergence".into();
    check_known(case, &["parameters", "delta", "window", "averaged"], report)?;
    let mut stop = own(RelativeChange::new(at(case, "window")? as usize, 1e-4))?;
    let (mut deltas, mut averaged) = (Vec::new(), Vec::new());
    for parameters in items(get(case, "parameters")?)? {
        averaged.extend(own(stop.update(numbers(parameters)?))?);
        deltas.extend(stop.last());
    }
    report.close("delta", &deltas, &numbers(get(case, "delta")?)?);
    report.close("averaged", &averaged, &numbers(get(case, "averaged")?)?);
    Ok(())
}

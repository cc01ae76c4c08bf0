//! Streams: posteriors, sites and bounds of batches one after the other, and cotangents.

use crate::support::{
    Outcome, Report, by_rows, check_known, entries, get, items, matrix, number, numbers, own, text,
};
use serde_json::{Value, json};
use sparsegp::kernels::{Inputs, Kernel, build};
use sparsegp::likelihoods::{self, Likelihood};
use sparsegp::linalg::{Cholesky, Jitter, Mat, product};
use sparsegp::online::{
    Adjoints, Batch, Bound, Moments, Prior, Site, SolveOptions, Solved, Update,
};
use std::path::Path;

type Kernels = Vec<Box<dyn Kernel>>;

/// What a mean of old rows is good to where their points are close (README of the family).
const CARRIED: f64 = 1e-4;
const WHITENED: f64 = 1e-3;
/// Of cotangents.
const SLOPES: f64 = 1e-8;

fn rbf(json: &Value, inputs: usize) -> Outcome<Kernels> {
    let spec =
        json!({ "type": "rbf", "variance": get(json, "v")?, "lengthscales": get(json, "l")? });
    Ok(vec![own(build(&spec, Inputs::unnamed(inputs)))?])
}

fn likelihood(name: &str, noise: Option<f64>) -> Outcome<Box<dyn Likelihood>> {
    let spec = match (name, noise) {
        ("gaussian", Some(noise)) => format!("gaussian(variance={noise:?})"),
        ("bernoulli", _) => "bernoulli(link=logit, rule=20, slope=price)".into(),
        ("poisson", _) => "poisson".into(),
        _ => return Err(format!("the likelihood `{name}` is unknown here")),
    };
    own(likelihoods::parse(&spec))
}

fn batch<'a>(x: &'a Mat<f64>, y: &'a [f64]) -> Batch<'a> {
    Batch { x: x.as_ref(), y, extra: &[], weights: &[], mean: None }
}

/// Compares q and the site of one latent function with what a file has of them.
fn state(update: &Update<'_>, json: &Value, report: &mut Report) -> Outcome<Vec<Site>> {
    let q = &update.moments()[0];
    let (m, s) = q.of_values(&update.priors()[0].factor);
    report.close("m", &m, &numbers(get(json, "m")?)?);
    report.close("S", &by_rows(s.as_ref()), &numbers(get(json, "S")?)?);
    let sites = update.sites();
    site(&sites[0], json, report)?;
    Ok(sites)
}

fn site(site: &Site, json: &Value, report: &mut Report) -> Outcome {
    report.close(
        "site_precision",
        &by_rows(site.precision.as_ref()),
        &numbers(get(json, "site_precision")?)?,
    );
    report.close("site_linear", &site.linear, &numbers(get(json, "site_linear")?)?);
    report.close("constant", &[site.constant], &[number(get(json, "constant")?)?]);
    Ok(())
}

/// The parts of the bound and their sum.
fn bound(bound: Bound, json: &Value, report: &mut Report) -> Outcome {
    for (field, value) in entries(json)? {
        let own = match field.as_str() {
            "expected_loglik" => bound.expected,
            "kl_prior" => bound.kl,
            "old_term" => bound.old,
            "elbo" => bound.total(),
            _ => return Err(format!("the part `{field}` of a bound is unknown here")),
        };
        report.close(field, &[own], &[number(value)?]);
    }
    Ok(())
}

/// One step: for Gaussian noise that is all.
fn solved(update: &mut Update<'_>) -> Outcome<Solved> {
    own(update.solve(&SolveOptions::default()))
}

/// Batches with one kernel, one noise and the same points.
pub fn fixed(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    check_known(
        json,
        &[
            "kernel",
            "v",
            "l",
            "noise_variance",
            "jitter_added_to_Kbb",
            "X",
            "y",
            "Z",
            "batches",
            "steps",
            "batch",
            "sum_of_online_elbos",
            "note",
            "file",
        ],
        report,
    )?;
    let (x, y, z) = (matrix(get(json, "X")?)?, numbers(get(json, "y")?)?, matrix(get(json, "Z")?)?);
    let kernels = rbf(json, z.ncols())?;
    let noise = likelihood("gaussian", Some(number(get(json, "noise_variance")?)?))?;
    let jitter = Jitter::Absolute(number(get(json, "jitter_added_to_Kbb")?)?);
    let (mut sites, mut sum) = (Vec::new(), 0.0);
    for (rows, step) in items(get(json, "batches")?)?.iter().zip(items(get(json, "steps")?)?) {
        let rows = numbers(rows)?;
        let (from, count) = (rows[0] as usize, (rows[1] - rows[0]) as usize);
        let x = x.as_ref().subrows(from, count).to_owned();
        let own_rows = batch(&x, &y[from..from + count]);
        let mut update = own(Update::new(&kernels, &*noise, z.as_ref(), jitter, &sites, own_rows))?;
        let elbo = solved(&mut update)?.bound.total();
        report.close("elbo", &[elbo], &[number(get(step, "elbo")?)?]);
        sum += elbo;
        sites = state(&update, step, report)?;
        let eta2 = product(
            update.priors()[0].factor.inverse().as_ref(),
            Mat::identity(z.nrows(), z.nrows()).as_ref(),
        );
        let eta2 = Mat::from_fn(z.nrows(), z.nrows(), |i, j| {
            -0.5 * (eta2[(i, j)] + sites[0].precision[(i, j)])
        });
        report.close("eta1", &sites[0].linear, &numbers(get(step, "eta1")?)?);
        report.close("eta2", &by_rows(eta2.as_ref()), &numbers(get(step, "eta2")?)?);
    }
    report.close("sum_of_online_elbos", &[sum], &[number(get(json, "sum_of_online_elbos")?)?]);
    let mut all = own(Update::new(&kernels, &*noise, z.as_ref(), jitter, &[], batch(&x, &y)))?;
    let elbo = solved(&mut all)?.bound.total();
    let whole = get(json, "batch")?;
    report.close("batch elbo", &[elbo], &[number(get(whole, "elbo")?)?]);
    let (m, s) = all.moments()[0].of_values(&all.priors()[0].factor);
    report.close("batch m", &m, &numbers(get(whole, "m")?)?);
    report.close("batch S", &by_rows(s.as_ref()), &numbers(get(whole, "S")?)?);
    Ok(())
}

/// Batches between which points, kernel and noise change.
pub fn changing(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    check_known(json, &["kernel", "jitter", "jitter_rel", "steps", "predict", "file"], report)?;
    let jitter = Jitter::Relative(number(get(json, "jitter_rel")?)?);
    let mut sites = Vec::new();
    let steps = items(get(json, "steps")?)?;
    for (at, step) in steps.iter().enumerate() {
        report.case = format!("step {at}");
        let (x, y, z) =
            (matrix(get(step, "X")?)?, numbers(get(step, "y")?)?, matrix(get(step, "Z")?)?);
        let kernels = rbf(step, z.ncols())?;
        let noise = likelihood("gaussian", Some(number(get(step, "noise_variance")?)?))?;
        let mut update =
            own(Update::new(&kernels, &*noise, z.as_ref(), jitter, &sites, batch(&x, &y)))?;
        let all = solved(&mut update)?.bound;
        report.close("collapsed_elbo", &[all.total()], &[number(get(step, "collapsed_elbo")?)?]);
        bound(all, get(step, "terms")?, report)?;
        sites = state(&update, step, report)?;
        if at + 1 == steps.len() {
            let predict = get(json, "predict")?;
            let (mean, variance) = update.predict(matrix(get(predict, "X")?)?.as_ref());
            report.close("mean", &by_rows(mean.as_ref()), &numbers(get(predict, "mean")?)?);
            report.close("var", &by_rows(variance.as_ref()), &numbers(get(predict, "var")?)?);
        }
    }
    report.case.clear();
    Ok(())
}

/// Old points that are nearly the same: what they say of new ones, from carried sites and from moments.
pub fn near_singular(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    check_known(
        json,
        &[
            "kernel",
            "Z_old",
            "Z_new",
            "X_old",
            "y_old",
            "noise_variance",
            "K_old",
            "S_old",
            "m_old",
            "W_a",
            "site_projected",
            "site_h_projected",
            "condition_K_old",
            "reference_errors",
            "note",
            "file",
        ],
        report,
    )?;
    let (old, new) = (matrix(get(json, "Z_old")?)?, matrix(get(json, "Z_new")?)?);
    let kernels = rbf(&json!({ "v": 1.0, "l": 1.0 }), old.ncols())?;
    let noise = likelihood("gaussian", Some(number(get(json, "noise_variance")?)?))?;
    let (x, y) = (matrix(get(json, "X_old")?)?, numbers(get(json, "y_old")?)?);
    let none = Jitter::Absolute(0.0);
    let mut update = own(Update::new(&kernels, &*noise, old.as_ref(), none, &[], batch(&x, &y)))?;
    solved(&mut update)?;
    let carried = update.sites().remove(0);
    let factor = &update.priors()[0].factor;
    let q = own(Moments::whitened(
        factor,
        &numbers(get(json, "m_old")?)?,
        matrix(get(json, "S_old")?)?.as_ref(),
    ))?;
    let root = own(Cholesky::new(q.covariance.as_ref(), none, "S"))?.l;
    let whitened = own(Site::of_posterior(old.as_ref(), factor, &q.mean, root.as_ref()))?;
    let kuu = product(factor.l.as_ref(), factor.l.transpose());
    report.close("K_old", &by_rows(kuu.as_ref()), &numbers(get(json, "K_old")?)?);
    for (name, site, tolerance) in [("carried", carried, CARRIED), ("whitened", whitened, WHITENED)]
    {
        let prior = own(Prior::new(&*kernels[0], new.as_ref(), none, Some(&site)))?;
        let (gram, shift) = prior.said().ok_or("no old site")?;
        let close = |report: &mut Report, field: &str, own: &[f64]| -> Outcome {
            let reference = numbers(get(json, field)?)?;
            let size = reference.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
            // relative to the largest, which is far below 1
            let scaled = |v: &[f64]| v.iter().map(|v| v / size).collect::<Vec<_>>();
            report.close_to(
                &format!("{name} {field}"),
                &scaled(own),
                &scaled(&reference),
                tolerance,
            );
            Ok(())
        };
        close(report, "site_projected", &by_rows(gram))?;
        close(report, "site_h_projected", shift)?;
    }
    Ok(())
}

/// Sites of two batches of classes, step by step.
pub fn bernoulli(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    check_known(
        json,
        &[
            "kernel",
            "link",
            "quadrature",
            "rho",
            "iterations",
            "jitter_rel",
            "batch1",
            "batch2",
            "file",
        ],
        report,
    )?;
    let jitter = Jitter::Relative(number(get(json, "jitter_rel")?)?);
    let (rho, iterations) =
        (number(get(json, "rho")?)?, number(get(json, "iterations")?)? as usize);
    let classes = likelihood("bernoulli", None)?;
    let mut sites = Vec::new();
    for name in ["batch1", "batch2"] {
        report.case = name.into();
        let own_batch = get(json, name)?;
        let (x, y, z) = (
            matrix(get(own_batch, "X")?)?,
            numbers(get(own_batch, "y")?)?,
            matrix(get(own_batch, "Z")?)?,
        );
        let kernels = rbf(own_batch, z.ncols())?;
        let mut update =
            own(Update::new(&kernels, &*classes, z.as_ref(), jitter, &sites, batch(&x, &y)))?;
        let listed = items(get(own_batch, "iterates_0_1_2_final")?)?;
        for step in 0..=iterations {
            let at = if step == iterations {
                Some(listed.len() - 1)
            } else {
                (step + 1 < listed.len()).then_some(step)
            };
            if let Some(json) = at.map(|at| &listed[at]) {
                report.close("beta", &update.second[0], &numbers(get(json, "beta")?)?);
                report.close("lambda1", &update.first[0], &numbers(get(json, "lambda1")?)?);
                report.close("elbo", &[update.bound().total()], &[number(get(json, "elbo")?)?]);
                let (m, s) = update.moments()[0].of_values(&update.priors()[0].factor);
                report.close("m", &m, &numbers(get(json, "m")?)?);
                report.close("S", &by_rows(s.as_ref()), &numbers(get(json, "S")?)?);
            }
            if step < iterations {
                own(update.step(rho))?;
            }
        }
        bound(update.bound(), get(own_batch, "terms")?, report)?;
        sites = update.sites();
        site(&sites[0], own_batch, report)?;
    }
    report.case.clear();
    Ok(())
}

/// Cotangents of covariances and of q, and gradients, at good and at arbitrary q.
pub fn adjoints(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    check_known(
        json,
        &[
            "kernel",
            "v",
            "l",
            "noise_variance",
            "jitter_rel",
            "X",
            "Z",
            "Z_old",
            "old",
            "Kbb",
            "Kbf",
            "kff",
            "Kab",
            "Kaa",
            "cases",
            "quadrature",
            "note",
            "file",
        ],
        report,
    )?;
    let (x, z) = (matrix(get(json, "X")?)?, matrix(get(json, "Z")?)?);
    let kernels = rbf(json, z.ncols())?;
    let jitter = Jitter::Relative(number(get(json, "jitter_rel")?)?);
    let old = get(json, "old")?;
    let old = Site {
        z: matrix(get(json, "Z_old")?)?,
        precision: matrix(get(old, "site_precision")?)?,
        linear: numbers(get(old, "site_linear")?)?,
        constant: number(get(old, "constant")?)?,
        root: None,
    };
    let noise = number(get(json, "noise_variance")?)?;
    for (name, case) in entries(get(json, "cases")?)? {
        report.case = name.clone();
        check_known(
            case,
            &["likelihood", "y", "m", "S", "elbo", "adjoints", "grad_v", "grad_l", "grad_Z"],
            report,
        )?;
        let of = likelihood(text(get(case, "likelihood")?)?, Some(noise))?;
        let y = numbers(get(case, "y")?)?;
        let update = own(Update::new(
            &kernels,
            &*of,
            z.as_ref(),
            jitter,
            std::slice::from_ref(&old),
            batch(&x, &y),
        ))?;
        let factor = &update.priors()[0].factor;
        let kuu = product(factor.l.as_ref(), factor.l.transpose());
        report.close("K_bb", &by_rows(kuu.as_ref()), &numbers(get(json, "Kbb")?)?);
        let q = vec![own(Moments::whitened(
            factor,
            &numbers(get(case, "m")?)?,
            matrix(get(case, "S")?)?.as_ref(),
        ))?];
        bound(update.bound_at(&q), get(case, "elbo")?, report)?;
        let Adjoints { kbb, kbf, kff, old, mean, covariance } =
            own(update.adjoints_at(&q))?.remove(0);
        let (kab, kaa) = old.ok_or("no cotangents of the old points")?;
        let gradient = own(update.gradient_at(&q))?;
        let gaussian = of.as_gaussian().is_some();
        let slopes = entries(case)?.iter().filter(|(name, _)| name.starts_with("grad_"));
        for (field, value) in entries(get(case, "adjoints")?)?.iter().chain(slopes) {
            let own_values = match field.as_str() {
                "Kbb" => by_rows(kbb.as_ref()),
                "Kbf" => by_rows(kbf.as_ref()),
                "kff" => kff.clone(),
                "Kab" => by_rows(kab.as_ref()),
                "Kaa" => by_rows(kaa.as_ref()),
                "m" => mean.clone(),
                "S" => by_rows(covariance.as_ref()),
                "noise_variance" if gaussian => gradient.likelihood.clone(),
                "grad_v" => vec![gradient.kernels[0][0]],
                "grad_l" => vec![gradient.kernels[0][1]],
                "grad_Z" => by_rows(gradient.z.as_ref()),
                _ => return Err(format!("the cotangent `{field}` is unknown here")),
            };
            report.close_to(field, &own_values, &numbers(value)?, SLOPES);
        }
    }
    report.case.clear();
    Ok(())
}

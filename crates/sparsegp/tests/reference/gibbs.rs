//! Gibbs samplers against posteriors by quadrature, and the Gaussian conditionals in their middle.

use crate::augmentation::Own;
use crate::support::{
    Outcome, Report, by_rows, check_known, entries, get, items, matrix, number, numbers, own,
};
use crate::tabulated::Tabulated;
use serde_json::{Value, json};
use sparsegp::data::InMemory;
use sparsegp::kernels::Kernel;
use sparsegp::likelihoods::augmented::Site;
use sparsegp::likelihoods::{self, Likelihood};
use sparsegp::linalg::{Cholesky, Jitter, Mat, Par, product, solve_lower};
use sparsegp::means;
use sparsegp::methods::{Tvgp, find};
use sparsegp::model::{Model, inducing_param};
use sparsegp::samplers::conditional::{Conditional, Features};
use sparsegp::samplers::diagnostics::effective_sample_size;
use sparsegp::samplers::gibbs::{GibbsOptions, sample};
use sparsegp::samplers::{Draws, Target};
use sparsegp::variational::{Tying, Variational};
use std::ops::ControlFlow;
use std::path::Path;

/// Sweeps of every chain that are kept, and chains.
const DRAWS: (usize, usize) = (10_000, 2);

fn options(target: Target) -> GibbsOptions {
    let (draws, chains) = DRAWS;
    GibbsOptions { chains, draws, seed: 20, target, ..GibbsOptions::default() }
}

/// A model whose inputs are the numbers of rows.
fn model(
    kernels: Vec<Tabulated>,
    points: Option<usize>,
    likelihood: Box<dyn Likelihood>,
    mean: Value,
) -> Outcome<Model> {
    let latents = likelihood.latents();
    let name = if points.is_some() { "cavi" } else { "cavi-full" };
    Ok(Model {
        kernels: kernels.into_iter().map(|k| Box::new(k) as Box<dyn Kernel>).collect(),
        mean: own(means::from_json(&mean, 1, latents))?,
        likelihood,
        inducing: points
            .map(|m| inducing_param(Tabulated::indices(m).as_ref()))
            .into_iter()
            .collect(),
        q: None,
        method: own(find(name))?.method,
        jitter: Jitter::Absolute(0.0),
        hidden: Vec::new(),
    })
}

fn rows(y: &[f64], extra: f64) -> Outcome<InMemory> {
    let n = y.len();
    let mut rows = own(InMemory::new(Tabulated::indices(n), Mat::from_fn(n, 1, |i, _| y[i])))?;
    rows.extra = vec![extra; n];
    Ok(rows)
}

/// Compares mean and variance of one number with what they should be, to four standard errors by the
/// effective sample size.
fn moments(
    report: &mut Report,
    what: &str,
    chains: &[Vec<f64>],
    mean: f64,
    variance: f64,
) -> Outcome {
    let n: usize = chains.iter().map(Vec::len).sum();
    let average = |g: &dyn Fn(f64) -> f64| -> f64 {
        chains.iter().flatten().map(|x| g(*x)).sum::<f64>() / n as f64
    };
    let found = average(&|x| x);
    let size = own(effective_sample_size(chains))?;
    let error = 4.0 * (variance / size).sqrt();
    report.require(
        &format!("{what}.mean"),
        (found - mean).abs() <= error,
        &format!("{found} for {mean} ± {error}"),
    );
    let squares: Vec<Vec<f64>> =
        chains.iter().map(|c| c.iter().map(|x| (x - mean) * (x - mean)).collect()).collect();
    let found = average(&|x| (x - mean) * (x - mean));
    let fourth = average(&|x| (x - mean).powi(4)) - found * found;
    let size = own(effective_sample_size(&squares))?;
    let error = 4.0 * (fourth / size).sqrt();
    report.require(
        &format!("{what}.var"),
        (found - variance).abs() <= error,
        &format!("{found} for {variance} ± {error}"),
    );
    Ok(())
}

/// One number of every draw.
fn chains(draws: &[Vec<Mat<f64>>], pick: impl Fn(&Mat<f64>) -> f64) -> Vec<Vec<f64>> {
    draws.iter().map(|chain| chain.iter().map(&pick).collect()).collect()
}

fn drawn(model: &Model, rows: &InMemory, target: Target) -> Outcome<Draws> {
    own(sample(model, rows, &options(target), &mut |_, _| ControlFlow::Continue(())))
}

/// The file `gibbs`.
pub fn posteriors(file: &Value, _: &Path, report: &mut Report) -> Outcome {
    let k = matrix(get(file, "K")?)?;
    let prior = numbers(get(file, "prior_mean")?)?;
    // two points: the mean is a line through both
    let mean = json!({"type": "linear", "weights": [prior[1] - prior[0]], "constant": [prior[0]]});
    for (name, entry) in entries(file)? {
        report.case.clone_from(name);
        match name.as_str() {
            "description" | "K" | "prior_mean" => {}
            "posteriors" => {
                for (name, entry) in entries(entry)? {
                    report.case.clone_from(name);
                    check_known(
                        entry,
                        &["parameters", "y", "mean", "var", "log_evidence"],
                        report,
                    )?;
                    let of = Own::read(name, get(entry, "parameters")?)?;
                    let y: Vec<f64> =
                        numbers(get(entry, "y")?)?.into_iter().map(|y| of.y(y)).collect();
                    let kernels = vec![Tabulated::full(k.clone())];
                    let model = model(kernels, None, of.likelihood.clone_box(), mean.clone())?;
                    let draws = drawn(&model, &rows(&y, of.extra)?, Target::Variational)?;
                    let (m, v) = (numbers(get(entry, "mean")?)?, numbers(get(entry, "var")?)?);
                    for i in 0..y.len() {
                        let chains = chains(&draws.f, |f| f[(i, 0)]);
                        moments(report, &format!("f[{i}]"), &chains, m[i], v[i])?;
                    }
                    let stated = number(get(entry, "log_evidence")?)?;
                    evidence(report, &of, &k, &prior, &y, stated)?;
                    order(report, model, &rows(&y, of.extra)?, stated)?;
                }
            }
            "gaussian_conditional" => conditional(entry, report)?,
            "multiclass_one_point" => {
                let theta = get(entry, "theta")?;
                let variances = numbers(get(entry, "prior_var")?)?;
                let classes = variances.len();
                let spec = json!({"type": "logistic-softmax", "classes": classes, "scales": theta});
                let likelihood = own(likelihoods::build(&spec))?;
                one_point(
                    report,
                    likelihood,
                    &variances,
                    &vec![0.0; classes],
                    number(get(entry, "label")?)?,
                    [&numbers(get(entry, "mean")?)?, &numbers(get(entry, "var")?)?],
                )?;
            }
            "hetero_gaussian_one_point" | "hetero_studentt_one_point" => {
                let value = |key: &str| number(get(entry, key)?);
                let mut spec = json!({"scale": "logistic", "precision": value("lam")?});
                spec["type"] = json!("heteroscedastic");
                if !get(entry, "nu")?.is_null() {
                    spec["type"] = json!("hetero-student-t");
                    spec["df"] = get(entry, "nu")?.clone();
                }
                one_point(
                    report,
                    own(likelihoods::build(&spec))?,
                    &[value("var_f")?, value("var_g")?],
                    &[0.0, value("mean_g")?],
                    value("y")?,
                    [&numbers(get(entry, "mean_fg")?)?, &numbers(get(entry, "var_fg")?)?],
                )?;
            }
            _ => report.fail(name, "an entry that the check does not know"),
        }
    }
    Ok(())
}

/// log p(y) of two points by a grid.
fn evidence(
    report: &mut Report,
    of: &Own,
    k: &Mat<f64>,
    prior: &[f64],
    y: &[f64],
    stated: f64,
) -> Outcome {
    let factor = own(Cholesky::new(k.as_ref(), Jitter::Absolute(0.0), "K"))?.l;
    let step = 0.02;
    let place = |i: i32| step * f64::from(i);
    let mut sum = 0.0;
    for i in -425..=425 {
        for j in -425..=425 {
            let z = [place(i), place(j)];
            let f = [
                prior[0] + factor[(0, 0)] * z[0],
                prior[1] + factor[(1, 0)] * z[0] + factor[(1, 1)] * z[1],
            ];
            let log: f64 =
                (0..2).map(|r| of.likelihood.log_prob(own_target(of, y[r]), &[f[r]])).sum();
            sum += (log - 0.5 * (z[0] * z[0] + z[1] * z[1])).exp();
        }
    }
    let found = (sum * step * step / std::f64::consts::TAU).ln();
    // the rule does not know of kinks
    report.close_to("log_evidence", &[found], &[stated], 1e-4);
    Ok(())
}

/// At every q on the way of coordinate ascent: the bound with local variables is no higher than the one without,
/// and that no higher than the evidence.
fn order(report: &mut Report, mut model: Model, rows: &InMemory, evidence: f64) -> Outcome {
    let (n, augmented) = (rows.y.nrows(), Tvgp::of(model.method).map_err(|_| "sites")?);
    let plain = Tvgp::of(own(find("tvgp"))?.method).map_err(|_| "sites")?;
    model.q = Some(Variational::sites(n, 1, Tying::Untied));
    for _ in 0..30 {
        let (with, without) =
            (own(augmented.value(&model, rows))?, own(plain.value(&model, rows))?);
        let holds = with <= without + 1e-7 && without <= evidence + 1e-7;
        let what = format!("{with} with local variables, {without} without, evidence {evidence}");
        report.require("order", holds, &what);
        own(augmented.step(&mut model, rows, 1.0))?;
    }
    Ok(())
}

fn own_target(of: &Own, y: f64) -> likelihoods::Target {
    likelihoods::Target { y, extra: of.extra }
}

/// One observation of several independent latent values.
fn one_point(
    report: &mut Report,
    likelihood: Box<dyn Likelihood>,
    variances: &[f64],
    means: &[f64],
    y: f64,
    [m, v]: [&[f64]; 2],
) -> Outcome {
    let one = |variance: &f64| Tabulated::full(Mat::from_fn(1, 1, |_, _| *variance));
    let mean = json!({"type": "constant", "constant": means});
    let kernels = variances.iter().map(one).collect();
    let model = model(kernels, None, likelihood, mean)?;
    let draws = drawn(&model, &rows(&[y], 1.0)?, Target::Variational)?;
    for l in 0..variances.len() {
        let chains = chains(&draws.f, |f| f[(0, l)]);
        moments(report, &format!("f{l}"), &chains, m[l], v[l])?;
    }
    Ok(())
}

fn sites(json: &Value) -> Outcome<Vec<Site>> {
    let (a, p) = (numbers(get(json, "potential")?)?, numbers(get(json, "precision")?)?);
    let pairs = a.into_iter().zip(p);
    Ok(pairs.map(|(potential, precision)| Site { potential, precision }).collect())
}

fn full_features(k: &Mat<f64>) -> Outcome<Features> {
    let a = own(Cholesky::new(k.as_ref(), Jitter::Absolute(0.0), "K"))?.l;
    Ok(Features { a, k: k.clone(), unexplained: vec![0.0; k.nrows()] })
}

/// f | ω of all rows.
fn conditional(entry: &Value, report: &mut Report) -> Outcome {
    check_known(entry, &["K", "prior_mean", "potential", "precision", "mean", "cov"], report)?;
    let features = full_features(&matrix(get(entry, "K")?)?)?;
    let mu = numbers(get(entry, "prior_mean")?)?;
    let mut found = Conditional::default();
    own(found.renew(&features, &sites(entry)?, &mu, 0.0))?;
    let n = mu.len();
    let mean: Vec<f64> = (0..n)
        .map(|i| mu[i] + (0..n).map(|j| features.a[(i, j)] * found.z()[j]).sum::<f64>())
        .collect();
    report.close("mean", &mean, &numbers(get(entry, "mean")?)?);
    let through = product(features.a.as_ref(), found.covariance(&features).as_ref());
    let covariance = product(through.as_ref(), features.a.transpose());
    report.close("cov", &by_rows(covariance.as_ref()), &numbers(get(entry, "cov")?)?);
    Ok(())
}

/// Features from covariances with inducing variables.
fn sparse_features(json: &Value) -> Outcome<(Features, Mat<f64>)> {
    let (kuu, kuf) = (matrix(get(json, "Kuu")?)?, matrix(get(json, "Kuf")?)?);
    let l = own(Cholesky::new(kuu.as_ref(), Jitter::Absolute(0.0), "Kuu"))?.l;
    let mut phi = kuf.clone();
    solve_lower(l.as_ref(), phi.as_mut(), Par::Seq);
    let a = phi.transpose().to_owned();
    let kff = numbers(get(json, "kff")?)?;
    let explained = |i: usize| (0..a.ncols()).map(|j| a[(i, j)] * a[(i, j)]).sum::<f64>();
    let unexplained = kff.iter().enumerate().map(|(i, k)| k - explained(i)).collect();
    Ok((Features { a, k: Mat::new(), unexplained }, l))
}

/// The file `variational_gibbs`.
pub fn sparse(file: &Value, _: &Path, report: &mut Report) -> Outcome {
    let (features, l) = sparse_features(file)?;
    let sites = sites(file)?;
    let mu = vec![0.0; sites.len()];
    for (name, entry) in entries(file)? {
        match name.as_str() {
            "description" | "Kuu" | "Kuf" | "kff" | "potential" | "precision" => {}
            "Ktilde" => report.close(name, &features.unexplained, &numbers(entry)?),
            "cases" => {
                for case in items(entry)? {
                    let alpha = number(get(case, "alpha")?)?;
                    report.case = format!("α = {alpha}");
                    let mut found = Conditional::default();
                    let energy = own(found.renew(&features, &sites, &mu, alpha))?;
                    let m = product(
                        l.as_ref(),
                        Mat::from_fn(l.nrows(), 1, |i, _| found.z()[i]).as_ref(),
                    );
                    let through = product(l.as_ref(), found.covariance(&features).as_ref());
                    let s = product(through.as_ref(), l.transpose());
                    let factor = own(Cholesky::new(s.as_ref(), Jitter::Absolute(0.0), "S"))?;
                    for (field, reference) in entries(case)? {
                        let found = match field.as_str() {
                            "alpha" => continue,
                            "eta1" => by_rows(factor.solve(m.as_ref()).as_ref()),
                            "precision_matrix" => by_rows(factor.inverse().as_ref()),
                            "m" => by_rows(m.as_ref()),
                            "S" => by_rows(s.as_ref()),
                            "log_energy" => vec![energy],
                            _ => {
                                report.fail(field, "an output that the check does not know");
                                continue;
                            }
                        };
                        report.close(field, &found, &numbers(reference)?);
                    }
                }
            }
            "reference" => stationary(entry, report)?,
            _ => report.fail(name, "an entry that the check does not know"),
        }
    }
    Ok(())
}

/// Moments of u under the two laws that chains with inducing points may have.
fn stationary(json: &Value, report: &mut Report) -> Outcome {
    check_known(json, &["Kuu", "Kuf", "kff", "cases"], report)?;
    let (kuu, kuf) = (matrix(get(json, "Kuu")?)?, matrix(get(json, "Kuf")?)?);
    let kernel =
        Tabulated::sparse(kuu.clone(), kuf.transpose().to_owned(), numbers(get(json, "kff")?)?)?;
    let l = own(Cholesky::new(kuu.as_ref(), Jitter::Absolute(0.0), "Kuu"))?.l;
    for case in items(get(json, "cases")?)? {
        check_known(
            case,
            &["likelihood", "parameters", "y", "alpha0_augmented", "alpha1_exact_fitc"],
            report,
        )?;
        let name = get(case, "likelihood")?.as_str().ok_or("a name")?;
        let of = Own::read(name, get(case, "parameters")?)?;
        let y: Vec<f64> = numbers(get(case, "y")?)?.into_iter().map(|y| of.y(y)).collect();
        let mean = json!({"type": "constant", "constant": [0.0]});
        let points = Some(kuu.nrows());
        let model = model(vec![kernel.clone()], points, of.likelihood.clone_box(), mean)?;
        for (field, target) in
            [("alpha0_augmented", Target::Variational), ("alpha1_exact_fitc", Target::Fitc)]
        {
            report.case = format!("{name} {field}");
            let stated = get(case, field)?;
            let draws = drawn(&model, &rows(&y, of.extra)?, target)?;
            // u = Lz of one inducing point
            let chains = chains(&draws.z, |z| l[(0, 0)] * z[(0, 0)]);
            moments(
                report,
                "u",
                &chains,
                number(get(stated, "mean")?)?,
                number(get(stated, "var")?)?,
            )?;
        }
    }
    Ok(())
}

//! Classes by logistic-softmax with local variables: sweeps, predictions, steps of the scales.

use crate::support::{
    Outcome, Report, by_rows, check_known, entries, get, matrix, number, numbers, own,
};
use crate::tabulated::Tabulated;
use serde_json::{Value, json};
use sparsegp::data::InMemory;
use sparsegp::distributions::functions::log_sigma_tilde;
use sparsegp::likelihoods::augmented::closed_form;
use sparsegp::likelihoods::logistic_softmax::LogisticSoftmax;
use sparsegp::likelihoods::{Likelihood, Slopes, Target};
use sparsegp::linalg::{Cholesky, Jitter, Mat, product};
use sparsegp::means;
use sparsegp::methods::{Tvgp, find};
use sparsegp::model::Model;
use sparsegp::variational::{Tying, Variational};
use std::path::Path;

/// With the θ and the D of a part of the file, where it has them.
fn likelihood(classes: usize, part: &Value, augmentation: &str) -> Outcome<LogisticSoftmax> {
    let mut spec = json!({
        "type": "logistic-softmax",
        "classes": classes,
        "integration": "laplace",
        "augmentation": augmentation,
    });
    for (own, key) in [("scales", "theta"), ("scales", "start"), ("constant", "D")] {
        if let Some(value) = part.get(key) {
            spec[own] = value.clone();
        }
    }
    own(LogisticSoftmax::from_json(&spec))
}

/// ℓ and the sites of one row.
struct Local {
    ell: f64,
    potential: Vec<f64>,
    precision: Vec<f64>,
}

impl Local {
    fn new(l: &dyn Likelihood, y: f64, m: &[f64], v: &[f64]) -> Outcome<Self> {
        let (mut a, mut b) = (vec![0.0; m.len()], vec![0.0; m.len()]);
        let mut params = vec![0.0; l.num_params()];
        let out = Slopes { mean: &mut a, variance: &mut b, params: &mut params };
        let augmented = l.augmented().ok_or("no local variables")?;
        let ell = augmented.expect(Target { y, extra: 1.0 }, m, v, out);
        let precision: Vec<f64> = b.iter().map(|b| -2.0 * b).collect();
        let sites = a.iter().zip(&precision).zip(m);
        let potential = sites.map(|((a, precision), m)| a + precision * m).collect();
        Ok(Self { ell, potential, precision })
    }

    /// Means of the counts, from the potentials ½(Yⱼ − n̄ⱼ).
    fn counts(&self, y: f64) -> impl Iterator<Item = f64> {
        let hit = move |j: usize| f64::from(u8::from(j as f64 == y));
        self.potential.iter().enumerate().map(move |(j, a)| hit(j) - 2.0 * a)
    }
}

/// Means and variances of all latent functions of zero prior mean, rows by latent functions.
fn moments(k: &Mat<f64>, q: &Variational, latents: usize) -> Outcome<[Mat<f64>; 2]> {
    let n = k.nrows();
    let (first, second) = (q.first.value(), q.second.value());
    let none = Jitter::Absolute(0.0);
    let prior = own(Cholesky::new(k.as_ref(), none, "K"))?.inverse();
    let mut found = [Mat::zeros(n, latents), Mat::zeros(n, latents)];
    for l in 0..latents {
        let mut precision = prior.clone();
        (0..n).for_each(|i| precision[(i, i)] += second[l * n + i]);
        let s = own(Cholesky::new(precision.as_ref(), none, "S⁻¹"))?.inverse();
        let m = product(s.as_ref(), Mat::from_fn(n, 1, |i, _| first[l * n + i]).as_ref());
        for i in 0..n {
            found[0][(i, l)] = m[(i, 0)];
            found[1][(i, l)] = s[(i, i)];
        }
    }
    Ok(found)
}

/// The file `multiclass`.
pub fn check(file: &Value, _: &Path, report: &mut Report) -> Outcome {
    let classes = number(get(file, "C")?)? as usize;
    for (name, entry) in entries(file)? {
        report.case.clone_from(name);
        match name.as_str() {
            "description" | "X" | "K" | "labels" | "C" => {}
            "marginal" | "marginal_scaled" | "bijective" => {
                sweeps(file, entry, &likelihood(classes, entry, "marginal")?, report)?;
            }
            "mean_field_lambda" => {
                sweeps(file, entry, &likelihood(classes, entry, "mean-field")?, report)?;
            }
            "predict" => predictions(file, entry, report)?,
            "alpha_fixed_point" => shapes(entry, report)?,
            "theta_mm" => scales(file, entry, report)?,
            _ => report.fail(name, "a part that the check does not know"),
        }
    }
    Ok(())
}

/// Coordinate ascent from the prior, with what the file tells after some sweeps.
fn sweeps(file: &Value, entry: &Value, l: &LogisticSoftmax, report: &mut Report) -> Outcome {
    let name = report.case.clone();
    check_known(entry, &["elbo_trace", "after", "theta", "D"], report)?;
    let (k, y) = (matrix(get(file, "K")?)?, numbers(get(file, "labels")?)?);
    let (n, latents) = (y.len(), l.latents());
    let data = own(InMemory::new(Tabulated::indices(n), Mat::from_fn(n, 1, |i, _| y[i])))?;
    let method = own(find("cavi-full"))?.method;
    let mut model = Model {
        kernels: vec![Box::new(Tabulated::full(k.clone()))],
        mean: own(means::by_name("zero", 1, latents))?,
        likelihood: l.clone_box(),
        inducing: Vec::new(),
        q: Some(Variational::sites(n, latents, Tying::Untied)),
        method,
        jitter: Jitter::Absolute(0.0),
        hidden: Vec::new(),
    };
    let full = Tvgp::of(method).map_err(|_| "a method with sites of all rows")?;
    let expected = numbers(get(entry, "elbo_trace")?)?;
    let after = entries(get(entry, "after")?)?;
    let mut trace = Vec::new();
    for sweep in 0..expected.len() {
        trace.push(own(full.value(&model, &data))?);
        if let Some(stated) = after.get(&sweep.to_string()) {
            report.case = format!("{name} after {sweep}");
            let [m, v] = moments(&k, model.q.as_ref().ok_or("no q")?, latents)?;
            let row =
                |of: &Mat<f64>, i: usize| (0..latents).map(|l| of[(i, l)]).collect::<Vec<_>>();
            let rows = (0..n)
                .map(|i| Local::new(l, y[i], &row(&m, i), &row(&v, i)))
                .collect::<Outcome<Vec<_>>>()?;
            let moment = |of: fn(f64, f64) -> f64| {
                by_rows(Mat::from_fn(n, latents, |i, l| of(m[(i, l)], v[(i, l)])).as_ref())
            };
            let counts: Vec<Vec<f64>> =
                rows.iter().zip(&y).map(|(row, y)| row.counts(*y).collect()).collect();
            for (field, reference) in entries(stated)? {
                let found: Vec<f64> = match field.as_str() {
                    "m" => by_rows(m.as_ref()),
                    "v" => by_rows(v.as_ref()),
                    "elbo" => vec![trace[sweep]],
                    "ell" => rows.iter().map(|row| row.ell).collect(),
                    "potential" => rows.iter().flat_map(|row| row.potential.clone()).collect(),
                    "precision" => rows.iter().flat_map(|row| row.precision.clone()).collect(),
                    "c" => moment(|m, v| (m * m + v).sqrt()),
                    "st" => moment(|m, v| log_sigma_tilde(-m, v).exp()),
                    "nbar" | "gamma" => counts.concat(),
                    // of negative multinomial counts n̄ⱼ = pⱼ/(1 − Σ p)
                    "p" => counts
                        .iter()
                        .flat_map(|row| {
                            let all = 1.0 + row.iter().sum::<f64>();
                            row.iter().map(move |n| n / all)
                        })
                        .collect(),
                    "alpha" => counts.iter().map(|row| 1.0 + row.iter().sum::<f64>()).collect(),
                    _ => {
                        report.fail(field, "an output that the check does not know");
                        continue;
                    }
                };
                report.close(field, &found, &numbers(reference)?);
            }
        }
        own(full.step(&mut model, &data, 1.0))?;
    }
    report.case = name;
    report.close("elbo_trace", &trace, &expected);
    let falls = trace.windows(2).any(|pair| pair[1] < pair[0] - 1e-10);
    report.require("elbo_trace", !falls, "a sweep lowers the bound");
    Ok(())
}

/// Probabilities of the classes by integrals in one dimension, with the θ and D of the sweeps.
fn predictions(file: &Value, entry: &Value, report: &mut Report) -> Outcome {
    let (m, v) = (numbers(get(entry, "m")?)?, numbers(get(entry, "v")?)?);
    for (field, reference) in entries(entry)? {
        let part = match field.as_str() {
            "m" | "v" => continue,
            "overparametrised" => "marginal",
            "scaled" => "marginal_scaled",
            "bijective" => "bijective",
            _ => {
                report.fail(field, "an output that the check does not know");
                continue;
            }
        };
        let expected = numbers(reference)?;
        let l = likelihood(expected.len(), get(file, part)?, "marginal")?;
        let mut found = vec![0.0; expected.len()];
        let k = l.latents();
        l.probabilities(&m[..k], &v[..k], &mut found);
        report.close(field, &found, &expected);
        // a row at a time they come by another way
        let density = |y: usize| {
            let target = Target { y: y as f64, extra: 1.0 };
            l.predict_log_density(target, &m[..k], &v[..k]).exp()
        };
        report.close(field, &(0..expected.len()).map(density).collect::<Vec<_>>(), &expected);
    }
    Ok(())
}

/// α of s = ½ Σⱼ σ̃(−μⱼ, vⱼ), by two classes without variance where both are s.
fn shapes(entry: &Value, report: &mut Report) -> Outcome {
    check_known(entry, &["s", "alpha"], report)?;
    let l = likelihood(2, &Value::Null, "mean-field")?;
    let alphas = numbers(get(entry, "s")?)?.into_iter().map(|s| {
        let mean = if s > 0.0 { (1.0 - s).ln() - s.ln() } else { 800.0 };
        let local = Local::new(&l, 0.0, &[mean; 2], &[0.0; 2])?;
        Ok(1.0 + local.counts(0.0).sum::<f64>())
    });
    report.close("alpha", &alphas.collect::<Outcome<Vec<_>>>()?, &numbers(get(entry, "alpha")?)?);
    Ok(())
}

/// Steps of θ at given σ̃(−μ, v), which are those of f without variance.
fn scales(file: &Value, entry: &Value, report: &mut Report) -> Outcome {
    check_known(entry, &["sigma_tilde_minus", "start", "steps", "objective"], report)?;
    let misses = matrix(get(entry, "sigma_tilde_minus")?)?;
    let labels = numbers(get(file, "labels")?)?;
    let classes = misses.ncols();
    let f: Vec<Vec<f64>> = (0..misses.nrows())
        .map(|i| (0..classes).map(|j| (1.0 - misses[(i, j)]).ln() - misses[(i, j)].ln()).collect())
        .collect();
    let zero = vec![0.0; classes];
    let mut l = likelihood(classes, entry, "marginal")?;
    // Σ log θ_y − log D
    let objective = |l: &LogisticSoftmax| -> Outcome<f64> {
        let mut sum = 0.0;
        for (i, y) in labels.iter().enumerate() {
            sum += Local::new(l, *y, &f[i], &zero)?.ell - (1.0 - misses[(i, *y as usize)]).ln();
        }
        Ok(sum)
    };
    let (mut found, mut values) = (Vec::new(), vec![objective(&l)?]);
    let steps = matrix(get(entry, "steps")?)?;
    for _ in 0..steps.nrows() {
        let target = |y: f64| Target { y, extra: 1.0 };
        let rows = labels.iter().zip(&f).map(|(y, f)| (target(*y), &f[..], &zero[..]));
        let next: Vec<f64> = closed_form(&l, rows).into_iter().flatten().collect();
        own(l.score.weights.scales.set("scales", &next))?;
        found.extend(next);
        values.push(objective(&l)?);
    }
    report.close("steps", &found, &by_rows(steps.as_ref()));
    report.close("objective", &values, &numbers(get(entry, "objective")?)?);
    let falls = values.windows(2).any(|pair| pair[1] < pair[0] - 1e-12);
    report.require("objective", !falls, "a step lowers the objective");
    Ok(())
}

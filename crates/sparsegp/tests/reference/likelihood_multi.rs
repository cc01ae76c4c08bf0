//! Likelihoods of several latent functions: densities, expectations with gradients, predictions.

use crate::support::{Outcome, Report, by_rows, entries, get, items, matrix, number, numbers};
use crate::support::{own as refused, text};
use serde_json::Value;
use sparsegp::likelihoods::heteroscedastic::{HeteroscedasticGaussian, Options, Scale};
use sparsegp::likelihoods::multi_points::{Integration, Points};
use sparsegp::likelihoods::quadrature::{Rule, Slope};
use sparsegp::likelihoods::robust_max::RobustMax;
use sparsegp::likelihoods::softmax::Softmax;
use sparsegp::likelihoods::{Likelihood, Slopes, Target};
use sparsegp::linalg::{Mat, MatRef};
use std::path::Path;

/// Where expectations are compared with another rule than that of the file, which is converged.
const OTHER_RULE: f64 = 1e-6;

/// A likelihood as the file has it. A class likelihood predicts one mean and variance per class.
pub enum Model {
    /// Targets that are numbers.
    Plain(Box<dyn Likelihood>),
    /// Targets that are classes.
    Classes(Box<dyn Likelihood>),
    /// Softmax with the draws of every row.
    Draws(Softmax, Vec<Points>),
}

/// What it computes for one row.
struct Row {
    value: f64,
    by_mean: Vec<f64>,
    by_variance: Vec<f64>,
}

fn count(json: &Value) -> Outcome<usize> {
    json.as_u64().map(|n| n as usize).ok_or_else(|| format!("expected a count, found {json}"))
}

/// The likelihood among a file's inputs.
pub fn model(inputs: &Value) -> Outcome<Model> {
    let spec = get(inputs, "likelihood")?;
    let known: &[&str] = match text(get(spec, "type")?)? {
        "HeteroskedasticTFPConditional" => &["type", "distribution", "scale_transform"],
        "SoftmaxGH" => &["type", "num_classes", "n_gh"],
        "SoftmaxMC" => &["type", "num_classes"],
        "MultiClass" => &["type", "num_classes", "epsilon"],
        other => return Err(format!("the likelihood `{other}` is unknown to the check")),
    };
    if let Some(key) = entries(spec)?.keys().find(|k| !known.contains(&k.as_str())) {
        return Err(format!("the likelihood has an entry `{key}` that the check does not know"));
    }
    let classes = || count(get(spec, "num_classes")?);
    Ok(match known.last() {
        Some(&"scale_transform") => {
            match text(get(spec, "distribution")?)? {
                "Normal" => {}
                other => return Err(format!("the distribution `{other}` is unknown to the check")),
            }
            let scale = match text(get(spec, "scale_transform")?)? {
                "exp" => Scale::Exp,
                "softplus" => Scale::Softplus,
                other => return Err(format!("the transform `{other}` is unknown to the check")),
            };
            // the program uses its tensor rule for every expectation
            let options = Options { scale, tensor: true, ..Options::default() };
            Model::Plain(Box::new(refused(HeteroscedasticGaussian::with(options))?))
        }
        Some(&"n_gh") => {
            let rule = Integration::Tensor(count(get(spec, "n_gh")?)?);
            Model::Classes(Box::new(refused(Softmax::with(classes()?, rule, Slope::Rule))?))
        }
        Some(&"epsilon") => {
            // distribution functions are squashed by 1e-6 (notes of the file)
            let made = RobustMax::with(classes()?, Rule::GaussHermite(20), Slope::Rule, 1e-6);
            let mut own = refused(made)?;
            refused(own.epsilon.set("epsilon", &[number(get(spec, "epsilon")?)?]))?;
            Model::Classes(Box::new(own))
        }
        _ => {
            let classes = classes()?;
            let mut rows: Vec<Vec<f64>> = Vec::new();
            for draw in items(get(inputs, "eps")?)? {
                for (i, row) in items(draw)?.iter().enumerate() {
                    rows.resize(rows.len().max(i + 1), Vec::new());
                    rows[i].extend(numbers(row)?);
                }
            }
            let points = rows.into_iter().map(|row| refused(Points::given(row, classes)));
            Model::Draws(refused(Softmax::new(classes))?, points.collect::<Outcome<_>>()?)
        }
    })
}

fn row(a: MatRef<f64>, i: usize) -> Vec<f64> {
    (0..a.ncols()).map(|k| a[(i, k)]).collect()
}

impl Model {
    fn likelihood(&self) -> &dyn Likelihood {
        match self {
            Model::Plain(own) | Model::Classes(own) => &**own,
            Model::Draws(own, _) => own,
        }
    }

    fn expect(&self, i: usize, target: Target, mean: &[f64], variance: &[f64]) -> Row {
        let (mut by_mean, mut by_variance) = (vec![0.0; mean.len()], vec![0.0; mean.len()]);
        let mut params = vec![0.0; self.likelihood().params().len()];
        let slopes = Slopes { mean: &mut by_mean, variance: &mut by_variance, params: &mut params };
        let value = match self {
            Model::Draws(own, points) => {
                own.expect_with(&points[i], target, mean, variance, slopes)
            }
            _ => self.likelihood().expect(target, mean, variance, slopes),
        };
        Row { value, by_mean, by_variance }
    }

    fn log_density(&self, i: usize, target: Target, mean: &[f64], variance: &[f64]) -> f64 {
        match self {
            Model::Draws(own, points) => {
                own.predict_log_density_with(&points[i], target, mean, variance)
            }
            _ => self.likelihood().predict_log_density(target, mean, variance),
        }
    }

    /// Means and variances: of y, or of the indicators of all classes, given their probabilities.
    fn moments(
        &self,
        mean: &[f64],
        variance: &[f64],
        log_density: impl Fn(Target) -> f64,
    ) -> (Vec<f64>, Vec<f64>) {
        let Some(classes) = self.likelihood().classes() else {
            let (mean, variance) = self.likelihood().predict(0.0, mean, variance);
            return (vec![mean], vec![variance]);
        };
        let targets = (0..classes).map(|k| Target { y: k as f64, extra: 0.0 });
        let p: Vec<f64> = targets.map(|t| log_density(t).exp()).collect();
        let variances = p.iter().map(|p| p - p * p).collect();
        (p, variances)
    }
}

/// The files `likelihood_*` whose likelihood has several latent functions.
pub fn check(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    let inputs = get(json, "inputs")?;
    for key in entries(inputs)?.keys() {
        if !["likelihood", "F", "Y", "Fmu", "Fvar", "eps"].contains(&key.as_str()) {
            report.fail(key, "an input that the check does not know");
        }
    }
    let own = model(inputs)?;
    let read = |key: &str| -> Outcome<Mat<f64>> { matrix(get(inputs, key)?) };
    let (f, y, mean, variance) = (read("F")?, read("Y")?, read("Fmu")?, read("Fvar")?);
    let latents = own.likelihood().latents();
    for (field, a) in [("F", &f), ("Fmu", &mean), ("Fvar", &variance)] {
        if a.ncols() != latents || a.nrows() != y.nrows() {
            return Err(format!("{field} does not have {latents} columns and as many rows as Y"));
        }
    }
    if matches!(&own, Model::Draws(_, points) if points.len() < y.nrows()) {
        return Err("eps has fewer rows than Y".into());
    }
    let n = y.nrows();
    let targets: Vec<Target> = (0..n).map(|i| Target { y: y[(i, 0)], extra: 0.0 }).collect();
    for t in &targets {
        if let Err(reason) = own.likelihood().check(*t) {
            report.fail("Y", &format!("{} {reason}", t.y));
        }
    }
    let zero = vec![0.0; latents];
    let rows: Vec<Row> = (0..n)
        .map(|i| own.expect(i, targets[i], &row(mean.as_ref(), i), &row(variance.as_ref(), i)))
        .collect();
    let conditional: Vec<_> = (0..n)
        .map(|i| {
            let f = row(f.as_ref(), i);
            own.moments(&f, &zero, |t| own.likelihood().log_prob(t, &f))
        })
        .collect();
    let predicted: Vec<_> = (0..n)
        .map(|i| {
            let (m, v) = (row(mean.as_ref(), i), row(variance.as_ref(), i));
            own.moments(&m, &v, |t| own.log_density(i, t, &m, &v))
        })
        .collect();
    let first = |all: &[(Vec<f64>, Vec<f64>)]| -> Vec<f64> {
        all.iter().flat_map(|(mean, _)| mean.clone()).collect()
    };
    let second = |all: &[(Vec<f64>, Vec<f64>)]| -> Vec<f64> {
        all.iter().flat_map(|(_, variance)| variance.clone()).collect()
    };
    for (field, reference) in entries(get(json, "outputs")?)? {
        let values: Vec<f64> = match field.as_str() {
            "log_prob_F" => {
                (0..n).map(|i| own.likelihood().log_prob(targets[i], &row(f.as_ref(), i))).collect()
            }
            "conditional_mean_F" => first(&conditional),
            "conditional_variance_F" => second(&conditional),
            "variational_expectations" => rows.iter().map(|r| r.value).collect(),
            "predict_mean" => first(&predicted),
            "predict_var" => second(&predicted),
            "predict_log_density" => (0..n)
                .map(|i| {
                    let (m, v) = (row(mean.as_ref(), i), row(variance.as_ref(), i));
                    own.log_density(i, targets[i], &m, &v)
                })
                .collect(),
            "grad_sum_variational_expectations" => {
                for (key, reference) in entries(reference)? {
                    let values: Vec<f64> = match key.as_str() {
                        "Fmu" => rows.iter().flat_map(|r| r.by_mean.clone()).collect(),
                        "Fvar" => rows.iter().flat_map(|r| r.by_variance.clone()).collect(),
                        _ => {
                            report.fail(field, &format!("gradient of the unknown `{key}`"));
                            continue;
                        }
                    };
                    report.close(&format!("{field} {key}"), &values, &numbers(reference)?);
                }
                continue;
            }
            _ => {
                report.fail(field, "an output that the check does not know");
                continue;
            }
        };
        report.close(field, &values, &numbers(reference)?);
    }
    if text(get(get(inputs, "likelihood")?, "type")?)? == "SoftmaxGH" {
        exact(latents, &targets, mean.as_ref(), variance.as_ref(), json, report)?;
    }
    Ok(())
}

/// Softmax by integrals in one dimension against the converged values of the file.
fn exact(
    classes: usize,
    targets: &[Target],
    mean: MatRef<f64>,
    variance: MatRef<f64>,
    json: &Value,
    report: &mut Report,
) -> Outcome {
    let outputs = get(json, "outputs")?;
    let own = refused(Softmax::with(classes, Integration::Laplace, Slope::Rule))?;
    let own = Model::Classes(Box::new(own));
    let all: Vec<(Row, f64)> = targets
        .iter()
        .enumerate()
        .map(|(i, t)| {
            let (m, v) = (row(mean, i), row(variance, i));
            (own.expect(i, *t, &m, &v), own.log_density(i, *t, &m, &v))
        })
        .collect();
    let gradients = get(outputs, "grad_sum_variational_expectations")?;
    let by_mean: Vec<f64> = all.iter().flat_map(|(r, _)| r.by_mean.clone()).collect();
    let by_variance: Vec<f64> = all.iter().flat_map(|(r, _)| r.by_variance.clone()).collect();
    let values: Vec<f64> = all.iter().map(|(r, _)| r.value).collect();
    let densities: Vec<f64> = all.iter().map(|(_, d)| *d).collect();
    for (field, own, reference) in [
        ("exact expectations", values, get(outputs, "variational_expectations")?),
        ("exact log density", densities, get(outputs, "predict_log_density")?),
        ("exact Fmu", by_mean, get(gradients, "Fmu")?),
        ("exact Fvar", by_variance, get(gradients, "Fvar")?),
    ] {
        report.close_to(field, &own, &numbers(reference)?, OTHER_RULE);
    }
    Ok(())
}

/// The block `robustmax` of likelihoods.json of the inverse-free family: its entries of `inputs` and
/// of `outputs`. Tolerance: that of the report.
pub fn robust_max(inputs: &Value, outputs: &Value, report: &mut Report) -> Outcome {
    if let Some(key) =
        entries(inputs)?.keys().find(|k| !["mu", "v", "y", "epsilon"].contains(&k.as_str()))
    {
        report.fail(key, "an input that the check does not know");
    }
    let (mean, variance) = (matrix(get(inputs, "mu")?)?, matrix(get(inputs, "v")?)?);
    let y = numbers(get(inputs, "y")?)?;
    // the rule of the file's program, in predictions too: they are exact unless Φ is squashed, and this does not change it
    let squash = f64::MIN_POSITIVE;
    let made = RobustMax::with(mean.ncols(), Rule::GaussHermite(20), Slope::Rule, squash);
    let mut own = refused(made)?;
    refused(own.epsilon.set("epsilon", &[number(get(inputs, "epsilon")?)?]))?;
    let (n, c) = (mean.nrows(), mean.ncols());
    let (mut largest, mut value, mut density) = (vec![], vec![], vec![]);
    let mut tables = [(); 4].map(|()| Mat::<f64>::zeros(n, c));
    for i in 0..n {
        let target = Target { y: y[i], extra: 0.0 };
        let (m, v) = (row(mean.as_ref(), i), row(variance.as_ref(), i));
        let (mut a, mut b, mut params) = (vec![0.0; c], vec![0.0; c], [0.0]);
        largest.push(own.largest_with_slopes(y[i] as usize, &m, &v, &mut a, &mut b));
        for k in 0..c {
            (tables[0][(i, k)], tables[1][(i, k)]) = (a[k], b[k]);
        }
        let slopes = Slopes { mean: &mut a, variance: &mut b, params: &mut params };
        value.push(own.expect(target, &m, &v, slopes));
        for k in 0..c {
            (tables[2][(i, k)], tables[3][(i, k)]) = (a[k], b[k]);
        }
        density.push(own.predict_log_density(target, &m, &v).exp());
    }
    for (field, reference) in entries(outputs)? {
        let values = match field.as_str() {
            "prob_is_largest" => largest.clone(),
            "dp_dmu" => by_rows(tables[0].as_ref()),
            "dp_dv" => by_rows(tables[1].as_ref()),
            "ve" => value.clone(),
            "dmu" => by_rows(tables[2].as_ref()),
            "dv" => by_rows(tables[3].as_ref()),
            "predictive_density" => density.clone(),
            _ => {
                report.fail(field, "an output of robustmax that the check does not know");
                continue;
            }
        };
        report.close(&format!("robustmax {field}"), &values, &numbers(reference)?);
    }
    Ok(())
}

//! Uncollapsed bounds with every adjoint: Gaussian noise, one factor v for any likelihood, one factor
//! for each of several latent functions.

use crate::batch::Batch;
use crate::collapsed::{hyper, only};
use crate::observed::{self, ByRow};
use crate::probe::{Log, Spy};
use crate::problem::{self, gradient_by_path};
use crate::support::{
    Outcome, Report, by_rows, check_known, entries, get, items, matrix, number, numbers, own, text,
};
use crate::trained::{indices, marginals, prior_kl};
use serde_json::Value;
use sparsegp::data::InMemory;
use sparsegp::engine::Cpu;
use sparsegp::likelihoods::multi_points::Integration;
use sparsegp::likelihoods::quadrature::Slope;
use sparsegp::likelihoods::softmax::Softmax;
use sparsegp::linalg::{Cholesky, Jitter, Mat};
use sparsegp::model::{Model, inducing_param};
use sparsegp::params::free_gradient;
use sparsegp::variational::Variational;
use std::path::Path;

/// A minibatch: rows `picked`, of which each stands for `scale`.
pub fn batch(data: &InMemory, picked: &[usize], scale: f64) -> Batch {
    let pick = |a: &Mat<f64>| Mat::from_fn(picked.len(), a.ncols(), |i, j| a[(picked[i], j)]);
    let rows = InMemory {
        x: pick(&data.x),
        y: pick(&data.y),
        weights: Vec::new(),
        extra: picked.iter().filter_map(|i| data.extra.get(*i)).copied().collect(),
    };
    Batch { rows, scale }
}

/// An evaluation with the cotangents that its kernel saw.
pub struct Seen<'a> {
    model: &'a Model,
    data: &'a Batch,
    /// The bound.
    pub value: f64,
    gradient: Vec<f64>,
    by_path: Vec<(String, Vec<f64>)>,
    log: Log,
    scale: f64,
}

/// Evaluates a model of one kernel.
pub fn see<'a>(model: &'a Model, data: &'a Batch) -> Outcome<Seen<'a>> {
    let mut spied = model.clone();
    let spy = Spy::new(model.kernels[0].clone());
    let log = spy.log.clone();
    spied.kernels = vec![Box::new(spy)];
    let evaluation = own(spied.evaluate(&Cpu::default(), data))?;
    let log = std::mem::take(&mut *log.lock().map_err(|e| e.to_string())?);
    let by_path = gradient_by_path(model, &evaluation.gradient);
    // what a block gives the kernel is before the scale, which the sums of all blocks get
    let scale = data.scale;
    let (value, gradient) = (evaluation.value, evaluation.gradient);
    Ok(Seen { model, data, value, gradient, by_path, log, scale })
}

impl Seen<'_> {
    /// The gradient of a parameter.
    pub fn slope(&self, path: &str) -> Outcome<Vec<f64>> {
        let found = self.by_path.iter().find(|(p, _)| p == path);
        found.map(|(_, values)| values.clone()).ok_or_else(|| format!("no gradient of {path}"))
    }

    /// K̄uu.
    pub fn kuu_bar(&self) -> Outcome<Mat<f64>> {
        only(&self.log.own).cloned()
    }

    /// K̄uf, M×n.
    pub fn kuf_bar(&self) -> Outcome<Mat<f64>> {
        Ok(only(&self.log.cross)?.transpose() * faer::Scale(self.scale))
    }

    /// k̄ff.
    pub fn kff_bar(&self) -> Outcome<Vec<f64>> {
        Ok(self.scaled(only(&self.log.diag)?.clone()))
    }

    fn scaled(&self, values: Vec<f64>) -> Vec<f64> {
        values.into_iter().map(|v| v * self.scale).collect()
    }

    /// Compares the outputs of one evaluation. The adjoint of S is compared through the gradient of
    /// its root R: tril(2S̄R).
    fn compare(&self, json: &Value, skip: &[&str], report: &mut Report) -> Outcome {
        for (field, reference) in entries(json)? {
            let values = match field.as_str() {
                name if skip.contains(&name) => continue,
                "hyper" => {
                    hyper(field, &self.by_path, reference, report)?;
                    continue;
                }
                "S_bar" => {
                    let root = self.model.q.as_ref().ok_or("no q")?.root(0);
                    let product = matrix(reference)? * &root;
                    let through = Mat::from_fn(root.nrows(), root.ncols(), |i, j| {
                        if i >= j { 2.0 * product[(i, j)] } else { 0.0 }
                    });
                    report.close(field, &self.slope("q.sqrt")?, &by_rows(through.as_ref()));
                    continue;
                }
                "value" => vec![self.value],
                "kl" => vec![prior_kl(self.model)?],
                "mu" => by_rows(marginals(self.model, self.data)?.mu.as_ref()),
                "tau" => by_rows(marginals(self.model, self.data)?.s.as_ref()),
                "d" => by_rows(marginals(self.model, self.data)?.r.as_ref()),
                "m_bar" => self.slope("q.mu")?,
                "S_chol_bar" => self.slope("q.sqrt")?,
                "noise_bar" => self.slope("likelihood.variance")?,
                "v_bar" => self.slope("q.v")?,
                "log_v_bar" => {
                    // v is the last parameter and the exponential of a free number
                    let mut free = vec![0.0; self.model.free_count()];
                    free_gradient(|v| self.model.visit(v), &self.gradient, &mut free);
                    vec![*free.last().ok_or("no free numbers")?]
                }
                "Kuu_bar" => by_rows(only(&self.log.own)?.as_ref()),
                "Kuf_bar" => self.scaled(by_rows(only(&self.log.cross)?.transpose())),
                "kff_bar" => self.scaled(only(&self.log.diag)?.clone()),
                _ => {
                    report.fail(field, "an output that the check does not know");
                    continue;
                }
            };
            report.close(field, &values, &numbers(reference)?);
        }
        Ok(())
    }
}

/// The file `svgp_gaussian`: one pair of mean and root, read as that of u and as that of v.
pub fn gaussian(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    report.read_tolerance(json)?;
    const KNOWN: &[&str] = &[
        "kind",
        "kernel",
        "noise_variance",
        "X",
        "Z",
        "y",
        "idx",
        "scale",
        "m",
        "S_chol",
        "unwhitened",
        "whitened",
    ];
    for (index, case) in items(get(json, "cases")?)?.iter().enumerate() {
        let kind = text(get(case, "kind")?)?;
        check_known(case, KNOWN, report)?;
        let method = match kind {
            "svgp" => "svgp",
            "svgp_new" => "svgp2025",
            other => return Err(format!("the unknown kind {other}")),
        };
        let (mut model, data) = problem::bounds(case, method)?;
        let rows = batch(&data, &indices(get(case, "idx")?)?, number(get(case, "scale")?)?);
        let (mean, root) = (matrix(get(case, "m")?)?, matrix(get(case, "S_chol")?)?);
        for (form, whitened) in [("unwhitened", false), ("whitened", true)] {
            report.case = format!("case {index} {kind} {form}");
            let roots = std::slice::from_ref(&root);
            model.q = Some(own(Variational::new(mean.as_ref(), roots, false, whitened))?);
            see(&model, &rows)?.compare(get(case, form)?, &[], report)?;
        }
    }
    Ok(())
}

/// Model and data of a case with factors v: those of u have mean and covariance as given.
fn with_factors(
    case: &Value,
    likelihood: Box<dyn sparsegp::likelihoods::Likelihood>,
    means: &Mat<f64>,
    covariances: &[Mat<f64>],
) -> Outcome<(Model, InMemory)> {
    let mut with_noise = case.clone();
    // the builder of the family is for Gaussian noise; what it makes of it is replaced
    with_noise["noise_variance"] = Value::from(1.0);
    let (mut model, data) = problem::bounds(&with_noise, "svgp-spherical")?;
    model.likelihood = likelihood;
    model.inducing = vec![inducing_param(matrix(get(case, "Z")?)?.as_ref())];
    let root = |s: &Mat<f64>| own(Cholesky::new(s.as_ref(), Jitter::Absolute(0.0), "S"));
    let roots = covariances.iter().map(|s| Ok(root(s)?.l)).collect::<Outcome<Vec<Mat<f64>>>>()?;
    let q = own(Variational::new(means.as_ref(), &roots, false, false))?;
    model.q = Some(q.with_factors());
    Ok((model, data))
}

/// The file `spherical_v`: values and adjoints at some v, the stationary v, a minibatch.
pub fn spherical(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    report.read_tolerance(json)?;
    const KNOWN: &[&str] = &[
        "likelihood",
        "n_gh",
        "kernel",
        "X",
        "Z",
        "y",
        "m",
        "S",
        "evaluations",
        "v_fixed_point",
        "value_at_fixed_point",
        "minibatch",
    ];
    for (index, case) in items(get(json, "cases")?)?.iter().enumerate() {
        let points = number(get(case, "n_gh")?)? as usize;
        let likelihood = observed::bounds(get(case, "likelihood")?, points)?;
        let label = format!("case {index} {}", likelihood.name());
        report.case.clone_from(&label);
        check_known(case, KNOWN, report)?;
        let (mean, covariance) = (matrix(get(case, "m")?)?, matrix(get(case, "S")?)?);
        let (mut model, data) = with_factors(case, likelihood, &mean, &[covariance])?;
        let n = data.x.nrows();
        let all = batch(&data, &(0..n).collect::<Vec<_>>(), 1.0);
        for evaluation in items(get(case, "evaluations")?)? {
            let v = number(get(evaluation, "v")?)?;
            report.case = format!("{label} v={v}");
            own(model.set("q.v", &[v]))?;
            see(&model, &all)?.compare(evaluation, &["v"], report)?;
        }
        report.case = format!("{label} stationary");
        let v = number(get(case, "v_fixed_point")?)?;
        own(model.set("q.v", &[v]))?;
        let seen = see(&model, &all)?;
        report.close("value", &[seen.value], &numbers(get(case, "value_at_fixed_point")?)?);
        // of parts of size N/2v that cancel
        let size = 0.5 * n as f64 / v;
        report.close("v_bar in N/2v", &[seen.slope("q.v")?[0] / size], &[0.0]);
        let part = get(case, "minibatch")?;
        report.case = format!("{label} minibatch");
        own(model.set("q.v", &[number(get(part, "v")?)?]))?;
        let rows = batch(&data, &indices(get(part, "idx")?)?, number(get(part, "scale")?)?);
        see(&model, &rows)?.compare(part, &["idx", "scale", "v"], report)?;
    }
    Ok(())
}

/// The file `multilatent_v`: softmax with separate draws for every row, a factor per latent
/// function. The slope in v is that of the value by the draws, or by draws of second derivatives
/// (Price 1958).
pub fn several(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    report.read_tolerance(json)?;
    const INPUTS: &[&str] =
        &["case", "name", "about", "rtol", "atol", "kernel", "X", "Z", "y", "eps", "m", "S", "v"];
    let covariances: Vec<Mat<f64>> =
        items(get(json, "S")?)?.iter().map(matrix).collect::<Outcome<_>>()?;
    let means = matrix(get(json, "m")?)?.transpose().to_owned();
    let make = |slope: Slope| -> Outcome<(Model, Batch)> {
        let softmax = own(Softmax::with(covariances.len(), Integration::default(), slope))?;
        let likelihood = Box::new(ByRow::new(softmax, get(json, "eps")?)?);
        let (mut model, mut data) = with_factors(json, likelihood, &means, &covariances)?;
        own(model.set("q.v", &numbers(get(json, "v")?)?))?;
        let n = data.x.nrows();
        data.extra = (0..n).map(|i| i as f64).collect();
        Ok((model, batch(&data, &(0..n).collect::<Vec<_>>(), 1.0)))
    };
    let (model, data) = make(Slope::Rule)?;
    let seen = see(&model, &data)?;
    report.close("v_bar_reparam", &seen.slope("q.v")?, &numbers(get(json, "v_bar_reparam")?)?);
    let (price, data) = make(Slope::Price)?;
    let by_price = see(&price, &data)?.slope("q.v")?;
    report.close("v_bar_price", &by_price, &numbers(get(json, "v_bar_price")?)?);
    let skip = [INPUTS, &["v_bar_reparam", "v_bar_price"]].concat();
    seen.compare(json, &skip, report)
}

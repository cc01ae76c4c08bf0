//! L-SVGP, R-SVGP and the whitened inverse-free bound: the family `inverse_free`.

use crate::batch::Batch;
use crate::support::{
    self, Outcome, Report, by_rows, check_known, entries, get, items, matrix, number, numbers, own,
    text,
};
use crate::trained::prior_kl;
use crate::uncollapsed::{Seen, batch, see};
use serde_json::{Value, json};
use sparsegp::data::InMemory;
use sparsegp::engine::Cpu;
use sparsegp::inverse_free::{
    Adjoints, Estimate, Inversion, LSpace, LogDet, Preconditioner, Schedule, SolverOptions, Tilde,
    WhitenedByFactor, infinity_norm, kl_gap, scaled_identity, variance_gaps, variance_slacks,
};
use sparsegp::kernels::{Cotangents, Inputs, Kernel, Tape, build};
use sparsegp::likelihoods::{self, Likelihood, Slopes, Target};
use sparsegp::linalg::{Cholesky, Jitter, Mat, MatRef, column};
use sparsegp::means;
use sparsegp::methods::{Uncollapsed, find};
use sparsegp::model::{Model, inducing_param};
use sparsegp::optim::PlateauRate;
use sparsegp::variational::Variational;
use std::path::Path;

/// Points of the files' Gauss–Hermite rule.
const POINTS: usize = 20;

const INPUTS: &[&str] = &[
    "X",
    "Z",
    "kernel",
    "num_data",
    "scale",
    "Kuu",
    "Kuf",
    "kff",
    "Y",
    "labels",
    "epsilon",
    "likelihood",
    "noise_variance",
    "m",
    "LS",
    "lam",
    "L",
    "L_opt",
    "probes",
];

/// Comparisons by the family's rule: max|a − b| ≤ atol + rtol·max|b|.
pub struct Rule {
    rtol: f64,
    atol: f64,
}

impl Rule {
    pub fn read(json: &Value) -> Outcome<Self> {
        Ok(Self { rtol: number(get(json, "rtol")?)?, atol: number(get(json, "atol")?)? })
    }

    pub fn close(
        &self,
        field: &str,
        own: &[f64],
        reference: &Value,
        report: &mut Report,
    ) -> Outcome {
        let reference = numbers(reference)?;
        let size = reference.iter().fold(0.0_f64, |m, r| m.max(r.abs()));
        let allowed = self.atol + self.rtol * size;
        report.close_to(field, own, &reference, allowed / size.max(1.0));
        Ok(())
    }
}

/// What the files of the family have in common.
struct Problem {
    model: Model,
    data: Batch,
    kuu: Mat<f64>,
    jitter: f64,
    kuf: Mat<f64>,
    kff: Vec<f64>,
    scale: f64,
}

fn kernel(json: &Value, inputs: usize) -> Outcome<(Box<dyn Kernel>, f64)> {
    let mut spec = json.clone();
    if text(get(json, "type")?)? != "se_ard" {
        return Err(format!("the unknown kernel {json}"));
    }
    spec["type"] = json!("rbf");
    let map = spec.as_object_mut().ok_or("a kernel is an object")?;
    let jitter = map.remove("jitter_on_Kuu").map_or(Ok(0.0), |j| number(&j))?;
    Ok((own(build(&spec, Inputs::unnamed(inputs)))?, jitter))
}

/// The likelihood of a file's inputs.
fn likelihood(inputs: &Value) -> Outcome<Box<dyn Likelihood>> {
    if inputs.get("labels").is_some() {
        let classes = matrix(get(inputs, "m")?)?.ncols();
        let epsilon = number(get(inputs, "epsilon")?)?;
        let spec = json!({ "type": "robust-max", "classes": classes, "epsilon": epsilon,
                           "rule": POINTS, "squash": 0.0 });
        return own(likelihoods::build(&spec));
    }
    if let Some(variance) = inputs.get("noise_variance") {
        return own(likelihoods::build(&json!({ "type": "gaussian", "variance": variance })));
    }
    let Some(json) = inputs.get("likelihood") else { return own(likelihoods::parse("gaussian")) };
    let points = json.get("quadrature_points").map_or(Ok(POINTS as f64), number)? as usize;
    let mut spec = match text(get(json, "type")?)? {
        "gaussian" => json!({ "type": "gaussian", "variance": get(json, "variance")? }),
        "poisson_exp" => json!({ "type": "poisson" }),
        "bernoulli_probit" => json!({ "type": "bernoulli", "link": "probit", "rule": points }),
        "bernoulli_logit" => json!({ "type": "bernoulli", "link": "logit", "rule": points }),
        other => return Err(format!("the unknown likelihood {other}")),
    };
    for key in entries(json)?.keys() {
        match key.as_str() {
            "type" | "quadrature_points" | "variance" => {}
            other => spec[other] = json[other].clone(),
        }
    }
    own(likelihoods::build(&spec))
}

impl Problem {
    fn read(inputs: &Value, report: &mut Report) -> Outcome<Self> {
        check_known(inputs, INPUTS, report)?;
        let (x, z) = (matrix(get(inputs, "X")?)?, matrix(get(inputs, "Z")?)?);
        let (kernel, jitter) = kernel(get(inputs, "kernel")?, x.ncols())?;
        let likelihood = likelihood(inputs)?;
        let y = match (inputs.get("labels"), inputs.get("Y")) {
            (Some(labels), _) | (None, Some(labels)) => matrix(labels)?,
            _ => Mat::zeros(x.nrows(), matrix(get(inputs, "m")?)?.ncols()),
        };
        let scale = number(get(inputs, "scale")?)?;
        let (n, m) = (x.nrows(), z.nrows());
        let data = own(InMemory::new(x, y))?;
        let data = batch(&data, &(0..n).collect::<Vec<_>>(), scale);
        if let Some(count) = inputs.get("num_data") {
            report.close("num_data", &[data.scale * n as f64], &[number(count)?]);
        }
        let (mut kuu, mut kuf, mut kff) = (Mat::zeros(m, m), Mat::zeros(n, m), vec![0.0; n]);
        kernel.evaluate(z.as_ref(), None, kuu.as_mut(), &mut Tape::off());
        kernel.evaluate(data.rows.x.as_ref(), Some(z.as_ref()), kuf.as_mut(), &mut Tape::off());
        kernel.diag(data.rows.x.as_ref(), &mut kff);
        let kuf = kuf.transpose().to_owned();
        let jittered = Mat::from_fn(m, m, |i, j| kuu[(i, j)] + if i == j { jitter } else { 0.0 });
        for (name, found) in [
            ("Kuu", by_rows(jittered.as_ref())),
            ("Kuf", by_rows(kuf.as_ref())),
            ("kff", kff.clone()),
        ] {
            if let Some(reference) = inputs.get(name) {
                report.close(name, &found, &numbers(reference)?);
            }
        }
        let outputs = likelihood.latents() * data.rows.y.ncols();
        let model = Model {
            kernels: vec![kernel],
            mean: own(means::by_name("zero", data.rows.x.ncols(), outputs))?,
            likelihood,
            inducing: vec![inducing_param(z.as_ref())],
            q: None,
            method: own(find("svgp"))?.method,
            jitter: Jitter::Absolute(jitter),
            hidden: Vec::new(),
        };
        Ok(Self { model, data, kuu, jitter, kuf, kff, scale })
    }

    /// The model of a parameterisation by the files' names, with its parameters.
    fn with(&self, name: &str, inputs: &Value) -> Outcome<Model> {
        let mut model = self.model.clone();
        let (kind, optimal) = match name.strip_suffix("_at_optimum") {
            Some(kind) => (kind, true),
            None => (name, false),
        };
        let mean = matrix(get(inputs, "m")?)?;
        if let "m_svgp" | "w_svgp" = kind {
            let roots =
                items(get(inputs, "LS")?)?.iter().map(matrix).collect::<Outcome<Vec<_>>>()?;
            let whitened = kind == "w_svgp";
            model.q = Some(own(Variational::new(mean.as_ref(), &roots, false, whitened))?);
            return Ok(model);
        }
        let (relaxed, preconditioner) = match kind {
            "l_svgp_identity" => (false, Preconditioner::Identity),
            "l_svgp_inv" => (false, Preconditioner::Inverse),
            "r_svgp_identity" => (true, Preconditioner::Identity),
            "r_svgp_naive" => (true, Preconditioner::Naive),
            "r_svgp_ns" => (true, Preconditioner::Inverse),
            other => return Err(format!("the unknown parameterisation {other}")),
        };
        let l = match relaxed {
            true => Some(matrix(get(inputs, if optimal { "L_opt" } else { "L" })?)?),
            false => None,
        };
        let lambda = numbers(get(inputs, "lam")?)?;
        pseudo(&mut model, &mean, &lambda, l.as_ref(), preconditioner)?;
        Ok(model)
    }

    /// E log p and its slopes at these marginals, n×P each, with the scale but for the first.
    fn expectations(&self, mu: &Mat<f64>, v: &Mat<f64>) -> Expectations {
        let (n, latents) = (mu.nrows(), mu.ncols());
        let k = self.model.likelihood.latents();
        let mut out = Expectations {
            ve: Mat::zeros(n, latents / k),
            alpha: Mat::zeros(n, latents),
            beta: Mat::zeros(n, latents),
        };
        let (mut a, mut b) = (vec![0.0; k], vec![0.0; k]);
        let mut params = vec![0.0; self.model.likelihood.num_params()];
        let extra = self.model.likelihood.extra().and_then(|e| e.default).unwrap_or(1.0);
        for p in 0..latents / k {
            for i in 0..n {
                let of = |a: &Mat<f64>| -> Vec<f64> { (0..k).map(|l| a[(i, p * k + l)]).collect() };
                let (mean, variance) = (of(mu), of(v));
                let slopes = Slopes { mean: &mut a, variance: &mut b, params: &mut params };
                let target = Target { y: self.data.rows.y[(i, p)], extra };
                out.ve[(i, p)] = self.model.likelihood.expect(target, &mean, &variance, slopes);
                for l in 0..k {
                    out.alpha[(i, p * k + l)] = self.scale * a[l];
                    out.beta[(i, p * k + l)] = self.scale * b[l];
                }
            }
        }
        out
    }

    fn tilde<'a>(&'a self, lambda: &'a [f64]) -> Tilde<'a> {
        Tilde { kuu: self.kuu.as_ref(), jitter: self.jitter, lambda }
    }
}

struct Expectations {
    ve: Mat<f64>,
    alpha: Mat<f64>,
    beta: Mat<f64>,
}

/// Gives a model a q of pseudo-observations; with an L that of R-SVGP, whose gradient is asked for.
pub fn pseudo(
    model: &mut Model,
    mean: &Mat<f64>,
    lambda: &[f64],
    l: Option<&Mat<f64>>,
    preconditioner: Preconditioner,
) -> Outcome {
    let (m, latents) = (mean.nrows(), mean.ncols());
    let mut q = Variational::pseudo_observations(m, latents, preconditioner, l.is_some());
    if let Some(l) = l {
        q.set_t_root(l.as_ref());
    }
    if let Some(root) = &mut q.root {
        root.frozen = false;
    }
    model.method = own(find(if l.is_some() { "rsvgp" } else { "lsvgp" }))?.method;
    model.q = Some(q);
    let columns: Vec<f64> = (0..latents).flat_map(|j| column(mean.as_ref(), j).to_vec()).collect();
    own(model.set("q.mu", &columns))?;
    own(model.set("q.lambda", lambda))
}

/// The adjoint of L from that of T without its log-determinant: tril(2T̄L) + P diag(1/Lⱼⱼ) at κ = −1.
fn through_t(t_bar: &Mat<f64>, l: &Mat<f64>, latents: usize) -> Vec<f64> {
    let product = t_bar * l;
    let entry = |i: usize, j: usize| match i.cmp(&j) {
        std::cmp::Ordering::Less => 0.0,
        std::cmp::Ordering::Equal => 2.0 * product[(i, j)] + latents as f64 / l[(i, j)],
        std::cmp::Ordering::Greater => 2.0 * product[(i, j)],
    };
    by_rows(Mat::from_fn(l.nrows(), l.nrows(), entry).as_ref())
}

/// ∂/∂X of a block of rows, through the adjoint of its covariances (M×n, with the scale).
fn input_gradient(problem: &Problem, kuf_bar: &Mat<f64>) -> Outcome<Mat<f64>> {
    let (x, z) = (&problem.data.rows.x, own(problem.model.inducing_points())?);
    let kernel = &problem.model.kernels[0];
    let mut tape = Tape::recording();
    let mut k = Mat::zeros(x.nrows(), z.nrows());
    kernel.evaluate(x.as_ref(), Some(z.as_ref()), k.as_mut(), &mut tape);
    let mut bar = kuf_bar.transpose().to_owned();
    let (mut params, mut sink) = (vec![0.0; kernel.num_params()], Mat::zeros(x.nrows(), x.ncols()));
    let mut sinks = Cotangents { params: &mut params, x: Some(sink.as_mut()), z: None };
    let z = Some(z.as_ref());
    kernel.vjp(x.as_ref(), z, k.as_ref(), bar.as_mut(), &mut tape, &mut sinks);
    Ok(sink)
}

/// What an engine's evaluation gives, by the files' names.
fn compare(
    problem: &Problem,
    model: &Model,
    reference: &Value,
    rule: &Rule,
    report: &mut Report,
) -> Outcome {
    let seen = see(model, &problem.data)?;
    let posterior = own(model.posterior(&Cpu::default(), &problem.data))?;
    let (mu, v) = own(posterior.predict_f(problem.data.rows.x.as_ref()))?;
    let Expectations { ve, alpha, beta } = problem.expectations(&mu, &v);
    let q = model.q.as_ref().ok_or("no q")?;
    for (field, reference) in entries(reference)? {
        let found = match field.as_str() {
            "elbo" => vec![seen.value],
            "kl" => match q.pseudo() {
                Some(_) => vec![lspace_of(problem, model)?.kl()],
                None => vec![prior_kl(model)?],
            },
            "mu" => by_rows(mu.as_ref()),
            // one number for all latent functions where they share their variances
            "v" if reference.get(0).is_some_and(Value::is_number) => {
                report.require(
                    "v of all functions",
                    (0..v.ncols()).all(|j| column(v.as_ref(), j) == column(v.as_ref(), 0)),
                    "they differ",
                );
                column(v.as_ref(), 0).to_vec()
            }
            "v" => by_rows(v.as_ref()),
            "ve" => by_rows(ve.as_ref()),
            "alpha" => by_rows(alpha.as_ref()),
            "beta" => by_rows(beta.as_ref()),
            "adj" => {
                adjoints(problem, model, &seen, reference, rule, report)?;
                continue;
            }
            "kernel_gradients" => {
                for (name, reference) in entries(reference)? {
                    let found = match name.as_str() {
                        "variance" | "lengthscales" => seen.slope(&format!("kernel.{name}"))?,
                        "Z" => seen.slope("inducing.points")?,
                        "X" => by_rows(input_gradient(problem, &seen.kuf_bar()?)?.as_ref()),
                        other => return Err(format!("the unknown gradient {other}")),
                    };
                    rule.close(&format!("{field} {name}"), &found, reference, report)?;
                }
                continue;
            }
            _ => {
                report.fail(field, "an output that the check does not know");
                continue;
            }
        };
        rule.close(field, &found, reference, report)?;
    }
    Ok(())
}

fn adjoints(
    problem: &Problem,
    model: &Model,
    seen: &Seen<'_>,
    reference: &Value,
    rule: &Rule,
    report: &mut Report,
) -> Outcome {
    let q = model.q.as_ref().ok_or("no q")?;
    for (name, reference) in entries(reference)? {
        let field = format!("adj {name}");
        let found = match name.as_str() {
            "Kuu" => by_rows(seen.kuu_bar()?.as_ref()),
            "Kuf" => by_rows(seen.kuf_bar()?.as_ref()),
            "kff" => seen.kff_bar()?,
            "m" => seen.slope("q.mu")?,
            "lam" => seen.slope("q.lambda")?,
            "LS" => seen.slope("q.sqrt")?,
            "L" => seen.slope("q.t_sqrt")?,
            "T" => {
                let mut l = Mat::new();
                own(q.read_t_root(&mut l))?;
                let expected = through_t(&matrix(reference)?, &l, q.latents());
                report.close(&field, &seen.slope("q.t_sqrt")?, &expected);
                continue;
            }
            _ => {
                report.fail(&field, "an output that the check does not know");
                continue;
            }
        };
        rule.close(&field, &found, reference, report)?;
    }
    let _ = problem;
    Ok(())
}

/// The M×M part of a model of pseudo-observations.
fn lspace_of(problem: &Problem, model: &Model) -> Outcome<LSpace> {
    let q = model.q.as_ref().ok_or("no q")?;
    let mut all = LSpace::default();
    let (tilde, m) = (problem.tilde(q.second.value()), q.pseudo_targets());
    let preconditioner = q.pseudo().ok_or("no pseudo-observations")?;
    if q.root.is_some() {
        let mut l = Mat::new();
        own(q.read_t_root(&mut l))?;
        all.relaxed(tilde, l.as_ref(), m, preconditioner);
    } else {
        own(all.likelihood(tilde, m, preconditioner))?;
    }
    Ok(all)
}

/// The files `bounds_*` and `multiclass_robustmax`: all parameterisations at one minibatch.
pub fn bounds(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    let rule = Rule::read(json)?;
    let inputs = get(json, "inputs")?;
    let problem = Problem::read(inputs, report)?;
    let outputs = entries(get(json, "outputs")?)?;
    for (name, reference) in outputs {
        report.case = name.clone();
        compare(&problem, &problem.with(name, inputs)?, reference, &rule, report)?;
    }
    report.case = String::new();
    // Proposition 2: with the right preconditioner L-SVGP and R-SVGP have the same gradients at the optimal
    // T; with the naive one they do not
    if inputs.get("L_opt").is_some() {
        let gradient = |name: &str| -> Outcome<(f64, Vec<f64>)> {
            let mut model = problem.with(name, inputs)?;
            if let Some(root) = model.q.as_mut().and_then(|q| q.root.as_mut()) {
                root.frozen = true;
            }
            let (evaluation, free) = own(model.evaluate_free(&Cpu::default(), &problem.data))?;
            Ok((evaluation.value, free))
        };
        let (value, slopes) = gradient("l_svgp_inv")?;
        for (name, agrees) in [("r_svgp_ns_at_optimum", true), ("r_svgp_naive_at_optimum", false)] {
            let (other, others) = gradient(name)?;
            report.close(&format!("value of {name}"), &[other], &[value]);
            let largest = slopes.iter().fold(1.0_f64, |m, v| m.max(v.abs()));
            let apart = slopes.iter().zip(&others).fold(0.0_f64, |m, (a, b)| m.max((a - b).abs()));
            let holds = if agrees { apart < 1e-8 * largest } else { apart > 1e-3 * largest };
            report.require(&format!("gradients of {name}"), holds, &format!("apart {apart:e}"));
        }
    }
    Ok(())
}

/// The file `kernel_se_ard`.
pub fn kernel_gradients(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    let rule = Rule::read(json)?;
    let (inputs, outputs) = (get(json, "inputs")?, get(json, "outputs")?);
    let known = ["X", "Z", "kernel", "num_data", "scale", "adjoints"];
    check_known(inputs, &known, report)?;
    let (x, z) = (matrix(get(inputs, "X")?)?, matrix(get(inputs, "Z")?)?);
    let (kernel, jitter) = kernel(get(inputs, "kernel")?, x.ncols())?;
    let (n, m, d) = (x.nrows(), z.nrows(), x.ncols());
    let bars = get(inputs, "adjoints")?;
    check_known(bars, &["Kuu", "Kuf", "kff"], report)?;
    let mut tape = Tape::recording();
    let (mut kuu, mut kuf, mut kff) = (Mat::zeros(m, m), Mat::zeros(n, m), vec![0.0; n]);
    kernel.evaluate(z.as_ref(), None, kuu.as_mut(), &mut tape);
    let mut params = vec![0.0; kernel.num_params()];
    let (mut z_bar, mut x_bar) = (Mat::zeros(m, d), Mat::zeros(n, d));
    let mut bar = matrix(get(bars, "Kuu")?)?;
    let mut sinks = Cotangents { params: &mut params, x: Some(z_bar.as_mut()), z: None };
    kernel.vjp(z.as_ref(), None, kuu.as_ref(), bar.as_mut(), &mut tape, &mut sinks);
    let mut tape = Tape::recording();
    kernel.evaluate(x.as_ref(), Some(z.as_ref()), kuf.as_mut(), &mut tape);
    let mut bar = matrix(get(bars, "Kuf")?)?.transpose().to_owned();
    let mut sinks =
        Cotangents { params: &mut params, x: Some(x_bar.as_mut()), z: Some(z_bar.as_mut()) };
    kernel.vjp(x.as_ref(), Some(z.as_ref()), kuf.as_ref(), bar.as_mut(), &mut tape, &mut sinks);
    kernel.diag(x.as_ref(), &mut kff);
    let mut sinks = Cotangents { params: &mut params, x: None, z: None };
    kernel.diag_vjp(x.as_ref(), &numbers(get(bars, "kff")?)?, &mut sinks);
    (0..m).for_each(|i| kuu[(i, i)] += jitter);
    let mut rest = params.as_slice();
    let mut parts = Vec::new();
    for (path, param) in kernel.params() {
        let (own, tail) = rest.split_at(param.len());
        parts.push((path, own.to_vec()));
        rest = tail;
    }
    for (field, reference) in entries(outputs)? {
        match field.as_str() {
            "Kuu" => rule.close(field, &by_rows(kuu.as_ref()), reference, report)?,
            "Kuf" => rule.close(field, &by_rows(kuf.transpose()), reference, report)?,
            "kff" => rule.close(field, &kff, reference, report)?,
            "gradients" => {
                for (name, reference) in entries(reference)? {
                    let found = match name.as_str() {
                        "Z" => by_rows(z_bar.as_ref()),
                        "X" => by_rows(x_bar.as_ref()),
                        other => {
                            let found = parts.iter().find(|(path, _)| path == other);
                            found.ok_or_else(|| format!("no gradient of {other}"))?.1.clone()
                        }
                    };
                    rule.close(&format!("{field} {name}"), &found, reference, report)?;
                }
            }
            _ => report.fail(field, "an output that the check does not know"),
        }
    }
    Ok(())
}

/// The file `exact_gp_identity`: Z = X, λ = σ² and m̃ = y make the bound the evidence.
pub fn exact_identity(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    let rule = Rule::read(json)?;
    let (inputs, outputs) = (get(json, "inputs")?, get(json, "outputs")?);
    check_known(inputs, &["X", "Y", "kernel", "noise_variance"], report)?;
    let (x, y) = (matrix(get(inputs, "X")?)?, matrix(get(inputs, "Y")?)?);
    let noise = number(get(inputs, "noise_variance")?)?;
    let n = x.nrows();
    // the kernel may name a jitter, which the identity is without
    let (kernel, _) = kernel(get(inputs, "kernel")?, x.ncols())?;
    let exact = Model {
        kernels: vec![kernel],
        mean: own(means::by_name("zero", x.ncols(), y.ncols()))?,
        likelihood: likelihood(inputs)?,
        inducing: Vec::new(),
        q: None,
        method: own(find("exact"))?.method,
        jitter: Jitter::Absolute(0.0),
        hidden: Vec::new(),
    };
    let data = own(InMemory::new(x.clone(), y.clone()))?;
    let evidence = own(exact.evaluate(&Cpu::default(), &data))?.value;
    let mut model = Model { inducing: vec![inducing_param(x.as_ref())], ..exact };
    pseudo(&mut model, &y, &vec![noise; n], None, Preconditioner::Inverse)?;
    let all = batch(&data, &(0..n).collect::<Vec<_>>(), 1.0);
    let of_l = model.clone();
    let by_l = see(&of_l, &all)?;
    let largest = |path: &str| -> Outcome<f64> {
        Ok(by_l.slope(path)?.iter().fold(0.0_f64, |m, v| m.max(v.abs())))
    };
    let (m_bar, lambda_bar) = (largest("q.mu")?, largest("q.lambda")?);
    let start = Mat::<f64>::identity(n, n);
    pseudo(&mut model, &y, &vec![noise; n], Some(&start), Preconditioner::Inverse)?;
    let method = Uncollapsed::of(model.method).map_err(|_| "no q")?;
    own(method.settle(&mut model, &SolverOptions::strict()))?;
    let by_r = own(model.evaluate(&Cpu::default(), &all))?.value;
    for (field, reference) in entries(outputs)? {
        let found = match field.as_str() {
            "log_marginal_likelihood" => evidence,
            "elbo_L" => by_l.value,
            "elbo_R" => by_r,
            "max_abs_m_adjoint" => m_bar,
            "max_abs_lam_adjoint" => lambda_bar,
            _ => {
                report.fail(field, "an output that the check does not know");
                continue;
            }
        };
        rule.close(field, &[found], reference, report)?;
    }
    Ok(())
}

/// Everything of R-SVGP at a block of rows by only [`LSpace`], with whatever probes it has.
fn by_hand(
    problem: &Problem,
    lspace: &mut LSpace,
    case: &Value,
    rule: &Rule,
    report: &mut Report,
) -> Outcome {
    let (n, m) = (problem.kuf.ncols(), problem.kuf.nrows());
    let e = lspace.residual().ok_or("no E")?.to_owned();
    let mut phi = Mat::new();
    lspace.root().features(problem.kuf.as_ref(), &mut phi);
    let mu = phi.transpose() * lspace.mean();
    let unexplained = &phi - &e * &phi;
    let v: Vec<f64> = (0..n)
        .map(|i| problem.kff[i] - (0..m).map(|j| phi[(j, i)] * unexplained[(j, i)]).sum::<f64>())
        .collect();
    let latents = mu.ncols();
    let v_all = Mat::from_fn(n, latents, |i, _| v[i]);
    let Expectations { ve, alpha, beta } = problem.expectations(&mu, &v_all);
    let beta_sum: Vec<f64> = (0..n).map(|i| (0..latents).map(|p| beta[(i, p)]).sum()).collect();
    let weighted = |a: &Mat<f64>| Mat::from_fn(m, n, |i, j| a[(i, j)] * beta_sum[j]);
    let phi_alpha = &phi * &alpha;
    let gram = weighted(&phi) * phi.transpose();
    let u_bar = lspace.mean() * alpha.transpose() - weighted(&unexplained) * faer::Scale(2.0);
    let mut kuf_bar = Mat::new();
    lspace.root().times(u_bar.as_ref(), &mut kuf_bar);
    let exact = case.get("adj").and_then(|adj| adj.get("L")).is_some();
    let mut kuu = Mat::new();
    let (mut mean, mut lambda) = (vec![0.0; m * latents], vec![0.0; m]);
    let mut packed = vec![0.0; m * (m + 1) / 2];
    let out = Adjoints {
        kuu: &mut kuu,
        mean: &mut mean,
        lambda: &mut lambda,
        root: exact.then_some(packed.as_mut_slice()),
    };
    lspace.pull(-1.0, phi_alpha.as_ref(), gram.as_ref(), out);
    let l = lspace.lower().ok_or("no L")?.to_owned();
    let start = |j: usize| j * (2 * m + 1 - j) / 2;
    let root = Mat::from_fn(m, m, |i, j| if i >= j { packed[start(j) + i - j] } else { 0.0 });
    let ve_sum: f64 = by_rows(ve.as_ref()).iter().sum();
    for (field, reference) in entries(case)? {
        let found = match field.as_str() {
            "elbo" => vec![problem.scale * ve_sum - lspace.kl()],
            "kl" => vec![lspace.kl()],
            "mu" => by_rows(mu.as_ref()),
            "v" => v.clone(),
            "ve" => by_rows(ve.as_ref()),
            "alpha" => by_rows(alpha.as_ref()),
            "beta" => by_rows(beta.as_ref()),
            "adj" => {
                for (name, reference) in entries(reference)? {
                    let found = match name.as_str() {
                        "Kuu" => by_rows(kuu.as_ref()),
                        "Kuf" => by_rows(kuf_bar.as_ref()),
                        "kff" => beta_sum.clone(),
                        "m" => by_rows(MatRef::from_column_major_slice(&mean, m, latents)),
                        "lam" => lambda.clone(),
                        "L" => by_rows(root.as_ref()),
                        "T" => {
                            let expected = through_t(&matrix(reference)?, &l, latents);
                            report.close("adj T", &by_rows(root.as_ref()), &expected);
                            continue;
                        }
                        other => return Err(format!("the unknown adjoint {other}")),
                    };
                    rule.close(&format!("adj {name}"), &found, reference, report)?;
                }
                continue;
            }
            _ => {
                report.fail(field, "an output that the check does not know");
                continue;
            }
        };
        rule.close(field, &found, reference, report)?;
    }
    Ok(())
}

/// The file `hutchinson`: traces from given probes, and from √M·I, which makes them exact.
pub fn hutchinson(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    let rule = Rule::read(json)?;
    let inputs = get(json, "inputs")?;
    let problem = Problem::read(inputs, report)?;
    let (mean, l) = (matrix(get(inputs, "m")?)?, matrix(get(inputs, "L")?)?);
    let lambda = numbers(get(inputs, "lam")?)?;
    let given = matrix(get(inputs, "probes")?)?;
    let m = mean.nrows();
    let complete = Mat::<f64>::identity(m, m) * faer::Scale((m as f64).sqrt());
    type Case<'a> = (&'a str, Estimate, &'a Mat<f64>);
    let run = |(case, estimate, probes): Case<'_>, reference: &Value, report: &mut Report| {
        report.case = case.into();
        let mut lspace = LSpace::default();
        lspace.set_probes(estimate, |own| *own = probes.clone());
        let tilde = problem.tilde(&lambda);
        lspace.relaxed(tilde, l.as_ref(), mean.as_ref(), Preconditioner::Inverse);
        by_hand(&problem, &mut lspace, reference, &rule, report)
    };
    let outputs = get(json, "outputs")?;
    for (case, reference) in entries(outputs)? {
        let (estimate, probes) = match case.as_str() {
            "plain" => (Estimate::Plain, &given),
            "lspace" => (Estimate::LSpace, &given),
            "exact" => {
                run((case, Estimate::LSpace, &Mat::new()), reference, report)?;
                let mut without = reference.clone();
                // the estimates have no gradient in L
                if let Some(adj) = without.get_mut("adj").and_then(Value::as_object_mut) {
                    adj.remove("L");
                    adj.remove("T");
                }
                run(("exact by plain probes", Estimate::Plain, &complete), &without, report)?;
                run(("exact by probes in L-space", Estimate::LSpace, &complete), &without, report)?;
                continue;
            }
            other => return Err(format!("the unknown case {other}")),
        };
        run((case, estimate, probes), reference, report)?;
    }
    Ok(())
}

/// KL[N(m_p, S) ‖ N(0, K)], summed over the columns of m.
fn divergence(mean: &Mat<f64>, s: &Mat<f64>, k: &Mat<f64>) -> Outcome<f64> {
    let factor =
        |a: &Mat<f64>| own(Cholesky::new(a.as_ref(), Jitter::Absolute(0.0), "a covariance"));
    let (of_s, of_k) = (factor(s)?, factor(k)?);
    let trace = |a: &Mat<f64>| (0..a.nrows()).map(|i| a[(i, i)]).sum::<f64>();
    let quadratic = trace(&(mean.transpose() * of_k.solve(mean.as_ref())));
    let each = trace(&of_k.solve(s.as_ref())) - k.nrows() as f64 + of_k.log_det() - of_s.log_det();
    Ok(0.5 * (quadratic + mean.ncols() as f64 * each))
}

/// The file `implied_covariance`: q(u) of both, and the bound on its KL divergence.
pub fn implied(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    let rule = Rule::read(json)?;
    let inputs = get(json, "inputs")?;
    let problem = Problem::read(inputs, report)?;
    let r = problem.with("r_svgp_ns", inputs)?;
    let l = problem.with("l_svgp_inv", inputs)?;
    let engine = Cpu::default();
    let moments = |model: &Model| -> Outcome<(Mat<f64>, Mat<f64>)> {
        let posterior = own(model.posterior(&engine, &problem.data))?;
        let (mean, covariances) = posterior.q_u().ok_or("no q(u)")?;
        Ok((mean, covariances[0].clone()))
    };
    let ((mean_r, s_r), (mean_l, s_l)) = (moments(&r)?, moments(&l)?);
    let mut prior = problem.kuu.clone();
    (0..prior.nrows()).for_each(|i| prior[(i, i)] += problem.jitter);
    let lspace = lspace_of(&problem, &r)?;
    let e = lspace.residual().ok_or("no E")?;
    let inner =
        Mat::from_fn(e.nrows(), e.nrows(), |i, j| if i == j { 1.0 } else { 0.0 } - e[(i, j)]);
    let c = sparsegp::engine::Basis::pull_through(lspace.root(), inner);
    let exact = divergence(&mean_r, &s_r, &prior)?;
    report.require("KL bound", lspace.kl() >= exact, "the bound is below the divergence");
    for (field, reference) in entries(get(json, "outputs")?)? {
        let found = match field.as_str() {
            "C" => by_rows(c.as_ref()),
            "S_R" => by_rows(s_r.as_ref()),
            "S_L" => by_rows(s_l.as_ref()),
            "mean_R" => by_rows(mean_r.as_ref()),
            "mean_L" => by_rows(mean_l.as_ref()),
            "kl_true_R" => vec![exact],
            "kl_bound_R" => vec![lspace.kl()],
            _ => {
                report.fail(field, "an output that the check does not know");
                continue;
            }
        };
        rule.close(field, &found, reference, report)?;
    }
    Ok(())
}

/// The file `ordering`: R is below L at equal mean weights, not at an equal m̃.
pub fn ordering(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    let rule = Rule::read(json)?;
    let inputs = get(json, "inputs")?;
    let problem = Problem::read(inputs, report)?;
    let bound = |name: &str, mean: Option<&Mat<f64>>| -> Outcome<f64> {
        let mut model = problem.with(name, inputs)?;
        if let Some(mean) = mean {
            let columns: Vec<f64> =
                (0..mean.ncols()).flat_map(|j| column(mean.as_ref(), j).to_vec()).collect();
            own(model.set("q.mu", &columns))?;
        }
        Ok(own(model.evaluate(&Cpu::default(), &problem.data))?.value)
    };
    let a = lspace_of(&problem, &problem.with("r_svgp_ns", inputs)?)?.weights();
    let r = bound("r_svgp_ns", None)?;
    let same_mean = bound("l_svgp_identity", Some(&a))?;
    report.require("order", r <= same_mean, "R is above L at equal weights");
    for (field, reference) in entries(get(json, "outputs")?)? {
        let found = match field.as_str() {
            "elbo_R_ns" => vec![r],
            "elbo_L_inv_same_m" => vec![bound("l_svgp_inv", None)?],
            "elbo_L_identity_same_mean" => vec![same_mean],
            "elbo_R_identity_same_mean" => vec![bound("r_svgp_identity", Some(&a))?],
            "a" => by_rows(a.as_ref()),
            _ => {
                report.fail(field, "an output that the check does not know");
                continue;
            }
        };
        rule.close(field, &found, reference, report)?;
    }
    Ok(())
}

/// Residuals of unit steps from `l`, as many as the reference has; those above rounding are compared.
fn residuals(
    k: &Mat<f64>,
    mut l: Mat<f64>,
    field: &str,
    reference: &Value,
    rule: &Rule,
    report: &mut Report,
) -> Outcome {
    let reference = numbers(reference)?;
    let mut inversion = Inversion::default();
    let (mut own, mut theirs) = (Vec::new(), Vec::new());
    for r in reference {
        let residual = inversion.look(k.as_ref(), l.as_ref());
        if r > 1e-8 {
            own.push(residual);
            theirs.push(r);
        }
        l = &l - inversion.natural_gradient(l.as_ref());
    }
    rule.close(field, &own, &json!(theirs), report)
}

/// The file `natural_gradient`.
pub fn natural_gradient(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    let rule = Rule::read(json)?;
    let inputs = get(json, "inputs")?;
    check_known(inputs, &["Ktilde", "L", "L_bad"], report)?;
    let k = matrix(get(inputs, "Ktilde")?)?;
    let m = k.nrows();
    let factor = own(Cholesky::new(k.as_ref(), Jitter::Absolute(0.0), "K̃"))?;
    let log_det = factor.log_det();
    let step = |l: &Mat<f64>, rate: f64| -> Mat<f64> {
        let mut inversion = Inversion::default();
        inversion.look(k.as_ref(), l.as_ref());
        l - inversion.natural_gradient(l.as_ref()) * faer::Scale(rate)
    };
    let look = |l: &Mat<f64>| -> (f64, f64) {
        let mut inversion = Inversion::default();
        let residual = inversion.look(k.as_ref(), l.as_ref());
        (residual, inversion.divergence(l.as_ref(), log_det))
    };
    let scaled = |scale: f64| Mat::<f64>::identity(m, m) * faer::Scale(scale);
    let l = matrix(get(inputs, "L")?)?;
    let mut seen = Inversion::default();
    let residual = seen.look(k.as_ref(), l.as_ref());
    for (field, reference) in entries(get(json, "outputs")?)? {
        let found = match field.as_str() {
            "kl" => vec![seen.divergence(l.as_ref(), log_det)],
            "gradient" => {
                // tril(K̃L) − diag(1/Lⱼⱼ)
                let product = seen.product();
                let entry = |i: usize, j: usize| match i.cmp(&j) {
                    std::cmp::Ordering::Less => 0.0,
                    std::cmp::Ordering::Equal => product[(i, j)] - 1.0 / l[(i, j)],
                    std::cmp::Ordering::Greater => product[(i, j)],
                };
                by_rows(Mat::from_fn(m, m, entry).as_ref())
            }
            "natural_gradient" => by_rows(seen.natural_gradient(l.as_ref()).as_ref()),
            "residual" => vec![residual],
            "residual_after_1" => vec![look(&step(&l, 1.0)).0],
            "newton_schulz_T" => {
                // 2T − TK̃T = L(I − E)Lᵀ
                let inner = Mat::<f64>::identity(m, m) - seen.residual();
                by_rows((&l * inner * l.transpose()).as_ref())
            }
            "L_opt" => {
                let mut own_l = l.clone();
                let solved = seen.solve(k.as_ref(), &mut own_l, &SolverOptions::strict(), None);
                own(solved)?;
                seen.look(k.as_ref(), l.as_ref());
                by_rows(own_l.as_ref())
            }
            "inf_norm" => vec![infinity_norm(k.as_ref())],
            "residuals_gamma1_from_1em3_identity" => {
                residuals(&k, scaled(1e-3), field, reference, &rule, report)?;
                continue;
            }
            "residuals_gamma1_from_inf_norm_init" => {
                let mut start = Mat::new();
                scaled_identity(k.as_ref(), &mut start);
                residuals(&k, start, field, reference, &rule, report)?;
                continue;
            }
            "bad" => {
                bad_start(&k, &matrix(get(inputs, "L_bad")?)?, log_det, reference, &rule, report)?;
                continue;
            }
            name => match name.strip_prefix("step_gamma_").map(|rate| rate.replace('p', ".")) {
                Some(rate) => {
                    let rate = rate.parse::<f64>().map_err(|e| e.to_string())?;
                    by_rows(step(&l, rate).as_ref())
                }
                None => {
                    report.fail(field, "an output that the check does not know");
                    continue;
                }
            },
        };
        rule.close(field, &found, reference, report)?;
    }
    Ok(())
}

/// The ill-conditioned start: one adaptive step and one along the best line.
fn bad_start(
    k: &Mat<f64>,
    l: &Mat<f64>,
    log_det: f64,
    reference: &Value,
    rule: &Rule,
    report: &mut Report,
) -> Outcome {
    let mut inversion = Inversion::default();
    inversion.look(k.as_ref(), l.as_ref());
    let before = inversion.divergence(l.as_ref(), log_det);
    let largest = inversion.largest_eigenvalue();
    let h = Mat::<f64>::identity(k.nrows(), k.nrows()) + inversion.residual();
    let eigenvalues =
        h.self_adjoint_eigenvalues(faer::Side::Lower).map_err(|e| format!("{e:?}"))?;
    let direction = inversion.natural_gradient(l.as_ref());
    let one = |schedule| -> Outcome<(Mat<f64>, Inversion)> {
        let mut inversion = Inversion::default();
        let mut moved = l.clone();
        let options = SolverOptions {
            schedule,
            tolerance: 1e-300,
            most: 1,
            stall: false,
            restart_above: f64::INFINITY,
            ..SolverOptions::default()
        };
        own(inversion.solve(k.as_ref(), &mut moved, &options, None))?;
        Ok((moved, inversion))
    };
    let (adaptive, seen) = one(Schedule::Adaptive)?;
    let (best, searched) = one(Schedule::LineSearch)?;
    for (field, reference) in entries(reference)? {
        let found = match field.as_str() {
            "kl" => vec![before],
            "lambda_power_8_from_ones" => vec![largest],
            "lambda_max_H" => vec![eigenvalues.iter().copied().fold(f64::MIN, f64::max)],
            "step_gamma_inv_power" => by_rows(adaptive.as_ref()),
            "kl_after_inv_power" => vec![seen.divergence(adaptive.as_ref(), log_det)],
            "exact_gamma" => vec![(l[(0, 0)] - best[(0, 0)]) / direction[(0, 0)]],
            "kl_after" => vec![searched.divergence(best.as_ref(), log_det)],
            "min_diag_after" => {
                vec![(0..k.nrows()).map(|j| best[(j, j)]).fold(f64::INFINITY, f64::min)]
            }
            "residual_after" => vec![searched.frobenius() / (k.nrows() as f64).sqrt()],
            _ => {
                report.fail(field, "an output that the check does not know");
                continue;
            }
        };
        rule.close(field, &found, reference, report)?;
    }
    Ok(())
}

/// The file `schedules`.
pub fn schedules(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    let rule = Rule::read(json)?;
    let inputs = get(json, "inputs")?;
    let known = ["init", "end", "n", "losses", "factor", "patience", "min_lr", "lr0"];
    check_known(inputs, &known, report)?;
    let of = |key: &str| -> Outcome<f64> { number(get(inputs, key)?) };
    for (field, reference) in entries(get(json, "outputs")?)? {
        let found: Vec<f64> = match field.as_str() {
            "gamma" => {
                let steps = of("n")? as usize;
                let schedule = Schedule::LogLinear { first: of("init")?, last: of("end")?, steps };
                let count = numbers(reference)?.len();
                (0..count).filter_map(|i| schedule.rate(i)).collect()
            }
            "lr_after_each_loss" => {
                let rule = PlateauRate {
                    factor: of("factor")?,
                    patience: of("patience")? as usize,
                    least: of("min_lr")?,
                };
                let mut state = rule.start(of("lr0")?);
                let losses = numbers(get(inputs, "losses")?)?;
                losses.iter().map(|loss| state.see(&rule, *loss)).collect()
            }
            _ => {
                report.fail(field, "an output that the check does not know");
                continue;
            }
        };
        rule.close(field, &found, reference, report)?;
    }
    Ok(())
}

/// The file `stopping_criteria`: slacks and gaps of R-SVGP with the identity preconditioner.
pub fn stopping(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    let rule = Rule::read(json)?;
    let inputs = get(json, "inputs")?;
    let problem = Problem::read(inputs, report)?;
    let noise = number(get(inputs, "noise_variance")?)?;
    let (l, lambda) = (matrix(get(inputs, "L")?)?, numbers(get(inputs, "lam")?)?);
    let evaluate = |name: &str| -> Outcome<(f64, LSpace, Vec<f64>)> {
        let model = problem.with(name, inputs)?;
        let value = own(model.evaluate(&Cpu::default(), &problem.data))?.value;
        let posterior = own(model.posterior(&Cpu::default(), &problem.data))?;
        let v = own(posterior.predict_f(problem.data.rows.x.as_ref()))?.1;
        Ok((value, lspace_of(&problem, &model)?, column(v.as_ref(), 0).to_vec()))
    };
    let (r, relaxed, upper) = evaluate("r_svgp_identity")?;
    let (exact_bound, of_l, exact) = evaluate("l_svgp_identity")?;
    let latents = relaxed.mean().ncols();
    let smallest = lambda.iter().copied().fold(f64::INFINITY, f64::min);
    let mut inversion = Inversion::default();
    let residual = inversion.look(relaxed.tilde(), l.as_ref());
    let e = inversion.residual().to_owned();
    let eigenvalues =
        e.self_adjoint_eigenvalues(faer::Side::Lower).map_err(|e| format!("{e:?}"))?;
    let spectral = eigenvalues.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    let (mut features, mut work, mut slack) = (Mat::new(), Mat::new(), Vec::new());
    let k = problem.kuf.transpose().to_owned();
    let memory = (&mut features, &mut work);
    let product = inversion.product();
    variance_slacks(k.as_ref(), l.as_ref(), product, smallest, memory.0, memory.1, &mut slack);
    let phi = &k * &l;
    let spectral_slack = variance_gaps(phi.as_ref(), e.as_ref(), spectral);
    let frobenius = inversion.frobenius();
    let n = exact.len() as f64;
    let of_variances: f64 =
        upper.iter().zip(&exact).map(|(u, v)| (u - v) / (2.0 * noise)).sum::<f64>()
            * problem.scale
            * latents as f64;
    for i in 0..exact.len() {
        report.require(
            "order of variances",
            upper[i] - slack[i] <= exact[i] + 1e-12
                && exact[i] <= upper[i] + 1e-12
                && upper[i] - exact[i] <= spectral_slack[i] + 1e-12,
            &format!("row {i}"),
        );
    }
    report.close("the gap's parts", &[of_variances + relaxed.kl() - of_l.kl()], &[exact_bound - r]);
    for (field, reference) in entries(get(json, "outputs")?)? {
        let found = match field.as_str() {
            "residual" => vec![residual],
            "E" => by_rows(e.as_ref()),
            "E_fro" => vec![frobenius],
            "E_spec" => vec![spectral],
            "v_upper" => upper.clone(),
            "v_exact" => exact.clone(),
            "v_lower" => upper.iter().zip(&slack).map(|(u, s)| u - s).collect(),
            "s" => vec![smallest],
            "slack" => slack.clone(),
            "mean_slack_over_2s2" => vec![slack.iter().sum::<f64>() / (2.0 * noise * n)],
            "slack_sum" => vec![slack.iter().sum()],
            "spectral_slack" => spectral_slack.clone(),
            "elbo_L" => vec![exact_bound],
            "elbo_R" => vec![r],
            "gap_variance_part" => vec![of_variances],
            "gap_kl_part" => vec![relaxed.kl() - of_l.kl()],
            "kl_gap_bound" => {
                let bound = kl_gap(frobenius, spectral, latents);
                report.require("KL gap", relaxed.kl() - of_l.kl() <= bound, "above its bound");
                vec![bound]
            }
            _ => {
                report.fail(field, "an output that the check does not know");
                continue;
            }
        };
        rule.close(field, &found, reference, report)?;
    }
    Ok(())
}

/// The file `w_type`: whitening by the auxiliary factor.
pub fn whitened(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    let rule = Rule::read(json)?;
    let inputs = get(json, "inputs")?;
    let problem = Problem::read(inputs, report)?;
    let mean = matrix(get(inputs, "m")?)?;
    let roots = items(get(inputs, "LS")?)?.iter().map(matrix).collect::<Outcome<Vec<_>>>()?;
    let mut kuu = problem.kuu.clone();
    (0..kuu.nrows()).for_each(|i| kuu[(i, i)] += problem.jitter);
    let make = |l: &str, refined: bool, log_det: LogDet| -> Outcome<WhitenedByFactor> {
        let l = matrix(get(inputs, l)?)?;
        own(WhitenedByFactor::new(
            kuu.as_ref(),
            l.as_ref(),
            mean.as_ref(),
            &roots,
            refined,
            log_det,
        ))
    };
    for (case, reference) in entries(get(json, "outputs")?)? {
        report.case.clone_from(case);
        let bound = match case.as_str() {
            "exact_refine_false" => make("L", false, LogDet::Exact)?,
            "exact_refine_true" => make("L", true, LogDet::Exact)?,
            "series_refine_false" => make("L", false, LogDet::Series)?,
            "series_refine_true" => make("L", true, LogDet::Series)?,
            "at_optimum_series_refine_true" => make("L_opt", true, LogDet::Series)?,
            "E" => {
                let e = make("L", false, LogDet::Exact)?.residual().to_owned();
                rule.close(case, &by_rows(e.as_ref()), reference, report)?;
                continue;
            }
            "kl_true_implied" => {
                let exact =
                    implied_divergence(&make("L", false, LogDet::Exact)?, &kuu, &mean, &roots)?;
                rule.close(case, &[exact], reference, report)?;
                for log_det in [LogDet::Exact, LogDet::Series] {
                    let bound = make("L", false, log_det)?;
                    let holds = bound.kl() >= exact || !bound.is_bound();
                    report.require("KL bound", holds, "the bound is below the divergence");
                }
                continue;
            }
            other => return Err(format!("the unknown case {other}")),
        };
        let (mu, v) = bound.marginals(problem.kuf.as_ref(), &problem.kff);
        let Expectations { ve, alpha, beta } = problem.expectations(&mu, &v);
        let bars = bound.pull(-1.0, problem.kuf.as_ref(), alpha.as_ref(), beta.as_ref());
        let value = problem.scale * by_rows(ve.as_ref()).iter().sum::<f64>() - bound.kl();
        for (field, reference) in entries(reference)? {
            let found = match field.as_str() {
                "elbo" => vec![value],
                "kl" => vec![bound.kl()],
                "mu" => by_rows(mu.as_ref()),
                "v" => by_rows(v.as_ref()),
                "ve" => by_rows(ve.as_ref()),
                "alpha" => by_rows(alpha.as_ref()),
                "beta" => by_rows(beta.as_ref()),
                "adj" => {
                    for (name, reference) in entries(reference)? {
                        let found = match name.as_str() {
                            "Kuu" => by_rows(bars.kuu.as_ref()),
                            "Kuf" => by_rows(bars.kuf.as_ref()),
                            "kff" => (0..v.nrows())
                                .map(|i| (0..v.ncols()).map(|p| beta[(i, p)]).sum())
                                .collect(),
                            "m" => by_rows(bars.mean.as_ref()),
                            "LS" => bars.roots.iter().flat_map(|r| by_rows(r.as_ref())).collect(),
                            "L" => by_rows(bars.factor.as_ref()),
                            other => return Err(format!("the unknown adjoint {other}")),
                        };
                        rule.close(&format!("adj {name}"), &found, reference, report)?;
                    }
                    continue;
                }
                _ => {
                    report.fail(field, "an output that the check does not know");
                    continue;
                }
            };
            rule.close(field, &found, reference, report)?;
        }
    }
    Ok(())
}

/// The KL divergence of the q that has the bound's variances: S = Kuu L B Lᵀ Kuu, B = S̃ + H + H⁻¹ − 2I.
fn implied_divergence(
    bound: &WhitenedByFactor,
    kuu: &Mat<f64>,
    mean: &Mat<f64>,
    roots: &[Mat<f64>],
) -> Outcome<f64> {
    let m = kuu.nrows();
    let h = Mat::<f64>::identity(m, m) + bound.residual();
    let inverse = own(Cholesky::new(h.as_ref(), Jitter::Absolute(0.0), "H"))?.inverse();
    let kl = kuu * bound.root();
    let mut sum = 0.0;
    for (p, root) in roots.iter().enumerate() {
        let b =
            root * root.transpose() + &h + &inverse - Mat::<f64>::identity(m, m) * faer::Scale(2.0);
        let own_mean = &kl * mean.as_ref().subcols(p, 1);
        sum += divergence(&own_mean, &(&kl * b * kl.transpose()), kuu)?;
    }
    Ok(sum)
}

/// The file `index`: what the family is.
pub fn index(json: &Value, folder: &Path, report: &mut Report) -> Outcome {
    support::index("inverse_free", json, folder, report)
}

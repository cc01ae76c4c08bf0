//! L-SVGP and R-SVGP of the authors' own program, and a training of both that must go the same way.

use crate::batch::Batch;
use crate::gpflow;
use crate::inverse_free::pseudo;
use crate::problem::gradient_by_path;
use crate::support::{
    Outcome, Report, by_rows, check_known as known_entries, entries, get, matrix, number, numbers,
    own, text,
};
use crate::trained::{Problem, check_known};
use crate::uncollapsed::batch;
use serde_json::Value;
use sparsegp::data::InMemory;
use sparsegp::engine::Cpu;
use sparsegp::inverse_free::{Inversion, Preconditioner, Schedule, SolverOptions};
use sparsegp::kernels::{Inputs, Tape, parse};
use sparsegp::likelihoods::Gaussian;
use sparsegp::linalg::{Jitter, Mat, column};
use sparsegp::means;
use sparsegp::methods::Uncollapsed;
use sparsegp::model::{Model, inducing_param};
use sparsegp::optim::{Adam, AdamOptions, Objective, Optimiser};
use std::path::Path;

const INPUTS: &[&str] = &[
    "kernel",
    "likelihood",
    "num_data",
    "X",
    "Y",
    "Z",
    "q_mu",
    "S_tilde_diag",
    "T_sqrt",
    "Xnew",
    "minibatch_indices",
];

/// Model and rows of a file.
struct Case {
    problem: Problem,
    mean: Mat<f64>,
    lambda: Vec<f64>,
    l: Mat<f64>,
    x: Mat<f64>,
    part: Batch,
}

impl Case {
    fn read(inputs: &Value, jitter: f64) -> Outcome<Self> {
        check_known(inputs, INPUTS)?;
        // q is read here
        let mut without = inputs.clone();
        let mean = matrix(get(inputs, "q_mu")?)?;
        without.as_object_mut().ok_or("no object")?.remove("q_mu");
        let problem = Problem::read(&without, jitter, true)?;
        Ok(Self {
            part: problem.minibatch(inputs)?,
            problem,
            mean,
            lambda: numbers(get(inputs, "S_tilde_diag")?)?,
            l: matrix(get(inputs, "T_sqrt")?)?,
            x: matrix(get(inputs, "Xnew")?)?,
        })
    }

    fn model(&self, mean: &Mat<f64>, l: Option<&Mat<f64>>, how: Preconditioner) -> Outcome<Model> {
        let mut model = self.problem.model.clone();
        pseudo(&mut model, mean, &self.lambda, l, how)?;
        Ok(model)
    }

    fn bound(&self, model: &Model) -> Outcome<f64> {
        Ok(own(model.evaluate(&Cpu::default(), &self.problem.data))?.value)
    }

    /// The bound with this preconditioner at this L.
    fn bound_at(&self, name: &str, l: &Mat<f64>) -> Outcome<f64> {
        let (mean, how) = self.weights(name, l)?;
        self.bound(&self.model(&mean, Some(l), how)?)
    }

    /// m̃ and preconditioner for one of the program's. Its `T_sqrt` has the weights Lᵀm̃, which for us is
    /// another m̃ without a preconditioner.
    fn weights(&self, name: &str, l: &Mat<f64>) -> Outcome<(Mat<f64>, Preconditioner)> {
        Ok(match name {
            "preconditioner_identity" => (self.mean.clone(), Preconditioner::Identity),
            "preconditioner_T_sqrt" => (l.transpose() * &self.mean, Preconditioner::Identity),
            "preconditioner_T" | "preconditioner_inv" => {
                (self.mean.clone(), Preconditioner::Inverse)
            }
            other => return Err(format!("the unknown preconditioner {other}")),
        })
    }
}

/// Kuu + Λ.
fn tilde(model: &Model, lambda: &[f64]) -> Outcome<Mat<f64>> {
    let z = own(model.inducing_points())?;
    let mut k = Mat::zeros(z.nrows(), z.nrows());
    model.kernels[0].evaluate(z.as_ref(), None, k.as_mut(), &mut Tape::off());
    lambda.iter().enumerate().for_each(|(i, v)| k[(i, i)] += v);
    Ok(k)
}

/// The files `relaxed_svgp_*`.
pub fn check(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    let inputs = get(json, "inputs")?;
    let case = Case::read(inputs, number(get(json, "jitter")?)?)?;
    for (name, reference) in entries(get(json, "outputs")?)? {
        match name.as_str() {
            "lsvgp" | "rsvgp" => {
                for (how, reference) in entries(reference)? {
                    report.case = format!("{name} {how}");
                    one(&case, name == "rsvgp", how, reference, report)?;
                }
            }
            "rsvgp_optimal_T" => {
                report.case.clone_from(name);
                optimum(&case, reference, report)?;
            }
            "T_natural_gradient" => {
                for (how, reference) in entries(reference)? {
                    report.case = format!("{name} {how}");
                    steps(&case, how, reference, report)?;
                }
            }
            "K_tilde" => {
                let k = tilde(&case.problem.model, &case.lambda)?;
                report.close(name, &by_rows(k.as_ref()), &numbers(reference)?);
            }
            _ => report.fail(name, "an output that the check does not know"),
        }
    }
    Ok(())
}

/// A gradient by paths.
type ByPath = Vec<(String, Vec<f64>)>;

/// The gradient by the program's names: m̃, λ and L are `q_mu`, `q_sqrt` and `q_T_sqrt`.
fn gradient(case: &Case, model: &Model, how: &str, data: &Batch) -> Outcome<(f64, ByPath)> {
    let evaluation = own(model.evaluate(&Cpu::default(), data))?;
    let mut all = gradient_by_path(model, &evaluation.gradient);
    let m = case.lambda.len();
    let of = |all: &[(String, Vec<f64>)], path: &str| {
        all.iter().position(|(p, _)| p == path).ok_or_else(|| format!("no gradient of {path}"))
    };
    if how == "preconditioner_T_sqrt" {
        // a = Lᵀm̃: m̃ gets Lā, and L gets m̃āᵀ beside its own
        let at = of(&all, "q.mu")?;
        let bar = Mat::from_fn(m, case.mean.ncols(), |i, j| all[at].1[i * case.mean.ncols() + j]);
        all[at].1 = by_rows((&case.l * &bar).as_ref());
        let more = &case.mean * bar.transpose();
        let root = of(&all, "q.t_sqrt")?;
        for i in 0..m {
            (0..=i).for_each(|j| all[root].1[i * m + j] += more[(i, j)]);
        }
    }
    for (path, _) in &mut all {
        *path = match path.as_str() {
            "q.lambda" => "q.sqrt".into(),
            "q.t_sqrt" => "q_T_sqrt".into(),
            other => other.into(),
        };
    }
    Ok((evaluation.value, all))
}

fn one(case: &Case, relaxed: bool, how: &str, reference: &Value, report: &mut Report) -> Outcome {
    let (mean, preconditioner) = case.weights(how, &case.l)?;
    let model = case.model(&mean, relaxed.then_some(&case.l), preconditioner)?;
    let posterior = own(model.posterior(&Cpu::default(), &case.problem.data))?;
    let (value, slopes) = gradient(case, &model, how, &case.problem.data)?;
    for (field, reference) in entries(reference)? {
        let found = match field.as_str() {
            "elbo" => vec![value],
            "prior_kl" => {
                // the bound less the expectations, at the marginals of the rows
                let (mu, v) = own(posterior.predict_f(case.problem.data.rows.x.as_ref()))?;
                vec![case.problem.expectation(&mu, &v) - value]
            }
            "predict_f_mean" | "predict_f_var" | "predict_f_full_cov" => {
                let at = serde_json::json!({ "Xnew": rows(&case.x) });
                gpflow::prediction(field, &posterior, &at)?.ok_or("no prediction")?
            }
            "grad_elbo" => {
                gpflow::gradient(field, slopes.clone(), reference, report)?;
                continue;
            }
            "elbo_minibatch" => vec![gradient(case, &model, how, &case.part)?.0],
            "grad_elbo_minibatch" => {
                let slopes = gradient(case, &model, how, &case.part)?.1;
                gpflow::gradient(field, slopes, reference, report)?;
                continue;
            }
            _ => {
                report.fail(field, "an output that the check does not know");
                continue;
            }
        };
        report.close(field, &found, &numbers(reference)?);
    }
    Ok(())
}

fn rows(a: &Mat<f64>) -> Vec<Vec<f64>> {
    (0..a.nrows()).map(|i| (0..a.ncols()).map(|j| a[(i, j)]).collect()).collect()
}

/// The bounds at T = K̃⁻¹.
fn optimum(case: &Case, reference: &Value, report: &mut Report) -> Outcome {
    let k = tilde(&case.problem.model, &case.lambda)?;
    let mut l = Mat::new();
    own(Inversion::default().solve(k.as_ref(), &mut l, &SolverOptions::strict(), None))?;
    for (field, reference) in entries(reference)? {
        let found = match field.as_str() {
            "T_sqrt" => by_rows(l.as_ref()),
            name => match name.strip_prefix("elbo_") {
                Some(how) => vec![case.bound_at(how, &l)?],
                None => {
                    report.fail(field, "an output that the check does not know");
                    continue;
                }
            },
        };
        report.close(field, &found, &numbers(reference)?);
    }
    Ok(())
}

/// L after natural-gradient steps, and the bound there without a preconditioner.
fn steps(case: &Case, how: &str, reference: &Value, report: &mut Report) -> Outcome {
    let count = |word: &str| match word {
        "one_step" => Ok(1),
        "five_steps" => Ok(5),
        other => Err(format!("the unknown number of steps {other}")),
    };
    let parse = |text: &str| text.parse::<f64>().map_err(|e| format!("{text}: {e}"));
    let (schedule, most) = if let Some(rest) = how.strip_prefix("gamma_") {
        let (rate, steps) = rest.split_once('_').ok_or("no number of steps")?;
        (Schedule::Constant(parse(rate)?), count(steps)?)
    } else if let Some(rest) = how.strip_prefix("loglinear_") {
        let mut parts = rest.splitn(4, '_');
        let mut next = || parts.next().ok_or("a schedule without its numbers");
        let (first, _, last, steps) = (parse(next()?)?, next()?, parse(next()?)?, next()?);
        let steps = count(steps)?;
        (Schedule::LogLinear { first, last, steps }, steps)
    } else {
        return Err(format!("the unknown steps {how}"));
    };
    let k = tilde(&case.problem.model, &case.lambda)?;
    let mut l = case.l.clone();
    let options = SolverOptions {
        schedule,
        most,
        tolerance: 1e-300,
        stall: false,
        restart_above: f64::INFINITY,
        ..SolverOptions::default()
    };
    own(Inversion::default().solve(k.as_ref(), &mut l, &options, None))?;
    for (field, reference) in entries(reference)? {
        let found = match field.as_str() {
            "T_sqrt" => by_rows(l.as_ref()),
            "elbo" => vec![case.bound_at("preconditioner_identity", &l)?],
            _ => {
                report.fail(field, "an output that the check does not know");
                continue;
            }
        };
        report.close(field, &found, &numbers(reference)?);
    }
    Ok(())
}

/// The bound at logarithms of λ and the hyperparameters.
struct Ascent {
    model: Model,
    data: Batch,
    relaxed: bool,
    values: Vec<f64>,
    steps: Vec<usize>,
}

/// The parameters' order in the flat vector, and whether they are logarithms.
const ORDER: [(&str, &str, bool); 6] = [
    ("m", "q.mu", false),
    ("llam", "q.lambda", true),
    ("lvar", "kernel.variance", true),
    ("lls", "kernel.lengthscales", true),
    ("ls2", "likelihood.variance", true),
    ("Z", "inducing.points", false),
];

impl Ascent {
    fn lengths(&self) -> Outcome<Vec<usize>> {
        let params = self.model.params();
        let length = |path: &str| params.iter().find(|(p, _)| p == path).map(|(_, p)| p.len());
        ORDER.iter().map(|(_, path, _)| length(path).ok_or(format!("no {path}"))).collect()
    }
}

impl Objective for Ascent {
    fn dim(&self) -> usize {
        self.lengths().map_or(0, |lengths| lengths.iter().sum())
    }

    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> sparsegp::Result<f64> {
        let lengths = self.lengths().map_err(sparsegp::Error::Invalid)?;
        let mut rest = x;
        for ((_, path, logarithm), length) in ORDER.iter().zip(&lengths) {
            let (own, tail) = rest.split_at(*length);
            rest = tail;
            let values: Vec<f64> =
                own.iter().map(|v| if *logarithm { v.exp() } else { *v }).collect();
            self.model.set(path, &values)?;
        }
        if self.relaxed
            && let Ok(method) = Uncollapsed::of(self.model.method)
        {
            let options = SolverOptions { tolerance: 1e-11, ..SolverOptions::strict() };
            let solved = method.settle(&mut self.model, &options)?;
            self.steps.extend(solved.map(|s| s.steps));
        }
        let evaluation = self.model.evaluate(&Cpu::default(), &self.data)?;
        let mut parts = Vec::new();
        let mut rest = evaluation.gradient.as_slice();
        for (path, param) in self.model.params() {
            let (own, tail) = rest.split_at(param.len());
            rest = tail;
            parts.push((path, own.to_vec(), param.value().to_vec()));
        }
        let mut at = 0;
        for (_, path, logarithm) in ORDER {
            let found = parts.iter().find(|(p, ..)| p == path);
            let (_, slopes, values) =
                found.ok_or_else(|| sparsegp::Error::Invalid(path.to_owned()))?;
            for (slope, value) in slopes.iter().zip(values) {
                gradient[at] = -slope * if logarithm { *value } else { 1.0 };
                at += 1;
            }
        }
        self.values.push(evaluation.value);
        Ok(-evaluation.value)
    }
}

/// The file `trajectory_l_vs_r`: Adam on all rows; R-SVGP with a converged T goes where L-SVGP goes.
pub fn trajectory(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    report.read_tolerance(json)?;
    let inputs = get(json, "inputs")?;
    let known = [
        "X",
        "Y",
        "Z0",
        "scale",
        "m0",
        "lam0",
        "variance0",
        "lengthscale0",
        "noise0",
        "steps",
        "adam",
        "parameters",
    ];
    known_entries(inputs, &known, report)?;
    let (x, y, z) =
        (matrix(get(inputs, "X")?)?, matrix(get(inputs, "Y")?)?, matrix(get(inputs, "Z0")?)?);
    let of = |key: &str| -> Outcome<f64> { number(get(inputs, key)?) };
    let words = text(get(inputs, "parameters")?)?;
    report.require("parameters", words.contains("no jitter"), "other parameters than expected");
    let adam = get(inputs, "adam")?;
    known_entries(adam, &["lr", "beta1", "beta2", "eps"], report)?;
    let options = AdamOptions {
        learning_rate: number(get(adam, "lr")?)?,
        beta1: number(get(adam, "beta1")?)?,
        beta2: number(get(adam, "beta2")?)?,
        epsilon: number(get(adam, "eps")?)?,
        ..AdamOptions::default()
    };
    let (n, m, d, p) = (x.nrows(), z.nrows(), x.ncols(), y.ncols());
    let steps = of("steps")? as usize;
    let data = own(InMemory::new(x, y))?;
    let data = batch(&data, &(0..n).collect::<Vec<_>>(), of("scale")?);
    let run = |relaxed: bool| -> Outcome<Ascent> {
        let mut model = Model {
            kernels: vec![own(parse("rbf", Inputs::unnamed(d)))?],
            mean: own(means::by_name("zero", d, p))?,
            likelihood: Box::new(Gaussian::new(of("noise0")?)),
            inducing: vec![inducing_param(z.as_ref())],
            q: None,
            method: own(sparsegp::methods::find("lsvgp"))?.method,
            jitter: Jitter::Absolute(0.0),
            hidden: Vec::new(),
        };
        let l = Mat::<f64>::identity(m, m) * faer::Scale(1e-3);
        let mean = Mat::from_fn(m, p, |_, _| of("m0").unwrap_or(f64::NAN));
        let l = relaxed.then_some(&l);
        pseudo(&mut model, &mean, &vec![of("lam0")?; m], l, Preconditioner::Inverse)?;
        if let Some(root) = model.q.as_mut().and_then(|q| q.root.as_mut()) {
            root.frozen = true;
        }
        own(model.set("kernel.variance", &[of("variance0")?]))?;
        own(model.set("kernel.lengthscales", &[of("lengthscale0")?]))?;
        let mut start = vec![of("m0")?; m * p];
        start.extend(vec![of("lam0")?.ln(); m]);
        start.push(of("variance0")?.ln());
        start.extend(vec![of("lengthscale0")?.ln(); d]);
        start.push(of("noise0")?.ln());
        (0..d).for_each(|q| start.extend_from_slice(column(z.as_ref(), q)));
        let data = data.clone();
        let mut ascent = Ascent { model, data, relaxed, values: Vec::new(), steps: Vec::new() };
        let mut adam = Adam::new(start, options.clone());
        for _ in 0..steps {
            own(adam.step(&mut ascent))?;
        }
        // Adam has moved once more since the last evaluation
        let end = adam.x().to_vec();
        let count = ascent.values.len();
        own(ascent.evaluate(&end, &mut vec![0.0; end.len()]))?;
        ascent.values.truncate(count);
        ascent.steps.truncate(count);
        Ok(ascent)
    };
    let (l, r) = (run(false)?, run(true)?);
    for (field, reference) in entries(get(json, "outputs")?)? {
        match field.as_str() {
            "elbo_L" => report.close(field, &l.values, &numbers(reference)?),
            "elbo_R" => report.close(field, &r.values, &numbers(reference)?),
            "final_L" => {
                for (name, reference) in entries(reference)? {
                    let (_, path, logarithm) = ORDER
                        .iter()
                        .find(|(short, ..)| short == name)
                        .ok_or_else(|| format!("the unknown parameter {name}"))?;
                    for (kind, ascent) in [("L", &l), ("R", &r)] {
                        let params = ascent.model.params();
                        let (_, param) =
                            params.iter().find(|(p, _)| p == path).ok_or("no such parameter")?;
                        let values: Vec<f64> = param
                            .value()
                            .iter()
                            .map(|v| if *logarithm { v.ln() } else { *v })
                            .collect();
                        let rows = match name.as_str() {
                            "Z" => Mat::from_fn(m, d, |i, j| values[j * m + i]),
                            "m" => Mat::from_fn(m, p, |i, j| values[j * m + i]),
                            _ => Mat::from_fn(values.len(), 1, |i, _| values[i]),
                        };
                        let field = format!("{field} {name} of {kind}");
                        report.close(&field, &by_rows(rows.as_ref()), &numbers(reference)?);
                    }
                }
            }
            "ng_steps_used" => {
                // from a warm start the adaptive steps are unit steps; the first solve starts elsewhere
                let theirs = numbers(reference)?;
                let own: Vec<f64> = r.steps.iter().map(|s| *s as f64).collect();
                let later = own.iter().zip(&theirs).skip(1);
                report.require(
                    field,
                    own.len() == theirs.len() && later.into_iter().all(|(a, b)| a <= &(b + 1.0)),
                    &format!("{own:?} steps for {theirs:?}"),
                );
            }
            _ => report.fail(field, "an output that the check does not know"),
        }
    }
    Ok(())
}

//! Inference at the data themselves (Z = X), q at a point, and q(f) by two numbers per row.
//!
//! With Z = X and no jitter Φ = L⁻¹K = Lᵀ and r = 0 whatever the hyperparameters, so that the gradients
//! with respect to these are those of the sparse bound at Z = X. (Its gradient with respect to Z, as if
//! X stayed behind, has no counterpart.)

use crate::gpflow;
use crate::kernel;
use crate::problem::gradient_by_path;
use crate::support::{Outcome, Report, entries, get, matrix, number, own};
use crate::svgp::prediction;
use crate::trained::{Problem, check_known};
use serde_json::Value;
use sparsegp::engine::{
    Block, CholeskyBasis, Cpu, Engine, Job, Passed, Plan, Pointwise, Process, Slopes as OfRows,
    Spread, Want,
};
use sparsegp::kernels::Tape;
use sparsegp::kernels::inducing::{AtPoints, Inducing};
use sparsegp::likelihoods::{Likelihood, Slopes, Target};
use sparsegp::linalg::{Cholesky, Jitter, Mat, dot};
use sparsegp::model::Posterior;
use sparsegp::variational::Variational;
use std::f64::consts::TAU;
use std::path::Path;

const INPUTS: &[&str] = &[
    "kernel",
    "mean_function",
    "likelihood",
    "X",
    "Y",
    "Xnew",
    "Ynew",
    "q_mu",
    "q_sqrt",
    "V",
    "Z_sgpmc",
    "V_sgpmc",
    "q_alpha",
    "q_lambda",
];

/// The inputs with inducing points, which a file of this kind names otherwise, and a whitened q if
/// `with_q`.
fn inputs_at(inputs: &Value, points: &str, with_q: bool) -> Outcome<Value> {
    let mut all = entries(inputs)?.clone();
    all.insert("Z".into(), get(inputs, points)?.clone());
    all.insert("whiten".into(), true.into());
    if !with_q {
        all.remove("q_mu");
        all.remove("q_sqrt");
    }
    Ok(Value::Object(all))
}

/// A gradient without that of the inducing points.
fn without_points(gradient: Vec<(String, Vec<f64>)>) -> Vec<(String, Vec<f64>)> {
    gradient.into_iter().filter(|(path, _)| path != "inducing.points").collect()
}

/// Rows at a value of the latent functions: u = L V.
struct AtPoint<'a> {
    likelihood: &'a dyn Likelihood,
    params: usize,
    /// Whether f given u is random. It is not at the inputs themselves, where r is nothing but rounding.
    conditional: bool,
}

impl Pointwise for AtPoint<'_> {
    fn plan(&self) -> Plan<'_> {
        Plan::by_rows(1 + self.params)
    }

    fn rows(&self, block: Block<'_>, mut out: OfRows<'_>) {
        let mut params = vec![0.0; self.params];
        for p in 0..block.rows.y.ncols() {
            for i in 0..block.rows.y.nrows() {
                let extra = block.rows.extra.get(i).copied().unwrap_or(0.0);
                let target = Target { y: block.rows.y[(i, p)], extra };
                let variance = if self.conditional { block.r[(i, p)].max(0.0) } else { 0.0 };
                let (mut a, mut c) = ([0.0], [0.0]);
                let slopes = Slopes { mean: &mut a, variance: &mut c, params: &mut params };
                let mean = [block.mu[(i, p)]];
                out.sums[0] += self.likelihood.expect(target, &mean, &[variance], slopes);
                out.a[(i, p)] = a[0];
                out.b[(i, p)] = 0.0;
                out.c[(i, p)] = if self.conditional { c[0] } else { 0.0 };
                out.sums[1..].iter_mut().zip(&params).for_each(|(sum, slope)| *sum += slope);
            }
        }
    }
}

/// What the rows say at a point, the log density of V under N(0, I) with it, and the gradients of
/// both together.
struct Point {
    likelihood: f64,
    density: f64,
    gradient: Vec<(String, Vec<f64>)>,
    posterior: Posterior,
}

/// At u = L V, with one kernel and one latent function per target column.
fn point(problem: &Problem, v: &Mat<f64>, conditional: bool) -> Outcome<Point> {
    let model = &problem.model;
    let kernel = model.kernel();
    if model.kernels.len() != 1 || model.likelihood.latents() != 1 {
        return Err("one kernel and one latent function per target column are expected".into());
    }
    let z = own(model.inducing_points())?;
    let m = z.nrows();
    let mut tape = Tape::recording();
    let mut kuu = Mat::zeros(m, m);
    let inducing = AtPoints { kernel, z: z.as_ref() };
    inducing.kuu(kuu.as_mut(), &mut tape);
    let basis = own(CholeskyBasis::new(kuu.as_ref(), model.jitter))?;
    let rows = AtPoint {
        likelihood: &*model.likelihood,
        params: model.likelihood.num_params(),
        conditional,
    };
    let process = Process {
        inducing: &inducing,
        basis: &basis,
        mean: v.as_ref(),
        spread: Spread::Roots(&[]),
    };
    let (mean, data) = (&*model.mean, &problem.data);
    let mut passed = Passed::default();
    let engine = Cpu::default();
    let (processes, pointwise) = (&[process], &rows);
    let job = Job { processes, mean, pointwise, scale: 1.0, want: Want::Gradients };
    own(engine.pass(&job, data, &mut passed))?;
    let sums = passed.processes.pop().ok_or("one process")?;
    // Φ̄Φᵀ = V(Φa)ᵀ − 2Φ diag(c) Φᵀ
    let gram_c = sums.gram_c.ok_or("no Gram matrix of the slopes in r")?;
    let outer = v * sums.phi_a.transpose();
    let psi = Mat::from_fn(m, m, |i, j| outer[(i, j)] - 2.0 * gram_c[(i, j)]);
    let mut kuu_bar = basis.kuu_bar(psi);
    let mut own = sums.inducing;
    inducing.pull_kuu(kuu.as_ref(), kuu_bar.as_mut(), &mut tape, &mut own);
    let (by_kernel, by_z) = own.split_at(kernel.num_params());
    let mut slopes = vec![0.0; model.num_params()];
    let parts = model.parts_of(&mut slopes);
    parts.kernel.copy_from_slice(by_kernel);
    parts.mean.copy_from_slice(&passed.mean);
    parts.likelihood.copy_from_slice(&passed.sums[1..]);
    parts.inducing.copy_from_slice(by_z);
    let mut gradient = gradient_by_path(model, &slopes);
    let v_bar = Mat::from_fn(m, v.ncols(), |i, j| sums.phi_a[(i, j)] - v[(i, j)]);
    gradient.push(("V".into(), crate::support::by_rows(v_bar.as_ref())));
    let squares = dot(v.as_ref(), v.as_ref());
    let size = (m * v.ncols()) as f64;
    let posterior = Posterior::new(model, z, basis.into_factor(), v.clone(), None);
    let density = passed.sums[0] - 0.5 * (squares + size * TAU.ln());
    Ok(Point { likelihood: passed.sums[0], density, gradient, posterior })
}

/// One block at a point: `gpmc` (at the data) or `sgpmc`.
fn at_point(name: &str, json: &Value, inputs: &Value, report: &mut Report) -> Outcome {
    let conditional = name == "sgpmc";
    let (points, v) = if conditional { ("Z_sgpmc", "V_sgpmc") } else { ("X", "V") };
    let problem = Problem::read(&inputs_at(inputs, points, false)?, 0.0, true)?;
    let mut own = point(&problem, &matrix(get(inputs, v)?)?, conditional)?;
    if !conditional {
        own.gradient = without_points(own.gradient);
    }
    for (field, reference) in entries(json)? {
        match field.as_str() {
            "log_likelihood" | "log_likelihood_lower_bound" => {
                report.close(field, &[own.likelihood], &[number(reference)?]);
            }
            "log_posterior_density" => {
                report.close(field, &[own.density], &[number(reference)?]);
            }
            "grad_log_posterior_density" => {
                gpflow::gradient(field, own.gradient.clone(), reference, report)?;
            }
            _ => {
                if !prediction(field, &own.posterior, &problem, inputs, reference, report)? {
                    report.fail(field, "an output that the check does not know");
                }
            }
        }
    }
    Ok(())
}

/// The bound at a q that is known, with its gradients and predictions.
fn bound(
    problem: &Problem,
    gradient: Vec<(String, Vec<f64>)>,
    json: &Value,
    inputs: &Value,
    report: &mut Report,
) -> Outcome {
    let engine = Cpu::default();
    let evaluation = own(problem.model.evaluate(&engine, &problem.data))?;
    let posterior = own(problem.model.posterior(&engine, &problem.data))?;
    for (field, reference) in entries(json)? {
        match field.as_str() {
            "elbo" => report.close(field, &[evaluation.value], &[number(reference)?]),
            "grad_elbo" => gpflow::gradient(field, gradient.clone(), reference, report)?,
            _ => {
                if !prediction(field, &posterior, problem, inputs, reference, report)? {
                    report.fail(field, "an output that the check does not know");
                }
            }
        }
    }
    Ok(())
}

/// The files `vgp_*` with the blocks `vgp`, `gpmc` and `sgpmc`.
pub fn check(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    let inputs = get(json, "inputs")?;
    check_known(inputs, INPUTS)?;
    no_jitter(json)?;
    let case = report.case.clone();
    for (block, outputs) in entries(get(json, "outputs")?)? {
        report.case = format!("{case}{block}");
        match block.as_str() {
            "vgp" => {
                let problem = Problem::read(&inputs_at(inputs, "X", true)?, 0.0, true)?;
                let model = &problem.model;
                let evaluation = own(model.evaluate(&Cpu::default(), &problem.data))?;
                let gradient = without_points(gradient_by_path(model, &evaluation.gradient));
                bound(&problem, gradient, outputs, inputs, report)?;
            }
            "gpmc" | "sgpmc" => at_point(block, outputs, inputs, report)?,
            _ => report.fail(block, "a block that the check does not know"),
        }
    }
    Ok(())
}

/// Refuses a jitter: f = L v with L Lᵀ = K + jitter is not the Z = X of a bound that has none on kff.
fn no_jitter(json: &Value) -> Outcome {
    match number(get(json, "jitter")?)? {
        0.0 => Ok(()),
        other => Err(format!("a jitter of {other} where Z = X is another model than ours")),
    }
}

/// The lower triangle.
fn lower(a: &Mat<f64>) -> Mat<f64> {
    Mat::from_fn(a.nrows(), a.ncols(), |i, j| if i >= j { a[(i, j)] } else { 0.0 })
}

/// The files `vgp_opper_archambeau_*` (Opper & Archambeau 2009): q(f) = N(m(X) + Kα, (K⁻¹ + Λ²)⁻¹) with
/// Λ = diag(λ).
///
/// With f − m = L v that is q(v) = N(Lᵀα, A⁻¹), A = I + LᵀΛ²L. Of a bound with adjoints m̄ and R̄ of the
/// mean and a root of A⁻¹ the gradients are ᾱ = L m̄ and, with S̄ from R̄ by the adjoint of the Cholesky
/// factorisation and Ā = −A⁻¹S̄A⁻¹, λ̄ = 2λ diag(LĀLᵀ); through L̄ = α m̄ᵀ + 2Λ²LĀ they reach K.
pub fn opper_archambeau(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    let inputs = get(json, "inputs")?;
    check_known(inputs, INPUTS)?;
    no_jitter(json)?;
    let mut problem = Problem::read(&inputs_at(inputs, "X", false)?, 0.0, true)?;
    let (alpha, lambda) = (matrix(get(inputs, "q_alpha")?)?, matrix(get(inputs, "q_lambda")?)?);
    let x = problem.data.rows.x.clone();
    let (n, outputs) = (alpha.nrows(), alpha.ncols());
    let kernel = problem.model.kernels[0].clone();
    let mut k = Mat::zeros(n, n);
    kernel.evaluate(x.as_ref(), None, k.as_mut(), &mut Tape::off());
    let factor = own(Cholesky::new(k.as_ref(), Jitter::Absolute(0.0), "K"))?;
    let l = &factor.l;
    let mean = l.transpose() * &alpha;
    let mut roots = Vec::new();
    for p in 0..outputs {
        let scaled = Mat::from_fn(n, n, |i, j| lambda[(i, p)] * l[(i, j)]);
        let mut a = scaled.transpose() * &scaled;
        (0..n).for_each(|i| a[(i, i)] += 1.0);
        roots.push(own(Cholesky::inverse_root(a.as_ref(), Jitter::Absolute(0.0), "A"))?);
    }
    problem.model.q = Some(own(Variational::new(mean.as_ref(), &roots, false, true))?);
    let model = &problem.model;
    let evaluation = own(model.evaluate(&Cpu::default(), &problem.data))?;
    let mut gradient = without_points(gradient_by_path(model, &evaluation.gradient));
    let mut take = |path: &str| -> Outcome<Vec<f64>> {
        let at = gradient.iter().position(|(p, _)| p == path).ok_or("no gradient of q")?;
        Ok(gradient.remove(at).1)
    };
    let (by_mean, by_root) = (take("q.mu")?, take("q.sqrt")?);
    let mean_bar = Mat::from_fn(n, outputs, |i, p| by_mean[i * outputs + p]);
    let alpha_bar = l * &mean_bar;
    let mut lambda_bar = Mat::zeros(n, outputs);
    let mut l_bar = &alpha * mean_bar.transpose();
    for (p, root) in roots.iter().enumerate() {
        let root_bar = Mat::from_fn(n, n, |i, j| by_root[(p * n + i) * n + j]);
        let own_factor = Cholesky::of_factor(root.clone());
        let s_bar = own_factor.adjoint(root_bar.as_ref());
        let s = root * root.transpose();
        let a_bar = -(&s * &s_bar * &s);
        let through = l * &a_bar;
        for i in 0..n {
            let own: f64 = (0..n).map(|j| through[(i, j)] * l[(i, j)]).sum();
            lambda_bar[(i, p)] = 2.0 * lambda[(i, p)] * own;
            let square = lambda[(i, p)] * lambda[(i, p)];
            (0..n).for_each(|j| l_bar[(i, j)] += 2.0 * square * through[(i, j)]);
        }
    }
    let k_bar = factor.adjoint(lower(&l_bar).as_ref());
    let mut extra = kernel::weighted(&*kernel, x.as_ref(), None, k_bar).params.into_iter();
    for (_, values) in gradient.iter_mut().filter(|(path, _)| path.starts_with("kernel.")) {
        values.iter_mut().zip(&mut extra).for_each(|(g, e)| *g += e);
    }
    gradient.push(("q_alpha".into(), crate::support::by_rows(alpha_bar.as_ref())));
    gradient.push(("q_lambda".into(), crate::support::by_rows(lambda_bar.as_ref())));
    bound(&problem, gradient, get(json, "outputs")?, inputs, report)
}

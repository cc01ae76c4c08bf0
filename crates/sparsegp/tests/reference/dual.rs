//! q(u) as prior times sites: values, steps and adjoints of every tying.

use crate::batch::Batch;
use crate::collapsed::hyper;
use crate::gpflow;
use crate::observed::{self, ByRow};
use crate::probe::{Log, Spy};
use crate::problem::{self, gradient_by_path};
use crate::support::{
    Outcome, Report, by_rows, check_known, entries, get, items, matrix, number, numbers, own, text,
};
use crate::trained::{Problem, check_known as check_trained, groups, indices, marginals, prior_kl};
use crate::uncollapsed::batch;
use serde_json::{Value, json};
use sparsegp::data::{InMemory, Source};
use sparsegp::engine::{Cpu, Want};
use sparsegp::likelihoods::multi_points::Integration;
use sparsegp::likelihoods::quadrature::Slope;
use sparsegp::likelihoods::softmax::Softmax;
use sparsegp::likelihoods::{Likelihood, Slopes, Target};
use sparsegp::linalg::{
    Cholesky, Jitter, Mat, MatRef, Par, dot, product, sandwich_inverse, solve_lower_transpose,
};
use sparsegp::methods::{Step, Tvgp, Uncollapsed};
use sparsegp::model::Model;
use sparsegp::optim::{Adam, AdamOptions, Objective, Optimiser};
use sparsegp::variational::{Form, Tying, Variational};
use std::path::Path;

/// The ties with what a file calls their statistics and adjoints.
const TIES: [(&str, Tying, [&str; 2]); 3] = [
    ("tied_A", Tying::Natural, ["G1", "G2"]),
    ("tied_K", Tying::Kernel, ["lam1", "Lam2"]),
    ("tied_W", Tying::Whitened, ["W1", "W2"]),
];

/// Model (without q) and data of a case of this family.
fn read(case: &Value) -> Outcome<(Model, InMemory)> {
    let mut with_noise = case.clone();
    if case.get("noise_variance").is_none() {
        // the builder of `bounds` is for Gaussian noise; what it makes of it is replaced
        with_noise["noise_variance"] = Value::from(1.0);
    }
    let (mut model, data) = problem::bounds(&with_noise, "tsvgp")?;
    if let Some(likelihood) = case.get("likelihood") {
        model.likelihood = observed::bounds(likelihood, number(get(case, "n_gh")?)? as usize)?;
    }
    Ok((model, data))
}

/// All rows, of which each stands for `scale`.
fn whole(data: &InMemory, scale: f64) -> Batch {
    batch(data, &(0..data.x.nrows()).collect::<Vec<_>>(), scale)
}

/// Tied sites of these statistics.
fn tied(tying: Tying, first: &[f64], second: MatRef<f64>) -> Outcome<Variational> {
    let m = first.len();
    let mut q = Variational::sites(m, 1, tying);
    own(q.first.set("first", first))?;
    let lower: Vec<f64> = (0..m).flat_map(|j| (j..m).map(move |i| second[(i, j)])).collect();
    own(q.second.set("second", &lower))?;
    Ok(q)
}

fn untied(first: &[f64], second: &[f64]) -> Outcome<Variational> {
    let mut q = Variational::sites(first.len(), 1, Tying::Untied);
    own(q.first.set("first", first))?;
    own(q.second.set("second", second))?;
    Ok(q)
}

/// The second statistic of tied sites, row by row.
fn second(q: &Variational) -> Vec<f64> {
    let lower = q.root(0);
    let m = lower.nrows();
    by_rows(Mat::from_fn(m, m, |i, j| lower[(i.max(j), i.min(j))]).as_ref())
}

/// E log of the sites, log of their normaliser, mean and covariance of u, at a model with tied sites.
struct Found {
    e_log_sites: f64,
    log_z: f64,
    m: Vec<f64>,
    s: Vec<f64>,
    kl: f64,
}

fn moments_of(model: &Model) -> Outcome<Found> {
    let group = groups(model)?.pop().ok_or("one process")?;
    let (e, root) = (&group.parts.mean, &group.parts.roots[0]);
    let m = e.nrows();
    // B = (RRᵀ)⁻¹, from its own factor
    let covariance = product(root.as_ref(), root.transpose());
    let b = own(Cholesky::new(covariance.as_ref(), Jitter::Absolute(0.0), "S"))?;
    let (precision, log_det) = (b.inverse(), -b.log_det());
    let gamma = product(precision.as_ref(), e.as_ref());
    let log_z = 0.5 * dot(gamma.as_ref(), e.as_ref()) - 0.5 * log_det;
    let trace: f64 = (0..m).map(|i| covariance[(i, i)]).sum();
    let through = product(precision.as_ref(), e.as_ref()) - e;
    let e_log_sites = dot(gamma.as_ref(), e.as_ref())
        - 0.5 * (m as f64 - trace + dot(e.as_ref(), through.as_ref()));
    let l = group.basis.factor().l.as_ref();
    let u_root = product(l, root.as_ref());
    Ok(Found {
        e_log_sites,
        log_z,
        m: by_rows(product(l, e.as_ref()).as_ref()),
        s: by_rows(product(u_root.as_ref(), u_root.transpose()).as_ref()),
        kl: prior_kl(model)?,
    })
}

/// E log p(y | f) of every row with α and β, at means (N×1) and variances of one latent function.
fn expectations(model: &Model, rows: &InMemory, mu: &Mat<f64>, v: &[f64]) -> [Vec<f64>; 3] {
    let extra = model.likelihood.extra().and_then(|e| e.default).unwrap_or(1.0);
    let [mut ve, mut alpha, mut beta] = [const { Vec::new() }; 3];
    for (i, v) in v.iter().enumerate() {
        let (mut a, mut b) = ([0.0], [0.0]);
        let mut params = vec![0.0; model.likelihood.num_params()];
        let target = Target { y: rows.y[(i, 0)], extra };
        let out = Slopes { mean: &mut a, variance: &mut b, params: &mut params };
        ve.push(model.likelihood.expect(target, &[mu[(i, 0)]], &[*v], out));
        alpha.push(a[0]);
        beta.push(-2.0 * b[0]);
    }
    [ve, alpha, beta]
}

/// Compares the moments of rows, their expectations and slopes.
fn rows(model: &Model, data: &Batch, json: &Value, report: &mut Report) -> Outcome {
    let seen = marginals(model, data)?;
    let n = seen.mu.nrows();
    let v: Vec<f64> = (0..n).map(|i| seen.s[(i, 0)] + seen.r[(i, 0)]).collect();
    let [ve, alpha, beta] = expectations(model, &data.rows, &seen.mu, &v);
    report.close("mu", &by_rows(seen.mu.as_ref()), &numbers(get(json, "mu")?)?);
    let own = [("v", v), ("ve", ve), ("alpha", alpha), ("beta", beta)];
    for (name, values) in own {
        report.close(name, &values, &numbers(get(json, name)?)?);
    }
    Ok(())
}

/// Compares what the file states of q, by its names.
fn posterior(model: &Model, json: &Value, report: &mut Report) -> Outcome {
    let found = moments_of(model)?;
    let own = [
        ("m", found.m),
        ("S", found.s),
        ("kl", vec![found.kl]),
        ("logZ", vec![found.log_z]),
        ("Elogt", vec![found.e_log_sites]),
    ];
    for (name, values) in own {
        if let Some(reference) = json.get(name) {
            report.close(name, &values, &numbers(reference)?);
        }
    }
    Ok(())
}

/// The sum of matrices of one shape.
fn sum(all: &[Mat<f64>]) -> Outcome<Mat<f64>> {
    let mut all = all.iter().cloned();
    let first = all.next().ok_or("no cotangents")?;
    Ok(all.fold(first, |sum, one| sum + one))
}

/// Value and adjoints at fixed sites of one tying.
fn adjoints(model: &Model, data: &Batch, json: &Value, report: &mut Report) -> Outcome {
    let mut spied = model.clone();
    let spy = Spy::new(model.kernels[0].clone());
    let log = spy.log.clone();
    spied.kernels = vec![Box::new(spy)];
    let method = Uncollapsed::of(model.method).map_err(|_| "an uncollapsed method")?;
    let engine = Cpu::default();
    let mut step = own(method.step(&spied, &engine, data, Want::Gradients))?;
    let mut gradient = vec![0.0; model.num_params()];
    step.gradient(&spied, &mut gradient);
    let Log { own: kuu, cross, diag } =
        std::mem::take(&mut *log.lock().map_err(|e| e.to_string())?);
    let by_path = gradient_by_path(model, &gradient);
    // what a block gives the kernel is before the scale, which the sums of all blocks get
    let scale = data.scale;
    let (w, y) = step.site_slopes().pop().ok_or("one process")?;
    let mut tied = model.clone();
    own(method.tie(&mut tied, &engine, data))?;
    let group = groups(&tied)?.pop().ok_or("one process")?;
    let l = group.basis.factor().l.as_ref();
    for (field, reference) in entries(json)? {
        let values = match field.as_str() {
            "hyper" => {
                hyper(field, &by_path, reference, report)?;
                continue;
            }
            "elbo" => vec![step.value],
            "Kuu_bar" => by_rows(sum(&kuu)?.as_ref()),
            "Kuf_bar" => {
                // first that of the rows; that of untied sites has no scale
                let (rows, sites) = cross.split_first().ok_or("no cotangents")?;
                let rows = Mat::from_fn(rows.nrows(), rows.ncols(), |i, j| scale * rows[(i, j)]);
                by_rows(sites.iter().fold(rows, |sum, one| sum + one).transpose())
            }
            "kff_bar" => {
                let n = data.rows.x.nrows();
                let all = diag.iter();
                all.fold(vec![0.0; n], |sum, one| {
                    sum.iter().zip(one).map(|(s, v)| s + v * scale).collect()
                })
            }
            "lam1_bar" => {
                let mut first = w.clone();
                solve_lower_transpose(l, first.as_mut(), Par::Seq);
                by_rows(first.as_ref())
            }
            "Lam2_bar" => by_rows(sandwich_inverse(l, y[0].clone(), Par::Seq).as_ref()),
            "l1_bar" | "l2_bar" => {
                // cᵢᵀw and cᵢᵀYcᵢ
                let mut phi = Mat::zeros(data.rows.x.nrows(), l.nrows());
                let z = Some(group.z.as_ref());
                let mut tape = sparsegp::kernels::Tape::off();
                model.kernels[0].evaluate(data.rows.x.as_ref(), z, phi.as_mut(), &mut tape);
                sparsegp::linalg::solve_lower(l, phi.as_mut().transpose_mut(), Par::Seq);
                if field == "l1_bar" {
                    by_rows(product(phi.as_ref(), w.as_ref()).as_ref())
                } else {
                    let through = product(phi.as_ref(), y[0].as_ref());
                    let row = |i| (0..l.nrows()).map(move |j: usize| (i, j));
                    (0..phi.nrows()).map(|i| row(i).map(|at| phi[at] * through[at]).sum()).collect()
                }
            }
            _ => {
                report.fail(field, "an output that the check does not know");
                continue;
            }
        };
        report.close(field, &values, &numbers(reference)?);
    }
    Ok(())
}

/// The file `elbo_grad`.
pub fn gradients(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    report.read_tolerance(json)?;
    const KNOWN: &[&str] = &[
        "likelihood",
        "n_gh",
        "kernel",
        "X",
        "Z",
        "y",
        "scale",
        "l1",
        "l2",
        "lam1",
        "Lam2",
        "G1",
        "G2",
        "W1",
        "W2",
        "marginals",
        "m",
        "S",
        "kl",
        "logZ",
        "Elogt",
        "adjoints",
    ];
    for (index, case) in items(get(json, "cases")?)?.iter().enumerate() {
        let (mut model, data) = read(case)?;
        check_known(case, KNOWN, report)?;
        let data = whole(&data, number(get(case, "scale")?)?);
        let all = get(case, "adjoints")?;
        let label = format!("case {index} {}", model.likelihood.name());
        check_known(all, &["tied_A", "tied_K", "tied_W", "untied"], report)?;
        for (name, tying, [first, second]) in TIES {
            report.case = format!("{label} {name}");
            let second = matrix(get(case, second)?)?;
            model.q = Some(tied(tying, &numbers(get(case, first)?)?, second.as_ref())?);
            rows(&model, &data, get(case, "marginals")?, report)?;
            posterior(&model, case, report)?;
            adjoints(&model, &data, get(all, name)?, report)?;
        }
        report.case = format!("{label} untied");
        model.q = Some(untied(&numbers(get(case, "l1")?)?, &numbers(get(case, "l2")?)?)?);
        adjoints(&model, &data, get(all, "untied")?, report)?;
    }
    Ok(())
}

/// Moves a model's sites by a step of size `rate` from what these rows say.
fn advance(model: &mut Model, data: &Batch, rate: f64) -> Outcome {
    let method = Uncollapsed::of(model.method).map_err(|_| "an uncollapsed method")?;
    let mut step = own(method.step(model, &Cpu::default(), data, Want::Statistics))?;
    own(step.natural(model, rate))
}

/// The bound at all rows.
fn bound(model: &Model, data: &InMemory) -> Outcome<f64> {
    let method = Uncollapsed::of(model.method).map_err(|_| "an uncollapsed method")?;
    Ok(own(method.step(model, &Cpu::default(), data, Want::Value))?.value)
}

/// The file `estep`. Sites of single rows (`l1`, `l2`) are visited by minibatches without the scale, which
/// makes another q than that of tied ones.
pub fn steps(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    report.read_tolerance(json)?;
    for (index, case) in items(get(json, "cases")?)?.iter().enumerate() {
        let (mut model, data) = read(case)?;
        let batches = get(case, "minibatch")?.as_bool().ok_or("`minibatch` is true or false")?;
        let floor = case.get("beta_floor").map_or(Ok(0.0), number)?;
        let m = matrix(get(case, "Z")?)?.nrows();
        let mut start = |size: usize, tying: Tying| {
            let mut q = Variational::sites(size, 1, tying);
            q.floor = floor;
            model.q = Some(q);
            model.clone()
        };
        let [mut natural, mut kernel, mut single] = [
            start(m, Tying::Natural),
            start(m, Tying::Kernel),
            start(data.x.nrows(), Tying::Untied),
        ];
        for (number_of, step) in items(get(case, "steps")?)?.iter().enumerate() {
            let what = if batches { "minibatches" } else { "all rows" };
            report.case =
                format!("case {index} {} {what} step {number_of}", natural.likelihood.name());
            let (rate, scale) = (number(get(step, "r")?)?, number(get(step, "scale")?)?);
            let picked = batch(&data, &indices(get(step, "idx")?)?, scale);
            rows(&natural, &picked, step, report)?;
            advance(&mut natural, &picked, rate)?;
            advance(&mut kernel, &picked, rate)?;
            for (model, [first, second_of]) in
                [(&natural, ["G1", "G2"]), (&kernel, ["lam1", "Lam2"])]
            {
                let q = model.q.as_ref().ok_or("no q")?;
                report.close(first, q.first.value(), &numbers(get(step, first)?)?);
                report.close(second_of, &second(q), &numbers(get(step, second_of)?)?);
                posterior(model, step, report)?;
                report.close(
                    "elbo_full",
                    &[bound(model, &data)?],
                    &numbers(get(step, "elbo_full")?)?,
                );
            }
            {
                let method = Uncollapsed::of(single.method).map_err(|_| "an uncollapsed method")?;
                let places = indices(get(step, "idx")?)?;
                let (all, engine) = (whole(&data, 1.0), Cpu::default());
                let rows: (&dyn Source, &dyn Source, &[usize]) = (&all, &picked, &places);
                let mut memory = Step::default();
                own(method.visit_rows(&mut memory, &mut single, &engine, rows, rate))?;
                let q = single.q.as_ref().ok_or("no q")?;
                report.close("l1", q.first.value(), &numbers(get(step, "l1")?)?);
                report.close("l2", q.second.value(), &numbers(get(step, "l2")?)?);
            }
            if !batches {
                let value = bound(&single, &data)?;
                report.close("elbo_full, untied", &[value], &numbers(get(step, "elbo_full")?)?);
            }
        }
    }
    Ok(())
}

/// The file `natgrad`: the step in moments and in sites is the same.
pub fn natural(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    report.read_tolerance(json)?;
    for (index, case) in items(get(json, "cases")?)?.iter().enumerate() {
        let (mut model, data) = read(case)?;
        let scale = number(get(case, "scale")?)?;
        let picked = batch(&data, &indices(get(case, "idx")?)?, scale);
        let root = |json: &Value| -> Outcome<Mat<f64>> {
            own(Cholesky::new(matrix(json)?.as_ref(), Jitter::Absolute(0.0), "S")).map(|c| c.l)
        };
        for step in items(get(case, "steps")?)? {
            let rate = number(get(step, "r")?)?;
            report.case = format!("case {index} {} r = {rate}", model.likelihood.name());
            let second_of = matrix(get(case, "Lam2")?)?;
            model.q = Some(tied(Tying::Kernel, &numbers(get(case, "lam1")?)?, second_of.as_ref())?);
            posterior(&model, case, report)?;
            advance(&mut model, &picked, rate)?;
            let q = model.q.as_ref().ok_or("no q")?;
            report.close("lam1", q.first.value(), &numbers(get(step, "lam1")?)?);
            report.close("Lam2", &second(q), &numbers(get(step, "Lam2")?)?);
            posterior(&model, step, report)?;
            for (whitened, names) in [(false, ["m", "S"]), (true, ["m_white", "S_white"])] {
                let mean = matrix(get(case, names[0])?)?;
                let roots = [root(get(case, names[1])?)?];
                let q = own(Variational::new(mean.as_ref(), &roots, false, whitened))?;
                model.q = Some(q);
                if !whitened {
                    let evaluation = own(model.evaluate(&Cpu::default(), &picked))?;
                    let by_path = gradient_by_path(&model, &evaluation.gradient);
                    let slope = |path: &str| -> Outcome<Vec<f64>> {
                        let found = by_path.iter().find(|(p, _)| p == path);
                        found.map(|(_, v)| v.clone()).ok_or_else(|| format!("no slope of {path}"))
                    };
                    report.close("dL_dm", &slope("q.mu")?, &numbers(get(step, "dL_dm")?)?);
                    // S̄ is compared through the slope of its root: tril(2S̄R)
                    let through = matrix(get(step, "dL_dS")?)? * &roots[0];
                    let lower = Mat::from_fn(through.nrows(), through.ncols(), |i, j| {
                        if i >= j { 2.0 * through[(i, j)] } else { 0.0 }
                    });
                    report.close("dL_dS", &slope("q.sqrt")?, &by_rows(lower.as_ref()));
                }
                advance(&mut model, &picked, rate)?;
                let q = model.q.as_ref().ok_or("no q")?;
                let moved = q.root(0);
                let covariance = product(moved.as_ref(), moved.transpose());
                report.close(names[0], q.first.value(), &numbers(get(step, names[0])?)?);
                report.close(
                    names[1],
                    &by_rows(covariance.as_ref()),
                    &numbers(get(step, names[1])?)?,
                );
            }
            check_known(
                step,
                &["r", "m", "S", "m_white", "S_white", "lam1", "Lam2", "dL_dm", "dL_dS"],
                report,
            )?;
        }
    }
    Ok(())
}

/// The file `gaussian_sgpr`: one whole step is the collapsed optimum; of untied sites it stays that at
/// any hyperparameters.
pub fn gaussian(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    report.read_tolerance(json)?;
    for (index, case) in items(get(json, "cases")?)?.iter().enumerate() {
        report.case = format!("case {index}");
        let (mut model, data) = read(case)?;
        let (n, m) = (data.x.nrows(), matrix(get(case, "Z")?)?.nrows());
        let rows = whole(&data, 1.0);
        let mut moved = Vec::new();
        for (name, tying, size) in [
            ("tied_K", Tying::Kernel, m),
            ("tied_A", Tying::Natural, m),
            ("untied", Tying::Untied, n),
        ] {
            let mut q = Variational::sites(size, 1, tying);
            // from anywhere
            let away: Vec<f64> = (0..size).map(|i| (i as f64 + 0.3).sin()).collect();
            own(q.first.set("first", &away))?;
            model.q = Some(q);
            advance(&mut model, &rows, 1.0)?;
            let value = bound(&model, &data)?;
            report.close("sgpr_value", &[value], &numbers(get(case, "sgpr_value")?)?);
            moved.push((name, model.clone()));
        }
        let q = moved[0].1.q.as_ref().ok_or("no q")?;
        report.close("lam1", q.first.value(), &numbers(get(case, "lam1")?)?);
        report.close("Lam2", &second(q), &numbers(get(case, "Lam2")?)?);
        posterior(&moved[0].1, case, report)?;
        for other in items(get(case, "other_theta")?)? {
            check_known(
                other,
                &["variance", "lengthscales", "sgpr", "untied", "tied_A", "tied_K"],
                report,
            )?;
            for (name, model) in &mut moved {
                for path in ["variance", "lengthscales"] {
                    let values = numbers(get(other, path)?)?;
                    own(model.set(&format!("kernel.{path}"), &values))?;
                }
                report.close(name, &[bound(model, &data)?], &numbers(get(other, name)?)?);
            }
            let mut collapsed = moved[0].1.clone();
            (collapsed.q, collapsed.method) = (None, problem::method("titsias2009")?);
            let value = own(collapsed.evaluate(&Cpu::default(), &data))?.value;
            report.close("sgpr", &[value], &numbers(get(other, "sgpr")?)?);
        }
        let known = ["kernel", "noise_variance", "X", "Z", "y", "lam1", "Lam2", "m", "S"];
        check_known(case, &[&known[..], &["sgpr_value", "other_theta"]].concat(), report)?;
        text(get(get(case, "kernel")?, "name")?)?;
    }
    Ok(())
}

/// Rate and number of steps from `lr_RATE_N_step(s)`; no number for one step of each minibatch.
fn schedule(field: &str) -> Option<(f64, Option<usize>)> {
    let (rate, how) = field.strip_prefix("lr_")?.split_once('_')?;
    let rate = rate.parse().ok()?;
    if how == "minibatches_in_order" {
        return Some((rate, None));
    }
    let (count, word) = how.split_once('_')?;
    matches!(word, "step" | "steps").then_some(())?;
    Some((rate, Some(count.parse().ok()?)))
}

/// Compares sites, the q that they make, its bound and its predictions.
fn state(
    field: &str,
    model: &Model,
    problem: &Problem,
    inputs: &Value,
    json: &Value,
    report: &mut Report,
) -> Outcome {
    let found = moments_of(model)?;
    let q = model.q.as_ref().ok_or("no q")?;
    let at = own(model.posterior(&Cpu::default(), &problem.data))?;
    for (name, reference) in entries(json)? {
        let values = match name.as_str() {
            "lambda_1" => q.first.value().to_vec(),
            "lambda_2" => second(q),
            "q_mu" => found.m.clone(),
            "q_cov" => found.s.clone(),
            "elbo" => vec![own(model.evaluate(&Cpu::default(), &problem.data))?.value],
            "predict_f_mean" | "predict_f_var" => {
                gpflow::prediction(name, &at, inputs)?.ok_or("a prediction")?
            }
            _ => {
                report.fail(field, &format!("the unknown output `{name}`"));
                continue;
            }
        };
        report.close(&format!("{field} {name}"), &values, &numbers(reference)?);
    }
    Ok(())
}

/// The files `tsvgp_u_*` (sites tied by natural parameters), `tsvgp_kuu_*` (by covariances) and their
/// counterparts in other libraries.
pub fn programs(json: &Value, folder: &Path, report: &mut Report) -> Outcome {
    let Some(inputs) = gpflow::inputs(json, folder)? else {
        report.skipped = true;
        return Ok(());
    };
    let tying = match text(get(json, "case")?)?.contains("_kuu_") {
        true => Tying::Kernel,
        false => Tying::Natural,
    };
    const NOT_MODEL: [&str; 4] = ["lambda_1_init", "lambda_2_init", "batches", "kernel_mstep_eval"];
    let mut known = inputs.clone();
    let removed = known.as_object_mut().ok_or("inputs")?;
    NOT_MODEL.iter().for_each(|name| drop(removed.remove(*name)));
    check_trained(&known, crate::svgp::INPUTS)?;
    let mut problem = Problem::read(&known, number(get(json, "jitter")?)?, true)?;
    problem.model.method = problem::method("tsvgp")?;
    let init = numbers(get(&inputs, "lambda_1_init")?)?;
    let mut q = tied(tying, &init, Mat::zeros(init.len(), init.len()).as_ref())?;
    // slopes by the variance are at most −10⁻⁸ there
    q.floor = 2e-8;
    problem.model.q = Some(q);
    let batches = items(get(&inputs, "batches")?)?.iter().map(indices);
    let batches: Vec<Vec<usize>> = batches.collect::<Outcome<_>>()?;
    let picked = |rows: &[usize]| {
        let (data, observed) = (&problem.data, &problem.observed);
        crate::trained::batch(&data.rows, rows, problem.population, observed)
    };
    for (field, reference) in entries(get(json, "outputs")?)? {
        let mut model = problem.model.clone();
        if let Some((rate, count)) = schedule(field) {
            for rows in &batches[..if count.is_none() { batches.len() } else { 0 }] {
                advance(&mut model, &picked(rows), rate)?;
            }
            for _ in 0..count.unwrap_or(0) {
                advance(&mut model, &problem.data, rate)?;
            }
            state(field, &model, &problem, &inputs, reference, report)?;
        } else if field == "m_step_after_5_steps_lr_0.5" {
            for _ in 0..5 {
                advance(&mut model, &problem.data, 0.5)?;
            }
            for (name, reference) in entries(reference)? {
                let evaluation = own(model.evaluate(&Cpu::default(), &problem.data))?;
                match name.as_str() {
                    "sites" => state(name, &model, &problem, &inputs, reference, report)?,
                    "objective" => report.close(name, &[evaluation.value], &[number(reference)?]),
                    "grad" => {
                        let by_path = gradient_by_path(&model, &evaluation.gradient);
                        gpflow::gradient(name, by_path, reference, report)?;
                    }
                    "objective_at_kernel_mstep_eval" | "grad_at_kernel_mstep_eval" => {
                        let mut moved = model.clone();
                        let kernel = get(&inputs, "kernel_mstep_eval")?;
                        moved.kernels = vec![problem::kernel(kernel, problem.data.rows.x.ncols())?];
                        let evaluation = own(moved.evaluate(&Cpu::default(), &problem.data))?;
                        if name.starts_with("objective") {
                            report.close(name, &[evaluation.value], &[number(reference)?]);
                        } else {
                            let by_path = gradient_by_path(&moved, &evaluation.gradient);
                            gpflow::gradient(name, by_path, reference, report)?;
                        }
                    }
                    _ => report.fail(field, &format!("the unknown output `{name}`")),
                }
            }
        } else if field != "max_abs_diff" {
            report.fail(field, "an output that the check does not know");
        }
    }
    Ok(())
}

/// The variance at which an M-step's objective is largest, between two bounds, by golden sections of its
/// logarithm; the objective has one peak there.
fn best_variance(model: &Model, data: &InMemory, between: [f64; 2]) -> Outcome<f64> {
    let mut trial = model.clone();
    let mut value = |log_variance: f64| -> Outcome<f64> {
        own(trial.set("kernel.variance", &[log_variance.exp()]))?;
        bound(&trial, data)
    };
    let share = 0.5 * (5_f64.sqrt() - 1.0);
    let [mut low, mut high] = between.map(f64::ln);
    let (mut left, mut right) = (high - share * (high - low), low + share * (high - low));
    let (mut at_left, mut at_right) = (value(left)?, value(right)?);
    while high - low > 1e-6 {
        if at_left > at_right {
            (high, right, at_right) = (right, left, at_left);
            left = high - share * (high - low);
            at_left = value(left)?;
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = low + share * (high - low);
            at_right = value(right)?;
        }
    }
    Ok((0.5 * (low + high)).exp())
}

/// The file `mstep_toy`: what each tying's M-step sees from the same q, and where EM goes.
pub fn toy(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    report.read_tolerance(json)?;
    const KNOWN: &[&str] = &[
        "em_variance_from_2p5",
        "em_rtol",
        "likelihood",
        "n_gh",
        "kernel",
        "X",
        "Z",
        "y",
        "r",
        "elbo_trajectory",
        "l1",
        "l2",
        "lam1",
        "Lam2",
        "G1",
        "G2",
        "m",
        "S",
        "m_white",
        "S_white",
        "d_elbo_d_variance",
        "curves",
    ];
    for (index, case) in items(get(json, "cases")?)?.iter().enumerate() {
        let (model, data) = read(case)?;
        let label = format!("case {index} {}", model.likelihood.name());
        report.case.clone_from(&label);
        check_known(case, KNOWN, report)?;
        let (n, m) = (data.x.nrows(), matrix(get(case, "Z")?)?.nrows());
        let (rows, rate) = (whole(&data, 1.0), number(get(case, "r")?)?);
        let start = |tying: Tying| {
            let size = if tying == Tying::Untied { n } else { m };
            Model { q: Some(Variational::sites(size, 1, tying)), ..model.clone() }
        };
        let trajectory = numbers(get(case, "elbo_trajectory")?)?;
        let mut solved = Vec::new();
        for (name, tying) in
            [("untied", Tying::Untied), ("tied_A", Tying::Natural), ("tied_K", Tying::Kernel)]
        {
            let mut model = start(tying);
            let mut values = Vec::new();
            for _ in &trajectory {
                advance(&mut model, &rows, rate)?;
                values.push(bound(&model, &data)?);
            }
            report.close(&format!("elbo_trajectory {name}"), &values, &trajectory);
            let evaluation = own(model.evaluate(&Cpu::default(), &rows))?;
            let slope = evaluation.gradient[0];
            let reference = number(get(get(case, "d_elbo_d_variance")?, name)?)?;
            report.close(&format!("d_elbo_d_variance {name}"), &[slope], &[reference]);
            let names = match tying {
                Tying::Untied => ["l1", "l2"],
                Tying::Natural => ["G1", "G2"],
                _ => ["lam1", "Lam2"],
            };
            let q = model.q.as_ref().ok_or("no q")?;
            report.close(names[0], q.first.value(), &numbers(get(case, names[0])?)?);
            let own = if tying == Tying::Untied { q.second.value().to_vec() } else { second(q) };
            report.close(names[1], &own, &numbers(get(case, names[1])?)?);
            solved.push((name, model));
        }
        posterior(&solved[1].1, case, report)?;
        for (name, whitened, names) in
            [("q", false, ["m", "S"]), ("q_white", true, ["m_white", "S_white"])]
        {
            let covariance = matrix(get(case, names[1])?)?;
            let root = own(Cholesky::new(covariance.as_ref(), Jitter::Absolute(0.0), "S"))?.l;
            let mean = matrix(get(case, names[0])?)?;
            let q = own(Variational::new(mean.as_ref(), &[root], false, whitened))?;
            solved.push((name, Model { q: Some(q), ..model.clone() }));
        }
        for point in items(get(case, "curves")?)? {
            let variance = number(get(point, "variance")?)?;
            report.case = format!("{label} variance {variance}");
            check_known(
                point,
                &["variance", "untied", "tied_A", "tied_K", "q", "q_white"],
                report,
            )?;
            let mut values = Vec::new();
            for (name, model) in &mut solved {
                own(model.set("kernel.variance", &[variance]))?;
                values.push(bound(model, &data)?);
                report.close(name, &values[values.len() - 1..], &numbers(get(point, name)?)?);
            }
            // the claim of the paper's Figure 1
            let [untied, natural, _, q, white] = values[..] else { return Err("five".into()) };
            let above = untied >= natural - 1e-6 && natural >= q.max(white) - 1e-6;
            report.require("order", above, &format!("{values:?}"));
        }
        report.case = format!("{label} EM");
        let em = get(case, "em_variance_from_2p5")?;
        let tolerance = number(get(case, "em_rtol")?)?;
        for (name, reference) in entries(em)? {
            let reference = numbers(reference)?;
            let mut model = match name.as_str() {
                "untied" => start(Tying::Untied),
                "tied_A" => start(Tying::Natural),
                "tied_K" => start(Tying::Kernel),
                "q" | "q_white" => Model {
                    q: Some({
                        let prior = Variational::prior(m, 1, false);
                        let form = match name.as_str() {
                            "q" => Form::Marginal,
                            _ => Form::Whitened,
                        };
                        Variational { form, ..prior }
                    }),
                    ..model.clone()
                },
                _ => return Err(format!("the unknown form {name}")),
            };
            let mut variances = vec![reference[0]];
            own(model.set("kernel.variance", &reference[..1]))?;
            for _ in 1..reference.len() {
                for _ in 0..60 {
                    advance(&mut model, &rows, rate)?;
                }
                let best = best_variance(&model, &data, [0.02, 4.0])?;
                own(model.set("kernel.variance", &[best]))?;
                variances.push(best);
            }
            report.close_to(name, &variances, &reference, tolerance);
        }
    }
    Ok(())
}

/// The file `partial_em`: E-steps and an M-step by Adam on each of some minibatches.
pub fn partial_em(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    report.read_tolerance(json)?;
    const KNOWN: &[&str] = &[
        "likelihood",
        "n_gh",
        "kernel",
        "X",
        "Z",
        "y",
        "e_steps",
        "m_steps",
        "r",
        "adam",
        "transform",
        "iterations",
        "final_full_elbo",
    ];
    for (index, case) in items(get(json, "cases")?)?.iter().enumerate() {
        let (mut model, data) = read(case)?;
        let label = format!("case {index} {}", model.likelihood.name());
        report.case.clone_from(&label);
        check_known(case, KNOWN, report)?;
        let m = matrix(get(case, "Z")?)?.nrows();
        model.q = Some(Variational::sites(m, 1, Tying::Natural));
        // logarithms for variance and lengthscales
        let log = json!({ "type": "exp", "lower": 0.0 });
        for path in ["kernel.variance", "kernel.lengthscales"] {
            let entry = json!({ "value": values_of(&model, path)?, "transform": log });
            let mut outcome = Ok(());
            own(model.for_group(path, |param| outcome = param.read_json(path, &entry)))?;
            own(outcome)?;
        }
        let setting = |key: &str| -> Outcome<f64> { number(get(get(case, "adam")?, key)?) };
        let options = AdamOptions {
            learning_rate: setting("lr")?,
            beta1: setting("beta1")?,
            beta2: setting("beta2")?,
            epsilon: setting("eps")?,
            ..AdamOptions::default()
        };
        let mut adam = Adam::new(model.free_values(), options);
        let steps = |key: &str| -> Outcome<usize> { Ok(number(get(case, key)?)? as usize) };
        for (at, iteration) in items(get(case, "iterations")?)?.iter().enumerate() {
            report.case = format!("{label} iteration {at}");
            let picked = indices(get(iteration, "idx")?)?;
            let rows = batch(&data, &picked, data.x.nrows() as f64 / picked.len() as f64);
            for _ in 0..steps("e_steps")? {
                advance(&mut model, &rows, number(get(case, "r")?)?)?;
            }
            for _ in 0..steps("m_steps")? {
                let mut objective = Negated { model: &mut model, rows: &rows };
                own(adam.step(&mut objective))?;
                let (value, gradient) = (adam.value(), adam.gradient().ok_or("a gradient")?);
                let up: Vec<f64> = by_rows_of_points(gradient, m).iter().map(|g| -g).collect();
                let bound = -value.ok_or("a value")?;
                let before = number(get(iteration, "minibatch_elbo_before_M")?)?;
                report.close("minibatch_elbo_before_M", &[bound], &[before]);
                report.close("grad", &up, &numbers(get(iteration, "grad")?)?);
                model.set_free_values(adam.x());
            }
            for (name, path) in
                [("variance", "kernel.variance"), ("lengthscales", "kernel.lengthscales")]
            {
                report.close(name, &values_of(&model, path)?, &numbers(get(iteration, name)?)?);
            }
            let z = own(model.inducing_points())?;
            report.close("Z", &by_rows(z.as_ref()), &numbers(get(iteration, "Z")?)?);
            let q = model.q.as_ref().ok_or("no q")?;
            report.close("G1", q.first.value(), &numbers(get(iteration, "G1")?)?);
            report.close("G2", &second(q), &numbers(get(iteration, "G2")?)?);
        }
        report.case = label;
        let value = bound(&model, &data)?;
        report.close("final_full_elbo", &[value], &numbers(get(case, "final_full_elbo")?)?);
    }
    Ok(())
}

fn values_of(model: &Model, path: &str) -> Outcome<Vec<f64>> {
    let params = model.params();
    let found = params.iter().find(|(p, _)| p == path);
    found.map(|(_, p)| p.value().to_vec()).ok_or_else(|| format!("no parameter {path}"))
}

/// A gradient whose last part is of M points, with that part row by row.
fn by_rows_of_points(gradient: &[f64], m: usize) -> Vec<f64> {
    // hyperparameters first: variance and one lengthscale per input
    let d = (gradient.len() - 1) / (m + 1);
    let (hyper, points) = gradient.split_at(1 + d);
    let rows = (0..m).flat_map(|i| (0..d).map(move |q| points[q * m + i]));
    hyper.iter().copied().chain(rows).collect()
}

/// The bound of a minibatch with its sign changed.
struct Negated<'a> {
    model: &'a mut Model,
    rows: &'a Batch,
}

impl Objective for Negated<'_> {
    fn dim(&self) -> usize {
        self.model.free_count()
    }

    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> sparsegp::Result<f64> {
        self.model.set_free_values(x);
        let (evaluation, free) = self.model.evaluate_free(&Cpu::default(), self.rows)?;
        gradient.iter_mut().zip(free).for_each(|(g, f)| *g = -f);
        Ok(-evaluation.value)
    }
}

/// The file `softmax`: several latent functions by draws, with either estimator of the curvature.
pub fn softmax(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    report.read_tolerance(json)?;
    const KNOWN: &[&str] =
        &["classes", "kernel", "X", "Z", "y", "idx", "scale", "beta_floor_reparam", "steps"];
    for (index, case) in items(get(json, "cases")?)?.iter().enumerate() {
        check_known(case, KNOWN, report)?;
        let (mut model, data) = read(case)?;
        let classes = number(get(case, "classes")?)? as usize;
        let m = matrix(get(case, "Z")?)?.nrows();
        let picked = indices(get(case, "idx")?)?;
        let mut rows = batch(&data, &picked, number(get(case, "scale")?)?);
        rows.rows.extra = (0..picked.len()).map(|i| i as f64).collect();
        model.mean = own(sparsegp::means::by_name("zero", data.x.ncols(), classes))?;
        let mut before = String::new();
        for (at, step) in items(get(case, "steps")?)?.iter().enumerate() {
            let estimator = text(get(step, "estimator")?)?;
            report.case = format!("case {index} step {at} {estimator}");
            let slope = if estimator == "price" { Slope::Price } else { Slope::Rule };
            if estimator != before {
                // both start from the prior
                let mut q = Variational::sites(m, classes, Tying::Kernel);
                q.floor = match slope {
                    Slope::Price => 0.0,
                    Slope::Rule => number(get(case, "beta_floor_reparam")?)?,
                };
                model.q = Some(q);
                before = estimator.to_owned();
            }
            let eps = get(step, "eps")?;
            let with = |slope: Slope| -> Outcome<ByRow> {
                ByRow::new(own(Softmax::with(classes, Integration::default(), slope))?, eps)
            };
            let seen = {
                model.likelihood = Box::new(with(Slope::Price)?);
                marginals(&model, &rows)?
            };
            let n = picked.len();
            let v = Mat::from_fn(n, classes, |i, c| seen.s[(i, c)] + seen.r[(i, c)]);
            let [mut ve, mut alpha, mut price, mut reparam] = [const { Vec::new() }; 4];
            for i in 0..n {
                let target = Target { y: rows.rows.y[(i, 0)], extra: i as f64 };
                let (mu, v): (Vec<f64>, Vec<f64>) =
                    (0..classes).map(|c| (seen.mu[(i, c)], v[(i, c)])).unzip();
                for slope in [Slope::Price, Slope::Rule] {
                    let (mut a, mut b) = (vec![0.0; classes], vec![0.0; classes]);
                    let out = Slopes { mean: &mut a, variance: &mut b, params: &mut [] };
                    let value = with(slope)?.expect(target, &mu, &v, out);
                    let beta = b.iter().map(|b| -2.0 * b);
                    if slope == Slope::Price {
                        price.extend(beta);
                        ve.push(value);
                        alpha.extend(a);
                    } else {
                        reparam.extend(beta);
                    }
                }
            }
            let close = |report: &mut Report, name: &str, values: &[f64]| -> Outcome {
                report.close(name, values, &numbers(get(step, name)?)?);
                Ok(())
            };
            close(report, "mu", &by_rows(seen.mu.as_ref()))?;
            close(report, "v", &by_rows(v.as_ref()))?;
            close(report, "ve", &ve)?;
            close(report, "alpha", &alpha)?;
            close(report, "beta_price", &price)?;
            close(report, "beta_reparam", &reparam)?;
            model.likelihood = Box::new(with(slope)?);
            advance(&mut model, &rows, number(get(step, "r")?)?)?;
            let q = model.q.as_ref().ok_or("no q")?;
            close(report, "lam1", q.first.value())?;
            let all: Vec<f64> = (0..classes)
                .flat_map(|c| {
                    let lower = q.root(c);
                    by_rows(Mat::from_fn(m, m, |i, j| lower[(i.max(j), i.min(j))]).as_ref())
                })
                .collect();
            close(report, "Lam2", &all)?;
            close(report, "kl", &[prior_kl(&model)?])?;
            // the probabilities of classes are by the same draws
            let eps = numbers(eps)?;
            let mut probabilities = vec![0.0; n * classes];
            let draws = eps.len() / (n * classes);
            for draw in eps.chunks_exact(n * classes) {
                for i in 0..n {
                    let f: Vec<f64> = (0..classes)
                        .map(|c| seen.mu[(i, c)] + v[(i, c)].sqrt() * draw[i * classes + c])
                        .collect();
                    let top = f.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    let total: f64 = f.iter().map(|f| (f - top).exp()).sum();
                    for c in 0..classes {
                        probabilities[i * classes + c] += (f[c] - top).exp() / total / draws as f64;
                    }
                }
            }
            close(report, "class_probs", &probabilities)?;
        }
    }
    Ok(())
}

/// The file `tvgp`: steps of sites without inducing points, with the adjoint of K.
pub fn full(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    report.read_tolerance(json)?;
    let method =
        Tvgp::of(problem::method("tvgp")?).map_err(|_| "a method with sites of all rows")?;
    for (index, case) in items(get(json, "cases")?)?.iter().enumerate() {
        check_known(
            case,
            &["likelihood", "n_gh", "kernel", "X", "y", "steps", "converged"],
            report,
        )?;
        let mut with_points = case.clone();
        with_points["Z"] = get(case, "X")?.clone();
        let (mut model, data) = read(&with_points)?;
        let n = data.x.nrows();
        (model.method, model.inducing) = (problem::method("tvgp")?, Vec::new());
        model.q = Some(Variational::sites(n, 1, Tying::Untied));
        let label = format!("case {index} {}", model.likelihood.name());
        let steps = items(get(case, "steps")?)?.iter().map(|step| (step, false));
        for (json, converged) in steps.chain([(get(case, "converged")?, true)]) {
            report.case = format!("{label} {}", if converged { "converged" } else { "step" });
            let (count, rate) = match converged {
                true => (300, 0.5),
                false => (1, number(get(json, "r")?)?),
            };
            for _ in 0..count {
                own(method.step(&mut model, &data, rate))?;
            }
            let mut spied = model.clone();
            let spy = Spy::new(model.kernels[0].clone());
            let log = spy.log.clone();
            spied.kernels = vec![Box::new(spy)];
            let evaluation = own(spied.evaluate(&Cpu::default(), &data))?;
            let k_bar = sum(&log.lock().map_err(|e| e.to_string())?.own)?;
            let by_path = gradient_by_path(&model, &evaluation.gradient);
            let q = model.q.as_ref().ok_or("no q")?;
            // at the rows themselves, with the jitter that the file gives them
            let at = own(model.posterior(&Cpu::default(), &data))?;
            let (mean, _) = own(at.predict_f(data.x.as_ref()))?;
            for (field, reference) in entries(json)? {
                let values = match field.as_str() {
                    "r" => continue,
                    "hyper" => {
                        hyper(field, &by_path, reference, report)?;
                        continue;
                    }
                    "l1" => q.first.value().to_vec(),
                    "l2" => q.second.value().to_vec(),
                    "elbo" | "exact_log_marginal" => vec![evaluation.value],
                    "Kff_bar" => by_rows(k_bar.as_ref()),
                    "m" => {
                        // predictions see K without the jitter, which mᵢ has times dᵢ
                        let reference = numbers(reference)?;
                        let near = 1e-5
                            * (1.0 + q.first.value().iter().fold(0.0, |m: f64, v| m.max(v.abs())));
                        report.close_to(field, &by_rows(mean.as_ref()), &reference, near);
                        continue;
                    }
                    "v" | "alpha" | "beta" | "kl" | "logZ" | "c" => {
                        let found = full_parts(&model, &data)?;
                        match field.as_str() {
                            "v" => found.v,
                            "alpha" => found.alpha,
                            "beta" => found.beta,
                            "kl" => vec![found.kl],
                            "logZ" => vec![found.log_z],
                            _ => vec![evaluation.value - found.log_z],
                        }
                    }
                    _ => {
                        report.fail(field, "an output that the check does not know");
                        continue;
                    }
                };
                report.close(field, &values, &numbers(reference)?);
            }
        }
    }
    Ok(())
}

/// What the files tell of sites without inducing points, and the library keeps to itself: computed here
/// from the sites by dense algebra, with the library's expectations.
struct FullParts {
    v: Vec<f64>,
    alpha: Vec<f64>,
    beta: Vec<f64>,
    kl: f64,
    log_z: f64,
}

fn full_parts(model: &Model, data: &InMemory) -> Outcome<FullParts> {
    let n = data.x.nrows();
    let q = model.q.as_ref().ok_or("no q")?;
    let Jitter::Absolute(jitter) = model.jitter else { return Err("an absolute jitter".into()) };
    let mut k = Mat::zeros(n, n);
    let mut tape = sparsegp::kernels::Tape::off();
    model.kernels[0].evaluate(data.x.as_ref(), None, k.as_mut(), &mut tape);
    (0..n).for_each(|i| k[(i, i)] += jitter);
    // S = (K⁻¹ + Λ)⁻¹ with the precisions inverted one after the other
    let prior = own(Cholesky::new(k.as_ref(), Jitter::Absolute(0.0), "K"))?;
    let mut precision = prior.inverse();
    (0..n).for_each(|i| precision[(i, i)] += q.second.value()[i]);
    let posterior = own(Cholesky::new(precision.as_ref(), Jitter::Absolute(0.0), "S⁻¹"))?;
    let s = posterior.inverse();
    let first = Mat::from_fn(n, 1, |i, _| q.first.value()[i]);
    let m = product(s.as_ref(), first.as_ref());
    let log_b = prior.log_det() + posterior.log_det();
    let log_z = 0.5 * dot(first.as_ref(), m.as_ref()) - 0.5 * log_b;
    let through = prior.solve(m.as_ref());
    let trace = dot(prior.inverse().as_ref(), s.as_ref());
    let kl = 0.5 * (trace - n as f64 + dot(m.as_ref(), through.as_ref()) + log_b);
    let v: Vec<f64> = (0..n).map(|i| s[(i, i)]).collect();
    let [_, alpha, beta] = expectations(model, data, &m, &v);
    Ok(FullParts { v, alpha, beta, kl, log_z })
}

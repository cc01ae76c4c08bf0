//! Particles that flow: steps, limits, blocks, optimisers, continuous time, draws.

use crate::support::{
    Outcome, Report, by_rows, check_known, entries, get, items, matrix, number, numbers, own,
};
use serde_json::Value;
use sparsegp::flow::targets::{Banana, Gaussian};
use sparsegp::flow::{
    Blocks, Factor, FlowOptimiser, Gf, GfOptions, Gpf, GpfOptions, MeanFlow, Particles, Rule,
    RunOptions, Scale, Target, evidence_bound, follow, regularised_gram, run,
};
use sparsegp::linalg::{Mat, MatRef};
use std::ops::ControlFlow;
use std::path::Path;

/// The files have a particle a row.
pub fn columns(json: &Value) -> Outcome<Mat<f64>> {
    Ok(matrix(json)?.transpose().to_owned())
}

/// As the files list particles.
pub fn listed(x: MatRef<f64>) -> Vec<f64> {
    by_rows(x.transpose())
}

pub fn particles(json: &Value) -> Outcome<Particles> {
    own(Particles::new(columns(json)?))
}

/// N(μ, Λ⁻¹).
pub fn gaussian(file: &Value, mean: &str) -> Outcome<Gaussian> {
    own(Gaussian::new(numbers(get(file, mean)?)?, matrix(get(file, "Lambda")?)?))
}

fn rates(file: &Value) -> Outcome<GpfOptions> {
    Ok(GpfOptions {
        mean_rate: number(get(file, "eta1")?)?,
        spread_rate: number(get(file, "eta2")?)?,
        ..GpfOptions::default()
    })
}

/// So many steps.
fn advance(gpf: &mut Gpf, target: &mut dyn Target, steps: usize) -> Outcome {
    let options = RunOptions { steps, every: steps.max(1), ..RunOptions::default() };
    let report = own(run(gpf, target, &options, &mut |_, _| ControlFlow::Continue(())))?;
    if report.steps == steps { Ok(()) } else { Err(format!("the flow ended: {:?}", report.ended)) }
}

/// Compares where a flow stands with a step of a file.
fn state(gpf: &Gpf, target: &mut dyn Target, step: &Value, report: &mut Report) -> Outcome {
    let state = own(gpf.state(target))?;
    let particles = gpf.particles();
    for (field, stated) in entries(step)? {
        let found = match field.as_str() {
            "step" => continue,
            "particles" => listed(particles.x()),
            "phi" => state.evaluation.phi.clone(),
            "grad" => listed(state.evaluation.gradient.as_ref()),
            "mean" => particles.mean(),
            "cov" => by_rows(particles.covariance().as_ref()),
            "mean_flow" => state.field.mean.clone(),
            "fluct_flow" => listed(state.field.spread.as_ref()),
            "logdet" => state.log_determinants.clone(),
            "free_energy" => vec![state.free_energy],
            _ => {
                report.fail(field, "an output that the check does not know");
                continue;
            }
        };
        report.close(field, &found, &numbers(stated)?);
    }
    Ok(())
}

/// Goes from step to step of a list.
pub fn steps(
    gpf: &mut Gpf,
    target: &mut dyn Target,
    list: &Value,
    name: &str,
    report: &mut Report,
) -> Outcome {
    let mut at = 0;
    for step in items(list)? {
        let number = number(get(step, "step")?)? as usize;
        advance(gpf, target, number - at)?;
        at = number;
        report.case = format!("{name}{at}");
        state(gpf, target, step, report)?;
    }
    report.case.clear();
    Ok(())
}

/// The end of a long run.
fn limit(gpf: &mut Gpf, target: &mut dyn Target, json: &Value, report: &mut Report) -> Outcome {
    let tolerance = number(get(json, "tol")?)?;
    advance(gpf, target, number(get(json, "iterations_used")?)? as usize)?;
    let free_energy = own(gpf.state(target))?.free_energy;
    let particles = gpf.particles();
    let rank = particles.dim().min(particles.count() - 1);
    for (field, stated) in entries(json)? {
        let stated = || numbers(stated);
        let found = match field.as_str() {
            "tol" | "iterations_used" => continue,
            "mean" => particles.mean(),
            "cov" => by_rows(particles.covariance().as_ref()),
            "free_energy" => vec![free_energy],
            "elbo_with_constant" => vec![evidence_bound(free_energy, rank)],
            "particles_after" => listed(particles.x()),
            "nonzero_eigenvalues" => {
                let c = particles.covariance();
                let (values, _) = own(sparsegp::linalg::symmetric_eigen(c.as_ref()))?;
                values.into_iter().rev().take(rank).collect()
            }
            _ => {
                report.fail(field, "an output that the check does not know");
                continue;
            }
        };
        report.close_to(&format!("limit.{field}"), &found, &stated()?, tolerance);
    }
    Ok(())
}

/// The files of Gaussian targets with one block: full rank, natural mean, few particles.
fn one_block(file: &Value, mean_flow: MeanFlow, report: &mut Report) -> Outcome {
    let known = [
        "D",
        "N",
        "mu",
        "Lambda",
        "Sigma",
        "kappa",
        "sigma_eigenvalues",
        "eta1",
        "eta2",
        "particles0",
        "R0",
        "steps",
        "limit",
        "eta2_stability_limit",
        "file",
    ];
    check_known(file, &known, report)?;
    let mut target = gaussian(file, "mu")?;
    let start = particles(get(file, "particles0")?)?;
    report.require(
        "sizes",
        (start.dim() as f64, start.count() as f64)
            == (number(get(file, "D")?)?, number(get(file, "N")?)?),
        "the particles have others than the file says",
    );
    if let Some(stated) = file.get("R0") {
        let r = regularised_gram(start.deviations().as_ref(), 1.0);
        report.close("R0", &by_rows(r.as_ref()), &numbers(stated)?);
    }
    let options = GpfOptions { mean_flow, ..rates(file)? };
    let mut gpf = own(Gpf::new(start.clone(), options.clone()))?;
    steps(&mut gpf, &mut target, get(file, "steps")?, "step ", report)?;
    if let Some(json) = file.get("limit") {
        limit(&mut own(Gpf::new(start, options))?, &mut target, json, report)?;
    }
    if let Some(stated) = file.get("kappa") {
        let precision = matrix(get(file, "Lambda")?)?;
        let (values, _) = own(sparsegp::linalg::symmetric_eigen(precision.as_ref()))?;
        let (Some(least), Some(largest)) = (values.first(), values.last()) else {
            return Err("a precision without eigenvalues".into());
        };
        report.close("kappa", &[largest / least], &numbers(stated)?);
    }
    if let Some(stated) = file.get("eta2_stability_limit") {
        stability(file, number(stated)?, mean_flow, report)?;
    }
    Ok(())
}

/// Next to the optimum a rate below the limit of a file goes back to it, and one above goes away.
fn stability(file: &Value, limit: f64, mean_flow: MeanFlow, report: &mut Report) -> Outcome {
    let mut target = gaussian(file, "mu")?;
    let root = {
        let precision = matrix(get(file, "Lambda")?)?;
        let none = sparsegp::linalg::Jitter::Absolute(0.0);
        let inverse =
            own(sparsegp::linalg::Cholesky::new(precision.as_ref(), none, "Λ"))?.inverse();
        own(sparsegp::linalg::Cholesky::new(inverse.as_ref(), none, "Σ"))?.l
    };
    // all directions are a little off
    let d = root.nrows();
    let off = Mat::from_fn(d, d, |i, j| 1e-6 * (1.0 + (3.7 * i as f64 + 1.3 * j as f64).sin()));
    let root = &root + sparsegp::linalg::product(off.as_ref(), root.as_ref());
    let count = number(get(file, "N")?)? as usize;
    let mean = numbers(get(file, "mu")?)?;
    let start = own(Particles::matched(&mean, root.as_ref(), count, 1))?;
    for (share, falls) in [(0.98, true), (1.02, false)] {
        let options = GpfOptions { mean_flow, spread_rate: share * limit, ..rates(file)? };
        let mut gpf = own(Gpf::new(start.clone(), options))?;
        let before = own(gpf.state(&mut target))?.field.residual;
        advance(&mut gpf, &mut target, 200)?;
        let after = own(gpf.state(&mut target))?.field.residual;
        // the slowest modes change by 0.96 or 1.04 in a step
        let holds = if falls { after < 1e-3 * before } else { after > 1e3 * before };
        let text = format!("at {share} of it the residual went from {before:e} to {after:e}");
        report.require("eta2_stability_limit", holds, &text);
    }
    Ok(())
}

pub fn plain(file: &Value, _: &Path, report: &mut Report) -> Outcome {
    one_block(file, MeanFlow::Plain, report)
}

pub fn natural(file: &Value, _: &Path, report: &mut Report) -> Outcome {
    one_block(file, MeanFlow::Natural, report)
}

fn blocks_of(json: &Value) -> Outcome<Blocks> {
    let block = |json| Ok(numbers(json)?.iter().map(|i| *i as usize).collect());
    Ok(Blocks::Of(items(json)?.iter().map(block).collect::<Outcome<_>>()?))
}

/// Steps by blocks and coordinate by coordinate.
pub fn blocks(file: &Value, _: &Path, report: &mut Report) -> Outcome {
    let known = [
        "D",
        "N",
        "mu",
        "Lambda",
        "eta1",
        "eta2",
        "blocks",
        "particles0",
        "steps_block",
        "steps_diagonal",
        "file",
    ];
    check_known(file, &known, report)?;
    let mut target = gaussian(file, "mu")?;
    for (list, blocks) in
        [("steps_block", blocks_of(get(file, "blocks")?)?), ("steps_diagonal", Blocks::Diagonal)]
    {
        let options = GpfOptions { blocks, ..rates(file)? };
        let mut gpf = own(Gpf::new(particles(get(file, "particles0")?)?, options))?;
        steps(&mut gpf, &mut target, get(file, list)?, &format!("{list} "), report)?;
    }
    Ok(())
}

/// Steps until blocks that start uncorrelated have their limit.
const LONG: usize = 20_000;

pub fn blocks_exact(file: &Value, _: &Path, report: &mut Report) -> Outcome {
    let known = [
        "mu",
        "Lambda",
        "blocks",
        "particles0",
        "eta1",
        "eta2",
        "limit_block_cov",
        "limit_mean",
        "tol",
        "file",
    ];
    check_known(file, &known, report)?;
    let mut target = gaussian(file, "mu")?;
    let blocks = blocks_of(get(file, "blocks")?)?;
    let start = particles(get(file, "particles0")?)?;
    let indices = blocks.indices(start.dim());
    let mut gpf = own(Gpf::new(start, GpfOptions { blocks, ..rates(file)? }))?;
    advance(&mut gpf, &mut target, LONG)?;
    report.tolerance = number(get(file, "tol")?)?;
    report.close("limit_mean", &gpf.particles().mean(), &numbers(get(file, "limit_mean")?)?);
    let c = gpf.particles().covariance();
    let all = items(get(file, "limit_block_cov")?)?;
    report.require("limit_block_cov", all.len() == indices.len(), "a block is missing");
    for (stated, rows) in all.iter().zip(&indices) {
        let found = Mat::from_fn(rows.len(), rows.len(), |i, j| c[(rows[i], rows[j])]);
        report.close("limit_block_cov", &by_rows(found.as_ref()), &numbers(stated)?);
    }
    Ok(())
}

pub fn banana(file: &Value, _: &Path, report: &mut Report) -> Outcome {
    let known = [
        "a",
        "b",
        "c",
        "d",
        "eta1",
        "eta2",
        "particles0",
        "steps",
        "point",
        "point_phi",
        "point_grad",
        "point_hess",
        "file",
    ];
    check_known(file, &known, report)?;
    let of = |name: &str| number(get(file, name)?);
    let mut target = own(Banana::new(of("a")?, of("b")?, of("c")?, of("d")?))?;
    let mut gpf = own(Gpf::new(particles(get(file, "particles0")?)?, rates(file)?))?;
    steps(&mut gpf, &mut target, get(file, "steps")?, "step ", report)?;
    let point = numbers(get(file, "point")?)?;
    let x = Mat::from_fn(2, 1, |i, _| point[i]);
    let evaluation = own(sparsegp::flow::Evaluation::of(&mut target, x.as_ref()))?;
    report.close("point_phi", &evaluation.phi, &numbers(get(file, "point_phi")?)?);
    let slope = listed(evaluation.gradient.as_ref());
    report.close("point_grad", &slope, &numbers(get(file, "point_grad")?)?);
    let found = hessian(&mut target, &point)?;
    report.close("point_hess", &found, &numbers(get(file, "point_hess")?)?);
    Ok(())
}

/// ∇²φ at a position, row by row.
pub fn hessian(target: &mut dyn Target, x: &[f64]) -> Outcome<Vec<f64>> {
    let d = x.len();
    let mut out = Mat::zeros(d, d);
    own(target.hessian_times(x, Mat::<f64>::identity(d, d).as_ref(), out.as_mut()))?;
    Ok(by_rows(out.as_ref()))
}

/// Flows in, moves and states out.
pub fn optimisers(file: &Value, _: &Path, report: &mut Report) -> Outcome {
    let known =
        ["D", "N", "eta", "beta1", "beta2", "rho", "eps", "flows", "note", "results", "file"];
    check_known(file, &known, report)?;
    let of = |name: &str| number(get(file, name)?);
    let epsilon = of("eps")?;
    for (name, list) in entries(get(file, "results")?)? {
        let Some((rule, scale)) = name.split_once('_') else {
            report.fail(name, "a rule that the check does not know");
            continue;
        };
        let rule = match rule {
            "adam" => Rule::Adam { beta1: of("beta1")?, beta2: of("beta2")?, epsilon },
            "adagrad" => Rule::AdaGrad { epsilon },
            "rmsprop" => Rule::RmsProp { rho: of("rho")?, epsilon },
            _ => return Err(format!("the rule `{name}` is unknown here")),
        };
        let scale = match scale {
            "dimwise" => Scale::Dimension,
            "elementwise" => Scale::Element,
            _ => return Err(format!("the scale of `{name}` is unknown here")),
        };
        let mut optimiser = own(FlowOptimiser::new(rule, scale))?;
        let flows = items(get(file, "flows")?)?.len();
        report.require(name, flows > 0 && flows == items(list)?.len(), "a step is missing");
        for (t, (flow, stated)) in items(get(file, "flows")?)?.iter().zip(items(list)?).enumerate()
        {
            report.case = format!("{name} {t}");
            let moved = own(optimiser.step(columns(flow)?.as_ref(), of("eta")?))?;
            for (field, stated) in entries(stated)? {
                let found = match field.as_str() {
                    "delta" => listed(moved.as_ref()),
                    "v" => listed(optimiser.second()),
                    "m" => listed(optimiser.first()),
                    _ => return Err(format!("the state `{field}` is unknown here")),
                };
                report.close(field, &found, &numbers(stated)?);
            }
        }
    }
    report.case.clear();
    Ok(())
}

/// The flow of a Gaussian target in continuous time.
pub fn rates_of_gaussians(file: &Value, _: &Path, report: &mut Report) -> Outcome {
    check_known(file, &["mu", "Lambda", "particles0", "rows", "tol", "file"], report)?;
    report.tolerance = number(get(file, "tol")?)?;
    let precision = matrix(get(file, "Lambda")?)?;
    let mut target = gaussian(file, "mu")?;
    let start = particles(get(file, "particles0")?)?;
    let d = start.dim();
    let trace = |a: &Mat<f64>| (0..d).map(|i| a[(i, i)]).sum::<f64>();
    let factor = |a: &Mat<f64>| {
        let none = sparsegp::linalg::Jitter::Absolute(0.0);
        own(sparsegp::linalg::Cholesky::new(a.as_ref(), none, "C"))
    };
    let gap = |c: &Mat<f64>| Ok::<_, String>(trace(&(factor(c)?.inverse() - &precision)));
    for row in items(get(file, "rows")?)? {
        let t = number(get(row, "t")?)?;
        report.case = format!("t = {t}");
        let later = own(follow(&start, &mut target, t, 4000))?;
        let c = later.covariance();
        for (field, stated) in entries(row)? {
            let found = match field.as_str() {
                "t" => continue,
                "mean" | "mean_closed_form" => later.mean(),
                "cov" => by_rows(c.as_ref()),
                "trace_precision_gap" => vec![gap(&c)?],
                "trace_precision_gap_closed_form" => {
                    vec![(-2.0 * t).exp() * gap(&start.covariance())?]
                }
                "F_fluct" => {
                    // −½ log|I − B| − ½ tr B with B = I − ΛC
                    let log = factor(&precision)?.log_det() + factor(&c)?.log_det();
                    let lc = sparsegp::linalg::product(precision.as_ref(), c.as_ref());
                    vec![-0.5 * log - 0.5 * (d as f64 - trace(&lc))]
                }
                _ => return Err(format!("the output `{field}` is unknown here")),
            };
            report.close(field, &found, &numbers(stated)?);
        }
    }
    report.case.clear();
    Ok(())
}

/// Draws from scalars of the particles.
pub fn sampling(file: &Value, _: &Path, report: &mut Report) -> Outcome {
    check_known(file, &["particles", "xi", "samples", "cov", "note", "file"], report)?;
    let particles = particles(get(file, "particles")?)?;
    let draws = own(particles.combined(columns(get(file, "xi")?)?.as_ref()))?;
    report.close("samples", &listed(draws.as_ref()), &numbers(get(file, "samples")?)?);
    let c = particles.covariance();
    report.close("cov", &by_rows(c.as_ref()), &numbers(get(file, "cov")?)?);
    let diagonal: Vec<f64> = (0..c.nrows()).map(|i| c[(i, i)]).collect();
    report.close("variances", &particles.variances(), &diagonal);
    Ok(())
}

/// One step after the other with the draws of the file.
fn trajectory(
    list: &Value,
    target: &mut dyn Target,
    options: GfOptions,
    report: &mut Report,
) -> Outcome {
    let steps = items(list)?;
    let Some(first) = steps.first() else { return Err("a list without a start".into()) };
    let factor = Factor::Whole(matrix(get(first, "Gamma")?)?);
    let mut gf = own(Gf::new(numbers(get(first, "mu")?)?, factor, options))?;
    let name = report.case.clone();
    for (at, step) in steps.iter().enumerate().skip(1) {
        report.case = format!("{name} {at}");
        check_known(step, &["eps", "mu", "Gamma"], report)?;
        own(gf.step_with(target, columns(get(step, "eps")?)?.as_ref(), at))?;
        report.close("mu", gf.mean(), &numbers(get(step, "mu")?)?);
        let Factor::Whole(gamma) = gf.factor() else { return Err("another shape".into()) };
        report.close("Gamma", &by_rows(gamma.as_ref()), &numbers(get(step, "Gamma")?)?);
    }
    Ok(())
}

/// Flows of parameters.
pub fn parameters(file: &Value, _: &Path, report: &mut Report) -> Outcome {
    let known = [
        "D",
        "mu_target",
        "Lambda",
        "eta1",
        "eta2",
        "full",
        "natural_mean",
        "lowrank",
        "diagonal",
        "file",
    ];
    check_known(file, &known, report)?;
    let mut target = gaussian(file, "mu_target")?;
    let options = GfOptions {
        mean_rate: number(get(file, "eta1")?)?,
        spread_rate: number(get(file, "eta2")?)?,
        ..GfOptions::default()
    };
    for name in ["full", "natural_mean", "lowrank"] {
        report.case = name.into();
        let natural = name == "natural_mean";
        let mean_flow = if natural { MeanFlow::Natural } else { MeanFlow::Plain };
        let options = GfOptions { mean_flow, ..options.clone() };
        trajectory(get(file, name)?, &mut target, options, report)?;
    }
    report.case = "diagonal".into();
    let of = get(file, "diagonal")?;
    check_known(of, &["mu0", "sigma0", "eps", "mu1", "sigma1"], report)?;
    let factor = Factor::Diagonal(numbers(get(of, "sigma0")?)?);
    let mut gf = own(Gf::new(numbers(get(of, "mu0")?)?, factor, options))?;
    own(gf.step_with(&mut target, columns(get(of, "eps")?)?.as_ref(), 0))?;
    report.close("mu1", gf.mean(), &numbers(get(of, "mu1")?)?);
    let Factor::Diagonal(deviations) = gf.factor() else { return Err("another shape".into()) };
    report.close("sigma1", deviations, &numbers(get(of, "sigma1")?)?);
    report.case.clear();
    Ok(())
}

//! Targets of flows: logistic regression, networks, whitened Gaussian processes; runs with scaled steps.

use crate::flow::{columns, hessian, listed, particles, steps};
use crate::support::{
    Outcome, Report, by_rows, check_known, entries, get, items, matrix, number, numbers, own, text,
};
use serde_json::{Value, json};
use sparsegp::flow::targets::{Logistic, Network, Whitened, WhitenedRows};
use sparsegp::flow::{
    Control, Ended, Evaluation, Gpf, GpfOptions, Rule, RunOptions, Solver, Target, run,
};
use sparsegp::kernels::{Inputs, build};
use sparsegp::likelihoods;
use sparsegp::linalg::{Jitter, Mat};
use std::ops::ControlFlow;
use std::path::Path;

/// Logistic regression with labels of −1 and 1.
pub fn regression(file: &Value) -> Outcome<Logistic> {
    let (design, labels) = (matrix(get(file, "design")?)?, numbers(get(file, "labels")?)?);
    own(Logistic::new(design, labels, number(get(file, "prior_variance")?)?))
}

/// Values and gradients at particles.
fn evaluation(
    target: &mut dyn Target,
    x: &Mat<f64>,
    stated: &Value,
    report: &mut Report,
) -> Outcome {
    let found = own(Evaluation::of(target, x.as_ref()))?;
    report.close("phi", &found.phi, &numbers(get(stated, "phi")?)?);
    report.close("grad", &listed(found.gradient.as_ref()), &numbers(get(stated, "grad")?)?);
    Ok(())
}

pub fn logistic(file: &Value, _: &Path, report: &mut Report) -> Outcome {
    let known = ["design", "labels", "prior_variance", "particles", "full", "minibatch", "file"];
    check_known(file, &known, report)?;
    let mut target = regression(file)?;
    let x = columns(get(file, "particles")?)?;
    let full = get(file, "full")?;
    check_known(full, &["phi", "grad", "hess0"], report)?;
    report.case = "full".into();
    evaluation(&mut target, &x, full, report)?;
    let found = hessian(&mut target, x.col_as_slice(0))?;
    report.close("hess0", &found, &numbers(get(full, "hess0")?)?);
    report.case = "minibatch".into();
    let batch = get(file, "minibatch")?;
    check_known(batch, &["indices", "weight", "phi", "grad"], report)?;
    let rows = numbers(get(batch, "indices")?)?.iter().map(|i| *i as usize).collect();
    own(target.choose_rows(rows))?;
    report.close("weight", &[target.subsample().weight()], &numbers(get(batch, "weight")?)?);
    evaluation(&mut target, &x, batch, report)?;
    report.case.clear();
    Ok(())
}

pub fn network(file: &Value, _: &Path, report: &mut Report) -> Outcome {
    let known = [
        "sizes",
        "activation",
        "x",
        "classes",
        "prior_variance",
        "likelihood_scale",
        "particles",
        "phi",
        "grad",
        "packing",
        "file",
    ];
    check_known(file, &known, report)?;
    if text(get(file, "activation")?)? != "tanh" {
        return Err("the activation is unknown here".into());
    }
    let whole = |name: &str| -> Outcome<Vec<usize>> {
        Ok(numbers(get(file, name)?)?.iter().map(|v| *v as usize).collect())
    };
    let variance = number(get(file, "prior_variance")?)?;
    let x = matrix(get(file, "x")?)?;
    let target = own(Network::new(whole("sizes")?, x, whole("classes")?, variance))?;
    let mut target = own(target.scaled(number(get(file, "likelihood_scale")?)?))?;
    evaluation(&mut target, &columns(get(file, "particles")?)?, file, report)
}

/// Runs with one scale for every dimension.
pub fn scaled_runs(file: &Value, _: &Path, report: &mut Report) -> Outcome {
    let known = ["design", "labels", "prior_variance", "eta", "particles0", "runs", "file"];
    check_known(file, &known, report)?;
    let mut target = regression(file)?;
    let eta = number(get(file, "eta")?)?;
    for (name, list) in entries(get(file, "runs")?)? {
        let rule = match name.as_str() {
            "adam" => Rule::adam(),
            "adagrad" => Rule::ada_grad(),
            "rmsprop" => Rule::rms_prop(),
            _ => return Err(format!("the rule `{name}` is unknown here")),
        };
        let options =
            GpfOptions { mean_rate: eta, spread_rate: eta, rule, ..GpfOptions::default() };
        let mut gpf = own(Gpf::new(particles(get(file, "particles0")?)?, options))?;
        for (at, step) in items(list)?.iter().enumerate() {
            report.case = format!("{name} {at}");
            check_known(step, &["particles", "free_energy"], report)?;
            own(gpf.advance(&mut target, at))?;
            let x = listed(gpf.particles().x());
            report.close("particles", &x, &numbers(get(step, "particles")?)?);
            let energy = own(gpf.state(&mut target))?.free_energy;
            report.close("free_energy", &[energy], &numbers(get(step, "free_energy")?)?);
        }
    }
    report.case.clear();
    Ok(())
}

/// Steps until the particles of a Gaussian posterior have its moments.
const LONG: usize = 20_000;

/// Whitened sparse posteriors of three likelihoods.
pub fn whitened(file: &Value, _: &Path, report: &mut Report) -> Outcome {
    let known = [
        "kernel",
        "v",
        "l",
        "X",
        "Z",
        "A",
        "cond_var",
        "quadrature",
        "noise_variance",
        "eta1",
        "eta2",
        "particles0",
        "cases",
        "phi_convention",
        "gaussian_exact",
        "file",
    ];
    check_known(file, &known, report)?;
    let spec =
        json!({ "type": "rbf", "variance": get(file, "v")?, "lengthscales": get(file, "l")? });
    let (x, z) = (matrix(get(file, "X")?)?, matrix(get(file, "Z")?)?);
    let kernels = vec![own(build(&spec, Inputs::unnamed(x.ncols())))?];
    let quadrature = text(get(file, "quadrature")?)?;
    let nodes = quadrature
        .split(" nodes")
        .next()
        .and_then(|before| before.rsplit(' ').next())
        .filter(|count| count.parse::<usize>().is_ok())
        .ok_or("the number of nodes is not said")?;
    let target = |name: &str| -> Outcome<Whitened> {
        let spec = match name {
            "bernoulli" => format!("bernoulli(link=logit, rule={nodes}, slope=price)"),
            "poisson" => "poisson".into(),
            "gaussian" => {
                format!("gaussian(variance={:?})", number(get(file, "noise_variance")?)?)
            }
            _ => return Err(format!("the likelihood `{name}` is unknown here")),
        };
        let likelihood = own(likelihoods::parse(&spec))?;
        let y = matrix(get(get(get(file, "cases")?, name)?, "y")?)?;
        let (x, y) = (x.as_ref(), y.as_ref());
        let rows = WhitenedRows { x, y, extra: &[], weights: &[], mean: None };
        let none = Jitter::Absolute(0.0);
        own(Whitened::new(&kernels, &*likelihood, Some(z.as_ref()), none, rows))
    };
    let options = GpfOptions {
        mean_rate: number(get(file, "eta1")?)?,
        spread_rate: number(get(file, "eta2")?)?,
        ..GpfOptions::default()
    };
    let start = particles(get(file, "particles0")?)?;
    for (name, case) in entries(get(file, "cases")?)? {
        check_known(case, &["y", "steps"], report)?;
        let mut target = target(name)?;
        let (a, r) = target.features(0);
        report.case = name.clone();
        report.close("A", &by_rows(a.transpose()), &numbers(get(file, "A")?)?);
        report.close("cond_var", r, &numbers(get(file, "cond_var")?)?);
        let mut gpf = own(Gpf::new(start.clone(), options.clone()))?;
        steps(&mut gpf, &mut target, get(case, "steps")?, &format!("{name} "), report)?;
    }
    let exact = get(file, "gaussian_exact")?;
    check_known(exact, &["mean", "cov", "titsias_bound"], report)?;
    report.case = "gaussian_exact".into();
    let mut target = target("gaussian")?;
    let capped = GpfOptions { control: Control::Cap, ..options };
    let mut gpf = own(Gpf::new(start, capped))?;
    let options = RunOptions { steps: LONG, every: LONG, ..RunOptions::default() };
    let outcome = own(run(&mut gpf, &mut target, &options, &mut |_, _| ControlFlow::Continue(())))?;
    report.require("ended", outcome.ended == Ended::AllSteps, "the run did not come to its end");
    let stationarity = own(gpf.state(&mut target))?.field.residual;
    report.require(
        "residual",
        stationarity < 1e-18,
        &format!("{stationarity:e} is not an optimum"),
    );
    report.close("mean", &gpf.particles().mean(), &numbers(get(exact, "mean")?)?);
    let c = gpf.particles().covariance();
    report.close("cov", &by_rows(c.as_ref()), &numbers(get(exact, "cov")?)?);
    let energy = own(gpf.state(&mut target))?.free_energy;
    let bound = 0.5 * target.dim() as f64 - energy;
    report.close("titsias_bound", &[bound], &numbers(get(exact, "titsias_bound")?)?);
    report.case.clear();
    Ok(())
}

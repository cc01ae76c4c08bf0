//! Deep Gaussian processes without Monte Carlo error, steps, identities and starts: the rest of the family `deep`.

use crate::deep_problem::{Problem, layer};
use crate::inverse_free::Rule;
use crate::support::{
    Outcome, Report, by_rows, check_known, entries, get, items, matrix, numbers, own, paired,
};
use serde_json::{Value, json};
use sparsegp::data::source::Rows;
use sparsegp::deep::{
    Batch, Chain, Deep, Draws, Layer, Noise, Paths, Want, Work, projected, through,
};
use sparsegp::kernels::Tape;
use sparsegp::likelihoods::quadrature::Nodes;
use sparsegp::linalg::Mat;
use std::path::Path;

/// Nodes for hidden layers of one output: of every combination of `points` for each layer its values and weight.
fn grid(points: usize, layers: usize) -> Vec<(Vec<f64>, f64)> {
    let nodes = Nodes::gauss_hermite(points);
    let mut all = vec![(Vec::new(), 1.0)];
    for _ in 0..layers {
        let longer = |(x, w): &(Vec<f64>, f64)| {
            let more = nodes.x.iter().zip(&nodes.w);
            more.map(|(y, v)| ([x.as_slice(), &[*y]].concat(), w * v)).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

/// The same noise for so many rows.
fn constant(values: &[f64], rows: usize) -> Vec<Draws> {
    let one = |v: &f64| Draws { rows: Mat::from_fn(rows, 1, |_, _| *v), functions: Vec::new() };
    values.iter().map(one).collect()
}

/// ℓ of every row at constant noise, with the factor N/n.
fn by_row(model: &Deep, problem: &Problem, values: &[f64]) -> Outcome<Vec<f64>> {
    let (n, noise) = (problem.x.nrows(), constant(values, 1));
    let mut work = Work::default();
    (0..n)
        .map(|i| {
            let rows =
                Rows::plain(i, problem.x.as_ref().subrows(i, 1), problem.y.as_ref().subrows(i, 1));
            let population = problem.population / n as f64;
            let batch = Batch { rows, population, samples: 1 };
            let found = model.evaluate(&batch, &Noise::Given(&noise), Want::default(), &mut work);
            Ok(own(found)?.data)
        })
        .collect()
}

/// Data term in expectation over hidden noise, and the variance of its estimate from one sample.
fn integrated(model: &Deep, problem: &Problem, points: usize) -> Outcome<(f64, f64)> {
    let n = problem.x.nrows();
    let (mut first, mut second) = (vec![0.0; n], vec![0.0; n]);
    for (values, weight) in grid(points, model.layers.len() - 1) {
        for (i, value) in by_row(model, problem, &values)?.into_iter().enumerate() {
            first[i] += weight * value;
            second[i] += weight * value * value;
        }
    }
    let variance = first.iter().zip(&second).map(|(m, s)| s - m * m).sum();
    Ok((first.iter().sum(), variance))
}

fn kl_of(model: &Deep) -> Outcome<Vec<f64>> {
    model.layers.iter().map(|layer| own(layer.kl())).collect()
}

/// The file `quadrature`; estimates from samples have the mean and the variance that it states.
pub fn quadrature(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    const POINTS: usize = 24;
    let rule = Rule::read(json)?;
    let inputs = get(json, "inputs")?;
    check_known(inputs, &["X", "y", "num_data", "cases"], report)?;
    for (name, case) in entries(get(inputs, "cases")?)? {
        report.case = name.clone();
        check_known(case, &["layers", "likelihood"], report)?;
        let problem = Problem::read(inputs, case, report)?;
        let model = &problem.model;
        let (data, variance) = integrated(model, &problem, POINTS)?;
        let kl = kl_of(model)?;
        let bound = data - kl.iter().sum::<f64>();
        for (field, reference) in entries(get(get(json, "outputs")?, name)?)? {
            let found = match field.as_str() {
                "bound" => vec![bound],
                "data" => vec![data],
                "kl" => kl.clone(),
                "variance_of_data_per_sample" => vec![variance],
                "log_density" => {
                    let predictor = own(model.predictor())?;
                    let mut sum = vec![0.0; problem.x.nrows()];
                    for (values, weight) in grid(POINTS, model.layers.len() - 1) {
                        let noise = constant(&values, problem.x.nrows());
                        let paths = Paths::Given(&noise);
                        let one = own(predictor.predict(problem.x.as_ref(), 1, &paths))?;
                        let log = own(one.log_density(problem.y.as_ref(), &[]))?;
                        sum.iter_mut().zip(log).for_each(|(s, l)| *s += weight * l.exp());
                    }
                    sum.iter().map(|s| s.ln()).collect()
                }
                other => {
                    report.fail(other, "an output that the check does not know");
                    continue;
                }
            };
            rule.close(field, &found, reference, report)?;
        }
        let samples = 2000;
        let batch = Batch { samples, ..problem.batch() };
        let noise = Noise::Streams { seed: 3, step: 0 };
        let estimate = own(model.evaluate(&batch, &noise, Want::default(), &mut Work::default()))?;
        let error = (variance / samples as f64).sqrt();
        let away = (estimate.value - bound).abs() / error;
        report.require("samples", away < 4.0, &format!("{away} standard errors away"));
    }
    Ok(())
}

/// The file `ordering`: with R layers the bound may be above that with L layers.
pub fn ordering(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    const POINTS: usize = 60;
    let rule = Rule::read(json)?;
    let inputs = get(json, "inputs")?;
    check_known(inputs, &["X", "y", "num_data", "layers", "likelihood", "mean_weights"], report)?;
    let relaxed = Problem::read(inputs, inputs, report)?;
    // L with the same λ and weights of the mean
    let all = items(get(inputs, "layers")?)?;
    let mut first = json!({ "lam": all[0]["q"]["lam"] });
    let lambda = numbers(get(&first, "lam")?)?;
    let group = &relaxed.model.layers[0].groups[0];
    let m = lambda.len();
    let mut kuu = Mat::zeros(m, m);
    group.inducing.kuu(kuu.as_mut(), &mut Tape::off());
    (0..m).for_each(|i| kuu[(i, i)] += lambda[i]);
    let mean = &kuu * matrix(get(inputs, "mean_weights")?)?;
    first["m"] = (0..m)
        .map(|i| (0..mean.ncols()).map(|j| mean[(i, j)]).collect::<Vec<f64>>())
        .collect::<Vec<_>>()
        .into();
    let mut layers = vec![layer(&all[0], Some(("L", &first)), report)?];
    for json in &all[1..] {
        layers.push(layer(json, None, report)?);
    }
    let usual = Problem::with(layers, inputs, inputs)?;
    let mut kls = Vec::new();
    for (name, problem) in [("r", &relaxed), ("l", &usual)] {
        let (data, _) = integrated(&problem.model, problem, POINTS)?;
        let kl = kl_of(&problem.model)?;
        let outputs = get(json, "outputs")?;
        let bound = data - kl.iter().sum::<f64>();
        rule.close("bound", &[bound], get(outputs, &format!("bound_{name}"))?, report)?;
        rule.close("data", &[data], get(outputs, &format!("data_{name}"))?, report)?;
        rule.close("kl", &kl, get(outputs, &format!("kl_{name}"))?, report)?;
        kls.push(kl);
    }
    report.require("KL", kls[0][0] >= kls[1][0], "that of R is below that of L");
    Ok(())
}

/// The file `natural`: steps of every layer, each from the same state.
pub fn natural(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    let rule = Rule::read(json)?;
    let inputs = get(json, "inputs")?;
    check_known(inputs, &["X", "y", "num_data", "S", "cases"], report)?;
    for (name, case) in entries(get(inputs, "cases")?)? {
        report.case = name.clone();
        check_known(case, &["layers", "likelihood", "eps"], report)?;
        let problem = Problem::read(inputs, case, report)?;
        let outputs = get(get(json, "outputs")?, name)?;
        check_known(outputs, &["layers", "bound_after_last_rho_1"], report)?;
        let noise = Noise::Given(&problem.draws);
        let batch = problem.batch();
        let last = problem.model.layers.len() - 1;
        let layers = paired(&problem.model.layers, get(outputs, "layers")?)?;
        for (l, (_, steps)) in layers.into_iter().enumerate() {
            for (step, reference) in entries(steps)? {
                let rate = step.strip_prefix("rho_").and_then(|rate| rate.parse().ok());
                let rate: f64 = rate.ok_or_else(|| format!("the unknown step {step}"))?;
                let mut model = problem.model.clone();
                let mut work = Work::default();
                let stepped = own(model.natural_step(l, rate, &batch, &noise, &mut work))?;
                report.require("rate", stepped.rate == rate, "the step was halved");
                check_known(reference, &["m", "S"], report)?;
                let q = &model.layers[l].groups[0].q;
                let covariances = (0..q.latents()).flat_map(|p| {
                    let root = q.root(p);
                    by_rows((&root * root.transpose()).as_ref())
                });
                rule.close(step, &by_rows(q.mean().as_ref()), get(reference, "m")?, report)?;
                rule.close(step, &covariances.collect::<Vec<_>>(), get(reference, "S")?, report)?;
                if l == last && rate == 1.0 {
                    let want = Want { gradient: true, ..Want::default() };
                    let found = own(model.evaluate(&batch, &noise, want, &mut work))?;
                    let reference = get(outputs, "bound_after_last_rho_1")?;
                    rule.close("bound_after_last_rho_1", &[found.value], reference, report)?;
                    report.require("rise", found.value >= stepped.before.value, "the bound fell");
                }
            }
        }
    }
    Ok(())
}

/// The file `identities`: one layer is SVGP; one q in four ways.
pub fn identities(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    let rule = Rule::read(json)?;
    let inputs = get(json, "inputs")?;
    check_known(inputs, &["X", "y", "num_data", "S", "cases"], report)?;
    for (name, case) in entries(get(inputs, "cases")?)? {
        report.case = name.clone();
        const KNOWN: &[&str] = &["layers", "likelihood", "eps", "as_m", "as_w", "as_r"];
        check_known(case, KNOWN, report)?;
        let outputs = get(get(json, "outputs")?, name)?;
        let all = items(get(case, "layers")?)?;
        let others =
            entries(case)?.iter().filter_map(|(key, q)| Some((key.strip_prefix("as_")?, q)));
        let mut ways: Vec<(String, Vec<Layer>)> = Vec::new();
        for other in std::iter::once(None).chain(others.map(Some)) {
            let kind = other.map(|(kind, _)| kind.to_uppercase());
            let first = match (&kind, other) {
                (Some(kind), Some((_, q))) => layer(&all[0], Some((kind, q)), report)?,
                _ => layer(&all[0], None, report)?,
            };
            let rest = all[1..].iter().map(|json| layer(json, None, report));
            let mut layers = vec![first];
            layers.extend(rest.collect::<Outcome<Vec<_>>>()?);
            ways.push((kind.unwrap_or_else(|| "given".into()), layers));
        }
        for (way, layers) in ways {
            report.case = format!("{name} {way}");
            let problem = Problem::with(layers, inputs, case)?;
            let found = problem.evaluate()?;
            for (field, reference) in entries(outputs)? {
                let own_value = match field.as_str() {
                    "bound" => vec![found.value],
                    "kl" => found.kl.clone(),
                    "f" => by_rows(found.layers[0].sample.as_ref()),
                    "X_gradient" => by_rows(found.x.as_ref().ok_or("no gradient")?.as_ref()),
                    "f_mean" | "f_var" => {
                        let predictor = own(problem.model.predictor())?;
                        let paths = Paths::Streams { seed: 0 };
                        let mixture = own(predictor.predict(problem.x.as_ref(), 5, &paths))?;
                        let (mean, variance) = mixture.functions();
                        by_rows(if field == "f_mean" { mean.as_ref() } else { variance.as_ref() })
                    }
                    other => {
                        report.fail(other, "an output that the check does not know");
                        continue;
                    }
                };
                rule.close(field, &own_value, reference, report)?;
            }
        }
    }
    Ok(())
}

/// The file `initial`: mean functions and inducing points through a chain.
pub fn initial(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    let rule = Rule::read(json)?;
    let inputs = get(json, "inputs")?;
    check_known(inputs, &["X", "Z", "widths"], report)?;
    let (x, z) = (matrix(get(inputs, "X")?)?, matrix(get(inputs, "Z")?)?);
    let widths: Vec<usize> = numbers(get(inputs, "widths")?)?.iter().map(|w| *w as usize).collect();
    report.require("widths", widths.first() == Some(&x.ncols()), "the first is that of X");
    let hidden = &widths[1..widths.len() - 1];
    let Chain { weights, points } = own(through(x.as_ref(), z.as_ref(), hidden, false))?;
    for (field, reference) in entries(get(json, "outputs")?)? {
        let at = |prefix: &str| field.strip_prefix(prefix).and_then(|l| l.parse::<usize>().ok());
        let found = match (at("weights_of_layer_"), at("inducing_of_layer_")) {
            (Some(l), _) => weights.get(l),
            (_, Some(l)) => points.get(l),
            _ => None,
        };
        match found {
            Some(found) => rule.close(field, &by_rows(found.as_ref()), reference, report)?,
            None => report.fail(field, "an output that the check does not know"),
        }
    }
    let first = own(projected(x.as_ref(), hidden[0]))?;
    report.require("first", first == weights[0], "the first weights are of the inputs");
    Ok(())
}

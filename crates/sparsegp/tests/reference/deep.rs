//! Deep Gaussian processes at fixed noise: the family `deep`.

use crate::deep_problem::{POINTS, Problem, draws, layer};
use crate::inverse_free::Rule;
use crate::problem::part;
use crate::support::{
    self, Outcome, Report, by_rows, check_known, entries, get, items, matrix, named, number,
    numbers, own, paired,
};
use serde_json::Value;
use sparsegp::deep::{Evaluation, LastBound, Mixture, Paths, Slopes};
use sparsegp::likelihoods::Likelihood;
use sparsegp::likelihoods::quadrature::Nodes;
use sparsegp::linalg::Mat;
use sparsegp::params::{Named, Param};
use std::f64::consts::TAU;
use std::path::Path;

/// Gradients of a layer's parameters by the files' names. `params` are the layer's with their gradients.
fn layer_gradients(
    params: &[(String, Vec<f64>)],
    reference: &Value,
    prefix: &str,
    rule: &Rule,
    report: &mut Report,
) -> Outcome {
    let of = |path: &str| named(params, path).cloned();
    for (key, value) in entries(reference)? {
        let name = format!("{prefix}{key}");
        match key.as_str() {
            "kernel" => kernel_gradients(&of, "kernel", value, &name, rule, report)?,
            "kernels" => {
                for (p, value) in items(value)?.iter().enumerate() {
                    kernel_gradients(&of, &format!("kernels[{p}]"), value, &name, rule, report)?;
                }
            }
            "Z" => rule.close(&name, &of("inducing.points")?, value, report)?,
            "Zs" => {
                let count = items(value)?.len();
                let all = (0..count).map(|p| of(&format!("inducing.points[{p}]")));
                rule.close(&name, &all.collect::<Outcome<Vec<_>>>()?.concat(), value, report)?;
            }
            "v" => rule.close(&name, &of("q.v")?, value, report)?,
            "q" => {
                for (key, value) in entries(value)? {
                    let ours = match key.as_str() {
                        "m" => "mu",
                        "sqrt" => "sqrt",
                        "lam" => "lambda",
                        "T_sqrt" => "t_sqrt",
                        other => return Err(format!("a gradient of the unknown `q.{other}`")),
                    };
                    let found = match of(&format!("q.{ours}")) {
                        Ok(found) => found,
                        // of several groups
                        Err(_) => {
                            let each = (0..).map_while(|p| of(&format!("q[{p}].{ours}")).ok());
                            let each: Vec<Vec<f64>> = each.collect();
                            if key == "m" {
                                let points = each.first().ok_or("no q")?.len();
                                by_rows(
                                    Mat::from_fn(points, each.len(), |i, p| each[p][i]).as_ref(),
                                )
                            } else {
                                each.concat()
                            }
                        }
                    };
                    rule.close(&format!("{name}.{key}"), &found, value, report)?;
                }
            }
            "mean" => {
                for (key, value) in entries(value)? {
                    let found = of(&format!("mean.{key}"))?;
                    rule.close(&format!("{name}.{key}"), &found, value, report)?;
                }
            }
            other => return Err(format!("a gradient of the unknown `{other}`")),
        }
    }
    Ok(())
}

fn kernel_gradients(
    of: &impl Fn(&str) -> Outcome<Vec<f64>>,
    path: &str,
    reference: &Value,
    name: &str,
    rule: &Rule,
    report: &mut Report,
) -> Outcome {
    for (key, value) in entries(reference)? {
        if key == "kernels" {
            for (i, child) in items(value)?.iter().enumerate() {
                kernel_gradients(of, &format!("{path}.kernels[{i}]"), child, name, rule, report)?;
            }
            continue;
        }
        rule.close(&format!("{name} {path}.{key}"), &of(&format!("{path}.{key}"))?, value, report)?;
    }
    Ok(())
}

/// Parameters with their parts of a gradient, matrices row by row.
pub fn parts(params: &[Named<'_>], gradient: &[f64]) -> Vec<(String, Vec<f64>)> {
    let mut rest = gradient;
    let one = |(path, param): &(String, &Param)| {
        let (own, tail) = rest.split_at(param.len());
        rest = tail;
        (path.clone(), part(param, own))
    };
    params.iter().map(one).collect()
}

/// The file `layer`.
pub fn layers(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    let rule = Rule::read(json)?;
    let inputs = get(json, "inputs")?;
    let x = matrix(get(inputs, "X")?)?;
    for (name, case) in entries(get(inputs, "cases")?)? {
        report.case = name.clone();
        check_known(case, &["layer", "a", "b", "c", "kappa", "eps"], report)?;
        let layer = layer(get(case, "layer")?, None, report)?;
        let marginals = own(layer.forward(x.as_ref()))?;
        let slopes = Slopes {
            a: matrix(get(case, "a")?)?,
            b: matrix(get(case, "b")?)?,
            c: matrix(get(case, "c")?)?,
        };
        let pulled = own(layer.pull(x.as_ref(), &slopes, number(get(case, "kappa")?)?))?;
        let eps = matrix(get(case, "eps")?)?;
        for (field, reference) in entries(get(get(json, "outputs")?, name)?)? {
            let found = match field.as_str() {
                "mean" => by_rows(marginals.mean.as_ref()),
                "s" => by_rows(marginals.s.as_ref()),
                "r" => by_rows(marginals.r.as_ref()),
                "kl" => vec![own(layer.kl())?],
                "sample" => by_rows(
                    Mat::from_fn(eps.nrows(), eps.ncols(), |i, p| {
                        let variance = marginals.s[(i, p)] + marginals.r[(i, p)];
                        marginals.mean[(i, p)] + variance.sqrt() * eps[(i, p)]
                    })
                    .as_ref(),
                ),
                "gradients" => {
                    for (key, reference) in entries(reference)? {
                        match key.as_str() {
                            "X" => {
                                rule.close("X", &by_rows(pulled.x.as_ref()), reference, report)?
                            }
                            "layer" => {
                                let params = sparsegp::params::listed(|v| layer.visit(v));
                                let params = parts(&params, &pulled.gradient);
                                layer_gradients(&params, reference, "", &rule, report)?;
                            }
                            other => report.fail(other, "an output that the check does not know"),
                        }
                    }
                    continue;
                }
                other => {
                    report.fail(other, "an output that the check does not know");
                    continue;
                }
            };
            rule.close(field, &found, reference, report)?;
        }
    }
    Ok(())
}

/// The file `composition`: a hidden layer whose variance is 0.
pub fn composition(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    let rule = Rule::read(json)?;
    let inputs = get(json, "inputs")?;
    check_known(inputs, &["X", "layers"], report)?;
    let mut rows = matrix(get(inputs, "X")?)?;
    let all = items(get(inputs, "layers")?)?;
    let outputs = get(json, "outputs")?;
    check_known(outputs, &["hidden", "f_mean", "f_var"], report)?;
    for (l, json) in all.iter().enumerate() {
        let marginals = own(layer(json, None, report)?.forward(rows.as_ref()))?;
        let (s, r) = (&marginals.s, &marginals.r);
        if l + 1 < all.len() {
            rule.close(
                "hidden",
                &by_rows(marginals.mean.as_ref()),
                get(outputs, "hidden")?,
                report,
            )?;
            let largest = (s + r).norm_max();
            report.require("variance", largest < 1e-10, "it is not 0");
            rows = marginals.mean;
            continue;
        }
        let v = Mat::from_fn(s.nrows(), s.ncols(), |i, p| s[(i, p)] + r[(i, p)]);
        rule.close("f_mean", &by_rows(marginals.mean.as_ref()), get(outputs, "f_mean")?, report)?;
        rule.close("f_var", &by_rows(v.as_ref()), get(outputs, "f_var")?, report)?;
    }
    Ok(())
}

/// What files with a rule of few points integrate.
const BY_POINTS: &[&str] = &["log_density", "mean_of_log_densities", "probability"];

/// Probabilities of classes by a rule over one normal.
struct Integrated {
    /// Of robust max: the probability of any other class than the largest.
    epsilon: Option<f64>,
}

impl Integrated {
    fn read(likelihood: &dyn Likelihood) -> Option<Self> {
        match likelihood.name() {
            "bernoulli" => Some(Self { epsilon: None }),
            "robust-max" => Some(Self { epsilon: Some(likelihood.params()[0].1.scalar()) }),
            _ => None,
        }
    }

    /// Probabilities of all classes.
    fn probabilities(&self, nodes: &Nodes, mean: &[f64], variance: &[f64]) -> Vec<f64> {
        let classes = mean.len();
        let integral = |c: usize, g: &dyn Fn(f64) -> f64| -> f64 {
            let at = |x: &f64| g(mean[c] + variance[c].sqrt() * x);
            nodes.x.iter().zip(&nodes.w).map(|(x, w)| w * at(x)).sum()
        };
        let Some(epsilon) = self.epsilon else {
            let one = integral(0, &|f| 1.0 / (1.0 + (-f).exp()));
            return vec![1.0 - one, one];
        };
        let others = epsilon / (classes as f64 - 1.0);
        let one = |c: usize| {
            let largest = integral(c, &|f| {
                let below = |k: usize| 0.5 * libm::erfc((mean[k] - f) / (2.0 * variance[k]).sqrt());
                (0..classes).filter(|k| *k != c).map(below).product()
            });
            (1.0 - epsilon) * largest + others * (1.0 - largest)
        };
        (0..classes).map(one).collect()
    }

    fn compare(
        &self,
        mixture: &Mixture<'_>,
        y: &Mat<f64>,
        reference: &Value,
        rule: &Rule,
        report: &mut Report,
    ) -> Outcome {
        let step = 0.01;
        let x: Vec<f64> = (-1200..=1200).map(|i| step * f64::from(i)).collect();
        let w = x.iter().map(|x| step * (-0.5 * x * x).exp() / TAU.sqrt()).collect();
        let own_density = own(mixture.log_density(y.as_ref(), &[]))?;
        let own_probabilities = own(mixture.probabilities())?;
        for (nodes, few) in [(Nodes::gauss_hermite(POINTS), true), (Nodes { x, w }, false)] {
            let (mut all, mut density, mut mean) = (Vec::new(), Vec::new(), Vec::new());
            for i in 0..y.nrows() {
                let row = |a: &Mat<f64>| (0..a.ncols()).map(|l| a[(i, l)]).collect::<Vec<_>>();
                let each = mixture.means.iter().zip(&mixture.variances);
                let each = each.map(|(m, v)| self.probabilities(&nodes, &row(m), &row(v)));
                let each: Vec<Vec<f64>> = each.collect();
                let share = 1.0 / each.len() as f64;
                let of = |c: usize| each.iter().map(|p| share * p[c]).sum::<f64>();
                let class = y[(i, 0)] as usize;
                density.push(of(class).ln());
                mean.push(each.iter().map(|p| share * p[class].ln()).sum());
                let first = usize::from(self.epsilon.is_none());
                all.extend((first..each[0].len()).map(of));
            }
            if few {
                rule.close(
                    "log_density by points",
                    &density,
                    get(reference, "log_density")?,
                    report,
                )?;
                rule.close("probability by points", &all, get(reference, "probability")?, report)?;
                if let Some(theirs) = reference.get("mean_of_log_densities") {
                    rule.close("mean_of_log_densities by points", &mean, theirs, report)?;
                }
            } else {
                let first = own_probabilities.ncols() - all.len() / y.nrows();
                let own = own_probabilities.as_ref();
                let own = by_rows(own.subcols(first, own.ncols() - first));
                report.close_to("probability", &own, &all, 1e-9);
                report.close_to("log_density", &own_density, &density, 1e-9);
            }
        }
        Ok(())
    }
}

/// A prediction by the files' names.
pub fn predictions(
    problem: &Problem,
    case: &Value,
    reference: &Value,
    rule: &Rule,
    report: &mut Report,
) -> Outcome {
    check_known(case, &["X", "y", "S", "eps"], report)?;
    let (x, y) = (matrix(get(case, "X")?)?, matrix(get(case, "y")?)?);
    let samples = number(get(case, "S")?)? as usize;
    let draws = draws(get(case, "eps")?)?;
    let predictor = own(problem.model.predictor())?;
    let mixture = own(predictor.predict(x.as_ref(), samples, &Paths::Given(&draws)))?;
    // where the files integrate by few points, their numbers are held against these, and the library's against many points
    let integrated = Integrated::read(&*problem.model.likelihood);
    if let Some(integrated) = &integrated {
        integrated.compare(&mixture, &y, reference, rule, report)?;
    }
    let stacked = |all: &[Mat<f64>]| all.iter().flat_map(|a| by_rows(a.as_ref())).collect();
    let (f_mean, f_var) = mixture.functions();
    for (field, value) in entries(reference)? {
        if integrated.is_some() && BY_POINTS.contains(&field.as_str()) {
            continue;
        }
        let found: Vec<f64> = match field.as_str() {
            "sample_mean" => stacked(&mixture.means),
            "sample_var" => stacked(&mixture.variances),
            "f_mean" => by_rows(f_mean.as_ref()),
            "f_var" => by_rows(f_var.as_ref()),
            "y_mean" => by_rows(own(mixture.observations(&[]))?.0.as_ref()),
            "y_var" => by_rows(own(mixture.observations(&[]))?.1.as_ref()),
            "log_density" => own(mixture.log_density(y.as_ref(), &[]))?,
            "mean_of_log_densities" => {
                let mut sum = vec![0.0; x.nrows()];
                for t in 0..samples {
                    let mut one = mixture.clone();
                    one.means = vec![mixture.means[t].clone()];
                    one.variances = vec![mixture.variances[t].clone()];
                    let log = own(one.log_density(y.as_ref(), &[]))?;
                    sum.iter_mut().zip(log).for_each(|(s, v)| *s += v / samples as f64);
                }
                sum
            }
            "probability" => {
                let all = own(mixture.probabilities())?;
                // of two classes only that of the second
                let first = usize::from(all.ncols() == 2);
                by_rows(all.as_ref().subcols(first, all.ncols() - first))
            }
            "quantile_levels" => continue,
            "y_quantiles" => {
                let levels = numbers(get(reference, "quantile_levels")?)?;
                stacked(&own(mixture.quantiles(&[], &levels))?)
            }
            other => {
                report.fail(other, "an output that the check does not know");
                continue;
            }
        };
        rule.close(&format!("prediction {field}"), &found, value, report)?;
    }
    Ok(())
}

/// Files of models at fixed noise: bound, gradients, what layers give, predictions.
pub fn models(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    let rule = Rule::read(json)?;
    let inputs = get(json, "inputs")?;
    check_known(inputs, &["X", "y", "num_data", "S", "cases"], report)?;
    for (name, case) in entries(get(inputs, "cases")?)? {
        report.case = name.clone();
        check_known(case, &["layers", "likelihood", "eps", "prediction", "bound", "y"], report)?;
        let problem = Problem::read(inputs, case, report)?;
        let found = problem.evaluate()?;
        let outputs = get(get(json, "outputs")?, name)?;
        for (field, reference) in entries(outputs)? {
            match field.as_str() {
                "bound" => rule.close(field, &[found.value], reference, report)?,
                "data" => rule.close(field, &[found.data], reference, report)?,
                "kl" => rule.close(field, &found.kl, reference, report)?,
                "penalty" => rule.close(field, &[found.penalty], reference, report)?,
                "bound_hensman" => {
                    let mut usual = problem.model.clone();
                    usual.bound = LastBound::Expectation;
                    let usual = Problem {
                        model: usual,
                        draws: problem.draws.clone(),
                        ..Problem::read(inputs, case, report)?
                    };
                    let value = usual.evaluate()?.value;
                    rule.close(field, &[value], reference, report)?;
                    report.require("order", value <= found.value, "the tighter bound is lower");
                }
                "layers" => {
                    for (own, reference) in paired(&found.layers, reference)? {
                        for (key, reference) in entries(reference)? {
                            let own = match key.as_str() {
                                "mean" => &own.mean,
                                "var" => &own.variance,
                                "f" => &own.sample,
                                other => return Err(format!("a layer's unknown `{other}`")),
                            };
                            rule.close(key, &by_rows(own.as_ref()), reference, report)?;
                        }
                    }
                }
                "slopes" => {
                    for (own, reference) in paired(&found.layers, reference)? {
                        for (key, reference) in entries(reference)? {
                            let own = match key.as_str() {
                                "a" => &own.a,
                                "b" => &own.b,
                                "c" => &own.c,
                                other => return Err(format!("the unknown slope `{other}`")),
                            };
                            rule.close(
                                &format!("slope {key}"),
                                &by_rows(own.as_ref()),
                                reference,
                                report,
                            )?;
                        }
                    }
                }
                "gradients" => gradients(&problem, &found, reference, &rule, report)?,
                "prediction" => {
                    predictions(&problem, get(case, "prediction")?, reference, &rule, report)?;
                }
                other => report.fail(other, "an output that the check does not know"),
            }
        }
    }
    Ok(())
}

pub fn gradients(
    problem: &Problem,
    found: &Evaluation,
    reference: &Value,
    rule: &Rule,
    report: &mut Report,
) -> Outcome {
    let all = parts(&problem.model.params(), &found.gradient);
    let of = |prefix: &str| -> Vec<(String, Vec<f64>)> {
        let own = |(path, values): &(String, Vec<f64>)| {
            path.strip_prefix(prefix).map(|path| (path.to_owned(), values.clone()))
        };
        all.iter().filter_map(own).collect()
    };
    for (key, reference) in entries(reference)? {
        match key.as_str() {
            "X" => {
                let x = found.x.as_ref().ok_or("no gradient of inputs")?;
                rule.close("X", &by_rows(x.as_ref()), reference, report)?;
            }
            "layers" => {
                for (l, (_, reference)) in
                    paired(&problem.model.layers, reference)?.into_iter().enumerate()
                {
                    let params = of(&format!("layers[{l}]."));
                    layer_gradients(&params, reference, &format!("layer {l} "), rule, report)?;
                }
            }
            "likelihood" => {
                let own = of("likelihood.");
                for (key, reference) in entries(reference)? {
                    rule.close(key, named(&own, key)?, reference, report)?;
                }
            }
            other => report.fail(other, "an output that the check does not know"),
        }
    }
    Ok(())
}

/// The list of the family's files.
pub fn index(json: &Value, folder: &Path, report: &mut Report) -> Outcome {
    support::index("deep", json, folder, report)
}

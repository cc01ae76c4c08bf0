//! Augmented likelihoods: sites, coordinate ascent with and without inducing points, adjoints.

use crate::batch::Batch;
use crate::probe::Spy;
use crate::support::{
    Outcome, Report, by_rows, check_known, entries, get, items, matrix, number, numbers, own,
};
use serde_json::{Value, json};
use sparsegp::data::{InMemory, Source};
use sparsegp::engine::{Cpu, Want};
use sparsegp::likelihoods::augmented::{Augmented, Form};
use sparsegp::likelihoods::custom::{Custom, LogProb};
use sparsegp::likelihoods::dual::Real;
use sparsegp::likelihoods::{self, Likelihood, Slopes, Target};
use sparsegp::linalg::{Accum, Cholesky, Jitter, Mat, Par, gemm, product};
use sparsegp::means;
use sparsegp::methods::{Step, Tvgp, Uncollapsed, find};
use sparsegp::model::{Model, inducing_param};
use sparsegp::variational::{Tying, Variational};
use std::path::Path;

/// A likelihood by the files' names, with what a row brings and how its targets are written here.
pub struct Own {
    pub likelihood: Box<dyn Likelihood>,
    pub extra: f64,
    /// Whether the file's classes are ±1.
    signs: bool,
    /// The files' names of the parameters, in the order of the library's.
    params: Vec<String>,
}

impl Own {
    pub fn read(name: &str, parameters: &Value) -> Outcome<Self> {
        let given = entries(parameters)?;
        let value = |key: &str| number(get(parameters, key)?);
        let mut extra = None;
        let (spec, signs, params): (Value, bool, &[&str]) = match name {
            "logistic" => {
                (json!({"type": "bernoulli", "link": "logit", "rule": "trapezoid"}), true, &[])
            }
            "binomial" => {
                extra = Some(value("n")?);
                (json!({"type": "binomial", "rule": "trapezoid"}), false, &[])
            }
            // σ(t)ʸσ(−t)ʳ has t = f where the exposure is r
            "negbin" => {
                extra = Some(value("r")?);
                let dispersion = 1.0 / value("r")?;
                (
                    json!({"type": "negative-binomial", "dispersion": dispersion, "rule": "trapezoid"}),
                    false,
                    &["r"],
                )
            }
            "gaussian" => {
                extra = Some(0.0);
                (json!({"type": "gaussian", "variance": value("s2")?}), false, &["s2"])
            }
            "studentt" => (
                json!({"type": "student-t", "df": value("nu")?, "scale": value("sig")?}),
                false,
                &["nu", "sig"],
            ),
            "laplace" => (json!({"type": "laplace", "scale": value("beta")?}), false, &["beta"]),
            "matern32" => (json!({"type": "matern32", "scale": value("rho")?}), false, &["rho"]),
            "bsvm" => (json!({"type": "svm"}), true, &[]),
            "logistic_noise" => (json!({"type": "logistic", "scale": value("s")?}), false, &["s"]),
            "pseudo_huber" => (
                json!({"type": "pseudo-huber", "delta": value("d")?, "scale": value("sc")?}),
                false,
                &["d", "sc"],
            ),
            "poisson" => (
                json!({"type": "poisson-logistic", "rate": value("lam")?, "rule": "trapezoid"}),
                false,
                &["lam"],
            ),
            other => return Err(format!("the likelihood `{other}` is not known")),
        };
        let known: Vec<&str> = params.iter().copied().chain(["n"]).collect();
        if let Some(key) = given.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(format!("{name} has the unknown parameter `{key}`"));
        }
        let likelihood = own(likelihoods::build(&spec))?;
        let params = params.iter().map(|p| (*p).to_owned()).collect();
        Ok(Self { likelihood, extra: extra.unwrap_or(1.0), signs, params })
    }

    pub fn augmented(&self) -> Outcome<&dyn Augmented> {
        self.likelihood.augmented().ok_or_else(|| "no local variables".into())
    }

    /// A target as the library writes it.
    pub fn y(&self, y: f64) -> f64 {
        if self.signs { 0.5 * (y + 1.0) } else { y }
    }

    pub fn target(&self, y: f64) -> Target {
        Target { y: self.y(y), extra: self.extra }
    }

    /// ℓ with its slopes: value, by mean, by variance, by the parameters.
    fn bound(&self, target: Target, m: f64, v: f64) -> Outcome<(f64, f64, f64, Vec<f64>)> {
        let (mut a, mut b) = ([0.0], [0.0]);
        let mut params = vec![0.0; self.likelihood.num_params()];
        let out = Slopes { mean: &mut a, variance: &mut b, params: &mut params };
        let value = self.augmented()?.expect(target, &[m], &[v], out);
        Ok((value, a[0], b[0], params))
    }
}

/// What a super-Gaussian density is made of, at a squared h.
#[derive(Default)]
struct Pieces {
    form: Option<Form>,
    log_phi: f64,
    mean: f64,
    variance: f64,
}

fn pieces(own: &Own, target: Target, square: impl Fn(&Form) -> f64) -> Outcome<Pieces> {
    let mut found = Pieces::default();
    let of = own.augmented()?.super_gaussian().ok_or("not super-Gaussian")?;
    of.with(target, &mut |form, mixing| {
        let r = square(form);
        found = Pieces {
            form: Some(*form),
            log_phi: mixing.log_phi(r),
            mean: mixing.mean(r),
            variance: mixing.variance(r),
        };
    });
    Ok(found)
}

/// E[g(f)], f ~ N(m, v), by Simpson's rule between the places where g has a kink.
fn mean_of_pieces(m: f64, v: f64, kinks: &[f64], g: impl Fn(f64) -> f64) -> f64 {
    let (low, high) = (m - 9.0 * v.sqrt(), m + 9.0 * v.sqrt());
    let mut ends = vec![low];
    ends.extend(kinks.iter().copied().filter(|k| low < *k && *k < high));
    ends.push(high);
    let density =
        |f: f64| (-0.5 * (f - m) * (f - m) / v).exp() / (std::f64::consts::TAU * v).sqrt();
    ends.windows(2)
        .map(|pair| {
            let parts = 4000;
            let h = (pair[1] - pair[0]) / f64::from(parts);
            let weight = |i| match i {
                0 => 1.0,
                _ if i == parts => 1.0,
                _ if i % 2 == 1 => 4.0,
                _ => 2.0,
            };
            let at = |i| pair[0] + f64::from(i) * h;
            (0..=parts).map(|i| weight(i) * density(at(i)) * g(at(i))).sum::<f64>() * h / 3.0
        })
        .sum()
}

/// The file `likelihoods`.
pub fn sites(file: &Value, _: &Path, report: &mut Report) -> Outcome {
    for (name, entry) in entries(get(file, "likelihoods")?)? {
        let own = Own::read(name, get(entry, "parameters")?)?;
        for (index, case) in items(get(entry, "cases")?)?.iter().enumerate() {
            report.case = format!("{name} {index}");
            let value = |key: &str| number(get(case, key)?);
            let (y, m, v, f) = (value("y")?, value("m")?, value("v")?, value("f")?);
            let target = own.target(y);
            let l = &own.likelihood;
            let (ell, a, b, params) = own.bound(target, m, v)?;
            let precision = -2.0 * b;
            let expected = {
                let (mut a, mut b, mut p) = ([0.0], [0.0], vec![0.0; l.num_params()]);
                l.expect(
                    target,
                    &[m],
                    &[v],
                    Slopes { mean: &mut a, variance: &mut b, params: &mut p },
                )
            };
            for (field, reference) in entries(case)? {
                let at = |square: &dyn Fn(&Form) -> f64| pieces(&own, target, square);
                let moments = |form: &Form| form.square(m, v);
                let part = |pick: &dyn Fn(&Form, &Pieces) -> f64| -> Outcome<f64> {
                    let found = at(&moments)?;
                    let form = found.form.ok_or("no form")?;
                    Ok(pick(&form, &found))
                };
                let found = match field.as_str() {
                    "y" | "m" | "v" | "f" => continue,
                    "log_p_at_f" => l.log_prob(target, &[f]),
                    "potential" => a + precision * m,
                    "precision" | "theta" => precision,
                    "ell" => ell,
                    "expected_log_p" => expected,
                    "gap" => expected - ell,
                    // of a pseudo-likelihood the file has E[L], predictions are of the normalised one
                    "predictive_density" if !l.normalised() => {
                        mean_of_pieces(m, v, &[-1.0, 1.0], |f| l.log_prob(target, &[f]).exp())
                    }
                    "predictive_density" => l.predict_log_density(target, &[m], &[v]).exp(),
                    "nbar" => y - 2.0 * (a + precision * m),
                    "log_C" => part(&|form, _| {
                        // C e^{gf} where the centre is not 0 by a shift of only f
                        form.log_c
                    })?,
                    "g" => part(&|form, _| form.g)?,
                    "c2" if name == "poisson" => m * m + v,
                    "c2" => part(&|form, _| form.square(m, v))?,
                    "alpha" => {
                        part(&|form, _| form.gamma * form.centre * form.centre + form.floor)?
                    }
                    "beta" => part(&|form, _| 2.0 * form.gamma * form.centre)?,
                    "gamma" => part(&|form, _| form.gamma)?,
                    "log_phi" => part(&|_, found| found.log_phi)?,
                    "omega_bar" => part(&|_, found| found.mean)?,
                    "omega_var" => part(&|_, found| found.variance)?,
                    "h2_at_f" => part(&|form, _| form.square(f, 0.0))?,
                    "d_ell_d_param" => {
                        for (key, reference) in entries(reference)? {
                            let index = own.params.iter().position(|p| p == key);
                            let index = index.ok_or_else(|| format!("no parameter `{key}`"))?;
                            let slope = match name.as_str() {
                                // by r, which is exposure and 1/dispersion here; the exposure adds its
                                // logarithm to f
                                "negbin" => {
                                    let r = own.extra;
                                    (a - params[0] / r) / r
                                }
                                _ => params[index],
                            };
                            report.close(
                                &format!("{field}.{key}"),
                                &[slope],
                                &[number(reference)?],
                            );
                        }
                        continue;
                    }
                    _ => {
                        report.fail(field, "an output that the check does not know");
                        continue;
                    }
                };
                report.close(field, &[found], &[number(reference)?]);
            }
        }
    }
    Ok(())
}

/// What the three files of models share: inputs, covariances by a kernel, a constant prior mean.
struct World {
    x: Mat<f64>,
    z: Mat<f64>,
    kernel: Box<dyn sparsegp::kernels::Kernel>,
    jitter: f64,
    mean: f64,
}

impl World {
    fn read(file: &Value) -> Outcome<Self> {
        check_known(
            file,
            &[
                "description",
                "X",
                "Z",
                "kernel",
                "K",
                "Kuu",
                "Kuf",
                "kff",
                "prior_mean",
                "likelihoods",
            ],
            &mut Report::new("", 0.0),
        )?;
        let x = matrix(get(file, "X")?)?;
        let spec = get(file, "kernel")?;
        let kernel = json!({
            "type": get(spec, "type")?,
            "lengthscales": get(spec, "lengthscale")?,
            "variance": get(spec, "variance")?,
        });
        let kernel =
            sparsegp::kernels::build(&kernel, sparsegp::kernels::Inputs::unnamed(x.ncols()));
        Ok(Self {
            x,
            z: matrix(get(file, "Z")?)?,
            kernel: own(kernel)?,
            jitter: number(get(spec, "jitter_added_to_K_and_Kuu")?)?,
            mean: number(get(file, "prior_mean")?)?,
        })
    }

    fn model(&self, method: &str, likelihood: &dyn Likelihood, mean: f64) -> Outcome<Model> {
        let method = own(find(method))?.method;
        let constant = json!({"type": "constant", "constant": [mean]});
        Ok(Model {
            kernels: vec![self.kernel.clone()],
            mean: own(means::from_json(&constant, self.x.ncols(), 1))?,
            likelihood: likelihood.clone_box(),
            inducing: match method.is_sparse() {
                true => vec![inducing_param(self.z.as_ref())],
                false => Vec::new(),
            },
            q: None,
            method,
            jitter: Jitter::Absolute(self.jitter),
            hidden: Vec::new(),
        })
    }

    fn data(&self, of: &Own, y: &Value) -> Outcome<InMemory> {
        let y: Vec<f64> = numbers(y)?.into_iter().map(|y| of.y(y)).collect();
        let n = y.len();
        let mut data = own(InMemory::new(self.x.clone(), Mat::from_fn(n, 1, |i, _| y[i])))?;
        data.extra = vec![of.extra; n];
        Ok(data)
    }

    /// K(a) with the jitter.
    fn own(&self, a: &Mat<f64>) -> Mat<f64> {
        let mut k = Mat::zeros(a.nrows(), a.nrows());
        self.kernel.evaluate(a.as_ref(), None, k.as_mut(), &mut sparsegp::kernels::Tape::off());
        (0..a.nrows()).for_each(|i| k[(i, i)] += self.jitter);
        k
    }
}

/// (K⁻¹ + A)⁻¹ for a symmetric A.
fn posterior(k: &Mat<f64>, a: &Mat<f64>) -> Outcome<Mat<f64>> {
    let none = Jitter::Absolute(0.0);
    let precision = own(Cholesky::new(k.as_ref(), none, "K"))?.inverse() + a;
    Ok(own(Cholesky::new(precision.as_ref(), none, "S⁻¹"))?.inverse())
}

fn diagonal(values: &[f64]) -> Mat<f64> {
    Mat::from_fn(values.len(), values.len(), |i, j| if i == j { values[i] } else { 0.0 })
}

/// The file `cavi_full`: steps of size 1 from the prior.
pub fn full(file: &Value, _: &Path, report: &mut Report) -> Outcome {
    let world = World::read(file)?;
    let k = world.own(&world.x);
    let n = k.nrows();
    for (name, entry) in entries(get(file, "likelihoods")?)? {
        check_known(entry, &["parameters", "y", "elbo_trace", "after"], report)?;
        let of = Own::read(name, get(entry, "parameters")?)?;
        let data = world.data(&of, get(entry, "y")?)?;
        let mut model = world.model("cavi-full", &*of.likelihood, world.mean)?;
        model.q = Some(Variational::sites(n, 1, Tying::Untied));
        let method = Tvgp::of(model.method).map_err(|_| "a method with sites of all rows")?;
        let expected = numbers(get(entry, "elbo_trace")?)?;
        let after = entries(get(entry, "after")?)?;
        let mut trace = Vec::new();
        for step in 0..expected.len() {
            report.case = format!("{name} after {step}");
            if let Some(stated) = after.get(&step.to_string()) {
                let q = model.q.as_ref().ok_or("no q")?;
                let (first, second) = (q.first.value(), q.second.value());
                let s = posterior(&k, &diagonal(second))?;
                let lambda = Mat::from_fn(n, 1, |i, _| first[i]);
                let residual = product(s.as_ref(), lambda.as_ref());
                let m: Vec<f64> = (0..n).map(|i| residual[(i, 0)] + world.mean).collect();
                let at = |i: usize| -> Outcome<_> {
                    Ok((of.bound(of_target(&data, i), m[i], s[(i, i)])?, m[i], s[(i, i)]))
                };
                let rows = (0..n).map(at).collect::<Outcome<Vec<_>>>()?;
                for (field, reference) in entries(stated)? {
                    let found: Vec<f64> = match field.as_str() {
                        "m" => m.clone(),
                        "S" => by_rows(s.as_ref()),
                        "elbo" => vec![own(method.value(&model, &data))?],
                        // of the local variables at this q
                        "precision" => rows.iter().map(|((_, _, b, _), ..)| -2.0 * b).collect(),
                        "potential" => {
                            rows.iter().map(|((_, a, b, _), m, _)| a - 2.0 * b * m).collect()
                        }
                        "c2" if name == "poisson" => {
                            rows.iter().map(|(_, m, v)| m * m + v).collect()
                        }
                        "c2" => (0..n)
                            .map(|i| {
                                let square = |form: &Form| form.square(m[i], s[(i, i)]);
                                let found = pieces(&of, of_target(&data, i), square)?;
                                Ok(square(&found.form.ok_or("no form")?))
                            })
                            .collect::<Outcome<_>>()?,
                        _ => {
                            report.fail(field, "an output that the check does not know");
                            continue;
                        }
                    };
                    report.close(field, &found, &numbers(reference)?);
                }
            }
            trace.push(own(method.step(&mut model, &data, 1.0))?);
        }
        report.case.clone_from(name);
        report.close("elbo_trace", &trace, &expected);
        let falls = trace.windows(2).any(|pair| pair[1] < pair[0] - 1e-10);
        report.require("elbo_trace", !falls, "a step of coordinate ascent lowers the bound");
    }
    Ok(())
}

fn of_target(data: &InMemory, i: usize) -> Target {
    Target { y: data.y[(i, 0)], extra: data.extra[i] }
}

/// q(u) with what the files tell of it.
struct State {
    m: Vec<f64>,
    s: Mat<f64>,
    precision: Mat<f64>,
    eta: Vec<f64>,
}

fn state_of(world: &World, model: &Model) -> Outcome<State> {
    let q = model.q.as_ref().ok_or("no q")?;
    let factor = own(Cholesky::new(world.own(&world.z).as_ref(), Jitter::Absolute(0.0), "Kuu"))?;
    let parts = own(q.whitened(0..1, &factor))?;
    let mean = product(factor.l.as_ref(), parts.mean.as_ref());
    let root = product(factor.l.as_ref(), parts.roots[0].as_ref());
    let s = product(root.as_ref(), root.transpose());
    let precision = own(Cholesky::new(s.as_ref(), Jitter::Absolute(0.0), "S"))?.inverse();
    let m: Vec<f64> = (0..s.nrows()).map(|i| mean[(i, 0)] + world.mean).collect();
    let column = Mat::from_fn(m.len(), 1, |i, _| m[i]);
    let eta = by_rows(product(precision.as_ref(), column.as_ref()).as_ref());
    Ok(State { m, s, precision, eta })
}

/// The file `cavi_sparse`: steps of size 1 from the prior on all rows, predictions, steps by minibatches.
pub fn sparse(file: &Value, _: &Path, report: &mut Report) -> Outcome {
    let world = World::read(file)?;
    let m = world.z.nrows();
    for (name, entry) in entries(get(file, "likelihoods")?)? {
        check_known(
            entry,
            &["parameters", "y", "elbo_trace", "after", "predictive", "svi"],
            report,
        )?;
        let of = Own::read(name, get(entry, "parameters")?)?;
        let data = world.data(&of, get(entry, "y")?)?;
        let mut model = world.model("cavi", &*of.likelihood, world.mean)?;
        model.q = Some(Variational::sites(m, 1, Tying::Natural));
        let method = Uncollapsed::of(model.method).map_err(|_| "an uncollapsed method")?;
        let (engine, mut step) = (Cpu::default(), Step::default());
        let expected = numbers(get(entry, "elbo_trace")?)?;
        let after = entries(get(entry, "after")?)?;
        let mut trace = Vec::new();
        let mut ended = None;
        for index in 0..expected.len() {
            report.case = format!("{name} after {index}");
            own(method.renew(&mut step, &model, &engine, &data, Want::Statistics))?;
            trace.push(step.value);
            if let Some(stated) = after.get(&index.to_string()) {
                let found = state_of(&world, &model)?;
                let posterior = own(model.posterior(&engine, &data))?;
                let (mean, variance) = own(posterior.predict_f(data.x.as_ref()))?;
                for (field, reference) in entries(stated)? {
                    let found = match field.as_str() {
                        "m" => found.m.clone(),
                        "S" => by_rows(found.s.as_ref()),
                        "eta1" => found.eta.clone(),
                        "precision_matrix" => by_rows(found.precision.as_ref()),
                        "elbo" => vec![step.value],
                        "mf" => by_rows(mean.as_ref()),
                        "vf" => by_rows(variance.as_ref()),
                        _ => {
                            report.fail(field, "an output that the check does not know");
                            continue;
                        }
                    };
                    report.close(field, &found, &numbers(reference)?);
                }
                ended = Some(model.clone());
            }
            own(step.natural(&mut model, 1.0))?;
        }
        report.case.clone_from(name);
        report.close("elbo_trace", &trace, &expected);
        let falls = trace.windows(2).any(|pair| pair[1] < pair[0] - 1e-10);
        report.require("elbo_trace", !falls, "a step of coordinate ascent lowers the bound");
        let ended = ended.ok_or("the file has no last state")?;
        predictions(&ended, &of, get(entry, "predictive")?, report)?;
        by_minibatches(&world, &of, &data, get(entry, "svi")?, report)?;
    }
    Ok(())
}

/// Predictions at the last state that the file tells.
fn predictions(model: &Model, of: &Own, stated: &Value, report: &mut Report) -> Outcome {
    let new = matrix(get(stated, "Xstar")?)?;
    let q = own(sparsegp::model::Posterior::of_q(model))?;
    let (mean, variance) = own(q.predict_f(new.as_ref()))?;
    let (mean, variance) = (by_rows(mean.as_ref()), by_rows(variance.as_ref()));
    for (field, reference) in entries(stated)? {
        let each = mean.iter().zip(&variance);
        let found: Vec<f64> = match field.as_str() {
            "Xstar" => continue,
            "mean" => mean.clone(),
            "var" => variance.clone(),
            "prob_y1" => each
                .map(|(m, v)| {
                    let mut p = [0.0; 2];
                    of.likelihood.probabilities(&[*m], &[*v], &mut p);
                    p[1]
                })
                .collect(),
            "prob_success" => each
                .map(|(m, v)| of.likelihood.predict(of.extra, &[*m], &[*v]).0 / of.extra)
                .collect(),
            "mean_y" => {
                each.map(|(m, v)| of.likelihood.predict(of.extra, &[*m], &[*v]).0).collect()
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

fn by_minibatches(
    world: &World,
    of: &Own,
    data: &InMemory,
    svi: &Value,
    report: &mut Report,
) -> Outcome {
    check_known(svi, &["init", "batch", "steps"], report)?;
    if get(svi, "init")? != "prior" {
        return Err("steps that begin elsewhere than at the prior".into());
    }
    let mut model = world.model("svi", &*of.likelihood, world.mean)?;
    model.q = Some(Variational::prior(world.z.nrows(), 1, false));
    let method = Uncollapsed::of(model.method).map_err(|_| "an uncollapsed method")?;
    let (engine, mut step) = (Cpu::default(), Step::default());
    for (index, stated) in items(get(svi, "steps")?)?.iter().enumerate() {
        report.case = format!("{} minibatch {index}", of.likelihood.name());
        let rows: Vec<usize> = numbers(get(stated, "idx")?)?.iter().map(|i| *i as usize).collect();
        let batch =
            Batch { rows: data.picked(&rows), scale: data.rows() as f64 / rows.len() as f64 };
        own(method.renew(&mut step, &model, &engine, &batch, Want::Statistics))?;
        let value = step.value;
        own(step.natural(&mut model, number(get(stated, "rho")?)?))?;
        let found = state_of(world, &model)?;
        for (field, reference) in entries(stated)? {
            let found = match field.as_str() {
                "idx" | "rho" => continue,
                "elbo_estimate_before" => vec![value],
                "eta1" => found.eta.clone(),
                "precision_matrix" => by_rows(found.precision.as_ref()),
                _ => {
                    report.fail(field, "an output that the check does not know");
                    continue;
                }
            };
            report.close(field, &found, &numbers(reference)?);
        }
    }
    Ok(())
}

/// log p = a f − ½ λ f² with a as target and λ as what the row brings: fixed sites.
#[derive(Clone, Debug)]
struct Quadratic;

impl LogProb for Quadratic {
    fn name(&self) -> &'static str {
        "quadratic"
    }

    fn log_prob<T: Real>(&self, y: f64, extra: f64, f: &[T], _: &[T]) -> T {
        f[0] * y - f[0] * f[0] * (0.5 * extra)
    }
}

/// Value and adjoints at a q(u) = N(m, S) that stays, in u itself or whitened.
struct Adjoints {
    value: f64,
    kuu: Vec<f64>,
    kuf: Vec<f64>,
    kff: Vec<f64>,
    m: Vec<f64>,
    /// Of S, symmetric, both triangles.
    s: Vec<f64>,
}

fn adjoints(
    model: &Model,
    rows: &InMemory,
    scale: f64,
    [m, s]: [&Mat<f64>; 2],
    kuu: &Mat<f64>,
    whitened: bool,
) -> Outcome<Adjoints> {
    let none = Jitter::Absolute(0.0);
    let factor = own(Cholesky::new(kuu.as_ref(), none, "Kuu"))?;
    let root = own(Cholesky::new(s.as_ref(), none, "S"))?.l;
    let (mut mean, mut stored) = (m.clone(), root.clone());
    if whitened {
        sparsegp::linalg::solve_lower(factor.l.as_ref(), mean.as_mut(), Par::Seq);
        sparsegp::linalg::solve_lower(factor.l.as_ref(), stored.as_mut(), Par::Seq);
    }
    let mut spied = model.clone();
    spied.q = Some(own(Variational::new(mean.as_ref(), &[stored], false, whitened))?);
    let spy = Spy::new(model.kernels[0].clone());
    let log = spy.log.clone();
    spied.kernels = vec![Box::new(spy)];
    let method = Uncollapsed::of(spied.method).map_err(|_| "an uncollapsed method")?;
    let n = rows.x.nrows();
    let batch = Batch { rows: rows.clone(), scale };
    let mut step = own(method.step(&spied, &Cpu::default(), &batch, Want::Gradients))?;
    let mut gradient = vec![0.0; spied.num_params()];
    step.gradient(&spied, &mut gradient);
    let log = log.lock().map_err(|e| e.to_string())?;
    let kuu_bar = log.own.first().ok_or("no cotangent of Kuu")?;
    // what a block gives the kernel is before the scale, which the sums of all blocks get
    let cross = log.cross.first().ok_or("no cotangent of Kuf")?;
    let kuf = Mat::from_fn(cross.ncols(), n, |i, j| scale * cross[(j, i)]);
    let kff = log.diag.first().ok_or("no cotangent of kff")?;
    let by_path = crate::problem::gradient_by_path(&spied, &gradient);
    let of = |path: &str| {
        let found = by_path.iter().find(|(p, _)| p == path).map(|(_, values)| values.clone());
        found.ok_or_else(|| format!("no gradient of {path}"))
    };
    // R̄ = tril(2 S̄ R) with S̄ symmetric, from which S̄ = ½ sym'd R̄R⁻¹ cannot be read off directly: S̄
    // is found from its M(M + 1)/2 unknowns by the adjoint of the Cholesky factorisation
    let size = m.nrows();
    let root_bar = of("q.sqrt")?;
    let bar = Mat::from_fn(size, size, |i, j| if i >= j { root_bar[i * size + j] } else { 0.0 });
    let s_bar = Cholesky::of_factor(root).adjoint(bar.as_ref());
    Ok(Adjoints {
        value: step.value,
        kuu: by_rows(kuu_bar.as_ref()),
        kuf: by_rows(kuf.as_ref()),
        kff: kff.iter().map(|v| scale * v).collect(),
        m: of("q.mu")?,
        s: by_rows(s_bar.as_ref()),
    })
}

/// The file `adjoints`: gradients at a fixed q(u), at a fixed q(v), and with fixed sites at the q(u) that
/// belongs to them.
pub fn gradients(file: &Value, _: &Path, report: &mut Report) -> Outcome {
    let world = World::read(file)?;
    let kuu = world.own(&world.z);
    for (name, entry) in entries(get(file, "likelihoods")?)? {
        report.case.clone_from(name);
        let of = Own::read(name, get(entry, "parameters")?)?;
        let data = world.data(&of, get(entry, "y")?)?;
        let model = world.model("svi", &*of.likelihood, number(get(entry, "prior_mean")?)?)?;
        let (m, s) = (matrix(get(entry, "m")?)?, matrix(get(entry, "S")?)?);
        let scale = number(get(entry, "scale")?)?;
        let found = adjoints(&model, &data, scale, [&m, &s], &kuu, false)?;
        for (field, reference) in entries(entry)? {
            let values = match field.as_str() {
                "parameters" | "y" | "m" | "S" | "scale" | "prior_mean" => continue,
                "elbo" => vec![found.value],
                "d_Kuu" => found.kuu.clone(),
                "d_Kuf" => found.kuf.clone(),
                "d_kff" => found.kff.clone(),
                "d_m" => found.m.clone(),
                "d_S" => found.s.clone(),
                "d_Kuu_whitened" => adjoints(&model, &data, scale, [&m, &s], &kuu, true)?.kuu,
                "collapsed" => {
                    collapsed(&world, &data, reference, &kuu, report)?;
                    continue;
                }
                _ => {
                    report.fail(field, "an output that the check does not know");
                    continue;
                }
            };
            report.close(field, &values, &numbers(reference)?);
        }
    }
    Ok(())
}

/// Fixed sites: a step of size 1 leads to their q(u), and the adjoints are those at that q.
fn collapsed(
    world: &World,
    data: &InMemory,
    stated: &Value,
    kuu: &Mat<f64>,
    report: &mut Report,
) -> Outcome {
    let likelihood = own(Custom::new(Quadratic))?;
    let mut model = world.model("svgp", &likelihood, 0.0)?;
    model.q = Some(Variational::prior(world.z.nrows(), 1, false));
    let potential = numbers(get(stated, "potential")?)?;
    let mut rows =
        own(InMemory::new(data.x.clone(), Mat::from_fn(potential.len(), 1, |i, _| potential[i])))?;
    rows.extra = numbers(get(stated, "precision")?)?;
    let constants: f64 = numbers(get(stated, "constants")?)?.iter().sum();
    let method = Uncollapsed::of(model.method).map_err(|_| "an uncollapsed method")?;
    let mut step = own(method.step(&model, &Cpu::default(), &rows, Want::Statistics))?;
    own(step.natural(&mut model, 1.0))?;
    let factor = own(Cholesky::new(kuu.as_ref(), Jitter::Absolute(0.0), "Kuu"))?;
    let parts = own(model.q.as_ref().ok_or("no q")?.whitened(0..1, &factor))?;
    let m = product(factor.l.as_ref(), parts.mean.as_ref());
    let root = product(factor.l.as_ref(), parts.roots[0].as_ref());
    let mut s = Mat::zeros(root.nrows(), root.nrows());
    gemm(s.as_mut(), Accum::Replace, root.as_ref(), root.transpose(), 1.0, Par::Seq);
    let found = adjoints(&model, &rows, 1.0, [&m, &s], kuu, false)?;
    for (field, reference) in entries(stated)? {
        let values = match field.as_str() {
            "potential" | "precision" | "constants" => continue,
            "value" => vec![found.value + constants],
            "m" => by_rows(m.as_ref()),
            "S" => by_rows(s.as_ref()),
            "d_Kuu" => found.kuu.clone(),
            "d_Kuf" => found.kuf.clone(),
            "d_kff" => found.kff.clone(),
            _ => {
                report.fail(field, "an output that the check does not know");
                continue;
            }
        };
        report.close(&format!("collapsed.{field}"), &values, &numbers(reference)?);
    }
    Ok(())
}

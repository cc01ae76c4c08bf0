//! Convolutional kernels: the family `convolutional`.

use crate::deep;
use crate::deep_problem::{self, Problem, renamed};
use crate::inverse_free::Rule;
use crate::problem::part;
use crate::support::{
    self, Outcome, Report, by_rows, check_known, entries, get, items, matrix, named, number,
    numbers, own, text,
};
use serde_json::{Value, json};
use sparsegp::deep::{Group, Inducing, Layer, Patches, Points, Sampling, Stacked, Variables};
use sparsegp::kernels::convolutional::Convolutional;
use sparsegp::kernels::{Cotangents, Inputs, Kernel, Tape, build};
use sparsegp::linalg::{Jitter, Mat, MatRef};
use sparsegp::params::Param;
use std::path::Path;

/// The kernel of a file in our names.
pub fn spec(json: &Value) -> Outcome<Value> {
    const KNOWN: &[&str] = &["image", "patch", "stride", "colour", "normalise", "weights", "base"];
    let map = entries(json)?;
    if let Some(key) = map.keys().find(|key| !KNOWN.contains(&key.as_str())) {
        return Err(format!("a convolutional kernel has the unknown entry `{key}`"));
    }
    let mut spec = json.clone();
    spec["type"] = json!("convolutional");
    spec["base"] = renamed(get(json, "base")?)?;
    Ok(spec)
}

fn kernel(json: &Value) -> Outcome<Convolutional> {
    let pixels: f64 = numbers(get(json, "image")?)?.iter().product();
    own(Convolutional::from_json(&spec(json)?, Inputs::unnamed(pixels as usize)))
}

fn of_pairs(kernel: &dyn Kernel, x: MatRef<f64>, z: Option<MatRef<f64>>) -> Mat<f64> {
    let mut out = Mat::zeros(x.nrows(), z.map_or(x.nrows(), |z| z.nrows()));
    kernel.evaluate(x, z, out.as_mut(), &mut Tape::off());
    out
}

/// Gradients of weighted sums.
struct Sums {
    params: Vec<f64>,
    x: Mat<f64>,
    z: Mat<f64>,
}

impl Sums {
    fn new(kernel: &Convolutional, x: &Mat<f64>, z: &Mat<f64>) -> Self {
        let zeros = |a: &Mat<f64>| Mat::zeros(a.nrows(), a.ncols());
        Self { params: vec![0.0; kernel.num_params()], x: zeros(x), z: zeros(z) }
    }

    /// Compares, `second` being the name of the second inputs.
    fn compare(
        &self,
        kernel: &Convolutional,
        second: &str,
        reference: &Value,
        rule: &Rule,
        report: &mut Report,
    ) -> Outcome {
        let mut rest = self.params.as_slice();
        let mut own = Vec::new();
        for (path, param) in kernel.params() {
            let (first, tail) = rest.split_at(param.len());
            own.push((path, part(param, first)));
            rest = tail;
        }
        for (key, value) in entries(reference)? {
            match key.as_str() {
                "X" => rule.close("X", &by_rows(self.x.as_ref()), value, report)?,
                "conv" => conv_gradients(&own, "", value, rule, report)?,
                key if key == second => {
                    rule.close(key, &by_rows(self.z.as_ref()), value, report)?;
                }
                other => return Err(format!("a gradient of the unknown `{other}`")),
            }
        }
        Ok(())
    }
}

/// Gradients of the kernel's parameters by the files' names.
pub fn conv_gradients(
    own: &[(String, Vec<f64>)],
    prefix: &str,
    reference: &Value,
    rule: &Rule,
    report: &mut Report,
) -> Outcome {
    for (key, value) in entries(reference)? {
        let path = format!("{prefix}{key}");
        if value.is_object() {
            conv_gradients(own, &format!("{path}."), value, rule, report)?;
            continue;
        }
        rule.close(&path, named(own, &path)?, value, report)?;
    }
    Ok(())
}

/// The file `kernel`.
pub fn kernels(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    let rule = Rule::read(json)?;
    for (name, case) in entries(get(get(json, "inputs")?, "cases")?)? {
        report.case = name.clone();
        check_known(case, &["conv", "X", "X2", "Z", "cotangents"], report)?;
        let kernel = kernel(get(case, "conv")?)?;
        let (x, x2) = (matrix(get(case, "X")?)?, matrix(get(case, "X2")?)?);
        let z = matrix(get(case, "Z")?)?;
        let bars = get(case, "cotangents")?;
        let mut kuf = Mat::zeros(x.nrows(), z.nrows());
        kernel.cross(x.as_ref(), z.as_ref(), kuf.as_mut());
        for (field, reference) in entries(get(get(json, "outputs")?, name)?)? {
            let found = match field.as_str() {
                "patches_of_first_image" => {
                    let mut patches = Mat::new();
                    kernel.grid().gather(x.as_ref().subrows(0, 1), &mut patches);
                    by_rows(patches.as_ref())
                }
                "Kuu" => by_rows(of_pairs(kernel.base(), z.as_ref(), None).as_ref()),
                "Kuf" => by_rows(kuf.transpose()),
                "kff" => {
                    let mut own = vec![0.0; x.nrows()];
                    kernel.diag(x.as_ref(), &mut own);
                    own
                }
                "Kff" => by_rows(of_pairs(&kernel, x.as_ref(), None).as_ref()),
                "K" => by_rows(of_pairs(&kernel, x.as_ref(), Some(x2.as_ref())).as_ref()),
                "gradients" => {
                    of_blocks(&kernel, (&x, &z), bars)?
                        .compare(&kernel, "Z", reference, &rule, report)?;
                    continue;
                }
                "gradients_of_K" => {
                    let mut sums = Sums::new(&kernel, &x, &x2);
                    let mut tape = Tape::recording();
                    let mut k = Mat::zeros(x.nrows(), x2.nrows());
                    let (rows, others) = (x.as_ref(), Some(x2.as_ref()));
                    kernel.evaluate(rows, others, k.as_mut(), &mut tape);
                    let mut bar = matrix(get(bars, "K")?)?;
                    let mut sinks = Cotangents {
                        params: &mut sums.params,
                        x: Some(sums.x.as_mut()),
                        z: Some(sums.z.as_mut()),
                    };
                    kernel.vjp(rows, others, k.as_ref(), bar.as_mut(), &mut tape, &mut sinks);
                    sums.compare(&kernel, "X2", reference, &rule, report)?;
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

/// Gradients of the three blocks of a sparse model together.
fn of_blocks(
    kernel: &Convolutional,
    (x, z): (&Mat<f64>, &Mat<f64>),
    bars: &Value,
) -> Outcome<Sums> {
    let mut sums = Sums::new(kernel, x, z);
    let kuf_bar = matrix(get(bars, "Kuf")?)?.transpose().to_owned();
    let mut sinks =
        Cotangents { params: &mut sums.params, x: Some(sums.x.as_mut()), z: Some(sums.z.as_mut()) };
    kernel.cross_vjp(x.as_ref(), z.as_ref(), kuf_bar.as_ref(), &mut sinks);
    kernel.diag_vjp(x.as_ref(), &numbers(get(bars, "kff")?)?, &mut sinks);
    let base = kernel.base();
    let mut tape = Tape::recording();
    let mut k = Mat::zeros(z.nrows(), z.nrows());
    base.evaluate(z.as_ref(), None, k.as_mut(), &mut tape);
    // the cotangent of a symmetric matrix is symmetric; the sum is the same
    let bar = matrix(get(bars, "Kuu")?)?;
    let symmetric = |i: usize, j: usize| 0.5 * (bar[(i, j)] + bar[(j, i)]);
    let mut bar = Mat::from_fn(z.nrows(), z.nrows(), symmetric);
    let count = base.num_params();
    let mut sinks =
        Cotangents { params: &mut sums.params[..count], x: Some(sums.z.as_mut()), z: None };
    base.vjp(z.as_ref(), None, k.as_ref(), bar.as_mut(), &mut tape, &mut sinks);
    Ok(sums)
}

/// The file `identities`.
pub fn identities(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    let rule = Rule::read(json)?;
    for (name, case) in entries(get(json, "inputs")?)? {
        report.case = name.clone();
        check_known(case, &["conv", "X"], report)?;
        let kernel = kernel(get(case, "conv")?)?;
        let x = matrix(get(case, "X")?)?;
        for (field, reference) in entries(get(get(json, "outputs")?, name)?)? {
            let (patches, weights) = kernel.merged(x.as_ref().subrows(0, 1));
            match field.as_str() {
                "Kff" => {
                    let own = by_rows(of_pairs(&kernel, x.as_ref(), None).as_ref());
                    rule.close(field, &own, reference, report)?;
                }
                "kff" => {
                    let mut own = vec![0.0; x.nrows()];
                    kernel.diag(x.as_ref(), &mut own);
                    rule.close(field, &own, reference, report)?;
                }
                // in any order, weights with their patches
                "patches" | "weights" => {
                    let theirs = items(get(get(get(json, "outputs")?, name)?, "patches")?)?;
                    let mut own = Vec::new();
                    for patch in theirs {
                        let patch = numbers(patch)?;
                        let is = |j: &usize| (0..patch.len()).all(|e| patches[(*j, e)] == patch[e]);
                        let j = (0..patches.nrows()).find(is).ok_or("a patch that is not found")?;
                        if field == "weights" {
                            own.push(weights[j]);
                        } else {
                            own.extend((0..patch.len()).map(|e| patches[(j, e)]));
                        }
                    }
                    report.require("patches", theirs.len() == weights.len(), "another number");
                    rule.close(field, &own, reference, report)?;
                }
                other => report.fail(other, "an output that the check does not know"),
            }
        }
    }
    Ok(())
}

/// Files of shallow models on inducing patches, with or without inducing images.
pub fn models(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    const KNOWN: &[&str] =
        &["kind", "conv", "Z", "jitter", "likelihood", "q", "white", "image_kernel", "Z2"];
    let rule = Rule::read(json)?;
    let inputs = get(json, "inputs")?;
    check_known(inputs, &["X", "y", "num_data", "Xnew", "ynew", "cases"], report)?;
    for (name, case) in entries(get(inputs, "cases")?)? {
        report.case = name.clone();
        check_known(case, KNOWN, report)?;
        let kernel = kernel(get(case, "conv")?)?;
        let mut patches = own(Patches::new(kernel, matrix(get(case, "Z")?)?.as_ref()))?;
        if let Some(white) = case.get("white") {
            patches.white = Some(Param::positive(number(white)?));
        }
        let m = matrix(get(get(case, "q")?, "m")?)?;
        let q = deep_problem::q(text(get(case, "kind")?)?, get(case, "q")?, &m, None)?;
        let width = patches.inputs();
        let mut inducing: Box<dyn Variables> = Box::new(patches);
        let stacked = case.get("image_kernel").is_some();
        if stacked {
            let kernel = renamed(get(case, "image_kernel")?)?;
            let kernel = own(build(&kernel, Inputs::unnamed(width)))?;
            let images = Points::new(kernel, matrix(get(case, "Z2")?)?.as_ref());
            inducing = Box::new(Stacked { parts: [inducing, Box::new(images)] });
        }
        let mean = own(sparsegp::means::by_name("zero", width, m.ncols()))?;
        let mut layer = Layer::new(vec![own(Group::with(inducing, q))?], mean);
        layer.jitter = Jitter::Absolute(number(get(case, "jitter")?)?);
        let problem = Problem::with(vec![layer], inputs, case)?;
        let found = problem.evaluate()?;
        let marginals = own(problem.model.layers[0].forward(problem.x.as_ref()))?;
        let all = deep::parts(&problem.model.params(), &found.gradient);
        let of = |path: &str| named(&all, path);
        let first = if stacked { "layers[0].parts[0]." } else { "layers[0]." };
        for (field, reference) in entries(get(get(json, "outputs")?, name)?)? {
            let own_value = match field.as_str() {
                "bound" => vec![found.value],
                "kl" => vec![found.kl.iter().sum()],
                "f_mean" => by_rows(marginals.mean.as_ref()),
                "f_var" => {
                    let (s, r) = (&marginals.s, &marginals.r);
                    let v = |i: usize, p: usize| s[(i, p)] + r[(i, p)];
                    by_rows(Mat::from_fn(s.nrows(), s.ncols(), v).as_ref())
                }
                "prediction" => {
                    let case = json!({ "X": get(inputs, "Xnew")?, "y": get(inputs, "ynew")?,
                                       "S": 1, "eps": [] });
                    deep::predictions(&problem, &case, reference, &rule, report)?;
                    continue;
                }
                "gradients" => {
                    for (key, value) in entries(reference)? {
                        let path = match key.as_str() {
                            "Z" => format!("{first}inducing.points"),
                            "Z2" => "layers[0].parts[1].inducing.points".into(),
                            "white" => format!("{first}white"),
                            "conv" => {
                                conv_gradients(
                                    &all,
                                    &format!("{first}kernel."),
                                    value,
                                    &rule,
                                    report,
                                )?;
                                continue;
                            }
                            "image_kernel" => {
                                let prefix = "layers[0].parts[1].kernel.";
                                conv_gradients(&all, prefix, value, &rule, report)?;
                                continue;
                            }
                            "likelihood" => {
                                conv_gradients(&all, "likelihood.", value, &rule, report)?;
                                continue;
                            }
                            "X" => {
                                let x = found.x.as_ref().ok_or("no gradient of inputs")?;
                                rule.close("X", &by_rows(x.as_ref()), value, report)?;
                                continue;
                            }
                            "q" => {
                                for (key, value) in entries(value)? {
                                    let ours = match key.as_str() {
                                        "m" => "mu",
                                        "sqrt" => "sqrt",
                                        "lam" => "lambda",
                                        "T_sqrt" => "t_sqrt",
                                        other => return Err(format!("the unknown `q.{other}`")),
                                    };
                                    let own = of(&format!("layers[0].q.{ours}"))?;
                                    rule.close(key, own, value, report)?;
                                }
                                continue;
                            }
                            other => return Err(format!("a gradient of the unknown `{other}`")),
                        };
                        rule.close(key, of(&path)?, value, report)?;
                    }
                    continue;
                }
                other => {
                    report.fail(other, "an output that the check does not know");
                    continue;
                }
            };
            rule.close(field, &own_value, reference, report)?;
        }
    }
    Ok(())
}

/// A layer of the file `image_layer`: from images to images, or functions of patches of them.
fn image_layer(json: &Value, report: &mut Report) -> Outcome<Layer> {
    check_known(json, &["kind", "conv", "kernel", "jitter", "Z", "mean", "q"], report)?;
    if json.get("kernel").is_none() {
        let m = matrix(get(get(json, "q")?, "m")?)?;
        let patches =
            own(Patches::new(kernel(get(json, "conv")?)?, matrix(get(json, "Z")?)?.as_ref()))?;
        let mean = own(sparsegp::means::by_name("zero", patches.inputs(), m.ncols()))?;
        let q = deep_problem::q(text(get(json, "kind")?)?, get(json, "q")?, &m, None)?;
        let mut layer = Layer::new(vec![own(Group::with(Box::new(patches), q))?], mean);
        layer.jitter = Jitter::Absolute(number(get(json, "jitter")?)?);
        return Ok(layer);
    }
    let mut plain = json.clone();
    let conv = plain.as_object_mut().and_then(|map| map.remove("conv")).ok_or("no `conv`")?;
    check_known(&conv, &["image", "patch", "stride", "colour"], report)?;
    let mut layer = deep_problem::layer(&plain, None, report)?;
    let mut conv = conv.clone();
    // what is not used
    conv["base"] = json!({ "type": "linear" });
    layer.grid = Some(kernel(&conv)?.grid().clone());
    layer.sampling = Sampling::Pixels;
    Ok(layer)
}

/// The file `image_layer`.
pub fn image_layers(json: &Value, _: &Path, report: &mut Report) -> Outcome {
    let rule = Rule::read(json)?;
    let inputs = get(json, "inputs")?;
    check_known(inputs, &["X", "y", "num_data", "S", "cases"], report)?;
    for (name, case) in entries(get(inputs, "cases")?)? {
        report.case = name.clone();
        check_known(case, &["layers", "likelihood", "eps"], report)?;
        let mut layers = Vec::new();
        for json in items(get(case, "layers")?)? {
            layers.push(image_layer(json, report)?);
        }
        let problem = Problem::with(layers, inputs, case)?;
        let found = problem.evaluate()?;
        let last = &found.layers[found.layers.len() - 1];
        for (field, reference) in entries(get(get(json, "outputs")?, name)?)? {
            let own_value = match field.as_str() {
                "bound" => vec![found.value],
                "kl" => vec![found.kl.iter().sum()],
                "f_mean" => by_rows(last.mean.as_ref()),
                "f_var" => by_rows(last.variance.as_ref()),
                "hidden" => by_rows(found.layers[0].sample.as_ref()),
                "gradients" => {
                    let mut plain = reference.clone();
                    // those of the last layer by the names of this family
                    let layers = plain["layers"].as_array_mut().ok_or("no list of layers")?;
                    let all = deep::parts(&problem.model.params(), &found.gradient);
                    for (l, layer) in layers.iter_mut().enumerate() {
                        let conv = layer.as_object_mut().and_then(|map| map.remove("conv"));
                        if let Some(conv) = conv {
                            let prefix = format!("layers[{l}].kernel.");
                            conv_gradients(&all, &prefix, &conv, &rule, report)?;
                        }
                    }
                    deep::gradients(&problem, &found, &plain, &rule, report)?;
                    continue;
                }
                other => {
                    report.fail(other, "an output that the check does not know");
                    continue;
                }
            };
            rule.close(field, &own_value, reference, report)?;
        }
    }
    Ok(())
}

/// The list of the family's files.
pub fn index(json: &Value, folder: &Path, report: &mut Report) -> Outcome {
    support::index("convolutional", json, folder, report)
}

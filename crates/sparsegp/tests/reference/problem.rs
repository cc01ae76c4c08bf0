//! Models and data from the entries of a file.

use crate::support::{Outcome, by_rows, entries, get, matrix, number, own, text};
use serde_json::{Value, json};
use sparsegp::data::InMemory;
use sparsegp::kernels::{Inputs, Kernel, build};
use sparsegp::likelihoods::Gaussian;
use sparsegp::linalg::{Jitter, Mat, MatRef};
use sparsegp::means::{self, Mean};
use sparsegp::methods::{Method, find};
use sparsegp::model::{Model, inducing_param};
use sparsegp::params::{Param, Shape};

/// The kernel of a file: `type` (or `name`) with its values; a `jitter` among them is not the
/// kernel's.
pub fn kernel(json: &Value, inputs: usize) -> Outcome<Box<dyn Kernel>> {
    let mut entries = entries(json)?.clone();
    entries.remove("jitter");
    if let Some(name) = entries.remove("name") {
        entries.insert("type".into(), name);
    }
    own(build(&with_forms(&Value::Object(entries)), Inputs::unnamed(inputs)))
}

/// The periodic kernels of a file in GPflow's form.
fn with_forms(kernel: &Value) -> Value {
    let mut kernel = kernel.clone();
    if kernel["type"].as_str().is_some_and(|name| name.eq_ignore_ascii_case("periodic")) {
        kernel["form"] = json!("gpflow");
    }
    if let Some(children) = kernel.get_mut("kernels").and_then(Value::as_array_mut) {
        children.iter_mut().for_each(|child| *child = with_forms(child));
    }
    kernel
}

/// The mean function of a file in GPflow's words: Zero, Constant (c), Linear (A, b).
pub fn mean(json: Option<&Value>, inputs: usize, outputs: usize) -> Outcome<Box<dyn Mean>> {
    let Some(json) = json else { return own(means::by_name("zero", inputs, outputs)) };
    let mut ours = json!({ "type": text(get(json, "type")?)? });
    for (key, value) in entries(json)?.iter().filter(|(key, _)| *key != "type") {
        match key.as_str() {
            "c" | "b" => ours["constant"] = value.clone(),
            // D×P row by row there, column by column here
            "A" => ours["weights"] = json!(by_rows(matrix(value)?.transpose())),
            other => return Err(format!("mean_function has the unknown entry `{other}`")),
        }
    }
    own(means::from_json(&ours, inputs, outputs))
}

/// The method by one of the names that files use (`sgpr`, `artemev`, `new`, `gpr`, `exact`).
pub fn method(name: &str) -> Outcome<&'static dyn Method> {
    Ok(own(find(name))?.method)
}

/// A model with zero mean.
pub fn plain(
    kernel: Box<dyn Kernel>,
    noise: f64,
    z: Option<MatRef<f64>>,
    method_name: &str,
    jitter: f64,
) -> Outcome<Model> {
    let method = method(method_name)?;
    Ok(Model {
        kernels: vec![kernel],
        mean: own(means::by_name("zero", 1, 1))?,
        likelihood: Box::new(Gaussian::new(noise)),
        inducing: if method.is_sparse() {
            z.map(inducing_param).into_iter().collect()
        } else {
            Vec::new()
        },
        q: None,
        method,
        jitter: Jitter::Absolute(jitter),
        hidden: Vec::new(),
    })
}

/// Model and data from a GPflow file's `inputs`.
pub fn gpflow(inputs: &Value, method_name: &str, jitter: f64) -> Outcome<(Model, InMemory)> {
    let data = own(InMemory::new(matrix(get(inputs, "X")?)?, matrix(get(inputs, "Y")?)?))?;
    let (d, p) = (data.x.ncols(), data.y.ncols());
    let z = inputs.get("Z").map(matrix).transpose()?;
    let noise = number(get(get(inputs, "likelihood")?, "variance")?)?;
    let kernel = kernel(get(inputs, "kernel")?, d)?;
    let mut model = plain(kernel, noise, z.as_ref().map(|z| z.as_ref()), method_name, jitter)?;
    model.mean = mean(inputs.get("mean_function"), d, p)?;
    if let Some(priors) = inputs.get("priors") {
        for (path, prior) in entries(priors)? {
            let prior = serde_json::from_value(prior.clone()).map_err(|e| e.to_string())?;
            own(model.for_group(path, |param| param.prior = Some(prior)))?;
        }
    }
    Ok((model, data))
}

/// Model and data from a case of the family `bounds`: `kernel` with `jitter`, `noise_variance`,
/// `X`, `Z`, `y`.
pub fn bounds(case: &Value, method_name: &str) -> Outcome<(Model, InMemory)> {
    let data = own(InMemory::new(matrix(get(case, "X")?)?, matrix(get(case, "y")?)?))?;
    let spec = get(case, "kernel")?;
    let jitter = number(spec.get("jitter").map_or_else(|| get(case, "jitter"), Ok)?)?;
    let z = matrix(get(case, "Z")?)?;
    let kernel = kernel(spec, data.x.ncols())?;
    let noise = number(get(case, "noise_variance")?)?;
    Ok((plain(kernel, noise, Some(z.as_ref()), method_name, jitter)?, data))
}

/// The numbers that belong to a parameter, row by row, out of a flat gradient; lower triangles with
/// zeros above.
pub fn part(param: &Param, flat: &[f64]) -> Vec<f64> {
    match param.shape() {
        Shape::Matrix(rows, cols) => {
            by_rows(Mat::from_fn(rows, cols, |i, j| flat[j * rows + i]).as_ref())
        }
        Shape::Lower(_, size) => {
            // column j of a triangle begins after j columns of size, size − 1, … numbers
            let start = |j: usize| j * (2 * size + 1 - j) / 2;
            let lower = |one: &[f64], i: usize, j: usize| {
                if i >= j { one[start(j) + i - j] } else { 0.0 }
            };
            let each = flat.chunks_exact(size * (size + 1) / 2);
            each.flat_map(|one| by_rows(Mat::from_fn(size, size, |i, j| lower(one, i, j)).as_ref()))
                .collect()
        }
        _ => flat.to_vec(),
    }
}

/// A model's gradient by path, matrices row by row, lower triangles one after the other with zeros
/// above.
pub fn gradient_by_path(model: &Model, gradient: &[f64]) -> Vec<(String, Vec<f64>)> {
    let mut rest = gradient;
    let split = model.params().into_iter().map(|(path, param)| {
        let (own, tail) = rest.split_at(param.len());
        rest = tail;
        (path, part(param, own))
    });
    split.collect()
}

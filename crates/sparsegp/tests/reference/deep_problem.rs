//! Deep models as the files of the family `deep` describe them.

use crate::observed::ByRow;
use crate::support::{
    Outcome, Report, by_rows, check_known, entries, get, items, matrix, number, numbers, own, text,
};
use serde_json::{Value, json};
use sparsegp::data::source::Rows;
use sparsegp::deep::{
    Batch, Deep, Draws, Evaluation, Group, LastBound, Layer, Noise, Sampling, Want, Work,
};
use sparsegp::inverse_free::Preconditioner;
use sparsegp::kernels::{Inputs, build};
use sparsegp::likelihoods::multi_points::Integration;
use sparsegp::likelihoods::quadrature::Slope;
use sparsegp::likelihoods::softmax::Softmax;
use sparsegp::likelihoods::{self, Likelihood};
use sparsegp::linalg::{Jitter, Mat};
use sparsegp::means::{self, Mean};
use sparsegp::variational::Variational;

/// Points of the files' Gauss–Hermite rule.
pub const POINTS: usize = 20;

/// The kernel of a file in our names.
pub fn renamed(json: &Value) -> Outcome<Value> {
    let mut spec = json.clone();
    spec["type"] = match text(get(json, "type")?)? {
        "se_ard" => json!("rbf"),
        "matern52_ard" => json!("matern52"),
        known @ ("linear" | "sum") => json!(known),
        other => return Err(format!("the unknown kernel {other}")),
    };
    if let Some(children) = json.get("kernels") {
        spec["kernels"] = items(children)?.iter().map(renamed).collect::<Outcome<Vec<_>>>()?.into();
    }
    Ok(spec)
}

/// The mean function of a layer.
fn mean(json: &Value, inputs: usize, outputs: usize) -> Outcome<Box<dyn Mean>> {
    let name = text(get(json, "type")?)?;
    let mut ours = json!({ "type": name });
    for (key, value) in entries(json)?.iter().filter(|(key, _)| *key != "type") {
        ours[key] = match key.as_str() {
            "weights" => json!(by_rows(matrix(value)?.transpose())),
            "constant" => value.clone(),
            other => return Err(format!("a mean function has the unknown entry `{other}`")),
        };
    }
    own(means::from_json(&ours, inputs, outputs))
}

/// q of the functions `first..first + m.ncols()` of a layer; `at` is the group among several.
pub fn q(kind: &str, json: &Value, m: &Mat<f64>, at: Option<usize>) -> Outcome<Variational> {
    let list = |name: &str| -> Outcome<Value> {
        let all = get(json, name)?;
        Ok(match at {
            Some(at) => items(all)?.get(at).ok_or("too few")?.clone(),
            None => all.clone(),
        })
    };
    let points = m.nrows();
    if let "W" | "M" = kind {
        let roots = match (json.get("sqrt"), at) {
            // q is its mean
            (None, _) => vec![Mat::zeros(points, points); m.ncols()],
            (Some(_), Some(_)) => vec![matrix(&list("sqrt")?)?],
            (Some(all), None) => items(all)?.iter().map(matrix).collect::<Outcome<_>>()?,
        };
        return own(Variational::new(m.as_ref(), &roots, false, kind == "W"));
    }
    let relaxed = match kind {
        "L" => false,
        "R" => true,
        other => return Err(format!("the unknown kind {other}")),
    };
    let inverse = Preconditioner::Inverse;
    let mut q = Variational::pseudo_observations(points, m.ncols(), inverse, relaxed);
    own(q.first.set("q.mu", &by_rows(m.transpose())))?;
    own(q.second.set("q.lambda", &numbers(&list("lam")?)?))?;
    if relaxed {
        q.set_t_root(matrix(&list("T_sqrt")?)?.as_ref());
        // the files have its gradient
        q.root.as_mut().ok_or("no T")?.frozen = false;
    }
    Ok(q)
}

/// A layer with another kind and q than the file's, if they are given.
pub fn layer(json: &Value, other: Option<(&str, &Value)>, report: &mut Report) -> Outcome<Layer> {
    const KNOWN: &[&str] =
        &["kind", "kernel", "kernels", "Z", "Zs", "jitter", "mean", "q", "sampling", "skip", "v"];
    check_known(json, KNOWN, report)?;
    let (kind, of_q) = match other {
        Some(other) => other,
        None => (text(get(json, "kind")?)?, get(json, "q")?),
    };
    check_known(of_q, &["m", "sqrt", "lam", "T_sqrt"], report)?;
    let m = matrix(get(of_q, "m")?)?;
    let mut groups = Vec::new();
    let mut inputs = 0;
    let mut add = |kernel: &Value, z: &Value, q: Variational| -> Outcome {
        let z = matrix(z)?;
        inputs = z.ncols();
        let kernel = own(build(&renamed(kernel)?, Inputs::unnamed(z.ncols())))?;
        groups.push(own(Group::new(kernel, z.as_ref(), q))?);
        Ok(())
    };
    match json.get("kernels") {
        None => add(get(json, "kernel")?, get(json, "Z")?, q(kind, of_q, &m, None)?)?,
        Some(kernels) => {
            for (p, kernel) in items(kernels)?.iter().enumerate() {
                let own = Mat::from_fn(m.nrows(), 1, |i, _| m[(i, p)]);
                let z = items(get(json, "Zs")?)?.get(p).ok_or("too few Zs")?;
                add(kernel, z, q(kind, of_q, &own, Some(p))?)?;
            }
        }
    }
    let mut layer = Layer::new(groups, mean(get(json, "mean")?, inputs, m.ncols())?);
    layer.jitter = Jitter::Absolute(number(get(json, "jitter")?)?);
    layer.skip = json.get("skip").is_some_and(|skip| skip == &json!(true));
    if let Some(sampling) = json.get("sampling") {
        layer.sampling = match text(sampling)? {
            "joint" => Sampling::Functions,
            other => return Err(format!("the unknown sampling {other}")),
        };
    }
    if let Some(v) = json.get("v") {
        let v = numbers(v)?;
        let mut first = 0;
        for group in &mut layer.groups {
            group.q = group.q.clone().with_factors();
            let count = group.outputs();
            let param = group.q.v.as_mut().ok_or("no v")?;
            own(param.set("q.v", v.get(first..first + count).ok_or("too few v")?))?;
            first += count;
        }
    }
    Ok(layer)
}

fn likelihood(json: &Value, outputs: usize) -> Outcome<Box<dyn Likelihood>> {
    let spec = match text(get(json, "type")?)? {
        "gaussian" => json!({ "type": "gaussian", "variance": get(json, "variance")? }),
        "bernoulli_logit" => json!({ "type": "bernoulli", "link": "logit", "rule": POINTS }),
        "robust_max" => json!({ "type": "robust-max", "classes": outputs,
            "epsilon": get(json, "epsilon")?, "rule": POINTS, "squash": 0.0 }),
        "softmax" => {
            let draws = items(get(json, "draws")?)?.iter().map(|draw| json!([draw]));
            let softmax = own(Softmax::with(outputs, Integration::default(), Slope::Rule))?;
            return Ok(Box::new(ByRow::new(softmax, &draws.collect())?));
        }
        other => return Err(format!("the unknown likelihood {other}")),
    };
    own(likelihoods::build(&spec))
}

/// A model with its data.
pub struct Problem {
    pub model: Deep,
    pub x: Mat<f64>,
    pub y: Mat<f64>,
    pub population: f64,
    pub samples: usize,
    pub draws: Vec<Draws>,
}

/// Noise of hidden layers: rows, or `u` with `f`.
pub fn draws(json: &Value) -> Outcome<Vec<Draws>> {
    let one = |json: &Value| -> Outcome<Draws> {
        Ok(match json.get("u") {
            None => Draws { rows: matrix(json)?, functions: Vec::new() },
            Some(u) => Draws {
                rows: matrix(get(json, "f")?)?,
                functions: items(u)?.iter().map(matrix).collect::<Outcome<_>>()?,
            },
        })
    };
    items(json)?.iter().map(one).collect()
}

impl Problem {
    pub fn read(inputs: &Value, case: &Value, report: &mut Report) -> Outcome<Self> {
        let layers = items(get(case, "layers")?)?.iter().map(|json| layer(json, None, report));
        Self::with(layers.collect::<Outcome<_>>()?, inputs, case)
    }

    pub fn with(layers: Vec<Layer>, inputs: &Value, case: &Value) -> Outcome<Self> {
        let outputs = layers.last().map_or(0, Layer::outputs);
        let likelihood = likelihood(get(case, "likelihood")?, outputs)?;
        let mut model = own(Deep::new(layers, likelihood))?;
        model.bound = match case.get("bound").map(text).transpose()? {
            None | Some("hensman") => LastBound::Expectation,
            Some("titsias2025") => LastBound::Tighter,
            Some(other) => return Err(format!("the unknown bound {other}")),
        };
        Ok(Self {
            model,
            x: matrix(get(inputs, "X")?)?,
            y: matrix(case.get("y").map_or_else(|| get(inputs, "y"), Ok)?)?,
            population: number(get(inputs, "num_data")?)?,
            samples: inputs.get("S").map_or(Ok(1.0), number)? as usize,
            draws: case.get("eps").map_or(Ok(Vec::new()), draws)?,
        })
    }

    pub fn batch(&self) -> Batch<'_> {
        let rows = Rows::plain(0, self.x.as_ref(), self.y.as_ref());
        Batch { rows, population: self.population, samples: self.samples }
    }

    pub fn evaluate(&self) -> Outcome<Evaluation> {
        let want = Want { gradient: true, inputs: true, layers: true };
        let noise = Noise::Given(&self.draws);
        own(self.model.evaluate(&self.batch(), &noise, want, &mut Work::default()))
    }
}

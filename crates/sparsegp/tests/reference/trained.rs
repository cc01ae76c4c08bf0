//! Models with a q(u) from the entries of a file.

use crate::batch::Batch;
use crate::observed::Observed;
use crate::problem;
use crate::support::{Outcome, entries, get, items, matrix, number, numbers, own, text};
use serde_json::Value;
use sparsegp::data::{InMemory, Source};
use sparsegp::engine::{
    Block, CholeskyBasis, Cpu, Engine, Job, Passed, Plan, Pointwise, Process, Slopes as OfRows,
    Spread, Want,
};
use sparsegp::kernels::inducing::AtPoints;
use sparsegp::kernels::{Kernel, Tape};
use sparsegp::likelihoods::coregionalised::Coregionalised;
use sparsegp::likelihoods::{Slopes, Target};
use sparsegp::linalg::{Jitter, Mat, column};
use sparsegp::model::{Model, inducing_param};
use sparsegp::variational::{Parts, Variational, kl};
use std::sync::Mutex;

/// A model with its data as GPflow's files have them.
pub struct Problem {
    /// The model, of the method `svgp`; without q where the file has none.
    pub model: Model,
    /// All rows.
    pub data: Batch,
    /// How many rows they stand for.
    pub population: usize,
    /// The likelihood as the other program uses it.
    pub observed: Observed,
}

/// Fails on inputs that are not among `known`.
pub fn check_known(inputs: &Value, known: &[&str]) -> Outcome {
    match entries(inputs)?.keys().find(|key| !known.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => Err(format!("`{key}` is an input that the check does not know")),
    }
}

fn flag(inputs: &Value, key: &str) -> Outcome<bool> {
    match inputs.get(key) {
        None => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(other) => Err(format!("`{key}` is true or false, not {other}")),
    }
}

/// The kernels of a file: one, or one for each latent function.
fn kernels(json: &Value, inputs: usize, latents: usize) -> Outcome<Vec<Box<dyn Kernel>>> {
    match text(get(json, "type")?)? {
        "SharedIndependent" => {
            if number(get(json, "output_dim")?)? != latents as f64 {
                return Err(format!("a kernel of other than {latents} outputs"));
            }
            Ok(vec![problem::kernel(get(json, "kernel")?, inputs)?])
        }
        "SeparateIndependent" | "LinearCoregionalization" => {
            let list = items(get(json, "kernels")?)?;
            list.iter().map(|kernel| problem::kernel(kernel, inputs)).collect()
        }
        _ => Ok(vec![problem::kernel(json, inputs)?]),
    }
}

/// q(u) from `q_mu`, `q_sqrt`, `whiten` and `q_diag`.
fn q(inputs: &Value) -> Outcome<Variational> {
    let (diagonal, whitened) = (flag(inputs, "q_diag")?, flag(inputs, "whiten")?);
    let mean = matrix(get(inputs, "q_mu")?)?;
    let sqrt = get(inputs, "q_sqrt")?;
    let roots = match diagonal {
        true => vec![matrix(sqrt)?],
        false => items(sqrt)?.iter().map(matrix).collect::<Outcome<Vec<_>>>()?,
    };
    own(Variational::new(mean.as_ref(), &roots, diagonal, whitened))
}

/// Rows of a problem that stand for `population`; side columns as for rows that come first.
pub fn batch(data: &InMemory, picked: &[usize], population: usize, observed: &Observed) -> Batch {
    let pick = |a: &Mat<f64>| Mat::from_fn(picked.len(), a.ncols(), |i, j| a[(picked[i], j)]);
    let rows = InMemory {
        x: pick(&data.x),
        y: pick(&data.y),
        weights: Vec::new(),
        extra: observed.extra(picked.len()),
    };
    Batch { rows, scale: population as f64 / picked.len() as f64 }
}

/// A list of row numbers.
pub fn indices(json: &Value) -> Outcome<Vec<usize>> {
    Ok(numbers(json)?.into_iter().map(|i| i as usize).collect())
}

impl Problem {
    /// From `inputs` in GPflow's words; `squashed` where probits have its floor.
    pub fn read(inputs: &Value, jitter: f64, squashed: bool) -> Outcome<Self> {
        let mut observed = Observed::read(inputs, squashed)?;
        let data = own(InMemory::new(matrix(get(inputs, "X")?)?, matrix(get(inputs, "Y")?)?))?;
        let (n, d) = (data.x.nrows(), data.x.ncols());
        let latents = observed.likelihood.latents() * data.y.ncols();
        if let Some(w) = get(inputs, "kernel")?.get("W") {
            let w = matrix(w)?;
            let by_columns = crate::support::by_rows(w.transpose());
            let inner = observed.likelihood.clone();
            observed.likelihood = Box::new(Coregionalised::new(inner, w.nrows(), by_columns));
        }
        let points = match inputs.get("Zs") {
            Some(sets) => items(sets)?.iter().map(matrix).collect::<Outcome<Vec<_>>>()?,
            None => vec![matrix(get(inputs, "Z")?)?],
        };
        let model = Model {
            kernels: kernels(get(inputs, "kernel")?, d, latents)?,
            mean: problem::mean(inputs.get("mean_function"), d, latents)?,
            likelihood: observed.likelihood.clone(),
            inducing: points.iter().map(|z| inducing_param(z.as_ref())).collect(),
            q: if inputs.get("q_mu").is_some() { Some(q(inputs)?) } else { None },
            method: problem::method("svgp")?,
            jitter: Jitter::Absolute(jitter),
            hidden: Vec::new(),
        };
        let population = match inputs.get("num_data") {
            Some(count) => number(count)? as usize,
            None => n,
        };
        let all: Vec<usize> = (0..n).collect();
        let data = batch(&data, &all, population, &observed);
        Ok(Self { model, data, population, observed })
    }

    /// Σ E[log p(y | f)] of all rows at these marginals (n×L each), times the scale.
    pub fn expectation(&self, mu: &Mat<f64>, v: &Mat<f64>) -> f64 {
        let likelihood = &*self.model.likelihood;
        let (k, rows) = (likelihood.latents(), &self.data.rows);
        let (mut a, mut b) = (vec![0.0; k], vec![0.0; k]);
        let mut params = vec![0.0; likelihood.num_params()];
        let default = likelihood.extra().and_then(|e| e.default).unwrap_or(1.0);
        let mut sum = 0.0;
        for p in 0..rows.y.ncols() {
            for i in 0..rows.y.nrows() {
                let of = |a: &Mat<f64>| -> Vec<f64> { (0..k).map(|l| a[(i, p * k + l)]).collect() };
                let extra = rows.extra.get(i).copied().unwrap_or(default);
                let target = Target { y: rows.y[(i, p)], extra };
                let slopes = Slopes { mean: &mut a, variance: &mut b, params: &mut params };
                sum += likelihood.expect(target, &of(mu), &of(v), slopes);
            }
        }
        sum * self.data.scale
    }

    /// The file's minibatch.
    pub fn minibatch(&self, inputs: &Value) -> Outcome<Batch> {
        let picked = indices(get(inputs, "minibatch_indices")?)?;
        Ok(batch(&self.data.rows, &picked, self.population, &self.observed))
    }
}

/// Latent functions that share everything, prepared for the rows.
pub struct Group {
    /// Their kernel.
    pub kernel: usize,
    /// Their points.
    pub z: Mat<f64>,
    /// From covariances to features.
    pub basis: CholeskyBasis,
    /// Whitened q.
    pub parts: Parts,
}

/// All of a model's latent functions.
pub fn groups(model: &Model) -> Outcome<Vec<Group>> {
    let q = model.q.as_ref().ok_or("no q")?;
    let shared = model.kernels.len() == 1 && model.inducing.len() == 1;
    let each = if shared { q.latents() } else { 1 };
    let starts = (0..q.latents()).step_by(each);
    starts
        .map(|start| {
            let kernel = if model.kernels.len() == 1 { 0 } else { start };
            let z = own(model.inducing_set(start))?;
            let mut kuu = Mat::zeros(z.nrows(), z.nrows());
            model.kernels[kernel].evaluate(z.as_ref(), None, kuu.as_mut(), &mut Tape::off());
            let basis = own(CholeskyBasis::new(kuu.as_ref(), model.jitter))?;
            let parts = own(q.whitened(start..start + each, basis.factor()))?;
            Ok(Group { kernel, z, basis, parts })
        })
        .collect()
}

/// Σ KL(q(u_l)‖p(u_l)).
pub fn prior_kl(model: &Model) -> Outcome<f64> {
    let each = |group: Group| -> f64 {
        let roots = group.parts.roots.iter().enumerate();
        roots.map(|(l, root)| kl(column(group.parts.mean.as_ref(), l), root.as_ref())).sum()
    };
    Ok(groups(model)?.into_iter().map(each).sum())
}

/// Records what the engine shows of one block.
#[derive(Default)]
struct Watch(Mutex<Vec<Marginals>>);

/// Marginals of the latent functions at some rows, B×L each.
pub struct Marginals {
    /// Means.
    pub mu: Mat<f64>,
    /// Variances that come from q.
    pub s: Mat<f64>,
    /// Unexplained variances.
    pub r: Mat<f64>,
}

impl Pointwise for Watch {
    fn plan(&self) -> Plan<'_> {
        Plan { c: None, ..Plan::by_rows(0) }
    }
    fn rows(&self, block: Block<'_>, _: OfRows<'_>) {
        let (mu, s, r) = (block.mu.to_owned(), block.s.to_owned(), block.r.to_owned());
        self.0.lock().expect("no panic while it is held").push(Marginals { mu, s, r });
    }
}

/// The marginals of a model at rows that fit into one block.
pub fn marginals(model: &Model, data: &dyn Source) -> Outcome<Marginals> {
    let groups = groups(model)?;
    let mut inducing = Vec::new();
    for group in &groups {
        inducing.push(AtPoints { kernel: &*model.kernels[group.kernel], z: group.z.as_ref() });
    }
    let processes: Vec<Process<'_>> = groups
        .iter()
        .zip(&inducing)
        .map(|(group, inducing)| Process {
            inducing,
            basis: &group.basis,
            mean: group.parts.mean.as_ref(),
            spread: Spread::Roots(&group.parts.roots),
        })
        .collect();
    let watch = Watch::default();
    let (engine, mut passed) = (Cpu::default(), Passed::default());
    let (processes, mean, pointwise) = (&processes[..], &*model.mean, &watch);
    let job = Job { processes, mean, pointwise, scale: 1.0, want: Want::Value };
    own(engine.pass(&job, data, &mut passed))?;
    let mut blocks = watch.0.into_inner().map_err(|e| e.to_string())?;
    match (blocks.pop(), blocks.len()) {
        (Some(only), 0) => Ok(only),
        _ => Err("the engine showed other than one block".into()),
    }
}

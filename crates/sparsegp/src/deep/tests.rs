//! Finite differences of everything, identities, refusals and a small training.

use super::*;
use crate::data::source::Rows;
use crate::data::{InMemory, ShuffledInMemory};
use crate::engine::Cpu;
use crate::inverse_free::{Preconditioner, SolverOptions};
use crate::kernels::{Inputs, parse};
use crate::likelihoods;
use crate::linalg::{Jitter, Mat, column};
use crate::means::{self, Mean};
use crate::methods::find;
use crate::model::{Model, inducing_param};
use crate::rng;
use crate::variational::{Form, Variational};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

mod images;
mod precision;
mod refusals;
mod training;

fn normal(rows: usize, columns: usize, scale: f64, rng: &mut ChaCha8Rng) -> Mat<f64> {
    let mut out = Mat::zeros(rows, columns);
    for j in 0..columns {
        for i in 0..rows {
            let z: f64 = StandardNormal.sample(rng);
            out[(i, j)] = scale * z;
        }
    }
    out
}

fn lower(m: usize, diagonal: f64, rng: &mut ChaCha8Rng) -> Mat<f64> {
    let below = normal(m, m, 0.2, rng);
    Mat::from_fn(m, m, |i, j| match i.cmp(&j) {
        std::cmp::Ordering::Less => 0.0,
        std::cmp::Ordering::Equal => diagonal * (1.0 + below[(i, j)].abs()),
        std::cmp::Ordering::Greater => below[(i, j)],
    })
}

fn columns(a: &Mat<f64>) -> Vec<f64> {
    (0..a.ncols()).flat_map(|j| column(a.as_ref(), j).to_vec()).collect()
}

fn q(kind: Kind, m: usize, outputs: usize, rng: &mut ChaCha8Rng) -> Variational {
    let mean = normal(m, outputs, 0.6, rng);
    match kind {
        Kind::W | Kind::M => {
            let roots: Vec<_> = (0..outputs).map(|_| lower(m, 0.5, rng)).collect();
            Variational::new(mean.as_ref(), &roots, false, kind == Kind::W).unwrap()
        }
        Kind::L | Kind::R => {
            let relaxed = kind == Kind::R;
            let inverse = Preconditioner::Inverse;
            let mut q = Variational::pseudo_observations(m, outputs, inverse, relaxed);
            q.first.set("mu", &columns(&mean)).unwrap();
            let lambda: Vec<f64> = (0..m).map(|_| 0.2 + 0.3 * rng::uniform(rng)).collect();
            q.second.set("lambda", &lambda).unwrap();
            q.set_t_root(lower(m, 0.6, rng).as_ref());
            if let Some(root) = &mut q.root {
                root.frozen = false;
            }
            q
        }
    }
}

/// A layer with parameters that are not 1.
struct Recipe<'a> {
    kind: Kind,
    kernel: &'a str,
    mean: &'a str,
    inputs: usize,
    outputs: usize,
    /// A kernel and points for every output.
    separate: bool,
}

fn layer(recipe: &Recipe<'_>, rng: &mut ChaCha8Rng) -> Layer {
    let Recipe { kind, kernel, mean, inputs, outputs, separate } = *recipe;
    let m = 5;
    let widths = if separate { vec![1; outputs] } else { vec![outputs] };
    let groups = widths.iter().map(|width| {
        let mut kernel = parse(kernel, Inputs::unnamed(inputs)).unwrap();
        for (path, param) in kernel.params_mut() {
            let values: Vec<f64> =
                (0..param.len()).map(|_| 0.6 + 0.8 * rng::uniform(rng)).collect();
            param.set(&path, &values).unwrap();
        }
        let z = normal(m, inputs, 1.0, rng);
        Group::new(kernel, z.as_ref(), q(kind, m, *width, rng)).unwrap()
    });
    let groups = groups.collect();
    let mut mean: Box<dyn Mean> = match mean {
        "identity" => Box::new(Identity),
        "projection" => Box::new(Projection::new(normal(inputs, outputs, 0.7, rng).as_ref())),
        name => means::by_name(name, inputs, outputs).unwrap(),
    };
    for (path, param) in mean.params_mut() {
        param.set(&path, &columns(&normal(param.len(), 1, 0.7, rng))).unwrap();
    }
    let mut layer = Layer::new(groups, mean);
    layer.jitter = Jitter::Absolute(if matches!(kind, Kind::W | Kind::M) { 1e-2 } else { 0.0 });
    layer
}

fn recipe(kind: Kind, kernel: &str, mean: &'static str, widths: (usize, usize)) -> Layer {
    let mut rng = rng::stream(widths.0 as u64 * 7 + widths.1 as u64, kernel);
    let (inputs, outputs) = widths;
    layer(&Recipe { kind, kernel, mean, inputs, outputs, separate: false }, &mut rng)
}

/// A model over two inputs with its rows.
struct Problem {
    model: Deep,
    x: Mat<f64>,
    y: Mat<f64>,
    samples: usize,
    draws: Vec<Draws>,
}

impl Problem {
    fn new(layers: Vec<Layer>, likelihood: &str, n: usize, samples: usize) -> Self {
        let mut model = Deep::new(layers, likelihoods::parse(likelihood).unwrap()).unwrap();
        // any T makes hidden variances so large that no row is near a point, and all slopes of the data are 0
        model.settle(&SolverOptions::strict()).unwrap();
        for group in model.layers.iter_mut().flat_map(|layer| &mut layer.groups) {
            if group.q.root.is_some() {
                let mut root = Mat::new();
                group.q.read_t_root(&mut root).unwrap();
                group.q.set_t_root((root * faer::Scale(0.9)).as_ref());
            }
        }
        let mut rng = rng::stream(5, "problem");
        let x = normal(n, 2, 1.0, &mut rng);
        let is_classes = model.likelihood.classes().is_some();
        let y = Mat::from_fn(n, model.targets(), |i, p| {
            let y = (1.7 * x[(i, 0)] + p as f64).sin();
            if is_classes { f64::from(u8::from(y > 0.0)) } else { y }
        });
        let draws = model.layers[..model.layers.len() - 1].iter();
        let draws = draws
            .map(|layer| Draws {
                rows: normal(n * samples, layer.outputs(), 1.0, &mut rng),
                functions: match layer.sampling {
                    Sampling::Rows | Sampling::Pixels => Vec::new(),
                    Sampling::Functions => {
                        (0..samples).map(|_| normal(5, layer.outputs(), 1.0, &mut rng)).collect()
                    }
                },
            })
            .collect();
        Self { model, x, y, samples, draws }
    }

    fn batch(&self) -> Batch<'_> {
        let rows = Rows::plain(0, self.x.as_ref(), self.y.as_ref());
        Batch { rows, population: 3.7 * self.x.nrows() as f64, samples: self.samples }
    }

    fn evaluate(&self, want: Want) -> Evaluation {
        let noise = Noise::Given(&self.draws);
        self.model.evaluate(&self.batch(), &noise, want, &mut Work::default()).unwrap()
    }

    fn value(&self) -> f64 {
        self.evaluate(Want::default()).value
    }
}

const ALL: Want = Want { gradient: true, inputs: true, layers: false };

/// The parts of a gradient by the paths of their parameters.
fn by_path<'a>(
    params: &[crate::params::Named<'_>],
    gradient: &'a [f64],
) -> Vec<(String, &'a [f64])> {
    let mut rest = gradient;
    let mut all = Vec::new();
    for (path, param) in params {
        let (own, tail) = rest.split_at(param.len());
        all.push((path.clone(), own));
        rest = tail;
    }
    assert!(rest.is_empty(), "{} numbers are of no parameter", rest.len());
    all
}

/// The largest of some slopes.
fn size(slopes: &[f64]) -> f64 {
    slopes.iter().fold(0.0, |most, slope| most.max(slope.abs()))
}

/// Five-point difference.
fn slope(f: &mut dyn FnMut(f64) -> f64, at: f64) -> f64 {
    let h = 3e-4 * at.abs().max(0.3);
    (8.0 * (f(at + h) - f(at - h)) - (f(at + 2.0 * h) - f(at - 2.0 * h))) / (12.0 * h)
}

/// Every parameter and every input against differences.
fn check(name: &str, mut problem: Problem) {
    let found = problem.evaluate(ALL);
    let params: Vec<(String, Vec<f64>)> =
        problem.model.params().iter().map(|(p, v)| (p.clone(), v.value().to_vec())).collect();
    let gradient = by_path(&problem.model.params(), &found.gradient);
    let gradient: Vec<_> = gradient.into_iter().map(|(path, own)| (path, own.to_vec())).collect();
    for ((path, values), (own_path, slopes)) in params.into_iter().zip(gradient) {
        assert_eq!(path, own_path);
        // by its own size: an error in one parameter is not rounding in another
        let most = size(&slopes);
        assert!(most > 0.0, "{name} {path} has no slope");
        for i in 0..values.len() {
            let mut moved = values.clone();
            let mut f = |v: f64| {
                moved[i] = v;
                problem.model.set(&path, &moved).unwrap();
                problem.value()
            };
            let expected = slope(&mut f, values[i]);
            problem.model.set(&path, &values).unwrap();
            let own = slopes[i];
            // below 0.05 rounding of the bound is what differences see
            let error = (own - expected).abs();
            assert!(
                error < 2e-7 * most.max(0.05),
                "{name} {path}[{i}]: {own} for {expected}, of {most}"
            );
        }
    }
    let x_bar = found.x.unwrap();
    let most = x_bar.norm_max();
    assert!(most > 1e-2, "{name}: rows make no difference, {most:e}");
    for i in [0, problem.x.nrows() - 1] {
        for j in 0..problem.x.ncols() {
            let value = problem.x[(i, j)];
            let mut f = |v: f64| {
                problem.x[(i, j)] = v;
                problem.value()
            };
            let expected = slope(&mut f, value);
            problem.x[(i, j)] = value;
            let own = x_bar[(i, j)];
            assert!(
                (own - expected).abs() < 2e-7 * most,
                "{name} x[{i}, {j}]: {own} for {expected}"
            );
        }
    }
}

#[test]
fn gradients_of_every_kind_agree_with_differences() {
    for kind in [Kind::W, Kind::M, Kind::L, Kind::R] {
        let layers = vec![
            recipe(kind, "rbf", "linear", (2, 2)),
            recipe(kind, "matern52 + linear", "identity", (2, 2)),
            recipe(kind, "rbf", "constant", (2, 1)),
        ];
        check(&format!("{kind:?}"), Problem::new(layers, "gaussian(variance=0.3)", 7, 2));
    }
}

#[test]
fn gradients_of_all_options_agree_with_differences() {
    let wide = |kind, mean, separate, width| {
        let mut rng = rng::stream(11, mean);
        let (kernel, outputs) = ("rbf", 2);
        layer(&Recipe { kind, kernel, mean, inputs: width, outputs, separate }, &mut rng)
    };
    // skip connections over layers with their own kernels
    for kind in [Kind::W, Kind::L] {
        let mut last = recipe(kind, "rbf * linear", "linear", (4, 1));
        last.skip = true;
        let layers = vec![wide(kind, "projection", true, 2), last];
        check("skip", Problem::new(layers, "bernoulli(link=logit)", 6, 2));
    }
    // functions, factors v and the tighter bound
    let mut first = wide(Kind::W, "identity", false, 2);
    first.sampling = Sampling::Functions;
    first.groups[0].q = first.groups[0].q.clone().with_factors();
    first.groups[0].q.v.as_mut().unwrap().set("v", &[0.6, 1.4]).unwrap();
    let mut second = wide(Kind::M, "zero", true, 2);
    for (group, v) in second.groups.iter_mut().zip([1.2, 0.7]) {
        group.q = group.q.clone().with_factors();
        group.q.v.as_mut().unwrap().set("v", &[v]).unwrap();
    }
    let last = recipe(Kind::W, "rbf", "constant", (2, 1));
    let mut problem = Problem::new(vec![first, second, last], "gaussian(variance=0.4)", 6, 2);
    problem.model.bound = LastBound::Tighter;
    check("functions, v, tighter", problem);
    // factors of the last layer, several latent functions
    let mut last = recipe(Kind::M, "rbf", "linear", (2, 2));
    last.groups[0].q = last.groups[0].q.clone().with_factors();
    last.groups[0].q.v.as_mut().unwrap().set("v", &[0.6, 1.4]).unwrap();
    let layers = vec![wide(Kind::R, "linear", false, 2), last];
    check("last v", Problem::new(layers, "softmax(classes=2)", 5, 1));
}

/// The shallow model of the same numbers.
fn shallow(problem: &Problem, method: &'static str) -> Model {
    let layer = &problem.model.layers[0];
    let group = &layer.groups[0];
    let points = group.inducing.as_points().unwrap();
    Model {
        kernels: vec![points.kernel.clone()],
        mean: layer.mean.clone(),
        likelihood: problem.model.likelihood.clone(),
        inducing: vec![inducing_param(points.z())],
        q: Some(group.q.clone()),
        method: find(method).unwrap().method,
        jitter: layer.jitter,
        hidden: Vec::new(),
    }
}

#[test]
fn one_layer_is_the_shallow_bound() {
    for (kind, method, bound) in [
        (Kind::W, "svgp", LastBound::Expectation),
        (Kind::M, "svgp", LastBound::Expectation),
        (Kind::W, "svgp2025", LastBound::Tighter),
        (Kind::L, "lsvgp", LastBound::Expectation),
        (Kind::R, "rsvgp", LastBound::Expectation),
    ] {
        let own = recipe(kind, "rbf", "linear", (2, 1));
        let mut problem = Problem::new(vec![own], "gaussian(variance=0.3)", 300, 3);
        problem.model.bound = bound;
        let data = InMemory::new(problem.x.clone(), problem.y.clone()).unwrap();
        let expected = shallow(&problem, method).evaluate(&Cpu::default(), &data).unwrap();
        let rows = Rows::plain(0, problem.x.as_ref(), problem.y.as_ref());
        let batch = Batch { rows, population: 300.0, samples: 3 };
        let noise = Noise::Streams { seed: 1, step: 2 };
        let found = problem.model.evaluate(&batch, &noise, ALL, &mut Work::default()).unwrap();
        let most = expected.value.abs();
        let error = (found.value - expected.value).abs();
        assert!(error < 1e-12 * most, "{kind:?} {method}: {error:e} of {most}");
        // parameters come in another order: here mean functions are last of a layer
        let ours = by_path(&problem.model.params(), &found.gradient);
        let own = shallow(&problem, method);
        let theirs = by_path(&own.params(), &expected.gradient);
        assert_eq!(ours.len(), theirs.len());
        for (path, theirs) in &theirs {
            let is = |own: &str| own.strip_prefix("layers[0].").unwrap_or(own) == path;
            let found = ours.iter().find(|(own, _)| is(own));
            let (_, ours) = found.unwrap_or_else(|| panic!("there is no {path}"));
            assert_eq!(ours.len(), theirs.len(), "{path}");
            for (a, b) in ours.iter().zip(*theirs) {
                let error = (a - b).abs();
                assert!(error < 1e-10 * size(theirs), "{kind:?} {method} {path}: {a} for {b}");
            }
        }
    }
}

fn deep(kind: Kind, sampling: Sampling) -> Problem {
    let mut first = recipe(kind, "rbf", "identity", (2, 2));
    first.sampling = sampling;
    let layers = vec![first, recipe(kind, "matern52", "constant", (2, 1))];
    Problem::new(layers, "gaussian(variance=0.3)", 700, 2)
}

#[test]
fn threads_leave_the_bits_unchanged() {
    for (kind, sampling) in
        [(Kind::W, Sampling::Rows), (Kind::W, Sampling::Functions), (Kind::L, Sampling::Rows)]
    {
        let problem = deep(kind, sampling);
        let run = |threads: usize| -> Vec<u64> {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let noise = Noise::Streams { seed: 4, step: 9 };
            let found = pool.install(|| {
                problem.model.evaluate(&problem.batch(), &noise, ALL, &mut Work::default())
            });
            let found = found.unwrap();
            let x = columns(found.x.as_ref().unwrap());
            let all = std::iter::once(found.value).chain(found.gradient).chain(x);
            all.map(f64::to_bits).collect()
        };
        let one = run(1);
        assert!(run(2) == one && run(3) == one, "{kind:?} {sampling:?}");
    }
}

#[test]
fn both_ways_of_sampling_have_one_expectation() {
    let problem = deep(Kind::W, Sampling::Rows);
    let mut other = problem.model.clone();
    other.layers[0].sampling = Sampling::Functions;
    let mean = |model: &Deep| -> (f64, f64) {
        let count = 400;
        let mut work = Work::default();
        let rows =
            Rows::plain(0, problem.x.as_ref().subrows(0, 20), problem.y.as_ref().subrows(0, 20));
        let values: Vec<f64> = (0..count)
            .map(|step| {
                let noise = Noise::Streams { seed: 8, step };
                let batch = Batch { rows, population: 20.0, samples: 1 };
                model.evaluate(&batch, &noise, Want::default(), &mut work).unwrap().value
            })
            .collect();
        let mean = values.iter().sum::<f64>() / count as f64;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / count as f64;
        (mean, variance / count as f64)
    };
    let ((a, va), (b, vb)) = (mean(&problem.model), mean(&other));
    let away = (a - b).abs() / (va + vb).sqrt();
    assert!(away < 4.0, "{a} and {b}: {away} standard errors");
}

#[test]
fn doubled_batches_and_equal_samples_change_nothing() {
    let problem = Problem::new(deep(Kind::W, Sampling::Rows).model.layers, "gaussian", 9, 1);
    let value = problem.value();
    let twice = |a: &Mat<f64>| Mat::from_fn(2 * a.nrows(), a.ncols(), |i, j| a[(i % a.nrows(), j)]);
    let draws: Vec<Draws> = problem
        .draws
        .iter()
        .map(|own| Draws { rows: twice(&own.rows), functions: Vec::new() })
        .collect();
    let model = &problem.model;
    let batch = Batch { samples: 2, ..problem.batch() };
    let same = |batch: &Batch<'_>| {
        let noise = Noise::Given(&draws);
        model.evaluate(batch, &noise, Want::default(), &mut Work::default()).unwrap().value
    };
    assert!((same(&batch) - value).abs() < 1e-11 * value.abs());
    let (x, y) = (twice(&problem.x), twice(&problem.y));
    let rows = Rows::plain(0, x.as_ref(), y.as_ref());
    assert!((same(&Batch { rows, ..problem.batch() }) - value).abs() < 1e-11 * value.abs());
}

#[test]
fn relaxed_layers_are_those_of_pseudo_observations_where_t_is_solved_for() {
    let relaxed = deep(Kind::R, Sampling::Rows);
    let mut usual = relaxed.model.clone();
    for layer in &mut usual.layers {
        let q = &mut layer.groups[0].q;
        (q.form, q.root) = (Form::Likelihood(Preconditioner::Inverse), None);
    }
    let evaluate = |model: &Deep| {
        let noise = Noise::Given(&relaxed.draws);
        model.evaluate(&relaxed.batch(), &noise, ALL, &mut Work::default()).unwrap()
    };
    let (above, below) = (evaluate(&relaxed.model), evaluate(&usual));
    assert!(above.kl.iter().zip(&below.kl).all(|(r, l)| r > l), "{:?} {:?}", above.kl, below.kl);
    let mut solved = relaxed.model.clone();
    let outcome = solved.settle(&SolverOptions::strict()).unwrap();
    assert!(outcome.len() == 2 && outcome.iter().all(|s| s.residual < 1e-9), "{outcome:?}");
    let same = evaluate(&solved);
    assert!((same.value - below.value).abs() < 1e-9 * below.value.abs());
    let (all, theirs) =
        (by_path(&solved.params(), &same.gradient), by_path(&usual.params(), &below.gradient));
    let (roots, ours): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|(path, _)| path.ends_with("t_sqrt"));
    assert_eq!((roots.len(), ours.len()), (2, theirs.len()));
    for (path, own) in &roots {
        assert!(size(own) < 1e-6, "{path} {own:?}");
    }
    for ((path, own), (other, theirs)) in ours.iter().zip(&theirs) {
        assert_eq!((path, own.len()), (other, theirs.len()));
        let most = size(theirs);
        let error = own.iter().zip(*theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(error < 1e-7 * most, "{path}: {error:e} of {most:e}");
    }
}

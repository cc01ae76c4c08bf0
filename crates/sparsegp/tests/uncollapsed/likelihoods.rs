//! Likelihoods of one, two and three latent functions: gradients against differences, and natural
//! steps from bad starts.

use crate::gradients::check;
use crate::problem::{Problem, draws, points, problem};
use crate::support::{part, random_q};
use proptest::prelude::*;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use sparsegp::data::{InMemory, Source};
use sparsegp::engine::{CholeskyBasis, Cpu, Want};
use sparsegp::kernels::{Inputs, Tape, parse};
use sparsegp::likelihoods;
use sparsegp::linalg::{Cholesky, Mat};
use sparsegp::means::by_name;
use sparsegp::methods::{Uncollapsed, find};
use sparsegp::model::{Model, inducing_param};
use sparsegp::variational::Variational;

/// Kernels whose variance does not grow with the inputs: E exp(−2f) = exp(−2μ + 2v) does not forgive it.
const BOUNDED: &[&str] =
    &["rbf", "rbf(ard=false)", "matern32", "matern52(active_dims=[0])", "rbf + constant"];

/// A likelihood with the targets that it is for.
#[derive(Clone, Copy, Debug)]
struct Observations {
    spec: &'static str,
    targets: Targets,
    /// Range of the further number of a row; empty for none.
    extra: (f64, f64),
}

#[derive(Clone, Copy, Debug)]
enum Targets {
    Real,
    Positive,
    Counts,
    Classes(usize),
}

/// One, two and three latent functions for every target column.
const OBSERVATIONS: &[Observations] = &[
    Observations {
        spec: "student-t(df=4.2, scale=0.4)",
        targets: Targets::Real,
        extra: (0.0, 0.0),
    },
    Observations { spec: "poisson", targets: Targets::Counts, extra: (0.4, 2.5) },
    Observations { spec: "gamma(shape=1.7)", targets: Targets::Positive, extra: (0.0, 0.0) },
    Observations { spec: "bernoulli(link=logit)", targets: Targets::Classes(2), extra: (0.0, 0.0) },
    Observations { spec: "heteroscedastic", targets: Targets::Real, extra: (0.0, 0.0) },
    Observations { spec: "softmax(classes=3)", targets: Targets::Classes(3), extra: (0.0, 0.0) },
    Observations {
        spec: "robust-max(classes=3, epsilon=0.03)",
        targets: Targets::Classes(3),
        extra: (0.0, 0.0),
    },
    Observations {
        spec: "logistic-softmax(classes=3, scales=[1.3, 2.1, 0.4], constant=0.6)",
        targets: Targets::Classes(3),
        extra: (0.0, 0.0),
    },
];

impl Observations {
    /// Turns real targets into those of the likelihood.
    fn suit(&self, data: &mut InMemory, rng: &mut ChaCha8Rng) {
        for p in 0..data.y.ncols() {
            for i in 0..data.y.nrows() {
                let y = data.y[(i, p)];
                data.y[(i, p)] = match self.targets {
                    Targets::Real => y,
                    Targets::Positive => y.exp(),
                    Targets::Counts => y.exp().round(),
                    Targets::Classes(count) => (y.abs() * 1.7).floor().min(count as f64 - 1.0),
                };
            }
        }
        let (low, high) = self.extra;
        if high > low {
            data.extra = (0..data.y.nrows()).map(|_| rng.random_range(low..high)).collect();
        }
    }
}

/// What the latent functions share, and the form of q.
#[derive(Clone, Copy, Debug)]
struct Form {
    method: &'static str,
    own_kernels: bool,
    own_points: bool,
    diagonal: bool,
    whitened: bool,
}

/// The model of a problem with another likelihood, at a random q.
fn model(
    problem: &mut Problem,
    kernel: &str,
    mean: &str,
    observations: &Observations,
    form: Form,
) -> Model {
    let rng = &mut problem.rng;
    let likelihood = likelihoods::parse(observations.spec).unwrap();
    let (d, m) = (problem.data.x.ncols(), problem.model.inducing_points().unwrap().nrows());
    let latents = likelihood.latents() * problem.data.y.ncols();
    let mut model = problem.model.clone();
    model.likelihood = likelihood;
    model.method = find(form.method).unwrap().method;
    model.mean = by_name(mean, d, latents).unwrap();
    if form.own_kernels {
        model.kernels = (0..latents).map(|_| parse(kernel, Inputs::unnamed(d)).unwrap()).collect();
    }
    if form.own_points {
        let sets = (0..latents).map(|_| inducing_param(points(m, d, 0.6, rng).as_ref()));
        model.inducing = sets.collect();
    }
    let mut q = random_q(m, latents, form.diagonal, form.whitened, rng);
    if form.method == "svgp-spherical" {
        q = q.with_factors();
    }
    model.q = Some(q);
    for (path, param) in model.params_mut() {
        let mut draw = |low: f64, high: f64| -> Vec<f64> {
            param.value().iter().map(|_| rng.random_range(low..high)).collect()
        };
        let values = match path.as_str() {
            "q.v" => draw(0.1, 0.95),
            path if path.starts_with("mean") => draw(-0.8, 0.8),
            path if path.starts_with("kernel") => draw(-1.2, 0.4).iter().map(|v| v.exp()).collect(),
            _ => continue,
        };
        param.set(&path, &values).unwrap();
    }
    tame(&mut model);
    model
}

/// The factor of a latent function's Kuu.
fn factor(model: &Model, latent: usize) -> Cholesky {
    let z = model.inducing_set(latent).unwrap();
    let kernel = &model.kernels[if model.kernels.len() == 1 { 0 } else { latent }];
    let mut kuu = Mat::zeros(z.nrows(), z.nrows());
    kernel.evaluate(z.as_ref(), None, kuu.as_mut(), &mut Tape::off());
    CholeskyBasis::new(kuu.as_ref(), model.jitter).unwrap().into_factor()
}

/// Shrinks a q that is far from the prior: where Kuu is nearly singular a moderate q(u) is an extreme
/// q(v), and exponentials of extreme latent functions have no differences that tell anything.
fn tame(model: &mut Model) {
    let q = model.q.clone().unwrap();
    let largest = (0..q.latents()).fold(0.0_f64, |largest, l| {
        let parts = q.whitened(l..l + 1, &factor(model, l)).unwrap();
        largest.max(parts.mean.norm_max()).max(parts.roots[0].norm_max())
    });
    if largest > 1.0 {
        for path in ["q.mu", "q.sqrt"] {
            model
                .for_group(path, |param| {
                    let values: Vec<f64> = param.value().iter().map(|v| v / largest).collect();
                    param.set(path, &values).unwrap();
                })
                .unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// All of it at once: a minibatch with weights and missing targets.
    #[test]
    fn gradients_for_any_likelihood(
        draw in draws(BOUNDED)
            .prop_filter("small enough", |d| d.m <= 4 && d.n <= 24 && d.p <= 2 && d.d <= 3),
        observations in proptest::sample::select(OBSERVATIONS),
        spherical in any::<bool>(),
        flags in any::<[bool; 4]>(),
    ) {
        let [own_kernels, own_points, diagonal, whitened] = flags;
        let method = if spherical { "svgp-spherical" } else { "svgp" };
        let form = Form { method, own_kernels, own_points, diagonal, whitened };
        let mut problem = problem(&draw);
        let model = model(&mut problem, draw.kernel, draw.mean, &observations, form);
        let (mut data, rng) = (problem.data.clone(), &mut problem.rng);
        observations.suit(&mut data, rng);
        data.weights = (0..draw.n).map(|_| rng.random_range(0.0..2.5)).collect();
        data.weights[0] = 0.0;
        data.y[(2, draw.p - 1)] = f64::NAN;
        check(&model, &part(&data, 0, 2), &format!("{draw:?} {observations:?} {form:?}"))?;
    }
}

/// Natural steps from a q, each of half the size of the last one tried until the bound rises. Returns
/// the values.
fn climb(model: &mut Model, data: &dyn Source, steps: usize) -> Vec<f64> {
    let engine = Cpu::default();
    let method = Uncollapsed::of(model.method).unwrap();
    let mut values = vec![model.evaluate(&engine, data).unwrap().value];
    let mut rate: f64 = 1.0;
    for _ in 0..steps {
        let mut step = method.step(model, &engine, data, Want::Statistics).unwrap();
        let last = step.value;
        loop {
            let mut moved = model.clone();
            // a precision that is none is a step too long
            let value = match step.natural(&mut moved, rate) {
                Ok(()) => moved.evaluate(&engine, data).map_or(f64::NEG_INFINITY, |e| e.value),
                Err(error) => {
                    assert!(error.is_recoverable(), "{error}");
                    f64::NEG_INFINITY
                }
            };
            if value >= last - 1e-9 * (1.0 + last.abs()) {
                *model = moved;
                values.push(value);
                rate = (2.0 * rate).min(1.0);
                break;
            }
            rate *= 0.5;
            assert!(rate > 1e-12, "{} is not a way up from {last}", model.likelihood.name());
        }
    }
    values
}

/// Largest slope of the bound in q.
fn slope_in_q(model: &Model, data: &dyn Source) -> f64 {
    let evaluation = model.evaluate(&Cpu::default(), data).unwrap();
    let q: usize = sparsegp::params::count(|v| model.q.as_ref().unwrap().visit(v));
    let slopes = &evaluation.gradient[evaluation.gradient.len() - q..];
    slopes.iter().fold(0.0, |m, g| m.max(g.abs()))
}

/// From means that are far off and covariances that are far too small or too large the bound rises to
/// a stationary point: always the same one where log p(y | f) is concave in f (Challis & Barber 2013).
#[test]
fn natural_steps_recover_from_bad_starts() {
    let draw = crate::problem::Draw {
        n: 50,
        m: 8,
        d: 1,
        p: 1,
        kernel: "matern52",
        mean: "zero",
        seed: 11,
    };
    for observations in &OBSERVATIONS[..2] {
        let mut best = Vec::new();
        for (far, deviation) in [(4.0, 0.02), (-4.0, 3.0), (1.0, 1.0)] {
            for whitened in [true, false] {
                let mut problem = problem(&draw);
                let form = Form {
                    method: "svgp",
                    own_kernels: false,
                    own_points: false,
                    diagonal: false,
                    whitened,
                };
                let mut model = model(&mut problem, "matern52", "zero", observations, form);
                let mut data = problem.data.clone();
                observations.suit(&mut data, &mut problem.rng);
                // of v, and the same of u
                let m = draw.m;
                let mut mean = Mat::from_fn(m, 1, |i, _| if i % 2 == 0 { far } else { -far });
                let mut root = Mat::from_fn(m, m, |i, j| if i == j { deviation } else { 0.0 });
                if !whitened {
                    let l = factor(&model, 0).l;
                    (mean, root) = (&l * &mean, &l * &root);
                }
                let q = Variational::new(mean.as_ref(), &[root], false, whitened);
                model.q = Some(q.unwrap());
                let values = climb(&mut model, &data, 150);
                let (first, last) = (values[0], values[values.len() - 1]);
                let what = format!("{} from {far} {deviation} {whitened}", observations.spec);
                assert!(values.iter().all(|v| v.is_finite()), "{what}: {values:?}");
                assert!(last > first + 1.0, "{what}: {first} {last}");
                let slope = slope_in_q(&model, &data);
                assert!(slope < 1e-5 * (1.0 + last.abs()), "{what}: {last}, slope {slope}");
                best.push(last);
            }
        }
        if observations.spec == "poisson" {
            let low = best.iter().copied().fold(f64::INFINITY, f64::min);
            let high = best.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            assert!(high - low < 1e-8 * high.abs(), "{best:?}");
        }
    }
}

//! The jobs that the crate `gprx` has too, in alternation: `cargo run --release -p sparsegp-bench --features peers --bin gprx`.
//!
//! Medians of the time of the evidence with its gradient in all hyperparameters: exact, and the bound of Titsias (2009) with
//! inducing points that stay where they are; and of means and variances of 10 000 rows by the latter. One kernel (`rbf`, 8 inputs
//! with a lengthscale each), the same rows, points and hyperparameters. Beside each precision of `gprx` how far its value is
//! from ours in double precision, in nats, or its standard deviations, as a share.

use gprx::kernel::{ConstantKernel, KernelSpec, RbfArdKernel};
use gprx::{DoublePrecision, Fixed, FixedInducing, GaussianLikelihood, Gpr, Sgpr};
use gprx::{MixedPrecision, SinglePrecision};
use sparsegp::data::InMemory;
use sparsegp::engine::{Cpu, Engine, Mixed};
use sparsegp::kernels::{Inputs, parse};
use sparsegp::likelihoods::Gaussian;
use sparsegp::linalg::{Jitter, Mat};
use sparsegp::methods;
use sparsegp::model::{Model, inducing_param};
use sparsegp_bench::{median, noise};
use std::time::Instant;

const INPUTS: usize = 8;
const VARIANCE: f64 = 1.3;
const NOISE: f64 = 0.1;
const LENGTH: f64 = 0.57;

/// Rows, targets and points.
struct Problem {
    x: Mat<f64>,
    y: Mat<f64>,
    z: Mat<f64>,
}

impl Problem {
    fn new(n: usize, m: usize) -> Self {
        let x = noise(n, INPUTS, 7);
        let y = Mat::from_fn(n, 1, |i, _| (0..INPUTS).map(|q| x[(i, q)]).sum::<f64>().sin());
        let z = Mat::from_fn(m, INPUTS, |i, q| x[((i * 7919) % n, q)] + 0.01 * (i as f64).sin());
        Self { x, y, z }
    }

    fn ours(&self, method: &str) -> (Model, InMemory) {
        let lengths = [LENGTH; INPUTS].map(|length| length.to_string()).join(",");
        let kernel = format!("rbf(variance={VARIANCE},lengthscales=[{lengths}])");
        let kernel = parse(&kernel, Inputs::unnamed(INPUTS)).expect("a kernel");
        let mut model = Model {
            kernels: vec![kernel],
            mean: sparsegp::means::by_name("zero", INPUTS, 1).expect("a mean"),
            likelihood: Box::new(Gaussian::new(NOISE)),
            inducing: if method == "exact" {
                vec![]
            } else {
                vec![inducing_param(self.z.as_ref())]
            },
            q: None,
            method: methods::find(method).expect("a method").method,
            jitter: Jitter::default(),
            hidden: Vec::new(),
        };
        if method != "exact" {
            model.freeze("inducing.points", true).expect("points");
        }
        (model, InMemory::new(self.x.clone(), self.y.clone()).expect("shapes fit"))
    }
}

/// Column after column.
fn flat(of: &Mat<f64>) -> Vec<f64> {
    (0..of.ncols()).flat_map(|j| (0..of.nrows()).map(move |i| of[(i, j)])).collect()
}

fn theirs() -> (KernelSpec, GaussianLikelihood) {
    let rbf = KernelSpec::from(RbfArdKernel::new(&[LENGTH; INPUTS]).expect("lengthscales"));
    let variance = KernelSpec::from(ConstantKernel::new(VARIANCE).expect("a variance"));
    (variance * rbf, GaussianLikelihood::new(NOISE).expect("a variance"))
}

/// A job: what it computes, once.
type Job<'a> = (&'a str, Box<dyn FnMut() -> Vec<f64> + 'a>);

/// Prints medians of the time of jobs, of which the first is what the others are compared with.
fn compare(title: &str, mut jobs: Vec<Job<'_>>, rounds: usize, apart: fn(&[f64], &[f64]) -> f64) {
    let mut times = vec![Vec::new(); jobs.len()];
    let mut found = vec![Vec::new(); jobs.len()];
    for round in 0..=rounds {
        for (at, (_, job)) in jobs.iter_mut().enumerate() {
            let start = Instant::now();
            found[at] = job();
            if round > 0 {
                times[at].push(start.elapsed().as_secs_f64());
            }
        }
    }
    let own = median(times[0].clone());
    for (at, (name, _)) in jobs.iter().enumerate() {
        let time = median(times[at].clone());
        println!(
            "{title}  {name:16} {:8.1} ms  {:5.2} times ours; apart {:.0e}",
            time * 1e3,
            time / own,
            apart(&found[0], &found[at])
        );
    }
}

/// The job of a peer's value and gradient at its parameters.
macro_rules! evidence {
    ($name:expr, $fitted:expr) => {{
        let mut fitted = $fitted;
        let mut theta = vec![0.0; fitted.num_params()];
        fitted.get_params(&mut theta).expect("parameters");
        let mut slopes = theta.clone();
        let job =
            move || vec![-fitted.value_and_gradient_into(&theta, &mut slopes).expect("a value")];
        ($name, Box::new(job) as Box<dyn FnMut() -> Vec<f64>>)
    }};
}

fn own<'a>(name: &'a str, model: &'a Model, engine: &'a dyn Engine, data: &'a InMemory) -> Job<'a> {
    (name, Box::new(move || vec![model.evaluate(engine, data).expect("an evaluation").value]))
}

fn exact(n: usize) {
    let problem = Problem::new(n, 1);
    let (model, data) = problem.ours("exact");
    let cpu = Cpu::default();
    let (x, y) = (flat(&problem.x), flat(&problem.y));
    macro_rules! peer {
        ($precision:ty) => {{
            let (kernel, likelihood) = theirs();
            let trainer = Gpr::new(kernel, likelihood).with_precision::<$precision>();
            let trainer = trainer.with_optimizer(Fixed).with_prefer_speed();
            trainer.factor(&x, n, INPUTS, &y).map_err(|(_, e)| e).expect("a factor")
        }};
    }
    let jobs = vec![
        own("sparsegp", &model, &cpu, &data),
        evidence!("gprx, double", peer!(DoublePrecision)),
        evidence!("gprx, mixed", peer!(MixedPrecision)),
        evidence!("gprx, single", peer!(SinglePrecision)),
    ];
    compare(&format!("exact, N = {n:5}         "), jobs, 5, |a, b| (a[0] - b[0]).abs());
}

fn sparse(n: usize, m: usize) {
    let problem = Problem::new(n, m);
    let (model, data) = problem.ours("titsias2009");
    let cpu = Cpu::default();
    let mixed = Mixed(&cpu);
    let (x, y, z) = (flat(&problem.x), flat(&problem.y), flat(&problem.z));
    macro_rules! peer {
        ($precision:ty) => {{
            let (kernel, likelihood) = theirs();
            let trainer = Sgpr::new(kernel, likelihood).with_inducing(FixedInducing);
            let trainer = trainer.with_precision::<$precision>().with_optimizer(Fixed);
            trainer.factor(&x, n, INPUTS, &y, &z, m).map_err(|(_, e)| e).expect("a factor")
        }};
    }
    let jobs = vec![
        own("sparsegp", &model, &cpu, &data),
        own("sparsegp, mixed", &model, &mixed, &data),
        evidence!("gprx, double", peer!(DoublePrecision)),
        evidence!("gprx, mixed", peer!(MixedPrecision)),
        evidence!("gprx, single", peer!(SinglePrecision)),
    ];
    compare(&format!("sparse, N = {n}, M = {m:4}"), jobs, 5, |a, b| (a[0] - b[0]).abs());
    let posterior = model.posterior(&cpu, &data).expect("a posterior");
    let some = Mat::from_fn(400, INPUTS, |i, q| problem.x[(i, q)]);
    let (single, _) = posterior.clone().in_mixed_precision(some.as_ref()).expect("products");
    let new = noise(n, INPUTS, 8);
    let rows = flat(&new);
    let (double_peer, single_peer) = (peer!(DoublePrecision), peer!(SinglePrecision));
    let deviations = |variances: &Mat<f64>| {
        variances.col_as_slice(0).iter().map(|v| (v + NOISE).sqrt()).collect::<Vec<f64>>()
    };
    let jobs: Vec<Job<'_>> = vec![
        ("sparsegp", Box::new(|| deviations(&posterior.predict_f(new.as_ref()).expect("rows").1))),
        (
            "sparsegp, mixed",
            Box::new(|| deviations(&single.predict_f(new.as_ref()).expect("rows").1)),
        ),
        (
            "gprx, double",
            Box::new(|| {
                let found = double_peer.predict(&rows, n, INPUTS).expect("rows");
                found.variance.iter().map(|v| v.sqrt()).collect()
            }),
        ),
        (
            "gprx, single",
            Box::new(|| {
                let found = single_peer.predict(&rows, n, INPUTS).expect("rows");
                found.variance.iter().map(|v| f64::from(*v).sqrt()).collect()
            }),
        ),
    ];
    compare(&format!("predictions, M = {m:4}   "), jobs, 3, |a, b| {
        a.iter().zip(b).fold(0.0, |most, (a, b)| most.max((b / a - 1.0).abs()))
    });
}

fn main() {
    let threads = std::env::args().nth(1).map_or(1, |text| text.parse().expect("a number"));
    // the other crate uses the pool of the process
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build_global().expect("threads");
    println!("{threads} thread(s)");
    for n in [1000, 2000] {
        exact(n);
    }
    for m in [256, 512, 1024] {
        sparse(10_000, m);
    }
}

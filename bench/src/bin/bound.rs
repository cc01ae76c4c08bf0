//! Objective and gradient of the collapsed bounds against plain GEMM of the same shape, timed in the
//! same run: `cargo run --release -p sparsegp-bench --bin bound -- [N] [D]`.
//!
//! The floor counts the O(M²N) work only: 4M²N for the 2009 bound, 7M²N for the 2025 bound (6 with
//! features kept), a multiply-add being two. The rate of the floor is compared with the rate of an
//! (M×M)·(M×N) product in the same panels on the same threads. Rounds alternate between the two, and
//! medians are printed: the machine may be noisy.

use sparsegp::data::InMemory;
use sparsegp::engine::Cpu;
use sparsegp::kernels::{Inputs, parse};
use sparsegp::likelihoods::Gaussian;
use sparsegp::linalg::{Jitter, Mat};
use sparsegp::methods;
use sparsegp::model::{Model, inducing_param};
use sparsegp_bench::{median, noise, panels};
use std::time::Instant;

fn main() {
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let n = numbers.first().copied().unwrap_or(10_000);
    let d = numbers.get(1).copied().unwrap_or(18);
    println!("N = {n}, D = {d}, squared exponential with one lengthscale per input");
    for threads in [1, 2] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        for m in [256, 512, 1024] {
            pool.install(|| case(n, d, m, threads));
        }
    }
}

fn case(n: usize, d: usize, m: usize, threads: usize) {
    let x = noise(n, d, 7);
    let y = Mat::from_fn(n, 1, |i, _| (0..d).map(|q| x[(i, q)]).sum::<f64>().sin());
    let z = Mat::from_fn(m, d, |i, q| x[(i * (n / m), q)]);
    let data = InMemory::new(x, y).expect("shapes fit");
    let mut kernel = parse("rbf", Inputs::unnamed(d)).expect("a kernel");
    kernel.initialise(&vec![(d as f64).sqrt() * 0.7; d], 1.3);
    let a = noise(m, m, 3);
    let b = noise(n, m, 5);
    let mut c = Mat::zeros(n, m);
    let engine = Cpu::default();
    for (name, floor) in [("titsias2009", 4.0), ("titsias2025", 7.0)] {
        let model = Model {
            kernels: vec![kernel.clone()],
            mean: sparsegp::means::by_name("zero", d, 1).expect("a mean"),
            likelihood: Box::new(Gaussian::new(0.1)),
            inducing: vec![inducing_param(z.as_ref())],
            q: None,
            method: methods::find(name).expect("a method").method,
            jitter: Jitter::default(),
            hidden: Vec::new(),
        };
        let mut product = Vec::new();
        let mut bound = Vec::new();
        for round in 0..8 {
            let start = Instant::now();
            panels(&a, &b, &mut c);
            let gemm_time = start.elapsed().as_secs_f64();
            engine.reset_timings();
            let start = Instant::now();
            model.evaluate(&engine, &data).expect("an evaluation");
            let time = start.elapsed().as_secs_f64();
            if round > 0 {
                product.push(gemm_time);
                bound.push((time, engine.timings()));
            }
        }
        let gemm_rate = 2.0 * (m * m * n) as f64 / median(product);
        bound.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (time, timings) = &bound[bound.len() / 2];
        let rate = floor * (m * m * n) as f64 / time;
        let t = threads as f64;
        let share = |seconds: f64| 100.0 * seconds / t / time;
        let rows: f64 = timings.total() / t;
        println!(
            "{threads} thread(s)  M = {m:4}  {name}: {:7.1} ms, {:5.1} GFLOP/s of the floor = {:3.0} % of GEMM ({:5.1})   \
             kernel {:4.1} %  solves {:4.1} %  products {:4.1} %  pull-back {:4.1} %  M×M and rest {:4.1} %",
            time * 1e3,
            rate / 1e9,
            100.0 * rate / gemm_rate,
            gemm_rate / 1e9,
            share(timings.kernel),
            share(timings.solves),
            share(timings.products),
            share(timings.pull_back),
            100.0 * (1.0 - rows / time),
        );
    }
}

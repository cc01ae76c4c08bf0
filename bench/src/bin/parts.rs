//! What a step does beside products with rows: a step of Adam for as many parameters as q has, and a whole K(X) with its
//! pull-back: `cargo run --release -p sparsegp-bench --bin parts`. Medians, on one thread and on two.

use sparsegp::Result;
use sparsegp::kernels::{Cotangents, Inputs, Tape, parse};
use sparsegp::linalg::Mat;
use sparsegp::optim::{Adam, AdamOptions, Objective, Optimiser};
use sparsegp_bench::{median, noise};
use std::time::Instant;

/// A gradient that costs a copy.
struct Given(Vec<f64>, f64);

impl Objective for Given {
    fn dim(&self) -> usize {
        self.0.len()
    }

    fn evaluate(&mut self, _: &[f64], gradient: &mut [f64]) -> Result<f64> {
        gradient.copy_from_slice(&self.0);
        self.1 += 1.0;
        Ok((0.7 * self.1).sin())
    }
}

fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

/// With a separate rate for a tenth of the parameters, as inducing points have.
fn adam(points: usize, threads: usize) {
    let dim = points + points * (points + 1) / 2 + 8 * points;
    let wave = |f: fn(f64) -> f64| (0..dim).map(|i| f(i as f64)).collect::<Vec<_>>();
    let multipliers = (0..dim).map(|i| if i < dim / 10 { 0.5 } else { 1.0 }).collect();
    let mut adam = Adam::new(wave(f64::sin), AdamOptions { multipliers, ..Default::default() });
    let mut objective = Given(wave(f64::cos), 0.0);
    let mut step = || seconds(|| drop(adam.step(&mut objective).expect("a finite gradient")));
    let time = median((0..100).map(|_| step()).skip(5).collect());
    println!(
        "{threads} thread(s)  Adam, M = {points:4}, {dim:6} parameters: {:7.1} µs, {:4.1} ns each",
        time * 1e6,
        time / dim as f64 * 1e9
    );
}

fn covariance(n: usize, threads: usize) {
    let mut kernel = parse("rbf", Inputs::unnamed(8)).expect("a kernel");
    kernel.initialise(&[2.0; 8], 1.3);
    let (x, given) = (noise(n, 8, 7), noise(n, n, 3));
    let (mut k, mut bar, mut tape) = (Mat::zeros(n, n), given.clone(), Tape::recording());
    let (mut values, mut pulls) = (Vec::new(), Vec::new());
    for _ in 0..15 {
        tape.restart(true);
        values.push(seconds(|| kernel.evaluate(x.as_ref(), None, k.as_mut(), &mut tape)));
        bar.copy_from(&given);
        let mut params = vec![0.0; kernel.num_params()];
        let mut sinks = Cotangents { params: &mut params, x: None, z: None };
        let (x, k, bar) = (x.as_ref(), k.as_ref(), bar.as_mut());
        pulls.push(seconds(|| kernel.vjp(x, None, k, bar, &mut tape, &mut sinks)));
    }
    let (value, pull) = (1e3 * median(values), 1e3 * median(pulls));
    println!("{threads} thread(s)  K(X), N = {n}: {value:5.2} ms, pull-back {pull:5.2} ms");
}

fn main() {
    for threads in [1, 2] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| {
            [100, 256, 1024].into_iter().for_each(|m| adam(m, threads));
            [1000, 2000].into_iter().for_each(|n| covariance(n, threads));
        });
    }
}

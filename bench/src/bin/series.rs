//! Cost of exact inference of one input by Kalman filters: seconds of the log evidence with its gradient, and of predictions,
//! over rows. Options: `--rows 1000000` (the most), `--repeats 3`.

use sparsegp::kernels::{Inputs, parse};
use sparsegp::linalg::Mat;
use sparsegp::markov::{Rows, Smoothed, evidence, log_evidence};
use sparsegp_bench::median;
use std::time::Instant;

const KERNELS: &[&str] = &[
    "matern12",
    "matern32",
    "matern52",
    "matern52 + matern12",
    "matern32 * cosine",
    "matern52 + periodic",
    "matern52 + matern32 * periodic",
];

/// Places in [0, N/10], evenly or not.
fn places(n: usize, even: bool) -> Vec<f64> {
    let shift = |i: usize| if even { 0.0 } else { 0.4 * (12.9898 * i as f64).sin() };
    (0..n).map(|i| 0.1 * (i as f64 + shift(i))).collect()
}

fn seconds(repeats: usize, mut work: impl FnMut()) -> f64 {
    let one = |_| {
        let clock = Instant::now();
        work();
        clock.elapsed().as_secs_f64()
    };
    median((0..repeats).map(one).collect())
}

/// The number after an option.
fn argument(name: &str, usual: usize) -> usize {
    let all: Vec<String> = std::env::args().collect();
    let at = all.iter().position(|own| own == name);
    at.and_then(|at| all.get(at + 1)?.parse().ok()).unwrap_or(usual)
}

fn main() -> sparsegp::Result<()> {
    let (most, repeats) = (argument("--rows", 1_000_000), argument("--repeats", 3));
    println!(
        "| kernel | states | rows | evenly | value, s | with gradient, s | µs a row | condition, s | 1000 places, s |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for spec in KERNELS {
        let kernel = parse(spec, Inputs::unnamed(1))?;
        for even in [true, false] {
            let mut n = 10_000;
            while n <= most {
                let space = kernel.state_space()?;
                let (t, noise) = (places(n, even), vec![0.1; n]);
                let y =
                    Mat::from_fn(n, 1, |i, _| (0.3 * t[i]).sin() + 0.3 * (7.1 * i as f64).sin());
                let rows = Rows { t: &t, y: y.as_ref(), noise: &noise, start: None };
                let go_on = || Ok(());
                let value = seconds(repeats, || drop(log_evidence(&*space, rows, &go_on)));
                let slopes =
                    seconds(repeats, || drop(evidence(&*space, rows, kernel.num_params(), &go_on)));
                let size = space.size();
                let clock = Instant::now();
                let known = Smoothed::new(space, rows, &go_on)?;
                let condition = clock.elapsed().as_secs_f64();
                let at: Vec<f64> = (0..1000).map(|i| f64::from(i) * 1e-4 * n as f64).collect();
                let predict = seconds(repeats, || drop(known.moments(&at)));
                let each = slopes / n as f64 * 1e6;
                println!(
                    "| `{spec}` | {size} | {n} | {even} | {value:.4} | {slopes:.4} | {each:.2} | {condition:.4} | {predict:.4} |"
                );
                n *= 10;
            }
        }
    }
    Ok(())
}

//! Cost of exact inference of one input by Kalman filters: seconds of the log evidence with its gradient, and of predictions,
//! over rows.
//!
//! With `--model` it is a model of `--method markov` with as many rows, seconds of the processor and memory beside that of the table: what a
//! training evaluates, and what predicts. Peaks of memory are of a process, so that every number of rows wants one to itself.

use clap::Parser;
use sparsegp::data::InMemory;
use sparsegp::engine::Cpu;
use sparsegp::kernels::{Inputs, parse};
use sparsegp::likelihoods;
use sparsegp::linalg::Mat;
use sparsegp::markov::{Places, Rows, Smoothed, evidence, log_evidence};
use sparsegp::methods;
use sparsegp::model::Model;
use sparsegp_bench::{median, peak_memory, processor_seconds};
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

/// Seconds that the processor spends, on average; so often that they are many hundredths.
fn spent(rows: usize, repeats: usize, mut work: impl FnMut()) -> f64 {
    let repeats = repeats.max(2_000_000 / rows);
    let begun = processor_seconds();
    (0..repeats).for_each(|_| work());
    (processor_seconds() - begun) / repeats as f64
}

/// Cost of exact inference of one input by Kalman filters
#[derive(Parser)]
struct Options {
    /// Most rows; of a model, its rows
    #[arg(long, default_value_t = 1_000_000)]
    rows: usize,
    /// Repetitions of each measurement, at least
    #[arg(long, default_value_t = 3)]
    repeats: usize,
    /// Only this kernel, at uneven places
    #[arg(long)]
    kernel: Option<String>,
    /// A model instead of the filters
    #[arg(long)]
    model: bool,
}

/// Targets at places.
fn targets(t: &[f64]) -> Mat<f64> {
    Mat::from_fn(t.len(), 1, |i, _| (0.3 * t[i]).sin() + 0.3 * (7.1 * i as f64).sin())
}

/// A model with all rows: seconds and bytes a row.
fn of_model(spec: &str, n: usize, repeats: usize) -> sparsegp::Result<()> {
    let kernel = parse(spec, Inputs::unnamed(1))?;
    let t = places(n, false);
    let data = InMemory::new(Mat::from_fn(n, 1, |i, _| t[i]), targets(&t))?;
    drop(t);
    let builder = Model::builder(kernel, methods::find("markov")?.method);
    let model = builder.likelihood(likelihoods::parse("gaussian(variance=0.1)")?).build(1, 1)?;
    let engine = Cpu::default();
    let table = peak_memory();
    let bytes = || 1024.0 * (peak_memory() - table) / n as f64;
    let mut value = 0.0;
    let slopes = spent(n, repeats, || {
        value = model.evaluate(&engine, &data).map_or(f64::NAN, |own| own.value);
    });
    let of_slopes = bytes();
    let begun = processor_seconds();
    let posterior = model.posterior(&engine, &data)?;
    let condition = processor_seconds() - begun;
    let at = Mat::from_fn(10_000, 1, |i, _| i as f64 * 1e-5 * n as f64);
    let predict = spent(n, repeats, || drop(posterior.predict_f(at.as_ref())));
    println!(
        "| rows | log evidence | with gradient, s | µs a row | condition, s | 10 000 places, s | bytes a row: gradient | with predictions |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    println!(
        "| {n} | {value:.6} | {slopes:.4} | {:.3} | {condition:.4} | {predict:.4} | {of_slopes:.0} | {:.0} |",
        1e6 * slopes / n as f64,
        bytes()
    );
    Ok(())
}

fn main() -> sparsegp::Result<()> {
    let Options { rows: most, repeats, kernel: only, model } = Options::parse();
    if model {
        return of_model(only.as_deref().unwrap_or("matern32"), most, repeats);
    }
    println!(
        "| kernel | states | rows | evenly | value, s | with gradient, s | µs a row | condition, s | 1000 places, s |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    let kernels: Vec<&str> = match &only {
        Some(own) => vec![own],
        None => KERNELS.to_vec(),
    };
    for spec in kernels {
        let kernel = parse(spec, Inputs::unnamed(1))?;
        for even in [true, false].into_iter().filter(|even| only.is_none() || !even) {
            let mut n = 10_000;
            while n <= most {
                let space = kernel.state_space()?;
                let (t, noise) = (places(n, even), vec![0.1; n]);
                let y = targets(&t);
                let (seen, start) = (Places::of_times(&t), None);
                let rows = Rows { places: seen, y: y.as_ref(), noise: &noise, start };
                let go_on = || Ok(());
                let value = seconds(repeats, || drop(log_evidence(&*space, rows, &go_on)));
                let slopes =
                    seconds(repeats, || drop(evidence(&*space, rows, kernel.num_params(), &go_on)));
                let size = space.size();
                let clock = Instant::now();
                let known = Smoothed::new(space, rows, &go_on)?;
                let condition = clock.elapsed().as_secs_f64();
                let at = Mat::from_fn(1000, 1, |i, _| i as f64 * 1e-4 * n as f64);
                let predict = seconds(repeats, || drop(known.moments(at.as_ref())));
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

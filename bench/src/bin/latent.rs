//! The bound of the Bayesian GP-LVM and its gradient against a plain product, timed in the same run:
//! `cargo run --release -p sparsegp-bench --bin latent -- [N] [P]` (Linux), and with `batches [N]` trainings by minibatches beside those
//! on all rows at once; with `oil` the bounds of 2009 and 2025 on oil flow: 100 rows of 12 sensors, three phases of flow.
//!
//! M = 100 inducing points and Q = 10 latent dimensions. The floor counts N M²/2 exponentials, once for the bound and once for
//! the gradient, of 5Q + 20 operations each, and 4QNM² for the pull-back. Rounds alternate between the two, and medians are
//! printed with the peak memory of the process.

use sparsegp::data::{Selection, Table};
use sparsegp::kernels::{Inputs, parse};
use sparsegp::latent::{Gplvm, GplvmBatches, GplvmOptions, Targets, Trainable, fit_gplvm_watched};
use sparsegp::linalg::{Jitter, Mat};
use sparsegp::params::{Param, Transform};
use sparsegp::terms;
use sparsegp_bench::{median, noise, panels, peak_memory};
use std::time::Instant;

const M: usize = 100;
const Q: usize = 10;
const SIDE: usize = 2000;

fn main() -> sparsegp::Result<()> {
    if std::env::args().nth(1).as_deref() == Some("batches") {
        let n = std::env::args().nth(2).and_then(|n| n.parse().ok());
        return batches(n.unwrap_or(20_000));
    }
    if std::env::args().nth(1).as_deref() == Some("oil") {
        return oil();
    }
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let n = numbers.first().copied().unwrap_or(10_000);
    let p = numbers.get(1).copied().unwrap_or(50);
    println!("N = {n}, P = {p}, M = {M}, Q = {Q}, squared exponential");
    let mean = noise(n, Q, 7);
    let y = Mat::from_fn(n, p, |i, j| {
        (0..Q).map(|q| mean[(i, q)] * ((j + 3 * q) as f64).cos()).sum::<f64>().sin()
    });
    let points = Mat::from_fn(M, Q, |i, q| mean[(i * (n / M), q)]);
    let targets = Targets::new(y.as_ref())?;
    let of = |a: &Mat<f64>| Param::of_matrix(a.as_ref(), Transform::Identity);
    let variance = Mat::from_fn(n, Q, |_, _| 0.1);
    let (a, b) = (noise(SIDE, SIDE, 3), noise(SIDE, SIDE, 5));
    let mut c = Mat::zeros(SIDE, SIDE);
    for threads in [1, 2] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        for name in ["titsias2009", "titsias2025"] {
            let mut kernel = parse("rbf", Inputs::unnamed(Q))?;
            kernel.initialise(&[1.5; Q], 1.3);
            let model = Gplvm {
                kernel,
                noise: Param::positive(0.1),
                points: of(&points),
                mean: of(&mean),
                variance: Param::of_matrix(variance.as_ref(), Transform::Exp { lower: 0.0 }),
                term: terms::find(name)?,
                jitter: Jitter::default(),
                block: None,
            };
            let (mut product, mut bound) = (Vec::new(), Vec::new());
            for round in 0..6 {
                let start = Instant::now();
                pool.install(|| panels(&a, &b, &mut c));
                let before = start.elapsed().as_secs_f64();
                let start = Instant::now();
                pool.install(|| model.evaluate(&targets))?;
                if round > 0 {
                    product.push(before);
                    bound.push(start.elapsed().as_secs_f64());
                }
            }
            let floor = (n * M * M) as f64 * (5 * Q + 20 + 4 * Q) as f64;
            let (time, gemm) = (median(bound), 2.0 * (SIDE as f64).powi(3) / median(product));
            println!(
                "{threads} thread(s)  {name}: {:7.1} ms, {:5.1} GFLOP/s of the floor = {:3.0} % of the product ({:5.1})",
                1e3 * time,
                floor / time / 1e9,
                100.0 * floor / time / gemm,
                gemm / 1e9
            );
        }
    }
    println!("peak memory {:.0} MiB, of which products have {:.0}", peak_memory() / 1024.0, 96.0);
    Ok(())
}

/// Minibatches beside all rows at once: bounds against time, of rows on a sheet with noise.
fn batches(n: usize) -> sparsegp::Result<()> {
    let hidden = noise(n, 2, 11);
    let error = noise(n, 20, 13);
    let y = Mat::from_fn(n, 20, |i, j| {
        let phase = j as f64;
        (1.3 * hidden[(i, 0)] + phase).sin()
            + (1.1 * hidden[(i, 1)] - phase).cos()
            + 0.3 * error[(i, j)]
    });
    let all = GplvmOptions { dimensions: 5, inducing: 50, ..GplvmOptions::default() };
    println!("\nN = {n}, P = 20, M = 50, Q = 5: the bound for a cell against seconds\n");
    println!("| | iterations | seconds | nats a cell |\n| --- | --- | --- | --- |");
    let run = |name: &str, options: &GplvmOptions| -> sparsegp::Result<()> {
        let start = Instant::now();
        let mut steps = 0;
        let found = fit_gplvm_watched(y.as_ref(), options, &mut |_| {
            steps += 1;
            true
        })?;
        let seconds = start.elapsed().as_secs_f64();
        println!("| {name} | {steps} | {seconds:.1} | {:.4} |", found.bound / (20 * n) as f64);
        Ok(())
    };
    for iterations in [30, 100, 300] {
        run("all rows at once", &GplvmOptions { iterations, ..all.clone() })?;
    }
    for epochs in [2, 5, 20] {
        let batches = Some(GplvmBatches { epochs, ..GplvmBatches::default() });
        let own = GplvmOptions { batches, iterations: 300, ..all.clone() };
        run(&format!("minibatches of 500, {epochs} epochs"), &own)?;
    }
    println!("\npeak memory {:.0} MiB", peak_memory() / 1024.0);
    Ok(())
}

/// Share of the rows whose nearest other row by these columns is of another phase.
fn nearest_errors(z: &Mat<f64>, columns: &[usize], phase: &[f64]) -> f64 {
    let n = z.nrows();
    let apart = |i: usize, j: usize| -> f64 {
        columns.iter().map(|q| (z[(i, *q)] - z[(j, *q)]).powi(2)).sum()
    };
    let wrong = (0..n).filter(|&i| {
        let others = (0..n).filter(|j| *j != i);
        let near = others.min_by(|a, b| apart(i, *a).total_cmp(&apart(i, *b)));
        near.is_some_and(|near| phase[near] != phase[i])
    });
    wrong.count() as f64 / n as f64
}

/// Both bounds on oil flow, five starts each.
fn oil() -> sparsegp::Result<()> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/data/oil-flow.csv.gz");
    let table = Table::open(path)?.select(&Selection::targets(["phase"]))?.read_all()?;
    let phase = table.y.col_as_slice(0).to_vec();
    println!(
        "oil flow: 100 rows of 12 columns, Q = 5, the best of five starts; errors of the nearest neighbour by the two most\n"
    );
    println!("relevant dimensions and by all five\n");
    println!(
        "| M | bound | nats | used | noise | errors: 2 | 5 | seconds |\n| --- | --- | --- | --- | --- | --- | --- | --- |"
    );
    for inducing in [10, 20, 40] {
        for method in ["titsias2009", "titsias2025"] {
            let options = GplvmOptions {
                dimensions: 5,
                inducing,
                method: method.into(),
                restarts: 5,
                iterations: 3000,
                ..GplvmOptions::default()
            };
            let start = Instant::now();
            let found = fit_gplvm_watched(table.x.as_ref(), &options, &mut |_| true)?;
            let seconds = start.elapsed().as_secs_f64();
            let relevance = found.relevance();
            let mut order: Vec<usize> = (0..5).collect();
            order.sort_by(|a, b| relevance[*b].total_cmp(&relevance[*a]));
            let z = found.latent()?.0;
            println!(
                "| {inducing} | `{method}` | {:.1} | {} of 5 | {:.4} | {:.0} % | {:.0} % | {seconds:.1} |",
                found.bound,
                relevance.iter().filter(|r| **r > 0.01).count(),
                found.posterior.noise(),
                100.0 * nearest_errors(&z, &order[..2], &phase),
                100.0 * nearest_errors(&z, &order, &phase),
            );
        }
    }
    Ok(())
}

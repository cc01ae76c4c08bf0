//! A step of L-SVGP and R-SVGP beside SVGP, value and all gradients, against a plain product of matrices in the same run:
//! `cargo run --release -p sparsegp-bench --bin inverse_free -- [--threads 1,2] [--points 256,1024] [--batch 100,1024]
//! [--steps 1,3,10,30,100] [--only single]`.

use sparsegp::data::InMemory;
use sparsegp::engine::{Cpu, Want};
use sparsegp::inverse_free::{Estimate, Preconditioner, Schedule, SolverOptions, Traces};
use sparsegp::kernels::{Inputs, parse};
use sparsegp::likelihoods::Gaussian;
use sparsegp::linalg::{Jitter, Mat, MatRef, Precision, Real};
use sparsegp::means;
use sparsegp::methods::{Following, Step, Uncollapsed, find};
use sparsegp::model::{Model, inducing_param};
use sparsegp::variational::Variational;
use sparsegp_bench::{median, noise, panels};
use std::time::Instant;

fn option(arguments: &[String], name: &str, default: &str) -> String {
    let at = arguments.iter().position(|a| a == name);
    at.and_then(|i| arguments.get(i + 1)).cloned().unwrap_or_else(|| default.to_owned())
}

/// A model of a method with M inducing points among the rows.
fn model(m: usize, d: usize, x: MatRef<f64>, method: &str) -> Model {
    let mut kernel = parse("rbf", Inputs::unnamed(d)).expect("a kernel");
    kernel.initialise(&vec![(d as f64).sqrt() * 0.7; d], 1.3);
    let z = Mat::from_fn(m, d, |i, q| x[((i * 7919) % x.nrows(), q)] + 0.01 * (i as f64).sin());
    let method = find(method).expect("a method").method;
    Model {
        kernels: vec![kernel],
        mean: means::by_name("zero", d, 1).expect("a mean"),
        likelihood: Box::new(Gaussian::new(0.1)),
        inducing: vec![inducing_param(z.as_ref())],
        q: Some(q_of(method.name(), m, 1, Preconditioner::Inverse)),
        method,
        jitter: Jitter::default(),
        hidden: Vec::new(),
    }
}

fn q_of(method: &str, m: usize, latents: usize, preconditioner: Preconditioner) -> Variational {
    match method {
        "lsvgp" => Variational::pseudo_observations(m, latents, preconditioner, false),
        "rsvgp" => Variational::pseudo_observations(m, latents, preconditioner, true),
        _ => Variational::prior(m, latents, false),
    }
}

/// All gradients, as Adam takes them.
const WANT: Want = Want::Adjoints { statistics: false };

/// A step with so many steps of L, medians of ten, and the share of the rate of a plain product of the same
/// precision. Counted are for `rsvgp` (5/3)M³k for k steps of L (K̃L, the lower triangle of Lᵀ(K̃L), L·W) and
/// 4/3 M³ for the first look, 3 M³ for the traces and the sandwich (1⅓ M³ where there are probes), and 5M²B for
/// the rows: project, ΦE (twice as much), gram and back. For `lsvgp` 3M²B, and a factor, an inverse, J and the
/// sandwich: 2⅓ M³. For `svgp` 6M²B and 1⅓ M³, or of many rows 4M²B and 4⅓ M³.
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let listed = |name: &str, default: &str| -> Vec<usize> {
        let listed = option(&arguments, name, default);
        listed.split(',').map(|v| v.parse().expect("a number")).collect()
    };
    let (few, all) = (Traces::Probes(64, Estimate::LSpace), Traces::Exact);
    println!(
        "| threads | M | B | precision | method | traces | steps of L | ms | GFLOP/s of the count | of GEMM \
         | floor (5/3)M³k + 8M²B, of GEMM |"
    );
    println!("|--:|--:|--:|---|---|---|--:|--:|--:|--:|--:|");
    for threads in listed("--threads", "1,2") {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        for b in listed("--batch", "100,1024") {
            for m in listed("--points", "256,1024") {
                let others = option(&arguments, "--only", "").is_empty();
                pool.install(|| {
                    let (single, double) = (Precision::Single, Precision::Double);
                    if others {
                        one_cost::<f64>((m, b), "svgp", (all, 0, double), threads);
                        one_cost::<f64>((m, b), "lsvgp", (all, 0, double), threads);
                    }
                    for k in listed("--steps", "1,3,10,30,100") {
                        if others {
                            one_cost::<f64>((m, b), "rsvgp", (all, k, double), threads);
                            one_cost::<f64>((m, b), "rsvgp", (few, k, double), threads);
                        }
                        one_cost::<f32>((m, b), "rsvgp", (few, k, single), threads);
                    }
                });
            }
        }
    }
}

fn one_cost<T: Real>(
    (m, b): (usize, usize),
    method: &str,
    (traces, k, products): (Traces, usize, Precision),
    threads: usize,
) {
    let d = 8;
    let x = noise(b, d, 7);
    let y = Mat::from_fn(b, 1, |i, _| (0..d).map(|q| x[(i, q)]).sum::<f64>().sin());
    let mut model = model(m, d, x.as_ref(), method);
    if model.q.as_ref().is_some_and(|q| q.pseudo().is_some()) {
        model.set("q.lambda", &[1e-2]).expect("positive");
    }
    let data = InMemory::new(x, y).expect("shapes fit");
    // the plain product: as many rows as give all threads enough to do
    let rows = b.max(1024);
    let ones =
        |rows, columns| Mat::<T>::from_fn(rows, columns, |i, j| T::of(((i + 3 * j) % 7) as f64));
    let (left, right, mut c) = (ones(m, m), ones(rows, m), ones(rows, m));
    let engine = Cpu::default();
    let method_of = Uncollapsed::of(model.method).expect("uncollapsed");
    let mut step = Step::default();
    let mut gradient = vec![0.0; model.num_params()];
    method_of.settle(&mut model, &SolverOptions::default()).expect("an inverse");
    let solver = SolverOptions {
        schedule: Schedule::Constant(1.0),
        tolerance: 1e-300,
        most: k,
        stall: false,
        products,
        ..SolverOptions::default()
    };
    let (mut product, mut whole) = (Vec::new(), Vec::new());
    for round in 0..12 {
        let start = Instant::now();
        panels(&left, &right, &mut c);
        let one = start.elapsed().as_secs_f64();
        let how = Following { solver, traces, evaluation: round, ..Following::default() };
        let start = Instant::now();
        method_of.follow(&mut step, &mut model, &engine, &data, WANT, &how).expect("a step");
        step.gradient(&model, std::hint::black_box(&mut gradient));
        if round > 1 {
            product.push(one);
            whole.push(start.elapsed().as_secs_f64());
        }
    }
    let gemm_rate = 2.0 * (m * m * rows) as f64 / median(product);
    let (cube, rows) = ((m * m * m) as f64, (m * m * b) as f64);
    let count = match method {
        "svgp" if 3 * b >= 5 * m => 4.0 * rows + 13.0 / 3.0 * cube,
        "svgp" => 6.0 * rows + 4.0 / 3.0 * cube,
        "lsvgp" => 3.0 * rows + 7.0 / 3.0 * cube,
        _ => {
            let traces = if traces.probes(m) > 0 { 4.0 / 3.0 } else { 3.0 };
            5.0 * rows + (5.0 / 3.0 * k as f64 + 4.0 / 3.0 + traces) * cube
        }
    };
    let floor = 5.0 / 3.0 * k as f64 * cube + 8.0 * rows;
    let whole = median(whole);
    let (traces, steps, of_floor) = match (method, traces.probes(m)) {
        ("rsvgp", p) => (
            if p == 0 { "exact".into() } else { format!("{p} probes") },
            k.to_string(),
            format!("{:.0} %", 100.0 * floor / whole / gemm_rate),
        ),
        _ => Default::default(),
    };
    let precision = if products == Precision::Single { "single" } else { "double" };
    println!(
        "| {threads} | {m} | {b} | {precision} | {method} | {traces} | {steps} | {:.1} | {:.0} | {:.0} % | {of_floor} |",
        whole * 1e3,
        count / whole / 1e9,
        100.0 * count / whole / gemm_rate,
    );
}

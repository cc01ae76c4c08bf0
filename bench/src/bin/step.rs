//! A minibatch step of the uncollapsed bounds, value and all gradients, against plain GEMM timed in the
//! same run: `cargo run --release -p sparsegp-bench --bin step [M]`, with one M in the place of all.
//!
//! The count is that of the rows, 6M²B (see the engine's `pass`), and of the M×M work, 1⅓M³: the factor of Kuu (⅓)
//! and K̄uu = L⁻ᵀ mirror(Ψ) L⁻¹ (1); of many rows with the bound of `svgp` 4M²B and 4⅓M³, with S (⅓), (S − I)L⁻¹ (1), GR (1) and R(GR)ᵀ (⅔);
//! a multiply-add being two. Rounds alternate with the product
//! (M×M)·(M×B) in the same panels on the same threads, medians are printed. At M = 100, B = 200, where
//! products are short, a step is compared with the sum of its parts, each timed separately.
//! `--bin step M train [THREADS]` times iterations of a whole training: minibatches of random rows, a
//! probit likelihood, Adam on everything.

use sparsegp::data::{InMemory, Source};
use sparsegp::engine::{Cpu, Want};
use sparsegp::kernels::{Inputs, Tape, parse};
use sparsegp::likelihoods::{Gaussian, parse as parse_likelihood};
use sparsegp::linalg::{
    Accum, Cholesky, Jitter, Mat, MatRef, Par, gram_lower, par_for, sandwich_inverse, solve_lower,
    solve_lower_transpose, times_triangular,
};
use sparsegp::methods::{self, Step, Uncollapsed};
use sparsegp::model::{Model, inducing_param};
use sparsegp::train::{StochasticOptions, Surroundings, train_batches};
use sparsegp::variational::Variational;
use sparsegp_bench::{median, noise, panels};
use std::time::Instant;

fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

fn model(m: usize, d: usize, x: MatRef<f64>, method: &str) -> Model {
    let mut kernel = parse("rbf", Inputs::unnamed(d)).expect("a kernel");
    kernel.initialise(&vec![(d as f64).sqrt() * 0.7; d], 1.3);
    let z = Mat::from_fn(m, d, |i, q| x[((i * 7919) % x.nrows(), q)] + 0.01 * (i as f64).sin());
    let root = Mat::from_fn(m, m, |i, j| match i.cmp(&j) {
        std::cmp::Ordering::Less => 0.0,
        std::cmp::Ordering::Equal => 0.5,
        std::cmp::Ordering::Greater => 0.01 * ((i * 31 + j) as f64).sin(),
    });
    let mean = Mat::from_fn(m, 1, |i, _| (i as f64).cos());
    Model {
        kernels: vec![kernel],
        mean: sparsegp::means::by_name("zero", d, 1).expect("a mean"),
        likelihood: Box::new(Gaussian::new(0.1)),
        inducing: vec![inducing_param(z.as_ref())],
        q: Some(Variational::new(mean.as_ref(), &[root], false, true).expect("shapes that fit")),
        method: methods::find(method).expect("a method").method,
        jitter: Jitter::default(),
        hidden: Vec::new(),
    }
}

fn main() {
    let d = 8;
    let only: Option<usize> =
        std::env::args().nth(1).map(|m| m.parse().expect("a number of points"));
    let sizes = only.map_or(vec![100, 256, 1024], |m| vec![m]);
    let train = std::env::args().nth(2).is_some_and(|what| what == "train");
    println!("B = 1024, D = {d}, squared exponential with one lengthscale per input");
    let threads: Option<usize> =
        std::env::args().nth(3).map(|n| n.parse().expect("a number of threads"));
    for threads in threads.map_or(vec![1, 2], |n| vec![n]) {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        if train {
            sizes.iter().for_each(|m| pool.install(|| training(*m, d, threads)));
            continue;
        }
        for &m in sizes.iter().filter(|m| **m != 100) {
            for method in ["svgp", "svgp2025"] {
                pool.install(|| case(m, 1024, d, method, threads));
            }
        }
        if sizes.contains(&100) {
            pool.install(|| small(100, 200, d, threads));
        }
    }
}

fn case(m: usize, b: usize, d: usize, method: &str, threads: usize) {
    let x = noise(b, d, 7);
    let y = Mat::from_fn(b, 1, |i, _| (0..d).map(|q| x[(i, q)]).sum::<f64>().sin());
    let model = model(m, d, x.as_ref(), method);
    let data = InMemory::new(x, y).expect("shapes fit");
    let (left, right) = (noise(m, m, 3), noise(b, m, 5));
    let mut c = Mat::zeros(b, m);
    let engine = Cpu::default();
    let method_of = Uncollapsed::of(model.method).expect("uncollapsed");
    let (mut step, mut gradient) = (Step::default(), vec![0.0; model.num_params()]);
    let (mut product, mut pass, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..12 {
        let one = timed(|| panels(&left, &right, &mut c));
        let start = Instant::now();
        let want = Want::Adjoints { statistics: false };
        method_of.renew(&mut step, &model, &engine, &data, want).expect("a step");
        let two = start.elapsed().as_secs_f64();
        step.gradient(&model, std::hint::black_box(&mut gradient));
        let three = start.elapsed().as_secs_f64();
        if round > 1 {
            product.push(one);
            pass.push(two);
            whole.push(three);
        }
    }
    let gemm_rate = 2.0 * (m * m * b) as f64 / median(product);
    let (pass, whole) = (median(pass), median(whole));
    let many = method == "svgp" && 3 * b >= 5 * m;
    let (of_rows, of_points) = if many { (4.0, 13.0 / 3.0) } else { (6.0, 4.0 / 3.0) };
    let flops = of_rows * (m * m * b) as f64 + of_points * (m * m * m) as f64;
    let rate = flops / whole;
    println!(
        "{threads} thread(s)  M = {m:4}  {method:8}: {:6.1} ms (rows and Kuu {:6.1}), {:5.1} GFLOP/s \
         of the count = {:3.0} % of GEMM ({:5.1})",
        whole * 1e3,
        pass * 1e3,
        rate / 1e9,
        100.0 * rate / gemm_rate,
        gemm_rate / 1e9,
    );
}

/// A small step against its parts, each timed separately.
fn small(m: usize, b: usize, d: usize, threads: usize) {
    let x = noise(b, d, 7);
    let y = Mat::from_fn(b, 1, |i, _| x[(i, 0)].sin());
    let model = model(m, d, x.as_ref(), "svgp");
    let data = InMemory::new(x.clone(), y).expect("shapes fit");
    let engine = Cpu::default();
    let method = Uncollapsed::of(model.method).expect("uncollapsed");
    let z = model.inducing_points().expect("points");
    let root = model.q.as_ref().expect("a q").root(0);
    let (par, mut tape) = (par_for(m), Tape::recording());
    let (mut k, mut kuf) = (Mat::zeros(m, m), Mat::zeros(b, m));
    let (mut a, mut phi_bar, mut g) = (Mat::zeros(b, m), Mat::zeros(b, m), Mat::zeros(m, m));
    let (mut memory, mut gradient) = (Step::default(), vec![0.0; model.num_params()]);
    let (mut steps, mut parts) = (Vec::new(), Vec::new());
    for round in 0..400 {
        let step = timed(|| {
            let want = Want::Adjoints { statistics: false };
            method.renew(&mut memory, &model, &engine, &data, want).expect("a step");
            memory.gradient(&model, std::hint::black_box(&mut gradient));
        });
        let sum = timed(|| {
            let kernel = model.kernel();
            let (mut params, mut zbar) = (vec![0.0; kernel.num_params()], Mat::zeros(m, d));
            kernel.evaluate(z.as_ref(), None, k.as_mut(), &mut tape);
            let factor = Cholesky::new(k.as_ref(), Jitter::default(), "Kuu").expect("a factor");
            let mut sinks = sparsegp::kernels::Cotangents {
                params: &mut params,
                x: Some(zbar.as_mut()),
                z: None,
            };
            kernel.vjp(z.as_ref(), None, k.as_ref(), g.as_mut(), &mut tape, &mut sinks);
            kernel.evaluate(x.as_ref(), Some(z.as_ref()), kuf.as_mut(), &mut tape);
            let (xs, zs, l) = (x.as_ref(), Some(z.as_ref()), factor.l.as_ref());
            a.copy_from(&kuf);
            solve_lower(l, a.as_mut().transpose_mut(), Par::Seq);
            let mut r = Mat::zeros(b, m);
            times_triangular(
                r.as_mut(),
                Accum::Replace,
                a.as_ref(),
                root.as_ref(),
                false,
                Par::Seq,
            );
            gram_lower(g.as_mut(), Accum::Replace, a.as_ref(), r.as_ref(), 1.0, Par::Seq);
            let (bar, factor) = (phi_bar.as_mut(), (r.as_ref(), root.as_ref()));
            times_triangular(bar, Accum::Replace, factor.0, factor.1, true, Par::Seq);
            let mut psi = Mat::zeros(m, m);
            gram_lower(psi.as_mut(), Accum::Replace, phi_bar.as_ref(), a.as_ref(), 1.0, Par::Seq);
            solve_lower_transpose(l, phi_bar.as_mut().transpose_mut(), Par::Seq);
            let mut sinks = sparsegp::kernels::Cotangents {
                params: &mut params,
                x: None,
                z: Some(zbar.as_mut()),
            };
            kernel.vjp(xs, zs, kuf.as_ref(), phi_bar.as_mut(), &mut tape, &mut sinks);
            std::hint::black_box(sandwich_inverse(l, psi, par));
        });
        if round > 20 {
            steps.push(step);
            parts.push(sum);
        }
    }
    let (step, parts) = (median(steps), median(parts));
    println!(
        "{threads} thread(s)  M = {m}, B = {b}: a step {:.3} ms, its parts separately {:.3} ms: {:.2} times",
        step * 1e3,
        parts * 1e3,
        step / parts
    );
}

/// Iterations of training by minibatches.
fn training(m: usize, d: usize, threads: usize) {
    let (b, iterations) = match m {
        100 => (200, 2000),
        256 => (1024, 200),
        _ => (1024, 20),
    };
    let x = noise(b * iterations, d, 7);
    let y = Mat::from_fn(x.nrows(), 1, |i, _| f64::from(x[(i, 0)] + x[(i, 1)] > 0.0));
    let start = Model {
        likelihood: parse_likelihood("bernoulli(link=probit)").expect("a likelihood"),
        ..model(m, d, x.as_ref(), "svgp")
    };
    let data = InMemory::new(x, y).expect("shapes fit");
    let options =
        StochasticOptions { natural: None, epochs: Some(1), ..StochasticOptions::default() };
    let mut seconds = Vec::new();
    for _ in 0..7 {
        let mut model = start.clone();
        let mut batches = data.batches(b, 1).expect("minibatches");
        let around = Surroundings::default();
        let engine = Cpu::default();
        let report = train_batches(&mut model, &engine, &mut *batches, &options, around, &mut ())
            .expect("a training");
        seconds.push(report.seconds / report.iterations as f64);
    }
    println!(
        "{threads} thread(s)  M = {m:4}, B = {b:4}: {:.3} ms an iteration",
        1e3 * median(seconds)
    );
}

//! Mixed precision beside double precision, in alternation and with plain products of both in the same run:
//! `cargo run --release -p sparsegp-bench --bin mixed -- [bounds | steps | layers | predictions]`.
//!
//! Predictions are of means and variances of 100 000 rows, with the largest change of a standard deviation as a share of it. Of
//! the rest, medians of the time of a collapsed bound with its gradient (10 000 rows of 8 inputs) and of a minibatch step
//! (1024 rows), their ratio, that of plain products, and what the two evaluations differ by: the bound in nats per
//! row, the gradient as the largest difference in units of its largest entry. Layers are two of each kind, 8 inputs and a
//! minibatch of 1024 rows, bound and gradient at the start; ratios are medians of those of neighbouring rounds.

use sparsegp::data::InMemory;
use sparsegp::deep::{Batch, Deep, Kind, Noise, Start, Want, Work};
use sparsegp::engine::{Cpu, Engine, Mixed};
use sparsegp::kernels::{Inputs, parse};
use sparsegp::likelihoods::Gaussian;
use sparsegp::linalg::{Jitter, Mat, Precision, Real, in_parts, sized};
use sparsegp::methods;
use sparsegp::model::{Model, Posterior, inducing_param};
use sparsegp::variational::Variational;
use sparsegp_bench::{median, noise, panels};
use std::time::Instant;

fn main() {
    let only = std::env::args().nth(1);
    let asked = |what: &str| only.as_deref().is_none_or(|only| only == what);
    for threads in [1, 2] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| {
            if asked("bounds") {
                for (method, m) in [
                    ("titsias2009", 512),
                    ("titsias2009", 1024),
                    ("titsias2025", 512),
                    ("titsias2025", 1024),
                ] {
                    case(method, [10_000, 8, m], threads, 7);
                }
            }
            if asked("layers") {
                for kind in [Kind::L, Kind::W] {
                    for (m, rounds) in [(128, 31), (256, 21), (512, 11), (1024, 5)] {
                        layers(kind, [1024, 8, m], threads, rounds);
                    }
                }
            }
            if asked("predictions") {
                for m in [512, 1024] {
                    predictions([100_000, 8, m], threads, 3);
                }
            }
            if asked("steps") {
                for method in ["svgp", "svgp2025", "lsvgp"] {
                    for m in [256, 512, 1024] {
                        case(method, [1024, 8, m], threads, 15);
                    }
                }
            }
        });
    }
}

/// Seconds of predictions of rows, with the variances.
fn predicted(posterior: &Posterior, x: &Mat<f64>) -> (f64, Vec<Mat<f64>>) {
    let start = Instant::now();
    let parts = in_parts(x.as_ref(), |_, rows| Ok(posterior.predict_f(rows)?.1));
    (start.elapsed().as_secs_f64(), parts.expect("predictions"))
}

fn predictions([n, d, m]: [usize; 3], threads: usize, rounds: usize) {
    let (model, data, x) = problem("titsias2025", [4000, d, m], n);
    let cpu = Cpu::default();
    let double = model.posterior(&cpu, &data).expect("a posterior");
    let some = Mat::from_fn(400, d, |i, q| x[(i * n / 400, q)]);
    let (single, reason) = double.clone().in_mixed_precision(some.as_ref()).expect("products");
    println!("{}", reason.as_deref().unwrap_or("the guard is quiet"));
    let (a, b) = (noise(m, m, 3), noise(10_000, m, 5));
    let (mut c, mut c32) = (Mat::zeros(10_000, m), Mat::<f32>::zeros(10_000, m));
    let (a32, b32) = (rounded::<f32>(&a), rounded::<f32>(&b));
    let mut times = [const { Vec::new() }; 4];
    let mut change = 0.0_f64;
    for round in 0..=rounds {
        let products = [product(&a, &b, &mut c), product(&a32, &b32, &mut c32)];
        let ((own, variances), (other, rounded)) = (predicted(&double, &x), predicted(&single, &x));
        for (a, b) in variances.iter().zip(&rounded) {
            let pairs = a.col_as_slice(0).iter().zip(b.col_as_slice(0));
            change = pairs.fold(change, |most, (a, b)| most.max(((b / a).sqrt() - 1.0).abs()));
        }
        if round > 0 {
            let now = [products[0], products[1], own, other];
            times.iter_mut().zip(now).for_each(|(all, time)| all.push(time));
        }
    }
    let [f64s, f32s, double_time, mixed_time] = times.map(median);
    println!(
        "{threads} thread(s)  M = {m:4}  predictions: {double_time:7.2} s, mixed {mixed_time:7.2} s: {:.2} times as fast \
         (products {:.2}); deviations change by up to {change:.0e} of themselves",
        double_time / mixed_time,
        f64s / f32s,
    );
}

/// q at some place that is not the prior.
fn some_q(m: usize, method: &str) -> Option<Variational> {
    let with_q = methods::find(method).expect("a method").method.with_q()?;
    let mut q = with_q.start([0, m, 1], sparsegp::variational::Tying::Natural, false);
    if method.starts_with("svgp") {
        let root = Mat::from_fn(m, m, |i, j| match i.cmp(&j) {
            std::cmp::Ordering::Less => 0.0,
            std::cmp::Ordering::Equal => 0.5,
            std::cmp::Ordering::Greater => 0.01 * ((i * 31 + j) as f64).sin(),
        });
        let mean = Mat::from_fn(m, 1, |i, _| (i as f64).cos());
        q = Variational::new(mean.as_ref(), &[root], false, true).expect("shapes that fit");
    }
    Some(q)
}

/// Seconds of a product of the rows with an M×M matrix.
fn product<T: Real>(a: &Mat<T>, b: &Mat<T>, c: &mut Mat<T>) -> f64 {
    let start = Instant::now();
    panels(a, b, c);
    start.elapsed().as_secs_f64()
}

fn rounded<T: Real>(a: &Mat<f64>) -> Mat<T> {
    let mut own = Mat::new();
    sized(&mut own, a.nrows(), a.ncols());
    (0..a.ncols()).for_each(|j| (0..a.nrows()).for_each(|i| own[(i, j)] = T::of(a[(i, j)])));
    own
}

/// A model of a wave over so many rows, these, and other inputs of the same kind.
fn problem(method: &str, [n, d, m]: [usize; 3], others: usize) -> (Model, InMemory, Mat<f64>) {
    let (x, other) = (noise(n, d, 7), noise(others, d, 8));
    let y = Mat::from_fn(n, 1, |i, _| (0..d).map(|q| x[(i, q)]).sum::<f64>().sin());
    let z = Mat::from_fn(m, d, |i, q| x[((i * 7919) % n, q)] + 0.01 * (i as f64).sin());
    let data = InMemory::new(x, y).expect("shapes fit");
    let mut kernel = parse("rbf", Inputs::unnamed(d)).expect("a kernel");
    kernel.initialise(&vec![0.2 * (d as f64).sqrt(); d], 1.3);
    let model = Model {
        kernels: vec![kernel],
        mean: sparsegp::means::by_name("zero", d, 1).expect("a mean"),
        likelihood: Box::new(Gaussian::new(0.1)),
        inducing: vec![inducing_param(z.as_ref())],
        q: some_q(m, method),
        method: methods::find(method).expect("a method").method,
        jitter: Jitter::default(),
        hidden: Vec::new(),
    };
    (model, data, other)
}

fn case(method: &str, [n, d, m]: [usize; 3], threads: usize, rounds: usize) {
    let (model, data, _) = problem(method, [n, d, m], 0);
    let (a, b) = (noise(m, m, 3), noise(n, m, 5));
    let (mut c, mut c32) = (Mat::zeros(n, m), Mat::<f32>::zeros(n, m));
    let (a32, b32) = (rounded::<f32>(&a), rounded::<f32>(&b));
    let cpu = Cpu::default();
    let mixed = Mixed(&cpu);
    let mut times = [const { Vec::new() }; 4];
    let mut found = Vec::new();
    for round in 0..=rounds {
        let mut now = [product(&a, &b, &mut c), product(&a32, &b32, &mut c32), 0.0, 0.0];
        found.clear();
        for (engine, time) in [&cpu as &dyn Engine, &mixed].into_iter().zip(&mut now[2..]) {
            let start = Instant::now();
            found.push(model.evaluate(engine, &data).expect("an evaluation"));
            *time = start.elapsed().as_secs_f64();
        }
        if round > 0 {
            times.iter_mut().zip(now).for_each(|(all, time)| all.push(time));
        }
    }
    let [double, single] = [&found[0], &found[1]];
    let size = double.gradient.iter().fold(0.0, |most: f64, g| most.max(g.abs()));
    let apart = double.gradient.iter().zip(&single.gradient);
    let apart = apart.fold(0.0, |most: f64, (a, b)| most.max((a - b).abs()));
    let [f64s, f32s, double_time, mixed_time] = times.map(median);
    println!(
        "{threads} thread(s)  M = {m:4}  {method:11}: {:7.1} ms, mixed {:7.1} ms: {:.2} times as fast (products \
         {:.2}); apart {:.0e} nats a row, gradient {:.0e}",
        double_time * 1e3,
        mixed_time * 1e3,
        double_time / mixed_time,
        f64s / f32s,
        (double.value - single.value).abs() / n as f64,
        apart / size,
    );
}

/// A step of two layers, without that of Adam.
fn layers(kind: Kind, [n, d, m]: [usize; 3], threads: usize, rounds: usize) {
    let (_, data, _) = problem("titsias2025", [n.max(2 * m), d, 1], 0);
    let start = Start { hidden: vec![d], kind, points: m, ..Start::default() };
    let likelihood = Box::new(Gaussian::new(0.1));
    let (x, y) = (data.x.as_ref(), data.y.as_ref());
    let model = Deep::start(x, y, &[], likelihood, &start).expect("a start");
    let rows = data.all().part(0, n);
    let batch = Batch { rows, population: n as f64, samples: 1 };
    let want = Want { gradient: true, ..Want::default() };
    let mut works = [Precision::Double, Precision::Single].map(Work::in_precision);
    let (mut times, mut ratios) = ([const { Vec::new() }; 2], Vec::new());
    let mut found = Vec::new();
    for round in 0..=rounds {
        let noise = Noise::Streams { seed: 1, step: round as u64 };
        found.clear();
        let now = works.each_mut().map(|work| {
            let start = Instant::now();
            found.push(model.evaluate(&batch, &noise, want, work).expect("an evaluation"));
            start.elapsed().as_secs_f64()
        });
        if round > 0 {
            times.iter_mut().zip(now).for_each(|(all, time)| all.push(time));
            ratios.push(now[0] / now[1]);
        }
    }
    let size = found[0].gradient.iter().fold(0.0, |most: f64, g| most.max(g.abs()));
    let apart = found[0].gradient.iter().zip(&found[1].gradient);
    let apart = apart.fold(0.0, |most: f64, (a, b)| most.max((a - b).abs()));
    let [double_time, mixed_time] = times.map(median);
    println!(
        "{threads} thread(s)  M = {m:4}  deep, {kind:?}    : {:7.1} ms, mixed {:7.1} ms: {:.2} times as fast; apart {:.0e} \
         nats a row, gradient {:.0e}",
        double_time * 1e3,
        mixed_time * 1e3,
        median(ratios),
        (found[0].value - found[1].value).abs() / n as f64,
        apart / size,
    );
}

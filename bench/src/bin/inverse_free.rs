//! L-SVGP and R-SVGP against SVGP.
//!
//! ```text
//! cargo run --release -p sparsegp-bench --bin inverse_free -- cost [--threads 1,2] [--points 256,1024] [--batch 100,1024] [--steps 1,3,10,30,100] [--only single]
//! cargo run --release -p sparsegp-bench --bin inverse_free -- figure1 [--iterations 10000] [--out DIR]
//! cargo run --release -p sparsegp-bench --bin inverse_free -- figure2 [elevators kin40k] [--seed 0] [--out DIR]
//!     [--points 256,512,1024,2048] [--seconds 40,60,120,240] [--batch 1024] [--rate 0.02]
//! ```
//!
//! `cost` times a step, value and all gradients, against a plain product of matrices in the same run.
//! `figure1` and `figure2` repeat figures 1 and 2 of Cortinovis et al., "Inverse-free sparse variational
//! Gaussian processes", and write tables (CSV) and pictures (SVG): figure 1 with the sizes of their appendix S5;
//! figure 2 on one thread, with larger minibatches and steps than theirs, for so many seconds of the processor
//! for each method and number of inducing points.

use plotters::prelude::*;
use sparsegp::data::{Batches, InMemory, Minibatch, ShuffledInMemory};
use sparsegp::engine::{Cpu, Want};
use sparsegp::fit::{Dataset, FitOptions, prepare};
use sparsegp::inducing::select::Selection;
use sparsegp::inverse_free::{Estimate, Preconditioner, Schedule, SolverOptions, Traces};
use sparsegp::kernels::{Inputs, parse};
use sparsegp::likelihoods::{self, Gaussian};
use sparsegp::linalg::{Jitter, Mat, MatRef, Precision, Real};
use sparsegp::means;
use sparsegp::methods::{Following, Step, Uncollapsed, find};
use sparsegp::model::{Model, inducing_param};
use sparsegp::optim::{Adam, AdamOptions, Objective, Optimiser};
use sparsegp::rng;
use sparsegp::train::{Event, Observer, StochasticOptions, Surroundings, train_batches};
use sparsegp::variational::Variational;
use sparsegp_bench::{load, median, noise, panels, processor_seconds};
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

type Drawn = Result<(), Box<dyn std::error::Error>>;

fn main() -> Drawn {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("cost") => {
            cost(&arguments);
            Ok(())
        }
        Some("figure1") => figure1(&arguments),
        Some("figure2") => figure2(&arguments),
        _ => {
            eprintln!("say `cost`, `figure1` or `figure2`");
            std::process::exit(2);
        }
    }
}

fn option(arguments: &[String], name: &str, default: &str) -> String {
    let at = arguments.iter().position(|a| a == name);
    at.and_then(|i| arguments.get(i + 1)).cloned().unwrap_or_else(|| default.to_owned())
}

fn number(arguments: &[String], name: &str, default: &str) -> usize {
    option(arguments, name, default).parse().expect("a number")
}

// ----------------------------------------------------------------------------------------- the cost

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
fn cost(arguments: &[String]) {
    let listed = |name: &str, default: &str| -> Vec<usize> {
        let listed = option(arguments, name, default);
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
                let others = option(arguments, "--only", "").is_empty();
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

// ----------------------------------------------------------------------------------------- figure 1

/// The variants of figure 1: name, method, preconditioner, whether natural-gradient steps move L.
const VARIANTS: &[(&str, &str, Preconditioner, bool)] = &[
    ("W-SVGP", "svgp", Preconditioner::Inverse, false),
    ("L-SVGP", "lsvgp", Preconditioner::Identity, false),
    ("L-SVGP (P)", "lsvgp", Preconditioner::Inverse, false),
    ("R-SVGP", "rsvgp", Preconditioner::Identity, false),
    ("R-SVGP (P)", "rsvgp", Preconditioner::Inverse, false),
    ("R-SVGP (N)", "rsvgp", Preconditioner::Identity, true),
    ("R-SVGP (NP)", "rsvgp", Preconditioner::Inverse, true),
];

/// The negative bound of a minibatch, as Adam sees it.
struct Loss<'a> {
    model: &'a mut Model,
    engine: &'a Cpu,
    batch: &'a Minibatch,
    step: &'a mut Step,
    slopes: &'a mut Vec<f64>,
    following: &'a Following,
}

impl Objective for Loss<'_> {
    fn dim(&self) -> usize {
        self.model.free_count()
    }

    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> sparsegp::Result<f64> {
        self.model.set_free_values(x);
        let method = Uncollapsed::of(self.model.method).expect("uncollapsed");
        let (step, how) = (&mut *self.step, self.following);
        method.follow(step, self.model, self.engine, self.batch, WANT, how)?;
        self.slopes.resize(self.model.num_params(), 0.0);
        step.gradient(self.model, self.slopes);
        self.model.free_gradient(self.slopes, gradient);
        gradient.iter_mut().for_each(|g| *g = -*g);
        Ok(-step.value)
    }
}

/// Rows, starting model and rates of one panel of figure 1 (App. S5).
fn toy(name: &str) -> (InMemory, Model, f64, usize) {
    let (loaded, rate) = match name {
        "snelson" => (load(name, false), 5e-3),
        _ => (load(name, true), 1e-2),
    };
    let data = InMemory::new(loaded.x, loaded.y).expect("shapes fit");
    let (n, d) = (data.x.nrows(), data.x.ncols());
    let (z, likelihood) = if name == "snelson" {
        let column: Vec<f64> = (0..n).map(|i| data.x[(i, 0)]).collect();
        let low = column.iter().copied().fold(f64::INFINITY, f64::min);
        let high = column.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let grid = Mat::from_fn(10, 1, |i, _| low + (high - low) * i as f64 / 9.0);
        (grid, likelihoods::parse("gaussian").expect("a likelihood"))
    } else {
        let options = FitOptions {
            inducing: Some(64),
            pilot: 0,
            kernel: "rbf".into(),
            ..FitOptions::default()
        };
        let options = FitOptions { method: "svgp".into(), ..options };
        let copy = Dataset::from_arrays(data.x.clone(), data.y.clone(), false).expect("rows");
        let start = prepare(&copy, &options, &Cpu::default(), &mut ()).expect("k-means");
        let z = start.model.inducing_points().expect("points");
        (z, likelihoods::parse("bernoulli").expect("a likelihood"))
    };
    let mut model = Model {
        kernels: vec![parse("rbf", Inputs::unnamed(d)).expect("a kernel")],
        mean: means::by_name("zero", d, 1).expect("a mean"),
        likelihood,
        inducing: vec![inducing_param(z.as_ref())],
        q: None,
        method: find("svgp").expect("a method").method,
        jitter: Jitter::Relative(1e-6),
        hidden: Vec::new(),
    };
    // variances, lengthscales and noise 1, as GPflow starts
    model.set("kernel.variance", &[1.0]).expect("positive");
    model.set("kernel.lengthscales", &[1.0]).expect("positive");
    if name == "snelson" {
        model.set("likelihood.variance", &[1.0]).expect("positive");
    }
    model.for_group("inducing", |param| param.frozen = true).expect("points");
    (data, model, rate, z.nrows())
}

fn figure1(arguments: &[String]) -> Drawn {
    let iterations = number(arguments, "--iterations", "10000");
    let out = PathBuf::from(option(arguments, "--out", "."));
    let mut table = std::fs::File::create(out.join("inverse_free_1.csv"))?;
    writeln!(table, "data,variant,iteration,negative_bound")?;
    let mut panels = Vec::new();
    for name in ["snelson", "banana"] {
        let (data, start, rate, m) = toy(name);
        let mut curves = Vec::new();
        for (variant, method, preconditioner, natural) in VARIANTS {
            let mut model = start.clone();
            model.method = find(method).expect("a method").method;
            let mut q = q_of(method, m, 1, *preconditioner);
            if let (Some(root), false) = (&mut q.root, natural) {
                // Adam moves L; from where its diagonal does not change sign with the first step
                root.frozen = false;
                let start = Mat::from_fn(m, m, |i, j| if i == j { 0.1 } else { 0.0 });
                q.set_t_root(start.as_ref());
            }
            model.q = Some(q);
            let curve = train_toy(&mut model, &data, rate, m, iterations)?;
            let last = curve.last().map_or(f64::NAN, |point| point.1);
            println!("{name:8} {variant:12} bound after {iterations} iterations: {:.2}", -last);
            for (iteration, value) in &curve {
                writeln!(table, "{name},{variant},{iteration},{value}")?;
            }
            curves.push(curve);
        }
        panels.push((name.to_owned(), curves));
    }
    let labels: Vec<&str> = VARIANTS.iter().map(|v| v.0).collect();
    draw(&out.join("inverse_free_1.svg"), &panels, &labels, "iteration", "negative bound")
}

/// The negative bound of all rows every hundredth of the way. Of L one unit step per iteration.
fn train_toy(
    model: &mut Model,
    data: &InMemory,
    rate: f64,
    batch: usize,
    iterations: usize,
) -> Result<Vec<(f64, f64)>, sparsegp::Error> {
    let engine = Cpu::default();
    let mut batches = ShuffledInMemory::new(data, batch, 0)?;
    let (mut rows, mut step, mut slopes) = (Minibatch::new(), Step::default(), Vec::new());
    let solver = SolverOptions {
        schedule: Schedule::Constant(1.0),
        tolerance: 1e-300,
        most: 1,
        stall: false,
        ..SolverOptions::default()
    };
    let following = Following { solver, ..Following::default() };
    let method = Uncollapsed::of(model.method).expect("uncollapsed");
    if method.follows(model) {
        method.settle(model, &SolverOptions::default())?;
    }
    let options = AdamOptions { learning_rate: rate, ..AdamOptions::default() };
    let mut adam = Adam::new(model.free_values(), options);
    let mut curve = Vec::new();
    for iteration in 0..=iterations {
        if iteration % (iterations / 100).max(1) == 0 {
            let mut whole = Step::default();
            method.follow(&mut whole, model, &engine, data, Want::Value, &following)?;
            curve.push((iteration as f64, -whole.value));
        }
        batches.next(&mut rows)?;
        let mut loss = Loss {
            model,
            engine: &engine,
            batch: &rows,
            step: &mut step,
            slopes: &mut slopes,
            following: &following,
        };
        adam.step(&mut loss)?;
    }
    Ok(curve)
}

// ----------------------------------------------------------------------------------------- figure 2

/// What every run of figure 2 has.
struct Runs {
    batch: usize,
    rate: f64,
    seed: u64,
    out: PathBuf,
}

fn figure2(arguments: &[String]) -> Drawn {
    let runs = Runs {
        batch: number(arguments, "--batch", "1024"),
        rate: option(arguments, "--rate", "0.02").parse()?,
        seed: number(arguments, "--seed", "0") as u64,
        out: PathBuf::from(option(arguments, "--out", ".")),
    };
    let numbers = |name: &str, default: &str| -> Vec<usize> {
        let listed = option(arguments, name, default);
        listed.split(',').map(|m| m.parse().expect("a number")).collect()
    };
    let points = numbers("--points", "256,512,1024,2048");
    let seconds = numbers("--seconds", "40,60,120,240");
    let known = ["elevators", "kin40k"];
    let asked: Vec<&str> =
        known.iter().copied().filter(|n| arguments.iter().any(|a| a == n)).collect();
    let names = if asked.is_empty() { known.to_vec() } else { asked };
    let mut table = std::fs::File::create(runs.out.join("inverse_free_2.csv"))?;
    writeln!(table, "data,method,points,seconds,nlpd")?;
    println!(
        "| data | M | method | steps | ms per step | seconds | NLPD |\n|---|--:|---|--:|--:|--:|--:|"
    );
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    let (mut panels, methods) = (Vec::new(), ["svgp", "lsvgp", "rsvgp"]);
    for name in names {
        for (&m, &seconds) in points.iter().zip(seconds.iter().cycle()) {
            let mut curves = Vec::new();
            for method in methods {
                let (curve, steps) =
                    pool.install(|| train_table(name, method, m, seconds as f64, &runs))?;
                let end = curve.last().copied().unwrap_or((f64::NAN, f64::NAN));
                println!(
                    "| {name} | {m} | {method} | {steps} | {:.1} | {:.0} | {:.4} |",
                    1e3 * end.0 / steps as f64,
                    end.0,
                    end.1
                );
                for (seconds, nlpd) in &curve {
                    writeln!(table, "{name},{method},{m},{seconds},{nlpd}")?;
                }
                curves.push(curve);
            }
            panels.push((format!("{name}, M = {m}"), curves));
        }
    }
    draw(&runs.out.join("inverse_free_2.svg"), &panels, &methods, "processor seconds", "test NLPD")
}

/// Ends a training after so many seconds of the processor, and keeps when its epochs ended.
struct Budget {
    start: f64,
    seconds: f64,
    epochs: Vec<f64>,
    steps: usize,
}

impl Observer for Budget {
    fn event(&mut self, event: Event<'_>) -> ControlFlow<()> {
        match event {
            Event::Batch { .. } => self.steps += 1,
            Event::Iteration(_) => {
                let spent = processor_seconds() - self.start;
                self.epochs.push(spent);
                if spent > self.seconds {
                    return ControlFlow::Break(());
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// NLPD of a tenth of the rows against seconds of the processor, once per epoch (the time it takes to look at
/// those rows included), and the number of steps. All methods: Adam at the same rate, k-means; `rsvgp` follows
/// its recipe otherwise.
fn train_table(
    name: &str,
    method: &str,
    m: usize,
    seconds: f64,
    runs: &Runs,
) -> Result<(Vec<(f64, f64)>, usize), sparsegp::Error> {
    let loaded = load(name, false);
    let (x, y) = (loaded.x, loaded.y);
    let n = x.nrows();
    let order = rng::permutation(&mut rng::stream(runs.seed, "split"), n, n);
    let (test, train) = order.split_at(n / 10);
    let pick =
        |a: &Mat<f64>, rows: &[usize]| Mat::from_fn(rows.len(), a.ncols(), |i, j| a[(rows[i], j)]);
    let dataset = Dataset::from_arrays(pick(&x, train), pick(&y, train), true)?;
    let (mut x_test, mut y_test) = (pick(&x, test), pick(&y, test));
    dataset.scaler.scale_x(x_test.as_mut())?;
    dataset.scaler.scale_y(y_test.as_mut())?;
    let held_out = InMemory::new(x_test, y_test)?;
    let options = FitOptions {
        method: method.into(),
        inducing: Some(m),
        selection: Selection::KMeans,
        pilot: 0,
        seed: runs.seed,
        set: vec![
            ("kernel.variance".into(), vec![1.0]),
            ("kernel.lengthscales".into(), vec![1.0]),
            ("likelihood.variance".into(), vec![1.0]),
        ],
        kernel: "rbf".into(),
        ..FitOptions::default()
    };
    let engine = Cpu::default();
    let mut model = prepare(&dataset, &options, &engine, &mut ())?.model;
    let recipe = StochasticOptions::inverse_free();
    let adam = AdamOptions { learning_rate: runs.rate, ..recipe.adam.clone() };
    let mut training = match method {
        "rsvgp" => {
            // inducing points at the same rate as in the recipe, whatever that of all else
            let inducing_rate = recipe.inducing_rate * recipe.adam.learning_rate / runs.rate;
            StochasticOptions { adam, inducing_rate, ..recipe }
        }
        _ => StochasticOptions {
            adam,
            last_rate: 1.0,
            natural: None,
            ..StochasticOptions::default()
        },
    };
    let mut batches = dataset.source.batches(runs.batch, runs.seed)?;
    training.epochs = Some(1_000_000);
    training.patience = usize::MAX / 2;
    training.following.seed = runs.seed;
    let around = Surroundings { held_out: Some(&held_out), ..Surroundings::default() };
    let mut budget = Budget { start: processor_seconds(), seconds, epochs: Vec::new(), steps: 0 };
    let watched = &mut budget;
    let report = train_batches(&mut model, &engine, &mut *batches, &training, around, watched)?;
    let curve = budget.epochs.iter().zip(&report.trace);
    let curve = curve.filter_map(|(seconds, point)| point.held_out.map(|d| (*seconds, -d)));
    Ok((curve.collect(), budget.steps))
}

// ----------------------------------------------------------------------------------------- pictures

/// A data set with its curves.
type Panel = (String, Vec<Vec<(f64, f64)>>);

/// One panel for each data set, one line for each label.
fn draw(out: &Path, panels: &[Panel], labels: &[&str], across: &str, up: &str) -> Drawn {
    // no more than four beside each other
    let across_page = panels.len().clamp(1, 4);
    let down_page = panels.len().div_ceil(across_page).max(1);
    let width = if panels.len() > 2 { 360 } else { 520 };
    let size = (width * across_page as u32, (width * 4 / 5) * down_page as u32);
    let root = SVGBackend::new(out, size).into_drawing_area();
    root.fill(&WHITE)?;
    let areas = root.split_evenly((down_page, across_page));
    for (area, (name, curves)) in areas.iter().zip(panels) {
        let finite = |v: &&(f64, f64)| v.0.is_finite() && v.1.is_finite();
        let all: Vec<(f64, f64)> = curves.iter().flatten().filter(finite).copied().collect();
        let right = all.iter().fold(0.0_f64, |m, p| m.max(p.0));
        let mut heights: Vec<f64> = all.iter().map(|p| p.1).collect();
        heights.sort_by(f64::total_cmp);
        // the first values are far above what matters
        let (low, high) = match heights.as_slice() {
            [] => (0.0, 1.0),
            some => (some[0], some[some.len() * 9 / 10]),
        };
        let room = 0.05 * (high - low) + 1e-9;
        let mut chart = ChartBuilder::on(area)
            .margin(10)
            .caption(name, ("sans-serif", 16))
            .x_label_area_size(36)
            .y_label_area_size(56)
            .build_cartesian_2d(0.0..right, low - room..high + room)?;
        chart.configure_mesh().disable_mesh().x_desc(across).y_desc(up).draw()?;
        for (at, (curve, label)) in curves.iter().zip(labels).enumerate() {
            let colour = Palette99::pick(at).stroke_width(2);
            let line = LineSeries::new(curve.iter().copied(), colour);
            chart.draw_series(line)?.label(*label).legend(move |(x, y)| {
                PathElement::new(vec![(x, y), (x + 18, y)], Palette99::pick(at).stroke_width(2))
            });
        }
        chart
            .configure_series_labels()
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK)
            .draw()?;
    }
    root.present()?;
    println!("written to {}", out.display());
    Ok(())
}

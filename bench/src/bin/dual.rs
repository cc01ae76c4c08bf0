//! The experiments of Adam, Chang, Khan & Solin 2021 (the dual parameterisation):
//! `cargo run --release -p sparsegp-bench --bin dual -- WHAT [OPTION VALUE …]`.
//!
//! - `toy [--out docs/dual.svg]`: Figures 1 and 2. A noisy sinc, thresholded: 100 rows, 10 inducing points.
//!   What the M-step sees of the kernel's variance from one q, by form, and where EM goes from 2.5.
//! - `folds [NAME …] [--out FOLDER]`: Figure 3. Five folds, M = 50, all rows at once, 20 rounds of E-steps
//!   and M-steps by Adam; bound and NLPD after every E-phase, as CSV and a picture.
//! - `default [NAME …]`: which method should be the default. For every data set (its first split) and
//!   method, with budgets of 1, 2, 4, … iterations: the time of the shortest training from which on the
//!   NLPD of test rows is within 0.01 nats of that of the longest.
//! - `mnist [--rounds 150]`: Figure 4. Ten latent functions, M = 100, minibatches of 200: time of a round
//!   of one E-step and one M-step, and NLPD after all rounds.

use plotters::prelude::*;
use sparsegp::data::{InMemory, Loaded, Mask, Minibatch, Source};
use sparsegp::engine::{Cpu, Want};
use sparsegp::fit::{BatchOptions, Dataset, FitOptions, Standardise, fit, prepare};
use sparsegp::kernels::{Inputs, parse};
use sparsegp::linalg::{Jitter, Mat};
use sparsegp::methods::{Step, Uncollapsed, find};
use sparsegp::model::{Model, Posterior, inducing_param};
use sparsegp::optim::{Adam, AdamOptions, Objective, Optimiser};
use sparsegp::rng::{permutation, stream, uniform};
use sparsegp::variational::{Form, Tying, Variational};
use sparsegp::{likelihoods, means};
use sparsegp_bench::{load, median};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

type Drawn = Result<(), Box<dyn std::error::Error>>;

const COLOURS: [RGBColor; 5] = [
    RGBColor(31, 98, 168),
    RGBColor(190, 45, 35),
    RGBColor(60, 140, 60),
    RGBColor(140, 90, 170),
    RGBColor(200, 130, 20),
];

fn option(arguments: &[String], name: &str) -> Option<String> {
    let at = arguments.iter().position(|a| a == name)?;
    arguments.get(at + 1).cloned()
}

/// Moves q by a natural-gradient step, halved until the bound of these rows does not fall.
fn natural(model: &mut Model, step: &mut Step, data: &dyn Source, mut rate: f64) {
    let method = Uncollapsed::of(model.method).expect("a method with a q");
    let engine = Cpu::default();
    method.renew(step, model, &engine, data, Want::Statistics).expect("a pass");
    let before = model.q.clone();
    for _ in 0..20 {
        if step.natural(model, rate).is_ok() {
            let after = method.step(model, &engine, data, Want::Value);
            if after.is_ok_and(|after| after.value >= step.value - 1e-10 * step.value.abs()) {
                return;
            }
        }
        model.q.clone_from(&before);
        rate *= 0.5;
    }
}

fn bound(model: &Model, data: &dyn Source) -> f64 {
    let method = Uncollapsed::of(model.method).expect("a method with a q");
    method.step(model, &Cpu::default(), data, Want::Value).expect("a pass").value
}

/// The bound with its sign changed, as Adam sees it.
struct Negated<'a> {
    model: &'a mut Model,
    data: &'a dyn Source,
}

impl Objective for Negated<'_> {
    fn dim(&self) -> usize {
        self.model.free_count()
    }

    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> sparsegp::Result<f64> {
        self.model.set_free_values(x);
        let (evaluation, free) = self.model.evaluate_free(&Cpu::default(), self.data)?;
        gradient.iter_mut().zip(free).for_each(|(g, f)| *g = -f);
        Ok(-evaluation.value)
    }
}

// ---------------------------------------------------------------------------------------- the toy

/// Forms of q by name.
const FORMS: [&str; 5] = ["untied", "natural", "kernel", "q", "q whitened"];

fn start(form: &str, model: &Model, rows: usize) -> Model {
    let m = model.inducing_points().expect("points").nrows();
    let sites = |tying| Variational::sites(if tying == Tying::Untied { rows } else { m }, 1, tying);
    let moments = |form| Variational { form, ..Variational::prior(m, 1, false) };
    let (method, q) = match form {
        "untied" => ("tsvgp", sites(Tying::Untied)),
        "natural" => ("tsvgp", sites(Tying::Natural)),
        "kernel" => ("tsvgp", sites(Tying::Kernel)),
        "q" => ("svgp", moments(Form::Marginal)),
        _ => ("svgp", moments(Form::Whitened)),
    };
    Model { method: find(method).expect("registered").method, q: Some(q), ..model.clone() }
}

fn with_variance(model: &Model, variance: f64) -> Model {
    let mut moved = model.clone();
    moved.set("kernel.variance", &[variance]).expect("a variance");
    moved
}

/// The variance with the largest bound in [0.02, 4] at what is stored of q, by golden sections of its
/// logarithm.
fn best_variance(model: &Model, data: &InMemory) -> f64 {
    let value = |log: f64| bound(&with_variance(model, log.exp()), data);
    let share = 0.5 * (5_f64.sqrt() - 1.0);
    let (mut low, mut high) = (0.02_f64.ln(), 4_f64.ln());
    while high - low > 1e-5 {
        let (left, right) = (high - share * (high - low), low + share * (high - low));
        if value(left) > value(right) { high = right } else { low = left }
    }
    (0.5 * (low + high)).exp()
}

fn toy(arguments: &[String]) -> Drawn {
    let out = option(arguments, "--out").unwrap_or_else(|| "docs/dual.svg".into());
    let mut rng = stream(3, "sinc");
    let n = 100;
    let mut x: Vec<f64> = (0..n).map(|_| 2.0 * uniform(&mut rng) - 1.0).collect();
    x.sort_by(f64::total_cmp);
    // a sum of twelve uniform numbers for the noise
    let mut normal = || (0..12).map(|_| uniform(&mut rng)).sum::<f64>() - 6.0;
    let y: Vec<f64> = x
        .iter()
        .map(|x| f64::from(u8::from((12.0 * x).sin() / x + 0.2 * normal() > 0.0)))
        .collect();
    let data = InMemory::new(Mat::from_fn(n, 1, |i, _| x[i]), Mat::from_fn(n, 1, |i, _| y[i]))?;
    let z = Mat::from_fn(10, 1, |j, _| x[0] + (x[n - 1] - x[0]) * j as f64 / 9.0);
    let model = Model {
        kernels: vec![parse("rbf(variance=0.6, lengthscales=0.5)", Inputs::unnamed(1))?],
        mean: means::by_name("zero", 1, 1)?,
        likelihood: likelihoods::parse("bernoulli(link=logit)")?,
        inducing: vec![inducing_param(z.as_ref())],
        q: None,
        method: find("svgp")?.method,
        jitter: Jitter::Absolute(1e-6),
        hidden: Vec::new(),
    };
    let solve = |model: &mut Model| {
        let mut step = Step::default();
        (0..60).for_each(|_| natural(model, &mut step, &data, 0.8));
    };
    let grid: Vec<f64> = (0..100).map(|i| 0.05 + 0.95 * f64::from(i) / 99.0).collect();
    let (mut curves, mut paths) = (Vec::new(), Vec::new());
    for form in FORMS {
        let mut solved = start(form, &model, n);
        solve(&mut solved);
        let curve: Vec<f64> =
            grid.iter().map(|v| bound(&with_variance(&solved, *v), &data)).collect();
        curves.push(curve);
        let mut walking = with_variance(&start(form, &model, n), 2.5);
        let mut path = vec![2.5];
        for _ in 0..8 {
            solve(&mut walking);
            let best = best_variance(&walking, &data);
            walking = with_variance(&walking, best);
            path.push(best);
        }
        paths.push(path);
    }
    // what EM is after: the bound at the best q of every variance
    let profile: Vec<f64> = grid
        .iter()
        .map(|v| {
            let mut solved = with_variance(&start("natural", &model, n), *v);
            solve(&mut solved);
            bound(&solved, &data)
        })
        .collect();
    println!("| variance | best q | {} |", FORMS.join(" | "));
    println!("| --- |{}", " --- |".repeat(6));
    for at in [0, 20, 40, 58, 80, 99] {
        let cells: Vec<String> = curves.iter().map(|c| format!("{:.3}", c[at])).collect();
        println!("| {:.3} | {:.3} | {} |", grid[at], profile[at], cells.join(" | "));
    }
    println!("\n| EM round | {} |\n| --- |{}", FORMS.join(" | "), " --- |".repeat(5));
    for round in 0..=8 {
        let cells: Vec<String> = paths.iter().map(|p| format!("{:.4}", p[round])).collect();
        println!("| {round} | {} |", cells.join(" | "));
    }
    draw_toy(Path::new(&out), &grid, &profile, &curves, &paths)?;
    println!("\npicture written to {out}");
    Ok(())
}

fn draw_toy(
    out: &Path,
    grid: &[f64],
    profile: &[f64],
    curves: &[Vec<f64>],
    paths: &[Vec<f64>],
) -> Drawn {
    let root = SVGBackend::new(out, (1000, 430)).into_drawing_area();
    root.fill(&WHITE)?;
    let (left, right) = root.split_horizontally(500);
    let top = profile.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut chart = ChartBuilder::on(&left)
        .margin(12)
        .caption("bound from one q (made at 0.6)", ("sans-serif", 17))
        .x_label_area_size(38)
        .y_label_area_size(44)
        .build_cartesian_2d(0.05..1.0, top - 12.0..top + 1.0)?;
    chart.configure_mesh().disable_mesh().x_desc("variance of the kernel").draw()?;
    let points = |values: &[f64]| -> Vec<(f64, f64)> {
        grid.iter().copied().zip(values.iter().map(|v| v.max(top - 12.0))).collect()
    };
    let line = LineSeries::new(points(profile), BLACK.stroke_width(3));
    chart.draw_series(line)?.label("best q of each").legend(key(BLACK));
    for ((name, colour), curve) in FORMS.iter().zip(COLOURS).zip(curves) {
        let line = LineSeries::new(points(curve), colour.stroke_width(2));
        chart.draw_series(line)?.label(*name).legend(key(colour));
    }
    let mut labels = chart.configure_series_labels();
    labels.background_style(WHITE.mix(0.8)).position(SeriesLabelPosition::LowerRight).draw()?;
    let mut chart = ChartBuilder::on(&right)
        .margin(12)
        .caption("EM from a variance of 2.5", ("sans-serif", 17))
        .x_label_area_size(38)
        .y_label_area_size(44)
        .build_cartesian_2d(0.0..8.0, 0.0..2.7)?;
    chart.configure_mesh().disable_mesh().x_desc("round").y_desc("variance").draw()?;
    for ((name, colour), path) in FORMS.iter().zip(COLOURS).zip(paths) {
        let points: Vec<(f64, f64)> =
            path.iter().enumerate().map(|(i, v)| (i as f64, *v)).collect();
        let line = LineSeries::new(points, colour.stroke_width(2));
        chart.draw_series(line)?.label(*name).legend(key(colour));
    }
    root.present()?;
    Ok(())
}

/// A short line beside a name.
fn key(colour: RGBColor) -> impl Fn((i32, i32)) -> PathElement<(i32, i32)> + 'static {
    move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], colour.stroke_width(2))
}

// -------------------------------------------------------------------------------------- the folds

const METHODS: [&str; 4] =
    ["t-SVGP", "q-SVGP, natural gradients", "q-SVGP, Adam", "q-SVGP unwhitened, natural gradients"];

/// Five folds by a shuffled order (seed 0).
fn folds(all: &Loaded) -> Vec<(Loaded, Loaded)> {
    let n = all.x.nrows();
    let mut fold = vec![0; n];
    let order = permutation(&mut stream(0, "folds"), n, n);
    order.iter().enumerate().for_each(|(at, row)| fold[*row] = at % 5);
    let part = |k| {
        let mask = Mask::new("fold", fold.iter().map(|f| *f == k));
        let rows = |test| all.rows_where(&mask, test).expect("a mask of all rows");
        (rows(false), rows(true))
    };
    (0..5).map(part).collect()
}

/// The rows of a data set that must be in memory.
fn in_memory(data: &dyn Source) -> InMemory {
    let mut found = None;
    data.for_each_chunk(usize::MAX, &mut |rows| {
        found = Some(InMemory::new(rows.x.to_owned(), rows.y.to_owned())?);
        Ok(())
    })
    .expect("rows");
    found.expect("rows")
}

/// Freezes q, or everything else.
fn freeze(model: &mut Model, q: bool) {
    for (path, param) in model.params_mut() {
        let own = path.starts_with("q.");
        param.frozen = own == q || (own && path.contains("lambda"));
    }
}

/// Steps of Adam on what is not frozen.
fn ascend(model: &mut Model, adam: &mut Option<Adam>, data: &dyn Source, rate: f64, steps: usize) {
    let options = AdamOptions { learning_rate: rate, ..AdamOptions::default() };
    let adam = adam.get_or_insert_with(|| Adam::new(model.free_values(), options));
    for _ in 0..steps {
        adam.step(&mut Negated { model, data }).expect("a step");
    }
    model.set_free_values(adam.x());
}

/// Bound and NLPD after every E-phase of 20 rounds.
fn curve(method: &str, training: &Loaded, test: &Loaded, classes: bool) -> Vec<(f64, f64)> {
    let likelihood = likelihoods::parse(if classes { "bernoulli" } else { "gaussian" });
    let likelihood = likelihood.expect("a likelihood");
    let scaling = Standardise::all_that(&*likelihood);
    let dataset = Dataset::from_loaded(training.clone(), scaling).expect("usable rows");
    let sites = method == METHODS[0];
    let options = FitOptions {
        kernel: "matern52".into(),
        likelihood: Some(likelihood.name().into()),
        mean: Some("zero".into()),
        method: if sites { "tsvgp" } else { "svgp" }.into(),
        inducing: Some(50),
        pilot: 0,
        ..FitOptions::default()
    };
    let engine = Cpu::default();
    let mut model = prepare(&dataset, &options, &engine, &mut ()).expect("a model").model;
    for (path, param) in model.params_mut() {
        if path.starts_with("kernel") || path.starts_with("likelihood") {
            param.set(&path, &[1.0]).expect("positive");
        }
    }
    if let (Some(q), true) = (&mut model.q, method == METHODS[3]) {
        q.form = Form::Marginal;
    }
    let data = in_memory(&*dataset.source);
    let (mut x, mut y) = (test.x.clone(), test.y.clone());
    dataset.scaler.scale_x(x.as_mut()).expect("the same columns");
    dataset.scaler.scale_y(y.as_mut()).expect("the same columns");
    // as the released scripts have them
    let (e_steps, e_rate, m_steps, m_rate) =
        if classes { (6, 0.75, 14, 0.2) } else { (8, 0.8, 20, 0.1) };
    let (mut of_q, mut of_rest, mut step) = (None, None, Step::default());
    let mut curve = Vec::new();
    for _ in 0..20 {
        if method == METHODS[2] {
            freeze(&mut model, false);
            ascend(&mut model, &mut of_q, &data, e_rate, e_steps);
        } else {
            for _ in 0..e_steps {
                natural(&mut model, &mut step, &data, e_rate);
            }
        }
        let at = Posterior::of_q(&model).expect("a posterior");
        let density = at.predict_log_density(x.as_ref(), y.as_ref(), &[]).expect("densities");
        let nlpd = -density.iter().sum::<f64>() / density.len() as f64;
        curve.push((bound(&model, &data), nlpd));
        freeze(&mut model, true);
        ascend(&mut model, &mut of_rest, &data, m_rate, m_steps);
    }
    curve
}

fn all_folds(arguments: &[String]) -> Drawn {
    let out = PathBuf::from(option(arguments, "--out").unwrap_or_else(|| "target/dual".into()));
    std::fs::create_dir_all(&out)?;
    let known = [
        ("airfoil", false),
        ("housing", false),
        ("concrete", false),
        ("sonar", true),
        ("ionosphere", true),
        ("diabetes", true),
    ];
    let asked = |name: &str| arguments.iter().any(|a| a == name);
    let some = known.iter().any(|(name, _)| asked(name));
    let names: Vec<_> = known.into_iter().filter(|(name, _)| !some || asked(name)).collect();
    let mut csv = String::from("data,fold,method,round,bound,nlpd\n");
    println!("| data | method | bound after 1, 3, 20 rounds | NLPD after 1, 3, 20 rounds |");
    println!("| --- | --- | --- | --- |");
    let mut means = Vec::new();
    for (name, classes) in &names {
        let splits = folds(&load(name, *classes));
        let mut own = Vec::new();
        for method in METHODS {
            let mut mean = vec![(0.0, 0.0); 20];
            for (fold, (training, test)) in splits.iter().enumerate() {
                let found = curve(method, training, test, *classes);
                for (round, (bound, nlpd)) in found.iter().enumerate() {
                    writeln!(csv, "{name},{fold},\"{method}\",{},{bound},{nlpd}", round + 1)?;
                    mean[round].0 += 0.2 * bound;
                    mean[round].1 += 0.2 * nlpd;
                }
            }
            let at = |f: &dyn Fn((f64, f64)) -> String| -> String {
                [0, 2, 19].map(|i| f(mean[i])).join(", ")
            };
            let (bounds, nlpds) = (at(&|m| format!("{:.1}", m.0)), at(&|m| format!("{:.4}", m.1)));
            println!("| {name} | {method} | {bounds} | {nlpds} |");
            own.push(mean);
        }
        means.push(own);
    }
    std::fs::write(out.join("folds.csv"), csv)?;
    let picture = out.join("folds.svg");
    let root = SVGBackend::new(&picture, (330 * names.len() as u32, 560)).into_drawing_area();
    root.fill(&WHITE)?;
    let panels = root.split_evenly((2, names.len()));
    for (column, ((name, _), own)) in names.iter().zip(&means).enumerate() {
        for row in 0..2 {
            let of = |m: &(f64, f64)| if row == 0 { m.0 } else { m.1 };
            let all = own.iter().flatten().map(of);
            let (low, high) =
                all.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
            let what = if row == 0 { "bound" } else { "NLPD" };
            let mut chart = ChartBuilder::on(&panels[row * names.len() + column])
                .margin(10)
                .caption(format!("{name}: {what}"), ("sans-serif", 15))
                .x_label_area_size(24)
                .y_label_area_size(52)
                .build_cartesian_2d(1.0..20.0, low..high + 1e-9)?;
            chart.configure_mesh().disable_mesh().draw()?;
            for ((method, colour), mean) in METHODS.iter().zip(COLOURS).zip(own) {
                let points: Vec<(f64, f64)> =
                    mean.iter().enumerate().map(|(i, m)| (1.0 + i as f64, of(m))).collect();
                let line = LineSeries::new(points, colour.stroke_width(2));
                chart.draw_series(line)?.label(*method).legend(key(colour));
            }
            if row == 0 && column == 0 {
                let mut labels = chart.configure_series_labels();
                labels
                    .background_style(WHITE.mix(0.8))
                    .position(SeriesLabelPosition::LowerRight)
                    .draw()?;
            }
        }
    }
    root.present()?;
    println!("\nwritten to {}", out.display());
    Ok(())
}

// --------------------------------------------------------------------------------------- the digits

fn mnist(arguments: &[String]) -> Drawn {
    let rounds: usize = option(arguments, "--rounds").map_or(Ok(150), |k| k.parse())?;
    let mut all = load("mnist-t10k", true);
    for j in 0..all.x.ncols() {
        all.x.col_as_slice_mut(j).iter_mut().for_each(|v| *v /= 255.0);
    }
    let mask = Mask::new("the last 2000", (0..10_000).map(|row| row >= 8000));
    let (training, test) = (all.rows_where(&mask, false)?, all.rows_where(&mask, true)?);
    println!("| method | round, median | seconds of all | NLPD | error |\n|{}", " --- |".repeat(5));
    for (label, method) in [("t-SVGP", "tsvgp"), ("q-SVGP, natural gradients", "svgp")] {
        let scaling = Standardise { inputs: false, targets: false, robust: false, constants: true };
        let dataset = Dataset::from_loaded(training.clone(), scaling)?;
        let options = FitOptions {
            kernel: "matern52(ard=false, lengthscales=10)".into(),
            likelihood: Some("softmax(classes=10)".into()),
            mean: Some("zero".into()),
            method: method.into(),
            inducing: Some(100),
            pilot: 0,
            batches: Some(BatchOptions { size: 200, ..BatchOptions::default() }),
            ..FitOptions::default()
        };
        let engine = Cpu::default();
        let mut model = prepare(&dataset, &options, &engine, &mut ())?.model;
        freeze(&mut model, true);
        let own = Uncollapsed::of(model.method).expect("a method with a q");
        let mut batches = dataset.source.batches(200, 0)?;
        let mut batch = Minibatch::new();
        let mut step = Step::default();
        let adam = AdamOptions { learning_rate: 0.02, ..AdamOptions::default() };
        let mut adam = Adam::new(model.free_values(), adam);
        let (mut times, clock) = (Vec::new(), Instant::now());
        for _ in 0..rounds {
            batches.next(&mut batch)?;
            let start = Instant::now();
            own.renew(&mut step, &model, &engine, &batch, Want::Statistics)?;
            step.natural(&mut model, 0.03)?;
            adam.step(&mut Negated { model: &mut model, data: &batch })?;
            model.set_free_values(adam.x());
            times.push(start.elapsed().as_secs_f64());
        }
        let seconds = clock.elapsed().as_secs_f64();
        let at = Posterior::of_q(&model)?;
        let density = at.predict_log_density(test.x.as_ref(), test.y.as_ref(), &[])?;
        let nlpd = -density.iter().sum::<f64>() / density.len() as f64;
        let probabilities = at.predict_proba(test.x.as_ref())?;
        let wrong = (0..test.y.nrows()).filter(|i| {
            let best =
                (0..10).max_by(|a, b| probabilities[(*i, *a)].total_cmp(&probabilities[(*i, *b)]));
            best != Some(test.y[(*i, 0)] as usize)
        });
        let error = wrong.count() as f64 / density.len() as f64;
        println!(
            "| {label} | {:.1} ms | {seconds:.1} | {nlpd:.3} | {error:.3} |",
            1e3 * median(times)
        );
    }
    Ok(())
}

// ------------------------------------------------------------------------------------- the default

/// A name, a method, and what its training by a budget of iterations is.
type Way = (&'static str, &'static str, fn(&mut FitOptions, usize));

/// So many passes over all rows by minibatches.
fn epochs(options: &mut FitOptions, budget: usize) {
    let batches = options.batches.as_mut().expect("the default");
    batches.training.epochs = Some(budget);
}

fn on_all_rows(options: &mut FitOptions, budget: usize) {
    options.batches = None;
    options.train.max_iterations = budget;
}

const WAYS: [Way; 8] = [
    ("svgp, natural gradients and Adam from one pass", "svgp", epochs),
    ("svgp, one step of each", "svgp", |options, budget| {
        epochs(options, budget);
        options.batches.as_mut().expect("the default").training.em = Some((1, 1));
    }),
    ("svgp, Adam alone", "svgp", |options, budget| {
        epochs(options, budget);
        options.batches.as_mut().expect("the default").training.natural = None;
    }),
    ("svgp, L-BFGS on all rows", "svgp", on_all_rows),
    ("tsvgp, sites and Adam from one pass", "tsvgp", epochs),
    ("tsvgp, one step of each", "tsvgp", |options, budget| {
        epochs(options, budget);
        options.batches.as_mut().expect("the default").training.em = Some((1, 1));
    }),
    ("tsvgp, EM with L-BFGS on all rows", "tsvgp", on_all_rows),
    ("tsvgp untied, EM with L-BFGS on all rows", "tsvgp", |options, budget| {
        on_all_rows(options, budget);
        options.tying = Tying::Untied;
    }),
];

fn which_default(arguments: &[String]) -> Drawn {
    const KNOWN: [(&str, &str, &str); 7] = [
        ("banana", "bernoulli", "rbf"),
        ("ionosphere", "bernoulli", "rbf(ard=false)"),
        ("sonar", "bernoulli", "rbf(ard=false)"),
        ("diabetes", "bernoulli", "rbf(ard=false)"),
        ("heart", "bernoulli", "rbf(ard=false)"),
        ("coal", "poisson", "rbf"),
        ("bikes-daily", "negative-binomial", "rbf"),
    ];
    let asked = |name: &str| arguments.iter().any(|a| a == name);
    let some = KNOWN.iter().any(|(name, ..)| asked(name));
    println!("| data | training | seconds to within 0.01 nats | seconds of all | NLPD | bound |");
    println!("|{}", " --- |".repeat(6));
    for (name, likelihood, kernel) in KNOWN.into_iter().filter(|(n, ..)| !some || asked(n)) {
        let classes = likelihood == "bernoulli";
        let all = load(name, classes);
        let (training, test) = match name {
            "banana" => (all, load("banana-test", true)),
            _ => folds(&all).swap_remove(0),
        };
        let scaling = Standardise::all_that(&*likelihoods::parse(likelihood)?);
        let dataset = Dataset::from_loaded(training, scaling)?;
        for (label, method, budgeted) in WAYS {
            let mut runs = Vec::new();
            for power in 0..=10 {
                let mut options = FitOptions {
                    likelihood: Some(likelihood.into()),
                    kernel: kernel.into(),
                    method: method.into(),
                    ..FitOptions::default()
                };
                budgeted(&mut options, 1 << power);
                let clock = Instant::now();
                let fitted = fit(&dataset, &options, &Cpu::default(), &mut ())?;
                let seconds = clock.elapsed().as_secs_f64();
                let density = fitted.log_density(test.x.as_ref(), test.y.as_ref(), &[])?;
                let nlpd = -density.iter().sum::<f64>() / density.len() as f64;
                runs.push((seconds, nlpd, fitted.objective().unwrap_or(f64::NAN)));
            }
            let (whole, last, objective) = runs[runs.len() - 1];
            let late = runs.iter().rposition(|(_, nlpd, _)| (nlpd - last).abs() > 0.01);
            let soon = runs[late.map_or(0, |at| at + 1)].0;
            println!("| {name} | {label} | {soon:.2} | {whole:.2} | {last:.4} | {objective:.2} |");
        }
    }
    Ok(())
}

fn main() -> Drawn {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("toy") => toy(&arguments),
        Some("folds") => all_folds(&arguments),
        Some("mnist") => mnist(&arguments),
        Some("default") => which_default(&arguments),
        _ => Err("say which experiment: toy, folds, mnist or default".into()),
    }
}

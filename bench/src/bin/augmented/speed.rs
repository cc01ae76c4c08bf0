//! Costs: an iteration of stochastic training, the time to the test score that it ends with, and a Gibbs sweep against the
//! factorisation and the products that it consists of.

use crate::common::{Table, digits, kernel, number, option, problem};
use sparsegp::data::{InMemory, Mask};
use sparsegp::engine::Cpu;
use sparsegp::fit::{BatchOptions, Dataset, FitOptions, Standardise, prepare};
use sparsegp::likelihoods;
use sparsegp::linalg::{
    Accum, Cholesky, Jitter, Mat, Par, gemm, solve_lower, solve_lower_transpose,
};
use sparsegp::model::{Model, Posterior};
use sparsegp::samplers::gibbs::Chain;
use sparsegp::samplers::{Setting, Target};
use sparsegp::train::{Surroundings, train_batches};
use sparsegp_bench::{load, median, noise};
use std::hint::black_box;
use std::time::Instant;

/// Runs both.
pub fn run(arguments: &[String]) {
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    one.install(|| {
        sweeps();
        println!();
        iterations(arguments);
    });
}

// ------------------------------------------------------------------------------------ a Gibbs sweep

fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

/// N = 500: B = I + Λ^½KΛ^½, its factor, Lε and Lz, two triangular solves and Lᵀt.
fn sweeps() {
    println!("| N = 500 | ms a sweep | ms factor and products | ratio |\n|{}", " --- |".repeat(4));
    for (data, likelihood, classes) in [
        ("diabetes", "bernoulli(link=logit)", true),
        ("housing", "student-t(df=3, scale=1)", false),
    ] {
        let all = load(data, classes);
        let first = Mask::new("the first 500", (0..all.x.nrows()).map(|i| i < 500));
        let rows = all.rows_where(&first, true).expect("a mask of all rows");
        let (model, rows, _) = problem(&rows, likelihood, &kernel(3.0, 1.0), "gibbs");
        let n = rows.x.nrows();
        let setting = Setting::new(&model, &rows, Target::Variational).expect("a setting");
        let mut chain = Chain::new(&setting, 0, 0).expect("a chain");
        let mut k = Mat::zeros(n, n);
        let mut tape = sparsegp::kernels::Tape::off();
        model.kernel().evaluate(rows.x.as_ref(), None, k.as_mut(), &mut tape);
        let l = Cholesky::new(k.as_ref(), model.jitter, "K").expect("a factor").l;
        (0..n).for_each(|i| k[(i, i)] += 1.0);
        let mut b = Cholesky::new(k.as_ref(), Jitter::Absolute(0.0), "B").expect("a factor");
        let (z, mut row, mut out) = (noise(n, 1, 3), Mat::zeros(n, 1), Mat::zeros(n, 1));
        let (mut whole, mut parts) = (Vec::new(), Vec::new());
        for round in 0..60 {
            let sweep = timed(|| chain.sweep(&setting).expect("a sweep"));
            let sum = timed(|| {
                b.renew(k.as_ref(), Jitter::Absolute(0.0), "B").expect("a factor");
                gemm(row.as_mut(), Accum::Replace, l.as_ref(), z.as_ref(), 1.0, Par::Seq);
                solve_lower(b.l.as_ref(), row.as_mut(), Par::Seq);
                solve_lower_transpose(b.l.as_ref(), row.as_mut(), Par::Seq);
                gemm(out.as_mut(), Accum::Replace, l.transpose(), row.as_ref(), 1.0, Par::Seq);
                gemm(row.as_mut(), Accum::Replace, l.as_ref(), out.as_ref(), 1.0, Par::Seq);
                black_box(&row);
            });
            if round > 4 {
                whole.push(sweep);
                parts.push(sum);
            }
        }
        let (whole, parts) = (1e3 * median(whole), 1e3 * median(parts));
        println!(
            "| {data}, {} | {whole:.2} | {parts:.2} | {:.2} |",
            likelihood.split('(').next().unwrap_or(likelihood),
            whole / parts
        );
    }
}

// --------------------------------------------------------------------------------------- iterations

/// Mean negative log density of test rows.
fn score(model: &Model, test: &InMemory) -> f64 {
    let at = Posterior::of_q(model).expect("a posterior");
    let (n, mut sum) = (test.x.nrows(), 0.0);
    for start in (0..n).step_by(256) {
        let count = 256.min(n - start);
        let x = test.x.as_ref().subrows(start, count).to_owned();
        let y = test.y.as_ref().subrows(start, count).to_owned();
        let density = at.predict_log_density(x.as_ref(), y.as_ref(), &[]).expect("scores");
        sum -= density.iter().sum::<f64>();
    }
    sum / n as f64
}

fn iterations(arguments: &[String]) {
    let data = option(arguments, "--data").unwrap_or_else(|| "protein".into());
    let most = number(arguments, "--rows", 20_000.0) as usize;
    let iterations = number(arguments, "--iterations", 300.0) as usize;
    let likelihood = option(arguments, "--likelihood").unwrap_or_else(|| "student-t".into());
    let built = likelihoods::parse(&likelihood).expect("a likelihood");
    let all = load(&data, built.classes().is_some());
    // every tenth row tests, of as many as were asked for
    let n = all.x.nrows();
    let step = n.div_ceil(most).max(1);
    let chosen = Mask::new("some", (0..n).map(|i| i.is_multiple_of(step)));
    let all = all.rows_where(&chosen, true).expect("a mask of all rows");
    let tests = Mask::new("a tenth", (0..n).map(|i| (i / step).is_multiple_of(10)));
    let part = |flag| all.rows_where(&tests, flag).expect("a mask of all rows");
    let (training, test) = (part(false), part(true));
    println!("{data}, {} rows, {likelihood}, {iterations} iterations\n", training.x.nrows());
    let header =
        ["M", "B", "method", "ms an iteration", "last NLL", "seconds to within 0.01", "iterations"];
    let mut table = Table::new(arguments, &header);
    for m in [100, 200] {
        for size in [100, 200] {
            for method in ["svi", "svgp", "tsvgp"] {
                let scaling = Standardise::all_that(&*built);
                let dataset = Dataset::from_loaded(training.clone(), scaling).expect("rows");
                let mut options = FitOptions {
                    kernel: "rbf".into(),
                    likelihood: Some(likelihood.clone()),
                    method: method.into(),
                    inducing: Some(m),
                    pilot: 0,
                    ..FitOptions::default()
                };
                let engine = Cpu::default();
                let mut model =
                    prepare(&dataset, &options, &engine, &mut ()).expect("a model").model;
                let mut x = test.x.clone();
                dataset.scaler.scale_x(x.as_mut()).expect("the same columns");
                let mut y = test.y.clone();
                dataset.scaler.scale_y(y.as_mut()).expect("the same columns");
                let held = InMemory::new(x, y).expect("shapes that fit");
                let batches = options.batches.insert(BatchOptions::default());
                let per_epoch = dataset.source.rows().div_ceil(size);
                batches.training.epochs = Some(iterations.div_ceil(per_epoch).max(1));
                batches.training.checkpoint_seconds = 0.0;
                let training_options = batches.training.clone();
                // whoever takes checkpoints sees the model after every minibatch; its own time does not count
                let (mut apart, mut seen, mut curve) = (0.0, 0, Vec::new());
                let clock = Instant::now();
                let mut look = |model: &Model, state: &sparsegp::train::TrainingState| {
                    let start = Instant::now();
                    seen = state.iterations;
                    if seen.is_multiple_of(10) {
                        let spent = clock.elapsed().as_secs_f64() - apart;
                        curve.push((seen, spent, score(model, &held)));
                    }
                    apart += start.elapsed().as_secs_f64();
                    Ok(())
                };
                let mut source = dataset.source.batches(size, 0).expect("minibatches");
                let surroundings =
                    Surroundings { checkpoint: Some(&mut look), ..Surroundings::default() };
                train_batches(
                    &mut model,
                    &engine,
                    &mut *source,
                    &training_options,
                    surroundings,
                    &mut (),
                )
                .expect("a training");
                let seconds = clock.elapsed().as_secs_f64() - apart;
                let last = curve.last().map_or(f64::NAN, |c| c.2);
                let far = curve.iter().rposition(|c| (c.2 - last).abs() > 0.01);
                let there = curve.get(far.map_or(0, |at| at + 1));
                table.row(&[
                    m.to_string(),
                    size.to_string(),
                    format!("`{method}`"),
                    digits(1e3 * seconds / seen.max(1) as f64),
                    format!("{last:.3}"),
                    there.map_or("–".into(), |c| digits(c.1)),
                    there.map_or("–".into(), |c| c.0.to_string()),
                ]);
            }
        }
    }
}

//! Deep and convolutional models: the tables of Cortinovis et al., "Inverse-free sparse variational Gaussian processes", scaled
//! to two cores:
//! `cargo run --release -p sparsegp-bench --bin deep -- WHAT [OPTION VALUE …]`.
//!
//! - `table1 [--steps 5000] [--points 100] [--batch 1000] [--repeats 2]`: kin40k, one to three layers of the kinds W, L and R: test NLPD.
//!   `--full` has the sizes of the paper (200 000 steps, 500 points, five repeats).
//! - `table2 [--seconds 300] [--points 100] [--batch 1024] [--epochs 100000] [--only RBF] [--method svgp]`: ten digits of
//!   `mnist-t10k` (9000 rows train, 1000 test), an RBF and a weighted convolution (minibatches of 200) by `svgp`, `lsvgp` and
//!   `rsvgp`, each for so many seconds, by whose end the learning rate has fallen: test error. With `--processor-seconds 600`
//!   the time is what all processors spend, which other programs do not take part in. `--kernel SPEC` is another kernel, `--natural`
//!   and `--rate` are other rates, `--random` takes random patches. `--full` trains 750 points for three hours each.
//!
//! - `killed [--rows 1000000] [--epochs 12] [--seconds 10]`: two layers on a table of 10 inputs that is streamed from Parquet: a process that is
//!   killed by SIGKILL after so many seconds and goes on from its checkpoint, beside one that is left alone (Unix).
//!
//! The tables are Markdown, with the printed values.

use sparsegp::data::{Loaded, Mask};
use sparsegp::data::{Selection as Columns, Table};
use sparsegp::engine::Cpu;
use sparsegp::fit::Of;
use sparsegp::fit::{BatchOptions, Dataset, FitOptions, Standardise, fit};
use sparsegp::inducing::Selection;
use sparsegp::methods;
use sparsegp::rng::{permutation, stream};
use sparsegp::train::Observer;
use sparsegp_bench::{class_scores, load, noise, peak_memory, processor_seconds, write_table};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("table1") => table1(&arguments),
        Some("table2") => table2(&arguments),
        Some("killed") => killed(&arguments),
        Some("child") => child(&arguments),
        _ => {
            eprintln!("say `table1`, `table2` or `killed`");
            std::process::exit(2);
        }
    }
}

fn text<'a>(arguments: &'a [String], name: &str) -> Option<&'a str> {
    let at = arguments.iter().position(|a| a == name)?;
    arguments.get(at + 1).map(String::as_str)
}

fn number(arguments: &[String], name: &str, scaled: f64, full: f64) -> f64 {
    let usual = if arguments.iter().any(|a| a == "--full") { full } else { scaled };
    text(arguments, name).map_or(usual, |text| text.parse().expect("a number"))
}

/// A tenth of the rows, or so, for tests.
fn split(all: &Loaded, tests: usize, seed: u64) -> (Loaded, Loaded) {
    let n = all.y.nrows();
    let mut own = vec![false; n];
    for row in permutation(&mut stream(seed, "test rows"), n, tests) {
        own[row] = true;
    }
    let mask = Mask::new("test rows", own);
    let part = |flag| all.rows_where(&mask, flag).expect("a mask of all rows");
    (part(false), part(true))
}

/// Mean and standard error.
fn summary(values: &[f64]) -> String {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let square = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>();
    match values.len() {
        1 => format!("{mean:.2}"),
        _ => format!("{mean:.2} ± {:.2}", (square / (n - 1.0) / n).sqrt()),
    }
}

fn table1(arguments: &[String]) {
    let steps = number(arguments, "--steps", 5000.0, 200_000.0) as usize;
    let points = number(arguments, "--points", 100.0, 500.0) as usize;
    let batch = number(arguments, "--batch", 1000.0, 1000.0) as usize;
    let repeats = number(arguments, "--repeats", 2.0, 5.0) as u64;
    let printed =
        [["−0.38", "−0.39", "−0.39"], ["−1.86", "−1.88", "−1.88"], ["−2.39", "−2.64", "−2.64"]];
    let all = load("kin40k", false);
    println!(
        "kin40k: {steps} steps of {batch} rows, {points} inducing points, {repeats} repeats\n"
    );
    println!("| layers | kind | NLPD | seconds | printed |\n| --- | --- | --- | --- | --- |");
    for (layers, printed) in (1..=3).zip(printed) {
        for (kind, printed) in ["w", "l", "r"].into_iter().zip(printed) {
            let (mut scores, mut seconds) = (Vec::new(), 0.0);
            for seed in 0..repeats {
                let (training, test) = split(&all, all.y.nrows() / 10, seed);
                let dataset = Dataset::from_loaded(training, true).expect("rows");
                let method = format!("deep(layers={layers}, kind={kind})");
                let entry = methods::find(&method).expect("a method");
                let mut batches = BatchOptions { size: batch, ..BatchOptions::of(entry.method) };
                let per_epoch = dataset.source.rows().div_ceil(batch);
                batches.training.epochs = Some(steps.div_ceil(per_epoch));
                let options = FitOptions {
                    method,
                    inducing: Some(points),
                    batches: Some(batches),
                    seed,
                    kernel: "rbf".into(),
                    ..FitOptions::default()
                };
                let clock = Instant::now();
                let fitted = fit(&dataset, &options, &Cpu::default(), &mut ()).expect("a fit");
                seconds += clock.elapsed().as_secs_f64() / repeats as f64;
                let log = fitted.log_density(test.x.as_ref(), test.y.as_ref(), &[]);
                // of targets with a standard deviation of 1, as the paper's
                let unit = fitted.scaler.y_scale[0].ln();
                let log = log.expect("densities");
                scores.push(-log.iter().sum::<f64>() / log.len() as f64 - unit);
            }
            let kind = kind.to_uppercase();
            println!("| {layers} | {kind} | {} | {seconds:.0} | {printed} |", summary(&scores));
        }
    }
}

/// A limit of the seconds that the processors spend on a fit.
struct ProcessorLimit {
    start: f64,
    limit: Option<f64>,
}

impl ProcessorLimit {
    fn new(limit: Option<f64>) -> Self {
        Self { start: processor_seconds(), limit }
    }

    fn spent(&self) -> f64 {
        processor_seconds() - self.start
    }
}

impl Observer for ProcessorLimit {
    fn interrupted(&self) -> bool {
        self.limit.is_some_and(|limit| self.spent() >= limit)
    }

    fn time_used(&self) -> Option<f64> {
        self.limit.map(|limit| (self.spent() / limit).min(1.0))
    }
}

fn table2(arguments: &[String]) {
    let seconds = number(arguments, "--seconds", 300.0, 10_800.0);
    let processor = text(arguments, "--processor-seconds").map(|s| s.parse().expect("a number"));
    let points = number(arguments, "--points", 100.0, 750.0) as usize;
    let epochs = number(arguments, "--epochs", 100_000.0, 100_000.0) as usize;
    let mut all = load("mnist-t10k", true);
    for j in 0..all.x.ncols() {
        all.x.col_as_slice_mut(j).iter_mut().for_each(|v| *v /= 255.0);
    }
    let (training, test) = split(&all, 1000, 0);
    let kernels = [
        ("RBF", "rbf(ard=false, lengthscales=5)", ["1.96", "1.95", "1.94"]),
        (
            "convolution",
            "convolutional(image=[28, 28, 1], patch=[5, 5], weighted=true)",
            ["1.31", "1.53", "1.53"],
        ),
    ];
    let own = text(arguments, "--kernel").map(|kernel| [("own", kernel, [""; 3])]);
    let kernels = own.as_ref().map_or(&kernels[..], |own| &own[..]);
    match processor {
        Some(limit) => println!("mnist-t10k: {limit} s of the processors each, {points} points\n"),
        None => println!("mnist-t10k: {seconds} s each, {points} points\n"),
    }
    println!(
        "| kernel | method | error, % | NLPD | steps | epochs | seconds | of processors | printed, % |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    let (only, way) = (text(arguments, "--only"), text(arguments, "--method"));
    for (name, kernel, printed) in kernels {
        if only.is_some_and(|only| only != *name) {
            continue;
        }
        for (method, printed) in ["svgp", "lsvgp", "rsvgp"].into_iter().zip(printed) {
            if way.is_some_and(|way| way != method) {
                continue;
            }
            let scaling =
                Standardise { inputs: false, targets: false, robust: false, constants: true };
            let dataset = Dataset::from_loaded(training.clone(), scaling).expect("rows");
            let entry = methods::find(method).expect("a method");
            let mut batches = BatchOptions::of(entry.method);
            // an image has 576 patches: small batches
            let usual = if *name == "RBF" { batches.size } else { batches.size.min(200) } as f64;
            batches.size = number(arguments, "--batch", usual, usual) as usize;
            let training = &mut batches.training;
            training.epochs = Some(epochs);
            let rate = training.adam.learning_rate;
            training.adam.learning_rate = number(arguments, "--rate", rate, rate);
            if let Some(rate) = &mut training.natural {
                *rate = number(arguments, "--natural", *rate, *rate);
            }
            let random = arguments.iter().any(|a| a == "--random");
            let size = batches.size;
            let options = FitOptions {
                kernel: (*kernel).into(),
                likelihood: Some("softmax(classes=10)".into()),
                method: method.into(),
                inducing: Some(points),
                selection: if random { Selection::Random } else { Selection::KMeans },
                pilot: 0,
                batches: Some(batches),
                time_limit: processor.is_none().then_some(seconds),
                ..FitOptions::default()
            };
            let clock = Instant::now();
            let mut limit = ProcessorLimit::new(processor);
            let fitted = fit(&dataset, &options, &Cpu::default(), &mut limit).expect("a fit");
            let (spent, of_processors) = (clock.elapsed().as_secs_f64(), limit.spent());
            let p = fitted.predict_proba(test.x.as_ref()).expect("probabilities");
            let (wrong, log) = class_scores(&p, &test.y);
            let steps = fitted.report.as_ref().map_or(0, |r| r.iterations);
            let epochs = steps as f64 / dataset.source.rows().div_ceil(size) as f64;
            println!(
                "| {name} | `{method}` | {:.1} | {log:.3} | {steps} | {epochs:.1} | {spent:.0} | {of_processors:.0} | {printed} |",
                100.0 * wrong,
            );
        }
    }
}

/// Inputs of the table that is streamed.
const INPUTS: usize = 10;

/// Fits the table and says what it took, and bits of its predictions.
fn child(arguments: &[String]) {
    let [_, table, checkpoint, epochs] = arguments else { panic!("table, checkpoint, epochs") };
    let source = Table::open(table)
        .and_then(|table| table.select(&Columns::targets(["y"])))
        .and_then(|selected| selected.stream())
        .expect("columns of numbers");
    let dataset = Dataset::from_table(source, true).expect("usable rows");
    let entry = methods::find("deep").expect("a method");
    let mut batches = BatchOptions { size: 2000, ..BatchOptions::of(entry.method) };
    batches.training.epochs = Some(epochs.parse().expect("a number"));
    batches.training.checkpoint_seconds = 2.0;
    let options = FitOptions {
        method: "deep".into(),
        inducing: Some(100),
        batches: Some(batches),
        checkpoint: Some(checkpoint.into()),
        kernel: "rbf".into(),
        ..FitOptions::default()
    };
    let there = Path::new(checkpoint).exists();
    let clock = Instant::now();
    let fitted = fit(&dataset, &options, &Cpu::default(), &mut ()).expect("a fit");
    let x = noise(20, INPUTS, 5);
    let (mean, variance) = fitted.predict(x.as_ref(), Of::Observations).expect("predictions");
    let numbers = mean.col_as_slice(0).iter().chain(variance.col_as_slice(0));
    let bits = numbers.fold(0_u64, |sum, v| sum.rotate_left(7) ^ v.to_bits());
    println!(
        "| {} | {} rows | {:.0} s | {:.0} MiB | {bits:016x} |",
        if there { "goes on" } else { "from the start" },
        fitted.rows,
        clock.elapsed().as_secs_f64(),
        peak_memory() / 1024.0,
    );
}

fn killed(arguments: &[String]) {
    let rows = number(arguments, "--rows", 1e6, 1e6) as usize;
    let epochs = number(arguments, "--epochs", 12.0, 12.0) as usize;
    let seconds = number(arguments, "--seconds", 10.0, 10.0);
    let folder = std::env::temp_dir().join(format!("sparsegp-deep-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder");
    let table = folder.join("rows.parquet");
    write_table(&table, rows, INPUTS);
    let size = std::fs::metadata(&table).map_or(0, |about| about.len()) / (1 << 20);
    println!(
        "{rows} rows of {INPUTS} inputs, a file of {size} MiB; two layers, M = 100, {epochs} epochs of batches of 2000\n"
    );
    println!("| | | | peak memory | predictions |\n| --- | --- | --- | --- | --- |");
    let command = |name: &str| {
        let mut own = Command::new(std::env::current_exe().expect("a program"));
        own.arg("child").args([&table, &folder.join(name)]).arg(epochs.to_string());
        own
    };
    command("alone").status().expect("a child");
    let mut first = command("killed").stdout(Stdio::null()).spawn().expect("a child");
    std::thread::sleep(Duration::from_secs_f64(seconds));
    // SIGKILL
    first.kill().expect("a child that runs");
    first.wait().expect("a child");
    println!("| killed after {seconds} s | | | | |");
    command("killed").status().expect("a child");
    std::fs::remove_dir_all(&folder).expect("a folder");
}

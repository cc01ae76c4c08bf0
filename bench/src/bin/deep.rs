//! A deep model on a table that is streamed from Parquet, killed and resumed (Unix):
//! `cargo run --release -p sparsegp-bench --bin deep -- [--rows 1000000] [--epochs 12] [--seconds 10]`.
//!
//! Two layers, ten inputs. One process is killed by SIGKILL after so many seconds and resumes from its checkpoint, beside
//! one that runs without interruption.

use sparsegp::data::{Selection as Columns, Table};
use sparsegp::engine::Cpu;
use sparsegp::fit::{BatchOptions, Dataset, FitOptions, Of, fit};
use sparsegp::methods;
use sparsegp_bench::{noise, peak_memory, write_table};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("child") => child(&arguments),
        _ => killed(&arguments),
    }
}

fn number(arguments: &[String], name: &str, usual: f64) -> f64 {
    let at = arguments.iter().position(|a| a == name);
    let text = at.and_then(|at| arguments.get(at + 1));
    text.map_or(usual, |text| text.parse().expect("a number"))
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
        if there { "resumed" } else { "from the start" },
        fitted.rows,
        clock.elapsed().as_secs_f64(),
        peak_memory() / 1024.0,
    );
}

fn killed(arguments: &[String]) {
    let rows = number(arguments, "--rows", 1e6) as usize;
    let epochs = number(arguments, "--epochs", 12.0) as usize;
    let seconds = number(arguments, "--seconds", 10.0);
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
    command("uninterrupted").status().expect("a child");
    let mut first = command("killed").stdout(Stdio::null()).spawn().expect("a child");
    std::thread::sleep(Duration::from_secs_f64(seconds));
    // SIGKILL
    first.kill().expect("a child that runs");
    first.wait().expect("a child");
    println!("| killed after {seconds} s | | | | |");
    command("killed").status().expect("a child");
    std::fs::remove_dir_all(&folder).expect("a folder");
}

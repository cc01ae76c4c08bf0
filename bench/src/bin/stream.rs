//! Minibatches of a table that is never in memory as a whole, killed and resumed: `cargo run --release
//! -p sparsegp-bench --bin stream -- [--rows 10000000] [--inducing 512] [--batch 1024] [--epochs 1]
//! [--kill SECONDS] [--compare]` (Linux).
//!
//! A Parquet table of so many rows and 10 inputs is written to a temporary folder. A separate
//! process trains on it with checkpoints; after SECONDS (60) it is killed with SIGKILL, and another
//! one resumes from the checkpoint. With `--compare` a third one runs without interruption, and the
//! numbers of both models must be the same bits.

use sparsegp::data::{Selection, Table};
use sparsegp::engine::Cpu;
use sparsegp::fit::{BatchOptions, Dataset, FitOptions, fit};
use sparsegp::io;
use sparsegp::train::{Event, Observer, StochasticOptions};
use sparsegp_bench::{peak_memory, write_table};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

fn option(arguments: &[String], name: &str, default: &str) -> String {
    let at = arguments.iter().position(|a| a == name);
    at.and_then(|i| arguments.get(i + 1)).cloned().unwrap_or_else(|| default.to_owned())
}

/// Says where it is every half minute.
struct Progress(Instant);

impl Observer for Progress {
    fn event(&mut self, event: Event<'_>) -> ControlFlow<()> {
        if let Event::Batch { epoch, batch, per_epoch, objective, seconds, .. } = event
            && self.0.elapsed().as_secs() >= 30
        {
            self.0 = Instant::now();
            eprintln!(
                "  epoch {epoch}, batch {batch} of {per_epoch}, bound {objective:.0}, {seconds:.0} s"
            );
        }
        ControlFlow::Continue(())
    }
}

fn child(arguments: &[String]) {
    let number =
        |name: &str| -> usize { option(arguments, name, "0").parse().expect("a whole number") };
    let table = Table::open(option(arguments, "--table", "")).expect("the table");
    let source = table
        .select(&Selection::targets(["y"]))
        .and_then(|selected| selected.stream())
        .expect("columns of numbers");
    let dataset = Dataset::from_table(source, true).expect("usable rows");
    let checkpoint = option(arguments, "--checkpoint", "");
    let training = StochasticOptions {
        epochs: Some(number("--epochs")),
        checkpoint_seconds: 10.0,
        ..StochasticOptions::default()
    };
    let options = FitOptions {
        method: "svgp".into(),
        inducing: Some(number("--inducing")),
        checkpoint: Some(checkpoint.clone().into()),
        batches: Some(BatchOptions { size: number("--batch"), training }),
        kernel: "rbf".into(),
        ..FitOptions::default()
    };
    let fitted =
        fit(&dataset, &options, &Cpu::default(), &mut Progress(Instant::now())).expect("a fit");
    io::save(&fitted, Path::new(&option(arguments, "--output", ""))).expect("a file");
    let report = fitted.report.expect("it was trained");
    println!(
        "{} rows, {} iterations in {:.0} s of training, bound {:.0}, peak memory of the process {:.0} MiB",
        fitted.rows,
        report.iterations,
        report.seconds,
        report.objective,
        peak_memory() / 1024.0
    );
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|a| a == "--child") {
        return child(&arguments);
    }
    let rows: usize = option(&arguments, "--rows", "10000000").parse().expect("a whole number");
    let kill: u64 = option(&arguments, "--kill", "60").parse().expect("seconds");
    let folder = std::env::temp_dir().join(format!("sparsegp-stream-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let table = folder.join("table.parquet");
    let start = Instant::now();
    write_table(&table, rows, 10);
    println!("{rows} rows of 10 inputs written in {:.0} s", start.elapsed().as_secs_f64());
    let spawn = |name: &str| -> Child {
        let path = |end: &str| folder.join(format!("{name}.{end}")).display().to_string();
        let settings = [("--inducing", "512"), ("--batch", "1024"), ("--epochs", "1")];
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--child", "--table", &table.display().to_string()]);
        command.args(["--checkpoint", &path("checkpoint"), "--output", &path("safetensors")]);
        for (setting, default) in settings {
            command.args([setting, &option(&arguments, setting, default)]);
        }
        command.spawn().expect("a process")
    };
    let mut first = spawn("killed");
    let checkpoint = folder.join("killed.checkpoint");
    let started = Instant::now();
    while started.elapsed().as_secs() < kill || !checkpoint.exists() {
        std::thread::sleep(Duration::from_millis(200));
        if let Some(status) = first.try_wait().expect("a process") {
            panic!("it ended ({status}) before it could be killed: more rows, or --kill less");
        }
    }
    first.kill().expect("a process that runs");
    first.wait().expect("a process");
    println!("killed after {:.0} s; resuming", started.elapsed().as_secs_f64());
    assert!(spawn("killed").wait().expect("a process").success(), "the resumed training failed");
    if arguments.iter().any(|a| a == "--compare") {
        assert!(spawn("whole").wait().expect("a process").success(), "the training failed");
        let load =
            |name: &str| io::load(&folder.join(format!("{name}.safetensors"))).expect("a model");
        let (a, b) = (load("killed"), load("whole"));
        let bits = |fitted: &sparsegp::fit::Fitted| -> Vec<u64> {
            let params = fitted.model.params();
            params.iter().flat_map(|(_, p)| p.value().iter().map(|v| v.to_bits())).collect()
        };
        assert_eq!(bits(&a), bits(&b), "the models differ");
        println!("killed and resumed, or not: the same {} numbers, bit for bit", bits(&a).len());
    }
    std::fs::remove_dir_all(&folder).expect("the temporary folder");
}

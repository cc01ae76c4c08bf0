//! Peak memory when rows are streamed from Parquet: `cargo run --release -p sparsegp-bench --bin
//! memory -- [N …] [--iterations 1]` (Linux).
//!
//! For every N a table of N rows with 18 inputs is written to a temporary file, and a separate
//! process fits a sparse model with 512 inducing points to it: k-means on a sample, then full
//! passes over the file. Its peak resident memory is read from the system afterwards.

use sparsegp::data::{Selection, Table};
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, fit};
use sparsegp_bench::{peak_memory, write_table};

const INPUTS: usize = 18;
fn child(path: &str, iterations: usize) {
    let table = Table::open(path).expect("the table");
    let source = table
        .select(&Selection::targets(["y"]))
        .and_then(|selected| selected.stream())
        .expect("columns of numbers");
    let dataset = Dataset::from_table(source, true).expect("usable rows");
    let mut options = FitOptions {
        method: "titsias2025".into(),
        inducing: Some(512),
        kernel: "rbf".into(),
        ..FitOptions::default()
    };
    options.train.max_iterations = iterations;
    let engine = Cpu::default();
    let fitted = fit(&dataset, &options, &engine, &mut ()).expect("a fit");
    let report = fitted.report.expect("it was trained");
    let peak = peak_memory();
    println!(
        "| {} | {:.0} MiB | {} | {:.1} s |",
        fitted.rows,
        peak / 1024.0,
        report.evaluations,
        report.seconds / report.evaluations as f64
    );
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, path, iterations] = &arguments[..]
        && flag == "--child"
    {
        return child(path, iterations.parse().expect("a number"));
    }
    let at = arguments.iter().position(|a| a == "--iterations");
    let iterations = at.and_then(|i| arguments.get(i + 1)).map_or("1", |s| s.as_str());
    let mut sizes: Vec<usize> = arguments
        .iter()
        .enumerate()
        .filter(|(i, _)| at.is_none_or(|at| *i != at + 1))
        .filter_map(|(_, a)| a.parse().ok())
        .collect();
    if sizes.is_empty() {
        sizes = vec![1_000_000, 4_000_000];
    }
    println!("| rows | peak memory | evaluations | per evaluation |");
    println!("| --- | --- | --- | --- |");
    for rows in sizes {
        let path = std::env::temp_dir().join(format!("sparsegp-memory-{rows}.parquet"));
        write_table(&path, rows, INPUTS);
        let program = std::env::current_exe().expect("this program");
        let status = std::process::Command::new(program)
            .args(["--child", &path.display().to_string(), iterations])
            .status()
            .expect("a process");
        std::fs::remove_file(&path).expect("the temporary file");
        assert!(status.success(), "the fit failed");
    }
}

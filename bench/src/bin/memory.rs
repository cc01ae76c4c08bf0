//! Peak memory when rows are streamed from Parquet: `cargo run --release -p sparsegp-bench --bin
//! memory -- [N …] [--iterations 1]` (Linux).
//!
//! For every N a table of N rows with 18 inputs is written to a temporary file, and a process of its
//! own fits a sparse model with 512 inducing points to it: k-means on a sample, then full passes over
//! the file. Its peak resident memory is read from the system afterwards.

use parquet::data_type::DoubleType;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use sparsegp::data::{Selection, Table};
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, fit};
use std::path::Path;
use std::sync::Arc;

const INPUTS: usize = 18;
const GROUP: usize = 1 << 17;

fn write(path: &Path, rows: usize) {
    let columns: String = (0..INPUTS).map(|q| format!("required double x{q};")).collect();
    let schema = format!("message table {{ {columns} required double y; }}");
    let schema = Arc::new(parse_message_type(&schema).expect("a schema"));
    let file = std::fs::File::create(path).expect("a temporary file");
    let properties = Arc::new(WriterProperties::builder().set_dictionary_enabled(false).build());
    let mut writer = SerializedFileWriter::new(file, schema, properties).expect("a writer");
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut uniform = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    };
    let mut start = 0;
    while start < rows {
        let len = GROUP.min(rows - start);
        let x: Vec<Vec<f64>> = (0..INPUTS).map(|_| (0..len).map(|_| uniform()).collect()).collect();
        let y: Vec<f64> =
            (0..len).map(|i| (2.0 * x[0][i]).sin() + x[1][i] * x[2][i] + 0.1 * uniform()).collect();
        let mut group = writer.next_row_group().expect("a row group");
        for values in x.iter().chain(std::iter::once(&y)) {
            let mut column = group.next_column().expect("a column").expect("a column");
            column.typed::<DoubleType>().write_batch(values, None, None).expect("space on disk");
            column.close().expect("space on disk");
        }
        group.close().expect("space on disk");
        start += len;
    }
    writer.close().expect("space on disk");
}

fn child(path: &str, iterations: usize) {
    let table = Table::open(path).expect("the table");
    let source = table
        .select(&Selection::targets(["y"]))
        .and_then(|selected| selected.stream())
        .expect("columns of numbers");
    let dataset = Dataset::from_table(source, true).expect("usable rows");
    let mut options =
        FitOptions { method: "titsias2025".into(), inducing: Some(512), ..FitOptions::default() };
    options.train.max_iterations = iterations;
    let engine = Cpu::default();
    let fitted = fit(&dataset, &options, &engine, &mut ()).expect("a fit");
    let report = fitted.report.expect("it was trained");
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|kib| kib.parse::<f64>().ok())
        .expect("VmHWM");
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
        write(&path, rows);
        let program = std::env::current_exe().expect("this program");
        let status = std::process::Command::new(program)
            .args(["--child", &path.display().to_string(), iterations])
            .status()
            .expect("a process");
        std::fs::remove_file(&path).expect("the temporary file");
        assert!(status.success(), "the fit failed");
    }
}

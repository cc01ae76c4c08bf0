//! The tables and figures of the papers, one by one.
//!
//! ```text
//! cargo run --release -p sparsegp-bench --bin papers -- list
//! cargo run --release -p sparsegp-bench --bin papers -- run [NAME …] [--scale quick] [--seed 0]
//! cargo run --release -p sparsegp-bench --bin papers -- report
//! ```
//!
//! A name may be the beginning of several: `run bounds` runs all experiments of a paper. Results go to `--out`
//! (by default `target/papers`), pages to `docs/papers`.

mod bounds;
mod claims;
mod common;
mod dual;
mod inverse_free;
mod registry;
#[cfg(test)]
mod tests;
mod thesis;

use clap::{Parser, Subcommand};
use registry::entries;
use sparsegp_bench::papers::{Body, Entry, Scale, Settings, Verdict, execute, report};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Parser)]
#[command(about = "Runs the tables and figures of the papers behind sparsegp")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Folder of results
    #[arg(long, global = true, default_value_os_t = root().join("target/papers"))]
    out: PathBuf,
}

#[derive(Subcommand)]
enum Command {
    /// Print all experiments
    List,
    /// Run experiments, all of them without names
    Run {
        /// Names, or beginnings of names
        names: Vec<String>,
        /// smallest, quick, day or full
        #[arg(long, default_value = "quick", value_parser = Scale::parse)]
        scale: Scale,
        /// Seed of all random numbers
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// Threads; 0 for all cores
        #[arg(long, default_value_t = 0)]
        threads: usize,
        /// Folder of tables that are not bundled
        #[arg(long)]
        data: Option<PathBuf>,
    },
    /// Write docs/papers from the results
    Report,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the entries whose names begin with one of `names`; all of them without names.
fn asked(names: &[String]) -> Result<Vec<Entry>, String> {
    let all = entries();
    let begins = |entry: &Entry, name: &String| entry.name.starts_with(name.as_str());
    if let Some(name) = names.iter().find(|name| !all.iter().any(|entry| begins(entry, name))) {
        return Err(format!("there is no experiment `{name}`; `papers list` has them all"));
    }
    let wanted = |entry: &Entry| names.is_empty() || names.iter().any(|name| begins(entry, name));
    Ok(all.into_iter().filter(wanted).collect())
}

fn list() {
    let all = entries();
    for entry in &all {
        let state = match entry.body {
            Body::Program(_) => "",
            Body::WithData(_) => " [runs with --data]",
            Body::Drawing => " [drawing]",
        };
        println!("{:28} {} ({}): {}{state}", entry.name, entry.item, entry.panels, entry.shows);
    }
    let panels: usize = all.iter().map(|entry| entry.panels).sum();
    println!("\n{} experiments, {panels} panels and data sets", all.len());
}

/// Runs entries; returns how many failed.
fn run(chosen: &[Entry], settings: &Settings) -> usize {
    let mut failed = 0;
    for entry in chosen {
        match execute(entry, settings) {
            Ok(None) => {}
            Ok(Some(outcome)) => {
                let verdict = outcome.verdict().map_or("no checks", Verdict::words);
                println!(
                    "## {}: {}, {}: {verdict} ({}), {:.1} s\n\n{}",
                    entry.name,
                    entry.of().title,
                    entry.item,
                    outcome.count(),
                    outcome.seconds,
                    outcome.markdown()
                );
            }
            Err(error) => {
                eprintln!("error: {error}");
                failed += 1;
            }
        }
    }
    failed
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let out = arguments.out;
    let done = match arguments.command {
        Command::List => {
            list();
            Ok(0)
        }
        Command::Run { names, scale, seed, threads, data } => {
            let settings = Settings { scale, seed, threads, data, out };
            asked(&names).map(|chosen| run(&chosen, &settings))
        }
        Command::Report => {
            let docs = root().join("docs/papers");
            let written = report(&entries(), claims::CLAIMS, &out, &docs);
            written.map(|()| 0).map_err(|error| error.to_string())
        }
    };
    match done {
        Ok(0) => ExitCode::SUCCESS,
        Ok(failed) => {
            eprintln!("{failed} experiments failed");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

//! Bounds against each other on real data: `cargo run --release -p sparsegp-bench --bin uci --
//! [NAME …] [--splits 0,1,2] [--inducing 512] [--iterations 300]`.
//!
//! For every data set and split: standardised, squared exponential with one lengthscale per input,
//! the same start for both bounds; test log density and RMSE in standardised units, and the
//! per-row difference in log density between the 2025 and the 2009 bound with its standard error
//! over the rows of all splits.

use sparsegp::data::{Mask, Selection, Table};
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, fit};
use std::path::Path;
use std::sync::Arc;

const METHODS: [&str; 2] = ["titsias2009", "titsias2025"];

struct Outcome {
    /// Log density of every test row, in standardised units.
    density: Vec<f64>,
    rmse: f64,
    noise: f64,
    objective: f64,
    iterations: usize,
    seconds: f64,
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn run(name: &str, split: usize, method: &str, inducing: usize, iterations: usize) -> Outcome {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/data");
    let table = Table::open(folder.join(format!("{name}.csv.gz"))).expect("the data set");
    let selected = table.select(&Selection::targets(["y"])).expect("a column y");
    let masks = folder.join(format!("{name}.test-masks.csv.gz"));
    let mask = Mask::open(&format!("{}:split{split}", masks.display())).expect("the split");
    let mask = Arc::new(mask);
    let training = selected.clone().rows_where(mask.clone(), false).read_all().expect("rows");
    let dataset = Dataset::from_loaded(training, true).expect("usable rows");
    let mut options = FitOptions {
        method: method.into(),
        inducing: Some(inducing),
        kernel: "rbf".into(),
        ..FitOptions::default()
    };
    options.train.max_iterations = iterations;
    let engine = Cpu::default();
    let fitted = fit(&dataset, &options, &engine, &mut ()).expect("a fit");
    let mut density = Vec::new();
    let mut squares = 0.0;
    let blocks = selected.rows_where(mask, true).blocks(1024, Some(&fitted.scaler));
    for block in blocks.expect("test rows") {
        let mut block = block.expect("test rows");
        fitted.scaler.scale_y(block.y.as_mut()).expect("one target");
        let (x, y) = (block.x.as_ref(), block.y.as_ref());
        density.extend(fitted.posterior.predict_log_density(x, y, &[]).expect("densities"));
        let means = fitted.posterior.predict_mean(x).expect("means");
        squares += (0..y.nrows()).map(|i| (y[(i, 0)] - means[(i, 0)]).powi(2)).sum::<f64>();
    }
    let report = fitted.report.as_ref().expect("it was trained");
    Outcome {
        rmse: (squares / density.len() as f64).sqrt(),
        density,
        noise: fitted.model.noise().sqrt(),
        objective: report.objective,
        iterations: report.iterations,
        seconds: report.seconds,
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str, default: &str| {
        let at = arguments.iter().position(|a| a == name);
        at.and_then(|i| arguments.get(i + 1)).cloned().unwrap_or_else(|| default.to_owned())
    };
    let splits: Vec<usize> =
        option("--splits", "0,1,2").split(',').map(|s| s.parse().expect("a split")).collect();
    let inducing: usize = option("--inducing", "512").parse().expect("a number");
    let iterations: usize = option("--iterations", "300").parse().expect("a number");
    let known = ["elevators", "pol", "bike"];
    let asked: Vec<&str> =
        known.iter().copied().filter(|n| arguments.iter().any(|a| a == n)).collect();
    let names = if asked.is_empty() { known.to_vec() } else { asked };
    println!("M = {inducing}, splits {splits:?}, at most {iterations} iterations");
    println!(
        "| data | bound | test log density | RMSE | noise sd | bound | iterations | seconds |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for name in names {
        let mut all: Vec<Vec<Outcome>> = METHODS.iter().map(|_| Vec::new()).collect();
        for &split in &splits {
            for (method, outcomes) in METHODS.iter().zip(&mut all) {
                let o = run(name, split, method, inducing, iterations);
                eprintln!(
                    "{name} split {split} {method}: log density {:.4}, RMSE {:.4}, bound {:.1}, \
                     {} iterations, {:.0} s",
                    mean(&o.density),
                    o.rmse,
                    o.objective,
                    o.iterations,
                    o.seconds
                );
                outcomes.push(o);
            }
        }
        for (method, outcomes) in METHODS.iter().zip(&all) {
            let average =
                |f: &dyn Fn(&Outcome) -> f64| mean(&outcomes.iter().map(f).collect::<Vec<_>>());
            println!(
                "| {name} | {method} | {:.4} | {:.4} | {:.4} | {:.1} | {:.0} | {:.0} |",
                average(&|o| mean(&o.density)),
                average(&|o| o.rmse),
                average(&|o| o.noise),
                average(&|o| o.objective),
                average(&|o| o.iterations as f64),
                average(&|o| o.seconds),
            );
        }
        let differences: Vec<f64> = all[0]
            .iter()
            .zip(&all[1])
            .flat_map(|(old, new)| new.density.iter().zip(&old.density).map(|(n, o)| n - o))
            .collect();
        let d = mean(&differences);
        let variance = mean(&differences.iter().map(|v| (v - d).powi(2)).collect::<Vec<_>>());
        let error = (variance / differences.len() as f64).sqrt();
        println!(
            "| {name} | 2025 − 2009, paired | {d:+.4} ± {error:.4} ({:+.1} standard errors) | | | | | |",
            d / error
        );
    }
}

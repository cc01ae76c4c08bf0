//! Uncollapsed bounds on two larger data sets, by the protocol of Titsias 2025, §5.3: `cargo run
//! --release -p sparsegp-bench --bin large -- [NAME …] [--methods svgp,svgp2025] [--splits 0]
//! [--inducing 1024] [--batch 1024] [--epochs 100] [--rate 0.01] [--natural RATE]`.
//!
//! A fifth of the rows is for testing, a fifth of the rest is left out (the paper's validation rows),
//! everything standardised; Matérn 3/2 with one lengthscale, zero mean, inducing points by k-means,
//! the paper's starting values (σ = 0.51, σ_f = 0.69, ℓ = 1), whitened q, Adam with the same rate for
//! everything, or natural gradients for q. Test log density and RMSE in standardised units.

use sparsegp::data::{InMemory, Selection, Source, Table};
use sparsegp::engine::{Cpu, Want};
use sparsegp::fit::{BatchOptions, Dataset, FitOptions, Fitted, fit};
use sparsegp::linalg::Mat;
use sparsegp::methods::Uncollapsed;
use sparsegp::optim::AdamOptions;
use sparsegp::rng;
use sparsegp::train::{Event, Observer, StochasticOptions};
use std::ops::ControlFlow;
use std::path::Path;

/// Prints the bound now and then.
struct Lines(usize);

impl Observer for Lines {
    fn event(&mut self, event: Event<'_>) -> ControlFlow<()> {
        if let Event::Iteration(point) = event
            && point.iteration.is_multiple_of(self.0)
        {
            eprintln!(
                "  epoch {}: bound {:.1}, {:.0} s",
                point.iteration, point.objective, point.seconds
            );
        }
        ControlFlow::Continue(())
    }
}

/// Training and test rows of a split.
fn rows(name: &str, split: u64) -> (Mat<f64>, Mat<f64>, Mat<f64>, Mat<f64>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/data");
    let table = Table::open(folder.join(format!("{name}.csv.gz"))).expect("the data set");
    let selected = table.select(&Selection::targets(["y"])).expect("a column y");
    let all: InMemory = selected.read_all().expect("rows").into_source();
    let n = all.rows();
    let order = rng::permutation(&mut rng::stream(split, "split"), n, n);
    let (test, rest) = order.split_at(n / 5);
    let training = &rest[rest.len() / 5..];
    let pick =
        |a: &Mat<f64>, rows: &[usize]| Mat::from_fn(rows.len(), a.ncols(), |i, j| a[(rows[i], j)]);
    (pick(&all.x, training), pick(&all.y, training), pick(&all.x, test), pick(&all.y, test))
}

/// Mean log density, its standard error over rows, and RMSE, in standardised units.
fn judge(fitted: &Fitted, mut x: Mat<f64>, mut y: Mat<f64>) -> (Vec<f64>, f64) {
    fitted.scaler.scale_x(x.as_mut()).expect("the same columns");
    fitted.scaler.scale_y(y.as_mut()).expect("one target");
    let (mut density, mut squares) = (Vec::new(), 0.0);
    for start in (0..x.nrows()).step_by(1024) {
        let len = 1024.min(x.nrows() - start);
        let (x, y) = (x.as_ref().subrows(start, len), y.as_ref().subrows(start, len));
        density.extend(fitted.posterior.predict_log_density(x, y, &[]).expect("densities"));
        let means = fitted.posterior.predict_mean(x).expect("means");
        squares += (0..len).map(|i| (y[(i, 0)] - means[(i, 0)]).powi(2)).sum::<f64>();
    }
    let rmse = (squares / density.len() as f64).sqrt();
    (density, rmse)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str, default: &str| {
        let at = arguments.iter().position(|a| a == name);
        at.and_then(|i| arguments.get(i + 1)).cloned().unwrap_or_else(|| default.to_owned())
    };
    let number =
        |name: &str, default: &str| -> f64 { option(name, default).parse().expect("a number") };
    let inducing = number("--inducing", "1024") as usize;
    let natural = arguments.iter().any(|a| a == "--natural").then(|| number("--natural", "0.1"));
    let splits: Vec<u64> =
        option("--splits", "0").split(',').map(|s| s.parse().expect("a split")).collect();
    let methods = option("--methods", "svgp,svgp2025");
    let mut names: Vec<&str> =
        arguments.iter().take_while(|a| !a.starts_with("--")).map(String::as_str).collect();
    if names.is_empty() {
        names = vec!["kin40k", "protein"];
    }
    println!("| data | split | method | log density | RMSE | bound | noise σ | seconds |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for name in names {
        for split in &splits {
            for method in methods.split(',') {
                let (x, y, test_x, test_y) = rows(name, *split);
                let dataset = Dataset::from_arrays(x, y, true).expect("usable rows");
                let options = FitOptions {
                    kernel: "matern32(variance=0.4761, lengthscales=1.0, ard=false)".into(),
                    method: method.into(),
                    inducing: Some(inducing),
                    set: vec![("likelihood.variance".into(), vec![0.51 * 0.51])],
                    seed: *split,
                    pilot: 0,
                    batches: Some(BatchOptions {
                        size: number("--batch", "1024") as usize,
                        training: StochasticOptions {
                            epochs: Some(number("--epochs", "100") as usize),
                            adam: AdamOptions {
                                learning_rate: number("--rate", "0.01"),
                                ..AdamOptions::default()
                            },
                            natural,
                            ..StochasticOptions::default()
                        },
                    }),
                    ..FitOptions::default()
                };
                let engine = Cpu::default();
                let fitted = fit(&dataset, &options, &engine, &mut Lines(5)).expect("a fit");
                let (density, rmse) = judge(&fitted, test_x, test_y);
                let mean = density.iter().sum::<f64>() / density.len() as f64;
                let report = fitted.report.as_ref().expect("it was trained");
                println!(
                    "| {name} | {split} | {method} | {mean:.4} | {rmse:.4} | {:.1} | {:.4} | {:.0} |",
                    report.objective,
                    fitted.model.noise().sqrt(),
                    report.seconds
                );
                // both bounds at the parameters that this one found
                for other in ["svgp", "svgp2025"] {
                    let mut model = fitted.model.clone();
                    model.method = sparsegp::methods::find(other).expect("registered").method;
                    let bound = Uncollapsed::of(model.method).expect("uncollapsed");
                    let step = bound.step(&model, &engine, &*dataset.source, Want::Value);
                    eprintln!("  {other} there: {:.1}", step.expect("a bound").value);
                }
            }
        }
    }
}

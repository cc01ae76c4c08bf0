//! What a fit without options gives: `cargo run --release -p sparsegp-bench --bin defaults -- time|prior [NAME …] [OPTION …]`.
//!
//! `time` fits large tables, and prints the method that was chosen, seconds, and the test NLPD in standardised units: `kin40k`,
//! `protein` (the first of their standard splits), and `simulated-N`, N rows of 10 inputs that are standard normal and
//!
//! ```text
//! y = sin(2x₁) + ½ x₂x₃ + 0.3 sin(x₁₀) + 0.2 ε:
//! ```
//!
//! no model has an expected NLPD below that of the pure noise, which stands beside its own (10 000
//! test rows). The last column is the lengthscale of x₁₀, whose effect is weak, among those of six
//! inputs without any. By default `simulated-100000`, `simulated-1000000` and both tables.
//! `--longer K`: again with K times as many steps.
//!
//! `prior` compares fits with and without the prior of lengthscales on small tables: test NLPD and coverage of central intervals
//! of 95 % (mean probability of the right class for classes) over `--splits K` (5), and the
//! paired difference of the NLPD with its standard error over the test rows. Names of bundled tables; those of two classes
//! split as in `--bin nongaussian`.

use sparsegp::data::{InMemory, Loaded, Mask};
use sparsegp::engine::Cpu;
use sparsegp::fit::{BatchOptions, Dataset, FitOptions, Fitted, Of, fit};
use sparsegp::linalg::Mat;
use sparsegp::metrics::standard_normal_quantile;
use sparsegp::rng::{stream, uniform};
use sparsegp_bench::load;
use std::path::Path;
use std::time::Instant;

/// Standard deviation of the simulated noise.
const NOISE: f64 = 0.2;
const INPUTS: usize = 10;
/// Test rows that are simulated.
const TEST_ROWS: usize = 10_000;
/// Tables of numbers, and of two classes.
const REGRESSION: [&str; 7] =
    ["yacht", "housing", "energy", "concrete", "airfoil", "mcycle", "bikes-daily"];
const CLASSES: [&str; 4] = ["sonar", "ionosphere", "heart", "diabetes"];

/// Names and options of the command line.
struct Arguments(Vec<String>);

impl Arguments {
    fn number(&self, name: &str) -> Option<f64> {
        let at = self.0.iter().position(|a| a == name)?;
        Some(self.0.get(at + 1)?.parse().expect("a number"))
    }

    /// Names that were given, or these.
    fn names<'a>(&'a self, usual: &[&'a str]) -> Vec<&'a str> {
        let given = self.0.iter().skip(1).take_while(|a| !a.starts_with("--"));
        let given: Vec<&str> = given.map(String::as_str).collect();
        if given.is_empty() { usual.to_vec() } else { given }
    }
}

/// Training and test rows.
struct Rows {
    training: Loaded,
    test: InMemory,
}

impl Rows {
    fn new(all: &Loaded, mask: &Mask) -> Self {
        let training = all.rows_where(mask, false).expect("training rows");
        let test = all.rows_where(mask, true).expect("test rows").into_source();
        Self { training, test }
    }

    /// Split `k` of a bundled table: its standard one, or a random fifth of the rows.
    fn of_table(name: &str, classes: bool, k: usize) -> Self {
        let all = load(name, classes);
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/data");
        let masks = folder.join(format!("{name}.test-masks.csv.gz"));
        let mask = match masks.exists() {
            true => Mask::open(&format!("{}:split{k}", masks.display())).expect("the split"),
            false => Mask::random(all.x.nrows(), 0.2, k as u64).expect("a share"),
        };
        Self::new(&all, &mask)
    }
}

/// Inputs and targets of so many simulated rows.
fn simulated(rows: usize, name: &str) -> (Mat<f64>, Mat<f64>) {
    let mut dice = stream(0, name);
    let mut normal = || standard_normal_quantile(uniform(&mut dice).max(1e-16));
    let x = Mat::from_fn(rows, INPUTS, |_, _| normal());
    let f = |i: usize| {
        (2.0 * x[(i, 0)]).sin() + 0.5 * x[(i, 1)] * x[(i, 2)] + 0.3 * x[(i, INPUTS - 1)].sin()
    };
    let y = Mat::from_fn(rows, 1, |i, _| f(i) + NOISE * normal());
    (x, y)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Mean and its standard error.
fn with_error(values: &[f64]) -> (f64, f64) {
    let (n, center) = (values.len() as f64, mean(values));
    let squares: f64 = values.iter().map(|v| (v - center).powi(2)).sum();
    (center, (squares / (n - 1.0) / n).sqrt())
}

/// Negative log density of every test row, in standardised units.
fn losses(fitted: &Fitted, test: &InMemory) -> Vec<f64> {
    let unit = fitted.scaler.log_jacobian();
    let density = fitted.log_density(test.x.as_ref(), test.y.as_ref(), &test.extra);
    density.expect("densities").into_iter().map(|d| -d + unit).collect()
}

/// Fits by default, with so many times the steps.
fn fitted(dataset: &Dataset, longer: f64) -> Fitted {
    let mut options = FitOptions::default();
    if longer != 1.0 {
        let mut batches = BatchOptions::default();
        let rows = dataset.source.rows() as f64;
        // as fit::choice has it
        let steps = longer * 2000.0 * (rows / 1e5).max(1.0).powf(0.6);
        batches.training.epochs = Some((steps * batches.size as f64 / rows).ceil() as usize);
        options.batches = Some(batches);
    }
    fit(dataset, &options, &Cpu::default(), &mut ()).expect("a fit")
}

fn time(arguments: &Arguments) {
    let names = arguments.names(&["simulated-100000", "simulated-1000000", "kin40k", "protein"]);
    println!("| data | rows | steps | method | seconds | NLPD | pure noise | lengthscale of x₁₀ |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    let longer: Vec<f64> = std::iter::once(1.0).chain(arguments.number("--longer")).collect();
    for name in names {
        let simulation = name.strip_prefix("simulated-").map(|n| n.parse().expect("rows"));
        for &longer in &longer {
            let (dataset, test) = match simulation {
                Some(rows) => {
                    let (x, y) = simulated(rows, "training");
                    let (test_x, test_y) = simulated(TEST_ROWS, "test");
                    let dataset = Dataset::from_arrays(x, y, true).expect("usable rows");
                    (dataset, InMemory::new(test_x, test_y).expect("rows"))
                }
                None => {
                    let Rows { training, test } = Rows::of_table(name, false, 0);
                    (Dataset::from_loaded(training, true).expect("usable rows"), test)
                }
            };
            let clock = Instant::now();
            let fitted = fitted(&dataset, longer);
            let seconds = clock.elapsed().as_secs_f64();
            let loss = mean(&losses(&fitted, &test));
            let floor = simulation.map(|_| {
                let unit = fitted.scaler.log_jacobian();
                let entropy = 0.5 * (std::f64::consts::TAU * std::f64::consts::E).ln() + NOISE.ln();
                format!("{:.4}", entropy + unit)
            });
            let params = fitted.model.params();
            let lengthscales = params.iter().find(|(path, _)| path == "kernel.lengthscales");
            let last = simulation.and(lengthscales.and_then(|(_, p)| p.value().last().copied()));
            println!(
                "| {name} | {} | ×{longer} | `{}` | {seconds:.0} | {loss:.4} | {} | {} |",
                dataset.source.rows(),
                fitted.model.method.name(),
                floor.unwrap_or_default(),
                last.map(|l| format!("{l:.2}")).unwrap_or_default(),
            );
        }
    }
}

/// What a fit says of the test rows.
struct Scores {
    losses: Vec<f64>,
    /// Whether each is in its interval, or the probability of its class.
    right: Vec<f64>,
}

fn scores(rows: &Rows, classes: bool, prior: bool) -> Scores {
    let dataset = Dataset::from_loaded(rows.training.clone(), true).expect("usable rows");
    let options = FitOptions { lengthscale_prior: prior, ..FitOptions::default() };
    let fitted = fit(&dataset, &options, &Cpu::default(), &mut ()).expect("a fit");
    let losses = losses(&fitted, &rows.test);
    let right = if classes {
        losses.iter().map(|loss| (-loss).exp()).collect()
    } else {
        let (x, y) = (rows.test.x.as_ref(), rows.test.y.as_ref());
        let levels = [0.025, 0.975];
        let quantiles = fitted.quantiles(x, &[], &levels, Of::Observations).expect("quantiles");
        let inside =
            |i: usize| quantiles[0][(i, 0)] <= y[(i, 0)] && y[(i, 0)] <= quantiles[1][(i, 0)];
        (0..y.nrows()).map(|i| f64::from(u8::from(inside(i)))).collect()
    };
    Scores { losses, right }
}

fn prior(arguments: &Arguments) {
    let usual: Vec<&str> = REGRESSION.into_iter().chain(CLASSES).collect();
    let splits = arguments.number("--splits").unwrap_or(5.0) as usize;
    println!("| data | NLPD without | with | difference | covered without | with |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for name in arguments.names(&usual) {
        let classes = CLASSES.contains(&name);
        let (mut without, mut with) = (Vec::new(), Vec::new());
        for split in 0..splits {
            let rows = Rows::of_table(name, classes, split);
            without.push(scores(&rows, classes, false));
            with.push(scores(&rows, classes, true));
        }
        let pooled = |all: &[Scores], pick: fn(&Scores) -> &Vec<f64>| -> Vec<f64> {
            all.iter().flat_map(|scores| pick(scores).clone()).collect()
        };
        let (before, after) = (pooled(&without, |s| &s.losses), pooled(&with, |s| &s.losses));
        let paired: Vec<f64> = after.iter().zip(&before).map(|(a, b)| a - b).collect();
        let (by, error) = with_error(&paired);
        println!(
            "| {name} | {:.3} | {:.3} | {by:+.3} ± {error:.3} | {:.3} | {:.3} |",
            mean(&before),
            mean(&after),
            mean(&pooled(&without, |s| &s.right)),
            mean(&pooled(&with, |s| &s.right)),
        );
    }
}

fn main() {
    let arguments = Arguments(std::env::args().skip(1).collect());
    match arguments.0.first().map(String::as_str) {
        Some("time") => time(&arguments),
        Some("prior") => prior(&arguments),
        _ => panic!("say `time` or `prior`"),
    }
}

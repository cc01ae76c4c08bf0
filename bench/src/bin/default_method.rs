//! Which method should be the default where the noise is not Gaussian:
//! `cargo run --release -p sparsegp-bench --bin default_method -- [NAME …]`.
//!
//! For every data set (its first split) and method, with budgets of 1, 2, 4, … iterations: the time of the shortest training
//! from which on the NLPD of test rows is within 0.01 nats of that of the longest.

use sparsegp::data::{Loaded, Mask};
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Standardise, fit};
use sparsegp::likelihoods;
use sparsegp::rng::{permutation, stream};
use sparsegp::variational::Tying;
use sparsegp_bench::load;
use sparsegp_bench::page::Drawn;
use std::time::Instant;

/// Five folds by a shuffled order (seed 0).
fn folds(all: &Loaded) -> Vec<(Loaded, Loaded)> {
    let n = all.x.nrows();
    let mut fold = vec![0; n];
    let order = permutation(&mut stream(0, "folds"), n, n);
    order.iter().enumerate().for_each(|(at, row)| fold[*row] = at % 5);
    let part = |k| {
        let mask = Mask::new("fold", fold.iter().map(|f| *f == k));
        let rows = |test| all.rows_where(&mask, test).expect("a mask of all rows");
        (rows(false), rows(true))
    };
    (0..5).map(part).collect()
}

/// A name, a method, and what its training by a budget of iterations is.
type Way = (&'static str, &'static str, fn(&mut FitOptions, usize));

/// So many passes over all rows by minibatches.
fn epochs(options: &mut FitOptions, budget: usize) {
    let batches = options.batches.as_mut().expect("the default");
    batches.training.epochs = Some(budget);
}

fn on_all_rows(options: &mut FitOptions, budget: usize) {
    options.batches = None;
    options.train.max_iterations = budget;
}

const WAYS: [Way; 8] = [
    ("svgp, natural gradients and Adam from one pass", "svgp", epochs),
    ("svgp, one step of each", "svgp", |options, budget| {
        epochs(options, budget);
        options.batches.as_mut().expect("the default").training.em = Some((1, 1));
    }),
    ("svgp, Adam only", "svgp", |options, budget| {
        epochs(options, budget);
        options.batches.as_mut().expect("the default").training.natural = None;
    }),
    ("svgp, L-BFGS on all rows", "svgp", on_all_rows),
    ("tsvgp, sites and Adam from one pass", "tsvgp", epochs),
    ("tsvgp, one step of each", "tsvgp", |options, budget| {
        epochs(options, budget);
        options.batches.as_mut().expect("the default").training.em = Some((1, 1));
    }),
    ("tsvgp, EM with L-BFGS on all rows", "tsvgp", on_all_rows),
    ("tsvgp untied, EM with L-BFGS on all rows", "tsvgp", |options, budget| {
        on_all_rows(options, budget);
        options.tying = Tying::Untied;
    }),
];

fn main() -> Drawn {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    const KNOWN: [(&str, &str, &str); 7] = [
        ("banana", "bernoulli", "rbf"),
        ("ionosphere", "bernoulli", "rbf(ard=false)"),
        ("sonar", "bernoulli", "rbf(ard=false)"),
        ("diabetes", "bernoulli", "rbf(ard=false)"),
        ("heart", "bernoulli", "rbf(ard=false)"),
        ("coal", "poisson", "rbf"),
        ("bikes-daily", "negative-binomial", "rbf"),
    ];
    let asked = |name: &str| arguments.iter().any(|a| a == name);
    let some = KNOWN.iter().any(|(name, ..)| asked(name));
    println!("| data | training | seconds to within 0.01 nats | seconds of all | NLPD | bound |");
    println!("|{}", " --- |".repeat(6));
    for (name, likelihood, kernel) in KNOWN.into_iter().filter(|(n, ..)| !some || asked(n)) {
        let classes = likelihood == "bernoulli";
        let all = load(name, classes);
        let (training, test) = match name {
            "banana" => (all, load("banana-test", true)),
            _ => folds(&all).swap_remove(0),
        };
        let scaling = Standardise::all_that(&*likelihoods::parse(likelihood)?);
        let dataset = Dataset::from_loaded(training, scaling)?;
        for (label, method, budgeted) in WAYS {
            let mut runs = Vec::new();
            for power in 0..=10 {
                let mut options = FitOptions {
                    likelihood: Some(likelihood.into()),
                    kernel: kernel.into(),
                    method: method.into(),
                    ..FitOptions::default()
                };
                budgeted(&mut options, 1 << power);
                let clock = Instant::now();
                let fitted = fit(&dataset, &options, &Cpu::default(), &mut ())?;
                let seconds = clock.elapsed().as_secs_f64();
                let density = fitted.log_density(test.x.as_ref(), test.y.as_ref(), &[])?;
                let nlpd = -density.iter().sum::<f64>() / density.len() as f64;
                runs.push((seconds, nlpd, fitted.objective().unwrap_or(f64::NAN)));
            }
            let (whole, last, objective) = runs[runs.len() - 1];
            let late = runs.iter().rposition(|(_, nlpd, _)| (nlpd - last).abs() > 0.01);
            let soon = runs[late.map_or(0, |at| at + 1)].0;
            println!("| {name} | {label} | {soon:.2} | {whole:.2} | {last:.4} | {objective:.2} |");
        }
    }
    Ok(())
}

//! Two classes by local variables against other inference.
//!
//! Prints a table of error, negative log probability of test labels and seconds: means over ten folds with their standard
//! errors. Logistic likelihood, squared exponential with one lengthscale per input, 100 inducing points by k-means,
//! minibatches of 100 where there are minibatches; inputs standardised by the training rows. All methods train
//! hyperparameters and inducing points and start from the same pilot.

use crate::common::option;
use sparsegp::data::{Loaded, Mask};
use sparsegp::engine::Cpu;
use sparsegp::fit::{BatchOptions, Dataset, FitOptions, Standardise, fit};
use sparsegp::likelihoods;
use sparsegp::methods;
use sparsegp::rng::{permutation, stream};
use sparsegp_bench::load;
use std::time::Instant;

const NAMES: [&str; 5] = ["diabetes", "ionosphere", "heart", "banana", "sonar"];
const METHODS: &str = "svgp,tsvgp,cavi,svi,cavi-full,gibbs";

/// Training and test rows of every fold.
pub fn folds(all: &Loaded, count: usize) -> Vec<(Loaded, Loaded)> {
    let n = all.x.nrows();
    let mut fold = vec![0; n];
    let order = permutation(&mut stream(0, "folds"), n, n);
    order.iter().enumerate().for_each(|(at, row)| fold[*row] = at % count);
    (0..count)
        .map(|k| {
            let mask = Mask::new("fold", fold.iter().map(|f| *f == k));
            let part = |flag| all.rows_where(&mask, flag).expect("a mask of all rows");
            (part(false), part(true))
        })
        .collect()
}

/// Error, negative log probability and seconds of one fold.
fn one((train, test): &(Loaded, Loaded), method: &str) -> [f64; 3] {
    let likelihood = likelihoods::parse("bernoulli(link=logit)").expect("a likelihood");
    let data =
        Dataset::from_loaded(train.clone(), Standardise::all_that(&*likelihood)).expect("rows");
    let sparse = methods::find(method).expect("a method").method.is_sparse();
    let options = FitOptions {
        kernel: "rbf".into(),
        likelihood: Some("bernoulli(link=logit)".into()),
        method: method.into(),
        inducing: sparse.then_some(100),
        batches: (method != "tsvgp").then(|| BatchOptions { size: 100, ..Default::default() }),
        ..FitOptions::default()
    };
    let clock = Instant::now();
    let fitted = fit(&data, &options, &Cpu::default(), &mut ()).expect("a fit");
    let seconds = clock.elapsed().as_secs_f64();
    let p = fitted.predict_proba(test.x.as_ref()).expect("probabilities");
    let n = test.x.nrows();
    let (mut wrong, mut log) = (0.0, 0.0);
    for i in 0..n {
        let label = test.y[(i, 0)] as usize;
        wrong += f64::from(u8::from(p[(i, label)] < 0.5));
        log -= p[(i, label)].ln();
    }
    [wrong / n as f64, log / n as f64, seconds]
}

/// Runs them.
pub fn run(arguments: &[String]) {
    let count = option(arguments, "--folds").map_or(10, |k| k.parse().expect("a number"));
    let methods = option(arguments, "--methods").unwrap_or_else(|| METHODS.into());
    let asked: Vec<&str> = NAMES
        .into_iter()
        .filter(|name| {
            arguments.iter().any(|a| a == name)
                || !arguments.iter().any(|a| NAMES.contains(&a.as_str()))
        })
        .collect();
    println!("| data | method | error | NLL | seconds |\n| --- | --- | --- | --- | --- |");
    for name in asked {
        let all = load(name, true);
        let splits = folds(&all, count);
        for method in methods.split(',') {
            let results: Vec<[f64; 3]> = splits.iter().map(|s| one(s, method)).collect();
            let cells: Vec<String> = (0..3)
                .map(|at| {
                    let n = results.len() as f64;
                    let mean = results.iter().map(|r| r[at]).sum::<f64>() / n;
                    let spread =
                        results.iter().map(|r| (r[at] - mean).powi(2)).sum::<f64>() / (n - 1.0);
                    match at {
                        2 => format!("{mean:.2}"),
                        _ => format!("{mean:.3} ± {:.3}", (spread / n).sqrt()),
                    }
                })
                .collect();
            println!("| {name} | `{method}` | {} |", cells.join(" | "));
        }
    }
}

//! Many classes: what a step of `svi` costs, and where it gets, as fewer classes move in it.
//!
//! Classes are the cells of a grid of the unit square, with one label in ten at random; logistic-softmax, one lengthscale.

use crate::common::{Table, digits, number};
use sparsegp::engine::Cpu;
use sparsegp::fit::{BatchOptions, Dataset, FitOptions, Standardise, fit};
use sparsegp::linalg::Mat;
use sparsegp::rng::{below, stream, uniform};
use std::time::Instant;

/// Inputs N×2 and classes of a grid with so many cells along each side.
fn cells(side: usize, rows: usize, name: &str) -> (Mat<f64>, Mat<f64>) {
    let mut rng = stream(0, name);
    let (mut x, mut y) = (Mat::zeros(rows, 2), Mat::zeros(rows, 1));
    for i in 0..rows {
        let place = [uniform(&mut rng), uniform(&mut rng)];
        (x[(i, 0)], x[(i, 1)]) = (place[0], place[1]);
        let [a, b] = place.map(|p| (p * side as f64) as usize);
        let own = a * side + b;
        y[(i, 0)] = if uniform(&mut rng) < 0.1 { below(&mut rng, side * side) } else { own } as f64;
    }
    (x, y)
}

/// Runs it.
pub fn run(arguments: &[String]) {
    let side = number(arguments, "--side", 10.0) as usize;
    let rows = number(arguments, "--rows", 10_000.0) as usize;
    let inducing = number(arguments, "--inducing", 100.0) as usize;
    let size = number(arguments, "--batch", 100.0) as usize;
    let budget = number(arguments, "--seconds", 20.0);
    let classes = side * side;
    let (x, y) = cells(side, rows, "training");
    let (new_x, new_y) = cells(side, 2000, "test");
    println!("{classes} classes, {rows} rows, {inducing} inducing points, minibatches of {size}\n");
    let header = ["classes in a step", "ms a step", "steps", "seconds", "error", "NLL"];
    let mut table = Table::new(arguments, &header);
    for per_step in [classes, classes / 4, classes / 20, (classes / 100).max(1)] {
        let scaling = Standardise { inputs: true, targets: false, robust: false, constants: true };
        let dataset = Dataset::from_arrays(x.clone(), y.clone(), scaling).expect("rows");
        let steps = |epochs: usize| {
            let mut batches = BatchOptions { size, ..BatchOptions::default() };
            batches.training.epochs = Some(epochs);
            batches.training.classes_per_step = (per_step < classes).then_some(per_step);
            let options = FitOptions {
                kernel: "rbf(ard=false, lengthscales=0.3, variance=9)".into(),
                likelihood: Some(format!("logistic-softmax(classes={classes})")),
                method: "svi".into(),
                inducing: Some(inducing),
                pilot: 0,
                freeze: vec!["inducing".into()],
                batches: Some(batches),
                ..FitOptions::default()
            };
            let clock = Instant::now();
            let fitted = fit(&dataset, &options, &Cpu::default(), &mut ()).expect("a fit");
            (fitted, clock.elapsed().as_secs_f64())
        };
        // the first half epoch looks for where the rates start
        let per_epoch = rows.div_ceil(size);
        let (one, two) = (steps(1).1, steps(2).1);
        let each = (two - one) / per_epoch as f64;
        let epochs = (((budget - one) / (two - one)).round().max(0.0) as usize + 1).min(200);
        let (fitted, seconds) = steps(epochs);
        let p = fitted.predict_proba(new_x.as_ref()).expect("probabilities");
        let n = new_y.nrows();
        let (mut wrong, mut log) = (0.0, 0.0);
        for i in 0..n {
            let label = new_y[(i, 0)] as usize;
            let best = (0..classes).max_by(|a, b| p[(i, *a)].total_cmp(&p[(i, *b)]));
            wrong += f64::from(u8::from(best != Some(label)));
            log -= p[(i, label)].max(1e-300).ln();
        }
        table.row(&[
            per_step.to_string(),
            digits(1e3 * each),
            (epochs * per_epoch).to_string(),
            digits(seconds),
            format!("{:.3}", wrong / n as f64),
            format!("{:.3}", log / n as f64),
        ]);
    }
}

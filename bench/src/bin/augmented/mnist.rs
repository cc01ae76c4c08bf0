//! Ten digits: 8000 rows train, 2000 test; pixels/255, one lengthscale.

use crate::common::{Table, number};
use sparsegp::data::Mask;
use sparsegp::engine::Cpu;
use sparsegp::fit::{BatchOptions, Dataset, FitOptions, Standardise, fit};
use sparsegp_bench::{class_scores, load};
use std::time::Instant;

const WAYS: [(&str, &str, &str); 4] = [
    ("logistic-softmax, local variables", "logistic-softmax(classes=10)", "svi"),
    ("logistic-softmax", "logistic-softmax(classes=10)", "svgp"),
    ("softmax", "softmax(classes=10)", "svgp"),
    ("robust-max", "robust-max(classes=10)", "svgp"),
];

/// Runs it.
pub fn run(arguments: &[String]) {
    let inducing = number(arguments, "--inducing", 100.0) as usize;
    let size = number(arguments, "--batch", 200.0) as usize;
    let epochs = number(arguments, "--epochs", 4.0) as usize;
    let mut all = load("mnist-t10k", true);
    for j in 0..all.x.ncols() {
        all.x.col_as_slice_mut(j).iter_mut().for_each(|v| *v /= 255.0);
    }
    let mask = Mask::new("the last 2000", (0..10_000).map(|row| row >= 8000));
    let part = |flag| all.rows_where(&mask, flag).expect("a mask of all rows");
    let (training, test) = (part(false), part(true));
    println!("{inducing} inducing points, minibatches of {size}, {epochs} epochs\n");
    let header = ["likelihood", "method", "error", "NLL", "seconds", "ms an iteration"];
    let mut table = Table::new(arguments, &header);
    for (label, likelihood, method) in WAYS {
        let scaling = Standardise { inputs: false, targets: false, robust: false, constants: true };
        let dataset = Dataset::from_loaded(training.clone(), scaling).expect("rows");
        let mut batches = BatchOptions { size, ..BatchOptions::default() };
        batches.training.epochs = Some(epochs);
        let options = FitOptions {
            kernel: "rbf(ard=false, lengthscales=5)".into(),
            likelihood: Some(likelihood.into()),
            method: method.into(),
            inducing: Some(inducing),
            pilot: 0,
            batches: Some(batches),
            ..FitOptions::default()
        };
        let clock = Instant::now();
        let fitted = fit(&dataset, &options, &Cpu::default(), &mut ()).expect("a fit");
        let seconds = clock.elapsed().as_secs_f64();
        let p = fitted.predict_proba(test.x.as_ref()).expect("probabilities");
        let (wrong, log) = class_scores(&p, &test.y);
        let iterations = fitted.report.as_ref().map_or(0, |r| r.iterations).max(1);
        table.row(&[
            label.into(),
            format!("`{method}`"),
            format!("{:.3}", wrong),
            format!("{:.3}", log),
            format!("{seconds:.1}"),
            format!("{:.1}", 1e3 * seconds / iterations as f64),
        ]);
    }
}

//! Three classes of overlapping clusters: how well probabilities of three likelihoods are calibrated.
//!
//! Inputs are normal with variance σ² about three corners of a triangle at distance 1 from its centre; at σ² = 1 the classes
//! can hardly be told apart. 50 inducing points, all rows at once.

use crate::common::{Table, number};
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Standardise, fit};
use sparsegp::likelihoods;
use sparsegp::linalg::Mat;
use sparsegp::metrics::classes::{ClassMetrics, ClassOptions};
use sparsegp::rng::{below, stream, uniform};
use sparsegp::train::TrainOptions;
use std::f64::consts::TAU;
use std::time::Instant;

const LOGISTIC: &str = "logistic-softmax(classes=3, integration=laplace)";
const KEPT: &str = "logistic-softmax(classes=3, integration=laplace, augmentation=mean-field)";
const WAYS: [(&str, &str, &str); 5] = [
    ("softmax", "softmax(classes=3)", "tsvgp"),
    ("robust-max", "robust-max(classes=3)", "tsvgp"),
    ("logistic-softmax", LOGISTIC, "tsvgp"),
    ("logistic-softmax, local variables", LOGISTIC, "cavi"),
    ("the same, λ kept", KEPT, "cavi"),
];

/// Inputs N×2 and classes.
fn clusters(variance: f64, rows: usize, name: &str) -> (Mat<f64>, Mat<f64>) {
    let mut rng = stream(0, &format!("{name}/{variance}"));
    let (mut x, mut y) = (Mat::zeros(rows, 2), Mat::zeros(rows, 1));
    for i in 0..rows {
        let class = below(&mut rng, 3) as f64;
        // Box & Muller 1958
        let radius = (-2.0 * variance * (1.0 - uniform(&mut rng)).ln()).sqrt();
        let turn = TAU * uniform(&mut rng);
        x[(i, 0)] = (TAU * class / 3.0).cos() + radius * turn.cos();
        x[(i, 1)] = (TAU * class / 3.0).sin() + radius * turn.sin();
        y[(i, 0)] = class;
    }
    (x, y)
}

/// Runs it.
pub fn run(arguments: &[String]) {
    let levels = number(arguments, "--levels", 7.0) as usize;
    let rows = number(arguments, "--rows", 500.0) as usize;
    let iterations = number(arguments, "--iterations", 30.0) as usize;
    let header = ["variance", "likelihood", "bound per row", "error", "NLL", "ECE", "seconds"];
    let mut table = Table::new(arguments, &header);
    for level in 0..levels {
        let variance = (level as f64 / (levels.max(2) - 1) as f64).max(0.01);
        let (x, y) = clusters(variance, rows, "training");
        let (new_x, new_y) = clusters(variance, 2000, "test");
        for (label, likelihood, method) in WAYS {
            let built = likelihoods::parse(likelihood).expect("a likelihood");
            let scaling = Standardise::all_that(&*built);
            let dataset = Dataset::from_arrays(x.clone(), y.clone(), scaling).expect("rows");
            let options = FitOptions {
                kernel: "rbf(ard=false)".into(),
                likelihood: Some(likelihood.into()),
                method: method.into(),
                inducing: Some(50),
                batches: None,
                train: TrainOptions { max_iterations: iterations, ..TrainOptions::default() },
                ..FitOptions::default()
            };
            let clock = Instant::now();
            let fitted = fit(&dataset, &options, &Cpu::default(), &mut ()).expect("a fit");
            let seconds = clock.elapsed().as_secs_f64();
            let p = fitted.predict_proba(new_x.as_ref()).expect("probabilities");
            let options = ClassOptions { bins: 10, auc: false };
            let mut scores = ClassMetrics::new(3, options).expect("three classes");
            scores.add(new_y.col_as_slice(0), p.as_ref(), None).expect("scores");
            let scores = scores.finish().expect("scores");
            table.row(&[
                format!("{variance:.2}"),
                label.into(),
                format!("{:.3}", fitted.objective().unwrap_or(f64::NAN) / rows as f64),
                format!("{:.3}", 1.0 - scores.accuracy),
                format!("{:.3}", scores.log_loss),
                format!("{:.3}", scores.ece),
                format!("{seconds:.1}"),
            ]);
        }
    }
}

//! Table 2: error on digits with images or patches as inducing points.

use super::table1::split;
use sparsegp::engine::Cpu;
use sparsegp::fit::{BatchOptions, Dataset, FitOptions, Standardise, fit};
use sparsegp::inducing::Selection;
use sparsegp::methods;
use sparsegp::train::Observer;
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{BLANK, Body, Data, Entry, Run, Table};
use sparsegp_bench::{class_scores, load_digits, processor_seconds};

/// Images.
pub const RBF: Entry = Entry {
    name: "inverse-free-table2-rbf",
    item: "Table 2, RBF",
    shows: "error on digits by images as inducing points",
    rule: "the three errors differ by less than two standard errors of an error of the test digits",
    body: Body::Program(|run| {
        let seconds = run.size([3.0, 20.0, 600.0, 10_800.0]);
        compare(run, "rbf(ard=false, lengthscales=5)", seconds, ["1.96", "1.95", "1.94"], equal)
    }),
    ..BOTH
};

/// Patches.
pub const CONVOLUTION: Entry = Entry {
    name: "inverse-free-table2-conv",
    item: "Table 2, convolution",
    shows: "error on digits by patches as inducing points",
    rule: "every error is below that of the same method with images in the paper's relation (at most \
               0.8 of 5 %, what images \
           reach on these digits)",
    body: Body::Program(|run| {
        let kernel = "convolutional(image=[28, 28, 1], patch=[5, 5], weighted=true)";
        let seconds = run.size([3.0, 40.0, 3600.0, 10_800.0]);
        compare(run, kernel, seconds, ["1.31", "1.53", "1.53"], better)
    }),
    ..BOTH
};

const BOTH: Entry = Entry {
    paper: "inverse-free",
    data: &[Data::Substitute { of: "MNIST (60 000 + 10 000)", by: "mnist-t10k" }],
    protocol: "9000 digits to learn from, 1000 to predict, softmax, M = 750 (100 below full scale) by \
               k-means; equal processor \
               time for each method, by whose end the learning rates have fallen",
    scaled: "a sixth of the digits; natural gradients for q by W and L",
    ..BLANK
};

/// A limit of the seconds that the processors spend on a fit.
struct Limit {
    start: f64,
    seconds: f64,
}

impl Limit {
    fn spent(&self) -> f64 {
        processor_seconds() - self.start
    }
}

impl Observer for Limit {
    fn interrupted(&self) -> bool {
        self.spent() >= self.seconds
    }

    fn time_used(&self) -> Option<f64> {
        Some((self.spent() / self.seconds).min(1.0))
    }
}

fn equal(run: &mut Run<'_>, errors: &[f64]) {
    let ours = errors.iter().map(|e| format!("{:.1} %", 100.0 * e)).collect::<Vec<_>>().join(", ");
    let (low, high) = errors.iter().fold((1.0_f64, 0.0_f64), |(l, h), e| (l.min(*e), h.max(*e)));
    let error = (high * (1.0 - high) / 1000.0).sqrt();
    run.holds("W, L, R", "1.96, 1.95, 1.94 %: equal", ours, high - low < 2.0 * error);
}

fn better(run: &mut Run<'_>, errors: &[f64]) {
    let ours = errors.iter().map(|e| format!("{:.1} %", 100.0 * e)).collect::<Vec<_>>().join(", ");
    let most = errors.iter().copied().fold(0.0, f64::max);
    run.holds("W, L, R", "1.31, 1.53, 1.53 %: better than images", ours, most < 0.8 * 0.05);
}

fn compare(
    run: &mut Run<'_>,
    kernel: &str,
    seconds: f64,
    printed: [&str; 3],
    judge: fn(&mut Run<'_>, &[f64]),
) -> Drawn {
    run.smaller("`mnist-t10k` for MNIST");
    run.smaller(format!("{seconds} processor seconds for each method"));
    let points = run.sized("inducing points", [10, 100, 300, 750]);
    let (training, test) = split(&load_digits(), 1000, run.seed())?;
    let scaling = Standardise { inputs: false, targets: false, robust: false, constants: true };
    let dataset = Dataset::from_loaded(training, scaling)?;
    let mut table = Table::new("", &["method", "error, %", "NLPD", "steps", "epochs", "paper, %"]);
    let mut errors = Vec::new();
    for ((method, name), printed) in
        [("svgp", "W"), ("lsvgp", "L"), ("rsvgp", "R")].into_iter().zip(printed)
    {
        let mut batches = BatchOptions::of(methods::find(method)?.method);
        // an image has 576 patches: small batches
        if kernel.starts_with("convolutional") {
            batches.size = batches.size.min(200);
        }
        batches.training.epochs = Some(100_000);
        let size = batches.size;
        let options = FitOptions {
            kernel: kernel.into(),
            likelihood: Some("softmax(classes=10)".into()),
            method: method.into(),
            inducing: Some(points),
            selection: Selection::KMeans,
            pilot: 0,
            seed: run.seed(),
            batches: Some(batches),
            ..FitOptions::default()
        };
        let mut limit = Limit { start: processor_seconds(), seconds };
        let fitted = fit(&dataset, &options, &Cpu::default(), &mut limit)?;
        let p = fitted.predict_proba(test.x.as_ref())?;
        let (wrong, log) = class_scores(&p, &test.y);
        let steps = fitted.report.as_ref().map_or(0, |r| r.iterations);
        let epochs = steps as f64 / dataset.source.rows().div_ceil(size) as f64;
        table.row(vec![
            name.into(),
            format!("{:.1}", 100.0 * wrong),
            format!("{log:.3}"),
            steps.to_string(),
            format!("{epochs:.1}"),
            printed.into(),
        ]);
        errors.push(wrong);
    }
    run.table(table);
    judge(run, &errors);
    Ok(())
}

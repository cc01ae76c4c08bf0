//! Figure 7: error and NLL of digits by time.

use crate::thesis::curves::{Point, cells, panels, point, sooner};
use sparsegp::fit::{BatchOptions, Dataset, FitOptions, Standardise};
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{BLANK, Body, Data, Entry, Run, Table};
use sparsegp_bench::split_digits;

/// The experiment.
pub const ENTRY: Entry = Entry {
    name: "classes-figure7",
    paper: "classes",
    item: "Figure 7",
    shows: "error and NLL by time of logistic-softmax by local variables and of its rivals",
    data: &[Data::Substitute { of: "MNIST, Fashion, CovType and others", by: "mnist-t10k" }],
    protocol: "8000 digits to learn from, 2000 to predict; M = 100, minibatches of 200, lengthscale \
               from 5; whole trainings of \
               1, 2, 4, … epochs",
    scaled: "EP is not run there: as built here it takes all rows at once, without minibatches; one \
             table for seven",
    rule: "logistic-softmax (`svi`) comes within 0.02 of the last NLL of robust-max in a tenth of its time",
    body: Body::Program(run),
    ..BLANK
};

const WAYS: [(&str, &str, &str); 4] = [
    ("logistic-softmax, local variables", "logistic-softmax(classes=10)", "svi"),
    ("logistic-softmax", "logistic-softmax(classes=10)", "svgp"),
    ("softmax", "softmax(classes=10)", "svgp"),
    ("robust-max", "robust-max(classes=10)", "svgp"),
];

fn run(run: &mut Run<'_>) -> Drawn {
    run.smaller("`mnist-t10k` for MNIST and six other tables");
    let rows = run.size([300, 8000, 8000, 8000]);
    let budgets: &[usize] = match run.size([0, 1, 2, 2]) {
        0 => &[1],
        1 => &[1, 2, 4],
        _ => &[1, 2, 4, 8, 16, 32],
    };
    let inducing = run.size([10, 100, 100, 100]);
    let (training, test) = split_digits(rows, 2000)?;
    let scaling = Standardise { inputs: false, targets: false, robust: false, constants: true };
    let dataset = Dataset::from_loaded(training, scaling)?;
    let mut table = Table::new("", &["likelihood", "epochs", "seconds", "error", "NLL"]);
    let mut curves = Vec::new();
    for (name, likelihood, method) in WAYS {
        let mut curve = Vec::new();
        for epochs in budgets {
            let mut batches = BatchOptions { size: 200, ..BatchOptions::default() };
            batches.training.epochs = Some(*epochs);
            let options = FitOptions {
                kernel: "rbf(ard=false, lengthscales=5)".into(),
                likelihood: Some(likelihood.into()),
                method: method.into(),
                inducing: Some(inducing),
                pilot: 0,
                seed: run.seed(),
                batches: Some(batches),
                ..FitOptions::default()
            };
            let found = point(&dataset, &test, &options)?;
            let own = [name.to_owned(), epochs.to_string()];
            table.row([&own[..], &cells(&found)].concat());
            curve.push(found);
        }
        curves.push(curve);
    }
    run.table(table);
    judge(run, &curves);
    run.figure("", 2, &panels("", &WAYS.map(|way| way.0), &curves))
}

/// Judges the time to the last NLL of robust-max.
fn judge(run: &mut Run<'_>, curves: &[Vec<Point>]) {
    let (ours, holds) = sooner(&curves[0], &curves[3], |p| p.nll, 0.02, 0.1);
    run.holds("time to the NLL of robust-max", "ten times as fast", ours, holds);
}

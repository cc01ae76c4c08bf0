//! Figure 6: NLL and time by the number of inducing points, with shared or own hyperparameters.

use crate::thesis::curves::{Point, cells, point};
use sparsegp::fit::{BatchOptions, Dataset, FitOptions, Standardise};
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{Axis, BLANK, Body, Data, Entry, Kind, Panel, Run, Series, Table};
use sparsegp_bench::split_digits;

/// The experiment.
pub const ENTRY: Entry = Entry {
    name: "classes-figure6",
    paper: "classes",
    item: "Figure 6",
    shows: "NLL and time by the number of inducing points, with shared or own hyperparameters, on Shuttle",
    data: &[Data::Substitute { of: "Shuttle", by: "mnist-t10k" }],
    protocol: "8000 digits to learn from, 2000 to predict; logistic-softmax by its local variables (`svi`), minibatches of 200, \
               lengthscale from 5; one kernel for all classes, or one for each",
    scaled: "another table, of ten classes",
    rule: "the NLL falls and the time grows from the fewest points to the most; own hyperparameters lower the NLL of the most \
           points by less than 0.02, and take longer for all numbers of points together",
    body: Body::Program(run),
    ..BLANK
};

const KERNEL: &str = "rbf(ard=false, lengthscales=5)";

fn run(run: &mut Run<'_>) -> Drawn {
    run.smaller("`mnist-t10k` for Shuttle");
    let points: &[usize] = run.size([
        &[4, 8],
        &[5, 20, 100],
        &[5, 20, 50, 100, 200, 400],
        &[5, 20, 50, 100, 200, 400],
    ]);
    let epochs = run.sized("epochs", [1, 4, 20, 200]);
    let rows = run.size([300, 4000, 8000, 8000]);
    let (training, test) = split_digits(rows, 2000)?;
    let scaling = Standardise { inputs: false, targets: false, robust: false, constants: true };
    let dataset = Dataset::from_loaded(training, scaling)?;
    let names = ["shared", "own"];
    let mut table = Table::new("", &["hyperparameters", "M", "seconds", "error", "NLL"]);
    let mut found: [Vec<Point>; 2] = Default::default();
    for (which, found) in found.iter_mut().enumerate() {
        for m in points {
            let mut batches = BatchOptions { size: 200, ..BatchOptions::default() };
            batches.training.epochs = Some(epochs);
            let options = FitOptions {
                kernel: if which == 0 { KERNEL.into() } else { [KERNEL; 10].join("; ") },
                likelihood: Some("logistic-softmax(classes=10)".into()),
                method: "svi".into(),
                inducing: Some(*m),
                pilot: 0,
                seed: run.seed(),
                batches: Some(batches),
                ..FitOptions::default()
            };
            let own = point(&dataset, &test, &options)?;
            table.row([&[names[which].to_owned(), m.to_string()][..], &cells(&own)].concat());
            found.push(own);
        }
    }
    run.table(table);
    judge(run, &found);
    let panel = |label: &str, of: fn(&Point) -> f64| {
        let line =
            |own: &Vec<Point>| points.iter().map(|m| *m as f64).zip(own.iter().map(of)).collect();
        let series =
            (0..2).map(|which| Series::new(names[which], Kind::Line, which, line(&found[which])));
        Panel {
            title: label.into(),
            x: Axis::new("inducing points").log(),
            y: Axis::new(label),
            series: series.collect(),
        }
    };
    run.figure("", 2, &[panel("NLL", |p| p.nll), panel("seconds", |p| p.seconds)])
}

fn judge(run: &mut Run<'_>, found: &[Vec<Point>; 2]) {
    let last = found[0].len() - 1;
    let [shared, own] = found;
    let ours = format!(
        "{:.3} to {:.3}, {:.1} to {:.1} s",
        shared[0].nll, shared[last].nll, shared[0].seconds, shared[last].seconds
    );
    let holds = shared[last].nll < shared[0].nll && shared[last].seconds > shared[0].seconds;
    run.holds("more points", "a lower NLL, a longer time", ours, holds);
    let gain = shared[last].nll - own[last].nll;
    run.holds(
        "own hyperparameters",
        "no significant improvement",
        format!("by {gain:.3}"),
        gain < 0.02,
    );
    let [a, b] = [shared, own].map(|all| all.iter().map(|p| p.seconds).sum::<f64>());
    run.holds("time", "own ones cost more", format!("{b:.1} and {a:.1} s"), b > a);
}

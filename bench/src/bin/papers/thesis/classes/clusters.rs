//! Figures 3 and 4: how well probabilities of classes are calibrated on overlapping clusters.

use crate::thesis::ep::Heaviside;
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Standardise, fit};
use sparsegp::kernels::{Inputs, parse};
use sparsegp::likelihoods;
use sparsegp::linalg::Mat;
use sparsegp::metrics::classes::{ClassMetrics, ClassOptions};
use sparsegp::rng::{below, stream, uniform};
use sparsegp::train::TrainOptions;
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{Axis, BLANK, Body, Data, Entry, Kind, Panel, Run, Series, Table};
use std::f64::consts::TAU;

/// Figure 3.
pub const CONFIDENCE: Entry = Entry {
    name: "classes-figure3",
    item: "Figure 3",
    shows: "confidence histograms and reliability of four likelihoods",
    rule: "at the variance 0.6 the published logistic-softmax has the smallest ECE, robust-max the largest",
    body: Body::Program(confidence),
    ..BOTH
};

/// Figure 4.
pub const LEVELS: Entry = Entry {
    name: "classes-figure4",
    item: "Figure 4",
    shows: "error, NLL and ECE by the variance of the clusters",
    rule: "in the mean over the levels: errors of all likelihoods within 0.02; the NLL of \
               logistic-softmax is not above that of \
           robust-max; its ECE, as published, is not above those of softmax and of robust-max",
    body: Body::Program(levels),
    ..BOTH
};

const BOTH: Entry = Entry {
    paper: "classes",
    data: &[Data::Simulated(
        "three normal clusters about the corners of a triangle, 500 rows, 2000 to predict",
    )],
    protocol: "M = 50, all rows at once, hyperparameters trained; logistic-softmax by its local \
               variables as published (λ kept) \
               and with λ integrated out; Heaviside by EP with Gaussian noise of variance 1 on every \
               latent variable",
    scaled: "EP has no inducing points, and a site of every difference of two classes, which couples \
             them",
    ..BLANK
};

const LOGISTIC: &str = "logistic-softmax(classes=3, integration=laplace)";
const KEPT: &str = "logistic-softmax(classes=3, integration=laplace, augmentation=mean-field)";
/// Not a method of the library.
const EP: &str = "ep";
const WAYS: [(&str, &str, &str); 5] = [
    ("logistic-softmax as published", KEPT, "cavi"),
    ("logistic-softmax, λ integrated", LOGISTIC, "cavi"),
    ("softmax", "softmax(classes=3)", "tsvgp"),
    ("robust-max", "robust-max(classes=3)", "tsvgp"),
    // the likelihood only says how data are scaled
    ("Heaviside by EP", "softmax(classes=3)", EP),
];

/// Returns inputs and classes.
fn clusters(variance: f64, rows: usize, name: &str, seed: u64) -> (Mat<f64>, Mat<f64>) {
    let mut rng = stream(seed, &format!("{name}/{variance}"));
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

/// Probabilities of the test rows, and their classes, by a way.
fn predicted(
    run: &Run<'_>,
    variance: f64,
    (likelihood, method): (&str, &str),
) -> sparsegp::Result<(Mat<f64>, Mat<f64>)> {
    let rows = run.size([60, 500, 500, 500]);
    let iterations = run.size([3, 30, 100, 100]);
    let (x, y) = clusters(variance, rows, "training", run.seed());
    let (new_x, new_y) = clusters(variance, 2000, "test", run.seed());
    let scaling = Standardise::all_that(&*likelihoods::parse(likelihood)?);
    let dataset = Dataset::from_arrays(x.clone(), y.clone(), scaling)?;
    if method == EP {
        let (mut x, mut new_x) = (x, new_x);
        dataset.scaler.scale_x(x.as_mut())?;
        dataset.scaler.scale_x(new_x.as_mut())?;
        let kernel = parse("rbf(ard=false)", Inputs::unnamed(2))?;
        let fitted = Heaviside::train(kernel, x, y.col_as_slice(0), iterations)?;
        return Ok((fitted.predict_proba(new_x.as_ref()), new_y));
    }
    let options = FitOptions {
        kernel: "rbf(ard=false)".into(),
        likelihood: Some(likelihood.into()),
        method: method.into(),
        inducing: Some(50),
        pilot: 0,
        batches: None,
        train: TrainOptions { max_iterations: iterations, ..TrainOptions::default() },
        ..FitOptions::default()
    };
    let fitted = fit(&dataset, &options, &Cpu::default(), &mut ())?;
    Ok((fitted.predict_proba(new_x.as_ref())?, new_y))
}

/// Error, NLL and ECE.
fn scores(p: &Mat<f64>, y: &Mat<f64>) -> sparsegp::Result<[f64; 3]> {
    let mut scores = ClassMetrics::new(3, ClassOptions { bins: 10, auc: false })?;
    scores.add(y.col_as_slice(0), p.as_ref(), None)?;
    let found = scores.finish()?;
    Ok([1.0 - found.accuracy, found.log_loss, found.ece])
}

/// Shares of rows, and of right answers, by tenths of the probability of the most probable class.
fn reliability(p: &Mat<f64>, y: &Mat<f64>) -> [Vec<(f64, f64)>; 2] {
    let (mut counts, mut right) = ([0.0; 10], [0.0; 10]);
    for i in 0..y.nrows() {
        let best = (0..3).max_by(|a, b| p[(i, *a)].total_cmp(&p[(i, *b)])).unwrap_or(0);
        let bin = ((10.0 * p[(i, best)]) as usize).min(9);
        counts[bin] += 1.0;
        right[bin] += f64::from(u8::from(best == y[(i, 0)] as usize));
    }
    let at = |k: usize| 0.1 * k as f64;
    let shares = (0..10).map(|k| (at(k), counts[k] / y.nrows() as f64)).collect();
    let seen = (0..10).map(|k| (at(k), if counts[k] > 0.0 { right[k] / counts[k] } else { 0.0 }));
    [shares, seen.collect()]
}

fn confidence(run: &mut Run<'_>) -> Drawn {
    let (mut top, mut bottom, mut eces) = (Vec::new(), Vec::new(), Vec::new());
    let mut table = Table::new("Variance 0.6", &["likelihood", "error", "NLL", "ECE"]);
    for (name, likelihood, method) in WAYS {
        let (p, y) = predicted(run, 0.6, (likelihood, method))?;
        let found = scores(&p, &y)?;
        let cells = found.map(|v| format!("{v:.3}"));
        table.row([&[name.to_owned()][..], &cells].concat());
        eces.push(found[2]);
        let [shares, right] = reliability(&p, &y);
        let axes = |label: &str| {
            (Axis::new("confidence").from_to(0.0, 1.0), Axis::new(label).from_to(0.0, 1.0))
        };
        let (x, y) = axes("share of rows");
        let series = vec![Series::new("", Kind::Bars, 0, shares)];
        top.push(Panel { title: name.into(), x, y, series });
        let (x, y) = axes("accuracy");
        let series = vec![
            Series::new("", Kind::Bars, 1, right),
            Series::new("", Kind::Thin, 7, vec![(0.0, 0.0), (1.0, 1.0)]),
        ];
        bottom.push(Panel { title: format!("ECE {:.3}", found[2]), x, y, series });
    }
    run.table(table);
    let ours =
        format!("as published {:.3}, softmax {:.3}, robust-max {:.3}", eces[0], eces[2], eces[3]);
    let best = eces[0] <= eces[2].min(eces[3]);
    run.holds("ECE of logistic-softmax", "the best calibrated", ours.clone(), best);
    run.holds("ECE of robust-max", "the worst calibrated", ours, eces[3] >= eces[0].max(eces[2]));
    top.extend(bottom);
    run.figure("", WAYS.len(), &top)
}

fn levels(run: &mut Run<'_>) -> Drawn {
    let count = run.size([2, 5, 11, 11]);
    let mut table = Table::new("", &["variance", "likelihood", "error", "NLL", "ECE"]);
    let mut lines: Vec<[Vec<(f64, f64)>; 3]> = vec![Default::default(); WAYS.len()];
    for level in 0..count {
        let variance = (level as f64 / (count - 1) as f64).max(0.01);
        for ((name, likelihood, method), lines) in WAYS.into_iter().zip(&mut lines) {
            let (p, y) = predicted(run, variance, (likelihood, method))?;
            let found = scores(&p, &y)?;
            lines.iter_mut().zip(found).for_each(|(line, v)| line.push((variance, v)));
            let cells = found.map(|v| format!("{v:.3}"));
            table.row([&[format!("{variance:.2}"), name.to_owned()][..], &cells].concat());
        }
    }
    run.table(table);
    let mean = |way: usize, what: usize| {
        let line = &lines[way][what];
        line.iter().map(|p| p.1).sum::<f64>() / line.len() as f64
    };
    let all = |what: usize| (0..WAYS.len()).map(|way| mean(way, what)).collect::<Vec<_>>();
    let text = |values: &[f64]| {
        let each = WAYS.iter().zip(values).map(|((name, ..), v)| format!("{name} {v:.3}"));
        each.collect::<Vec<_>>().join(", ")
    };
    let errors = all(0);
    let spread = errors.iter().copied().fold(0.0, f64::max)
        - errors.iter().copied().fold(f64::INFINITY, f64::min);
    run.holds("error", "about equal", text(&errors), spread < 0.02);
    let losses = all(1);
    run.holds(
        "NLL",
        "logistic-softmax not above robust-max",
        text(&losses),
        losses[0] <= losses[3],
    );
    let eces = all(2);
    let best = eces[0] <= eces[2].min(eces[3]);
    run.holds("ECE", "logistic-softmax is the best calibrated", text(&eces), best);
    let panels = ["error", "NLL", "ECE"].into_iter().enumerate().map(|(what, title)| Panel {
        title: title.into(),
        x: Axis::new("variance of the clusters"),
        y: Axis::new(title),
        series: WAYS
            .iter()
            .zip(&lines)
            .enumerate()
            .map(|(k, ((name, ..), line))| Series::new(*name, Kind::Line, k, line[what].clone()))
            .collect(),
    });
    run.figure("", 3, &panels.collect::<Vec<_>>())
}

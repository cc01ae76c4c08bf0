//! Figures 2.1 and 2.2: what Gaussian processes say before and after rows are seen.

use sparsegp::data::InMemory;
use sparsegp::engine::Cpu;
use sparsegp::kernels::{Inputs, parse};
use sparsegp::likelihoods;
use sparsegp::linalg::Mat;
use sparsegp::methods::find;
use sparsegp::model::{Model, Posterior};
use sparsegp::rng::{stream, uniform};
use sparsegp::train::{TrainOptions, train};
use sparsegp::variational::{Tying, Variational};
use sparsegp_bench::page::{Drawn, normal};
use sparsegp_bench::papers::{Axis, BLANK, Body, Data, Entry, Kind, Panel, Run, Series};

/// Regression.
pub const REGRESSION: Entry = Entry {
    name: "basics-figure2.1",
    paper: "basics",
    item: "Figure 2.1",
    shows: "prediction on a grid given no observations, and given some",
    data: &[Data::Simulated("a draw of the process, seen at ten places with noise")],
    protocol: "squared exponential, ℓ = 1, variance 1, noise 0.1, as drawn",
    rule: "observations narrow the band everywhere, and it holds at least nine tenths of the true function",
    body: Body::Program(regression),
    ..BLANK
};

/// Classes.
pub const CLASSES: Entry = Entry {
    name: "basics-figure2.2",
    paper: "basics",
    item: "Figure 2.2",
    shows: "a latent process and the probability of a class",
    data: &[Data::Simulated("60 classes by the logistic image of a draw of the process")],
    protocol: "squared exponential, ℓ = 1, variance 4, as drawn; the optimal q by `tvgp`",
    rule: "the band of two deviations holds at least nine tenths of the true function, and the mean \
               absolute error of the \
           probability is below 0.15",
    body: Body::Program(classes),
    ..BLANK
};

const GRID: usize = 121;

fn grid() -> Mat<f64> {
    Mat::from_fn(GRID, 1, |i, _| -5.0 + 10.0 * i as f64 / (GRID - 1) as f64)
}

fn model(kernel: &str, likelihood: &str, method: &str) -> sparsegp::Result<Model> {
    let mut model = Model::builder(parse(kernel, Inputs::unnamed(1))?, find(method)?.method)
        .likelihood(likelihoods::parse(likelihood)?);
    if method == "tvgp" {
        model = model.q(Variational::sites(60, 1, Tying::Untied));
    }
    model.build(1, 1)
}

/// A draw of the process at the grid and at other inputs, by its prior.
fn drawn(kernel: &str, x: &Mat<f64>, seed: u64) -> sparsegp::Result<Vec<f64>> {
    // the posterior after one row with no weight to speak of
    let mut model = model(kernel, "gaussian(variance=1e8)", "exact")?;
    model.freeze("likelihood", true)?;
    let none = InMemory::new(Mat::zeros(1, 1), Mat::zeros(1, 1))?;
    let prior = model.posterior(&Cpu::default(), &none)?;
    let draw = prior.sample_f(x.as_ref(), 1, &mut stream(seed, "process"))?;
    Ok(draw[0].col_as_slice(0).to_vec())
}

fn edges(x: &Mat<f64>, mean: &Mat<f64>, variance: &Mat<f64>) -> [Vec<(f64, f64)>; 2] {
    let edge = |k: f64| -> Vec<(f64, f64)> {
        (0..GRID).map(|i| (x[(i, 0)], mean[(i, 0)] + k * variance[(i, 0)].sqrt())).collect()
    };
    [edge(0.0), [edge(2.0), edge(-2.0)].concat()]
}

fn inside(truth: &[f64], mean: &Mat<f64>, variance: &Mat<f64>) -> f64 {
    let within = |i: &usize| (truth[*i] - mean[(*i, 0)]).abs() <= 2.0 * variance[(*i, 0)].sqrt();
    (0..GRID).filter(within).count() as f64 / GRID as f64
}

fn seen(x: &Mat<f64>, count: usize, seed: u64) -> Mat<f64> {
    let mut rng = stream(seed, "places");
    let at: Vec<f64> = (0..count).map(|_| -5.0 + 10.0 * uniform(&mut rng)).collect();
    Mat::from_fn(GRID + count, 1, |i, _| if i < GRID { x[(i, 0)] } else { at[i - GRID] })
}

fn regression(run: &mut Run<'_>) -> Drawn {
    const KERNEL: &str = "rbf(variance=1.0, lengthscales=1.0)";
    let (x, count) = (grid(), 10);
    let all = seen(&x, count, run.seed());
    let truth = drawn(KERNEL, &all, run.seed())?;
    let mut rng = stream(run.seed(), "noise");
    let rows = InMemory::new(
        Mat::from_fn(count, 1, |i, _| all[(GRID + i, 0)]),
        Mat::from_fn(count, 1, |i, _| truth[GRID + i] + 0.1 * normal(&mut rng)),
    )?;
    let model = model(KERNEL, "gaussian(variance=0.01)", "exact")?;
    let posterior = model.posterior(&Cpu::default(), &rows)?;
    let (mean, variance) = posterior.predict_f(x.as_ref())?;
    let widest = (0..GRID).map(|i| variance[(i, 0)]).fold(0.0, f64::max);
    let share = inside(&truth, &mean, &variance);
    let ours = format!("variance at most {widest:.3}, of the prior 1");
    run.holds("band", "narrower with observations", ours, widest < 1.0);
    run.holds("coverage", "two deviations", format!("{share:.2} of the function"), share >= 0.9);
    let curve = || (0..GRID).map(|i| (x[(i, 0)], truth[i])).collect::<Vec<_>>();
    let flat = (Mat::zeros(GRID, 1), Mat::from_fn(GRID, 1, |_, _| 1.0));
    let points = (0..count).map(|i| (rows.x[(i, 0)], rows.y[(i, 0)])).collect();
    let panel = |title: &str, [line, band]: [Vec<(f64, f64)>; 2], dots| Panel {
        title: title.into(),
        x: Axis::new("x"),
        y: Axis::new("f").from_to(-3.0, 3.0),
        series: vec![
            Series::new("", Kind::Band, 0, band),
            Series::new("mean", Kind::Line, 0, line),
            Series::new("f", Kind::Line, 7, curve()),
            Series::new("", Kind::Dots, 1, dots),
        ],
    };
    let before = panel("no observations", edges(&x, &flat.0, &flat.1), Vec::new());
    let after = panel("ten observations", edges(&x, &mean, &variance), points);
    run.figure("", 2, &[before, after])
}

fn logistic(f: f64) -> f64 {
    1.0 / (1.0 + (-f).exp())
}

fn classes(run: &mut Run<'_>) -> Drawn {
    const KERNEL: &str = "rbf(variance=4.0, lengthscales=1.0)";
    let (x, count) = (grid(), 60);
    let all = seen(&x, count, run.seed());
    let truth = drawn(KERNEL, &all, run.seed())?;
    let mut rng = stream(run.seed(), "classes");
    let rows = InMemory::new(
        Mat::from_fn(count, 1, |i, _| all[(GRID + i, 0)]),
        Mat::from_fn(count, 1, |i, _| {
            f64::from(u8::from(uniform(&mut rng) < logistic(truth[GRID + i])))
        }),
    )?;
    let mut model = model(KERNEL, "bernoulli(link=logit)", "tvgp")?;
    model.freeze("kernel", true)?;
    let engine = Cpu::default();
    train(&mut model, &engine, &rows, &TrainOptions::default(), &mut ())?;
    let posterior: Posterior = model.posterior(&engine, &rows)?;
    let (mean, variance) = posterior.predict_f(x.as_ref())?;
    let p = posterior.predict_proba(x.as_ref())?;
    let share = inside(&truth, &mean, &variance);
    run.holds("coverage", "two deviations", format!("{share:.2} of the function"), share >= 0.9);
    let off = (0..GRID).map(|i| (p[(i, 1)] - logistic(truth[i])).abs()).sum::<f64>() / GRID as f64;
    run.holds("probability", "near the true one", format!("off by {off:.3}"), off < 0.15);
    let curve = |of: &dyn Fn(usize) -> f64| (0..GRID).map(|i| (x[(i, 0)], of(i))).collect();
    let [line, band] = edges(&x, &mean, &variance);
    let left = Panel {
        title: "latent function".into(),
        x: Axis::new("x"),
        y: Axis::new("f"),
        series: vec![
            Series::new("", Kind::Band, 0, band),
            Series::new("q(f)", Kind::Line, 0, line),
            Series::new("f", Kind::Line, 2, curve(&|i| truth[i])),
        ],
    };
    let dots = (0..count).map(|i| (rows.x[(i, 0)], rows.y[(i, 0)])).collect();
    let right = Panel {
        title: "probability of class 1".into(),
        x: Axis::new("x"),
        y: Axis::new("p").from_to(-0.05, 1.05),
        series: vec![
            Series::new("predicted", Kind::Line, 0, curve(&|i| p[(i, 1)])),
            Series::new("true", Kind::Line, 2, curve(&|i| logistic(truth[i]))),
            Series::new("", Kind::Dots, 1, dots),
        ],
    };
    run.figure("", 2, &[left, right])
}

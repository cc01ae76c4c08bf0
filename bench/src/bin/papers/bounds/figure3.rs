//! Figure 3, left and middle: simulated counts.

use super::counts::METHODS;
use crate::common::average;
use rand_distr::{Distribution, Poisson};
use sparsegp::data::InMemory;
use sparsegp::engine::Cpu;
use sparsegp::kernels::{Inputs, parse};
use sparsegp::linalg::Mat;
use sparsegp::model::Model;
use sparsegp::rng;
use sparsegp::train::{TrainOptions, train};
use sparsegp::{likelihoods, methods};
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{Axis, BLANK, Body, Data, Entry, Kind, Panel, Run, Series, Table};

/// The experiment.
pub const ENTRY: Entry = Entry {
    name: "bounds-figure3",
    paper: "bounds",
    item: "Figure 3, left and middle",
    panels: 2,
    shows: "50 simulated counts by two bounds with six points and by the full Gaussian process",
    data: &[Data::Simulated("50 counts on [−10, 10] with the mean 3.5 + 3 sin x")],
    protocol: "squared exponential from σ_f = 0.69, ℓ = 1; M = 6 at even distances to begin with; all rows at once by \
               L-BFGS to its end; several draws of the counts, the first is drawn",
    scaled: "L-BFGS for the steps of Adam, so that the axis of the middle panel is shorter",
    rule: "in the mean over the draws the new bound is above the old one and below that of the full process, and its \
           predictions are nearer to the full process; v < 1 in the mean",
    body: Body::Program(run),
    ..BLANK
};

/// A trained method: its bound, v, intensities on the grid with their deviations, and the bound by iteration.
struct Fit {
    bound: f64,
    v: f64,
    mean: Vec<f64>,
    deviation: Vec<f64>,
    curve: Vec<(f64, f64)>,
}

const GRID: usize = 161;

fn across(i: usize) -> f64 {
    -10.0 + 20.0 * i as f64 / (GRID - 1) as f64
}

fn counts(seed: u64) -> sparsegp::Result<InMemory> {
    let mut rng = rng::stream(seed, "counts");
    let x = Mat::from_fn(50, 1, |i, _| -10.0 + 20.0 * i as f64 / 49.0);
    let y = Mat::from_fn(50, 1, |i, _| {
        let rate = 3.5 + 3.0 * x[(i, 0)].sin();
        Poisson::new(rate).expect("a positive rate").sample(&mut rng)
    });
    InMemory::new(x, y)
}

fn fitted(method: &str, data: &InMemory, iterations: usize) -> sparsegp::Result<Fit> {
    let entry = methods::find(method)?;
    let kernel = parse("rbf(variance=0.4761, lengthscales=1.0)", Inputs::unnamed(1))?;
    let mut model = Model::builder(kernel, entry.method).likelihood(likelihoods::parse("poisson")?);
    if entry.method.is_sparse() {
        model = model.inducing(Mat::from_fn(6, 1, |j, _| -9.0 + 18.0 * j as f64 / 5.0).as_ref());
    } else {
        let tying = sparsegp::variational::Tying::Untied;
        model = model.q(sparsegp::variational::Variational::sites(50, 1, tying));
    }
    let mut model = model.build(1, 1)?;
    let options = TrainOptions { max_iterations: iterations, ..TrainOptions::default() };
    let engine = Cpu::default();
    let report = train(&mut model, &engine, data, &options, &mut ())?;
    let posterior = model.posterior(&engine, data)?;
    let grid = Mat::from_fn(GRID, 1, |i, _| across(i));
    let (mean, variance) = posterior.predict_y(grid.as_ref(), &[])?;
    Ok(Fit {
        bound: report.objective,
        v: model.q.as_ref().map_or(1.0, |q| q.factor_of(0)),
        mean: mean.col_as_slice(0).to_vec(),
        deviation: variance.col_as_slice(0).iter().map(|v| v.sqrt()).collect(),
        curve: report.trace.iter().map(|p| (p.iteration as f64, p.objective)).collect(),
    })
}

fn away(fit: &Fit, full: &Fit) -> f64 {
    let part =
        |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum() };
    let sum = part(&fit.mean, &full.mean) + part(&fit.deviation, &full.deviation);
    (sum / (2 * GRID) as f64).sqrt()
}

fn run(run: &mut Run<'_>) -> Drawn {
    let draws = run.size([1, 10, 50, 50]);
    let iterations = run.size([5, 1000, 1000, 1000]);
    let mut all = Vec::new();
    for seed in (0..draws).map(|k| run.seed() + k) {
        let data = counts(seed)?;
        let fits: sparsegp::Result<Vec<Fit>> =
            METHODS.iter().map(|(method, _)| fitted(method, &data, iterations)).collect();
        all.push((data, fits?));
    }
    let of =
        |f: &dyn Fn(&[Fit]) -> f64| -> Vec<f64> { all.iter().map(|(_, fits)| f(fits)).collect() };
    let mut table = Table::new(
        "",
        &["draw", "SVGP", "SVGP-new", "Full GP", "v", "off the full GP: SVGP", "SVGP-new"],
    );
    for (k, (_, fits)) in all.iter().enumerate().take(10) {
        let mut cells = vec![k.to_string()];
        cells.extend(fits.iter().map(|fit| format!("{:.2}", fit.bound)));
        cells.push(format!("{:.3}", fits[1].v));
        cells.extend([0, 1].map(|i| format!("{:.3}", away(&fits[i], &fits[2]))));
        table.row(cells);
    }
    run.table(table);
    let (gain, error) = average(&of(&|fits| fits[1].bound - fits[0].bound));
    let (rest, _) = average(&of(&|fits| fits[2].bound - fits[1].bound));
    let ours = format!("new − old {gain:.3} ± {error:.3}, full − new {rest:.2}");
    run.holds("bound (middle)", "SVGP < SVGP-new < Full GP", ours, gain > 0.0 && rest > 0.0);
    let (nearer, error) = average(&of(&|fits| away(&fits[0], &fits[2]) - away(&fits[1], &fits[2])));
    let ours = format!("nearer by {nearer:.4} ± {error:.4} (root mean square)");
    run.holds(
        "predictions (left)",
        "those of SVGP-new are nearer to the full GP",
        ours,
        nearer > 0.0,
    );
    let v = of(&|fits| fits[1].v);
    let (least, most) = v.iter().fold((1.0_f64, 0.0_f64), |(l, m), v| (l.min(*v), m.max(*v)));
    let (mean, error) = average(&v);
    let ours = format!("{mean:.3} ± {error:.3}, from {least:.3} to {most:.3}");
    run.holds("v", "0.675 in one draw", ours, mean < 1.0 && least <= 0.675 && most >= 0.675);
    let (data, fits) = &all[0];
    run.figure("", 2, &panels(data, fits))
}

fn panels(data: &InMemory, fits: &[Fit]) -> Vec<Panel> {
    let points = (0..50).map(|i| (data.x[(i, 0)], data.y[(i, 0)])).collect();
    let (mut left, mut middle) = (vec![Series::new("", Kind::Dots, 7, points)], Vec::new());
    for (((_, name), fit), colour) in METHODS.iter().zip(fits).zip([0, 1, 7]) {
        let edge = |k: f64| {
            (0..GRID).map(|i| (across(i), fit.mean[i] + k * fit.deviation[i])).collect::<Vec<_>>()
        };
        left.push(Series::new(*name, Kind::Line, colour, edge(0.0)));
        left.push(Series::new("", Kind::Thin, colour, edge(2.0)));
        left.push(Series::new("", Kind::Thin, colour, edge(-2.0)));
        middle.push(Series::new(*name, Kind::Line, colour, fit.curve.clone()));
    }
    let y = Axis::new("count").from_to(-2.0, 14.0);
    let left = Panel { title: "predictions".into(), x: Axis::new("x"), y, series: left };
    let top = fits.iter().map(|fit| fit.bound).fold(f64::NEG_INFINITY, f64::max);
    let y = Axis::new("ELBO").from_to(top - 40.0, top + 2.0);
    let x = Axis::new("iteration").from_to(0.0, 60.0);
    let middle = Panel { title: "bound".into(), x, y, series: middle };
    vec![left, middle]
}

//! The picture of Titsias (2025), Figure 1, from our own fits: `cargo run --release -p
//! sparsegp-bench --bin snelson` writes `docs/snelson.svg` and prints the optima.
//!
//! 40 of Snelson's points (every fifth), squared exponential, seven inducing points that start at a
//! random subset of the inputs, nothing standardised. One panel per method: data, mean with two
//! standard deviations of an observation, inducing inputs at the start (top) and at the end (bottom).

use plotters::prelude::*;
use sparsegp::data::{InMemory, Selection, Table};
use sparsegp::engine::Cpu;
use sparsegp::kernels::{Inputs, parse};
use sparsegp::likelihoods::Gaussian;
use sparsegp::linalg::{Jitter, Mat};
use sparsegp::model::{Model, inducing_param};
use sparsegp::train::{TrainOptions, train};
use sparsegp::{means, methods};
use std::path::Path;

/// The start of the paper's run, a random subset of the 40 inputs.
const START: [f64; 7] =
    [1.2544164, 3.4977501, 5.8270696, 0.35034783, 1.1645869, 4.2214395, 4.1059939];
const PANELS: [(&str, &str); 4] = [
    ("exact", "exact GP"),
    ("titsias2009", "bound of 2009"),
    ("spherical", "spherical bound"),
    ("titsias2025", "bound of 2025"),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let table = Table::open(root.join("testdata/data/snelson.csv.gz"))?;
    let all = table.select(&Selection::targets(["y"]))?.read_all()?;
    let data = InMemory::new(
        Mat::from_fn(40, 1, |i, _| all.x[(5 * i, 0)]),
        Mat::from_fn(40, 1, |i, _| all.y[(5 * i, 0)]),
    )?;
    std::fs::create_dir_all(root.join("docs"))?;
    let path = root.join("docs/snelson.svg");
    let drawing = SVGBackend::new(&path, (1000, 760)).into_drawing_area();
    drawing.fill(&WHITE)?;
    println!("| method | noise variance | variance | lengthscale | objective |");
    println!("| --- | --- | --- | --- | --- |");
    for ((method, title), area) in PANELS.iter().zip(drawing.split_evenly((2, 2))) {
        panel(method, title, &data, &area)?;
    }
    drawing.present()?;
    println!("\nwrote docs/snelson.svg");
    Ok(())
}

fn panel(
    method: &str,
    title: &str,
    data: &InMemory,
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
) -> Result<(), Box<dyn std::error::Error>> {
    let entry = methods::find(method)?;
    let start = Mat::from_fn(7, 1, |i, _| START[i]);
    let mut model = Model {
        kernels: vec![parse(
            &format!("rbf(variance={}, lengthscales=1.0)", 0.69 * 0.69),
            Inputs::unnamed(1),
        )?],
        mean: means::by_name("zero", 1, 1)?,
        likelihood: Box::new(Gaussian::new(0.51 * 0.51)),
        inducing: entry
            .method
            .is_sparse()
            .then(|| inducing_param(start.as_ref()))
            .into_iter()
            .collect(),
        q: None,
        method: entry.method,
        jitter: Jitter::Absolute(1e-8),
        hidden: Vec::new(),
    };
    let engine = Cpu::default();
    let options = TrainOptions::default();
    let report = train(&mut model, &engine, data, &options, &mut ())?;
    let value = |path: &str| {
        let found = model.params().into_iter().find(|(p, _)| p == path);
        found.map_or(f64::NAN, |(_, param)| param.scalar())
    };
    println!(
        "| {method} | {:.4} | {:.4} | {:.4} | {:.4} |",
        value("likelihood.variance"),
        value("kernel.variance"),
        value("kernel.lengthscales"),
        report.objective
    );
    let posterior = model.posterior(&engine, data)?;
    let (low, high, count) = (-0.6, 6.6, 361);
    let grid = Mat::from_fn(count, 1, |i, _| low + (high - low) * i as f64 / (count - 1) as f64);
    let (mean, variance) = posterior.predict_y(grid.as_ref(), &[])?;
    let point =
        |i: usize, factor: f64| (grid[(i, 0)], mean[(i, 0)] + factor * variance[(i, 0)].sqrt());
    let curve = |factor: f64| (0..count).map(move |i| (i, factor));

    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .caption(format!("{title}: objective {:.2}", report.objective), ("sans-serif", 17))
        .x_label_area_size(26)
        .y_label_area_size(34)
        .build_cartesian_2d(low..high, -3.2..2.6)?;
    chart.configure_mesh().disable_mesh().x_labels(8).y_labels(7).draw()?;
    let blue = RGBColor(31, 98, 168);
    let band: Vec<(f64, f64)> = curve(2.0)
        .chain(curve(-2.0).collect::<Vec<_>>().into_iter().rev())
        .map(|(i, factor)| point(i, factor))
        .collect();
    chart.draw_series(std::iter::once(Polygon::new(band, blue.mix(0.18))))?;
    let line = LineSeries::new((0..count).map(|i| point(i, 0.0)), blue.stroke_width(2));
    chart.draw_series(line)?;
    let dots = (0..40).map(|i| Circle::new((data.x[(i, 0)], data.y[(i, 0)]), 3, BLACK.filled()));
    chart.draw_series(dots)?;
    if entry.method.is_sparse() {
        let red = RGBColor(190, 45, 35);
        let z = model.inducing_points()?;
        chart
            .draw_series((0..7).map(|i| Cross::new((START[i], 2.45), 4, BLACK.stroke_width(2))))?;
        chart
            .draw_series((0..7).map(|i| Cross::new((z[(i, 0)], -3.05), 4, red.stroke_width(2))))?;
    }
    Ok(())
}

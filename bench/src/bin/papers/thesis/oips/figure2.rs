//! Figure 2: four ways to have points on three series.

use sparsegp::inducing::select::{AdaptiveGrid, kmeans};
use sparsegp::linalg::Mat;
use sparsegp::rng;
use sparsegp_bench::page::{Drawn, normal};
use sparsegp_bench::papers::{Axis, BLANK, Body, Data, Entry, Kind, Panel, Run, Series, Table};
use sparsegp_bench::streams::{Learn, Stream, cut, grown, rbf};

/// The experiment.
pub const ENTRY: Entry = Entry {
    name: "oips-figure2",
    paper: "oips",
    item: "Figure 2",
    shows: "test NLL after every batch for three series",
    data: &[Data::Simulated(
        "A: an even series, B: one with a gap, C: three inputs; 200 rows each",
    )],
    protocol: "four batches of 50; ℓ by the median distance of the first batch, σ² = 0.01; points on a \
               grid, by k-means of the first \
               batch and moved by Adam, by OIPS (ρ = 0.8), by OIPS and moved; means of the draws",
    scaled: "batches run along the series; for C OIPS takes some 40 points, 10 in the text",
    rule: "after the last batch OIPS is within 0.1 of the best way on every series, and better than k-means on B",
    body: Body::Program(run),
    ..BLANK
};

/// Rows to learn from in their order, and rows to test on.
struct Rows {
    x: Mat<f64>,
    y: Vec<f64>,
    test_x: Mat<f64>,
    test_y: Vec<f64>,
}

const COUNT: usize = 200;

fn toy(name: &'static str, seed: u64) -> Rows {
    let mut generator = rng::stream(seed, name);
    let d = if name == "C" { 3 } else { 1 };
    let mut rows = |n: usize, ordered: bool| {
        let mut x = match name {
            "A" => (0..n).map(|i| vec![20.0 * (i as f64 + 0.5) / n as f64]).collect(),
            "B" => {
                // two stretches with a gap, unevenly seen
                let mut at: Vec<f64> = (0..n)
                    .map(|i| {
                        let u = rng::uniform(&mut generator);
                        if i < n / 2 { 6.0 * u } else { 13.0 + 7.0 * u }
                    })
                    .collect();
                if ordered {
                    at.sort_by(f64::total_cmp);
                }
                at.into_iter().map(|v| vec![v]).collect()
            }
            _ => (0..n)
                .map(|_| (0..3).map(|_| normal(&mut generator)).collect::<Vec<f64>>())
                .collect::<Vec<_>>(),
        };
        let f = |x: &[f64]| {
            let r = x.iter().map(|v| v * v).sum::<f64>().sqrt();
            if d == 1 { x[0].sin() } else { r.sin() / r.max(1e-9) }
        };
        let y: Vec<f64> =
            x.iter().map(|x: &Vec<f64>| f(x) + 0.1 * normal(&mut generator)).collect();
        let own = Mat::from_fn(n, d, |i, q| x[i][q]);
        x.clear();
        (own, y)
    };
    let ((x, y), (test_x, test_y)) = (rows(COUNT, true), rows(COUNT, false));
    Rows { x, y, test_x, test_y }
}

/// The median distance of the rows.
fn median_distance(x: &Mat<f64>) -> f64 {
    let distance = |i: usize, j: usize| {
        (0..x.ncols()).map(|q| (x[(i, q)] - x[(j, q)]).powi(2)).sum::<f64>().sqrt()
    };
    let mut all: Vec<f64> = (0..x.nrows())
        .flat_map(|i| (0..i).map(move |j| (i, j)))
        .map(|(i, j)| distance(i, j))
        .collect();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// Mean scores after every batch, and the mean number of points at the end.
fn scores(
    name: &'static str,
    way: &str,
    seeds: std::ops::Range<u64>,
    steps: usize,
) -> sparsegp::Result<([f64; 4], f64)> {
    let (fixed, per) = if name == "C" { (50, 10) } else { (25, 25) };
    let count = (seeds.end - seeds.start) as f64;
    let (mut scores, mut points) = ([0.0; 4], 0.0);
    for seed in seeds {
        let data = toy(name, seed);
        let batch = COUNT / 4;
        let first = cut(&data.x, 0, batch);
        let length = median_distance(&first) / 2_f64.sqrt();
        let kernel = rbf(1.0, length, data.x.ncols());
        let mut stream = Stream::new(1.0, length, Some(0.01), data.x.ncols());
        let mut seen = AdaptiveGrid::default();
        for (b, score) in scores.iter_mut().enumerate() {
            let x = cut(&data.x, b * batch, batch);
            let y = &data.y[b * batch..(b + 1) * batch];
            let learn = Learn::Points(steps, 0.01);
            let (z, learn) = match way {
                "grid" => {
                    seen.see(x.as_ref())?;
                    (seen.nodes(per)?, Learn::Nothing)
                }
                "OIPS" => (grown(&*kernel, &stream.z, &x, 0.8), Learn::Nothing),
                "OIPS + Adam" => (grown(&*kernel, &stream.z, &x, 0.8), learn),
                _ if b == 0 => {
                    let mut generator = rng::stream(seed, "k-means");
                    (kmeans(x.as_ref(), fixed, &mut generator)?.points, learn)
                }
                _ => (stream.z.clone(), learn),
            };
            stream.take(&x, y, z, learn)?;
            *score += stream.score(&data.test_x, &data.test_y).0 / count;
        }
        points += stream.z.nrows() as f64 / count;
    }
    Ok((scores, points))
}

fn run(run: &mut Run<'_>) -> Drawn {
    let seeds = run.seed()..run.seed() + run.size([1, 3, 5, 5]);
    let steps = run.size([3, 100, 100, 100]);
    let mut table = Table::new("", &["series", "points", "M", "1", "2", "3", "4"]);
    let mut panels = Vec::new();
    for name in ["A", "B", "C"] {
        let (mut series, mut ends) = (Vec::new(), Vec::new());
        for (colour, way) in
            ["grid", "k-means + Adam", "OIPS", "OIPS + Adam"].into_iter().enumerate()
        {
            let (scores, points) = scores(name, way, seeds.clone(), steps)?;
            let cells = scores.map(|s| format!("{s:.3}"));
            table.row(
                [&[name.to_owned(), way.to_owned(), format!("{points:.0}")][..], &cells].concat(),
            );
            ends.push(scores[3]);
            let line = scores.iter().enumerate().map(|(b, s)| ((b + 1) as f64, *s)).collect();
            series.push(Series::new(way, Kind::Line, colour, line));
        }
        let best = ends.iter().copied().fold(f64::INFINITY, f64::min);
        let own = ends[2].min(ends[3]);
        let ours = format!("{own:.3}, the best {best:.3}");
        run.holds(&format!("{name}: OIPS"), "as good as the best", ours, own <= best + 0.1);
        if name == "B" {
            let ours = format!("{own:.3} and {:.3}", ends[1]);
            run.holds("B: against k-means", "better where there is a gap", ours, own < ends[1]);
        }
        let (x, y) = (Axis::new("batches"), Axis::new("test NLL"));
        panels.push(Panel { title: format!("series {name}"), x, y, series });
    }
    run.table(table);
    run.figure("", 3, &panels)
}

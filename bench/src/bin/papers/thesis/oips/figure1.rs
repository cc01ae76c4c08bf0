//! Figure 1: a long series, and the points that are chosen along it.

use sparsegp::linalg::Mat;
use sparsegp::rng;
use sparsegp_bench::page::{Drawn, normal};
use sparsegp_bench::papers::{Axis, BLANK, Body, Data, Entry, Kind, Panel, Run, Series, Table};
use sparsegp_bench::streams::{Learn, Stream, cut, grown, rbf};

/// The experiment.
pub const ENTRY: Entry = Entry {
    name: "oips-figure1",
    paper: "oips",
    item: "Figure 1",
    shows: "a series and the points that are chosen along it",
    data: &[Data::Simulated("1000 rows of a sine with noise, and others to predict")],
    protocol: "batches of 100, OIPS with ρ = 0.8, ℓ = 1, σ² = 0.01, all fixed",
    rule: "points follow the series to its end, and the RMSE of the rows so far stays within a tenth of the noise, 0.1",
    body: Body::Program(run),
    ..BLANK
};

fn run(run: &mut Run<'_>) -> Drawn {
    let mut generator = rng::stream(run.seed() + 1, "long");
    let n = 2000;
    let x: Vec<f64> = (0..n).map(|i| 20.0 * i as f64 / (n - 1) as f64).collect();
    let y: Vec<f64> = x.iter().map(|x| x.sin() + 0.1 * normal(&mut generator)).collect();
    let half = |odd: usize| {
        let x = Mat::from_fn(n / 2, 1, |i, _| x[2 * i + odd]);
        (x, (0..n / 2).map(|i| y[2 * i + odd]).collect::<Vec<f64>>())
    };
    let ((x, y), (test_x, test_y)) = (half(0), half(1));
    let kernel = rbf(1.0, 1.0, 1);
    let mut stream = Stream::new(1.0, 1.0, Some(0.01), 1);
    let mut table = Table::new("", &["batch", "points", "NLL of the rows so far", "RMSE"]);
    let (mut panels, mut worst) = (Vec::new(), 0.0_f64);
    for b in 0..10 {
        let own = cut(&x, 100 * b, 100);
        let z = grown(&*kernel, &stream.z, &own, 0.8);
        stream.take(&own, &y[100 * b..100 * (b + 1)], z, Learn::Nothing)?;
        let seen = 100 * (b + 1);
        let (loss, error) = stream.score(&cut(&test_x, 0, seen), &test_y[..seen]);
        worst = worst.max(error);
        table.row(vec![
            (b + 1).to_string(),
            stream.z.nrows().to_string(),
            format!("{loss:.3}"),
            format!("{error:.4}"),
        ]);
        if [1, 4, 9].contains(&b) {
            panels.push(panel(&stream, &cut(&x, 0, seen), &y));
        }
    }
    run.table(table);
    let last = (0..stream.z.nrows()).map(|i| stream.z[(i, 0)]).fold(0.0, f64::max);
    run.holds("points", "follow the series", format!("the last at {last:.1} of 20"), last > 19.0);
    run.holds("RMSE", "that of the noise", format!("at most {worst:.4}"), worst < 0.11);
    run.figure("", 3, &panels)
}

/// Rows, the mean with two standard deviations of f, and inducing points.
fn panel(stream: &Stream, x: &Mat<f64>, y: &[f64]) -> Panel {
    let grid = Mat::from_fn(200, 1, |i, _| 20.0 * i as f64 / 199.0);
    let (mean, variance) = stream.predict(&grid);
    let edge = |k: f64| -> Vec<(f64, f64)> {
        (0..200).map(|i| (grid[(i, 0)], mean[i] + k * variance[i].max(0.0).sqrt())).collect()
    };
    let rows = (0..x.nrows()).step_by(4).map(|i| (x[(i, 0)], y[i])).collect();
    let points = (0..stream.z.nrows()).map(|i| (stream.z[(i, 0)], -2.2)).collect();
    Panel {
        title: format!("after {} rows", x.nrows()),
        x: Axis::new("x").from_to(0.0, 20.0),
        y: Axis::new("y").from_to(-2.4, 2.4),
        series: vec![
            Series::new("", Kind::Dots, 6, rows),
            Series::new("", Kind::Band, 0, [edge(2.0), edge(-2.0)].concat()),
            Series::new("mean", Kind::Line, 0, edge(0.0)),
            Series::new("", Kind::Crosses, 1, points),
        ],
    }
}

//! Figure 7.2: noise that depends on the input, by CAVI and by Gibbs.

use super::toys::{GRID, ROWS, fitted, functions, grid};
use sparsegp::fit::Of;
use sparsegp::linalg::Mat;
use sparsegp::rng;
use sparsegp_bench::page::{Drawn, normal};
use sparsegp_bench::papers::{Axis, BLANK, Body, Data, Entry, Kind, Panel, Run, Series, Table};

/// The experiment.
pub const ENTRY: Entry = Entry {
    name: "more-figure7.2",
    paper: "more",
    item: "Figure 7.2",
    shows: "noise that depends on the input, by CAVI and by Gibbs",
    data: &[Data::Simulated(
        "200 rows of f with noise of the precision 20 σ(g), f and g drawn from the prior",
    )],
    protocol: "`heteroscedastic(scale=logistic)` with the kernel that f and g were drawn from; `cavi-full` and `gibbs`",
    scaled: "the toy of the thesis is not printed",
    rule: "for either method the root mean square error of the mean is below 0.25, and the logarithms \
               of the predicted and the true \
           deviation of observations have a correlation of at least 0.7",
    body: Body::Program(run),
    ..BLANK
};

fn run(run: &mut Run<'_>) -> Drawn {
    let drawn = functions(2, run.seed() + 1)?;
    let deviation = |g: f64| ((1.0 + (-g).exp()) / 20.0).sqrt();
    let mut rng = rng::stream(run.seed(), "noise");
    let y = Mat::from_fn(ROWS, 1, |i, _| {
        drawn.f[(GRID + i, 0)] + deviation(drawn.f[(GRID + i, 1)]) * normal(&mut rng)
    });
    let truth: Vec<(f64, f64)> =
        (0..GRID).map(|i| (drawn.f[(i, 0)], deviation(drawn.f[(i, 1)]))).collect();
    let x = grid();
    let draws = run.size([20, 300, 2000, 2000]);
    let mut table = Table::new("", &["method", "error of the mean", "correlation of deviations"]);
    let mut panels = Vec::new();
    for (method, name) in [("cavi-full", "VI"), ("gibbs", "Gibbs")] {
        let fitted = fitted(&drawn.x, &y, "heteroscedastic(scale=logistic)", method, draws)?;
        let (mean, variance) = fitted.predict(x.as_ref(), Of::Observations)?;
        let found: Vec<(f64, f64)> =
            (0..GRID).map(|i| (mean[(i, 0)], variance[(i, 0)].sqrt())).collect();
        let pairs = || found.iter().zip(&truth);
        let error = (pairs().map(|(a, b)| (a.0 - b.0).powi(2)).sum::<f64>() / GRID as f64).sqrt();
        let logs: Vec<(f64, f64)> = pairs().map(|(a, b)| (a.1.ln(), b.1.ln())).collect();
        let r = correlation(&logs);
        table.row(vec![name.into(), format!("{error:.3}"), format!("{r:.3}")]);
        let ours = format!("error {error:.3}, correlation {r:.3}");
        run.holds(name, "recovers the model", ours, error < 0.25 && r >= 0.7);
        panels.push(panel(name, &x, (&drawn.x, &y), &truth, &found));
    }
    run.table(table);
    run.figure("", 2, &panels)
}

fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let n = pairs.len() as f64;
    let (ma, mb) =
        (pairs.iter().map(|p| p.0).sum::<f64>() / n, pairs.iter().map(|p| p.1).sum::<f64>() / n);
    let over =
        |f: &dyn Fn(f64, f64) -> f64| pairs.iter().map(|p| f(p.0 - ma, p.1 - mb)).sum::<f64>();
    over(&|a, b| a * b) / (over(&|a, _| a * a) * over(&|_, b| b * b)).sqrt()
}

fn panel(
    name: &str,
    x: &Mat<f64>,
    (at, y): (&Mat<f64>, &Mat<f64>),
    truth: &[(f64, f64)],
    found: &[(f64, f64)],
) -> Panel {
    let edge = |of: &[(f64, f64)], k: f64| -> Vec<(f64, f64)> {
        of.iter().enumerate().map(|(i, (m, d))| (x[(i, 0)], m + k * d)).collect()
    };
    let rows = (0..ROWS).map(|i| (at[(i, 0)], y[(i, 0)])).collect();
    let series = vec![
        Series::new("", Kind::Dots, 1, rows),
        Series::new("", Kind::Band, 2, [edge(found, 1.0), edge(found, -1.0)].concat()),
        Series::new("predicted", Kind::Line, 2, edge(found, 0.0)),
        Series::new("f", Kind::Line, 0, edge(truth, 0.0)),
        Series::new("", Kind::Thin, 0, edge(truth, 1.0)),
        Series::new("", Kind::Thin, 0, edge(truth, -1.0)),
    ];
    Panel { title: name.into(), x: Axis::new("x"), y: Axis::new("y"), series }
}

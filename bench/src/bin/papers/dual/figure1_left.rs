//! Figure 1, left: what an M-step sees of the bound from one q.

use super::em::bound;
use super::toy::{NATURAL, PLAIN, PRINTED, UNTIED, WHITENED, at, sinc, solve, with};
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{Axis, BLANK, Body, Data, Entry, Kind, Panel, Run, Series, Table};

/// The experiment.
pub const ENTRY: Entry = Entry {
    name: "dual-figure1-left",
    paper: "dual",
    item: "Figure 1, left",
    shows: "the bound as a function of the kernel's variance from one q, for several forms of q",
    data: &[Data::Simulated("a noisy sinc, thresholded, 100 rows")],
    protocol: "logistic likelihood, ℓ = ½, ten inducing points that stay; q is made at the variance 0.6 by natural \
               gradients and kept in each form",
    rule: "at every variance of a grid of 100 from 0.05 to 1 the bound by sites is above that by either form of \
           moments; one check for natural ties, one for those that the paper's algorithm prints",
    body: Body::Program(run),
    ..BLANK
};

fn run(run: &mut Run<'_>) -> Drawn {
    let (data, model) = sinc(run.seed())?;
    let count = run.size([10, 100, 100, 100]);
    let grid: Vec<f64> = (0..count).map(|i| 0.05 + 0.95 * i as f64 / (count - 1) as f64).collect();
    let shapes = [UNTIED, NATURAL, PRINTED, PLAIN, WHITENED];
    let (mut curves, mut series) = (Vec::new(), Vec::new());
    let mut best = Vec::new();
    for variance in &grid {
        best.push(solve(&mut at(&with(&NATURAL, &model, 100)?, *variance)?, &data)?);
    }
    let top = best.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let line = |values: &[f64]| grid.iter().copied().zip(values.iter().copied()).collect();
    series.push(Series::new("best q of each", Kind::Line, 7, line(&best)));
    for (colour, shape) in shapes.iter().enumerate() {
        let mut solved = with(shape, &model, 100)?;
        solve(&mut solved, &data)?;
        let curve: Result<Vec<f64>, sparsegp::Error> =
            grid.iter().map(|v| bound(&at(&solved, *v)?, &data)).collect();
        let curve = curve?;
        series.push(Series::new(shape.name, Kind::Line, colour, line(&curve)));
        curves.push(curve);
    }
    let names = shapes.each_ref().map(|shape| shape.name);
    let mut table = Table::new("", &[&["variance", "best q"][..], &names].concat());
    for i in (0..count).step_by((count / 5).max(1)) {
        let cells = curves.iter().map(|curve| format!("{:.3}", curve[i]));
        let head = [format!("{:.3}", grid[i]), format!("{:.3}", best[i])];
        table.row(head.into_iter().chain(cells).collect());
    }
    run.table(table);
    for (which, name) in [(1, "tighter, natural ties"), (2, "tighter, ties as printed")] {
        let behind = |i: usize| curves[3][i].max(curves[4][i]) - curves[which][i];
        let worst = (0..count).map(behind).fold(f64::NEG_INFINITY, f64::max);
        let ours = match worst {
            w if w <= 1e-4 => "nowhere below either q".to_owned(),
            w => format!("up to {w:.2} nats below the better q"),
        };
        run.holds(name, "above q and whitened q at all variances", ours, worst <= 1e-4);
    }
    let y = Axis::new("bound").from_to(top - 12.0, top + 1.0);
    let title = "bound from one q, made at 0.6".to_owned();
    run.figure("", 1, &[Panel { title, x: Axis::new("variance of the kernel"), y, series }])
}

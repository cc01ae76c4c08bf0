//! Figure 4: how many points are chosen.

use super::points::{chosen, uniform};
use crate::common::average;
use sparsegp::inducing::select::oips::{expected_points, most_in_cube};
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{Axis, BLANK, Body, Data, Entry, Kind, Panel, Run, Series, Table};
use sparsegp_bench::streams::rbf;

/// The experiment.
pub const ENTRY: Entry = Entry {
    name: "oips-figure4",
    paper: "oips",
    item: "Figure 4",
    shows: "how many points are chosen, and the bound of Theorem 1",
    data: &[Data::Simulated("rows uniform in a cube of three inputs")],
    protocol: "ρ = 0.7, ℓ = 0.3; N = 10 to 3000, several draws",
    scaled: "the corrected bound beside the printed one (errata)",
    rule: "the mean number of points is below the bound at every N; one check for the bound as printed, \
               one as corrected",
    body: Body::Program(run),
    ..BLANK
};

fn run(run: &mut Run<'_>) -> Drawn {
    let draws = run.size([2, 10, 50, 100]);
    let (d, rho, length) = (3, 0.7, 0.3);
    let radius = length * (-2.0 * f64::ln(rho)).sqrt();
    let kernel = rbf(1.0, length, d);
    let head = ["N", "points", "bound as corrected", "as printed", "in the cube at most"];
    let mut table = Table::new("", &head);
    let (mut own, mut bounds, mut printed) = (Vec::new(), Vec::new(), Vec::new());
    for n in [10, 30, 100, 300, 1000, 3000] {
        let sizes: sparsegp::Result<Vec<f64>> = (0..draws)
            .map(|k| {
                Ok(chosen(&*kernel, uniform(n, d, run.seed() + k).as_ref(), rho)?.nrows() as f64)
            })
            .collect();
        let (mean, _) = average(&sizes?);
        let bound = expected_points(n, d, radius, 1.0);
        // theorem 1 as printed, with h = √2 ℓ: r = h √(−log ρ), α = (r √D / 2)ᴰ
        let alpha = (radius * (d as f64).sqrt() / 2.0).powi(d as i32);
        let theirs = (1.0 - (1.0 - alpha).powi(n as i32 + 1)) / alpha;
        table.row(vec![
            n.to_string(),
            format!("{mean:.1}"),
            format!("{bound:.1}"),
            format!("{theirs:.1}"),
            format!("{:.0}", most_in_cube(d, radius, 1.0)),
        ]);
        own.push((n as f64, mean));
        bounds.push((n as f64, bound));
        printed.push((n as f64, theirs));
    }
    run.table(table);
    for (what, bound) in [("bound as printed", &printed), ("bound as corrected", &bounds)] {
        let above = own.iter().zip(bound).filter(|(m, b)| m.1 > b.1).map(|(m, _)| m.0.to_string());
        let above: Vec<String> = above.collect();
        let ours = match above.as_slice() {
            [] => "holds at every N".to_owned(),
            some => format!("exceeded at N = {}", some.join(", ")),
        };
        run.holds(what, "bounds the mean", ours, above.is_empty());
    }
    let series = vec![
        Series::new("points", Kind::Line, 0, own),
        Series::new("bound, corrected", Kind::Line, 2, bounds),
        Series::new("bound, as printed", Kind::Line, 1, printed),
    ];
    let (x, y) = (Axis::new("N").log(), Axis::new("M").log());
    run.figure("", 1, &[Panel { title: "number of points".into(), x, y, series }])
}

//! Figure 1: the loss by iteration of seven variants.

use super::alternative;
use super::toy::{Toy, VARIANTS};
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{Axis, BLANK, Body, Data, Entry, Kind, Panel, Run, Series, Table};

/// The experiment.
pub const ENTRY: Entry = Entry {
    name: "inverse-free-figure1",
    paper: "inverse-free",
    item: "Figure 1",
    panels: 2,
    shows: "the loss by iteration of seven variants on snelson and banana",
    data: &[Data::Bundled("snelson"), Data::Bundled("banana")],
    protocol: "M = 10 and 64, minibatches of as many rows, 10 000 iterations of Adam at 0.005 and 0.01, \
               inducing points that \
               stay, one natural-gradient step of L in every iteration for the variants with (N)",
    rule: "R-SVGP (NP) ends within 0.5 nats of W-SVGP and L-SVGP (P); R-SVGP without either ends at \
               least 1 nat higher in \
           its loss",
    body: Body::Program(run),
    ..BLANK
};

fn run(run: &mut Run<'_>) -> Drawn {
    let iterations = run.sized("iterations", [20, 10_000, 10_000, 10_000]);
    let mut table =
        Table::new("Loss (negative bound) at the end", &["variant", "snelson", "banana"]);
    let (mut panels, mut ends, mut beside) = (Vec::new(), Vec::new(), f64::NAN);
    for name in ["snelson", "banana"] {
        let toy = Toy::new(name)?;
        let (mut series, mut own) = (Vec::new(), Vec::new());
        for (colour, variant) in VARIANTS.iter().enumerate() {
            let curve = toy.curve(variant, iterations, run.seed())?;
            // the last few looks, as minibatches leave each of them a little noise
            let last: Vec<f64> = curve.iter().rev().take(5).map(|p| p.1).collect();
            own.push(last.iter().sum::<f64>() / last.len() as f64);
            series.push(Series::new(variant.0, Kind::Line, colour, curve));
        }
        if name == "snelson" {
            let curve = toy.alternative(iterations, run.seed())?;
            let last: Vec<f64> = curve.iter().rev().take(5).map(|p| p.1).collect();
            beside = last.iter().sum::<f64>() / last.len() as f64;
            series.push(Series::new(alternative::NAME, Kind::Line, VARIANTS.len(), curve));
        }
        let gap = |rival: usize| own[6] - own[rival];
        let ours = format!("NP − W {:+.2}, NP − L (P) {:+.2}", gap(0), gap(2));
        let near = gap(0).abs() < 0.5 && gap(2).abs() < 0.5;
        run.holds(&format!("{name}: R-SVGP (NP)"), "as good as W-SVGP and L-SVGP", ours, near);
        let ours = format!("{:+.2} behind NP", own[3] - own[6]);
        let behind = own[3] - own[6] > 1.0;
        run.holds(&format!("{name}: R-SVGP with neither"), "converges slowly", ours, behind);
        let low = own.iter().copied().fold(f64::INFINITY, f64::min);
        let y = Axis::new("loss").from_to(low - 2.0, low + 80.0);
        panels.push(Panel { title: name.into(), x: Axis::new("iteration"), y, series });
        ends.push(own);
    }
    for (at, variant) in VARIANTS.iter().enumerate() {
        let cells = ends.iter().map(|own| format!("{:.2}", own[at]));
        table.row([variant.0.to_owned()].into_iter().chain(cells).collect());
    }
    table.row(vec![alternative::NAME.into(), format!("{beside:.2}"), String::new()]);
    run.table(table);
    run.note(
        "The alternative bound of §2, of which the paper has no experiment, is trained on snelson with the series in place of its \
         log determinant, and L moved by a natural-gradient step in every iteration: without inverses",
    );
    run.figure("", 2, &panels)
}

//! Figure 3, right, and Figure 5: the bound by iteration on counts of bicycles.

use super::counts::{METHODS, curve, fitted};
use sparsegp_bench::load;
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{Axis, BLANK, Body, Data, Entry, Kind, Panel, Run, Series, Table};

/// The experiment.
pub const ENTRY: Entry = Entry {
    name: "bounds-figure5",
    paper: "bounds",
    item: "Figure 3, right, and Figure 5",
    shows: "the bound by iteration on counts of bicycles, M = 16, 8 and 32",
    data: &[Data::Substitute { of: "NYBikes (210 rows, 2 inputs)", by: "bikes-daily" }],
    protocol: "nine tenths of the rows; squared exponential with a lengthscale per input; k-means; all rows at once",
    scaled: "another table of counts of bicycles: directions at best; natural gradients for q",
    rule: "the new bound ends above the old one and below that of the full process for every M, and \
               gains most with the \
           fewest points",
    body: Body::Program(run),
    ..BLANK
};

fn run(run: &mut Run<'_>) -> Drawn {
    run.smaller("`bikes-daily` for NYBikes");
    let iterations = run.size([5, 1000, 2000, 2000]);
    let all = load("bikes-daily", false);
    let rows = sparsegp::data::Mask::random(all.x.nrows(), 0.1, run.seed())?;
    let rows = all.rows_where(&rows, false)?;
    let full = fitted(&rows, "tvgp", 0, iterations, run.seed())?;
    let full_bound = full.objective().ok_or("it was trained")?;
    let mut table = Table::new("", &["M", "SVGP", "SVGP-new", "Full GP"]);
    let (mut panels, mut gains) = (Vec::new(), Vec::new());
    for m in [16, 8, 32] {
        let (mut series, mut bounds) = (Vec::new(), Vec::new());
        for (colour, (method, name)) in METHODS[..2].iter().enumerate() {
            let fit = fitted(&rows, method, m, iterations, run.seed())?;
            bounds.push(fit.objective().ok_or("it was trained")?);
            series.push(Series::new(*name, Kind::Line, colour, curve(&fit)));
        }
        let across = series.iter().flat_map(|s| &s.points).map(|p| p.0).fold(1.0, f64::max);
        let line = vec![(0.0, full_bound), (across, full_bound)];
        series.push(Series::new("Full GP", Kind::Line, 7, line));
        let numbers = [bounds[0], bounds[1], full_bound].map(|v| format!("{v:.0}"));
        table.row([&[m.to_string()][..], &numbers].concat());
        run.holds(
            &format!("M = {m}"),
            "SVGP < SVGP-new < Full GP",
            numbers.join(" < "),
            bounds[0] < bounds[1] && bounds[1] < full_bound,
        );
        gains.push(bounds[1] - bounds[0]);
        let low = bounds[0] - 0.5 * (full_bound - bounds[0]);
        let y = Axis::new("ELBO").from_to(low, full_bound + 0.05 * (full_bound - low));
        panels.push(Panel { title: format!("M = {m}"), x: Axis::new("iteration"), y, series });
    }
    run.table(table);
    run.figure("", 3, &panels)
}

//! Figure 2: test NLPD by seconds of three methods.

use super::timed::{Plan, train};
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{Axis, BLANK, Body, Data, Entry, Kind, Panel, Run, Series, Table};

/// The experiment.
pub const ENTRY: Entry = Entry {
    name: "inverse-free-figure2",
    paper: "inverse-free",
    item: "Figure 2",
    panels: 8,
    shows: "test NLPD by seconds of three methods on elevators and kin40k, M = 256 to 2048",
    data: &[Data::Bundled("elevators"), Data::Bundled("kin40k")],
    protocol: "nine tenths of the rows, one lengthscale per input, variances and lengthscales from 1, \
               k-means, minibatches of \
               1024 (100 at full scale), Adam at 0.02; equal processor time for each method, on one thread",
    scaled: "a processor for the GPU of the paper; one seed for five",
    rule: "R-SVGP has the lowest NLPD at the end of the time; a check for every panel",
    body: Body::Program(run),
    ..BLANK
};

const METHODS: [(&str, &str); 3] =
    [("svgp", "W-SVGP"), ("lsvgp", "L-SVGP (P)"), ("rsvgp", "R-SVGP (NP)")];

fn run(run: &mut Run<'_>) -> Drawn {
    run.smaller("a processor for a GPU");
    let plans: &[(usize, f64)] = match run.size([0, 1, 2, 3]) {
        0 => &[(16, 0.05)],
        1 => &[(256, 6.0), (512, 12.0)],
        2 => &[(256, 40.0), (512, 60.0), (1024, 120.0), (2048, 240.0)],
        _ => &[(256, 400.0), (512, 600.0), (1024, 1200.0), (2048, 2400.0)],
    };
    if plans.len() < 4 {
        run.smaller(format!("M up to {}", plans[plans.len() - 1].0));
    }
    let batch = run.size([100, 1024, 1024, 100]);
    let mut table =
        Table::new("", &["data", "M", "method", "steps", "ms a step", "seconds", "NLPD"]);
    let mut panels = Vec::new();
    for name in ["elevators", "kin40k"] {
        for &(points, seconds) in plans {
            let plan = Plan { points, batch, rate: 0.02, seconds, seed: run.seed(), traces: None };
            let (mut series, mut ends) = (Vec::new(), Vec::new());
            for (colour, (method, label)) in METHODS.into_iter().enumerate() {
                let timed = train(name, method, &plan)?;
                table.row(vec![
                    name.into(),
                    points.to_string(),
                    label.into(),
                    timed.steps.to_string(),
                    format!("{:.1}", timed.each()),
                    format!("{seconds:.0}"),
                    format!("{:.4}", timed.end()),
                ]);
                ends.push(timed.end());
                series.push(Series::new(label, Kind::Line, colour, timed.curve));
            }
            let ours = format!("W {:.3}, L {:.3}, R {:.3}", ends[0], ends[1], ends[2]);
            let first = ends[2] < ends[0].min(ends[1]);
            run.holds(&format!("{name}, M = {points}"), "R-SVGP is ahead", ours, first);
            let low = ends.iter().copied().fold(f64::INFINITY, f64::min);
            let y = Axis::new("NLPD").from_to(low - 0.05, low + 0.8);
            let title = format!("{name}, M = {points}");
            panels.push(Panel { title, x: Axis::new("processor seconds"), y, series });
        }
    }
    run.table(table);
    run.figure("", 4, &panels)
}

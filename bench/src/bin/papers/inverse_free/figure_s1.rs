//! Figure S1: traces by probes or exact.

use super::timed::{Plan, train};
use sparsegp::inverse_free::{Estimate, Traces};
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{Axis, BLANK, Body, Data, Entry, Kind, Panel, Run, Series, Table};

/// The experiment.
pub const ENTRY: Entry = Entry {
    name: "inverse-free-figure-s1",
    paper: "inverse-free",
    item: "Figure S1",
    shows: "test NLPD by seconds with traces by probes or exact",
    data: &[Data::Bundled("elevators"), Data::Bundled("kin40k")],
    protocol: "R-SVGP as for Figure 2, M = 1024, with 1, 16, 64 and 256 probes for traces, and exact ones",
    scaled: "a processor for the GPU of the paper",
    rule: "a step with up to 64 probes takes less time than one with exact traces, and 64 and 256 \
               probes end within 0.02 nats \
           of exact traces, or below",
    body: Body::Program(run),
    ..BLANK
};

fn run(run: &mut Run<'_>) -> Drawn {
    run.smaller("a processor for a GPU");
    let points = run.sized("inducing points", [16, 256, 1024, 1024]);
    let seconds = run.size([0.05, 6.0, 120.0, 1200.0]);
    let batch = run.size([100, 1024, 1024, 100]);
    let mut table = Table::new("", &["data", "traces", "steps", "ms a step", "NLPD"]);
    let mut panels = Vec::new();
    for name in ["elevators", "kin40k"] {
        let (mut series, mut found) = (Vec::new(), Vec::new());
        for (colour, probes) in
            [Some(1), Some(16), Some(64), Some(256), None].into_iter().enumerate()
        {
            let traces = probes.map_or(Traces::Exact, |p| Traces::Probes(p, Estimate::LSpace));
            let traces = Some(traces);
            let plan = Plan { points, batch, rate: 0.02, seconds, seed: run.seed(), traces };
            let timed = train(name, "rsvgp", &plan)?;
            let label = probes.map_or("exact".to_owned(), |p| format!("{p} probes"));
            table.row(vec![
                name.into(),
                label.clone(),
                timed.steps.to_string(),
                format!("{:.1}", timed.each()),
                format!("{:.4}", timed.end()),
            ]);
            found.push((timed.each(), timed.end()));
            series.push(Series::new(label, Kind::Line, colour, timed.curve));
        }
        let exact = found[4];
        let ours = format!("{:.1} ms, exact {:.1} ms", found[2].0, exact.0);
        run.holds(&format!("{name}: time"), "less with probes", ours, found[2].0 < exact.0);
        let ours = format!("64: {:.3}, 256: {:.3}, exact {:.3}", found[2].1, found[3].1, exact.1);
        let equal = found[2].1.max(found[3].1) < exact.1 + 0.02;
        run.holds(&format!("{name}: NLPD"), "some tens of probes equal exact traces", ours, equal);
        let low = found.iter().map(|f| f.1).fold(f64::INFINITY, f64::min);
        let y = Axis::new("NLPD").from_to(low - 0.05, low + 0.8);
        let x = Axis::new("processor seconds");
        panels.push(Panel { title: name.into(), x, y, series });
    }
    run.table(table);
    run.figure("", 2, &panels)
}

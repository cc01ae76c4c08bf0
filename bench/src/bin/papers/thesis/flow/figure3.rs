//! Figure 3: fewer particles than dimensions.

use super::gaussian::{eigenvalues, problem, start};
use super::methods::{Law, Method, Start, follow, shown};
use sparsegp::flow::MeanFlow;
use sparsegp::linalg::Mat;
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{Axis, BLANK, Body, Data, Entry, Kind, Panel, Run, Series, Table};

/// The experiment.
pub const ENTRY: Entry = Entry {
    name: "flow-figure3",
    paper: "flow",
    item: "Figure 3",
    shows: "missing variance by the number of particles",
    data: &[Data::Simulated("Gaussian targets of 50 dimensions, κ = 1 to 100")],
    protocol: "2 to 51 particles, plain steps of 0.001 until they stay",
    rule: "tr Σ − tr C is within 1 % of tr Σ of the sum of the eigenvalues that N particles cannot have \
               (Theorem 3), for all N and κ",
    body: Body::Program(run),
    ..BLANK
};

const DIM: usize = 50;

fn run(run: &mut Run<'_>) -> Drawn {
    let steps = run.sized("steps", [200, 20_000, 20_000, 20_000]);
    let counts = [2, 5, 10, 20, 30, 40, 50, 51];
    let conditions: &[f64] = match run.size([0, 1, 1, 1]) {
        0 => &[10.0],
        _ => &[1.0, 5.0, 10.0, 50.0, 100.0],
    };
    let mut table = Table::new("", &["κ", "N", "found", "predicted", "off by, % of tr Σ"]);
    let (mut series, mut worst) = (Vec::new(), 0.0_f64);
    let trace = |m: &Mat<f64>| (0..DIM).map(|i| m[(i, i)]).sum::<f64>();
    for (colour, condition) in conditions.iter().enumerate() {
        let mut sorted = eigenvalues(DIM, *condition);
        sorted.sort_by(|a, b| b.total_cmp(a));
        let (mut dots, mut line) = (Vec::new(), Vec::new());
        for count in counts {
            let mut own = problem(&eigenvalues(DIM, *condition), run.seed() + 1)?;
            let begin =
                Start { mean: own.mean.clone(), ..start(&own, count, 1e-3, run.seed() + 3) };
            let method = Method::Gpf(MeanFlow::Plain);
            let (path, _) = follow(method, &begin, &mut own.target, (steps, steps), None)?;
            let Some((.., Law::Moments(_, c))) = path.last() else { continue };
            let found = trace(&own.covariance) - trace(c);
            let predicted: f64 = sorted.iter().skip(count - 1).sum();
            let off = 100.0 * (found - predicted).abs() / trace(&own.covariance);
            worst = worst.max(off);
            table.row(vec![
                condition.to_string(),
                count.to_string(),
                shown(found),
                shown(predicted),
                format!("{off:.2}"),
            ]);
            dots.push((count as f64, found.abs().max(1e-6)));
            line.push((count as f64, predicted.max(1e-6)));
        }
        series.push(Series::new(format!("κ = {condition}"), Kind::Line, colour, line));
        series.push(Series::new("", Kind::Dots, colour, dots));
    }
    run.table(table);
    run.holds("Theorem 3", "matches", format!("off by at most {worst:.2} % of tr Σ"), worst < 1.0);
    let y = Axis::new("missing variance").log().from_to(1e-6, 1000.0);
    let title = "lines: Theorem 3; points: found".to_owned();
    run.figure("", 1, &[Panel { title, x: Axis::new("particles"), y, series }])
}

//! Figure 2: errors on Gaussian targets of three conditions.

use super::gaussian::{eigenvalues, problem, start};
use super::methods::{Law, MEDIAN, Method, follow, middle, shown};
use sparsegp::flow::MeanFlow;
use sparsegp::flow::compared::SvgdKernel;
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{Axis, BLANK, Body, Data, Entry, Kind, Panel, Run, Series, Table};

/// The experiment.
pub const ENTRY: Entry = Entry {
    name: "flow-figure2",
    paper: "flow",
    item: "Figure 2",
    shows: "errors of mean and covariance by time, Gaussian targets of three conditions",
    data: &[Data::Simulated("Gaussian targets of 20 dimensions, κ = 1, 10, 100")],
    protocol: "21 particles (or draws of a step), 30 000 steps of 0.01; particles take plain steps, \
               parameters RMSProp's; medians \
               of the runs",
    rule: "for every κ the covariance of GPF ends below 1e-8, that of IBLR with Hessians too, and those \
               of the methods that draw \
           above 1e-3; linear SVGD loses itself",
    body: Body::Program(run),
    ..BLANK
};

const CONDITIONS: [f64; 3] = [1.0, 10.0, 100.0];
const METHODS: [Method; 10] = [
    Method::Gpf(MeanFlow::Plain),
    Method::IblrHessian,
    Method::Gf(MeanFlow::Plain),
    Method::Dsvi,
    Method::Fcs,
    Method::Iblr,
    Method::Svgd(MEDIAN),
    Method::Svgd(SvgdKernel::Linear),
    Method::Gpf(MeanFlow::Natural),
    Method::Gf(MeanFlow::Natural),
];

fn run(run: &mut Run<'_>) -> Drawn {
    let runs = run.size([1, 3, 10, 10]);
    let steps = run.sized("steps", [300, 30_000, 30_000, 30_000]);
    let dim = 20;
    let head = [
        "method",
        "κ = 1: mean",
        "covariance",
        "κ = 10: mean",
        "covariance",
        "κ = 100: mean",
        "covariance",
        "µs a step",
    ];
    let mut table = Table::new("Errors at the end", &head);
    let mut panels: Vec<Panel> = CONDITIONS
        .iter()
        .map(|condition| Panel {
            title: format!("κ = {condition}"),
            x: Axis::new("seconds").log(),
            y: Axis::new("error of the covariance").log().from_to(1e-14, 100.0),
            series: Vec::new(),
        })
        .collect();
    let mut ends = Vec::new();
    for (colour, method) in METHODS.into_iter().enumerate() {
        let (mut cells, mut seconds, mut own_ends) =
            (vec![method.name().to_owned()], 0.0, Vec::new());
        for (condition, panel) in CONDITIONS.iter().zip(&mut panels) {
            let (mut means, mut covariances) = (Vec::new(), Vec::new());
            for seed in (0..runs).map(|k| run.seed() + k) {
                let mut own = problem(&eigenvalues(dim, *condition), seed)?;
                let begin = start(&own, dim + 1, 0.01, seed);
                let plan = (steps, (steps / 40).max(1));
                let (path, lost) = follow(method, &begin, &mut own.target, plan, None)?;
                let errors = |law: &Law| law.errors(&own.mean, &own.covariance);
                let last = path.last().filter(|_| lost.is_none());
                let (m, c) = last.map_or((f64::NAN, f64::NAN), |(.., law)| errors(law));
                means.push(m);
                covariances.push(c);
                if let Some((done, own_seconds, _)) = path.last() {
                    seconds = own_seconds / (*done).max(1) as f64;
                }
                if seed == run.seed() && lost.is_none() {
                    let points = path.iter().skip(1).map(|(_, s, law)| (*s, errors(law).1));
                    panel.series.push(Series::new(
                        method.name(),
                        Kind::Line,
                        colour,
                        points.collect(),
                    ));
                }
            }
            cells.extend([shown(middle(&means)), shown(middle(&covariances))]);
            own_ends.push(middle(&covariances));
        }
        cells.push(format!("{:.0}", 1e6 * seconds));
        table.row(cells);
        ends.push(own_ends);
    }
    run.table(table);
    for (at, condition) in CONDITIONS.iter().enumerate() {
        let of = |method: usize| ends[method][at];
        let ours = format!("GPF {}, IBLR with Hessians {}", shown(of(0)), shown(of(1)));
        let exact = of(0) < 1e-8 && of(1) < 1e-8;
        run.holds(&format!("κ = {condition}: exact"), "GPF and IBLR reach the target", ours, exact);
        let least = [2, 3, 4, 5].map(of).into_iter().fold(f64::INFINITY, f64::min);
        let ours = format!("{} at best", shown(least));
        run.holds(&format!("κ = {condition}: methods that draw"), "do not", ours, least > 1e-3);
    }
    let lost = ends[7].iter().filter(|c| !c.is_finite()).count();
    let ours = format!("lost for {lost} of 3 conditions");
    run.holds("linear SVGD", "fails", ours, lost == 3);
    run.figure("", 3, &panels)
}

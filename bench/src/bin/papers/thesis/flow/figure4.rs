//! Figure 4: many dimensions of which few matter.

use super::gaussian::{problem, start};
use super::methods::{MEDIAN, Method, Start, follow, middle, shown};
use sparsegp::flow::compared::SvgdKernel;
use sparsegp::flow::{MeanFlow, Rule};
use sparsegp::rng;
use sparsegp_bench::page::{Drawn, normal};
use sparsegp_bench::papers::{Axis, BLANK, Body, Data, Entry, Kind, Panel, Run, Series, Table};

/// The experiment.
pub const ENTRY: Entry = Entry {
    name: "flow-figure4",
    paper: "flow",
    item: "Figure 4",
    shows: "errors in 500 dimensions of which K = 10, 20, 30 matter",
    data: &[Data::Simulated("Gaussian targets with K eigenvalues of about 2 and others of 1e-8")],
    protocol: "20 particles (or a factor of rank 19), RMSProp at 0.01; medians of the runs",
    rule: "for every K the covariance of GPF ends within 1.3 times the best of GF, FCS and linear SVGD, \
               and that of SVGD at least \
           three times as far away",
    body: Body::Program(run),
    ..BLANK
};

const METHODS: [Method; 5] = [
    Method::Gpf(MeanFlow::Plain),
    Method::Gf(MeanFlow::Plain),
    Method::Fcs,
    Method::Svgd(SvgdKernel::Linear),
    Method::Svgd(MEDIAN),
];

fn run(run: &mut Run<'_>) -> Drawn {
    let runs = run.size([1, 1, 3, 10]);
    let steps = run.sized("steps", [50, 3000, 5000, 5000]);
    let dim = run.sized("dimensions", [50, 500, 500, 500]);
    let head = ["K", "method", "error of the mean", "of the covariance", "ms a step"];
    let (mut table, mut panels) = (Table::new("", &head), Vec::new());
    for k in [10, 20, 30] {
        let (mut series, mut ends) = (Vec::new(), Vec::new());
        for (colour, method) in METHODS.into_iter().enumerate() {
            let (mut means, mut covariances, mut each) = (Vec::new(), Vec::new(), 0.0);
            for seed in (0..runs).map(|own| run.seed() + own) {
                let mut rng = rng::stream(seed, "flows/eigenvalues");
                let mut large = || loop {
                    let value = 2.0 + normal(&mut rng);
                    if value > 0.1 {
                        break value;
                    }
                };
                let values: Vec<f64> =
                    (0..dim).map(|i| if i < k { large() } else { 1e-8 }).collect();
                let mut own = problem(&values, seed)?;
                let begin = Start { of_particles: Rule::rms_prop(), ..start(&own, 20, 0.01, seed) };
                let plan = (steps, (steps / 10).max(1));
                let (path, lost) = follow(method, &begin, &mut own.target, plan, None)?;
                let errors = |law: &super::methods::Law| law.errors(&own.mean, &own.covariance);
                let last = path.last().filter(|_| lost.is_none());
                let (m, c) = last.map_or((f64::NAN, f64::NAN), |(.., law)| errors(law));
                means.push(m);
                covariances.push(c);
                if let Some((done, seconds, _)) = path.last() {
                    each = 1e3 * seconds / (*done).max(1) as f64;
                }
                if seed == run.seed() {
                    let points = path.iter().skip(1).map(|(_, s, law)| (*s, errors(law).1));
                    series.push(Series::new(method.name(), Kind::Line, colour, points.collect()));
                }
            }
            let (mean, covariance) = (middle(&means), middle(&covariances));
            table.row(vec![
                k.to_string(),
                method.name().into(),
                shown(mean),
                shown(covariance),
                format!("{each:.1}"),
            ]);
            ends.push(covariance);
        }
        let best =
            ends[1..4].iter().copied().filter(|c| c.is_finite()).fold(f64::INFINITY, f64::min);
        let ours = format!("GPF {}, the best of the others {}", shown(ends[0]), shown(best));
        run.holds(&format!("K = {k}: GPF"), "on par", ours, ends[0] < 1.3 * best);
        let ours = format!("SVGD {}, GPF {}", shown(ends[4]), shown(ends[0]));
        run.holds(
            &format!("K = {k}: SVGD"),
            "five to ten times worse",
            ours,
            ends[4] > 3.0 * ends[0],
        );
        let (x, y) = (Axis::new("seconds"), Axis::new("error of the covariance").log());
        panels.push(Panel { title: format!("K = {k}"), x, y, series });
    }
    run.table(table);
    run.figure("", 3, &panels)
}

//! Figure 4: autocorrelations of three samplers for four likelihoods.

use super::chains::{DATA, Length, PROBLEMS, Sampler, autocorrelation};
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{Axis, BLANK, Body, Entry, Kind, Panel, Run, Series};

/// The experiment.
pub const ENTRY: Entry = Entry {
    name: "aaci-figure4",
    paper: "aaci",
    item: "Figure 4",
    shows: "autocorrelations of three samplers for four likelihoods",
    data: DATA,
    protocol: "as for Table 2; one chain, mean over the rows",
    scaled: "HMC is whitened and adapts, where the paper takes the best of a grid",
    rule: "for every likelihood the sizes of the autocorrelations at lags 1 to 10 add up to the least for Gibbs",
    body: Body::Program(run),
    ..BLANK
};

fn run(run: &mut Run<'_>) -> Drawn {
    let draws = run.size([30, 1000, 5000, 10_000]);
    let length = Length { chains: 1, draws, seed: run.seed() };
    let samplers = [
        ("random walk", Sampler::Metropolis),
        ("HMC", Sampler::Hamiltonian(None)),
        ("Gibbs", Sampler::Gibbs),
    ];
    let mut panels = Vec::new();
    for problem in PROBLEMS {
        let (mut series, mut sums) = (Vec::new(), Vec::new());
        for (colour, (name, sampler)) in samplers.into_iter().enumerate() {
            let own = problem.chains(sampler, length)?;
            let curve = autocorrelation(&own.draws.f[0], 10);
            sums.push(curve[1..].iter().map(|(mean, _)| mean.abs()).sum::<f64>());
            let points = curve.iter().enumerate().map(|(lag, (mean, _))| (lag as f64, *mean));
            series.push(Series::new(name, Kind::Line, colour, points.collect()));
        }
        let ours = format!("walk {:.2}, HMC {:.2}, Gibbs {:.2}", sums[0], sums[1], sums[2]);
        let least = sums[2] < sums[0].min(sums[1]);
        run.holds(problem.name, "Gibbs has the least", ours, least);
        let (x, y) = (Axis::new("lag"), Axis::new("autocorrelation").from_to(-0.7, 1.05));
        panels.push(Panel { title: problem.name.into(), x, y, series });
    }
    run.figure("", 4, &panels)
}

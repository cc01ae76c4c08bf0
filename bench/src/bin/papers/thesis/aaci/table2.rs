//! Table 2: three samplers for four likelihoods.

use super::chains::{DATA, Length, PROBLEMS, Sampler};
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{BLANK, Body, Entry, Run, Table};

/// The experiment.
pub const ENTRY: Entry = Entry {
    name: "aaci-table2",
    paper: "aaci",
    item: "Table 2",
    shows: "time, correlation and R̂ of three samplers for four likelihoods",
    data: DATA,
    protocol: "five chains of 10 000 draws of f at fixed hyperparameters (ℓ = 3, variance 1), one \
               thread; random walks, \
               Hamiltonian paths of ten steps that adapt, Gibbs",
    scaled: "HMC is whitened and adapts step and masses, where the paper takes the best of a grid",
    rule: "for every likelihood Gibbs has the smallest correlation at lag 1 in size, and the most \
               effective draws a second",
    body: Body::Program(run),
    ..BLANK
};

/// Lag 1 in the paper: MH, HMC, Gibbs.
const PRINTED: [[&str; 3]; 4] = [
    ["0.996", "0.53", "0.11"],
    ["1.0", "0.857", "0.04"],
    ["0.995", "0.931", "0.26"],
    ["0.997", "0.995", "0.05"],
];

fn run(run: &mut Run<'_>) -> Drawn {
    let draws = run.size([20, 500, 2000, 10_000]);
    if draws < 10_000 {
        run.smaller(format!("draws of a chain: {draws} for 10 000"));
    }
    let length = Length { chains: run.size([2, 3, 5, 5]), draws, seed: run.seed() };
    let head =
        ["likelihood", "sampler", "ms a draw", "lag 1", "paper: lag 1", "split R̂", "ESS a second"];
    let mut table = Table::new("", &head);
    for (problem, printed) in PROBLEMS.iter().zip(PRINTED) {
        let samplers = [
            ("random walk", Sampler::Metropolis),
            ("HMC", Sampler::Hamiltonian(None)),
            ("Gibbs", Sampler::Gibbs),
        ];
        let mut found = Vec::new();
        for ((name, sampler), printed) in samplers.into_iter().zip(printed) {
            let own = problem.chains(sampler, length)?;
            table.row(vec![
                problem.name.into(),
                name.into(),
                format!("{:.3}", 1e3 * own.each),
                format!("{:.3}", own.lag_one),
                printed.into(),
                format!("{:.3}", own.rhat),
                format!("{:.0}", own.rate),
            ]);
            found.push((own.lag_one, own.rate));
        }
        let [walk, hmc, gibbs] = [found[0], found[1], found[2]];
        let ours = format!("{:.2}, {:.2}, {:.2}", walk.0, hmc.0, gibbs.0);
        let least = gibbs.0.abs() < hmc.0.abs().min(walk.0.abs());
        run.holds(&format!("{}: lag 1", problem.name), &printed.join(", "), ours, least);
        let ours = format!("{:.0}, {:.0}, {:.0} a second", walk.1, hmc.1, gibbs.1);
        let most = gibbs.1 > hmc.1.max(walk.1);
        run.holds(&format!("{}: effective draws", problem.name), "Gibbs has the most", ours, most);
    }
    run.table(table);
    Ok(())
}

//! Tables 3 to 5: Hamiltonian chains by step and number of steps.

use super::chains::{DATA, Length, PROBLEMS, Problem, Sampler};
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{BLANK, Body, Entry, Run, Table};

/// Laplace noise.
pub const LAPLACE: Entry = Entry {
    name: "aaci-table3",
    item: "Table 3",
    shows: "Hamiltonian chains of Laplace noise by step and number of steps",
    body: Body::Program(|run| grid(run, &PROBLEMS[2])),
    ..ALL
};

/// Student-t noise.
pub const STUDENT_T: Entry = Entry {
    name: "aaci-table4",
    item: "Table 4",
    shows: "Hamiltonian chains of Student-t noise by step and number of steps",
    body: Body::Program(|run| grid(run, &PROBLEMS[1])),
    ..ALL
};

/// Logistic data.
pub const LOGISTIC: Entry = Entry {
    name: "aaci-table5",
    item: "Table 5",
    shows: "Hamiltonian chains of logistic data by step and number of steps",
    body: Body::Program(|run| grid(run, &PROBLEMS[0])),
    ..ALL
};

const ALL: Entry = Entry {
    paper: "aaci",
    data: DATA,
    protocol: "as for Table 2, with fixed steps and unit masses; Gibbs beside it",
    scaled: "f is whitened, so that the same step goes another way",
    rule: "no cell of the grid has a correlation at lag 1 that is smaller than that of Gibbs in size, \
               and mixes at all (split R̂ \
           below 1.1)",
    ..BLANK
};

fn grid(run: &mut Run<'_>, problem: &Problem) -> Drawn {
    let draws = run.size([20, 300, 2000, 10_000]);
    if draws < 10_000 {
        run.smaller(format!("draws of a chain: {draws} for 10 000"));
    }
    let length = Length { chains: run.size([2, 2, 5, 5]), draws, seed: run.seed() };
    let counts = [1, 2, 5, 10];
    let head = ["step", "number", "ms a draw", "lag 1", "split R̂"];
    let mut table = Table::new("", &head);
    let gibbs = problem.chains(Sampler::Gibbs, length)?;
    let mut better = Vec::new();
    for step in [0.01, 0.05, 0.1] {
        for count in counts {
            let own = problem.chains(Sampler::Hamiltonian(Some((count, step))), length)?;
            table.row(vec![
                step.to_string(),
                count.to_string(),
                format!("{:.3}", 1e3 * own.each),
                format!("{:.3}", own.lag_one),
                format!("{:.3}", own.rhat),
            ]);
            if own.lag_one.abs() < gibbs.lag_one.abs() && own.rhat < 1.1 {
                better.push(format!("{count} steps of {step}"));
            }
        }
    }
    let cells = [
        format!("{:.3}", 1e3 * gibbs.each),
        format!("{:.3}", gibbs.lag_one),
        format!("{:.3}", gibbs.rhat),
    ];
    table.row([&["Gibbs".to_owned(), "–".to_owned()][..], &cells].concat());
    run.table(table);
    let ours = match better.as_slice() {
        [] => "none".to_owned(),
        some => some.join(", "),
    };
    run.holds("cells ahead of Gibbs", "none", ours, better.is_empty());
    Ok(())
}

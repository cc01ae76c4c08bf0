//! Table 1: NLPD of digits by learning rates and steps.

use super::digits::{Digits, METHODS, Rounds};
use crate::common::{average, averaged};
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{BLANK, Body, Data, Entry, Run, Table};

/// The experiment.
pub const ENTRY: Entry = Entry {
    name: "dual-table1",
    paper: "dual",
    item: "Table 1",
    shows: "NLPD of digits by learning rates and steps of E and M",
    data: &[Data::Substitute { of: "MNIST (60 000 + 10 000)", by: "mnist-t10k" }],
    protocol: "as for Figure 4, with a new minibatch for every step; several seeds of points and minibatches",
    scaled: "8000 digits to learn from; a number of rounds where the paper trains until convergence; \
               the E-rates of rows 2 \
             to 5 were not legible in our copy and are taken to be that of row 1",
    rule: "in every row the NLPD of t-SVGP is not higher than that of q-SVGP by more than two standard \
               errors of the paired \
           difference or 0.01",
    body: Body::Program(run),
    ..BLANK
};

/// Rates and steps of a row, with what the paper prints for q and t.
const ROWS: [(Rounds, [&str; 2]); 6] = [
    (rates(0.04, 0.05, 1, 1), [".304 ± .015", ".304 ± .006"]),
    (rates(0.04, 0.10, 2, 1), ["–", ".283 ± .007"]),
    (rates(0.04, 0.10, 3, 1), [".293 ± .020", ".281 ± .010"]),
    (rates(0.04, 0.03, 4, 1), [".259 ± .010", ".255 ± .006"]),
    (rates(0.04, 0.03, 4, 2), [".282 ± .007", ".283 ± .006"]),
    (rates(0.03, 0.03, 4, 1), [".243 ± .003", ".230 ± .009"]),
];

const fn rates(e_rate: f64, m_rate: f64, e_steps: usize, m_steps: usize) -> Rounds {
    Rounds { e_rate, m_rate, e_steps, m_steps }
}

fn run(run: &mut Run<'_>) -> Drawn {
    run.smaller("`mnist-t10k` for MNIST");
    let rounds = run.size([1, 60, 500, 2000]);
    run.smaller(format!("{rounds} rounds"));
    let m = run.sized("inducing points", [10, 100, 100, 100]);
    let seeds = run.size([1, 2, 3, 5]);
    let digits = Digits::new(run.size([50, 1000, 2000, 2000]))?;
    let mut table = Table::new(
        "NLPD",
        &["E rate", "M rate", "#E", "#M", "q-SVGP", "t-SVGP", "paper: q", "paper: t"],
    );
    for (rates, printed) in ROWS {
        let mut found = [Vec::new(), Vec::new()];
        for ((method, _), scores) in METHODS.iter().zip(&mut found) {
            for seed in (0..seeds).map(|k| run.seed() + k) {
                let mut training = digits.begin(method, m, rates, seed)?;
                (0..rounds).try_for_each(|_| training.round(rates))?;
                scores.push(digits.nlpd(&training)?);
            }
        }
        let Rounds { e_rate, m_rate, e_steps, m_steps } = rates;
        let head =
            [format!("{e_rate}"), format!("{m_rate}"), format!("{e_steps}"), format!("{m_steps}")];
        let scores = [averaged(&found[1], 3), averaged(&found[0], 3)];
        table.row([&head[..], &scores, &printed.map(str::to_owned)].concat());
        let gaps: Vec<f64> = found[0].iter().zip(&found[1]).map(|(t, q)| t - q).collect();
        let (gap, error) = average(&gaps);
        run.holds(
            &format!("rates {e_rate}, {m_rate}; steps {e_steps}, {m_steps}"),
            "t-SVGP is equal or better",
            format!("t − q {gap:+.4} ± {error:.4}"),
            gap <= (2.0 * error).max(0.01),
        );
    }
    run.table(table);
    Ok(())
}

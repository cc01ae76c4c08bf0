//! Figure 4: NLPD and bound of digits by the clock.

use super::digits::{Digits, METHODS, Rounds};
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{Axis, BLANK, Body, Data, Entry, Kind, Panel, Run, Series, Table};

/// The experiment.
pub const ENTRY: Entry = Entry {
    name: "dual-figure4",
    paper: "dual",
    item: "Figure 4",
    shows: "NLPD and bound of digits by the clock",
    data: &[Data::Substitute { of: "MNIST (60 000 + 10 000)", by: "mnist-t10k" }],
    protocol: "8000 digits to learn from, 2000 to predict; ten latent functions, Matérn 5/2 with one \
               lengthscale, M = 100, \
               minibatches of 200, 150 rounds of one E-step (rate 0.03) and one M-step (Adam, 0.02)",
    scaled: "the lengthscale starts at 10 and not at 1, where the covariances of digits vanish; q-SVGP is ours and not \
             GPflow's, so that both sides are closed forms",
    rule: "a round of t-SVGP takes less than a third of the time of one of q-SVGP, and their NLPDs \
               after all rounds differ \
           by less than 0.02",
    body: Body::Program(run),
    ..BLANK
};

const RATES: Rounds = Rounds { e_rate: 0.03, m_rate: 0.02, e_steps: 1, m_steps: 1 };

fn run(run: &mut Run<'_>) -> Drawn {
    run.smaller("`mnist-t10k` for MNIST");
    let rounds = run.sized("rounds", [2, 150, 150, 150]);
    let digits = Digits::new(run.size([50, 2000, 2000, 2000]))?;
    let m = run.sized("inducing points", [10, 100, 100, 100]);
    let mut lines = [Vec::new(), Vec::new()];
    let mut table = Table::new("", &["method", "ms a round", "seconds", "NLPD", "bound a row"]);
    let mut found = Vec::new();
    for (colour, (method, name)) in METHODS.into_iter().enumerate() {
        let mut training = digits.begin(method, m, RATES, run.seed())?;
        let mut curves = [Vec::new(), Vec::new()];
        for round in 1..=rounds {
            training.round(RATES)?;
            if round % 10 == 0 || round == rounds {
                curves[0].push((training.seconds, digits.nlpd(&training)?));
                curves[1].push((training.seconds, training.bound()));
            }
        }
        let [nlpd, bound] = curves.each_ref().map(|c| c.last().map_or(f64::NAN, |p| p.1));
        let each = 1e3 * training.seconds / rounds as f64;
        found.push((each, nlpd));
        let numbers = [format!("{each:.1}"), format!("{:.2}", training.seconds)];
        let scores = [nlpd, bound].map(|v| format!("{v:.3}"));
        table.row([&[name.to_owned()][..], &numbers, &scores].concat());
        for (lines, curve) in lines.iter_mut().zip(curves) {
            lines.push(Series::new(name, Kind::Line, colour, curve));
        }
    }
    run.table(table);
    let ratio = found[1].0 / found[0].0;
    let ours = format!("{:.1} and {:.1} ms a round: {ratio:.2} times", found[0].0, found[1].0);
    run.holds("speed", "t-SVGP is about five times as fast", ours, ratio > 3.0);
    let ours = format!("{:.3} and {:.3}", found[0].1, found[1].1);
    run.holds("NLPD at the end", "about the same", ours, (found[0].1 - found[1].1).abs() < 0.02);
    let titles = ["NLPD", "ELBO a row"];
    let panels: Vec<Panel> = lines
        .into_iter()
        .zip(titles)
        .map(|(series, y)| Panel {
            title: y.into(),
            x: Axis::new("seconds"),
            y: Axis::new(y),
            series,
        })
        .collect();
    run.figure("", 2, &panels)
}

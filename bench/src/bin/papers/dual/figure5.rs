//! Figure 5: seconds of 100 iterations by the number of inducing points.

use super::digits::{Digits, METHODS, Rounds};
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{Axis, BLANK, Body, Data, Entry, Kind, Panel, Run, Series, Table};

/// The experiment.
pub const ENTRY: Entry = Entry {
    name: "dual-figure5",
    paper: "dual",
    item: "Figure 5",
    shows: "seconds of 100 iterations by the number of inducing points",
    data: &[Data::Substitute { of: "MNIST (60 000 + 10 000)", by: "mnist-t10k" }],
    protocol: "rounds of one E-step and one M-step as for Figure 4",
    scaled: "q-SVGP is ours and not GPflow's",
    rule: "t-SVGP is faster at every M up to 250",
    body: Body::Program(run),
    ..BLANK
};

const RATES: Rounds = Rounds { e_rate: 0.03, m_rate: 0.02, e_steps: 1, m_steps: 1 };

fn run(run: &mut Run<'_>) -> Drawn {
    run.smaller("`mnist-t10k` for MNIST");
    let points: &[usize] = match run.size([0, 1, 2, 2]) {
        0 => &[10, 20],
        1 => &[25, 50, 100, 200, 300],
        _ => &[25, 50, 100, 150, 200, 250, 300, 400, 500],
    };
    let rounds = run.size([1, 20, 100, 100]);
    if rounds < 100 {
        run.note(format!("Times of {rounds} iterations, multiplied to 100."));
    }
    let digits = Digits::new(10)?;
    let mut table = Table::new("", &["M", "t-SVGP, s", "q-SVGP, s", "q / t"]);
    let mut lines = vec![Vec::new(), Vec::new()];
    let mut slower = Vec::new();
    for &m in points {
        let mut times = Vec::new();
        for ((method, _), line) in METHODS.iter().zip(&mut lines) {
            let mut training = digits.begin(method, m, RATES, run.seed())?;
            // the first round allocates
            training.round(RATES)?;
            training.seconds = 0.0;
            (0..rounds).try_for_each(|_| training.round(RATES))?;
            let seconds = 100.0 * training.seconds / rounds as f64;
            times.push(seconds);
            line.push((m as f64, seconds));
        }
        let ratio = times[1] / times[0];
        if m <= 250 && ratio <= 1.0 {
            slower.push(m.to_string());
        }
        let cells = [times[0], times[1], ratio].map(|v| format!("{v:.2}"));
        table.row([&[m.to_string()][..], &cells].concat());
    }
    run.table(table);
    let ours = match slower.as_slice() {
        [] => "faster at all".to_owned(),
        some => format!("not faster at M = {}", some.join(", ")),
    };
    run.holds("speed up to M = 250", "t-SVGP is faster", ours, slower.is_empty());
    let series = METHODS.iter().zip(lines).enumerate();
    let series =
        series.map(|(colour, ((_, name), line))| Series::new(*name, Kind::Line, colour, line));
    let title = "100 iterations".to_owned();
    let (x, y) = (Axis::new("inducing points"), Axis::new("seconds"));
    run.figure("", 1, &[Panel { title, x, y, series: series.collect() }])
}

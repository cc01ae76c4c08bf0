//! Table 5: test log densities of counts of bicycles.

use super::counts::{factor, fitted};
use crate::common::{average, averaged};
use sparsegp::data::Mask;
use sparsegp_bench::load;
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{BLANK, Body, Data, Entry, Printed, Run, Table};

/// The experiment.
pub const ENTRY: Entry = Entry {
    name: "bounds-table5",
    paper: "bounds",
    item: "Table 5",
    shows: "test log density of counts of bicycles, M = 8, 16 and 32",
    data: &[Data::Substitute { of: "NYBikes (210 rows, 2 inputs)", by: "bikes-daily" }],
    protocol: "nine tenths of the rows to learn from, several splits; as for Figure 5",
    scaled: "another table of counts of bicycles: directions at best; natural gradients for q",
    printed: &[
        Printed { what: "Full GP", value: -5.061, error: 0.010 },
        Printed { what: "SVGP, 8", value: -36.397, error: 6.017 },
        Printed { what: "SVGP, 16", value: -16.557, error: 4.307 },
        Printed { what: "SVGP, 32", value: -8.556, error: 0.728 },
        Printed { what: "SVGP-new, 8", value: -9.713, error: 0.345 },
        Printed { what: "SVGP-new, 16", value: -9.301, error: 0.296 },
        Printed { what: "SVGP-new, 32", value: -8.203, error: 0.190 },
    ],
    rule: "SVGP < SVGP-new < Full GP for every M, and v below 0.01",
    body: Body::Program(run),
    ..BLANK
};

fn run(run: &mut Run<'_>) -> Drawn {
    run.smaller("`bikes-daily` for NYBikes");
    let splits = run.size([1, 2, 5, 5]);
    let iterations = run.size([5, 1000, 2000, 2000]);
    let all = load("bikes-daily", false);
    let score = |method: &str, m: usize| -> Result<(Vec<f64>, Vec<f64>), sparsegp::Error> {
        let (mut scores, mut factors) = (Vec::new(), Vec::new());
        for seed in (0..splits).map(|k| run.seed() + k) {
            let mask = Mask::random(all.x.nrows(), 0.1, seed)?;
            let (training, test) = (all.rows_where(&mask, false)?, all.rows_where(&mask, true)?);
            let fit = fitted(&training, method, m, iterations, seed)?;
            let density = fit.log_density(test.x.as_ref(), test.y.as_ref(), &[])?;
            scores.push(density.iter().sum::<f64>() / density.len() as f64);
            factors.push(factor(&fit));
        }
        Ok((scores, factors))
    };
    let mut table = Table::new("", &["M", "SVGP", "SVGP-new", "v", "paper: SVGP", "SVGP-new"]);
    let (full, _) = score("tvgp", 0)?;
    let mut judged = Vec::new();
    for (m, printed) in
        [(8, ["−36.4", "−9.71"]), (16, ["−16.6", "−9.30"]), (32, ["−8.56", "−8.20"])]
    {
        let (old, _) = score("svgp", m)?;
        let (new, factors) = score("svgp-spherical", m)?;
        let cells = [averaged(&old, 2), averaged(&new, 2), averaged(&factors, 4)];
        table.row([&[m.to_string()][..], &cells, &printed.map(str::to_owned)].concat());
        let [old, new, whole] = [&old, &new, &full].map(|values| average(values).0);
        let ours = format!("{old:.1} < {new:.1} < {whole:.1}");
        let order = format!("{} < {} < −5.06", printed[0], printed[1]);
        judged.push((format!("M = {m}"), order, ours, old < new && new < whole));
        let v = average(&factors).0;
        judged.push((format!("v, M = {m}"), "below 0.01".into(), format!("{v:.4}"), v < 0.01));
    }
    for (what, printed, ours, holds) in judged {
        run.holds(&what, &printed, ours, holds);
    }
    table.caption =
        format!("Test log density a row; Full GP {}, in the paper −5.06", averaged(&full, 2));
    run.table(table);
    Ok(())
}

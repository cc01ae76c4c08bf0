//! Table 3: hyperparameters of the fits to Snelson's rows.

use super::snelson::{METHODS, fitted, rows, value};
use sparsegp::train::TrainOptions;
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{BLANK, Body, Data, Entry, Printed, Run};

const fn printed(what: &'static str, value: f64, error: f64) -> Printed {
    Printed { what, value, error }
}

/// The experiment.
pub const ENTRY: Entry = Entry {
    name: "bounds-table3",
    paper: "bounds",
    item: "Table 3",
    shows: "hyperparameters of three fits to 40 of Snelson's rows",
    data: &[Data::Bundled("snelson")],
    protocol: "rows 0, 5, …, 195, as they are; squared exponential; M = 7 from the paper's start; L-BFGS to its end",
    scaled: "the third column is headed ℓ² and holds ℓ; the rows headed SVGP are the collapsed bounds",
    printed: &[
        printed("Exact GP, σ²", 0.0715, 5e-5),
        printed("Exact GP, σ_f²", 0.712, 5e-4),
        printed("Exact GP, ℓ", 0.597, 5e-4),
        printed("SGPR, σ²", 0.108, 5e-4),
        printed("SGPR, σ_f²", 0.331, 5e-4),
        printed("SGPR, ℓ", 0.617, 5e-4),
        printed("SGPR-new, σ²", 0.087, 5e-4),
        printed("SGPR-new, σ_f²", 0.485, 5e-4),
        printed("SGPR-new, ℓ", 0.615, 5e-4),
    ],
    rule: "every number within a unit of its last printed digit",
    body: Body::Program(run),
    ..BLANK
};

fn run(run: &mut Run<'_>) -> Drawn {
    let data = rows()?;
    for (method, name) in METHODS {
        let (model, _) = fitted(method, &data, &TrainOptions::default())?;
        for (path, symbol) in [
            ("likelihood.variance", "σ²"),
            ("kernel.variance", "σ_f²"),
            ("kernel.lengthscales", "ℓ"),
        ] {
            run.number(&format!("{name}, {symbol}"), value(&model, path), 0.0);
        }
    }
    Ok(())
}

//! `sparsegp demo`: the way through, on real data that the program brings along.

use crate::context::{Context, Reply};
use crate::data::{self, Split};
use crate::facts;
use crate::fail::{Fail, Result};
use crate::fit;
use crate::format::{Align, Table, number, rounded, seconds};
use crate::score::{self, Score};
use crate::{plot, report, scores};
use flate2::read::MultiGzDecoder;
use serde_json::json;
use sparsegp::atomic::{check_writable, write_atomically};
use sparsegp::data::{Missing, Selection, Table as TableFile};
use sparsegp::fit::FitOptions;
use sparsegp::io;
use std::io::Read;
use std::path::Path;

const DATA: &[u8] = include_bytes!("../data/snelson.csv.gz");
const DATA_FILE: &str = "sparsegp-demo.csv";
const PLOT_FILE: &str = "sparsegp-demo.svg";
const MODEL_FILE: &str = "sparsegp-demo.safetensors";
/// Inducing points of the sparse fits.
const INDUCING: usize = 8;
/// Share of the rows that is held out.
const SPLIT: f64 = 0.2;
/// The method whose model is kept.
const KEPT: &str = "titsias2025";

/// What to try next; `sparsegp` stands for the program as it was called.
const NEXT: &str = "\
Try next
  sparsegp inspect sparsegp-demo.safetensors --full
  sparsegp predict sparsegp-demo.safetensors sparsegp-demo.csv --quantiles 0.05,0.95
  sparsegp score sparsegp-demo.safetensors sparsegp-demo.csv
  sparsegp fit sparsegp-demo.csv --target y --kernel matern52 --split 0.2 --plot matern.svg
then your own table
  sparsegp fit TABLE --target COLUMN --split 0.1 -o model.safetensors
";

#[cfg(test)]
#[test]
fn the_data_are_those_of_the_repository() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/data/snelson.csv.gz");
    assert!(std::fs::read(path).expect("the data of the tests") == DATA);
}

/// Returns the program as the user can call it again.
fn program() -> String {
    let called = std::env::args().next().unwrap_or_default();
    let path = Path::new(&called);
    let found = std::env::var_os("PATH").is_some_and(|all| {
        let own = path.canonicalize().ok();
        let first =
            std::env::split_paths(&all).map(|folder| folder.join("sparsegp")).find(|p| p.is_file());
        own.is_some() && first.and_then(|p| p.canonicalize().ok()) == own
    });
    match called.contains(std::path::MAIN_SEPARATOR) && !found {
        false => "sparsegp".into(),
        true if called.contains(char::is_whitespace) => format!("'{called}'"),
        true => called,
    }
}

/// Runs the command.
pub fn run(context: &Context) -> Result<Reply> {
    let (data_file, plot_file, model_file) =
        (Path::new(DATA_FILE), Path::new(PLOT_FILE), Path::new(MODEL_FILE));
    for path in [data_file, plot_file, model_file] {
        check_writable(path)?;
    }
    let mut table = Vec::new();
    MultiGzDecoder::new(DATA)
        .read_to_end(&mut table)
        .map_err(|e| Fail::Work(format!("the bundled data are damaged: {e}")))?;
    write_atomically(data_file, &table)?;
    let selection = Selection::targets(["y"]);
    let split = Split::Random(SPLIT, 0);
    let mut opened = data::open(TableFile::open(data_file)?, &selection, Missing::Refuse, &split)?;
    let (dataset, _) = opened.dataset(true.into(), false, None)?;
    let mut table = Table::new(&[
        ("method", Align::Left),
        ("points", Align::Right),
        ("objective", Align::Right),
        ("test RMSE", Align::Right),
        ("test NLPD", Align::Right),
        ("in 95 %", Align::Right),
        ("training", Align::Right),
    ]);
    let (mut text, mut fits) = (String::new(), Vec::new());
    for method in ["exact", KEPT, "spherical", "titsias2009"] {
        let sparse = method != "exact";
        let options = FitOptions {
            method: method.into(),
            inducing: sparse.then_some(INDUCING),
            ..FitOptions::default()
        };
        let fitted = fit::learn(&dataset, &options, &context.silent())?;
        let train = score::score(&fitted, &opened.train, context)?;
        let test = match &opened.test {
            Some(test) => score::score(&fitted, test, context)?,
            None => train.clone(),
        };
        let Score::Gaussian(overall) = &test.overall else { continue };
        let took = fitted.report.as_ref().map_or(0.0, |r| r.seconds);
        table.row(vec![
            method.into(),
            if sparse { INDUCING.to_string() } else { "all rows".into() },
            fitted.objective().map_or("–".into(), |value| rounded(value, 3)),
            number(overall.rmse, 4),
            number(overall.nlpd, 4),
            format!("{:.0} %", 100.0 * overall.coverage_95),
            seconds(took),
        ]);
        let of = |s| scores::json(s).unwrap_or_default();
        fits.push(json!({
            "model": report::model_json(&fitted),
            "scores": { "train": of(&train), "test": of(&test) },
        }));
        if method == KEPT {
            io::save(&fitted, model_file)?;
            plot::draw(plot_file, &fitted, &opened, &test)?;
            text = format!(
                "{}\n{}\n{}",
                facts::summary(&fitted),
                report::parameters_table(&fitted, false),
                scores::table(&[("train", &train), ("test", &test)])
            );
        }
    }
    let text = format!(
        "Snelson & Ghahramani's data: 200 rows, one input, a fifth held out for testing.\n\n{text}\n\
         The same data by exact inference, and by three bounds on it with {INDUCING} inducing points;\n\
         the nearer a bound comes to the exact objective, the better.\n\n{}\n\
         Written here: {PLOT_FILE} (the picture; open it in a browser),\n              \
         {MODEL_FILE} (the model), {DATA_FILE} (the data)\n\n{}",
        table.render(2),
        NEXT.replace("\n  sparsegp ", &format!("\n  {} ", program()))
    );
    let json = json!({
        "command": "demo",
        "fits": fits,
        "files": { "data": DATA_FILE, "plot": PLOT_FILE, "model": MODEL_FILE },
    });
    Ok(Reply { text, json, is_result: false })
}

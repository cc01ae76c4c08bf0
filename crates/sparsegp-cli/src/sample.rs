//! `sparsegp sample`: joint draws of what a model predicts for the rows of a table.

use crate::context::{Context, Reply};
use crate::data::{MissingInPredict, UnknownChoice};
use crate::fail::{Fail, Result};
use crate::format::count;
use crate::kind::{self, Kind, labels};
use crate::noisy_args::NoisyArgs;
use crate::outputs::{refuse_both_on_stdout, refuse_overwriting};
use crate::predictions::field;
use crate::report::latent_names;
use crate::sink::Sink;
use crate::table_args::TableArgs;
use crate::values::at_least_one;
use clap::Args;
use serde_json::json;
use sparsegp::io;
use sparsegp::linalg::Mat;
use std::path::PathBuf;

const AFTER: &str = "\
Examples:
  sparsegp sample model.safetensors new.csv --draws 20 -o draws.csv
  sparsegp sample model.safetensors grid.csv --latent

Writes a row per row of the table: the --id columns as they stand, then a column for every draw, 1, 2, …
(with the target's name in front where the model has several targets), in the data's units; of classes
their labels. A draw is joint: its values belong together, as those of one function with its noise. With
--latent: draws of the latent functions, without noise.

Up to 4096 rows are drawn by the factor of their covariance; more rows, and latent functions, by random
Fourier features, which needs a kernel with a spectral density (stationary ones, their sums and products).";

/// Options of `sparsegp sample`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct SampleArgs {
    /// Model file
    pub model: PathBuf,
    /// Table with the model's input columns
    pub data: PathBuf,
    /// Write CSV here instead of to stdout; compressed if the name ends in .gz
    #[arg(long, short, value_name = "OUT.csv")]
    pub output: Option<PathBuf>,
    /// Pass these columns through, in this order
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',')]
    pub id: Vec<String>,
    /// Draws
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = at_least_one, default_value_t = 10)]
    pub draws: usize,
    /// Seed of the draws
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Draw the latent functions rather than new observations (no observation noise)
    #[arg(long)]
    pub latent: bool,
    /// What to do with rows that lack a number (`keep` is for `predict`)
    #[arg(long, value_enum, default_value_t)]
    pub missing: MissingInPredict,
    /// What to do with categories that no training row had
    #[arg(long, value_enum, default_value_t)]
    pub unknown: UnknownChoice,
    /// Errors of inputs.
    #[command(flatten)]
    pub noisy: NoisyArgs,
    /// How the table is written.
    #[command(flatten)]
    pub table: TableArgs,
}

/// Rows up to which draws come from the factor of the covariance.
const JOINT: usize = 4096;
/// Waves of the prior part of a drawn function.
const WAVES: usize = 1024;
/// Numbers of all draws, at most (4 GiB).
const MOST: usize = 1 << 29;

/// Runs the command.
pub fn run(args: &SampleArgs, context: &Context) -> Result<Reply> {
    let path = args.output.as_deref();
    refuse_both_on_stdout(path, context.json(), "draws")?;
    if args.missing == MissingInPredict::Keep {
        return Err(Fail::usage(
            "--missing keep is for `predict`: rows without a number have no draw; use --id",
        ));
    }
    refuse_overwriting(&args.output, [&args.data, &args.model])?;
    let mut fitted = args.noisy.of(io::load(&args.model)?)?;
    fitted.unknown = args.unknown.into();
    let table = args.table.open_for(&args.data, &fitted)?;
    let selection = fitted.selection_of_new().ids(&args.id);
    let (selection, note) = match args.latent {
        true => (selection, None),
        false => kind::with_extra(&fitted, &table, selection),
    };
    context.warn(note.as_slice());
    let rows = table.select(&selection)?.missing(args.missing.into()).read_all()?;
    let mut unknown = Vec::new();
    fitted.count_unknown(rows.x.as_ref(), &mut unknown);
    context.warn(fitted.unknown_remark(&unknown).as_slice());
    let names = if args.latent { latent_names(&fitted) } else { fitted.target_names.clone() };
    let n = rows.x.nrows();
    if n.saturating_mul(args.draws).saturating_mul(names.len()) > MOST {
        return Err(Fail::usage(format!(
            "{} draws of {} are more than fit into memory: ask for fewer, or divide the table",
            args.draws,
            count(n, "row")
        )));
    }
    context.check_stop()?;
    let (x, extra) = (rows.x.as_ref(), &rows.extra[..]);
    let draws: Vec<Mat<f64>> = if args.latent {
        let functions = fitted.sample_functions(args.draws, WAVES, args.seed)?;
        fitted.evaluate_functions(&functions, x)?
    } else if n <= JOINT {
        fitted.sample_y(x, extra, args.draws, args.seed)?
    } else {
        fitted.sample_y_by_functions(x, extra, args.draws, WAVES, args.seed)?
    };
    let mut sink = Sink::open(path)?;
    let name = path.map_or("stdout".to_owned(), |path| path.display().to_string());
    let failed = |e: std::io::Error| Fail::output(&name, &e);
    sink.write(&header(args, &names)?).map_err(failed)?;
    let classes = (!args.latent && Kind::of(&fitted) == Kind::Classes).then(|| labels(&fitted));
    for i in 0..n {
        let ids = rows.ids.iter().map(|cells| field(&cells[i]));
        let values = (0..names.len()).flat_map(|p| draws.iter().map(move |draw| draw[(i, p)]));
        let values = values.map(|value| written(value, classes.as_deref()));
        let line: Vec<String> = ids.chain(values).collect();
        sink.write(&(line.join(",") + "\n")).map_err(failed)?;
    }
    sink.finish(&name)?;
    if rows.dropped > 0 {
        let dropped = count(rows.dropped, "row");
        context.warn(&[format!(
            "{dropped} with missing numbers left out: use --id to tell which are there"
        )]);
    }
    let text = match path {
        Some(_) => {
            format!("{} for {}, written to {name}", count(args.draws, "draw"), count(n, "row"))
        }
        None => String::new(),
    };
    let json = json!({
        "command": "sample", "model": args.model, "data": args.data, "output": path,
        "rows": n, "draws": args.draws, "dropped": rows.dropped,
    });
    Ok(Reply { text, json, is_result: false })
}

/// Returns the line of names.
fn header(args: &SampleArgs, names: &[String]) -> Result<String> {
    let single = names.len() == 1;
    let of = |name: &String| {
        let prefix = if single { String::new() } else { format!("{name}_") };
        (1..=args.draws).map(move |draw| format!("{prefix}{draw}"))
    };
    let columns: Vec<String> = names.iter().flat_map(of).collect();
    if let Some(both) = args.id.iter().find(|id| columns.contains(id)) {
        return Err(Fail::usage(format!(
            "--id {both}: a column of the draws has that name too; rename it in the table"
        )));
    }
    let all: Vec<String> = args.id.iter().chain(&columns).map(|name| field(name)).collect();
    Ok(all.join(",") + "\n")
}

/// Returns a value as it is written: a class by its label.
fn written(value: f64, classes: Option<&[String]>) -> String {
    match classes.and_then(|labels| labels.get(value as usize)) {
        Some(label) => field(label),
        None => value.to_string(),
    }
}

//! `sparsegp plot`: a picture of a saved model with the rows of a table.

use crate::context::{Context, Reply};
use crate::data::MissingChoice;
use crate::fail::{Fail, Result};
use crate::format::count;
use crate::outputs::refuse_overwriting;
use crate::plot::{Look, What, look};
use crate::score::AllScores;
use crate::table_args::TableArgs;
use crate::{inducing, kind, plot, remembered, score};
use clap::Args;
use sparsegp::atomic;
use sparsegp::io;
use std::path::PathBuf;

const AFTER: &str = "\
Examples:
  sparsegp plot model.safetensors data.csv --output fit.svg
  sparsegp plot model.safetensors data.csv --test-mask masks.csv:split0 --output fit.svg
  sparsegp plot model.safetensors data.csv --what calibration --output calibration.svg
  sparsegp plot model.safetensors --what relevance --output inputs.svg
  sparsegp plot model.safetensors data.csv --what inducing --output inducing.svg
  sparsegp plot model.safetensors data.csv --what effects --output effects.svg
  sparsegp plot model.safetensors data.csv --what terms --output terms.svg

One input: the curve with its 95 % band (counts: quantiles), the rows as points. Two inputs: the surface
of the mean and of its uncertainty, or the decision surface of classes. More inputs: targets against
predictions, or how reliable the probabilities of classes are.";

/// Options of `sparsegp plot`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct PlotArgs {
    /// Model file
    pub model: PathBuf,
    /// Table with the model's input and target columns; not needed for pictures that show only the model
    pub data: Option<PathBuf>,
    /// What to draw
    #[arg(long, value_enum, default_value_t)]
    pub what: What,
    /// Where the picture goes, as SVG or, if the name ends so, PNG
    #[arg(long, short, value_name = "FILE.svg")]
    pub output: PathBuf,
    /// Rows that this column of this file marks are shown as test rows; without it those that the fit held out
    #[arg(long, value_name = "FILE:COLUMN")]
    pub test_mask: Option<String>,
    /// What to do with rows that lack a number
    #[arg(long, value_enum, default_value_t)]
    pub missing: MissingChoice,
    /// Title, instead of the caption
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// Name of the axis to the right
    #[arg(long, value_name = "TEXT")]
    pub x_label: Option<String>,
    /// Name of the axis upwards
    #[arg(long, value_name = "TEXT")]
    pub y_label: Option<String>,
    /// Size in pixels; of each panel where there are several
    #[arg(long, value_name = "WIDTHxHEIGHT", value_parser = look::size, default_value = "900x520")]
    pub size: (u32, u32),
    /// How the table is written.
    #[command(flatten)]
    pub table: TableArgs,
}

/// Runs the command.
pub fn run(args: &PlotArgs, context: &Context) -> Result<Reply> {
    let path = &args.output;
    refuse_overwriting([path], [&args.model].into_iter().chain(&args.data))?;
    plot::check_name("--output", path)?;
    atomic::check_writable(path)?;
    let fitted = io::load(&args.model)?;
    if let Some(why) = args.what.cannot(&fitted) {
        let model = args.model.display();
        return Err(Fail::usage(format!("{model}: there is no such picture of this model: {why}")));
    }
    let look = Look {
        title: args.title.clone(),
        x_label: args.x_label.clone(),
        y_label: args.y_label.clone(),
        size: args.size,
    };
    let reply = |judged: Option<&AllScores>| Reply {
        text: format!("plot written to {}\n", path.display()),
        json: serde_json::json!({
            "command": "plot",
            "model": args.model,
            "data": args.data,
            "rows": judged.map(|judged| judged.overall.rows()),
            "dropped": judged.map(|judged| judged.dropped),
            "files": { "plot": path },
        }),
        is_result: false,
    };
    let table = match (&args.data, args.what.needs_rows()) {
        (_, false) => {
            plot::write(path, &plot::of_model(args.what, &fitted, &look)?)?;
            return Ok(reply(None));
        }
        (Some(data), true) => args.table.open_for(data, &fitted)?,
        (None, true) => {
            return Err(Fail::usage("this picture needs rows: give a table after the model"));
        }
    };
    let (selection, note) = kind::judged(&fitted, &table);
    context.warn(note.as_slice());
    let mask = args.test_mask.as_deref();
    let how = args.missing.into();
    let (mut opened, rows) = remembered::open(table, &selection, how, &fitted, mask)?;
    if rows == remembered::Rows::Unknown {
        opened.named = "rows";
    }
    if args.what == What::Inducing {
        let quality = inducing::judge(&fitted, &opened, None)?;
        plot::write(path, &plot::explained(&fitted, &quality, &look)?)?;
        return Ok(reply(None));
    }
    let judged = score::score(&fitted, opened.test.as_ref().unwrap_or(&opened.train), context)?;
    if judged.dropped > 0 {
        let rows = count(judged.dropped, "row");
        context.warn(&[format!("{rows} with missing numbers left out")]);
    }
    context.note(&rows.sentence());
    plot::write(path, &plot::of_rows(args.what, &fitted, &opened, &judged, &look)?)?;
    Ok(reply(Some(&judged)))
}

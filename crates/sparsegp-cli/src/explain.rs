//! `sparsegp explain`: how predictions change along every input, and what share of their variation each explains.

use crate::context::{Context, Reply};
use crate::data::{BLOCK, MissingChoice};
use crate::fail::{Fail, Result};
use crate::format::{Align, Table, count, number, rounded};
use crate::outputs::refuse_overwriting;
use crate::plot;
use crate::predictions::field;
use crate::sink::Sink;
use crate::table_args::TableArgs;
use crate::values::at_least_two;
use clap::Args;
use serde_json::json;
use sparsegp::data::date_text;
use sparsegp::explain::{Curve, Explainer, Kind, Options, Sensitivity, Share};
use sparsegp::fit::Fitted;
use sparsegp::io;
use sparsegp::linalg::Mat;
use sparsegp::{Error, atomic};
use std::path::PathBuf;

const AFTER: &str = "\
Examples:
  sparsegp explain model.safetensors data.csv
  sparsegp explain model.safetensors data.csv --plot effects.svg -o effects.csv
  sparsegp explain model.safetensors data.csv --accumulated --input age --input income --plot effects.svg

Prints what share of the variation of predictions over the rows of TABLE every input explains, by itself and with
its interactions (Sobol indices, with 95 % intervals of what is not known of the function). They take inputs as
independent of each other; a warning names inputs that are not.

--plot and --output are of effects: the average prediction were an input the same in all rows (partial dependence),
or with --accumulated its change where rows are (accumulated local effects, mean 0), for inputs that depend on each
other. Both are of the expected observation, in the data's units; of classes they are probabilities. The columns
of --output: response, input, effect (partial or accumulated; categories have the former only), value, mean,
lower and upper end of the 95 % interval.";

/// Options of `sparsegp explain`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct ExplainArgs {
    /// Model file
    pub model: PathBuf,
    /// Table with the model's input columns: the rows that effects are averages over
    #[arg(value_name = "TABLE")]
    pub data: PathBuf,
    /// Draw the effects, as SVG or, if the name ends so, PNG
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
    /// Write the effects as CSV; compressed if the name ends in .gz
    #[arg(long, short, value_name = "OUT.csv")]
    pub output: Option<PathBuf>,
    /// Effects of these inputs only
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',')]
    pub input: Vec<String>,
    /// Accumulated local effects, for inputs that depend on each other
    #[arg(long)]
    pub accumulated: bool,
    /// Values of an input at which its effect is evaluated
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = at_least_two, default_value_t = 20)]
    pub points: usize,
    /// Rows of the table, picked at random, that effects are averages over
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = at_least_two, default_value_t = 200)]
    pub rows: usize,
    /// What to do with rows that lack a number
    #[arg(long, value_enum, default_value_t)]
    pub missing: MissingChoice,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// How the table is written.
    #[command(flatten)]
    pub table: TableArgs,
}

/// How large a correlation has to be for a warning.
const CORRELATED: f64 = 0.7;

/// Returns the inputs of all rows.
fn rows(args: &ExplainArgs, fitted: &Fitted, context: &Context) -> Result<Mat<f64>> {
    let table = args.table.open_for(&args.data, fitted)?;
    let selected = table.select(&fitted.selection_of_new())?.missing(args.missing.into());
    // row after row
    let (mut values, mut rows) = (Vec::new(), 0);
    let mut blocks = selected.blocks(BLOCK, None)?;
    for block in blocks.by_ref() {
        context.check_stop()?;
        let x = block?.x;
        for i in 0..x.nrows() {
            values.extend((0..x.ncols()).map(|q| x[(i, q)]));
        }
        rows += x.nrows();
    }
    if blocks.dropped() > 0 {
        let dropped = count(blocks.dropped(), "row");
        context.warn(&[format!("{dropped} with missing numbers left out")]);
    }
    let inputs = values.len() / rows.max(1);
    Ok(Mat::from_fn(rows, inputs, |i, q| values[i * inputs + q]))
}

/// Returns which columns have effects.
fn chosen(args: &ExplainArgs, explainer: &Explainer<'_>) -> Result<Vec<usize>> {
    let columns = explainer.columns();
    if args.input.is_empty() {
        return Ok((0..columns.len()).collect());
    }
    let place = |name: &String| {
        columns.iter().position(|own| own.name == *name).ok_or_else(|| {
            let all: Vec<&str> = columns.iter().map(|own| own.name.as_str()).collect();
            let all = all.join(", ");
            Fail::usage(format!("--input {name}: the model has no such input; it has {all}"))
        })
    };
    args.input.iter().map(place).collect()
}

/// Runs the command.
pub fn run(args: &ExplainArgs, context: &Context) -> Result<Reply> {
    let path = args.output.as_deref();
    refuse_overwriting(args.output.iter().chain(&args.plot), [&args.data, &args.model])?;
    if let Some(plot) = &args.plot {
        plot::check_name("--plot", plot)?;
        atomic::check_writable(plot)?;
    }
    let fitted = io::load(&args.model)?.without_input_deviations();
    let x = rows(args, &fitted, context)?;
    let options =
        Options { points: args.points, rows: args.rows, seed: args.seed, ..Options::default() };
    let explainer = Explainer::new(&fitted, x.as_ref(), options)?;
    let of = chosen(args, &explainer)?;
    if let Some((one, other, how)) = explainer.most_correlated()
        && how.abs() > CORRELATED
    {
        let how = number(how, 2);
        context.warn(&[format!(
            "`{one}` and `{other}` are not independent (their correlation is {how}): shares of such inputs cannot be separated, \
             and effects are better taken with --accumulated"
        )]);
    }
    let (shares, why) =
        explainer.sensitivity(&|| context.check_stop().map_err(|_| Error::Interrupted))?;
    if let Some(why) = &why {
        context.warn(&[format!("shares have no intervals: {why}")]);
    }
    let mut curves = Vec::new();
    if args.plot.is_some() || path.is_some() || context.json() {
        for column in of {
            context.check_stop()?;
            curves.push(match args.accumulated {
                true => explainer.accumulated(column)?,
                false => explainer.partial(column)?,
            });
        }
    }
    if let Some(path) = path {
        let mut sink = Sink::open(Some(path))?;
        let name = path.display().to_string();
        let lines = written(&explainer, &curves);
        sink.write(&lines).map_err(|e| Fail::output(&name, &e))?;
        sink.finish(&name)?;
    }
    if let Some(plot) = &args.plot {
        plot::write(plot, &plot::effects(&explainer, &curves, &plot::Look::default())?)?;
    }
    let mut text = said(&explainer, &shares);
    for file in args.output.iter().chain(&args.plot) {
        text += &format!("effects written to {}\n", file.display());
    }
    let mut json = explainer.to_json(&shares, &curves);
    json["command"] = "explain".into();
    json["model"] = json!(args.model);
    json["data"] = json!(args.data);
    json["rows"] = x.nrows().into();
    json["files"] = json!({ "plot": args.plot, "effects": path });
    Ok(Reply { text, json, is_result: true })
}

fn share(own: &Share) -> String {
    match own.lower.is_nan() {
        true => number(own.mean, 2),
        false => {
            let [mean, lower, upper] = [own.mean, own.lower, own.upper].map(|v| rounded(v, 2));
            format!("{mean} [{lower}, {upper}]")
        }
    }
}

/// Returns the tables of shares, the largest first.
fn said(explainer: &Explainer<'_>, shares: &[Sensitivity]) -> String {
    let mut text = String::new();
    for (name, own) in explainer.responses().iter().zip(shares) {
        if own.deviation == 0.0 {
            text += &format!(
                "predictions of {name} are the same in all rows: no input explains anything\n"
            );
            continue;
        }
        let deviation = number(own.deviation, 3);
        text += &format!(
            "shares of the variance of predictions of {name}, whose standard deviation over the rows is {deviation}\n"
        );
        let mut table = Table::new(&[
            ("input", Align::Left),
            ("alone", Align::Right),
            ("with interactions", Align::Right),
        ]);
        let mut order: Vec<usize> = (0..own.total.len()).collect();
        order.sort_by(|a, b| own.total[*b].mean.total_cmp(&own.total[*a].mean));
        for j in order {
            let name = explainer.columns()[j].name.clone();
            table.row(vec![name, share(&own.first[j]), share(&own.total[j])]);
        }
        text += &table.render(2);
        let first: f64 = own.first.iter().map(|own| own.mean).sum();
        let rest = 100.0 * (1.0 - first).clamp(0.0, 1.0);
        text += &format!("  interactions of inputs make up {rest:.0} %\n");
    }
    text
}

/// Returns a value of a column, as tables have it.
fn value(explainer: &Explainer<'_>, curve: &Curve, k: usize) -> String {
    match explainer.columns()[curve.column].kind {
        Kind::Levels => curve.labels[k].clone(),
        Kind::Dates => date_text(curve.at[k]),
        Kind::Numbers => curve.at[k].to_string(),
    }
}

/// Returns the effects as CSV.
fn written(explainer: &Explainer<'_>, curves: &[Curve]) -> String {
    let mut text = "response,input,effect,value,mean,lower,upper\n".to_owned();
    for (c, response) in explainer.responses().iter().enumerate() {
        for curve in curves {
            let name = field(&explainer.columns()[curve.column].name);
            let what = if curve.centred { "accumulated" } else { "partial" };
            for k in 0..curve.at.len() {
                let at = (k, c);
                let value = field(&value(explainer, curve, k));
                let ends = [curve.mean[at], curve.lower[at], curve.upper[at]];
                let ends = ends.map(|v| v.to_string()).join(",");
                text += &format!("{},{name},{what},{value},{ends}\n", field(response));
            }
        }
    }
    text
}

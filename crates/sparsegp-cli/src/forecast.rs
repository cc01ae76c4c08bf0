//! `sparsegp forecast`: predictions for the times after the last of a series.

use crate::context::{Context, Reply};
use crate::data::BLOCK;
use crate::fail::{Fail, Result};
use crate::format::count;
use crate::kind::Kind;
use crate::outputs::{refuse_both_on_stdout, refuse_overwriting};
use crate::plot::{self, Series, Stretch};
use crate::predictions::FormArgs;
use crate::sink::Sink;
use crate::table_args::TableArgs;
use clap::Args;
use serde_json::json;
use sparsegp::data::{Block, Encoding, Missing, Selection, date_text, future};
use sparsegp::fit::{Fitted, Of};
use sparsegp::linalg::Mat;
use sparsegp::{atomic, io};
use std::path::{Path, PathBuf};

/// Horizons of the past that are drawn, at most.
const SHOWN: f64 = 10.0;
/// Places of the curves before and after the last row.
const PAST: usize = 1200;
const AHEAD: usize = 400;

const AFTER: &str = "\
Examples:
  sparsegp forecast model.safetensors sales.csv --horizon 52w
  sparsegp forecast model.safetensors sales.csv --horizon 6mo --step 1d --terms -o forecast.csv
  sparsegp forecast model.safetensors depth.csv --horizon 20 --step 0.5
  sparsegp forecast model.safetensors sales.csv --horizon 1y -o forecast.csv --plot forecast.svg

For models of one input, a date or a number that means time. TABLE is what has been observed: the forecast begins
after its last time, in steps of the median distance of its times, or of calendar months, quarters or years where
dates follow each other so. Update the model first with rows that it has not learnt from (`sparsegp update`).

Exposures are taken to be 1 and known noise variances 0, with a warning, and times to be exact.
Lengths of time are 90min, 36h, 10d, 52w, 6mo, 4q or 1y; a number without a unit counts steps. Writes a row for every
time: the time, then what `sparsegp predict` writes. A model with other inputs needs their future values: write
them to a table with the times, and use `sparsegp predict`.";

/// Options of `sparsegp forecast`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct ForecastArgs {
    /// Model file
    pub model: PathBuf,
    /// Table with the times that have been observed
    #[arg(value_name = "TABLE")]
    pub data: PathBuf,
    /// How far: a number of steps, or of dates a length of time such as 52w, 6mo or 1y
    #[arg(long, value_name = "LENGTH")]
    pub horizon: String,
    /// Distance of the times, in units of the input or as a length of time such as 1d; by default that of the table
    #[arg(long, value_name = "LENGTH")]
    pub step: Option<String>,
    /// Write CSV here instead of to stdout; compressed if the name ends in .gz
    #[arg(long, short, value_name = "OUT.csv")]
    pub output: Option<PathBuf>,
    /// Draw the last rows and the forecast along time, with 95 % intervals, as SVG or PNG. Of a long series the last ten
    /// horizons are shown
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
    /// What is predicted.
    #[command(flatten)]
    pub form: FormArgs,
    /// How the table is written.
    #[command(flatten)]
    pub table: TableArgs,
}

/// Returns the name of the input that is time, and whether it is a date.
fn time(fitted: &Fitted) -> Result<(String, bool)> {
    let [column] = &fitted.columns[..] else {
        let names: Vec<&str> = fitted.columns.iter().map(|own| own.name.as_str()).collect();
        return Err(Fail::usage(format!(
            "a forecast is for models of one input, time; this one has {} ({}): write their future values to a table, and \
             use `sparsegp predict`",
            names.len(),
            names.join(", ")
        )));
    };
    match column.encoding {
        Encoding::Date | Encoding::Calendar(_) => Ok((column.name.clone(), true)),
        Encoding::Number => Ok((column.name.clone(), false)),
        Encoding::Filled(own) => Ok((column.name.clone(), own.date)),
        _ => Err(Fail::usage(format!(
            "a forecast is for models of time; the input `{}` is none",
            column.title()
        ))),
    }
}

/// Returns the times in the table.
fn observed(args: &ForecastArgs, fitted: &Fitted, context: &Context) -> Result<Vec<f64>> {
    let table = args.table.open_for(&args.data, fitted)?;
    let rows = table.select(&fitted.selection_of_new())?.missing(Missing::Drop);
    let mut times = Vec::new();
    let mut blocks = rows.blocks(BLOCK, None)?;
    for block in blocks.by_ref() {
        context.check_stop()?;
        let block = block?;
        times.extend((0..block.x.nrows()).map(|i| block.x[(i, 0)]));
    }
    if blocks.dropped() > 0 {
        context.warn(&[format!("{} without a time left out", count(blocks.dropped(), "row"))]);
    }
    Ok(times)
}

/// Returns the inputs that times become.
fn inputs(fitted: &Fitted, times: &[f64]) -> Mat<f64> {
    let rows: Vec<Vec<f64>> =
        times.iter().map(|time| fitted.columns[0].encoding.of_number(*time)).collect();
    Mat::from_fn(times.len(), fitted.input_names.len(), |i, q| rows[i][q])
}

/// Returns what is taken for the further number of times that are to come, such as an exposure, in
/// words.
///
/// # Errors
/// Where there is no default for it.
fn further(fitted: &Fitted) -> Result<Option<String>> {
    let (Some(name), Some(extra)) = (&fitted.extra_name, fitted.model.likelihood.extra()) else {
        return Ok(None);
    };
    match extra.default {
        Some(default) => Ok(Some(format!(
            "the model was learnt with `{name}` ({}): every time of the forecast is taken to have {default}; for others, write \
             them to a table with the times, and use `sparsegp predict`",
            extra.name
        ))),
        None => Err(Fail::usage(format!(
            "the model needs `{name}` ({}) of every time: write them to a table with the times, and use `sparsegp predict`",
            extra.name
        ))),
    }
}

/// Returns the times and values in one column each of the rows of a table, where it has targets;
/// rates, where rows have exposures.
fn rows(args: &ForecastArgs, fitted: &Fitted, context: &Context) -> Result<(Vec<f64>, Mat<f64>)> {
    let table = args.table.open_for(&args.data, fitted)?;
    let named = |name: &String| table.columns().contains(name);
    let targets = fitted.target_names.iter().filter(|name| named(name)).cloned().collect();
    let mut selection = Selection { targets, ..fitted.selection_of_new() };
    let exposure = fitted.extra_name.as_ref().filter(|name| named(name));
    if let Some(name) = exposure {
        selection = selection.extra(name);
    }
    let (mut times, mut values) = (Vec::new(), vec![Vec::new(); fitted.target_names.len()]);
    for block in table.select(&selection)?.missing(Missing::Keep).blocks(BLOCK, None)? {
        context.check_stop()?;
        let block = block?;
        for i in 0..block.x.nrows() {
            times.push(block.x[(i, 0)]);
            let exposed = fitted.model.likelihood.extra().is_some_and(|own| own.name == "exposure");
            let per = if exposed { block.extra.get(i).copied().unwrap_or(1.0) } else { 1.0 };
            for (p, own) in values.iter_mut().enumerate() {
                let at = selection.targets.iter().position(|name| *name == fitted.target_names[p]);
                own.push(at.map_or(f64::NAN, |at| block.y[(i, at)] / per));
            }
        }
    }
    let all = Mat::from_fn(times.len(), values.len(), |i, p| values[p][i]);
    Ok((times, all))
}

/// Draws the last rows with what the model says of them, and the forecast until `end`.
fn draw(
    path: &Path,
    args: &ForecastArgs,
    fitted: &Fitted,
    end: f64,
    context: &Context,
) -> Result<()> {
    let (times, values) = rows(args, fitted, context)?;
    let finite = || times.iter().copied().filter(|time| time.is_finite());
    let (first, last) =
        (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
    // rows that have left a stream are not known any more
    let kept = fitted.posterior.past().and_then(|_| fitted.posterior.kept_rows());
    let kept = kept.map_or(first, |rows| fitted.scaler.unscaled_input(0, rows.x[(0, 0)]));
    let start = first.max(last - SHOWN * (end - last)).max(kept);
    let (dates, name) = (fitted.columns[0].encoding.is_date(), &fitted.columns[0].name);
    let stretch = |from: f64, to: f64, places: usize| -> Result<Vec<Stretch>> {
        let even = |i: usize| from + (to - from) * i as f64 / (places - 1) as f64;
        let at: Vec<f64> = match fitted.columns[0].encoding.holidays() {
            // holidays are whole days
            Some(_) => (from.floor() as i64..=to.floor() as i64).map(|day| day as f64).collect(),
            None => (0..places).map(even).collect(),
        };
        let grid = inputs(fitted, &at);
        let known =
            fitted.predict_with_quantiles(grid.as_ref(), &[], &[0.025, 0.975], Of::Observations)?;
        let ends = |q: usize, i: usize, p: usize| known.quantiles[q][(i, p)];
        let of = |p| (0..at.len()).map(move |i| (i, p));
        let line = |p| {
            of(p).map(|(i, p)| [at[i], known.mean[(i, p)], ends(0, i, p), ends(1, i, p)]).collect()
        };
        Ok((0..fitted.target_names.len()).map(|p| Stretch(line(p))).collect())
    };
    let (past, ahead) = (stretch(start, last, PAST)?, stretch(last, end, AHEAD)?);
    let panels: Vec<Series> = past
        .into_iter()
        .zip(ahead)
        .enumerate()
        .map(|(p, (past, ahead))| Series {
            caption: plot::caption(fitted, p),
            names: (name.clone(), fitted.target_names[p].clone()),
            dates,
            observed: (0..times.len())
                .filter(|i| times[*i] >= start)
                .map(|i| (times[i], values[(i, p)]))
                .collect(),
            past: Some(past),
            ahead: vec![ahead],
            begins: vec![last],
        })
        .collect();
    plot::series(path, &panels)
}

/// Runs the command.
pub fn run(args: &ForecastArgs, context: &Context) -> Result<Reply> {
    let path = args.output.as_deref();
    refuse_both_on_stdout(path, context.json(), "forecast")?;
    refuse_overwriting(
        [&args.output, &args.plot].into_iter().flatten(),
        [&args.data, &args.model],
    )?;
    if let Some(path) = &args.plot {
        plot::check_name("--plot", path)?;
        atomic::check_writable(path)?;
    }
    // nobody knows the errors of times that are to come
    let fitted = io::load(&args.model)?.without_input_deviations();
    let (name, dates) = time(&fitted)?;
    if args.plot.is_some() && Kind::of(&fitted) == Kind::Classes {
        return Err(Fail::usage(
            "--plot draws numbers along time, and the model predicts classes: leave it out",
        ));
    }
    context.warn(further(&fitted)?.as_slice());
    let times = observed(args, &fitted, context)?;
    let next = future(&times, dates, &args.horizon, args.step.as_deref())?;
    context
        .warn(fitted.calendar_remark(inputs(&fitted, &next[next.len() - 1..]).as_ref()).as_slice());
    let form = args.form.form(&fitted, std::slice::from_ref(&name), false)?;
    let mut sink = Sink::open(path)?;
    let out = path.map_or("stdout".to_owned(), |path| path.display().to_string());
    let failed = |e: std::io::Error| Fail::output(&out, &e);
    let text = |time: f64| if dates { date_text(time) } else { time.to_string() };
    sink.write(&form.header()?).map_err(failed)?;
    for (part, times) in next.chunks(BLOCK).enumerate() {
        context.check_stop()?;
        let start = part * BLOCK;
        let block = Block {
            start,
            rows: (start..start + times.len()).collect(),
            x: inputs(&fitted, times),
            y: Mat::zeros(times.len(), 0),
            weights: Vec::new(),
            extra: Vec::new(),
            ids: vec![times.iter().map(|time| text(*time)).collect()],
        };
        for line in form.lines(&args.data, &fitted, &block)? {
            sink.write(&line).map_err(failed)?;
        }
    }
    sink.finish(&out)?;
    let (first, last) = (text(next[0]), text(next[next.len() - 1]));
    let made = count(next.len(), "time");
    let mut said = match path {
        Some(_) => format!("{made} from {first} to {last} predicted, written to {out}"),
        None => String::new(),
    };
    if let Some(plot) = &args.plot {
        draw(plot, args, &fitted, next[next.len() - 1], context)?;
        match path {
            Some(_) => said += &format!("\nplot written to {}", plot.display()),
            // the table is on stdout
            None => context.note(&format!("plot written to {}", plot.display())),
        }
    }
    let json = json!({
        "command": "forecast", "model": args.model, "data": args.data, "output": path,
        "times": next.len(), "first": first, "last": last, "plot": args.plot,
    });
    Ok(Reply { text: said, json, is_result: false })
}

//! `sparsegp embed`: places of rows in a few dimensions.

use crate::context::{Context, Reply};
use crate::fail::{Fail, Result};
use crate::format::{count, number, seconds};
use crate::outputs::refuse_overwriting;
use crate::plot::{self, Look, latent::Colours};
use crate::predictions::field;
use crate::progress::Ticker;
use crate::saving;
use crate::table_args::TableArgs;
use crate::values;
use clap::Args;
use sparsegp::atomic::{self, write_atomically};
use sparsegp::data::{Loaded, Missing, ReadOptions, Selection, Table};
use sparsegp::latent::{
    EmbedOptions, Embedding, FittedGplvm, GplvmBatches, GplvmOptions, GplvmProgress, LatentStart,
    fit_gplvm_watched,
};
use sparsegp::linalg::Mat;
use sparsegp::{Error, error::in_shell, io};
use std::path::{Path, PathBuf};
use std::time::Instant;

const AFTER: &str = "\
Examples:
  sparsegp embed table.csv --dimensions 5 -o map.safetensors --plot map.svg --color species
  sparsegp embed table.csv --ignore id --coordinates places.csv --id id
  sparsegp embed new.csv --with map.safetensors --coordinates places.csv
  sparsegp embed gaps.csv --with map.safetensors --fill whole.csv

Every row gets a place, with its uncertainty, in a few dimensions, such that smooth functions of the place explain all
columns of numbers (Bayesian GP-LVM; Titsias & Lawrence 2010, with the bound of 2025). Dimensions that nothing needs are
switched off: ask for a few too many, and look at their relevance. Cells may be missing; --fill writes what they
probably hold, with standard deviations. Columns are standardised, unless --one-scale. New rows are placed by a saved map without
training.";

/// Options of `sparsegp embed`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct EmbedArgs {
    /// Table whose rows are placed
    pub data: PathBuf,
    /// Place the rows by this saved map, without training
    #[arg(long, value_name = "MAP.safetensors", conflicts_with_all = ["output", "dimensions", "inducing", "kernel", "method",
          "columns", "ignore", "restarts", "random_start", "one_scale", "max_iterations", "batch", "epochs", "seed"])]
    pub with: Option<PathBuf>,
    /// Write the map here
    #[arg(long, short, value_name = "MAP.safetensors")]
    pub output: Option<PathBuf>,
    /// Columns to explain, in this order; by default all but --ignore, --id and --color
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',')]
    pub columns: Vec<String>,
    /// Columns to leave out; repeatable
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',', conflicts_with = "columns")]
    pub ignore: Vec<String>,
    /// Pass these columns through to the coordinates, in this order
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',')]
    pub id: Vec<String>,
    /// Dimensions, at most
    #[arg(long, short, value_name = "Q", default_value = "2", value_parser = values::at_least_one)]
    pub dimensions: usize,
    /// Inducing points
    #[arg(long, value_name = "M", default_value = "50", value_parser = values::at_least_one)]
    pub inducing: usize,
    /// Kernel: rbf, linear, constant and white, their sums, and products with constants
    #[arg(long, value_name = "KERNEL", default_value = "rbf")]
    pub kernel: String,
    /// Bound: titsias2025, titsias2009 or spherical
    #[arg(long, value_name = "METHOD", default_value = "titsias2025")]
    pub method: String,
    /// Trainings, each from another start, of which the best is kept: there are many local optima
    #[arg(long, value_name = "N", default_value = "5", value_parser = values::at_least_one)]
    pub restarts: usize,
    /// Start at random places instead of principal components
    #[arg(long)]
    pub random_start: bool,
    /// Divide all columns by one number: those that vary more count more
    #[arg(long)]
    pub one_scale: bool,
    /// Most iterations of a training
    #[arg(long, value_name = "N", default_value = "5000", value_parser = values::at_least_one)]
    pub max_iterations: usize,
    /// Train by minibatches of so many rows, for tables of tens of thousands: 1000 rows are trained at once, all others start near
    /// those that they are like
    #[arg(long, value_name = "B", value_parser = values::at_least_one)]
    pub batch: Option<usize>,
    /// How often minibatches see every row [default: 20]
    #[arg(long, value_name = "N", requires = "batch", value_parser = values::at_least_one)]
    pub epochs: Option<usize>,
    /// Seed of whatever is random
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub seed: u64,
    /// Write the places as CSV: means z1, z2, … and standard deviations z1_sd, …
    #[arg(long, value_name = "OUT.csv")]
    pub coordinates: Option<PathBuf>,
    /// Write the columns as CSV with missing cells filled in, and standard deviations COLUMN_sd (0 where a cell was there)
    #[arg(long, value_name = "OUT.csv")]
    pub fill: Option<PathBuf>,
    /// Draw the two most relevant dimensions and the relevance of all, as SVG or PNG
    #[arg(long, value_name = "MAP.svg")]
    pub plot: Option<PathBuf>,
    /// Colour of the rows in the picture
    #[arg(long, value_name = "COLUMN", requires = "plot")]
    pub color: Option<String>,
    /// How the table is written.
    #[command(flatten)]
    pub table: TableArgs,
}

/// Name of the annotation with how the cells were written.
const READING: &str = "reading";

/// Returns the columns that are explained.
fn columns(args: &EmbedArgs, table: &Table, map: Option<&FittedGplvm>) -> Result<Vec<String>> {
    if let Some(map) = map {
        return Ok(map.names.clone());
    }
    if !args.columns.is_empty() {
        return Ok(args.columns.clone());
    }
    let all = table.columns();
    let unknown = args.ignore.iter().find(|name| !all.contains(name));
    if let Some(name) = unknown {
        return Err(Fail::usage(format!(
            "--ignore {name}: there is no such column; nearest: {}",
            sparsegp::error::nearest(name, all.iter().map(String::as_str)).join(", ")
        )));
    }
    let left = |name: &&String| {
        !args.ignore.contains(name) && !args.id.contains(name) && args.color.as_ref() != Some(name)
    };
    // an index that pandas wrote is not data
    let index = |name: &&String| {
        name.is_empty() || *name == "Unnamed: 0" || name.starts_with("__index_level_")
    };
    Ok(all.iter().filter(left).filter(|name| !index(name)).cloned().collect())
}

/// Reads the rows: cells of the columns as targets, NaN where missing, and texts.
fn read(args: &EmbedArgs, table: &Table, names: &[String]) -> Result<Loaded> {
    for name in names {
        if table.holds_labels(name)? {
            return Err(Fail::usage(format!(
                "{}: column `{name}` holds labels, and only numbers can be explained{}",
                args.data.display(),
                match args.with {
                    Some(_) => String::new(),
                    None => {
                        let own = in_shell(name);
                        format!(
                            ": leave it out with --ignore {own}, or colour the picture by it with --color {own}"
                        )
                    }
                }
            )));
        }
    }
    let mut texts = args.id.clone();
    texts.extend(args.color.iter().filter(|name| !args.id.contains(name)).cloned());
    let selection = Selection::targets_alone(names).ids(texts);
    Ok(table.select(&selection)?.missing(Missing::Keep).read_all()?)
}

fn train(args: &EmbedArgs, y: &Mat<f64>, context: &Context) -> Result<(FittedGplvm, f64)> {
    let options = GplvmOptions {
        dimensions: args.dimensions,
        inducing: args.inducing,
        kernel: args.kernel.clone(),
        method: args.method.clone(),
        start: if args.random_start { LatentStart::Random } else { LatentStart::Pca },
        restarts: args.restarts,
        iterations: args.max_iterations,
        batches: args.batches(),
        standardise: !args.one_scale,
        seed: args.seed,
        ..GplvmOptions::default()
    };
    let mut ticker = Ticker::new(context);
    let begun = Instant::now();
    let (mut training, mut since) = (0, Instant::now());
    let steps = args.batches().map_or(0, |own| own.epochs * y.nrows().div_ceil(own.rows));
    let mut by_batches = None;
    let mut watch = |at: GplvmProgress| {
        if let Some(epoch) = at.epoch {
            let since = *by_batches.get_or_insert_with(Instant::now);
            let rate = at.iteration as f64 / since.elapsed().as_secs_f64().max(1e-9);
            ticker.say(format!(
                "epoch {epoch}, batch {} of {steps}, bound {}, {} batches/s, ends in {}",
                at.iteration,
                number(at.bound, 7),
                number(rate, 3),
                seconds((steps - at.iteration.min(steps)) as f64 / rate)
            ));
            return !context.interrupted();
        }
        if at.restart != training {
            (training, since) = (at.restart, Instant::now());
        }
        let rate = (at.iteration as f64) / since.elapsed().as_secs_f64().max(1e-9);
        if at.restart >= args.restarts {
            ticker.say(format!(
                "from fewer dimensions: iteration {} of at most {}, bound {}, {} it/s",
                at.iteration,
                args.max_iterations,
                number(at.bound, 7),
                number(rate, 3)
            ));
            return !context.interrupted();
        }
        let which = match args.restarts {
            1 => String::new(),
            several => format!("training {} of {several}: ", at.restart + 1),
        };
        let all = args.max_iterations * (args.restarts - at.restart);
        let left = (all - at.iteration.min(all)) as f64 / rate;
        let text = format!(
            "{which}iteration {} of at most {}, bound {}, {} it/s, ends in {} at the latest",
            at.iteration,
            args.max_iterations,
            number(at.bound, 7),
            number(rate, 3),
            seconds(left)
        );
        ticker.say(text);
        !context.interrupted()
    };
    let fitted =
        fit_gplvm_watched(y.as_ref(), &options, &mut watch).map_err(|error| match error {
            Error::Invalid(_) | Error::Spec { .. } => Fail::of_usage(error),
            other => other.into(),
        })?;
    Ok((fitted, begun.elapsed().as_secs_f64()))
}

/// Names of the columns that are written, beside those that are passed through.
struct Heads {
    places: Vec<String>,
    filled: Vec<String>,
}

impl Heads {
    /// Refuses, before any work, two columns of one name in a file.
    fn new(args: &EmbedArgs, dimensions: usize, columns: &[String]) -> Result<Self> {
        let with_sd = |names: Vec<String>| {
            let sds: Vec<String> = names.iter().map(|name| format!("{name}_sd")).collect();
            [names, sds].concat()
        };
        let places = with_sd((1..=dimensions).map(|k| format!("z{k}")).collect());
        let own = Self { places, filled: with_sd(columns.to_vec()) };
        // without any file the places go to stdout
        let bare = args.with.is_some() && args.fill.is_none() && args.plot.is_none();
        let files =
            [(args.coordinates.is_some() || bare, &own.places), (args.fill.is_some(), &own.filled)];
        for (_, names) in files.into_iter().filter(|(written, _)| *written) {
            let all: Vec<&String> = args.id.iter().chain(names).collect();
            let twice = (1..all.len()).find(|at| all[..*at].contains(&all[*at]));
            if let Some(name) = twice.map(|at| all[at]) {
                return Err(Fail::usage(format!(
                    "two columns that are written would have the name `{name}`; rename it in the table, or leave \
                     --id {} out",
                    in_shell(name)
                )));
            }
        }
        Ok(own)
    }
}

/// Returns the lines of CSV: texts of the columns that are passed through, then numbers.
fn csv(
    ids: &[(String, &[String])],
    names: &[String],
    cell: impl Fn(usize, usize) -> f64,
    n: usize,
) -> String {
    let head: Vec<String> =
        ids.iter().map(|(name, _)| field(name)).chain(names.iter().map(|n| field(n))).collect();
    let mut text = head.join(",") + "\n";
    for i in 0..n {
        let own = ids.iter().map(|(_, cells)| field(&cells[i]));
        let cells: Vec<String> =
            own.chain((0..names.len()).map(|j| cell(i, j).to_string())).collect();
        text += &cells.join(",");
        text += "\n";
    }
    text
}

/// Draws the places, coloured by the column that was asked for.
fn draw(
    args: &EmbedArgs,
    path: &Path,
    rows: &Loaded,
    table: &Table,
    embedding: &Embedding,
    relevance: &[f64],
) -> Result<()> {
    let colours = match &args.color {
        None => Colours::None,
        Some(name) => {
            let at = rows.id_names.iter().position(|own| own == name).unwrap_or(0);
            let options = table.read_options().clone();
            Colours::of(name, rows.ids[at].clone(), move |text| options.number(text))
        }
    };
    let (n, columns) = (rows.y.nrows(), rows.y.ncols());
    let caption = format!("{n} × {columns}: {}", args.data.display());
    let mean = embedding.mean.as_ref();
    plot::latent::draw(path, &Look::default(), &caption, mean, relevance, &colours)
}

/// Finds the places of rows: those of the training have theirs, others get some.
fn placed(map: &FittedGplvm, y: &Mat<f64>, trained: bool, context: &Context) -> Result<Embedding> {
    if map.negative > 0 {
        context.warn(&[format!(
            "the unexplained variance of {} is below 0 by more than rounding: fewer inducing points would do",
            count(map.negative, "row")
        )]);
    }
    let embedding = match trained {
        true => {
            let (mean, variance) = map.latent()?;
            Embedding { mean, variance, bounds: Vec::new(), converged: vec![true; y.nrows()] }
        }
        false => map.embed(y.as_ref(), &EmbedOptions::default())?,
    };
    let lost = embedding.converged.iter().filter(|c| !**c).count();
    if lost > 0 {
        context.warn(&[format!("the places of {} had not settled", count(lost, "row"))]);
    }
    Ok(embedding)
}

/// Runs the command.
pub fn run(args: &EmbedArgs, context: &Context) -> Result<Reply> {
    let written = [&args.output, &args.coordinates, &args.fill, &args.plot];
    refuse_overwriting(written.into_iter().flatten(), [&args.data].into_iter().chain(&args.with))?;
    for path in written.into_iter().flatten() {
        atomic::check_writable(path)?;
    }
    if let Some(path) = &args.plot {
        plot::check_name("--plot", path)?;
    }
    if written.iter().all(|path| path.is_none()) && context.json() {
        return Err(Fail::usage("nothing would be kept: add -o, --coordinates, --fill or --plot"));
    }
    let map = args.with.as_ref().map(|path| io::load_gplvm(path)).transpose()?;
    let kept = map.as_ref().and_then(|map| map.annotations.get(READING));
    let reading: ReadOptions =
        kept.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let table = args.table.open_as(&args.data, reading)?;
    let names = columns(args, &table, map.as_ref())?;
    let q = map.as_ref().map_or(args.dimensions, |map| map.model.points().ncols());
    let heads = Heads::new(args, q, &names)?;
    let rows = read(args, &table, &names)?;
    context.warn(&rows.remarks);
    let (y, n) = (&rows.y, rows.y.nrows());
    let missing = (0..names.len()).flat_map(|j| y.col_as_slice(j)).filter(|v| v.is_nan()).count();
    let (map, spent) = match map {
        Some(map) => (map, None),
        None => {
            let (mut map, spent) = train(args, y, context)?;
            map.names.clone_from(&names);
            let reading = serde_json::to_string(table.read_options()).unwrap_or_default();
            map.annotations.insert(READING.into(), reading);
            // before anything else may fail
            if let Some(path) = &args.output {
                saving::save_with(path, &|path| io::save_gplvm(&map, path))?;
            }
            (map, Some(spent))
        }
    };
    let embedding = placed(&map, y, spent.is_some(), context)?;
    let q = embedding.mean.ncols();
    let ids: Vec<(String, &[String])> = args
        .id
        .iter()
        .map(|name| {
            let at = rows.id_names.iter().position(|own| own == name).unwrap_or(0);
            (name.clone(), rows.ids[at].as_slice())
        })
        .collect();
    let places = || {
        let cell = |i: usize, j: usize| match j < q {
            true => embedding.mean[(i, j)],
            false => embedding.variance[(i, j - q)].sqrt(),
        };
        csv(&ids, &heads.places, cell, n)
    };
    if let Some(path) = &args.coordinates {
        write_atomically(path, places().as_bytes())?;
    }
    if let Some(path) = &args.fill {
        let (filled, spread) = map.impute(y.as_ref(), &EmbedOptions::default())?;
        let p = names.len();
        let cell = |i: usize, j: usize| match j < p {
            true => filled[(i, j)],
            false => spread[(i, j - p)].sqrt(),
        };
        write_atomically(path, csv(&ids, &heads.filled, cell, n).as_bytes())?;
    }
    let relevance = map.relevance();
    context.warn(&Vec::from_iter(map.emptiness()));
    if let Some(path) = &args.plot {
        draw(args, path, &rows, &table, &embedding, &relevance)?;
    }
    if spent.is_none() && written.iter().all(|path| path.is_none()) {
        return Ok(Reply { text: places(), json: serde_json::Value::Null, is_result: true });
    }
    reply(args, &map, &embedding, (n, missing), spent, &relevance)
}

/// Returns how the best training ended, in words.
fn ended(map: &FittedGplvm, args: &EmbedArgs) -> String {
    let most = match args.batches().filter(|own| own.rows < map.model.mean.matrix().nrows()) {
        _ if map.status.is_final() => return map.status.to_string(),
        Some(own) => format!("{} epochs", own.epochs),
        None => format!("{} iterations", args.max_iterations),
    };
    format!("stopped after {most}, the most allowed, or by hand; it may improve with more")
}

impl EmbedArgs {
    /// Returns minibatches, if they are asked for.
    fn batches(&self) -> Option<GplvmBatches> {
        let default = GplvmBatches::default();
        let epochs = self.epochs.unwrap_or(default.epochs);
        self.batch.map(|rows| GplvmBatches { rows, epochs, ..default })
    }
}

fn reply(
    args: &EmbedArgs,
    map: &FittedGplvm,
    embedding: &Embedding,
    (n, missing): (usize, usize),
    spent: Option<f64>,
    relevance: &[f64],
) -> Result<Reply> {
    let gaps = match missing {
        0 => String::new(),
        some => format!(", {} missing", count(some, "cell")),
    };
    let mut text = format!("rows        {n} × {}{gaps}\n", map.names.len());
    if let Some(spent) = spent {
        let ended = ended(map, args);
        text += &format!(
            "bound       {} nats (lower bound on the log evidence)\ntraining    {}; {ended}\n",
            number(map.bound, 7),
            seconds(spent),
        );
        if map.restarts.len() > 1 {
            let all: Vec<String> = map.restarts.iter().map(|bound| number(*bound, 5)).collect();
            text += &format!("starts      bounds of {}\n", all.join(", "));
        }
    }
    let used: Vec<String> = relevance
        .iter()
        .enumerate()
        .map(|(q, r)| format!("z{} {}", q + 1, number(*r, 2)))
        .collect();
    text += &format!("relevance   {}\n", used.join(", "));
    // what of a column is noise, of its variance
    let noise = map.posterior.noise();
    text += &format!("noise       {} of the columns' variance\n", number(noise, 3));
    for (what, path) in [
        ("map", &args.output),
        ("places", &args.coordinates),
        ("filled table", &args.fill),
        ("picture", &args.plot),
    ] {
        if let Some(path) = path {
            text += &format!("\n{what} written to {}", path.display());
        }
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let bounds = &embedding.bounds;
    let json = serde_json::json!({
        "command": "embed",
        "data": args.data,
        "with": args.with,
        "rows": n,
        "columns": map.names,
        "missing_cells": missing,
        "bound": spent.map(|_| map.bound),
        "mean_log_density": (!bounds.is_empty()).then(|| mean(bounds)),
        "status": ended(map, args),
        "restarts": map.restarts.iter().map(|r| r.is_finite().then_some(*r)).collect::<Vec<_>>(),
        "seconds": spent,
        "relevance": relevance,
        "noise": map.noise(),
        "inducing_points": map.model.points().nrows(),
        "files": {
            "map": args.output, "coordinates": args.coordinates, "fill": args.fill, "plot": args.plot,
        },
    });
    Ok(Reply { text, json, is_result: false })
}

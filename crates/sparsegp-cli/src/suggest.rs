//! `sparsegp suggest`: the next rows to try, from a table of what was tried.

use crate::context::{Context, Reply};
use crate::fail::{Fail, Result};
use crate::format::count;
use crate::outputs::refuse_overwriting;
use crate::predictions::field;
use crate::sink::Sink;
use crate::table_args::TableArgs;
use crate::values::at_least_one;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use sparsegp::bayesopt::{Best, Goal, Optimiser, Options, Range, Space};
use sparsegp::data::{Categories, Encoding, InputColumn, Missing, Selection};
use std::path::{Path, PathBuf};

const AFTER: &str = "\
Examples:
  sparsegp suggest --input rate=1e-5:1:log --input layers=1:8:integer --input kind=relu,tanh --target loss --count 8
  sparsegp suggest tried.csv --input rate=1e-5:1:log --input layers=1:8:integer --input kind=relu,tanh --target loss
  sparsegp suggest mixes.csv --input water=0:1 --input heat=20:90 --target strength --maximise --constraint 'cost<=12'

Prints rows to try next, with the columns of the inputs. Try them, add them with their outcomes to the
table, and ask again: Bayesian optimisation, which needs few rows. Without a table: rows to begin with.

Inputs are numbers (low:high), whole numbers (low:high:integer), either by factors (…:log), or categories
(a,b,c). A row without outcomes is under way, and others keep away from it; with --missing failed it has
failed. A row without the target that has outcomes of constraints has failed: rows like it are avoided.";

/// What a row without outcomes is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum MissingOutcome {
    /// It is being tried
    #[default]
    Pending,
    /// It was tried and gave nothing
    Failed,
}

/// Options of `sparsegp suggest`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct SuggestArgs {
    /// Table of what was tried; none to begin
    pub data: Option<PathBuf>,
    /// Write CSV here instead of to stdout; compressed if the name ends in .gz
    #[arg(long, short, value_name = "OUT.csv")]
    pub output: Option<PathBuf>,
    /// An input with its range: NAME=LOW:HIGH[:log][:integer] or NAME=A,B,…; repeatable
    #[arg(long, required = true, value_name = "NAME=RANGE")]
    pub input: Vec<String>,
    /// Column to make as small as possible
    #[arg(long, value_name = "COLUMN")]
    pub target: String,
    /// Make the target as large as possible instead
    #[arg(long)]
    pub maximise: bool,
    /// A bound of another column, such as 'weight<=3' or 'strength>=40'; repeatable
    #[arg(long, value_name = "COLUMN<=BOUND")]
    pub constraint: Vec<String>,
    /// Rows to suggest, to be tried at once
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = at_least_one, default_value_t = 1)]
    pub count: usize,
    /// How rows are chosen: ei (expected improvement), ucb(beta=2) or thompson
    #[arg(long, value_name = "NAME", default_value = "ei")]
    pub acquisition: String,
    /// Rows before there is a model; by default three more than inputs
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = at_least_one)]
    pub initial: Option<usize>,
    /// Kernel of the models
    #[arg(long, value_name = "SPEC", default_value = "matern52")]
    pub kernel: String,
    /// Standard deviation of the target's noise, 0 for none; by default it is learnt
    #[arg(long, allow_negative_numbers = true, value_name = "SD")]
    pub noise: Option<f64>,
    /// Allow rows that were tried to be tried again
    #[arg(long)]
    pub repeats: bool,
    /// What a row without outcomes is
    #[arg(long, value_enum, default_value_t)]
    pub missing: MissingOutcome,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// How the table is written.
    #[command(flatten)]
    pub table: TableArgs,
}

/// Runs the command.
pub fn run(args: &SuggestArgs, context: &Context) -> Result<Reply> {
    let path = args.output.as_deref();
    refuse_overwriting(&args.output, args.data.iter())?;
    let mut optimiser = begun(args).map_err(Fail::of_usage)?;
    let mut rows = Vec::new();
    if let Some(data) = &args.data {
        rows = learnt(args, data, &mut optimiser)?;
    }
    context.check_stop()?;
    let best = optimiser.best()?;
    let points = optimiser.ask(args.count)?;
    let space = optimiser.space();
    let row = |best: &Best| rows[best.trial];
    let summary = best.as_ref().map(|best| summary(best, row(best), space, &args.target));
    let mut text = String::new();
    if path.is_some() || !context.json() {
        let mut sink = Sink::open(path)?;
        let name = path.map_or("stdout".to_owned(), |path| path.display().to_string());
        let names = space.dimensions().iter().map(|own| field(&own.name));
        let mut lines = names.collect::<Vec<_>>().join(",") + "\n";
        for point in &points {
            let cells = (0..point.len()).map(|q| cell(space, point, q));
            lines += &(cells.map(|cell| field(&cell)).collect::<Vec<_>>().join(",") + "\n");
        }
        sink.write(&lines).map_err(|e| Fail::output(&name, &e))?;
        sink.finish(&name)?;
        if path.is_some() {
            text = format!("{} to try, written to {name}", count(points.len(), "row"));
        }
    }
    if let Some(summary) = &summary {
        match path {
            Some(_) => text += &format!("\n{summary}"),
            None => context.note(summary),
        }
    }
    let named = |point: &[f64]| -> Value {
        let all = space.dimensions().iter().enumerate();
        all.map(|(q, own)| (own.name.clone(), value(space, point, q)))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    let best = best.map(|best| {
        json!({
            "row": row(&best), "point": named(&best.point), "observed": best.observed,
            "mean": best.mean, "sd": best.sd,
        })
    });
    let json = json!({
        "command": "suggest", "data": args.data, "output": path, "rows": rows.len(),
        "points": points.iter().map(|point| named(point)).collect::<Vec<_>>(), "best": best,
    });
    Ok(Reply { text, json, is_result: false })
}

/// Returns the search that the options describe, without trials.
fn begun(args: &SuggestArgs) -> sparsegp::Result<Optimiser> {
    let options = Options {
        goal: if args.maximise { Goal::Maximise } else { Goal::Minimise },
        acquisition: args.acquisition.parse()?,
        initial: args.initial,
        constraints: args.constraint.iter().map(|text| text.parse()).collect::<Result<_, _>>()?,
        kernel: args.kernel.clone(),
        noise: args.noise,
        repeats: args.repeats,
        seed: args.seed,
    };
    Optimiser::new(Space::parse(&args.input)?, options)
}

/// Gives the optimiser the rows of a table; returns the row of every trial, from 1.
fn learnt(args: &SuggestArgs, data: &Path, optimiser: &mut Optimiser) -> Result<Vec<usize>> {
    let table = args.table.open(data)?;
    let mut columns = Vec::new();
    let mut places: Vec<Option<Vec<usize>>> = Vec::new();
    for own in optimiser.space().dimensions() {
        let mut encoding = Encoding::Number;
        places.push(match &own.range {
            Range::Categories(labels) => {
                let known = Categories::new(labels)?;
                let of = labels.iter().map(|label| known.code(label).unwrap_or(usize::MAX));
                let of = of.collect();
                encoding = Encoding::Code(known);
                Some(of)
            }
            _ => None,
        });
        columns.push(InputColumn { name: own.name.clone(), encoding });
    }
    let outcomes = optimiser.options().constraints.iter().map(|own| &own.name);
    let selection =
        Selection::targets(std::iter::once(&args.target).chain(outcomes)).columns(columns);
    let rows = table.select(&selection)?.missing(Missing::Keep).read_all()?;
    let mut of = Vec::with_capacity(rows.x.nrows());
    for i in 0..rows.x.nrows() {
        let place = |(q, places): (usize, &Option<Vec<usize>>)| match places {
            Some(codes) => {
                let code = rows.x[(i, q)] as usize;
                codes.iter().position(|own| *own == code).map_or(f64::NAN, |place| place as f64)
            }
            None => rows.x[(i, q)],
        };
        let point: Vec<f64> = places.iter().enumerate().map(place).collect();
        let outcomes: Vec<f64> = (0..rows.y.ncols()).map(|p| rows.y[(i, p)]).collect();
        let pending =
            args.missing == MissingOutcome::Pending && outcomes.iter().all(|value| value.is_nan());
        let taken = match pending {
            true => optimiser.begin(&point),
            false => optimiser.tell(&point, &outcomes),
        };
        let trial = taken.map_err(|error| {
            Fail::Work(format!(
                "{}: row {}: {error}; widen the range, or leave the row out",
                data.display(),
                rows.rows[i] + 1
            ))
        })?;
        // a row that was under way may have ended in a later one
        match of.get_mut(trial) {
            Some(row) => *row = rows.rows[i] + 1,
            None => of.push(rows.rows[i] + 1),
        }
    }
    Ok(of)
}

/// Returns what an input of a point is.
fn value(space: &Space, point: &[f64], q: usize) -> Value {
    match &space.dimensions()[q].range {
        Range::Real { .. } => point[q].into(),
        Range::Integer { .. } => (point[q] as i64).into(),
        Range::Categories(labels) => labels[point[q] as usize].clone().into(),
    }
}

/// Returns the same as it is written in a table.
fn cell(space: &Space, point: &[f64], q: usize) -> String {
    match value(space, point, q) {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// Returns the best row in a line.
fn summary(best: &Best, row: usize, space: &Space, target: &str) -> String {
    let at = (0..best.point.len())
        .map(|q| format!("{}={}", space.dimensions()[q].name, cell(space, &best.point, q)))
        .collect::<Vec<_>>()
        .join(", ");
    let known = match best.sd.is_nan() {
        true => String::new(),
        false => format!(", without its noise {:.4e} ± {:.1e}", best.mean, best.sd),
    };
    format!("best so far: row {row}, {target} {}{known}, at {at}", best.observed)
}

//! `sparsegp compare`: methods, kernels and likelihoods under one protocol.

use crate::compare_args::CompareArgs;
use crate::compare_auto::{self, is_baseline};
use crate::comparison::{reply, write_runs};
use crate::context::{Context, Reply};
use crate::data::Split;
use crate::fail::{Fail, Result};
use crate::fit;
use crate::fit_args::FitArgs;
use crate::folds::{self, Fold, Key, Protocol};
use crate::format::{count, number, seconds};
use crate::outputs::refuse_overwriting;
use crate::{score, scores};
use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use sparsegp::data::CutOffOptions;
use sparsegp::{atomic, data};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

/// The options of `fit`, without a program's name before them.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct FitLine {
    #[command(flatten)]
    fit: FitArgs,
}

/// One of the choices that are compared.
pub struct Choice {
    /// What distinguishes it from the others.
    pub label: String,
    /// Whether it is there to be beaten ([`compare_auto`]).
    pub baseline: bool,
    args: FitArgs,
}

/// What one training gave.
pub struct Run {
    /// Index of the choice.
    pub choice: usize,
    /// Index of the division.
    pub fold: usize,
    /// Rows learnt from and tested on.
    pub rows: (usize, u64),
    /// Scores by name, the one that decides first: smaller is better.
    pub scores: Vec<(&'static str, f64)>,
    /// Of the training.
    pub seconds: f64,
    /// Peak of resident memory, in MB.
    pub memory: Option<f64>,
}

/// Runs the command.
pub fn run(args: &CompareArgs, context: &Context) -> Result<Reply> {
    if let Some(path) = &args.output {
        refuse_overwriting([path], [&args.data])?;
        atomic::check_writable(path)?;
    }
    let first = choices(args, None)?;
    let table = first[0].args.table.open(&args.data)?;
    let completed = if args.auto { Some(compare_auto::completed(args, &table)?) } else { None };
    let args = completed.as_ref().unwrap_or(args);
    let protocol = protocol(args, &table)?;
    let choices = choices(args, no_input(args, &protocol))?;
    let rows = rows_of(&table)?;
    let folds = protocol.folds(rows, args.seed)?;
    let total = choices.len() * folds.len();
    context.note(&format!(
        "{}, {}: {} to train",
        count(choices.len(), "choice"),
        protocol.describe(),
        count(total, "model")
    ));
    let (start, quiet) = (Instant::now(), context.silent());
    let (mut runs, mut failures): (Vec<Run>, Vec<(usize, usize, String)>) = Default::default();
    // fold by fold: after an interruption all have been tested on the same rows, or nearly
    'all: for (f, fold) in folds.iter().enumerate() {
        for (c, choice) in choices.iter().enumerate() {
            let done = runs.len() + failures.len();
            let result = match train(choice, fold, &quiet) {
                Ok(_) if context.interrupted() => break 'all,
                Err(Fail::Interrupted) => break 'all,
                Err(Fail::Usage(text)) => {
                    return Err(Fail::Usage(format!("{}: {text}", choice.label)));
                }
                Err(Fail::Work(text) | Fail::Empty(text)) => {
                    failures.push((c, f, text.clone()));
                    format!("failed: {text}")
                }
                Err(other) => return Err(other),
                Ok(run) => {
                    let (name, value) = run.scores[0];
                    let result = format!("{name} {} in {}", number(value, 4), seconds(run.seconds));
                    runs.push(Run { choice: c, fold: f, ..run });
                    result
                }
            };
            let left =
                start.elapsed().as_secs_f64() / (done + 1) as f64 * (total - done - 1) as f64;
            let left =
                if done + 1 < total { format!(", {} left", seconds(left)) } else { String::new() };
            let place = format!("{}/{total}", done + 1);
            context.note(&format!("{place} {} {}: {result}{left}", fold.name, choice.label));
            if let Some(path) = &args.output {
                write_runs(path, &choices, &folds, &runs)?;
            }
        }
    }
    if runs.is_empty() {
        return Err(match failures.into_iter().next() {
            Some((c, f, text)) => Fail::Work(format!(
                "no model could be trained; {}, {}: {text}",
                choices[c].label, folds[f].name
            )),
            None => Fail::Interrupted,
        });
    }
    let reply = reply(args, &choices, &folds, &runs, &failures, &protocol, total);
    let vain = |c: &usize| {
        failures.iter().any(|(own, _, _)| own == c) && !runs.iter().any(|r| r.choice == *c)
    };
    let vain: Vec<String> =
        (0..choices.len()).filter(vain).map(|c| format!("`{}`", choices[c].label)).collect();
    if vain.is_empty() {
        return Ok(reply);
    }
    context.print(&reply)?;
    Err(Fail::Part(format!("no model could be trained of {}", vain.join(", "))))
}

/// Returns the column that divides the rows, where that makes it no input: labels of groups, and an
/// order by text.
fn no_input<'a>(args: &'a CompareArgs, protocol: &Protocol) -> Option<&'a String> {
    match protocol {
        Protocol::Groups(..) => args.group.as_ref(),
        Protocol::Ordered(_, keys) if keys.iter().any(Key::is_word) => args.ordered.as_ref(),
        _ => None,
    }
}

/// Returns every combination of what was asked for; all ignore a column unless inputs are named.
fn choices(args: &CompareArgs, no_input: Option<&String>) -> Result<Vec<Choice>> {
    let inducing: Vec<String> = args.inducing.iter().map(usize::to_string).collect();
    let lists: [(&str, &[String]); 4] = [
        ("--method", &args.method),
        ("--kernel", &args.kernel),
        ("--likelihood", &args.likelihood),
        ("--inducing", &inducing),
    ];
    let mut all: Vec<Vec<(&str, &String)>> = vec![Vec::new()];
    for (option, list) in lists {
        if list.is_empty() {
            continue;
        }
        all = all
            .into_iter()
            .flat_map(|choice| {
                list.iter().map(move |value| {
                    let mut longer = choice.clone();
                    longer.push((option, value));
                    longer
                })
            })
            .collect();
    }
    let varied = |option: &str| lists.iter().any(|(own, list)| *own == option && list.len() > 1);
    let mut labels = BTreeSet::new();
    all.into_iter()
        .map(|choice| {
            let mut line: Vec<String> = vec![args.data.display().to_string()];
            let mut add = |option: &str, value: &str| line.extend([option.into(), value.into()]);
            args.target.iter().for_each(|target| add("--target", target));
            add("--seed", &args.seed.to_string());
            choice.iter().for_each(|(option, value)| add(option, value));
            line.extend(args.fit.iter().cloned());
            let mut fit = FitLine::try_parse_from(&line).map_err(usage)?.fit;
            check(&fit)?;
            if let (Some(column), true) = (no_input, fit.features.is_empty()) {
                fit.ignore.push(column.clone());
            }
            let parts: Vec<String> = choice
                .iter()
                .filter(|(option, _)| varied(option))
                .map(|(option, value)| match *option {
                    "--inducing" => format!("M = {value}"),
                    _ => (*value).clone(),
                })
                .collect();
            let label = match parts.is_empty() {
                true => choice.iter().map(|(_, v)| (*v).clone()).collect::<Vec<_>>().join(", "),
                false => parts.join(", "),
            };
            let label = if label.is_empty() { "defaults".into() } else { label };
            let kernel = choice.iter().find(|(option, _)| *option == "--kernel");
            let baseline = args.auto && kernel.is_some_and(|(_, kernel)| is_baseline(kernel));
            let label = if baseline { format!("{label} (baseline)") } else { label };
            if !labels.insert(label.clone()) {
                return Err(Fail::usage(format!("{label} is asked for twice")));
            }
            Ok(Choice { label, baseline, args: fit })
        })
        .collect()
}

/// Adds where options of `fit` stand to an error about an option that `compare` lacks.
pub fn with_remedy(mut error: clap::Error) -> clap::Error {
    let here = std::env::args().nth(1).is_some_and(|command| command == "compare");
    if here && error.kind() == ErrorKind::UnknownArgument {
        let text = "options of `fit` stand after a `--` at the end: compare TABLE --target y -- --max-iterations 50";
        let remedy = ContextValue::StyledStrs(vec![text.into()]);
        error.insert(ContextKind::Suggested, remedy);
    }
    error
}

/// Returns what `fit` said of its options, as an error of ours.
fn usage(error: clap::Error) -> Fail {
    let text = error.to_string();
    let first = text.lines().take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    Fail::usage(format!("after `--`: {}", first.trim_start_matches("error: ")))
}

/// Refuses options of `fit` that make no sense for many fits.
fn check(fit: &FitArgs) -> Result<()> {
    let written = [("--output", fit.output.is_some()), ("--plot", fit.plot.is_some())];
    let written = written.into_iter().find(|(_, given)| *given).map(|(option, _)| option);
    match fit.of_one_training().or(written) {
        Some(option) => Err(Fail::usage(format!(
            "after `--`: {option} is for one model, and here are several; leave it out"
        ))),
        None => Ok(()),
    }
}

fn protocol(args: &CompareArgs, table: &data::Table) -> Result<Protocol> {
    let folds = args.folds.unwrap_or(5);
    Ok(match (&args.splits, &args.group, &args.ordered) {
        (Some(count), _, _) => Protocol::Splits(*count, args.split.unwrap_or(0.1)),
        (_, Some(group), _) => Protocol::Groups(folds, table.texts(group)?),
        (_, _, Some(column)) => {
            let cells = table.texts(column)?;
            let key = |cell| Key::of(cell, column, table.read_options());
            let keys: Vec<Key> = cells.into_iter().map(key).collect();
            let Some(horizon) = &args.horizon else { return Ok(Protocol::Ordered(folds, keys)) };
            let Some((times, dates)) = folds::times(&keys) else {
                return Err(Fail::usage(format!(
                    "--horizon: the cells of `{column}` are neither all numbers nor all dates"
                )));
            };
            let options = CutOffOptions { horizon, count: folds, every: None, parts: 1 };
            Protocol::CutOffs(data::cut_offs(&times, dates, &options)?, horizon.clone())
        }
        _ if !args.test_mask.is_empty() => {
            let specs = args.test_mask.iter().map(|spec| masks(spec));
            Protocol::Masks(specs.collect::<Result<Vec<_>>>()?.concat())
        }
        _ => Protocol::Folds(folds),
    })
}

/// Returns `FILE:COLUMN`, or that of every column of a file.
fn masks(spec: &str) -> Result<Vec<String>> {
    if !Path::new(spec).exists() {
        return Ok(vec![spec.into()]);
    }
    let columns = data::Table::open(spec)?;
    Ok(columns.columns().iter().map(|column| format!("{spec}:{column}")).collect())
}

fn rows_of(table: &data::Table) -> Result<usize> {
    match table.rows() {
        Some(rows) => Ok(rows),
        None => Ok(table.select(&data::Selection::all_inputs())?.count_rows()?),
    }
}

/// Learns from the rows of a fold, and tests on the others.
fn train(choice: &Choice, fold: &Fold, context: &Context) -> Result<Run> {
    forget_peak_memory();
    let start = Instant::now();
    let split = Split::Given(fold.train.clone(), fold.test.clone());
    let learnt = fit::learn_from(&choice.args, &split, context)?;
    let seconds = start.elapsed().as_secs_f64();
    let Some(test) = &learnt.opened.test else {
        return Err(Fail::Work("there are no rows to test on".into()));
    };
    let tested = score::score(&learnt.fitted, test, context)?;
    Ok(Run {
        choice: 0,
        fold: 0,
        rows: (learnt.fitted.rows, tested.overall.rows()),
        scores: scores::compared(&tested.overall),
        seconds,
        memory: peak_memory(),
    })
}

/// Resets the peak of this process's memory, where the system can (Linux).
fn forget_peak_memory() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Returns the peak of resident memory since then, in MB.
fn peak_memory() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024.0 / 1e6)
}

//! `sparsegp compare`: methods, kernels and likelihoods under one protocol.

use crate::context::{Context, Reply};
use crate::data::Split;
use crate::fail::{Fail, Result};
use crate::fit;
use crate::fit_args::FitArgs;
use crate::folds::{Fold, Key, Protocol};
use crate::format::{Align, Table, count, number, seconds};
use crate::outputs::refuse_overwriting;
use crate::score::{self, Score};
use crate::values;
use clap::{Args, Parser};
use serde_json::{Value, json};
use sparsegp::{atomic, data};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

const AFTER: &str = "\
Examples:
  sparsegp compare data.csv --target y --method exact --method svgp
  sparsegp compare data.csv --target y --kernel rbf --kernel matern52 --kernel 'rbf + linear' --folds 10
  sparsegp compare data.csv --target y --splits 10 --split 0.1 --inducing 50 --inducing 200 -o runs.csv
  sparsegp compare claims.csv --target claims --likelihood poisson --likelihood negative-binomial
  sparsegp compare patients.csv --target y --group patient
  sparsegp compare data.csv --target y --test-mask masks.csv
  sparsegp compare sales.csv --target sales --ordered date -- --ignore id --epochs 20

Every choice of --method, --kernel, --likelihood and --inducing is combined with every other; all are fitted
to the same rows and tested on the same rows. Options after `--` are passed to `sparsegp fit` for every choice,
see `sparsegp fit --help`.

The table has means over the divisions with their standard errors (slightly too small, because folds share
training rows). `behind` is the paired difference from the best choice in negative log predictive density,
with its standard error; differences below two standard errors are not significant.";

/// Options of `sparsegp compare`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct CompareArgs {
    /// The table: CSV (plain or .gz) or Parquet
    pub data: PathBuf,
    /// Target column; repeat it for several targets
    #[arg(long, short, value_name = "COLUMN", required = true)]
    pub target: Vec<String>,

    /// Inference method, see `sparsegp methods`; repeat it to compare [default: auto]
    #[arg(long, short, value_parser = values::method, help_heading = "What to compare")]
    pub method: Vec<String>,
    /// Kernel, see `sparsegp kernels`; repeat it to compare [default: rbf]
    #[arg(long, short, value_name = "SPEC", help_heading = "What to compare")]
    pub kernel: Vec<String>,
    /// Likelihood, see `sparsegp likelihoods`; repeat it to compare
    #[arg(long, short, value_name = "SPEC", value_parser = values::likelihood, help_heading = "What to compare")]
    pub likelihood: Vec<String>,
    /// Number of inducing points; repeat it to compare
    #[arg(long, allow_negative_numbers = true, value_name = "M", value_parser = values::at_least_one, help_heading = "What to compare")]
    pub inducing: Vec<usize>,

    /// Test on every row once, in this many random folds [default: 5]
    #[arg(long, allow_negative_numbers = true, value_name = "K", value_parser = at_least_two, help_heading = "How to divide the rows")]
    pub folds: Option<usize>,
    /// This many random splits instead; those of `fit --split F --seed S` for S from the seed on
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = values::at_least_one,
          conflicts_with_all = ["folds", "test_mask", "group", "ordered"], help_heading = "How to divide the rows")]
    pub splits: Option<usize>,
    /// Fraction of the rows that every split holds out [default: 0.1]
    #[arg(long, allow_negative_numbers = true, value_name = "FRACTION", value_parser = values::fraction, requires = "splits",
          help_heading = "How to divide the rows")]
    pub split: Option<f64>,
    /// A split from a file: the rows that are 1 in this column are tested on; repeatable. Without a column,
    /// one split for every column of the file
    #[arg(long, value_name = "FILE[:COLUMN]", conflicts_with_all = ["folds", "group", "ordered"],
          help_heading = "How to divide the rows")]
    pub test_mask: Vec<String>,
    /// Keep rows with equal values in this column (which is not an input) in the same fold
    #[arg(
        long,
        value_name = "COLUMN",
        conflicts_with = "ordered",
        help_heading = "How to divide the rows"
    )]
    pub group: Option<String>,
    /// Order the rows by this column, numbers or dates such as 2024-12-31 (an input only if it is a number);
    /// every fold is tested on after learning from all rows before it
    #[arg(long, value_name = "COLUMN", help_heading = "How to divide the rows")]
    pub ordered: Option<String>,
    /// Seed of the divisions, and of everything random in training
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "N",
        default_value_t = 0,
        help_heading = "How to divide the rows"
    )]
    pub seed: u64,

    /// Write the scores of every training as CSV, while they come in
    #[arg(long, short, value_name = "FILE.csv", help_heading = "Output")]
    pub output: Option<PathBuf>,

    /// Options of `sparsegp fit` for all, after `--`
    #[arg(last = true, value_name = "FIT OPTIONS", allow_hyphen_values = true)]
    pub fit: Vec<String>,
}

fn at_least_two(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if n > 1 => Ok(n),
        _ => Err("must be a whole number, at least 2".into()),
    }
}

/// The options of `fit`, without a program's name before them.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct FitLine {
    #[command(flatten)]
    fit: FitArgs,
}

/// One of the choices that are compared.
struct Choice {
    label: String,
    args: FitArgs,
}

/// What one training gave.
struct Run {
    choice: usize,
    fold: usize,
    rows: (usize, u64),
    scores: Vec<(&'static str, f64)>,
    seconds: f64,
    memory: Option<f64>,
}

/// Runs the command.
pub fn run(args: &CompareArgs, context: &Context) -> Result<Reply> {
    if let Some(path) = &args.output {
        refuse_overwriting([path], [&args.data])?;
        atomic::check_writable(path)?;
    }
    let first = choices(args, None)?;
    let table = first[0].args.table.open(&args.data)?;
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
            let told = match train(choice, fold, &quiet) {
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
                    let told = format!("{name} {} in {}", number(value, 4), seconds(run.seconds));
                    runs.push(Run { choice: c, fold: f, ..run });
                    told
                }
            };
            let left =
                start.elapsed().as_secs_f64() / (done + 1) as f64 * (total - done - 1) as f64;
            let left =
                if done + 1 < total { format!(", {} left", seconds(left)) } else { String::new() };
            let place = format!("{}/{total}", done + 1);
            context.note(&format!("{place} {} {}: {told}{left}", fold.name, choice.label));
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

/// The column that divides the rows, where that makes it no input: labels of groups, and an order by text.
fn no_input<'a>(args: &'a CompareArgs, protocol: &Protocol) -> Option<&'a String> {
    match protocol {
        Protocol::Groups(..) => args.group.as_ref(),
        Protocol::Ordered(_, keys) if keys.iter().any(Key::is_word) => args.ordered.as_ref(),
        _ => None,
    }
}

/// Every combination of what was asked for; all leave a column alone unless inputs are named.
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
            if !labels.insert(label.clone()) {
                return Err(Fail::usage(format!("{label} is asked for twice")));
            }
            Ok(Choice { label, args: fit })
        })
        .collect()
}

/// What `fit` said of its options, as an error of ours.
fn usage(error: clap::Error) -> Fail {
    let text = error.to_string();
    let first = text.lines().take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    Fail::usage(format!("after `--`: {}", first.trim_start_matches("error: ")))
}

/// Options of `fit` that make no sense for many fits.
fn check(fit: &FitArgs) -> Result<()> {
    let given = [
        ("--split", fit.split.is_some()),
        ("--test-mask", fit.test_mask.is_some()),
        ("--from", fit.from.is_some()),
        ("--output", fit.output.is_some()),
        ("--plot", fit.plot.is_some()),
        ("--trace", fit.trace.is_some()),
        ("--checkpoint", fit.checkpoint.is_some()),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(Fail::usage(format!(
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
            Protocol::Ordered(folds, cells.into_iter().map(key).collect())
        }
        _ if !args.test_mask.is_empty() => {
            let specs = args.test_mask.iter().map(|spec| masks(spec));
            Protocol::Masks(specs.collect::<Result<Vec<_>>>()?.concat())
        }
        _ => Protocol::Folds(folds),
    })
}

/// `FILE:COLUMN`, or that of every column of a file.
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
    let scores = score::score(&learnt.fitted, test, context)?;
    Ok(Run {
        choice: 0,
        fold: 0,
        rows: (learnt.fitted.rows, scores.overall.rows()),
        scores: compared(&scores.overall),
        seconds,
        memory: peak_memory(),
    })
}

/// The scores that are compared, the one that decides first: smaller is better.
fn compared(score: &Score) -> Vec<(&'static str, f64)> {
    let known = |pairs: Vec<(&'static str, Option<f64>)>| {
        pairs.into_iter().map(|(name, value)| (name, value.unwrap_or(f64::NAN))).collect()
    };
    match score {
        Score::Gaussian(s) => vec![
            ("NLPD", s.nlpd),
            ("RMSE", s.rmse),
            ("MAE", s.mae),
            ("CRPS", s.crps),
            ("in 95 %", 100.0 * s.coverage_95),
        ],
        Score::Classes(s) => known(vec![
            ("log loss", Some(s.log_loss)),
            ("error", Some(s.error)),
            ("Brier", Some(s.brier)),
            ("AUC", s.auc),
            ("ECE", Some(s.ece)),
        ]),
        Score::Counts(s) => known(vec![
            ("NLPD", s.general.nlpd),
            ("deviance", Some(s.deviance)),
            ("RMSE", s.general.rmse),
            ("in 95 %", s.general.coverage.last().map(|c| 100.0 * c.share)),
        ]),
        Score::Density(s) => known(vec![
            ("NLPD", s.nlpd),
            ("RMSE", s.rmse),
            ("MAE", s.mae),
            ("in 95 %", s.coverage.last().map(|c| 100.0 * c.share)),
        ]),
    }
}

/// Lets the peak of this process's memory begin anew, where the system can (Linux).
fn forget_peak_memory() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Peak of resident memory since then, in MB.
fn peak_memory() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024.0 / 1e6)
}

/// Mean and its standard error; that of one number is unknown.
fn mean_and_error(values: &[f64]) -> (f64, Option<f64>) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>();
    (mean, (values.len() > 1).then(|| (squares / (n - 1.0) / n).sqrt()))
}

fn with_error((mean, error): (f64, Option<f64>)) -> String {
    match error {
        Some(error) if mean.is_finite() => {
            // as many decimals as two digits of the error have
            let decimals = match error {
                e if e > 0.0 => (1.0 - e.log10().floor()).clamp(0.0, 6.0) as usize,
                // the same on all divisions, such as a share of 100 %
                _ => return format!("{} ± 0", number(mean, 4)),
            };
            format!("{mean:.decimals$} ± {error:.decimals$}")
        }
        _ => number(mean, 4),
    }
}

/// How much more a choice has of the first score than the best one, on the folds that both have.
fn behind(runs: &[Run], own: usize, best: usize) -> (f64, Option<f64>) {
    let of = |choice: usize, fold: usize| {
        runs.iter().find(|r| r.choice == choice && r.fold == fold).map(|r| r.scores[0].1)
    };
    let folds = runs.iter().filter(|r| r.choice == own).map(|r| r.fold);
    let differences: Vec<f64> =
        folds.filter_map(|fold| Some(of(own, fold)? - of(best, fold)?)).collect();
    mean_and_error(&differences)
}

fn write_runs(path: &Path, choices: &[Choice], folds: &[Fold], runs: &[Run]) -> Result<()> {
    let quoted = |text: &str| match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    };
    let mut text = "choice,division,rows learnt from,rows tested on".to_owned();
    // runs may be scored in different ways
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in runs.iter().flat_map(|r| &r.scores) {
        if !names.contains(name) {
            names.push(name);
        }
    }
    names.iter().for_each(|name| {
        let _ = write!(text, ",{name}");
    });
    text.push_str(",seconds,peak MB\n");
    for r in runs {
        let (choice, fold) = (quoted(&choices[r.choice].label), quoted(&folds[r.fold].name));
        let _ = write!(text, "{choice},{fold},{},{}", r.rows.0, r.rows.1);
        for name in &names {
            let own = r.scores.iter().find(|(own, _)| own == name);
            let _ = write!(text, ",{}", own.map_or(String::new(), |(_, value)| value.to_string()));
        }
        let memory = r.memory.map_or(String::new(), |m| format!("{m:.0}"));
        let _ = writeln!(text, ",{:.3},{memory}", r.seconds);
    }
    Ok(atomic::write_atomically(path, text.as_bytes())?)
}

fn reply(
    args: &CompareArgs,
    choices: &[Choice],
    folds: &[Fold],
    runs: &[Run],
    failures: &[(usize, usize, String)],
    protocol: &Protocol,
    total: usize,
) -> Reply {
    // choices that are scored in different ways are compared by what all of them have
    let has = |run: &Run, name: &str| run.scores.iter().any(|(own, _)| *own == name);
    let names = runs[0].scores.iter().map(|(name, _)| *name);
    let names: Vec<&str> = names.filter(|name| runs.iter().all(|run| has(run, name))).collect();
    let of = |c: usize| runs.iter().filter(move |r| r.choice == c).collect::<Vec<_>>();
    let first = |c: usize| {
        let values: Vec<f64> = of(c).iter().map(|r| r.scores[0].1).collect();
        if values.is_empty() { f64::INFINITY } else { mean_and_error(&values).0 }
    };
    // who has been tested on most rows comes first: means over other rows cannot be compared
    let most = (0..choices.len()).map(|c| of(c).len()).max().unwrap_or(0);
    let key = |c: &usize| (of(*c).len() < most, first(*c));
    let mut order: Vec<usize> = (0..choices.len()).collect();
    order.sort_by(|a, b| key(a).partial_cmp(&key(b)).unwrap_or(std::cmp::Ordering::Equal));
    let best = order[0];

    let mut header = vec![("choice", Align::Left), ("done", Align::Right)];
    header.extend(names.iter().map(|name| (*name, Align::Right)));
    header.extend([("behind", Align::Right), ("time", Align::Right), ("peak MB", Align::Right)]);
    let mut table = Table::new(&header);
    let mut machines = Vec::new();
    for &c in &order {
        let own = of(c);
        let column = |f: &dyn Fn(&Run) -> f64| own.iter().map(|r| f(r)).collect::<Vec<f64>>();
        let mut cells = vec![choices[c].label.clone(), format!("{}/{}", own.len(), folds.len())];
        let mut metrics = serde_json::Map::new();
        for name in &names {
            if own.is_empty() {
                cells.push("–".into());
                continue;
            }
            let score = |r: &Run| r.scores.iter().find(|(own, _)| own == name).map(|(_, v)| *v);
            let values = column(&|r| score(r).unwrap_or(f64::NAN));
            let (mean, error) = mean_and_error(&values);
            cells.push(with_error((mean, error)));
            let value = json!({ "mean": mean, "standard_error": error, "each": values });
            metrics.insert((*name).into(), value);
        }
        let apart = behind(runs, c, best);
        let (time, memory) = match own.is_empty() {
            true => (f64::NAN, None),
            false => (
                mean_and_error(&column(&|r| r.seconds)).0,
                own.iter().filter_map(|r| r.memory).reduce(f64::max),
            ),
        };
        cells.push(match (c == best, own.is_empty()) {
            (true, _) => "best".into(),
            (_, true) => "–".into(),
            _ => with_error(apart),
        });
        cells.push(if own.is_empty() { "–".into() } else { seconds(time) });
        cells.push(memory.map_or("–".into(), |m| format!("{m:.0}")));
        table.row(cells);
        let failed: Vec<Value> = failures
            .iter()
            .filter(|(own, _, _)| *own == c)
            .map(|(_, f, text)| json!({ "division": folds[*f].name, "error": text }))
            .collect();
        machines.push(json!({
            "choice": choices[c].label, "done": own.len(), "scores": metrics, "seconds": time,
            "peak_megabytes": memory, "failures": failed,
            "behind": { "mean": apart.0, "standard_error": apart.1 },
        }));
    }
    let mut text = format!("{}, means ± standard errors\n\n", protocol.describe());
    text += &table.render(2);
    for (c, f, why) in failures {
        let _ = writeln!(text, "\n{}, {} failed: {why}", choices[*c].label, folds[*f].name);
    }
    let done = runs.len() + failures.len();
    if done < total {
        let _ = writeln!(text, "\ninterrupted: {done} of {total} models were trained");
    }
    if let Some(path) = &args.output {
        let _ = writeln!(text, "\nscores of every training written to {}", path.display());
    }
    let json = json!({
        "command": "compare", "data": args.data, "protocol": protocol.describe(),
        "divisions": folds.iter().map(|f| &f.name).collect::<Vec<_>>(),
        "choices": machines, "interrupted": done < total,
    });
    Reply { text, json, is_result: true }
}

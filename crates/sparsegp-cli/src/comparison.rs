//! What `sparsegp compare` shows and writes: means over the divisions, differences from the best, every run.

use crate::compare::{Choice, Run};
use crate::compare_args::CompareArgs;
use crate::context::Reply;
use crate::fail::Result;
use crate::folds::{Fold, Protocol};
use crate::format::{Align, Table, number, rounded, seconds};
use serde_json::{Value, json};
use sparsegp::atomic;
use std::fmt::Write;
use std::path::Path;

/// Returns the mean and its standard error; that of one number is unknown.
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
            format!("{} ± {}", rounded(mean, decimals), rounded(error, decimals))
        }
        _ => number(mean, 4),
    }
}

/// Returns how much more a choice has of the first score than the best one, on the folds that both
/// have.
fn behind(runs: &[Run], own: usize, best: usize) -> (f64, Option<f64>) {
    let of = |choice: usize, fold: usize| {
        runs.iter().find(|r| r.choice == choice && r.fold == fold).map(|r| r.scores[0].1)
    };
    let folds = runs.iter().filter(|r| r.choice == own).map(|r| r.fold);
    let differences: Vec<f64> =
        folds.filter_map(|fold| Some(of(own, fold)? - of(best, fold)?)).collect();
    mean_and_error(&differences)
}

/// Writes the scores of every training.
pub fn write_runs(path: &Path, choices: &[Choice], folds: &[Fold], runs: &[Run]) -> Result<()> {
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

/// Returns the trainings of one choice, on the divisions where they ended well.
fn of(runs: &[Run], choice: usize) -> Vec<&Run> {
    runs.iter().filter(|run| run.choice == choice).collect()
}

/// Returns the choices, best first.
fn ranked(choices: usize, runs: &[Run]) -> Vec<usize> {
    let first = |c: usize| {
        let values: Vec<f64> = of(runs, c).iter().map(|r| r.scores[0].1).collect();
        if values.is_empty() { f64::INFINITY } else { mean_and_error(&values).0 }
    };
    // who has been tested on most rows comes first: means over other rows cannot be compared
    let most = (0..choices).map(|c| of(runs, c).len()).max().unwrap_or(0);
    let key = |c: &usize| (of(runs, *c).len() < most, first(*c));
    let mut order: Vec<usize> = (0..choices).collect();
    order.sort_by(|a, b| key(a).partial_cmp(&key(b)).unwrap_or(std::cmp::Ordering::Equal));
    order
}

/// Returns a choice in the table: its cells, and the same for machines. `apart` is what it is
/// behind the best one, and whether it is that one.
fn line(
    choice: &Choice,
    own: &[&Run],
    names: &[&str],
    folds: usize,
    (apart, best): ((f64, Option<f64>), bool),
) -> (Vec<String>, Value) {
    let column = |f: &dyn Fn(&Run) -> f64| own.iter().map(|r| f(r)).collect::<Vec<f64>>();
    let mut cells = vec![choice.label.clone(), format!("{}/{folds}", own.len())];
    let mut metrics = serde_json::Map::new();
    for name in names {
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
    let (time, memory) = match own.is_empty() {
        true => (f64::NAN, None),
        false => (
            mean_and_error(&column(&|r| r.seconds)).0,
            own.iter().filter_map(|r| r.memory).reduce(f64::max),
        ),
    };
    cells.push(match (best, own.is_empty()) {
        (true, _) => "best".into(),
        (_, true) => "–".into(),
        _ => with_error(apart),
    });
    cells.push(if own.is_empty() { "–".into() } else { seconds(time) });
    cells.push(memory.map_or("–".into(), |m| format!("{m:.0}")));
    let machine = json!({
        "choice": choice.label, "baseline": choice.baseline, "done": own.len(), "scores": metrics,
        "seconds": time, "peak_megabytes": memory,
        "behind": { "mean": apart.0, "standard_error": apart.1 },
    });
    (cells, machine)
}

/// Returns the table of the choices, best first.
pub fn reply(
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
    let order = ranked(choices.len(), runs);

    let mut header = vec![("choice", Align::Left), ("done", Align::Right)];
    header.extend(names.iter().map(|name| (*name, Align::Right)));
    header.extend([("behind", Align::Right), ("time", Align::Right), ("peak MB", Align::Right)]);
    let mut table = Table::new(&header);
    let mut machines = Vec::new();
    for &c in &order {
        let apart = (behind(runs, c, order[0]), c == order[0]);
        let (cells, mut machine) = line(&choices[c], &of(runs, c), &names, folds.len(), apart);
        table.row(cells);
        let failed: Vec<Value> = failures
            .iter()
            .filter(|(own, _, _)| *own == c)
            .map(|(_, f, text)| json!({ "division": folds[*f].name, "error": text }))
            .collect();
        machine["failures"] = failed.into();
        machines.push(machine);
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

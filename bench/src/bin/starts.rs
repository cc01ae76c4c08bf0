//! How good default starting values are: `cargo run --release -p sparsegp-bench --bin starts -- [OPTION …]`.
//!
//! Simulates problems ([`sparsegp_bench::problems`]), fits each by default, and again from other starts
//! with the same method and number of inducing points. A default fit that ends below the best of
//! those had bad starting values: the gap in nats says by how much. The other starts:
//!
//! - `no pilot`: lengthscales of √D standard deviations, without a pilot.
//! - `exact 0.1`, `exact 1`, `exact 3`: these lengthscales times that number, without a pilot. Where the
//!   method has inducing points, `tvgp` trains first, which has none, and the default method
//!   continues from its hyperparameters. Up to 500 rows.
//! - `spread 0.5`, `spread 1`: lengthscales of so many spreads, as other libraries start from, without a pilot.
//! - `restarts`: the best of some further starts (`FitOptions::restarts`); above 1000 rows of a third as many.
//! - `truth`: the values that made the data, without a pilot.
//!
//! Prints a line for every problem, tables by likelihood and by kind of problem, and totals. Seconds are those that
//! the processors spent. Options:
//!
//! - `--count N`: problems (240), by likelihood in turn. `--seed S` (0). `--rows-max N` (5000): rows of the
//!   largest. `--only NAME`: only those of a likelihood. `--restarts N` (10).
//! - `--problem #`: only the problem of that number, with the hyperparameters that every start ends at.
//! - `--functions`: plain functions of several inputs in Gaussian noise in the place of draws of the prior.
//! - `--quick`: 40 problems of at most 500 rows, unless these are given.
//! - `--default-only`: no other starts; for times.
//! - `--save FILE`: writes the best objectives as CSV, problem by problem. `--against FILE`: no other
//!   starts either, but gaps to the best objectives of that file, and what became better and worse.

use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Fitted, fit, prepare};
use sparsegp_bench::problems::{Problem, missing};
use sparsegp_bench::{median, processor_seconds};
use std::collections::HashMap;
use std::io::Write as _;
use std::time::Instant;

/// Rows up to which there are starts from exact inference.
const EXACT_ROWS: usize = 500;
/// Rows above which there are fewer restarts.
const MANY_ROWS: usize = 1000;
/// Nats that nobody minds, and nats that are much.
const GOOD: f64 = 1.0;
const BAD: f64 = 3.0;

type Values = Vec<(String, Vec<f64>)>;

/// Where a training ended.
struct End {
    /// In the data's units, by which fits of the same rows compare.
    objective: f64,
    /// Hyperparameters by path, on the scale of the model.
    values: Values,
    /// Of the processors, for the last training.
    seconds: f64,
}

type Outcome = Result<End, String>;

/// What the command line says.
struct Arguments {
    count: usize,
    seed: u64,
    only: Option<String>,
    problem: Option<usize>,
    most_rows: usize,
    restarts: usize,
    default_only: bool,
    functions: bool,
    save: Option<String>,
    against: Option<String>,
}

impl Arguments {
    fn read() -> Self {
        let all: Vec<String> = std::env::args().skip(1).collect();
        let quick = all.iter().any(|a| a == "--quick");
        let mut own = Self {
            count: if quick { 40 } else { 240 },
            seed: 0,
            only: None,
            problem: None,
            most_rows: if quick { 500 } else { 5000 },
            restarts: 10,
            default_only: false,
            functions: false,
            save: None,
            against: None,
        };
        let mut rest = all.into_iter();
        while let Some(name) = rest.next() {
            let mut value = || rest.next().unwrap_or_else(|| panic!("{name} needs a value"));
            match name.as_str() {
                "--quick" => {}
                "--default-only" => own.default_only = true,
                "--functions" => own.functions = true,
                "--count" => own.count = value().parse().expect("a number of problems"),
                "--seed" => own.seed = value().parse().expect("a seed"),
                "--rows-max" => own.most_rows = value().parse().expect("a number of rows"),
                "--restarts" => own.restarts = value().parse().expect("a number of starts"),
                "--only" => own.only = Some(value()),
                "--problem" => own.problem = Some(value().parse().expect("a number of a problem")),
                "--save" => own.save = Some(value()),
                "--against" => own.against = Some(value()),
                _ => panic!("unknown option {name}"),
            }
        }
        own
    }
}

fn trained(dataset: &Dataset, options: &FitOptions) -> Result<Fitted, String> {
    fit(dataset, options, &Cpu::default(), &mut ()).map_err(|error| error.to_string())
}

/// Hyperparameters by path.
fn values(fitted: &Fitted) -> Values {
    let params = fitted.model.params().into_iter().filter(|(_, param)| !param.role().is_bulky());
    params.map(|(path, param)| (path, param.value().to_vec())).collect()
}

/// Fits, and says where that ended.
fn ended(dataset: &Dataset, options: &FitOptions) -> Outcome {
    let clock = processor_seconds();
    let fitted = trained(dataset, options)?;
    let seconds = processor_seconds() - clock;
    let objective = fitted.objective().ok_or("it was not trained")?;
    if !objective.is_finite() {
        return Err(format!("the objective is {objective}"));
    }
    Ok(End { objective, values: values(&fitted), seconds })
}

/// Whether the method that a fit would choose has inducing points.
fn prepared_is_sparse(dataset: &Dataset, options: &FitOptions) -> Result<bool, String> {
    let options = FitOptions { pilot: 0, ..options.clone() };
    let start = prepare(dataset, &options, &Cpu::default(), &mut ());
    start.map(|start| start.model.method.is_sparse()).map_err(|error| error.to_string())
}

/// From lengthscales of so many spreads by the most exact method; then by the default method.
fn from_exact(problem: &Problem, dataset: &Dataset, options: &FitOptions, length: f64) -> Outcome {
    let exact = !prepared_is_sparse(dataset, options)?;
    let set = problem.lengthscales().into_iter().map(|path| (path, vec![length])).collect();
    let mut own = FitOptions { pilot: 0, set, ..options.clone() };
    if exact {
        return ended(dataset, &own);
    }
    own.method = "tvgp".into();
    own.set = values(&trained(dataset, &own)?);
    own.method.clone_from(&options.method);
    ended(dataset, &own)
}

/// Fits from other starts, and tells where each ended.
fn alternatives(
    problem: &Problem,
    dataset: &Dataset,
    options: &FitOptions,
    restarts: usize,
    mut tell: impl FnMut(&'static str, Outcome),
) {
    let rows = dataset.source.rows();
    tell("no pilot", ended(dataset, &FitOptions { pilot: 0, ..options.clone() }));
    // without inducing points nothing is mixed
    if rows <= EXACT_ROWS && !problem.mixed() {
        let root = (dataset.input_names.len() as f64).sqrt();
        let lengths = [
            ("exact 0.1", 0.1 * root),
            ("exact 1", root),
            ("exact 3", 3.0 * root),
            ("spread 0.5", 0.5),
            ("spread 1", 1.0),
        ];
        for (name, length) in lengths {
            tell(name, from_exact(problem, dataset, options, length));
        }
    }
    let restarts = if rows > MANY_ROWS { restarts.div_ceil(3) } else { restarts };
    if restarts > 0 {
        tell("restarts", ended(dataset, &FitOptions { restarts, ..options.clone() }));
    }
    let set = problem.truth(dataset);
    tell("truth", ended(dataset, &FitOptions { pilot: 0, set, ..options.clone() }));
}

/// What is known of a problem from a file.
struct Known {
    default: Option<f64>,
    best: f64,
    by: String,
}

/// Reads what [`Saved`] writes, by key.
fn read_known(path: &str) -> HashMap<String, Known> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let mut all = HashMap::new();
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [key, .., default, _seconds, best, by] = fields[..] else { panic!("{path}: `{line}`") };
        let known = Known {
            default: default.parse().ok(),
            best: best.parse().unwrap_or_else(|_| panic!("{path}: no number in `{line}`")),
            by: by.into(),
        };
        all.insert(key.to_owned(), known);
    }
    all
}

/// The file of best objectives.
struct Saved(std::fs::File);

impl Saved {
    fn create(path: &str) -> Self {
        let mut file = std::fs::File::create(path).unwrap_or_else(|e| panic!("{path}: {e}"));
        writeln!(file, "key,index,likelihood,rows,inputs,default,seconds,best,by").expect("space");
        Self(file)
    }

    fn write(&mut self, key: &str, judged: &Judged) {
        let Some((best, by)) = judged.overall() else { return };
        let Judged { index, likelihood, rows, inputs, seconds, .. } = judged;
        let default = judged.default.as_ref().map_or_else(|_| "failed".into(), f64::to_string);
        let line =
            format!("{key},{index},{likelihood},{rows},{inputs},{default},{seconds},{best},{by}");
        writeln!(self.0, "{line}").expect("space on disk");
    }
}

/// A problem with what became of it.
struct Judged {
    index: usize,
    likelihood: &'static str,
    rows: usize,
    inputs: usize,
    kinds: Vec<&'static str>,
    default: Result<f64, String>,
    seconds: f64,
    /// The best of the other starts, or of the file.
    best: Option<(f64, String)>,
    /// Where the default ended when the file was written.
    before: Option<f64>,
}

impl Judged {
    /// Nats that the default misses; infinite where it failed. Below 0 it beats all others.
    fn gap(&self) -> Option<f64> {
        let best = self.best.as_ref()?.0;
        Some(self.default.as_ref().map_or(f64::INFINITY, |default| best - default))
    }

    /// The best objective of all, the default's too.
    fn overall(&self) -> Option<(f64, &str)> {
        let other = self.best.as_ref().map(|(value, by)| (*value, by.as_str()));
        let own = self.default.as_ref().ok().map(|value| (*value, "default"));
        other.into_iter().chain(own).max_by(|a, b| a.0.total_cmp(&b.0))
    }

    fn line(&self) -> String {
        let default = match &self.default {
            Ok(value) => format!("{value:.2}"),
            Err(_) => "failed".into(),
        };
        let (best, by) = match &self.best {
            Some((best, by)) => (format!("{best:.2}"), by.as_str()),
            None => (String::new(), ""),
        };
        let gap = self.gap().map_or(String::new(), |gap| format!("{gap:.2}"));
        format!(
            "| {} | {} | {} | {} | {default} | {best} | {by} | {gap} | {:.2} |",
            self.index, self.likelihood, self.rows, self.inputs, self.seconds
        )
    }
}

/// Hyperparameters, a line for each path.
fn listed(values: &Values) -> String {
    let line = |(path, value): &(String, Vec<f64>)| format!("    {path} = {value:.4?}\n");
    values.iter().map(line).collect()
}

/// Prints where a start ended.
fn show(name: &str, outcome: &Outcome) {
    if let Ok(end) = outcome {
        println!("{name}: {:.3}, {:.2} s\n{}", end.objective, end.seconds, listed(&end.values));
    }
}

const HEAD: &str = "| # | likelihood | rows | inputs | default | best other | by | gap | seconds |\n\
                    | --- | --- | --- | --- | --- | --- | --- | --- | --- |";

fn judge(
    problem: &Problem,
    arguments: &Arguments,
    known: Option<&HashMap<String, Known>>,
    key: &str,
) -> Judged {
    let dataset = problem.dataset();
    // without the default prior of lengthscales: what ends higher by its own measure is no better a start
    let options = FitOptions {
        likelihood: Some(problem.spec.clone()),
        lengthscale_prior: false,
        kernel: "rbf".into(),
        ..FitOptions::default()
    };
    let clock = processor_seconds();
    let default = ended(&dataset, &options);
    let seconds = processor_seconds() - clock;
    if let Err(reason) = &default {
        eprintln!("problem {}, default: {reason}", problem.index);
    }
    if arguments.problem.is_some() {
        println!("the truth\n{}", listed(&problem.truth(&dataset)));
        if let Ok(start) = prepare(&dataset, &options, &Cpu::default(), &mut ()) {
            start.judged.iter().for_each(|one| println!("{}: {:.3}", one.start, one.objective));
        }
        show("default", &default);
    }
    let (mut best, mut before) = (None, None);
    if let Some(known) = known.map(|known| known.get(key)) {
        best = known.map(|k| (k.best, k.by.clone()));
        before = known.and_then(|k| k.default);
    } else if !arguments.default_only {
        alternatives(problem, &dataset, &options, arguments.restarts, |name, outcome| {
            if arguments.problem.is_some() {
                show(name, &outcome);
            }
            match outcome {
                Ok(end) if best.as_ref().is_none_or(|(b, _)| end.objective > *b) => {
                    best = Some((end.objective, name.to_owned()));
                }
                Ok(_) => {}
                Err(reason) => eprintln!("problem {}, {name}: {reason}", problem.index),
            }
        });
    }
    Judged {
        index: problem.index,
        likelihood: problem.likelihood,
        rows: problem.data.x.nrows(),
        inputs: problem.data.x.ncols(),
        kinds: problem.kinds.clone(),
        default: default.map(|end| end.objective),
        seconds,
        best,
        before,
    }
}

/// A line per group: its problems, how many of them are good and bad, and their times.
fn table(title: &str, all: &[Judged], groups: impl Fn(&Judged) -> Vec<&'static str>) {
    println!(
        "\n| {title} | problems | within {GOOD} nat | {BAD} nats below | median gap | worst | seconds |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    let mut names: Vec<&str> = Vec::new();
    for name in all.iter().flat_map(&groups) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.sort_unstable();
    for name in names {
        let own: Vec<&Judged> = all.iter().filter(|j| groups(j).contains(&name)).collect();
        let seconds: f64 = own.iter().map(|j| j.seconds).sum();
        let gaps: Vec<f64> = own.iter().filter_map(|j| j.gap()).collect();
        let (good, bad) = counts(&gaps);
        let worst = gaps.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let judged = match gaps.is_empty() {
            true => "| | |".to_owned(),
            false => format!("{good} | {bad} | {:.2} | {worst:.2}", median(gaps)),
        };
        println!("| {name} | {} | {judged} | {seconds:.1} |", own.len());
    }
}

/// How many gaps are good, and how many bad.
fn counts(gaps: &[f64]) -> (usize, usize) {
    let good = gaps.iter().filter(|gap| **gap <= GOOD).count();
    (good, gaps.iter().filter(|gap| **gap > BAD).count())
}

fn totals(all: &[Judged], other: f64) {
    let seconds: Vec<f64> = all.iter().map(|j| j.seconds).collect();
    let sum: f64 = seconds.iter().sum();
    let most = seconds.iter().copied().fold(0.0, f64::max);
    println!(
        "\n{} default fits: {sum:.1} s in all, median {:.2} s, longest {most:.1} s",
        all.len(),
        median(seconds)
    );
    let failed = all.iter().filter(|j| j.default.is_err()).count();
    if failed > 0 {
        println!("{failed} default fits failed");
    }
    let gaps: Vec<f64> = all.iter().filter_map(Judged::gap).collect();
    if gaps.is_empty() {
        return;
    }
    let (good, bad) = counts(&gaps);
    let share = |count: usize| 100.0 * count as f64 / gaps.len() as f64;
    println!(
        "{} judged: {:.1} % within {GOOD} nat of the best other, {:.1} % at most {BAD} nats below, {:.1} % \
         better than all others by {GOOD} nat; {other:.0} s for the other starts",
        gaps.len(),
        share(good),
        share(gaps.len() - bad),
        share(gaps.iter().filter(|gap| **gap < -GOOD).count()),
    );
    let mut starts: Vec<(&str, usize)> = Vec::new();
    for judged in all.iter().filter(|j| j.gap().is_some_and(|gap| gap > GOOD)) {
        let by = judged.best.as_ref().map_or("", |(_, by)| by.as_str());
        match starts.iter_mut().find(|(name, _)| *name == by) {
            Some((_, count)) => *count += 1,
            None => starts.push((by, 1)),
        }
    }
    starts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let starts: Vec<String> = starts.iter().map(|(by, n)| format!("{by} {n}")).collect();
    println!("best start where the default misses more than {GOOD} nat: {}", starts.join(", "));
    let moved: Vec<f64> =
        all.iter().filter_map(|j| Some(*j.default.as_ref().ok()? - j.before?)).collect();
    if !moved.is_empty() {
        let better = moved.iter().filter(|by| **by > GOOD).count();
        let worse = moved.iter().filter(|by| **by < -GOOD).count();
        println!(
            "since the file was written: {better} default fits of {} better by more than {GOOD} nat, {worse} worse",
            moved.len()
        );
    }
    let mut worst: Vec<&Judged> = all.iter().filter(|j| j.gap().is_some()).collect();
    worst.sort_by(|a, b| b.gap().unwrap_or(0.0).total_cmp(&a.gap().unwrap_or(0.0)));
    println!("\nThe worst ten:\n\n{HEAD}");
    for judged in worst.iter().take(10) {
        println!("{} {}", judged.line(), judged.kinds.join("; "));
    }
}

fn main() {
    let arguments = Arguments::read();
    let known = arguments.against.as_deref().map(read_known);
    let mut saved = arguments.save.as_deref().map(Saved::create);
    if !missing().is_empty() {
        eprintln!("likelihoods that are not drawn from: {}", missing().join(", "));
    }
    println!("{HEAD}");
    let (mut all, mut unknown) = (Vec::new(), 0);
    let clock = Instant::now();
    for index in 0..arguments.count {
        let draw = if arguments.functions { Problem::function } else { Problem::draw };
        let problem = draw(arguments.seed, index, arguments.most_rows);
        if arguments.only.as_ref().is_some_and(|only| only != problem.likelihood)
            || arguments.problem.is_some_and(|problem| problem != index)
        {
            continue;
        }
        let key = format!("{:016x}", problem.key());
        let judged = judge(&problem, &arguments, known.as_ref(), &key);
        println!("{}", judged.line());
        if let Some(saved) = &mut saved {
            saved.write(&key, &judged);
        }
        unknown += usize::from(known.as_ref().is_some_and(|known| !known.contains_key(&key)));
        all.push(judged);
    }
    if all.is_empty() {
        println!("no such problem among {}", arguments.count);
        return;
    }
    let other = clock.elapsed().as_secs_f64() - all.iter().map(|j| j.seconds).sum::<f64>();
    table("likelihood", &all, |j| vec![j.likelihood]);
    table("kind", &all, |j| j.kinds.clone());
    totals(&all, other.max(0.0));
    if unknown > 0 {
        println!(
            "{unknown} problems are not in the file: another seed, other limits, or other draws"
        );
    }
}

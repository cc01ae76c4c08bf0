//! `sparsegp fit`: from a table to a model.

use crate::context::{Context, Reply};
use crate::data::{self, Opened, Split};
use crate::facts;
use crate::fail::{Fail, Result};
use crate::fit_args::FitArgs;
use crate::fit_options::{self, Plan};
use crate::format::count;
use crate::kind::{self, Kind};
use crate::outputs::refuse_overwriting;
use crate::progress::Progress;
use crate::score::{self, AllScores};
use crate::values::is_about_arguments;
use crate::{plot, remembered, report, saving, scores, trace};
use serde_json::json;
use sparsegp::data::{Classes, Holidays, Selection};
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Fitted, Purpose, Scaling, Standardise, encoded};
use sparsegp::likelihoods::Likelihood;
use sparsegp::{Error, atomic, io};
use std::path::PathBuf;

/// Runs the command.
pub fn run(args: &FitArgs, context: &Context) -> Result<Reply> {
    check_outputs(args)?;
    let split = match (args.split, &args.test_mask) {
        (Some(fraction), _) => Split::Random(fraction, args.settings.seed()),
        (None, Some(spec)) => Split::Mask(spec),
        (None, None) => Split::None,
    };
    let Learnt { mut fitted, opened, notes, dropped } = learn_from(args, &split, context)?;
    context.warn(&fitted.warnings);
    fitted.warnings.splice(0..0, notes);
    // a failure to write comes last: what there is to show is shown first
    let mut failures = Vec::new();
    fitted.remember_reading(opened.table.read_options());
    if let Some(path) = &args.output {
        // by now the table may be gone, which is not a reason to lose the model
        if let Err(error) = remembered::keep(&mut fitted, &opened) {
            let text = format!("the model does not remember which rows it learnt from: {error}");
            context.warn(std::slice::from_ref(&text));
            fitted.warnings.push(text);
        }
        failures.extend(saving::save(&fitted, path).err());
        if let [failure] = &failures[..] {
            context.warn(&[failure.to_string()]);
        }
    }
    if let Some(path) = &args.trace {
        failures.extend(trace::write(path, &fitted).err());
    }
    if context.interrupted() {
        return ended(reply(args, &fitted, dropped, None, &failures), failures, context);
    }
    let scores = Judged {
        train: score::score(&fitted, &opened.train, context)?,
        test: match &opened.test {
            Some(test) => Some(score::score(&fitted, test, context)?),
            None => None,
        },
    };
    if let Some(path) = &args.plot {
        let judged = scores.test.as_ref().unwrap_or(&scores.train);
        failures.extend(plot::draw(path, &fitted, &opened, judged).err());
    }
    ended(reply(args, &fitted, dropped, Some(&scores), &failures), failures, context)
}

/// Ends with the reply, or after it with the first file that could not be written.
fn ended(reply: Reply, failures: Vec<Fail>, context: &Context) -> Result<Reply> {
    match failures.into_iter().next() {
        None => Ok(reply),
        Some(failure) => {
            context.print(&reply)?;
            Err(Fail::Part(failure.to_string()))
        }
    }
}

/// A model, with the rows it was learnt from and those held out.
pub struct Learnt {
    /// The model.
    pub fitted: Fitted,
    /// The rows.
    pub opened: Opened,
    /// What was worth a warning before the training.
    pub notes: Vec<String>,
    /// Rows that were left out.
    pub dropped: usize,
}

/// Learns a model from the rows that are not held out.
pub fn learn_from(args: &FitArgs, split: &Split, context: &Context) -> Result<Learnt> {
    let from = args.from.as_deref().map(io::load).transpose()?;
    let (mut opened, early) = open(args, from.as_ref(), split)?;
    let stream = args.stream || opened.is_large()?;
    let scaling = match &from {
        Some(fitted) => Scaling::Given(fitted.scaler.clone()),
        None if args.no_standardise => Scaling::from(false),
        None => Standardise::all_that(&*early)
            .for_kernel(args.settings.text("kernel").unwrap_or_default()),
    };
    let method = args.method()?;
    // rows that are kept aside ask for minibatches, which `auto` has of plain rows by another method
    let merging = from.is_none() && !args.settings.has("early_stopping");
    let purpose = merging.then_some(Purpose {
        method: &method,
        likelihood: &*early,
        inducing: args.settings.has("inducing"),
    });
    let (mut dataset, dropped) = opened.dataset(scaling, stream, purpose)?;
    if args.settings.has("relative_weights") {
        if dataset.total_weight.is_none() {
            return Err(Fail::usage(
                "`--relative-weights` needs weights: name their column by `--weight`",
            ));
        }
        dataset.make_weights_relative()?;
    }
    let likelihood = likelihood(args, from.as_ref(), &dataset, &opened)?;
    let gaussian = Kind::of_likelihood(&*likelihood) == Kind::Gaussian;
    if dataset.classes.is_none() && !(gaussian && dataset.extra_name.is_none()) {
        opened.check(&*likelihood)?;
    }
    context.check_stop()?;
    let Plan { options, mut notes, reason } =
        fit_options::plan(args, from.as_ref(), &dataset, gaussian)?;
    if stream && !args.stream {
        notes.push("the table is large: it is read again for every evaluation (--stream)".into());
    }
    if dropped > 0 {
        notes.push(format!("{} with missing numbers left out", count(dropped, "row")));
    }
    if !opened.filled.is_empty() {
        let of = |(name, missing): &(String, usize)| format!("`{name}` ({missing})");
        let all: Vec<String> = opened.filled.iter().map(of).collect();
        notes.push(format!("missing cells are filled in {}", all.join(", ")));
    }
    if dataset.repeated > 0 {
        notes.push(format!(
            "{} the same inputs as an earlier row; they count as repeated observations",
            match dataset.repeated {
                1 => "1 row has".into(),
                repeated => format!("{repeated} rows have"),
            }
        ));
    }
    context.warn(&notes);
    if let Some(path) = options.checkpoint.as_deref().filter(|path| path.exists()) {
        context.note(&format!("{} exists: resuming from it", path.display()));
    }
    let mut fitted = match from {
        Some(fitted) => continue_training(fitted, &dataset, &options, context)?,
        None => learn(&dataset, &options, context)?,
    };
    if let Some(reason) = reason {
        fitted.reason = reason;
    }
    Ok(Learnt { fitted, opened, notes, dropped })
}

/// Scores on the training rows and, where some were held out, on those.
struct Judged {
    train: AllScores,
    test: Option<AllScores>,
}

/// Refuses, before any work, what could not be written after it.
fn check_outputs(args: &FitArgs) -> Result<()> {
    let checkpoint = args.checkpoint();
    let outputs = [&args.output, &args.plot, &args.trace, &checkpoint];
    let inputs = [Some(&args.data), args.holidays.as_ref()];
    refuse_overwriting(outputs.into_iter().flatten(), inputs.into_iter().flatten())?;
    for path in outputs.into_iter().flatten() {
        atomic::check_writable(path)?;
    }
    if let Some(path) = &args.plot {
        plot::check_name("--plot", path)?;
    }
    Ok(())
}

/// Opens the table, and says under which likelihood its columns are read (of how many classes is not
/// known yet).
fn open(
    args: &FitArgs,
    from: Option<&Fitted>,
    split: &Split,
) -> Result<(Opened, Box<dyn Likelihood>)> {
    let table = match from {
        Some(fitted) => args.table.open_for(&args.data, fitted)?,
        None => args.table.open(&args.data)?,
    };
    let spec = args.settings.text("likelihood");
    let early = match (from, spec) {
        (Some(fitted), _) => fitted.model.likelihood.clone(),
        (None, Some(spec)) => sparsegp::fit::likelihood(Some(spec), None)
            .or_else(|_| sparsegp::fit::likelihood(Some(spec), Some(2)))
            .map_err(Fail::of_usage)?,
        (None, None) => {
            let labels = args.classes
                || !args.levels.is_empty()
                || matches!(&args.target[..], [one] if table.holds_labels(one)?);
            sparsegp::fit::likelihood(None, labels.then_some(2)).map_err(Fail::of_usage)?
        }
    };
    let mut selection = match from {
        Some(fitted) => {
            let mut selection = kind::with_targets(fitted);
            selection.weight.clone_from(&fitted.weight_name);
            selection.extra.clone_from(&fitted.extra_name);
            selection
        }
        None => Selection::targets(&args.target).ignore(&args.ignore),
    };
    if from.is_none_or(|fitted| fitted.extra_name.is_none()) || args.extra().is_some() {
        fit_options::check(args, &*early)?;
    }
    selection = args.named(selection);
    let labels = match from {
        Some(fitted) => fitted.classes.is_some(),
        None => early.classes().is_some(),
    };
    if labels {
        selection = selection.categorical();
    }
    let mut filled = Vec::new();
    if from.is_none() {
        let kernels = args.settings.text("kernel").unwrap_or_default();
        selection = encoded(&table, &selection, kernels, &args.categorical)?;
        if let Some(path) = &args.holidays {
            let holidays = Holidays::of_table(&args.table.open(path)?)?;
            selection = table.with_holidays(selection, &holidays)?;
        }
        selection = table.with_places(selection, &args.places)?;
        if let Some(how) = args.missing.fill() {
            (selection, filled) = table.filled(&selection, how)?;
        }
    }
    let mut opened = data::open(table, &selection, args.missing.into(), split)?;
    opened.filled = filled;
    if let Some(fraction) = args.settings.number("early_stopping") {
        opened.put_aside(fraction, split, args.settings.seed())?;
    }
    let levels = match args.levels.is_empty() {
        true => None,
        false if !labels => {
            let reason = "`--levels` orders classes, and this likelihood is not of classes: add --likelihood ordinal";
            return Err(Fail::usage(reason));
        }
        false => Some(Classes::levels(&args.levels).map_err(Fail::of_usage)?),
    };
    opened.know(levels.as_ref().or(from.and_then(|fitted| fitted.classes.as_ref())));
    if from.is_none() {
        fit_options::check_kernels(args, &opened)?;
    }
    Ok((opened, early))
}

/// Returns the likelihood, now that the classes are known.
fn likelihood(
    args: &FitArgs,
    from: Option<&Fitted>,
    dataset: &Dataset,
    opened: &Opened,
) -> Result<Box<dyn Likelihood>> {
    if let Some(fitted) = from {
        return Ok(fitted.model.likelihood.clone());
    }
    let classes = dataset.classes.as_ref();
    let likelihood = sparsegp::fit::likelihood_for(
        &args.method()?,
        args.settings.text("likelihood"),
        classes.map(Classes::count),
    )
    .map_err(Fail::of_usage)?;
    kind::check_classes(&*likelihood, classes, &opened.table, &dataset.target_names[0])?;
    Ok(likelihood)
}

/// Shows the progress of a training.
fn watched(
    dataset: &Dataset,
    options: &FitOptions,
    context: &Context,
    train: impl FnOnce(&mut Progress<'_>) -> sparsegp::Result<Fitted>,
) -> Result<Fitted> {
    let rows = dataset.source.rows();
    let offset = dataset.log_jacobian();
    let progress = match sparsegp::fit::planned_batches(options, rows) {
        Some(batches) => {
            let epochs = batches.training.epochs(rows.div_ceil(batches.size.min(rows).max(1)));
            Progress::of_batches(context, epochs, batches.size, rows, offset)
        }
        None => Progress::new(context, options.train.max_iterations, offset),
    };
    let mut progress = progress.limited(options.time_limit);
    let fitted = train(&mut progress);
    drop(progress);
    fitted.map_err(|error| match error {
        Error::Interrupted => Fail::Interrupted,
        error if is_about_arguments(&error) => Fail::of_usage(error),
        error => error.into(),
    })
}

/// Trains, showing progress.
pub fn learn(dataset: &Dataset, options: &FitOptions, context: &Context) -> Result<Fitted> {
    watched(dataset, options, context, |progress| {
        sparsegp::fit::fit(dataset, options, &Cpu::default(), progress)
    })
}

/// Trains a saved model further.
fn continue_training(
    mut fitted: Fitted,
    dataset: &Dataset,
    options: &FitOptions,
    context: &Context,
) -> Result<Fitted> {
    for path in &options.freeze {
        fitted.model.freeze(path, true).map_err(Fail::of_usage)?;
    }
    watched(dataset, options, context, |progress| {
        sparsegp::fit::go_on(fitted, dataset, options, &Cpu::default(), progress)
    })
}

fn reply(
    args: &FitArgs,
    fitted: &Fitted,
    dropped: usize,
    scores: Option<&Judged>,
    failures: &[Fail],
) -> Reply {
    let mut text = facts::summary(fitted) + "\n" + &report::parameters_table(fitted, false);
    if let Some(scores) = scores {
        let mut sets = vec![("train", &scores.train)];
        sets.extend(scores.test.as_ref().map(|test| ("test", test)));
        text += "\n";
        text += &scores::table(&sets);
    } else {
        text += "\ninterrupted: the best parameters found so far are kept; not scored or drawn\n";
        if args.settings.has("checkpoint") {
            text += "run the same command again to resume\n";
        }
    }
    let checkpoint = args.checkpoint();
    let files = [
        ("model", &args.output),
        ("plot", &args.plot),
        ("trace", &args.trace),
        ("checkpoint", &checkpoint),
    ];
    let written = |name: &str| name != "plot" || scores.is_some();
    let missing = |path: &&PathBuf| {
        failures.iter().any(|failure| failure.to_string().starts_with(&*path.to_string_lossy()))
    };
    let files: Vec<(&str, &PathBuf)> = files
        .iter()
        .filter(|(n, _)| written(n))
        .filter_map(|(n, p)| Some((*n, p.as_ref().filter(|path| !missing(path))?)))
        .collect();
    text += "\n";
    for (name, path) in &files {
        text += &format!("{name} written to {}\n", path.display());
    }
    if args.output.is_none() {
        text += "the model was not kept: add -o MODEL.safetensors for that\n";
    }
    let of = |scores: &AllScores| scores::json(scores).unwrap_or_default();
    let mut json = json!({ "command": "fit", "data": args.data, "dropped": dropped });
    json["model"] = report::model_json(fitted);
    json["interrupted"] = json!(scores.is_none());
    json["scores"] = json!({
        "train": scores.map(|s| of(&s.train)),
        "test": scores.and_then(|s| s.test.as_ref()).map(of),
    });
    json["files"] = files.iter().map(|(n, p)| ((*n).to_owned(), json!(p))).collect();
    Reply { text, json, is_result: false }
}

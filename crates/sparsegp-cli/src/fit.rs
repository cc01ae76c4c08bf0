//! `sparsegp fit`: from a table to a model.

use crate::context::{Context, Reply};
use crate::data::{self, Opened, Split};
use crate::fail::{Fail, Result};
use crate::fit_args::{FitArgs, OptimiserChoice, is_about_arguments};
use crate::format::count;
use crate::progress::Progress;
use crate::score::{self, AllScores};
use crate::{plot, report, trace};
use serde_json::json;
use sparsegp::data::{Selection, Table};
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Fitted};
use sparsegp::inducing::select;
use sparsegp::kernels::{self, Inputs};
use sparsegp::optim::{AdamOptions, LbfgsOptions};
use sparsegp::train::{OptimiserKind, TrainOptions};
use sparsegp::{Error, atomic, io};
use std::path::{Path, PathBuf};

/// Runs the command.
pub fn run(args: &FitArgs, context: &Context) -> Result<Reply> {
    check_outputs(args)?;
    let opened = open(args)?;
    let stream = args.stream || opened.is_large()?;
    let (dataset, dropped) = opened.dataset(!args.no_standardise, stream)?;
    context.go_on()?;
    let (options, mut notes) = options(args, &dataset)?;
    if stream && !args.stream {
        notes.push("the table is large: it is read again for every evaluation (--stream)".into());
    }
    if dropped > 0 {
        notes.push(format!("{} with missing numbers left out", count(dropped, "row")));
    }
    context.warn(&notes);
    let mut fitted = learn(&dataset, &options, context)?;
    context.warn(&fitted.warnings);
    fitted.warnings.splice(0..0, notes);
    drop(dataset);
    if let Some(path) = &args.output {
        io::save(&fitted, path)?;
    }
    if let Some(path) = &args.trace {
        trace::write(path, &fitted)?;
    }
    if context.interrupted() {
        return Ok(reply(args, &fitted, dropped, None));
    }
    let scores = Judged {
        train: score::score(&fitted, &opened.train, context)?,
        test: match &opened.test {
            Some(test) => Some(score::score(&fitted, test, context)?),
            None => None,
        },
    };
    if let Some(path) = &args.plot {
        plot::draw(path, &fitted, &opened)?;
    }
    Ok(reply(args, &fitted, dropped, Some(&scores)))
}

/// Scores on the training rows and, where some were held out, on those.
struct Judged {
    train: AllScores,
    test: Option<AllScores>,
}

/// Refuses, before any work, what could not be written after it.
fn check_outputs(args: &FitArgs) -> Result<()> {
    let outputs = [&args.output, &args.plot, &args.trace];
    let outputs: Vec<&PathBuf> = outputs.into_iter().flatten().collect();
    for (i, path) in outputs.iter().enumerate() {
        if **path == args.data || outputs[..i].contains(path) {
            let path = path.display();
            return Err(Fail::usage(format!("{path} would be overwritten; choose another name")));
        }
        atomic::check_writable(path)?;
    }
    if let Some(path) = &args.plot
        && !path.extension().is_some_and(|e| e.eq_ignore_ascii_case("svg"))
    {
        let path = path.display();
        return Err(Fail::usage(format!(
            "--plot {path}: the picture is SVG; end its name in .svg"
        )));
    }
    Ok(())
}

fn open(args: &FitArgs) -> Result<Opened> {
    let mut selection = Selection::targets(&args.target).ignore(&args.ignore);
    if !args.features.is_empty() {
        selection = selection.inputs(&args.features);
    }
    let split = match (args.split, &args.test_mask) {
        (Some(fraction), _) => Split::Random(fraction, args.seed),
        (None, Some(spec)) => Split::Mask(spec),
        (None, None) => Split::None,
    };
    let opened = data::open(&args.data, &selection, args.missing.into(), &split)?;
    // A mistake in the kernel should not wait for the data.
    kernels::parse(&args.kernel, Inputs::named(&opened.train.input_names()))
        .map_err(Fail::of_usage)?;
    Ok(opened)
}

/// Options for the library, and what to tell about them.
fn options(args: &FitArgs, dataset: &Dataset) -> Result<(FitOptions, Vec<String>)> {
    let mut notes = Vec::new();
    let mut options = FitOptions {
        kernel: args.kernel.clone(),
        mean: args.mean.clone(),
        method: args.method.clone(),
        inducing: args.inducing,
        seed: args.seed,
        jitter: args.jitter.unwrap_or_default(),
        set: args.set.clone(),
        freeze: args.freeze.clone(),
        train: TrainOptions {
            optimiser: match args.optimiser {
                OptimiserChoice::Lbfgs => OptimiserKind::Lbfgs(LbfgsOptions::default()),
                OptimiserChoice::Adam => OptimiserKind::Adam(AdamOptions {
                    learning_rate: args.learning_rate.unwrap_or(0.01),
                    ..AdamOptions::default()
                }),
            },
            max_iterations: args.max_iterations,
        },
        ..FitOptions::default()
    };
    if args.learning_rate.is_some() && args.optimiser == OptimiserChoice::Lbfgs {
        return Err(Fail::usage("--learning-rate is for Adam; add --optimiser adam"));
    }
    options.selection = match args.inducing_from.parse() {
        Ok(selection) => selection,
        Err(error) if !Path::new(&args.inducing_from).exists() => {
            return Err(Fail::usage(format!(
                "{error}, or a file of points (there is none of that name)"
            )));
        }
        Err(_) => given_points(args, dataset)?,
    };
    if let select::Selection::Given(points) = &options.selection {
        if args.inducing.is_some_and(|m| m != points.nrows()) {
            return Err(Fail::usage(format!(
                "--inducing-from {} has {}; leave --inducing out",
                args.inducing_from,
                count(points.nrows(), "point")
            )));
        }
        options.inducing = Some(points.nrows());
    }
    if args.method == "exact" && options.inducing.is_some() {
        notes.push(
            "exact inference has no inducing points: what was said of them has no effect".into(),
        );
    }
    Ok((options, notes))
}

/// Inducing points from a table, onto the model's scale.
fn given_points(args: &FitArgs, dataset: &Dataset) -> Result<select::Selection> {
    let selection = Selection::all_inputs().inputs(&dataset.input_names);
    let mut x = Table::open(&args.inducing_from)?.select(&selection)?.read_all()?.x;
    // The scaler looks at inputs only.
    dataset.scaler.scale_x(x.as_mut())?;
    Ok(select::Selection::Given(x))
}

/// Trains, showing progress.
pub fn learn(dataset: &Dataset, options: &FitOptions, context: &Context) -> Result<Fitted> {
    let offset = dataset.source.rows() as f64 * dataset.scaler.log_jacobian();
    let mut progress = Progress::new(context, options.train.max_iterations, offset);
    let fitted = sparsegp::fit::fit(dataset, options, &Cpu::default(), &mut progress);
    drop(progress);
    fitted.map_err(|error| match error {
        Error::Interrupted => Fail::Interrupted,
        error if is_about_arguments(&error) => Fail::of_usage(error),
        error => error.into(),
    })
}

fn reply(args: &FitArgs, fitted: &Fitted, dropped: usize, scores: Option<&Judged>) -> Reply {
    let mut text = report::summary(fitted) + "\n" + &report::parameters_table(fitted, false);
    if let Some(scores) = scores {
        let mut sets = vec![("train", &scores.train)];
        sets.extend(scores.test.as_ref().map(|test| ("test", test)));
        text += "\n";
        text += &report::scores_table(&sets);
    } else {
        text += "\ninterrupted: the best parameters found so far are kept; not scored or drawn\n";
    }
    let files = [("model", &args.output), ("plot", &args.plot), ("trace", &args.trace)];
    let written = |name: &str| name != "plot" || scores.is_some();
    let files: Vec<(&str, &PathBuf)> = files
        .iter()
        .filter(|(n, _)| written(n))
        .filter_map(|(n, p)| Some((*n, p.as_ref()?)))
        .collect();
    text += "\n";
    for (name, path) in &files {
        text += &format!("{name} written to {}\n", path.display());
    }
    if args.output.is_none() {
        text += "the model was not kept: add -o MODEL.safetensors for that\n";
    }
    let of = |scores: &AllScores| report::scores_json(scores).unwrap_or_default();
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

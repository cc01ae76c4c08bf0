//! From options of `sparsegp fit` to options of the library, and the contradictions among them.

use crate::data::Opened;
use crate::fail::{Fail, Result};
use crate::fit_args::FitArgs;
use crate::format::count;
use crate::kind::option_of;
use sparsegp::Error;
use sparsegp::data::Selection;
use sparsegp::fit::settings::{self, Asked, Door, Trait, Way};
use sparsegp::fit::{AUTO_EXACT, AUTO_WHOLE, Dataset, FitOptions, Fitted, is_automatic};
use sparsegp::inducing::select;
use sparsegp::kernels::{self, Inputs};
use sparsegp::likelihoods::{Likelihood, REGISTRY};
use sparsegp::methods;
use std::path::Path;

/// How to train, and what to tell about it.
pub struct Plan {
    /// For the library.
    pub options: FitOptions,
    /// Things worth a warning.
    pub notes: Vec<String>,
    /// Why the method, where it is not the library that chose.
    pub reason: Option<String>,
}

/// Checks options that could be refused by their values, before any file is read.
pub fn check(args: &FitArgs, likelihood: &dyn Likelihood) -> Result<()> {
    let usage = |text: String| Err(Fail::usage(text));
    let name = likelihood.name();
    match (args.extra(), likelihood.extra()) {
        (Some((option, what, _)), wanted) if wanted.is_none_or(|w| w.name != what) => {
            let has =
                wanted.map_or(String::new(), |w| format!(" (it takes {})", option_of(w.name)));
            usage(format!(
                "{option} is not for the likelihood `{name}`{has}; for it choose --likelihood {}",
                takers(what).join(", ")
            ))
        }
        (None, Some(wanted)) if wanted.default.is_none() => usage(format!(
            "the likelihood `{name}` needs the {} of every row: {} COLUMN",
            wanted.name,
            option_of(wanted.name)
        )),
        _ => Ok(()),
    }?;
    if args.classes && likelihood.classes().is_none() {
        return usage(format!(
            "--classes and --likelihood {name} contradict each other: choose a likelihood of \
             classes, or leave one of the two out"
        ));
    }
    Ok(())
}

/// Returns likelihoods that take an extra column of this kind.
pub fn takers(extra: &str) -> Vec<&'static str> {
    let takes = |name: &&str| {
        let built = sparsegp::fit::likelihood(Some(name), None);
        built.is_ok_and(|l| l.extra().is_some_and(|own| own.name == extra))
    };
    REGISTRY.iter().map(|entry| entry.name).filter(takes).collect()
}

/// Refuses kernels that cannot be: a mistake should not wait for the data.
pub fn check_kernels(args: &FitArgs, opened: &Opened) -> Result<()> {
    let names = opened.train.input_names();
    let kernel = args.settings.text("kernel").unwrap_or("auto");
    if is_automatic(kernel) {
        return Ok(());
    }
    for spec in kernel.split(';') {
        kernels::parse(spec.trim(), Inputs::named(&names)).map_err(Fail::of_usage)?;
    }
    Ok(())
}

/// Returns the method for the library, what it will turn out to be, and why where that is not
/// clear.
fn method(
    args: &FitArgs,
    from: Option<&Fitted>,
    dataset: &Dataset,
    gaussian: bool,
) -> Result<(String, Vec<&'static str>, Option<String>)> {
    let asked = match from {
        Some(fitted) => fitted.model.method.name().to_owned(),
        None => args.method()?,
    };
    if asked != "auto" {
        return Ok((asked, Vec::new(), None));
    }
    let settings = &args.settings;
    let batches = settings.first(Trait::Minibatches);
    let others = [
        ("--full-batch", settings.has("full_batch")),
        ("--diagonal", settings.has("diagonal")),
        ("--missing keep", args.keeps_missing()),
    ];
    let other = others.into_iter().find_map(|(name, given)| given.then(|| name.to_owned()));
    let steps = settings.first(Trait::NaturalSteps).or(settings.first(Trait::Turns));
    let wish = batches.clone().or(steps).or(other);
    let of = |name: &str| Ok((name.into(), Vec::new(), None));
    let few = dataset.source.rows() <= AUTO_EXACT;
    let points = settings.has("inducing") || settings.has("inducing_from");
    // where the kernel has a state-space form
    let many = dataset.source.rows() > if gaussian { AUTO_EXACT } else { AUTO_WHOLE };
    let series = many && !points && dataset.source.inputs() == 1;
    if !gaussian || dataset.extra_name.is_some() || (wish.is_none() && !dataset.source.is_plain()) {
        if batches.is_some() || settings.has("diagonal") {
            // `auto` may see all rows at once
            return of("svgp");
        }
        return match (gaussian && few, wish.is_some()) {
            (true, false) if !points => Ok((asked, vec!["exact"], None)),
            // exact inference has nothing of what was wished for
            (true, true) => of("tsvgp"),
            _ if series && wish.is_none() => Ok((asked, vec!["markov", "svgp", "tsvgp"], None)),
            _ if dataset.source.rows() <= AUTO_WHOLE || settings.has("full_batch") => {
                Ok((asked, vec!["tsvgp"], None))
            }
            _ => Ok((asked, vec!["svgp", "tsvgp"], None)),
        };
    }
    if let Some(option) = wish {
        let reason = format!("the tightest bound that takes {option}");
        return Ok(("svgp2025".into(), Vec::new(), Some(reason)));
    }
    let taken = match few && !points {
        true => vec!["exact"],
        false if series => vec!["markov", "titsias2025"],
        false => vec!["titsias2025"],
    };
    Ok((asked, taken, None))
}

/// Returns options for the library.
pub fn plan(
    args: &FitArgs,
    from: Option<&Fitted>,
    dataset: &Dataset,
    gaussian: bool,
) -> Result<Plan> {
    let (asked, taken, reason) = method(args, from, dataset, gaussian)?;
    let given = &args.settings;
    let rows = dataset.source.rows();
    let way = Way {
        full_batch: given.has("full_batch"),
        adam: given.text("optimiser") == Some("adam"),
        q_by_adam: given.has("diagonal") || given.has("no_natural"),
    };
    let name = taken.first().copied().unwrap_or(&asked);
    let found = methods::find(name).map_err(Fail::of_usage)?;
    let ways = settings::possible(&asked, &taken, rows, way).map_err(Fail::of_usage)?;
    let by_auto = asked == "auto";
    let line = Asked { door: Door::CommandLine, method: name, by_auto, way };
    let mut notes = Vec::new();
    for setting in settings::all() {
        let value = given.0.get(setting.name);
        let Some(text) = value.and_then(|value| setting.refusal(value, &ways, &line)) else {
            continue;
        };
        // many choices may be compared, of which some have points
        let of_points =
            [Trait::Points, Trait::ChosenPoints].map(|own| setting.needs.contains(&own));
        match of_points != [false; 2] && !found.method.is_sparse() {
            true => notes.push(text),
            false => return Err(Fail::usage(text)),
        }
    }
    if args.keeps_missing() && !found.method.has_q() {
        let all = methods::REGISTRY.iter().filter(|e| e.method.has_q());
        return Err(Fail::usage(format!(
            "--missing keep is for the methods that train q ({}), and the method is `{}`",
            all.map(|e| e.name).collect::<Vec<_>>().join(", "),
            found.name
        )));
    }
    let mut options = settings::defaults_of(&asked);
    let mut values = given.0.clone();
    // which was read with its power or its layers; and what may be a file
    values.remove("method");
    values.remove("inducing_from");
    settings::apply(&mut options, &values, Door::CommandLine).map_err(Fail::of_usage)?;
    // which way `auto` goes is a matter of cost, unless an option is for all rows at once
    let batches = match asked == "auto" {
        true => taken != ["tsvgp"] && given.first(Trait::AllRows).is_none(),
        false => ways.iter().any(|own| own.has(Trait::Minibatches)),
    };
    options.batches = options.batches.filter(|_| batches);
    let was_diagonal = from.and_then(|own| own.model.q.as_ref()).is_some_and(|q| q.is_diagonal());
    if let Some(batches) = &mut options.batches {
        batches.size = batches.size.min(rows);
        batches.training.natural = batches.training.natural.filter(|_| !was_diagonal);
    }
    if from.is_none() {
        options.selection = selection(args, dataset)?;
    }
    if let select::Selection::Given(points) = &options.selection {
        if options.inducing.is_some_and(|m| m != points.nrows()) {
            return Err(Fail::usage(format!(
                "--inducing-from {} has {}; leave --inducing out",
                given.text("inducing_from").unwrap_or_default(),
                count(points.nrows(), "point")
            )));
        }
        options.inducing = Some(points.nrows());
    }
    Ok(Plan { options, notes, reason })
}

fn selection(args: &FitArgs, dataset: &Dataset) -> Result<select::Selection> {
    let how = args.settings.text("inducing_from").unwrap_or("kmeans");
    match how.parse() {
        Ok(selection) => Ok(selection),
        Err(error) if !Path::new(how).exists() => {
            let error: Error = error;
            Err(Fail::usage(format!("{error}, or a file of points (there is none of that name)")))
        }
        Err(_) => given_points(args, how, dataset),
    }
}

/// Brings the inducing points from a table onto the model's scale.
fn given_points(args: &FitArgs, file: &str, dataset: &Dataset) -> Result<select::Selection> {
    let selection = Selection::all_inputs().columns(dataset.columns.clone());
    let mut x = args.table.open(Path::new(file))?.select(&selection)?.read_all()?.x;
    // The scaler looks at inputs only.
    dataset.scaler.scale_x(x.as_mut())?;
    Ok(select::Selection::Given(x))
}

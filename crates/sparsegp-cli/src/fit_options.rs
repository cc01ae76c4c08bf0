//! From options of `sparsegp fit` to options of the library, and the contradictions among them.

use crate::data::Opened;
use crate::fail::{Fail, Result};
use crate::fit_args::{FitArgs, OptimiserChoice, TyingChoice};
use crate::format::count;
use crate::kind::option_of;
use sparsegp::Error;
use sparsegp::data::Selection;
use sparsegp::deep::Kind;
use sparsegp::fit::{AUTO_EXACT, BatchOptions, Dataset, FitOptions, Fitted};
use sparsegp::inducing::select;
use sparsegp::kernels::{self, Inputs};
use sparsegp::likelihoods::{Likelihood, REGISTRY};
use sparsegp::methods::{self, Keeps};
use sparsegp::optim::{AdamOptions, LbfgsOptions};
use sparsegp::samplers::gibbs::GibbsOptions;
use sparsegp::train::{EmOptions, OptimiserKind, StochasticOptions, TrainOptions};
use sparsegp::variational::Tying;
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

/// Options that could be refused by their values, before any file is read.
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

/// Likelihoods that take an extra column of this kind.
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
    for spec in args.kernel.as_deref().unwrap_or("rbf").split(';') {
        kernels::parse(spec.trim(), Inputs::named(&names)).map_err(Fail::of_usage)?;
    }
    Ok(())
}

/// The method for the library, what it will turn out to be, and why where that is not clear.
fn method(
    args: &FitArgs,
    from: Option<&Fitted>,
    dataset: &Dataset,
    gaussian: bool,
) -> Result<(String, String, Option<String>)> {
    let asked = match from {
        Some(fitted) => fitted.model.method.name().to_owned(),
        None => args.method()?,
    };
    let steps = args.step_option().is_some();
    let wish = args.batch_option().is_some()
        || steps
        || args.full_batch
        || args.diagonal
        || args.keeps_missing();
    if asked != "auto" {
        return Ok((asked.clone(), asked, None));
    }
    if !gaussian || dataset.extra_name.is_some() || (!wish && !dataset.source.is_plain()) {
        let few = dataset.source.rows() <= AUTO_EXACT;
        if args.batch_option().is_some() || args.diagonal {
            // `auto` may see all rows at once
            return Ok(("svgp".into(), "svgp".into(), None));
        }
        let points = args.inducing.is_some() || args.inducing_from.is_some();
        let (asked, method) = match (gaussian && few, wish) {
            (true, false) if !points => ("auto", "exact"),
            // exact inference has nothing of what was wished for
            (true, true) => ("tsvgp", "tsvgp"),
            _ => ("auto", if few { "tsvgp" } else { "svgp" }),
        };
        return Ok((asked.into(), method.into(), None));
    }
    if wish {
        let others = [
            ("--full-batch", args.full_batch),
            ("--diagonal", args.diagonal),
            ("--missing keep", args.keeps_missing()),
        ];
        let other = others.into_iter().find_map(|(name, given)| given.then_some(name));
        let option = args.batch_option().or(args.step_option()).or(other).unwrap_or("the options");
        let reason = format!("the tightest bound that takes {option}");
        return Ok(("svgp2025".into(), "svgp2025".into(), Some(reason)));
    }
    Ok(("auto".into(), "auto".into(), None))
}

/// Options for the library.
pub fn plan(
    args: &FitArgs,
    from: Option<&Fitted>,
    dataset: &Dataset,
    gaussian: bool,
) -> Result<Plan> {
    let mut notes = Vec::new();
    let (asked, method, reason) = method(args, from, dataset, gaussian)?;
    let trains_q = match method.as_str() {
        "auto" => false,
        name => {
            let method = methods::find(name).map_err(Fail::of_usage)?.method;
            method.with_q().is_some_and(|q| q.is_of_points()) || method.architecture().is_some()
        }
    };
    // `auto` means sites where few rows are seen all at once
    let in_minibatches = methods::find(&method).is_ok_and(|e| e.method.in_minibatches());
    let batches = in_minibatches
        && !args.full_batch
        && (asked.as_str(), method.as_str()) != ("auto", "tsvgp");
    let relaxed = methods::find(&method)
        .ok()
        .and_then(|entry| entry.method.with_q())
        .is_some_and(|own| own.keeps == Keeps::Relaxed);
    if let Some(option) = args.relaxed.given().filter(|_| !relaxed) {
        return Err(Fail::usage(format!(
            "{option} is for `rsvgp`, and the method is `{method}`: add --method rsvgp, or leave it out"
        )));
    }
    if let Some(option) = args.relaxed.given().filter(|_| args.full_batch) {
        return Err(Fail::usage(format!(
            "{option} is for minibatches: on all rows T is as exact as rounding lets it be; leave it out, or \
             --full-batch"
        )));
    }
    of_layers(args, &method)?;
    contradictions(args, &method, trains_q, batches)?;
    of_sites(args, &method, batches)?;
    let rows = dataset.source.rows();
    let asked_auto = method == "auto";
    let rate = args.learning_rate.unwrap_or(AdamOptions::default().learning_rate);
    let adam = || AdamOptions { learning_rate: rate, ..AdamOptions::default() };
    let mut options = FitOptions {
        kernel: args.kernel.clone().unwrap_or_else(|| "rbf".into()),
        kernel_in_data_units: args.kernel_units == "data",
        likelihood: args.likelihood.clone(),
        mean: args.mean.clone(),
        method: asked,
        inducing: args.inducing,
        seed: args.seed,
        jitter: args.jitter.unwrap_or_default(),
        set: args.set.clone(),
        freeze: args.freeze.clone(),
        restarts: args.restarts,
        pilot: args.pilot,
        lengthscale_prior: !args.no_lengthscale_prior,
        train: TrainOptions {
            optimiser: match args.optimiser.unwrap_or_default() {
                OptimiserChoice::Lbfgs => OptimiserKind::Lbfgs(LbfgsOptions::ending_at(
                    args.tolerance.unwrap_or(LbfgsOptions::FITTING),
                )),
                OptimiserChoice::Adam => OptimiserKind::Adam(adam()),
            },
            max_iterations: args.max_iterations.unwrap_or(1000),
            em: em(args),
            checkpoint_seconds: args
                .checkpoint_every
                .unwrap_or(TrainOptions::default().checkpoint_seconds),
        },
        // which way `auto` goes is a matter of cost, unless an option is for all rows at once
        batches: (batches || (asked_auto && args.whole_option().is_none()))
            .then(|| batch_options(args, &method, rows, from)),
        checkpoint: args.checkpoint.clone(),
        time_limit: args.time_limit,
        diagonal: args.diagonal,
        tying: args.tying.map_or(Tying::Natural, Tying::from),
        gibbs: chains(args),
        ..FitOptions::default()
    };
    if from.is_none() {
        options.selection = selection(args, dataset)?;
    }
    if let select::Selection::Given(points) = &options.selection {
        if args.inducing.is_some_and(|m| m != points.nrows()) {
            return Err(Fail::usage(format!(
                "--inducing-from {} has {}; leave --inducing out",
                args.inducing_from.as_deref().unwrap_or_default(),
                count(points.nrows(), "point")
            )));
        }
        options.inducing = Some(points.nrows());
    }
    let sparse = methods::find(&method).map_or(true, |entry| entry.method.is_sparse());
    if !sparse && options.inducing.is_some() {
        notes.push(format!(
            "`{method}` has no inducing points: what was said of them has no effect"
        ));
    }
    Ok(Plan { options, notes, reason })
}

fn chains(args: &FitArgs) -> GibbsOptions {
    let default = GibbsOptions::default();
    GibbsOptions {
        chains: args.chains.unwrap_or(default.chains),
        draws: args.draws.unwrap_or(default.draws),
        burn_in: args.burn_in.unwrap_or(default.burn_in),
        thin: args.thin.unwrap_or(default.thin),
        target: args.law.map_or(default.target, |law| law.into()),
        hyperparameters: args.sample_hyperparameters,
        checkpoint_seconds: args.checkpoint_every.unwrap_or(default.checkpoint_seconds),
        ..default
    }
}

/// How steps of sites alternate with the optimiser.
fn em(args: &FitArgs) -> EmOptions {
    let defaults = args.tolerance.map_or_else(TrainOptions::default, TrainOptions::ending_at).em;
    EmOptions {
        e_steps: args.e_steps.unwrap_or(defaults.e_steps),
        rate: args.natural_rate.or(defaults.rate),
        m_steps: args.m_steps.unwrap_or(defaults.m_steps),
        // who says how to alternate wants that
        rounds: defaults.rounds.filter(|_| args.e_steps.or(args.m_steps).is_none()),
        ..defaults
    }
}

fn batch_options(args: &FitArgs, method: &str, rows: usize, from: Option<&Fitted>) -> BatchOptions {
    let defaults = methods::find(method)
        .map_or_else(|_| BatchOptions::default(), |entry| BatchOptions::of(entry.method));
    let size = args.batch.unwrap_or(defaults.size).min(rows);
    let defaults = defaults.training;
    let rate = args.learning_rate.unwrap_or(defaults.adam.learning_rate);
    let diagonal =
        args.diagonal || from.is_some_and(|f| f.model.q.as_ref().is_some_and(|q| q.is_diagonal()));
    let mut training = StochasticOptions {
        epochs: args.epochs,
        inducing_rate: args.inducing_rate.map_or(defaults.inducing_rate, |own| own / rate),
        adam: AdamOptions { learning_rate: rate, ..AdamOptions::default() },
        natural: match args.no_natural || diagonal {
            true => None,
            false => args.natural_rate.or(defaults.natural),
        },
        em: match (args.e_steps, args.m_steps) {
            (None, None) => None,
            (e, m) => Some((e.unwrap_or(1), m.unwrap_or(1))),
        },
        classes_per_step: args.classes_per_step,
        patience: args.patience.unwrap_or(defaults.patience),
        checkpoint_seconds: args.checkpoint_every.unwrap_or(defaults.checkpoint_seconds),
        ..defaults
    };
    args.relaxed.apply(&mut training, args.seed);
    BatchOptions { size, training }
}

/// Refuses what deep models have nothing of.
fn of_layers(args: &FitArgs, method: &str) -> Result<()> {
    let Some(deep) = methods::find(method).ok().and_then(|entry| entry.method.architecture())
    else {
        return Ok(());
    };
    let roots = matches!(deep.kind, Kind::W | Kind::M);
    let wrong = [
        ("--mean", args.mean.is_some()),
        ("--inducing-from", args.inducing_from.is_some()),
        ("--restarts", args.restarts > 0),
        ("--jitter", args.jitter.is_some()),
        ("--full-batch", args.full_batch),
        ("--diagonal", args.diagonal),
        ("--no-natural", args.no_natural),
        ("--natural-rate", args.natural_rate.is_some() && !roots),
        ("--e-steps", args.e_steps.is_some()),
        ("--m-steps", args.m_steps.is_some()),
        ("--inducing-rate", args.inducing_rate.is_some()),
        ("--early-stopping", args.early_stopping.is_some()),
    ];
    match wrong.into_iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((option, _)) => Err(Fail::usage(format!(
            "{option} does not apply to `{method}`: its layers are trained by Adam on minibatches (--batch, --epochs, \
             --learning-rate, --time-limit); leave it out"
        ))),
    }
}

/// Refuses options that contradict each other.
fn contradictions(args: &FitArgs, method: &str, trains_q: bool, batches: bool) -> Result<()> {
    let usage = |text: String| Err(Fail::usage(text));
    let q_methods = || {
        let all = methods::REGISTRY
            .iter()
            .filter(|e| e.method.with_q().is_some_and(|q| q.is_of_points()));
        all.map(|e| e.name).collect::<Vec<_>>().join(", ")
    };
    let samples = methods::find(method).is_ok_and(|e| e.method.sampler().is_some());
    if let (Some(option), false) = (args.chain_option(), samples) {
        let all = methods::REGISTRY.iter().filter(|e| e.method.sampler().is_some());
        let names = all.map(|e| e.name).collect::<Vec<_>>().join(", ");
        return usage(format!(
            "{option} is for chains, and the method is `{method}`: add --method and one of {names}"
        ));
    }
    let svi = methods::find(method).is_ok_and(|entry| entry.name == "svi");
    if args.classes_per_step.is_some() && !svi {
        return usage(format!(
            "--classes-per-step is for `svi`, and the method is `{method}`: add --method svi, or leave it out"
        ));
    }
    if samples && method != "gibbs-sparse" && args.law.is_some() {
        return usage(
            "--law is for `gibbs-sparse`: that of `nuts-sparse` is `variational`, and without inducing points it is exact"
                .into(),
        );
    }
    if !trains_q {
        let others = [
            ("--full-batch", args.full_batch),
            ("--diagonal", args.diagonal),
            ("--missing keep", args.keeps_missing()),
        ];
        let sites = methods::find(method)
            .is_ok_and(|e| e.method.with_q().is_some_and(|q| !q.is_of_points()));
        let fits = |name: &&str| !(sites && ["--full-batch", "--missing keep"].contains(name));
        let other = others.into_iter().filter(|(_, given)| *given).map(|(name, _)| name).find(fits);
        let steps = args.step_option().filter(|_| !sites);
        if let Some(option) = args.batch_option().or(steps).or(other) {
            return usage(format!(
                "{option} is for the methods that train q ({}), and the method is `{method}`",
                q_methods()
            ));
        }
    }
    let whole = |name: &str| methods::find(name).is_ok_and(|e| !e.method.in_minibatches());
    if let Some(option) = args.batch_option().filter(|_| trains_q && whole(method)) {
        return usage(format!(
            "{option} is for minibatches, and `{method}` sees all rows at once: leave it out, or choose a method that is \
             trained by minibatches, such as `svgp` or `svi`"
        ));
    }
    if let (true, Some(option)) = (batches, args.whole_option()) {
        return usage(format!(
            "{option} is for training on all rows at once, and `{method}` is trained by minibatches \
             (Adam, --epochs): leave it out, or add --full-batch"
        ));
    }
    if args.learning_rate.is_some()
        && !batches
        && args.optimiser.unwrap_or_default() == OptimiserChoice::Lbfgs
    {
        return usage("--learning-rate is for Adam; add --optimiser adam".into());
    }
    if args.tolerance.is_some() && args.optimiser == Some(OptimiserChoice::Adam) {
        return usage("--tolerance is for L-BFGS; leave it out, or --optimiser adam".into());
    }
    Ok(())
}

/// Options that have sense for sites alone, or none for them.
fn of_sites(args: &FitArgs, method: &str, batches: bool) -> Result<()> {
    let usage = |text: String| Err(Fail::usage(text));
    let entry = methods::find(method).ok().map(|e| e.method);
    if entry.and_then(|method| method.with_q()).is_some_and(|q| !q.is_of_points()) {
        return match args.tying {
            Some(_) => usage(format!("--tying is for `tsvgp`: the sites of `{method}` are untied")),
            None => Ok(()),
        };
    }
    if entry.and_then(|method| method.with_q()).is_some_and(|method| method.keeps == Keeps::Sites) {
        if args.diagonal {
            return usage(format!(
                "--diagonal does not apply to `{method}`, which stores q as sites"
            ));
        }
        if args.no_natural {
            return usage(format!("--no-natural: sites (`{method}`) move by natural gradients"));
        }
        if batches && args.tying == Some(TyingChoice::Untied) {
            return usage("--tying untied needs all rows at once: add --full-batch".into());
        }
        return Ok(());
    }
    if entry.and_then(|method| method.with_q()).is_some_and(|own| !own.steps_naturally()) {
        let no_steps = args.step_option().or(args.no_natural.then_some("--no-natural"));
        let options = [no_steps, args.diagonal.then_some("--diagonal")];
        if let Some(option) = options.into_iter().flatten().next() {
            return usage(format!(
                "{option} does not apply to `{method}`, whose q is trained by Adam and has one noise variance \
                 for each inducing point; leave it out, or choose --method svgp"
            ));
        }
    }
    if args.tying.is_some() {
        return usage(format!(
            "--tying is for sites, and `{method}` keeps q by its moments: add --method tsvgp"
        ));
    }
    match args.step_option() {
        Some(option) if args.full_batch => usage(format!(
            "{option}: with --full-batch the optimiser trains the q of `{method}` like all else; leave \
             it out, or choose --method tsvgp"
        )),
        _ => Ok(()),
    }
}

fn selection(args: &FitArgs, dataset: &Dataset) -> Result<select::Selection> {
    let how = args.inducing_from.as_deref().unwrap_or("kmeans");
    match how.parse() {
        Ok(selection) => Ok(selection),
        Err(error) if !Path::new(how).exists() => {
            let error: Error = error;
            Err(Fail::usage(format!("{error}, or a file of points (there is none of that name)")))
        }
        Err(_) => given_points(args, how, dataset),
    }
}

/// Inducing points from a table, onto the model's scale.
fn given_points(args: &FitArgs, file: &str, dataset: &Dataset) -> Result<select::Selection> {
    let selection = Selection::all_inputs().columns(dataset.columns.clone());
    let mut x = args.table.open(Path::new(file))?.select(&selection)?.read_all()?.x;
    // The scaler looks at inputs only.
    dataset.scaler.scale_x(x.as_mut())?;
    Ok(select::Selection::Given(x))
}

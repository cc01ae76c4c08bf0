//! What decides where a training or chains go, by names: a checkpoint is of the training whose settings are the same.
//!
//! The texts are written here word by word, so that nothing that is renamed in the code makes old checkpoints those of
//! another training. Options are taken apart in full: an option that is added does not compile before it has its word.

use super::Settings;
use crate::data::Fingerprint;
use crate::error::Result;
use crate::fit::{Dataset, FitOptions, Hyperparameters};
use crate::inverse_free::{self, SolverOptions, Traces};
use crate::linalg::{Jitter, Precision};
use crate::methods::Following;
use crate::optim::{AdamOptions, LbfgsOptions, Plateau, PlateauRate, Schedule};
use crate::samplers::Target;
use crate::samplers::gibbs::GibbsOptions;
use crate::train::{EmOptions, OptimiserKind, Pace, StochasticOptions, TrainOptions};
use crate::variational::Tying;

/// What follows a kernel whose values are in the data's units.
pub(super) const IN_DATA_UNITS: &str = " in the data's units";

/// The form of the values. Those of a checkpoint that does not name it are of releases that wrote other words.
const FORM: (&str, &str) = ("form of the settings", "3");
/// The name of what tells tables apart by their cells.
const CELLS: &str = "fingerprint of the cells";

/// Returns how two lists of settings differ, for a message; none if they do not. `usual` are the
/// settings of [`FitOptions::default`]: a setting that a checkpoint does not name is one that its
/// release did not have, and it went as it does by default.
pub(super) fn difference(own: &Settings, asked: &Settings, usual: &Settings) -> Option<String> {
    let of = |all: &Settings, name: &str| {
        all.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone())
    };
    if of(own, FORM.0).as_deref() != Some(FORM.1) {
        return Some("another release of this program wrote it".into());
    }
    for (name, asked) in asked {
        let own = of(own, name).or_else(|| of(usual, name));
        if own.as_ref() != Some(asked) {
            if name == CELLS {
                return Some(
                    "cells of the table, weights or the order of its rows have changed".into(),
                );
            }
            let own = own.unwrap_or_else(|| "none".into());
            return Some(format!("its {name}: {own}, not {asked}"));
        }
    }
    let unknown = own.iter().find(|(name, _)| of(asked, name).is_none());
    unknown.map(|(name, own)| format!("its {name}: {own}, which this release does not have"))
}

/// Returns the settings of a training by minibatches, or of chains; the number of epochs may
/// change.
///
/// # Errors
/// What reading the rows that are held out gives.
pub(in crate::fit) fn settings(options: &FitOptions, dataset: &Dataset) -> Result<Settings> {
    let FitOptions {
        kernel,
        kernel_in_data_units,
        likelihood,
        mean,
        target_transform,
        // as they turned out
        log_inputs: _,
        seasons,
        method,
        inducing,
        batches,
        diagonal,
        tying: of_sites,
        gibbs,
        lengthscale_prior,
        relative_weights,
        hyperparameters,
        precision,
        // compared by itself
        seed: _,
        // a start, which parameters in the checkpoint have left behind, but for all rows at once: `whole_settings`
        selection: _,
        jitter: _,
        set: _,
        freeze: _,
        pilot: _,
        restarts: _,
        train: _,
        // when it ends, and where it is kept
        time_limit: _,
        checkpoint: _,
    } = options;
    let rows = dataset.source.rows();
    let word = |given: &Option<String>| given.clone().unwrap_or_else(|| "default".into());
    let size = batches.as_ref().map_or(rows, |batches| batches.size.min(rows));
    let mut all = vec![
        (FORM.0, FORM.1.to_owned()),
        (
            "kernel",
            match kernel_in_data_units {
                true => format!("{kernel}{IN_DATA_UNITS}"),
                false => kernel.clone(),
            },
        ),
        ("seasons", if seasons.is_empty() { "none".into() } else { seasons.join(", ") }),
        ("likelihood", word(likelihood)),
        ("mean", word(mean)),
        ("transform of targets", target_transform.name().into()),
        ("logarithms of inputs", logarithms(dataset)),
        ("method", method.clone()),
        ("number of inducing points", word(&inducing.map(|m| m.to_string()))),
        ("rows of a minibatch", size.to_string()),
        ("diagonal covariances", yes(*diagonal)),
        ("tying of sites", tying(*of_sites)),
        ("chains", chains(gibbs)),
        ("prior of lengthscales", yes(*lengthscale_prior)),
        ("relative weights", yes(*relative_weights)),
        ("average over hyperparameters", averages(*hyperparameters).to_owned()),
        ("precision", precision_name(*precision).to_owned()),
        ("partition of the rows", partition(dataset)),
        (CELLS, cells(dataset)?),
    ];
    let training = batches.as_ref().map(|batches| &batches.training);
    let words = of_minibatches(training.unwrap_or(&StochasticOptions::default()));
    all.extend(words.map(|(name, value)| (name, given(training, |_| value.clone()))));
    Ok(all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn logarithms(dataset: &Dataset) -> String {
    let units = dataset.scaler.x_log.iter().enumerate();
    let all: Vec<String> =
        units.filter_map(|(q, c)| c.map(|c| format!("{q} over {c:e}"))).collect();
    if all.is_empty() { "none".into() } else { all.join(", ") }
}

fn precision_name(precision: Precision) -> &'static str {
    match precision {
        Precision::Double => "double",
        Precision::Single => "mixed",
    }
}

fn averages(over: Hyperparameters) -> &'static str {
    match over {
        Hyperparameters::Auto => "auto",
        Hyperparameters::PlugIn => "none",
        Hyperparameters::Laplace => "laplace",
        Hyperparameters::Nuts => "nuts",
    }
}

/// Returns the settings of minibatches: what their state holds, such as rates, continues as it was.
fn of_minibatches(training: &StochasticOptions) -> [(&'static str, String); 9] {
    let StochasticOptions {
        adam: of_hyperparameters,
        last_rate,
        inducing_rate,
        natural,
        adaptive,
        em,
        classes_per_step,
        pace: of_points,
        following: of_inverse,
        // that of the options of the fit
        seed: _,
        // when it ends
        epochs: _,
        least: _,
        patience: _,
        checkpoint_seconds: _,
    } = training;
    [
        ("optimiser of minibatches", adam(of_hyperparameters)),
        ("share of the rate at the end", last_rate.to_string()),
        ("factor of the rate of inducing points", inducing_rate.to_string()),
        ("natural-gradient rate", given(*natural, |rate| rate.to_string())),
        ("steps that adapt", given(*adaptive, yes)),
        ("E- and M-steps on a minibatch", given(*em, |(e, m)| format!("{e} and {m}"))),
        ("classes of a step", given(*classes_per_step, |count| count.to_string())),
        ("rates of the inducing points", pace(of_points)),
        ("inverse by products", following(of_inverse)),
    ]
}

/// Returns the settings of a training on all rows: those of [`settings`] with those of the
/// optimiser.
///
/// # Errors
/// As for [`settings`].
pub(super) fn whole_settings(options: &FitOptions, dataset: &Dataset) -> Result<Settings> {
    let mut all = settings(options, dataset)?;
    // when it ends, and how often it is kept, may change
    let TrainOptions { optimiser: of_all, em: of_sites, max_iterations: _, checkpoint_seconds: _ } =
        &options.train;
    let set: Vec<String> =
        options.set.iter().map(|(path, values)| format!("{path}={}", numbers(values))).collect();
    all.extend(
        [
            ("optimiser", optimiser(of_all)),
            ("steps of sites", em(of_sites)),
            ("values given", list(&set)),
            ("parameters kept", list(&options.freeze)),
            ("rows of a pilot", options.pilot.to_string()),
            ("jitter", jitter(options.jitter)),
        ]
        .map(|(name, value)| (name.to_owned(), value)),
    );
    Ok(all)
}

fn yes(is: bool) -> String {
    if is { "yes" } else { "no" }.into()
}

fn given<T>(value: Option<T>, word: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "none".into(), word)
}

fn numbers(values: &[f64]) -> String {
    list(&values.iter().map(f64::to_string).collect::<Vec<_>>())
}

fn list(words: &[String]) -> String {
    if words.is_empty() { "none".into() } else { words.join(", ") }
}

/// Returns the name by which it is asked for.
fn tying(tying: Tying) -> String {
    let name = Tying::ALL.iter().find(|(_, one)| *one == tying);
    name.map_or_else(String::new, |(name, _)| (*name).to_owned())
}

fn jitter(jitter: Jitter) -> String {
    match jitter {
        Jitter::Absolute(size) => format!("{size}"),
        Jitter::Relative(share) => format!("{share} of the diagonal"),
    }
}

fn pace(pace: &Pace) -> String {
    let Pace { frozen, beta1, inducing, all } = pace;
    let falling = |rate: &PlateauRate| {
        let PlateauRate { factor, patience, least } = rate;
        format!("times {factor} after {patience}, at least {least}")
    };
    format!(
        "still for {frozen}, momentum {}, falling {}, that of all {}",
        given(*beta1, |beta| beta.to_string()),
        given(inducing.as_ref(), falling),
        given(all.as_ref(), falling)
    )
}

fn following(following: &Following) -> String {
    // the seed is that of the training, and what is evaluated is counted by its state
    let Following { solver, slack, traces, seed: _, evaluation: _ } = following;
    let SolverOptions { schedule, tolerance, most, stall, restart_above, products } = solver;
    let schedule = match schedule {
        inverse_free::Schedule::Adaptive => "adaptive".into(),
        inverse_free::Schedule::Constant(size) => format!("constant {size}"),
        inverse_free::Schedule::LogLinear { first, last, steps } => {
            format!("log-linear {first} to {last} in {steps}")
        }
        inverse_free::Schedule::LineSearch => "line-search".into(),
    };
    let traces = match traces {
        Traces::Exact => "exact".into(),
        Traces::Probes(count, inverse_free::Estimate::LSpace) => format!("{count} probes"),
        Traces::Probes(count, inverse_free::Estimate::Plain) => format!("{count} plain probes"),
    };
    let precision = match products {
        Precision::Double => "double",
        Precision::Single => "single",
    };
    format!(
        "steps {schedule}, tolerance {tolerance}, most {most}, stall {}, restart above {restart_above}, {precision} \
         precision, slack {}, traces {traces}",
        yes(*stall),
        given(*slack, |slack| slack.to_string())
    )
}

fn plateau(plateau: Option<Plateau>) -> String {
    given(plateau, |Plateau { window, tolerance }| format!("{tolerance} in {window}"))
}

fn optimiser(optimiser: &OptimiserKind) -> String {
    match optimiser {
        OptimiserKind::Lbfgs(options) => {
            let LbfgsOptions {
                memory,
                gradient_tolerance,
                objective_tolerance,
                patience,
                plateau: flat,
                curvature,
                line_search_evaluations,
                largest_move,
            } = options;
            format!(
                "L-BFGS, memory {memory}, gradient {gradient_tolerance}, objective {objective_tolerance}, patience \
                 {patience}, plateau {}, curvature {curvature}, line searches of {line_search_evaluations}, moves {}",
                plateau(*flat),
                given(*largest_move, |most| most.to_string())
            )
        }
        OptimiserKind::Adam(options) => adam(options),
    }
}

fn adam(options: &AdamOptions) -> String {
    let AdamOptions {
        learning_rate,
        multipliers,
        beta1,
        beta2,
        momenta,
        epsilon,
        schedule,
        gradient_tolerance,
        plateau: flat,
        halvings,
    } = options;
    let schedule = match schedule {
        Schedule::Constant => "constant".into(),
        Schedule::Exponential { factor } => format!("times {factor} a step"),
        Schedule::Cosine { steps, last } => format!("cosine to {last} in {steps}"),
        Schedule::Power { after, exponent } => format!("power {exponent} after {after}"),
        Schedule::Ramp { speed } => format!("ramp {speed}"),
    };
    format!(
        "Adam, rate {learning_rate} ({schedule}), multipliers {}, β₁ {beta1}, its own {}, β₂ {beta2}, ε {epsilon}, \
         gradient {gradient_tolerance}, plateau {}, halvings {halvings}",
        numbers(multipliers),
        numbers(momenta),
        plateau(*flat)
    )
}

fn em(em: &EmOptions) -> String {
    let EmOptions { e_steps, rate, m_steps, tolerance, rounds } = em;
    format!(
        "{e_steps} of size {}, {m_steps} of the optimiser, tolerance {tolerance}, rounds {}",
        given(*rate, |rate| rate.to_string()),
        given(*rounds, |rounds| rounds.to_string())
    )
}

/// Describes chains; the number of draws may change.
fn chains(options: &GibbsOptions) -> String {
    let GibbsOptions {
        chains,
        burn_in,
        draws: _,
        thin,
        seed: _,
        target,
        hyperparameters,
        // independent draws begin again
        particles: _,
        checkpoint_seconds: _,
    } = options;
    let law = match target {
        Target::Variational => "variational",
        Target::Fitc => "fitc",
    };
    format!(
        "{chains} of law {law}, {burn_in} sweeps of burn-in, {thin} for a draw, hyperparameters sampled: {}",
        yes(*hyperparameters)
    )
}

/// Returns the cells of the rows that are learnt from, and of those that are held out.
fn cells(dataset: &Dataset) -> Result<String> {
    let aside = dataset.held_out.as_deref().map(|rows| Ok(Fingerprint::of(rows)?.value()));
    let aside = aside.transpose()?.map_or(String::new(), |cells| format!(" and {cells:016x}"));
    Ok(format!("{:016x}{aside}", dataset.cells))
}

/// Returns how the rows lie in other processes, which decides the last bits of sums.
fn partition(dataset: &Dataset) -> String {
    let Some(rows) = dataset.source.sharded() else { return "none".into() };
    let sizes: Vec<u8> =
        rows.sizes().into_iter().flat_map(|size| (size as u64).to_le_bytes()).collect();
    format!("{} shards, checksum {:08x}", rows.count(), crc32fast::hash(&sizes))
}

#[cfg(test)]
mod tests {
    use super::{Settings, difference, settings, whole_settings};
    use crate::fit::{Dataset, FitOptions};
    use crate::optim::LbfgsOptions;
    use crate::train::OptimiserKind;
    use faer::Mat;

    fn data() -> Dataset {
        let x = Mat::from_fn(9, 2, |i, j| ((3 * i + j) % 5) as f64);
        Dataset::from_arrays(x, Mat::from_fn(9, 1, |i, _| i as f64), false).expect("a table")
    }

    fn of(options: &FitOptions) -> Settings {
        whole_settings(options, &data()).expect("settings")
    }

    #[test]
    fn names_decide_not_places() {
        let usual = of(&FitOptions::default());
        let asked =
            of(&FitOptions { kernel: "matern32".into(), pilot: 7, ..FitOptions::default() });
        // in another order
        let turned: Settings = asked.iter().rev().cloned().collect();
        assert_eq!(difference(&turned, &asked, &usual), None);
        // written before there was a setting that is asked for as it is by default, and as it is not
        let without = |name: &str| -> Settings {
            let names = asked.iter().filter(|(own, _)| own != name);
            assert_eq!(names.clone().count() + 1, asked.len());
            names.cloned().collect()
        };
        assert_eq!(difference(&without("jitter"), &asked, &usual), None);
        let message =
            difference(&without("rows of a pilot"), &asked, &usual).expect("a difference");
        assert!(
            message.contains("its rows of a pilot: ") && message.ends_with(", not 7"),
            "{message}"
        );
        // of a release that has more of them, and of one that wrote them in other words
        let mut more = asked.clone();
        more.push(("colour".into(), "blue".into()));
        let message = difference(&more, &asked, &usual).expect("a difference");
        assert_eq!(message, "its colour: blue, which this release does not have");
        let message = difference(&without("form of the settings"), &asked, &usual);
        assert!(message.expect("a difference").contains("another release"));
    }

    #[test]
    fn words_are_written_out() {
        let all = of(&FitOptions {
            set: vec![("kernel.lengthscales".into(), vec![0.5, 2.0])],
            ..FitOptions::default()
        });
        let value = |name: &str| {
            let found = all.iter().find(|(own, _)| own == name);
            found.unwrap_or_else(|| panic!("no {name}")).1.clone()
        };
        assert_eq!(value("tying of sites"), "natural");
        assert_eq!(value("values given"), "kernel.lengthscales=0.5, 2");
        assert_eq!(value("jitter"), "0.000001 of the diagonal");
        // no name of the code
        for (name, value) in &all {
            let code = ["{", "Some(", "None", "::", "Options"];
            assert!(code.iter().all(|code| !value.contains(code)), "{name}: {value}");
        }
        // nor of minibatches where there are none
        let whole = of(&FitOptions { batches: None, ..FitOptions::default() });
        let names = |all: &Settings| all.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&whole), names(&all));
        assert!(whole.iter().any(|own| *own == ("steps that adapt".into(), "none".into())));
        // a word for everything that differs
        let flat = LbfgsOptions { plateau: None, ..LbfgsOptions::ending_at(1e-3) };
        let other = FitOptions::default();
        let train = crate::train::TrainOptions {
            optimiser: OptimiserKind::Lbfgs(flat),
            ..other.train.clone()
        };
        let message = difference(
            &of(&FitOptions { train, ..other.clone() }),
            &of(&other),
            &settings(&other, &data()).expect("settings"),
        );
        assert!(message.expect("a difference").starts_with("its optimiser: L-BFGS, memory 10"));
        // with another season the kernel is another
        let seasons = FitOptions { seasons: vec!["1y".into()], ..FitOptions::default() };
        let usual = of(&FitOptions::default());
        let message = difference(&usual, &of(&seasons), &usual).expect("a difference");
        assert_eq!(message, "its seasons: none, not 1y");
        // the state of a training has its rates: others would be ignored
        let mut other = FitOptions::default();
        if let Some(batches) = &mut other.batches {
            batches.training.adam.learning_rate = 0.37;
        }
        let usual = of(&FitOptions::default());
        let message = difference(&usual, &of(&other), &usual).expect("a difference");
        assert!(
            message.starts_with("its optimiser of minibatches: Adam") && message.contains("0.37")
        );
    }
}

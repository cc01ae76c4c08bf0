//! The settings of a training.

use super::kinds::{Bounds, Kind};
use super::model::{flag, number, structured, whole, word};
use super::traits::{Trait, Way, traits_of};
use super::{Setting, USUAL};
use crate::fit::{FitOptions, mixed};
use crate::linalg::Precision;
use crate::methods;
use crate::optim::{AdamOptions, LbfgsOptions};
use crate::train::{OptimiserKind, StochasticOptions, TrainOptions};
use serde_json::{Value, json};

const TRAINING: &str = "Training";
const ALL_ROWS: &str = "Training on all rows at once";

/// Returns a number of the training by minibatches, where there is one.
pub(super) fn of_batches(
    options: &FitOptions,
    read: impl Fn(&StochasticOptions) -> Value,
) -> Value {
    options.batches.as_ref().map_or(Value::Null, |batches| read(&batches.training))
}

/// Changes the training by minibatches, where there is one.
pub(super) fn to_batches(options: &mut FitOptions, write: impl FnOnce(&mut StochasticOptions)) {
    if let Some(batches) = &mut options.batches {
        write(&mut batches.training);
    }
}

/// Returns whether the method is trained by minibatches unless somebody says so.
pub(super) fn by_minibatches(options: &FitOptions) -> bool {
    let found = methods::find(&options.method);
    found.is_ok_and(|e| traits_of(e.method, Way::default()).has(Trait::Minibatches))
}

pub(super) const ENTRIES: &[Setting] = &[
    Setting {
        name: "pilot",
        python: Some("pilot"),
        group: TRAINING,
        takes: "ROWS",
        about: "Judge starting values on at most this many random rows (of a series on up to twice as many, in windows of \
               neighbours): several starts get a few iterations each, and the best is trained. 0 takes the plain start without \
               a trial",
        kind: Kind::Whole(0),
        needs: &[Trait::OneLayer],
        read: |o| json!(o.pilot),
        write: |o, v| o.pilot = whole(v),
        ..USUAL
    },
    Setting {
        name: "lengthscale_prior",
        python: Some("lengthscale_prior"),
        group: TRAINING,
        about: "the weak prior that the lengthscales of several inputs have by default",
        needs: &[Trait::OneLayer],
        read: |o| json!(o.lengthscale_prior),
        write: |o, v| o.lengthscale_prior = flag(v),
        ..USUAL
    },
    Setting {
        name: "hyperparameters",
        python: Some("hyperparameters"),
        group: TRAINING,
        takes: "HOW",
        about: "What predictions do about hyperparameters that few rows leave open",
        kind: Kind::Choice(&[
            (
                "auto",
                "`laplace` for at most 300 rows and 64 hyperparameters of exact inference, else `plug-in`",
            ),
            ("plug-in", "Take the values that training found for the truth"),
            ("laplace", "Average over settings that stand for their posterior, about its mode"),
            ("nuts", "Average over draws of their posterior, by chains: many times slower"),
        ]),
        needs: &[Trait::Evidence],
        so_anyway: |v, on| v != "laplace" && v != "nuts" && !on.has(Trait::Evidence),
        read: |o| word(o.hyperparameters),
        write: |o, v| o.hyperparameters = structured(v),
        ..USUAL
    },
    Setting {
        name: "precision",
        python: Some("precision"),
        group: TRAINING,
        takes: "P",
        about: "What products of rows are made in while the model is trained; the bound that is reported, but for \
                the estimate of layers, is in double precision, and so are predictions by default",
        kind: Kind::Choice(&mixed::NAMES),
        needs: &[Trait::RowProducts],
        so_anyway: |v, _| v == "double",
        read: |o| json!(mixed::name(o.precision)),
        write: |o, v| {
            let mixed = v == mixed::name(Precision::Single);
            o.precision = if mixed { Precision::Single } else { Precision::Double };
        },
        ..USUAL
    },
    Setting {
        name: "relative_weights",
        python: Some("relative_weights"),
        group: TRAINING,
        about: "Divide the weights of the rows by their mean: they say how much rows matter beside each \
               other, not how often they were seen",
        read: |o| json!(o.relative_weights),
        write: |o, v| o.relative_weights = flag(v),
        ..USUAL
    },
    Setting {
        name: "restarts",
        python: Some("n_restarts_optimizer"),
        group: TRAINING,
        takes: "R",
        about: "Train from this many additional starts, whose hyperparameters are drawn from their \
               priors, or over a wide range about the plain start; the best objective wins. With \
               a checkpoint each has its own file, FILE.restart-1, …",
        kind: Kind::Whole(0),
        needs: &[Trait::OneLayer],
        read: |o| json!(o.restarts),
        write: |o, v| o.restarts = whole(v),
        ..USUAL
    },
    Setting {
        name: "seed",
        python: Some("random_state"),
        group: TRAINING,
        takes: "N",
        about: "Seed of everything random",
        kind: Kind::Whole(0),
        read: |o| json!(o.seed),
        write: |o, v| {
            o.seed = v.as_u64().unwrap_or_default();
            let seed = o.seed;
            to_batches(o, |t| t.following.seed = seed)
        },
        ..USUAL
    },
    Setting {
        name: "checkpoint",
        python: Some("checkpoint"),
        group: TRAINING,
        takes: "FILE",
        about: "Save the state of the training, or of chains, to this file periodically; if the \
               file exists, resume from it",
        kind: Kind::Text,
        read: |o| json!(o.checkpoint),
        write: |o, v| o.checkpoint = v.as_str().map(Into::into),
        ..USUAL
    },
    Setting {
        name: "checkpoint_every",
        group: TRAINING,
        takes: "SECONDS",
        about: "Seconds between checkpoints",
        kind: Kind::Number(Bounds::NotNegative),
        read: |o| json!(o.train.checkpoint_seconds),
        write: |o, v| {
            (o.train.checkpoint_seconds, o.gibbs.checkpoint_seconds) = (number(v), number(v));
            to_batches(o, |t| t.checkpoint_seconds = number(v))
        },
        ..USUAL
    },
    Setting {
        name: "time_limit",
        python: Some("time_limit"),
        group: TRAINING,
        takes: "TIME",
        about: "End after this time with the best found so far, preparation included: seconds, or \
               a number with s, min or h; looked at between evaluations. Reading the table and \
               scores afterwards come on top. Learning rates of \
               minibatches have fallen by then, so that such a training does not repeat to the \
               bit. With a checkpoint the same command resumes, and has as much time again",
        kind: Kind::Time,
        read: |o| json!(o.time_limit),
        write: |o, v| o.time_limit = v.as_f64(),
        ..USUAL
    },
    Setting {
        name: "optimiser",
        python: Some("optimiser"),
        group: ALL_ROWS,
        takes: "OPTIMISER",
        about: "Optimiser",
        kind: Kind::Choice(&[
            ("lbfgs", "Limited-memory BFGS"),
            ("adam", "Adam, with all rows in every step"),
        ]),
        needs: &[Trait::AllRows],
        read: |o| match o.train.optimiser {
            OptimiserKind::Lbfgs(_) => json!("lbfgs"),
            OptimiserKind::Adam(_) => json!("adam"),
        },
        write: |o, v| {
            let is_adam = matches!(o.train.optimiser, OptimiserKind::Adam(_));
            match (v == "adam", is_adam) {
                (true, false) => o.train.optimiser = OptimiserKind::Adam(AdamOptions::default()),
                (false, true) => o.train.optimiser = OptimiserKind::Lbfgs(LbfgsOptions::fitting()),
                _ => {}
            }
        },
        ..USUAL
    },
    Setting {
        name: "max_iterations",
        python: Some("max_iter"),
        group: ALL_ROWS,
        takes: "N",
        about: "Most iterations",
        kind: Kind::Whole(0),
        needs: &[Trait::AllRows],
        read: |o| json!(o.train.max_iterations),
        write: |o, v| o.train.max_iterations = whole(v),
        ..USUAL
    },
    Setting {
        name: "tolerance",
        python: Some("tol"),
        group: ALL_ROWS,
        takes: "FALL",
        about: "Stop L-BFGS when ten iterations improve the objective by less than this fraction \
               of its size (or than this many nats per target, if that is less) and the gradient \
               promises no more",
        kind: Kind::Number(Bounds::NotNegative),
        needs: &[Trait::AllRows, Trait::Plateau],
        read: |o| match &o.train.optimiser {
            OptimiserKind::Lbfgs(own) => json!(own.plateau.map(|plateau| plateau.tolerance)),
            OptimiserKind::Adam(_) => Value::Null,
        },
        write: |o, v| {
            let ending = TrainOptions::ending_at(number(v));
            if matches!(o.train.optimiser, OptimiserKind::Lbfgs(_)) {
                o.train.optimiser = ending.optimiser;
            }
            o.train.em.tolerance = ending.em.tolerance;
        },
        ..USUAL
    },
    Setting {
        name: "full_batch",
        python: Some("full_batch"),
        group: ALL_ROWS,
        about: "Train on all rows at once where minibatches would",
        needs: &[Trait::EitherWay],
        so_anyway: |v, on| flag(v) && on.has(Trait::AllRows),
        read: |o| json!(o.batches.is_none()),
        write: |o, v| {
            if flag(v) {
                o.batches = None
            }
        },
        ..USUAL
    },
    // after the optimiser, whose rate it is
    Setting {
        name: "learning_rate",
        python: Some("learning_rate"),
        group: TRAINING,
        takes: "RATE",
        about: "Learning rate of Adam, which falls by minibatches",
        kind: Kind::Number(Bounds::Positive),
        needs: &[Trait::Adam],
        read: |o| of_batches(o, |t| json!(t.adam.learning_rate)),
        write: |o, v| {
            if let OptimiserKind::Adam(own) = &mut o.train.optimiser {
                own.learning_rate = number(v);
            }
            to_batches(o, |t| t.adam.learning_rate = number(v))
        },
        default: Some(|o| match by_minibatches(o) {
            true => of_batches(o, |t| json!(t.adam.learning_rate)).to_string(),
            false => AdamOptions::default().learning_rate.to_string(),
        }),
        ..USUAL
    },
];

//! The settings of a training.

use super::kinds::{Bounds, Kind};
use super::model::{flag, number, whole};
use super::traits::{Trait, Way, traits_of};
use super::{Setting, USUAL};
use crate::fit::FitOptions;
use crate::inverse_free::{Estimate, Schedule, Traces};
use crate::linalg::Precision;
use crate::methods;
use crate::optim::{AdamOptions, LbfgsOptions};
use crate::train::{EmOptions, OptimiserKind, StochasticOptions, TrainOptions};
use serde_json::{Value, json};

const TRAINING: &str = "Training";
const ALL_ROWS: &str = "Training on all rows at once";
const MINIBATCHES: &str = "Training by minibatches";
/// How T of R-SVGP follows the other parameters.
const PRODUCTS: &str = "Inverse by matrix products, by minibatches";

/// A number of the training by minibatches, where there is one.
fn of_batches(options: &FitOptions, read: impl Fn(&StochasticOptions) -> Value) -> Value {
    options.batches.as_ref().map_or(Value::Null, |batches| read(&batches.training))
}

/// Changes the training by minibatches, where there is one.
fn to_batches(
    options: &mut FitOptions,
    write: impl FnOnce(&mut StochasticOptions),
) -> crate::error::Result<()> {
    if let Some(batches) = &mut options.batches {
        write(&mut batches.training);
    }
    Ok(())
}

/// Whether the method is trained by minibatches unless somebody says so.
fn by_minibatches(options: &FitOptions) -> bool {
    let found = methods::find(&options.method);
    found.is_ok_and(|e| traits_of(e.method, Way::default()).has(Trait::Minibatches))
}

/// How many steps there are in turn; who says so wants them to the end.
fn take_turns(options: &mut FitOptions, e: Option<usize>, m: Option<usize>) {
    let em = &mut options.train.em;
    (em.e_steps, em.m_steps) = (e.unwrap_or(em.e_steps), m.unwrap_or(em.m_steps));
    em.rounds = None;
    if let Some(batches) = &mut options.batches {
        let (own_e, own_m) = batches.training.em.unwrap_or((1, 1));
        batches.training.em = Some((e.unwrap_or(own_e), m.unwrap_or(own_m)));
    }
}

/// The share of steps of q by default.
fn natural_rate(options: &FitOptions) -> String {
    match by_minibatches(options) {
        true => match of_batches(options, |t| json!(t.natural)) {
            Value::Null => "none: Adam moves q too".into(),
            rate => rate.to_string(),
        },
        false => format!("{}, or 1 where no step can overshoot", EmOptions::CAREFUL),
    }
}

/// The names of the schedules of L's steps.
const SCHEDULES: [(&str, Schedule); 4] = [
    ("adaptive", Schedule::Adaptive),
    ("constant", Schedule::Constant(1.0)),
    ("log-linear", Schedule::LOG_LINEAR),
    ("line-search", Schedule::LineSearch),
];

pub(super) const ENTRIES: &[Setting] = &[
    Setting {
        name: "pilot",
        python: Some("pilot"),
        group: TRAINING,
        takes: "ROWS",
        about: "Judge starting values on at most this many random rows: several starts get a few iterations each, and the \
                best is trained. 0 takes the plain start without a trial",
        kind: Kind::Whole(0),
        needs: &[Trait::OneLayer],
        read: |o| json!(o.pilot),
        write: |o, v| Ok(o.pilot = whole(v)),
        ..USUAL
    },
    Setting {
        name: "lengthscale_prior",
        python: Some("lengthscale_prior"),
        group: TRAINING,
        about: "Leave out the weak prior that the lengthscales of several inputs have by default",
        needs: &[Trait::OneLayer],
        read: |o| json!(o.lengthscale_prior),
        write: |o, v| Ok(o.lengthscale_prior = flag(v)),
        ..USUAL
    },
    Setting {
        name: "restarts",
        python: Some("n_restarts_optimizer"),
        group: TRAINING,
        takes: "R",
        about: "Train from this many additional starts, whose hyperparameters are drawn from their priors, or over a wide \
                range about the plain start; the best objective wins. With a checkpoint each has a file of its own, \
                FILE.restart-1, …",
        kind: Kind::Whole(0),
        needs: &[Trait::OneLayer],
        read: |o| json!(o.restarts),
        write: |o, v| Ok(o.restarts = whole(v)),
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
        about: "Save the state of the training, or of chains, to this file periodically; if the file exists, resume from it",
        kind: Kind::Text,
        read: |o| json!(o.checkpoint),
        write: |o, v| Ok(o.checkpoint = v.as_str().map(Into::into)),
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
        about: "End after this time with the best found so far, preparation included: seconds, or a number with s, min or h; \
                looked at between evaluations. Learning rates of minibatches have fallen by then, so that such a training does \
                not repeat to the bit. With a checkpoint the same command resumes, and has as much time again",
        kind: Kind::Time,
        read: |o| json!(o.time_limit),
        write: |o, v| Ok(o.time_limit = v.as_f64()),
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
            Ok(match (v == "adam", is_adam) {
                (true, false) => o.train.optimiser = OptimiserKind::Adam(AdamOptions::default()),
                (false, true) => o.train.optimiser = OptimiserKind::Lbfgs(LbfgsOptions::fitting()),
                _ => {}
            })
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
        write: |o, v| Ok(o.train.max_iterations = whole(v)),
        ..USUAL
    },
    Setting {
        name: "tolerance",
        python: Some("tol"),
        group: ALL_ROWS,
        takes: "FALL",
        about: "Stop L-BFGS when ten iterations improve the objective by less than this fraction of its size (or than this \
                many nats per target, if that is less) and the gradient promises no more",
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
            Ok(())
        },
        ..USUAL
    },
    Setting {
        name: "full_batch",
        python: Some("full_batch"),
        group: ALL_ROWS,
        about: "Train on all rows at once where minibatches would",
        needs: &[Trait::EitherWay],
        read: |o| json!(o.batches.is_none()),
        write: |o, v| {
            Ok(if flag(v) {
                o.batches = None
            })
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
    Setting {
        name: "batch",
        python: Some("batch_size"),
        group: MINIBATCHES,
        takes: "ROWS",
        about: "Rows of a minibatch",
        kind: Kind::Whole(1),
        needs: &[Trait::Minibatches],
        read: |o| json!(o.batches.as_ref().map(|batches| batches.size)),
        write: |o, v| Ok(o.batches.iter_mut().for_each(|batches| batches.size = whole(v))),
        ..USUAL
    },
    Setting {
        name: "epochs",
        python: Some("epochs"),
        group: MINIBATCHES,
        takes: "N",
        about: "Passes over the rows",
        kind: Kind::Whole(1),
        needs: &[Trait::Minibatches],
        read: |o| of_batches(o, |t| json!(t.epochs)),
        write: |o, v| to_batches(o, |t| t.epochs = Some(whole(v))),
        default: Some(|o| match o.batches.as_ref().map_or((1, 0), |b| b.training.least) {
            (1, steps) => format!("as many as make {steps} minibatches"),
            (epochs, steps) => format!("{epochs}, or as many as make {steps} minibatches"),
        }),
        ..USUAL
    },
    Setting {
        name: "natural_rate",
        python: Some("natural_rate"),
        group: MINIBATCHES,
        takes: "RATE",
        about: "Size of the natural-gradient steps of q, at most 1; sites have it on all rows, too",
        kind: Kind::Number(Bounds::Share),
        needs: &[Trait::NaturalSteps],
        read: |o| of_batches(o, |t| json!(t.natural)),
        write: |o, v| {
            o.train.em.rate = v.as_f64();
            to_batches(o, |t| t.natural = v.as_f64())
        },
        default: Some(natural_rate),
        ..USUAL
    },
    Setting {
        name: "e_steps",
        group: MINIBATCHES,
        takes: "N",
        about: "Natural-gradient steps of q on every minibatch, each from a pass of its own; for sites on all rows the most in a \
                round",
        kind: Kind::Whole(1),
        needs: &[Trait::NaturalSteps, Trait::OneLayer],
        read: |o| of_batches(o, |t| json!(t.em.map(|(e, _)| e))),
        write: |o, v| Ok(take_turns(o, Some(whole(v)), None)),
        default: Some(|o| match by_minibatches(o) {
            true => "one, from the pass that Adam takes".into(),
            false => o.train.em.e_steps.to_string(),
        }),
        ..USUAL
    },
    Setting {
        name: "m_steps",
        group: MINIBATCHES,
        takes: "N",
        about: "Steps of Adam on every minibatch; for sites on all rows iterations of the optimiser in a round",
        kind: Kind::Whole(1),
        needs: &[Trait::Turns],
        read: |o| of_batches(o, |t| json!(t.em.map(|(_, m)| m))),
        write: |o, v| Ok(take_turns(o, None, Some(whole(v)))),
        default: Some(|o| match by_minibatches(o) {
            true => "1".into(),
            false => o.train.em.m_steps.to_string(),
        }),
        ..USUAL
    },
    Setting {
        name: "classes_per_step",
        python: Some("classes_per_step"),
        group: MINIBATCHES,
        takes: "N",
        about: "Classes that move in a step, drawn anew for every minibatch: cheaper steps where classes are many",
        kind: Kind::Whole(1),
        needs: &[Trait::Minibatches, Trait::AdaptiveSteps],
        read: |o| of_batches(o, |t| json!(t.classes_per_step)),
        write: |o, v| to_batches(o, |t| t.classes_per_step = Some(whole(v))),
        default: Some(|_| "all".into()),
        ..USUAL
    },
    Setting {
        name: "no_natural",
        group: MINIBATCHES,
        about: "Train q by Adam like all other parameters",
        needs: &[Trait::Minibatches, Trait::Moments],
        read: |o| of_batches(o, |t| json!(t.natural.is_none())),
        write: |o, v| to_batches(o, |t| t.natural = t.natural.filter(|_| !flag(v))),
        ..USUAL
    },
    Setting {
        name: "inducing_rate",
        group: MINIBATCHES,
        takes: "RATE",
        about: "Learning rate of the inducing points",
        kind: Kind::Number(Bounds::Positive),
        needs: &[Trait::Minibatches, Trait::OneLayer],
        read: |o| of_batches(o, |t| json!(t.inducing_rate * t.adam.learning_rate)),
        write: |o, v| to_batches(o, |t| t.inducing_rate = number(v) / t.adam.learning_rate),
        default: Some(|o| match o.batches.as_ref().map(|batches| &batches.training) {
            Some(t) if t.inducing_rate != 1.0 => {
                (t.inducing_rate * t.adam.learning_rate).to_string()
            }
            _ => "that of Adam".into(),
        }),
        ..USUAL
    },
    Setting {
        name: "inducing_wait",
        group: MINIBATCHES,
        takes: "N",
        about: "Iterations for which inducing points stay where they are",
        kind: Kind::Whole(0),
        needs: &[Trait::Minibatches, Trait::OneLayer],
        read: |o| of_batches(o, |t| json!(t.pace.frozen)),
        write: |o, v| to_batches(o, |t| t.pace.frozen = whole(v)),
        ..USUAL
    },
    Setting {
        name: "early_stopping",
        python: Some("early_stopping"),
        group: MINIBATCHES,
        takes: "FRACTION",
        about: "Hold out this fraction of the training rows, and stop when their predictive density stops improving",
        kind: Kind::Number(Bounds::Fraction),
        needs: &[Trait::Minibatches],
        ..USUAL
    },
    Setting {
        name: "patience",
        python: Some("patience"),
        group: MINIBATCHES,
        takes: "EPOCHS",
        about: "Epochs to wait for a better prediction of the rows that are held out",
        kind: Kind::Whole(1),
        needs: &[Trait::Minibatches],
        read: |o| of_batches(o, |t| json!(t.patience)),
        write: |o, v| to_batches(o, |t| t.patience = whole(v)),
        ..USUAL
    },
    Setting {
        name: "inverse_tolerance",
        group: PRODUCTS,
        takes: "R",
        about: "Residual ‖LᵀK̃L − I‖/√M at which the steps of L end",
        kind: Kind::Number(Bounds::Positive),
        needs: &[Trait::Products, Trait::Minibatches],
        read: |o| of_batches(o, |t| json!(t.following.solver.tolerance)),
        write: |o, v| to_batches(o, |t| t.following.solver.tolerance = number(v)),
        ..USUAL
    },
    Setting {
        name: "inverse_steps",
        group: PRODUCTS,
        takes: "N",
        about: "Most steps of L in an iteration",
        kind: Kind::Whole(1),
        needs: &[Trait::Products, Trait::Minibatches],
        read: |o| of_batches(o, |t| json!(t.following.solver.most)),
        write: |o, v| to_batches(o, |t| t.following.solver.most = whole(v)),
        ..USUAL
    },
    Setting {
        name: "inverse_schedule",
        group: PRODUCTS,
        takes: "HOW",
        about: "How long the steps of L are",
        kind: Kind::Choice(&[
            ("adaptive", "1 where that is safe, else as long as is"),
            ("constant", "Always 1"),
            ("log-linear", "From 1e-5 to 1 over ten steps"),
            ("line-search", "The best along the direction"),
        ]),
        needs: &[Trait::Products, Trait::Minibatches],
        read: |o| {
            of_batches(o, |t| {
                let own = SCHEDULES.iter().find(|(_, own)| *own == t.following.solver.schedule);
                own.map_or(Value::Null, |(name, _)| json!(name))
            })
        },
        write: |o, v| {
            let own = SCHEDULES.iter().find(|(name, _)| v == name);
            to_batches(o, |t| own.into_iter().for_each(|(_, s)| t.following.solver.schedule = *s))
        },
        ..USUAL
    },
    Setting {
        name: "inverse_slack",
        group: PRODUCTS,
        takes: "NATS",
        about: "With Gaussian noise: end the steps of L too where the variances of the batch cost no more than this per row",
        kind: Kind::Number(Bounds::Positive),
        needs: &[Trait::Products, Trait::Minibatches],
        read: |o| of_batches(o, |t| json!(t.following.slack)),
        write: |o, v| to_batches(o, |t| t.following.slack = v.as_f64()),
        ..USUAL
    },
    Setting {
        name: "probes",
        group: PRODUCTS,
        takes: "P",
        about: "Random probes for the traces of the bound; 0 for exact traces",
        kind: Kind::Whole(0),
        needs: &[Trait::Products, Trait::Minibatches],
        read: |o| {
            of_batches(o, |t| match t.following.traces {
                Traces::Exact => json!(0),
                Traces::Probes(count, _) => json!(count),
            })
        },
        write: |o, v| {
            let traces = match whole(v) {
                0 => Traces::Exact,
                count => Traces::Probes(count, Estimate::LSpace),
            };
            to_batches(o, |t| t.following.traces = traces)
        },
        ..USUAL
    },
    Setting {
        name: "single",
        group: PRODUCTS,
        about: "Multiply matrices in single precision: twice as fast, bound accurate to about five digits; λ must exceed 1 % of \
                the kernel variance",
        needs: &[Trait::Products, Trait::Minibatches],
        read: |o| of_batches(o, |t| json!(t.following.solver.products == Precision::Single)),
        write: |o, v| {
            let products = if flag(v) { Precision::Single } else { Precision::Double };
            to_batches(o, |t| t.following.solver.products = products)
        },
        ..USUAL
    },
];

//! The settings of a training by minibatches, and of the steps in turn that sites have on all rows
//! too.

use super::kinds::{Bounds, Kind};
use super::model::{flag, number, whole};
use super::training::{by_minibatches, of_batches, to_batches};
use super::traits::Trait;
use super::{Setting, USUAL};
use crate::fit::FitOptions;
use crate::inverse_free::{Estimate, Schedule, Traces};
use crate::linalg::Precision;
use crate::train::EmOptions;
use serde_json::{Value, json};

const MINIBATCHES: &str = "Training by minibatches";
/// How T of R-SVGP follows the other parameters.
const PRODUCTS: &str = "Inverse by matrix products, by minibatches";

/// Sets how many steps there are in turn; who says so wants them to the end.
fn take_turns(options: &mut FitOptions, e: Option<usize>, m: Option<usize>) {
    let em = &mut options.train.em;
    (em.e_steps, em.m_steps) = (e.unwrap_or(em.e_steps), m.unwrap_or(em.m_steps));
    em.rounds = None;
    if let Some(batches) = &mut options.batches {
        let (own_e, own_m) = batches.training.em.unwrap_or((1, 1));
        batches.training.em = Some((e.unwrap_or(own_e), m.unwrap_or(own_m)));
    }
}

/// Returns the share of steps of q by default.
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
        name: "batch",
        python: Some("batch_size"),
        group: MINIBATCHES,
        takes: "ROWS",
        about: "Rows of a minibatch",
        kind: Kind::Whole(1),
        needs: &[Trait::Minibatches],
        read: |o| json!(o.batches.as_ref().map(|batches| batches.size)),
        write: |o, v| o.batches.iter_mut().for_each(|batches| batches.size = whole(v)),
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
            // with only diagonals Adam trains q
            let rate = v.as_f64().filter(|_| !o.diagonal);
            to_batches(o, |t| t.natural = rate);
        },
        default: Some(natural_rate),
        ..USUAL
    },
    Setting {
        name: "e_steps",
        group: MINIBATCHES,
        takes: "N",
        about: "Natural-gradient steps of q on every minibatch, each from its own pass; for \
               sites on all rows the most in a round",
        kind: Kind::Whole(1),
        needs: &[Trait::NaturalSteps, Trait::OneLayer],
        read: |o| of_batches(o, |t| json!(t.em.map(|(e, _)| e))),
        write: |o, v| take_turns(o, Some(whole(v)), None),
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
        about: "Steps of Adam on every minibatch; for sites on all rows iterations of the \
               optimiser in a round",
        kind: Kind::Whole(1),
        needs: &[Trait::Turns],
        read: |o| of_batches(o, |t| json!(t.em.map(|(_, m)| m))),
        write: |o, v| take_turns(o, None, Some(whole(v))),
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
        about: "Classes that move in a step, drawn again for every minibatch: cheaper steps where \
               classes are many",
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
        about: "Hold out this fraction of the training rows, and stop when their predictive \
               density stops improving",
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
        about: "With Gaussian noise: end the steps of L too where the variances of the batch cost \
               no more than this per row",
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
        about: "As --precision mixed, for the steps of L too: twice as fast, bound accurate to about five \
               digits; λ must exceed 1 % of the kernel variance",
        needs: &[Trait::Products, Trait::Minibatches],
        read: |o| of_batches(o, |t| json!(t.following.solver.products == Precision::Single)),
        write: |o, v| {
            let products = if flag(v) { Precision::Single } else { Precision::Double };
            to_batches(o, |t| t.following.solver.products = products)
        },
        ..USUAL
    },
];

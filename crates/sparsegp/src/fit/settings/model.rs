//! The settings of the model, and of draws from its posterior.

use super::kinds::{Kind, jitter};
use super::traits::Trait;
use super::{Setting, USUAL};
use crate::fit::{DEFAULT_INDUCING, FitOptions, LogInputs, TransformTargets, choice, deep};
use crate::inducing::select::Selection;
use crate::linalg::Jitter;
use crate::methods;
use crate::variational::Tying;
use serde_json::{Value, json};

const MODEL: &str = "Model";
const DRAWS: &str = "Draws from the posterior";

/// Returns a text where there is one.
fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// Returns a whole number that was checked.
pub(super) fn whole(value: &Value) -> usize {
    value.as_u64().and_then(|v| v.try_into().ok()).unwrap_or(usize::MAX)
}

/// Returns a number that was checked.
pub(super) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// Returns a flag that was checked.
pub(super) fn flag(value: &Value) -> bool {
    value.as_bool().unwrap_or_default()
}

/// Returns a structured value that was checked.
pub(super) fn structured<T: serde::de::DeserializeOwned + Default>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap_or_default()
}

/// Returns a word as `serde` has it.
pub(super) fn word<T: serde::Serialize>(value: T) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// Returns how many inducing points there are by default.
fn points(options: &FitOptions) -> String {
    let method = methods::find(&options.method).ok().map(|entry| entry.method);
    match method {
        Some(own) if own.architecture().is_some() => format!("{} in every layer", deep::POINTS),
        Some(own) if own.with_q().is_some() => choice::points_rule(),
        Some(own) => own.usual_points().unwrap_or(DEFAULT_INDUCING).to_string(),
        None => DEFAULT_INDUCING.to_string(),
    }
}

pub(super) const ENTRIES: &[Setting] = &[
    Setting {
        name: "likelihood",
        python: Some("likelihood"),
        group: MODEL,
        takes: "SPEC",
        about: "Likelihood, such as `poisson` or `student-t(df=4)`, see `sparsegp likelihoods`; by \
               default gaussian for numbers, bernoulli for two classes, softmax for more",
        kind: Kind::Text,
        read: |o| json!(o.likelihood),
        write: |o, v| o.likelihood = text(v),
        ..USUAL
    },
    Setting {
        name: "kernel",
        python: Some("kernel"),
        group: MODEL,
        takes: "SPEC",
        about: "Kernel, such as `rbf`, `matern52 + linear` or JSON, see `sparsegp kernels`; \
               separated by `;` one for each latent function; `auto` tries several on a sample of the rows and takes \
               the best",
        kind: Kind::Text,
        read: |o| json!(o.kernel),
        write: |o, v| o.kernel = text(v).unwrap_or_default(),
        ..USUAL
    },
    Setting {
        name: "kernel_units",
        python: Some("kernel_units"),
        group: MODEL,
        takes: "UNITS",
        about: "Units of the values in the kernel, their bounds and priors, such as \
               `periodic(period=365.25)` for days",
        kind: Kind::Choice(&[
            ("model", "The model's scale, that of the standardised columns"),
            ("data", "The units of the data"),
        ]),
        needs: &[Trait::OneLayer],
        read: |o| json!(if o.kernel_in_data_units { "data" } else { "model" }),
        write: |o, v| o.kernel_in_data_units = v == "data",
        ..USUAL
    },
    Setting {
        name: "season",
        python: Some("season"),
        group: MODEL,
        takes: "LENGTH",
        about: "Add a term to the kernel that repeats itself after so long: `1y`, `1w` or `12h` of the input that holds dates, a \
               number in the units of the only input, or with the name of the input `day=1y`; repeatable. By default days, weeks and \
               years that a series of dates shows, beside the kernel `auto`; `none` leaves them out",
        kind: Kind::Texts,
        needs: &[Trait::OneLayer],
        read: |o| json!(o.seasons),
        write: |o, v| o.seasons = structured(v),
        ..USUAL
    },
    Setting {
        name: "mean",
        python: Some("mean"),
        group: MODEL,
        takes: "MEAN",
        about: "Mean function: zero, constant or linear, or JSON with its values and bounds; by \
               default zero for one standardised latent function, else constant",
        kind: Kind::Text,
        needs: &[Trait::OneLayer],
        read: |o| json!(o.mean),
        write: |o, v| o.mean = text(v),
        ..USUAL
    },
    Setting {
        name: "log_inputs",
        python: Some("log_inputs"),
        group: MODEL,
        takes: "INPUTS",
        about: "Inputs to learn from by their logarithms (below the small end of the values asinh continues them): names with \
               commas between them, `none`, or `auto` for those over powers of ten where a sample of the rows is explained \
               better by that",
        kind: Kind::Text,
        read: |o| json!(o.log_inputs.text()),
        write: |o, v| o.log_inputs = v.as_str().map_or_else(Default::default, LogInputs::parse),
        ..USUAL
    },
    Setting {
        name: "target_transform",
        python: Some("target_transform"),
        group: MODEL,
        takes: "TRANSFORM",
        about: "Function of the targets that is learnt, under Gaussian noise; predictions, intervals, densities and scores \
               are of the targets",
        kind: Kind::Choice(&[
            ("none", "The targets as they are"),
            ("log", "The logarithm, of positive targets"),
            (
                "yeo-johnson",
                "A power by Yeo and Johnson, whose exponent a sample of the rows decides",
            ),
            ("auto", "The best of these, by the evidence of a sample of the rows"),
        ]),
        needs: &[Trait::OneLayer],
        read: |o| json!(o.target_transform.name()),
        write: |o, v| {
            o.target_transform = v.as_str().map_or_else(Default::default, TransformTargets::named)
        },
        ..USUAL
    },
    Setting {
        name: "method",
        python: Some("method"),
        group: MODEL,
        takes: "METHOD",
        about: "Inference method, see `sparsegp methods`, which says what auto takes: exact up to \
               4300 rows, else titsias2025 (for many rows by minibatches first); for other \
               likelihoods tsvgp on all rows or svgp by minibatches",
        kind: Kind::Text,
        read: |o| json!(o.method),
        write: |o, v| o.method = text(v).unwrap_or_default(),
        default: Some(|_| FitOptions::default().method),
        ..USUAL
    },
    Setting {
        name: "inducing",
        python: Some("n_inducing"),
        group: MODEL,
        takes: "M",
        about: "Number of inducing points of the sparse methods, never more than there are rows",
        kind: Kind::Whole(1),
        needs: &[Trait::Points],
        read: |o| json!(o.inducing),
        write: |o, v| o.inducing = Some(whole(v)),
        default: Some(points),
        ..USUAL
    },
    Setting {
        name: "inducing_from",
        python: Some("inducing"),
        group: MODEL,
        takes: "HOW|FILE",
        about: "Where inducing points start: kmeans, random, greedy-variance, greedy-elbo \
               (Gaussian noise), k-dpp, oips(0.8) (correlations below that), grid (few inputs), \
               or a table of points with the input columns, in the data's units",
        kind: Kind::Text,
        needs: &[Trait::ChosenPoints],
        read: |o| json!(o.selection.to_string()),
        check: |v| v.as_str().unwrap_or_default().parse::<Selection>().map(|_| ()),
        write: |o, v| {
            let named = v.as_str().and_then(|name| name.parse::<Selection>().ok());
            o.selection = named.unwrap_or_default();
        },
        ..USUAL
    },
    Setting {
        name: "diagonal",
        group: MODEL,
        about: "Use diagonal covariances in q, which is then trained by Adam",
        needs: &[Trait::Moments],
        read: |o| json!(o.diagonal),
        write: |o, v| {
            o.diagonal = flag(v);
            let batches = o.batches.as_mut().filter(|_| flag(v));
            batches.into_iter().for_each(|b| b.training.natural = None);
        },
        ..USUAL
    },
    Setting {
        name: "set",
        python: Some("initial"),
        group: MODEL,
        takes: "PATH=VALUE",
        about: "Start a parameter at a value (or comma-separated values) on the model's scale; \
               repeatable",
        kind: Kind::Values,
        read: |o| json!(o.set),
        write: |o, v| o.set = structured(v),
        ..USUAL
    },
    Setting {
        name: "freeze",
        python: Some("fixed"),
        group: MODEL,
        takes: "PATH",
        about: "Do not train the parameter at PATH, or any whose path begins with it; repeatable",
        kind: Kind::Texts,
        read: |o| json!(o.freeze),
        write: |o, v| o.freeze = structured(v),
        ..USUAL
    },
    Setting {
        name: "tying",
        group: MODEL,
        takes: "TYING",
        about: "What stays fixed of sites while hyperparameters change",
        kind: Kind::Choice(&[
            ("natural", "Offsets of the natural parameters of q(u)"),
            ("untied", "Not at all: two numbers for every row (on all rows at once)"),
            ("kernel", "Sums weighted by covariances, as the paper prints them; for comparison"),
            ("whitened", "Sums of whitened features; for comparison"),
        ]),
        needs: &[Trait::Sites],
        value_needs: |v| (v == "untied").then_some(Trait::AllRows),
        read: |o| {
            Tying::ALL
                .iter()
                .find(|(_, own)| *own == o.tying)
                .map_or(Value::Null, |(name, _)| json!(name))
        },
        write: |o, v| {
            let found = Tying::ALL.iter().find(|(name, _)| v == name);
            found.into_iter().for_each(|(_, own)| o.tying = *own);
        },
        ..USUAL
    },
    Setting {
        name: "jitter",
        python: Some("jitter"),
        group: MODEL,
        takes: "JITTER",
        about: "Jitter of the covariance matrix: a fraction of its mean diagonal, raised where \
               that fails, or absolute:NUMBER",
        kind: Kind::Jitter,
        needs: &[Trait::Jitter],
        value_needs: |v| {
            matches!(jitter(v), Some(Jitter::Relative(_))).then_some(Trait::RelativeJitter)
        },
        read: |o| match o.jitter {
            Jitter::Relative(share) => json!(share),
            Jitter::Absolute(size) => json!(format!("absolute:{size}")),
        },
        write: |o, v| o.jitter = jitter(v).unwrap_or_default(),
        ..USUAL
    },
];

/// Chains, and draws without them.
pub(super) const OF_DRAWS: &[Setting] = &[
    Setting {
        name: "chains",
        python: Some("chains"),
        group: DRAWS,
        takes: "N",
        about: "Chains",
        kind: Kind::Whole(1),
        needs: &[Trait::Draws],
        read: |o| json!(o.gibbs.chains),
        write: |o, v| o.gibbs.chains = whole(v),
        ..USUAL
    },
    Setting {
        name: "draws",
        python: Some("draws"),
        group: DRAWS,
        takes: "N",
        about: "Draws of every chain, over all of which predictions average (up to 512 MiB of \
               them)",
        kind: Kind::Whole(1),
        needs: &[Trait::Draws],
        read: |o| json!(o.gibbs.draws),
        write: |o, v| o.gibbs.draws = whole(v),
        ..USUAL
    },
    Setting {
        name: "burn_in",
        python: Some("burn_in"),
        group: DRAWS,
        takes: "N",
        about: "Sweeps of every chain that are dropped first; steps of a particle flow",
        kind: Kind::Whole(0),
        needs: &[Trait::Draws],
        read: |o| json!(o.gibbs.burn_in),
        write: |o, v| o.gibbs.burn_in = whole(v),
        ..USUAL
    },
    Setting {
        name: "thin",
        python: Some("thin"),
        group: DRAWS,
        takes: "N",
        about: "Sweeps for every draw",
        kind: Kind::Whole(1),
        needs: &[Trait::Draws, Trait::Sweeps],
        read: |o| json!(o.gibbs.thin),
        write: |o, v| o.gibbs.thin = whole(v),
        ..USUAL
    },
    Setting {
        name: "particles",
        python: Some("particles"),
        group: DRAWS,
        takes: "N",
        about: "Particles that flow, more than there are whitened variables (inducing points times latent functions): \
               the more, the nearer their Gaussian to the best one",
        kind: Kind::Whole(2),
        needs: &[Trait::Draws, Trait::Particles],
        read: |o| json!(o.gibbs.particles),
        write: |o, v| o.gibbs.particles = Some(whole(v)),
        ..USUAL
    },
    Setting {
        name: "law",
        python: Some("law"),
        group: DRAWS,
        takes: "LAW",
        about: "The law of Gibbs chains with inducing points",
        kind: Kind::Choice(&[
            ("variational", "The best q(u) of variational inference, of any shape"),
            (
                "fitc",
                "The posterior of the model whose rows are independent given the inducing points",
            ),
        ]),
        needs: &[Trait::Draws, Trait::Laws],
        read: |o| word(o.gibbs.target),
        write: |o, v| o.gibbs.target = structured(v),
        ..USUAL
    },
    Setting {
        name: "sample_hyperparameters",
        python: Some("hyperparameters"),
        group: DRAWS,
        about: "Sample the hyperparameters that are not frozen too, under their priors",
        needs: &[Trait::Draws, Trait::HyperparameterDraws],
        read: |o| json!(o.gibbs.hyperparameters),
        write: |o, v| o.gibbs.hyperparameters = flag(v),
        ..USUAL
    },
];

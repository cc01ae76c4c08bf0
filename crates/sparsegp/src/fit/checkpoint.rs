//! Going on with a training or with chains: from a checkpoint, or with a model that was saved.

use super::{Dataset, FitOptions, Fitted};
use crate::error::{Error, Result};
use crate::io;
use crate::samplers::SamplingState;
use crate::samplers::gibbs::GibbsOptions;
use crate::train::TrainingState;
use std::path::Path;

/// Refuses a model whose columns or scales are not those of the data.
pub(super) fn same_columns(fitted: &Fitted, dataset: &Dataset) -> Result<()> {
    let lists = [
        ("inputs", &fitted.input_names, &dataset.input_names),
        ("targets", &fitted.target_names, &dataset.target_names),
    ];
    for (what, own, given) in lists {
        if own != given {
            return Err(Error::Invalid(format!(
                "the model's {what} are {}, those of the data {}",
                own.join(", "),
                given.join(", ")
            )));
        }
    }
    if fitted.classes != dataset.classes {
        return Err(Error::Invalid("the model knows other classes than the data have".into()));
    }
    if fitted.scaler != dataset.scaler {
        return Err(Error::Invalid(
            "the data are not scaled as the model's were: other rows, or give the model's scaler"
                .into(),
        ));
    }
    Ok(())
}

/// What a checkpoint holds beside its model.
pub(super) enum Held {
    Training(Box<TrainingState>),
    Sampling(SamplingState),
}

/// The model and the state of a checkpoint, if they are of this training.
pub(super) fn load(path: &Path, dataset: &Dataset, options: &FitOptions) -> Result<(Fitted, Held)> {
    let other = |reason: String| Error::File {
        path: path.into(),
        reason: format!(
            "is no checkpoint of this training ({reason}); remove it or name another file"
        ),
    };
    let (fitted, sampling) = io::load_sampling(path)?;
    let held = match sampling {
        Some(state) => Held::Sampling(state),
        None => io::load_checkpoint(path)?
            .1
            .map(|state| Held::Training(Box::new(state)))
            .ok_or_else(|| other("it holds a model without a state of training".into()))?,
    };
    same_columns(&fitted, dataset).map_err(|e| other(e.to_string()))?;
    if (fitted.rows, fitted.seed) != (dataset.source.rows(), options.seed) {
        return Err(other(format!(
            "it is of {} rows with seed {}, not of {} with {}",
            fitted.rows,
            fitted.seed,
            dataset.source.rows(),
            options.seed
        )));
    }
    let own = match &held {
        Held::Training(state) => &state.settings,
        Held::Sampling(state) => &state.settings,
    };
    for ((name, own), (_, asked)) in own.iter().zip(settings(options, fitted.rows)) {
        if *own != asked {
            return Err(other(format!("its {name}: {own}, not {asked}")));
        }
    }
    Ok((fitted, held))
}

/// What decides where chains go; the number of draws may change.
fn chains(options: &GibbsOptions) -> String {
    format!(
        "{} of law {:?}, {} sweeps of burn-in, {} for a draw, hyperparameters sampled: {}",
        options.chains, options.target, options.burn_in, options.thin, options.hyperparameters
    )
}

/// What decides where a training goes, by names; the number of epochs may change.
pub(super) fn settings(options: &FitOptions, rows: usize) -> Vec<(String, String)> {
    let word = |given: Option<String>| given.unwrap_or_else(|| "default".into());
    let training = options.batches.as_ref().map(|batches| &batches.training);
    let size = options.batches.as_ref().map_or(rows, |batches| batches.size.min(rows));
    [
        ("kernel", options.kernel.clone()),
        ("likelihood", word(options.likelihood.clone())),
        ("mean", word(options.mean.clone())),
        ("method", options.method.clone()),
        ("number of inducing points", word(options.inducing.map(|m| m.to_string()))),
        ("rows of a minibatch", size.to_string()),
        ("diagonal covariances", options.diagonal.to_string()),
        ("tying of sites", format!("{:?}", options.tying)),
        ("E- and M-steps on a minibatch", format!("{:?}", training.and_then(|t| t.em))),
        ("rates of the inducing points", format!("{:?}", training.map(|t| t.pace))),
        ("inverse by products", format!("{:?}", training.map(|t| t.following))),
        ("natural-gradient rate", format!("{:?}", training.and_then(|t| t.natural))),
        ("chains", chains(&options.gibbs)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

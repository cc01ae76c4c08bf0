//! Predictions averaged over hyperparameters, for few rows.
//!
//! With few rows many settings of the hyperparameters explain the targets about as well as the best one, and predictions that
//! take the best for the truth are too sure: intervals of 95 % held 87 % of new rows with 20 to 50 rows. Exact inference, or that
//! by sites of all rows, at settings that stand for their posterior ([`crate::samplers::laplace`]) costs some hundred evaluations of
//! the evidence.

use super::{Dataset, FitOptions, KEPT_NUMBERS};
use crate::data::InMemory;
use crate::error::{Error, Result};
use crate::methods;
use crate::model::{Model, Posterior};
use crate::samplers::{evidence, laplace, marginal};
use crate::train::{Averaged, Event, Observer, TrainReport};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::time::Instant;

/// What predictions do about hyperparameters that the rows leave open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hyperparameters {
    /// [`Hyperparameters::Laplace`] for at most [`FEW`] rows of exact inference, else [`Hyperparameters::PlugIn`].
    #[default]
    Auto,
    /// They take the values found by training for the truth.
    PlugIn,
    /// They are an average over settings that stand for the posterior of the hyperparameters, about its mode.
    Laplace,
    /// They are an average over draws of that posterior, by chains.
    Nuts,
}

impl Hyperparameters {
    /// Returns whether an average was asked for by name.
    pub(super) fn is_asked(self) -> bool {
        matches!(self, Self::Laplace | Self::Nuts)
    }
}

/// Rows up to which predictions of exact inference are averaged by default.
pub const FEW: usize = 300;
/// Hyperparameters up to which they are: the Hessian takes two evaluations of the evidence for each.
const MOST: usize = 64;

/// Returns how there may be an average: whether by exact inference or by sites of all rows; none
/// for other methods.
fn way(model: &Model, deviations: bool) -> Option<bool> {
    match model.method.name() {
        "exact" if !deviations => Some(true),
        "tvgp" => Some(false),
        _ => None,
    }
}

/// Refuses an average where the posterior is neither that of exact inference nor has sites of all rows.
pub(super) fn check(options: &FitOptions, model: &Model, deviations: bool) -> Result<()> {
    if !options.hyperparameters.is_asked() || way(model, deviations).is_some() {
        return Ok(());
    }
    let reason = match deviations {
        true => "inputs with standard deviations".into(),
        false => format!("method `{}`", model.method.name()),
    };
    Err(Error::Invalid(format!(
        "predictions are averaged over hyperparameters (`laplace`, `nuts`) with the methods `exact` and `tvgp`, not with \
         {reason}: leave it out, or sample them too (method `nuts`)"
    )))
}

/// Averages a posterior over hyperparameters, where that is to be and there is a way.
pub(super) fn averaged(
    options: &FitOptions,
    dataset: &Dataset,
    model: &Model,
    posterior: Posterior,
    report: &mut TrainReport,
    warnings: &mut Vec<String>,
    observer: &mut dyn Observer,
) -> Result<Posterior> {
    let n = dataset.source.rows();
    let way = way(model, dataset.deviations.is_some());
    // by sites of all rows only where somebody asks: such a model takes up no new rows
    let wanted = match options.hyperparameters {
        Hyperparameters::PlugIn => false,
        Hyperparameters::Auto => n <= FEW && way == Some(true),
        Hyperparameters::Laplace | Hyperparameters::Nuts => true,
    };
    let numbers: usize = model
        .params()
        .iter()
        .map(
            |(_, param)| if param.frozen || param.role().is_bulky() { 0 } else { param.free_len() },
        )
        .sum();
    let many = options.hyperparameters == Hyperparameters::Auto && numbers > MOST;
    let Some(exact) = way.filter(|_| wanted && !many) else { return Ok(posterior) };
    let rows = methods::collect(&dataset.trained_by(model.method))?;
    let rows = dataset.distinct(&rows).filter(|_| exact).unwrap_or(rows);
    let latents = model.latents(rows.y.ncols());
    let all_equal = (0..rows.y.ncols()).any(|p| {
        let mut own = rows.y.col_as_slice(p).iter().filter(|y| !y.is_nan());
        own.next().is_none_or(|first| own.all(|y| y == first))
    });
    let found = match () {
        () if !exact && all_equal => Err("a target is constant"),
        () if exact && !rows.weights.is_empty() && !rows.extra.is_empty() => {
            Err("rows have weights and known variances of the noise")
        }
        () if laplace::COMPONENTS * n * n * latents > KEPT_NUMBERS => {
            Err("their factors take too much memory")
        }
        () if dataset.has_constants() && model.mean.num_params() > 0 => {
            Err("a target is constant beside a mean function with parameters")
        }
        () if exact && !evidence::is_known(model, &rows) => {
            Err("their evidence has no closed form")
        }
        () if options.hyperparameters == Hyperparameters::Nuts => {
            by_chains(options, model, &rows, warnings, observer)?
                .ok_or("none is free, or the chains were stopped")
        }
        () => laplace::integrate(model, &rows)?
            .ok_or("none is free, or the evidence about the best ones is not known"),
    };
    let found = match found {
        Ok(found) => found,
        Err(why) => {
            if options.hyperparameters.is_asked() {
                let text = "predictions do not average over hyperparameters, as was asked for: ";
                warnings.push(format!("{text}{why}"));
            }
            return Ok(posterior);
        }
    };
    report.averaged = Some(Averaged {
        settings: found.times.len(),
        components: found.times.iter().sum(),
        effective: found.effective,
    });
    let weighted = dataset.extra_name.is_none();
    posterior.integrated(model, found.hyperparameters, &found.times, found.sites, weighted)
}

/// Largest R̂ of chains that have mixed.
const MIXED: f64 = 1.05;

/// Returns settings by chains; none where there are none, or a person has stopped them.
fn by_chains(
    options: &FitOptions,
    model: &Model,
    rows: &InMemory,
    warnings: &mut Vec<String>,
    observer: &mut dyn Observer,
) -> Result<Option<laplace::Integration>> {
    let begun = Instant::now();
    let mut watch = |done: usize, total: usize| {
        let seconds = begun.elapsed().as_secs_f64();
        match observer.interrupted() {
            true => ControlFlow::Break(()),
            false => observer.event(Event::Sampling { done, total, seconds }),
        }
    };
    let Some(found) = marginal::sample(model, rows, options.seed, &mut watch)? else {
        return Ok(None);
    };
    if found.stopped {
        return Ok(None);
    }
    if found.rhat() > MIXED || found.divergences > 0 {
        let text = format!(
            "the chains of the hyperparameters have not settled (R̂ {:.2}, {} of {} paths diverged): predictions average over \
             what they found; freeze hyperparameters, or give them priors",
            found.rhat(),
            found.divergences,
            marginal::ALL
        );
        warnings.push(text);
    }
    Ok(Some(found.settings))
}

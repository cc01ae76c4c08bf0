//! The sampler of a method, on a trained model.

use super::Draws;
use super::elliptical::{self, EllipticalOptions};
use super::flow::{self, FlowDraws};
use super::gibbs::{self, GibbsOptions};
use super::hmc::{self, HmcOptions, Path, Sampled};
use super::joint::{self, Variables};
use super::metropolis::{self, MetropolisOptions};
use super::resume::Going;
use super::setting::Target;
use super::{everything, evidence, series};
use crate::data::{InMemory, Source};
use crate::error::{Error, Result};
use crate::methods::Sampler;
use crate::model::Model;
use std::ops::ControlFlow;

/// Doublings of a path without U-turns, at most.
const DEPTH: usize = 8;
/// Steps of a path of fixed length.
const STEPS: usize = 10;

/// Refuses what a sampler has nothing of, which nobody should learn after a training.
///
/// # Errors
/// [`Error::Invalid`] for a law or sweeps that it does not have, hyperparameters that it does not sample, and for no draws.
pub fn check(sampler: Sampler, sparse: bool, options: &GibbsOptions) -> Result<()> {
    let refuse = |text: String| Err(Error::Invalid(text));
    if options.target != Target::default() && !sampler.has_laws(sparse) {
        return refuse(
            "the law `fitc` is for Gibbs chains with inducing points, `gibbs-sparse`: leave it out"
                .into(),
        );
    }
    if options.hyperparameters && !sampler.samples_hyperparameters() {
        let what = match sampler {
            Sampler::Elliptical => "elliptical slices sample",
            Sampler::Metropolis => "a random walk samples",
            Sampler::Flow => "a particle flow samples",
            Sampler::GibbsSeries => "chains of a series sample",
            _ => "paths in local variables sample",
        };
        let instead = match sampler {
            Sampler::GibbsSeries => "`gibbs` for few rows",
            _ => "the method `nuts` or `hmc`",
        };
        return refuse(format!("{what} no hyperparameters: use {instead}"));
    }
    if options.thin != 1 && !sampler.sweeps() {
        return refuse(
            "a particle flow gives independent draws: there are no sweeps for every draw".into(),
        );
    }
    if options.chains == 0 || options.draws == 0 || options.thin == 0 {
        return refuse(super::chains::TOO_FEW.into());
    }
    Ok(())
}

/// Refuses rows that a sampler cannot take, or too many variables, of a model that is ready to be trained.
///
/// # Errors
/// [`Error::Invalid`] for weights, for a likelihood without variables where these are to be added, for more variables than a particle flow takes, or no more particles than these, and for more draws of a series than memory takes.
pub fn check_rows(
    sampler: Sampler,
    model: &Model,
    rows: &dyn Source,
    options: &GibbsOptions,
) -> Result<()> {
    if matches!(sampler, Sampler::Flow) {
        return flow::check(model, rows.outputs(), options.particles);
    }
    if matches!(sampler, Sampler::GibbsSeries) {
        series::check(model, (rows.rows(), rows.outputs()), options)?;
    }
    if matches!(sampler, Sampler::NutsAugmented | Sampler::HmcAugmented) {
        joint::check(model)?;
    }
    rows.for_each_chunk(1 << 14, &mut |rows| match rows.weights.iter().all(|w| *w == 1.0) {
        true => Ok(()),
        false => Err(Error::Invalid(super::setting::WEIGHTS.into())),
    })
}

/// Samples the posterior of a model by a sampler, with the chains of `options`. Chains continue
/// from a state, and give states to a checkpointer; independent draws (of a particle flow) begin
/// again. Returns the draws, and what a person should know of the paths.
///
/// # Errors
/// As for [`gibbs::sample_from`], [`hmc::sample_from`], [`everything::sample_from`], [`evidence::sample_from`] and
/// [`elliptical::sample_from`], and for [`check`].
pub fn sample(
    sampler: Sampler,
    model: &Model,
    rows: &InMemory,
    options: &GibbsOptions,
    going: Going<'_>,
    watch: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<(Draws, Option<String>)> {
    let &GibbsOptions { chains, burn_in, draws, thin, seed, hyperparameters, .. } = options;
    check(sampler, model.method.is_sparse(), options)?;
    let path = match sampler {
        Sampler::Gibbs => {
            let found = gibbs::sample_from(model, rows, options, going, watch)?;
            return Ok((found, None));
        }
        Sampler::GibbsSeries => {
            return Ok((series::sample_from(model, rows, options, going, watch)?, None));
        }
        Sampler::Metropolis => {
            let own = MetropolisOptions { chains, burn_in, draws, thin, seed, step: None };
            return Ok((metropolis::sample_from(model, rows, &own, going, watch)?.draws, None));
        }
        Sampler::Elliptical => {
            let own = EllipticalOptions { chains, burn_in, draws, thin, seed };
            return Ok((elliptical::sample_from(model, rows, &own, going, watch)?.draws, None));
        }
        Sampler::Flow => {
            return flow::sample(
                model,
                rows,
                FlowDraws { steps: burn_in, particles: options.particles, chains, draws, seed },
                watch,
            );
        }
        Sampler::Nuts | Sampler::NutsAugmented => Path::NoUTurn { depth: DEPTH },
        Sampler::Hmc | Sampler::HmcAugmented => Path::Steps(STEPS),
    };
    let variables = match sampler {
        Sampler::NutsAugmented | Sampler::HmcAugmented => Variables::Augmented,
        _ => Variables::Original,
    };
    // paths of one length in a density near a normal one come back to where they were
    let jitter = if matches!(path, Path::Steps(_)) { 0.3 } else { 0.0 };
    let own = HmcOptions {
        chains,
        burn_in,
        draws,
        thin,
        seed,
        variables,
        path,
        jitter,
        ..HmcOptions::default()
    };
    let found = match hyperparameters {
        true if evidence::is_known(model, rows) => {
            evidence::sample_from(model, rows, &own, going, watch)?
        }
        true => everything::sample_from(model, rows, &own, going, watch)?,
        false => hmc::sample_from(model, rows, &own, going, watch)?,
    };
    let remark = remark(&found);
    Ok((found.draws, remark))
}

/// Says that paths lost their energy.
fn remark(found: &Sampled) -> Option<String> {
    (found.divergences > 0).then(|| {
        format!(
            "{} paths of the chains lost their energy (divergences): draws may miss narrow regions of the posterior; a longer \
             burn-in finds smaller steps, and priors keep hyperparameters from where the posterior is narrow",
            found.divergences
        )
    })
}

//! The sampler of a method, on a trained model.

use super::Draws;
use super::elliptical::{self, EllipticalOptions};
use super::flow::{self, FlowDraws};
use super::gibbs::{self, GibbsOptions};
use super::hmc::{self, HmcOptions, Path, Sampled};
use super::joint::Variables;
use super::metropolis::{self, MetropolisOptions};
use super::resume::Going;
use super::setting::Target;
use super::{everything, evidence};
use crate::data::InMemory;
use crate::error::{Error, Result};
use crate::methods::Sampler;
use crate::model::Model;
use std::ops::ControlFlow;

/// Doublings of a path without U-turns, at most.
const DEPTH: usize = 8;
/// Steps of a path of fixed length.
const STEPS: usize = 10;

/// Samples the posterior of a model by a sampler, with the chains of `options`. Chains go on from a state, and give states to a
/// checkpointer; independent draws (of a particle flow) begin anew. Returns the draws, and what a person should know of the paths.
///
/// # Errors
/// As for [`gibbs::sample_from`], [`hmc::sample_from`], [`everything::sample_from`], [`evidence::sample_from`] and
/// [`elliptical::sample_from`]; [`Error::Invalid`] for
/// hyperparameters that elliptical slices should sample.
pub fn sample(
    sampler: Sampler,
    model: &Model,
    rows: &InMemory,
    options: &GibbsOptions,
    going: Going<'_>,
    watch: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<(Draws, Option<String>)> {
    let &GibbsOptions { chains, burn_in, draws, thin, seed, hyperparameters, .. } = options;
    if options.target != Target::default() && sampler != Sampler::Gibbs {
        return Err(Error::Invalid(
            "the law `fitc` is for Gibbs chains with inducing points, `gibbs-sparse`: leave it out"
                .into(),
        ));
    }
    let path = match sampler {
        Sampler::Gibbs => {
            let found = gibbs::sample_from(model, rows, options, going, watch)?;
            return Ok((found, None));
        }
        Sampler::Elliptical
        | Sampler::Metropolis
        | Sampler::NutsAugmented
        | Sampler::HmcAugmented
            if hyperparameters =>
        {
            let what = match sampler {
                Sampler::Elliptical => "elliptical slices sample",
                Sampler::Metropolis => "a random walk samples",
                _ => "paths in local variables sample",
            };
            return Err(Error::Invalid(format!(
                "{what} no hyperparameters: use the method `nuts` or `hmc`"
            )));
        }
        Sampler::Metropolis => {
            let own = MetropolisOptions { chains, burn_in, draws, thin, seed, step: None };
            return Ok((metropolis::sample_from(model, rows, &own, going, watch)?.draws, None));
        }
        Sampler::Elliptical => {
            let own = EllipticalOptions { chains, burn_in, draws, thin, seed };
            return Ok((elliptical::sample_from(model, rows, &own, going, watch)?.draws, None));
        }
        Sampler::Flow if hyperparameters || thin != 1 => {
            return Err(Error::Invalid(
                "particle flow gives independent draws of the function alone: it takes neither sampled hyperparameters nor \
                 sweeps for every draw"
                    .into(),
            ));
        }
        Sampler::Flow => {
            return flow::sample(
                model,
                rows,
                FlowDraws { steps: burn_in, chains, draws, seed },
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
    let told = told(&found);
    Ok((found.draws, told))
}

/// That paths lost their energy.
fn told(found: &Sampled) -> Option<String> {
    (found.divergences > 0).then(|| {
        format!(
            "{} paths of the chains lost their energy (divergences): draws may miss narrow regions of the posterior; a longer \
             burn-in finds smaller steps, and priors keep hyperparameters from where the posterior is narrow",
            found.divergences
        )
    })
}

//! What methods have, as far as settings ask for it: derived from what [`Method`] says of them,
//! never from their names.

use crate::deep::{Architecture, Kind};
use crate::error::Result;
use crate::fit::AUTO_WHOLE;
use crate::methods::{self, Keeps, Method, Sampler};

/// Something that a setting needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trait {
    /// Inducing points, of one layer or of several.
    Points,
    /// Inducing points that are chosen among the rows in more ways than one.
    ChosenPoints,
    /// No hidden layers.
    OneLayer,
    /// A covariance matrix whose diagonal takes a jitter.
    Jitter,
    /// One that is factorised, so that a share of its diagonal is added.
    RelativeJitter,
    /// Training by minibatches.
    Minibatches,
    /// Training on all rows at once.
    AllRows,
    /// Either of the two, as one likes.
    EitherWay,
    /// Adam.
    Adam,
    /// A training that ends where little changes.
    Plateau,
    /// Natural-gradient steps of q whose size is not found by themselves.
    NaturalSteps,
    /// Several steps of the hyperparameters in turn with those of q, or on one minibatch.
    Turns,
    /// A q that is kept by its moments.
    Moments,
    /// A q that is kept as sites at inducing points.
    Sites,
    /// Natural-gradient steps of q whose size follows their noise.
    AdaptiveSteps,
    /// An inverse that follows by matrix products.
    Products,
    /// Sums over rows of products with inducing points, which may be of single precision.
    RowProducts,
    /// Draws from the posterior.
    Draws,
    /// Draws by sweeps of Markov chains.
    Sweeps,
    /// Draws from a Gaussian that particles flow to.
    Particles,
    /// Chains that sample hyperparameters too.
    HyperparameterDraws,
    /// Chains with more than one law.
    Laws,
    /// An evidence without inducing points, in closed form or bounded by sites of all rows.
    Evidence,
}

impl Trait {
    /// Returns what it is, in words that follow "needs".
    pub fn words(self) -> &'static str {
        match self {
            Trait::Points => "inducing points",
            Trait::ChosenPoints => "inducing points of one layer",
            Trait::OneLayer => "one layer",
            Trait::Jitter => "a covariance matrix with a jitter",
            Trait::RelativeJitter => "a covariance matrix that is factorised with a jitter",
            Trait::Minibatches => "training by minibatches",
            Trait::AllRows => "training on all rows at once",
            Trait::EitherWay => "a choice between minibatches and all rows at once",
            Trait::Adam => "Adam",
            Trait::Plateau => "L-BFGS",
            Trait::NaturalSteps => {
                "natural-gradient steps of q that do not find their size by themselves"
            }
            Trait::Turns => "steps in turn with those of q, or several on a minibatch",
            Trait::Moments => "a q that is kept by its moments",
            Trait::Sites => "a q that is kept as sites at inducing points",
            Trait::AdaptiveSteps => {
                "natural-gradient steps of q that find their size by themselves"
            }
            Trait::Products => "an inverse by matrix products",
            Trait::RowProducts => "sums over rows with inducing points, without draws",
            Trait::Draws => "draws from the posterior",
            Trait::Sweeps => "chains",
            Trait::Particles => "particles",
            Trait::HyperparameterDraws => "chains that sample hyperparameters",
            Trait::Laws => "Gibbs chains with inducing points",
            Trait::Evidence => "an evidence without inducing points",
        }
    }
}

/// How a method goes about its training, where that is a matter of other settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// Whether it sees all rows at once.
    pub full_batch: bool,
    /// Whether Adam is the optimiser for that.
    pub adam: bool,
    /// Whether Adam trains q too where minibatches would move it by natural-gradient steps.
    pub q_by_adam: bool,
}

/// What a method has on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traits {
    /// The method.
    pub method: &'static str,
    held: Vec<Trait>,
}

impl Traits {
    /// Returns whether it is among them.
    pub fn has(&self, wanted: Trait) -> bool {
        self.held.contains(&wanted)
    }
}

/// Returns what a method has on its way.
pub fn traits_of(method: &dyn Method, way: Way) -> Traits {
    let (q, layers, sampler) = (method.with_q(), method.architecture(), method.sampler());
    let layered = layers.is_some();
    let minibatches = method.in_minibatches() && (layered || !way.full_batch);
    let keeps = |form: Keeps| q.is_some_and(|q| q.keeps == form);
    let (moments, relaxed) = (keeps(Keeps::Moments), keeps(Keeps::Relaxed));
    let (sites, row_sites) = (keeps(Keeps::Sites), keeps(Keeps::RowSites));
    let pseudo = relaxed || keeps(Keeps::Pseudo);
    let in_turn = !minibatches && (sites || row_sites);
    let stepped = minibatches && (sites || moments && !way.q_by_adam);
    let adaptive = stepped && moments && method.augments();
    let factored = method.is_sparse() && !layered && !pseudo;
    let held = [
        (Trait::Points, method.is_sparse()),
        (Trait::ChosenPoints, method.is_sparse() && !layered),
        (Trait::OneLayer, !layered),
        (Trait::Jitter, factored || pseudo || row_sites),
        // samplers factorise K of the rows, which sites do not
        (Trait::RelativeJitter, factored || row_sites && sampler.is_some()),
        (Trait::Minibatches, minibatches),
        (Trait::AllRows, !minibatches),
        (Trait::EitherWay, method.in_minibatches() && !layered),
        (Trait::Adam, minibatches || way.adam),
        // steps of sites end by the tolerance, too
        (Trait::Plateau, !minibatches && !way.adam || in_turn),
        (
            Trait::NaturalSteps,
            in_turn
                || stepped && !adaptive
                || layers.is_some_and(|own| !Architecture::is_rootless(own)),
        ),
        (Trait::Turns, in_turn || minibatches && !layered),
        (Trait::Moments, moments),
        (Trait::Sites, sites),
        (Trait::AdaptiveSteps, adaptive),
        (Trait::Products, relaxed && minibatches),
        (
            Trait::RowProducts,
            method.is_sparse()
                && !layers.is_some_and(|own| own.kind == Kind::R)
                && !method.keeps_rows()
                && sampler.is_none()
                && (!relaxed || minibatches),
        ),
        (Trait::Draws, sampler.is_some()),
        (Trait::Sweeps, sampler.is_some_and(Sampler::sweeps)),
        (Trait::Particles, sampler.is_some_and(|own| !own.sweeps())),
        (Trait::HyperparameterDraws, sampler.is_some_and(Sampler::samples_hyperparameters)),
        (Trait::Evidence, ["exact", "tvgp"].contains(&method.name())),
        (Trait::Laws, sampler.is_some_and(|own| own.has_laws(method.is_sparse()))),
    ];
    let held = held.into_iter().filter_map(|(own, is)| is.then_some(own)).collect();
    Traits { method: method.name(), held }
}

/// Returns what the method that is asked for may turn out to have: `auto` is one of those that it
/// is known to take, by the name of the model in the end, or of all where none is known.
///
/// # Errors
/// [`crate::Error::Invalid`] for a method that nobody knows.
pub fn possible(asked: &str, taken: &[&str], rows: usize, way: Way) -> Result<Vec<Traits>> {
    if asked != "auto" {
        return Ok(vec![traits_of(methods::find(asked)?.method, way)]);
    }
    let whole = Way { full_batch: true, ..way };
    let all = [
        ("exact", "exact", whole),
        ("markov", "markov", whole),
        ("titsias2025", "titsias2025", whole),
        // by minibatches, with the collapsed bound at the end
        ("svgp2025", "titsias2025", way),
        ("tsvgp", "tsvgp", whole),
        ("tsvgp", "tvgp", whole),
        ("vecchia", "vecchia", whole),
        ("svgp", "svgp", way),
    ];
    let many = rows > AUTO_WHOLE && !way.full_batch;
    let possible = all.into_iter().filter(|(own, end, _)| {
        (taken.is_empty() || taken.contains(end)) && (many || !["svgp2025", "markov"].contains(own))
    });
    possible.map(|(own, _, way)| Ok(traits_of(methods::find(own)?.method, way))).collect()
}

//! What a method of inference is: its objective, its posterior, and what it can do, as data.
//!
//! Nobody asks which type a method has. What its callers need to know is in what it answers: how q is kept and what a row
//! contributes ([`Method::with_q`]), its layers ([`Method::architecture`]), what samples ([`Method::sampler`]).

use super::{Model, Posterior};
use crate::bounds::Bound;
use crate::data::{InMemory, Source};
use crate::deep::Architecture;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::inverse_free::Preconditioner;
use crate::markov::Past;
use crate::variational::{Tying, Variational};

/// Value of an objective (log evidence or a bound on it) with its gradient.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// The value, without priors.
    pub value: f64,
    /// Gradient with respect to every constrained parameter, in the order of [`Model::params`].
    pub gradient: Vec<f64>,
    /// What the numerics had to do.
    pub diagnostics: Diagnostics,
}

/// What the numerics had to do, and how much the inducing points leave unexplained.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Diagnostics {
    /// Jitter added to the diagonal of Kuu (or of K + σ²I).
    pub jitter: f64,
    /// Σ rᵢ: prior variance of the rows that the inducing points do not explain.
    pub unexplained: f64,
    /// Σ k(xᵢ, xᵢ), by the methods that sum it.
    pub prior_variance: Option<f64>,
    /// Rows where rᵢ came out below −1e-8 of the mean prior variance: rounding; raise the jitter if
    /// there are any.
    pub negative: usize,
    /// ‖LᵀK̃L − I‖_F/√M of R-SVGP: how far T is from the inverse of K̃ = Kuu + Λ.
    #[serde(default)]
    pub residual: Option<f64>,
    /// Standard error of the log determinant in the value where it averages over draws, in nats ([`crate::vecchia::Solver::Iterative`]);
    /// else 0.
    #[serde(default)]
    pub noise: f64,
}

/// The Gaussian factor that a row contributes to a posterior, by which leave-one-out predictions go
/// ([`Posterior::leave_one_out`]).
#[derive(Clone, Copy)]
pub enum RowSite {
    /// The posterior is not the prior times factors of rows.
    None,
    /// Of Gaussian noise of the variance σ² + αr.
    Noise {
        /// α.
        alpha: f64,
    },
    /// What natural-gradient steps on this bound end at: λ₂ = −2 ∂ℓ/∂s.
    Bound(&'static dyn Bound),
}

/// What samples a posterior.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampler {
    /// [`crate::samplers::gibbs`].
    Gibbs,
    /// [`crate::samplers::series`].
    GibbsSeries,
    /// [`crate::samplers::hmc`] on paths without U-turns.
    Nuts,
    /// [`crate::samplers::hmc`] on paths of ten steps.
    Hmc,
    /// The first with the local variables of the likelihood beside f.
    NutsAugmented,
    /// The second, likewise.
    HmcAugmented,
    /// [`crate::samplers::elliptical`].
    Elliptical,
    /// [`crate::samplers::metropolis`].
    Metropolis,
    /// [`crate::flow`]: a Gaussian, and draws from it.
    Flow,
}

impl Sampler {
    /// Returns whether its draws come from sweeps of Markov chains: those of a particle flow are
    /// independent.
    pub fn sweeps(self) -> bool {
        self != Sampler::Flow
    }

    /// Returns whether it samples hyperparameters too where that is asked for.
    pub fn samples_hyperparameters(self) -> bool {
        matches!(self, Sampler::Gibbs | Sampler::Nuts | Sampler::Hmc)
    }

    /// Returns whether its chains have more laws than one ([`crate::samplers::Target`]), with
    /// inducing points or without.
    pub fn has_laws(self, sparse: bool) -> bool {
        self == Sampler::Gibbs && sparse
    }
}

/// How q is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeps {
    /// By its moments.
    Moments,
    /// As sites ([`crate::variational::sites`]).
    Sites,
    /// As pseudo-observations: L-SVGP ([`crate::inverse_free`]).
    Pseudo,
    /// The same, with an auxiliary T for the inverse of Kuu + Λ: R-SVGP.
    Relaxed,
    /// As sites of all rows, without inducing points.
    RowSites,
}

/// What is to be known of a method that trains q as a parameter.
#[derive(Clone, Copy)]
pub struct WithQ {
    /// What a row contributes.
    pub bound: &'static dyn Bound,
    /// How q is kept.
    pub keeps: Keeps,
}

impl WithQ {
    /// Makes the q that a training starts from, the prior, for so many rows, inducing points and latent functions.
    /// `tying` is of sites at inducing points, `diagonal` of moments.
    pub fn start(
        &self,
        [rows, points, latents]: [usize; 3],
        tying: Tying,
        diagonal: bool,
    ) -> Variational {
        let q = match self.keeps {
            Keeps::Moments => Variational::prior(points, latents, diagonal),
            Keeps::Sites if tying != Tying::Untied => Variational::sites(points, latents, tying),
            Keeps::Sites | Keeps::RowSites => Variational::sites(rows, latents, Tying::Untied),
            Keeps::Pseudo | Keeps::Relaxed => {
                let relaxed = self.keeps == Keeps::Relaxed;
                Variational::pseudo_observations(points, latents, Preconditioner::Inverse, relaxed)
            }
        };
        if self.bound.has_factors() { q.with_factors() } else { q }
    }

    /// Returns whether q is of inducing variables, and not of the rows.
    pub fn is_of_points(&self) -> bool {
        self.keeps != Keeps::RowSites
    }

    /// Returns whether minibatches train it: not where sites or local variables are of all rows at
    /// once.
    pub fn in_minibatches(&self) -> bool {
        self.is_of_points() && !(self.keeps == Keeps::Sites && self.bound.augments())
    }

    /// Returns whether q moves by natural-gradient steps where they are asked for.
    pub fn steps_naturally(&self) -> bool {
        !matches!(self.keeps, Keeps::Pseudo | Keeps::Relaxed)
    }
}

/// How a model is trained and conditioned.
pub trait Method: Send + Sync + std::fmt::Debug {
    /// Returns the name in specifications, model files and messages.
    fn name(&self) -> &'static str;

    /// Returns whether there are inducing points.
    fn is_sparse(&self) -> bool;

    /// Returns whether its posteriors keep their rows ([`Posterior::kept_rows`]), all of which its
    /// objective sees at once.
    fn keeps_rows(&self) -> bool {
        false
    }

    /// Returns whether inducing points are trained unless somebody freezes them.
    fn moves_points(&self) -> bool {
        true
    }

    /// Returns the number of inducing points where no number is given; none where that is as for
    /// most methods.
    fn usual_points(&self) -> Option<usize> {
        None
    }

    /// Returns the number of rows, of so many, that a training sees: those of a series, or densities of rows given others.
    fn training_rows(&self, model: &Model, rows: usize) -> usize {
        let _ = model;
        rows
    }

    /// Returns whether rows are passed in the order of their one input.
    fn is_of_series(&self) -> bool {
        false
    }

    /// Returns whether every latent function may have a kernel to itself.
    fn takes_kernels(&self) -> bool {
        self.has_q()
    }

    /// Returns whether rows may have missing targets.
    fn takes_missing(&self) -> bool {
        self.has_q()
    }

    /// Returns whether the objective is the log evidence or a bound from below, which the
    /// approximations by power expectation propagation are not.
    fn is_bound(&self) -> bool {
        true
    }

    /// Returns whether it divides by the variance of Gaussian noise, which must not be 0 then.
    fn divides_by_noise(&self) -> bool {
        true
    }

    /// Checks that the method supports every part of `model`.
    ///
    /// # Errors
    /// [`Error::Invalid`] that says what, and what can.
    fn check(&self, model: &Model) -> Result<()>;

    /// Returns what a row contributes to the posterior.
    fn row_site(&self) -> RowSite {
        RowSite::None
    }

    /// Returns factors vᵢ of what the inducing points leave unexplained of the rows (given), in the
    /// q(f | u) of this method; none for methods without ([`crate::methods::HighCost`]).
    fn factors(&self, _model: &Model, _unexplained: &[f64]) -> Option<Vec<f64>> {
        None
    }

    /// Returns what is to be known of the q that it trains as a parameter; none for other methods,
    /// and for those whose layers each have one.
    fn with_q(&self) -> Option<WithQ> {
        None
    }

    /// Returns its layers, where its models have hidden ones.
    fn architecture(&self) -> Option<&Architecture> {
        None
    }

    /// Returns what samples the posterior once hyperparameters are trained
    /// ([`mod@crate::samplers`]).
    fn sampler(&self) -> Option<Sampler> {
        None
    }

    /// Returns whether a model of this method has a q.
    fn has_q(&self) -> bool {
        self.with_q().is_some() || self.architecture().is_some()
    }

    /// Returns whether minibatches train it: of the methods with a q, those that are not for all
    /// rows at once.
    fn in_minibatches(&self) -> bool {
        self.architecture().is_some() || self.with_q().is_some_and(|q| q.in_minibatches())
    }

    /// Returns whether it needs a likelihood with local variables
    /// ([`crate::likelihoods::augmented`]).
    fn augments(&self) -> bool {
        self.with_q().is_some_and(|q| q.bound.augments())
    }

    /// Returns the objective at the model's parameters, with its gradient.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`], [`Error::Imprecise`], [`Error::NonFinite`] (recoverable: try nearer
    /// parameters), or what reading the data gives.
    fn evaluate(&self, model: &Model, engine: &dyn Engine, data: &dyn Source)
    -> Result<Evaluation>;

    /// Chooses, at the model's parameters, what the objective holds fixed while a training climbs, such as neighbours of rows,
    /// unless what is held is near enough to it: from then on this is kept with the engine. Returns whether the objective is
    /// another one now; methods that hold nothing never have another one.
    ///
    /// # Errors
    /// As for [`Method::evaluate`].
    fn hold(&self, _model: &Model, _engine: &dyn Engine, _data: &dyn Source) -> Result<bool> {
        Ok(false)
    }

    /// Lets go of what is held: the objective is a function of the parameters only, again.
    fn release(&self, _engine: &dyn Engine) {}

    /// Returns what a training climbs: the objective less a barrier where double precision ends
    /// ([`super::precision`]), with the gradient of both, and the barrier.
    ///
    /// # Errors
    /// As for [`Method::evaluate`]; [`Error::Imprecise`] beyond the barrier.
    fn climb(
        &self,
        model: &Model,
        engine: &dyn Engine,
        data: &dyn Source,
    ) -> Result<(Evaluation, f64)> {
        Ok((self.evaluate(model, engine, data)?, 0.0))
    }

    /// Returns the posterior at the model's parameters.
    ///
    /// # Errors
    /// As for [`Method::evaluate`].
    fn posterior(&self, model: &Model, engine: &dyn Engine, data: &dyn Source)
    -> Result<Posterior>;

    /// Returns the posterior from rows that one of this method has kept ([`Posterior::kept_rows`]).
    ///
    /// # Errors
    /// [`Error::Invalid`] for methods whose posteriors keep none; else as for [`Method::evaluate`].
    fn conditioned(
        &self,
        _model: &Model,
        _engine: &dyn Engine,
        _rows: InMemory,
    ) -> Result<Posterior> {
        Err(Error::Invalid(format!("posteriors of method `{}` keep no rows", self.name())))
    }

    /// Returns the posterior from rows that one of this method has kept, after others that have
    /// left it ([`Posterior::past`]).
    ///
    /// # Errors
    /// [`Error::Invalid`] for methods whose rows do not leave, and for rows before those that have left; else as for
    /// [`Method::evaluate`].
    fn conditioned_after(
        &self,
        _model: &Model,
        _engine: &dyn Engine,
        _rows: InMemory,
        _past: Past,
    ) -> Result<Posterior> {
        Err(Error::Invalid(format!("rows do not leave a model of method `{}`", self.name())))
    }
}

/// Returns the value if it is finite.
pub(crate) fn finite(value: f64, what: &str) -> Result<f64> {
    if value.is_finite() { Ok(value) } else { Err(Error::NonFinite { what: what.into(), value }) }
}

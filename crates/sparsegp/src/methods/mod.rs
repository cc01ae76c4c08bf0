//! The inference methods by name: what a model's objective is and how its posterior is found.
//!
//! To add one: one file and one line in [`REGISTRY`].

mod collapsed;
mod collected;
mod deep;
pub mod described;
mod exact;
pub mod precision;
mod registry;
mod tvgp;
pub mod uncollapsed;

pub use collapsed::{
    Collapsed, DEFAULT_ALPHA, HighCost, MOST_ROWS_HIGH_COST, PowerEp, upper_bound,
};
pub(crate) use collected::collect;
pub use deep::{Deep, WIDEST};
pub use exact::Exact;
pub use registry::{Entry, REGISTRY, Sampler, find};
pub(crate) use tvgp::least_raised;
pub use tvgp::{Look, Tvgp};
pub use uncollapsed::{Following, Keeps, Step, Uncollapsed};

use crate::data::Source;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::model::{Model, Posterior};

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
    Bound(&'static dyn uncollapsed::Bound),
}

/// How a model is trained and conditioned.
pub trait Method: Send + Sync + std::fmt::Debug {
    /// Name in specifications, model files and messages.
    fn name(&self) -> &'static str;

    /// Whether there are inducing points.
    fn is_sparse(&self) -> bool;

    /// Whether the objective is the log evidence or a bound from below, which the approximations by power
    /// expectation propagation are not.
    fn is_bound(&self) -> bool {
        true
    }

    /// Checks that the method supports every part of `model`.
    ///
    /// # Errors
    /// [`Error::Invalid`] that says what, and what can.
    fn check(&self, model: &Model) -> Result<()>;

    /// What a row contributes to the posterior.
    fn row_site(&self) -> RowSite {
        RowSite::None
    }

    /// Factors vᵢ of what the inducing points leave unexplained of the rows (given), in the q(f | u) of this
    /// method; none for methods without ([`HighCost`]).
    fn factors(&self, _model: &Model, _unexplained: &[f64]) -> Option<Vec<f64>> {
        None
    }

    /// This method if it trains q(u) as a parameter, so that minibatches and natural gradients are
    /// possible.
    fn uncollapsed(&self) -> Option<&Uncollapsed> {
        None
    }

    /// This method if its models have hidden layers.
    fn deep(&self) -> Option<&Deep> {
        None
    }

    /// This method if it keeps sites of all rows without inducing points.
    fn full_sites(&self) -> Option<&Tvgp> {
        None
    }

    /// What samples the posterior once hyperparameters are trained ([`mod@crate::samplers`]).
    fn sampler(&self) -> Option<Sampler> {
        None
    }

    /// Whether a model of this method has a q.
    fn has_q(&self) -> bool {
        self.uncollapsed().is_some() || self.full_sites().is_some()
    }

    /// Whether minibatches train it: of the methods with a q, those that are not for all rows at once.
    fn in_minibatches(&self) -> bool {
        self.uncollapsed()
            .is_some_and(|method| !(method.keeps == Keeps::Sites && method.bound.augments()))
    }

    /// Whether it needs a likelihood with local variables ([`crate::likelihoods::augmented`]).
    fn augments(&self) -> bool {
        self.uncollapsed().is_some_and(|method| method.bound.augments())
            || self.full_sites().is_some_and(|method| method.bound.augments())
    }

    /// The objective at the model's parameters, with its gradient.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`], [`Error::Imprecise`], [`Error::NonFinite`] (recoverable: try nearer
    /// parameters), or what reading the data gives.
    fn evaluate(&self, model: &Model, engine: &dyn Engine, data: &dyn Source)
    -> Result<Evaluation>;

    /// What a training climbs: the objective less a barrier where double precision ends ([`precision`]), with the
    /// gradient of both, and the barrier.
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

    /// The posterior at the model's parameters.
    ///
    /// # Errors
    /// As for [`Method::evaluate`].
    fn posterior(&self, model: &Model, engine: &dyn Engine, data: &dyn Source)
    -> Result<Posterior>;
}

/// The value if it is finite.
pub(crate) fn finite(value: f64, what: &str) -> Result<f64> {
    if value.is_finite() { Ok(value) } else { Err(Error::NonFinite { what: what.into(), value }) }
}

/// Refuses a noise variance of 0 where a method divides by it.
///
/// # Errors
/// [`Error::Invalid`] that names the method that does not.
pub fn check_noise(model: &Model) -> Result<()> {
    if model.noise() != 0.0 || model.method.name() == Exact.name() {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "method `{}` divides by the noise variance, and `likelihood.variance` is 0: use `exact`, or a positive \
         variance",
        model.method.name()
    )))
}

/// Refuses rows that bring more than inputs and targets.
pub(crate) fn plain_rows(model: &Model, data: &dyn Source) -> Result<()> {
    if data.is_plain() {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "method `{}` supports neither row weights nor known noise variances; use `svgp`, or `exact` for small tables",
        model.method.name()
    )))
}

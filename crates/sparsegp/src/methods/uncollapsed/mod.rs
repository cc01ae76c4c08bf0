//! Uncollapsed bounds: q(u) is a parameter, any likelihood, any part of the rows.
//!
//! F = Σᵢ ℓ(yᵢ; μᵢ, sᵢ, rᵢ) − Σ_l KL(q(u_l)‖p(u_l)), with ℓ of a [`Bound`]. One pass over the rows gives
//! value and all gradients: with G_l = Φ diag(b_l) Φᵀ and S_l = R_l R_lᵀ,
//!
//! ```text
//! m̄ = Φa − m        R̄ = tril(2 G R − R) + diag(1/Rⱼⱼ)
//! Ψ = Σ_l {m (Φa)ᵀ + 2 R (G R)ᵀ} − 2 Φ diag(Σc) Φᵀ       K̄uu = −½ L⁻ᵀ mirror(Ψ) L⁻¹
//! ```
//!
//! (Hensman et al. 2013, 2015; the adjoint of the Cholesky factor as in [`CholeskyBasis::kuu_bar`]). Where rows are few
//! they sum 2GR and Ψ = Φ̄Φᵀ themselves ([`Want::Adjoints`]), for less than the products with G. Where they are many, and the
//! slopes of s and r the same, r + s and K̄uf come from one product with (S − I)L⁻¹ ([`Spread::Through`]). A
//! minibatch multiplies the sums over rows by N/B ([`Source::scale`]), which leaves value and
//! gradient unbiased; the penalty of the factors v counts rows, and so has that factor too.

mod forms;
pub(crate) mod guesses;
pub(super) mod mixed;
mod natural;
mod pass;
mod prepared;
pub(super) mod promise;
pub(super) mod rows;
mod step;

pub use crate::bounds::{Augmented, Bound, Hensman, Spherical, Titsias2025};
pub use forms::pseudo::Following;
pub use step::Step;

use super::{Evaluation, Keeps, Method, RowSite, Sampler, WithQ};
use crate::data::Source;
#[cfg(doc)]
use crate::engine::{CholeskyBasis, Spread};
use crate::engine::{Engine, Want};
use crate::error::{Error, Result};
use crate::likelihoods::mixing_shape;
use crate::model::{Model, Posterior};
use crate::variational::Variational;

/// A method that trains q(u).
#[derive(Clone, Copy)]
pub struct Uncollapsed {
    /// Its name.
    pub name: &'static str,
    /// What a row contributes.
    pub bound: &'static dyn Bound,
    /// What samples the posterior in the end.
    pub sampler: Option<Sampler>,
    /// How q is kept: not as sites of rows, which [`super::Tvgp`] has.
    pub keeps: Keeps,
}

impl std::fmt::Debug for Uncollapsed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Uncollapsed({})", self.name)
    }
}

/// Returns the q of a model.
fn variational(model: &Model) -> Result<&Variational> {
    model.q.as_ref().ok_or_else(|| {
        Error::Invalid(format!("method `{}` needs a q to start from", model.method.name()))
    })
}

impl Uncollapsed {
    /// Returns a method as one that trains q(u).
    ///
    /// # Errors
    /// [`Error::Invalid`] for a method without.
    pub fn of(method: &dyn Method) -> Result<Self> {
        let found = method.with_q().filter(WithQ::is_of_points);
        let WithQ { bound, keeps } = found.ok_or_else(|| {
            Error::Invalid(format!(
                "method `{}` trains no q of inducing variables; `svgp` does",
                method.name()
            ))
        })?;
        Ok(Self { name: method.name(), bound, keeps, sampler: method.sampler() })
    }

    /// Returns what is to be known of its q.
    pub fn q(&self) -> WithQ {
        WithQ { bound: self.bound, keeps: self.keeps }
    }

    /// Returns whether q moves by natural-gradient steps where they are asked for.
    pub fn steps_naturally(&self) -> bool {
        self.q().steps_naturally()
    }

    /// Refuses to mix latent functions where that is not derived: with separate factors, or sites
    /// of rows; and a matrix for other than so many target columns.
    fn check_mixing(&self, model: &Model, outputs: Option<usize>) -> Result<()> {
        let Some(mixing) = model.likelihood.mixing() else { return Ok(()) };
        let mixes = model.q.as_ref().is_none_or(|q| forms::of(q).mixes());
        if self.bound.has_factors() || !mixes || !self.steps_naturally() {
            return Err(Error::Invalid(format!(
                "latent functions are mixed by `svgp` and `tsvgp` with tied sites; the method is `{}`",
                self.name
            )));
        }
        let rows = mixing_shape(mixing).0;
        match outputs.filter(|outputs| *outputs != rows) {
            None => Ok(()),
            Some(outputs) => Err(Error::Shape {
                what: "likelihood.mixing".into(),
                expected: format!("{outputs} rows, one for every target column"),
                found: format!("{rows}"),
            }),
        }
    }

    /// Refuses several kernels or sets of points for pseudo-observations, which have one.
    fn check_shared(&self, model: &Model) -> Result<()> {
        let shares = model.q.as_ref().map_or(!self.steps_naturally(), |q| q.pseudo().is_some());
        if shares && (model.kernels.len() > 1 || model.inducing.len() > 1) {
            return Err(Error::Invalid(format!(
                "the latent functions of `{}` share kernel and inducing points; for {} kernels use `svgp`",
                self.name,
                model.kernels.len()
            )));
        }
        Ok(())
    }
}

impl Method for Uncollapsed {
    fn name(&self) -> &'static str {
        self.name
    }

    fn is_sparse(&self) -> bool {
        true
    }

    fn with_q(&self) -> Option<WithQ> {
        Some(self.q())
    }

    fn sampler(&self) -> Option<Sampler> {
        self.sampler
    }

    fn row_site(&self) -> RowSite {
        if self.steps_naturally() { RowSite::Bound(self.bound) } else { RowSite::None }
    }

    fn check(&self, model: &Model) -> Result<()> {
        self.check_shared(model)?;
        self.check_mixing(model, None)?;
        self.bound.check(&*model.likelihood)
    }

    fn evaluate(
        &self,
        model: &Model,
        engine: &dyn Engine,
        data: &dyn Source,
    ) -> Result<Evaluation> {
        let mut step = self.step(model, engine, data, Want::Adjoints { statistics: false })?;
        let mut gradient = vec![0.0; model.num_params()];
        step.gradient(model, &mut gradient);
        Ok(Evaluation { value: step.value, gradient, diagnostics: step.diagnostics })
    }

    fn posterior(
        &self,
        model: &Model,
        engine: &dyn Engine,
        data: &dyn Source,
    ) -> Result<Posterior> {
        let mut tied = model.clone();
        self.tie(&mut tied, engine, data)?;
        Posterior::of_q(&tied)
    }
}

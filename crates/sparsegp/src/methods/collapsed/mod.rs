//! The collapsed family: q(u) at its optimum for Gaussian noise, in closed form.
//!
//! With Φ = L⁻¹Kuf, B = I + ΦΦᵀ/σ² = L_B L_Bᵀ, e = B⁻¹Φ(Y − m)/σ²:
//! F = −½{PN log 2πσ² + P log|B| + ‖Y − m‖²/σ² − ‖L_B⁻¹Φ(Y − m)/σ²‖²} − P ρ,
//! q(v) = N(e, B⁻¹) over the whitened inducing variables (Titsias 2009; ρ in [`crate::terms`]).
//! The gradient is the adjoint of the uncollapsed bound at this q (envelope): slopes
//! a = (y − m − φᵀe)/σ², b = −P/2σ², c = −P ∂ρ/∂r, and Φa = e there.

mod high_cost;
pub(super) mod parts;
pub(super) mod power_ep;
mod upper;

pub use high_cost::{HighCost, MOST_ROWS as MOST_ROWS_HIGH_COST};
pub use power_ep::{DEFAULT_ALPHA, PowerEp};
pub use upper::upper_bound;

use super::{Diagnostics, Evaluation, Method, RowSite, finite};
use crate::data::Source;
use crate::engine::Engine;
use crate::error::Result;
use crate::kernels::Tape;
use crate::linalg::{Cholesky, Jitter};
use crate::model::{Model, Posterior};
use crate::terms::{Pooling, Term};
use parts::{GaussianRows, Prepared, PullBack, RowSlopes, core, first_pass, scaled, sum, trace};

/// A bound of the collapsed family.
pub struct Collapsed {
    /// What tells it from the others.
    pub term: &'static dyn Term,
}

impl std::fmt::Debug for Collapsed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Collapsed({})", self.term.name())
    }
}

impl Method for Collapsed {
    fn name(&self) -> &'static str {
        self.term.name()
    }

    fn is_sparse(&self) -> bool {
        true
    }

    fn row_site(&self) -> RowSite {
        RowSite::Noise { alpha: 0.0 }
    }

    fn check(&self, model: &Model) -> Result<()> {
        model.gaussian().map(|_| ())
    }

    /// Uses that ρ is what remains of the divergence and the expected density at the best v, in
    /// which each rᵢ stands as −vᵢrᵢ/2σ²: so vᵢ = 2σ² ∂ρ/∂rᵢ (envelope).
    fn factors(&self, model: &Model, unexplained: &[f64]) -> Option<Vec<f64>> {
        let noise = model.noise();
        let rows = unexplained.len();
        Some(match self.term.pooling() {
            Pooling::Total => {
                let total = self.term.penalty(unexplained.iter().sum(), rows as f64, noise);
                vec![2.0 * noise * total.by_r; rows]
            }
            Pooling::Rows => {
                let one = |r: &f64| 2.0 * noise * self.term.penalty(*r, 1.0, noise).by_r;
                unexplained.iter().map(one).collect()
            }
        })
    }

    fn evaluate(
        &self,
        model: &Model,
        engine: &dyn Engine,
        data: &dyn Source,
    ) -> Result<Evaluation> {
        let prepared = Prepared::new(model, Tape::recording())?;
        let mut pass = first_pass(model, &prepared, self.term, engine, data)?;
        let (p, n, noise) = (pass.outputs, pass.rows, pass.noise);
        let core = core(pass.gram.as_ref(), pass.phi_y.as_ref(), noise)?;
        let value = -0.5
            * (p * n * (2.0 * std::f64::consts::PI * noise).ln()
                + p * core.factor.log_det()
                + pass.squares / noise
                - core.explained)
            - p * pass.penalty;
        let value = finite(value, "the bound")?;
        let covariance = core.factor.inverse();
        let (c, gram_c) = match (pass.penalty_by_r, pass.gram_c.take()) {
            (None, Some(gram_c)) => (RowSlopes::Term(self.term, noise), gram_c),
            (by_r, _) => {
                let c = -by_r.unwrap_or(0.0);
                (RowSlopes::Constant(c), scaled(&pass.gram, p * c))
            }
        };
        let diagnostics = Diagnostics {
            jitter: prepared.basis.factor().jitter,
            unexplained: pass.sums[sum::UNEXPLAINED],
            prior_variance: Some(pass.sums[sum::UNEXPLAINED] + trace(&pass.gram)),
            negative: pass.sums[sum::NEGATIVE] as usize,
            ..Diagnostics::default()
        };
        let rounding = prepared.rounding();
        let local = GaussianRows { variance: noise, b: -0.5 / noise, c, rounding };
        let pull = PullBack {
            model,
            engine,
            data,
            mean: &core.mean,
            covariance: &covariance,
            local,
            gram_c,
        };
        let (mut gradient, squares) = pull.run(prepared)?;
        // ∂F/∂σ² = ½‖a‖² − P(N − M + tr B⁻¹)/2σ² − P ∂ρ/∂σ²
        let m = covariance.nrows() as f64;
        model.parts_of(&mut gradient).likelihood[0] = 0.5 * squares
            - 0.5 * p * (n - m + trace(&covariance)) / noise
            - p * pass.penalty_by_noise;
        Ok(Evaluation { value, gradient, diagnostics })
    }

    fn posterior(
        &self,
        model: &Model,
        engine: &dyn Engine,
        data: &dyn Source,
    ) -> Result<Posterior> {
        let prepared = Prepared::new(model, Tape::off())?;
        let pass = first_pass(model, &prepared, &crate::terms::Titsias2009, engine, data)?;
        let core = core(pass.gram.as_ref(), pass.phi_y.as_ref(), pass.noise)?;
        let root =
            Cholesky::inverse_root(core.b.as_ref(), Jitter::Relative(0.0), "B = I + ΦΦᵀ/σ²")?;
        Ok(Posterior::new(model, prepared.z, prepared.basis.into_factor(), core.mean, Some(root)))
    }
}

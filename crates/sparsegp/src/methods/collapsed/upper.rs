//! A bound on the log evidence from above.

use super::parts::{
    GaussianRows, Prepared, PullBack, RowSlopes, core, first_pass, scaled, sum, trace,
};
use crate::data::Source;
use crate::engine::Engine;
use crate::error::Result;
use crate::kernels::Tape;
use crate::linalg::{dot, product};
use crate::methods::{Diagnostics, Evaluation, finite};
use crate::model::Model;

/// Returns the upper bound on the log evidence with its gradient (Titsias 2014; Burt, Rasmussen &
/// van der Wilk 2020, Lemma 3): −½{PN log 2π + P log|Q + σ²I| + tr (Y − m)ᵀ(Q + (σ² + t)I)⁻¹(Y −
/// m)}, t = Σ rᵢ. O(NM²).
///
/// With σ̃² = σ² + t and ẽ = B̃⁻¹Φ(y − m)/σ̃², a = (y − m − φᵀẽ)/σ̃²: the slope of the quadratic
/// form in σ̃² is g = ½‖a‖², which is c, and the log-determinant has the slopes of the lower bounds.
///
/// # Errors
/// As for [`crate::methods::Method::evaluate`].
pub fn upper_bound(model: &Model, engine: &dyn Engine, data: &dyn Source) -> Result<Evaluation> {
    let prepared = Prepared::new(model, Tape::recording())?;
    let pass = first_pass(model, &prepared, &crate::terms::Titsias2009, engine, data)?;
    let (p, n, noise) = (pass.outputs, pass.rows, pass.noise);
    let t = pass.sums[sum::UNEXPLAINED];
    let wide = noise + t;
    let determinant = core(pass.gram.as_ref(), pass.phi_y.as_ref(), noise)?;
    let quadratic = core(pass.gram.as_ref(), pass.phi_y.as_ref(), wide)?;
    let value = -0.5
        * (p * n * (2.0 * std::f64::consts::PI * noise).ln()
            + p * determinant.factor.log_det()
            + pass.squares / wide
            - quadratic.explained);
    let value = finite(value, "the upper bound")?;
    // ‖y − m − Φᵀẽ‖² = ‖y − m‖² − 2ẽᵀΦ(y − m) + ẽᵀΦΦᵀẽ
    let e = &quadratic.mean;
    let gram_e = product(pass.gram.as_ref(), e.as_ref());
    let squares = pass.squares - 2.0 * dot(e.as_ref(), pass.phi_y.as_ref())
        + dot(e.as_ref(), gram_e.as_ref());
    let c = 0.5 * squares / (wide * wide);
    let covariance = determinant.factor.inverse();
    let diagnostics = Diagnostics {
        jitter: prepared.basis.factor().jitter,
        unexplained: t,
        prior_variance: Some(t + trace(&pass.gram)),
        negative: pass.sums[sum::NEGATIVE] as usize,
        ..Diagnostics::default()
    };
    let pull = PullBack {
        model,
        engine,
        data,
        mean: e,
        covariance: &covariance,
        local: GaussianRows {
            variance: wide,
            b: -0.5 / noise,
            c: RowSlopes::Constant(c / p),
            rounding: prepared.rounding(),
        },
        gram_c: scaled(&pass.gram, c),
    };
    let (mut gradient, _) = pull.run(prepared)?;
    let m = covariance.nrows() as f64;
    model.parts_of(&mut gradient).likelihood[0] =
        c - 0.5 * p * (n - m + trace(&covariance)) / noise;
    Ok(Evaluation { value, gradient, diagnostics })
}

//! Power expectation propagation with Gaussian noise (Bui, Yan & Turner 2017), of which FITC (Snelson &
//! Ghahramani 2006) is the case α = 1.
//!
//! The noise of a row is s̃ᵢ = σ² + αrᵢ, and with B = I + Φ diag(1/s̃) Φᵀ = L_B L_Bᵀ, e = B⁻¹Φ diag(1/s̃)(Y − m):
//!
//! ```text
//! F = −½{PN log 2π + P Σ log s̃ᵢ + P log|B| + Σ ‖yᵢ − mᵢ‖²/s̃ᵢ − ‖L_B⁻¹Φ diag(1/s̃)(Y − m)‖²} − P ρ
//! ρ = (1 − α)/2α Σ log(1 + αrᵢ/σ²)      q(v) = N(e, B⁻¹)
//! γᵢ = (yᵢ − mᵢ − φᵢᵀe)/s̃ᵢ      δᵢ = ½{‖γᵢ‖² − P/s̃ᵢ + P φᵢᵀB⁻¹φᵢ/s̃ᵢ²}, the slope of F + Pρ in s̃ᵢ
//! a = γ      b = −P/2s̃      c = −P ∂ρ/∂r + αδ
//! ```
//!
//! These slopes give the gradient through the same K̄uf and K̄uu as those of the bounds: with s̃ held, F + Pρ is
//! log N(y; m, Q + diag s̃), whose adjoint at the optimal q is the bound's. α → 0 is `titsias2009`. No value
//! of α makes a bound: F may be above the log evidence.

use super::parts::{FromRows, Prepared, core, trace};
use crate::data::Source;
use crate::engine::{Block, Description, Engine, Plan, Pointwise, Slope, Slopes, Spread, Want};
use crate::error::{Error, Result};
use crate::kernels::Tape;
use crate::linalg::{Cholesky, Jitter, Mat, column, column_mut};
use crate::methods::described::Fitting;
use crate::methods::{Diagnostics, Entry, Evaluation, Method, RowSite, finite, plain_rows};
use crate::model::{Model, Posterior};
use faer::reborrow::{Reborrow, ReborrowMut};

/// Power expectation propagation with a power α, 0 < α ≤ 1.
#[derive(Debug)]
pub struct PowerEp {
    /// Its name, with α where that is not the registered one.
    pub name: &'static str,
    /// α.
    pub alpha: f64,
}

/// α of the method `pep` unless another is given.
pub const DEFAULT_ALPHA: f64 = 0.5;

impl PowerEp {
    /// Returns the method `pep` with this α, as [`crate::methods::find`] gives it for
    /// `pep(alpha=…)`.
    ///
    /// # Errors
    /// [`Error::Invalid`] unless 0 < α ≤ 1.
    pub fn entry(alpha: f64) -> Result<&'static Entry> {
        if !(alpha > 0.0 && alpha <= 1.0) {
            return Err(Error::Invalid(format!(
                "alpha of `pep` is {alpha}; it must be above 0 and at most 1 (its limit at 0 is the method \
                 `titsias2009`)"
            )));
        }
        let registered = super::super::find("pep")?;
        if alpha == DEFAULT_ALPHA {
            return Ok(registered);
        }
        let name = format!("pep(alpha={alpha})");
        Ok(registered.variant(name, |name| Box::new(Self { name, alpha })))
    }
}

/// Positions among the sums over rows of the first pass.
mod sum {
    pub const SQUARES: usize = 0;
    pub const LOG_NOISE: usize = 1;
    pub const UNEXPLAINED: usize = 2;
    pub const PENALTY: usize = 3;
    pub const PENALTY_BY_NOISE: usize = 4;
    pub const NEGATIVE: usize = 5;
    pub const ROWS: usize = 6;
    pub const COUNT: usize = 7;
}

/// Rows at σ² and α.
#[derive(Clone, Copy)]
struct Rows {
    noise: f64,
    alpha: f64,
    /// rᵢ below minus this counts as negative.
    rounding: f64,
}

impl Rows {
    fn description(&self, kind: &str) -> Result<Description> {
        Description::new(kind, &[self.noise, self.alpha, self.rounding])
    }

    fn described(description: &Description, rows: Fitting) -> Result<Self> {
        Fitting::check(rows.latents == rows.outputs)?;
        let [noise, alpha, rounding] = description.state()?;
        Ok(Self { noise, alpha, rounding })
    }

    /// Returns ρ of one row with its slopes in r and σ².
    fn penalty(&self, r: f64) -> (f64, f64, f64) {
        let Self { noise, alpha, .. } = *self;
        let wide = noise + alpha * r;
        let rest = 0.5 * (1.0 - alpha);
        (rest / alpha * (alpha * r / noise).ln_1p(), rest / wide, -rest * r / (noise * wide))
    }
}

/// The first pass, at μ = m(x): a = (y − m)/s̃ and, of only the first target, b = 1/s̃, so that Φa
/// and Φ diag(b) Φᵀ are what B and e are of.
struct First(Rows);

impl Pointwise for First {
    fn plan(&self) -> Plan<'_> {
        let c = Some(Slope::Constant(0.0));
        Plan { variances: false, c, ..Plan::by_rows(sum::COUNT) }
    }

    fn rows(&self, block: Block<'_>, mut out: Slopes<'_>) {
        let (rows, y) = (&self.0, block.rows.y);
        for (i, r) in column(block.r, 0).iter().enumerate() {
            let wide = rows.noise + rows.alpha * r;
            let (value, _, by_noise) = rows.penalty(*r);
            (0..y.ncols()).for_each(|p| out.b[(i, p)] = if p == 0 { 1.0 / wide } else { 0.0 });
            out.sums[sum::LOG_NOISE] += wide.ln();
            out.sums[sum::UNEXPLAINED] += r;
            out.sums[sum::PENALTY] += value;
            out.sums[sum::PENALTY_BY_NOISE] += by_noise;
            if *r < -rows.rounding {
                out.sums[sum::NEGATIVE] += 1.0;
            }
        }
        out.sums[sum::ROWS] += y.nrows() as f64;
        for p in 0..y.ncols() {
            let residuals = column(y, p).iter().zip(column(block.mu, p));
            let (a, b) = (column_mut(out.a.rb_mut(), p), column(out.b.rb(), 0));
            for ((a, (y, mu)), b) in a.iter_mut().zip(residuals).zip(b) {
                let residual = y - mu;
                *a = residual * b;
                out.sums[sum::SQUARES] += residual * *a;
            }
        }
    }

    fn describe(&self) -> Result<Description> {
        self.0.description(FIRST_ROWS)
    }
}

/// The second pass, at q = N(e, B⁻¹). Its sum is Σδ.
struct Second(Rows);

impl Pointwise for Second {
    fn plan(&self) -> Plan<'_> {
        Plan::by_rows(1)
    }

    fn rows(&self, block: Block<'_>, mut out: Slopes<'_>) {
        let rows = &self.0;
        for p in 0..block.mu.ncols() {
            for (i, y) in column(block.rows.y, p).iter().enumerate() {
                let (s, r) = (block.s[(i, p)], block.r[(i, p)]);
                let wide = rows.noise + rows.alpha * r;
                let gamma = (y - block.mu[(i, p)]) / wide;
                let delta = 0.5 * (gamma * gamma - (1.0 - s / wide) / wide);
                out.a[(i, p)] = gamma;
                out.b[(i, p)] = -0.5 / wide;
                out.c[(i, p)] = rows.alpha * delta - rows.penalty(r).1;
                out.sums[0] += delta;
            }
        }
    }

    fn describe(&self) -> Result<Description> {
        self.0.description(SECOND_ROWS)
    }
}

/// Kind of the description of the rows of the first pass.
pub(in crate::methods) const FIRST_ROWS: &str = "power rows without q";

/// The same of the second pass.
pub(in crate::methods) const SECOND_ROWS: &str = "power rows";

/// Returns the rows of the first pass of a description.
pub(in crate::methods) fn first(
    description: &Description,
    rows: Fitting,
) -> Result<Box<dyn Pointwise>> {
    Ok(Box::new(First(Rows::described(description, rows)?)))
}

/// Returns the rows of the second pass of a description.
pub(in crate::methods) fn second(
    description: &Description,
    rows: Fitting,
) -> Result<Box<dyn Pointwise>> {
    Ok(Box::new(Second(Rows::described(description, rows)?)))
}

impl PowerEp {
    fn rows(&self, model: &Model, prepared: &Prepared, data: &dyn Source) -> Result<Rows> {
        plain_rows(model, data)?;
        let noise = model.gaussian()?.variance.scalar();
        Ok(Rows { noise, alpha: self.alpha, rounding: prepared.rounding() })
    }
}

impl Method for PowerEp {
    fn name(&self) -> &'static str {
        self.name
    }

    fn is_sparse(&self) -> bool {
        true
    }

    fn is_bound(&self) -> bool {
        false
    }

    fn row_site(&self) -> RowSite {
        RowSite::Noise { alpha: self.alpha }
    }

    fn check(&self, model: &Model) -> Result<()> {
        model.gaussian().map(|_| ())
    }

    fn evaluate(
        &self,
        model: &Model,
        engine: &dyn Engine,
        data: &dyn Source,
    ) -> Result<Evaluation> {
        let prepared = Prepared::new(model, Tape::recording())?;
        let rows = self.rows(model, &prepared, data)?;
        let FromRows { sums, of, .. } = prepared.statistics(model, engine, data, &First(rows))?;
        let p = data.outputs() as f64;
        let core = core(of.grams[0].as_ref(), of.phi_a.as_ref(), 1.0)?;
        let value = -0.5
            * (p * sums[sum::ROWS] * (2.0 * std::f64::consts::PI).ln()
                + p * sums[sum::LOG_NOISE]
                + p * core.factor.log_det()
                + sums[sum::SQUARES]
                - core.explained)
            - p * sums[sum::PENALTY];
        let value = finite(value, "the approximate log evidence")?;
        let covariance = core.factor.inverse();
        let unexplained = sums[sum::UNEXPLAINED];
        let diagnostics = Diagnostics {
            jitter: prepared.basis.factor().jitter,
            unexplained,
            prior_variance: of.gram_c.as_ref().map(|gram| unexplained + trace(gram)),
            negative: sums[sum::NEGATIVE] as usize,
            ..Diagnostics::default()
        };
        let q = (core.mean.as_ref(), Spread::Shared(Some(covariance.as_ref())));
        let mut back = prepared.pass(model, (engine, data), q, &Second(rows), Want::Gradients)?;
        let delta = back.sums[0];
        let gram_c = back.of.gram_c.take().unwrap_or_else(Mat::new);
        let mut gradient = back.with_kuu(model, prepared, &core.mean, &covariance, &gram_c);
        model.parts_of(&mut gradient).likelihood[0] = delta - p * sums[sum::PENALTY_BY_NOISE];
        Ok(Evaluation { value, gradient, diagnostics })
    }

    fn posterior(
        &self,
        model: &Model,
        engine: &dyn Engine,
        data: &dyn Source,
    ) -> Result<Posterior> {
        let prepared = Prepared::new(model, Tape::off())?;
        let rows = self.rows(model, &prepared, data)?;
        let of = prepared.statistics(model, engine, data, &First(rows))?.of;
        let core = core(of.grams[0].as_ref(), of.phi_a.as_ref(), 1.0)?;
        let root = Cholesky::inverse_root(
            core.b.as_ref(),
            Jitter::Relative(0.0),
            "B = I + Φ diag(1/s̃) Φᵀ",
        )?;
        Ok(Posterior::new(model, prepared.z, prepared.basis.into_factor(), core.mean, Some(root)))
    }
}

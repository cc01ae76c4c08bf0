//! The collapsed family: q(u) at its optimum for Gaussian noise, in closed form.
//!
//! With Φ = L⁻¹Kuf, B = I + ΦΦᵀ/σ² = L_B L_Bᵀ, e = B⁻¹Φ(Y − m)/σ²:
//! F = −½{PN log 2πσ² + P log|B| + ‖Y − m‖²/σ² − ‖L_B⁻¹Φ(Y − m)/σ²‖²} − P ρ,
//! q(v) = N(e, B⁻¹) over the whitened inducing variables (Titsias 2009; ρ in [`crate::terms`]).
//! The gradient is the adjoint of the uncollapsed bound at this q (envelope): slopes
//! a = (y − m − φᵀe)/σ², b = −P/2σ², c = −P ∂ρ/∂r, and Φa = e there.

use super::{Diagnostics, Evaluation, Method};
use crate::data::Source;
use crate::engine::{
    Block, CholeskyBasis, Engine, Folded, Local, Plan, Prepared, Slope, Slopes, Whitened,
};
use crate::error::{Error, Result};
use crate::kernels::{Cotangents, Tape};
use crate::linalg::{Cholesky, Jitter, Mat, MatRef, column, column_mut, dot, product};
use crate::model::{Model, Posterior};
use crate::terms::{Pooling, Term};
use faer::reborrow::ReborrowMut;

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

/// Gaussian rows: a = (y − μ)/`variance`, constant b, and c from the term or constant.
struct GaussianRows<'a> {
    variance: f64,
    b: f64,
    c: RowSlopes<'a>,
    outputs: f64,
    /// rᵢ below minus this counts as negative.
    rounding: f64,
}

enum RowSlopes<'a> {
    /// One number.
    Constant(f64),
    /// −P ∂ρ/∂r of a term that charges row by row, at this noise.
    Term(&'a dyn Term, f64),
}

/// Positions among the sums over rows.
mod sum {
    pub const SQUARES: usize = 0;
    pub const UNEXPLAINED: usize = 1;
    pub const PENALTY: usize = 2;
    pub const PENALTY_BY_NOISE: usize = 3;
    pub const NEGATIVE: usize = 4;
    pub const ROWS: usize = 5;
    pub const COUNT: usize = 6;
}

impl Local for GaussianRows<'_> {
    fn plan(&self) -> Plan {
        let c = match self.c {
            RowSlopes::Constant(c) => Slope::Constant(c),
            RowSlopes::Term(..) => Slope::Rows,
        };
        Plan { variances: false, b: Slope::Constant(self.b), c, sums: sum::COUNT }
    }

    fn rows(&self, block: Block<'_>, mut out: Slopes<'_>) {
        let precision = 1.0 / self.variance;
        for p in 0..block.y.ncols() {
            let a = column_mut(out.a.rb_mut(), p);
            for ((a, y), mu) in a.iter_mut().zip(column(block.y, p)).zip(column(block.mu, p)) {
                *a = (y - mu) * precision;
                out.sums[sum::SQUARES] += *a * *a;
            }
        }
        out.sums[sum::ROWS] += block.y.nrows() as f64;
        for (i, r) in block.r.iter().enumerate() {
            out.sums[sum::UNEXPLAINED] += r;
            if *r < -self.rounding {
                out.sums[sum::NEGATIVE] += 1.0;
            }
            if let RowSlopes::Term(term, noise) = self.c {
                let penalty = term.penalty(*r, 1.0, noise);
                out.c[i] = -self.outputs * penalty.by_r;
                out.sums[sum::PENALTY] += penalty.value;
                out.sums[sum::PENALTY_BY_NOISE] += penalty.by_noise;
            }
        }
    }
}

/// Kuu and its factor at the model's inducing points.
struct Inducing {
    z: Mat<f64>,
    kuu: Mat<f64>,
    tape: Tape,
    basis: CholeskyBasis,
}

impl Inducing {
    fn new(model: &Model, tape: Tape) -> Result<Self> {
        let z = model.inducing_points()?;
        let m = z.nrows();
        let mut tape = tape;
        let mut kuu = Mat::zeros(m, m);
        model.kernel.evaluate(z.as_ref(), None, kuu.as_mut(), &mut tape);
        let basis = CholeskyBasis::new(kuu.as_ref(), model.jitter)?;
        Ok(Self { z, kuu, tape, basis })
    }

    /// What a variance that should be 0 may come out as: 1e-8 of the mean prior variance.
    fn rounding(&self) -> f64 {
        1e-8 * trace(&self.kuu) / self.kuu.nrows().max(1) as f64
    }

    fn prepared<'a>(&'a self, model: &'a Model) -> Prepared<'a> {
        Prepared {
            kernel: &*model.kernel,
            mean: &*model.mean,
            z: self.z.as_ref(),
            basis: &self.basis,
        }
    }
}

/// B and what it solves, at some noise variance.
struct Core {
    b: Mat<f64>,
    factor: Cholesky,
    /// e = B⁻¹ Φy/σ², M×P.
    mean: Mat<f64>,
    /// ‖L_B⁻¹ Φy/σ²‖².
    explained: f64,
}

/// B = I + ΦΦᵀ/σ² and e, from ΦΦᵀ and Φy.
fn core(gram: MatRef<f64>, phi_y: MatRef<f64>, noise: f64) -> Result<Core> {
    let m = gram.nrows();
    let b = Mat::from_fn(m, m, |i, j| gram[(i, j)] / noise + if i == j { 1.0 } else { 0.0 });
    let factor = Cholesky::new(b.as_ref(), Jitter::Relative(0.0), "B = I + ΦΦᵀ/σ²")?;
    let scaled = Mat::from_fn(m, phi_y.ncols(), |i, p| phi_y[(i, p)] / noise);
    let mean = factor.solve(scaled.as_ref());
    // ‖L_B⁻¹ r‖² = rᵀB⁻¹r = rᵀe
    let explained = dot(scaled.as_ref(), mean.as_ref());
    Ok(Core { b, factor, mean, explained })
}

/// The first pass: ΦΦᵀ, Φ(y − m), and what the term needs.
struct Pass {
    folded: Folded,
    rows: f64,
    outputs: f64,
    noise: f64,
    squares: f64,
    phi_y: Mat<f64>,
    penalty: f64,
    penalty_by_noise: f64,
    /// ∂ρ/∂r, where it is one number for all rows.
    penalty_by_r: Option<f64>,
}

fn first_pass(
    model: &Model,
    inducing: &Inducing,
    term: &dyn Term,
    engine: &dyn Engine,
    data: &dyn Source,
) -> Result<Pass> {
    let noise = model.likelihood.variance.scalar();
    let outputs = data.outputs() as f64;
    let c = match term.pooling() {
        Pooling::Total => RowSlopes::Constant(0.0),
        Pooling::Rows => RowSlopes::Term(term, noise),
    };
    // at μ = m(x): a is the residual itself with variance 1
    let rounding = inducing.rounding();
    let local = GaussianRows { variance: 1.0, b: 1.0, c, outputs, rounding };
    let mut folded = engine.fold(inducing.prepared(model), None, &local, data, 1.0)?;
    let rows = folded.sums[sum::ROWS];
    let (penalty, penalty_by_noise, penalty_by_r) = match term.pooling() {
        Pooling::Total => {
            let p = term.penalty(folded.sums[sum::UNEXPLAINED], rows, noise);
            (p.value, p.by_noise, Some(p.by_r))
        }
        Pooling::Rows => (folded.sums[sum::PENALTY], folded.sums[sum::PENALTY_BY_NOISE], None),
    };
    let phi_y = std::mem::replace(&mut folded.phi_a, Mat::new());
    let squares = folded.sums[sum::SQUARES];
    Ok(Pass {
        folded,
        rows,
        outputs,
        noise,
        squares,
        phi_y,
        penalty,
        penalty_by_noise,
        penalty_by_r,
    })
}

/// The gradient from the pass back, given q = N(mean, covariance) with Φa = mean there.
struct PullBack<'a> {
    model: &'a Model,
    engine: &'a dyn Engine,
    data: &'a dyn Source,
    mean: &'a Mat<f64>,
    /// S, of which 2bS is the weight of Φ in Φ̄.
    covariance: &'a Mat<f64>,
    local: GaussianRows<'a>,
    /// Φ diag(c) Φᵀ.
    gram_c: Mat<f64>,
}

impl PullBack<'_> {
    /// The gradient but for the noise, and Σ‖a‖².
    fn run(self, mut inducing: Inducing) -> Result<(crate::model::Gradient, f64)> {
        let Self { model, engine, data, mean, covariance, local, gram_c } = self;
        let outputs = local.outputs;
        let q = Whitened { mean: mean.as_ref(), covariance: covariance.as_ref() };
        let unfolded = engine.unfold(inducing.prepared(model), q, &local, data, 1.0)?;
        // Ψ = Φ̄Φᵀ = m(Φa)ᵀ + 2bS ΦΦᵀ − 2Φ diag(c) Φᵀ with Φa = m and 2bSΦΦᵀ = −P(I − S)
        let m = mean.nrows();
        let mut psi = Mat::from_fn(m, m, |i, j| {
            outputs * (covariance[(i, j)] - if i == j { 1.0 } else { 0.0 }) - 2.0 * gram_c[(i, j)]
        });
        crate::linalg::gemm(
            psi.as_mut(),
            crate::linalg::Accum::Add,
            mean.as_ref(),
            mean.transpose(),
            1.0,
            crate::linalg::par_for(m),
        );
        let mut kuu_bar = inducing.basis.kuu_bar(psi);
        let mut gradient = model.gradient_slots();
        gradient.kernel = unfolded.kernel;
        gradient.mean = unfolded.mean;
        let mut z_bar = unfolded.z;
        let mut sinks =
            Cotangents { params: &mut gradient.kernel, x: Some(z_bar.as_mut()), z: None };
        model.kernel.vjp(
            inducing.z.as_ref(),
            None,
            inducing.kuu.as_ref(),
            kuu_bar.as_mut(),
            &mut inducing.tape,
            &mut sinks,
        );
        gradient.set_inducing(z_bar.as_ref());
        Ok((gradient, unfolded.sums[sum::SQUARES]))
    }
}

fn scaled(a: &Mat<f64>, factor: f64) -> Mat<f64> {
    Mat::from_fn(a.nrows(), a.ncols(), |i, j| factor * a[(i, j)])
}

fn trace(a: &Mat<f64>) -> f64 {
    (0..a.nrows()).map(|i| a[(i, i)]).sum()
}

fn finite(value: f64, what: &str) -> Result<f64> {
    if value.is_finite() { Ok(value) } else { Err(Error::NonFinite { what: what.into(), value }) }
}

impl Method for Collapsed {
    fn name(&self) -> &'static str {
        self.term.name()
    }

    fn is_sparse(&self) -> bool {
        true
    }

    fn evaluate(
        &self,
        model: &Model,
        engine: &dyn Engine,
        data: &dyn Source,
    ) -> Result<Evaluation> {
        let inducing = Inducing::new(model, Tape::recording())?;
        let mut pass = first_pass(model, &inducing, self.term, engine, data)?;
        let (p, n, noise) = (pass.outputs, pass.rows, pass.noise);
        let core = core(pass.folded.gram.as_ref(), pass.phi_y.as_ref(), noise)?;
        let value = -0.5
            * (p * n * (2.0 * std::f64::consts::PI * noise).ln()
                + p * core.factor.log_det()
                + pass.squares / noise
                - core.explained)
            - p * pass.penalty;
        let value = finite(value, "the bound")?;
        let covariance = core.factor.inverse();
        let (c, gram_c) = match (pass.penalty_by_r, pass.folded.gram_c.take()) {
            (None, Some(gram_c)) => (RowSlopes::Term(self.term, noise), gram_c),
            (by_r, _) => {
                let c = -p * by_r.unwrap_or(0.0);
                (RowSlopes::Constant(c), scaled(&pass.folded.gram, c))
            }
        };
        let diagnostics = Diagnostics {
            jitter: inducing.basis.factor.jitter,
            unexplained: pass.folded.sums[sum::UNEXPLAINED],
            prior_variance: pass.folded.sums[sum::UNEXPLAINED] + trace(&pass.folded.gram),
            negative: pass.folded.sums[sum::NEGATIVE] as usize,
        };
        let rounding = inducing.rounding();
        let local = GaussianRows { variance: noise, b: -0.5 * p / noise, c, outputs: p, rounding };
        let pull = PullBack {
            model,
            engine,
            data,
            mean: &core.mean,
            covariance: &covariance,
            local,
            gram_c,
        };
        let (mut gradient, squares) = pull.run(inducing)?;
        // ∂F/∂σ² = ½‖a‖² − P(N − M + tr B⁻¹)/2σ² − P ∂ρ/∂σ²
        let m = covariance.nrows() as f64;
        gradient.noise = 0.5 * squares
            - 0.5 * p * (n - m + trace(&covariance)) / noise
            - p * pass.penalty_by_noise;
        Ok(Evaluation { value, gradient: gradient.concat(), diagnostics })
    }

    fn posterior(
        &self,
        model: &Model,
        engine: &dyn Engine,
        data: &dyn Source,
    ) -> Result<Posterior> {
        let inducing = Inducing::new(model, Tape::off())?;
        let pass = first_pass(model, &inducing, &crate::terms::Titsias2009, engine, data)?;
        let core = core(pass.folded.gram.as_ref(), pass.phi_y.as_ref(), pass.noise)?;
        let root = Cholesky::inverse_root(core.b.as_ref(), "B = I + ΦΦᵀ/σ²")?;
        Ok(Posterior::new(model, inducing.z, inducing.basis.factor, core.mean, Some(root)))
    }
}

/// Upper bound on the log evidence with its gradient (Titsias 2014; Burt, Rasmussen & van der Wilk
/// 2020, Lemma 3): −½{PN log 2π + P log|Q + σ²I| + tr (Y − m)ᵀ(Q + (σ² + t)I)⁻¹(Y − m)}, t = Σ rᵢ.
/// O(NM²).
///
/// With σ̃² = σ² + t and ẽ = B̃⁻¹Φ(y − m)/σ̃², a = (y − m − φᵀẽ)/σ̃²: the slope of the quadratic
/// form in σ̃² is g = ½‖a‖², which is c, and the log-determinant has the slopes of the lower bounds.
///
/// # Errors
/// As for [`Method::evaluate`].
pub fn upper_bound(model: &Model, engine: &dyn Engine, data: &dyn Source) -> Result<Evaluation> {
    let inducing = Inducing::new(model, Tape::recording())?;
    let pass = first_pass(model, &inducing, &crate::terms::Titsias2009, engine, data)?;
    let (p, n, noise) = (pass.outputs, pass.rows, pass.noise);
    let t = pass.folded.sums[sum::UNEXPLAINED];
    let wide = noise + t;
    let determinant = core(pass.folded.gram.as_ref(), pass.phi_y.as_ref(), noise)?;
    let quadratic = core(pass.folded.gram.as_ref(), pass.phi_y.as_ref(), wide)?;
    let value = -0.5
        * (p * n * (2.0 * std::f64::consts::PI * noise).ln()
            + p * determinant.factor.log_det()
            + pass.squares / wide
            - quadratic.explained);
    let value = finite(value, "the upper bound")?;
    // ‖y − m − Φᵀẽ‖² = ‖y − m‖² − 2ẽᵀΦ(y − m) + ẽᵀΦΦᵀẽ
    let e = &quadratic.mean;
    let gram_e = product(pass.folded.gram.as_ref(), e.as_ref());
    let squares = pass.squares - 2.0 * dot(e.as_ref(), pass.phi_y.as_ref())
        + dot(e.as_ref(), gram_e.as_ref());
    let c = 0.5 * squares / (wide * wide);
    let covariance = determinant.factor.inverse();
    let diagnostics = Diagnostics {
        jitter: inducing.basis.factor.jitter,
        unexplained: t,
        prior_variance: t + trace(&pass.folded.gram),
        negative: pass.folded.sums[sum::NEGATIVE] as usize,
    };
    let pull = PullBack {
        model,
        engine,
        data,
        mean: e,
        covariance: &covariance,
        local: GaussianRows {
            variance: wide,
            b: -0.5 * p / noise,
            c: RowSlopes::Constant(c),
            outputs: p,
            rounding: inducing.rounding(),
        },
        gram_c: scaled(&pass.folded.gram, c),
    };
    let (mut gradient, _) = pull.run(inducing)?;
    let m = covariance.nrows() as f64;
    gradient.noise = c - 0.5 * p * (n - m + trace(&covariance)) / noise;
    Ok(Evaluation { value, gradient: gradient.concat(), diagnostics })
}

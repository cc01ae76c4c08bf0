//! What the collapsed bounds and the upper bound share: the two passes over the rows and the M×M work
//! between them.

use crate::data::Source;
use crate::engine::{
    Block, CholeskyBasis, Description, Engine, Job, Passed, Plan, Pointwise, Process, ProcessSums,
    Slope, Slopes, Spread, Want,
};
use crate::error::Result;
use crate::kernels::Tape;
use crate::kernels::inducing::{AtPoints, Inducing};
use crate::linalg::{Accum, Cholesky, Jitter, Mat, MatRef, column, column_mut, dot, gemm, par_for};
use crate::methods::described::Fitting;
use crate::model::Model;
use crate::terms::{self, Pooling, Term};
use faer::reborrow::ReborrowMut;
use serde::{Deserialize, Serialize};

/// Gaussian rows: a = (y − μ)/`variance`, constant b, and c from the term or constant, all of one target.
pub(super) struct GaussianRows<'a> {
    pub(super) variance: f64,
    pub(super) b: f64,
    pub(super) c: RowSlopes<'a>,
    /// rᵢ below minus this counts as negative.
    pub(super) rounding: f64,
}

pub(super) enum RowSlopes<'a> {
    /// One number.
    Constant(f64),
    /// −∂ρ/∂r of a term that charges row by row, at this noise.
    Term(&'a dyn Term, f64),
}

/// Positions among the sums over rows.
pub(super) mod sum {
    pub const SQUARES: usize = 0;
    pub const UNEXPLAINED: usize = 1;
    pub const PENALTY: usize = 2;
    pub const PENALTY_BY_NOISE: usize = 3;
    pub const NEGATIVE: usize = 4;
    pub const ROWS: usize = 5;
    pub const COUNT: usize = 6;
}

impl Pointwise for GaussianRows<'_> {
    fn plan(&self) -> Plan<'_> {
        let c = match self.c {
            RowSlopes::Constant(c) => Slope::Constant(c),
            RowSlopes::Term(..) => Slope::Rows,
        };
        let b = Slope::Constant(self.b);
        Plan { variances: false, b, c: Some(c), ..Plan::by_rows(sum::COUNT) }
    }

    fn rows(&self, block: Block<'_>, mut out: Slopes<'_>) {
        let (precision, y) = (1.0 / self.variance, block.rows.y);
        for p in 0..y.ncols() {
            let a = column_mut(out.a.rb_mut(), p);
            for ((a, y), mu) in a.iter_mut().zip(column(y, p)).zip(column(block.mu, p)) {
                *a = (y - mu) * precision;
                out.sums[sum::SQUARES] += *a * *a;
            }
        }
        out.sums[sum::ROWS] += y.nrows() as f64;
        if block.r.ncols() == 0 {
            return;
        }
        // all targets have the same
        for (i, r) in column(block.r, 0).iter().enumerate() {
            out.sums[sum::UNEXPLAINED] += r;
            if *r < -self.rounding {
                out.sums[sum::NEGATIVE] += 1.0;
            }
            if let RowSlopes::Term(term, noise) = self.c {
                let penalty = term.penalty(*r, 1.0, noise);
                (0..y.ncols()).for_each(|p| out.c[(i, p)] = -penalty.by_r);
                out.sums[sum::PENALTY] += penalty.value;
                out.sums[sum::PENALTY_BY_NOISE] += penalty.by_noise;
            }
        }
    }

    fn describe(&self) -> Result<Description> {
        let c = match self.c {
            RowSlopes::Constant(c) => SentSlopes::Constant(c),
            RowSlopes::Term(term, noise) => SentSlopes::Term(term.name().into(), noise),
        };
        Description::new(GAUSSIAN_ROWS, &([self.variance, self.b, self.rounding], c))
    }
}

/// Kind of the description of [`GaussianRows`].
pub(in crate::methods) const GAUSSIAN_ROWS: &str = "gaussian rows";

/// [`RowSlopes`] as they are sent.
#[derive(Serialize, Deserialize)]
enum SentSlopes {
    Constant(f64),
    /// By the name of the term.
    Term(String, f64),
}

/// Returns the rows of a description.
pub(in crate::methods) fn described(
    description: &Description,
    rows: Fitting,
) -> Result<Box<dyn Pointwise>> {
    Fitting::check(rows.latents == rows.outputs)?;
    let ([variance, b, rounding], c): ([f64; 3], SentSlopes) = description.state()?;
    let c = match c {
        SentSlopes::Constant(c) => RowSlopes::Constant(c),
        SentSlopes::Term(name, noise) => RowSlopes::Term(terms::find(&name)?, noise),
    };
    Ok(Box::new(GaussianRows { variance, b, c, rounding }))
}

/// Returns the values of the latent functions at points Z.
fn at<'a>(model: &'a Model, z: &'a Mat<f64>) -> AtPoints<'a> {
    AtPoints { kernel: model.kernel(), z: z.as_ref() }
}

/// Kuu and its factor at the model's inducing points.
pub(super) struct Prepared {
    pub(super) z: Mat<f64>,
    pub(super) kuu: Mat<f64>,
    pub(super) tape: Tape,
    pub(super) basis: CholeskyBasis,
}

impl Prepared {
    pub(super) fn new(model: &Model, tape: Tape) -> Result<Self> {
        let z = model.inducing_points()?;
        let m = z.nrows();
        let mut tape = tape;
        let mut kuu = Mat::zeros(m, m);
        at(model, &z).kuu(kuu.as_mut(), &mut tape);
        let basis = CholeskyBasis::new(kuu.as_ref(), model.jitter)?;
        Ok(Self { z, kuu, tape, basis })
    }

    /// Returns what a variance that should be 0 may come out as: 1e-8 of the mean prior variance.
    pub(super) fn rounding(&self) -> f64 {
        1e-8 * trace(&self.kuu) / self.kuu.nrows().max(1) as f64
    }

    /// Does a job on all rows, at a q of this mean, M×P, and covariance.
    pub(super) fn pass(
        &self,
        model: &Model,
        (engine, data): (&dyn Engine, &dyn Source),
        (mean, spread): (MatRef<'_, f64>, Spread<'_>),
        pointwise: &dyn Pointwise,
        want: Want,
    ) -> Result<FromRows> {
        let (inducing, basis) = (&at(model, &self.z), &self.basis);
        let processes = &[Process { inducing, basis, mean, spread }];
        let mut passed = Passed::default();
        let mean = &*model.mean;
        engine.pass(&Job { processes, mean, pointwise, scale: 1.0, want }, data, &mut passed)?;
        let Passed { sums, mean, mut processes } = passed;
        Ok(FromRows { sums, mean, of: processes.swap_remove(0) })
    }

    /// Returns the statistics of all rows, without a q.
    pub(super) fn statistics(
        &self,
        model: &Model,
        engine: &dyn Engine,
        data: &dyn Source,
        pointwise: &dyn Pointwise,
    ) -> Result<FromRows> {
        let nothing = Mat::zeros(self.z.nrows(), data.outputs());
        let q = (nothing.as_ref(), Spread::Shared(None));
        self.pass(model, (engine, data), q, pointwise, Want::AllStatistics)
    }
}

/// B and what it solves, at some noise variance.
pub(super) struct Core {
    pub(super) b: Mat<f64>,
    pub(super) factor: Cholesky,
    /// e = B⁻¹ Φy/σ², M×P.
    pub(super) mean: Mat<f64>,
    /// ‖L_B⁻¹ Φy/σ²‖².
    pub(super) explained: f64,
}

/// Returns B = I + ΦΦᵀ/σ² and e, from ΦΦᵀ and Φy.
pub(super) fn core(gram: MatRef<f64>, phi_y: MatRef<f64>, noise: f64) -> Result<Core> {
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
pub(super) struct Pass {
    pub(super) sums: Vec<f64>,
    /// ΦΦᵀ.
    pub(super) gram: Mat<f64>,
    /// −Φ diag(P ∂ρ/∂r) Φᵀ, where that differs by row.
    pub(super) gram_c: Option<Mat<f64>>,
    pub(super) rows: f64,
    pub(super) outputs: f64,
    pub(super) noise: f64,
    pub(super) squares: f64,
    pub(super) phi_y: Mat<f64>,
    pub(super) penalty: f64,
    pub(super) penalty_by_noise: f64,
    /// ∂ρ/∂r, where it is one number for all rows.
    pub(super) penalty_by_r: Option<f64>,
}

pub(super) fn first_pass(
    model: &Model,
    prepared: &Prepared,
    term: &dyn Term,
    engine: &dyn Engine,
    data: &dyn Source,
) -> Result<Pass> {
    let noise = model.gaussian()?.variance.scalar();
    crate::methods::plain_rows(model, data)?;
    let outputs = data.outputs() as f64;
    let c = match term.pooling() {
        Pooling::Total => RowSlopes::Constant(0.0),
        Pooling::Rows => RowSlopes::Term(term, noise),
    };
    // at μ = m(x): a is the residual itself with variance 1
    let local = GaussianRows { variance: 1.0, b: 1.0, c, rounding: prepared.rounding() };
    let FromRows { sums, of, .. } = prepared.statistics(model, engine, data, &local)?;
    let ProcessSums { phi_a: phi_y, mut grams, gram_c, .. } = of;
    let rows = sums[sum::ROWS];
    let (penalty, penalty_by_noise, penalty_by_r) = match term.pooling() {
        Pooling::Total => {
            let p = term.penalty(sums[sum::UNEXPLAINED], rows, noise);
            (p.value, p.by_noise, Some(p.by_r))
        }
        Pooling::Rows => (sums[sum::PENALTY], sums[sum::PENALTY_BY_NOISE], None),
    };
    let (squares, gram) = (sums[sum::SQUARES], grams.swap_remove(0));
    Ok(Pass {
        sums,
        gram,
        gram_c,
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
pub(super) struct PullBack<'a> {
    pub(super) model: &'a Model,
    pub(super) engine: &'a dyn Engine,
    pub(super) data: &'a dyn Source,
    pub(super) mean: &'a Mat<f64>,
    /// S, of which 2bS is the weight of Φ in Φ̄.
    pub(super) covariance: &'a Mat<f64>,
    pub(super) local: GaussianRows<'a>,
    /// Φ diag(c) Φᵀ.
    pub(super) gram_c: Mat<f64>,
}

impl PullBack<'_> {
    /// Returns the gradient but for the noise, and Σ‖a‖².
    pub(super) fn run(self, prepared: Prepared) -> Result<(Vec<f64>, f64)> {
        let Self { model, engine, data, mean, covariance, local, gram_c } = self;
        let q = (mean.as_ref(), Spread::Shared(Some(covariance.as_ref())));
        let rows = prepared.pass(model, (engine, data), q, &local, Want::GradientsAlone)?;
        let squares = rows.sums[sum::SQUARES];
        Ok((rows.with_kuu(model, prepared, mean, covariance, &gram_c), squares))
    }
}

/// What the rows contribute.
pub(super) struct FromRows {
    pub(super) sums: Vec<f64>,
    /// Gradient of the mean function.
    pub(super) mean: Vec<f64>,
    /// Statistics, and gradients without the part through Kuu.
    pub(super) of: ProcessSums,
}

impl FromRows {
    /// Returns the gradient but for the likelihood, of P target columns at q = N(m, S), its
    /// optimum: Φa = m and 2SΦ diag(b) Φᵀ = −P(I − S) there, so that Ψ = Φ̄Φᵀ = m(Φa)ᵀ + 2SΦ
    /// diag(b) Φᵀ − 2Φ diag(c) Φᵀ needs only the last term (`gram_c`).
    pub(super) fn with_kuu(
        self,
        model: &Model,
        mut prepared: Prepared,
        mean: &Mat<f64>,
        covariance: &Mat<f64>,
        gram_c: &Mat<f64>,
    ) -> Vec<f64> {
        let (m, outputs) = (mean.nrows(), mean.ncols() as f64);
        let mut psi = Mat::from_fn(m, m, |i, j| {
            outputs * (covariance[(i, j)] - if i == j { 1.0 } else { 0.0 }) - 2.0 * gram_c[(i, j)]
        });
        gemm(psi.as_mut(), Accum::Add, mean.as_ref(), mean.transpose(), 1.0, par_for(m));
        let mut kuu_bar = prepared.basis.kuu_bar(psi);
        let mut gradient = vec![0.0; model.num_params()];
        let parts = model.parts_of(&mut gradient);
        parts.mean.copy_from_slice(&self.mean);
        let mut own = self.of.inducing;
        let (k, bar) = (prepared.kuu.as_ref(), kuu_bar.as_mut());
        at(model, &prepared.z).pull_kuu(k, bar, &mut prepared.tape, &mut own);
        let (by_kernel, by_points) = own.split_at(parts.kernel.len());
        parts.kernel.copy_from_slice(by_kernel);
        parts.inducing.copy_from_slice(by_points);
        gradient
    }
}

pub(super) fn scaled(a: &Mat<f64>, factor: f64) -> Mat<f64> {
    Mat::from_fn(a.nrows(), a.ncols(), |i, j| factor * a[(i, j)])
}

pub(super) fn trace(a: &Mat<f64>) -> f64 {
    (0..a.nrows()).map(|i| a[(i, i)]).sum()
}

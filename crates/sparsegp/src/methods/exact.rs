//! Exact Gaussian-process regression (Rasmussen & Williams 2006, Alg. 2.1; gradient Eq. 5.9).
//!
//! With G = K + σ²I and α = G⁻¹(Y − m(X)): F = −½{PN log 2π + P log|G| + tr (Y − m)ᵀα},
//! K̄ = ½(ααᵀ − P G⁻¹), ∂F/∂σ² = tr K̄, ∂F/∂m(xᵢ) = αᵢ.
//!
//! A row of weight w and known noise variance e has the term N(y; f, s)ʷ, s = σ² + e, which is N(y; f, s/w)
//! times (2πs)^{(1−w)/2} w^{−½}: the diagonal of G gets s/w instead of σ², F gets the logarithms of the
//! factors. A row of weight 0 does not count.
//!
//! Rounding changes F by some φ = ε tr(DG⁻¹), D = diag kᵢᵢ ([`super::precision`]). What a training climbs is F − b(φ), and
//! ∂b/∂K = b′ε{diag G⁻¹ − G⁻¹DG⁻¹}, of which ∂b/∂G is the second part.

use super::{Diagnostics, Evaluation, Method, RowSite, precision};
use crate::data::Source;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::kernels::{Cotangents, Tape};
use crate::linalg::{
    Accum, Cholesky, Jitter, Mat, dot, gemm, par_for, scale_rows, sized, solve_lower,
};
use crate::model::{Model, Posterior, RowNoise, weighty};

/// Exact inference.
#[derive(Debug)]
pub struct Exact;

/// Rows above which exact inference is refused: G by itself would take more than 8 GiB.
pub const MOST_ROWS: usize = 32_768;

/// Rows up to which N×N matrices are kept from evaluation to evaluation: beyond, page faults are little beside N³ operations,
/// and the matrices much.
const KEPT_ROWS: usize = 2048;

/// The N×N matrices of an evaluation.
struct Memory {
    k: Mat<f64>,
    tape: Tape,
    factor: Cholesky,
    root: Mat<f64>,
    k_bar: Mat<f64>,
}

impl Default for Memory {
    fn default() -> Self {
        let factor = Cholesky::of_factor(Mat::new());
        Self { k: Mat::new(), tape: Tape::off(), factor, root: Mat::new(), k_bar: Mat::new() }
    }
}

/// The matrix that is factorised.
const MATRIX: &str = "K + σ²I";

struct Factored {
    x: Mat<f64>,
    /// k(xᵢ, xᵢ).
    prior: Vec<f64>,
    noise: RowNoise,
    residual: Mat<f64>,
    memory: Memory,
}

fn factor(
    model: &Model,
    engine: &dyn Engine,
    data: &dyn Source,
    recording: bool,
) -> Result<Factored> {
    if data.rows() > MOST_ROWS {
        return Err(Error::Invalid(format!(
            "exact inference with {} rows needs {:.0} GiB for one matrix; choose a sparse method \
             such as titsias2025",
            data.rows(),
            (data.rows() as f64).powi(2) * 8.0 / (1u64 << 30) as f64
        )));
    }
    let variance = model.gaussian()?.variance.scalar();
    let rows = weighty(super::collect(data)?);
    let noise = RowNoise::new(variance, &rows);
    let (x, y) = (rows.x, rows.y);
    let n = x.nrows();
    let mut memory: Memory = engine.shelf().take();
    if memory.k.nrows() != n {
        memory = Memory::default();
    }
    let Memory { k, tape, factor, .. } = &mut memory;
    tape.restart(recording);
    sized(k, n, n);
    model.kernel().evaluate(x.as_ref(), None, k.as_mut(), tape);
    let prior: Vec<f64> = (0..n).map(|i| k[(i, i)]).collect();
    for (i, variance) in prior.iter().enumerate() {
        k[(i, i)] = variance + noise.of(i);
    }
    // no jitter: with one it would be the model of another noise
    let go_on = || engine.go_on();
    factor.renew_watched(k.as_ref(), Jitter::Absolute(0.0), MATRIX, &go_on)?;
    prior.iter().enumerate().for_each(|(i, variance)| k[(i, i)] = *variance);
    let mut residual = Mat::zeros(n, y.ncols());
    model.mean.evaluate(x.as_ref(), residual.as_mut());
    let residual = y - residual;
    Ok(Factored { x, prior, noise, residual, memory })
}

/// Refuses a factor of which nothing is known: at φ ≥ 1 it is luck that there is one.
fn known(rounding: f64, size: usize) -> Result<()> {
    if rounding < 1.0 { Ok(()) } else { Err(Error::Imprecise { matrix: MATRIX, size, rounding }) }
}

/// Returns F, from what is left of the targets and G⁻¹ of that.
fn log_density(factor: &Cholesky, noise: &RowNoise, residual: &Mat<f64>, quadratic: f64) -> f64 {
    let (n, p) = (residual.nrows() as f64, residual.ncols() as f64);
    let constant = n * (2.0 * std::f64::consts::PI).ln() + factor.log_det();
    p * noise.factors().0 - 0.5 * (p * constant + quadratic)
}

/// Returns log p(y) without its gradient, for a third of the operations.
///
/// # Errors
/// As for [`Method::evaluate`].
pub(crate) fn log_evidence(model: &Model, engine: &dyn Engine, data: &dyn Source) -> Result<f64> {
    let Factored { x, prior, noise, residual, memory } = factor(model, engine, data, false)?;
    known(precision::estimate(&memory.factor, &prior), x.nrows())?;
    let mut whitened = residual.clone();
    solve_lower(memory.factor.l.as_ref(), whitened.as_mut(), par_for(x.nrows()));
    let quadratic = dot(whitened.as_ref(), whitened.as_ref());
    let value = log_density(&memory.factor, &noise, &residual, quadratic);
    if x.nrows() <= KEPT_ROWS {
        engine.shelf().put(memory);
    }
    Ok(value)
}

/// Returns F with its gradient, or F − b with its gradient, and b.
fn run(
    model: &Model,
    engine: &dyn Engine,
    data: &dyn Source,
    held_back: bool,
) -> Result<(Evaluation, f64)> {
    let Factored { x, prior, noise, residual, mut memory } = factor(model, engine, data, true)?;
    let Memory { k, tape, factor, root, k_bar } = &mut memory;
    let (n, p) = (x.nrows(), residual.ncols());
    let alpha = factor.solve(residual.as_ref());
    let quadratic = dot(residual.as_ref(), alpha.as_ref());
    let value = log_density(factor, &noise, &residual, quadratic);
    factor.inverse_watched(root, k_bar, &|| engine.go_on())?;
    let inverse: Vec<f64> = (0..n).map(|i| k_bar[(i, i)]).collect();
    let rounding = precision::rounding(&prior, inverse.iter().copied());
    known(rounding, n)?;
    let (barrier, slope) = match held_back {
        true => precision::barrier(rounding, MATRIX, n)?,
        false => (0.0, 0.0),
    };
    let slope = slope * f64::EPSILON;
    if slope > 0.0 {
        // D^½G⁻¹
        sized(root, n, n);
        let sizes: Vec<f64> = prior.iter().map(|k| k.sqrt()).collect();
        scale_rows(root.as_mut(), k_bar.as_ref(), &sizes);
    }
    for j in 0..n {
        k_bar.col_as_slice_mut(j).iter_mut().for_each(|v| *v *= -0.5 * p as f64);
    }
    let par = par_for(n);
    gemm(k_bar.as_mut(), Accum::Add, alpha.as_ref(), alpha.transpose(), 0.5, par);
    if slope > 0.0 {
        gemm(k_bar.as_mut(), Accum::Add, root.transpose(), root.as_ref(), slope, par);
    }
    let noise_bar = noise.pull((0..n).map(|i| k_bar[(i, i)])) + p as f64 * noise.factors().1;
    if slope > 0.0 {
        inverse.iter().enumerate().for_each(|(i, g)| k_bar[(i, i)] -= slope * g);
    }
    let mut gradient = vec![0.0; model.num_params()];
    let parts = model.parts_of(&mut gradient);
    let mut sinks = Cotangents { params: parts.kernel, x: None, z: None };
    model.kernel().vjp(x.as_ref(), None, k.as_ref(), k_bar.as_mut(), tape, &mut sinks);
    model.mean.vjp(x.as_ref(), alpha.as_ref(), parts.mean);
    parts.likelihood[0] = noise_bar;
    if n <= KEPT_ROWS {
        engine.shelf().put(memory);
    }
    let value = value - barrier;
    Ok((Evaluation { value, gradient, diagnostics: Diagnostics::default() }, barrier))
}

impl Method for Exact {
    fn name(&self) -> &'static str {
        "exact"
    }

    fn is_sparse(&self) -> bool {
        false
    }

    fn divides_by_noise(&self) -> bool {
        false
    }

    fn row_site(&self) -> RowSite {
        RowSite::Noise { alpha: 0.0 }
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
        run(model, engine, data, false).map(|(evaluation, _)| evaluation)
    }

    fn climb(
        &self,
        model: &Model,
        engine: &dyn Engine,
        data: &dyn Source,
    ) -> Result<(Evaluation, f64)> {
        run(model, engine, data, true)
    }

    fn posterior(
        &self,
        model: &Model,
        engine: &dyn Engine,
        data: &dyn Source,
    ) -> Result<Posterior> {
        let Factored { x, prior, noise, mut residual, memory: Memory { factor, .. } } =
            factor(model, engine, data, false)?;
        known(precision::estimate(&factor, &prior), x.nrows())?;
        let par = par_for(x.nrows());
        solve_lower(factor.l.as_ref(), residual.as_mut(), par);
        Ok(Posterior::new(model, x, factor, residual, None).with_row_noise(noise.of_rows()))
    }
}

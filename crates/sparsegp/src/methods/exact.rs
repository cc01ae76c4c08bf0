//! Exact Gaussian-process regression (Rasmussen & Williams 2006, Alg. 2.1; gradient Eq. 5.9).
//!
//! With G = K + σ²I and α = G⁻¹(Y − m(X)): F = −½{PN log 2π + P log|G| + tr (Y − m)ᵀα},
//! K̄ = ½(ααᵀ − P G⁻¹), ∂F/∂σ² = tr K̄, ∂F/∂m(xᵢ) = αᵢ.

use super::{Diagnostics, Evaluation, Method, collect};
use crate::data::Source;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::kernels::{Cotangents, Tape};
use crate::linalg::{Accum, Cholesky, Jitter, Mat, dot, gemm, par_for, solve_lower};
use crate::model::{Model, Posterior};

/// Exact inference.
#[derive(Debug)]
pub struct Exact;

/// Rows above which exact inference is refused: G alone would take more than 8 GiB.
pub const MOST_ROWS: usize = 32_768;

struct Factored {
    x: Mat<f64>,
    residual: Mat<f64>,
    k: Mat<f64>,
    tape: Tape,
    factor: Cholesky,
}

fn factor(model: &Model, data: &dyn Source, tape: Tape) -> Result<Factored> {
    if data.rows() > MOST_ROWS {
        return Err(Error::Invalid(format!(
            "exact inference with {} rows needs {:.0} GiB for one matrix; choose a sparse method \
             such as titsias2025",
            data.rows(),
            (data.rows() as f64).powi(2) * 8.0 / (1u64 << 30) as f64
        )));
    }
    let noise = model.gaussian()?.variance.scalar();
    super::plain_rows(model, data)?;
    let (x, y) = collect(data)?;
    let n = x.nrows();
    let mut tape = tape;
    let mut k = Mat::zeros(n, n);
    model.kernel().evaluate(x.as_ref(), None, k.as_mut(), &mut tape);
    let mut g = k.clone();
    for i in 0..n {
        g[(i, i)] += noise;
    }
    // K + σ²I rarely needs help: the ladder starts at nothing
    let factor = Cholesky::new(g.as_ref(), Jitter::Relative(0.0), "K + σ²I")?;
    let mut residual = Mat::zeros(n, y.ncols());
    model.mean.evaluate(x.as_ref(), residual.as_mut());
    let residual = y - residual;
    Ok(Factored { x, residual, k, tape, factor })
}

impl Method for Exact {
    fn name(&self) -> &'static str {
        "exact"
    }

    fn is_sparse(&self) -> bool {
        false
    }

    fn check(&self, model: &Model) -> Result<()> {
        model.gaussian().map(|_| ())
    }

    fn evaluate(&self, model: &Model, _: &dyn Engine, data: &dyn Source) -> Result<Evaluation> {
        let Factored { x, residual, k, mut tape, factor } = factor(model, data, Tape::recording())?;
        let (n, p) = (x.nrows(), residual.ncols());
        let alpha = factor.solve(residual.as_ref());
        let value = -0.5
            * (p as f64 * (n as f64 * (2.0 * std::f64::consts::PI).ln() + factor.log_det())
                + dot(residual.as_ref(), alpha.as_ref()));
        let mut k_bar = factor.inverse();
        for j in 0..n {
            k_bar.col_as_slice_mut(j).iter_mut().for_each(|v| *v *= -0.5 * p as f64);
        }
        let par = par_for(n);
        gemm(k_bar.as_mut(), Accum::Add, alpha.as_ref(), alpha.transpose(), 0.5, par);
        factor.pull_jitter(&mut k_bar);
        let noise: f64 = (0..n).map(|i| k_bar[(i, i)]).sum();
        let mut gradient = vec![0.0; model.num_params()];
        let parts = model.parts_of(&mut gradient);
        let mut sinks = Cotangents { params: parts.kernel, x: None, z: None };
        model.kernel().vjp(x.as_ref(), None, k.as_ref(), k_bar.as_mut(), &mut tape, &mut sinks);
        model.mean.vjp(x.as_ref(), alpha.as_ref(), parts.mean);
        parts.likelihood[0] = noise;
        let diagnostics = Diagnostics { jitter: factor.jitter, ..Diagnostics::default() };
        Ok(Evaluation { value, gradient, diagnostics })
    }

    fn posterior(&self, model: &Model, _: &dyn Engine, data: &dyn Source) -> Result<Posterior> {
        let Factored { x, mut residual, factor, .. } = factor(model, data, Tape::off())?;
        let par = par_for(x.nrows());
        solve_lower(factor.l.as_ref(), residual.as_mut(), par);
        Ok(Posterior::new(model, x, factor, residual, None))
    }
}

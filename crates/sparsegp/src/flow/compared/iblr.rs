//! The improved Bayesian learning rule (Lin, Schmidt & Khan 2020): natural gradients that keep the precision P
//! positive definite.
//!
//! ```text
//! μ ← μ − β P⁻¹ḡ      P ← ½[P + P̃ P⁻¹ P̃],   P̃ = (1 − β)P + βĤ
//! ```
//! at positions x = μ + L_P⁻ᵀε, P = L_P L_Pᵀ. Ĥ is the mean Hessian or, from gradients only,
//! sym(E[P(x − μ)gᵀ]) = sym(L_P EGᵀ)/S.

use crate::error::{Error, Result};
use crate::flow::particles::{normals, shifted};
use crate::flow::run::{Progress, Solver};
use crate::flow::target::{
    Evaluation, Target, check_dim, check_finite, check_finite_matrix, check_symmetric,
};
use crate::linalg::{
    Accum, Cholesky, Jitter, Mat, MatRef, column, gemm, mirror_lower, par_for, product,
    solve_lower, solve_lower_transpose, symmetrise,
};
use crate::rng::stream;
use rand::Rng;

/// Where the curvature Ĥ comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Curvature {
    /// Second derivatives of the target.
    Hessian,
    /// Gradients, by Stein's lemma.
    #[default]
    Reparameterised,
}

/// A precision.
#[derive(Clone, Debug, PartialEq)]
pub enum Precision {
    /// P, D×D.
    Whole(Mat<f64>),
    /// p, D numbers above 0.
    Diagonal(Vec<f64>),
}

/// How to descend.
#[derive(Clone, Debug, PartialEq)]
pub struct IblrOptions {
    /// β, above 0 and at most 1.
    pub rate: f64,
    /// Where the curvature comes from.
    pub curvature: Curvature,
    /// S, positions of every step.
    pub draws: usize,
    /// Seed of the draws.
    pub seed: u64,
}

impl Default for IblrOptions {
    fn default() -> Self {
        Self { rate: 0.05, curvature: Curvature::Reparameterised, draws: 10, seed: 0 }
    }
}

/// q = N(μ, P⁻¹) that descends.
#[derive(Clone, Debug)]
pub struct Iblr {
    mean: Vec<f64>,
    precision: Precision,
    options: IblrOptions,
}

impl Iblr {
    /// Starts from μ (D numbers) and a precision.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::NonFinite`], [`Error::NotPositiveDefinite`] and [`Error::Invalid`] for a start or
    /// options that do not fit.
    pub fn new(mean: Vec<f64>, precision: Precision, options: IblrOptions) -> Result<Self> {
        check_finite("the mean of a Gaussian", &mean)?;
        if !(options.rate > 0.0 && options.rate <= 1.0) || options.draws == 0 {
            return Err(Error::Invalid(format!(
                "the learning rule has a rate above 0 and at most 1, and one draw or more: not {options:?}"
            )));
        }
        match &precision {
            Precision::Whole(p) => {
                check_dim("rows of a precision", p.nrows(), mean.len())?;
                check_dim("columns of a precision", p.ncols(), mean.len())?;
                check_symmetric("a precision", p.as_ref())?;
                factor(p)?;
            }
            Precision::Diagonal(p) => {
                check_dim("precisions", p.len(), mean.len())?;
                check_finite("a precision", p)?;
                if let Some(least) = p.iter().find(|p| **p <= 0.0) {
                    return Err(Error::Invalid(format!("precisions are above 0, not {least}")));
                }
            }
        }
        Ok(Self { mean, precision, options })
    }

    /// Returns μ, D numbers.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// Returns the precision.
    pub fn precision(&self) -> &Precision {
        &self.precision
    }

    /// Returns the covariance P⁻¹, D×D: for small D only.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`] if the precision has become singular by rounding.
    pub fn covariance(&self) -> Result<Mat<f64>> {
        match &self.precision {
            Precision::Whole(p) => Ok(factor(p)?.inverse()),
            Precision::Diagonal(p) => {
                Ok(Mat::from_fn(p.len(), p.len(), |i, j| if i == j { p[i].recip() } else { 0.0 }))
            }
        }
    }

    /// Draws S positions of q, D×S.
    ///
    /// # Errors
    /// As for [`Iblr::covariance`].
    pub fn draw(&self, count: usize, rng: &mut impl Rng) -> Result<Mat<f64>> {
        let e = normals(self.mean.len(), count, rng);
        Ok(self.positions(e.as_ref())?.0)
    }

    /// Returns positions for E (D×S), with the factor of a whole precision.
    fn positions(&self, e: MatRef<'_, f64>) -> Result<(Mat<f64>, Option<Cholesky>)> {
        let (mut x, own) = (
            e.to_owned(),
            match &self.precision {
                Precision::Whole(p) => Some(factor(p)?),
                Precision::Diagonal(_) => None,
            },
        );
        match (&own, &self.precision) {
            (Some(own), _) => {
                let par = par_for(x.nrows());
                solve_lower_transpose(own.l.as_ref(), x.as_mut(), par);
            }
            (None, Precision::Diagonal(p)) => {
                x = Mat::from_fn(x.nrows(), x.ncols(), |i, s| x[(i, s)] / p[i].sqrt());
            }
            (None, Precision::Whole(_)) => {}
        }
        Ok((shifted(x, &self.mean), own))
    }

    /// Moves with given draws E (D×S).
    ///
    /// # Errors
    /// [`Error::Shape`] for draws of another dimension, [`Error::Invalid`] for Hessians that the target does not
    /// know; as for [`Evaluation::of`].
    pub fn step_with(&mut self, target: &mut dyn Target, e: MatRef<'_, f64>) -> Result<Progress> {
        check_dim("rows of draws", e.nrows(), self.mean.len())?;
        let (x, own) = self.positions(e)?;
        let evaluation = Evaluation::of(target, x.as_ref())?;
        let gradient = evaluation.mean_gradient();
        let (beta, scale) = (self.options.rate, 1.0 / e.ncols() as f64);
        let hessian = match self.options.curvature {
            Curvature::Hessian => Some(mean_hessian(target, &x)?),
            Curvature::Reparameterised => None,
        };
        let mut square: f64 = gradient.iter().map(|g| g * g).sum();
        let log = match (&mut self.precision, own) {
            (Precision::Whole(p), Some(own)) => {
                let h = hessian.unwrap_or_else(|| {
                    let right = product(e, evaluation.gradient.transpose());
                    let mut h = product(own.l.as_ref(), right.as_ref()) * faer::Scale(scale);
                    symmetrise(h.as_mut());
                    h
                });
                let g = MatRef::from_column_major_slice(&gradient, gradient.len(), 1);
                let by = own.solve(g);
                self.mean
                    .iter_mut()
                    .zip(column(by.as_ref(), 0))
                    .for_each(|(m, by)| *m -= beta * by);
                square += (&*p - &h).squared_norm_l2();
                // ½[P + (L⁻¹P̃)ᵀ(L⁻¹P̃)], symmetric by construction
                let mut half = &*p * faer::Scale(1.0 - beta) + h * faer::Scale(beta);
                let par = par_for(half.nrows());
                solve_lower(own.l.as_ref(), half.as_mut(), par);
                let mut next = p.clone() * faer::Scale(0.5);
                gemm(next.as_mut(), Accum::Add, half.transpose(), half.as_ref(), 0.5, par);
                mirror_lower(next.as_mut());
                *p = next;
                -own.log_det()
            }
            (Precision::Diagonal(p), _) => {
                let log = -p.iter().map(|p| p.ln()).sum::<f64>();
                for (i, p) in p.iter_mut().enumerate() {
                    let h = match &hessian {
                        Some(h) => h[(i, i)],
                        None => {
                            let pairs =
                                (0..e.ncols()).map(|s| e[(i, s)] * evaluation.gradient[(i, s)]);
                            scale * p.sqrt() * pairs.sum::<f64>()
                        }
                    };
                    self.mean[i] -= beta * gradient[i] / *p;
                    let off = *p - h;
                    square += off * off;
                    *p = (1.0 - beta) * *p + beta * h + 0.5 * beta * beta * off * off / *p;
                }
                log
            }
            (Precision::Whole(_), None) => 0.0,
        };
        Ok(Progress {
            free_energy: Some(evaluation.mean_phi() - 0.5 * log),
            stationarity: square,
            scale: 1.0,
            stalled: false,
        })
    }
}

fn factor(p: &Mat<f64>) -> Result<Cholesky> {
    Cholesky::new(p.as_ref(), Jitter::Absolute(0.0), "P")
}

/// Returns the mean of ∇²φ at positions, D×D.
fn mean_hessian(target: &mut dyn Target, x: &Mat<f64>) -> Result<Mat<f64>> {
    let (d, count) = (x.nrows(), x.ncols());
    let identity = Mat::<f64>::identity(d, d);
    let (mut sum, mut own) = (Mat::zeros(d, d), Mat::zeros(d, d));
    for s in 0..count {
        target.hessian_times(column(x.as_ref(), s), identity.as_ref(), own.as_mut())?;
        sum += &own;
    }
    check_finite_matrix("a second derivative of φ", sum.as_ref())?;
    symmetrise(sum.as_mut());
    Ok(sum * faer::Scale(1.0 / count as f64))
}

impl Solver for Iblr {
    fn advance(&mut self, target: &mut dyn Target, step: usize) -> Result<Progress> {
        check_dim("the target", target.dim(), self.mean.len())?;
        target.renew(step);
        let mut rng = stream(self.options.seed, &format!("flow/draws/{step}"));
        let e = normals(self.mean.len(), self.options.draws, &mut rng);
        self.step_with(target, e.as_ref())
    }

    fn is_finite(&self) -> bool {
        let precision = match &self.precision {
            Precision::Whole(p) => check_finite_matrix("", p.as_ref()),
            Precision::Diagonal(p) => check_finite("", p),
        };
        precision.is_ok() && check_finite("", &self.mean).is_ok()
    }
}

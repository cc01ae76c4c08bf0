//! What a model believes after seeing data.

use super::Model;
use crate::error::{Error, Result};
use crate::kernels::{Kernel, Tape};
use crate::likelihoods::{Gaussian, Likelihood, Target};
use crate::linalg::{
    Accum, Cholesky, Jitter, Mat, MatRef, Par, add_row_dots, column_mut, gemm, mirror_lower,
    par_for, product, solve_lower, solve_lower_transpose,
};
use crate::means::Mean;

/// A conditioned Gaussian process: q(f(x)) = N(m(x) + φᵀm, k(x, x) − ‖φ‖² + ‖Rᵀφ‖²) with
/// φ = L⁻¹k(P, x). For sparse methods P are the inducing points, L the factor of Kuu and
/// q(v) = N(m, RRᵀ); for exact inference P are the training inputs, L the factor of K + σ²I, and
/// there is no R.
#[derive(Clone, Debug)]
pub struct Posterior {
    kernel: Box<dyn Kernel>,
    mean: Box<dyn Mean>,
    likelihood: Gaussian,
    points: Mat<f64>,
    factor: Cholesky,
    q_mu: Mat<f64>,
    q_sqrt: Option<Mat<f64>>,
    weights: Mat<f64>,
}

impl Posterior {
    /// From its parts: points (M×D), factor of their covariance, whitened mean (M×P) and lower
    /// root of the whitened covariance (M×M).
    pub fn new(
        model: &Model,
        points: Mat<f64>,
        factor: Cholesky,
        q_mu: Mat<f64>,
        q_sqrt: Option<Mat<f64>>,
    ) -> Self {
        let mut weights = q_mu.clone();
        let par = par_for(weights.nrows());
        solve_lower_transpose(factor.l.as_ref(), weights.as_mut(), par);
        Self {
            kernel: model.kernel.clone(),
            mean: model.mean.clone(),
            likelihood: model.likelihood.clone(),
            points,
            factor,
            q_mu,
            q_sqrt,
            weights,
        }
    }

    /// Number of target columns P.
    pub fn outputs(&self) -> usize {
        self.q_mu.ncols()
    }

    /// Number of input columns D.
    pub fn inputs(&self) -> usize {
        self.points.ncols()
    }

    /// Inducing points, or training inputs for exact inference.
    pub fn points(&self) -> MatRef<'_, f64> {
        self.points.as_ref()
    }

    /// Whitened mean of q, M×P.
    pub fn q_mu(&self) -> MatRef<'_, f64> {
        self.q_mu.as_ref()
    }

    /// Lower root of the whitened covariance of q, M×M; none for exact inference.
    pub fn q_sqrt(&self) -> Option<MatRef<'_, f64>> {
        self.q_sqrt.as_ref().map(|r| r.as_ref())
    }

    /// The factor of Kuu (of K + σ²I for exact inference).
    pub fn factor(&self) -> &Cholesky {
        &self.factor
    }

    /// q(u) = N(L m, L R Rᵀ Lᵀ) of the inducing variables u = f(Z) − m(Z): mean M×P and covariance
    /// M×M. None for exact inference.
    pub fn q_u(&self) -> Option<(Mat<f64>, Mat<f64>)> {
        let l = self.factor.l.as_ref();
        let root = product(l, self.q_sqrt()?);
        Some((product(l, self.q_mu()), product(root.as_ref(), root.transpose())))
    }

    fn check(&self, x: MatRef<f64>) -> Result<()> {
        if x.ncols() == self.inputs() {
            return Ok(());
        }
        Err(Error::Shape {
            what: "inputs to predict at".into(),
            expected: format!("{} columns", self.inputs()),
            found: format!("{} columns", x.ncols()),
        })
    }

    fn covariances(&self, x: MatRef<f64>) -> Mat<f64> {
        let mut k = Mat::zeros(x.nrows(), self.points.nrows());
        let points = Some(self.points.as_ref());
        self.kernel.evaluate(x, points, k.as_mut(), &mut Tape::off());
        k
    }

    fn mean_of(&self, x: MatRef<f64>, k: MatRef<f64>) -> Mat<f64> {
        let mut mean = Mat::zeros(x.nrows(), self.outputs());
        self.mean.evaluate(x, mean.as_mut());
        gemm(mean.as_mut(), Accum::Add, k, self.weights.as_ref(), 1.0, Par::Seq);
        mean
    }

    /// Mean of the latent function alone, B×P. 2M multiply-adds per row.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of columns differs.
    pub fn predict_mean(&self, x: MatRef<f64>) -> Result<Mat<f64>> {
        self.check(x)?;
        Ok(self.mean_of(x, self.covariances(x).as_ref()))
    }

    /// Mean (B×P) and variance (B, shared by the target columns) of the latent function. Variances
    /// below 0 by rounding are returned as 0.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of columns differs.
    pub fn predict_f(&self, x: MatRef<f64>) -> Result<(Mat<f64>, Vec<f64>)> {
        self.check(x)?;
        let mut k = self.covariances(x);
        let mean = self.mean_of(x, k.as_ref());
        solve_lower(self.factor.l.as_ref(), k.as_mut().transpose_mut(), Par::Seq);
        let mut explained = vec![0.0; x.nrows()];
        add_row_dots(k.as_ref(), k.as_ref(), &mut explained);
        let mut variance = vec![0.0; x.nrows()];
        self.kernel.diag(x, &mut variance);
        for (v, e) in variance.iter_mut().zip(&explained) {
            *v -= e;
        }
        if let Some(root) = &self.q_sqrt {
            let mut s = Mat::zeros(x.nrows(), root.ncols());
            gemm(s.as_mut(), Accum::Replace, k.as_ref(), root.as_ref(), 1.0, Par::Seq);
            add_row_dots(s.as_ref(), s.as_ref(), &mut variance);
        }
        for v in &mut variance {
            *v = if *v < 0.0 { 0.0 } else { *v };
        }
        Ok((mean, variance))
    }

    /// Mean (B×P) and full covariance (B×B, shared by the target columns) of the latent function.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of columns differs.
    pub fn predict_f_full(&self, x: MatRef<f64>) -> Result<(Mat<f64>, Mat<f64>)> {
        self.check(x)?;
        let n = x.nrows();
        let par = par_for(n);
        let mut phi = self.covariances(x);
        let mean = self.mean_of(x, phi.as_ref());
        solve_lower(self.factor.l.as_ref(), phi.as_mut().transpose_mut(), par);
        let mut covariance = Mat::zeros(n, n);
        self.kernel.evaluate(x, None, covariance.as_mut(), &mut Tape::off());
        gemm(covariance.as_mut(), Accum::Add, phi.as_ref(), phi.transpose(), -1.0, par);
        if let Some(root) = &self.q_sqrt {
            let s = product(phi.as_ref(), root.as_ref());
            gemm(covariance.as_mut(), Accum::Add, s.as_ref(), s.transpose(), 1.0, par);
        }
        mirror_lower(covariance.as_mut());
        Ok((mean, covariance))
    }

    /// Mean (B×P) and variance (B) of observations: the latent ones plus the noise.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of columns differs.
    pub fn predict_y(&self, x: MatRef<f64>) -> Result<(Mat<f64>, Vec<f64>)> {
        let (mean, mut variance) = self.predict_f(x)?;
        let noise = self.likelihood.variance.scalar();
        variance.iter_mut().for_each(|v| *v += noise);
        Ok((mean, variance))
    }

    /// log p(yᵢ | data) of every row, summed over the target columns (which are independent).
    ///
    /// # Errors
    /// [`Error::Shape`] if the shapes do not fit.
    pub fn predict_log_density(&self, x: MatRef<f64>, y: MatRef<f64>) -> Result<Vec<f64>> {
        if y.nrows() != x.nrows() || y.ncols() != self.outputs() {
            return Err(Error::Shape {
                what: "targets to score".into(),
                expected: format!("{}×{}", x.nrows(), self.outputs()),
                found: format!("{}×{}", y.nrows(), y.ncols()),
            });
        }
        let (mean, variance) = self.predict_f(x)?;
        let mut density = vec![0.0; x.nrows()];
        for p in 0..self.outputs() {
            for (i, d) in density.iter_mut().enumerate() {
                let (y, mean) = (y[(i, p)], mean[(i, p)]);
                let target = Target { y, extra: 0.0 };
                *d += self.likelihood.predict_log_density(target, &[mean], &[variance[i]]);
            }
        }
        Ok(density)
    }

    /// Joint samples of the latent function: one B×P matrix per sample.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of columns differs, [`Error::NotPositiveDefinite`] if the
    /// covariance cannot be factorised.
    pub fn sample_f(
        &self,
        x: MatRef<f64>,
        samples: usize,
        rng: &mut impl rand::Rng,
    ) -> Result<Vec<Mat<f64>>> {
        let (mean, covariance) = self.predict_f_full(x)?;
        let factor = Cholesky::new(
            covariance.as_ref(),
            Jitter::Relative(1e-10),
            "the posterior covariance",
        )?;
        let normal = rand_distr::StandardNormal;
        Ok((0..samples)
            .map(|_| {
                let mut draw = mean.clone();
                let mut noise = Mat::zeros(x.nrows(), self.outputs());
                for p in 0..self.outputs() {
                    for v in column_mut(noise.as_mut(), p) {
                        *v = rand_distr::Distribution::<f64>::sample(&normal, rng);
                    }
                }
                let l = factor.l.as_ref();
                gemm(draw.as_mut(), Accum::Add, l, noise.as_ref(), 1.0, par_for(x.nrows()));
                draw
            })
            .collect())
    }
}

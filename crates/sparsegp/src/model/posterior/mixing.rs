//! Predictions where targets are mixtures f = m(x) + W g of common latent functions g ([`Likelihood::mixing`]).

use super::Posterior;
use crate::error::Result;
#[cfg(doc)]
use crate::likelihoods::Likelihood;
use crate::likelihoods::mixing_shape;
use crate::linalg::{Accum, Mat, MatRef, Par, gemm};

impl Posterior {
    /// W, where there is mixing.
    pub(super) fn mixing(&self) -> Option<Mat<f64>> {
        self.likelihood.mixing().map(|mixing| {
            let (outputs, latents) = mixing_shape(mixing);
            Mat::from_fn(outputs, latents, |p, q| mixing.value()[q * outputs + p])
        })
    }

    /// Number of latent functions that have a q of their own: those that are mixed, else L.
    pub(super) fn unmixed(&self) -> usize {
        self.q_mu.ncols()
    }

    /// What means of unmixed functions start from: the mean function, which is that of the mixtures.
    pub(super) fn start(&self, x: MatRef<f64>) -> Mat<f64> {
        let mut mean = Mat::zeros(x.nrows(), self.unmixed());
        if self.likelihood.mixing().is_none() {
            self.mean.evaluate(x, mean.as_mut());
        }
        mean
    }

    /// Values of the functions (B×L) from those of the unmixed ones.
    pub(super) fn mixed(&self, x: MatRef<f64>, g: Mat<f64>) -> Mat<f64> {
        let Some(w) = self.mixing() else { return g };
        let mut f = Mat::zeros(x.nrows(), self.latents());
        self.mean.evaluate(x, f.as_mut());
        gemm(f.as_mut(), Accum::Add, g.as_ref(), w.transpose(), 1.0, Par::Seq);
        f
    }

    /// Variances, or slopes of them, likewise: Σ_q W_pq² v_q.
    pub(super) fn mixed_variances(&self, v: Mat<f64>) -> Mat<f64> {
        let Some(w) = self.mixing() else { return v };
        let squares = Mat::from_fn(w.nrows(), w.ncols(), |p, q| w[(p, q)] * w[(p, q)]);
        let mut mixed = Mat::zeros(v.nrows(), w.nrows());
        gemm(mixed.as_mut(), Accum::Replace, v.as_ref(), squares.transpose(), 1.0, Par::Seq);
        mixed
    }

    /// Σ_q weight(W_pq) A_q for every p, of matrices of the same shape; the matrices themselves where nothing is
    /// mixed.
    pub(super) fn mixed_matrices(
        &self,
        all: Vec<Mat<f64>>,
        weight: impl Fn(f64) -> f64,
    ) -> Vec<Mat<f64>> {
        let Some(w) = self.mixing() else { return all };
        let one = |p: usize| {
            let mut sum = Mat::zeros(all[0].nrows(), all[0].ncols());
            for (q, a) in all.iter().enumerate() {
                sum += faer::Scale(weight(w[(p, q)])) * a;
            }
            sum
        };
        (0..w.nrows()).map(one).collect()
    }

    /// Means (B×L) and the covariance of all latent functions at all rows, BL×BL: function l at row i has the index
    /// l·B + i. Between functions that nothing mixes it is 0.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] if the number of columns differs.
    pub fn predict_f_joint(&self, x: MatRef<f64>) -> Result<(Mat<f64>, Mat<f64>)> {
        let (g, own) = self.unmixed_full(x)?;
        let n = x.nrows();
        let l = self.latents();
        let w = self.mixing().unwrap_or_else(|| Mat::identity(l, l));
        let mut joint = Mat::zeros(n * l, n * l);
        for (q, c) in own.iter().enumerate() {
            for a in (0..l).filter(|a| w[(*a, q)] != 0.0) {
                for b in (0..l).filter(|b| w[(*b, q)] != 0.0) {
                    let mut block = joint.as_mut().submatrix_mut(a * n, b * n, n, n);
                    block += faer::Scale(w[(a, q)] * w[(b, q)]) * c;
                }
            }
        }
        Ok((self.mixed(x, g), joint))
    }
}

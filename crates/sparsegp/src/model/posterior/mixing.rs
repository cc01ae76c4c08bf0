//! Predictions where targets are mixtures f = m(x) + W g of common latent functions g
//! ([`Likelihood::mixing`]).

use super::gaussian::Gaussian;
use crate::likelihoods::{Likelihood, mixing_shape};
use crate::linalg::{Accum, Mat, MatRef, Par, gemm};

/// Returns W, where there is mixing.
pub(super) fn matrix(likelihood: &dyn Likelihood) -> Option<Mat<f64>> {
    likelihood.mixing().map(|mixing| {
        let (outputs, latents) = mixing_shape(mixing);
        Mat::from_fn(outputs, latents, |p, q| mixing.value()[q * outputs + p])
    })
}

/// Returns Σ_q weight(W_pq) A_q for every p, of matrices of the same shape.
pub(super) fn mixed_matrices(
    w: &Mat<f64>,
    all: &[Mat<f64>],
    weight: impl Fn(f64) -> f64,
) -> Vec<Mat<f64>> {
    let one = |p: usize| {
        let mut sum = Mat::zeros(all[0].nrows(), all[0].ncols());
        for (q, a) in all.iter().enumerate() {
            sum += faer::Scale(weight(w[(p, q)])) * a;
        }
        sum
    };
    (0..w.nrows()).map(one).collect()
}

impl Gaussian {
    /// Returns the number of latent functions that have their own q: those that are mixed, else L.
    pub(super) fn unmixed(&self) -> usize {
        self.q_mu.ncols()
    }

    /// Returns what means of unmixed functions start from: the mean function, which is that of the
    /// mixtures.
    pub(super) fn start(&self, x: MatRef<f64>) -> Mat<f64> {
        let mut mean = Mat::zeros(x.nrows(), self.unmixed());
        if self.mixing.is_none() {
            self.mean.evaluate(x, mean.as_mut());
        }
        mean
    }

    /// Returns the values of the functions (B×L) from those of the unmixed ones.
    pub(super) fn mixed(&self, x: MatRef<f64>, g: Mat<f64>) -> Mat<f64> {
        let Some(w) = &self.mixing else { return g };
        let mut f = Mat::zeros(x.nrows(), self.latents());
        self.mean.evaluate(x, f.as_mut());
        gemm(f.as_mut(), Accum::Add, g.as_ref(), w.transpose(), 1.0, Par::Seq);
        f
    }

    /// Returns variances, or slopes of them, likewise: Σ_q W_pq² v_q.
    pub(super) fn mixed_variances(&self, v: Mat<f64>) -> Mat<f64> {
        let Some(w) = &self.mixing else { return v };
        let squares = Mat::from_fn(w.nrows(), w.ncols(), |p, q| w[(p, q)] * w[(p, q)]);
        let mut mixed = Mat::zeros(v.nrows(), w.nrows());
        gemm(mixed.as_mut(), Accum::Replace, v.as_ref(), squares.transpose(), 1.0, Par::Seq);
        mixed
    }

    /// Returns Σ_q weight(W_pq) A_q for every p; the matrices themselves where nothing is mixed.
    pub(super) fn mixed_slopes(
        &self,
        all: Vec<Mat<f64>>,
        weight: impl Fn(f64) -> f64,
    ) -> Vec<Mat<f64>> {
        match &self.mixing {
            Some(w) => mixed_matrices(w, &all, weight),
            None => all,
        }
    }
}

//! What rounding leaves of posterior variances, and joint draws in spite of it.
//!
//! A posterior variance is the difference k − ‖φ‖² of a prior variance and what is known of it. The
//! sum of M squares is rounded M times, at random by some √M ε k in all (ε = 2⁻⁵²; Higham & Mary
//! 2019), and with w = G⁻¹k(X, x) the covariances and the factor contribute ε k (1 + ‖w‖)², which
//! is 4ε k for the weights of an interpolation, ‖w‖ = 1. No variance is known to less than that,
//! and none is reported below it.

use super::gaussian::Gaussian;
use crate::error::{Error, Result};
use crate::linalg::{Accum, Cholesky, Jitter, Mat, MatRef, Par, column_mut, gemm};
use crate::model::precision;
use rand_distr::{Distribution, StandardNormal};

/// Returns the rounding of a posterior variance by so many features, as a part of the prior
/// variance.
pub(super) fn part(features: usize) -> f64 {
    (4.0 + (features as f64).sqrt()) * f64::EPSILON
}

/// Raises the diagonal of a covariance to what rounding leaves of the prior's.
pub(super) fn raise(covariance: &mut Mat<f64>, floors: &[f64]) {
    for (i, floor) in floors.iter().enumerate() {
        if covariance[(i, i)] < *floor {
            covariance[(i, i)] = *floor;
        }
    }
}

/// The jitter of a root is at most this part of the mean variance, or so many times its rounding.
const LARGEST: f64 = 1e-2;
const TIMES: f64 = 1e4;

/// Returns the lower roots R of covariances of functions with these prior variances, with the
/// variances themselves on the diagonal of RRᵀ. Eigenvalues that rounding made negative take
/// jitter: from 10⁻¹⁰ of the mean variance or the rounding of the prior, √B ε k, tenfold until
/// there is a factor; every row of which is then made as long as it was to be.
pub(super) fn roots_of(covariances: &[Mat<f64>], priors: &[f64]) -> Result<Vec<Mat<f64>>> {
    covariances.iter().zip(priors).map(|(covariance, prior)| root_of(covariance, *prior)).collect()
}

fn root_of(covariance: &Mat<f64>, prior: f64) -> Result<Mat<f64>> {
    let n = covariance.nrows();
    let mean = (0..n).map(|i| covariance[(i, i)]).sum::<f64>() / n.max(1) as f64;
    let rounding = f64::EPSILON * (n as f64).sqrt() * prior;
    let most = (LARGEST * mean).max(TIMES * rounding);
    let mut jitter = (1e-10 * mean).max(rounding);
    // a function that is 0 has no jitter to grow
    if jitter <= 0.0 {
        return Ok(Mat::zeros(n, n));
    }
    loop {
        let with = Jitter::Absolute(jitter);
        match Cholesky::new(covariance.as_ref(), with, "the posterior covariance") {
            Ok(mut factor) => {
                for i in 0..n {
                    let variance = covariance[(i, i)].max(0.0);
                    let scale = if jitter > 0.0 { variance / (variance + jitter) } else { 1.0 };
                    (0..=i).for_each(|j| factor.l[(i, j)] *= scale.sqrt());
                }
                return Ok(factor.l);
            }
            Err(Error::NotPositiveDefinite { .. }) if 10.0 * jitter <= most => jitter *= 10.0,
            Err(error) => return Err(error),
        }
    }
}

/// Returns a draw about this mean (B×L), with a root for every column.
pub(super) fn around(mut mean: Mat<f64>, roots: &[Mat<f64>], rng: &mut dyn rand::Rng) -> Mat<f64> {
    for (l, root) in roots.iter().enumerate() {
        let mut noise = Mat::zeros(mean.nrows(), 1);
        column_mut(noise.as_mut(), 0).iter_mut().for_each(|v| *v = StandardNormal.sample(rng));
        let own = mean.as_mut().subcols_mut(l, 1);
        gemm(own, Accum::Add, root.as_ref(), noise.as_ref(), 1.0, Par::Seq);
    }
    mean
}

impl Gaussian {
    /// Returns the largest prior variance of every unmixed latent function at `x`.
    pub(super) fn prior_sizes(&self, x: MatRef<f64>) -> Vec<f64> {
        let mut own = vec![0.0; x.nrows()];
        let mut sizes = Vec::with_capacity(self.unmixed());
        for p in &*self.processes {
            p.kernel.diag(x, &mut own);
            let largest = own.iter().fold(0.0_f64, |a, b| a.max(*b));
            sizes.extend(std::iter::repeat_n(largest, p.latents.len()));
        }
        sizes
    }

    /// Returns what rounding changes in the log evidence of exact inference; none for other
    /// methods. O(N²).
    pub(super) fn rounding(&self) -> Option<f64> {
        let p = &self.processes[0];
        let exact = self.noise.is_some() || !self.row_noise.is_empty();
        if !(exact && p.roots.is_empty() && p.pseudo.is_none()) {
            return None;
        }
        let mut prior = vec![0.0; p.points.nrows()];
        p.kernel.diag(p.points.as_ref(), &mut prior);
        Some(precision::estimate(&p.factor, &prior))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A linear kernel at the origin.
    #[test]
    fn a_function_that_is_zero_has_roots_of_zero() {
        let roots = roots_of(&[Mat::zeros(2, 2)], &[0.0]).unwrap();
        assert!((0..2).all(|i| (0..2).all(|j| roots[0][(i, j)] == 0.0)));
    }

    /// Of rank two but for rounding of a large prior: draws have the variances that were asked for.
    #[test]
    fn roots_have_the_variances_of_covariances_that_are_singular() {
        let n = 60;
        for prior in [1.0, 1e6] {
            let size = |i: usize| 1e-4 * (1.0 + i as f64 / 7.0);
            // rounding of the size of the prior's, of both signs
            let noise = |i: usize, j: usize| 1e-16 * prior * ((17 * i + 31 * j) as f64).sin();
            let covariance = Mat::from_fn(n, n, |i, j| {
                let both = size(i) * size(j) * (1.0 + (0.01 * (i as f64 - j as f64)).cos());
                let (a, b) = (i.max(j), i.min(j));
                both + if a == b { 0.0 } else { noise(a, b) }
            });
            let roots = roots_of(std::slice::from_ref(&covariance), &[prior]).unwrap();
            let square = &roots[0] * roots[0].transpose();
            for i in 0..n {
                assert!((square[(i, i)] / covariance[(i, i)] - 1.0).abs() < 1e-12, "{prior} {i}");
            }
            let apart = (&square - &covariance).norm_max();
            assert!(apart < 1e-13 * prior.max(1.0), "{apart:e}");
        }
        // not a covariance, whatever the rounding
        let wrong = Mat::from_fn(2, 2, |i, j| if i == j { 1.0 } else { 3.0 });
        assert!(roots_of(&[wrong], &[1.0]).unwrap_err().is_recoverable());
    }
}

//! Kernels of one input, the time t, as covariances of linear functions of a Markov process (Hartikainen & Särkkä 2010; Särkkä & Solin
//! 2019, ch. 12).
//!
//! f(x) = H(x)ᵀs(t) for rows x of inputs, of which t is one and others may be labels ([`super::coregion`]), where s is a Gaussian process of n numbers, the *state*, with the covariance P at every place and, for a
//! step Δ ≥ 0,
//!
//! ```text
//! s(t + Δ) = A(Δ) s(t) + N(0, Q(Δ)),      Q(Δ) = P − A P Aᵀ,      k(x, x′) = H(x)ᵀ P A(Δ)ᵀ H(x′) with t′ = t + Δ
//! ```
//!
//! Sums put states side by side; products take the Kronecker product of everything but Q, which is Q₁⊗P₂ + A₁P₁A₁ᵀ⊗Q₂.
//! Matrices are n² numbers, row by row.

mod composite;
mod fixed;
mod labelled;
mod matern;
mod squared_exponential;
mod waves;

pub(super) use composite::{product, sum};
pub(super) use fixed::{Fixed, White};
pub(super) use labelled::Labelled;
pub(super) use matern::Matern;
pub(super) use squared_exponential::SquaredExponential;
pub use waves::MOST_HARMONICS;
pub(super) use waves::{Waves, periodic};

use crate::error::{Error, Result};
use crate::linalg::RowRef;

/// A kernel as a Markov process, at the values that its hyperparameters had when it was made.
///
/// What is pulled back are cotangents of P and A: as Q is P − APAᵀ, it has none.
pub trait StateSpace: Send + Sync + std::fmt::Debug {
    /// Returns n.
    fn size(&self) -> usize;

    /// Writes P, n×n.
    fn stationary(&self, out: &mut [f64]);

    /// Returns sizes of blocks along the diagonal outside of which A is 0.
    fn blocks(&self) -> Vec<usize> {
        vec![self.size()]
    }

    /// Writes A(Δ), n×n, for Δ ≥ 0; the identity for Δ = 0, but for white noise.
    fn transition(&self, step: f64, out: &mut [f64]);

    /// Writes Q(Δ), n×n, which is positive semi-definite to the last digits: not as the difference P − APAᵀ where that has few.
    fn noise(&self, step: f64, out: &mut [f64]);

    /// Adds the inputs that it takes for the time: none where states do not move.
    fn times(&self, all: &mut Vec<usize>);

    /// Returns whether H depends on the row.
    fn output_moves(&self) -> bool {
        false
    }

    /// Writes H(x), n numbers, for a row of all inputs.
    fn output(&self, x: RowRef<'_, f64>, out: &mut [f64]);

    /// Adds to `all` the H(x) of each summand, in the order of [`super::Kernel::terms`], from the state `at` of `n` on.
    fn terms(&self, x: RowRef<'_, f64>, (at, n): (usize, usize), all: &mut Vec<Vec<f64>>) {
        let mut own = vec![0.0; n];
        self.output(x, &mut own[at..][..self.size()]);
        all.push(own);
    }

    /// Adds the gradient with respect to the kernel's hyperparameters, for a cotangent of P.
    fn pull_stationary(&self, bar: &[f64], params: &mut [f64]);

    /// Adds the gradient with respect to the kernel's hyperparameters, for a cotangent of A(Δ) = `a`.
    fn pull_transition(&self, step: f64, a: &[f64], bar: &[f64], params: &mut [f64]);

    /// Returns the largest error of the covariance, as a part of the variance: 0 but for series that end early and kernels that are
    /// approximated.
    fn error(&self) -> f64 {
        0.0
    }

    /// Adds what a user should know of that error, in sentences.
    fn remarks(&self, all: &mut Vec<String>) {
        let _ = all;
    }
}

/// Says that a kernel is not a Markov process.
pub(super) fn none(kernel: &str) -> Error {
    Error::Invalid(format!(
        "the kernel `{kernel}` has no state-space form; a series takes matern12, matern32, matern52, exponential, rbf, cosine, periodic, \
         constant, linear and white of one input, coregion of labels, their sums and products: use one of these, or a sparse method such as \
         titsias2025"
    ))
}

/// Returns the input that a kernel reads as the time.
///
/// # Errors
/// [`Error::Invalid`] for a kernel of several inputs.
pub(super) fn one_input(kernel: &str, dims: &[usize]) -> Result<usize> {
    match dims {
        [one] => Ok(*one),
        _ => Err(Error::Invalid(format!(
            "the kernel `{kernel}` reads {} inputs, and a state-space form is of one: say which by `active_dims`, or use a sparse method such as \
             titsias2025",
            dims.len()
        ))),
    }
}

#[cfg(test)]
mod tests;

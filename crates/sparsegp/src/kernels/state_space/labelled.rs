//! Labels: a number for each, which does not move, and of which a row sees the one of its label (Bonilla, Chai & Williams 2008; Álvarez,
//! Rosasco & Lawrence 2012, §4.2, for the covariance).
//!
//! Of a kernel that is B times a Markov process, the product has a copy of the state for every label: P is B⊗P∞ and A is I⊗A, so that
//! steps stay within a copy.

use super::super::coregion::Coregion;
use super::StateSpace;
use crate::linalg::{Mat, RowRef};

/// A number of every label, with the covariance B.
#[derive(Debug)]
pub struct Labelled {
    kernel: Coregion,
    /// B.
    covariance: Mat<f64>,
}

impl Labelled {
    /// Creates it at the kernel's present hyperparameters.
    pub fn new(kernel: Coregion) -> Self {
        Self { covariance: kernel.covariances(), kernel }
    }
}

impl StateSpace for Labelled {
    fn size(&self) -> usize {
        self.covariance.nrows()
    }

    fn stationary(&self, out: &mut [f64]) {
        let n = self.size();
        (0..n * n).for_each(|at| out[at] = self.covariance[(at / n, at % n)]);
    }

    fn blocks(&self) -> Vec<usize> {
        vec![1; self.size()]
    }

    fn transition(&self, _: f64, out: &mut [f64]) {
        out.fill(0.0);
        out.iter_mut().step_by(self.size() + 1).for_each(|a| *a = 1.0);
    }

    fn noise(&self, _: f64, out: &mut [f64]) {
        out.fill(0.0);
    }

    fn times(&self, _: &mut Vec<usize>) {}

    fn output_moves(&self) -> bool {
        true
    }

    fn output(&self, x: RowRef<'_, f64>, out: &mut [f64]) {
        out.fill(0.0);
        out[self.kernel.label_of(x)] = 1.0;
    }

    fn pull_stationary(&self, bar: &[f64], params: &mut [f64]) {
        let n = self.size();
        self.kernel.pull(&Mat::from_fn(n, n, |i, j| bar[i * n + j]), params);
    }

    fn pull_transition(&self, _: f64, _: &[f64], _: &[f64], _: &mut [f64]) {}
}

//! Memory that is kept from block to block and from call to call.

use super::either::EitherFeatures;
use super::timings::Timings;
use crate::engine::Passed;
use crate::kernels::Tape;
use crate::linalg::{Mat, Real};

/// A matrix that takes the shape it is asked for.
#[derive(Debug)]
pub(super) struct Buffer<T = f64>(Mat<T>);

impl<T: Real> Default for Buffer<T> {
    fn default() -> Self {
        Self(Mat::new())
    }
}

impl<T> std::ops::Deref for Buffer<T> {
    type Target = Mat<T>;
    fn deref(&self) -> &Mat<T> {
        &self.0
    }
}

impl<T> std::ops::DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut Mat<T> {
        &mut self.0
    }
}

/// Buffers of one block of rows, and what it adds to the small sums.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) mu: Buffer,
    pub(super) s: Buffer,
    pub(super) r: Buffer,
    pub(super) a: Buffer,
    pub(super) b: Buffer,
    pub(super) c: Buffer,
    pub(super) weights: Vec<f64>,
    pub(super) other_weights: Vec<f64>,
    pub(super) pointwise: Vec<f64>,
    /// Without the scale; no M×M matrices.
    pub(super) small: Passed,
    pub(super) processes: Vec<ProcessScratch>,
    pub(super) timings: Timings,
}

/// The same for one process.
#[derive(Debug, Default)]
pub(super) struct ProcessScratch {
    /// Kuf and K̄uf, B×M.
    pub(super) k: Buffer,
    pub(super) k_bar: Buffer,
    /// What is between them.
    pub(super) features: EitherFeatures,
    pub(super) tape: Tape,
}

//! Memory that is kept from block to block and from call to call.

use super::products::ByProducts;
use super::timings::Timings;
use crate::engine::Passed;
use crate::kernels::Tape;
use crate::linalg::Mat;

/// A matrix that takes the shape it is asked for.
#[derive(Debug)]
pub(super) struct Buffer(Mat<f64>);

impl Default for Buffer {
    fn default() -> Self {
        Self(Mat::new())
    }
}

impl std::ops::Deref for Buffer {
    type Target = Mat<f64>;
    fn deref(&self) -> &Mat<f64> {
        &self.0
    }
}

impl std::ops::DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut Mat<f64> {
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
    pub(super) k: Buffer,
    pub(super) phi: Buffer,
    pub(super) other: Buffer,
    /// ΦR of every latent function, or ΦV, or ΦE.
    pub(super) phi_r: Vec<Buffer>,
    /// In the place of those where features are products.
    pub(super) double: ByProducts<f64>,
    pub(super) single: ByProducts<f32>,
    pub(super) tape: Tape,
}

//! Memory that is kept from block to block and from call to call.

use super::timings::Timings;
use crate::kernels::Tape;
use crate::linalg::{Mat, MatMut, MatRef, Par, column, column_mut, par_for};
use faer::reborrow::ReborrowMut;
use rayon::prelude::*;

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

/// Buffers of one thread, for one block of rows.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) k: Buffer,
    pub(super) phi: Buffer,
    pub(super) other: Buffer,
    pub(super) y_mean: Buffer,
    pub(super) a: Buffer,
    pub(super) s: Vec<f64>,
    pub(super) r: Vec<f64>,
    pub(super) b: Vec<f64>,
    pub(super) c: Vec<f64>,
    pub(super) tape: Tape,
    pub(super) timings: Timings,
}

/// Accumulators of one lane.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Whether anything has been added since the sweep began.
    pub(super) used: bool,
    pub(super) sums: Vec<f64>,
    pub(super) phi_a: Buffer,
    pub(super) gram: Buffer,
    pub(super) gram_c: Buffer,
    pub(super) kernel: Vec<f64>,
    pub(super) mean: Vec<f64>,
    pub(super) z: Buffer,
}

/// The scaled sum of the lower triangles of the lanes' accumulators, lane by lane, on all threads. `of` gives a lane's accumulator, if it has been used.
pub(super) fn sum_lower<L: Sync>(
    mut sum: MatMut<f64>,
    lanes: &[L],
    of: impl Fn(&L) -> Option<&Buffer> + Sync,
    scale: f64,
) {
    // to wake threads takes longer than to add up little
    let columns = match par_for(sum.ncols()) {
        Par::Seq => sum.ncols().max(1),
        Par::Rayon(_) => 32,
    };
    sum.rb_mut().par_col_chunks_mut(columns).enumerate().for_each(|(chunk, mut part)| {
        for j in 0..part.ncols() {
            let from = chunk * columns + j;
            let target = &mut column_mut(part.rb_mut(), j)[from..];
            target.fill(0.0);
            for other in lanes.iter().filter_map(&of) {
                let source = &column(other.as_ref(), from)[from..];
                target.iter_mut().zip(source).for_each(|(t, v)| *t += v);
            }
            target.iter_mut().for_each(|t| *t *= scale);
        }
    });
}

pub(super) fn add(mut sink: MatMut<f64>, other: MatRef<f64>) {
    for j in 0..sink.ncols() {
        let target = column_mut(sink.rb_mut(), j);
        target.iter_mut().zip(column(other, j)).for_each(|(t, v)| *t += v);
    }
}

pub(super) fn multiply(mut a: MatMut<f64>, factor: f64) {
    if factor != 1.0 {
        for j in 0..a.ncols() {
            column_mut(a.rb_mut(), j).iter_mut().for_each(|v| *v *= factor);
        }
    }
}

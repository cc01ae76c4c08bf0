//! What a radial kernel offers to kernels that measure distances in another way.

use super::super::{Kernel, Tape};
use super::loops::fill_columns;
use super::{Correlation, Radial};
use crate::linalg::exp::dispatch;
use crate::linalg::{MatMut, MatRef};

/// A kernel σ²κ(ϱ²) whose squared distances come from somebody else. Its parameters are the variance,
/// the lengthscales (one for all active inputs, or one for each), then those of its shape.
pub trait Stationary: Kernel {
    /// Returns the active input columns.
    fn dims(&self) -> &[usize];

    /// Returns the lengthscale of the active column of this index.
    fn lengthscale(&self, index: usize) -> f64;

    /// Returns the position of that lengthscale among the parameters.
    fn lengthscale_slot(&self, index: usize) -> usize;

    /// Turns squared distances into covariances, in place. Whatever [`Stationary::pull`] will need
    /// is pushed on the tape if that records. A distance of exactly 0 gives exactly the variance.
    fn correlate(&self, d2: MatMut<f64>, tape: &mut Tape);

    /// Turns the cotangent of the covariances `k` into that of the squared distances, in place.
    /// Adds to `params` (the order of [`Kernel::params`]) what belongs to variance and shape.
    fn pull(&self, k: MatRef<f64>, k_bar: MatMut<f64>, tape: &mut Tape, params: &mut [f64]);

    /// Returns a copy.
    fn clone_stationary(&self) -> Box<dyn Stationary>;
}

impl<C: Correlation> Stationary for Radial<C> {
    fn dims(&self) -> &[usize] {
        &self.dims
    }

    fn lengthscale(&self, index: usize) -> f64 {
        let values = self.lengthscales.value();
        if values.len() == 1 { values[0] } else { values[index] }
    }

    fn lengthscale_slot(&self, index: usize) -> usize {
        1 + if self.lengthscales.len() == 1 { 0 } else { index }
    }

    fn correlate(&self, d2: MatMut<f64>, tape: &mut Tape) {
        let correlation = self.correlation();
        let mut records = self.records(d2.nrows(), d2.ncols(), tape);
        let [slopes, shapes] = &mut records;
        let records_of_all = [slopes, shapes].map(|record| record.as_mut().map(|r| r.as_mut()));
        let chunk = d2.ncols().max(1);
        fill_columns(d2, records_of_all, 0, chunk, &|_, out, records| {
            dispatch(self.values(&correlation, out, records));
        });
        records.into_iter().flatten().for_each(|used| tape.push(used));
    }

    fn pull(&self, k: MatRef<f64>, k_bar: MatMut<f64>, tape: &mut Tape, params: &mut [f64]) {
        let mut row_sums = tape.buffer(k.nrows(), 1);
        let mut column_sums = tape.buffer(k.ncols(), 1);
        let sums = [row_sums.col_as_slice_mut(0), column_sums.col_as_slice_mut(0)];
        self.pull_values(k, k_bar, tape, params, sums, k.ncols().max(1));
        [row_sums, column_sums].into_iter().for_each(|used| tape.recycle(used));
    }

    fn clone_stationary(&self) -> Box<dyn Stationary> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Stationary> {
    fn clone(&self) -> Self {
        self.clone_stationary()
    }
}

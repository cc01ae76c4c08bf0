//! Places of rows: all of their inputs, of which one is the time.

use crate::kernels::Kernel;
use crate::linalg::{Mat, MatRef, RowRef, column};
use std::ops::Range;

/// Returns which of so many inputs no kernel reads as labels: of a series the time only.
pub fn not_labels(kernels: &[Box<dyn Kernel>], inputs: usize) -> Vec<usize> {
    let labels: Vec<usize> = kernels.iter().flat_map(|kernel| kernel.labels()).collect();
    (0..inputs).filter(|q| !labels.contains(q)).collect()
}

/// Rows of inputs, of which one is the time and others may be labels.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    x: MatRef<'a, f64>,
    time: usize,
}

impl<'a> Places<'a> {
    /// Takes inputs (N×D, column by column) of which the column `time` is the time.
    pub fn new(x: MatRef<'a, f64>, time: usize) -> Self {
        Self { x, time }
    }

    /// Takes times that are the only input.
    pub fn of_times(t: &'a [f64]) -> Self {
        Self::new(MatRef::from_column_major_slice(t, t.len(), 1), 0)
    }

    /// Returns the times.
    pub fn t(&self) -> &'a [f64] {
        column(self.x, self.time)
    }

    /// Returns the inputs of a row.
    pub fn row(&self, i: usize) -> RowRef<'a, f64> {
        self.x.row(i)
    }

    /// Returns how many they are.
    pub fn len(&self) -> usize {
        self.x.nrows()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns some of them.
    #[must_use]
    pub fn part(&self, rows: Range<usize>) -> Self {
        Self::new(self.x.subrows(rows.start, rows.len()), self.time)
    }

    /// Returns all inputs, N×D.
    pub fn inputs(&self) -> MatRef<'a, f64> {
        self.x
    }

    /// Returns the column that is the time.
    pub fn time(&self) -> usize {
        self.time
    }
}

/// Rows of inputs in the order of their times, equal ones as they come.
#[derive(Clone, Debug)]
pub struct Sorted {
    /// Their positions as they came.
    pub order: Vec<usize>,
    x: Mat<f64>,
    time: usize,
}

impl Sorted {
    /// Sorts rows (N×D, of any layout) by the column `time`.
    pub fn new(x: MatRef<'_, f64>, time: usize) -> Self {
        let t: Vec<f64> = (0..x.nrows()).map(|i| x[(i, time)]).collect();
        let order = super::order(&t);
        let x = Mat::from_fn(x.nrows(), x.ncols(), |i, q| x[(order[i], q)]);
        Self { order, x, time }
    }

    /// Returns them in this order.
    pub fn places(&self) -> Places<'_> {
        Places::new(self.x.as_ref(), self.time)
    }
}

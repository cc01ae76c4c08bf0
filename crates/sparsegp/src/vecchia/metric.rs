//! Where rows are, in lengthscales of the kernel.

use crate::kernels::Kernel;
use crate::linalg::MatRef;

/// What multiplies every column of the inputs in distances: its share of the finest of the kernel's scales, 1/ℓ over the
/// largest 1/ℓ. Columns that the kernel sees at no scale have 0; if that is so of all, all count alike.
///
/// Only ratios of lengthscales matter for who is near whom.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metric(Vec<f64>);

impl Metric {
    /// Reads the scales of a kernel of so many input columns.
    pub fn of(kernel: &dyn Kernel, columns: usize) -> Self {
        let mut scales = vec![0.0; columns];
        kernel.relevance(&mut scales);
        let largest = scales.iter().fold(0.0_f64, |a, b| a.max(*b));
        if largest > 0.0 && largest.is_finite() {
            scales.iter_mut().for_each(|scale| *scale /= largest);
            Self(scales)
        } else {
            Self(vec![1.0; columns])
        }
    }

    /// Returns the factor of every column.
    pub fn scales(&self) -> &[f64] {
        &self.0
    }

    /// Returns the number of columns that count.
    pub fn dims(&self) -> usize {
        self.0.iter().filter(|scale| **scale > 0.0).count()
    }

    /// Returns the places of rows (N×D), one after the other.
    pub(super) fn places(&self, x: MatRef<f64>) -> Vec<f64> {
        let own: Vec<(usize, f64)> =
            self.0.iter().copied().enumerate().filter(|(_, scale)| *scale > 0.0).collect();
        let row = |i: usize| own.iter().map(move |(q, scale)| x[(i, *q)] * scale);
        (0..x.nrows()).flat_map(row).collect()
    }

    /// Returns how much one of the scales that matter differs from that of another metric: the
    /// largest ratio, at least 1. Below `least`, a scale moves no neighbours and counts as that.
    pub fn apart(&self, other: &Self, least: f64) -> f64 {
        let both = self.0.iter().zip(&other.0).map(|(a, b)| (a.max(least), b.max(least)));
        both.fold(1.0, |most, (a, b)| f64::max(most, (a / b).max(b / a)))
    }
}

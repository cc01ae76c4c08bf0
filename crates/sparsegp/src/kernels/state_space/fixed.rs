//! States that do not move, and those that forget everything.

use super::StateSpace;
use crate::linalg::RowRef;

/// One number that is the same everywhere: an offset, or the slope of a line through the origin.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    /// Its variance, the kernel's one parameter.
    pub variance: f64,
    /// The input t of which f is the number times t; none for an offset.
    pub slope: Option<usize>,
}

impl StateSpace for Fixed {
    fn size(&self) -> usize {
        1
    }

    fn stationary(&self, out: &mut [f64]) {
        out[0] = self.variance;
    }

    fn transition(&self, _: f64, out: &mut [f64]) {
        out[0] = 1.0;
    }

    fn noise(&self, _: f64, out: &mut [f64]) {
        out[0] = 0.0;
    }

    fn output_moves(&self) -> bool {
        self.slope.is_some()
    }

    fn times(&self, all: &mut Vec<usize>) {
        all.extend(self.slope);
    }

    fn output(&self, x: RowRef<'_, f64>, out: &mut [f64]) {
        out[0] = self.slope.map_or(1.0, |input| x[input]);
    }

    fn pull_stationary(&self, bar: &[f64], params: &mut [f64]) {
        params[0] += bar[0];
    }

    fn pull_transition(&self, _: f64, _: &[f64], _: &[f64], _: &mut [f64]) {}
}

/// White noise: every row has a number that is independent of all others, those of the same place too.
#[derive(Clone, Copy, Debug)]
pub struct White {
    /// Its variance, the kernel's one parameter.
    pub variance: f64,
}

impl StateSpace for White {
    fn size(&self) -> usize {
        1
    }

    fn stationary(&self, out: &mut [f64]) {
        out[0] = self.variance;
    }

    fn transition(&self, _: f64, out: &mut [f64]) {
        out[0] = 0.0;
    }

    fn noise(&self, _: f64, out: &mut [f64]) {
        out[0] = self.variance;
    }

    fn times(&self, _: &mut Vec<usize>) {}

    fn output(&self, _: RowRef<'_, f64>, out: &mut [f64]) {
        out[0] = 1.0;
    }

    fn pull_stationary(&self, bar: &[f64], params: &mut [f64]) {
        params[0] += bar[0];
    }

    fn pull_transition(&self, _: f64, _: &[f64], _: &[f64], _: &mut [f64]) {}
}

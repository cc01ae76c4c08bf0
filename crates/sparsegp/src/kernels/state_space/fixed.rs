//! States that do not move, and those that forget everything.

use super::StateSpace;

/// One number that is the same everywhere: an offset, or the slope of a line through the origin.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    /// Its variance, the kernel's one parameter.
    pub variance: f64,
    /// Whether f is the number times t.
    pub slope: bool,
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

    fn output(&self, t: f64, out: &mut [f64]) {
        out[0] = if self.slope { t } else { 1.0 };
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

    fn output(&self, _: f64, out: &mut [f64]) {
        out[0] = 1.0;
    }

    fn pull_stationary(&self, bar: &[f64], params: &mut [f64]) {
        params[0] += bar[0];
    }

    fn pull_transition(&self, _: f64, _: &[f64], _: &[f64], _: &mut [f64]) {}
}

//! Where the time goes.

use std::time::Instant;

/// Seconds of work on rows, added over threads.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timings {
    /// Covariances, their diagonal and the mean function.
    pub kernel: f64,
    /// Triangular solves.
    pub solves: f64,
    /// Matrix products with features.
    pub products: f64,
    /// From cotangents of covariances to gradients of parameters.
    pub pull_back: f64,
}

impl Timings {
    /// Returns all of it.
    pub fn total(&self) -> f64 {
        self.kernel + self.solves + self.products + self.pull_back
    }

    pub(super) fn add(&mut self, other: &Timings) {
        self.kernel += other.kernel;
        self.solves += other.solves;
        self.products += other.products;
        self.pull_back += other.pull_back;
    }
}

/// Adds the time since `mark` to `slot` and sets `mark` to now.
pub(super) fn lap(mark: &mut Instant, slot: &mut f64) {
    let now = Instant::now();
    *slot += (now - *mark).as_secs_f64();
    *mark = now;
}

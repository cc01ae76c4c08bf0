//! Objectives for the tests of the optimisers.

use super::Objective;
use crate::error::{Error, Result};

/// ½ Σ wᵢ xᵢ².
pub(super) struct Quadratic {
    pub weights: Vec<f64>,
    pub calls: usize,
}

impl Quadratic {
    pub fn new(weights: Vec<f64>) -> Self {
        Self { weights, calls: 0 }
    }
}

impl Objective for Quadratic {
    fn dim(&self) -> usize {
        self.weights.len()
    }
    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> Result<f64> {
        self.calls += 1;
        let mut value = 0.0;
        for ((slope, x), weight) in gradient.iter_mut().zip(x).zip(&self.weights) {
            *slope = weight * x;
            value += 0.5 * weight * x * x;
        }
        Ok(value)
    }
}

/// A function of one variable: value and slope, or nothing (a recoverable error).
pub(super) struct Scalar<F>(pub F);

impl<F: Fn(f64) -> Option<(f64, f64)>> Objective for Scalar<F> {
    fn dim(&self) -> usize {
        1
    }
    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> Result<f64> {
        let (value, slope) = (self.0)(x[0]).ok_or_else(no_value)?;
        gradient[0] = slope;
        Ok(value)
    }
}

/// The chained function of Rosenbrock (Moré, Garbow & Hillstrom 1981, problem 21 generalised).
pub(super) struct Rosenbrock(pub usize);

impl Rosenbrock {
    pub fn start(&self) -> Vec<f64> {
        (0..self.0).map(|i| if i % 2 == 0 { -1.2 } else { 1.0 }).collect()
    }
}

impl Objective for Rosenbrock {
    fn dim(&self) -> usize {
        self.0
    }
    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> Result<f64> {
        gradient.fill(0.0);
        let mut value = 0.0;
        for i in 0..self.0 - 1 {
            let (bend, rest) = (x[i + 1] - x[i] * x[i], 1.0 - x[i]);
            value += 100.0 * bend * bend + rest * rest;
            gradient[i] += -400.0 * bend * x[i] - 2.0 * rest;
            gradient[i + 1] += 200.0 * bend;
        }
        Ok(value)
    }
}

/// How a [`Barrier`] refuses.
#[derive(Clone, Copy, Debug)]
pub(super) enum Refusal {
    Error,
    Nan,
    Infinity,
    MinusInfinity,
    NanGradient,
}

/// Σ (xᵢ − cᵢ)² − log of the distance of Σ xᵢ to `wall`: the minimum lies close to the wall, and
/// nothing beyond it.
pub(super) struct Barrier {
    pub dim: usize,
    pub wall: f64,
    pub weight: f64,
    pub refusal: Refusal,
    pub refused: usize,
}

impl Barrier {
    pub fn new(refusal: Refusal) -> Self {
        Self { dim: 3, wall: 1.0, weight: 1e-4, refusal, refused: 0 }
    }

    /// By symmetry all components are equal to the root of 2 (t − 5) + w / (wall − n t) = 0 that
    /// lies on the near side of the wall.
    pub fn minimiser(&self) -> f64 {
        let n = self.dim as f64;
        // 2 (t − 5)(wall − n t) + w = 0
        let (a, b, c) = (-2.0 * n, 2.0 * self.wall + 10.0 * n, self.weight - 10.0 * self.wall);
        let root = (b * b - 4.0 * a * c).sqrt();
        // Both roots are positive; the smaller, without cancellation.
        -2.0 * c / (b + root)
    }
}

impl Objective for Barrier {
    fn dim(&self) -> usize {
        self.dim
    }
    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> Result<f64> {
        let room = self.wall - x.iter().sum::<f64>();
        if room <= 0.0 {
            self.refused += 1;
            gradient.fill(0.0);
            return match self.refusal {
                Refusal::Error => Err(no_value()),
                Refusal::Nan => Ok(f64::NAN),
                Refusal::Infinity => Ok(f64::INFINITY),
                Refusal::MinusInfinity => Ok(f64::NEG_INFINITY),
                Refusal::NanGradient => {
                    gradient[1] = f64::NAN;
                    Ok(-1e9)
                }
            };
        }
        for (slope, x) in gradient.iter_mut().zip(x) {
            *slope = 2.0 * (x - 5.0) + self.weight / room;
        }
        Ok(x.iter().map(|x| (x - 5.0).powi(2)).sum::<f64>() - self.weight * room.ln())
    }
}

/// Another objective whose call number `at` (from 1) fails for good.
pub(super) struct FailsAt<O> {
    pub inner: O,
    pub at: usize,
    pub calls: usize,
}

impl<O: Objective> Objective for FailsAt<O> {
    fn dim(&self) -> usize {
        self.inner.dim()
    }
    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> Result<f64> {
        self.calls += 1;
        if self.calls == self.at {
            return Err(Error::Interrupted);
        }
        self.inner.evaluate(x, gradient)
    }
}

/// The error of a covariance matrix at a bad place.
pub(super) fn no_value() -> Error {
    Error::NotPositiveDefinite {
        matrix: "Kuu",
        size: 3,
        pivot: 1,
        jitter: 1e-6,
        hint: "this is a test",
    }
}

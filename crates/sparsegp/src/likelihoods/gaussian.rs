//! Gaussian noise: y = f + ε, ε ~ N(0, σ²).

use crate::params::{Param, Shape, Transform};

/// Gaussian noise with one variance for all rows and target columns.
#[derive(Clone, Debug)]
pub struct Gaussian {
    /// σ², above [`Gaussian::SMALLEST`].
    pub variance: Param,
}

impl Gaussian {
    /// Lower bound of the noise variance: below, the bounds divide by rounding errors.
    pub const SMALLEST: f64 = 1e-8;
    /// Transform of the noise variance.
    pub const TRANSFORM: Transform = Transform::Softplus { lower: Self::SMALLEST };

    /// Noise of the given variance (raised to the lower bound).
    pub fn new(variance: f64) -> Self {
        let value = if variance > Self::SMALLEST { variance } else { 2.0 * Self::SMALLEST };
        Self { variance: Param::with(vec![value], Shape::Scalar, Self::TRANSFORM) }
    }

    /// log N(y; mean, variance + σ²), the density of an observation whose latent value is Gaussian.
    pub fn predict_log_density(&self, y: f64, mean: f64, variance: f64) -> f64 {
        let total = variance + self.variance.scalar();
        let residual = y - mean;
        -0.5 * ((2.0 * std::f64::consts::PI * total).ln() + residual * residual / total)
    }
}

//! Targets of flows as densities of samplers, and the other way round.

use super::joint::LogDensity;
use crate::error::Result;
use crate::flow::Target;
use crate::linalg::{MatMut, MatRef, column, column_mut};

/// A [`LogDensity`] of the samplers as a target: φ = −log π, one position after the other.
#[derive(Debug)]
pub struct OfDensity<T>(pub T);

impl<T: LogDensity> Target for OfDensity<T> {
    fn dim(&self) -> usize {
        self.0.dim()
    }

    fn evaluate(
        &mut self,
        x: MatRef<'_, f64>,
        phi: &mut [f64],
        mut gradient: MatMut<'_, f64>,
    ) -> Result<()> {
        for (n, phi) in phi.iter_mut().enumerate() {
            let slope = column_mut(gradient.as_mut(), n);
            *phi = -self.0.evaluate(column(x, n), slope);
            slope.iter_mut().for_each(|g| *g = -*g);
        }
        Ok(())
    }
}

/// A [`Target`] as a log density of the samplers, to see what a Gaussian misses. What the target refuses is −∞ there.
#[derive(Debug)]
pub struct AsDensity<T>(pub T);

impl<T: Target> LogDensity for AsDensity<T> {
    fn dim(&self) -> usize {
        self.0.dim()
    }

    fn value(&mut self, position: &[f64]) -> f64 {
        self.evaluate(position, &mut vec![0.0; position.len()])
    }

    fn evaluate(&mut self, position: &[f64], gradient: &mut [f64]) -> f64 {
        let x = MatRef::from_column_major_slice(position, position.len(), 1);
        let mut phi = [0.0];
        let dim = gradient.len();
        let slopes = MatMut::from_column_major_slice_mut(gradient, dim, 1);
        if self.0.evaluate(x, &mut phi, slopes).is_err() {
            gradient.fill(f64::NAN);
            return f64::NEG_INFINITY;
        }
        gradient.iter_mut().for_each(|g| *g = -*g);
        -phi[0]
    }
}

//! A banana.

use crate::error::{Error, Result};
use crate::flow::target::{Target, check_finite};
use crate::linalg::{MatMut, MatRef, column, column_mut};

/// φ(x) = ½(a x₁² + b(x₂ + c x₁² − d)²) on ℝ² (Galy-Fajou, Perrone & Opper 2021, §4): the Gaussian curve x₂ = d − c
/// x₁², as wide as b says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Banana {
    a: f64,
    b: f64,
    c: f64,
    d: f64,
}

impl Default for Banana {
    fn default() -> Self {
        Self { a: 0.01, b: 0.1, c: 0.1, d: 10.0 }
    }
}

impl Banana {
    /// Takes the four numbers; the precisions a and b are above 0.
    ///
    /// # Errors
    /// [`Error::Invalid`] for precisions that are not, [`Error::NonFinite`].
    pub fn new(a: f64, b: f64, c: f64, d: f64) -> Result<Self> {
        check_finite("a number of a banana", &[a, b, c, d])?;
        if a <= 0.0 || b <= 0.0 {
            let text = format!("a banana has precisions a and b above 0, not {a} and {b}");
            return Err(Error::Invalid(text));
        }
        Ok(Self { a, b, c, d })
    }

    /// Returns x₂ + c x₁² − d.
    fn bend(&self, x: &[f64]) -> f64 {
        x[1] + self.c * x[0] * x[0] - self.d
    }
}

impl Target for Banana {
    fn dim(&self) -> usize {
        2
    }

    fn evaluate(
        &mut self,
        x: MatRef<'_, f64>,
        phi: &mut [f64],
        mut gradient: MatMut<'_, f64>,
    ) -> Result<()> {
        let Self { a, b, c, .. } = *self;
        for (n, phi) in phi.iter_mut().enumerate() {
            let x = column(x, n);
            let bend = self.bend(x);
            *phi = 0.5 * (a * x[0] * x[0] + b * bend * bend);
            let slope = [a * x[0] + 2.0 * b * c * bend * x[0], b * bend];
            column_mut(gradient.as_mut(), n).copy_from_slice(&slope);
        }
        Ok(())
    }

    fn has_hessian(&self) -> bool {
        true
    }

    fn hessian_times(
        &mut self,
        x: &[f64],
        v: MatRef<'_, f64>,
        mut out: MatMut<'_, f64>,
    ) -> Result<()> {
        let Self { a, b, c, .. } = *self;
        let first = a + 2.0 * b * c * self.bend(x) + 4.0 * b * c * c * x[0] * x[0];
        let mixed = 2.0 * b * c * x[0];
        for k in 0..v.ncols() {
            let v = column(v, k);
            let product = [first * v[0] + mixed * v[1], mixed * v[0] + b * v[1]];
            column_mut(out.as_mut(), k).copy_from_slice(&product);
        }
        Ok(())
    }
}

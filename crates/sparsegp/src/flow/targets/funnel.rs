//! Neal's funnel.

use crate::error::{Error, Result};
use crate::flow::target::Target;
use crate::linalg::{MatMut, MatRef, column, column_mut};

/// x₁ ~ N(0, s²) and x_d ~ N(0, e^{x₁}) for d = 2, …, D (Neal 2003, §8), with φ = x₁²/2s² + ½(D − 1)x₁ + ½ e^{−x₁} Σ
/// x_d², without its constant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Funnel {
    dim: usize,
    variance: f64,
}

impl Funnel {
    /// Takes D ≥ 2 and s² > 0; Neal's have 10 and 9.
    ///
    /// # Errors
    /// [`Error::Invalid`] for numbers out of range.
    pub fn new(dim: usize, variance: f64) -> Result<Self> {
        if dim < 2 || !(variance > 0.0 && variance.is_finite()) {
            return Err(Error::Invalid(format!(
                "a funnel has two dimensions or more and a variance above 0, not {dim} and {variance}"
            )));
        }
        Ok(Self { dim, variance })
    }
}

impl Target for Funnel {
    fn dim(&self) -> usize {
        self.dim
    }

    fn evaluate(
        &mut self,
        x: MatRef<'_, f64>,
        phi: &mut [f64],
        mut gradient: MatMut<'_, f64>,
    ) -> Result<()> {
        let others = (self.dim - 1) as f64;
        for (n, phi) in phi.iter_mut().enumerate() {
            let (first, rest) = column(x, n).split_at(1);
            let (width, narrow) = (first[0], (-first[0]).exp());
            let square = narrow * rest.iter().map(|x| x * x).sum::<f64>();
            *phi = 0.5 * (width * width / self.variance + others * width + square);
            let slope = column_mut(gradient.as_mut(), n);
            slope[0] = width / self.variance + 0.5 * (others - square);
            slope[1..].iter_mut().zip(rest).for_each(|(g, x)| *g = narrow * x);
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
        let narrow = (-x[0]).exp();
        let square = narrow * x[1..].iter().map(|x| x * x).sum::<f64>();
        for k in 0..v.ncols() {
            let (v, out) = (column(v, k), column_mut(out.as_mut(), k));
            let mixed: f64 = x[1..].iter().zip(&v[1..]).map(|(x, v)| x * v).sum();
            out[0] = (1.0 / self.variance + 0.5 * square) * v[0] - narrow * mixed;
            for i in 1..x.len() {
                out[i] = narrow * (v[i] - x[i] * v[0]);
            }
        }
        Ok(())
    }
}

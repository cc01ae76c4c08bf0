//! A Gaussian.

use crate::error::Result;
use crate::flow::target::{Target, centred, check_dim, check_finite, check_symmetric};
use crate::linalg::{
    Accum, Cholesky, Jitter, Mat, MatMut, MatRef, column, gemm, par_for, sum_of_products,
};

/// N(μ, Λ⁻¹): φ(x) = ½(x − μ)ᵀΛ(x − μ), without its constant.
#[derive(Clone, Debug)]
pub struct Gaussian {
    mean: Vec<f64>,
    precision: Mat<f64>,
}

impl Gaussian {
    /// Takes a mean (D numbers) and a symmetric precision (D×D).
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if they differ in dimension or the precision is not symmetric to rounding,
    /// [`Error::NonFinite`](crate::Error::NonFinite), and
    /// [`Error::NotPositiveDefinite`](crate::Error::NotPositiveDefinite).
    pub fn new(mean: Vec<f64>, precision: Mat<f64>) -> Result<Self> {
        check_dim("rows of a precision", precision.nrows(), mean.len())?;
        check_dim("columns of a precision", precision.ncols(), mean.len())?;
        check_finite("the mean of a Gaussian", &mean)?;
        check_symmetric("the precision of a Gaussian", precision.as_ref())?;
        Cholesky::new(precision.as_ref(), Jitter::Absolute(0.0), "Λ")?;
        Ok(Self { mean, precision })
    }
}

impl Target for Gaussian {
    fn dim(&self) -> usize {
        self.mean.len()
    }

    fn evaluate(
        &mut self,
        x: MatRef<'_, f64>,
        phi: &mut [f64],
        mut gradient: MatMut<'_, f64>,
    ) -> Result<()> {
        let z = centred(x, &self.mean);
        let (precision, par) = (self.precision.as_ref(), par_for(self.mean.len()));
        gemm(gradient.as_mut(), Accum::Replace, precision, z.as_ref(), 1.0, par);
        for (n, phi) in phi.iter_mut().enumerate() {
            *phi = 0.5 * sum_of_products(column(gradient.as_ref(), n), column(z.as_ref(), n));
        }
        Ok(())
    }

    fn has_hessian(&self) -> bool {
        true
    }

    fn hessian_times(&mut self, _: &[f64], v: MatRef<'_, f64>, out: MatMut<'_, f64>) -> Result<()> {
        gemm(out, Accum::Replace, self.precision.as_ref(), v, 1.0, par_for(self.mean.len()));
        Ok(())
    }
}

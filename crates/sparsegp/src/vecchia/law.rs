//! Normal laws of rows with a sparse precision, which a factor or draws describe.

use crate::error::Result;
use crate::linalg::{
    Mat, MatMut, MatRef, Par, SelectedInverse, SparseCholesky, product, solve_lower,
};
use faer::reborrow::{Reborrow, ReborrowMut};
use std::fmt::Debug;

/// Gives a matrix of normal numbers of a shape.
pub(super) type Draw<'a> = dyn FnMut(usize, usize) -> Mat<f64> + 'a;

/// A normal law N(0, S). Rows are in the order of a plan.
pub(super) trait Law: Debug + Send + Sync {
    /// Returns variances, and covariances of rows that are neighbours.
    fn pairs(&self, watch: &dyn Fn() -> Result<()>) -> Result<Box<dyn Pairs + '_>>;

    /// Returns bᵀSb of vectors that are zero but at neighbours. `work` is memory that a thread keeps, empty at first.
    fn forms(&self, vectors: &[Vec<(u32, f64)>], work: &mut Mat<f64>) -> Result<Vec<f64>>;

    /// Returns WᵀSW, W of N×B.
    fn covariance(&self, w: MatRef<'_, f64>) -> Result<Mat<f64>>;

    /// Returns so many draws, N×K.
    fn drawn(&self, count: usize, normal: &mut Draw<'_>) -> Result<Mat<f64>>;
}

/// Variances and covariances of a [`Law`].
pub(super) trait Pairs: Sync {
    /// Returns the variances.
    fn diagonal(&self) -> Vec<f64>;

    /// Fills in L⁻¹ Cov L⁻ᵀ (n×n) of the covariances of a block, with the factor L of its prior: right where one of both rows responds.
    fn whitened(&self, rows: &[u32], l: MatRef<'_, f64>, out: MatMut<'_, f64>) -> Result<()>;
}

impl Law for SparseCholesky {
    fn pairs(&self, watch: &dyn Fn() -> Result<()>) -> Result<Box<dyn Pairs + '_>> {
        Ok(Box::new(self.inverse(watch)?))
    }

    fn forms(&self, vectors: &[Vec<(u32, f64)>], work: &mut Mat<f64>) -> Result<Vec<f64>> {
        if work.ncols() < vectors.len() {
            *work = Mat::zeros(self.size(), vectors.len());
        }
        Ok(SparseCholesky::forms(self, vectors, work))
    }

    fn covariance(&self, w: MatRef<'_, f64>) -> Result<Mat<f64>> {
        let w = self.whitened(w);
        Ok(product(w.transpose(), w.as_ref()))
    }

    fn drawn(&self, count: usize, normal: &mut Draw<'_>) -> Result<Mat<f64>> {
        Ok(SparseCholesky::drawn(self, normal(self.size(), count)))
    }
}

impl Pairs for SelectedInverse {
    fn diagonal(&self) -> Vec<f64> {
        SelectedInverse::diagonal(self)
    }

    fn whitened(&self, rows: &[u32], l: MatRef<'_, f64>, mut out: MatMut<'_, f64>) -> Result<()> {
        SelectedInverse::of_clique(self, rows, out.rb_mut());
        solve_lower(l, out.rb_mut(), Par::Seq);
        let mut turned = out.rb().transpose().to_owned();
        solve_lower(l, turned.as_mut(), Par::Seq);
        out.copy_from(&turned);
        Ok(())
    }
}

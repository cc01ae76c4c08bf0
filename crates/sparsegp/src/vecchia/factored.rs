//! The covariance of the rows of a block, with its factor.

use super::density::Rows;
use crate::error::Result;
use crate::kernels::{Kernel, Tape};
use crate::linalg::{Accum, Cholesky, Jitter, Mat, MatRef, Par, column_mut, gram_lower, sized};

/// The matrix that is factorised.
pub(super) const MATRIX: &str = "K + σ²I of neighbours";

/// Rows of a block with their covariance, in the memory of one thread.
pub(super) struct Factored {
    /// Their inputs.
    pub(super) x: Mat<f64>,
    /// K.
    pub(super) k: Mat<f64>,
    /// Features of the rows, M×n.
    pub(super) phi: Mat<f64>,
    pub(super) tape: Tape,
    /// Of G = K − ΦᵀΦ + diag s.
    pub(super) factor: Cholesky,
    g: Mat<f64>,
}

impl Factored {
    pub(super) fn new(slopes: bool) -> Self {
        let new = Mat::new;
        let tape = if slopes { Tape::recording() } else { Tape::off() };
        let factor = Cholesky::of_factor(new());
        Self { x: new(), k: new(), phi: new(), tape, factor, g: new() }
    }

    /// Takes other rows; `phi` are the features of all rows (M×N), of none where there are no inducing points.
    pub(super) fn renew(
        &mut self,
        kernel: &dyn Kernel,
        members: &[u32],
        rows: Rows<'_>,
        phi: MatRef<'_, f64>,
    ) -> Result<()> {
        let n = members.len();
        gather(&mut self.x, rows.x, members);
        sized(&mut self.k, n, n);
        kernel.evaluate(self.x.as_ref(), None, self.k.as_mut(), &mut self.tape);
        sized(&mut self.g, n, n);
        self.g.copy_from(&self.k);
        if phi.nrows() > 0 {
            gather_columns(&mut self.phi, phi, members);
            let own = self.phi.as_ref();
            gram_lower(self.g.as_mut(), Accum::Add, own, own, -1.0, Par::Seq);
        }
        for (i, row) in members.iter().enumerate() {
            self.g[(i, i)] += rows.noise[*row as usize];
        }
        // no jitter: with one it would be the model of another noise
        self.factor.renew(self.g.as_ref(), Jitter::Absolute(0.0), MATRIX)
    }
}

/// Copies rows of a matrix.
pub(super) fn gather(out: &mut Mat<f64>, from: MatRef<'_, f64>, rows: &[u32]) {
    sized(out, rows.len(), from.ncols());
    for j in 0..from.ncols() {
        for (own, row) in column_mut(out.as_mut(), j).iter_mut().zip(rows) {
            *own = from[(*row as usize, j)];
        }
    }
}

/// Copies columns of a matrix.
pub(super) fn gather_columns(out: &mut Mat<f64>, from: MatRef<'_, f64>, columns: &[u32]) {
    sized(out, from.nrows(), columns.len());
    for (j, column) in columns.iter().enumerate() {
        out.col_mut(j).copy_from(from.col(*column as usize));
    }
}

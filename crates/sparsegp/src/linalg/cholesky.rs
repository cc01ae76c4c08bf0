//! Cholesky factorisation with a jitter ladder, and its adjoint.

use super::{
    Mat, MatRef, Par, column_mut, invert_lower, par_for, solve_lower, solve_lower_transpose,
};
use crate::error::{Error, Result};
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt;
use serde::{Deserialize, Serialize};

/// What is added to the diagonal before factorising.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Jitter {
    /// This number, once.
    Absolute(f64),
    /// This fraction of the mean of the diagonal; ten times more at each failure, up to 1e-2.
    Relative(f64),
}

impl Default for Jitter {
    fn default() -> Self {
        Jitter::Relative(1e-6)
    }
}

const LARGEST_RELATIVE: f64 = 1e-2;

/// `A + jitter·I = L Lᵀ`.
#[derive(Clone, Debug)]
pub struct Cholesky {
    /// Lower-triangular factor, zeros above the diagonal.
    pub l: Mat<f64>,
    /// What was added to the diagonal.
    pub jitter: f64,
    /// The part of the jitter that is a multiple of the mean of the diagonal (0 for an absolute one).
    pub relative: f64,
}

impl Cholesky {
    /// Factorises a symmetric matrix, of which only the lower triangle is read.
    ///
    /// # Errors
    /// [`Error::NonFinite`] if the diagonal holds a NaN or an infinity,
    /// [`Error::NotPositiveDefinite`] if it fails at the largest jitter.
    pub fn new(a: MatRef<'_, f64>, jitter: Jitter, matrix: &'static str) -> Result<Self> {
        let n = a.nrows();
        let mean = (0..n).map(|i| a[(i, i)]).sum::<f64>() / n.max(1) as f64;
        if !mean.is_finite() {
            return Err(Error::NonFinite {
                what: format!("the diagonal of {matrix}"),
                value: mean,
            });
        }
        let par = par_for(n);
        let mut memory = MemBuffer::new(llt::factor::cholesky_in_place_scratch::<f64>(
            n,
            par,
            Default::default(),
        ));
        let mut relative = match jitter {
            Jitter::Absolute(_) => 0.0,
            Jitter::Relative(fraction) => fraction,
        };
        loop {
            let added = match jitter {
                Jitter::Absolute(value) => value,
                Jitter::Relative(_) => relative * mean.abs(),
            };
            let mut l = a.to_owned();
            for i in 0..n {
                l[(i, i)] += added;
            }
            let outcome = llt::factor::cholesky_in_place(
                l.as_mut(),
                Default::default(),
                par,
                MemStack::new(&mut memory),
                Default::default(),
            );
            match outcome {
                Ok(_) => {
                    // the factorisation leaves scratch above the diagonal
                    for j in 1..n {
                        column_mut(l.as_mut(), j)[..j].fill(0.0);
                    }
                    return Ok(Self { l, jitter: added, relative });
                }
                Err(llt::factor::LltError::NonPositivePivot { index }) => {
                    let next = if relative == 0.0 { 1e-10 } else { relative * 10.0 };
                    let exhausted = next > LARGEST_RELATIVE * 1.000_001;
                    if exhausted || matches!(jitter, Jitter::Absolute(_)) {
                        return Err(Error::NotPositiveDefinite {
                            matrix,
                            size: n,
                            pivot: index,
                            jitter: added,
                            hint: "likely causes: duplicate points, a very large lengthscale, \
                                   inputs that are not scaled; fewer inducing points or a larger \
                                   jitter help",
                        });
                    }
                    relative = next;
                }
            }
        }
    }

    /// Number of rows.
    pub fn size(&self) -> usize {
        self.l.nrows()
    }

    /// log|A + jitter·I|.
    pub fn log_det(&self) -> f64 {
        2.0 * (0..self.size()).map(|i| self.l[(i, i)].ln()).sum::<f64>()
    }

    /// (A + jitter·I)⁻¹, both triangles.
    pub fn inverse(&self) -> Mat<f64> {
        let n = self.size();
        let par = par_for(n);
        let mut inverse = Mat::zeros(n, n);
        let mut memory = MemBuffer::new(llt::inverse::inverse_scratch::<f64>(n, par));
        llt::inverse::inverse(inverse.as_mut(), self.l.as_ref(), par, MemStack::new(&mut memory));
        super::mirror_lower(inverse.as_mut());
        inverse
    }

    /// Solves `(A + jitter·I) X = B` for B with any number of columns.
    pub fn solve(&self, b: MatRef<'_, f64>) -> Mat<f64> {
        let mut x = b.to_owned();
        let par = par_for(self.size());
        solve_lower(self.l.as_ref(), x.as_mut(), par);
        solve_lower_transpose(self.l.as_ref(), x.as_mut(), par);
        x
    }

    /// A lower-triangular R with R Rᵀ = (A + jitter·I)⁻¹, without squaring the condition number:
    /// with J the reversal, J A J = L̃ L̃ᵀ gives A = U Uᵀ for the upper-triangular U = J L̃ J, and
    /// R = U⁻ᵀ.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`] as for [`Cholesky::new`].
    pub fn inverse_root(
        a: MatRef<'_, f64>,
        jitter: Jitter,
        matrix: &'static str,
    ) -> Result<Mat<f64>> {
        let n = a.nrows();
        let flipped = Mat::from_fn(n, n, |i, j| {
            let (i, j) = (n - 1 - i, n - 1 - j);
            if i >= j { a[(i, j)] } else { a[(j, i)] }
        });
        let factor = Self::new(flipped.as_ref(), jitter, matrix)?;
        let inverse = invert_lower(factor.l.as_ref(), par_for(n));
        // U⁻¹ = J L̃⁻¹ J is upper triangular; its transpose is R
        Ok(Mat::from_fn(n, n, |i, j| inverse[(n - 1 - j, n - 1 - i)]))
    }

    /// Adjoint of the factorisation: Ā from L̄ (lower triangle read), symmetric,
    /// Ā = sym(L⁻ᵀ P(LᵀL̄) L⁻¹) with P = lower triangle with halved diagonal (Murray 2016).
    pub fn adjoint(&self, l_bar: MatRef<'_, f64>) -> Mat<f64> {
        let n = self.size();
        let lower = Mat::from_fn(n, n, |i, j| if i >= j { l_bar[(i, j)] } else { 0.0 });
        let mut p = super::product(self.l.transpose(), lower.as_ref());
        for j in 0..n {
            p[(j, j)] *= 0.5;
            for i in 0..j {
                p[(i, j)] = 0.0;
            }
        }
        // sym(L⁻ᵀ P L⁻¹) = ½ L⁻ᵀ (P + Pᵀ) L⁻¹
        let symmetric = Mat::from_fn(n, n, |i, j| 0.5 * (p[(i, j)] + p[(j, i)]));
        super::sandwich_inverse(self.l.as_ref(), symmetric, Par::Seq)
    }

    /// Adds the part of the adjoint of A that comes from a jitter proportional to the mean of the
    /// diagonal: the factor is that of A + ε mean(diag A) I.
    pub fn pull_jitter(&self, a_bar: &mut Mat<f64>) {
        let n = self.size();
        if self.relative == 0.0 || n == 0 {
            return;
        }
        let trace: f64 = (0..n).map(|i| a_bar[(i, i)]).sum();
        let extra = self.relative * trace / n as f64;
        for i in 0..n {
            a_bar[(i, i)] += extra;
        }
    }
}

//! Roots of covariances as parameters.

use super::particles::shifted;
use super::target::{check_finite, check_finite_matrix, check_symmetric};
use crate::error::{Error, Result};
use crate::linalg::{
    Accum, Cholesky, Jitter, Mat, MatRef, column, column_mut, gemm, par_for, product, solve_lower,
    symmetric_eigen,
};

/// Γ with C = ΓΓᵀ, D×K in all.
#[derive(Clone, Debug, PartialEq)]
pub enum Factor {
    /// Any matrix of D×K, K ≤ D.
    Whole(Mat<f64>),
    /// Block-diagonal: indices of every block, with a factor of as many rows.
    Blocks(Vec<(Vec<usize>, Mat<f64>)>),
    /// Diagonal: D standard deviations, whose signs do not matter.
    Diagonal(Vec<f64>),
}

impl Factor {
    /// Takes the K widest directions of a covariance (D×D), each as long as its standard deviation: what K + 1
    /// particles can have of it.
    ///
    /// # Errors
    /// [`Error::Shape`] for a matrix that is not square or not symmetric to rounding, [`Error::Invalid`] for K out of range
    /// or directions without variance; as for [`symmetric_eigen`].
    pub fn of_covariance(covariance: MatRef<'_, f64>, rank: usize) -> Result<Self> {
        let dim = covariance.nrows();
        super::target::check_dim("columns of a covariance", covariance.ncols(), dim)?;
        check_symmetric("a covariance", covariance)?;
        let (values, vectors) = symmetric_eigen(covariance)?;
        let at = |k: usize| dim - 1 - k;
        let widest = (1..=dim).contains(&rank) && values[at(rank - 1)] > 0.0;
        if !widest {
            return Err(Error::Invalid(format!(
                "a covariance of {dim} dimensions with the eigenvalues {values:?} has no factor of {rank} columns: take \
                 as many as it has eigenvalues above 0, at most"
            )));
        }
        let entry = |i: usize, k: usize| vectors[(i, at(k))] * values[at(k)].sqrt();
        Ok(Factor::Whole(Mat::from_fn(dim, rank, entry)))
    }

    /// Checks the shape for D dimensions and that all numbers are finite.
    ///
    /// # Errors
    /// [`Error::Shape`] for other sizes or more columns than rows, [`Error::NonFinite`], and [`Error::Invalid`] for
    /// blocks that do not have every coordinate once.
    pub fn check(&self, dim: usize) -> Result<()> {
        let fits = |rows: usize, factor: &Mat<f64>| {
            if factor.nrows() == rows && (1..=rows).contains(&factor.ncols()) {
                return check_finite_matrix("a factor of a covariance", factor.as_ref());
            }
            Err(Error::Shape {
                what: "a factor of a covariance".into(),
                expected: format!("{rows} rows and from 1 to {rows} columns"),
                found: format!("{}×{}", factor.nrows(), factor.ncols()),
            })
        };
        match self {
            Factor::Whole(factor) => fits(dim, factor),
            Factor::Blocks(blocks) => {
                let indices = blocks.iter().map(|(rows, _)| rows.clone()).collect();
                super::Blocks::Of(indices).check(dim)?;
                blocks.iter().try_for_each(|(rows, factor)| fits(rows.len(), factor))
            }
            Factor::Diagonal(deviations) => {
                super::target::check_dim("standard deviations", deviations.len(), dim)?;
                check_finite("a standard deviation", deviations)
            }
        }
    }

    /// Returns how many standard normal numbers make a draw.
    pub fn width(&self) -> usize {
        match self {
            Factor::Whole(factor) => factor.ncols(),
            Factor::Blocks(blocks) => blocks.iter().map(|(_, factor)| factor.ncols()).sum(),
            Factor::Diagonal(deviations) => deviations.len(),
        }
    }

    /// Returns μ1ᵀ + ΓE (D×S) for E of K×S.
    pub(super) fn positions(&self, mean: &[f64], e: MatRef<'_, f64>) -> Mat<f64> {
        let centred = match self {
            Factor::Whole(factor) => product(factor.as_ref(), e),
            Factor::Blocks(blocks) => {
                let (mut out, mut from) = (Mat::zeros(mean.len(), e.ncols()), 0);
                for (rows, factor) in blocks {
                    let own = product(factor.as_ref(), e.subrows(from, factor.ncols()));
                    spread_rows(&mut out, rows, &own);
                    from += factor.ncols();
                }
                out
            }
            Factor::Diagonal(deviations) => {
                Mat::from_fn(mean.len(), e.ncols(), |i, s| deviations[i] * e[(i, s)])
            }
        };
        shifted(centred, mean)
    }

    /// Returns log|ΓᵀΓ|, which is log|C| for K = D.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`] for factors that have lost their rank.
    pub fn log_determinant(&self) -> Result<f64> {
        let of = |factor: &Mat<f64>| Ok(gram(factor)?.log_det());
        match self {
            Factor::Whole(factor) => of(factor),
            Factor::Blocks(blocks) => blocks.iter().map(|(_, factor)| of(factor)).sum(),
            Factor::Diagonal(deviations) => {
                Ok(deviations.iter().map(|s| (s * s).ln()).sum::<f64>())
            }
        }
    }

    /// Returns Σ_b ‖(Ψ_b − Π_b)‖²_F = Σ_b tr F_b(Γ_bᵀΓ_b)⁻¹F_bᵀ of a flow F = (I − Ψ)Γ of the same shape, where Ψ = ΨΠ: no
    /// difference of large numbers.
    pub(super) fn residual(&self, flow: &Factor) -> Result<f64> {
        if let (Factor::Diagonal(deviations), Factor::Diagonal(flow)) = (self, flow) {
            return Ok(deviations.iter().zip(flow).map(|(s, f)| (f / s) * (f / s)).sum());
        }
        let mut sum = 0.0;
        for (own, flow) in self.parts().iter().zip(&flow.parts()) {
            let mut right = flow.transpose().to_owned();
            solve_lower(gram(own)?.l.as_ref(), right.as_mut(), par_for(own.nrows()));
            sum += right.squared_norm_l2();
        }
        Ok(sum)
    }

    /// Returns −ΓΓᵀg for g of D numbers.
    pub(super) fn natural(&self, g: &[f64]) -> Vec<f64> {
        let of = |factor: &Mat<f64>, g: &[f64]| -> Vec<f64> {
            let g = MatRef::from_column_major_slice(g, g.len(), 1);
            let moved = product(factor.as_ref(), product(factor.transpose(), g).as_ref());
            column(moved.as_ref(), 0).iter().map(|v| -v).collect()
        };
        match self {
            Factor::Whole(factor) => of(factor, g),
            Factor::Blocks(blocks) => {
                let mut out = vec![0.0; g.len()];
                for (rows, factor) in blocks {
                    let own: Vec<f64> = rows.iter().map(|i| g[*i]).collect();
                    rows.iter().zip(of(factor, &own)).for_each(|(i, v)| out[*i] = v);
                }
                out
            }
            Factor::Diagonal(deviations) => {
                deviations.iter().zip(g).map(|(s, g)| -s * s * g).collect()
            }
        }
    }

    /// Returns Γ − (1/S) G(Eᵀ(ΓᵀΓ)) for gradients G (D×S) at the draws of E (K×S).
    pub(super) fn flow(&self, g: MatRef<'_, f64>, e: MatRef<'_, f64>) -> Self {
        let scale = -1.0 / g.ncols() as f64;
        let of = |factor: &Mat<f64>, g: MatRef<'_, f64>, e: MatRef<'_, f64>| {
            let gram = product(factor.transpose(), factor.as_ref());
            // D×K(K + S), with nothing of D×D
            let right = product(e.transpose(), gram.as_ref());
            let mut out = factor.clone();
            gemm(out.as_mut(), Accum::Add, g, right.as_ref(), scale, par_for(g.nrows()));
            out
        };
        match self {
            Factor::Whole(factor) => Factor::Whole(of(factor, g, e)),
            Factor::Blocks(blocks) => {
                let mut from = 0;
                let block = |(rows, factor): &(Vec<usize>, Mat<f64>)| {
                    let own = super::energy::rows_of(g, rows);
                    let draws = e.subrows(from, factor.ncols()).to_owned();
                    from += factor.ncols();
                    (rows.clone(), of(factor, own.as_ref(), draws.as_ref()))
                };
                Factor::Blocks(blocks.iter().map(block).collect())
            }
            Factor::Diagonal(deviations) => {
                let mut out = deviations.clone();
                for s in 0..g.ncols() {
                    for (i, out) in out.iter_mut().enumerate() {
                        *out += scale * g[(i, s)] * e[(i, s)] * deviations[i] * deviations[i];
                    }
                }
                Factor::Diagonal(out)
            }
        }
    }

    /// Returns the factors as matrices, to move them.
    pub(super) fn parts(&self) -> Vec<Mat<f64>> {
        match self {
            Factor::Whole(factor) => vec![factor.clone()],
            Factor::Blocks(blocks) => blocks.iter().map(|(_, factor)| factor.clone()).collect(),
            Factor::Diagonal(deviations) => {
                vec![Mat::from_fn(deviations.len(), 1, |i, _| deviations[i])]
            }
        }
    }

    /// Adds to part `at` of [`Factor::parts`].
    pub(super) fn add(&mut self, at: usize, by: MatRef<'_, f64>) {
        match self {
            Factor::Whole(factor) => *factor += by,
            Factor::Blocks(blocks) => blocks[at].1 += by,
            Factor::Diagonal(deviations) => {
                deviations.iter_mut().zip(column(by, 0)).for_each(|(s, by)| *s += by);
            }
        }
    }

    /// Returns C = ΓΓᵀ, D×D: for small D only.
    ///
    /// # Errors
    /// As for [`Factor::check`].
    pub fn covariance(&self) -> Result<Mat<f64>> {
        let dim = match self {
            Factor::Whole(factor) => factor.nrows(),
            Factor::Blocks(blocks) => blocks.iter().map(|(rows, _)| rows.len()).sum(),
            Factor::Diagonal(deviations) => deviations.len(),
        };
        self.check(dim)?;
        Ok(match self {
            Factor::Whole(factor) => product(factor.as_ref(), factor.transpose()),
            Factor::Blocks(blocks) => {
                let mut out = Mat::zeros(dim, dim);
                for (rows, factor) in blocks {
                    let own = product(factor.as_ref(), factor.transpose());
                    for (j, to) in rows.iter().enumerate() {
                        let column = column_mut(out.as_mut(), *to);
                        rows.iter().enumerate().for_each(|(i, row)| column[*row] = own[(i, j)]);
                    }
                }
                out
            }
            Factor::Diagonal(deviations) => {
                let square = |i: usize| deviations[i] * deviations[i];
                Mat::from_fn(dim, dim, |i, j| if i == j { square(i) } else { 0.0 })
            }
        })
    }

    /// Tells whether all numbers are finite.
    pub(super) fn is_finite(&self) -> bool {
        self.parts().iter().all(|part| check_finite_matrix("", part.as_ref()).is_ok())
    }
}

/// Returns the factor of ΓᵀΓ, K×K.
fn gram(factor: &Mat<f64>) -> Result<Cholesky> {
    let k = factor.ncols();
    let mut gram = Mat::zeros(k, k);
    let gamma = factor.as_ref();
    gemm(gram.as_mut(), Accum::Replace, gamma.transpose(), gamma, 1.0, par_for(k));
    let lost = "the factor of the covariance has lost its rank: take smaller rates";
    Cholesky::new(gram.as_ref(), Jitter::Absolute(0.0), "ΓᵀΓ").map_err(|e| e.with_hint(lost))
}

/// Puts the rows of a block in their places.
fn spread_rows(out: &mut Mat<f64>, rows: &[usize], own: &Mat<f64>) {
    for s in 0..own.ncols() {
        let to = column_mut(out.as_mut(), s);
        rows.iter().zip(column(own.as_ref(), s)).for_each(|(i, v)| to[*i] = *v);
    }
}

//! Features φ = Lᵀk of the root L of T.

use crate::engine::{Basis, CholeskyBasis, Projection};
use crate::linalg::{
    Accum, Mat, MatMut, MatRef, Precision, Structure, mirror_lower, multiply_lower, par_for,
    sandwich, sandwich_inverse, sized, solve_lower, solve_lower_transpose, structured,
    structured_in,
};

/// A root L of T, LLᵀ = T.
#[derive(Clone, Debug)]
pub enum Root {
    /// L = L̃⁻ᵀ with K̃ = L̃L̃ᵀ: T is the inverse of K̃, features are solves.
    Solve(CholeskyBasis),
    /// A lower-triangular L: features are products.
    Product(Mat<f64>),
}

const LOWER: Structure = Structure::TriangularLower;
const UPPER: Structure = Structure::TriangularUpper;
const WHOLE: Structure = Structure::Rectangular;

impl Root {
    /// Computes Lᵀx, into `out`.
    pub fn features(&self, x: MatRef<f64>, out: &mut Mat<f64>) {
        sized(out, x.nrows(), x.ncols());
        let par = par_for(x.nrows());
        match self {
            Self::Solve(basis) => {
                out.copy_from(x);
                solve_lower(basis.factor().l.as_ref(), out.as_mut(), par);
            }
            Self::Product(l) => {
                let (out, l) = ((out.as_mut(), WHOLE), (l.transpose(), UPPER));
                structured(out, Accum::Replace, l, (x, WHOLE), 1.0, par);
            }
        }
    }

    /// Computes Lx, into `out`.
    pub fn times(&self, x: MatRef<f64>, out: &mut Mat<f64>) {
        sized(out, x.nrows(), x.ncols());
        let par = par_for(x.nrows());
        match self {
            Self::Solve(basis) => {
                out.copy_from(x);
                solve_lower_transpose(basis.factor().l.as_ref(), out.as_mut(), par);
            }
            Self::Product(l) => {
                let (out, l) = ((out.as_mut(), WHOLE), (l.as_ref(), LOWER));
                structured(out, Accum::Replace, l, (x, WHOLE), 1.0, par);
            }
        }
    }

    /// Computes L⁻¹x, or L⁻ᵀx where `transposed`, into `out`: what a mean that is not
    /// preconditioned takes.
    pub fn solve(&self, x: MatRef<f64>, transposed: bool, out: &mut Mat<f64>) {
        sized(out, x.nrows(), x.ncols());
        let par = par_for(x.nrows());
        match self {
            Self::Solve(basis) => {
                let l = basis.factor().l.as_ref();
                let factor = if transposed { (l, LOWER) } else { (l.transpose(), UPPER) };
                structured((out.as_mut(), WHOLE), Accum::Replace, factor, (x, WHOLE), 1.0, par);
            }
            Self::Product(l) => {
                out.copy_from(x);
                if transposed {
                    solve_lower_transpose(l.as_ref(), out.as_mut(), par);
                } else {
                    solve_lower(l.as_ref(), out.as_mut(), par);
                }
            }
        }
    }

    /// Computes LALᵀ for a symmetric A, both triangles, into `out`; `work` is of the same size.
    /// Products are of the precision given.
    pub(super) fn sandwich(
        &self,
        a: &Mat<f64>,
        products: Precision,
        work: &mut Mat<f64>,
        out: &mut Mat<f64>,
    ) {
        let m = a.nrows();
        sized(out, m, m);
        match self {
            Self::Solve(basis) => {
                out.copy_from(a);
                return sandwich(basis.factor().l.as_ref(), out.as_mut(), par_for(m));
            }
            Self::Product(l) => {
                sized(work, m, m);
                let par = par_for(m);
                let l = l.as_ref();
                let half = (work.as_mut(), WHOLE);
                let a = (a.as_ref(), WHOLE);
                structured_in(products, half, Accum::Replace, (l, LOWER), a, 1.0, par);
                let (half, lt) = ((work.as_ref(), WHOLE), (l.transpose(), UPPER));
                let out = (out.as_mut(), LOWER);
                structured_in(products, out, Accum::Replace, half, lt, 1.0, par);
            }
        }
        mirror_lower(out.as_mut());
    }

    /// Returns log|T|.
    pub fn log_det(&self) -> f64 {
        match self {
            Self::Solve(basis) => -basis.factor().log_det(),
            Self::Product(l) => 2.0 * (0..l.nrows()).map(|j| l[(j, j)].ln()).sum::<f64>(),
        }
    }
}

impl Basis for Root {
    fn projection(&self) -> Projection<'_> {
        match self {
            Self::Solve(basis) => basis.projection(),
            Self::Product(l) => Projection::Product(l.as_ref()),
        }
    }

    fn project(&self, k: MatMut<f64>) {
        match self {
            Self::Solve(basis) => basis.project(k),
            Self::Product(l) => multiply_lower(k, l.as_ref(), false),
        }
    }

    fn pull(&self, phi_bar: MatMut<f64>) {
        match self {
            Self::Solve(basis) => basis.pull(phi_bar),
            Self::Product(l) => multiply_lower(phi_bar, l.as_ref(), true),
        }
    }

    fn pull_through(&self, a: Mat<f64>) -> Mat<f64> {
        match self {
            Self::Solve(basis) => {
                let par = par_for(a.nrows());
                sandwich_inverse(basis.factor().l.as_ref(), a, par)
            }
            Self::Product(_) => {
                let (mut work, mut out) = (Mat::new(), Mat::new());
                self.sandwich(&a, Precision::Double, &mut work, &mut out);
                out
            }
        }
    }

    fn weights(&self, m: MatRef<f64>) -> Mat<f64> {
        let mut out = Mat::new();
        self.times(m, &mut out);
        out
    }
}

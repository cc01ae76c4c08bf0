//! What the points of a process explain of prior variances, by products in double or in single precision.

use super::process::Process;
use super::rounding::part;
use crate::linalg::{
    Accum, Mat, MatMut, MatRef, Par, Real, add_row_dots, column, column_mut, gemm, sized,
    solve_lower, times_triangular,
};
use faer::reborrow::{Reborrow, ReborrowMut};
use std::ops::RangeInclusive;

/// What rows are multiplied by for their variances.
pub(super) struct Operands<'a, T: Real> {
    /// L of φ = L⁻¹k, or of φ = Lᵀk where there is E.
    pub(super) lower: MatRef<'a, T>,
    /// E, of R-SVGP.
    pub(super) residual: Option<MatRef<'a, T>>,
    /// Roots R: none, one that all latent functions share, or one for each.
    pub(super) roots: &'a [Mat<T>],
    /// Gᵀ for every root that has one ([`Process`]).
    pub(super) explained: &'a [Option<Mat<T>>],
}

impl<T: Real> Operands<'_, T> {
    /// Computes the variances of latent functions (into `out`, B×l) at rows with these prior
    /// variances and covariances with the points; none below this part of the prior.
    pub(super) fn variances(
        &self,
        prior: &[f64],
        k: MatRef<'_, T>,
        part: f64,
        mut out: MatMut<'_, f64>,
    ) {
        // with one root, or none, all have the first one's
        let distinct = if self.roots.len().max(self.explained.len()) < 2 { 1 } else { out.ncols() };
        let mut phi: Option<Mat<T>> = None;
        let mut features = Mat::new();
        for at in 0..distinct {
            let variance = column_mut(out.rb_mut(), at);
            variance.fill(0.0);
            if let Some(Some(g)) = self.explained.get(at) {
                sized(&mut features, k.nrows(), k.ncols());
                let own = features.as_mut();
                times_triangular(own, Accum::Replace, k, g.transpose(), true, Par::Seq);
                add_row_dots(features.as_ref(), features.as_ref(), variance);
            } else {
                let phi = phi.get_or_insert_with(|| self.features(k));
                self.add_explained(at, phi.as_ref(), variance);
            }
            for (v, prior) in variance.iter_mut().zip(prior) {
                let (left, least) = (prior - *v, part * prior);
                *v = match left {
                    // with a kernel that grows: ∞ − ∞ is not a number, and what is left is as large
                    _ if *prior == f64::INFINITY => f64::INFINITY,
                    left if left < least => least,
                    left => left,
                };
            }
        }
        for at in distinct..out.ncols() {
            let (from, mut to) = out.rb_mut().split_at_col_mut(at);
            column_mut(to.rb_mut(), 0).copy_from_slice(column(from.rb(), 0));
        }
    }

    /// Returns φ of rows, B×M.
    fn features(&self, k: MatRef<'_, T>) -> Mat<T> {
        let mut phi = Mat::new();
        sized(&mut phi, k.nrows(), k.ncols());
        if self.residual.is_some() {
            times_triangular(phi.as_mut(), Accum::Replace, k, self.lower, false, Par::Seq);
        } else {
            phi.copy_from(k);
            solve_lower(self.lower, phi.as_mut().transpose_mut(), Par::Seq);
        }
        phi
    }

    /// Adds ‖φ‖² − ‖Rᵀφ‖², or ‖φ‖² − φᵀEφ, of features φ, into zeros.
    fn add_explained(&self, at: usize, phi: MatRef<'_, T>, out: &mut [f64]) {
        let mut image = Mat::new();
        if let Some(e) = self.residual {
            sized(&mut image, phi.nrows(), phi.ncols());
            image.copy_from(phi);
            gemm(image.as_mut(), Accum::Add, phi, e, T::of(-1.0), Par::Seq);
            return add_row_dots(image.as_ref(), phi, out);
        }
        add_row_dots(phi, phi, out);
        let place = crate::kernels::place_of(self.roots.len(), at);
        if let Some(root) = self.roots.get(place) {
            sized(&mut image, phi.nrows(), root.ncols());
            times_triangular(image.as_mut(), Accum::Replace, phi, root.as_ref(), false, Par::Seq);
            let mut kept = vec![0.0; out.len()];
            add_row_dots(image.as_ref(), image.as_ref(), &mut kept);
            out.iter_mut().zip(&kept).for_each(|(explained, kept)| *explained -= kept);
        }
    }
}

/// No correlation is below this in single precision: products of smaller ones would be subnormal.
const FLOOR: f64 = 1e-18;

/// Prior variances of rows, as shares of the usual one, that products in single precision are for: under a kernel that grows, a
/// row far away has covariances beyond its numbers.
const USUAL: RangeInclusive<f64> = 1e-8..=1e8;
/// Usual prior variances whose covariances and roots it can hold.
const HELD: RangeInclusive<f64> = 1e-12..=1e12;

/// The operands of a process, rounded to single precision.
#[derive(Clone, Debug)]
pub(super) struct Rounded {
    /// The median of the prior variances of some rows.
    usual: f64,
    lower: Mat<f32>,
    residual: Option<Mat<f32>>,
    roots: Vec<Mat<f32>>,
    explained: Vec<Option<Mat<f32>>>,
    part: f64,
}

/// Returns a matrix in single precision.
fn rounded(a: MatRef<'_, f64>) -> Mat<f32> {
    let mut own = Mat::new();
    f32::rounded(a, &mut own);
    own
}

impl Rounded {
    /// Prepares what the variances of a process with inducing points take at rows such as these.
    pub(super) fn of(process: &Process, rows: MatRef<'_, f64>) -> Self {
        let own = process.operands();
        let mut prior = vec![0.0; rows.nrows()];
        process.kernel.diag(rows, &mut prior);
        prior.sort_unstable_by(f64::total_cmp);
        // L and R are not read where one product takes their place
        let whole = !own.explained.is_empty() && own.explained.iter().all(Option::is_some);
        let each = |all: &[Mat<f64>]| all.iter().map(|a| rounded(a.as_ref())).collect();
        let of_roots = |a: &Option<Mat<f64>>| a.as_ref().map(|a| rounded(a.as_ref()));
        Self {
            usual: prior.get(prior.len() / 2).copied().unwrap_or(1.0),
            lower: if whole { Mat::new() } else { rounded(own.lower) },
            residual: own.residual.map(rounded),
            roots: if whole { Vec::new() } else { each(own.roots) },
            explained: own.explained.iter().map(of_roots).collect(),
            part: part(process.points.nrows()) * f64::from(f32::EPSILON) / f64::EPSILON,
        }
    }

    /// Returns the usual prior variance, if single precision cannot hold what comes of it.
    pub(super) fn beyond(&self) -> Option<f64> {
        Some(self.usual).filter(|usual| !HELD.contains(usual))
    }

    /// Computes the variances of latent functions, as [`Operands::variances`] has them; of rows
    /// whose prior variance is far from the usual one in double precision.
    pub(super) fn variances(
        &self,
        process: &Process,
        prior: &[f64],
        k: &mut Mat<f64>,
        mut out: MatMut<'_, f64>,
    ) {
        let mut own = Mat::<f32>::new();
        f32::take(&mut own, k, true, FLOOR * self.usual);
        let operands = Operands {
            lower: self.lower.as_ref(),
            residual: self.residual.as_ref().map(|e| e.as_ref()),
            roots: &self.roots,
            explained: &self.explained,
        };
        operands.variances(prior, own.as_ref(), self.part, out.rb_mut());
        let far = |prior: f64| !USUAL.contains(&(prior / self.usual));
        if prior.iter().any(|prior| far(*prior)) {
            // all rows, so that bits do not depend on how many there are
            let mut double = Mat::zeros(out.nrows(), out.ncols());
            process.variances(prior, k, double.as_mut());
            for i in (0..prior.len()).filter(|i| far(prior[*i])) {
                (0..out.ncols()).for_each(|l| out[(i, l)] = double[(i, l)]);
            }
        }
    }
}

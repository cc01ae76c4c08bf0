//! One block of rows where features are products, φ = Lᵀk(x, Z) and s = φᵀEφ: in double precision, or in single
//! precision from the covariances to what the kernel gets back.

use crate::linalg::{
    Accum, Mat, MatMut, MatRef, Par, Real, Structure, add_row_dots, add_scaled_rows, gemm,
    scale_rows, shared, sized,
};

const WHOLE: Structure = Structure::Rectangular;
const LOWER: Structure = Structure::TriangularLower;
const UPPER: Structure = Structure::TriangularUpper;

/// Buffers of one thread for one process.
#[derive(Debug)]
pub(super) struct ByProducts<T> {
    /// Φ, ΦE and what comes and goes, B×M.
    phi: Mat<T>,
    phi_e: Mat<T>,
    other: Mat<T>,
    /// Few columns.
    small: Mat<T>,
    /// What goes into double precision on its way there.
    result: Mat<T>,
}

impl<T: Real> Default for ByProducts<T> {
    fn default() -> Self {
        let none = Mat::new;
        Self { phi: none(), phi_e: none(), other: none(), small: none(), result: none() }
    }
}

impl<T: Real> ByProducts<T> {
    /// From covariances (B×M) the features; adds ‖φ‖² of every row to `norms` and φᵀm to `mu` (B×l).
    pub(super) fn features(
        &mut self,
        k: MatRef<f64>,
        l: MatRef<T>,
        norms: &mut [f64],
        mean: MatRef<f64>,
        mu: MatMut<f64>,
    ) {
        sized(&mut self.phi, k.nrows(), k.ncols());
        let (phi, k) = ((self.phi.as_mut(), WHOLE), (T::rounded(k, &mut self.other), WHOLE));
        shared(phi, Accum::Replace, k, (l, LOWER), T::of(1.0), Par::Seq);
        let phi = self.phi.as_ref();
        add_row_dots(phi, phi, norms);
        let mean = T::rounded(mean, &mut self.small);
        let (mu, phi, mean) = ((mu, WHOLE), (phi, WHOLE), (mean, WHOLE));
        T::product_into(mu, Accum::Add, phi, mean, 1.0, &mut self.result, Par::Seq);
    }

    /// Adds s of every row to `variances`.
    pub(super) fn variances(&mut self, e: MatRef<T>, variances: &mut [f64]) {
        let phi = self.phi.as_ref();
        sized(&mut self.phi_e, phi.nrows(), phi.ncols());
        gemm(self.phi_e.as_mut(), Accum::Replace, phi, e, T::of(1.0), Par::Seq);
        add_row_dots(self.phi_e.as_ref(), phi, variances);
    }

    /// Φa into `target`, M×l.
    pub(super) fn times_slopes(&mut self, a: MatRef<f64>, target: MatMut<f64>) {
        let a = T::rounded(a, &mut self.small);
        let (phi, a) = ((self.phi.transpose(), WHOLE), (a, WHOLE));
        let (target, memory) = ((target, WHOLE), &mut self.result);
        T::product_into(target, Accum::Replace, phi, a, 1.0, memory, Par::Seq);
    }

    /// Features with each row multiplied by its weight.
    pub(super) fn weigh(&mut self, weights: &[f64]) {
        sized(&mut self.other, self.phi.nrows(), self.phi.ncols());
        scale_rows(self.other.as_mut(), self.phi.as_ref(), weights);
    }

    /// The lower triangle of `scale`·Φ diag(weights) Φᵀ into `target`, M×M, of those that [`ByProducts::weigh`] was told.
    pub(super) fn gram(&mut self, target: MatMut<f64>, accum: Accum, scale: f64, par: Par) {
        let factors = ((self.phi.transpose(), WHOLE), (self.other.as_ref(), WHOLE));
        let (target, memory) = ((target, LOWER), &mut self.result);
        T::product_into(target, accum, factors.0, factors.1, scale, memory, par);
    }

    /// Φ̄ = m aᵀ + 2EΦ diag(b) − 2Φ diag(c), with b and c summed over the latent functions; a is B×l, m is M×l.
    pub(super) fn slopes(&mut self, a: MatRef<f64>, mean: MatRef<f64>, b: &[f64], c: &[f64]) {
        let bar = &mut self.other;
        sized(bar, self.phi.nrows(), self.phi.ncols());
        let a = T::rounded(a, &mut self.small);
        let mean = T::rounded(mean, &mut self.result);
        gemm(bar.as_mut(), Accum::Replace, a, mean.transpose(), T::of(1.0), Par::Seq);
        add_scaled_rows(bar.as_mut(), self.phi_e.as_ref(), b, 2.0);
        add_scaled_rows(bar.as_mut(), self.phi.as_ref(), c, -2.0);
    }

    /// K̄uf = LΦ̄ of what [`ByProducts::slopes`] has left, into `target` (B×M).
    pub(super) fn back(&mut self, l: MatRef<T>, target: &mut Mat<f64>) {
        let bar = self.other.as_ref();
        sized(target, bar.nrows(), bar.ncols());
        let (bar, l, target) = ((bar, WHOLE), (l.transpose(), UPPER), (target.as_mut(), WHOLE));
        T::product_into(target, Accum::Replace, bar, l, 1.0, &mut self.result, Par::Seq);
    }
}

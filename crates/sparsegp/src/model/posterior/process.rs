//! Latent functions that share covariance function and points: features, means, variances.

use super::operands::Operands;
use super::rounding::part;
use crate::inverse_free::{LSpace, Root};
use crate::kernels::inducing::{AtPoints, Inducing};
use crate::kernels::{Kernel, covariances, place_of};
use crate::linalg::{
    Accum, Cholesky, Mat, MatMut, MatRef, Par, gemm, inner_root, invert_lower, mirror_lower,
    multiply_lower, par_for, product, sized, solve_lower, solve_lower_transpose, times_triangular,
    transpose_lower,
};
use faer::reborrow::ReborrowMut;
use std::ops::Range;

/// Latent functions that share covariance function and points.
#[derive(Clone, Debug)]
pub(super) struct Process {
    pub(super) latents: Range<usize>,
    pub(super) kernel: Box<dyn Kernel>,
    pub(super) points: Mat<f64>,
    pub(super) factor: Cholesky,
    /// None, one that all share, or one for each.
    pub(super) roots: Vec<Mat<f64>>,
    /// L⁻ᵀm.
    pub(super) weights: Mat<f64>,
    /// For every root: a lower-triangular G with GᵀG = L⁻ᵀ(I − RRᵀ)L⁻¹, so that k(x, x) − ‖Gk‖² is
    /// the variance and one triangular product finds it; kept as Gᵀ, by which rows are multiplied
    /// faster. None where RRᵀ is not below I.
    pub(super) explained: Vec<Option<Mat<f64>>>,
    /// Of q kept as pseudo-observations.
    pub(super) pseudo: Option<Pseudo>,
}

/// What is known of q where it is kept as pseudo-observations.
#[derive(Clone, Debug)]
pub(super) struct Pseudo {
    /// L and E, for R-SVGP; the factor of its process is empty.
    pub(super) products: Option<(Mat<f64>, Mat<f64>)>,
    /// Of Kuu.
    pub(super) jitter: f64,
}

/// What is added to the diagonal of I − RRᵀ, times M: what rounding may have taken from it.
/// Variances are lower by so much of the prior's.
const ROUNDING: f64 = 4.0 * f64::EPSILON;

/// Returns Gᵀ, for G of [`Process`], from L⁻¹ and a root.
fn explained(inverse: &Mat<f64>, root: &Mat<f64>) -> Option<Mat<f64>> {
    let m = root.nrows();
    if root.ncols() != m {
        return None;
    }
    let par = par_for(m);
    let square = product(root.as_ref(), root.transpose());
    let diagonal = 1.0 + ROUNDING * m as f64;
    let left = Mat::from_fn(m, m, |i, j| if i == j { diagonal } else { 0.0 } - square[(i, j)]);
    let u = inner_root(left.as_ref())?;
    let mut g = Mat::zeros(m, m);
    times_triangular(g.as_mut(), Accum::Replace, u.as_ref(), inverse.as_ref(), false, par);
    let mut by_rows = Mat::new();
    sized(&mut by_rows, m, m);
    transpose_lower(by_rows.as_mut(), g.as_ref());
    Some(by_rows)
}

impl Process {
    /// Creates the process; `mean` is the whitened mean of its latent functions.
    pub(super) fn new(
        latents: Range<usize>,
        kernel: Box<dyn Kernel>,
        points: Mat<f64>,
        factor: Cholesky,
        roots: Vec<Mat<f64>>,
        mean: MatRef<f64>,
    ) -> Self {
        let mut weights = mean.to_owned();
        solve_lower_transpose(factor.l.as_ref(), weights.as_mut(), par_for(mean.nrows()));
        let m = factor.size();
        let mut inverse = Mat::new();
        if !roots.is_empty() {
            sized(&mut inverse, m, m);
            invert_lower(inverse.as_mut(), factor.l.as_ref(), par_for(m));
        }
        let explained = roots.iter().map(|root| explained(&inverse, root)).collect();
        Self { latents, kernel, points, factor, roots, weights, explained, pseudo: None }
    }

    /// Creates the process of L-SVGP or R-SVGP.
    pub(super) fn of_pseudo(
        kernel: Box<dyn Kernel>,
        points: Mat<f64>,
        own: &LSpace,
        jitter: f64,
    ) -> Self {
        let latents = 0..own.mean().ncols();
        let mut factor = Cholesky::of_factor(Mat::new());
        let mut products = None;
        match (own.root(), own.residual()) {
            (Root::Product(l), Some(e)) => products = Some((l.clone(), e.to_owned())),
            (Root::Solve(basis), _) => factor = basis.factor().clone(),
            (Root::Product(_), None) => {}
        }
        factor.jitter = jitter;
        let (roots, explained) = (Vec::new(), Vec::new());
        let (weights, pseudo) = (own.weights(), Some(Pseudo { products, jitter }));
        Self { latents, kernel, points, factor, roots, weights, explained, pseudo }
    }

    /// Returns the inducing variables, with the covariances of the kernel.
    fn inducing(&self) -> AtPoints<'_> {
        AtPoints { kernel: &*self.kernel, z: self.points.as_ref() }
    }

    /// Returns the number of input columns.
    pub(super) fn inputs(&self) -> usize {
        self.inducing().inputs()
    }

    /// Returns L and E of R-SVGP.
    pub(super) fn products(&self) -> Option<(MatRef<'_, f64>, MatRef<'_, f64>)> {
        let products = self.pseudo.as_ref().and_then(|pseudo| pseudo.products.as_ref());
        products.map(|(l, e)| (l.as_ref(), e.as_ref()))
    }

    /// Puts features φ (B×M) in the place of covariances k(x, P).
    pub(super) fn project(&self, mut k: MatMut<f64>, par: Par) {
        match self.products() {
            Some((l, _)) => multiply_lower(k, l, false),
            None => solve_lower(self.factor.l.as_ref(), k.rb_mut().transpose_mut(), par),
        }
    }

    /// Returns features φ of rows, B×M.
    pub(super) fn features(&self, x: MatRef<f64>) -> Mat<f64> {
        let mut k = self.covariances(x);
        self.project(k.as_mut(), Par::Seq);
        k
    }

    pub(super) fn root(&self, at: usize) -> Option<&Mat<f64>> {
        self.roots.get(place_of(self.roots.len(), at))
    }

    pub(super) fn covariances(&self, x: MatRef<f64>) -> Mat<f64> {
        covariances(&*self.kernel, x, Some(self.points.as_ref()))
    }

    /// Returns the moments of u = f(Z) − m(Z) where q is kept as pseudo-observations: Kuu a, and
    /// Kuu − Kuu K̃⁻¹ Kuu or what R-SVGP has for it.
    pub(super) fn pseudo_q(&self, pseudo: &Pseudo) -> (Mat<f64>, Mat<f64>) {
        let m = self.points.nrows();
        let mut k = covariances(&*self.kernel, self.points.as_ref(), None);
        (0..m).for_each(|i| k[(i, i)] += pseudo.jitter);
        let mean = product(k.as_ref(), self.weights.as_ref());
        let covariance = self.conditional(k.clone(), k);
        (mean, covariance)
    }

    /// Returns K − ΦΦᵀ, and ΦEΦᵀ more for R-SVGP, from covariances with the points (B×M) and K
    /// (B×B).
    pub(super) fn conditional(&self, mut phi: Mat<f64>, mut prior: Mat<f64>) -> Mat<f64> {
        let par = par_for(prior.nrows());
        self.project(phi.as_mut(), Par::Seq);
        gemm(prior.as_mut(), Accum::Add, phi.as_ref(), phi.transpose(), -1.0, par);
        if let Some((_, e)) = self.products() {
            let image = product(phi.as_ref(), e);
            gemm(prior.as_mut(), Accum::Add, image.as_ref(), phi.transpose(), 1.0, par);
        }
        mirror_lower(prior.as_mut());
        prior
    }

    /// Returns what rows are multiplied by for their variances.
    pub(super) fn operands(&self) -> Operands<'_, f64> {
        let (lower, residual) = match self.products() {
            Some((l, e)) => (l, Some(e)),
            None => (self.factor.l.as_ref(), None),
        };
        Operands { lower, residual, roots: &self.roots, explained: &self.explained }
    }

    /// Computes the variances of its latent functions, or of a term of them, (into `out`, B×l) at
    /// rows with these prior variances and covariances with the points; none below its rounding
    /// ([`part`]).
    pub(super) fn variances(&self, prior: &[f64], k: &Mat<f64>, out: MatMut<f64>) {
        self.operands().variances(prior, k.as_ref(), part(self.points.nrows()), out);
    }

    /// Adds the mean of its latent functions, given covariances with the points.
    pub(super) fn add_mean(&self, k: MatRef<f64>, mean: MatMut<f64>) {
        gemm(mean, Accum::Add, k, self.weights.as_ref(), 1.0, Par::Seq);
    }
}

//! Slopes of predictions in the inputs.
//!
//! The mean of a latent function at x is m(x) + wᵀk(P, x), its variance k(x, x) − φᵀ(I − S)φ with φ
//! = L⁻¹k(P, x) (or φ = Lᵀk(P, x), I − E): cotangents of covariances are w, and −2L⁻ᵀ(I − S)φ with
//! 1 for k(x, x), and every kernel pulls those back to its first inputs. A row's slopes come from
//! its own covariances, so that a block of rows is one call.

use super::gaussian::Gaussian;
use super::process::Process;
use crate::kernels::{Cotangents, Tape};
use crate::linalg::{
    Accum, Mat, MatRef, Par, gemm, multiply_lower, product, solve_lower_transpose, times_triangular,
};

/// Slopes of the means and variances of latent functions in the inputs.
#[derive(Clone, Debug)]
pub struct InputGradients {
    /// ∂ mean/∂x of every latent function, B×D each.
    pub mean: Vec<Mat<f64>>,
    /// ∂ variance/∂x, likewise.
    pub variance: Vec<Mat<f64>>,
}

impl Process {
    /// Adds to `out` (B×D) what cotangents of the covariances with the points, and of k(x, x) if
    /// `prior`, are as slopes in x. `cotangent` gets the covariances and makes them its own.
    pub(super) fn pull(
        &self,
        x: MatRef<f64>,
        prior: bool,
        out: &mut Mat<f64>,
        cotangent: impl FnOnce(&Mat<f64>) -> Mat<f64>,
    ) {
        let mut k = Mat::zeros(x.nrows(), self.points.nrows());
        let mut tape = Tape::recording();
        let points = Some(self.points.as_ref());
        self.kernel.evaluate(x, points, k.as_mut(), &mut tape);
        let mut bar = cotangent(&k);
        let mut params = vec![0.0; self.kernel.num_params()];
        let mut sinks = Cotangents { params: &mut params, x: Some(out.as_mut()), z: None };
        self.kernel.vjp(x, points, k.as_ref(), bar.as_mut(), &mut tape, &mut sinks);
        if prior {
            self.kernel.diag_vjp(x, &vec![1.0; x.nrows()], &mut sinks);
        }
    }

    /// Returns −2 L⁻ᵀ(I − S)φ, a row for every row of `k`; S is that of the latent function `at`.
    fn variance_cotangent(&self, k: &Mat<f64>, at: usize) -> Mat<f64> {
        let mut phi = k.clone();
        self.project(phi.as_mut(), Par::Seq);
        let mut bar = Mat::from_fn(phi.nrows(), phi.ncols(), |i, j| -2.0 * phi[(i, j)]);
        if let Some((l, e)) = self.products() {
            gemm(bar.as_mut(), Accum::Add, phi.as_ref(), e, 2.0, Par::Seq);
            multiply_lower(bar.as_mut(), l, true);
            return bar;
        }
        if let Some(root) = self.root(at) {
            let image = product(phi.as_ref(), root.as_ref());
            let mut doubled = Mat::zeros(phi.nrows(), phi.ncols());
            let (to, by) = (doubled.as_mut(), root.as_ref());
            times_triangular(to, Accum::Replace, image.as_ref(), by, true, Par::Seq);
            bar += faer::Scale(2.0) * doubled;
        }
        solve_lower_transpose(self.factor.l.as_ref(), bar.as_mut().transpose_mut(), Par::Seq);
        bar
    }
}

impl Gaussian {
    /// Returns the slopes of its means and variances.
    pub(super) fn slopes(&self, x: MatRef<f64>) -> InputGradients {
        let own = x.to_owned();
        let x = own.as_ref();
        let mut means = Vec::with_capacity(self.unmixed());
        let mut variances: Vec<Mat<f64>> = Vec::with_capacity(self.unmixed());
        for p in &*self.processes {
            for at in 0..p.latents.len() {
                let mut mean = Mat::zeros(x.nrows(), x.ncols());
                let weights = p.weights.as_ref();
                p.pull(x, false, &mut mean, |k| {
                    Mat::from_fn(k.nrows(), k.ncols(), |_, j| weights[(j, at)])
                });
                means.push(mean);
                let shared = at > 0 && p.roots.len() < 2;
                variances.push(match variances.last().filter(|_| shared) {
                    Some(same) => same.clone(),
                    None => {
                        let mut slopes = Mat::zeros(x.nrows(), x.ncols());
                        p.pull(x, true, &mut slopes, |k| p.variance_cotangent(k, at));
                        slopes
                    }
                });
            }
        }
        self.add_trend_slopes(x, &mut variances);
        let mut mean = self.mixed_slopes(means, |w| w);
        for (l, own) in mean.iter_mut().enumerate() {
            self.mean.add_slopes(x, l, own.as_mut());
        }
        InputGradients { mean, variance: self.mixed_slopes(variances, |w| w * w) }
    }
}

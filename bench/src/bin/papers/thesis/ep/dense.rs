//! Sites under a full covariance, O(n³).

use super::sites::{Posterior, Sites};
use super::{inverse_lower, lower_times, scaled};
use sparsegp::linalg::{Cholesky, Jitter, Mat, dot, product};

/// N(0, K) times sites.
pub struct Dense {
    /// Square roots of the precisions of the sites.
    root: Vec<f64>,
    /// L⁻¹ of LLᵀ = B = I + T^½KT^½.
    inverse: Mat<f64>,
    mean: Vec<f64>,
    variance: Vec<f64>,
    /// (K + T⁻¹)⁻¹T⁻¹ν = ν − τ∘μ.
    pub weights: Vec<f64>,
    log_integral: f64,
}

impl Dense {
    /// Multiplies prior and sites (R & W Algorithm 3.5).
    ///
    /// # Errors
    /// [`sparsegp::Error::NotPositiveDefinite`].
    pub fn new(k: &Mat<f64>, sites: &Sites) -> sparsegp::Result<Self> {
        let n = k.nrows();
        let root: Vec<f64> = sites.tau.iter().map(|tau| tau.sqrt()).collect();
        // T^½K, and the lower triangle of B
        let v = scaled(k, &root);
        let mut b = Mat::zeros(n, n);
        for j in 0..n {
            let (own, scale) = (&v.col_as_slice(j)[j..], root[j]);
            let column = b.col_as_slice_mut(j)[j..].iter_mut();
            column.zip(own).for_each(|(b, v)| *b = scale * v);
            b[(j, j)] += 1.0;
        }
        let factor = Cholesky::new(b.as_ref(), Jitter::Absolute(0.0), "I + T^½KT^½")?;
        let inverse = inverse_lower(&factor.l);
        let v = lower_times(&inverse, &v);
        let squares = |j: usize| {
            let own = v.as_ref().subcols(j, 1);
            dot(own, own)
        };
        let variance = (0..n).map(|j| k[(j, j)] - squares(j)).collect();
        // μ = Σν = Kν − VᵀVν
        let nu = Mat::from_fn(n, 1, |i, _| sites.nu[i]);
        let explained = product(v.as_ref(), nu.as_ref());
        let less = product(v.transpose(), explained.as_ref());
        let all = product(k.as_ref(), nu.as_ref());
        let mean: Vec<f64> = (0..n).map(|i| all[(i, 0)] - less[(i, 0)]).collect();
        let form: f64 = sites.nu.iter().zip(&mean).map(|(nu, mu)| nu * mu).sum();
        let log_integral = 0.5 * (form - factor.log_det());
        let weights = (0..n).map(|i| sites.nu[i] - sites.tau[i] * mean[i]).collect();
        Ok(Self { root, inverse, mean, variance, weights, log_integral })
    }

    /// Returns ∂log Z/∂K = ½(bbᵀ − T^½B⁻¹T^½) with b the weights (R & W (5.27) and Algorithm 5.2):
    /// at the fixed point the sites' own change adds nothing (Seeger 2005).
    pub fn cotangent(&self) -> Mat<f64> {
        let mut bar = product(self.inverse.transpose(), self.inverse.as_ref());
        let (b, root) = (&self.weights, &self.root);
        for j in 0..b.len() {
            let column = bar.col_as_slice_mut(j).iter_mut();
            for ((bar, b_i), root_i) in column.zip(b).zip(root) {
                *bar = 0.5 * (b_i * b[j] - root_i * *bar * root[j]);
            }
        }
        bar
    }

    /// Returns L⁻¹T^½k of covariances k of new functions, one a column, with those of the sites:
    /// the squares of a column are what the sites explain of its variance (R & W Algorithm 3.6).
    pub fn explained(&self, k: &Mat<f64>) -> Mat<f64> {
        lower_times(&self.inverse, &scaled(k, &self.root))
    }

    /// Returns kᵀ(K + T⁻¹)⁻¹T⁻¹ν for every column k: posterior means.
    pub fn means(&self, k: &Mat<f64>) -> Vec<f64> {
        let weights = Mat::from_fn(k.nrows(), 1, |i, _| self.weights[i]);
        product(k.transpose(), weights.as_ref()).col_as_slice(0).to_vec()
    }
}

impl Posterior for Dense {
    fn marginals(&self) -> (&[f64], &[f64]) {
        (&self.mean, &self.variance)
    }

    fn log_integral(&self) -> f64 {
        self.log_integral
    }
}

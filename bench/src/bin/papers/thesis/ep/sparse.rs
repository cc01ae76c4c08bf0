//! Two classes by inducing points: EPGPC (Hernández-Lobato & Hernández-Lobato 2016).

use super::normal::cdf;
use super::sites::{Found, Posterior, Sites};
use super::{Evidence, inverse_lower, scaled, train};
use sparsegp::kernels::{Cotangents, Kernel, Tape, factor, features};
use sparsegp::linalg::{Accum, Cholesky, Jitter, Mat, MatRef, Par, gram_lower, product};

/// Variance of the noise of the step: the probit likelihood Φ(yf).
const NOISE: f64 = 1.0;

/// N(0, I) of the whitened values at inducing points times sites of rows of Φᵀ.
struct Whitened {
    /// P⁻¹ of P = I + ΦTΦᵀ, the posterior covariance.
    covariance: Mat<f64>,
    /// Posterior mean P⁻¹Φν.
    w: Mat<f64>,
    mean: Vec<f64>,
    variance: Vec<f64>,
    log_integral: f64,
}

impl Whitened {
    /// Multiplies prior and sites, for features of one row each (N×M).
    fn new(phi: &Mat<f64>, sites: &Sites) -> sparsegp::Result<Self> {
        let m = phi.ncols();
        let mut p = Mat::identity(m, m);
        let weighted = scaled(phi, &sites.tau);
        gram_lower(p.as_mut(), Accum::Add, weighted.as_ref(), phi.as_ref(), 1.0, Par::Seq);
        let factor = Cholesky::new(p.as_ref(), Jitter::Absolute(0.0), "I + ΦTΦᵀ")?;
        let covariance = factor.inverse();
        let variance = forms(phi, &covariance);
        let nu = Mat::from_fn(phi.nrows(), 1, |i, _| sites.nu[i]);
        let w = factor.solve(product(phi.transpose(), nu.as_ref()).as_ref());
        let mean = product(phi.as_ref(), w.as_ref()).col_as_slice(0).to_vec();
        let form: f64 = sites.nu.iter().zip(&mean).map(|(nu, mu)| nu * mu).sum();
        let log_integral = 0.5 * (form - factor.log_det());
        Ok(Self { covariance, w, mean, variance, log_integral })
    }
}

impl Posterior for Whitened {
    fn marginals(&self) -> (&[f64], &[f64]) {
        (&self.mean, &self.variance)
    }

    fn log_integral(&self) -> f64 {
        self.log_integral
    }
}

/// Returns Σⱼ aᵢⱼbᵢⱼ of every row.
fn row_dots(a: &Mat<f64>, b: &Mat<f64>) -> Vec<f64> {
    let mut sums = vec![0.0; a.nrows()];
    for j in 0..a.ncols() {
        let both = a.col_as_slice(j).iter().zip(b.col_as_slice(j));
        sums.iter_mut().zip(both).for_each(|(sum, (a, b))| *sum += a * b);
    }
    sums
}

/// Returns aᵀSa of every row a.
fn forms(a: &Mat<f64>, s: &Mat<f64>) -> Vec<f64> {
    row_dots(&product(a.as_ref(), s.as_ref()), a)
}

/// Rows with signs, inducing points and sites. The sites stand for steps of s = yφᵀw, whose noise
/// is that of the step and what the inducing points leave of the prior variance, d = k − φᵀφ (the
/// FITC prior).
pub struct Rows {
    x: Mat<f64>,
    z: Mat<f64>,
    signs: Vec<f64>,
    sites: Sites,
    jitter: Jitter,
}

impl Rows {
    /// Takes inputs, inducing points, and labels 0 and 1.
    pub fn new(x: Mat<f64>, z: Mat<f64>, labels: &[f64]) -> Self {
        let signs: Vec<f64> = labels.iter().map(|y| if *y > 0.5 { 1.0 } else { -1.0 }).collect();
        let sites = Sites::new(signs.len());
        Self { x, z, signs, sites, jitter: Jitter::default() }
    }

    /// Finds the fixed point from features times signs (N×M) and variances k.
    fn settle(&mut self, phi: &Mat<f64>, k: &[f64]) -> sparsegp::Result<Found<Whitened>> {
        let explained = row_dots(phi, phi);
        let noise = k.iter().zip(&explained).map(|(k, q)| NOISE + (k - q).max(0.0));
        let noise: Vec<f64> = noise.collect();
        self.sites.settle(&noise, |sites| Whitened::new(phi, sites))
    }

    /// Returns ∂log Z/∂φ times signs (N×M), and ∂log Z/∂k of the variances, sites being held. Of
    /// the log integral ½νᵀΦᵀP⁻¹Φν − ½log|P| it is w(ν − τ∘μ)ᵀ − P⁻¹ΦT by Φ; of a step it is ½(β +
    /// α²) by its noise, from the heat equation.
    fn cotangents(&self, phi: &Mat<f64>, found: &Found<Whitened>) -> (Mat<f64>, Vec<f64>) {
        let Found { posterior, steps, .. } = found;
        let solved = product(phi.as_ref(), posterior.covariance.as_ref());
        let by_noise: Vec<f64> =
            steps.iter().map(|[_, alpha, beta]| 0.5 * (beta + alpha * alpha)).collect();
        let Sites { tau, nu } = &self.sites;
        let weights = nu.iter().zip(tau).zip(&posterior.mean);
        let weights: Vec<f64> = weights.map(|((nu, tau), mean)| nu - tau * mean).collect();
        let mut phi_bar = phi.clone();
        for j in 0..phi.ncols() {
            let (w, solved) = (posterior.w[(j, 0)], solved.col_as_slice(j));
            for (i, bar) in phi_bar.col_as_slice_mut(j).iter_mut().enumerate() {
                *bar = weights[i] * w - tau[i] * solved[i] - 2.0 * by_noise[i] * *bar;
            }
        }
        (phi_bar, by_noise)
    }
}

impl Evidence for Rows {
    fn evaluate(&mut self, kernel: &dyn Kernel) -> sparsegp::Result<(f64, Vec<f64>)> {
        let (n, m) = (self.x.nrows(), self.z.nrows());
        let mut tape = Tape::recording();
        let (mut kuu, mut kfu, mut k) = (Mat::zeros(m, m), Mat::zeros(n, m), vec![0.0; n]);
        kernel.evaluate(self.z.as_ref(), None, kuu.as_mut(), &mut tape);
        kernel.evaluate(self.x.as_ref(), Some(self.z.as_ref()), kfu.as_mut(), &mut tape);
        kernel.diag(self.x.as_ref(), &mut k);
        let factor = Cholesky::new(kuu.as_ref(), self.jitter, "Kuu")?;
        // Φᵀ = Kfu L⁻ᵀ
        let inverse = inverse_lower(&factor.l);
        let phi = product(scaled(&kfu, &self.signs).as_ref(), inverse.transpose());
        let found = self.settle(&phi, &k)?;
        let (phi_bar, k_bar) = self.cotangents(&phi, &found);
        // K̄fu = Φ̄ᵀL⁻¹ and L̄ = −K̄fuᵀΦᵀ, signs apart
        let kfu_bar = product(phi_bar.as_ref(), inverse.as_ref());
        let crossed = product(kfu_bar.transpose(), phi.as_ref());
        let l_bar = Mat::from_fn(m, m, |i, j| -crossed[(i, j)]);
        let mut kuu_bar = factor.adjoint(l_bar.as_ref());
        factor.pull_jitter(&mut kuu_bar);
        let mut kfu_bar = scaled(&kfu_bar, &self.signs);
        let mut params = vec![0.0; kernel.num_params()];
        let mut sinks = Cotangents { params: &mut params, x: None, z: None };
        let (x, z) = (self.x.as_ref(), self.z.as_ref());
        kernel.diag_vjp(x, &k_bar, &mut sinks);
        kernel.vjp(x, Some(z), kfu.as_ref(), kfu_bar.as_mut(), &mut tape, &mut sinks);
        kernel.vjp(z, None, kuu.as_ref(), kuu_bar.as_mut(), &mut tape, &mut sinks);
        Ok((found.log_z, params))
    }

    fn rows(&self) -> usize {
        self.x.nrows()
    }
}

/// A classifier of two classes with the probit likelihood and inducing points, O(NM²).
///
/// As published, but that sites are at their fixed point at every step of the hyperparameters,
/// which the published method does not wait for, and that inducing points stay.
pub struct Probit {
    kernel: Box<dyn Kernel>,
    z: Mat<f64>,
    kuu: Cholesky,
    posterior: Whitened,
}

impl Probit {
    /// Trains the hyperparameters by at most `iterations` of L-BFGS on inputs (N×D), labels 0 and 1
    /// and inducing points (M×D).
    ///
    /// # Errors
    /// What EP gives at the first hyperparameters.
    pub fn train(
        mut kernel: Box<dyn Kernel>,
        x: Mat<f64>,
        labels: &[f64],
        z: Mat<f64>,
        iterations: usize,
    ) -> sparsegp::Result<Self> {
        let mut rows = Rows::new(x, z, labels);
        train(&mut *kernel, &mut rows, iterations)?;
        let kuu = factor(&*kernel, rows.z.as_ref(), rows.jitter, "Kuu")?;
        let phi = features(&*kernel, rows.z.as_ref(), &kuu, rows.x.as_ref());
        let mut k = vec![0.0; rows.x.nrows()];
        kernel.diag(rows.x.as_ref(), &mut k);
        let posterior = rows.settle(&scaled(&phi, &rows.signs), &k)?.posterior;
        Ok(Self { kernel, z: rows.z, kuu, posterior })
    }

    /// Returns the probability of both classes at new inputs, N×2: Φ(m/√(1 + v)) of class 1 (R & W
    /// (3.82)).
    pub fn predict_proba(&self, x: MatRef<'_, f64>) -> Mat<f64> {
        let phi = features(&*self.kernel, self.z.as_ref(), &self.kuu, x);
        let mean = product(phi.as_ref(), self.posterior.w.as_ref());
        let mut k = vec![0.0; x.nrows()];
        self.kernel.diag(x, &mut k);
        let (prior, left) = (row_dots(&phi, &phi), forms(&phi, &self.posterior.covariance));
        let mut p = Mat::zeros(x.nrows(), 2);
        for i in 0..x.nrows() {
            let variance = (k[i] - prior[i]).max(0.0) + left[i];
            p[(i, 1)] = cdf(mean[(i, 0)] / (NOISE + variance).sqrt());
            p[(i, 0)] = 1.0 - p[(i, 1)];
        }
        p
    }
}

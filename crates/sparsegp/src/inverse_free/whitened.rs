//! The alternative inverse-free bound: whitening by an auxiliary factor (Cortinovis et al., §2 and App. S4).
//!
//! m = Kuu L m̃ and a covariance of u about Kuu L S̃ Lᵀ Kuu, with T = LLᵀ near Kuu⁻¹ (not the inverse of Kuu + Λ).
//! With H = LᵀKuuL = I + E and U = LᵀKuf, Kuu⁻¹ ⪰ 2T − TKuuT gives
//!
//! ```text
//! μ = Uᵀm̃      v_p = k(x, x) − uᵀ(I − E − S̃_p)u
//! KL ≤ Σ_p KL[N(m̃_p, S̃_p) ‖ N(0, H⁻¹)] + ½P‖E‖²
//!    = ½ (tr S̃ + ‖m̃‖² − MP − log|S̃|) + ½ {⟨E, S̃ + m̃m̃ᵀ⟩ + P(‖E‖² − log|I + E|)}      (sums over p)
//! ```
//!
//! The paper leaves log|I + E|, an inverse in kind. Where ‖E‖₂ ≤ ½, −log(1 + λ) ≤ −λ + cλ² for every eigenvalue,
//! c = 4 log 2 − 2, and −tr E + (1 + c)‖E‖² takes its place ([`LogDet::Series`]): products only.
//!
//! **Refinement.** With L held fixed the gradient in Kuu is wrong even at LLᵀ = Kuu⁻¹: the same defect as that of
//! the naive preconditioner of R-SVGP. The bound is therefore evaluated at L̂ = L(I − Φ(LᵀKuuL − I)), one implicit
//! natural-gradient step, *as a function of Kuu*: at LLᵀ = Kuu⁻¹ value and gradients are then those of the exact
//! whitened bound. The way back through it is X̄ = −½ mirror(LᵀL̂̄), K̄uu += LX̄Lᵀ.

use super::Inversion;
use crate::error::Result;
use crate::linalg::{
    Cholesky, Jitter, Mat, MatRef, column, dot, mirror_lower, product, symmetrise,
};

/// How −log|I + E| is had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogDet {
    /// Bounded by −tr E + c‖E‖²: a bound where ‖E‖₂ ≤ ½.
    #[default]
    Series,
    /// By a factorisation.
    Exact,
}

/// 4 log 2 − 2: (−log(1 − ρ) − ρ)/ρ² at ρ = ½.
const SERIES: f64 = 4.0 * std::f64::consts::LN_2 - 2.0;

/// The bound's M×M part at some parameters.
#[derive(Clone, Debug)]
pub struct WhitenedByFactor {
    log_det: LogDet,
    kuu: Mat<f64>,
    /// L, and E of it, if it is refined.
    stored: Option<(Mat<f64>, Mat<f64>)>,
    /// L̂ and E of it.
    root: Mat<f64>,
    residual: Mat<f64>,
    mean: Mat<f64>,
    roots: Vec<Mat<f64>>,
    covariances: Vec<Mat<f64>>,
    kl: f64,
}

/// Adjoints of everything the bound depends on.
#[derive(Clone, Debug)]
pub struct WhitenedAdjoints {
    /// K̄uu, symmetric.
    pub kuu: Mat<f64>,
    /// K̄uf, M×B.
    pub kuf: Mat<f64>,
    /// Of m̃, M×P.
    pub mean: Mat<f64>,
    /// Of the lower roots of S̃.
    pub roots: Vec<Mat<f64>>,
    /// Of L, lower triangular.
    pub factor: Mat<f64>,
}

/// Returns the lower triangle of A with halved diagonal.
fn half_lower(a: &Mat<f64>) -> Mat<f64> {
    Mat::from_fn(a.nrows(), a.ncols(), |i, j| match i.cmp(&j) {
        std::cmp::Ordering::Less => 0.0,
        std::cmp::Ordering::Equal => 0.5 * a[(i, j)],
        std::cmp::Ordering::Greater => a[(i, j)],
    })
}

fn lower(a: &Mat<f64>) -> Mat<f64> {
    Mat::from_fn(a.nrows(), a.ncols(), |i, j| if i >= j { a[(i, j)] } else { 0.0 })
}

/// Returns `a` plus `factor` times `b`.
fn plus(a: &Mat<f64>, b: &Mat<f64>, factor: f64) -> Mat<f64> {
    a + b * faer::Scale(factor)
}

impl WhitenedByFactor {
    /// Creates it at Kuu (with its jitter), a lower-triangular L, m̃ (M×P) and lower roots of S̃,
    /// one for each latent function; `refined` as the module says.
    ///
    /// # Errors
    /// [`crate::Error::NotPositiveDefinite`] if I + E is not, where its determinant is exact.
    pub fn new(
        kuu: MatRef<f64>,
        l: MatRef<f64>,
        mean: MatRef<f64>,
        roots: &[Mat<f64>],
        refined: bool,
        log_det: LogDet,
    ) -> Result<Self> {
        let (m, p) = (mean.nrows(), mean.ncols() as f64);
        let mut inversion = Inversion::default();
        inversion.look(kuu, l);
        let mut root = l.to_owned();
        let mut stored = None;
        if refined {
            root = &root - &inversion.natural_gradient(l);
            stored = Some((l.to_owned(), inversion.residual().to_owned()));
            inversion.look(kuu, root.as_ref());
        }
        let residual = inversion.residual().to_owned();
        let squares = dot(residual.as_ref(), residual.as_ref());
        let trace: f64 = (0..m).map(|j| residual[(j, j)]).sum();
        let dets = match log_det {
            LogDet::Series => -trace + SERIES * squares,
            LogDet::Exact => {
                -Cholesky::new(plus_identity(&residual).as_ref(), Jitter::Absolute(0.0), "I + E")?
                    .log_det()
            }
        };
        let covariances: Vec<Mat<f64>> =
            roots.iter().map(|root| product(root.as_ref(), root.transpose())).collect();
        let mut kl = 0.5 * (dot(mean, mean) + p * (squares + dets));
        for (j, (root, covariance)) in roots.iter().zip(&covariances).enumerate() {
            let own = column(mean, j);
            let image: f64 = (0..m)
                .map(|i| {
                    own[i]
                        * column(residual.as_ref(), i)
                            .iter()
                            .zip(own)
                            .map(|(e, v)| e * v)
                            .sum::<f64>()
                })
                .sum();
            let trace: f64 = (0..m).map(|i| covariance[(i, i)]).sum();
            let log_det: f64 = (0..m).map(|i| 2.0 * root[(i, i)].abs().ln()).sum();
            kl += 0.5
                * (trace - m as f64 - log_det
                    + image
                    + dot(residual.as_ref(), covariance.as_ref()));
        }
        let (kuu, mean, roots) = (kuu.to_owned(), mean.to_owned(), roots.to_vec());
        Ok(Self { log_det, kuu, stored, root, residual, mean, roots, covariances, kl })
    }

    /// Returns whether [`WhitenedByFactor::kl`] is a bound for certain: with the series only where
    /// ‖E‖₂ ≤ ½, which Frobenius' norm or power iterations tell. Where it is not, more
    /// natural-gradient steps of L are called for, or the exact determinant.
    pub fn is_bound(&self) -> bool {
        self.log_det == LogDet::Exact || spectral_norm(&self.residual) <= 0.5
    }

    /// Returns the bound on the KL divergence, summed over the latent functions.
    pub fn kl(&self) -> f64 {
        self.kl
    }

    /// Returns L̂.
    pub fn root(&self) -> MatRef<'_, f64> {
        self.root.as_ref()
    }

    /// Returns E of L̂.
    pub fn residual(&self) -> MatRef<'_, f64> {
        self.residual.as_ref()
    }

    /// Returns μ and v (B×P) at covariances Kuf (M×B) and prior variances (B).
    pub fn marginals(&self, kuf: MatRef<f64>, kff: &[f64]) -> (Mat<f64>, Mat<f64>) {
        let u = product(self.root.transpose(), kuf);
        let mu = product(u.transpose(), self.mean.as_ref());
        let mut v = Mat::zeros(kff.len(), self.roots.len());
        for p in 0..self.roots.len() {
            let image = self.unexplained(&u, p);
            for (i, prior) in kff.iter().enumerate() {
                let products = column(u.as_ref(), i).iter().zip(column(image.as_ref(), i));
                v[(i, p)] = prior - products.map(|(a, b)| a * b).sum::<f64>();
            }
        }
        (mu, v)
    }

    /// Returns (I − E − S̃_p)U.
    fn unexplained(&self, u: &Mat<f64>, p: usize) -> Mat<f64> {
        let inner = plus(&self.residual, &self.covariances[p], 1.0);
        plus(u, &product(inner.as_ref(), u.as_ref()), -1.0)
    }

    /// Goes the way back, from Kuf (M×B), α = ∂ℓ/∂μ and β = ∂ℓ/∂v (B×P) and κ, the slope in the KL
    /// divergence.
    pub fn pull(
        &self,
        kappa: f64,
        kuf: MatRef<f64>,
        alpha: MatRef<f64>,
        beta: MatRef<f64>,
    ) -> WhitenedAdjoints {
        let (m, latents) = (self.mean.nrows(), self.roots.len());
        let p = latents as f64;
        let u = product(self.root.transpose(), kuf);
        let mut u_bar = product(self.mean.as_ref(), alpha.transpose());
        let mut e_bar =
            product(self.mean.as_ref(), self.mean.transpose()) * faer::Scale(0.5 * kappa);
        let mut roots = Vec::with_capacity(latents);
        for (q, root) in self.roots.iter().enumerate() {
            let weighted =
                |a: &Mat<f64>| Mat::from_fn(a.nrows(), a.ncols(), |i, j| a[(i, j)] * beta[(j, q)]);
            u_bar = plus(&u_bar, &weighted(&self.unexplained(&u, q)), -2.0);
            let gram = product(weighted(&u).as_ref(), u.transpose());
            e_bar = plus(&plus(&e_bar, &gram, 1.0), &self.covariances[q], 0.5 * kappa);
            let inner = plus(&gram, &plus_identity(&self.residual), 0.5 * kappa);
            let mut bar = lower(&(product(inner.as_ref(), root.as_ref()) * faer::Scale(2.0)));
            (0..m).for_each(|j| bar[(j, j)] -= kappa / root[(j, j)]);
            roots.push(bar);
        }
        // of ‖E‖² − log|I + E|, or of what bounds it
        let half = 0.5 * kappa * p;
        e_bar = plus(&e_bar, &self.residual, 2.0 * half);
        e_bar = match self.log_det {
            LogDet::Series => {
                let all = plus(&e_bar, &self.residual, 2.0 * SERIES * half);
                Mat::from_fn(m, m, |i, j| all[(i, j)] - if i == j { half } else { 0.0 })
            }
            LogDet::Exact => {
                let factor = Cholesky::new(
                    plus_identity(&self.residual).as_ref(),
                    Jitter::Absolute(0.0),
                    "I + E",
                );
                // it was factorised before
                factor.map_or_else(|_| e_bar.clone(), |f| plus(&e_bar, &f.inverse(), -half))
            }
        };
        symmetrise(e_bar.as_mut());
        let l = self.root.as_ref();
        let le = product(l, e_bar.as_ref());
        let mut kuu = product(le.as_ref(), l.transpose());
        let through_e = product(self.kuu.as_ref(), le.as_ref());
        let mut factor = plus(&product(kuf, u_bar.transpose()), &through_e, 2.0);
        factor = lower(&factor);
        if let Some((stored, residual)) = &self.stored {
            let mut x_bar = product(stored.transpose(), factor.as_ref());
            mirror_lower(x_bar.as_mut());
            x_bar *= faer::Scale(-0.5);
            let lx = product(stored.as_ref(), x_bar.as_ref());
            kuu = plus(&kuu, &product(lx.as_ref(), stored.transpose()), 1.0);
            let step = half_lower(residual);
            let direct = plus(&factor, &product(factor.as_ref(), step.transpose()), -1.0);
            let through = product(self.kuu.as_ref(), lx.as_ref());
            factor = lower(&plus(&direct, &through, 2.0));
        }
        symmetrise(kuu.as_mut());
        let kuf = product(l, u_bar.as_ref());
        let turned = plus_identity(&self.residual);
        let mean =
            plus(&product(u.as_ref(), alpha), &product(turned.as_ref(), self.mean.as_ref()), kappa);
        WhitenedAdjoints { kuu, kuf, mean, roots, factor }
    }
}

/// Returns I + E.
fn plus_identity(e: &Mat<f64>) -> Mat<f64> {
    Mat::from_fn(e.nrows(), e.ncols(), |i, j| e[(i, j)] + if i == j { 1.0 } else { 0.0 })
}

/// Returns ‖E‖₂ of a symmetric E: by Frobenius' norm where that is at most ½, else by power
/// iterations on E².
fn spectral_norm(e: &Mat<f64>) -> f64 {
    let frobenius = dot(e.as_ref(), e.as_ref()).sqrt();
    if frobenius <= 0.5 || frobenius.is_nan() {
        return frobenius;
    }
    let m = e.nrows();
    let mut vector = Mat::from_fn(m, 1, |i, _| 1.0 + (i as f64 * 0.7).sin());
    let mut norm = 0.0;
    for _ in 0..100 {
        let length = dot(vector.as_ref(), vector.as_ref()).sqrt();
        vector = product(e.as_ref(), (vector * faer::Scale(1.0 / length)).as_ref());
        norm = dot(vector.as_ref(), vector.as_ref()).sqrt();
    }
    norm
}

//! Draws of a Gaussian given its sites: the middle of every Gibbs sweep.
//!
//! Rows have f = μ + Aᵢᵀz + eᵢ with z ~ N(0, I) and eᵢ ~ N(0, rᵢ): without inducing points A is the factor L of
//! K and r = 0; with them A holds the features φ and r what they leave unexplained. Sites exp(aᵢf − ½λᵢf²) make
//! (power-EP with α; Galy-Fajou 2022, §7.5 with its errata)
//!
//! ```text
//! λ′ = λ/(1 + αλr)     a′ = (a − λμ)/(1 + αλr)     P = I + AᵀΛ′A     z ~ N(P⁻¹Aᵀa′, P⁻¹)
//! log E_α = Σ{−log(1 + αλr)/2α + αr(a − λμ)²/2(1 + αλr) + aμ − ½λμ²} + ½a′ᵀAP⁻¹Aᵀa′ − ½ log|P|
//! ```
//! (the first term is −½λr at α = 0). α = 0 is the bound of variational inference, α = 1 the exact law of the
//! model whose rows are independent given z. Where there are as many columns as rows, B = I + Λ^½AAᵀΛ^½ takes the
//! place of P, which needs no product but the elementwise one (Matheron's rule):
//! z = ε + Aᵀt, t = w ∘ B⁻¹(a′/w − w ∘ Aε − ε′) with w = √λ.

use crate::error::Result;
use crate::likelihoods::augmented::Site;
use crate::linalg::{
    Accum, Cholesky, Jitter, Mat, Par, gemm, gram_lower, par_for, scale_rows, sized, solve_lower,
    solve_lower_transpose,
};
use rand_distr::{Distribution, StandardNormal};

/// Where rows and z meet.
#[derive(Clone, Debug)]
pub struct Features {
    /// A, N×M.
    pub a: Mat<f64>,
    /// AAᵀ where A is square (K with its jitter); else empty.
    pub k: Mat<f64>,
    /// r.
    pub unexplained: Vec<f64>,
}

impl Features {
    /// Returns whether z has as many entries as there are rows.
    fn is_full(&self) -> bool {
        self.k.nrows() > 0
    }

    /// Returns the first row of a column of A that need not be 0: without inducing points A is
    /// lower triangular.
    pub(super) fn first_row(&self, column: usize) -> usize {
        if self.is_full() { column } else { 0 }
    }
}

/// The conditional law of z, with the memory it takes.
#[derive(Debug)]
pub struct Conditional {
    /// Of P, or of B.
    factor: Cholesky,
    matrix: Mat<f64>,
    scaled: Mat<f64>,
    /// √λ′.
    w: Vec<f64>,
    /// a′.
    a: Vec<f64>,
    /// M×1 and N×1.
    z: Mat<f64>,
    row: Mat<f64>,
}

impl Default for Conditional {
    fn default() -> Self {
        Self {
            factor: Cholesky::of_factor(Mat::new()),
            matrix: Mat::new(),
            scaled: Mat::new(),
            w: Vec::new(),
            a: Vec::new(),
            z: Mat::new(),
            row: Mat::new(),
        }
    }
}

/// Returns the rows' part of log E_α.
fn rows_energy(site: Site, mu: f64, r: f64, alpha: f64) -> f64 {
    let (a, lambda) = (site.potential - site.precision * mu, site.precision);
    let own = if alpha == 0.0 {
        -0.5 * lambda * r
    } else {
        let grown = alpha * lambda * r;
        -0.5 * grown.ln_1p() / alpha + 0.5 * alpha * r * a * a / (1.0 + grown)
    };
    own + site.potential * mu - 0.5 * lambda * mu * mu
}

impl Conditional {
    /// Takes the sites of all rows, whose prior means are `mu`, and factorises; finds the mean. Returns log E_α.
    ///
    /// # Errors
    /// As for [`Conditional::factorise`].
    pub fn renew(
        &mut self,
        features: &Features,
        sites: &[Site],
        mu: &[f64],
        alpha: f64,
    ) -> Result<f64> {
        let energy = self.factorise(features, sites, mu, alpha)?;
        // the mean P⁻¹Aᵀa′ in `z`
        self.mean_of(features);
        let fit: f64 = (0..features.a.ncols())
            .map(|j| {
                let column = features.a.col_as_slice(j);
                let pulled: f64 = column.iter().zip(&self.a).map(|(x, a)| x * a).sum();
                pulled * self.z[(j, 0)]
            })
            .sum();
        Ok(energy + 0.5 * fit - 0.5 * self.factor.log_det())
    }

    /// Takes the sites and factorises, which is all that [`Conditional::draw`] needs. Returns the rows' part of log E_α.
    ///
    /// # Errors
    /// [`crate::Error::NonFinite`] for sites that are not finite.
    pub fn factorise(
        &mut self,
        features: &Features,
        sites: &[Site],
        mu: &[f64],
        alpha: f64,
    ) -> Result<f64> {
        let (n, m) = (features.a.nrows(), features.a.ncols());
        self.w.clear();
        self.a.clear();
        let mut energy = 0.0;
        for ((site, mu), r) in sites.iter().zip(mu).zip(&features.unexplained) {
            let grown = 1.0 + alpha * site.precision * r;
            self.w.push((site.precision / grown).sqrt());
            self.a.push((site.potential - site.precision * mu) / grown);
            energy += rows_energy(*site, *mu, *r, alpha);
        }
        if features.is_full() {
            sized(&mut self.matrix, n, n);
            for j in 0..n {
                let (k, w) = (features.k.col_as_slice(j), self.w[j]);
                let target = self.matrix.col_as_slice_mut(j);
                for i in j..n {
                    target[i] = self.w[i] * k[i] * w;
                }
                target[j] += 1.0;
            }
        } else {
            sized(&mut self.scaled, n, m);
            sized(&mut self.matrix, m, m);
            scale_rows(self.scaled.as_mut(), features.a.as_ref(), &self.w);
            let scaled = self.scaled.as_ref();
            gram_lower(self.matrix.as_mut(), Accum::Replace, scaled, scaled, 1.0, par_for(m));
            (0..m).for_each(|i| self.matrix[(i, i)] += 1.0);
        }
        let none = Jitter::Absolute(0.0);
        self.factor.renew(self.matrix.as_ref(), none, "the precision given the sites")?;
        Ok(energy)
    }

    /// Writes P⁻¹Aᵀa′ into `z`.
    fn mean_of(&mut self, features: &Features) {
        let zeros = |_: usize| 0.0;
        self.solve(features, zeros, zeros);
    }

    /// Makes a draw of z with the noise ε and ε′ (of M and N numbers; only one of them is asked for
    /// where the factor is that of P): both 0 give the mean.
    fn solve(
        &mut self,
        features: &Features,
        mut epsilon: impl FnMut(usize) -> f64,
        mut other: impl FnMut(usize) -> f64,
    ) {
        let (n, m) = (features.a.nrows(), features.a.ncols());
        let l = self.factor.l.as_ref();
        sized(&mut self.z, m, 1);
        sized(&mut self.row, n, 1);
        if features.is_full() {
            (0..m).for_each(|j| self.z[(j, 0)] = epsilon(j));
            let z = self.z.as_ref();
            gemm(self.row.as_mut(), Accum::Replace, features.a.as_ref(), z, 1.0, Par::Seq);
            for i in 0..n {
                let w = self.w[i];
                // a site without precision has no potential either
                let pull = if w > 0.0 { self.a[i] / w } else { 0.0 };
                self.row[(i, 0)] = pull - w * self.row[(i, 0)] - other(i);
            }
            solve_lower(l, self.row.as_mut(), Par::Seq);
            solve_lower_transpose(l, self.row.as_mut(), Par::Seq);
            (0..n).for_each(|i| self.row[(i, 0)] *= self.w[i]);
            let (row, a) = (self.row.as_ref(), features.a.transpose());
            gemm(self.z.as_mut(), Accum::Add, a, row, 1.0, Par::Seq);
        } else {
            (0..n).for_each(|i| self.row[(i, 0)] = self.a[i]);
            let (row, a) = (self.row.as_ref(), features.a.transpose());
            gemm(self.z.as_mut(), Accum::Replace, a, row, 1.0, Par::Seq);
            solve_lower(l, self.z.as_mut(), Par::Seq);
            (0..m).for_each(|j| self.z[(j, 0)] += epsilon(j));
            solve_lower_transpose(l, self.z.as_mut(), Par::Seq);
        }
    }

    /// Returns P⁻¹, M×M, of the last sites.
    pub fn covariance(&self, features: &Features) -> Mat<f64> {
        let (n, m) = (features.a.nrows(), features.a.ncols());
        if !features.is_full() {
            return self.factor.inverse();
        }
        // I − Aᵀ diag(w) B⁻¹ diag(w) A
        let mut half = Mat::zeros(n, m);
        scale_rows(half.as_mut(), features.a.as_ref(), &self.w);
        solve_lower(self.factor.l.as_ref(), half.as_mut(), par_for(n));
        let mut covariance = Mat::<f64>::identity(m, m);
        let par = par_for(m);
        gemm(covariance.as_mut(), Accum::Add, half.transpose(), half.as_ref(), -1.0, par);
        covariance
    }

    /// Draws z and writes Aᵢᵀz into `row`.
    pub fn draw(&mut self, features: &Features, rng: &mut impl rand::Rng) {
        // both kinds of noise from one stream: first what comes first
        let (m, n) = (features.a.ncols(), features.a.nrows());
        let count = if features.is_full() { m + n } else { m };
        let noise: Vec<f64> = StandardNormal.sample_iter(rng).take(count).collect();
        self.solve(features, |j| noise[j], |i| noise[m + i]);
        let (z, row) = (self.z.as_ref(), self.row.as_mut());
        gemm(row, Accum::Replace, features.a.as_ref(), z, 1.0, Par::Seq);
    }

    /// Returns the last z drawn, or right after [`Conditional::renew`] its mean.
    pub fn z(&self) -> &[f64] {
        self.z.col_as_slice(0)
    }

    /// Returns Aᵢᵀz of the last z drawn.
    pub fn rows(&self) -> &[f64] {
        self.row.col_as_slice(0)
    }
}

//! Factor covariance structure (Ong, Nott & Smith 2018): Σ = BBᵀ + diag(d²).
//!
//! With x = μ + Bz + d∘ε, u = Bz + d∘ε and gradients G at S positions
//!
//! ```text
//! ∇μ = ḡ      ∇B = G zᵀ/S − h_B      ∇d = E[g∘ε] − h_d
//! closed      h_B = Σ⁻¹B             h_d = diag(Σ⁻¹)∘d
//! sampled     h_B = E[Σ⁻¹u zᵀ]       h_d = E[Σ⁻¹u ∘ ε]
//! ```
//! The sampled entropy has no noise at a Gaussian optimum inside the family. Σ⁻¹V = V/d² − B̃(I + BᵀB̃)⁻¹B̃ᵀV with B̃
//! = B/d²: O(DP²).

use super::DescentOptions;
use crate::error::{Error, Result};
use crate::flow::optimiser::{FlowOptimiser, Scale};
use crate::flow::particles::{normals, shifted};
use crate::flow::run::{Progress, Solver};
use crate::flow::target::{
    Evaluation, Target, check_dim, check_finite, check_finite_matrix, check_symmetric,
};
use crate::linalg::{
    Accum, Cholesky, Jitter, Mat, MatRef, Par, column, column_mut, gemm, product, solve_lower,
    symmetric_eigen,
};
use crate::rng::stream;
use rand::Rng;

/// How the gradient of the entropy is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Entropy {
    /// In closed form.
    #[default]
    Closed,
    /// At the same draws as φ.
    Sampled,
}

/// q = N(μ, BBᵀ + diag(d²)) that descends.
#[derive(Clone, Debug)]
pub struct Fcs {
    mean: Vec<f64>,
    b: Mat<f64>,
    d: Vec<f64>,
    entropy: Entropy,
    options: DescentOptions,
    /// Of μ, B and d.
    optimisers: [FlowOptimiser; 3],
}

/// Gradients of the free energy.
#[derive(Clone, Debug)]
pub struct FcsGradient {
    /// By μ, D numbers.
    pub mean: Vec<f64>,
    /// By B, D×P.
    pub b: Mat<f64>,
    /// By d, D numbers.
    pub d: Vec<f64>,
    /// The estimate of F itself.
    pub free_energy: f64,
}

impl Fcs {
    /// Starts from μ (D numbers), B (D×P) and d (D numbers above 0).
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::NonFinite`] and [`Error::Invalid`] for a start or options that do not fit.
    pub fn new(
        mean: Vec<f64>,
        b: Mat<f64>,
        d: Vec<f64>,
        entropy: Entropy,
        options: DescentOptions,
    ) -> Result<Self> {
        options.check()?;
        check_dim("rows of B", b.nrows(), mean.len())?;
        check_dim("d", d.len(), mean.len())?;
        check_finite("the mean of a Gaussian", &mean)?;
        check_finite_matrix("B", b.as_ref())?;
        check_finite("d", &d)?;
        if let Some(least) = d.iter().find(|d| **d <= 0.0) {
            return Err(Error::Invalid(format!("d has numbers above 0, not {least}")));
        }
        let optimiser = || FlowOptimiser::new(options.rule, Scale::Element);
        let optimisers = [optimiser()?, optimiser()?, optimiser()?];
        Ok(Self { mean, b, d, entropy, options, optimisers })
    }

    /// Starts from a mean and a covariance C₀ (D×D), with P columns in B: exactly for P = D, with d = τ1, τ² half the
    /// least eigenvalue and B a root of C₀ − τ²I; else B has the P widest directions and d² = max(diag(C₀ − BBᵀ),
    /// τ²).
    ///
    /// # Errors
    /// [`Error::Shape`] for a covariance of another size or that is not symmetric to rounding, [`Error::Invalid`] for P
    /// above D or a covariance that is not positive definite; as for [`Fcs::new`].
    pub fn of_covariance(
        mean: Vec<f64>,
        covariance: MatRef<'_, f64>,
        rank: usize,
        entropy: Entropy,
        options: DescentOptions,
    ) -> Result<Self> {
        let dim = mean.len();
        check_dim("rows of a covariance", covariance.nrows(), dim)?;
        check_dim("columns of a covariance", covariance.ncols(), dim)?;
        check_symmetric("a covariance", covariance)?;
        let (values, vectors) = symmetric_eigen(covariance)?;
        let least = values.first().copied().unwrap_or(0.0);
        if rank > dim || least.is_nan() || least <= 0.0 {
            return Err(Error::Invalid(format!(
                "{rank} columns for {dim} dimensions and a least eigenvalue of {least}: B has at most as many columns as \
                 rows, and the covariance is positive definite"
            )));
        }
        let floor = 0.5 * least;
        // eigenvalues rise; B has the largest
        let less = if rank == dim { floor } else { 0.0 };
        let at = |k: usize| dim - 1 - k;
        let b = Mat::from_fn(dim, rank, |i, k| vectors[(i, at(k))] * (values[at(k)] - less).sqrt());
        let rest = |i: usize| {
            let inside: f64 = (0..rank).map(|k| b[(i, k)] * b[(i, k)]).sum();
            if rank == dim { floor } else { (covariance[(i, i)] - inside).max(floor) }
        };
        let d = (0..dim).map(|i| rest(i).sqrt()).collect();
        Self::new(mean, b, d, entropy, options)
    }

    /// Returns μ, D numbers.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// Returns B (D×P) and d (D numbers).
    pub fn factors(&self) -> (MatRef<'_, f64>, &[f64]) {
        (self.b.as_ref(), &self.d)
    }

    /// Returns Σ, D×D: for small D only.
    pub fn covariance(&self) -> Mat<f64> {
        let mut out = product(self.b.as_ref(), self.b.transpose());
        self.d.iter().enumerate().for_each(|(i, d)| out[(i, i)] += d * d);
        out
    }

    /// Draws S positions of q, D×S.
    pub fn draw(&self, count: usize, rng: &mut impl Rng) -> Mat<f64> {
        let z = normals(self.b.ncols(), count, rng);
        let e = normals(self.mean.len(), count, rng);
        shifted(self.centred(z.as_ref(), e.as_ref()), &self.mean)
    }

    /// Returns u = Bz + d∘ε.
    fn centred(&self, z: MatRef<'_, f64>, e: MatRef<'_, f64>) -> Mat<f64> {
        let mut u = Mat::from_fn(e.nrows(), e.ncols(), |i, s| self.d[i] * e[(i, s)]);
        if self.b.ncols() > 0 {
            gemm(u.as_mut(), Accum::Add, self.b.as_ref(), z, 1.0, Par::Seq);
        }
        u
    }

    /// Returns the factor of I + BᵀB̃ with Ŵ = L⁻¹B̃ᵀ (P×D), and log|Σ|.
    fn inner(&self) -> Result<(Mat<f64>, f64)> {
        let (dim, rank) = (self.b.nrows(), self.b.ncols());
        let mut scaled = Mat::from_fn(rank, dim, |k, i| self.b[(i, k)] / (self.d[i] * self.d[i]));
        let mut inner = product(scaled.as_ref(), self.b.as_ref());
        (0..rank).for_each(|k| inner[(k, k)] += 1.0);
        let factor = Cholesky::new(inner.as_ref(), Jitter::Absolute(0.0), "I + BᵀB̃")?;
        solve_lower(factor.l.as_ref(), scaled.as_mut(), Par::Seq);
        let log: f64 = self.d.iter().map(|d| (d * d).ln()).sum();
        Ok((scaled, log + factor.log_det()))
    }

    /// Returns Σ⁻¹V.
    fn solve(&self, inner: &Mat<f64>, v: MatRef<'_, f64>) -> Mat<f64> {
        let mut out =
            Mat::from_fn(v.nrows(), v.ncols(), |i, s| v[(i, s)] / (self.d[i] * self.d[i]));
        let part = product(inner.as_ref(), v);
        gemm(out.as_mut(), Accum::Add, inner.transpose(), part.as_ref(), -1.0, Par::Seq);
        out
    }

    /// Computes the gradients for given draws z (P×S) and ε (D×S).
    ///
    /// # Errors
    /// [`Error::Shape`] for draws of another size; as for [`Evaluation::of`].
    pub fn gradient(
        &self,
        target: &mut dyn Target,
        z: MatRef<'_, f64>,
        e: MatRef<'_, f64>,
    ) -> Result<FcsGradient> {
        check_dim("rows of z", z.nrows(), self.b.ncols())?;
        check_dim("rows of ε", e.nrows(), self.mean.len())?;
        check_dim("draws of z", z.ncols(), e.ncols())?;
        let u = self.centred(z, e);
        let own = Evaluation::of(target, shifted(u.clone(), &self.mean).as_ref())?;
        let (inner, log) = self.inner()?;
        let scale = 1.0 / e.ncols() as f64;
        // what φ contributes, less the entropy at the same draws where that is sampled
        let mut slopes = own.gradient.clone();
        if self.entropy == Entropy::Sampled {
            slopes -= self.solve(&inner, u.as_ref());
        }
        let mut b = product(slopes.as_ref(), z.transpose()) * faer::Scale(scale);
        let mut d = vec![0.0; self.d.len()];
        for s in 0..e.ncols() {
            let pairs = column(slopes.as_ref(), s).iter().zip(column(e, s));
            d.iter_mut().zip(pairs).for_each(|(d, (g, e))| *d += scale * g * e);
        }
        if self.entropy == Entropy::Closed {
            b -= self.solve(&inner, self.b.as_ref());
            for (i, by) in d.iter_mut().enumerate() {
                let explained: f64 = column(inner.as_ref(), i).iter().map(|w| w * w).sum();
                *by -= self.d[i].recip() - explained * self.d[i];
            }
        }
        let free_energy = own.mean_phi() - 0.5 * log;
        Ok(FcsGradient { mean: own.mean_gradient(), b, d, free_energy })
    }
}

impl Solver for Fcs {
    fn advance(&mut self, target: &mut dyn Target, step: usize) -> Result<Progress> {
        check_dim("the target", target.dim(), self.mean.len())?;
        target.renew(step);
        let mut rng = stream(self.options.seed, &format!("flow/draws/{step}"));
        let z = normals(self.b.ncols(), self.options.draws, &mut rng);
        let e = normals(self.mean.len(), self.options.draws, &mut rng);
        let gradient = self.gradient(target, z.as_ref(), e.as_ref())?;
        let rate = self.options.rate * self.options.schedule.factor(step);
        let [of_mean, of_b, of_d] = &mut self.optimisers;
        let by = of_mean.step_vector(&gradient.mean, -rate)?;
        self.mean.iter_mut().zip(by).for_each(|(m, by)| *m += by);
        let by = of_b.step(gradient.b.as_ref(), -rate)?;
        for k in 0..self.b.ncols() {
            let to = column_mut(self.b.as_mut(), k).iter_mut();
            to.zip(column(by.as_ref(), k)).for_each(|(b, by)| *b += by);
        }
        let by = of_d.step_vector(&gradient.d, -rate)?;
        // the sign of d is of no matter, and steps that were cut to stay above 0 would end there
        self.d.iter_mut().zip(by).for_each(|(d, by)| *d = (*d + by).abs());
        let square = |v: &[f64]| v.iter().map(|g| g * g).sum::<f64>();
        Ok(Progress {
            free_energy: Some(gradient.free_energy),
            stationarity: square(&gradient.mean)
                + square(&gradient.d)
                + gradient.b.squared_norm_l2(),
            scale: 1.0,
            stalled: false,
        })
    }

    fn is_finite(&self) -> bool {
        check_finite("", self.mean.iter().chain(&self.d)).is_ok()
            && check_finite_matrix("", self.b.as_ref()).is_ok()
    }
}

//! Collapsed bounds with uncertain inputs and Gaussian noise (Titsias & Lawrence 2010; Titsias 2025, Eq. 37 and §B.5).
//!
//! With K = Kuu = LLᵀ, B = I + L⁻¹Ψ₂L⁻ᵀ/σ² = L_B L_Bᵀ, c = L_B⁻¹L⁻¹Ψ₁ᵀY/σ² and dᵢ = ψ₀ᵢ − tr K⁻¹ψ₂ᵢ the part of the data is
//!
//! ```text
//! F = −(NP/2) log 2πσ² − ‖Y‖²/2σ² − (P/2) log|B| + ½‖c‖² − P ρ(d, σ²)
//! ```
//!
//! with ρ as for known inputs ([`crate::terms`]): `titsias2025` has ½ Σ log(1 + dᵢ/σ²), the logarithm outside of the
//! expectation, since vᵢ may not depend on xᵢ. The bound of the GP-LVM is F − KL(q(X) ‖ N(0, I)). A column with missing rows has Ψ₂ of the rows it has, and ρ counts cells:
//! columns that are missing in the same rows share a B ([`Targets`]).

use super::targets::Targets;
use crate::error::{Error, Result};
use crate::kernels::{self, Cotangents, Kernel, Tape};
use crate::linalg::{
    Accum, Cholesky, Jitter, Mat, MatRef, Par, dot, gemm, par_for, product, sandwich_inverse,
    solve_lower, solve_lower_transpose, symmetrise,
};
use crate::psi::Bars;
use crate::psi::{Psi, Uncertain};
use crate::terms::{Pooling, Term};
use faer::Scale;
use std::f64::consts::TAU;

/// What a bound is of.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    /// The kernel of all columns.
    pub kernel: &'a dyn Kernel,
    /// Inducing points, M×Q.
    pub points: MatRef<'a, f64>,
    /// Noise variance σ².
    pub noise: f64,
    /// What tells the bound from the others: [`crate::terms::Titsias2009`], [`crate::terms::Titsias2025`] or another.
    pub term: &'static dyn Term,
    /// Jitter of Kuu.
    pub jitter: Jitter,
    /// Rows of a block; none for the default.
    pub block: Option<usize>,
}

impl std::fmt::Debug for Setting<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Setting({:?}, {}, σ² = {})", self.kernel, self.term.name(), self.noise)
    }
}

/// What columns that are missing in the same rows share.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    /// L_B.
    pub(super) factor: Cholesky,
    /// K⁻¹ − R⁻¹ = L⁻ᵀ(I − B⁻¹)L⁻¹ with R = K + Ψ₂/σ², M×M: how the rows reduce variances. Small
    /// where both terms are large.
    pub(super) reduction: Mat<f64>,
    /// I − B⁻¹.
    shrinkage: Mat<f64>,
    /// Ψ₂.
    psi2: Mat<f64>,
    /// E = ½(P (K⁻¹ − R⁻¹) − bbᵀ).
    e: Mat<f64>,
}

/// q(v) = N(mean, root·rootᵀ) of the whitened variable v = L⁻¹u.
#[derive(Clone, Debug)]
pub struct Whitened {
    /// L of Kuu.
    pub factor: Cholesky,
    /// M×P.
    pub mean: Mat<f64>,
    /// M×M, lower triangular.
    pub root: Mat<f64>,
}

/// A bound at one setting, after the first pass over the rows.
#[derive(Debug)]
pub struct Bound<'a> {
    setting: Setting<'a>,
    x: Uncertain<'a>,
    targets: &'a Targets,
    psi: Psi,
    pub(super) factor: Cholesky,
    /// K⁻¹.
    pub(super) inverse: Mat<f64>,
    pub(super) shared: Vec<Shared>,
    /// b = L⁻ᵀL_B⁻ᵀc, M×P.
    pub(super) b: Mat<f64>,
    unexplained: Vec<f64>,
    /// wᵢ = −Σ_p ∂ρ/∂dᵢ.
    slopes: Vec<f64>,
    /// Rows with d below 0 by more than rounding.
    negative: usize,
    explained: f64,
    /// Σ tr K⁻¹ψ₂ᵢ over all cells.
    projected: f64,
    penalty_by_noise: f64,
    data: f64,
}

/// Cotangents of Kuu and of the ψ-statistics.
#[derive(Clone, Debug)]
pub struct LatentAdjoints {
    /// Of Kuu with its jitter, M×M, symmetric.
    pub kuu: Mat<f64>,
    /// Of ψ₀, N numbers.
    pub psi0: Vec<f64>,
    /// Factors of that of Ψ₁: N×P and M×P.
    pub psi1: (Mat<f64>, Mat<f64>),
    /// That of row i's ψ₂ is Σ_c w_ic G_c: w (N×C), G (C of M×M).
    pub psi2: (Mat<f64>, Vec<Mat<f64>>),
}

/// Slopes of a bound.
#[derive(Clone, Debug)]
pub struct LatentGradient {
    /// By the kernel's constrained parameters.
    pub kernel: Vec<f64>,
    /// By σ².
    pub noise: f64,
    /// By the inducing points, M×Q.
    pub points: Mat<f64>,
    /// By μ, N×Q.
    pub mean: Mat<f64>,
    /// By S, N×Q.
    pub variance: Mat<f64>,
}

/// Returns KL(q(X) ‖ N(0, I)) = ½ Σ (μ² + S − log S − 1).
pub fn divergence(x: Uncertain<'_>) -> f64 {
    let (n, q) = (x.mean.nrows(), x.mean.ncols());
    let one = |i: usize, j: usize| {
        let (m, s) = (x.mean[(i, j)], x.variance[(i, j)]);
        0.5 * (m * m + s - s.ln() - 1.0)
    };
    (0..q).map(|j| (0..n).map(|i| one(i, j)).sum::<f64>()).sum()
}

/// Solves from both sides: L⁻¹AL⁻ᵀ, symmetric.
pub(super) fn whitened(l: MatRef<f64>, a: MatRef<f64>) -> Mat<f64> {
    let mut out = a.to_owned();
    let par = par_for(a.nrows());
    solve_lower(l, out.as_mut(), par);
    solve_lower(l, out.as_mut().transpose_mut(), par);
    symmetrise(out.as_mut());
    out
}

/// A d below minus this part of ψ₀ is more than rounding.
const ROUNDING: f64 = 1e-8;

impl<'a> Bound<'a> {
    /// Makes the first pass over the rows `x` (N×Q) with their targets.
    ///
    /// # Errors
    /// [`Error::Shape`] for sizes that do not fit; [`Error::Invalid`] for a kernel without expectations in closed form;
    /// [`Error::NotPositiveDefinite`] for points too close, and [`Error::NonFinite`] where the
    /// bound is not a number.
    pub fn new(setting: Setting<'a>, x: Uncertain<'a>, targets: &'a Targets) -> Result<Self> {
        if x.mean.nrows() != targets.rows() {
            let (expected, found) =
                (format!("{} rows", targets.rows()), format!("{}", x.mean.nrows()));
            return Err(Error::Shape { what: "uncertain inputs".into(), expected, found });
        }
        if !(setting.noise > 0.0 && setting.noise.is_finite()) {
            return Err(Error::InvalidParameter {
                path: "likelihood.variance".into(),
                reason: format!("{} is not a positive number", setting.noise),
            });
        }
        let mut psi = Psi::new(setting.kernel, setting.points)?;
        if let Some(rows) = setting.block {
            psi = psi.with_block(rows);
        }
        let m = setting.points.nrows();
        let factor = kernels::factor(setting.kernel, setting.points, setting.jitter, "Kuu")?;
        let inverse = factor.inverse();
        let against = std::slice::from_ref(&inverse);
        let folded = psi.fold(x, targets.y.as_ref(), targets.has.as_ref(), against)?;
        let psi0 = psi.psi0(x)?;
        let unexplained: Vec<f64> =
            psi0.iter().enumerate().map(|(i, k)| k - folded.traces[(i, 0)]).collect();
        let negative = unexplained.iter().zip(&psi0).filter(|(d, k)| **d < -ROUNDING * **k).count();
        let mut own = Self {
            setting,
            x,
            targets,
            psi,
            factor,
            inverse,
            shared: Vec::new(),
            b: Mat::zeros(m, targets.columns()),
            unexplained,
            slopes: Vec::new(),
            negative,
            explained: 0.0,
            projected: (0..targets.rows()).map(|i| targets.cells[i] * folded.traces[(i, 0)]).sum(),
            penalty_by_noise: 0.0,
            data: 0.0,
        };
        own.data = own.sum(folded.psi1_y, folded.psi2)?;
        if own.data.is_finite() {
            return Ok(own);
        }
        Err(Error::NonFinite { what: "the bound".into(), value: own.data })
    }

    /// Returns F, with all that its slopes need.
    fn sum(&mut self, psi1_y: Mat<f64>, psi2: Vec<Mat<f64>>) -> Result<f64> {
        let (noise, l) = (self.setting.noise, self.factor.l.as_ref());
        let cells = self.targets.cells() as f64;
        let y = &self.targets.y;
        let mut value = -0.5 * (cells * (TAU * noise).ln() + dot(y.as_ref(), y.as_ref()) / noise);
        for (group, psi2) in self.targets.groups.iter().zip(psi2) {
            let columns = &group.columns;
            let p = columns.len() as f64;
            let mut gram = whitened(l, psi2.as_ref());
            let m = gram.nrows();
            gram = Mat::from_fn(m, m, |i, j| gram[(i, j)] / noise + if i == j { 1.0 } else { 0.0 });
            let factor =
                Cholesky::new(gram.as_ref(), Jitter::Absolute(0.0), "B = I + L⁻¹Ψ₂L⁻ᵀ/σ²")?;
            let mut c = Mat::from_fn(m, columns.len(), |i, j| psi1_y[(i, columns[j])] / noise);
            solve_lower(l, c.as_mut(), Par::Seq);
            solve_lower(factor.l.as_ref(), c.as_mut(), Par::Seq);
            let explained = dot(c.as_ref(), c.as_ref());
            self.explained += explained;
            value += 0.5 * (explained - p * factor.log_det());
            solve_lower_transpose(factor.l.as_ref(), c.as_mut(), Par::Seq);
            solve_lower_transpose(l, c.as_mut(), Par::Seq);
            for (at, column) in columns.iter().enumerate() {
                self.b.col_as_slice_mut(*column).copy_from_slice(c.col_as_slice(at));
            }
            let inverse = factor.inverse();
            let shrinkage =
                Mat::from_fn(
                    m,
                    m,
                    |i, j| {
                        if i == j { 1.0 - inverse[(i, i)] } else { -inverse[(i, j)] }
                    },
                );
            let reduction = sandwich_inverse(l, shrinkage.clone(), par_for(m));
            let mut e = &reduction * Scale(0.5 * p);
            gemm(e.as_mut(), Accum::Add, c.as_ref(), c.transpose(), -0.5, par_for(m));
            symmetrise(e.as_mut());
            self.shared.push(Shared { factor, reduction, shrinkage, psi2, e });
        }
        let (penalty, slopes, by_noise) = self.penalty();
        (self.slopes, self.penalty_by_noise) = (slopes, by_noise);
        Ok(value - penalty)
    }

    /// Returns Σ ρ over all cells, minus its slopes in d, and its slope in σ². What is pooled is
    /// pooled over cells.
    fn penalty(&self) -> (f64, Vec<f64>, f64) {
        let (term, noise, cells) = (self.setting.term, self.setting.noise, &self.targets.cells);
        let both = || self.unexplained.iter().zip(cells);
        match term.pooling() {
            Pooling::Total => {
                let total: f64 = both().map(|(d, cells)| d * cells).sum();
                let pooled = term.penalty(total, cells.iter().sum(), noise);
                let slopes = cells.iter().map(|cells| -cells * pooled.by_r).collect();
                (pooled.value, slopes, pooled.by_noise)
            }
            Pooling::Rows => {
                let (mut value, mut by_noise, mut slopes) = (0.0, 0.0, Vec::new());
                for (d, cells) in both() {
                    let own = term.penalty(*d, 1.0, noise);
                    value += cells * own.value;
                    by_noise += cells * own.by_noise;
                    slopes.push(-cells * own.by_r);
                }
                (value, slopes, by_noise)
            }
        }
    }

    /// Returns the bound F − KL(q(X) ‖ N(0, I)); minus infinity for inputs that are known.
    pub fn value(&self) -> f64 {
        self.data - divergence(self.x)
    }

    /// Returns F, the part of the data: a bound of the expectation of log p(Y | X) under q(X).
    pub fn data(&self) -> f64 {
        self.data
    }

    /// Returns d, the expected variance that the inducing points do not explain, of every row.
    pub fn unexplained(&self) -> &[f64] {
        &self.unexplained
    }

    /// Returns how many rows have a d below 0 by more than rounding: then the jitter is too small.
    pub fn negative(&self) -> usize {
        self.negative
    }

    /// Returns the best q(u) = N(m, S_p) of every column: m (M×P), and S of every group of columns
    /// ([`Targets::groups`]), M×M.
    pub fn q_u(&self) -> (Mat<f64>, Vec<Mat<f64>>) {
        let l = &self.factor.l;
        let half = product(l.transpose(), self.b.as_ref());
        let covariance = |shared: &Shared| {
            let left = product(l.as_ref(), shared.factor.inverse().as_ref());
            let mut own = product(left.as_ref(), l.transpose());
            symmetrise(own.as_mut());
            own
        };
        (product(l.as_ref(), half.as_ref()), self.shared.iter().map(covariance).collect())
    }

    /// Returns the best q of the whitened variable L⁻¹u, of columns that are missing in the same
    /// rows.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`], which only rounding can cause; [`Error::Invalid`] for several groups of columns.
    pub fn whitened(&self) -> Result<Whitened> {
        let [shared] = &self.shared[..] else {
            return Err(Error::Invalid(
                "columns that are missing in other rows have a q each".into(),
            ));
        };
        let b = product(shared.factor.l.as_ref(), shared.factor.l.transpose());
        Ok(Whitened {
            factor: self.factor.clone(),
            mean: product(self.factor.l.transpose(), self.b.as_ref()),
            root: Cholesky::inverse_root(b.as_ref(), Jitter::Relative(0.0), "B = I + L⁻¹Ψ₂L⁻ᵀ/σ²")?,
        })
    }

    /// Returns the cotangents of ψ₂: that of row i's ψ₂ is −½σ⁻²Σ_p(R⁻¹ + bbᵀ) − wᵢK⁻¹ over the
    /// cells of the row. What R⁻¹ and K⁻¹ have in common is taken out, which for the bound of 2009
    /// leaves nothing of K⁻¹: else large numbers would cancel.
    fn psi2_bars(&self) -> (Mat<f64>, Vec<Mat<f64>>) {
        let (has, count, noise) = (&self.targets.has, self.shared.len(), self.setting.noise);
        let rest = |i: usize| -self.slopes[i] - 0.5 * self.targets.cells[i] / noise;
        let weights =
            Mat::from_fn(
                has.nrows(),
                count + 1,
                |i, c| {
                    if c < count { has[(i, c)] } else { rest(i) }
                },
            );
        let scaled = self.shared.iter().map(|shared| &shared.e * Scale(1.0 / noise));
        let all = scaled.chain([self.inverse.clone()]).collect();
        (weights, all)
    }

    /// Returns the cotangent of Kuu, L⁻ᵀ[½ Σ_p (I − B⁻¹) − ½ Lᵀb(Lᵀb)ᵀ + L⁻¹ΨL⁻ᵀ]L⁻¹ with Ψ = Σᵢ
    /// wᵢψ₂ᵢ. What is given is −Σᵢ (wᵢ + nᵢ/2σ²)ψ₂ᵢ for rows of nᵢ cells.
    fn kuu_bar(&self, rest: MatRef<f64>) -> Mat<f64> {
        let (l, noise) = (&self.factor.l, self.setting.noise);
        let mut weighted = rest.to_owned() * Scale(-1.0);
        for (shared, group) in self.shared.iter().zip(&self.targets.groups) {
            weighted -= &shared.psi2 * Scale(0.5 * group.columns.len() as f64 / noise);
        }
        let mut inner = whitened(l.as_ref(), weighted.as_ref());
        for (shared, group) in self.shared.iter().zip(&self.targets.groups) {
            inner += &shared.shrinkage * Scale(0.5 * group.columns.len() as f64);
        }
        let half = product(l.transpose(), self.b.as_ref());
        gemm(inner.as_mut(), Accum::Add, half.as_ref(), half.transpose(), -0.5, Par::Seq);
        sandwich_inverse(l.as_ref(), inner, par_for(l.nrows()))
    }

    /// Returns the cotangents of F.
    ///
    /// # Errors
    /// None that inputs can cause.
    pub fn adjoints(&self) -> Result<LatentAdjoints> {
        let psi2 = self.psi2_bars();
        let none = Mat::zeros(self.slopes.len(), 0);
        let rest = psi2.0.as_ref().subcols(self.shared.len(), 1);
        let rest = self.psi.fold(self.x, none.as_ref(), rest, &[])?.psi2.remove(0);
        Ok(LatentAdjoints {
            kuu: self.kuu_bar(rest.as_ref()),
            psi0: self.slopes.clone(),
            psi1: (self.targets.y.clone(), &self.b * Scale(1.0 / self.setting.noise)),
            psi2,
        })
    }

    /// Returns the slopes of F: only of the part of the data.
    ///
    /// # Errors
    /// None that inputs can cause.
    pub fn data_gradient(&self) -> Result<LatentGradient> {
        let noise = self.setting.noise;
        let (weights, psi2) = self.psi2_bars();
        let right = &self.b * Scale(1.0 / noise);
        let bars = Bars {
            psi0: &self.slopes,
            psi1: (self.targets.y.as_ref(), right.as_ref()),
            weights: weights.as_ref(),
            psi2: &psi2,
            kept: Some(self.shared.len()),
        };
        let pulled = self.psi.pull(self.x, &bars)?;
        let m = self.b.nrows();
        let mut kuu_bar = self.kuu_bar(pulled.kept.unwrap_or_else(|| Mat::zeros(m, m)).as_ref());
        self.factor.pull_jitter(&mut kuu_bar);
        let (mut kernel, mut points) = (pulled.kernel, pulled.points);
        let (mut tape, mut kuu) = (Tape::recording(), Mat::zeros(m, m));
        let z = self.setting.points;
        self.setting.kernel.evaluate(z, None, kuu.as_mut(), &mut tape);
        let mut sinks = Cotangents { params: &mut kernel, x: Some(points.as_mut()), z: None };
        let bar = kuu_bar.as_mut();
        self.setting.kernel.vjp(z, None, kuu.as_ref(), bar, &mut tape, &mut sinks);

        let y = &self.targets.y;
        let squares = dot(y.as_ref(), y.as_ref());
        // −½ Σ_p tr (R⁻¹ + bbᵀ)Ψ₂, in which tr K⁻¹ψ₂ = ψ₀ − d of every cell
        let through = self.shared.iter().map(|own| dot(own.e.as_ref(), own.psi2.as_ref()));
        let through = through.sum::<f64>() - 0.5 * self.projected;
        let by_noise = -0.5 * self.targets.cells() as f64 / noise
            + (0.5 * squares - through) / (noise * noise)
            - self.explained / noise
            - self.penalty_by_noise;
        Ok(LatentGradient {
            kernel,
            noise: by_noise,
            points,
            mean: pulled.mean,
            variance: pulled.variance,
        })
    }

    /// Returns the slopes of the bound F − KL(q(X) ‖ N(0, I)).
    ///
    /// # Errors
    /// [`Error::Invalid`] for inputs that are known: their divergence has no slope.
    pub fn gradient(&self) -> Result<LatentGradient> {
        let mut own = self.data_gradient()?;
        for q in 0..own.mean.ncols() {
            for i in 0..own.mean.nrows() {
                let s = self.x.variance[(i, q)];
                if s <= 0.0 {
                    return Err(Error::Invalid(format!(
                        "the input in row {}, latent dimension {}, is known, and its divergence from the prior has no slope; ask for \
                         the slopes of the data part",
                        i + 1,
                        q + 1
                    )));
                }
                own.mean[(i, q)] -= self.x.mean[(i, q)];
                own.variance[(i, q)] -= 0.5 * (1.0 - 1.0 / s);
            }
        }
        Ok(own)
    }

    pub(super) fn setting(&self) -> &Setting<'a> {
        &self.setting
    }

    pub(super) fn targets(&self) -> &Targets {
        self.targets
    }

    pub(super) fn psi(&self) -> &Psi {
        &self.psi
    }
}

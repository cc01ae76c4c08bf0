//! q(u) as prior times Gaussian sites (Adam, Chang, Khan & Solin 2021): the dual parameterisation.
//!
//! Row i has the site exp(λ₁ᵢ f − ½ λ₂ᵢ f²) on f = aᵢᵀu, aᵢ = Kuu⁻¹kᵢ. With cᵢ = L⁻¹kᵢ and whitened u = Lv,
//!
//! ```text
//! γ₁ = Σ cᵢλ₁ᵢ    Γ₂ = Σ λ₂ᵢ cᵢcᵢᵀ    B = I + Γ₂    q(v) = N(e, B⁻¹),  e = B⁻¹γ₁
//! ```
//!
//! What is stored, and so stays the same when hyperparameters and inducing points move, is one of:
//!
//! | [`Tying`] | stored | the M-step it gives |
//! | --- | --- | --- |
//! | [`Tying::Natural`] | G₁ = Σ aᵢλ₁ᵢ, G₂ = Σ λ₂ᵢaᵢaᵢᵀ: what q's natural parameters have beyond the prior's | tight |
//! | [`Tying::Untied`] | λ₁, λ₂ of every row | the tightest, for all rows at once |
//! | [`Tying::Kernel`] | Σ kᵢλ₁ᵢ, Σ λ₂ᵢkᵢkᵢᵀ: as the paper prints it (Eq. 21–24) | loose |
//! | [`Tying::Whitened`] | γ₁, Γ₂ | that of q(v) itself |
//!
//! All have the same steps of q (natural gradients: λ ← (1 − ρ)λ + ρ(α + βμ, β), with α = ∂ℓ/∂μ and
//! β = −2 ∂ℓ/∂v) and the same q where the sites were made.
//!
//! Adjoints of Kuu at fixed sites (derived from the bound of Adam et al. 2021, Eq. 15, and the adjoint of
//! the Cholesky factor, Murray 2016; the paper has none), as Ψ with K̄uu = −½ L⁻ᵀ mirror(Ψ) L⁻¹: with S = B⁻¹, p = Φa,
//! H = Φ diag(∂ℓ/∂s) Φᵀ, H_r = Φ diag(∂ℓ/∂r) Φᵀ, f = Se and Y = S(I − 2H),
//!
//! ```text
//! Natural          Ψ = Y(S − I) − Yᵀ + I + weᵀ + ewᵀ − 2H_r     w = (I − S)p + f − ½e
//! Kernel, Untied   Ψ = −YS + 2S − I + weᵀ + ewᵀ − 2H_r          w = Sp − f + ½e
//! ```

use super::{Form, Parts, Statistics, Variational};
use crate::error::{Error, Result};
use crate::linalg::{
    Accum, Cholesky, InverseRoot, Jitter, Mat, MatMut, MatRef, Par, column, gemm, gram_lower,
    mirror_lower, outer_gram, par_for, product, sandwich_inverse, sized, solve_lower,
    solve_lower_transpose, times_triangular,
};
use crate::params::{Param, Shape, Transform};
use faer::reborrow::ReborrowMut;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// What is stored of sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tying {
    /// Offsets of the natural parameters of q(u).
    Natural,
    /// Sums weighted by covariances, as the paper prints them.
    Kernel,
    /// Sums of whitened features.
    Whitened,
    /// The sites of all rows.
    Untied,
}

impl Tying {
    /// All of them with their names.
    pub const ALL: [(&'static str, Tying); 4] = [
        ("natural", Tying::Natural),
        ("untied", Tying::Untied),
        ("kernel", Tying::Kernel),
        ("whitened", Tying::Whitened),
    ];
}

impl Variational {
    /// Creates sites of 0, so that q is the prior: `size` is the number of inducing points, of rows
    /// where they are untied.
    pub fn sites(size: usize, latents: usize, tying: Tying) -> Self {
        let shape = Shape::Matrix(size, latents);
        let zeros = |shape, len| Param::with(vec![0.0; len], shape, Transform::Identity);
        let mut first = zeros(shape, size * latents);
        let mut second = match tying {
            Tying::Untied => zeros(shape, size * latents),
            _ => zeros(Shape::Lower(latents, size), latents * size * (size + 1) / 2),
        };
        // separate steps move them
        (first.frozen, second.frozen) = (true, true);
        Self::assemble(first, second, Form::Sites(tying))
    }

    /// Returns what sites are tied by; none if it is stored by moments.
    pub fn tying(&self) -> Option<Tying> {
        match self.form {
            Form::Sites(tying) => Some(tying),
            _ => None,
        }
    }

    /// Reads the second statistic of a latent function, M×M with both triangles; sites must be
    /// tied.
    fn read_second(&self, latent: usize, out: &mut Mat<f64>) {
        self.read_root(latent, out);
        mirror_lower(out.as_mut());
    }
}

/// Which sites, and where: how they are tied, the latent functions that share Kuu, and its factor.
#[derive(Clone, Debug)]
pub struct At<'a> {
    /// What is stored.
    pub tying: Tying,
    /// The latent functions.
    pub latents: Range<usize>,
    /// The factor of Kuu.
    pub factor: &'a Cholesky,
}

/// The work that sites take, with its memory.
#[derive(Clone, Debug)]
pub struct SiteWork {
    /// M×l.
    first: Mat<f64>,
    second: Mat<f64>,
    other: Mat<f64>,
    precision: Mat<f64>,
    root: InverseRoot,
    rotated: Mat<f64>,
    w: Mat<f64>,
}

impl Default for SiteWork {
    fn default() -> Self {
        Self {
            first: Mat::new(),
            second: Mat::new(),
            other: Mat::new(),
            precision: Mat::new(),
            root: InverseRoot::default(),
            rotated: Mat::new(),
            w: Mat::new(),
        }
    }
}

/// Returns the precisions of rows as the posterior takes them: T = L⁻ᵀL⁻¹ for L = diag(1/w) L_B,
/// which rows without precision must not break; they keep a millionth of the largest w, a part of
/// 10⁻¹² of T.
pub(crate) fn least_raised(second: &[f64]) -> Vec<f64> {
    let largest = second.iter().fold(1e-12_f64, |m, s| m.max(*s));
    second.iter().map(|s| s.max(1e-12 * largest)).collect()
}

const PRECISION: &str = "the precision I + Γ₂ of q's sites";

impl SiteWork {
    /// Computes whitened mean and root of some latent functions with tied sites.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`] if sites of negative precision outweigh the prior,
    /// [`Error::Invalid`] for untied sites, which only rows can tell ([`SiteWork::posterior_of`]).
    pub fn posterior(&mut self, q: &Variational, place: &At<'_>, out: &mut Parts) -> Result<()> {
        let At { tying, latents, factor } = place.clone();
        if tying == Tying::Untied {
            return Err(Error::Invalid("untied sites belong only to their own rows".into()));
        }
        let (m, l) = (q.points(), factor.l.as_ref());
        let par = par_for(m);
        out.sized(m, latents.len());
        sized(&mut self.first, m, latents.len());
        for (at, latent) in latents.clone().enumerate() {
            let own = &q.first.value()[latent * m..(latent + 1) * m];
            self.first.col_as_slice_mut(at).copy_from_slice(own);
        }
        match tying {
            Tying::Natural => {
                sized(&mut self.rotated, m, latents.len());
                let first = self.first.as_ref();
                gemm(self.rotated.as_mut(), Accum::Replace, l.transpose(), first, 1.0, par);
                std::mem::swap(&mut self.first, &mut self.rotated);
            }
            Tying::Kernel => solve_lower(l, self.first.as_mut(), par),
            _ => {}
        }
        for (at, latent) in latents.enumerate() {
            sized(&mut self.second, m, m);
            sized(&mut self.precision, m, m);
            q.read_second(latent, &mut self.second);
            match tying {
                Tying::Natural => {
                    sized(&mut self.other, m, m);
                    let (second, other) = (self.second.as_ref(), self.other.as_mut());
                    times_triangular(other, Accum::Replace, second, l, false, par);
                    let precision = self.precision.as_mut();
                    gram_lower(precision, Accum::Replace, l, self.other.as_ref(), 1.0, par);
                }
                Tying::Kernel => {
                    solve_lower(l, self.second.as_mut(), par);
                    solve_lower(l, self.second.as_mut().transpose_mut(), par);
                    self.precision.copy_from(&self.second);
                }
                _ => self.precision.copy_from(&self.second),
            }
            self.finish(at, out)?;
        }
        Ok(())
    }

    /// Computes the same from γ₁ (M×l) and Γ₂ of every latent function (lower triangles are read).
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`] as for [`SiteWork::posterior`].
    pub fn posterior_of(&mut self, sums: Statistics<'_>, out: &mut Parts) -> Result<()> {
        let (m, latents) = (sums.phi_a.nrows(), sums.phi_a.ncols());
        out.sized(m, latents);
        sized(&mut self.first, m, latents);
        self.first.copy_from(sums.phi_a);
        for at in 0..latents {
            sized(&mut self.precision, m, m);
            self.precision.copy_from(&sums.grams[at]);
            self.finish(at, out)?;
        }
        Ok(())
    }

    /// Computes e and the root of B⁻¹ from γ₁ and Γ₂.
    fn finish(&mut self, at: usize, out: &mut Parts) -> Result<()> {
        let m = self.precision.nrows();
        (0..m).for_each(|j| self.precision[(j, j)] += 1.0);
        let (precision, jitter) = (self.precision.as_ref(), Jitter::Absolute(0.0));
        self.root.of(precision, jitter, PRECISION, &mut out.roots[at])?;
        let root = out.roots[at].as_ref();
        let mean = out.mean.as_mut().subcols_mut(at, 1);
        sized(&mut self.rotated, m, 1);
        let first = self.first.as_ref().subcols(at, 1);
        gemm(self.rotated.as_mut(), Accum::Replace, root.transpose(), first, 1.0, Par::Seq);
        gemm(mean, Accum::Replace, root, self.rotated.as_ref(), 1.0, Par::Seq);
        Ok(())
    }

    /// Moves tied sites of some latent functions by a step of size `rate` from what rows say at q
    /// (`parts`): λ ← (1 − ρ)λ + ρ(Φa − 2Ge, −2G), in the coordinates of what is stored.
    pub fn step(
        &mut self,
        q: &mut Variational,
        place: &At<'_>,
        parts: &Parts,
        rows: Statistics<'_>,
        rate: f64,
    ) {
        let At { tying, latents, factor } = place.clone();
        let (m, l) = (q.points(), factor.l.as_ref());
        let par = par_for(m);
        sized(&mut self.first, m, latents.len());
        self.first.copy_from(rows.phi_a);
        for (at, gram) in rows.grams.iter().enumerate() {
            let mean = parts.mean.as_ref().subcols(at, 1);
            let target = self.first.as_mut().subcols_mut(at, 1);
            gemm(target, Accum::Add, gram.as_ref(), mean, -2.0, Par::Seq);
        }
        self.stored_first(tying, l, par);
        let size = m * (m + 1) / 2;
        for (at, latent) in latents.enumerate() {
            let mut second = std::mem::replace(&mut self.second, Mat::new());
            sized(&mut second, m, m);
            second.copy_from(&rows.grams[at]);
            match tying {
                Tying::Natural => second = sandwich_inverse(l, second, par),
                Tying::Kernel => {
                    let left = product(l, second.as_ref());
                    gemm(second.as_mut(), Accum::Replace, left.as_ref(), l.transpose(), 1.0, par);
                }
                _ => {}
            }
            let first = &mut q.first.value_mut()[latent * m..(latent + 1) * m];
            let source = column(self.first.as_ref(), at);
            first.iter_mut().zip(source).for_each(|(t, v)| *t += rate * (v - *t));
            let mut rest = &mut q.second.value_mut()[latent * size..(latent + 1) * size];
            for j in 0..m {
                let (target, tail) = rest.split_at_mut(m - j);
                let source = &column(second.as_ref(), j)[j..];
                target.iter_mut().zip(source).for_each(|(t, v)| *t += rate * (-2.0 * v - *t));
                rest = tail;
            }
            self.second = second;
        }
    }

    /// Takes the whitened means e (M×l) of every `each` latent functions to an average ē of 0, `parts` with them: e = Sγ₁ and S
    /// stays, so that γ₁ −= S⁻¹ē. ‖e − ē‖² summed over them is least of all that differ by a common shift. Returns by how much KL(q‖p) falls, ½ each ‖ē‖². Untied sites stay: they are for whoever knows the rows.
    pub fn centre(
        &mut self,
        q: &mut Variational,
        place: &At<'_>,
        parts: &mut Parts,
        each: usize,
    ) -> f64 {
        let At { tying, latents, factor } = place.clone();
        let (m, l) = (parts.mean.nrows(), factor.l.as_ref());
        sized(&mut self.first, m, latents.len());
        let mut fall = 0.0;
        for start in (0..latents.len()).step_by(each) {
            let group = start..start + each;
            for i in 0..m {
                let shift = group.clone().map(|at| parts.mean[(i, at)]).sum::<f64>() / each as f64;
                fall += 0.5 * each as f64 * shift * shift;
                for at in group.clone() {
                    parts.mean[(i, at)] -= shift;
                    self.first[(i, at)] = shift;
                }
            }
        }
        if tying == Tying::Untied {
            return fall;
        }
        for (at, root) in parts.roots.iter().enumerate() {
            let mut shift = self.first.as_mut().subcols_mut(at, 1);
            solve_lower(root.as_ref(), shift.as_mut(), Par::Seq);
            solve_lower_transpose(root.as_ref(), shift, Par::Seq);
        }
        self.stored_first(tying, l, par_for(m));
        for (at, latent) in latents.enumerate() {
            let first = &mut q.first.value_mut()[latent * m..(latent + 1) * m];
            let shift = column(self.first.as_ref(), at);
            first.iter_mut().zip(shift).for_each(|(t, v)| *t -= v);
        }
        fall
    }

    /// Computes γ₁ in the coordinates of what is stored.
    fn stored_first(&mut self, tying: Tying, l: MatRef<'_, f64>, par: Par) {
        match tying {
            Tying::Natural => solve_lower_transpose(l, self.first.as_mut(), par),
            Tying::Kernel => self.first = product(l, self.first.as_ref()),
            Tying::Whitened | Tying::Untied => {}
        }
    }

    /// Adds to the lower triangle of Ψ what it is beyond −2H_r, of all latent functions.
    pub fn add_psi(
        &mut self,
        tying: Tying,
        parts: &Parts,
        rows: Statistics<'_>,
        mut psi: MatMut<'_, f64>,
    ) {
        let m = psi.nrows();
        let par = par_for(m);
        let natural = tying == Tying::Natural;
        for (at, (root, gram)) in parts.roots.iter().zip(rows.grams).enumerate() {
            // S and Y = S − 2SH
            covariance(root.as_ref(), &mut self.second);
            sized(&mut self.other, m, m);
            self.other.copy_from(&self.second);
            let (s, y) = (self.second.as_ref(), self.other.as_mut());
            gemm(y, Accum::Add, s, gram.as_ref(), -2.0, par);
            let y = self.other.as_ref();
            let sign = if natural { 1.0 } else { -1.0 };
            gram_lower(psi.rb_mut(), Accum::Add, y.transpose(), s, sign, par);
            for j in 0..m {
                for i in j..m {
                    let unit = f64::from(u8::from(i == j));
                    psi[(i, j)] +=
                        if natural { unit - y[(i, j)] - y[(j, i)] } else { 2.0 * s[(i, j)] - unit };
                }
            }
            self.weigh(natural, parts, rows.phi_a, at);
            let (w, e) = (self.w.transpose(), parts.mean.as_ref().subcols(at, 1).transpose());
            for (a, b) in [(w, e), (e, w)] {
                gram_lower(psi.rb_mut(), Accum::Add, a, b, 1.0, par);
            }
        }
    }

    /// Returns Sp − f and Y_u of one latent function: how the sums of untied sites move q.
    pub fn back(&mut self, parts: &Parts, rows: Statistics<'_>, at: usize) -> (Mat<f64>, Mat<f64>) {
        covariance(parts.roots[at].as_ref(), &mut self.second);
        let (s, e) = (self.second.as_ref(), column_of(&parts.mean, at));
        let (sp, f) = (product(s, rows.phi_a.subcols(at, 1)), product(s, e.as_ref()));
        let mut y = s.to_owned();
        gemm(y.as_mut(), Accum::Add, s, rows.grams[at].as_ref(), -2.0, par_for(s.nrows()));
        let mut out = product(y.as_ref(), s);
        let m = s.nrows();
        let w = sp - f;
        for j in 0..m {
            for i in 0..m {
                let outer = w[(i, 0)] * e[(j, 0)] + e[(i, 0)] * w[(j, 0)];
                out[(i, j)] = 0.5 * (out[(i, j)] - s[(i, j)] - outer);
            }
        }
        crate::linalg::symmetrise(out.as_mut());
        (w, out)
    }

    /// Writes w into `self.w`, with S in `self.second`.
    fn weigh(&mut self, natural: bool, parts: &Parts, phi_a: MatRef<f64>, at: usize) {
        let (s, m) = (self.second.as_ref(), self.second.nrows());
        let (p, e) = (phi_a.subcols(at, 1), parts.mean.as_ref().subcols(at, 1));
        // Sp and f = Se
        sized(&mut self.rotated, m, 2);
        for (column, of) in [(0, p), (1, e)] {
            let target = self.rotated.as_mut().subcols_mut(column, 1);
            gemm(target, Accum::Replace, s, of, 1.0, Par::Seq);
        }
        sized(&mut self.w, m, 1);
        for i in 0..m {
            let (sp, f, e) = (self.rotated[(i, 0)], self.rotated[(i, 1)], e[(i, 0)]);
            self.w[(i, 0)] = if natural { p[(i, 0)] - sp + f - 0.5 * e } else { sp - f + 0.5 * e };
        }
    }
}

fn column_of(a: &Mat<f64>, j: usize) -> Mat<f64> {
    a.as_ref().subcols(j, 1).to_owned()
}

/// Computes S = RRᵀ, both triangles.
pub(crate) fn covariance(root: MatRef<f64>, out: &mut Mat<f64>) {
    let m = root.nrows();
    sized(out, m, m);
    outer_gram(out.as_mut(), root, par_for(m));
    mirror_lower(out.as_mut());
}

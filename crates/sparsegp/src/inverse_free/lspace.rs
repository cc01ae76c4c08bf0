//! What the rows see of q in L-space, its KL divergence or the bound on that, and the way back.
//!
//! With Φα and G = Φ diag(β) Φᵀ of the rows (α = ∂ℓ/∂μ, β = ∂ℓ/∂v summed over the latent functions) and κ, the
//! slope of the objective in the KL divergence (−1), all adjoints are made of two matrices: with h = Φα +
//! κ(I + E − J)ã,
//!
//! ```text
//! Ē = G + ½κ ããᵀ + ½κP (I + 2E − J) − sym(h w̃ᵀ)      J̄ = ½κP (I − E) − ½κ ããᵀ
//! K̄uu = L Ē Lᵀ      λ̄ = diag(L (Ē + J̄) Lᵀ) − κP/2λ      m̃̄ = L (I − E) h
//! L̄ = tril(L⁻ᵀ X) − κP diag(1/Lⱼⱼ)      X = Φα ãᵀ − 2G(I − E) + 2(I + E)Ē + 2JJ̄ + w̃ ((I − E)h)ᵀ
//! ```
//!
//! since E = Lᵀ(Kuu + Λ)L − I, J = LᵀΛL, Kuf = L⁻ᵀΦ, and K̄uf = L(ãαᵀ − 2(I − E)Φ diag β) is the business of the
//! engine. Without the preconditioner sym(h w̃ᵀ) is not there, and m̃̄ = L⁻ᵀh.

use super::Preconditioner;
use super::inversion::{Enough, Inversion, Solved, convert, infinity_norm};
use super::root::Root;
use super::schedule::SolverOptions;
use super::sketch::Sketch;
use super::traces::Estimate;
use crate::engine::{CholeskyBasis, Factors, Spread};
use crate::error::Result;
use crate::linalg::{
    Accum, Jitter, Mat, MatRef, Precision, SINGLE_ROUNDING, Structure, add_row_dots, by_columns,
    column, dot, gemm, invert_lower, par_for, sized, structured,
};

const LOWER: Structure = Structure::TriangularLower;
const WHOLE: Structure = Structure::Rectangular;

/// K̃ = Kuu + jitter·I + Λ in its parts; the jitter counts as Kuu's.
#[derive(Clone, Copy, Debug)]
pub struct Tilde<'a> {
    /// Kuu, M×M, both triangles.
    pub kuu: MatRef<'a, f64>,
    /// Added to its diagonal; neither method needs any.
    pub jitter: f64,
    /// λ > 0, M numbers.
    pub lambda: &'a [f64],
}

/// L-SVGP or R-SVGP at some parameters, prepared for the rows.
#[derive(Clone, Debug)]
pub struct LSpace {
    /// L.
    pub(super) root: Root,
    /// E and K̃L, for R-SVGP.
    pub(super) inversion: Inversion,
    /// Whether E is not 0.
    pub(super) relaxed: bool,
    pub(super) preconditioner: Preconditioner,
    /// Of L's steps, of K̄uu and of the rows.
    pub(super) products: Precision,
    /// L and E for the rows, where products are made in single precision.
    rounded: [Mat<f32>; 2],
    /// K̃ = Kuu + Λ.
    pub(super) tilde: Mat<f64>,
    pub(super) lambda: Vec<f64>,
    /// w̃ = Lᵀm̃ and ã, M×P.
    pub(super) w: Mat<f64>,
    pub(super) mean: Mat<f64>,
    /// Λ^½ L and Λ^½ L E.
    pub(super) scaled: Mat<f64>,
    pub(super) scaled_e: Mat<f64>,
    /// Row sums of L∘L and of LE∘L (or an estimate of those).
    pub(super) squares: Vec<f64>,
    pub(super) crossed: Vec<f64>,
    /// Ξ; without columns where traces are exact.
    pub(super) probes: Mat<f64>,
    pub(super) estimate: Estimate,
    pub(super) sketch: Sketch,
    pub(super) kl: f64,
    pub(super) core: Mat<f64>,
    pub(super) work: Mat<f64>,
    /// M×P each.
    pub(super) h: Mat<f64>,
    pub(super) small: [Mat<f64>; 3],
}

impl Default for LSpace {
    fn default() -> Self {
        let none = Mat::new;
        Self {
            root: Root::Product(none()),
            inversion: Inversion::default(),
            relaxed: false,
            preconditioner: Preconditioner::Inverse,
            products: Precision::Double,
            rounded: [Mat::new(), Mat::new()],
            tilde: none(),
            lambda: Vec::new(),
            w: none(),
            mean: none(),
            scaled: none(),
            scaled_e: none(),
            squares: Vec::new(),
            crossed: Vec::new(),
            probes: none(),
            estimate: Estimate::LSpace,
            sketch: Sketch::default(),
            kl: 0.0,
            core: none(),
            work: none(),
            h: none(),
            small: [none(), none(), none()],
        }
    }
}

impl LSpace {
    /// Returns L, which makes the features.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// Returns ã, M×P: μ = φᵀã.
    pub fn mean(&self) -> MatRef<'_, f64> {
        self.mean.as_ref()
    }

    /// Returns E, if it is not 0: v = k(x, x) − φᵀφ + φᵀEφ.
    pub fn residual(&self) -> Option<MatRef<'_, f64>> {
        self.relaxed.then(|| self.inversion.residual())
    }

    /// Returns where the rows have their variances from, and in what precision.
    pub fn spread(&self) -> Spread<'_> {
        match (&self.root, self.residual(), self.products) {
            (Root::Product(l), Some(e), Precision::Double) => {
                Spread::Products(Factors::Double(l.as_ref(), e))
            }
            (Root::Product(_), Some(_), Precision::Single) => {
                let [l, e] = &self.rounded;
                Spread::Products(Factors::Single(l.as_ref(), e.as_ref()))
            }
            (_, e, _) => Spread::Shared(e),
        }
    }

    /// Returns the KL divergence of q from the prior, summed over the latent functions: for R-SVGP
    /// its upper bound.
    pub fn kl(&self) -> f64 {
        self.kl
    }

    /// Returns K̃ = Kuu + Λ.
    pub fn tilde(&self) -> MatRef<'_, f64> {
        self.tilde.as_ref()
    }

    /// Returns the lower-triangular L of R-SVGP.
    pub fn lower(&self) -> Option<MatRef<'_, f64>> {
        match &self.root {
            Root::Product(l) if self.relaxed => Some(l.as_ref()),
            _ => None,
        }
    }

    /// Returns a = Lã, M×P: μ = k(x, Z) a.
    pub fn weights(&self) -> Mat<f64> {
        let mut a = Mat::new();
        self.root.times(self.mean.as_ref(), &mut a);
        a
    }

    /// Lets the estimates of traces take these probes (M×p); without columns traces are exact.
    pub fn set_probes(&mut self, estimate: Estimate, fill: impl FnOnce(&mut Mat<f64>)) {
        self.estimate = estimate;
        fill(&mut self.probes);
    }

    /// Sets K̃ = Kuu + Λ: the first step.
    fn begin(&mut self, tilde: Tilde<'_>, preconditioner: Preconditioner) {
        let Tilde { kuu, jitter, lambda } = tilde;
        let m = kuu.nrows();
        sized(&mut self.tilde, m, m);
        self.tilde.copy_from(kuu);
        (0..m).for_each(|i| self.tilde[(i, i)] += jitter + lambda[i]);
        self.lambda.clear();
        self.lambda.extend_from_slice(lambda);
        self.preconditioner = preconditioner;
        self.products = Precision::Double;
    }

    /// Prepares L-SVGP at K̃ and m̃ (M×P).
    ///
    /// # Errors
    /// [`crate::Error::NotPositiveDefinite`] if Kuu + Λ is not, by rounding.
    pub fn likelihood(
        &mut self,
        tilde: Tilde<'_>,
        m: MatRef<f64>,
        preconditioner: Preconditioner,
    ) -> Result<()> {
        // T is K̃⁻¹, and moves with it
        let preconditioner = match preconditioner {
            Preconditioner::Naive => Preconditioner::Inverse,
            other => other,
        };
        self.begin(tilde, preconditioner);
        self.relaxed = false;
        if !matches!(self.root, Root::Solve(_)) {
            self.root = Root::Solve(CholeskyBasis::default());
        }
        let Root::Solve(basis) = &mut self.root else { return Ok(()) };
        basis.renew(self.tilde.as_ref(), Jitter::Absolute(0.0), "Kuu + Λ")?;
        // Λ^½ L̃⁻ᵀ, upper triangular
        let size = m.nrows();
        sized(&mut self.work, size, size);
        sized(&mut self.scaled, size, size);
        invert_lower(self.work.as_mut(), basis.factor().l.as_ref(), par_for(size));
        for j in 0..size {
            for i in 0..size {
                let own = if i <= j { self.lambda[i].sqrt() * self.work[(j, i)] } else { 0.0 };
                self.scaled[(i, j)] = own;
            }
        }
        self.finish(m);
        Ok(())
    }

    /// Prepares R-SVGP at K̃, a lower-triangular L with positive diagonal, and m̃ (M×P).
    pub fn relaxed(
        &mut self,
        tilde: Tilde<'_>,
        l: MatRef<f64>,
        m: MatRef<f64>,
        preconditioner: Preconditioner,
    ) {
        self.begin(tilde, preconditioner);
        let own = self.own_root(l.nrows());
        own.copy_from(l);
        let Root::Product(own) = &self.root else { return };
        self.inversion.look(self.tilde.as_ref(), own.as_ref());
        self.scale_root();
        self.finish(m);
    }

    /// Returns the same after natural-gradient steps from `l`, by [`Inversion::solve`], whose last
    /// E is this one's: no product is made twice.
    ///
    /// # Errors
    /// As for [`Inversion::solve`].
    pub fn settled(
        &mut self,
        tilde: Tilde<'_>,
        l: MatRef<f64>,
        m: MatRef<f64>,
        preconditioner: Preconditioner,
        options: &SolverOptions,
        enough: Option<Enough<'_>>,
    ) -> Result<Solved> {
        self.begin(tilde, preconditioner);
        self.own_root(l.nrows()).copy_from(l);
        let Root::Product(own) = &mut self.root else { unreachable!("made a line above") };
        let mut options = *options;
        let smallest = self.lambda.iter().copied().fold(f64::INFINITY, f64::min);
        if smallest < 20.0 * SINGLE_ROUNDING * infinity_norm(self.tilde.as_ref()) {
            options.products = Precision::Double;
        }
        self.products = options.products;
        let solved = self.inversion.solve(self.tilde.as_ref(), own, &options, enough)?;
        if self.products == Precision::Single {
            let [l, e] = &mut self.rounded;
            convert(own.as_ref(), l);
            convert(self.inversion.residual(), e);
        }
        self.scale_root();
        self.finish(m);
        Ok(solved)
    }

    /// Returns the memory for an L of products.
    fn own_root(&mut self, m: usize) -> &mut Mat<f64> {
        self.relaxed = true;
        if !matches!(self.root, Root::Product(_)) {
            self.root = Root::Product(Mat::new());
        }
        match &mut self.root {
            Root::Product(l) => {
                sized(l, m, m);
                l
            }
            Root::Solve(_) => unreachable!("made a line above"),
        }
    }

    /// Computes Λ^½ L and, unless there are probes, Λ^½ L E.
    fn scale_root(&mut self) {
        let Root::Product(l) = &self.root else { return };
        let m = l.nrows();
        sized(&mut self.scaled, m, m);
        // until row sums take its place
        self.crossed.clear();
        self.crossed.extend(self.lambda.iter().map(|v| v.sqrt()));
        let roots = &self.crossed;
        by_columns(self.scaled.as_mut(), &mut vec![(); m], &|j, own, ()| {
            let source = column(l.as_ref(), j).iter().zip(roots);
            own.iter_mut().zip(source).for_each(|(t, (v, root))| *t = root * v);
        });
        if self.probes.ncols() == 0 {
            sized(&mut self.scaled_e, m, m);
            structured(
                (self.scaled_e.as_mut(), WHOLE),
                Accum::Replace,
                (self.scaled.as_ref(), LOWER),
                (self.inversion.residual(), WHOLE),
                1.0,
                par_for(m),
            );
        }
    }

    /// Computes w̃, ã and the KL divergence.
    fn finish(&mut self, m: MatRef<f64>) {
        let (size, latents) = (m.nrows(), m.ncols());
        match self.preconditioner {
            Preconditioner::Identity => {
                self.root.solve(m, false, &mut self.mean);
                sized(&mut self.w, size, latents);
                self.w.fill(0.0);
            }
            Preconditioner::Naive | Preconditioner::Inverse => {
                self.root.features(m, &mut self.w);
                sized(&mut self.mean, size, latents);
                self.mean.copy_from(&self.w);
                if self.relaxed && self.preconditioner == Preconditioner::Inverse {
                    self.inversion.add_times(self.w.as_ref(), &mut self.mean, -1.0);
                }
            }
        }
        for sums in [&mut self.squares, &mut self.crossed] {
            sums.clear();
            sums.resize(size, 0.0);
        }
        add_row_dots(self.scaled.as_ref(), self.scaled.as_ref(), &mut self.squares);
        let trace_j: f64 = self.squares.iter().sum();
        self.squares.iter_mut().zip(&self.lambda).for_each(|(s, lambda)| *s /= lambda);
        let traces = match (self.relaxed, self.probes.ncols()) {
            (false, _) => trace_j,
            (true, 0) => trace_j + self.exact_traces(),
            (true, _) => match self.estimate {
                Estimate::LSpace => trace_j + self.lspace_traces(),
                Estimate::Plain => self.plain_traces(),
            },
        };
        let dets = self.root.log_det() + self.lambda.iter().map(|v| v.ln()).sum::<f64>();
        let p = latents as f64;
        self.kl = 0.5 * (self.quadratic() + p * (traces - size as f64 - dets));
    }

    /// Returns ãᵀ(I + E − J)ã; (I + E − J)ã is left in the first of the small matrices.
    pub(super) fn quadratic(&mut self) -> f64 {
        let (size, latents) = (self.mean.nrows(), self.mean.ncols());
        let [image, turned, _] = &mut self.small;
        sized(image, size, latents);
        sized(turned, size, latents);
        let par = par_for(size);
        image.copy_from(&self.mean);
        if self.relaxed {
            self.inversion.add_times(self.mean.as_ref(), image, 1.0);
        }
        let (scaled, mean) = (self.scaled.as_ref(), self.mean.as_ref());
        gemm(turned.as_mut(), Accum::Replace, scaled, mean, 1.0, par);
        gemm(image.as_mut(), Accum::Add, scaled.transpose(), turned.as_ref(), -1.0, par);
        dot(self.mean.as_ref(), image.as_ref())
    }

    /// Returns ‖E‖² + tr E − ⟨E, J⟩.
    fn exact_traces(&mut self) -> f64 {
        let e = self.inversion.residual();
        let trace: f64 = (0..e.nrows()).map(|j| e[(j, j)]).sum();
        add_row_dots(self.scaled_e.as_ref(), self.scaled.as_ref(), &mut self.crossed);
        let crossed: f64 = self.crossed.iter().sum();
        self.crossed.iter_mut().zip(&self.lambda).for_each(|(s, lambda)| *s /= lambda);
        dot(e, e) + trace - crossed
    }
}

#[cfg(test)]
#[path = "lspace_tests.rs"]
mod tests;

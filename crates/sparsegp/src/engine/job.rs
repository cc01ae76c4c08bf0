//! What is to be summed over rows.

use super::{Basis, Pointwise};
use crate::kernels::inducing::Inducing;
use crate::linalg::{Mat, MatRef};
use crate::means::Mean;

/// Latent functions that share inducing variables, with their q, at fixed
/// parameters.
#[derive(Clone, Copy)]
pub struct Process<'a> {
    /// Inducing variables with their covariances.
    pub inducing: &'a dyn Inducing,
    /// From inducing covariances to features.
    pub basis: &'a dyn Basis,
    /// Whitened means, M×l. Where all of them are 0 they cost nothing.
    pub mean: MatRef<'a, f64>,
    /// Where the variances s come from.
    pub spread: Spread<'a>,
}

/// Where the variances s of latent functions that share their features come from.
#[derive(Clone, Copy, Debug)]
pub enum Spread<'a> {
    /// s = ‖Rᵀφ‖² with a separate lower root R for each of them, M×M; 0 where there are none: q at
    /// a point.
    Roots(&'a [Mat<f64>]),
    /// The same for gradients where ∂ℓ/∂r = ∂ℓ/∂s, with what pulls back through the features put
    /// into M×M matrices.
    Through(Through<'a>),
    /// s = φᵀEφ for all of them alike, with a symmetric E of any sign; 0 without.
    Shared(Option<MatRef<'a, f64>>),
    /// The same where features are products too, φ = Lᵀk(x, Z): all of it in the precision of L and
    /// E.
    Products(Factors<'a>),
}

impl Spread<'_> {
    /// Returns whether every latent function has its own variances.
    pub(super) fn is_each(self) -> bool {
        matches!(self, Spread::Roots(_) | Spread::Through(_))
    }
}

/// From r + s = k(x, x) + φᵀ(S − I)φ, of which V = (S − I)L⁻¹ gives the value, k(x, x) + kᵀ(Vᵀφ),
/// and the pull-back, K̄uf = w aᵀ + 2 VᵀΦ diag(b), by the same product: L⁻ᵀΦ̄ of
/// [`crate::engine`]'s Φ̄ with c = b.
#[derive(Clone, Copy, Debug)]
pub struct Through<'a> {
    /// w = L⁻ᵀm of every latent function, M×l.
    pub weights: MatRef<'a, f64>,
    /// V of every latent function, M×M.
    pub forms: &'a [Mat<f64>],
}

/// A lower-triangular L and a symmetric E, M×M each (of E both triangles), in the precision in
/// which products with them are made.
///
/// In single precision the bound and its gradients keep some five digits (tested: 10⁻⁴ of their
/// size) where λ is no less than a hundredth of the kernel's variance; the kernel, expectations and
/// sums over rows stay in double precision.
#[derive(Clone, Copy, Debug)]
pub enum Factors<'a> {
    /// 53 bits.
    Double(MatRef<'a, f64>, MatRef<'a, f64>),
    /// 24 bits.
    Single(MatRef<'a, f32>, MatRef<'a, f32>),
}

impl Process<'_> {
    /// Returns how many matrices Φ diag(b) Φᵀ there are: one for each latent function, or one where
    /// they share their variances.
    pub fn grams(&self) -> usize {
        if self.spread.is_each() { self.mean.ncols() } else { 1 }
    }
}

/// What a job asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Want {
    /// Only the sums.
    Value,
    /// And what a step of q needs: Φa and Φ diag(b) Φᵀ.
    Statistics,
    /// And Φ diag(c) Φᵀ: all that the rows contribute but for gradients.
    AllStatistics,
    /// And the gradients that the rows contribute.
    Gradients,
    /// Gradients, with Ψ = Φ̄Φᵀ accumulated over rows instead of Φ diag(Σc) Φᵀ where every latent
    /// function has its own root: more work per row, less M×M work afterwards.
    Adjoints {
        /// Whether what a step of q needs is asked for too. Otherwise the adjoints of the roots
        /// take the place of Φ diag(b) Φᵀ.
        statistics: bool,
    },
    /// The sums and the gradients, where the statistics are known.
    GradientsAlone,
}

impl Want {
    /// Returns whether gradients are asked for.
    pub fn gradients(self) -> bool {
        matches!(self, Want::Gradients | Want::Adjoints { .. } | Want::GradientsAlone)
    }

    /// Returns whether Φa is asked for.
    pub(super) fn phi_a(self) -> bool {
        !matches!(self, Want::Value | Want::GradientsAlone)
    }

    /// Returns whether Φ diag(b) Φᵀ is asked for.
    pub(super) fn grams(self) -> bool {
        self.phi_a() && self != (Want::Adjoints { statistics: false })
    }

    /// Returns whether Φ diag(c) Φᵀ is asked for.
    pub(super) fn second_gram(self) -> bool {
        matches!(self, Want::AllStatistics | Want::Gradients)
    }

    /// Returns whether the job may be asked to stop: where an evaluation takes two of them, over
    /// all rows. The others, of minibatches or of few rows, end by themselves.
    pub(super) fn stops(self) -> bool {
        matches!(self, Want::AllStatistics | Want::GradientsAlone)
    }

    /// Returns what to do for a process of such a spread: Ψ is only for roots.
    pub(super) fn of(self, spread: Spread<'_>) -> Self {
        match (self, spread) {
            (Want::Adjoints { .. }, Spread::Roots(roots)) if !roots.is_empty() => self,
            (Want::Adjoints { .. }, _) => Want::Gradients,
            _ => self,
        }
    }
}

/// A sum over rows.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    /// The latent functions, in the order in which `mean` and `pointwise` see them.
    pub processes: &'a [Process<'a>],
    /// Mean function, with as many outputs.
    pub mean: &'a dyn Mean,
    /// What a row contributes.
    pub pointwise: &'a dyn Pointwise,
    /// Factor of all sums: N/B for a minibatch.
    pub scale: f64,
    /// What is asked for.
    pub want: Want,
}

impl Job<'_> {
    /// Returns the number of latent functions.
    pub(super) fn latents(&self) -> usize {
        self.processes.iter().map(|p| p.mean.ncols()).sum()
    }
}

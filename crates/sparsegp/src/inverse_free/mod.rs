//! Sparse variational inference without a Cholesky factor of Kuu: L-SVGP and R-SVGP.
//!
//! q(u) is what M pseudo-observations with noise variances Λ = diag(λ) make of the prior (Panos, Dellaportas
//! & Titsias 2018): with K̃ = Kuu + Λ it has the covariance Kuu − Kuu K̃⁻¹ Kuu and the mean Kuu a. R-SVGP puts
//! an auxiliary T = LLᵀ in the place of K̃⁻¹ (van der Wilk, John, Artemev & Hensman 2022; Cortinovis,
//! Aitchison, Eleftheriadis & van der Wilk, "Inverse-free sparse variational Gaussian processes"): from
//! (T − K̃⁻¹) K̃ (T − K̃⁻¹) ⪰ 0 follows
//!
//! ```text
//! C = 2T − TK̃T ⪯ K̃⁻¹        v = k(x, x) − kᵀCk        log|K̃| ≤ tr(K̃T) − M − log|T|
//! ```
//!
//! so that variances and KL divergence have bounds by products only, tight where T = K̃⁻¹.
//! Natural-gradient steps keep L near that ([`Inversion`]). All is evaluated *in L-space*
//! ([`LSpace`]): with
//!
//! ```text
//! φ = Lᵀk      E = LᵀK̃L − I      J = LᵀΛL      w̃ = Lᵀm̃      ã = (I − E)w̃      a = Lã
//! μ = φᵀã      v = k(x, x) − φᵀφ + φᵀEφ
//! KL ≤ ½ [ãᵀ(I + E − J)ã + P {‖E‖² + tr E + tr J − ⟨E, J⟩ − M − log|T| − log|Λ|}]
//! ```
//!
//! every trace is a sum of small or of positive terms, and L-SVGP is the case E = 0, L the inverse transposed
//! of the Cholesky factor of K̃. P latent functions share Λ and T, hence their variances.

mod adjoints;
mod by_adam;
mod descent;
mod gap;
mod inversion;
mod lspace;
mod root;
mod schedule;
mod sketch;
mod traces;
mod whitened;

pub use adjoints::Adjoints;
pub use gap::{kl_gap, variance_gaps, variance_slacks};
pub use inversion::{Enough, Inversion, Solved, Stopped, infinity_norm, scaled_identity};
pub use lspace::{LSpace, Tilde};
pub use root::Root;
pub use schedule::{Schedule, SolverOptions};
pub use traces::{Estimate, Traces, probes};
pub use whitened::{LogDet, WhitenedAdjoints, WhitenedByFactor};

use serde::{Deserialize, Serialize};

/// How the mean weights a of q, whose mean is Kuu a, come from the parameter m̃.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preconditioner {
    /// a = K̃⁻¹m̃ for L-SVGP, a = Cm̃ for R-SVGP: m̃ is then on the scale of targets. With the gradients of
    /// L-SVGP at T = K̃⁻¹ (Cortinovis et al., Proposition 2).
    #[default]
    Inverse,
    /// a = m̃.
    Identity,
    /// a = Tm̃, for comparison: at T = K̃⁻¹ the bound of `Inverse` with other gradients. As `Inverse` for L-SVGP.
    Naive,
}

//! Vecchia's approximation: every row given its nearest neighbours among the rows before it.
//!
//! For rows in some order and c(i), at most m of the rows before i (Vecchia 1988, Eq. 2; as a process with sparse precision,
//! "NNGP": Datta, Banerjee, Finley & Gelfand 2016),
//!
//! ```text
//! log p(y) ≈ Σᵢ log N(yᵢ; mᵢ + bᵢᵀr_c, dᵢ)     r = y − m(X)
//! bᵢ = G_cc⁻¹k_ci      dᵢ = kᵢᵢ + sᵢ − k_ciᵀbᵢ      G_cc = K_cc + diag s_c
//! ```
//!
//! This is the density of a normal distribution, whose marginals are not those of the prior, and the exact one where c(i) is
//! all rows before i. It is the *response* form: targets are conditioned on targets, with the variance sᵢ of the noise of
//! every row on the diagonal, so that weights, known noise and pseudo-observations are the same to it. O(Nm³) operations,
//! O(Nm) memory, and sums over rows.
//!
//! **Order and neighbours.** Rows are ordered by maximin, each as far as can be from those before it ([`Plan`]); its
//! neighbours are then near *and* spread over all directions and scales, which makes the approximation far better than in the
//! order of a coordinate (Guinness 2018, §4). Near is meant in lengthscales of the kernel ([`Metric`]; Katzfuss & Guinness
//! 2021, §3.3 scale likewise). Neither depends on variances.
//!
//! **Copies** of a row, other targets at the same place, become one row of less noise first ([`Copies`]), which is exact: they
//! would otherwise have only each other for neighbours.
//!
//! **Blocks.** Rows with neighbours in common are one [`Block`]: its members in the order, of which some respond, each given
//! all members before it (Guinness 2018, §3.3). One factorisation serves them all, and each has more to be conditioned on.
//! With G = LLᵀ of a block, V = L⁻¹ (rows vⱼ) and z = Vr (N×P), a row j that responds contributes
//!
//! ```text
//! log p(yⱼ | those before) = −½ P log 2π − P log Lⱼⱼ − ½‖zⱼ‖²
//! ```
//!
//! **A sample** of blocks, each with the weight of those that it stands for, estimates value and slopes of very many rows
//! ([`Plan::of_sample`]).
//!
//! **Adjoint.** From d log Lⱼⱼ = ½ vⱼᵀ dG vⱼ (the pivot dⱼ = Lⱼⱼ² has the slope uⱼuⱼᵀ in G, uⱼ = Lⱼⱼvⱼ = (−bⱼ, 1)) and
//! zⱼ = vⱼᵀr, dvⱼᵀr = −½ vⱼᵀdG vⱼ zⱼ − vⱼᵀdG Σᵢ₍ᵢ<ⱼ₎ vᵢzᵢ,
//!
//! ```text
//! Ḡ = sym(VᵀWV)     r̄ = −Σⱼ vⱼzⱼᵀ     s̄ = diag Ḡ     K̄ = Ḡ
//! Wⱼᵢ = zᵢᵀzⱼ (i < j)     Wⱼⱼ = ½(‖zⱼ‖² − P)     Wⱼᵢ = 0 for i > j or where j does not respond
//! ```
//!
//! If all respond this is ½(ααᵀ − PG⁻¹), α = G⁻¹r, of exact inference. For one row that responds Ḡ has rank two.
//!
//! **Other likelihoods** need the function at the rows and not noisy targets: the *latent* form, [`Latent`].
//!
//! **Inducing points** for what is far, neighbours for the rest: [`FullScale`].

mod copies;
mod coupled;
mod density;
mod draws;
mod factored;
mod features;
mod fields;
mod full_scale;
mod gradients;
mod groups;
mod latent;
mod law;
mod metric;
mod nearest;
mod plan;
mod root;
mod rounds;
mod tree;

pub use copies::{Copies, Merged};
pub use coupled::{Coupled, MOST_WORK, Solver, work_of_factor};
pub use density::{Density, Rows, Slopes, log_density, with_slopes};
pub use features::Features;
pub use fields::Fields;
pub use full_scale::{Common, FullScale};
pub use latent::{Covariances, Latent, Sited};
pub use metric::Metric;
pub use nearest::{Joint, Nearest};
pub use plan::{Block, Plan};

use plan::maximin;

#[cfg(test)]
mod draws_tests;
#[cfg(test)]
mod full_scale_tests;
#[cfg(test)]
mod latent_tests;
#[cfg(test)]
mod sample_tests;
#[cfg(test)]
mod tests;

//! Deep Gaussian processes: layers of latent functions, each a function of what the layer before gives.
//!
//! Doubly stochastic variational inference (Salimbeni & Deisenroth 2017): every layer is a sparse
//! process with its own q(u), and given the inducing variables row i of a layer depends only on row
//! i of the layer before. So the bound needs marginals only (their bound and its recursion of
//! samples), with noise ε of every row and hidden output,
//!
//! ```text
//! f = μ + √(s + r) ε        F = N/(B S) Σ_samples Σᵢ ℓ(yᵢ; μᵢ, sᵢ, rᵢ) − Σ_layers KL
//! ```
//!
//! where μ, s, r of a hidden layer are those of its input rows, and ℓ of the last layer is integrated, not sampled. The way
//! back is that of the shallow bound ([`crate::methods::uncollapsed`]), with slopes of a hidden layer
//!
//! ```text
//! a = f̄      b = f̄ ε / 2√(s + r)      c = b
//! x̄ᵢ = Σⱼ K̄uf,ⱼᵢ ∂₁k(xᵢ, zⱼ) + k̄ffᵢ ∂k(x, x)|ₓᵢ + Σ_p a_ip ∂m_p(xᵢ)
//! ```
//!
//! from the cotangent f̄ of what it gives, which is x̄ of the layer above. Rows never meet: a block of them goes through all
//! layers and back by itself, and leaves sums of the size of the parameters.
//!
//! Layers are of four kinds, by the form of their q ([`crate::variational::Form`]): W (whitened), M (marginal), L and R
//! (pseudo-observations, [`crate::inverse_free`]; Cortinovis et al., §4.3 apply them layer by layer). With R layers F is a
//! lower bound for every T, but it need not be below that of L layers: more noise in a hidden layer may help.

mod architecture;
mod block;
mod bound;
mod chain;
mod group;
mod images;
mod layer;
mod means;
mod model;
mod natural;
mod noise;
mod pass;
mod predict;
mod start;
mod steps;
mod targets;
mod units;

pub use crate::kernels::inducing::{Inducing, Patches, Points, Stacked, Variables};
pub use architecture::{Architecture, WIDEST};
pub use bound::{Batch, Evaluation, Through, Want, Work};
pub use group::Group;
pub use layer::{Layer, Marginals, Pulled, Sampling, Slopes};
pub use means::{Identity, Projection, projected};
pub use model::{Deep, LastBound};
pub use natural::Stepped;
pub use noise::{Draws, Noise};
pub use predict::{Mixture, Paths, Predictor};
pub use start::{Chain, Kind, Start, through};
pub use steps::StepOptions;
pub(crate) use steps::Steps;

#[cfg(test)]
mod tests;

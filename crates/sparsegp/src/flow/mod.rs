//! Gaussian approximations of any density from its gradients: particle flows, and what they are compared with.
//!
//! A [`Target`] p(x) ∝ e^{−φ(x)} on ℝᴰ is approximated by q = N(m, C), which minimises the free energy `F = E_q[φ] −
//! ½ log|C|`. The flow ẋ = −E[∇φ] + (I − E[∇φ (x − m)ᵀ])(x − m) does so without inverses and second derivatives
//! (Galy-Fajou, Perrone & Opper 2021).
//!
//! | solver | q | positions where ∇φ is taken |
//! | --- | --- | --- |
//! | [`Gpf`] | N particles | the particles: nothing is drawn |
//! | [`Gf`] | μ and a factor Γ, C = ΓΓᵀ: whole, of low rank, by blocks, diagonal | draws of every step |
//!
//! [`mod@run`] makes steps, keeps a trace and puts a solver back to its last finite state; [`targets`] has densities,
//! [`compared`] other methods.

mod blocks;
pub mod compared;
mod energy;
mod factor;
mod field;
mod gf;
mod gpf;
mod optimiser;
mod particles;
pub mod run;
mod subsample;
mod target;
pub mod targets;
#[cfg(test)]
mod tests;

pub use blocks::Blocks;
pub use energy::{evidence_bound, free_energy, log_determinants, regularised_gram};
pub use factor::Factor;
pub use field::{Field, MeanFlow};
pub use gf::{Gf, GfFlow, GfOptions};
pub use gpf::{Control, Gpf, GpfOptions, GpfState, follow};
pub use optimiser::{FlowOptimiser, Rule, Scale};
pub use particles::Particles;
pub use run::{Ended, Progress, Run, RunOptions, Solver, run};
pub use subsample::Subsample;
pub use target::{AsDensity, Evaluation, OfDensity, Target};

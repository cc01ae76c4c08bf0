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
//! ```
//! use sparsegp::flow::{Gpf, GpfOptions, Particles, RunOptions, run, targets::Banana};
//! use sparsegp::linalg::Mat;
//! use std::ops::ControlFlow;
//!
//! # fn main() -> sparsegp::Result<()> {
//! let mut target = Banana::default();
//! let root = Mat::<f64>::identity(2, 2);
//! let start = Particles::matched(&[0.0, 5.0], root.as_ref(), 8, 0)?; // N(start, I), as 8 particles
//! let options = GpfOptions { mean_rate: 0.5, spread_rate: 0.02, ..GpfOptions::default() };
//! let mut gpf = Gpf::new(start, options)?;
//! let steps = RunOptions { steps: 2000, ..RunOptions::default() };
//! let report = run(&mut gpf, &mut target, &steps, &mut |_, _| ControlFlow::Continue(()))?;
//!
//! let energies: Vec<f64> = report.trace.iter().filter_map(|(_, p)| p.free_energy).collect();
//! assert!(energies.windows(2).all(|pair| pair[1] <= pair[0] + 1e-9));
//! let (mean, covariance) = (gpf.particles().mean(), gpf.particles().covariance());
//! assert!(mean[1] > 5.0 && covariance[(0, 0)] > 1.0);
//! # Ok(())
//! # }
//! ```
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
mod settled;
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
pub use settled::Settled;
pub use subsample::Subsample;
pub use target::{Evaluation, Target};

//! Uncertain inputs: bounds under Gaussian inputs, regression on inputs with errors, and the Bayesian GP-LVM.
//!
//! Inputs xᵢ have a distribution q(xᵢ) = N(μᵢ, diag Sᵢ). All that a bound needs of a kernel then are its
//! [ψ-statistics](crate::psi). [`Bound`] is what a sparse Gaussian process makes of them, by the bound of 2009 or the tighter one of 2025. Where the
//! inputs are not known at all, [`fit_gplvm`] finds them: every row of a matrix gets a place in few dimensions, and
//! functions of the place explain the columns. Where they were measured with errors, [`NoisyInputs`] corrects them.
//!
//! ```
//! use sparsegp::latent::{EmbedOptions, GplvmOptions, fit_gplvm};
//! use sparsegp::linalg::Mat;
//!
//! # fn main() -> sparsegp::Result<()> {
//! // 60 rows of four columns, which are functions of one number that nobody has written down
//! let hidden = |i: usize| (i as f64 * 0.618).fract() * 3.0;
//! let column = |i: usize, j: usize| (hidden(i) + 0.7 * j as f64).sin() + 0.02 * (9.0 * i as f64 + j as f64).sin();
//! let mut y = Mat::from_fn(60, 4, column);
//! y[(3, 2)] = f64::NAN; // a missing cell
//! let options = GplvmOptions { inducing: 12, ..GplvmOptions::default() };
//! let fitted = fit_gplvm(y.as_ref(), &options)?;
//!
//! // a new row, of which two cells are known, gets a place and the other cells from there
//! let mut new = Mat::from_fn(1, 4, |_, j| column(70, j));
//! new[(0, 1)] = f64::NAN;
//! new[(0, 3)] = f64::NAN;
//! let (filled, variance) = fitted.impute(new.as_ref(), &EmbedOptions::default())?;
//! assert!((filled[(0, 1)] - column(70, 1)).abs() < 0.1);
//! assert!(variance[(0, 1)] < 0.01 && variance[(0, 0)] == 0.0);
//! # Ok(())
//! # }
//! ```

mod batches;
#[cfg(test)]
mod batches_tests;
mod bound;
#[cfg(test)]
mod bound_tests;
mod embed;
mod fewer;
mod fit;
#[cfg(test)]
mod fit_tests;
mod global;
mod impute;
mod model;
mod noisy;
mod predict;
mod start;
mod targets;

pub use batches::GplvmBatches;
pub use bound::{Bound, LatentAdjoints, LatentGradient, Setting, Whitened, divergence};
pub use embed::{EmbedOptions, Embedding};
pub(crate) use fit::train;
pub use fit::{FittedGplvm, GplvmOptions, GplvmProgress, fit_gplvm, fit_gplvm_watched};
pub use model::{Gplvm, Trainable};
pub use noisy::NoisyInputs;
pub use predict::Posterior;
pub use start::LatentStart;
pub use targets::{Group, Targets};

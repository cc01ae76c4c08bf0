//! Gaussian-process regression, exact and sparse with the tighter bounds of 2021 and 2025: from a table
//! or arrays to a trained model that can be judged, saved and used.
//!
//! ```
//! use sparsegp::engine::Cpu;
//! use sparsegp::fit::{Dataset, FitOptions, Of, fit};
//! use sparsegp::linalg::Mat;
//!
//! # fn main() -> sparsegp::Result<()> {
//! // 300 noisy rows of one input column and one target column
//! let x = Mat::from_fn(300, 1, |i, _| i as f64 / 30.0);
//! let y = Mat::from_fn(300, 1, |i, _| x[(i, 0)].sin() + 0.1 * (7.0 * i as f64).cos());
//!
//! let data = Dataset::from_arrays(x, y, true)?; // true: standardise
//! let options = FitOptions {
//!     kernel: "matern52".into(),
//!     method: "titsias2025".into(),
//!     inducing: Some(20),
//!     ..FitOptions::default()
//! };
//! let fitted = fit(&data, &options, &Cpu::default(), &mut ())?; // `()` watches nothing
//!
//! let new = Mat::from_fn(3, 1, |i, _| 2.0 + i as f64);
//! let (mean, variance) = fitted.predict(new.as_ref(), Of::Observations)?; // 3×1 each
//! for i in 0..3 {
//!     assert!((mean[(i, 0)] - (2.0 + i as f64).sin()).abs() < 0.1);
//!     assert!(variance[(i, 0)].sqrt() < 0.2);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # The family
//!
//! With Kuu = L Lᵀ, Φ = L⁻¹Kuf and rᵢ = k(xᵢ, xᵢ) − ‖φᵢ‖², every sparse method here maximises
//! log N(y; m, ΦᵀΦ + σ²I) − ρ over hyperparameters and inducing points:
//!
//! | method | ρ | source |
//! | --- | --- | --- |
//! | `exact` | none: N(y; m, K + σ²I) | Rasmussen & Williams 2006, §2.2 |
//! | `titsias2009` | Σ rᵢ / 2σ² | Titsias 2009 |
//! | `spherical` | (N/2) log(1 + Σ rᵢ / Nσ²) | Artemev, Burt & van der Wilk 2021 |
//! | `titsias2025` | ½ Σ log(1 + rᵢ/σ²) | Titsias 2025, Eq. 16 |
//!
//! and for any likelihood, by minibatches, Σ ℓ(yᵢ; μᵢ, sᵢ, rᵢ) − KL(q‖p) over q(u) too:
//!
//! | method | ℓ | source |
//! | --- | --- | --- |
//! | `svgp` | E[log p(y ∣ f)], f ~ N(μ, s + r) | Hensman et al. 2013, 2015 |
//! | `svgp2025` | log N(y; μ, σ²) − s/2σ² − ½ log(1 + r/σ²) | Titsias 2025, Eq. 18–19 |
//! | `svgp-spherical` | f ~ N(μ, s + v r), less ½(v − log v − 1) | Titsias 2025, Eq. 22–23 |
//!
//! titsias2009 ≤ spherical ≤ titsias2025 ≤ exact at the same parameters, with equality where the
//! inducing points are the inputs. Value and gradient of a sparse method take two passes over the rows
//! and O(NM²) operations; there is no automatic differentiation.
//!
//! # Modules in reading order
//!
//! - [`guide`]: the manual, a chapter for every family of methods: formulas and where they are in the code; when to use what,
//!   recipes, errata of the papers.
//! - [`mod@fit`]: from data to a model that can be used; [`io`] saves and loads it, [`metrics`] scores it.
//! - [`shards`]: rows in other processes, whose sums [`engine::Remote`] asks for.
//! - [`model`]: the model with its slots, and its posterior.
//! - [`methods`]: objective, gradient and posterior by name; [`terms`]: what tells the bounds apart.
//! - [`engine`]: the sums over rows, all that the data ever contribute.
//! - [`kernels`], [`means`], [`likelihoods`], [`inducing`]: what a model is made of; [`params`]: its
//!   numbers, with paths, transforms and priors.
//! - [`latent`]: uncertain inputs and the Bayesian GP-LVM.
//! - [`deep`]: layers of functions of functions.
//! - [`variational`]: q(u) as parameters, natural-gradient steps.
//! - [`vecchia`]: rows given their nearest neighbours, without inducing points or beside them.
//! - [`mod@train`] and [`optim`]: the loops and the optimisers.
//! - [`explain`]: effects of inputs and shares of variance.
//! - [`export`]: predictions as code for elsewhere.
//! - [`flow`]: Gaussian approximations of any density from its gradients, by particles that flow.
//! - [`distributions`]: of the auxiliary variables that make likelihoods conjugate; [`samplers`]: Markov
//!   chains on models and on any density, and how well they mix.
//! - [`data`]: tables in blocks of rows, standardised.
//! - [`linalg`], [`rng`], [`error`]: what everything stands on.
//!
//! # Features
//!
//! `files` (model files and checkpoints, [`io`]), `tables` ([`data::Table`] and what reads it) and `parquet` are on by default. Without them
//! are the numerics, with [`fit::fit()`] on arrays. `testing` adds checks for kernels and likelihoods of other crates.
//!
//! # Conventions
//!
//! Matrices are column-major; blocks of rows are B×D, B×M, B×P. Gradients are of the maximised objective
//! with respect to constrained values. [`model::Posterior`] is on the model's (standardised) scale,
//! [`fit::Fitted`] reports in the data's units. Results do not depend on the number of threads.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "files")]
pub mod atomic;
pub mod bayesopt;
pub mod bounds;
pub mod data;
pub mod deep;
pub mod distributions;
pub mod dual_numbers;
pub mod engine;
pub mod error;
pub mod explain;
pub mod export;
pub mod fit;
pub mod flow;
mod guests;
pub mod guide;
pub mod inducing;
pub mod inverse_free;
#[cfg(feature = "files")]
pub use fit::files as io;
pub mod kernels;
pub mod latent;
pub mod likelihoods;
#[cfg(any(feature = "files", feature = "tables"))]
mod limits;
pub mod linalg;
pub mod markov;
pub mod means;
pub mod methods;
pub mod metrics;
pub mod model;
pub mod online;
pub mod optim;
pub mod params;
pub mod psi;
pub mod rng;
pub mod samplers;
pub mod shards;
pub mod spec;
pub(crate) mod special;
pub mod terms;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod train;
pub mod variational;
pub mod vecchia;

pub use error::{Error, Result};

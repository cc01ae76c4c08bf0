//! Sums over rows.
//!
//! The data enter every method only through sums over blocks of rows. [`Engine::fold`] goes over the
//! rows once and returns what they contribute; [`Engine::unfold`] goes over them again and pulls the
//! slopes of the objective back to hyperparameters, mean function and inducing points. Between the
//! two lies only M×M work. What a row contributes is decided by a [`Local`]; how inducing covariances
//! become features is decided by a [`Basis`]. Neither knows about threads, blocks or N.
//!
//! ```text
//! features  φ = L⁻¹k(Z, x)     μ = m(x) + φᵀm     s = φᵀSφ     r = k(x, x) − φᵀφ
//! slopes    a = ∂ℓ/∂μ          b = ∂ℓ/∂s          c = ∂ℓ/∂r
//! fold      Σ sums, Φa, Φ diag(b) Φᵀ, Φ diag(c) Φᵀ
//! unfold    Φ̄ = m aᵀ + 2 S Φ diag(b) − 2 Φ diag(c),   k̄ff = c
//! ```

mod basis;
mod cpu;
mod lanes;

pub use basis::{Basis, CholeskyBasis};
pub use cpu::{Cpu, Timings};

use crate::data::Source;
use crate::error::Result;
use crate::kernels::Kernel;
use crate::linalg::{Mat, MatMut, MatRef};
use crate::means::Mean;

/// A slope that a [`Local`] has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Slope {
    /// The same for all rows: one number. Sums with it need no weighting, and a pass back with
    /// constant b and c is one product with an M×M matrix.
    Constant(f64),
    /// Its own number in every row.
    Rows,
}

/// What a [`Local`] needs and gives.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Whether it looks at s.
    pub variances: bool,
    /// b = ∂ℓ/∂s.
    pub b: Slope,
    /// c = ∂ℓ/∂r.
    pub c: Slope,
    /// How many further sums over rows it gives.
    pub sums: usize,
}

impl Plan {
    /// Whether [`Folded::gram`] does not say what Φ diag(c) Φᵀ is: unless both slopes are constant.
    fn needs_second_gram(self) -> bool {
        self.b == Slope::Rows || self.c == Slope::Rows
    }
}

/// A block of rows as a [`Local`] sees it.
#[derive(Debug)]
pub struct Block<'a> {
    /// Targets, B×P.
    pub y: MatRef<'a, f64>,
    /// Posterior means μ with the mean function, B×P; the mean function alone where no q is given.
    pub mu: MatRef<'a, f64>,
    /// Variances s (empty where the plan does not ask); 0 where no q is given.
    pub s: &'a [f64],
    /// Unexplained prior variances r (empty where c is constant and features are not formed).
    pub r: &'a [f64],
}

/// Where a [`Local`] writes.
#[derive(Debug)]
pub struct Slopes<'a> {
    /// ∂ℓ/∂μ, B×P.
    pub a: MatMut<'a, f64>,
    /// ∂ℓ/∂s; written only if the plan says [`Slope::Rows`].
    pub b: &'a mut [f64],
    /// ∂ℓ/∂r; written only if the plan says [`Slope::Rows`].
    pub c: &'a mut [f64],
    /// Sums over rows, to add to.
    pub sums: &'a mut [f64],
}

/// What single rows contribute to an objective.
pub trait Local: Sync {
    /// What is needed and given.
    fn plan(&self) -> Plan;
    /// Slopes and sums of a block of rows.
    fn rows(&self, block: Block<'_>, out: Slopes<'_>);
}

/// The parts of a model that rows meet, at fixed parameters.
#[derive(Clone, Copy)]
pub struct Prepared<'a> {
    /// Covariance function.
    pub kernel: &'a dyn Kernel,
    /// Mean function.
    pub mean: &'a dyn Mean,
    /// Inducing inputs, M×D.
    pub z: MatRef<'a, f64>,
    /// From inducing covariances to features.
    pub basis: &'a dyn Basis,
}

/// A Gaussian over the whitened inducing variables.
#[derive(Clone, Copy)]
pub struct Whitened<'a> {
    /// Mean m, M×P.
    pub mean: MatRef<'a, f64>,
    /// Covariance S, M×M, both triangles.
    pub covariance: MatRef<'a, f64>,
}

/// What the rows contribute.
#[derive(Clone, Debug)]
pub struct Folded {
    /// The [`Local`]'s sums.
    pub sums: Vec<f64>,
    /// Φa, M×P.
    pub phi_a: Mat<f64>,
    /// Φ diag(b) Φᵀ, or ΦΦᵀ where b is constant; both triangles.
    pub gram: Mat<f64>,
    /// Φ diag(c) Φᵀ, or ΦΦᵀ where c is constant and b is not; none where both are constant (then
    /// [`Folded::gram`] is it). Both triangles.
    pub gram_c: Option<Mat<f64>>,
}

/// Gradients that the rows contribute.
#[derive(Clone, Debug)]
pub struct Unfolded {
    /// The [`Local`]'s sums.
    pub sums: Vec<f64>,
    /// With respect to the kernel's hyperparameters, without the part through Kuu.
    pub kernel: Vec<f64>,
    /// With respect to the mean function's parameters.
    pub mean: Vec<f64>,
    /// With respect to the inducing inputs, without the part through Kuu, M×D.
    pub z: Mat<f64>,
}

/// Does the sums. The one here is [`Cpu`]; another device or another machine is another engine.
pub trait Engine: Send + Sync {
    /// One pass over the rows. `q` gives means and variances to the [`Local`]; without it μ is the
    /// mean function. All sums are multiplied by `scale` (N/B for a minibatch).
    ///
    /// # Errors
    /// What reading the rows gives.
    fn fold(
        &self,
        prepared: Prepared<'_>,
        q: Option<Whitened<'_>>,
        local: &dyn Local,
        data: &dyn Source,
        scale: f64,
    ) -> Result<Folded>;

    /// The pass back, at `q`. `scale` as for [`Engine::fold`].
    ///
    /// # Errors
    /// What reading the rows gives.
    fn unfold(
        &self,
        prepared: Prepared<'_>,
        q: Whitened<'_>,
        local: &dyn Local,
        data: &dyn Source,
        scale: f64,
    ) -> Result<Unfolded>;
}

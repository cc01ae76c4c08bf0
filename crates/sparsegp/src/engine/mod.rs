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
pub(crate) mod description;
mod lanes;
pub mod remote;
mod sweep;

pub use basis::{Basis, CholeskyBasis};
pub use cpu::{Cpu, Timings};
pub use description::Description;
pub use remote::Remote;
pub use sweep::{Sweep, sweep};

use crate::data::{Rows, Source};
use crate::error::Result;
use crate::kernels::Kernel;
use crate::linalg::{Mat, MatMut, MatRef};
use crate::means::Mean;
use std::any::Any;
use std::sync::{Mutex, PoisonError};

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
    /// Whether Φ diag(c) Φᵀ must be summed separately, not being a multiple of [`Folded::gram`].
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
    /// What another process makes the same one of.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) that says why it cannot: by default always.
    fn describe(&self) -> Result<Description> {
        description::stays("what this method sums up is known to this process alone")
    }
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

/// Latent functions that share covariance function and inducing inputs, with their q, at fixed
/// parameters.
#[derive(Clone, Copy)]
pub struct Process<'a> {
    /// Covariance function.
    pub kernel: &'a dyn Kernel,
    /// Inducing inputs, M×D.
    pub z: MatRef<'a, f64>,
    /// From inducing covariances to features.
    pub basis: &'a dyn Basis,
    /// Whitened means, M×l.
    pub mean: MatRef<'a, f64>,
    /// Where the variances s come from.
    pub spread: Spread<'a>,
}

/// Where the variances s of latent functions that share their features come from.
#[derive(Clone, Copy, Debug)]
pub enum Spread<'a> {
    /// s = ‖Rᵀφ‖² with a lower root R of its own for each of them, M×M; 0 where there are none: q at a
    /// point.
    Roots(&'a [Mat<f64>]),
    /// The same for gradients where ∂ℓ/∂r = ∂ℓ/∂s, with what pulls back through the features put into M×M matrices.
    Through(Through<'a>),
    /// s = φᵀEφ for all of them alike, with a symmetric E of any sign; 0 without.
    Shared(Option<MatRef<'a, f64>>),
    /// The same where features are products too, φ = Lᵀk(x, Z): all of it in the precision of L and E.
    Products(Factors<'a>),
}

/// From r + s = k(x, x) + φᵀ(S − I)φ, of which V = (S − I)L⁻¹ gives the value, k(x, x) + kᵀ(Vᵀφ), and the pull-back,
/// K̄uf = w aᵀ + 2 VᵀΦ diag(b), by the same product: L⁻ᵀΦ̄ of [`crate::engine`]'s Φ̄ with c = b.
#[derive(Clone, Copy, Debug)]
pub struct Through<'a> {
    /// w = L⁻ᵀm of every latent function, M×l.
    pub weights: MatRef<'a, f64>,
    /// V of every latent function, M×M.
    pub forms: &'a [Mat<f64>],
}

/// A lower-triangular L and a symmetric E, M×M each (of E both triangles), in the precision in which products
/// with them are made.
///
/// In single precision the bound and its gradients keep some five digits (tested: 10⁻⁴ of their size) where λ is
/// no less than a hundredth of the kernel's variance; the kernel, expectations and sums over rows stay in double
/// precision.
#[derive(Clone, Copy, Debug)]
pub enum Factors<'a> {
    /// 53 bits.
    Double(MatRef<'a, f64>, MatRef<'a, f64>),
    /// 24 bits.
    Single(MatRef<'a, f32>, MatRef<'a, f32>),
}

impl Process<'_> {
    /// How many matrices Φ diag(b) Φᵀ a pass gives: one for each latent function, or one where they share
    /// their variances.
    pub fn grams(&self) -> usize {
        match self.spread {
            Spread::Roots(_) | Spread::Through(_) => self.mean.ncols(),
            Spread::Shared(_) | Spread::Products(_) => 1,
        }
    }
}

/// A block of rows as a [`Pointwise`] sees it: every latent function for itself.
#[derive(Debug)]
pub struct LatentBlock<'a> {
    /// The rows.
    pub rows: Rows<'a>,
    /// Posterior means μ with the mean function, B×L.
    pub mu: MatRef<'a, f64>,
    /// Variances s that come from q, B×L.
    pub s: MatRef<'a, f64>,
    /// Variances r that the inducing points leave unexplained, B×L.
    pub r: MatRef<'a, f64>,
}

/// Where a [`Pointwise`] writes its slopes, B×L each; all entries must be written.
#[derive(Debug)]
pub struct LatentSlopes<'a> {
    /// ∂ℓ/∂μ.
    pub a: MatMut<'a, f64>,
    /// ∂ℓ/∂s.
    pub b: MatMut<'a, f64>,
    /// ∂ℓ/∂r; not read where [`Pointwise::equal_slopes`].
    pub c: MatMut<'a, f64>,
    /// Sums over rows, to add to.
    pub sums: &'a mut [f64],
    /// Memory for whatever the [`Pointwise`] needs.
    pub scratch: &'a mut Vec<f64>,
}

/// What single rows contribute to an objective at a given q, by any number of latent functions.
pub trait Pointwise: Sync {
    /// How many sums over rows it gives.
    fn sums(&self) -> usize;
    /// Whether ∂ℓ/∂r = ∂ℓ/∂s always.
    fn equal_slopes(&self) -> bool;
    /// Whether anything is to be summed for a latent function. If not, its slopes are 0 in all rows, and it costs no
    /// more than its means and variances.
    fn counts(&self, latent: usize) -> bool {
        let _ = latent;
        true
    }
    /// Slopes and sums of a block of rows.
    fn rows(&self, block: LatentBlock<'_>, out: LatentSlopes<'_>);
    /// What another process makes the same one of.
    ///
    /// # Errors
    /// As for [`Local::describe`].
    fn describe(&self) -> Result<Description> {
        description::stays("what this method sums up is known to this process alone")
    }
}

/// What one pass at a given q tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Want {
    /// The sums alone.
    Value,
    /// And what a step of q needs: Φa and Φ diag(b) Φᵀ.
    Statistics,
    /// And the gradients that the rows contribute.
    Gradients,
    /// Gradients, with Ψ = Φ̄Φᵀ accumulated over rows instead of Φ diag(Σc) Φᵀ where every latent function has its own
    /// root: more work per row, less M×M work afterwards.
    Adjoints {
        /// Whether what a step of q needs is asked for too. Otherwise the adjoints of the roots take the place of
        /// Φ diag(b) Φᵀ.
        statistics: bool,
    },
}

impl Want {
    /// Whether gradients are asked for.
    pub fn gradients(self) -> bool {
        matches!(self, Want::Gradients | Want::Adjoints { .. })
    }

    /// What to do for a process of such a spread: Ψ is for roots alone.
    fn of(self, spread: Spread<'_>) -> Self {
        match (self, spread) {
            (Want::Adjoints { .. }, Spread::Roots(roots)) if !roots.is_empty() => self,
            (Want::Adjoints { .. }, _) => Want::Gradients,
            _ => self,
        }
    }
}

/// What the rows contribute to one [`Process`].
#[derive(Clone, Debug)]
pub struct ProcessSums {
    /// Φa, M×l.
    pub phi_a: Mat<f64>,
    /// Φ diag(b) Φᵀ of every latent function, or Φ diag(Σ b) Φᵀ where they share their variances; both
    /// triangles. Empty for those that do not count ([`Pointwise::counts`]).
    pub grams: Vec<Mat<f64>>,
    /// Φ diag(Σ c) Φᵀ, c summed over the latent functions; both triangles. None where all slopes are
    /// equal (then it is the sum of `grams`); of no use without gradients.
    pub gram_c: Option<Mat<f64>>,
    /// Ψ = Φ̄Φᵀ, of which the lower triangle counts, for [`Want::Adjoints`].
    pub psi: Option<Mat<f64>>,
    /// 2Φ diag(b) ΦᵀR of every latent function, of which the lower triangle counts, for [`Want::Adjoints`] without
    /// statistics: then there are no `grams`.
    pub roots: Vec<Mat<f64>>,
    /// Gradient with respect to the kernel's hyperparameters, without the part through Kuu.
    pub kernel: Vec<f64>,
    /// Gradient with respect to the inducing inputs, without the part through Kuu, M×D.
    pub z: Mat<f64>,
}

impl Default for ProcessSums {
    fn default() -> Self {
        Self {
            phi_a: Mat::new(),
            grams: Vec::new(),
            gram_c: None,
            psi: None,
            roots: Vec::new(),
            kernel: Vec::new(),
            z: Mat::new(),
        }
    }
}

/// What one pass gives. Everything has the scale. A pass writes into the memory of an earlier one.
#[derive(Clone, Debug, Default)]
pub struct Passed {
    /// The [`Pointwise`]'s sums.
    pub sums: Vec<f64>,
    /// Gradient with respect to the mean function's parameters.
    pub mean: Vec<f64>,
    /// One for each process; empty for [`Want::Value`].
    pub processes: Vec<ProcessSums>,
}

/// What a pass is about.
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

/// Large memory that a method leaves with an engine, for its next evaluation: what is given back to the system costs page
/// faults to get again.
#[derive(Debug, Default)]
pub struct Shelf(Mutex<Vec<Box<dyn Any + Send>>>);

impl Shelf {
    /// What was put there, or a new one. Two at the same time get memory of their own.
    pub fn take<T: Any + Send + Default>(&self) -> T {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|memory| memory.is::<T>());
        let own = at.and_then(|at| kept.swap_remove(at).downcast::<T>().ok());
        own.map(|memory| *memory).unwrap_or_default()
    }

    /// Keeps it; the last one of its type stays.
    pub fn put<T: Any + Send>(&self, memory: T) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|memory| !memory.is::<T>());
        kept.push(Box::new(memory));
    }
}

/// Does the sums: [`Cpu`] those of rows that are here, [`Remote`] those of rows in other processes.
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

    /// One pass at a q that is known before: [`Engine::fold`] and [`Engine::unfold`] at once, for any
    /// number of latent functions. After an error `out` holds nothing of use.
    ///
    /// # Errors
    /// What reading the rows gives.
    fn pass(&self, job: &Job<'_>, data: &dyn Source, out: &mut Passed) -> Result<()>;

    /// Where memory waits for the next evaluation.
    fn shelf(&self) -> &Shelf;

    /// Asked now and then by long work that is no sum over rows.
    ///
    /// # Errors
    /// [`Interrupted`](crate::Error::Interrupted), once, if whoever asked for the work wants no more of it.
    fn go_on(&self) -> Result<()> {
        Ok(())
    }
}

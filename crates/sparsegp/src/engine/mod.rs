//! Sums over rows.
//!
//! The data enter every method only through sums over blocks of rows: a [`Job`] says what is asked
//! for, and [`Engine::pass`] goes over the rows once. What a row contributes is decided by a
//! [`Pointwise`], whose [`Plan`] tells what it needs; how inducing covariances become features is
//! decided by a [`Basis`]. Neither knows about threads, blocks or N.
//!
//! ```text
//! features    φ = L⁻¹k(Z, x)     μ = m(x) + φᵀm     s = φᵀSφ     r = k(x, x) − φᵀφ
//! slopes      a = ∂ℓ/∂μ          b = ∂ℓ/∂s          c = ∂ℓ/∂r
//! statistics  Σ sums, Φa, Φ diag(b) Φᵀ, Φ diag(c) Φᵀ
//! gradients   Φ̄ = m aᵀ + 2 S Φ diag(b) − 2 Φ diag(c),   k̄ff = c
//! ```
//!
//! At a q that is known before, one job gives both. Where q follows from the rows, a job without a
//! q (its mean is 0, and so is its variance) gives statistics, then comes M×M work, then a job for
//! only the gradients.

mod basis;
mod cpu;
pub(crate) mod description;
mod job;
mod lanes;
mod mixed;
mod passed;
pub mod remote;
mod sweep;
mod terms;

pub use basis::{Basis, CholeskyBasis, Projection};
pub use cpu::{Cpu, Timings};
pub(crate) use cpu::{Either, EitherFeatures, Right, Rounded};
pub use description::Description;
pub use job::{Factors, Job, Process, Spread, Through, Want};
pub use mixed::Mixed;
pub use passed::{Passed, ProcessSums};
pub use remote::Remote;
pub use sweep::{Sweep, sweep};
pub use terms::{Block, Plan, Pointwise, Slope, Slopes};

use crate::data::Source;
use crate::error::Result;
use crate::linalg::Precision;
use std::any::Any;
use std::sync::{Mutex, PoisonError};

/// Large memory that a method leaves with an engine, for its next evaluation: what is given back to
/// the system costs page faults to get again.
#[derive(Debug, Default)]
pub struct Shelf(Mutex<Vec<Box<dyn Any + Send>>>);

impl Shelf {
    /// Returns what was put there, or a new one. Two at the same time get separate memory.
    pub fn take<T: Any + Send + Default>(&self) -> T {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|memory| memory.is::<T>());
        let own = at.and_then(|at| kept.swap_remove(at).downcast::<T>().ok());
        own.map(|memory| *memory).unwrap_or_default()
    }

    /// Returns a copy of what was put there, which stays.
    pub fn copy<T: Any + Clone>(&self) -> Option<T> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find_map(|memory| memory.downcast_ref::<T>()).cloned()
    }

    /// Removes what was put there.
    pub fn remove<T: Any>(&self) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|memory| !memory.is::<T>());
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
    /// Passes over the rows once, with products of rows in [`Engine::precision`]. After an error `out` holds nothing of use.
    ///
    /// # Errors
    /// What reading the rows gives; [`Interrupted`](crate::Error::Interrupted) for
    /// [`Want::AllStatistics`] and [`Want::GradientsAlone`] as for [`Engine::go_on`].
    fn pass(&self, job: &Job<'_>, data: &dyn Source, out: &mut Passed) -> Result<()> {
        self.pass_in(self.precision(), job, data, out)
    }

    /// Passes over the rows once, with products of rows in a precision.
    ///
    /// # Errors
    /// As for [`Engine::pass`].
    fn pass_in(
        &self,
        precision: Precision,
        job: &Job<'_>,
        data: &dyn Source,
        out: &mut Passed,
    ) -> Result<()>;

    /// Returns what products of rows are made in by [`Engine::pass`].
    fn precision(&self) -> Precision {
        Precision::Double
    }

    /// Returns where memory waits for the next evaluation.
    fn shelf(&self) -> &Shelf;

    /// Tells whether to continue, asked now and then by long work that is not a sum over rows.
    ///
    /// # Errors
    /// [`Interrupted`](crate::Error::Interrupted), once, if whoever asked for the work wants no
    /// more of it.
    fn go_on(&self) -> Result<()> {
        Ok(())
    }
}

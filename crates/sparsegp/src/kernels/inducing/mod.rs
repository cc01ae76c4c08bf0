//! Inducing variables: values of functions at points, values of a function of patches, or both side by side (inducing
//! patches: van der Wilk, Rasmussen & Hensman 2017).
//!
//! All that a bound knows of them is [`Inducing`]. To add a kind: one file with its covariances,
//! and one line here. Variables with their own parameters, as hidden layers keep them, implement
//! [`Variables`] too.

mod patches;
mod points;
mod stacked;

pub use patches::Patches;
pub use points::{AtPoints, Points};
pub use stacked::Stacked;

use super::Tape;
use crate::error::Result;
use crate::linalg::{MatMut, MatRef};
use crate::params::{Visitor, VisitorMut};

/// M inducing variables with their covariances (Kuu, Kuf and the diagonal of Kff of the sparse process: interdomain ones
/// where they are not values of f). Rows are B×D. Gradients are lists of [`Inducing::num_params`]
/// numbers by constrained parameters: of the kernel first, then of the variables ([`AtPoints`]: Z
/// column by column), in the order of [`Variables::visit`] where there is one; they are added. What
/// a pull-back takes of its evaluation is on the tape.
pub trait Inducing: Send + Sync {
    /// Returns the number of variables M.
    fn len(&self) -> usize;
    /// Returns whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Returns the number of columns of rows D.
    fn inputs(&self) -> usize;
    /// Returns the number of numbers among the parameters.
    fn num_params(&self) -> usize;
    /// Writes Kuu into `out` (M×M), without jitter.
    fn kuu(&self, out: MatMut<f64>, tape: &mut Tape);
    /// Writes the covariances of the functions at rows (B×D) with the variables into `out` (B×M).
    fn kuf(&self, x: MatRef<f64>, out: MatMut<f64>, tape: &mut Tape);
    /// Writes the variances of the functions at rows (B×D) into `out` (B numbers).
    fn kff(&self, x: MatRef<f64>, out: &mut [f64]);
    /// Pulls the cotangent `bar` of Kuu = `k` (M×M each) back to `gradient`. `bar` is scratch afterwards.
    fn pull_kuu(&self, k: MatRef<f64>, bar: MatMut<f64>, tape: &mut Tape, gradient: &mut [f64]);
    /// Pulls the cotangent of covariances with rows back to `gradient` and, if asked for, to rows (`x_bar`, B×D). `blocks` are
    /// the covariances and their cotangent, B×M each; the latter is scratch afterwards.
    fn pull_kuf(
        &self,
        x: MatRef<f64>,
        blocks: (MatRef<f64>, MatMut<f64>),
        tape: &mut Tape,
        gradient: &mut [f64],
        x_bar: Option<MatMut<f64>>,
    );
    /// Pulls the cotangent `weights` of variances (B numbers) back, likewise.
    fn pull_kff(
        &self,
        x: MatRef<f64>,
        weights: &[f64],
        gradient: &mut [f64],
        x_bar: Option<MatMut<f64>>,
    );
    /// Returns the kernel and Z, if they are values at points: what other processes are sent.
    fn at_points(&self) -> Option<AtPoints<'_>> {
        None
    }
}

/// Inducing variables with their own parameters. Gradients are in the order of
/// [`Variables::visit`].
pub trait Variables: Inducing + std::fmt::Debug {
    /// Shows the parameters with their paths; `index` (such as `[1]`, or empty) is put where a layer has several kernels.
    fn visit<'a>(&'a self, index: &str, visitor: Visitor<'a, '_>);
    /// Shows the same, to change them.
    fn visit_mut<'a>(&'a mut self, index: &str, visitor: VisitorMut<'a, '_>);
    /// Refuses what does not fit together.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) with both numbers, or what the kernel says.
    fn check(&self) -> Result<()>;
    /// Returns these, if they are values at points.
    fn as_points(&self) -> Option<&Points> {
        None
    }
    /// Returns a copy.
    fn clone_box(&self) -> Box<dyn Variables>;
}

impl Clone for Box<dyn Variables> {
    fn clone(&self) -> Self {
        self.clone_box()
    }
}

/// Returns the path of a kernel; where a layer has several kernels, paths have an index.
fn kernel_path(index: &str) -> String {
    format!("kernel{}{index}", if index.is_empty() { "" } else { "s" })
}

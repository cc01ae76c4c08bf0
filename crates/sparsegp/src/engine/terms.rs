//! What single rows contribute to an objective, and what an engine has to know of that.

use super::description::{self, Description};
use crate::data::Rows;
use crate::error::Result;
use crate::linalg::{MatMut, MatRef};

/// A slope of what rows contribute, for every latent function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Slope {
    /// The same for all rows and latent functions: one number. Sums with it need no weighting, and
    /// a way back with constant b and c is one product with an M×M matrix.
    Constant(f64),
    /// Its own number in every row.
    Rows,
}

/// What a [`Pointwise`] needs and gives.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// Whether it looks at s.
    pub variances: bool,
    /// b = ∂ℓ/∂s.
    pub b: Slope,
    /// c = ∂ℓ/∂r; none where it is b always.
    pub c: Option<Slope>,
    /// How many sums over rows it gives.
    pub sums: usize,
    /// For which latent functions of every target, if not for all, anything is to be summed. The
    /// slopes of the others are 0 in all rows, and they cost no more than their means and
    /// variances.
    pub counts: Option<&'a [bool]>,
}

impl Plan<'_> {
    /// Creates the plan in which everything is looked at, and slopes differ from row to row.
    pub fn by_rows(sums: usize) -> Self {
        Self { variances: true, b: Slope::Rows, c: Some(Slope::Rows), sums, counts: None }
    }

    /// Returns whether a latent function counts.
    pub(super) fn counts(&self, latent: usize) -> bool {
        self.counts.is_none_or(|counts| counts[latent % counts.len()])
    }

    /// Returns b and c, where both are one number.
    pub(super) fn constants(&self) -> Option<(f64, f64)> {
        match (self.b, self.c) {
            (Slope::Constant(b), None) => Some((b, b)),
            (Slope::Constant(b), Some(Slope::Constant(c))) => Some((b, c)),
            _ => None,
        }
    }

    /// Returns whether Φ diag(c) Φᵀ must be summed separately, not being a multiple of Φ diag(b)
    /// Φᵀ.
    pub(super) fn needs_second_gram(&self) -> bool {
        self.c.is_some() && self.constants().is_none()
    }
}

/// A block of rows as a [`Pointwise`] sees it: every latent function for itself.
#[derive(Debug)]
pub struct Block<'a> {
    /// The rows.
    pub rows: Rows<'a>,
    /// Posterior means μ with the mean function, B×L.
    pub mu: MatRef<'a, f64>,
    /// Variances s that come from q, B×L; without columns where the plan does not ask.
    pub s: MatRef<'a, f64>,
    /// Variances r that the inducing points leave unexplained, B×L; without columns where b and c
    /// are constant and only gradients are asked for, which takes no features.
    pub r: MatRef<'a, f64>,
}

/// Where a [`Pointwise`] writes its slopes, B×L each: all entries of those that the plan does not
/// call constant or equal.
#[derive(Debug)]
pub struct Slopes<'a> {
    /// ∂ℓ/∂μ.
    pub a: MatMut<'a, f64>,
    /// ∂ℓ/∂s.
    pub b: MatMut<'a, f64>,
    /// ∂ℓ/∂r.
    pub c: MatMut<'a, f64>,
    /// Sums over rows, to add to.
    pub sums: &'a mut [f64],
    /// Memory for whatever the [`Pointwise`] needs.
    pub scratch: &'a mut Vec<f64>,
}

/// What single rows contribute to an objective, by any number of latent functions.
pub trait Pointwise: Sync {
    /// Returns what is needed and given.
    fn plan(&self) -> Plan<'_>;

    /// Computes slopes and sums of a block of rows.
    fn rows(&self, block: Block<'_>, out: Slopes<'_>);

    /// Returns what another process makes the same one of.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) that says why it cannot: by default always.
    fn describe(&self) -> Result<Description> {
        description::stays("what this method sums up is known only to this process")
    }
}

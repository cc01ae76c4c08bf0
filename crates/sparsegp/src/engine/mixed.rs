//! An engine in mixed precision.

use super::{Engine, Job, Passed, Shelf};
use crate::data::Source;
use crate::error::Result;
use crate::linalg::Precision;

/// Has another engine pass over rows in mixed precision: covariances and their differences are computed in double
/// precision and rounded, features and products of rows are of single precision, and sums over blocks of rows of
/// double precision again. Kuu, q and all that is not a sum over rows stay in double precision.
#[derive(Clone, Copy)]
pub struct Mixed<'a>(pub &'a dyn Engine);

impl Engine for Mixed<'_> {
    fn pass_in(
        &self,
        precision: Precision,
        job: &Job<'_>,
        data: &dyn Source,
        out: &mut Passed,
    ) -> Result<()> {
        self.0.pass_in(precision, job, data, out)
    }

    fn precision(&self) -> Precision {
        Precision::Single
    }

    fn shelf(&self) -> &Shelf {
        self.0.shelf()
    }

    fn go_on(&self) -> Result<()> {
        self.0.go_on()
    }
}

//! Sums over rows that need no features: checks, counts and moments.

use super::description::Description;
use super::remote::{self, Work};
use crate::data::{Rows, Source};
use crate::error::Result;

/// What a sweep over rows adds up.
pub trait Sweep: Sync {
    /// Returns how many sums there are.
    fn sums(&self) -> usize;

    /// Adds those of a block of rows.
    ///
    /// # Errors
    /// Whatever the sweep looks for; it ends there.
    fn add(&self, rows: &Rows<'_>, sums: &mut [f64]) -> Result<()>;

    /// Returns what another process makes the same sweep of.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) that says why it cannot.
    fn describe(&self) -> Result<Description>;
}

/// Returns the sums of a sweep over all rows, in their order, or where the rows are.
///
/// # Errors
/// Those of the sweep and of reading the rows.
pub fn sweep(data: &dyn Source, sweep: &dyn Sweep) -> Result<Vec<f64>> {
    if let Some(rows) = data.sharded() {
        let answer = remote::round(rows, &Work::Sweep(sweep.describe()?))?;
        return remote::Unpacked::new(&answer, rows.count())?.vector();
    }
    let mut sums = vec![0.0; sweep.sums()];
    data.for_each_chunk(1 << 14, &mut |rows| sweep.add(&rows, &mut sums))?;
    Ok(sums)
}

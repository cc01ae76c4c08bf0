//! Rows for methods that need all of them at once.

use crate::data::{InMemory, Source};
use crate::engine::remote::refuse;
use crate::error::Result;
use crate::linalg::Mat;

/// Refuses rows in other processes, which may be too many to be had at once.
///
/// # Errors
/// [`Error::Invalid`](crate::error::Error::Invalid) with the remedy.
pub(crate) fn check_here(data: &dyn Source) -> Result<()> {
    refuse(
        data,
        "this method needs all of them at once: take a sparse one, such as `titsias2025`, `svgp` or `tsvgp`, or fit \
         on one machine",
    )
}

/// Returns all rows of a data set in memory.
///
/// # Errors
/// What reading them gives, and [`check_here`].
pub(crate) fn collect(data: &dyn Source) -> Result<InMemory> {
    check_here(data)?;
    let (n, d, p) = (data.rows(), data.inputs(), data.outputs());
    let (x, y) = (Mat::zeros(n, d), Mat::zeros(n, p));
    let mut all = InMemory { x, y, weights: Vec::new(), extra: Vec::new() };
    data.for_each_chunk(usize::MAX, &mut |rows| {
        let n = rows.x.nrows();
        all.x.as_mut().subrows_mut(rows.start, n).copy_from(rows.x);
        all.y.as_mut().subrows_mut(rows.start, n).copy_from(rows.y);
        all.weights.extend_from_slice(rows.weights);
        all.extra.extend_from_slice(rows.extra);
        Ok(())
    })?;
    Ok(all)
}

//! Random rows.

use super::{Selected, check, distinct_rows, few_rows, gather, key};
use crate::error::Result;
use crate::rng::permutation;
use faer::MatRef;
use rand::Rng;
use std::collections::HashSet;

/// Returns `m` rows of `x` (N×D), drawn uniformly without replacement; a row whose values are
/// already there is passed over. If no more than `m` rows are distinct, these are the points, in
/// their order.
///
/// # Errors
/// [`crate::Error::Invalid`] without rows, columns or points; [`crate::Error::NonFinite`] for a NaN
/// or an infinity in `x`.
pub fn random(x: MatRef<'_, f64>, m: usize, generator: &mut impl Rng) -> Result<Selected> {
    check(x, m, "inputs")?;
    if let Some(all) = few_rows(x, m, &distinct_rows(x, m)) {
        return Ok(all);
    }
    let mut seen = HashSet::new();
    let indices: Vec<usize> = permutation(generator, x.nrows(), x.nrows())
        .into_iter()
        .filter(|&row| seen.insert(key(x, row)))
        .take(m)
        .collect();
    Ok(Selected { points: gather(x, &indices), requested: m, note: None, trace_left: None })
}

//! Some of the rows of a table, at random.

use crate::data::{InMemory, Source};
use crate::error::Result;
use crate::linalg::Mat;
use crate::rng;

/// Draws a random subset of at most `count` rows, in the order of the data.
///
/// # Errors
/// What reading the data gives.
pub fn sample_rows(data: &dyn Source, count: usize, seed: u64) -> Result<InMemory> {
    let n = data.rows();
    let count = count.min(n);
    let mut picked: Vec<usize> = match n > count {
        true => rng::permutation(&mut rng::stream(seed, "sample of rows"), n, count),
        false => (0..n).collect(),
    };
    picked.sort_unstable();
    rows_at(data, &picked)
}

/// Returns the rows at these places, which rise.
///
/// # Errors
/// What reading the data gives.
pub(super) fn rows_at(data: &dyn Source, picked: &[usize]) -> Result<InMemory> {
    if let Some(rows) = data.sharded() {
        return rows.rows_at(picked);
    }
    let count = picked.len();
    let mut x = Mat::zeros(count, data.inputs());
    let mut y = Mat::zeros(count, data.outputs());
    let (mut weights, mut extra) = (Vec::new(), Vec::new());
    let mut next = 0;
    data.for_each_chunk(1 << 14, &mut |rows| {
        let end = rows.start + rows.x.nrows();
        while next < count && picked[next] < end {
            let i = picked[next] - rows.start;
            for q in 0..x.ncols() {
                x[(next, q)] = rows.x[(i, q)];
            }
            for p in 0..y.ncols() {
                y[(next, p)] = rows.y[(i, p)];
            }
            weights.extend(rows.weights.get(i));
            extra.extend(rows.extra.get(i));
            next += 1;
        }
        Ok(())
    })?;
    Ok(InMemory { x, y, weights, extra })
}

//! Rows that are in other processes, in *shards*: parts that stay where they are.
//!
//! Sums over all rows are asked of the shards by requests ([`Shards::round`]); single rows, for samples and minibatches, are
//! fetched by their places ([`Shards::take`]). What sees neither of the two reads the rows one stretch after the other, as of
//! a file: right, and slow.

use super::batches::{Batches, ShuffledShards};
use super::source::{InMemory, Rows, Source};
use crate::error::{Error, Result};
use faer::Mat;

/// The way to shards of rows.
pub trait Shards: Send + Sync {
    /// Sends a request to every shard and returns the sum of their answers, added along the binary tree over their
    /// indices ([`total`]): so its bits depend only on the partition.
    ///
    /// # Errors
    /// What the shards and the ways to them give.
    fn round(&self, request: Vec<u8>) -> Result<Vec<f64>>;

    /// Returns the rows at these places in these shards, one after the other; of each D inputs, P
    /// targets, its weight and its further number where there are some.
    ///
    /// # Errors
    /// As for [`Shards::round`].
    fn take(&self, wanted: &[(usize, Vec<usize>)]) -> Result<Vec<f64>>;
}

/// Returns the sum of some answers along the binary tree over their indices: neighbours first, then
/// their sums; the last of an odd number goes up alone. Sums of aligned runs of 2ⁿ answers lie on
/// the way.
///
/// # Errors
/// [`Error::Shape`] if they are of different lengths.
pub fn total(mut answers: Vec<Vec<f64>>) -> Result<Vec<f64>> {
    let length = answers.first().map_or(0, Vec::len);
    if let Some(other) = answers.iter().find(|own| own.len() != length) {
        return Err(Error::Shape {
            what: "answers of shards".into(),
            expected: format!("{length} numbers"),
            found: other.len().to_string(),
        });
    }
    while answers.len() > 1 {
        let mut next = Vec::with_capacity(answers.len().div_ceil(2));
        let mut pairs = answers.into_iter();
        while let Some(mut left) = pairs.next() {
            if let Some(right) = pairs.next() {
                left.iter_mut().zip(&right).for_each(|(t, v)| *t += v);
            }
            next.push(left);
        }
        answers = next;
    }
    Ok(answers.pop().unwrap_or_default())
}

/// Rows of [`ShardedRows::spread`], at most.
const SPREAD: usize = 20_000;

/// All rows of some shards, scaled as the model sees them.
pub struct ShardedRows {
    shards: Box<dyn Shards>,
    /// Where every shard begins among all rows, and the number of rows at the end.
    starts: Vec<usize>,
    shape: Shape,
}

/// What a row consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Inputs D.
    pub inputs: usize,
    /// Targets P.
    pub outputs: usize,
    /// Whether it has a weight.
    pub weights: bool,
    /// Whether it has a further number.
    pub extra: bool,
}

impl Shape {
    fn numbers(self) -> usize {
        self.inputs + self.outputs + usize::from(self.weights) + usize::from(self.extra)
    }
}

impl ShardedRows {
    /// Creates rows in shards of these sizes.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a shard without rows.
    pub fn new(shards: Box<dyn Shards>, sizes: &[usize], shape: Shape) -> Result<Self> {
        if let Some(empty) = sizes.iter().position(|size| *size == 0) {
            return Err(Error::Invalid(format!("shard {empty} has no rows: leave it out")));
        }
        let mut starts = vec![0];
        for size in sizes {
            starts.push(starts[starts.len() - 1] + size);
        }
        Ok(Self { shards, starts, shape })
    }

    /// Returns the shards.
    pub fn shards(&self) -> &dyn Shards {
        &*self.shards
    }

    /// Returns how many shards there are.
    pub fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the numbers of rows, shard by shard: what decides the bits of sums.
    pub fn sizes(&self) -> Vec<usize> {
        self.starts.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    /// Returns what a row consists of.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns some of the rows, evenly spread over all; all of them where they are few.
    ///
    /// # Errors
    /// As for [`Shards::take`].
    pub fn spread(&self) -> Result<InMemory> {
        let n = self.rows();
        let count = n.min(SPREAD);
        // without overflow: of each stretch of n/count rows the first
        let at = |i: usize| (i as u128 * n as u128 / count.max(1) as u128) as usize;
        self.rows_at(&(0..count).map(at).collect::<Vec<_>>())
    }

    /// Returns the rows at these places among all, which are in ascending order.
    ///
    /// # Errors
    /// As for [`Shards::take`]; [`Error::Shape`] for an answer of other rows.
    pub fn rows_at(&self, places: &[usize]) -> Result<InMemory> {
        let mut wanted: Vec<(usize, Vec<usize>)> = Vec::new();
        let mut shard = 0;
        for &place in places {
            while place >= self.starts[shard + 1] {
                shard += 1;
            }
            let within = place - self.starts[shard];
            match wanted.last_mut() {
                Some((own, list)) if *own == shard => list.push(within),
                _ => wanted.push((shard, vec![within])),
            }
        }
        let found = if places.is_empty() { Vec::new() } else { self.shards.take(&wanted)? };
        let (n, each) = (places.len(), self.shape.numbers());
        if found.len() != n * each {
            return Err(Error::Shape {
                what: "rows of shards".into(),
                expected: format!("{n} rows of {each} numbers"),
                found: format!("{} numbers", found.len()),
            });
        }
        let Shape { inputs: d, outputs: p, weights, extra } = self.shape;
        let column = |j: usize| (0..n).map(|i| found[i * each + j]).collect::<Vec<f64>>();
        Ok(InMemory {
            x: Mat::from_fn(n, d, |i, j| found[i * each + j]),
            y: Mat::from_fn(n, p, |i, j| found[i * each + d + j]),
            weights: if weights { column(d + p) } else { Vec::new() },
            extra: if extra { column(each - 1) } else { Vec::new() },
        })
    }
}

impl Source for ShardedRows {
    fn rows(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }
    fn inputs(&self) -> usize {
        self.shape.inputs
    }
    fn outputs(&self) -> usize {
        self.shape.outputs
    }
    fn is_plain(&self) -> bool {
        !self.shape.weights && !self.shape.extra
    }
    fn sharded(&self) -> Option<&ShardedRows> {
        Some(self)
    }
    fn batches(&self, size: usize, seed: u64) -> Result<Box<dyn Batches + '_>> {
        Ok(Box::new(ShuffledShards::new(self, size, seed)?))
    }
    fn for_each_chunk(
        &self,
        chunk_rows: usize,
        f: &mut dyn FnMut(Rows<'_>) -> Result<()>,
    ) -> Result<()> {
        let (n, mut start) = (self.rows(), 0);
        while start < n {
            let end = start + chunk_rows.max(1).min(n - start);
            let places: Vec<usize> = (start..end).collect();
            let part = self.rows_at(&places)?;
            f(Rows { start, ..part.all() })?;
            start = end;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_aligned_runs_lie_on_the_way() {
        let answers = |n: usize| -> Vec<Vec<f64>> {
            (0..n).map(|i| vec![(i as f64 * 0.7).sin() * 1e3f64.powi(i as i32 % 5), 1.0]).collect()
        };
        for n in [1, 2, 3, 7, 8, 9, 20, 64, 77] {
            let all = total(answers(n)).unwrap();
            assert_eq!(all[1], n as f64);
            let eights: Vec<Vec<f64>> =
                answers(n).chunks(8).map(|part| total(part.to_vec()).unwrap()).collect();
            let bits = |v: &[f64]| v.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&total(eights).unwrap()), bits(&all), "{n}");
        }
        assert!(total(vec![vec![1.0], vec![1.0, 2.0]]).is_err());
    }
}

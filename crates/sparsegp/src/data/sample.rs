//! Rows that stand for more rows than they are.

use super::batches::{Batches, Minibatch, Position};
use super::source::{Rows, Source};
use crate::error::Result;

/// Some of the rows of a larger data set, all that are at hand: their sums are scaled to it.
pub struct Sample {
    /// The rows.
    pub rows: Box<dyn Source>,
    /// How many they stand for.
    pub population: usize,
}

impl Source for Sample {
    fn rows(&self) -> usize {
        self.rows.rows()
    }
    fn inputs(&self) -> usize {
        self.rows.inputs()
    }
    fn outputs(&self) -> usize {
        self.rows.outputs()
    }
    fn is_plain(&self) -> bool {
        self.rows.is_plain()
    }
    fn population(&self) -> usize {
        self.population
    }
    fn is_resident(&self) -> bool {
        self.rows.is_resident()
    }
    fn batches(&self, size: usize, seed: u64) -> Result<Box<dyn Batches + '_>> {
        let inner = self.rows.batches(size, seed)?;
        Ok(Box::new(SampleBatches { inner, population: self.population }))
    }
    fn for_each_chunk(
        &self,
        chunk_rows: usize,
        f: &mut dyn FnMut(Rows<'_>) -> Result<()>,
    ) -> Result<()> {
        self.rows.for_each_chunk(chunk_rows, f)
    }
}

struct SampleBatches<'a> {
    inner: Box<dyn Batches + 'a>,
    population: usize,
}

impl Batches for SampleBatches<'_> {
    fn population(&self) -> usize {
        self.population
    }
    fn inputs(&self) -> usize {
        self.inner.inputs()
    }
    fn outputs(&self) -> usize {
        self.inner.outputs()
    }
    fn per_epoch(&self) -> usize {
        self.inner.per_epoch()
    }
    fn remark(&self) -> Option<String> {
        self.inner.remark()
    }
    fn position(&self) -> Position {
        self.inner.position()
    }
    fn seek(&mut self, position: Position) -> Result<()> {
        self.inner.seek(position)
    }
    fn next(&mut self, out: &mut Minibatch) -> Result<()> {
        self.inner.next(out)?;
        out.population = self.population;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::InMemory;
    use faer::Mat;

    #[test]
    fn batches_of_a_sample_stand_for_the_population() {
        let x = Mat::from_fn(10, 2, |i, j| (i * 3 + j) as f64);
        let y = Mat::from_fn(10, 1, |i, _| i as f64);
        let rows = Box::new(InMemory::new(x, y).unwrap());
        let sample = Sample { rows, population: 70 };
        assert_eq!((sample.rows(), sample.population()), (10, 70));
        let mut batches = sample.batches(4, 3).unwrap();
        let mut batch = Minibatch::default();
        batches.next(&mut batch).unwrap();
        assert_eq!((batch.rows(), batch.population(), batches.per_epoch()), (4, 70, 3));
        assert_eq!(batches.population(), 70);
    }
}

//! Minibatches of rows in memory.

use super::{Batches, Minibatch, Position, Schedule, Shape, gather, shuffle, stream_name};
use crate::data::{InMemory, Source};
use crate::error::Result;
use crate::rng;
use std::borrow::Borrow;

/// Minibatches of rows in memory, owned (`InMemory`, `Arc<InMemory>`) or borrowed (`&InMemory`). The
/// permutation of an epoch comes from the stream `batches/EPOCH` of [`crate::rng`]. Takes N indices of
/// memory, and allocates nothing after the first batch.
///
/// ```
/// # use sparsegp::data::{Batches, InMemory, Minibatch, ShuffledInMemory, Source};
/// # use sparsegp::linalg::Mat;
/// let x = Mat::from_fn(10, 1, |i, _| i as f64);
/// let data = InMemory::new(x.clone(), x)?;
/// let mut batches = ShuffledInMemory::new(&data, 4, 0)?;
/// let mut batch = Minibatch::new();
/// batches.next(&mut batch)?;
/// assert_eq!((batch.rows(), batch.population(), batches.per_epoch()), (4, 10, 3));
/// # Ok::<(), sparsegp::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ShuffledInMemory<S> {
    data: S,
    seed: u64,
    schedule: Schedule,
    /// The permutation of the epoch `drawn`; rows of a batch that was given are in ascending order.
    order: Vec<usize>,
    drawn: Option<u64>,
    name: String,
}

impl<S: Borrow<InMemory>> ShuffledInMemory<S> {
    /// Creates batches of at most `size` rows.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) if there are no rows or `size` is 0.
    pub fn new(data: S, size: usize, seed: u64) -> Result<Self> {
        let rows = data.borrow().rows();
        Ok(Self {
            data,
            seed,
            schedule: Schedule::new(rows, size)?,
            order: Vec::new(),
            drawn: None,
            name: String::new(),
        })
    }
}

impl<S: Borrow<InMemory> + Send> Batches for ShuffledInMemory<S> {
    fn population(&self) -> usize {
        self.schedule.rows
    }
    fn inputs(&self) -> usize {
        self.data.borrow().inputs()
    }
    fn outputs(&self) -> usize {
        self.data.borrow().outputs()
    }
    fn per_epoch(&self) -> usize {
        self.schedule.per_epoch
    }

    fn next(&mut self, out: &mut Minibatch) -> Result<()> {
        let Position { epoch, batch } = self.schedule.next;
        if self.drawn != Some(epoch) {
            self.order.resize(self.schedule.rows, 0);
            let mut generator = rng::stream(self.seed, stream_name(&mut self.name, epoch));
            shuffle(&mut generator, &mut self.order);
            self.drawn = Some(epoch);
        }
        let chosen = &mut self.order[self.schedule.places(batch)];
        // The sum does not care for the order, memory does.
        chosen.sort_unstable();
        let data = self.data.borrow();
        out.resize(chosen.len(), shape(data));
        out.population = self.schedule.rows;
        for (from, to) in [(&data.x, &mut out.rows.x), (&data.y, &mut out.rows.y)] {
            for j in 0..from.ncols() {
                gather(from.col_as_slice(j), chosen, to.col_as_slice_mut(j));
            }
        }
        gather(&data.weights, chosen, &mut out.rows.weights);
        gather(&data.extra, chosen, &mut out.rows.extra);
        self.schedule.advance();
        Ok(())
    }

    fn position(&self) -> Position {
        self.schedule.next
    }

    fn seek(&mut self, to: Position) -> Result<()> {
        self.schedule.seek(to)
    }
}

fn shape(data: &InMemory) -> Shape {
    Shape {
        inputs: data.inputs(),
        outputs: data.outputs(),
        weights: !data.weights.is_empty(),
        extra: !data.extra.is_empty(),
    }
}

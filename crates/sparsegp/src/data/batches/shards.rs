//! Minibatches of rows in other processes: the rows are sent here.

use super::{Batches, Minibatch, Position, Schedule, shuffle, stream_name};
use crate::data::shards::ShardedRows;
use crate::data::{InMemory, Source};
use crate::error::Result;
use crate::rng;
use std::collections::VecDeque;

/// Rows that are fetched at once, about: a message costs some milliseconds, whatever is in it.
const AHEAD: usize = 1 << 15;

/// The batches of [`super::ShuffledInMemory`], to the bit, of rows elsewhere. Several batches are fetched at a time. Takes N
/// indices of memory.
pub struct ShuffledShards<'a> {
    data: &'a ShardedRows,
    seed: u64,
    schedule: Schedule,
    order: Vec<usize>,
    drawn: Option<u64>,
    name: String,
    /// Batches that are here already, the next one first.
    fetched: VecDeque<(Position, InMemory)>,
}

impl<'a> ShuffledShards<'a> {
    /// Creates batches of at most `size` rows.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) if there are no rows or `size` is 0.
    pub fn new(data: &'a ShardedRows, size: usize, seed: u64) -> Result<Self> {
        Ok(Self {
            data,
            seed,
            schedule: Schedule::new(data.rows(), size)?,
            order: Vec::new(),
            drawn: None,
            name: String::new(),
            fetched: VecDeque::new(),
        })
    }

    /// Fetches the next batches of this epoch.
    fn fetch(&mut self) -> Result<()> {
        let Position { epoch, batch } = self.schedule.next;
        if self.drawn != Some(epoch) {
            self.order.resize(self.schedule.rows, 0);
            let mut generator = rng::stream(self.seed, stream_name(&mut self.name, epoch));
            shuffle(&mut generator, &mut self.order);
            self.drawn = Some(epoch);
        }
        let (mut parts, mut count, mut next) = (Vec::new(), 0, batch);
        while next < self.schedule.per_epoch && (parts.is_empty() || count < AHEAD) {
            let places = self.schedule.places(next);
            self.order[places.clone()].sort_unstable();
            count += places.len();
            parts.push(places);
            next += 1;
        }
        let mut all: Vec<usize> =
            parts.iter().flat_map(|p| self.order[p.clone()].iter().copied()).collect();
        all.sort_unstable();
        let rows = self.data.rows_at(&all)?;
        for (at, places) in parts.into_iter().enumerate() {
            let chosen: Vec<usize> = self.order[places]
                .iter()
                // every place is one of them
                .map(|place| all.partition_point(|own| own < place))
                .collect();
            let position = Position { epoch, batch: batch + at };
            self.fetched.push_back((position, rows.picked(&chosen)));
        }
        Ok(())
    }
}

impl Batches for ShuffledShards<'_> {
    fn population(&self) -> usize {
        self.schedule.rows
    }
    fn inputs(&self) -> usize {
        self.data.inputs()
    }
    fn outputs(&self) -> usize {
        self.data.outputs()
    }
    fn per_epoch(&self) -> usize {
        self.schedule.per_epoch
    }

    fn next(&mut self, out: &mut Minibatch) -> Result<()> {
        if self.fetched.front().is_none_or(|(position, _)| *position != self.schedule.next) {
            self.fetched.clear();
            self.fetch()?;
        }
        let Some((_, rows)) = self.fetched.pop_front() else { return Ok(()) };
        out.rows = rows;
        out.population = self.schedule.rows;
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

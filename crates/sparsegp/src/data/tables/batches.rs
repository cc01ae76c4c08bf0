//! Minibatches of a file that is not in memory.

use super::TableSource;
use super::cursor::{Cursor, Plan};
use super::places::{Places, scatter};
use crate::data::batches::{Batches, Minibatch, Position, Schedule, gather, shuffle, stream_name};
use crate::data::shards::Shape;
use crate::data::{Scaler, Source};
use crate::error::{Error, Result};
use crate::rng;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Minibatches of a CSV or Parquet file in bounded memory.
///
/// A thread reads stretches of rows; the rows of a stretch are shuffled, and batches are cut from the
/// sequence of all stretches. Two stretches are in memory at most: one that batches are cut from, and
/// the next.
///
/// A stretch of a plain CSV or a Parquet file consists of pieces from all over the file (64 rows of a CSV, 1024
/// of a Parquet file; fewer where there are few rows, more above 2¹⁹ pieces): it takes a random piece of every run of
/// T pieces that follow one another, T being the number of stretches, other ones in every epoch. So a stretch
/// is a sample of the file however the rows are sorted.
///
/// A file compressed by gzip is read from its beginning: rows of it that are far apart never meet in a batch, and where a
/// stretch is drawn to begin differs from epoch to epoch. [`Batches::remark`] tells whether that matters.
///
/// [`Batches::seek`] reads a file compressed by gzip again from its beginning, up to the batch.
pub struct ShuffledTable {
    source: TableSource,
    seed: u64,
    schedule: Schedule,
    buffer: usize,
    reader: Option<Stretches>,
    held: Arc<Held>,
}

/// The stretches that come from the reading thread.
struct Stretches {
    receiver: Receiver<Result<Stretch>>,
    current: Option<Stretch>,
    /// Rows of the current one that are used up.
    used: usize,
}

/// Rows in memory: a matter of tests and of curiosity.
#[derive(Debug, Default)]
struct Held {
    now: AtomicUsize,
    most: AtomicUsize,
}

/// Shuffled rows that follow one another in the file.
struct Stretch {
    columns: Vec<Vec<f64>>,
    order: Vec<usize>,
    room: usize,
    held: Arc<Held>,
}

impl Stretch {
    fn new(room: usize, held: Arc<Held>) -> Self {
        let now = held.now.fetch_add(room, Ordering::Relaxed) + room;
        held.most.fetch_max(now, Ordering::Relaxed);
        Self { columns: Vec::new(), order: Vec::new(), room, held }
    }
}

impl Drop for Stretch {
    fn drop(&mut self) {
        self.held.now.fetch_sub(self.room, Ordering::Relaxed);
    }
}

impl ShuffledTable {
    /// Most rows that are held unless said otherwise: 2¹⁸, or fewer so as not to exceed 256 MiB.
    pub const BUFFER_ROWS: usize = 1 << 18;
    const BUFFER_BYTES: usize = 1 << 28;

    /// Creates batches of at most `size` rows, standardised as those of `source` are.
    ///
    /// # Errors
    /// [`Error::Invalid`] if `size` is 0.
    pub fn new(source: TableSource, size: usize, seed: u64) -> Result<Self> {
        let schedule = Schedule::new(source.rows(), size)?;
        let buffer = Self::most_rows(source.plan().numbers.len());
        let this = Self { source, seed, schedule, buffer, reader: None, held: Arc::default() };
        Ok(this.buffer_rows(buffer))
    }

    /// Returns how many rows of so many numbers are held unless said otherwise.
    fn most_rows(numbers: usize) -> usize {
        let bytes_of_row = size_of::<f64>() * numbers + size_of::<usize>();
        Self::BUFFER_ROWS.min(Self::BUFFER_BYTES / bytes_of_row)
    }

    /// Returns the number of rows of a stretch unless said otherwise.
    pub(in crate::data) fn stretch_rows(numbers: usize) -> usize {
        (Self::most_rows(numbers) / 2).max(1)
    }

    /// Holds at most this many rows (at least 2) besides the batch. More rows: better shuffled. Batches
    /// depend on it.
    #[must_use]
    pub fn buffer_rows(mut self, rows: usize) -> Self {
        self.buffer = rows.max(2);
        self.reader = None;
        self
    }

    /// Returns the most rows that were held at a time.
    pub fn most_rows_held(&self) -> usize {
        self.held.most.load(Ordering::Relaxed)
    }

    /// Starts to read at the next position.
    fn start(&self) -> Result<Stretches> {
        let Position { epoch, batch } = self.schedule.next;
        let start = self.schedule.places(batch).start;
        // Of no capacity: the thread holds one stretch ready while another is used.
        let (sender, receiver) = sync_channel(0);
        let task = Reading {
            plan: self.source.plan().clone(),
            scaler: self.source.scaler().clone(),
            source: self.source.clone(),
            seed: self.seed,
            room: self.buffer / 2,
            held: self.held.clone(),
        };
        std::thread::Builder::new()
            .name("sparsegp-batches".into())
            .spawn(move || task.run(epoch, start, &sender))
            .map_err(|error| Error::Invalid(format!("cannot start a thread to read: {error}")))?;
        Ok(Stretches { receiver, current: None, used: 0 })
    }
}

impl Stretches {
    /// Calls `f` with the next `rows` rows: stretch, indices of rows in it, place of the first one.
    fn take(&mut self, rows: usize, f: &mut dyn FnMut(&Stretch, &[usize], usize)) -> Result<()> {
        let mut place = 0;
        while place < rows {
            let Some(stretch) = &self.current else {
                let stretch = self.receiver.recv().unwrap_or_else(|_| {
                    Err(Error::Invalid("the thread that reads batches has ended".into()))
                });
                (self.current, self.used) = (Some(stretch?), 0);
                continue;
            };
            let n = (rows - place).min(stretch.order.len() - self.used);
            f(stretch, &stretch.order[self.used..self.used + n], place);
            (place, self.used) = (place + n, self.used + n);
            if self.used == stretch.order.len() {
                self.current = None;
            }
        }
        Ok(())
    }
}

impl Batches for ShuffledTable {
    fn population(&self) -> usize {
        self.schedule.rows
    }
    fn inputs(&self) -> usize {
        self.source.inputs()
    }
    fn outputs(&self) -> usize {
        self.source.outputs()
    }
    fn per_epoch(&self) -> usize {
        self.schedule.per_epoch
    }

    fn next(&mut self, out: &mut Minibatch) -> Result<()> {
        let mut reader = match self.reader.take() {
            Some(reader) => reader,
            None => self.start()?,
        };
        let plan = self.source.plan();
        let rows = self.schedule.places(self.schedule.next.batch).len();
        let (inputs, outputs) = (plan.inputs, plan.outputs);
        out.resize(rows, Shape { inputs, outputs, weights: plan.weight, extra: plan.extra });
        out.population = self.schedule.rows;
        // After a failure there is no reader: the next call starts again.
        reader.take(rows, &mut |stretch, order, place| {
            let places = place..place + order.len();
            for (j, from) in stretch.columns.iter().enumerate() {
                let to = if j < inputs {
                    out.rows.x.col_as_slice_mut(j)
                } else if j < inputs + outputs {
                    out.rows.y.col_as_slice_mut(j - inputs)
                } else if j == inputs + outputs && plan.weight {
                    &mut out.rows.weights
                } else {
                    &mut out.rows.extra
                };
                gather(from, order, &mut to[places.clone()]);
            }
        })?;
        self.reader = Some(reader);
        self.schedule.advance();
        Ok(())
    }

    fn position(&self) -> Position {
        self.schedule.next
    }

    fn remark(&self) -> Option<String> {
        self.source.order_remark(self.buffer / 2)
    }

    fn seek(&mut self, to: Position) -> Result<()> {
        if to != self.schedule.next {
            self.schedule.seek(to)?;
            self.reader = None;
        }
        Ok(())
    }
}

impl std::fmt::Debug for ShuffledTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShuffledTable")
            .field("source", &self.source)
            .field("seed", &self.seed)
            .field("schedule", &self.schedule)
            .field("buffer", &self.buffer)
            .finish_non_exhaustive()
    }
}

/// What the reading thread does.
struct Reading {
    plan: Arc<Plan>,
    scaler: Scaler,
    source: TableSource,
    seed: u64,
    room: usize,
    held: Arc<Held>,
}

impl Reading {
    /// Sends stretches, epoch after epoch, until nobody wants them or there is an error. The first `skip` rows of the
    /// first epoch are left out.
    fn run(&self, mut epoch: u64, mut skip: usize, sender: &SyncSender<Result<Stretch>>) {
        loop {
            let outcome = match self.source.places() {
                Some(places) => self.scattered(places, epoch, skip, sender),
                None => self.in_order(epoch, skip, sender),
            };
            (epoch, skip) = match outcome {
                Ok(true) => (epoch + 1, 0),
                Ok(false) => break,
                Err(error) => {
                    // The receiver may have gone.
                    let _ = sender.send(Err(error));
                    break;
                }
            };
        }
    }

    /// Sends one epoch of stretches from all over the file; `false` if no more is wanted.
    fn scattered(
        &self,
        places: &Places,
        epoch: u64,
        mut skip: usize,
        sender: &SyncSender<Result<Stretch>>,
    ) -> Result<bool> {
        let mut generator = rng::stream(self.seed, stream_name(&mut String::new(), epoch));
        self.source.check_unchanged()?;
        let pieces = places.pieces(self.source.rows(), self.room);
        let mut cursor = Cursor::open(self.plan.clone())?;
        for group in scatter(&pieces, self.room, &mut generator) {
            let rows = group.iter().map(|&i| pieces[i].take).sum();
            let mut order = vec![0; rows];
            shuffle(&mut generator, &mut order);
            if rows <= skip {
                skip -= rows;
                continue;
            }
            order.drain(..std::mem::take(&mut skip));
            let mut stretch = Stretch::new(rows, self.held.clone());
            stretch.columns = cursor.read_pieces(group.iter().map(|&i| &pieces[i]))?.numbers;
            if stretch.columns.first().map_or(0, Vec::len) != rows {
                return Err(self.source.recount());
            }
            self.source.check_unchanged()?;
            self.scaler.scale_columns(&mut stretch.columns, self.plan.extra);
            stretch.order = order;
            if sender.send(Ok(stretch)).is_err() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Sends one epoch of stretches that follow one another; `false` if no more is wanted.
    fn in_order(
        &self,
        epoch: u64,
        mut skip: usize,
        sender: &SyncSender<Result<Stretch>>,
    ) -> Result<bool> {
        let mut generator = rng::stream(self.seed, stream_name(&mut String::new(), epoch));
        let mut cursor = Cursor::open(self.plan.clone())?;
        // The first stretch is cut short, so that other rows come together in another epoch.
        let mut room = 1 + rng::below(&mut generator, self.room);
        let (mut rows, mut cells) = (0, self.source.no_cells());
        loop {
            let mut stretch = Stretch::new(room, self.held.clone());
            stretch.columns = cursor.read(room)?.numbers;
            cells.add_columns(&stretch.columns, self.plan.weight_index());
            let n = stretch.columns.first().map_or(0, Vec::len);
            rows += n;
            if n == 0 {
                break;
            }
            if rows > self.source.rows() {
                continue;
            }
            room = self.room;
            stretch.order.resize(n, 0);
            shuffle(&mut generator, &mut stretch.order);
            if n <= skip {
                skip -= n;
                continue;
            }
            stretch.order.drain(..std::mem::take(&mut skip));
            self.scaler.scale_columns(&mut stretch.columns, self.plan.extra);
            if sender.send(Ok(stretch)).is_err() {
                return Ok(false);
            }
        }
        // Read to the end, to be able to say what has changed.
        self.source.check_pass(&cells)?;
        Ok(true)
    }
}

//! Tables that are never in memory as a whole: a [`Source`] for training, blocks for prediction.

use super::batches::ShuffledTable;
use super::cursor::{Cursor, Parts, Plan, Stamp};
use super::places::Places;
use super::table::Selected;
use crate::data::Block;
use crate::data::batches::Batches;
use crate::data::classes::Classes;
use crate::data::fingerprint::Fingerprint;
use crate::data::moments::Moments;
use crate::data::scaler::Scaler;
use crate::data::source::{InMemory, Rows, Source};
use crate::data::statistics::Statistics;
use crate::error::{Error, Result};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};

/// Rows per read of the validating pass.
const CHUNK: usize = 1 << 13;

/// A file as a [`Source`]: every pass reads it again and holds two chunks at most.
///
/// The pass at construction has checked every chosen cell, so a later one can fail only if the file
/// cannot be read any more or has changed.
#[derive(Clone, Debug)]
pub struct TableSource {
    selected: Selected,
    plan: Arc<Plan>,
    statistics: Statistics,
    dropped: usize,
    remarks: Vec<String>,
    scaler: Scaler,
    /// Where reading can start; none where that is only the first row.
    places: Option<Arc<Places>>,
    /// Length and time of the last change of the file when its cells were last looked at.
    stamp: Arc<Mutex<Stamp>>,
    /// Means of every column in stretches of rows that follow one another, where the file is read in order.
    stretches: Vec<Moments>,
}

/// What is wrong with a file whose cells are others than they were.
const CHANGED: &str =
    "has changed since it was first read; do not change the file while a model learns from it";

/// Part of the variance of a column that stretches of a file in order may differ by.
const MOST_DRIFT: f64 = 0.05;

impl TableSource {
    /// Opens a table; `room` is the number of rows of the stretches that are compared where a file
    /// is read in order; by default those of minibatches.
    pub(super) fn open(selected: &Selected, room: Option<usize>) -> Result<Self> {
        let selected = selected.with_classes_found()?;
        let plan = Arc::new(selected.plan.clone());
        let mut statistics = Statistics::new(plan.inputs, plan.outputs);
        // Texts are read too, so that a later pass of `blocks` cannot stumble over them.
        let stamp = plan.stamp()?;
        let mut cursor = Cursor::open(plan.clone())?;
        cursor.note_places();
        let room = room.unwrap_or_else(|| ShuffledTable::stretch_rows(plan.numbers.len()));
        let none = vec![Moments::default(); plan.inputs + plan.outputs];
        let (mut stretches, mut stretch, mut in_stretch) = (none.clone(), none.clone(), 0);
        loop {
            let raw = cursor.read(CHUNK.min(room))?;
            if raw.rows.is_empty() || in_stretch + raw.rows.len() > room {
                for (means, own) in stretches.iter_mut().zip(&stretch) {
                    means.push_weighted(own.mean(), own.count() as f64);
                }
                (stretch, in_stretch) = (none.clone(), 0);
            }
            in_stretch += raw.rows.len();
            if raw.rows.is_empty() {
                break;
            }
            statistics.add_columns(&raw.numbers, plan.weight_index());
            for (own, column) in stretch.iter_mut().zip(&raw.numbers) {
                let known = column.iter().filter(|value| !value.is_nan());
                known.for_each(|&value| own.push_weighted(value, 1.0));
            }
        }
        if statistics.find_isolated() {
            let mut again = Cursor::open(plan.clone())?;
            let mut bodies = statistics.without_isolated();
            loop {
                let raw = again.read(CHUNK)?;
                if raw.rows.is_empty() {
                    break;
                }
                bodies.add_columns(&raw.numbers, plan.weight_index());
            }
            if bodies.cells() != statistics.cells() {
                return Err(plan.file_error(CHANGED.into()));
            }
            statistics.set_bodies(bodies);
        }
        Ok(Self {
            selected: selected.clone(),
            scaler: Scaler::identity(plan.inputs, plan.outputs),
            dropped: cursor.progress().dropped,
            remarks: cursor.progress().tally.words(),
            // Later passes have no use for the texts.
            plan: Arc::new(Plan { texts: Vec::new(), ..selected.plan.clone() }),
            statistics,
            places: cursor.into_places().map(Arc::new),
            stamp: Arc::new(Mutex::new(stamp)),
            stretches,
        })
    }

    /// Standardises inputs and targets with the statistics of this source's own rows.
    #[must_use]
    pub fn standardised(mut self) -> Self {
        self.scaler = self.statistics.scaler();
        self
    }

    /// Standardises inputs and targets with this scaler.
    ///
    /// # Errors
    /// [`Error::Shape`] if it is for another number of columns.
    pub fn with_scaler(mut self, scaler: Scaler) -> Result<Self> {
        scaler.check(self.inputs(), self.outputs())?;
        self.scaler = scaler;
        Ok(self)
    }

    /// Returns the scaler that is applied; the identity unless one was asked for.
    pub fn scaler(&self) -> &Scaler {
        &self.scaler
    }

    /// Returns the means and standard deviations of the raw columns.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Returns the labels whose codes the target holds, if it is read as a label.
    pub fn classes(&self) -> Option<&Classes> {
        self.plan.classes.as_ref()
    }

    /// Returns how many rows are left out because of missing cells.
    pub fn dropped(&self) -> usize {
        self.dropped
    }

    /// Says which words were taken for missing values in rows that are left out.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Returns the columns and rows that this source reads.
    pub fn selected(&self) -> &Selected {
        &self.selected
    }

    /// Returns the next chunk, standardised; no rows at the end. `cells` are those of the pass so
    /// far.
    fn chunk(&self, cursor: &mut Cursor, rows: usize, cells: &mut Fingerprint) -> Result<InMemory> {
        let mut raw = cursor.read(rows)?;
        if raw.rows.is_empty() {
            self.check_pass(cells)?;
        }
        cells.add_columns(&raw.numbers, self.plan.weight_index());
        self.scaler.scale_columns(&mut raw.numbers, self.plan.extra);
        Ok(raw.into_parts(&self.plan).data)
    }

    /// Returns what is read, without texts.
    pub(super) fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Returns where reading can start; none where that is only the first row.
    pub(super) fn places(&self) -> Option<&Places> {
        self.places.as_deref()
    }

    /// Says that rows come in an order which stretches of `rows` rows cannot undo, where the file
    /// is read in order.
    pub(super) fn order_remark(&self, rows: usize) -> Option<String> {
        if self.places.is_some() || self.rows() <= rows {
            return None;
        }
        let drifts = self.statistics.drifts(&self.stretches);
        let (j, drift) = drifts.into_iter().enumerate().max_by(|a, b| a.1.total_cmp(&b.1))?;
        (drift > MOST_DRIFT).then(|| {
            format!(
                "the rows of {} are in an order: `{}` is not the same in one part of the file as in \
                 another. A file that is compressed by gzip is read from its beginning, and minibatches \
                 come from {rows} rows that follow one another: decompress it, write it as Parquet, or \
                 shuffle its rows once",
                self.plan.path.display(),
                self.plan.numbers[j].input
            )
        })
    }

    /// Refuses a file that was written to since it was last looked at, as its length and time tell, if its cells are others.
    pub(super) fn check_unchanged(&self) -> Result<()> {
        let now = self.plan.stamp()?;
        let mut known = self.stamp.lock().unwrap_or_else(PoisonError::into_inner);
        if *known != now {
            self.check_cells()?;
            *known = now;
        }
        Ok(())
    }

    /// Reads the whole file, and refuses other cells than it had.
    fn check_cells(&self) -> Result<()> {
        let (mut cursor, mut cells) = (Cursor::open(self.plan.clone())?, self.no_cells());
        loop {
            let raw = cursor.read(CHUNK)?;
            if raw.rows.is_empty() {
                return self.check_pass(&cells);
            }
            cells.add_columns(&raw.numbers, self.plan.weight_index());
        }
    }

    /// Returns what a pass begins with that is to end in [`TableSource::check_pass`].
    pub(super) fn no_cells(&self) -> Fingerprint {
        Fingerprint::new(self.plan.inputs + self.plan.outputs)
    }

    /// Refuses a file whose cells are others in this pass, or more or fewer, than they were.
    pub(super) fn check_pass(&self, cells: &Fingerprint) -> Result<()> {
        match cells.rows() == self.rows() {
            true if cells == self.statistics.cells() => Ok(()),
            true => Err(self.plan.file_error(CHANGED.into())),
            false => Err(self.changed(cells.rows())),
        }
    }

    /// Returns the error of a file that has changed, as far as a pass in order can tell.
    pub(super) fn recount(&self) -> Error {
        let changed = || self.plan.file_error(CHANGED.into());
        self.check_cells().err().unwrap_or_else(changed)
    }

    /// Returns the error of a later pass that finds another number of rows.
    pub(super) fn changed(&self, rows: usize) -> Error {
        self.plan.file_error(format!(
            "has {rows} usable rows now and had {} when it was first read; do not change the \
             file while a model learns from it",
            self.rows()
        ))
    }
}

impl Source for TableSource {
    fn rows(&self) -> usize {
        self.statistics.rows()
    }
    fn inputs(&self) -> usize {
        self.plan.inputs
    }
    fn outputs(&self) -> usize {
        self.plan.outputs
    }
    fn is_plain(&self) -> bool {
        !self.plan.weight && !self.plan.extra
    }

    fn batches(&self, size: usize, seed: u64) -> Result<Box<dyn Batches + '_>> {
        Ok(Box::new(ShuffledTable::new(self.clone(), size, seed)?))
    }

    /// Lets a thread read the next chunk while `f` works on the present one.
    fn for_each_chunk(
        &self,
        chunk_rows: usize,
        f: &mut dyn FnMut(Rows<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut cursor = Cursor::open(self.plan.clone())?;
        let chunk_rows = chunk_rows.max(1);
        std::thread::scope(|scope| {
            // Of no capacity: the reader holds one chunk ready while `f` holds another.
            let (sender, receiver) = sync_channel(0);
            scope.spawn(move || {
                let mut cells = self.no_cells();
                loop {
                    let chunk = self.chunk(&mut cursor, chunk_rows, &mut cells);
                    let last = !matches!(&chunk, Ok(data) if data.rows() > 0);
                    // A closed channel: `f` has failed, nobody wants the rest.
                    if sender.send(chunk).is_err() || last {
                        break;
                    }
                }
            });
            let mut start = 0;
            for chunk in receiver {
                let data = chunk?;
                if data.rows() > 0 {
                    f(Rows { start, ..data.all() })?;
                }
                start += data.rows();
            }
            Ok(())
        })
    }
}

/// Iterator over the [`Block`]s of a file; see [`Selected::blocks`]. Ends after the first error.
pub struct Blocks {
    cursor: Option<Cursor>,
    plan: Arc<Plan>,
    rows: usize,
    start: usize,
    dropped: usize,
    scaler: Option<Scaler>,
}

impl Blocks {
    pub(super) fn open(selected: &Selected, rows: usize, scaler: Option<&Scaler>) -> Result<Self> {
        let plan = Arc::new(selected.plan.clone());
        if plan.label_index().is_some() && plan.classes.is_none() {
            return Err(Error::Invalid(
                "the labels of a target can be read in blocks only when the classes are known; say \
                 which with `Selected::classes`"
                    .into(),
            ));
        }
        if let Some(scaler) = scaler {
            scaler.check(plan.inputs, scaler.y_mean.len())?;
        }
        Ok(Self {
            cursor: Some(Cursor::open(plan.clone())?),
            plan,
            rows: rows.max(1),
            start: 0,
            dropped: 0,
            scaler: scaler.cloned(),
        })
    }

    /// Returns how many rows have been left out so far because of missing cells.
    pub fn dropped(&self) -> usize {
        self.dropped
    }

    fn read(&mut self) -> Result<Option<Block>> {
        let Some(cursor) = &mut self.cursor else { return Ok(None) };
        let raw = cursor.read(self.rows)?;
        self.dropped = cursor.progress().dropped;
        if raw.rows.is_empty() {
            return Ok(None);
        }
        let Parts { data, texts, rows } = raw.into_parts(&self.plan);
        let InMemory { mut x, y, weights, extra } = data;
        if let Some(scaler) = &self.scaler {
            scaler.scale_x(x.as_mut())?;
        }
        let start = self.start;
        self.start += rows.len();
        Ok(Some(Block { start, rows, x, y, weights, extra, ids: texts }))
    }
}

impl Iterator for Blocks {
    type Item = Result<Block>;

    fn next(&mut self) -> Option<Self::Item> {
        let block = self.read().transpose();
        if !matches!(block, Some(Ok(_))) {
            self.cursor = None;
        }
        block
    }
}

impl std::fmt::Debug for Blocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Blocks").field("start", &self.start).field("rows", &self.rows).finish()
    }
}

//! Rows that are kept, with the states that the filter had at every block of them, and what comes back from the rows after it.

use super::filter::{Filter, Passed, State};
use super::small::Square;
use super::smoother::Adjoint;
use super::{BLOCK, Places, Rows, Start, blocks};
use crate::error::Result;
use crate::kernels::StateSpace;
use crate::linalg::{Mat, MatRef};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Rows that are kept.
#[derive(Debug)]
pub(super) struct Kept {
    x: Mat<f64>,
    /// The column of it that is the time.
    time: usize,
    pub(super) y: Mat<f64>,
    noise: Vec<f64>,
    pub(super) start: Option<Start>,
}

impl Kept {
    pub(super) fn rows(&self) -> Rows<'_> {
        let start = self.start.as_ref();
        Rows { places: self.places(), y: self.y.as_ref(), noise: &self.noise, start }
    }

    pub(super) fn places(&self) -> Places<'_> {
        Places::new(self.x.as_ref(), self.time)
    }

    /// Returns the times.
    pub(super) fn t(&self) -> &[f64] {
        self.places().t()
    }
}

/// Rows, passed with states of N numbers.
#[derive(Debug)]
pub(super) struct Sized<const N: usize> {
    pub(super) space: Arc<dyn StateSpace>,
    pub(super) rows: Kept,
    /// Before each block: after the row before it.
    pub(super) forwards: Vec<State<N>>,
    /// After the last row.
    last: State<N>,
    /// What each block adds to the log density.
    pub(super) values: Vec<f64>,
    /// After each block: before the row after it. Found when it is first asked for, as what comes after the last row needs none.
    backwards: OnceLock<Vec<Adjoint<N>>>,
}

impl<const N: usize> Sized<N> {
    /// Conditions on rows.
    pub(super) fn new(
        space: Arc<dyn StateSpace>,
        rows: Rows<'_>,
        go_on: &dyn Fn() -> Result<()>,
    ) -> Result<Self> {
        let rows = Kept {
            x: rows.places.inputs().to_owned(),
            time: rows.places.time(),
            y: rows.y.to_owned(),
            noise: rows.noise.to_vec(),
            start: rows.start.cloned(),
        };
        let own = Self::passed(space, rows, None, go_on)?;
        own.backwards(go_on)?;
        Ok(own)
    }

    /// Passes rows forwards: all of them, or those behind what is known of the first.
    fn passed(
        space: Arc<dyn StateSpace>,
        rows: Kept,
        known: Option<&Self>,
        go_on: &dyn Fn() -> Result<()>,
    ) -> Result<Self> {
        let first = known.map_or(0, |known| known.rows.y.nrows());
        let mut forwards = known.map_or_else(Vec::new, |known| known.forwards.clone());
        let mut values = known.map_or_else(Vec::new, |known| known.values.clone());
        let last;
        {
            let seen = rows.rows();
            let mut filter: Filter<'_, N> = Filter::new(&*space, &seen);
            if let Some(known) = known {
                filter.state.clone_from(&known.last);
            }
            for range in blocks(seen.places.len()).skip(first / BLOCK) {
                go_on()?;
                if range.start >= first {
                    forwards.push(filter.state.clone());
                    values.push(0.0);
                }
                let block = range.start / BLOCK;
                filter.value = values[block];
                filter.pass(range.start.max(first)..range.end, &mut [])?;
                values[block] = filter.value;
            }
            last = filter.state;
        }
        Ok(Self { space, rows, forwards, last, values, backwards: OnceLock::new() })
    }

    /// Returns what is known after each block.
    fn backwards(&self, go_on: &dyn Fn() -> Result<()>) -> Result<&[Adjoint<N>]> {
        if let Some(found) = self.backwards.get() {
            return Ok(found);
        }
        let seen = self.rows.rows();
        let mut filter: Filter<'_, N> = Filter::new(&*self.space, &seen);
        let mut own = Adjoint::none(seen.y.ncols());
        let mut kept = vec![Passed::empty(); BLOCK.min(seen.places.len())];
        let (mut step, mut all) = (None, Vec::new());
        for range in blocks(seen.places.len()).rev() {
            go_on()?;
            all.push(own.clone());
            let before = &self.forwards[range.start / BLOCK];
            let found = Self::back(&mut filter, before, range, step, own, &mut kept)?;
            step = Some(Arc::clone(&kept[0].a));
            own = found.into_iter().next().unwrap_or_else(|| Adjoint::none(seen.y.ncols()));
        }
        all.reverse();
        Ok(self.backwards.get_or_init(|| all))
    }

    /// Returns what is known after a block; nothing after the last one.
    pub(super) fn after(&self, block: usize) -> Result<Adjoint<N>> {
        match block + 1 >= self.forwards.len() {
            true => Ok(Adjoint::none(self.rows.y.ncols())),
            false => Ok(self.backwards(&|| Ok(()))?[block].clone()),
        }
    }

    /// Passes the rows of a block, forwards from what is known before them into `kept`, and backwards from `after`, which is
    /// before the row that `step` leads to. Returns what is known before each row.
    pub(super) fn back(
        filter: &mut Filter<'_, N>,
        before: &State<N>,
        range: Range<usize>,
        step: Option<Arc<Square<N>>>,
        mut after: Adjoint<N>,
        kept: &mut [Passed<N>],
    ) -> Result<Vec<Adjoint<N>>> {
        let rows = range.len();
        filter.state.clone_from(before);
        filter.pass(range, kept)?;
        let mut all = Vec::with_capacity(rows);
        let mut step = step;
        for row in kept[..rows].iter().rev() {
            if let Some(a) = &step {
                after.back(a, &filter.steps.blocks);
            }
            after.unsee(row, |_, _| ());
            all.push(after.clone());
            step = Some(Arc::clone(&row.a));
        }
        all.reverse();
        Ok(all)
    }

    /// Returns these rows with others behind them.
    pub(super) fn with(&self, rows: Rows<'_>) -> Result<Self> {
        let (own, n) = (&self.rows, self.rows.y.nrows());
        let both = |above: MatRef<'_, f64>, below: MatRef<'_, f64>| {
            let value = |i: usize, j: usize| if i < n { above[(i, j)] } else { below[(i - n, j)] };
            Mat::from_fn(n + below.nrows(), above.ncols(), value)
        };
        let all = Kept {
            x: both(own.x.as_ref(), rows.places.inputs()),
            time: own.time,
            y: both(own.y.as_ref(), rows.y),
            noise: [&own.noise, rows.noise].concat(),
            start: own.start.clone(),
        };
        let space = Arc::clone(&self.space);
        Self::passed(space, all, Some(self), &|| Ok(()))
    }

    /// Returns what the rows of the first blocks add to the log density, and what is known without
    /// them from there on.
    pub(super) fn without_first(&self, blocks: usize) -> (f64, Self) {
        let (own, first) = (&self.rows, blocks * BLOCK);
        let state = self.forwards.get(blocks).unwrap_or(&self.last);
        let start = match blocks {
            0 => own.start.clone(),
            _ => Some(state.start(own.t()[first - 1], self.space.size())),
        };
        let behind = |of: &Mat<f64>| of.subrows(first, of.nrows() - first).to_owned();
        let left = Kept {
            x: behind(&own.x),
            time: own.time,
            y: behind(&own.y),
            noise: own.noise[first..].to_vec(),
            start,
        };
        let after = OnceLock::new();
        if let Some(all) = self.backwards.get() {
            after.get_or_init(|| all[blocks..].to_vec());
        }
        let left = Self {
            space: Arc::clone(&self.space),
            rows: left,
            forwards: self.forwards[blocks..].to_vec(),
            last: self.last.clone(),
            values: self.values[blocks..].to_vec(),
            backwards: after,
        };
        (self.values[..blocks].iter().sum(), left)
    }
}

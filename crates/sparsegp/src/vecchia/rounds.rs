//! Blocks of a plan on all threads, and what they contribute in a fixed order.

use super::density::Density;
use super::{Block, Plan};
use crate::error::{Error, Result};
use rayon::prelude::*;
use std::collections::HashMap;

/// Blocks that are one thread's work at once, with a sum each. The bits depend on it.
const PART: usize = 64;
/// Numbers of parts that wait to be added, at most, and how many parts these are at most: the memory depends on them.
const WAITING: usize = 1 << 24;
const ROUND: usize = 64;

/// What some blocks contribute.
pub(super) struct Part {
    pub(super) density: Density,
    /// Slopes in the kernel's parameters.
    pub(super) kernel: Vec<f64>,
    width: usize,
    /// Rows of which something is known, in the order in which they were met, and their places among these.
    rows: Vec<u32>,
    places: HashMap<u32, usize>,
    /// Numbers of these rows, one row after the other.
    numbers: Vec<f64>,
}

impl Part {
    fn new(params: usize, width: usize) -> Self {
        let (kernel, places) = (vec![0.0; params], HashMap::new());
        let (rows, numbers) = (Vec::new(), Vec::new());
        Self { density: Density::default(), kernel, width, rows, places, numbers }
    }

    /// Returns the numbers of a row, 0 where it is a new one.
    pub(super) fn of(&mut self, row: u32) -> &mut [f64] {
        let Self { rows, places, numbers, width, .. } = self;
        let place = *places.entry(row).or_insert_with(|| {
            rows.push(row);
            numbers.resize(rows.len() * *width, 0.0);
            rows.len() - 1
        });
        &mut numbers[place * *width..][..*width]
    }

    /// Returns rows with their numbers.
    pub(super) fn rows(&self) -> impl Iterator<Item = (usize, &[f64])> {
        self.rows.iter().map(|row| *row as usize).zip(self.numbers.chunks_exact(self.width))
    }
}

/// How blocks are gone through.
pub(super) struct Rounds<'a> {
    pub(super) plan: &'a Plan,
    /// Rows that there are.
    pub(super) rows: usize,
    /// Parameters of the kernel whose slopes are summed.
    pub(super) params: usize,
    /// Numbers of every row, at least one.
    pub(super) width: usize,
    /// Is asked now and then, and may end it.
    pub(super) watch: &'a dyn Fn() -> Result<()>,
}

impl Rounds<'_> {
    /// Calls `add` with the contributions of all blocks, always in the same order.
    pub(super) fn run<S>(
        &self,
        scratch: impl Fn() -> S + Send + Sync,
        work: impl Fn(&mut S, Block<'_>, &mut Part) -> Result<()> + Send + Sync,
        add: &mut dyn FnMut(&Part),
    ) -> Result<()> {
        let (plan, params, width) = (self.plan, self.params, self.width);
        if plan.rows() != self.rows {
            return Err(Error::shape("rows of a plan", plan.rows().to_string(), self.rows));
        }
        let parts = plan.blocks().div_ceil(PART);
        let each = plan.members().div_ceil(parts.max(1)) * self.width;
        let round = (WAITING / each.max(1)).clamp(1, ROUND);
        for first in (0..parts).step_by(round) {
            (self.watch)()?;
            let own = (first..parts.min(first + round)).into_par_iter();
            let own = own.map_init(&scratch, |scratch, part| {
                let blocks = part * PART..plan.blocks().min((part + 1) * PART);
                let mut own = Part::new(params, width);
                for block in blocks {
                    work(scratch, plan.block(block), &mut own)?;
                }
                Ok(own)
            });
            // in order, whoever was the first to finish
            own.collect::<Result<Vec<_>>>()?.iter().for_each(&mut *add);
        }
        Ok(())
    }
}

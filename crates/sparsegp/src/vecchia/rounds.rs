//! Blocks of a plan on all threads, and what they contribute in an order of its own.

use super::density::Density;
use super::{Block, Plan};
use crate::error::{Error, Result};
use rayon::prelude::*;

/// Blocks that are one thread's work at once, with a sum each. The bits depend on it.
const PART: usize = 64;
/// Numbers of parts that wait to be added, at most, and how many parts these are at most: the memory depends on them.
const WAITING: usize = 1 << 24;
const ROUND: usize = 64;

/// What some blocks contribute.
pub(super) struct Part {
    /// The blocks.
    pub(super) blocks: std::ops::Range<usize>,
    pub(super) density: Density,
    /// Slopes in the kernel's parameters.
    pub(super) kernel: Vec<f64>,
    /// Numbers of rows of every block, one after the other.
    pub(super) numbers: Vec<f64>,
}

/// How blocks are gone through.
pub(super) struct Rounds<'a> {
    pub(super) plan: &'a Plan,
    /// Rows that there are.
    pub(super) rows: usize,
    /// Parameters of the kernel whose slopes are summed.
    pub(super) params: usize,
    /// Numbers for every member of a block, about.
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
        let (plan, params) = (self.plan, self.params);
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
                let mut own = Part {
                    blocks: blocks.clone(),
                    density: Density::default(),
                    kernel: vec![0.0; params],
                    numbers: Vec::new(),
                };
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

//! A job over rows: forward, slopes, sums and the way back, block by block.
//!
//! Per block and process, with Φ of B×M: the triangular solve for Φ, ΦR of every latent function,
//! its rank-B update, (ΦR)Rᵀ and the solve back: 5M²B operations for one latent function (6 where c
//! ≠ b, or with Ψ, which takes the place of the sum with c), counting a multiply-add as two and
//! triangular factors as half a matrix. [`Spread::Through`](crate::engine::Spread::Through) has ΦV
//! in the place of the three products with R and L⁻ᵀ: 4M²B. Without a q there are the solve and the
//! update, 2M²B; a way back with constant b and c is one product, 2M²B ([`ByMatrix`]).
//!
//! Usually every block goes all the way on one thread, and M×M sums have an accumulator for every
//! lane ([`lanes`]). With few blocks and many inducing points (a minibatch) the blocks go together
//! from step to step, and M×M sums have one accumulator, whose entries are divided among the
//! threads: to write eight matrices of 1024×1024 and add them up took a twelfth of a step. With
//! many blocks the caches would not keep what one step leaves for the next.

use super::Cpu;
use super::back::{ByMatrix, back};
use super::buffers::Scratch;
use super::forward::forward;
use super::operands::{self, Either, Rounded};
use super::statistics::{statistics, times_slopes};
use super::timings::lap;
use crate::data::{Rows, Source};
use crate::engine::{Block, Engine, Job, Passed, Plan, Process, Slope, Slopes, Want, lanes};
use crate::error::Result;
use crate::linalg::{Par, Precision, par_for};
use rayon::prelude::*;
use std::time::Instant;

/// A job with what is chosen for it.
pub(super) struct Task<'a> {
    pub(super) job: &'a Job<'a>,
    pub(super) plan: Plan<'a>,
    /// What of every process is of single precision.
    rounded: &'a [Rounded],
    /// How gradients come back without features, of every process, where they can.
    pub(super) by_matrix: Option<Vec<ByMatrix>>,
}

impl<'a> Task<'a> {
    fn new(job: &'a Job<'a>, (precision, rounded): (Precision, &'a [Rounded])) -> Self {
        let plan = job.pointwise.plan();
        Self { job, plan, rounded, by_matrix: ByMatrix::of(job, &plan, precision) }
    }

    /// Returns what the blocks of a process are multiplied by.
    pub(super) fn operands(&self, at: usize, process: &'a Process<'_>) -> Either<'a> {
        let Process { basis, mean, spread, .. } = *process;
        Either::of(basis, mean, spread, &self.rounded[at])
    }

    /// Returns processes with their places and first latent functions.
    pub(super) fn processes(&self) -> impl Iterator<Item = (usize, usize, &'a Process<'a>)> {
        self.job.processes.iter().enumerate().scan(0, |first, (at, process)| {
            *first += process.mean.ncols();
            Some((at, *first - process.mean.ncols(), process))
        })
    }
}

/// Accumulators of one lane.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Whether anything has been added since the job began.
    used: bool,
    sums: Passed,
}

/// Most blocks that go together. (With 384 points eight were faster so on two threads and as fast
/// on one, sixteen slower by 2 and 5 %.)
const FEW: usize = 8;

pub(super) fn run(
    cpu: &Cpu,
    precision: Precision,
    job: &Job<'_>,
    data: &dyn Source,
    out: &mut Passed,
) -> Result<()> {
    let features = job.processes.iter().map(|p| p.inducing.len()).max().unwrap_or(0);
    let accumulators = job.processes.iter().map(|p| p.grams()).sum();
    // neither depends on the number of threads
    let few = data.rows() <= FEW * lanes::BLOCK;
    let par = if few { par_for(features) } else { Par::Seq };
    go(cpu, (precision, job), data, out, lanes::count(features, accumulators), par)
}

/// Does the job with so many lanes and every block on one thread, or with blocks that go together.
pub(super) fn go(
    cpu: &Cpu,
    (precision, job): (Precision, &Job<'_>),
    data: &dyn Source,
    out: &mut Passed,
    count: usize,
    par: Par,
) -> Result<()> {
    let mut rounded = std::mem::take(&mut *cpu.rounded());
    operands::round(job.processes, precision, &mut rounded);
    let task = Task::new(job, (precision, &rounded));
    let outcome = over_rows(cpu, &task, data, out, count, par);
    *cpu.rounded() = rounded;
    outcome
}

fn over_rows(
    cpu: &Cpu,
    task: &Task<'_>,
    data: &dyn Source,
    out: &mut Passed,
    count: usize,
    par: Par,
) -> Result<()> {
    let job = task.job;
    out.clear(job, &task.plan);
    let go_on = || if job.want.stops() { cpu.go_on() } else { Ok(()) };
    if let Par::Rayon(_) = par {
        let mut blocks = std::mem::take(&mut *cpu.scratch());
        let mut used = false;
        let outcome = data.for_each_chunk(data.rows().max(1), &mut |rows| {
            go_on()?;
            let needed = rows.x.nrows().div_ceil(lanes::BLOCK);
            if blocks.len() < needed {
                blocks.resize_with(needed, Scratch::default);
            }
            if needed > 0 {
                round(&mut blocks[..needed], out, !used, task, &rows, par);
                used = true;
            }
            Ok(())
        });
        *cpu.scratch() = blocks;
        outcome?;
        if !used {
            out.add_all(std::iter::empty());
        }
    } else {
        let mut lanes = std::mem::take(&mut *cpu.lanes());
        lanes.resize_with(count, Lane::default);
        lanes.iter_mut().for_each(|lane| lane.used = false);
        let outcome = lanes::sweep(data, &mut lanes, |lane, rows| {
            go_on()?;
            if !lane.used {
                lane.sums.clear(job, &task.plan);
            }
            let mut own = cpu.scratch().pop().unwrap_or_default();
            let block = std::slice::from_mut(&mut own);
            round(block, &mut lane.sums, !lane.used, task, &rows, Par::Seq);
            lane.used = true;
            cpu.scratch().push(own);
            Ok(())
        });
        if outcome.is_ok() {
            out.add_all(lanes.iter().filter(|lane| lane.used).map(|lane| &lane.sums));
        }
        *cpu.lanes() = lanes;
        outcome?;
    }
    out.mirror();
    Ok(())
}

/// Works on every block by itself.
pub(super) fn each(blocks: &mut [Scratch], par: Par, work: impl Fn(usize, &mut Scratch) + Sync) {
    match par {
        Par::Seq => blocks.iter_mut().enumerate().for_each(|(index, own)| work(index, own)),
        Par::Rayon(_) => {
            blocks.par_iter_mut().enumerate().for_each(|(index, own)| work(index, own));
        }
    }
}

/// Takes blocks of rows, each in its own scratch memory, all the way. M×M matrices begin here if
/// these are the `first`.
fn round(
    blocks: &mut [Scratch],
    sums: &mut Passed,
    first: bool,
    task: &Task<'_>,
    rows: &Rows<'_>,
    par: Par,
) {
    let n = rows.x.nrows();
    let part = |index: usize| {
        let start = index * lanes::BLOCK;
        rows.part(start, lanes::BLOCK.min(n - start))
    };
    each(blocks, par, |index, s| {
        let rows = part(index);
        s.small.clear_small(task.job, &task.plan);
        forward(s, task, &rows);
        let mut mark = Instant::now();
        slopes(s, task, rows);
        if task.job.want.phi_a() {
            times_slopes(s, task);
        }
        lap(&mut mark, &mut s.timings.products);
    });
    if task.job.want != Want::Value {
        statistics(blocks, sums, first, task, par);
    }
    if task.job.want.gradients() {
        back(blocks, sums, first, task, &part, par);
    }
    blocks.iter().for_each(|block| sums.add_small(&block.small, task.job.scale));
}

/// Computes what the rows of a block contribute, with all slopes written out where something comes
/// back through features.
fn slopes(s: &mut Scratch, task: &Task<'_>, rows: Rows<'_>) {
    let (plan, latents) = (&task.plan, task.job.latents());
    let shown = |columns: bool| if columns { latents } else { 0 };
    let block = Block {
        rows,
        mu: s.mu.as_ref(),
        s: s.s.as_ref().subcols(0, shown(plan.variances)),
        r: s.r.as_ref().subcols(0, shown(task.by_matrix.is_none())),
    };
    let (a, b, c) = (s.a.as_mut(), s.b.as_mut(), s.c.as_mut());
    let out = Slopes { a, b, c, sums: &mut s.small.sums, scratch: &mut s.pointwise };
    task.job.pointwise.rows(block, out);
    if task.job.want.gradients() {
        for (slope, values) in [(Some(plan.b), &mut s.b), (plan.c, &mut s.c)] {
            if let Some(Slope::Constant(slope)) = slope {
                values.fill(slope);
            }
        }
    }
}

#[cfg(test)]
#[path = "pass_tests.rs"]
mod tests;

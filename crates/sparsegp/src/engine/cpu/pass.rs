//! One pass over the rows at a given q: forward, slopes, sums and the way back, block by block.
//!
//! Per block and process, with Φ of B×M: the triangular solve for Φ, ΦR of every latent function, its
//! rank-B update, (ΦR)Rᵀ and the solve back: 5M²B operations for one latent function (6 where c ≠ b, or
//! with Ψ, which takes the place of the sum with c), counting a multiply-add as two and triangular factors as half a matrix.
//! [`Spread::Through`] has ΦV in the place of the three products with R and L⁻ᵀ: 4M²B.
//!
//! Usually every block goes all the way on one thread, and M×M sums have an accumulator for every lane ([`lanes`]). With few blocks and many
//! inducing points (a minibatch) the blocks go together from step to step, and M×M sums have one accumulator, whose entries are divided
//! among the threads: to write eight matrices of 1024×1024 and add them up took a twelfth of a step. With many blocks the caches
//! would not keep what one step leaves for the next.

mod back;
mod forward;
mod squares;
mod sums;

use super::buffers::Buffer;
use super::products::ByProducts;
use super::{Cpu, lanes};
use crate::data::{Rows, Source};
use crate::engine::{Job, LatentBlock, LatentSlopes, Passed, Process, Spread, Want};
use crate::error::Result;
use crate::kernels::Tape;
use crate::linalg::{Mat, Par, column, par_for, zeroed};
use back::back;
use forward::{forward, times_slopes};
use rayon::prelude::*;
use squares::statistics;
use std::sync::PoisonError;
use sums::total;

impl Job<'_> {
    fn latents(&self) -> usize {
        self.processes.iter().map(|p| p.mean.ncols()).sum()
    }

    fn mean_params(&self) -> usize {
        self.mean.num_params()
    }

    /// Whether Ψ = Φ̄Φᵀ or Φ diag(Σc) Φᵀ is summed for a process.
    fn sums_more(&self, process: &Process<'_>) -> bool {
        let psi = matches!(self.want.of(process.spread), Want::Adjoints { .. });
        self.want.gradients() && (psi || !self.pointwise.equal_slopes())
    }

    /// Which matrices Φ diag(b) Φᵀ of a process are summed; `first` is its first latent function.
    fn counting(&self, process: &Process<'_>, first: usize) -> impl Iterator<Item = usize> {
        let each = matches!(process.spread, Spread::Roots(_) | Spread::Through(_));
        (0..process.grams()).filter(move |j| !each || self.pointwise.counts(first + j))
    }
}

/// Buffers of one block of rows, and what it adds to the small sums.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    mu: Buffer,
    s: Buffer,
    r: Buffer,
    a: Buffer,
    b: Buffer,
    c: Buffer,
    weights: Vec<f64>,
    other_weights: Vec<f64>,
    pointwise: Vec<f64>,
    sums: Vec<f64>,
    mean: Vec<f64>,
    processes: Vec<ProcessScratch>,
}

/// The same for one process.
#[derive(Debug, Default)]
struct ProcessScratch {
    k: Buffer,
    phi: Buffer,
    other: Buffer,
    /// ΦR of every latent function, or ΦV, or ΦE.
    phi_r: Vec<Buffer>,
    /// In the place of those where features are products.
    double: ByProducts<f64>,
    single: ByProducts<f32>,
    tape: Tape,
    phi_a: Buffer,
    kernel: Vec<f64>,
    z: Buffer,
}

/// Accumulators of one lane.
#[derive(Debug, Default)]
pub(super) struct Lane {
    used: bool,
    sums: Vec<f64>,
    mean: Vec<f64>,
    processes: Vec<ProcessLane>,
}

/// M×M sums have the scale, the others not yet.
#[derive(Debug, Default)]
struct ProcessLane {
    phi_a: Buffer,
    /// M×M, lower triangles: Φ diag(b) Φᵀ, or 2Φ diag(b) ΦᵀR, of those latent functions that count, and then Ψ or Φ diag(Σc) Φᵀ if one
    /// of them is asked for ([`Job::sums_more`]).
    squares: Vec<Buffer>,
    kernel: Vec<f64>,
    z: Buffer,
}

/// Most blocks that go together. (With 384 points eight were faster so on two threads and as fast on one, sixteen slower by 2 and 5 %.)
const FEW: usize = 8;

pub(super) fn run(cpu: &Cpu, job: &Job<'_>, data: &dyn Source, out: &mut Passed) -> Result<()> {
    let features = job.processes.iter().map(|p| p.z.nrows()).max().unwrap_or(0);
    // neither depends on the number of threads
    let few = data.rows() <= FEW * lanes::BLOCK;
    let par = if few { par_for(features) } else { Par::Seq };
    go(cpu, job, data, out, lanes::count(features, job.latents()), par)
}

/// The pass with so many lanes and every block on one thread, or with blocks that go together.
fn go(
    cpu: &Cpu,
    job: &Job<'_>,
    data: &dyn Source,
    out: &mut Passed,
    count: usize,
    par: Par,
) -> Result<()> {
    let scratch = || cpu.pass_scratch.lock().unwrap_or_else(PoisonError::into_inner);
    let mut lanes =
        std::mem::take(&mut *cpu.pass_lanes.lock().unwrap_or_else(PoisonError::into_inner));
    let together = matches!(par, Par::Rayon(_));
    lanes.resize_with(if together { 1 } else { count }, Lane::default);
    lanes.iter_mut().for_each(|lane| lane.used = false);
    let outcome = if together {
        let mut blocks = std::mem::take(&mut *scratch());
        let lane = &mut lanes[0];
        let outcome = data.for_each_chunk(data.rows().max(1), &mut |rows| {
            let needed = rows.x.nrows().div_ceil(lanes::BLOCK);
            if blocks.len() < needed {
                blocks.resize_with(needed, Scratch::default);
            }
            if needed > 0 {
                round(&mut blocks[..needed], lane, job, &rows, par);
            }
            Ok(())
        });
        *scratch() = blocks;
        outcome
    } else {
        lanes::sweep(data, &mut lanes, |lane, rows| {
            let mut own = scratch().pop().unwrap_or_default();
            round(std::slice::from_mut(&mut own), lane, job, &rows, Par::Seq);
            scratch().push(own);
            Ok(())
        })
    };
    if outcome.is_ok() {
        total(job, &mut lanes, out);
    }
    *cpu.pass_lanes.lock().unwrap_or_else(PoisonError::into_inner) = lanes;
    outcome
}

/// Every block for itself.
fn each(blocks: &mut [Scratch], par: Par, work: impl Fn(usize, &mut Scratch) + Sync) {
    match par {
        Par::Seq => blocks.iter_mut().enumerate().for_each(|(index, own)| work(index, own)),
        Par::Rayon(_) => {
            blocks.par_iter_mut().enumerate().for_each(|(index, own)| work(index, own));
        }
    }
}

/// Blocks of rows, each in a scratch of its own, all the way.
fn round(blocks: &mut [Scratch], lane: &mut Lane, job: &Job<'_>, rows: &Rows<'_>, par: Par) {
    let n = rows.x.nrows();
    let part = |index: usize| {
        let start = index * lanes::BLOCK;
        rows.part(start, lanes::BLOCK.min(n - start))
    };
    lane.start(job);
    each(blocks, par, |index, s| {
        let rows = part(index);
        forward(s, job, &rows);
        zeroed(&mut s.sums, job.pointwise.sums());
        let block = LatentBlock { rows, mu: s.mu.as_ref(), s: s.s.as_ref(), r: s.r.as_ref() };
        let out = LatentSlopes {
            a: s.a.as_mut(),
            b: s.b.as_mut(),
            c: s.c.as_mut(),
            sums: &mut s.sums,
            scratch: &mut s.pointwise,
        };
        job.pointwise.rows(block, out);
        if job.want != Want::Value {
            times_slopes(s, job);
        }
    });
    if job.want != Want::Value {
        statistics(blocks, lane, job, par);
    }
    if job.want.gradients() {
        back(blocks, lane, job, &part, par);
    }
    blocks.iter().for_each(|block| lane.add(block, job.want));
    lane.used = true;
}

/// Sum of the columns `first` to `first + count`, for every row.
fn sum_columns(out: &mut Vec<f64>, a: &Mat<f64>, first: usize, count: usize) {
    out.clear();
    out.extend_from_slice(column(a.as_ref(), first));
    for j in first + 1..first + count {
        out.iter_mut().zip(column(a.as_ref(), j)).for_each(|(t, v)| *t += v);
    }
}

#[cfg(test)]
#[path = "pass_tests.rs"]
mod tests;

//! Φa, Φ diag(b) Φᵀ and Φ diag(Σc) Φᵀ.

use super::buffers::Scratch;
use super::features::Right;
use super::forward::sum_columns;
use super::pass::{Task, each};
use super::timings::lap;
use crate::engine::{Passed, Process, Slope};
use crate::linalg::{Accum, Mat, Par};
use std::time::Instant;

/// Computes Φa of a block.
pub(super) fn times_slopes(s: &mut Scratch, task: &Task<'_>) {
    for (at, first, process) in task.processes() {
        let (own, sums) = (&mut s.processes[at], &mut s.small.processes[at]);
        let a = s.a.as_ref().subcols(first, process.mean.ncols());
        let target = sums.phi_a.as_mut();
        own.features.times_slopes(task.operands(at, process), a, target);
    }
}

/// Computes the M×M statistics, which begin here if these blocks are the `first`.
pub(super) fn statistics(
    blocks: &mut [Scratch],
    sums: &mut Passed,
    first: bool,
    task: &Task<'_>,
    par: Par,
) {
    let mut mark = Instant::now();
    let (accum, plan) = (if first { Accum::Replace } else { Accum::Add }, &task.plan);
    for (at, from, process) in task.processes() {
        let (l, sums) = (process.mean.ncols(), &mut sums.processes[at]);
        for (j, gram) in sums.grams.iter_mut().enumerate().filter(|(_, gram)| gram.nrows() > 0) {
            // latent functions that share their variances share this sum
            let (from, count) = if process.spread.is_each() { (from + j, 1) } else { (from, l) };
            let right = weigh(blocks, (at, process), task, plan.b, |s| (&*s.b, from, count), par);
            squares(blocks, (at, process), right, (gram, accum), task, par);
        }
        if let (Some(sum), Some(slope)) = (&mut sums.gram_c, plan.c) {
            let right = weigh(blocks, (at, process), task, slope, |s| (&*s.c, from, l), par);
            squares(blocks, (at, process), right, (sum, accum), task, par);
        }
    }
    if let Some(one) = blocks.first_mut() {
        lap(&mut mark, &mut one.timings.products);
    }
}

/// Computes the lower triangle of a sum over blocks of Φ times another matrix, M×M.
pub(super) fn squares(
    blocks: &mut [Scratch],
    (at, process): (usize, &Process<'_>),
    right: Right,
    (target, mut accum): (&mut Mat<f64>, Accum),
    task: &Task<'_>,
    par: Par,
) {
    for s in blocks {
        let (own, target) = (&mut s.processes[at], target.as_mut());
        let with = task.operands(at, process);
        own.features.square(with, right, (target, accum), task.job.scale, par);
        accum = Accum::Add;
    }
}

/// Computes features with each row multiplied by the sum of some columns of a slope, where that
/// differs by row.
fn weigh(
    blocks: &mut [Scratch],
    (at, process): (usize, &Process<'_>),
    task: &Task<'_>,
    slope: Slope,
    columns: impl for<'a> Fn(&'a Scratch) -> (&'a Mat<f64>, usize, usize) + Sync,
    par: Par,
) -> Right {
    if slope != Slope::Rows {
        return Right::Features;
    }
    each(blocks, par, |_, s| {
        let mut weights = std::mem::take(&mut s.weights);
        let (slopes, first, count) = columns(s);
        sum_columns(&mut weights, slopes, first, count);
        let own = &mut s.processes[at];
        own.features.weigh(task.operands(at, process), &weights);
        s.weights = weights;
    });
    Right::Other
}

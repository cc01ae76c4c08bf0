//! Φa, Φ diag(b) Φᵀ and Φ diag(Σc) Φᵀ.

use super::buffers::{ProcessScratch, Scratch};
use super::forward::sum_columns;
use super::pass::{Task, each};
use super::timings::lap;
use crate::engine::{Factors, Passed, Process, Slope, Spread};
use crate::linalg::{Accum, Mat, Par, gemm, gram_lower, scale_rows, sized};
use std::time::Instant;

/// Φa of a block.
pub(super) fn times_slopes(s: &mut Scratch, task: &Task<'_>) {
    for (at, first, process) in task.processes() {
        let (own, sums) = (&mut s.processes[at], &mut s.small.processes[at]);
        let a = s.a.as_ref().subcols(first, process.mean.ncols());
        let target = sums.phi_a.as_mut();
        match process.spread {
            Spread::Products(Factors::Double(..)) => own.double.times_slopes(a, target),
            Spread::Products(Factors::Single(..)) => own.single.times_slopes(a, target),
            _ => gemm(target, Accum::Replace, own.phi.transpose(), a, 1.0, Par::Seq),
        }
    }
}

/// The M×M statistics, which begin here if these blocks are the `first`.
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
            let right = weigh(blocks, (at, process), plan.b, |s| (&*s.b, from, count), par);
            squares(blocks, (at, process), right, (gram, accum), task.job.scale, par);
        }
        if let (Some(sum), Some(slope)) = (&mut sums.gram_c, plan.c) {
            let right = weigh(blocks, (at, process), slope, |s| (&*s.c, from, l), par);
            squares(blocks, (at, process), right, (sum, accum), task.job.scale, par);
        }
    }
    if let Some(one) = blocks.first_mut() {
        lap(&mut mark, &mut one.timings.products);
    }
}

/// What Φ is multiplied by.
#[derive(Clone, Copy)]
pub(super) enum Right {
    /// What is in `other`: Φ̄ or weighed features.
    Other,
    /// Features.
    Features,
    /// 2 diag(b) ΦᵀR of one latent function.
    Root(usize),
}

/// The lower triangle of a sum over blocks of Φ times another matrix, M×M.
pub(super) fn squares(
    blocks: &mut [Scratch],
    (at, process): (usize, &Process<'_>),
    right: Right,
    (target, mut accum): (&mut Mat<f64>, Accum),
    scale: f64,
    par: Par,
) {
    for s in blocks {
        let (own, target) = (&mut s.processes[at], target.as_mut());
        let phi = own.phi.as_ref();
        match (process.spread, right) {
            (Spread::Products(Factors::Double(..)), _) => {
                own.double.gram(target, accum, scale, par);
            }
            (Spread::Products(Factors::Single(..)), _) => {
                own.single.gram(target, accum, scale, par);
            }
            (_, Right::Root(j)) => {
                gram_lower(target, accum, phi, own.phi_r[j].as_ref(), scale, par);
            }
            (_, Right::Other) => {
                gram_lower(target, accum, own.other.as_ref(), phi, scale, par);
            }
            (_, Right::Features) => gram_lower(target, accum, phi, phi, scale, par),
        }
        accum = Accum::Add;
    }
}

/// Features with each row multiplied by the sum of some columns of a slope, where that differs by
/// row.
fn weigh(
    blocks: &mut [Scratch],
    (at, process): (usize, &Process<'_>),
    slope: Slope,
    columns: impl for<'a> Fn(&'a Scratch) -> (&'a Mat<f64>, usize, usize) + Sync,
    par: Par,
) -> Right {
    let by_rows = slope == Slope::Rows;
    if !by_rows && !matches!(process.spread, Spread::Products(_)) {
        return Right::Features;
    }
    each(blocks, par, |_, s| {
        let mut weights = std::mem::take(&mut s.weights);
        if by_rows {
            let (slopes, first, count) = columns(s);
            sum_columns(&mut weights, slopes, first, count);
        } else {
            weights.fill(1.0);
        }
        s.processes[at].weigh(process, &weights);
        s.weights = weights;
    });
    Right::Other
}

impl ProcessScratch {
    /// Features with each row multiplied by its weight.
    fn weigh(&mut self, process: &Process<'_>, weights: &[f64]) {
        match process.spread {
            Spread::Products(Factors::Double(..)) => self.double.weigh(weights),
            Spread::Products(Factors::Single(..)) => self.single.weigh(weights),
            _ => {
                let phi = self.phi.as_ref();
                sized(&mut self.other, phi.nrows(), phi.ncols());
                scale_rows(self.other.as_mut(), phi, weights);
            }
        }
    }
}

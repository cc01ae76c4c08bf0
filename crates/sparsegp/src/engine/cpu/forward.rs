//! From inputs to features, means and both parts of the variances.

use super::buffers::{ProcessScratch, Scratch};
use super::pass::Task;
use super::timings::lap;
use crate::data::Rows;
use crate::engine::Spread;
use crate::linalg::{Accum, Mat, MatMut, Par, column, column_mut, gemm, sized, zeroed};
use faer::reborrow::{Reborrow, ReborrowMut};
use std::time::Instant;

/// Computes features, means and variances of a block; without features where nothing needs them.
pub(super) fn forward(s: &mut Scratch, task: &Task<'_>, rows: &Rows<'_>) {
    let job = task.job;
    let (n, latents) = (rows.x.nrows(), job.latents());
    for buffer in [&mut s.mu, &mut s.s, &mut s.r, &mut s.a, &mut s.b, &mut s.c] {
        sized(buffer, n, latents);
    }
    let mut mark = Instant::now();
    s.s.fill(0.0);
    job.mean.evaluate(rows.x, s.mu.as_mut());
    s.processes.resize_with(job.processes.len(), ProcessScratch::default);
    let record = job.want.gradients();
    for (at, first, process) in task.processes() {
        let own = &mut s.processes[at];
        let (m, l) = (process.inducing.len(), process.mean.ncols());
        own.tape.restart(record);
        sized(&mut own.k, n, m);
        process.inducing.kuf(rows.x, own.k.as_mut(), &mut own.tape);
        lap(&mut mark, &mut s.timings.kernel);
        let mu = s.mu.as_mut().subcols_mut(first, l);
        if let Some(all) = &task.by_matrix {
            gemm(mu, Accum::Add, own.k.as_ref(), all[at].weights.as_ref(), 1.0, Par::Seq);
            lap(&mut mark, &mut s.timings.products);
            continue;
        }
        zeroed(&mut s.weights, n);
        let (operands, each) = (task.operands(at, process), process.spread.is_each());
        let kept = record || matches!(process.spread, Spread::Through(_));
        own.features.project(operands, (&mut *own.k, kept), &mut s.weights, mu);
        lap(&mut mark, &mut s.timings.solves);
        // on the way back those of each are needed anyway
        if task.plan.variances || (record && each) {
            let (k, mut target) = (own.k.as_ref(), s.s.as_mut().subcols_mut(first, l));
            own.features.variances(operands, (k, &s.weights), target.rb_mut());
            if !each {
                copy_first_column(target);
            }
        }
        let r = column_mut(s.r.as_mut(), first);
        process.inducing.kff(rows.x, r);
        r.iter_mut().zip(&s.weights).for_each(|(r, e)| *r -= e);
        copy_first_column(s.r.as_mut().subcols_mut(first, l));
        lap(&mut mark, &mut s.timings.products);
    }
}

/// Gives all columns what the first one has.
fn copy_first_column(mut a: MatMut<'_, f64>) {
    for j in 1..a.ncols() {
        let (from, mut to) = a.rb_mut().split_at_col_mut(j);
        column_mut(to.rb_mut(), 0).copy_from_slice(column(from.rb(), 0));
    }
}

/// Computes the sum of the columns `first` to `first + count`, for every row.
pub(super) fn sum_columns(out: &mut Vec<f64>, a: &Mat<f64>, first: usize, count: usize) {
    out.clear();
    out.extend_from_slice(column(a.as_ref(), first));
    for j in first + 1..first + count {
        out.iter_mut().zip(column(a.as_ref(), j)).for_each(|(t, v)| *t += v);
    }
}

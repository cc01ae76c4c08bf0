//! From inputs to features, means and both parts of the variances.

use super::buffers::{Buffer, ProcessScratch, Scratch};
use super::pass::Task;
use super::timings::lap;
use crate::data::Rows;
use crate::engine::{Factors, Process, Spread, Through};
use crate::linalg::{
    Accum, Mat, MatMut, MatRef, Par, add_row_dots, column, column_mut, gemm, sized,
    times_triangular, zeroed,
};
use faer::reborrow::{Reborrow, ReborrowMut};
use std::time::Instant;

/// Features, means and variances of a block; without features where nothing needs them.
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
        let mut mu = s.mu.as_mut().subcols_mut(first, l);
        if let Some(all) = &task.by_matrix {
            add_means(mu.rb_mut(), own.k.as_ref(), all[at].weights.as_ref());
            lap(&mut mark, &mut s.timings.products);
            continue;
        }
        zeroed(&mut s.weights, n);
        own.features(process, record, &mut s.weights, mu);
        lap(&mut mark, &mut s.timings.solves);
        // on the way back these are needed anyway
        let shared = matches!(process.spread, Spread::Shared(_));
        if task.plan.variances || (record && !shared) {
            own.variances(process, &s.weights, s.s.as_mut().subcols_mut(first, l));
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

/// Adds Φm to `mu`, which costs nothing where m is 0.
fn add_means(mu: MatMut<'_, f64>, phi: MatRef<'_, f64>, mean: MatRef<'_, f64>) {
    if (0..mean.ncols()).any(|j| column(mean, j).iter().any(|v| *v != 0.0)) {
        gemm(mu, Accum::Add, phi, mean, 1.0, Par::Seq);
    }
}

impl ProcessScratch {
    /// Features of the covariances, which are kept for the way `back`; adds ‖φ‖² to `norms` and φᵀm
    /// to `mu` (B×l).
    fn features(
        &mut self,
        process: &Process<'_>,
        back: bool,
        norms: &mut [f64],
        mu: MatMut<'_, f64>,
    ) {
        let (k, mean) = (self.k.as_ref(), process.mean);
        match process.spread {
            Spread::Products(Factors::Double(l, _)) => self.double.features(k, l, norms, mean, mu),
            Spread::Products(Factors::Single(l, _)) => self.single.features(k, l, norms, mean, mu),
            Spread::Roots(_) | Spread::Through(_) | Spread::Shared(_) => {
                if back || matches!(process.spread, Spread::Through(_)) {
                    sized(&mut self.phi, k.nrows(), k.ncols());
                    self.phi.copy_from(k);
                } else {
                    std::mem::swap(&mut self.phi, &mut self.k);
                }
                process.basis.project(self.phi.as_mut());
                let phi = self.phi.as_ref();
                add_row_dots(phi, phi, norms);
                add_means(mu, phi, mean);
            }
        }
    }

    /// Adds s to the columns of `variances` (B×l), which are 0; `norms` are ‖φ‖².
    fn variances(&mut self, process: &Process<'_>, norms: &[f64], mut variances: MatMut<'_, f64>) {
        let phi = self.phi.as_ref();
        let product = |target: &mut Buffer, form: MatRef<'_, f64>| {
            sized(target, phi.nrows(), phi.ncols());
            gemm(target.as_mut(), Accum::Replace, phi, form, 1.0, Par::Seq);
        };
        let own = column_mut(variances.rb_mut(), 0);
        match process.spread {
            Spread::Roots(roots) => {
                self.phi_r.resize_with(roots.len(), Buffer::default);
                for (j, (phi_r, root)) in self.phi_r.iter_mut().zip(roots).enumerate() {
                    sized(phi_r, phi.nrows(), phi.ncols());
                    let target = phi_r.as_mut();
                    times_triangular(target, Accum::Replace, phi, root.as_ref(), false, Par::Seq);
                    let variance = column_mut(variances.rb_mut(), j);
                    add_row_dots(phi_r.as_ref(), phi_r.as_ref(), variance);
                }
                return;
            }
            Spread::Through(Through { forms, .. }) => {
                self.phi_r.resize_with(forms.len(), Buffer::default);
                for (j, (phi_v, form)) in self.phi_r.iter_mut().zip(forms).enumerate() {
                    product(phi_v, form.as_ref());
                    let variance = column_mut(variances.rb_mut(), j);
                    variance.copy_from_slice(norms);
                    add_row_dots(self.k.as_ref(), phi_v.as_ref(), variance);
                }
                return;
            }
            Spread::Shared(None) => return,
            Spread::Shared(Some(form)) => {
                self.phi_r.resize_with(1, Buffer::default);
                product(&mut self.phi_r[0], form);
                add_row_dots(self.phi_r[0].as_ref(), phi, own);
            }
            Spread::Products(Factors::Double(_, e)) => self.double.variances(e, own),
            Spread::Products(Factors::Single(_, e)) => self.single.variances(e, own),
        }
        copy_first_column(variances);
    }
}

/// Sum of the columns `first` to `first + count`, for every row.
pub(super) fn sum_columns(out: &mut Vec<f64>, a: &Mat<f64>, first: usize, count: usize) {
    out.clear();
    out.extend_from_slice(column(a.as_ref(), first));
    for j in first + 1..first + count {
        out.iter_mut().zip(column(a.as_ref(), j)).for_each(|(t, v)| *t += v);
    }
}

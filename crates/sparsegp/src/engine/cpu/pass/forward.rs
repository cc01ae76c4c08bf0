//! The way to what rows contribute: features, means and variances.

use super::{ProcessScratch, Scratch};
use crate::data::Rows;
use crate::engine::cpu::buffers::Buffer;
use crate::engine::{Factors, Job, Process, Spread, Through};
use crate::linalg::{
    Accum, MatMut, Par, add_row_dots, column, column_mut, gemm, sized, times_triangular, zeroed,
};
use faer::reborrow::{Reborrow, ReborrowMut};

/// Features, means and both parts of the variances.
pub(super) fn forward(s: &mut Scratch, job: &Job<'_>, rows: &Rows<'_>) {
    let (n, latents) = (rows.x.nrows(), job.latents());
    for buffer in [&mut s.mu, &mut s.s, &mut s.r, &mut s.a, &mut s.b, &mut s.c] {
        sized(buffer, n, latents);
    }
    s.s.fill(0.0);
    job.mean.evaluate(rows.x, s.mu.as_mut());
    s.processes.resize_with(job.processes.len(), ProcessScratch::default);
    let record = job.want.gradients();
    let mut first = 0;
    for (own, process) in s.processes.iter_mut().zip(job.processes) {
        let (m, l) = (process.z.nrows(), process.mean.ncols());
        own.tape.restart(record);
        sized(&mut own.k, n, m);
        process.kernel.evaluate(rows.x, Some(process.z), own.k.as_mut(), &mut own.tape);
        zeroed(&mut s.weights, n);
        own.features(process, &mut s.weights, s.mu.as_mut().subcols_mut(first, l));
        own.variances(process, &s.weights, s.s.as_mut().subcols_mut(first, l));
        let r = column_mut(s.r.as_mut(), first);
        process.kernel.diag(rows.x, r);
        r.iter_mut().zip(&s.weights).for_each(|(r, e)| *r -= e);
        for j in 1..l {
            let (from, mut to) = s.r.as_mut().split_at_col_mut(first + j);
            column_mut(to.rb_mut(), 0).copy_from_slice(column(from.rb(), first));
        }
        first += l;
    }
}

impl ProcessScratch {
    /// Features of the covariances; adds ‖φ‖² to `norms` and φᵀm to `mu` (B×l).
    fn features(&mut self, process: &Process<'_>, norms: &mut [f64], mu: MatMut<f64>) {
        let (k, mean) = (self.k.as_ref(), process.mean);
        match process.spread {
            Spread::Products(Factors::Double(l, _)) => self.double.features(k, l, norms, mean, mu),
            Spread::Products(Factors::Single(l, _)) => self.single.features(k, l, norms, mean, mu),
            Spread::Roots(_) | Spread::Through(_) | Spread::Shared(_) => {
                sized(&mut self.phi, k.nrows(), k.ncols());
                self.phi.copy_from(k);
                process.basis.project(self.phi.as_mut());
                let phi = self.phi.as_ref();
                add_row_dots(phi, phi, norms);
                gemm(mu, Accum::Add, phi, mean, 1.0, Par::Seq);
            }
        }
    }

    /// Adds s to the columns of `variances` (B×l), which are 0; `norms` are ‖φ‖².
    fn variances(&mut self, process: &Process<'_>, norms: &[f64], mut variances: MatMut<f64>) {
        let (n, m, phi) = (self.k.nrows(), self.k.ncols(), self.phi.as_ref());
        let own = column_mut(variances.rb_mut(), 0);
        match process.spread {
            Spread::Roots(roots) => {
                self.phi_r.resize_with(roots.len(), Buffer::default);
                for (j, (phi_r, root)) in self.phi_r.iter_mut().zip(roots).enumerate() {
                    sized(phi_r, n, m);
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
                    sized(phi_v, n, m);
                    let form = form.as_ref();
                    gemm(phi_v.as_mut(), Accum::Replace, phi, form, 1.0, Par::Seq);
                    let variance = column_mut(variances.rb_mut(), j);
                    variance.copy_from_slice(norms);
                    add_row_dots(self.k.as_ref(), phi_v.as_ref(), variance);
                }
                return;
            }
            Spread::Shared(None) => return,
            Spread::Shared(Some(form)) => {
                self.phi_r.resize_with(1, Buffer::default);
                let phi_e = &mut self.phi_r[0];
                sized(phi_e, n, m);
                gemm(phi_e.as_mut(), Accum::Replace, phi, form, 1.0, Par::Seq);
                add_row_dots(phi_e.as_ref(), phi, own);
            }
            Spread::Products(Factors::Double(_, e)) => self.double.variances(e, own),
            Spread::Products(Factors::Single(_, e)) => self.single.variances(e, own),
        }
        // all latent functions have the first one's
        for j in 1..variances.ncols() {
            let (from, mut to) = variances.rb_mut().split_at_col_mut(j);
            column_mut(to.rb_mut(), 0).copy_from_slice(column(from.rb(), 0));
        }
    }
}

/// Φa of a block.
pub(super) fn times_slopes(s: &mut Scratch, job: &Job<'_>) {
    let mut first = 0;
    for (own, process) in s.processes.iter_mut().zip(job.processes) {
        let (m, l) = (process.z.nrows(), process.mean.ncols());
        sized(&mut own.phi_a, m, l);
        let (a, target) = (s.a.as_ref().subcols(first, l), own.phi_a.as_mut());
        match process.spread {
            Spread::Products(Factors::Double(..)) => own.double.times_slopes(a, target),
            Spread::Products(Factors::Single(..)) => own.single.times_slopes(a, target),
            _ => gemm(target, Accum::Replace, own.phi.transpose(), a, 1.0, Par::Seq),
        }
        first += l;
    }
}

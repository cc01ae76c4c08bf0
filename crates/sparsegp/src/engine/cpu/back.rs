//! The way back: K̄uf, and the gradients of kernels and of the mean function.

use super::buffers::{ProcessScratch, Scratch};
use super::forward::sum_columns;
use super::pass::{Task, each};
use super::statistics::{Right, squares};
use super::timings::lap;
use crate::data::Rows;
use crate::engine::{Factors, Job, Passed, Plan, Process, Slope, Spread, Through, Want};
use crate::linalg::{
    Accum, Mat, MatRef, Par, add_scaled_rows, column, gemm, sized, times_triangular,
};
use std::time::Instant;

/// How gradients alone come back where b and c are one number each and latent functions share E: Φ̄
/// = m aᵀ + (2bE − 2cI)Φ, so that K̄uf = w aᵀ + W Kuf, and features are not formed.
pub(super) struct ByMatrix {
    /// w with k(x, Z) w = φᵀm, M×l.
    pub(super) weights: Mat<f64>,
    /// W, M×M.
    matrix: Mat<f64>,
}

impl ByMatrix {
    /// Of every process, if the job is such a one.
    pub(super) fn of(job: &Job<'_>, plan: &Plan<'_>) -> Option<Vec<Self>> {
        let (b, c) = plan.constants()?;
        let fits = |process: &Process<'_>| matches!(process.spread, Spread::Shared(Some(_)));
        if plan.variances || job.want != Want::GradientsAlone || !job.processes.iter().all(fits) {
            return None;
        }
        let one = |process: &Process<'_>| {
            let Spread::Shared(Some(e)) = process.spread else { unreachable!("looked at above") };
            let (m, l) = (e.nrows(), process.mean.ncols() as f64);
            let mut a = Mat::from_fn(m, m, |i, j| 2.0 * (l * b) * e[(i, j)]);
            (0..m).for_each(|i| a[(i, i)] -= 2.0 * (l * c));
            let weights = process.basis.weights(process.mean);
            Self { weights, matrix: process.basis.pull_through(a) }
        };
        Some(job.processes.iter().map(one).collect())
    }
}

/// The way back of blocks. Ψ and the adjoints of roots begin here if these are the `first`.
pub(super) fn back<'r>(
    blocks: &mut [Scratch],
    sums: &mut Passed,
    first: bool,
    task: &Task<'_>,
    part: &(impl Fn(usize) -> Rows<'r> + Sync),
    par: Par,
) {
    let (job, plan) = (task.job, &task.plan);
    let start = if first { Accum::Replace } else { Accum::Add };
    for (at, first, process) in task.processes() {
        debug_assert!(plan.c.is_none() || !matches!(process.spread, Spread::Through(_)), "c is b");
        let l = process.mean.ncols();
        each(blocks, par, |_, s| {
            let mut mark = Instant::now();
            let (a, b) = (s.a.as_ref().subcols(first, l), s.b.as_ref().subcols(first, l));
            sum_columns(&mut s.weights, if plan.c.is_none() { &s.b } else { &s.c }, first, l);
            sum_columns(&mut s.other_weights, &s.b, first, l);
            let own = &mut s.processes[at];
            match &task.by_matrix {
                Some(all) => own.slopes_by_matrix(&all[at], a),
                None => {
                    own.slopes_of_features(process, plan, a, (b, &s.other_weights), &s.weights);
                }
            }
            lap(&mut mark, &mut s.timings.products);
        });
        let mut mark = Instant::now();
        let own = &mut sums.processes[at];
        let roots = own.roots.iter_mut().enumerate().filter(|(_, root)| root.nrows() > 0);
        for (j, sum) in roots {
            squares(blocks, (at, process), Right::Root(j), (sum, start), job.scale, par);
        }
        if let Some(psi) = &mut own.psi {
            squares(blocks, (at, process), Right::Other, (psi, start), job.scale, par);
        }
        if let Some(one) = blocks.first_mut() {
            lap(&mut mark, &mut one.timings.products);
        }
        each(blocks, par, |index, s| {
            let mut mark = Instant::now();
            let (own, sums) = (&mut s.processes[at], &mut s.small.processes[at]);
            if task.by_matrix.is_none() {
                own.slopes_of_covariances(process);
            }
            lap(&mut mark, &mut s.timings.solves);
            let (x, gradient) = (part(index).x, &mut sums.inducing[..]);
            let blocks = (own.k.as_ref(), own.other.as_mut());
            process.inducing.pull_kuf(x, blocks, &mut own.tape, gradient, None);
            process.inducing.pull_kff(x, &s.weights, gradient, None);
            lap(&mut mark, &mut s.timings.pull_back);
        });
    }
    each(blocks, par, |index, s| job.mean.vjp(part(index).x, s.a.as_ref(), &mut s.small.mean));
}

/// Multiplies rows by twice their weights.
fn multiply_rows(a: &mut Mat<f64>, weights: &[f64]) {
    for j in 0..a.ncols() {
        let target = a.col_as_slice_mut(j).iter_mut();
        target.zip(weights).for_each(|(t, w)| *t *= 2.0 * w);
    }
}

impl ProcessScratch {
    /// K̄uf itself, without features; a is B×l.
    fn slopes_by_matrix(&mut self, by: &ByMatrix, a: MatRef<'_, f64>) {
        let (k, bar) = (self.k.as_ref(), &mut self.other);
        sized(bar, k.nrows(), k.ncols());
        gemm(bar.as_mut(), Accum::Replace, k, by.matrix.as_ref(), 1.0, Par::Seq);
        gemm(bar.as_mut(), Accum::Add, a, by.weights.transpose(), 1.0, Par::Seq);
    }

    /// Φ̄ = Σ {m aᵀ + 2 RRᵀΦ diag(b)} − 2 Φ diag(Σc), with E for RRᵀ where it is shared; K̄uf
    /// itself for [`Spread::Through`]. a and b are B×l, and beside b is its sum for every row. 2
    /// diag(b) ΦᵀR takes the place of ΦᵀR.
    fn slopes_of_features(
        &mut self,
        process: &Process<'_>,
        plan: &Plan<'_>,
        a: MatRef<'_, f64>,
        (b, sum): (MatRef<'_, f64>, &[f64]),
        c: &[f64],
    ) {
        let mean = process.mean;
        let (bar, phi) = (&mut self.other, self.phi.as_ref());
        match process.spread {
            Spread::Products(Factors::Double(..)) => return self.double.slopes(a, mean, sum, c),
            Spread::Products(Factors::Single(..)) => return self.single.slopes(a, mean, sum, c),
            Spread::Through(Through { weights, .. }) => {
                sized(bar, a.nrows(), mean.nrows());
                gemm(bar.as_mut(), Accum::Replace, a, weights.transpose(), 1.0, Par::Seq);
                for (j, phi_v) in self.phi_r.iter().enumerate() {
                    add_scaled_rows(bar.as_mut(), phi_v.as_ref(), column(b, j), 2.0);
                }
                return;
            }
            // nobody has looked at s: ΦE is still to be made
            Spread::Shared(Some(e)) if !plan.variances => {
                sized(bar, a.nrows(), mean.nrows());
                let factor = match plan.b {
                    Slope::Constant(b) => 2.0 * (mean.ncols() as f64 * b),
                    Slope::Rows => 1.0,
                };
                gemm(bar.as_mut(), Accum::Replace, phi, e, factor, Par::Seq);
                if plan.b == Slope::Rows {
                    multiply_rows(bar, sum);
                }
                gemm(bar.as_mut(), Accum::Add, a, mean.transpose(), 1.0, Par::Seq);
            }
            Spread::Shared(form) => {
                sized(bar, a.nrows(), mean.nrows());
                gemm(bar.as_mut(), Accum::Replace, a, mean.transpose(), 1.0, Par::Seq);
                if form.is_some() {
                    add_scaled_rows(bar.as_mut(), self.phi_r[0].as_ref(), sum, 2.0);
                }
            }
            Spread::Roots(roots) => {
                sized(bar, a.nrows(), mean.nrows());
                gemm(bar.as_mut(), Accum::Replace, a, mean.transpose(), 1.0, Par::Seq);
                for (j, (phi_r, root)) in self.phi_r.iter_mut().zip(roots).enumerate() {
                    let b = column(b, j);
                    multiply_rows(phi_r, b);
                    // as of latent functions that do not count
                    if b.iter().all(|b| *b == 0.0) {
                        continue;
                    }
                    let (scaled, root) = (phi_r.as_ref(), root.as_ref());
                    times_triangular(bar.as_mut(), Accum::Add, scaled, root, true, Par::Seq);
                }
            }
        }
        add_scaled_rows(bar.as_mut(), phi, c, -2.0);
    }

    /// K̄uf in double precision, from Φ̄.
    fn slopes_of_covariances(&mut self, process: &Process<'_>) {
        let bar = &mut self.other;
        match process.spread {
            Spread::Products(Factors::Double(l, _)) => self.double.back(l, bar),
            Spread::Products(Factors::Single(l, _)) => self.single.back(l, bar),
            Spread::Through(_) => {}
            Spread::Roots(_) | Spread::Shared(_) => process.basis.pull(bar.as_mut()),
        }
    }
}

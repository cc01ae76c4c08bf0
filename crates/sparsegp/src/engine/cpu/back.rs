//! The way back: K̄uf, and the gradients of kernels and of the mean function.

use super::buffers::{ProcessScratch, Scratch};
use super::features::Right;
use super::forward::sum_columns;
use super::pass::{Task, each};
use super::statistics::squares;
use super::timings::lap;
use crate::data::Rows;
use crate::engine::{Job, Passed, Plan, Process, Projection, Spread, Want};
use crate::linalg::{
    Accum, Mat, MatRef, Par, Precision, Real, gemm, inner_root, invert_lower, par_for, sized,
    times_triangular,
};
use std::time::Instant;

/// How gradients come back, without other results, where b and c are one number each and latent
/// functions share E: Φ̄ = m aᵀ + (2bE − 2cI)Φ, so that K̄uf = w aᵀ + W Kuf, and features are not
/// formed.
pub(super) struct ByMatrix {
    /// w with k(x, Z) w = φᵀm, M×l.
    pub(super) weights: Mat<f64>,
    matrix: Pulling,
}

/// W, M×M.
enum Pulling {
    Whole(Mat<f64>),
    /// GᵀG for a lower-triangular G. The products with W itself are small sums of numbers as large as those of Kuu⁻¹,
    /// of which single precision leaves nothing.
    Root(Mat<f32>),
}

impl ByMatrix {
    /// Returns one for every process, if the job is such a one.
    pub(super) fn of(job: &Job<'_>, plan: &Plan<'_>, precision: Precision) -> Option<Vec<Self>> {
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
            let matrix = match precision {
                Precision::Double => Pulling::Whole(process.basis.pull_through(a)),
                Precision::Single => Pulling::Root(pulling_root(process, a)?),
            };
            Some(Self { weights, matrix })
        };
        job.processes.iter().map(one).collect()
    }
}

/// Returns G = U L⁻¹ with A = UᵀU, where A is positive definite but for rounding.
fn pulling_root(process: &Process<'_>, mut a: Mat<f64>) -> Option<Mat<f32>> {
    let Projection::Solve(_, l) = process.basis.projection() else { return None };
    let m = a.nrows();
    let largest = (0..m).fold(0.0, |most: f64, i| most.max(a[(i, i)].abs()));
    (0..m).for_each(|i| a[(i, i)] += 4.0 * f64::EPSILON * m as f64 * largest);
    let u = inner_root(a.as_ref())?;
    let (mut inverse, mut g) = (Mat::zeros(m, m), a);
    invert_lower(inverse.as_mut(), l, par_for(m));
    let (target, u) = (g.as_mut(), u.as_ref());
    times_triangular(target, Accum::Replace, u, inverse.as_ref(), false, par_for(m));
    let mut rounded = Mat::new();
    sized(&mut rounded, m, m);
    f32::rounded(g.as_ref(), &mut rounded);
    Some(rounded)
}

/// Goes the way back of blocks. Ψ and the adjoints of roots begin here if these are the `first`.
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
                    let (with, b) = (task.operands(at, process), (b, &s.other_weights[..]));
                    own.features.slopes(with, plan, a, b, &s.weights);
                }
            }
            lap(&mut mark, &mut s.timings.products);
        });
        let mut mark = Instant::now();
        let own = &mut sums.processes[at];
        let roots = own.roots.iter_mut().enumerate().filter(|(_, root)| root.nrows() > 0);
        for (j, sum) in roots {
            squares(blocks, (at, process), Right::Root(j), (sum, start), task, par);
        }
        if let Some(psi) = &mut own.psi {
            squares(blocks, (at, process), Right::Other, (psi, start), task, par);
        }
        if let Some(one) = blocks.first_mut() {
            lap(&mut mark, &mut one.timings.products);
        }
        each(blocks, par, |index, s| {
            let mut mark = Instant::now();
            let (own, sums) = (&mut s.processes[at], &mut s.small.processes[at]);
            if task.by_matrix.is_none() {
                own.features.back(task.operands(at, process), &mut own.k_bar);
            }
            lap(&mut mark, &mut s.timings.solves);
            let (x, gradient) = (part(index).x, &mut sums.inducing[..]);
            let blocks = (own.k.as_ref(), own.k_bar.as_mut());
            process.inducing.pull_kuf(x, blocks, &mut own.tape, gradient, None);
            process.inducing.pull_kff(x, &s.weights, gradient, None);
            lap(&mut mark, &mut s.timings.pull_back);
        });
    }
    each(blocks, par, |index, s| job.mean.vjp(part(index).x, s.a.as_ref(), &mut s.small.mean));
}

impl ProcessScratch {
    /// Computes K̄uf itself, without features; a is B×l.
    fn slopes_by_matrix(&mut self, by: &ByMatrix, a: MatRef<'_, f64>) {
        let (k, bar) = (&mut self.k, &mut self.k_bar);
        match &by.matrix {
            Pulling::Whole(matrix) => {
                sized(bar, k.nrows(), k.ncols());
                gemm(bar.as_mut(), Accum::Replace, k.as_ref(), matrix.as_ref(), 1.0, Par::Seq);
            }
            Pulling::Root(g) => self.features.through(k, g.as_ref(), bar),
        }
        gemm(bar.as_mut(), Accum::Add, a, by.weights.transpose(), 1.0, Par::Seq);
    }
}

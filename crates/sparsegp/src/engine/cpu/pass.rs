//! One pass over the rows at a given q: forward, slopes, sums and the way back, block by block.
//!
//! Per block and process, with Φ of B×M: the triangular solve for Φ, ΦR of every latent function, its
//! rank-B update, (ΦR)Rᵀ and the solve back: 5M²B operations for one latent function (6 where c ≠ b, or
//! with Ψ, which takes the place of the sum with c), counting a multiply-add as two and triangular factors as half a matrix.
//! [`Spread::Through`] has ΦV in the place of the three products with R and L⁻ᵀ: 4M²B.

use super::buffers::{Buffer, add, multiply, sum_lower, zeroed};
use super::products::ByProducts;
use super::timings::{Timings, lap};
use super::{Cpu, lanes};
use crate::data::{Rows, Source};
use crate::engine::{
    Factors, Job, LatentBlock, LatentSlopes, Passed, Process, ProcessSums, Spread, Through, Want,
};
use crate::error::Result;
use crate::kernels::{Cotangents, Tape};
use crate::linalg::{
    Accum, Mat, MatMut, MatRef, Par, add_row_dots, add_scaled_rows, column, column_mut, gemm,
    gram_lower, scale_rows, sized, times_triangular,
};
use faer::reborrow::{Reborrow, ReborrowMut};
use std::sync::PoisonError;
use std::time::Instant;

impl Job<'_> {
    fn latents(&self) -> usize {
        self.processes.iter().map(|p| p.mean.ncols()).sum()
    }

    fn mean_params(&self) -> usize {
        self.mean.num_params()
    }

    /// Which matrices Φ diag(b) Φᵀ of a process are summed; `first` is its first latent function.
    fn counting(&self, process: &Process<'_>, first: usize) -> impl Iterator<Item = usize> {
        let each = matches!(process.spread, Spread::Roots(_) | Spread::Through(_));
        (0..process.grams()).filter(move |j| !each || self.pointwise.counts(first + j))
    }
}

/// Buffers of one thread.
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
    processes: Vec<ProcessScratch>,
    pub(super) timings: Timings,
}

/// Buffers of one thread for one process.
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
}

/// Accumulators of one lane.
#[derive(Debug, Default)]
pub(super) struct Lane {
    used: bool,
    sums: Vec<f64>,
    mean: Vec<f64>,
    processes: Vec<ProcessLane>,
}

#[derive(Debug, Default)]
struct ProcessLane {
    phi_a: Buffer,
    /// Φ diag(b) Φᵀ, or 2Φ diag(b) ΦᵀR, of those latent functions that count.
    grams: Vec<Buffer>,
    gram_c: Buffer,
    psi: Buffer,
    kernel: Vec<f64>,
    z: Buffer,
}

pub(super) fn run(cpu: &Cpu, job: &Job<'_>, data: &dyn Source, out: &mut Passed) -> Result<()> {
    let features = job.processes.iter().map(|p| p.z.nrows()).max().unwrap_or(0);
    let mut lanes =
        std::mem::take(&mut *cpu.pass_lanes.lock().unwrap_or_else(PoisonError::into_inner));
    lanes.resize_with(lanes::count(features, job.latents()), Lane::default);
    lanes.iter_mut().for_each(|lane| lane.used = false);
    let outcome = lanes::sweep(data, &mut lanes, |lane, rows| {
        let take = || cpu.pass_scratch.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut scratch = take().unwrap_or_default();
        lane.start(job);
        block(&mut scratch, lane, job, &rows);
        cpu.pass_scratch.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
        Ok(())
    });
    if outcome.is_ok() {
        total(job, &lanes, out);
    }
    *cpu.pass_lanes.lock().unwrap_or_else(PoisonError::into_inner) = lanes;
    outcome
}

impl Lane {
    /// What it holds of a process, if it has been used.
    fn process(&self, index: usize) -> Option<&ProcessLane> {
        self.used.then(|| &self.processes[index])
    }

    /// Sizes and empties what the job adds to; matrices are emptied by their first sum.
    fn start(&mut self, job: &Job<'_>) {
        if self.used {
            return;
        }
        zeroed(&mut self.sums, job.pointwise.sums());
        zeroed(&mut self.mean, job.mean_params());
        self.processes.resize_with(job.processes.len(), ProcessLane::default);
        let mut first = 0;
        for (lane, process) in self.processes.iter_mut().zip(job.processes) {
            let (m, l) = (process.z.nrows(), process.mean.ncols());
            if job.want == Want::Value {
                continue;
            }
            sized(&mut lane.phi_a, m, l);
            lane.grams.resize_with(job.counting(process, first).count(), Buffer::default);
            lane.grams.iter_mut().for_each(|gram| sized(gram, m, m));
            first += l;
            if job.want.gradients() {
                match job.want.of(process.spread) {
                    Want::Adjoints { .. } => sized(&mut lane.psi, m, m),
                    _ if !job.pointwise.equal_slopes() => sized(&mut lane.gram_c, m, m),
                    _ => {}
                }
                zeroed(&mut lane.kernel, process.kernel.num_params());
                sized(&mut lane.z, m, process.z.ncols());
                lane.z.fill(0.0);
            }
        }
    }
}

/// The sums of the lanes.
fn total(job: &Job<'_>, lanes: &[Lane], out: &mut Passed) {
    let scale = job.scale;
    let used = || lanes.iter().filter(|lane| lane.used);
    let add_all = |target: &mut [f64], source: &[f64]| {
        target.iter_mut().zip(source).for_each(|(t, v)| *t += v * scale);
    };
    zeroed(&mut out.sums, job.pointwise.sums());
    zeroed(&mut out.mean, job.mean_params());
    for lane in used() {
        add_all(&mut out.sums, &lane.sums);
        add_all(&mut out.mean, &lane.mean);
    }
    if job.want == Want::Value {
        out.processes.clear();
        return;
    }
    out.processes.resize_with(job.processes.len(), ProcessSums::default);
    let mut first = 0;
    for (at, (process, sums)) in job.processes.iter().zip(&mut out.processes).enumerate() {
        let (m, l) = (process.z.nrows(), process.mean.ncols());
        let gradients = job.want.gradients();
        let want = job.want.of(process.spread);
        let ProcessSums { grams, roots, .. } = sums;
        let (all, none) = match want {
            Want::Adjoints { statistics: false } => (roots, grams),
            _ => (grams, roots),
        };
        none.clear();
        all.resize_with(process.grams(), Mat::new);
        let mut counting = job.counting(process, first).enumerate().peekable();
        for (j, gram) in all.iter_mut().enumerate() {
            let Some((slot, _)) = counting.next_if(|(_, own)| *own == j) else {
                *gram = Mat::new();
                continue;
            };
            sized(gram, m, m);
            sum_lower(gram.as_mut(), lanes, |lane| lane.process(at).map(|p| &p.grams[slot]), scale);
        }
        first += l;
        if matches!(want, Want::Adjoints { .. }) {
            let psi = sums.psi.get_or_insert_with(Mat::new);
            sized(psi, m, m);
            sum_lower(psi.as_mut(), lanes, |lane| lane.process(at).map(|p| &p.psi), scale);
            sums.gram_c = None;
        } else {
            sums.psi = None;
            if gradients && !job.pointwise.equal_slopes() {
                let gram_c = sums.gram_c.get_or_insert_with(Mat::new);
                sized(gram_c, m, m);
                let target = gram_c.as_mut();
                sum_lower(target, lanes, |lane| lane.process(at).map(|p| &p.gram_c), scale);
            } else if job.pointwise.equal_slopes() {
                sums.gram_c = None;
            }
        }
        sized(&mut sums.phi_a, m, l);
        sized(&mut sums.z, m, process.z.ncols());
        sums.phi_a.fill(0.0);
        sums.z.fill(0.0);
        zeroed(&mut sums.kernel, if gradients { process.kernel.num_params() } else { 0 });
        for lane in lanes.iter().filter_map(|lane| lane.process(at)) {
            add(sums.phi_a.as_mut(), lane.phi_a.as_ref());
            if gradients {
                add_all(&mut sums.kernel, &lane.kernel);
                add(sums.z.as_mut(), lane.z.as_ref());
            }
        }
        multiply(sums.phi_a.as_mut(), scale);
        multiply(sums.z.as_mut(), scale);
    }
}

/// One block of rows.
fn block(s: &mut Scratch, lane: &mut Lane, job: &Job<'_>, rows: &Rows<'_>) {
    let mut mark = Instant::now();
    forward(s, job, rows, &mut mark);
    let block = LatentBlock { rows: *rows, mu: s.mu.as_ref(), s: s.s.as_ref(), r: s.r.as_ref() };
    let out = LatentSlopes {
        a: s.a.as_mut(),
        b: s.b.as_mut(),
        c: s.c.as_mut(),
        sums: &mut lane.sums,
        scratch: &mut s.pointwise,
    };
    job.pointwise.rows(block, out);
    lap(&mut mark, &mut s.timings.products);
    if job.want != Want::Value {
        statistics(s, lane, job);
        lap(&mut mark, &mut s.timings.products);
    }
    if job.want.gradients() {
        back(s, lane, job, rows, &mut mark);
    }
    lane.used = true;
}

/// Features, means and both parts of the variances.
fn forward(s: &mut Scratch, job: &Job<'_>, rows: &Rows<'_>, mark: &mut Instant) {
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
        lap(mark, &mut s.timings.kernel);
        zeroed(&mut s.weights, n);
        own.features(process, &mut s.weights, s.mu.as_mut().subcols_mut(first, l));
        lap(mark, &mut s.timings.solves);
        own.variances(process, &s.weights, s.s.as_mut().subcols_mut(first, l));
        lap(mark, &mut s.timings.products);
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

/// Φa, Φ diag(b) Φᵀ and Φ diag(Σc) Φᵀ.
fn statistics(s: &mut Scratch, lane: &mut Lane, job: &Job<'_>) {
    let accum = if lane.used { Accum::Add } else { Accum::Replace };
    let mut first = 0;
    for ((own, lane), process) in s.processes.iter_mut().zip(&mut lane.processes).zip(job.processes)
    {
        let l = process.mean.ncols();
        own.times_slopes(process, s.a.as_ref().subcols(first, l), lane.phi_a.as_mut(), accum);
        let want = job.want.of(process.spread);
        if want == (Want::Adjoints { statistics: false }) {
            // on the way back
            first += l;
            continue;
        }
        for (j, gram) in job.counting(process, first).zip(&mut lane.grams) {
            // latent functions that share their variances share this sum
            let (from, count) = match process.spread {
                Spread::Roots(_) | Spread::Through(_) => (first + j, 1),
                Spread::Shared(_) | Spread::Products(_) => (first, l),
            };
            sum_columns(&mut s.weights, &s.b, from, count);
            own.gram(process, &s.weights, gram.as_mut(), accum);
        }
        if want == Want::Gradients && !job.pointwise.equal_slopes() {
            sum_columns(&mut s.weights, &s.c, first, l);
            own.gram(process, &s.weights, lane.gram_c.as_mut(), accum);
        }
        first += l;
    }
}

impl ProcessScratch {
    /// Φa into `target`, M×l.
    fn times_slopes(
        &mut self,
        process: &Process<'_>,
        a: MatRef<f64>,
        target: MatMut<f64>,
        accum: Accum,
    ) {
        match process.spread {
            Spread::Products(Factors::Double(..)) => self.double.times_slopes(a, target, accum),
            Spread::Products(Factors::Single(..)) => self.single.times_slopes(a, target, accum),
            _ => gemm(target, accum, self.phi.transpose(), a, 1.0, Par::Seq),
        }
    }

    /// The lower triangle of Φ diag(weights) Φᵀ into `target`, M×M.
    fn gram(&mut self, process: &Process<'_>, weights: &[f64], target: MatMut<f64>, accum: Accum) {
        match process.spread {
            Spread::Products(Factors::Double(..)) => self.double.gram(weights, target, accum),
            Spread::Products(Factors::Single(..)) => self.single.gram(weights, target, accum),
            _ => {
                let phi = self.phi.as_ref();
                sized(&mut self.other, phi.nrows(), phi.ncols());
                scale_rows(self.other.as_mut(), phi, weights);
                gram_lower(target, accum, phi, self.other.as_ref(), 1.0, Par::Seq);
            }
        }
    }
}

/// Sum of the columns `first` to `first + count`, for every row.
fn sum_columns(out: &mut Vec<f64>, a: &Mat<f64>, first: usize, count: usize) {
    out.clear();
    out.extend_from_slice(column(a.as_ref(), first));
    for j in first + 1..first + count {
        out.iter_mut().zip(column(a.as_ref(), j)).for_each(|(t, v)| *t += v);
    }
}

/// The way back: K̄uf, and the kernels' and mean's gradients.
fn back(s: &mut Scratch, lane: &mut Lane, job: &Job<'_>, rows: &Rows<'_>, mark: &mut Instant) {
    let equal = job.pointwise.equal_slopes();
    let accum = if lane.used { Accum::Add } else { Accum::Replace };
    let mut first = 0;
    for ((own, lane), process) in s.processes.iter_mut().zip(&mut lane.processes).zip(job.processes)
    {
        debug_assert!(equal || !matches!(process.spread, Spread::Through(_)), "c is b");
        let l = process.mean.ncols();
        let (a, b) = (s.a.as_ref().subcols(first, l), s.b.as_ref().subcols(first, l));
        sum_columns(&mut s.weights, if equal { &s.b } else { &s.c }, first, l);
        sum_columns(&mut s.other_weights, &s.b, first, l);
        own.slopes_of_features(process, a, (b, &s.other_weights), &s.weights);
        if let Want::Adjoints { statistics } = job.want.of(process.spread) {
            let phi = own.phi.as_ref();
            if !statistics {
                for (j, sum) in job.counting(process, first).zip(&mut lane.grams) {
                    let scaled = own.phi_r[j].as_ref();
                    gram_lower(sum.as_mut(), accum, phi, scaled, 1.0, Par::Seq);
                }
            }
            gram_lower(lane.psi.as_mut(), accum, own.other.as_ref(), phi, 1.0, Par::Seq);
        }
        lap(mark, &mut s.timings.products);
        own.slopes_of_covariances(process);
        lap(mark, &mut s.timings.solves);
        let mut sinks = Cotangents { params: &mut lane.kernel, x: None, z: Some(lane.z.as_mut()) };
        let (z, k, bar) = (Some(process.z), own.k.as_ref(), own.other.as_mut());
        process.kernel.vjp(rows.x, z, k, bar, &mut own.tape, &mut sinks);
        process.kernel.diag_vjp(rows.x, &s.weights, &mut sinks);
        lap(mark, &mut s.timings.pull_back);
        first += l;
    }
    job.mean.vjp(rows.x, s.a.as_ref(), &mut lane.mean);
    lap(mark, &mut s.timings.pull_back);
}

impl ProcessScratch {
    /// Φ̄ = Σ {m aᵀ + 2 RRᵀΦ diag(b)} − 2 Φ diag(Σc), with E for RRᵀ where it is shared; K̄uf itself for
    /// [`Spread::Through`]. a and b are B×l, and beside b is its sum for every row. 2 diag(b) ΦᵀR takes the place of ΦᵀR.
    fn slopes_of_features(
        &mut self,
        process: &Process<'_>,
        a: MatRef<f64>,
        (b, sum): (MatRef<f64>, &[f64]),
        c: &[f64],
    ) {
        let mean = process.mean;
        let bar = &mut self.other;
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
            Spread::Roots(_) | Spread::Shared(_) => {
                sized(bar, a.nrows(), mean.nrows());
                gemm(bar.as_mut(), Accum::Replace, a, mean.transpose(), 1.0, Par::Seq);
            }
        }
        if let Spread::Roots(roots) = process.spread {
            for (j, (phi_r, root)) in self.phi_r.iter_mut().zip(roots).enumerate() {
                let b = column(b, j);
                let none = b.iter().all(|b| *b == 0.0);
                for q in 0..phi_r.ncols() {
                    let target = phi_r.col_as_slice_mut(q);
                    target.iter_mut().zip(b).for_each(|(t, b)| *t *= 2.0 * b);
                }
                // as of latent functions that do not count
                if none {
                    continue;
                }
                let (scaled, root) = (phi_r.as_ref(), root.as_ref());
                times_triangular(bar.as_mut(), Accum::Add, scaled, root, true, Par::Seq);
            }
        } else if let Spread::Shared(Some(_)) = process.spread {
            add_scaled_rows(bar.as_mut(), self.phi_r[0].as_ref(), sum, 2.0);
        }
        add_scaled_rows(bar.as_mut(), self.phi.as_ref(), c, -2.0);
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

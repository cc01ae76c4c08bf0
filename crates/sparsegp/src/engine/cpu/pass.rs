//! One pass over the rows at a given q: forward, slopes, sums and the way back, block by block.
//!
//! Per block and process, with Φ of B×M: the triangular solve for Φ, ΦR of every latent function, its
//! rank-B update, (ΦR)Rᵀ and the solve back: 5M²B operations for one latent function (6 where c ≠ b),
//! counting a multiply-add as two and triangular factors as half a matrix.

use super::buffers::{Buffer, add, multiply, sum_lower, zeroed};
use super::timings::{Timings, lap};
use super::{Cpu, lanes};
use crate::data::{Rows, Source};
use crate::engine::{Job, LatentBlock, LatentSlopes, Passed, Process, ProcessSums, Spread, Want};
use crate::error::Result;
use crate::kernels::{Cotangents, Tape};
use crate::linalg::{
    Accum, Mat, Par, Precision, Structure, add_row_dots, add_scaled_rows, column, column_mut, gemm,
    gram_lower, scale_rows, sized, structured_in, times_triangular,
};
use faer::reborrow::{Reborrow, ReborrowMut};
use std::sync::PoisonError;
use std::time::Instant;

const WHOLE: Structure = Structure::Rectangular;
const LOWER: Structure = Structure::TriangularLower;
const UPPER: Structure = Structure::TriangularUpper;

impl Job<'_> {
    fn latents(&self) -> usize {
        self.processes.iter().map(|p| p.mean.ncols()).sum()
    }

    fn mean_params(&self) -> usize {
        self.mean.num_params()
    }

    /// Which matrices Φ diag(b) Φᵀ of a process are summed; `first` is its first latent function.
    fn counting(&self, process: &Process<'_>, first: usize) -> impl Iterator<Item = usize> {
        let each = matches!(process.spread, Spread::Roots(_));
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
    pointwise: Vec<f64>,
    processes: Vec<ProcessScratch>,
    products: Precision,
    pub(super) timings: Timings,
}

/// Buffers of one thread for one process.
#[derive(Debug, Default)]
struct ProcessScratch {
    k: Buffer,
    phi: Buffer,
    other: Buffer,
    /// ΦR of every latent function, or ΦE.
    phi_r: Vec<Buffer>,
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
    grams: Vec<Buffer>,
    gram_c: Buffer,
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
        scratch.products = cpu.products;
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
            if job.want == Want::Gradients {
                if !job.pointwise.equal_slopes() {
                    sized(&mut lane.gram_c, m, m);
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
        let gradients = job.want == Want::Gradients;
        sums.grams.resize_with(process.grams(), Mat::new);
        let mut counting = job.counting(process, first).enumerate().peekable();
        for (j, gram) in sums.grams.iter_mut().enumerate() {
            let Some((slot, _)) = counting.next_if(|(_, own)| *own == j) else {
                *gram = Mat::new();
                continue;
            };
            sized(gram, m, m);
            sum_lower(gram.as_mut(), lanes, |lane| lane.process(at).map(|p| &p.grams[slot]), scale);
        }
        first += l;
        if gradients && !job.pointwise.equal_slopes() {
            let gram_c = sums.gram_c.get_or_insert_with(Mat::new);
            sized(gram_c, m, m);
            sum_lower(gram_c.as_mut(), lanes, |lane| lane.process(at).map(|p| &p.gram_c), scale);
        } else if job.pointwise.equal_slopes() {
            sums.gram_c = None;
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
    if job.want == Want::Gradients {
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
    let record = job.want == Want::Gradients;
    let mut first = 0;
    for (own, process) in s.processes.iter_mut().zip(job.processes) {
        let (m, l) = (process.z.nrows(), process.mean.ncols());
        own.tape.restart(record);
        sized(&mut own.k, n, m);
        process.kernel.evaluate(rows.x, Some(process.z), own.k.as_mut(), &mut own.tape);
        lap(mark, &mut s.timings.kernel);
        sized(&mut own.phi, n, m);
        match process.basis.lower() {
            Some(l) => {
                let (k, l) = ((own.k.as_ref(), WHOLE), (l, LOWER));
                let target = (own.phi.as_mut(), WHOLE);
                structured_in(s.products, target, Accum::Replace, k, l, 1.0, Par::Seq);
            }
            None => {
                own.phi.copy_from(own.k.as_ref());
                process.basis.project(own.phi.as_mut());
            }
        }
        lap(mark, &mut s.timings.solves);
        let phi = own.phi.as_ref();
        zeroed(&mut s.weights, n);
        add_row_dots(phi, phi, &mut s.weights);
        let r = column_mut(s.r.as_mut(), first);
        process.kernel.diag(rows.x, r);
        r.iter_mut().zip(&s.weights).for_each(|(r, e)| *r -= e);
        for j in 1..l {
            let (from, mut to) = s.r.as_mut().split_at_col_mut(first + j);
            column_mut(to.rb_mut(), 0).copy_from_slice(column(from.rb(), first));
        }
        let mu = s.mu.as_mut().subcols_mut(first, l);
        gemm(mu, Accum::Add, phi, process.mean, 1.0, Par::Seq);
        match process.spread {
            Spread::Roots(roots) => {
                own.phi_r.resize_with(roots.len(), Buffer::default);
                for (j, (phi_r, root)) in own.phi_r.iter_mut().zip(roots).enumerate() {
                    sized(phi_r, n, m);
                    let target = phi_r.as_mut();
                    times_triangular(target, Accum::Replace, phi, root.as_ref(), false, Par::Seq);
                    let variance = column_mut(s.s.as_mut(), first + j);
                    add_row_dots(phi_r.as_ref(), phi_r.as_ref(), variance);
                }
            }
            Spread::Shared(Some(form)) => {
                own.phi_r.resize_with(1, Buffer::default);
                let phi_e = &mut own.phi_r[0];
                sized(phi_e, n, m);
                let (target, left, form) = ((phi_e.as_mut(), WHOLE), (phi, WHOLE), (form, WHOLE));
                structured_in(s.products, target, Accum::Replace, left, form, 1.0, Par::Seq);
                for j in 0..l {
                    let variance = column_mut(s.s.as_mut(), first + j);
                    add_row_dots(phi_e.as_ref(), phi, variance);
                }
            }
            Spread::Shared(None) => {}
        }
        lap(mark, &mut s.timings.products);
        first += l;
    }
}

/// Φa, Φ diag(b) Φᵀ and Φ diag(Σc) Φᵀ.
fn statistics(s: &mut Scratch, lane: &mut Lane, job: &Job<'_>) {
    let accum = if lane.used { Accum::Add } else { Accum::Replace };
    let mut first = 0;
    for ((own, lane), process) in s.processes.iter_mut().zip(&mut lane.processes).zip(job.processes)
    {
        let (n, m, l) = (own.k.nrows(), process.z.nrows(), process.mean.ncols());
        let phi = own.phi.as_ref();
        let a = s.a.as_ref().subcols(first, l);
        gemm(lane.phi_a.as_mut(), accum, phi.transpose(), a, 1.0, Par::Seq);
        sized(&mut own.other, n, m);
        for (j, gram) in job.counting(process, first).zip(&mut lane.grams) {
            match process.spread {
                Spread::Roots(_) => {
                    scale_rows(own.other.as_mut(), phi, column(s.b.as_ref(), first + j));
                }
                Spread::Shared(_) => {
                    sum_columns(&mut s.weights, &s.b, first, l);
                    scale_rows(own.other.as_mut(), phi, &s.weights);
                    if process.basis.lower().is_some() {
                        let (target, right) = ((gram.as_mut(), LOWER), (own.other.as_ref(), WHOLE));
                        let left = (phi.transpose(), WHOLE);
                        structured_in(s.products, target, accum, left, right, 1.0, Par::Seq);
                        continue;
                    }
                }
            }
            gram_lower(gram.as_mut(), accum, phi, own.other.as_ref(), 1.0, Par::Seq);
        }
        if job.want == Want::Gradients && !job.pointwise.equal_slopes() {
            sum_columns(&mut s.weights, &s.c, first, l);
            scale_rows(own.other.as_mut(), phi, &s.weights);
            gram_lower(lane.gram_c.as_mut(), accum, phi, own.other.as_ref(), 1.0, Par::Seq);
        }
        first += l;
    }
}

/// Sum of the columns `first` to `first + count`, for every row.
fn sum_columns(out: &mut Vec<f64>, a: &Mat<f64>, first: usize, count: usize) {
    zeroed(out, a.nrows());
    for j in first..first + count {
        out.iter_mut().zip(column(a.as_ref(), j)).for_each(|(t, v)| *t += v);
    }
}

/// Φ̄ = Σ {m aᵀ + 2 RRᵀΦ diag(b)} − 2 Φ diag(Σc) (with E for RRᵀ where it is shared), K̄uf, and the kernels' and mean's gradients.
fn back(s: &mut Scratch, lane: &mut Lane, job: &Job<'_>, rows: &Rows<'_>, mark: &mut Instant) {
    let equal = job.pointwise.equal_slopes();
    let mut first = 0;
    for ((own, lane), process) in s.processes.iter_mut().zip(&mut lane.processes).zip(job.processes)
    {
        let l = process.mean.ncols();
        let bar = &mut own.other;
        let a = s.a.as_ref().subcols(first, l);
        gemm(bar.as_mut(), Accum::Replace, a, process.mean.transpose(), 1.0, Par::Seq);
        match process.spread {
            Spread::Roots(roots) => {
                for (j, (phi_r, root)) in own.phi_r.iter_mut().zip(roots).enumerate() {
                    if !job.pointwise.counts(first + j) {
                        continue;
                    }
                    let b = column(s.b.as_ref(), first + j);
                    for q in 0..phi_r.ncols() {
                        let target = phi_r.col_as_slice_mut(q);
                        target.iter_mut().zip(b).for_each(|(t, b)| *t *= 2.0 * b);
                    }
                    let (scaled, root) = (phi_r.as_ref(), root.as_ref());
                    times_triangular(bar.as_mut(), Accum::Add, scaled, root, true, Par::Seq);
                }
            }
            Spread::Shared(Some(_)) => {
                sum_columns(&mut s.weights, &s.b, first, l);
                add_scaled_rows(bar.as_mut(), own.phi_r[0].as_ref(), &s.weights, 2.0);
            }
            Spread::Shared(None) => {}
        }
        sum_columns(&mut s.weights, if equal { &s.b } else { &s.c }, first, l);
        add_scaled_rows(bar.as_mut(), own.phi.as_ref(), &s.weights, -2.0);
        lap(mark, &mut s.timings.products);
        match process.basis.lower() {
            Some(l) => {
                // Φ is no longer needed
                let (target, left) = ((own.phi.as_mut(), WHOLE), (bar.as_ref(), WHOLE));
                let right = (l.transpose(), UPPER);
                structured_in(s.products, target, Accum::Replace, left, right, 1.0, Par::Seq);
                std::mem::swap(bar, &mut own.phi);
            }
            None => process.basis.pull(bar.as_mut()),
        }
        lap(mark, &mut s.timings.solves);
        let mut sinks = Cotangents { params: &mut lane.kernel, x: None, z: Some(lane.z.as_mut()) };
        let (z, k) = (Some(process.z), own.k.as_ref());
        process.kernel.vjp(rows.x, z, k, bar.as_mut(), &mut own.tape, &mut sinks);
        process.kernel.diag_vjp(rows.x, &s.weights, &mut sinks);
        lap(mark, &mut s.timings.pull_back);
        first += l;
    }
    job.mean.vjp(rows.x, s.a.as_ref(), &mut lane.mean);
    lap(mark, &mut s.timings.pull_back);
}

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

use super::buffers::{Buffer, add, multiply, sum_lower};
use super::products::ByProducts;
use super::{Cpu, lanes};
use crate::data::{Rows, Source};
use crate::engine::{
    Factors, Job, LatentBlock, LatentSlopes, Passed, Process, ProcessSums, Spread, Through, Want,
};
use crate::error::Result;
use crate::kernels::{Cotangents, Tape};
use crate::linalg::zeroed;
use crate::linalg::{
    Accum, Mat, MatMut, MatRef, Par, add_row_dots, add_scaled_rows, column, column_mut, gemm,
    gram_lower, mirror_lower, par_for, scale_rows, sized, times_triangular,
};
use faer::reborrow::{Reborrow, ReborrowMut};
use rayon::prelude::*;
use std::sync::PoisonError;

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

impl Lane {
    /// One of its M×M sums, if it has been used.
    fn square(&self, process: usize, slot: usize) -> Option<&Buffer> {
        self.used.then(|| &self.processes[process].squares[slot])
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
            lane.phi_a.fill(0.0);
            let count = job.counting(process, first).count() + usize::from(job.sums_more(process));
            lane.squares.resize_with(count, Buffer::default);
            lane.squares.iter_mut().for_each(|sum| sized(sum, m, m));
            first += l;
            if job.want.gradients() {
                zeroed(&mut lane.kernel, process.kernel.num_params());
                sized(&mut lane.z, m, process.z.ncols());
                lane.z.fill(0.0);
            }
        }
    }

    /// Adds the small sums of a block.
    fn add(&mut self, block: &Scratch, want: Want) {
        let add_all = |target: &mut [f64], source: &[f64]| {
            target.iter_mut().zip(source).for_each(|(t, v)| *t += v);
        };
        add_all(&mut self.sums, &block.sums);
        if want == Want::Value {
            return;
        }
        for (lane, own) in self.processes.iter_mut().zip(&block.processes) {
            add(lane.phi_a.as_mut(), own.phi_a.as_ref());
            if want.gradients() {
                add_all(&mut lane.kernel, &own.kernel);
                add(lane.z.as_mut(), own.z.as_ref());
            }
        }
        if want.gradients() {
            add_all(&mut self.mean, &block.mean);
        }
    }
}

/// One of the M×M sums of a process, of which the lower triangle counts, over the lanes; 0 without rows.
fn total_lower(sum: &mut Mat<f64>, m: usize, lanes: &mut [Lane], (at, slot): (usize, usize)) {
    if let [lane] = lanes
        && lane.used
    {
        return std::mem::swap(sum, &mut lane.processes[at].squares[slot]);
    }
    sized(sum, m, m);
    sum_lower(sum.as_mut(), lanes, |lane| lane.square(at, slot), 1.0);
}

/// The sums of the lanes.
fn total(job: &Job<'_>, lanes: &mut [Lane], out: &mut Passed) {
    let scale = job.scale;
    let add_all = |target: &mut [f64], source: &[f64]| {
        target.iter_mut().zip(source).for_each(|(t, v)| *t += v * scale);
    };
    zeroed(&mut out.sums, job.pointwise.sums());
    zeroed(&mut out.mean, job.mean_params());
    for lane in lanes.iter().filter(|lane| lane.used) {
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
        let of_roots = want == (Want::Adjoints { statistics: false });
        let ProcessSums { grams, roots, .. } = sums;
        let (all, none) = if of_roots { (roots, grams) } else { (grams, roots) };
        none.clear();
        all.resize_with(process.grams(), Mat::new);
        let mut counting = job.counting(process, first).enumerate().peekable();
        for (j, gram) in all.iter_mut().enumerate() {
            let Some((slot, _)) = counting.next_if(|(_, own)| *own == j) else {
                *gram = Mat::new();
                continue;
            };
            total_lower(gram, m, lanes, (at, slot));
            if !of_roots {
                mirror_lower(gram.as_mut());
            }
        }
        let last = (at, job.counting(process, first).count());
        first += l;
        if matches!(want, Want::Adjoints { .. }) {
            total_lower(sums.psi.get_or_insert_with(Mat::new), m, lanes, last);
            sums.gram_c = None;
        } else {
            sums.psi = None;
            if job.sums_more(process) {
                let gram_c = sums.gram_c.get_or_insert_with(Mat::new);
                total_lower(gram_c, m, lanes, last);
                mirror_lower(gram_c.as_mut());
            } else if job.pointwise.equal_slopes() {
                sums.gram_c = None;
            }
        }
        sized(&mut sums.phi_a, m, l);
        sized(&mut sums.z, m, process.z.ncols());
        sums.phi_a.fill(0.0);
        sums.z.fill(0.0);
        zeroed(&mut sums.kernel, if gradients { process.kernel.num_params() } else { 0 });
        for lane in lanes.iter().filter(|lane| lane.used).map(|lane| &lane.processes[at]) {
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

/// Features, means and both parts of the variances.
fn forward(s: &mut Scratch, job: &Job<'_>, rows: &Rows<'_>) {
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
fn times_slopes(s: &mut Scratch, job: &Job<'_>) {
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

/// Φ diag(b) Φᵀ and Φ diag(Σc) Φᵀ.
fn statistics(blocks: &mut [Scratch], lane: &mut Lane, job: &Job<'_>, par: Par) {
    let accum = if lane.used { Accum::Add } else { Accum::Replace };
    let mut first = 0;
    for (at, (lane, process)) in lane.processes.iter_mut().zip(job.processes).enumerate() {
        let (l, from) = (process.mean.ncols(), first);
        first += l;
        let want = job.want.of(process.spread);
        if want == (Want::Adjoints { statistics: false }) {
            // on the way back
            continue;
        }
        for (j, gram) in job.counting(process, from).zip(&mut lane.squares) {
            // latent functions that share their variances share this sum
            let (from, count) = match process.spread {
                Spread::Roots(_) | Spread::Through(_) => (from + j, 1),
                Spread::Shared(_) | Spread::Products(_) => (from, l),
            };
            each(blocks, par, |_, s| {
                sum_columns(&mut s.weights, &s.b, from, count);
                s.processes[at].weigh(process, &s.weights);
            });
            squares(blocks, (at, process), None, (gram, accum), job.scale, par);
        }
        if want == Want::Gradients
            && job.sums_more(process)
            && let Some(sum) = lane.squares.last_mut()
        {
            each(blocks, par, |_, s| {
                sum_columns(&mut s.weights, &s.c, from, l);
                s.processes[at].weigh(process, &s.weights);
            });
            squares(blocks, (at, process), None, (sum, accum), job.scale, par);
        }
    }
}

/// The lower triangle of a sum over blocks of Φ times what is in `other`, Φ̄ or [`ProcessScratch::weigh`]'s weighed features, or of Φ
/// times 2 diag(b) ΦᵀR of one latent function, M×M.
fn squares(
    blocks: &mut [Scratch],
    (at, process): (usize, &Process<'_>),
    of_root: Option<usize>,
    (target, mut accum): (&mut Buffer, Accum),
    scale: f64,
    par: Par,
) {
    for s in blocks {
        let (own, target) = (&mut s.processes[at], target.as_mut());
        match (process.spread, of_root) {
            (Spread::Products(Factors::Double(..)), _) => {
                own.double.gram(target, accum, scale, par);
            }
            (Spread::Products(Factors::Single(..)), _) => {
                own.single.gram(target, accum, scale, par);
            }
            (_, Some(j)) => {
                let (phi, phi_r) = (own.phi.as_ref(), own.phi_r[j].as_ref());
                gram_lower(target, accum, phi, phi_r, scale, par);
            }
            (_, None) => {
                gram_lower(target, accum, own.other.as_ref(), own.phi.as_ref(), scale, par);
            }
        }
        accum = Accum::Add;
    }
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

/// Sum of the columns `first` to `first + count`, for every row.
fn sum_columns(out: &mut Vec<f64>, a: &Mat<f64>, first: usize, count: usize) {
    out.clear();
    out.extend_from_slice(column(a.as_ref(), first));
    for j in first + 1..first + count {
        out.iter_mut().zip(column(a.as_ref(), j)).for_each(|(t, v)| *t += v);
    }
}

/// The way back: K̄uf, and the kernels' and mean's gradients.
fn back<'r>(
    blocks: &mut [Scratch],
    lane: &mut Lane,
    job: &Job<'_>,
    part: &(impl Fn(usize) -> Rows<'r> + Sync),
    par: Par,
) {
    let equal = job.pointwise.equal_slopes();
    let start = if lane.used { Accum::Add } else { Accum::Replace };
    let mut first = 0;
    for (at, (lane, process)) in lane.processes.iter_mut().zip(job.processes).enumerate() {
        debug_assert!(equal || !matches!(process.spread, Spread::Through(_)), "c is b");
        let l = process.mean.ncols();
        each(blocks, par, |_, s| {
            let (a, b) = (s.a.as_ref().subcols(first, l), s.b.as_ref().subcols(first, l));
            sum_columns(&mut s.weights, if equal { &s.b } else { &s.c }, first, l);
            sum_columns(&mut s.other_weights, &s.b, first, l);
            s.processes[at].slopes_of_features(process, a, (b, &s.other_weights), &s.weights);
        });
        if let Want::Adjoints { statistics } = job.want.of(process.spread) {
            let counting = job.counting(process, first).filter(|_| !statistics);
            for (j, sum) in counting.zip(&mut lane.squares) {
                squares(blocks, (at, process), Some(j), (sum, start), job.scale, par);
            }
            if let Some(psi) = lane.squares.last_mut() {
                squares(blocks, (at, process), None, (psi, start), job.scale, par);
            }
        }
        each(blocks, par, |index, s| {
            let own = &mut s.processes[at];
            own.slopes_of_covariances(process);
            zeroed(&mut own.kernel, process.kernel.num_params());
            sized(&mut own.z, process.z.nrows(), process.z.ncols());
            own.z.fill(0.0);
            let mut sinks =
                Cotangents { params: &mut own.kernel, x: None, z: Some(own.z.as_mut()) };
            let (x, z) = (part(index).x, Some(process.z));
            let (k, bar) = (own.k.as_ref(), own.other.as_mut());
            process.kernel.vjp(x, z, k, bar, &mut own.tape, &mut sinks);
            process.kernel.diag_vjp(x, &s.weights, &mut sinks);
        });
        first += l;
    }
    each(blocks, par, |index, s| {
        zeroed(&mut s.mean, job.mean_params());
        job.mean.vjp(part(index).x, s.a.as_ref(), &mut s.mean);
    });
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

#[cfg(test)]
#[path = "pass_tests.rs"]
mod tests;

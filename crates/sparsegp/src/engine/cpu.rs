//! The engine for the processor's cores.

use super::{
    Block, Engine, Folded, Local, Plan, Prepared, Slope, Slopes, Unfolded, Whitened, lanes,
};
use crate::data::{Rows, Source};
use crate::error::Result;
use crate::kernels::{Cotangents, Tape};
use crate::linalg::{
    Accum, Mat, MatMut, MatRef, Par, add_row_dots, add_scaled_rows, column, column_mut, gemm,
    gram_lower, mirror_lower, scale_rows,
};
use faer::reborrow::ReborrowMut;
use rayon::prelude::*;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Works on blocks of rows with the threads of the current rayon pool. Keeps its buffers from call
/// to call.
#[derive(Debug, Default)]
pub struct Cpu {
    scratch: Mutex<Vec<Scratch>>,
    lanes: Mutex<Vec<Lane>>,
}

/// Seconds of work on rows, added over threads.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timings {
    /// Covariances, their diagonal and the mean function.
    pub kernel: f64,
    /// Triangular solves.
    pub solves: f64,
    /// Matrix products with features.
    pub products: f64,
    /// From cotangents of covariances to gradients of parameters.
    pub pull_back: f64,
}

impl Timings {
    /// All of it.
    pub fn total(&self) -> f64 {
        self.kernel + self.solves + self.products + self.pull_back
    }

    fn add(&mut self, other: &Timings) {
        self.kernel += other.kernel;
        self.solves += other.solves;
        self.products += other.products;
        self.pull_back += other.pull_back;
    }
}

/// Adds the time since `mark` to `slot` and sets `mark` to now.
fn lap(mark: &mut Instant, slot: &mut f64) {
    let now = Instant::now();
    *slot += (now - *mark).as_secs_f64();
    *mark = now;
}

/// A matrix that takes the shape it is asked for.
#[derive(Debug)]
struct Buffer(Mat<f64>);

impl Default for Buffer {
    fn default() -> Self {
        Self(Mat::new())
    }
}

impl std::ops::Deref for Buffer {
    type Target = Mat<f64>;
    fn deref(&self) -> &Mat<f64> {
        &self.0
    }
}

impl std::ops::DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut Mat<f64> {
        &mut self.0
    }
}

/// Buffers of one thread, for one block of rows.
#[derive(Debug, Default)]
struct Scratch {
    k: Buffer,
    phi: Buffer,
    other: Buffer,
    y_mean: Buffer,
    a: Buffer,
    s: Vec<f64>,
    r: Vec<f64>,
    b: Vec<f64>,
    c: Vec<f64>,
    tape: Tape,
    timings: Timings,
}

/// Accumulators of one lane.
#[derive(Debug, Default)]
struct Lane {
    /// Whether anything has been added since the sweep began.
    used: bool,
    sums: Vec<f64>,
    phi_a: Buffer,
    gram: Buffer,
    gram_c: Buffer,
    kernel: Vec<f64>,
    mean: Vec<f64>,
    z: Buffer,
}

fn sized(m: &mut Mat<f64>, rows: usize, cols: usize) {
    if m.nrows() != rows || m.ncols() != cols {
        *m = Mat::zeros(rows, cols);
    }
}

fn zeroed(v: &mut Vec<f64>, len: usize) {
    v.clear();
    v.resize(len, 0.0);
}

/// Adds the lower triangles of the lanes' accumulators, lane by lane, on all threads.
fn sum_lower(mut sink: MatMut<f64>, lanes: &[&Buffer]) {
    const COLUMNS: usize = 32;
    sink.rb_mut().par_col_chunks_mut(COLUMNS).enumerate().for_each(|(chunk, mut part)| {
        for other in lanes {
            for j in 0..part.ncols() {
                let from = chunk * COLUMNS + j;
                let target = &mut column_mut(part.rb_mut(), j)[from..];
                let source = &column(other.as_ref(), from)[from..];
                target.iter_mut().zip(source).for_each(|(t, v)| *t += v);
            }
        }
    });
}

fn add(mut sink: MatMut<f64>, other: MatRef<f64>) {
    for j in 0..sink.ncols() {
        let target = column_mut(sink.rb_mut(), j);
        target.iter_mut().zip(column(other, j)).for_each(|(t, v)| *t += v);
    }
}

fn multiply(mut a: MatMut<f64>, factor: f64) {
    if factor != 1.0 {
        for j in 0..a.ncols() {
            column_mut(a.rb_mut(), j).iter_mut().for_each(|v| *v *= factor);
        }
    }
}

impl Cpu {
    fn with_scratch<T>(&self, work: impl FnOnce(&mut Scratch) -> T) -> T {
        let take = || self.scratch.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut scratch = take().unwrap_or_default();
        let result = work(&mut scratch);
        self.scratch.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
        result
    }

    /// Where the time on rows has gone since the last reset.
    pub fn timings(&self) -> Timings {
        let mut total = Timings::default();
        for scratch in self.scratch.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            total.add(&scratch.timings);
        }
        total
    }

    /// Starts the clocks of [`Cpu::timings`] anew.
    pub fn reset_timings(&self) {
        for scratch in self.scratch.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
            scratch.timings = Timings::default();
        }
    }

    fn take_lanes(&self, features: usize) -> Vec<Lane> {
        let mut lanes =
            std::mem::take(&mut *self.lanes.lock().unwrap_or_else(PoisonError::into_inner));
        lanes.resize_with(lanes::count(features), Lane::default);
        lanes.iter_mut().for_each(|lane| lane.used = false);
        lanes
    }

    fn give_lanes(&self, lanes: Vec<Lane>) {
        *self.lanes.lock().unwrap_or_else(PoisonError::into_inner) = lanes;
    }
}

/// Covariances k(xᵢ, Z) and the mean function of a block.
fn covariances(s: &mut Scratch, prepared: &Prepared<'_>, rows: &Rows<'_>, record: bool) {
    let (n, m, p) = (rows.x.nrows(), prepared.z.nrows(), rows.y.ncols());
    if s.tape.is_recording() != record {
        s.tape = if record { Tape::recording() } else { Tape::off() };
    }
    sized(&mut s.k, n, m);
    sized(&mut s.y_mean, n, p);
    sized(&mut s.a, n, p);
    s.b.resize(n, 0.0);
    s.c.resize(n, 0.0);
    prepared.kernel.evaluate(rows.x, Some(prepared.z), s.k.as_mut(), &mut s.tape);
    prepared.mean.evaluate(rows.x, s.y_mean.as_mut());
}

/// r = k(x, x) − ‖φ‖².
fn unexplained(
    r: &mut Vec<f64>,
    scratch: &mut Vec<f64>,
    prepared: &Prepared<'_>,
    x: MatRef<f64>,
    phi: MatRef<f64>,
) {
    zeroed(scratch, x.nrows());
    add_row_dots(phi, phi, scratch);
    zeroed(r, x.nrows());
    prepared.kernel.diag(x, r);
    r.iter_mut().zip(scratch.iter()).for_each(|(r, n)| *r -= n);
}

/// Runs the [`Local`] on a block.
fn local_rows(s: &mut Scratch, local: &dyn Local, y: MatRef<f64>, sums: &mut [f64]) {
    let block = Block { y, mu: s.y_mean.as_ref(), s: &s.s, r: &s.r };
    local.rows(block, Slopes { a: s.a.as_mut(), b: &mut s.b, c: &mut s.c, sums });
}

/// s = φᵀSφ for every row, given ΦS.
fn variances(s: &mut Vec<f64>, phi_s: MatRef<f64>, phi: MatRef<f64>) {
    zeroed(s, phi.nrows());
    add_row_dots(phi_s, phi, s);
}

impl Engine for Cpu {
    fn fold(
        &self,
        prepared: Prepared<'_>,
        q: Option<Whitened<'_>>,
        local: &dyn Local,
        data: &dyn Source,
        scale: f64,
    ) -> Result<Folded> {
        let plan = local.plan();
        let (m, p) = (prepared.z.nrows(), data.outputs());
        let mut lanes = self.take_lanes(m);
        let outcome = lanes::sweep(data, &mut lanes, |lane, rows| {
            self.with_scratch(|s| fold_block(s, lane, &prepared, q, local, plan, rows));
            Ok(())
        });
        let folded = outcome.map(|()| {
            let mut total = Folded {
                sums: vec![0.0; plan.sums],
                phi_a: Mat::zeros(m, p),
                gram: Mat::zeros(m, m),
                gram_c: plan.needs_second_gram().then(|| Mat::zeros(m, m)),
            };
            for lane in lanes.iter().filter(|lane| lane.used) {
                total.sums.iter_mut().zip(&lane.sums).for_each(|(t, v)| *t += v);
                add(total.phi_a.as_mut(), lane.phi_a.as_ref());
            }
            let used = || lanes.iter().filter(|lane| lane.used);
            sum_lower(total.gram.as_mut(), &used().map(|lane| &lane.gram).collect::<Vec<_>>());
            if let Some(gram_c) = &mut total.gram_c {
                let lanes: Vec<_> = used().map(|lane| &lane.gram_c).collect();
                sum_lower(gram_c.as_mut(), &lanes);
            }
            total.sums.iter_mut().for_each(|v| *v *= scale);
            multiply(total.phi_a.as_mut(), scale);
            for gram in std::iter::once(&mut total.gram).chain(&mut total.gram_c) {
                multiply(gram.as_mut(), scale);
                mirror_lower(gram.as_mut());
            }
            total
        });
        self.give_lanes(lanes);
        folded
    }

    fn unfold(
        &self,
        prepared: Prepared<'_>,
        q: Whitened<'_>,
        local: &dyn Local,
        data: &dyn Source,
        scale: f64,
    ) -> Result<Unfolded> {
        let plan = local.plan();
        let m = prepared.z.nrows();
        let pull = match (plan.b, plan.c) {
            (Slope::Constant(b), Slope::Constant(c)) if !plan.variances => {
                // Φ̄ = m aᵀ + (2bS − 2cI)Φ: one symmetric matrix for all rows
                let mut a = Mat::from_fn(m, m, |i, j| 2.0 * b * scale * q.covariance[(i, j)]);
                for i in 0..m {
                    a[(i, i)] -= 2.0 * c * scale;
                }
                Pull::Matrix { w: prepared.basis.pull_through(a), c: c * scale }
            }
            _ => Pull::Features,
        };
        let weights = prepared.basis.weights(q.mean);
        let num_kernel = prepared.kernel.num_params();
        let num_mean = prepared.mean.params().iter().map(|(_, param)| param.len()).sum();
        let mut lanes = self.take_lanes(m);
        let outcome = lanes::sweep(data, &mut lanes, |lane, rows| {
            if !lane.used {
                lane.used = true;
                zeroed(&mut lane.sums, plan.sums);
                zeroed(&mut lane.kernel, num_kernel);
                zeroed(&mut lane.mean, num_mean);
                sized(&mut lane.z, m, prepared.z.ncols());
                lane.z.fill(0.0);
            }
            self.with_scratch(|s| {
                let back = Back { prepared, q, weights: weights.as_ref(), local, plan, scale };
                match &pull {
                    Pull::Matrix { w, c } => back.by_matrix(s, lane, rows, w.as_ref(), *c),
                    Pull::Features => back.by_features(s, lane, rows),
                }
            });
            Ok(())
        });
        let unfolded = outcome.map(|()| {
            let mut total = Unfolded {
                sums: vec![0.0; plan.sums],
                kernel: vec![0.0; num_kernel],
                mean: vec![0.0; num_mean],
                z: Mat::zeros(m, prepared.z.ncols()),
            };
            for lane in lanes.iter().filter(|lane| lane.used) {
                total.sums.iter_mut().zip(&lane.sums).for_each(|(t, v)| *t += v * scale);
                total.kernel.iter_mut().zip(&lane.kernel).for_each(|(t, v)| *t += v);
                total.mean.iter_mut().zip(&lane.mean).for_each(|(t, v)| *t += v);
                add(total.z.as_mut(), lane.z.as_ref());
            }
            total
        });
        self.give_lanes(lanes);
        unfolded
    }
}

fn fold_block(
    s: &mut Scratch,
    lane: &mut Lane,
    prepared: &Prepared<'_>,
    q: Option<Whitened<'_>>,
    local: &dyn Local,
    plan: Plan,
    rows: Rows<'_>,
) {
    let (n, m, p) = (rows.x.nrows(), prepared.z.nrows(), rows.y.ncols());
    let mut mark = Instant::now();
    covariances(s, prepared, &rows, false);
    lap(&mut mark, &mut s.timings.kernel);
    prepared.basis.project(s.k.as_mut());
    lap(&mut mark, &mut s.timings.solves);
    unexplained(&mut s.r, &mut s.b, prepared, rows.x, s.k.as_ref());
    let phi = s.k.as_ref();
    // s is 0 without q, and empty where the plan does not ask: the buffer may hold another block's
    zeroed(&mut s.s, if plan.variances { n } else { 0 });
    if let Some(q) = q {
        gemm(s.y_mean.as_mut(), Accum::Add, phi, q.mean, 1.0, Par::Seq);
        if plan.variances {
            sized(&mut s.other, n, m);
            gemm(s.other.as_mut(), Accum::Replace, phi, q.covariance, 1.0, Par::Seq);
            variances(&mut s.s, s.other.as_ref(), phi);
        }
    }
    let accum = if lane.used { Accum::Add } else { Accum::Replace };
    if !lane.used {
        lane.used = true;
        zeroed(&mut lane.sums, plan.sums);
        sized(&mut lane.phi_a, m, p);
        sized(&mut lane.gram, m, m);
        if plan.needs_second_gram() {
            sized(&mut lane.gram_c, m, m);
        }
    }
    local_rows(s, local, rows.y, &mut lane.sums);
    let phi = s.k.as_ref();
    gemm(lane.phi_a.as_mut(), accum, phi.transpose(), s.a.as_ref(), 1.0, Par::Seq);
    let mut weighted_gram = |gram: &mut Mat<f64>, slope: Slope, weights: &[f64]| match slope {
        Slope::Constant(_) => gram_lower(gram.as_mut(), accum, phi, phi, 1.0, Par::Seq),
        Slope::Rows => {
            sized(&mut s.other, n, m);
            scale_rows(s.other.as_mut(), phi, weights);
            gram_lower(gram.as_mut(), accum, phi, s.other.as_ref(), 1.0, Par::Seq);
        }
    };
    weighted_gram(&mut lane.gram, plan.b, &s.b);
    if plan.needs_second_gram() {
        weighted_gram(&mut lane.gram_c, plan.c, &s.c);
    }
    lap(&mut mark, &mut s.timings.products);
}

/// How Φ̄ becomes K̄uf.
enum Pull {
    /// K̄uf = w aᵀ + W Kuf: features are not formed.
    Matrix { w: Mat<f64>, c: f64 },
    /// Through the features.
    Features,
}

/// The pass back over one block.
struct Back<'a> {
    prepared: Prepared<'a>,
    q: Whitened<'a>,
    weights: MatRef<'a, f64>,
    local: &'a dyn Local,
    plan: Plan,
    scale: f64,
}

impl Back<'_> {
    fn by_matrix(&self, s: &mut Scratch, lane: &mut Lane, rows: Rows<'_>, w: MatRef<f64>, c: f64) {
        let mut mark = Instant::now();
        covariances(s, &self.prepared, &rows, true);
        lap(&mut mark, &mut s.timings.kernel);
        gemm(s.y_mean.as_mut(), Accum::Add, s.k.as_ref(), self.weights, 1.0, Par::Seq);
        s.s.clear();
        s.r.clear();
        local_rows(s, self.local, rows.y, &mut lane.sums);
        multiply(s.a.as_mut(), self.scale);
        sized(&mut s.phi, s.k.nrows(), s.k.ncols());
        gemm(s.phi.as_mut(), Accum::Replace, s.k.as_ref(), w, 1.0, Par::Seq);
        gemm(s.phi.as_mut(), Accum::Add, s.a.as_ref(), self.weights.transpose(), 1.0, Par::Seq);
        s.c.fill(c);
        lap(&mut mark, &mut s.timings.products);
        self.to_parameters(s, lane, rows);
        lap(&mut mark, &mut s.timings.pull_back);
    }

    fn by_features(&self, s: &mut Scratch, lane: &mut Lane, rows: Rows<'_>) {
        let (n, m) = (rows.x.nrows(), self.prepared.z.nrows());
        let mut mark = Instant::now();
        covariances(s, &self.prepared, &rows, true);
        lap(&mut mark, &mut s.timings.kernel);
        sized(&mut s.other, n, m);
        s.other.copy_from(s.k.as_ref());
        self.prepared.basis.project(s.other.as_mut());
        lap(&mut mark, &mut s.timings.solves);
        let phi = s.other.as_ref();
        unexplained(&mut s.r, &mut s.b, &self.prepared, rows.x, phi);
        gemm(s.y_mean.as_mut(), Accum::Add, phi, self.q.mean, 1.0, Par::Seq);
        // ΦS (times 2b where that is one number)
        let factor = match self.plan.b {
            Slope::Constant(b) if !self.plan.variances => 2.0 * b * self.scale,
            _ => 1.0,
        };
        sized(&mut s.phi, n, m);
        gemm(s.phi.as_mut(), Accum::Replace, phi, self.q.covariance, factor, Par::Seq);
        if self.plan.variances {
            variances(&mut s.s, s.phi.as_ref(), phi);
        } else {
            s.s.clear();
        }
        local_rows(s, self.local, rows.y, &mut lane.sums);
        multiply(s.a.as_mut(), self.scale);
        let expand = |slope: Slope, values: &mut [f64]| {
            if let Slope::Constant(v) = slope {
                values.fill(v);
            }
            values.iter_mut().for_each(|v| *v *= self.scale);
        };
        expand(self.plan.b, &mut s.b);
        expand(self.plan.c, &mut s.c);
        if self.plan.variances || self.plan.b == Slope::Rows {
            s.b.iter_mut().for_each(|b| *b *= 2.0);
            for j in 0..m {
                let target = column_mut(s.phi.as_mut(), j);
                target.iter_mut().zip(&s.b).for_each(|(t, b)| *t *= b);
            }
        }
        gemm(s.phi.as_mut(), Accum::Add, s.a.as_ref(), self.q.mean.transpose(), 1.0, Par::Seq);
        add_scaled_rows(s.phi.as_mut(), s.other.as_ref(), &s.c, -2.0);
        lap(&mut mark, &mut s.timings.products);
        self.prepared.basis.pull(s.phi.as_mut());
        lap(&mut mark, &mut s.timings.solves);
        self.to_parameters(s, lane, rows);
        lap(&mut mark, &mut s.timings.pull_back);
    }

    /// `s.phi` holds K̄uf, `s.c` k̄ff, `s.a` the cotangent of the mean function.
    fn to_parameters(&self, s: &mut Scratch, lane: &mut Lane, rows: Rows<'_>) {
        let kernel = self.prepared.kernel;
        let mut sinks = Cotangents { params: &mut lane.kernel, x: None, z: Some(lane.z.as_mut()) };
        let z = Some(self.prepared.z);
        kernel.vjp(rows.x, z, s.k.as_ref(), s.phi.as_mut(), &mut s.tape, &mut sinks);
        kernel.diag_vjp(rows.x, &s.c, &mut sinks);
        self.prepared.mean.vjp(rows.x, s.a.as_ref(), &mut lane.mean);
    }
}

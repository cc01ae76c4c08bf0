//! The work on one block of rows, forward and back.

use super::buffers::{Lane, Scratch, multiply};
use super::timings::lap;
use crate::data::Rows;
use crate::engine::{Block, Local, Plan, Prepared, Slope, Slopes, Whitened};
use crate::kernels::Cotangents;
use crate::linalg::zeroed;
use crate::linalg::{
    Accum, Mat, MatRef, Par, add_row_dots, add_scaled_rows, column_mut, gemm, gram_lower,
    scale_rows, sized,
};
use std::time::Instant;

/// Covariances k(xᵢ, Z) and the mean function of a block.
fn covariances(s: &mut Scratch, prepared: &Prepared<'_>, rows: &Rows<'_>, record: bool) {
    let (n, m, p) = (rows.x.nrows(), prepared.z.nrows(), rows.y.ncols());
    s.tape.restart(record);
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

/// Adds a block's contributions to its lane.
pub(super) fn fold_block(
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
pub(super) enum Pull {
    /// K̄uf = w aᵀ + W Kuf: features are not formed.
    Matrix {
        /// W, M×M.
        w: Mat<f64>,
        /// ∂ℓ/∂r times the scale.
        c: f64,
    },
    /// Through the features.
    Features,
}

/// The pass back over one block.
pub(super) struct Back<'a> {
    pub(super) prepared: Prepared<'a>,
    pub(super) q: Whitened<'a>,
    pub(super) weights: MatRef<'a, f64>,
    pub(super) local: &'a dyn Local,
    pub(super) plan: Plan,
    pub(super) scale: f64,
}

impl Back<'_> {
    pub(super) fn by_matrix(
        &self,
        s: &mut Scratch,
        lane: &mut Lane,
        rows: Rows<'_>,
        w: MatRef<f64>,
        c: f64,
    ) {
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

    pub(super) fn by_features(&self, s: &mut Scratch, lane: &mut Lane, rows: Rows<'_>) {
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

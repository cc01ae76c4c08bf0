//! R-SVGP's cubic traces from random probes.
//!
//! In L-space tr(E(I + E − J)) is ⟨EΞ, Ξ + EΞ − JΞ⟩/p, whose variance vanishes with E; the paper's plain estimate is
//! of tr(K̃T) − tr(CKuu). What the way back needs of the probes is kept.

use super::LSpace;
use crate::linalg::{Accum, Mat, add_row_dots, column, dot, gemm, par_for, sized};

/// What the probes become, M×p each.
#[derive(Clone, Debug)]
pub(super) struct Sketch {
    /// LΞ, or TΞ.
    pub(super) x: Mat<f64>,
    /// EΞ, or K̃TΞ.
    pub(super) e: Mat<f64>,
    /// Ξ + 2EΞ − JΞ, or Ξ + TKuuΞ.
    pub(super) r: Mat<f64>,
    /// For the plain estimate: TK̃TΞ − 2TΞ.
    pub(super) d: Mat<f64>,
    pub(super) work: Mat<f64>,
}

impl Default for Sketch {
    fn default() -> Self {
        let none = Mat::new;
        Self { x: none(), e: none(), r: none(), d: none(), work: none() }
    }
}

impl LSpace {
    /// Returns tr(E(I + E − J)) from probes.
    pub(super) fn lspace_traces(&mut self) -> f64 {
        let (m, p) = (self.probes.nrows(), self.probes.ncols());
        let Sketch { x, e, r, work, .. } = &mut self.sketch;
        let xi = self.probes.as_ref();
        sized(e, m, p);
        e.fill(0.0);
        self.inversion.add_times(xi, e, 1.0);
        // r = Ξ + 2EΞ − JΞ, and JΞ = Lᵀ(ΛLΞ)
        self.root.times(xi, x);
        sized(work, m, p);
        for j in 0..p {
            let source = column(x.as_ref(), j).iter().zip(&self.lambda);
            work.col_as_slice_mut(j).iter_mut().zip(source).for_each(|(t, (v, l))| *t = v * l);
        }
        self.root.features(work.as_ref(), r);
        let mut sum = 0.0;
        for j in 0..p {
            let (xi, e) = (column(xi, j), column(e.as_ref(), j));
            for ((r, xi), e) in r.col_as_slice_mut(j).iter_mut().zip(xi).zip(e) {
                sum += e * (xi + e - *r);
                *r = xi + 2.0 * e - *r;
            }
        }
        // an estimate of the row sums of LE∘L
        self.root.times(e.as_ref(), work);
        add_row_dots(work.as_ref(), x.as_ref(), &mut self.crossed);
        self.crossed.iter_mut().for_each(|v| *v /= p as f64);
        sum / p as f64
    }

    /// Returns tr(K̃T) − tr(CKuu) from probes: ⟨Ξ, b⟩ + ⟨c, d⟩ − 2⟨c, a⟩ with a = TΞ, b = K̃a, c =
    /// KuuΞ, d = Tb.
    pub(super) fn plain_traces(&mut self) -> f64 {
        let (m, p) = (self.probes.nrows(), self.probes.ncols());
        let Sketch { x, e, r, d, work } = &mut self.sketch;
        let (xi, par) = (self.probes.as_ref(), par_for(m));
        self.root.features(xi, work);
        self.root.times(work.as_ref(), x);
        sized(e, m, p);
        gemm(e.as_mut(), Accum::Replace, self.tilde.as_ref(), x.as_ref(), 1.0, par);
        self.root.features(e.as_ref(), work);
        self.root.times(work.as_ref(), d);
        *d -= &*x * faer::Scale(2.0);
        // c = K̃Ξ − ΛΞ
        sized(r, m, p);
        gemm(r.as_mut(), Accum::Replace, self.tilde.as_ref(), xi, 1.0, par);
        for j in 0..p {
            let own = r.col_as_slice_mut(j).iter_mut().zip(column(xi, j)).zip(&self.lambda);
            own.for_each(|((t, v), lambda)| *t -= lambda * v);
        }
        let sum = dot(xi, e.as_ref()) + dot(r.as_ref(), d.as_ref());
        // r = Ξ + Tc
        self.root.features(r.as_ref(), work);
        self.root.times(work.as_ref(), r);
        *r += xi;
        sum / p as f64
    }
}

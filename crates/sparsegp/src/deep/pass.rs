//! The work on one block of rows in one group: forward, and back from slopes a, b, c, by the features of
//! [`crate::engine`] in the precision of the group's operands.

use super::group::{Group, Prepared, Sums};
use super::layer::{Marginals, Slopes};
use crate::engine::{EitherFeatures, Plan, Right};
use crate::kernels::Tape;
use crate::linalg::{Accum, Mat, MatMut, MatRef, Par, column, gemm, sized, zeroed};
use faer::reborrow::ReborrowMut;

/// Memory of a block in a group: what the way back needs of the way there.
#[derive(Debug)]
pub(super) struct Pass {
    tape: Tape,
    /// k(x, Z), B×M, and its adjoint.
    k: Mat<f64>,
    k_bar: Mat<f64>,
    features: EitherFeatures,
    /// The mean of functions drawn, M×P.
    mean: Mat<f64>,
    /// Φa of this block.
    phi_a: Mat<f64>,
    kff: Vec<f64>,
    /// ‖φ‖², then sums of slopes.
    weights: Vec<f64>,
}

impl Default for Pass {
    fn default() -> Self {
        let none = Mat::new;
        Self {
            tape: Tape::off(),
            k: none(),
            k_bar: none(),
            features: EitherFeatures::default(),
            mean: none(),
            phi_a: none(),
            kff: Vec::new(),
            weights: Vec::new(),
        }
    }
}

impl Pass {
    /// Adds Φᵀm to the means and writes s, r and k(x, x) of the group's functions, which begin at the column `at`. Of W and M
    /// s = ‖Rᵀφ‖², r = k(x, x) − ‖φ‖² (the marginals of Hensman et al. 2013, whitened); of L and R all of
    /// v = k(x, x) − ‖φ‖² + φᵀEφ is in the place of s (as in the bound of Cortinovis et al., Eq. 7). With a draw u (M×P) the
    /// functions are μ = Φᵀ(m + Ru), and s is 0.
    pub(super) fn forward(
        &mut self,
        (group, prepared): (&Group, &Prepared),
        x: MatRef<f64>,
        draw: Option<MatRef<f64>>,
        (out, at): (&mut Marginals, usize),
        record: bool,
    ) {
        let (n, m, outputs) = (x.nrows(), group.inducing.len(), group.outputs());
        self.tape.restart(record);
        sized(&mut self.k, n, m);
        group.inducing.kuf(x, self.k.as_mut(), &mut self.tape);
        zeroed(&mut self.kff, n);
        group.inducing.kff(x, &mut self.kff);
        zeroed(&mut self.weights, n);
        let mut with = prepared.operands(group);
        if let Some(u) = draw {
            self.draw(prepared, u);
            with = with.at(self.mean.as_ref());
        }
        let mu = out.mean.as_mut().subcols_mut(at, outputs);
        self.features.project(with, (&mut self.k, record), &mut self.weights, mu);
        let mut s = out.s.as_mut().subcols_mut(at, outputs);
        s.fill(0.0);
        self.features.variances(with, (self.k.as_ref(), &self.weights), s);
        // k(x, x) − ‖φ‖²
        let rest = self.weights.iter_mut().zip(&self.kff);
        rest.for_each(|(w, k)| *w = k - *w);
        if group.shares() {
            let own = column(out.s.as_ref(), at).iter();
            self.weights.iter_mut().zip(own).for_each(|(w, own)| *w += own);
        }
        for p in at..at + outputs {
            out.prior.col_as_slice_mut(p).copy_from_slice(&self.kff);
            let r = out.r.col_as_slice_mut(p);
            if group.shares() {
                out.s.col_as_slice_mut(p).copy_from_slice(&self.weights);
                r.fill(0.0);
            } else {
                r.copy_from_slice(&self.weights);
            }
        }
    }

    /// Computes m + Ru.
    fn draw(&mut self, prepared: &Prepared, u: MatRef<f64>) {
        let (mean, roots) = (&prepared.parts.mean, &prepared.parts.roots);
        sized(&mut self.mean, mean.nrows(), mean.ncols());
        self.mean.copy_from(mean);
        for (p, root) in roots.iter().enumerate() {
            let own = self.mean.as_mut().subcols_mut(p, 1);
            gemm(own, Accum::Add, root.as_ref(), u.subcols(p, 1), 1.0, Par::Seq);
        }
    }

    /// Goes back from the slopes of the group's functions, which begin at the column `at`: sums to
    /// `sums`, the gradient of the rows to `x_bar` (B×D, added).
    pub(super) fn back(
        &mut self,
        (group, prepared): (&Group, &Prepared),
        x: MatRef<f64>,
        draw: Option<MatRef<f64>>,
        (slopes, at): (&Slopes, usize),
        sums: &mut Sums,
        mut x_bar: Option<MatMut<f64>>,
    ) {
        let (n, m, outputs) = (x.nrows(), group.inducing.len(), group.outputs());
        let accum =
            if std::mem::replace(&mut sums.used, true) { Accum::Add } else { Accum::Replace };
        let [a, b, c] =
            [&slopes.a, &slopes.b, &slopes.c].map(|own| own.as_ref().subcols(at, outputs));
        let Self { features, phi_a, weights, .. } = self;
        let mut with = prepared.operands(group);
        if draw.is_some() {
            with = with.at(self.mean.as_ref());
        }
        sized(phi_a, m, outputs);
        features.times_slopes(with, a, phi_a.as_mut());
        match accum {
            Accum::Add => sums.phi_a += &*phi_a,
            Accum::Replace => sums.phi_a.copy_from(&*phi_a),
        }
        let square = |features: &mut EitherFeatures, right, to: &mut Mat<f64>| {
            features.square(with, right, (to.as_mut(), accum), 1.0, Par::Seq);
        };
        for (p, own) in sums.grams.iter_mut().enumerate() {
            features.weigh(with, column(b, p));
            square(features, Right::Other, own);
        }
        zeroed(weights, n);
        for p in 0..outputs {
            // r is within s of functions that share their variances
            let own = column(if group.shares() { b } else { c }, p);
            weights.iter_mut().zip(own).for_each(|(w, own)| *w += own);
        }
        if group.shares() {
            features.weigh(with, weights);
            square(features, Right::Other, &mut sums.psi);
        }
        features.slopes(with, &Plan::by_rows(0), a, (b, weights), weights);
        for (p, own) in sums.roots.iter_mut().enumerate() {
            match draw {
                None => square(features, Right::Root(p), own),
                Some(u) => outer(own, accum, phi_a, u, p),
            }
        }
        if !group.shares() {
            square(features, Right::Other, &mut sums.psi);
        }
        features.back(with, &mut self.k_bar);
        let blocks = (self.k.as_ref(), self.k_bar.as_mut());
        let own = x_bar.as_mut().map(|x| x.rb_mut());
        group.inducing.pull_kuf(x, blocks, &mut self.tape, &mut sums.inducing, own);
        group.inducing.pull_kff(x, &self.weights, &mut sums.inducing, x_bar);
    }
}

/// Computes the lower triangle of (Φa) uᵀ of the function p: R̄ where u has been drawn (the
/// reparameterisation of Salimbeni & Deisenroth 2017 with the noise of u and of f given u apart).
fn outer(to: &mut Mat<f64>, accum: Accum, phi_a: &Mat<f64>, u: MatRef<f64>, p: usize) {
    let phi_a = column(phi_a.as_ref(), p);
    for j in 0..to.ncols() {
        let target = &mut to.col_as_slice_mut(j)[j..];
        if matches!(accum, Accum::Replace) {
            target.fill(0.0);
        }
        target.iter_mut().zip(&phi_a[j..]).for_each(|(t, a)| *t += a * u[(j, p)]);
    }
}

//! The work on one block of rows in one group: forward, and back from slopes a, b, c.

use super::group::{Group, Prepared, Sums, gram};
use super::layer::{Marginals, Slopes};
use crate::engine::Basis;
use crate::kernels::Tape;
use crate::linalg::{
    Accum, Mat, MatMut, MatRef, Par, add_row_dots, add_scaled_rows, column, gemm, scale_rows,
    sized, times_triangular, zeroed,
};
use faer::reborrow::ReborrowMut;

/// Memory of a block in a group: what the way back needs of the way there.
#[derive(Debug)]
pub(super) struct Pass {
    tape: Tape,
    /// k(x, Z), B×M.
    k: Mat<f64>,
    /// Φᵀ, B×M.
    phi: Mat<f64>,
    /// ΦᵀR of every function (W, M), B×M; or Φᵀ(I − E) (L, R).
    turned: Vec<Mat<f64>>,
    /// The mean of q, or of a function drawn, M×P.
    mean: Mat<f64>,
    bar: Mat<f64>,
    scaled: Mat<f64>,
    /// Φa of this block, where functions are drawn.
    phi_a: Mat<f64>,
    kff: Vec<f64>,
    weights: Vec<f64>,
    twice: Vec<f64>,
}

impl Default for Pass {
    fn default() -> Self {
        let none = Mat::new;
        Self {
            tape: Tape::off(),
            k: none(),
            phi: none(),
            turned: Vec::new(),
            mean: none(),
            bar: none(),
            scaled: none(),
            phi_a: none(),
            kff: Vec::new(),
            weights: Vec::new(),
            twice: Vec::new(),
        }
    }
}

impl Pass {
    /// Adds Φᵀm to the means and writes s, r and k(x, x) of the group's functions, which begin at the column `at`.
    /// With a draw u (M×P) the functions are μ = Φᵀ(m + Ru), and s is 0.
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
        sized(&mut self.phi, n, m);
        self.phi.copy_from(&self.k);
        zeroed(&mut self.kff, n);
        group.inducing.kff(x, &mut self.kff);
        for p in at..at + outputs {
            out.prior.col_as_slice_mut(p).copy_from_slice(&self.kff);
        }
        if group.shares() {
            self.forward_shared(prepared, (out, at));
        } else {
            self.forward_moments(prepared, draw, (out, at));
        }
        let mu = out.mean.as_mut().subcols_mut(at, outputs);
        gemm(mu, Accum::Add, self.phi.as_ref(), self.mean.as_ref(), 1.0, Par::Seq);
    }

    /// s = ‖Rᵀφ‖², r = k(x, x) − ‖φ‖² (the marginals of Hensman et al. 2013, whitened).
    fn forward_moments(
        &mut self,
        prepared: &Prepared,
        draw: Option<MatRef<f64>>,
        (out, at): (&mut Marginals, usize),
    ) {
        let (n, m) = (self.phi.nrows(), self.phi.ncols());
        prepared.basis.project(self.phi.as_mut());
        zeroed(&mut self.weights, n);
        add_row_dots(self.phi.as_ref(), self.phi.as_ref(), &mut self.weights);
        let roots = &prepared.parts.roots;
        sized(&mut self.mean, m, roots.len());
        self.mean.copy_from(&prepared.parts.mean);
        self.turned.resize_with(roots.len(), Mat::new);
        for (p, root) in roots.iter().enumerate() {
            let r = out.r.col_as_slice_mut(at + p);
            r.iter_mut().zip(self.kff.iter().zip(&self.weights)).for_each(|(r, (k, w))| *r = k - w);
            let s = out.s.col_as_slice_mut(at + p);
            s.fill(0.0);
            match draw {
                Some(u) => {
                    let own = self.mean.as_mut().subcols_mut(p, 1);
                    gemm(own, Accum::Add, root.as_ref(), u.subcols(p, 1), 1.0, Par::Seq);
                }
                None => {
                    let turned = &mut self.turned[p];
                    sized(turned, n, m);
                    let (to, phi) = (turned.as_mut(), self.phi.as_ref());
                    times_triangular(to, Accum::Replace, phi, root.as_ref(), false, Par::Seq);
                    add_row_dots(turned.as_ref(), turned.as_ref(), s);
                }
            }
        }
    }

    /// v = k(x, x) − φᵀφ + φᵀEφ in the place of s, and no r (as in the bound of Cortinovis et al., Eq. 7).
    fn forward_shared(&mut self, prepared: &Prepared, (out, at): (&mut Marginals, usize)) {
        let (n, m) = (self.phi.nrows(), self.phi.ncols());
        let space = &prepared.space;
        space.root().project(self.phi.as_mut());
        let mean = space.mean();
        sized(&mut self.mean, m, mean.ncols());
        self.mean.copy_from(mean);
        zeroed(&mut self.weights, n);
        self.turned.resize_with(usize::from(space.residual().is_some()), Mat::new);
        if let Some(e) = space.residual() {
            let turned = &mut self.turned[0];
            sized(turned, n, m);
            turned.copy_from(&self.phi);
            gemm(turned.as_mut(), Accum::Add, self.phi.as_ref(), e, -1.0, Par::Seq);
        }
        let phi = self.phi.as_ref();
        let other = self.turned.first().map_or(phi, |turned| turned.as_ref());
        add_row_dots(phi, other, &mut self.weights);
        for p in at..at + mean.ncols() {
            let s = out.s.col_as_slice_mut(p);
            s.iter_mut().zip(self.kff.iter().zip(&self.weights)).for_each(|(s, (k, w))| *s = k - w);
            out.r.col_as_slice_mut(p).fill(0.0);
        }
    }

    /// The way back from the slopes of the group's functions, which begin at the column `at`: sums to `sums`, the gradient
    /// of the rows to `x_bar` (B×D, added).
    pub(super) fn back(
        &mut self,
        (group, prepared): (&Group, &Prepared),
        x: MatRef<f64>,
        draw: Option<MatRef<f64>>,
        (slopes, at): (&Slopes, usize),
        sums: &mut Sums,
        mut x_bar: Option<MatMut<f64>>,
    ) {
        let (n, m, outputs) = (x.nrows(), self.phi.ncols(), group.outputs());
        let accum =
            if std::mem::replace(&mut sums.used, true) { Accum::Add } else { Accum::Replace };
        let a = slopes.a.as_ref().subcols(at, outputs);
        let phi = self.phi.as_ref();
        sized(&mut self.bar, n, m);
        sized(&mut self.scaled, n, m);
        gemm(self.bar.as_mut(), Accum::Replace, a, self.mean.transpose(), 1.0, Par::Seq);
        match draw {
            None => gemm(sums.phi_a.as_mut(), accum, phi.transpose(), a, 1.0, Par::Seq),
            Some(_) => {
                sized(&mut self.phi_a, m, outputs);
                let own = self.phi_a.as_mut();
                gemm(own, Accum::Replace, phi.transpose(), a, 1.0, Par::Seq);
                match accum {
                    Accum::Add => sums.phi_a += &self.phi_a,
                    Accum::Replace => sums.phi_a.copy_from(&self.phi_a),
                }
            }
        }
        zeroed(&mut self.weights, n);
        if group.shares() {
            for p in at..at + outputs {
                let b = column(slopes.b.as_ref(), p);
                self.weights.iter_mut().zip(b).for_each(|(w, b)| *w += b);
            }
            scale_rows(self.scaled.as_mut(), phi, &self.weights);
            gram(&mut sums.psi, accum, &self.phi, &self.scaled, 1.0);
            let other = self.turned.first().unwrap_or(&self.phi);
            add_scaled_rows(self.bar.as_mut(), other.as_ref(), &self.weights, -2.0);
            prepared.space.root().pull(self.bar.as_mut());
        } else {
            for p in 0..outputs {
                let root = &prepared.parts.roots[p];
                match draw {
                    None => {
                        let b = column(slopes.b.as_ref(), at + p);
                        self.twice.clear();
                        self.twice.extend(b.iter().map(|b| 2.0 * b));
                        scale_rows(self.scaled.as_mut(), self.turned[p].as_ref(), &self.twice);
                        gram(&mut sums.roots[p], accum, &self.phi, &self.scaled, 1.0);
                        let (to, scaled) = (self.bar.as_mut(), self.scaled.as_ref());
                        times_triangular(to, Accum::Add, scaled, root.as_ref(), true, Par::Seq);
                    }
                    Some(u) => outer(&mut sums.roots[p], accum, &self.phi_a, u, p),
                }
                let c = column(slopes.c.as_ref(), at + p);
                self.weights.iter_mut().zip(c).for_each(|(w, c)| *w += c);
            }
            add_scaled_rows(self.bar.as_mut(), phi, &self.weights, -2.0);
            gram(&mut sums.psi, accum, &self.bar, &self.phi, 1.0);
            for (p, own) in sums.grams.iter_mut().enumerate() {
                let b = column(slopes.b.as_ref(), at + p);
                scale_rows(self.scaled.as_mut(), phi, b);
                gram(own, accum, &self.phi, &self.scaled, 1.0);
            }
            prepared.basis.pull(self.bar.as_mut());
        }
        let blocks = (self.k.as_ref(), self.bar.as_mut());
        let own = x_bar.as_mut().map(|x| x.rb_mut());
        group.inducing.pull_kuf(x, blocks, &mut self.tape, &mut sums.inducing, own);
        group.inducing.pull_kff(x, &self.weights, &mut sums.inducing, x_bar);
    }
}

/// The lower triangle of (Φa) uᵀ of the function p: R̄ where u has been drawn (the reparameterisation of Salimbeni &
/// Deisenroth 2017 with the noise of u and of f given u apart).
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

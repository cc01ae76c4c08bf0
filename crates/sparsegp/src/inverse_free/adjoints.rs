//! The way back from what the rows see of q in L-space ([`super::lspace`] has the formulas).

use super::Preconditioner;
use super::lspace::LSpace;
use super::sketch::Sketch;
use super::traces::Estimate;
use crate::linalg::{
    Accum, Mat, MatMut, MatRef, Structure, by_columns, column, gram_lower, mirror_lower, par_for,
    sized, structured,
};

const LOWER: Structure = Structure::TriangularLower;
const UPPER: Structure = Structure::TriangularUpper;

/// Where the way back writes.
#[derive(Debug)]
pub struct Adjoints<'a> {
    /// K̄uu, both triangles, without the part through Kuf.
    pub kuu: &'a mut Mat<f64>,
    /// Of m̃, M×P by columns.
    pub mean: &'a mut [f64],
    /// Of λ.
    pub lambda: &'a mut [f64],
    /// Of L, for R-SVGP with exact traces; the lower triangle by columns. It takes a triangular solve, and
    /// natural-gradient steps do without it.
    pub root: Option<&'a mut [f64]>,
}

impl LSpace {
    /// Adds J of the lower triangle times `factor`.
    pub(super) fn add_j(&self, target: MatMut<f64>, factor: f64) {
        let (own, m) = (self.scaled.as_ref(), self.scaled.nrows());
        let (left, right) = if self.relaxed { (UPPER, LOWER) } else { (LOWER, UPPER) };
        let (a, b) = ((own.transpose(), left), (own, right));
        structured((target, LOWER), Accum::Add, a, b, factor, par_for(m));
    }

    /// Goes the way back, from Φα (M×P) and the lower triangle of G (M×M), at the slope κ in the KL
    /// divergence.
    pub fn pull(
        &mut self,
        kappa: f64,
        phi_alpha: MatRef<f64>,
        gram: MatRef<f64>,
        out: Adjoints<'_>,
    ) {
        let (m, latents) = (self.mean.nrows(), self.mean.ncols());
        let (par, half) = (par_for(m), 0.5 * kappa * latents as f64);
        let plain = self.relaxed && self.probes.ncols() > 0 && self.estimate == Estimate::Plain;
        self.quadratic();
        sized(&mut self.h, m, latents);
        self.h.copy_from(phi_alpha);
        for j in 0..latents {
            let image = column(self.small[0].as_ref(), j);
            self.h.col_as_slice_mut(j).iter_mut().zip(image).for_each(|(h, i)| *h += kappa * i);
        }
        // Ē
        sized(&mut self.core, m, m);
        let sketched = self.relaxed && self.probes.ncols() > 0;
        by_columns(self.core.as_mut(), &mut vec![(); m], &|j, own, ()| {
            let target = &mut own[j..];
            target.copy_from_slice(&column(gram, j)[j..]);
            if !sketched {
                target[0] += half;
                if self.relaxed {
                    let e = &column(self.inversion.residual(), j)[j..];
                    target.iter_mut().zip(e).for_each(|(t, e)| *t += 2.0 * half * e);
                }
            }
        });
        let mean = self.mean.transpose();
        gram_lower(self.core.as_mut(), Accum::Add, mean, mean, 0.5 * kappa, par);
        if self.preconditioner == Preconditioner::Inverse {
            let (h, w) = (self.h.transpose(), self.w.transpose());
            gram_lower(self.core.as_mut(), Accum::Add, h, w, -0.5, par);
            gram_lower(self.core.as_mut(), Accum::Add, w, h, -0.5, par);
        }
        if !sketched {
            let mut core = std::mem::replace(&mut self.core, Mat::new());
            self.add_j(core.as_mut(), -half);
            self.core = core;
        } else if !plain {
            let weight = 0.5 * half / self.probes.ncols() as f64;
            let (xi, r) = (self.probes.transpose(), self.sketch.r.transpose());
            gram_lower(self.core.as_mut(), Accum::Add, xi, r, weight, par);
            gram_lower(self.core.as_mut(), Accum::Add, r, xi, weight, par);
        }
        mirror_lower(self.core.as_mut());
        self.root.sandwich(&self.core, self.products, &mut self.work, out.kuu);
        if let Some(root) = out.root {
            self.pull_root(kappa, phi_alpha, gram, root);
        }
        // λ̄ from what K̃ gets, then what only Kuu gets
        let [_, a, _] = &mut self.small;
        self.root.times(self.mean.as_ref(), a);
        if plain {
            let weight = 0.5 * half / self.probes.ncols() as f64;
            let Sketch { x, r, d, .. } = &self.sketch;
            let add = |target: &mut Mat<f64>, left: &Mat<f64>, right: &Mat<f64>| {
                let (left, right) = (left.transpose(), right.transpose());
                gram_lower(target.as_mut(), Accum::Add, left, right, weight, par);
                gram_lower(target.as_mut(), Accum::Add, right, left, weight, par);
            };
            add(out.kuu, r, x);
            let before: Vec<f64> = (0..m).map(|i| out.kuu[(i, i)]).collect();
            add(out.kuu, &self.probes, d);
            mirror_lower(out.kuu.as_mut());
            out.lambda.copy_from_slice(&before);
        } else {
            for i in 0..m {
                out.lambda[i] = out.kuu[(i, i)] + half * (self.squares[i] - self.crossed[i]);
            }
        }
        for i in 0..m {
            let weights: f64 = (0..latents).map(|p| a[(i, p)] * a[(i, p)]).sum();
            out.lambda[i] -= 0.5 * kappa * weights + half / self.lambda[i];
        }
        self.pull_mean(out.mean);
    }

    /// Computes the slope in the mean by its features, from h.
    fn pull_mean(&mut self, out: &mut [f64]) {
        let (m, latents) = (self.mean.nrows(), self.mean.ncols());
        let [_, a, other] = &mut self.small;
        match self.preconditioner {
            Preconditioner::Identity => self.root.solve(self.h.as_ref(), true, a),
            Preconditioner::Naive => self.root.times(self.h.as_ref(), a),
            Preconditioner::Inverse => {
                sized(other, m, latents);
                other.copy_from(&self.h);
                if self.relaxed {
                    self.inversion.add_times(self.h.as_ref(), other, -1.0);
                }
                self.root.times(other.as_ref(), a);
            }
        }
        for p in 0..latents {
            out[p * m..(p + 1) * m].copy_from_slice(column(a.as_ref(), p));
        }
    }
}

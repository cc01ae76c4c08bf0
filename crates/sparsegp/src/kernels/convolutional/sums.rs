//! Sums over the distinct patches of images, stretch by stretch on all threads: covariances with inducing patches, variances, and
//! the ways back that want no slopes of images.

use super::distinct::Distinct;
use super::{Block, Convolutional};
use crate::kernels::Cotangents;
use crate::linalg::{Mat, MatMut, MatRef, column, column_mut, sized, sum_of_products};
use faer::reborrow::ReborrowMut;
use rayon::prelude::*;

impl Convolutional {
    /// Writes the covariances Σ_p ω_p k_g(z, xᵖ) of images `x` (n×D) with values of g at inducing patches `z` (M×d) into `out`
    /// (n×M).
    pub fn cross(&self, x: MatRef<f64>, z: MatRef<f64>, mut out: MatMut<f64>) {
        let omega = self.omega();
        let parts = self.in_parts(x.nrows(), |start, len| {
            let (mut own, mut block) = (Distinct::new(), Block::new(false));
            own.find(&self.grid, x.subrows(start, len), &omega);
            sized(&mut block.k, own.omega.len(), z.nrows());
            let (patches, k) = (own.patches.as_ref(), block.k.as_mut());
            self.base.evaluate(patches, Some(z), k, &mut block.tape);
            let mut part = Mat::zeros(len, z.nrows());
            for m in 0..z.nrows() {
                let k = column(block.k.as_ref(), m);
                for (i, out) in part.col_as_slice_mut(m).iter_mut().enumerate() {
                    *out = sum_of_products(own.of(i, k), own.of(i, &own.omega));
                }
            }
            part
        });
        for (start, part) in parts {
            out.rb_mut().subrows_mut(start, part.nrows()).copy_from(&part);
        }
    }

    /// Returns what `work` makes of stretches of so many images, from their first and their number,
    /// on all threads; in order, so that sums do not depend on the number of threads.
    fn in_parts<T: Send>(
        &self,
        images: usize,
        work: impl Fn(usize, usize) -> T + Sync,
    ) -> Vec<(usize, T)> {
        let each = self.images();
        let one = |part: usize| (part * each, work(part * each, each.min(images - part * each)));
        (0..images.div_ceil(each)).into_par_iter().map(one).collect()
    }

    /// Computes [`Convolutional::cross_vjp`] without slopes of images: equal patches count once.
    pub(super) fn cross_vjp_of_distinct(
        &self,
        x: MatRef<f64>,
        z: MatRef<f64>,
        k_bar: MatRef<f64>,
        sinks: &mut Cotangents<'_>,
    ) {
        let (omega, base) = (self.omega(), self.base.num_params());
        let wanted = sinks.z.is_some();
        let parts = self.in_parts(x.nrows(), |start, len| {
            let (mut own, mut block) = (Distinct::new(), Block::new(true));
            own.find(&self.grid, x.subrows(start, len), &omega);
            let rows = own.omega.len();
            let mut slopes = vec![0.0; rows];
            let Block { k, bar, tape, .. } = &mut block;
            [&mut *k, &mut *bar].into_iter().for_each(|buffer| sized(buffer, rows, z.nrows()));
            self.base.evaluate(own.patches.as_ref(), Some(z), k.as_mut(), tape);
            for m in 0..z.nrows() {
                let of_images = &column(k_bar, m)[start..start + len];
                let (k, bar) = (column(k.as_ref(), m), bar.col_as_slice_mut(m));
                for (i, of_image) in of_images.iter().enumerate() {
                    let rows = own.starts[i]..own.starts[i + 1];
                    let all = bar[rows.clone()].iter_mut().zip(&mut slopes[rows.clone()]);
                    let known = own.omega[rows.clone()].iter().zip(&k[rows]);
                    for ((bar, slope), (omega, k)) in all.zip(known) {
                        *bar = of_image * omega;
                        *slope += of_image * k;
                    }
                }
            }
            let mut omega_bar = vec![0.0; omega.len()];
            own.add_by_omega(&slopes, &mut omega_bar);
            let mut params = vec![0.0; base];
            let mut z_bar = wanted.then(|| Mat::<f64>::zeros(z.nrows(), z.ncols()));
            let z_sink = z_bar.as_mut().map(|z| z.as_mut());
            let mut sinks = Cotangents { params: &mut params, x: None, z: z_sink };
            self.base.vjp(
                own.patches.as_ref(),
                Some(z),
                k.as_ref(),
                bar.as_mut(),
                tape,
                &mut sinks,
            );
            (params, omega_bar, z_bar)
        });
        for (_, (params, omega_bar, z_bar)) in parts {
            sinks.params.iter_mut().zip(params).for_each(|(t, v)| *t += v);
            self.add_weights(&omega_bar, sinks.params);
            if let (Some(z), Some(own)) = (&mut sinks.z, z_bar) {
                for j in 0..own.ncols() {
                    let target = column_mut(z.rb_mut(), j).iter_mut();
                    target.zip(own.col_as_slice(j)).for_each(|(t, v)| *t += v);
                }
            }
        }
    }

    /// Computes [`Kernel::diag_vjp`](crate::kernels::Kernel::diag_vjp) without slopes of images,
    /// likewise.
    pub(super) fn diag_vjp_of_distinct(
        &self,
        x: MatRef<f64>,
        weights: &[f64],
        sinks: &mut Cotangents<'_>,
    ) {
        let (omega, base) = (self.omega(), self.base.num_params());
        let parts = self.in_parts(x.nrows(), |start, len| {
            let (mut own, mut block) = (Distinct::new(), Block::new(true));
            let (mut params, mut omega_bar) = (vec![0.0; base], vec![0.0; omega.len()]);
            let mut slopes = Vec::new();
            for (i, weight) in weights.iter().enumerate().skip(start).take(len) {
                own.find(&self.grid, x.subrows(i, 1), &omega);
                let rows = own.omega.len();
                let Block { k, bar, tape, .. } = &mut block;
                [&mut *k, &mut *bar].into_iter().for_each(|buffer| sized(buffer, rows, rows));
                self.base.evaluate(own.patches.as_ref(), None, k.as_mut(), tape);
                slopes.clear();
                for q in 0..rows {
                    let k = column(k.as_ref(), q);
                    slopes.push(2.0 * weight * sum_of_products(k, &own.omega));
                    let of_column = weight * own.omega[q];
                    let all = bar.col_as_slice_mut(q).iter_mut().zip(&own.omega);
                    all.for_each(|(bar, w)| *bar = of_column * w);
                }
                own.add_by_omega(&slopes, &mut omega_bar);
                let mut sinks = Cotangents { params: &mut params, x: None, z: None };
                let patches = own.patches.as_ref();
                self.base.vjp(patches, None, k.as_ref(), bar.as_mut(), tape, &mut sinks);
            }
            (params, omega_bar)
        });
        for (_, (params, omega_bar)) in parts {
            sinks.params.iter_mut().zip(params).for_each(|(t, v)| *t += v);
            self.add_weights(&omega_bar, sinks.params);
        }
    }

    /// Writes the variances of f at images (n×D) into `out` (n numbers).
    pub(super) fn variances(&self, x: MatRef<f64>, out: &mut [f64]) {
        let omega = self.omega();
        let parts = self.in_parts(x.nrows(), |start, len| {
            let (mut own, mut block) = (Distinct::new(), Block::new(false));
            let one = |i: usize| {
                own.find(&self.grid, x.subrows(i, 1), &omega);
                let rows = own.omega.len();
                sized(&mut block.k, rows, rows);
                let (patches, k) = (own.patches.as_ref(), block.k.as_mut());
                self.base.evaluate(patches, None, k, &mut block.tape);
                let of = |q: usize| sum_of_products(column(block.k.as_ref(), q), &own.omega);
                (0..rows).map(|q| own.omega[q] * of(q)).sum::<f64>()
            };
            (start..start + len).map(one).collect::<Vec<_>>()
        });
        for (start, part) in parts {
            out[start..start + part.len()].copy_from_slice(&part);
        }
    }
}

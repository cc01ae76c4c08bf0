//! A block of rows in a layer: marginals μ, s, r of its functions, the samples f = μ + √(s + v r) ε of a hidden one
//! (Salimbeni & Deisenroth 2017, their reparameterised samples; v of Titsias 2025, Eq. 22–23), and the way back.

use super::group::Group;
use super::images::{to_images, to_patches};
use super::layer::{Layer, LayerSums, LayerWork, Marginals, Slopes};
use super::pass::Pass;
use crate::linalg::{Mat, MatMut, MatRef, column, column_mut, sized};
use faer::reborrow::ReborrowMut;

/// Part of k(x, x) below which a variance under a root counts as this part of it, with slope 0: r is a difference.
const FLOOR: f64 = 1e-12;

/// A block of rows in a layer.
#[derive(Debug, Default)]
pub(super) struct Block {
    passes: Vec<Pass>,
    pub(super) marginals: Marginals,
    pub(super) slopes: Slopes,
    /// Patches of images, and what goes with them.
    patches: Buffer,
    patches_bar: Buffer,
    pixels: Buffer,
}

/// A matrix that begins without rows.
#[derive(Debug)]
struct Buffer(Mat<f64>);

impl Default for Buffer {
    fn default() -> Self {
        Self(Mat::new())
    }
}

/// Returns the part of a draw that is a group's.
fn part<'a>(draw: Option<MatRef<'a, f64>>, at: usize, group: &Group) -> Option<MatRef<'a, f64>> {
    draw.map(|u| u.submatrix(0, at, group.inducing.len(), group.outputs()))
}

impl Block {
    pub(super) fn forward(
        &mut self,
        layer: &Layer,
        work: &LayerWork,
        x: MatRef<f64>,
        draw: Option<MatRef<f64>>,
        record: bool,
    ) {
        let Self { passes, marginals, patches, .. } = self;
        let x = match &layer.grid {
            Some(grid) => {
                grid.gather(x, &mut patches.0);
                patches.0.as_ref()
            }
            None => x,
        };
        passes.resize_with(layer.groups.len(), Pass::default);
        marginals.sized(x.nrows(), layer.functions());
        layer.mean.evaluate(x, marginals.mean.as_mut());
        let mut at = 0;
        for ((group, own), pass) in layer.groups.iter().zip(&work.groups).zip(passes) {
            let out = (&mut *marginals, at);
            pass.forward((group, own), x, part(draw, at, group), out, record);
            at += group.outputs();
        }
    }

    /// Goes back from the slopes, which are there, to sums and, if asked for, the gradient of the
    /// rows (added).
    pub(super) fn back(
        &mut self,
        layer: &Layer,
        work: &LayerWork,
        x: MatRef<f64>,
        draw: Option<MatRef<f64>>,
        sums: &mut LayerSums,
        x_bar: Option<MatMut<f64>>,
    ) {
        let Self { passes, slopes, patches, patches_bar, .. } = self;
        let (mut images_bar, mut x_bar) = match &layer.grid {
            Some(_) => (x_bar, None),
            None => (None, x_bar),
        };
        let x = if layer.grid.is_some() { patches.0.as_ref() } else { x };
        if images_bar.is_some() {
            sized(&mut patches_bar.0, x.nrows(), x.ncols());
            patches_bar.0.fill(0.0);
            x_bar = Some(patches_bar.0.as_mut());
        }
        layer.mean.vjp(x, slopes.a.as_ref(), &mut sums.mean);
        if let Some(x_bar) = &mut x_bar {
            layer.mean.pull_inputs(x, slopes.a.as_ref(), x_bar.rb_mut());
        }
        let mut at = 0;
        let parts = layer.groups.iter().zip(&work.groups).zip(passes);
        for (((group, own), pass), sums) in parts.zip(&mut sums.groups) {
            let x_bar = x_bar.as_mut().map(|x| x.rb_mut());
            let slopes = (&*slopes, at);
            pass.back((group, own), x, part(draw, at, group), slopes, sums, x_bar);
            at += group.outputs();
        }
        if let (Some(grid), Some(images_bar)) = (&layer.grid, &mut images_bar) {
            grid.scatter(patches_bar.0.as_ref(), images_bar.rb_mut());
        }
    }

    /// Samples f = μ + √(s + v r) ε into `f`, where ε was, and leaves in its place ε/2√(s + v r), the slope of f in the
    /// variance, which is 0 where the floor acts; of images a row for every patch.
    pub(super) fn sample(&mut self, layer: &Layer, noise: &mut Mat<f64>, f: MatMut<f64>) {
        self.sample_with(layer, |p| layer.factor(p), noise, f);
    }

    /// Samples the same with other factors v.
    pub(super) fn sample_with(
        &mut self,
        layer: &Layer,
        factor: impl Fn(usize) -> f64,
        noise: &mut Mat<f64>,
        f: MatMut<f64>,
    ) {
        if layer.grid.is_none() {
            return self.draw(factor, noise, f);
        }
        let mut pixels = std::mem::take(&mut self.pixels).0;
        to_patches(noise.as_ref(), layer.tiles(), layer.functions(), &mut pixels);
        std::mem::swap(noise, &mut pixels);
        sized(&mut pixels, noise.nrows(), noise.ncols());
        self.draw(factor, noise, pixels.as_mut());
        to_images(pixels.as_ref(), layer.tiles(), f);
        self.pixels.0 = pixels;
    }

    fn draw(&self, factor: impl Fn(usize) -> f64, noise: &mut Mat<f64>, mut f: MatMut<f64>) {
        let Marginals { mean, s, r, prior } = &self.marginals;
        for p in 0..mean.ncols() {
            let factor = factor(p);
            let [mean, s, r, prior] = [mean, s, r, prior].map(|a| column(a.as_ref(), p));
            let target = column_mut(f.rb_mut(), p);
            for (i, (f, noise)) in target.iter_mut().zip(noise.col_as_slice_mut(p)).enumerate() {
                let (variance, floor) = (s[i] + factor * r[i], FLOOR * prior[i]);
                // not by `max`, which would hide NaN
                let acts = variance <= floor;
                let root = if acts { floor } else { variance }.sqrt();
                *f = mean[i] + root * *noise;
                *noise = if acts { 0.0 } else { *noise / (2.0 * root) };
            }
        }
    }
}

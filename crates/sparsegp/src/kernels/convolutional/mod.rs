//! Convolutional kernels (van der Wilk, Rasmussen & Hensman 2017, their weighted kernel): f(x) = Σ_p ω_p g(xᵖ) over the patches of an
//! image, with one function g of patches whose kernel is the base.
//!
//! ```text
//! k(x, x′) = Σ_pp′ ω_p ω_p′ k_g(xᵖ, x′ᵖ′)      cov(g(z), f(x)) = Σ_p ω_p k_g(z, xᵖ)
//! ```
//!
//! ω_p = w_p/P, so that the variance does not grow with the image (the paper's code and GPflow), or ω_p = w_p (the paper's
//! text) with `normalise=false`. Values of g at inducing patches are not values of f:
//! [`Convolutional::cross`] has their covariances with images, and those among them are the base's.
//! Pixels should be scaled by one factor for all: columns that are standardised one by one make
//! equal patches at different places unlike.

mod distinct;
mod patches;
mod spec;
mod sums;

pub use patches::{Colour, Grid};

use super::registry::{Args, Entry};
use super::{Cotangents, Inputs, Interdomain, Kernel, Tape, Unit};
use crate::error::{Error, Result};
use crate::linalg::{Mat, MatMut, MatRef, column, column_mut, sized};
use crate::params::{Param, Transform, Visitor, VisitorMut, prefixed, prefixed_mut};
use distinct::Distinct;
use faer::reborrow::ReborrowMut;
use serde_json::{Value, json};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "convolutional",
    aliases: &["conv"],
    about: "convolutional, Σ weights[p]·weights[q]·base(patch p, patch q) over the patches of images of pixels in columns",
    build: spec::build,
};

/// Rows of patches that are worked on at a time.
const ROWS: usize = 2048;

/// The convolutional kernel of images.
#[derive(Clone, Debug)]
pub struct Convolutional {
    base: Box<dyn Kernel>,
    weights: Param,
    grid: Grid,
    dims: Vec<usize>,
    dims_given: bool,
    normalise: bool,
    /// Columns of the inputs that it was made for, D.
    inputs: usize,
}

/// Buffers of a block of patches.
struct Block {
    patches: Mat<f64>,
    k: Mat<f64>,
    bar: Mat<f64>,
    patches_bar: Mat<f64>,
    other_bar: Mat<f64>,
    tape: Tape,
}

impl Block {
    fn new(recording: bool) -> Self {
        let none = Mat::new;
        let tape = if recording { Tape::recording() } else { Tape::off() };
        let (patches, k, bar) = (none(), none(), none());
        Self { patches, k, bar, patches_bar: none(), other_bar: none(), tape }
    }
}

/// Adds sums of `count` rows each, with weights, to `out` with a factor: Σ_p ω_p k[(i, p)].
fn add_sums(k: &[f64], omega: &[f64], factor: f64, out: &mut [f64]) {
    for (out, k) in out.iter_mut().zip(k.chunks_exact(omega.len())) {
        *out += factor * k.iter().zip(omega).map(|(k, w)| k * w).sum::<f64>();
    }
}

impl Convolutional {
    /// Reads it from the JSON of a specification, for those who have inducing patches.
    ///
    /// # Errors
    /// As for [`super::build`]; [`Error::Spec`] for another kernel.
    pub fn from_json(json: &Value, inputs: Inputs<'_>) -> Result<Self> {
        match (json.get("type").and_then(Value::as_str), json.as_object()) {
            (Some("convolutional" | "conv"), Some(entries)) => {
                spec::read(&Args::new(ENTRY.name, entries, inputs))
            }
            _ => Err(Error::Spec {
                spec: json.to_string(),
                position: 0,
                reason: format!("inducing patches are those of the kernel `{}`", ENTRY.name),
            }),
        }
    }

    /// Returns the kernel of g, of patches (d columns).
    pub fn base(&self) -> &dyn Kernel {
        &*self.base
    }

    /// Returns where the P patches of an image are, and their d entries.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// Returns ω, P numbers, one for every patch: w/P, or w with `normalise=false`.
    pub fn omega(&self) -> Vec<f64> {
        let share = if self.normalise { 1.0 / self.grid.count() as f64 } else { 1.0 };
        self.weights.value().iter().map(|w| share * w).collect()
    }

    /// Adds slopes by ω to those of the weights.
    fn add_weights(&self, omega_bar: &[f64], params: &mut [f64]) {
        let share = if self.normalise { 1.0 / self.grid.count() as f64 } else { 1.0 };
        let own = &mut params[self.base.num_params()..];
        own.iter_mut().zip(omega_bar).for_each(|(t, bar)| *t += share * bar);
    }

    fn images(&self) -> usize {
        (ROWS / self.grid.count()).max(1)
    }

    /// Returns the distinct patches of an image (1×D) in the order of their first appearance, P′×d with P′ ≤ P, with the P′ sums
    /// of ω of equal ones: Σ_p ω_p g(xᵖ) has no more terms than that.
    pub fn merged(&self, image: MatRef<f64>) -> (Mat<f64>, Vec<f64>) {
        let mut own = Distinct::new();
        own.find(&self.grid, image, &self.omega());
        (own.patches, own.omega)
    }

    /// Returns whether these rows are patches, not images.
    fn are_patches(&self, a: MatRef<f64>) -> bool {
        self.interdomain().is_some_and(|own| own.columns == a.ncols())
    }

    /// Pulls the cotangent `k_bar` (n×M) of [`Convolutional::cross`] back into `sinks`: the kernel's parameters, images (n×D)
    /// and inducing patches (M×d).
    pub fn cross_vjp(
        &self,
        x: MatRef<f64>,
        z: MatRef<f64>,
        k_bar: MatRef<f64>,
        sinks: &mut Cotangents<'_>,
    ) {
        if sinks.x.is_none() {
            return self.cross_vjp_of_distinct(x, z, k_bar, sinks);
        }
        let (n, count, omega) = (x.nrows(), self.grid.count(), self.omega());
        let mut omega_bar = vec![0.0; count];
        let mut block = Block::new(true);
        for start in (0..n).step_by(self.images()) {
            let len = self.images().min(n - start);
            self.grid.gather(x.subrows(start, len), &mut block.patches);
            for buffer in [&mut block.k, &mut block.bar] {
                sized(buffer, len * count, z.nrows());
            }
            let (patches, k) = (block.patches.as_ref(), block.k.as_mut());
            self.base.evaluate(patches, Some(z), k, &mut block.tape);
            for m in 0..z.nrows() {
                let of_images = &column(k_bar, m)[start..start + len];
                let (k, bar) = (column(block.k.as_ref(), m), block.bar.col_as_slice_mut(m));
                self.spread(of_images, &omega, 1.0, bar);
                for (bar, k) in of_images.iter().zip(k.chunks_exact(count)) {
                    omega_bar.iter_mut().zip(k).for_each(|(t, k)| *t += bar * k);
                }
            }
            self.pull_block(&mut block, Some(z), sinks, start);
        }
        self.add_weights(&omega_bar, sinks.params);
    }

    /// Computes the cotangent of patches from that of images.
    fn spread(&self, of_images: &[f64], omega: &[f64], factor: f64, out: &mut [f64]) {
        for (bar, out) in of_images.iter().zip(out.chunks_exact_mut(omega.len())) {
            out.iter_mut().zip(omega).for_each(|(o, w)| *o = factor * bar * w);
        }
    }

    /// Computes cotangents of a block of patches from those of images, whose second image is one: Σ
    /// over pairs of ω ω k; those of ω are added.
    fn pull_sums(&self, of_images: &[f64], omega: &[f64], block: &mut Block, sum: &mut [f64]) {
        for (q, factor) in omega.iter().enumerate() {
            let (k, bar) = (column(block.k.as_ref(), q), block.bar.col_as_slice_mut(q));
            self.spread(of_images, omega, *factor, bar);
            for (bar, k) in of_images.iter().zip(k.chunks_exact(omega.len())) {
                let mut row = 0.0;
                for (p, k) in k.iter().enumerate() {
                    sum[p] += bar * factor * k;
                    row += omega[p] * k;
                }
                sum[q] += bar * row;
            }
        }
    }

    /// Pulls the cotangent of a block of patches back, those of images that begin at the row `start`.
    fn pull_block(
        &self,
        block: &mut Block,
        z: Option<MatRef<f64>>,
        sinks: &mut Cotangents<'_>,
        start: usize,
    ) {
        let Block { patches, k, bar, patches_bar, tape, .. } = block;
        let base = self.base.num_params();
        let wanted = sinks.x.is_some();
        if wanted {
            sized(patches_bar, patches.nrows(), patches.ncols());
            patches_bar.fill(0.0);
        }
        let mut own = Cotangents {
            params: &mut sinks.params[..base],
            x: wanted.then(|| patches_bar.as_mut()),
            z: sinks.z.as_mut().filter(|_| z.is_some()).map(|z| z.rb_mut()),
        };
        self.base.vjp(patches.as_ref(), z, k.as_ref(), bar.as_mut(), tape, &mut own);
        if let Some(x) = &mut sinks.x {
            let len = patches.nrows() / self.grid.count();
            self.grid.scatter(patches_bar.as_ref(), x.rb_mut().subrows_mut(start, len));
        }
    }

    /// Walks over blocks of pairs of images: calls `f` with the first image, how many, and the
    /// second one. Without other images only those pairs whose first index is above the second.
    fn pairs(&self, n: usize, others: Option<usize>, mut f: impl FnMut(usize, usize, usize)) {
        for j in 0..others.unwrap_or(n) {
            let first = if others.is_some() { 0 } else { j + 1 };
            for start in (first..n).step_by(self.images()) {
                f(start, self.images().min(n - start), j);
            }
        }
    }
}

impl Kernel for Convolutional {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        prefixed(&"base", visitor, |v| self.base.visit(v));
        visitor(&"weights", &self.weights);
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        prefixed_mut(&"base", visitor, |v| self.base.visit_mut(v));
        visitor(&"weights", &mut self.weights);
    }

    fn evaluate(
        &self,
        x: MatRef<f64>,
        z: Option<MatRef<f64>>,
        mut out: MatMut<f64>,
        tape: &mut Tape,
    ) {
        match (self.are_patches(x), z.map(|z| (self.are_patches(z), z))) {
            (true, None | Some((true, _))) => return self.base.evaluate(x, z, out, tape),
            (false, Some((true, z))) => return self.cross(x, z, out),
            (true, Some((false, z))) => {
                let mut turned = Mat::zeros(z.nrows(), x.nrows());
                self.cross(z, x, turned.as_mut());
                return out.copy_from(turned.transpose());
            }
            (false, None | Some((false, _))) => {}
        }
        let (count, omega) = (self.grid.count(), self.omega());
        let (mut block, mut second) = (Block::new(false), Mat::new());
        self.pairs(x.nrows(), z.map(|z| z.nrows()), |start, len, j| {
            self.grid.gather(x.subrows(start, len), &mut block.patches);
            self.grid.gather(z.unwrap_or(x).subrows(j, 1), &mut second);
            sized(&mut block.k, len * count, count);
            let (patches, k) = (block.patches.as_ref(), block.k.as_mut());
            self.base.evaluate(patches, Some(second.as_ref()), k, &mut block.tape);
            let target = &mut column_mut(out.rb_mut(), j)[start..start + len];
            target.fill(0.0);
            for (q, w) in omega.iter().enumerate() {
                add_sums(column(block.k.as_ref(), q), &omega, *w, target);
            }
        });
        if z.is_none() {
            let mut own = vec![0.0; x.nrows()];
            self.diag(x, &mut own);
            own.iter().enumerate().for_each(|(i, v)| out[(i, i)] = *v);
            crate::linalg::mirror_lower(out);
        }
    }

    /// Recomputes covariances of patches: those of all pairs of images are too many to be kept.
    fn vjp(
        &self,
        x: MatRef<f64>,
        z: Option<MatRef<f64>>,
        k: MatRef<f64>,
        k_bar: MatMut<f64>,
        tape: &mut Tape,
        sinks: &mut Cotangents<'_>,
    ) {
        match (self.are_patches(x), z.map(|z| (self.are_patches(z), z))) {
            (true, None | Some((true, _))) => {
                let base = self.base.num_params();
                let mut own = Cotangents {
                    params: &mut sinks.params[..base],
                    x: sinks.x.as_mut().map(|x| x.rb_mut()),
                    z: sinks.z.as_mut().map(|z| z.rb_mut()),
                };
                return self.base.vjp(x, z, k, k_bar, tape, &mut own);
            }
            (false, Some((true, z))) => return self.cross_vjp(x, z, k_bar.as_ref(), sinks),
            (true, Some((false, z))) => {
                let Cotangents { params, x: of_patches, z: of_images } = sinks;
                let mut own = Cotangents {
                    params,
                    x: of_images.as_mut().map(|x| x.rb_mut()),
                    z: of_patches.as_mut().map(|z| z.rb_mut()),
                };
                // rows of patches are worked on side by side
                return self.cross_vjp(z, x, k_bar.transpose().to_owned().as_ref(), &mut own);
            }
            (false, None | Some((false, _))) => {}
        }
        let (count, omega, base) = (self.grid.count(), self.omega(), self.base.num_params());
        let k_bar = k_bar.as_ref();
        let mut omega_bar = vec![0.0; count];
        let (mut block, mut second) = (Block::new(true), Mat::new());
        let mut of_images = Vec::new();
        self.pairs(x.nrows(), z.map(|z| z.nrows()), |start, len, j| {
            self.grid.gather(x.subrows(start, len), &mut block.patches);
            self.grid.gather(z.unwrap_or(x).subrows(j, 1), &mut second);
            for buffer in [&mut block.k, &mut block.bar] {
                sized(buffer, len * count, count);
            }
            let (patches, k) = (block.patches.as_ref(), block.k.as_mut());
            self.base.evaluate(patches, Some(second.as_ref()), k, &mut block.tape);
            of_images.clear();
            of_images.extend_from_slice(&column(k_bar, j)[start..start + len]);
            if z.is_none() {
                // what is mirrored
                of_images.iter_mut().enumerate().for_each(|(i, v)| *v += k_bar[(j, start + i)]);
            }
            self.pull_sums(&of_images, &omega, &mut block, &mut omega_bar);
            let Block { patches, k, bar, patches_bar, other_bar, tape } = &mut block;
            let other = if z.is_some() { &sinks.z } else { &sinks.x };
            let wanted = [sinks.x.is_some(), other.is_some()];
            for (buffer, rows) in [(&mut *patches_bar, len * count), (&mut *other_bar, count)] {
                sized(buffer, rows, self.grid.size());
                buffer.fill(0.0);
            }
            let mut own = Cotangents {
                params: &mut sinks.params[..base],
                x: wanted[0].then(|| patches_bar.as_mut()),
                z: wanted[1].then(|| other_bar.as_mut()),
            };
            let second = Some(second.as_ref());
            self.base.vjp(patches.as_ref(), second, k.as_ref(), bar.as_mut(), tape, &mut own);
            if let Some(sink) = &mut sinks.x {
                self.grid.scatter(patches_bar.as_ref(), sink.rb_mut().subrows_mut(start, len));
            }
            let sink = if z.is_some() { &mut sinks.z } else { &mut sinks.x };
            if let Some(sink) = sink {
                self.grid.scatter(other_bar.as_ref(), sink.rb_mut().subrows_mut(j, 1));
            }
        });
        self.add_weights(&omega_bar, sinks.params);
        if z.is_none() {
            let own: Vec<f64> = (0..x.nrows()).map(|i| k_bar[(i, i)]).collect();
            self.diag_vjp(x, &own, sinks);
        }
    }

    fn diag(&self, x: MatRef<f64>, out: &mut [f64]) {
        if self.are_patches(x) {
            return self.base.diag(x, out);
        }
        self.variances(x, out);
    }

    fn diag_vjp(&self, x: MatRef<f64>, weights: &[f64], sinks: &mut Cotangents<'_>) {
        if self.are_patches(x) {
            let params = &mut sinks.params[..self.base.num_params()];
            let x_bar = sinks.x.as_mut().map(|x| x.rb_mut());
            return self.base.diag_vjp(x, weights, &mut Cotangents { params, x: x_bar, z: None });
        }
        if sinks.x.is_none() {
            return self.diag_vjp_of_distinct(x, weights, sinks);
        }
        let (count, omega) = (self.grid.count(), self.omega());
        let mut omega_bar = vec![0.0; count];
        let mut block = Block::new(true);
        for (i, weight) in weights.iter().enumerate() {
            self.grid.gather(x.subrows(i, 1), &mut block.patches);
            for buffer in [&mut block.k, &mut block.bar] {
                sized(buffer, count, count);
            }
            let (patches, k) = (block.patches.as_ref(), block.k.as_mut());
            self.base.evaluate(patches, None, k, &mut block.tape);
            for q in 0..count {
                let k = column(block.k.as_ref(), q);
                omega_bar[q] +=
                    2.0 * weight * k.iter().zip(&omega).map(|(k, w)| k * w).sum::<f64>();
                let bar = block.bar.col_as_slice_mut(q);
                bar.iter_mut().zip(&omega).for_each(|(bar, w)| *bar = weight * w * omega[q]);
            }
            self.pull_block(&mut block, None, sinks, i);
        }
        self.add_weights(&omega_bar, sinks.params);
    }

    fn units(&self) -> Vec<Option<Unit>> {
        // an entry of a patch is many columns
        let base = self.base.units().into_iter().map(|unit| unit.filter(|u| u.input.is_none()));
        base.chain(self.weights.value().iter().map(|_| Some(Unit::NONE))).collect()
    }

    fn relevance(&self, relevance: &mut [f64]) {
        if self.interdomain().is_some_and(|own| own.columns == relevance.len()) {
            return self.base.relevance(relevance);
        }
        let mut own = vec![0.0; self.grid.size()];
        self.base.relevance(&mut own);
        for p in 0..self.grid.count() {
            for (pixel, own) in self.grid.columns(p).iter().zip(&own) {
                relevance[*pixel] = relevance[*pixel].max(*own);
            }
        }
    }

    fn initialise(&mut self, spreads: &[f64], variance: f64) {
        let count = self.grid.count();
        let mut own = vec![0.0; self.grid.size()];
        for p in 0..count {
            let places = self.grid.columns(p).iter();
            own.iter_mut().zip(places).for_each(|(t, pixel)| *t += spreads[*pixel] / count as f64);
        }
        // of patches that are all alike
        let sum = self.omega().iter().sum::<f64>().abs();
        let share = if sum > 0.0 { 1.0 / (sum * sum) } else { 1.0 };
        self.base.initialise(&own, share * variance);
    }

    fn check(&self, x: MatRef<f64>) -> Result<()> {
        self.grid.fits(x.ncols())
    }

    fn interdomain(&self) -> Option<Interdomain> {
        let (columns, inputs) = (self.grid.size(), self.inputs);
        (columns != inputs).then_some(Interdomain { columns, inputs })
    }

    fn choose_interdomain(&self, x: MatRef<f64>, most: usize, rng: &mut dyn rand::Rng) -> Mat<f64> {
        let (n, count) = (x.nrows(), self.grid.count());
        let mut all = Mat::new();
        let mut found = std::collections::HashSet::new();
        let mut kept: Vec<Vec<f64>> = Vec::new();
        // most of an image may be background: as many looks as there may be patches, ten times over
        for _ in 0..10 * most {
            if kept.len() == most || n == 0 {
                break;
            }
            let (image, p) = (crate::rng::below(rng, n), crate::rng::below(rng, count));
            self.grid.gather(x.subrows(image, 1), &mut all);
            let patch: Vec<f64> = (0..self.grid.size()).map(|e| all[(p, e)] + 0.0).collect();
            if found.insert(patch.iter().map(|v| v.to_bits()).collect::<Vec<u64>>()) {
                kept.push(patch);
            }
        }
        Mat::from_fn(kept.len(), self.grid.size(), |i, e| kept[i][e])
    }

    fn alike(&self) -> Vec<Vec<usize>> {
        vec![self.dims.clone()]
    }

    fn to_json(&self) -> Value {
        let colour = if self.grid.colour() == Colour::Joint { "joint" } else { "channels" };
        let mut json = json!({
            "type": ENTRY.name,
            "image": self.grid.image(),
            "patch": self.grid.patch(),
            "stride": self.grid.stride(),
            "colour": colour,
            "normalise": self.normalise,
            "base": self.base.to_json(),
            "weights": self.weights.to_json(Transform::Identity),
        });
        if self.dims_given {
            json["active_dims"] = json!(self.dims);
        }
        json
    }

    fn clone_box(&self) -> Box<dyn Kernel> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests;

//! A block of rows through all layers and back: the recursion of samples of Salimbeni & Deisenroth 2017 (in the notation of
//! [`super`]), in which a row meets no other row, and its adjoint layer by layer.

use super::block::Block;
use super::bound::{Batch, Through, Want};
use super::images::{to_images, to_patches};
use super::layer::{Layer, LayerSums, LayerWork};
use super::model::Deep;
use super::noise::{Noise, Place};
use crate::bounds::{Row, RowSlopes};
use crate::likelihoods::Target;
use crate::linalg::{Mat, column, column_mut, sized};

/// One lane: a block's memory, and sums.
#[derive(Debug, Default)]
pub(super) struct Lane {
    steps: Vec<Step>,
    pub(super) sums: Vec<LayerSums>,
    pub(super) value: f64,
    pub(super) params: Vec<f64>,
    scratch: Vec<f64>,
    /// Gradients of inputs by block.
    pub(super) x: Vec<(Place, Mat<f64>)>,
    pub(super) seen: Vec<(Place, Vec<Through>)>,
    function: Vec<Mat<f64>>,
}

/// A layer in a block.
#[derive(Debug)]
struct Step {
    block: Block,
    input: Mat<f64>,
    noise: Mat<f64>,
    sample: Mat<f64>,
    x_bar: Mat<f64>,
    /// f̄ of an image, a row for every patch.
    pixels: Mat<f64>,
    drawn: bool,
}

impl Default for Step {
    fn default() -> Self {
        let none = Mat::new;
        let (block, drawn) = (Block::default(), false);
        Self {
            block,
            input: none(),
            noise: none(),
            sample: none(),
            x_bar: none(),
            pixels: none(),
            drawn,
        }
    }
}

/// One evaluation as its blocks see it.
pub(super) struct Job<'a> {
    pub(super) model: &'a Deep,
    pub(super) layers: &'a [LayerWork],
    pub(super) batch: &'a Batch<'a>,
    pub(super) noise: &'a Noise<'a>,
    pub(super) want: Want,
    /// N/(B S).
    pub(super) scale: f64,
    /// Factors v of the last layer.
    pub(super) factors: Vec<f64>,
}

impl Lane {
    pub(super) fn begin(&mut self, model: &Deep, grams: Option<usize>) {
        self.steps.resize_with(model.layers.len(), Step::default);
        self.sums.resize_with(model.layers.len(), LayerSums::default);
        for (l, (own, layer)) in self.sums.iter_mut().zip(&model.layers).enumerate() {
            own.begin(layer, grams == Some(l));
        }
        self.function.resize_with(model.layers.len(), Mat::new);
        self.value = 0.0;
        self.params.clear();
        self.params.resize(model.likelihood.num_params(), 0.0);
        self.x.clear();
        self.seen.clear();
    }
}

impl Job<'_> {
    /// Passes a block through all layers, and back.
    pub(super) fn block(&self, lane: &mut Lane, place: Place, back: bool) {
        self.forward(lane, place, back);
        self.top(lane, place);
        if back {
            self.back(lane, place);
        }
    }

    fn forward(&self, lane: &mut Lane, place: Place, record: bool) {
        let x = self.batch.rows.x;
        let (n, d) = (x.nrows(), x.ncols());
        let tile = |target: &mut Mat<f64>, at: usize| {
            for j in 0..d {
                let source = column(x, j);
                let own = target.col_as_slice_mut(at + j).iter_mut().enumerate();
                own.for_each(|(i, t)| *t = source[(place.start + i) % n]);
            }
        };
        let last = self.model.layers.len() - 1;
        for (l, layer) in self.model.layers.iter().enumerate() {
            let (below, rest) = lane.steps.split_at_mut(l);
            let step = &mut rest[0];
            sized(&mut step.input, place.len, layer.inputs());
            match below.last() {
                None => tile(&mut step.input, 0),
                Some(below) => {
                    let width = below.sample.ncols();
                    for j in 0..width {
                        let own = step.input.col_as_slice_mut(j);
                        own.copy_from_slice(column(below.sample.as_ref(), j));
                    }
                    if layer.skip {
                        tile(&mut step.input, width);
                    }
                }
            }
            step.drawn = false;
            if l < last {
                let function = &mut lane.function[l];
                step.drawn = self.noise.fill(self.model, l, place, &mut step.noise, function);
            }
            let draw = step.drawn.then(|| lane.function[l].as_ref());
            step.block.forward(layer, &self.layers[l], step.input.as_ref(), draw, record);
            if l < last {
                sized(&mut step.sample, place.len, layer.outputs());
                step.block.sample(layer, &mut step.noise, step.sample.as_mut());
            }
        }
    }

    /// Computes ℓ of the last layer with its slopes, all scales included.
    fn top(&self, lane: &mut Lane, place: Place) {
        let Lane { steps, scratch, value, params, .. } = lane;
        let block = &mut steps[self.model.layers.len() - 1].block;
        let (likelihood, rows) = (&*self.model.likelihood, &self.batch.rows);
        let (bound, k, n) = (self.model.last(), likelihood.latents(), rows.x.nrows());
        let default = likelihood.extra().and_then(|e| e.default).unwrap_or(1.0);
        block.slopes.sized(place.len, self.factors.len());
        let count = params.len();
        scratch.clear();
        scratch.resize(count + 8 * k, 0.0);
        let (by_params, numbers) = scratch.split_at_mut(count);
        let mut parts = numbers.chunks_exact_mut(k);
        let [mu, s, r, a, b, c, by_v, variance] =
            std::array::from_fn(|_| parts.next().expect("eight parts"));
        let (marginals, slopes) = (&block.marginals, &mut block.slopes);
        let sums = &mut lane.sums[self.model.layers.len() - 1].v;
        for p in 0..rows.y.ncols() {
            let (first, y) = (p * k, column(rows.y, p));
            for i in 0..place.len {
                let row = (place.start + i) % n;
                let weight = rows.weights.get(row).copied().unwrap_or(1.0);
                if y[row].is_nan() || weight == 0.0 {
                    for l in first..first + k {
                        slopes.a[(i, l)] = 0.0;
                        slopes.b[(i, l)] = 0.0;
                        slopes.c[(i, l)] = 0.0;
                    }
                    continue;
                }
                for l in 0..k {
                    mu[l] = marginals.mean[(i, first + l)];
                    s[l] = marginals.s[(i, first + l)];
                    r[l] = marginals.r[(i, first + l)];
                }
                let extra = rows.extra.get(row).copied().unwrap_or(default);
                let target = Target { y: y[row], extra };
                let v = &self.factors[first..first + k];
                let own = Row { target, weight, mu: &*mu, s: &*s, r: &*r, v };
                let out = RowSlopes {
                    a: &mut *a,
                    b: &mut *b,
                    c: &mut *c,
                    v: &mut *by_v,
                    params: &mut *by_params,
                };
                *value += self.scale * bound.row(likelihood, &own, out, variance);
                for l in 0..k {
                    slopes.a[(i, first + l)] = self.scale * a[l];
                    slopes.b[(i, first + l)] = self.scale * b[l];
                    slopes.c[(i, first + l)] = self.scale * c[l];
                    sums[first + l] += self.scale * by_v[l];
                }
                let pairs = params.iter_mut().zip(by_params.iter());
                pairs.for_each(|(sum, slope)| *sum += self.scale * slope);
            }
        }
    }

    fn back(&self, lane: &mut Lane, place: Place) {
        let d = self.batch.rows.x.ncols();
        let mut to_inputs = self.want.inputs.then(|| Mat::zeros(place.len, d));
        if self.want.layers {
            let all = lane.steps.iter().map(|_| Through::none()).collect();
            lane.seen.push((place, all));
        }
        for (l, layer) in self.model.layers.iter().enumerate().rev() {
            let (below, rest) = lane.steps.split_at_mut(l);
            let step = &mut rest[0];
            let wanted = l > 0 || to_inputs.is_some();
            if wanted {
                sized(&mut step.x_bar, place.len, layer.inputs());
                step.x_bar.fill(0.0);
            }
            let draw = step.drawn.then(|| lane.function[l].as_ref());
            let x_bar = wanted.then(|| step.x_bar.as_mut());
            let (x, sums) = (step.input.as_ref(), &mut lane.sums[l]);
            step.block.back(layer, &self.layers[l], x, draw, sums, x_bar);
            if let Some((_, seen)) = lane.seen.last_mut().filter(|_| self.want.layers) {
                seen[l] = Through::of(step, layer);
            }
            let width = below.last().map_or(0, |below| below.sample.ncols());
            if let (Some(out), true) = (&mut to_inputs, wanted) {
                for j in width..layer.inputs() {
                    let own = out.col_as_slice_mut(j - width).iter_mut();
                    own.zip(column(step.x_bar.as_ref(), j)).for_each(|(t, v)| *t += v);
                }
            }
            if let Some(below) = below.last_mut() {
                let layer = &self.model.layers[l - 1];
                let v = &mut lane.sums[l - 1].v;
                below.slopes(layer, &step.x_bar, v);
            }
        }
        if let Some(own) = to_inputs {
            lane.x.push((place, own));
        }
    }
}

impl Step {
    /// Computes slopes of a hidden layer from the cotangent f̄ of what it gave (first columns of
    /// `f_bar`): a = f̄, b = f̄ε/2√(s + vr), c = vb, and v̄ = Σ b r; where functions were drawn s
    /// is not a variance of theirs, and b is 0.
    fn slopes(&mut self, layer: &Layer, f_bar: &Mat<f64>, v_bar: &mut [f64]) {
        let Block { slopes, marginals, .. } = &mut self.block;
        let outputs = layer.functions();
        let f_bar = match &layer.grid {
            Some(_) => {
                to_patches(f_bar.as_ref(), layer.tiles(), outputs, &mut self.pixels);
                &self.pixels
            }
            None => f_bar,
        };
        let n = f_bar.nrows();
        slopes.sized(n, outputs);
        for (p, v_bar) in v_bar.iter_mut().enumerate().take(outputs) {
            let factor = layer.factor(p);
            let (f_bar, half) = (column(f_bar.as_ref(), p), column(self.noise.as_ref(), p));
            column_mut(slopes.a.as_mut(), p).copy_from_slice(f_bar);
            let b = slopes.b.col_as_slice_mut(p);
            b.iter_mut().zip(f_bar.iter().zip(half)).for_each(|(b, (f, h))| *b = f * h);
            let c = slopes.c.col_as_slice_mut(p);
            c.iter_mut().zip(&*b).for_each(|(c, b)| *c = factor * b);
            let r = column(marginals.r.as_ref(), p);
            *v_bar += b.iter().zip(r).map(|(b, r)| b * r).sum::<f64>();
            if self.drawn {
                b.fill(0.0);
            }
        }
    }
}

impl Through {
    fn none() -> Self {
        let none = Mat::new;
        Self { mean: none(), variance: none(), sample: none(), a: none(), b: none(), c: none() }
    }

    fn of(step: &Step, layer: &Layer) -> Self {
        let Block { marginals, slopes, .. } = &step.block;
        let (s, r) = (&marginals.s, &marginals.r);
        let variance = |i: usize, p: usize| s[(i, p)] + layer.factor(p) * r[(i, p)];
        let images = |a: &Mat<f64>| {
            if layer.grid.is_none() {
                return a.clone();
            }
            let mut out = Mat::zeros(a.nrows() / layer.tiles(), layer.outputs());
            to_images(a.as_ref(), layer.tiles(), out.as_mut());
            out
        };
        Self {
            mean: images(&marginals.mean),
            variance: images(&Mat::from_fn(s.nrows(), s.ncols(), variance)),
            sample: step.sample.clone(),
            a: images(&slopes.a),
            b: images(&slopes.b),
            c: images(&slopes.c),
        }
    }
}

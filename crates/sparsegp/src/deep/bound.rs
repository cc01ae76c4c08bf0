//! The doubly stochastic bound with its gradient (Salimbeni & Deisenroth 2017, their evidence lower bound): blocks of rows through all
//! layers and back, and sums that do not depend on the number of threads.

use super::chain::{Job, Lane};
use super::layer::{LayerSums, LayerWork};
use super::model::Deep;
use super::noise::{Noise, Place};
use super::targets::check_targets;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::linalg::{Mat, Precision, column};
use rayon::prelude::*;

/// Most lanes that blocks are divided among.
const LANES: usize = 8;

/// Rows of a data set with what a bound is made of.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The rows; targets that are NaN do not count.
    pub rows: Rows<'a>,
    /// N, the number of rows of the whole data set: sums over rows have the factor N/B.
    pub population: f64,
    /// Samples S of hidden layers.
    pub samples: usize,
}

/// What an evaluation is to give beside the value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Want {
    /// The gradient by the parameters.
    pub gradient: bool,
    /// The gradient by the inputs of the rows.
    pub inputs: bool,
    /// What every layer gave, with slopes.
    pub layers: bool,
}

/// What a layer gave for S samples of n rows, (S n)×P each, sample-major.
#[derive(Clone, Debug)]
pub struct Through {
    /// μ, with the mean function and, where functions were drawn, what was drawn of them.
    pub mean: Mat<f64>,
    /// s + v r; only r of functions drawn, s + r of a last layer with the tighter bound.
    pub variance: Mat<f64>,
    /// What a hidden layer gave.
    pub sample: Mat<f64>,
    /// ∂F/∂μ, with all scales.
    pub a: Mat<f64>,
    /// ∂F/∂s; of L and R layers by s + r.
    pub b: Mat<f64>,
    /// ∂F/∂r.
    pub c: Mat<f64>,
}

/// A bound at fixed noise.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// F, the data term less KL divergences and penalties.
    pub value: f64,
    /// N/(B S) Σ ℓ.
    pub data: f64,
    /// KL divergence of every layer.
    pub kl: Vec<f64>,
    /// Σ (N/2)(v − log v − 1) over the factors v (Titsias 2025, Eq. 22–23, whatever the inputs of the layer are).
    pub penalty: f64,
    /// By the constrained parameters, in the order of [`Deep::visit`]; empty unless asked for.
    pub gradient: Vec<f64>,
    /// By the inputs, n×D, summed over samples; none unless asked for.
    pub x: Option<Mat<f64>>,
    /// What every layer gave; empty unless asked for.
    pub layers: Vec<Through>,
}

/// Memory of evaluations, kept from one to the next, and what their products of rows are made in.
#[derive(Debug, Default)]
pub struct Work {
    precision: Precision,
    pub(super) layers: Vec<LayerWork>,
    lanes: Vec<Lane>,
    pub(super) sums: Vec<LayerSums>,
}

impl Work {
    /// Creates the memory of evaluations in a precision: in single precision covariances of rows
    /// are rounded, and features, variances and their adjoints are of it, as by
    /// [`crate::engine::Mixed`]. Samples, sums over blocks of rows, Kuu, q, KL divergences and the
    /// likelihood stay in double precision, and so do layers of kind R.
    pub fn in_precision(precision: Precision) -> Self {
        Self { precision, ..Self::default() }
    }
}

impl Deep {
    /// Evaluates the bound at the noise given, with what is asked for.
    ///
    /// # Errors
    /// [`Error::Shape`] and [`Error::Invalid`] for what does not fit, [`Error::NotPositiveDefinite`] if some Kuu is not.
    pub fn evaluate(
        &self,
        batch: &Batch<'_>,
        noise: &Noise<'_>,
        want: Want,
        work: &mut Work,
    ) -> Result<Evaluation> {
        self.sweep(batch, noise, want, None, work)
    }

    /// Returns the same with the grams of one layer summed, and left in `work`.
    pub(super) fn sweep(
        &self,
        batch: &Batch<'_>,
        noise: &Noise<'_>,
        want: Want,
        grams: Option<usize>,
        work: &mut Work,
    ) -> Result<Evaluation> {
        self.check()?;
        self.check_batch(batch)?;
        let n = batch.rows.x.nrows();
        noise.check(self, n, batch.samples)?;
        let back = want.gradient || want.inputs || want.layers || grams.is_some();
        let precision = work.precision;
        work.layers.resize_with(self.layers.len(), LayerWork::default);
        for (own, layer) in work.layers.iter_mut().zip(&self.layers) {
            own.prepare(layer, precision, back)?;
        }
        let places = noise.places(self, n, batch.samples);
        work.lanes.resize_with(LANES.min(places.len()), Lane::default);
        work.lanes.iter_mut().for_each(|lane| lane.begin(self, grams));
        let last = &self.layers[self.layers.len() - 1];
        let job = Job {
            model: self,
            layers: &work.layers,
            batch,
            noise,
            want,
            scale: batch.population / (n * batch.samples) as f64,
            factors: (0..last.outputs()).map(|p| last.factor(p)).collect(),
        };
        let count = work.lanes.len();
        let one = |(index, lane): (usize, &mut Lane)| {
            places
                .iter()
                .skip(index)
                .step_by(count)
                .for_each(|place| job.block(lane, *place, back));
        };
        if count > 1 {
            work.lanes.par_iter_mut().enumerate().for_each(one);
        } else {
            work.lanes.iter_mut().enumerate().for_each(one);
        }
        self.collect(batch, want, back, work)
    }

    /// Returns the sums of the lanes, in their order.
    fn collect(
        &self,
        batch: &Batch<'_>,
        want: Want,
        back: bool,
        work: &mut Work,
    ) -> Result<Evaluation> {
        let (n, samples) = (batch.rows.x.nrows(), batch.samples);
        let Work { layers, lanes, sums, .. } = work;
        let data: f64 = lanes.iter().map(|lane| lane.value).sum();
        let kl: Vec<f64> = layers.iter().map(LayerWork::kl).collect();
        let mut penalty = 0.0;
        for layer in &self.layers {
            for p in 0..layer.functions() {
                let v = layer.factor(p);
                penalty += 0.5 * batch.population * (v - v.ln() - 1.0);
            }
        }
        let value = data - kl.iter().sum::<f64>() - penalty;
        let mut found = Evaluation {
            value,
            data,
            kl,
            penalty,
            gradient: Vec::new(),
            x: None,
            layers: Vec::new(),
        };
        if !back {
            return Ok(found);
        }
        let (first, others) = lanes.split_at_mut(1);
        std::mem::swap(sums, &mut first[0].sums);
        for lane in others.iter() {
            sums.iter_mut().zip(&lane.sums).for_each(|(own, other)| own.add(other));
        }
        if want.gradient {
            found.gradient = vec![0.0; self.num_params()];
            let mut rest = found.gradient.as_mut_slice();
            for ((layer, own), sums) in self.layers.iter().zip(layers.iter_mut()).zip(sums) {
                for p in 0..layer.functions() {
                    sums.v[p] -= 0.5 * batch.population * (1.0 - 1.0 / layer.factor(p));
                }
                let (gradient, tail) = rest.split_at_mut(layer.num_params());
                own.finish(layer, sums, -1.0, gradient);
                rest = tail;
            }
            for lane in lanes.iter() {
                rest.iter_mut().zip(&lane.params).for_each(|(t, v)| *t += v);
            }
        }
        if want.inputs {
            let mut all: Vec<_> = lanes.iter_mut().flat_map(|lane| lane.x.drain(..)).collect();
            all.sort_by_key(|(place, _)| place.index);
            let mut x = Mat::zeros(n, batch.rows.x.ncols());
            for (place, own) in &all {
                for j in 0..x.ncols() {
                    for (i, v) in column(own.as_ref(), j).iter().enumerate() {
                        x[((place.start + i) % n, j)] += v;
                    }
                }
            }
            found.x = Some(x);
        }
        if want.layers {
            let mut all: Vec<_> = lanes.iter_mut().flat_map(|lane| lane.seen.drain(..)).collect();
            all.sort_by_key(|(place, _)| place.index);
            found.layers = (0..self.layers.len()).map(|l| stacked(&all, l, n * samples)).collect();
        }
        Ok(found)
    }

    pub(super) fn check_batch(&self, batch: &Batch<'_>) -> Result<()> {
        let rows = &batch.rows;
        let n = rows.x.nrows();
        let shape = |what: &str, expected: usize, of: &str, found: usize| {
            Err(Error::shape(what, format!("{expected} {of}"), found))
        };
        if rows.x.ncols() != self.inputs() {
            return shape("inputs", self.inputs(), "columns, as the first layer", rows.x.ncols());
        }
        if rows.y.ncols() != self.targets() {
            return shape("targets", self.targets(), "columns, as the last layer", rows.y.ncols());
        }
        if rows.y.nrows() != n || n == 0 {
            return shape("targets", n, "rows, as the inputs, and at least one", rows.y.nrows());
        }
        if !rows.weights.is_empty() && rows.weights.len() != n {
            return shape("weights", n, "numbers, one per row, or none", rows.weights.len());
        }
        if !(batch.population > 0.0 && batch.population.is_finite()) {
            return Err(Error::Invalid(format!(
                "the number of rows of the data set must be positive, found {}",
                batch.population
            )));
        }
        check_targets(&*self.likelihood, rows.y, rows.extra)
    }
}

/// Returns what a layer gave in all blocks.
fn stacked(all: &[(Place, Vec<Through>)], l: usize, rows: usize) -> Through {
    let one = |of: &dyn Fn(&Through) -> &Mat<f64>| {
        let columns = all.first().map_or(0, |(_, own)| of(&own[l]).ncols());
        let mut out = Mat::zeros(if columns == 0 { 0 } else { rows }, columns);
        for (place, own) in all {
            for j in 0..columns {
                let own = column(of(&own[l]).as_ref(), j);
                out.col_as_slice_mut(j)[place.start..place.start + place.len].copy_from_slice(own);
            }
        }
        out
    };
    Through {
        mean: one(&|t| &t.mean),
        variance: one(&|t| &t.variance),
        sample: one(&|t| &t.sample),
        a: one(&|t| &t.a),
        b: one(&|t| &t.b),
        c: one(&|t| &t.c),
    }
}

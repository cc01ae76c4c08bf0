//! Posteriors of deep models: mixtures over paths through the hidden layers (Salimbeni & Deisenroth 2017, their predictions).
//!
//! The noise of a path is drawn once for each hidden layer and output, for all rows: every row has its own law, curves are
//! smooth in x, and a table that is predicted in parts has the same predictions.

use super::Posterior;
use super::before::Before;
use crate::error::{Error, Result};
use crate::linalg::{Mat, MatRef};
use crate::means::{Mean, Zero};
use crate::model::Model;
use crate::rng;
use rand_distr::{Distribution, StandardNormal};
use std::sync::Arc;

/// Paths of a prediction.
pub const PATHS: usize = 100;

/// Layers with what is known of each, the last one included, and the noise of the paths.
#[derive(Debug)]
pub(super) struct Hidden {
    /// What is known of every layer by itself.
    layers: Vec<Known>,
    /// Of every hidden layer a standard normal for each path and output.
    noise: Vec<Mat<f64>>,
}

/// A layer: the posteriors of its groups of functions.
#[derive(Debug)]
struct Known {
    groups: Vec<Posterior>,
    /// The mean function of all, where the groups have none.
    mean: Option<Box<dyn Mean>>,
}

impl Known {
    fn inputs(&self) -> usize {
        self.groups[0].inputs()
    }

    /// What the groups give, side by side.
    fn joined(mut parts: Vec<Mat<f64>>) -> Mat<f64> {
        if parts.len() == 1 {
            return parts.swap_remove(0);
        }
        let rows = parts.first().map_or(0, Mat::nrows);
        let mut all = Mat::zeros(rows, parts.iter().map(Mat::ncols).sum());
        let each = parts.iter().flat_map(|part| (0..part.ncols()).map(|p| part.col_as_slice(p)));
        each.enumerate().for_each(|(p, own)| all.col_as_slice_mut(p).copy_from_slice(own));
        all
    }

    /// Adds the mean function, where the groups have none.
    fn with_mean(&self, x: MatRef<f64>, mut f: Mat<f64>) -> Mat<f64> {
        if let Some(mean) = &self.mean {
            let mut own = Mat::zeros(x.nrows(), f.ncols());
            mean.evaluate(x, own.as_mut());
            f += &own;
        }
        f
    }

    /// Means and variances of all functions, B×P each.
    fn predict_f(&self, x: MatRef<f64>) -> Result<(Mat<f64>, Mat<f64>)> {
        let each = self.groups.iter().map(|group| group.predict_f(x));
        let (means, variances) = each.collect::<Result<Vec<_>>>()?.into_iter().unzip();
        Ok((self.with_mean(x, Self::joined(means)), Self::joined(variances)))
    }

    /// A joint draw of all functions, B×P.
    fn sample_f(&self, x: MatRef<f64>, rng: &mut impl rand::Rng) -> Result<Mat<f64>> {
        let mut one = |group: &Posterior| Ok(group.sample_f(x, 1, rng)?.swap_remove(0));
        let parts = self.groups.iter().map(&mut one).collect::<Result<_>>()?;
        Ok(self.with_mean(x, Self::joined(parts)))
    }
}

impl Posterior {
    /// Puts hidden layers before the posterior of the last one.
    ///
    /// # Errors
    /// [`Error::Invalid`] for layers of other inducing variables than points; [`Error::NotPositiveDefinite`].
    pub(super) fn with_hidden(self, model: &Model) -> Result<Self> {
        let mut hidden = Hidden { layers: Vec::new(), noise: Vec::new() };
        for (l, layer) in model.hidden.iter().enumerate() {
            let several = layer.groups.len() > 1;
            let mut groups = Vec::new();
            for group in &layer.groups {
                let (Some(points), None) = (group.inducing.as_points(), &layer.grid) else {
                    return Err(Error::Invalid(format!(
                        "layer {l} has other inducing variables than points, or is of images: `sparsegp::deep` predicts with it"
                    )));
                };
                let shallow = Model {
                    kernels: vec![points.kernel.clone()],
                    mean: if several { Box::new(Zero) } else { layer.mean.clone() },
                    likelihood: crate::likelihoods::parse("gaussian")?,
                    inducing: vec![points.z.clone()],
                    q: Some(group.q.clone()),
                    method: model.method,
                    jitter: layer.jitter,
                    hidden: Vec::new(),
                };
                groups.push(Self::of_q(&shallow)?);
            }
            let mean = several.then(|| layer.mean.clone());
            hidden.layers.push(Known { groups, mean });
            let outputs = layer.outputs();
            let mut noise = Mat::zeros(PATHS, outputs);
            for t in 0..PATHS {
                // those of `crate::deep::Paths::Streams` with the seed 0
                let mut generator = rng::stream(0, &format!("deep/predict/{t}/{l}"));
                (0..outputs).for_each(|p| noise[(t, p)] = StandardNormal.sample(&mut generator));
            }
            hidden.noise.push(noise);
        }
        hidden.layers.push(Known { groups: vec![self.clone()], mean: None });
        Ok(Self { before: Some(Arc::new(Before::Layers(hidden))), ..self })
    }
}

impl Posterior {
    /// Returns means and variances of what every hidden layer gives at rows (B×D): B×P each, moments over the paths after the first
    /// layer. None for a posterior of one layer.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of columns.
    pub fn hidden_layers(&self, x: MatRef<f64>) -> Result<Vec<(Mat<f64>, Mat<f64>)>> {
        match self.before.as_deref() {
            Some(Before::Layers(hidden)) => hidden.moments(x),
            _ => Ok(Vec::new()),
        }
    }
}

impl Hidden {
    /// Number of input columns.
    pub(super) fn inputs(&self) -> usize {
        self.layers[0].inputs()
    }

    /// What a layer sees: what the one before gives, with the inputs beside it where it has columns for them.
    fn input(&self, layer: usize, below: Mat<f64>, x: MatRef<f64>) -> Mat<f64> {
        let columns = self.layers[layer].inputs();
        if below.ncols() == columns {
            return below;
        }
        let mut all = Mat::zeros(x.nrows(), columns);
        all.as_mut().subcols_mut(0, below.ncols()).copy_from(&below);
        all.as_mut().subcols_mut(below.ncols(), x.ncols()).copy_from(x);
        all
    }

    /// Calls `work` with means and variances of the last layer's functions (B×L) along every path.
    pub(super) fn paths(
        &self,
        x: MatRef<f64>,
        mut work: impl FnMut(MatRef<f64>, MatRef<f64>),
    ) -> Result<()> {
        let last = self.layers.len() - 1;
        self.each_path(x, |l, mean, variance| {
            if l == last {
                work(mean, variance);
            }
        })
    }

    /// Calls `work` with the number of a layer and means and variances of its functions (B×P), layer by layer along every path.
    fn each_path(
        &self,
        x: MatRef<f64>,
        mut work: impl FnMut(usize, MatRef<f64>, MatRef<f64>),
    ) -> Result<()> {
        let last = self.layers.len() - 1;
        // the first layer sees the same rows on every path
        let first = self.layers[0].predict_f(x)?;
        for t in 0..PATHS {
            let (mut mean, mut variance) = first.clone();
            for l in 0..last {
                work(l, mean.as_ref(), variance.as_ref());
                let noise = &self.noise[l];
                for p in 0..mean.ncols() {
                    let normal = noise[(t, p)];
                    let own = mean.col_as_slice_mut(p).iter_mut();
                    let spread = variance.col_as_slice(p);
                    own.zip(spread).for_each(|(f, v)| *f += v.sqrt() * normal);
                }
                let input = self.input(l + 1, mean, x);
                (mean, variance) = self.layers[l + 1].predict_f(input.as_ref())?;
            }
            work(last, mean.as_ref(), variance.as_ref());
        }
        Ok(())
    }

    /// Means and variances of what every hidden layer gives, B×P each: moments over paths.
    fn moments(&self, x: MatRef<f64>) -> Result<Vec<(Mat<f64>, Mat<f64>)>> {
        let last = self.layers.len() - 1;
        let mut all: Vec<(Mat<f64>, Mat<f64>)> = Vec::new();
        self.each_path(x, |l, mean, variance| {
            if l == last {
                return;
            }
            if all.len() == l {
                let zero = || Mat::zeros(mean.nrows(), mean.ncols());
                all.push((zero(), zero()));
            }
            let (first, second) = &mut all[l];
            let share = 1.0 / PATHS as f64;
            for p in 0..mean.ncols() {
                for i in 0..mean.nrows() {
                    let m = mean[(i, p)];
                    first[(i, p)] += share * m;
                    second[(i, p)] += share * (variance[(i, p)] + m * m);
                }
            }
        })?;
        for (first, second) in &mut all {
            for p in 0..first.ncols() {
                let means = first.col_as_slice(p);
                let own = second.col_as_slice_mut(p).iter_mut().zip(means);
                own.for_each(|(v, m)| *v = (*v - m * m).max(0.0));
            }
        }
        Ok(all)
    }

    /// A joint draw of the last layer's functions at the rows, B×L: every layer's functions jointly, at what the layer
    /// before it drew. O(B³) for every layer and output.
    pub(super) fn sample(&self, x: MatRef<f64>, rng: &mut impl rand::Rng) -> Result<Mat<f64>> {
        let mut below = x.to_owned();
        for (l, layer) in self.layers.iter().enumerate() {
            let input = if l == 0 { below } else { self.input(l, below, x) };
            below = layer.sample_f(input.as_ref(), rng)?;
        }
        Ok(below)
    }
}

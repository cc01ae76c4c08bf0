//! Predictions as mixtures over paths through the hidden layers (Salimbeni & Deisenroth 2017, their predictions): every path gives
//! means and variances of the last layer's functions.
//!
//! The noise of a path is drawn once for each hidden layer and output, for all rows: every row has its own law, curves are
//! smooth in x, and a table that is predicted in parts has the same predictions.

use super::block::Block;
use super::layer::{Layer, LayerWork, Marginals, Sampling};
use super::model::Deep;
use super::noise::{Draws, check_draws};
use super::targets::check_targets;
use crate::error::{Error, Result};
use crate::likelihoods::{Likelihood, Target, default_extra, predict};
use crate::linalg::{Mat, MatRef, Precision, sized};
use crate::rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;

/// Rows that go through the layers at a time.
const ROWS: usize = 256;

/// Where the noise of paths comes from.
#[derive(Clone, Copy, Debug)]
pub enum Paths<'a> {
    /// These normals of every sample and row, as for [`super::Noise::Given`]; draws of functions are read for layers of images
    /// that are sampled so.
    Given(&'a [Draws]),
    /// A stream for every sample and hidden layer, one normal for each output.
    Streams {
        /// The seed.
        seed: u64,
    },
}

/// What S paths say of the functions of the last layer at n rows.
#[derive(Clone, Debug)]
pub struct Mixture<'a> {
    likelihood: &'a dyn Likelihood,
    /// Means of every path, n×L each.
    pub means: Vec<Mat<f64>>,
    /// Variances s + r of every path, n×L each, at least 0.
    pub variances: Vec<Mat<f64>>,
}

/// A model with its M×M work done, for predictions of many tables.
#[derive(Debug)]
pub struct Predictor<'a> {
    model: &'a Deep,
    layers: Vec<LayerWork>,
}

impl Deep {
    /// Prepares predictions: factors of Kuu of every layer.
    ///
    /// # Errors
    /// As for [`Deep::check`]; [`Error::NotPositiveDefinite`] if some Kuu is not.
    pub fn predictor(&self) -> Result<Predictor<'_>> {
        self.check()?;
        let mut layers = Vec::new();
        for layer in &self.layers {
            let mut own = LayerWork::default();
            own.prepare(layer, Precision::Double, false)?;
            layers.push(own);
        }
        Ok(Predictor { model: self, layers })
    }
}

impl<'a> Predictor<'a> {
    /// Sends rows (n×D) along so many paths. Factors v do not enter: they are of the bound, not of the process.
    ///
    /// # Errors
    /// [`Error::Shape`] and [`Error::Invalid`] for rows, noise or a number of samples that do not fit.
    pub fn predict(
        &self,
        x: MatRef<f64>,
        samples: usize,
        paths: &Paths<'_>,
    ) -> Result<Mixture<'a>> {
        let model = self.model;
        if x.ncols() != model.inputs() {
            let expected = format!("{} columns, as the first layer", model.inputs());
            return Err(Error::shape("rows to predict", expected, x.ncols()));
        }
        // one path is enough where nothing is sampled
        let samples = if model.layers.len() == 1 { samples.min(1) } else { samples };
        if samples == 0 {
            return Err(Error::Invalid("a prediction takes at least one sample, found 0".into()));
        }
        if let Paths::Given(draws) = paths {
            check_draws(draws, model, x.nrows(), samples, together)?;
        }
        let each: Vec<(Mat<f64>, Mat<f64>)> =
            (0..samples).into_par_iter().map(|t| self.path(x, t, paths)).collect();
        let (means, variances) = each.into_iter().unzip();
        Ok(Mixture { likelihood: &*model.likelihood, means, variances })
    }

    fn path(&self, x: MatRef<f64>, t: usize, paths: &Paths<'_>) -> (Mat<f64>, Mat<f64>) {
        let (n, model) = (x.nrows(), self.model);
        let last = model.layers.len() - 1;
        let (mut normals, mut functions) = (Vec::new(), Vec::new());
        for (l, layer) in model.layers[..last].iter().enumerate() {
            let own = match paths {
                Paths::Given(draws) => together(layer).then(|| draws[l].functions[t].clone()),
                Paths::Streams { seed } => {
                    let mut generator = rng::stream(*seed, &format!("deep/predict/{t}/{l}"));
                    let mut normal = || StandardNormal.sample(&mut generator);
                    let each: Vec<f64> = (0..layer.outputs()).map(|_| normal()).collect();
                    normals.push(each);
                    let draw = || Mat::from_fn(layer.points(), layer.functions(), |_, _| normal());
                    together(layer).then(draw)
                }
            };
            functions.push(own);
        }
        let mut block = Block::default();
        let [mut input, mut noise, mut f] = [const { Mat::new() }; 3];
        let mut mean = Mat::zeros(n, model.latents());
        let mut variance = mean.clone();
        for start in (0..n).step_by(ROWS) {
            let len = ROWS.min(n - start);
            let rows = x.subrows(start, len);
            for (l, layer) in model.layers.iter().enumerate() {
                let below = if l == 0 { 0 } else { model.layers[l - 1].outputs() };
                sized(&mut input, len, layer.inputs());
                if l > 0 {
                    input.as_mut().subcols_mut(0, below).copy_from(&f);
                }
                let rest = layer.inputs() - below;
                input.as_mut().subcols_mut(below, rest).copy_from(rows.subcols(0, rest));
                let draw = functions.get(l).and_then(|u: &Option<Mat<f64>>| u.as_ref());
                let draw = draw.map(|u| u.as_ref());
                block.forward(layer, &self.layers[l], input.as_ref(), draw, false);
                if l == last {
                    break;
                }
                sized(&mut noise, len, layer.outputs());
                match paths {
                    Paths::Given(draws) => {
                        let rows = draws[l].rows.as_ref().subrows(t * n + start, len);
                        noise.copy_from(rows);
                    }
                    Paths::Streams { .. } => {
                        for (p, normal) in normals[l].iter().enumerate() {
                            noise.col_as_slice_mut(p).fill(*normal);
                        }
                    }
                }
                sized(&mut f, len, layer.outputs());
                block.sample_with(layer, |_| 1.0, &mut noise, f.as_mut());
            }
            let Marginals { mean: mu, s, r, .. } = &block.marginals;
            mean.as_mut().subrows_mut(start, len).copy_from(mu);
            for p in 0..mean.ncols() {
                for i in 0..len {
                    // a difference that is 0 but for rounding; NaN stays
                    let v = s[(i, p)] + r[(i, p)];
                    variance[(start + i, p)] = if v < 0.0 { 0.0 } else { v };
                }
            }
        }
        (mean, variance)
    }
}

/// Returns whether what a layer gives is not known row by row: pixels of an image have in common
/// what they have of q(u).
fn together(layer: &Layer) -> bool {
    layer.grid.is_some() && layer.sampling == Sampling::Functions
}

/// Returns the mean of all, and mean of the variances with the variance of the means.
fn moments(each: impl Iterator<Item = (f64, f64)> + Clone, count: usize) -> (f64, f64) {
    let share = 1.0 / count as f64;
    let mean = each.clone().map(|(m, _)| m * share).sum::<f64>();
    let variance = each.map(|(m, v)| share * (v + (m - mean) * (m - mean))).sum();
    (mean, variance)
}

impl Mixture<'_> {
    fn rows(&self) -> usize {
        self.means[0].nrows()
    }

    fn targets(&self) -> usize {
        self.means[0].ncols() / self.likelihood.latents()
    }

    /// Returns the means and variances of the latent values of a target in every path, one after
    /// the other.
    fn components(&self, i: usize, p: usize) -> Vec<(Vec<f64>, Vec<f64>)> {
        let k = self.likelihood.latents();
        let own = |a: &Mat<f64>| (0..k).map(|l| a[(i, p * k + l)]).collect();
        self.means.iter().zip(&self.variances).map(|(m, v)| (own(m), own(v))).collect()
    }

    /// Returns the mean and variance of the functions, n×L each.
    pub fn functions(&self) -> (Mat<f64>, Mat<f64>) {
        let (n, latents) = (self.rows(), self.means[0].ncols());
        let (mut mean, mut variance) = (Mat::zeros(n, latents), Mat::zeros(n, latents));
        for l in 0..latents {
            for i in 0..n {
                let each = self.means.iter().zip(&self.variances);
                let each = each.map(|(m, v)| (m[(i, l)], v[(i, l)]));
                (mean[(i, l)], variance[(i, l)]) = moments(each, self.means.len());
            }
        }
        (mean, variance)
    }

    /// Returns the mean and variance of observations, n×P each. `extra` has the further number of
    /// every row (trials, exposure), or is empty.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of further numbers, [`Error::Invalid`] for none where the likelihood has no
    /// default.
    pub fn observations(&self, extra: &[f64]) -> Result<(Mat<f64>, Mat<f64>)> {
        let default = default_extra(self.likelihood, extra, self.rows())?;
        let (n, targets) = (self.rows(), self.targets());
        let (mut mean, mut variance) = (Mat::zeros(n, targets), Mat::zeros(n, targets));
        for p in 0..targets {
            for i in 0..n {
                let extra = extra.get(i).copied().unwrap_or(default);
                let each = self.components(i, p);
                let each = each.iter().map(|(m, v)| self.likelihood.predict(extra, m, v));
                (mean[(i, p)], variance[(i, p)]) = moments(each, self.means.len());
            }
        }
        Ok((mean, variance))
    }

    /// Returns log p(y) of every row under the mixture: the mean over paths of densities in which
    /// the targets of a row are together. Targets that are NaN do not count. It is biased down by
    /// about half its variance over the paths.
    ///
    /// # Errors
    /// [`Error::Shape`] for targets of another shape, or another number of further numbers; [`Error::Invalid`] for a target
    /// that the likelihood does not know, or no further numbers where it has no default.
    pub fn log_density(&self, y: MatRef<f64>, extra: &[f64]) -> Result<Vec<f64>> {
        let (n, targets) = (self.rows(), self.targets());
        if (y.nrows(), y.ncols()) != (n, targets) {
            let found = format!("{}×{}", y.nrows(), y.ncols());
            return Err(Error::shape("targets", format!("{n}×{targets}"), found));
        }
        let default = default_extra(self.likelihood, extra, n)?;
        check_targets(self.likelihood, y, extra)?;
        let mut logs = vec![0.0; self.means.len()];
        Ok((0..n)
            .map(|i| {
                logs.fill(0.0);
                for p in (0..targets).filter(|p| !y[(i, *p)].is_nan()) {
                    let extra = extra.get(i).copied().unwrap_or(default);
                    let target = Target { y: y[(i, p)], extra };
                    for (log, (m, v)) in logs.iter_mut().zip(self.components(i, p)) {
                        *log += self.likelihood.predict_log_density(target, &m, &v);
                    }
                }
                // `max` would leave out NaN, and a path without a density would take the others'
                // one
                if logs.iter().any(|log| log.is_nan()) {
                    return f64::NAN;
                }
                let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                if !most.is_finite() {
                    return most;
                }
                let sum: f64 = logs.iter().map(|log| (log - most).exp()).sum();
                most + (sum / logs.len() as f64).ln()
            })
            .collect())
    }

    /// Returns the probabilities of classes of the first target, n×C.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a likelihood without classes.
    pub fn probabilities(&self) -> Result<Mat<f64>> {
        let Some(classes) = self.likelihood.classes() else {
            return Err(Error::Invalid(format!(
                "the likelihood `{}` has no classes: ask for observations or quantiles",
                self.likelihood.name()
            )));
        };
        let mut all = Mat::zeros(self.rows(), classes);
        let (mut own, share) = (vec![0.0; classes], 1.0 / self.means.len() as f64);
        for i in 0..self.rows() {
            for (m, v) in self.components(i, 0) {
                self.likelihood.probabilities(&m, &v, &mut own);
                own.iter().enumerate().for_each(|(c, p)| all[(i, c)] += share * p);
            }
        }
        Ok(all)
    }

    /// Returns the quantiles of observations, n×P for every one of the `levels` (0 < level < 1):
    /// where the mean over paths of P(Y ≤ y) reaches it.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a level that is none, [`Error::Shape`] and [`Error::Invalid`] for further numbers as for
    /// [`Mixture::observations`].
    pub fn quantiles(&self, extra: &[f64], levels: &[f64]) -> Result<Vec<Mat<f64>>> {
        if let Some(bad) = levels.iter().find(|level| !(0.0 < **level && **level < 1.0)) {
            return Err(Error::Invalid(format!(
                "quantiles are of levels between 0 and 1, found {bad}"
            )));
        }
        let default = default_extra(self.likelihood, extra, self.rows())?;
        let (n, targets) = (self.rows(), self.targets());
        let (mean, variance) = self.functions();
        let k = self.likelihood.latents();
        let at = |place: usize, level: f64| {
            let (i, p) = (place % n, place / n);
            let own = |a: &Mat<f64>| (0..k).map(|l| a[(i, p * k + l)]).collect::<Vec<_>>();
            let extra = extra.get(i).copied().unwrap_or(default);
            let each = self.components(i, p);
            let cdf = |y: f64| {
                let all = each.iter().map(|(m, v)| self.likelihood.cdf(Target { y, extra }, m, v));
                all.sum::<f64>() / each.len() as f64
            };
            // that of a normal latent value is a guess
            let guess = self.likelihood.quantile(extra, &own(&mean), &own(&variance), level);
            predict::quantile(cdf, self.likelihood.support(extra), Some(guess), level)
        };
        let one = |level: &f64| {
            let all: Vec<f64> =
                (0..n * targets).into_par_iter().map(|place| at(place, *level)).collect();
            Mat::from_fn(n, targets, |i, p| all[p * n + i])
        };
        Ok(levels.iter().map(one).collect())
    }
}

//! Posteriors of deep models: mixtures over paths through the hidden layers (Salimbeni & Deisenroth 2017, their predictions).
//!
//! The noise of a path is drawn once for each hidden layer and output, for all rows: every row has its own law, curves are
//! smooth in x, and a table that is predicted in parts has the same predictions.

use super::Posterior;
use super::before::Before;
use crate::error::{Error, Result};
use crate::linalg::{Mat, MatRef};
use crate::model::Model;
use crate::rng;
use rand_distr::{Distribution, StandardNormal};
use std::sync::Arc;

/// Paths of a prediction.
pub const PATHS: usize = 100;

/// Layers with what is known of each, the last one included, and the noise of the paths.
#[derive(Debug)]
pub(super) struct Hidden {
    /// The posterior of every layer by itself.
    layers: Vec<Posterior>,
    /// Of every hidden layer a standard normal for each path and output.
    noise: Vec<Mat<f64>>,
}

impl Posterior {
    /// Puts hidden layers before the posterior of the last one.
    ///
    /// # Errors
    /// [`Error::Invalid`] for layers that are not of one kernel over inducing points; [`Error::NotPositiveDefinite`].
    pub(super) fn with_hidden(self, model: &Model) -> Result<Self> {
        let mut hidden = Hidden { layers: Vec::new(), noise: Vec::new() };
        for (l, layer) in model.hidden.iter().enumerate() {
            let group = layer.groups.first().filter(|_| layer.groups.len() == 1);
            let points = group.and_then(|group| group.inducing.as_points());
            let (Some(group), Some(points), None) = (group, points, &layer.grid) else {
                return Err(Error::Invalid(format!(
                    "layer {l} has several kernels, or is of images: `sparsegp::deep` predicts with it"
                )));
            };
            let shallow = Model {
                kernels: vec![points.kernel.clone()],
                mean: layer.mean.clone(),
                likelihood: crate::likelihoods::parse("gaussian")?,
                inducing: vec![points.z.clone()],
                q: Some(group.q.clone()),
                method: model.method,
                jitter: layer.jitter,
                hidden: Vec::new(),
            };
            hidden.layers.push(Self::of_q(&shallow)?);
            let outputs = group.q.latents();
            let mut noise = Mat::zeros(PATHS, outputs);
            for t in 0..PATHS {
                // those of `crate::deep::Paths::Streams` with the seed 0
                let mut generator = rng::stream(0, &format!("deep/predict/{t}/{l}"));
                (0..outputs).for_each(|p| noise[(t, p)] = StandardNormal.sample(&mut generator));
            }
            hidden.noise.push(noise);
        }
        hidden.layers.push(self.clone());
        Ok(Self { before: Some(Arc::new(Before::Layers(hidden))), ..self })
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
        // the first layer sees the same rows on every path
        let first = self.layers[0].predict_f(x)?;
        for t in 0..PATHS {
            let (mut mean, mut variance) = first.clone();
            for l in 0..last {
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
            work(mean.as_ref(), variance.as_ref());
        }
        Ok(())
    }

    /// A joint draw of the last layer's functions at the rows, B×L: every layer's functions jointly, at what the layer
    /// before it drew. O(B³) for every layer and output.
    pub(super) fn sample(&self, x: MatRef<f64>, rng: &mut impl rand::Rng) -> Result<Mat<f64>> {
        let mut below = x.to_owned();
        for (l, layer) in self.layers.iter().enumerate() {
            let input = if l == 0 { below } else { self.input(l, below, x) };
            below = layer.sample_f(input.as_ref(), 1, rng)?.swap_remove(0);
        }
        Ok(below)
    }
}

//! Posteriors of deep models: mixtures over paths through the hidden layers (Salimbeni & Deisenroth
//! 2017, their predictions).
//!
//! The noise of a path is drawn once for each hidden layer and output, for all rows: every row has
//! its own law, curves are smooth in x, and a table that is predicted in parts has the same
//! predictions.

use super::gaussian::Gaussian;
use super::law::{Drawn, Law, Marginals, Work, check_columns, refused};
use crate::error::{Error, Result};
use crate::linalg::{Mat, MatRef};
use crate::means::{Mean, Zero};
use crate::model::Model;
use crate::rng;
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

/// Paths of a prediction.
const PATHS: usize = 100;

/// Layers with what is known of each, the last one included, and the noise of the paths.
#[derive(Debug)]
pub(super) struct Hidden {
    layers: Vec<Known>,
    last: Gaussian,
    /// Of every hidden layer a standard normal for each path and output.
    noise: Vec<Mat<f64>>,
}

/// A hidden layer: what is known of its groups of functions.
#[derive(Debug)]
struct Known {
    groups: Vec<Gaussian>,
    /// The mean function of all, where the groups have none.
    mean: Option<Box<dyn Mean>>,
}

impl Known {
    /// Prepares the layer `at` of a model.
    ///
    /// # Errors
    /// [`Error::Invalid`] for layers of other inducing variables than points;
    /// [`Error::NotPositiveDefinite`].
    fn new(model: &Model, at: usize) -> Result<Self> {
        let layer = &model.hidden[at];
        let several = layer.groups.len() > 1;
        let mut groups = Vec::new();
        for group in &layer.groups {
            let (Some(points), None) = (group.inducing.as_points(), &layer.grid) else {
                return Err(Error::Invalid(format!(
                    "layer {at} has other inducing variables than points, or is of images: `sparsegp::deep` predicts with it"
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
            groups.push(Gaussian::of_q(&shallow)?);
        }
        Ok(Self { groups, mean: several.then(|| layer.mean.clone()) })
    }

    /// Returns what the groups give, side by side, with the mean function where they have none.
    fn joined(&self, x: MatRef<f64>, mut parts: Vec<Mat<f64>>) -> Mat<f64> {
        let Some(mean) = &self.mean else { return parts.swap_remove(0) };
        let mut all = side_by_side(&parts);
        let mut own = Mat::zeros(x.nrows(), all.ncols());
        mean.evaluate(x, own.as_mut());
        all += &own;
        all
    }

    /// Returns the means and variances of all functions, B×P each.
    fn marginals(&self, x: MatRef<f64>) -> Result<Marginals> {
        let (mut means, mut variances) = (Vec::new(), Vec::new());
        for group in &self.groups {
            group.check(x)?;
            let Marginals { mean, variance } = group.marginals(x);
            means.push(mean);
            variances.push(variance);
        }
        Ok(Marginals { mean: self.joined(x, means), variance: side_by_side(&variances) })
    }

    /// Makes a joint draw of all functions, B×P.
    fn draw(&self, x: MatRef<f64>, rng: &mut dyn Rng) -> Result<Mat<f64>> {
        let mut one = |group: &Gaussian| {
            group.check(x)?;
            Ok(group.draw(x, 1, rng)?.swap_remove(0))
        };
        let parts = self.groups.iter().map(&mut one).collect::<Result<_>>()?;
        Ok(self.joined(x, parts))
    }
}

fn side_by_side(parts: &[Mat<f64>]) -> Mat<f64> {
    let rows = parts.first().map_or(0, Mat::nrows);
    let mut all = Mat::zeros(rows, parts.iter().map(Mat::ncols).sum());
    let each = parts.iter().flat_map(|part| (0..part.ncols()).map(|p| part.col_as_slice(p)));
    each.enumerate().for_each(|(p, own)| all.col_as_slice_mut(p).copy_from_slice(own));
    all
}

impl Hidden {
    /// Creates the hidden layers of a model before what is known of its last one.
    ///
    /// # Errors
    /// As for [`Known::new`].
    pub(super) fn new(model: &Model, last: Gaussian) -> Result<Self> {
        let mut own = Self { layers: Vec::new(), last, noise: Vec::new() };
        for (l, layer) in model.hidden.iter().enumerate() {
            own.layers.push(Known::new(model, l)?);
            let outputs = layer.outputs();
            let mut noise = Mat::zeros(PATHS, outputs);
            for t in 0..PATHS {
                // those of `crate::deep::Paths::Streams` with the seed 0
                let mut generator = rng::stream(0, &format!("deep/predict/{t}/{l}"));
                (0..outputs).for_each(|p| noise[(t, p)] = StandardNormal.sample(&mut generator));
            }
            own.noise.push(noise);
        }
        Ok(own)
    }

    /// Returns what layer `at` sees: what the one before gives, with the inputs beside it where it
    /// has columns for them.
    fn input(&self, at: usize, below: Mat<f64>, x: MatRef<f64>) -> Mat<f64> {
        let seeing = self.layers.get(at).map_or(&self.last, |layer| &layer.groups[0]);
        let columns = seeing.inputs();
        if below.ncols() == columns {
            return below;
        }
        let mut all = Mat::zeros(x.nrows(), columns);
        all.as_mut().subcols_mut(0, below.ncols()).copy_from(&below);
        all.as_mut().subcols_mut(below.ncols(), x.ncols()).copy_from(x);
        all
    }

    /// Calls `work` with the number of a layer and what is known of its functions, layer by layer
    /// along every path.
    fn each_path(&self, x: MatRef<f64>, work: &mut dyn FnMut(usize, &Marginals)) -> Result<()> {
        let last = self.layers.len();
        // the first layer sees the same rows on every path
        let first = self.layers[0].marginals(x)?;
        for t in 0..PATHS {
            let mut own = first.clone();
            for l in 0..last {
                work(l, &own);
                let Marginals { mut mean, variance } = own;
                for p in 0..mean.ncols() {
                    let normal = self.noise[l][(t, p)];
                    let values = mean.col_as_slice_mut(p).iter_mut();
                    let spread = variance.col_as_slice(p);
                    values.zip(spread).for_each(|(f, v)| *f += v.sqrt() * normal);
                }
                let input = self.input(l + 1, mean, x);
                let input = input.as_ref();
                own = match self.layers.get(l + 1) {
                    Some(layer) => layer.marginals(input)?,
                    None => {
                        self.last.check(input)?;
                        self.last.marginals(input)
                    }
                };
            }
            work(last, &own);
        }
        Ok(())
    }

    /// Makes a joint draw of the last layer's functions at the rows, B×L: every layer's functions
    /// jointly, at what the layer before it drew. O(B³) for every layer and output.
    fn draw(&self, x: MatRef<f64>, rng: &mut dyn Rng) -> Result<Mat<f64>> {
        let mut below = x.to_owned();
        for (l, layer) in self.layers.iter().enumerate() {
            let input = if l == 0 { below } else { self.input(l, below, x) };
            below = layer.draw(input.as_ref(), rng)?;
        }
        let input = self.input(self.layers.len(), below, x);
        self.last.check(input.as_ref())?;
        Ok(self.last.draw(input.as_ref(), 1, rng)?.swap_remove(0))
    }
}

impl Law for Hidden {
    fn gaussian(&self) -> Option<&Gaussian> {
        Some(&self.last)
    }

    fn inputs(&self) -> usize {
        self.layers[0].groups[0].inputs()
    }

    /// Accepts all rows: layers look at them themselves.
    fn check(&self, x: MatRef<f64>) -> Result<()> {
        check_columns(x, self.inputs())
    }

    fn count(&self) -> usize {
        PATHS
    }

    fn joins_targets(&self) -> bool {
        true
    }

    fn components<'a>(&'a self, x: MatRef<'_, f64>, work: Work<'_, 'a>) -> Result<()> {
        let last = self.layers.len();
        self.each_path(x, &mut |l, own| {
            if l == last {
                work(None, own);
            }
        })
    }

    fn sample<'a>(
        &'a self,
        x: MatRef<'_, f64>,
        samples: usize,
        rng: &mut dyn Rng,
    ) -> Result<Vec<Drawn<'a>>> {
        let one = |_| Ok(Drawn { likelihood: None, f: self.draw(x, rng)? });
        (0..samples).map(one).collect()
    }

    fn refusal(&self, what: &str) -> Error {
        refused(what, "models of one layer", "of a deep one")
    }

    fn hidden(&self, x: MatRef<f64>) -> Result<Vec<Marginals>> {
        let last = self.layers.len();
        // means of the values and of their squares
        let mut all: Vec<Marginals> = Vec::new();
        self.each_path(x, &mut |l, own| {
            if l == last {
                return;
            }
            let (rows, columns) = (own.mean.nrows(), own.mean.ncols());
            if all.len() == l {
                all.push(Marginals::zeros(rows, columns));
            }
            let share = 1.0 / PATHS as f64;
            for p in 0..columns {
                for i in 0..rows {
                    let m = own.mean[(i, p)];
                    all[l].mean[(i, p)] += share * m;
                    all[l].variance[(i, p)] += share * (own.variance[(i, p)] + m * m);
                }
            }
        })?;
        for own in &mut all {
            for p in 0..own.mean.ncols() {
                let means = own.mean.col_as_slice(p);
                let squares = own.variance.col_as_slice_mut(p).iter_mut().zip(means);
                squares.for_each(|(v, m)| *v = (*v - m * m).max(0.0));
            }
        }
        Ok(all)
    }
}

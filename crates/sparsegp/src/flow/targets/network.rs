//! A small Bayesian neural network for classes.

use crate::error::{Error, Result};
use crate::flow::blocks::Blocks;
use crate::flow::subsample::Subsample;
use crate::flow::target::{Target, check_dim, check_finite_matrix, check_some};
use crate::linalg::{
    Accum, Mat, MatMut, MatRef, Par, by_columns, column, column_mut, gemm, sum_of_products,
};

/// Layers h ← tanh(Wh + b), the last without tanh and with a softmax, and θ ~ N(0, αI): φ(θ) = c Σ CE + ‖θ‖²/2α with
/// the cross-entropy CE of every row, without the constant of the prior.
///
/// θ holds layer after layer, of each W (outputs × inputs, row by row) and then b.
#[derive(Clone, Debug)]
pub struct Network {
    /// The rows in sight.
    pub(in crate::flow) subsample: Subsample,
    pub(in crate::flow) sizes: Vec<usize>,
    /// N×inputs.
    x: Mat<f64>,
    classes: Vec<usize>,
    pub(in crate::flow) variance: f64,
    scale: f64,
}

impl Network {
    /// Takes the sizes of inputs, hidden layers and classes, N rows (N×inputs) with their classes 0, 1, …, and the
    /// prior variance α.
    ///
    /// # Errors
    /// [`Error::Shape`] if the sizes differ, [`Error::Invalid`] for a class that does not exist or a variance that is
    /// not above 0, [`Error::NonFinite`].
    pub fn new(sizes: Vec<usize>, x: Mat<f64>, classes: Vec<usize>, variance: f64) -> Result<Self> {
        let fits = sizes.len() >= 2
            && !sizes.contains(&0)
            && sizes[0] == x.ncols()
            && x.nrows() == classes.len()
            && x.nrows() > 0;
        if !fits {
            return Err(Error::Shape {
                what: "the layers of a network".into(),
                expected: format!(
                    "sizes from {} inputs to the classes, and as many rows as classes given ({})",
                    x.ncols(),
                    classes.len()
                ),
                found: format!("{sizes:?} and {} rows", x.nrows()),
            });
        }
        check_finite_matrix("an input of the network", x.as_ref())?;
        let count = sizes[sizes.len() - 1];
        if let Some(class) = classes.iter().find(|c| **c >= count) {
            return Err(Error::Invalid(format!(
                "there is no class {class}: the network has {count}, from 0 on"
            )));
        }
        if !(variance > 0.0 && variance.is_finite()) {
            let text = format!("a prior has a variance above 0, not {variance}");
            return Err(Error::Invalid(text));
        }
        let subsample = Subsample::all(classes.len());
        Ok(Self { subsample, sizes, x, classes, variance, scale: 1.0 })
    }

    /// Multiplies the cross-entropies by c > 0: 1 for the posterior, other numbers for tempered ones.
    ///
    /// # Errors
    /// [`Error::Invalid`] for another number.
    pub fn scaled(mut self, scale: f64) -> Result<Self> {
        if !(scale > 0.0 && scale.is_finite()) {
            let text = format!("cross-entropies are multiplied by a number above 0, not {scale}");
            return Err(Error::Invalid(text));
        }
        self.scale = scale;
        Ok(self)
    }

    /// Returns which rows are in sight.
    pub fn subsample(&self) -> &Subsample {
        &self.subsample
    }

    /// Sees these rows from now on.
    ///
    /// # Errors
    /// As for [`Subsample::choose`].
    pub fn choose_rows(&mut self, rows: Vec<usize>) -> Result<()> {
        self.subsample.choose(rows)
    }

    /// Sees at most B rows in a step.
    ///
    /// # Errors
    /// As for [`Subsample::batches`].
    pub fn in_batches(mut self, size: usize, seed: u64) -> Result<Self> {
        self.subsample = Subsample::batches(self.classes.len(), size, seed)?;
        Ok(self)
    }

    /// Returns the parameters of every layer as blocks.
    pub fn layers(&self) -> Blocks {
        let sizes: Vec<usize> = self.sizes.windows(2).map(|w| w[1] * (w[0] + 1)).collect();
        Blocks::consecutive(&sizes)
    }

    /// Returns the mean over parameters θ (the columns of a D×S matrix) of the probabilities of classes at new rows
    /// (R×inputs), R×classes.
    ///
    /// # Errors
    /// [`Error::Shape`] for another dimension, [`Error::Invalid`] for no parameters.
    pub fn probabilities(&self, theta: MatRef<'_, f64>, rows: MatRef<'_, f64>) -> Result<Mat<f64>> {
        check_dim("parameters", theta.nrows(), self.dim())?;
        check_dim("columns of new rows", rows.ncols(), self.sizes[0])?;
        check_some("parameters", theta.ncols())?;
        let mut sum = Mat::zeros(rows.nrows(), self.sizes[self.sizes.len() - 1]);
        for s in 0..theta.ncols() {
            let mut layers = self.forward(column(theta, s), rows.to_owned());
            let scores = &mut layers[self.sizes.len() - 1];
            softmax(scores.as_mut(), |_| None);
            sum += &*scores;
        }
        Ok(sum * faer::Scale(1.0 / theta.ncols() as f64))
    }

    /// Returns the inputs of the rows in sight, B×inputs.
    pub(in crate::flow) fn inputs_in_sight(&self) -> Mat<f64> {
        let sight = &self.subsample;
        Mat::from_fn(sight.count(), self.sizes[0], |i, j| self.x[(sight.row(i), j)])
    }

    /// Returns the class of row `at` of those in sight.
    pub(in crate::flow) fn class_in_sight(&self, at: usize) -> usize {
        self.classes[self.subsample.row(at)]
    }

    /// Returns what the sum of cross-entropies in sight is multiplied by.
    pub(in crate::flow) fn weight(&self) -> f64 {
        self.scale * self.subsample.weight()
    }

    /// Returns the values of all layers, the inputs first (B×size each).
    fn forward(&self, theta: &[f64], inputs: Mat<f64>) -> Vec<Mat<f64>> {
        let (mut layers, mut rest) = (vec![inputs], theta);
        for (at, pair) in self.sizes.windows(2).enumerate() {
            let (from, to) = (pair[0], pair[1]);
            let (weights, tail) = rest.split_at(from * to);
            let (bias, tail) = tail.split_at(to);
            // row by row, so the memory is that of Wᵀ by columns
            let weights = MatRef::from_column_major_slice(weights, from, to);
            let below = layers[at].as_ref();
            let mut own = Mat::from_fn(below.nrows(), to, |_, j| bias[j]);
            gemm(own.as_mut(), Accum::Add, below, weights, 1.0, Par::Seq);
            if at + 2 < self.sizes.len() {
                for j in 0..to {
                    column_mut(own.as_mut(), j).iter_mut().for_each(|h| *h = h.tanh());
                }
            }
            layers.push(own);
            rest = tail;
        }
        layers
    }

    /// Returns φ of one θ, with its gradient.
    fn value(&self, theta: &[f64], inputs: &Mat<f64>, gradient: &mut [f64]) -> f64 {
        let mut layers = self.forward(theta, inputs.clone());
        // there are two sizes or more
        let mut error = layers.swap_remove(self.sizes.len() - 1);
        let entropy = softmax(error.as_mut(), |at| Some(self.class_in_sight(at)));
        let weight = self.weight();
        // from the last layer to the first
        let mut end = theta.len();
        for (at, pair) in self.sizes.windows(2).enumerate().rev() {
            let (from, to) = (pair[0], pair[1]);
            let start = end - to * (from + 1);
            let own = &mut gradient[start..end];
            let (by_weights, by_bias) = own.split_at_mut(from * to);
            let below = layers[at].as_ref();
            let out = MatMut::from_column_major_slice_mut(by_weights, from, to);
            let delta = error.as_ref();
            gemm(out, Accum::Replace, below.transpose(), delta, weight, Par::Seq);
            for (j, b) in by_bias.iter_mut().enumerate() {
                *b = weight * column(delta, j).iter().sum::<f64>();
            }
            if at > 0 {
                let weights =
                    MatRef::from_column_major_slice(&theta[start..start + from * to], from, to);
                let mut before = Mat::zeros(delta.nrows(), from);
                let pull = weights.transpose();
                gemm(before.as_mut(), Accum::Replace, delta, pull, 1.0, Par::Seq);
                for j in 0..from {
                    let h = column(below, j);
                    let own = column_mut(before.as_mut(), j).iter_mut();
                    own.zip(h).for_each(|(d, h)| *d *= 1.0 - h * h);
                }
                error = before;
            }
            end = start;
        }
        gradient.iter_mut().zip(theta).for_each(|(g, t)| *g += t / self.variance);
        weight * entropy + 0.5 * sum_of_products(theta, theta) / self.variance
    }
}

/// Turns scores (B×classes) into probabilities, less 1 at the class of every row that has one;
/// returns the sum of their cross-entropies.
pub(in crate::flow) fn softmax(
    mut scores: MatMut<'_, f64>,
    class: impl Fn(usize) -> Option<usize>,
) -> f64 {
    let (rows, count) = (scores.nrows(), scores.ncols());
    let mut entropy = 0.0;
    for i in 0..rows {
        let largest = (0..count).fold(f64::NEG_INFINITY, |m, j| m.max(scores[(i, j)]));
        let own = class(i).map(|c| (c, scores[(i, c)]));
        let sum: f64 = (0..count).map(|j| (scores[(i, j)] - largest).exp()).sum();
        for j in 0..count {
            scores[(i, j)] = (scores[(i, j)] - largest).exp() / sum;
        }
        if let Some((c, score)) = own {
            entropy += sum.ln() + largest - score;
            scores[(i, c)] -= 1.0;
        }
    }
    entropy
}

impl Target for Network {
    fn dim(&self) -> usize {
        self.sizes.windows(2).map(|w| w[1] * (w[0] + 1)).sum()
    }

    fn evaluate(
        &mut self,
        x: MatRef<'_, f64>,
        phi: &mut [f64],
        gradient: MatMut<'_, f64>,
    ) -> Result<()> {
        let inputs = self.inputs_in_sight();
        by_columns(gradient, phi, &|n, gradient: &mut [f64], phi: &mut f64| {
            *phi = self.value(column(x, n), &inputs, gradient);
        });
        Ok(())
    }

    fn renew(&mut self, step: usize) {
        self.subsample.renew(step);
    }

    fn is_noisy(&self) -> bool {
        self.subsample.is_noisy()
    }
}

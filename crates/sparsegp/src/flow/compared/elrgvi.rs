//! Efficient low-rank Gaussian variational inference for networks (Tomczak, Swaroop & Turner 2020).
//!
//! Every layer has q = N(μ, diag(σ²) + αVVᵀ) with V of D×K and α = 1/K; with the prior N(0, γI)
//!
//! ```text
//! KL = ½[‖σ‖²/γ − Σ log σ² + (α/γ)‖V‖² + ‖μ‖²/γ − log|M| + D log γ − D],   M = I + αVᵀ diag(σ⁻²) V
//! ```
//! Preactivations are drawn instead of weights, separately for every row: W_μx + b_μ +
//! ε∘√(W_{σ²}x² + b_{σ²}) + √α Σ_k ε_k (W_{v_k}x + b_{v_k}), with one number ε_k for all outputs.

use super::DescentOptions;
use super::kept_positive;
use crate::error::{Error, Result};
use crate::flow::optimiser::{FlowOptimiser, Scale};
use crate::flow::particles::normals;
use crate::flow::run::{Guarded, Progress, Run, RunOptions, guarded};
use crate::flow::target::{Target, check_dim, check_finite, check_finite_matrix, check_some};
use crate::flow::targets::Network;
use crate::flow::targets::network::softmax;
use crate::linalg::{Accum, Cholesky, Jitter, Mat, MatRef, Par, column, gemm, product};
use crate::rng::stream;
use rand::Rng;
use std::ops::ControlFlow;

/// q of one layer. Its D = outputs·(inputs + 1) parameters are W (outputs × inputs, row by row) and then b.
#[derive(Clone, Debug, PartialEq)]
pub struct ElrgviLayer {
    inputs: usize,
    mean: Vec<f64>,
    deviation: Vec<f64>,
    /// V, D×K.
    directions: Mat<f64>,
}

/// Gradients of one layer: by μ, σ and V.
type LayerGradient = (Vec<f64>, Vec<f64>, Mat<f64>);

impl ElrgviLayer {
    /// Takes the number of inputs, μ and σ (D numbers each, σ above 0) and V (D×K, K ≥ 1).
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::NonFinite`] and [`Error::Invalid`] for numbers that do not fit.
    pub fn new(
        inputs: usize,
        mean: Vec<f64>,
        deviation: Vec<f64>,
        directions: Mat<f64>,
    ) -> Result<Self> {
        check_dim("standard deviations of a layer", deviation.len(), mean.len())?;
        check_dim("rows of V", directions.nrows(), mean.len())?;
        if mean.is_empty() || !mean.len().is_multiple_of(inputs + 1) || directions.ncols() == 0 {
            return Err(Error::Shape {
                what: "a layer".into(),
                expected: format!(
                    "parameters of {inputs} inputs and a bias for every output, and K ≥ 1"
                ),
                found: format!("{} parameters and K = {}", mean.len(), directions.ncols()),
            });
        }
        check_finite("a number of a layer", mean.iter().chain(&deviation))?;
        check_finite_matrix("V", directions.as_ref())?;
        if let Some(least) = deviation.iter().find(|s| **s <= 0.0) {
            return Err(Error::Invalid(format!("standard deviations are above 0, not {least}")));
        }
        Ok(Self { inputs, mean, deviation, directions })
    }

    /// Returns μ and σ (D numbers each) and V (D×K).
    pub fn parameters(&self) -> (&[f64], &[f64], MatRef<'_, f64>) {
        (&self.mean, &self.deviation, self.directions.as_ref())
    }

    fn outputs(&self) -> usize {
        self.mean.len() / (self.inputs + 1)
    }

    fn alpha(&self) -> f64 {
        1.0 / self.directions.ncols() as f64
    }

    /// Returns V/σ² (D×K) and the factor of M.
    fn inner(&self) -> Result<(Mat<f64>, Cholesky)> {
        let v = &self.directions;
        let scaled = Mat::from_fn(v.nrows(), v.ncols(), |d, k| {
            v[(d, k)] / (self.deviation[d] * self.deviation[d])
        });
        let mut m = product(v.transpose(), scaled.as_ref()) * faer::Scale(self.alpha());
        (0..v.ncols()).for_each(|k| m[(k, k)] += 1.0);
        Ok((scaled, Cholesky::new(m.as_ref(), Jitter::Absolute(0.0), "I + αVᵀdiag(σ⁻²)V")?))
    }

    /// Returns KL(q ‖ N(0, γI)) for a prior variance γ above 0.
    ///
    /// # Errors
    /// [`Error::Invalid`] for another γ; [`Error::NotPositiveDefinite`] and [`Error::NonFinite`] for parameters that ran away.
    pub fn kl(&self, gamma: f64) -> Result<f64> {
        if !(gamma > 0.0 && gamma.is_finite()) {
            return Err(Error::Invalid(format!("a prior has a variance above 0, not {gamma}")));
        }
        let (_, factor) = self.inner()?;
        let square = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>();
        let log: f64 = self.deviation.iter().map(|s| (s * s).ln()).sum();
        let wide = self.alpha() * self.directions.squared_norm_l2();
        let sum = (square(&self.deviation) + wide + square(&self.mean)) / gamma;
        let dim = self.mean.len() as f64;
        Ok(0.5 * (sum - log - factor.log_det() + dim * gamma.ln() - dim))
    }

    /// Returns the gradient of the KL.
    fn kl_gradient(&self, gamma: f64) -> Result<LayerGradient> {
        let (scaled, factor) = self.inner()?;
        let alpha = self.alpha();
        // M⁻¹Vᵀ, K×D
        let solved = factor.solve(self.directions.transpose().to_owned().as_ref());
        let mean = self.mean.iter().map(|m| m / gamma).collect();
        let by_deviation = |d: usize| {
            let (s, v) = (self.deviation[d], &self.directions);
            let part: f64 = (0..v.ncols()).map(|k| v[(d, k)] * solved[(k, d)]).sum();
            s / gamma - 1.0 / s + alpha * part / (s * s * s)
        };
        let deviation = (0..self.mean.len()).map(by_deviation).collect();
        let mut directions = &self.directions * faer::Scale(alpha / gamma);
        // V/σ² M⁻¹
        let right = factor.solve(scaled.transpose().to_owned().as_ref());
        for d in 0..self.mean.len() {
            for k in 0..right.nrows() {
                directions[(d, k)] -= alpha * right[(k, d)];
            }
        }
        Ok((mean, deviation, directions))
    }

    /// Returns Wᵀ (inputs×outputs) and b of parameters that are packed like μ.
    fn unpacked<'a>(&self, packed: &'a [f64]) -> (MatRef<'a, f64>, &'a [f64]) {
        let (weights, bias) = packed.split_at(self.inputs * self.outputs());
        (MatRef::from_column_major_slice(weights, self.inputs, self.outputs()), bias)
    }

    /// Returns x Wᵀ + 1bᵀ, B×outputs.
    fn affine(&self, packed: &[f64], x: MatRef<'_, f64>) -> Mat<f64> {
        let (weights, bias) = self.unpacked(packed);
        let mut out = Mat::from_fn(x.nrows(), bias.len(), |_, j| bias[j]);
        gemm(out.as_mut(), Accum::Add, x, weights, 1.0, Par::Seq);
        out
    }

    fn squares(&self) -> Vec<f64> {
        self.deviation.iter().map(|s| s * s).collect()
    }

    /// Returns preactivations (B×outputs) of rows (B×inputs) for given numbers ε (B×outputs) and ε_k (B×K).
    ///
    /// # Errors
    /// [`Error::Shape`] if the sizes differ.
    pub fn preactivation(
        &self,
        x: MatRef<'_, f64>,
        e: MatRef<'_, f64>,
        e_v: MatRef<'_, f64>,
    ) -> Result<Mat<f64>> {
        check_dim("columns of rows", x.ncols(), self.inputs)?;
        check_dim("columns of ε", e.ncols(), self.outputs())?;
        check_dim("columns of ε_k", e_v.ncols(), self.directions.ncols())?;
        check_dim("rows of ε", e.nrows(), x.nrows())?;
        check_dim("rows of ε_k", e_v.nrows(), x.nrows())?;
        let mut out = self.affine(&self.mean, x);
        let squares = Mat::from_fn(x.nrows(), x.ncols(), |i, j| x[(i, j)] * x[(i, j)]);
        let variances = self.affine(&self.squares(), squares.as_ref());
        let scale = self.alpha().sqrt();
        for k in 0..self.directions.ncols() {
            let along = self.affine(self.directions.col_as_slice(k), x);
            for j in 0..out.ncols() {
                (0..x.nrows()).for_each(|i| out[(i, j)] += scale * e_v[(i, k)] * along[(i, j)]);
            }
        }
        for j in 0..out.ncols() {
            (0..x.nrows()).for_each(|i| out[(i, j)] += e[(i, j)] * variances[(i, j)].sqrt());
        }
        Ok(out)
    }

    /// Pulls slopes δ by preactivations (B×outputs) back: adds to the gradient, and returns the slopes by the rows.
    fn pull(
        &self,
        x: &Mat<f64>,
        noise: &Noise,
        delta: &Mat<f64>,
        gradient: &mut LayerGradient,
    ) -> Mat<f64> {
        let rows = x.nrows();
        let squares = Mat::from_fn(rows, x.ncols(), |i, j| x[(i, j)] * x[(i, j)]);
        let packed = self.squares();
        let variances = self.affine(&packed, squares.as_ref());
        let (e, e_v) = noise;
        let t = Mat::from_fn(rows, delta.ncols(), |i, j| match variances[(i, j)] > 0.0 {
            true => delta[(i, j)] * e[(i, j)] / variances[(i, j)].sqrt(),
            false => 0.0,
        });
        let add = |to: &mut [f64], x: &Mat<f64>, delta: &Mat<f64>, by: &dyn Fn(usize) -> f64| {
            let by_weights = product(x.transpose(), delta.as_ref());
            let (inputs, outputs) = (x.ncols(), delta.ncols());
            for o in 0..outputs {
                for j in 0..inputs {
                    to[o * inputs + j] += by(o * inputs + j) * by_weights[(j, o)];
                }
                let at = inputs * outputs + o;
                to[at] += by(at) * column(delta.as_ref(), o).iter().sum::<f64>();
            }
        };
        add(&mut gradient.0, x, delta, &|_| 1.0);
        add(&mut gradient.1, &squares, &t, &|d| self.deviation[d]);
        let mut back = product(delta.as_ref(), self.unpacked(&self.mean).0.transpose());
        let by_variance = product(t.as_ref(), self.unpacked(&packed).0.transpose());
        for j in 0..x.ncols() {
            (0..rows).for_each(|i| back[(i, j)] += x[(i, j)] * by_variance[(i, j)]);
        }
        let scale = self.alpha().sqrt();
        for k in 0..self.directions.ncols() {
            let own = Mat::from_fn(rows, delta.ncols(), |i, j| scale * e_v[(i, k)] * delta[(i, j)]);
            add(gradient.2.col_as_slice_mut(k), x, &own, &|_| 1.0);
            let weights = self.unpacked(self.directions.col_as_slice(k)).0;
            gemm(back.as_mut(), Accum::Add, own.as_ref(), weights.transpose(), 1.0, Par::Seq);
        }
        back
    }

    fn is_finite(&self) -> bool {
        check_finite("", self.mean.iter().chain(&self.deviation)).is_ok()
            && check_finite_matrix("", self.directions.as_ref()).is_ok()
    }
}

/// ε (B×outputs) and ε_k (B×K) of one layer.
type Noise = (Mat<f64>, Mat<f64>);

/// q of all layers of a [`Network`], which descends.
#[derive(Clone, Debug)]
pub struct Elrgvi {
    layers: Vec<ElrgviLayer>,
    options: DescentOptions,
    /// Of μ, σ and V of every layer.
    optimisers: Vec<[FlowOptimiser; 3]>,
}

impl Elrgvi {
    /// Starts at parameters of a network (packed as it has them), with one standard deviation for all and K
    /// directions of that length.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::NonFinite`] and [`Error::Invalid`] for a start or options that do not fit.
    pub fn new(
        network: &Network,
        start: &[f64],
        deviation: f64,
        directions: usize,
        options: DescentOptions,
    ) -> Result<Self> {
        options.check()?;
        check_dim("the start", start.len(), network.dim())?;
        let mut rng = stream(options.seed, "flow/directions");
        let (mut layers, mut rest) = (Vec::new(), start);
        for pair in network.sizes.windows(2) {
            let size = pair[1] * (pair[0] + 1);
            let (own, tail) = rest.split_at(size);
            let v = normals(size, directions, &mut rng) * faer::Scale(deviation);
            layers.push(ElrgviLayer::new(pair[0], own.to_vec(), vec![deviation; size], v)?);
            rest = tail;
        }
        let optimiser = || FlowOptimiser::new(options.rule, Scale::Element);
        let own = |_| Ok([optimiser()?, optimiser()?, optimiser()?]);
        let optimisers = (0..layers.len()).map(own).collect::<Result<_>>()?;
        Ok(Self { layers, options, optimisers })
    }

    /// Returns q of the layers.
    pub fn layers(&self) -> &[ElrgviLayer] {
        &self.layers
    }

    fn dim(&self) -> usize {
        self.layers.iter().map(|layer| layer.mean.len()).sum()
    }

    fn noise(&self, rows: usize, rng: &mut impl Rng) -> Vec<Noise> {
        let own = |layer: &ElrgviLayer| {
            let e = normals(rows, layer.outputs(), rng);
            (e, normals(rows, layer.directions.ncols(), rng))
        };
        self.layers.iter().map(own).collect()
    }

    /// Draws the noise of step `step` for the rows that a network sees.
    fn draws(&self, network: &Network, step: usize) -> Vec<Vec<Noise>> {
        let mut rng = stream(self.options.seed, &format!("flow/draws/{step}"));
        let rows = network.subsample.count();
        (0..self.options.draws).map(|_| self.noise(rows, &mut rng)).collect()
    }

    /// Returns the values of all layers, the inputs first and scores last.
    fn forward(&self, inputs: Mat<f64>, noise: &[Noise]) -> Result<Vec<Mat<f64>>> {
        let mut values = vec![inputs];
        for (at, (layer, (e, e_v))) in self.layers.iter().zip(noise).enumerate() {
            let mut own = layer.preactivation(values[at].as_ref(), e.as_ref(), e_v.as_ref())?;
            if at + 1 < self.layers.len() {
                for j in 0..own.ncols() {
                    own.col_as_slice_mut(j).iter_mut().for_each(|h| *h = h.tanh());
                }
            }
            values.push(own);
        }
        Ok(values)
    }

    /// Returns the estimate of the free energy E[c Σ CE] + KL for given draws, with its gradients.
    fn gradient(
        &self,
        network: &Network,
        draws: &[Vec<Noise>],
    ) -> Result<(f64, Vec<LayerGradient>)> {
        let (mut value, mut gradients) = (0.0, Vec::new());
        for layer in &self.layers {
            value += layer.kl(network.variance)?;
            gradients.push(layer.kl_gradient(network.variance)?);
        }
        let weight = network.weight() / draws.len() as f64;
        for noise in draws {
            let mut values = self.forward(network.inputs_in_sight(), noise)?;
            let mut delta = values.swap_remove(self.layers.len());
            value += weight * softmax(delta.as_mut(), |at| Some(network.class_in_sight(at)));
            delta *= faer::Scale(weight);
            for (at, layer) in self.layers.iter().enumerate().rev() {
                let x = &values[at];
                let mut back = layer.pull(x, &noise[at], &delta, &mut gradients[at]);
                if at > 0 {
                    for j in 0..back.ncols() {
                        (0..back.nrows()).for_each(|i| back[(i, j)] *= 1.0 - x[(i, j)] * x[(i, j)]);
                    }
                }
                delta = back;
            }
        }
        Ok((value, gradients))
    }

    /// Makes step `step` = 0, 1, ….
    ///
    /// # Errors
    /// [`Error::Shape`] for a network of other sizes; [`Error::NonFinite`] and [`Error::NotPositiveDefinite`] for
    /// parameters that ran away, after which the state is of no use.
    pub fn advance(&mut self, network: &mut Network, step: usize) -> Result<Progress> {
        let layers = self.layers.iter().map(|layer| (layer.inputs, layer.outputs()));
        if !layers.eq(network.sizes.windows(2).map(|pair| (pair[0], pair[1]))) {
            return Err(Error::Shape {
                what: "a network".into(),
                expected: format!("the layers of the start, {} parameters in all", self.dim()),
                found: format!("layers of {:?}", network.sizes),
            });
        }
        network.renew(step);
        let draws = self.draws(network, step);
        let (value, gradients) = self.gradient(network, &draws)?;
        check_finite("the free energy", [&value])?;
        let rate = self.options.rate * self.options.schedule.factor(step);
        let mut progress =
            Progress { free_energy: Some(value), stationarity: 0.0, scale: 1.0, stalled: false };
        let parts = self.layers.iter_mut().zip(&mut self.optimisers).zip(gradients);
        for ((layer, [of_mean, of_deviation, of_v]), (mean, deviation, v)) in parts {
            let square = |v: &[f64]| v.iter().map(|g| g * g).sum::<f64>();
            progress.stationarity += square(&mean) + square(&deviation) + v.squared_norm_l2();
            let by = of_mean.step_vector(&mean, -rate)?;
            layer.mean.iter_mut().zip(by).for_each(|(m, by)| *m += by);
            layer.directions += of_v.step(v.as_ref(), -rate)?;
            let by = of_deviation.step_vector(&deviation, -rate)?;
            let scale = kept_positive(layer.deviation.iter().zip(&by));
            layer.deviation.iter_mut().zip(by).for_each(|(s, by)| *s += scale * by);
            progress.scale = progress.scale.min(scale);
        }
        Ok(progress)
    }

    /// Runs with the guard of [`run`](crate::flow::run()).
    ///
    /// # Errors
    /// As for [`run`](crate::flow::run()) and [`Elrgvi::advance`].
    pub fn run(
        &mut self,
        network: &mut Network,
        options: &RunOptions,
        watch: &mut dyn FnMut(usize, &Progress) -> ControlFlow<()>,
    ) -> Result<Run> {
        guarded(self, &mut OfNetwork(network), options, watch)
    }

    /// Returns the mean over draws of the probabilities of classes at new rows (R×inputs), R×classes.
    ///
    /// # Errors
    /// [`Error::Shape`] for rows of another dimension, [`Error::Invalid`] for no draws.
    pub fn probabilities(
        &self,
        rows: MatRef<'_, f64>,
        draws: usize,
        rng: &mut impl Rng,
    ) -> Result<Mat<f64>> {
        check_some("draws", draws)?;
        let count = self.layers.last().map_or(0, ElrgviLayer::outputs);
        let mut sum = Mat::zeros(rows.nrows(), count);
        for _ in 0..draws {
            let noise = self.noise(rows.nrows(), rng);
            let mut values = self.forward(rows.to_owned(), &noise)?;
            let scores = &mut values[self.layers.len()];
            softmax(scores.as_mut(), |_| None);
            sum += &*scores;
        }
        Ok(sum * faer::Scale(1.0 / draws as f64))
    }
}

/// A network that layers descend.
struct OfNetwork<'a>(&'a mut Network);

impl Guarded<Elrgvi> for OfNetwork<'_> {
    fn advance(&mut self, state: &mut Elrgvi, step: usize) -> Result<Progress> {
        state.advance(self.0, step)
    }

    fn is_finite(&self, state: &Elrgvi) -> bool {
        state.layers.iter().all(ElrgviLayer::is_finite)
    }

    fn check(&mut self, state: &Elrgvi, step: usize) -> Result<()> {
        let (value, _) = state.gradient(self.0, &state.draws(self.0, step))?;
        check_finite("the free energy", [&value])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gradients at given draws by differences, with all parameters away from round numbers.
    #[test]
    fn gradients_are_those_of_the_free_energy() {
        let mut rng = stream(1, "test");
        let x = normals(5, 2, &mut rng);
        let network = Network::new(vec![2, 3, 2], x, vec![0, 1, 1, 0, 1], 0.8).unwrap();
        let network = network.scaled(1.7).unwrap();
        let start: Vec<f64> = normals(network.dim(), 1, &mut rng).col_as_slice(0).to_vec();
        let options = DescentOptions { draws: 2, ..DescentOptions::default() };
        let own = Elrgvi::new(&network, &start, 0.4, 2, options).unwrap();
        let draws: Vec<_> = (0..2).map(|_| own.noise(5, &mut rng)).collect();
        let (_, gradients) = own.gradient(&network, &draws).unwrap();
        let h = 1e-6;
        let value = |change: &dyn Fn(&mut ElrgviLayer, f64), at: usize, by: f64| {
            let mut moved = own.clone();
            change(&mut moved.layers[at], by);
            moved.gradient(&network, &draws).unwrap().0
        };
        let slope = |change: &dyn Fn(&mut ElrgviLayer, f64), at: usize| {
            (value(change, at, h) - value(change, at, -h)) / (2.0 * h)
        };
        for (at, (mean, deviation, v)) in gradients.iter().enumerate() {
            for d in 0..mean.len() {
                let close = |own: f64, expected: f64| {
                    assert!(
                        (own - expected).abs() < 1e-6 * (1.0 + expected.abs()),
                        "{at} {d}: {own} {expected}"
                    );
                };
                close(mean[d], slope(&|layer, by| layer.mean[d] += by, at));
                close(deviation[d], slope(&|layer, by| layer.deviation[d] += by, at));
                for k in 0..2 {
                    close(v[(d, k)], slope(&|layer, by| layer.directions[(d, k)] += by, at));
                }
            }
        }
    }
}

//! The alternative inverse-free bound in training (Cortinovis et al., §2 and App. S4), for Gaussian noise.
//!
//! Adam moves hyperparameters, m̃ and the root of S̃; L follows by one natural-gradient step in every iteration, the one that the
//! refined bound is evaluated at. The paper conjectures that this frees the bound of inverses, and does not try it.

use super::toy::Toy;
use sparsegp::data::{Batches, InMemory, Minibatch, ShuffledInMemory};
use sparsegp::inverse_free::{LogDet, WhitenedByFactor};
use sparsegp::kernels::{Cotangents, Tape};
use sparsegp::linalg::{Cholesky, Jitter, Mat};
use sparsegp::model::Model;
use sparsegp::optim::{Adam, AdamOptions, Objective, Optimiser};
use std::f64::consts::TAU;

/// Name in tables and legends.
pub const NAME: &str = "alternative bound";

/// The negative bound of some rows that stand for N, as Adam sees it.
struct Loss<'a> {
    model: &'a mut Model,
    z: &'a Mat<f64>,
    /// L, and where the last evaluation has moved it.
    root: &'a mut Mat<f64>,
    moved: Mat<f64>,
    rows: &'a InMemory,
    population: usize,
}

/// Free numbers: those of the model, m̃, and the lower triangle of the root of S̃ column by column.
struct Parts {
    mean: Mat<f64>,
    root: Mat<f64>,
}

impl Parts {
    fn of(x: &[f64], m: usize) -> Self {
        let mut rest = x[m..].iter();
        let mean = Mat::from_fn(m, 1, |i, _| x[i]);
        let mut root = Mat::zeros(m, m);
        for j in 0..m {
            for i in j..m {
                root[(i, j)] = rest.next().copied().unwrap_or(0.0);
            }
        }
        Self { mean, root }
    }

    fn write(&self, out: &mut [f64]) {
        let m = self.mean.nrows();
        let lower = (0..m).flat_map(|j| (j..m).map(move |i| (i, j)));
        let all = (0..m).map(|i| self.mean[(i, 0)]).chain(lower.map(|at| self.root[at]));
        out.iter_mut().zip(all).for_each(|(out, value)| *out = value);
    }
}

/// Returns Kuu with a little on its diagonal, as the other variants have it.
fn kuu(model: &Model, z: &Mat<f64>, tape: &mut Tape) -> Mat<f64> {
    let m = z.nrows();
    let mut out = Mat::zeros(m, m);
    model.kernel().evaluate(z.as_ref(), None, out.as_mut(), tape);
    (0..m).for_each(|i| out[(i, i)] *= 1.0 + 1e-6);
    out
}

impl Objective for Loss<'_> {
    fn dim(&self) -> usize {
        let m = self.z.nrows();
        self.model.free_count() + m + m * (m + 1) / 2
    }

    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> sparsegp::Result<f64> {
        let (m, b, hyper) = (self.z.nrows(), self.rows.x.nrows(), self.model.free_count());
        self.model.set_free_values(&x[..hyper]);
        let Parts { mean, root } = Parts::of(&x[hyper..], m);
        let (mut of_points, mut of_rows) = (Tape::recording(), Tape::recording());
        let own = kuu(self.model, self.z, &mut of_points);
        let (kernel, xs, zs) = (self.model.kernel(), self.rows.x.as_ref(), self.z.as_ref());
        let mut kfu = Mat::zeros(b, m);
        kernel.evaluate(xs, Some(zs), kfu.as_mut(), &mut of_rows);
        let mut prior = vec![0.0; b];
        kernel.diag(xs, &mut prior);
        let (l, roots) = (self.root.as_ref(), [root]);
        let bound =
            WhitenedByFactor::new(own.as_ref(), l, mean.as_ref(), &roots, true, LogDet::Series)?;
        let (mu, v) = bound.marginals(kfu.transpose(), &prior);
        let (noise, scale) = (self.model.noise(), self.population as f64 / b as f64);
        // E log N(y; f, σ²) = −½ log 2πσ² − ((y − μ)² + v)/2σ²
        let off = |i: usize| self.rows.y[(i, 0)] - mu[(i, 0)];
        let squares: f64 = (0..b).map(|i| off(i).powi(2) + v[(i, 0)]).sum();
        let density = -0.5 * (b as f64 * (TAU * noise).ln() + squares / noise);
        let alpha = Mat::from_fn(b, 1, |i, _| scale * off(i) / noise);
        let beta = Mat::from_fn(b, 1, |_, _| -0.5 * scale / noise);
        let mut back = bound.pull(-1.0, kfu.transpose(), alpha.as_ref(), beta.as_ref());
        (0..m).for_each(|i| back.kuu[(i, i)] *= 1.0 + 1e-6);
        let mut slopes = vec![0.0; self.model.num_params()];
        let count = kernel.num_params();
        let mut sinks = Cotangents { params: &mut slopes[..count], x: None, z: None };
        kernel.vjp(zs, None, own.as_ref(), back.kuu.as_mut(), &mut of_points, &mut sinks);
        let mut kfu_bar = back.kuf.transpose().to_owned();
        kernel.vjp(xs, Some(zs), kfu.as_ref(), kfu_bar.as_mut(), &mut of_rows, &mut sinks);
        kernel.diag_vjp(xs, beta.col_as_slice(0), &mut sinks);
        // the noise follows the kernel, as the mean has no numbers
        slopes[count] = 0.5 * scale * (squares / noise - b as f64) / noise;
        self.model.free_gradient(&mut slopes, &mut gradient[..hyper]);
        Parts { mean: back.mean, root: back.roots.swap_remove(0) }.write(&mut gradient[hyper..]);
        gradient.iter_mut().for_each(|g| *g = -*g);
        self.moved = bound.root().to_owned();
        Ok(bound.kl() - scale * density)
    }
}

impl Toy {
    /// Trains the alternative bound; returns the negative bound of all rows every hundredth of the way.
    pub fn alternative(&self, iterations: usize, seed: u64) -> sparsegp::Result<Vec<(f64, f64)>> {
        let (mut model, m) = (self.start.clone(), self.points);
        model.q = None;
        let z = model.inducing_points()?;
        let own = kuu(&model, &z, &mut Tape::off());
        // L Lᵀ = Kuu⁻¹, lower triangular: the factor of the reversed matrix, inverted and reversed
        let reversed = Mat::from_fn(m, m, |i, j| own[(m - 1 - i, m - 1 - j)]);
        let factor = Cholesky::new(reversed.as_ref(), Jitter::Absolute(0.0), "Kuu")?;
        let mut upper = Mat::<f64>::identity(m, m);
        sparsegp::linalg::solve_lower_transpose(
            factor.l.as_ref(),
            upper.as_mut(),
            sparsegp::linalg::Par::Seq,
        );
        let mut root = Mat::from_fn(m, m, |i, j| upper[(m - 1 - i, m - 1 - j)]);
        let mut x = model.free_values();
        let at = x.len();
        x.resize(at + m + m * (m + 1) / 2, 0.0);
        let (mean, identity) = (Mat::zeros(m, 1), Mat::identity(m, m));
        Parts { mean, root: identity }.write(&mut x[at..]);
        let options = AdamOptions { learning_rate: self.rate, ..AdamOptions::default() };
        let mut adam = Adam::new(x, options);
        let mut batches = ShuffledInMemory::new(&self.data, m, seed)?;
        let (mut batch, mut curve) = (Minibatch::new(), Vec::new());
        for iteration in 0..=iterations {
            if iteration % (iterations / 100).max(1) == 0 {
                let (population, x) = (self.data.x.nrows(), adam.x().to_vec());
                let (rows, mut copy, mut kept) = (&self.data, model.clone(), root.clone());
                let moved = Mat::new();
                let (model, root) = (&mut copy, &mut kept);
                let mut whole = Loss { model, z: &z, root, moved, rows, population };
                let mut slopes = vec![0.0; whole.dim()];
                curve.push((iteration as f64, whole.evaluate(&x, &mut slopes)?));
            }
            batches.next(&mut batch)?;
            let (rows, population) = (&batch.rows, batch.population);
            let (model, root_of, moved) = (&mut model, &mut root, Mat::new());
            let mut loss = Loss { model, z: &z, root: root_of, moved, rows, population };
            adam.step(&mut loss)?;
            let moved = loss.moved;
            root = moved;
        }
        Ok(curve)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gradients_are_those_of_finite_differences() {
        let toy = Toy::new("snelson").expect("a table");
        let (mut model, m) = (toy.start.clone(), toy.points);
        model.q = None;
        model.set("kernel.variance", &[1.7]).expect("a value");
        let z = model.inducing_points().expect("points");
        let own = kuu(&model, &z, &mut Tape::off());
        // near the inverse, and not at it
        let inverse = Cholesky::new(own.as_ref(), Jitter::Absolute(0.0), "Kuu").expect("a factor");
        let half = Cholesky::new(inverse.inverse().as_ref(), Jitter::Absolute(1e-9), "its inverse");
        let mut root = Mat::from_fn(m, m, |i, j| {
            let own = half.as_ref().expect("a factor").l[(i, j)];
            own * (1.0 + 1e-3 * ((3 * i + j) as f64).sin())
        });
        let mut x = model.free_values();
        let at = x.len();
        x.resize(at + m + m * (m + 1) / 2, 0.0);
        let mean = Mat::from_fn(m, 1, |i, _| 0.3 * (i as f64).cos());
        let spread = Mat::from_fn(m, m, |i, j| match i.cmp(&j) {
            std::cmp::Ordering::Less => 0.0,
            std::cmp::Ordering::Equal => 0.6,
            std::cmp::Ordering::Greater => 0.02,
        });
        Parts { mean, root: spread }.write(&mut x[at..]);
        let rows = &toy.data;
        let moved = Mat::new();
        let mut loss =
            Loss { model: &mut model, z: &z, root: &mut root, moved, rows, population: 333 };
        let mut slopes = vec![0.0; loss.dim()];
        loss.evaluate(&x, &mut slopes).expect("a bound");
        let mut scrap = vec![0.0; loss.dim()];
        for i in (0..x.len()).step_by(3).chain(0..at) {
            let mut at = |by: f64| {
                let mut moved = x.clone();
                moved[i] += by;
                loss.evaluate(&moved, &mut scrap).expect("a bound")
            };
            let step = 1e-5;
            let found = (at(step) - at(-step)) / (2.0 * step);
            let scale = 1.0 + slopes[i].abs();
            assert!((found - slopes[i]).abs() < 2e-4 * scale, "{i}: {found} {}", slopes[i]);
        }
    }
}

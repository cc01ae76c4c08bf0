//! Stochastic weight averaging, Gaussian (Maddox et al. 2019): moments of the path of stochastic gradients around a
//! mode.

use crate::error::{Error, Result};
use crate::flow::optimiser::check_rates;
use crate::flow::particles::normals;
use crate::flow::run::{Progress, Solver};
use crate::flow::target::{Evaluation, Target, check_dim, check_finite};
use crate::linalg::{Mat, MatRef, not_below_0};
use rand::Rng;

/// Moments of positions that were collected: the running mean, the mean square, and the last K deviations from the
/// running mean that had the position itself in it.
#[derive(Clone, Debug, PartialEq)]
pub struct SwagMoments {
    mean: Vec<f64>,
    square: Vec<f64>,
    /// Oldest first.
    deviations: Vec<Vec<f64>>,
    keep: usize,
    count: usize,
}

impl SwagMoments {
    /// Makes moments of nothing, for D dimensions and K ≥ 2 deviations.
    ///
    /// # Errors
    /// [`Error::Invalid`] for K < 2.
    pub fn new(dim: usize, keep: usize) -> Result<Self> {
        if keep < 2 {
            let text = format!("at least two deviations are kept, not {keep}");
            return Err(Error::Invalid(text));
        }
        let zeros = vec![0.0; dim];
        Ok(Self { mean: zeros.clone(), square: zeros, deviations: Vec::new(), keep, count: 0 })
    }

    /// Adds a position of D numbers.
    ///
    /// # Errors
    /// [`Error::Shape`] for another dimension.
    pub fn collect(&mut self, position: &[f64]) -> Result<()> {
        check_dim("a position", position.len(), self.mean.len())?;
        self.count += 1;
        let share = 1.0 / self.count as f64;
        for (i, x) in position.iter().enumerate() {
            self.mean[i] += share * (x - self.mean[i]);
            self.square[i] += share * (x * x - self.square[i]);
        }
        if self.deviations.len() == self.keep {
            self.deviations.remove(0);
        }
        self.deviations.push(position.iter().zip(&self.mean).map(|(x, m)| x - m).collect());
        Ok(())
    }

    /// Returns how many positions were collected.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the running mean, D numbers.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// Returns the mean square less the square of the mean, at least 0 (D numbers).
    pub fn variances(&self) -> Vec<f64> {
        self.square.iter().zip(&self.mean).map(|(s, m)| not_below_0(s - m * m)).collect()
    }

    /// Returns the deviations D, at most K columns, the oldest first.
    pub fn deviations(&self) -> Mat<f64> {
        Mat::from_fn(self.mean.len(), self.deviations.len(), |i, k| self.deviations[k][i])
    }

    /// Returns θ̄ + diag(variances)^½ z₁/√2 + D z₂/√(2(K − 1)) for z₁ of D numbers and z₂ of one for each deviation.
    ///
    /// # Errors
    /// [`Error::Shape`] for numbers of another count; [`Error::Invalid`] before two positions were collected.
    pub fn combined(&self, z1: &[f64], z2: &[f64]) -> Result<Vec<f64>> {
        let kept = self.deviations.len();
        if kept < 2 {
            return Err(Error::Invalid(format!(
                "{} positions were collected, and draws need two: make more steps",
                self.count
            )));
        }
        check_dim("z₁", z1.len(), self.mean.len())?;
        check_dim("z₂", z2.len(), kept)?;
        let scale = (2.0 * (kept - 1) as f64).sqrt().recip();
        let variances = self.variances();
        let draw = |i: usize| {
            let along: f64 = self.deviations.iter().zip(z2).map(|(d, z)| d[i] * z).sum();
            self.mean[i] + (0.5 * variances[i]).sqrt() * z1[i] + scale * along
        };
        Ok((0..self.mean.len()).map(draw).collect())
    }

    /// Draws S positions, D×S.
    ///
    /// # Errors
    /// As for [`SwagMoments::combined`].
    pub fn draw(&self, count: usize, rng: &mut impl Rng) -> Result<Mat<f64>> {
        let z1 = normals(self.mean.len(), count, rng);
        let z2 = normals(self.deviations.len(), count, rng);
        let mut out = Mat::zeros(self.mean.len(), count);
        for s in 0..count {
            out.col_as_slice_mut(s)
                .copy_from_slice(&self.combined(z1.col_as_slice(s), z2.col_as_slice(s))?);
        }
        Ok(out)
    }
}

/// How to walk.
#[derive(Clone, Debug, PartialEq)]
pub struct SwagOptions {
    /// Rate of gradient descent on φ/N: the mean over rows of −log p, with the prior.
    pub rate: f64,
    /// Momentum, from 0 to below 1.
    pub momentum: f64,
    /// Every so many steps a position is collected.
    pub every: usize,
    /// K.
    pub keep: usize,
    /// N, the rows of data; 1 to descend φ itself.
    pub rows: usize,
}

impl Default for SwagOptions {
    fn default() -> Self {
        Self { rate: 0.01, momentum: 0.9, every: 10, keep: 20, rows: 1 }
    }
}

/// A walk by stochastic gradients from a mode.
#[derive(Clone, Debug)]
pub struct Swag {
    position: Vec<f64>,
    velocity: Vec<f64>,
    moments: SwagMoments,
    options: SwagOptions,
}

impl Swag {
    /// Starts at a mode (D numbers).
    ///
    /// # Errors
    /// [`Error::Invalid`] for options out of range, [`Error::NonFinite`].
    pub fn new(mode: Vec<f64>, options: SwagOptions) -> Result<Self> {
        check_finite("the mode", &mode)?;
        check_rates(&[options.rate])?;
        if !(0.0..1.0).contains(&options.momentum) || options.every == 0 || options.rows == 0 {
            return Err(Error::Invalid(format!(
                "momentum is from 0 to below 1, and positions are collected every step or more of one row or more: \
                 not {options:?}"
            )));
        }
        let moments = SwagMoments::new(mode.len(), options.keep)?;
        Ok(Self { velocity: vec![0.0; mode.len()], position: mode, moments, options })
    }

    /// Returns the present position, D numbers.
    pub fn position(&self) -> &[f64] {
        &self.position
    }

    /// Returns the moments so far.
    pub fn moments(&self) -> &SwagMoments {
        &self.moments
    }
}

impl Solver for Swag {
    fn advance(&mut self, target: &mut dyn Target, step: usize) -> Result<Progress> {
        check_dim("the target", target.dim(), self.position.len())?;
        target.renew(step);
        let x = MatRef::from_column_major_slice(&self.position, self.position.len(), 1);
        let own = Evaluation::of(target, x)?;
        let gradient = own.mean_gradient();
        let (rate, momentum) =
            (self.options.rate / self.options.rows as f64, self.options.momentum);
        for ((v, g), x) in self.velocity.iter_mut().zip(&gradient).zip(&mut self.position) {
            *v = momentum * *v - rate * g;
            *x += *v;
        }
        if (step + 1).is_multiple_of(self.options.every) {
            self.moments.collect(&self.position)?;
        }
        let stationarity = gradient.iter().map(|g| g * g).sum();
        Ok(Progress { free_energy: None, stationarity, scale: 1.0, stalled: false })
    }

    fn is_finite(&self) -> bool {
        let own = self.position.iter().chain(&self.velocity);
        check_finite("", own.chain(&self.moments.mean).chain(&self.moments.square)).is_ok()
    }
}

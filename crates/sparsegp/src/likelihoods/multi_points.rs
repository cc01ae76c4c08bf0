//! Weighted points for expectations over K independent standard normals.

use super::multi::check_points;
use super::quadrature::{Nodes, Rule};
use crate::error::{Error, Result};
use crate::metrics::standard_normal_quantile;
use crate::rng;
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;

/// How expectations over the latent functions of all classes are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Integration {
    /// The mean over so many draws, the same for every row: made once from `seed`, in antithetic
    /// pairs and scaled to unit second moments. The value is a deterministic function of means and
    /// variances, so line searches work; its error does not average out over rows.
    Draws {
        /// How many, rounded up to an even number.
        count: usize,
        /// Seed of the stream `likelihood/draws`.
        #[serde(default)]
        seed: u64,
    },
    /// Gauss–Hermite with so many points for every latent function: pointsᴷ nodes.
    Tensor(usize),
    /// Exact up to rounding for any number of classes, by integrals in one dimension
    /// ([`laplace`](super::multi_laplace)).
    Laplace,
}

impl Default for Integration {
    fn default() -> Self {
        Integration::Draws { count: 100, seed: 0 }
    }
}

/// S points in K dimensions with weights of sum 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Points {
    dimension: usize,
    /// S×K, the K numbers of a point together.
    x: Vec<f64>,
    w: Vec<f64>,
}

impl Points {
    /// Most numbers that a rule may hold.
    const MOST: usize = 1 << 24;

    /// Creates points of equal weight: `x` holds S×K numbers, the K numbers of a point together.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there is a whole number of points.
    pub fn given(x: Vec<f64>, dimension: usize) -> Result<Self> {
        if dimension == 0 || x.is_empty() || !x.len().is_multiple_of(dimension) {
            return Err(Error::Shape {
                what: "draws for the likelihood".into(),
                expected: format!("a multiple of {dimension} numbers"),
                found: format!("{}", x.len()),
            });
        }
        let w = vec![dimension as f64 / x.len() as f64; x.len() / dimension];
        Ok(Self { dimension, x, w })
    }

    /// Creates `count` standard normal draws, rounded up to an even number, in pairs ε, −ε; scaled
    /// so that every coordinate has second moment 1.
    ///
    /// # Errors
    /// [`Error::Invalid`] for none, or more than memory should hold.
    pub fn draws(count: usize, seed: u64, dimension: usize) -> Result<Self> {
        let pairs = count.div_ceil(2);
        if pairs == 0 || pairs > Self::MOST / (2 * dimension) {
            return Err(Error::Invalid(format!(
                "{count} draws for {dimension} latent functions; give between 1 and {}",
                Self::MOST / dimension
            )));
        }
        let mut stream = rng::stream(seed, "likelihood/draws");
        // by the quantile, so that a seed means the same for good; the middle of a cell is not 0
        let half_cell = 0.5 / (1_u64 << 53) as f64;
        let mut normal = || standard_normal_quantile(rng::uniform(&mut stream) + half_cell);
        let mut x: Vec<f64> = (0..pairs * dimension).map(|_| normal()).collect();
        for k in 0..dimension {
            let square: f64 = x[k..].iter().step_by(dimension).map(|x| x * x).sum();
            let scale = (square / pairs as f64).sqrt().recip();
            x[k..].iter_mut().step_by(dimension).for_each(|x| *x *= scale);
        }
        let negative: Vec<f64> = x.iter().map(|x| -x).collect();
        x.extend(negative);
        Self::given(x, dimension)
    }

    /// Creates the tensor product of Gauss–Hermite rules.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the rule would be too large.
    pub fn tensor(points: usize, dimension: usize) -> Result<Self> {
        check_points("with a tensor rule", points, Rule::MOST)?;
        Self::product(&Nodes::gauss_hermite(points), dimension)
    }

    /// Creates the tensor product of a rule with itself.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the rule would be too large.
    pub fn product(nodes: &Nodes, dimension: usize) -> Result<Self> {
        let points = nodes.x.len();
        let size = u32::try_from(dimension).ok().and_then(|d| points.checked_pow(d));
        let Some(size) = size.filter(|s| s.saturating_mul(dimension) <= Self::MOST) else {
            return Err(Error::Invalid(format!(
                "a tensor rule of {points} points for {dimension} latent functions has \
                 {points}^{dimension} nodes; take draws or `laplace`"
            )));
        };
        let (mut x, mut w) = (Vec::with_capacity(size * dimension), Vec::with_capacity(size));
        for index in 0..size {
            let (mut rest, mut weight) = (index, 1.0);
            for _ in 0..dimension {
                x.push(nodes.x[rest % points]);
                weight *= nodes.w[rest % points];
                rest /= points;
            }
            w.push(weight);
        }
        Ok(Self { dimension, x, w })
    }

    /// Creates the tensor product of the trapezoidal rule on nine standard deviations to either
    /// side with about so large steps.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the rule would be too large.
    pub fn trapezoid(step: f64, dimension: usize) -> Result<Self> {
        let half = (9.0 / step).ceil() as i32;
        let h = 9.0 / f64::from(half);
        let x: Vec<f64> = (-half..=half).map(|i| f64::from(i) * h).collect();
        let w = x.iter().map(|x| h * (-0.5 * x * x).exp() / TAU.sqrt()).collect();
        Self::product(&Nodes { x, w }, dimension)
    }

    /// Returns K.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// Returns every point with its weight.
    pub fn iter(&self) -> impl Iterator<Item = (&[f64], f64)> {
        self.x.chunks_exact(self.dimension).zip(self.w.iter().copied())
    }
}

//! Shapes of heteroscedastic noise: densities of a residual t at scale σ, and their integrals over
//! f₀ ~ N(·, v).

use super::augmented::Augmented;
use super::heteroscedastic::Heteroscedastic;
use super::multi::{LogSum, SMALL_VARIANCE};
use super::quadrature::Nodes;
use super::student_t::{log_mixture, tail_below};
use crate::params::{Param, Shape, Transform, Visitor, VisitorMut};
use crate::special::{HALF_LOG_TAU, normal_cdf};
use rand_distr::{Distribution, StandardNormal};
use statrs::function::gamma::{digamma, ln_gamma};
use std::f64::consts::{PI, TAU};

/// Log density (without its constant) of a residual t at scale σ, with derivatives.
#[derive(Clone, Copy, Debug, Default)]
pub struct Point {
    /// The log density.
    pub value: f64,
    /// By t.
    pub by_t: f64,
    /// By t, twice.
    pub by_t_twice: f64,
    /// By σ.
    pub by_scale: f64,
    /// By σ, twice.
    pub by_scale_twice: f64,
    /// By the degrees of freedom.
    pub by_df: f64,
}

/// An expectation over f₀, with derivatives by its mean and variance.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inner {
    /// The expectation.
    pub value: f64,
    /// By the mean of f₀.
    pub by_mean: f64,
    /// By its variance.
    pub by_variance: f64,
    /// By σ.
    pub by_scale: f64,
    /// By σ, twice.
    pub by_scale_twice: f64,
    /// By the degrees of freedom.
    pub by_df: f64,
}

/// A shape of noise.
pub trait Noise: Clone + Default + Send + Sync + std::fmt::Debug + 'static {
    /// Name of the likelihood.
    const NAME: &'static str;
    /// Names of the parameters.
    const PARAMS: &'static [&'static str];
    /// Whether it is normal, with closed forms.
    const IS_NORMAL: bool;

    /// Shows the parameters.
    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>);
    /// Shows the same, to change them.
    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>);
    /// Returns the part of the log density that depends neither on t nor on σ, and its slope by the
    /// degrees of freedom.
    fn constant(&self) -> (f64, f64);
    /// Returns the rest.
    fn point(&self, t: f64, scale: f64) -> Point;
    /// Returns the variance at σ = 1.
    fn variance_factor(&self) -> f64;
    /// Returns the expectation of P(residual ≤ t), f₀ having this variance; with digits in the
    /// lower tail.
    fn cdf(&self, t: f64, variance: f64, scale: f64) -> f64;
    /// Draws a number at σ = 1.
    fn sample(&self, rng: &mut dyn rand::Rng) -> f64;
    /// Returns the local variables for a precision λσ(f₁) with the logistic function σ.
    fn augmented(of: &Heteroscedastic<Self>) -> Option<&dyn Augmented>;

    /// Returns the distance of the poles of the log density from the real line, at σ = 1.
    fn pole(&self) -> f64;

    /// Calls `work` with nodes and weights for f₀: those of the tensor rule, or those of the
    /// trapezoidal rule with steps that resolve poles at distance `pole`·σ; fewer where the node of
    /// f₁ has a small weight `share`.
    fn each_node(
        &self,
        variance: f64,
        scale: f64,
        share: f64,
        tensor: Option<&Nodes>,
        mut work: impl FnMut(f64, f64),
    ) {
        if variance <= 0.0 {
            return work(0.0, 1.0);
        }
        if let Some(nodes) = tensor {
            return nodes.x.iter().zip(&nodes.w).for_each(|(x, w)| work(*x, *w));
        }
        let most = if share > 1e-4 {
            3000
        } else if share > 1e-8 {
            500
        } else {
            50
        };
        // error e^{−2π pole/h}, 1e-15 for a step of pole/5.5
        let step = (self.pole() * scale / variance.sqrt() / 5.5).min(0.5);
        let half = ((9.0 / step).ceil() as usize).min(most) as i32;
        let h = 9.0 / f64::from(half);
        for i in -half..=half {
            let x = f64::from(i) * h;
            work(x, h * (-0.5 * x * x).exp() / TAU.sqrt());
        }
    }

    /// Returns the expectation of the log density (without its constant) at the residual t − √v x,
    /// x standard normal.
    fn inner(
        &self,
        t: f64,
        variance: f64,
        scale: f64,
        share: f64,
        tensor: Option<&Nodes>,
        price: bool,
    ) -> Inner {
        let sd = variance.max(0.0).sqrt();
        let price = price || variance < SMALL_VARIANCE;
        let mut total = Inner::default();
        self.each_node(variance, scale, share, tensor, |x, w| {
            let p = self.point(t - sd * x, scale);
            total.value += w * p.value;
            total.by_mean -= w * p.by_t;
            total.by_variance +=
                if price { 0.5 * w * p.by_t_twice } else { -0.5 * w * p.by_t * x / sd };
            total.by_scale += w * p.by_scale;
            total.by_scale_twice += w * p.by_scale_twice;
            total.by_df += w * p.by_df;
        });
        total
    }

    /// Returns the logarithm of the expectation of the density (without its constant), exact for
    /// any variance and scale.
    fn log_density(&self, t: f64, variance: f64, scale: f64) -> f64;

    /// Returns the same by a rule for f₀.
    fn log_density_by(&self, t: f64, variance: f64, scale: f64, tensor: &Nodes) -> f64 {
        let sd = variance.max(0.0).sqrt();
        let mut total = LogSum::EMPTY;
        self.each_node(variance, scale, 1.0, Some(tensor), |x, w| {
            total.add(self.point(t - sd * x, scale).value, w);
        });
        total.ln()
    }
}

/// Standard normal noise.
#[derive(Clone, Copy, Debug, Default)]
pub struct Normal;

impl Noise for Normal {
    const NAME: &'static str = "heteroscedastic";
    const PARAMS: &'static [&'static str] = &[];
    const IS_NORMAL: bool = true;

    fn visit<'a>(&'a self, _: Visitor<'a, '_>) {}

    fn visit_mut<'a>(&'a mut self, _: VisitorMut<'a, '_>) {}

    fn constant(&self) -> (f64, f64) {
        (-0.5 * TAU.ln(), 0.0)
    }

    fn point(&self, t: f64, scale: f64) -> Point {
        let (z, precision) = (t / scale, 1.0 / (scale * scale));
        Point {
            value: -scale.ln() - 0.5 * z * z,
            by_t: -t * precision,
            by_t_twice: -precision,
            by_scale: (z * z - 1.0) / scale,
            by_scale_twice: (1.0 - 3.0 * z * z) * precision,
            by_df: 0.0,
        }
    }

    fn variance_factor(&self) -> f64 {
        1.0
    }

    fn sample(&self, rng: &mut dyn rand::Rng) -> f64 {
        StandardNormal.sample(rng)
    }

    fn augmented(of: &Heteroscedastic<Self>) -> Option<&dyn Augmented> {
        Some(of)
    }

    fn pole(&self) -> f64 {
        1.0
    }

    /// Computes it in closed form unless the tensor rule is asked for.
    fn inner(
        &self,
        t: f64,
        variance: f64,
        scale: f64,
        _: f64,
        _: Option<&Nodes>,
        _: bool,
    ) -> Inner {
        // a quadratic function: every rule with two points is exact
        let precision = 1.0 / (scale * scale);
        let square = (t * t + variance) * precision;
        Inner {
            value: -scale.ln() - 0.5 * square,
            by_mean: t * precision,
            by_variance: -0.5 * precision,
            by_scale: (square - 1.0) / scale,
            by_scale_twice: (1.0 - 3.0 * square) * precision,
            by_df: 0.0,
        }
    }

    fn log_density(&self, t: f64, variance: f64, scale: f64) -> f64 {
        let total = variance.sqrt().hypot(scale);
        let z = t / total;
        -total.ln() - 0.5 * z * z
    }

    fn cdf(&self, t: f64, variance: f64, scale: f64) -> f64 {
        normal_cdf(t / (variance + scale * scale).sqrt())
    }
}

/// Student's t noise.
#[derive(Clone, Debug)]
pub struct StudentT {
    /// Degrees of freedom ν, above [`StudentT::SMALLEST`].
    pub df: Param,
}

impl StudentT {
    /// Lower bound of ν.
    pub const SMALLEST: f64 = 0.1;
    /// Transform of ν.
    pub const TRANSFORM: Transform = Transform::Softplus { lower: Self::SMALLEST };

    /// Creates the noise with ν = `df` (raised to the lower bound).
    pub fn new(df: f64) -> Self {
        let df = if df > Self::SMALLEST { df } else { 2.0 * Self::SMALLEST };
        Self { df: Param::with(vec![df], Shape::Scalar, Self::TRANSFORM) }
    }
}

impl Default for StudentT {
    fn default() -> Self {
        Self::new(4.0)
    }
}

impl Noise for StudentT {
    const NAME: &'static str = "heteroscedastic-student-t";
    const PARAMS: &'static [&'static str] = &["df"];
    const IS_NORMAL: bool = false;

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        visitor(&"df", &self.df);
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        visitor(&"df", &mut self.df);
    }

    fn constant(&self) -> (f64, f64) {
        let v = self.df.scalar();
        let (half, more) = (0.5 * v, 0.5 * (v + 1.0));
        let value = ln_gamma(more) - ln_gamma(half) - 0.5 * (v * PI).ln();
        (value, 0.5 * (digamma(more) - digamma(half) - 1.0 / v))
    }

    fn point(&self, t: f64, scale: f64) -> Point {
        let (v, z) = (self.df.scalar(), t / scale);
        let (square, sum) = (z * z, v + z * z);
        let log = (square / v).ln_1p();
        let precision = 1.0 / (scale * scale);
        Point {
            value: -scale.ln() - 0.5 * (v + 1.0) * log,
            by_t: -(v + 1.0) * z / sum / scale,
            by_t_twice: (v + 1.0) * (square - v) / (sum * sum) * precision,
            by_scale: ((v + 1.0) * square / sum - 1.0) / scale,
            by_scale_twice: (1.0 - (v + 1.0) * square * (3.0 * v + square) / (sum * sum))
                * precision,
            by_df: 0.5 * ((v + 1.0) * square / (v * sum) - log),
        }
    }

    fn variance_factor(&self) -> f64 {
        let v = self.df.scalar();
        if v > 2.0 { v / (v - 2.0) } else { f64::INFINITY }
    }

    fn cdf(&self, t: f64, variance: f64, scale: f64) -> f64 {
        tail_below(t, variance.max(0.0), scale, self.df.scalar())
    }

    fn log_density(&self, t: f64, variance: f64, scale: f64) -> f64 {
        log_mixture(t, variance, scale, self.df.scalar()) - HALF_LOG_TAU - self.constant().0
    }

    fn sample(&self, rng: &mut dyn rand::Rng) -> f64 {
        match rand_distr::StudentT::new(self.df.scalar()) {
            Ok(t) => t.sample(rng),
            Err(_) => f64::NAN,
        }
    }

    fn augmented(of: &Heteroscedastic<Self>) -> Option<&dyn Augmented> {
        Some(of)
    }

    fn pole(&self) -> f64 {
        self.df.scalar().sqrt()
    }
}

//! The generalised inverse Gaussian distribution.

use super::accepted;
use crate::error::{Error, Result};
use crate::rng::uniform;
use rand::Rng;
use rand_distr::Distribution;

/// GIG(p, a, b) with density ∝ x^{p−1} exp(−(ax + b/x)/2), for any real p.
///
/// Devroye 2014 (Statistics and Computing 24:239): with λ = |p|, the logarithm of the density of
/// Y = log(x/scale) is ψ(y) = −α(cosh y − 1) − λ(eʸ − y − 1) up to a constant,
/// α = √(λ² + ab) − λ; it is concave with maximum 0 at 0, so that it is below 0 between two points
/// −s < 0 < t and below its tangents at these outside. Gamma (b = 0, p > 0) and inverse gamma (a = 0,
/// p < 0) are included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GeneralisedInverseGaussian {
    alpha: f64,
    lambda: f64,
    /// x = numerator·eʸ for p ≥ 0, numerator·e⁻ʸ for p < 0.
    scale: f64,
    negative: bool,
    /// At t.
    right: Tangent,
    /// At −s.
    left: Tangent,
}

/// A tangent of ψ, by the distance from 0: the hat is exp(−slope·(distance − corner)) beyond `corner`,
/// where the tangent is 0, and 1 nearer than that.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Tangent {
    /// Minus the slope of the log density away from 0, positive.
    slope: f64,
    corner: f64,
}

impl GeneralisedInverseGaussian {
    /// Creates the distribution with a > 0 and b > 0, or b = 0 where p > 0, or a = 0 where p < 0;
    /// all finite.
    ///
    /// # Errors
    /// [`Error::Invalid`] for other numbers, for which the density has no integral.
    pub fn new(p: f64, a: f64, b: f64) -> Result<Self> {
        let proper = (a > 0.0 || (a == 0.0 && p < 0.0)) && (b > 0.0 || (b == 0.0 && p > 0.0));
        if !(proper && p.is_finite() && a.is_finite() && b.is_finite()) {
            return Err(Error::Invalid(format!(
                "GIG(p, a, b) needs finite numbers with a > 0 (or a = 0 and p < 0) and b > 0 (or b = 0 and p > 0), not p = {p}, a = {a}, b = {b}"
            )));
        }
        let lambda = p.abs();
        let root = a.sqrt() * b.sqrt();
        let sum = lambda + lambda.hypot(root);
        let alpha = root * (root / sum);
        // the inverse of x is GIG(−p, b, a)
        let (negative, scale) = if p < 0.0 { (true, b / sum) } else { (false, sum / a) };
        let (t, s) = (right_point(alpha, lambda), left_point(alpha, lambda));
        Ok(Self {
            alpha,
            lambda,
            scale,
            negative,
            right: Tangent::new(alpha, lambda, t),
            left: Tangent::new(alpha, lambda, -s),
        })
    }
}

/// Returns ψ(y).
fn log_density(alpha: f64, lambda: f64, y: f64) -> f64 {
    let half = (0.5 * y).sinh();
    -2.0 * alpha * half * half - lambda * (y.exp_m1() - y)
}

impl Tangent {
    fn new(alpha: f64, lambda: f64, y: f64) -> Self {
        let slope = (alpha * y.sinh() + lambda * y.exp_m1()).abs();
        Self { slope, corner: y.abs() + log_density(alpha, lambda, y) / slope }
    }
}

/// Returns t of Devroye 2014; any t > 0 is valid, this one bounds the number of trials.
fn right_point(alpha: f64, lambda: f64) -> f64 {
    match -log_density(alpha, lambda, 1.0) {
        v if v > 2.0 => (2.0 / (alpha + lambda)).sqrt(),
        v if v < 0.5 => (4.0 / (alpha + 2.0 * lambda)).ln(),
        _ => 1.0,
    }
}

/// Returns s of Devroye 2014.
fn left_point(alpha: f64, lambda: f64) -> f64 {
    match -log_density(alpha, lambda, -1.0) {
        v if v > 2.0 => (4.0 / (alpha * 1f64.cosh() + lambda)).sqrt(),
        v if v < 0.5 => {
            let inverse = 1.0 / alpha;
            (1.0 + inverse + (inverse * (inverse + 2.0)).sqrt()).ln().min(1.0 / lambda)
        }
        _ => 1.0,
    }
}

impl Distribution<f64> for GeneralisedInverseGaussian {
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        let (left, right) = (&self.left, &self.right);
        let flat = left.corner + right.corner;
        let (beyond_right, beyond_left) = (1.0 / right.slope, 1.0 / left.slope);
        let y = accepted(|| {
            let at = uniform(rng) * (flat + beyond_right + beyond_left);
            let (y, log_hat) = if at < flat {
                (at - left.corner, 0.0)
            } else {
                // 1 − U is never 0
                let log = (1.0 - uniform(rng)).ln();
                if at < flat + beyond_right {
                    (right.corner - log * beyond_right, log)
                } else {
                    (-left.corner + log * beyond_left, log)
                }
            };
            let level = (1.0 - uniform(rng)).ln() + log_hat;
            (level <= log_density(self.alpha, self.lambda, y)).then_some(y)
        });
        self.scale * if self.negative { -y } else { y }.exp()
    }
}

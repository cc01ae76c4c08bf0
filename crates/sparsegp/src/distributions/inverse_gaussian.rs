//! The inverse Gaussian (Wald) distribution, whole and below a bound.

use super::accepted;
use crate::error::{Error, Result};
use crate::rng::uniform;
use rand::Rng;
use rand_distr::{Distribution, Exp1, StandardNormal};

/// IG(μ, λ) with density √(λ/2πx³) exp(−λ(x − μ)²/2μ²x).
///
/// The mean may be infinite: the limit is the Lévy distribution, 1/x ~ Ga(½, rate λ/2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InverseGaussian {
    /// 1/μ, 0 for an infinite mean.
    inverse_mean: f64,
    shape: f64,
}

impl InverseGaussian {
    /// Creates the distribution with mean μ in (0, ∞] and shape λ in (0, ∞).
    ///
    /// # Errors
    /// [`Error::Invalid`] for other numbers.
    pub fn new(mean: f64, shape: f64) -> Result<Self> {
        if mean > 0.0 && shape > 0.0 && shape.is_finite() {
            Ok(Self { inverse_mean: 1.0 / mean, shape })
        } else {
            Err(Error::Invalid(format!(
                "an inverse Gaussian needs a mean above 0 and a finite shape above 0, not {mean} and {shape}"
            )))
        }
    }
}

impl Distribution<f64> for InverseGaussian {
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        draw(self.inverse_mean, self.shape, rng)
    }
}

/// Draws by Michael, Schucany & Haas 1976. λ(x − μ)²/μ²x is χ²₁; of the two x with the value y
/// drawn for it, the smaller one, x₁, is taken with probability μ/(μ + x₁), else μ²/x₁.
///
/// x₁ = 1/(m + h + √(h² + 2mh)) with m = 1/μ and h = y/2λ has no cancellation, and holds at m = 0.
fn draw<R: Rng + ?Sized>(m: f64, shape: f64, rng: &mut R) -> f64 {
    let normal: f64 = StandardNormal.sample(rng);
    let h = 0.5 * normal * normal / shape;
    let root = 1.0 / (m + h + (h * (h + 2.0 * m)).sqrt());
    // a NaN (∞·0) is a root of 0
    if uniform(rng) * (1.0 + m * root) > 1.0 { 1.0 / (m * m * root) } else { root }
}

/// IG(μ, λ) given x < u.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TruncatedInverseGaussian {
    inverse_mean: f64,
    shape: f64,
    upper: f64,
    method: Method,
}

/// How a draw is proposed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Method {
    /// The whole distribution until a draw is below the bound.
    Whole,
    /// λ/N² with a normal |N| beyond √(λ/u), which lacks the factor exp(−tilt·x), tilt = λ/2μ².
    Levy { tail: NormalTail, tilt: f64 },
    /// 1/x exponential beyond 1/u: y^{−½} ≤ u^{½}, and −λ/2μ²y is below its tangent at 1/u.
    Tangent { rate: f64 },
}

impl TruncatedInverseGaussian {
    /// Creates the distribution with mean μ in (0, ∞], shape λ in (0, ∞) and bound u in (0, ∞).
    ///
    /// # Errors
    /// [`Error::Invalid`] for other numbers.
    pub fn new(mean: f64, shape: f64, upper: f64) -> Result<Self> {
        let InverseGaussian { inverse_mean, .. } = InverseGaussian::new(mean, shape)?;
        if upper > 0.0 && upper.is_finite() {
            Ok(Self::with(inverse_mean, shape, upper))
        } else {
            Err(Error::Invalid(format!(
                "the bound of a truncated inverse Gaussian must be a finite number above 0, not {upper}"
            )))
        }
    }

    /// Creates the distribution from valid numbers, m = 1/μ.
    ///
    /// The choice keeps every acceptance probability above about 0.2: the factor of `Levy` is at
    /// least e⁻¹; the bound is below the mean by at least a standard deviation or so for `Tangent`, and
    /// is above it, or below it by less, for `Whole`.
    pub(super) fn with(m: f64, shape: f64, upper: f64) -> Self {
        let (ratio, k) = (m * upper, shape / upper);
        let method = if ratio < 1.0 && k * ratio * ratio <= 2.0 {
            Method::Levy { tail: NormalTail::beyond(k.sqrt()), tilt: 0.5 * shape * m * m }
        } else if ratio < 1.0 && k * (1.0 - ratio * ratio).powi(2) >= 1.0 {
            Method::Tangent { rate: 0.5 * shape * (1.0 - ratio * ratio) }
        } else {
            Method::Whole
        };
        Self { inverse_mean: m, shape, upper, method }
    }
}

impl Distribution<f64> for TruncatedInverseGaussian {
    #[inline]
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        let m = self.inverse_mean;
        accepted(|| {
            let x = match self.method {
                Method::Whole => {
                    let x = draw(m, self.shape, rng);
                    if x >= self.upper {
                        return None;
                    }
                    x
                }
                Method::Levy { tail, tilt } => {
                    let normal = tail.sample(rng);
                    let x = self.shape / (normal * normal);
                    if tilt > 0.0 && Distribution::<f64>::sample(&Exp1, rng) < tilt * x {
                        return None;
                    }
                    x
                }
                Method::Tangent { rate } => {
                    let start = 1.0 / self.upper;
                    let beyond = Distribution::<f64>::sample(&Exp1, rng) / rate;
                    let y = start + beyond;
                    // 1/y − 1/y₀ + (y − y₀)/y₀² = (y − y₀)²/y y₀²
                    let below = 0.5 * self.shape * (m * beyond / start).powi(2) / y;
                    if uniform(rng) > (start / y).sqrt() * (-below).exp() {
                        return None;
                    }
                    1.0 / y
                }
            };
            Some(x)
        })
    }
}

/// |N| given |N| ≥ a, N standard normal.
#[derive(Clone, Copy, Debug, PartialEq)]
struct NormalTail {
    start: f64,
    /// Rate of the exponential proposal; 0 where normals themselves are proposed.
    rate: f64,
}

impl NormalTail {
    fn beyond(start: f64) -> Self {
        // the best rate, Robert 1995
        let rate = if start < 0.8 { 0.0 } else { 0.5 * (start + start.hypot(2.0)) };
        Self { start, rate }
    }

    #[inline]
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        accepted(|| {
            if self.rate == 0.0 {
                let n: f64 = StandardNormal.sample(rng);
                (n.abs() >= self.start).then_some(n.abs())
            } else {
                let e: f64 = Exp1.sample(rng);
                let n = self.start + e / self.rate;
                let gap = n - self.rate;
                (Distribution::<f64>::sample(&Exp1, rng) >= 0.5 * gap * gap).then_some(n)
            }
        })
    }
}

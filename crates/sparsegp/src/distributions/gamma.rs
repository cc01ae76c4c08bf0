//! The gamma distribution above a bound.

use super::accepted;
use crate::error::{Error, Result};
use crate::rng::uniform;
use rand::Rng;
use rand_distr::{Distribution, Exp1, Gamma};

/// Ga(a, rate β) given x > t.
#[derive(Clone, Copy, Debug)]
pub struct TruncatedGamma {
    shape: f64,
    rate: f64,
    lower: f64,
    method: Method,
}

/// How a draw is proposed.
#[derive(Clone, Copy, Debug)]
enum Method {
    /// The whole distribution until a draw is above the bound.
    Whole(Gamma<f64>),
    /// t plus an exponential of rate μ. x^{a−1}e^{−βx} ≤ (x*)^{a−1}e^{−(β−μ)x*}e^{−μx} with the maximiser
    /// x* = (a − 1)/(β − μ) for a ≥ 1, x* = t and μ = β for a < 1.
    Exponential { rate: f64, touch: f64 },
    /// For a < 1: the power x^{a−1} on (t, 1/β), the exponential beyond; the probability is of the first.
    PowerThenExponential { power: f64 },
}

impl TruncatedGamma {
    /// Creates the distribution with shape a, rate β and bound t, finite; a > 0, β > 0, t ≥ 0.
    ///
    /// # Errors
    /// [`Error::Invalid`] for other numbers.
    pub fn new(shape: f64, rate: f64, lower: f64) -> Result<Self> {
        let valid = shape > 0.0 && rate > 0.0 && lower >= 0.0;
        let whole = Gamma::new(shape, 1.0 / rate).ok();
        let (true, Some(whole)) = (valid && (shape + rate + lower).is_finite(), whole) else {
            return Err(Error::Invalid(format!(
                "a truncated gamma needs a finite shape and rate above 0 and a finite bound of at least 0, not {shape}, {rate} and {lower}"
            )));
        };
        let start = rate * lower;
        let method = if lower == 0.0 || (shape >= 1.0 && start <= shape) {
            Method::Whole(whole)
        } else if shape >= 1.0 {
            let sum = tangent_sum(shape, start);
            let touch = sum / (2.0 * rate);
            Method::Exponential { rate: rate * (1.0 - 2.0 * (shape - 1.0) / sum), touch }
        } else if start >= 1.0 {
            Method::Exponential { rate, touch: lower }
        } else {
            // masses ∫ x^{a−1} on (βt, 1) and ∫ e^{−x} on (1, ∞), of which the first grows with e⁰
            let first = -(shape * start.ln()).exp_m1() / shape;
            Method::PowerThenExponential { power: first / (first + (-1f64).exp()) }
        };
        Ok(Self { shape, rate, lower, method })
    }
}

/// Returns s = βt + a + √((βt − a)² + 4βt), a ≥ 1: the exponential of rate β(1 − 2(a − 1)/s), which
/// touches at x* = s/2β, has the smallest mass above t among those that touch the gamma density
/// (Dagpunar 1978).
///
/// 1/μ for μ = (βt − a + √…)/2t minimises (x*)^{a−1}e^{−(β−μ)x*}e^{−μt}/μ; β − μ is written without
/// cancellation.
pub(super) fn tangent_sum(shape: f64, start: f64) -> f64 {
    start + shape + ((start - shape).powi(2) + 4.0 * start).sqrt()
}

impl Distribution<f64> for TruncatedGamma {
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        let Self { shape, rate, lower, .. } = *self;
        accepted(|| {
            let (x, log_accept) = match self.method {
                Method::Whole(whole) => {
                    let x = whole.sample(rng);
                    return (x > lower).then_some(x);
                }
                Method::Exponential { rate: proposed, touch } => {
                    let e: f64 = Exp1.sample(rng);
                    let x = lower + e / proposed;
                    (x, (shape - 1.0) * (x / touch).ln() - (rate - proposed) * (x - touch))
                }
                Method::PowerThenExponential { power } => {
                    let at = uniform(rng);
                    if at < power {
                        // x^a is uniform on (start^a, 1)
                        let low = (shape * (rate * lower).ln()).exp_m1();
                        let x = ((uniform(rng) * low).ln_1p() / shape).exp();
                        (x / rate, -x)
                    } else {
                        let e: f64 = Exp1.sample(rng);
                        ((1.0 + e) / rate, (shape - 1.0) * e.ln_1p())
                    }
                }
            };
            (Distribution::<f64>::sample(&Exp1, rng) >= -log_accept).then_some(x)
        })
    }
}

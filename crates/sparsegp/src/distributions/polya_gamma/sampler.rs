//! Exact draws of PG(b, c) for real b.

use crate::distributions::gamma::tangent_sum;
use crate::distributions::inverse_gaussian::TruncatedInverseGaussian;
use crate::likelihoods::functions::{log_normal_cdf, normal_cdf};
use crate::rng::uniform;
use rand::Rng;
use rand_distr::{Distribution, Exp1};
use std::f64::consts::{FRAC_PI_4, PI, TAU};

/// Draws of one PG(b, c): what depends on (b, c) alone is computed once.
///
/// A variate is the sum of ⌈b/4⌉ variates of the same shape, each of at most 4, drawn as x/4 by the
/// alternating-series method of Devroye (2009) as Polson, Scott & Windle (2013) and Windle, Polson &
/// Scott (2014) have it. With z = |c|/2 and K = π²/8 + z²/2 the density of x is proportional to
/// e^{−z²x/2} f(x), f(x) = Σ (−1)ⁿaₙ(x),
///
/// aₙ(x) = 2ᵇ Γ(n + b)/(Γ(b) n!) (2n + b)/√(2πx³) e^{−(2n + b)²/2x}.
///
/// - Below a point t, f ≤ a₀: the proposal is IG(b/z, b²) below t.
/// - Above, f ≤ 𝓜(π/2)ᵇ/Γ(b) x^{b−1}e^{−π²x/8} with 𝓜 = 1 for b ≥ 1 (as a sum of gammas; Windle et al.,
///   §3) and 𝓜 = 1.07 for b < 1 and x ≥ 1 (checked numerically; the greatest ratio is 1.059). The
///   gamma density is in turn below an exponential one that touches it, so that masses need no
///   incomplete gamma function.
/// - For a piece of shape 1, f has the dual series Σ (−1)ⁿπ(n + ½)e^{−(n + ½)²π²x/2} above t = 0.64.
///
/// The time is O(b). A shape below 10⁻¹⁰⁰ gives 0, as all but a part of 10⁻⁹⁷ of its draws would
/// be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolyaGammaSampler {
    pieces: u64,
    piece: Piece,
}

/// The largest shape of a piece.
const LARGEST: f64 = 4.0;
/// Above this x the gamma envelope is taken for the density: P(x > 25) < 10⁻⁹, the two differ by
/// little, and the alternating series has no digits left.
const FAR: f64 = 25.0;

/// A variate of shape b ≤ 4.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Piece {
    shape: f64,
    /// t.
    split: f64,
    left: TruncatedInverseGaussian,
    /// Probability that the proposal is above t.
    right_mass: f64,
    /// Rate of the exponential proposal above t.
    rate: f64,
    /// The gamma envelope e^{−Kx}x^{b−1} touches the exponential one at `touch`; `excess` is K − rate.
    touch: f64,
    excess: f64,
    /// log of 𝓜(π/2)ᵇ/Γ(b) · √(2π)/(2ᵇb): the gamma envelope over a₀ but for powers of x.
    log_ratio: f64,
    /// 1 − a₁/a₀ at the point where that is greatest: smaller uniforms accept at once.
    squeeze: f64,
}

/// t: any number is valid; near the crossing of the two envelopes fewer proposals are rejected.
fn split(shape: f64) -> f64 {
    if shape < 1.0 {
        1.0
    } else if shape == 1.0 {
        0.64
    } else {
        (0.64 + 2.0 * (shape - 1.0)).min(1.02 * shape)
    }
}

/// 𝓜.
fn margin(shape: f64) -> f64 {
    if shape < 1.0 { 1.07 } else { 1.0 }
}

/// The x in [b/5, 3b] where a₀ and the gamma envelope cross for 1 ≤ b ≤ 4, the best point t up to which to
/// propose from a₀; 1 for b < 1, as the gamma envelope holds from there only.
pub fn envelope_crossing(shape: f64) -> f64 {
    if shape < 1.0 {
        return 1.0;
    }
    let log_gap = |x: f64| {
        shape * (FRAC_PI_4).ln() - libm::lgamma(shape) - shape.ln()
            + 0.5 * TAU.ln()
            + (shape + 0.5) * x.ln()
            - PI * PI / 8.0 * x
            + 0.5 * shape * shape / x
    };
    // a₀ is the smaller one at the lower end; of several crossings, the first
    let (mut low, mut high) = (0.2 * shape, 3.0 * shape);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if log_gap(middle) > 0.0 { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

impl Piece {
    fn new(shape: f64, z: f64) -> Self {
        let t = split(shape);
        let k = PI * PI / 8.0 + 0.5 * z * z;
        let root = t.sqrt();
        // both masses times e^{bz}/2ᵇ, without cosh ᵇ z
        let left = if z == 0.0 {
            2.0 * normal_cdf(-shape / root)
        } else {
            normal_cdf(z * root - shape / root)
                + (2.0 * shape * z + log_normal_cdf(-z * root - shape / root)).exp()
        };
        let (rate, touch, excess) = if shape < 1.0 {
            (k, t, 0.0)
        } else {
            let sum = tangent_sum(shape, k * t);
            let excess = 2.0 * k * (shape - 1.0) / sum;
            (k - excess, 0.5 * sum / k, excess)
        };
        let constant = margin(shape) / libm::tgamma(shape);
        let log_right =
            shape * (FRAC_PI_4.ln() + z) + (shape - 1.0) * touch.ln() - excess * touch - rate * t;
        let right = constant * log_right.exp() / rate;
        let ratio = constant * TAU.sqrt() / shape;
        Self {
            shape,
            split: t,
            left: TruncatedInverseGaussian::with(z / shape, shape * shape, t),
            right_mass: if right > 0.0 { right / (right + left) } else { 0.0 },
            rate,
            touch,
            excess,
            log_ratio: ratio.ln() + shape * FRAC_PI_4.ln(),
            squeeze: 1.0 - (shape + 2.0) * (-2.0 * (1.0 + shape) / t).exp(),
        }
    }

    /// x.
    #[inline]
    fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        loop {
            let (x, accepted) = if uniform(rng) < self.right_mass {
                let e: f64 = Exp1.sample(rng);
                let x = self.split + e / self.rate;
                (x, self.accept_right(x, uniform(rng)))
            } else {
                let x = self.left.sample(rng);
                let u = uniform(rng);
                (x, u < self.squeeze || below_series(self.shape, x, u))
            };
            if accepted {
                return x;
            }
        }
    }

    /// Whether u times the exponential envelope at x is below the density.
    fn accept_right(&self, x: f64, u: f64) -> bool {
        if self.shape == 1.0 {
            return below_dual_series(x, u);
        }
        // the gamma envelope over the exponential one
        let log = (x / self.touch).ln();
        let power = self.shape - 1.0;
        let gamma = (power * log - self.excess * (x - self.touch)).exp();
        if u > gamma {
            return false;
        }
        if x > FAR {
            return true;
        }
        let log_ratio = self.log_ratio + (power + 1.5) * (log + self.touch.ln())
            - PI * PI / 8.0 * x
            + 0.5 * self.shape * self.shape / x;
        below_series(self.shape, x, u / gamma * log_ratio.exp())
    }
}

/// Whether y ≤ f(x)/a₀(x) = 1 − a₁/a₀ + a₂/a₀ − …, from as many terms as that takes. Terms may grow
/// before they fall, and only falling ones bound what is left; once they fall they fall for good, as
/// aₙ/aₙ₋₁ decreases with n.
fn below_series(shape: f64, x: f64, y: f64) -> bool {
    let (mut sum, mut before, mut binomial, mut n) = (1.0, 1.0, 1.0, 0.0);
    loop {
        n += 1.0;
        // Γ(n + b)/(Γ(b) n!)
        binomial *= (n - 1.0 + shape) / n;
        let term = binomial * (2.0 * n + shape) / shape * (-2.0 * n * (n + shape) / x).exp();
        let falls = term < before;
        before = term;
        if n % 2.0 == 1.0 {
            sum -= term;
            if falls && y <= sum {
                return true;
            }
        } else {
            sum += term;
            if falls && y > sum {
                return false;
            }
        }
        if term == 0.0 {
            return y <= sum;
        }
    }
}

/// The same for the dual series of shape 1, over its first term.
fn below_dual_series(x: f64, y: f64) -> bool {
    let (mut sum, mut n) = (1.0, 0.0);
    loop {
        n += 1.0;
        let term = (2.0 * n + 1.0) * (-0.5 * n * (n + 1.0) * PI * PI * x).exp();
        if n % 2.0 == 1.0 {
            sum -= term;
            if y <= sum {
                return true;
            }
        } else {
            sum += term;
            if y > sum || term == 0.0 {
                return y <= sum;
            }
        }
    }
}

impl PolyaGammaSampler {
    /// With valid numbers, c ≥ 0.
    pub(super) fn new(shape: f64, tilt: f64) -> Self {
        let pieces = if shape < 1e-100 { 0.0 } else { (shape / LARGEST).ceil() };
        let piece = Piece::new(if pieces > 0.0 { shape / pieces } else { 1.0 }, 0.5 * tilt);
        Self { pieces: pieces as u64, piece }
    }

    /// The probability that a piece is proposed above the point t that parts the two envelopes, by the
    /// exponential one. A shape of at most 4 is one piece.
    pub fn exponential_mass(&self) -> f64 {
        self.piece.right_mass
    }
}

impl Distribution<f64> for PolyaGammaSampler {
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        0.25 * (0..self.pieces).map(|_| self.piece.draw(rng)).sum::<f64>()
    }
}

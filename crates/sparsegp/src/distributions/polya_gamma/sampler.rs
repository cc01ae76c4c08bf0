//! Exact draws of PG(b, c) for real b.

use crate::distributions::accepted;
use crate::distributions::functions::{pg_mean, pg_variance};
use crate::distributions::gamma::tangent_sum;
use crate::distributions::inverse_gaussian::TruncatedInverseGaussian;
use crate::rng::uniform;
use crate::special::{log_normal_cdf, normal_cdf};
use rand::Rng;
use rand_distr::{Distribution, Exp1, Gamma};
use std::f64::consts::{FRAC_PI_4, PI, TAU};
use std::sync::LazyLock;

/// Draws of one PG(b, c): what depends only on (b, c) is computed once.
///
/// A variate is the sum of ⌈b/4⌉ variates of the same shape, each of at most 4, drawn as x/4 by the
/// alternating-series method of Devroye (2009) as Polson, Scott & Windle (2013) and Windle, Polson &
/// Scott (2014) have it. With z = |c|/2 and K = π²/8 + z²/2 the density of x is proportional to
/// e^{−z²x/2} f(x), f(x) = Σ (−1)ⁿaₙ(x),
///
/// aₙ(x) = 2ᵇ Γ(n + b)/(Γ(b) n!) (2n + b)/√(2πx³) e^{−(2n + b)²/2x}.
///
/// - Below a point t, f ≤ a₀: the proposal is IG(b/z, b²) below t.
/// - Above, f ≤ 𝓜(π/2)ᵇ/Γ(b) x^{b−1}e^{−π²x/8} with 𝓜 = 1 for b ≥ 1 (from ω as a sum of
///   gammas) and 𝓜 = 1.07 for b < 1 and x ≥ 1 (checked numerically; the greatest ratio is 1.059). The
///   gamma density is in turn below an exponential one that touches it, so that masses need no
///   incomplete gamma function.
/// - For a piece of shape 1, f has the dual series Σ (−1)ⁿπ(n + ½)e^{−(n + ½)²π²x/2} above t = 0.64.
///
/// The time is O(b), up to a bound on the pieces, from which on they are a gamma variate. A shape below 10⁻¹⁰⁰ gives 0, as all but a part of 10⁻⁹⁷ of its draws would
/// be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolyaGammaSampler {
    pieces: u64,
    piece: Piece,
    tilt: f64,
}

/// The largest shape of a piece.
const LARGEST: f64 = 4.0;
/// Above this x the gamma envelope is taken for the density: P(x > 25) < 10⁻⁹, the two differ by
/// little, and the alternating series has no digits left.
const FAR: f64 = 25.0;
/// Smaller shapes draw 0.
const TINY: f64 = 1e-100;
/// Most pieces that are drawn one by one. Sums of more are drawn from the gamma distribution with their mean
/// and variance: skewness, by which the two differ, is below 10⁻³.
const MOST_PIECES: u64 = 1_000_000;
/// Terms of a series, which falls as e^{−2n²/x} with x at most 25, or faster.
const MOST_TERMS: u32 = 200;

/// What depends only on the shape b ≤ 4 of a piece.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Shape {
    b: f64,
    /// t.
    split: f64,
    /// Below t without tilt.
    untilted: TruncatedInverseGaussian,
    /// ∫ a₀ below t over 2ᵇ, without tilt: 2Φ(−b/√t).
    left: f64,
    /// 𝓜(π/4)ᵇ/Γ(b): the gamma envelope over 2ᵇ, but for its powers of x.
    right: f64,
    /// log of the same times √(2π)/b: the gamma envelope over a₀, but for its powers of x.
    log_ratio: f64,
    /// 1 − a₁/a₀ at t, where that is smallest: smaller uniforms accept at once below t.
    squeeze: f64,
}

/// The shapes ½, 1, 1½, …, 4, which are most in use.
static HALVES: LazyLock<[Shape; 8]> =
    LazyLock::new(|| std::array::from_fn(|i| Shape::new(0.5 * (i + 1) as f64)));

impl Shape {
    fn of(b: f64) -> Self {
        let twice = 2.0 * b;
        if twice.fract() == 0.0 { HALVES[twice as usize - 1] } else { Self::new(b) }
    }

    fn new(b: f64) -> Self {
        let (split, margin) = (split(b), if b < 1.0 { MARGIN } else { 1.0 });
        let right = margin * (b * FRAC_PI_4.ln()).exp() / libm::tgamma(b);
        Self {
            b,
            split,
            untilted: TruncatedInverseGaussian::with(0.0, b * b, split),
            left: 2.0 * normal_cdf(-b / split.sqrt()),
            right,
            log_ratio: (right * TAU.sqrt() / b).ln(),
            squeeze: 1.0 - (b + 2.0) * (-2.0 * (1.0 + b) / split).exp(),
        }
    }
}

/// 𝓜 for b < 1.
const MARGIN: f64 = 1.07;

/// A variate of shape b ≤ 4.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Piece {
    shape: Shape,
    /// Below t: the proposal, and the part z²/2 of the tilt that it lacks.
    left: TruncatedInverseGaussian,
    lacking: f64,
    /// Probability that the proposal is above t.
    right_mass: f64,
    /// Rate of the exponential proposal above t.
    rate: f64,
    /// The gamma envelope e^{−Kx}x^{b−1} touches the exponential one at `touch`; `excess` is K − rate.
    touch: f64,
    log_touch: f64,
    excess: f64,
}

/// Returns t: any number is valid; near the crossing of the two envelopes fewer proposals are
/// rejected.
fn split(shape: f64) -> f64 {
    if shape < 1.0 {
        1.0
    } else if shape == 1.0 {
        0.64
    } else {
        (0.64 + 2.0 * (shape - 1.0)).min(1.02 * shape)
    }
}

/// Returns the x in [b/5, 3b] where a₀ and the gamma envelope cross for 1 ≤ b ≤ 4, the best point t
/// up to which to propose from a₀; 1 for b < 1, as the gamma envelope holds from there only.
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

/// A tilt e^{−z²x/2} that is at least e^{−LIGHT} below t can be left to rejection.
const LIGHT: f64 = 1.0;

impl Piece {
    /// Creates a piece for many draws: the proposal below t has the tilt.
    fn new(shape: Shape, z: f64) -> Self {
        Self::tilted(shape, z, false)
    }

    /// Creates a piece for one draw: a light tilt is left to rejection, as masses without tilt need
    /// no normal integrals.
    fn quick(shape: Shape, z: f64) -> Self {
        Self::tilted(shape, z, 0.5 * z * z * shape.split <= LIGHT)
    }

    fn tilted(shape: Shape, z: f64, light: bool) -> Self {
        let Shape { b, split: t, .. } = shape;
        let (half, light) = (0.5 * z * z, light || z == 0.0);
        let k = PI * PI / 8.0 + half;
        // both masses over 2ᵇ; times e^{bz} where there is a tilt
        let (left, scale, proposal) = if light {
            (shape.left, 0.0, shape.untilted)
        } else {
            let root = t.sqrt();
            let small = (2.0 * b * z + log_normal_cdf(-z * root - b / root)).exp();
            let proposal = TruncatedInverseGaussian::with(z / b, b * b, t);
            (normal_cdf(z * root - b / root) + small, b * z, proposal)
        };
        // for b = 1 the gamma envelope is exponential, for b < 1 it is one times a power that falls, t = 1
        let (touch, log_touch, excess) = if b <= 1.0 {
            (t, 0.0, 0.0)
        } else {
            let sum = tangent_sum(b, k * t);
            let touch = 0.5 * sum / k;
            (touch, touch.ln(), 2.0 * k * (b - 1.0) / sum)
        };
        let rate = k - excess;
        let log_right = scale + (b - 1.0) * log_touch - excess * touch - rate * t;
        let right = shape.right * log_right.exp() / rate;
        Self {
            shape,
            left: proposal,
            lacking: if light { half } else { 0.0 },
            right_mass: if right > 0.0 { right / (right + left) } else { 0.0 },
            rate,
            touch,
            log_touch,
            excess,
        }
    }

    /// Draws x.
    #[inline]
    fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        let Shape { b, split, squeeze, .. } = self.shape;
        accepted(|| {
            let (x, below) = if uniform(rng) < self.right_mass {
                let e: f64 = Exp1.sample(rng);
                let x = split + e / self.rate;
                (x, self.accept_right(x, uniform(rng)))
            } else {
                let x = self.left.sample(rng);
                if self.lacking > 0.0 && Distribution::<f64>::sample(&Exp1, rng) < self.lacking * x
                {
                    return None;
                }
                let u = uniform(rng);
                (x, u < squeeze || below_series(b, x, u, 1.0))
            };
            below.then_some(x)
        })
    }

    /// Returns whether u times the exponential envelope at x is below the density.
    fn accept_right(&self, x: f64, u: f64) -> bool {
        let Shape { b, log_ratio, .. } = self.shape;
        if b == 1.0 {
            return below_dual_series(x, u);
        }
        // the gamma envelope over the exponential one
        let (log, power) = (x.ln(), b - 1.0);
        let gamma = (power * (log - self.log_touch) - self.excess * (x - self.touch)).exp();
        if u > gamma {
            return false;
        }
        if x > FAR {
            return true;
        }
        let ratio = log_ratio + (b + 0.5) * log - PI * PI / 8.0 * x + 0.5 * b * b / x;
        let envelope = ratio.exp();
        below_series(b, x, u / gamma * envelope, envelope)
    }
}

/// Returns whether y ≤ f(x)/a₀(x) = 1 − a₁/a₀ + a₂/a₀ − …, from as many terms as that takes. Terms
/// may grow before they fall, and only falling ones bound what is left; once they fall they fall
/// for good, as aₙ/aₙ₋₁ decreases with n. `envelope` is what f(x)/a₀(x) is known not to exceed.
fn below_series(shape: f64, x: f64, y: f64, envelope: f64) -> bool {
    let (mut sum, mut before, mut binomial) = (1.0, 1.0, 1.0);
    for n in 1..=MOST_TERMS {
        let n = f64::from(n);
        // Γ(n + b)/(Γ(b) n!)
        binomial *= (n - 1.0 + shape) / n;
        let term = binomial * (2.0 * n + shape) / shape * (-2.0 * n * (n + shape) / x).exp();
        let falls = term < before;
        before = term;
        if n % 2.0 == 1.0 {
            sum -= term;
            debug_assert!(
                !falls || sum <= envelope + 1e-12,
                "the envelope at b = {shape}, x = {x}"
            );
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
    false
}

/// Returns the same for the dual series of shape 1, over its first term.
fn below_dual_series(x: f64, y: f64) -> bool {
    let mut sum = 1.0;
    for n in 1..=MOST_TERMS {
        let n = f64::from(n);
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
    false
}

/// Draws from PG(b, c), c ≥ 0.
pub(super) fn draw<R: Rng + ?Sized>(shape: f64, tilt: f64, rng: &mut R) -> f64 {
    if shape < TINY {
        0.0
    } else if shape <= LARGEST {
        0.25 * Piece::quick(Shape::of(shape), 0.5 * tilt).draw(rng)
    } else {
        PolyaGammaSampler::new(shape, tilt).sample(rng)
    }
}

impl PolyaGammaSampler {
    /// Creates the sampler from valid numbers, c ≥ 0.
    pub(super) fn new(shape: f64, tilt: f64) -> Self {
        let pieces = if shape < TINY { 0.0 } else { (shape / LARGEST).ceil() };
        let piece = Shape::of(if pieces > 0.0 { shape / pieces } else { 1.0 });
        Self { pieces: pieces as u64, piece: Piece::new(piece, 0.5 * tilt), tilt }
    }

    /// Returns the probability that a piece is proposed above the point t that parts the two
    /// envelopes, by the exponential one. A shape of at most 4 is one piece.
    pub fn exponential_mass(&self) -> f64 {
        self.piece.right_mass
    }
}

impl Distribution<f64> for PolyaGammaSampler {
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        if self.pieces > MOST_PIECES {
            let shape = self.pieces as f64 * self.piece.shape.b;
            // mean and variance of the whole are those of shape 1, times the shape
            let (mean, variance) = (pg_mean(self.tilt), pg_variance(self.tilt));
            let scale = variance / mean;
            let law = Gamma::new(shape * mean / scale, scale);
            return law.map_or(f64::NAN, |law| law.sample(rng));
        }
        0.25 * (0..self.pieces).map(|_| self.piece.draw(rng)).sum::<f64>()
    }
}

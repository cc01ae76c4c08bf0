//! Probabilities of classes where latent values differ or vary by far more than 1, as they do away from the data, in a time that
//! does not grow with either.
//!
//! p(y = k | f) = sₖ/Σ sⱼ is the probability that log sₖ + Gₖ is the largest of the log sⱼ + Gⱼ, with Gⱼ independent standard Gumbel (Luce
//! 1959; Yellott 1977). So with the distribution functions Lⱼ(u) = E exp(−sⱼ e⁻ᵘ) of these sums, which
//! [`multi_laplace`](super::multi_laplace) has too,
//!
//! ```text
//! E p(y = k | f) = ∫ Lₖ′(u) Π_{j≠k} Lⱼ(u) du
//! ```
//!
//! which is integrated over panels ([`panels`]). Of a normal log s of a large deviation, L is an average of Φ over Gumbel's law. Logarithms
//! of small probabilities are sums of logarithms throughout.

use super::multi_scores::Score;
use super::{panels, predict};
use crate::special::{log_normal_cdf, normal_cdf, normal_density};
use std::f64::consts::FRAC_PI_2;
use std::marker::PhantomData;

/// Deviations and differences of means beyond which this takes the place of [`super::multi_laplace`].
const WIDE: f64 = 20.0;
const APART: f64 = 200.0;
/// From here on averages over Gumbel's law take the place of those over f.
const AVERAGED: f64 = 8.0;
/// Gauss's rule for the standard Gumbel law with 10 points: eigenvalues of the Jacobi matrix by the Stieltjes procedure (Golub &
/// Welsch 1969). Φ of a deviation from 8 on is averaged to 1e-15.
const GUMBEL: [(f64, f64); 10] = [
    (-1.620_463_105_104_503_5, 0.028_695_314_180_337_74),
    (-0.678_948_932_430_692_9, 0.282_102_070_419_425_37),
    (0.492_585_052_798_710_23, 0.445_370_242_292_768_17),
    (2.060_560_128_208_717, 0.203_872_724_070_022_02),
    (4.169_313_303_852_995, 0.036_782_044_350_230_726),
    (6.921_808_302_055_099, 0.003_059_072_814_994_849),
    (10.422_772_759_426_099, 0.000_116_753_683_583_365_54),
    (14.851_046_268_526_362, 1.770_479_808_309_917_3e-6),
    (20.563_697_226_337_8, 7.704_663_441_252_932e-9),
    (28.484_415_473_838_787, 4.166_661_418_770_207e-12),
];
/// Standard deviations to either side.
const REACH: f64 = 8.5;
/// Left of this, Gumbel's distribution function is e^{−e⁴}; right of [`HIGH`] it is 1.
const LOW: f64 = -4.0;
const HIGH: f64 = 37.0;
/// Step in f: e^{−π²/0.3} = 5e-15.
const STEP: f64 = 0.3;
/// From here on e^{−a} is as good as 0.
const NOTHING: f64 = 700.0;
/// Below −[`LEVEL`] a bounded score is eᶠ, above [`LEVEL`] it is 1.
const LEVEL: f64 = 40.0;
/// Probabilities from here on have relative digits enough for their logarithm.
const LIKELY: f64 = 1e-3;
/// Deviations and differences beyond which Gumbel noise is nothing beside them, and the digits of probabilities from which they
/// have enough then.
const HUGE: f64 = 1e6;
const SEEN: f64 = 1e-8;

/// Returns whether the latent values differ or vary so much.
pub(super) fn is_wide(mean: &[f64], variance: &[f64]) -> bool {
    let high = mean.iter().fold(f64::NEG_INFINITY, |a, m| a.max(*m));
    let low = mean.iter().fold(f64::INFINITY, |a, m| a.min(*m));
    let widest = variance.iter().fold(0.0_f64, |a, v| a.max(*v)).sqrt();
    widest > WIDE || high - low > APART
}

/// One class.
struct Class {
    /// Logarithm of its weight.
    weight: f64,
    mean: f64,
    deviation: f64,
    /// Nodes of f by their log s with weights, of a narrow one.
    nodes: Vec<(f64, f64)>,
    /// log s and STEP·s′/s·Φ on the grid of f, of a wide one with a bounded score.
    below: Vec<(f64, f64)>,
}

/// All of them.
struct Classes<S> {
    all: Vec<Class>,
    /// Whether scores are bounded; else log s(f) = f.
    bounded: bool,
    score: PhantomData<S>,
}

/// Returns f on the grid of bounded scores.
fn grid() -> impl Iterator<Item = f64> {
    let count = (3.0 * LEVEL / STEP) as i32;
    (0..=count).map(|i| STEP * f64::from(i) - 2.0 * LEVEL)
}

impl<S: Score> Classes<S> {
    fn new(weights: &[f64], mean: &[f64], variance: &[f64]) -> Self {
        let deviation = |k: usize| variance[k].max(0.0).sqrt();
        // of scores that are e^f wherever f may be, only differences matter
        let constant = mean.len() < weights.len();
        let high = |k: usize| mean[k] + (REACH + 1.0) * deviation(k);
        let bounded = S::BOUNDED && (constant || (0..mean.len()).any(|k| high(k) > -LEVEL));
        let largest = mean.iter().fold(f64::NEG_INFINITY, |a, m| a.max(*m));
        let origin = if bounded { 0.0 } else { largest };
        let mut own = Self { all: Vec::new(), bounded, score: PhantomData };
        for (k, weight) in weights.iter().enumerate() {
            // one without a latent function has a constant score
            let (mean, deviation) = match mean.get(k) {
                Some(m) => (m - origin, deviation(k)),
                None => (0.0, 0.0),
            };
            let mut class =
                Class { weight: *weight, mean, deviation, nodes: Vec::new(), below: Vec::new() };
            if k >= variance.len() {
                class.nodes.push((0.0, 1.0));
            } else if deviation < AVERAGED {
                let h = 0.8_f64.min(STEP / deviation);
                let half = (REACH / h).ceil() as i32;
                class.nodes.extend((-half..=half).map(|i| {
                    let z = h * f64::from(i);
                    (own.log_score(mean + deviation * z).0, h * normal_density(z))
                }));
            } else if bounded {
                class.below.extend(grid().map(|f| {
                    let (log, slope) = own.log_score(f);
                    (log, STEP * slope * normal_cdf((f - mean) / deviation))
                }));
            }
            own.all.push(class);
        }
        own
    }

    /// Returns ℓ and ℓ′.
    fn log_score(&self, f: f64) -> (f64, f64) {
        if !self.bounded {
            return (f, 1.0);
        }
        let (value, first, _) = S::log_score(f);
        (value, first)
    }

    /// Returns L and L′ of a class at u.
    fn curve(&self, class: &Class, u: f64) -> [f64; 2] {
        let u = u - class.weight;
        let t = (-u).exp();
        if !class.nodes.is_empty() {
            let mut sums = [0.0; 2];
            for (log, w) in &class.nodes {
                let a = (log - u).exp();
                if a < NOTHING {
                    let value = w * (-a).exp();
                    sums[0] += value;
                    sums[1] += a * value;
                }
            }
            return sums;
        }
        if !self.bounded || u < -LEVEL {
            let mut sums = [0.0; 2];
            for (g, w) in GUMBEL {
                let d = (u - g - class.mean) / class.deviation;
                sums[0] += w * normal_cdf(d);
                sums[1] += w * normal_density(d) / class.deviation;
            }
            return sums;
        }
        if u > LEVEL {
            return [1.0, 0.0];
        }
        // by parts: of exp(−a) and a exp(−a), a = s(f) e⁻ᵘ, their slopes by f times Φ
        let limit = (-t).exp();
        let (mut below, mut density) = (limit, t * limit);
        for (log, weight) in &class.below {
            let a = (log - u).exp();
            if a > NOTHING {
                // and more so farther on, as scores rise
                break;
            }
            let change = weight * a * (-a).exp();
            below += change;
            density -= change * (1.0 - a);
        }
        [below, density.max(0.0)]
    }

    /// Returns where the sum of log s and Gumbel noise of a class begins and ends.
    fn range(&self, class: &Class) -> (f64, f64) {
        let half = REACH * class.deviation;
        let top = |f: f64| if self.bounded { f.min(0.0) } else { f };
        let (low, high) = (top(class.mean - half), top(class.mean + half));
        (class.weight + low + LOW, class.weight + high + HIGH)
    }

    /// Returns the ends of panels between `low` and `high`: narrow around what changes fast.
    fn ends(&self, low: f64, high: f64) -> Vec<f64> {
        let mut ends = Vec::new();
        for class in &self.all {
            let width = class.deviation.max(1.0);
            panels::ladder(class.weight + class.mean, width, high - low, &mut ends);
            if self.bounded {
                panels::ladder(class.weight, 1.0, high - low, &mut ends);
            }
        }
        panels::arrange(low, high, &mut ends);
        ends
    }

    fn probabilities(&self, out: &mut [f64]) {
        let ranges = self.all.iter().map(|class| self.range(class));
        let start = (f64::NEG_INFINITY, f64::NEG_INFINITY);
        let (low, high) = ranges.fold(start, |a, b| (a.0.max(b.0), a.1.max(b.1)));
        let (mut below, mut others) = (vec![0.0; out.len()], vec![0.0; out.len()]);
        panels::integrate(&self.ends(low, high), out, |u, at| {
            for ((class, below), at) in self.all.iter().zip(&mut below).zip(&mut *at) {
                [*below, *at] = self.curve(class, u);
            }
            super::multi_laplace::without_each(&below, &mut others);
            at.iter_mut().zip(&others).for_each(|(at, others)| *at *= others);
        });
        let sum: f64 = out.iter().sum();
        out.iter_mut().for_each(|p| *p /= sum);
    }

    /// Returns log L of a class at u, or log L′.
    fn log_curve(&self, class: &Class, u: f64, density: bool) -> f64 {
        let u = u - class.weight;
        let at = |f: f64| {
            let (log, slope) = self.log_score(f);
            let a = (log - u).exp();
            if density { [log - u - a, slope * (1.0 - a), 0.0] } else { [-a, -slope * a, 0.0] }
        };
        let variance = class.deviation * class.deviation;
        predict::log_expectation(class.mean, variance, FRAC_PI_2, &[None, None], &[u, 0.0], at)
    }

    /// Returns whether Gumbel noise is nothing beside deviations or differences.
    fn are_huge(&self) -> bool {
        self.all.iter().any(|class| class.deviation > HUGE || class.mean.abs() > HUGE)
    }

    /// Returns the least of the probabilities that f of this class is more than f of another, in
    /// logarithms: an upper bound of that of the class, and where it is small its leading term.
    /// Scores that are bounded are alike above 0.
    fn log_bound(&self, y: usize) -> f64 {
        let own = &self.all[y];
        // halves, so that no difference or sum of squares overflows
        let more = |m: f64, a: f64, b: f64| {
            let deviation = a.hypot(b);
            if deviation > 0.0 {
                log_normal_cdf(2.0 * m / deviation)
            } else if m < 0.0 {
                // e^{−difference}, of only Gumbel noise
                (2.0 * m).max(-f64::MAX)
            } else {
                0.0
            }
        };
        let positive = more(0.5 * own.mean, own.deviation, 0.0);
        let others = self.all.iter().enumerate().filter(|(k, _)| *k != y).map(|(_, other)| {
            let ahead = more(0.5 * own.mean - 0.5 * other.mean, own.deviation, other.deviation);
            if self.bounded { ahead.max(positive) } else { ahead }
        });
        others.fold(0.0, f64::min).max(-f64::MAX)
    }

    /// Returns log E p(y | f), in logarithms throughout.
    fn log_probability(&self, y: usize) -> f64 {
        let log = |u: f64| {
            let each = self.all.iter().enumerate();
            let sum: f64 = each.map(|(k, class)| self.log_curve(class, u, k == y)).sum();
            if sum.is_nan() { f64::NEG_INFINITY } else { sum }
        };
        let ranges = self.all.iter().map(|class| self.range(class));
        let start = (f64::INFINITY, f64::NEG_INFINITY);
        let (low, high) = ranges.fold(start, |a, b| (a.0.min(b.0), a.1.max(b.1)));
        let mut ends = self.ends(low.max(-f64::MAX), high);
        // the largest value among the ends, and from there the mode by golden sections
        let values: Vec<f64> = ends.iter().map(|u| log(*u)).collect();
        let best = (1..ends.len()).fold(0, |a, i| if values[i] >= values[a] { i } else { a });
        let (mut from, mut to) =
            (ends[best.saturating_sub(1)], ends[(best + 1).min(ends.len() - 1)]);
        let golden = 0.5 * (5.0_f64.sqrt() - 1.0);
        for _ in 0..30 {
            let (a, b) = (to - golden * (to - from), from + golden * (to - from));
            if log(a) > log(b) { to = b } else { from = a }
        }
        let mode = 0.5 * from + 0.5 * to;
        panels::ladder(mode, (ends[1] - ends[0]).min(0.5), high - low, &mut ends);
        panels::arrange(low.max(-f64::MAX), high, &mut ends);
        panels::log_integral(&ends, log).clamp(-f64::MAX, 0.0)
    }
}

/// Computes E p(k | f) for all k; the arguments are those of
/// [`super::multi_laplace::probabilities`].
pub(super) fn probabilities<S: Score>(
    weights: &[f64],
    mean: &[f64],
    variance: &[f64],
    out: &mut [f64],
) {
    Classes::<S>::new(weights, mean, variance).probabilities(out);
}

/// Returns log E p(y | f).
pub(super) fn log_probability<S: Score>(
    weights: &[f64],
    y: usize,
    mean: &[f64],
    variance: &[f64],
) -> f64 {
    let classes = Classes::<S>::new(weights, mean, variance);
    let mut p = vec![0.0; weights.len()];
    classes.probabilities(&mut p);
    // what cannot be distinguished from 0 has a logarithm all the same
    if classes.are_huge() {
        if p[y] >= SEEN { p[y].ln() } else { classes.log_bound(y) }
    } else if p[y] >= LIKELY {
        p[y].ln()
    } else {
        classes.log_probability(y)
    }
}

//! Expectations over any number of independent latent functions by integrals in one dimension.
//!
//! For scores sⱼ = s(fⱼ) and S = Σ sⱼ, with Λ(u) = exp(−e⁻ᵘ), the distribution function of Gumbel:
//! log S = c + ∫ [Λ(u − c) − exp(−S e⁻ᵘ)] du for every c (Frullani's integral at t = e⁻ᵘ), and
//! sₖ/S = ∫ sₖ e⁻ᵘ exp(−S e⁻ᵘ) du. The fⱼ are independent, so the expectation of exp(−S e⁻ᵘ) is
//! Π Lⱼ(u), Lⱼ(u) = E exp(−sⱼ e⁻ᵘ): the distribution function of log sⱼ plus Gumbel noise. Hence
//!
//! E log S = c + ∫ [Λ(u − c) − Π Lⱼ(u)] du,
//! E[sₖ/S] = ∫ E[sₖ e⁻ᵘ exp(−sₖ e⁻ᵘ)] Π_{j≠k} Lⱼ(u) du.
//!
//! Weights of the scores are added to their logarithms; a class without a latent function has a constant score,
//! which is one without variance.
//!
//! All integrands are analytic and bounded for imaginary parts up to π/2, so that the trapezoidal
//! rule with step h errs by e^{−π²/h}. Predictions at large deviations or differences are those of `multi_wide`.

use super::Slopes;
use super::multi::{LogSum, SMALL_VARIANCE};
use super::multi_scores::Score;
use super::multi_wide;
use super::quadrature::Slope;
use crate::linalg::exp;
use std::f64::consts::TAU;
use std::ops::Range;

/// Step in u and in f: e^{−π²/0.3} = 5e-15.
const STEP: f64 = 0.3;
/// Standard deviations to either side.
const REACH: f64 = 8.5;
/// What is beyond this u, counted from log E S, is left out: e⁻ᵘ.
const HIGH: f64 = 37.0;
/// Most nodes to either side: beyond, at standard deviations above 40, accuracy is lost slowly.
const MOST: usize = 1000;
/// Nodes come in multiples of this: a vector of the widest machines.
const LANES: usize = 8;
/// Below this a, e^{−a} is its series of four terms and a rest, which is 1e-17; above [`LARGE`] nothing.
const SMALL: f64 = 1e-3;
/// Below this, e^{−a} is 1.
const TINY: f64 = 1e-18;
const LARGE: f64 = 45.0;

/// Nodes of every class.
struct Tables {
    /// Nodes and weights for a standard normal.
    z: Vec<f64>,
    w: Vec<f64>,
    /// sₖ(μₖ + √vₖ zᵢ)/e^{reference}, ℓ′ and ℓ″ at the same place; C×nodes, a class together. ℓ′ = ℓ″ = 0 for
    /// one without a latent function.
    score: Vec<f64>,
    first: Vec<f64>,
    second: Vec<f64>,
    /// ℓ at the same places.
    log: Vec<f64>,
    /// Σ w sᵖ, p = 0, …, 5, over the nodes before every vector of them; of a class together.
    before: Vec<[f64; 6]>,
    /// Largest ℓ.
    reference: f64,
    /// log E S, from the reference.
    centre: f64,
    /// Range of u, from the reference.
    low: f64,
    high: f64,
}

impl Tables {
    fn new<S: Score>(weights: &[f64], mean: &[f64], variance: &[f64]) -> Self {
        let widest = variance.iter().fold(0.0_f64, |a, v| a.max(*v)).sqrt();
        let most = (REACH / 0.8_f64.min(STEP / widest)).ceil() as usize;
        let half = most.min(MOST);
        let h = REACH / half as f64;
        // some more on one side, that there are whole vectors of them
        let count = (2 * half + 1).next_multiple_of(LANES);
        let z: Vec<f64> = (0..count).map(|i| (i as f64 - half as f64) * h).collect();
        let mut w: Vec<f64> = z.iter().map(|z| h * (-0.5 * z * z).exp() / TAU.sqrt()).collect();
        let sum: f64 = w.iter().sum();
        w.iter_mut().for_each(|w| *w /= sum);
        let size = z.len() * weights.len();
        let mut log = Vec::with_capacity(size);
        let (mut first, mut second) = (Vec::with_capacity(size), Vec::with_capacity(size));
        for (k, weight) in weights.iter().enumerate() {
            for z in &z {
                let (l, l1, l2) = match mean.get(k) {
                    Some(m) => S::log_score(m + variance[k].max(0.0).sqrt() * z),
                    None => (0.0, 0.0, 0.0),
                };
                log.push(weight + l);
                first.push(l1);
                second.push(l2);
            }
        }
        let reference = log.iter().fold(f64::NEG_INFINITY, |a, l| a.max(*l));
        let score: Vec<f64> = log.iter().map(|l| (l - reference).exp()).collect();
        let mut total = LogSum::EMPTY;
        for row in log.chunks_exact(z.len()) {
            row.iter().zip(&w).for_each(|(l, w)| total.add(l - reference, *w));
        }
        let centre = total.ln();
        // left of it one Lⱼ is below exp(−e⁴), and so is Λ; scores increase, so a row begins lowest
        let lows = log.chunks_exact(z.len()).map(|row| row[0] - reference - 4.0);
        let low = lows.fold(f64::NEG_INFINITY, f64::max).min(centre - 4.0);
        let before = score.chunks_exact(z.len()).flat_map(|row| moments_before(row, &w)).collect();
        let high = centre + HIGH;
        Self { z, w, score, first, second, log, before, reference, centre, low, high }
    }

    /// Returns every node u with e⁻ᵘ.
    fn nodes(&self) -> impl Iterator<Item = (f64, f64)> {
        let count = ((self.high - self.low) / STEP).ceil() as usize;
        (0..=count).map(|i| self.low + STEP * i as f64).map(|u| (u, (-u).exp()))
    }

    fn row<'a>(&self, table: &'a [f64], k: usize) -> &'a [f64] {
        &table[k * self.z.len()..(k + 1) * self.z.len()]
    }

    /// Returns the nodes of a class whose a = s t is neither below `small` nor above [`LARGE`], in
    /// whole vectors, and the moments of those before. Scores increase.
    fn between(&self, k: usize, t: f64, small: f64) -> (Range<usize>, &[f64; 6]) {
        let (score, vectors) = (self.row(&self.score, k), self.z.len() / LANES);
        let all = score.as_chunks::<LANES>().0;
        let first = all.partition_point(|s| s[LANES - 1] * t < small);
        let last = first + all[first..].partition_point(|s| s[0] * t < LARGE);
        // one that is all beyond has its moments all the same
        let before = &self.before[k * (vectors + 1) + first];
        (first * LANES..last * LANES, before)
    }

    /// Returns Lₖ, E[a e^{−a}] with a = sₖ e⁻ᵘ.
    fn sums(&self, k: usize, t: f64) -> [f64; 2] {
        let (nodes, before) = self.between(k, t, SMALL);
        let (score, w) = (&self.row(&self.score, k)[nodes.clone()], &self.w[nodes]);
        let [l, p] = exp::dispatch(Sums { score, w, t });
        // Σ w aᵖ from the moments of s, one factor t at a time
        let mut m = *before;
        (1..6).for_each(|p| m[p..].iter_mut().for_each(|m| *m *= t));
        let series = m[0] - m[1] + m[2] / 2.0 - m[3] / 6.0 + m[4] / 24.0;
        let by_log = m[1] - m[2] + m[3] / 2.0 - m[4] / 6.0 + m[5] / 24.0;
        [l + series, p + by_log]
    }

    /// Returns the expectation of exp(−a), those of its derivatives by log a and by f, and of the
    /// second by f or of z times the first.
    fn slopes(&self, k: usize, t: f64, curvature: bool) -> [f64; 4] {
        let (nodes, before) = self.between(k, t, TINY);
        let (score, first) = (self.row(&self.score, k), self.row(&self.first, k));
        let second = &self.row(&self.second, k)[nodes.clone()];
        let (score, first) = (&score[nodes.clone()], &first[nodes.clone()]);
        let (z, w) = (&self.z[nodes.clone()], &self.w[nodes]);
        let sums = SlopeSums { score, first, second, z, w, t, curvature };
        let [value, rest @ ..] = exp::dispatch(sums);
        let [by_log, by_f, more] = rest;
        [before[0] + value, by_log, by_f, more]
    }
}

/// Returns Σ w sᵖ, p = 0, …, 5, before every vector of nodes and after the last.
fn moments_before(score: &[f64], w: &[f64]) -> Vec<[f64; 6]> {
    let mut sums = [0.0; 6];
    let mut all = vec![sums];
    let vectors = score.as_chunks::<LANES>().0.iter().zip(w.as_chunks::<LANES>().0);
    all.extend(vectors.map(|(score, w)| {
        for (s, w) in score.iter().zip(w) {
            let mut term = *w;
            for sum in &mut sums {
                *sum += term;
                term *= s;
            }
        }
        sums
    }));
    all
}

/// Returns a = s t with e^{−a}; what lies beyond counts nothing.
#[inline(always)]
fn damped<const FMA: bool>(s: f64, t: f64) -> (f64, f64) {
    let a = s * t;
    let a = if a < 708.0 { a } else { 708.0 };
    (a, exp::exp::<FMA>(-a))
}

struct Sums<'a> {
    score: &'a [f64],
    w: &'a [f64],
    t: f64,
}

impl exp::Vectorised for Sums<'_> {
    type Output = [f64; 2];

    #[inline(always)]
    fn run<const FMA: bool>(self) -> [f64; 2] {
        let (mut l, mut p) = ([0.0; LANES], [0.0; LANES]);
        let nodes = self.score.as_chunks::<LANES>().0.iter().zip(self.w.as_chunks::<LANES>().0);
        for (score, w) in nodes {
            for i in 0..LANES {
                let (a, value) = damped::<FMA>(score[i], self.t);
                let value = w[i] * value;
                l[i] += value;
                p[i] += a * value;
            }
        }
        [l.iter().sum(), p.iter().sum()]
    }
}

struct SlopeSums<'a> {
    score: &'a [f64],
    first: &'a [f64],
    second: &'a [f64],
    z: &'a [f64],
    w: &'a [f64],
    t: f64,
    /// Whether ∂²/∂f² is summed, or z ∂/∂f.
    curvature: bool,
}

impl exp::Vectorised for SlopeSums<'_> {
    type Output = [f64; 4];

    #[inline(always)]
    fn run<const FMA: bool>(self) -> [f64; 4] {
        let mut sums = [[0.0; LANES]; 4];
        let (s, w) = (self.score.as_chunks::<LANES>().0, self.w.as_chunks::<LANES>().0);
        let (l1, l2) = (self.first.as_chunks::<LANES>().0, self.second.as_chunks::<LANES>().0);
        let z = self.z.as_chunks::<LANES>().0;
        for ((((s, l1), l2), z), w) in s.iter().zip(l1).zip(l2).zip(z).zip(w) {
            for i in 0..LANES {
                // exp(−a) and its derivatives by log a and by f, a = s e⁻ᵘ
                let (a, value) = damped::<FMA>(s[i], self.t);
                let value = w[i] * value;
                let by_log = -a * value;
                let first = by_log * l1[i];
                let second = if self.curvature {
                    a * ((a - 1.0) * l1[i] * l1[i] - l2[i]) * value
                } else {
                    first * z[i]
                };
                sums[0][i] += value;
                sums[1][i] += by_log;
                sums[2][i] += first;
                sums[3][i] += second;
            }
        }
        sums.map(|sum| sum.iter().sum())
    }
}

/// Computes products of all factors but one.
pub(super) fn without_each(factors: &[f64], out: &mut [f64]) {
    let mut product = 1.0;
    for (out, x) in out.iter_mut().zip(factors) {
        *out = product;
        product *= x;
    }
    product = 1.0;
    for (out, x) in out.iter_mut().zip(factors).rev() {
        *out *= product;
        product *= x;
    }
}

/// Returns E log p(y | f) with slopes, those of the parameters in `weights`: logarithms of the
/// classes' weights.
pub(super) fn expect<S: Score>(
    weights: &[f64],
    y: usize,
    mean: &[f64],
    variance: &[f64],
    slope: Slope,
    out: Slopes<'_>,
) -> f64 {
    let classes = weights.len();
    let t = Tables::new::<S>(weights, mean, variance);
    let Slopes { mean: by_mean, variance: by_variance, params: by_weights } = out;
    by_mean.fill(0.0);
    by_variance.fill(0.0);
    by_weights.fill(0.0);
    // nothing is divided by the deviation of a class without a latent function
    let price: Vec<bool> = (0..classes)
        .map(|k| slope == Slope::Price || variance.get(k).is_none_or(|v| *v < SMALL_VARIANCE))
        .collect();
    let twice_sd: Vec<f64> = variance.iter().map(|v| 2.0 * v.max(0.0).sqrt()).collect();
    let (mut l, mut others) = (vec![0.0; classes], vec![0.0; classes]);
    let (mut dm, mut dv, mut dw) = (vec![0.0; classes], vec![0.0; classes], vec![0.0; classes]);
    let mut log_sum = 0.0;
    for (u, e) in t.nodes() {
        for k in 0..classes {
            let [sum, by_log, first, second] = t.slopes(k, e, price[k]);
            let by = if price[k] { 0.5 } else { 1.0 / twice_sd[k] };
            (l[k], dm[k], dv[k], dw[k]) = (sum, first, by * second, by_log);
        }
        without_each(&l, &mut others);
        log_sum += (-(t.centre - u).exp()).exp() - l[0] * others[0];
        let slopes = by_mean.iter_mut().zip(by_variance.iter_mut()).enumerate();
        for (k, (by_mean, by_variance)) in slopes {
            *by_mean += STEP * others[k] * dm[k];
            *by_variance += STEP * others[k] * dv[k];
        }
        for (k, by) in by_weights.iter_mut().enumerate() {
            *by += STEP * others[k] * dw[k];
        }
    }
    if let Some(by) = by_weights.get_mut(y) {
        *by += 1.0;
    }
    let mut own = 0.0;
    if y == mean.len() {
        own = weights[y];
    } else {
        let rows = t.row(&t.log, y).iter().zip(t.row(&t.first, y)).zip(t.row(&t.second, y));
        for (((l, l1), l2), (z, w)) in rows.zip(t.z.iter().zip(&t.w)) {
            own += w * l;
            by_mean[y] += w * l1;
            by_variance[y] += if price[y] { 0.5 * w * l2 } else { w * l1 * z / twice_sd[y] };
        }
    }
    own - t.reference - t.centre - STEP * log_sum
}

/// Returns log E p(y | f).
pub(super) fn log_probability<S: Score>(
    weights: &[f64],
    y: usize,
    mean: &[f64],
    variance: &[f64],
) -> f64 {
    if multi_wide::is_wide(mean, variance) {
        return multi_wide::log_probability::<S>(weights, y, mean, variance);
    }
    let t = Tables::new::<S>(weights, mean, variance);
    let log = t.row(&t.log, y);
    let top = log.iter().fold(f64::NEG_INFINITY, |a, l| a.max(*l));
    let mut total = LogSum::EMPTY;
    for (u, e) in t.nodes() {
        let others: f64 = (0..weights.len()).filter(|k| *k != y).map(|k| t.sums(k, e)[0]).product();
        let mut own = 0.0;
        for ((l, s), w) in log.iter().zip(t.row(&t.score, y)).zip(&t.w) {
            own += w * (l - top).exp() * (-s * e).exp();
        }
        total.add(top - t.reference - u, STEP * own * others);
    }
    total.ln()
}

/// Computes E p(k | f) for all k.
pub(super) fn probabilities<S: Score>(
    weights: &[f64],
    mean: &[f64],
    variance: &[f64],
    out: &mut [f64],
) {
    if multi_wide::is_wide(mean, variance) {
        return multi_wide::probabilities::<S>(weights, mean, variance, out);
    }
    let classes = weights.len();
    let t = Tables::new::<S>(weights, mean, variance);
    let mut memory = vec![0.0; 3 * classes];
    let (l, rest) = memory.split_at_mut(classes);
    let (own, others) = rest.split_at_mut(classes);
    out.fill(0.0);
    for (_, e) in t.nodes() {
        for k in 0..classes {
            [l[k], own[k]] = t.sums(k, e);
        }
        without_each(l, others);
        for k in 0..classes {
            out[k] += own[k] * others[k];
        }
    }
    let sum: f64 = out.iter().sum();
    out.iter_mut().for_each(|p| *p /= sum);
}

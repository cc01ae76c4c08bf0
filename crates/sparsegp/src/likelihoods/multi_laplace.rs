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
//! rule with step h errs by e^{−π²/h}.

use super::Slopes;
use super::multi::{LogSum, SMALL_VARIANCE};
use super::multi_scores::Score;
use super::quadrature::Slope;
use std::f64::consts::TAU;

/// Step in u and in f: e^{−π²/0.3} = 5e-15.
const STEP: f64 = 0.3;
/// Standard deviations to either side.
const REACH: f64 = 8.5;
/// Most nodes to either side: beyond, at standard deviations above 40, accuracy is lost slowly.
const MOST: usize = 1000;

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
        let half = most.min(MOST) as i32;
        let h = REACH / f64::from(half);
        let z: Vec<f64> = (-half..=half).map(|i| f64::from(i) * h).collect();
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
        Self { z, w, score, first, second, log, reference, centre, low, high: 37.0 }
    }

    /// Every node u with e⁻ᵘ.
    fn nodes(&self) -> impl Iterator<Item = (f64, f64)> {
        let count = ((self.high - self.low) / STEP).ceil() as usize;
        (0..=count).map(|i| self.low + STEP * i as f64).map(|u| (u, (-u).exp()))
    }

    fn row<'a>(&self, table: &'a [f64], k: usize) -> &'a [f64] {
        &table[k * self.z.len()..(k + 1) * self.z.len()]
    }

    /// Lₖ, E[a e^{−a}] with a = sₖ e⁻ᵘ.
    fn sums(&self, k: usize, t: f64) -> (f64, f64) {
        let (mut l, mut p) = (0.0, 0.0);
        for (s, w) in self.row(&self.score, k).iter().zip(&self.w) {
            let a = s * t;
            if a > 745.0 {
                break;
            }
            let e = w * (-a).exp();
            l += e;
            p += a * e;
        }
        (l, p)
    }
}

/// Products of all factors but one.
fn without_each(factors: &[f64], out: &mut [f64]) {
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

/// E log p(y | f) with slopes, those of the parameters in `weights`: logarithms of the classes' weights.
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
            let (mut sum, mut m, mut v, mut p) = (0.0, 0.0, 0.0, 0.0);
            let tables = t.row(&t.score, k).iter().zip(t.row(&t.first, k));
            let tables = tables.zip(t.row(&t.second, k)).zip(t.z.iter().zip(&t.w));
            for (((s, l1), l2), (z, w)) in tables {
                let a = s * e;
                if a > 745.0 {
                    break;
                }
                // exp(−a) and its derivatives by log a and by f, a = s e⁻ᵘ
                let value = w * (-a).exp();
                let by_log = -a * value;
                let first = by_log * l1;
                sum += value;
                p += by_log;
                m += first;
                v += if price[k] {
                    0.5 * a * ((a - 1.0) * l1 * l1 - l2) * value
                } else {
                    first * z / twice_sd[k]
                };
            }
            (l[k], dm[k], dv[k], dw[k]) = (sum, m, v, p);
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

/// log E p(y | f).
pub(super) fn log_probability<S: Score>(
    weights: &[f64],
    y: usize,
    mean: &[f64],
    variance: &[f64],
) -> f64 {
    let t = Tables::new::<S>(weights, mean, variance);
    let log = t.row(&t.log, y);
    let top = log.iter().fold(f64::NEG_INFINITY, |a, l| a.max(*l));
    let mut total = LogSum::EMPTY;
    for (u, e) in t.nodes() {
        let others: f64 = (0..weights.len()).filter(|k| *k != y).map(|k| t.sums(k, e).0).product();
        let mut own = 0.0;
        for ((l, s), w) in log.iter().zip(t.row(&t.score, y)).zip(&t.w) {
            own += w * (l - top).exp() * (-s * e).exp();
        }
        total.add(top - t.reference - u, STEP * own * others);
    }
    total.ln()
}

/// E p(k | f) for all k.
pub(super) fn probabilities<S: Score>(
    weights: &[f64],
    mean: &[f64],
    variance: &[f64],
    out: &mut [f64],
) {
    let classes = weights.len();
    let t = Tables::new::<S>(weights, mean, variance);
    let mut memory = vec![0.0; 3 * classes];
    let (l, rest) = memory.split_at_mut(classes);
    let (own, others) = rest.split_at_mut(classes);
    out.fill(0.0);
    for (_, e) in t.nodes() {
        for k in 0..classes {
            (l[k], own[k]) = t.sums(k, e);
        }
        without_each(l, others);
        for k in 0..classes {
            out[k] += own[k] * others[k];
        }
    }
    let sum: f64 = out.iter().sum();
    out.iter_mut().for_each(|p| *p /= sum);
}

//! Integrals over a normal latent value for prediction: few rows, full accuracy. The trapezoidal rule
//! converges exponentially on such integrands (Trefethen & Weideman 2014), so its step is halved
//! until the value stays. Where that takes too many nodes, because p(y | f) is much
//! narrower than f is uncertain, panels that become narrow around its peaks take its place ([`panels`]).

use super::Support;
use super::multi::{LogSum, invert};
use super::panels;
use crate::special::{HALF_LOG_TAU, log_add_exp, normal_density};

/// Standard deviations to either side; what lies beyond has probability 2·10⁻¹⁹.
pub const REACH: f64 = 9.0;
/// Most nodes to either side of [`trapezoid`].
const MOST: f64 = 2000.0;
/// Most halvings of the step.
const HALVINGS: usize = 5;
/// From so many poles on a deviation is that of a wide latent value, which panels integrate over.
const WIDE: f64 = 20.0;

/// Calls `add(x, weight)`, weights without the density of x, for the trapezoidal rule on [−9, 9] for E[g(μ + s x)], x ~ N(0, 1), with step
/// min(½, pole/(5.5 s)): the error is about exp(−2π·5.5) for a g whose nearest singularity has the
/// distance `pole` from the real line. At most 4001 nodes: for s beyond some 40 poles accuracy falls.
pub fn trapezoid(deviation: f64, pole: f64, mut add: impl FnMut(f64, f64)) {
    let step = (pole / (5.5 * deviation)).min(0.5);
    let n = (REACH / step).ceil().min(MOST);
    let step = REACH / n;
    let n = n as i64;
    for j in -n..=n {
        add(step * j as f64, step);
    }
}

/// Widest panel of [`graded`].
const PANEL: f64 = 1.5;

/// Calls `add(x, weight)` for Gauss–Legendre on panels of [low, high]: they begin at the kinks with a
/// `width` and become wider away from them, for an integrand that is analytic between its kinks, with
/// singularities about `width` beyond them on the continuations from either side.
pub fn graded(
    low: f64,
    high: f64,
    kinks: &[Option<f64>; 2],
    width: f64,
    mut add: impl FnMut(f64, f64),
) {
    let width = width.clamp((high - low) * 1e-4, PANEL);
    let mut ends = [low, high, high, high];
    let mut count = 1;
    for kink in kinks.iter().flatten().filter(|k| low < **k && **k < high) {
        ends[count] = *kink;
        count += 1;
    }
    ends[count] = high;
    let mut panel = |from: f64, to: f64| panels::panel(from, to, &mut add);
    for pair in ends[..=count].windows(2) {
        let (mut left, mut right) = (pair[0], pair[1]);
        let mut own = width;
        // from both ends towards the middle
        while right - left > 2.0 * own {
            panel(left, left + own);
            panel(right - own, right);
            (left, right) = (left + own, right - own);
            own = (2.0 * own).min(PANEL);
        }
        panel(left, right);
    }
}

/// Returns the first step for a deviation.
fn first_step(deviation: f64, pole: f64) -> f64 {
    (pole / (5.5 * deviation)).clamp(REACH / MOST, 0.5)
}

/// Returns places between which panels over f end: around the mean, and narrower and narrower
/// around `peaks`.
fn places(mean: f64, deviation: f64, pole: f64, low: f64, high: f64, peaks: &[f64]) -> Vec<f64> {
    let mut ends = Vec::new();
    panels::ladder(mean, deviation, 20.0 * deviation, &mut ends);
    let reach = (high - mean).max(mean - low);
    for peak in peaks.iter().filter(|p| (**p - mean).abs() <= reach) {
        panels::ladder(*peak, 0.5 * pole.min(1.0).min(deviation), 2.0 * reach, &mut ends);
    }
    panels::arrange(low, high, &mut ends);
    ends
}

/// Returns E[g(f)], f ~ N(mean, variance). `kinks`, in deviations from the mean, are where g is not
/// analytic, and `peaks` finds values of f around which it changes most.
pub fn expectation<const N: usize>(
    mean: f64,
    variance: f64,
    pole: f64,
    kinks: &[Option<f64>; 2],
    peaks: impl FnOnce() -> Vec<f64>,
    g: impl Fn(f64) -> [f64; N],
) -> [f64; N] {
    if variance == 0.0 {
        return g(mean);
    }
    let deviation = variance.sqrt();
    let panelled = || {
        let (low, high) = (mean - REACH * deviation, mean + REACH * deviation);
        let ends = places(mean, deviation, pole, low, high, &peaks());
        let mut total = [0.0; N];
        panels::integrate(&ends, &mut total, |f, out| {
            let w = normal_density((f - mean) / deviation) / deviation;
            // nothing times infinity
            let value = if w == 0.0 { [0.0; N] } else { g(f) };
            out.iter_mut().zip(value).for_each(|(out, g)| *out = w * g);
        });
        total
    };
    if deviation > WIDE * pole {
        return panelled();
    }
    if kinks[0].is_some() {
        let mut total = [0.0; N];
        graded(-REACH, REACH, kinks, pole / deviation, |x, w| {
            let w = w * normal_density(x);
            total.iter_mut().zip(g(mean + deviation * x)).for_each(|(t, g)| *t += w * g);
        });
        return total;
    }
    let mut step = first_step(deviation, pole);
    // sum over x = offset + step·j of φ(x) g
    let sum = |step: f64, offset: f64| {
        let n = (REACH / step).ceil() as i64;
        let mut total = [0.0; N];
        for j in -n..=n {
            let x = offset + step * j as f64;
            let w = normal_density(x);
            total.iter_mut().zip(g(mean + deviation * x)).for_each(|(t, g)| *t += w * g);
        }
        total
    };
    let mut total = sum(step, 0.0);
    let mut last = total.map(|t| t * step);
    for _ in 0..HALVINGS {
        let between = sum(step, 0.5 * step);
        step *= 0.5;
        total.iter_mut().zip(between).for_each(|(t, b)| *t += b);
        let value = total.map(|t| t * step);
        let near = |(v, l): (&f64, &f64)| (v - l).abs() <= 1e-13 + 1e-12 * v.abs();
        if value.iter().zip(&last).all(near) {
            return value;
        }
        last = value;
    }
    panelled()
}

/// Returns log E[exp g(f)], f ~ N(mean, variance), for g with its first derivative in place 1.
/// `kinks` are in deviations from the mean, `peaks` values of f around which g changes most.
pub fn log_expectation(
    mean: f64,
    variance: f64,
    pole: f64,
    kinks: &[Option<f64>; 2],
    peaks: &[f64],
    g: impl Fn(f64) -> [f64; 3],
) -> f64 {
    let deviation = variance.sqrt();
    // a latent value that is known, to double precision
    if mean + REACH * deviation == mean {
        let log = g(mean)[0];
        // where squares overflow, the panels below tell
        if variance == 0.0 || !log.is_nan() {
            return log;
        }
    }
    let mode = mode(|x| deviation * g(mean + deviation * x)[1] - x);
    let (low, high) = (mode.min(0.0) - REACH, mode.max(0.0) + REACH);
    let panelled = || {
        let mut all = peaks.to_vec();
        all.push(mean + deviation * mode);
        all.extend(kinks.iter().flatten().map(|k| mean + deviation * k));
        // where g by itself is largest, if it is so anywhere in between
        all.extend(turning(mean + deviation * low, mean + deviation * high, |f| g(f)[1]));
        let (low, high) = (mean + deviation * low, mean + deviation * high);
        let ends = places(mean, deviation, pole, low, high, &all);
        let log = panels::log_integral(&ends, |f| {
            let x = (f - mean) / deviation;
            g(f)[0] - 0.5 * x * x
        });
        log - deviation.ln() - HALF_LOG_TAU
    };
    if deviation > WIDE * pole || mode.abs() > FAR {
        return panelled();
    }
    if kinks[0].is_some() {
        let mut total = LogSum::EMPTY;
        graded(low, high, kinks, pole / deviation, |x, w| {
            total.add(g(mean + deviation * x)[0] - 0.5 * x * x, w);
        });
        return total.ln() - HALF_LOG_TAU;
    }
    let mut step = first_step(deviation, pole);
    let sum = |step: f64, offset: f64| {
        let n = ((high - low) / step).ceil() as i64;
        let mut total = LogSum::EMPTY;
        for j in 0..=n {
            let x = low + offset + step * j as f64;
            total.add(g(mean + deviation * x)[0] - 0.5 * x * x, 1.0);
        }
        total.ln() - HALF_LOG_TAU
    };
    let mut total = sum(step, 0.0);
    let mut last = total + step.ln();
    for _ in 0..HALVINGS {
        total = log_add_exp(total, sum(step, 0.5 * step));
        step *= 0.5;
        let value = total + step.ln();
        if (value - last).abs() <= 1e-13 + 1e-13 * value.abs() || value == last {
            return value;
        }
        last = value;
    }
    panelled()
}

/// Returns where a decreasing function changes its sign between two places, if it does.
pub fn turning(low: f64, high: f64, slope: impl Fn(f64) -> f64) -> Option<f64> {
    if !(slope(low) > 0.0 && slope(high) < 0.0) {
        return None;
    }
    let (mut low, mut high) = (low, high);
    // past halving the distance, of numbers that may be of any size
    for _ in 0..1100 {
        let middle = 0.5 * low + 0.5 * high;
        if !(low < middle && middle < high) {
            break;
        }
        if slope(middle) > 0.0 { low = middle } else { high = middle }
    }
    Some(0.5 * low + 0.5 * high)
}

/// A mode so many standard deviations away is looked at by panels.
const FAR: f64 = 60.0;
/// In standard deviations.
const FARTHEST_MODE: f64 = 1e6;

/// Returns a zero of `slope`, a function with a slope ≤ −1 where the integrand is log-concave: the
/// mode. At most [`FARTHEST_MODE`] from 0; if the function does not change its sign there, that
/// end.
fn mode(slope: impl Fn(f64) -> f64) -> f64 {
    let start = slope(0.0);
    let (mut inner, mut outer) = (0.0, start.clamp(-FARTHEST_MODE, FARTHEST_MODE));
    if start == 0.0 || start.is_nan() {
        return 0.0;
    }
    if slope(outer) * start > 0.0 {
        return outer;
    }
    for _ in 0..60 {
        let middle: f64 = 0.5 * (inner + outer);
        if slope(middle) * start > 0.0 {
            inner = middle;
        } else {
            outer = middle;
        }
        if (outer - inner).abs() < 1e-3 {
            break;
        }
    }
    0.5 * (inner + outer)
}

/// Returns the `level` quantile of a distribution function: the smallest whole number with P(Y ≤ y)
/// ≥ level, or the number at which it is level. The search begins at `start`, if there is a guess.
pub fn quantile(cdf: impl Fn(f64) -> f64, support: Support, start: Option<f64>, level: f64) -> f64 {
    quantile_of_any(&cdf, support, start, level)
}

/// Does what [`quantile`] does, compiled once for all distributions.
fn quantile_of_any(
    cdf: &dyn Fn(f64) -> f64,
    support: Support,
    start: Option<f64>,
    level: f64,
) -> f64 {
    if let Some(largest) = support.largest() {
        return whole_quantile(cdf, largest, start.unwrap_or(0.0), level);
    }
    // y = place(t), increasing, and its inverse
    let place = |t: f64| match support {
        Support::Positive => t.exp(),
        Support::Interval(low, high) => low + (high - low) * crate::special::sigmoid(t),
        _ => t.signum() * t.abs().exp_m1(),
    };
    let line = |y: f64| match support {
        Support::Positive => y.ln(),
        Support::Interval(low, high) => ((y - low) / (high - y)).ln(),
        _ => y.signum() * y.abs().ln_1p(),
    };
    // beyond, y is infinite or 0
    let within = |t: f64| t.clamp(-FARTHEST, FARTHEST);
    let (from, step) = start.map_or((0.0, 1.0), |y| (within(line(y)), NEAR));
    place(within(invert(from, step, level, |t| cdf(place(within(t))))))
}

/// Largest |t| of [`quantile`].
const FARTHEST: f64 = 700.0;
/// How near a guess is thought to be, in t.
const NEAR: f64 = 0.125;
/// Counts are not looked for beyond: there they are not whole numbers any more.
const MOST_COUNT: f64 = 1e15;

/// Finds the quantile of whole numbers from 0 to `largest`: steps away from the start that double,
/// then halving.
fn whole_quantile(cdf: &dyn Fn(f64) -> f64, largest: f64, start: f64, level: f64) -> f64 {
    let most = largest.min(MOST_COUNT);
    // P(Y ≤ below) < level ≤ P(Y ≤ reached)
    let (mut below, mut reached) = (-1.0, start.floor().clamp(0.0, most));
    let mut step = 1.0;
    if cdf(reached) < level {
        while reached < most {
            below = reached;
            reached = (reached + step).min(most);
            if cdf(reached) >= level {
                break;
            }
            step *= 2.0;
        }
    } else {
        while reached - step > -1.0 {
            if cdf(reached - step) < level {
                below = reached - step;
                break;
            }
            reached -= step;
            step *= 2.0;
        }
    }
    while reached - below > 1.0 {
        let middle = (0.5 * (below + reached)).floor();
        if !(below < middle && middle < reached) {
            break;
        }
        if cdf(middle) < level { below = middle } else { reached = middle }
    }
    reached
}

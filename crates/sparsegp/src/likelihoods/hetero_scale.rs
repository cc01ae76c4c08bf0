//! Averages over the latent function g of a scale σ(g) for predictions of heteroscedastic noise.
//!
//! As a function of g, p(y | g) is N(y; m, v + e^{2g}) or alike: analytic and bounded for imaginary parts below π/4, where e^{2g} has a
//! real part above 0, however large the variance of g. So the trapezoidal rule errs by e^{−π²/2h} for steps h in g, 2e-11 for a fifth.

use super::multi::LogSum;
use super::panels;
use crate::special::HALF_LOG_TAU;
use std::f64::consts::TAU;

/// Largest step in g, and in standard deviations of g.
const STEP: f64 = 0.2;
const STEP_OF_NORMAL: f64 = 0.35;
/// Standard deviations to either side: of a distribution, and of a density at targets that are surprising.
const REACH: f64 = 8.5;
const SURPRISED: f64 = 60.0;
/// Every so many nodes one is looked at to see where the integrand is.
const COARSE: usize = 8;
/// What is below the largest by so much is nothing.
const NOTHING: f64 = 45.0;
/// Deviations of g above this have panels in the place of equal steps.
const WIDE: f64 = 20.0;
/// Within this |g| a wide one has panels of width 2.
const FINE: f64 = 160.0;

fn step(deviation: f64) -> f64 {
    STEP_OF_NORMAL.min(STEP / deviation)
}

/// Returns the ends of panels for wide g, `reach` standard deviations to either side.
fn ends(mean: f64, deviation: f64, reach: f64) -> Vec<f64> {
    let (low, high) = (mean - reach * deviation, mean + reach * deviation);
    let mut ends = Vec::new();
    panels::ladder(mean, deviation, reach * deviation, &mut ends);
    ends.extend((0..=FINE as i32).map(|i| 2.0 * f64::from(i) - FINE));
    panels::ladder(0.0, FINE, reach * deviation + mean.abs(), &mut ends);
    panels::arrange(low, high, &mut ends);
    ends
}

/// Returns log E exp h(g), g ~ N(mean, variance).
pub(super) fn log_average(mean: f64, variance: f64, h: impl Fn(f64) -> f64) -> f64 {
    if variance <= 0.0 {
        return h(mean);
    }
    let deviation = variance.sqrt();
    if deviation > WIDE {
        let log = panels::log_integral(&ends(mean, deviation, REACH), |g| {
            let x = (g - mean) / deviation;
            h(g) - 0.5 * x * x
        });
        return log - deviation.ln() - HALF_LOG_TAU;
    }
    let step = step(deviation);
    let at = |i: usize| {
        let x = step * i as f64 - SURPRISED;
        let log = h(mean + deviation * x) - 0.5 * x * x;
        // no noise at all beside a known function
        if log.is_nan() { f64::NEG_INFINITY } else { log }
    };
    let count = (2.0 * SURPRISED / step) as usize + 1;
    let coarse: Vec<f64> = (0..count).step_by(COARSE).map(at).collect();
    let largest = coarse.iter().fold(f64::NEG_INFINITY, |a, v| a.max(*v));
    let counts = |v: &f64| *v > largest - NOTHING;
    let first = coarse.iter().position(counts).unwrap_or(0).saturating_sub(1) * COARSE;
    let last = coarse.iter().rposition(counts).unwrap_or(coarse.len() - 1) + 1;
    let mut total = LogSum::EMPTY;
    for i in first..=(last * COARSE).min(count - 1) {
        // one in so many is known
        total.add(if i % COARSE == 0 { coarse[i / COARSE] } else { at(i) }, 1.0);
    }
    total.ln() + step.ln() - HALF_LOG_TAU
}

/// Returns the nodes of g ~ N(mean, variance) with weights of sum 1, for what changes as
/// distribution functions do.
pub(super) fn nodes(mean: f64, variance: f64) -> Vec<(f64, f64)> {
    if variance <= 0.0 {
        return vec![(mean, 1.0)];
    }
    let deviation = variance.sqrt();
    let mut all = Vec::new();
    let density = |x: f64| (-0.5 * x * x).exp() / TAU.sqrt();
    if deviation > WIDE {
        for pair in ends(mean, deviation, REACH).windows(2) {
            panels::panel(pair[0], pair[1], |g, w| {
                all.push((g, w / deviation * density((g - mean) / deviation)));
            });
        }
    } else {
        let half = (REACH / step(deviation)).ceil() as i32;
        let step = REACH / f64::from(half);
        all.extend((-half..=half).map(|i| {
            let x = step * f64::from(i);
            (mean + deviation * x, step * density(x))
        }));
    }
    let sum: f64 = all.iter().map(|(_, w)| w).sum();
    all.iter_mut().for_each(|(_, w)| *w /= sum);
    all
}

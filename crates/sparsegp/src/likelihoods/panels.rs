//! Adaptive integration for prediction: Gauss–Legendre on panels that are halved until their halves agree.
//! What the integrands need is places where panels end ([`ladder`]): an adaptive rule cannot find a peak that lies between all of its
//! nodes.

use super::multi::LogSum;
use crate::special::log_add_exp;

/// Half of the nodes of Gauss–Legendre with 16 points on [−1, 1], and their weights (Abramowitz & Stegun,
/// table 25.4).
pub const LEGENDRE: [(f64, f64); 8] = [
    (0.095_012_509_837_637_44, 0.189_450_610_455_068_5),
    (0.281_603_550_779_258_9, 0.182_603_415_044_923_6),
    (0.458_016_777_657_227_4, 0.169_156_519_395_002_54),
    (0.617_876_244_402_643_7, 0.149_595_988_816_576_73),
    (0.755_404_408_355_003, 0.124_628_971_255_533_87),
    (0.865_631_202_387_831_7, 0.095_158_511_682_492_78),
    (0.944_575_023_073_232_6, 0.062_253_523_938_647_89),
    (0.989_400_934_991_649_9, 0.027_152_459_411_754_095),
];

/// Of the integral, what a panel and its halves may differ by.
const TOLERANCE: f64 = 1e-13;
/// Of a logarithm, what it and its neighbours may be rounded by: some tens of roundings.
const ROUNDING: f64 = 32.0 * f64::EPSILON;
/// What a panel and its halves may differ by at most, however large logarithms are.
const LARGEST: f64 = 1e-3;
/// Most panels of one integral.
const MOST: usize = 4000;
/// Most halvings of one panel.
const DEPTH: u8 = 40;
/// Halves of panels from which on the tolerance grows.
const MANY: usize = 200;

/// Calls `add(x, weight)` with the nodes of one panel.
pub fn panel(from: f64, to: f64, mut add: impl FnMut(f64, f64)) {
    // halves first: the sum of two large ends would overflow
    let (middle, half) = (0.5 * from + 0.5 * to, 0.5 * to - 0.5 * from);
    for (x, w) in LEGENDRE {
        add(middle - half * x, half * w);
        add(middle + half * x, half * w);
    }
}

/// Appends `centre` and places at distances `width`·2ʲ to either side of it, the last at most `reach` away.
pub fn ladder(centre: f64, width: f64, reach: f64, ends: &mut Vec<f64>) {
    ends.push(centre);
    // narrower than the distance of numbers there, a peak has no shape
    let mut step = width.max(1e-15 * centre.abs()).max(reach * 1e-160);
    while step < reach && ends.len() < MOST {
        ends.extend([centre - step, centre + step]);
        step *= 2.0;
    }
}

/// Makes increasing ends of panels between `low` and `high` of places in any order.
pub fn arrange(low: f64, high: f64, ends: &mut Vec<f64>) {
    ends.retain(|x| low < *x && *x < high);
    ends.extend([low, high]);
    ends.sort_by(f64::total_cmp);
    ends.dedup();
}

struct Panel {
    from: f64,
    to: f64,
    /// How often it may be halved.
    left: u8,
    value: Vec<f64>,
}

/// Computes ∫ g(x) dx of several g ≥ 0, or of any that are not much larger than the integral of
/// their sizes, which `g` writes into a slice; into `out`. `ends` are increasing.
pub fn integrate(ends: &[f64], out: &mut [f64], mut g: impl FnMut(f64, &mut [f64])) {
    integrate_any(ends, out, &mut g);
}

/// Does what [`integrate`] does, compiled once for all functions.
fn integrate_any(ends: &[f64], out: &mut [f64], g: &mut dyn FnMut(f64, &mut [f64])) {
    let mut at = vec![0.0; out.len()];
    let mut rule = |from: f64, to: f64| {
        let mut value = vec![0.0; at.len()];
        panel(from, to, |x, w| {
            g(x, &mut at);
            value.iter_mut().zip(&at).for_each(|(value, at)| *value += w * at);
        });
        value
    };
    let mut size = 0.0_f64;
    let mut open = Vec::with_capacity(2 * ends.len());
    for pair in ends.windows(2) {
        let value = rule(pair[0], pair[1]);
        size += value.iter().fold(0.0, |a: f64, v| a.max(v.abs()));
        open.push(Panel { from: pair[0], to: pair[1], left: DEPTH, value });
    }
    out.fill(0.0);
    let begun = open.len();
    let mut count = begun;
    while let Some(Panel { from, to, left, value }) = open.pop() {
        let middle = 0.5 * from + 0.5 * to;
        let largest = value.iter().fold(0.0, |a: f64, v| a.max(v.abs()));
        // what is small in all is not looked at twice
        if left == 0
            || largest < TOLERANCE * size
            || count > MOST
            || !(from < middle && middle < to)
        {
            out.iter_mut().zip(value).for_each(|(out, v)| *out += v);
            continue;
        }
        let halves = [rule(from, middle), rule(middle, to)];
        count += 2;
        // what rounds more than it should would be halved again and again
        let tolerance = TOLERANCE * (count as f64 / (begun + MANY) as f64).max(1.0).powi(8);
        let gap = (0..value.len()).map(|k| (halves[0][k] + halves[1][k] - value[k]).abs());
        if gap.fold(0.0, f64::max) <= tolerance * size {
            let [first, second] = halves;
            out.iter_mut().zip(first.iter().zip(second)).for_each(|(out, (a, b))| *out += a + b);
            continue;
        }
        let ends = [(from, middle), (middle, to)];
        for (value, (from, to)) in halves.into_iter().zip(ends) {
            open.push(Panel { from, to, left: left - 1, value });
        }
    }
}

/// Returns log ∫ exp h(x) dx, likewise.
pub fn log_integral(ends: &[f64], mut h: impl FnMut(f64) -> f64) -> f64 {
    log_integral_of_any(ends, &mut h)
}

/// Does what [`log_integral`] does, compiled once for all functions.
fn log_integral_of_any(ends: &[f64], h: &mut dyn FnMut(f64) -> f64) -> f64 {
    let mut rule = |from: f64, to: f64| {
        let mut total = LogSum::EMPTY;
        panel(from, to, |x, w| total.add(h(x), w));
        total.ln()
    };
    let mut size = f64::NEG_INFINITY;
    let mut open = Vec::with_capacity(2 * ends.len());
    for pair in ends.windows(2) {
        let value = rule(pair[0], pair[1]);
        size = log_add_exp(size, value);
        open.push((pair[0], pair[1], DEPTH, value));
    }
    let mut total = f64::NEG_INFINITY;
    if size == total {
        return total;
    }
    let mut count = open.len();
    while let Some((from, to, left, value)) = open.pop() {
        // halves of panels agree no better than the digits of such logarithms
        let tolerance = (ROUNDING * size.abs()).clamp(TOLERANCE, LARGEST);
        let middle = 0.5 * from + 0.5 * to;
        let small = value - size < tolerance.ln();
        if left == 0 || small || count > MOST || !(from < middle && middle < to) {
            total = log_add_exp(total, value);
            continue;
        }
        let (first, second) = (rule(from, middle), rule(middle, to));
        count += 2;
        let both = log_add_exp(first, second);
        size = size.max(both);
        if ((both - size).exp() - (value - size).exp()).abs() <= tolerance {
            total = log_add_exp(total, both);
        } else {
            open.push((from, middle, left - 1, first));
            open.push((middle, to, left - 1, second));
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::special::HALF_LOG_TAU;

    #[test]
    fn peaks_of_any_width_are_integrated_where_a_ladder_shows_them() {
        for width in [1e-7, 0.03, 1.0, 400.0] {
            let mut ends = Vec::new();
            ladder(0.3, width, 1e3, &mut ends);
            arrange(-1e3, 1e3, &mut ends);
            let cauchy =
                |x: f64| width / std::f64::consts::PI / ((x - 0.3).powi(2) + width * width);
            let expected = (((1e3 - 0.3) / width).atan() + ((1e3 + 0.3) / width).atan())
                / std::f64::consts::PI;
            let mut out = [0.0, 0.0];
            integrate(&ends, &mut out, |x, out| out.copy_from_slice(&[cauchy(x), x * cauchy(x)]));
            // nodes near 0.3 are good to 5e-17, 5e-10 of the narrowest peak
            assert!((out[0] - expected).abs() < 1e-8, "{width}: {out:?} {expected}");
            let log = log_integral(&ends, |x| cauchy(x).ln());
            assert!((log - expected.ln()).abs() < 1e-8, "{width}: {log}");
        }
    }

    /// What rounds to nine digits is known to some eight, after so many values as there are for a narrow peak, not after all that
    /// are allowed.
    #[test]
    fn integrals_of_what_rounds_end() {
        let mut ends = Vec::new();
        ladder(0.0, 1.0, 9.0, &mut ends);
        arrange(-9.0, 9.0, &mut ends);
        let mut count = 0;
        let rounded = |x: f64| {
            // a step every 1e-9, at places that no panel knows
            let value = (-0.5 * x * x - HALF_LOG_TAU).exp();
            (value * 1e9 + 0.5 * (1e7 * x).sin()).round() * 1e-9
        };
        let mut out = [0.0];
        integrate(&ends, &mut out, |x, out| {
            count += 1;
            out[0] = rounded(x);
        });
        assert!((out[0] - 1.0).abs() < 1e-7, "{out:?}");
        assert!(count < 32_000, "{count}");
    }

    #[test]
    fn logarithms_have_no_smallest_number() {
        let mut ends = Vec::new();
        ladder(2.0, 1.0, 40.0, &mut ends);
        arrange(-40.0, 40.0, &mut ends);
        let log = log_integral(&ends, |x| -1e6 - 0.5 * (x - 2.0) * (x - 2.0) - HALF_LOG_TAU);
        assert!((log + 1e6).abs() < 1e-9, "{log}");
        assert_eq!(log_integral(&ends, |_| f64::NEG_INFINITY), f64::NEG_INFINITY);
    }
}

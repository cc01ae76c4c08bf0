//! Whether targets repeat after a time that is known beforehand, such as a day.
//!
//! What repeats has lines in the periodogram, at one cycle, two and three in a period. Whatever else there is, slow and fast,
//! has a spectrum that changes little from one frequency to the next. So a line is judged against the frequencies on both sides of it:
//! under normal variations without a line the power there is exponential about a mean (Priestley 1981, §6.1.3), whose logarithm is taken
//! to be a straight line in that of the frequency, as it is for noise of any colour.

use super::harmonics::Waves;
use super::periodogram::without_parabola;
use crate::linalg::{MatRef, column};
use crate::rng;

/// Rows looked at.
const ROWS: usize = 20_000;
/// Fewest rows.
const FEWEST_ROWS: usize = 40;
/// Target columns looked at.
const TARGETS: usize = 4;
/// Fewest periods that the rows span: over fewer a slow change looks the same.
const FEWEST: f64 = 4.0;
/// Lines looked at.
const HARMONICS: usize = 3;
/// Parts of a period, of which so many more than twice the cycles of a line must have rows: rows at one hour of the day say nothing
/// about the day.
const PARTS: usize = 24;
const MORE_PARTS: usize = 2;
/// Share of the rows in a part, beside what even ones would have, for it to count.
const SHARE: f64 = 0.1;
/// Frequencies on either side that a line is judged by: these many cycles over all rows away from it. A line itself is about a
/// cycle wide.
const BESIDE: std::ops::RangeInclusive<usize> = 2..=10;
/// Frequencies that there must be.
const FEWEST_BESIDE: usize = 6;
/// How many times the mean power beside it a line must have: noise reaches it with a probability of some 10⁻⁶.
const ABOVE: f64 = 15.0;
/// −E log of an exponential variable of mean 1.
const EULER: f64 = 0.577_215_664_901_532_9;

/// Returns whether targets (N×P, NaN where missing) at places `x` repeat after a period.
pub fn repeats(x: &[f64], y: MatRef<f64>, period: f64) -> bool {
    let mut rows: Vec<usize> = (0..x.len()).collect();
    if rows.len() > ROWS {
        rows = rng::permutation(&mut rng::stream(0, "rows that repeat"), x.len(), ROWS);
    }
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    rows.iter().for_each(|i| (low, high) = (low.min(x[*i]), high.max(x[*i])));
    let (range, cycles) = (high - low, (high - low) / period);
    let enough = rows.len() >= FEWEST_ROWS && range.is_finite() && cycles >= FEWEST;
    let targets = y.ncols().min(TARGETS);
    if !enough || targets == 0 {
        return false;
    }
    let parts = occupied(rows.iter().map(|i| (x[*i] - low) / period), rows.len());
    let mut waves = Vec::new();
    for p in 0..targets {
        let values = column(y, p);
        let known = rows.iter().filter(|i| !values[**i].is_nan());
        let (t, r): (Vec<f64>, Vec<f64>) =
            known.map(|i| ((x[*i] - low) / range - 0.5, values[*i])).unzip();
        if let Some(r) = (t.len() >= FEWEST_ROWS).then(|| without_parabola(&t, r)).flatten() {
            waves.push(Waves::new(t, r, 1));
        }
    }
    let power = |cycles: f64| waves.iter().map(|own| own.part(cycles)).sum::<f64>();
    let lines = (1..=HARMONICS).filter(|h| parts >= 2 * h + MORE_PARTS);
    lines.into_iter().any(|h| above(&power, h as f64 * cycles, cycles) > ABOVE)
}

/// Returns the number of parts of a period with rows, given how many periods each row is from the first.
fn occupied(phases: impl Iterator<Item = f64>, rows: usize) -> usize {
    let mut counts = [0; PARTS];
    phases.for_each(|phase| {
        counts[((phase - phase.floor()) * PARTS as f64) as usize % PARTS] += 1;
    });
    let least = (SHARE * rows as f64 / PARTS as f64).max(1.0);
    counts.iter().filter(|count| f64::from(**count) >= least).count()
}

/// Returns the power at so many cycles as a multiple of the mean that those beside it give, which are not multiples of `base`.
fn above(power: &dyn Fn(f64) -> f64, cycles: f64, base: f64) -> f64 {
    let sides = BESIDE.flat_map(|away| [cycles - away as f64, cycles + away as f64]);
    let off = |other: &f64| {
        let multiple = (other / base).round();
        *other >= 2.0 && (other - multiple * base).abs() > 1.0
    };
    let points: Vec<(f64, f64)> = sides.filter(off).map(|c| (c.ln(), power(c).ln())).collect();
    if points.len() < FEWEST_BESIDE || points.iter().any(|(_, own)| !own.is_finite()) {
        return 0.0;
    }
    let n = points.len() as f64;
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (at, level) = (mean(&|own| own.0), mean(&|own| own.1));
    let spread = mean(&|own| (own.0 - at).powi(2));
    let slope = mean(&|own| (own.0 - at) * (own.1 - level)) / spread;
    (power(cycles).ln() - level - slope * (cycles.ln() - at) - EULER).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Mat;
    use rand_distr::{Distribution, StandardNormal};
    use std::f64::consts::TAU;

    /// Noise whose steps have the factor `keep`: white at 0, a random walk at 1.
    fn coloured(seed: u64, n: usize, keep: f64) -> Vec<f64> {
        let mut rng = rng::stream(seed, "coloured");
        let mut now = 0.0;
        let step = |_| {
            let normal: f64 = StandardNormal.sample(&mut rng);
            now = keep * now + normal;
            now
        };
        (0..n).map(step).collect()
    }

    fn found(x: &[f64], y: &[f64], period: f64) -> bool {
        repeats(x, Mat::from_fn(x.len(), 1, |i, _| y[i]).as_ref(), period)
    }

    #[test]
    fn noise_of_any_colour_does_not_repeat() {
        let mut taken = 0;
        for seed in 0..40 {
            for (keep, n, period) in
                [(0.0, 500, 24.0), (0.9, 700, 7.0), (1.0, 1500, 24.0), (1.0, 1600, 365.25)]
            {
                // with gaps
                let all: Vec<usize> = (0..n).filter(|i| i % 97 > 8).collect();
                let noise = coloured(seed, n, keep);
                let x: Vec<f64> = all.iter().map(|i| *i as f64).collect();
                let y: Vec<f64> = all.iter().map(|i| noise[*i]).collect();
                taken += usize::from(found(&x, &y, period));
            }
        }
        assert!(taken <= 1, "{taken} of 160");
    }

    #[test]
    fn a_day_is_found_in_slow_and_fast_noise() {
        for seed in 0..10 {
            let n = 2400;
            let (walk, white) = (coloured(seed, n, 1.0), coloured(100 + seed, n, 0.0));
            let x: Vec<f64> = (0..n).map(|i| 0.7 + i as f64).collect();
            // pulses: most of it in harmonics
            let pulse = |t: f64| (3.0 * ((TAU * t / 24.0).cos() - 1.0)).exp();
            let y: Vec<f64> =
                (0..n).map(|i| walk[i] + white[i] + 6.0 * pulse(x[i])).map(|v| v - 40.0).collect();
            assert!(found(&x, &y, 24.0), "{seed}");
            assert!(!found(&x, &y, 37.0), "{seed}");
            // rows at two hours of the day say nothing about it
            let few: Vec<usize> = (0..n).filter(|i| i % 12 == 3).collect();
            let (x, y): (Vec<f64>, Vec<f64>) = few.iter().map(|i| (x[*i], y[*i])).unzip();
            assert!(!found(&x, &y, 24.0), "{seed}");
        }
    }

    #[test]
    fn short_constant_and_missing_targets_do_not_repeat() {
        let x: Vec<f64> = (0..200).map(f64::from).collect();
        let wave: Vec<f64> = x.iter().map(|t| (TAU * t / 60.0).sin()).collect();
        assert!(!found(&x, &wave, 60.0));
        assert!(!found(&x, &[3.0; 200], 24.0));
        assert!(!found(&x, &[f64::NAN; 200], 24.0));
        assert!(!found(&[1.0; 200], &wave, 24.0));
        assert!(!found(&x[..10], &wave[..10], 2.0));
    }
}

//! Where periods start: the strongest peak of a periodogram along one input column.

use super::gaps::{Cycles, cycles};
use super::harmonics::{Waves, remaining};
use crate::linalg::{MatRef, column};
use crate::rng;
use std::f64::consts::TAU;

/// Rows looked at: what follows costs some ten operations for every row and frequency.
const ROWS: usize = 5000;
/// Target columns looked at.
const TARGETS: usize = 4;
/// Frequencies times rows, for each target.
const WORK: usize = 50_000_000;
/// Most frequencies.
const MOST: usize = 100_000;
/// Fewest cycles over the range of the column: slower waves are trends.
const FEWEST: f64 = 1.5;
/// Frequencies per cycle over the range: a peak is about one cycle wide.
const DENSITY: f64 = 4.0;
/// Accepted probability that the strongest peak of white noise is taken for a period, of each band of frequencies.
const FALSE_ALARM: f64 = 0.01;
/// Peaks of each band that are looked at more closely.
const PEAKS: usize = 6;
/// Nats by which a multiple of a period must explain the targets better than the period itself, which it contains.
const BETTER: f64 = 10.0;
/// The same for the part of the sum of squares, as a part of it: slow changes that do not repeat
/// are not a fundamental.
const LARGER: f64 = 0.05;

/// Returns the period that explains most of the targets (N×P, NaN where missing) over the places
/// `x`, beside a parabola. `None` where no peak stands out of what noise would give. Places need
/// not be in order or evenly spaced.
///
/// Peaks are those of the generalised Lomb–Scargle periodogram (Zechmeister & Kürster 2009, Eq. 5), as a part of the sum of
/// squares and averaged over the targets, in two bands of frequencies ([`cycles`]). The highest of them are compared by
/// the likelihood of a wave with so many `harmonics` (1 for a plain wave), at its best nearby
/// frequency: the logarithm of the number of frequencies in a band is what a peak of it must make
/// up for. With harmonics the double and the threefold of the best period are tried too, for
/// signals whose fundamental is weak.
pub fn strongest_period(x: &[f64], y: MatRef<f64>, harmonics: usize) -> Option<f64> {
    periods(x, y, harmonics)?.into_iter().next()
}

/// Returns the period of [`strongest_period`], and after it those of the other peaks that stand out of noise, the strongest
/// first.
pub(super) fn periods(x: &[f64], y: MatRef<f64>, harmonics: usize) -> Option<Vec<f64>> {
    let targets = y.ncols().min(TARGETS);
    let mut rows: Vec<usize> = (0..x.len()).collect();
    if rows.len() > ROWS {
        let mut generator = rng::stream(0, "rows of the periodogram");
        rows = rng::permutation(&mut generator, x.len(), ROWS);
    }
    let mut places: Vec<f64> = rows.iter().map(|&i| x[i]).collect();
    places.sort_unstable_by(f64::total_cmp);
    places.dedup();
    let (low, high) = (*places.first()?, *places.last()?);
    let range = high - low;
    if targets == 0 || !(range > 0.0 && range.is_finite()) {
        return None;
    }
    let Cycles { typical, most } = cycles(&places);
    let count = |cycles: f64| ((cycles - FEWEST) * DENSITY).floor().max(0.0) as usize;
    let affordable = MOST.min(WORK / rows.len());
    let (first, all) = (count(typical).min(affordable), count(most).min(affordable));
    if first < 3 {
        return None;
    }
    let cycles_at = |k: f64| FEWEST + k / DENSITY;
    let mut power = vec![0.0; all];
    let (mut fewest, mut waves) = (usize::MAX, Vec::new());
    for p in 0..targets {
        let values = column(y, p);
        let known = rows.iter().filter(|&&i| !values[i].is_nan());
        let (t, r): (Vec<f64>, Vec<f64>) =
            known.map(|&i| ((x[i] - low) / range - 0.5, values[i])).unzip();
        fewest = fewest.min(t.len());
        let r = without_parabola(&t, r)?;
        add_powers(&t, &r, &cycles_at, 1.0 / targets as f64, &mut power);
        waves.push(Waves::new(t, r, harmonics));
    }
    // the part of noise explained by one wave is of Beta(1, (n − 3)/2), and as many waves are tried
    let exponent = 2.0 / (fewest.checked_sub(6)? as f64 + 3.0);
    let explained = |cycles: f64| waves.iter().map(|own| own.explained(cycles)).sum::<f64>();
    let mut found: Vec<(f64, f64)> = Vec::new();
    for (begin, end) in [(0, first), (first, all)] {
        let least = 1.0 - (FALSE_ALARM / (end - begin).max(1) as f64).powf(exponent);
        // a peak may lie on the border
        let mut peaks: Vec<usize> = (begin.max(1)..end.min(all - 1))
            .filter(|&k| power[k] > least && power[k] >= power[k - 1] && power[k] > power[k + 1])
            .collect();
        peaks.sort_unstable_by(|&a, &b| power[b].total_cmp(&power[a]));
        for k in peaks.into_iter().take(PEAKS) {
            let (cycles, value) = nearby(&explained, cycles_at(k as f64));
            found.push((cycles, value - ((end - begin) as f64).ln()));
        }
    }
    // of equal ones the first
    found.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (mut cycles, _) = *found.first()?;
    if harmonics > 1 {
        let part = |cycles: f64| waves.iter().map(|own| own.part(cycles)).sum::<f64>();
        let single = cycles;
        let (mut own, least) = (explained(single), (1.0 + LARGER) * part(single));
        for multiple in [2.0, 3.0] {
            if single / multiple >= FEWEST {
                let (slower, value) = nearby(&explained, single / multiple);
                if value > own + BETTER && part(slower) > least {
                    (cycles, own) = (slower, value);
                }
            }
        }
    }
    let mut all = vec![cycles];
    for (other, _) in found {
        // a peak is about one cycle wide
        if all.iter().all(|own: &f64| (own - other).abs() > 1.0) {
            all.push(other);
        }
    }
    Some(all.into_iter().map(|cycles| range / cycles).collect())
}

/// Steps of the search about a peak, for every step of the periodogram.
const STEPS: i32 = 4;

/// Returns the best frequency about a peak, and its value: the top of the parabola through the best
/// of some and its neighbours.
fn nearby(value: &dyn Fn(f64) -> f64, centre: f64) -> (f64, f64) {
    let step = 1.0 / (DENSITY * f64::from(STEPS));
    let at = |i: i32| centre + step * f64::from(i);
    let values: Vec<f64> = (-STEPS - 1..=STEPS + 1).map(|i| value(at(i))).collect();
    let inside = 1..values.len() - 1;
    let best = inside.max_by(|&a, &b| values[a].total_cmp(&values[b])).unwrap_or(1);
    let (before, top, after) = (values[best - 1], values[best], values[best + 1]);
    let own = at(best as i32 - STEPS - 1);
    let bend = before - 2.0 * top + after;
    let shift = 0.5 * (before - after) / bend;
    if bend < 0.0 && shift.abs() <= 1.0 {
        let found = own + step * shift;
        let there = value(found);
        if there > top {
            return (found, there);
        }
    }
    (own, top)
}

/// Returns the residuals of a parabola in t ∈ [−½, ½] by least squares; `None` where there is none
/// left.
pub(super) fn without_parabola(t: &[f64], r: Vec<f64>) -> Option<Vec<f64>> {
    let powers = (0..3).map(|power| t.iter().map(|v| v.powi(power)).collect());
    let r = remaining(powers, r);
    let left: f64 = r.iter().map(|v| v * v).sum();
    (left > 0.0 && left.is_finite()).then_some(r)
}

/// Adds to `power` the part of Σr² that a wave of each frequency explains, `weight` times.
fn add_powers(
    t: &[f64],
    r: &[f64],
    cycles_at: &dyn Fn(f64) -> f64,
    weight: f64,
    power: &mut [f64],
) {
    let n = t.len() as f64;
    let total: f64 = r.iter().map(|v| v * v).sum();
    let turn = |cycles: f64, t: f64| (TAU * cycles * t).sin_cos();
    // from one frequency to the next every wave turns by the same angle
    let step = cycles_at(1.0) - cycles_at(0.0);
    let mut waves: Vec<[f64; 4]> = t
        .iter()
        .map(|&t| {
            let ((s, c), (ds, dc)) = (turn(cycles_at(0.0), t), turn(step, t));
            [c, s, dc, ds]
        })
        .collect();
    for own in power {
        let (mut c1, mut s1, mut cc, mut cs, mut yc, mut ys) = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
        for ([c, s, dc, ds], r) in waves.iter_mut().zip(r) {
            c1 += *c;
            s1 += *s;
            cc += *c * *c;
            cs += *c * *s;
            yc += *c * r;
            ys += *s * r;
            (*c, *s) = (*c * *dc - *s * *ds, *s * *dc + *c * *ds);
        }
        // cos² + sin² = 1; the floating mean takes its part
        let ss = n - cc - s1 * s1 / n;
        let cc = cc - c1 * c1 / n;
        let cs = cs - c1 * s1 / n;
        let determinant = cc * ss - cs * cs;
        if determinant > 1e-8 * n * n {
            let explained = (yc * yc * ss + ys * ys * cc - 2.0 * yc * ys * cs) / determinant;
            *own += weight * explained / total;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Mat;

    /// Uneven places far from the origin, a trend, noise of half the wave's size, and missing values.
    #[test]
    fn a_wave_in_noise_on_a_trend_is_found() {
        for (period, rows) in [(0.37, 200), (5.9, 200), (0.11, 7000)] {
            let mut state = 1_u64;
            let mut uniform = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
            };
            let x: Vec<f64> = (0..rows).map(|_| 1990.0 + 20.0 * uniform()).collect();
            let y = Mat::from_fn(rows, 1, |i, _| {
                let wave = (TAU * x[i] / period + 0.7).sin();
                let value = 3.0 + wave + 0.2 * (x[i] - 1985.0) + 1.7 * uniform();
                if i % 9 == 4 { f64::NAN } else { value }
            });
            let found = strongest_period(&x, y.as_ref(), 1).unwrap();
            // a peak is one cycle over the range wide
            assert!((20.0 / found - 20.0 / period).abs() < 0.1, "{period}: {found}");
        }
    }

    #[test]
    fn noise_and_too_little_have_no_period() {
        let mut state = 7_u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        for rows in [0, 1, 5, 12, 300] {
            let x: Vec<f64> = (0..rows).map(|i| i as f64).collect();
            let y = Mat::from_fn(rows, 2, |_, _| uniform());
            assert_eq!(strongest_period(&x, y.as_ref(), 1), None, "{rows}");
        }
        let x: Vec<f64> = (0..50).map(|i| i as f64).collect();
        for value in [0.0, 2.5, f64::NAN] {
            assert_eq!(strongest_period(&x, Mat::full(50, 1, value).as_ref(), 1), None);
        }
        let wave = Mat::from_fn(50, 1, |i, _| (i as f64).sin());
        assert_eq!(strongest_period(&[3.0; 50], wave.as_ref(), 3), None);
        assert_eq!(strongest_period(&x, Mat::zeros(50, 0).as_ref(), 3), None);
    }

    struct Noise(u64);

    impl Noise {
        /// Uniform on (0, 1).
        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 11) as f64 / (1_u64 << 53) as f64
        }
    }

    /// A wave of amplitudes `first` and `second` of its harmonics, in noise with a standard deviation of 0.2.
    fn targets(x: &[f64], period: f64, first: f64, second: f64, seed: u64) -> Mat<f64> {
        let mut noise = Noise(seed);
        Mat::from_fn(x.len(), 1, |i, _| {
            let phase = TAU * x[i] / period;
            let noise = 0.2 * 12_f64.sqrt() * (noise.uniform() - 0.5);
            first * phase.sin() + second * (2.0 * phase).cos() + noise
        })
    }

    fn is_near(found: Option<f64>, period: f64, x: &[f64]) {
        let range =
            x.iter().fold(0.0, |m: f64, v| m.max(*v)) - x.iter().fold(1e9, |m: f64, v| m.min(*v));
        let found = found.unwrap();
        assert!((range / found - range / period).abs() < 0.1, "{found} for {period}");
    }

    /// Days of which most are missing, weeks of hours months apart, any times, two stretches of months half a century
    /// apart: the period is shorter than two of the mean gaps.
    #[test]
    fn periods_shorter_than_the_mean_gap_are_found_at_uneven_places() {
        for seed in 1..6 {
            let mut noise = Noise(seed + 20);
            let days: Vec<f64> =
                (0..365).map(f64::from).filter(|_| noise.uniform() < 0.27).collect();
            let hours: Vec<f64> =
                [0, 3500, 8000].iter().flat_map(|w| (*w..w + 168).map(f64::from)).collect();
            let times: Vec<f64> = (0..100).map(|_| 100.0 * noise.uniform()).collect();
            let months: Vec<f64> = (0..60).chain(660..720).map(|m| f64::from(m) / 12.0).collect();
            for (x, period) in [(days, 7.0), (hours, 24.0), (times, 1.37), (months, 1.0)] {
                let y = targets(&x, period, 1.0, 0.3, seed);
                for harmonics in [1, 3] {
                    is_near(strongest_period(&x, y.as_ref(), harmonics), period, &x);
                }
            }
        }
    }

    /// Of even places a wave above the Nyquist frequency is its alias below, and no higher frequency is claimed.
    #[test]
    fn even_places_have_no_period_below_two_gaps() {
        let x: Vec<f64> = (0..120).map(|i| 0.5 * f64::from(i)).collect();
        for cycles in [1.1, 1.23, 1.7] {
            // 1/gap = 2: the alias of so many cycles in a unit is at 2 less that
            let y = targets(&x, 1.0 / cycles, 1.0, 0.0, 3);
            is_near(strongest_period(&x, y.as_ref(), 3), 1.0 / (2.0 - cycles), &x);
        }
    }

    /// A signal whose second harmonic is the stronger one repeats with its fundamental; a plain
    /// wave is not a harmonic of a slower one.
    #[test]
    fn the_fundamental_is_found_below_a_stronger_harmonic() {
        for seed in 1..9 {
            let mut noise = Noise(seed);
            let x: Vec<f64> = (0..150).map(|_| 60.0 * noise.uniform()).collect();
            let y = targets(&x, 4.3, 0.4, 1.0, seed);
            is_near(strongest_period(&x, y.as_ref(), 3), 4.3, &x);
            is_near(strongest_period(&x, y.as_ref(), 1), 2.15, &x);
            let y = targets(&x, 4.3, 1.0, 0.0, seed);
            is_near(strongest_period(&x, y.as_ref(), 3), 4.3, &x);
        }
    }
}

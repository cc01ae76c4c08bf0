//! Where periods start: the strongest peak of a periodogram along one input column.

use crate::linalg::{MatRef, column};
use crate::rng;
use std::f64::consts::TAU;

/// Rows looked at: what follows costs some ten operations for every row and frequency.
const ROWS: usize = 5000;
/// Target columns looked at.
const TARGETS: usize = 4;
/// Most cycles over the range of the column.
const CYCLES: f64 = 2500.0;
/// Fewest cycles: slower waves are trends.
const FEWEST: f64 = 1.5;
/// Frequencies per cycle over the range: a peak is about one cycle wide.
const DENSITY: f64 = 4.0;
/// Accepted probability that the strongest peak of white noise is taken for a period.
const FALSE_ALARM: f64 = 0.01;

/// The period of the wave with a floating mean that explains most of the targets (N×P, NaN where missing)
/// over the places `x`, less a parabola: the generalised Lomb–Scargle periodogram (Zechmeister & Kürster
/// 2009, Eq. 5), as a part of the sum of squares and averaged over the targets. Places need not be in
/// order or evenly spaced. `None` where no peak stands out of what noise would give.
pub fn strongest_period(x: &[f64], y: MatRef<f64>) -> Option<f64> {
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
    let cycles = CYCLES.min(0.5 * (places.len() - 1) as f64);
    let count = ((cycles - FEWEST) * DENSITY).floor();
    if count < 3.0 {
        return None;
    }
    let cycles_at = |k: f64| FEWEST + k / DENSITY;
    let mut power = vec![0.0; count as usize];
    let mut fewest = usize::MAX;
    for p in 0..targets {
        let values = column(y, p);
        let known = rows.iter().filter(|&&i| !values[i].is_nan());
        let (t, r): (Vec<f64>, Vec<f64>) =
            known.map(|&i| ((x[i] - low) / range - 0.5, values[i])).unzip();
        fewest = fewest.min(t.len());
        add_powers(&t, without_parabola(&t, r)?, &cycles_at, 1.0 / targets as f64, &mut power);
    }
    // the part of noise explained by one wave is of Beta(1, (n − 3)/2), and as many waves are tried
    let exponent = 2.0 / (fewest.checked_sub(6)? as f64 + 3.0);
    let least = 1.0 - (FALSE_ALARM / power.len() as f64).powf(exponent);
    let peaks = (1..power.len() - 1)
        .filter(|&k| power[k] > least && power[k] >= power[k - 1] && power[k] > power[k + 1]);
    let k = peaks.max_by(|&a, &b| power[a].total_cmp(&power[b]))?;
    // the top of the parabola through three points
    let (before, top, after) = (power[k - 1], power[k], power[k + 1]);
    let shift = 0.5 * (before - after) / (before - 2.0 * top + after);
    Some(range / cycles_at(k as f64 + shift))
}

/// Residuals of a parabola in t ∈ [−½, ½] by least squares; `None` where there is none left.
fn without_parabola(t: &[f64], mut r: Vec<f64>) -> Option<Vec<f64>> {
    let n = t.len() as f64;
    // Gram–Schmidt of 1, t, t²
    let mut basis: Vec<Vec<f64>> = Vec::new();
    for power in 0..3 {
        let mut own: Vec<f64> = t.iter().map(|v| v.powi(power)).collect();
        for earlier in &basis {
            let part: f64 = own.iter().zip(earlier).map(|(a, b)| a * b).sum();
            own.iter_mut().zip(earlier).for_each(|(a, b)| *a -= part * b);
        }
        let norm = own.iter().map(|a| a * a).sum::<f64>().sqrt();
        if norm > 1e-6 * n.sqrt() {
            own.iter_mut().for_each(|a| *a /= norm);
            basis.push(own);
        }
    }
    for own in &basis {
        let part: f64 = r.iter().zip(own).map(|(a, b)| a * b).sum();
        r.iter_mut().zip(own).for_each(|(a, b)| *a -= part * b);
    }
    let left: f64 = r.iter().map(|v| v * v).sum();
    (left > 0.0 && left.is_finite()).then_some(r)
}

/// Adds to `power` the part of Σr² that a wave of each frequency explains, `weight` times.
fn add_powers(
    t: &[f64],
    r: Vec<f64>,
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
        for ([c, s, dc, ds], r) in waves.iter_mut().zip(&r) {
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
            let found = strongest_period(&x, y.as_ref()).unwrap();
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
            assert_eq!(strongest_period(&x, y.as_ref()), None, "{rows}");
        }
        let x: Vec<f64> = (0..50).map(|i| i as f64).collect();
        for value in [0.0, 2.5, f64::NAN] {
            assert_eq!(strongest_period(&x, Mat::full(50, 1, value).as_ref()), None);
        }
        let wave = Mat::from_fn(50, 1, |i, _| (i as f64).sin());
        assert_eq!(strongest_period(&[3.0; 50], wave.as_ref()), None);
        assert_eq!(strongest_period(&x, Mat::zeros(50, 0).as_ref()), None);
    }
}

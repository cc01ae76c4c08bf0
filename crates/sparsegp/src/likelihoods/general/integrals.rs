//! Integrals over a standard normal for many rows at once, each as fine as it needs.
//!
//! First comes the trapezoidal rule on ten deviations to either side. For an integrand that is analytic up to the distance d from
//! the real line its error falls as exp(−2πd/h) with the step h (Trefethen & Weideman 2014, Theorem 5.1): half the step squares
//! it. So where two steps agree to [`AGREE`] the finer one is good to about its square, and to a third of it where a kink far out in
//! the tail keeps the error from falling faster than h². Rows whose steps do not agree by h = ¼ have a kink, a pole nearby or a narrow
//! peak: they are integrated by Gauss–Legendre with 16 points on panels that are halved until
//! halves agree to [`TOLERANCE`].

use crate::likelihoods::multi::LogSum;
use crate::likelihoods::panels::{LEGENDRE, arrange, ladder};
use crate::likelihoods::peaks::{Logs, Peak, peaks};
use crate::linalg::{Mat, column};

/// Deviations to either side.
pub const REACH: f64 = 10.0;
/// What two steps may differ by, of the integral of sizes.
const AGREE: f64 = 1e-7;
/// What a panel and its halves may differ by, of the integral of sizes.
const TOLERANCE: f64 = 1e-8;
/// Share of the first integrand's size that counts for the others too: slopes by differences have its rounding.
const SHARE: f64 = 0.1;
/// Panels that are looked at together.
const AT_ONCE: usize = 1 << 12;
/// Most panels of one row.
const MOST: usize = 400;
/// Most halvings of one panel.
const DEPTH: u8 = 30;

/// Integrands, with the density of the normal in them, at nodes of rows: one row of the result for each.
type Integrands<'a> = dyn FnMut(&[usize], &[f64]) -> Mat<f64> + 'a;
/// The same; the last argument says whether the trapezoidal rule has failed for these rows. What is asked then may be other
/// integrands with the same integral.
pub type Either<'a> = dyn FnMut(&[usize], &[f64], bool) -> Mat<f64> + 'a;

/// Returns first, first + apart, … up to [`REACH`].
fn nodes(first: f64, apart: f64) -> Vec<f64> {
    let count = ((REACH - first) / apart).floor() as usize;
    (0..=count).map(|i| first + apart * i as f64).collect()
}

/// Returns every row with every node.
fn pairs(rows: &[usize], t: &[f64]) -> (Vec<usize>, Vec<f64>) {
    let all = rows.iter().flat_map(|row| t.iter().map(|t| (*row, *t)));
    all.unzip()
}

fn agree(one: &[f64], other: &[f64], size: &[f64], tolerance: f64) -> bool {
    let least = SHARE * size[0];
    // what is not finite is not better with more nodes
    let apart = |q: usize| (one[q] - other[q]).abs() > tolerance * (size[q] + least);
    !(0..one.len()).any(apart)
}

/// Returns `count` integrals of every row. `rough` rows keep what the trapezoidal rule gives.
pub fn integrals(
    rows: usize,
    count: usize,
    rough: impl Fn(usize) -> bool,
    of: &mut Either<'_>,
) -> Vec<Vec<f64>> {
    let mut sums = vec![vec![0.0; count]; rows];
    let mut sizes = sums.clone();
    let mut found = sums.clone();
    let mut open: Vec<usize> = (0..rows).collect();
    for (step, first, apart) in
        [(1.0, -REACH, 1.0), (0.5, 0.5 - REACH, 1.0), (0.25, 0.25 - REACH, 0.5)]
    {
        // functions of other languages need not take empty arrays
        if open.is_empty() {
            break;
        }
        let t = nodes(first, apart);
        let (asked, at) = pairs(&open, &t);
        let values = of(&asked, &at, false);
        for q in 0..count {
            for (row, value) in asked.iter().zip(column(values.as_ref(), q)) {
                sums[*row][q] += value;
                sizes[*row][q] += value.abs();
            }
        }
        open.retain(|row| {
            let finer: Vec<f64> = sums[*row].iter().map(|s| s * step).collect();
            let size: Vec<f64> = sizes[*row].iter().map(|s| s * step).collect();
            let before = std::mem::replace(&mut found[*row], finer);
            step == 1.0 || !agree(&before, &found[*row], &size, AGREE)
        });
    }
    open.retain(|row| !rough(*row));
    let ends = vec![vec![-REACH, -5.0, -2.5, 0.0, 2.5, 5.0, REACH]; open.len()];
    let mut of = |rows: &[usize], t: &[f64]| of(rows, t, true);
    for (row, own) in open.iter().zip(on_panels(&open, ends, count, &mut of)) {
        found[*row] = own;
    }
    found
}

/// Its integral over one panel, and that of sizes.
struct Panel {
    row: usize,
    from: f64,
    to: f64,
    left: u8,
    value: Vec<f64>,
    size: Vec<f64>,
}

impl Panel {
    fn new(row: usize, from: f64, to: f64, left: u8) -> Self {
        Self { row, from, to, left, value: Vec::new(), size: Vec::new() }
    }

    fn halves(&self) -> [Self; 2] {
        let middle = 0.5 * (self.from + self.to);
        let part = |from, to| Self::new(self.row, from, to, self.left - 1);
        [part(self.from, middle), part(middle, self.to)]
    }
}

/// Integrates over panels; `rows` are the rows that their numbers stand for.
fn look(rows: &[usize], panels: &mut [Panel], count: usize, of: &mut Integrands<'_>) {
    for some in panels.chunks_mut(AT_ONCE) {
        let (mut asked, mut at, mut weights) = (Vec::new(), Vec::new(), Vec::new());
        for panel in some.iter() {
            let (middle, half) = (0.5 * (panel.from + panel.to), 0.5 * (panel.to - panel.from));
            for (x, w) in LEGENDRE {
                asked.extend([rows[panel.row]; 2]);
                at.extend([middle - half * x, middle + half * x]);
                weights.extend([half * w; 2]);
            }
        }
        let values = of(&asked, &at);
        let each = 2 * LEGENDRE.len();
        for (k, panel) in some.iter_mut().enumerate() {
            let sum = |of: &dyn Fn(f64) -> f64| -> Vec<f64> {
                let own = k * each..(k + 1) * each;
                (0..count)
                    .map(|q| own.clone().map(|i| weights[i] * of(values[(i, q)])).sum())
                    .collect()
            };
            (panel.value, panel.size) = (sum(&|v| v), sum(&f64::abs));
        }
    }
}

/// Returns integrals over panels between `ends` of each of `rows`.
fn on_panels(
    rows: &[usize],
    ends: Vec<Vec<f64>>,
    count: usize,
    of: &mut Integrands<'_>,
) -> Vec<Vec<f64>> {
    let first = |(row, ends): (usize, &Vec<f64>)| {
        let own = ends.windows(2).map(move |pair| Panel::new(row, pair[0], pair[1], DEPTH));
        own.collect::<Vec<_>>()
    };
    let mut open: Vec<Panel> = ends.iter().enumerate().flat_map(first).collect();
    look(rows, &mut open, count, of);
    let mut totals = vec![vec![0.0; count]; rows.len()];
    let (mut sizes, mut used) = (totals.clone(), vec![0; rows.len()]);
    for panel in &open {
        sizes[panel.row].iter_mut().zip(&panel.size).for_each(|(sum, own)| *sum += own);
        used[panel.row] += 1;
    }
    while !open.is_empty() {
        let mut halves: Vec<Panel> = open.iter().flat_map(Panel::halves).collect();
        look(rows, &mut halves, count, of);
        let mut next = Vec::new();
        let mut halves = halves.into_iter();
        for panel in open {
            let (Some(a), Some(b)) = (halves.next(), halves.next()) else { break };
            let both: Vec<f64> = a.value.iter().zip(&b.value).map(|(a, b)| a + b).collect();
            let row = panel.row;
            if agree(&both, &panel.value, &sizes[row], TOLERANCE) || a.left == 0 || used[row] > MOST
            {
                totals[row].iter_mut().zip(&both).for_each(|(sum, own)| *sum += own);
            } else {
                used[row] += 2;
                next.extend([a, b]);
            }
        }
        open = next;
    }
    totals
}

fn log_sum(logs: impl Iterator<Item = f64>, step: f64) -> f64 {
    let mut total = LogSum::EMPTY;
    logs.for_each(|log| total.add(log, step));
    total.ln()
}

/// Returns log ∫ exp of a row's integrand, for every row. Those whose integrand stays below
/// exp(`least`) are known roughly.
pub fn log_integrals(rows: usize, least: f64, log: &mut Logs<'_>) -> Vec<f64> {
    let mut found = vec![f64::NEG_INFINITY; rows];
    if rows == 0 {
        return found;
    }
    let mut open: Vec<usize> = (0..rows).collect();
    let mut t = nodes(-REACH, 0.5);
    let (asked, at) = pairs(&open, &t);
    let mut logs: Vec<Vec<f64>> = log(&asked, &at).chunks(t.len()).map(<[f64]>::to_vec).collect();
    let settled = |own: &[f64], step: f64, found: &mut f64| {
        let coarse = log_sum(own.iter().step_by(2).copied(), 2.0 * step);
        *found = log_sum(own.iter().copied(), step);
        let apart = (coarse - *found).abs();
        // NaN, or −∞ everywhere, stays
        apart.is_nan() || apart <= AGREE
    };
    open.retain(|row| !settled(&logs[*row], 0.5, &mut found[*row]));
    if open.is_empty() {
        return found;
    }
    let between = nodes(0.25 - REACH, 0.5);
    let (asked, at) = pairs(&open, &between);
    let finer = log(&asked, &at);
    for (row, finer) in open.iter().zip(finer.chunks(between.len())) {
        let mut all: Vec<f64> = logs[*row].iter().zip(finer).flat_map(|(a, b)| [*a, *b]).collect();
        all.extend(logs[*row].last());
        logs[*row] = all;
    }
    t = nodes(-REACH, 0.25);
    open.retain(|row| !settled(&logs[*row], 0.25, &mut found[*row]));
    if open.is_empty() {
        return found;
    }
    let seen = open.iter().map(|row| (t.clone(), logs[*row].clone())).collect();
    let peaks = peaks(&open, seen, log);
    let narrow = |peak: &Peak| peak.log < least;
    for (row, peak) in open.iter().zip(&peaks).filter(|(_, peak)| narrow(peak)) {
        found[*row] = peak.log + peak.width.ln();
    }
    let (open, peaks): (Vec<usize>, Vec<Peak>) =
        open.into_iter().zip(peaks).filter(|(_, peak)| !narrow(peak)).unzip();
    let ends = peaks.iter().map(ends).collect();
    let mut tops = vec![0.0; rows];
    open.iter().zip(&peaks).for_each(|(row, peak)| tops[*row] = peak.log);
    let mut of = |asked: &[usize], t: &[f64]| {
        let logs = log(asked, t);
        Mat::from_fn(t.len(), 1, |i, _| (logs[i] - tops[asked[i]]).exp())
    };
    for (row, own) in open.iter().zip(on_panels(&open, ends, 1, &mut of)) {
        found[*row] = tops[*row] + own[0].ln();
    }
    found
}

/// Ends of panels around a peak.
fn ends(peak: &Peak) -> Vec<f64> {
    let (low, high) = ((peak.at - REACH).min(-REACH), (peak.at + REACH).max(REACH));
    let mut ends = Vec::new();
    ladder(peak.at, peak.width, (peak.at - low).max(high - peak.at), &mut ends);
    arrange(low, high, &mut ends);
    ends
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::special::{HALF_LOG_TAU, normal_cdf};

    fn normal(t: f64) -> f64 {
        (-0.5 * t * t - HALF_LOG_TAU).exp()
    }

    #[test]
    fn smooth_and_kinked_integrands_are_integrated() {
        // E|t − a|, E sign(t − a) and E log(1 + (t − a)²/b²) where Gauss–Hermite fails
        let centres = [0.0, 0.731, -2.2];
        let (mut asked_for, of) = (0, |rows: &[usize], t: &[f64]| {
            Mat::from_fn(t.len(), 2, |i, q| {
                let x = t[i] - centres[rows[i]];
                normal(t[i]) * if q == 0 { x.abs() } else { x.signum() }
            })
        });
        let mut counted = |rows: &[usize], t: &[f64], _: bool| {
            asked_for += t.len();
            of(rows, t)
        };
        let found = integrals(3, 2, |_| false, &mut counted);
        for (own, a) in found.iter().zip(centres) {
            let expected = 2.0 * normal(a) + a * (2.0 * normal_cdf(a) - 1.0);
            assert!((own[0] - expected).abs() < 1e-8, "{own:?} {expected}");
            assert!((own[1] - (1.0 - 2.0 * normal_cdf(a))).abs() < 1e-7, "{own:?}");
        }
        assert!(asked_for < 6000, "{asked_for}");
        // all that grows as eᵗ is done by 41 nodes
        let (mut asked_for, of) = (0, |_: &[usize], t: &[f64]| {
            Mat::from_fn(t.len(), 1, |i, _| normal(t[i]) * (1.7 * t[i]).exp())
        });
        let mut counted = |rows: &[usize], t: &[f64], _: bool| {
            asked_for += t.len();
            of(rows, t)
        };
        let found = integrals(1, 1, |_| false, &mut counted);
        assert!((found[0][0] - (0.5_f64 * 1.7 * 1.7).exp()).abs() < 1e-12, "{found:?}");
        assert_eq!(asked_for, 41);
    }

    #[test]
    fn narrow_peaks_are_found_wherever_they_are() {
        // ∫ N(c; t, w²) N(t; 0, 1) dt = N(c; 0, 1 + w²)
        let mut all = Vec::new();
        for w in [1e-6, 0.003, 0.2, 3.0] {
            all.extend([0.0, 0.1234, -4.4, 37.0].map(|c| (c, w)));
        }
        let mut log = |rows: &[usize], t: &[f64]| -> Vec<f64> {
            let one = |(row, t): (&usize, &f64)| {
                let (c, w): (f64, f64) = all[*row];
                -0.5 * ((c - t) / w).powi(2) - w.ln() - 0.5 * t * t - 2.0 * HALF_LOG_TAU
            };
            rows.iter().zip(t).map(one).collect()
        };
        let found = log_integrals(all.len(), f64::NEG_INFINITY, &mut log);
        for (own, (c, w)) in found.iter().zip(&all) {
            let v = 1.0 + w * w;
            let expected = -0.5 * c * c / v - 0.5 * v.ln() - HALF_LOG_TAU;
            assert!(
                (own - expected).abs() < 1e-8 * (1.0 + expected.abs()),
                "{c} {w}: {own} {expected}"
            );
        }
    }
}

//! Periods that rows may have, where the strongest peak of a periodogram need not be the right one.

use super::harmonics::remaining;
use super::periodogram;
use crate::linalg::{Mat, MatMut, MatRef, column, column_mut};
use faer::reborrow::ReborrowMut;
use std::f64::consts::TAU;

/// Most periods that are tried.
const TRIED: usize = 4;
/// Logarithms of periods that differ by less are one.
const APART: f64 = 0.02;

/// Returns periods to be tried beside the one that the kernel has: the other peaks of the targets (N×P, NaN where missing) over
/// the places `x`, and those of their increments. In increments a level that wanders is white noise, under which its own
/// slow peaks do not drown a season.
pub(super) fn others(x: &[f64], y: MatRef<f64>, harmonics: usize, own: f64) -> Vec<f64> {
    let peaks = periodogram::periods(x, y, harmonics).unwrap_or_default();
    let (places, steps) = increments(x, y);
    let of_steps = periodogram::periods(&places, steps.as_ref(), harmonics).unwrap_or_default();
    // one of either in turn
    let mut all: Vec<f64> = Vec::new();
    let longest = peaks.len().max(of_steps.len());
    for period in (0..longest).flat_map(|i| [of_steps.get(i), peaks.get(i)]).flatten() {
        if all.iter().chain([&own]).all(|other| (period / other).ln().abs() > APART) {
            all.push(*period);
        }
    }
    all.truncate(TRIED);
    all
}

/// Returns places between neighbours (the means of equal places count as one row), and (y′ −
/// y)/√(x′ − x) there.
fn increments(x: &[f64], y: MatRef<f64>) -> (Vec<f64>, Mat<f64>) {
    let mut order: Vec<usize> = (0..x.len()).collect();
    order.sort_unstable_by(|a, b| x[*a].total_cmp(&x[*b]));
    let groups: Vec<&[usize]> = order.chunk_by(|a, b| x[*a] == x[*b]).collect();
    let at = |g: usize| x[groups[g][0]];
    let mean = |g: usize, p: usize| {
        groups[g].iter().map(|&i| y[(i, p)]).sum::<f64>() / groups[g].len() as f64
    };
    let count = groups.len().saturating_sub(1);
    let places = (0..count).map(|g| 0.5 * (at(g) + at(g + 1))).collect();
    let steps = Mat::from_fn(count, y.ncols(), |g, p| {
        (mean(g + 1, p) - mean(g, p)) / (at(g + 1) - at(g)).sqrt()
    });
    (places, steps)
}

/// Takes a wave of this period with its harmonics, by least squares, out of targets (N×P) over the places `x`.
pub(super) fn take_out(x: &[f64], mut y: MatMut<f64>, period: f64, harmonics: usize) {
    for p in 0..y.ncols() {
        let values = column_mut(y.rb_mut(), p);
        let known: Vec<usize> = (0..x.len()).filter(|&i| !values[i].is_nan()).collect();
        let of = |wave: fn(f64) -> f64, k: usize| {
            known.iter().map(|&i| wave(TAU * k as f64 * x[i] / period)).collect()
        };
        let waves = (1..=harmonics).flat_map(|k| [of(f64::cos, k), of(f64::sin, k)]);
        let one = std::iter::once(vec![1.0; known.len()]);
        let left = remaining(one.chain(waves), known.iter().map(|&i| values[i]).collect());
        known.iter().zip(left).for_each(|(&i, left)| values[i] = left);
    }
}

/// Returns targets without what some kernels explain by their starting values.
pub(super) fn left_by<'a>(
    kernels: impl Iterator<Item = &'a dyn super::Kernel>,
    x: MatRef<f64>,
    y: MatRef<f64>,
) -> Mat<f64> {
    let mut left = Mat::from_fn(y.nrows(), y.ncols(), |i, p| column(y, p)[i]);
    kernels.for_each(|kernel| kernel.take_out(x, left.as_mut()));
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::{Inputs, parse};
    use crate::rng;

    fn noise(generator: &mut impl rand::Rng) -> f64 {
        12_f64.sqrt() * (rng::uniform(generator) - 0.5)
    }

    /// A season under a random walk whose slow waves are far stronger.
    #[test]
    fn a_season_is_found_on_a_level_that_wanders() {
        for seed in 0..8 {
            let generator = &mut rng::stream(seed, "season");
            let x: Vec<f64> = (0..300).map(|i| 7.0 + f64::from(i) / 12.0).collect();
            let mut level = 0.0;
            let y = Mat::from_fn(300, 1, |i, _| {
                level += noise(generator);
                40.0 + level + 3.0 * (TAU * x[i] / 1.5).sin()
            });
            let own = periodogram::strongest_period(&x, y.as_ref(), 3).unwrap_or(20.0);
            let tried = others(&x, y.as_ref(), 3, own);
            let all = tried.iter().chain([&own]);
            assert!(all.clone().any(|p| (p / 1.5).ln().abs() < 0.02), "{seed}: {own}, {tried:?}");
        }
    }

    /// Equal terms of a sum look for a period each: the second in what the first leaves.
    #[test]
    fn terms_of_a_sum_start_at_different_periods() {
        let generator = &mut rng::stream(2, "two periods");
        let x = Mat::from_fn(700, 1, |i, _| i as f64);
        let y = Mat::from_fn(700, 1, |i, _| {
            let angle = TAU * i as f64;
            (angle / 24.0).sin() + 0.6 * (angle / 168.0 + 1.0).sin() + 0.3 * noise(generator)
        });
        for spec in ["periodic + periodic", "periodic + cosine", "rbf + periodic + periodic"] {
            let mut kernel = parse(spec, Inputs::unnamed(1)).unwrap();
            kernel.initialise(&[202.0], 0.7);
            kernel.initialise_from_rows(x.as_ref(), y.as_ref());
            let mut periods: Vec<f64> = Vec::new();
            for (path, param) in kernel.params() {
                if path.ends_with("period")
                    || spec.ends_with("cosine") && path.starts_with("kernels[1].lengthscales")
                {
                    periods.extend(param.value());
                }
            }
            periods.sort_by(f64::total_cmp);
            assert!((periods[0] / 24.0 - 1.0).abs() < 0.03, "{spec}: {periods:?}");
            assert!((periods[1] / 168.0 - 1.0).abs() < 0.08, "{spec}: {periods:?}");
        }
    }

    /// Waves of periods 2 and 3 are harmonics of one of 6: a start has the two by themselves.
    #[test]
    fn a_sum_has_a_start_with_two_waves_of_commensurate_periods() {
        let generator = &mut rng::stream(3, "two waves");
        let x = Mat::from_fn(240, 1, |_, _| 60.0 * rng::uniform(&mut *generator));
        let y = Mat::from_fn(240, 1, |i, _| {
            let angle = TAU * x[(i, 0)];
            (angle / 6.0).sin() + 0.7 * (angle / 9.0).cos() + 0.3 * noise(generator)
        });
        let mut kernel = parse("periodic + periodic", Inputs::unnamed(1)).unwrap();
        kernel.initialise(&[17.3], 0.8);
        kernel.initialise_from_rows(x.as_ref(), y.as_ref());
        let has_both = |kernel: &dyn crate::kernels::Kernel| {
            let near = |param: &crate::params::Param, period: f64| {
                (param.value()[0] / period - 1.0).abs() < 0.03
            };
            let params = kernel.params();
            let periods: Vec<_> = params.iter().filter(|(p, _)| p.ends_with("period")).collect();
            [6.0, 9.0].iter().all(|own| periods.iter().any(|(_, param)| near(param, *own)))
        };
        assert!(!has_both(&*kernel));
        let others = kernel.other_starts(x.as_ref(), y.as_ref());
        assert!(others.iter().any(|other| has_both(&**other)));
    }
}

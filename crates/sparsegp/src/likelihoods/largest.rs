//! The probability that one of several independent normal variables is the largest,
//! ϖ = ∫ N(f; μ_y, v_y) Π_{k≠y} Φ((f − μ_k)/√v_k) df (Girolami & Rogers 2006), with slopes.
//!
//! Two have a closed form. Else the trapezoidal rule in t, f = c + w sinh t: on analytic integrands that fall off like normals its error
//! is e^{−2π²s²/h²} for nodes at distances h around something of the width s. Left of the largest μ_k − R√v_k the integrand is 0, so that all
//! factors that are not 1 to its right begin there or before; the nodes lie closest there, as close as the narrowest asks, and farther
//! apart away from it. So their number grows only with the logarithm of the ratio of the widths.

use super::multi::scratch;
use crate::special::{normal_cdf, normal_density};

/// Deviations after which a normal density is nothing, R: Φ(−7.5) is 3e-14.
const REACH: f64 = 7.5;
/// Distance of nodes, in deviations of what is there.
const SPACING: f64 = 0.62;
/// w, in the smallest deviation.
const CORE: f64 = 5.0;
/// Deviations from its mean up to which a factor asks for that distance.
const ASKS: f64 = 4.5;
/// What is narrower, as a share of its deviation, counts as a step all the same.
const NARROWEST: f64 = 1e-12;

/// Normal variables that are compared with one of them.
pub(super) struct Largest<'a> {
    /// Which one.
    pub own: usize,
    /// μ.
    pub mean: &'a [f64],
    /// √v > 0.
    pub deviation: &'a [f64],
}

impl Largest<'_> {
    /// Returns μ_k − μ_y: differences, as equal means may be large.
    fn gap(&self, k: usize) -> f64 {
        self.mean[k] - self.mean[self.own]
    }

    fn others(&self) -> impl Iterator<Item = usize> {
        let own = self.own;
        (0..self.mean.len()).filter(move |k| *k != own)
    }

    /// Returns the nodes, or ϖ if none are needed.
    fn grid(&self) -> Result<Grid, f64> {
        let sd = self.deviation[self.own];
        let begins = |k: usize| self.gap(k) - REACH * self.deviation[k];
        let low = self.others().map(begins).fold(-REACH * sd, f64::max);
        let high = REACH * sd;
        if low >= high {
            return Err(0.0);
        }
        // a step that no digit of the gap shows begins and ends there
        let moves = |k: usize| self.gap(k) + REACH * self.deviation[k] >= low;
        let moving = || self.others().filter(|k| moves(*k));
        let count = moving().count();
        if count == 0 {
            return Err(1.0);
        }
        // beside the range of the integral, which is its own
        let width = |k: usize| self.deviation[k].max(NARROWEST * sd);
        let narrowest = moving().fold(width(self.own), |a, k| a.min(width(k)));
        let (centre, core) = (low + REACH * narrowest, CORE * narrowest);
        let asked = |k: usize| {
            let far = (self.gap(k) + ASKS * width(k)).min(high) - centre;
            width(k) / core.hypot(far)
        };
        let step = moving().fold(asked(self.own), |a, k| a.min(asked(k)));
        // a product of n steps is steeper than one, about as √log n
        let steeper = (1.0 + 0.5 * (count as f64).ln()).sqrt();
        let line = |f: f64| ((f - centre) / core).asinh();
        let (from, to) = (line(low), line(high));
        let count = ((to - from) * steeper / (SPACING * step)).ceil();
        let h = (to - from) / count;
        Ok(Grid { low, centre, core, from, h, count: count as usize })
    }

    /// Returns whether the factor of a class is not 1 everywhere.
    fn moves(&self, k: usize, grid: &Grid) -> bool {
        k != self.own && self.gap(k) + REACH * self.deviation[k] >= grid.low
    }

    /// Returns (μ_y − μ_k)/√(v_y + v_k) and that root, where there are two.
    fn of_two(&self) -> Option<(f64, f64)> {
        (self.mean.len() == 2).then(|| {
            let total = self.deviation[0].hypot(self.deviation[1]);
            (-self.gap(1 - self.own) / total, total)
        })
    }

    /// Returns ϖ.
    pub fn probability(&self) -> f64 {
        if let Some((z, _)) = self.of_two() {
            return normal_cdf(z);
        }
        let grid = match self.grid() {
            Ok(grid) => grid,
            Err(certain) => return certain,
        };
        let mut total = 0.0;
        for (f, step) in grid.nodes() {
            let mut product = step * self.density(f);
            for k in (0..self.mean.len()).filter(|k| self.moves(*k, &grid)) {
                product *= normal_cdf((f - self.gap(k)) / self.deviation[k]);
            }
            total += product;
        }
        total
    }

    /// Returns the density of the one that is compared with the others, at a distance from its
    /// mean.
    fn density(&self, f: f64) -> f64 {
        normal_density(f / self.deviation[self.own]) / self.deviation[self.own]
    }

    /// Returns ϖ with its slopes by means and variances (overwritten). As Φ((f − μ)/√v) solves the
    /// heat equation, that by a variance is half of the second derivative by the mean.
    pub fn with_slopes(&self, by_mean: &mut [f64], by_variance: &mut [f64]) -> f64 {
        by_mean.fill(0.0);
        by_variance.fill(0.0);
        let (own, classes) = (self.own, self.mean.len());
        if let Some((z, total)) = self.of_two() {
            let slope = normal_density(z) / total;
            (by_mean[own], by_mean[1 - own]) = (slope, -slope);
            by_variance.fill(-0.5 * slope * z / total);
            return normal_cdf(z);
        }
        let grid = match self.grid() {
            Ok(grid) => grid,
            Err(certain) => return certain,
        };
        let sd = self.deviation[own];
        let mut total = 0.0;
        scratch(3 * classes, |memory| {
            // Φ of every factor, the product of those before it, and its argument
            let (value, rest) = memory.split_at_mut(classes);
            let (before, argument) = rest.split_at_mut(classes);
            for (f, step) in grid.nodes() {
                let mut product = step * self.density(f);
                for k in (0..classes).filter(|k| self.moves(*k, &grid)) {
                    argument[k] = (f - self.gap(k)) / self.deviation[k];
                    (value[k], before[k]) = (normal_cdf(argument[k]), product);
                    product *= value[k];
                }
                total += product;
                let x = f / sd;
                by_variance[own] += 0.5 * product * (x * x - 1.0) / (sd * sd);
                let mut after = 1.0;
                for k in (0..classes).rev().filter(|k| self.moves(*k, &grid)) {
                    let d = argument[k];
                    let slope = before[k] * after * normal_density(d) / self.deviation[k];
                    by_mean[k] -= slope;
                    // nothing times infinity
                    by_variance[k] -=
                        if slope == 0.0 { 0.0 } else { 0.5 * slope * d / self.deviation[k] };
                    after *= value[k];
                }
            }
        });
        // only differences of the means matter
        by_mean[own] = -by_mean.iter().sum::<f64>();
        total
    }
}

/// Nodes f − μ_y = centre + core·sinh t at equal distances h of t.
struct Grid {
    /// Where the integrand begins.
    low: f64,
    centre: f64,
    core: f64,
    from: f64,
    h: f64,
    count: usize,
}

impl Grid {
    /// Returns every node with the distance to the next.
    fn nodes(&self) -> impl Iterator<Item = (f64, f64)> {
        (0..=self.count).map(|i| {
            let t = self.from + self.h * i as f64;
            (self.centre + self.core * t.sinh(), self.h * self.core * t.cosh())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By an independent program (adaptive integration, SciPy): mean, deviation, own, ϖ.
    const CASES: &[(&[f64], &[f64], usize, f64)] = &[
        (&[-0.935, -1.545], &[0.611, 0.358], 0, 0.805488924598536),
        (&[0.978, -0.111, -1.041], &[1.0, 1.0, 1.0], 1, 0.205470800478614),
        (&[-0.311, -0.055, -0.409], &[1.02, 0.747, 0.255], 1, 0.475490788073228),
        (&[-1.467, 2.528, 0.992, 4.244], &[5.46, 0.717, 0.0772, 3.66], 1, 0.248051954833877),
        (
            &[3.222, -0.946, 0.451, -0.051, 1.454, -0.871, -0.364],
            &[0.438, 4.36, 2.18, 21.0, 29.9, 4.69, 8.44],
            0,
            0.118121905903901,
        ),
        (
            &[-0.092, -0.159, 0.119, -0.209, -0.216, -0.325, -0.234],
            &[1.21, 0.188, 0.945, 1.44, 0.0659, 12.4, 0.217],
            3,
            0.156131943650429,
        ),
        (
            &[2.731, 0.053, -1.852, -1.907, -2.991],
            &[0.799, 0.594, 6.84, 62.2, 0.154],
            2,
            0.140352240627551,
        ),
    ];

    #[test]
    fn probabilities_are_those_of_an_independent_program() {
        for (mean, deviation, own, expected) in CASES {
            let own = Largest { own: *own, mean, deviation };
            let found = own.probability();
            assert!((found - expected).abs() < 1e-10, "{mean:?} {deviation:?}: {found} {expected}");
        }
    }

    #[test]
    fn slopes_are_differences_of_the_values() {
        for (mean, deviation, own, _) in CASES {
            let classes = mean.len();
            let variance: Vec<f64> = deviation.iter().map(|d| d * d).collect();
            let at = |mean: &[f64], variance: &[f64]| {
                let deviation: Vec<f64> = variance.iter().map(|v| v.sqrt()).collect();
                Largest { own: *own, mean, deviation: &deviation }.probability()
            };
            let (mut by_mean, mut by_variance) = (vec![f64::NAN; classes], vec![f64::NAN; classes]);
            let this = Largest { own: *own, mean, deviation };
            let value = this.with_slopes(&mut by_mean, &mut by_variance);
            assert!((value - this.probability()).abs() < 1e-14);
            for k in 0..classes {
                let moved = |by: f64| {
                    let mut mean = mean.to_vec();
                    mean[k] += by;
                    at(&mean, &variance)
                };
                // an error of 1e-10 in either value
                let h = 1e-3 * deviation[k];
                let slope =
                    (8.0 * (moved(h) - moved(-h)) - moved(2.0 * h) + moved(-2.0 * h)) / (12.0 * h);
                let size = 1e-7 / deviation[k];
                assert!((slope - by_mean[k]).abs() < size, "{mean:?} {k}: {slope} {by_mean:?}");
                let moved = |by: f64| {
                    let mut variance = variance.clone();
                    variance[k] += by;
                    at(mean, &variance)
                };
                let h = 1e-3 * variance[k];
                let slope =
                    (8.0 * (moved(h) - moved(-h)) - moved(2.0 * h) + moved(-2.0 * h)) / (12.0 * h);
                let size = 1e-7 / variance[k];
                assert!(
                    (slope - by_variance[k]).abs() < size,
                    "{mean:?} {k}: {slope} {by_variance:?}"
                );
            }
        }
    }

    #[test]
    fn probabilities_of_all_sum_to_one_at_any_scale() {
        for scale in [1e-4, 1.0, 1e4, 1e150] {
            for spread in [1.0_f64, 30.0, 1e4, 1e9, 1e40] {
                for classes in [2, 3, 8, 40] {
                    let at = |k: usize, power: f64| ((k * k) as f64 * 0.7 + power).sin();
                    let deviation: Vec<f64> =
                        (0..classes).map(|k| scale * spread.powf(at(k, 0.3) - 1.0)).collect();
                    let mean: Vec<f64> = (0..classes).map(|k| scale * at(k, 1.1)).collect();
                    let of =
                        |own| Largest { own, mean: &mean, deviation: &deviation }.probability();
                    let sum: f64 = (0..classes).map(of).sum();
                    assert!((sum - 1.0).abs() < 1e-9, "{scale} {spread} {classes}: {sum}");
                }
            }
        }
        for (mean, expected) in
            [([1e300, 1e300, -1e300], 0.5), ([1e300, 0.0, 0.0], 1.0), ([1e308, -1e308, 0.0], 1.0)]
        {
            let found = Largest { own: 0, mean: &mean, deviation: &[1.0; 3] }.probability();
            assert!((found - expected).abs() < 1e-10, "{mean:?}: {found}");
        }
    }
}

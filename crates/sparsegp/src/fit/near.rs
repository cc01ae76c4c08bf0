//! Whether rows that are near each other have alike slopes, input by input and distance by distance.
//!
//! With gᵢ = ∂ log p(yᵢ | f)/∂f at what a model predicts, a function that the model misses leaves gᵢ of one sign where rows are
//! near. For the pairs of rows at most h apart, U = Σ_{i≠j} gᵢgⱼ has the mean 0 and the variance V = 2 Σ_{i≠j} gᵢ²gⱼ² if signs
//! are independent (Moran 1950, with weights 0 and 1). U/√V is largest near the h at which the function changes: of a wave
//! sin κx at κh ≈ 1.17, of a draw with lengthscale ℓ near ℓ. It is the score test of another summand in the kernel, needs no
//! fit and costs O(N log N) for an input.

use super::spreads;
use crate::data::InMemory;
use crate::likelihoods::{Likelihood, Target, together::at_once};
use crate::linalg::{Mat, column};
use crate::rng;

/// Rows between which distances over all inputs are looked at.
const PAIRED: usize = 1000;
/// From one distance to the next.
const STEP: f64 = 1.5;
/// Neighbours of a row, on average, at the shortest distance.
const FEWEST: f64 = 2.0;
/// The shortest distance where all pairs are looked at, in spreads.
const SHORTEST: f64 = 0.02;
/// How many distances there are then.
const BINS: usize = 14;
/// The share of all pairs at the longest: what changes more slowly is a trend.
const MOST: f64 = 0.4;

/// Rows that are alike where they are near.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Alike {
    /// The input along which they are near; none for all inputs together, in units of their spreads.
    pub(super) input: Option<usize>,
    /// The latent function whose slopes they are.
    pub(super) latent: usize,
    /// The distance at which it is clearest: about the lengthscale of the function.
    pub(super) length: f64,
    /// U/√V there, standard normal if there is nothing.
    pub(super) clear: f64,
    /// The mean correlation of such pairs.
    pub(super) correlation: f64,
    /// The share of all pairs that are as near.
    pub(super) share: f64,
}

/// Sums over pairs, which become an [`Alike`].
#[derive(Clone, Copy, Default)]
struct Sums {
    product: f64,
    squares: f64,
    pairs: f64,
}

impl Sums {
    fn add(&mut self, other: Self) {
        self.product += other.product;
        self.squares += other.squares;
        self.pairs += other.pairs;
    }

    fn alike(self, input: Option<usize>, length: f64, g: &[f64]) -> Option<Alike> {
        let n = g.len() as f64;
        let square = g.iter().map(|g| g * g).sum::<f64>() / n;
        // the sum of all is 0, so that every other row is a little unlike
        let product = self.product + self.pairs * square / (n - 1.0);
        (self.squares > 0.0 && square > 0.0).then(|| Alike {
            input,
            latent: 0,
            length,
            clear: product / (2.0 * self.squares).sqrt(),
            correlation: product / (self.pairs * square),
            share: self.pairs / (n * (n - 1.0)),
        })
    }
}

/// Returns the clearest distance of every input, and that over all of them where there are several. `slopes` are gᵢ, one for
/// each row, weighted; their mean is taken out.
pub(super) fn search(x: &Mat<f64>, spreads: &[f64], slopes: &[f64]) -> Vec<Alike> {
    let n = slopes.len();
    let mean = slopes.iter().sum::<f64>() / n.max(1) as f64;
    let g: Vec<f64> = slopes.iter().map(|g| g - mean).collect();
    if n < 8 || g.iter().any(|g| !g.is_finite()) {
        return Vec::new();
    }
    let mut found: Vec<Alike> =
        (0..x.ncols()).filter_map(|q| along(column(x.as_ref(), q), &g, q)).collect();
    if x.ncols() > 1 {
        found.extend(together(x, spreads, &g));
    }
    found
}

/// Returns the sums of all bins up to each.
fn accumulated(bins: &[Sums; BINS]) -> impl Iterator<Item = (i32, Sums)> {
    let mut total = Sums::default();
    bins.iter().enumerate().map(move |(steps, sums)| {
        total.add(*sums);
        (steps as i32, total)
    })
}

/// Returns the clearest of some.
fn clearest(all: impl Iterator<Item = Alike>) -> Option<Alike> {
    all.max_by(|a, b| a.clear.total_cmp(&b.clear))
}

/// Returns the clearest distance along one input.
fn along(values: &[f64], g: &[f64], input: usize) -> Option<Alike> {
    let n = g.len();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_unstable_by(|a, b| values[*a].total_cmp(&values[*b]));
    let v: Vec<f64> = order.iter().map(|&i| values[i]).collect();
    let g: Vec<f64> = order.iter().map(|&i| g[i]).collect();
    let running = |power: i32| -> Vec<f64> {
        let mut sum = 0.0;
        std::iter::once(0.0)
            .chain(g.iter().map(|g| {
                sum += g.powi(power);
                sum
            }))
            .collect()
    };
    let (ones, squares) = (running(1), running(2));
    let range = v[n - 1] - v[0];
    let sums = |h: f64| {
        let (mut low, mut high, mut sums) = (0, 0, Sums::default());
        for i in 0..n {
            while v[i] - v[low] > h {
                low += 1;
            }
            while high < n && v[high] - v[i] <= h {
                high += 1;
            }
            sums.product += g[i] * (ones[high] - ones[low] - g[i]);
            sums.squares += g[i] * g[i] * (squares[high] - squares[low] - g[i] * g[i]);
            sums.pairs += (high - low - 1) as f64;
        }
        sums
    };
    let shortest = FEWEST * range / (2.0 * n as f64);
    if !(shortest > 0.0 && shortest.is_finite()) {
        return None;
    }
    let lengths = std::iter::successors(Some(shortest), |h| Some(h * STEP));
    let all = lengths
        .map(|h| (h, sums(h)))
        .take_while(|(h, sums)| *h < range && sums.pairs <= MOST * (n * (n - 1)) as f64);
    clearest(
        all.filter(|(_, sums)| sums.pairs >= n as f64)
            .filter_map(|(h, sums)| sums.alike(Some(input), h, &g)),
    )
}

/// Returns the clearest distance over all inputs, each in units of its spread, as a lengthscale of
/// each.
fn together(x: &Mat<f64>, spreads: &[f64], g: &[f64]) -> Option<Alike> {
    let n = g.len();
    let picked = match n > PAIRED {
        true => rng::permutation(&mut rng::stream(0, "rows that are paired"), n, PAIRED),
        false => (0..n).collect(),
    };
    let used: Vec<usize> = (0..x.ncols()).filter(|q| spreads[*q] > 0.0).collect();
    let g: Vec<f64> = picked.iter().map(|&i| g[i]).collect();
    let n = g.len();
    let columns: Vec<Vec<f64>> =
        used.iter().map(|&q| picked.iter().map(|&i| x[(i, q)] / spreads[q]).collect()).collect();
    let ends: Vec<f64> = (0..BINS)
        .map(|steps| used.len() as f64 * (SHORTEST * STEP.powi(steps as i32)).powi(2))
        .collect();
    let mut bins = [Sums::default(); BINS];
    let mut squares = vec![0.0; n];
    for i in 0..n {
        squares[..i].fill(0.0);
        for own in &columns {
            let pairs = squares[..i].iter_mut().zip(own);
            pairs.for_each(|(square, other)| *square += (own[i] - other) * (own[i] - other));
        }
        for (j, square) in squares[..i].iter().enumerate() {
            if let Some(sums) = bins.get_mut(ends.partition_point(|end| end < square)) {
                let product = 2.0 * g[i] * g[j];
                sums.add(Sums { product, squares: 0.5 * product * product, pairs: 2.0 });
            }
        }
    }
    let all = accumulated(&bins)
        .filter(|(_, sums)| sums.pairs >= n as f64 && sums.pairs <= MOST * (n * (n - 1)) as f64);
    clearest(all.filter_map(|(steps, sums)| sums.alike(None, SHORTEST * STEP.powi(steps), &g)))
}

/// Returns gᵢ for every latent function of a likelihood, N×L, at latent means `mean` (N×L in all);
/// 0 where a target is missing.
pub(super) fn slopes(likelihood: &dyn Likelihood, mean: &Mat<f64>, rows: &InMemory) -> Mat<f64> {
    at_once(likelihood, |likelihood| slopes_by(likelihood, mean, rows))
}

fn slopes_by(likelihood: &dyn Likelihood, mean: &Mat<f64>, rows: &InMemory) -> Mat<f64> {
    let (n, each) = (rows.x.nrows(), likelihood.latents());
    let default = likelihood.extra().and_then(|e| e.default).unwrap_or(1.0);
    let mut slopes = Mat::<f64>::zeros(n, each * rows.y.ncols());
    let mut slope = vec![0.0; each];
    for p in 0..rows.y.ncols() {
        for i in 0..n {
            let y = rows.y[(i, p)];
            if y.is_nan() {
                continue;
            }
            let f: Vec<f64> = (0..each).map(|l| mean[(i, p * each + l)]).collect();
            let extra = rows.extra.get(i).copied().unwrap_or(default);
            slope.fill(0.0);
            likelihood.log_prob_slope(Target { y, extra }, &f, &mut slope);
            slope.iter().enumerate().for_each(|(l, g)| slopes[(i, p * each + l)] = *g);
        }
    }
    slopes
}

/// Returns where the slopes at latent means `mean` are alike by at least `least` standard
/// deviations, for any latent function; the clearest first, and of every input only the clearest.
pub(super) fn clear(
    likelihood: &dyn Likelihood,
    mean: &Mat<f64>,
    rows: &InMemory,
    least: f64,
) -> Vec<Alike> {
    let spreads = spreads(rows.x.as_ref());
    let all = slopes(likelihood, mean, rows);
    let mut found: Vec<Alike> = Vec::new();
    for l in 0..all.ncols() {
        let weight = |i: usize| rows.weights.get(i).copied().unwrap_or(1.0);
        let own: Vec<f64> =
            column(all.as_ref(), l).iter().enumerate().map(|(i, g)| weight(i) * g).collect();
        for alike in search(&rows.x, &spreads, &own) {
            let alike = Alike { latent: l, ..alike };
            match found.iter_mut().find(|other| other.input == alike.input) {
                Some(other) if other.clear >= alike.clear => {}
                Some(other) => *other = alike,
                None => found.push(alike),
            }
        }
    }
    found.retain(|alike| alike.clear >= least);
    found.sort_by(|a, b| b.clear.total_cmp(&a.clear));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_distr::{Distribution, StandardNormal};
    use std::f64::consts::TAU;

    fn normal(generator: &mut impl rand::Rng) -> f64 {
        StandardNormal.sample(generator)
    }

    /// Mean 0 and variance 1 at a fixed distance where there is nothing, whatever the sizes of the slopes; the clearest of
    /// some fifteen distances of five inputs seldom exceeds 4.
    #[test]
    fn slopes_of_independent_signs_are_not_alike() {
        let generator = &mut rng::stream(3, "near");
        let (n, d, runs) = (150, 5, 200);
        let mut exceeded = 0;
        for _ in 0..runs {
            let x = Mat::from_fn(n, d, |_, q| 10_f64.powi(q as i32) * normal(generator));
            let g: Vec<f64> =
                (0..n).map(|i| 0.3 * (1.0 + (i % 4) as f64) * normal(generator)).collect();
            let spreads: Vec<f64> = (0..d).map(|q| 10_f64.powi(q as i32)).collect();
            let found = search(&x, &spreads, &g);
            assert_eq!(found.len(), d + 1);
            exceeded += usize::from(found.iter().any(|alike| alike.clear > 4.0));
        }
        assert!(exceeded <= 6, "{exceeded} of {runs}");
    }

    /// A wave beside a slow function and noise: the input, and a quarter of a period or less.
    #[test]
    fn a_wave_is_found_along_its_input() {
        let generator = &mut rng::stream(5, "near");
        for (n, waves) in [(200, 20.0), (2000, 200.0), (20_000, 200.0)] {
            let x = Mat::from_fn(n, 3, |_, q| [1.0, 40.0, 0.2][q] * rng::uniform(&mut *generator));
            let g: Vec<f64> = (0..n)
                .map(|i| {
                    (TAU * waves * x[(i, 1)] / 40.0).sin()
                        + 0.5 * x[(i, 0)]
                        + 0.5 * normal(generator)
                })
                .collect();
            let found = search(&x, &[0.3, 12.0, 0.06], &g);
            let best = clearest(found.iter().copied()).unwrap();
            let period = 40.0 / waves;
            assert_eq!(best.input, Some(1), "{found:?}");
            assert!(
                best.clear > 6.0 && best.length > 0.07 * period && best.length < 0.4 * period,
                "{best:?}"
            );
        }
    }

    /// A product of waves has no sum along either input.
    #[test]
    fn a_product_of_waves_is_found_over_all_inputs() {
        let generator = &mut rng::stream(7, "near");
        let n = 800;
        let x = Mat::from_fn(n, 2, |_, q| [1.0, 40.0][q] * rng::uniform(&mut *generator));
        let g: Vec<f64> = (0..n)
            .map(|i| (TAU * 4.0 * x[(i, 0)]).sin() * (TAU * 4.0 * x[(i, 1)] / 40.0 + 0.4).sin())
            .collect();
        let found = search(&x, &[0.29, 11.5], &g);
        let best = clearest(found.iter().copied()).unwrap();
        assert_eq!(best.input, None, "{found:?}");
        // periods of 0.87 spreads
        assert!(best.clear > 6.0 && best.length > 0.05 && best.length < 0.4, "{best:?}");
    }
}

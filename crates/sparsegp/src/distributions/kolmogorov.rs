//! Kolmogorov–Smirnov statistics, for tests of samplers. Above [`REJECT`] with probability 0.001 where the
//! laws agree.

use rand_distr::Distribution;

/// √n·D at level 0.001.
pub const REJECT: f64 = 1.95;

/// Returns √n sup |Fₙ − F|.
pub fn one_sample(draws: &mut [f64], cdf: impl Fn(f64) -> f64) -> f64 {
    draws.sort_by(f64::total_cmp);
    let n = draws.len() as f64;
    let gap = |(i, x): (usize, &f64)| {
        let f = cdf(*x);
        (f - i as f64 / n).abs().max(((i + 1) as f64 / n - f).abs())
    };
    n.sqrt() * draws.iter().enumerate().map(gap).fold(0.0, f64::max)
}

/// Returns √(nm/(n + m)) sup |Fₙ − Gₘ|.
pub fn two_sample(a: &mut [f64], b: &mut [f64]) -> f64 {
    a.sort_by(f64::total_cmp);
    b.sort_by(f64::total_cmp);
    let (n, m) = (a.len() as f64, b.len() as f64);
    let (mut i, mut j, mut gap) = (0, 0, 0.0_f64);
    while i < a.len() && j < b.len() {
        if a[i] <= b[j] {
            i += 1
        } else {
            j += 1
        }
        gap = gap.max((i as f64 / n - j as f64 / m).abs());
    }
    (n * m / (n + m)).sqrt() * gap
}

/// Draws `n` numbers of a law from the stream `name`.
pub fn draws(law: &impl Distribution<f64>, n: usize, name: &str) -> Vec<f64> {
    let mut rng = crate::rng::stream(11, name);
    (0..n).map(|_| law.sample(&mut rng)).collect()
}

/// Returns by how many standard errors the sample's mean and variance are off.
pub fn off_moments(draws: &[f64], mean: f64, variance: f64) -> [f64; 2] {
    let n = draws.len() as f64;
    let power = |p: i32| draws.iter().map(|x| (x - mean).powi(p)).sum::<f64>() / n;
    let second = power(2);
    let error = ((power(4) - second * second) / n).sqrt();
    [power(1) / (variance / n).sqrt(), (second - variance) / error]
}

/// Returns the distribution function of a density on (0, ∞), by the trapezoidal rule in log x from
/// `low` to `high`.
pub fn integrated(log_density: impl Fn(f64) -> f64, low: f64, high: f64) -> impl Fn(f64) -> f64 {
    let n = 20_000;
    let (start, h) = (low.ln(), (high / low).ln() / f64::from(n));
    let mut sums = vec![0.0];
    let value = |i: i32| {
        let y = start + f64::from(i) * h;
        (log_density(y.exp()) + y).exp()
    };
    for i in 0..n {
        sums.push(sums[i as usize] + 0.5 * h * (value(i) + value(i + 1)));
    }
    move |x| {
        let at = ((x.ln() - start) / h).clamp(0.0, f64::from(n));
        let i = (at as usize).min(n as usize - 1);
        (sums[i] + (at - i as f64) * (sums[i + 1] - sums[i])) / sums[n as usize]
    }
}

//! The numbers of the page on errata (`docs/guide/errata.md`): what the printed formula gives, and what the right one
//! does. Every number that is compared here stands on that page.

use rand_distr::{Distribution, Gamma, Normal};
use sparsegp::distributions::functions::log_sigma_tilde;
use sparsegp::likelihoods::{self, Target};
use sparsegp::rng;

const PAGE: &str = include_str!("../src/guide/errata.md");

/// Asserts that a number is what the page says, to the digits that it gives there.
fn on_the_page(text: &str, value: f64) {
    assert!(PAGE.contains(text), "the page lacks {text}");
    let number: f64 = text.replace('−', "-").parse().expect("a number");
    let digits = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let half = 0.5 * 0.1_f64.powi(i32::try_from(digits).expect("few digits"));
    assert!((value - number).abs() <= half * (1.0 + 1e-9), "{text}: {value}");
}

fn log_normal_density(y: f64, variance: f64) -> f64 {
    -0.5 * ((2.0 * std::f64::consts::PI * variance).ln() + y * y / variance)
}

/// Sum of rising terms until they no longer matter.
fn series(term: impl Fn(f64) -> f64) -> f64 {
    (0..400).map(|n| term(f64::from(n))).sum()
}

fn poisson(n: f64, mean: f64) -> f64 {
    (n * mean.ln() - mean - libm::lgamma(n + 1.0)).exp()
}

/// Mass of a likelihood's density over all real y, by the trapezoidal rule after y = sinh(sinh t).
fn mass(specification: &str) -> f64 {
    let likelihood = likelihoods::parse(specification).expect("a likelihood");
    let h = 1.0 / 64.0;
    let density = |y: f64| likelihood.log_prob(Target { y, extra: 0.0 }, &[0.3]).exp();
    (-256..=256)
        .map(|i| {
            let t = f64::from(i) * h;
            let y = t.sinh().sinh();
            h * t.sinh().cosh() * t.cosh() * density(y)
        })
        .sum()
}

#[test]
fn titsias_2025() {
    // one row: power EP with α = 1 is exact, only its regulariser is not
    let (k, q, noise, y) = (1.0, 0.36, 0.25, 1.0);
    on_the_page("−1.4305", log_normal_density(y, q + noise + (k - q)));
    on_the_page("−1.4915", log_normal_density(y, q + noise));
    // tr(FVFᵀ) for F the symmetric root, and the Cholesky factor
    let (v, off) = ([0.5, 1.0], 0.6_f64);
    let (large, small) = ((1.0 + off).sqrt(), (1.0 - off).sqrt());
    let (on, across) = (0.5 * (large + small), 0.5 * (large - small));
    let squares = on * on + across * across;
    on_the_page("1.5", v[0] * squares + v[1] * squares);
    let factor = [[1.0, 0.0], [off, (1.0 - off * off).sqrt()]];
    let column = |j: usize| factor[0][j] * factor[0][j] + factor[1][j] * factor[1][j];
    on_the_page("1.32", v[0] * column(0) + v[1] * column(1));
    // Poisson at f = 1
    let f = 1.0_f64;
    let rest = |y: f64| (-f.exp() - libm::lgamma(y + 1.0)).exp();
    on_the_page("0.4876", series(|y| f.exp() * rest(y)));
    let right = series(|y| (y * f).exp() * rest(y));
    assert!((right - 1.0).abs() < 1e-12, "{right}");
}

/// One row with an inducing point there, Gaussian noise σ² = 0.25, y = 1.5; sites made at k = 0.6: bound less evidence
/// at another kernel variance, with sites that keep q's natural parameters (true) or the printed sums.
#[test]
fn adam_et_al_2021() {
    let (noise, y, old) = (0.25, 1.5, 0.6);
    let gap = |k: f64, natural: bool| {
        let ratio = if natural { 1.0 } else { old / k };
        let (first, second) = (ratio * y / noise, ratio * ratio / noise);
        let s = 1.0 / (1.0 / k + second);
        let m = s * first;
        let expected = log_normal_density(y - m, noise) - 0.5 * s / noise;
        let kl = 0.5 * ((s + m * m) / k - 1.0 + (k / s).ln());
        expected - kl - log_normal_density(y, k + noise)
    };
    assert!(gap(old, false).abs() < 1e-12);
    for k in [0.1, 0.6, 2.5] {
        assert!(gap(k, true).abs() < 1e-12, "{k}: {}", gap(k, true));
    }
    on_the_page("−3.8830", gap(2.5, false));
    // the sign of Eq. 12
    let (k, noise, y) = (1.0_f64, 1.0, 2.0);
    let m = k / (k + noise) * y;
    assert!((m - k * (y - m) / noise).abs() < 1e-12);
}

#[test]
fn galy_fajou_2022() {
    // normalisers: what a density misses is what the printed constant has too much
    let gamma = libm::tgamma;
    on_the_page("0.4431", mass("student-t(df=3, scale=1)") * gamma(1.5) / gamma(3.0));
    let root = 3.0_f64.sqrt();
    on_the_page("5.3333", mass("matern32(scale=1)") * (4.0 / root) / (root / 4.0));
    // Eq. 7.3 at g = 0: E e^{−ωg²/2} = 1
    let (lambda, residual) = (2.0_f64, 0.7_f64);
    let density = log_normal_density(residual, 2.0 / lambda).exp();
    let sum = |halves: f64| {
        series(|n| {
            let weight = poisson(n, 0.5 * lambda * residual * residual);
            lambda.sqrt() / (2.0_f64.powf(n + halves) * std::f64::consts::PI.sqrt()) * weight
        })
    };
    assert!((sum(1.0) - density).abs() < 1e-12);
    on_the_page("0.3123", density);
    on_the_page("0.6245", sum(0.0));
    // Alg. 2: the mean of f under a prior of variance 100
    let (prior, precision, y) = (100.0, 4.0, 2.0);
    let mean = |potential: f64| potential / (1.0 / prior + precision);
    on_the_page("1.9950", mean(precision * y));
    on_the_page("0.9975", mean(precision * y / 2.0));
    // Alg. 3 and 5: σ̃
    let (mu, variance) = (0.0_f64, 0.02_f64);
    on_the_page("10", (-0.5 * mu).exp() / (mu * mu + 0.5 * variance).sqrt());
    on_the_page("0.4988", log_sigma_tilde(-mu, variance).exp());
    // Eq. 7.7: with γ ~ Ga(ν/2, rate ν/2) the variance of y is E 1/γ, with 1/γ so distributed it is E 1/γ of that
    let half = 1.5_f64; // ν = 3
    let moment = |power: f64| {
        let h = 1e-3;
        let density = |t: f64| {
            let g = t.exp(); // γ = eᵗ
            (half * half.ln() - libm::lgamma(half) + half * t - half * g).exp() * g.powf(power)
        };
        (-40_000..6_000).map(|i| h * density(h * f64::from(i))).sum::<f64>()
    };
    assert!(
        PAGE.contains("variance of y at ν = 3, λσ(g) = 1: 1 by the inverse gamma, 3 = ν/(ν − 2)")
    );
    assert!((moment(-1.0) - 3.0).abs() < 1e-6 && (moment(1.0) - 1.0).abs() < 1e-9);
    // Eq. 7.8 at g = 0
    let (delta, alpha) = (0.8_f64, 2.0_f64);
    let p = delta / (1.0 + delta);
    let binomial = |k: f64| {
        (libm::lgamma(alpha + k) - libm::lgamma(k + 1.0) - libm::lgamma(alpha)).exp()
            * p.powf(k)
            * (1.0 - p).powf(alpha)
    };
    let sum = series(|k| 0.5_f64.powf(k) * binomial(k));
    assert!((sum - (1.0 + 0.5 * delta).powf(-alpha)).abs() < 1e-12);
    on_the_page("0.5102", sum);
    // Eq. 7.10 with all n = 0: ∫ e^{−Kλ} dλ
    let h = 1e-3;
    let integral: f64 = (0..40_000).map(|i| h * (-3.0 * h * (f64::from(i) + 0.5)).exp()).sum();
    on_the_page("0.3333", integral);
    // §7.4.2: the Laplace transform of an exponential variable
    let (d, s) = (0.5, 1.2);
    on_the_page("0.2941", d / (d + s));
    on_the_page("0.6250", 1.0 / d / (1.0 / d + s));
}

/// The mean of u under the printed scheme for inducing points and under the one with a law.
#[test]
fn the_sparse_sampler_as_printed_has_another_mean() {
    let (nu, sigma, y) = (3.0, 0.5, [2.5, -1.5]);
    let (kuu, kuf, kff) = (1.2, [0.9, -0.5], [1.3, 1.1]);
    let kappa: Vec<f64> = kuf.iter().map(|k| k / kuu).collect();
    let rest: Vec<f64> = (0..2).map(|i| kff[i] - kuf[i] * kuf[i] / kuu).collect();
    let mean = |printed: bool| {
        let generator = &mut rng::stream(7, "errata");
        let (mut u, mut f, mut sum) = (0.0, [0.0; 2], 0.0);
        let (burn_in, sweeps) = (500, 400_000);
        for sweep in 0..burn_in + sweeps {
            let (mut precision, mut potential) = (1.0 / kuu, 0.0);
            for i in 0..2 {
                let square = if printed {
                    (y[i] - f[i]) * (y[i] - f[i])
                } else {
                    let d: f64 = y[i] - kappa[i] * u;
                    d * d + rest[i]
                };
                let scale = 1.0 / (nu * sigma * sigma + square);
                let omega =
                    Gamma::new(0.5 * (nu + 1.0), scale).expect("positive").sample(generator);
                precision += 2.0 * omega * kappa[i] * kappa[i];
                potential += 2.0 * omega * kappa[i] * y[i];
            }
            let mut draw =
                |m: f64, v: f64| Normal::new(m, v.sqrt()).expect("finite").sample(generator);
            u = draw(potential / precision, 1.0 / precision);
            f = [draw(kappa[0] * u, rest[0]), draw(kappa[1] * u, rest[1])];
            if sweep >= burn_in {
                sum += u;
            }
        }
        sum / f64::from(sweeps)
    };
    for (text, printed) in [("2.135", true), ("1.837", false)] {
        assert!(PAGE.contains(text), "the page lacks {text}");
        let expected: f64 = text.parse().expect("a number");
        // a standard error of about 0.003
        let found = mean(printed);
        assert!((found - expected).abs() < 0.015, "{text}: {found}");
    }
}

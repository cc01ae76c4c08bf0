//! The elementary functions of Pólya-Gamma augmentation, with all their digits from c = 0 to c = 700 and
//! beyond.
//!
//! | here | formula | what |
//! | --- | --- | --- |
//! | [`log_2cosh`] | log(2 cosh x) | |
//! | [`log_cosh`] | log cosh x | |
//! | [`pg_mean`] | θ(c) = tanh(c/2) / 2c | mean of PG(1, c) |
//! | [`pg_variance`] | V(c) = (sinh c − c) / (4c³ cosh²(c/2)) | variance of PG(1, c), −θ′(c)/c |
//! | [`pg_kl`] | log cosh(c/2) − ½c²θ(c) | KL from PG(1, c) to PG(1, 0) |
//! | [`log_sigma_tilde`] | m/2 − log 2cosh(½√(m² + v)) | log σ̃(m, v) ≤ E log σ(f), f ~ N(m, v) |
//! | [`one_minus_sigma_tilde`] | 1 − σ̃(m, v) | |
//!
//! The first five are even functions. Moments: Polson, Scott & Windle 2013, §2.3. The bound of σ̃ is Jensen's
//! inequality: log 2cosh(½√r) is concave in r = f².

use std::f64::consts::LN_2;

/// Taylor coefficients of tanh x = Σ Tₙ x²ⁿ⁻¹, n = 1, 2, … (Abramowitz & Stegun 4.5.64).
const TANH: [f64; 8] = [
    1.0,
    -1.0 / 3.0,
    2.0 / 15.0,
    -17.0 / 315.0,
    62.0 / 2_835.0,
    -1_382.0 / 155_925.0,
    21_844.0 / 6_081_075.0,
    -929_569.0 / 638_512_875.0,
];

/// Below this c, [`pg_variance`] and [`pg_kl`] are Taylor series of x = c/2; eight terms of [`TANH`] are
/// then good to 10⁻¹⁵.
const SMALL: f64 = 0.25;

/// Returns Σ_{n ≥ 2} wₙ Tₙ x²ⁿ⁻⁴ by Horner's rule, by the square of x and with w(n) given.
fn tanh_series(square: f64, weight: impl Fn(f64) -> f64) -> f64 {
    (1..TANH.len()).rev().fold(0.0, |sum, at| sum * square + weight((at + 1) as f64) * TANH[at])
}

/// Returns log(2 cosh x).
pub fn log_2cosh(x: f64) -> f64 {
    x.abs() + (-2.0 * x.abs()).exp().ln_1p()
}

/// Returns log cosh x.
pub fn log_cosh(x: f64) -> f64 {
    if x.abs() < 1.0 {
        // cosh x − 1 = 2 sinh²(x/2) keeps the digits that log 2cosh x − log 2 would lose
        let half = (0.5 * x).sinh();
        (2.0 * half * half).ln_1p()
    } else {
        log_2cosh(x) - LN_2
    }
}

/// Returns θ(c) = tanh(c/2) / 2c, the mean of PG(1, c); ¼ at c = 0.
pub fn pg_mean(c: f64) -> f64 {
    if c.abs() < 1e-2 { small_mean(c * c) } else { (0.5 * c).tanh() / (2.0 * c) }
}

/// Returns θ by c² in (−10⁻⁴, 10⁻⁴).
fn small_mean(square: f64) -> f64 {
    0.25 * (1.0 - square / 12.0 * (1.0 - square / 10.0 * (1.0 - square * (17.0 / 168.0))))
}

/// Returns V by c² in (−1/16, 1/16): θ(c) = Σ Tₙ c²ⁿ⁻² / 4ⁿ, so that −θ′(c)/c = −Σ (2n − 2) Tₙ
/// x²ⁿ⁻⁴ / 16 with x = c/2.
fn small_variance(square: f64) -> f64 {
    -tanh_series(0.25 * square, |n| 2.0 * (n - 1.0)) / 16.0
}

/// Returns θ(√r), continued to r > −π²: tan(c/2)/2c with c = √−r for r < 0.
pub(crate) fn pg_mean_of_square(r: f64) -> f64 {
    if r >= 0.0 {
        pg_mean(r.sqrt())
    } else if r > -1e-4 {
        small_mean(r)
    } else {
        let c = (-r).sqrt();
        (0.5 * c).tan() / (2.0 * c)
    }
}

/// Returns V(√r), continued to r > −π²: (c − sin c) / (4c³ cos²(c/2)) with c = √−r for r < 0.
pub(crate) fn pg_variance_of_square(r: f64) -> f64 {
    if r >= 0.0 {
        pg_variance(r.sqrt())
    } else if r > -SMALL * SMALL {
        small_variance(r)
    } else {
        let c = (-r).sqrt();
        (c - c.sin()) / (4.0 * c.powi(3) * (0.5 * c).cos().powi(2))
    }
}

/// Returns log cosh(½√r), continued to r > −π²: log cos(½√−r) for r < 0.
pub(crate) fn log_cosh_of_square(r: f64) -> f64 {
    if r >= 0.0 {
        log_cosh(0.5 * r.sqrt())
    } else {
        let quarter = (0.25 * (-r).sqrt()).sin();
        (-2.0 * quarter * quarter).ln_1p()
    }
}

/// Returns V(c) = (sinh c − c) / (4c³ cosh²(c/2)), the variance of PG(1, c); 1/24 at c = 0. Also
/// −θ′(c)/c.
pub fn pg_variance(c: f64) -> f64 {
    let c = c.abs();
    if c < SMALL {
        small_variance(c * c)
    } else {
        let e = (-c).exp();
        let sech_squared = 4.0 * e / ((1.0 + e) * (1.0 + e));
        (2.0 * (0.5 * c).tanh() - c * sech_squared) / (4.0 * c) / c / c
    }
}

/// Returns KL(PG(1, c) ‖ PG(1, 0)) = log cosh(c/2) − ½c²θ(c); that of PG(b, c) is b times as much.
pub fn pg_kl(c: f64) -> f64 {
    let x = 0.5 * c.abs();
    if c.abs() < SMALL {
        // log cosh x = Σ Tₙ x²ⁿ / 2n and ½c²θ(c) = ½ x tanh x
        -tanh_series(x * x, |n| (n - 1.0) / (2.0 * n)) * x.powi(4)
    } else {
        log_cosh(x) - 0.5 * x * x.tanh()
    }
}

/// Returns log σ̃(m, v) = m/2 − log 2cosh(½√(m² + v)) for v ≥ 0: a lower bound of E log σ(f), f ~
/// N(m, v), with equality at v = 0. Its derivatives are ½ − θ(c)m in m and −½θ(c) in v, where c =
/// √(m² + v).
///
/// σ̃ is not an expectation: σ̃(m, v) + σ̃(−m, v) < 1 for v > 0.
pub fn log_sigma_tilde(m: f64, v: f64) -> f64 {
    let c = (m * m + v).sqrt();
    // m − c without cancellation
    let difference = if m > 0.0 { -v / (c + m) } else { m - c };
    0.5 * difference - (-c).exp().ln_1p()
}

/// Returns 1 − σ̃(m, v), to full relative accuracy; see [`log_sigma_tilde`].
pub fn one_minus_sigma_tilde(m: f64, v: f64) -> f64 {
    -log_sigma_tilde(m, v).exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(own: f64, expected: f64, tolerance: f64, what: &str) {
        let error = (own - expected).abs();
        assert!(error <= tolerance * expected.abs(), "{what}: {own:e} for {expected:e}");
    }

    #[test]
    fn values_agree_with_those_of_sixty_digits() {
        // c, θ(c), V(c), KL; the last from its Taylor series where it is tiny
        for (c, mean, variance, kl) in [
            (0.0, 0.25, 1.0 / 24.0, 0.0),
            (1e-8, 0.25, 1.0 / 24.0, 5.208_333_333_333_333e-35),
            (1e-3, 0.249_999_979_166_668_75, 0.041_666_658_333_334_5, 5.208_332_638_888_969e-15),
            (0.05, 0.249_947_929_684_206_87, 0.041_645_841_236_170_52, 3.254_123_572_614_312_7e-8),
            (0.5, 0.244_918_662_403_709_13, 0.039_659_800_808_458_56, 3.149_708_196_977_303e-4),
            (2.0, 0.190_398_538_988_941_2, 0.021_351_238_396_358_677, 0.052_983_752_505_144_74),
            (10.0, 0.049_995_460_213_129_755, 4.995_006_440_539_381e-4, 1.807_125_207_682_783_7),
            (50.0, 0.01, 4e-6, 11.806_852_819_440_055),
            (700.0, 7.142_857_142_857_143e-4, 1.457_725_947_521_866e-9, 174.306_852_819_440_05),
        ] {
            for c in [c, -c] {
                close(pg_mean(c), mean, 1e-15, &format!("θ({c})"));
                close(pg_variance(c), variance, 1e-14, &format!("V({c})"));
                close(pg_kl(c), kl, 4e-14, &format!("KL({c})"));
            }
        }
        assert_eq!(pg_mean(1e300), 5e-301);
        assert!(pg_variance(1e300) == 0.0 && log_cosh(1e300) == 1e300);
    }

    #[test]
    fn branches_agree_where_they_meet() {
        for (seam, f) in [
            (1e-2, pg_mean as fn(f64) -> f64),
            (SMALL, pg_variance),
            (SMALL, pg_kl),
            (1.0, log_cosh),
        ] {
            close(f(seam - 1e-16), f(seam + 1e-16), 1e-13, &format!("at {seam}"));
        }
    }

    #[test]
    fn the_continuation_to_negative_squares_is_analytic() {
        // θ, V and log cosh at r from those at r ± h, across 0, across the series' ends and far out
        for r in [0.0, -1e-4, -SMALL * SMALL, 1e-4, -2.0, -8.0] {
            let h = 1e-4;
            let slope = |f: fn(f64) -> f64| (f(r + h) - f(r - h)) / (2.0 * h);
            // d/dr log cosh(½√r) = ½θ, d/dr θ(√r) = −½V
            assert!((slope(log_cosh_of_square) - 0.5 * pg_mean_of_square(r)).abs() < 3e-8, "{r}");
            assert!(
                (slope(pg_mean_of_square) + 0.5 * pg_variance_of_square(r)).abs() < 3e-7,
                "{r}"
            );
        }
    }

    #[test]
    fn hyperbolic_cosines() {
        for x in [1e-9_f64, 1e-3, 0.3, 0.99, 1.01, 4.0, 20.0] {
            close(log_2cosh(x), (2.0 * x.cosh()).ln(), 1e-15, "log 2cosh");
            assert_eq!(log_cosh(x), log_cosh(-x));
        }
        for x in [1e-3_f64, 0.009, 0.011, 0.1] {
            // Σ Tₙ x²ⁿ / 2n
            let terms = TANH.iter().enumerate().map(|(k, t)| t / (2.0 * (k + 1) as f64));
            let series: f64 = terms.zip(1..).map(|(w, n)| w * x.powi(2 * n)).sum();
            close(log_cosh(x), series, 1e-14, "log cosh");
        }
        close(log_cosh(2.0), 2f64.cosh().ln(), 1e-15, "log cosh");
        assert_eq!(log_2cosh(-700.0), 700.0);
    }

    #[test]
    fn sigma_tilde_is_the_logistic_at_no_variance_and_below_it() {
        for m in [-50.0_f64, -3.0, -0.2, 0.0, 0.4, 7.0, 36.0, 50.0] {
            let logistic = -(-m).exp().ln_1p();
            close(log_sigma_tilde(m, 0.0), logistic, 1e-14, "log σ̃(m, 0)");
            close(one_minus_sigma_tilde(m, 0.0), 1.0 / (1.0 + m.exp()), 1e-13, "1 − σ̃(m, 0)");
            assert!(log_sigma_tilde(m, 1e-12).is_finite());
            for v in [0.3, 2.0] {
                let pair = log_sigma_tilde(m, v).exp() + log_sigma_tilde(-m, v).exp();
                let c = (m * m + v).sqrt();
                close(pair, (log_cosh(0.5 * m) - log_cosh(0.5 * c)).exp(), 1e-13, "the pair");
            }
        }
    }

    #[test]
    fn derivatives_of_sigma_tilde_by_differences() {
        let h = 1e-5;
        for (m, v) in [(0.3, 0.7), (-2.0, 4.0), (5.0, 0.1)] {
            let c = f64::sqrt(m * m + v);
            let by_m = (log_sigma_tilde(m + h, v) - log_sigma_tilde(m - h, v)) / (2.0 * h);
            let by_v = (log_sigma_tilde(m, v + h) - log_sigma_tilde(m, v - h)) / (2.0 * h);
            assert!((by_m - (0.5 - pg_mean(c) * m)).abs() < 1e-9);
            assert!((by_v + 0.5 * pg_mean(c)).abs() < 1e-9);
            let slope = (pg_mean(c + h) - pg_mean(c - h)) / (2.0 * h);
            assert!((slope + c * pg_variance(c)).abs() < 1e-10, "V = −θ′/c");
        }
    }
}

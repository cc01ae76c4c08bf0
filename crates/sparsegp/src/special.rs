//! Special functions that keep their digits in the tails.

use std::f64::consts::{FRAC_1_SQRT_2, LN_2, TAU};

/// log √2π.
pub const HALF_LOG_TAU: f64 = 0.918_938_533_204_672_8;

/// Returns 1/(1 + e⁻ˣ).
pub fn sigmoid(x: f64) -> f64 {
    if x >= 0.0 {
        1.0 / (1.0 + (-x).exp())
    } else {
        let e = x.exp();
        e / (1.0 + e)
    }
}

/// Returns log(1 + eˣ).
pub fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// Returns log(eᵃ + eᵇ).
pub fn log_add_exp(a: f64, b: f64) -> f64 {
    let top = a.max(b);
    if top == f64::NEG_INFINITY { top } else { top + (-(a - b).abs()).exp().ln_1p() }
}

/// Returns the density of the standard normal.
pub fn normal_density(x: f64) -> f64 {
    (-0.5 * x * x).exp() / TAU.sqrt()
}

/// Returns Φ(x).
pub fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * FRAC_1_SQRT_2)
}

/// From here on Mills' ratio is taken from its continued fraction, which keeps the digits of its
/// difference to 1/t.
pub const TAIL: f64 = 5.0;

/// Returns 1/R(t) − t for Mills' ratio R(t) = (1 − Φ(t))/φ(t) and t ≥ [`TAIL`], by Laplace's
/// continued fraction R = 1/(t + 1/(t + 2/(t + 3/(t + …)))) (Abramowitz & Stegun 26.2.14).
fn tail_excess(t: f64) -> f64 {
    let mut rest = t;
    for k in (2..=20).rev() {
        rest = t + f64::from(k) / rest;
    }
    1.0 / rest
}

/// Returns log R(t), Mills' ratio, for t ≥ −30 or so: log Φ(−t) = log R(t) − t²/2 − log √2π.
pub fn log_mills(t: f64) -> f64 {
    if t >= TAIL {
        -(t + tail_excess(t)).ln()
    } else {
        normal_cdf(-t).ln() + 0.5 * t * t + HALF_LOG_TAU
    }
}

/// Returns log Φ(z).
pub fn log_normal_cdf(z: f64) -> f64 {
    if z <= -TAIL {
        -0.5 * z * z - HALF_LOG_TAU + log_mills(-z)
    } else if z > 1.0 {
        (-normal_cdf(-z)).ln_1p()
    } else {
        normal_cdf(z).ln()
    }
}

/// Returns log Φ(z) with its first and second derivative ρ = φ/Φ and −ρ(ρ + z).
pub fn log_normal_cdf_slopes(z: f64) -> [f64; 3] {
    if z <= -TAIL {
        let excess = tail_excess(-z);
        let rho = excess - z;
        [-0.5 * z * z - HALF_LOG_TAU - rho.ln(), rho, -rho * excess]
    } else {
        let cdf = normal_cdf(z);
        let log = if z > 1.0 { (-normal_cdf(-z)).ln_1p() } else { cdf.ln() };
        let rho = normal_density(z) / cdf;
        [log, rho, -rho * (rho + z)]
    }
}

/// Returns φ(z)/Φ(z), the hazard of a standard normal at −z.
pub fn hazard(z: f64) -> f64 {
    log_normal_cdf_slopes(z)[1]
}

/// Returns log h(u) of h(u) = φ(u) + uΦ(u) = E[max(0, u + ε)], ε standard normal, with Φ/h and φ/h.
/// In the lower tail 1 − tR(t) of h = φ(t){1 − tR(t)}, t = −u, is what Mills' ratio R has less than
/// 1/t, and keeps its digits.
pub fn log_normal_excess(u: f64) -> [f64; 3] {
    if u <= -TAIL {
        let excess = tail_excess(-u);
        let rest = excess - u;
        [-0.5 * u * u - HALF_LOG_TAU + (excess / rest).ln(), 1.0 / excess, rest / excess]
    } else {
        let (density, cdf) = (normal_density(u), normal_cdf(u));
        let h = density + u * cdf;
        [h.ln(), cdf / h, density / h]
    }
}

/// Returns log(eˣ − 1), for x > 0: the inverse of [`softplus`].
pub fn inverse_softplus(x: f64) -> f64 {
    if x > LN_2 { x + (-(-x).exp()).ln_1p() } else { x.exp_m1().ln() }
}

/// Returns log(Φ(b) − Φ(a)) for a < b with φ(a) and φ(b), each over Φ(b) − Φ(a). The ends may be
/// infinite.
pub fn log_normal_interval(a: f64, b: f64) -> [f64; 3] {
    if a + b > 0.0 {
        // by symmetry in the lower tail, where differences keep their digits
        let [log, at_b, at_a] = log_normal_interval(-b, -a);
        return [log, at_a, at_b];
    }
    if a == f64::NEG_INFINITY {
        let [log, rho, _] = log_normal_cdf_slopes(b);
        return [log, 0.0, rho];
    }
    if b > -1.0 {
        let mass = normal_cdf(b) - normal_cdf(a);
        // without cancellation where it matters: a narrow interval
        let mass = if b - a < 1e-5 {
            let middle = 0.5 * (a + b);
            let square = (b - a) * (b - a);
            (b - a) * normal_density(middle) * (1.0 + (middle * middle - 1.0) * square / 24.0)
        } else {
            mass
        };
        return [mass.ln(), normal_density(a) / mass, normal_density(b) / mass];
    }
    // Φ(−t) − Φ(−s) = φ(t) R(t) (1 − e^{−δ}) with s = −a > t = −b
    let (s, t) = (-a, -b);
    let drop = 0.5 * (s - t) * (s + t);
    let (log_r, log_s) = (log_mills(t), log_mills(s));
    let delta = drop + log_r - log_s;
    let log_scale = log_r + (-(-delta).exp_m1()).ln();
    let at_b = (-log_scale).exp();
    [log_scale - 0.5 * t * t - HALF_LOG_TAU, at_b * (-drop).exp(), at_b]
}

/// Returns ψ′(x) for x > 0, NaN below: the recurrence up to 12, then the asymptotic series
/// (Abramowitz & Stegun 6.4.6, 6.4.12).
pub fn trigamma(mut x: f64) -> f64 {
    if x < 0.0 {
        return f64::NAN;
    }
    let mut sum = 0.0;
    while x < 12.0 {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    let r = 1.0 / (x * x);
    // Bernoulli numbers 1/6, −1/30, 1/42, −1/30, 5/66, −691/2730, 7/6
    let series = r
        * (1.0 / 6.0
            - r * (1.0 / 30.0
                - r * (1.0 / 42.0
                    - r * (1.0 / 30.0
                        - r * (5.0 / 66.0 - r * (691.0 / 2730.0 - r * (7.0 / 6.0)))))));
    sum + 1.0 / x + 0.5 * r + series / x
}

/// Shapes from which incomplete gamma functions are taken from their uniform expansion: series of terms are long there, and lose
/// the digits that ln Γ loses.
const LARGE_SHAPE: f64 = 2000.0;

/// Returns P(a, x) and Q(a, x), the regularised incomplete gamma functions: the distribution
/// function of a gamma variable of shape a > 0 at x ≥ 0, and what is left. For large shapes by
/// Temme's uniform expansion (1979; DLMF 8.12.3–8.12.8) with λ = x/a, μ = λ − 1, ½η² = μ − ln λ:
/// P = ½ erfc(−η√(a/2)) − R, R = e^{−½aη²}/√(2πa) Σ c_k(η) a⁻ᵏ.
pub fn incomplete_gamma(a: f64, x: f64) -> (f64, f64) {
    if x <= 0.0 || x.is_nan() {
        return if x.is_nan() { (x, x) } else { (0.0, 1.0) };
    }
    if a < LARGE_SHAPE {
        return (statrs::function::gamma::gamma_lr(a, x), statrs::function::gamma::gamma_ur(a, x));
    }
    let mu = (x - a) / a;
    // the difference would lose the digits of what is small
    let half_square = if mu.abs() < 0.01 {
        let series = [0.5, -1.0 / 3.0, 0.25, -0.2, 1.0 / 6.0, -1.0 / 7.0, 0.125];
        mu * mu * series.iter().rev().fold(0.0, |sum, c| c + mu * sum)
    } else {
        mu - mu.ln_1p()
    };
    let eta = (2.0 * half_square).sqrt().copysign(mu);
    let (c0, c1) = match eta.abs() > 0.03 {
        true => (
            1.0 / mu - 1.0 / eta,
            1.0 / eta.powi(3) - 1.0 / mu.powi(3) - 1.0 / (mu * mu) - 1.0 / (12.0 * mu),
        ),
        false => (
            -1.0 / 3.0
                + eta
                    * (1.0 / 12.0
                        + eta
                            * (-2.0 / 135.0
                                + eta
                                    * (1.0 / 864.0
                                        + eta * (1.0 / 2835.0 - eta * 139.0 / 777_600.0)))),
            -1.0 / 540.0 + eta * (-1.0 / 288.0 + eta * (1.0 / 378.0 - eta * 77.0 / 77_760.0)),
        ),
    };
    let c2 = 4.133_597_883_597_883e-3
        + eta * (-2.681_327_160_493_827e-3 + eta * 7.716_049_382_716_05e-4);
    let t = eta * (0.5 * a).sqrt();
    let rest = match t.abs() < 28.0 {
        true => (-t * t).exp() / (TAU * a).sqrt() * (c0 + (c1 + c2 / a) / a),
        false => 0.0,
    };
    ((0.5 * libm::erfc(-t) - rest).clamp(0.0, 1.0), (0.5 * libm::erfc(t) + rest).clamp(0.0, 1.0))
}

/// Returns log y!.
pub fn log_factorial(y: f64) -> f64 {
    statrs::function::gamma::ln_gamma(y + 1.0)
}

/// Returns eˣ E₁(x) = ∫₀^∞ e^{−u}/(x + u) du for x > 0: by its series below 1, else by the continued fraction (Abramowitz & Stegun
/// 1964, 5.1.11 and 5.1.22), to some 14 digits.
pub fn scaled_exponential_integral(x: f64) -> f64 {
    const EULER: f64 = 0.577_215_664_901_532_9;
    if x < 1.0 {
        let (mut term, mut sum) = (1.0, 0.0);
        for k in 1..=20 {
            term *= -x / f64::from(k);
            sum += term / f64::from(k);
        }
        return x.exp() * (-EULER - x.ln() - sum);
    }
    // from the far end: x + 1 − 1/(x + 3 − 4/(x + 5 − …))
    let mut tail = 0.0;
    for k in (1..=60).rev() {
        let k = f64::from(k);
        tail = k * k / (x + 2.0 * k + 1.0 - tail);
    }
    1.0 / (x + 1.0 - tail)
}

/// Returns whether a number is 0, 1, 2, ….
pub fn is_count(y: f64) -> bool {
    y >= 0.0 && y.is_finite() && y.fract() == 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Beside integrals of the density with 40 digits; and where the expansion takes over from series.
    #[test]
    fn incomplete_gamma_functions_keep_their_digits() {
        for (a, x, p, q) in [
            (2500.0, 2400.0, 0.021_659_687_865_363_33, 0.978_340_312_134_636_7),
            (2500.0, 2500.0, 0.502_659_621_107_654_9, 0.497_340_378_892_345_1),
            (2500.0, 2701.5, 0.999_958_083_921_818, 4.191_607_818_203_573e-5),
            (2100.0, 2350.0, 0.999_999_927_994_962, 7.200_503_794_963_448e-8),
            (2100.0, 2100.5, 0.507_253_925_746_476_9, 0.492_746_074_253_523_1),
            (123_456.7, 122_800.0, 0.030_646_437_924_224_73, 0.969_353_562_075_775_3),
            (123_456.7, 124_600.3, 0.999_414_180_622_563_5, 5.858_193_774_365_473e-4),
            (1.85e6, 1.8512e6, 0.811_195_923_530_373_2, 0.188_804_076_469_626_8),
            (1.85e6, 1.849e6, 0.231_138_672_240_634_4, 0.768_861_327_759_365_6),
            (3e9, 3.000_03e9, 0.708_060_252_405_257_9, 0.291_939_747_594_742_1),
        ] {
            let (own_p, own_q) = incomplete_gamma(a, x);
            assert!((own_p / p - 1.0).abs() < 1e-10, "{a} {x}: {own_p} {p}");
            assert!((own_q / q - 1.0).abs() < 1e-10, "{a} {x}: {own_q} {q}");
        }
        for x in [1850.0, 1990.0, 2000.0, 2030.0, 2170.0] {
            let (below, above) = (incomplete_gamma(2000.0 - 1e-9, x), incomplete_gamma(2000.0, x));
            assert!((below.0 - above.0).abs() < 1e-9 && (below.1 - above.1).abs() < 1e-9, "{x}");
        }
        assert_eq!(incomplete_gamma(4e5, 0.0), (0.0, 1.0));
        assert_eq!(incomplete_gamma(4e5, 1e9), (1.0, 0.0));
        assert_eq!(incomplete_gamma(4e5, 1e-300).0, 0.0);
    }

    fn close(a: f64, b: f64, tolerance: f64, what: &str) {
        assert!((a - b).abs() <= tolerance * b.abs().max(1e-300), "{what}: {a:e} for {b:e}");
    }

    #[test]
    fn tails_of_the_normal_keep_their_digits() {
        // log Φ from an arbitrary-precision program
        for (z, expected) in [
            (-40.0, -804.608_442_013_753_8),
            (-10.0, -53.231_285_150_512_47),
            (-4.0, -10.360_101_486_527_292),
            (-3.9, -9.942_304_391_691_356),
            (0.7, -0.277_023_942_277_131_3),
            (6.0, -9.865_876_455_243_757e-10),
        ] {
            close(log_normal_cdf(z), expected, 1e-13, &format!("log Φ({z})"));
        }
        // both branches where they meet
        let below = log_normal_cdf_slopes(-TAIL);
        let above = log_normal_cdf_slopes((-TAIL).next_up());
        for (b, a) in below.iter().zip(above) {
            close(*b, a, 1e-12, "at the seam");
        }
        // ρ(ρ + z) → 1 − 3/z² for z → −∞, ρ → |z| + 1/|z|
        let [value, rho, second] = log_normal_cdf_slopes(-700.0);
        close(value, -245_000.0 - HALF_LOG_TAU - 700f64.ln() - 1.0 / 490_000.0, 1e-14, "value");
        close(rho, 700.0 + 1.0 / 700.0 - 2.0 / 343e6, 1e-14, "ρ");
        close(second, -1.0 + 1.0 / 490_000.0, 1e-10, "second");
    }

    #[test]
    fn excesses_of_the_normal_keep_their_digits() {
        // from an arbitrary-precision program
        for (u, log, cdf, density) in [
            (3.0, 1.098_739_665_327_707_8, 0.332_840_968_451_795_2, 0.001_477_094_644_614_293_3),
            (0.0, -0.918_938_533_204_672_7, 1.253_314_137_315_500_1, 1.0),
            (-0.7, -1.945_754_523_491_328_5, 1.693_481_995_962_239_7, 2.185_437_397_173_567_7),
            (-4.9, -16.212_816_407_897_736, 5.267_910_100_563_28, 26.812_759_492_760_072),
            (-5.0, -16.744_301_162_660_99, 5.361_816_241_288_088, 27.809_081_206_440_443),
            (-6.5, -25.853_424_209_777_89, 6.788_803_524_407_327, 45.127_222_908_647_63),
            (-40.0, -808.298_568_356_62, 40.049_906_657_648_52, 1_602.996_266_305_940_7),
            (-1e4, -50_000_019.339_619_31, 10_000.000_199_999_994, 100_000_002.999_999_94),
            (-1e9, -5.000_000_000_000_000_4e17, 1e9, 1e18),
        ] {
            let found = log_normal_excess(u);
            close(found[0], log, 1e-13, &format!("log h({u})"));
            close(found[1], cdf, 1e-12, &format!("Φ/h at {u}"));
            close(found[2], density, 1e-12, &format!("φ/h at {u}"));
        }
        let (below, above) = (log_normal_excess(-TAIL), log_normal_excess((-TAIL).next_up()));
        for (b, a) in below.iter().zip(above) {
            close(*b, a, 1e-12, "at the seam");
        }
    }

    #[test]
    fn intervals_of_the_normal() {
        for (a, b) in [(-0.3, 1.2), (0.4, 0.9), (-6.0, -5.0), (5.0, 5.3), (-2.0, 7.0)] {
            let [log, at_a, at_b] = log_normal_interval(a, b);
            // Simpson's rule
            let n = 2000;
            let h = (b - a) / f64::from(n);
            let sum: f64 = (0..=n)
                .map(|i| {
                    let weight = match i {
                        0 => 1.0,
                        _ if i == n => 1.0,
                        _ if i % 2 == 1 => 4.0,
                        _ => 2.0,
                    };
                    weight * normal_density(a + f64::from(i) * h)
                })
                .sum();
            let mass = sum * h / 3.0;
            close(log, mass.ln(), 1e-10, "log");
            close(at_a, normal_density(a) / mass, 1e-9, "a");
            close(at_b, normal_density(b) / mass, 1e-9, "b");
        }
        let [log, at_a, at_b] = log_normal_interval(-2000.0, -1999.0);
        close(log, log_normal_cdf(-1999.0), 1e-14, "far");
        assert!(at_a == 0.0 && (at_b - 1999.0).abs() < 1e-3);
        let [narrow, ..] = log_normal_interval(0.3, 0.3 + 1e-9);
        close(narrow, (1e-9 * normal_density(0.3)).ln(), 1e-8, "narrow");
        assert_eq!(log_normal_interval(f64::NEG_INFINITY, f64::INFINITY)[0], 0.0);
    }

    #[test]
    fn trigamma_is_known_at_one_and_recurs() {
        let pi = std::f64::consts::PI;
        close(trigamma(1.0), pi * pi / 6.0, 1e-14, "1");
        close(trigamma(0.5), pi * pi / 2.0, 1e-14, "1/2");
        for x in [0.01, 3.7, 11.5, 80.0] {
            close(trigamma(x), trigamma(x + 1.0) + 1.0 / (x * x), 1e-13, "recurrence");
        }
    }
}

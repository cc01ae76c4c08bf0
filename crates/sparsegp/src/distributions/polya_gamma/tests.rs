use super::sampler::envelope_crossing;
use super::{PolyaGamma, series};
use crate::distributions::kolmogorov::{REJECT, draws, off_moments, one_sample, two_sample};
use std::f64::consts::{LN_2, PI};

const SHAPES: [f64; 7] = [0.1, 0.5, 1.0, 1.5, 2.5, 3.5, 8.0];
const TILTS: [f64; 4] = [0.0, 0.7, 4.0, 12.0];
const DRAWS: usize = 20_000;

fn law(shape: f64, tilt: f64) -> PolyaGamma {
    PolyaGamma::new(shape, tilt).unwrap()
}

/// What is wrong with draws that should be of a law.
fn complaint(mut x: Vec<f64>, law: &PolyaGamma) -> Option<String> {
    let off = off_moments(&x, law.mean(), law.variance());
    let statistic = one_sample(&mut x, |x| law.cdf(x));
    let bad = statistic > REJECT || !off.iter().all(|z| z.abs() < 4.0);
    bad.then(|| {
        format!("{law:?}: Kolmogorov–Smirnov {statistic:.2}, moments off by {off:.1?} s.e.")
    })
}

#[test]
fn draws_have_the_distribution_and_the_moments() {
    for shape in SHAPES {
        for tilt in TILTS {
            let law = law(shape, tilt);
            let x = draws(&law.sampler(), DRAWS, &format!("{shape}/{tilt}"));
            assert_eq!(complaint(x, &law), None);
        }
    }
}

#[test]
fn wrong_draws_are_found_out() {
    // twice the tilt; a rounded shape; the other convention of ω
    for (own, drawn, scale) in [
        ((1.0, 0.7), (1.0, 1.4), 1.0),
        ((2.5, 4.0), (2.5, 8.0), 1.0),
        ((2.5, 0.7), (2.0, 0.7), 1.0),
        ((2.5, 0.7), (3.0, 0.7), 1.0),
        ((0.1, 0.7), (0.1, 0.7), 0.5),
    ] {
        let wrong = draws(&law(drawn.0, drawn.1).sampler(), DRAWS, "wrong");
        let scaled = wrong.iter().map(|x| x * scale).collect();
        let complaint = complaint(scaled, &law(own.0, own.1));
        assert!(complaint.is_some(), "PG{drawn:?}·{scale} passed for PG{own:?}");
    }
}

#[test]
fn sums_add_their_shapes() {
    for (a, b, tilt) in [(1.3, 0.9, 0.0), (0.05, 0.2, 2.0), (1.0, 1.0, 1.0), (4.0, 3.7, 6.0)] {
        let (x, y) = (draws(&law(a, tilt), DRAWS, "a"), draws(&law(b, tilt), DRAWS, "b"));
        let mut sums: Vec<f64> = x.iter().zip(&y).map(|(x, y)| x + y).collect();
        let mut whole = draws(&law(a + b, tilt), DRAWS, "whole");
        let statistic = two_sample(&mut sums, &mut whole);
        assert!(statistic < REJECT, "{a} + {b}: {statistic}");
    }
}

/// log of Σ (−1)ⁿaₙ, Polson, Scott & Windle 2013, §2.2, for the J* variable x = 4ω without tilt.
fn log_series(b: f64, x: f64) -> f64 {
    let (mut sum, mut log_binomial) = (0.0, 0.0_f64);
    for n in 0..80 {
        let n = f64::from(n);
        if n > 0.0 {
            log_binomial += ((n - 1.0 + b) / n).ln();
        }
        let l = 2.0 * n + b;
        // over e^{−b²/2x}
        let term = (log_binomial + l.ln() - 2.0 * n * (n + b) / x).exp();
        sum += if n % 2.0 == 0.0 { term } else { -term };
    }
    b * LN_2 - 0.5 * (2.0 * PI * x.powi(3)).ln() - 0.5 * b * b / x + sum.ln()
}

#[test]
fn the_density_is_the_alternating_series_where_that_has_digits() {
    for b in [0.1, 0.5, 1.0, 2.3, 4.0, 11.0] {
        for c in [0.0, 0.7, 9.0] {
            for x in [0.02, 0.2, 1.0, 2.0] {
                let z = 0.5 * c;
                let expected = 2.0 * LN_2 + b * f64::cosh(z).ln() - 0.5 * z * z * x;
                let expected = expected + log_series(b, x);
                let own = law(b, c).log_density(0.25 * x);
                let error = (own - expected).abs();
                assert!(error < 1e-11 * expected.abs().max(1.0), "{b} {c} {x}: {own} {expected}");
            }
        }
    }
}

#[test]
fn both_tails_keep_their_digits() {
    // the first term of the dual series is all there is at large ω, that of the series at small ω
    for w in [5.0, 20.0, 200.0] {
        let own = law(1.0, 0.0).log_density(w);
        let expected = (2.0 * PI).ln() - 0.5 * PI * PI * w;
        assert!((own - expected).abs() < 1e-12 * expected.abs(), "{w}: {own} for {expected}");
        let own = law(1.0, 0.0).survival(w).ln();
        let expected = (4.0 / PI).ln() - 0.5 * PI * PI * w;
        if expected > -700.0 {
            assert!((own - expected).abs() < 1e-12 * expected.abs(), "{w}: {own} for {expected}");
        }
    }
    for (b, w) in [(0.3, 1e-5), (1.0, 1e-4), (6.5, 1e-3)] {
        let x = 4.0 * w;
        let expected = 2.0 * LN_2 + b * LN_2 + f64::ln(b)
            - 0.5 * (2.0 * PI).ln()
            - 1.5 * f64::ln(x)
            - 0.5 * b * b / x;
        let own = law(b, 0.0).log_density(w);
        assert!((own - expected).abs() < 1e-12 * expected.abs(), "{b} {w}: {own} for {expected}");
    }
    // far beyond, finite and not rising
    assert!(law(30.0, 0.0).log_density(500.0) < law(30.0, 0.0).log_density(499.0));
}

#[test]
fn series_and_contour_give_one_distribution_function() {
    for b in [0.1, 1.0, 2.5, 8.0] {
        for c in TILTS {
            let law = law(b, c);
            for part in [0.05, 0.3, 0.9, 1.0, 1.1, 2.0, 4.0] {
                let x = part * law.mean();
                let contour = law.with_tilted(|tilted| tilted.cdf(0.5 * x));
                if let Some(series) = series::cdf(b, c, x) {
                    assert!((contour - series).abs() < 3e-12 * series, "{b} {c} {part}");
                }
                assert!((law.cdf(x) + law.survival(x) - 1.0).abs() < 1e-12, "{b} {c} {part}");
                let h = 1e-5 * x;
                // of the smaller tail, which has the digits
                let slope = if part < 1.0 {
                    law.cdf(x + h) - law.cdf(x - h)
                } else {
                    law.survival(x - h) - law.survival(x + h)
                } / (2.0 * h);
                let density = law.log_density(x).exp();
                assert!(
                    (slope - density).abs() < 1e-5 * density,
                    "{b} {c} {part}: {slope} {density}"
                );
            }
        }
    }
}

#[test]
fn the_envelopes_are_above_the_density() {
    for b in [0.01, 0.2, 0.51, 0.8, 0.99, 1.0, 1.001, 1.3, 2.0, 2.7, 3.5, 4.0] {
        let law = law(b, 0.0);
        for k in 1..=120 {
            let x = 0.05 * 1.06f64.powi(k);
            let log = law.log_density(0.25 * x) - 2.0 * LN_2;
            let left = b * LN_2 + b.ln() - 0.5 * (2.0 * PI * x.powi(3)).ln() - 0.5 * b * b / x;
            assert!(log <= left + 1e-11, "a₀ at {b}, {x}");
            let right =
                b * (0.5 * PI).ln() - libm::lgamma(b) + (b - 1.0) * x.ln() - PI * PI / 8.0 * x;
            let margin = if b < 1.0 { 1.07f64.ln() } else { 0.0 };
            if b >= 1.0 || x >= 1.0 {
                assert!(log <= right + margin + 1e-11, "gamma at {b}, {x}");
            }
        }
    }
    assert!((envelope_crossing(1.0) - 2.0 / PI).abs() < 1e-12);
    assert_eq!(envelope_crossing(0.4), 1.0);
}

#[test]
fn limits() {
    // a point mass
    let none = law(0.0, 3.0);
    assert_eq!((none.mean(), none.variance(), none.kl_to_untilted()), (0.0, 0.0, 0.0));
    assert_eq!((none.cdf(0.0), none.cdf(-1e-9), none.survival(0.0)), (1.0, 0.0, 0.0));
    assert!(draws(&none, 10, "none").iter().all(|x| *x == 0.0));
    assert_eq!(none.log_density(0.1), f64::NEG_INFINITY);
    // large tilts: the law is nearly IG with relative spread √(1/b·2/c)
    for (b, c) in [(1.0, 700.0), (2.5, 1e5), (0.1, 700.0), (8.0, 1e9)] {
        let law = law(b, c);
        let x = draws(&law.sampler(), 4000, "large");
        let off = off_moments(&x, law.mean(), law.variance());
        assert!(off[0].abs() < 4.0 && off[1].abs() < 4.0, "{b} {c}: {off:?}");
        assert!(law.log_density(law.mean()).is_finite());
    }
    // tiny shapes: nearly always next to nothing, and never NaN
    for b in [1e-3, 1e-8, 1e-60, 1e-99, 1e-150, 1e-320] {
        for c in [0.0, 2.0, 700.0, 1e200] {
            let x = draws(&law(b, c).sampler(), 300, "tiny");
            assert!(x.iter().all(|x| *x >= 0.0 && *x < 10.0), "{b} {c}");
        }
    }
    let tiny = law(1e-3, 0.5);
    let x = draws(&tiny.sampler(), 400_000, "1e-3");
    let off = off_moments(&x, tiny.mean(), tiny.variance());
    assert!(off[0].abs() < 4.0 && off[1].abs() < 4.0, "{off:?}");
    // large shapes
    let large = law(170.3, 2.0);
    assert_eq!(complaint(draws(&large.sampler(), 2000, "large"), &large), None);
    assert_eq!(law(2.0, -3.0), law(2.0, 3.0));
    assert_eq!(law(2.0, 1.0).log_density(0.0), f64::NEG_INFINITY);
}

#[test]
fn single_draws_have_the_same_law_as_those_of_a_prepared_sampler() {
    for shape in SHAPES {
        for tilt in [0.0, 0.7, 1.5, 2.6, 4.0, 12.0] {
            let law = law(shape, tilt);
            let x = draws(&law, DRAWS, &format!("single {shape}/{tilt}"));
            assert_eq!(complaint(x, &law), None);
        }
    }
}

#[test]
fn invalid_numbers_are_named() {
    for (b, c) in [(-1.0, 0.0), (f64::NAN, 0.0), (f64::INFINITY, 1.0), (1.0, f64::NAN)] {
        let message = PolyaGamma::new(b, c).unwrap_err().to_string();
        assert!(message.contains(&format!("b = {b}")), "{message}");
    }
}

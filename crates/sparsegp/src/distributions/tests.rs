use super::kolmogorov::{REJECT, draws, integrated, off_moments, one_sample};
use super::*;
use crate::special::{log_normal_cdf, normal_cdf};
use rand_distr::Distribution;
use statrs::function::gamma::{gamma_lr, ln_gamma};

const DRAWS: usize = 20_000;

/// F of IG(1/m, λ) in closed form.
fn inverse_gaussian_cdf(m: f64, shape: f64, x: f64) -> f64 {
    let root = (shape / x).sqrt();
    normal_cdf(root * (x * m - 1.0))
        + (2.0 * shape * m + log_normal_cdf(-root * (x * m + 1.0))).exp()
}

#[test]
fn inverse_gaussians() {
    for (mean, shape) in [(0.7, 1.9), (12.0, 0.3), (1e-3, 5.0), (1e6, 0.4), (f64::INFINITY, 2.3)] {
        let law = InverseGaussian::new(mean, shape).unwrap();
        let mut x = draws(&law, DRAWS, "wald");
        if mean < 10.0 {
            let off = off_moments(&x, mean, mean.powi(3) / shape);
            assert!(off[0].abs() < 4.0 && off[1].abs() < 4.0, "{mean} {shape}: {off:?}");
        }
        let statistic = one_sample(&mut x, |x| inverse_gaussian_cdf(1.0 / mean, shape, x));
        assert!(statistic < REJECT, "{mean} {shape}: {statistic}");
        let wrong = one_sample(&mut x, |x| inverse_gaussian_cdf(1.0 / mean, 1.2 * shape, x));
        assert!(wrong > REJECT, "{mean} {shape}: {wrong}");
    }
    assert!(InverseGaussian::new(0.0, 1.0).unwrap_err().to_string().contains("not 0 and 1"));
    assert!(InverseGaussian::new(1.0, f64::INFINITY).is_err());
}

#[test]
fn truncated_inverse_gaussians() {
    // below, about and above the mean; narrow and wide laws: every way to propose
    for (mean, shape, upper) in [
        (1.0, 2.0, 0.3),
        (1.0, 2.0, 1.0),
        (1.0, 2.0, 4.0),
        (1.0, 400.0, 0.8),
        (1.0, 400.0, 0.98),
        (1.0, 400.0, 1.2),
        (3.0, 0.01, 2.0),
        (3.0, 0.01, 500.0),
        (f64::INFINITY, 1.7, 0.64),
        (f64::INFINITY, 0.02, 5.0),
        (1.6, 1.0, 0.64),
        (0.9, 16.0, 4.0),
    ] {
        let law = TruncatedInverseGaussian::new(mean, shape, upper).unwrap();
        let mut x = draws(&law, DRAWS, "truncated");
        assert!(x.iter().all(|x| *x > 0.0 && *x < upper));
        let mass = inverse_gaussian_cdf(1.0 / mean, shape, upper);
        let cdf = |x| inverse_gaussian_cdf(1.0 / mean, shape, x) / mass;
        let statistic = one_sample(&mut x, cdf);
        assert!(statistic < REJECT, "{mean} {shape} {upper}: {statistic}");
    }
    assert!(TruncatedInverseGaussian::new(1.0, 1.0, 0.0).is_err());
}

#[test]
fn generalised_inverse_gaussians() {
    for (p, a, b) in [
        (1.5, 2.0, 0.7),
        (-1.5, 2.0, 0.7),
        (-1.5, 1e-9, 3.0),
        (0.0, 0.3, 0.2),
        (0.0, 1e-3, 1e-3),
        (0.3, 5.0, 1e-6),
        (-0.5, 3.0, 2.0),
        (12.0, 3.0, 40.0),
        (-40.0, 100.0, 1.0),
        (2.5, 1e4, 1e4),
    ] {
        let law = GeneralisedInverseGaussian::new(p, a, b).unwrap();
        let mut x = draws(&law, DRAWS, "gig");
        let log = |x: f64| (p - 1.0) * x.ln() - 0.5 * (a * x + b / x);
        let cdf = integrated(log, x[0].min(b / 1500.0).max(1e-14), (1500.0 / a).max(1e-3));
        let statistic = one_sample(&mut x, cdf);
        assert!(statistic < REJECT, "{p} {a} {b}: {statistic}");
    }
    // the ends of the family
    for (p, a, b) in [(1.7, 0.8, 0.0), (0.2, 3.0, 0.0)] {
        let mut x = draws(&GeneralisedInverseGaussian::new(p, a, b).unwrap(), DRAWS, "gamma");
        assert!(one_sample(&mut x, |x| gamma_lr(p, 0.5 * a * x)) < REJECT, "{p} {a} {b}");
        let mut x = draws(&GeneralisedInverseGaussian::new(-p, b, a).unwrap(), DRAWS, "inverse");
        assert!(one_sample(&mut x, |x| 1.0 - gamma_lr(p, 0.5 * a / x)) < REJECT, "{p} {b} {a}");
    }
    // p = −½ is inverse Gaussian
    let mut x = draws(&GeneralisedInverseGaussian::new(-0.5, 3.0, 2.0).unwrap(), DRAWS, "half");
    let cdf = |x| inverse_gaussian_cdf(1.5f64.sqrt(), 2.0, x);
    assert!(one_sample(&mut x, cdf) < REJECT);
    for (p, a, b) in [(0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 1.0), (-1.0, 1.0, 0.0)] {
        let message = GeneralisedInverseGaussian::new(p, a, b).unwrap_err().to_string();
        assert!(message.contains(&format!("not p = {p}")), "{message}");
    }
}

#[test]
fn truncated_gammas() {
    for (shape, rate, lower) in [
        (0.3, 1.2, 1.0),
        (0.3, 1.2, 0.01),
        (0.01, 2.0, 1e-4),
        (0.9, 5.0, 3.0),
        (1.0, 1.5, 0.64),
        (1.01, 1.5, 4.0),
        (2.5, 1.3, 2.2),
        (2.5, 1.3, 0.4),
        (4.0, 1.3, 30.0),
        (50.0, 2.0, 40.0),
        (3.0, 0.5, 0.0),
    ] {
        let law = TruncatedGamma::new(shape, rate, lower).unwrap();
        let mut x = draws(&law, DRAWS, "gamma");
        assert!(x.iter().all(|x| *x >= lower));
        let log = |gap: f64| {
            let x = lower + gap;
            (shape - 1.0) * (x / lower.max(1e-3)).ln() - rate * gap
        };
        // by the distance from the bound, where the density is smooth in its logarithm
        let cdf = integrated(log, 1e-9 * (lower + 1.0 / rate), (60.0 + 10.0 * shape) / rate);
        let statistic = one_sample(&mut x, |x| cdf((x - lower).max(1e-300)));
        assert!(statistic < REJECT, "{shape} {rate} {lower}: {statistic}");
    }
    assert!(TruncatedGamma::new(1.0, 1.0, -1.0).unwrap_err().to_string().contains("-1"));
    assert!(TruncatedGamma::new(0.0, 1.0, 1.0).is_err());
}

#[test]
fn negative_binomials() {
    for (shape, probability) in [(2.5, 0.4), (0.3, 0.9), (17.0, 0.05)] {
        let law = NegativeBinomial::new(shape, probability).unwrap();
        let mut rng = crate::rng::stream(4, "counts");
        let counts: Vec<u64> =
            (0..DRAWS).map(|_| rand_distr::Distribution::sample(&law, &mut rng)).collect();
        let x: Vec<f64> = counts.iter().map(|k| *k as f64).collect();
        let odds = probability / (1.0 - probability);
        let off = off_moments(&x, shape * odds, shape * odds * (1.0 + odds));
        assert!(off[0].abs() < 4.0 && off[1].abs() < 4.0, "{shape} {probability}: {off:?}");
        for k in 0..6_u64 {
            let real = k as f64;
            let log = ln_gamma(shape + real) - ln_gamma(real + 1.0) - ln_gamma(shape)
                + real * probability.ln()
                + shape * (-probability).ln_1p();
            let p = log.exp();
            let share = counts.iter().filter(|c| **c == k).count() as f64 / DRAWS as f64;
            let error = (p * (1.0 - p) / DRAWS as f64).sqrt();
            assert!((share - p).abs() < 4.0 * error, "{shape} {probability} {k}: {share} {p}");
        }
    }
    let none = NegativeBinomial::new(3.0, 0.0).unwrap();
    assert_eq!(rand_distr::Distribution::sample(&none, &mut crate::rng::stream(1, "")), 0);
    for (shape, probability) in [(0.0, 0.5), (1.0, 1.0), (1.0, -0.1), (f64::NAN, 0.5)] {
        assert!(NegativeBinomial::new(shape, probability).is_err());
    }
    assert!(NegativeBinomial::new(1e300, 0.5).unwrap_err().to_string().contains("too large"));
}

/// Numbers at the ends of what floating point holds, with some between.
const WILD: [f64; 9] = [5e-324, 1e-300, 1e-160, 1e-20, 1.0, 1e20, 1e160, 1e300, f64::MAX];

/// A draw or a probability ends, whatever the parameters: in the range, or NaN.
#[test]
fn wild_parameters_end() {
    let mut rng = crate::rng::stream(1, "wild");
    let in_range = |what: &str, draw: f64| {
        assert!(draw.is_nan() || draw >= 0.0, "{what}: {draw}");
        draw
    };
    for a in WILD {
        for b in WILD {
            if let Ok(law) = PolyaGamma::new(a, b) {
                let what = format!("PG({a:e}, {b:e})");
                in_range(&what, law.sample(&mut rng));
                in_range(&what, law.sampler().sample(&mut rng));
            }
            let law = InverseGaussian::new(a, b).unwrap();
            in_range("IG", law.sample(&mut rng));
            for c in WILD {
                let law = TruncatedInverseGaussian::new(a, b, c).unwrap();
                in_range(&format!("IG({a:e}, {b:e}) below {c:e}"), law.sample(&mut rng));
                if let Ok(law) = TruncatedGamma::new(a, b, c) {
                    in_range(&format!("Ga({a:e}, {b:e}) above {c:e}"), law.sample(&mut rng));
                }
                for p in [a, -a] {
                    let law = GeneralisedInverseGaussian::new(p, b, c).unwrap();
                    in_range(&format!("GIG({p:e}, {b:e}, {c:e})"), law.sample(&mut rng));
                }
            }
        }
    }
    // what is far from any end is drawn, by whichever way
    let far = TruncatedInverseGaussian::new(f64::INFINITY, 1e12, 1e-12).unwrap();
    assert!((0..100).all(|_| far.sample(&mut rng) <= 1e-12));
    let many = PolyaGamma::new(1e9, 2.0).unwrap();
    let x = draws(&many.sampler(), 2000, "many");
    let off = off_moments(&x, many.mean(), many.variance());
    assert!(off.iter().all(|z| z.abs() < 4.0), "{off:?}");
}

#[test]
fn densities_of_mixing_variables_end_at_wild_arguments() {
    let mixings: Vec<Box<dyn Mixing>> = vec![
        Box::new(mixing::SechPower::new(1.0, 1.0).unwrap()),
        Box::new(mixing::SechPower::new(1e4, 1e-6).unwrap()),
        Box::new(mixing::StudentT::new(3.0, 1.0).unwrap()),
        Box::new(mixing::Matern32::new(1.0).unwrap()),
        Box::new(mixing::PseudoHuber::new(1.0, 1.0).unwrap()),
        Box::new(mixing::Laplace::new(1.0).unwrap()),
    ];
    for mixing in &mixings {
        for c in WILD.into_iter().chain([0.0]) {
            let Ok(law) = Tilted::new(&**mixing, c) else { continue };
            for x in WILD {
                let (density, slope) = (law.log_density(x), law.log_density_slope(x));
                assert!(density.is_nan() || density < 1e3, "log π({x:e} ∣ {c:e}) = {density}");
                let tails = [law.cdf(x), law.survival(x)];
                assert!(tails.iter().all(|p| p.is_nan() || *p <= 1.0 + 1e-9), "{tails:?}, {slope}");
            }
        }
    }
    // far in the lower tail of PG(1, 0)/2, log π ≈ −1/16x
    let law = mixing::SechPower::new(1.0, 1.0).unwrap();
    let density = Tilted::new(&law, 0.0).unwrap().log_density(1e-120);
    assert!((density * 16e-120 + 1.0).abs() < 1e-6, "{density}");
}

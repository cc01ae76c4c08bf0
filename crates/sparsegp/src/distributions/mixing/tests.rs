use super::*;
use crate::distributions::kolmogorov::{REJECT, draws, one_sample, two_sample};
use crate::distributions::{Euler, PolyaGamma, Tilted};
use statrs::function::gamma::ln_gamma;

/// The catalogue, away from unit parameters, with names.
fn catalogue() -> Vec<(&'static str, Box<dyn Mixing>)> {
    vec![
        ("student-t", Box::new(StudentT::new(3.0, 0.7).unwrap())),
        ("laplace", Box::new(Laplace::new(0.8).unwrap())),
        ("svm", Box::new(Laplace::new(1.0).unwrap())),
        ("matern32", Box::new(Matern32::new(0.9).unwrap())),
        ("pseudo-huber", Box::new(PseudoHuber::new(1.3, 0.8).unwrap())),
        ("logistic", Box::new(SechPower::new(1.0, 1.0).unwrap())),
        ("counts", Box::new(SechPower::new(4.5, 1.0).unwrap())),
        ("part", Box::new(SechPower::new(0.3, 1.0).unwrap())),
        ("logistic-noise", Box::new(SechPower::new(2.0, 0.6).unwrap())),
    ]
}

/// A mixing known only by its two forms of log φ.
struct Bare<'a>(&'a dyn Mixing);

impl Mixing for Bare<'_> {
    fn log_phi(&self, r: f64) -> f64 {
        self.0.log_phi(r)
    }
    fn log_phi_complex(&self, s: Complex64) -> Complex64 {
        self.0.log_phi_complex(s)
    }
}

#[test]
fn closed_forms_of_the_moments_are_derivatives_of_log_phi() {
    for (name, mixing) in catalogue() {
        let bare = Bare(&*mixing);
        for r in [1e-12, 1e-5, 0.03, 0.7, 2.0, 30.0, 5e4] {
            let (own, step) = (mixing.mean(r), bare.mean(r));
            assert!((own - step).abs() < 1e-9 * own, "{name} mean({r}): {own} {step}");
            let (own, step) = (mixing.variance(r), bare.variance(r));
            // the difference of nearly equal means
            let tolerance = 1e-7 * own + 1e-10 * mixing.mean(r) / r;
            assert!((own - step).abs() < tolerance, "{name} variance({r}): {own} {step}");
        }
        // below 0, where it continues
        let r = 0.6 * mixing.r_min();
        if r < 0.0 {
            let h = 1e-5 * -r;
            let slope = (mixing.log_phi(r + h) - mixing.log_phi(r - h)) / (2.0 * h);
            assert!((slope + mixing.mean(r)).abs() < 1e-8 * mixing.mean(r), "{name}");
            let slope = (mixing.mean(r + h) - mixing.mean(r - h)) / (2.0 * h);
            assert!((slope + mixing.variance(r)).abs() < 1e-8 * mixing.variance(r), "{name}");
        }
    }
}

#[test]
fn closed_forms_of_the_log_density_are_the_inverse_transform() {
    let mut closed = 0;
    for (name, mixing) in catalogue() {
        let scale = mixing.mean(0.3);
        for share in [0.07, 0.6, 1.0, 4.0, 30.0] {
            let omega = share * scale;
            let Some([log, slope]) = mixing.log_density(omega) else { continue };
            closed += 1;
            let tilted = Tilted::new(&*mixing, 0.0).unwrap();
            let (by_contour, its) = (tilted.log_density(omega), tilted.log_density_slope(omega));
            let size = 1.0 + log.abs();
            assert!((log - by_contour).abs() < 1e-9 * size, "{name} {omega}: {log} {by_contour}");
            let size = slope.abs() + 1.0 / omega;
            assert!((slope - its).abs() < 1e-8 * size, "{name} {omega}: {slope} {its}");
        }
    }
    // all shares of six laws, and of other powers those at which series keep their digits
    assert!(closed >= 36, "{closed}");
}

#[test]
fn log_phi_keeps_its_digits_near_zero_and_far_out() {
    for (name, mixing) in catalogue() {
        assert_eq!(mixing.log_phi(0.0), 0.0, "{name}");
        let mean = mixing.mean(0.0);
        for r in [1e-30, 1e-20, 1e-14] {
            let own = mixing.log_phi(r);
            if mean.is_finite() {
                // φ is not analytic at 0 for Matérn: the next term is of order √r
                let tolerance = if name == "matern32" { 2.0 * r.sqrt() } else { 10.0 * r };
                let error = (own + mean * r).abs();
                assert!(error <= (tolerance + 1e-15) * mean * r, "{name} {r}: {own}");
            } else {
                assert!((own + 2.0 * r * mixing.mean(r)).abs() < 1e-15 * -own, "{name}");
            }
        }
        for r in [1e6, 1e12] {
            assert!(mixing.log_phi(r).is_finite() && mixing.mean(r) > 0.0);
            let complex = mixing.log_phi_complex(Complex64::new(r, 0.0));
            assert!((complex.re / mixing.log_phi(r) - 1.0).abs() < 1e-13, "{name}");
        }
    }
    // u²/2 − u³/3 + u⁴/4 − … on both sides of the seam of log(1 + u) − u
    for u in [0.003_f64, 0.1, 0.499, 0.501, 0.7] {
        let own = -Matern32::new(3f64.sqrt()).unwrap().log_phi(u * u);
        let sign = |k| if k % 2 == 0 { 1.0 } else { -1.0 };
        let series: f64 = (2..160).map(|k| sign(k) * u.powi(k) / f64::from(k)).sum();
        assert!((own - series).abs() < 1e-14 * series, "{u}: {own} {series}");
    }
}

#[test]
fn admission_accepts_the_catalogue_also_by_only_its_logarithms() {
    for (name, mixing) in catalogue() {
        check(&*mixing).unwrap_or_else(|e| panic!("{name}: {e}"));
        check(&Bare(&*mixing)).unwrap_or_else(|e| panic!("{name}, bare: {e}"));
    }
    for scale in [1e-9, 1e9] {
        check(&StudentT::new(4.0, scale).unwrap()).unwrap();
    }
}

/// A function by its real and complex logarithm.
struct Given(fn(f64) -> f64, fn(Complex64) -> Complex64);

impl Mixing for Given {
    fn log_phi(&self, r: f64) -> f64 {
        (self.0)(r)
    }
    fn log_phi_complex(&self, s: Complex64) -> Complex64 {
        (self.1)(s)
    }
}

/// A right φ with a wrong mean.
struct WrongMean(f64);

impl Mixing for WrongMean {
    fn log_phi(&self, r: f64) -> f64 {
        -r.sqrt()
    }
    fn log_phi_complex(&self, s: Complex64) -> Complex64 {
        -s.sqrt()
    }
    fn mean(&self, r: f64) -> f64 {
        self.0 / r.sqrt()
    }
}

#[test]
fn admission_names_the_condition_that_fails() {
    let refusals: Vec<(&str, Given)> = vec![
        ("φ(0) must be 1", Given(|r| 0.1 - r.sqrt(), |s| 0.1 - s.sqrt())),
        ("must fall from 1 to 0", Given(|r| -0.5 * r / (1.0 + r), |s| -0.5 * s / (1.0 + s))),
        ("real and the complex form", Given(|r| -r.sqrt(), |s| -2.0 * s.sqrt())),
        // e^{−r²}: the mean grows
        ("not increase", Given(|r| -r * r, |s| -s * s)),
        // log-convex and falling to 0, but the density is e^{−1.25x} sin 0.97x
        ("semidefinite", Given(|r| -(r + 0.4 * r * r).ln_1p(), |s| -(1.0 + s + 0.4 * s * s).ln())),
    ];
    for (what, given) in refusals {
        let message = check(&given).unwrap_err().to_string();
        assert!(message.contains(what), "{what}: {message}");
    }
    assert!(check(&WrongMean(0.5)).is_ok());
    let message = check(&WrongMean(0.25)).unwrap_err().to_string();
    assert!(message.contains("mean must be"), "{message}");
}

#[test]
fn closed_form_draws_and_draws_by_inversion_have_one_law() {
    for (name, mixing) in catalogue() {
        for c in [0.0, 2.0, 9.0] {
            let tilted = Tilted::new(&*mixing, c).unwrap();
            let n = 4000;
            let mut rng = crate::rng::stream(8, name);
            let mut generic: Vec<f64> =
                (0..n).map(|_| tilted.sample_by_inversion(&mut rng)).collect();
            let mut closed = draws(&tilted, 4 * n, name);
            let statistic = two_sample(&mut generic, &mut closed);
            assert!(statistic < REJECT, "{name} at {c}: {statistic}");
            let mut fresh = draws(&tilted, n, "fresh");
            let statistic = one_sample(&mut fresh, |x| tilted.cdf(x));
            assert!(statistic < REJECT, "{name} at {c}, contour: {statistic}");
            // ω twice as large, the other convention
            let mut wrong: Vec<f64> = fresh.iter().map(|x| 2.0 * x).collect();
            assert!(two_sample(&mut generic, &mut wrong) > REJECT, "{name} at {c}");
        }
    }
    // a mixing without a sampler is drawn by inversion
    let (pg, law) = (SechPower::new(1.5, 1.0).unwrap(), PolyaGamma::new(1.5, 0.7).unwrap());
    let bare = Bare(&pg);
    let mut x = draws(&Tilted::new(&bare, 0.7).unwrap(), 4000, "bare");
    assert!(one_sample(&mut x, |x| law.cdf(2.0 * x)) < REJECT);
}

#[test]
fn euler_contour_and_quantiles_agree() {
    for (name, mixing) in catalogue() {
        for c in [0.0, 0.4, 2.0] {
            let tilted = Tilted::new(&*mixing, c).unwrap();
            for u in [1e-6, 0.02, 0.5, 0.9, 0.999] {
                let x = tilted.quantile(u).unwrap();
                assert!((tilted.cdf(x) - u).abs() < 1e-13 + 1e-10 * u, "{name} {c} {u}");
                assert!((tilted.cdf(x) + tilted.survival(x) - 1.0).abs() < 1e-12);
                let at = tilted.euler(x, &Euler::REFERENCE);
                // e^{−30} by aliasing, a few e⁵·2⁻⁵³ by rounding, and the truncation
                let allowed = 1e-12 + 5.0 * at.truncation;
                assert!(at.truncation < 1e-9, "{name} {c} {u}: {:e}", at.truncation);
                assert!((at.cdf - u).abs() < allowed, "{name} {c} {u}: {:e}", at.cdf - u);
                assert!((at.cdf + at.survival - 1.0).abs() < allowed, "{name} {c} {u}");
                let density = tilted.log_density(x).exp();
                let off = (at.density - density).abs();
                assert!(off < 1e-9 * density.max(1.0 / x), "{name} {c} {u}: {off:e}");
                // slopes by differences
                let h = 1e-4 * x;
                let up = tilted.log_density(x + h);
                let slope = (up - tilted.log_density(x - h)) / (2.0 * h);
                let own = tilted.log_density_slope(x);
                assert!((slope - own).abs() < 1e-5 * own.abs().max(1.0 / x), "{name} {c} {u}");
            }
        }
    }
}

#[test]
fn densities_agree_with_closed_forms_into_both_tails() {
    let check = |name: &str, mixing: &dyn Mixing, c: f64, x: f64, expected: f64| {
        let own = Tilted::new(mixing, c).unwrap().log_density(x);
        let error = (own - expected).abs();
        assert!(error < 1e-11 * expected.abs().max(1.0), "{name} {c} {x}: {own} {expected}");
    };
    for c in [0.0, 0.4, 2.0_f64] {
        for x in [1e-3, 0.05, 0.6, 4.0, 60.0_f64] {
            // Ga(½(ν + 1), νσ² + c²), IG and GIG
            let (nu, sigma) = (3.0, 0.7);
            let (a, rate) = (0.5 * (nu + 1.0), nu * sigma * sigma + c * c);
            let gamma = a * rate.ln() - ln_gamma(a) + (a - 1.0) * x.ln() - rate * x;
            check("student-t", &StudentT::new(nu, sigma).unwrap(), c, x, gamma);
            let beta = 0.8;
            let shape = 0.5 / (beta * beta);
            let m = 2.0 * beta * c;
            let log_root = 0.5 * (shape / (2.0 * std::f64::consts::PI * x.powi(3))).ln();
            let wald = log_root - shape * (x * m - 1.0).powi(2) / (2.0 * x);
            check("laplace", &Laplace::new(beta).unwrap(), c, x, wald);
            let rho = 0.9;
            let b = 0.75 / (rho * rho);
            let u = 3f64.sqrt() * c / rho;
            let inverse = 1.5 * b.ln() - ln_gamma(1.5) - 2.5 * x.ln() - b / x;
            let tilt = -c * c * x - (u.ln_1p() - u);
            // far out the contour sums to x^{−5/2} of terms of order 1/x
            if x < 10.0 || c > 0.0 {
                check("matern32", &Matern32::new(rho).unwrap(), c, x, inverse + tilt);
            }
            let (delta, s) = (1.3, 0.8);
            let a = delta * delta / (s * s);
            let huber = PseudoHuber::new(delta, s).unwrap();
            let (mean, shape) = (huber.mean(c * c), a * a / (2.0 * delta * delta));
            let log_root = 0.5 * (shape / (2.0 * std::f64::consts::PI * x.powi(3))).ln();
            let wald = log_root - shape * (x / mean - 1.0).powi(2) / (2.0 * x);
            check("pseudo-huber", &huber, c, x, wald);
        }
    }
}

#[test]
fn bad_numbers_are_errors() {
    let laplace = Laplace::new(0.8).unwrap();
    assert!(Tilted::new(&laplace, -1.0).is_err());
    assert!(Tilted::new(&laplace, f64::NAN).is_err());
    let tilted = Tilted::new(&laplace, 1.0).unwrap();
    for u in [0.0, 1.0, -0.5, f64::NAN] {
        assert!(tilted.quantile(u).is_err());
    }
    assert_eq!((tilted.cdf(0.0), tilted.survival(-1.0)), (0.0, 1.0));
    assert_eq!(tilted.log_density(0.0), f64::NEG_INFINITY);
    assert_eq!(tilted.euler(-1.0, &Euler::SAMPLING).cdf, 0.0);
    assert!(StudentT::new(-1.0, 1.0).is_err() && StudentT::new(1.0, -1.0).is_err());
    assert!(Matern32::new(0.0).unwrap_err().to_string().contains("ρ"));
    assert!(SechPower::new(f64::INFINITY, 1.0).is_err());
    let nothing = Given(|_| f64::NAN, |_| Complex64::new(f64::NAN, 0.0));
    assert!(Tilted::new(&nothing, 1.0).is_err());
}

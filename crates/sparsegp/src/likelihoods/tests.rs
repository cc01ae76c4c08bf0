//! What holds for every likelihood of one latent value, far from unit parameters.

use super::binomial::Binomial;
use super::links::Probability;
use super::single::{Many, Scalar, TOGETHER};
use super::student_t::{SCALE, StudentT};
use super::*;
use crate::params::{Param, Shape, Transform};
use crate::rng;
use crate::special::{normal_density, sigmoid};

/// Where y lies, for sums and integrals.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Counts,
    Real,
    Positive,
    Unit,
}
use Kind::*;

pub(super) struct Case {
    spec: &'static str,
    pub(super) likelihood: Box<dyn Likelihood>,
    kind: Kind,
    pub(super) extra: f64,
    targets: Vec<Target>,
    concave: bool,
}

fn case(spec: &'static str, kind: Kind, extra: f64, targets: &[f64], concave: bool) -> Case {
    let likelihood = parse(spec).unwrap();
    let targets: Vec<Target> = targets.iter().map(|y| Target { y: *y, extra }).collect();
    for target in &targets {
        assert_eq!(likelihood.check(*target), Ok(()), "{spec} {target:?}");
    }
    Case { spec, likelihood, kind, extra, targets, concave }
}

/// Every registered likelihood of one latent value with every link.
pub(super) fn zoo() -> Vec<Case> {
    let edges = "ordinal(bin_edges=[-1.6, 0.9, 1.4, 2.9], sigma=0.78)";
    vec![
        case("gaussian(variance=0.31)", Real, 0.17, &[-1.3, 0.4], true),
        case("student-t(df=4.6, scale=0.3)", Real, 0.0, &[-2.3, 0.3, 1.7], false),
        case("student-t(df=2.7, scale=1.9)", Real, 0.0, &[-2.3, 30.3], false),
        case("laplace(scale=0.6)", Real, 0.0, &[-2.2, 0.3, 9.1], true),
        case("matern32(scale=0.7)", Real, 0.0, &[-2.2, 0.3, 9.1], true),
        case("logistic(scale=0.4)", Real, 0.0, &[-2.2, 0.3, 9.1], true),
        case("pseudo-huber(delta=0.9, scale=0.6)", Real, 0.0, &[-2.2, 0.3, 9.1], true),
        case("svm", Counts, 1.0, &[0.0, 1.0], true),
        case("log-normal(variance=0.4)", Positive, 0.0, &[0.2, 3.1], true),
        case("bernoulli", Counts, 1.0, &[0.0, 1.0], true),
        case("bernoulli(link=probit, floor=0.02)", Counts, 1.0, &[0.0, 1.0], false),
        case("bernoulli(link=logit)", Counts, 1.0, &[0.0, 1.0], true),
        case("binomial", Counts, 7.0, &[0.0, 3.0, 7.0], true),
        case("binomial(link=probit)", Counts, 7.0, &[0.0, 3.0, 7.0], true),
        case("poisson", Counts, 2.3, &[0.0, 3.0, 40.0], true),
        case("poisson-logistic(rate=3.1)", Counts, 2.3, &[0.0, 3.0, 40.0], false),
        case("poisson(link=softplus)", Counts, 2.3, &[0.0, 3.0, 40.0], true),
        case("negative-binomial(dispersion=0.7)", Counts, 2.3, &[0.0, 3.0, 40.0], true),
        case("negative-binomial(dispersion=0.003)", Counts, 2.3, &[0.0, 1.0, 30.0], true),
        case("zero-inflated-poisson(zero=0.27)", Counts, 2.3, &[0.0, 3.0, 40.0], false),
        case("gamma(shape=2.7)", Positive, 0.0, &[0.02, 3.1, 40.0], true),
        case("gamma(shape=0.7, link=softplus, unit=1.7)", Positive, 0.0, &[0.02, 3.1, 40.0], false),
        case("exponential", Positive, 0.0, &[0.02, 3.1, 40.0], true),
        case("exponential(link=softplus)", Positive, 0.0, &[0.02, 3.1, 40.0], false),
        case("beta(scale=5.3)", Unit, 0.0, &[0.02, 0.6, 0.97], false),
        case("beta(link=probit, scale=13.9)", Unit, 0.0, &[0.02, 0.6, 0.97], false),
        case("beta(link=probit, scale=6.9, floor=0.1)", Unit, 0.0, &[0.1, 0.6], false),
        case(edges, Counts, 0.0, &[0.0, 1.0, 2.0, 4.0], true),
        case("ordinal(classes=2, first_edge=0.4, sigma=1.7)", Counts, 0.0, &[0.0, 1.0], true),
    ]
}

/// Without K, which is 1 here.
impl Case {
    fn log_prob(&self, target: Target, f: f64) -> f64 {
        self.likelihood.log_prob(target, &[f])
    }

    /// log p(y | f), normalised where the likelihood itself is not.
    fn log_density(&self, target: Target, f: f64) -> f64 {
        match self.likelihood.normalised() {
            true => self.log_prob(target, f),
            false => self.likelihood.predict_log_density(target, &[f], &[0.0]),
        }
    }

    fn expect(&self, target: Target, mean: f64, variance: f64) -> (f64, f64, f64, Vec<f64>) {
        let (mut by_mean, mut by_variance) = ([f64::NAN], [f64::NAN]);
        let mut params = vec![f64::NAN; self.likelihood.units().len()];
        let out = Slopes { mean: &mut by_mean, variance: &mut by_variance, params: &mut params };
        let value = self.likelihood.expect(target, &[mean], &[variance], out);
        (value, by_mean[0], by_variance[0], params)
    }

    /// The same likelihood with a further entry.
    fn with(&self, key: &str, value: &str) -> Option<Case> {
        let mut json = self.likelihood.to_json();
        json[key] = value.parse::<u64>().map_or(value.into(), Value::from);
        let likelihood = build(&json).ok()?;
        Some(Case { likelihood, targets: self.targets.clone(), ..*self })
    }

    /// Points y with weights: Σ w g(y) = ∫ g dy, for g of densities.
    fn grid(&self, up_to: Option<f64>, n: i32) -> Vec<(f64, f64)> {
        if self.kind == Counts {
            let most = self.likelihood.classes().map_or(1500, |c| c - 1);
            let most =
                if self.likelihood.name() == "binomial" { self.extra as usize } else { most };
            return (0..=most).map(|y| (y as f64, 1.0)).collect();
        }
        // a substitution by which the integral runs over all numbers, with its slope
        type Substitution = fn(f64) -> (f64, f64);
        let (reach, at): (f64, Substitution) = match self.kind {
            Real => (24.0, |t| (t.sinh(), t.cosh())),
            Positive => (45.0, |t| (t.exp(), t.exp())),
            _ => (34.0, |t| (sigmoid(t), sigmoid(t) * sigmoid(-t))),
        };
        let end = match (up_to, self.kind) {
            (None, _) => reach,
            (Some(y), Real) => y.asinh(),
            (Some(y), Positive) => y.ln(),
            (Some(y), _) => (y / (1.0 - y)).ln(),
        };
        // Simpson
        let h = (end + reach) / f64::from(n);
        (0..=n)
            .map(|j| {
                let (y, slope) = at(-reach + h * f64::from(j));
                let weight = match j {
                    _ if j == 0 || j == n => 1.0,
                    _ if j % 2 == 1 => 4.0,
                    _ => 2.0,
                };
                (y, weight * slope * h / 3.0)
            })
            .collect()
    }

    fn target(&self, y: f64) -> Target {
        Target { y, extra: self.extra }
    }
}

/// E[g(f)], f ~ N(mean, variance), by brute force.
fn brute(mean: f64, variance: f64, g: impl Fn(f64) -> f64) -> f64 {
    let h = 0.005;
    let s = variance.sqrt();
    (-2800..=2800)
        .map(|j| {
            let x = h * f64::from(j);
            h * normal_density(x) * g(mean + s * x)
        })
        .sum()
}

fn close(own: f64, expected: f64, tolerance: f64, what: &str) {
    let allowed = tolerance * expected.abs().max(1.0);
    assert!((own - expected).abs() <= allowed, "{what}: {own:e} for {expected:e}");
}

#[test]
fn every_registered_likelihood_is_in_the_zoo() {
    let names: Vec<&str> = zoo().iter().map(|c| c.likelihood.name()).collect();
    for entry in REGISTRY.iter().filter(|e| e.latents == "1") {
        assert!(names.contains(&entry.name), "{} is missing", entry.name);
    }
}

#[test]
fn densities_sum_to_one_and_have_the_moments() {
    for c in zoo() {
        let grid = c.grid(None, 8000);
        for f in [-1.1, 0.3, 1.4] {
            let (mut sum, mut first, mut second) = (0.0, 0.0, 0.0);
            let (mean, variance) = c.likelihood.predict(c.extra, &[f], &[0.0]);
            for (y, w) in &grid {
                let p = w * c.log_density(c.target(*y), f).exp();
                if p > 0.0 {
                    sum += p;
                    first += p * y;
                    second += p * (y - mean) * (y - mean);
                }
            }
            // the kink of Laplace costs digits
            let tolerance = if c.spec.contains("laplace") { 3e-5 } else { 1e-7 };
            close(sum, 1.0, tolerance, c.spec);
            close(first, mean, 10.0 * tolerance, &format!("{} mean", c.spec));
            // a Student-t with df 2.7 has hardly a variance
            let tolerance = if c.spec.contains("df=2.7") { 1e-3 } else { 10.0 * tolerance };
            close(second, variance, tolerance, &format!("{} variance", c.spec));
        }
    }
}

#[test]
fn slopes_without_variance_are_derivatives_of_the_log_probability() {
    for c in zoo() {
        for target in &c.targets {
            for f in [-2.3, -0.4, 0.35, 1.9] {
                let (value, first, second, _) = c.expect(*target, f, 0.0);
                close(value, c.log_prob(*target, f), 1e-14, c.spec);
                let g = |d: f64| c.log_prob(*target, f + d);
                let h = 1e-3;
                // differences of fourth order
                let slope = (8.0 * (g(h) - g(-h)) - (g(2.0 * h) - g(-2.0 * h))) / (12.0 * h);
                let bend = (16.0 * (g(h) + g(-h)) - g(2.0 * h) - g(-2.0 * h) - 30.0 * g(0.0))
                    / (12.0 * h * h);
                close(first, slope, 1e-8, &format!("{} {target:?} {f} first", c.spec));
                let mut own = [f64::NAN];
                let value = c.likelihood.log_prob_slope(*target, &[f], &mut own);
                close(value, c.log_prob(*target, f), 1e-14, c.spec);
                close(own[0], first, 1e-12, &format!("{} {target:?} {f} slope", c.spec));
                close(2.0 * second, bend, 1e-6, &format!("{} {target:?} {f} second", c.spec));
            }
        }
    }
}

/// Many at a time and one by one, far into both tails.
#[test]
fn values_at_many_are_those_at_each() {
    fn check<S: Scalar>(model: &S, targets: &[Target]) {
        let all: Vec<f64> = (-3000..=3000).map(|j| 0.0137 * f64::from(j)).collect();
        for target in targets {
            for f in all.chunks(TOGETHER) {
                let mut many = Many::ZERO;
                model.at_all(*target, f, &mut many);
                for (j, f) in f.iter().enumerate() {
                    let [value, first, second] = model.at(*target, *f);
                    let what = format!("{model:?} {target:?} {f}");
                    // φ(z) has the relative rounding error of z²/2
                    let tolerance = 1e-14 * (1.0 + f * f);
                    for (own, one) in
                        [(many.value[j], value), (many.first[j], first), (many.second[j], second)]
                    {
                        // successes and failures may cancel
                        let both =
                            if target.y > 0.0 && target.y < target.extra { 7.0 } else { 0.0 };
                        let allowed = tolerance * (one.abs() + both) + 1e-300;
                        assert!((own - one).abs() <= allowed, "{what}: {own:e} for {one:e}");
                    }
                }
            }
        }
    }
    let targets = |ys: &[f64], extra: f64| -> Vec<Target> {
        ys.iter().map(|y| Target { y: *y, extra }).collect()
    };
    for link in [
        Probability::Logit,
        Probability::Probit { floor: 0.0 },
        Probability::Probit { floor: 0.02 },
    ] {
        check(&Binomial { link, bernoulli: true }, &targets(&[0.0, 1.0], 1.0));
        check(&Binomial { link, bernoulli: false }, &targets(&[0.0, 3.0, 7.0], 7.0));
    }
    let student = StudentT {
        df: Param::with(vec![3.3], Shape::Scalar, Transform::Softplus { lower: 2.0 }),
        scale: Param::with(vec![0.4], Shape::Scalar, SCALE),
    };
    check(&student, &targets(&[-2.3, 0.3, 30.1], 0.0));
}

#[test]
fn expectations_agree_with_brute_force() {
    for c in zoo() {
        let fine = c.with("rule", "trapezoid");
        for target in &c.targets {
            for (mean, variance) in [(0.3, 0.04), (-0.7, 0.6), (1.1, 2.5)] {
                let expected = brute(mean, variance, |f| c.log_prob(*target, f));
                let what = format!("{} {target:?} {mean} {variance}", c.spec);
                // the kink of Laplace is for brute force, not for the closed form
                close(c.expect(*target, mean, variance).0, expected, 1e-3, &what);
                if let Some(fine) = &fine {
                    let (value, first, by_variance, _) = fine.expect(*target, mean, variance);
                    // brute force does not know of kinks
                    let kink = c.likelihood.name() == "matern32";
                    close(value, expected, if kink { 1e-7 } else { 1e-10 }, &what);
                    // and so are its slopes, in both forms
                    let price = fine.with("slope", "price").unwrap();
                    let (_, same, other, _) = price.expect(*target, mean, variance);
                    close(first, same, 1e-15, &what);
                    close(by_variance, other, 1e-8, &format!("{what} by variance"));
                } else {
                    close(c.expect(*target, mean, variance).0, expected, 1e-4, &what);
                }
            }
        }
    }
}

#[test]
fn slopes_agree_with_differences() {
    for c in zoo() {
        let variants = [None, c.with("rule", "33"), c.with("rule", "trapezoid")];
        for c in std::iter::once(&c).chain(variants.iter().flatten()) {
            for target in &c.targets {
                for (mean, variance) in [(0.3, 0.04), (-0.7, 1.3)] {
                    let what = format!("{} {target:?} {mean} {variance}", c.spec);
                    let (_, by_mean, by_variance, by_params) = c.expect(*target, mean, variance);
                    let difference = |g: &dyn Fn(f64) -> f64, h: f64| {
                        (8.0 * (g(h) - g(-h)) - (g(2.0 * h) - g(-2.0 * h))) / (12.0 * h)
                    };
                    let slope = difference(&|d| c.expect(*target, mean + d, variance).0, 1e-3);
                    close(by_mean, slope, 1e-7, &format!("{what} mean"));
                    let h = 1e-3 * variance;
                    let slope = difference(&|d| c.expect(*target, mean, variance + d).0, h);
                    close(by_variance, slope, 1e-6, &format!("{what} variance"));
                    for (at, by_param) in by_params.iter().enumerate() {
                        let moved = |d: f64| {
                            let mut case = c.with("slope", "rule").unwrap_or_else(|| Case {
                                likelihood: c.likelihood.clone(),
                                targets: Vec::new(),
                                ..*c
                            });
                            let mut rest = at;
                            for (path, param) in case.likelihood.params_mut() {
                                if rest < param.len() {
                                    let mut values = param.value().to_vec();
                                    values[rest] += d;
                                    param.set(&path, &values).unwrap();
                                    break;
                                }
                                rest -= param.len();
                            }
                            case.expect(*target, mean, variance).0
                        };
                        let slope = difference(&moved, 2e-4);
                        close(*by_param, slope, 1e-6, &format!("{what} parameter {at}"));
                    }
                }
            }
        }
    }
}

#[test]
fn predictions_agree_with_brute_force() {
    for c in zoo() {
        for (mean, variance) in [(0.3, 0.04), (-0.7, 0.6), (0.4, 1.9)] {
            let what = format!("{} {mean} {variance}", c.spec);
            let (own, spread) = c.likelihood.predict(c.extra, &[mean], &[variance]);
            let at = |f: f64| c.likelihood.predict(c.extra, &[f], &[0.0]);
            let expected = brute(mean, variance, |f| at(f).0);
            let kink = c.likelihood.name() == "svm";
            close(own, expected, if kink { 1e-5 } else { 1e-9 }, &format!("{what} mean"));
            let total = brute(mean, variance, |f| at(f).1 + (at(f).0 - expected).powi(2));
            close(spread, total, if kink { 1e-5 } else { 1e-8 }, &format!("{what} variance"));
            for target in &c.targets {
                let own = c.likelihood.predict_log_density(*target, &[mean], &[variance]);
                let expected = brute(mean, variance, |f| c.log_density(*target, f).exp()).ln();
                // kinks are for brute force
                let kink = ["laplace", "svm"].contains(&c.likelihood.name());
                let tolerance = if kink { 1e-4 } else { 1e-9 };
                close(own, expected, tolerance, &format!("{what} {target:?} density"));
            }
        }
    }
}

#[test]
fn surprising_targets_have_a_density_too() {
    // the integrand lies beyond nine deviations of f
    let c = case("poisson", Counts, 1.0, &[400.0], true);
    let (mean, variance) = (-2.0, 0.04);
    let own = c.likelihood.predict_log_density(c.targets[0], &[mean], &[variance]);
    let g = |x: f64| c.log_prob(c.targets[0], mean + 0.2 * x) - 0.5 * x * x;
    let top = g(30.0);
    let sum: f64 = (0..200_000).map(|j| (g(1e-3 * f64::from(j)) - top).exp() * 1e-3).sum();
    close(own, top + sum.ln() - 0.5 * std::f64::consts::TAU.ln(), 1e-11, "surprise");
}

/// By the mixture against the integral over f, into the tails, and against numbers of mpmath's quadrature with 30 digits, up
/// to nearly normal noise.
#[test]
fn distribution_functions_of_students_t() {
    let model = |df: f64, scale: f64| StudentT {
        df: Param::with(vec![df], Shape::Scalar, Transform::Softplus { lower: 2.0 }),
        scale: Param::with(vec![scale], Shape::Scalar, SCALE),
    };
    let mean = 0.31;
    for (df, scale, variance, y, expected) in [
        (1300.0, 1.3, 2.1, 0.1, 0.457_059_292_459_530_6),
        (2.05, 0.4, 1.7, -31.0, 6.818_058_237_055_755e-5),
        (4.6, 0.02, 31.0, -31.0, 9.362_983_407_569_594e-9),
        (37.0, 0.7, 0.4, 3.9, 0.999_869_932_885_602_1),
    ] {
        let own = model(df, scale).closed_cdf(0.0, y, mean, variance).unwrap();
        let allowed = 2e-15 * expected + 1e-18;
        assert!((own - expected).abs() <= allowed, "{df} {y}: {own:e} for {expected:e}");
    }
    for (df, scale, variance) in
        [(2.05, 0.4, 0.0), (2.05, 0.4, 1.7), (4.6, 1.9, 0.003), (4.6, 0.4, 31.0), (37.0, 0.7, 0.4)]
    {
        let model = model(df, scale);
        for y in [-400.0, -31.0, -2.3, 0.1, 0.31, 0.7, 3.9, 77.0] {
            let own = model.closed_cdf(0.0, y, mean, variance).unwrap();
            let at = |f: f64| model.cdf(0.0, y, f);
            let expected = if variance == 0.0 { at(mean) } else { brute(mean, variance, at) };
            let allowed = 1e-13 * expected + 1e-17;
            let what = format!("{df} {scale} {variance} {y}: {own:e} for {expected:e}");
            assert!((own - expected).abs() <= allowed, "{what}");
        }
    }
}

#[test]
fn quantiles_invert_the_distribution() {
    for c in zoo() {
        for (mean, variance) in [(0.3, 0.0), (0.5, 0.3)] {
            for level in [0.03, 0.5, 0.91] {
                let what = format!("{} {mean} {variance} {level}", c.spec);
                let y = c.likelihood.quantile(c.extra, &[mean], &[variance], level);
                let density = |y: f64| {
                    c.likelihood.predict_log_density(c.target(y), &[mean], &[variance]).exp()
                };
                if c.kind == Counts {
                    let below: f64 = (0..y as usize).map(|k| density(k as f64)).sum();
                    let tolerance = 1e-9;
                    assert!(below < level + tolerance, "{what}: {y} {below}");
                    assert!(below + density(y) > level - tolerance, "{what}: {y} {below}");
                } else {
                    // a coarser grid where densities are smooth and are integrals
                    let grid = c.grid(Some(y), if variance > 0.0 { 800 } else { 8000 });
                    let sum: f64 = grid.iter().map(|(y, w)| w * density(*y)).sum();
                    // the kink lies between two points of the grid
                    let kink = c.spec.contains("laplace") && variance == 0.0;
                    close(sum, level, if kink { 1e-5 } else { 1e-6 }, &what);
                }
            }
        }
    }
}

#[test]
fn draws_follow_the_density() {
    let draws = 20_000;
    for (index, c) in zoo().iter().enumerate() {
        let mut rng = rng::stream(index as u64, "likelihood draws");
        let f = 0.37;
        let sample: Vec<f64> =
            (0..draws).map(|_| c.likelihood.sample(c.extra, &[f], &mut rng)).collect();
        for y in &sample {
            assert_eq!(c.likelihood.check(c.target(*y)), Ok(()), "{} {y}", c.spec);
        }
        let check = |share: f64, p: f64, what: &str| {
            let deviation = (p * (1.0 - p) / f64::from(draws)).sqrt();
            assert!((share - p).abs() < 4.5 * deviation + 1e-12, "{} {what}: {share} {p}", c.spec);
        };
        let share = |holds: &dyn Fn(f64) -> bool| {
            sample.iter().filter(|y| holds(**y)).count() as f64 / f64::from(draws)
        };
        if c.kind == Counts {
            for y in 0..12 {
                let y = f64::from(y);
                if c.likelihood.check(c.target(y)).is_ok() {
                    let p = c.log_density(c.target(y), f).exp();
                    check(share(&|s| s == y), p, &format!("y = {y}"));
                }
            }
        } else {
            for level in [0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98] {
                let at = c.likelihood.quantile(c.extra, &[f], &[0.0], level);
                check(share(&|s| s <= at), level, &format!("level {level}"));
            }
        }
    }
}

#[test]
fn extreme_latent_values_give_finite_numbers() {
    let extremes = [
        (-700.0, 0.0),
        (-700.0, 0.3),
        (-40.0, 1e-13),
        (-40.0, 4.0),
        (-40.0, 0.0),
        (0.0, 1e-300),
        (40.0, 0.0),
        (40.0, 1e-13),
        (40.0, 4.0),
        (700.0, 0.3),
        (700.0, 0.0),
    ];
    for c in zoo() {
        let price = c.with("slope", "price");
        let trapezoid = c.with("rule", "trapezoid");
        // of no target
        for (mean, variance) in extremes {
            let level = c.likelihood.quantile(c.extra, &[mean], &[variance], 0.4);
            assert!(!level.is_nan(), "{} {mean} {variance} quantile", c.spec);
        }
        for target in &c.targets {
            for (mean, variance) in extremes {
                let what = format!("{} {target:?} {mean} {variance}", c.spec);
                for case in [Some(&c), price.as_ref(), trapezoid.as_ref()].into_iter().flatten() {
                    let (value, by_mean, by_variance, params) =
                        case.expect(*target, mean, variance);
                    assert!(value.is_finite(), "{what}: {value}");
                    assert!(by_mean.is_finite(), "{what} mean: {by_mean}");
                    assert!(by_variance.is_finite(), "{what} variance: {by_variance}");
                    assert!(params.iter().all(|p| p.is_finite()), "{what}: {params:?}");
                }
                let density = c.likelihood.predict_log_density(*target, &[mean], &[variance]);
                assert!(density.is_finite(), "{what} density: {density}");
            }
        }
    }
}

#[test]
fn log_concave_likelihoods_fall_with_the_variance() {
    for c in zoo().iter().filter(|c| c.concave) {
        let c = c.with("slope", "price").unwrap_or_else(|| Case {
            likelihood: c.likelihood.clone(),
            targets: c.targets.clone(),
            ..*c
        });
        for target in &c.targets {
            for mean in [-300.0, -40.0, -3.0, 0.0, 0.8, 5.0, 40.0, 300.0] {
                for variance in [0.0, 0.01, 1.0, 9.0] {
                    let (_, _, by_variance, _) = c.expect(*target, mean, variance);
                    assert!(by_variance <= 0.0, "{} {target:?} {mean} {variance}", c.spec);
                }
            }
        }
    }
}

#[test]
fn asymptotes() {
    let value = |spec: &str, y: f64, extra: f64, f: f64| {
        let case = Case {
            spec: "asymptote",
            likelihood: parse(spec).unwrap(),
            kind: Real,
            extra,
            targets: Vec::new(),
            concave: false,
        };
        let (value, first, half_second, _) = case.expect(Target { y, extra }, f, 0.0);
        [value, first, 2.0 * half_second]
    };
    let same = |own: [f64; 3], expected: [f64; 3], what: &str| {
        for (a, b) in own.iter().zip(expected) {
            assert!((a - b).abs() <= 1e-12 * b.abs(), "{what}: {own:?} {expected:?}");
        }
    };
    let small = (-40.0_f64).exp();
    let logit = "bernoulli(link=logit)";
    same(value(logit, 1.0, 0.0, -40.0), [-40.0, 1.0, -small], "logit");
    same(value(logit, 1.0, 0.0, 40.0), [-small, small, -small], "logit");
    same(value("binomial", 3.0, 3.0, 40.0), [-3.0 * small, 3.0 * small, -3.0 * small], "binomial");
    // log Φ(−40) from arbitrary precision; ρ = 40 + 1/(40 + 2/(40 + 3/(40 + 4/40…)))
    let excess = 1.0 / (40.0 + 2.0 / (40.0 + 3.0 / (40.0 + 4.0 / (40.0 + 5.0 / 40.0))));
    let tail = [-804.608_442_013_753_8, 40.0 + excess, -(40.0 + excess) * excess];
    same(value("bernoulli", 1.0, 0.0, -40.0), tail, "probit");
    let tail = [tail[0], -tail[1], tail[2]];
    same(value("bernoulli", 0.0, 0.0, 40.0), tail, "probit");
    let floor = [0.02_f64.ln(), 0.0, 0.0];
    same(value("bernoulli(floor=0.02)", 1.0, 0.0, -40.0), floor, "floor");
    // softplus → eᶠ and f; its rate 2·10⁻¹⁷ is below the rounding of −80
    let poisson = "poisson(link=softplus)";
    same(
        value(poisson, 2.0, 1.0, -40.0)[..2]
            .try_into()
            .map(|[a, b]: [f64; 2]| [a, b, 0.0])
            .unwrap(),
        [-80.0 - 2_f64.ln(), 2.0, 0.0],
        "softplus",
    );
    same(
        value(poisson, 2.0, 1.0, 40.0),
        [2.0 * 40_f64.ln() - 40.0 - 2_f64.ln(), 2.0 / 40.0 - 1.0, -2.0 / 1600.0],
        "softplus",
    );
    let big = 40_f64.exp();
    same(
        value("poisson", 2.0, 0.5, 40.0),
        [80.0 + 2.0 * 0.5_f64.ln() - 2_f64.ln() - 0.5 * big, 2.0 - 0.5 * big, -0.5 * big],
        "exp",
    );
    // for μ → ∞: α = ½, y = 3: Γ(5)/Γ(2)/3! (1/αμ)²
    let far = value("negative-binomial(dispersion=0.5)", 3.0, 1.0, 40.0);
    same(far, [4_f64.ln() - 2.0 * (40.0 + 0.5_f64.ln()), -2.0, -10.0 * small], "binomial");
    same(value("zero-inflated-poisson(zero=0.2)", 0.0, 1.0, 40.0), [0.2_f64.ln(), 0.0, 0.0], "zip");
    let rate = 3.0 * big;
    same(
        value("gamma(shape=2.5)", 3.0, 0.0, -40.0)[1..]
            .try_into()
            .map(|[a, b]: [f64; 2]| [0.0, a, b])
            .unwrap(),
        [0.0, rate - 2.5, -rate],
        "gamma",
    );
    // a Student-t far away: −(ν+1)/d and (ν+1)/d²
    let [_, first, second] = value("student-t(df=3, scale=0.0001)", 0.0, 0.0, 700.0);
    same([0.0, first, second], [0.0, -4.0 / 700.0, 4.0 / 490_000.0], "t");
    // beta for m → 0: a → 0, so p → a (1 − y)^{s − 1}/y with ∂ log a = 1
    let s: f64 = 5.0;
    same(
        value("beta(scale=5)", 0.3, 0.0, -40.0)[..2]
            .try_into()
            .map(|[a, b]: [f64; 2]| [a, b, 0.0])
            .unwrap(),
        [s.ln() - 40.0 + 4.0 * 0.7_f64.ln() - 0.3_f64.ln(), 1.0, 0.0],
        "beta",
    );
    // the middle interval far away is as good as its nearer end
    let [log, first, second] = value("ordinal(bin_edges=[-1, 1], sigma=1)", 1.0, 0.0, 41.0);
    same([log, first, 0.0], [tail[0], tail[1], 0.0], "ordinal");
    close(second, tail[2], 1e-10, "ordinal");
}

#[test]
fn student_t_by_the_trapezoid_where_gauss_hermite_fails() {
    let c = case("student-t(df=4, scale=0.3)", Real, 0.0, &[0.4], false);
    let coarse = c.with("rule", "20").unwrap();
    let fine = |g: &dyn Fn(f64) -> f64| brute(-0.2, 1.5, g);
    let expected = fine(&|f| c.log_prob(c.targets[0], f));
    let bend = fine(&|f| c.expect(c.targets[0], f, 0.0).2);
    let (value, _, by_variance, _) = c.expect(c.targets[0], -0.2, 1.5);
    close(value, expected, 1e-12, "value");
    close(by_variance, bend, 1e-10, "slope");
    assert!((coarse.expect(c.targets[0], -0.2, 1.5).0 - expected).abs() > 1e-3);
}

#[test]
fn specifications_come_back() {
    for c in zoo() {
        for entry in [("slope", "price"), ("rule", "50"), ("rule", "trapezoid")] {
            let case = c.with(entry.0, entry.1);
            let mut likelihood = case.map_or_else(|| c.likelihood.clone(), |case| case.likelihood);
            for (index, (path, param)) in likelihood.params_mut().into_iter().enumerate() {
                let moved: Vec<f64> = param.value().iter().map(|v| v * 0.83).collect();
                param.set(&path, &moved).unwrap();
                param.frozen = index == 0;
            }
            let json = likelihood.to_json();
            let back = build(&json).unwrap();
            assert_eq!(back.to_json(), json);
            let values = |l: &dyn Likelihood| {
                l.params().iter().map(|(p, v)| (p.clone(), v.value().to_vec())).collect::<Vec<_>>()
            };
            assert_eq!(values(&*back), values(&*likelihood));
            assert_eq!(parse(&json.to_string()).unwrap().to_json(), json);
            assert_eq!(
                likelihood.units().len(),
                values(&*likelihood).iter().map(|v| v.1.len()).sum::<usize>()
            );
        }
        let json = c.likelihood.to_json();
        assert!(json.get("rule").is_none() && json.get("slope").is_none(), "{json}");
    }
}

#[test]
fn impossible_targets_are_refused() {
    for (spec, y, extra, expected) in [
        ("poisson", -1.0, 1.0, "is not a count (0, 1, 2, …)"),
        ("poisson", 1.5, 1.0, "is not a count (0, 1, 2, …)"),
        ("poisson", 1.0, 0.0, "has the exposure 0, which must be positive and finite"),
        ("negative-binomial", f64::NAN, 1.0, "is not a count (0, 1, 2, …)"),
        ("zip", f64::INFINITY, 1.0, "is not a count (0, 1, 2, …)"),
        ("bernoulli", 2.0, 0.0, "is not a class (0 or 1)"),
        ("binomial", 4.0, 3.0, "is not a count from 0 to its trials, 3"),
        ("binomial", 4.0, 4.5, "has the trials 4.5, which must be a positive whole number"),
        ("gamma", 0.0, 0.0, "is not a positive finite number"),
        ("exponential", f64::INFINITY, 0.0, "is not a positive finite number"),
        ("log-normal", -2.0, 0.0, "is not a positive finite number"),
        ("beta", 1.0, 0.0, "is not strictly between 0 and 1"),
        ("beta", 0.0, 0.0, "is not strictly between 0 and 1"),
        ("ordinal(classes=3)", 3.0, 0.0, "is not a class (0, 1, …, 2)"),
        ("ordinal(classes=3)", 0.5, 0.0, "is not a class (0, 1, …, 2)"),
        ("student-t", f64::NAN, 0.0, "is not a finite number"),
        ("laplace", f64::INFINITY, 0.0, "is not a finite number"),
        ("gaussian", f64::NAN, 0.0, "is not a finite number"),
    ] {
        let found = parse(spec).unwrap().check(Target { y, extra });
        assert_eq!(found, Err(expected.to_owned()), "{spec}");
    }
}

#[test]
fn starting_values_come_from_the_data() {
    for (index, c) in zoo().iter().enumerate() {
        let mut rng = rng::stream(index as u64, "likelihood starts");
        let f = 0.9;
        let mut targets: Vec<Target> =
            (0..2000).map(|_| c.target(c.likelihood.sample(c.extra, &[f], &mut rng))).collect();
        targets.push(c.target(f64::NAN));
        let average = |l: &dyn Likelihood, f: f64| {
            targets[..2000].iter().map(|t| l.log_prob(*t, &[f])).sum::<f64>() / 2000.0
        };
        // nothing is given: everything is found
        let bare = match c.likelihood.name() {
            "ordinal" => format!("ordinal(classes={})", c.likelihood.classes().unwrap()),
            name => name.to_owned(),
        };
        let mut fresh = parse(&bare).unwrap();
        let start = fresh.initialise(&targets);
        assert_eq!(start.len(), 1);
        let (own, best) = (average(&*fresh, start[0]), average(&*c.likelihood, f));
        // noise starts at a tenth of the variance
        let slack = if c.kind == Real || c.kind == Positive { 6.0 } else { 0.35 };
        assert!(own > best - slack, "{}: {own} {best}", c.spec);
        // what is given stays
        let mut given = c.likelihood.clone();
        given.initialise(&targets);
        assert_eq!(given.to_json(), c.likelihood.to_json(), "{}", c.spec);
        // no targets at all
        let start = parse(&bare).unwrap().initialise(&[])[0];
        assert!(start.is_finite(), "{bare}");
        // all alike
        let same = vec![c.targets[0]; 5];
        let start = parse(&bare).unwrap().initialise(&same)[0];
        assert!(start.is_finite(), "{bare}: {start}");
    }
}

#[test]
fn classes_have_probabilities() {
    for c in zoo().iter().filter(|c| c.likelihood.classes().is_some()) {
        let n = c.likelihood.classes().unwrap();
        let mut p = vec![f64::NAN; n];
        c.likelihood.probabilities(&[0.4], &[1.7], &mut p);
        close(p.iter().sum(), 1.0, 1e-14, c.spec);
        for (class, p) in p.iter().enumerate() {
            let target = c.target(class as f64);
            let expected = brute(0.4, 1.7, |f| c.log_density(target, f).exp());
            // brute force does not know of kinks
            close(*p, expected, if c.spec == "svm" { 1e-5 } else { 1e-9 }, c.spec);
        }
    }
}

#[test]
fn mistakes_are_named_with_their_place() {
    for (spec, position, words) in [
        ("  poison", 2, "nearest: poisson"),
        ("poisson(lnk=exp)", 8, "nearest: link"),
        ("laplace(scal=1)", 8, "known: scale"),
        ("poisson(link=expo)", 8, "exp or softplus"),
        ("ordinal", 0, "classes"),
        ("ordinal(classes=1)", 8, "from 2"),
        ("ordinal(bin_edges=[1, 1])", 8, "increasing"),
        ("ordinal(classes=3, bin_edges=[1])", 8, "one fewer"),
        ("bernoulli(link=logit, floor=0.1)", 22, "probit"),
        ("bernoulli(floor=0.6)", 10, "below"),
        ("student-t(rule=0)", 10, "from 1 to 200"),
        ("student-t(slope=other)", 10, "rule or price"),
        ("poisson + gaussian", 0, "not added"),
        ("", 0, "the name of a likelihood"),
        ("gamma(shape=[1, 2])", 6, "one number"),
    ] {
        match parse(spec) {
            Err(crate::Error::Spec { position: at, reason, .. }) => {
                assert!(reason.contains(words), "{spec}: {reason}");
                assert_eq!(at, position, "{spec}: {reason}");
            }
            other => panic!("{spec}: {other:?}"),
        }
    }
    for spec in
        ["student-t(df=1.5)", "gamma(shape=-1)", "zip(zero=1)", "ordinal(classes=3, sigma=0)"]
    {
        let error = parse(spec).unwrap_err().to_string();
        assert!(error.contains("likelihood.") && error.contains("outside"), "{error}");
    }
}

/// Beyond 256 the constant of the negative binomial is another branch: p(y + 1)/p(y) = (y + 1/α)/(y + 1)
/// · αμ/(1 + αμ) leads there from below, and differences in α check its slope.
#[test]
fn large_counts_of_the_negative_binomial() {
    let at = |dispersion: f64, y: f64| {
        let spec = format!("negative-binomial(dispersion={dispersion})");
        let l = parse(&spec).expect("a likelihood");
        let target = Target { y, extra: 2.3 };
        let (mut a, mut b, mut params) = ([0.0], [0.0], [0.0]);
        let out = Slopes { mean: &mut a, variance: &mut b, params: &mut params };
        l.expect(target, &[4.0], &[0.0], out);
        (l.log_prob(target, &[4.0]), params[0])
    };
    for dispersion in [0.7_f64, 0.003] {
        let mu = 2.3 * 4_f64.exp();
        let share = (dispersion * mu / (1.0 + dispersion * mu)).ln();
        let mut expected = at(dispersion, 250.0).0;
        for y in 250..400 {
            expected += ((f64::from(y) + 1.0 / dispersion) / f64::from(y + 1)).ln() + share;
            let own = at(dispersion, f64::from(y + 1)).0;
            close(own, expected, 1e-11, &format!("{dispersion} {y}"));
        }
        let h = 1e-4 * dispersion;
        let slope = (at(dispersion + h, 400.0).0 - at(dispersion - h, 400.0).0) / (2.0 * h);
        close(at(dispersion, 400.0).1, slope, 1e-6, "slope in the dispersion");
    }
}

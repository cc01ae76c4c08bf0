//! Distribution functions of all likelihoods: they rise by the density, draws lie below as often as they say, and
//! quantiles are where they reach a level.

use super::multi_tests::{difference, label, places};
use super::quadrature::Slope;
use super::{Likelihood, REGISTRY, Support, Target, multi_tests, parse, tests};
use crate::rng;
use rand_distr::{Distribution, StandardNormal};

/// Every registered likelihood and some that are a user's, with the further number of a row.
fn all() -> Vec<(Box<dyn Likelihood>, f64)> {
    let mixed = "coregionalised(likelihood=laplace(scale=0.6), outputs=2, latents=2)";
    let one = tests::zoo().into_iter().map(|case| (case.likelihood, case.extra));
    let several = multi_tests::zoo(Slope::Rule).into_iter().map(|likelihood| (likelihood, 0.0));
    one.chain(several).chain([(parse(mixed).unwrap(), 0.0)]).collect()
}

/// Numbers from the middle and from both tails.
fn levels() -> [f64; 4] {
    [0.03, 0.31, 0.72, 0.985]
}

#[test]
fn every_registered_likelihood_is_here() {
    let names: Vec<String> = all().iter().map(|(l, _)| l.name().to_owned()).collect();
    for entry in REGISTRY {
        assert!(names.iter().any(|name| name == entry.name), "{} is missing", entry.name);
    }
}

#[test]
fn distribution_functions_rise_by_the_density() {
    for (likelihood, extra) in all() {
        for (m, v) in places(likelihood.latents()) {
            let what = format!("{} at {m:?} {v:?}", label(&*likelihood));
            let cdf = |y: f64| likelihood.cdf(Target { y, extra }, &m, &v);
            let density = |y: f64| {
                let target = Target { y, extra };
                likelihood.predict_log_density(target, &m, &v).exp()
            };
            if let Some(largest) = likelihood.support(extra).largest() {
                let mut p = vec![0.0; likelihood.classes().unwrap_or(0)];
                likelihood.probabilities(&m, &v, &mut p);
                for k in 0..=(largest.min(60.0) as usize) {
                    let y = k as f64;
                    let rise = cdf(y) - cdf(y - 1.0);
                    let expected = p.get(k).copied().unwrap_or_else(|| density(y));
                    assert!((rise - expected).abs() < 1e-9, "{what}, {k}: {rise} {expected}");
                    assert_eq!(cdf(y + 0.4), cdf(y), "{what}, between whole numbers");
                }
                assert_eq!((cdf(-0.2), cdf(-3.0)), (0.0, 0.0), "{what}");
                assert_eq!(cdf(largest), 1.0, "{what}");
                continue;
            }
            let [low, high] = [0.3, 0.7].map(|level| likelihood.quantile(extra, &m, &v, level));
            for level in levels() {
                let y = likelihood.quantile(extra, &m, &v, level);
                assert!((cdf(y) - level).abs() < 1e-6, "{what}: {} for {level}", cdf(y));
                // densities by a coarse rule on purpose
                if label(&*likelihood).contains("tensor\":true") {
                    continue;
                }
                let room = match likelihood.support(extra) {
                    Support::Positive => y,
                    Support::Interval(low, high) => (y - low).min(high - y),
                    _ => f64::INFINITY,
                };
                let slope = difference(y, 2e-3 * room.min(high - low), cdf);
                let (expected, numeric) = (density(y), likelihood.name() == "cauchy");
                let allowed = match label(&*likelihood) {
                    own if numeric || own.contains("\"a\"") => 1e-4,
                    _ => 1e-7,
                };
                assert!(
                    (slope - expected).abs() < allowed * (expected + 1.0 / (high - low)),
                    "{what}, level {level}, {y}: {slope} {expected}"
                );
            }
            assert_eq!((cdf(f64::NEG_INFINITY), cdf(f64::INFINITY)), (0.0, 1.0), "{what}");
            assert!(cdf(-1e9) < 1e-4 && cdf(1e9) > 0.9999, "{what}");
        }
    }
}

#[test]
fn draws_lie_below_as_often_as_the_distribution_function_says() {
    let mut rng = rng::stream(4, "draws below");
    for (likelihood, extra) in all() {
        let own = label(&*likelihood);
        // rules that are coarse on purpose
        if own.contains("tensor\":true") || own.contains("draws") {
            continue;
        }
        let coarse = own.contains("robust-max") || own.contains("tensor");
        // whose draws invert a numerical integral
        let slow = ["cauchy", "three"].contains(&likelihood.name()) || own.contains("\"a\"");
        let count = if slow { 400 } else { 20_000 };
        let (m, v) = places(likelihood.latents()).nth(1).unwrap();
        let draws: Vec<f64> = (0..count)
            .map(|_| {
                let normal = |(m, v): (&f64, &f64)| {
                    let x: f64 = StandardNormal.sample(&mut rng);
                    m + v.sqrt() * x
                };
                let f: Vec<f64> = m.iter().zip(&v).map(normal).collect();
                likelihood.sample(extra, &f, &mut rng)
            })
            .collect();
        for level in levels() {
            let y = likelihood.quantile(extra, &m, &v, level);
            let p = likelihood.cdf(Target { y, extra }, &m, &v);
            let share = draws.iter().filter(|d| **d <= y).count() as f64 / f64::from(count);
            let deviation = (p * (1.0 - p) / f64::from(count)).sqrt();
            let allowed = 4.5 * deviation + if coarse { 3e-3 } else { 1e-6 };
            assert!((share - p).abs() <= allowed, "{own}, {y}: {share} {p}");
            let whole = likelihood.support(extra).largest().is_some();
            let below = likelihood.cdf(Target { y: y - 1.0, extra }, &m, &v);
            assert!(!whole || (p >= level && below < level), "{own}: {y} {level}");
        }
    }
}

//! Gradients, leapfrog steps, and the laws of gradient-based and random-walk chains.

use super::diagnostics::effective_sample_size;
use super::elliptical::{self, EllipticalOptions};
use super::hmc::{self, HmcOptions, Path, Point, Sampled};
use super::joint::{Joint, LogDensity, Variables};
use super::metropolis::{self, MetropolisOptions};
use super::test_models::{model, rows};
use super::{Setting, Target};
use crate::data::InMemory;
use crate::likelihoods;
use crate::linalg::Mat;
use crate::model::Model;
use crate::rng::stream;
use rand_distr::{Distribution, StandardNormal};
use std::ops::ControlFlow;

/// Likelihoods of all kinds, with what a row brings and four targets.
const LAWS: [(&str, f64, [f64; 4]); 12] = [
    ("gaussian(variance=0.31)", 0.17, [1.3, -0.4, 0.8, 2.0]),
    ("student-t(df=4.6, scale=0.4)", 1.0, [1.3, -0.4, 0.8, 6.0]),
    ("laplace(scale=0.6)", 1.0, [1.3, -0.4, 0.8, 2.0]),
    ("matern32(scale=0.7)", 1.0, [1.3, -0.4, 0.8, 2.0]),
    ("logistic(scale=0.4)", 1.0, [1.3, -0.4, 0.8, 2.0]),
    ("pseudo-huber(delta=0.9, scale=0.6)", 1.0, [1.3, -0.4, 0.8, 2.0]),
    ("bernoulli(link=logit)", 1.0, [1.0, 0.0, 1.0, 1.0]),
    ("svm", 1.0, [1.0, 0.0, 1.0, 1.0]),
    ("negative-binomial(dispersion=0.7)", 2.3, [1.0, 0.0, 4.0, 2.0]),
    ("bernoulli", 1.0, [1.0, 0.0, 1.0, 1.0]),
    ("poisson", 1.3, [1.0, 0.0, 4.0, 2.0]),
    ("heteroscedastic(scale=logistic, precision=2.6)", 1.0, [1.3, -0.4, 0.8, 2.0]),
];

fn normals(n: usize, name: &str) -> Vec<f64> {
    StandardNormal.sample_iter(stream(4, name)).take(n).collect()
}

#[test]
fn gradients_are_those_of_the_log_density() {
    let points = Mat::from_fn(2, 1, |i, _| [0.0, 1.7][i]);
    let mut augmented = 0;
    for (spec, extra, y) in LAWS {
        let likelihood = likelihoods::parse(spec).unwrap();
        for points in [None, Some(&points)] {
            let model = model(likelihood.clone(), points);
            let mut data = rows(&y, extra);
            // a row without a target has no say and no local variable
            data.y[(2, 0)] = f64::NAN;
            let setting = Setting::new(&model, &data, Target::Variational).unwrap();
            for variables in [Variables::Original, Variables::Augmented] {
                let super_gaussian = likelihood.augmented().and_then(|a| a.super_gaussian());
                let Ok(mut joint) = Joint::new(&setting, variables) else {
                    let known = super_gaussian.is_none() || spec.starts_with("gaussian");
                    assert!(variables == Variables::Augmented && known);
                    continue;
                };
                let m: usize = points.map_or(4, |z| z.nrows()) * likelihood.latents();
                if variables == Variables::Augmented {
                    augmented += 1;
                    assert_eq!(joint.dim(), m + 3);
                } else {
                    assert_eq!(joint.dim(), m);
                }
                let mut position = joint.start(&mut stream(3, spec));
                position.iter_mut().zip(normals(m + 3, spec)).for_each(|(x, e)| *x += 0.3 * e);
                let mut gradient = vec![f64::NAN; position.len()];
                let value = joint.evaluate(&position, &mut gradient);
                assert!((value - joint.value(&position)).abs() <= 1e-13 * value.abs(), "{spec}");
                for j in 0..position.len() {
                    let mut at = |d: f64| {
                        let mut moved = position.clone();
                        moved[j] += d;
                        joint.value(&moved)
                    };
                    let h = 1e-4;
                    let slope =
                        (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h);
                    assert!(
                        (gradient[j] - slope).abs() < 2e-7 * (1.0 + slope.abs()),
                        "{spec} {variables:?} {j}: {} for {slope}",
                        gradient[j]
                    );
                }
            }
        }
    }
    // not Gaussian noise, two that have no local variables, and one that has counts among them
    assert_eq!(augmented, 2 * 8);
}

#[test]
fn without_local_variables_the_augmented_density_is_the_original_one() {
    // ∫ p(y, ω | f) dω = p(y | f): the integral over the t of one row
    for (spec, range) in [
        ("student-t(df=4.6, scale=0.4)", -2500..2500),
        ("laplace(scale=0.6)", -2500..2500),
        // below e⁻⁷ the density of a Pólya-Gamma variable is less than e⁻¹⁰⁰
        ("bernoulli(link=logit)", -700..400),
    ] {
        let model = model(likelihoods::parse(spec).unwrap(), None);
        let data = rows(&[1.0], 1.0);
        let setting = Setting::new(&model, &data, Target::Variational).unwrap();
        let mut original = Joint::new(&setting, Variables::Original).unwrap();
        let mut augmented = Joint::new(&setting, Variables::Augmented).unwrap();
        for z in [-0.7, 1.6] {
            let step = 0.01;
            let sum: f64 =
                range.clone().map(|i| augmented.value(&[z, step * f64::from(i)]).exp()).sum();
            let (own, expected) = ((sum * step).ln(), original.value(&[z]));
            assert!((own - expected).abs() < 1e-8, "{spec} {z}: {own} {expected}");
        }
    }
}

#[test]
fn leapfrog_steps_are_reversible_and_keep_the_energy_to_second_order() {
    let model = model(likelihoods::parse("student-t(df=4.6, scale=0.4)").unwrap(), None);
    let data = rows(&[1.3, -0.4, 0.8, 2.0], 1.0);
    let setting = Setting::new(&model, &data, Target::Variational).unwrap();
    for variables in [Variables::Original, Variables::Augmented] {
        let mut joint = Joint::new(&setting, variables).unwrap();
        let start = joint.start(&mut stream(1, "start"));
        let n = joint.dim();
        let mass: Vec<f64> = (0..n).map(|j| 0.4 + 0.3 * j as f64).collect();
        let from = Point::new(&mut joint, start);
        let momentum = normals(n, "momentum");
        let before = from.energy(&momentum, &mass);
        // the same time in twice as many steps, again and again
        let errors: Vec<f64> = [20, 40, 80, 160]
            .iter()
            .map(|&count| {
                let (mut point, mut p) = (from.clone(), momentum.clone());
                point.leapfrog(&mut joint, &mut p, &mass, 0.8 / count as f64, count);
                let error = point.energy(&p, &mass) - before;
                // and back
                p.iter_mut().for_each(|p| *p = -*p);
                point.leapfrog(&mut joint, &mut p, &mass, 0.8 / count as f64, count);
                for (own, first) in point.position.iter().zip(&from.position) {
                    assert!((own - first).abs() < 1e-12, "{variables:?}");
                }
                for (own, first) in p.iter().zip(&momentum) {
                    assert!((own + first).abs() < 1e-11, "{variables:?}");
                }
                error
            })
            .collect();
        for pair in errors.windows(2).skip(1) {
            let ratio = pair[0] / pair[1];
            assert!((ratio - 4.0).abs() < 0.3, "{variables:?}: {errors:?}");
        }
    }
}

/// Means and variances of f at the rows of two points, by a grid.
fn exact(model: &Model, data: &InMemory) -> [[f64; 2]; 2] {
    let setting = Setting::new(model, data, Target::Variational).unwrap();
    let mut joint = Joint::new(&setting, Variables::Original).unwrap();
    let (mut mass, mut first, mut second) = (0.0, [0.0; 2], [0.0; 2]);
    for i in -300..=300 {
        for j in -300..=300 {
            let z = [0.025 * f64::from(i), 0.025 * f64::from(j)];
            let w = joint.value(&z).exp();
            mass += w;
            for r in 0..2 {
                let f = joint.latent_values()[(r, 0)];
                first[r] += w * f;
                second[r] += w * f * f;
            }
        }
    }
    let mean = first.map(|m| m / mass);
    [mean, [second[0] / mass - mean[0] * mean[0], second[1] / mass - mean[1] * mean[1]]]
}

/// Holds mean and variance of the draws against numbers, to 4.5 standard errors.
fn moments(what: &str, sampled: &Sampled, exact: [[f64; 2]; 2]) {
    for r in 0..2 {
        let chains = |g: &dyn Fn(f64) -> f64| -> Vec<Vec<f64>> {
            let of = |chain: &Vec<Mat<f64>>| chain.iter().map(|f| g(f[(r, 0)])).collect();
            sampled.draws.f.iter().map(of).collect()
        };
        let centre = exact[0][r];
        for (moment, values, expected) in [
            ("mean", chains(&|f| f), centre),
            ("variance", chains(&|f| (f - centre) * (f - centre)), exact[1][r]),
        ] {
            let n: usize = values.iter().map(Vec::len).sum();
            let mean = values.iter().flatten().sum::<f64>() / n as f64;
            let spread =
                values.iter().flatten().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n as f64;
            let error = 4.5 * (spread / effective_sample_size(&values).unwrap()).sqrt();
            assert!(
                (mean - expected).abs() < error,
                "{what}, {moment} of f{r}: {mean} for {expected} ± {error}"
            );
            // and the test has some power
            assert!(error < 0.25 * (1.0 + expected.abs()), "{what}: ± {error}");
        }
    }
}

#[test]
fn chains_have_the_moments_of_the_posterior() {
    let mut watch = |_, _| ControlFlow::Continue(());
    for (spec, y) in [
        ("student-t(df=2.9, scale=0.4)", [2.5, -1.5]),
        ("laplace(scale=0.6)", [2.5, -1.5]),
        ("bernoulli(link=logit)", [1.0, 0.0]),
    ] {
        let model = model(likelihoods::parse(spec).unwrap(), None);
        let data = rows(&y, 1.0);
        let exact = exact(&model, &data);
        // densities of Pólya-Gamma variables are contour integrals, too slow for long chains
        let closed = !spec.contains("bernoulli");
        let kinds = [Variables::Original, Variables::Augmented];
        let no_turn = Path::NoUTurn { depth: 10 };
        let ways = [(None, Path::Steps(10)), (Some(0.15), Path::Steps(10)), (None, no_turn)];
        for variables in kinds.into_iter().take(if closed { 2 } else { 1 }) {
            for (step, path) in ways {
                let options =
                    HmcOptions { draws: 4000, variables, step, path, ..HmcOptions::default() };
                let sampled = hmc::sample(&model, &data, &options, &mut watch).unwrap();
                moments(&format!("{spec} {variables:?} {step:?} {path:?}"), &sampled, exact);
                match step {
                    // in two dimensions a path may be stable up to a step and not beyond
                    None => assert!(sampled.acceptance > 0.65, "{}", sampled.acceptance),
                    Some(step) => assert_eq!(sampled.step, step),
                }
            }
        }
        let options = MetropolisOptions { draws: 6000, thin: 4, ..MetropolisOptions::default() };
        let sampled = metropolis::sample(&model, &data, &options, &mut watch).unwrap();
        moments(&format!("{spec} random walk"), &sampled, exact);
        assert!((0.15..0.35).contains(&sampled.acceptance), "{}", sampled.acceptance);
        let options = EllipticalOptions { draws: 6000, ..EllipticalOptions::default() };
        let sampled = elliptical::sample(&model, &data, &options, &mut watch).unwrap();
        moments(&format!("{spec} ellipses"), &sampled, exact);
        assert!(sampled.acceptance > 0.1 && sampled.step.is_nan());
    }
}

#[test]
fn draws_depend_only_on_the_seed_and_bad_options_are_refused() {
    let mut watch = |_, _| ControlFlow::Continue(());
    let model = model(likelihoods::parse("poisson").unwrap(), None);
    let data = rows(&[1.0, 0.0, 4.0], 1.0);
    let options = HmcOptions { chains: 2, draws: 10, burn_in: 20, ..HmcOptions::default() };
    let run = |threads: usize, seed: u64| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let options = HmcOptions { seed, ..options.clone() };
        pool.install(|| hmc::sample(&model, &data, &options, &mut |_, _| ControlFlow::Continue(())))
            .unwrap()
            .draws
    };
    assert_eq!(run(1, 0).f, run(2, 0).f);
    assert_ne!(run(1, 0).f, run(1, 1).f);
    for bad in [
        HmcOptions { path: Path::Steps(0), ..options.clone() },
        HmcOptions { path: Path::NoUTurn { depth: 0 }, ..options.clone() },
        HmcOptions { step: Some(f64::NAN), ..options.clone() },
        HmcOptions { acceptance: 1.0, ..options.clone() },
        HmcOptions { draws: 0, ..options.clone() },
        HmcOptions { chains: 0, ..options.clone() },
    ] {
        assert!(hmc::sample(&model, &data, &bad, &mut watch).is_err(), "{bad:?}");
    }
    let none = HmcOptions { variables: Variables::Augmented, ..options };
    let error = hmc::sample(&model, &data, &none, &mut watch).unwrap_err().to_string();
    assert!(error.contains("poisson") && error.contains("original"), "{error}");
    let bad = MetropolisOptions { step: Some(-1.0), ..MetropolisOptions::default() };
    assert!(metropolis::sample(&model, &data, &bad, &mut watch).is_err());
}

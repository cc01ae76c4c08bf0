//! Hyperparameters within Gibbs chains: joint-distribution tests, integrals over a hyperparameter, predictions.

use super::diagnostics::effective_sample_size;
use super::gibbs::{Chain, GibbsOptions, sample};
use super::joint::{Joint, LogDensity, Variables};
use super::slice::{Hyperparameters, assume_priors, update};
use super::test_models::{model, rows};
use super::{Setting, Target};
use crate::data::InMemory;
use crate::likelihoods;
use crate::linalg::Mat;
use crate::model::{Model, Posterior};
use crate::model::{hyperparameters, set_hyperparameters};
use crate::params::Prior;
use crate::rng;
use std::ops::ControlFlow;

/// Holds the mean of numbers that should be 0 against their standard error.
fn centred(what: &str, values: &[f64]) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let spread = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n;
    let size = effective_sample_size(&[values]).unwrap();
    let error = (spread / size).sqrt();
    assert!(mean.abs() < 4.5 * error, "{what} is off by {mean} ± {error}");
    // chains that hardly move would pass anything
    assert!(size > 100.0, "{what}: {size} effective draws");
}

/// A prior for every parameter of a group.
fn prior(model: &mut Model, path: &str, prior: Prior) {
    model.for_group(path, |p| p.prior = Some(prior)).unwrap();
}

#[test]
fn updates_leave_a_prior_as_it_is() {
    let mut model = model(likelihoods::parse("student-t(df=4.6, scale=0.4)").unwrap(), None);
    prior(&mut model, "kernel.variance", Prior::Gamma { concentration: 2.3, rate: 1.7 });
    prior(&mut model, "kernel.lengthscales", Prior::LogNormal { loc: -0.4, scale: 1.3 });
    prior(&mut model, "mean.constant", Prior::Normal { loc: 0.6, scale: 2.5 });
    prior(&mut model, "likelihood.scale", Prior::HalfNormal { scale: 0.8 });
    model.freeze("likelihood.df", true).unwrap();
    let all = Hyperparameters::new(&model, 1).unwrap();
    let names: Vec<&str> = all.named.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names.len(), 4, "{names:?}");
    for (coordinate, name) in all.coordinates.iter().zip(names) {
        let mut rng = rng::stream(3, name);
        let draws: Vec<f64> = (0..8000)
            .map(|_| {
                let now = coordinate.read(&model);
                let start = (now, coordinate.log_prior(now));
                update(*coordinate, start, &mut rng, |value| {
                    coordinate.write(&mut model, value);
                    Ok(coordinate.log_prior(value))
                })
                .unwrap();
                coordinate.read(&model)
            })
            .collect();
        let (mean, square) = match name {
            "kernel.variance" => (2.3 / 1.7, 2.3 * 3.3 / (1.7 * 1.7)),
            "likelihood.scale" => (0.8 * std::f64::consts::FRAC_2_PI.sqrt(), 0.64),
            "mean.constant" => (0.6, 0.36 + 6.25),
            // of the logarithm, whose moments are lighter
            _ => (-0.4, 0.16 + 1.69),
        };
        let of = |v: &f64| if name.contains("lengthscale") { v.ln() } else { *v };
        centred(name, &draws.iter().map(|v| of(v) - mean).collect::<Vec<_>>());
        centred(name, &draws.iter().map(|v| of(v).powi(2) - square).collect::<Vec<_>>());
    }
}

/// Geweke 2004 with hyperparameters: y given everything and everything given y, in turn, leave every number at its prior.
fn joint(spec: &str, own: &[(&str, f64)], extra: f64, points: Option<&Mat<f64>>) {
    let likelihood = likelihoods::parse(spec).unwrap();
    let each = likelihood.latents();
    let mut model = model(likelihood, points);
    let (log_scale, spread) = (0.5, 0.7);
    let mut expected = Vec::new();
    model.freeze("likelihood", true).ok();
    for (path, loc) in own {
        model.freeze(path, false).unwrap();
        prior(&mut model, path, Prior::LogNormal { loc: *loc, scale: log_scale });
        expected.push((*path, *loc, log_scale));
    }
    prior(&mut model, "mean.constant", Prior::Normal { loc: 0.2, scale: spread });
    let kernel = |l: usize, name: &str| match each {
        1 => format!("kernel.{name}"),
        _ => format!("kernels[{l}].{name}"),
    };
    for l in 0..each {
        for (name, loc) in [("variance", -0.3), ("lengthscales", 0.1)] {
            let scale = if name == "variance" { 0.4 } else { log_scale };
            prior(&mut model, &kernel(l, name), Prior::LogNormal { loc, scale });
        }
    }
    let mut rng = rng::stream(17, spec);
    let mut data = rows(&[0.0, 0.0], extra);
    let setting = Setting::new(&model, &data, Target::Fitc).unwrap();
    let mut chain = Chain::new(&setting, 5, 0).unwrap();
    let all = Hyperparameters::new(&model, each).unwrap();
    let steps = 12_000;
    let count = all.coordinates.len();
    assert_eq!(count, own.len() + 3 * each, "{:?}", all.named);
    let mut values = vec![Vec::with_capacity(steps); 2 * count + 2 * each];
    for _ in 0..steps {
        for i in 0..2 {
            let f: Vec<f64> = (0..each).map(|l| chain.latent_values()[(i, l)]).collect();
            data.y[(i, 0)] = model.likelihood.sample(extra, &f, &mut rng);
        }
        let mut setting = Setting::new(&model, &data, Target::Fitc).unwrap();
        chain.sweep_all(&mut setting, &all.coordinates).unwrap();
        model = setting.model;
        for (at, (coordinate, (name, _))) in all.coordinates.iter().zip(&all.named).enumerate() {
            let value = coordinate.read(&model);
            let (d, scale) = match name.as_str() {
                name if name.starts_with("mean") => (value - 0.2, spread),
                name if name.ends_with("variance") && name.starts_with("kernel") => {
                    (value.ln() + 0.3, 0.4)
                }
                name if name.contains("lengthscales") => (value.ln() - 0.1, log_scale),
                name => {
                    let (_, loc, scale) = expected.iter().find(|e| e.0 == name).unwrap();
                    (value.ln() - loc, *scale)
                }
            };
            values[2 * at].push(d / scale);
            values[2 * at + 1].push(d * d / (scale * scale) - 1.0);
        }
        for l in 0..each {
            let d = chain.latent_values()[(0, l)] - 0.2;
            let total = spread * spread + (-0.3_f64 + 0.5 * 0.16).exp();
            values[2 * (count + l)].push(d);
            values[2 * (count + l) + 1].push(d * d - total);
        }
    }
    for (at, values) in values.iter().enumerate() {
        let name = all.named.get(at / 2).map_or("f", |(name, _)| name.as_str());
        let moment = if at % 2 == 0 { "mean" } else { "variance" };
        centred(
            &format!("{spec}, {} points: the {moment} of {name}", points.map_or(0, |z| z.nrows())),
            values,
        );
    }
}

#[test]
fn sweeps_with_hyperparameters_leave_the_joint_law() {
    let points = Mat::from_fn(2, 1, |i, _| [0.0, 1.7][i]);
    for (spec, own, extra) in [
        ("student-t(df=4.6, scale=0.4)", &[("likelihood.scale", -0.9)][..], 1.0),
        ("laplace(scale=0.6)", &[("likelihood.scale", -0.5)], 1.0),
        ("bernoulli(link=logit)", &[], 1.0),
        ("poisson-logistic(rate=3.1)", &[("likelihood.rate", 1.1)], 1.3),
        ("heteroscedastic(scale=logistic, precision=2.6)", &[("likelihood.precision", 1.0)], 1.0),
        ("logistic-softmax(classes=3, integration=laplace)", &[], 1.0),
    ] {
        joint(spec, own, extra, None);
        joint(spec, own, extra, Some(&points));
    }
}

/// ∫ … dz by a grid over two whitened variables: the log of the integral of the joint density.
fn evidence(model: &Model, data: &InMemory, target: Target, augmented: bool) -> f64 {
    let setting = Setting::new(model, data, target).unwrap();
    let mut joint = Joint::new(&setting, Variables::Original).unwrap();
    let mut sum = 0.0;
    for i in -30..=30 {
        for j in -30..=30 {
            let z = [0.2 * f64::from(i), 0.2 * f64::from(j)];
            let mut log = joint.value(&z);
            if augmented {
                // the law of chains has ℓ, not E log p, where f is not known given u
                let prior = -0.5 * (z[0] * z[0] + z[1] * z[1]) - std::f64::consts::TAU.ln();
                log = prior + setting.log_likelihood(joint.latent_values());
            }
            sum += log.exp();
        }
    }
    (sum * 0.04).ln()
}

#[test]
fn a_hyperparameter_has_the_law_of_the_integral() {
    let points = Mat::from_fn(2, 1, |i, _| [0.0, 1.7][i]);
    let (plain, sparse) = (None, Some(&points));
    for (spec, path, y, ways) in [
        ("bernoulli(link=logit)", "kernel.lengthscales", &[1.0, 0.0][..], &[plain, sparse][..]),
        ("student-t(df=3.3, scale=0.4)", "kernel.variance", &[2.5, -1.5], &[sparse]),
        ("student-t(df=3.3, scale=0.4)", "likelihood.scale", &[2.5, -1.5], &[plain]),
        ("laplace(scale=0.6)", "mean.constant", &[2.5, 1.5], &[sparse]),
    ] {
        for points in ways.iter().copied() {
            let mut model = model(likelihoods::parse(spec).unwrap(), points);
            for group in ["kernel", "mean", "likelihood"] {
                model.freeze(group, true).ok();
            }
            model.freeze(path, false).unwrap();
            let real = path.starts_with("mean");
            let law = match real {
                true => Prior::Normal { loc: 0.1, scale: 1.4 },
                false => Prior::LogNormal { loc: 0.2, scale: 0.8 },
            };
            prior(&mut model, path, law);
            let data = rows(y, 1.0);
            let target = Target::Variational;
            // moments of what moves, by a sum over a grid of it
            let (mut mass, mut first, mut second) = (0.0, 0.0, 0.0);
            for k in -50..=50 {
                let free = if real { 0.1 + 0.14 * f64::from(k) } else { 0.2 + 0.08 * f64::from(k) };
                let value = if real { free } else { free.exp() };
                model.set(path, &[value]).unwrap();
                let jacobian = if real { 0.0 } else { free };
                let log = evidence(&model, &data, target, points.is_some());
                let w = (log + law.log_density(value) + jacobian).exp();
                mass += w;
                first += w * free;
                second += w * free * free;
            }
            let mean = first / mass;
            let variance = second / mass - mean * mean;
            model.set(path, &[0.9]).unwrap();
            let options = GibbsOptions {
                draws: 4000,
                hyperparameters: true,
                target,
                ..GibbsOptions::default()
            };
            let mut watch = |_, _| ControlFlow::Continue(());
            let draws = sample(&model, &data, &options, &mut watch).unwrap();
            let [(name, place)] = &draws.sampled[..] else { panic!("{:?}", draws.sampled) };
            assert_eq!(name, path);
            let free = |h: &Vec<f64>| if real { h[*place] } else { h[*place].ln() };
            for chain in &draws.hyperparameters {
                let what = format!("{spec} {path} {}", points.is_some());
                let apart: Vec<f64> = chain.iter().map(|h| free(h) - mean).collect();
                centred(&what, &apart);
                centred(&what, &apart.iter().map(|d| d * d - variance).collect::<Vec<_>>());
            }
            let mixing = draws.mixing(0.1).unwrap();
            assert_eq!(mixing.hyperparameters.len(), 1);
            assert!(mixing.hyperparameters[0].split_rhat < 1.05, "{mixing:?}");
            assert!(mixing.hyperparameters[0].effective > 200.0, "{mixing:?}");
        }
    }
}

#[test]
fn priors_are_assumed_where_there_are_none() {
    let mut model = model(likelihoods::parse("student-t(df=4.6, scale=0.4)").unwrap(), None);
    let error = Hyperparameters::new(&model, 1).unwrap_err().to_string();
    assert!(error.contains("kernel.") && error.contains("prior"), "{error}");
    let own = Prior::Gamma { concentration: 2.0, rate: 3.0 };
    prior(&mut model, "kernel.variance", own);
    model.freeze("likelihood.df", true).unwrap();
    let assumed = assume_priors(&mut model);
    assert_eq!(assumed, ["kernel.lengthscales", "mean.constant", "likelihood.scale"]);
    let params = model.params();
    let of = |path: &str| params.iter().find(|(p, _)| p == path).unwrap().1.prior;
    assert_eq!(of("kernel.variance"), Some(own));
    assert_eq!(of("likelihood.df"), None);
    let about = |value: f64| Some(Prior::LogNormal { loc: value.ln(), scale: 1.0 });
    assert_eq!(of("kernel.lengthscales"), about(0.9));
    assert_eq!(of("likelihood.scale"), about(0.4));
    assert_eq!(of("mean.constant"), Some(Prior::Normal { loc: 0.3, scale: 1.0 }));
    assert!(Hyperparameters::new(&model, 1).is_ok());
    assert!(assume_priors(&mut model).is_empty());
    for group in ["kernel", "mean", "likelihood"] {
        model.freeze(group, true).unwrap();
    }
    let error = Hyperparameters::new(&model, 1).unwrap_err().to_string();
    assert!(error.contains("frozen"), "{error}");
}

#[test]
fn a_kernel_of_latent_functions_that_move_apart_is_refused() {
    let mut model = model(likelihoods::parse("heteroscedastic(scale=logistic)").unwrap(), None);
    model.kernels.truncate(1);
    assume_priors(&mut model);
    let error = Hyperparameters::new(&model, 2).unwrap_err().to_string();
    assert!(error.contains("rbf; rbf"), "{error}");
}

#[test]
fn predictions_average_over_draws_with_their_hyperparameters() {
    let points = Mat::from_fn(3, 1, |i, _| [0.0, 1.7, 0.6][i]);
    for (spec, y, points) in [
        ("student-t(df=4.6, scale=0.4)", &[1.3, -0.4, 0.8][..], None),
        ("bernoulli(link=logit)", &[1.0, 0.0, 1.0], Some(&points)),
        ("heteroscedastic(scale=logistic, precision=2.6)", &[1.3, -0.4, 0.8], None),
    ] {
        let mut model = model(likelihoods::parse(spec).unwrap(), points);
        assume_priors(&mut model);
        let data = rows(y, 1.0);
        let options = GibbsOptions {
            chains: 2,
            draws: 5,
            thin: 3,
            burn_in: 10,
            hyperparameters: true,
            ..GibbsOptions::default()
        };
        let draws = sample(&model, &data, &options, &mut |_, _| ControlFlow::Continue(())).unwrap();
        let (z, own) = draws.thinned(100);
        assert_eq!((z.len(), own.len()), (10, 10));
        assert_ne!(own[0], own[1]);
        let x = points.is_none().then_some(&data.x);
        let all = Posterior::of_sampled(&model, x, z.clone(), own.clone()).unwrap();
        let new = Mat::from_fn(4, 1, |i, _| 0.7 * i as f64 - 1.1);
        let target = Mat::from_fn(4, 1, |i, _| [1.0, 0.0, 1.0, 1.0][i]);
        let (mut mean, mut square, mut y_mean) = (Mat::zeros(4, all.latents()), 0.0, 0.0);
        let (mut density, mut covariance) = (0.0, 0.0);
        for (z, own) in z.iter().zip(&own) {
            let mut other = model.clone();
            set_hyperparameters(&mut other, own).unwrap();
            assert_eq!(hyperparameters(&other), *own);
            let one = Posterior::of_draws(&other, x, vec![z.clone()]).unwrap();
            let (f, within) = one.predict_f(new.as_ref()).unwrap();
            mean += faer::Scale(0.1) * &f;
            square += 0.1 * (within[(2, 0)] + f[(2, 0)] * f[(2, 0)]);
            let (_, full) = one.predict_f_full(new.as_ref()).unwrap();
            covariance += 0.1 * (full[0][(2, 1)] + f[(2, 0)] * f[(1, 0)]);
            y_mean += 0.1 * one.predict_y(new.as_ref(), &[]).unwrap().0[(2, 0)];
            let log = one.predict_log_density(new.as_ref(), target.as_ref(), &[]).unwrap();
            density += 0.1 * log[3].exp();
        }
        let close = |what: &str, found: f64, expected: f64| {
            assert!((found - expected).abs() < 1e-7, "{spec} {what}: {found} for {expected}");
        };
        let (found, variance) = all.predict_f(new.as_ref()).unwrap();
        close("mean", found[(2, 0)], mean[(2, 0)]);
        close("only mean", all.predict_mean(new.as_ref()).unwrap()[(2, 0)], mean[(2, 0)]);
        close("variance", variance[(2, 0)], square - mean[(2, 0)] * mean[(2, 0)]);
        let (_, full) = all.predict_f_full(new.as_ref()).unwrap();
        close("covariance", full[0][(2, 1)], covariance - mean[(2, 0)] * mean[(1, 0)]);
        close("variance of a covariance", full[0][(2, 2)], variance[(2, 0)]);
        close("mean of y", all.predict_y(new.as_ref(), &[]).unwrap().0[(2, 0)], y_mean);
        let log = all.predict_log_density(new.as_ref(), target.as_ref(), &[]).unwrap();
        close("density", log[3], density.ln());
        // slopes in the inputs, by differences
        let at = |h: f64| {
            let moved = Mat::from_fn(4, 1, |i, _| new[(i, 0)] + h);
            all.predict_f(moved.as_ref()).unwrap()
        };
        let slopes = all.predict_gradients(new.as_ref()).unwrap();
        let (up, down) = (at(1e-5), at(-1e-5));
        for l in 0..all.latents() {
            for i in 0..4 {
                let by = |a: &Mat<f64>, b: &Mat<f64>| (a[(i, l)] - b[(i, l)]) / 2e-5;
                close("slope of the mean", slopes.mean[l][(i, 0)], by(&up.0, &down.0));
                close("slope of the variance", slopes.variance[l][(i, 0)], by(&up.1, &down.1));
            }
        }
        // functions, each of one of the draws, have the mixture's moments
        let count = 3000;
        let mut rng = crate::rng::stream(1, "waves");
        let functions = all.sample_functions(count, 64, &mut rng).unwrap();
        let values = functions.evaluate(new.as_ref()).unwrap();
        for l in 0..all.latents() {
            for i in 0..4 {
                let (m, v) = (found[(i, l)], variance[(i, l)]);
                let average = values.iter().map(|f| f[(i, l)]).sum::<f64>() / count as f64;
                let spread = values.iter().map(|f| (f[(i, l)] - m).powi(2)).sum::<f64>();
                let error = (v / count as f64).sqrt();
                assert!((average - m).abs() < 5.0 * error, "{spec}: {average} for {m}");
                assert!((spread / count as f64 / v - 1.0).abs() < 0.2, "{spec}: {spread} for {v}");
            }
        }
        assert_eq!(all.draws(), z);
        assert_eq!(all.hyperparameters(), own);
        let short = own[..3].to_vec();
        assert!(Posterior::of_sampled(&model, x, z.clone(), short).is_err());
        let other = vec![vec![1.0]; 10];
        assert!(Posterior::of_sampled(&model, x, z.clone(), other).is_err());
    }
}

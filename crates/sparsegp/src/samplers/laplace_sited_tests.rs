//! Posteriors of hyperparameters under the bound by sites of all rows, beside differences and sums over a grid.

use super::evidence::Posterior;
use super::laplace::integrate;
use super::slice::Hyperparameters;
use crate::data::InMemory;
use crate::kernels::{Inputs, parse};
use crate::linalg::{Jitter, Mat};
use crate::methods::Tvgp;
use crate::model::{Model, hyperparameter_names};
use crate::params::Prior;
use crate::rng::{stream, uniform};
use crate::variational::{Tying, Variational};
use crate::{likelihoods, means, methods};

fn model(kernels: &[&str], likelihood: &str, inputs: usize, rows: usize) -> Model {
    let likelihood = likelihoods::parse(likelihood).unwrap();
    let latents = likelihood.latents();
    let mean = serde_json::json!({"type": "constant", "constant": vec![0.3; latents]});
    Model {
        kernels: kernels.iter().map(|own| parse(own, Inputs::unnamed(inputs)).unwrap()).collect(),
        mean: means::from_json(&mean, inputs, latents).unwrap(),
        likelihood,
        inducing: Vec::new(),
        q: Some(Variational::sites(rows, latents, Tying::Untied)),
        method: methods::find("tvgp").unwrap().method,
        jitter: Jitter::Absolute(0.0),
        hidden: Vec::new(),
    }
}

fn rows(n: usize, inputs: usize, target: impl Fn(f64, f64) -> f64) -> InMemory {
    let mut rng = stream(4, "rows");
    let x = Mat::from_fn(n, inputs, |_, _| 4.0 * uniform(&mut rng) - 2.0);
    let y = Mat::from_fn(n, 1, |i, _| target(x[(i, 0)], uniform(&mut rng)));
    InMemory::new(x, y).unwrap()
}

/// Gives every parameter that moves a prior.
fn with_priors(model: &mut Model) {
    let mut count = 0.0;
    model.visit_mut(&mut |_, param| {
        if !param.frozen && !param.role().is_bulky() {
            count += 1.0;
            let positive = param.value().iter().all(|v| *v > 0.0);
            let log_normal = Prior::LogNormal { loc: 0.1 * count, scale: 0.7 + 0.1 * count };
            let normal = Prior::Normal { loc: 0.1 * count, scale: 0.8 };
            let is_mean = param.role() == crate::params::Role::Constant;
            param.prior = Some(if positive && !is_mean { log_normal } else { normal });
        }
    });
}

#[test]
fn slopes_of_the_density_by_sites_are_its_differences() {
    let counts = rows(11, 2, |x, u| (4.0 * u + 1.5 * (1.0 + x.sin())).floor());
    let numbers = rows(9, 2, |x, u| 1.7 * (1.3 * x).sin() + u - 0.5);
    let rbf = "rbf(lengthscales=[0.9, 2.1], variance=1.4)";
    let own = "matern52(lengthscales=[1.6, 0.8], variance=0.7)";
    let cases = [
        (model(&[rbf], "negative-binomial(dispersion=1.7)", 2, 11), &counts),
        (model(&[own, rbf], "heteroscedastic", 2, 9), &numbers),
        (model(&[rbf], "student-t(df=4.5, scale=0.4)", 2, 9), &numbers),
    ];
    for (mut model, rows) in cases {
        with_priors(&mut model);
        let name = model.likelihood.name();
        let sampled = Hyperparameters::new(&model, model.likelihood.latents()).unwrap();
        let mut density = Posterior::new(&model, rows, &sampled).unwrap();
        let at = density.position();
        let mut slopes = vec![0.0; at.len()];
        let without = density.at(&at, None).unwrap();
        // of both, the sites that are searched for longer stay
        let value = density.at(&at, Some(&mut slopes)).unwrap();
        assert!((value - without).abs() < 2e-3, "{name}");
        // the bound is at its top in the sites: steps from elsewhere end there too
        let method = Tvgp::of(model.method).unwrap();
        let mut plain = model.clone();
        (0..300).for_each(|_| method.step(&mut plain, rows, 0.5).map(|_| ()).unwrap());
        let bound = method.value(&plain, rows).unwrap();
        let settled = method.value(&density.model, rows).unwrap();
        assert!((bound - settled).abs() < 1e-5 * bound.abs(), "{name}: {bound} {settled}");
        for j in 0..at.len() {
            let mut unused = vec![0.0; at.len()];
            let mut beside = |step: f64| {
                let mut moved = at.clone();
                moved[j] += step;
                density.at(&moved, Some(&mut unused)).unwrap()
            };
            let step = 1e-3;
            let slope = (8.0 * (beside(step) - beside(-step))
                - (beside(2.0 * step) - beside(-2.0 * step)))
                / (12.0 * step);
            let error = (slopes[j] - slope).abs();
            // sites are searched for until a step promises 1e-9 nats, and slopes differ by its root
            assert!(error < 1e-4 * (1.0 + slope.abs()), "{name} {j}: {} {slope}", slopes[j]);
        }
    }
}

/// Settings stand for p(θ) exp(bound(θ)), whose bound is found here by steps from the prior.
#[test]
fn moments_by_sites_are_those_of_a_grid() {
    let rows =
        rows(
            26,
            1,
            |x, u| if u < 1.0 / (1.0 + (-2.5 * (1.4 * x).sin()).exp()) { 1.0 } else { 0.0 },
        );
    let mut model = model(&["rbf(lengthscales=0.9, variance=1.6)"], "bernoulli(link=logit)", 1, 26);
    model.visit_mut(&mut |path, param| match path.to_string().as_str() {
        "kernel.lengthscales" => param.prior = Some(Prior::LogNormal { loc: -0.2, scale: 0.6 }),
        "kernel.variance" => param.prior = Some(Prior::LogNormal { loc: 0.6, scale: 0.9 }),
        _ => param.frozen = true,
    });
    let found = integrate(&model, &rows).unwrap().unwrap();
    assert_eq!(found.sites.len(), found.hyperparameters.len());
    let method = Tvgp::of(model.method).unwrap();
    let at = |length: f64, variance: f64| {
        let mut own = model.clone();
        own.visit_mut(&mut |path, param| match path.to_string().as_str() {
            "kernel.lengthscales" => param.value_mut()[0] = length,
            "kernel.variance" => param.value_mut()[0] = variance,
            _ => {}
        });
        (0..40).for_each(|_| method.step(&mut own, &rows, 0.9).map(|_| ()).unwrap());
        (method.value(&own, &rows).unwrap() + own.log_prior() + length.ln() + variance.ln(), own)
    };
    let steps = 28;
    let grid = |i: usize, low: f64, high: f64| low + (high - low) * i as f64 / (steps - 1) as f64;
    let mut all = Vec::new();
    for i in 0..steps {
        for j in 0..steps {
            let (a, b) = (grid(i, -2.6, 2.2), grid(j, -3.0, 4.2));
            all.push((at(a.exp(), b.exp()).0, a, b));
        }
    }
    let largest = all.iter().fold(f64::NEG_INFINITY, |m, own| m.max(own.0));
    let total: f64 = all.iter().map(|own| (own.0 - largest).exp()).sum();
    let names = hyperparameter_names(&model);
    for (path, pick) in [("kernel.lengthscales", 1), ("kernel.variance", 2)] {
        let value = |own: &(f64, f64, f64)| if pick == 1 { own.1 } else { own.2 };
        let share = |own: &(f64, f64, f64)| (own.0 - largest).exp() / total;
        let mean: f64 = all.iter().map(|own| share(own) * value(own)).sum();
        let spread: f64 =
            all.iter().map(|own| share(own) * (value(own) - mean).powi(2)).sum::<f64>().sqrt();
        let place = names.iter().position(|own| own == path).unwrap();
        let each = || {
            found.hyperparameters.iter().zip(&found.times).map(|(h, t)| (h[place].ln(), *t as f64))
        };
        let own_mean = each().map(|(v, t)| t * v).sum::<f64>() / 32.0;
        let own_spread =
            (each().map(|(v, t)| t * (v - own_mean).powi(2)).sum::<f64>() / 32.0).sqrt();
        // two standard errors of 32 components are a third of a deviation, and a quarter of it
        assert!(
            (own_mean - mean).abs() < 0.33 * spread,
            "{path}: {own_mean}, grid {mean} ± {spread}"
        );
        assert!((own_spread / spread - 1.0).abs() < 0.3, "{path}: {own_spread}, grid {spread}");
    }
    // and the sites of a setting are those that steps find
    let own = &found.hyperparameters[0];
    let place = |path: &str| own[names.iter().position(|own| own == path).unwrap()];
    let (_, expected) = at(place("kernel.lengthscales"), place("kernel.variance"));
    let expected = expected.q.unwrap();
    for (a, b) in found.sites[0].first.value().iter().zip(expected.first.value()) {
        assert!((a - b).abs() < 2e-3 * (1.0 + b.abs()), "{a} {b}");
    }
}
